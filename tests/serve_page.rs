//! The answers of `polybook serve` for its page: suggestions, numbers of games by filter, details of games and players.

use std::fs;

#[cfg(unix)]
use crate::common::until;
use crate::common::{ok, ok_json, served::Served, temp};
use serde_json::{Value, json};
use tempfile::TempDir;

const GAMES: &str = r#"[Event "Wijk"]
[Site "Wijk aan Zee"]
[Date "2015.01.05"]
[Round "3.1"]
[White "Carlsen, Magnus"]
[Black "Müller, Jörg"]
[Result "1-0"]
[WhiteElo "2800"]
[BlackElo "2500"]
[WhiteTitle "GM"]
[Annotator "{No one} (1) !"]
[ECO "B20"]
[TimeControl "180+2"]

{Before.} 1. e4! {[%clk 0:02:59] [%eval 0.3] Best (by test).} c5 $6 {[%eval #-2]} (1... e5?? {no}) 2. Nf3 1-0

[Event "Wijk aan Zee"]
[Date "2015.01.05"]
[White "CARLSEN, Magnus"]
[Black "Müller, Jörg"]
[Result "1-0"]
[ECO "B30"]

1. e4 c5 2. Nf3 1-0

[Event "Wijk"]
[Date "2015.02.??"]
[White "Müller, Jörg"]
[Black "Carlsen, Magnus"]
[Result "0-1"]
[WhiteElo "2510"]
[BlackElo "2810"]
[TimeControl "180+2"]

1. d4 d5 0-1

[Event "Riga"]
[Date "2016.??.??"]
[White "Carlson, Max"]
[Black "Tal, Mikhail"]
[Result "1/2-1/2"]

1. e4 e5 1/2-1/2

[Event "?"]
[White "Tal, Mikhail"]
[Black "Carlsen, Magnus"]
[Result "1-0"]
[BlackElo "2700"]

1. e4 c5 1-0
"#;

fn served() -> (TempDir, Served) {
    let dir = temp();
    fs::write(dir.path().join("games.pgn"), GAMES).unwrap();
    let served = Served::start(dir.path(), "games.pgn");
    (dir, served)
}

#[test]
fn suggested_players_count_duplicates_once_and_their_games_against_others() {
    let dir = temp();
    let game = |white: &str, black: &str, moves: &str| {
        format!(
            "[White \"{white}\"]\n[Black \"{black}\"]\n[Date \"2020.01.02\"]\n[Result \"1-0\"]\n\n{moves} 1-0\n\n"
        )
    };
    let games = [
        game("Ann", "Bob", "1. e4 e5"),
        game("Ann", "Bob", "1. e4 e5"),
        game("Bob", "Ann", "1. d4 d5"),
        game("Bob", "A. Nn", "1. c4 c5"),
        game("Ben", "Zoe", "1. c4 e5"),
    ];
    fs::write(dir.path().join("games.pgn"), games.concat()).unwrap();
    let served = Served::start(dir.path(), "games.pgn");
    let counts = |question: &str| {
        let found = served.json(&format!("/suggest?field=player&text=b{question}"));
        let found = found.as_array().unwrap().iter();
        let counts = found.map(|one| [&one["name"], &one["games"], &one["met"]].map(Value::clone));
        json!(counts.collect::<Vec<_>>())
    };
    assert_eq!(counts(""), json!([["Bob", 4, null], ["Ben", 1, null]]));
    assert_eq!(
        counts("&duplicates=once"),
        json!([["Bob", 3, null], ["Ben", 1, null]])
    );
    assert_eq!(counts("&with=Ann"), json!([["Bob", 4, 3], ["Ben", 1, 0]]));
    assert_eq!(
        counts(
            "&with=Ann&with=A. Nn&duplicates=once"
                .replace(' ', "+")
                .as_str()
        ),
        json!([["Bob", 3, 3], ["Ben", 1, 0]])
    );
    let refusal = served.get("/suggest?field=event&text=b&with=Ann");
    assert_eq!(
        (refusal.status, refusal.text().trim_end()),
        (
            400,
            "the parameters duplicates and with apply only to players: use field=player"
        )
    );
}

/// Returns the suggested names with their distances.
fn suggested(served: &Served, question: &str) -> Vec<(String, u64)> {
    let found = served.json(&format!("/suggest?{question}"));
    let found = found.as_array().unwrap().iter();
    let name = |one: &Value| one["name"].as_str().unwrap().to_owned();
    found
        .map(|one| (name(one), one["distance"].as_u64().unwrap()))
        .collect()
}

#[test]
fn names_are_suggested_by_their_words_and_with_typing_errors() {
    let (_dir, served) = served();
    let carlsen = ("Carlsen, Magnus".to_owned(), 0);
    for text in ["CARLSEN", "Carlsen,%20M", "magnus+carls"] {
        let found = suggested(&served, &format!("field=player&text={text}"));
        assert_eq!(found.first(), Some(&carlsen), "{text}");
    }
    // Spellings that filters do not distinguish are suggested as one name, in the most frequent spelling.
    assert_eq!(
        served.json("/suggest?field=player&text=carlsen&limit=1"),
        json!([{"name": "Carlsen, Magnus", "games": 4, "since": "2015-01", "until": "2015-02", "distance": 0}])
    );
    assert_eq!(
        suggested(&served, "field=player&text=muller+jorg"),
        [("Müller, Jörg".to_owned(), 0)]
    );
    assert_eq!(
        suggested(&served, "field=player&text=carlsne"),
        [
            ("Carlsen, Magnus".to_owned(), 1),
            ("Carlson, Max".to_owned(), 2)
        ]
    );
    assert_eq!(
        served.json("/suggest?field=event&text=wi"),
        json!([
            {"name": "Wijk", "games": 2, "since": "2015-01", "until": "2015-02", "distance": 0},
            {"name": "Wijk aan Zee", "games": 1, "since": "2015-01", "until": "2015-01", "distance": 0}
        ])
    );
    let openings = served.json("/suggest?field=opening&text=sicilian+defense");
    assert_eq!(
        openings[0],
        json!({"name": "Sicilian Defense", "games": 2, "since": "2015-01", "until": "2015-01",
            "eco": "B20", "uci": "e2e4,c7c5", "distance": 0})
    );
    // A query for a code lists each code of a name, and codes are matched without typing errors.
    for code in ["B26", "C98", "A62"] {
        let found = served.json(&format!("/suggest?field=opening&text={code}"));
        let found = found.as_array().unwrap();
        assert!(
            !found.is_empty() && found.iter().all(|one| one["eco"] == code),
            "{code}"
        );
    }
    let named = served.json("/suggest?field=opening&text=sicilian+defense+closed");
    let named = named.as_array().unwrap().iter();
    let named: Vec<_> = named.map(|one| one["name"].as_str().unwrap()).collect();
    assert_eq!(named[0], "Sicilian Defense: Closed");
    assert_eq!(named.iter().filter(|name| **name == named[0]).count(), 1);
    assert_eq!(suggested(&served, "field=player&text=%3F"), []);
    assert_eq!(
        suggested(&served, "field=player&source=games&text=tal").len(),
        1
    );
    for wrong in [
        "",
        "field=game",
        "field=player&source=x",
        "field=player&txt=a",
        "field=player&limit=x",
    ] {
        assert_eq!(
            served.get(&format!("/suggest?{wrong}")).status,
            400,
            "{wrong}"
        );
    }
    let long = "x".repeat(6_000);
    assert_eq!(suggested(&served, &format!("field=player&text={long}")), []);
}

#[test]
fn facets_say_what_each_value_would_give() {
    let (_dir, served) = served();
    let filters = "play=e2e4&speeds=classical&ratings=unknown&since=2015";
    let facets = served.json(&format!("/facets?{filters}"));
    let with = |other: &str| {
        let answer = served.json(&format!("/lichess?play=e2e4&{other}"));
        ["white", "draws", "black"]
            .map(|name| answer[name].as_u64().unwrap())
            .iter()
            .sum::<u64>()
    };
    assert_eq!(
        facets["games"],
        with("speeds=classical&ratings=unknown&since=2015")
    );
    for (speed, games) in facets["speeds"].as_object().unwrap() {
        assert_eq!(
            *games,
            with(&format!("speeds={speed}&ratings=unknown&since=2015")),
            "{speed}"
        );
    }
    for (rating, games) in facets["ratings"].as_object().unwrap() {
        assert_eq!(
            *games,
            with(&format!("speeds=classical&ratings={rating}&since=2015")),
            "{rating}"
        );
    }
    assert_eq!(facets["unknownRatings"], 2);
    assert_eq!(facets["ratings"]["1200"], 0);
    assert_eq!(facets["ratings"]["0"], 0);
    assert_eq!(facets["years"], json!({"2015": 1, "2016": 1}));
    assert!(facets.get("colors").is_none());
    let all = "ratings=0,1000,1200,1400,1600,1800,2000,2200,2500";
    // All groups mean all games, even those without a known rating.
    assert_eq!((with(all), with(&format!("{all},unknown"))), (4, 4));
    // In one of the two games, one rating is known.
    assert_eq!(with("ratings=2500"), 2);

    let facets = served.json("/facets?player=carlsen,+magnus&color=white");
    assert_eq!(facets["colors"], json!({"white": 2, "black": 2}));
    assert_eq!(facets["games"], 2);
    let once = served.json("/facets?player=carlsen,+magnus&duplicates=once");
    assert_eq!(
        (&once["games"], &once["variants"]),
        (&json!(3), &json!({"standard": 3}))
    );

    assert_eq!(
        served.json("/scores?by=rating"),
        json!({"scores": [
            {"rating": "2500", "white": 2, "draws": 0, "black": 1},
            {"rating": "unknown", "white": 1, "draws": 1, "black": 0}
        ]})
    );
    let scores = served.json("/scores?by=rating&ratings=2500&result=1-0");
    assert_eq!(
        scores,
        json!({"scores": [{"rating": "2500", "white": 2, "draws": 0, "black": 0}]})
    );
    for wrong in [
        "/facets?limit=3",
        "/facets?moves=3",
        "/scores",
        "/scores?by=age",
        "/facets?duplicates=twice",
    ] {
        assert_eq!(served.get(wrong).status, 400, "{wrong}");
    }
}

#[test]
fn openings_are_grouped_in_families_with_the_scores_of_a_player() {
    let (_dir, served) = served();
    let openings = served.json("/openings");
    assert_eq!(
        (&openings["games"], &openings["averageScore"]),
        (&json!(5), &json!(70.0))
    );
    let families = openings["families"].as_array().unwrap().iter();
    let found: Vec<Value> = families
        .map(|one| json!([one["name"], one["score"]]))
        .collect();
    let expected = json!([
        ["Sicilian Defense", 100.0],
        ["King's Pawn Game", 50.0],
        ["Queen's Pawn Game", 0.0]
    ]);
    assert_eq!(json!(found), expected);

    // With Black, Carlsen won the only game with another opening, so that the lost game is a point less than expected. All
    // games with White have this opening, so that nothing is expected of them.
    let openings = served.json("/openings?player=Carlsen,+Magnus&play=e2e4");
    let sicilian = &openings["families"][0];
    for (field, expected) in [
        ("eco", json!(["B20", "B27"])),
        ("wins", json!(2)),
        ("losses", json!(1)),
        ("points", json!(-1.0)),
        ("line", json!(["e2e4", "c7c5"])),
        ("lineGames", json!(3)),
    ] {
        assert_eq!(sicilian[field], expected, "{field}");
    }
    assert_eq!(served.json("/openings?duplicates=once")["games"], 4);
    for (query, part) in [
        ("limit=3", "unknown parameter limit: this address accepts"),
        (
            "fold=match",
            "the parameter fold has the unknown value \"match\": use variation",
        ),
    ] {
        let refused = served.get(&format!("/openings?{query}"));
        assert_eq!(refused.status, 400);
        assert!(refused.text().contains(part), "{refused:?}");
    }
}

#[test]
fn equal_games_count_once_if_that_is_asked_for() {
    let (dir, one) = served();
    let answer = one.json("/lichess?duplicates=once");
    assert_eq!(
        (&answer["white"], &answer["draws"], &answer["black"]),
        (&json!(2), &json!(1), &json!(1))
    );
    // The first duplicate that passes the filters is counted.
    let answer = one.json("/lichess?duplicates=once&event=wijk+aan+zee");
    assert_eq!(answer["white"], 1);
    let list = one.json("/games?duplicates=once&play=e2e4,c7c5,g1f3");
    assert_eq!(
        (&list["total"], &list["games"][0]["copies"]),
        (&json!(1), &json!(1))
    );
    assert_eq!(list["games"][0]["id"], "00000000");
    assert_eq!(one.json("/lichess")["white"], 3);
    drop(one);
    // Games of several sources can be duplicates, too.
    fs::copy(dir.path().join("games.pgn"), dir.path().join("again.pgn")).unwrap();
    let two = Served::start(dir.path(), "games.pgn again.pgn");
    assert_eq!(two.json("/lichess?duplicates=once")["white"], 2);
    assert_eq!(
        two.json("/lichess?duplicates=once&source=again")["white"],
        2
    );
    assert_eq!(two.json("/lichess")["white"], 6);
    let list = two.json("/games?duplicates=once&play=e2e4,c7c5,g1f3");
    assert_eq!(list["games"][0]["copies"], 3);
}

#[test]
fn of_equal_games_each_facet_counts_the_first_that_its_own_filter_passes() {
    let dir = temp();
    let game = |tags: &str| {
        format!(
            "[Date \"2015.01.05\"]\n[White \"A\"]\n[Black \"B\"]\n[Result \"1-0\"]\n{tags}\n1. e4 e5 1-0\n\n"
        )
    };
    let games = [
        "[TimeControl \"180\"]\n",
        "[WhiteElo \"2500\"]\n[BlackElo \"2500\"]\n",
        "[WhiteElo \"900\"]\n",
    ];
    let games = games.map(game).concat();
    fs::write(dir.path().join("games.pgn"), games).unwrap();
    let served = Served::start(dir.path(), "games.pgn");
    let once =
        |filters: &str| served.json(&format!("/lichess?duplicates=once&{filters}"))["white"].take();
    for filters in [
        "",
        "speeds=classical",
        "speeds=blitz",
        "ratings=2500",
        "ratings=unknown",
    ] {
        let facets = served.json(&format!("/facets?duplicates=once&{filters}"));
        assert_eq!(facets["games"], once(filters), "{filters}");
        let others = |group: &str| {
            if filters.starts_with(group) {
                ""
            } else {
                filters
            }
        };
        for group in ["speeds", "ratings"] {
            for (value, games) in facets[group].as_object().unwrap() {
                let filters = format!("{}&{group}={value}", others(group));
                assert_eq!(*games, once(&filters), "{filters}");
            }
        }
        let unknown = format!("{}&ratings=unknown", others("ratings"));
        assert_eq!(facets["unknownRatings"], once(&unknown), "{unknown}");
    }
    // Each counted game belongs to exactly one group.
    assert_eq!(
        served.json("/scores?by=rating&duplicates=once&speeds=classical"),
        json!({"scores": [{"rating": "2500", "white": 1, "draws": 0, "black": 0}]})
    );
}

#[test]
fn games_with_other_last_positions_or_other_ids_are_not_equal() {
    let dir = temp();
    let game = |site: &str, moves: &str| {
        format!(
            "[Site \"{site}\"]\n[Date \"2015.01.05\"]\n[White \"A\"]\n[Black \"B\"]\n\n1. {moves} 1-0\n\n"
        )
    };
    let firsts = |pawns: [char; 2], knights: [&'static str; 4]| {
        let pawns = ('a'..='h').flat_map(move |file| pawns.map(|rank| format!("{file}{rank}")));
        pawns.chain(knights.map(str::to_owned)).collect::<Vec<_>>()
    };
    let white = firsts(['3', '4'], ["Na3", "Nc3", "Nf3", "Nh3"]);
    let black = firsts(['6', '5'], ["Na6", "Nc6", "Nf6", "Nh6"]);
    // There are more positions than values of a byte.
    let mut games = String::new();
    for (white, black) in white
        .iter()
        .flat_map(|white| black.iter().map(move |black| (white, black)))
    {
        games += &game("?", &format!("{white} {black}"));
    }
    for id in ["abcdef01", "abcdef02", "abcdef02"] {
        games += &game(&format!("https://lichess.org/{id}"), "e4 e5 2. Nf3");
    }
    fs::write(dir.path().join("games.pgn"), games).unwrap();
    let served = Served::start(dir.path(), "games.pgn");
    assert_eq!(served.json("/lichess")["white"], 403);
    assert_eq!(served.json("/lichess?duplicates=once")["white"], 402);
}

#[test]
fn a_list_of_games_has_their_details_and_folds_matches() {
    let (_dir, served) = served();
    let list = served.json("/games?sort=id&limit=4");
    assert_eq!((&list["total"], &list["next"]), (&json!(5), &json!(4)));
    let game = &list["games"][0];
    for (name, value) in [
        ("date", json!("2015-01-05")),
        ("event", json!("Wijk")),
        ("eco", json!("B20")),
        ("plies", json!(3)),
        ("copies", json!(0)),
        ("id", json!("00000000")),
    ] {
        assert_eq!(game[name], value, "{name}");
    }
    assert_eq!(list["games"][2]["date"], "2015-02");
    assert_eq!(list["games"][3]["date"], "2016");
    let last = served.json("/games?sort=id&skip=4");
    assert_eq!(
        (&last["next"], &last["games"][0]["date"]),
        (&Value::Null, &Value::Null)
    );
    assert_eq!(last["games"][0]["event"], Value::Null);

    let folded = served.json("/games?sort=id&fold=match&limit=2");
    let ids = |list: &Value| {
        let games = list["games"].as_array().unwrap().iter();
        games
            .map(|game| game["id"].as_str().unwrap().to_owned())
            .collect::<Vec<_>>()
    };
    assert_eq!(ids(&folded), ["00000000", "00000001"]);
    assert_eq!(folded["games"][0]["match"], json!({"more": 1}));
    assert!(folded["games"][1].get("match").is_none());
    let rest = served.json("/games?sort=id&fold=match&limit=2&skip=2");
    assert_eq!(
        (ids(&rest), &rest["next"]),
        (
            vec!["00000003".to_owned(), "00000004".to_owned()],
            &Value::Null
        )
    );
}

#[test]
fn what_is_not_known_of_a_date_makes_games_neither_different_nor_a_match() {
    let dir = temp();
    let game = |white: &str, black: &str, date: &str| {
        format!(
            "[Event \"Riga\"]\n[Date \"{date}\"]\n[White \"{white}\"]\n[Black \"{black}\"]\n\n1. e4 1-0\n\n"
        )
    };
    let games = [
        game("Tal, M", "Kere, P", "2015.??.05"),
        game("Tal, M", "Kere, P", "2015.??.??"),
        game("Lee", "LEE", "????.??.??"),
        game("Lee", "Lee, A", "????.??.??"),
        game("Lee, A", "Lee", "????.??.01"),
        game("Lee, A", "Tal, M", "2016.01.01"),
        game("Lee, A", "Tal, M", "2016.01.02"),
    ];
    fs::write(dir.path().join("games.pgn"), games.concat()).unwrap();
    let served = Served::start(dir.path(), "games.pgn");
    assert_eq!(served.json("/lichess?duplicates=once")["white"], 6);
    let folded = served.json("/games?fold=match");
    assert_eq!(folded["games"].as_array().unwrap().len(), 5);
    assert_eq!(served.json("/games?limit=0")["next"], Value::Null);
    // A name that was typed completely is first, and a player with both colors in one game counts once.
    let lee = served.json("/suggest?field=player&text=lee&limit=1");
    assert_eq!(
        (&lee[0]["name"], &lee[0]["games"]),
        (&json!("Lee"), &json!(3))
    );
}

#[test]
fn a_list_names_no_page_beyond_the_limit_of_skip() {
    let dir = temp();
    let games = "1. e4 e5 1-0\n\n".repeat(10_010);
    fs::write(dir.path().join("games.pgn"), games).unwrap();
    let served = Served::start(dir.path(), "games.pgn");
    let next = |skip: usize| served.json(&format!("/games?skip={skip}&limit=1"))["next"].take();
    assert_eq!(next(9_999), 10_000);
    assert_eq!(next(10_000), Value::Null);
    let refused = served.get("/games?skip=10001&limit=1");
    assert_eq!(refused.status, 400);
    assert!(
        refused
            .text()
            .contains("\"10001\": use a number from 0 to 10000")
    );
    assert_eq!(served.json("/games?skip=9990")["next"], Value::Null);
}

#[test]
fn a_player_has_totals_from_the_players_side() {
    let (_dir, served) = served();
    let answer = served.json("/player?player=carlsen,+magnus&color=both");
    for (name, value) in [
        ("white", json!(3)),
        ("black", json!(1)),
        ("wins", json!(3)),
        ("losses", json!(1)),
        ("opponentRating", json!(2505)),
        ("playerRating", json!(2770)),
        ("lastPlayed", json!("2015-02")),
    ] {
        assert_eq!(answer[name], value, "{name}");
    }
    // Two games with rated opponents are too few.
    assert!(answer.get("performance").is_none());
    let e4 = &answer["moves"][0];
    assert_eq!(
        (&e4["uci"], &e4["wins"], &e4["losses"]),
        (&json!("e2e4"), &json!(2), &json!(1))
    );
    assert_eq!(
        (&e4["lastPlayed"], &e4["performance"]),
        (&json!("2015-01-05"), &Value::Null)
    );
    let black = served.json("/player?player=carlsen,+magnus&color=black&result=loss");
    assert_eq!(
        (&black["white"], &black["losses"], &black["black"]),
        (&json!(1), &json!(1), &json!(0))
    );
    let won = served.json("/lichess?player=carlsen,+magnus&result=win");
    assert_eq!((&won["white"], &won["black"]), (&json!(2), &json!(1)));
    assert_eq!(served.get("/lichess?result=win").status, 400);
}

#[test]
fn a_game_says_what_it_says_of_its_moves() {
    let (_dir, served) = served();
    let of_game = |path: &str| {
        let reply = served.ask("GET", path, "Accept: application/json\r\n");
        assert_eq!(reply.status, 200, "{}", reply.text());
        serde_json::from_slice::<Value>(&reply.body).unwrap()
    };
    let game = of_game("/game/00000000?play=e2e4");
    for (name, value) in [
        (
            "white",
            json!({"name": "Carlsen, Magnus", "rating": 2800, "title": "GM"}),
        ),
        ("result", json!("1-0")),
        ("site", json!("Wijk aan Zee")),
        ("round", json!("3.1")),
        ("date", json!("2015-01-05")),
        ("event", json!("Wijk")),
        ("eco", json!("B20")),
        ("opening", json!({"eco": "B27", "name": "Sicilian Defense"})),
        ("comments", json!(["Before."])),
        ("reached", json!([4, 3, 2])),
        ("ply", json!(1)),
        (
            "moves",
            json!([
                {"uci": "e2e4", "san": "e4", "clk": 179.0, "eval": {"cp": 30}, "nags": [1], "comments": ["Best (by test)."]},
                {"uci": "c7c5", "san": "c5", "eval": {"mate": -2}, "nags": [6]},
                {"uci": "g1f3", "san": "Nf3"}
            ]),
        ),
    ] {
        assert_eq!(game[name], value, "{name}");
    }
    assert_eq!(of_game("/game/00000000?play=d2d4")["ply"], Value::Null);
    assert_eq!(of_game("/game/00000003")["round"], Value::Null);
    assert_eq!(served.get("/game/00000000?limit=3").status, 400);
}

#[test]
fn history_by_year_has_all_games_and_the_moves_of_the_position() {
    let (_dir, served) = served();
    let answer = served.json("/lichess?history=moves&moves=1");
    assert_eq!(
        answer["history"],
        json!([
            {"year": 2015, "white": 2, "draws": 0, "black": 1, "moves": {"e2e4": 2}},
            {"year": 2016, "white": 0, "draws": 1, "black": 0, "moves": {"e2e4": 1}},
            {"year": null, "white": 1, "draws": 0, "black": 0, "moves": {"e2e4": 1}}
        ])
    );
    let months = served.json("/lichess?history=true");
    assert_eq!(months["history"].as_array().unwrap().len(), 2);
    // The history lists all games with a known month. The other games are counted separately.
    let of_months = months["history"].as_array().unwrap().iter();
    let games = of_months
        .map(|month| ["white", "draws", "black"].map(|name| month[name].as_u64().unwrap()));
    let listed: u64 = games.flatten().sum();
    assert!(listed < 5, "{months}");
    assert_eq!(months["polybook"]["unknownMonths"], 5 - listed);
    assert_eq!(answer["polybook"].get("unknownMonths"), None);
    assert_eq!(months.get("unknownMonths"), None);
}

#[test]
fn the_variants_of_a_collection_are_counted() {
    let dir = temp();
    let variants = crate::common::sample("variants.pgn").display().to_string();
    let served = Served::start(dir.path(), &*variants);
    let about = served.json("/about");
    assert_eq!(
        about["variants"],
        json!({"antichess": 4, "atomic": 4, "chess960": 4, "crazyhouse": 4, "horde": 4, "kingOfTheHill": 4,
            "racingKings": 4, "threeCheck": 4})
    );
    let facets = served.json("/facets?since=1000");
    assert_eq!(
        (&facets["games"], &facets["variants"]),
        (&json!(0), &about["variants"])
    );
}

#[test]
fn a_book_is_that_of_its_command() {
    let (dir, served) = served();
    let question = "player=carlsen,+magnus&color=white&side=white&minGame=1&depth=3&weights=games&duplicates=once";
    let size = served.json(&format!("/book.bin?{question}&count=true"));
    let command = size["command"].as_str().unwrap();
    assert_eq!(
        command,
        "polybook make-book --min-game 1 --max-ply 3 --only-white --win-factor 1 --draw-factor 1 --loss-factor 1 \
         --player 'carlsen, magnus' --color white --exact --duplicates once games.pgn --bin book.bin"
    );
    let book = served.get(&format!("/book.bin?{question}"));
    assert_eq!(
        book.header("content-type"),
        Some("application/octet-stream")
    );
    let args = |command: &str| {
        let (before, after) = command
            .split_once("'carlsen, magnus'")
            .unwrap_or((command, ""));
        let words = |text: &str| {
            text.split_whitespace()
                .map(str::to_owned)
                .collect::<Vec<_>>()
        };
        let mut all = words(before);
        if command.contains("magnus") {
            all.push("carlsen, magnus".to_owned());
        }
        all.extend(words(after));
        all.split_off(1)
    };
    ok(dir.path(), &args(command));
    assert_eq!(book.body, fs::read(dir.path().join("book.bin")).unwrap());
    assert_eq!(
        size,
        json!({"games": 1, "positions": 2, "entries": 2, "bytes": book.body.len(), "command": command})
    );

    let size = served.json(&format!("/book.pgn?{question}&count=true"));
    let (_, tree) = size["command"]
        .as_str()
        .unwrap()
        .split_once(" && ")
        .unwrap();
    assert_eq!(
        tree,
        "polybook tree book.bin --format pgn --out book.pgn --color white"
    );
    ok(dir.path(), &args(tree));
    let lines = served.get(&format!("/book.pgn?{question}"));
    assert_eq!(
        lines.header("content-type"),
        Some("application/x-chess-pgn")
    );
    let written = fs::read_to_string(dir.path().join("book.pgn")).unwrap();
    assert_eq!(lines.text(), written);
    assert!(lines.text().contains("1. e4"), "{}", lines.text());

    let none = served.json("/book.bin?since=2999-01&requireDate=true&count=true");
    assert_eq!((&none["games"], &none["entries"]), (&json!(0), &json!(0)));
    for wrong in [
        "player=nobody",
        "ratings=2500",
        "play=e2e4",
        "side=left",
        "minGame=x",
        "weights=heavy",
    ] {
        assert_eq!(
            served.get(&format!("/book.bin?{wrong}")).status,
            400,
            "{wrong}"
        );
    }
}

#[test]
fn a_repertoire_is_that_of_its_command() {
    let (dir, served) = served();
    let question = "side=white&depth=7&reach=3&minPly=2";
    for (name, by) in [("repertoire.pgn", "games"), ("repertoire.bin", "score")] {
        let path = format!("/{name}?{question}&by={by}");
        let size = served.json(&format!("{path}&count=true"));
        let command = size["command"].as_str().unwrap();
        let option = if by == "games" { " --by games" } else { "" };
        assert_eq!(
            command,
            format!(
                "polybook make-book --max-ply 7 --min-plies 2 games.pgn --counts counts && polybook repertoire \
                 build counts --color white --reach 3 --max-ply 7{option} --out {name}"
            )
        );
        for command in command.split(" && ") {
            let args: Vec<&str> = command.split(' ').skip(1).collect();
            ok(dir.path(), &args);
        }
        let built = served.get(&path);
        assert_eq!(built.status, 200, "{}", built.text());
        let expected = fs::read(dir.path().join(name)).unwrap();
        assert!(!expected.is_empty());
        assert_eq!(built.body, expected);
        assert_eq!(size["bytes"], expected.len());
        assert!(size["answers"].as_u64().unwrap() > 1, "{size}");
        fs::remove_dir_all(dir.path().join("counts")).unwrap();
    }
    for (wrong, why) in [
        ("", "the parameter side is missing"),
        (
            "side=both",
            "the parameter side has the unknown value \"both\": use white or black",
        ),
        (
            "side=white&player=nobody",
            "no player has exactly the name \"nobody\"",
        ),
        (
            "side=white&by=weight",
            "the parameter by has the unknown value \"weight\": use score or games",
        ),
        (
            "side=white&least=2",
            "unknown parameter least: this address accepts",
        ),
    ] {
        let refusal = served.get(&format!("/repertoire.bin?{wrong}"));
        assert_eq!(refusal.status, 400, "{wrong}");
        assert!(refusal.text().starts_with(why), "{}", refusal.text());
    }
    assert_eq!(
        served.ask("HEAD", "/repertoire.bin?side=white", "").status,
        400
    );
}

#[test]
fn gaps_under_filters_are_those_of_the_command() {
    let dir = temp();
    let dir = dir.path();
    fs::write(dir.join("games.pgn"), GAMES).unwrap();
    fs::write(dir.join("mine.pgn"), "1. e4 e6 2. d4 *\n").unwrap();
    let served = Served::start(dir, "games.pgn --repertoire mine.pgn:White");
    for (filters, options) in [("", ""), ("&minPly=3", "--min-plies 3")] {
        let path = format!("/gaps?repertoire=mine&side=white&depth=6&minGame=1{filters}");
        let found = served.json(&path);
        ok(
            dir,
            &format!("make-book -q --max-ply 6 games.pgn --counts counts --force {options}"),
        );
        let line = "repertoire gaps mine.pgn --against counts --color white --max-ply 6 --min-game 1 --json";
        let expected = ok_json(dir, line);
        // HTTP has camel case, and the command line snake case.
        let snake = |value: &Value| {
            let text = value.to_string();
            let names = ["one_in"].map(|name| (camel(name), name));
            let text = names
                .iter()
                .fold(text, |text, (camel, snake)| text.replace(camel, snake));
            serde_json::from_str::<Value>(&text).unwrap()
        };
        for name in ["gaps", "coverage", "positions"] {
            assert_eq!(snake(&found[name]), expected[name], "{name} {filters}");
        }
        assert_eq!(found["total"], expected["gaps"].as_array().unwrap().len());
        let gaps = found["gaps"].as_array().unwrap();
        assert!(!gaps.is_empty());
        let first = served.json(&format!("{path}&limit=1"));
        assert_eq!(first["gaps"], json!([gaps[0]]));
    }
    for (wrong, why) in [
        ("", "the parameter side is missing: use white or black"),
        (
            "side=white",
            "the parameter repertoire is missing: for white, use one of mine",
        ),
        (
            "side=white&repertoire=x",
            "no repertoire for white is called \"x\": use one of mine",
        ),
        (
            "side=black&repertoire=mine",
            "this server has no repertoire for black: start the server with a repertoire",
        ),
    ] {
        let refusal = served.get(&format!("/gaps?{wrong}"));
        assert_eq!(
            (refusal.status, refusal.text().trim_end()),
            (400, why),
            "{wrong}"
        );
    }
}

/// All paths to a position of a repertoire count, as in the list of gaps, regardless of the line that the user
/// entered.
#[test]
fn positions_of_repertoires_are_met_by_all_ways() {
    let dir = temp();
    let dir = dir.path();
    let games = [
        ("1. d4 Nf6 2. c4 e6 3. Nc3 Bb4", 3),
        ("1. d4 e6 2. c4 Nf6 3. Nc3 d5", 3),
        ("1. d4 d5", 4),
    ];
    let games = games.map(|(moves, times)| format!("{moves} *\n\n").repeat(times));
    fs::write(dir.join("games.pgn"), games.concat()).unwrap();
    fs::write(
        dir.join("mine.pgn"),
        "1. d4 Nf6 (1... e6 2. c4 Nf6 3. Nc3) 2. c4 e6 3. Nc3 *",
    )
    .unwrap();
    let served = Served::start(dir, "games.pgn --repertoire mine.pgn:white");
    let fen = "rnbqkb1r/pppp1ppp/4pn2/8/2PP4/2N5/PP2PPPP/R1BQKBNR_b_KQkq_-_0_3";
    for entered in ["play=d2d4,g8f6,c2c4,e7e6,b1c3", &format!("fen={fen}")] {
        let said = served.json(&format!("/repertoire?{entered}"));
        let said = &said["repertoires"][0];
        assert_eq!(said["isKnown"], true, "{entered}");
        let one_in = |value: &Value| value["oneIn"].as_f64().unwrap();
        assert!((one_in(said) - 10.0 / 6.0).abs() < 1e-6, "{said}");
        let found = served.json("/gaps?repertoire=mine&side=white");
        let replies = said["lineEnds"].as_array().unwrap();
        assert_eq!(replies.len(), 2);
        for reply in replies {
            let mut gaps = found["lineEnds"].as_array().unwrap().iter();
            let gap = gaps.find(|gap| gap["uci"] == reply["uci"] && gap["games"] == 3);
            assert!((one_in(reply) - one_in(gap.unwrap())).abs() < 1e-6);
        }
    }
    let outside = served.json("/repertoire?fen=4k3/8/8/8/8/8/8/4K3_b_-_-_0_1");
    assert_eq!(outside["repertoires"][0]["isKnown"], false);
    assert!(outside["repertoires"][0]["oneIn"].is_null());
}

#[test]
fn gaps_of_a_repertoire_from_a_position_begin_there() {
    let dir = temp();
    let dir = dir.path();
    let games = "1. e4 e5 2. Nf3 Nc6 *\n\n".repeat(3) + "1. e4 c5 *\n\n1. d4 d5 *\n\n";
    fs::write(dir.join("games.pgn"), games).unwrap();
    let fen = "rnbqkbnr/pppppppp/8/8/4P3/8/PPPP1PPP/RNBQKBNR b KQkq - 0 1";
    let pgn = format!("[SetUp \"1\"]\n[FEN \"{fen}\"]\n\n1... e5 2. Nf3 *\n");
    fs::write(dir.join("mine.pgn"), pgn).unwrap();
    fs::write(dir.join("usual.pgn"), "1. e4 e5 2. Nf3 *\n").unwrap();
    ok(dir, "make-book -q mine.pgn --min-game 1 --bin book.bin");
    let served = Served::start(
        dir,
        "games.pgn --repertoire mine.pgn:white --repertoire usual.pgn:white --repertoire book.bin:white",
    );
    let found = served.json("/gaps?repertoire=mine&side=white&minGame=1");
    assert_eq!(found["start"], fen);
    let gaps = found["gaps"].as_array().unwrap().iter();
    let gaps: Vec<_> = gaps
        .map(|gap| [&gap["line"], &gap["move"], &gap["oneIn"]])
        .collect();
    assert_eq!(json!(gaps[0]), json!(["", "c5", 4.0]), "{found}");
    assert_eq!(found["lineEnds"][0]["move"], "Nc6", "{found}");
    let said = served.json("/repertoire?play=e2e4&minGame=1");
    assert_eq!(said["repertoires"][0]["gaps"][0]["oneIn"], 4.0);
    let usual = served.json("/gaps?repertoire=usual&side=white");
    assert!(usual["start"].is_null());
    let refusal = served.get("/gaps?repertoire=book&side=white");
    assert_eq!(
        (refusal.status, refusal.text().trim_end()),
        (
            400,
            "the repertoire book contains no move in the first position"
        )
    );
}

/// Returns a name in snake case in camel case.
fn camel(name: &str) -> String {
    let (first, rest) = name.split_once('_').unwrap();
    let rest = rest
        .split('_')
        .map(|word| word[..1].to_uppercase() + &word[1..]);
    first.to_owned() + &rest.collect::<String>()
}

#[test]
fn moves_that_a_user_adds_belong_to_the_repertoire() {
    let dir = temp();
    let dir = dir.path();
    let games = "1. e4 e5 2. Nf3 Nc6 *\n\n1. e4 c5 2. Nf3 *\n\n1. d4 d5 *\n\n";
    fs::write(dir.join("games.pgn"), games).unwrap();
    let pgn = "[Event \"Mine\"]\n\n1. e4 {Best by test.} e5 2. Nf3 (2. f4 $1 exf4) Nc6 *\n";
    fs::write(dir.join("mine.pgn"), pgn).unwrap();
    let served = Served::start(dir, "games.pgn --repertoire mine.pgn:white");
    let mine = "repertoire=mine&side=white";
    let report = |edits: &str| {
        let found = served.json(&format!("/repertoire?play=e2e4&minGame=1&{mine}{edits}"));
        found["repertoires"][0].clone()
    };
    let known = report("");
    assert_eq!(known["gaps"][0]["san"], "c5");
    assert_eq!(known["pgn"], true);
    let answers = &known["moves"][0]["answers"];
    let answers: Vec<&Value> = answers
        .as_array()
        .unwrap()
        .iter()
        .map(|mv| &mv["san"])
        .collect();
    assert_eq!(answers, ["Nf3", "f4"]);

    let edits = "&edits=e2e4,c7c5,g1f3;d2d4";
    let edited = report(edits);
    assert_eq!(edited["gaps"], json!([]));
    let added = edited["moves"].as_array().unwrap();
    let added = added.iter().find(|mv| mv["san"] == "c5").unwrap();
    assert_eq!(added["answers"], json!([{"uci": "g1f3", "san": "Nf3"}]));
    let start = served.json(&format!("/repertoire?{mine}{edits}"));
    let own: Vec<&Value> = start["repertoires"][0]["moves"]
        .as_array()
        .unwrap()
        .iter()
        .map(|mv| &mv["san"])
        .collect();
    assert_eq!(own, ["e4", "d4"]);
    // Other requests still get the repertoire of the file.
    assert_eq!(report(""), known);

    let total =
        |edits: &str| served.json(&format!("/gaps?minGame=1&{mine}{edits}"))["total"].clone();
    assert_eq!(total(""), 1);
    let found = served.json(&format!("/gaps?{mine}{edits}"));
    assert_eq!(found["contradictions"], 2);
    assert_eq!(
        found["severalMoves"],
        json!([
            {
                "fen": "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1",
                "line": "",
                "moves": ["e4", "d4"],
            },
            {
                "fen": "rnbqkbnr/pppp1ppp/8/4p3/4P3/8/PPPP1PPP/RNBQKBNR w KQkq - 0 2",
                "line": "1. e4 e5",
                "moves": ["Nf3", "f4"],
            },
        ])
    );

    // The text of the file follows the added lines, and the file stays as it is.
    let saved = served.get(&format!("/repertoire.pgn?{mine}{edits}")).text();
    assert!(saved.ends_with(pgn), "{saved}");
    assert!(saved.contains("\n1. e4 c5 2. Nf3 *"), "{saved}");
    assert!(saved.contains("\n1. d4 *"), "{saved}");
    assert_eq!(fs::read_to_string(dir.join("mine.pgn")).unwrap(), pgn);
    assert_eq!(served.get(&format!("/repertoire.pgn?{mine}")).text(), pgn);
    // A request whose edits take ten seconds advises to do this. No test causes that message.
    let advice = "save the edited repertoire, and start the server with it";
    fs::write(dir.join("saved.pgn"), &saved).unwrap();
    let again = Served::start(dir, "games.pgn --repertoire saved.pgn:white");
    let found = again.json("/repertoire?play=e2e4");
    assert_eq!(found["repertoires"][0]["gaps"], json!([]), "{advice}");

    for (wrong, why) in [
        (
            "repertoire=mine&edits=e2e4",
            "the parameter side is missing: use white or black",
        ),
        (
            &*format!("{mine}&edits=e2e5"),
            "the parameter edits cannot be read: ",
        ),
        (
            &*format!("{mine}&edits=e2e4;"),
            "the parameter edits cannot be read: a line is empty",
        ),
    ] {
        for route in ["/repertoire", "/gaps", "/repertoire.pgn"] {
            let refusal = served.get(&format!("{route}?{wrong}"));
            assert_eq!(refusal.status, 400, "{route} {wrong}");
            assert!(refusal.text().starts_with(why), "{}", refusal.text());
        }
    }
}

#[test]
fn edits_that_are_too_long_for_an_address_are_sent_as_a_form() {
    let dir = temp();
    let dir = dir.path();
    fs::write(dir.join("games.pgn"), "1. e4 c5 2. Nf3 *\n\n1. e4 e5 *\n").unwrap();
    fs::write(dir.join("mine.pgn"), "1. e4 e5 2. Nf3 *\n").unwrap();
    let served = Served::start(dir, "games.pgn --repertoire mine.pgn:white");
    let form = "Content-Type: application/x-www-form-urlencoded";
    let mine = "repertoire=mine&side=white";
    let line = "e2e4,c7c5,g1f3";
    let lines = vec![line; 1000].join(";");
    for route in ["/repertoire", "/gaps", "/repertoire.pgn"] {
        let expected = served.get(&format!("{route}?{mine}&edits={line}"));
        assert_eq!(expected.status, 200, "{}", expected.text());
        let charset = format!("{form}; charset=UTF-8");
        let reply = served.post(route, &charset, &format!("{mine}&edits={line}"));
        assert_eq!(
            (reply.status, reply.text()),
            (200, expected.text()),
            "{route}"
        );
        // Part of the parameters may be in the address. The line is the same a thousand times.
        let reply = served.post(&format!("{route}?{mine}"), form, &format!("edits={lines}"));
        assert_eq!(reply.status, 200, "{route}: {}", reply.text());
        match route {
            "/repertoire.pgn" => assert!(reply.text().contains("1. e4 c5 2. Nf3 *")),
            _ => assert_eq!(reply.text(), expected.text(), "{route}"),
        }
        // The limit of 48 KiB applies to the form as the client sent it. If characters were escaped first, this form
        // would be too long.
        let longest = format!("edits={}", vec![line; 3275].join(";"));
        assert_eq!(longest.len() >> 10, 47);
        let reply = served.post(&format!("{route}?{mine}"), form, &longest);
        assert_eq!(reply.status, 200, "{route}: {}", reply.text());
        let too_long = format!("edits={}", vec![line; 4000].join(";"));
        for (headers, body, status, why) in [
            (
                form,
                &*too_long,
                413,
                "the form is too long: send at most 48 KiB",
            ),
            (
                form,
                "edits=e2e5",
                400,
                "the parameter edits cannot be read: ",
            ),
            (
                "Accept: */*",
                "edits=e2e4",
                415,
                "the body of the request is not a form: send it as application/x-www-form-urlencoded",
            ),
        ] {
            let reply = served.post(&format!("{route}?{mine}"), headers, body);
            assert_eq!(reply.status, status, "{route} {}", reply.text());
            assert!(reply.text().starts_with(why), "{}", reply.text());
        }
        let refused = served.ask("PUT", route, "");
        let allowed = refused.header("allow");
        assert_eq!((refused.status, allowed), (405, Some("GET,HEAD,POST")));
    }
    let prepare = "/prepare?player=a&me=b&color=black&repertoire=mine";
    let refusal = served.get(&format!("{prepare}&edits={line}"));
    let reply = served.post(prepare, form, &format!("edits={line}"));
    assert_eq!(
        (reply.status, reply.text()),
        (refusal.status, refusal.text())
    );
    let refused = served.ask("POST", "/lichess", "");
    assert_eq!(
        (refused.status, refused.header("allow")),
        (405, Some("GET,HEAD"))
    );
}

#[test]
fn a_move_that_a_user_removes_leaves_the_repertoire_with_its_subtree() {
    let dir = temp();
    let dir = dir.path();
    let games = "1. e4 e5 2. Nf3 Nc6 *\n\n1. e4 c5 2. Nf3 *\n\n1. d4 d5 *\n\n";
    fs::write(dir.join("games.pgn"), games).unwrap();
    let rest = "[Event \"Queen's pawn\"]\n\n1. d4 d5 2. c4 {Kept.} *\n";
    let pgn = format!(
        "[Event \"Mine\"]\n\n{{Intro}} 1. e4 {{Best.}} e5 (1... c5 2. Nf3 {{Open}} d6 3. d4) 2. Nf3 $1 \
         (2. f4 {{Sharp}} exf4) (2. Bc4) Nc6 3. Bb5 *\n\n{rest}"
    );
    fs::write(dir.join("mine.pgn"), &pgn).unwrap();
    fs::write(dir.join("bare.pgn"), "1. c4 *\n").unwrap();
    ok(dir, "make-book -q mine.pgn --min-game 1 --bin mine.bin");
    let served = Served::start(
        dir,
        "games.pgn --repertoire mine.pgn:white --repertoire mine.bin:black --repertoire bare.pgn:white",
    );
    let mine = "repertoire=mine&side=white";
    let report = |play: &str, edits: &str| {
        let found = served.json(&format!("/repertoire?minGame=1&play={play}&{mine}{edits}"));
        found["repertoires"][0].clone()
    };
    let sans = |moves: &Value| -> Vec<String> {
        let moves = moves.as_array().unwrap().iter();
        let mut sans: Vec<String> = moves
            .map(|mv| mv["san"].as_str().unwrap().to_owned())
            .collect();
        sans.sort();
        sans
    };
    let gaps = |edits: &str| {
        let found = served.json(&format!("/gaps?minGame=1&{mine}{edits}"));
        let gaps = found["gaps"].as_array().unwrap().iter();
        let gaps = gaps.map(|gap| gap["moves"].as_str().unwrap().to_owned());
        (gaps.collect::<Vec<_>>(), found["coverage"].clone())
    };

    // The answer to 1... c5 is removed, so the reply is a gap, and what follows the answer is unknown.
    let edits = "&edits=-e2e4,c7c5,g1f3";
    assert_eq!(sans(&report("e2e4", "")["moves"]), ["c5", "e5"]);
    assert_eq!(sans(&report("e2e4", edits)["moves"]), ["e5"]);
    assert_eq!(sans(&report("e2e4", edits)["gaps"]), ["c5"]);
    assert_eq!(report("e2e4,c7c5,g1f3,d7d6", "")["isKnown"], true);
    assert_eq!(report("e2e4,c7c5,g1f3,d7d6", edits)["isKnown"], false);
    let (known, covered) = gaps("");
    let (left, less) = gaps(edits);
    assert!(!known.contains(&"1. e4 c5".to_owned()), "{known:?}");
    assert!(left.contains(&"1. e4 c5".to_owned()), "{left:?}");
    let share = |coverage: &Value| coverage[0]["share"].as_f64().unwrap();
    assert!(share(&less) < share(&covered), "{less} {covered}");

    // The other answers stay. A line that is added later marks its moves as added.
    let edits = "&edits=-e2e4,e7e5,g1f3;e2e4,e7e5,d2d4";
    let own = report("e2e4,e7e5", edits);
    assert_eq!(sans(&own["moves"]), ["Bc4", "d4", "f4"]);
    for mv in own["moves"].as_array().unwrap() {
        let is_added = mv["san"] == "d4";
        assert_eq!(
            mv["added"],
            if is_added { json!(true) } else { json!(null) }
        );
    }
    let saved = served.get(&format!("/repertoire.pgn?{mine}{edits}")).text();
    let (added, left) = saved.split_at(saved.find("[Event \"Mine\"]").unwrap());
    assert!(added.contains("1. e4 e5 2. d4 *"), "{added}");
    assert_eq!(
        left,
        format!(
            "[Event \"Mine\"]\n\n{{Intro}} 1. e4 {{Best.}} e5 (1... c5 2. Nf3 {{Open}} d6 3. d4) \
             2. f4 {{Sharp}} (2. Bc4) exf4 *\n\n{rest}"
        )
    );
    // The saved file is the repertoire that the page showed.
    fs::write(dir.join("saved.pgn"), &saved).unwrap();
    let again = Served::start(dir, "games.pgn --repertoire saved.pgn:white");
    for play in [
        "",
        "e2e4",
        "e2e4,e7e5",
        "e2e4,e7e5,g1f3",
        "e2e4,e7e5,f2f4,e5f4",
    ] {
        let new = again.json(&format!("/repertoire?play={play}"))["repertoires"][0].clone();
        let old = report(play, edits);
        assert_eq!(new["isKnown"], old["isKnown"], "{play}");
        assert_eq!(sans(&new["moves"]), sans(&old["moves"]), "{play}");
    }
    // The repertoire is empty after its first moves are removed.
    let edits = "&edits=-e2e4;-d2d4";
    assert_eq!(report("", edits)["moves"], json!([]));
    let refusal = served.get(&format!("/gaps?{mine}{edits}"));
    assert_eq!(refusal.status, 400);
    assert_eq!(
        refusal.text().trim_end(),
        "the repertoire mine contains no move in the first position"
    );
    let bare = served.json("/repertoire?repertoire=bare&side=white&edits=-c2c4");
    assert_eq!(bare["repertoires"][0]["moves"], json!([]));
    // The saved file has a game without moves, so that it can be opened.
    let bare = "/repertoire.pgn?repertoire=bare&side=white&edits=-c2c4";
    fs::write(dir.join("empty.pgn"), served.get(bare).body).unwrap();
    ok(dir, "repertoire check -q empty.pgn games.pgn --color white");
    let empty = Served::start(dir, "games.pgn --repertoire empty.pgn:white");
    let empty = empty.json("/repertoire");
    assert_eq!(empty["repertoires"][0]["moves"], json!([]));
    // The file stays as it is, and other requests get it unchanged.
    assert_eq!(fs::read_to_string(dir.join("mine.pgn")).unwrap(), pgn);
    assert_eq!(served.get(&format!("/repertoire.pgn?{mine}")).text(), pgn);

    for (wrong, why) in [
        (
            "side=white&edits=-",
            "the parameter edits cannot be read: a line is empty",
        ),
        (
            "side=white&edits=-e2e4,c7c5",
            "the parameter edits cannot be read: -e2e4,c7c5: the last move does not",
        ),
        (
            "side=black&edits=-e2e4,c7c5",
            "the repertoire mine is not a PGN file",
        ),
    ] {
        for route in ["/repertoire", "/gaps", "/repertoire.pgn"] {
            let refusal = served.get(&format!("{route}?repertoire=mine&{wrong}"));
            assert_eq!(refusal.status, 400, "{route} {wrong}");
            assert!(refusal.text().starts_with(why), "{}", refusal.text());
        }
    }
}

/// Opening a pipe that no program writes to blocks the thread.
#[cfg(unix)]
#[test]
fn a_repertoire_that_became_a_pipe_is_refused_and_a_renamed_one_is_read() {
    let dir = temp();
    let dir = dir.path();
    fs::write(dir.join("games.pgn"), GAMES).unwrap();
    let mine = dir.join("mine.pgn");
    fs::write(&mine, "1. e4 e5 2. Nf3 *\n").unwrap();
    let served = Served::start(dir, "games.pgn --repertoire mine.pgn:white");
    let paths = |removed: &str| {
        ["/repertoire", "/gaps", "/repertoire.pgn"]
            .map(|route| format!("{route}?repertoire=mine&side=white&edits=-{removed}"))
    };
    // A second name changes only the status of the file.
    fs::hard_link(&mine, dir.join("link.pgn")).unwrap();
    for path in paths("e2e4,e7e5,g1f3") {
        let reply = served.get(&path);
        assert_eq!(reply.status, 200, "{path}: {}", reply.text());
    }
    make_slow(&mine);
    for path in paths("e2e4") {
        let refusal = served.get(&path);
        assert_eq!(refusal.status, 400, "{path}");
        assert_eq!(
            refusal.text().trim_end(),
            "the file of the repertoire mine has changed since the server started: start the server again when no \
             program writes the file"
        );
    }
    assert_eq!(served.json("/repertoire")["repertoires"][0]["name"], "mine");
    fs::remove_file(&mine).unwrap();
    fs::rename(dir.join("link.pgn"), &mine).unwrap();
    let served = Served::start(dir, "games.pgn --repertoire mine.pgn:white");
    for path in paths("e2e4,e7e5,g1f3") {
        assert_eq!(served.get(&path).status, 200, "{path}");
    }
}

#[test]
fn an_answer_about_other_books_or_repertoires_is_another() {
    let dir = temp();
    let dir = dir.path();
    fs::write(dir.join("games.pgn"), GAMES).unwrap();
    fs::write(dir.join("mine.pgn"), "1. e4 *").unwrap();
    ok(dir, "make-book -q games.pgn --min-game 1 --bin mine.bin");
    ok(dir, "make-book -q games.pgn --explorer x.idx");
    let etag = |options: &str| {
        let served = Served::start(dir, &format!("-q x.idx {options}"));
        let reply = served.get("/repertoire");
        reply.header("etag").unwrap().to_owned()
    };
    let plain = etag("");
    assert_eq!(etag(""), plain);
    let white = etag("--repertoire mine.pgn:white");
    assert_ne!(white, plain);
    assert_ne!(etag("--repertoire mine.pgn:black"), white);
    assert_ne!(etag("--book mine.bin"), plain);
    fs::write(dir.join("mine.pgn"), "1. d4 d5 *").unwrap();
    assert_ne!(etag("--repertoire mine.pgn:white"), white);
}

#[test]
fn a_book_of_files_that_have_changed_is_refused() {
    let (dir, served) = served();
    assert_eq!(served.get("/book.bin?minGame=1").status, 200);
    assert_eq!(served.get("/book.bin?minGame=1&moves=3").status, 400);
    let hill = served.get("/book.bin?variant=kingOfTheHill");
    assert_eq!(hill.status, 400, "{}", hill.text());
    let pgn = dir.path().join("games.pgn");
    let refused = |served: &Served, expected: &str| {
        for path in ["/book.bin?minGame=2", "/repertoire.pgn?side=white"] {
            let refusal = served.get(path);
            let text = refusal.text();
            assert_eq!(refusal.status, 400, "{text}");
            assert!(text.contains(expected), "{text}");
        }
    };
    // The file has as many games as before, and as many bytes.
    let changed = GAMES.replacen("1-0", "0-1", 2);
    assert_ne!(changed, GAMES);
    fs::write(&pgn, &changed).unwrap();
    refused(
        &served,
        "games.pgn has changed since the server started: restart the server when no other program is writing the file",
    );
    // A server that starts with the changed file indexes it again.
    drop(served);
    let served = Served::start(dir.path(), "games.pgn");
    assert_eq!(served.get("/book.bin?minGame=1").status, 200);
    // Another file takes the name. It has the same content and the same time.
    let copy = dir.path().join("copy.pgn");
    fs::write(&copy, &changed).unwrap();
    let time = pgn.metadata().unwrap().modified().unwrap();
    set_modified(&copy, time);
    fs::rename(&copy, &pgn).unwrap();
    refused(&served, "has changed since the server started");
}

/// Sets the modification time of a file.
fn set_modified(path: &std::path::Path, time: std::time::SystemTime) {
    let file = fs::File::options().write(true).open(path).unwrap();
    file.set_modified(time).unwrap();
}

#[test]
fn a_book_of_files_that_were_changed_before_the_server_started_is_refused() {
    let dir = temp();
    let pgn = dir.path().join("games.pgn");
    fs::write(&pgn, GAMES).unwrap();
    ok(dir.path(), "make-book -q games.pgn --explorer games.idx");
    let made = dir.path().join("games.idx").metadata().unwrap();
    let made = made.modified().unwrap();
    let second = std::time::Duration::from_secs(1);
    fs::write(&pgn, GAMES.replacen("1-0", "0-1", 2)).unwrap();
    for (time, status) in [(made - second, 200), (made + second / 1000, 400)] {
        set_modified(&pgn, time);
        let served = Served::start(dir.path(), "games.idx");
        let book = served.get("/book.bin?minGame=1");
        assert_eq!(book.status, status);
        let text = book.text();
        let expected = "the file games.pgn was modified after the index of games was made: make the index again";
        assert_eq!(text.contains(expected), status == 400, "{text}");
    }
    ok(
        dir.path(),
        "make-book -q games.pgn --explorer games.idx --force",
    );
    let served = Served::start(dir.path(), "games.idx");
    assert_eq!(served.get("/book.bin?minGame=1").status, 200);
}

#[test]
fn an_operator_limits_the_games_of_books() {
    let dir = temp();
    fs::write(dir.path().join("games.pgn"), GAMES).unwrap();
    let served = Served::start(dir.path(), "games.pgn --book-games 4");
    let refusal = served.get("/book.bin?count=true");
    assert_eq!(refusal.status, 400);
    let advice =
        "at most 4: use polybook make-book, or start the server with a larger --book-games";
    assert!(refusal.text().contains(advice), "{}", refusal.text());
    ok(
        dir.path(),
        "make-book -q games.pgn --min-game 1 --bin book.bin",
    );
    let served = Served::start(dir.path(), "games.pgn --book-games 100");
    assert_eq!(served.get("/book.bin?count=true&minGame=1").status, 200);
}

#[cfg(unix)]
#[test]
fn one_book_is_made_at_a_time_and_none_for_a_client_that_is_gone() {
    use std::{io::Write, thread};

    let (dir, pgn) = slow_games();
    let served = Served::start(dir.path(), "games.idx");
    let mut client = served.connect();
    let host = served.address;
    write!(
        client,
        "GET /book.bin?minGame=1 HTTP/1.1\r\nHost: {host}\r\n\r\n"
    )
    .unwrap();
    let mut games = fs::OpenOptions::new().write(true).open(&pgn).unwrap();
    fs::remove_file(&pgn).unwrap();
    fs::write(&pgn, GAMES).unwrap();
    // The server refuses a file that is newer than its index.
    set_modified(&pgn, std::time::SystemTime::UNIX_EPOCH);

    thread::scope(|scope| {
        // This request waits for the book of the first client.
        let next = scope.spawn(|| served.get("/book.bin?minGame=1"));
        assert_eq!(served.json("/lichess")["white"], 3);
        drop(client);
        // The run reads games until it ends and closes the file.
        until("the run ends", || {
            games.write_all(GAMES.as_bytes()).is_err()
        });
        let next = next.join().unwrap();
        assert_eq!((next.status, next.body.is_empty()), (200, false));
    });
}

#[test]
fn a_download_takes_the_book_that_was_made_for_its_size() {
    let (dir, served) = served();
    let pgn = dir.path().join("games.pgn");
    for (path, other) in [
        ("/book.bin?minGame=1&depth=7", "/book.bin?minGame=1&depth=8"),
        (
            "/book.pgn?side=white&minGame=1",
            "/book.pgn?side=black&minGame=1",
        ),
        ("/repertoire.bin?side=white", "/repertoire.bin?side=black"),
        ("/repertoire.pgn?side=white", "/repertoire.bin?side=white"),
    ] {
        let made = served.get(path);
        assert_eq!(made.status, 200, "{path}: {}", made.text());
        let size = served.json(&format!("{path}&count=true"));
        assert_eq!(size["bytes"], made.body.len(), "{path}");
        // A book with other options is not the one that is kept.
        let different = served.get(other);
        assert_eq!(different.status, 200, "{other}");
        served.json(&format!("{path}&count=true"));
        assert_eq!(served.get(path).body, made.body, "{path}");
        assert_eq!(served.get(other).body, different.body, "{other}");
    }
    // Neither is a book of files that have changed meanwhile.
    let path = "/book.bin?minGame=1";
    served.json(&format!("{path}&count=true"));
    let text = fs::read_to_string(&pgn).unwrap();
    fs::write(&pgn, format!("{text}{GAMES}")).unwrap();
    assert_eq!(served.get(path).status, 400);
}

#[test]
fn an_empty_book_is_no_download() {
    let (_dir, served) = served();
    let size = served.json("/book.bin?minGame=1000&count=true");
    assert_eq!(
        (&size["entries"], &size["command"]),
        (&json!(0), &Value::Null)
    );
    assert_eq!(served.get("/book.bin?minGame=1000").status, 400);
}

/// Replaces a file by a pipe that the test can keep open as long as it likes.
#[cfg(unix)]
fn make_slow(pgn: &std::path::Path) {
    fs::remove_file(pgn).unwrap();
    crate::common::make_fifo(pgn);
}

/// Makes an index of games, and replaces their file by a pipe. Returns the directory and the path of the pipe.
#[cfg(unix)]
fn slow_games() -> (TempDir, std::path::PathBuf) {
    let dir = temp();
    let pgn = dir.path().join("games.pgn");
    fs::write(&pgn, GAMES).unwrap();
    ok(dir.path(), "make-book -q games.pgn --explorer games.idx");
    make_slow(&pgn);
    (dir, pgn)
}

#[cfg(unix)]
#[test]
fn few_wait_for_books_and_the_run_ends_with_the_server() {
    use std::{
        io::{Read, Write},
        thread,
        time::Duration,
    };

    let (dir, pgn) = slow_games();
    let temporary = dir.path().join("temporary");
    fs::create_dir(&temporary).unwrap();
    let served = Served::start_with(dir.path(), "games.idx", |serve| {
        serve.env("TMPDIR", &temporary);
    });
    let host = served.address;
    // A waiting request holds a permit, and an answered request holds none.
    let mut clients = Vec::new();
    let mut is_refused = || {
        let mut client = served.connect();
        let patience = Some(Duration::from_millis(200));
        client.set_read_timeout(patience).unwrap();
        let asked = format!("GET /book.bin?minGame=1 HTTP/1.1\r\nHost: {host}\r\n\r\n");
        client.write_all(asked.as_bytes()).unwrap();
        let mut answer = [0; 1 << 10];
        let length = client.read(&mut answer).unwrap_or(0);
        clients.push(client);
        String::from_utf8_lossy(&answer[..length]).contains("as many books as it can")
    };
    assert!(!is_refused());
    let mut games = fs::OpenOptions::new().write(true).open(&pgn).unwrap();
    until("all places are taken", is_refused);
    assert_eq!(served.json("/lichess")["white"], 3);
    assert_eq!(fs::read_dir(&temporary).unwrap().count(), 1);
    thread::scope(|scope| {
        scope.spawn(|| while games.write_all(GAMES.as_bytes()).is_ok() {});
        served.signal(rustix::process::Signal::TERM);
    });
    assert_eq!(fs::read_dir(&temporary).unwrap().count(), 0);
    drop(clients);
}

/// A visitor of a proxy who sends many requests for books keeps nobody else from a book, whatever addresses the visitor
/// writes into the header of the proxy.
#[cfg(unix)]
#[test]
fn one_visitor_of_a_proxy_does_not_deny_books_to_others() {
    use std::{
        io::{Read, Write},
        time::Duration,
    };

    let (dir, _) = slow_games();
    let served = Served::start(
        dir.path(),
        "-q games.idx --trust-proxy 127.0.0.1 --threads 2",
    );
    let host = served.address;
    let ask = |forwarded: &str, path: &str| {
        let mut client = served.connect();
        let asked =
            format!("GET {path} HTTP/1.1\r\nHost: {host}\r\nX-Forwarded-For: {forwarded}\r\n\r\n");
        client.write_all(asked.as_bytes()).unwrap();
        client
    };
    let answer = |client: &mut std::net::TcpStream| {
        client.set_read_timeout(None).unwrap();
        let mut answer = [0; 1 << 10];
        let length = client.read(&mut answer).unwrap();
        String::from_utf8_lossy(&answer[..length]).into_owned()
    };
    let waits = |client: &mut std::net::TcpStream| {
        let patience = Some(Duration::from_millis(200));
        client.set_read_timeout(patience).unwrap();
        client.peek(&mut [0]).is_err()
    };
    let is_refused = |answer: &str| answer.contains("as many books as it can");
    let path = "/book.bin?minGame=1&depth=";
    // The first book waits for the games, and the second for the first.
    let mut greedy: Vec<_> = (1..3)
        .map(|depth| ask("192.0.2.1", &format!("{path}{depth}")))
        .collect();
    assert!(greedy.iter_mut().all(waits));
    for depth in 3..40 {
        let forged = format!("198.51.100.{depth}, 192.0.2.1");
        let mut client = ask(&forged, &format!("{path}{depth}"));
        assert!(is_refused(&answer(&mut client)), "{forged}");
    }
    let mut others: Vec<_> = (2..6)
        .map(|visitor| {
            ask(
                &format!("192.0.2.1, 192.0.2.{visitor}"),
                &format!("{path}2"),
            )
        })
        .collect();
    assert!(others.iter_mut().all(waits));
    // Requests that need other threads are answered.
    assert!(answer(&mut ask("192.0.2.1", "/lichess")).starts_with("HTTP/1.1 200"));
}

#[test]
fn pages_of_other_sites_make_no_books() {
    let dir = temp();
    fs::write(dir.path().join("games.pgn"), GAMES).unwrap();
    let served = Served::start(dir.path(), "games.pgn --allow-origin https://a.example");
    let status = |method, headers| {
        let reply = served.ask(method, "/book.bin?minGame=1", headers);
        reply.status
    };
    assert_eq!(status("GET", "Sec-Fetch-Site: same-origin\r\n"), 200);
    assert_eq!(status("GET", "Sec-Fetch-Site: cross-site\r\n"), 403);
    let other = "Sec-Fetch-Site: cross-site\r\nOrigin: https://b.example\r\n";
    assert_eq!(status("GET", other), 403);
    let allowed = "Sec-Fetch-Site: cross-site\r\nOrigin: https://a.example\r\n";
    assert_eq!(status("GET", allowed), 200);
    assert_eq!(status("HEAD", ""), 400);
}

#[cfg(unix)]
#[test]
fn lists_of_games_do_not_read_the_games() {
    let (dir, served) = served();
    make_slow(&dir.path().join("games.pgn"));
    assert_eq!(served.json("/games")["total"], 5);
}

#[cfg(unix)]
#[test]
fn the_page_is_there_while_the_games_are_indexed() {
    use std::io::Write;

    let dir = temp();
    let fifo = dir.path().join("slow.pgn");
    crate::common::make_fifo(&fifo);
    let mut served = Served::start_at_once(dir.path(), "slow.pgn --allow-origin https://a.example");
    // The index waits for the games.
    let mut games = fs::OpenOptions::new().write(true).open(&fifo).unwrap();
    let about = served.json("/about");
    assert_eq!(about["sources"][0]["name"], "slow");
    assert!(about["indexing"]["read"].is_u64(), "{about}");
    assert!(about["indexing"].get("done").is_some(), "{about}");
    assert_eq!(served.get("/").status, 200);
    let refusal = served.get("/lichess");
    assert_eq!(
        (refusal.status, refusal.header("retry-after")),
        (503, Some("1"))
    );
    assert_eq!(served.ask("GET", "/about", "Host: evil\r\n").status, 421);
    let asks =
        "Access-Control-Request-Method: GET\r\nAccess-Control-Request-Headers: if-none-match\r\n";
    for (method, path, headers, status) in [
        ("GET", "/about", "", 200),
        ("GET", "/lichess", "", 503),
        ("OPTIONS", "/about", asks, 200),
        ("OPTIONS", "/lichess", asks, 200),
    ] {
        let from = |origin: &str| {
            let site = format!("Sec-Fetch-Site: cross-site\r\nOrigin: {origin}\r\n{headers}");
            served.ask(method, path, &site)
        };
        let reply = from("https://a.example");
        assert_eq!(reply.status, status, "{method} {path}");
        let reader = reply.header("access-control-allow-origin");
        assert_eq!(reader, Some("https://a.example"), "{method} {path}");
        if method == "GET" {
            let exposed = reply.header("access-control-expose-headers").unwrap();
            assert!(exposed.contains("retry-after"), "{exposed}");
        }
        assert_eq!(from("https://b.example").status, 403, "{method} {path}");
    }
    games.write_all(GAMES.as_bytes()).unwrap();
    drop(games);
    until("the games are served", || {
        let reply = served.try_get("/lichess");
        reply.is_some_and(|reply| reply.status == 200)
    });
    assert!(served.json("/about").get("indexing").is_none());
    assert!(served.is_alive());
}
