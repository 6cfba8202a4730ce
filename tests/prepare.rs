//! Preparations for an opponent: `polybook prepare` and `/prepare`.

use std::{
    fs,
    path::{Path, PathBuf},
};

use serde_json::{Value, json};

use crate::common::{fails, ok, ok_json, python, run, run_python, sample, served::Served, temp};

/// Writes `games.pgn`, the games of an engine against itself with the names of five players and dates of ten years, and
/// makes an index of it for the explorer, `idx`. Ann loses all games with Black that begin with 1. e4.
pub fn games_of_five(dir: &Path) -> PathBuf {
    let text = fs::read_to_string(sample("selfplay.pgn")).unwrap();
    let names = ["Ann", "Anna B.", "Carl", "Dora", "Carlo"];
    let mut games = String::new();
    for (number, game) in text.split("[Event ").skip(1).enumerate() {
        let white = names[number % 5];
        let black = names[(number / 5 + number + 1) % 5];
        let mut lines: Vec<String> = game.lines().map(str::to_owned).collect();
        for line in &mut lines {
            if line.starts_with("[White ") {
                *line = format!("[White \"{white}\"]\n[WhiteElo \"{}\"]", 1500 + number);
            } else if line.starts_with("[Black ") {
                *line = format!("[Black \"{black}\"]");
            } else if line.starts_with("[Date ") {
                *line = format!("[Date \"{}.01.??\"]", 2011 + number % 10);
            } else if black == "Ann" && game.contains("\n1. e4 ") {
                for result in ["0-1", "1/2-1/2"] {
                    *line = line.replace(result, "1-0");
                }
            }
        }
        games += &format!("[Event {}\n\n", lines.join("\n"));
    }
    let path = dir.join("games.pgn");
    fs::write(&path, games).unwrap();
    ok(dir, "make-book -q --explorer idx games.pgn");
    path
}

/// Returns the arguments of `polybook prepare --json` for a case of `tests/python/prepare.py`.
fn arguments(case: &Value) -> Vec<String> {
    let mut args: Vec<String> = "prepare idx --json --exact"
        .split(' ')
        .map(str::to_owned)
        .collect();
    for option in ["player", "opponent"] {
        for name in case[option].as_array().unwrap() {
            args.extend([format!("--{option}"), name.as_str().unwrap().to_owned()]);
        }
    }
    for option in ["color", "moves", "since", "lines", "half_life"] {
        let name = format!("--{}", option.replace('_', "-"));
        match &case[option] {
            Value::Null => {}
            Value::String(text) => args.extend([name, text.clone()]),
            other => args.extend([name, other.to_string()]),
        }
    }
    if case["repertoire"].is_array() {
        args.extend(["--repertoire".to_owned(), "mine.pgn".to_owned()]);
    }
    args
}

#[test]
fn preparations_are_those_that_python_chess_finds() {
    let Some(python) = python(&["chess"]) else {
        return;
    };
    let dir = temp();
    let games = games_of_five(dir.path());
    let repertoire = ["e4 e5 Nf3 Nc6", "d4 d5 c4 e6", "d4 Nf6 c4 e6", "c4 e5"];
    let text = repertoire.map(|line| format!("[Result \"*\"]\n\n{line} *\n\n"));
    fs::write(dir.path().join("mine.pgn"), text.concat()).unwrap();
    let (ann, carl) = (json!(["Ann", "Anna B."]), json!(["Carl", "Carlo"]));
    let mut cases = vec![
        json!({ "player": ann, "opponent": carl, "color": "white", "lines": 7 }),
        json!({ "player": ann, "opponent": carl, "color": "black", "lines": 7 }),
        json!({ "player": ["Dora"], "opponent": ["Ann"], "color": "black", "lines": 20 }),
        json!({ "player": ann, "opponent": carl, "color": "black", "lines": 12, "since": 2014 }),
        json!({ "player": ann, "opponent": carl, "color": "black", "lines": 9, "repertoire": repertoire }),
        json!({ "player": ["Carl"], "opponent": ["Dora"], "color": "black", "lines": 1, "since": 2020 }),
    ];
    for half_life in [0.5, 2.0, 30.0] {
        let case = json!({ "player": ann, "opponent": carl, "color": "black", "lines": 12, "half_life": half_life });
        cases.push(case);
    }
    for lines in 1..=4 {
        cases.push(json!({ "player": ann, "opponent": carl, "color": "white", "lines": lines }));
    }
    for color in ["white", "black"] {
        for moves in ["e4", "d4 d5", "d4 Nf6 c4"] {
            let case = json!({ "player": carl, "opponent": ann, "color": color, "lines": 5, "moves": moves });
            cases.push(case);
        }
    }
    for case in &mut cases {
        case["prepared"] = ok_json(dir.path(), &arguments(case));
    }
    let path = dir.path().join("cases.json");
    fs::write(&path, Value::from(cases).to_string()).unwrap();
    run_python(
        &python,
        "prepare.py",
        &[&sample("opening_names.txt"), &path, &games],
    );
}

/// Games of `Me`, alias `My Name`, and of `Them`, who met twice.
const GAMES: &str = r#"[White "Them"]
[Black "Me"]
[Date "2020.05.??"]
[Result "1-0"]
[WhiteElo "2100"]

1. e4 e5 2. Nf3 1-0

[White "Them"]
[Black "My Name"]
[Date "2021.??.??"]
[Result "1/2-1/2"]
[WhiteElo "2200"]

1. e4 c5 1/2-1/2

[White "Them"]
[Black "X"]
[Date "2018.01.01"]
[Result "0-1"]

1. d4 d5 0-1

[White "Me"]
[Black "Them"]
[Result "1-0"]

1. e4 e5 1-0
"#;

/// The moves of a tree of openings. At each half-move, one of the moves is played with its weight; those of the first
/// answer depend on the first move.
const TREE: [&[(&str, u32)]; 5] = [
    &[("e4", 4), ("d4", 3), ("c4", 2), ("Nf3", 1)],
    &[("c5", 5), ("e6", 3), ("Nf6", 2)],
    &[("Nc3", 3), ("g3", 2), ("a3", 1)],
    &[("a6", 3), ("g6", 2), ("h6", 1)],
    &[("h3", 2), ("b3", 1)],
];

/// Plays games of a simulated player with Black, of the strength 2000. `opponent` returns the rating of the opponent of a
/// game, by its first move, and `strength` the player's strength in it. Without a rating, the result does not depend on it.
fn simulated_games(
    random: &mut fastrand::Rng,
    player: &str,
    games: usize,
    opponent: fn(&str) -> Option<u32>,
    strength: fn(&str) -> f64,
) -> String {
    let mut text = String::new();
    for _ in 0..games {
        let moves = TREE.map(|moves| {
            let sum = moves.iter().map(|(_, weight)| weight).sum();
            let mut at = random.u32(0..sum);
            let chosen = moves.iter().find(|(_, weight)| {
                let is_chosen = at < *weight;
                at = at.wrapping_sub(*weight);
                is_chosen
            });
            chosen.unwrap().0
        });
        let rating = opponent(moves[0]).map(|mean| mean + random.u32(0..100));
        let difference = rating.map_or(0.0, f64::from) - strength(moves[0]);
        let expected = match rating {
            Some(_) => 1.0 / (1.0 + 10_f64.powf(difference / 400.0)),
            None => 0.5,
        };
        let draws = 0.3_f64.min(2.0 * expected.min(1.0 - expected));
        let at = random.f64();
        let result = match () {
            () if at < draws => "1/2-1/2",
            () if at < expected + draws / 2.0 => "0-1",
            () => "1-0",
        };
        let elo = rating.map_or(String::new(), |rating| format!("[WhiteElo \"{rating}\"]\n"));
        let [a, b, c, d, e] = moves;
        text += &format!(
            "[White \"X\"]\n[Black \"{player}\"]\n{elo}[Result \"{result}\"]\n\n1. {a} {b} 2. {c} {d} 3. {e} {result}\n\n"
        );
    }
    text
}

/// The number of simulated players of a kind.
const PLAYERS: usize = 50;

#[test]
fn short_lists_begin_with_the_lines_that_cost_most() {
    let dir = temp();
    let mut random = fastrand::Rng::with_seed(3);
    let opponent: fn(&str) -> Option<u32> = |_| Some(1950);
    let strength = |first: &str| {
        if ["d4", "c4"].contains(&first) {
            1600.0
        } else {
            2000.0
        }
    };
    let mine = simulated_games(&mut random, "Ann", 300, opponent, strength);
    let theirs = simulated_games(&mut random, "Y", 100, opponent, strength);
    let games = mine + &theirs.replace("\"X\"", "\"Carl\"");
    fs::write(dir.path().join("games.pgn"), games).unwrap();
    ok(dir.path(), "make-book -q --explorer idx games.pgn");
    let command = "prepare idx --player ann --opponent carl --color black --duplicates all --lines";
    let lines = |most: usize| {
        let document = ok_json(dir.path(), &format!("{command} {most} --json"));
        document["lines"].as_array().unwrap().clone()
    };
    let (all, one, two) = (lines(20), lines(1), lines(2));
    assert!(all.iter().any(|line| line["loss"].is_number()), "{all:?}");
    assert_eq!(one, all[..1]);
    assert_eq!((two.len(), &two[0]), (2, &all[0]));
    let text = ok(dir.path(), &format!("{command} 20"));
    let costly = all.iter().filter(|line| line["loss"].is_number()).count();
    let said = format!("\nlines that cost points: {costly} of ");
    assert!(text.contains(&said), "{text}");
    assert!(
        text.contains(" with at least 10 games; chance alone would list about 0."),
        "{text}"
    );
}

/// A player without weaknesses gets as many lines that cost points as chance would list, even if the opponents are
/// stronger in some lines.
#[test]
fn chance_lists_as_many_lines_as_the_preparation_says() {
    let dir = temp();
    let mut random = fastrand::Rng::with_seed(67);
    let opponents: [fn(&str) -> Option<u32>; 2] = [
        |first| Some(if first == "e4" { 1800 } else { 2100 }),
        |_| None,
    ];
    let mut games = String::new();
    for player in 0..PLAYERS {
        for (kind, opponent) in ["rated", "unrated"].into_iter().zip(opponents) {
            let name = format!("{kind}{player}.");
            games += &simulated_games(&mut random, &name, 250, opponent, |_| 2000.0);
        }
        let strength = |first: &str| if first == "d4" { 1850.0 } else { 2000.0 };
        let name = format!("weak{player}.");
        games += &simulated_games(&mut random, &name, 250, opponents[0], strength);
    }
    games += &simulated_games(&mut random, "Y", 400, opponents[0], |_| 2000.0)
        .replace("\"X\"", "\"Them\"");
    fs::write(dir.path().join("games.pgn"), games).unwrap();
    let served = Served::start(dir.path(), "-q games.pgn --no-cache");
    let of_kind = |kind: &str| {
        let (mut listed, mut by_chance, mut of_d4) = (0, 0.0, 0);
        for player in 0..PLAYERS {
            let path = format!(
                "/prepare?player=Them&color=white&me={kind}{player}.&lines=20&duplicates=all"
            );
            let prepared = served.json(&path);
            let weak = &prepared["weakLines"];
            assert!(weak["judged"].as_u64().unwrap() >= 8, "{weak}");
            listed += weak["listed"].as_u64().unwrap();
            by_chance += weak["byChance"].as_f64().unwrap();
            let lines = prepared["lines"].as_array().unwrap().iter();
            let costly = lines.filter(|line| line["loss"].is_number());
            of_d4 += u64::from(costly.clone().any(|line| line["play"][0] == "d2d4"));
            for line in costly {
                let high = line["scoreRange"][1].as_f64().unwrap();
                assert!(high < line["expectedScore"].as_f64().unwrap(), "{line}");
            }
        }
        (listed as f64, by_chance, of_d4)
    };
    for kind in ["rated", "unrated"] {
        let (listed, by_chance, _) = of_kind(kind);
        assert!(by_chance > 5.0, "{kind}: {listed} {by_chance}");
        // Three standard deviations of a number of rare events.
        let margin = 3.0 * f64::sqrt(by_chance);
        assert!(
            (listed - by_chance).abs() < margin,
            "{kind}: {listed} {by_chance}"
        );
    }
    let (listed, by_chance, of_d4) = of_kind("weak");
    assert!(
        listed > 2.0 * by_chance && of_d4 > 40,
        "{listed} {by_chance} {of_d4}"
    );
}

#[test]
fn unfinished_games_do_not_make_a_line_cost_points() {
    let dir = temp();
    let game = |white: &str, moves: &str, result: &str| {
        format!(
            "[White \"{white}\"]\n[Black \"Me\"]\n[Result \"{result}\"]\n\n{moves} {result}\n\n"
        )
    };
    let games = game("Them", "1. e4 e5", "1-0").repeat(9)
        + &game("Them", "1. e4 e5", "*").repeat(20)
        + &game("X", "1. d4 d5", "0-1").repeat(40);
    let prepared = |more: &str| {
        fs::write(dir.path().join("games.pgn"), format!("{games}{more}")).unwrap();
        let command = "prepare games.pgn --json -q --player Me --opponent Them --color black --duplicates all";
        ok_json(dir.path(), command)
    };
    let nine = prepared("");
    assert_eq!(nine["lines"], json!([]), "{nine}");
    let ten = prepared(&game("Them", "1. e4 e5", "1-0"));
    let line = &ten["lines"][0];
    assert_eq!(
        (&line["play"], &line["games"]),
        (&json!(["e2e4"]), &json!(30)),
        "{ten}"
    );
    assert_eq!(
        (&line["score"], &line["expected_score"]),
        (&json!(0.0), &json!(100.0))
    );
    assert!(line["loss"].as_f64().unwrap() > 0.005, "{line}");
    assert_eq!(ten["weak_lines"]["listed"], 1);
}

/// The weight of a game halves with each half-life. A game without a year counts as much as the first game with one.
#[test]
fn recent_games_count_more_with_a_half_life() {
    let dir = temp();
    let dir = dir.path();
    let game = |date: &str, mv: &str| {
        format!(
            "[White \"Them\"]\n[Black \"Y\"]\n[Date \"{date}\"]\n[Result \"1-0\"]\n\n1. {mv} 1-0\n\n"
        )
    };
    let games = game("2010.05.07", "e4").repeat(8)
        + &game("2020.05.07", "d4").repeat(2)
        + &game("????.??.??", "c4").repeat(4)
        + &game("2015.05.07", "e4")
            .replace("\"Y\"", "\"Me\"")
            .replace("\"Them\"", "\"X\"");
    fs::write(dir.join("games.pgn"), games).unwrap();
    let command = "prepare games.pgn -q --player Me --opponent Them --color black --duplicates all";
    let chances = |document: &Value| {
        let lines = document["lines"].as_array().unwrap().iter();
        let mut chances: Vec<(String, f64)> = lines
            .map(|line| {
                let play = line["san"][0].as_str().unwrap();
                (play.to_owned(), line["chance"].as_f64().unwrap())
            })
            .collect();
        chances.sort_by(|a, b| a.0.cmp(&b.0));
        chances
    };
    let all = ok_json(dir, &format!("{command} --json"));
    assert!(all.get("half_life").is_none());
    let share = |move_games: f64, sum: f64| (1e6 * move_games / sum).round() / 1e6;
    // At most two lines without an answer are listed.
    let named = |name: &str, chance: f64| (name.to_owned(), chance);
    assert_eq!(
        chances(&all),
        [named("c4", share(4.0, 14.0)), named("e4", share(8.0, 14.0))]
    );
    let weighted = ok_json(dir, &format!("{command} --json --half-life 2"));
    // The games of 2010 and those without a year count 1/32.
    let sum = 2.0 + 12.0 / 32.0;
    assert_eq!(
        chances(&weighted),
        [
            named("d4", share(2.0, sum)),
            named("e4", share(8.0 / 32.0, sum))
        ]
    );
    assert_eq!(weighted["half_life"], 2.0);
    let text = ok(dir, &format!("{command} --half-life 2.5"));
    let title = "look at these first (\"1 in\" counts games with a half-life of 2.5 years)\n";
    assert!(text.contains(title), "{text}");
    // The tree of --out has the same probabilities, and its file says so.
    let tree = |options: &str| {
        let out = format!("{command} --out tonight.pgn --force {options}");
        ok(dir, &out);
        let text = fs::read_to_string(dir.join("tonight.pgn")).unwrap();
        text.replace('\n', " ")
    };
    let (all, recent) = (tree(""), tree("--half-life 2"));
    let e4 = "1. e4 {B00 King's Pawn Game, 8 games, 100.0%, 1 in";
    assert!(all.contains(&format!("{e4} 1.8,")), "{all}");
    assert!(recent.contains(&format!("{e4} 9.5,")), "{recent}");
    for which in ["", ", all lines"] {
        let event = format!("[Event \"Preparation for Them{which}");
        assert!(all.contains(&format!("{event}\"]")), "{all}");
        let weighted = format!("{event}, 1 in N with a half-life of 2 years\"]");
        assert!(recent.contains(&weighted), "{recent}");
    }
    for years in ["0", "2y", "-1", "nan"] {
        let error = fails(dir, &format!("{command} --half-life={years}"), 2);
        assert!(
            error.contains("a number of years such as 2 or 0.5, at least 0.1"),
            "{error}"
        );
    }
    let served = Served::start(dir, "-q games.pgn --no-cache");
    let asked = "/prepare?player=Them&color=white&me=Me&duplicates=all&lines=7";
    let answer = served.json(&format!("{asked}&halfLife=2"));
    assert_eq!(chances(&answer), chances(&weighted));
    assert_eq!(answer["halfLife"], 2.0);
    let reply = served.get(&format!("{asked}&halfLife=0"));
    assert_eq!(reply.status, 400);
    assert!(reply.text().contains("halfLife"), "{}", reply.text());
}

#[test]
fn preparations_over_http_are_those_of_the_command() {
    let dir = temp();
    fs::write(dir.path().join("games.pgn"), GAMES).unwrap();
    fs::write(dir.path().join("mine.pgn"), "1. e4 c6 *\n\n1. d4 d5 *\n").unwrap();
    ok(dir.path(), "make-book -q --explorer idx games.pgn");
    let command = "prepare idx --json --exact --opponent them --player me --color black --lines 3";
    let alias = [
        &command.split(' ').collect::<Vec<_>>()[..],
        &["--player", "my name"],
    ]
    .concat();
    let alone = ok_json(dir.path(), command);
    let both = ok_json(dir.path(), &alias[..]);
    assert_eq!(
        both["theirs"],
        json!({ "games": 3, "white": 1, "draws": 1, "black": 1, "rating": 2150, "last_played": "2021" })
    );
    assert_eq!(
        (&alone["yours"]["games"], &both["yours"]["games"]),
        (&json!(1), &json!(2))
    );
    assert_eq!(both["met"], both["yours"]);
    assert_eq!(both["recent_since"], 2019);
    let e4 = &both["moves"][0];
    assert_eq!(
        (&e4["san"], &e4["theirs"]["games"], &e4["theirs"]["recent"]),
        (&json!("e4"), &json!(2), &json!(2))
    );
    // Two games are too few for an answer.
    assert_eq!(
        (&e4["yours"]["games"], &e4["answer"]),
        (&json!(2), &Value::Null)
    );
    let lines: Vec<&Value> = both["lines"].as_array().unwrap().iter().collect();
    // The player has played moves after 1. e4, though too few for a usual answer. Only one game of the opponent began
    // with the other first move.
    let first = |document: &Value| {
        let line = &document["lines"][0];
        (
            line["play"].clone(),
            line["gap"].clone(),
            line["answer"].clone(),
        )
    };
    assert_eq!(lines.len(), 1, "{both}");
    assert_eq!(first(&both), (json!(["e2e4"]), json!(false), Value::Null));
    let rare = [&alias[..], &["--min-game", "1"]].concat();
    let rare = ok_json(dir.path(), &rare[..]);
    assert_eq!(rare["lines"].as_array().unwrap().len(), 2, "{rare}");
    let of_repertoire = [&alias[..], &["--repertoire", "mine.pgn"]].concat();
    let answered = ok_json(dir.path(), &of_repertoire[..]);
    assert_eq!(
        answered["moves"][0]["answer"],
        json!({ "uci": "c7c6", "san": "c6", "games": 0, "source": "repertoire" })
    );
    assert_eq!(answered["lines"], json!([]));

    let served = Served::start(dir.path(), "-q idx --repertoire mine.pgn:black");
    let asked = "/prepare?player=Them&color=white&me=me&me=My+Name";
    // Only the command lists the names that the filters match.
    let shared = |document: &Value| {
        let mut document = document.as_object().unwrap().clone();
        document.retain(|name, _| !name.starts_with("matched_"));
        in_camel_case(&Value::Object(document))
    };
    assert_eq!(served.json(&format!("{asked}&lines=3")), shared(&both));
    let answer = served.json(&format!("{asked}&lines=3&repertoire=mine"));
    assert_eq!(answer, shared(&answered));
    let edited = served.json(&format!(
        "{asked}&repertoire=mine&edits=e2e4,c7c6,d2d4,d7d5&play=e2e4,c7c6,d2d4"
    ));
    assert_eq!(edited["moves"][0]["answer"]["source"], "repertoire");
    assert_eq!(edited.get("lines"), None);
    for (query, part) in [
        ("player=Them&color=white", "the parameter me is missing"),
        (
            "player=Them&me=Me",
            "the parameter color must be white or black",
        ),
        (
            "player=Them&me=Me&color=both",
            "the parameter color must be white or black",
        ),
        ("color=white&me=Me", "the parameter player is missing"),
        (
            "player=Them&color=white&me=Me&me=",
            "the parameter me is empty",
        ),
        (
            "player=Them&color=white&me=Me&result=win",
            "unknown parameter result: this address accepts",
        ),
        (
            "player=Me&color=white&opponent=Them",
            "unknown parameter opponent: the opponent is player, and you are me; this address accepts",
        ),
        (
            "player=Them&color=white&me=Me&edits=e2e4",
            "the parameter edits adds lines",
        ),
        (
            "player=Them&color=white&me=Me&repertoire=x",
            "no repertoire for black is called",
        ),
        (
            "player=Them&color=black&me=Me&repertoire=mine",
            "this server has no repertoire for white",
        ),
    ] {
        let reply = served.get(&format!("/prepare?{query}"));
        assert_eq!(reply.status, 400, "{query}");
        assert!(reply.text().contains(part), "{query}: {}", reply.text());
    }
}

/// Returns a document with the names of fields in camel case.
fn in_camel_case(document: &Value) -> Value {
    match document {
        Value::Array(all) => all.iter().map(in_camel_case).collect(),
        Value::Object(fields) => {
            let fields = fields.iter().map(|(name, value)| {
                let mut words = name.split('_');
                let mut camel = words.next().unwrap_or_default().to_owned();
                for word in words {
                    camel += &word[..1].to_uppercase();
                    camel += &word[1..];
                }
                (camel, in_camel_case(value))
            });
            Value::Object(fields.collect())
        }
        other => other.clone(),
    }
}

#[test]
fn lines_to_look_at_are_written_as_games() {
    let dir = temp();
    fs::write(dir.path().join("games.pgn"), GAMES).unwrap();
    ok(dir.path(), "make-book -q --explorer idx games.pgn");
    let command =
        "prepare idx -q --exact --opponent them --player me --color black --out tonight.pgn";
    let text = ok(dir.path(), command);
    assert!(text.contains("\nlook at these first\n"), "{text}");
    assert!(
        text.contains(
            "    1.5            2           1    0.0%    0-60%         -  1. e4  (King's Pawn Game, no usual answer)\n"
        ),
        "{text}"
    );
    // The moves that the player has tried in too few games are no gap, unless a repertoire lacks an answer.
    assert!(text.contains("  (no usual answer: "), "{text}");
    fs::write(dir.path().join("mine.pgn"), "1. d4 d5 *\n").unwrap();
    let with_repertoire = format!("{command} --force --repertoire mine.pgn");
    let text_with = ok(dir.path(), &*with_repertoire);
    assert!(!text_with.contains("usual"), "{text_with}");
    assert!(
        text_with.contains("King's Pawn Game, gap)\n"),
        "{text_with}"
    );
    // A move after which all games of the player end is a gap in the table and in the lines.
    let ended = "[White \"them\"]\n[Black \"me\"]\n[Result \"1-0\"]\n\n1. d4 1-0\n\n".repeat(2);
    fs::write(dir.path().join("ended.pgn"), ended).unwrap();
    ok(dir.path(), "make-book -q --explorer ended ended.pgn");
    let ended = ok(
        dir.path(),
        "prepare ended -q --opponent them --player me --color black --duplicates all",
    );
    assert!(!ended.contains("no usual answer"), "{ended}");
    assert!(ended.contains(", gap)\n"), "{ended}");
    let own = ok(
        dir.path(),
        "prepare idx --exact --opponent them --player me --color white",
    );
    assert!(
        own.contains("  your score  their games  their score  "),
        "{own}"
    );
    for (options, problem) in [
        (
            "--opponent them --color black",
            "who are you? give your name with --player",
        ),
        (
            "--player me --color black",
            "who is the opponent? give the opponent's name with --opponent",
        ),
    ] {
        let error = fails(dir.path(), &format!("prepare idx {options}"), 2);
        assert!(error.contains(problem), "{error}");
    }
    let help = ok(dir.path(), "prepare --help");
    assert!(!help.contains("--result"), "{help}");
    ok(dir.path(), &*format!("{command} --force"));
    let tonight = dir.path().join("tonight.pgn");
    let games = fs::read_to_string(&tonight).unwrap();
    assert!(
        games.contains("[Event \"Preparation for them\"]"),
        "{games}"
    );
    assert!(
        games.contains(
            "1. e4 {1 in 1.5, 2 games of theirs, 1 game of yours, 0.0%, no usual answer} *"
        ),
        "{games}"
    );
    assert!(
        games.contains("\n[White \"them\"]\n[Black \"me\"]\n"),
        "{games}"
    );
    ok(dir.path(), "verify tonight.pgn");
    // The server answers with the same games.
    let served = Served::start(dir.path(), "-q idx");
    let pgn = "Accept: application/x-chess-pgn\r\n";
    for parameters in ["", "&lines=7"] {
        let path = format!("/prepare?player=them&color=white&me=me{parameters}");
        let reply = served.ask("GET", &path, pgn);
        assert_eq!(
            reply.header("content-type"),
            Some("application/x-chess-pgn")
        );
        assert_eq!(reply.text(), games, "{path}");
    }
    for (path, problem) in [
        ("/prepare?player=thim&color=white&me=me", "thim"),
        (
            "/prepare?player=them&color=white&me=me&lines=0",
            "there are no lines",
        ),
    ] {
        let reply = served.ask("GET", path, pgn);
        assert_eq!(reply.status, 400, "{path}");
        assert!(reply.text().contains(problem), "{}", reply.text());
    }
    fs::write(&tonight, games.replace("1. e4", "1. d4")).unwrap();
    let error = fails(dir.path(), command, 1);
    assert!(
        error.contains("tonight.pgn") && error.contains("--force"),
        "{error}"
    );
    ok(dir.path(), &format!("{command} --force"));
    assert_eq!(fs::read_to_string(&tonight).unwrap(), games);
    // The command prints the tables even if there are no lines to write.
    let empty = format!("{command} --force --since 2050 --require-date");
    for (option, part) in [
        ("", "no moves in this position\n"),
        (" --json", "\"moves\":[]"),
    ] {
        let output = run(dir.path(), &format!("{empty}{option}"));
        let printed = String::from_utf8_lossy(&output.stdout);
        assert!(printed.contains(part), "{printed}");
        let error = fails(dir.path(), &format!("{empty}{option}"), 1);
        assert!(error.contains("the output would be empty"), "{error}");
    }
    assert_eq!(fs::read_to_string(&tonight).unwrap(), games);
    for (command, status, part) in [
        ("prepare idx --opponent them --player me", 2, "--color"),
        ("prepare idx --player me --color black", 2, "--opponent"),
        (
            "prepare idx --exact --opponent thim --player me --color black",
            1,
            "did you mean \"Them\"?",
        ),
        (
            "prepare idx --opponent them --player me --color black --lines 0 --out x.pgn",
            2,
            "--lines 0",
        ),
        (
            "prepare idx --opponent them --player me --color black --out games.idx.gz",
            1,
            "without compression",
        ),
        (
            "prepare idx --opponent them --player me --color black --out x.bin",
            1,
            "x.bin: the output is PGN, not a book: choose a name that ends in .pgn",
        ),
    ] {
        let error = fails(dir.path(), command, status);
        assert!(error.contains(part), "{command}: {error}");
    }
    assert!(!dir.path().join("x.bin").exists());
}

/// A line that only one game of the opponent reached comes after lines with several games, even if it is likelier. The
/// games of `--out` begin with the moves to the requested position.
#[test]
fn lines_of_a_single_game_are_listed_on_demand() {
    let dir = temp();
    let dir = dir.path();
    let game = |white: &str, black: &str, moves: &str| {
        format!("[White \"{white}\"]\n[Black \"{black}\"]\n[Result \"1-0\"]\n\n{moves} 1-0\n\n")
    };
    let mine = game("X", "Me", "1. e4 c5 2. b3").repeat(5);
    let theirs = game("Them", "Y", "1. e4 c5 2. Nf3") + &game("Them", "Y", "1. e4 e5").repeat(3);
    let twice = game("Them", "Y", "1. d4 d5").repeat(2);
    fs::write(dir.join("games.pgn"), mine + &theirs + &twice).unwrap();
    ok(dir, "make-book -q --explorer idx games.pgn");
    let command = "prepare idx -q --opponent them --player me --color black --duplicates all";
    let lines = |options: &str| -> Vec<String> {
        let document = ok_json(dir, &format!("{command} --json {options}"));
        let lines = document["lines"].as_array().unwrap().iter();
        let text = |line: &Value| {
            let chance = line["chance"].as_f64().unwrap();
            format!("{} {chance:.2} {}", line["san"], line["theirs"]["games"])
        };
        lines.map(text).collect()
    };
    assert_eq!(lines(""), [r#"["d4"] 0.33 2"#]);
    assert_eq!(
        lines("--min-game 1"),
        [r#"["e4","c5","Nf3"] 0.67 1"#, r#"["d4"] 0.33 2"#]
    );
    assert!(lines("--min-game 3").is_empty());
    for moves in ["--moves=1.e4 c5", "1. e4 c5", "e2e4 c7c5"] {
        let mut words: Vec<&str> = command.split(' ').collect();
        words.extend(["--min-game", "1", "--force", "--out", "lines.pgn", moves]);
        ok(dir, &words[..]);
        let text = fs::read_to_string(dir.join("lines.pgn")).unwrap();
        assert!(
            text.contains("\n\n1. e4 c5 2. Nf3 {1 in 1.0, 1 game of theirs"),
            "{text}"
        );
        assert!(!text.contains("FEN"), "{text}");
    }
}

#[test]
fn games_without_a_result_are_named_beside_the_scores_that_leave_them_out() {
    let dir = temp();
    let dir = dir.path();
    let game = |year: u16, moves: &str, result: &str| {
        format!(
            "[White \"A\"]\n[Black \"B\"]\n[Date \"{year}.??.??\"]\n[Result \"{result}\"]\n\n{moves} {result}\n\n"
        )
    };
    let games = [
        game(2020, "1. e4 e5", "1-0"),
        game(2021, "1. e4 c5", "*"),
        game(2022, "1. e4 e6", "*"),
    ];
    fs::write(dir.join("games.pgn"), games.concat()).unwrap();
    fs::write(dir.join("unfinished.pgn"), games[1..].concat()).unwrap();
    let command = "--player B --opponent A --color black --exact";
    let text = ok(dir, &format!("prepare games.pgn {command} --out lines.pgn"));
    for part in [
        "A as white        100.0% in 1 game, 2 more without a result, the last 2022\n",
        "you as black      0.0% in 1 game, 2 more without a result, the last 2022\n",
        "your games   score  unfinished  answer",
        "         3    0.0%           2  (no usual answer: ",
        "your games   score    range  expected  unfinished  line\n",
        "         3    0.0%    0-60%         -           2  1. e4  (",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let lines = fs::read_to_string(dir.join("lines.pgn")).unwrap();
    assert!(
        lines.contains("3 games of yours (2 without result), 0.0%"),
        "{lines}"
    );
    let own = ok(
        dir,
        "prepare games.pgn --player A --opponent B --color white --exact",
    );
    assert!(
        own.contains("your score  unfinished  their games  their score  unfinished  answer"),
        "{own}"
    );
    let none = ok(dir, &format!("prepare unfinished.pgn {command}"));
    assert!(
        none.contains("A as white        2 games without a result, the last 2022\n"),
        "{none}"
    );
    assert!(!none.contains("unfinished"), "{none}");
}

/// The index contains the games that reached its last position, but not their next moves.
#[test]
fn a_preparation_at_the_end_of_an_index_says_that_moves_are_not_indexed() {
    let dir = temp();
    let dir = dir.path();
    let moves = "1. e4 e5 2. Nf3";
    let game = format!("[White \"A\"]\n[Black \"B\"]\n[Result \"1-0\"]\n\n{moves} 1-0\n");
    fs::write(dir.join("games.pgn"), game).unwrap();
    ok(dir, "make-book -q games.pgn --explorer idx --max-ply 2");
    let command = |moves: &'static str| {
        let words = "prepare idx --player B --opponent A --color black --moves";
        let mut words: Vec<&str> = words.split(' ').collect();
        words.push(moves);
        words
    };
    let (at, after) = (command("1. e4 e5"), command("1. e4 e5 2. Nf3"));
    for words in [&at, &after] {
        let text = ok(dir, &words[..]);
        let end = "the next moves are not indexed: the index ends at half-move 2\n";
        assert!(text.contains(end), "{text}");
        let json = [&words[..], &["--json"]].concat();
        assert_eq!(ok_json(dir, &json[..])["max_ply"], 2);
    }
    assert!(!ok(dir, &command("1. e4")[..]).contains("the next moves"));
    let served = Served::start(dir, "-q idx");
    let asked = "/prepare?player=A&color=white&me=B";
    let document = served.json(&format!("{asked}&play=e2e4,e7e5"));
    assert_eq!(
        (&document["maxPly"], &document["moves"]),
        (&json!(2), &json!([]))
    );
}

#[test]
fn a_game_in_the_files_of_both_players_counts_once() {
    let dir = temp();
    let dir = dir.path();
    for name in ["mine", "theirs"] {
        fs::write(dir.join(format!("{name}.pgn")), GAMES).unwrap();
        ok(dir, &format!("make-book -q {name}.pgn --explorer {name}"));
    }
    let prepared = |options: &str| {
        let command = "prepare mine theirs --exact --opponent them";
        ok(dir, &format!("{command} {options}"))
    };
    let once = prepared("--player me --color black");
    assert!(
        once.contains("\nyou against them  0.0% in 1 game,"),
        "{once}"
    );
    assert!(
        once.contains("\nyou as black      0.0% in 1 game,"),
        "{once}"
    );
    let all = prepared("--player me --color black --duplicates all");
    assert!(
        all.contains("\nyou against them  0.0% in 2 games,"),
        "{all}"
    );
    // Also if the opponent has one name, and the player several.
    for names in ["me", "me --player x"] {
        let line = format!(
            "prepare mine theirs --exact --opponent them --player {names} --color black --json"
        );
        assert_eq!(ok_json(dir, &line)["theirs"]["games"], 3, "{names}");
    }
    let served = Served::start(dir, "-q mine theirs");
    let asked = "/prepare?player=Them&color=white&me=Me";
    let met = |path: &str| served.json(path)["met"]["games"].as_u64();
    assert_eq!(met(asked), Some(1));
    assert_eq!(met(&format!("{asked}&duplicates=once")), Some(1));
    assert_eq!(met(&format!("{asked}&duplicates=all")), Some(2));
    // The two players met only with the other colors.
    let other = prepared("--player x --color white");
    assert!(
        other.contains("\nyou against them  no games with you as white (1 with you as black)\n"),
        "{other}"
    );
    let total = |options: &str| {
        let command = format!("games mine theirs --json {options}");
        ok_json(dir, &command)["total"].clone()
    };
    assert_eq!(total("").as_u64(), Some(8));
    assert_eq!(total("--duplicates all").as_u64(), Some(8));
    assert_eq!(total("--duplicates once").as_u64(), Some(4));
}

#[test]
fn moves_of_a_player_with_both_colors_are_said_to_be_mixed() {
    let dir = temp();
    fs::write(dir.path().join("games.pgn"), GAMES).unwrap();
    ok(dir.path(), "make-book -q --explorer idx games.pgn");
    for (color, is_said) in [("", true), (" --color white", false)] {
        let command = format!("show idx --player them --exact{color}");
        let output = run(dir.path(), &command);
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(
            error.contains("--color white or --color black"),
            is_said,
            "{error}"
        );
    }
}

#[test]
fn games_are_filtered_by_the_rating_of_the_opponent() {
    let dir = temp();
    fs::write(dir.path().join("games.pgn"), GAMES).unwrap();
    ok(dir.path(), "make-book -q --explorer idx games.pgn");
    for (range, games) in [("2100-2100", 1), ("2101-", 1), ("-2200", 2), ("2300-", 0)] {
        // Only the opponents of these names have ratings.
        let command =
            format!("games idx --json --exact --player me --player x --opponent-rating {range}");
        let names = ["--player", "my name"];
        let args = [&command.split(' ').collect::<Vec<_>>()[..], &names].concat();
        assert_eq!(ok_json(dir.path(), &args[..])["total"], games, "{range}");
    }
    for (command, part) in [
        ("games idx --opponent-rating 2000-", "--player"),
        (
            "games idx --player me --opponent-rating 2000",
            "such as 2000-2199",
        ),
        (
            "games idx --player me --opponent-rating 9-1",
            "such as 2000-2199",
        ),
    ] {
        let error = fails(dir.path(), command, 2);
        assert!(error.contains(part), "{command}: {error}");
    }
    let served = Served::start(dir.path(), "-q idx");
    let games = |query: &str| served.json(&format!("/games?{query}&limit=0"))["total"].clone();
    assert_eq!(games("player=me&opponentRating=2000-"), 1);
    assert_eq!(
        (games("player=me"), games("player=me&requireDate=1")),
        (json!(2), json!(1))
    );
    for query in ["opponentRating=2000-", "player=me&opponentRating=-"] {
        let reply = served.get(&format!("/games?{query}"));
        assert_eq!(reply.status, 400, "{query}");
        assert!(
            reply.text().starts_with("the parameter opponentRating is "),
            "{}",
            reply.text()
        );
    }
}

#[test]
fn one_person_as_both_players_and_filters_without_games_are_told() {
    let dir = temp();
    let dir = dir.path();
    games_of_five(dir);
    let said = |options: &str| {
        let output = run(dir, &format!("prepare idx --color white {options}"));
        assert!(output.status.success());
        String::from_utf8(output.stderr).unwrap()
    };
    let both = said("--player carl --opponent carlo");
    assert!(
        both.contains("warning: --player and --opponent both match \"Carlo\""),
        "{both}"
    );
    assert_eq!(said("--player dora --opponent carlo"), "");
    let none = said("--player dora --opponent carlo --since 2030 --require-date");
    for whose in ["the opponent", "you"] {
        assert!(
            none.contains(&format!("no game of {whose} with this color")),
            "{none}"
        );
    }
    let error = fails(
        dir,
        "prepare idx --color white --player Dorra --opponent Karlo",
        1,
    );
    assert!(
        error.contains("\"Dora\"") && error.contains("\"Carlo\""),
        "{error}"
    );
}

/// A game between two names of one person counts as a game with White, or with the color in the filters. Filters by
/// result and by the opponent's rating do not change this.
#[test]
fn a_game_between_two_names_of_a_person_keeps_its_color_under_filters() {
    let dir = temp();
    let dir = dir.path();
    let game = |names: [&str; 2], elo: [u16; 2], result: &str| {
        let [white, black] = names.map(|name| format!("\"{name}\""));
        format!(
            "[White {white}]\n[Black {black}]\n[WhiteElo \"{}\"]\n[BlackElo \"{}\"]\n[Result \"{result}\"]\n\n\
             1. e4 e5 {result}\n\n",
            elo[0], elo[1]
        )
    };
    let games = game(["Doe", "jane42"], [2500, 1500], "1-0")
        + &game(["Doe", "jane42"], [2500, 1500], "0-1")
        + &game(["Doe", "Other"], [2500, 2450], "1-0");
    fs::write(dir.join("games.pgn"), games).unwrap();
    let person = "games.pgn --player Doe --player jane42 --exact";
    for (filters, expected) in [
        ("", [3, 2, 1]),
        ("--result win", [2, 2, 0]),
        ("--result loss", [1, 0, 1]),
        ("--opponent-rating 2400-", [1, 1, 0]),
        ("--opponent-rating -2400", [2, 1, 1]),
        ("--color black --result win", [1, 1, 0]),
        ("--color black --opponent-rating 2400-", [2, 1, 1]),
    ] {
        let moves = ok_json(dir, &format!("show {person} -q {filters} --json"));
        let first = &moves["moves"][0];
        let numbers = ["games", "wins", "losses"].map(|name| first[name].as_u64().unwrap());
        assert_eq!(numbers, expected, "{filters}");
        let games = ok_json(dir, &format!("games {person} -q {filters} --json"));
        assert_eq!(games["total"], expected[0], "{filters}");
    }
    ok(dir, "make-book -q games.pgn --explorer idx");
    let server = Served::start(dir, "idx");
    for (filters, expected) in [
        ("", [3, 3, 2]),
        ("&result=win", [2, 2, 1]),
        ("&result=win&color=black", [1, 2, 1]),
        ("&result=loss", [1, 1, 1]),
    ] {
        let path = format!("/facets?player=Doe&player=jane42{filters}");
        let facets = server.json(&path);
        let colors = &facets["colors"];
        let numbers = [&facets["games"], &colors["white"], &colors["black"]];
        assert_eq!(
            numbers.map(|number| number.as_u64().unwrap()),
            expected,
            "{filters}"
        );
    }
}

/// Suicide and giveaway chess have the same rules. Games of one variant therefore count for the other, and duplicates
/// of a game are recognized even if their `Variant` tags differ.
#[test]
fn games_of_variants_with_the_same_rules_count_for_each_other() {
    let dir = temp();
    let dir = dir.path();
    let game = |variant: &str, moves: &str| {
        format!(
            "[White \"A\"]\n[Black \"B\"]\n[Date \"2024.01.02\"]\n[Result \"1-0\"]\n[Variant \"{variant}\"]\n\n{moves} 1-0\n\n"
        )
    };
    let games = game("suicide", "1. e3 b5")
        + &game("antichess", "1. e3 b5")
        + &game("giveaway", "1. e3 b6");
    fs::write(dir.join("games.pgn"), games).unwrap();
    ok(dir, "make-book -q games.pgn --variant auto --explorer idx");
    for variant in ["suicide", "antichess", "giveaway"] {
        let query = format!("idx -q --variant {variant} --player A");
        let moves = ok_json(dir, &format!("show {query} --json"));
        assert_eq!(moves["moves"][0]["games"], 3);
        let once = ok_json(dir, &format!("show {query} --duplicates once --json"));
        assert_eq!(once["moves"][0]["games"], 2);
        let openings = ok_json(dir, &format!("openings {query} --json"));
        assert_eq!(openings["games"], 3);
        assert_eq!(openings["average_score"], 100.0);
        let prepared = ok_json(
            dir,
            &format!(
                "prepare idx -q --variant {variant} --player B --opponent A --color black --json"
            ),
        );
        assert_eq!(prepared["theirs"]["games"], 2, "{prepared}");
    }
}

/// The table of the opponent's moves and the lines for study tell answers of the repertoire from habits.
#[test]
fn answers_are_marked_as_habits_and_end_the_lines() {
    let dir = temp();
    let dir = dir.path();
    let game = |white: &str, moves: &str| {
        format!("[White \"{white}\"]\n[Black \"Me\"]\n[Result \"1-0\"]\n\n{moves} 1-0\n\n")
    };
    let mut games = game("Them", "1. e4 e5 2. Nf3 Nc6") + &game("Them", "1. d4 d5");
    // Equally many games contain 1... e5 and 1... e6, so the alphabet decides.
    games += &game("X", "1. e4 e6").repeat(11);
    games += &(game("X", "1. e4 e5").repeat(10) + &game("X", "1. d4 d5").repeat(10));
    games += &game("Me", "1. g3 g6")
        .replace("Black \"Me", "Black \"X")
        .repeat(9);
    games += &"[White \"X\"]\n[Black \"Me\"]\n[Result \"0-1\"]\n\n1. c4 c5 0-1\n\n".repeat(30);
    fs::write(dir.join("games.pgn"), games).unwrap();
    fs::write(dir.join("mine.pgn"), "1. d4 d5 *\n").unwrap();
    let command = "prepare games.pgn -q --exact --player Me --opponent Them --color black --duplicates all --repertoire mine.pgn --min-game 1";
    let text = ok(dir, &format!("{command} --out tonight.pgn"));
    // The repertoire has no answer to 1. e4, whatever the player usually plays.
    assert!(
        text.contains("  e5 (usual), gap  King's Pawn Game\n"),
        "{text}"
    );
    assert!(
        text.contains("  d5               Queen's Pawn Game\n"),
        "{text}"
    );
    let lines = fs::read_to_string(dir.join("tonight.pgn")).unwrap();
    assert!(
        lines.contains("[White \"Them\"]\n[Black \"Me\"]\n"),
        "{lines}"
    );
    let lines = lines.replace('\n', " ");
    assert!(lines.contains("} 1... e5 {usual} *"), "{lines}");
    assert!(lines.contains("} 1... d5 {repertoire} *"), "{lines}");
    let found = ok_json(dir, &format!("{command} --json"));
    let answers = found["lines"].as_array().unwrap().iter();
    let answers: Vec<&Value> = answers.map(|line| &line["answer"]["san"]).collect();
    assert!(
        answers.contains(&&json!("e5")) && answers.contains(&&json!("d5")),
        "{found}"
    );
}

/// If a repertoire has several moves in a position, a preparation recommends the move of the main line.
#[test]
fn an_answer_is_the_main_line_of_the_repertoire() {
    let dir = temp();
    let dir = dir.path();
    let game = "[White \"B\"]\n[Black \"A\"]\n\n1. e4 e5 2. Nf3 1-0\n\n[White \"B\"]\n[Black \"A\"]\n\n1. e4 c5 2. Nf3 1-0\n\n";
    fs::write(dir.join("games.pgn"), game).unwrap();
    for (answer, other) in [("e5", "c5"), ("c5", "e5")] {
        let repertoire = format!("1. e4 {answer} (1... {other}) 2. Nf3 Nc6 *\n");
        fs::write(dir.join("mine.pgn"), repertoire).unwrap();
        let found = ok_json(
            dir,
            "prepare games.pgn -q --player A --opponent B --color black --repertoire mine.pgn --json",
        );
        assert_eq!(found["moves"][0]["answer"]["san"], answer, "{found}");
        let tree = ok(dir, "tree mine.pgn --format pgn");
        assert!(
            tree.contains(&format!("1... {answer} {{weight 1, 50.0%}} (1... {other} ")),
            "{tree}"
        );
    }
}

/// After the lines to look at first, the file contains a tree of the moves of both players, up to where the games end.
#[test]
fn the_tree_of_a_preparation_has_the_moves_of_both_players() {
    let dir = temp();
    let dir = dir.path();
    let game = |white: &str, black: &str, moves: &str| {
        format!("[White \"{white}\"]\n[Black \"{black}\"]\n[Result \"1-0\"]\n\n{moves} 1-0\n\n")
    };
    let theirs = game("Them", "Y", "1. e4 e5 2. Nf3 Nc6 3. Bb5 a6 4. Ba4").repeat(3)
        + &game("Them", "Y", "1. e4 c5 2. Nf3")
        + &game("Them", "Z", "1. d4 d5 2. c4").repeat(2)
        + &game("Them", "Z", "1. g3");
    let mine = game("X", "Me", "1. e4 e5 2. Nf3 Nc6").repeat(5) + &game("X", "Me", "1. e4 c6");
    fs::write(dir.join("games.pgn"), theirs + &mine).unwrap();
    fs::write(dir.join("mine.pgn"), "1. d4 Nf6 *\n").unwrap();
    let command = "prepare games.pgn -q --exact --player Me --opponent Them --color black --duplicates all --force --out tree.pgn";
    let tree = |options: &str| {
        ok(dir, &format!("{command} {options}"));
        let text = fs::read_to_string(dir.join("tree.pgn")).unwrap();
        let at = text
            .find("[Event \"Preparation for Them, all lines\"]")
            .unwrap();
        text[at..].replace('\n', " ")
    };
    let all = tree("");
    for part in [
        "1. e4 {B00 King's Pawn Game, 4 games, 100.0%, 1 in 1.8",
        "} (1. d4 {A40 Queen's Pawn Game, 2 games, 100.0%, 1 in 3.5",
        " 1... e5 {C20 King's Pawn Game, 5 games, 0.0%, you played this}",
        // The player has never met these moves.
        " 3. Bb5 {C60 Ruy Lopez, 3 games, 100.0%, 1 in 1.8",
        " 3... a6 {",
        "3 games, 0.0%, others played this} 4. Ba4",
        " 4. Ba4 {",
        " 1... d5 {",
    ] {
        assert!(all.contains(part), "{part}: {all}");
    }
    // A single game of the opponent, and a rare move of the player.
    assert!(!all.contains("g3") && !all.contains("c6 {B10"), "{all}");
    let with = tree("--repertoire mine.pgn");
    assert!(
        with.contains(" 1... Nf6 {A45 Indian Defense, no games, repertoire}"),
        "{with}"
    );
    assert!(!with.contains("1... d5"), "{with}");
    assert!(tree("--min-game 1").contains("1. g3 {"), "{all}");
    let later = tree("--moves=1.e4");
    assert!(
        later.contains("\"]  1. e4 1... e5 {C20 King's Pawn Game, 5 games"),
        "{later}"
    );
    // The file is a PGN that can be read again.
    ok(dir, "repertoire check tree.pgn games.pgn --color black");
}
