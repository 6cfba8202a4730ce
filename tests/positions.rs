//! Requests with many positions: `POST /positions`.

use std::{
    fs,
    io::{Read, Write},
    thread,
};

use serde_json::{Value, json};

use crate::common::{
    sample,
    served::{Reply, Served},
    temp,
};

const KIND: &str = "Content-Type: application/json";
const START: &str = "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1";

/// Requests a list of positions.
fn ask(served: &Served, query: &str, fens: &[impl AsRef<str>]) -> Value {
    let fens: Vec<&str> = fens.iter().map(AsRef::as_ref).collect();
    let reply = served.post(
        &format!("/positions?{query}"),
        KIND,
        &json!(fens).to_string(),
    );
    assert_eq!(reply.status, 200, "{}", reply.text());
    assert_eq!(reply.header("content-type"), Some("application/json"));
    serde_json::from_slice(&reply.body).unwrap()
}

/// Returns the FENs of all positions within a few half-moves of the start, in the order of a search through the most
/// frequent moves.
fn positions(served: &Served, count: usize) -> Vec<String> {
    let mut fens: Vec<String> = Vec::new();
    let mut lines = vec![String::new()];
    while fens.len() < count {
        let line = lines.remove(0);
        let answer = served.json(&format!(
            "/lichess?moves=100&topGames=0&recentGames=0&play={line}"
        ));
        fens.push(answer["polybook"]["fen"].as_str().unwrap().to_owned());
        for mv in answer["moves"].as_array().unwrap() {
            let comma = if line.is_empty() { "" } else { "," };
            lines.push(format!("{line}{comma}{}", mv["uci"].as_str().unwrap()));
        }
    }
    fens
}

/// On each route that answers moves, `resulting` adds to each move the results of a request for the position after it, and
/// changes nothing else.
#[test]
fn resulting_positions_have_the_results_of_their_own_requests() {
    let dir = temp();
    let args = args![
        "-q",
        "--no-cache",
        sample("famous.pgn"),
        sample("online.pgn")
    ];
    let served = Served::start(dir.path(), args);
    let number = |counts: &Value, name: &str| counts[name].as_u64().unwrap();
    let mut compared = 0;
    for (route, filters) in [
        ("lichess", ""),
        ("lichess", "speeds=blitz,rapid&since=2024"),
        ("lichess", "player=anna_plays&result=win,draw"),
        ("masters", "since=1850&until=1950"),
        ("player", "player=anna_plays&color=white"),
    ] {
        for play in ["", "e2e4", "e2e4,e7e5,g1f3"] {
            let path = |play: &str| format!("/{route}?legal=0&moves=100&{filters}&play={play}");
            let plain = served.json(&path(play));
            let mut answer = served.json(&(path(play) + "&resulting=true"));
            for mv in answer["moves"].as_array_mut().unwrap() {
                let uci = mv["uci"].as_str().unwrap().to_owned();
                let resulting = mv.as_object_mut().unwrap().remove("resulting").unwrap();
                let after = served.json(&path(format!("{play},{uci}").trim_start_matches(',')));
                let numbers = ["white", "draws", "black"].map(|name| number(&after, name));
                assert_eq!(
                    ["white", "draws", "black"].map(|name| number(&resulting, name)),
                    numbers,
                    "{play} {uci}"
                );
                assert_eq!(resulting["unfinished"], after["unfinished"], "{play} {uci}");
                assert_eq!(number(&resulting, "games"), numbers.iter().sum::<u64>());
                compared += 1;
            }
            assert_eq!(answer, plain, "{route} {filters} {play}");
            let refused = served.get(&(path(play) + "&resulting=perhaps"));
            assert_eq!(refused.status, 400);
        }
    }
    assert!(compared > 30, "{compared}");
    let alone = served
        .json("/lichess?legal=0&moves=3&resulting=true&topGames=0&recentGames=0&speeds=blitz");
    assert!(alone["moves"][0]["resulting"]["games"].is_u64(), "{alone}");
    assert_eq!(
        ask(&served, "moves=3&resulting=true&speeds=blitz", &[START])[0],
        alone
    );
}

#[test]
fn each_position_is_answered_in_order_as_if_it_were_requested_alone() {
    let dir = temp();
    let args = args![
        "-q",
        "--no-cache",
        sample("famous.pgn"),
        sample("online.pgn")
    ];
    let served = Served::start(dir.path(), args);
    let mut fens = positions(&served, 60);
    fens.reverse();
    // No game reaches this position, and the same position may occur twice.
    fens.insert(7, "4k3/8/8/8/8/8/8/4K3 w - - 0 1".to_owned());
    fens.insert(30, START.to_owned());
    for query in [
        "",
        "moves=2&topGames=2&recentGames=1",
        "speeds=blitz&since=2024-05",
        "player=anna_plays&color=white",
        "player=nobody",
        "source=famous&duplicates=once",
        "position=check",
    ] {
        let answers = ask(&served, query, &fens);
        let limits = if query.contains("topGames") {
            ""
        } else {
            "&topGames=0&recentGames=0"
        };
        assert_eq!(answers.as_array().unwrap().len(), fens.len());
        for (fen, answer) in fens.iter().zip(answers.as_array().unwrap()) {
            let fen = fen.replace(' ', "_");
            let alone = served.json(&format!("/lichess?{query}{limits}&legal=0&fen={fen}"));
            assert_eq!(*answer, alone, "{query} {fen}");
        }
    }
    assert_eq!(ask(&served, "", &[] as &[&str]), json!([]));
    // Lichess's routes accept only months.
    let sum =
        |answer: &Value| ["white", "draws", "black"].map(|side| answer[side].as_u64().unwrap());
    let start = ask(&served, "since=2024-05-02", &[START]);
    let games = served.json("/games?since=2024-05-02&limit=0")["total"].as_u64();
    assert_eq!(Some(sum(&start[0]).iter().sum()), games);
}

#[test]
fn a_position_that_is_not_one_has_an_error_of_its_own() {
    let dir = temp();
    let args = args!["-q", "--no-cache", sample("famous.pgn")];
    let served = Served::start(dir.path(), args);
    let long = "8".repeat(100_000);
    let chess960 = "rk1q1bbr/pppppppp/8/8/8/8/PPPPPPPP/RK1Q1BBR w HAha - 0 1";
    let wrong = [
        "",
        "not a FEN",
        "8/8/8/8/8/8/8/8 w - - 0 1",
        "\u{0}\u{1f600}",
        &long,
        chess960,
    ];
    let fens: Vec<&str> = wrong.into_iter().flat_map(|wrong| [wrong, START]).collect();
    let answers = ask(&served, "", &fens);
    for (index, answer) in answers.as_array().unwrap().iter().enumerate() {
        if index % 2 == 1 {
            assert_eq!(answer["white"].as_u64().map(|games| games > 0), Some(true));
            continue;
        }
        let fields: Vec<&String> = answer.as_object().unwrap().keys().collect();
        assert_eq!(fields, ["error"]);
        let error = answer["error"].as_str().unwrap();
        assert!(error.contains("FEN \"") && error.len() < 400, "{error}");
    }
    let variant = ask(&served, "variant=chess960", &[chess960, "x"]);
    assert!(variant[0].get("error").is_none() && variant[1].get("error").is_some());
}

#[test]
fn requests_that_are_no_list_of_positions_are_refused() {
    let dir = temp();
    let args = args!["-q", "--no-cache", sample("famous.pgn")];
    let mut served = Served::start(dir.path(), args);
    let many = |count: usize| json!(vec![START; count]).to_string();
    assert_eq!(served.post("/positions", KIND, &many(1000)).status, 200);
    let huge = "x".repeat(300 << 10);
    let deep = "[".repeat(100_000);
    let numbers = format!("[{}1]", "1,".repeat(100_000));
    let list = "the body of the request is not a JSON list of FENs: ";
    for (query, kind, body, status, why) in [
        (
            "",
            KIND,
            &*many(1001),
            400,
            "the request contains 1001 positions: send at most 1000",
        ),
        ("", KIND, "", 400, list),
        ("", KIND, "{}", 400, list),
        ("", KIND, "null", 400, list),
        ("", KIND, "[null]", 400, list),
        ("", KIND, "[\"", 400, list),
        ("", KIND, "[\"\\ud800\"]", 400, list),
        ("", KIND, "[] []", 400, list),
        ("", KIND, &deep, 400, list),
        ("", KIND, &numbers, 400, list),
        (
            "",
            KIND,
            &huge,
            413,
            "the list of positions is too long: send at most 256 KiB",
        ),
        (
            "",
            "Content-Type: text/plain",
            "[]",
            415,
            "the body of the request is not a list of positions: ",
        ),
        (
            "",
            "Accept: */*",
            "[]",
            415,
            "the body of the request is not a list of positions: ",
        ),
        ("fen=8", KIND, "[]", 400, "unknown parameter fen: "),
        ("play=e2e4", KIND, "[]", 400, "unknown parameter play: "),
        ("moves=x", KIND, "[]", 400, "the parameter moves "),
        ("source=none", KIND, "[]", 400, "this server has no source "),
        ("color=white", KIND, "[]", 400, "the parameter color "),
        ("clocks=true", KIND, "[]", 400, "unknown parameter clocks: "),
    ] {
        let reply = served.post(&format!("/positions?{query}"), kind, body);
        assert_eq!(reply.status, status, "{query} {kind} {}", reply.text());
        assert!(reply.text().starts_with(why), "{}", reply.text());
        assert_eq!(reply.text().trim_end().lines().count(), 1);
    }
    let accepts = format!("{KIND}\r\nAccept: application/json");
    let reply = served.post("/positions", &accepts, "{}");
    let error: Value = serde_json::from_slice(&reply.body).unwrap();
    assert!(error["error"].as_str().unwrap().starts_with(list));
    let got = served.get("/positions");
    assert_eq!((got.status, got.header("allow")), (405, Some("POST")));
    // A chunked body does not announce its length.
    let chunk = format!("{:x}\r\n{}\r\n", 64 << 10, "x".repeat(64 << 10)).repeat(5);
    let request = format!(
        "POST /positions HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n{KIND}\r\nTransfer-Encoding: \
         chunked\r\n\r\n{chunk}0\r\n\r\n"
    );
    assert_eq!(
        served.send(request.as_bytes()).map(|reply| reply.status),
        Some(413)
    );
    // A page of another site cannot send this request.
    let foreign = format!("{KIND}\r\nOrigin: https://evil.example\r\nSec-Fetch-Site: cross-site");
    assert_eq!(served.post("/positions", &foreign, "[]").status, 403);
    assert!(served.is_alive());
}

#[test]
fn answers_that_are_too_large_together_are_refused() {
    let dir = temp();
    let moves = [
        "a3", "a4", "b3", "b4", "c3", "c4", "d3", "d4", "e3", "e4", "f3", "f4",
    ];
    let games = moves.map(|mv| {
        let name = mv.repeat(125);
        format!("[White \"{name}\"]\n[Black \"{name}\"]\n\n1. {mv} *\n\n")
    });
    fs::write(dir.path().join("games.pgn"), games.concat()).unwrap();
    let served = Served::start(dir.path(), "-q --no-cache games.pgn");
    let body = json!(vec![START; 1000]).to_string();
    let reply = served.post("/positions?topGames=4&recentGames=8", KIND, &body);
    let problem = "the answers have more than 8 MiB: send fewer positions, or request fewer moves and games\n";
    assert_eq!((reply.status, &*reply.text()), (400, problem));
    let few = ask(&served, "topGames=4&recentGames=8", &[START; 100]);
    assert_eq!(few.as_array().unwrap().len(), 100);
    let many = ask(&served, "moves=0", &[START; 1000]);
    assert_eq!(many.as_array().unwrap().len(), 1000);
}

#[test]
fn a_list_that_arrives_slowly_is_given_up() {
    let dir = temp();
    let served = Served::start(dir.path(), args!["-q", "--no-cache", sample("famous.pgn")]);
    let mut slow = served.connect();
    let head = format!(
        "POST /positions HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n{KIND}\r\nContent-Length: 100\r\n\r\n["
    );
    slow.write_all(head.as_bytes()).unwrap();
    assert_eq!(ask(&served, "", &[START]).as_array().unwrap().len(), 1);
    let mut reply = String::new();
    slow.read_to_string(&mut reply).unwrap();
    assert!(reply.starts_with("HTTP/1.1 408 "), "{reply}");
    assert!(
        reply.contains("the list of positions was not complete after ten seconds"),
        "{reply}"
    );
}

#[test]
fn clients_that_leave_do_not_keep_others_from_being_answered() {
    let dir = temp();
    // The starting position of many games takes long with a condition that reads each of them.
    let games = fs::read_to_string(sample("selfplay.pgn"))
        .unwrap()
        .repeat(20);
    fs::write(dir.path().join("games.pgn"), games).unwrap();
    let mut served = Served::start(dir.path(), "-q --no-cache --threads 1 games.pgn");
    let body = json!(vec![START; 1000]).to_string();
    let head = format!(
        "POST /positions?minPlies=4 HTTP/1.1\r\nHost: localhost\r\n{KIND}\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    let mut held = Vec::new();
    for _ in 0..20 {
        let mut stream = served.connect();
        stream
            .write_all(format!("{head}{body}").as_bytes())
            .unwrap();
        held.push(stream);
    }
    // One thread answers, and takes turns.
    let expected = served.get("/lichess?minPlies=4");
    assert_eq!(expected.status, 200, "{}", expected.text());
    drop(held);
    let replies: Vec<Reply> = thread::scope(|scope| {
        let post = || {
            served.post(
                "/positions?minPlies=4&moves=1",
                KIND,
                &json!([START]).to_string(),
            )
        };
        let asked: Vec<_> = (0..4).map(|_| scope.spawn(post)).collect();
        asked
            .into_iter()
            .map(|asked| asked.join().unwrap())
            .collect()
    });
    for reply in replies {
        assert_eq!(reply.status, 200, "{}", reply.text());
    }
    assert!(served.is_alive());
}
