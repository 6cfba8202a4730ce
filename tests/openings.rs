//! Openings by the moves of games: the tables of `polybook openings` and the filter `--opening`.

use std::{
    fs,
    path::{Path, PathBuf},
};

use polybook::book::Book;
use serde_json::{Value, json};

use crate::common::{
    corpus, fails, ok, ok_json, python, run, run_python, sample, served::Served, temp,
};

/// Makes an index for the explorer, `idx`, of PGN files.
fn index(dir: &Path, games: &[PathBuf]) {
    let mut args = vec!["make-book", "-q", "--explorer", "idx"];
    args.extend(games.iter().map(|path| path.to_str().unwrap()));
    ok(dir, &args[..]);
}

/// Compares tables about the games with those that python-chess calculates: about all games and about players, by color
/// and result, from a later position, and of one opening.
fn tables_agree(games: &[PathBuf], players: &[&str]) {
    let Some(python) = python(&["chess"]) else {
        return;
    };
    let dir = temp();
    index(dir.path(), games);
    let mut filters = vec![
        json!({}),
        json!({ "result": "1-0" }),
        json!({ "moves": "d4 Nf6" }),
        json!({ "opening": "Sicilian Defense" }),
    ];
    for player in players {
        filters.push(json!({ "player": player }));
        filters.push(json!({ "player": player, "result": "0-1" }));
        for color in ["white", "black"] {
            filters.push(json!({ "player": player, "color": color }));
            for (name, value) in [("moves", "e4 c5"), ("opening", "Sicilian Defense")] {
                filters.push(json!({ "player": player, "color": color, name: value }));
            }
        }
    }
    for case in &mut filters {
        let mut args = vec!["openings", "idx", "--json"];
        for (name, option) in [
            ("player", "--player"),
            ("color", "--color"),
            ("result", "--result"),
            ("moves", "--moves"),
            ("opening", "--opening"),
        ] {
            if let Some(value) = case[name].as_str() {
                args.extend([option, value]);
            }
        }
        if !case["player"].is_null() {
            args.push("--exact");
        }
        case["table"] = ok_json(dir.path(), &args[..]);
    }
    let cases = dir.path().join("cases.json");
    fs::write(&cases, Value::from(filters).to_string()).unwrap();
    let mut args = vec![sample("opening_names.txt"), cases];
    args.extend(games.iter().cloned());
    let args: Vec<&Path> = args.iter().map(PathBuf::as_path).collect();
    run_python(&python, "openings.py", &args);
}

#[test]
fn openings_are_those_that_python_chess_finds() {
    let games = ["famous.pgn", "online.pgn", "selfplay.pgn"].map(sample);
    tables_agree(&games, &["Morphy, Paul"]);
}

#[test]
fn openings_of_masters_are_those_that_python_chess_finds() {
    let Some(corpus) = corpus() else {
        return;
    };
    let dir = temp();
    let text = fs::read(corpus.join("masters.pgn")).unwrap();
    let text = String::from_utf8_lossy(&text);
    let mut starts = text.match_indices("[Event ").map(|(start, _)| start);
    let end = starts.nth(3_000).unwrap_or(text.len());
    let games = dir.path().join("masters.pgn");
    fs::write(&games, &text[..end]).unwrap();
    let mut names: Vec<&str> = text[..end]
        .lines()
        .filter_map(|line| line.strip_prefix("[White \"")?.strip_suffix("\"]"))
        .collect();
    names.sort_unstable();
    let mut players: Vec<&[&str]> = names.chunk_by(|a, b| a == b).collect();
    players.sort_by_key(|games| usize::MAX - games.len());
    let players: Vec<&str> = players.iter().take(3).map(|games| games[0]).collect();
    tables_agree(&[games], &players);
}

/// Games that reach openings by other orders of moves, with tags that name other openings.
const GAMES: &str = r#"[White "A"]
[Black "B"]
[ECO "A00"]
[Result "1-0"]

1. Nf3 Nc6 2. e4 e5 3. Bb5 h5 1-0

[White "B"]
[Black "A"]
[Result "0-1"]

1. e4 c5 2. Nf3 d6 3. d4 cxd4 4. Nxd4 Nf6 5. Nc3 a6 0-1

[White "A"]
[Black "B"]
[ECO "C60"]
[Result "0-1"]

1. d4 d5 2. c4 0-1

[White "A"]
[Black "B"]
[Result "*"]

*
"#;

#[test]
fn performances_are_printed_with_that_of_all_games() {
    let dir = temp();
    let game = |opponent: u32, moves: &str, result: &str| {
        format!(
            "[White \"A\"]\n[Black \"B\"]\n[BlackElo \"{opponent}\"]\n[Result \"{result}\"]\n\n{moves} {result}\n\n"
        )
    };
    let strong = game(2400, "1. e4 c5", "0-1").repeat(10);
    let weak = game(1400, "1. d4 d5 2. c4", "1-0").repeat(10);
    fs::write(dir.path().join("games.pgn"), format!("{strong}{weak}")).unwrap();
    index(dir.path(), &["games.pgn".into()]);
    let text = ok(dir.path(), "openings idx --player A 1. e4");
    assert!(
        text.starts_with(
            "10 of 20 games, average score in all 20 games 50.0 %, performance 1900, opponents 1900 on average\n"
        ),
        "{text}"
    );
    let row = text.lines().nth(2).unwrap();
    // The other games, ten wins against weak opponents, say little about games against strong ones.
    assert!(row.contains("  -2.4    -5.0   2400   1600"), "{text}");
    // The family of the only variation has no row of its own.
    let chance =
        "\nmarked: 0 of 1 opening with at least 10 games; chance alone would mark about 0.2\n";
    assert!(text.ends_with(chance), "{text}");
    let text = ok(dir.path(), "openings idx --player A --limit 1");
    let chance =
        "\nmarked: 0 of 2 openings with at least 10 games; chance alone would mark about 0.4\n";
    assert!(text.ends_with(chance), "{text}");
    // An opening and its variation count once, and the line names the larger of both minimums.
    let alapin = game(1400, "1. e4 c5 2. c3", "0-1").repeat(12);
    fs::write(dir.path().join("both.pgn"), weak + &alapin).unwrap();
    ok(dir.path(), "make-book -q both.pgn --explorer both.idx");
    let text = ok(dir.path(), "openings both.idx --player A --min-games 12");
    let chance =
        "\nmarked: 1 of 1 opening with at least 12 games; chance alone would mark about 0.2\n";
    assert!(text.ends_with(chance), "{text}");
    // If --color is missing, each game is compared with the average of its color. Chance marks no opening that is the
    // only one with its color.
    let black =
        "[White \"B\"]\n[Black \"A\"]\n[Result \"1/2-1/2\"]\n\n1. g3 1/2-1/2\n\n".repeat(10);
    fs::write(
        dir.path().join("colors.pgn"),
        game(1400, "1. b3", "1-0").repeat(10) + &black,
    )
    .unwrap();
    ok(dir.path(), "make-book -q colors.pgn --explorer colors.idx");
    let text = ok(dir.path(), "openings colors.idx --player A");
    let head = "20 games, average score 100.0 % with White, 50.0 % with Black (avg compares each game with that of its color), ";
    assert!(text.starts_with(head), "{text}");
    assert!(!text.contains("chance alone"), "{text}");
    let json = ok_json(
        dir.path(),
        "openings colors.idx --player A --sort score --json",
    );
    assert_eq!(json["average_by_color"], json!([100.0, 50.0]));
    // The best score comes first, as in `moves`.
    assert_eq!(json["families"][0]["score"], 100.0);
    // Performances by color are those of the tables of one color.
    let lost = game(1400, "1. b3", "0-1").repeat(10);
    let won =
        "[White \"B\"]\n[Black \"A\"]\n[WhiteElo \"2000\"]\n[Result \"0-1\"]\n\n1. g3 0-1\n\n"
            .repeat(10);
    fs::write(dir.path().join("performances.pgn"), lost + &won).unwrap();
    ok(
        dir.path(),
        "make-book -q performances.pgn --explorer performances.idx",
    );
    let text = ok(dir.path(), "openings performances.idx --player A");
    assert!(
        text.contains(", performance 600 with White, 2800 with Black, "),
        "{text}"
    );
    for (color, performance) in [("white", 600), ("black", 2800)] {
        let command = format!("openings performances.idx --player A --color {color} --json");
        assert_eq!(ok_json(dir.path(), &command)["performance"], performance);
    }
    let won = ok(dir.path(), "openings idx --player A --result win");
    assert!(
        won.starts_with("10 games, opponents 1400 on average\n"),
        "{won}"
    );
    // Games that were selected by their result have no scores and no performance.
    let row: Vec<&str> = won.lines().nth(2).unwrap().split_whitespace().collect();
    let results = ["10", "10", "0", "0", "1400"];
    assert_eq!(row[row.len() - results.len()..], results, "{won}");
    let json = ok_json(dir.path(), "openings idx --player A --result win --json");
    let row = &json["families"][0];
    for score in [
        &json["average_score"],
        &row["score"],
        &row["score_range"],
        &row["points"],
        &row["likely"],
    ] {
        assert_eq!(*score, Value::Null, "{json}");
    }
    for order in ["points", "performance", "score"] {
        let line = format!("openings idx --player A --result win --sort {order}");
        let error = fails(dir.path(), &line, 2);
        assert!(error.contains(&format!("--sort {order} needs games with all results")));
    }
    // The table marks no opening if no player is given, or if all scores are equal.
    for options in ["", "--player A 1. d4", "--player A --result win"] {
        let text = ok(dir.path(), &format!("openings idx {options}"));
        assert_eq!(text.contains("marked"), options.ends_with("d4"), "{text}");
    }
    let all = ok_json(dir.path(), "openings idx --json");
    assert_eq!(
        (all.get("performance"), all.get("opponent_rating")),
        (None, None)
    );
}

/// Makes an index of games between A and B, who play two openings with both colors.
fn index_of_two_openings(dir: &Path) {
    let game = |white: &str, black: &str, mv: &str, result: &str, elo: u32| {
        let eco = if mv == "g4" { "A00" } else { "A01" };
        format!(
            "[White \"{white}\"]\n[Black \"{black}\"]\n[ECO \"{eco}\"]\n\
             [WhiteElo \"{elo}\"]\n[BlackElo \"{elo}\"]\n[Result \"{result}\"]\n\n\
             1. {mv} {result}\n\n"
        )
    };
    let mut games = String::new();
    for number in 0..40 {
        let result = ["1-0", "0-1", "1/2-1/2", "1-0", "*"][number % 5];
        let mv = ["b3", "g4", "b3"][number % 3];
        games += &game("A", "B", mv, result, 1800 + 10 * number as u32);
        games += &game("B", "A", mv, result, 2200 - 20 * number as u32);
    }
    games += &game("A", "B", "b3 e5", "1-0", 0);
    fs::write(dir.join("games.pgn"), games).unwrap();
    index(dir, &["games.pgn".into()]);
}

/// A filter that selects games by their opening changes neither what a score is compared with nor its range.
#[test]
fn filters_by_opening_do_not_change_predictions() {
    let dir = temp();
    let dir = dir.path();
    index_of_two_openings(dir);
    let of_player = "idx --player A --color white -q --json";
    let filters = ["--opening Grob", "--eco A00", "--position Pg4"];
    let row = |filter: &str| {
        let table = ok_json(
            dir,
            &format!("openings {of_player} --families --sort name {filter}"),
        );
        let mut row = table["families"][0].clone();
        assert_eq!(row["name"], "Grob Opening", "{table}");
        row.as_object_mut().unwrap().remove("line_games");
        (
            row,
            table["average_score"].clone(),
            table["performance"].clone(),
        )
    };
    let all = row("");
    assert!(all.0["points"].is_f64(), "{all:?}");
    for filter in filters {
        assert_eq!(row(filter), all, "{filter}");
    }
    let text = ok(
        dir,
        "openings idx --player A --color white --opening Grob -q",
    );
    assert!(text.starts_with("13 of 41 games, "), "{text}");
    assert!(text.contains(" score in all 41 games "), "{text}");
    let grob = |document: &Value| {
        let moves = document["moves"].as_array().unwrap();
        moves.iter().find(|mv| mv["san"] == "g4").unwrap().clone()
    };
    let range = |filter: &str| {
        let shown = ok_json(dir, &format!("show {of_player} {filter}"));
        grob(&shown)["score_range"].clone()
    };
    assert!(range("").is_array());
    let prepared = |filter: &str| {
        let opponent = "--opponent B --min-game 1";
        let prepared = ok_json(dir, &format!("prepare {of_player} {opponent} {filter}"));
        let grob = grob(&prepared);
        (grob["expected_score"].clone(), grob["score_range"].clone())
    };
    assert!(prepared("").0.is_f64());
    for filter in filters {
        assert_eq!(range(filter), range(""), "{filter}");
        assert_eq!(prepared(filter), prepared(""), "{filter}");
    }
}

/// The range of a player's score with a move is that of the opening which the move leads to.
#[test]
fn scores_of_moves_have_the_ranges_of_openings() {
    let dir = temp();
    let dir = dir.path();
    index_of_two_openings(dir);
    for color in ["", " --color white", " --color black"] {
        let of_player = format!("idx --player A{color} -q --json");
        let openings = ok_json(dir, &format!("openings --families {of_player}"));
        let moves = ok_json(dir, &format!("show {of_player}"));
        for (san, name) in [("b3", "Nimzo-Larsen Attack"), ("g4", "Grob Opening")] {
            let find = |list: &Value, field: &str, wanted: &str| {
                let mut list = list.as_array().unwrap().iter();
                list.find(|one| one[field] == *wanted).unwrap()["score_range"].clone()
            };
            let range = find(&moves["moves"], "san", san);
            assert!(
                range[0].as_f64() > Some(0.0) && range[1].as_f64() < Some(100.0),
                "{moves}"
            );
            assert_eq!(range, find(&openings["families"], "name", name), "{color}");
        }
        // Without other games, the range of all moves follows from the results.
        let all = &moves["score_range"];
        let score = moves["score"].as_f64().unwrap();
        assert!(
            all[0].as_f64().unwrap() < score && all[1].as_f64().unwrap() > score,
            "{moves}"
        );
    }
    let text = ok(dir, "show idx --player A --color white -q");
    assert!(text.contains("   score    range   perf  "), "{text}");
    let won = ok_json(
        dir,
        "show idx --player A --color white -q --json --result win",
    );
    assert_eq!(won["moves"][0]["score_range"], Value::Null);
    assert_eq!(won["score_range"], Value::Null);
}

#[test]
fn filters_by_opening_depend_on_moves_alone() {
    let dir = temp();
    fs::write(dir.path().join("games.pgn"), GAMES).unwrap();
    index(dir.path(), &["games.pgn".into()]);
    for (text, expected) in [
        ("ruy lopez", 1),
        ("C60", 1),
        ("C60-C99", 1),
        ("Sicilian Defense", 1),
        ("Sicilian Defense:", 0),
        ("najdorf", 1),
        ("sicilian defense: najdorf variation,", 1),
        ("defense", 1),
        ("Queen's Gambit", 1),
    ] {
        let games = ok_json(dir.path(), &["games", "idx", "--json", "--opening", text]);
        assert_eq!(games["total"], expected, "{text}");
        let moves = ok_json(dir.path(), &["show", "idx", "--json", "--opening", text]);
        assert_eq!(moves["games"], expected, "{text}");
        let args = [
            "make-book",
            "--bin",
            "b.bin",
            "--force",
            "--allow-empty",
            "--json",
        ];
        let args = [&args[..], &["games.pgn", "--opening", text]].concat();
        let report = ok_json(dir.path(), &args[..]);
        assert_eq!(report["games"]["counted"], expected, "{text}: {report}");
    }
    let error = fails(dir.path(), "games idx --opening Sizilianisch", 2);
    assert!(error.contains("Najdorf"), "{error}");
    // The opening depends on all moves, including those that are not counted.
    for (text, expected) in [("najdorf", 1), ("B20", 0)] {
        let args = [
            "make-book",
            "--bin",
            "b.bin",
            "--force",
            "--allow-empty",
            "--json",
        ];
        let args = [
            &args[..],
            &["games.pgn", "--max-ply", "2", "--opening", text],
        ]
        .concat();
        let report = ok_json(dir.path(), &args[..]);
        assert_eq!(report["games"]["counted"], expected, "{text}: {report}");
    }
    // The header of the book lists the option.
    ok(
        dir.path(),
        "make-book -q --bin b.bin --force games.pgn --opening najdorf --min-game 1",
    );
    let book = Book::open(dir.path().join("b.bin")).unwrap();
    let header = book.header().unwrap();
    assert!(
        header.comment.contains("--opening \"najdorf\""),
        "{header:?}"
    );
}

#[test]
fn tables_of_openings() {
    let dir = temp();
    fs::write(dir.path().join("games.pgn"), GAMES).unwrap();
    index(dir.path(), &["games.pgn".into()]);
    let table = ok_json(dir.path(), "openings idx --json");
    assert_eq!((&table["games"], &table["unnamed"]), (&json!(4), &json!(1)));
    let families = ok_json(dir.path(), "openings idx --json --families --sort name");
    let names = families["families"].as_array().unwrap().iter();
    let names: Vec<&str> = names.map(|row| row["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["Queen's Gambit", "Ruy Lopez", "Sicilian Defense"]);
    let text = ok(dir.path(), "openings idx --player A");
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(
        lines[0],
        "4 games, 1 without a result, average score 50.0 % with White, 100.0 % with Black (avg compares each game with that of \
         its color), 1 without a named opening"
    );
    let part = ok(
        dir.path(),
        &["openings", "idx", "--player", "A", "1. e4 c5"][..],
    );
    assert!(
        part.starts_with(
            "1 of 4 games, average score in all 4 games 50.0 % with White, 100.0 % with Black "
        ),
        "{part}"
    );
    // A lost a game with White, and has half of the points with this color.
    let row: Vec<&str> = lines[2].split_whitespace().collect();
    assert_eq!(row[..4], ["Queen's", "Gambit", "D06", "1"], "{text}");
    assert!(lines[2].contains("-0.5"), "{text}");
    assert!(
        text.contains("\n  Sicilian Defense: Najdorf Variation"),
        "{text}"
    );
    let few = ok(dir.path(), "openings idx --min-games 2");
    assert_eq!(few.lines().count(), 1, "{few}");
    let output = run(dir.path(), "openings idx --min-games 2");
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(
        said,
        "no opening was played in at least 2 games: use a lower --min-games\n"
    );
    let output = run(dir.path(), "openings idx --families --limit 2");
    assert_eq!(
        output.stdout.split(|byte| *byte == b'\n').count(),
        5,
        "{output:?}"
    );
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(said, "1 more: --limit 3 lists all of them\n");
    let limited = ok_json(dir.path(), "openings idx --json -q --limit 2");
    // The family and its only variation count as two.
    let families = limited["families"].as_array().unwrap();
    assert_eq!(families.len(), 1);
    assert_eq!(families[0]["variations"].as_array().unwrap().len(), 1);
    assert_eq!(families[0]["eco"], json!(["D06", "D06"]));
    assert_eq!(limited["games"], 4);
    for (options, status, expected) in [
        ("--sort points", 2, "--player"),
        ("--player Nobody", 1, "Nobody"),
        ("--player A --opening nonsense", 2, "no opening is called"),
        (
            "--opening sicillian",
            2,
            "no opening is called \"sicillian\": did you mean \"Sicilian Defense",
        ),
    ] {
        let error = fails(dir.path(), &format!("openings idx {options}"), status);
        assert!(error.contains(expected), "{error}");
    }
}

#[test]
fn variations_are_folded_with_the_variations_within_them() {
    let dir = temp();
    let games = [sample("famous.pgn"), sample("selfplay.pgn")];
    let served = Served::start(dir.path(), args!["-q", &games[0], &games[1]]);
    let rows = |table: &Value| -> Vec<Value> {
        let families = table["families"].as_array().unwrap().iter();
        let rows = families.flat_map(|family| family["variations"].as_array().unwrap().clone());
        rows.collect()
    };
    for player in ["", "&player=Morphy,+Paul"] {
        let path = format!("/openings?duplicates=once{player}");
        let (all, folded) = (
            served.json(&path),
            served.json(&format!("{path}&fold=variation")),
        );
        let (names, variations) = (rows(&all), rows(&folded));
        assert!(
            !player.is_empty() || variations.len() < names.len(),
            "{}",
            names.len()
        );
        let mut folded_rows = 0;
        for variation in &variations {
            let name = variation["name"].as_str().unwrap();
            let is_variation = name.contains([':', ',']);
            let within: Vec<&Value> = names
                .iter()
                .filter(|row| {
                    let rest = row["name"].as_str().unwrap().strip_prefix(name);
                    rest.is_some_and(|rest| {
                        rest.is_empty() || is_variation && rest.starts_with([',', ':'])
                    })
                })
                .collect();
            folded_rows += within.len();
            for field in ["games", "white", "draws", "black", "wins", "losses"] {
                let sum: u64 = within.iter().map(|row| row[field].as_u64().unwrap()).sum();
                assert_eq!(variation[field], sum, "{name}: {field}");
            }
            if let [only] = within[..] {
                assert_eq!(only["performance"], variation["performance"], "{name}");
                assert_eq!(only["scoreRange"], variation["scoreRange"], "{name}");
            }
            // A comma after the name selects these games, and a colon those with only the name of the family.
            let end = if is_variation { ',' } else { ':' };
            let filter = format!("{name}{end}")
                .replace(' ', "+")
                .replace('\'', "%27");
            let listed = served.json(&format!(
                "/games?limit=0&duplicates=once{player}&opening={filter}"
            ));
            assert_eq!(listed["total"], variation["games"], "{name}");
        }
        assert_eq!(folded_rows, names.len());
    }
}

/// Five games lead to the Ruy Lopez, and three of them begin after its first moves.
fn games_from_other_positions(dir: &std::path::Path) {
    let after_e4 = "rnbqkbnr/pppppppp/8/8/4P3/8/PPPP1PPP/RNBQKBNR b KQkq - 0 1";
    let after_nc6 = "r1bqkbnr/pppp1ppp/2n5/4p3/4P3/5N2/PPPP1PPP/RNBQKB1R w KQkq - 2 3";
    let game = |white: &str, fen: &str, moves: &str| {
        let start = match fen {
            "" => String::new(),
            fen => format!("[SetUp \"1\"]\n[FEN \"{fen}\"]\n"),
        };
        format!("[White \"{white}\"]\n[Black \"X\"]\n[Result \"1-0\"]\n{start}\n{moves} 1-0\n\n")
    };
    let usual = "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1";
    let games = [
        game("A", "", "1. e4 e5 2. Nf3 Nc6 3. Bb5 a6"),
        game("B", usual, "1. e4 e5 2. Nf3 Nc6 3. Bb5 a6"),
        game("C", after_e4, "1... e5 2. Nf3 Nc6 3. Bb5 a6"),
        game("D", after_nc6, "3. Bb5 a6"),
        game("D", after_nc6, "3. Bb5 Nf6"),
    ];
    fs::write(dir.join("games.pgn"), games.concat()).unwrap();
    fs::write(dir.join("from.pgn"), &games[3]).unwrap();
    fs::write(dir.join("usual.pgn"), &games[0]).unwrap();
}

#[test]
fn games_from_other_positions_are_counted_and_the_advice_shows_them() {
    let dir = temp();
    let dir = dir.path();
    games_from_other_positions(dir);
    let said = |line: &str| {
        let output = run(dir, line);
        assert!(output.status.success(), "{line}");
        String::from_utf8(output.stderr).unwrap()
    };
    for (options, others) in [
        ("", 3),
        ("--moves e4", 3),
        ("--player D", 2),
        ("--player C", 1),
        ("--player A", 0),
        ("--duplicates once", 3),
    ] {
        for command in ["show", "games", "openings"] {
            let line = format!("{command} games.pgn {options}");
            let note = said(&line);
            let count = match others {
                0 => String::new(),
                1 => "1 game begins in another position".to_owned(),
                others => format!("{others} games begin in another position"),
            };
            assert!(note.contains(&count), "{line}: {note}");
            assert_eq!(
                note.contains("another position"),
                others > 0,
                "{line}: {note}"
            );
            let document = ok_json(dir, &format!("{line} --json"));
            let expected = (others > 0).then_some(others);
            assert_eq!(document["other_starts"].as_u64(), expected, "{line}");
        }
    }
    // In the position of such a game, nothing is left out. A file may contain no other games, or only usual ones.
    let fen = "r1bqkbnr/pppp1ppp/2n5/4p3/4P3/5N2/PPPP1PPP/RNBQKB1R w KQkq - 2 3";
    let output = run(dir, &["games", "games.pgn", "--fen", fen, "--json"]);
    let document: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(document["total"], 5);
    assert!(document.get("other_starts").is_none(), "{document}");
    let only = said("games from.pgn");
    assert!(
        only.contains(&format!("for example with --fen \"{fen}\"")),
        "{only}"
    );
    assert!(!said("games usual.pgn").contains("another position"));
    let served = Served::start(dir, "-q games.pgn");
    let others = |path: &str| served.json(path)["otherStarts"].clone();
    assert_eq!(served.json("/lichess")["polybook"]["otherStarts"], 3);
    assert_eq!(
        served.json("/player?player=D&color=white")["polybook"]["otherStarts"],
        2
    );
    assert_eq!(others("/games"), 3);
    assert_eq!(
        others("/openings?opening=Ruy Lopez".replace(' ', "+").as_str()),
        3
    );
    assert_eq!(others("/games?player=A"), serde_json::Value::Null);
    let fen = fen.replace(' ', "_");
    assert_eq!(
        others(&format!("/games?fen={fen}")),
        serde_json::Value::Null
    );
    for (path, number) in [
        ("/facets", 3),
        ("/scores?by=rating", 3),
        ("/prepare?player=D&color=white&me=X", 3),
        ("/prepare?player=D&color=white&me=Y", 2),
    ] {
        assert_eq!(others(path), number, "{path}");
    }
    for command in ["tree from.pgn", "tree games.pgn"] {
        let note = said(command);
        assert!(note.contains("begin in another position"), "{note}");
    }
    ok(dir, "make-book -q from.pgn --explorer from.idx");
    let note = said("tree from.idx");
    assert!(note.contains("1 game begins in another position"), "{note}");
    let prepared = said("prepare games.pgn --player X --opponent D --color black");
    assert!(
        prepared.contains("3 games begin in another position"),
        "{prepared}"
    );
    fs::write(dir.join("mine.pgn"), "1. e4 e5 *\n").unwrap();
    for command in [
        "repertoire build from.pgn --color white --out built.pgn",
        "repertoire gaps mine.pgn --color white --against from.pgn",
    ] {
        let output = run(dir, command);
        let error = String::from_utf8(output.stderr).unwrap();
        assert!(!output.status.success(), "{command}");
        assert!(
            error.contains("1 game begins in another position") && error.contains("--from \""),
            "{command}: {error}"
        );
    }
    let built = said("repertoire build games.pgn --color white --out built.pgn");
    assert!(
        built.contains("3 games begin in another position"),
        "{built}"
    );
    // Counts do not say where games began.
    ok(
        dir,
        "make-book -q games.pgn --counts counts --by speed,rating,month",
    );
    ok(dir, "make-book -q counts --explorer counts.idx");
    assert!(!said("show counts.idx").contains("another position"));
}

#[test]
fn spellings_with_more_games_are_named() {
    let dir = temp();
    let dir = dir.path();
    let game = |white: &str, black: &str| {
        format!("[White \"{white}\"]\n[Black \"{black}\"]\n[Result \"1-0\"]\n\n1. e4 c5 1-0\n\n")
    };
    let games = [
        game("Carlsen, Magnus", "X"),
        game("Carlsen,M", "Y"),
        game("Z", "Carlsen,M"),
        game("Carlsen,H", "X"),
        game("Carlsen,H", "Y"),
    ];
    fs::write(dir.join("games.pgn"), games.concat()).unwrap();
    ok(dir, "make-book -q games.pgn --explorer idx");
    let said = |args: &[&str]| {
        let output = run(dir, args);
        assert!(output.status.success());
        String::from_utf8(output.stderr).unwrap()
    };
    let made: [&[&str]; 2] = [
        &[
            "make-book",
            "games.pgn",
            "--min-game",
            "1",
            "--force",
            "--bin",
            "x.bin",
        ],
        &["extract", "games.pgn", "--force", "--out", "x.pgn"],
    ];
    let commands = [
        &["openings", "idx"][..],
        &["show", "idx"],
        &["games", "idx"],
    ];
    for command in commands.iter().chain(&made) {
        let note = said(&[command, &["--player", "Carlsen, Magnus"][..]].concat());
        let expected = "\"Carlsen, Magnus\" matches 1 game, but names that may be other spellings have more: \"Carlsen,M\" \
                        (2 games)\n";
        assert_eq!(note.matches(expected).count(), 1, "{command:?}: {note}");
        for options in [
            &["--player", "Carlsen,M"][..],
            &["--exact", "--player", "Carlsen, Magnus"],
            // As White, each of the two spellings has one game.
            &["--white", "Carlsen, Magnus"],
        ] {
            let note = said(&[command, options].concat());
            assert!(
                !note.contains("spellings"),
                "{command:?} {options:?}: {note}"
            );
        }
    }
}

#[test]
fn copies_of_the_games_of_a_player_are_counted() {
    let dir = temp();
    let dir = dir.path();
    let game = "[White \"Tal\"]\n[Black \"X\"]\n[Date \"1960.01.01\"]\n[Result \"1-0\"]\n\n1. e4 c5 1-0\n\n";
    let other = game.replace("Tal", "Petrosian");
    fs::write(dir.join("games.pgn"), [game, game, game, &other].concat()).unwrap();
    ok(dir, "make-book -q games.pgn --explorer idx");
    for command in ["openings", "show"] {
        let said = |options: &str| {
            let output = run(dir, &format!("{command} idx {options}"));
            String::from_utf8(output.stderr).unwrap()
        };
        let note = "2 of these 3 games are copies of others: count each game once with --duplicates once\n";
        assert!(said("--player tal").contains(note), "{command}");
        for options in [
            "--player petrosian",
            "--player tal --duplicates once",
            "--player tal --duplicates all",
            "--player tal -q",
        ] {
            assert!(!said(options).contains("copies"), "{command} {options}");
        }
    }
}

#[test]
fn a_name_with_typing_errors_is_corrected_as_in_the_search_of_the_page() {
    let dir = temp();
    let dir = dir.path();
    let game = |white: &str| {
        format!("[White \"{white}\"]\n[Black \"X\"]\n[Result \"1-0\"]\n\n1. e4 c5 1-0\n\n")
    };
    let games = [
        "Carlsen, Magnus",
        "Carlsen, Magnus",
        "Karpov, Anatoly",
        "Ivanchuk, Vassily",
    ]
    .map(game);
    fs::write(dir.join("games.pgn"), games.concat()).unwrap();
    ok(dir, "make-book -q games.pgn --explorer idx");
    for (name, games, meant) in [
        ("Carlson", 2, "Carlsen, Magnus"),
        ("Calrsen", 2, "Carlsen, Magnus"),
        ("Karpow", 1, "Karpov, Anatoly"),
        ("ivanchuck", 1, "Ivanchuk, Vassily"),
    ] {
        let line = format!("openings idx --player {name}");
        let output = run(dir, &line);
        let note = String::from_utf8(output.stderr).unwrap();
        let expected =
            format!("no player's name contains \"{name}\": the games are those of \"{meant}\"\n");
        assert!(note.contains(&expected), "{note}");
        let document = ok_json(dir, &format!("{line} --json"));
        assert_eq!(document["games"], games, "{document}");
        assert_eq!(document["matched_players"], serde_json::json!([meant]));
    }
    // A whole name is not corrected, and a name that resembles no other is an error.
    let error = fails(dir, "openings idx --player Carlson --exact", 1);
    assert!(
        error.contains("no player has exactly the name \"Carlson\""),
        "{error}"
    );
    let error = fails(dir, "openings idx --player Smyslov", 1);
    assert!(
        error.contains("no player's name contains \"Smyslov\""),
        "{error}"
    );
    // Two people may be meant.
    fs::write(dir.join("more.pgn"), game("Carlsson, P")).unwrap();
    ok(dir, "make-book -q games.pgn more.pgn --explorer both");
    let error = fails(dir, "openings both --player Carlson", 1);
    assert!(
        error.contains("did you mean \"Carlsson, P\" or \"Carlsen, Magnus\"?"),
        "{error}"
    );
}
