//! The README's console blocks do what they say.

mod common;

use std::{path::Path, process::Command};

use common::{sample, temp};

/// The commands of the README's console blocks with what they print.
fn transcripts() -> Vec<(String, String)> {
    let readme = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("README.md"));
    let readme = readme.unwrap();
    let mut found: Vec<(String, String)> = Vec::new();
    let mut inside = false;
    for line in readme.lines() {
        if let Some(language) = line.strip_prefix("```") {
            inside = language == "console";
        } else if let (true, Some(command)) = (inside, line.strip_prefix("$ ")) {
            found.push((command.to_owned(), String::new()));
        } else if let (true, Some((_, output))) = (inside, found.last_mut()) {
            output.push_str(line);
            output.push('\n');
        }
    }
    found
}

/// Without what differs from run to run.
fn steady(output: &str) -> String {
    output
        .lines()
        .filter(|line| !line.ends_with(" seconds"))
        .map(|line| format!("{line}\n"))
        .collect()
}

#[cfg(unix)]
#[test]
fn the_tour_prints_what_it_shows() {
    let dir = temp();
    let data = sample("");
    std::os::unix::fs::symlink(data, dir.path().join("data")).unwrap();
    let bin = Path::new(env!("CARGO_BIN_EXE_polybook")).parent().unwrap();
    let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap());
    let transcripts = transcripts();
    assert!(transcripts.len() >= 4);
    for (command, expected) in transcripts {
        let output = Command::new("sh")
            .args(["-c", &format!("{command} 2>&1")])
            .current_dir(dir.path())
            .env("PATH", &path)
            .output()
            .unwrap();
        let printed = String::from_utf8(output.stdout).unwrap();
        assert_eq!(steady(&printed), steady(&expected), "$ {command}");
    }
}
