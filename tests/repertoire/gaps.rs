//! The gaps of a repertoire (moves of the opponent that it does not answer), and adding answers to them.

use super::*;

#[test]
fn a_gap_states_in_how_many_games_it_occurs_once() {
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
            (found.2 - expected.2).abs() < 1e-6,
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
    // Every kind of source gives the same report about these games.
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
    // The gaps for the other side, with a limit.
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
    // Repertoires that contain no answer to the first move of the games, or no move at all.
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

/// Seven of ten games stay in the repertoire, whichever of its two first moves the player chooses.
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
            .all(|one_in| (one_in - 10.0 / 3.0).abs() < 1e-6)
    );
}

#[test]
fn paths_to_a_position_add_up_and_cycles_end() {
    let dir = temp();
    let dir = dir.path();
    // 1... d5 2. c4 e6 and 1... e6 2. c4 d5 lead to one position, which has no answer.
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
    // Two of three games repeat moves, and one of them reaches the position by a longer path.
    write(
        dir,
        "games.pgn",
        "1. Nf3 Nf6 2. Ng1 Ng8 3. Nf3 Nf6 4. Ng1 Ng8 *\n\n1. Nf3 Nf6 2. Ng1 Ng8 3. Nf3 d5 *\n\n1. Nf3 d5 2. Ng1 *\n",
    );
    write(dir, "mine.pgn", "1. Nf3 Nf6 2. Ng1 Ng8 *");
    let found = reported(&gaps(dir, "mine.pgn", "games.pgn", "white"));
    // A game counts once for each position, with the last move that it played there: one of three games played 1...
    // Nf6.
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!((&*found[0].1, found[0].3), ("d5", 2));
    assert!((found[0].2 - 1.5).abs() < 1e-9, "{found:?}");
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
    // Lines that start in other positions are kept.
    let text = fs::read_to_string(dir.join("more.pgn")).unwrap();
    assert!(
        text.contains("[FEN \"4k3/8/8/8/8/8/4P3/4K3 w - - 0 1\"]"),
        "{text}"
    );
    let all = "repertoire gaps mine.pgn --against games.pgn --color white --add 100 --out all.pgn";
    let output = run(dir, all);
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains("all.pgn: 1 answer added\n"), "{said}");
    write(dir, "one.pgn", "1. e4 c5 2. Nf3 1-0\n\n1. e4 e5 *\n");
    let one = "repertoire gaps mine.pgn --against one.pgn --color white --min-game 1 --add 9 --out one-added.pgn";
    let said = String::from_utf8(run(dir, one).stderr).unwrap();
    let expected = "one-added.pgn: 1 answer added; 1 answer played in a single game\n";
    assert!(said.contains(expected), "{said}");
    // Gaps after which the source contains no games get no answer.
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

/// The tags, comments, marks and unanswered replies of a PGN are kept, even a comment that does not end.
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
    // The output contains the user's own games, so no command replaces it without `--force`.
    for line in [
        "repertoire gaps mine.pgn --against games.pgn --color white --add 1 --out more.pgn",
        "repertoire check -q mine.pgn games.pgn --color white --out more.pgn",
    ] {
        assert!(fails(dir, line, 1).contains("exists: remove it, or replace it with --force"));
    }
    // A byte order mark does not belong to a game.
    write(dir, "marked.pgn", &format!("\u{feff}{mine}"));
    add("marked.pgn", "unmarked.pgn");
    assert_eq!(fs::read_to_string(dir.join("unmarked.pgn")).unwrap(), one);
    // Other files are not replaced.
    write(dir, "theirs.pgn", "[Event \"x\"]\n\n1. e4 *");
    let line =
        "repertoire gaps mine.pgn --against games.pgn --color white --add 1 --out theirs.pgn";
    assert!(fails(dir, line, 1).contains("exists: remove it, or replace it with --force"));
}

/// An OOBS database made from a repertoire contains no real results, because no games were played. So the output
/// shows weights instead of scores.
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

/// The last position of a line has no moves in a book, a database or counts, so that only a reference with games
/// contains it if another move order reaches it.
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

/// If a misspelled name leaves no games, the result must not look like a repertoire without gaps.
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
        assert!(error.contains(" filtered by player"), "{error}");
        assert!(
            !error.contains("--from") && !error.contains("--allow-empty"),
            "{error}"
        );
    }
    // There are games that pass the filters, but none of them has a move in the first position of the repertoire.
    let line = "repertoire gaps mine.pgn --color black --against other.pgn --min-plies 1";
    // A note about games that begin in another position precedes the error.
    let fails_with_note = |line: &str| {
        let output = run(dir, line);
        assert_eq!(output.status.code(), Some(1), "{line}");
        let error = String::from_utf8(output.stderr).unwrap();
        assert!(
            error.starts_with("1 game begins in another position"),
            "{error}"
        );
        assert_eq!(error.lines().count(), 2, "{error}");
        error
    };
    let error = fails_with_note(line);
    assert!(
        error.contains("no game of this source that passes the filters"),
        "{error}"
    );
    let error = fails_with_note("repertoire build other.pgn --color white --out x.pgn");
    assert!(
        error.contains("in the starting position: give a position"),
        "{error}"
    );
}

/// The list of gaps ends at a probability of 1 in 1,000, and a message says how many gaps are left out.
#[test]
fn rare_gaps_are_counted_and_listed_on_demand() {
    let dir = temp();
    let dir = dir.path();
    write(dir, "mine.pgn", "1. e4 e5 2. Nf3 *\n\n");
    let games =
        "1. e4 e5 2. Nf3 *\n\n".repeat(1500) + &"1. e4 c5 *\n\n".repeat(20) + "1. e4 a5 *\n\n";
    write(dir, "games.pgn", &games);
    let line = "repertoire gaps mine.pgn --against games.pgn --color white --min-game 1";
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
            "1 gap, 2 positions answered; 1 more with a probability below 1 in 1000: --reach 1e9 lists all gaps"
        ),
        "{said}"
    );
    assert!(ok(dir, &format!("{line} --reach 1e9")).contains("1. e4 a5"));
}

/// An answer must lead to a position with games. Otherwise the gap gets no answer, instead of the first legal
/// move.
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
    let line = "repertoire gaps mine.pgn --against games.pgn --color white --min-game 1 --add 2 --out more.pgn";
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

/// The games are read in the variant of the repertoire. Games of another variant are an error.
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
    assert!(fails(dir, line, 1).contains("the variant of the repertoire"));
    let start = "[Variant \"Chess960\"]\n[FEN \"bnrkqrnb/pppppppp/8/8/8/8/PPPPPPPP/BNRKQRNB w KQkq - 0 1\"]\n\n";
    write(dir, "mine.pgn", &format!("{start}1. e4 e5 2. f4 *"));
    write(dir, "games.pgn", &format!("{start}1. e4 c5 2. f4 *"));
    let found = reported(&gaps(dir, "mine.pgn", "games.pgn", "white"));
    let moves: Vec<&str> = found.iter().map(|gap| &*gap.1).collect();
    assert_eq!(moves, ["c5"]);
}

#[test]
fn gaps_report_the_positions_where_the_source_ends() {
    let dir = temp();
    let dir = dir.path();
    write(dir, "mine.pgn", "1. e4 e5 2. Nf3 *");
    write(dir, "games.pgn", "1. c4 e5 2. Nc3 *");
    let line = "repertoire gaps mine.pgn --against games.pgn --color white";
    let output = run(dir, line);
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(
        said.contains("no games after 1. e4, although 1 game in 1.0 reaches this position\n"),
        "{said}"
    );
    let document = gaps(dir, "mine.pgn", "games.pgn", "white");
    let ended = &document["coverage"][0];
    assert_eq!(
        (&ended["share"], &ended["ended"]),
        (&1.0.into(), &1.0.into())
    );
}

/// A filter for the opponent's name selects only games in which the opponent plays the replies.
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
    let line = "repertoire gaps mine.pgn --against theirs.pgn --color white --min-game 1 --json";
    let moves = |options: &str| {
        let found = reported(&ok_json(dir, &format!("{line} {options}")));
        found.into_iter().map(|gap| gap.1).collect::<Vec<_>>()
    };
    assert_eq!(moves("").len(), 3);
    for options in [
        "--black giri",
        "--opponent giri",
        "--opponent giri --white me",
    ] {
        assert_eq!(moves(options), ["e5"], "{options}");
    }
    let said = |options: &str| {
        let output = run(dir, &format!("{line} {options}"));
        String::from_utf8(output.stderr).unwrap()
    };
    let note = "the opponent is giri, in 1 game as black\n";
    assert!(
        said("--opponent giri").contains(note),
        "{}",
        said("--opponent giri")
    );
    assert!(!said("--white me").contains("the opponent is"));
    let error = fails(dir, &format!("{line} --opponent giri --black you"), 2);
    assert!(
        error.contains("both give the name of the opponent"),
        "{error}"
    );
    assert!(ok(dir, "repertoire gaps --help").contains("--opponent has the other color"));
    ok(dir, "make-book -q theirs.pgn --explorer theirs.idx");
    // An index applies the conditions to its games, with the same answers as for the games.
    let line = |source| {
        format!(
            "repertoire gaps mine.pgn --color white --min-game 1 --opponent giri --against {source}"
        )
    };
    assert_eq!(ok(dir, &line("theirs.idx")), ok(dir, &line("theirs.pgn")));
    let line = |source, out| {
        format!("repertoire build {source} --color white --min-game 1 --black giri --out {out}")
    };
    ok(dir, &line("theirs.idx", "of-index.pgn"));
    ok(dir, &line("theirs.pgn", "of-games.pgn"));
    let [of_index, of_games] =
        ["of-index.pgn", "of-games.pgn"].map(|name| fs::read(dir.join(name)).unwrap());
    assert!(of_index == of_games && of_index.len() > 100);
    for (conditions, told) in [
        ("--opponent nobody", "no player"),
        ("--tag Event=x", "tags, which the condition tag needs"),
    ] {
        let line =
            format!("repertoire gaps mine.pgn --color white --against theirs.idx {conditions}");
        let error = fails(dir, &line, 1);
        assert!(error.contains(told), "{error}");
    }
}

/// Gaps with a single game are left out by default, and replies to the last move of a line are listed apart, unless the
/// user gives the length of the lines.
#[test]
fn gaps_have_two_games_and_moves_after_ends_of_lines_are_listed_apart() {
    let dir = temp();
    let dir = dir.path();
    write(
        dir,
        "games.pgn",
        &format!("{SOURCE}1. e4 e5 2. Nf3 Nc6 3. Bb5 1-0\n\n"),
    );
    write(dir, "mine.pgn", "1. e4 e5 2. Nf3 *");
    let line = "repertoire gaps mine.pgn --against games.pgn --color white";
    let text = ok(dir, line);
    let (gaps, ends) = text.split_once("\nafter the ends of lines\n").unwrap();
    assert!(
        gaps.contains("1. e4 c5\n") && !gaps.contains("Nc6"),
        "{text}"
    );
    assert!(ends.contains("1. e4 e5 2. Nf3 Nc6\n"), "{text}");
    assert!(!text.contains("d5"), "{text}");
    let every = ok(dir, &format!("{line} --min-game 1"));
    assert!(every.contains("1. e4 d5\n"), "{every}");
    for plies in [3, 5, 9] {
        let limited = ok(dir, &format!("{line} --max-ply {plies}"));
        assert!(!limited.contains("after the ends of lines"), "{limited}");
        assert!(limited.contains("1. e4 c5\n"), "{limited}");
    }
    // Ends of lines get answers after the gaps.
    let added = ok_json(dir, &format!("{line} --json --add 2 --out more.pgn"));
    assert_eq!(added["gaps"][0]["answer"], "Nf3");
    assert_eq!(added["line_ends"][0]["answer"], "Bb5", "{added}");
}

/// The report about a position, the list of gaps and the preparation call the same moves gaps.
#[test]
fn the_page_the_list_and_the_preparation_agree_about_gaps() {
    let dir = temp();
    let dir = dir.path();
    let game = |moves: &str| format!("[White \"Me\"]\n[Black \"Them\"]\n\n{moves} 1-0\n\n");
    let games = [
        ("1. e4 c5 2. Nf3 d6", 3),
        ("1. e4 e5 2. Nf3 Nc6 3. Bb5", 2),
        ("1. e4 d5 2. exd5", 2),
        ("1. e4 g6", 1),
        ("1. f3 e5 2. g4 Qh4#", 2),
    ];
    let games = games.map(|(moves, times)| game(moves).repeat(times));
    write(dir, "games.pgn", &games.concat());
    write(dir, "mine.pgn", "1. e4 (1. f3 e5 2. g4) e5 2. Nf3 *\n");
    let served = Served::start(dir, "-q games.pgn --repertoire mine.pgn:white");
    let listed = |document: &Value, name: &str, line: &str| {
        let list = document[name].as_array().unwrap().iter();
        let list = list.filter(|gap| gap["line"] == line);
        let mut moves: Vec<String> = list
            .map(|gap| gap["move"].as_str().unwrap().to_owned())
            .collect();
        moves.sort_unstable();
        moves
    };
    let found = ok_json(
        dir,
        "repertoire gaps mine.pgn --color white --against games.pgn --json",
    );
    for (line, play, gaps, ends) in [
        ("1. e4", "e2e4", &["c5", "d5"][..], &[][..]),
        ("1. e4 e5 2. Nf3", "e2e4,e7e5,g1f3", &[], &["Nc6"]),
        ("1. f3 e5 2. g4", "f2f3,e7e5,g2g4", &[], &[]),
    ] {
        assert_eq!(listed(&found, "gaps", line), gaps, "{found}");
        assert_eq!(listed(&found, "line_ends", line), ends, "{found}");
        let report = &served.json(&format!("/repertoire?play={play}"))["repertoires"][0];
        let command = format!(
            "prepare games.pgn --player Me --opponent Them --color white --duplicates all --repertoire mine.pgn --json --moves={line}"
        );
        let words = command.replace(&format!("--moves={line}"), "");
        let moves = format!("--moves={line}");
        let mut words: Vec<&str> = words.split_whitespace().collect();
        words.push(&moves);
        let prepared = ok_json(dir, &words[..]);
        for (name, of_move, expected) in [("gaps", "gap", gaps), ("lineEnds", "line_end", ends)] {
            let said = report[name].as_array().unwrap().iter();
            let mut said: Vec<&str> = said.map(|gap| gap["san"].as_str().unwrap()).collect();
            said.sort_unstable();
            assert_eq!(said, expected, "{report}");
            let moves = prepared["moves"].as_array().unwrap().iter();
            let moves = moves.filter(|mv| mv[of_move] == true);
            let mut moves: Vec<&str> = moves.map(|mv| mv["san"].as_str().unwrap()).collect();
            moves.sort_unstable();
            assert_eq!(moves, expected, "{prepared}");
        }
    }
}

/// If games of several variants start from the same position, the repertoire starts from this position in each of the
/// variants.
#[test]
fn games_of_two_variants_start_in_one_position() {
    let dir = temp();
    let dir = dir.path();
    let game = |variant: &str, moves: &str| {
        let fen = "4k3/8/8/8/8/8/4P3/4K3 w - - 0 1";
        format!("[Variant \"{variant}\"]\n[FEN \"{fen}\"]\n\n{moves} *\n\n")
    };
    let koth = game("King of the Hill", "1. e4 Ke7 2. Ke2");
    write(
        dir,
        "mine.pgn",
        &(game("Standard", "1. e4 Kd7 2. Kd2") + &koth),
    );
    write(
        dir,
        "games.pgn",
        &game("King of the Hill", "1. e4 Kf7 2. e5"),
    );
    let line = "repertoire gaps mine.pgn --against games.pgn --color white --variant kingofthehill --min-game 1";
    let text = ok(dir, line);
    assert!(text.contains("  1. e4 Kf7\n"), "{text}");
}

/// If a repertoire is a book, the PGN with answers to its gaps names the lines to which other lines transpose.
#[test]
fn answers_of_a_book_name_the_lines_of_transpositions() {
    let dir = temp();
    let dir = dir.path();
    let lines = "1. d4 e6 2. c4 d5 3. Nc3 1-0\n\n1. c4 e6 2. d4 1-0\n\n";
    write(dir, "mine.pgn", lines);
    ok(
        dir,
        "make-book -q mine.pgn --only-white --min-game 1 --bin mine.bin",
    );
    write(dir, "games.pgn", &format!("{lines}1. d4 c5 2. d5 1-0\n\n"));
    ok(
        dir,
        "repertoire gaps -q mine.bin --color white --against games.pgn --min-game 1 --add 1 --out more.pgn",
    );
    let pgn = std::fs::read_to_string(dir.join("more.pgn")).unwrap();
    let pgn = pgn.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(pgn.contains(", transposition to 1. "), "{pgn}");
}
