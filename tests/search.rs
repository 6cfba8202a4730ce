//! Queries about the board, and extracting games.

use std::{fs, io::Write, path::Path, process::Stdio};

use polybook::explorer::{Explorer, Selection};

use crate::common::{fails, fed, ok, ok_json, polybook_in, python, run, run_python, sample, temp};

#[test]
fn queries_find_what_python_chess_finds() {
    let Some(python) = python(&["chess"]) else {
        return;
    };
    let program = Path::new(env!("CARGO_BIN_EXE_polybook"));
    run_python(
        &python,
        "search_board.py",
        &[program, &sample("famous.pgn")],
    );
}

#[test]
fn the_examples_of_the_page_find_as_many_games_as_it_says() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let page = fs::read_to_string(root.join("docs/search.md")).unwrap();
    let (_, examples) = page.split_once("## Examples").unwrap();
    let dir = temp();
    let games = sample("selfplay.pgn");
    let mut found = Vec::new();
    let mut stated = Vec::new();
    for line in examples
        .lines()
        .filter(|line| line.contains('`') && line.starts_with('|'))
    {
        let query = line.split('`').nth(1).unwrap().replace("\\|", "|");
        let number = line
            .trim_end_matches([' ', '|'])
            .rsplit(' ')
            .next()
            .unwrap();
        let games = games.to_str().unwrap();
        let count = ok(
            dir.path(),
            &["extract", "-q", games, "--count", "--position", &*query],
        );
        found.push(format!("{query}: {}", count.trim()));
        stated.push(format!("{query}: {number}"));
    }
    assert_eq!(found.len(), 20);
    assert_eq!(found, stated);
}

const GAMES: &str = "\
; a comment before\n[Event \"A\"]\n[White \"Tal, M\"]\n[Black \"B\"]\n[Result \"1-0\"]\n\n1. e4 {first} e5 (1... c5 2. Nf3) 2. Qh5 Ke7\n\
3. Qxe5# 1-0\n\n[White \"C\"]\n[Black \"D\"]\n[Result \"0-1\"]\n\n1. d4 d5 2. Ke5 0-1\n\n\
[Event \"C\"]\r\n[White \"E\"]\r\n[Black \"F\"]\r\n[Result \"*\"]\r\n\r\n1. d4   d5 2. c4 *\r\n\r\n\
[Event \"A\"]\n[White \"Tal, M\"]\n[Black \"B\"]\n[Result \"1-0\"]\n\n1. e4 e5 2. Qh5 Ke7 3. Qxe5# 1-0\n";

/// Writes the games to a file in a new directory.
fn games() -> tempfile::TempDir {
    let dir = temp();
    fs::write(dir.path().join("games.pgn"), GAMES).unwrap();
    dir
}

#[test]
fn games_are_written_byte_by_byte_in_their_order() {
    let dir = games();
    let dir = dir.path();
    let all = ok(dir, "extract games.pgn -q");
    let first = "[Event \"A\"]\n[White \"Tal, M\"]\n[Black \"B\"]\n[Result \"1-0\"]\n\n1. e4 {first} e5 (1... c5 2. Nf3) 2. Qh5 Ke7\n\
        3. Qxe5# 1-0\n\n";
    let third = "[Event \"C\"]\r\n[White \"E\"]\r\n[Black \"F\"]\r\n[Result \"*\"]\r\n\r\n1. d4   d5 2. c4 *\n\n";
    let last = "[Event \"A\"]\n[White \"Tal, M\"]\n[Black \"B\"]\n[Result \"1-0\"]\n\n1. e4 e5 2. Qh5 Ke7 3. Qxe5# 1-0\n\n";
    assert_eq!(all, [first, third, last].concat());
    assert_eq!(ok(dir, "extract games.pgn -q --limit 1"), first);
    assert_eq!(
        ok(dir, "extract games.pgn -q --duplicates once"),
        [first, third].concat()
    );
    assert_eq!(ok(dir, "extract games.pgn -q --player tal --count"), "2\n");
    assert_eq!(
        ok(dir, &["extract", "games.pgn", "-q", "--position", "P[c4]"]),
        third
    );
    let broken = "[White \"C\"]\n[Black \"D\"]\n[Result \"0-1\"]\n\n1. d4 d5 2. Ke5 0-1\n\n";
    let kept = ok(dir, "extract games.pgn -q --keep-broken --clean");
    assert!(kept.contains(broken), "{kept}");
    assert_eq!(ok(dir, "extract games.pgn -q --keep-broken --count"), "4\n");
    let said = run(dir, "extract games.pgn --count");
    let said = String::from_utf8_lossy(&said.stderr).into_owned();
    assert!(
        said.contains("rejected: games.pgn: game 2") && said.contains("Ke5"),
        "{said}"
    );
    assert!(
        said.contains("standard output: 3 of 4 games, 1 rejected"),
        "{said}"
    );
    // Reading the output again gives the same games.
    let again = fed(dir, "extract - -q", all.as_bytes());
    assert_eq!(String::from_utf8_lossy(&again.stdout), all);
}

#[test]
fn games_are_cleaned_stripped_and_tagged() {
    let dir = games();
    let dir = dir.path();
    let clean = ok(
        dir,
        "extract games.pgn -q --player tal --limit 1 --strip comments,variations --add eco,opening,plycount --tags roster",
    );
    assert!(
        clean.contains("[ECO \"C") && clean.contains("[PlyCount \"5\"]\n"),
        "{clean}"
    );
    assert!(
        clean.ends_with("\n1. e4 e5 2. Qh5 Ke7 3. Qxe5# 1-0\n\n"),
        "{clean}"
    );
    assert!(clean.starts_with("[Event \"A\"]\n[Site \"?\"]\n[Date \"????.??.??\"]\n[Round \"?\"]\n[White \"Tal, M\"]\n"), "{clean}");
}

#[test]
fn outputs_are_compressed_complete_and_equal_for_all_threads() {
    let dir = temp();
    let dir = dir.path();
    let games = sample("selfplay.pgn");
    let games = games.to_str().unwrap();
    let query = "Q + q = 0 then check";
    let base = ["extract", "-q", games, "--position", query];
    let expected = ok(dir, &base);
    assert!(expected.len() > 1000);
    for threads in ["1", "2", "5"] {
        assert_eq!(
            ok(dir, &[&base[..], &["--threads", threads]].concat()),
            expected
        );
    }
    for name in ["a.pgn", "a.pgn.zst", "a.pgn.gz"] {
        assert_eq!(ok(dir, &[&base[..], &["--out", name]].concat()), "");
        assert_eq!(ok(dir, &["extract", "-q", name]), expected, "{name}");
    }
    assert!(fs::metadata(dir.join("a.pgn.zst")).unwrap().len() < expected.len() as u64 / 2);
    let error = fails(dir, &[&base[..], &["--out", "a.pgn"]].concat(), 1);
    assert!(error.contains("--force"), "{error}");
    ok(dir, &[&base[..], &["--out", "a.pgn", "--force"]].concat());
    let error = fails(dir, &[&base[..], &["--out", "a.pgn.bz2"]].concat(), 2);
    assert!(error.contains(".zst or .gz"), "{error}");
    let cleaned = ok(dir, &["extract", "-q", games, "--clean"]);
    assert!(cleaned.lines().all(|line| line.len() < 80));
    let again = fed(dir, "extract - -q --clean", cleaned.as_bytes());
    assert_eq!(String::from_utf8_lossy(&again.stdout), cleaned);
    // A sample is a part of the games in their order, and depends on the seed only.
    let sampled = |seed: &str| {
        ok(
            dir,
            &["extract", "-q", games, "--sample", "20", "--seed", seed],
        )
    };
    let (first, other) = (sampled("1"), sampled("2"));
    assert!(first == sampled("1") && first != other);
    assert_eq!(first.matches("[Event ").count(), 20);
    let whole = fs::read_to_string(games).unwrap();
    let mut from = 0;
    for game in first.split("\n\n[Event").map(|game| game.trim_end()) {
        let game = game.trim_start_matches("[Event");
        from += whole[from..].find(game).unwrap();
    }
    let document = ok_json(
        dir,
        &[
            "extract",
            "-q",
            games,
            "--json",
            "--limit",
            "3",
            "--position",
            "check",
        ],
    );
    assert_eq!(document["total"], 3);
    let game = &document["games"][0];
    assert_eq!(game["file"], *games);
    assert!(
        game["matches"][0].is_u64() && game["fen"].is_string(),
        "{game}"
    );
    let empty = ok_json(
        dir,
        &["extract", "-q", games, "--json", "--position", "Q = 9"],
    );
    assert_eq!(empty, serde_json::json!({"games": [], "total": 0}));
}

#[test]
fn books_and_errors_name_the_query() {
    let dir = games();
    let dir = dir.path();
    let line = [
        "make-book",
        "--json",
        "-q",
        "games.pgn",
        "--min-game=1",
        "--position",
        "move[Qxe5#]",
    ];
    assert_eq!(ok_json(dir, &line)["games"]["counted"], 2);
    assert!(ok(dir, "pgheader -s book.bin").contains("--position \"move[Qxe5#]\""));
    // Positions after the last counted half-move count, too.
    let short = [&line[..], &["--max-ply", "1", "--force"]].concat();
    assert_eq!(ok_json(dir, &short)["games"]["counted"], 2);
    let report = ok_json(
        dir,
        &[
            "make-book",
            "--json",
            "-q",
            "games.pgn",
            "--force",
            "--min-game=1",
            "--position",
            "mate",
        ],
    );
    assert_eq!(report["filtered_by"], serde_json::json!({"position": 1}));
    let error = fails(dir, &["extract", "games.pgn", "--position", "P[d9]"], 2);
    assert!(error.contains("column 4: expected a square"), "{error}");
    // A long query is quoted in part.
    let long = "not ".repeat(10_000);
    let error = fails(dir, &["extract", "games.pgn", "--position", &long], 2);
    assert!(
        error.contains("column 260: more than 64 levels") && error.len() < 500,
        "{error}"
    );
}

/// Returns the numbers of the games that an index lists for a query.
fn found(dir: &Path, index: &str, query: &str) -> Vec<u64> {
    let line = [
        "games",
        index,
        "--json",
        "-q",
        "--sort=id",
        "--position",
        query,
    ];
    let document = ok_json(dir, &line);
    let games = document["games"].as_array().unwrap();
    assert_eq!(document["total"], games.len());
    games
        .iter()
        .map(|game| game["id"].as_u64().unwrap())
        .collect()
}

/// Returns the numbers of the games in `files` in which a query holds.
fn extracted(dir: &Path, files: &[&str], query: &str) -> Vec<u64> {
    let mut first = 0;
    let mut numbers = Vec::new();
    for file in files {
        let all = ok_json(dir, &["extract", "-q", "--json", file]);
        let offsets: Vec<&serde_json::Value> = all["games"]
            .as_array()
            .unwrap()
            .iter()
            .map(|game| &game["offset"])
            .collect();
        let some = ok_json(dir, &["extract", "-q", "--json", file, "--position", query]);
        let some = some["games"].as_array().unwrap().iter();
        let number = |game: &serde_json::Value| {
            let at = offsets.iter().position(|offset| **offset == game["offset"]);
            first + at.unwrap() as u64
        };
        numbers.extend(some.map(number));
        first += offsets.len() as u64;
    }
    numbers
}

#[test]
fn indexes_find_the_games_that_extract_finds() {
    let dir = temp();
    let dir = dir.path();
    for name in ["selfplay.pgn", "famous.pgn"] {
        fs::copy(sample(name), dir.join(name)).unwrap();
    }
    ok(
        dir,
        "extract selfplay.pgn -q --limit 200 --out part.pgn.zst",
    );
    let files = ["famous.pgn", "part.pgn.zst"];
    ok(
        dir,
        "make-book -q famous.pgn part.pgn.zst --explorer both.idx --max-ply 30",
    );
    let mut all = 0;
    for query in [
        "move[O-O-O] and turn = white",
        "either(imbalance[BvN])",
        "mate",
        "Q = 0 and q = 0 and ply > 50 then R7 = 1",
        "ply = 0",
        "Q = 9",
    ] {
        let expected = extracted(dir, &files, query);
        assert_eq!(found(dir, "both.idx", query), expected, "{query}");
        all += expected.len();
    }
    assert!(all > 300, "{all}");
    // The condition is combined with others, in all commands.
    let query = "move[O-O-O] and turn = white";
    let count = [
        "extract",
        "-q",
        "--count",
        "--result=1-0",
        "--position",
        query,
    ];
    let won = ok(dir, &[&count[..], &files].concat());
    let won: u64 = won.trim().parse().unwrap();
    let of_index = |command: &str, field: &str| {
        let line = [
            command,
            "both.idx",
            "--json",
            "-q",
            "--result=1-0",
            "--position",
            query,
        ];
        let document = ok_json(dir, &line);
        document[field].as_u64().unwrap()
    };
    assert_eq!(
        (of_index("show", "white"), of_index("openings", "white")),
        (won, won)
    );
    assert!(won > 5);
    let error = fails(dir, &["games", "both.idx", "--position", "P[d9]"], 2);
    assert!(error.contains("column 4: expected a square"), "{error}");
}

#[test]
fn indexes_replay_games_as_they_were_indexed() {
    let dir = temp();
    let dir = dir.path();
    fs::copy(sample("variants.pgn"), dir.join("variants.pgn")).unwrap();
    fs::copy(sample("famous.pgn"), dir.join("standard.pgn")).unwrap();
    ok(
        dir,
        "make-book -q variants.pgn --variant auto --explorer variants.idx",
    );
    let explorer = Explorer::open([("variants".to_owned(), dir.join("variants.idx"))]).unwrap();
    for (query, least) in [
        ("move[x]", 20),
        ("move[@]", 1),
        ("Q = 0 and ply > 10", 1),
        ("ply = 0", 30),
    ] {
        let expected = extracted(dir, &["variants.pgn"], query).len() as u64;
        let filters = Selection {
            position: Some(query.parse().unwrap()),
            ..Selection::default()
        };
        let found = explorer.variants(&filters).unwrap().unwrap();
        assert_eq!(found.values().sum::<u64>(), expected, "{query}");
        assert!(expected >= least, "{query}: {expected}");
    }
    let german =
        "[White \"A\"]\n\n1. e4 e5 2. Dh5 Ke7 3. Dxe5# 1-0\n\n[White \"B\"]\n\n1. Sf3 Sxx 0-1\n";
    fs::write(dir.join("german.pgn"), german).unwrap();
    let line = "make-book -q german.pgn --piece-letters de --explorer german.idx";
    ok(dir, &format!("{line} --min-elo 1"));
    assert_eq!(found(dir, "german.idx", "move[Qxe5#]"), [0]);
    // A game that cannot be read to its end is not indexed.
    assert_eq!(found(dir, "german.idx", "Nf3"), [0; 0]);
    ok(dir, &format!("{line} --keep-prefix --force"));
    assert_eq!(found(dir, "german.idx", "Nf3"), [1]);
    // The index must have the text of its games.
    fs::write(dir.join("german.pgn"), german.replace("Sf3", "Sc3")).unwrap();
    let error = fails(dir, &["games", "german.idx", "--position", "mate"], 1);
    assert!(
        error.contains("has changed since the index was made"),
        "{error}"
    );
    fs::remove_file(dir.join("german.pgn")).unwrap();
    let error = fails(dir, &["show", "german.idx", "--position", "mate"], 1);
    assert!(error.contains("no longer where it was"), "{error}");
    let streamed = fed(
        dir,
        "make-book -q - --explorer streamed.idx",
        b"1. e4 e5 *\n",
    );
    assert!(streamed.status.success());
    let error = fails(dir, &["games", "streamed.idx", "--position", "check"], 1);
    assert!(error.contains("make the index from a file"), "{error}");
    ok(
        dir,
        "make-book -q standard.pgn --counts counts --by speed,rating,month",
    );
    ok(dir, "make-book -q counts --explorer counts.idx");
    let error = fails(dir, &["show", "counts.idx", "--position", "check"], 1);
    assert!(
        error.contains("games are needed for the condition position"),
        "{error}"
    );
}

#[test]
fn games_are_extracted_from_the_pgn_of_indexes() {
    let dir = games();
    let dir = dir.path();
    fs::copy(sample("famous.pgn"), dir.join("famous.pgn")).unwrap();
    ok(dir, "make-book -q games.pgn famous.pgn --explorer both.idx");
    for options in [
        "",
        "--position check",
        "--clean --player tal",
        "--count",
        "--keep-broken",
    ] {
        let of_index = ok(dir, &format!("extract -q both.idx {options}"));
        let of_files = ok(dir, &format!("extract -q games.pgn famous.pgn {options}"));
        assert_eq!(of_index, of_files, "{options}");
        let both = ok(dir, &format!("extract -q both.idx games.pgn {options}"));
        assert!(
            both.len() > of_index.len() || options == "--count",
            "{options}"
        );
    }
    let error = fails(dir, "extract both.idx --out games.pgn --force", 1);
    assert!(error.contains("games.pgn"), "{error}");
    assert_eq!(fs::read_to_string(dir.join("games.pgn")).unwrap(), GAMES);
    ok(
        dir,
        "make-book -q games.pgn --explorer some.idx --min-elo 2000 --require-elo --allow-empty",
    );
    let error = fails(dir, "extract some.idx", 1);
    assert!(error.contains("--min-elo 2000 --require-elo"), "{error}");
    ok(
        dir,
        "make-book -q games.pgn --untagged-variant atomic --variant auto --explorer other.idx --allow-empty",
    );
    let error = fails(dir, "extract famous.pgn other.idx", 1);
    assert!(error.contains("extract from each source alone"), "{error}");
    ok(dir, "make-book -q games.pgn --leveldb fork.idx");
    let error = fails(dir, "extract fork.idx", 1);
    assert!(error.contains("--explorer"), "{error}");
}

#[test]
fn games_are_extracted_as_their_index_was_made() {
    let dir = temp();
    let dir = dir.path();
    let german = "[White \"A\"]\n\n1. e4 e5 2. Dh5 (2. Sf3) Ke7 3. Dxe5# 1-0\n\n[White \"B\"]\n\n1. Sf3 Sxx 0-1\n";
    fs::write(dir.join("german.pgn"), german).unwrap();
    let letters = "--piece-letters de --keep-prefix";
    ok(
        dir,
        &format!("make-book -q german.pgn {letters} --explorer german.idx"),
    );
    let error = fails(dir, "extract german.idx", 1);
    assert!(
        error.contains("with --keep-prefix --piece-letters de")
            && error.contains("--keep-broken instead"),
        "{error}"
    );
    let options = "german.pgn --piece-letters de --keep-broken -q";
    assert_eq!(
        ok(dir, &format!("extract {options}")).trim_end(),
        german.trim_end()
    );
    let clean = ok(dir, &format!("extract {options} --clean --white A"));
    assert!(
        clean.ends_with("\n1. e4 e5 2. Qh5 (2. Nf3) 2... Ke7 3. Qxe5# 1-0\n\n"),
        "{clean}"
    );
    let found = ok_json(dir, &format!("extract {options} --json --position mate"));
    assert_eq!(found["total"], 1);
    assert_eq!(
        found["games"][0]["fen"],
        "rnbq1bnr/ppppkppp/8/4Q3/4P3/8/PPPP1PPP/RNB1KBNR b KQ - 0 3"
    );
}

#[test]
fn a_cleaned_game_keeps_its_variant() {
    let dir = temp();
    let dir = dir.path();
    fs::write(
        dir.join("games.pgn"),
        "1. e4 d5 2. exd5 e6 *\n\n[Variant \"?\"]\n\n1. Nf3 *\n",
    )
    .unwrap();
    let clean = ok(
        dir,
        "extract games.pgn -q --clean --untagged-variant atomic",
    );
    assert_eq!(
        clean.matches("[Variant \"atomic\"]\n").count(),
        2,
        "{clean}"
    );
    let again = fed(dir, "extract - -q --clean", clean.as_bytes());
    assert_eq!(String::from_utf8_lossy(&again.stdout), clean);
    fs::copy(sample("variants.pgn"), dir.join("variants.pgn")).unwrap();
    let clean = ok(dir, "extract variants.pgn -q --tags roster");
    let again = fed(dir, "extract - -q --clean", clean.as_bytes());
    assert_eq!(String::from_utf8_lossy(&again.stdout), clean);
    let variants = |text: &str| text.matches("[Variant ").count();
    assert_eq!(
        variants(&clean),
        variants(&fs::read_to_string(dir.join("variants.pgn")).unwrap())
    );
}

/// Removing commands from a comment takes time in proportion to its length.
#[test]
fn long_comments_are_stripped() {
    let dir = temp();
    let dir = dir.path();
    let comment = "[%clk 0:01:00] [%eval 0.1] ".repeat(200_000);
    fs::write(
        dir.join("games.pgn"),
        format!("1. e4 {{{comment}x}} e5 *\n"),
    )
    .unwrap();
    let clean = ok(dir, "extract games.pgn -q --strip clocks,evals");
    assert!(
        clean.ends_with("\n1. e4 {x} 1... e5 *\n\n"),
        "{}",
        clean.len()
    );
}

#[test]
fn games_without_tags_and_results_stay_apart() {
    let dir = temp();
    let dir = dir.path();
    let games = [
        "1. e4 e5 2. Nf3 Nc6\n",
        "1. d4 d5 2. c4 {no result} e6\n",
        "1. c4 1/2-1/2",
        "1. g3 c5 0-1 {after the end}\n",
        "1. h3 h5 ; it could have been 1-0\n",
        "[Result \"1-0\"]\n\n1. f4 d5",
        "1. b3",
    ];
    let names: Vec<String> = (0..games.len())
        .map(|number| format!("{number}.pgn"))
        .collect();
    for (name, game) in names.iter().zip(games) {
        fs::write(dir.join(name), game).unwrap();
    }
    let all = ok(dir, &format!("extract -q {}", names.join(" ")));
    assert!(
        all.starts_with("1. e4 e5 2. Nf3 Nc6\n\n*\n\n1. d4 d5"),
        "{all}"
    );
    assert!(all.contains("1. f4 d5\n\n1-0\n\n1. b3"), "{all}");
    fs::write(dir.join("all.pgn"), &all).unwrap();
    assert_eq!(ok(dir, "extract -q all.pgn"), all);
    let cleaned = ok(dir, &format!("extract -q --clean {}", names.join(" ")));
    assert_eq!(ok(dir, "extract -q --clean all.pgn"), cleaned);
    assert_eq!(cleaned.matches("[Event ").count(), games.len());
    // Both sides lost.
    let lost = fed(dir, "extract - -q --clean", b"1. e4 e5 0-0\n");
    let lost = String::from_utf8(lost.stdout).unwrap();
    assert!(lost.ends_with("\n1. e4 e5 *\n\n"), "{lost}");
}

#[test]
fn the_first_games_of_an_endless_input_are_written() {
    let dir = temp();
    let name = "x\u{9b}\u{202e}.pgn";
    fs::write(dir.path().join(name), "1. e4 *\n").unwrap();
    let mut reports = Vec::new();
    for arguments in [
        &["extract", "-", "--limit", "3"][..],
        &["extract", "-", name, "--limit", "3", "--threads", "1"],
    ] {
        let mut command = polybook_in(dir.path());
        command.args(arguments).stdin(Stdio::piped());
        let mut child = command
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut input = child.stdin.take().unwrap();
        // The error means that polybook has closed the pipe.
        let writer = std::thread::spawn(move || while input.write_all(b"1. e4 e5 *\n").is_ok() {});
        let output = child.wait_with_output().unwrap();
        writer.join().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(
            output.status.success() && said.contains("3 of the first "),
            "{said}"
        );
        assert_eq!(output.stdout, b"1. e4 e5 *\n\n".repeat(3));
        reports.push(said);
    }
    // The number of games that were read does not depend on the threads.
    assert_eq!(reports[0], reports[1]);
    // A name cannot control the terminal.
    let json = ok(dir.path(), &["extract", "-q", "--json", name]);
    assert!(json.contains("x\\u009b\\u202e.pgn"), "{json}");
}
