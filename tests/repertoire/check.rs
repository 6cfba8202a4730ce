//! Checking games against a repertoire.

use super::*;

#[test]
fn the_side_that_leaves_the_repertoire_is_reported_with_the_move() {
    let dir = temp();
    let dir = dir.path();
    let repertoire = "1. e4 e5 (1... c5 $1 2. c3!? {Alapin} d5) 2. Nf3! Nc6 3. Bb5 a6 4. Ba4 *\n\n1. e4 e6 2. d4 *";
    let games = "1. e4 e5 2. Nf3 Nc6 3. Bb5 *\n\n1. e4 e5 2. Bc4 Nc6 *\n\n1. e4 d5 2. exd5 *\n\n1. d4 *\n\n1. e4 c5 2. c3 e6 3. d4 *\n\n\
        1. e4 e5 2. Nf3 Nc6 3. Bb5 a6 4. Ba4 Nf6 *\n\n1. e4 e5 2. Nf3 Nc6 3. Bb5 a6 4. Ba4 *\n\n[Event \"none\"]\n\n*\n\n1. e4 e6 2. d4 d5 3. -- *\n\n\
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
    assert_eq!(numbers, (0..10).collect::<Vec<u64>>());
    let summary = &document["summary"];
    // The game without moves is not counted.
    assert_eq!(summary["stayed"]["games"], 2);
    assert_eq!(summary["left_by_player"]["games"], 2);
    assert_eq!(summary["left_by_opponent"]["games"], 2);
    // Games 4, 5 and 8 went on after the end of a line.
    assert_eq!(summary["line_ended"]["games"], 3);
    let line_ends = games.iter().map(|game| game["is_line_end"] == true);
    let line_ends: Vec<bool> = line_ends.collect();
    assert_eq!(
        line_ends.iter().filter(|is_end| **is_end).count(),
        3,
        "{games:?}"
    );
    assert!(line_ends[5], "{games:?}");
    let text = ok(
        dir,
        "repertoire check checked-repertoire.pgn checked-games.pgn --color white",
    );
    for part in [
        "\nfollowed to the end of a line: 3 games\n",
        " followed until 4... Nf6 (the line ends)\n",
        "  -         4... Nf6     (the line ends)  ",
    ] {
        assert!(text.contains(part), "{text}");
    }
    assert_eq!(summary["elsewhere"]["games"], 0);
    assert_eq!(summary["contradictions"], 0);
    let mut deviations = summary["deviations"].as_array().unwrap().iter();
    let deviation = deviations.find(|deviation| deviation["move"] == "e6");
    assert_eq!(deviation.unwrap()["line"], "1. e4 c5 2. c3");
    // A repertoire for Black, which has no move at the start.
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
fn games_without_a_result_are_named_beside_the_scores() {
    let dir = temp();
    let dir = dir.path();
    let repertoire = "1. e4 e5 2. Nf3 *";
    let document = check(
        dir,
        repertoire,
        "1. e4 c5 1-0\n\n1. e4 c5 *\n\n1. e4 e5 2. Nf3 Nc6 *",
        "white",
    );
    let summary = &document["summary"];
    let left = &summary["left_by_opponent"];
    assert_eq!(
        (&left["games"], &left["unfinished"]),
        (&2.into(), &1.into())
    );
    assert_eq!(left["score"], 100.0);
    let text = ok(
        dir,
        "repertoire check checked-repertoire.pgn checked-games.pgn --color white",
    );
    for part in [
        "left by the opponent: 2 games, 1 without a result, score 100.0%\n",
        "followed to the end of a line: 1 game\n",
        "  games   score  unfinished  left by ",
        "      2  100.0%           1  opponent",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
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

/// After 3. Nf3, a position of the PGN is reached with the opponent to move. A book does not contain this
/// position, so the game has not returned to the repertoire.
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
    // The first move of Black's repertoire follows White's move, which was played.
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
        said.matches("1 position in which the repertoire has several moves")
            .count(),
        1,
        "{said}"
    );
}

#[test]
fn games_of_chess960_and_variants_are_checked() {
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
    // Each game is compared with the games of its own variant.
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
fn a_repertoire_of_a_hundred_thousand_positions_is_checked() {
    if !crate::common::runs_slow_tests() {
        return;
    }
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
    // A line lacks an answer at its end only if it ends with Black's move.
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
fn games_of_a_period_are_checked_and_have_the_numbers_of_an_index() {
    let dir = temp();
    let dir = dir.path();
    fs::copy(sample("famous.pgn"), dir.join("famous.pgn")).unwrap();
    write(dir, "black.pgn", "1. d4 Nf6 2. c4 g6 *");
    let line = "repertoire check black.pgn famous.pgn --color black --player fischer";
    let numbers = |options: &str| {
        let document = ok_json(dir, &format!("{line} --json{options}"));
        let games = document["games"].as_array().unwrap().iter();
        let numbers = games.map(|game| game["game"].as_u64().unwrap());
        numbers.collect::<Vec<u64>>()
    };
    let all = numbers("");
    assert_eq!(all.len(), 2);
    for number in &all {
        let game = ok(dir, &format!("games famous.pgn --pgn --id {number}"));
        assert!(game.contains("[Black \"Fischer, Robert James\"]"), "{game}");
    }
    assert_eq!(numbers(" --since 1960"), all[1..]);
    assert_eq!(numbers(" --until 1960"), all[..1]);
    let output = run(dir, &*format!("{line} --since 1990"));
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains("--since leaves all games out"), "{said}");
    fails(dir, &format!("{line} --since 1990 --until 1980"), 2);
}

#[test]
fn both_colors_of_a_player_are_checked() {
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
    assert_eq!(both["games"][1]["game"], 1);
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
        text.contains("1 0-1     Cy - ann  lee: left by the player at 1... e5, not c5\n"),
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
    assert_eq!(checked, expected);
    // The file can be read.
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
fn an_error_names_the_player_without_games() {
    let dir = temp();
    let dir = dir.path();
    write(dir, "mine.pgn", "1. e4 *");
    write(dir, "games.pgn", "[White \"Carlsen,M\"]\n\n1. e4 *");
    let line = "repertoire check mine.pgn games.pgn --color white --player";
    assert!(ok(dir, &format!("{line} carlsen")).contains("1 game"));
    let none = |name: &str| fails(dir, &format!("{line} {name}"), 1);
    assert_eq!(
        none("carlsn").trim(),
        "polybook: --player: no game has a player whose name contains \"carlsn\": did you mean \"Carlsen,M\"?"
    );
    assert!(none("x --exact").contains("has a player whose name contains \"x\""));
    assert!(none("x --json").contains("has a player whose name contains \"x\""));
    // There are no games.
    write(dir, "games.pgn", "");
    ok(dir, &format!("{line} carlsen"));
    ok(dir, "make-book -q mine.pgn --leveldb games.idx");
    for line in [
        "check mine.pgn games.idx --color white",
        "new games.idx --reference mine.pgn",
    ] {
        let error = fails(dir, &format!("repertoire {line}"), 1);
        assert!(error.contains("an index: give the PGN"), "{error}");
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
                "polybook: mine.pgn contains finished games, but {repertoire} contains none: give the repertoire \
                 before the games, or use --white mine.pgn if mine.pgn is the repertoire\n"
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
    // Finished games are accepted as a repertoire if an option names them, or if the other file also contains
    // finished games.
    ok(dir, "repertoire check --white mine.pgn white.pgn");
    ok(dir, "repertoire check mine.pgn mine.pgn --color white");
}

#[test]
fn an_error_says_that_the_repertoire_is_for_the_other_color() {
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
    // A line without alternatives could belong to either side.
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
            Some("warning: the header of the repertoire says that the repertoire is for white"),
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

/// If a game returns to the repertoire, only the player's moves that the repertoire contains are counted.
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

/// Games that start in other positions do not belong to the repertoire. Otherwise, each of them would be a
/// separate departure.
#[test]
fn games_from_other_positions_are_counted_separately() {
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

/// A game that cannot be played is written unchanged, and messages do not quote a long FEN completely.
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
                "--contradictions checks repertoires, not games",
            ),
            (
                "repertoire check white.pgn --contradictions",
                2,
                "--contradictions checks repertoires, not games",
            ),
        ],
    );
}
