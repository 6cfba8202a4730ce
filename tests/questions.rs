//! `polybook key` and `polybook show` as a user runs them.

mod common;

use common::{fails, ok, ok_json, sample, temp};

#[test]
fn keys() {
    let dir = temp();
    assert_eq!(ok(dir.path(), "key"), "463b96181691fc9c\n");
    let after = |moves: &str| {
        let output = common::polybook_in(dir.path())
            .args(["key", "--moves", moves])
            .output()
            .unwrap();
        String::from_utf8(output.stdout).unwrap()
    };
    assert_eq!(after("1. e4 d5 2. e5 f5"), "22a48b5a8e47ff78\n");
    assert_eq!(
        after("a2a4 b7b5 h2h4 b5b4 c2c4 b4c3 a1a3"),
        "5c3f9b829b279560\n"
    );
    let fen = "rnbqkbnr/ppp1p1pp/8/3pPp2/8/8/PPPP1PPP/RNBQKBNR w KQkq f6 0 3";
    for arguments in [vec!["key", "--fen", fen], vec!["key", fen]] {
        let output = common::polybook_in(dir.path())
            .args(arguments)
            .output()
            .unwrap();
        assert_eq!(output.stdout, b"22a48b5a8e47ff78\n");
    }
    let error = fails(dir.path(), "key --moves Ke2", 1);
    assert!(error.contains("Ke2"), "{error}");
    fails(dir.path(), "key --fen 8/8", 1);
}

#[test]
fn what_a_book_plays() {
    let dir = temp();
    let famous = sample("famous.pgn");
    ok(
        dir.path(),
        &format!("make-book -q --min-game 1 {}", famous.display()),
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

    let castling = [
        "show",
        "--json",
        "book.bin",
        "--moves",
        "e4 e5 Nf3 Nc6 Bb5 a6 Ba4 Nf6",
    ];
    let output = common::polybook_in(dir.path())
        .args(castling)
        .output()
        .unwrap();
    let found: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(found["moves"][0]["uci"], "e1g1");
    assert_eq!(found["moves"][0]["san"], "O-O");

    let nothing = ok_json(dir.path(), "show book.bin --json --moves a3");
    assert_eq!(nothing["moves"], serde_json::json!([]));
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
    let expected = serde_json::json!({"uci": "a1a2", "san": null, "weight": 1, "probability": 100.0, "learn": 9});
    assert_eq!(found["moves"][0], expected);
}

#[test]
fn what_is_no_book() {
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

#[test]
fn help_shows_examples() {
    let dir = temp();
    for command in ["", "make-book", "show", "key"] {
        let help = ok(dir.path(), &format!("{command} --help"));
        assert!(help.contains("Examples:"), "{command}");
    }
}
