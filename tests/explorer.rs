//! The explorer. Every number in its answers is compared with a count by python-chess over the PGN.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use crate::common::{
    corpus, fails, leave_out, ok, ok_json, python, sample, short_games, takes_hours, temp,
};
use polybook::{
    MakeBook,
    explorer::{
        Explorer, Line, Page, Query, RatingGroup, Selection, Sort, Speed, Variant, View,
        WantedRating,
    },
    pgn::{Date, Input},
    position::VariantChoice,
};
use serde_json::Value;
use shakmaty::Color;

/// Returns an explorer of indexes, each made from one PGN file.
fn explorer_of(dir: &Path, games: &[PathBuf], variant: VariantChoice) -> Explorer {
    let sources: Vec<(String, PathBuf)> = games
        .iter()
        .enumerate()
        .map(|(number, pgn)| {
            let index = dir.join(format!("{number}.idx"));
            MakeBook::new([Input::file(pgn)])
                .explorer(&index)
                .variant(variant)
                .run()
                .unwrap();
            (number.to_string(), index)
        })
        .collect();
    Explorer::open(sources).unwrap()
}

/// Returns the answers of python-chess, one JSON document for each query.
pub fn expected(python: &Path, games: &[PathBuf], options: &str) -> Vec<Value> {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/python/explorer.py");
    let output = Command::new(python)
        .arg(script)
        .args(options.split_whitespace())
        .args(games)
        .output()
        .unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    let lines = String::from_utf8(output.stdout).unwrap();
    lines
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

fn date(value: &Value) -> Option<Date> {
    let part = |at: usize| value.get(at).and_then(Value::as_u64).unwrap_or(0);
    value
        .is_array()
        .then(|| Date::new(part(0) as u16, part(1) as u8, part(2) as u8))
}

/// Converts the filters in the form of the script.
pub fn filters(json: &Value) -> Selection {
    let mut conditions = json.as_object().cloned().unwrap_or_default();
    for name in ["since", "until"] {
        if conditions.contains_key(name) {
            let date = date(&json[name]).map(|date| date.to_string());
            conditions.insert(name.to_owned(), date.into());
        }
    }
    if let Some(range) = conditions.get_mut("opponentRating") {
        *range = format!("{}-{}", range[0], range[1]).into();
    }
    if let Some(range) = conditions.get_mut("eco") {
        let codes: Vec<&str> = range
            .as_array()
            .unwrap()
            .iter()
            .filter_map(Value::as_str)
            .collect();
        *range = codes.join("-").into();
    }
    if let Some(results) = conditions.remove("results") {
        conditions.insert("result".to_owned(), results);
    }
    conditions.insert("exact".to_owned(), true.into());
    serde_json::from_value(conditions.into()).unwrap()
}

/// Sends a query of the script to the explorer, and compares all values of the answer.
fn check(explorer: &Explorer, expected: &Value) {
    let variant: Variant = expected["variant"].as_str().unwrap().parse().unwrap();
    let fen = expected["fen"].as_str().unwrap();
    let line = Line::parse(variant, Some(fen), "").unwrap();
    let mut query = Query::new(line, View::Lichess);
    query.filters = filters(&expected["filters"]);
    query.moves = None;
    query.resulting = expected["answer"]["moves"]
        .get(0)
        .is_some_and(|mv| mv.get("resulting").is_some());
    let answer = explorer.answer(&query).unwrap();
    let mut found = serde_json::to_value(&answer).unwrap();
    for played in found["moves"].as_array_mut().unwrap() {
        let played = played.as_object_mut().unwrap();
        played.remove("san");
        played.remove("opening");
    }
    let wanted = &expected["answer"];
    for part in [
        "white",
        "draws",
        "black",
        "moves",
        "topGames",
        "recentGames",
    ] {
        assert_eq!(found[part], wanted[part], "{part} of {expected}");
    }
    let page = Page {
        skip: 0,
        limit: 50,
        sort: Sort::Id,
        fold_matches: false,
    };
    let games = explorer.games(&query, &page).unwrap();
    assert_eq!(Value::from(games.total), wanted["reached"], "{expected}");
    let ids: Vec<Value> = games
        .games
        .iter()
        .map(|played| Value::from(played.played.game.id.as_str()))
        .collect();
    assert_eq!(Value::from(ids), wanted["byId"], "{expected}");
}

/// Splits the games of a PGN file into `parts` files of about equal size.
fn cut(pgn: &Path, dir: &Path, parts: usize) -> Vec<PathBuf> {
    let text = fs::read_to_string(pgn).unwrap();
    let starts: Vec<usize> = text.match_indices("[Event ").map(|(at, _)| at).collect();
    (0..parts)
        .map(|part| {
            let start = starts[starts.len() * part / parts];
            let end = starts.get(starts.len() * (part + 1) / parts);
            let path = dir.join(format!("part{part}.pgn"));
            fs::write(&path, &text[start..end.copied().unwrap_or(text.len())]).unwrap();
            path
        })
        .collect()
}

fn all_agree(games: &[PathBuf], variant: VariantChoice, options: &str) {
    all_agree_in_parts(games, &[games], variant, options);
}

/// Checks that explorers whose indexes contain the same games, split in different ways, give equal answers.
fn all_agree_in_parts(
    games: &[PathBuf],
    cuts: &[&[PathBuf]],
    variant: VariantChoice,
    options: &str,
) {
    let Some(python) = python(&["chess"]) else {
        return;
    };
    let questions = expected(&python, games, options);
    assert!(!questions.is_empty());
    for parts in cuts {
        let dir = temp();
        let explorer = explorer_of(dir.path(), parts, variant);
        for question in &questions {
            check(&explorer, question);
        }
    }
}

#[test]
fn every_number_is_that_of_python_chess() {
    let dir = temp();
    let games = [sample("famous.pgn"), sample("selfplay.pgn")].map(|path| fs::read(path).unwrap());
    let both = dir.path().join("both.pgn");
    fs::write(&both, games.concat()).unwrap();
    let standard = VariantChoice::default();
    let whole = std::slice::from_ref(&both);
    let three = cut(&both, dir.path(), 3);
    all_agree_in_parts(
        whole,
        &[whole, &three],
        standard,
        "--positions 150 --filters 12",
    );
    all_agree(whole, standard, "--positions 40 --all");
}

#[test]
fn every_number_is_that_of_python_chess_in_variants() {
    let games = [sample("variants.pgn")];
    all_agree(&games, VariantChoice::Auto, "--positions 36 --all");
}

#[test]
fn python_chess_agrees_on_random_games_of_variants() {
    let Some(python) = python(&["chess"]) else {
        return;
    };
    let dir = temp();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/python/explorer_games.py");
    let mut all = Vec::new();
    for variant in ["Chess960", "Crazyhouse", "Atomic", "Three-check"] {
        let output = Command::new(&python)
            .arg(&script)
            .args([variant, "250"])
            .output()
            .unwrap();
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{errors}");
        all.extend(output.stdout);
    }
    let path = dir.path().join("variants.pgn");
    fs::write(&path, all).unwrap();
    let whole = std::slice::from_ref(&path);
    let three = cut(&path, dir.path(), 3);
    let cuts = [whole, &three];
    all_agree_in_parts(
        whole,
        &cuts,
        VariantChoice::Auto,
        "--positions 200 --filters 12",
    );
    all_agree_in_parts(whole, &cuts, VariantChoice::Auto, "--positions 60 --all");
}

#[test]
fn python_chess_agrees_on_the_corpus_of_masters() {
    let Some(corpus) = corpus() else {
        return;
    };
    let options = if takes_hours() {
        "--positions 2000 --filters 20"
    } else {
        return leave_out("POLYBOOK_SLOW is not set");
    };
    let dir = temp();
    let masters = [corpus.join("masters.pgn")];
    let three = cut(&masters[0], dir.path(), 3);
    all_agree_in_parts(
        &masters,
        &[&masters, &three],
        VariantChoice::default(),
        options,
    );
}

/// Returns two answers for the same filters: one from sums if possible, and one from all games.
fn both_ways(explorer: &Explorer, query: &Query) -> [String; 2] {
    // Every rating is below this limit, but the filter makes the explorer read each game.
    let mut of_each_game = query.clone();
    of_each_game.filters.max_elo = Some(u32::MAX);
    [query, &of_each_game].map(|query| format!("{:?}", explorer.answer(query).unwrap()))
}

#[test]
fn stored_sums_give_the_same_counts_as_the_games() {
    let dir = temp();
    let [many, few] = [(0, 70_000), (70_000, 300)].map(|(first, games)| {
        let path = dir.path().join(format!("{first}.pgn"));
        fs::write(&path, short_games(first, games)).unwrap();
        path
    });
    let explorer = explorer_of(dir.path(), &[many, few], VariantChoice::default());
    let speeds = |speeds: &[Speed]| Some(speeds.to_vec());
    let groups = |floors: &[u32]| {
        let groups = floors
            .iter()
            .map(|floor| WantedRating(Some(RatingGroup::of(*floor))));
        Some(groups.collect())
    };
    let dates = |since: &str, until: &str| Selection {
        since: since.parse().ok(),
        until: until.parse().ok(),
        ..Selection::default()
    };
    let filters = [
        Selection::default(),
        Selection {
            speed: speeds(&[Speed::Bullet, Speed::Correspondence]),
            ..Selection::default()
        },
        Selection {
            rating: groups(&[1000, 2500]),
            ..dates("2015.03", "2016.02")
        },
        Selection {
            speed: speeds(&[]),
            ..Selection::default()
        },
        Selection {
            source: Some("0".to_owned()),
            ..dates("2016", "")
        },
        dates("", "2014.11"),
        dates("2015.07", "2015.07"),
        dates("2015.07.15", "2016.02.10"),
    ];
    for filters in filters {
        for (view, play) in [
            (View::Lichess, ""),
            (View::Masters, ""),
            (View::Lichess, "e2e4"),
        ] {
            let line = Line::parse(Variant::Standard, None, play).unwrap();
            let mut query = Query::new(line, view);
            query.filters = filters.clone();
            query.resulting = true;
            for history in [false, true] {
                query.history = history;
                let [by_sums, by_games] = both_ways(&explorer, &query);
                assert_eq!(by_sums, by_games, "{query:?}");
            }
        }
    }
}

/// The results of the position after a move are those of a query about that position, and all games of the list of that
/// position either continue from it or end in it.
#[test]
fn resulting_positions_have_the_results_of_their_own_answers() {
    let dir = temp();
    let pgn = dir.path().join("games.pgn");
    fs::write(&pgn, short_games(0, 20_000)).unwrap();
    let copy = dir.path().join("copy.pgn");
    fs::copy(&pgn, &copy).unwrap();
    let famous = sample("famous.pgn");
    let explorer = explorer_of(dir.path(), &[pgn, copy, famous], VariantChoice::default());
    let line = |play: &str| Line::parse(Variant::Standard, None, play).unwrap();
    let page = Page {
        skip: 0,
        limit: 0,
        sort: Sort::default(),
        fold_matches: false,
    };
    let given = |text: &str| -> Selection { serde_json::from_str(text).unwrap() };
    let all = [
        Selection::default(),
        given(r#"{"player": ["P7"], "exact": true}"#),
        given(r#"{"player": ["P7"], "exact": true, "color": "black", "result": ["1-0", "win"]}"#),
        given(r#"{"since": "2015.02.03", "minElo": 1500}"#),
        given(r#"{"since": "2015.02", "until": "2016.01", "speed": ["blitz", "bullet"]}"#),
        given(r#"{"duplicates": "once"}"#),
        given(r#"{"source": "0", "minPlies": 2}"#),
        Selection {
            skip_unfinished: true,
            ..Selection::default()
        },
    ];
    for filters in all {
        for play in ["", "e2e4", "e2e4,e7e5,g1f3"] {
            let mut query = Query::new(line(play), View::Lichess);
            query.filters = filters.clone();
            query.resulting = true;
            query.moves = None;
            let answer = explorer.answer(&query).unwrap();
            query.resulting = false;
            let less = explorer.answer(&query).unwrap();
            assert!(less.moves.iter().all(|played| played.resulting.is_none()));
            for played in answer.moves {
                query.line = line(&format!("{play},{}", played.uci));
                let here = explorer.answer(&query).unwrap().results;
                let listed = explorer.games(&query, &page).unwrap().total;
                let resulting = played.resulting.unwrap();
                assert_eq!(
                    (resulting.results, resulting.games),
                    (here, here.games()),
                    "{query:?}"
                );
                assert_eq!(resulting.reached(), Some(listed), "{query:?}");
                assert!(listed >= played.results.games());
            }
        }
    }
}

/// Each kind of source that stores results shows those of the position after a move as the sum over the moves there.
#[test]
fn commands_show_resulting_positions() {
    let dir = temp();
    let dir = dir.path();
    // The move 2. Nf3 scored 50 %. Games with other orders of moves reached the same position, and White lost all of them.
    let rare = "1. e4 e5 2. Nf3 Nc6 1-0\n\n1. e4 e5 2. Nf3 Nf6 0-1\n\n";
    let other = "1. Nf3 e5 2. e4 Nc6 3. Bb5 0-1\n\n".repeat(7) + "1. Nf3 e5 2. e4 *\n\n";
    fs::write(dir.join("a.pgn"), format!("{rare}{other}")).unwrap();
    let make = "make-book -q a.pgn --min-game 1 --bin a.bin --obs a.obs.db3 --explorer a.idx --counts a.counts";
    ok(dir, make);
    ok(dir, "make-book -q a.pgn --leveldb a.leveldb --index-stats");
    for source in ["a.pgn", "a.idx", "a.obs.db3", "a.counts"] {
        let here = ok_json(dir, &format!("show {source} e4 e5 --resulting --json"));
        let after = ok_json(dir, &format!("show {source} e4 e5 Nf3 --json"));
        let number = |value: &Value| value.as_u64().unwrap();
        let sum = |name: &str| -> u64 {
            let moves = after["moves"].as_array().unwrap().iter();
            // A database stores results from the view of the side to move, which is Black.
            let own = ["white", "draws", "black"]
                .iter()
                .position(|own| *own == name)
                .unwrap();
            let name = if source == "a.obs.db3" {
                ["losses", "draws", "wins"][own]
            } else {
                name
            };
            moves.map(|mv| number(&mv[name])).sum()
        };
        let resulting = &here["moves"][0]["resulting"];
        for name in ["white", "draws", "black"] {
            assert_eq!(number(&resulting[name]), sum(name), "{source} {name}");
        }
        assert_eq!(number(&resulting["games"]), 9, "{source}");
        assert_eq!(
            (number(&resulting["white"]), number(&resulting["black"])),
            (1, 8),
            "{source}"
        );
        let text = ok(dir, &format!("show {source} e4 e5 --resulting"));
        let heading = text.lines().find(|line| line.starts_with("move ")).unwrap();
        assert!(
            heading.contains("    after    white    draws    black"),
            "{source} {text}"
        );
        let row = text.lines().find(|line| line.starts_with("Nf3 ")).unwrap();
        assert!(
            row.contains("        9        1        0        8"),
            "{source} {text}"
        );
        let plain = ok(dir, &format!("show {source} e4 e5"));
        assert!(!plain.contains("after"), "{source} {plain}");
    }
    // Games that end in the position, or whose result is unknown, are known to an explorer's index.
    let document = ok_json(dir, "show a.idx Nf3 e5 --resulting --json");
    let resulting = &document["moves"][0]["resulting"];
    assert_eq!(
        (&resulting["ended"], &resulting["unfinished"]),
        (&1.into(), &0.into())
    );
    let document = ok_json(dir, "show a.idx Nf3 e5 --resulting --json --result 0-1");
    let resulting = &document["moves"][0]["resulting"];
    assert_eq!(
        (&resulting["ended"], &resulting["games"]),
        (&0.into(), &8.into())
    );
    let error = fails(dir, "show a.bin --resulting", 2);
    assert!(error.contains("a book contains only weights"), "{error}");
    let error = fails(dir, "show a.leveldb --resulting", 2);
    assert!(
        error.contains("already are those of the position after each move"),
        "{error}"
    );
}

/// Makes an index with so many games that its starting position has sums and lists of the best games.
fn summed_index(dir: &Path) -> PathBuf {
    let pgn = dir.join("games.pgn");
    fs::write(&pgn, short_games(0, 45_000)).unwrap();
    drop(explorer_of(dir, &[pgn], VariantChoice::default()));
    dir.join("0.idx")
}

/// Returns the answers about the starting position that come from sums over all kinds of periods.
fn summed_answers(index: &Path) -> Vec<polybook::Result<String>> {
    let explorer = match Explorer::open([("0".to_owned(), index.to_owned())]) {
        Ok(explorer) => explorer,
        Err(err) => return vec![Err(err)],
    };
    let mut query = Query::new(Line::start(Variant::Standard), View::Lichess);
    let mut answers = Vec::new();
    for (since, history) in [("", false), ("2015.03", false), ("2015.03", true)] {
        query.filters.since = since.parse().ok();
        query.history = history;
        let answer = explorer.answer(&query);
        answers.push(answer.map(|answer| format!("{answer:?}")));
    }
    answers
}

#[test]
fn damaged_sums_are_errors() {
    if !crate::common::runs_slow_tests() {
        return;
    }
    let dir = temp();
    let index = summed_index(dir.path());
    let expected: Vec<String> = summed_answers(&index)
        .into_iter()
        .map(Result::unwrap)
        .collect();
    let mut errors = 0;
    for file in fs::read_dir(&index).unwrap() {
        let path = file.unwrap().path();
        let mut bytes = fs::read(&path).unwrap();
        for place in (0..bytes.len()).step_by(5000) {
            bytes[place] ^= 4;
            fs::write(&path, &bytes).unwrap();
            for (found, expected) in summed_answers(&index).into_iter().zip(&expected) {
                match found {
                    Ok(found) => assert_eq!(found, *expected, "{} at {place}", path.display()),
                    Err(err) => {
                        errors += 1;
                        assert!(err.to_string().contains("0.idx"), "{err}");
                    }
                }
            }
            bytes[place] ^= 4;
        }
        fs::write(&path, &bytes).unwrap();
    }
    assert!(errors > 0);
}

#[test]
fn sums_with_any_values_and_right_checksums_do_no_harm() {
    let dir = temp();
    let index = summed_index(dir.path());
    let open = || rusty_leveldb::DB::open(&index, rusty_leveldb::Options::default()).unwrap();
    // Write the value of a key like another program, so that only the value is wrong and not its checksum.
    let put = |key: &[u8], value: &[u8]| {
        let mut database = open();
        database.put(key, value).unwrap();
        database.close().unwrap();
    };
    let mut sums = Vec::new();
    let mut database = open();
    let mut entries = database.new_iter().unwrap();
    while let Some((key, value)) = rusty_leveldb::LdbIterator::next(&mut entries) {
        if key.starts_with(b"xp") && key.get(10) == Some(&1) {
            sums.push((key, value));
        }
    }
    database.close().unwrap();
    assert!(sums.len() > 12, "all games, years and months");
    let (mut answered, mut refused) = (0, 0);
    for (number, (key, value)) in sums.iter().enumerate() {
        let mut damaged = value.clone();
        let place = number * 37 % damaged.len();
        match number % 3 {
            0 => damaged[place] ^= 1 << (number % 8),
            1 => damaged[place..].iter_mut().for_each(|byte| *byte = 0xff),
            _ => damaged.truncate(place),
        }
        put(key, &damaged);
        for answer in summed_answers(&index) {
            match answer {
                Ok(_) => answered += 1,
                Err(err) => {
                    refused += 1;
                    assert!(err.to_string().contains("damaged"), "{err}");
                }
            }
        }
        put(key, value);
    }
    assert!(answered > 0 && refused > 0, "{answered} and {refused}");
    assert!(summed_answers(&index).iter().all(Result::is_ok));
    // If each month has the results of a whole year, the months have more games than the position.
    let of_kind = |kind| {
        let sums = sums.iter();
        sums.filter(move |(key, _)| key[11] == kind)
    };
    let (_, year) = of_kind(1).next().unwrap();
    for (month, _) in of_kind(2) {
        put(month, year);
    }
    let by_month = summed_answers(&index).pop().unwrap().unwrap_err();
    let by_month = by_month.to_string();
    assert!(by_month.contains("do not add up"), "{by_month}");
}

/// Returns the moves of a JSON document with their numbers of games and ratings.
fn listed(document: &Value) -> Vec<(String, u64, u64)> {
    let moves = document["moves"].as_array().unwrap();
    let number = |played: &Value, name: &str| played[name].as_u64().unwrap();
    moves
        .iter()
        .map(|played| {
            let san = played["san"].as_str().unwrap().to_owned();
            (
                san,
                number(played, "games"),
                played["average_rating"].as_u64().unwrap_or(0),
            )
        })
        .collect()
}

#[test]
fn moves_and_games_take_filters_and_several_indexes() {
    let dir = temp();
    for name in ["famous", "selfplay"] {
        let pgn = sample(&format!("{name}.pgn"));
        let pgn = pgn.display();
        ok(
            dir.path(),
            &format!("make-book -q {pgn} --explorer {name}.idx"),
        );
    }
    let ask = |options: &str| {
        let both = "famous.idx selfplay.idx --json";
        ok_json(dir.path(), &format!("show {both} {options}"))
    };
    let one = ok_json(dir.path(), "show famous.idx --json");
    let both = ask("");
    let games = |document: &Value| document["games"].as_u64().unwrap();
    assert_eq!((games(&one), games(&both)), (45, 545));
    assert_eq!(
        listed(&both).iter().map(|played| played.1).sum::<u64>(),
        545
    );
    let results =
        ["1-0", "0-1", "1/2-1/2", "*"].map(|result| games(&ask(&format!("--result {result}"))));
    assert_eq!(results.iter().sum::<u64>(), 545);
    assert_eq!(games(&ask("--until 1800")), 0);
    let by_uci = listed(&ask("--sort uci"));
    assert_eq!(by_uci[0].0, "b3");
    // The command line writes castling as two steps of the king.
    let castling = ask("--moves e4,e5,Nf3,Nc6,Bc4,Bc5,b4,Bxb4,c3,Ba5,d4,exd4");
    let castle = castling["moves"]
        .as_array()
        .unwrap()
        .iter()
        .find(|played| played["san"] == "O-O");
    assert_eq!(castle.unwrap()["uci"], "e1g1");

    let list = |options: &str| {
        let both = "famous.idx selfplay.idx --json";
        ok_json(dir.path(), &format!("games {both} {options}"))
    };
    let all = list("--skip 44 --limit 2");
    assert_eq!(
        (&all["total"], &all["games"][1]["id"]),
        (&Value::from(545), &Value::from(45))
    );
    let recent = list("--sort recent --until 1900 --limit 100");
    let dates: Vec<&str> = recent["games"]
        .as_array()
        .unwrap()
        .iter()
        .map(|game| game["date"].as_str().unwrap())
        .collect();
    assert!(
        dates.len() > 3 && dates.is_sorted_by(|a, b| a[..4] >= b[..4]),
        "{dates:?}"
    );
    let texts = ok(dir.path(), "games famous.idx selfplay.idx --pgn --skip 45");
    assert_eq!(texts, fs::read_to_string(sample("selfplay.pgn")).unwrap());

    // Several indexes number their games in the same way for both commands.
    let both = "famous.idx selfplay.idx";
    let games = |ids: &str| ok(dir.path(), &format!("games {both} --pgn --id {ids}"));
    let first = ok(dir.path(), "games selfplay.idx --pgn --id 0");
    let last = ok(dir.path(), "games famous.idx --pgn --id 44");
    assert_eq!(games("45,44,45"), format!("{first}{last}{first}"));
    assert_eq!(
        games("544"),
        ok(dir.path(), "games selfplay.idx --pgn --id 499")
    );
    let site = "https://lichess.org/abcdEF12";
    for (ids, problem) in [
        (
            "545",
            "no game has the number 545: the indexes contain 545 games, numbered from 0",
        ),
        (site, "with polybook games famous.idx selfplay.idx"),
    ] {
        let error = fails(dir.path(), &format!("games {both} --pgn --id {ids}"), 1);
        assert!(error.contains(problem), "{error}");
    }
    ok(
        dir.path(),
        &format!(
            "make-book -q {} --leveldb plain.idx",
            sample("famous.pgn").display()
        ),
    );
    let error = fails(
        dir.path(),
        &format!("games plain.idx {both} --pgn --id 0"),
        2,
    );
    assert!(
        error.contains("this command needs an explorer's index"),
        "{error}"
    );
}

#[test]
fn an_index_without_filter_data_names_the_option_that_adds_them() {
    let dir = temp();
    let pgn = sample("famous.pgn");
    let pgn = pgn.display();
    for index in ["idx", "other"] {
        ok(
            dir.path(),
            &format!("make-book -q {pgn} --leveldb {index} --index-stats"),
        );
    }
    let output = crate::common::run(dir.path(), "show idx");
    assert!(output.status.success());
    let told = String::from_utf8(output.stderr).unwrap();
    assert!(told.contains("--explorer"), "{told}");
    for line in [
        "show idx --since 1900",
        "games idx --sort recent",
        "games idx other",
        "games idx --player tal",
    ] {
        let error = fails(dir.path(), line, 2);
        assert!(error.contains("--explorer"), "{line}: {error}");
    }
    let error = fails(dir.path(), "show idx other", 1);
    assert!(error.contains("--explorer"), "{error}");
    fails(dir.path(), "show idx --color white", 2);
    ok(
        dir.path(),
        &format!("make-book -q {pgn} --explorer games.idx"),
    );
    let error = fails(dir.path(), "games games.idx ./games.idx", 1);
    assert!(error.contains("given twice"), "{error}");
}

#[test]
fn the_same_bytes_for_every_number_of_threads_and_budget() {
    let dir = temp();
    let many = dir.path().join("many.pgn");
    fs::write(&many, short_games(0, 35_000)).unwrap();
    let pgns = [
        sample("famous.pgn"),
        sample("selfplay.pgn"),
        sample("variants.pgn"),
        many,
    ];
    let pgns: Vec<String> = pgns.iter().map(|pgn| pgn.display().to_string()).collect();
    let make = |name: &str, options: &str| {
        let pgns = pgns.join(" ");
        let line = format!("make-book -q {pgns} --variant auto --explorer {name} {options}");
        ok(dir.path(), &line);
        let mut files: Vec<PathBuf> = fs::read_dir(dir.path().join(name))
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .collect();
        files.sort();
        files
            .iter()
            .map(|file| fs::read(file).unwrap())
            .collect::<Vec<_>>()
    };
    let one = make("one", "--threads 1");
    assert!(one == make("four", "--threads 4"));
    assert!(one == make("small", "--threads 3 --memory 64KiB"));
}

#[test]
fn each_view_has_its_own_keys() {
    let dir = temp();
    let explorer = explorer_of(
        dir.path(),
        &[sample("famous.pgn")],
        VariantChoice::default(),
    );
    let line = Line::parse(Variant::Standard, None, "e2e4,e7e5,g1f3,d7d6").unwrap();
    let mut query = Query::new(line, View::Masters);
    let text = |query: &Query| serde_json::to_string(&explorer.answer(query).unwrap()).unwrap();
    let masters = text(&query);
    assert!(
        !masters.contains("speed") && !masters.contains("recentGames"),
        "{masters}"
    );
    query.view = View::Player;
    query.filters.player = vec!["morphy, paul".to_owned()];
    query.filters.color = Some(Color::White);
    let player = text(&query);
    assert!(
        player.contains(r#""averageOpponentRating":null,"performance":null,"#),
        "{player}"
    );
    assert!(
        !player.contains("topGames") && !player.contains("history"),
        "{player}"
    );
}

#[test]
fn games_are_found_by_their_ids() {
    let dir = temp();
    let pgn = dir.path().join("games.pgn");
    let game = "[Event \"A\"]\n[Site \"https://lichess.org/abcdefgh\"]\n\n1. e4 *\n\n";
    let other = "[Event \"B\"]\n[Site \"Paris\"]\n\n1. d4 1-0\n\n";
    fs::write(&pgn, [other, game, "1. zz *\n\n"].concat()).unwrap();
    let explorer = explorer_of(dir.path(), &[pgn.clone(), pgn], VariantChoice::default());
    let find = |id: &str| explorer.find(id).unwrap();
    assert_eq!((find("00000003"), find("3")), (Some(3), Some(3)));
    // Both files contain a copy of the game.
    assert_eq!(find("abcdefgh"), Some(1));
    for unknown in ["abcdefgi", "00000006", "6", "", "0000000x", "+0000003"] {
        assert_eq!(find(unknown), None, "{unknown}");
    }
    assert_eq!(explorer.text(1).unwrap(), game.as_bytes());
    assert_eq!(explorer.text(3).unwrap(), other.as_bytes());
    assert_eq!(explorer.game(3).unwrap().id, "00000003");
    assert_eq!(explorer.game(4).unwrap().id, "abcdefgh");
    assert!(explorer.game(6).is_err() && explorer.text(6).is_err());
    let about = explorer.about();
    assert_eq!(
        (about.games, about.sources.len(), about.years),
        (Some(6), 2, None)
    );
}

/// Writes games with the given tags and moves into a file of a directory.
fn pgn_of(dir: &Path, games: &[&str]) -> PathBuf {
    let path = dir.join("games.pgn");
    fs::write(&path, games.join("\n\n")).unwrap();
    path
}

#[test]
fn names_match_in_part_on_the_command_line() {
    let dir = temp();
    let games = pgn_of(
        dir.path(),
        &[
            "[Event \"Riga Open\"]\n[White \"Mu\u{308}ller,  Hans\"]\n[Black \"Tal, Mikhail\"]\n\n1. e4 1-0",
            "[Event \"Riga\"]\n[White \"Tal, Mikhail\"]\n[Black \"M\u{fc}ller, Karsten\"]\n\n1. d4 0-1",
            "[Event \"Tal Memorial\"]\n[White \"Botvinnik\"]\n[Black \"Keres, Paul\"]\n\n1. c4 *",
        ],
    );
    ok(
        dir.path(),
        args!["make-book", "-q", "--explorer", "a.idx", games],
    );
    for (options, expected) in [
        ("--player müller", 2),
        ("--player MÜLLER,\u{a0}hans", 1),
        ("--player müller --color white", 1),
        ("--player müller --color Black", 1),
        ("--player müller --opponent tal", 2),
        ("--opponent karsten", 1),
        ("--event riga", 2),
        ("--event riga --exact", 1),
        ("--player tal,\u{a0}mikhail --exact", 2),
    ] {
        let words: Vec<String> = options
            .split(' ')
            .map(|word| word.replace('\u{a0}', " "))
            .collect();
        let ask = |command: &str| {
            let mut args: Vec<&str> = vec![command, "a.idx", "--json"];
            args.extend(words.iter().map(String::as_str));
            ok_json(dir.path(), &args)
        };
        assert_eq!(ask("show")["games"], expected, "{options}");
        assert_eq!(ask("games")["total"], expected, "{options}");
    }
    for command in ["show", "games"] {
        let nobody = |options: &str| fails(dir.path(), &format!("{command} a.idx {options}"), 1);
        for (options, expected) in [
            (
                "--player Botwinnik",
                "no player's name contains \"Botwinnik\": did you mean \"Botvinnik\"?",
            ),
            ("--player Riga", "no player's name contains \"Riga\""),
            (
                "--player tal --exact",
                "no player has exactly the name \"tal\": did you mean \"Tal, Mikhail\"?",
            ),
            (
                "--player tal --opponent Kerez",
                "\"Kerez\": did you mean \"Keres, Paul\"?",
            ),
            (
                "--event Rigga --json",
                "no event's name contains \"Rigga\": did you mean \"Riga\" or \"Riga Open\"?",
            ),
        ] {
            let error = nobody(options);
            assert!(error.contains(expected), "{options}: {error}");
        }
    }
    let nothing = ok(dir.path(), "show a.idx --player tal --moves a3");
    assert_eq!(
        nothing,
        "A00 Anderssen's Opening\nno game with these filters continues from this position\n"
    );
}

#[test]
fn a_performance_is_over_rated_opponents_and_known_results() {
    let dir = temp();
    let unrated = "[Event \"A\"]\n[White \"Tal\"]\n[Black \"B\"]\n[Result \"1-0\"]\n\n1. e4 1-0";
    let lost = "[Event \"A\"]\n[White \"Tal\"]\n[Black \"C\"]\n[BlackElo \"2500\"]\n[Result \"0-1\"]\n\n1. e4 0-1";
    let open = "[Event \"A\"]\n[White \"Tal\"]\n[Black \"D\"]\n[BlackElo \"1000\"]\n[Result \"*\"]\n\n1. e4 *";
    let slip = "[Event \"A\"]\n[White \"Tal\"]\n[Black \"E\"]\n[BlackElo \"27000\"]\n[Result \"1-0\"]\n\n1. d4 1-0";
    let mut games = vec![unrated; 9];
    games.extend([lost; 10]);
    games.extend([open, slip]);
    let explorer = explorer_of(
        dir.path(),
        &[pgn_of(dir.path(), &games)],
        VariantChoice::default(),
    );
    let mut query = Query::new(Line::start(Variant::Standard), View::Player);
    query.filters.player = vec!["tal".to_owned()];
    query.filters.color = Some(Color::White);
    let answer = explorer.answer(&query).unwrap();
    let scores: Vec<_> = answer
        .moves
        .iter()
        .map(|mv| (mv.results.games(), mv.player.clone().unwrap()))
        .collect();
    // A player who only loses to players rated 2500 performs 800 points lower.
    assert_eq!(scores[0].0, 20);
    assert_eq!(
        (scores[0].1.average_opponent_rating, scores[0].1.performance),
        (Some(2500), Some(1700))
    );
    assert_eq!(
        (scores[1].1.average_opponent_rating, scores[1].1.performance),
        (None, None)
    );
    let json = serde_json::to_value(&answer).unwrap();
    assert!(
        json["moves"][1]["performance"].is_null()
            && json["moves"][1].get("averageRating").is_none()
    );
}

#[test]
fn pages_of_lichess_and_shared_ids_are_no_ids_of_games() {
    let dir = temp();
    let game = |site: &str, mv: &str| {
        let site = format!("https://lichess.org/{site}");
        format!("[Event \"A\"]\n[Site \"{site}\"]\n[White \"A\"]\n[Result \"1-0\"]\n\n1. {mv} 1-0")
    };
    let games = [
        game("analysis", "e4"),
        game("training", "d4"),
        game("abcdefgh", "c4"),
        game("abcdefgh", "Nf3"),
        game("Abcdefgh", "b3"),
        game("onlyonce", "g3"),
        game("onlyonce", "g3"),
    ];
    let pgn = pgn_of(dir.path(), &games.each_ref().map(String::as_str));
    MakeBook::new([Input::file(pgn)])
        .selection(polybook::selection::Selection {
            duplicates: Some(polybook::selection::Duplicates::Once),
            ..Default::default()
        })
        .explorer(dir.path().join("a.idx"))
        .run()
        .unwrap();
    let explorer = Explorer::open([("a".to_owned(), dir.path().join("a.idx"))]).unwrap();
    let ids: Vec<String> = (0..7)
        .map(|number| explorer.game(number).unwrap().id)
        .collect();
    // The last two games are duplicates; the answer contains the id of the first.
    assert_eq!(
        ids,
        [
            "00000000", "00000001", "00000002", "00000003", "Abcdefgh", "onlyonce", "00000006"
        ]
    );
    for (number, id) in ids.iter().enumerate() {
        assert_eq!(explorer.find(id).unwrap(), Some(number as u64), "{id}");
    }
    for unknown in ["analysis", "training", "abcdefgh"] {
        assert_eq!(explorer.find(unknown).unwrap(), None, "{unknown}");
    }
}

#[test]
fn dates_of_other_forms_are_read_in_the_same_way_everywhere() {
    let dir = temp();
    let game = |date: &str, mv: &str| format!("[Event \"A\"]\n[Date \"{date}\"]\n\n1. {mv} 1-0");
    let games = [
        game("10.03.2024", "e4"),
        game("03/10/2024", "d4"),
        game("2024.02.31", "c4"),
        game("????.??.??\"]\n[EventDate \"2020.01.01", "b4"),
        game("2019.12.31", "a4"),
    ];
    let pgn = pgn_of(dir.path(), &games.each_ref().map(String::as_str));
    let pgn = pgn.to_str().unwrap();
    ok(
        dir.path(),
        args!["make-book", "-q", pgn, "--explorer", "a.idx"],
    );
    let explorer = Explorer::open([("a".to_owned(), dir.path().join("a.idx"))]).unwrap();
    assert_eq!(explorer.about().years, Some([2019, 2024]));
    let mut query = Query::new(Line::start(Variant::Standard), View::Lichess);
    query.history = true;
    let history = explorer.answer(&query).unwrap().history.unwrap();
    assert_eq!(
        history.iter().map(|month| month.results.white).sum::<u64>(),
        3
    );
    assert_eq!(history.len(), 51);
    // All commands must agree on which games were played in a period.
    for (since, expected) in [
        ("2024", &["c4", "d4", "e4"][..]),
        ("2024.02.29", &["c4", "d4", "e4"]),
        ("2024.03", &["d4", "e4"]),
        ("2020", &["b4", "c4", "d4", "e4"]),
        ("2019.12.31", &["a4", "b4", "c4", "d4", "e4"]),
    ] {
        let book = format!("make-book -q {pgn} --bin s.bin --min-game 1 --since {since}");
        ok(dir.path(), &book);
        let of = |document: Value| -> Vec<String> {
            let moves = document["moves"].as_array().unwrap();
            let mut moves: Vec<_> = moves
                .iter()
                .map(|mv| mv["san"].as_str().unwrap().to_owned())
                .collect();
            moves.sort();
            moves
        };
        assert_eq!(
            of(ok_json(dir.path(), "show s.bin --json")),
            expected,
            "{since}"
        );
        let moves = format!("show a.idx --json --since {since}");
        assert_eq!(of(ok_json(dir.path(), &moves)), expected, "{since}");
    }
}

#[test]
fn games_and_moves_have_the_same_result_of_a_game() {
    let dir = temp();
    let games = pgn_of(
        dir.path(),
        &[
            "[Event \"A\"]\n[White \"no tag\"]\n\n1. e4 1-0",
            "[Event \"A\"]\n[White \"half\"]\n[Result \"1/2\"]\n\n1. d4 1/2-1/2",
            "[Event \"A\"]\n[White \"contradicted\"]\n[Result \"0-1\"]\n\n1. c4 1-0",
            "[Event \"A\"]\n[White \"unknown\"]\n[Result \"*\"]\n\n1. b4 1-0",
            "1. h4 0-1",
            "[Event \"A\"]\n[White \"none\"]\n\n1. a4",
        ],
    );
    let games = games.to_str().unwrap();
    for (index, option) in [("a.idx", "--explorer"), ("b.idx", "--leveldb")] {
        let stats = match option {
            "--leveldb" => "--index-stats",
            _ => "",
        };
        let line = format!(
            "make-book --json --min-game 1 {games} {option} {index} {stats} --bin a.bin --force"
        );
        let report = ok_json(dir.path(), &*line);
        assert_eq!(report["contradicted_results"], 2, "{report}");
        let list = ok_json(dir.path(), args!["games", index, "--json"]);
        let moves = ok_json(dir.path(), args!["show", index, "--json"]);
        // Records contain the tag, as the format requires. The explorer's index contains the result that is used.
        let tags = ["*", "1/2", "0-1", "*", "*", "*"];
        for (id, expected) in ["1-0", "1/2-1/2", "0-1", "*", "0-1", "*"]
            .iter()
            .enumerate()
        {
            let shown = if option == "--explorer" {
                expected
            } else {
                &tags[id]
            };
            assert_eq!(list["games"][id]["result"], *shown, "{index} {id}");
            let san = ["e4", "d4", "c4", "b4", "h4", "a4"][id];
            let moves = moves["moves"].as_array().unwrap();
            let played = moves.iter().find(|played| played["san"] == san).unwrap();
            let one = |results: &[&str]| u64::from(results.contains(expected));
            // The statistics of positions count games without a result as draws.
            let names = ["white", "draws", "black", "unfinished"];
            let numbers = names.map(|key| played[key].as_u64().unwrap_or(0));
            let results = match option {
                "--explorer" => [&["1-0"][..], &["1/2-1/2"], &["0-1"], &["*"]],
                _ => [&["1-0"][..], &["1/2-1/2", "*"], &["0-1"], &[]],
            };
            assert_eq!(numbers, results.map(one));
        }
        // The record of a game still leads to its text.
        for id in 0..6 {
            ok(dir.path(), &format!("games {index} --pgn --id {id}"));
        }
    }
    let summary = crate::common::run(
        dir.path(),
        args!["make-book", "--min-game=1", games, "--force"],
    );
    let summary = String::from_utf8_lossy(&summary.stderr).into_owned();
    assert!(
        summary.contains(
            "2 games end with a result that differs from their Result tag: the tag was used"
        ),
        "{summary}"
    );
}

/// The games of two collections, with partial dates, missing ids, other spellings of names, and other endings.
fn similar_games() -> impl proptest::strategy::Strategy<Value = String> {
    use proptest::{collection::vec, sample::select, strategy::Strategy};
    let tags = (
        select(vec![
            "Carlsen, Magnus",
            "carlsen,magnus",
            "Caruana, F.",
            "Caruana,F",
            "?",
        ]),
        select(vec![
            "????.??.??",
            "2024.??.??",
            "2024.05.??",
            "2024.05.06",
            "2024.05.07",
        ]),
        select(vec![
            "",
            "https://lichess.org/abcdefgh",
            "https://lichess.org/abcdefgi",
            "Wijk",
        ]),
        select(vec!["Date", "EventDate"]),
    );
    let moves = (
        select(vec![
            "1. e4 e5",
            "1. e4 e5 2. Nf3",
            "1. e4 e5 2. Ng1f3",
            "1. e4 -- 2. Nf3",
        ]),
        select(vec!["1-0", "*"]),
    );
    let game = (tags, moves).prop_map(|((name, date, site, tag), (moves, result))| {
        format!(
            "[Event \"Open\"]\n[Site \"{site}\"]\n[{tag} \"{date}\"]\n[White \"{name}\"]\n[Black \"?\"]\n\
             [Result \"{result}\"]\n\n{moves} {result}\n\n"
        )
    });
    vec(game, 1..12).prop_map(|games| games.concat())
}

/// Returns the numbers of the games that an explorer lists in the starting position.
fn numbers_listed(index: &Path, filters: Selection) -> Vec<u64> {
    let explorer = Explorer::open([("all".to_owned(), index.to_owned())]).unwrap();
    let query = Query {
        filters,
        ..Query::new(Line::start(Variant::Standard), View::Lichess)
    };
    let page = Page {
        skip: 0,
        limit: 100,
        sort: Sort::Id,
        fold_matches: false,
    };
    let games = explorer.games(&query, &page).unwrap().games;
    games.iter().map(|game| game.played.game.number).collect()
}

proptest::proptest! {
    #![proptest_config(proptest::test_runner::Config::with_cases(24))]

    /// The option of `make-book` and the filter of the explorer keep the same games, whatever the limit of half-moves,
    /// the number of threads and the names of the player.
    #[test]
    fn both_doors_keep_the_same_games(
        pgn in similar_games(),
        max_ply in 1..4usize,
        threads in 1..3usize,
        names in proptest::sample::subsequence(vec!["carlsen, magnus", "Caruana, F.", "caru"], 0..3),
    ) {
        let dir = temp();
        let path = |name: &str| dir.path().join(name);
        fs::write(path("games.pgn"), pgn).unwrap();
        let selection = |once: bool| Selection {
            duplicates: once.then_some(polybook::selection::Duplicates::Once),
            player: names.iter().map(|name| name.to_string()).collect(),
            ..Selection::default()
        };
        let make = |name: &str, drop: bool, max_ply: usize| {
            let run = MakeBook::new([Input::file(path("games.pgn"))]).max_ply(max_ply).threads(threads).allow_empty(true);
            run.selection(selection(drop)).explorer(path(name)).run().unwrap();
        };
        make("dropped", true, 1024);
        make("dropped-short", true, max_ply);
        make("all", false, 1024);
        make("short", false, max_ply);
        let kept = numbers_listed(&path("dropped"), Selection::default());
        proptest::prop_assert_eq!(&numbers_listed(&path("all"), selection(true)), &kept);
        proptest::prop_assert_eq!(&numbers_listed(&path("short"), selection(true)), &kept);
        proptest::prop_assert_eq!(&numbers_listed(&path("dropped-short"), Selection::default()), &kept);
    }
}

/// A group of duplicates has the id and the date that its games state together, and all names that one condition matches
/// are names of one player.
#[test]
fn duplicates_are_compared_by_ids_dates_and_players_everywhere() {
    let dir = temp();
    let dir = dir.path();
    let game = |tags: &str, white: &str| {
        let tags: String = tags
            .split_terminator('|')
            .map(|tag| format!("[{tag}]\n"))
            .collect();
        format!("{tags}[White \"{white}\"]\n[Black \"Ng\"]\n[Result \"1-0\"]\n\n1. e4 e5 1-0\n\n")
    };
    let id = |last: char, date: &str| {
        format!("Site \"https://lichess.org/abcdefg{last}\"|Date \"{date}\"")
    };
    let day = "2024.05.06";
    let dated = format!("Date \"{day}\"");
    for (games, names, expected) in [
        // A copy without an id joins one of two games of Lichess.
        (
            vec![
                game(&dated, "Doe"),
                game(&id('a', day), "Doe"),
                game(&id('b', day), "Doe"),
            ],
            &[][..],
            2,
        ),
        (
            vec![
                game(&id('a', day), "Doe"),
                game(&dated, "Doe"),
                game(&id('b', day), "Doe"),
            ],
            &[],
            2,
        ),
        (
            vec![
                game(&id('a', day), "Doe"),
                game(&id('b', day), "Doe"),
                game(&dated, "Doe"),
            ],
            &[],
            2,
        ),
        (
            vec![
                game("", "Doe"),
                game(&id('a', day), "Doe"),
                game(&id('b', day), "Doe"),
                game("", "Doe"),
            ],
            &[],
            2,
        ),
        // A copy without a date joins one of two games of different days.
        (
            vec![
                game("", "Doe"),
                game(&dated, "Doe"),
                game("Date \"2024.05.07\"", "Doe"),
            ],
            &[],
            2,
        ),
        (
            vec![
                game("Date \"2024.??.??\"", "Doe"),
                game(&dated, "Doe"),
                game("Date \"2024.05.07\"", "Doe"),
            ],
            &[],
            2,
        ),
        // The first day of an event is known only as a year.
        (
            vec![
                game("Date \"????.??.??\"|EventDate \"2024.05.01\"", "Doe"),
                game(&dated, "Doe"),
            ],
            &[],
            1,
        ),
        (
            vec![game("EventDate \"2023.05.01\"", "Doe"), game(&dated, "Doe")],
            &[],
            2,
        ),
        (
            vec![
                game("EventDate \"2023.05.01\"", "Doe"),
                game("EventDate \"2024.05.01\"", "Doe"),
            ],
            &[],
            2,
        ),
        (
            vec![
                game("EventDate \"2023.12.28\"", "Doe"),
                game("Date \"2024.01.02\"", "Doe"),
            ],
            &[],
            1,
        ),
        // Two names of one player.
        (
            vec![game(&dated, "Doe, Jane"), game(&dated, "jane42")],
            &["Doe, Jane", "jane42"],
            1,
        ),
        (
            vec![game(&dated, "Doe, Jane"), game(&dated, "Doe, J")],
            &["doe"],
            1,
        ),
        (
            vec![
                game(&dated, "jane42"),
                game(&dated, "Doe, Jane"),
                game(&dated, "Doe"),
            ],
            &["Doe, Jane", "jane42"],
            1,
        ),
        (
            vec![game(&dated, "Doe, Jane"), game(&dated, "jane42")],
            &[],
            2,
        ),
    ] {
        fs::write(dir.join("games.pgn"), games.concat()).unwrap();
        ok(dir, "make-book -q games.pgn --explorer idx --force");
        let options = ["--player", "--white"];
        for option in &options[..names.len().clamp(1, 2)] {
            let named: Vec<&str> = names.iter().flat_map(|name| [*option, *name]).collect();
            let total = |line: &str| {
                let line: Vec<&str> = line.split(' ').chain(named.iter().copied()).collect();
                ok_json(dir, &line)
            };
            let listed = total("games idx --duplicates once --json");
            assert_eq!(listed["total"], expected, "{games:?} {named:?}");
            let counted =
                total("make-book -q games.pgn --duplicates once --min-game 1 --force --json");
            assert_eq!(counted["games"]["counted"], expected, "{games:?} {named:?}");
            let moves = total("show idx --duplicates once --json");
            assert_eq!(moves["games"], expected, "{games:?} {named:?}");
        }
    }
}

/// A game that does not pass the filters neither joins two others nor separates them.
#[test]
fn duplicates_are_found_among_the_games_that_pass_the_filters() {
    let dir = temp();
    let dir = dir.path();
    let game = |(date, event): &(&str, &str)| {
        format!(
            "[Event \"{event}\"]\n[Date \"{date}\"]\n[White \"A\"]\n[Black \"B\"]\n[Result \"1-0\"]\n\n1. e4 1-0\n\n"
        )
    };
    for (games, of_first, of_all) in [
        (
            [
                ("2024.05.??", "x"),
                ("2024.05.06", "y"),
                ("2024.05.07", "x"),
            ],
            1,
            2,
        ),
        (
            [
                ("2024.05.06", "x"),
                ("????.??.??", "y"),
                ("2024.05.06", "x"),
            ],
            1,
            1,
        ),
        (
            [
                ("2024.05.06", "x"),
                ("2024.05.07", "y"),
                ("2024.05.??", "x"),
            ],
            1,
            2,
        ),
        (
            [
                ("2024.05.06", "y"),
                ("2024.05.??", "x"),
                ("2024.05.07", "x"),
            ],
            1,
            2,
        ),
    ] {
        fs::write(
            dir.join("games.pgn"),
            games.iter().map(game).collect::<String>(),
        )
        .unwrap();
        ok(dir, "make-book -q games.pgn --explorer idx --force");
        for (condition, expected) in [("--event x", of_first), ("", of_all)] {
            let options = format!("--duplicates once --json {condition}");
            let total = |command: &str| ok_json(dir, format!("{command} {options}").trim());
            let made = total("make-book -q games.pgn --min-game 1 --force");
            assert_eq!(made["games"]["counted"], expected, "{games:?} {condition}");
            assert_eq!(
                total("games idx")["total"],
                expected,
                "{games:?} {condition}"
            );
            assert_eq!(
                total("show idx")["games"],
                expected,
                "{games:?} {condition}"
            );
        }
    }
}

/// Players who meet often play the same short game hundreds of times, each time with another id.
#[test]
fn many_games_with_equal_moves_are_compared_by_their_ids() {
    let dir = temp();
    let dir = dir.path();
    let game = |number: usize| {
        format!(
            "[Site \"https://lichess.org/abcde{number:03}\"]\n[White \"A\"]\n[Black \"B\"]\n[Result \"1-0\"]\n\n\
             1. e4 e5 1-0\n\n"
        )
    };
    let games: String = (0..300).chain(0..300).map(game).collect();
    fs::write(dir.join("games.pgn"), games).unwrap();
    let made =
        "make-book -q games.pgn --explorer idx --json --bin a.bin --min-game 1 --duplicates once";
    assert_eq!(ok_json(dir, made)["games"]["counted"], 300);
    ok(dir, "make-book -q games.pgn --explorer idx --force");
    let listed = ok_json(dir, "games idx --duplicates once --json --limit 1");
    assert_eq!(listed["total"], 300);
}

#[test]
fn a_game_counts_once_if_its_copies_do_not_contradict_each_other() {
    let dir = temp();
    let dir = dir.path();
    let game = |site: &str, date: &str, white: &str, moves: &str| {
        format!(
            "[Site \"{site}\"]\n[Date \"{date}\"]\n[White \"{white}\"]\n[Black \"Ng\"]\n[Result \"1-0\"]\n\n{moves} \
             1-0\n\n"
        )
    };
    let (id, other) = (
        "https://lichess.org/abcdefgh",
        "https://lichess.org/abcdefgi",
    );
    let first = game(id, "2024.05.06", "Ann, B.", "1. e4 e5 2. Nf3");
    let total = |second: &str| {
        fs::write(dir.join("games.pgn"), format!("{first}{second}")).unwrap();
        ok(
            dir,
            "make-book -q games.pgn --explorer idx --max-ply 2 --force",
        );
        let games = ok_json(dir, "games idx --duplicates once --json");
        games["total"].as_u64().unwrap()
    };
    for (second, expected) in [
        (game("?", "2024.05.06", "Ann, B.", "1. e4 e5 2. Nf3"), 1),
        (game(id, "2024.05.??", "Ann, B.", "1. e4 e5 2. Nf3"), 1),
        (game("Wijk", "????.??.??", "ann,b", "1. e4 e5 2. Nf3"), 1),
        (game(other, "2024.05.06", "Ann, B.", "1. e4 e5 2. Nf3"), 2),
        (game("?", "2024.05.07", "Ann, B.", "1. e4 e5 2. Nf3"), 2),
        (game("?", "2024.05.06", "Ann, C.", "1. e4 e5 2. Nf3"), 2),
        // The games differ only after the limit of the index.
        (game("?", "2024.05.06", "Ann, B.", "1. e4 e5 2. Nc3"), 2),
        (game("?", "2024.05.06", "Ann, B.", "1. e4 e5 2. Nf3 d6"), 2),
    ] {
        assert_eq!(total(&second), expected, "{second}");
    }
}

/// A game keeps its address if it is in several files.
#[test]
fn copies_of_a_game_share_its_address() {
    let dir = temp();
    let dir = dir.path();
    let game = |moves: &str| format!("[Site \"https://lichess.org/abcdefgh\"]\n\n{moves} 1-0\n");
    fs::write(dir.join("a.pgn"), game("1. e4 e5")).unwrap();
    fs::write(
        dir.join("b.pgn"),
        format!("[Event \"x\"]\n{}", game("1. e4 e7e5")),
    )
    .unwrap();
    fs::write(dir.join("c.pgn"), game("1. e4 c5")).unwrap();
    for name in ["a", "b", "c"] {
        ok(
            dir,
            &*format!("make-book -q {name}.pgn --explorer {name}.idx"),
        );
    }
    ok(dir, "make-book -q a.pgn b.pgn --explorer ab.idx");
    let address = "https://lichess.org/abcdefgh";
    for indexes in ["ab.idx", "a.idx b.idx"] {
        assert_eq!(
            ok(dir, &*format!("games {indexes} --pgn --id {address}")),
            game("1. e4 e5")
        );
    }
    let error = fails(dir, &*format!("games a.idx c.idx --pgn --id {address}"), 1);
    assert!(error.contains("several games"), "{error}");
}

/// A position at the limit of an index is not the end of the games that reached it.
#[test]
fn answers_at_the_limit_of_an_index_are_not_the_ends_of_games() {
    let dir = temp();
    let dir = dir.path();
    let game = |white: &str, black: &str, moves: &str| {
        format!(
            "[White \"{white}\"]\n[Black \"{black}\"]\n[Date \"2024.01.01\"]\n[Result \"1-0\"]\n\n{moves} 1-0\n\n"
        )
    };
    let theirs = game("Them", "X", "1. e4 e5 2. Nf3 Nc6").repeat(12);
    let mine = game("Y", "Me", "1. e4 e5 2. Nf3 Nc6").repeat(12);
    fs::write(dir.join("games.pgn"), format!("{theirs}{mine}")).unwrap();
    fs::write(dir.join("ended.pgn"), game("Them", "X", "1. e4 e5 2. Nf3")).unwrap();
    for (name, options) in [("short", "--max-ply 3"), ("whole", "")] {
        ok(
            dir,
            &*format!("make-book -q games.pgn --explorer {name} {options}"),
        );
    }
    ok(dir, "make-book -q ended.pgn --explorer ended --max-ply 3");
    let first = |index: &str| {
        let args = ["games", index, "--moves", "1. e4 e5 2. Nf3", "--json"];
        ok_json(dir, &args)["games"][0].take()
    };
    let short = first("short");
    assert_eq!(
        (&short["uci"], &short["unindexed"]),
        (&Value::Null, &true.into())
    );
    let ended = first("ended");
    assert_eq!(
        (&ended["uci"], &ended["unindexed"]),
        (&Value::Null, &Value::Null)
    );
    assert_eq!(first("whole")["uci"], "b8c6");
    for moves in ["1. e4 e5 2. Nf3", "1. e4 e5 2. Nf3 Nc6"] {
        let text = ok(dir, &["show", "-q", "short", "--moves", moves]);
        let expected = "the next moves are not indexed: the index ends at half-move 3\n";
        assert!(text.ends_with(expected), "{text}");
    }
    for (index, is_cut) in [("short", true), ("ended", false), ("whole", false)] {
        let args = ["games", index, "--moves", "1. e4 e5 2. Nf3", "--limit", "1"];
        let text = ok(dir, &args);
        assert_eq!(
            text.contains("(next move not indexed)"),
            is_cut,
            "{index}: {text}"
        );
    }

    let prepare = |index: &str, moves: &str| {
        let options = "--opponent Them --player Me --color black --duplicates all --json";
        let mut args = vec!["prepare", "-q", index, "--moves", moves];
        args.extend(options.split(' '));
        ok_json(dir, &args)
    };
    let mv = |answer: &Value| answer["moves"][0].clone();
    let short = prepare("short", "1. e4 e5");
    assert_eq!(mv(&short)["unindexed"], true, "{short}");
    let whole = prepare("whole", "1. e4 e5");
    assert_eq!(mv(&whole)["answer"]["uci"], "b8c6", "{whole}");
    assert_eq!(mv(&whole)["unindexed"], Value::Null);
    assert_eq!(prepare("short", "")["lines"], serde_json::json!([]));

    ok(dir, "make-book -q games.pgn --explorer first --max-ply 1");
    let rows = ok_json(dir, "openings first --json");
    assert_eq!(
        rows["families"][0].get("line_games"),
        Some(&Value::Null),
        "{rows}"
    );
    let rows = ok_json(dir, "openings whole --json");
    assert!(rows["families"][0]["line_games"].is_u64(), "{rows}");

    let new = |reference: &str| {
        let mut rows = ok_json(
            dir,
            &*format!("repertoire new ended.pgn --reference {reference} --json"),
        );
        rows["games"][0].take()
    };
    assert_eq!(new("first")["ply"], Value::Null);
    assert_eq!(new("first")["unindexed"], true);
    assert_eq!(new("short")["unindexed"], Value::Null);
}
