//! The explorer: every number of its answers is held against a count by python-chess over the PGN.

#[macro_use]
mod common;

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use common::{python, sample, temp};
use polybook::{
    MakeBook,
    explorer::{
        Explorer, Filters, GameResult, Line, Mode, Page, Query, RatingGroup, Sort, Speed, Variant,
        View,
    },
    pgn::{Date, Input},
    position::VariantChoice,
};
use serde_json::Value;
use shakmaty::Color;

/// An explorer of indexes made of one PGN each.
fn explorer_of(dir: &Path, games: &[PathBuf], variant: VariantChoice) -> Explorer {
    let sources: Vec<(String, PathBuf)> = games
        .iter()
        .enumerate()
        .map(|(number, pgn)| {
            let index = dir.join(format!("{number}.idx"));
            MakeBook::new([Input::file(pgn)])
                .leveldb(&index)
                .explorer(true)
                .variant(variant)
                .run()
                .unwrap();
            (number.to_string(), index)
        })
        .collect();
    Explorer::open(sources).unwrap()
}

/// What python-chess says: a question and its answer a line.
fn expected(python: &Path, games: &[PathBuf], options: &str) -> Vec<Value> {
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

/// The filters as the script names them.
fn filters(json: &Value) -> Filters {
    let texts = |name: &str| -> Option<Vec<&str>> {
        json.get(name)?
            .as_array()
            .map(|list| list.iter().filter_map(Value::as_str).collect())
    };
    let text = |name: &str| json.get(name).and_then(Value::as_str).map(str::to_owned);
    let number = |name: &str| json.get(name).and_then(Value::as_u64).map(|n| n as u32);
    let groups = json.get("ratings").and_then(Value::as_array).map(|list| {
        let floors = list.iter().filter_map(Value::as_u64);
        floors.map(|floor| RatingGroup::of(floor as u32)).collect()
    });
    Filters {
        speeds: texts("speeds").map(|list| {
            list.iter()
                .map(|name| name.parse::<Speed>().unwrap())
                .collect()
        }),
        groups,
        modes: texts("modes").map(|list| {
            list.iter()
                .map(|name| name.parse::<Mode>().unwrap())
                .collect()
        }),
        since: date(&json["since"]),
        until: date(&json["until"]),
        min_elo: number("minElo"),
        max_elo: number("maxElo"),
        player: text("player"),
        color: text("color").map(|name| Color::from_white(name == "white")),
        opponent: text("opponent"),
        results: texts("results")
            .unwrap_or_default()
            .iter()
            .map(|token| GameResult::from_token(token.as_bytes()).unwrap())
            .collect(),
        eco: texts("eco").map(|range| range.join("-").parse().unwrap()),
        event: text("event"),
        min_ply: number("minPly").unwrap_or(0),
        source: None,
    }
}

/// Asks the explorer what the script was asked, and compares all that the script answered.
fn check(explorer: &Explorer, expected: &Value) {
    let variant: Variant = expected["variant"].as_str().unwrap().parse().unwrap();
    let fen = expected["fen"].as_str().unwrap();
    let line = Line::parse(variant, Some(fen), "").unwrap();
    let mut query = Query::new(line, View::Lichess);
    query.filters = filters(&expected["filters"]);
    query.moves = None;
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
    };
    let games = explorer.games(&query, &page).unwrap();
    assert_eq!(Value::from(games.total), wanted["reached"], "{expected}");
    let ids: Vec<Value> = games
        .games
        .iter()
        .map(|played| Value::from(played.game.id.as_str()))
        .collect();
    assert_eq!(Value::from(ids), wanted["byId"], "{expected}");
}

/// The games of a PGN, cut into so many files that are about as large.
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
    let Some(python) = python(&["chess"]) else {
        return;
    };
    let dir = temp();
    let explorer = explorer_of(dir.path(), games, variant);
    let questions = expected(&python, games, options);
    assert!(!questions.is_empty());
    for question in &questions {
        check(&explorer, question);
    }
}

#[test]
fn every_number_is_that_of_python_chess() {
    let dir = temp();
    let games = [sample("famous.pgn"), sample("selfplay.pgn")].map(|path| fs::read(path).unwrap());
    let both = dir.path().join("both.pgn");
    fs::write(&both, games.concat()).unwrap();
    let standard = VariantChoice::default();
    all_agree(
        std::slice::from_ref(&both),
        standard,
        "--positions 150 --filters 12",
    );
    all_agree(
        std::slice::from_ref(&both),
        standard,
        "--positions 40 --all",
    );
    all_agree(
        &cut(&both, dir.path(), 3),
        standard,
        "--positions 60 --filters 6",
    );
}

#[test]
fn every_number_is_that_of_python_chess_in_variants() {
    let games = [sample("variants.pgn")];
    all_agree(&games, VariantChoice::Auto, "--positions 36 --all");
}

#[test]
fn the_corpus_of_masters_agrees() {
    let Some(corpus) = std::env::var_os("POLYBOOK_CORPUS").map(PathBuf::from) else {
        return;
    };
    let Ok(options) = std::env::var("POLYBOOK_EXPLORER_OPTIONS") else {
        return;
    };
    let masters = [corpus.join("masters.pgn")];
    all_agree(&masters, VariantChoice::default(), &options);
}
