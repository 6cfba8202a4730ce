//! The examples of clients, which `examples/` contains.

use std::{path::Path, process::Command};

use crate::common::{python, sample, served::Served, skip, temp};

/// Runs a client of the API, and returns what it prints. Returns the error if the client fails.
fn run_client(program: &Path, script: &str, args: &[&str]) -> Result<String, String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("examples")
        .join(script);
    let output = Command::new(program).arg(path).args(args).output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    if output.status.success() {
        Ok(text(&output.stdout))
    } else {
        Err(text(&output.stderr))
    }
}

/// Both clients print the same moves with the same numbers of games.
#[test]
fn the_clients_in_javascript_and_python_read_the_answers() {
    let dir = temp();
    let served = Served::start(dir.path(), args!["-q", "--no-cache", sample("famous.pgn")]);
    let url = served.url();
    let node = Path::new("node");
    if Command::new(node).arg("--version").output().is_err() {
        skip("Node.js is not installed");
        return;
    }
    let Some(python) = python(&["json"]) else {
        return;
    };
    let clients = [
        (
            node,
            "explorer.mjs",
            "play=e2e4,e7e5&player=Morphy,+Paul",
            "player=Morfy,+Paul",
            "play=e2e5",
        ),
        (
            &*python,
            "explorer.py",
            "play=e2e4,e7e5",
            "player=Morfy, Paul",
            "play=e2e5",
        ),
    ];
    for (program, script, known, unknown, wrong) in clients {
        let mut args = vec![&*url, known];
        if script.ends_with(".py") {
            args.push("player=Morphy, Paul");
        }
        let printed = run_client(program, script, &args).unwrap();
        let answer = served.json("/lichess?play=e2e4,e7e5&player=Morphy,+Paul");
        let moves = answer["moves"].as_array().unwrap();
        assert_eq!(printed.lines().count(), moves.len() + 1, "{printed}");
        for (mv, line) in moves.iter().zip(printed.lines()) {
            let games = ["white", "draws", "black"].map(|side| mv[side].as_u64().unwrap());
            let words: Vec<&str> = line.split_whitespace().collect();
            assert_eq!(words[0], mv["san"]);
            assert_eq!(words[1], games.iter().sum::<u64>().to_string());
        }
        let games = |query: &str| {
            let answer = served.json(&format!("/lichess?{query}"));
            let results = ["white", "draws", "black"].map(|name| answer[name].as_u64().unwrap());
            results.iter().sum::<u64>()
        };
        let continued = |games| format!("\n{games} games continue from the position");
        let filtered = games("play=e2e4,e7e5&player=Morphy,+Paul");
        assert!(filtered < games("play=e2e4,e7e5"));
        assert!(printed.contains(&continued(filtered)), "{printed}");
        let printed = run_client(program, script, &[&url, "variant=chess960"]).unwrap();
        assert!(format!("\n{printed}").contains(&continued(0)), "{printed}");
        let long = format!("event={}", "x".repeat(100_000));
        let error = run_client(program, script, &[&url, &long]).unwrap_err();
        assert!(error.contains("431") || error.contains("414"), "{error}");
        let printed = run_client(program, script, &[&url, unknown]).unwrap();
        assert!(printed.contains("Morphy, Paul"), "{printed}");
        let error = run_client(program, script, &[&url, wrong]).unwrap_err();
        assert!(
            error.contains("move 1 of the line, \"e2e5\", is not possible"),
            "{error}"
        );
    }
}
