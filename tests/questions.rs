//! `polybook key` and `polybook show` on the command line.

use crate::common::{fails, ok, ok_json, sample, temp};

#[test]
fn key_prints_the_polyglot_key() {
    let dir = temp();
    let dir = dir.path();
    assert_eq!(ok(dir, "key"), "463b96181691fc9c\n");
    let after = |moves: &str| ok(dir, &["key", "--moves", moves]);
    assert_eq!(after("1. e4 d5 2. e5 f5"), "22a48b5a8e47ff78\n");
    assert_eq!(
        after("a2a4 b7b5 h2h4 b5b4 c2c4 b4c3 a1a3"),
        "5c3f9b829b279560\n"
    );
    let fen = "rnbqkbnr/ppp1p1pp/8/3pPp2/8/8/PPPP1PPP/RNBQKBNR w KQkq f6 0 3";
    assert_eq!(ok(dir, &["key", "--fen", fen]), "22a48b5a8e47ff78\n");
    assert_eq!(ok(dir, &["key", fen]), "22a48b5a8e47ff78\n");
    // A line of an EPD file, which may also be a suite.
    let epd = "rnbqkbnr/ppp1p1pp/8/3pPp2/8/8/PPPP1PPP/RNBQKBNR w KQkq f6 hmvc 0; fmvn 3; c0 \"1 time/2\";";
    assert_eq!(ok(dir, &["key", "--fen", epd]), "22a48b5a8e47ff78\n");
    assert_eq!(ok(dir, &["key", epd]), "22a48b5a8e47ff78\n");
    assert_eq!(
        ok(dir, &["key", "--fen", epd, "--moves", "exf6 e5"]),
        ok(dir, &["key", "--moves", "e4 d5 e5 f5 exf6 e5"])
    );
    for rest in ["e4", "0 3 moves exf6", "hmvc 0"] {
        let given = format!("rnbqkbnr/ppp1p1pp/8/3pPp2/8/8/PPPP1PPP/RNBQKBNR w KQkq f6 {rest}");
        let error = fails(dir, &["key", &given], 1);
        assert!(error.contains("follows the position"), "{error}");
    }
    let error = fails(dir, "key --moves Ke2", 1);
    assert!(error.contains("Ke2"), "{error}");
    fails(dir, "key --fen 8/8", 1);
}

#[test]
fn show_prints_the_moves_of_a_book() {
    let dir = temp();
    let famous = sample("famous.pgn");
    ok(
        dir.path(),
        args!["make-book", "-q", "--min-game", "1", famous],
    );
    let table = ok(dir.path(), "show book.bin");
    assert!(table.contains("e2e4"), "{table}");
    let found = ok_json(dir.path(), "show book.bin --json");
    assert_eq!(found["key"], "463b96181691fc9c");
    assert_eq!(
        found["fen"],
        "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1"
    );
    let moves = found["moves"].as_array().unwrap();
    assert_eq!(
        (&moves[0]["uci"], &moves[0]["san"]),
        (&"e2e4".into(), &"e4".into())
    );
    let sum: f64 = moves
        .iter()
        .map(|mv| mv["probability"].as_f64().unwrap())
        .sum();
    assert!((sum - 100.0).abs() < 1e-6);
    let weights: Vec<u64> = moves
        .iter()
        .map(|mv| mv["weight"].as_u64().unwrap())
        .collect();
    assert!(weights.is_sorted_by(|a, b| a >= b));

    let line = "e4 e5 Nf3 Nc6 Bb5 a6 Ba4 Nf6";
    let found = ok_json(dir.path(), &["show", "--json", "book.bin", "--moves", line]);
    assert_eq!(found["moves"][0]["uci"], "e1g1");
    assert_eq!(found["moves"][0]["san"], "O-O");

    let nothing = ok_json(dir.path(), "show book.bin --json --moves a3");
    assert_eq!(nothing["moves"], serde_json::json!([]));
}

#[test]
fn an_empty_file_is_called_one() {
    let dir = temp();
    std::fs::write(dir.path().join("empty.bin"), []).unwrap();
    assert_eq!(ok(dir.path(), "show empty.bin"), "The file is empty.\n");
    let said = crate::common::run(dir.path(), "verify empty.bin").stderr;
    assert_eq!(
        said,
        b"empty.bin: the file is empty, so it is a book without moves\n"
    );
    std::fs::write(dir.path().join("empty.epd"), []).unwrap();
    let error = fails(dir.path(), "verify empty.epd", 1);
    assert_eq!(
        error,
        "polybook: empty.epd: the file is empty, so it is not a suite\n"
    );
}

#[test]
fn a_move_that_is_not_legal_has_no_san() {
    let dir = temp();
    let start = polybook::position::key(&shakmaty::Chess::default());
    let entry = polybook::book::Entry {
        key: start,
        mv: polybook::position::BookMove(8),
        weight: 1,
        learn: 9,
    };
    std::fs::write(dir.path().join("odd.bin"), entry.to_bytes()).unwrap();
    let found = ok_json(dir.path(), "show --json odd.bin");
    let expected = serde_json::json!({"uci": "a1a2", "san": null, "weight": 1, "probability": null, "learn": 9});
    assert_eq!(found["moves"][0], expected);
    let table = ok(dir.path(), "show odd.bin");
    let row: Vec<&str> = table.lines().nth(1).unwrap().split_whitespace().collect();
    assert_eq!(row, ["illegal", "a1a2", "1", "-", "9"]);
}

#[test]
fn show_names_a_file_that_is_no_book() {
    let dir = temp();
    std::fs::write(dir.path().join("x.bin"), "not a book").unwrap();
    let error = fails(dir.path(), "show x.bin", 1);
    assert!(
        error.contains("x.bin") && error.contains("multiple of 16"),
        "{error}"
    );
    let error = fails(dir.path(), "show missing.bin", 1);
    assert!(error.contains("missing.bin"), "{error}");
}

/// In Chess960, a rook other than the outermost one of its side may castle. A key does not say which rook, so books
/// leave such positions out, and databases contain them.
#[test]
fn show_takes_a_book_and_a_position_without_quotes() {
    let dir = temp();
    let dir = dir.path();
    let games = sample("famous.pgn");
    ok(dir, args!["make-book", "-q", "--min-game", "1", &games]);
    ok(dir, args!["make-book", "-q", &games, "--explorer", "x.idx"]);
    // Moves need no quotes.
    let quoted = ok(dir, &["show", "book.bin", "e4 e5"]);
    assert_eq!(ok(dir, "show book.bin e4 e5"), quoted);
    assert_eq!(ok(dir, "show book.bin 1. e4 e5"), quoted);
    // The records are unsorted, and some bytes are not moves.
    let book = std::fs::read(dir.join("book.bin")).unwrap();
    let mut records: Vec<[u8; 16]> = book.as_chunks().0.to_vec();
    records.retain(|record| record[..8] != [0; 8]);
    records.reverse();
    std::fs::write(dir.join("unsorted.bin"), records.as_flattened()).unwrap();
    let error = fails(dir, "show unsorted.bin", 1);
    assert!(
        error.contains("unsorted.bin") && error.contains("polybook verify"),
        "{error}"
    );
    std::fs::write(dir.join("other.bin"), [0xff; 160]).unwrap();
    let error = fails(dir, "show other.bin", 1);
    assert!(
        error.contains("other.bin: this is not a Polyglot book"),
        "{error}"
    );
    assert!(ok(dir, "show x.idx").starts_with("move "));
    let board = "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR";
    // White is to move, and kings and rooks at home may castle.
    let whole = ok(dir, "show book.bin");
    for fen in [board.to_owned(), format!("{board} w")] {
        assert_eq!(ok(dir, &["show", "book.bin", "--fen", &fen]), whole);
    }
}

#[test]
fn positions_without_a_key() {
    let dir = temp();
    let dir = dir.path();
    let fen = "rk3r1r/pppppppp/8/8/8/8/PPPPPPPP/RK3R1R w Ff - 0 1";
    std::fs::write(
        dir.join("inner.pgn"),
        format!(
            "[Variant \"Chess960\"]\n[SetUp \"1\"]\n[FEN \"{fen}\"]\n[Result \"1-0\"]\n\n1. a4 a5 1-0\n"
        ),
    )
    .unwrap();
    ok(
        dir,
        "make-book -q --variant chess960 --min-game 1 inner.pgn --obs b.obs.db3",
    );
    let famous = sample("famous.pgn");
    ok(dir, args!["make-book", "-q", famous, "--bin", "b.bin"]);
    ok(dir, "pgheader b.bin -v fischerandom");
    let question = ["--variant", "chess960", "--fen", fen];
    for asked in [vec!["key"], vec!["show", "b.bin"]] {
        let error = fails(dir, &[&asked[..], &question].concat(), 1);
        assert!(error.contains("has no Polyglot key"), "{error}");
    }
    let found = ok_json(
        dir,
        &[&["show", "--json", "b.obs.db3"][..], &question].concat(),
    );
    assert_eq!(found["key"], serde_json::Value::Null);
    assert_eq!(found["moves"][0]["uci"], "a2a4");
    assert_eq!(found["moves"][0]["wins"], 1);
}

#[test]
fn help_shows_examples() {
    let dir = temp();
    for command in ["", "make-book", "show", "key"] {
        let help = ok(dir.path(), &format!("{command} --help"));
        assert!(help.contains("Examples:"), "{command}");
    }
}
