//! Chess960 and other variants: keys, moves, books, indexes and databases.

use std::{fs, path::Path, process::Command, thread};

use crate::common::{fails, ok, ok_json, python, records, run, run_python, temp};
use rusqlite::Connection;

/// A position of each variant, with the key that `tests/python/polyglot_key.py` calculates from the document's table.
/// In one position of Chess960, the outermost rook on one side of the king may castle, and another rook is on the other
/// side of the king. In one position of Crazyhouse, a side has two equal pieces in hand, whose keys XOR would cancel.
/// Promoted pieces and given checks do not affect keys.
const KEYS: [(&str, &str, &str); 14] = [
    (
        "normal",
        "rnbqkbnr/ppp1p1pp/8/3pPp2/8/8/PPPP1PPP/RNBQKBNR w KQkq f6 0 3",
        "22a48b5a8e47ff78",
    ),
    (
        "fischerandom",
        "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w HAha - 0 1",
        "463b96181691fc9c",
    ),
    (
        "fischerandom",
        "bbqnnrkr/pppppppp/8/8/8/8/PPPPPPPP/BBQNNRKR w HFhf - 0 1",
        "d551843a235a6f67",
    ),
    (
        "fischerandom",
        "rk2r3/8/8/8/8/8/8/RK2R3 b Kq - 0 1",
        "91f186f1521e873a",
    ),
    (
        "fischerandom",
        "4k3/8/8/8/8/8/8/2R1K1RR w HC - 0 1",
        "85f03b7b36ef4c0c",
    ),
    (
        "crazyhouse",
        "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR[] w KQkq - 0 1",
        "463b96181691fc9a",
    ),
    (
        "crazyhouse",
        "rnb1kbnr/ppp1pppp/8/3q4/8/8/PPPP1PPP/RNBQKBNR[Pp] w KQkq - 0 3",
        "33c2e11981d3396a",
    ),
    (
        "crazyhouse",
        "4k3/8/8/8/8/8/8/4K3[QRRBNNPPPqrbbnnnp] b - - 0 1",
        "bebf1fd16231d395",
    ),
    (
        "crazyhouse",
        "4k3/8/8/8/8/8/8/Q~3K3[n] w - - 0 1",
        "74e7de742e32f8c9",
    ),
    (
        "crazyhouse",
        "4k3/8/8/3pP3/8/8/8/4K3[BB] w - d6 0 1",
        "cd61e0dfaf8f0730",
    ),
    (
        "suicide",
        "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w - - 0 1",
        "3d01bbb3c110537d",
    ),
    (
        "giveaway",
        "8/2p5/8/3Kk3/8/8/5P2/8 b - - 0 1",
        "6569d8e35b7379ea",
    ),
    (
        "atomic",
        "rnbqkb1r/pppp1ppp/5n2/4p1N1/8/8/PPPPPPPP/RNBQKB1R w KQkq - 0 3",
        "1a1ba784e9a4dca9",
    ),
    (
        "3check",
        "rnbqkbnr/ppppp2p/8/5ppQ/4P3/8/PPPP1PPP/RNB1KBNR b KQkq - 2+3 0 3",
        "cecbc8985467305a",
    ),
];

fn write(dir: &Path, name: &str, text: &str) {
    fs::write(dir.join(name), text).unwrap();
}

/// Returns the moves of a position in a book as numbers, in the order of the book.
fn book_moves(book: &Path, key: u64) -> Vec<u16> {
    let of_position = records(book)
        .into_iter()
        .filter(|record| record[..8] == key.to_be_bytes());
    of_position
        .map(|record| u16::from_be_bytes([record[8], record[9]]))
        .collect()
}

#[test]
fn keys_are_those_of_the_document() {
    let dir = temp();
    for (variant, fen, expected) in KEYS {
        let output = crate::common::polybook_in(dir.path())
            .args(["key", "--variant", variant, "--fen", fen])
            .output()
            .unwrap();
        let key = String::from_utf8(output.stdout).unwrap();
        assert_eq!(key.trim(), expected, "{variant} {fen}");
    }
}

#[test]
fn the_expected_keys_are_those_of_a_few_lines_of_python() {
    let Some(python) = python(&["pathlib"]) else {
        return;
    };
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/python/polyglot_key.py");
    for (variant, fen, expected) in KEYS {
        let output = Command::new(&python)
            .arg(&script)
            .args([variant, fen])
            .output()
            .unwrap();
        let key = String::from_utf8(output.stdout).unwrap();
        assert_eq!(key.trim(), expected, "{variant} {fen}");
    }
}

/// python-chess generates and counts 500 games of each variant. Every move in the book must be legal, and book and
/// database must contain exactly what was played.
#[test]
fn python_chess_agrees_on_500_games_of_each_variant() {
    let Some(python) = python(&["chess", "sqlite3"]) else {
        return;
    };
    let variants = [
        "normal",
        "fischerandom",
        "crazyhouse",
        "suicide",
        "giveaway",
        "atomic",
        "3check",
        "horde",
        "kingofthehill",
        "racingkings",
    ];
    let agrees = |variant: &str| {
        let dir = temp();
        let polybook = Path::new(env!("CARGO_BIN_EXE_polybook"));
        run_python(
            &python,
            "variant_games.py",
            &[polybook, Path::new(variant), dir.path()],
        );
    };
    // This test is among the last, so it uses all cores.
    thread::scope(|scope| {
        for some in variants.chunks(5) {
            scope.spawn(|| some.iter().copied().for_each(agrees));
        }
    });
}

/// Castling of all four kinds, with castling rights in X-FEN and moves in SAN.
const CASTLING: &str = "\
[Variant \"Chess960\"]
[FEN \"bnrbqkrn/pppppppp/8/8/8/8/PPPPPPPP/BNRBQKRN w KQkq - 0 1\"]
[SetUp \"1\"]
[Result \"1-0\"]

1. O-O O-O 2. b4 c5 3. c3 Rc7 4. Bb2 d6 5. d4 Nc6 6. Ba1 Nxb4 7. a4 c4 8. Qd2 h6 1-0

[Variant \"Chess 960\"]
[FEN \"bbrknnqr/pppppppp/8/8/8/8/PPPPPPPP/BBRKNNQR w KQkq - 0 1\"]
[Result \"0-1\"]

1. O-O-O O-O-O 2. h4 h5 3. f4 Rh7 4. Ng3 e6 5. Qf2 Rh6 6. Nxh5 Rg6 7. Nd3 a5 0-1

[Variant \"Fischerandom\"]
[FEN \"1rk4r/pppppppp/8/8/8/8/PPPPPPPP/1RK4R w KQkq - 0 1\"]
[Result \"1-0\"]

1. O-O O-O-O 2. a3 a6 1-0

[Variant \"fischerandom\"]
[FEN \"1rk4r/pppppppp/8/8/8/8/PPPPPPPP/1RK4R w KQkq - 0 1\"]
[Result \"1-0\"]

1. O-O-O O-O 2. a3 a6 1-0
";

/// The games of the constant above, with Shredder-FEN (the files of the rooks as castling rights) and moves in
/// coordinates. Castling is written as the king capturing its rook.
const CASTLING_BY_SQUARES: &str = "\
[Variant \"Chess960\"]
[FEN \"bnrbqkrn/pppppppp/8/8/8/8/PPPPPPPP/BNRBQKRN w GCgc - 0 1\"]
[Result \"1-0\"]

1. f1g1 f8g8 2. b2b4 c7c5 3. c2c3 c8c7 4. a1b2 d7d6 5. d2d4 b8c6 6. b2a1 c6b4 7. a2a4 c5c4 8. e1d2 h7h6 1-0

[Variant \"Chess960\"]
[FEN \"bbrknnqr/pppppppp/8/8/8/8/PPPPPPPP/BBRKNNQR w HChc - 0 1\"]
[Result \"0-1\"]

1. d1c1 d8c8 2. h2h4 h7h5 3. f2f4 h8h7 4. f1g3 e7e6 5. g1f2 h7h6 6. g3h5 h6g6 7. e1d3 a7a5 0-1

[Variant \"Chess960\"]
[FEN \"1rk4r/pppppppp/8/8/8/8/PPPPPPPP/1RK4R w HBhb - 0 1\"]
[Result \"1-0\"]

1. c1h1 c8b8 2. a2a3 a7a6 1-0

[Variant \"Chess960\"]
[FEN \"1rk4r/pppppppp/8/8/8/8/PPPPPPPP/1RK4R w HBhb - 0 1\"]
[Result \"1-0\"]

1. c1b1 c8h8 2. a2a3 a7a6 1-0
";

#[test]
fn chess960_castles_in_all_four_kinds_and_both_notations() {
    let dir = temp();
    write(dir.path(), "san.pgn", CASTLING);
    write(dir.path(), "squares.pgn", CASTLING_BY_SQUARES);
    for name in ["san", "squares"] {
        ok(
            dir.path(),
            &format!(
                "make-book -q --strict {name}.pgn --variant fischerandom --min-game 1 --loss-factor 1 --bin {name}.bin \
                 --no-header --obs {name}.obs.db3"
            ),
        );
    }
    let book = dir.path().join("san.bin");
    assert_eq!(records(&book).len(), 38);
    assert!(fs::read(&book).unwrap() == fs::read(dir.path().join("squares.bin")).unwrap());

    // Castling is encoded as the king capturing its rook: from file and to file on the rank.
    let moves: Vec<u16> = records(&book)
        .iter()
        .map(|record| u16::from_be_bytes([record[8], record[9]]))
        .collect();
    for text in [
        "f1g1", "f8g8", "d1c1", "d8c8", "c1h1", "c8b8", "c1b1", "c8h8",
    ] {
        let square = |text: &[u8]| u16::from(text[1] - b'1') * 8 + u16::from(text[0] - b'a');
        let number = square(&text.as_bytes()[..2]) << 6 | square(&text.as_bytes()[2..]);
        assert!(moves.contains(&number), "{text}");
    }
    let output = crate::common::polybook_in(dir.path())
        .args(["show", "--json", "san.obs.db3"])
        .arg("1rk4r/pppppppp/8/8/8/8/PPPPPPPP/1RK4R w KQkq - 0 1")
        .output()
        .unwrap();
    let shown: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let castling: Vec<_> = shown["moves"]
        .as_array()
        .unwrap()
        .iter()
        .map(|mv| format!("{} {}", mv["uci"], mv["san"]))
        .collect();
    assert_eq!(castling, ["\"c1b1\" \"O-O-O\"", "\"c1h1\" \"O-O\""]);
}

#[test]
fn positions_of_inner_rooks_are_left_out_of_the_book_and_counted() {
    let dir = temp();
    // Another rook moves further out than the rook that may castle, and then that rook castles.
    let game =
        "[Variant \"Chess960\"]\n[FEN \"4k3/8/8/8/8/8/7r/4KR2 w F - 0 1\"]\n[Result \"1-0\"]\n\n";
    let inner = "[Variant \"Chess960\"]\n[FEN \"4k3/8/8/8/8/8/8/4KR1R w F - 0 1\"]\n[Result \"1-0\"]\n\n1. Ke2 Ke7 1-0\n\n";
    write(
        dir.path(),
        "a.pgn",
        &format!("{inner}{game}1. Kd1 Rh1 1-0\n"),
    );
    let report = ok_json(
        dir.path(),
        "make-book -q --json a.pgn --variant fischerandom --min-game 1 --loss-factor 1 --obs a.obs.db3 --bin a.bin",
    );
    assert_eq!(report["left_out"], 1);
    assert_eq!(report["plies"], 4);
    assert_eq!(report["book"]["entries"], 3);
    // The database names the rook, so it can contain these positions.
    assert_eq!(report["obs"]["rows"], 4);
    let db = Connection::open(dir.path().join("a.obs.db3")).unwrap();
    let epd: String = db
        .query_row("SELECT EPD FROM Book WHERE Move = 'e1e2'", [], |row| {
            row.get(0)
        })
        .unwrap();
    assert_eq!(epd, "4k3/8/8/8/8/8/8/4KR1R w F -");
    let output = run(
        dir.path(),
        "make-book a.pgn --allow-empty --variant fischerandom --bin b.bin",
    );
    let summary = String::from_utf8(output.stderr).unwrap();
    assert!(
        summary.contains("the book leaves out 1 half-move, because"),
        "{summary}"
    );
    ok(
        dir.path(),
        "convert -q a.obs.db3 c.bin --min-game 1 --loss-factor 1",
    );
    assert!(records(&dir.path().join("a.bin")) == records(&dir.path().join("c.bin")));
}

#[test]
fn drops_are_written_as_xboard_does() {
    let dir = temp();
    // One of each piece in hand.
    let text = "[Variant \"Crazyhouse\"]\n[FEN \"4k3/8/8/8/8/8/8/4K3[QRBNPp] w - - 0 1\"]\n[Result \"1-0\"]\n\n";
    let games: String = ["P@e4", "@e4", "N@e4", "B@e4", "R@d4", "Q@d4"]
        .map(|drop| format!("{text}1. {drop} 1-0\n\n"))
        .concat();
    write(dir.path(), "a.pgn", &games);
    ok(
        dir.path(),
        "make-book -q --strict a.pgn --variant crazyhouse --min-game 1 --bin a.bin",
    );
    let book = dir.path().join("a.bin");
    let key = u64::from_be_bytes(records(&book)[0][..8].try_into().unwrap());
    let drop = |letter: u16, to: u16| 9 << 12 | letter << 6 | to;
    let (d4, e4) = (27, 28);
    assert_eq!(
        book_moves(&book, key),
        [
            drop(16, e4),
            drop(2, e4),
            drop(14, e4),
            drop(17, d4),
            drop(18, d4)
        ]
    );
    let output = crate::common::polybook_in(dir.path())
        .args(["show", "a.bin", "4k3/8/8/8/8/8/8/4K3[QRBNPp] w - - 0 1"])
        .output()
        .unwrap();
    let shown = String::from_utf8(output.stdout).unwrap();
    assert!(shown.contains("P@e4") && shown.contains("Q@d4"), "{shown}");
    ok(dir.path(), "verify a.bin");
}

const MIXED: &str = "\
[Variant \"Standard\"]
[Result \"1-0\"]

1. e4 e5 2. Nf3 1-0

1. d4 *

[Variant \"Crazyhouse\"]
[Result \"1-0\"]

1. e4 d5 2. exd5 Qxd5 3. P@e4 1-0

[Variant \"Atomic\"]
[Result \"1-0\"]

1. e4 d5 2. exd5 e6 1-0

[Variant \"Horde\"]
[Result \"1-0\"]

1. e5 d6 1-0

[Variant \"Antichess\"]
[Result \"0-1\"]

1. e3 b5 2. Bxb5 Ba6 3. Bxa6 0-1

[Variant \"Xiangqi\"]

1. C2=5 *

[Variant \"Xiangqi\"]

1. H2+3 *

[Variant \"Shogi \\\"mini\\\"\"]

1. e4 *
";

#[test]
fn games_of_other_variants_are_filtered_and_never_misread() {
    let dir = temp();
    write(dir.path(), "a.pgn", MIXED);
    for (variant, counted) in [
        ("standard", 2),
        ("crazyhouse", 1),
        ("atomic", 1),
        ("suicide", 1),
        ("giveaway", 1),
        ("antichess", 1),
        ("3check", 0),
    ] {
        let report = ok_json(
            dir.path(),
            &format!("make-book -q --json --allow-empty a.pgn --variant {variant} --bin a.bin"),
        );
        assert_eq!(report["games"]["read"], 9, "{variant}");
        assert_eq!(report["games"]["counted"], counted, "{variant}");
        assert_eq!(report["games"]["filtered"], 9 - counted, "{variant}");
        assert_eq!(report["games"]["rejected"], 0, "{variant}");
    }
    let output = run(dir.path(), "make-book a.pgn --min-game 1 --bin a.bin");
    let summary = String::from_utf8(output.stderr).unwrap();
    assert_eq!(summary.matches("Xiangqi").count(), 1, "{summary}");
    assert!(
        summary.contains("2 games of the unknown variant \"Xiangqi\" left out"),
        "{summary}"
    );
    assert!(
        summary.contains(
            "4 games of other variants left out (crazyhouse 1, giveaway 1, atomic 1, horde 1)"
        ),
        "{summary}"
    );
    fails(dir.path(), "make-book a.pgn --variant xiangqi", 2);
}

#[test]
fn auto_counts_every_game_by_the_rules_of_its_variant() {
    let dir = temp();
    write(dir.path(), "a.pgn", MIXED);
    let report = ok_json(
        dir.path(),
        "make-book -q --json a.pgn --variant auto --min-game 1 --loss-factor 1 --bin auto.bin",
    );
    assert_eq!(
        report["variants"],
        serde_json::json!({"normal": 2, "crazyhouse": 1, "giveaway": 1, "atomic": 1})
    );
    assert_eq!(report["games"]["filtered"], 4);
    let header = ok(dir.path(), "pgheader -s auto.bin");
    let variants = "Variants supported:\nnormal\ncrazyhouse\ngiveaway\natomic\nComment:";
    assert!(header.starts_with(variants), "{header}");
    let output = run(
        dir.path(),
        "make-book a.pgn --variant auto --bin auto.bin --min-game 1 --loss-factor 1",
    );
    let summary = String::from_utf8(output.stderr).unwrap();
    assert!(summary.contains("normal: 2 games counted\n"), "{summary}");
    assert_eq!(
        summary.matches(": 1 game counted\n").count(),
        3,
        "{summary}"
    );
    assert!(
        summary.contains("1 game of the variant horde left out"),
        "{summary}"
    );

    // A single book with the records of all books.
    let mut expected = Vec::new();
    for variant in ["standard", "crazyhouse", "atomic", "giveaway"] {
        ok(
            dir.path(),
            &format!(
                "make-book -q a.pgn --variant {variant} --min-game 1 --loss-factor 1 --bin one.bin"
            ),
        );
        let name = if variant == "standard" {
            "normal"
        } else {
            variant
        };
        let header = ok(dir.path(), "pgheader -s one.bin");
        assert!(
            header.starts_with(&format!("Variants supported:\n{name}\nComment:")),
            "{header}"
        );
        expected.extend(records(&dir.path().join("one.bin")));
    }
    expected.sort_unstable();
    let mut found = records(&dir.path().join("auto.bin"));
    found.sort_unstable();
    assert!(found == expected);
    assert_eq!(found.len(), 4 + 5 + 4 + 5);

    // A database cannot distinguish the variants.
    let error = fails(
        dir.path(),
        "make-book a.pgn --variant auto --obs a.obs.db3",
        1,
    );
    assert!(error.contains("one variant"), "{error}");
}

#[test]
fn variants_without_a_number_can_be_indexed_but_have_no_book() {
    let dir = temp();
    write(dir.path(), "a.pgn", MIXED);
    for variant in ["horde", "kingofthehill", "racingkings"] {
        for line in [
            format!("make-book a.pgn --variant {variant}"),
            format!("make-book a.pgn --variant {variant} --bin a.bin --leveldb a.idx"),
        ] {
            let error = fails(dir.path(), &line, 1);
            assert!(
                error.contains("has no number for") && error.contains(variant),
                "{error}"
            );
        }
    }
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
    ok(
        dir.path(),
        "make-book -q a.pgn --variant horde --min-game 1 --leveldb a.idx --index-stats --obs a.obs.db3",
    );
    // Index and database know the variant, so no option is needed.
    let games = ok_json(dir.path(), "games a.idx --json e5");
    assert_eq!(games["games"][0]["id"], 4);
    assert_eq!(games["total"], 1);
    let moves = ok_json(dir.path(), "show a.idx --json e5");
    assert_eq!(moves["moves"][0]["san"], "d6");
    let db = Connection::open(dir.path().join("a.obs.db3")).unwrap();
    let variant: String = db
        .query_row("SELECT Value FROM Info WHERE Name = 'Variant'", [], |row| {
            row.get(0)
        })
        .unwrap();
    assert_eq!(variant, "horde");
    assert!(ok(dir.path(), "show a.obs.db3 e5").contains("d7d6"));
    let error = fails(dir.path(), "convert a.obs.db3 a.bin", 1);
    assert!(error.contains("horde"), "{error}");
    ok(
        dir.path(),
        "convert -q a.obs.db3 suite.pgn --plies 2 --min-game 1",
    );
    let suite = fs::read_to_string(dir.path().join("suite.pgn")).unwrap();
    assert!(
        suite.contains("[Variant \"Horde\"]") && suite.contains("1. e5 d6 {"),
        "{suite}"
    );
}

#[test]
fn every_command_about_a_position_takes_a_variant() {
    let dir = temp();
    write(dir.path(), "a.pgn", MIXED);
    ok(
        dir.path(),
        "make-book -q a.pgn --variant auto --min-game 1 --bin auto.bin --leveldb auto.idx --index-stats",
    );
    let line = "1. e4 d5 2. exd5 Qxd5";
    let ask = |command: &str, more: &[&str]| {
        let output = crate::common::polybook_in(dir.path())
            .args(command.split_whitespace())
            .args(more)
            .output()
            .unwrap();
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{command}: {error}");
        String::from_utf8(output.stdout).unwrap()
    };
    let shown = ask("show auto.bin --variant crazyhouse --moves", &[line]);
    assert!(shown.contains("P@e4"), "{shown}");
    assert!(ask("show auto.bin --moves", &[line]).contains("no move"));
    let games = ask("games auto.idx --variant crazyhouse --moves", &[line]);
    assert!(games.starts_with("1 game\n"), "{games}");
    let moves = ask("show auto.idx --variant crazyhouse --moves", &[line]);
    assert!(moves.contains("@e4"), "{moves}");
    ask(
        "dump-book --bin auto.bin --variant atomic --color white --out atomic.txt",
        &[],
    );
    let dumped = fs::read_to_string(dir.path().join("atomic.txt")).unwrap();
    assert!(dumped.contains("1. e4{100%} d5 2. exd5{100%}"), "{dumped}");
    let key = ask("key --variant atomic --moves", &["e4 d5 exd5"]);
    // The capture explodes and removes both pawns.
    let fen = "rnbqkbnr/ppp1pppp/8/8/8/8/PPPP1PPP/RNBQKBNR b KQkq - 0 2";
    assert_eq!(key, ask("key --variant atomic --fen", &[fen]));
}

#[test]
fn verify_reports_drops_in_a_book_of_standard_chess() {
    let dir = temp();
    // A drop in a book without a header, which is a book for standard chess.
    let mut record = [0u8; 16];
    record[..8].copy_from_slice(&5u64.to_be_bytes());
    record[8..10].copy_from_slice(&(9u16 << 12 | 16 << 6 | 28).to_be_bytes());
    fs::write(dir.path().join("a.bin"), record).unwrap();
    let output = run(dir.path(), "verify a.bin");
    assert_eq!(output.status.code(), Some(1));
}

/// Four games with the same moves in variants, three of which have the same keys.
const SAME_MOVES: &str = r#"[White "Standard"]
[Result "1-0"]

1. e4 e5 1-0

[White "Hill"]
[Variant "King of the Hill"]
[Result "1-0"]

1. e4 e5 1-0

[White "Random"]
[Variant "Chess960"]
[FEN "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1"]
[Result "1-0"]

1. e4 e5 1-0

[White "Atomic"]
[Variant "Atomic"]
[Result "1-0"]

1. e4 e5 1-0
"#;

#[test]
fn games_of_other_variants_are_not_listed() {
    let dir = temp();
    write(dir.path(), "a.pgn", SAME_MOVES);
    ok(
        dir.path(),
        "make-book -q a.pgn --variant auto --explorer auto.idx",
    );
    for (variant, white) in [
        ("standard", "Standard"),
        ("kingofthehill", "Hill"),
        ("fischerandom", "Random"),
        ("atomic", "Atomic"),
    ] {
        let ask = format!("games auto.idx --variant {variant} --moves e4");
        let listed = ok_json(dir.path(), &format!("{ask} --json"));
        assert_eq!(listed["total"], 1, "{variant}");
        assert_eq!(listed["games"][0]["white"], white);
        let pgn = ok(dir.path(), &format!("{ask} --pgn"));
        assert_eq!(pgn.matches("[White ").count(), 1, "{pgn}");
        assert!(pgn.contains(&format!("[White \"{white}\"]")), "{pgn}");
    }
    // In an index of the fork, games of some variants are distinguished only by their keys.
    ok(
        dir.path(),
        "make-book -q a.pgn --variant auto --leveldb plain.idx",
    );
    let atomic = "games plain.idx --variant atomic --moves e4 --json";
    assert_eq!(ok_json(dir.path(), atomic)["total"], 1);
    let error = fails(dir.path(), "games plain.idx --moves e4", 1);
    assert!(error.contains("make an explorer's index"), "{error}");
    for option in ["--leveldb", "--explorer"] {
        ok(
            dir.path(),
            &format!("make-book -q a.pgn {option} one.idx --force"),
        );
        for (variant, total) in [("standard", 1), ("kingofthehill", 0)] {
            let ask = format!("games one.idx --variant {variant} --moves e4 --json");
            assert_eq!(
                ok_json(dir.path(), &ask)["total"],
                total,
                "{option} {variant}"
            );
        }
    }
}

#[test]
fn books_and_databases_answer_for_their_own_variants_only() {
    let dir = temp();
    write(dir.path(), "a.pgn", SAME_MOVES);
    ok(
        dir.path(),
        "make-book -q a.pgn --min-game 1 --bin a.bin --obs a.obs.db3",
    );
    ok(
        dir.path(),
        "make-book -q a.pgn --min-game 1 --no-header --bin bare.bin",
    );
    for name in ["a.bin", "bare.bin", "a.obs.db3"] {
        let shown = ok_json(dir.path(), &format!("show {name} --json"));
        assert_eq!(shown["moves"][0]["uci"], "e2e4");
        for variant in ["kingofthehill", "fischerandom", "horde"] {
            let ask = format!("show {name} --json --variant {variant}");
            let error = fails(dir.path(), &ask, 1);
            assert!(error.contains(&format!("not for {variant}")), "{error}");
        }
    }
    ok(
        dir.path(),
        "make-book -q a.pgn --min-game 1 --variant fischerandom --bin random.bin",
    );
    let error = fails(dir.path(), "show random.bin --variant standard", 1);
    assert!(error.contains("is for the variant fischerandom"), "{error}");
    ok(dir.path(), "show random.bin");
}

#[test]
fn no_command_answers_from_another_variants_games() {
    let dir = temp();
    let dir = dir.path();
    write(dir, "a.pgn", SAME_MOVES);
    fs::write(dir.join("start.txt"), "e4; set e5=2\n").unwrap();
    ok(
        dir,
        "make-book -q a.pgn --min-game 1 --bin a.bin --obs a.obs.db3 --leveldb a.idx --index-stats",
    );
    for variant in ["kingofthehill", "fischerandom", "atomic"] {
        for command in [
            "show a.idx",
            "tree a.idx",
            "tree a.bin",
            "tree a.obs.db3",
            "convert a.bin t.csv",
            "convert a.bin t.pgn --plies 2",
            "convert a.obs.db3 t.epd --plies 2",
            "convert a.obs.db3 t.bin",
            "edit a.bin --out b.bin --set e4=3",
            "edit a.bin --out b.bin --script start.txt",
            "filter a.bin --out b.bin --reachable",
            "dump-book --bin a.bin --color white --out t.txt",
            "diff a.bin a.bin",
        ] {
            let error = fails(dir, &format!("{command} --variant {variant}"), 1);
            let expected =
                format!("this file is for the variant normal, not for {variant}: give --variant");
            let expected_of_database = expected.replace("normal", "standard");
            assert!(
                error.contains(&expected) || error.contains(&expected_of_database),
                "{command}: {error}"
            );
        }
    }
    for name in ["t.csv", "t.pgn", "t.epd", "t.bin", "t.txt", "b.bin"] {
        assert!(!dir.join(name).exists(), "{name}");
    }
    // Games of several variants, three of which have the same keys.
    ok(
        dir,
        "make-book -q a.pgn --variant auto --min-game 1 --bin auto.bin --leveldb auto.idx --index-stats",
    );
    for command in ["show auto.idx", "tree auto.idx"] {
        for variant in ["standard", "kingofthehill", "fischerandom"] {
            let error = fails(dir, &format!("{command} --variant {variant}"), 1);
            let expected = "have the same key: make an explorer's index";
            assert!(error.contains(expected), "{command} {variant}: {error}");
        }
    }
    let atomic = ok_json(dir, "show auto.idx --variant atomic --json");
    assert_eq!(atomic["moves"][0]["games"], 1);
    ok(dir, "convert -q auto.bin t.csv --variant atomic");
    let error = fails(dir, "tree auto.bin --variant horde", 1);
    assert!(error.contains("atomic"), "{error}");
    // A book that does not name its variant has the variant of the option.
    ok(
        dir,
        "make-book -q a.pgn --variant atomic --min-game 1 --no-header --bin bare.bin",
    );
    ok(
        dir,
        "edit -q bare.bin --in-place --set d4=2 --variant atomic",
    );
    assert!(ok(dir, "tree bare.bin --variant atomic").contains("d4"));
    ok(dir, "convert -q bare.bin bare.csv --variant atomic");
    // If polybook does not know the variant of a database, the database has the variant of the option.
    let db = Connection::open(dir.join("a.obs.db3")).unwrap();
    // Remove the checksum of the database, because it was changed on purpose.
    db.execute_batch(
        "UPDATE Info SET Value = 'xiangqi' WHERE Name = 'Variant'; DELETE FROM Info WHERE Name = 'Checksum'",
    )
    .unwrap();
    drop(db);
    ok(dir, "tree a.obs.db3 --variant kingofthehill");
}

/// Every command that plays games names the variants that it does not know, as `make-book` does.
#[test]
fn unknown_variants_are_named_by_every_command() {
    let dir = temp();
    let dir = dir.path();
    let game = |variant: &str, moves: &str| {
        format!(
            "[Variant \"{variant}\"]\n[White \"A\"]\n[Black \"B\"]\n[Result \"1-0\"]\n\n{moves} 1-0\n\n"
        )
    };
    let unknown = game("wild/0", "1. e4 e5") + &game("Capablanca", "1. e4 {[%eval 0.1]} e5");
    let known = game("Standard", "1. e4 {[%eval 0.2]} e5 2. Nf3 Nc6");
    fs::write(dir.join("mixed.pgn"), unknown.repeat(2) + &known).unwrap();
    fs::write(dir.join("unknown.pgn"), &unknown).unwrap();
    fs::write(dir.join("known.pgn"), &known).unwrap();
    fs::write(dir.join("suite.pgn"), "1. e4 e5 *\n").unwrap();
    let names = |games: &str| {
        ["wild/0", "Capablanca"].map(|name| {
            format!("{games} of the unknown variant \"{name}\" left out; if these games are standard chess, remove the \
                     tag Variant")
        })
    };
    for command in [
        "make-book mixed.pgn --min-game 1 --bin mixed.bin",
        "suite-report suite.pgn mixed.pgn",
        "repertoire new mixed.pgn --reference known.pgn",
        "repertoire check known.pgn mixed.pgn --color white",
        "repertoire build mixed.pgn --color white --min-game 1 --out built.pgn",
        "tree mixed.pgn",
    ] {
        let output = run(dir, command);
        let message = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{command}: {message}");
        for name in names("2 games") {
            assert!(message.contains(&name), "{command}: {message}");
        }
    }
    // Games without an evaluation are not played.
    let message = String::from_utf8(run(dir, "evals mixed.pgn --out mixed.evals").stderr).unwrap();
    assert!(message.contains(&names("2 games")[1]), "{message}");
    for (command, named) in [
        ("suite-report suite.pgn unknown.pgn", 0..2),
        ("evals unknown.pgn --out none.evals", 1..2),
        (
            "repertoire check known.pgn unknown.pgn --color white --player Z",
            0..2,
        ),
    ] {
        let message = fails(dir, command, 1);
        for name in &names("1 game")[named] {
            assert!(message.contains(name), "{command}: {message}");
        }
    }
}

#[test]
fn answers_say_how_many_games_of_other_variants_they_leave_out() {
    let dir = temp();
    let dir = dir.path();
    let games = "1. d4 d5 1-0\n\n[Variant \"Atomic\"]\n\n1. e4 e5 1-0\n\n[Variant \"Three-check\"]\n\n1. e4 e5 0-1\n";
    fs::write(dir.join("games.pgn"), games).unwrap();
    let said = |line: &str| {
        let output = run(dir, line);
        assert!(output.status.success(), "{line}");
        String::from_utf8(output.stderr).unwrap()
    };
    let of_standard = "the answer leaves out 2 games of other variants (atomic 1, threeCheck 1): choose a variant with \
                       --variant\n";
    for command in ["show", "games", "openings"] {
        let text = said(&format!("{command} games.pgn"));
        assert!(text.contains(of_standard), "{command}: {text}");
    }
    let text = said("show games.pgn --variant threeCheck");
    assert!(!text.contains("other variants"), "{text}");
    assert_eq!(said("show games.pgn --quiet"), "");
}
