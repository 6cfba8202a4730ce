//! `polybook repertoire`: building, checking games, gaps, new moves, against python-chess and against one another.

use std::{fmt::Write as _, fs, path::Path, thread};

use serde_json::Value;
use shakmaty::{Chess, Position, san::SanPlus};

use crate::common::{corpus, fails, ok, ok_json, python, refused, run, run_python, sample, temp};

fn write(dir: &Path, name: &str, text: &str) {
    fs::write(dir.join(name), text).unwrap();
}

/// Returns, for each game, the side that left the repertoire, and the number of the half-move.
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
    let line = format!("repertoire gaps {repertoire} --against {source} --color {color} --json");
    ok_json(dir, &line)
}

/// Returns the line, the move, the frequency (one game in N) and the number of games of each gap.
fn reported(document: &Value) -> Vec<(String, String, f64, u64)> {
    let gaps = document["gaps"].as_array().unwrap().iter();
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

/// Compares all reports of a repertoire built of games with those of python-chess.
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
            "repertoire build {reference} --color {color} --reach {one_in} --max-ply 24 --out {repertoire}"
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
        &format!("repertoire gaps {repertoire} --against {reference} --color {color} --json"),
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
fn python_chess_agrees() {
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

/// 2,000 games and all games of a player for each side.
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
fn who_left_and_where() {
    let dir = temp();
    let dir = dir.path();
    let repertoire = "1. e4 e5 (1... c5 $1 2. c3!? {Alapin} d5) 2. Nf3! Nc6 3. Bb5 a6 4. Ba4 *\n\n1. e4 e6 2. d4 *";
    let games = "1. e4 e5 2. Nf3 Nc6 3. Bb5 *\n\n1. e4 e5 2. Bc4 Nc6 *\n\n1. e4 d5 2. exd5 *\n\n1. d4 *\n\n1. e4 c5 2. c3 e6 3. d4 *\n\n\
        1. e4 e5 2. Nf3 Nc6 3. Bb5 a6 4. Ba4 Nf6 *\n\n1. e4 e5 2. Nf3 Nc6 3. Bb5 a6 4. Ba4 *\n\n*\n\n1. e4 e6 2. d4 d5 3. -- *\n\n\
        1. e4 c6 2. Ke3 d5 *";
    let document = check(dir, repertoire, games, "white");
    assert_eq!(
        left(&document),
        [
            (None, None),
            (Some("player"), Some(3)),
            (Some("opponent"), Some(2)),
            (Some("player"), Some(1)),
            (Some("opponent"), Some(4)),
            // The last half-move is the opponent's, and the repertoire has no answer.
            (Some("opponent"), Some(8)),
            (None, None),
            (None, None),
            (Some("opponent"), Some(4)),
            (Some("opponent"), Some(2)),
        ]
    );
    let games = document["games"].as_array().unwrap();
    assert_eq!(games[1]["repertoire"], serde_json::json!(["Nf3"]));
    assert_eq!(games[1]["move"], "Bc4");
    assert_eq!(games[1]["number"], "2.");
    assert!(games[9]["problem"].as_str().unwrap().starts_with("Ke3: "));
    let numbers: Vec<u64> = games
        .iter()
        .map(|game| game["game"].as_u64().unwrap())
        .collect();
    assert_eq!(numbers, (1..=10).collect::<Vec<u64>>());
    let summary = &document["summary"];
    // The game without moves does not count.
    assert_eq!(summary["stayed"]["games"], 2);
    assert_eq!(summary["left_by_player"]["games"], 2);
    assert_eq!(summary["left_by_opponent"]["games"], 5);
    assert_eq!(summary["elsewhere"]["games"], 0);
    assert_eq!(summary["contradictions"], 0);
    let mut deviations = summary["deviations"].as_array().unwrap().iter();
    let deviation = deviations.find(|deviation| deviation["move"] == "e6");
    assert_eq!(deviation.unwrap()["line"], "1. e4 c5 2. c3");
    // The side without a move at the start.
    let document = check(
        dir,
        "1. e4 c5 2. Nf3 d6 *",
        "1. d4 d5 *\n\n1. e4 c5 *\n\n1. e4 e5 *",
        "black",
    );
    let expected = [
        (Some("opponent"), Some(1)),
        (None, None),
        (Some("player"), Some(2)),
    ];
    assert_eq!(left(&document), expected);
    let fen = "[FEN \"4k3/8/8/8/8/8/4P3/4K3 w - - 0 1\"]\n\n";
    let games = format!("1. e4 *\n\n{fen}1. e4 Kd7 *\n\n{fen}1. Kd2 *");
    let document = check(dir, &format!("{fen}1. e4 *"), &games, "white");
    let expected = [
        (Some("opponent"), Some(0)),
        (Some("opponent"), Some(2)),
        (Some("player"), Some(1)),
    ];
    assert_eq!(left(&document), expected);
}

#[test]
fn a_game_that_comes_back_has_not_left() {
    let dir = temp();
    let repertoire = "1. d4 d5 2. c4 e6 3. Nc3 Nf6 *";
    let games = "1. d4 e6 2. c4 d5 3. Nc3 *\n\n1. c4 e6 2. d4 d5 3. Nc3 *\n\n1. d4 e6 2. c4 d5 3. Nf3 *\n\n1. d4 e6 2. c4 d5 3. Nc3 c5 4. e3 *\n\n\
        1. c4 e6 2. d4 f5 *";
    let expected = [
        (None, None),
        (None, None),
        (Some("player"), Some(5)),
        (Some("opponent"), Some(6)),
        (Some("player"), Some(1)),
    ];
    assert_eq!(
        left(&check(dir.path(), repertoire, games, "white")),
        expected
    );
}

/// 3. Nf3 comes to a position of the PGN on the opponent's turn. A book does not know it: the game is not back.
#[test]
fn a_game_is_back_where_the_player_has_a_move() {
    let dir = temp();
    let dir = dir.path();
    let repertoire = "1. e4 e5 2. Nf3 Nc6 3. Bc4 Bc5 4. c3 *";
    let game = "1. e4 e5 2. Bc4 Nc6 3. Nf3 Be7 4. O-O *";
    let back = "1. e4 e5 2. Bc4 Nc6 3. Nf3 Bc5 4. c3 Nf6 5. d4 *";
    let document = check(dir, repertoire, &format!("{game}\n\n{back}"), "white");
    assert_eq!(
        left(&document),
        [(Some("player"), Some(3)), (Some("opponent"), Some(8))]
    );
    assert_eq!(document["games"][0]["move"], "Bc4");
    ok(
        dir,
        "make-book -q checked-repertoire.pgn --min-game 1 --only-white --bin book.bin",
    );
    let of_book = ok_json(
        dir,
        "repertoire check book.bin checked-games.pgn --json --color white",
    );
    assert_eq!(of_book, document);
}

#[test]
fn a_game_without_a_legal_move_is_not_checked() {
    let dir = temp();
    let game = "[Result \"0-1\"]\n\n1. e5 e5 0-1\n\n";
    let document = check(dir.path(), "1. e4 e5 2. Nf3 *", game, "white");
    assert_eq!(left(&document), [(None, None)]);
    assert_eq!(document["summary"]["stayed"]["games"], 0);
    // Black's repertoire begins after White's move, which was played.
    let game = "[Result \"0-1\"]\n\n1. e4 e4 0-1\n\n";
    let document = check(dir.path(), "1. e4 e5 *", game, "black");
    assert_eq!(document["summary"]["stayed"]["games"], 1);
    let line = "repertoire check checked-repertoire.pgn checked-games.pgn --color black";
    let text = ok(dir.path(), line);
    assert!(text.contains("in the repertoire (e4: "), "{text}");
}

#[test]
fn both_moves_of_a_contradiction_count() {
    let dir = temp();
    let dir = dir.path();
    let games = "1. e4 e5 2. Nf3 *\n\n1. e4 e5 2. f4 *\n\n1. e4 e5 2. Nf3 *\n\n1. e4 e5 2. d4 *";
    let document = check(dir, "1. e4 e5 2. Nf3 *\n\n1. e4 e5 2. f4 *", games, "white");
    let expected = [
        (None, None),
        (None, None),
        (None, None),
        (Some("player"), Some(3)),
    ];
    assert_eq!(left(&document), expected);
    assert_eq!(document["summary"]["contradictions"], 1);
    let output = run(
        dir,
        "repertoire check checked-repertoire.pgn checked-games.pgn --color white",
    );
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(
        said.matches("several moves in 1 position").count(),
        1,
        "{said}"
    );
}

#[test]
fn chess960_and_variants() {
    let dir = temp();
    let dir = dir.path();
    let start = "[Variant \"Chess960\"]\n[FEN \"bnrkqrnb/pppppppp/8/8/8/8/PPPPPPPP/BNRKQRNB w KQkq - 0 1\"]\n\n";
    let repertoire = format!(
        "{start}1. e4 e5 2. f4 *\n\n[Variant \"Crazyhouse\"]\n\n1. e4 d5 2. exd5 Qxd5 3. P@d4 *"
    );
    let games = format!(
        "{start}1. e4 e5 2. f4 *\n\n{start}1. e4 e5 2. d4 *\n\n[Variant \"Crazyhouse\"]\n\n1. e4 d5 2. exd5 Qxd5 3. P@d4 *\n\n\
        [Variant \"Crazyhouse\"]\n\n1. e4 d5 2. exd5 Qxd5 3. d4 *\n\n[Variant \"Atomic\"]\n\n1. Nf3 *\n\n[Variant \"Xiangqi\"]\n\n1. e4 *"
    );
    let document = check(dir, &repertoire, &games, "white");
    let expected = [
        (None, None),
        (Some("player"), Some(3)),
        (None, None),
        (Some("player"), Some(5)),
    ];
    assert_eq!(left(&document), expected);
    // Each game is compared with those of its variant.
    write(dir, "games.pgn", &games);
    write(dir, "reference.pgn", &repertoire);
    let document = ok_json(
        dir,
        "repertoire new games.pgn --reference reference.pgn --json",
    );
    let plies: Vec<Option<u64>> = document["games"]
        .as_array()
        .unwrap()
        .iter()
        .map(|game| game["ply"].as_u64())
        .collect();
    assert_eq!(plies, [None, Some(3), None, Some(5), Some(1), None]);
    assert!(document["games"][5]["problem"].is_string());
}

#[test]
fn empty_and_hostile_files() {
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
                "no game in it",
            ),
            (
                "repertoire check games.pgn text.pgn --color white",
                1,
                "no game in it",
            ),
            (
                "repertoire check games.pgn --color white",
                2,
                "name the repertoire and the games",
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
fn a_hundred_thousand_positions() {
    let dir = temp();
    let (mut text, mut seed) = (String::new(), 7_u64);
    for _ in 0..1700 {
        let mut pos = Chess::default();
        for _ in 0..60 {
            let moves = pos.legal_moves();
            if moves.is_empty() {
                break;
            }
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let mv = moves[(seed >> 33) as usize % moves.len()];
            let _ = write!(
                text,
                "{} ",
                SanPlus::from_move_and_play_unchecked(&mut pos, mv)
            );
        }
        text += "*\n\n";
    }
    let document = check(dir.path(), &text, &text, "white");
    // Only a game that ends with Black's move has no answer at its end.
    let by_player = document["summary"]["left_by_player"]["games"].as_u64();
    assert_eq!(
        (document["games"].as_array().unwrap().len(), by_player),
        (1700, Some(0))
    );
    let document = gaps(
        dir.path(),
        "checked-repertoire.pgn",
        "checked-games.pgn",
        "black",
    );
    let positions = document["positions"].as_u64().unwrap();
    assert!(positions > 45_000, "{positions}");
}

#[test]
fn players_and_both_colors() {
    let dir = temp();
    let dir = dir.path();
    write(dir, "white.pgn", "1. e4 e5 2. Nf3 *");
    write(dir, "black.pgn", "1. e4 c5 2. Nf3 d6 *");
    write(
        dir,
        "games.pgn",
        "[White \"Ann Lee\"]\n[Black \"Bo\"]\n[Result \"1-0\"]\n\n1. e4 e5 2. Nf3 1-0\n\n[White \"Cy\"]\n[Black \"ann  lee\"]\n[Result \"0-1\"]\n\n\
        1. e4 e5 0-1\n\n[White \"Cy\"]\n[Black \"Dan\"]\n\n1. d4 *\n",
    );
    let both = ok_json(
        dir,
        "repertoire check --white white.pgn --black black.pgn games.pgn --player lee --json",
    );
    assert_eq!(left(&both), [(None, None), (Some("player"), Some(2))]);
    assert_eq!(both["games"][1]["color"], "black");
    assert_eq!(both["games"][1]["game"], 2);
    assert_eq!(both["summary"]["left_by_player"]["score"], 100.0);
    let all = ok_json(
        dir,
        "repertoire check --white white.pgn --black black.pgn games.pgn --json",
    );
    assert_eq!(all["games"].as_array().unwrap().len(), 6);
    let whole = fails(
        dir,
        "repertoire check white.pgn games.pgn --color white --player Ann --exact",
        1,
    );
    assert!(whole.contains("did you mean \"Ann Lee\"?"), "{whole}");
    let text = ok(
        dir,
        "repertoire check --black black.pgn games.pgn --player ann",
    );
    assert!(
        text.contains("2 0-1     Cy - ann  lee: left by the player at 1... e5, not c5\n"),
        "{text}"
    );
    assert!(
        text.contains("left by the player: 1 game, score 100.0%\n"),
        "{text}"
    );
}

#[test]
fn games_are_written_with_a_comment_where_they_left() {
    let dir = temp();
    let dir = dir.path();
    let first = "[White \"a\"]\n\n1. e4 {best} e5 2. f4?! $6 (2. Nf3) exf4 1-0";
    write(
        dir,
        "games.pgn",
        &format!("{first}\n\n1. e4 e5 2. Nf3 *\n\n1. d4 *\n"),
    );
    write(dir, "mine.pgn", "1. e4 e5 2. Nf3 (2. Bc4) *");
    ok(
        dir,
        "repertoire check mine.pgn games.pgn --color white --out checked.pgn",
    );
    let expected = "[White \"a\"]\n\n1. e4 {best} e5 2. f4?! {The repertoire has Bc4, Nf3}  $6 (2. Nf3) exf4 1-0\n\n\
        1. e4 e5 2. Nf3 *\n\n1. d4 {The repertoire has e4}  *\n\n";
    let checked = fs::read_to_string(dir.join("checked.pgn")).unwrap();
    let (first, games) = checked.split_once('\n').unwrap();
    assert!(first.starts_with("% polybook checksum "), "{first}");
    assert_eq!(games, expected);
    // It can be made again, and read.
    ok(
        dir,
        "repertoire check mine.pgn games.pgn --color white --out checked.pgn",
    );
    assert_eq!(
        ok_json(dir, "make-book checked.pgn --min-game 1 --json")["games"]["counted"],
        3
    );
    assert!(
        fails(
            dir,
            "repertoire check mine.pgn games.pgn --color white --out mine.pgn",
            1
        )
        .contains("mine.pgn")
    );
    write(dir, "other.pgn", "1. c4 *");
    assert!(
        fails(
            dir,
            "repertoire check mine.pgn games.pgn --color white --out other.pgn",
            1
        )
        .contains("exists: remove it, or replace it with --force")
    );
    ok(
        dir,
        "repertoire new games.pgn --reference mine.pgn --format pgn --out new.pgn",
    );
    let text = fs::read_to_string(dir.join("new.pgn")).unwrap();
    assert!(
        text.contains("2. f4?! {New. Games before: 1}  $6"),
        "{text}"
    );
}

#[test]
fn what_is_built_has_no_likelier_gap() {
    let dir = temp();
    let dir = dir.path();
    fs::copy(sample("famous.pgn"), dir.join("famous.pgn")).unwrap();
    fs::copy(sample("selfplay.pgn"), dir.join("selfplay.pgn")).unwrap();
    ok(dir, "make-book -q selfplay.pgn --explorer self.idx");
    for (source, color, one_in) in [
        ("famous.pgn", "white", 200),
        ("famous.pgn", "black", 10),
        ("self.idx", "white", 60),
        ("self.idx", "black", 60),
    ] {
        for by in ["score", "games"] {
            for out in ["built.pgn", "built.bin"] {
                ok(
                    dir,
                    &format!(
                        "repertoire build {source} --color {color} --reach {one_in} --by {by} --out {out}"
                    ),
                );
            }
            let found = gaps(dir, "built.pgn", source, color);
            // But where games end.
            let added = format!(
                "repertoire gaps built.pgn --against {source} --color {color} --json --add 1000000 --out {source}-{color}-{by}.pgn"
            );
            for gap in ok_json(dir, &added)["gaps"].as_array().unwrap() {
                let is_likely = gap["one_in"].as_f64().unwrap() <= f64::from(one_in);
                assert!(
                    !is_likely || gap.get("answer").is_none(),
                    "{source} {color} {by}: {gap}"
                );
            }
            assert_eq!(
                found,
                gaps(dir, "built.bin", source, color),
                "{source} {color} {by}"
            );
            ok(
                dir,
                "make-book -q built.pgn --variations --uniform --min-game 1 --obs built.obs.db3 --force",
            );
            let check = |file: &str| {
                ok(
                    dir,
                    &format!("repertoire check {file} famous.pgn --color {color} --json"),
                )
            };
            assert!(
                check("built.pgn") == check("built.bin"),
                "{source} {color} {by}"
            );
            // One own move in each position.
            assert_eq!(found["contradictions"], 0);
        }
    }
}

/// Six games 1... e5, three 1... c5, one 1... d5, after 1. e4, and one game of each order of the Queen's Gambit.
const SOURCE: &str = "1. e4 e5 2. Nf3 1-0\n\n1. e4 e5 2. Nf3 Nc6 1-0\n\n1. e4 e5 2. Nf3 Nf6 0-1\n\n1. e4 e5 2. Bc4 1-0\n\n1. e4 e5 2. Bc4 1-0\n\n\
    1. e4 e5 2. Nf3 Nc6 1/2-1/2\n\n1. e4 c5 *\n\n1. e4 c5 2. Nf3 *\n\n1. e4 c5 2. Nf3 *\n\n1. e4 d5 0-1\n\n";

/// The position after 1. Kb1 a5 is likely enough only with the way 1. Ka2 a6 2. Kb1 a5, which comes two half-moves later.
/// The half-moves that are left after the shorter way count all the same.
#[test]
fn what_is_built_has_no_likelier_gap_where_half_moves_are_limited() {
    let dir = temp();
    let dir = dir.path();
    let fen = "4k3/p6p/8/8/8/8/8/K7 w - - 0 1";
    let game =
        |moves: &str, times: usize| format!("[FEN \"{fen}\"]\n\n{moves} *\n\n").repeat(times);
    let games = [
        game("1. Kb1 a5 2. Kb2 h6", 3),
        game("1. Kb1 h6 2. Kb2 a5 3. Kc3", 4),
        game("1. Kb1 h6 2. Kb2 Ke7", 3),
        game("1. Ka2 a6 2. Kb1 a5", 3),
        game("1. Ka2 a6 2. Kb1 Ke7", 3),
        game("1. Ka2 Kd8", 4),
    ];
    write(dir, "games.pgn", &games.concat());
    let kept = [game("1. Kb1", 1), game("1. Ka2 a6 2. Kb1", 1)];
    write(dir, "keep.pgn", &kept.concat());
    let with_start = |line: &str| {
        let words = line.split(' ').map(str::to_owned);
        Vec::from_iter(words.chain(["--from".to_owned(), fen.to_owned()]))
    };
    let build = "repertoire build games.pgn --color white --reach 2 --max-ply 5 --keep keep.pgn --by games --out built.pgn";
    ok(dir, &with_start(build));
    let find = "repertoire gaps built.pgn --color white --against games.pgn --max-ply 5 --json";
    let found = reported(&ok_json(dir, &with_start(find)));
    assert_eq!(found.len(), 3, "{found:?}");
    assert!(found.iter().all(|gap| gap.2 > 2.0), "{found:?}");
}

#[test]
fn gaps_say_one_game_in_how_many() {
    let dir = temp();
    let dir = dir.path();
    write(dir, "games.pgn", SOURCE);
    write(dir, "mine.pgn", "1. e4 e5 2. Nf3 Nc6 3. Bb5 *");
    let document = gaps(dir, "mine.pgn", "games.pgn", "white");
    let expected = [
        ("1. e4", "c5", 10.0 / 3.0, 3),
        ("1. e4 e5 2. Nf3", "Nf6", 5.0, 1),
        ("1. e4", "d5", 10.0, 1),
    ];
    let expected =
        expected.map(|(line, mv, one_in, games)| (line.to_owned(), mv.to_owned(), one_in, games));
    let found = reported(&document);
    assert_eq!(found.len(), 3, "{found:?}");
    for (found, expected) in found.iter().zip(&expected) {
        assert_eq!(
            (&found.0, &found.1, found.3),
            (&expected.0, &expected.1, expected.3)
        );
        assert!(
            (found.2 - expected.2).abs() < 1e-9,
            "{found:?} {expected:?}"
        );
    }
    let shares: Vec<f64> = document["coverage"]
        .as_array()
        .unwrap()
        .iter()
        .map(|c| c["share"].as_f64().unwrap())
        .collect();
    assert!(
        (shares[0] - 0.6).abs() < 1e-9 && (shares[1] - 0.4).abs() < 1e-9,
        "{shares:?}"
    );
    // Any kind of source says the same of these games.
    ok(
        dir,
        "make-book -q games.pgn --min-game 1 --explorer x.idx --obs x.obs.db3 --counts x.counts",
    );
    ok(
        dir,
        "make-book -q games.pgn --counts classes.counts --by speed,rating,month",
    );
    ok(dir, "make-book -q classes.counts --explorer counts.idx");
    for source in [
        "x.idx",
        "x.obs.db3",
        "x.counts",
        "classes.counts",
        "counts.idx",
    ] {
        assert_eq!(gaps(dir, "mine.pgn", source, "white"), document, "{source}");
    }
    // For a book, the gaps are computed from the weights: two for a win, one for a draw.
    ok(
        dir,
        "make-book -q games.pgn --min-game 1 --uniform --loss-factor 1 --bin x.bin",
    );
    assert_eq!(reported(&gaps(dir, "mine.pgn", "x.bin", "white")).len(), 3);
    // The other side, and a limit.
    let line = "repertoire gaps mine.pgn --against games.pgn --color black --limit 1 --json";
    let found = ok_json(dir, line);
    let expected = ("1. e4 e5".to_owned(), "Bc4".to_owned(), 3.0, 2);
    assert_eq!(reported(&found), [expected]);
    let text = ok(
        dir,
        "repertoire gaps mine.pgn --against games.pgn --color white",
    );
    assert!(
        text.contains("after half-move   2:  60.0% in the repertoire\n"),
        "{text}"
    );
    assert!(text.contains("   3.3         3  1. e4 c5\n"), "{text}");
    // A repertoire without a first move.
    write(dir, "none.pgn", "1. d4 d5 *");
    let document = gaps(dir, "none.pgn", "games.pgn", "black");
    assert_eq!(
        reported(&document),
        [("".to_owned(), "e4".to_owned(), 1.0, 10)]
    );
    write(dir, "empty.pgn", "");
    let document = gaps(dir, "empty.pgn", "games.pgn", "white");
    assert_eq!(
        reported(&document),
        [("".to_owned(), "-".to_owned(), 1.0, 0)]
    );
}

/// Whichever of two own moves is played, seven of ten games stay in the repertoire.
#[test]
fn coverage_takes_several_own_moves_as_equally_likely() {
    let dir = temp();
    let dir = dir.path();
    let games =
        ["1. e4 c5 2. Nf3 *", "1. d4 d5 2. c4 *"].map(|game| format!("{game}\n\n").repeat(7));
    let lost = ["1. e4 e6 2. d4 *", "1. d4 f5 2. c4 *"].map(|game| format!("{game}\n\n").repeat(3));
    write(dir, "games.pgn", &(games.concat() + &lost.concat()));
    write(dir, "mine.pgn", "1. e4 c5 2. Nf3 *\n\n1. d4 d5 2. c4 *");
    let document = gaps(dir, "mine.pgn", "games.pgn", "white");
    let share = document["coverage"][0]["share"].as_f64().unwrap();
    assert!((share - 0.7).abs() < 1e-9, "{document}");
    let one_in = reported(&document).into_iter().map(|gap| gap.2);
    assert!(
        one_in
            .into_iter()
            .all(|one_in| (one_in - 10.0 / 3.0).abs() < 1e-9)
    );
}

#[test]
fn ways_to_a_position_are_added_and_circles_end() {
    let dir = temp();
    let dir = dir.path();
    // 1... d5 2. c4 e6 and 1... e6 2. c4 d5 come to one position without an answer.
    write(
        dir,
        "games.pgn",
        "1. d4 d5 2. c4 e6 *\n\n1. d4 e6 2. c4 d5 *\n\n1. d4 d5 2. c4 c6 *\n\n1. d4 f5 *\n",
    );
    write(
        dir,
        "mine.pgn",
        "1. d4 d5 (1... e6 2. c4) (1... f5 2. g3) 2. c4 c6 3. Nf3 *",
    );
    let found = reported(&gaps(dir, "mine.pgn", "games.pgn", "white"));
    assert_eq!(found.len(), 1, "{found:?}");
    assert!((found[0].2 - 2.0).abs() < 1e-9, "{found:?}");
    // Two of three games repeat moves, one comes by a longer way.
    write(
        dir,
        "games.pgn",
        "1. Nf3 Nf6 2. Ng1 Ng8 3. Nf3 Nf6 4. Ng1 Ng8 *\n\n1. Nf3 Nf6 2. Ng1 Ng8 3. Nf3 d5 *\n\n1. Nf3 d5 2. Ng1 *\n",
    );
    write(dir, "mine.pgn", "1. Nf3 Nf6 2. Ng1 Ng8 *");
    let found = reported(&gaps(dir, "mine.pgn", "games.pgn", "white"));
    // A game counts once in a position, with its last move: 1... Nf6 in one of three games.
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!((&*found[0].1, found[0].3), ("d5", 2));
    assert!((found[0].2 - 1.5).abs() < 1e-9, "{found:?}");
}

#[test]
fn the_best_moves_are_chosen_and_kept_moves_stay() {
    let dir = temp();
    let dir = dir.path();
    let game = |moves: &str, result: &str, times: usize| {
        format!("[Result \"{result}\"]\n\n{moves} {result}\n\n").repeat(times)
    };
    let games = [
        game("1. e4 e5 2. Nf3", "1-0", 60),
        game("1. e4 e5 2. Nf3", "0-1", 40),
        game("1. d4 d5", "1-0", 2),
        game("1. c4 c5", "0-1", 150),
        game("1. e4 c5 2. c3", "1-0", 10),
    ];
    write(dir, "games.pgn", &games.concat());
    let first = |options: &str| {
        ok(
            dir,
            &format!("repertoire build games.pgn --color white --out built.pgn {options}"),
        );
        let text = fs::read_to_string(dir.join("built.pgn")).unwrap();
        text.lines().nth(9).unwrap().to_owned()
    };
    let line = first("");
    assert!(
        line.starts_with("1. e4 {110 games, 63.6%} 1... e5 {100 games, 40.0%, 1 in 1.1}"),
        "{line}"
    );
    assert!(first("--by games").starts_with("1. c4 {150 games, 0.0%}"));
    // One game in eleven plays 1... c5.
    assert!(!first("--reach 10").contains("c5"));
    assert!(first("--reach 11").contains("(1... c5"));
    assert!(first("--max-ply 1").ends_with("63.6%} *"));
    write(dir, "keep.pgn", "1. d4 d5 2. Bf4 *");
    let text = first("--keep keep.pgn");
    assert!(
        text.starts_with("1. d4 {2 games, 100.0%} 1... d5 {2 games, 0.0%, 1 in 1.0} 2. Bf4"),
        "{text}"
    );
    ok(dir, "make-book -q games.pgn --min-game 1 --bin games.bin");
    let line = "repertoire build games.bin --color white --by score --out x.pgn";
    assert!(fails(dir, line, 1).contains("--by weight"));
    ok(dir, "repertoire build games.bin --color white --out x.pgn");
    let from = [
        "repertoire",
        "build",
        "games.pgn",
        "--color",
        "black",
        "--from",
        "1. e4",
        "--out",
        "black.bin",
        "--json",
    ];
    let document = ok_json(dir, &from);
    // The games of 2. Nf3 end there.
    let numbers = ["positions", "unanswered", "kept"].map(|name| document[name].as_u64());
    assert_eq!(numbers, [Some(1), Some(1), Some(0)]);
    assert_eq!(document["path"], "black.bin");
}

#[test]
fn gaps_are_answered_as_build_would() {
    let dir = temp();
    let dir = dir.path();
    write(dir, "games.pgn", SOURCE);
    write(
        dir,
        "mine.pgn",
        "1. e4 e5 2. Nf3 Nc6 3. Bb5 *\n\n[FEN \"4k3/8/8/8/8/8/4P3/4K3 w - - 0 1\"]\n\n1. e4 *",
    );
    ok(
        dir,
        "make-book -q mine.pgn --min-game 1 --only-white --bin mine.bin",
    );
    for (name, more) in [("mine.pgn", "more.pgn"), ("mine.bin", "more.bin")] {
        let line = format!(
            "repertoire gaps {name} --against games.pgn --color white --add 1 --out {more} --json"
        );
        let document = ok_json(dir, &line);
        assert_eq!(document["gaps"][0]["answer"], "Nf3");
        let left = reported(&gaps(dir, more, "games.pgn", "white"));
        assert_eq!(
            left.iter().map(|gap| &*gap.1).collect::<Vec<_>>(),
            ["Nf6", "d5"]
        );
    }
    // Lines from other positions stay.
    let text = fs::read_to_string(dir.join("more.pgn")).unwrap();
    assert!(
        text.contains("[FEN \"4k3/8/8/8/8/8/4P3/4K3 w - - 0 1\"]"),
        "{text}"
    );
    let all = "repertoire gaps mine.pgn --against games.pgn --color white --add 100 --out all.pgn";
    ok(dir, all);
    // Where games end, gaps stay.
    let left = reported(&gaps(dir, "all.pgn", "games.pgn", "white"));
    assert_eq!(
        left.iter().map(|gap| &*gap.1).collect::<Vec<_>>(),
        ["Nf6", "d5"]
    );
    assert!(
        fails(
            dir,
            "repertoire gaps mine.pgn --against games.pgn --color white --add 1 --out x.bin",
            1
        )
        .contains(".pgn")
    );
}

/// A PGN keeps its tags, comments, marks and unanswered replies, and even a comment that does not end.
#[test]
fn answers_are_added_before_the_games_of_a_pgn() {
    let dir = temp();
    let dir = dir.path();
    write(dir, "games.pgn", SOURCE);
    let mine = "[Event \"My course\"]\n\n{Intro} 1. e4! {best by test} e5 $1 2. Nf3 Nc6 (2... d6 $5 {Philidor}) 3. Bb5 d6 *\n\n\
        [Event \"Open\"]\n\n1. e4 {does not end";
    write(dir, "mine.pgn", mine);
    let add = |mine: &str, more: &str| {
        let line = format!(
            "repertoire gaps {mine} --against games.pgn --color white --add 1 --out {more} --json"
        );
        ok_json(dir, &line)["gaps"][0]["answer"].clone()
    };
    assert_eq!(add("mine.pgn", "more.pgn"), "Nf3");
    let one = fs::read_to_string(dir.join("more.pgn")).unwrap();
    let added = "[Event \"Added answer\"]\n[Site \"?\"]\n[Date \"????.??.??\"]\n[Round \"1\"]\n[White \"?\"]\n\
        [Black \"?\"]\n[Result \"*\"]\n\n1. e4 c5 2. Nf3 *\n\n";
    assert_eq!(one, format!("{added}{mine}"));
    assert_ne!(add("more.pgn", "two.pgn"), "Nf3");
    let two = fs::read_to_string(dir.join("two.pgn")).unwrap();
    assert!(two.ends_with(&one), "{two}");
    // It has the user's games: nothing replaces it.
    for line in [
        "repertoire gaps mine.pgn --against games.pgn --color white --add 1 --out more.pgn",
        "repertoire check -q mine.pgn games.pgn --color white --out more.pgn",
    ] {
        assert!(fails(dir, line, 1).contains("exists: remove it, or replace it with --force"));
    }
    // A byte order mark is no part of a game.
    write(dir, "marked.pgn", &format!("\u{feff}{mine}"));
    add("marked.pgn", "unmarked.pgn");
    assert_eq!(fs::read_to_string(dir.join("unmarked.pgn")).unwrap(), one);
    // A compressed file is decompressed; other files are not changed.
    write(dir, "theirs.pgn", "[Event \"x\"]\n\n1. e4 *");
    let line =
        "repertoire gaps mine.pgn --against games.pgn --color white --add 1 --out theirs.pgn";
    assert!(fails(dir, line, 1).contains("exists: remove it, or replace it with --force"));
}

#[test]
fn a_player_without_games_is_said() {
    let dir = temp();
    let dir = dir.path();
    write(dir, "mine.pgn", "1. e4 *");
    write(dir, "games.pgn", "[White \"Carlsen,M\"]\n\n1. e4 *");
    let line = "repertoire check mine.pgn games.pgn --color white --player";
    assert!(ok(dir, &format!("{line} carlsen")).contains("1 game"));
    let none = |name: &str| fails(dir, &format!("{line} {name}"), 1);
    assert_eq!(
        none("carlsn").trim(),
        "polybook: --player: no game to check has a player with \"carlsn\" in the name: did you mean \"Carlsen,M\"?"
    );
    assert!(none("x --exact").contains("has a player with \"x\" in the name"));
    assert!(none("x --json").contains("has a player with \"x\" in the name"));
    // Nobody played.
    write(dir, "games.pgn", "");
    ok(dir, &format!("{line} carlsen"));
    ok(dir, "make-book -q mine.pgn --leveldb games.idx");
    for line in [
        "check mine.pgn games.idx --color white",
        "new games.idx --reference mine.pgn",
    ] {
        let error = fails(dir, &format!("repertoire {line}"), 1);
        assert!(error.contains("an index: name the PGN"), "{error}");
    }
}

#[test]
fn a_repertoire_after_its_games_is_refused() {
    let dir = temp();
    let dir = dir.path();
    fs::copy(sample("famous.pgn"), dir.join("mine.pgn")).unwrap();
    for repertoire in ["white.pgn", "white.bin"] {
        let built = format!("repertoire build -q mine.pgn --color white --out {repertoire}");
        ok(dir, &built);
        let swapped = format!("repertoire check mine.pgn {repertoire} --color white");
        assert_eq!(
            fails(dir, &swapped, 2),
            format!(
                "polybook: mine.pgn contains finished games, and {repertoire} contains none: write the repertoire before the games, \
                 or --white mine.pgn if mine.pgn is the repertoire\n"
            )
        );
        ok(
            dir,
            &format!("repertoire check {repertoire} mine.pgn --color white"),
        );
    }
    // The only result is far from the beginning of the file, after the moves.
    let unfinished = "[Result \"*\"]\n\n1. e4 e5 *\n\n".repeat(4000);
    write(dir, "open.pgn", &unfinished);
    let error = fails(dir, "repertoire check mine.pgn open.pgn --color white", 2);
    assert!(error.contains("open.pgn contains none"), "{error}");
    write(dir, "late.pgn", &format!("{unfinished}1. d4 d5 1-0\n"));
    ok(dir, "repertoire check mine.pgn late.pgn --color white");
    // Finished games are a repertoire if the option says so, and against other finished games.
    ok(dir, "repertoire check --white mine.pgn white.pgn");
    ok(dir, "repertoire check mine.pgn mine.pgn --color white");
}

#[test]
fn the_wrong_color_is_said() {
    let dir = temp();
    let dir = dir.path();
    let famous = sample("famous.pgn");
    let famous = famous.display();
    for out in ["mine.pgn", "mine.bin"] {
        ok(
            dir,
            &format!("repertoire build {famous} --color white --reach 60 --out {out}"),
        );
    }
    // A line without alternatives is of either side.
    write(dir, "line.pgn", "1. e4 e5 2. Nf3 Nc6 3. Bb5 a6 *");
    let said = |line: &str| {
        let output = run(dir, &format!("repertoire {line} --out more.pgn"));
        String::from_utf8(output.stderr).unwrap()
    };
    for (repertoire, color, warning) in [
        ("mine.pgn", "white", None),
        ("mine.bin", "white", None),
        ("line.pgn", "white", None),
        ("line.pgn", "black", None),
        (
            "mine.pgn",
            "black",
            Some("warning: the repertoire seems to be for white"),
        ),
        (
            "mine.bin",
            "black",
            Some("warning: the repertoire is for white by its header"),
        ),
    ] {
        for line in [
            format!("check {repertoire} {famous} --color {color}"),
            format!("gaps {repertoire} --color {color} --against {famous} --add 1"),
            format!("build {famous} --color {color} --keep {repertoire}"),
        ] {
            let said = said(&line);
            assert_eq!(
                said.contains("warning:"),
                warning.is_some(),
                "{line}: {said}"
            );
            assert!(said.contains(warning.unwrap_or("")), "{line}: {said}");
            let _ = fs::remove_file(dir.join("more.pgn"));
        }
    }
}

/// An OOBS database does not say who won the games of a repertoire that never were.
#[test]
fn a_pgn_of_a_database_with_answers_has_no_results() {
    let dir = temp();
    let dir = dir.path();
    write(dir, "games.pgn", SOURCE);
    write(dir, "mine.pgn", "1. e4 e5 2. Nf3 *");
    ok(dir, "make-book -q mine.pgn --min-game 1 --obs mine.obs.db3");
    let line = "repertoire gaps mine.obs.db3 --against games.pgn --color white --add 1 --out x.pgn";
    ok(dir, line);
    let text = fs::read_to_string(dir.join("x.pgn")).unwrap();
    assert!(text.contains("1. e4 {weight 1, 100.0%}"), "{text}");
}

#[test]
fn new_moves_of_games() {
    let dir = temp();
    let dir = dir.path();
    let game = |white: &str, date: &str, moves: &str| {
        format!("[White \"{white}\"]\n[Black \"x\"]\n[Date \"{date}\"]\n\n{moves} *\n\n")
    };
    let games = [
        game("a", "2001.05.03", "1. e4 e5 2. Nf3"),
        game("b", "2001.05.03", "1. e4 e5 2. f4"),
        game("c", "2002.??.??", "1. e4 e5 2. f4 d5"),
        game("d", "2002.03.01", "1. e4 e5 2. f4 d5"),
        game("e", "????.??.??", "1. e4 e5 2. f4 d5 3. exd5"),
    ];
    write(dir, "games.pgn", &games.concat());
    let document = ok_json(
        dir,
        "repertoire new games.pgn --reference games.pgn --earlier --json",
    );
    let found: Vec<_> = document["games"]
        .as_array()
        .unwrap()
        .iter()
        .map(|game| {
            (
                game["ply"].as_u64(),
                game["move"].as_str(),
                game["games_before"].as_u64(),
                game["last_game"]["white"]["name"].as_str(),
            )
        })
        .collect();
    assert_eq!(
        found,
        [
            (Some(1), Some("e4"), Some(0), None),
            (Some(1), Some("e4"), Some(0), None),
            (Some(4), Some("d5"), Some(1), Some("b")),
            (Some(4), Some("d5"), Some(1), Some("b")),
            (Some(5), Some("exd5"), Some(2), Some("d")),
        ]
    );
    write(dir, "old.pgn", &games[..2].concat());
    let csv = ok(
        dir,
        "repertoire new games.pgn --reference old.pgn --format csv",
    );
    let lines: Vec<&str> = csv.lines().collect();
    assert_eq!(
        lines[0],
        "game,white,black,ply,move,games_before,last_game,fen"
    );
    assert_eq!(lines[1], "1,a,x,,,,,");
    assert!(
        lines[3].starts_with("3,c,x,4,d5,1,\"b - x, 2001\","),
        "{}",
        lines[3]
    );
    let text = ok(dir, "repertoire new games.pgn --reference old.pgn");
    assert!(
        text.contains("3 2... d5        c - x: 1 game before, the last b - x, 2001\n"),
        "{text}"
    );
    // Counts, databases and books know the moves, but not which games came to a position.
    ok(
        dir,
        "make-book -q old.pgn --min-game 1 --bin old.bin --obs old.obs.db3 --counts old.counts --explorer old.idx",
    );
    ok(
        dir,
        "make-book -q old.pgn --counts classes.counts --by speed,rating,month",
    );
    ok(dir, "make-book -q classes.counts --explorer counts.idx");
    let plies = |reference: &str| {
        let document = ok_json(
            dir,
            &format!("repertoire new games.pgn --reference {reference} --json"),
        );
        let games = document["games"].as_array().unwrap().iter();
        let before = document["games"][2]["games_before"].as_u64();
        (
            games.map(|game| game["ply"].as_u64()).collect::<Vec<_>>(),
            before,
        )
    };
    for (reference, before) in [
        ("old.bin", None),
        ("old.obs.db3", None),
        ("old.counts", None),
        ("counts.idx", None),
        ("old.idx", Some(1)),
    ] {
        assert_eq!(
            plies(reference),
            (vec![None, None, Some(4), Some(4), Some(4)], before),
            "{reference}"
        );
    }
    assert!(
        fails(
            dir,
            "repertoire new games.pgn --reference old.bin --earlier",
            1
        )
        .contains("dates")
    );
}

/// An event may last: its first day is the earliest of the game and not the latest.
#[test]
fn a_game_of_an_event_was_played_on_its_first_day_or_later() {
    let dir = temp();
    let dir = dir.path();
    let of_event = |date: &str| format!("[EventDate \"{date}\"]\n\n1. e4 *\n\n");
    let of_day = |date: &str| format!("[Date \"{date}\"]\n\n1. e4 *\n\n");
    write(dir, "event.pgn", &of_event("2005.01.01"));
    write(dir, "day.pgn", &of_day("2005.01.01"));
    write(
        dir,
        "new.pgn",
        &[of_day("2005.01.03"), of_event("2005.01.03")].concat(),
    );
    ok(dir, "make-book -q event.pgn --explorer event.idx");
    ok(dir, "make-book -q day.pgn --explorer day.idx");
    ok(dir, "merge-index -q day.idx event.idx --out both.idx");
    let new = |reference: &str| {
        let line = format!("repertoire new new.pgn --reference {reference} --earlier --json");
        let games = ok_json(dir, &line)["games"].take();
        let games = games.as_array().unwrap().iter();
        let found = games.map(|game| (game["ply"].as_u64(), game["games_before"].as_u64()));
        found.collect::<Vec<_>>()
    };
    let is_new = vec![(Some(1), Some(0)); 2];
    assert_eq!(new("event.pgn"), is_new);
    assert_eq!(new("event.idx"), is_new);
    assert_eq!(new("day.pgn"), [(None, None); 2]);
    assert_eq!(new("both.idx"), [(None, None); 2]);
}

/// The last position of a line has no moves: only games say that other moves lead there too.
#[test]
fn a_last_position_reached_by_other_moves_is_known_of_games() {
    let dir = temp();
    let dir = dir.path();
    write(dir, "old.pgn", "1. d4 d5 2. c4 *\n\n1. c4 d5 *\n\n");
    write(dir, "games.pgn", "1. c4 d5 2. d4 *\n\n1. d4 d5 2. c4 *\n\n");
    ok(
        dir,
        "make-book -q old.pgn --min-game 1 --bin old.bin --obs old.obs.db3 --counts old.counts",
    );
    let ply = |reference: &str| {
        let line = format!("repertoire new games.pgn --reference {reference} --json");
        let document = ok_json(dir, &line);
        assert!(document["games"][1]["ply"].is_null(), "{reference}");
        document["games"][0]["ply"].as_u64()
    };
    assert_eq!(ply("old.pgn"), None);
    for reference in ["old.bin", "old.obs.db3", "old.counts"] {
        assert_eq!(ply(reference), Some(3), "{reference}");
    }
}

#[test]
fn lines_end_where_few_games_go_on() {
    let dir = temp();
    let dir = dir.path();
    let games =
        "1. e4 e5 2. Nf3 Nc6 3. Bb5 *\n\n".repeat(2) + "1. e4 e5 2. Nf3 d6 3. d4 exd4 *\n\n";
    write(dir, "games.pgn", &games);
    let built = |options: &str| {
        let line = format!("repertoire build games.pgn --color white --out - -q {options}");
        String::from_utf8(run(dir, &line).stdout).unwrap()
    };
    assert!(!built("").contains("exd4"), "{}", built(""));
    let ends = |text: &str, options: &str| {
        let built = built(options);
        assert!(!built.contains("no games"), "{built}");
        assert_eq!(built.contains(text), options != "--min-game 2", "{built}");
    };
    ends("d4", "");
    ends("d4", "--min-game 1");
    ends("d4", "--min-game 2");
    assert!(built("--min-game 2").contains("Bb5"));
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

#[test]
fn tables_have_limits_and_nothing_new_has_a_hint() {
    let dir = temp();
    let dir = dir.path();
    write(dir, "mine.pgn", "1. e4 e5 2. Nf3 *\n\n");
    write(dir, "games.pgn", "1. e4 c5 *\n\n1. e4 c5 *\n\n1. d4 *\n\n");
    let line = "repertoire check mine.pgn games.pgn --color white";
    let whole = ok_json(dir, &format!("{line} --json"));
    let limited = ok_json(dir, &format!("{line} --json --limit 1"));
    let deviations = |document: &Value| {
        document["summary"]["deviations"]
            .as_array()
            .unwrap()
            .clone()
    };
    assert_eq!(deviations(&whole).len(), 2);
    assert_eq!(deviations(&limited), deviations(&whole)[..1]);
    // The table has the line too.
    let text = ok(dir, &format!("{line} --limit 1"));
    assert_eq!(text.matches("left by the opponent at").count(), 1, "{text}");
    let has_departure = |line: &str| {
        line.split_whitespace()
            .eq(["2", "-", "opponent", "1...", "c5", "e5", "1.", "e4"])
    };
    assert!(text.lines().any(has_departure), "{text}");
    assert!(
        text.ends_with("\n3 games and 2 departures in all: --limit 3 lists them\n"),
        "{text}"
    );
    let said = |options: &str| {
        let line = format!("repertoire new games.pgn --reference games.pgn {options}");
        String::from_utf8(run(dir, &line).stderr).unwrap()
    };
    assert!(said("").contains("--earlier"), "{}", said(""));
    assert!(!said("--earlier").contains("--earlier"));
}

/// A game that comes back to known positions leaves them for good later.
#[test]
fn a_new_move_leaves_the_known_positions_for_good() {
    let dir = temp();
    let dir = dir.path();
    let old = "1. e4 e5 2. Nf3 Nc6 3. Bb5 a6 *\n\n";
    write(dir, "old.pgn", old);
    let games = [
        ("1. Nf3 e5 2. e4 Nc6 3. Bc4 a6", [Some(5), Some(1)]),
        ("1. e4 Nc6 2. Nf3 e5 3. Bb5 a6", [None, Some(2)]),
        ("1. e4 e5 2. f4", [Some(3), Some(3)]),
        ("1. e4 e5 2. Nf3", [None, None]),
    ];
    let texts = games.map(|(moves, _)| format!("{moves} *\n\n"));
    write(dir, "games.pgn", &texts.concat());
    ok(
        dir,
        "make-book -q old.pgn --min-game 1 --bin old.bin --obs old.obs.db3 --explorer old.idx",
    );
    for reference in ["old.pgn", "old.idx", "old.bin", "old.obs.db3"] {
        for (at, option) in ["", "--first"].into_iter().enumerate() {
            let line = format!("repertoire new games.pgn --reference {reference} --json {option}");
            let found = ok_json(dir, &line)["games"].take();
            let found = found.as_array().unwrap().iter();
            let plies: Vec<_> = found.map(|game| game["ply"].as_u64()).collect();
            assert_eq!(
                plies,
                games.map(|(_, plies)| plies[at]),
                "{reference} {option}"
            );
        }
    }
}

/// Positions of few games and of many are looked up alike.
#[test]
fn games_alone_and_among_others_have_the_same_new_moves() {
    let dir = temp();
    let dir = dir.path();
    let known = "1. e4 e5 2. Nf3 Nc6 3. Bb5 a6 4. Ba4 Nf6 5. O-O Be7 6. Re1 b5 7. Bb3 d6 8. c3 O-O 9. h3 Nb8 10. d4 Nbd7 \
        11. Nbd2 Bb7 12. Bc2 Re8 13. Nf1 Bf8 14. Ng3 g6 15. a4 c5 16. d5 c4 17. Bg5 h6 18. Be3 Nc5 19. Qd2 h5";
    write(dir, "old.pgn", &format!("{known} *\n\n"));
    let late = known.replace("18. Be3", "18. Bxf6");
    let games = [
        (known.to_owned(), None),
        (late, Some(35)),
        (known.replace("1. e4", "1. a3"), Some(1)),
        (known.replace("2... Nc6", "2... d6"), None),
        (format!("{known} 20. Bh6"), Some(39)),
        ("1. e4 e5 2. f4 Ke4".to_owned(), Some(3)),
    ];
    let texts = games.each_ref().map(|(moves, _)| format!("{moves} *\n\n"));
    let plies = |games: &str, options: &str| {
        write(dir, "games.pgn", games);
        let line = format!("repertoire new games.pgn --reference old.pgn --json {options}");
        let games = ok_json(dir, &line)["games"].take();
        let games = games.as_array().unwrap().iter();
        games.map(|game| game["ply"].as_u64()).collect::<Vec<_>>()
    };
    let expected = games.each_ref().map(|(_, ply)| *ply);
    for (text, ply) in texts.iter().zip(expected) {
        assert_eq!(plies(text, ""), [ply], "{text}");
    }
    let many = texts.concat().repeat(100);
    for options in ["", "--threads 1 --memory 1MiB", "--earlier"] {
        let expected = match options {
            "--earlier" => expected.map(|_| Some(1)),
            _ => expected,
        };
        assert_eq!(plies(&many, options), expected.repeat(100), "{options}");
    }
}

/// Positions of few moves are missing in pruned counts: they would be gaps and new moves without a word.
#[test]
fn pruned_counts_are_said() {
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
                said.matches("in which fewer than 5 moves were counted")
                    .count(),
                1,
                "{line}: {said}"
            );
        }
    }
    let line = "repertoire gaps mine.pgn --color white --against whole.counts";
    let said = String::from_utf8(run(dir, line).stderr).unwrap();
    assert!(!said.contains("fewer"), "{said}");
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
                "name a file",
            ),
            (
                "repertoire gaps games.pgn --against games.pgn --color white --add 1 --out -",
                2,
                "name a file",
            ),
        ],
    );
}

/// The games of a position are not those of the moves that lead there.
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

/// Moves that are kept have no results that the source does not have, and a reply is met as often as its answer.
#[test]
fn comments_of_built_repertoires() {
    let dir = temp();
    let dir = dir.path();
    let games = "1. d4 Nf6 2. c4 e6 3. Nc3 1/2-1/2\n\n".repeat(3)
        + &"1. d4 e6 2. c4 Nf6 3. Nc3 1/2-1/2\n\n".repeat(3);
    write(dir, "games.pgn", &games);
    write(dir, "keep.pgn", "1. d4 d5 2. Nf3 *");
    ok(
        dir,
        "repertoire build games.pgn --color white --max-ply 5 --keep keep.pgn --out built.pgn",
    );
    let text = fs::read_to_string(dir.join("built.pgn"))
        .unwrap()
        .replace('\n', " ");
    for part in [
        "1... Nf6 {3 games, 50.0%, 1 in 2.0}",
        "2... e6 {3 games, 50.0%, 1 in 1.0}",
        "1... d5 {kept} 2. Nf3 {kept}",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert!(
        text.starts_with("[Event \"Repertoire for white\"]"),
        "{text}"
    );
    let with = |comments: &str| {
        let line = format!(
            "repertoire build games.pgn --color white --max-ply 3 --out - -q --comments {comments}"
        );
        ok(dir, &line)
            .split_once("\n\n")
            .unwrap()
            .1
            .replace('\n', " ")
    };
    assert_eq!(with("none"), "1. d4 1... e6 (1... Nf6 2. c4) 2. c4 *  ");
    assert_eq!(
        with("short"),
        "1. d4 {50.0%} 1... e6 {1 in 2.0} (1... Nf6 {1 in 2.0} 2. c4 {50.0%}) 2. c4 {50.0%} *  "
    );
}

/// Several files are one source.
#[test]
fn a_repertoire_is_built_of_several_files() {
    let dir = temp();
    let dir = dir.path();
    write(dir, "one.pgn", "1. e4 e5 2. Nf3 1-0\n\n");
    write(dir, "two.pgn", &"1. e4 c5 2. c3 1-0\n\n".repeat(3));
    ok(
        dir,
        "repertoire build one.pgn two.pgn --color white --out built.pgn",
    );
    let text = fs::read_to_string(dir.join("built.pgn")).unwrap();
    assert!(
        text.contains("1. e4 {4 games, 100.0%} 1... c5 {3 games"),
        "{text}"
    );
    ok(dir, "make-book -q one.pgn --min-game 1 --bin one.bin");
    let said = fails(
        dir,
        "repertoire build two.pgn one.bin --color white --out new.pgn",
        1,
    );
    assert!(said.contains("one.bin"), "{said}");
}

/// A game that the player had with the other color would teach the opponent's moves.
#[test]
fn a_repertoire_is_built_of_the_players_own_moves() {
    let dir = temp();
    let dir = dir.path();
    let game = |white: &str, black: &str, moves: &str| {
        format!("[White \"{white}\"]\n[Black \"{black}\"]\n\n{moves}\n\n")
    };
    let own = game("Tal, M", "Me", "1. e4 c5 0-1");
    let other = game("Me", "Tal, M", "1. e4 e5 0-1").repeat(3);
    write(dir, "mine.pgn", &(own + &other));
    let line = "repertoire build mine.pgn --color black --out - -q --comments none";
    let built = |options: &str| ok(dir, &format!("{line} {options}"));
    assert!(built("").contains("1... e5"));
    for options in ["--player me", "--player me --white tal", "--black me"] {
        let text = built(options);
        assert!(text.contains("1... c5"), "{options}: {text}");
    }
    let error = fails(dir, &format!("{line} --player me --black tal"), 2);
    assert!(error.contains("--player and --black both name"), "{error}");
    let help = ok(dir, "repertoire build --help");
    assert!(help.contains("the player with the color of the repertoire"));
}

/// A misspelled name leaves no games, which must not look like a repertoire without gaps.
#[test]
fn a_source_without_games_is_an_error_that_names_the_filter() {
    let dir = temp();
    let dir = dir.path();
    let game = "[White \"Nakamura, H\"]\n[Black \"Giri, A\"]\n\n1. e4 e5 2. Nf3 1-0\n\n";
    write(dir, "games.pgn", &game.repeat(2));
    write(dir, "mine.pgn", "1. e4 e5 *\n");
    let position = "rnbqkbnr/pppppppp/8/8/3P4/8/PPP1PPPP/RNBQKBNR b KQkq - 0 1";
    let from = format!("[FEN \"{position}\"]\n\n1... d5 2. c4 *\n");
    write(dir, "other.pgn", &from);
    for command in [
        "repertoire gaps mine.pgn --color black --against games.pgn",
        "repertoire build games.pgn --color white --out x.pgn",
        "repertoire build games.pgn mine.pgn --color white --out x.pgn",
    ] {
        let error = fails(dir, &format!("{command} --white nakammura"), 1);
        assert!(error.contains("games.pgn"), "{error}");
        assert!(error.contains("games can be counted ("), "{error}");
        assert!(error.contains(" filtered by player)"), "{error}");
        assert!(
            !error.contains("--from") && !error.contains("--allow-empty"),
            "{error}"
        );
    }
    // Games pass the filters, but none of them has a move in the first position of the repertoire.
    let line = "repertoire gaps mine.pgn --color black --against other.pgn --min-plies 1";
    let error = fails(dir, line, 1);
    assert!(error.contains("no game that passes the filters"), "{error}");
    let error = fails(
        dir,
        "repertoire build other.pgn --color white --out x.pgn",
        1,
    );
    assert!(
        error.contains("in the initial position: start in"),
        "{error}"
    );
}

/// A move of a few lucky games is not chosen where a hundred times as many games went elsewhere, and own moves have more games the
/// more games the source has.
#[test]
fn own_moves_have_enough_games() {
    let dir = temp();
    let dir = dir.path();
    let games = "1. d4 d5 1/2-1/2\n\n".repeat(600) + &"1. b3 d5 1-0\n\n".repeat(5);
    write(dir, "rare.pgn", &games);
    let first = |file: &str, options: &str| {
        let line =
            format!("repertoire build {file} --color white --out - -q --comments none {options}");
        ok(dir, &line).split_once("\n\n").unwrap().1.to_owned()
    };
    assert!(first("rare.pgn", "--max-ply 1").starts_with("1. d4"));
    // 650 games: the default minimum is one game. 2,500 games: two.
    let games = "1. d4 d5 2. c4 1/2-1/2\n\n".repeat(2499) + "1. d4 f5 2. g4 1-0\n\n";
    write(dir, "many.pgn", &games);
    assert!(!first("many.pgn", "--reach 1e9").contains("g4"));
    assert!(first("many.pgn", "--reach 1e9 --min-game 1").contains("g4"));
    let said =
        String::from_utf8(run(dir, "repertoire build many.pgn --color white --out x.pgn").stderr)
            .unwrap();
    assert!(
        said.contains("of at least 2 games each (--min-game)"),
        "{said}"
    );
}

/// The list of gaps ends at 1 in 1,000, and says what is left out.
#[test]
fn rare_gaps_are_counted_and_listed_on_demand() {
    let dir = temp();
    let dir = dir.path();
    write(dir, "mine.pgn", "1. e4 e5 2. Nf3 *\n\n");
    let games =
        "1. e4 e5 2. Nf3 *\n\n".repeat(1500) + &"1. e4 c5 *\n\n".repeat(20) + "1. e4 a5 *\n\n";
    write(dir, "games.pgn", &games);
    let line = "repertoire gaps mine.pgn --against games.pgn --color white";
    let output = run(dir, line);
    let (text, said) = (
        String::from_utf8(output.stdout).unwrap(),
        String::from_utf8(output.stderr).unwrap(),
    );
    assert!(
        text.contains("1. e4 c5") && !text.contains("1. e4 a5"),
        "{text}"
    );
    assert!(
        said.contains(
            "1 gap, 2 positions answered; 1 more, rarer than 1 in 1000: --reach 1e9 lists all"
        ),
        "{said}"
    );
    assert!(ok(dir, &format!("{line} --reach 1e9")).contains("1. e4 a5"));
}

/// `repertoire new --player` compares the games of one player.
#[test]
fn new_moves_of_one_player() {
    let dir = temp();
    let dir = dir.path();
    write(dir, "old.pgn", "1. e4 e5 *\n\n");
    let game = |white: &str, moves: &str| {
        format!("[White \"{white}\"]\n[Black \"Other\"]\n\n{moves} *\n\n")
    };
    write(
        dir,
        "games.pgn",
        &(game("Müller, H", "1. e4 c5") + &game("Tal", "1. d4")),
    );
    let found = |name: &str| {
        ok_json(
            dir,
            &[
                "repertoire",
                "new",
                "games.pgn",
                "--reference",
                "old.pgn",
                "--json",
                "--player",
                name,
            ],
        )
    };
    let games = found("MÜLLER");
    assert_eq!(games["games"].as_array().unwrap().len(), 1);
    assert_eq!(
        (&games["games"][0]["game"], &games["games"][0]["move"]),
        (&1.into(), &"c5".into())
    );
    assert_eq!(found("tal")["games"][0]["game"], 2);
    assert_eq!(found("other")["games"].as_array().unwrap().len(), 2);
}

/// A tree shows a repertoire in PGN, whose lines have no results.
#[test]
fn new_moves_are_written_in_the_format_of_the_ending() {
    let dir = temp();
    let dir = dir.path();
    write(dir, "games.pgn", "1. e4 e5 2. Nf3 *\n");
    write(dir, "old.pgn", "1. e4 c5 *\n");
    let read = |name: &str| fs::read_to_string(dir.join(name)).unwrap();
    for (name, format) in [("n.csv", "csv"), ("n.pgn", "pgn"), ("n.txt", "text")] {
        let line = "repertoire new games.pgn --reference old.pgn -q";
        ok(dir, &format!("{line} --out {name}"));
        ok(
            dir,
            &format!("{line} --format {format} --out named --force"),
        );
        assert_eq!(read(name), read("named"), "{name}");
    }
    assert!(read("n.csv").starts_with("game,white,"));
    assert!(read("n.pgn").contains("1. e4 e5"));
}

#[test]
fn a_tree_of_a_repertoire() {
    let dir = temp();
    let dir = dir.path();
    write(dir, "mine.pgn", "1. e4 e5 (1... c5 2. c3) 2. Nf3 *\n\n");
    let text = ok(dir, "tree mine.pgn");
    assert!(
        text.contains("1... c5") && text.contains("2. Nf3") && !text.contains("=1"),
        "{text}"
    );
}

/// An answer leads back to games, or the gap stays: the first legal move is no answer.
#[test]
fn answers_lead_to_games() {
    let dir = temp();
    let dir = dir.path();
    write(
        dir,
        "games.pgn",
        "1. e4 e5 *\n\n1. e4 e5 *\n\n1. e4 d5 *\n\n1. Nf3 e5 2. e4 Nc6 *",
    );
    write(dir, "mine.pgn", "1. e4 c5 2. Nf3 *");
    let line = "repertoire gaps mine.pgn --against games.pgn --color white --add 2 --out more.pgn";
    let output = run(dir, line);
    let (text, said) = (output.stdout, String::from_utf8(output.stderr).unwrap());
    let text = String::from_utf8(text).unwrap();
    assert!(
        text.contains("1. e4 e5, answered by Nf3 without games\n"),
        "{text}"
    );
    assert!(text.contains("1. e4 d5\n"), "{text}");
    assert!(said.contains("1 gap without an answer"), "{said}");
    let text = fs::read_to_string(dir.join("more.pgn")).unwrap();
    assert!(text.contains("1. e4 e5 2. Nf3 {no games} *"), "{text}");
    assert!(!text.contains("1. e4 d5"), "{text}");
}

/// Games of a variant are read as games of the repertoire's, and those of another are an error.
#[test]
fn gaps_are_those_of_the_variant() {
    let dir = temp();
    let dir = dir.path();
    let atomic = "[Variant \"Atomic\"]\n\n";
    write(dir, "mine.pgn", &format!("{atomic}1. Nf3 f6 2. e3 *"));
    let games =
        ["f6 2. e3 d6", "e6 2. e3", "f5"].map(|moves| format!("{atomic}1. Nf3 {moves} *\n\n"));
    write(dir, "games.pgn", &games.concat());
    let found = reported(&gaps(dir, "mine.pgn", "games.pgn", "white"));
    let moves: Vec<&str> = found.iter().map(|gap| &*gap.1).collect();
    assert_eq!(moves, ["e6", "f5", "d6"]);
    let line = "repertoire build games.pgn --color white --out - -q";
    assert!(ok(dir, line).contains("[Variant \"Atomic\"]"));
    write(dir, "standard.pgn", "1. Nf3 f6 *");
    let line = "repertoire gaps mine.pgn --against standard.pgn --color white";
    assert!(fails(dir, line, 1).contains("no games of the repertoire's variant"));
    let start = "[Variant \"Chess960\"]\n[FEN \"bnrkqrnb/pppppppp/8/8/8/8/PPPPPPPP/BNRKQRNB w KQkq - 0 1\"]\n\n";
    write(dir, "mine.pgn", &format!("{start}1. e4 e5 2. f4 *"));
    write(dir, "games.pgn", &format!("{start}1. e4 c5 2. f4 *"));
    let found = reported(&gaps(dir, "mine.pgn", "games.pgn", "white"));
    let moves: Vec<&str> = found.iter().map(|gap| &*gap.1).collect();
    assert_eq!(moves, ["c5"]);
}

#[test]
fn where_a_source_ends_is_said() {
    let dir = temp();
    let dir = dir.path();
    write(dir, "mine.pgn", "1. e4 e5 2. Nf3 *");
    write(dir, "games.pgn", "1. c4 e5 2. Nc3 *");
    let line = "repertoire gaps mine.pgn --against games.pgn --color white";
    let output = run(dir, line);
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(
        said.contains("no games after 1. e4, although 1 game in 1.0 reaches this position"),
        "{said}"
    );
    let document = gaps(dir, "mine.pgn", "games.pgn", "white");
    let ended = &document["coverage"][0];
    assert_eq!(
        (&ended["share"], &ended["ended"]),
        (&1.0.into(), &1.0.into())
    );
}

/// A repertoire after 1. e4 says nothing of games with 1. d4, and its gaps are found from there.
#[test]
fn a_repertoire_from_elsewhere() {
    let dir = temp();
    let dir = dir.path();
    let games = "[Result \"1-0\"]\n\n1. e4 e5 2. Nf3 1-0\n\n[Result \"1-0\"]\n\n1. e4 c5 1-0\n\n[Result \"1-0\"]\n\n1. d4 1-0\n\n";
    write(dir, "games.pgn", games);
    let fen = "rnbqkbnr/pppppppp/8/8/4P3/8/PPPP1PPP/RNBQKBNR b KQkq - 0 1";
    let document = check(
        dir,
        &format!("[FEN \"{fen}\"]\n\n1... e5 2. Nf3 *"),
        games,
        "white",
    );
    let summary = &document["summary"];
    let numbers =
        ["stayed", "left_by_opponent", "elsewhere"].map(|name| summary[name]["games"].as_u64());
    assert_eq!(numbers, [Some(1), Some(1), Some(1)]);
    let found = gaps(dir, "checked-repertoire.pgn", "games.pgn", "white");
    let found: Vec<_> = reported(&found)
        .into_iter()
        .map(|gap| (gap.0, gap.1, gap.2))
        .collect();
    assert_eq!(found, [(String::new(), "c5".to_owned(), 2.0)]);
}

/// Moves that others play against the opponent are none of his.
#[test]
fn an_opponent_is_filtered_from_a_download() {
    let dir = temp();
    let dir = dir.path();
    let game = |white: &str, black: &str, moves: &str| {
        format!("[White \"{white}\"]\n[Black \"{black}\"]\n\n{moves} *\n\n")
    };
    let games = [
        game("Me", "Giri", "1. e4 e5 2. Nf3"),
        game("Giri", "You", "1. e4 c5 2. Nf3"),
        game("Giri", "You", "1. e4 c6 2. d4"),
    ];
    write(dir, "theirs.pgn", &games.concat());
    write(dir, "mine.pgn", "1. e4 d6 2. d4 *\n");
    let line = "repertoire gaps mine.pgn --against theirs.pgn --color white --json";
    let moves = |options: &str| {
        let found = reported(&ok_json(dir, &format!("{line} {options}")));
        found.into_iter().map(|gap| gap.1).collect::<Vec<_>>()
    };
    assert_eq!(moves("").len(), 3);
    assert_eq!(moves("--black giri"), ["e5"]);
    ok(dir, "make-book -q theirs.pgn --explorer theirs.idx");
    let line = "repertoire build theirs.idx --color white --black giri --out x.pgn";
    assert!(fails(dir, line, 1).contains("only games in PGN"));
}

/// Gaps of few games are left out, and replies to the last move of a line are marked.
#[test]
fn gaps_of_few_games_and_ends_of_lines() {
    let dir = temp();
    let dir = dir.path();
    write(dir, "games.pgn", SOURCE);
    write(dir, "mine.pgn", "1. e4 e5 2. Nf3 *");
    let line = "repertoire gaps mine.pgn --against games.pgn --color white --min-game 2";
    let text = ok(dir, line);
    assert!(text.contains("1. e4 c5\n"), "{text}");
    assert!(text.contains("2. Nf3 Nc6 (the line ends)\n"), "{text}");
    assert!(!text.contains("d5"), "{text}");
}

/// A game that comes back has only those own moves in the repertoire that the repertoire has.
#[test]
fn own_moves_are_those_of_the_repertoire() {
    let dir = temp();
    let repertoire = "1. d4 Nf6 2. c4 e6 3. Nf3 b6 4. g3 *";
    let games = "1. c4 e6 2. d4 Nf6 3. Nf3 b6 4. g3 Bb7 5. Bg2 *\n\n1. d4 Nf6 2. Nf3 e6 3. c4 b6 4. g3 Ba6 5. b3 *";
    let document = check(dir.path(), repertoire, games, "white");
    let stayed = [0, 1].map(|game: usize| document["games"][game]["stayed"].as_u64());
    assert_eq!(stayed, [Some(2), Some(2)]);
    assert_eq!(document["summary"]["depth"], serde_json::json!([2, 2]));
}

/// The lines of a repertoire have no players, and a book of one has a checksum.
#[test]
fn repertoires_have_no_players_and_books_a_checksum() {
    let dir = temp();
    let dir = dir.path();
    write(dir, "mine.pgn", "1. e4 e5 2. Nf3 *");
    write(dir, "games.pgn", "1. e4 c5 *");
    let text = ok(dir, "repertoire new games.pgn --reference mine.pgn");
    assert!(text.contains(": 1 game before\n"), "{text}");
    ok(
        dir,
        "repertoire build mine.pgn --color white --out mine.bin",
    );
    let said = String::from_utf8(run(dir, "verify mine.bin").stderr).unwrap();
    assert!(
        said.contains("in order") && !said.contains("no checksum"),
        "{said}"
    );
}

#[test]
fn min_game_is_for_own_moves() {
    let dir = temp();
    let dir = dir.path();
    let games = [
        "1. e4 1-0",
        "1. d4 1-0",
        "1. d4 1-0",
        "1. d4 0-1",
        "1. d4 0-1",
        "1. c4 1-0",
    ];
    write(
        dir,
        "games.pgn",
        &games.map(|game| format!("{game}\n\n")).concat(),
    );
    let first = |options: &str| {
        let line =
            format!("repertoire build games.pgn --color white --by score --out - -q {options}");
        String::from_utf8(run(dir, &line).stdout).unwrap()
    };
    assert!(first("--min-game 2").contains("1. d4"));
    assert!(first("--min-game 2 --by games").contains("1. d4"));
    assert!(!first("--min-game 5").contains("1. d4"));
}

/// Each game from a position of its own would be a departure of its own.
#[test]
fn games_from_elsewhere_are_counted_apart() {
    let dir = temp();
    let games = ["a", "b", "c"].map(|file| {
        let rank = match file {
            "a" => "P7",
            "b" => "1P6",
            _ => "2P5",
        };
        format!("[FEN \"4k3/8/8/8/8/8/{rank}/4K3 w - - 0 1\"]\n\n1. {file}4 Kd7 *\n\n")
    });
    let document = check(dir.path(), "1. e4 e5 *", &games.concat(), "black");
    let deviations = document["summary"]["deviations"].as_array().unwrap();
    assert!(deviations.is_empty(), "{deviations:?}");
    assert_eq!(document["summary"]["elsewhere"]["games"], 3);
}

/// A game that cannot be played stays in the file, and a long FEN is not quoted whole.
#[test]
fn unplayable_games_are_written_too() {
    let dir = temp();
    let dir = dir.path();
    let game = format!("[FEN \"{}\"]\n\n1. e4 *", "x".repeat(10_000));
    write(dir, "games.pgn", &game);
    write(dir, "old.pgn", "1. d4 *");
    let out = ok(
        dir,
        "repertoire new games.pgn --reference old.pgn --format pgn",
    );
    assert_eq!(out.trim_end(), game);
    let text = ok(dir, "repertoire new games.pgn --reference old.pgn");
    assert!(text.len() < 400, "{text}");
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
        "name": "mine", "color": "white", "pgn": true, "version": version, "isKnown": true, "oneIn": 1.0, "moves": [e4], "gaps": [],
    });
    assert_eq!(white(""), start);
    let after = white("?play=e2e4");
    let nf3 = json!({ "uci": "g1f3", "san": "Nf3" });
    let e5 = json!([{ "uci": "e7e5", "san": "e5", "answers": [nf3] }]);
    assert_eq!(after["moves"], e5);
    let gaps = after["gaps"].as_array().unwrap();
    let found: Vec<_> = gaps
        .iter()
        .map(|gap| (gap["san"].as_str().unwrap(), gap["games"].as_u64().unwrap()))
        .collect();
    assert_eq!(found, [("c5", 3), ("d5", 1)]);
    assert!((gaps[0]["oneIn"].as_f64().unwrap() - 10.0 / 3.0).abs() < 1e-9);
    let later = white("?play=e2e4,e7e5,g1f3");
    assert_eq!(
        (
            later["gaps"][0]["uci"].as_str(),
            later["gaps"][0]["oneIn"].as_f64()
        ),
        (Some("g8f6"), Some(5.0))
    );
    // Under the filters: White won no game after another reply.
    assert_eq!(white("?play=e2e4&result=1-0")["gaps"], json!([]));
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

/// Two orders of moves, after which a pinned pawn may not capture en passant, and two spellings of castling rights of which
/// some cannot be, give one position each.
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
    // The repertoire comes to the position by the first order alone.
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
        "repertoire gaps mine.pgn --against b.pgn --color white",
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
        // The first order ends with a reply that no move of the repertoire answers.
        let expected = match games {
            "a" | "b" => "left by the opponent at 5... g5",
            _ => "in the repertoire: 1 game",
        };
        assert!(check.contains(expected), "{games}: {check}");
    }
}

/// The file is claimed before the games are read. Otherwise, an edit of the file in the meantime would be lost.
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
        assert!(error.contains("another run is writing it"), "{error}");
    }
    std::io::Write::write_all(&mut pipe, &fs::read(games).unwrap()).unwrap();
    drop(pipe);
    assert!(slow.wait().unwrap().success());
}

#[test]
fn positions_with_several_own_moves_are_listed() {
    let dir = temp();
    let dir = dir.path();
    let lines = "1. e4 e5 (1... c5 2. Nf3 (2. c3) d6) 2. Nf3 (2. f4) Nc6 *\n\n1. Nf3 e5 2. e4 *\n";
    write(dir, "white.pgn", lines);
    write(dir, "black.pgn", "1. e4 e5 2. Nf3 Nc6 *\n");
    let check = "repertoire check white.pgn --color white --contradictions";
    assert_eq!(
        ok(dir, check),
        "the first position: Nf3, e4\n1. e4 c5: Nf3, c3\n1. e4 e5: Nf3, f4\n3 positions with several moves\n"
    );
    let found = ok_json(
        dir,
        "repertoire check --white white.pgn --black black.pgn --contradictions --json",
    );
    let found = found["contradictions"].as_array().unwrap();
    assert_eq!(found.len(), 3);
    assert_eq!(found[2]["color"], "white");
    assert_eq!(found[2]["line"], "1. e4 e5");
    assert_eq!(
        found[2]["fen"],
        "rnbqkbnr/pppp1ppp/8/4p3/4P3/8/PPPP1PPP/RNBQKBNR w KQkq - 0 2"
    );
    assert_eq!(
        ok(
            dir,
            "repertoire check black.pgn --color black --contradictions"
        ),
        "0 positions with several moves\n"
    );
    refused(
        dir,
        &[
            (
                "repertoire check white.pgn black.pgn --color white --contradictions",
                2,
                "--contradictions checks no games",
            ),
            (
                "repertoire check white.pgn --contradictions",
                2,
                "--contradictions checks no games",
            ),
        ],
    );
}
