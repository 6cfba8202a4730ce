//! The results of matches by the exits of a suite: `polybook suite-report`.

use std::{fs, path::Path};

use serde_json::{Value, json};

use crate::common::{fails, ok, ok_json, program, python, refused, run, run_python, sample, temp};

/// Returns a game of two players with further tags and its moves.
fn game(white: &str, black: &str, result: &str, tags: &str, moves: &str) -> String {
    format!(
        "[White \"{white}\"]\n[Black \"{black}\"]\n[Result \"{result}\"]\n{tags}\n{moves} {result}\n\n"
    )
}

/// Returns a pair of games: in the first A has White, in the second B.
fn pair(results: [&str; 2], tags: &str, moves: &str) -> String {
    game("A", "B", results[0], tags, moves) + &game("B", "A", results[1], tags, moves)
}

const E4: &str = "rnbqkbnr/pppppppp/8/8/4P3/8/PPPP1PPP/RNBQKBNR b KQkq -";
const D4: &str = "rnbqkbnr/pppppppp/8/8/3P4/8/PPP1PPPP/RNBQKBNR b KQkq -";
const C4: &str = "rnbqkbnr/pppppppp/8/8/2P5/8/PP1PPPPP/RNBQKBNR b KQkq -";

fn exits(report: &Value, field: &str) -> Vec<Value> {
    let exits = report["exits"].as_array().unwrap().iter();
    exits.map(|exit| exit[field].clone()).collect()
}

#[test]
fn pairs_of_games_from_positions_are_scored() {
    let dir = temp();
    let dir = dir.path();
    let suite = format!(
        "# best first\n{E4} id \"B00 King's Pawn\";\n\n{D4} c0 \"note\";\n{C4}\n{E4} 0 1\n"
    );
    fs::write(dir.join("s.epd"), suite).unwrap();
    // Some programs write an en passant square even if no pawn can capture there.
    let e4 =
        "[SetUp \"1\"]\n[FEN \"rnbqkbnr/pppppppp/8/8/4P3/8/PPPP1PPP/RNBQKBNR b KQkq e3 0 1\"]\n";
    let d4 = format!("[FEN \"{D4} 0 1\"]\n");
    let games = [
        pair(["0-1", "1-0"], e4, "1... e5"),
        pair(["1/2-1/2", "1-0"], e4, "1... e5"),
        pair(["1/2-1/2", "1/2-1/2"], e4, "1... c5 2. Nf3 d6"),
        pair(["1-0", "1/2-1/2"], e4, ""),
        pair(["1-0", "0-1"], e4, "1... illegal"),
        pair(["1-0", "1-0"], &d4, "1... d5"),
        game("A", "B", "1-0", &d4, "1... d5"),
        game("A", "B", "*", &d4, "1... d5"),
        // The suite contains positions without moves, so a game from the usual start does not belong to an exit.
        game("A", "B", "1-0", "", "1. e4 e5"),
    ];
    fs::write(dir.join("m.pgn"), games.concat()).unwrap();
    let report = ok_json(dir, "suite-report s.epd m.pgn --json");
    assert_eq!(exits(&report, "entry"), [1, 2, 3]);
    assert_eq!(
        exits(&report, "pentanomial"),
        [
            json!([1, 1, 1, 1, 1]),
            json!([0, 0, 1, 0, 0]),
            json!([0, 0, 0, 0, 0])
        ]
    );
    assert_eq!(exits(&report, "one_sided"), [false, true, false]);
    assert_eq!(exits(&report, "one_sided_pairs"), [0, 1, 0]);
    assert_eq!(exits(&report, "unpaired"), [0, 1, 0]);
    assert_eq!(exits(&report, "draws"), [4, 0, 0]);
    assert_eq!(
        exits(&report, "draw_rate"),
        [json!(40.0), json!(0.0), json!(null)]
    );
    assert_eq!(report["exits"][0]["opening"], "B00 King's Pawn");
    let counts = ["games", "unfinished", "unmatched"].map(|field| report[field].clone());
    assert_eq!(counts, [13, 1, 1]);
    let encounter = &report["encounters"][0];
    assert_eq!(encounter["pentanomial"], json!([1, 1, 2, 1, 1]));
    assert_eq!(
        (&encounter["wins"], &encounter["losses"]),
        (&json!(5), &json!(4))
    );

    let table = ok(dir, "suite-report s.epd m.pgn");
    assert!(
        table.contains("A - B: 13 games, +5 =4 -4, pairs [1 1 2 1 1]"),
        "{table}"
    );
    assert!(
        table.contains(&format!("[0 0 1 0 0]         0.0      -  {D4} (one-sided)")),
        "{table}"
    );
    assert!(
        table.contains(&format!("{E4}, B00 King's Pawn\n")),
        "{table}"
    );
    assert!(
        table.contains("3 exits, 1 one-sided, 1 without games"),
        "{table}"
    );

    let legend = "[LL LD DD/WL WD WW], by the first player's wins";
    assert!(table.contains(legend), "{table}");

    // The report from the point of view of player B, with more required pairs than any exit has.
    let line = "suite-report s.epd m.pgn --first B --min-pairs 2";
    let report = ok_json(dir, &*format!("{line} --json"));
    assert_eq!(report["encounters"][0]["first"], "B");
    assert_eq!(
        report["encounters"][0]["pentanomial"],
        json!([1, 1, 2, 1, 1])
    );
    assert_eq!(report["encounters"][0]["wins"], 4);
    assert_eq!(exits(&report, "one_sided"), [false; 3]);
    for (line, header) in [
        ("suite-report s.epd m.pgn", "pairs of A "),
        (line, "pairs of B "),
    ] {
        let table = ok(dir, line);
        assert!(table.contains(header), "{table}");
    }

    ok(
        dir,
        "suite-report s.epd m.pgn --drop-one-sided --out better.epd",
    );
    let better = fs::read_to_string(dir.join("better.epd")).unwrap();
    let kept = format!("{E4} id \"B00 King's Pawn\";\n{C4}\n{E4} 0 1\n");
    assert_eq!(better, kept);
}

#[test]
fn openings_that_one_pair_makes_one_sided_are_named() {
    let dir = temp();
    let dir = dir.path();
    fs::write(dir.join("s.pgn"), "1. e4 e5 *\n\n1. d4 d5 *\n").unwrap();
    let games = [
        game("A", "B", "1-0", "", "1. e4 e5"),
        game("B", "A", "1-0", "", "1. e4 e5"),
        game("A", "B", "1-0", "", "1. d4 d5"),
        game("B", "A", "0-1", "", "1. d4 d5"),
    ];
    fs::write(dir.join("m.pgn"), games.concat()).unwrap();
    let line = "suite-report s.pgn m.pgn --drop-one-sided --out better.pgn";
    let output = run(dir, line);
    let text = String::from_utf8(output.stderr).unwrap();
    let says = "1 opening left out after a single pair of games, which proves little: give --min-pairs 5\n";
    assert!(text.contains(says), "{text}");
    let output = run(dir, &*format!("{line} --min-pairs 5 --force"));
    let text = String::from_utf8(output.stderr).unwrap();
    assert!(
        output.status.success() && !text.contains("single pair"),
        "{text}"
    );
}

#[test]
fn pairs_of_games_from_lines_are_scored_for_several_players() {
    let dir = temp();
    let dir = dir.path();
    let suite = "1. e4 e5 *\n\n[Event \"x\"]\n[ECO \"C44\"]\n[Opening \"King's Knight\"]\n\n1. e4 e5 2. Nf3 Nc6 {c} *\n\n1. d4 d5 *\n";
    fs::write(dir.join("s.pgn"), suite).unwrap();
    let fen = "[FEN \"rnbqkbnr/ppp1pppp/8/3p4/3P4/8/PPP1PPPP/RNBQKBNR w KQkq - 0 2\"]\n";
    let games = [
        // The exit of a game is the longest line of the suite with which it begins.
        game("A", "B", "1-0", "", "1. e4 e5 2. Nf3 Nc6 3. Bb5"),
        game("C", "B", "0-1", "", "1. e4 e5 2. Nf3 Nc6 3. Bb5"),
        game("B", "C", "1/2-1/2", "", "1. e4 e5 2. Nf3 Nc6"),
        game("B", "A", "1-0", "", "1. e4 e5 2. Nf3 Nc6 3. Bc4"),
        game("A", "C", "1-0", "", "1. e4 e5"),
        // A game that reaches the position later does not belong to the exit.
        game("A", "B", "1-0", "", "1. Nf3 Nf6 2. Ng1 Ng8 3. d4 d5"),
        // A program may write the exit as the starting position.
        game("A", "C", "0-1", fen, "2. c4"),
    ];
    fs::write(dir.join("m.pgn"), games.concat()).unwrap();
    let report = ok_json(dir, "suite-report s.pgn m.pgn --json");
    assert_eq!(
        exits(&report, "line"),
        ["1. e4 e5", "1. e4 e5 2. Nf3 Nc6", "1. d4 d5"]
    );
    assert_eq!(
        exits(&report, "pentanomial"),
        [
            json!([0, 0, 0, 0, 0]),
            json!([0, 0, 1, 1, 0]),
            json!([0, 0, 0, 0, 0])
        ]
    );
    assert_eq!(exits(&report, "unpaired"), [1, 0, 1]);
    assert_eq!(report["unmatched"], 1);
    assert_eq!(report["exits"][1]["opening"], "C44 King's Knight");
    let encounters = report["encounters"].as_array().unwrap().iter();
    let names: Vec<String> = encounters
        .map(|of| format!("{} {}", of["first"], of["second"]))
        .collect();
    assert_eq!(names, ["\"A\" \"B\"", "\"B\" \"C\"", "\"A\" \"C\""]);
    // B lost neither of its two games against C, and is listed first because its name is earlier.
    assert_eq!(
        report["encounters"][1]["pentanomial"],
        json!([0, 0, 0, 1, 0])
    );
}

/// The results are those of a test of fastchess: the number of pairs that end LL, LD, WL or DD, WD and WW.
#[test]
fn a_report_estimates_the_strength_from_pairs_as_fastchess_does() {
    let dir = temp();
    let dir = dir.path();
    fs::write(dir.join("s.epd"), format!("{E4}\n{D4}\n")).unwrap();
    let mut games = String::new();
    let mut round = 0;
    for (epd, counts) in [(E4, [34, 54, 31, 64, 75]), (D4, [0, 0, 32, 0, 0])] {
        let ends = [
            ["0-1", "1-0"],
            ["0-1", "1/2-1/2"],
            ["1/2-1/2", "1/2-1/2"],
            ["1-0", "1/2-1/2"],
            ["1-0", "0-1"],
        ];
        for (results, count) in ends.into_iter().zip(counts) {
            for _ in 0..count {
                round += 1;
                let tags = format!("[Round \"{round}\"]\n[FEN \"{epd} 0 1\"]\n");
                games += &pair(results, &tags, "");
            }
        }
    }
    let tags = format!("[FEN \"{E4} 0 1\"]\n");
    // A game without a partner counts for the wins, but not for the estimate.
    games += &game(
        "A",
        "B",
        "1-0",
        &format!("[Round \"{}\"]\n{tags}", round + 1),
        "",
    );
    fs::write(dir.join("m.pgn"), &games).unwrap();
    let numbers = |of: &Value| {
        let names = [
            "elo",
            "elo_error",
            "nelo",
            "nelo_error",
            "los",
            "draw_ratio",
            "llr",
        ];
        names.map(|name| {
            of[name]
                .as_f64()
                .map_or("null".to_owned(), |n| format!("{n:.2}"))
        })
    };
    let line = "suite-report s.epd m.pgn --sprt 0,5";
    let report = ok_json(dir, &*format!("{line} --json"));
    let encounter = &report["encounters"][0];
    let expected = [
        "55.58", "27.65", "57.94", "28.28", "100.00", "21.72", "1.30",
    ];
    assert_eq!(numbers(encounter), expected);
    assert_eq!(encounter["unpaired"], 1);
    assert_eq!(encounter["estimated_from"], "pairs");
    let ends = ["elo_low", "elo_high"].map(|name| encounter[name].as_f64().unwrap());
    assert!((ends[1] - ends[0] - 2.0 * 27.65).abs() < 0.01, "{ends:?}");
    let sprt = &report["sprt"];
    assert_eq!(
        (&sprt["elo1"], &sprt["model"]),
        (&json!(5.0), &json!("normalized"))
    );
    let drawn = numbers(&report["exits"][1]);
    assert_eq!(
        drawn[..6],
        ["0.00", "null", "null", "null", "null", "100.00"]
    );

    let table = ok(dir, line);
    let expected = "\n  Elo: 55.58 +/- 27.65, nElo: 57.94 +/- 28.28, LOS: 100.00 %, DrawRatio: 21.72 %\n  \
                    LLR: 1.30 (-2.94, 2.94) [0.00, 5.00] nElo\n";
    assert!(table.contains(expected), "{table}");
    let table = ok(
        dir,
        "suite-report s.epd m.pgn --sprt 0,5 --sprt-model logistic",
    );
    assert!(
        table.contains("  LLR: 1.34 (-2.94, 2.94) [0.00, 5.00] Elo\n"),
        "{table}"
    );
    let table = ok(dir, "suite-report s.epd m.pgn --sprt=-90,-10,0.1,0.1");
    assert!(
        table.contains("(-2.20, 2.20) [-90.00, -10.00] nElo, H1 is accepted\n"),
        "{table}"
    );

    // B has the same numbers with the opposite sign.
    let report = ok_json(dir, &*format!("{line} --first B --json"));
    let of_b = numbers(&report["encounters"][0]);
    assert_eq!(of_b[..5], ["-55.58", "27.65", "-57.94", "28.28", "0.00"]);
    assert!(report["encounters"][0]["llr"].as_f64().unwrap() < 0.0);
}

/// If no two games form a pair, single games count. The results are those of a test of fastchess.
#[test]
fn a_report_estimates_the_strength_from_games_without_pairs() {
    let dir = temp();
    let dir = dir.path();
    fs::write(dir.join("s.epd"), "startpos\n").unwrap();
    let results = [("1-0", 136), ("0-1", 96), ("1/2-1/2", 111)];
    let games = results
        .into_iter()
        .flat_map(|(result, count)| vec![game("A", "B", result, "", "1. e4"); count]);
    fs::write(dir.join("m.pgn"), games.collect::<String>()).unwrap();
    let table = ok(dir, "suite-report s.epd m.pgn --sprt 0,3");
    let expected = "\n  Elo: 40.70 +/- 30.43, nElo: 49.77 +/- 36.77, LOS: 99.60 %, DrawRatio: 32.36 % (from single \
                    games, because no two games form a pair)\n  LLR: 0.41 (-2.94, 2.94) [0.00, 3.00] nElo\n";
    assert!(table.contains(expected), "{table}");
    let report = ok_json(dir, "suite-report s.epd m.pgn --json");
    for of in [&report["encounters"][0], &report["exits"][0]] {
        assert_eq!(
            (&of["estimated_from"], &of["llr"]),
            (&json!("games"), &json!(null))
        );
    }
    assert_eq!(report["sprt"], json!(null));
    // A player who won all games is stronger by an unknown number of points.
    fs::write(dir.join("won.pgn"), game("A", "B", "1-0", "", "1. e4")).unwrap();
    let table = ok(dir, "suite-report s.epd won.pgn");
    assert!(
        table.contains("Elo: unknown +/- unknown, nElo: unknown +/- unknown, LOS: unknown %"),
        "{table}"
    );
    // The reason is on the next line.
    let pair =
        |other: &str| game("A", "B", "1-0", "", "1. e4") + &game("B", "A", other, "", "1. e4");
    for (games, reason) in [
        (
            game("A", "B", "1-0", "", "1. e4"),
            "one player won all games",
        ),
        (pair("0-1"), "one player won all games"),
        (pair("1-0"), "all pairs have the same score"),
        (
            game("A", "B", "1/2-1/2", "", "1. e4"),
            "all games have the same result",
        ),
        (
            pair("0-1") + &pair("1-0"),
            "there are too few games for an interval",
        ),
    ] {
        fs::write(dir.join("few.pgn"), games).unwrap();
        let table = ok(dir, "suite-report s.epd few.pgn");
        assert!(
            table.contains(&format!("\n  unknown, because {reason}\n")),
            "{reason}: {table}"
        );
    }
    assert!(!ok(dir, "suite-report s.epd m.pgn").contains("unknown"));
}

/// If an engine plays itself, any two games of an exit form a pair.
#[test]
fn an_engine_plays_itself() {
    let dir = temp();
    let dir = dir.path();
    fs::write(dir.join("s.epd"), format!("{E4}\n{D4}\n")).unwrap();
    let tags = |epd: &str| format!("[FEN \"{epd} 0 1\"]\n");
    let games = [
        game("A", "A", "1-0", &tags(E4), ""),
        game("A", "A", "1-0", &tags(E4), ""),
        game("A", "A", "1-0", &tags(D4), ""),
        game("A", "A", "0-1", &tags(D4), ""),
    ];
    fs::write(dir.join("m.pgn"), games.concat()).unwrap();
    let report = ok_json(dir, "suite-report s.epd m.pgn --json");
    assert_eq!(exits(&report, "one_sided"), [true, false]);
    let encounter = &report["encounters"][0];
    assert_eq!(encounter["pentanomial"], json!([0, 0, 1, 0, 1]));
}

/// Returns games of one exit that ended out of order. Two of them lack their partners.
#[test]
fn the_round_tags_tell_which_games_form_a_pair() {
    let dir = temp();
    let dir = dir.path();
    fs::write(dir.join("s.epd"), format!("{E4}\n{D4}\n")).unwrap();
    let pairs = |rounds: [&str; 8]| {
        let game = |white: &str, black: &str, result: &str, round: &str| {
            let tags = format!("[Round \"{round}\"]\n[FEN \"{E4} 0 1\"]\n");
            game(white, black, result, &tags, "1... e5")
        };
        let [a, b, c, d, e, f, g, h] = rounds;
        let games = [
            game("A", "B", "1-0", c),
            game("A", "B", "0-1", a),
            game("B", "A", "1-0", b),
            game("A", "B", "1/2-1/2", e),
            // Round 3 has no second game with a result, and round 4 has no first one.
            game("B", "A", "*", f),
            game("B", "A", "1-0", h),
            game("A", "B", "1/2-1/2", g),
            game("B", "A", "0-1", d),
        ];
        fs::write(dir.join("m.pgn"), games.concat()).unwrap();
        let report = ok_json(dir, "suite-report s.epd m.pgn --json");
        let encounter = &report["encounters"][0];
        let exit = &report["exits"][0];
        for field in ["pentanomial", "unpaired"] {
            assert_eq!(exit[field], encounter[field]);
        }
        let table = ok(dir, "suite-report s.epd m.pgn");
        (
            encounter["pentanomial"].clone(),
            encounter["unpaired"].clone(),
            table,
        )
    };
    let expected = json!([1, 0, 0, 0, 1]);
    let (found, unpaired, table) = pairs(["1", "1", "2", "2", "3", "3", "4", "5"]);
    assert_eq!((&found, unpaired), (&expected, json!(3)));
    let apart = "3 games without a partner";
    assert!(table.contains(apart), "{table}");
    // cutechess-cli numbers the games within a round.
    let (found, unpaired, _) = pairs(["1.1", "1.2", "2.1", "2.2", "3.1", "3.2", "4.1", "5.2"]);
    assert_eq!((&found, unpaired), (&expected, json!(3)));
    let (found, unpaired, _) = pairs(["1.1", "1.2", "1.3", "1.4", "1.5", "1.6", "1.7", "1.10"]);
    assert_eq!((&found, unpaired), (&expected, json!(3)));
    // If all rounds differ, or none is given, the order of the games decides.
    for rounds in [
        ["1", "2", "3", "4", "5", "6", "7", "8"],
        ["?"; 8],
        ["1.0"; 8],
    ] {
        let (found, unpaired, table) = pairs(rounds);
        assert_eq!((found, unpaired), (json!([0, 1, 1, 1, 0]), json!(1)));
        assert!(table.contains("1 game without a partner"), "{table}");
    }
}

#[test]
fn a_match_that_needs_more_than_the_memory_budget_is_refused() {
    let dir = temp();
    let dir = dir.path();
    fs::write(dir.join("s.pgn"), "1. e4 *\n").unwrap();
    let rounds = (0..500).map(|round| format!("[Round \"{round}\"]\n"));
    let games: String = rounds
        .map(|round| game("A", "B", "1-0", &round, "1. e4 e5"))
        .collect();
    fs::write(dir.join("m.pgn"), games).unwrap();
    let refusal = "m.pgn: the games need more than 65536 bytes of memory: use a larger --memory";
    refused(
        dir,
        &[("suite-report s.pgn m.pgn --memory 64KiB", 1, refusal)],
    );
    let report = ok_json(dir, "suite-report s.pgn m.pgn --memory 1MiB --json");
    assert_eq!(report["games"], 500);
}

/// Tests a match of 20 games that Stockfish and Glaurung play from suites of games.
#[test]
fn a_match_of_two_engines() {
    let engines = [program(&["stockfish"]), program(&["glaurung"])];
    let (Some(python), [Some(first), Some(second)]) = (python(&["chess.engine"]), engines) else {
        return;
    };
    let dir = temp();
    let dir = dir.path();
    let sample = sample("famous.pgn");
    for suite in ["s.epd", "s.pgn"] {
        let line = format!(
            "make-book -q {} --suite {suite} --plies 2 --min-game 1 --limit 5 --seed 1 --tags --unique",
            sample.display()
        );
        ok(dir, &line);
        let path = dir.join(suite);
        let (games, report) = (dir.join("m.pgn"), dir.join("r.json"));
        let script = "suite_match.py";
        run_python(
            &python,
            script,
            &[Path::new("play"), &path, &games, &first, &second],
        );
        fs::write(
            &report,
            ok(dir, &format!("suite-report {suite} m.pgn --json")),
        )
        .unwrap();
        run_python(
            &python,
            script,
            &[Path::new("check"), &path, &games, &report],
        );
    }
}

/// One line of the suite continues another, and the engines play on along it. Comments show where the book ended.
#[test]
fn comments_say_where_the_opening_ended() {
    let dir = temp();
    let dir = dir.path();
    fs::write(dir.join("s.pgn"), "1. d4 d5 *\n\n1. d4 d5 2. c4 e6 *\n").unwrap();
    let report = |marks: [&str; 2]| {
        let [book, engine] = marks;
        let short = format!("1. d4 {book} d5 {book} 2. c4 {engine} e6 {engine} 3. Nc3 {engine}");
        let long = format!("1. d4 {book} d5 {book} 2. c4 {book} e6 {book} 3. Nc3 {engine}");
        let games = pair(["1-0", "0-1"], "[Round \"1\"]\n", &short)
            + &pair(["1/2-1/2", "1/2-1/2"], "[Round \"2\"]\n", &long);
        fs::write(dir.join("m.pgn"), games).unwrap();
        let report = ok_json(dir, "suite-report s.pgn m.pgn --json");
        exits(&report, "pentanomial")
    };
    let [one, two] = [json!([0, 0, 0, 0, 1]), json!([0, 0, 1, 0, 0])];
    for book in ["{book}", "{ book, 0.00s }", "{book/0 0.000s}", "$1 {Book}"] {
        assert_eq!(
            report([book, "{+0.3/10 0.1s}"]),
            [one.clone(), two.clone()],
            "{book}"
        );
    }
    // If the games have no such comments, the longest line is used.
    for marks in [
        ["", ""],
        ["{bookish}", ""],
        ["{+0.3/10 the book 1s}", "{book}"],
    ] {
        assert_eq!(
            report(marks),
            [json!([0, 0, 0, 0, 0]), json!([0, 0, 1, 0, 1])],
            "{marks:?}"
        );
    }
}

/// The game can leave the suite's lines and return, and a suite of positions has no lines.
#[test]
fn book_moves_of_any_length_lead_to_an_exit() {
    let dir = temp();
    let dir = dir.path();
    let exit = "rnbqkbnr/pp2pppp/3p4/2p5/4P3/5N2/PPPP1PPP/RNBQKB1R w KQkq -";
    fs::write(dir.join("s.epd"), format!("{exit}\n{E4}\n")).unwrap();
    fs::write(dir.join("s.pgn"), "1. e4 c5 2. Nf3 d6 *\n\n1. e4 *\n").unwrap();
    let played = |suite: &str, mark: &str, tags: &str, moves: &str, end: &str| {
        let moves = moves.replace(' ', &format!(" {mark} "));
        let moves = format!("{moves} {mark} {end}");
        fs::write(dir.join("m.pgn"), game("A", "B", "1-0", tags, &moves)).unwrap();
        let report = ok_json(dir, &["suite-report", suite, "m.pgn", "--json"]);
        exits(&report, "wins")
    };
    let detour = "1.Nf3 c5 2.Ng1 d6 3.Nf3 Nf6 4.e4 Ng8";
    for mark in ["{book}", "{book/1}"] {
        for suite in ["s.epd", "s.pgn"] {
            for moves in ["1.e4 c5 2.Nf3 d6", detour] {
                for end in ["", "3. d4 {+0.3/8 1s} cxd4"] {
                    let wins = played(suite, mark, "", moves, end);
                    assert_eq!(wins, [1, 0], "{suite}, {moves}, {end}");
                }
            }
        }
        // The moves of the book continue the position of the tag, which is itself an exit.
        let tags = format!("[FEN \"{E4} 0 1\"]\n");
        let wins = played("s.epd", mark, &tags, "1...c5 2.Nf3 d6", "3. d4");
        assert_eq!(wins, [1, 0]);
        assert_eq!(played("s.epd", mark, &tags, "1...c5 2.Nf3", "d6"), [0, 1]);
    }
}

/// The suite may contain an en passant square on which only a pinned pawn could capture, or impossible castling
/// rights, while the match writes the position without them.
#[test]
fn games_belong_to_an_exit_with_the_same_legal_moves() {
    let dir = temp();
    let dir = dir.path();
    let pinned = "rnb1kbnr/ppp1qppp/8/3pP3/5p2/5N2/PPPP2PP/RNBQKB1R w KQkq";
    let castled = "rnbqkbnr/pppppppp/8/8/8/5BN1/PPPPPPPP/RNBQ1RK1 b";
    let orders = [
        "1. e4 e5 2. f4 exf4 3. e5 d5 4. Nf3 Qe7",
        "1. e4 e5 2. f4 exf4 3. e5 Qe7 4. Nf3 d5",
    ];
    let with_fen =
        |fen: &str, moves: &str| game("A", "B", "1-0", &format!("[FEN \"{fen} 0 5\"]\n"), moves);
    for (suite, games) in [
        (
            format!("{pinned} d6\n"),
            [
                with_fen(&format!("{pinned} -"), "5. d4"),
                with_fen(&format!("{pinned} d6"), "5. d4"),
            ],
        ),
        (
            format!("{castled} KQkq -\n"),
            [
                with_fen(&format!("{castled} kq -"), "5... e5"),
                with_fen(&format!("{castled} KQkq -"), "5... e5"),
            ],
        ),
        (
            format!("{} *\n", orders[0]),
            orders.map(|line| game("A", "B", "1-0", "", &format!("{line} 5. d4"))),
        ),
    ] {
        let name = if suite.contains("1.") {
            "suite.pgn"
        } else {
            "suite.epd"
        };
        fs::write(dir.join(name), &suite).unwrap();
        fs::write(dir.join("match.pgn"), games.concat()).unwrap();
        let report = ok_json(dir, &["suite-report", name, "match.pgn", "--json"]);
        assert_eq!(exits(&report, "wins"), [2], "{suite}: {report}");
    }
}

#[test]
fn an_output_that_cannot_be_written_is_found_before_the_games_are_read() {
    let dir = temp();
    let line = "suite-report s.epd m.pgn --drop-one-sided --out missing/better.epd";
    fs::write(dir.path().join("s.epd"), "not a suite").unwrap();
    let error = fails(dir.path(), line, 1);
    assert!(
        error.contains("the directory missing does not exist: create the directory first"),
        "{error}"
    );
}

#[test]
fn an_output_with_the_ending_of_the_other_format_is_refused() {
    let dir = temp();
    let dir = dir.path();
    fs::write(dir.join("s.epd"), format!("{E4}\n")).unwrap();
    fs::write(dir.join("s.pgn"), "1. e4 *\n").unwrap();
    let games = pair(["1-0", "0-1"], "", "1. e4 {book}");
    fs::write(dir.join("m.pgn"), games).unwrap();
    let line =
        |suite: &str, out: &str| format!("suite-report {suite} m.pgn --drop-one-sided --out {out}");
    for (suite, out) in [("s.epd", "x.pgn"), ("s.pgn", "x.epd"), ("s.pgn", "x.FEN")] {
        let error = fails(dir, &*line(suite, out), 2);
        let right = &suite[1..];
        assert!(
            error.contains(&format!("choose a name that ends in {right}")),
            "{error}"
        );
        assert!(!dir.join(out).exists(), "{out}");
    }
    for (suite, out) in [("s.epd", "x.epd"), ("s.epd", "x.fen"), ("s.pgn", "y.pgn")] {
        ok(dir, &*line(suite, out));
        assert!(dir.join(out).exists(), "{out}");
    }
}

#[test]
fn all_unreadable_entries_are_named() {
    let dir = temp();
    let dir = dir.path();
    fs::write(dir.join("s.epd"), format!("{E4}\nx\n{D4}\ny\nz\n")).unwrap();
    fs::write(dir.join("m.pgn"), "1. e4 1-0\n").unwrap();
    let error = fails(dir, "suite-report s.epd m.pgn", 1);
    assert!(error.contains("s.epd: line 2: "), "{error}");
    assert!(
        error.contains("; also unreadable: line 4, line 5\n"),
        "{error}"
    );
    let games = "1. e4 *\n\n1. e9 d5 *\n\n[FEN \"x\"]\n\n1. d4 *\n\n1. c4 *\n\n1. Ke2 *\n";
    fs::write(dir.join("s.pgn"), games).unwrap();
    let error = fails(dir, "suite-report s.pgn m.pgn", 1);
    assert!(error.contains("s.pgn: game 2: e9"), "{error}");
    assert!(
        error.contains("; also unreadable: game 3, game 5\n"),
        "{error}"
    );
    fs::write(dir.join("s.epd"), format!("{E4}\n{}", "x\n".repeat(13))).unwrap();
    let error = fails(dir, "suite-report s.epd m.pgn", 1);
    assert!(error.contains("line 12, and 2 more\n"), "{error}");
}
