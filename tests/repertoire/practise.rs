//! `polybook repertoire practise` and `polybook repertoire cards`.

use std::{
    fs,
    io::{BufRead, BufReader, Read, Write},
    process::Stdio,
};

use polybook::storage::output::AtomicFile;
use serde_json::Value;

use super::*;
use crate::common::{fed, polybook_in};

/// Practises `white.pgn` with White. Returns what was printed.
fn practised(dir: &Path, options: &str, input: &str) -> String {
    let line = format!("repertoire practise white.pgn --color white --plain {options}");
    let output = fed(dir, &*line, input.as_bytes());
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && error.is_empty(), "{error}");
    String::from_utf8(output.stdout).unwrap()
}

/// Returns the moves in the file of results, with the numbers of their answers and of their wrong answers.
fn results(dir: &Path) -> Vec<(String, u64, u64)> {
    let text = fs::read_to_string(dir.join("white.pgn.practice.json")).unwrap();
    let document: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(document["version"], 1);
    let cards = document["cards"].as_array().unwrap().iter();
    let mut results: Vec<_> = cards
        .map(|card| {
            let number = |name: &str| card[name].as_u64().unwrap();
            (
                card["move"].as_str().unwrap().to_owned(),
                number("answers"),
                number("wrong"),
            )
        })
        .collect();
    results.sort();
    results
}

#[test]
fn answers_are_kept_when_the_input_ends() {
    let dir = temp();
    let dir = dir.path();
    write(dir, "white.pgn", "1. e4 e5 2. Nf3 Nc6 3. Bb5 *\n");
    let text = practised(dir, "", "e4\ng1f3\n");
    for part in [
        "3 positions: 0 due, 3 new\n",
        "\nthe start (new)\nrnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1\nyour move: e4\nright; asked again in 3 days\n",
        "\n1. e4 e5 2. Nf3 Nc6 (new)\n",
        "2 answers, 2 right; 0 due and 1 new positions are left\n",
    ] {
        assert!(text.contains(part), "{text}");
    }
    let e4 = ("e2e4".to_owned(), 1, 0);
    assert_eq!(results(dir), [e4.clone(), ("g1f3".to_owned(), 1, 0)]);
    // The rest of the line is asked the next time, twice, because the first answer is wrong.
    let text = practised(dir, "", "Nonsense\nBb4\nBc4\n?\nBb5\n");
    for part in [
        "3 positions: 0 due, 1 new\n",
        "Nonsense: ",
        "Bb4: ",
        "answer with a move such as Nf3 or g1f3, ? to see the move, or quit\n",
        "wrong: the repertoire has Bb5; asked again today\n",
        "right; asked again in 1 day\n",
        "3 answers, 1 right; nothing is left for today\n",
    ] {
        assert!(text.contains(part), "{text}");
    }
    assert_eq!(
        results(dir),
        [e4, ("f1b5".to_owned(), 3, 2), ("g1f3".to_owned(), 1, 0)]
    );
    let text = practised(dir, "", "");
    assert_eq!(
        text,
        "3 positions: 0 due, 0 new\n0 answers, 0 right; nothing is left for today\n"
    );
}

/// The results that another program has recorded: those of one move in another position.
pub const OTHER_RESULTS: &[u8] = br#"{"format":"polybook practice","version":1,"cards":[{"position":"x","move":"d2d4","stability":3.0,"difficulty":5.0,"last":"2026-03-01","due":"2026-03-04","answers":1,"wrong":0}]}"#;

#[test]
fn an_answer_waits_until_another_program_has_recorded_its_own() {
    let dir = temp();
    let dir = dir.path();
    write(dir, "white.pgn", "1. e4 *\n");
    let recording = || AtomicFile::create(dir.join("white.pgn.practice.json")).unwrap();
    let line = "repertoire practise white.pgn --color white --plain";
    let other = recording();
    let output = fed(dir, line, b"e4\n");
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success());
    assert!(
        error.contains("another program is writing this file: try again when it has ended"),
        "{error}"
    );
    drop(other);
    let mut other = recording();
    let mut session = polybook_in(dir)
        .args(line.split(' '))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    session.stdin.take().unwrap().write_all(b"e4\n").unwrap();
    let mut output = BufReader::new(session.stdout.take().unwrap());
    let mut text = String::new();
    while !text.ends_with("your move: e4\n") {
        assert!(output.read_line(&mut text).unwrap() > 0, "{text}");
    }
    other.write_all(OTHER_RESULTS).unwrap();
    other.commit().unwrap();
    output.read_to_string(&mut text).unwrap();
    assert!(session.wait().unwrap().success(), "{text}");
    assert!(text.contains("1 answer, 1 right"), "{text}");
    let both = ["d2d4", "e2e4"].map(|mv| (mv.to_owned(), 1, 0));
    assert_eq!(results(dir), both);
}

#[test]
fn a_session_has_limits() {
    let dir = temp();
    let dir = dir.path();
    write(dir, "white.pgn", "1. e4 e5 2. Nf3 Nc6 3. Bb5 *\n");
    let text = practised(dir, "--new 1", "e4\nNf3\n");
    assert!(
        text.ends_with("1 answer, 1 right; 0 due and 2 new positions are left\n"),
        "{text}"
    );
    let text = practised(dir, "--limit 1", "Nf3\nBb5\n");
    assert!(
        text.ends_with("1 answer, 1 right; 0 due and 1 new positions are left\n"),
        "{text}"
    );
    let text = practised(dir, "--new 0", "Bb5\n");
    assert!(
        text.ends_with("0 answers, 0 right; 0 due and 1 new positions are left\n"),
        "{text}"
    );
    for command in ["quit", "q", "exit"] {
        let text = practised(dir, "", command);
        assert!(
            text.ends_with(&format!(
                "your move: {command}\n0 answers, 0 right; 0 due and 1 new positions are left\n"
            )),
            "{text}"
        );
    }
}

#[test]
fn books_and_databases_are_practised_with_replies_of_another_source() {
    let dir = temp();
    let dir = dir.path();
    write(
        dir,
        "games.pgn",
        &"1. e4 e5 2. Nf3 1-0\n\n1. e4 c5 2. Nf3 1-0\n\n".repeat(5),
    );
    ok(
        dir,
        "make-book -q games.pgn --only-white --min-game 1 --bin white.bin",
    );
    ok(
        dir,
        "make-book -q games.pgn --min-game 1 --obs white.obs.db3",
    );
    write(dir, "replies.pgn", &"1. e4 c5 *\n\n".repeat(9));
    ok(dir, "make-book -q replies.pgn --explorer replies.idx");
    for repertoire in ["white.bin", "white.obs.db3"] {
        for against in ["replies.pgn", "replies.idx"] {
            let _ = fs::remove_file(dir.join(format!("{repertoire}.practice.json")));
            let line =
                format!("repertoire practice {repertoire} --colour White --against {against} -q");
            let output = fed(dir, &*line, b"e4\nNf3\nNf3\n");
            let text = String::from_utf8(output.stdout).unwrap();
            assert!(output.status.success(), "{text}");
            assert!(
                text.contains("3 answers, 3 right; nothing is left for today"),
                "{text}"
            );
            // No game of the source has 1... e5, so 1... c5 comes first.
            let [sicilian, open] =
                ["\n1. e4 c5 (new)\n", "\n1. e4 e5 (new)\n"].map(|line| text.find(line).unwrap());
            assert!(sicilian < open, "{text}");
            assert!(text.contains("\n8 ♜ ♞ ♝ ♛ ♚ ♝ ♞ ♜\n"), "{text}");
        }
    }
}

#[test]
fn input_that_no_person_types_is_no_move() {
    let dir = temp();
    let dir = dir.path();
    write(dir, "white.pgn", "1. e4 *\n");
    let mut input = vec![b'x'; 5000];
    input.extend_from_slice(b"\n\xff\xfe\n\x1b[2J\n\ne4\n");
    let output = fed(dir, "repertoire practise white.pgn --color white", &input);
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(
        output.status.success() && !text.contains('\u{1b}'),
        "{text}"
    );
    assert!(text.contains("1 answer, 1 right"), "{text}");
}

#[test]
fn what_cannot_be_practised_is_refused() {
    let dir = temp();
    let dir = dir.path();
    write(dir, "white.pgn", "1. e4 *\n");
    write(dir, "foreign.pgn", "1. e4 *\n");
    write(dir, "foreign.pgn.practice.json", "{}");
    write(dir, "new.pgn", "1. e4 *\n");
    write(
        dir,
        "new.pgn.practice.json",
        "{\"format\":\"polybook practice\",\"version\":2}",
    );
    fs::create_dir(dir.join("taken.pgn.practice.json")).unwrap();
    write(dir, "taken.pgn", "1. e4 *\n");
    let practise = |rest: &str| format!("repertoire practise {rest}");
    let lines = [
        (practise("white.pgn --color black"), 1, "no move for black"),
        (practise("white.pgn"), 2, "--color"),
        (
            practise("- --color white"),
            2,
            "save the repertoire as a file",
        ),
        (
            practise("white.pgn --color white --against -"),
            2,
            "give a file with --against",
        ),
        (
            practise("foreign.pgn --color white"),
            1,
            "foreign.pgn.practice.json: this file does not contain results of practice",
        ),
        (
            practise("new.pgn --color white"),
            1,
            "another version of polybook",
        ),
        (practise("taken.pgn --color white"), 1, "not a file"),
        (practise("none.pgn --color white"), 1, "none.pgn"),
        (practise("white.pgn --color white --limit 0"), 2, "--limit"),
    ];
    let lines = lines
        .each_ref()
        .map(|(line, status, says)| (&**line, *status, *says));
    refused(dir, &lines);
    assert!(!dir.join("white.pgn.practice.json").exists());
}

#[test]
fn the_advice_about_files_of_results_works() {
    let dir = temp();
    let dir = dir.path();
    write(dir, "white.pgn", "1. e4 *\n");
    write(dir, "white.pgn.practice.json", "not JSON");
    let error = fails(dir, "repertoire practise white.pgn --color white", 1);
    assert!(error.contains("rename it to begin anew"), "{error}");
    fs::rename(dir.join("white.pgn.practice.json"), dir.join("old.json")).unwrap();
    practised(dir, "", "e4\n");
    let error = fails(dir, "repertoire practise white.pgn --color black", 1);
    assert!(
        error.contains("give the other side with --color"),
        "{error}"
    );
}

#[test]
fn cards_are_a_table_for_anki() {
    let dir = temp();
    let dir = dir.path();
    write(
        dir,
        "black.pgn",
        "1. e4 {best by test} c5 {=1+1} 2. Nf3 d6 (2... Nc6 {<b>}) *\n",
    );
    let table = ok(dir, "repertoire cards black.pgn --color black");
    let lines: Vec<&str> = table.lines().collect();
    assert_eq!(
        lines[..3],
        ["#separator:Comma", "#html:true", "#columns:Front,Back"]
    );
    assert_eq!(lines.len(), 5);
    assert!(
        lines[3].starts_with("<pre>1 ♖ ♘ ♗ ♔") && lines[3].ends_with("</pre>1. e4 ?,c5<br>=1+1"),
        "{table}"
    );
    assert!(
        lines[4].ends_with("</pre>1. e4 c5 2. Nf3 ?,d6<br>Nc6<br>&lt;b&gt;"),
        "{table}"
    );
    let output = run(
        dir,
        "repertoire cards black.pgn --color black --out black.csv",
    );
    assert_eq!(
        String::from_utf8_lossy(&output.stderr),
        "black.csv: 2 cards\n"
    );
    assert_eq!(fs::read_to_string(dir.join("black.csv")).unwrap(), table);
    refused(
        dir,
        &[
            (
                "repertoire cards black.pgn --color black --out black.csv",
                1,
                "black.csv",
            ),
            (
                "repertoire cards black.pgn --color black --out black.pgn",
                1,
                "black.pgn",
            ),
        ],
    );
    ok(
        dir,
        "repertoire cards black.pgn --color black --out black.csv --force",
    );
}
