//! Building a repertoire from games.

use super::*;

#[test]
fn building_from_a_collection_of_one_player_suggests_the_option_player() {
    let dir = temp();
    let dir = dir.path();
    let game = |white: &str, black: &str| {
        format!(
            "[White \"{white}\"]\n[Black \"{black}\"]\n[Result \"1-0\"]\n\n1. e4 e5 2. Nf3 1-0\n\n"
        )
    };
    let own = [game("Lee, Ann", "Bo"), game("Cy", "Lee, Ann")].concat();
    write(dir, "mine.pgn", &own.repeat(6));
    write(dir, "few.pgn", &own.repeat(4));
    write(dir, "white.pgn", &game("Lee, Ann", "Bo").repeat(12));
    write(
        dir,
        "other.pgn",
        &(own.repeat(6) + &game("Bo", "Cy").repeat(3)),
    );
    let said = |line: &str| {
        let line = format!("repertoire build {line} --color white --out built.pgn --force");
        String::from_utf8(run(dir, &*line).stderr).unwrap()
    };
    let advice = "Lee, Ann played nearly all games of mine.pgn";
    let text = said("mine.pgn");
    assert!(
        text.contains(advice) && text.contains("--player \"Lee, Ann\""),
        "{text}"
    );
    assert!(said("mine.pgn --min-plies 1").contains(advice));
    let both_colors =
        |white: &str, black: &str| (game(white, black) + &game(black, white)).repeat(6);
    write(dir, "match.pgn", &both_colors("Ann", "Bo"));
    write(dir, "itself.pgn", &game("Ann", "Ann").repeat(12));
    write(dir, "unknown.pgn", &both_colors("?", ""));
    write(
        dir,
        "long.pgn",
        &both_colors(&"A".repeat(300), &"B".repeat(300)),
    );
    let others = ["match.pgn", "itself.pgn", "unknown.pgn", "long.pgn"];
    for line in [
        "few.pgn",
        "white.pgn",
        "other.pgn",
        "mine.pgn --player ann",
        "mine.pgn --white ann",
    ]
    .into_iter()
    .chain(others)
    {
        assert!(!said(line).contains("nearly all games"), "{line}");
    }
}

#[test]
fn a_built_repertoire_has_no_gap_above_the_likelihood_that_was_asked_for() {
    if !crate::common::runs_slow_tests() {
        return;
    }
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
                        "repertoire build {source} --color {color} --reach {one_in} --by {by} --out {out} --force"
                    ),
                );
            }
            let found = gaps(dir, "built.pgn", source, color);
            // A gap may be likely enough for an answer only if it has none, because the games of the source end there.
            let added = format!(
                "repertoire gaps built.pgn --against {source} --color {color} --json --min-game 1 --add 1000000 --out {source}-{color}-{by}.pgn"
            );
            let added = ok_json(dir, &added);
            let lists = ["gaps", "line_ends"].map(|name| added[name].as_array().unwrap());
            for gap in lists.into_iter().flatten() {
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
            // The built repertoire contains one move of its own side in each position.
            assert_eq!(found["contradictions"], 0);
        }
    }
}

/// The position after 1. Kb1 a5 is likely enough only together with the longer path 1. Ka2 a6 2. Kb1 a5. Although
/// the longer path is found two half-moves later, the position is expanded with the half-moves left after the
/// shorter path.
#[test]
fn limited_half_moves_are_counted_along_the_shortest_path() {
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
            &format!("repertoire build games.pgn --color white --out built.pgn --force {options}"),
        );
        let text = fs::read_to_string(dir.join("built.pgn")).unwrap();
        text.lines().nth(8).unwrap().to_owned()
    };
    let line = first("");
    assert!(
        line.starts_with("1. e4 {110 games, 63.6%} 1... e5 {100 games, 40.0%, 1 in 1.1}"),
        "{line}"
    );
    assert!(first("--by games").starts_with("1. c4 {150 games, 0.0%}"));
    // One of eleven games continues with 1... c5.
    assert!(!first("--reach 10").contains("c5"));
    assert!(first("--reach 11").contains("(1... c5"));
    assert!(first("--max-ply 1").ends_with("63.6%} *"));
    write(dir, "keep.pgn", "1. d4 d5 2. Bf4 *");
    let text = first("--keep keep.pgn");
    assert!(
        text.starts_with("1. d4 {2 games, 100.0%} 1... d5 {2 games, 0.0%, 1 in 1.0} 2. Bf4"),
        "{text}"
    );
    let line = "repertoire build games.pgn --color white --out built.pgn --force --keep keep.pgn";
    let said = String::from_utf8(run(dir, line).stderr).unwrap();
    let answers = " in positions that the games reach, and all lines of keep.pgn";
    assert!(said.contains(answers), "{said}");
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
    // The games with 2. Nf3 end after this move.
    let numbers = ["answers", "unanswered", "kept"].map(|name| document[name].as_u64());
    assert_eq!(numbers, [Some(1), Some(1), Some(0)]);
    assert_eq!(document["path"], "black.bin");
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
    let said = |options: &str| {
        let line =
            format!("repertoire build games.pgn --color white --out r.pgn --force {options}");
        let output = run(dir, &line);
        String::from_utf8([output.stdout, output.stderr].concat()).unwrap()
    };
    let single =
        "4 answers; 1 answer played in a single game (--min-game 2 leaves such answers out)";
    assert!(said("").contains(single), "{}", said(""));
    assert!(!said("--min-game 2").contains("single"));
}

/// The results of kept moves come from the source only, and a reply is as likely as the answer to it.
#[test]
fn comments_of_a_built_repertoire_have_the_results_of_the_source() {
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

/// Several PGN files form one source of games.
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

/// Games of the player with the other color are left out, because their moves are those of the opponents.
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
    assert!(
        error.contains("--player and --black both give the name"),
        "{error}"
    );
    let help = ok(dir, "repertoire build --help");
    assert!(help.contains("the player who has the color of the repertoire"));
}

/// A move with a few won games is not chosen if the position has more than a hundred times as many games. The
/// default minimum number of games grows with the number of games in the source.
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
    // The default minimum is one game for 650 games, and two games for 2,500 games.
    let games = "1. d4 d5 2. c4 1/2-1/2\n\n".repeat(2499) + "1. d4 f5 2. g4 1-0\n\n";
    write(dir, "many.pgn", &games);
    assert!(!first("many.pgn", "--reach 1e9").contains("g4"));
    assert!(first("many.pgn", "--reach 1e9 --min-game 1").contains("g4"));
    let said =
        String::from_utf8(run(dir, "repertoire build many.pgn --color white --out x.pgn").stderr)
            .unwrap();
    assert!(
        said.contains("each played in at least 2 games (--min-game)"),
        "{said}"
    );
}

#[test]
fn a_tree_of_a_repertoire_has_no_results() {
    let dir = temp();
    let dir = dir.path();
    write(dir, "mine.pgn", "1. e4 e5 (1... c5 2. c3) 2. Nf3 *\n\n");
    let text = ok(dir, "tree mine.pgn");
    assert!(
        text.contains("1... c5") && text.contains("2. Nf3") && !text.contains("=1"),
        "{text}"
    );
}

/// A repertoire that begins after 1. e4 does not concern games with 1. d4. Its gaps are searched from its first
/// position.
#[test]
fn a_repertoire_may_begin_after_some_moves() {
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

/// The lines of a repertoire in PGN have no players, and a book of a repertoire has a checksum.
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
        said.contains("no faults") && !said.contains("no checksum"),
        "{said}"
    );
}

#[test]
fn min_game_applies_to_own_moves_only() {
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

/// The comment on a transposition names the line of the file in which the moves continue. Without comments, it is left
/// out.
#[test]
fn a_transposition_names_the_line_that_it_joins() {
    let dir = temp();
    let dir = dir.path();
    write(
        dir,
        "games.pgn",
        "1. d4 Nf6 2. c4 e6 3. Nc3 Bb4 1-0\n\n1. d4 e6 2. c4 Nf6 3. Nc3 d5 1-0\n\n",
    );
    let built = |options: &str| {
        let line = format!("repertoire build games.pgn --color white --out - -q {options}");
        ok(dir, &line).replace('\n', " ")
    };
    let text = built("--comments short");
    assert!(
        text.contains("2... Nf6 {1 in 1.0, transposition to 1. d4 Nf6 2. c4 e6} *"),
        "{text}"
    );
    assert!(
        text.contains("(1... Nf6 {1 in 2.0} 2. c4 {100.0%} 2... e6 {1 in 1.0} 3. Nc3"),
        "{text}"
    );
    assert!(built("--comments none").contains(" 2... Nf6 *"));
    // `--from` takes what other commands take as a position.
    assert_eq!(built("--from startpos"), built(""));
}

/// Each answer counts for the family of the last named position of its line.
#[test]
fn the_covered_openings_are_counted() {
    let dir = temp();
    let dir = dir.path();
    let games = "1. e4 c5 2. Nf3 d6 3. d4 1-0\n\n1. e4 e5 2. Nf3 Nc6 3. Bb5 1-0\n\n";
    write(dir, "games.pgn", games);
    let line = "repertoire build games.pgn --color white --out white.pgn --json";
    let document = ok_json(dir, &line.split(' ').collect::<Vec<_>>());
    assert_eq!(document["answers"], 5);
    let covered = serde_json::json!([
        {"name": "Sicilian Defense", "answers": 2},
        {"name": "King's Knight Opening", "answers": 1},
        {"name": "King's Pawn Game", "answers": 1},
        {"name": "Ruy Lopez", "answers": 1},
    ]);
    assert_eq!(document["openings"], covered);
}
