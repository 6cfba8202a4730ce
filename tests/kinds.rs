//! Inputs that earlier versions read wrongly: names of tags, identities of positions, shares of moves, unknown
//! values, and queries that several commands answer.

use std::fs;

use polybook::{
    book::Entry,
    position::{BookMove, from_text, key, read_move},
};
use serde_json::{Value, json};
use shakmaty::{Chess, Position};

use crate::common::{fails, ok, ok_json, run, temp};

/// The starting position of games with a `FEN` tag.
const START: &str = "4k3/8/8/8/8/8/4P3/4K3 w - - 0 1";

#[test]
fn names_of_tags_are_read_in_any_case_and_with_a_sign_after_them() {
    let dir = temp();
    let dir = dir.path();
    // Each first move is legal in the usual starting position too.
    for name in ["fen", "Fen", "FEN:", "FEN=", "fen :", "FeN"] {
        let name = name.replace(' ', "");
        let game = format!("[White \"a\"]\n[{name} \"{START}\"]\n[RESULT \"0-1\"]\n\n1. e4 *\n");
        fs::write(dir.join("a.pgn"), game).unwrap();
        ok(
            dir,
            "make-book -q a.pgn --min-game 1 --explorer a.idx --force",
        );
        let found = ok_json(dir, args!["show", "a.idx", "--fen", START, "--json"]);
        assert_eq!(
            (&found["games"], &found["black"]),
            (&json!(1), &json!(1)),
            "{name}"
        );
        assert_eq!(ok_json(dir, "show a.idx --json")["games"], 0, "{name}");
    }
    for name in ["variant", "VARIANT", "Variant:"] {
        fs::write(
            dir.join("a.pgn"),
            format!("[{name} \"Atomic\"]\n\n1. e4 1-0\n"),
        )
        .unwrap();
        let report = ok_json(
            dir,
            "make-book a.pgn --variant auto --min-game 1 --json --bin a.bin",
        );
        assert_eq!(report["variants"], json!({"atomic": 1}), "{name}");
    }
    // A tag whose name only begins with `FEN` is another tag.
    fs::write(
        dir.join("a.pgn"),
        format!("[FENx \"{START}\"]\n\n1. e4 1-0\n"),
    )
    .unwrap();
    ok(dir, "make-book -q a.pgn --min-game 1 --bin b.bin");
    assert!(ok(dir, "show b.bin").contains("e4"));
}

#[test]
fn a_fen_that_names_no_position_is_the_usual_start() {
    let dir = temp();
    let dir = dir.path();
    for fen in ["?", "-", "", " ", "startpos"] {
        for variant in ["", "[Variant \"Atomic\"]\n"] {
            fs::write(
                dir.join("a.pgn"),
                format!("{variant}[FEN \"{fen}\"]\n\n1. e4 1-0\n"),
            )
            .unwrap();
            let report = ok_json(
                dir,
                "make-book a.pgn --variant auto --min-game 1 --json --bin a.bin",
            );
            assert_eq!(report["games"]["counted"], 1, "{fen} {variant}");
        }
    }
}

#[test]
fn results_with_letters_and_signs_for_digits() {
    let dir = temp();
    let dir = dir.path();
    for (result, expected) in [
        ("1-O", "white"),
        ("O-1", "black"),
        ("1.0-0.0", "white"),
        ("0,0:1,0", "black"),
        ("=-=", "draws"),
    ] {
        for game in [
            format!("[Result \"{result}\"]\n\n1. e4 e5\n"),
            format!("1. e4 e5 {result}\n\n1. d4 1-0\n"),
        ] {
            fs::write(dir.join("a.pgn"), &game).unwrap();
            ok(
                dir,
                "make-book -q a.pgn --min-game 1 --explorer a.idx --force",
            );
            let found = ok_json(dir, "show a.idx --moves e4 --json");
            assert_eq!(
                (&found["games"], &found[expected]),
                (&json!(1), &json!(1)),
                "{game}"
            );
            assert_eq!(found.get("unfinished").unwrap_or(&json!(0)), 0, "{game}");
        }
    }
    // Castling written with letters is not a result.
    fs::write(
        dir.join("a.pgn"),
        "1. e4 e5 2. Nf3 Nf6 3. Bc4 Bc5 4. O-O O-O 1-0\n",
    )
    .unwrap();
    let report = ok_json(dir, "make-book a.pgn --min-game 1 --json --bin a.bin");
    assert_eq!(report["plies"], 8);
}

/// A pawn that cannot be captured en passant does not affect the identity of a position, whatever the reason.
/// Only books distinguish such positions.
#[test]
fn an_unusable_en_passant_square_does_not_make_a_different_position() {
    let dir = temp();
    let dir = dir.path();
    for (variant, placement, square, mv) in [
        // The capture would remove both pawns from the rank of the king, which would then be in check.
        ("Standard", "8/8/8/K2pP2r/8/8/8/7k w -", "d6", "Kb6"),
        // The capturing pawn is pinned on a diagonal.
        ("Standard", "7b/8/8/3pP3/3K4/8/8/k7 w -", "d6", "Kc5"),
        // The double step gave check from a bishop, which the capture does not end.
        ("Standard", "kb6/8/8/1Pp5/8/8/7K/8 w -", "c6", "Kg2"),
        // A pinned pawn of Black.
        ("Standard", "4k3/8/8/8/3Pp3/8/8/K3R3 b -", "d3", "Kd7"),
        ("Three-check", "4k3/8/8/8/3Pp3/8/8/K3R3 b -", "d3", "Kd7"),
        ("Crazyhouse", "4k3/8/8/8/3Pp3/8/8/K3R3[] b -", "d3", "Kd7"),
    ] {
        let fens = [square, "-"].map(|square| format!("{placement} {square} 0 1"));
        let games = fens
            .each_ref()
            .map(|fen| format!("[Variant \"{variant}\"]\n[FEN \"{fen}\"]\n\n1. {mv} 1-0\n\n"));
        fs::write(dir.join("a.pgn"), games.concat()).unwrap();
        let named = match variant {
            "Standard" => "normal",
            "Three-check" => "3check",
            _ => "crazyhouse",
        };
        let make = format!(
            "make-book -q a.pgn --variant {named} --min-game 1 --force --explorer a.idx --leveldb a.fork --index-stats"
        );
        ok(dir, &make);
        let mut keys = Vec::new();
        for fen in &fens {
            for index in ["a.idx", "a.fork"] {
                let asked = args!["games", index, "--fen", fen, "--variant", named, "--json"];
                assert_eq!(ok_json(dir, asked)["total"], 2, "{index} {fen}");
            }
            let asked = args!["show", "a.idx", "--fen", fen, "--variant", named, "--json"];
            assert_eq!(ok_json(dir, asked)["games"], 2, "{fen}");
            keys.push(ok(dir, args!["key", "--fen", fen, "--variant", named]));
        }
        assert_ne!(keys[0], keys[1], "{fens:?}");
    }
}

fn write_book(path: &std::path::Path, records: &[(u64, BookMove, u16)]) {
    let mut records = records.to_vec();
    records.sort_by_key(|(key, _, weight)| (*key, std::cmp::Reverse(*weight)));
    let entry = |(key, mv, weight)| Entry {
        key,
        mv,
        weight,
        learn: 0,
    };
    let bytes: Vec<u8> = records
        .into_iter()
        .flat_map(|record| entry(record).to_bytes())
        .collect();
    fs::write(path, bytes).unwrap();
}

/// Some programs write castling as the king's two steps. If a book contains both spellings, they are shown as one
/// move with the sum of the weights.
#[test]
fn both_spellings_of_castling_have_one_share() {
    let dir = temp();
    let dir = dir.path();
    let line = ["e2e4", "e7e5", "g1f3", "b8c6", "f1c4", "f8c5"];
    let mut records = Vec::new();
    for ply in 0..line.len() {
        let pos = from_text(None, Some(&line[..ply].join(" "))).unwrap();
        let mv = read_move(&pos, line[ply].as_bytes()).unwrap();
        records.push((key(&pos), mv.into(), 60));
    }
    let last = key(&from_text(None, Some(&line.join(" "))).unwrap());
    // e1h1, e1g1 and d2d3, encoded as in the book format.
    let [rook, steps, pawn] = [0o0407, 0o0406, 0o1323].map(BookMove);
    records.extend([(last, rook, 25), (last, steps, 25), (last, pawn, 40)]);
    write_book(&dir.join("a.bin"), &records);
    let moves = line.join(" ");
    let show = |book: &str| {
        let found = ok_json(dir, args!["show", book, "--moves", &moves, "--json"]);
        let moves = found["moves"].as_array().unwrap().iter();
        let shown = moves.map(|mv| format!("{} {}", mv["san"].as_str().unwrap(), mv["weight"]));
        shown.collect::<Vec<_>>().join(", ")
    };
    assert_eq!(show("a.bin"), "O-O 50, d3 40");
    for (options, kept) in [
        ("--best 1", "O-O 50"),
        ("--min-share 50", "O-O 50"),
        ("--min-weight 45", "O-O 50"),
        ("--min-share 30", "O-O 50, d3 40"),
        ("--reachable", "O-O 50, d3 40"),
    ] {
        ok(
            dir,
            &*format!("filter -q a.bin --out b.bin {options} --max-ply 99"),
        );
        assert_eq!(show("b.bin"), kept, "{options}");
    }
    let asked = args![
        "edit", "-q", "a.bin", "--out", "c.bin", "--moves", &moves, "--set", "O-O=50%"
    ];
    ok(dir, asked);
    assert_eq!(show("c.bin"), "O-O 40, d3 40");
    // Two books by programs with different spellings, and a record of a position that no line reaches.
    let unknown = (last ^ 1, rook, 7);
    let [first, second] = [rook, steps].map(|castling| {
        let mut records = records[..line.len()].to_vec();
        records.extend([(last, castling, 25), unknown]);
        records
    });
    let second = [&second[..], &[(last, pawn, 40), (last ^ 1, steps, 7)]].concat();
    write_book(&dir.join("one.bin"), &first);
    write_book(&dir.join("two.bin"), &second);
    for (command, entries, shown) in [
        ("merge-book one.bin two.bin", 10, "O-O 50, d3 40"),
        ("filter one.bin two.bin", 10, "O-O 50, d3 40"),
        (
            "merge-book --policy first two.bin one.bin",
            10,
            "d3 40, O-O 25",
        ),
        ("merge-book a.bin", 8, "O-O 50, d3 40"),
    ] {
        let merged = ok_json(dir, &*format!("{command} --out m.bin --json"));
        assert_eq!(merged["entries"], entries, "{command}");
        assert_eq!(show("m.bin"), shown, "{command}");
        let bytes = fs::read(dir.join("m.bin")).unwrap();
        let records = bytes.chunks(16);
        let of_last = records.filter(|record| record[..8] == last.to_be_bytes());
        let moves: Vec<u16> = of_last
            .map(|record| u16::from_be_bytes([record[8], record[9]]))
            .collect();
        assert!(
            moves.contains(&rook.0) && !moves.contains(&steps.0),
            "{command}"
        );
    }
}

#[test]
fn moves_of_weight_0_have_no_share_in_any_command() {
    let dir = temp();
    let dir = dir.path();
    let start = key(&from_text(None, None).unwrap());
    let [e4, d4, none] = [0o1434, 0o1333, 0o1444].map(BookMove);
    write_book(
        &dir.join("a.bin"),
        &[(start, e4, 0), (start, d4, 0), (start, none, 500)],
    );
    let found = ok_json(dir, "show a.bin --json");
    let shares = found["moves"].as_array().unwrap().iter();
    let shares: Vec<&Value> = shares
        .filter(|mv| !mv["san"].is_null())
        .map(|mv| &mv["probability"])
        .collect();
    assert_eq!(shares, [&json!(0.0), &json!(0.0)]);
    let err = fails(dir, "filter a.bin --out b.bin --min-share 50", 1);
    assert!(err.contains("no move is kept with --min-share 50"), "{err}");
    ok(dir, "edit -q a.bin --out c.bin --set e4=50%");
    let found = ok_json(dir, "show c.bin --json");
    let e4 = found["moves"]
        .as_array()
        .unwrap()
        .iter()
        .find(|mv| mv["san"] == "e4");
    assert_eq!(e4.unwrap()["probability"], 100.0);
}

/// A record with an illegal move has no share, and `filter` never keeps it, for whatever reason the move is illegal.
#[test]
fn illegal_moves_do_not_reduce_the_shares_of_legal_moves() {
    let dir = temp();
    let dir = dir.path();
    for (line, legal, illegal, said) in [
        // A pawn move that does not end the check, and castling.
        (
            "e4 d5 Bb5+",
            ["c6", "Nc6"],
            [0o6050, 0o7476],
            "c6 30, Nc6 20",
        ),
        // Moves of a knight of the side that is not to move, and then of the pinned knight.
        (
            "e4 e5 Nf3 Nc6 Bb5 d6",
            ["d4", "O-O"],
            [0o5233, 0o5240],
            "d4 30, O-O 20",
        ),
        (
            "e4 e5 Nf3 Nc6 Bb5 d6 d4",
            ["Bd7", "a6"],
            [0o5233, 0o5240],
            "Bd7 30, a6 20",
        ),
        // A promotion without a piece, and castling through a bishop.
        (
            "h4 g5 hxg5 h6 gxh6 Nf6 h7 Ng8",
            ["hxg8=Q", "e4"],
            [0o6776, 0o0406],
            "hxg8=Q 30, e4 20",
        ),
    ] {
        let mut pos = Chess::default();
        let mut records = Vec::new();
        for word in line.split(' ') {
            let mv = read_move(&pos, word.as_bytes()).unwrap();
            records.push((key(&pos), mv.into(), 60));
            pos.play_unchecked(mv);
        }
        for (mv, weight) in legal.into_iter().zip([30, 20]) {
            let mv = read_move(&pos, mv.as_bytes()).unwrap();
            records.push((key(&pos), mv.into(), weight));
        }
        records.extend(illegal.map(|mv| (key(&pos), BookMove(mv), 900)));
        write_book(&dir.join("a.bin"), &records);
        let show = |book: &str| {
            let found = ok_json(dir, args!["show", book, "--moves", line, "--json"]);
            let moves = found["moves"].as_array().unwrap().iter();
            let legal: Vec<_> = moves.filter(|mv| !mv["san"].is_null()).collect();
            let share = |mv: &&Value| mv["probability"].as_f64().unwrap();
            let shares: f64 = legal.iter().map(share).sum();
            assert!((shares - 100.0).abs() < 0.2, "{line}: {found}");
            let text = |mv: &&Value| format!("{} {}", mv["san"].as_str().unwrap(), mv["weight"]);
            legal.iter().map(text).collect::<Vec<_>>().join(", ")
        };
        assert_eq!(show("a.bin"), said, "{line}");
        let best = said.split(", ").next().unwrap();
        for (option, kept) in [
            ("--min-share 35", said),
            ("--best 1", best),
            ("--min-share 50", best),
        ] {
            ok(dir, &*format!("filter -q a.bin --out b.bin {option}"));
            assert_eq!(show("b.bin"), kept, "{line} {option}");
        }
    }
}

/// Counts record how many values were unknown in their games, as the report of a run on the games does.
#[test]
fn counts_say_what_was_unknown_in_their_games() {
    let dir = temp();
    let dir = dir.path();
    let games = "[Result \"remis\"]\n[Date \"2020.01.01\"]\n[WhiteElo \"2500\"]\n[BlackElo \"2500\"]\n\n1. e4 *\n\n\
                 [Result \"1-0\"]\n[Date \"last week\"]\n\n1. e4 1-0\n";
    fs::write(dir.join("a.pgn"), games).unwrap();
    let options = "--min-game 1 --since 2019 --min-elo 2000";
    let of_games = ok_json(
        dir,
        &*format!("make-book a.pgn {options} --counts c --bin a.bin --json"),
    );
    let of_counts = ok_json(dir, "make-book c --min-game 1 --bin b.bin --json");
    let sidecar: Value =
        serde_json::from_slice(&fs::read(dir.join("c/_counts.json")).unwrap()).unwrap();
    for (name, number) in [
        ("unreadable_results", 1),
        ("unfinished", 1),
        ("undated", 1),
        ("unrated", 1),
    ] {
        for document in [&of_games, &of_counts, &sidecar] {
            assert_eq!(document[name], number, "{name}: {document}");
        }
    }
}

/// Messages number games from 1. Numbers of games in an index, which start at 0, are called ids.
#[test]
fn messages_count_games_from_1_and_indexes_have_ids() {
    let dir = temp();
    let dir = dir.path();
    fs::write(
        dir.join("a.pgn"),
        "1. e4 1-0\n\n1. e4 e5 2. Ke3 {[%eval 0.1]} 1-0\n",
    )
    .unwrap();
    let said = |command: &str| String::from_utf8(run(dir, command).stderr).unwrap();
    for command in [
        "make-book a.pgn --min-game 1 --bin a.bin --explorer a.idx",
        "make-book a.pgn --strict --bin b.bin",
        "evals --out a.evals a.pgn",
    ] {
        let said = said(command);
        assert!(said.contains("game 2, byte 23"), "{command}: {said}");
    }
    let report = ok_json(dir, "make-book a.pgn --min-game 1 --bin a.bin --json");
    assert_eq!(report["rejected"][0]["game"], 1);
    let err = fails(dir, "games a.idx --pgn --id 2", 1);
    assert!(
        err.contains("the index contains no game with the id 2: use an id from 0 to 1"),
        "{err}"
    );
    assert!(ok(dir, "games a.idx --pgn --id 1").contains("Ke3"));
}

#[cfg(feature = "serve")]
mod served {
    use super::*;
    use crate::common::served::Served;

    /// Illegal records get no share. Here these are moves of the side that is not to move, and a move without a
    /// piece. The shares of the legal moves add up to 100 % in every answer.
    #[test]
    fn shares_of_a_position_add_up_whatever_records_it_has() {
        let dir = temp();
        let dir = dir.path();
        let start = key(&from_text(None, None).unwrap());
        let after = key(&from_text(None, Some("e4")).unwrap());
        let [e4, e5, c5] = [0o1434, 0o6444, 0o6242].map(BookMove);
        let [white, none, knight] = [0o1333, 0o5444, 0o0625].map(BookMove);
        let records = [
            (start, e4, 1),
            (after, white, 500),
            (after, none, 100),
            (after, knight, 50),
            (after, e5, 30),
            (after, c5, 10),
        ];
        write_book(&dir.join("a.bin"), &records);
        let expected = [("e7e5", 75.0), ("c7c5", 25.0)];
        let shown = ok_json(dir, "show a.bin --moves e4 --json");
        fs::write(dir.join("g.pgn"), "1. e4 e5 1-0\n").unwrap();
        let served = Served::start(dir, "g.pgn --no-cache --book a.bin");
        let answer = served.json("/book?play=e2e4");
        for moves in [&shown["moves"], &answer["books"][0]["moves"]] {
            let moves = moves.as_array().unwrap().iter();
            let legal = moves.filter(|mv| !mv["san"].is_null());
            let shares: Vec<(&str, f64)> = legal
                .map(|mv| {
                    let share = mv["probability"].as_f64().unwrap();
                    (mv["uci"].as_str().unwrap(), share)
                })
                .collect();
            assert_eq!(shares, expected);
        }
        ok(dir, "filter -q a.bin --out b.bin --min-share 30");
        let kept = ok_json(dir, "show b.bin --moves e4 --json");
        assert_eq!(kept["moves"].as_array().unwrap().len(), 1);
        assert_eq!(kept["moves"][0]["uci"], "e7e5");
        ok(dir, "edit -q a.bin --out c.bin --moves e4 --set c5=50%");
        let set = ok_json(dir, "show c.bin --moves e4 --json");
        let weights = set["moves"].as_array().unwrap().iter();
        let legal: Vec<&Value> = weights.filter(|mv| !mv["san"].is_null()).collect();
        assert!(
            legal.iter().all(|mv| mv["probability"] == 50.0),
            "{legal:?}"
        );
    }

    /// The server makes a book for download with the options with which the games were indexed. If it cannot, it
    /// refuses the request.
    #[test]
    fn a_download_reads_the_games_as_the_index_did() {
        let dir = temp();
        let dir = dir.path();
        fs::write(dir.join("a.pgn"), "1. e4 d5 2. exd5 Qxd2 0-1\n").unwrap();
        let other = "1. e4 e5 1-0\n\n[Variant \"Atomic\"]\n\n1. d4 d5 1-0\n";
        fs::write(dir.join("b.pgn"), other).unwrap();
        let make = "make-book -q --min-game 1 --variant auto";
        ok(
            dir,
            &*format!("{make} a.pgn --untagged-variant atomic --explorer a.idx"),
        );
        ok(dir, &*format!("{make} b.pgn --explorer b.idx"));
        assert!(run(dir, "verify a.idx").status.success());
        let served = Served::start(dir, "a.idx");
        let size = served.json("/book.bin?variant=atomic&minGame=1&count=true");
        assert_eq!((&size["games"], &size["entries"]), (&json!(1), &json!(2)));
        let command = size["command"].as_str().unwrap();
        assert!(command.contains("--untagged-variant atomic"), "{command}");
        ok(dir, &*command.replace("polybook ", ""));
        assert_eq!(
            served.get("/book.bin?variant=atomic&minGame=1").body,
            fs::read(dir.join("book.bin")).unwrap()
        );
        let served = Served::start(dir, "a.idx b.idx");
        let path = "/book.bin?variant=atomic&minGame=1&count=true";
        let reply = served.get(path);
        assert_eq!(reply.status, 400);
        let advice = "choose one source";
        assert!(reply.text().contains(advice), "{}", reply.text());
        assert_eq!(served.get(&format!("{path}&source=a")).status, 200);
        // The server cannot repeat the filters and piece letters of an index.
        fs::write(dir.join("de.pgn"), "1. e4 e5 2. Sf3 1-0\n").unwrap();
        for options in [
            "--piece-letters de",
            "--min-plies 1",
            "--duplicates once",
            "--keep-prefix",
        ] {
            ok(
                dir,
                &*format!("{make} de.pgn {options} --explorer c.idx --force --allow-empty"),
            );
            assert!(run(dir, "verify c.idx").status.success());
            let served = Served::start(dir, "c.idx");
            let reply = served.get("/book.bin?minGame=1");
            assert_eq!(reply.status, 400, "{options}");
            assert!(
                reply.text().contains(options),
                "{options}: {}",
                reply.text()
            );
        }
        ok(
            dir,
            &*format!("{make} b.pgn --max-ply 9 --unfinished skip --explorer c.idx --force"),
        );
        assert_eq!(
            Served::start(dir, "c.idx")
                .get("/book.bin?minGame=1")
                .status,
            200
        );
    }

    #[test]
    fn about_says_how_many_games_are_not_counted() {
        let dir = temp();
        let dir = dir.path();
        fs::write(
            dir.join("a.pgn"),
            "1. e4 1-0\n\n1. e5 1-0\n\n1. d4 d5 1-0\n",
        )
        .unwrap();
        let served = Served::start(dir, "a.pgn");
        let about = served.json("/about");
        assert_eq!(
            (&about["games"], &about["notCounted"]),
            (&json!(3), &json!(1))
        );
        assert_eq!(about["sources"][0]["notCounted"], 1);
        let counted = served.json("/lichess");
        let total: u64 = ["white", "draws", "black"]
            .iter()
            .map(|name| counted[*name].as_u64().unwrap())
            .sum();
        assert_eq!(total, 2);
        fs::write(dir.join("b.pgn"), "1. e4 1-0\n").unwrap();
        let about = Served::start(dir, "b.pgn").json("/about");
        assert_eq!(about.get("notCounted"), None);
    }
}
