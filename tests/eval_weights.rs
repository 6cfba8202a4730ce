//! Weights that `--weights` computes from evaluations.

use std::{collections::BTreeMap, fs, path::Path};

use serde_json::json;

use polybook::{
    book::Entry,
    position::{BookMove, from_text, key},
};

use crate::common::{fails, ok, ok_json, records, refused, temp};

/// Returns the moves of a position in a book with their weights.
fn shown(dir: &Path, book: &str, line: &str) -> BTreeMap<String, u64> {
    let shown = ok_json(dir, &["show", book, "--json", "--moves", line][..]);
    let moves = shown["moves"].as_array().unwrap().iter();
    let weight = |mv: &serde_json::Value| mv["weight"].as_u64().unwrap();
    moves
        .map(|mv| (mv["san"].as_str().unwrap().to_owned(), weight(mv)))
        .collect()
}

fn weights<const N: usize>(moves: [(&str, u64); N]) -> BTreeMap<String, u64> {
    moves.map(|(mv, weight)| (mv.to_owned(), weight)).into()
}

/// Writes `games.pgn`, in which every move has as many games as its weight from results, and `my.evals`, which evaluates
/// only the ends of lines. By minimax, 1. e4 is worth 0.10, because Black answers 1... c5, and 1. d4 is worth 0.20.
/// 1. c4 has no value.
fn with_evaluated_ends(dir: &Path) {
    let game = |(moves, games): (&str, usize)| {
        format!("[Result \"1/2-1/2\"]\n\n{moves} 1/2-1/2\n\n").repeat(games)
    };
    let games = [
        ("1. e4 e5 2. Nf3 Nc6", 4),
        ("1. e4 c5 2. Nf3", 2),
        ("1. d4 d5", 10),
        ("1. c4 e5", 3),
    ];
    fs::write(dir.join("games.pgn"), games.map(game).concat()).unwrap();
    let evals = "1. e4 e5 2. Nf3 Nc6 {[%eval 0.30,20]} *\n\n[A \"\"]\n\n1. e4 c5 2. Nf3 {[%eval 0.10,20]} *\n\n\
        [A \"\"]\n\n1. d4 d5 {[%eval 0.20,20]} *\n";
    fs::write(dir.join("evals.pgn"), evals).unwrap();
    ok(dir, "evals -q --out my.evals evals.pgn");
}

#[test]
fn evaluations_at_the_ends_of_lines_weigh_the_first_moves() {
    let dir = temp();
    let dir = dir.path();
    with_evaluated_ends(dir);
    let make = "make-book -q games.pgn --min-game 1";
    ok(dir, &*format!("{make} --bin plain.bin --obs all.obs.db3"));
    let same = "--bin same.bin --weights results --max-loss 500 --evals my.evals --no-header";
    ok(dir, &*format!("{make} {same}"));
    assert_eq!(
        records(&dir.join("same.bin")),
        records(&dir.join("plain.bin"))
    );
    ok(dir, &*format!("{make} --bin results.bin --weights results"));
    assert!(fs::read(dir.join("results.bin")).unwrap() == fs::read(dir.join("plain.bin")).unwrap());
    assert_eq!(
        shown(dir, "plain.bin", ""),
        weights([("c4", 3), ("d4", 10), ("e4", 6)])
    );

    // Lichess's formula expects 51.84 % of 1. d4 and 50.92 % of 1. e4, so 1. e4 has the factor 2^-0.92 = 0.529. The two
    // moves share the weight 16, and 1. c4 keeps 3. After 1. e4, Black's moves share 1000, because both have values.
    // 1... e5 loses 1.838 %, so it has the factor 0.280.
    for (source, first, second) in [
        (
            "evals",
            [("c4", 3), ("d4", 11), ("e4", 5)],
            [("c5", 782), ("e5", 218)],
        ),
        (
            "both",
            [("c4", 3), ("d4", 10), ("e4", 3)],
            [("c5", 2), ("e5", 1)],
        ),
    ] {
        let options = format!("--evals my.evals --weights {source}");
        let made = ok_json(dir, &*format!("{make} --bin made.bin {options} --json"));
        let summary = json!({"evaluated": 8, "unevaluated": 2, "unreached": 0});
        assert_eq!(made["book"]["eval_weights"], summary);
        assert_eq!(shown(dir, "made.bin", ""), weights(first), "{source}");
        assert_eq!(shown(dir, "made.bin", "e4"), weights(second), "{source}");
        assert_eq!(shown(dir, "made.bin", "c4"), weights([("e5", 3)]));
        let header = ok(dir, "pgheader -s made.bin");
        assert!(header.contains(&format!("--weights {source}")), "{header}");
        assert!(header.contains("halved for each percent"), "{header}");
        let converted = ok_json(
            dir,
            &*format!("convert -q all.obs.db3 converted.bin --min-game 1 {options} --json"),
        );
        assert_eq!(converted["eval_weights"], summary);
        let filtered = ok_json(
            dir,
            &*format!("filter -q plain.bin --out filtered.bin {options} --json"),
        );
        assert_eq!(filtered["eval_weights"], summary);
        for book in ["converted.bin", "filtered.bin"] {
            assert_eq!(
                records(&dir.join(book)),
                records(&dir.join("made.bin")),
                "{book}"
            );
        }
        let line = format!("{make} --bin made.bin {options} --threads 1 --memory 1MiB");
        let bytes = fs::read(dir.join("made.bin")).unwrap();
        ok(dir, &*line);
        assert!(fs::read(dir.join("made.bin")).unwrap() == bytes);
        // The values decide which moves lose too much: 1... e5 loses 20 centipawns, and 1. e4 loses 10.
        for (most, lost) in [
            ("9", vec!["1. e4", "1. e4 e5"]),
            ("19", vec!["1. e4 e5"]),
            ("20", vec![]),
        ] {
            for command in [
                format!(
                    "make-book games.pgn --min-game 1 --bin lost.bin {options} --max-loss {most} --json"
                ),
                format!("filter plain.bin --out lost.bin {options} --max-loss {most} --json"),
            ] {
                let report = ok_json(dir, &*command);
                let losses = report.get("losses").unwrap_or(&report["book"]["losses"]);
                let heaviest = losses["heaviest"].as_array().unwrap().iter();
                let mut lines =
                    Vec::from_iter(heaviest.map(|losing| losing["line"].as_str().unwrap()));
                lines.sort_unstable();
                assert_eq!(lines, lost, "{command}");
            }
        }
    }
    // `--max-loss` without `--weights` needs an evaluation of the position after a move, and the store has none here.
    let line = "filter plain.bin --out lost.bin --evals my.evals --max-loss 9 --json";
    assert_eq!(ok_json(dir, line)["losses"]["left_out"], 0);
}

/// A position without an evaluation has no value if only some of its moves have one: the others may be better.
#[test]
fn one_evaluated_reply_does_not_decide_about_a_move() {
    let dir = temp();
    let dir = dir.path();
    with_evaluated_ends(dir);
    let evals = "1. d4 d5 {[%eval 0.20,20]} *\n\n[A \"\"]\n\n1. e4 e5 {[%eval 3.00,20]} *\n";
    fs::write(dir.join("some.pgn"), evals).unwrap();
    ok(dir, "evals -q --out some.evals some.pgn");
    let make = "make-book -q games.pgn --min-game 1 --bin made.bin --weights evals";
    ok(dir, &*format!("{make} --evals some.evals"));
    assert_eq!(
        shown(dir, "made.bin", ""),
        weights([("c4", 3), ("d4", 10), ("e4", 6)])
    );
    assert_eq!(
        shown(dir, "made.bin", "e4"),
        weights([("c5", 2), ("e5", 4)])
    );
    // The store now evaluates the position after 1. e4. The mistake 1... e5 therefore does not make 1. e4 a good move.
    let evals = evals.replace("1. e4 e5", "1. e4 {[%eval 0.10,20]} e5");
    fs::write(dir.join("some.pgn"), evals).unwrap();
    ok(dir, "evals -q --force --out some.evals some.pgn");
    ok(dir, &*format!("{make} --evals some.evals"));
    assert_eq!(
        shown(dir, "made.bin", ""),
        weights([("c4", 3), ("d4", 11), ("e4", 5)])
    );
}

#[test]
fn mates_and_lost_moves_are_weighed() {
    let dir = temp();
    let dir = dir.path();
    let games = "[Result \"0-1\"]\n\n1. f3 e5 2. g4 Qh4# 0-1\n\n[Result \"0-1\"]\n\n1. f3 e5 2. e4 d5 0-1\n\n";
    fs::write(dir.join("games.pgn"), games).unwrap();
    fs::write(dir.join("evals.pgn"), "1. f3 e5 2. e4 {[%eval -0.50]} *\n").unwrap();
    ok(dir, "evals -q --out my.evals evals.pgn");
    // White's moves lost all games, so they have no weight from results.
    let make = "make-book -q games.pgn --min-game 1 --bin made.bin";
    ok(dir, make);
    assert!(shown(dir, "made.bin", "f3 e5").is_empty());
    for source in ["evals", "both"] {
        let options = format!("--evals my.evals --weights {source}");
        ok(dir, &*format!("{make} {options}"));
        let expected = match source {
            // The mate is found without an evaluation.
            "evals" => weights([("e4", 999), ("g4", 1)]),
            _ => BTreeMap::new(),
        };
        assert_eq!(shown(dir, "made.bin", "f3 e5"), expected);
    }
    let options = "--evals my.evals --weights evals --max-loss 900";
    ok(dir, &*format!("{make} {options}"));
    assert_eq!(shown(dir, "made.bin", "f3 e5"), weights([("e4", 999)]));
    // A weight above 0 in a book whose other moves must not be played.
    ok(dir, &*format!("{make} --evals my.evals --weights evals"));
    let edit = [
        "edit", "-q", "made.bin", "--out", "zero.bin", "f3 e5", "--set", "e4=0",
    ];
    ok(dir, &edit[..]);
    ok(
        dir,
        "filter -q zero.bin --out kept.bin --evals my.evals --weights evals",
    );
    assert_eq!(
        shown(dir, "kept.bin", "f3 e5"),
        weights([("e4", 0), ("g4", 1000)])
    );
}

/// Positions that no line from the starting position reaches keep their weights in `filter`, and `make-book` finds them
/// by the FENs of the games.
#[test]
fn positions_of_other_starts_are_weighed_if_they_are_known() {
    let dir = temp();
    let dir = dir.path();
    let fen = "4k3/8/8/8/8/8/4P3/4K3 w - - 0 1";
    let game =
        |mv: &str| format!("[FEN \"{fen}\"]\n[SetUp \"1\"]\n[Result \"1-0\"]\n\n1. {mv} 1-0\n\n");
    fs::write(dir.join("games.pgn"), game("e4") + &game("Kd2").repeat(3)).unwrap();
    let evals = game("e4 {[%eval 0.0,9]}") + &game("Kd2 {[%eval 2.0,9]}");
    fs::write(dir.join("evals.pgn"), evals).unwrap();
    ok(dir, "evals -q --out my.evals evals.pgn");
    let make = "make-book games.pgn --min-game 1 --bin";
    ok(dir, &*format!("{make} plain.bin"));
    let options = "--evals my.evals --weights evals --json";
    let made = ok_json(dir, &*format!("{make} made.bin {options}"));
    let summary = json!({"evaluated": 2, "unevaluated": 0, "unreached": 0});
    assert_eq!(made["book"]["eval_weights"], summary);
    let filtered = ok_json(
        dir,
        &*format!("filter plain.bin --out filtered.bin {options}"),
    );
    let summary = json!({"evaluated": 0, "unevaluated": 0, "unreached": 2});
    assert_eq!(filtered["eval_weights"], summary);
    let output = crate::common::run(
        dir,
        "filter plain.bin --out filtered.bin --evals my.evals --weights evals",
    );
    let said = String::from_utf8(output.stderr).unwrap();
    let line = "0 moves weighed by evaluations; 2 in positions that no line of the book reaches kept the weight\n";
    assert!(said.contains(line), "{said}");
    assert_eq!(
        records(&dir.join("filtered.bin")),
        records(&dir.join("plain.bin"))
    );
}

#[test]
fn stores_and_options_that_do_not_fit_are_refused() {
    let dir = temp();
    let dir = dir.path();
    with_evaluated_ends(dir);
    ok(
        dir,
        "make-book -q games.pgn --min-game 1 --bin plain.bin --obs all.obs.db3",
    );
    let sound = fs::read(dir.join("my.evals")).unwrap();
    let mut damaged = sound.clone();
    damaged[44 + 33] ^= 1;
    fs::write(dir.join("damaged.evals"), &damaged).unwrap();
    fs::write(dir.join("short.evals"), &sound[..sound.len() / 2]).unwrap();
    let commands = [
        "make-book games.pgn --min-game 1 --bin x.bin",
        "convert all.obs.db3 x.bin --min-game 1",
        "filter plain.bin --out x.bin",
    ];
    for command in commands {
        for source in ["evals", "both"] {
            for store in [
                "damaged.evals",
                "short.evals",
                "games.pgn",
                "missing.evals",
                "plain.bin",
            ] {
                let line = format!("{command} --weights {source} --evals {store}");
                let error = fails(dir, &*line, 1);
                assert_eq!(error.lines().count(), 1, "{line}: {error}");
                assert!(error.contains(store), "{line}: {error}");
            }
            let line = format!("{command} --weights {source}");
            assert!(fails(dir, &*line, 2).contains("--evals"));
        }
        let error = fails(
            dir,
            &*format!("{command} --weights engine --evals my.evals"),
            2,
        );
        assert!(error.contains("results"), "{error}");
        let error = fails(dir, &*format!("{command} --evals my.evals"), 2);
        assert!(error.contains("also give --weights, --max-loss"), "{error}");
        assert!(!dir.join("x.bin").exists());
    }
    refused(
        dir,
        &[
            (
                "make-book games.pgn --bin x.bin --weights both --evals my.evals --uniform",
                2,
                "--uniform",
            ),
            (
                "make-book games.pgn --obs x.obs.db3 --weights evals --evals my.evals",
                2,
                "--weights applies only",
            ),
            (
                "make-book games.pgn --suite x.pgn --weights evals --evals my.evals",
                2,
                "--weights applies only",
            ),
            (
                "convert all.obs.db3 x.csv --weights evals --evals my.evals",
                2,
                "--weights applies only",
            ),
            (
                "filter plain.bin --out my.evals --weights evals --evals my.evals",
                1,
                "my.evals",
            ),
        ],
    );
}

/// The best evaluated moves continue the lines of a book, but mistakes do not.
#[test]
fn lines_are_continued_by_evaluated_moves() {
    let dir = temp();
    let dir = dir.path();
    let game = |moves: &str| format!("[Result \"1/2-1/2\"]\n\n{moves} 1/2-1/2\n\n");
    let games = ["1. e4 e5", "1. d4 d5 2. c4 e6 3. Nc3", "1. c4 d5 2. d4"].map(game);
    fs::write(dir.join("games.pgn"), games.concat()).unwrap();
    let evals = [
        "1. e4 e5 {[%eval 0.3,20]} 2. Nf3 {[%eval 0.25,20]} Nc6 {[%eval 0.3,20]} 3. Bb5 {[%eval 0.28,20]}",
        "1. e4 e5 2. Nc3 {[%eval 0.1,20]}",
        "1. d4 d5 2. c4 e6 3. Nc3 {[%eval 0.2,20]} c5 {[%eval 0.9,20]}",
        "1. e4 e5 2. Nf3 Nc6 3. Bb5 Nd4 {[%eval 0.1,20]}",
    ];
    fs::write(dir.join("evals.pgn"), evals.map(game).concat()).unwrap();
    ok(dir, "evals -q --out my.evals evals.pgn");
    ok(dir, "make-book -q games.pgn --min-game 1 --bin plain.bin");
    let filter = "filter plain.bin --out long.bin --evals my.evals";
    for (plies, added) in [(1, 1), (2, 2), (4, 4), (100, 4)] {
        let report = ok_json(dir, &*format!("{filter} --expand {plies} --json"));
        assert_eq!(
            (&report["expanded"], &report["read"]),
            (&json!(added), &json!(10)),
            "{plies}"
        );
        let last = ["e4 e5", "e4 e5 Nf3", "e4 e5 Nf3 Nc6", "e4 e5 Nf3 Nc6 Bb5"];
        let expected = [("Nf3", 1), ("Nc6", 1), ("Bb5", 1), ("Nd4", 1)];
        for (number, (line, mv)) in last.iter().zip(expected).enumerate() {
            let moves = if number < added {
                weights([mv])
            } else {
                BTreeMap::new()
            };
            assert_eq!(shown(dir, "long.bin", line), moves, "{plies}: {line}");
        }
    }
    // Black's only evaluated move after 3. Nc3 loses 70 centipawns.
    assert!(shown(dir, "long.bin", "d4 d5 c4 e6 Nc3").is_empty());
    // 1. c4 d5 2. d4 transposes to a position of the book.
    assert_eq!(shown(dir, "long.bin", "c4 d5 d4"), weights([("e6", 1)]));
    let output = crate::common::run(dir, &*format!("{filter} --expand 3 --weights evals"));
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(
        said.contains("3 moves added by --expand where lines end\n"),
        "{said}"
    );
    assert_eq!(
        shown(dir, "long.bin", "e4 e5 Nf3"),
        weights([("Nc6", 1000)])
    );
    let header = ok(dir, "pgheader -s long.bin");
    assert!(header.contains("--expand 3 --weights evals"), "{header}");
    // The conditions of the filter also apply to added moves.
    ok(dir, &*format!("{filter} --expand 4 --max-ply 3 -q"));
    assert!(shown(dir, "long.bin", "e4 e5 Nf3").is_empty());
    assert_eq!(shown(dir, "long.bin", "e4 e5"), weights([("Nf3", 1)]));
    // A book for one side does not end before a reply to which it has an answer.
    ok(
        dir,
        "make-book -q games.pgn --min-game 1 --only-white --bin plain.bin",
    );
    ok(dir, &*format!("{filter} --expand 9 -q"));
    assert!(shown(dir, "long.bin", "d4").is_empty());
    refused(
        dir,
        &[
            ("filter plain.bin --out x.bin --expand 3", 2, "--evals"),
            (
                "filter plain.bin --out x.bin --expand 0 --evals my.evals",
                2,
                "--expand",
            ),
            (
                "filter plain.bin --out x.bin --expand 3 --evals games.pgn",
                1,
                "not a store",
            ),
        ],
    );
}

/// Writes the book `name`. Each of `moves` contains the line to the position, the 16-bit code of the move, and its weight.
fn write_book(dir: &Path, name: &str, moves: &[(&str, u16, u16)]) {
    let mut records = Vec::from_iter(moves.iter().map(|(line, code, weight)| {
        let key = key(&from_text(None, Some(line)).unwrap());
        Entry {
            key,
            mv: BookMove(*code),
            weight: *weight,
            learn: 0,
        }
    }));
    records.sort_unstable();
    let bytes = Vec::from_iter(records.into_iter().flat_map(Entry::to_bytes));
    fs::write(dir.join(name), bytes).unwrap();
}

fn write_evals(dir: &Path, games: &[&str]) {
    fs::write(dir.join("evals.pgn"), games.join(" *\n\n[A \"\"]\n\n")).unwrap();
    ok(dir, "evals -q --force --out my.evals evals.pgn");
}

const E4: u16 = 0o1434;
const D4: u16 = 0o1333;
const E5: u16 = 0o6444;
const C5: u16 = 0o6242;

/// An illegal move has no part in the weights of the other moves, and the summary counts only written moves.
#[test]
fn illegal_moves_have_no_part_in_weights() {
    let dir = temp();
    let dir = dir.path();
    write_evals(dir, &["1. e4 {[%eval 0.3,20]}", "1. d4 {[%eval 0.0,20]}"]);
    let sound = [("", E4, 2), ("", D4, 2), ("e4", E5, 1), ("d4", E5, 1)];
    write_book(dir, "sound.bin", &sound);
    for (illegal, weight) in [(0x0fff, 2), (0o0104, 2), (0o0407, 65535)] {
        let records = [&sound[..], &[("", illegal, weight)]].concat();
        write_book(dir, "illegal.bin", &records);
        for options in [
            "",
            "--best 1",
            "--max-ply 1",
            "--reachable",
            "--max-loss 20",
        ] {
            let filter = |book: &str| {
                let line = format!(
                    "filter -q {book} --force --out {book}.out --evals my.evals --weights evals {options} --json"
                );
                let report = ok_json(dir, &*line);
                let weights = &report["eval_weights"];
                let counted = ["evaluated", "unevaluated", "unreached"];
                let sum: u64 = counted
                    .iter()
                    .map(|name| weights[name].as_u64().unwrap())
                    .sum();
                let written = records_of(dir, &format!("{book}.out"));
                assert_eq!(sum, written.len() as u64, "{line}: {weights}");
                (written, weights.clone())
            };
            assert_eq!(
                filter("illegal.bin"),
                filter("sound.bin"),
                "{illegal} {options}"
            );
        }
    }
    ok(
        dir,
        "filter -q illegal.bin --out whole.bin --evals my.evals --weights evals",
    );
    assert_eq!(
        shown(dir, "whole.bin", ""),
        weights([("d4", 128), ("e4", 872)])
    );
}

fn records_of(dir: &Path, book: &str) -> Vec<[u8; 16]> {
    records(&dir.join(book))
}

/// A shallow evaluation at the end of a line does not replace a deep one of an earlier position.
#[test]
fn a_shallow_evaluation_does_not_replace_a_deep_one() {
    let dir = temp();
    let dir = dir.path();
    let book = [("", E4, 500), ("", D4, 500), ("e4", E5, 1)];
    write_book(dir, "book.bin", &book);
    let filter = "filter book.bin --force --out out.bin --evals my.evals --weights evals";
    for (depth, expected) in [(1, 500), (19, 500), (20, 1), (40, 1)] {
        let leaf = format!("1. e4 {{[%eval 0.0,40]}} e5 {{[%eval -3.3,{depth}]}}");
        write_evals(dir, &[&leaf, "1. d4 {[%eval 0.0,40]}"]);
        ok(dir, filter);
        assert_eq!(shown(dir, "out.bin", "")["e4"], expected, "{depth}");
        let report = ok_json(dir, &*format!("{filter} --max-loss 50 --json"));
        let dropped = u64::from(expected == 1);
        assert_eq!(report["losses"]["left_out"], dropped, "{depth}");
    }
    // A forced mate counts at any depth.
    let leaf = "1. e4 {[%eval 0.0,40]} e5 {[%eval #-3,1]}";
    write_evals(dir, &[leaf, "1. d4 {[%eval 0.0,40]}"]);
    ok(dir, filter);
    assert_eq!(shown(dir, "out.bin", "")["e4"], 1);
}

/// Moves of weight 0 must not be played, so neither their values nor their lack of a value matters.
#[test]
fn moves_of_weight_0_have_no_part_in_values() {
    let dir = temp();
    let dir = dir.path();
    let book = [
        ("", E4, 500),
        ("", D4, 500),
        ("e4", E5, 1),
        ("e4", C5, 0),
        ("d4", E5, 0),
    ];
    write_book(dir, "book.bin", &book);
    let filter = "filter -q book.bin --force --out out.bin --evals my.evals --weights evals";
    let equal = weights([("d4", 500), ("e4", 500)]);
    // The value of 1... c5, which would refute 1. e4, does not count, and neither does that of the only move 1... e5
    // after 1. d4.
    write_evals(
        dir,
        &[
            "1. e4 {[%eval 0.0,20]} c5 {[%eval -3.0,20]}",
            "1. e4 e5 {[%eval 0.0,20]}",
            "1. d4 {[%eval 0.0,20]} e5 {[%eval -3.0,20]}",
        ],
    );
    ok(dir, filter);
    assert_eq!(shown(dir, "out.bin", ""), equal);
    assert_eq!(
        shown(dir, "out.bin", "e4"),
        weights([("c5", 0), ("e5", 1000)])
    );
    // The position after 1. e4 has no evaluation, and 1... c5 has no value.
    write_evals(
        dir,
        &["1. e4 e5 {[%eval 0.3,20]}", "1. d4 {[%eval 0.0,20]}"],
    );
    ok(dir, filter);
    assert_eq!(
        shown(dir, "out.bin", ""),
        weights([("d4", 128), ("e4", 872)])
    );
}

/// A move that loses too much is dropped in both spellings of castling.
#[test]
fn losing_castling_is_dropped_in_both_spellings() {
    let dir = temp();
    let dir = dir.path();
    let line = "Nf3 Nf6 g3 g6 Bg2 Bg7";
    let game = "1. Nf3 Nf6 2. g3 g6 3. Bg2 Bg7 {[%eval 0.3,20]} 4. O-O {[%eval -3.0,20]}";
    write_evals(dir, &[game]);
    let mut path = Vec::new();
    let mut before = Vec::new();
    for (mv, code) in line
        .split(' ')
        .zip([0o0625, 0o7655, 0o1626, 0o6656, 0o0516, 0o7566])
    {
        path.push((before.join(" "), code));
        before.push(mv);
    }
    let mut moves = Vec::from_iter(path.iter().map(|(line, code)| (line.as_str(), *code, 1)));
    moves.push((line, 0o1323, 1));
    for spellings in [&[0o0406][..], &[0o0407], &[0o0406, 0o0407]] {
        let castling = spellings.iter().map(|code| (line, *code, 1));
        write_book(
            dir,
            "book.bin",
            &Vec::from_iter(moves.iter().copied().chain(castling.clone())),
        );
        let filter = "filter -q --force --out out.bin --evals my.evals --max-loss 50";
        ok(dir, &*format!("{filter} book.bin"));
        assert_eq!(shown(dir, "out.bin", line), weights([("d3", 1)]));
        let only = Vec::from_iter(moves[..6].iter().copied().chain(castling));
        write_book(dir, "only.bin", &only);
        ok(dir, &*format!("{filter} --keep-one only.bin"));
        let weight = spellings.len() as u64;
        assert_eq!(shown(dir, "out.bin", line), weights([("O-O", weight)]));
    }
}

/// An error about the size of a book names the book, not the directory of its temporary copy.
#[test]
fn errors_name_the_book_that_was_given() {
    let dir = temp();
    let dir = dir.path();
    write_evals(dir, &["1. e4 {[%eval 0.3,20]}"]);
    let records = (1..=20_000_u64).map(|number| Entry {
        key: number << 40,
        mv: BookMove(E4),
        weight: 1,
        learn: 0,
    });
    let bytes = Vec::from_iter(records.flat_map(Entry::to_bytes));
    fs::write(dir.join("large.bin"), bytes).unwrap();
    let filter = "filter large.bin --out out.bin --memory 1MiB --evals my.evals";
    let error = fails(dir, &*format!("{filter} --weights both"), 1);
    assert!(
        error.starts_with("polybook: large.bin: weighing moves"),
        "{error}"
    );
    // More records of one position than the position can have moves.
    let record = Entry {
        key: key(&from_text(None, None).unwrap()),
        mv: BookMove(E4),
        weight: 1,
        learn: 0,
    };
    fs::write(dir.join("many.bin"), record.to_bytes().repeat(400_000)).unwrap();
    let edit = [
        "edit", "many.bin", "--out", "out.bin", "d4", "--set", "d5=3",
    ];
    let error = fails(dir, &edit[..], 1);
    assert!(error.contains("cannot read many.bin: "), "{error}");
}
