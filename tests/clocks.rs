//! The times of moves: `polybook moves --clocks`.

use std::fs;

use serde_json::{Value, json};

use crate::common::{ok, ok_json, refused, run, served::Served, temp};

fn game(white: &str, date: &str, control: &str, moves: &str) -> String {
    format!(
        "[White \"{white}\"]\n[Black \"X\"]\n[Date \"{date}\"]\n[Result \"1-0\"]\n[TimeControl \"{control}\"]\n\n{moves} 1-0\n\n"
    )
}

/// Returns the moves of a position in SAN, each with its times.
fn times(answer: &Value) -> Vec<(String, Value)> {
    let moves = answer["moves"].as_array().unwrap().iter();
    moves
        .map(|mv| (mv["san"].as_str().unwrap().to_owned(), mv["clock"].clone()))
        .collect()
}

#[test]
fn moves_have_mean_and_median_times() {
    let dir = temp();
    let dir = dir.path();
    let castled = "1. e4 {[%clk 0:03:00]} e5 {[%clk 0:03:00]} 2. Nf3 {[%clk 0:02:58.5]} Nc6 {[%clk 0:02:50]} \
        3. Bc4 {[%clk 0:02:50]} Bc5 {[%clk 0:02:45]} 4. O-O {[%clk 0:02:42]}";
    let games = [
        game("A", "2024.01.01", "180+2", castled),
        game(
            "B",
            "2024.01.02",
            "180",
            "1. e4 {[%clk 0:02:59]} e5 {[%clk 0:02:58]} 2. Nf3 {[%eval 0.2] [%clk 0:02:49]} (2. Nc3 {[%clk 0:00:01]})",
        ),
        game(
            "A",
            "2024.01.03",
            "-",
            "1. e4 e5 {[%emt 0:00:04]} 2. Nc3 {[%emt 0:01:00]}",
        ),
        game(
            "B",
            "2024.01.04",
            "5400+30",
            "1. e4 {[%clk 1:30:10]} e5 {[%clk 1:29:00]} 2. Nc3 {[%clk 1:10:10]}",
        ),
        game(
            "A",
            "2024.01.05",
            "40/7200:3600",
            "1. e4 {[%clk 2:00:00]} e5 {[%clk 2:00:00]} 2. Nf3 {[%clk 1:50:00]}",
        ),
        // The game repeats the position; the last move counts.
        game(
            "B",
            "2023.01.01",
            "600",
            "1. e4 e5 2. Ke2 {[%clk 0:09:00]} Ke7 3. Ke1 {[%clk 0:08:50]} Ke8 4. Nf3 {[%clk 0:08:47]}",
        ),
    ];
    fs::write(dir.join("games.pgn"), games.concat()).unwrap();
    ok(dir, "make-book -q games.pgn --explorer games.idx");
    let at = |line: &str, options: &str| {
        let options: Vec<&str> = options.split_whitespace().collect();
        let args = [
            &["show", "games.idx", "--json", "--moves", line][..],
            &options,
        ]
        .concat();
        ok_json(dir, &args)
    };
    let answer = at("1. e4 e5", "--clocks");
    // 1. e4 e5 2. Nf3 took 3.5, 10 and 600 seconds, and 2. Nc3 took 60 and 1230 seconds.
    let nf3 = json!({"games": 3, "mean": 204.5, "median": 10.0});
    let nc3 = json!({"games": 2, "mean": 645.0, "median": 645.0});
    // When the king is back on e1, the position is another one, because castling is no longer possible.
    assert_eq!(
        times(&answer),
        [
            ("Nf3".to_owned(), nf3),
            ("Nc3".to_owned(), nc3),
            ("Ke2".to_owned(), Value::Null)
        ]
    );
    assert_eq!(answer["clocks"], json!({"games": 6, "read": 6}));
    assert_eq!(
        times(&at("1. e4 e5", "--clocks --player A"))[..1],
        [(
            "Nf3".to_owned(),
            json!({"games": 2, "mean": 301.75, "median": 301.75})
        )]
    );
    let newest = at("1. e4 e5", "--clocks=3");
    assert_eq!(newest["clocks"], json!({"games": 6, "read": 3}));
    assert_eq!(
        times(&newest)[0].1,
        json!({"games": 1, "mean": 600.0, "median": 600.0})
    );
    assert_eq!(
        times(&at("", "--clocks"))[0].1,
        json!({"games": 2, "mean": 10.5, "median": 10.5})
    );
    let castles = at("1. e4 e5 2. Nf3 Nc6 3. Bc4 Bc5", "--clocks");
    assert_eq!(
        times(&castles),
        [(
            "O-O".to_owned(),
            json!({"games": 1, "mean": 10.0, "median": 10.0})
        )]
    );
    assert_eq!(times(&at("1. e4 e5", ""))[0].1, Value::Null);
    let table = ok(
        dir,
        &["moves", "games.idx", "--clocks", "--moves", "1. e4 e5"][..],
    );
    assert!(
        table.contains("  rating  seconds  median  timed  opening"),
        "{table}"
    );
    let row = table.lines().find(|line| line.starts_with("Nf3")).unwrap();
    assert!(row.contains("    204.5    10.0 "), "{table}");

    ok(
        dir,
        "make-book -q games.pgn --leveldb plain.idx --index-stats",
    );
    let packed = zstd::encode_all(fs::File::open(dir.join("games.pgn")).unwrap(), 1).unwrap();
    fs::write(dir.join("games.pgn.zst"), packed).unwrap();
    ok(dir, "make-book -q games.pgn.zst --explorer packed.idx");
    refused(
        dir,
        &[
            ("show plain.idx --clocks", 2, "--explorer"),
            (
                "show packed.idx --clocks",
                1,
                "games.pgn.zst: this file is compressed",
            ),
            ("show games.idx --clocks=0", 2, "0"),
            ("show games.idx 1.", 1, "this is neither a FEN nor a move"),
            ("show games.idx --clocks 5000", 1, "--clocks=5000"),
        ],
    );
}

#[test]
fn the_explorer_has_the_times_on_request() {
    let dir = temp();
    let dir = dir.path();
    let line = "1. e4 {[%emt 0:00:01]} e5 2. Nf3 Nc6 3. Bc4 Bc5 4. O-O {[%emt 0:00:10]}";
    let games: Vec<String> = (0..250)
        .map(|number| match number {
            // The newest game.
            249 => game("A", "2025.01.01", "-", &line.replace("10]", "30.5]")),
            // The oldest games, which are not read.
            0..50 => game("A", "2020.01.01", "-", &line.replace("10]", "59]")),
            _ => game("B", "2024.01.01", "-", line),
        })
        .collect();
    fs::write(dir.join("games.pgn"), games.concat()).unwrap();
    ok(dir, "make-book -q games.pgn --explorer games.idx");
    let served = Served::start(dir, "games.idx");
    let castle = "play=e2e4,e7e5,g1f3,b8c6,f1c4,f8c5";
    let clocks = |more: &str| {
        let answer = served.json(&format!("/lichess?{castle}{more}"));
        assert_eq!(answer["moves"][0]["uci"], "e1h1", "{more}");
        answer["polybook"]["clocks"].clone()
    };
    let castled = |games: u64, mean: f64| json!([{"uci": "e1h1", "games": games, "mean": mean, "median": mean}]);
    let all = clocks("&clocks=true");
    assert_eq!((&all["games"], &all["read"]), (&json!(250), &json!(200)));
    assert_eq!(all["moves"][0]["games"], 200);
    assert_eq!(all["moves"][0]["median"], 10.0);
    let mean = all["moves"][0]["mean"].as_f64().unwrap();
    assert!(
        (mean - (199.0 * 10.0 + 30.5) / 200.0).abs() < 1e-9,
        "{mean}"
    );
    let of_a = clocks("&clocks=true&player=A&since=2021");
    assert_eq!(of_a["moves"], castled(1, 30.5));
    for more in ["", "&clocks=false"] {
        assert_eq!(clocks(more), Value::Null, "{more}");
    }
    let path = format!("/player?{castle}&player=A&color=white&since=2021&clocks=true");
    assert_eq!(
        served.json(&path)["polybook"]["clocks"]["moves"],
        castled(1, 30.5)
    );
    assert_eq!(served.get("/lichess?clocks=perhaps").status, 400);

    // The texts of the games are read each time.
    fs::remove_file(dir.join("games.pgn")).unwrap();
    let reply = served.get(&format!("/lichess?{castle}&clocks=true"));
    assert_eq!((reply.status, reply.text().lines().count()), (503, 1));
}

/// Engine matches have controls with fractions of seconds.
#[test]
fn decimals_of_clocks_and_controls() {
    let dir = temp();
    let dir = dir.path();
    let games = "[TimeControl \"180.5+0.5\"]\n\n1. e4 {[%clk 0:03:00.4]} c5 {[%clk 0:02:58.25]} 2. Nf3 {[%clk 0:02:59.9]} 1-0\n";
    fs::write(dir.join("a.pgn"), games).unwrap();
    ok(dir, "make-book -q a.pgn --explorer a.idx");
    for (moves, seconds) in [("", 0.6), ("e4", 2.75), ("e4 c5", 1.0)] {
        let answer = ok_json(
            dir,
            args!["moves", "a.idx", "--clocks", "--json", "--moves", moves],
        );
        let mean = answer["moves"][0]["clock"]["mean"].as_f64().unwrap();
        assert!((mean - seconds).abs() < 0.051, "{moves}: {answer}");
    }
}

#[test]
fn games_without_clock_times_are_told() {
    let dir = temp();
    fs::write(dir.path().join("games.pgn"), "1. e4 e5 *\n\n1. d4 d5 *\n").unwrap();
    ok(dir.path(), "make-book -q games.pgn --explorer games.idx");
    let output = run(dir.path(), "show games.idx --clocks");
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(
        said,
        "no times: no clock times ([%clk] with a readable TimeControl, or [%emt]) of these moves in 2 games\n"
    );
}
