//! New moves: the moves by which games leave the positions of a reference.

use super::*;

#[test]
fn new_moves_are_found_where_games_leave_the_reference() {
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
    assert_eq!(lines[1], "0,a,x,,,,,");
    assert!(
        lines[3].starts_with("2,c,x,4,d5,1,\"b - x, 2001\","),
        "{}",
        lines[3]
    );
    let text = ok(dir, "repertoire new games.pgn --reference old.pgn");
    assert!(
        text.contains("2 2... d5        c - x: 1 game before, the last b - x, 2001\n"),
        "{text}"
    );
    // Counts, databases and books contain moves, but do not say which games reached a position.
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

/// A game of an event may have been played on any day from the first day of the event. The first day is therefore
/// the earliest date of the game, not the latest.
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
    ok(dir, "make-book -q day.pgn event.pgn --explorer both.idx");
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
    // The table also contains the line before the departure.
    let text = ok(dir, &format!("{line} --limit 1"));
    assert_eq!(text.matches("left by the opponent at").count(), 1, "{text}");
    let has_departure = |line: &str| {
        line.split_whitespace()
            .eq(["2", "-", "opponent", "1...", "c5", "e5", "1.", "e4"])
    };
    assert!(text.lines().any(has_departure), "{text}");
    assert!(
        text.ends_with("\nThere are 3 games and 2 departures: --limit 3 lists all\n"),
        "{text}"
    );
    let said = |options: &str| {
        let line = format!("repertoire new games.pgn --reference games.pgn {options}");
        String::from_utf8(run(dir, &line).stderr).unwrap()
    };
    assert!(said("").contains("--earlier"), "{}", said(""));
    assert!(!said("--earlier").contains("--earlier"));
}

/// If a game returns to known positions, the new move is the later one by which it leaves them for good.
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

/// A game has the same new move whether it is compared alone or in a batch with many others.
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

/// `repertoire new --player` compares only the games of one player.
#[test]
fn new_moves_of_one_player_are_those_of_the_player_alone() {
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
        (&0.into(), &"c5".into())
    );
    assert_eq!(found("tal")["games"][0]["game"], 1);
    assert_eq!(found("other")["games"].as_array().unwrap().len(), 2);
}

/// The ending of the output's name determines the format.
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
fn a_name_that_no_compared_game_has_is_answered_with_similar_names() {
    let dir = temp();
    let dir = dir.path();
    write(
        dir,
        "games.pgn",
        "[White \"Morphy, Paul\"]\n[Black \"Anderssen, Adolf\"]\n\n1. e4 e5 *\n",
    );
    let said = |filter: &str| {
        let line = format!("repertoire new games.pgn --reference games.pgn {filter}");
        let output = run(dir, &line);
        assert!(output.status.success(), "{line}");
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    for (filter, nearest) in [
        ("--player Morfy", "did you mean \"Morphy, Paul\"?"),
        ("--black Andersen,", "did you mean \"Anderssen, Adolf\"?"),
    ] {
        assert!(said(filter).contains(nearest), "{}", said(filter));
    }
    for filter in ["--player Morphy", "--since 2000 --require-date"] {
        assert!(!said(filter).contains("did you mean"), "{filter}");
    }
}
