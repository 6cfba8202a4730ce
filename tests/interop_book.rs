//! Compares books with those of other programs: Debian's polyglot and python-chess.
//!
//! The tests use the sample games, and `masters.pgn` in the directory `POLYBOOK_CORPUS` if it is set.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use crate::common::{corpus, ok, program, python, records, run_python, sample, temp};

/// Returns the games to compare: the samples, and the first 15,000 games of the big corpus. (With more games, polyglot
/// halves the counts of the first positions.)
fn corpora(dir: &Path) -> Vec<PathBuf> {
    let mut games = vec![sample("famous.pgn"), sample("selfplay.pgn")];
    if let Some(corpus) = corpus() {
        let text = fs::read(corpus.join("masters.pgn")).unwrap();
        let end = memchr::memmem::find_iter(&text, b"[Event ")
            .nth(15_000)
            .unwrap();
        let path = dir.join("masters15000.pgn");
        fs::write(&path, &text[..end]).unwrap();
        games.push(path);
    }
    games
}

#[test]
fn records_equal_those_of_polyglot() {
    let Some(polyglot) = program(&["polyglot"]) else {
        return;
    };
    let dir = temp();
    for pgn in corpora(dir.path()) {
        let pgn = pgn.display();
        for options in [
            "",
            "-min-game 1",
            "-max-ply 30",
            "-min-score 60",
            "-only-white",
            "-only-black",
            "-uniform",
            "-min-game 2 -max-ply 41 -min-score 33.3 -only-black",
        ] {
            let theirs = Command::new(&polyglot)
                .current_dir(dir.path())
                .args(format!("make-book -pgn {pgn} -bin theirs.bin {options}").split_whitespace())
                .output()
                .unwrap();
            assert!(theirs.status.success());
            ok(
                dir.path(),
                &format!("make-book -q -pgn {pgn} -bin ours.bin {options}"),
            );
            let mut theirs = records(&dir.path().join("theirs.bin"));
            let mut ours = records(&dir.path().join("ours.bin"));
            // In polyglot's books, records with the same key and weight come in any order.
            theirs.sort_unstable();
            ours.sort_unstable();
            assert!(!ours.is_empty());
            assert!(ours == theirs, "{pgn} {options}");
        }
    }
}

#[test]
fn polyglot_reads_our_books() {
    let Some(polyglot) = program(&["polyglot"]) else {
        return;
    };
    let dir = temp();
    let pgn = sample("famous.pgn");
    ok(
        dir.path(),
        &format!(
            "make-book -q --min-game 1 --bin headed.bin {}",
            pgn.display()
        ),
    );
    ok(
        dir.path(),
        &format!(
            "make-book -q --min-game 1 --no-header --bin bare.bin {}",
            pgn.display()
        ),
    );
    let theirs = |line: &str| {
        let output = Command::new(&polyglot)
            .current_dir(dir.path())
            .args(line.split_whitespace())
            .output()
            .unwrap();
        assert!(output.status.success());
        String::from_utf8(output.stdout).unwrap()
    };
    assert_eq!(
        theirs("info-book -bin headed.bin"),
        theirs("info-book -bin bare.bin")
    );
    theirs("dump-book -bin headed.bin -color white -out headed.txt");
    theirs("dump-book -bin bare.bin -color white -out bare.txt");
    let lines = |name: &str| {
        let text = fs::read_to_string(dir.path().join(name)).unwrap();
        text.lines().skip(1).map(str::to_owned).collect::<Vec<_>>()
    };
    assert!(lines("headed.txt").len() > 10);
    assert_eq!(lines("headed.txt"), lines("bare.txt"));
}

#[test]
fn python_chess_finds_every_position_and_move() {
    let Some(python) = python(&["chess"]) else {
        return;
    };
    let dir = temp();
    for pgn in ["famous.pgn", "selfplay.pgn"] {
        let (pgn, bin) = (sample(pgn), dir.path().join("book.bin"));
        let factors = "--win-factor 1 --draw-factor 1 --loss-factor 1";
        ok(
            dir.path(),
            &format!("make-book -q --min-game 1 {factors} {}", pgn.display()),
        );
        run_python(&python, "book_of_games.py", &[&pgn, &bin]);
    }
}

#[test]
fn python_chess_agrees_on_a_thousand_master_games() {
    let Some(corpus) = corpus() else {
        return;
    };
    let Some(python) = python(&["chess"]) else {
        return;
    };
    let dir = temp();
    let text = fs::read(corpus.join("masters.pgn")).unwrap();
    let end = memchr::memmem::find_iter(&text, b"[Event ")
        .nth(1_000)
        .unwrap();
    let pgn = dir.path().join("masters1000.pgn");
    fs::write(&pgn, &text[..end]).unwrap();
    let factors = "--win-factor 1 --draw-factor 1 --loss-factor 1";
    ok(
        dir.path(),
        &format!("make-book -q --min-game 1 {factors} {}", pgn.display()),
    );
    run_python(
        &python,
        "book_of_games.py",
        &[&pgn, &dir.path().join("book.bin")],
    );
}

#[test]
fn the_master_games_are_counted_to_the_last() {
    let Some(corpus) = corpus() else {
        return;
    };
    let dir = temp();
    let pgn = corpus.join("masters.pgn");
    let report = crate::common::ok_json(
        dir.path(),
        &format!("make-book -q --json --min-game 1 {}", pgn.display()),
    );
    assert_eq!(report["games"]["read"], 67_281);
    assert_eq!(report["games"]["rejected"], 0);
    assert_eq!(report["plies"], 5_835_208);
    assert_eq!(report["entries"], 4_289_417);
}

#[test]
fn od_shows_the_header() {
    let Some(_od) = program(&["od"]) else {
        return;
    };
    let dir = temp();
    let pgn = sample("famous.pgn");
    ok(
        dir.path(),
        &format!("make-book -q --comment Hello! {}", pgn.display()),
    );
    let output = Command::new("od")
        .current_dir(dir.path())
        .args(["-w16", "-a", "-N", "80", "book.bin"])
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let header: String = text
        .lines()
        .flat_map(|line| line.split_whitespace().skip(9))
        .collect::<Vec<_>>()
        .concat();
    assert!(
        header.starts_with("@PG@nl1.0nl2nl1nlnormalnlHello!nul"),
        "{header}"
    );
}
