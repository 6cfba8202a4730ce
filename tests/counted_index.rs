//! An index of counts answers like an index of the same games, and reports queries that it cannot answer.

use std::{
    collections::HashMap,
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use polybook::{
    explorer::{
        Answer, Explorer, Facets, Line, Query, RatingGroup, Resulting, Selection, Speed, Variant,
        View, WantedRating,
    },
    index::Index,
    pgn::{Date, GameReader, Token},
    position::{Keyed, read_move},
    results::Results,
};
use rayon::prelude::*;
use serde_json::{Value, json};

#[cfg(feature = "serve")]
use crate::common::served::Served;
use crate::{
    common::{corpus, fails, ok, ok_json, python, run, sample, short_games, takes_hours, temp},
    explorer::{expected, filters},
};

const ALL: &str = "--by speed,rating,month";

/// Makes an index of games and an index of their counts in a directory.
fn both(dir: &Path, pgn: &Path, options: &str) -> [Explorer; 2] {
    let pgn = pgn.display();
    ok(
        dir,
        &format!("make-book -q {pgn} --explorer games {options}"),
    );
    ok(
        dir,
        &format!("make-book -q {pgn} --counts all.counts {ALL} {options}"),
    );
    ok(dir, "make-book -q all.counts --explorer counts");
    ["games", "counts"].map(|name| Explorer::open([(name.to_owned(), dir.join(name))]).unwrap())
}

/// Returns filters that counts can evaluate.
fn combinations() -> Vec<Selection> {
    let date = |year, month| Some(Date::new(year, month, 0));
    let groups = |floors: &[u32]| {
        let groups = floors
            .iter()
            .map(|floor| WantedRating(Some(RatingGroup::of(*floor))));
        Some(groups.collect::<Vec<WantedRating>>())
    };
    let mut all = Vec::new();
    for (since, until) in [
        (None, None),
        (date(2003, 0), None),
        (date(2001, 7), date(2015, 2)),
        (None, date(2004, 11)),
    ] {
        for groups in [None, groups(&[0, 2500]), groups(&[2000, 2200]), groups(&[])] {
            for speeds in [
                None,
                Some(vec![Speed::Blitz, Speed::Bullet]),
                Some(vec![Speed::Classical, Speed::Correspondence, Speed::Rapid]),
            ] {
                all.push(Selection {
                    since,
                    until,
                    rating: groups.clone(),
                    speed: speeds,
                    ..Selection::default()
                });
            }
        }
    }
    // Games without a known rating: alone, and with those of the lowest group.
    for groups in [groups(&[]), groups(&[0, 1600])] {
        let groups = groups.into_iter().flatten();
        all.push(Selection {
            rating: Some(groups.chain([WantedRating(None)]).collect()),
            ..Selection::default()
        });
    }
    all.push(Selection {
        require_date: true,
        ..Selection::default()
    });
    all
}

/// Returns the positions of every `step`th game.
fn positions(explorer: &Explorer, step: usize) -> Vec<Line> {
    let mut lines = HashMap::new();
    for number in (0..explorer.game_count()).step_by(step) {
        let text = explorer.text(number).unwrap();
        let mut game = GameReader::new(&text);
        assert!(game.next_game());
        let mut pos = Keyed::new(Variant::Standard.start());
        while let Token::Move { text, .. } = game.next_token() {
            let Ok(mv) = read_move(pos.position(), text) else {
                break;
            };
            let line = || Line::at(Variant::Standard, pos.position().clone());
            lines.entry(pos.key()).or_insert_with(line);
            pos.play(mv);
        }
    }
    lines.into_values().collect()
}

/// Removes from an answer the games without a result, which counts include in the draws.
fn forget_unfinished(answer: &mut Answer) {
    let drawn = |results: &mut Results| results.draws += std::mem::take(&mut results.unfinished);
    drawn(&mut answer.results);
    for mv in &mut answer.moves {
        drawn(&mut mv.results);
        if let Some(resulting) = &mut mv.resulting {
            drawn(&mut resulting.results);
        }
    }
    let months = answer.history.iter_mut().flatten();
    months.for_each(|month| drawn(&mut month.results));
    let years = answer.years.iter_mut().flatten();
    years.for_each(|year| drawn(&mut year.results));
}

/// Compares both indexes for the positions of every `step`th game: every `all`th game with all combinations of
/// filters, the others with one.
fn compare([games, counts]: &[Explorer; 2], step: usize, all: usize) {
    let combinations = combinations();
    let compare_one = |line: &Line, number: usize, filters: &Selection| {
        let view = if number.is_multiple_of(5) {
            View::Masters
        } else {
            View::Lichess
        };
        let mut query = Query::new(line.clone(), view);
        query.filters = filters.clone();
        (query.top_games, query.recent_games, query.moves) = (0, Some(0), None);
        (query.history, query.years) = (number % 3 == 1, number % 3 == 2);
        query.resulting = number.is_multiple_of(2);
        let mut wanted = games.answer(&query).unwrap();
        wanted.moves.iter_mut().for_each(|mv| mv.game = None);
        forget_unfinished(&mut wanted);
        assert_eq!(counts.answer(&query).unwrap(), wanted, "{query:?}");
        if number.is_multiple_of(7) {
            let facets = |explorer: &Explorer| Facets {
                variants: Default::default(),
                ..explorer.facets(line, filters).unwrap()
            };
            assert_eq!(facets(counts), facets(games), "{query:?}");
            let mut scores = games.scores(line, filters).unwrap();
            for score in &mut scores {
                let results = &mut score.results;
                results.draws += std::mem::take(&mut results.unfinished);
            }
            assert_eq!(counts.scores(line, filters).unwrap(), scores);
        }
        wanted.results.games()
    };
    let lines = positions(games, step);
    let asked = lines.par_iter().enumerate().flat_map_iter(|(at, line)| {
        let (one, numbers) = (at % combinations.len(), 0..combinations.len());
        let chosen = numbers.filter(move |number| at % all == 0 || *number == one);
        chosen.map(move |number| (line, number))
    });
    let found = asked.map(|(line, number)| compare_one(line, number, &combinations[number]));
    assert!(found.sum::<u64>() > 0);
}

#[test]
fn every_answer_is_that_of_the_games() {
    if !crate::common::runs_slow_tests() {
        return;
    }
    for name in ["online.pgn", "famous.pgn"] {
        let dir = temp();
        let pgn = sample(name);
        compare(&both(dir.path(), &pgn, ""), 1, 8);
        compare(&both(temp().path(), &pgn, "--max-ply 12"), 1, 8);
    }
    let dir = temp();
    let pgn = dir.path().join("short.pgn");
    // The first positions have many rows.
    fs::write(&pgn, short_games(0, 40_000)).unwrap();
    compare(&both(dir.path(), &pgn, ""), 20_000, 8);
}

#[test]
fn a_wrong_year_does_not_fill_the_history() {
    let dir = temp();
    let pgn = dir.path().join("far.pgn");
    // There are 240 months between the two in the middle, and 241 before the one of 2030.
    let months = ["0001.05", "1990.01", "2010.02", "2030.04", "9999.12"];
    let game = |month| format!("[Date \"{month}.01\"]\n\n1. e4 1-0\n\n");
    fs::write(&pgn, months.map(game).concat()).unwrap();
    let mut query = Query::new(Line::start(Variant::Standard), View::Lichess);
    query.history = true;
    for explorer in both(dir.path(), &pgn, "") {
        let history = explorer.answer(&query).unwrap().history.unwrap();
        assert_eq!(history.len(), 1 + 242 + 1 + 1);
        let played = history.iter().filter(|month| month.results.white == 1);
        let played: Vec<String> = played.map(|of| of.month.replace('-', ".")).collect();
        assert_eq!(played, months);
    }
}

/// Tests the first 2,000 games of each file of the corpus.
#[test]
fn every_answer_about_the_corpus_is_that_of_the_games() {
    let Some(corpus) = corpus() else {
        return;
    };
    let (step, all) = if takes_hours() { (1, 1) } else { (20, 8) };
    let files = fs::read_dir(corpus)
        .unwrap()
        .map(|file| file.unwrap().path());
    for file in files.filter(|file| file.extension().is_some_and(|ending| ending == "pgn")) {
        let dir = temp();
        let text = fs::read(file).unwrap();
        let mut starts = memchr::memmem::find_iter(&text, b"\n[Event ");
        let end = starts.nth(2000).map_or(text.len(), |end| end + 1);
        let pgn = dir.path().join("some.pgn");
        fs::write(&pgn, &text[..end]).unwrap();
        compare(&both(dir.path(), &pgn, ""), step, all);
    }
}

#[test]
fn every_number_is_that_of_python_chess() {
    let Some(python) = python(&["chess"]) else {
        return;
    };
    for (name, options) in [
        ("online.pgn", "--positions 60 --filters 12"),
        ("famous.pgn", "--positions 100 --filters 12"),
    ] {
        let dir = temp();
        let pgn = sample(name);
        let [_, counts] = both(dir.path(), &pgn, "");
        let options = format!("{options} --of-filters speeds,ratings,since,until");
        for question in expected(&python, &[pgn], &options) {
            let fen = question["fen"].as_str().unwrap();
            let line = Line::parse(Variant::Standard, Some(fen), "").unwrap();
            let mut query = Query::new(line, View::Lichess);
            (query.filters, query.moves) = (filters(&question["filters"]), None);
            query.resulting = true;
            let mut found = serde_json::to_value(counts.answer(&query).unwrap()).unwrap();
            let mut wanted = question["answer"].clone();
            for played in found["moves"].as_array_mut().unwrap() {
                let played = played.as_object_mut().unwrap();
                played.remove("san");
                played.remove("opening");
            }
            for played in wanted["moves"].as_array_mut().unwrap() {
                played["game"] = Value::Null;
                // Counts include games without a result in the draws.
                played.as_object_mut().unwrap().remove("unfinished");
                let resulting = played["resulting"].as_object_mut().unwrap();
                resulting.remove("unfinished");
            }
            for part in ["white", "draws", "black", "moves"] {
                assert_eq!(found[part], wanted[part], "{part} of {question}");
            }
        }
    }
}

/// Makes counts and an index of the famous games.
fn famous(dir: &Path) -> PathBuf {
    let pgn = sample("famous.pgn");
    both(dir, &pgn, "");
    pgn
}

#[test]
fn indexes_of_added_counts_do_not_depend_on_how_they_were_added() {
    let dir = temp();
    let dir = dir.path();
    let pgn = famous(dir);
    let other = sample("online.pgn");
    ok(
        dir,
        &format!(
            "make-book -q {} --counts online.counts {ALL}",
            other.display()
        ),
    );
    ok(dir, "make-book -q all.counts online.counts --explorer two");
    ok(
        dir,
        "make-book -q all.counts online.counts --counts sum.counts",
    );
    ok(
        dir,
        "make-book -q sum.counts --explorer sum --threads 1 --memory 64MiB",
    );
    let (pgn, other) = (pgn.display(), other.display());
    ok(
        dir,
        &format!("make-book -q {pgn} {other} --counts whole.counts {ALL}"),
    );
    ok(
        dir,
        "make-book -q whole.counts --explorer whole --threads 2",
    );
    let files = |name: &str| {
        let mut files: Vec<(PathBuf, Vec<u8>)> = fs::read_dir(dir.join(name))
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .map(|path| (path.file_name().unwrap().into(), fs::read(path).unwrap()))
            .collect();
        files.sort();
        files
    };
    assert!(files("whole") == files("sum") && files("two") == files("sum"));
    for name in ["two", "counts"] {
        let found = ok_json(dir, &format!("verify {name} --json"));
        assert_eq!(found["faults"], json!([]), "{found}");
    }
    // Several sources that are given together also give the same answer as one.
    let line = "show --sort uci --json";
    let one = ok_json(dir, &format!("{line} two"));
    ok(dir, "make-book -q online.counts --explorer online");
    assert_eq!(ok_json(dir, &format!("{line} counts online")), one);
    assert_eq!(ok_json(dir, &format!("{line} games online")), one);
}

#[test]
fn moves_of_rating_groups_add_up() {
    if !crate::common::runs_slow_tests() {
        return;
    }
    let dir = temp();
    let pgn = dir.path().join("short.pgn");
    fs::write(&pgn, short_games(0, 2_000)).unwrap();
    both(dir.path(), &pgn, "");
    let moves = |options: &str| {
        let of = |index| ok_json(dir.path(), &format!("show {index} --json {options}"));
        let moves = of("games");
        // Counts include games without a result in the draws.
        let counted = |document: &Value| {
            let number = |name: &str| document[name].as_u64().unwrap();
            let mut counted = document.clone();
            counted["draws"] = json!(number("draws") + number("unfinished"));
            counted["unfinished"] = Value::Null;
            counted
        };
        let mut wanted = counted(&moves);
        let of_moves = moves["moves"].as_array().unwrap().iter();
        wanted["moves"] = of_moves.map(counted).collect();
        assert_eq!(of("counts"), wanted, "{options}");
        moves
    };
    let games = |options: &str| moves(options)["games"].as_u64().unwrap();
    let groups = RatingGroup::all().map(|group| games(&format!("--rating {group}")));
    let groups: Vec<u64> = groups.collect();
    for (rating, reason) in [
        ("1700", "1700 is in the rating group 1600: use 1600"),
        ("2600", "2600 is in the rating group 2500: use 2500"),
        (
            "high",
            "use 0, 1000, 1200, 1400, 1600, 1800, 2000, 2200, 2500 or unknown",
        ),
    ] {
        for command in ["show", "openings", "games"] {
            let line = format!("{command} games --rating {rating}");
            let error = fails(dir.path(), &line, 2);
            assert!(error.contains(reason), "{line}: {error}");
        }
    }
    let unknown = games("--rating unknown");
    assert!(unknown > 0);
    let sum = groups.iter().sum::<u64>() + unknown;
    assert_eq!(sum, games(""), "{unknown} and {groups:?}");
    let some = games("--rating 1600,2000 --rating unknown");
    assert_eq!(some, groups[4] + groups[6] + unknown);
}

#[test]
fn counts_know_the_games_that_end_in_a_position() {
    let dir = temp();
    let dir = dir.path();
    // One game transposes and continues, one ends in the position, and one repeats the position and ends.
    let pgn = "[Event \"a\"]\n\n1. e4 e5 2. Nf3 Nc6 *\n\n\
               [Event \"b\"]\n\n1. Nf3 Nc6 2. e4 e5 3. Bb5 *\n\n\
               [Event \"c\"]\n\n1. e4 e5 2. Nf3 Nc6 3. Ng1 Nb8 4. Nf3 Nc6 1-0\n";
    fs::write(dir.join("t.pgn"), pgn).unwrap();
    let both = both(dir, &dir.join("t.pgn"), "");
    let asked = |explorer: &Explorer, moves: &str| {
        let line = Line::parse(Variant::Standard, None, moves).unwrap();
        let mut query = Query::new(line, View::Lichess);
        query.resulting = true;
        (query.top_games, query.recent_games, query.years) = (0, Some(0), true);
        explorer.answer(&query).unwrap()
    };
    let reached = |answer: &Answer| answer.moves[0].resulting.unwrap().reached();
    for explorer in &both {
        assert_eq!(reached(&asked(explorer, "e2e4,e7e5,g1f3")), Some(3));
        let ends = asked(explorer, "e2e4,e7e5,g1f3,b8c6");
        assert_eq!((ends.results.games(), ends.moves.len()), (2, 2));
    }

    // Parts of counts written by other programs may lack the rows for ends of games.
    if let Some(python) = python(&["duckdb"]) {
        let query = "COPY (SELECT * FROM read_parquet('all.counts/part-*') WHERE move <> 0 ORDER BY key, move) \
                     TO 'foreign/part.parquet'";
        fs::create_dir(dir.join("foreign")).unwrap();
        let script = format!("import duckdb; duckdb.sql(\"{query}\")");
        let done = Command::new(python)
            .args(["-c", &script])
            .current_dir(dir)
            .status();
        assert!(done.unwrap().success());
        ok(dir, "make-book -q foreign --explorer foreign.idx");
        let foreign = Explorer::open([("foreign".to_owned(), dir.join("foreign.idx"))]).unwrap();
        let answer = asked(&foreign, "e2e4,e7e5,g1f3");
        assert_eq!((answer.results.games(), reached(&answer)), (2, None));
    }
}

#[test]
fn pruned_counts_do_not_know_how_many_games_reached_what_they_lack() {
    let dir = temp();
    let dir = dir.path();
    // Six games reach the position after 2. c4, which is kept. Two games reach that after 2. Nf3, which is pruned.
    let games = [
        "1. d4 d5 2. c4 e6",
        "1. d4 d5 2. c4 e6",
        "1. d4 d5 2. c4 e6",
        "1. d4 d5 2. c4",
        "1. c4 d5 2. d4 e6",
        "1. c4 d5 2. d4 e6",
        "1. d4 d5 2. Nf3 Nf6",
        "1. Nf3 d5 2. d4 Nf6",
    ];
    let pgn = dir.join("t.pgn");
    fs::write(
        &pgn,
        games
            .map(|game| format!("[Event \"x\"]\n\n{game} 1-0\n\n"))
            .concat(),
    )
    .unwrap();
    both(dir, &pgn, "");
    ok(
        dir,
        "make-book -q all.counts --counts few.counts --min-game 4",
    );
    ok(dir, "make-book -q few.counts --explorer few");
    let open = |names: &[&str]| {
        Explorer::open(
            names
                .iter()
                .map(|name| ((*name).to_owned(), dir.join(name))),
        )
        .unwrap()
    };
    let line = |moves| Line::parse(Variant::Standard, None, moves).unwrap();
    for (names, c4, nf3, of_game) in [
        (
            &["games"][..],
            Some(6),
            Some(2),
            [Some(5), Some(5), Some(2), Some(2)],
        ),
        (&["few"], Some(6), None, [Some(5), Some(5), None, None]),
        (
            &["games", "few"],
            Some(12),
            None,
            [Some(10), Some(10), None, None],
        ),
        (
            &["few", "counts"],
            Some(12),
            None,
            [Some(10), Some(10), None, None],
        ),
    ] {
        let explorer = open(names);
        let mut query = Query::new(line("d2d4,d7d5"), View::Lichess);
        query.resulting = true;
        let moves = explorer.answer(&query).unwrap().moves;
        let reached: Vec<_> = moves
            .iter()
            .map(|mv| (&*mv.san, mv.resulting.and_then(Resulting::reached)))
            .collect();
        assert_eq!(reached, [("c4", c4), ("Nf3", nf3)], "{names:?}");
        let reached =
            explorer.reached(&line("d2d4,d7d5,g1f3,g8f6"), &Selection::default(), &|| {
                true
            });
        assert_eq!(reached.unwrap(), of_game, "{names:?}");
    }
    let moves = |index: &str| ok_json(dir, &format!("show {index} --json"));
    assert_eq!(
        (&moves("few")["min_game"], &moves("counts")["min_game"]),
        (&json!(4), &Value::Null)
    );

    #[cfg(feature = "serve")]
    {
        let served = Served::start(dir, "few games");
        let asked = |question: &str| {
            let answer = served.json(&format!("/lichess?transpositions=true&{question}"));
            answer["polybook"]["transpositions"].clone()
        };
        let known = json!([{ "uci": "c2c4", "games": 2 }]);
        assert_eq!(asked("play=d2d4,d7d5&source=few"), known);
        // The positions after all of these moves are missing from the pruned counts.
        assert_eq!(asked("play=d2d4,d7d5,c2c4&source=few"), Value::Null);
        assert_eq!(asked("play=d2d4,d7d5,c2c4&source=games"), json!([]));
        assert_eq!(served.json("/facets")["minGame"], json!(4));
        assert_eq!(served.json("/facets?source=games")["minGame"], Value::Null);
    }

    // If the sidecar is missing, the number of games is unknown.
    fs::remove_file(dir.join("all.counts/_counts.json")).unwrap();
    ok(dir, "make-book -q all.counts --explorer part");
    assert_eq!(
        open(&["part", "games"])
            .variants(&Selection::default())
            .unwrap(),
        None
    );
}

#[test]
fn other_counts_are_refused() {
    let dir = temp();
    let dir = dir.path();
    let pgn = famous(dir);
    let pgn = pgn.display();
    ok(dir, &format!("make-book -q {pgn} --counts plain.counts"));
    ok(
        dir,
        &format!("make-book -q {pgn} --counts speed.counts --by speed"),
    );
    ok(
        dir,
        &format!(
            "make-book -q {pgn} --counts crazy.counts {ALL} --variant crazyhouse --allow-empty"
        ),
    );
    // If the sidecar is missing, the variant is determined from the rows.
    ok(
        dir,
        &format!(
            "make-book -q {} --counts rows.counts {ALL} --variant auto",
            sample("variants.pgn").display()
        ),
    );
    fs::remove_file(dir.join("rows.counts/_counts.json")).unwrap();
    for (inputs, named) in [
        ("rows.counts", "standard chess"),
        (
            "plain.counts",
            "plain.counts: these counts are not divided, but an index needs counts that are divided by speed,rating,month",
        ),
        (
            "all.counts --by speed --counts fewer.counts",
            "leave --by out, or give --by speed,rating,month",
        ),
        ("speed.counts", "--by speed,rating,month"),
        ("all.counts plain.counts", "plain.counts"),
        ("crazy.counts", "standard chess"),
        (
            &format!("all.counts {pgn}"),
            "contains counts instead of games",
        ),
    ] {
        let err = fails(dir, &format!("make-book -q {inputs} --explorer new"), 1);
        assert!(err.contains(named), "{inputs}: {err}");
        assert!(!dir.join("new").exists());
    }
    for more in ["", "--counts new.counts"] {
        let line = format!("make-book -q all.counts --explorer new --min-game 5 {more}");
        let err = fails(dir, line.as_str(), 2);
        assert!(
            err.contains("--min-game does not apply to an index"),
            "{err}"
        );
        assert!(!dir.join("new").exists() && !dir.join("new.counts").exists());
    }
    let err = fails(dir, "make-book -q all.counts --bin new --min-elo 2024", 1);
    assert!(
        err.contains("counts contain no ratings of single players"),
        "{err}"
    );
    let err = fails(dir, "make-book -q all.counts --leveldb new", 1);
    assert!(
        err.contains("contains counts instead of games") && err.contains("an explorer's index"),
        "{err}"
    );
    let err = fails(
        dir,
        "make-book -q all.counts --explorer new --leveldb other --index-stats",
        1,
    );
    assert!(err.contains("contains counts instead of games"), "{err}");
}

#[test]
fn what_needs_games_is_refused() {
    let dir = temp();
    let dir = dir.path();
    famous(dir);
    for line in [
        "games counts",
        "games counts --player Morphy",
        "games counts --pgn --id 0",
        "show counts --player Morphy",
        "show counts --since 1850.01.02",
        "show counts --min-elo 2000",
    ] {
        let err = fails(dir, line, 1);
        assert_eq!(err.lines().count(), 1, "{line}: {err}");
        assert!(
            err.contains("this index contains counts instead of games")
                || err.contains("contains no game with the id 0")
                || err.contains("contains only counts"),
            "{line}: {err}"
        );
    }
    assert!(Index::open(dir.join("counts")).unwrap().games(7).is_err());
    // A tree of the played moves needs no games.
    let moves = |name: &str| ok(dir, &format!("tree {name} --max-ply 3"));
    assert_eq!(moves("counts"), moves("games"));
}

#[cfg(feature = "serve")]
#[test]
fn a_server_says_what_counts_cannot_answer() {
    let dir = temp();
    let dir = dir.path();
    famous(dir);
    ok(
        dir,
        "make-book -q all.counts --counts few.counts --min-game 5",
    );
    ok(dir, "make-book -q few.counts --explorer few");
    let served = Served::start(dir, "counts few games");
    let about = served.json("/about");
    let sources = &about["sources"];
    let games = sources.as_array().unwrap().iter();
    let games: Option<u64> = games.map(|source| source["games"].as_u64()).sum();
    assert_eq!(about["games"].as_u64(), games);
    assert_eq!(
        (&sources[0]["counts"], &sources[1]["minGame"]),
        (&json!(true), &json!(5))
    );
    assert_eq!(
        (&sources[2]["counts"], &sources[0]["games"]),
        (&Value::Null, &sources[2]["games"])
    );
    assert_eq!(sources[0]["years"], sources[2]["years"]);
    assert_eq!(sources[0]["files"], json!(["famous.pgn"]));

    let answer = |source: &str| {
        served.json(&format!(
            "/lichess?play=e2e4,e7e5&history=true&moves=40{source}"
        ))
    };
    let (counts, mut games) = (answer("&source=counts"), answer("&source=games"));
    for month in games["history"].as_array_mut().unwrap() {
        // Counts include games without a result in the draws.
        month.as_object_mut().unwrap().remove("unfinished");
    }
    for part in [
        "white",
        "draws",
        "black",
        "history",
        "opening",
        "queuePosition",
    ] {
        assert_eq!(counts[part], games[part], "{part}");
    }
    assert_eq!(
        (&counts["topGames"], &counts["recentGames"]),
        (&json!([]), &json!([]))
    );
    assert!(
        counts["moves"]
            .as_array()
            .unwrap()
            .iter()
            .all(|mv| mv["game"].is_null())
    );
    assert!(games["topGames"][0]["id"].is_string());
    assert_eq!(answer("")["topGames"], games["topGames"]);
    assert_eq!(counts["polybook"]["minGame"], Value::Null);
    assert_eq!(answer("")["polybook"]["minGame"], json!(5));

    for filter in [
        "player=tal",
        "player=tal&color=white",
        "opponent=tal",
        "event=x",
        "eco=B20",
        "result=1-0",
        "minPly=3",
        "duplicates=once",
    ] {
        for source in ["", "&source=counts"] {
            let reply = served.get(&format!("/lichess?{filter}{source}"));
            let text = reply.text();
            assert_eq!(reply.status, 400, "{filter}: {text}");
            assert!(
                text.contains("contains only counts, but games are needed for")
                    && text.lines().count() == 1,
                "{text}"
            );
        }
        assert_eq!(
            served
                .get(&format!("/lichess?{filter}&source=games"))
                .status,
            200
        );
    }
    // Products that need all games cannot be made from one of several sources.
    for route in [
        "/book.bin?",
        "/book.bin?count=true",
        "/book.pgn?count=true",
        "/repertoire.bin?side=white",
    ] {
        for source in ["", "&source=counts"] {
            let reply = served.get(&format!("{route}{source}"));
            let text = reply.text();
            assert_eq!(reply.status, 400, "{route}: {text}");
            assert!(
                text.contains("counts\" contains only counts, but games")
                    && text.lines().count() == 1,
                "{text}"
            );
        }
    }
    for (route, status) in [
        ("/book.bin?count=true&source=games", 200),
        ("/player?player=tal&color=white", 400),
        ("/games?modes=rated&duplicates=once", 200),
        ("/games?source=counts", 400),
        ("/lichess?clocks=true&source=counts", 400),
        ("/lichess?clocks=true", 200),
        ("/suggest?field=player&text=m&source=counts", 400),
        ("/suggest?field=opening&text=sicilian&source=counts", 200),
        ("/suggest?field=player&text=m", 200),
        ("/book.bin?source=counts", 400),
        ("/games", 200),
        ("/facets?source=counts", 200),
        ("/scores?by=rating&source=counts", 200),
        ("/game/00000000", 200),
        ("/masters?source=counts&since=1850&until=1900", 200),
    ] {
        let reply = served.get(route);
        assert_eq!(reply.status, status, "{route}: {}", reply.text());
    }
}

/// Counts contain games without a result as draws. Added to counts, games do the same.
#[test]
fn unfinished_games_are_draws_beside_counts() {
    let dir = temp();
    let dir = dir.path();
    let games = "1. e4 e5 1-0\n\n1. e4 e5 1/2-1/2\n\n1. e4 c5 *\n";
    fs::write(dir.join("games.pgn"), games).unwrap();
    ok(dir, "make-book -q games.pgn --explorer games.idx");
    ok(
        dir,
        &format!("make-book -q games.pgn --counts all.counts {ALL}"),
    );
    ok(dir, "make-book -q all.counts --explorer counts.idx");
    let shown = ok_json(dir, "show counts.idx games.idx --json");
    let numbers = ["games", "white", "draws", "black", "unfinished"];
    let of = |document: &Value| numbers.map(|name| document[name].clone());
    let expected = [json!(6), json!(2), json!(4), json!(0), Value::Null];
    assert_eq!(of(&shown), expected);
    assert_eq!(of(&shown["moves"][0]), expected);
    let output = run(dir, "show counts.idx games.idx");
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(!text.contains("unfinished"), "{text}");
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(
        said.contains("here they are draws in all sources"),
        "{said}"
    );
    assert!(ok(dir, "show games.idx").contains("unfinished"));
    let tree = ok(dir, "tree games.idx");
    assert!(tree.contains("*1"), "{tree}");
    #[cfg(feature = "serve")]
    {
        let served = Served::start(dir, "counts.idx games.idx");
        let scores = served.json("/scores?by=rating");
        let score = &scores["scores"][0];
        assert_eq!(
            (&score["draws"], &score["unfinished"]),
            (&json!(4), &Value::Null)
        );
        assert_eq!(served.json("/lichess")["unfinished"], Value::Null);
    }
}

#[test]
fn answers_about_games_up_to_a_half_move_state_the_limit() {
    let dir = temp();
    let dir = dir.path();
    let games = sample("famous.pgn");
    let games = games.display();
    for (counts, options) in [("short", "--max-ply 4"), ("whole", "")] {
        ok(
            dir,
            &format!("make-book -q {games} --counts {counts}.counts {ALL} {options}"),
        );
    }
    ok(
        dir,
        "make-book -q short.counts whole.counts --counts sum.counts",
    );
    for name in ["short", "whole", "sum"] {
        ok(
            dir,
            &format!("make-book -q {name}.counts --explorer {name}"),
        );
    }
    ok(
        dir,
        &format!("make-book -q {games} --explorer games --max-ply 6"),
    );
    for (name, options) in [("others", "--max-ply 5"), ("all", "")] {
        ok(
            dir,
            &format!("make-book -q {games} --explorer {name} {options}"),
        );
    }
    for (indexes, max_ply, said) in [
        (
            "games",
            json!(6),
            "these counts contain only positions up to half-move 6\n",
        ),
        ("all", Value::Null, ""),
        (
            "all others",
            json!(5),
            "some of these counts contain only positions up to half-move 5\n",
        ),
        (
            "short",
            json!(4),
            "these counts contain only positions up to half-move 4\n",
        ),
        ("whole", Value::Null, ""),
        (
            "sum",
            json!(4),
            "these counts contain only positions up to half-move 4\n",
        ),
        (
            "short whole",
            json!(4),
            "some of these counts contain only positions up to half-move 4\n",
        ),
    ] {
        let output = run(dir, &format!("show {indexes} --json"));
        assert_eq!(String::from_utf8(output.stderr).unwrap(), said, "{indexes}");
        let answer: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(answer["max_ply"], max_ply, "{indexes}");
    }
    let moves = "a3 a6 b3 b6 c3 c6 d3";
    for command in ["games", "openings"] {
        let words = [command, "games", "--moves", moves, "--json"];
        let output = run(dir, &words[..]);
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(said.contains("up to half-move 6\n"), "{command}: {said}");
        let answer: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(answer["max_ply"], 6, "{command}");
    }
    #[cfg(feature = "serve")]
    {
        let served = Served::start(dir, "short whole games");
        let max_ply = |source: &str| {
            let answer = served.json(&format!("/lichess?source={source}"));
            answer["polybook"]["maxPly"].clone()
        };
        assert_eq!(
            ["short", "whole", "games"].map(max_ply),
            [json!(4), Value::Null, json!(6)]
        );
        for path in [
            "/games?play=e2e4",
            "/openings?play=e2e4",
            "/facets?play=e2e4",
            "/scores?by=rating&play=e2e4",
            "/repertoire?play=e2e4",
        ] {
            let answer = served.json(&format!("{path}&source=games"));
            assert_eq!(answer["maxPly"], 6, "{path}");
        }
        assert_eq!(served.json("/facets?source=whole")["maxPly"], Value::Null);
        let about = served.json("/about");
        let of = |number: usize| about["sources"][number]["maxPly"].clone();
        assert_eq!([0, 1, 2].map(of), [json!(4), Value::Null, json!(6)]);
    }
}

#[test]
fn verify_names_an_index_of_counts_of_another_version_once() {
    let dir = temp();
    let dir = dir.path();
    fs::write(dir.join("games.pgn"), short_games(1, 20)).unwrap();
    ok(
        dir,
        &format!("make-book -q games.pgn --counts all.counts {ALL}"),
    );
    ok(dir, "make-book -q all.counts --explorer counts.idx");
    let index = dir.join("counts.idx");
    let mut database = rusty_leveldb::DB::open(&index, rusty_leveldb::Options::default()).unwrap();
    let description = database.get(b"xy").unwrap();
    let mut description: Value = serde_json::from_slice(&description).unwrap();
    description["version"] = json!(1);
    database
        .put(b"xy", description.to_string().as_bytes())
        .unwrap();
    database.close().unwrap();
    let err = fails(dir, "verify counts.idx", 1);
    assert_eq!(err.matches("counts.idx").count(), 1, "{err}");
    assert_eq!(err.matches("make the index again").count(), 1, "{err}");
    assert!(err.contains("another version"), "{err}");
}
