//! `evals`: the store does not depend on the order of the inputs, and invalid input is reported.

use std::{fs, path::Path};

use polybook::{
    evals::Evals,
    position::{from_text, key, write_epd},
};
use shakmaty::{Chess, Position};

use crate::common::{fails, fed, ok, ok_json, python, refused, run_python, temp};

/// Returns the EPDs of a random game's positions, some of which are evaluated twice.
fn epds(seed: u64, lines: usize) -> String {
    let mut state = seed;
    let mut random = |below: usize| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (state >> 33) as usize % below
    };
    let mut text = Vec::new();
    let mut pos = Chess::default();
    for _ in 0..lines {
        let moves = pos.legal_moves();
        if moves.is_empty() || random(40) == 0 {
            pos = Chess::default();
            continue;
        }
        pos.play_unchecked(moves[random(moves.len().min(4))]);
        write_epd(&pos, &mut text);
        let (depth, nodes, ce) = (random(5), random(3), random(400));
        text.extend(format!(" acd {depth}; acn {nodes}; ce {ce};\n").into_bytes());
    }
    String::from_utf8(text).unwrap()
}

#[test]
fn the_store_does_not_depend_on_order_threads_or_memory() {
    if !crate::common::runs_slow_tests() {
        return;
    }
    let dir = temp();
    let path = |name: &str| dir.path().join(name);
    fs::write(path("a.epd"), epds(1, 40_000)).unwrap();
    fs::write(path("b.epd"), epds(2, 40_000)).unwrap();
    let lichess = r#"{"fen":"rnbqkbnr/pppppppp/8/8/4P3/8/PPPP1PPP/RNBQKBNR b KQkq -","evals":[{"pvs":[{"cp":30,"line":""}],"knodes":9,"depth":50}]}"#;
    let packed = zstd::encode_all(lichess.as_bytes(), 1).unwrap();
    fs::write(path("c.jsonl.zst"), packed).unwrap();
    fs::write(
        path("d.pgn"),
        "1. e4 { [%eval 0.1,60] } c5 { [%eval 0.2] } *",
    )
    .unwrap();
    ok(
        dir.path(),
        "evals -q --out all.evals a.epd b.epd c.jsonl.zst d.pgn",
    );
    let all = fs::read(path("all.evals")).unwrap();
    ok(dir.path(), "evals -q --out one.evals a.epd c.jsonl.zst");
    for line in [
        "d.pgn c.jsonl.zst b.epd a.epd --threads 1",
        "b.epd a.epd d.pgn c.jsonl.zst --threads 5 --memory 64KiB",
        "all.evals c.jsonl.zst",
        "c.jsonl.zst all.evals all.evals --memory 64KiB",
    ] {
        ok(
            dir.path(),
            &format!("evals -q --force --out other.evals {line}"),
        );
        assert!(fs::read(path("other.evals")).unwrap() == all, "{line}");
    }
    // A store writes each of its evaluations once, in any order of the inputs.
    let merged = [
        "d.pgn one.evals b.epd",
        "b.epd d.pgn one.evals --memory 64KiB",
    ]
    .map(|line| {
        ok(
            dir.path(),
            &format!("evals -q --force --out other.evals {line}"),
        );
        fs::read(path("other.evals")).unwrap()
    });
    assert!(merged[0] == merged[1]);
    ok(dir.path(), "evals -q --out all.epd all.evals");
    ok(dir.path(), "evals -q --out again.epd all.epd");
    let [epd, again] = ["all.epd", "again.epd"].map(|name| fs::read_to_string(path(name)).unwrap());
    assert_eq!(epd, again);
    let evals = Evals::open(path("all.evals")).unwrap();
    assert_eq!(evals.origins(), ["EPD", "Lichess", "PGN"]);
    assert_eq!(evals.len() as usize, epd.lines().count());
    let after = |line: &str| key(&from_text(None, Some(line)).unwrap());
    let found = evals.find(after("e4")).unwrap().unwrap();
    let said = (found.score.to_string(), found.depth, evals.origin_of(found));
    assert_eq!(said, ("+0.10".to_owned(), 60, "PGN"));
    assert_eq!(evals.find(after("e4 e6 Ke2 Ke7")).unwrap(), None);
}

#[test]
fn games_and_lines_that_are_bad_are_reported() {
    let dir = temp();
    let path = |name: &str| dir.path().join(name);
    let bad = "[White \"a\"]\n\n1. e4 { [%eval 0.1] } e5 *\n\n[White \"b\"]\n\n1. d4 { [%eval 0.2] } Ke5 *\n";
    fs::write(path("games.pgn"), bad).unwrap();
    let start = "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq -";
    let lines = format!("# mine\n{start} ce 17;\n\nnonsense\n{start} ce x;\n{start} bm e4;\n");
    fs::write(path("lines.epd"), lines).unwrap();
    let report = ok_json(
        dir.path(),
        "evals --json -q --out my.evals games.pgn lines.epd",
    );
    for (fact, number) in [
        ("games", 2),
        ("lines", 6),
        ("evaluations", 3),
        ("ignored", 1),
        ("rejected", 3),
        ("positions", 3),
    ] {
        assert_eq!(report[fact], number, "{fact}: {report}");
    }
    let output = crate::common::run(dir.path(), "evals --out my.evals games.pgn lines.epd");
    let said = String::from_utf8(output.stderr).unwrap();
    for line in [
        "rejected: games.pgn: game 2, byte 76: \"Ke5\": illegal move",
        "rejected: lines.epd: line 4, byte 68: ",
        "rejected: lines.epd: line 5, byte 77: ce \"x\" is not a number",
    ] {
        assert!(said.contains(line), "{line}: {said}");
    }
    // Standard input and standard output.
    let piped = fed(
        dir.path(),
        "evals -q --out - -",
        &fs::read(path("my.evals")).unwrap(),
    );
    assert!(!piped.status.success());
    let piped = fed(dir.path(), "evals -q --out - -", bad.as_bytes());
    fs::write(path("piped.evals"), piped.stdout).unwrap();
    ok(dir.path(), "evals -q --out file.evals games.pgn");
    let [piped, file] = ["piped.evals", "file.evals"].map(|name| fs::read(path(name)).unwrap());
    assert!(piped == file);
}

/// A line may have 16 MiB, so its message must be short, and only the first messages of all batches are kept.
#[test]
fn reasons_are_short_and_few() {
    let dir = temp();
    let start = "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq -";
    let long = "x".repeat(600_000);
    let lines = [
        format!("{start} ce 5;\n"),
        format!("{start} ce {long};\n").repeat(12),
        format!("{start} {long} ce 5;\n"),
    ];
    fs::write(dir.path().join("long.epd"), lines.concat()).unwrap();
    let output = crate::common::run(dir.path(), "evals --out my.evals --threads 3 long.epd");
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.len() < 5000, "{}", said.len());
    let numbers = said
        .lines()
        .filter_map(|line| line.strip_prefix("rejected: long.epd: line "));
    let numbers: Vec<&str> = numbers
        .map(|line| line.split(',').next().unwrap())
        .collect();
    let expected: Vec<String> = (2..12).map(|number| number.to_string()).collect();
    assert_eq!(numbers, expected, "{said}");
    fs::write(
        dir.path().join("fen.pgn"),
        format!("[FEN \"{long}\"]\n\n1. e4 {{ [%eval 0.3] }} *\n"),
    )
    .unwrap();
    let error = fails(dir.path(), "evals --out fen.evals fen.pgn", 1);
    assert!(error.len() < 1000, "{}", error.len());
}

/// Positions with castling rights and en passant squares are preserved. Positions of Chess960 and of variants, whose
/// keys may equal those of other positions, are left out and counted.
#[test]
fn only_standard_chess_is_evaluated() {
    let dir = temp();
    let path = |name: &str| dir.path().join(name);
    const SHUFFLED: &str = "bqnbrkrn/pppppppp/8/8/8/8/PPPPPPPP/BQNBRKRN w GEge -";
    let game = |tags: &str, moves: &str| format!("{tags}\n\n{{ [%eval 0.1] }} {moves} *\n\n");
    let taken = "rnbqkbnr/ppp1pppp/8/8/3pP3/8/PPPP1PPP/RNBQKBNR b KQkq e3";
    let games = [
        game("[Variant \"Chess960\"]", "1. e4 { [%eval 0.2] } e5"),
        game(
            &format!("[Variant \"fischerandom\"]\n[FEN \"{SHUFFLED} 0 1\"]"),
            "1. e4",
        ),
        game("[Variant \"Antichess\"]", "1. e4 { [%eval 0.2] } e5"),
        // The game lacks the tag for its variant, but its castling rights exist only in Chess960.
        game(&format!("[FEN \"{SHUFFLED} 0 1\"]"), "1. e4"),
        // The castling rights name the files of the rooks, but are those of standard chess.
        game(
            "[FEN \"r3k2r/8/8/8/8/8/8/R3K2R w HAha - 0 1\"]",
            "1. O-O { [%eval 0.2] } Ke7 { [%eval 0.3] }",
        ),
        game(
            &format!("[Variant \"From Position\"]\n[FEN \"{taken} 0 2\"]"),
            "2... dxe3 { [%eval -0.2] }",
        ),
        // No pawn can capture on this square.
        game(
            "[FEN \"rnbqkbnr/pppppppp/8/8/4P3/8/PPPP1PPP/RNBQKBNR b KQkq e3 0 1\"]",
            "1... e5",
        ),
    ];
    fs::write(path("games.pgn"), games.concat()).unwrap();
    let report = ok_json(dir.path(), "evals --json --out my.evals games.pgn");
    let counts = ["games", "filtered", "rejected", "evaluations", "positions"];
    assert_eq!(
        counts.map(|fact| report[fact].as_u64().unwrap()),
        [7, 4, 0, 6, 6],
        "{report}"
    );
    ok(dir.path(), "evals -q --out my.epd my.evals");
    let epd = fs::read_to_string(path("my.epd")).unwrap();
    let mut found: Vec<&str> = epd
        .lines()
        .map(|line| line.split(" acd").next().unwrap())
        .collect();
    found.sort_unstable();
    let mut expected = [
        "r3k2r/8/8/8/8/8/8/R3K2R w KQkq -",
        "r3k2r/8/8/8/8/8/8/R4RK1 b kq -",
        "r6r/4k3/8/8/8/8/8/R4RK1 w - -",
        taken,
        "rnbqkbnr/ppp1pppp/8/8/8/4p3/PPPP1PPP/RNBQKBNR w KQkq -",
        "rnbqkbnr/pppppppp/8/8/4P3/8/PPPP1PPP/RNBQKBNR b KQkq -",
    ];
    expected.sort_unstable();
    assert_eq!(found, expected);
    // EPD lines of Chess960 are left out as well. The reason is reported even if nothing is left.
    fs::write(path("lines.epd"), format!("{SHUFFLED} ce 5;\n")).unwrap();
    let error = fails(dir.path(), "evals --out new.evals lines.epd", 1);
    assert!(
        error.contains("0 games and 1 line contain no evaluation; rejected: lines.epd: line 1"),
        "{error}"
    );
}

#[test]
fn what_cannot_be_read_or_replaced_is_refused() {
    let dir = temp();
    let path = |name: &str| dir.path().join(name);
    fs::write(path("games.pgn"), "1. e4 { [%eval 0.1] } e5 *\n").unwrap();
    fs::write(path("none.pgn"), "1. e4 { good } e5 *\n").unwrap();
    ok(dir.path(), "evals -q --out my.evals games.pgn");
    let sound = fs::read(path("my.evals")).unwrap();
    let mut newer = sound.clone();
    newer[23] = b'3';
    fs::write(path("newer.evals"), newer).unwrap();
    let mut changed = sound.clone();
    changed[60] ^= 1;
    fs::write(path("changed.evals"), changed).unwrap();
    fs::write(path("short.evals"), &sound[..sound.len() - 1]).unwrap();
    fs::write(path("yours.epd"), "8/8/8/8/8/4k3/8/4K3 w - - ce 0;\n").unwrap();
    // Other programs write the same operations in the same order.
    let analyzed = "8/8/8/8/8/4k3/8/4K3 w - - acd 3; acn 5; ce 3;";
    let more = format!("{analyzed} bm Kd1; id \"mine\";\n");
    fs::write(path("analyzed.epd"), more).unwrap();
    let more = format!("{analyzed}\n8/8/8/8/8/3k4/8/4K3 w - - c0 \"mine\";\n");
    fs::write(path("lines.epd"), more).unwrap();
    refused(
        dir.path(),
        &[
            ("evals --out new.evals none.pgn", 1, "because 1 game and"),
            (
                "evals --out new.evals missing.pgn",
                1,
                "cannot open missing.pgn",
            ),
            ("evals --out new.evals newer.evals", 1, "another version"),
            ("evals --out newer.evals games.pgn", 1, "another version"),
            (
                "evals --out changed.evals games.pgn",
                1,
                "store of evaluations is damaged",
            ),
            (
                "evals --out new.evals changed.evals",
                1,
                "store of evaluations is damaged",
            ),
            (
                "evals --out new.evals short.evals",
                1,
                "store of evaluations is damaged",
            ),
            ("evals --out games.pgn my.evals", 1, "--force"),
            ("evals --out yours.epd my.evals", 1, "--force"),
            ("evals --out analyzed.epd my.evals", 1, "--force"),
            ("evals --out lines.epd my.evals", 1, "--force"),
            ("evals --out my.evals my.evals", 1, "my.evals"),
            ("evals --force --out my.evals my.evals", 1, "my.evals"),
            ("evals my.evals", 2, "--out"),
            ("evals --out new.evals", 2, "INPUT"),
        ],
    );
    assert!(!path("new.evals").exists());
    let said = ok(dir.path(), "verify --json my.evals");
    assert!(
        said.contains(r#""records":1,"faults":[],"checksum":"matches""#),
        "{said}"
    );
    let changed = crate::common::run(dir.path(), "verify changed.evals");
    assert_eq!(changed.status.code(), Some(1));
    let said = String::from_utf8_lossy(&changed.stderr).into_owned();
    let said = said + &String::from_utf8_lossy(&changed.stdout);
    assert!(
        said.contains("the checksum of the 44 bytes at byte 44 differs"),
        "{said}"
    );
    assert_eq!(said.matches("make the store again").count(), 1, "{said}");
    for _ in 0..2 {
        ok(dir.path(), "evals -q --out my.evals games.pgn");
    }
    for name in ["my.epd", "my.parquet"] {
        ok(dir.path(), &format!("evals -q --out {name} games.pgn"));
        let error = fails(dir.path(), &format!("evals -q --out {name} games.pgn"), 1);
        assert!(error.contains("--force"), "{error}");
    }
    for name in ["my.epd", "my.parquet", "newer.evals", "changed.evals"] {
        ok(
            dir.path(),
            &format!("evals -q --force --out {name} games.pgn"),
        );
    }
    for name in ["my.evals", "newer.evals", "changed.evals"] {
        assert!(fs::read(path(name)).unwrap() == sound, "{name}");
    }
    let error = fails(dir.path(), "evals --out new.evals my.parquet", 1);
    assert!(error.contains("give the store from which"), "{error}");
    let error = fails(dir.path(), "evals --out my.parquet/x games.pgn", 1);
    assert!(error.contains("my.parquet"), "{error}");
}

#[test]
fn python_chess_and_duckdb_see_the_same() {
    if crate::common::is_without("duckdb") {
        return;
    }
    let Some(python) = python(&["chess", "duckdb"]) else {
        return;
    };
    let dir = temp();
    let binary = Path::new(env!("CARGO_BIN_EXE_polybook"));
    run_python(&python, "evals.py", &[dir.path(), binary]);
}

/// Makes a store of the first moves of the sample games.
fn with_evals(dir: &Path) {
    let pgn = "1. e4 { [%eval 0.33,20] } (1. d4) e5 { [%eval 0.4,7] } *\n\n1. d4 { [%eval -0.1] } d5 { [%eval #-3,9] } 2. c4 { [%eval 1.5] } *\n\n\
        [Round \"1\"]\n\n{ [%eval 0.2,30] } 1. a3 *\n";
    fs::write(dir.join("evals.pgn"), pgn).unwrap();
    ok(dir, "evals -q --out my.evals evals.pgn");
}

#[test]
fn commands_show_evaluations() {
    let dir = temp();
    let dir = dir.path();
    with_evals(dir);
    let games = crate::common::sample("famous.pgn");
    let games = games.display();
    ok(
        dir,
        &format!("make-book -q {games} --min-game 1 --bin a.bin --obs a.obs.db3 --explorer a.idx"),
    );
    ok(
        dir,
        &format!("make-book -q {games} --min-game 1 --leveldb plain.idx --index-stats"),
    );
    ok(dir, "edit -q a.bin --out b.bin --set e4=1");
    let shown = |line: &str| ok(dir, line);
    for command in [
        "show a.bin",
        "show a.obs.db3",
        "show a.idx",
        "show plain.idx",
    ] {
        let text = shown(&format!("{command} --evals my.evals"));
        assert!(
            text.starts_with("evaluation +0.20, depth 30\n"),
            "{command}: {text}"
        );
        let of = |san: &str| {
            let line = text
                .lines()
                .find(|line| line.starts_with(&format!("{san} ")));
            line.unwrap().to_owned()
        };
        assert!(of("e4").contains("+0.33"), "{command}: {text}");
        assert!(of("d4").contains("-0.10"), "{command}: {text}");
        assert!(of("c4").contains("  -"), "{command}: {text}");
        let without = shown(command);
        assert!(!without.contains("eval"), "{command}: {without}");
        let document = ok_json(dir, &*format!("{command} --evals my.evals --json"));
        assert_eq!(document["eval"]["cp"], 20, "{document}");
        let moves = document["moves"].as_array().unwrap();
        let of = |san: &str| moves.iter().find(|mv| mv["san"] == san).unwrap()["eval"].clone();
        assert_eq!(
            of("e4"),
            serde_json::json!({"cp": 33, "depth": 20, "nodes": 0})
        );
        assert_eq!(of("c4"), serde_json::Value::Null);
    }
    let text = shown("tree a.bin --max-ply 2 --evals my.evals");
    assert!(text.contains("\n1. d4  -0.10  weight "), "{text}");
    assert!(text.contains("\n  1... d5  #-3  weight "), "{text}");
    // The evaluations in a tree can be read again, and a tree that contains them can be replaced.
    for _ in 0..2 {
        ok(
            dir,
            "tree -q a.bin --max-ply 3 --evals my.evals --format pgn --out tree.pgn --force",
        );
        ok(
            dir,
            "tree -q a.bin --max-ply 3 --evals my.evals --out tree.txt --force",
        );
    }
    let tree = fs::read_to_string(dir.join("tree.pgn")).unwrap();
    let tree = tree.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        tree.contains("[%eval 0.33,20]}") && tree.contains("[%eval #-3,9]}"),
        "{tree}"
    );
    let lines = shown("tree a.bin --max-ply 1 --evals my.evals --format jsonl");
    assert!(
        lines.contains(r#""eval":{"cp":33,"depth":20,"nodes":0}"#),
        "{lines}"
    );
    let output = crate::common::run(dir, "diff -q a.bin b.bin --evals my.evals");
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(
        text.contains(" -> 1 (69.2% -> 5.9%)  eval +0.33\n"),
        "{text}"
    );
    let output = crate::common::run(dir, "diff -q a.bin b.bin --evals my.evals --json");
    let document: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(
        document["differences"][0]["moves"][0]["eval"]["cp"], 33,
        "{document}"
    );
    // Keys of other variants may equal those of standard chess.
    let text = shown("show a.obs.db3 --evals my.evals --variant standard");
    assert!(text.contains("+0.33"));
    for command in ["show a.bin", "show a.idx", "tree a.bin", "diff a.bin b.bin"] {
        let error = fails(dir, &*format!("{command} --evals evals.pgn"), 1);
        assert!(error.contains("not a store of evaluations"), "{error}");
    }
}

#[cfg(feature = "serve")]
#[test]
fn the_server_has_evaluations_in_its_answers() {
    let dir = temp();
    with_evals(dir.path());
    let games = crate::common::sample("famous.pgn");
    let line = format!("make-book -q {} --explorer a.idx", games.display());
    ok(dir.path(), &line);
    let served = crate::common::served::Served::start(dir.path(), "a.idx --evals my.evals");
    let answer = served.json("/lichess");
    let board = &answer["polybook"];
    assert_eq!(
        board["eval"],
        serde_json::json!({"cp": 20, "depth": 30, "nodes": 0})
    );
    let evals = serde_json::json!([
        {"uci": "d2d4", "cp": -10, "depth": 0, "nodes": 0},
        {"uci": "e2e4", "cp": 33, "depth": 20, "nodes": 0},
    ]);
    assert_eq!(board["evals"], evals);
    let board = &served.json("/lichess?play=d2d4")["polybook"];
    assert_eq!(
        board["evals"],
        serde_json::json!([{"uci": "d7d5", "mate": -3, "depth": 9, "nodes": 0}])
    );
    let board = &served.json("/lichess?variant=kingOfTheHill")["polybook"];
    assert!(
        board.get("eval").is_none() && board.get("evals").is_none(),
        "{board}"
    );
}

/// Writes games, and evaluations by which 1. f3 loses 1.35 pawns, 1. d4 loses 0.05 and 1. e4 f6 loses 2. 1. c4 has no
/// evaluation.
fn with_losing_moves(dir: &Path) {
    let evals = "1. e4 { [%eval 0.35] } e5 { [%eval 0.3] } *\n\n[A \"\"]\n\n1. d4 { [%eval 0.3] } *\n\n[A \"\"]\n\n1. f3 { [%eval -1.0] } *\n\n\
        [A \"\"]\n\n1. e4 f6 { [%eval 2.3] } *\n";
    fs::write(dir.join("evals.pgn"), evals).unwrap();
    ok(dir, "evals -q --out my.evals evals.pgn");
    let games = [
        "e4 e5 2. Nf3",
        "e4 f6 2. d4",
        "d4 d5 2. c4",
        "f3 e5 2. g4 Qh4#",
        "c4 e5 2. g3",
    ];
    let games = games.map(|moves| format!("[Result \"1/2-1/2\"]\n\n1. {moves} 1/2-1/2\n\n"));
    fs::write(dir.join("games.pgn"), games.concat()).unwrap();
}

/// Returns the moves of a book in a position.
fn moves_of(dir: &Path, book: &str, line: &str) -> Vec<String> {
    let shown = ok_json(dir, &["show", book, "--json", "--moves", line]);
    let moves = shown["moves"].as_array().unwrap().iter();
    let mut moves: Vec<String> = moves
        .map(|mv| mv["san"].as_str().unwrap().to_owned())
        .collect();
    moves.sort();
    moves
}

/// The only move loses everything, and the evaluation of the position shows that another move does not.
#[test]
fn a_position_can_lose_all_its_moves() {
    let dir = temp();
    let dir = dir.path();
    let evals = "1. f3 e5 {[%eval -0.71,10]} 2. g4 {[%eval #-1,245]} *\n";
    fs::write(dir.join("evals.pgn"), evals).unwrap();
    ok(dir, "evals -q --out my.evals evals.pgn");
    let games = "[Result \"1/2-1/2\"]\n\n1. f3 e5 2. g4 Qh4# 1/2-1/2\n";
    fs::write(dir.join("games.pgn"), games).unwrap();
    ok(dir, "make-book -q games.pgn --min-game 1 --bin all.bin");
    let filter = "filter all.bin --out kept.bin --evals my.evals --max-loss 30";
    let filtered = ok_json(dir, &*format!("{filter} --json"));
    assert_eq!(
        filtered["losses"],
        serde_json::json!({
            "left_out": 1,
            "left_out_share": 25.0,
            "heaviest": [{"line": "1. f3 e5 2. g4", "weight": 1, "share": 100.0, "loss": null}],
            "unevaluated": 1,
            "unreached": 0,
            "kept": 0,
            "emptied": 1,
            "emptied_after": ["1. f3 e5"],
        })
    );
    assert!(moves_of(dir, "kept.bin", "f3 e5").is_empty());
    let output = crate::common::run(dir, filter);
    let said = String::from_utf8(output.stderr).unwrap();
    let emptied = "no move is left in 1 position; --keep-one keeps the best move of each position; the lines to the \
                   positions:\n  1. f3 e5\n";
    assert!(said.contains(emptied), "{said}");
    let mate = "  1. f3 e5 2. g4  weight 1, 100.0%, misses or allows a forced mate\n";
    assert!(said.contains(mate), "{said}");
    let output = crate::common::run(dir, &*format!("{filter} --keep-one"));
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.starts_with("0 moves left out"), "{said}");
    assert!(said.contains("1 move kept by --keep-one"), "{said}");
    assert_eq!(moves_of(dir, "kept.bin", "f3 e5"), ["g4"]);
    fails(dir, "filter all.bin --out kept.bin --keep-one", 2);
}

/// The summary names a few of the positions without a move, and the document all of them.
#[test]
fn positions_without_moves_are_named_in_short() {
    let dir = temp();
    let dir = dir.path();
    let replies = ["a6", "b6", "c6", "d6", "e6", "g6", "h6"];
    let bad = replies
        .map(|reply| format!("1. e4 {reply} {{[%eval 0.5,20]}} 2. Qg4 {{[%eval -9.0,20]}} *\n\n"));
    fs::write(dir.join("evals.pgn"), bad.concat()).unwrap();
    ok(dir, "evals -q --out my.evals evals.pgn");
    let games = replies.map(|reply| format!("1. e4 {reply} 2. Qg4 1/2-1/2\n\n"));
    fs::write(dir.join("games.pgn"), games.concat()).unwrap();
    ok(dir, "make-book -q games.pgn --min-game 1 --bin all.bin");
    let filter = "filter all.bin --out kept.bin --evals my.evals --max-loss 30 --json";
    let output = crate::common::run(dir, filter);
    let said = String::from_utf8(output.stderr).unwrap();
    let (_, lines) = said.split_once("the lines to the positions:\n").unwrap();
    assert_eq!(lines.matches("  1. e4 ").count(), 5, "{said}");
    assert!(lines.contains("  and 2 more\n"), "{said}");
    let document: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let all = document["losses"]["emptied_after"].as_array().unwrap();
    assert_eq!(all.len(), 7, "{document}");
}

/// All moves of the starting position and of the position after 1. b3 are worse than the evaluations of these positions.
/// After 1. a3, one move is good.
#[test]
fn each_position_that_loses_all_its_moves_is_listed_and_can_keep_the_best() {
    let dir = temp();
    let dir = dir.path();
    let start = "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - ce 30; acd 10;\n";
    fs::write(dir.join("start.epd"), start).unwrap();
    let evaluated = [
        ("1. a3 {[%eval -0.9,10]} *"),
        ("1. b3 {[%eval -0.7,10]} *"),
        ("1. a3 e5 {[%eval -0.9,10]} *"),
        ("1. a3 h5 {[%eval 1.9,10]} *"),
        ("1. b3 h5 {[%eval 1.9,10]} *"),
        ("1. b3 g5 {[%eval 2.9,10]} *"),
    ];
    let games = |results: &[&str]| -> String {
        let games = results.iter();
        games
            .map(|game| format!("[A \"\"]\n\n{game}\n\n"))
            .collect()
    };
    fs::write(dir.join("evals.pgn"), games(&evaluated)).unwrap();
    ok(dir, "evals -q --out my.evals evals.pgn start.epd");
    let played = [
        "1. a3 e5 *",
        "1. a3 h5 *",
        "1. a3 h5 *",
        "1. b3 g5 *",
        "1. b3 g5 *",
        "1. b3 h5 *",
    ];
    fs::write(dir.join("games.pgn"), games(&played)).unwrap();
    for (make, name) in [
        ("make-book games.pgn --min-game 1 --bin", "made.bin"),
        ("filter all.bin --out", "kept.bin"),
    ] {
        ok(dir, "make-book -q games.pgn --min-game 1 --bin all.bin");
        let line = format!("{make} {name} --evals my.evals --max-loss 30");
        let said = String::from_utf8(crate::common::run(dir, &*line).stderr).unwrap();
        assert!(said.contains("no move is left in 2 positions; "), "{said}");
        for position in ["  the starting position\n", "  1. b3\n"] {
            assert!(said.contains(position), "{said}");
        }
        assert!(!said.contains("  1. a3\n"), "{said}");
        assert_eq!(moves_of(dir, name, "a3"), ["e5"]);
        assert!(moves_of(dir, name, "b3").is_empty());
        let said =
            String::from_utf8(crate::common::run(dir, &*format!("{line} --keep-one")).stderr);
        let said = said.unwrap();
        assert!(said.contains("2 moves kept by --keep-one"), "{said}");
        // The best move is kept, even if another one has a larger weight.
        assert_eq!(moves_of(dir, name, "b3"), ["h5"]);
        let header = ok(dir, &*format!("pgheader -s {name}"));
        assert!(header.contains("--max-loss 30 --keep-one"), "{header}");
        for position in ["", "a3"] {
            assert_eq!(moves_of(dir, name, position).len(), 1);
        }
    }
}

#[test]
fn a_message_names_the_most_played_moves_that_lose_too_much() {
    let dir = temp();
    let dir = dir.path();
    // 1. e4 is best. Each of the other moves loses a pawn or more, and was played in as many games as its number says.
    let moves = [
        ("a3", 2),
        ("b3", 3),
        ("f3", 4),
        ("g4", 5),
        ("h4", 6),
        ("h3", 7),
    ];
    let evals = moves.map(|(mv, _)| format!("[A \"\"]\n\n1. {mv} {{ [%eval -1.0] }} *\n\n"));
    fs::write(
        dir.join("evals.pgn"),
        format!("1. e4 {{ [%eval 0.3] }} *\n\n{}", evals.concat()),
    )
    .unwrap();
    ok(dir, "evals -q --out my.evals evals.pgn");
    let games = moves
        .map(|(mv, games)| format!("[Result \"1/2-1/2\"]\n\n1. {mv} 1/2-1/2\n\n").repeat(games));
    let best = "[Result \"1/2-1/2\"]\n\n1. e4 1/2-1/2\n\n".repeat(73);
    fs::write(dir.join("games.pgn"), games.concat() + &best).unwrap();
    ok(
        dir,
        "make-book -q games.pgn --min-game 1 --no-header --bin all.bin",
    );
    // No line reaches this position.
    let mut book = fs::read(dir.join("all.bin")).unwrap();
    book.extend_from_slice(&[
        255, 255, 255, 255, 255, 255, 255, 255, 3, 28, 0, 1, 0, 0, 0, 0,
    ]);
    fs::write(dir.join("all.bin"), book).unwrap();
    let filter = "filter all.bin --out kept.bin --evals my.evals --max-loss 60";
    let said = String::from_utf8(crate::common::run(dir, filter).stderr).unwrap();
    let expected = "6 moves left out by --max-loss, with 26.7% of the weight of all moves; the moves with the largest \
                    weights:\n  1. h3  weight 7, 7.0%, loses 130 centipawns\n  1. h4  weight 6, 6.0%, loses 130 \
                    centipawns\n  1. g4  weight 5, 5.0%, loses 130 centipawns\n  1. f3  weight 4, 4.0%, loses 130 \
                    centipawns\n  1. b3  weight 3, 3.0%, loses 130 centipawns\n1 move kept, because no line of the \
                    book reaches its position: polybook filter --reachable leaves such moves out\nkept.bin: 2 entries";
    assert!(said.contains(expected), "{said}");
    let said = crate::common::run(dir, &*format!("{filter} --reachable"));
    let said = String::from_utf8(said.stderr).unwrap();
    assert!(!said.contains("no line of the book"), "{said}");
    assert!(said.contains("kept.bin: 1 entry"), "{said}");
}

#[test]
fn moves_that_lose_too_much_are_left_out() {
    let dir = temp();
    let dir = dir.path();
    with_losing_moves(dir);
    let make = "make-book -q games.pgn --min-game 1";
    ok(dir, &*format!("{make} --bin all.bin --obs all.obs.db3"));
    let options = "--evals my.evals --max-loss 40";
    let made = ok_json(dir, &*format!("{make} --bin made.bin {options} --json"));
    let filtered = ok_json(
        dir,
        &*format!("filter -q all.bin --out filtered.bin {options} --json"),
    );
    let converted = ok_json(
        dir,
        &*format!("convert -q all.obs.db3 converted.bin --min-game 1 {options} --json"),
    );
    // Six of the 15 moves have evaluations: 1. e4, d4 and f3, 1... e5 and f6 after 1. e4, and the mate. Two of them
    // lose too much.
    let losses = serde_json::json!({
        "left_out": 2,
        "left_out_share": 12.5,
        "heaviest": [
            {"line": "1. f3", "weight": 1, "share": 20.0, "loss": 135},
            {"line": "1. e4 f6", "weight": 1, "share": 50.0, "loss": 200},
        ],
        "unevaluated": 9,
        "unreached": 0,
        "kept": 0,
        "emptied": 0,
        "emptied_after": [],
    });
    assert_eq!(made["book"]["losses"], losses, "{made}");
    assert_eq!(filtered["losses"], losses, "{filtered}");
    assert_eq!(converted["losses"], losses, "{converted}");
    for book in ["made.bin", "filtered.bin", "converted.bin"] {
        assert_eq!(moves_of(dir, book, ""), ["c4", "d4", "e4"], "{book}");
        assert_eq!(moves_of(dir, book, "e4"), ["e5"], "{book}");
        assert_eq!(moves_of(dir, book, "f3 e5 g4"), ["Qh4#"], "{book}");
    }
    let header = ok(dir, "pgheader -s made.bin");
    assert!(header.contains("--max-loss 40"), "{header}");
    let header = ok(dir, "pgheader -s filtered.bin");
    assert!(header.contains("--max-loss 40"), "{header}");
    // The book is the same as with counts from which nothing is dropped.
    ok(
        dir,
        &*format!("{make} --bin wide.bin --evals my.evals --max-loss 200 --no-header"),
    );
    ok(dir, &*format!("{make} --bin plain.bin --no-header"));
    let [wide, plain] = ["wide.bin", "plain.bin"].map(|book| fs::read(dir.join(book)).unwrap());
    assert!(wide == plain);
    let again = "filter -q filtered.bin --out again.bin --evals my.evals --max-loss 40";
    ok(dir, again);
    assert_eq!(
        crate::common::records(&dir.join("again.bin")),
        crate::common::records(&dir.join("filtered.bin"))
    );
    let output = crate::common::run(dir, &*format!("filter all.bin --out said.bin {options}"));
    let said = String::from_utf8(output.stderr).unwrap();
    let line = "9 moves not judged by --max-loss without an evaluation: polybook evals --engine PROGRAM --positions BOOK --out STORE \
                evaluates the positions of a book\n";
    assert!(said.contains(line), "{said}");
    refused(
        dir,
        &[
            ("filter all.bin --out x.bin --max-loss 40", 2, "--evals"),
            (
                "filter all.bin --out x.bin --evals my.evals",
                2,
                "--max-loss",
            ),
            (
                "make-book games.pgn --obs x.obs.db3 --evals my.evals --max-loss 4",
                2,
                "--max-loss",
            ),
            (
                "convert all.obs.db3 x.csv --evals my.evals --max-loss 4",
                2,
                "--max-loss",
            ),
            (
                "filter all.bin --out x.bin --evals games.pgn --max-loss 4",
                1,
                "not a store",
            ),
        ],
    );
}

/// A fake engine whose evaluations depend on the position. It crashes if Black is to move and may castle, and hangs if
/// Black may not. It prints garbage if White has only the castling rights KQ, and prints without end if White has only
/// K. It appends each position to a file.
#[cfg(unix)]
const ENGINE: &str = r#"#!/bin/sh
while read -r word rest; do
  case "$word" in
    uci) echo "rubbish"; echo "id name Made up 1"; echo "option name Hash type spin"; echo uciok;;
    setoption) echo "$rest" >> options;;
    isready) echo readyok;;
    position) fen="$rest";;
    go)
      echo "$fen" >> asked
      if [ -e kill ] && [ "$(wc -l < asked)" -ge 3 ]; then rm kill; kill -9 "$PPID"; sleep 9; fi
      if [ -e interrupt ] && [ "$(wc -l < asked)" -ge 3 ]; then rm interrupt; kill -INT "$PPID"; sleep 9; fi
      case "$fen" in
        *" b KQkq "*) exit 3;;
        *" w - "*) sleep 9;;
        *" w KQ "*) echo "info score cp what"; head -c 99999 /dev/zero; echo; echo "bestmove e2e4";;
        *" w K "*) yes "info depth 1 nodes 2";;
        *) echo "info depth 12 multipv 1 score cp ${#fen} nodes 1001 pv e2e4"; echo "info depth 13 score cp 9 lowerbound nodes 1002"
           echo "bestmove e2e4";;
      esac;;
    quit) exit;;
  esac
done
"#;

#[cfg(unix)]
fn with_engine(dir: &Path, positions: &[&str]) {
    use std::os::unix::fs::PermissionsExt;
    let path = dir.join("engine.sh");
    fs::write(&path, ENGINE).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    fs::write(dir.join("positions.epd"), positions.join("\n")).unwrap();
}

#[cfg(unix)]
const PLAIN: [&str; 4] = [
    "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq -",
    "rnbqkbnr/pppp1ppp/8/4p3/4P3/8/PPPP1PPP/RNBQKBNR w KQkq - bm Nf3;",
    "rnbqkbnr/pppp1ppp/8/4p3/4P3/8/PPPPKPPP/RNBQ1BNR b kq -",
    "r1bqkbnr/pppp1ppp/2n5/4p3/4P3/5N2/PPPP1PPP/RNBQKB1R w KQkq -",
];

#[cfg(unix)]
#[test]
fn an_engine_that_fails_costs_one_position() {
    let dir = temp();
    let failing = [
        "rnbqkbnr/pppppppp/8/8/4P3/8/PPPP1PPP/RNBQKBNR b KQkq -",
        "8/8/8/8/8/4k3/8/R3K3 w - -",
        "4k3/8/8/8/8/8/8/R3K2R w KQ -",
        "4k3/8/8/8/8/8/8/4K2R w K -",
        // A position in which the game is over, given twice.
        "k7/1Q6/1K6/8/8/8/8/8 b - -",
        PLAIN[0],
    ];
    let mut positions = PLAIN.to_vec();
    failing
        .iter()
        .enumerate()
        .for_each(|(at, epd)| positions.insert((2 * at).min(positions.len()), epd));
    with_engine(dir.path(), &positions);
    let line = "evals --out my.evals --engine ./engine.sh --nodes 1000 --jobs 1 --time-limit 1 --positions positions.epd \
        --option Hash=16 --json";
    let report = ok_json(dir.path(), line);
    let engine = &report["engine"];
    assert_eq!(engine["name"], "Made up 1", "{report}");
    let numbers = ["evaluated", "known", "failed"].map(|fact| engine[fact].as_u64().unwrap());
    assert_eq!(numbers, [4, 0, 4], "{report}");
    let reasons = [
        "the engine ended: exit status: 3",
        "the engine did not answer within 1 s",
        "the engine",
        "the engine did not answer within 1 s",
    ];
    for ((failed, reason), epd) in engine["described"]
        .as_array()
        .unwrap()
        .iter()
        .zip(reasons)
        .zip(failing)
    {
        assert!(
            failed["reason"].as_str().unwrap().contains(reason),
            "{failed}"
        );
        assert!(failed["fen"].as_str().unwrap().starts_with(epd), "{failed}");
    }
    let options = fs::read_to_string(dir.path().join("options")).unwrap();
    assert_eq!(
        options.lines().collect::<Vec<_>>(),
        ["name Hash value 16"; 5]
    );
    assert!(!dir.path().join("my.evals.journal").exists());
    let evals = Evals::open(dir.path().join("my.evals")).unwrap();
    assert_eq!(evals.origins(), ["Made up 1"]);
    let black = polybook::position::parse_fen(PLAIN[2]).unwrap();
    let found = evals.of_position(&black).unwrap().unwrap();
    assert!(
        found.score < polybook::evals::Score::centipawns(0)
            && (found.depth, found.nodes) == (12, 1002),
        "{found:?}"
    );
    // Existing evaluations with as many nodes are kept, and not requested again.
    let again = ok_json(
        dir.path(),
        &*line
            .replace("positions.epd", "some.epd")
            .replace("--time-limit 1", &{
                fs::write(dir.path().join("some.epd"), PLAIN.join("\n")).unwrap();
                "--time-limit 2".to_owned()
            }),
    );
    assert_eq!(
        (&again["engine"]["known"], &again["engine"]["evaluated"]),
        (&4.into(), &0.into()),
        "{again}"
    );
    assert_eq!(again["positions"], 4);
    let more = ok_json(
        dir.path(),
        &*line
            .replace("positions.epd", "some.epd")
            .replace("1000", "5000"),
    );
    assert_eq!(more["engine"]["evaluated"], 4, "{more}");
    fs::write(dir.path().join("bad.epd"), failing[0]).unwrap();
    let line = "evals --out x.evals --engine ./engine.sh --positions bad.epd --jobs 1";
    for nodes in ["10", "20"] {
        let error = fails(dir.path(), &format!("{line} --nodes {nodes}"), 1);
        assert!(
            error.contains("; failed: rnbqkbnr/pppppppp/8/8/4P3/8/"),
            "{error}"
        );
    }
    for (engine, says) in [
        ("./missing", "cannot start the engine"),
        ("true", "the engine ended"),
        ("cat", "did not answer"),
        ("yes", "did not answer"),
    ] {
        let line =
            format!("evals --out x.evals --engine {engine} --positions some.epd --time-limit 1");
        let error = fails(dir.path(), &*line, 1);
        assert!(error.contains(says), "{error}");
    }
    refused(
        dir.path(),
        &[
            ("evals --out x.evals --engine cat", 2, "--positions"),
            ("evals --out x.evals --nodes 5", 2, "--engine"),
            (
                "evals --out my.epd --engine cat --positions some.epd",
                2,
                "store",
            ),
            (
                "evals --out - --engine cat --positions some.epd",
                2,
                "--out",
            ),
            (
                "evals --out x --engine cat --positions some.epd --option Hash",
                2,
                "Hash=64",
            ),
        ],
    );
}

#[cfg(unix)]
fn program(path: &Path, lines: &str) {
    use std::os::unix::fs::PermissionsExt;
    fs::write(path, format!("#!/bin/sh\n{lines}\n")).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}

/// An engine that does not read, answers before a request, or lists options without end costs at most its time limit.
#[cfg(unix)]
#[test]
fn an_engine_that_violates_the_protocol_fails() {
    let dir = temp();
    fs::write(dir.path().join("some.epd"), PLAIN[..2].join("\n")).unwrap();
    let flood = "readyok\\ninfo depth 5 score cp 10 nodes 100\\nbestmove e2e4";
    program(
        &dir.path().join("deaf.sh"),
        &format!("echo uciok\nexec yes \"$(printf '{flood}')\""),
    );
    fs::write(dir.path().join("many.epd"), epds(7, 300)).unwrap();
    program(
        &dir.path().join("slow.sh"),
        "read -r line\necho uciok\nexec sleep 600",
    );
    program(
        &dir.path().join("yes.sh"),
        "exec yes \"option name $(head -c 300 /dev/zero | tr '\\0' x) type check\"",
    );
    let long = format!("X={}", "y".repeat(100_000));
    for (engine, says) in [
        ("./slow.sh", "the engine did not answer within 3 s"),
        ("./yes.sh", "the engine lists more than 4096 options"),
    ] {
        let line = "evals --out x.evals --positions some.epd --jobs 1 --time-limit 3 --engine";
        let mut arguments: Vec<&str> = line.split(' ').collect();
        arguments.extend([engine, "--option", &long]);
        let error = fails(dir.path(), &arguments[..], 1);
        assert!(error.contains(says), "{engine}: {error}");
        // The engine evaluated no position, so there is no journal.
        assert!(!dir.path().join("x.evals.journal").exists());
    }
    let line = "evals --out x.evals --positions many.epd --jobs 1 --engine ./deaf.sh --option";
    let mut arguments: Vec<&str> = line.split(' ').collect();
    arguments.push(&long);
    let said = crate::common::run(dir.path(), &arguments[..]);
    let said = String::from_utf8(said.stderr).unwrap();
    let reasons = ["sent a move before it was asked for one", "does not read"];
    assert!(reasons.iter().any(|reason| said.contains(reason)), "{said}");
}

/// An engine that a script starts ends with the script.
#[cfg(unix)]
#[test]
fn an_engine_ends_with_what_it_started() {
    let dir = temp();
    fs::write(dir.path().join("some.epd"), PLAIN[..1].join("\n")).unwrap();
    program(&dir.path().join("script.sh"), "./engine.sh\necho ended");
    program(
        &dir.path().join("engine.sh"),
        "echo $$ >> processes\nread -r line\necho uciok\nexec sleep 600",
    );
    let line =
        "evals --out x.evals --positions some.epd --engine ./script.sh --jobs 1 --time-limit 1";
    let error = fails(dir.path(), line, 1);
    assert!(error.contains("did not answer within 1 s"), "{error}");
    let processes = fs::read_to_string(dir.path().join("processes")).unwrap();
    assert!(processes.lines().count() > 0);
    for process in processes.lines() {
        crate::common::until("the engine has ended", || crate::common::has_ended(process));
    }
}

/// Evaluations of the engine replace insufficient ones, so the next run does not request them again.
#[cfg(unix)]
#[test]
fn what_is_deep_enough_is_not_asked_for_again() {
    let dir = temp();
    with_engine(dir.path(), &PLAIN[..3]);
    // A search of 4096 nodes is at least 12 half-moves deep.
    let known = [(30, 17), (10, 18), (11, 19)];
    let known = known.iter().zip(PLAIN).map(|((depth, ce), epd)| {
        let position = epd.split(" bm").next().unwrap();
        format!("{position} acd {depth}; ce {ce};\n")
    });
    fs::write(dir.path().join("known.epd"), known.collect::<String>()).unwrap();
    ok(dir.path(), "evals -q --out my.evals known.epd");
    let engine = fs::read_to_string(dir.path().join("engine.sh")).unwrap();
    let engine = engine
        .replace("depth 12 ", "depth 9 ")
        .replace("100", "500");
    fs::write(dir.path().join("engine.sh"), engine).unwrap();
    let line = "evals --json --out my.evals --engine ./engine.sh --nodes 4096 --jobs 1 --positions positions.epd";
    for expected in [[2, 1], [0, 3]] {
        let report = ok_json(dir.path(), line);
        let numbers = ["evaluated", "known"].map(|fact| report["engine"][fact].as_u64().unwrap());
        assert_eq!(numbers, expected, "{report}");
    }
}

/// Lichess omits the en passant square if the capturing pawn is pinned, but the keys of games include it.
#[test]
fn a_pinned_pawn_hides_no_evaluation() {
    let dir = temp();
    let path = |name: &str| dir.path().join(name);
    let epds = "4k3/8/8/8/3Pp3/8/8/K3R3 b - - acd 20; ce 55;\n4k3/8/8/8/3Pp3/8/8/K3R3 b - d3 acd 10; ce 77;\n";
    fs::write(path("ep.epd"), epds).unwrap();
    let game = "[FEN \"4k3/8/8/8/4p3/8/3P4/K3R3 w - - 0 1\"]\n\n1. d4 Kd7 *\n";
    fs::write(path("ep.pgn"), game).unwrap();
    let report = ok_json(dir.path(), "evals --json --out ep.evals ep.epd");
    assert_eq!(report["positions"], 1, "{report}");
    ok(
        dir.path(),
        "make-book -q ep.pgn --min-game 1 --explorer ep.idx",
    );
    let fen = "4k3/8/8/8/4p3/8/3P4/K3R3 w - - 0 1";
    let line = ["moves", "ep.idx", "--evals", "ep.evals", "--fen", fen];
    let shown = ok(dir.path(), &line);
    let mv = shown.lines().find(|line| line.starts_with("d4 "));
    assert!(mv.is_some_and(|line| line.contains("-0.55")), "{shown}");
}

#[cfg(unix)]
#[test]
fn positions_of_an_engine_are_bounded_by_memory() {
    let dir = temp();
    with_engine(dir.path(), &[]);
    fs::write(dir.path().join("many.epd"), epds(3, 2000)).unwrap();
    ok(dir.path(), "evals -q --out many.evals many.epd");
    for file in ["many.epd", "many.evals"] {
        let line =
            format!("evals --out x.evals --engine ./engine.sh --positions {file} --memory 64KiB");
        let error = fails(dir.path(), &*line, 1);
        assert!(
            error.contains("positions to evaluate: use a larger --memory"),
            "{error}"
        );
    }
}

#[cfg(unix)]
#[test]
fn a_run_that_was_killed_goes_on() {
    let dir = temp();
    with_engine(dir.path(), &PLAIN);
    let line = "evals -q --out my.evals --engine ./engine.sh --nodes 1000 --jobs 1 --positions positions.epd";
    let asked = || {
        let text = fs::read_to_string(dir.path().join("asked")).unwrap_or_default();
        let _ = fs::remove_file(dir.path().join("asked"));
        text.lines().count()
    };
    ok(dir.path(), line);
    assert_eq!(asked(), 4);
    let whole = fs::read(dir.path().join("my.evals")).unwrap();
    fs::remove_file(dir.path().join("my.evals")).unwrap();
    fs::write(dir.path().join("interrupt"), "").unwrap();
    let interrupted = fails(dir.path(), line, 130);
    assert_eq!(
        interrupted,
        "polybook: interrupted; my.evals.journal keeps the evaluations: repeat the command to continue\n"
    );
    assert_eq!(asked(), 3);
    fs::remove_file(dir.path().join("my.evals.journal")).unwrap();
    fs::write(dir.path().join("kill"), "").unwrap();
    let killed = crate::common::run(dir.path(), line);
    assert_eq!(killed.status.code(), None, "{killed:?}");
    assert_eq!(asked(), 3);
    assert!(!dir.path().join("my.evals").exists());
    let error = fails(dir.path(), &*line.replace("1000", "2000"), 1);
    assert!(
        error.contains(
            "journal of a run with another engine, other nodes or other options: repeat that run, or remove the file"
        ),
        "{error}"
    );
    let continued = crate::common::run(dir.path(), &*line.replace("-q ", ""));
    let said = String::from_utf8(continued.stderr).unwrap();
    assert!(
        said.contains("2 evaluations taken from the journal of an interrupted run\n"),
        "{said}"
    );
    // The third position, which was in progress, and the fourth one.
    assert_eq!(asked(), 2);
    assert!(fs::read(dir.path().join("my.evals")).unwrap() == whole);
    assert!(!dir.path().join("my.evals.journal").exists());
}

/// A full disk, simulated by a limit on file sizes, ends the run. The evaluations of the engine are kept.
#[cfg(unix)]
#[test]
fn a_full_disk_keeps_what_the_engine_said() {
    let dir = temp();
    with_engine(dir.path(), &[]);
    let engine = fs::read_to_string(dir.path().join("engine.sh")).unwrap();
    let quiet = engine.replace("echo \"$fen\" >> asked", ":");
    fs::write(dir.path().join("engine.sh"), quiet).unwrap();
    // Only positions that the engine evaluates.
    let epds = epds(7, 300);
    let lines = epds
        .lines()
        .filter(|line| line.contains(" b kq ") || line.contains(" w KQkq "))
        .take(40);
    fs::write(
        dir.path().join("positions.epd"),
        lines.collect::<Vec<_>>().join("\n"),
    )
    .unwrap();
    let line = "evals --json --out my.evals --engine ./engine.sh --nodes 1000 --jobs 1 --positions positions.epd";
    let limited = std::process::Command::new("sh")
        .args(["-c", "ulimit -f 1; exec \"$@\"", "sh"])
        .arg(env!("CARGO_BIN_EXE_polybook"))
        .args(line.split_whitespace())
        .current_dir(dir.path())
        .output()
        .unwrap();
    let error = String::from_utf8_lossy(&limited.stderr);
    assert_eq!(limited.status.code(), Some(1), "{error}");
    assert!(error.contains("cannot write my.evals.journal"), "{error}");
    assert!(!dir.path().join("my.evals").exists());
    let report = ok_json(dir.path(), line);
    let known = report["engine"]["known"].as_u64().unwrap();
    assert!(known > 5, "{report}");
    assert_eq!(
        known + report["engine"]["evaluated"].as_u64().unwrap(),
        report["positions"].as_u64().unwrap(),
        "{report}"
    );
}

/// A store keeps its evaluations unless `--force` is given.
#[test]
fn a_store_is_added_to() {
    let dir = temp();
    let dir = dir.path();
    fs::write(dir.join("many.epd"), epds(5, 600)).unwrap();
    fs::write(
        dir.join("few.pgn"),
        "1. a3 { [%eval 0.1] } h5 { [%eval 0.2,99] } 2. a4 *\n",
    )
    .unwrap();
    ok(dir, "evals -q --out my.evals many.epd");
    let before = Evals::open(dir.join("my.evals")).unwrap().len();
    ok(dir, "evals -q --out both.evals many.epd few.pgn");
    ok(dir, "evals -q --out my.evals few.pgn");
    let added = Evals::open(dir.join("my.evals")).unwrap();
    assert!(added.len() > before && before > 100, "{before}");
    let both = Evals::open(dir.join("both.evals")).unwrap();
    assert_eq!(added.len(), both.len());
    let black = from_text(None, Some("a3 h5")).unwrap();
    assert_eq!(added.of_position(&black).unwrap().unwrap().depth, 99);
    ok(dir, "evals -q --force --out my.evals few.pgn");
    assert_eq!(Evals::open(dir.join("my.evals")).unwrap().len(), 2);
}

/// A command that looks up a modified store fails; it does not make a different book.
#[test]
fn a_changed_bit_in_a_store_is_noticed_by_look_ups() {
    let dir = temp();
    let dir = dir.path();
    with_evals(dir);
    let games = crate::common::sample("famous.pgn");
    let games = games.display();
    ok(
        dir,
        &format!("make-book -q {games} --min-game 1 --bin a.bin"),
    );
    let mut bytes = fs::read(dir.join("my.evals")).unwrap();
    // Flip a bit in the score of the first record.
    bytes[44 + 33] ^= 1;
    fs::write(dir.join("my.evals"), bytes).unwrap();
    for line in [
        format!("make-book -q {games} --min-game 1 --bin b.bin --evals my.evals --max-loss 50"),
        "filter -q a.bin --out b.bin --evals my.evals --max-loss 50".to_owned(),
        "filter -q a.bin --out b.bin --evals my.evals --max-loss 50 --memory 64KiB".to_owned(),
        "show a.bin --evals my.evals".to_owned(),
    ] {
        let error = fails(dir, &*line, 1);
        assert!(
            error.contains("my.evals: this store of evaluations is damaged: the checksum of the 264 bytes at byte 44 differs"),
            "{line}: {error}"
        );
        assert!(!dir.join("b.bin").exists(), "{line}");
    }
}

/// The positions of a book with a wrong checksum are not evaluated.
#[cfg(unix)]
#[test]
fn positions_of_a_changed_book_are_refused() {
    let dir = temp();
    with_engine(dir.path(), &[]);
    let games = crate::common::sample("famous.pgn");
    let games = games.display();
    ok(
        dir.path(),
        &format!("make-book -q {games} --min-game 1 --bin a.bin"),
    );
    let mut bytes = fs::read(dir.path().join("a.bin")).unwrap();
    let last = bytes.len() - 5;
    bytes[last] ^= 1;
    fs::write(dir.path().join("a.bin"), bytes).unwrap();
    let line = "evals --out x.evals --engine ./engine.sh --positions a.bin";
    let error = fails(dir.path(), line, 1);
    assert!(
        error.contains("a.bin: the checksum in the header does not match"),
        "{error}"
    );
    assert!(!dir.path().join("asked").exists());
}

/// If an engine no longer works for any position, the run ends. The store contains what it evaluated.
#[cfg(unix)]
#[test]
fn an_engine_that_dies_at_every_search_but_the_first() {
    let dir = temp();
    let positions = epds(9, 200);
    with_engine(dir.path(), &positions.lines().collect::<Vec<_>>());
    let engine = r#"
while read -r word rest; do
  case "$word" in
    uci) echo uciok;;
    isready) echo readyok;;
    go) [ -e asked ] && exit 3; touch asked; echo "info depth 9 score cp 5 nodes 99"; echo "bestmove e2e4";;
  esac
done"#;
    program(&dir.path().join("engine.sh"), engine);
    for positions in ["positions.epd", "few.epd"] {
        let few: Vec<&str> = PLAIN[..3].to_vec();
        fs::write(dir.path().join("few.epd"), few.join("\n")).unwrap();
        let _ = fs::remove_file(dir.path().join("asked"));
        let line = format!(
            "evals --force --out my.evals --engine ./engine.sh --nodes 50 --jobs 1 --positions {positions}"
        );
        let error = fails(dir.path(), &*line, 1);
        let says = match positions {
            "few.epd" => "evaluated none of the last 2 positions",
            _ => "evaluated none of the last 21 positions",
        };
        assert!(
            error.contains(says)
                && error.contains(
                    "the engine ended: exit status: 3; my.evals contains all other evaluations"
                ),
            "{error}"
        );
        assert_eq!(Evals::open(dir.path().join("my.evals")).unwrap().len(), 1);
        assert!(!dir.path().join("my.evals.journal").exists());
    }
}

/// While polybook is suspended, the time limit of the engine is suspended, too.
#[cfg(target_os = "linux")]
#[test]
fn an_answer_that_came_while_polybook_was_stopped_counts() {
    let dir = temp();
    with_engine(dir.path(), &PLAIN[..1]);
    // The engine suspends polybook for longer than the time limit, and answers meanwhile.
    let engine = r#"
while read -r word rest; do
  case "$word" in
    uci) echo uciok;;
    isready) echo readyok;;
    go)
      kill -STOP "$PPID"
      for line in $(seq 300); do echo "info depth $line score cp 5 nodes 99"; done
      echo "bestmove e2e4"
      sleep 2
      kill -CONT "$PPID";;
  esac
done"#;
    program(&dir.path().join("engine.sh"), engine);
    let line = "evals --json --out my.evals --engine ./engine.sh --nodes 50 --jobs 1 --time-limit 1 --positions positions.epd";
    let report = ok_json(dir.path(), line);
    assert_eq!(report["engine"]["evaluated"], 1, "{report}");
}

/// The journal of an output with a name of the greatest length has a shorter name. A journal is not created in a
/// directory in which it could not be removed.
#[cfg(target_os = "linux")]
#[test]
fn a_journal_can_always_be_named_and_removed() {
    let dir = temp();
    with_engine(dir.path(), &PLAIN[..3]);
    let line = "evals --positions positions.epd --engine ./engine.sh --nodes 1000 --jobs 1 --out";
    let name = "n".repeat(249) + ".evals";
    fs::write(dir.path().join("kill"), "").unwrap();
    let killed = crate::common::run(dir.path(), &format!("{line} {name}"));
    assert_eq!(killed.status.code(), None, "{killed:?}");
    let journal = |dir: &Path| {
        let names = fs::read_dir(dir).unwrap();
        let mut names = names.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        names.find(|name| name.ends_with(".journal"))
    };
    let left = journal(dir.path()).unwrap();
    assert!(left.starts_with(&"n".repeat(100)), "{left}");
    ok(dir.path(), &format!("{line} {name}"));
    assert_eq!(journal(dir.path()), None);
    assert!(dir.path().join(name).exists());

    std::os::unix::fs::symlink("diary", dir.path().join("my.evals.journal")).unwrap();
    let error = fails(dir.path(), &format!("{line} my.evals"), 1);
    assert!(
        error.contains("remove it, or choose another output"),
        "{error}"
    );
    fs::remove_file(dir.path().join("my.evals.journal")).unwrap();
    ok(dir.path(), &format!("{line} my.evals"));
}

/// Whatever has the journal's name at the end of a run is kept if it is not the journal. The error says that the output
/// is complete.
#[cfg(unix)]
#[test]
fn a_file_in_the_place_of_the_journal_is_kept() {
    for (replace, is_kept) in [
        ("mkdir my.evals.journal", "test -d my.evals.journal"),
        (
            "echo diary > my.evals.journal",
            "grep -q diary my.evals.journal",
        ),
    ] {
        let dir = temp();
        with_engine(dir.path(), &PLAIN[..1]);
        let engine = format!(
            r#"
while read -r word rest; do
  case "$word" in
    uci) echo uciok;;
    isready) echo readyok;;
    go)
      rm my.evals.journal; {replace}
      echo "info depth 9 score cp 5 nodes 99"; echo "bestmove e2e4";;
  esac
done"#
        );
        program(&dir.path().join("engine.sh"), &engine);
        let line = "evals --out my.evals --engine ./engine.sh --nodes 50 --jobs 1 --positions positions.epd";
        let error = fails(dir.path(), line, 1);
        assert!(
            error.contains("my.evals.journal: this file is no longer the journal of this run")
                && error.contains("my.evals is complete"),
            "{error}"
        );
        let mut kept = std::process::Command::new("sh");
        let kept = kept.args(["-c", is_kept]).current_dir(dir.path()).status();
        assert!(kept.unwrap().success(), "{replace}");
        assert_eq!(Evals::open(dir.path().join("my.evals")).unwrap().len(), 1);
    }
}

/// The error names the reason why polybook closed the output of an engine.
#[cfg(unix)]
#[test]
fn an_engine_that_writes_an_endless_line_is_described() {
    let dir = temp();
    with_engine(dir.path(), &PLAIN[..1]);
    let engine = r#"
while read -r word rest; do
  case "$word" in
    uci) exec yes | tr -d '\n';;
  esac
done"#;
    program(&dir.path().join("engine.sh"), engine);
    let line =
        "evals --out my.evals --engine ./engine.sh --nodes 50 --jobs 1 --positions positions.epd";
    let error = fails(dir.path(), line, 1);
    assert!(
        error.contains("the engine wrote a line of more than 65536 bytes"),
        "{error}"
    );
}

/// A store to which an engine's evaluations will be added cannot be replaced meanwhile by any run.
#[cfg(unix)]
#[test]
fn a_store_is_not_replaced_while_an_engine_works() {
    let dir = temp();
    with_engine(dir.path(), &PLAIN[..1]);
    fs::write(dir.path().join("old.pgn"), "1. c4 { [%eval 0.1] } *\n").unwrap();
    fs::write(dir.path().join("new.pgn"), "1. a3 { [%eval 0.1] } *\n").unwrap();
    ok(dir.path(), "evals -q --out my.evals old.pgn");
    // Another run starts while the engine searches. An earlier run ends while the engine starts.
    let engine = format!(
        r#"
other="{} evals -q --out my.evals new.pgn"
while read -r word rest; do
  case "$word" in
    uci) $other; echo uciok;;
    isready) echo readyok;;
    go) $other 2> refused; echo "info depth 9 score cp 5 nodes 99"; echo "bestmove e2e4";;
  esac
done"#,
        env!("CARGO_BIN_EXE_polybook")
    );
    program(&dir.path().join("engine.sh"), &engine);
    let line = "evals -q --out my.evals --engine ./engine.sh --nodes 50 --jobs 1 --positions positions.epd";
    ok(dir.path(), line);
    let refused = fs::read_to_string(dir.path().join("refused")).unwrap();
    assert!(refused.contains("another run"), "{refused}");
    // The positions after c4 and a3, and the one that the engine evaluated.
    assert_eq!(Evals::open(dir.path().join("my.evals")).unwrap().len(), 3);
}

/// Another engine searches deeper than the evaluations of the first engine in the store.
#[test]
fn glaurung_adds_to_what_stockfish_says() {
    let engines = ["stockfish", "glaurung"].map(|name| crate::common::program(&[name]));
    let [Some(stockfish), Some(glaurung)] = engines else {
        return;
    };
    let dir = temp();
    let games = crate::common::sample("famous.pgn");
    let line = format!(
        "make-book -q {} --suite a.epd --plies 3 --min-game 2",
        games.display()
    );
    ok(dir.path(), &*line);
    let exits = fs::read_to_string(dir.path().join("a.epd")).unwrap();
    let exits = exits.lines().count() as u64;
    let evaluated = |engine: &Path, nodes: u32| {
        let line = format!(
            "evals --out my.evals --positions a.epd --engine {} --nodes {nodes} --json",
            engine.display()
        );
        let report = ok_json(dir.path(), &*line);
        assert_eq!(report["positions"], exits, "{report}");
        let numbers = ["evaluated", "known", "failed"];
        numbers.map(|fact| report["engine"][fact].as_u64().unwrap())
    };
    assert_eq!(evaluated(&stockfish, 20), [exits, 0, 0]);
    assert_eq!(evaluated(&glaurung, 10), [0, exits, 0]);
    assert_eq!(evaluated(&glaurung, 9000), [exits, 0, 0]);
    let evals = Evals::open(dir.path().join("my.evals")).unwrap();
    assert!(evals.origins()[0].starts_with("Glaurung"), "{evals:?}");
    ok(dir.path(), "evals -q --out my.epd my.evals");
    let epd = fs::read_to_string(dir.path().join("my.epd")).unwrap();
    for line in epd.lines() {
        let pos = polybook::position::parse_fen(line.split(" acd").next().unwrap()).unwrap();
        let eval = evals.of_position(&pos).unwrap().unwrap();
        let pawns = eval.score.as_centipawns().unwrap();
        assert!(pawns.abs() < 250 && eval.depth > 3, "{line}");
    }
}

/// Consecutive failures lose their positions, and the run continues after them.
#[cfg(unix)]
#[test]
fn failures_in_a_row_cost_their_positions() {
    let dir = temp();
    let crash = "rnbqkbnr/pppppppp/8/8/4P3/8/PPPP1PPP/RNBQKBNR b KQkq -";
    let crashes: Vec<String> = (0..12)
        .map(|pawn| {
            crash.replacen(
                "8/8/4P3",
                &format!(
                    "8/{}/4P3",
                    [
                        "7P", "6P1", "5P2", "4P3", "3P4", "2P5", "1P6", "P7", "7p", "6p1", "5p2",
                        "4p3"
                    ][pawn]
                ),
                1,
            )
        })
        .collect();
    let mut positions = PLAIN[..1].to_vec();
    positions.extend(crashes.iter().map(String::as_str));
    positions.extend(&PLAIN[1..]);
    with_engine(dir.path(), &positions);
    let line =
        "evals --out my.evals --engine ./engine.sh --nodes 1000 --jobs 1 --positions positions.epd";
    let report = ok_json(dir.path(), &*format!("{line} --json"));
    let numbers = ["evaluated", "failed"].map(|fact| report["engine"][fact].as_u64().unwrap());
    assert_eq!(numbers, [4, 12], "{report}");
    // If no search succeeds, the error contains the reason.
    fs::write(dir.path().join("positions.epd"), crashes[..2].join("\n")).unwrap();
    let line = line.replace("my.evals", "other.evals");
    let error = fails(dir.path(), &*line, 1);
    assert!(
        error.contains("the engine ended: exit status: 3"),
        "{error}"
    );
    assert!(!dir.path().join("other.evals").exists());
}

#[cfg(unix)]
#[test]
fn positions_come_through_a_pipe() {
    let dir = temp();
    with_engine(dir.path(), &[]);
    let fifo = dir.path().join("positions.fifo");
    crate::common::make_fifo(&fifo);
    let writer = std::thread::spawn(move || fs::write(fifo, PLAIN.join("\n")));
    let line =
        "evals --json --out my.evals --engine ./engine.sh --nodes 1000 --positions positions.fifo";
    let report = ok_json(dir.path(), line);
    writer.join().unwrap().unwrap();
    assert_eq!(report["engine"]["evaluated"], 4, "{report}");
}

/// Positions may come through a pipe for hours, so an output that may not be replaced is refused before they are read.
#[cfg(unix)]
#[test]
fn an_output_is_refused_before_positions_are_read() {
    use std::io::Seek as _;

    let dir = temp();
    with_engine(dir.path(), &PLAIN);
    fs::write(dir.path().join("mine.evals"), "my notes\n").unwrap();
    // The program shares the offset of this file.
    let mut positions = fs::File::open(dir.path().join("positions.epd")).unwrap();
    let line = "evals --out mine.evals --engine ./engine.sh --positions -";
    let output = crate::common::polybook_in(dir.path())
        .args(line.split(' '))
        .stdin(positions.try_clone().unwrap())
        .output()
        .unwrap();
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(
        error.contains("mine.evals exists: remove it, or replace it with --force"),
        "{error}"
    );
    assert_eq!(positions.stream_position().unwrap(), 0);
    assert!(!dir.path().join("mine.evals.journal").exists());
}

/// The clocks of games influence an engine, but are not part of positions in the store.
#[cfg(unix)]
#[test]
fn an_engine_is_asked_without_the_clocks_of_games() {
    let dir = temp();
    with_engine(dir.path(), &[]);
    let game =
        "[FEN \"8/8/8/3k4/8/8/8/3KQ3 w - - 98 120\"]\n\n120. Qe2 (120. Qe3 Kc4 (120... --)) *\n";
    fs::write(dir.path().join("games.pgn"), game).unwrap();
    let line =
        "evals -q --out my.evals --engine ./engine.sh --nodes 1000 --jobs 1 --positions games.pgn";
    let error = fails(dir.path(), &*format!("{line} --option Hsah=64"), 1);
    assert!(
        error.contains("has no option Hsah: use one of Hash"),
        "{error}"
    );
    let report = ok_json(dir.path(), &*format!("{line} --json --option hash=1"));
    assert_eq!(report["engine"]["variations"], 2, "{report}");
    let asked = fs::read_to_string(dir.path().join("asked")).unwrap();
    assert_eq!(asked, "fen 8/8/8/3k4/8/8/4Q3/3K4 b - - 0 1\n");
}

#[test]
fn stockfish_evaluates_a_book_and_a_suite() {
    let Some(stockfish) = crate::common::program(&["stockfish"]) else {
        return;
    };
    let dir = temp();
    let games = crate::common::sample("famous.pgn");
    let games = games.display();
    let engine = format!(
        "--engine {} --nodes 3000 --option Threads=1",
        stockfish.display()
    );
    ok(
        dir.path(),
        &*format!(
            "make-book -q {games} --max-ply 4 --min-game 3 --bin a.bin --suite a.pgn --plies 3"
        ),
    );
    let evaluated = |file: &str, out: &str, more: &str| {
        let line = format!("evals --out {out} --positions {file} {engine} {more} --json");
        ok_json(dir.path(), &*line)["engine"]["evaluated"]
            .as_u64()
            .unwrap()
    };
    let book = ok_json(dir.path(), "info-book a.bin --json");
    let positions =
        book["white_positions"].as_u64().unwrap() + book["black_positions"].as_u64().unwrap();
    assert!(evaluated("a.bin", "one.evals", "--jobs 1") >= positions);
    evaluated("a.bin", "two.evals", "--jobs 3");
    // Every move of the book has an evaluation, that of the position after it.
    let filter = "filter a.bin --out b.bin --evals one.evals --max-loss 30000 --json";
    assert_eq!(ok_json(dir.path(), filter)["losses"]["unevaluated"], 0);
    // The number of engines does not affect their evaluations.
    let [one, two] =
        ["one.evals", "two.evals"].map(|name| fs::read(dir.path().join(name)).unwrap());
    assert!(one == two);
    let suite = fs::read_to_string(dir.path().join("a.pgn")).unwrap();
    let lines = suite.matches("[Event ").count() as u64;
    assert!(lines > 0 && evaluated("a.pgn", "suite.evals", "") == lines);
    assert_eq!(evaluated("a.pgn", "suite.evals", ""), 0);
    ok(dir.path(), "evals -q --out suite.epd suite.evals");
    let epd = fs::read_to_string(dir.path().join("suite.epd")).unwrap();
    for line in epd.lines() {
        let ce = line
            .split("ce ")
            .nth(1)
            .and_then(|rest| rest.split(';').next());
        let ce: i32 = ce.unwrap().parse().unwrap();
        assert!(ce.abs() < 250, "{line}");
    }
}

/// An engine that knows the best moves of a few positions. It ends like [`ENGINE`] if a file `kill` or `interrupt`
/// exists, and answers 1. d4 with an illegal move or dies if a file `illegal` or `dies` exists.
#[cfg(unix)]
const OPENING_ENGINE: &str = r#"#!/bin/sh
while read -r word rest; do
  case "$word" in
    uci) echo "id name Opener"; echo uciok;;
    isready) echo readyok;;
    position) fen="$rest";;
    go)
      echo "$fen" >> asked
      if [ -e kill ] && [ "$(wc -l < asked)" -ge 6 ]; then rm kill; kill -9 "$PPID"; sleep 9; fi
      if [ -e interrupt ] && [ "$(wc -l < asked)" -ge 6 ]; then rm interrupt; kill -INT "$PPID"; sleep 9; fi
      mv=a2a3
      case "$fen" in
        *"rnbqkbnr/pppp1ppp/8/4p3/4P3/8/PPPP1PPP/RNBQKBNR w"*) mv=g1f3;;
        *"rnbqkbnr/pppp1ppp/8/4p3/4P3/5N2/PPPP1PPP/RNBQKB1R b"*) mv=b8c6;;
        *"r1bqkbnr/pppp1ppp/2n5/4p3/4P3/5N2/PPPP1PPP/RNBQKB1R w"*) mv=f1b5;;
        *"rnbqkbnr/pppppppp/8/8/3P4/8/PPP1PPPP/RNBQKBNR b"*)
          mv=g8f6
          if [ -e illegal ]; then mv=g8g6; fi
          if [ -e dies ]; then exit 3; fi;;
        *"rnbqkb1r/pppppppp/5n2/8/3P4/8/PPP1PPPP/RNBQKBNR w"*) mv=c2c4;;
      esac
      case "$fen" in *" w "*) cp=20;; *) cp=-20;; esac
      echo "info depth 12 score cp $cp nodes 1001 pv $mv"; echo "bestmove $mv ponder e7e5";;
    quit) exit;;
  esac
done
"#;

#[cfg(unix)]
fn asked(dir: &Path) -> usize {
    let text = fs::read_to_string(dir.join("asked")).unwrap_or_default();
    let _ = fs::remove_file(dir.join("asked"));
    text.lines().count()
}

#[cfg(unix)]
#[test]
fn an_engine_continues_the_lines_of_a_book() {
    let dir = temp();
    let dir = dir.path();
    with_engine(dir, &[]);
    fs::write(dir.join("engine.sh"), OPENING_ENGINE).unwrap();
    let games = ["1. e4 e5", "1. d4"].map(|moves| format!("[Result \"1-0\"]\n\n{moves} 1-0\n\n"));
    let games = games.concat() + "[Result \"0-1\"]\n\n1. e4 e5 0-1\n";
    fs::write(dir.join("games.pgn"), games).unwrap();
    ok(dir, "make-book -q games.pgn --min-game 1 --bin book.bin");
    let line = "evals --out my.evals --engine ./engine.sh --nodes 1000 --jobs 1 --positions book.bin --json";
    // The start, the positions after 1. e4, 1... e5 and 1. d4, and two positions after each of the two ends.
    let report = ok_json(dir, &*format!("{line} --expand 2"));
    assert_eq!(
        (&report["engine"]["evaluated"], &report["positions"]),
        (&8.into(), &8.into())
    );
    assert_eq!(asked(dir), 8);
    let whole = fs::read(dir.join("my.evals")).unwrap();
    ok(
        dir,
        "filter -q book.bin --out long.bin --evals my.evals --expand 2 --weights evals",
    );
    for (line, moves) in [
        ("e4 e5", vec!["Nf3"]),
        ("e4 e5 Nf3", vec!["Nc6"]),
        ("e4 e5 Nf3 Nc6", vec![]),
        ("d4", vec!["Nf6"]),
        ("d4 Nf6", vec!["c4"]),
        ("d4 Nf6 c4", vec![]),
    ] {
        assert_eq!(moves_of(dir, "long.bin", line), moves, "{line}");
    }
    // The run searches no position again for its evaluation. To continue the lines by one more half-move, it asks the
    // engine for its move in two known positions.
    let again = ok_json(dir, &*format!("{line} --expand 2"));
    assert_eq!(
        (&again["engine"]["evaluated"], &again["engine"]["failed"]),
        (&0.into(), &0.into())
    );
    assert_eq!(asked(dir), 0);
    ok(dir, &*format!("{line} --expand 1 -q"));
    assert_eq!(asked(dir), 0);

    // Interrupted and killed runs continue, and end with the same store.
    for (sign, code) in [("interrupt", Some(130)), ("kill", None)] {
        fs::remove_file(dir.join("my.evals")).unwrap();
        fs::write(dir.join(sign), "").unwrap();
        let stopped = crate::common::run(dir, &*format!("{line} --expand 2"));
        assert_eq!(stopped.status.code(), code, "{stopped:?}");
        assert_eq!(asked(dir), 6);
        assert!(dir.join("my.evals.journal").exists());
        let report = ok_json(dir, &*format!("{line} --expand 2"));
        assert_eq!(report["engine"]["continued"], 5);
        // At most one position, the last one of the interrupted line, is searched for its move again.
        assert!((3..=4).contains(&asked(dir)), "{report}");
        assert!(fs::read(dir.join("my.evals")).unwrap() == whole, "{sign}");
    }

    // An illegal move and a dead engine cost one line. The next run continues the line.
    for (sign, reason, evaluated) in [
        ("illegal", "the engine's best move \"g8g6\" is not legal", 6),
        ("dies", "the engine ended: exit status: 3", 5),
    ] {
        fs::remove_file(dir.join("my.evals")).unwrap();
        fs::write(dir.join(sign), "").unwrap();
        let report = ok_json(dir, &*format!("{line} --expand 2"));
        let engine = &report["engine"];
        assert_eq!(
            (&engine["evaluated"], &engine["failed"]),
            (&evaluated.into(), &1.into()),
            "{report}"
        );
        let said = engine["described"][0]["reason"].as_str().unwrap();
        assert!(said.contains(reason), "{said}");
        fs::remove_file(dir.join(sign)).unwrap();
        ok(dir, &*format!("{line} --expand 2 -q"));
        assert!(fs::read(dir.join("my.evals")).unwrap() == whole, "{sign}");
    }
    refused(
        dir,
        &[
            ("evals --out x.evals games.pgn --expand 2", 2, "--engine"),
            (&format!("{line} --expand 0"), 2, "--expand"),
        ],
    );
}
