//! Statistics contain the number of games from which they are calculated, and unknown values are not zero.

use std::{fmt::Write, fs, path::Path};

use serde_json::{Value, json};

use crate::common::{fails, ok, ok_json, run, served::Served, temp};

/// Returns a game of two half-moves with tags.
fn game(tags: &[(&str, &str)], result: &str) -> String {
    let mut text = String::new();
    for (name, value) in tags {
        writeln!(text, "[{name} \"{value}\"]").unwrap();
    }
    writeln!(text, "[Result \"{result}\"]\n\n1. e4 e5 {result}\n").unwrap();
    text
}

/// Returns a game between players with these ratings. Empty ratings are omitted.
fn rated(white: &str, black: &str, result: &str) -> String {
    let tags = [("WhiteElo", white), ("BlackElo", black)];
    let known: Vec<_> = tags.into_iter().filter(|tag| !tag.1.is_empty()).collect();
    game(&known, result)
}

/// Writes games, and makes an index of them and an index of their counts.
fn indexes(dir: &Path, games: &str) {
    fs::write(dir.join("games.pgn"), games).unwrap();
    ok(dir, "make-book -q games.pgn --explorer games.idx");
    ok(
        dir,
        "make-book -q games.pgn --counts counts --by speed,rating,month",
    );
    ok(dir, "make-book -q counts --explorer counts.idx");
}

fn moves(dir: &Path, options: &str) -> Value {
    ok_json(dir, &*format!("show {options} --json"))
}

#[test]
fn the_rating_group_is_that_of_the_mean_of_the_known_ratings() {
    if !crate::common::runs_slow_tests() {
        return;
    }
    for (white, black, group) in [
        ("2800", "?", "2500"),
        ("", "2100", "2000"),
        ("0", "900", "0"),
        ("2400", "1600", "2000"),
        ("1201", "1198", "1000"),
        ("?", "", "unknown"),
    ] {
        let dir = temp();
        indexes(dir.path(), &rated(white, black, "1-0"));
        for index in ["games.idx", "counts.idx"] {
            for other in ["0", "1000", "1400", "2000", "2500", "unknown"] {
                let found = moves(dir.path(), &format!("{index} --rating {other}"));
                let games = u64::from(other == group);
                assert_eq!(found["games"], games, "{white} {black} {index} {other}");
            }
        }
    }
}

#[test]
fn counts_have_unknown_ratings_in_a_class_of_their_own() {
    let dir = temp();
    let games = [
        rated("2800", "", "1-0"),
        rated("", "", "1-0"),
        rated("700", "?", "1-0"),
    ];
    indexes(dir.path(), &games.concat());
    let served = Served::start(dir.path(), "counts.idx");
    let facets = served.json("/facets");
    assert_eq!(facets["ratings"]["0"], 1);
    assert_eq!(facets["ratings"]["1400"], 0);
    assert_eq!(facets["ratings"]["2500"], 1);
    assert_eq!(facets["unknownRatings"], 1);
    let groups = served.json("/scores?by=rating");
    let groups = groups["scores"].as_array().unwrap().iter();
    let names: Vec<&str> = groups
        .map(|group| group["rating"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["0", "2500", "unknown"]);
}

#[test]
fn top_games_have_the_highest_mean_of_the_known_ratings() {
    let dir = temp();
    let games = [
        rated("2000", "2000", "1-0"),
        rated("", "2600", "1-0"),
        rated("2401", "2400", "0-1"),
        rated("", "", "1-0"),
        rated("2401", "", "1-0"),
    ];
    fs::write(dir.path().join("games.pgn"), games.concat()).unwrap();
    let served = Served::start(dir.path(), "games.pgn");
    let ids = |answer: &Value| -> Vec<u64> {
        let games = answer.as_array().unwrap().iter();
        games
            .map(|game| game["id"].as_str().unwrap().parse().unwrap())
            .collect()
    };
    let answer = served.json("/lichess");
    assert_eq!(ids(&answer["topGames"]), [1, 4, 2, 0]);
    // The recent games do not repeat the top games.
    assert_eq!(ids(&answer["recentGames"]), [3]);
    assert_eq!(
        ids(&served.json("/games?sort=rating")["games"]),
        [1, 4, 2, 0, 3]
    );
}

#[test]
fn recent_games_do_not_repeat_top_games() {
    let dir = temp();
    // Later games have higher ratings, so the newest games are the top games.
    let games = |from: usize| -> String {
        let dated = |number: usize| {
            let (date, rating) = (format!("2020.01.{number:02}"), (2000 + number).to_string());
            game(&[("Date", &date), ("WhiteElo", &rating)], "1-0")
        };
        (from..from + 9).map(dated).collect()
    };
    fs::write(dir.path().join("one.pgn"), games(1)).unwrap();
    fs::write(dir.path().join("two.pgn"), games(10)).unwrap();
    let numbers = |answer: &Value, name: &str| -> Vec<String> {
        let games = answer[name].as_array().unwrap().iter();
        games
            .map(|game| game["id"].as_str().unwrap().to_owned())
            .collect()
    };
    for (sources, all) in [("one.pgn", 9), ("one.pgn two.pgn", 18)] {
        let served = Served::start(dir.path(), sources);
        for (query, top, recent) in [
            ("", 4, 4),
            ("?topGames=1", 1, 7),
            ("?topGames=0", 0, 8),
            ("?recentGames=8", 4, 8),
            ("?recentGames=2", 4, 2),
        ] {
            let answer = served.json(&format!("/lichess{query}"));
            let mut listed = numbers(&answer, "topGames");
            assert_eq!(listed.len(), top, "{query}");
            listed.extend(numbers(&answer, "recentGames"));
            let newest = (0..all).rev().map(|number| format!("{number:08}"));
            let newest: Vec<String> = newest.take(top + recent.min(all - top)).collect();
            assert_eq!(listed, newest, "{sources} {query}");
        }
    }
}

#[test]
fn a_performance_needs_ten_games_with_a_rated_opponent() {
    let dir = temp();
    let against = |rating: &str, result: &str| {
        let black = [("White", "Ann"), ("Black", "Bob"), ("BlackElo", rating)];
        game(&black[..if rating.is_empty() { 2 } else { 3 }], result)
    };
    let player = |games: String| {
        fs::write(dir.path().join("games.pgn"), games).unwrap();
        let served = Served::start(dir.path(), "games.pgn --no-cache");
        served.json("/player?player=ann&color=white")
    };
    // One of twelve games has a rating; nine of ten games have a rating; all ten games have a rating, but one has no
    // result.
    for (games, performance_games) in [
        (against("2400", "1-0") + &against("", "0-1").repeat(11), 1),
        (against("2400", "1-0").repeat(9) + &against("", "0-1"), 9),
        (against("2400", "1-0").repeat(9) + &against("2400", "*"), 9),
    ] {
        let answer = player(games);
        assert_eq!(answer.get("performance"), None);
        assert_eq!(answer["performanceGames"], performance_games);
        assert_eq!(answer["opponentRating"], 2400);
        assert_eq!(answer["moves"][0]["performance"], Value::Null);
        assert_eq!(answer["moves"][0]["performanceGames"], performance_games);
    }
    // The mean 2400.5 is rounded up, and the mean 2400.4 down.
    for (higher, mean) in [(5, 2401), (4, 2400)] {
        let answer = player(
            against("2401", "1-0").repeat(higher) + &against("2400", "0-1").repeat(10 - higher),
        );
        assert_eq!(answer["opponentRating"], mean);
        assert_eq!(answer["moves"][0]["averageOpponentRating"], mean);
        assert_eq!(answer["performanceGames"], 10);
        assert!(answer["performance"].is_u64());
    }
}

#[test]
fn a_game_without_a_result_is_no_draw() {
    let dir = temp();
    let by = |white: &str, result: &str| game(&[("White", white), ("Black", "Bob")], result);
    let games = by("Ann", "1-0").repeat(10) + &by("Ann", "*").repeat(10);
    indexes(dir.path(), &games);
    let found = moves(dir.path(), "games.idx");
    for document in [&found, &found["moves"][0]] {
        let numbers =
            ["games", "white", "draws", "black", "unfinished"].map(|name| &document[name]);
        assert_eq!(numbers, [20, 10, 0, 0, 10], "{document}");
    }
    let table = ok(dir.path(), "show games.idx");
    assert!(table.contains("  rating  unfinished  opening\n"), "{table}");
    let skipped = moves(dir.path(), "games.idx --unfinished skip");
    assert_eq!(
        (&skipped["games"], &skipped["unfinished"]),
        (&json!(10), &json!(0))
    );

    let served = Served::start(dir.path(), "games.idx");
    let answer = served.json("/lichess?history=moves");
    // Clients add up the three numbers.
    for counts in [&answer, &answer["moves"][0], &answer["history"][0]] {
        let numbers = ["white", "draws", "black", "unfinished"].map(|name| &counts[name]);
        assert_eq!(numbers, [10, 10, 0, 10], "{counts}");
    }
    let player = served.json("/player?player=Ann&color=white");
    assert_eq!(
        (&player["wins"], &player["unfinished"]),
        (&json!(10), &json!(10))
    );
    assert_eq!(
        served.json("/scores?by=rating"),
        json!({"scores": [{"rating": "unknown", "white": 10, "draws": 0, "black": 0, "unfinished": 10}]})
    );
    let served = Served::start(dir.path(), "games.idx --unfinished skip");
    let answer = served.json("/lichess");
    let numbers = ["white", "draws", "black"].map(|name| &answer[name]);
    assert_eq!(numbers, [10, 0, 0]);
    assert_eq!(answer.get("unfinished"), None);
    assert_eq!(served.json("/facets")["games"], 10);
    assert_eq!(served.json("/games")["total"], 10);
    let book = served.json("/book.bin?count=true&minGame=1");
    let command = book["command"].as_str().unwrap();
    assert!(command.contains(" --unfinished skip"), "{command}");

    // Counts include these games in the draws.
    for command in ["serve --listen 127.0.0.1:0", "show"] {
        let line = format!("{command} counts.idx --unfinished skip");
        let err = fails(dir.path(), &*line, 1);
        assert!(err.contains("counts"), "{err}");
    }
}

/// Every list with scores says how many of its games have no result.
#[test]
fn scores_say_how_many_games_have_no_result() {
    let dir = temp();
    let dir = dir.path();
    let by = |result: &str| game(&[("White", "Ann"), ("Black", "Bob")], result);
    indexes(
        dir,
        &(by("1-0").repeat(3) + &by("0-1") + &by("1/2-1/2") + &by("*").repeat(5)),
    );
    let table = ok_json(dir, "openings games.idx --player Ann --json");
    for document in [&table, &table["families"][0]] {
        assert_eq!(
            (&document["games"], &document["unfinished"]),
            (&json!(10), &json!(5))
        );
    }
    assert_eq!(table["families"][0]["score"], 70.0);
    let table = ok(dir, "openings games.idx --player Ann");
    assert!(
        table.starts_with("10 games, 5 without a result, average score 70.0 %\n"),
        "{table}"
    );
    let tree = ok(dir, "tree games.idx --min-game 1");
    assert!(tree.contains("1. e4  +3 =1 -1 *5"), "{tree}");
    let built = ok(
        dir,
        "repertoire build games.idx --color white --out - --min-game 1",
    );
    assert!(
        built.contains("{10 games, 5 without result, 70.0%}"),
        "{built}"
    );
    let served = Served::start(dir, "games.idx");
    let scores = served.json("/scores?by=rating&player=Ann&color=white");
    let scores = &scores["scores"];
    let numbers = ["white", "draws", "black", "unfinished"].map(|name| &scores[0][name]);
    assert_eq!(numbers, [3, 1, 1, 5]);
}

#[test]
fn moves_of_a_player_have_the_players_score_and_performance() {
    let dir = temp();
    let dir = dir.path();
    let game = |color: &str, mv: &str, result: &str| {
        let other = if color == "White" { "Black" } else { "White" };
        format!(
            "[{color} \"Me\"]\n[{other} \"You\"]\n[{other}Elo \"2000\"]\n[Result \"{result}\"]\n\n1. {mv} e5 {result}\n\n"
        )
    };
    let mut games = game("White", "e4", "1-0").repeat(30) + &game("White", "e4", "0-1").repeat(10);
    games += &game("White", "d4", "1-0").repeat(2);
    games += &game("Black", "e4", "0-1").repeat(5);
    indexes(dir, &games);
    let line = "games.idx --player me --exact";
    let found = moves(dir, &format!("{line} --color white --sort score"));
    // The move with two won games is listed after the move with 40 games, because two games may be luck.
    let of = |found: &Value, names: [&str; 5]| {
        let rows = found["moves"].as_array().unwrap().iter();
        Value::from_iter(rows.map(|row| Value::from_iter(names.map(|name| row[name].clone()))))
    };
    let names = ["san", "wins", "losses", "score", "performance"];
    assert_eq!(
        of(&found, names),
        json!([["e4", 30, 10, 75.0, 2193], ["d4", 2, 0, 100.0, null]])
    );
    assert_eq!(found["score"], 76.2);
    // If no color is given, the score includes the player's games with both colors.
    let found = moves(dir, line);
    assert_eq!(of(&found, names)[0], json!(["e4", 35, 10, 77.8, 2220]));
    let table = ok(dir, &format!("show {line}"));
    let head = "move      games    share    white    draws    black  rating   rated   score    range   perf  opening";
    let row = "e4           45   95.74%       30        0       15    2000       5   77.8%   66-89%   2220  King's Pawn Game";
    assert!(table.contains(head) && table.contains(row), "{table}");
    assert!(!ok(dir, "show games.idx").contains("score"));
    // Results of the player.
    for (result, games) in [
        ("win", 37),
        ("loss", 10),
        ("win --result loss", 47),
        ("1-0", 32),
        ("1-0 --result loss", 42),
    ] {
        let found = moves(dir, &format!("{line} --result {result}"));
        assert_eq!(found["games"], games, "{result}");
        // A performance in selected results would say nothing.
        let performance = (&found["performance"], &found["moves"][0]["performance"]);
        assert_eq!(performance, (&Value::Null, &Value::Null), "{result}");
        let score = (&found["score"], &found["moves"][0]["score"]);
        assert_eq!(score, (&Value::Null, &Value::Null), "{result}");
        let listed = ok_json(dir, &format!("games {line} --result {result} --json"));
        assert_eq!(listed["total"], games, "{result}");
    }
    let error = fails(dir, "show games.idx --result loss", 2);
    assert!(
        error.contains("--result win or loss needs --player"),
        "{error}"
    );
}

#[test]
fn moves_are_sorted_by_the_score_of_their_finished_games() {
    let dir = temp();
    let play = |mv: &str, result: &str| format!("[Result \"{result}\"]\n\n1. {mv} {result}\n\n");
    let games = [
        play("d4", "*"),
        play("e4", "1-0"),
        play("e4", "*"),
        play("e4", "*"),
        play("c4", "1/2-1/2"),
        play("c4", "1-0"),
    ];
    indexes(dir.path(), &games.concat());
    let found = moves(dir.path(), "games.idx --sort score");
    let sans = found["moves"].as_array().unwrap().iter();
    let sans: Vec<&str> = sans.map(|mv| mv["san"].as_str().unwrap()).collect();
    // The lower bound of a win and a draw is above that of one win.
    assert_eq!(sans, ["c4", "e4", "d4"]);
}

#[test]
fn a_mean_rating_says_in_how_many_games_the_rating_is_known() {
    let dir = temp();
    let games = rated("2000", "", "1-0") + &rated("2001", "", "1-0") + &rated("", "1500", "0-1");
    indexes(dir.path(), &games);
    for index in ["games.idx", "counts.idx"] {
        let found = moves(dir.path(), index);
        let e4 = &found["moves"][0];
        assert_eq!(
            (&e4["average_rating"], &e4["rating_games"]),
            (&json!(2000), &json!(2))
        );
        let table = ok(dir.path(), &*format!("show {index}"));
        assert!(table.contains("  rating   rated  opening\n"), "{table}");
    }
    let served = Served::start(dir.path(), "games.idx");
    let e4 = &served.json("/lichess")["moves"][0];
    assert_eq!(
        (&e4["averageRating"], &e4["ratingGames"]),
        (&json!(2000), &json!(2))
    );
    // If all ratings are known, or none, the number of games is omitted.
    let e5 = &served.json("/lichess?play=e2e4&ratings=1400")["moves"][0];
    assert_eq!(
        (&e5["averageRating"], e5.get("ratingGames")),
        (&json!(1500), None)
    );
}

#[test]
fn the_mean_time_of_a_move_says_in_how_many_games_it_is_known() {
    let dir = temp();
    let clocked = "[TimeControl \"180+2\"]\n[Result \"1-0\"]\n\n\
                   1. e4 {[%clk 0:02:57]} c5 {[%clk 0:02:50]} 1-0\n\n";
    let others = "[TimeControl \"180+2\"]\n[Result \"1-0\"]\n\n1. e4 c5 1-0\n\n".repeat(9);
    indexes(dir.path(), &(clocked.to_owned() + &others));
    let table = ok(dir.path(), "show games.idx --clocks");
    let mut lines = table.lines();
    assert!(
        lines.next().unwrap().contains("  seconds  median  timed  "),
        "{table}"
    );
    assert!(
        lines.next().unwrap().contains("      5.0     5.0      1"),
        "{table}"
    );
    let found = moves(dir.path(), "games.idx --clocks");
    assert_eq!(
        found["moves"][0]["clock"],
        json!({"games": 1, "mean": 5.0, "median": 5.0})
    );
}

#[test]
fn times_of_all_games_are_not_counted_beside_the_games() {
    let dir = temp();
    let game = |comment: &str| {
        format!("[TimeControl \"180\"]\n[Result \"1-0\"]\n\n1. e4 {comment} c5 1-0\n\n")
    };
    let known = game("{[%emt 0:00:05]}");
    for (number, (games, options, is_part, said)) in [
        (known.repeat(10), "--clocks", false, ""),
        (known.clone(), "--clocks=5", false, ""),
        (known.repeat(9) + &game(""), "--clocks", true, ""),
        (
            known.repeat(10),
            "--clocks=4",
            true,
            "the times are those of the 4 newest of 10 games: --clocks=10 reads all games",
        ),
    ]
    .into_iter()
    .enumerate()
    {
        let (pgn, index) = (format!("{number}.pgn"), format!("{number}.idx"));
        fs::write(dir.path().join(&pgn), games).unwrap();
        ok(
            dir.path(),
            &format!("make-book -q {pgn} --explorer {index}"),
        );
        let output = run(dir.path(), &format!("show {index} {options}"));
        let table = String::from_utf8_lossy(&output.stdout);
        let heading = table.lines().next().unwrap();
        assert!(heading.contains("  seconds  median  "), "{table}");
        assert_eq!(heading.contains("  timed  "), is_part, "{table}");
        let message = String::from_utf8_lossy(&output.stderr);
        assert_eq!(message.trim_end(), said);
    }
}

#[test]
fn games_that_pass_with_an_unknown_rating_or_date_are_reported() {
    let dir = temp();
    let dir = dir.path();
    let elo = |white, black| [("WhiteElo", white), ("BlackElo", black)];
    let games = [
        [&elo("2700", "2650")[..], &[("Date", "2020.01.01")]].concat(),
        [&elo("2700", "")[..], &[("Date", "????.??.??")]].concat(),
        [&elo("?", "-")[..], &[("Date", "2021.??.??")]].concat(),
        [&elo("2500", "2700")[..], &[("Date", "2022.02.02")]].concat(),
    ];
    let pgn: String = games.iter().map(|tags| game(tags, "1-0")).collect();
    indexes(dir, &pgn);
    let unrated =
        |games: &str| format!("{games} without readable ratings passed the filters: --require-elo");
    let undated =
        |games: &str| format!("{games} without a readable date passed the filters: --require-date");
    for (filters, passing, reported) in [
        ("--min-elo 2600", 3, vec![unrated("2 games")]),
        ("--max-elo 2600", 1, vec![unrated("1 game")]),
        ("--min-elo 2600 --require-elo", 1, vec![]),
        ("--require-elo", 2, vec![]),
        ("--since 2021", 3, vec![undated("1 game")]),
        (
            "--until 2020 --min-elo 2600",
            2,
            vec![undated("1 game"), unrated("1 game")],
        ),
        ("--since 2021 --require-date", 2, vec![]),
        ("--require-date", 3, vec![]),
        ("", 4, vec![]),
    ] {
        for command in ["show", "games"] {
            let output = run(dir, &format!("{command} games.idx --json {filters}"));
            let found: Value = serde_json::from_slice(&output.stdout).unwrap();
            let total = if command == "show" {
                &found["games"]
            } else {
                &found["total"]
            };
            let message = String::from_utf8_lossy(&output.stderr);
            assert_eq!(total, &json!(passing), "{command} {filters}: {message}");
            assert_eq!(
                message.lines().count(),
                reported.len(),
                "{filters}: {message}"
            );
            for (line, start) in message.lines().zip(&reported) {
                assert!(line.starts_with(start), "{command} {filters}: {message}");
            }
        }
        let output = run(dir, &format!("engine games.idx {filters}"));
        let message = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{message}");
        assert!(
            reported.iter().all(|line| message.contains(line)),
            "{filters}: {message}"
        );
        assert_eq!(message.contains("passed the filters"), !reported.is_empty());
    }
}
