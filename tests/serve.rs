//! The API of `polybook serve`: the answers of its routes.

use std::fs;
#[cfg(target_os = "linux")]
use std::{
    io::{BufRead, BufReader, Read, Write},
    os::unix::fs::PermissionsExt,
    path::PathBuf,
};

#[cfg(unix)]
use rustix::process::Signal;

#[cfg(unix)]
use crate::common::make_fifo;
use crate::common::{fails, ok, sample, served::Served, temp, until};
#[cfg(target_os = "linux")]
use crate::common::{polybook_in, skip};
use serde_json::{Value, json};
use tempfile::TempDir;

/// Starts a server with an index of the famous games.
fn famous() -> (TempDir, Served) {
    let dir = temp();
    let pgn = sample("famous.pgn");
    let line = format!("make-book -q {} --explorer famous", pgn.display());
    ok(dir.path(), &line);
    let served = Served::start(dir.path(), "famous");
    (dir, served)
}

/// Returns the keys of an object, in order.
fn keys(value: &Value) -> Vec<&str> {
    value
        .as_object()
        .unwrap()
        .keys()
        .map(String::as_str)
        .collect()
}

fn games(value: &Value) -> u64 {
    ["white", "draws", "black"]
        .iter()
        .map(|name| value[name].as_u64().unwrap())
        .sum()
}

#[test]
fn the_answer_has_the_form_of_the_contract() {
    let (_dir, served) = famous();
    let answer = served.json("/lichess?play=e2e4,e7e5,g1f3&history=true&since=1800&until=2020");
    assert_eq!(
        keys(&answer),
        [
            "white",
            "draws",
            "black",
            "moves",
            "recentGames",
            "topGames",
            "opening",
            "queuePosition",
            "history",
            "polybook"
        ]
    );
    let moves = answer["moves"].as_array().unwrap();
    let first = &moves[0];
    // polybook's own keys follow.
    let of_lichess = [
        "uci",
        "san",
        "averageRating",
        "white",
        "draws",
        "black",
        "game",
        "opening",
    ];
    assert!(keys(first).starts_with(&of_lichess), "{first}");
    assert_eq!(games(&answer), moves.iter().map(games).sum::<u64>());
    let once = moves.iter().find(|mv| games(mv) == 1).unwrap();
    assert_eq!(
        keys(&once["game"]),
        [
            "id", "winner", "speed", "mode", "black", "white", "year", "month"
        ]
    );
    assert_eq!(answer["opening"]["name"], "King's Knight Opening");
    let board = &answer["polybook"];
    assert_eq!(
        keys(board),
        [
            "fen",
            "check",
            "line",
            "legal",
            "unknownMonths",
            "transpositions"
        ]
    );
    assert_eq!(board["line"][2]["san"], "Nf3");
    assert_eq!(board["legal"].as_array().unwrap().len(), 29);

    let masters = served.json("/masters?play=e2e4&topGames=2&since=1800");
    assert_eq!(
        masters,
        served.json("/master?play=e2e4&topGames=2&since=1800")
    );
    assert_eq!(masters["topGames"].as_array().unwrap().len(), 2);
    assert!(masters.get("recentGames").is_none() && masters.get("history").is_none());
    let game = &masters["topGames"][0];
    assert_eq!(
        keys(game),
        ["uci", "id", "winner", "black", "white", "year", "month"]
    );
}

#[test]
fn a_player_is_answered_in_one_line() {
    let (_dir, served) = famous();
    let reply = served.get("/player?player=morphy,%20PAUL&color=white");
    assert_eq!(reply.header("content-type"), Some("application/x-ndjson"));
    let text = reply.text();
    assert!(text.ends_with('\n') && text.lines().count() == 1, "{text}");
    let answer: Value = serde_json::from_str(&text).unwrap();
    assert!(games(&answer) > 0 && answer["moves"][0].get("performance").is_some());
    assert!(answer.get("topGames").is_none());
    assert_eq!(
        served.get("/personal?player=missing&color=black").status,
        200
    );
    assert_eq!(served.get("/player?player=&color=white").status, 400);
    assert_eq!(served.get("/player?player=a").status, 400);
}

#[test]
fn a_name_that_no_game_has_is_answered_with_names_like_it() {
    let (_dir, served) = famous();
    for path in [
        "/player?player=Morfy,+Paul&color=white",
        "/lichess?player=Morfy,+Paul",
        "/lichess?opponent=Morfy,+Paul&player=Anderssen,+Adolf",
    ] {
        let answer = served.json(path);
        assert_eq!(games(&answer), 0, "{path}");
        let unknown = &answer["polybook"]["unknownName"];
        assert_eq!(unknown["name"], "Morfy, Paul", "{path}");
        assert_eq!(unknown["nearest"][0], "Morphy, Paul", "{path}");
    }
    let expected = json!({
        "name": "Morfy, Paul",
        "nearest": served.json("/lichess?player=Morfy,+Paul")["polybook"]["unknownName"]["nearest"],
    });
    for path in [
        "/games?player=Morfy,+Paul",
        "/openings?player=Morfy,+Paul",
        "/facets?player=Morfy,+Paul",
        "/scores?by=rating&player=Morfy,+Paul",
        "/repertoire?player=Morfy,+Paul",
        "/prepare?player=Morfy,+Paul&color=white&me=Morphy,+Paul",
        "/prepare?player=Morphy,+Paul&color=white&me=Morfy,+Paul",
    ] {
        assert_eq!(served.json(path)["unknownName"], expected, "{path}");
        let known = path.replace("Morfy", "Morphy");
        assert_eq!(served.json(&known).get("unknownName"), None, "{known}");
    }
    for path in [
        "/book.bin?player=Morfy,+Paul",
        "/book.pgn?player=Morfy,+Paul&count=true",
        "/repertoire.pgn?side=white&player=Morfy,+Paul",
    ] {
        let refused = served.get(path);
        assert_eq!(refused.status, 400, "{path}");
        let problem =
            "no player has exactly the name \"Morfy, Paul\": did you mean \"Morphy, Paul\"";
        assert!(refused.text().starts_with(problem), "{refused:?}");
    }
    for path in [
        "/player?player=Morphy,+Paul&color=white",
        // The player did not reach this position.
        "/player?player=Morphy,+Paul&color=white&play=a2a4,a7a5,h2h4",
        "/lichess",
    ] {
        let answer = served.json(path);
        assert!(answer["polybook"].get("unknownName").is_none(), "{path}");
    }
}

#[test]
fn a_name_of_the_user_that_no_game_has_is_warned_of() {
    for (name, warned) in [("Morfy, Paul", true), ("Morphy, Paul", false)] {
        let dir = temp();
        let log = fs::File::create(dir.path().join("log")).unwrap();
        let _served = Served::start_with(
            dir.path(),
            args!["--me", name, sample("famous.pgn")],
            |command| {
                command.stderr(log);
            },
        );
        let log = fs::read_to_string(dir.path().join("log")).unwrap();
        let warning = "warning: --me: no player has exactly the name \"Morfy, Paul\": did you mean \"Morphy, Paul\"";
        assert_eq!(log.contains(warning), warned, "{log}");
    }
}

#[test]
fn numbers_out_of_range_are_refused() {
    let (_dir, served) = famous();
    for (path, range) in [
        ("/games?skip=10001", "use a number from 0 to 10000"),
        ("/games?limit=201", "use a number from 0 to 200"),
        ("/games?minPly=65536", "use a number from 0 to 65535"),
        ("/lichess?minPly=65536", "use a number from 0 to 65535"),
        (
            "/prepare?player=x&color=white&me=y&lines=51",
            "use a number from 0 to 50",
        ),
        ("/book.bin?depth=0", "use a number from 1 to 600"),
        ("/book.bin?depth=601", "use a number from 1 to 600"),
        ("/book.bin?minGame=0", "use a number from 1 to 1000000"),
        (
            "/repertoire.pgn?side=white&reach=10001",
            "use a number from 1 to 10000",
        ),
        (
            "/gaps?side=white&repertoire=x&limit=10001",
            "use a number from 0 to 10000",
        ),
        (
            "/suggest?field=player&text=m&limit=51",
            "use a number from 0 to 50",
        ),
    ] {
        let refused = served.get(path);
        assert_eq!(refused.status, 400, "{path}");
        assert!(refused.text().contains(range), "{path}: {refused:?}");
    }
    // Lichess's API shortens these lists.
    let answer = served.json("/lichess?moves=99999&topGames=99&recentGames=99");
    let length = |name: &str| answer[name].as_array().unwrap().len();
    assert_eq!((length("topGames"), length("recentGames")), (4, 8));
}

#[test]
fn results_of_a_player_and_of_games_are_combined() {
    let (_dir, served) = famous();
    let total = |result: &str| {
        let path = format!("/games?limit=0&player=Anderssen,+Adolf{result}");
        served.json(&path)["total"].as_u64().unwrap()
    };
    let [won, lost, drawn] = ["win", "loss", "draw"].map(|word| total(&format!("&result={word}")));
    assert!(won > 0 && lost > 0, "{won} {lost}");
    assert_eq!(total("&result=win,loss"), won + lost);
    assert_eq!(total("&result=loss,1/2-1/2"), lost + drawn);
    assert_eq!(
        total("&result=win,draw,loss"),
        total("") - total("&result=*")
    );
    let white = total("&color=white&result=1-0");
    assert_eq!(total("&color=white&result=win"), white);
    assert_eq!(total("&result=1-0,loss"), white + lost);
}

#[test]
fn what_only_the_page_needs_is_left_out_on_demand() {
    let (_dir, served) = famous();
    for path in ["/lichess?play=e2e4", "/masters?play=e2e4"] {
        let whole = served.json(path);
        let mut less = served.json(&format!("{path}&legal=0"));
        assert_eq!(keys(&less["polybook"]), ["transpositions"], "{path}");
        less["polybook"] = whole["polybook"].clone();
        assert_eq!(less, whole, "{path}");
        assert_eq!(served.json(&format!("{path}&legal=true")), whole, "{path}");
        assert_eq!(served.get(&format!("{path}&legal=x")).status, 400);
    }
}

#[test]
fn a_media_type_of_quality_0_is_not_sent() {
    let (_dir, served) = famous();
    const PGN: &str = "application/x-chess-pgn";
    const JSON: &str = "application/json";
    for (path, accept, media_type) in [
        ("/games", "application/x-chess-pgn;q=0", JSON),
        ("/games", "application/x-chess-pgn; Q=0.000, */*", JSON),
        (
            "/games",
            "application/json, application/x-chess-pgn;q=0.5",
            JSON,
        ),
        ("/games", "application/x-chess-pgn, */*;q=0.1", PGN),
        (
            "/games",
            "text/plain\r\nAccept: Application/X-Chess-PGN",
            PGN,
        ),
        ("/games", "application/x-chess-pgn+zip", JSON),
        ("/game/00000000", "application/json;q=0.0", PGN),
        (
            "/game/00000000",
            "application/json;q=0.2, application/x-chess-pgn",
            PGN,
        ),
        ("/game/00000000", "application/json, text/plain, */*", JSON),
    ] {
        let reply = served.ask("GET", path, &format!("Accept: {accept}\r\n"));
        assert_eq!(
            reply.header("content-type"),
            Some(media_type),
            "{path} {accept}"
        );
    }
}

#[test]
fn errors_are_json_for_clients_that_accept_json() {
    let (_dir, served) = famous();
    let host = "evil.example";
    for (path, accept, is_json) in [
        ("/lichess?play=e9", "application/json", true),
        ("/lichess?play=e9", "application/vnd.lichess.v3+json", true),
        ("/player?player=", "application/x-ndjson, */*;q=0.1", true),
        ("/nowhere", "text/html;q=0.5, Application/JSON;q=0.9", true),
        ("/lichess?play=e9", "", false),
        ("/lichess?play=e9", "*/*", false),
        ("/lichess?play=e9", "application/json;q=0", false),
        ("/nowhere", "application/json;q=0.1, text/plain", false),
    ] {
        for headers in ["", "Accept-Encoding: gzip\r\n"] {
            let text = served.get(path).text().trim_end().to_owned();
            let reply = served.ask("GET", path, &format!("Accept: {accept}\r\n{headers}"));
            assert_eq!(reply.status, served.get(path).status);
            assert!(reply.header("vary").unwrap().contains("accept"));
            if is_json {
                assert_eq!(reply.header("content-type"), Some("application/json"));
                let document: serde_json::Value = serde_json::from_slice(&reply.body).unwrap();
                assert_eq!(
                    document,
                    serde_json::json!({"error": text}),
                    "{path} {accept}"
                );
            } else {
                assert_eq!(
                    reply.header("content-type"),
                    Some("text/plain; charset=utf-8")
                );
            }
        }
    }
    // Requests that the guard refuses do not reach the routes.
    let request = format!(
        "GET / HTTP/1.1\r\nHost: {host}\r\nAccept: application/json\r\nConnection: close\r\n\r\n"
    );
    let reply = served.send(request.as_bytes()).unwrap();
    let document: serde_json::Value = serde_json::from_slice(&reply.body).unwrap();
    assert!(
        document["error"].as_str().unwrap().contains(host),
        "{document}"
    );
    // The length of the body that GET would send.
    let reply = served.ask("HEAD", "/nowhere", "Accept: application/json\r\n");
    assert_eq!((reply.status, reply.body.len()), (404, 0));
}

#[test]
fn a_request_that_accepts_no_coding_is_refused_in_one_line() {
    let (_dir, served) = famous();
    for coding in ["identity;q=0", "*;q=0", "identity;q=0, br;q=0"] {
        for path in ["/lichess", "/", "/game/00000000"] {
            let reply = served.ask("GET", path, &format!("Accept-Encoding: {coding}\r\n"));
            assert_eq!(reply.status, 406, "{path} {coding}");
            assert_eq!(reply.text().lines().count(), 1);
            assert!(
                reply.text().starts_with("the header Accept-Encoding "),
                "{}",
                reply.text()
            );
        }
    }
    let packed = served.ask("GET", "/lichess", "Accept-Encoding: gzip, identity;q=0\r\n");
    assert_eq!(packed.status, 200);
}

#[test]
fn a_browser_gets_a_link_at_an_unknown_address() {
    let (_dir, served) = famous();
    let shown = served.ask("GET", "/nowhere", "Accept: text/html,*/*;q=0.8\r\n");
    assert_eq!(shown.status, 404);
    assert!(
        shown
            .header("content-type")
            .unwrap()
            .starts_with("text/html")
    );
    assert!(shown.text().contains("<a href=/>"), "{}", shown.text());
    let told = served.get("/nowhere");
    assert_eq!(told.status, 404);
    assert!(
        told.header("content-type")
            .unwrap()
            .starts_with("text/plain")
    );
}

#[test]
fn an_id_of_invalid_utf_8_is_answered_like_an_unknown_id() {
    let (_dir, served) = famous();
    let unknown = served.get("/game/zzzzzzzz");
    assert_eq!(unknown.status, 404);
    for path in ["/game/%ff", "/masters/pgn/%ff%00", "/master/pgn/%c3"] {
        let reply = served.get(path);
        assert_eq!(
            (reply.status, reply.text()),
            (404, unknown.text()),
            "{path}"
        );
    }
}

#[cfg(unix)]
#[test]
fn advice_about_an_unwritable_cache_works() {
    let dir = temp();
    fs::copy(sample("famous.pgn"), dir.path().join("famous.pgn")).unwrap();
    // A file in place of a directory prevents any user from creating the cache.
    for blocked in ["cache", "cache/polybook"] {
        let blocked = dir.path().join(blocked);
        fs::create_dir_all(blocked.parent().unwrap()).unwrap();
        fs::write(&blocked, "").unwrap();
        let mut command = crate::common::polybook_in(dir.path());
        let output = command.args(["serve", "famous.pgn"]).output().unwrap();
        let error = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1), "{error}");
        assert!(
            error.contains("add --no-cache to make the index in a temporary directory")
                && error.lines().count() == 1,
            "{error}"
        );
        let served = Served::start(dir.path(), "-q famous.pgn --no-cache");
        assert_eq!(served.get("/about").status, 200);
        fs::remove_file(blocked).unwrap();
    }
}

/// The index that the server makes has all half-moves of each game, as the names of its openings do. The default of
/// `make-book --max-ply` would end this game before its first pawn move.
#[test]
fn the_last_moves_of_a_very_long_game_are_found() {
    let dir = temp();
    let pgn = format!("{} e4 e5 1-0\n", "Nf3 Nf6 Ng1 Ng8 ".repeat(300));
    fs::write(dir.path().join("long.pgn"), pgn).unwrap();
    let served = Served::start(dir.path(), "-q long.pgn");
    let answer = served.json("/lichess?play=e2e4");
    assert_eq!(answer["moves"][0]["uci"], "e7e5", "{answer}");
    assert_eq!(answer["maxPly"], serde_json::Value::Null);
}

#[test]
fn games_come_byte_for_byte_and_as_moves() {
    let (_dir, served) = famous();
    let pgn = fs::read(sample("famous.pgn")).unwrap();
    let list = served.json("/games?sort=id&limit=200");
    let listed = list["games"].as_array().unwrap();
    assert_eq!(list["total"].as_u64().unwrap() as usize, listed.len());
    for game in listed.iter().step_by(9) {
        let id = game["id"].as_str().unwrap();
        assert_eq!(id.len(), 8);
        let reply = served.get(&format!("/game/{id}"));
        assert_eq!(
            reply.header("content-type"),
            Some("application/x-chess-pgn")
        );
        assert!(
            pgn.windows(reply.body.len()).any(|text| text == reply.body),
            "{id}"
        );
        for old in ["/masters/pgn/", "/master/pgn/"] {
            assert_eq!(served.get(&format!("{old}{id}")).body, reply.body);
        }
        let moves = served.ask(
            "GET",
            &format!("/game/{id}"),
            "Accept: application/json\r\n",
        );
        let moves: Value = serde_json::from_slice(&moves.body).unwrap();
        assert_eq!(moves["problem"], Value::Null, "{id}");
        assert_eq!(moves["moves"][0]["uci"], game["uci"]);
    }
    let third = served.get("/game/00000002").body;
    for short in ["/game/2", "/game/0002", "/masters/pgn/2"] {
        assert_eq!(served.get(short).body, third, "{short}");
    }
    let page = served.ask(
        "GET",
        "/games?skip=1&limit=2",
        "Accept: application/x-chess-pgn\r\n",
    );
    assert_eq!(page.text().matches("[Event ").count(), 2);
    for unknown in [
        "/game/99999999",
        "/game/zzzzzzzz",
        "/game/9999",
        "/masters/pgn/%ff",
    ] {
        assert!(
            [400, 404].contains(&served.get(unknown).status),
            "{unknown}"
        );
    }
}

#[test]
fn an_answer_that_is_known_is_not_sent_again() {
    let (_dir, served) = famous();
    for path in [
        "/lichess?play=e2e4",
        "/about",
        "/",
        "/board.js",
        "/game/00000003",
    ] {
        let first = served.get(path);
        let etag = first.header("etag").unwrap().to_owned();
        let again = served.ask("GET", path, &format!("If-None-Match: \"x\", {etag}\r\n"));
        assert_eq!((again.status, again.body.len()), (304, 0), "{path}");
        // RFC 9110 (section 15.4.5) requires these headers.
        for name in ["etag", "cache-control", "vary"] {
            assert_eq!(again.header(name), first.header(name), "{path}");
            assert!(first.header(name).is_some(), "{path}: {name}");
        }
        assert_eq!(
            served.ask("GET", path, "If-None-Match: \"x\"\r\n").status,
            200
        );
        let head = served.ask("HEAD", path, "");
        assert_eq!((head.status, head.body.len()), (200, 0), "{path}");
        assert_eq!(
            head.header("content-length"),
            first.header("content-length")
        );
    }
    let etag = |path| served.get(path).header("etag").map(str::to_owned);
    assert_ne!(etag("/lichess?play=e2e4"), etag("/lichess?play=d2d4"));
}

#[test]
fn files_that_are_edited_in_place_are_noticed() {
    let dir = temp();
    let pgn = dir.path().join("mine.pgn");
    let text = "[White \"A\"]\n\n1. e4 {one} e5 *\n";
    fs::write(&pgn, text).unwrap();
    ok(
        dir.path(),
        "make-book -q --min-game 1 mine.pgn --bin my.bin",
    );
    let served = Served::start(dir.path(), "-q mine.pgn --book my.bin");
    let accept = "Accept: application/x-chess-pgn\r\n";
    let asked = [("/game/00000000", ""), ("/games", accept), ("/book", "")];
    let ask = |path: &str, headers: &str| served.ask("GET", path, headers);
    let first = asked.map(|(path, headers)| ask(path, headers));
    let again = |number: usize| {
        let (path, headers) = asked[number];
        let etag = first[number].header("etag").unwrap();
        ask(path, &format!("{headers}If-None-Match: {etag}\r\n"))
    };
    for (number, (path, _)) in asked.iter().enumerate() {
        assert_eq!(again(number).status, 304, "{path}");
    }
    // The files keep their sizes.
    fs::write(&pgn, text.replace("one", "two")).unwrap();
    let mut book = fs::read(dir.path().join("my.bin")).unwrap();
    let record = book
        .chunks_exact_mut(16)
        .find(|record| record[..8] != [0; 8]);
    let weight = &mut record.unwrap()[10..12];
    weight.copy_from_slice(&7_u16.to_be_bytes());
    fs::write(dir.path().join("my.bin"), book).unwrap();
    // The index has a checksum of each game's text.
    for number in [0, 1] {
        let reply = again(number);
        assert_eq!(reply.status, 503, "{}", asked[number].0);
        assert!(reply.text().contains("mine.pgn"), "{}", reply.text());
    }
    let book = again(2);
    assert_eq!(book.status, 200);
    assert_ne!(book.body, first[2].body);
}

#[test]
fn parameters_that_a_route_of_ours_does_not_have_are_named() {
    let (_dir, served) = famous();
    for path in [
        "/games?limits=5",
        "/book?play=e2e4&limits=5",
        "/about?limits=5",
        "/read?text=e4&limits=5",
        "/game/00000000?limits=5",
    ] {
        let reply = served.get(path);
        assert_eq!(reply.status, 400, "{path}");
        assert!(
            reply
                .text()
                .contains("unknown parameter limits: this address accepts"),
            "{}",
            reply.text()
        );
    }
    for path in [
        "/lichess?limits=5",
        "/masters?limits=5",
        "/player?player=x&color=white&limits=5",
        "/masters/pgn/00000000?limits=5",
    ] {
        assert_eq!(served.get(path).status, 200, "{path}");
    }
    for (path, status) in [("/games?skip=10000", 200), ("/games?skip=10001", 400)] {
        assert_eq!(served.get(path).status, status, "{path}");
    }
}

#[test]
fn an_id_with_the_form_of_a_number_is_the_number_of_a_game() {
    let dir = temp();
    let game =
        |site: &str, mv: &str| format!("[Site \"https://lichess.org/{site}\"]\n\n1. {mv} *\n\n");
    let text = game("00000001", "e4") + &game("abcdefgh", "d4");
    fs::write(dir.path().join("mine.pgn"), text).unwrap();
    let served = Served::start(dir.path(), "-q --no-cache mine.pgn");
    for (id, mv) in [("00000000", "e4"), ("00000001", "d4"), ("abcdefgh", "d4")] {
        let text = served.get(&format!("/game/{id}")).text();
        assert!(text.contains(&format!("1. {mv} *")), "{id}: {text}");
    }
    let list = served.json("/games?sort=id");
    let ids = list["games"]
        .as_array()
        .unwrap()
        .iter()
        .map(|game| &game["id"]);
    assert_eq!(ids.collect::<Vec<_>>(), ["00000000", "abcdefgh"]);
}

/// Returns the headers of a request that a page of an origin makes.
fn from_origin(origin: &str) -> String {
    format!("Origin: {origin}\r\n")
}

/// Returns the preflight request that a browser sends before a request with a custom header.
fn preflight(origin: &str) -> String {
    from_origin(origin)
        + "Access-Control-Request-Method: GET\r\nAccess-Control-Request-Headers: authorization\r\n\
           Access-Control-Request-Private-Network: true\r\n"
}

#[test]
fn pages_of_other_origins_may_not_read_the_answers() {
    let (_dir, served) = famous();
    for (method, headers) in [
        ("GET", from_origin("https://example.org")),
        ("OPTIONS", preflight("https://example.org")),
    ] {
        for path in ["/lichess", "/games", "/game/00000001", "/about", "/"] {
            let head = served.ask(method, path, &headers).head;
            assert!(!head.contains("access-control-"), "{method} {path}: {head}");
        }
    }
}

#[test]
fn pages_of_origins_that_are_allowed_may_read_the_answers() {
    let dir = temp();
    let pgn = sample("famous.pgn");
    let start = |origins: &[&str]| {
        let mut args = args!["-q", "--no-cache", &pgn].to_vec();
        args.extend(
            origins
                .iter()
                .map(|origin| format!("--allow-origin={origin}").into()),
        );
        Served::start(dir.path(), &args[..])
    };
    let allowed = |served: &Served, method: &str, headers: &str| {
        let reply = served.ask(method, "/player?player=Morphy,+Paul&color=white", headers);
        assert_eq!(reply.status, 200);
        let has = |name: &str| reply.head.contains(&format!("{name}: "));
        let vary = reply.head.lines().filter(|line| line.starts_with("vary: "));
        assert!(
            vary.clone().any(|line| line.contains("origin")),
            "{}",
            reply.head
        );
        let is_private = has("access-control-allow-private-network");
        (
            reply
                .header("access-control-allow-origin")
                .map(str::to_owned),
            is_private,
        )
    };
    let some = start(&["https://Example.org:443", "http://localhost:3000"]);
    for origin in ["https://example.org", "http://localhost:3000"] {
        let expected = (Some(origin.to_owned()), false);
        assert_eq!(allowed(&some, "GET", &from_origin(origin)), expected);
        let expected = (Some(origin.to_owned()), true);
        assert_eq!(allowed(&some, "OPTIONS", &preflight(origin)), expected);
        let reply = some.ask("OPTIONS", "/player", &preflight(origin));
        assert_eq!(
            reply.header("access-control-allow-headers"),
            Some("authorization")
        );
        assert_eq!(reply.header("access-control-max-age"), Some("7200"));
        for path in ["/none", "/lichess?fen=", "/game/none"] {
            let reply = some.ask("GET", path, &from_origin(origin));
            assert!(matches!(reply.status, 400 | 404), "{path}");
            assert_eq!(reply.header("access-control-allow-origin"), Some(origin));
        }
    }
    for origin in [
        "https://example.org.evil",
        "http://example.org",
        "http://localhost",
        "null",
    ] {
        for (method, headers) in [("GET", from_origin(origin)), ("OPTIONS", preflight(origin))] {
            assert_eq!(allowed(&some, method, &headers), (None, false), "{origin}");
        }
    }
    let all = start(&["*"]);
    let any = Some("*".to_owned());
    assert_eq!(
        allowed(&all, "GET", &from_origin("https://a.example")).0,
        any
    );
    assert_eq!(allowed(&all, "OPTIONS", &preflight("null")), (any, true));
    for wrong in [
        "example.org",
        "https://example.org/page",
        "https://example.org/",
        "http://localhost:*",
        "https://*.example.org",
        "http://localhost:",
        "http://localhost:x",
        "",
    ] {
        let line = args!["serve", &pgn, "--allow-origin", wrong];
        let error = fails(dir.path(), line, 2);
        assert!(
            error.contains("--allow-origin") && error.contains("https://"),
            "{error}"
        );
    }
}

/// One path for each kind of route.
const ROUTES: [&str; 18] = [
    "/lichess",
    "/masters",
    "/player?player=Morphy,+Paul&color=white",
    "/game/00000000",
    "/masters/pgn/00000000",
    "/games?fold=match",
    "/book",
    "/about",
    "/read?text=e4",
    "/suggest?field=player&text=m",
    "/facets?duplicates=once",
    "/scores?by=rating",
    "/repertoire",
    "/book.bin?minGame=1",
    "/repertoire.pgn?side=white",
    "/gaps?side=white",
    "/board.js",
    "/none",
];

#[test]
fn whether_an_address_loads_tells_other_sites_nothing() {
    let dir = temp();
    let pgn = sample("famous.pgn");
    let served = Served::start(
        dir.path(),
        args!["-q", &pgn, "--allow-origin", "https://a.example"],
    );
    let status = |path, headers: &str| served.ask("GET", path, headers).status;
    for site in ["cross-site", "same-site"] {
        let site = format!("Sec-Fetch-Site: {site}\r\n");
        for path in ROUTES {
            // Headers that `<script>`, `<object>`, a frame, a link and `fetch` send.
            for with in [
                "",
                "Sec-Fetch-Dest: script\r\n",
                "Sec-Fetch-Dest: document\r\n",
                "Origin: https://b.example\r\n",
                "Origin: null\r\nX-Polybook: 1\r\n",
            ] {
                let headers = format!("{site}{with}");
                assert_eq!(status(path, &headers), 403, "{path} {headers}");
            }
            let allowed = format!("{site}Origin: https://a.example\r\n");
            assert_ne!(status(path, &allowed), 403, "{path}");
        }
        for (origin, named) in [
            ("http://127.0.0.1:5173", "http://127.0.0.1:5173"),
            ("null", "'*'"),
            ("*", "ORIGIN"),
            ("https://b.example/<b>", "ORIGIN"),
            ("https://$(b).example", "ORIGIN"),
        ] {
            let reply = served.ask("GET", "/about", &format!("{site}Origin: {origin}\r\n"));
            let end = format!("start the server with --allow-origin {named}");
            let text = reply.text();
            assert!(text.trim_end().ends_with(&end), "{text}");
        }
        let reply = served.ask("GET", "/about", &site);
        let advice = "cannot link to this address or embed it: load it with fetch and not with mode no-cors, and start the server with --allow-origin";
        assert!(reply.text().contains(advice), "{}", reply.text());
        // The page can be opened as a document. A browser shows it in a frame only on pages of the allowed origin.
        let opened = format!("{site}Sec-Fetch-Mode: navigate\r\nSec-Fetch-Dest: ");
        assert_eq!(status("/", &format!("{opened}document\r\n")), 200);
        assert_eq!(status("/", &format!("{opened}iframe\r\n")), 200);
        assert_eq!(status("/", &format!("{opened}object\r\n")), 403);
    }
    for own in [
        "",
        "Sec-Fetch-Site: same-origin\r\n",
        "Sec-Fetch-Site: none\r\n",
    ] {
        for path in ROUTES {
            assert_ne!(status(path, own), 403, "{path} {own}");
        }
    }
}

#[test]
fn every_answer_says_which_sites_may_embed_it() {
    let dir = temp();
    let pgn = sample("famous.pgn");
    let served = Served::start(
        dir.path(),
        args!["-q", &pgn, "--allow-origin", "https://a.example"],
    );
    let is_protected = |path: &str, headers: &str, readers: &str| {
        let reply = served.ask("GET", path, headers);
        let has = |name, part| reply.header(name).is_some_and(|value| value.contains(part));
        assert!(
            has("x-content-type-options", "nosniff")
                && has(
                    "content-security-policy",
                    "frame-ancestors https://a.example"
                )
                && has("cross-origin-resource-policy", readers),
            "{path}: {}",
            reply.head
        );
        reply
    };
    for path in ROUTES.into_iter().chain(["/", "/lichess?play=e2e5"]) {
        let reply = is_protected(path, "", "same-origin");
        is_protected(path, "Origin: https://a.example\r\n", "cross-origin");
        if let Some(etag) = reply.header("etag") {
            let known = format!("If-None-Match: {etag}\r\n");
            let again = is_protected(path, &known, "same-origin");
            assert_eq!(again.status, 304, "{path}");
            // A browser replaces the policy of its cached page by the policy of the 304 answer.
            let policy = "content-security-policy";
            assert_eq!(again.header(policy), reply.header(policy));
        }
    }
    let foreign = "Sec-Fetch-Site: cross-site\r\n";
    assert_eq!(is_protected("/lichess", foreign, "same-origin").status, 403);
    assert_eq!(
        is_protected("/lichess", "Host: evil\r\n", "same-origin").status,
        421
    );
}

#[test]
fn at_a_plain_name_costly_routes_need_the_header_of_the_page() {
    let dir = temp();
    let pgn = sample("famous.pgn");
    let served = Served::start(dir.path(), args!["-q", &pgn, "--allow-host", "chess.lan"]);
    let status = |path: &str, headers: &str| {
        let request =
            format!("GET {path} HTTP/1.1\r\nHost: chess.lan\r\nConnection: close\r\n{headers}\r\n");
        served.send(request.as_bytes()).unwrap().status
    };
    for path in [
        "/facets",
        "/games?fold=match",
        "/scores?by=rating",
        "/book.bin?minGame=1",
        "/book.pgn?minGame=1&count=true",
        "/repertoire.bin?side=white",
        "/gaps?side=white",
        "/lichess?duplicates=once",
        "/lichess?clo%63ks=true",
    ] {
        assert_eq!(status(path, ""), 403, "{path}");
        assert_ne!(status(path, "X-Polybook: 1\r\n"), 403, "{path}");
        // If HTTPS is used in front of the server, browsers say which site makes the request.
        assert_ne!(
            status(path, "Sec-Fetch-Site: same-origin\r\n"),
            403,
            "{path}"
        );
    }
    for path in ["/lichess", "/masters", "/game/00000000", "/about", "/"] {
        assert_eq!(status(path, ""), 200, "{path}");
    }
}

#[test]
fn requests_that_name_another_host_or_method_are_refused() {
    let (_dir, served) = famous();
    for host in ["evil.example", "localhost.evil", "127.0.0.2", ""] {
        let request = format!("GET /lichess HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
        assert_eq!(
            served.send(request.as_bytes()).unwrap().status,
            421,
            "{host}"
        );
    }
    for method in ["POST", "PUT", "DELETE", "PATCH"] {
        for path in ["/lichess", "/", "/game/00000000"] {
            let reply = served.ask(method, path, "");
            assert_eq!(reply.status, 405, "{method} {path}");
            assert_eq!(reply.text().lines().count(), 1);
        }
    }
    let page = served.get("/");
    let policy = page.header("content-security-policy").unwrap();
    assert!(
        policy.contains("default-src 'none'") && !policy.contains("unsafe"),
        "{policy}"
    );
}

#[test]
fn a_name_that_is_allowed_is_answered() {
    let dir = temp();
    let pgn = sample("famous.pgn");
    let served = Served::start(
        dir.path(),
        args!["-q", &pgn, "--allow-host", "chess.example"],
    );
    let request = "GET /about HTTP/1.1\r\nHost: chess.example\r\nConnection: close\r\n\r\n";
    assert_eq!(served.send(request.as_bytes()).unwrap().status, 200);
}

#[test]
fn several_sources_are_answered_from_together_and_separately() {
    let dir = temp();
    let (famous, selfplay) = (sample("famous.pgn"), sample("selfplay.pgn"));
    let served = Served::start(dir.path(), args!["-q", &famous, &selfplay]);
    let of = |source: &str| games(&served.json(&format!("/lichess?moves=0{source}")));
    let (one, other) = (of("&source=famous"), of("&source=selfplay"));
    assert!(one > 0 && other > one);
    assert_eq!(of(""), one + other);
    assert_eq!(served.get("/lichess?source=x").status, 400);
    let about = served.json("/about");
    assert_eq!(about["sources"].as_array().unwrap().len(), 2);
    // The answer does not contain the directories of the files.
    assert_eq!(about["sources"][1]["files"], json!(["selfplay.pgn"]));
    // The numbers of games continue from one source to the next.
    let last = served.json("/games?sort=id&limit=1&source=selfplay");
    let id: u64 = last["games"][0]["id"].as_str().unwrap().parse().unwrap();
    assert!(id >= one, "{id}");
}

#[test]
fn an_answer_contains_the_moves_of_books_beside_the_counts() {
    let dir = temp();
    let pgn = sample("famous.pgn");
    let line = format!(
        "make-book -q --min-game 1 {} --bin my.bin --obs my2.obs.db3",
        pgn.display()
    );
    ok(dir.path(), &line);
    let served = Served::start(
        dir.path(),
        args!["-q", &pgn, "--book", "my.bin", "--book", "my2.obs.db3"],
    );
    let books = &served.json("/book?play=e2e4,e7e5,g1f3,b8c6,f1b5,a7a6,b5a4,g8f6")["books"];
    for (number, name) in ["my", "my2"].into_iter().enumerate() {
        let moves = books[number]["moves"].as_array().unwrap();
        assert_eq!(books[number]["name"], name);
        assert!(
            moves
                .iter()
                .any(|mv| mv["uci"] == "e1h1" && mv["san"] == "O-O"),
            "{moves:?}"
        );
        let percent: f64 = moves
            .iter()
            .map(|mv| mv["probability"].as_f64().unwrap())
            .sum();
        assert!((percent - 100.0).abs() < 0.01);
    }
}

#[test]
fn pasted_text_is_read() {
    let (_dir, served) = famous();
    let line = served.json("/read?text=1.%20e4%20c5%202.%20Nf3");
    assert_eq!(line["moves"][2]["uci"], "g1f3");
    let fen = served.json("/read?text=4k3/8/8/8/8/8/8/R3K3%20w%20Q%20-%200%201");
    assert!(fen["start"].as_str().unwrap().starts_with("4k3/"));
    assert!(served.json("/read?text=hello")["problem"].is_string());
    for address in ["https://lichess.org/abcdefgh", "lichess.org/abcdefgh/black"] {
        let read = served.json(&format!("/read?text={address}"));
        let problem = read["problem"].as_str().unwrap();
        assert!(problem.starts_with("this is an address"), "{problem}");
    }
    let color = served.get("/games?color=white");
    assert_eq!(color.status, 400);
    assert!(
        color.text().contains("add the parameter player"),
        "{color:?}"
    );
    assert_eq!(served.get("/lichess?color=white").status, 200);
    assert!(
        served
            .get("/game/999")
            .text()
            .contains("the address /games")
    );
}

/// Returns the indexes in the cache of a server.
#[cfg(target_os = "linux")]
fn cached(dir: &std::path::Path) -> Vec<String> {
    let entries = fs::read_dir(dir.join("cache/polybook"))
        .into_iter()
        .flatten();
    let names = entries.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned());
    names.collect()
}

#[test]
fn a_file_without_games_does_not_hide_the_others() {
    let dir = temp();
    fs::write(dir.path().join("empty.pgn"), "").unwrap();
    fs::write(dir.path().join("bad.pgn"), "[White \"x\"]\n1. Ke2 1-0\n").unwrap();
    let log = fs::File::create(dir.path().join("log")).unwrap();
    let served = Served::start_with(
        dir.path(),
        args!["empty.pgn", sample("famous.pgn"), "bad.pgn"],
        |command| {
            command.stderr(log);
        },
    );
    let about = served.json("/about");
    assert_eq!(about["games"], 45);
    assert_eq!(about["sources"].as_array().unwrap().len(), 1);
    let log = fs::read_to_string(dir.path().join("log")).unwrap();
    for said in [
        "warning: empty.pgn is left out: the input contains no game\n",
        "warning: bad.pgn is left out: the only game cannot be counted (1 rejected)",
    ] {
        assert!(log.contains(said), "{log}");
    }
    let error = fails(dir.path(), "serve -q --no-cache empty.pgn bad.pgn", 1);
    assert_eq!(
        error,
        "polybook: empty.pgn: there is nothing to show, because the input contains no game\n"
    );
}

#[test]
fn a_folder_of_games_is_no_source() {
    let dir = temp();
    fs::create_dir(dir.path().join("folder")).unwrap();
    fs::copy(sample("famous.pgn"), dir.path().join("folder/famous.pgn")).unwrap();
    let error = fails(dir.path(), "serve folder", 1);
    let files = std::path::Path::new("folder").join("*.pgn");
    let said = format!(
        "polybook: folder: this is a directory, but not an index: give the PGN files in the directory, such as {}\n",
        files.display()
    );
    assert_eq!(error, said);
}

#[cfg(target_os = "linux")]
#[test]
fn an_index_of_a_pgn_is_kept_until_the_pgn_changes() {
    let dir = temp();
    let pgn = dir.path().join("mine.pgn");
    fs::copy(sample("famous.pgn"), &pgn).unwrap();
    let total = |served: &Served| served.json("/about")["games"].as_u64().unwrap();
    let first = Served::start(dir.path(), "-q mine.pgn");
    let kept = cached(dir.path());
    assert_eq!(kept.len(), 1);
    let second = Served::start(dir.path(), "-q mine.pgn");
    assert_eq!(cached(dir.path()), kept);
    assert_eq!(total(&first), total(&second));

    // After games were added, a new index replaces the first one, which its server still has open.
    let mut text = fs::read(&pgn).unwrap();
    text.extend_from_slice(b"\n[White \"New\"]\n\n1. e4 *\n");
    fs::write(&pgn, text).unwrap();
    let third = Served::start(dir.path(), "-q mine.pgn");
    assert_eq!(total(&third), total(&first) + 1);
    assert!(cached(dir.path()).len() == 1 && cached(dir.path()) != kept);
    assert_eq!(first.get("/lichess").status, 200);
    // The texts of the games say what is wrong, and counts still answer.
    let last = format!("/game/{:08}", total(&first) - 1);
    assert!([200, 503].contains(&first.get(&last).status));

    let uncached = temp();
    fs::copy(sample("famous.pgn"), uncached.path().join("mine.pgn")).unwrap();
    let served = Served::start(uncached.path(), "-q mine.pgn --no-cache");
    assert_eq!(served.get("/lichess").status, 200);
    assert!(cached(uncached.path()).is_empty());
}

#[test]
fn a_moved_pgn_of_an_index_is_reported_at_the_start() {
    let dir = temp();
    let pgn = dir.path().join("mine.pgn");
    fs::copy(sample("famous.pgn"), &pgn).unwrap();
    ok(dir.path(), "make-book -q mine.pgn --explorer mine.idx");
    let said = || {
        let file = dir.path().join("said");
        let out = fs::File::create(&file).unwrap();
        let served = Served::start_with(dir.path(), "mine.idx", |command| {
            command.stderr(out);
        });
        (served, fs::read_to_string(file).unwrap())
    };
    assert!(!said().1.contains("warning"));
    let moved = dir.path().join("moved.pgn");
    fs::rename(&pgn, &moved).unwrap();
    let (served, warning) = said();
    assert!(
        warning.contains("mine.pgn is no longer where it was when mine.idx was made"),
        "{warning}"
    );
    assert_eq!(served.get("/game/00000000").status, 503);
    // After the user has followed the advice, there is no warning, and the server returns the game.
    fs::rename(&moved, &pgn).unwrap();
    let (served, warning) = said();
    assert!(!warning.contains("warning"), "{warning}");
    assert_eq!(served.get("/game/00000000").status, 200);
}

#[test]
fn games_whose_pgn_is_gone_are_counted_and_not_shown() {
    let dir = temp();
    let pgn = dir.path().join("mine.pgn");
    fs::copy(sample("famous.pgn"), &pgn).unwrap();
    let served = Served::start(dir.path(), "-q mine.pgn");
    let before = served.get("/lichess").body;
    fs::remove_file(&pgn).unwrap();
    assert_eq!(served.get("/lichess?x").body, before);
    let reply = served.get("/game/00000000");
    assert_eq!(reply.status, 503);
    let text = reply.text();
    assert!(
        text.starts_with("mine.pgn: this file is no longer where it was"),
        "{text}"
    );
    assert!(!text.contains(&*dir.path().to_string_lossy()), "{text}");
    // Another file with the same name is not shown either.
    fs::write(&pgn, "[White \"Secret\"]\n\n1. d4 *\n".repeat(100)).unwrap();
    let reply = served.get("/game/00000001");
    assert!(
        reply.status == 503 && !reply.text().contains("Secret"),
        "{}",
        reply.text()
    );
}

#[test]
fn each_variant_is_asked_for_by_name() {
    let dir = temp();
    let served = Served::start(dir.path(), args!["-q", sample("variants.pgn")]);
    for name in [
        "antichess",
        "atomic",
        "chess960",
        "crazyhouse",
        "threeCheck",
    ] {
        let start = match name {
            // The games of this variant start from positions of their own.
            "chess960" => {
                let list = served.json("/games?variant=chess960&limit=1");
                assert!(list["games"].as_array().unwrap().is_empty());
                continue;
            }
            _ => served.json(&format!("/lichess?variant={name}")),
        };
        assert_eq!(games(&start), 4, "{name}");
        let uci = start["moves"][0]["uci"].as_str().unwrap();
        let next = served.json(&format!("/lichess?variant={name}&play={uci}"));
        let played = &start["moves"][0];
        assert_eq!(games(&next), games(played), "{name}");
        let listed = served.json(&format!("/games?variant={name}"));
        assert_eq!(listed["games"].as_array().unwrap().len(), 4, "{name}");
    }
    // These games do not include games of standard chess.
    assert_eq!(games(&served.json("/lichess")), 0);
    assert_eq!(served.get("/lichess?variant=chess9").status, 400);
}

#[test]
fn an_answer_is_the_same_when_it_is_asked_again() {
    let (_dir, served) = famous();
    for (path, other) in [
        ("/lichess?play=e2e4&history=1", "/lichess?play=e2e4"),
        (
            "/player?player=Morphy,%20Paul&color=white",
            "/player?player=Morphy,%20Paul&color=black",
        ),
        ("/games?play=e2e4&limit=3", "/games?play=e2e4&limit=1"),
    ] {
        let first = served.get(path);
        assert_eq!(first.status, 200, "{path}");
        assert_eq!(first.text(), served.get(path).text());
        assert_ne!(first.text(), served.get(other).text());
    }
}

#[test]
fn the_option_verbose_logs_each_request_in_a_line() {
    let dir = temp();
    let log = fs::File::create(dir.path().join("log")).unwrap();
    let served = Served::start_with(
        dir.path(),
        args!["-q", "-v", sample("famous.pgn")],
        |command| {
            command.stderr(log);
        },
    );
    // The start of the server has requested /about.
    assert_eq!(served.get("/lichess?play=e2e5").status, 400);
    let mut lines = String::new();
    until("both requests are logged", || {
        lines = fs::read_to_string(dir.path().join("log")).unwrap();
        lines.lines().count() == 2
    });
    let (about, refused) = lines.trim_end().split_once('\n').unwrap();
    assert!(
        about.starts_with("200 ") && about.ends_with(" GET /about"),
        "{about}"
    );
    assert!(
        refused.starts_with("400 ") && refused.ends_with("/lichess?play=e2e5"),
        "{refused}"
    );
}

#[test]
fn listening_to_other_machines_is_warned_of() {
    let dir = temp();
    let log = fs::File::create(dir.path().join("log")).unwrap();
    let mut served = Served::start_with(
        dir.path(),
        args!["--no-cache", sample("famous.pgn"), "--listen", "0.0.0.0:0"],
        |command| {
            command.stderr(log);
        },
    );
    // The printed address is one that a browser can open.
    assert_eq!(served.address.ip().to_string(), "127.0.0.1");
    assert_eq!(served.get("/about").status, 200);
    let log = fs::read_to_string(dir.path().join("log")).unwrap();
    assert!(
        log.contains("anyone who reaches this port can read the games"),
        "{log}"
    );
    // A machine without a network has no other address.
    if let Some((_, rest)) = log.split_once("other devices in the network open http://") {
        let (address, _) = rest.split_once('/').unwrap();
        served.address = address.parse().unwrap();
        assert!(!served.address.ip().is_loopback(), "{log}");
        assert_eq!(served.get("/about").status, 200);
    }
}

#[test]
fn the_page_is_opened_with_the_opening_that_an_option_names() {
    let dir = temp();
    let line = args![
        "--no-cache",
        sample("famous.pgn"),
        "--opening",
        "Sicilian Defense"
    ];
    let served = Served::start(dir.path(), line);
    assert_eq!(served.query, "?opening=Sicilian+Defense");
    let number = |path: &str| served.json(path)["total"].as_u64().unwrap();
    let games = number(&format!("/games{}", served.query));
    assert!((1..number("/games")).contains(&games), "{games}");
    let error = fails(dir.path(), "serve games.pgn --opening Sicillian", 2);
    assert!(error.contains("Sicil"), "{error}");
}

#[cfg(target_os = "linux")]
#[test]
fn the_browser_is_started_with_the_page() {
    use std::os::unix::fs::PermissionsExt;

    let dir = temp();
    // The first program that the server tries on this system.
    let opener = dir.path().join("xdg-open");
    fs::write(
        &opener,
        "#!/bin/sh\nprintf %s \"$1\" > opened.new\nmv opened.new opened\n",
    )
    .unwrap();
    fs::set_permissions(&opener, fs::Permissions::from_mode(0o755)).unwrap();
    let path = format!(
        "{}:{}",
        dir.path().display(),
        std::env::var("PATH").unwrap()
    );
    let log = fs::File::create(dir.path().join("log")).unwrap();
    let served = Served::start_with(
        dir.path(),
        args!["--open", sample("famous.pgn")],
        |command| {
            command.env("PATH", path).stderr(log);
        },
    );
    let opened = dir.path().join("opened");
    until("the browser is started", || opened.exists());
    assert_eq!(fs::read_to_string(opened).unwrap(), served.url());
    let log = || fs::read_to_string(dir.path().join("log")).unwrap();
    until("the way out is said", || {
        log().ends_with("\nCtrl-C stops the server\n")
    });
}

#[cfg(unix)]
#[test]
fn signals_end_the_server_as_any_command() {
    for (signal, status) in [(Signal::INT, 130), (Signal::TERM, 143), (Signal::HUP, 129)] {
        let (_dir, served) = famous();
        assert_eq!(served.get("/about").status, 200);
        // An idle connection does not delay the shutdown.
        let _idle = served.connect();
        assert_eq!(served.signal(signal).code(), Some(status), "{signal:?}");
    }
}

#[test]
fn an_error_about_a_source_that_cannot_be_served_has_one_line() {
    let dir = temp();
    let pgn = sample("famous.pgn");
    fs::create_dir(dir.path().join("empty")).unwrap();
    ok(
        dir.path(),
        args!["make-book", "-q", &pgn, "--leveldb", "plain"],
    );
    for (line, status, says) in [
        (
            args!["serve", "none.pgn", "--no-cache"].to_vec(),
            1,
            "none.pgn",
        ),
        (args!["serve", "empty"].to_vec(), 1, "empty"),
        (args!["serve", "plain"].to_vec(), 1, "--explorer"),
        (args!["serve", "-"].to_vec(), 2, "standard input"),
        (args!["serve", &pgn, &pgn].to_vec(), 2, "two sources"),
        (
            args!["serve", &pgn, "--book", "none.bin"].to_vec(),
            1,
            "none.bin",
        ),
        (
            args!["serve", &pgn, "--listen", "chess"].to_vec(),
            2,
            "chess",
        ),
    ] {
        let mut line = line;
        // Use another port than the servers of other tests.
        line.splice(1..1, ["--listen=127.0.0.1:0".into()]);
        let error = fails(dir.path(), &line[..], status);
        assert!(error.contains(says), "{error}");
    }
}

#[cfg(unix)]
#[test]
fn an_address_that_is_taken_is_found_out_before_games_are_read() {
    let (dir, taken) = famous();
    // Reading this pipe would never end.
    make_fifo(&dir.path().join("endless.pgn"));
    let address = taken.address.to_string();
    let line = args![
        "serve",
        "-q",
        "--no-cache",
        "endless.pgn",
        "--listen",
        &address
    ];
    let error = fails(dir.path(), line, 1);
    assert!(error.contains(&address), "{error}");
}

#[test]
fn what_is_no_castling_is_not_played_as_castling() {
    let (_dir, served) = famous();
    let ready = "_w_KQkq_-_0_1";
    let both = format!("/lichess?fen=r3k2r/8/8/8/8/8/8/R3K2R{ready}");
    for play in ["e1g1", "e1h1", "e1c1", "e1a1"] {
        let board = &served.json(&format!("{both}&play={play}"))["polybook"];
        assert!(
            board["line"][0]["san"].as_str().unwrap().starts_with("O-O"),
            "{board}"
        );
    }
    for play in ["e1b1", "e1b2", "e1e3"] {
        assert_eq!(
            served.get(&format!("{both}&play={play}")).status,
            400,
            "{play}"
        );
    }
    let shuffled = "/lichess?variant=chess960&fen=1k5r/8/8/8/8/8/8/RK5R_w_HA_-_0_1";
    assert_eq!(served.get(&format!("{shuffled}&play=b1h1")).status, 200);
    assert_eq!(served.get(&format!("{shuffled}&play=b1d1")).status, 400);
}

#[test]
fn a_line_of_an_epd_file_is_a_position() {
    let (_dir, served) = famous();
    let fen = "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR_w_KQkq_-";
    let epd = format!("/lichess?fen={fen}_hmvc_0;_fmvn_1;_id_%22x%22;");
    let moves = |path: &str| served.json(path)["moves"].clone();
    assert_eq!(moves(&epd), moves("/lichess"));
    assert_eq!(served.get(&format!("/lichess?fen={fen}_e2e4")).status, 400);
}

#[test]
fn names_are_the_same_however_they_are_encoded() {
    let dir = temp();
    let game = |name: &str| format!("[Event \"A\"]\n[White \"{name}\"]\n\n1. e4 1-0\n\n");
    let both = [game("Müller,  Hans"), game("Mu\u{308}ller, HANS")].concat();
    fs::write(dir.path().join("games.pgn"), both).unwrap();
    let served = Served::start(dir.path(), "-q games.pgn --no-cache");
    for name in ["M%C3%BCller,+Hans", "m%75%CC%88ller,++hans+"] {
        let answer = served.json(&format!("/player?player={name}&color=white"));
        assert_eq!(games(&answer), 2, "{name}");
    }
    assert_eq!(served.get("/games?color=white&opponent=x").status, 400);
    assert_eq!(served.get("/lichess?color=white&opponent=x").status, 400);
    assert_eq!(served.get("/lichess?color=white").status, 200);
}

#[cfg(target_os = "linux")]
#[test]
fn a_temporary_index_of_a_server_that_was_killed_is_removed() {
    let dir = temp();
    let place = dir.path().join("temporary");
    fs::create_dir(&place).unwrap();
    let start = || {
        let args = args!["-q", "--no-cache", sample("famous.pgn")];
        Served::start_with(dir.path(), args, |command| {
            command.env("TMPDIR", &place);
        })
    };
    let entries = || fs::read_dir(&place).unwrap().count();
    let killed = start();
    let living = start();
    assert_eq!(entries(), 2);
    assert_eq!(killed.signal(Signal::KILL).code(), None);
    assert_eq!(entries(), 2);
    let next = start();
    assert_eq!(entries(), 2);
    for served in [living, next] {
        assert_eq!(served.get("/game/00000000").status, 200);
        served.signal(Signal::TERM);
    }
    assert_eq!(entries(), 0);
}

/// The games come from a pipe that nobody writes to, so counting continues until the signal.
#[cfg(target_os = "linux")]
#[test]
fn what_a_server_was_making_when_a_signal_came_is_removed() {
    let dir = temp();
    let place = dir.path().join("temporary");
    fs::create_dir(&place).unwrap();
    let pgn = dir.path().join("games.pgn");
    fs::copy(sample("famous.pgn"), &pgn).unwrap();
    fs::write(dir.path().join("mine.pgn"), "1. e4 e5 2. Nf3 *\n").unwrap();
    ok(dir.path(), "make-book -q games.pgn --explorer games.idx");
    fs::remove_file(&pgn).unwrap();
    make_fifo(&pgn);
    let args = "-q games.idx --repertoire mine.pgn:white";
    let made = || {
        let entries = fs::read_dir(&place).unwrap();
        Vec::from_iter(entries.map(|entry| entry.unwrap().path()))
    };
    let ended_by = |signal: Signal, left: &[PathBuf]| {
        let served = Served::start_with(dir.path(), args, |command| {
            command.env("TMPDIR", &place);
        });
        let (path, host) = ("/book.bin?minGame=1", served.address);
        let mut asking = served.connect();
        write!(asking, "GET {path} HTTP/1.1\r\nHost: {host}\r\n\r\n").unwrap();
        until("games are counted", || {
            let new = made().into_iter().filter(|made| !left.contains(made));
            new.flat_map(fs::read_dir).flatten().count() > 0
        });
        served.signal(signal);
        made()
    };
    let left = ended_by(Signal::KILL, &[]);
    assert_eq!(left.len(), 1);
    assert_eq!(ended_by(Signal::TERM, &left), [] as [PathBuf; 0]);
}

#[cfg(target_os = "linux")]
#[test]
fn directories_of_indexes_are_for_their_owner() {
    let dir = temp();
    let place = dir.path().join("temporary");
    fs::create_dir(&place).unwrap();
    for (option, parent) in [
        ("--no-cache", place.clone()),
        ("-v", dir.path().join("cache")),
    ] {
        let args = args!["-q", option, sample("famous.pgn")];
        let _served = Served::start_with(dir.path(), args, |command| {
            command.env("TMPDIR", &place);
        });
        let made = fs::read_dir(&parent).unwrap().next().unwrap().unwrap();
        let mode = made.metadata().unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o700, "{}", made.path().display());
    }
}

#[cfg(target_os = "linux")]
#[test]
fn an_older_index_that_is_damaged_does_not_matter() {
    let dir = temp();
    let pgn = dir.path().join("mine.pgn");
    fs::copy(sample("famous.pgn"), &pgn).unwrap();
    drop(Served::start(dir.path(), "-q mine.pgn"));
    let older = dir.path().join("cache/polybook");
    let older = older.join(&cached(dir.path())[0]);
    fs::write(older.join("CURRENT"), "MANIFEST-999999\n").unwrap();
    fs::copy(sample("selfplay.pgn"), &pgn).unwrap();
    let served = Served::start(dir.path(), "-q mine.pgn");
    assert_eq!(served.get("/lichess").status, 200);
}

#[cfg(target_os = "linux")]
#[test]
fn a_damaged_index_in_the_cache_is_made_again() {
    let dir = temp();
    fs::copy(sample("famous.pgn"), dir.path().join("mine.pgn")).unwrap();
    let expected = Served::start(dir.path(), "-q mine.pgn")
        .get("/lichess")
        .body;
    let index = dir
        .path()
        .join("cache/polybook")
        .join(&cached(dir.path())[0]);
    let files = || {
        let entries = fs::read_dir(&index).unwrap();
        entries
            .map(|entry| entry.unwrap().path())
            .collect::<Vec<_>>()
    };
    let is_table =
        |path: &std::path::PathBuf| path.extension().is_some_and(|ending| ending == "ldb");
    let truncate = |path: &std::path::PathBuf| fs::write(path, "").unwrap();
    let remove = |path: &std::path::PathBuf| fs::remove_file(path).unwrap();
    for damage in [
        &(|| files().iter().for_each(truncate)) as &dyn Fn(),
        &|| files().iter().for_each(remove),
        &|| {
            files()
                .iter()
                .filter(|path| is_table(path))
                .for_each(remove)
        },
        &|| {
            files()
                .iter()
                .filter(|path| is_table(path))
                .for_each(truncate)
        },
        &|| remove(&index.join("CURRENT")),
    ] {
        damage();
        let served = Served::start(dir.path(), "-q mine.pgn");
        assert_eq!(served.get("/lichess").body, expected);
        assert_eq!(cached(dir.path()).len(), 1);
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_second_server_waits_until_the_first_has_made_the_index() {
    let dir = temp();
    let fifo = dir.path().join("slow.pgn");
    make_fifo(&fifo);
    let start = |log: &str| {
        let log = fs::File::create(dir.path().join(log)).unwrap();
        let mut command = polybook_in(dir.path());
        command.args(["serve", "--listen", "127.0.0.1:0", "slow.pgn"]);
        command.stdout(std::process::Stdio::piped()).stderr(log);
        command.spawn().unwrap()
    };
    let says = |log: &str, text: &str| {
        let told = fs::read_to_string(dir.path().join(log)).unwrap();
        told.contains(text)
    };
    let end = |mut child: std::process::Child| {
        crate::common::send_signal(child.id(), Signal::TERM);
        child.wait().unwrap().code()
    };
    let mut first = start("first");
    until("the first has begun", || !cached(dir.path()).is_empty());
    let mut second = start("second");
    let third = start("third");
    for log in ["second", "third"] {
        until("it waits", || {
            says(log, "another process is making the index")
        });
    }
    // A waiting server exits on a signal.
    assert_eq!(end(third), Some(143));
    let games = fs::read(sample("famous.pgn")).unwrap();
    fs::write(&fifo, games).unwrap();
    for child in [&mut first, &mut second] {
        let mut line = String::new();
        let out = child.stdout.as_mut().unwrap();
        BufReader::new(out).read_line(&mut line).unwrap();
        assert!(line.starts_with("http://127.0.0.1:"), "{line}");
    }
    assert!(says("first", "45 games indexed") && !says("second", "indexed"));
    for child in [first, second] {
        assert_eq!(end(child), Some(143));
    }
}

/// The nginx configuration in docs/operator.md requires a password, except for preflight requests, which browsers send
/// without one.
#[cfg(target_os = "linux")]
#[test]
fn nginx_requires_a_password_except_for_preflight_requests() {
    use std::{env, os::unix::net::UnixStream, path::Path, process::Command};

    let path = env::var("PATH").unwrap_or_default() + ":/usr/sbin";
    let is_there = |directory: &Path| directory.join("nginx").exists();
    let Some(nginx) = env::split_paths(&path).find(|directory| is_there(directory)) else {
        skip("nginx is not installed");
        return;
    };
    let dir = temp();
    let dir = dir.path();
    let options = "--allow-host chess.example.org --allow-origin https://front.example";
    let pgn = sample("famous.pgn");
    let served = Served::start(
        dir,
        format!("-q --no-cache {} {options}", pgn.display()).as_str(),
    );
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/operator.md");
    let page = fs::read_to_string(page).unwrap();
    let block = page.split("```nginx\n").nth(1).unwrap();
    let block = block.split("```").next().unwrap();
    let at = dir.display();
    let is_kept = |line: &&str| !line.trim().starts_with("ssl_");
    let block: Vec<&str> = block.lines().filter(is_kept).collect();
    let block = block
        .join("\n")
        .replace("listen 443 ssl", &format!("listen unix:{at}/socket"))
        .replace("/etc/nginx", &at.to_string())
        .replace("127.0.0.1:8040", &served.address.to_string());
    let temporary: String = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
        .map(|what| format!("{what}_temp_path {at}/{what};\n"))
        .concat();
    let configuration = format!(
        "daemon off;\nmaster_process off;\npid {at}/pid;\nerror_log {at}/log;\nevents {{}}\n\
         http {{\naccess_log off;\n{temporary}{block}\n}}\n"
    );
    fs::write(dir.join("nginx.conf"), configuration).unwrap();
    fs::write(dir.join("chess.passwords"), "name:{PLAIN}password\n").unwrap();
    let mut command = Command::new(nginx.join("nginx"));
    command.args(args!["-p", dir, "-c", dir.join("nginx.conf")]);
    let mut proxy = command.spawn().unwrap();
    let socket = dir.join("socket");
    until("nginx listens", || UnixStream::connect(&socket).is_ok());
    let ask = |method: &str, headers: &str| {
        let mut stream = UnixStream::connect(&socket).unwrap();
        let start = format!("{method} /lichess HTTP/1.1\r\nHost: chess.example.org\r\n");
        let origin = from_origin("https://front.example");
        write!(stream, "{start}{origin}{headers}Connection: close\r\n\r\n").unwrap();
        let mut reply = String::new();
        BufReader::new(stream).read_to_string(&mut reply).unwrap();
        let may_read = reply.contains("access-control-allow-origin: https://front.example");
        (reply.split(' ').nth(1).unwrap().to_owned(), may_read)
    };
    let answers = [
        ask("GET", ""),
        ask("GET", "Authorization: Basic bmFtZTpwYXNzd29yZA==\r\n"),
        ask("OPTIONS", "Access-Control-Request-Method: GET\r\n"),
    ];
    proxy.kill().unwrap();
    proxy.wait().unwrap();
    let expected = [("401", false), ("200", true), ("200", true)];
    let expected = expected.map(|(status, may_read)| (status.to_owned(), may_read));
    assert_eq!(answers, expected);
}

/// A query about the board selects games like any other condition, in all answers. The games are replayed once.
#[test]
fn games_are_selected_by_what_stands_on_the_board() {
    let dir = temp();
    let pgn = dir.path().join("games.pgn");
    fs::copy(sample("selfplay.pgn"), &pgn).unwrap();
    ok(dir.path(), "make-book -q games.pgn --explorer games");
    let served = Served::start(dir.path(), "games");
    let query = "position=move%5BO-O-O%5D%20and%20turn%20%3D%20white";
    let count = ["extract", "-q", "--count", "games.pgn", "--position"];
    let extracted = |query: &str| -> u64 {
        let count = ok(dir.path(), &[&count[..], &[query]].concat());
        count.trim().parse().unwrap()
    };
    let castled = extracted("move[O-O-O] and turn = white");
    let all = games(&served.json("/lichess"));
    assert!(0 < castled && castled < all / 2);
    assert_eq!(games(&served.json(&format!("/lichess?{query}"))), castled);
    // Other games keep their answers when the PGN is gone.
    fs::rename(&pgn, dir.path().join("moved.pgn")).unwrap();
    let listed = served.json(&format!("/games?{query}"));
    assert_eq!(listed["total"], castled);
    let table = served.json(&format!("/openings?{query}"));
    assert_eq!(games(&table), castled);
    let facets = served.json(&format!("/facets?{query}"));
    assert_eq!(facets["games"].as_u64().unwrap_or(castled), castled);
    let white = served.json(&format!("/lichess?{query}&result=1-0"));
    assert_eq!((&white["draws"], &white["black"]), (&json!(0), &json!(0)));
    assert!(white["white"].as_u64().unwrap() < castled);
    let after = served.json(&format!("/lichess?{query}&play=e2e4"));
    assert!(games(&after) < castled);
    for (path, status, problem) in [
        (
            "/lichess?position=P%5Bd9%5D",
            400,
            "the parameter position is malformed: column 4",
        ),
        (
            "/games?position=(",
            400,
            "the parameter position is malformed: column 2",
        ),
        ("/lichess?position=mate", 503, "no longer where it was"),
    ] {
        let reply = served.get(path);
        assert!(reply.text().contains(problem), "{path}: {}", reply.text());
        assert_eq!(reply.status, status, "{path}");
    }
    fs::rename(dir.path().join("moved.pgn"), &pgn).unwrap();
    assert_eq!(
        games(&served.json("/lichess?position=mate")),
        extracted("mate")
    );
    let parts: Vec<String> = (0..100).map(|ply| format!("ply={ply}+and+mate")).collect();
    let long = served.json(&format!(
        "/lichess?position={}",
        parts.join("+or+").replace("ply=", "ply%3D")
    ));
    assert_eq!(games(&long), extracted("mate and ply < 100"));
}
