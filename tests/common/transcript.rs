//! Transcripts: text files with commands and the messages that they print.
//!
//! A line that begins with `$ ` is a command. The lines after it are the command's messages and, if it failed, its exit
//! status after `? `. A line that begins with `> ` does what the messages before it advise: it must succeed, and must
//! not print all of these messages again. A line that begins with `#` is a comment.
//!
//! If the variable `SNAPSHOTS` is `overwrite`, the tests write the messages to the transcripts instead of comparing them.

use std::{fs, path::Path};

use snapbox::{Assert, Data, IntoData, data::DataFormat};

use super::polybook_in;

/// What a command printed.
pub struct Said {
    /// The exit status of the command, or 0 if it succeeded.
    pub status: u32,
    /// The messages of the command, which end in a line break.
    pub messages: String,
}

impl Said {
    /// Returns what a step says that is no command of polybook.
    pub fn nothing() -> Said {
        Said {
            status: 0,
            messages: String::new(),
        }
    }

    /// Runs polybook in `dir`. `line` contains the arguments, which are separated by blanks. Words
    /// in single quotes may contain blanks.
    pub fn by_command(dir: &Path, line: &str) -> Said {
        let mut command = polybook_in(dir);
        let output = command.args(words(line)).output().unwrap();
        let messages = [output.stderr, output.stdout].concat();
        let messages = String::from_utf8(messages).unwrap();
        let messages = messages.replace(&format!("{}/", dir.display()), "");
        // The time that a command took differs from run to run.
        let lines = messages.lines().filter(|line| !line.ends_with(" seconds"));
        let messages: String = lines.flat_map(|line| [line, "\n"]).collect();
        assert!(!messages.contains("internal error"), "{line}: {messages}");
        Said {
            status: output.status.code().unwrap().unsigned_abs(),
            messages,
        }
    }
}

/// Splits a command line at blanks that are not within single quotes.
pub fn words(line: &str) -> Vec<&str> {
    let parts = line.split('\'').enumerate();
    parts
        .flat_map(|(number, part)| match number % 2 {
            0 => part.split_whitespace().collect(),
            _ => vec![part],
        })
        .collect()
}

/// Runs the commands of the transcript `name` in the directory `tests`, and compares their messages with it. `run`
/// executes a command.
#[track_caller]
pub fn check(name: &str, mut run: impl FnMut(&str) -> Said) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests")
        .join(name);
    let expected = fs::read_to_string(&path).unwrap();
    let mut found = String::new();
    let mut last = String::new();
    for line in expected.lines() {
        if let Some(command) = line.strip_prefix("$ ") {
            let Said { status, messages } = run(command);
            found += &format!("{line}\n{messages}");
            if status > 0 {
                found += &format!("? {status}\n");
            }
            last = messages;
        } else if let Some(command) = line.strip_prefix("> ") {
            let Said { status, messages } = run(command);
            found += &format!("{line}\n");
            let mut before = last.lines();
            if status > 0 || !last.is_empty() && before.all(|message| messages.contains(message)) {
                found += &format!("{messages}? {status}\n");
            }
        } else if line.starts_with('#') {
            let blank = if found.is_empty() { "" } else { "\n" };
            found += &format!("{blank}{line}\n");
        }
    }
    let expected = Data::read_from(&path, Some(DataFormat::Text));
    Assert::new()
        .action_env("SNAPSHOTS")
        .eq(found.into_data().raw(), expected.raw());
}
