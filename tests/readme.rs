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

/// The README's code in a language, block by block.
fn blocks(language: &str) -> Vec<String> {
    let readme = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("README.md"));
    let readme = readme.unwrap();
    let start = format!("\n```{language}\n");
    readme
        .split(&start)
        .skip(1)
        .filter_map(|rest| Some(rest.split_once("\n```")?.0.to_owned()))
        .collect()
}

#[test]
fn the_python_example_finds_the_opera_game() {
    let Some(python) = common::python(&["chess", "plyvel"]) else {
        return;
    };
    let dir = temp();
    let pgn = sample("famous.pgn");
    let line = format!(
        "make-book -q {} --leveldb famous.idx --index-stats",
        pgn.display()
    );
    common::ok(dir.path(), &line);
    let blocks = blocks("python");
    assert_eq!(blocks.len(), 1);
    let output = Command::new(python)
        .args(["-c", &blocks[0]])
        .current_dir(dir.path())
        .output()
        .unwrap();
    let printed = String::from_utf8(output.stdout).unwrap();
    let error = String::from_utf8(output.stderr).unwrap();
    assert!(
        printed.starts_with("Morphy, Paul - Duke Karl"),
        "{printed}{error}"
    );
    assert!(
        printed.contains("17. Rd8#") && printed.ends_with("d4 1 white 1 black 0\n"),
        "{printed}{error}"
    );
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
