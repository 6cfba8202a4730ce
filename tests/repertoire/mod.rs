//! `polybook repertoire`: building, checking games, gaps and new moves. The results are compared with
//! python-chess and with each other.

mod build;
mod check;
mod gaps;
mod new_moves;
mod practise;
#[cfg(feature = "serve")]
mod sent;

use std::{fmt::Write as _, fs, path::Path, thread};

use serde_json::Value;
use shakmaty::{Chess, Position, san::SanPlus};

use crate::common::{
    corpus, fails, ok, ok_json, python, refused, run, run_python, sample, served::Served, temp,
};

/// Ten games that begin with 1. e4: six continue with 1... e5, three with 1... c5, and one with 1... d5.
const SOURCE: &str = "1. e4 e5 2. Nf3 1-0\n\n1. e4 e5 2. Nf3 Nc6 1-0\n\n1. e4 e5 2. Nf3 Nf6 0-1\n\n1. e4 e5 2. Bc4 1-0\n\n1. e4 e5 2. Bc4 1-0\n\n\
    1. e4 e5 2. Nf3 Nc6 1/2-1/2\n\n1. e4 c5 *\n\n1. e4 c5 2. Nf3 *\n\n1. e4 c5 2. Nf3 *\n\n1. e4 d5 0-1\n\n";

fn write(dir: &Path, name: &str, text: &str) {
    fs::write(dir.join(name), text).unwrap();
}

/// Returns, for each game, the side that left the repertoire, and the number of the half-move by which it left.
fn left(document: &Value) -> Vec<(Option<&str>, Option<u64>)> {
    let games = document["games"].as_array().unwrap().iter();
    games
        .map(|game| (game["left_by"].as_str(), game["ply"].as_u64()))
        .collect()
}

fn check(dir: &Path, repertoire: &str, games: &str, color: &str) -> Value {
    write(dir, "checked-repertoire.pgn", repertoire);
    write(dir, "checked-games.pgn", games);
    let line =
        format!("repertoire check checked-repertoire.pgn checked-games.pgn --json --color {color}");
    ok_json(dir, &line)
}

fn gaps(dir: &Path, repertoire: &str, source: &str, color: &str) -> Value {
    let line = format!(
        "repertoire gaps {repertoire} --against {source} --color {color} --min-game 1 --json"
    );
    ok_json(dir, &line)
}

/// Returns the line, the move, the frequency (one game in N) and the number of games of each gap, and then of each move
/// after the end of a line.
fn reported(document: &Value) -> Vec<(String, String, f64, u64)> {
    let lists = ["gaps", "line_ends"].map(|name| document[name].as_array().unwrap());
    let gaps = lists.into_iter().flatten();
    let text = |value: &Value| value.as_str().unwrap_or("-").to_owned();
    gaps.map(|gap| {
        let (one_in, games) = (gap["one_in"].as_f64(), gap["games"].as_u64());
        (
            text(&gap["line"]),
            text(&gap["move"]),
            one_in.unwrap(),
            games.unwrap(),
        )
    })
    .collect()
}

/// Builds a repertoire from games, and compares all reports about it with those of python-chess.
fn assert_python_agrees(
    python: &Path,
    dir: &Path,
    games: &str,
    reference: &str,
    color: &str,
    one_in: u64,
) {
    let json = |name: &str, line: &str| fs::write(dir.join(name), ok(dir, line)).unwrap();
    let repertoire = format!("{color}.pgn");
    ok(
        dir,
        &format!(
            "repertoire build {reference} --color {color} --reach {one_in} --max-ply 24 --out {repertoire} --force"
        ),
    );
    json(
        "check.json",
        &format!("repertoire check {repertoire} {games} --color {color} --json"),
    );
    json(
        "new.json",
        &format!("repertoire new {games} --reference {reference} --json"),
    );
    json(
        "earlier.json",
        &format!("repertoire new {games} --reference {reference} --earlier --json"),
    );
    json(
        "gaps.json",
        &format!(
            "repertoire gaps {repertoire} --against {reference} --color {color} --min-game 1 --json"
        ),
    );
    let at = |name: &str| dir.join(name);
    let args = [
        &at(&repertoire),
        &at(games),
        &at(reference),
        Path::new(color),
        dir,
    ];
    run_python(python, "repertoire.py", &args);
}

#[test]
fn python_chess_agrees_with_all_reports_about_a_repertoire() {
    let Some(python) = python(&["chess"]) else {
        return;
    };
    let dir = temp();
    fs::copy(sample("famous.pgn"), dir.path().join("famous.pgn")).unwrap();
    fs::copy(sample("online.pgn"), dir.path().join("online.pgn")).unwrap();
    assert_python_agrees(&python, dir.path(), "famous.pgn", "famous.pgn", "white", 15);
    assert_python_agrees(&python, dir.path(), "online.pgn", "famous.pgn", "black", 15);
    assert_python_agrees(&python, dir.path(), "famous.pgn", "online.pgn", "white", 30);
}

/// Tests 2,000 games, and all games of one player for each side.
#[test]
fn python_chess_agrees_on_games_of_masters() {
    let Some((corpus, python)) = corpus().zip(python(&["chess"])) else {
        return;
    };
    let masters = fs::read_to_string(corpus.join("masters.pgn")).unwrap();
    let begins: Vec<usize> = masters.match_indices("[Event ").map(|(at, _)| at).collect();
    let agrees = |color: &str, player: &str| {
        let dir = temp();
        let dir = dir.path();
        let games = |first: usize, end: usize| &masters[begins[first]..begins[end]];
        write(dir, "games.pgn", games(30_000, 32_000));
        write(dir, "reference.pgn", games(29_500, 30_500));
        let ends = begins.iter().skip(1).copied().chain([masters.len()]);
        let all = begins.iter().zip(ends);
        let of_player = ["White", "Black"].map(|tag| format!("[{tag} \"{player}\"]"));
        let is_of_player = |game: &&str| of_player.iter().any(|tag| game.contains(tag));
        let games = all.map(|(begin, end)| &masters[*begin..end]);
        let games: Vec<&str> = games.filter(is_of_player).collect();
        assert!(games.len() > 300, "{player}: {}", games.len());
        write(dir, "player.pgn", &games.concat());
        for games in ["games.pgn", "player.pgn"] {
            assert_python_agrees(&python, dir, games, "reference.pgn", color, 100);
        }
    };
    thread::scope(|scope| {
        scope.spawn(|| agrees("black", "Artemiev,V"));
        agrees("white", "Topalov,V");
    });
}

#[test]
fn empty_and_damaged_files_are_refused() {
    let dir = temp();
    let dir = dir.path();
    let document = check(dir, "", "1. e4 e5 *\n\n", "white");
    assert_eq!(left(&document), [(Some("opponent"), Some(0))]);
    assert_eq!(left(&check(dir, "1. e4 *", "", "white")), []);
    let hostile = format!(
        "[Event \"x\"]\n[FEN \"no\"]\n\n1. e4 *\n\n1. e4 {} *\n\n1. e4 {{never closed\n\n[Event \"y\"]\n\n1. e4 (1. d4 (1. c4 e5 *\n\n\
        [Event \"z\"]\n\n1. e4 -- 2. d4 *\n\n[Event \"w\"]\n\n1. e4 Ke7 2. zz *\n",
        "(1. d4 ".repeat(3000)
    );
    for (repertoire, games) in [
        (&*hostile, "1. e4 e5 *"),
        ("1. e4 e5 2. Nf3 *", &*hostile),
        (&hostile, &hostile),
    ] {
        let document = check(dir, repertoire, games, "white");
        assert!(!document["games"].as_array().unwrap().is_empty());
    }
    write(dir, "text.pgn", "this is no game\n");
    write(dir, "games.pgn", "1. e4 e5 *\n");
    refused(
        dir,
        &[
            (
                "repertoire check text.pgn games.pgn --color white",
                1,
                "contains no game",
            ),
            (
                "repertoire check games.pgn text.pgn --color white",
                1,
                "contains no game",
            ),
            (
                "repertoire check games.pgn --color white",
                2,
                "the repertoire or the games are missing: give the file of the repertoire, then the files of games",
            ),
            (
                "repertoire check games.pgn games.pgn",
                2,
                "--color white or --color black",
            ),
            (
                "repertoire check missing.pgn games.pgn --color white",
                1,
                "missing.pgn",
            ),
            (
                "repertoire check . games.pgn --color white",
                1,
                "a directory",
            ),
            (
                "repertoire build games.pgn --color black --from 1.d4 --out x.pgn",
                1,
                "--from",
            ),
            (
                "repertoire build games.pgn --color black --reach 0 --out x.pgn",
                2,
                "number of games",
            ),
            (
                "repertoire build games.pgn --color white --out games.pgn",
                1,
                "games.pgn",
            ),
            (
                "repertoire new games.pgn --reference games.pgn --out games.pgn",
                1,
                "games.pgn",
            ),
            (
                "repertoire gaps games.pgn --against games.pgn --color white --add 1",
                2,
                "--out",
            ),
        ],
    );
    fails(dir, "repertoire", 2);
}

#[test]
fn outputs_are_not_named_as_if_they_were_compressed() {
    let dir = temp();
    let dir = dir.path();
    write(dir, "games.pgn", "1. e4 *\n\n");
    for line in [
        "repertoire build games.pgn --color white --out white.pgn.zst",
        "repertoire new games.pgn --reference games.pgn --format pgn --out new.pgn.GZ",
    ] {
        let said = fails(dir, line, 1);
        assert!(said.contains("without compression"), "{said}");
    }
    assert_eq!(fs::read_dir(dir).unwrap().count(), 1);
}

/// Pruned counts lack rare positions, which would be reported as gaps and new moves without a warning.
#[test]
fn a_warning_names_pruned_counts() {
    let dir = temp();
    let dir = dir.path();
    write(dir, "games.pgn", &SOURCE.repeat(2));
    ok(
        dir,
        "make-book -q games.pgn --counts whole.counts --by speed,rating,month",
    );
    ok(
        dir,
        "make-book -q whole.counts --counts pruned.counts --min-game 5",
    );
    ok(dir, "make-book -q pruned.counts --explorer pruned.idx");
    write(dir, "mine.pgn", "1. e4 e5 2. Nf3 *");
    for source in ["pruned.counts", "pruned.idx"] {
        for line in [
            format!("repertoire gaps mine.pgn --color white --against {source}"),
            format!("repertoire new games.pgn --reference {source}"),
        ] {
            let said = String::from_utf8(run(dir, &line).stderr).unwrap();
            assert_eq!(
                said.matches("only positions in which at least 5 moves were counted")
                    .count(),
                1,
                "{line}: {said}"
            );
        }
    }
    let line = "repertoire gaps mine.pgn --color white --against whole.counts";
    let said = String::from_utf8(run(dir, line).stderr).unwrap();
    assert!(!said.contains("only positions"), "{said}");
}

#[test]
fn standard_input_is_read_once_and_lists_have_it_alone() {
    let dir = temp();
    let dir = dir.path();
    write(dir, "games.pgn", SOURCE);
    refused(
        dir,
        &[
            ("repertoire check - - --color white", 2, "- is given twice"),
            (
                "repertoire check --white - --black - games.pgn",
                2,
                "- is given twice",
            ),
            ("repertoire new - --reference -", 2, "- is given twice"),
            (
                "repertoire check games.pgn games.pgn --color white --out -",
                2,
                "give a file",
            ),
            (
                "repertoire gaps games.pgn --against games.pgn --color white --add 1 --out -",
                2,
                "give a file",
            ),
        ],
    );
}

/// An index of positions without moves cannot be a source, because the games that reached a position may have
/// come by other moves.
#[test]
fn an_index_without_the_games_of_moves_is_no_source() {
    let dir = temp();
    let dir = dir.path();
    write(dir, "games.pgn", SOURCE);
    ok(
        dir,
        "make-book -q games.pgn --leveldb stats.idx --index-stats",
    );
    for line in [
        "repertoire gaps games.pgn --color white --against stats.idx",
        "repertoire build stats.idx --color white --out x.pgn",
        "repertoire new games.pgn --reference stats.idx",
    ] {
        assert!(fails(dir, line, 1).contains("--explorer"), "{line}");
    }
}

#[cfg(feature = "serve")]
#[test]
fn the_server_says_what_repertoires_have() {
    use serde_json::json;

    use crate::common::served::Served;

    let dir = temp();
    let dir = dir.path();
    write(dir, "games.pgn", SOURCE);
    write(dir, "mine.pgn", "1. e4 e5 2. Nf3 Nc6 3. Bb5 *");
    ok(dir, "make-book -q games.pgn --explorer x.idx");
    ok(dir, "make-book -q mine.pgn --min-game 1 --bin black.bin");
    let served = Served::start(
        dir,
        "-q x.idx --repertoire mine.pgn:white --repertoire black.bin:black",
    );
    let said = |query: &str| served.json(&format!("/repertoire{query}"))["repertoires"].clone();
    let white = |query: &str| said(query)[0].clone();
    let e4 = json!({ "uci": "e2e4", "san": "e4" });
    let version = white("")["version"].clone();
    assert!(version.is_string());
    let start = json!({
        "name": "mine", "color": "white", "pgn": true, "practise": true, "version": version, "isKnown": true, "oneIn": 1.0, "moves": [e4], "gaps": [], "lineEnds": [],
    });
    assert_eq!(white(""), start);
    let after = white("?play=e2e4&minGame=1");
    let nf3 = json!({ "uci": "g1f3", "san": "Nf3" });
    let e5 = json!([{ "uci": "e7e5", "san": "e5", "answers": [nf3] }]);
    assert_eq!(after["moves"], e5);
    let gaps = after["gaps"].as_array().unwrap();
    let found: Vec<_> = gaps
        .iter()
        .map(|gap| (gap["san"].as_str().unwrap(), gap["games"].as_u64().unwrap()))
        .collect();
    assert_eq!(found, [("c5", 3), ("d5", 1)]);
    assert!((gaps[0]["oneIn"].as_f64().unwrap() - 10.0 / 3.0).abs() < 1e-6);
    let later = white("?play=e2e4,e7e5,g1f3&minGame=1");
    assert_eq!(
        (
            later["gaps"][0]["uci"].as_str(),
            later["gaps"][0]["oneIn"].as_f64()
        ),
        (Some("g8f6"), Some(5.0))
    );
    // Filters apply to the gaps: White won no game after another reply.
    assert_eq!(white("?play=e2e4&minGame=1&result=1-0")["gaps"], json!([]));
    // Outside of the repertoire there are no gaps.
    let outside = white("?play=d2d4");
    assert_eq!(
        (&outside["isKnown"], &outside["gaps"]),
        (&json!(false), &json!([]))
    );
    assert_eq!(white("?play=e2e4,e7e6")["oneIn"], Value::Null);
    assert_eq!(
        said("?play=e2e4")[1]["moves"],
        json!([{ "uci": "e7e5", "san": "e5" }])
    );
    assert_eq!(served.get("/repertoire?x=1").status, 400);
    assert!(fails(dir, "serve x.idx --repertoire mine.pgn", 2).contains("my.pgn:white"));
}

/// Two positions with the same legal moves are one position: after two move orders that leave a pinned pawn which
/// may not capture en passant, and with two spellings of castling rights, some of which are impossible.
#[test]
fn positions_with_the_same_legal_moves_are_one() {
    let dir = temp();
    let dir = dir.path();
    let pinned = [
        "1. e4 e5 2. f4 exf4 3. e5 d5 4. Nf3 Qe7",
        "1. e4 e5 2. f4 exf4 3. e5 Qe7 4. Nf3 d5",
    ];
    for (name, line) in ["a.pgn", "b.pgn"].into_iter().zip(pinned) {
        write(
            dir,
            name,
            &format!("[Result \"1-0\"]\n\n{line} 5. d4 g5 1-0\n"),
        );
    }
    // The repertoire reaches the position only by the first move order.
    write(
        dir,
        "mine.pgn",
        &format!(
            "{} 5. d4 *\n\n1. e4 e5 2. f4 exf4 3. e5 Qe7 4. Nf3 *\n",
            pinned[0]
        ),
    );
    let gaps = ok(
        dir,
        "repertoire gaps mine.pgn --against b.pgn --color white --min-game 1",
    );
    assert!(
        gaps.contains("5. d4 g5") && !gaps.contains("4. Nf3 d5 ("),
        "{gaps}"
    );
    let rights = ["KQkq", "kq"];
    for (name, rights) in ["c.pgn", "d.pgn"].into_iter().zip(rights) {
        let fen = format!("rnbqkbnr/pppppppp/8/8/8/5BN1/PPPPPPPP/RNBQ1RK1 b {rights} - 0 1");
        write(
            dir,
            name,
            &format!("[FEN \"{fen}\"]\n[Result \"1-0\"]\n\n1... e5 2. d4 1-0\n"),
        );
    }
    for (games, reference) in [("a", "b"), ("b", "a"), ("c", "d"), ("d", "c")] {
        let new = ok(
            dir,
            &format!("repertoire new {games}.pgn --reference {reference}.pgn"),
        );
        assert!(new.contains("nothing new"), "{games}: {new}");
        let check = ok(
            dir,
            &format!("repertoire check {reference}.pgn {games}.pgn --color white"),
        );
        // The first move order ends with a reply that the repertoire does not answer.
        let expected = match games {
            "a" | "b" => "followed until 5... g5 (the line ends)",
            _ => "in the repertoire: 1 game",
        };
        assert!(check.contains(expected), "{games}: {check}");
    }
}

/// The output file is locked before the games are read. Otherwise, an edit of the file in the meantime would be
/// lost.
#[cfg(unix)]
#[test]
fn a_repertoire_is_claimed_before_its_games_are_read() {
    let dir = temp();
    let games = sample("famous.pgn");
    let build = format!(
        "repertoire build -q {} --color white --out r.bin",
        games.display()
    );
    ok(dir.path(), &build);
    crate::common::make_fifo(&dir.path().join("games"));
    let slow = "repertoire build -q games --color white --out r.bin";
    let mut slow = crate::common::polybook_in(dir.path())
        .args(slow.split(' '))
        .spawn()
        .unwrap();
    // The run has opened its source when the pipe can be opened for writing.
    let mut pipe = fs::File::options()
        .write(true)
        .open(dir.path().join("games"))
        .unwrap();
    for other in [
        build.as_str(),
        "edit r.bin --in-place --moves 1.h4 --set h2h4=100",
    ] {
        let error = fails(dir.path(), other, 1);
        assert!(
            error.contains("another run of polybook is writing this output"),
            "{error}"
        );
    }
    std::io::Write::write_all(&mut pipe, &fs::read(games).unwrap()).unwrap();
    drop(pipe);
    assert!(slow.wait().unwrap().success());
}
