//! Weights that `--minimax` lowers because of the results after each move.

use std::{collections::BTreeMap, fs, path::Path};

use serde_json::json;

use crate::common::{corpus, ok, ok_json, python, records, refused, run_python, sample, temp};

/// Returns games of one line each, with the given numbers of White wins, draws and Black wins.
fn games(lines: &[(&str, [usize; 3])]) -> String {
    let mut text = String::new();
    for (moves, counts) in lines {
        for (count, result) in counts.iter().zip(["1-0", "1/2-1/2", "0-1"]) {
            text += &format!("[Result \"{result}\"]\n\n{moves} {result}\n\n").repeat(*count);
        }
    }
    text
}

/// Returns the moves of a position in a book with their weights.
fn shown(dir: &Path, book: &str, line: &str) -> BTreeMap<String, u64> {
    let shown = ok_json(dir, &["show", book, "--json", "--moves", line][..]);
    let moves = shown["moves"].as_array().unwrap().iter();
    moves
        .map(|mv| {
            (
                mv["san"].as_str().unwrap().to_owned(),
                mv["weight"].as_u64().unwrap(),
            )
        })
        .collect()
}

fn weights<const N: usize>(moves: [(&str, u64); N]) -> BTreeMap<String, u64> {
    moves.map(|(mv, weight)| (mv.to_owned(), weight)).into()
}

#[test]
fn a_popular_mistake_is_not_played() {
    let dir = temp();
    let dir = dir.path();
    // 1. e4 scores 60 % in 1,000 games, but after 1... c5 Black scores at least 72 %. 1. d4 scores at least 49.4 %, and
    // 1. c4 is 5.4 points worse. 1. Nh3 won five games, so it scores at least 43 %.
    let lines = [
        ("1. e4 e5", [560, 0, 240]),
        ("1. e4 c5", [40, 0, 160]),
        ("1. d4 d5", [200, 100, 200]),
        ("1. d4 Nf6", [130, 0, 70]),
        ("1. c4 c5", [440, 0, 560]),
        ("1. Nh3 e5", [5, 0, 0]),
        // These games are too few to matter.
        ("1. a3 e5", [2, 0, 0]),
    ];
    fs::write(dir.join("games.pgn"), games(&lines)).unwrap();
    ok(dir, "make-book -q games.pgn --min-game 5 --bin plain.bin");
    assert_eq!(
        shown(dir, "plain.bin", ""),
        weights([("Nh3", 10), ("c4", 880), ("d4", 760), ("e4", 1200)])
    );
    let report = ok_json(
        dir,
        "make-book games.pgn --min-game 5 --bin book.bin --minimax --json",
    );
    assert_eq!(
        report["book"]["minimax"],
        json!({"lowered": 2, "left_out": 2, "unreached": 0, "first_percent": 41})
    );
    // 1. c4 keeps 46 % of its weight. 1... Nf6 is 9.3 points worse than the best move, and keeps 7 %.
    assert_eq!(
        shown(dir, "book.bin", ""),
        weights([("Nh3", 10), ("c4", 403), ("d4", 760)])
    );
    assert_eq!(
        shown(dir, "book.bin", "1. d4"),
        weights([("Nf6", 10), ("d5", 500)])
    );
    assert_eq!(shown(dir, "book.bin", "1. e4"), weights([("c5", 320)]));
    let book = fs::read(dir.join("book.bin")).unwrap();
    // The header contains eight bytes of text after each key.
    let header: Vec<u8> = book
        .chunks(16)
        .flat_map(|record| record[8..].to_vec())
        .collect();
    assert!(String::from_utf8_lossy(&header).contains("--minimax=10"));
    // Moves that are worse than this are dropped from the book.
    ok(
        dir,
        "make-book -q games.pgn --min-game 5 --bin best.bin --minimax=1",
    );
    assert_eq!(
        shown(dir, "best.bin", ""),
        weights([("Nh3", 10), ("d4", 760)])
    );

    ok(
        dir,
        "make-book -q games.pgn --min-game 1 --obs games.obs.db3",
    );
    ok(
        dir,
        "convert -q games.obs.db3 converted.bin --min-game 5 --minimax",
    );
    assert_eq!(
        records(&dir.join("converted.bin")),
        records(&dir.join("book.bin"))
    );
    refused(
        dir,
        &[
            (
                "convert games.obs.db3 s.pgn --minimax",
                2,
                "--minimax applies only",
            ),
            (
                "make-book games.pgn --suite s.pgn --minimax",
                2,
                "--minimax applies only",
            ),
            ("make-book games.pgn --bin x.bin --minimax=0", 2, "0"),
            (
                "make-book games.pgn --bin x.bin --minimax 5",
                2,
                "did you mean --minimax=5?",
            ),
        ],
    );
}

/// Compares the weights with those of a small Python program that uses python-chess.
#[test]
fn values_are_those_of_another_program() {
    let Some(python) = python(&["chess.polyglot"]) else {
        return;
    };
    let dir = temp();
    let dir = dir.path();
    // Knights move in circles and lines transpose, from the usual position and another one.
    let lines = [
        (
            "1. Nf3 Nf6 2. Ng1 Ng8 3. Nf3 Nf6 4. Ng1 Ng8 5. e4 e5",
            [2, 1, 4],
        ),
        (
            "1. Nf3 Nf6 2. Nc3 Nc6 3. Ng1 Ng8 4. Nb1 Nb8 5. e4 c5",
            [5, 0, 2],
        ),
        ("1. e4 c5 2. Nf3 d6", [3, 3, 1]),
        ("1. Nf3 c5 2. e4 d6 3. d4", [1, 3, 6]),
        ("1. Nf3 Nf6 2. Ng1 Nh5 3. Nf3 Nf6 4. d4", [3, 1, 1]),
    ];
    let fen = "[FEN \"8/8/8/4k3/8/4K3/4P3/8 w - - 0 1\"]\n[SetUp \"1\"]\n[Result \"1-0\"]\n\n1. Kd3 Kd5 2. e4+ Ke5 1-0\n\n";
    let circles =
        games(&lines) + &fen.repeat(4) + &fen.replace("1-0", "0-1").repeat(2).replace("Kd5", "Kf4");
    fs::write(dir.join("circles.pgn"), circles.repeat(20)).unwrap();
    let check = |games: &Path, percent: &str, least: &str| {
        let line = format!(
            "make-book {} --min-game {least} --minimax={percent} --bin book.bin --json",
            games.display()
        );
        let report = ok_json(dir, &*line);
        assert_eq!(report["book"]["minimax"]["unreached"], 0);
        let book = dir.join("book.bin");
        let (percent, least) = (Path::new(percent), Path::new(least));
        run_python(&python, "minimax.py", &[&book, percent, least, games]);
        let bytes = fs::read(&book).unwrap();
        ok(dir, &*format!("{line} --threads 1 --memory 1MiB"));
        assert!(fs::read(&book).unwrap() == bytes);
    };
    check(&dir.join("circles.pgn"), "10", "2");
    check(&dir.join("circles.pgn"), "100", "1");
    check(&sample("selfplay.pgn"), "20", "3");
}

/// The report about a book ignores moves that the book does not contain.
#[test]
fn only_moves_of_the_book_are_reported() {
    let dir = temp();
    let dir = dir.path();
    // Black's second move was played often enough, but is reached only by moves that were not.
    let lines = [
        ("1. Nf3 d5 2. d4 e6", [1, 0, 1]),
        ("1. d4 d5 2. Nf3 e6", [1, 0, 1]),
        ("1. e4", [3, 0, 0]),
    ];
    fs::write(dir.join("games.pgn"), games(&lines)).unwrap();
    for (options, expected) in [
        ("", [100, 1]),
        ("--min-score 90", [100, 0]),
        ("--only-black", [100, 1]),
        ("--only-white", [100, 0]),
    ] {
        let line = format!("make-book -q games.pgn --min-game 3 --minimax {options} --json --bin");
        let report = ok_json(dir, &format!("{line} book{}.bin", options.len()));
        let minimax = &report["book"]["minimax"];
        let found = [&minimax["first_percent"], &minimax["unreached"]];
        assert_eq!(
            found,
            [&json!(expected[0]), &json!(expected[1])],
            "{options}"
        );
    }
}

/// Tests a large book with a small memory budget.
#[test]
fn memory_is_bounded() {
    let Some(corpus) = corpus() else {
        return;
    };
    let dir = temp();
    let games = corpus.join("masters.pgn").display().to_string();
    let line = format!("make-book {games} --bin book.bin --minimax");
    refused(
        dir.path(),
        &[(
            &format!("{line} --min-game 1 --memory 16MiB"),
            1,
            "use a larger --memory",
        )],
    );
    // Rare moves do not displace frequent ones.
    for options in ["", " --min-game 20"] {
        ok(dir.path(), &*format!("{line}{options}"));
        let first = shown(dir.path(), "book.bin", "");
        let mut most: Vec<&str> = first.keys().map(String::as_str).collect();
        most.sort_by_key(|mv| std::cmp::Reverse(first[*mv]));
        most.truncate(4);
        most.sort_unstable();
        assert_eq!(most, ["Nf3", "c4", "d4", "e4"], "{first:?}");
    }
    let report = ok_json(dir.path(), &*format!("{line} --min-game 20 --json"));
    let minimax = &report["book"]["minimax"];
    assert!(minimax["lowered"].as_u64() > Some(200), "{minimax}");
    assert!(minimax["left_out"].as_u64() > Some(20), "{minimax}");
}
