//! Weights that `--weights` computes from evaluations.

use std::{collections::BTreeMap, fs, path::Path};

use serde_json::json;

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
    // Without the option, no evaluation says anything about these moves.
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
    // With an evaluation of the position after 1. e4, the mistake 1... e5 does not make 1. e4 a good move.
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
