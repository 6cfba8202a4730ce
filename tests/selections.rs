//! Selecting games: repeated options, tags, and duplicate games.

use std::{fs, path::Path};

use polybook::selection::Spelling;

use crate::common::{fails, ok, ok_json, run, served::Served, temp};

const GAMES: &str = "\
[Event \"Rated Blitz game\"]\n[White \"Tal, M\"]\n[Black \"Karpov\"]\n[ECO \"B87\"]\n[Result \"1-0\"]\n\n1. e4 c5 1-0\n\n\
[Event \"Casual Blitz game\"]\n[White \"Karpov\"]\n[Black \"Talbot\"]\n[ECO \"C60\"]\n[Result \"0-1\"]\n\n1. e4 e5 0-1\n\n\
[Event \"Rated Bullet game\"]\n[White \"Fischer\"]\n[Black \"Spassky\"]\n[ECO \"D20\"]\n[Result \"1/2-1/2\"]\n\n1. d4 d5 1/2-1/2\n";

fn counted(dir: &Path, options: &[&str]) -> u64 {
    let line = [
        &["make-book", "--json", "-q", "--allow-empty", "games.pgn"],
        options,
    ]
    .concat();
    ok_json(dir, &line)["games"]["counted"].as_u64().unwrap()
}

#[test]
fn repeated_options_and_tags() {
    let dir = temp();
    fs::write(dir.path().join("games.pgn"), GAMES).unwrap();
    for (options, games) in [
        (&["--player", "tal"][..], 2),
        (&["--player", "tal", "--player", "fischer"], 3),
        (&["--player", "tal", "--exact"], 0),
        (&["--player", "TALBOT", "--player", "tal, m", "--exact"], 2),
        (&["--white", "tal", "--white", "fischer"], 2),
        (&["--white", "tal", "--black", "spassky"], 0),
        (&["--eco", "B", "--eco", "D10-D99"], 2),
        (&["--tag", "Event=blitz"], 2),
        (&["--tag", "Event=blitz", "--tag", "event=RATED"], 1),
        (&["--not-tag", "Event=blitz"], 1),
        (&["--not-tag", "Event=casual", "--not-tag", "ECO=D2"], 1),
        (&["--rated"], 2),
        (&["--rated", "--tag", "Event=blitz", "--eco", "B"], 1),
        (&["--tag", "Annotator="], 0),
    ] {
        assert_eq!(counted(dir.path(), options), games, "{options:?}");
    }
    let report = ok_json(
        dir.path(),
        "make-book --json -q games.pgn --min-game 1 --rated --tag Event=blitz",
    );
    assert_eq!(
        report["filtered_by"],
        serde_json::json!({"tag": 1, "rated": 1})
    );
    let header = ok(dir.path(), "pgheader -s book.bin");
    let said = "--tag \"Event=blitz\" --rated";
    assert!(header.contains(said), "{header}");
    let error = fails(dir.path(), "make-book games.pgn --tag Event", 2);
    assert!(error.contains("NAME=TEXT"), "{error}");
    let make_book: &[&str] = &["make-book", "games.pgn"];
    let asked: &[&str] = &["--leveldb", "a.idx"];
    for (command, option) in [
        (make_book, "--player"),
        (make_book, "--white"),
        (make_book, "--black"),
        (&[&["games"], asked].concat(), "--player"),
        (&[&["moves"], asked].concat(), "--player"),
        (&[&["moves"], asked].concat(), "--event"),
    ] {
        for name in ["", " \t"] {
            let error = fails(dir.path(), &[command, &[option, name]].concat(), 2);
            assert!(
                error.contains("give at least one letter"),
                "{command:?} {error}"
            );
        }
    }
}

/// Makes all outputs from games. Returns the book, the moves of the index, and the table of the database.
fn made(dir: &Path, input: &str, options: &str) -> [Vec<u8>; 3] {
    let line = format!(
        "make-book -q --no-header --min-game 1 {input} --bin a.bin --leveldb a.idx --index-stats --obs a.obs.db3 \
         --force {options}"
    );
    ok(dir, &line);
    ok(dir, "convert -q a.obs.db3 a.csv --force");
    let moves = ok(dir, "show a.idx");
    let read = |name| fs::read(dir.join(name)).unwrap();
    [read("a.bin"), moves.into_bytes(), read("a.csv")]
}

#[test]
fn a_player_has_several_names() {
    let dir = temp();
    let game = |white: &str, black: &str, result: &str| {
        format!(
            "[White \"{white}\"]\n[Black \"{black}\"]\n[WhiteElo \"2000\"]\n[BlackElo \"2100\"]\n[Result \"{result}\"]\n\n1. e4 e5 2. Nf3 {result}\n\n"
        )
    };
    let games = [
        game("Doe, Jane", "Other", "1-0"),
        game("Another", "jane42", "0-1"),
        game("jane42", "Doe, Jane", "0-1"),
        game("Other", "Another", "1-0"),
    ];
    fs::write(dir.path().join("games.pgn"), games.concat()).unwrap();
    ok(dir.path(), "make-book -q games.pgn --explorer games.idx");
    let names = ["--player=Doe, Jane", "--player=jane42", "--exact"];
    let asked = |command: &[&str]| ok_json(dir.path(), &[command, &names].concat());
    // The game of the two names counts once.
    let at = ["games.idx", "--json"];
    let moves = asked(&[&["show"], &at[..]].concat());
    assert_eq!(moves["games"], 3);
    assert_eq!(asked(&[&["games"], &at[..]].concat())["total"], 3);
    let openings = asked(&[&["openings"], &at[..]].concat());
    // The game belongs to the player with White, who lost it.
    let row = &openings["families"][0];
    assert_eq!([&row["wins"], &row["losses"]], [2, 1]);
    let made = asked(&["make-book", "-q", "--json", "games.pgn", "--min-game=1"]);
    assert_eq!(made["games"]["counted"], 3);
    fs::write(dir.path().join("white.pgn"), "1. e4 e5 *\n").unwrap();
    fs::write(dir.path().join("black.pgn"), "1. e4 c5 *\n").unwrap();
    let both = [
        "--white=white.pgn",
        "--black=black.pgn",
        "--json",
        "games.pgn",
    ];
    let checked = asked(&[&["repertoire", "check"], &both[..]].concat());
    let sides = checked["games"].as_array().unwrap().iter();
    let sides: Vec<&str> = sides.map(|game| game["color"].as_str().unwrap()).collect();
    assert_eq!(sides, ["white", "black", "white"]);
    let new = [
        "repertoire",
        "new",
        "games.pgn",
        "--reference=white.pgn",
        "--json",
    ];
    assert_eq!(asked(&new)["games"].as_array().unwrap().len(), 3);
    // A name that no game has is an error if there are no games, and otherwise a warning.
    let known = ["show", "games.idx", "--player=Doe, Jane", "--exact"];
    let misspelt = [&known[..], &["--player=jane43"]].concat();
    let output = run(dir.path(), &misspelt);
    let warning = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{warning}");
    assert!(
        warning.contains("no player has exactly the name \"jane43\": did you mean \"jane42\""),
        "{warning}"
    );
}

#[test]
fn the_first_of_equal_games_counts_whatever_the_threads_and_the_memory() {
    if !crate::common::runs_slow_tests() {
        return;
    }
    let dir = temp();
    let once = crate::common::many_games();
    // The duplicates differ in where they were played.
    let again = once.replace("[Result", "[Site \"Riga\"]\n[Result");
    fs::write(dir.path().join("once.pgn"), once).unwrap();
    fs::write(dir.path().join("twice.pgn"), format!("{once}{again}{once}")).unwrap();
    let expected = made(dir.path(), "once.pgn", "--threads 1");
    for resources in ["--threads 1", "--threads 4", "--threads 3 --memory 64KiB"] {
        let options = format!("--drop-duplicates {resources}");
        let made = made(dir.path(), "twice.pgn", &options);
        for (made, expected) in made.iter().zip(&expected) {
            assert!(made == expected, "{resources}");
        }
    }
    let report = ok_json(
        dir.path(),
        "make-book -q --json twice.pgn --drop-duplicates --leveldb b.idx",
    );
    assert_eq!(report["games"]["read"], 4500);
    assert_eq!(report["games"]["counted"], 1500);
    assert_eq!(report["filtered_by"]["duplicate"], 3000);
    // Games that are left out keep their records.
    assert_eq!(report["index"]["games"], 4500);
    let last = ok_json(dir.path(), &["games", "b.idx", "--json", "--limit", "5000"]);
    assert_eq!(last["total"], 1500);
    assert_eq!(last["games"][1499]["id"], 1499);
    assert_eq!(last["games"][1499]["site"], serde_json::Value::Null);
}

#[test]
fn what_makes_a_game_the_same() {
    let dir = temp();
    let counted = |games: &[&str], options: &[&str]| {
        fs::write(dir.path().join("games.pgn"), games.join("\n\n")).unwrap();
        let drop = [&["--drop-duplicates"], options].concat();
        counted(dir.path(), &drop)
    };
    let tal = "[White \"Tal\"]\n\n1. e4 e5 2. Nf3 Nc6 *";
    let annotated = "[White \"TAL\"]\n[Date \"1960\"]\n\n1. e4! {best} e5 (1... c5) 2. Ng1f3 Nc6 *";
    assert_eq!(counted(&[tal, annotated], &[]), 1);
    let won = tal.replace('*', "1-0");
    let tagged = won.replace("\n\n", "\n[Result \"*\"]\n\n");
    assert_eq!(counted(&[tal, &won], &[]), 2);
    assert_eq!(counted(&[tal, &tagged], &[]), 1);
    assert_eq!(counted(&[tal, annotated], &["--variations"]), 1);
    let other = "[White \"Tal\"]\n\n1. e4 e5 2. Nf3 Nf6 *";
    assert_eq!(counted(&[tal, other], &[]), 2);
    // Moves that are not counted are compared, too.
    assert_eq!(counted(&[tal, other], &["--max-ply", "2"]), 2);
    assert_eq!(counted(&[tal, annotated], &["--max-ply", "2"]), 1);
    assert_eq!(
        counted(&[tal, annotated], &["--max-ply", "2", "--variations"]),
        1
    );
    assert_eq!(
        counted(&[tal, annotated], &["--max-ply", "2", "--min-plies", "4"]),
        1
    );
    assert_eq!(
        counted(&[tal, annotated], &["--max-ply", "2", "--min-plies", "5"]),
        0
    );
    // A game that another filter rejects does not make a later equal game a duplicate.
    assert_eq!(counted(&[tal, &won, &won], &["--result", "1-0"]), 1);
    let setup = "[White \"Tal\"]\n[FEN \"rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKB1R w KQkq - 0 1\"]\n\n1. e4 e5 *";
    let usual = "[White \"Tal\"]\n\n1. e4 e5 *";
    assert_eq!(counted(&[setup, usual], &[]), 2);
    let null = [
        "[White \"x\"]\n\n1. e4 -- 2. d4 *",
        "[White \"x\"]\n\n1. e4 -- 2. c4 *",
    ];
    assert_eq!(counted(&null, &[]), 2);
}

#[test]
fn the_beginning_of_a_broken_game_counts_once() {
    let dir = temp();
    let broken = "[White \"Tal\"]\n\n1. e4 e5 2. Ke5 *\n\n";
    fs::write(dir.path().join("games.pgn"), broken.repeat(2)).unwrap();
    let report = ok_json(
        dir.path(),
        "make-book -q --json games.pgn --keep-prefix --drop-duplicates --min-game 1",
    );
    assert_eq!(report["games"]["rejected"], 2);
    assert_eq!(report["plies"], 2);
    assert!(report.get("filtered_by").is_none());
}

/// `--result` accepts what a `Result` tag may say.
#[test]
fn results_are_asked_for_in_any_spelling() {
    let dir = temp();
    let games = ["1-0", "0:1", "\u{bd}-\u{bd}", "0-0"]
        .map(|result| format!("[Result \"{result}\"]\n\n1. e4 {result}\n\n"));
    fs::write(dir.path().join("games.pgn"), games.concat()).unwrap();
    ok(dir.path(), "make-book -q games.pgn --explorer a.idx");
    for result in [
        "1-0",
        "1:0",
        "1\u{2013}0",
        "+--",
        "0,5-0,5",
        "1/2",
        "0-1",
        "*",
    ] {
        let options = ["--result", result];
        assert_eq!(counted(dir.path(), &options), 1, "{result}");
        let moves = ok_json(
            dir.path(),
            args!["show", "a.idx", "--json", "--result", result],
        );
        assert_eq!(moves["games"], 1, "{result}");
    }
    let error = fails(dir.path(), "make-book games.pgn --result 2-0", 2);
    assert!(error.contains("use 1-0, 0-1, 1/2-1/2 or *"), "{error}");
    for empty in ["", " ", ","] {
        for command in [
            "make-book games.pgn",
            "games a.idx",
            "show a.idx",
            "openings a.idx",
        ] {
            let words: Vec<&str> = command.split(' ').chain(["--result", empty]).collect();
            fails(dir.path(), &words, 2);
        }
    }
}

/// A filter may match more names than the printed lists contain. The lists then contain the names with the most games.
#[test]
fn shortened_lists_of_matched_names_have_the_names_with_the_most_games() {
    let dir = temp();
    let dir = dir.path();
    let game = |white: String| format!("[White \"{white}\"]\n[Black \"X\"]\n\n1. e4 e5 *\n\n");
    let numbered = |name: &'static str| (0..300).map(move |number| format!("{name} {number}"));
    let twice = numbered("Tal").chain(numbered("Doe"));
    let mut games: String = twice.map(|name| game(name).repeat(2)).collect();
    games += &game("Tal, Mikhail".to_owned()).repeat(9);
    games += &game("Tal Doe".to_owned());
    fs::write(dir.join("games.pgn"), games).unwrap();
    ok(dir, "make-book -q games.pgn --explorer games.idx");
    for command in [
        "show games.idx --player tal --json",
        "make-book games.pgn --player tal --min-game 1 --json",
    ] {
        let output = run(dir, command);
        let document: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        let names = document["matched_players"].as_array().unwrap();
        assert_eq!(names.len(), 100, "{command}");
        assert_eq!(names[0], "Tal, Mikhail", "{command}");
        let said = String::from_utf8(output.stderr).unwrap();
        let note = "\"tal\" matches 302 names: \"Tal, Mikhail\" (9 games), \"Tal 0\" (";
        assert!(said.contains(note), "{command}: {said}");
    }
    let prepare = "prepare games.idx --player tal --opponent doe --color white";
    let said = String::from_utf8(run(dir, prepare).stderr).unwrap();
    let both = "--player and --opponent both match \"Tal Doe\"";
    assert!(said.contains(both), "{said}");
}

/// A part of a name can match several players. Each command says so, and suggests names if it matches none.
#[test]
fn names_that_match_several_players_are_listed() {
    let dir = temp();
    let dir = dir.path();
    fs::write(dir.join("games.pgn"), GAMES).unwrap();
    ok(dir, "make-book -q games.pgn --explorer games.idx");
    fs::write(dir.join("mine.pgn"), "1. e4 e5 *\n").unwrap();
    for command in [
        "show games.idx --player tal",
        "games games.idx --player tal",
        "openings games.idx --player tal",
        "prepare games.idx --player tal --opponent karpov --color white",
        "make-book games.pgn --player tal --min-game 1 --json",
        "repertoire build games.pgn --color white --white tal --white karpov --white talbot --white x --out - --json",
        "repertoire build games.pgn --color white --player tal --out white.pgn",
        "repertoire check --white mine.pgn --black mine.pgn games.pgn --player tal",
    ] {
        let output = run(dir, command);
        let said = String::from_utf8(output.stderr).unwrap();
        let names = match command {
            command if command.contains("--white tal") => None,
            command if command.contains("repertoire build") => Some(vec![]),
            _ => Some(vec!["Tal, M", "Talbot"]),
        };
        let note = "\"tal\" matches 2 names: \"Tal, M\"";
        // Only one of the two has White.
        let is_told = names.is_some_and(|names| !names.is_empty());
        assert_eq!(said.contains(note), is_told, "{command}: {said}");
    }
    for (command, pointer) in [
        ("show games.idx --player tal --json", "/matched_players"),
        ("games games.idx --player tal --json", "/matched_players"),
        ("openings games.idx --player tal --json", "/matched_players"),
        (
            "prepare games.idx --player karpov --opponent tal --color white --json",
            "/matched_opponents",
        ),
        (
            "make-book games.pgn --player tal --min-game 1 --json",
            "/matched_players",
        ),
        (
            "repertoire check --white mine.pgn --black mine.pgn games.pgn --player tal --json",
            "/summary/matched_players",
        ),
    ] {
        let document = ok_json(dir, &format!("{command} -q"));
        let names = document.pointer(pointer).unwrap();
        assert_eq!(*names, serde_json::json!(["Tal, M", "Talbot"]), "{command}");
    }
    let said = run(dir, "show games.idx --player talbot").stderr;
    assert!(!String::from_utf8(said).unwrap().contains("matches"));
    for command in [
        "make-book games.pgn --player spasky",
        "make-book games.pgn --black spasky --white fischer",
        "repertoire build games.pgn --color black --player spasky --out black.pgn",
        "repertoire gaps mine.pgn --color white --against games.pgn --black spasky",
    ] {
        let error = fails(dir, command, 1);
        assert!(
            error.contains("did you mean \"Spassky\"?"),
            "{command}: {error}"
        );
    }
}

/// Three games that differ in every property that a condition tests.
const DIFFERENT_GAMES: &str = "\
[Event \"Rated Riga blitz\"]\n[Date \"1958.02.03\"]\n[White \"Tal\"]\n[Black \"Karpov\"]\n[WhiteElo \"2600\"]\n[BlackElo \"2550\"]\n\
[ECO \"B20\"]\n[TimeControl \"300+0\"]\n[Result \"1-0\"]\n\n1. e4 c5 2. Nf3 1-0\n\n\
[Event \"Casual\"]\n[Date \"1961.??.??\"]\n[White \"Karpov\"]\n[Black \"Tal\"]\n[WhiteElo \"2100\"]\n[ECO \"C20\"]\n[Result \"0-1\"]\n\n\
1. e4 e5 0-1\n\n\
[Event \"Match\"]\n[White \"Talbot\"]\n[Black \"Spassky\"]\n[WhiteElo \"1500\"]\n[BlackElo \"1600\"]\n[ECO \"D00\"]\n\
[TimeControl \"60+0\"]\n[Result \"1/2-1/2\"]\n\n1. d4 d5 1/2-1/2\n";

/// Every condition, and the number of [`DIFFERENT_GAMES`] that meet it.
const CONDITIONS: [(&str, u64); 28] = [
    ("--since 1960", 2),
    ("--until 1959", 2),
    ("--require-date", 2),
    ("--min-elo 2000", 2),
    ("--max-elo 2000", 1),
    ("--require-elo", 2),
    ("--rating 2500", 1),
    ("--speed blitz", 1),
    ("--time-control 250-400", 1),
    ("--rated", 1),
    ("--event riga", 1),
    ("--opening sicilian", 1),
    ("--eco C", 1),
    ("--result 1-0", 1),
    ("--min-plies 3", 1),
    ("--tag ECO=D", 1),
    ("--not-tag ECO=D", 2),
    ("--duplicates once", 3),
    ("--position ply>=3", 1),
    ("--player tal", 3),
    ("--player tal --exact", 2),
    ("--player tal --color black", 1),
    ("--player tal --opponent karpov", 2),
    ("--player tal --opponent-rating 2500-", 1),
    ("--opponent spassky", 1),
    ("--white tal", 2),
    ("--black tal", 1),
    ("--white karpov --black tal", 1),
];

/// The conditions for which an index lacks data.
const NOT_IN_INDEXES: [&str; 3] = ["--tag", "--not-tag", "--time-control"];

/// The conditions that counts by speed, rating group and month can answer.
const OF_CLASSES: [&str; 5] = [
    "--since",
    "--until",
    "--require-date",
    "--rating",
    "--speed",
];

/// Returns the conditions as parameters of HTTP.
fn parameters(condition: &str) -> String {
    let mut query = form_urlencoded::Serializer::new(String::new());
    let mut words = condition.split(' ').peekable();
    while let Some(option) = words.next() {
        let value = words.next_if(|word| !word.starts_with("--"));
        let name = Spelling::Parameter.of(option.trim_start_matches('-'));
        query.append_pair(&name, value.unwrap_or("true"));
    }
    if !condition.contains("--exact") {
        query.append_pair("exact", "false");
    }
    query.finish()
}

/// A command applies a condition, or says which option it refuses.
#[test]
fn every_command_has_every_condition() {
    let dir = temp();
    let dir = dir.path();
    fs::write(dir.join("games.pgn"), DIFFERENT_GAMES).unwrap();
    fs::write(
        dir.join("mine.pgn"),
        "1. e4 (1. d4) 1... c5 (1... e5 2. Nf3) 2. Nf3 *\n",
    )
    .unwrap();
    ok(dir, "make-book -q games.pgn --explorer games.idx");
    ok(
        dir,
        "make-book -q games.pgn --min-game 1 --bin book.bin --leveldb fork.idx --index-stats --counts counts",
    );
    let counts = |line: &str, condition: &str| {
        let found = ok_json(dir, &format!("{line} {condition} --json"));
        match &found["games"] {
            games if games.is_array() => found["total"]
                .as_u64()
                .unwrap_or_else(|| games.as_array().unwrap().len() as u64),
            games if games.is_object() => games["counted"].as_u64().unwrap(),
            games => games.as_u64().unwrap(),
        }
    };
    let served = Served::start(dir, "-q games.idx");
    for (condition, games) in CONDITIONS {
        let option = condition
            .split(' ')
            .rfind(|word| word.starts_with("--"))
            .unwrap();
        for line in [
            "make-book -q games.pgn --allow-empty --bin new.bin --force",
            "games games.idx",
            "openings games.idx",
            "show games.idx",
            "repertoire new games.pgn --reference games.idx",
        ] {
            let is_refused = match line.split(' ').next() {
                Some("games" | "openings" | "show") => NOT_IN_INDEXES.contains(&option),
                Some("repertoire") => option == "--duplicates",
                _ => false,
            };
            if is_refused {
                let error = fails(dir, &format!("{line} {condition}"), 2);
                assert!(
                    error.contains(&format!("{option} does not apply")),
                    "{line}: {error}"
                );
            } else {
                assert_eq!(counts(line, condition), games, "{line} {condition}");
            }
        }
        let extracted = ok(dir, &format!("extract games.pgn -q {condition}"));
        assert_eq!(
            extracted.matches("[White ").count() as u64,
            games,
            "{condition}"
        );
        let query = parameters(condition);
        if NOT_IN_INDEXES.contains(&option) {
            let reply = served.ask(
                "GET",
                &format!("/games?{query}"),
                "Accept: application/json\r\n",
            );
            let name = Spelling::Parameter.of(option.trim_start_matches('-'));
            let error = format!("the parameter {name} does not apply");
            assert_eq!(reply.status, 400, "{query}");
            let document: serde_json::Value = serde_json::from_slice(&reply.body).unwrap();
            assert!(
                document["error"].as_str().unwrap().contains(&error),
                "{document}"
            );
        } else {
            assert_eq!(
                served.json(&format!("/games?{query}"))["total"],
                games,
                "{query}"
            );
        }
        for line in [
            "repertoire build SOURCE --color white --min-game 1 --out -",
            "repertoire gaps mine.pgn --color white --min-game 1 --against SOURCE",
        ] {
            let [of_games, of_index] = ["games.pgn", "games.idx"].map(|source| {
                run(
                    dir,
                    &format!("{line} {condition}").replace("SOURCE", source),
                )
            });
            if NOT_IN_INDEXES.contains(&option) {
                let error = String::from_utf8_lossy(&of_index.stderr);
                let named = format!(
                    "which the condition {} needs",
                    option.trim_start_matches('-')
                );
                assert!(error.contains(&named), "{line} {condition}: {error}");
                let error = String::from_utf8_lossy(&of_games.stderr);
                assert!(!error.contains(&named), "{line} {condition}: {error}");
            } else if of_games.status.success() {
                assert_eq!(of_index.stdout, of_games.stdout, "{line} {condition}");
            }
        }
        for line in [
            "prepare games.idx --player tal --opponent karpov --color white",
            "repertoire build games.pgn --color white --out -",
            "repertoire check mine.pgn games.pgn --color white",
            "repertoire gaps mine.pgn --color white --against games.pgn",
            "engine games.idx",
        ] {
            let output = run(dir, &format!("{line} {condition}"));
            let error = String::from_utf8(output.stderr).unwrap();
            assert!(
                !error.contains("unexpected argument"),
                "{line} {condition}: {error}"
            );
            let is_named = condition.split(' ').any(|word| error.contains(word));
            assert!(
                output.status.code() != Some(2) || is_named,
                "{line} {condition}: {error}"
            );
        }
        for (source, what) in [("book.bin", "a book"), ("fork.idx", "--leveldb")] {
            let error = fails(dir, &format!("show {source} {condition}"), 2);
            assert!(error.contains(source) && error.contains(what), "{error}");
        }
        for line in ["show counts", "make-book counts --bin new.bin --force"] {
            let is_of_class = OF_CLASSES.contains(&option);
            let (status, told) = match line.split(' ').next() {
                _ if is_of_class => (
                    1,
                    "these counts are not divided, but the conditions need".to_owned(),
                ),
                Some("show") => (
                    2,
                    format!("{option} does not apply to a directory of counts"),
                ),
                _ => (
                    1,
                    format!(
                        "which the condition {} needs",
                        option.trim_start_matches('-')
                    ),
                ),
            };
            let error = fails(dir, &format!("{line} {condition}"), status);
            let first = condition.split(' ').next().unwrap();
            let told_first = told
                .replace(option, first)
                .replace(&option[2..], &first[2..]);
            assert!(
                error.contains(&told) || error.contains(&told_first),
                "{line} {condition}: {error}"
            );
        }
    }
    let error = fails(dir, "show book.bin --player tal", 2);
    assert!(
        error.contains(
            "book.bin: --player does not apply to a book, which contains no player names"
        ),
        "{error}"
    );
}

/// Games that are checked against a repertoire meet conditions on their moves and results, as in other commands.
#[test]
fn check_applies_conditions_to_the_side_of_the_repertoire() {
    let dir = temp();
    let dir = dir.path();
    fs::write(dir.join("games.pgn"), DIFFERENT_GAMES).unwrap();
    fs::write(dir.join("white.pgn"), "1. e4 c5 2. Nf3 *\n").unwrap();
    for (condition, games) in [
        ("", &[0, 1, 2][..]),
        ("--min-plies 3", &[0]),
        ("--result 0-1", &[1]),
        ("--opening sicilian", &[0]),
        ("--event match", &[2]),
        ("--player tal", &[0, 2]),
        ("--player tal --result win", &[0]),
        ("--player karpov --result loss", &[1]),
        ("--opponent tal", &[1]),
        ("--player karpov --opponent tal", &[1]),
        ("--player tal --opponent-rating 1600-1650", &[2]),
    ] {
        let line = format!("repertoire check white.pgn games.pgn --color white --json {condition}");
        let checked = ok_json(dir, &line);
        let numbers = checked["games"].as_array().unwrap().iter();
        let numbers: Vec<u64> = numbers.map(|game| game["game"].as_u64().unwrap()).collect();
        assert_eq!(numbers, games, "{condition}");
    }
    let line = "repertoire check white.pgn --color white --contradictions --min-plies 3";
    assert!(fails(dir, line, 2).contains("conditions on games do not apply"));
}

#[test]
fn an_event_that_no_game_has_is_answered_with_similar_events() {
    let dir = temp();
    let dir = dir.path();
    let game = |event: &str| format!("[Event \"{event}\"]\n[White \"A\"]\n\n1. e4 *\n\n");
    let games = [game("Candidates, Zürich"), game("Club championship")].concat();
    fs::write(dir.join("games.pgn"), games).unwrap();
    let line = "make-book games.pgn --bin book.bin --min-game 1 --event";
    let error = fails(dir, &format!("{line} Canddates"), 1);
    assert!(
        error.contains("did you mean \"Candidates, Zürich\"?"),
        "{error}"
    );
    // The event exists, but not in games with this player.
    let error = fails(dir, &format!("{line} Candidates --white B"), 1);
    assert!(!error.contains("Candidates"), "{error}");
    let printed = run(dir, "extract games.pgn --event Canddates");
    let said = String::from_utf8_lossy(&printed.stderr);
    assert!(
        said.contains("did you mean \"Candidates, Zürich\"?"),
        "{said}"
    );
}

/// The games of the name are left out by another filter.
#[test]
fn a_name_that_a_game_has_is_not_answered_with_similar_names() {
    let dir = temp();
    let dir = dir.path();
    let game = |event: &str, white: &str| {
        format!(
            "[Event \"{event}\"]\n[White \"{white}\"]\n[Black \"B\"]\n[TimeControl \"60+0\"]\n\n1. e4 *\n\n"
        )
    };
    let games = [game("Club", "Ann Lee"), game("Clubs", "Anne Lee")].concat();
    fs::write(dir.join("games.pgn"), games).unwrap();
    for filter in ["--white", "--player", "--event"] {
        for (name, is_known) in [(["Ann Lee", "Club"], true), (["An Lee", "Clu"], false)] {
            let name = name[usize::from(filter == "--event")];
            let options = [filter, name, "--exact", "--speed", "blitz"];
            for command in [
                &["make-book", "games.pgn", "--bin", "book.bin"][..],
                &["extract", "games.pgn", "--count"],
                &["repertoire", "new", "games.pgn", "--reference", "games.pgn"],
            ] {
                let output = run(dir, &[command, &options].concat()[..]);
                let said = String::from_utf8_lossy(&output.stderr);
                // `repertoire new` suggests names of players only.
                let may_suggest = command[0] != "repertoire" || filter != "--event";
                let suggests = !is_known && may_suggest;
                assert_eq!(
                    said.contains("did you mean"),
                    suggests,
                    "{command:?} {options:?}: {said}"
                );
            }
        }
    }
}
