//! Suites and tables that `polybook convert` makes from books and databases, and suites that `polybook make-book`
//! makes from games.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::Path,
};

use parquet::{file::reader::SerializedFileReader, record::Field};
use polybook::{position::from_text, suite::SuiteFormat};

use crate::common::{fails, ok, ok_json, python, records, refused, run, run_python, sample, temp};

/// Makes a book and a database of the sample games.
fn made() -> tempfile::TempDir {
    let dir = temp();
    let games = ["famous.pgn", "selfplay.pgn"].map(|name| sample(name).display().to_string());
    let line = format!(
        "make-book -q --min-game 1 --loss-factor 1 --max-ply 12 --bin book.bin --obs games.obs.db3 {}",
        games.join(" ")
    );
    ok(dir.path(), &line);
    dir
}

fn lines(dir: &Path, line: &str, out: &str) -> Vec<String> {
    ok(dir, &format!("convert -q --force {line}"));
    let text = fs::read_to_string(dir.join(out)).unwrap();
    text.lines().map(str::to_owned).collect()
}

/// Returns an EPD without its operations.
fn position(epd: &str) -> &str {
    epd.split(" c0").next().unwrap()
}

#[test]
fn limits_and_shuffles() {
    let dir = made();
    let dir = dir.path();
    let suite = |options: &str| {
        lines(
            dir,
            &format!("games.obs.db3 s.epd --plies 4 --min-game 1 {options}"),
            "s.epd",
        )
    };
    let all = suite("");
    assert!(all.len() > 100);
    assert_eq!(suite("--limit 7"), all[..7]);
    let shuffled = suite("--seed 1");
    assert_ne!(shuffled, all);
    assert_eq!(
        shuffled.iter().collect::<BTreeSet<_>>(),
        all.iter().collect()
    );
    assert_eq!(
        suite("--seed 1 --limit 9 --threads 1 --memory 64KiB"),
        shuffled[..9]
    );
    assert_ne!(suite("--seed 2"), shuffled);
    let sample = suite("--seed 1 --limit 9");
    let with_opcodes = suite("--seed 1 --limit 9 --opcodes");
    for (entry, with_opcodes) in sample.iter().zip(&with_opcodes) {
        let fields = |epd: &str| epd.split(' ').take(4).collect::<String>();
        assert_eq!(fields(entry), fields(with_opcodes));
    }
    let pgn = |options: &str| {
        lines(
            dir,
            &format!("games.obs.db3 s.pgn --plies 4 --min-game 1 {options}"),
            "s.pgn",
        )
        .join("\n")
    };
    assert_eq!(pgn("--seed 5 --limit 20").matches("[Event ").count(), 20);
    assert!(pgn("--seed 5").starts_with(pgn("--seed 5 --limit 20").trim_end()));
    let unique = pgn("--unique").matches("[Event ").count();
    assert_eq!(unique, all.len());
    assert!(pgn("").matches("[Event ").count() > unique);
}

/// A suite that is smaller than its limit says which options left out how many entries.
#[test]
fn a_suite_below_its_limit_says_why() {
    let dir = temp();
    let dir = dir.path();
    let games = "1. e4 1-0\n\n".repeat(3) + &"1. d4 1/2-1/2\n\n".repeat(2) + "1. c4 1-0\n";
    fs::write(dir.join("games.pgn"), games).unwrap();
    let line = "make-book games.pgn --plies 1 --min-game 2 --balance 40-60 --force";
    let said = |options: &str| {
        let output = run(dir, &*format!("{line} {options}"));
        String::from_utf8(output.stderr).unwrap()
    };
    let why = "; 1 has fewer games than --min-game; 1 does not meet --balance\n";
    for (name, things) in [("s.epd", "positions after"), ("s.pgn", "lines of")] {
        let report = said(&format!("--suite {name} --limit 5"));
        let expected = format!("{name}: 1 of at most 5 {things} 1 half-move{why}");
        assert!(report.contains(&expected), "{report}");
    }
    assert!(said("--suite s.epd --limit 1").contains("s.epd: 1 position after 1 half-move\n"));
    assert!(said("--suite s.epd").contains("s.epd: 1 position after 1 half-move\n"));
    let report = ok_json(dir, &format!("{line} --suite s.epd --limit 5 --json"));
    assert_eq!(
        report["suite"],
        serde_json::json!({"path": "s.epd", "lines": 1, "limit": 5, "rare": 1, "outside": 1})
    );
}

#[test]
fn lines_left_out_by_unique_are_counted() {
    let dir = temp();
    let dir = dir.path();
    let games = "1. e4 e6 2. d4 1-0\n\n1. d4 e6 2. e4 1-0\n\n1. e4 e5 2. d4 1-0\n\n";
    fs::write(dir.join("games.pgn"), games.repeat(2)).unwrap();
    ok(
        dir,
        "make-book -q games.pgn --min-game 1 --obs games.obs.db3",
    );
    let left_out = "2 lines of 3 half-moves; 1 left out by --unique, because another line leads to the same position\n";
    for (line, document) in [
        (
            "make-book games.pgn --suite s.pgn --plies 3 --min-game 1 --force",
            "suite",
        ),
        (
            "convert games.obs.db3 s.pgn --plies 3 --min-game 1 --force",
            "",
        ),
    ] {
        let said = run(dir, &*format!("{line} --unique")).stderr;
        let said = String::from_utf8(said).unwrap();
        assert!(said.contains(left_out), "{said}");
        let report = ok_json(dir, &format!("{line} --unique --json"));
        let repeated = match document {
            "" => &report["repeated"],
            document => &report[document]["repeated"],
        };
        assert_eq!(*repeated, 1, "{report}");
        let said = String::from_utf8(run(dir, line).stderr).unwrap();
        assert!(said.contains("3 lines of 3 half-moves\n"), "{said}");
    }
}

#[test]
fn balanced_lines_have_scores_in_the_range() {
    let dir = made();
    let dir = dir.path();
    let suite = lines(
        dir,
        "games.obs.db3 s.epd --plies 2 --min-game 1 --balance 40-60",
        "s.epd",
    );
    let all = lines(dir, "games.obs.db3 s.epd --plies 2 --min-game 1", "s.epd");
    let table = lines(dir, "games.obs.db3 t.csv", "t.csv");
    // The score of the games that reach a position, calculated from the rows of the preceding positions.
    let score = |epd: &String| {
        let (mut points, mut games) = (0.0, 0.0);
        for row in &table[1..] {
            let fields: Vec<&str> = row.split(',').collect();
            let pos = polybook::position::Variant::Standard
                .parse_fen(fields[0])
                .unwrap();
            let mv = polybook::obs::legal_move(&pos, fields[1])
                .unwrap()
                .to_move(&pos)
                .unwrap();
            let mut after = pos.clone();
            shakmaty::Position::play_unchecked(&mut after, mv);
            let mut text = Vec::new();
            polybook::position::write_epd(&after, &mut text);
            if text == position(epd).as_bytes() {
                let number = |at: usize| fields[at].parse::<f64>().unwrap();
                let (wins, draws, losses) = (number(2), number(3), number(4));
                games += wins + draws + losses;
                let is_white = shakmaty::Position::turn(&pos).is_white();
                points += draws / 2.0 + if is_white { wins } else { losses };
            }
        }
        points * 100.0 / games
    };
    assert!(!suite.is_empty() && suite.len() < all.len());
    for epd in &all {
        let score = score(epd);
        assert_eq!(
            suite.contains(epd),
            (40.0..=60.0).contains(&score),
            "{epd}: {score}"
        );
    }
    let error = fails(
        dir,
        "convert games.obs.db3 s.epd --plies 2 --min-game 5 --balance 1-2 --force",
        1,
    );
    assert!(error.contains("--balance"), "{error}");
}

#[test]
fn a_book_makes_suites_as_a_database_does() {
    let dir = made();
    let dir = dir.path();
    let of_database = lines(dir, "games.obs.db3 a.epd --plies 3 --min-game 1", "a.epd");
    let of_book = lines(dir, "book.bin b.epd --plies 3", "b.epd");
    assert_eq!(
        of_book.iter().map(String::as_str).collect::<BTreeSet<_>>(),
        of_database.iter().map(|epd| position(epd)).collect()
    );
    let pgn = lines(dir, "book.bin b.pgn --plies 3 --limit 3", "b.pgn").join("\n");
    assert_eq!(pgn.matches("[Event \"Opening suite\"]").count(), 3);
    ok(dir, "make-book -q b.pgn --min-game 1 --bin again.bin");
    assert!(records(&dir.join("again.bin")).len() <= 9);
    let started = {
        fs::write(dir.join("from.epd"), "# two\nrnbqkbnr/pppppppp/8/8/4P3/8/PPPP1PPP/RNBQKBNR b KQkq - hmvc 0; fmvn 1;\n\nrnbqkbnr/pppppppp/8/8/3P4/8/PPP1PPPP/RNBQKBNR b KQkq - 0 1\n").unwrap();
        lines(dir, "book.bin c.epd --plies 2 --from from.epd", "c.epd")
    };
    let after_two = |first: &str| {
        let tree = ok_json(dir, &["show", "book.bin", "--json", "--moves", first]);
        tree["moves"].as_array().unwrap().len()
    };
    assert!(started.len() >= after_two("e4") && started.len() < of_book.len());
    assert!(started.iter().all(|epd| of_book.contains(epd)));
}

/// Returns the movetexts of a suite's games, with comments.
fn movetexts(pgn: &str) -> Vec<String> {
    let games = pgn.split("\n\n").filter(|text| !text.starts_with('['));
    let texts = games.map(|text| text.trim().replace('\n', " "));
    texts.filter(|text| !text.is_empty()).collect()
}

#[test]
fn no_line_goes_in_a_circle() {
    let dir = temp();
    let dir = dir.path();
    // Knights move out and back in two move orders.
    let games =
        "1. Nf3 Nf6 2. Ng1 Ng8 3. e4 e5 *\n\n1. Nc3 Nf6 2. Nb1 Ng8 *\n\n1. Nf3 Nc6 2. Ng1 Nb8 *\n";
    fs::write(dir.join("games.pgn"), games).unwrap();
    ok(
        dir,
        "make-book -q games.pgn --min-game 1 --obs games.obs.db3 --bin book.bin --uniform",
    );
    for source in ["games.obs.db3 --min-game 1", "book.bin"] {
        for format in ["pgn", "epd"] {
            for plies in [4, 30, 400] {
                let line = format!("convert {source} out.{format} --plies {plies} --limit 1");
                let error = fails(dir, &line, 1);
                assert!(error.contains("the longest line has only 3"), "{error}");
                assert!(!dir.join(format!("out.{format}")).exists());
            }
        }
        lines(dir, &format!("{source} three.pgn --plies 3"), "three.pgn");
        let pgn = fs::read_to_string(dir.join("three.pgn")).unwrap();
        let without_comments = movetexts(&pgn).into_iter().map(|text| {
            let moves = text.split(" {").next().unwrap();
            moves.trim_end_matches(" *").to_owned()
        });
        assert_eq!(
            without_comments.collect::<BTreeSet<_>>(),
            [
                "1. Nc3 Nf6 2. Nb1",
                "1. Nf3 Nc6 2. Ng1",
                "1. Nf3 Nf6 2. Ng1"
            ]
            .map(str::to_owned)
            .into(),
        );
        let epd = lines(dir, &format!("{source} three.epd --plies 3"), "three.epd");
        assert_eq!(epd.len(), 2, "{epd:?}");
    }
}

/// A position may be reached by one line without repetition, even if another line to it repeats a position.
#[test]
fn a_position_that_one_way_repeats_is_reached_by_another() {
    let dir = temp();
    let dir = dir.path();
    // After 1. Nf3 Nf6 2. Ng1, the line with Nf3 must not repeat the position, but the line with Nh3 may.
    let games = "1. Nf3 Nf6 2. Ng1 *\n\n1. Nh3 Nf6 2. Ng1 *\n\n[FEN \"rnbqkb1r/pppppppp/5n2/8/8/8/PPPPPPPP/RNBQKBNR b KQkq - 3 2\"]\n\n\
        2... Ng8 3. Nc3 *\n\n[FEN \"rnbqkb1r/pppppppp/5n2/8/8/8/PPPPPPPP/RNBQKBNR b KQkq - 3 2\"]\n\n2... Nd5 3. Nf3 Nf6 *\n";
    fs::write(dir.join("games.pgn"), games).unwrap();
    ok(
        dir,
        "make-book -q games.pgn --min-game 1 --obs games.obs.db3",
    );
    let epd = |plies: usize| {
        let line = format!("games.obs.db3 out.epd --plies {plies} --min-game 1");
        let found = lines(dir, &line, "out.epd");
        let positions = found.iter().map(|epd| position(epd).to_owned());
        positions.collect::<Vec<_>>()
    };
    assert_eq!(
        epd(6),
        ["rnbqkb1r/pppppppp/5n2/8/8/5N2/PPPPPPPP/RNBQKB1R w KQkq -"]
    );
    let pgn = lines(
        dir,
        "games.obs.db3 out.pgn --plies 6 --min-game 1",
        "out.pgn",
    );
    let pgn = movetexts(&pgn.join("\n"));
    assert_eq!(pgn.len(), 1, "{pgn:?}");
    assert!(
        pgn[0].starts_with("1. Nh3 Nf6 2. Ng1 Nd5 3. Nf3 Nf6 {"),
        "{pgn:?}"
    );
}

#[test]
fn the_most_played_lines_are_the_first_of_all() {
    if !crate::common::runs_slow_tests() {
        return;
    }
    let dir = made();
    let dir = dir.path();
    for options in ["", "--unique", "--balance 40-60"] {
        let pgn = |more: &str| {
            let line = format!("games.obs.db3 s.pgn --plies 6 --min-game 1 {options} {more}");
            movetexts(&lines(dir, &line, "s.pgn").join("\n"))
        };
        let all = pgn("");
        assert!(all.len() > 300, "{}", all.len());
        for limit in [1, 2, 5, 40, 200] {
            assert_eq!(pgn(&format!("--limit {limit}")), all[..limit], "{options}");
        }
    }
}

/// Makes a suite of the games with these options, and returns its lines.
fn games_suite(dir: &Path, options: &str, out: &str) -> Vec<String> {
    ok(
        dir,
        &format!("make-book -q {options} --force --suite {out}"),
    );
    let text = fs::read_to_string(dir.join(out)).unwrap();
    text.lines().map(str::to_owned).collect()
}

#[test]
fn suites_of_games_have_the_lines_that_were_played() {
    let dir = temp();
    let dir = dir.path();
    let games = "[Result \"1-0\"]\n\n1. d4 d5 2. c4 e6 3. Nc3 1-0\n\n[Result \"1/2-1/2\"]\n\n1. d4 d5 2. c4 e6 1/2-1/2\n\n\
        1. c4 d5 2. d4 e6 0-1\n\n1. d4 d5 2. c4 *\n\n1. c4 e6 2. d4 d5 (2... f5) 1-0\n\n\
        [FEN \"rnbqkbnr/ppp1pppp/8/3p4/3P4/8/PPP1PPPP/RNBQKBNR w KQkq - 0 2\"]\n\n2. c4 e6 3. Nc3 Nf6 1-0\n";
    fs::write(dir.join("games.pgn"), games).unwrap();
    let pgn = games_suite(dir, "games.pgn --plies 4 --min-game 1", "s.pgn");
    assert_eq!(
        movetexts(&pgn.join("\n")),
        [
            "1. d4 d5 2. c4 e6 {2 games, White scored 75.0%; by any move order 4 games, White scored 62.5%} *",
            "1. c4 d5 2. d4 e6 {1 game, White scored 0.0%; by any move order 4 games, White scored 62.5%} *",
            "1. c4 e6 2. d4 d5 {1 game, White scored 100.0%; by any move order 4 games, White scored 62.5%} *",
        ]
    );
    assert!(!dir.join("book.bin").exists());
    let epd = games_suite(dir, "games.pgn --plies 4 --min-game 4", "s.epd");
    let end = "rnbqkbnr/ppp2ppp/4p3/3p4/2PP4/8/PP2PPPP/RNBQKBNR w KQkq -";
    assert_eq!(epd, [format!("{end} c0 \"4 games, White scored 62.5%\";")]);
    // The counters of a position are the smallest among all paths to it.
    let epd = games_suite(
        dir,
        "games.pgn --plies 4 --min-game 2 --opcodes --balance 60-65",
        "s.epd",
    );
    assert_eq!(
        epd,
        [format!(
            "{end} hmvc 0; fmvn 3; c0 \"4 games, White scored 62.5%\";"
        )]
    );
    // One position that games reach, and one in which a game starts.
    fs::write(
        dir.join("from.epd"),
        "rnbqkbnr/ppp1pppp/8/3p4/3P4/8/PPP1PPPP/RNBQKBNR w KQkq - 0 2\n",
    )
    .unwrap();
    let pgn = games_suite(
        dir,
        "games.pgn --plies 2 --min-game 3 --from from.epd",
        "s.pgn",
    );
    let text = pgn.join("\n");
    assert_eq!(
        movetexts(&text),
        ["2. c4 e6 {3 games, White scored 83.3%} *"],
        "{text}"
    );
    assert!(text.contains(
        "[SetUp \"1\"]\n[FEN \"rnbqkbnr/ppp1pppp/8/3p4/3P4/8/PPP1PPPP/RNBQKBNR w KQkq - 0 "
    ));
    // The run has other outputs, and the report describes it.
    let report = ok_json(
        dir,
        "make-book games.pgn --plies 2 --min-game 1 --suite s.epd --bin b.bin --json --force",
    );
    assert_eq!(
        report["suite"],
        serde_json::json!({"path": "s.epd", "lines": 3, "rare": 0, "outside": 0})
    );
    assert!(report["book"]["entries"].as_u64() > Some(0));
    let named = "[White \"A\"]\n[Black \"B\"]\n[Result \"1-0\"]\n\n1. d4 d5 2. c4 1-0\n";
    fs::write(dir.join("named.pgn"), named).unwrap();
    let games = "named.pgn named.pgn --drop-duplicates --plies 2 --min-game 1";
    assert_eq!(
        games_suite(dir, games, "s.pgn"),
        games_suite(dir, "named.pgn --plies 2 --min-game 1", "t.pgn")
    );
}

#[test]
fn suites_of_games_depend_on_the_games_alone() {
    if !crate::common::runs_slow_tests() {
        return;
    }
    let dir = temp();
    let dir = dir.path();
    let games = ["famous.pgn", "selfplay.pgn"].map(|name| sample(name).display().to_string());
    let games = games.join(" ");
    for name in ["s.pgn", "s.epd"] {
        let suite = |options: &str| {
            let line = format!("{games} --min-game 1 --plies 10 {options}");
            games_suite(dir, &line, name)
        };
        let all = suite("");
        assert!(all.len() > 100);
        assert_eq!(suite("--threads 1 --memory 64KiB"), all);
        assert_eq!(suite("--threads 3 --memory 64KiB --bin b.bin"), all);
        assert!(!suite("--drop-duplicates --threads 2 --memory 64KiB").is_empty());
        let shuffled = suite("--seed 7 --limit 9 --unique");
        assert_eq!(
            suite("--seed 7 --limit 9 --unique --threads 1 --memory 64KiB"),
            shuffled
        );
        assert_ne!(shuffled, suite("--seed 8 --limit 9 --unique"));
    }
}

#[test]
fn suites_of_games_of_variants() {
    let dir = temp();
    let dir = dir.path();
    let fen = "bqnb1rkr/pppppppp/8/8/8/8/PPPPPPPP/BQNB1RKR w HFhf - 0 1";
    let games = format!(
        "[Variant \"Chess960\"]\n[FEN \"{fen}\"]\n\n1. f4 d5 1-0\n\n[Variant \"Atomic\"]\n\n1. Nf3 f6 1-0\n\n1. e4 e5 0-1\n"
    );
    fs::write(dir.join("games.pgn"), games).unwrap();
    let of = |options: &str, out: &str| {
        games_suite(
            dir,
            &format!("games.pgn --plies 2 --min-game 1 {options}"),
            out,
        )
    };
    let chess960 = of("--variant fischerandom", "s.pgn").join("\n");
    assert!(chess960.contains("[Variant \"Chess960\"]"), "{chess960}");
    assert!(
        chess960.contains("[FEN \"bqnb1rkr/pppppppp/8/8/8/8/PPPPPPPP/BQNB1RKR w KQkq - 0 1\"]")
    );
    assert_eq!(
        movetexts(&chess960),
        ["1. f4 d5 {1 game, White scored 100.0%} *"]
    );
    let atomic = of("--variant atomic", "s.epd");
    assert_eq!(
        atomic,
        [
            "rnbqkbnr/ppppp1pp/5p2/8/8/5N2/PPPPPPPP/RNBQKB1R w KQkq - c0 \"1 game, White scored 100.0%\";"
        ]
    );
    let all = of("--variant auto", "s.pgn").join("\n");
    assert_eq!(movetexts(&all).len(), 3, "{all}");
    assert!(all.contains("[Variant \"Atomic\"]") && all.contains("[Variant \"Chess960\"]"));
    let error = fails(
        dir,
        "make-book games.pgn --variant auto --plies 2 --min-game 1 --suite t.epd",
        1,
    );
    assert!(error.contains("games of only one variant"), "{error}");
    assert!(!dir.join("t.epd").exists());
}

#[test]
fn opcodes_count_moves() {
    let dir = made();
    let dir = dir.path();
    let suite = lines(dir, "book.bin s.epd --plies 3 --opcodes", "s.epd");
    assert!(
        suite.iter().all(|epd| epd.ends_with(" fmvn 2;")),
        "{suite:?}"
    );
    let knights = "rnbqkb1r/pppppppp/5n2/8/8/5N2/PPPPPPPP/RNBQKB1R w KQkq - hmvc 2; fmvn 2;";
    let two = lines(dir, "book.bin two.epd --plies 2 --opcodes", "two.epd");
    assert!(two.iter().any(|epd| epd == knights), "{two:?}");
    ok(dir, "convert -q book.bin t.epd --plies 1 --from two.epd");
}

#[test]
fn tables_of_a_book_have_every_record() {
    if !crate::common::runs_slow_tests() {
        return;
    }
    let dir = made();
    let dir = dir.path();
    // Add a record for a position that no line reaches.
    let mut few = fs::read(dir.join("book.bin")).unwrap();
    few.extend_from_slice(b"\xff\xff\xff\xff\xff\xff\xff\xff\x03\x1c\0\x01\0\0\0\0");
    fs::write(dir.join("more.bin"), few).unwrap();
    ok(dir, "verify -q more.bin --fix few.bin");
    let count = records(&dir.join("few.bin")).len();
    let csv = lines(dir, "few.bin t.csv", "t.csv");
    assert_eq!(csv[0], "Key,FEN,SAN,UCI,Weight,Learn");
    assert_eq!(csv.len(), count + 1);
    let jsonl = lines(dir, "few.bin t.jsonl", "t.jsonl");
    assert_eq!(jsonl.len(), count);
    let (mut known, mut unknown) = (0, 0);
    for line in &jsonl {
        let line: serde_json::Value = serde_json::from_str(line).unwrap();
        if line["fen"].is_null() {
            assert!(line["san"].is_null());
            unknown += 1;
        } else {
            assert!(line["san"].is_string());
            known += 1;
        }
    }
    assert_eq!((known, unknown), (count - 1, 1));
    let first: serde_json::Value = serde_json::from_str(&jsonl[0]).unwrap();
    let shown = &ok_json(dir, "show few.bin --json");
    assert_eq!(first["key"], shown["key"]);
    assert_eq!(
        (&first["san"], &first["uci"]),
        (&shown["moves"][0]["san"], &shown["moves"][0]["uci"])
    );
    let rows = lines(dir, "games.obs.db3 t.jsonl", "t.jsonl");
    let row: serde_json::Value = serde_json::from_str(&rows[0]).unwrap();
    assert!(
        row["fen"].is_string() && row["san"].is_string() && row["wins"].is_u64(),
        "{row}"
    );
    assert_eq!(
        rows.len() + 1,
        lines(dir, "games.obs.db3 all.csv", "all.csv").len()
    );
}

/// Tables in Parquet have the columns of tables in JSON, with keys as numbers.
#[test]
fn tables_in_parquet_equal_tables_in_json() {
    if !crate::common::runs_slow_tests() {
        return;
    }
    let dir = made();
    let dir = dir.path();
    let unknown = b"\xff\xff\xff\xff\xff\xff\xff\xff\x03\x1c\0\x01\0\0\0\0";
    let more = [&fs::read(dir.join("book.bin")).unwrap()[..], unknown].concat();
    fs::write(dir.join("more.bin"), more).unwrap();
    ok(dir, "verify -q more.bin --fix few.bin");
    let value = |field: &Field| match field {
        Field::Long(number) => serde_json::json!(number),
        Field::Int(number) => serde_json::json!(number),
        Field::Str(text) => serde_json::json!(text),
        Field::Null => serde_json::Value::Null,
        other => panic!("{other}"),
    };
    let mut castling = 0;
    for source in ["few.bin", "games.obs.db3"] {
        let jsonl = lines(dir, &format!("{source} t.jsonl"), "t.jsonl");
        ok(dir, &format!("convert -q {source} t.parquet --force"));
        let file = fs::File::open(dir.join("t.parquet")).unwrap();
        let rows = SerializedFileReader::new(file).unwrap();
        let rows: Vec<_> = rows.into_iter().map(|row| row.unwrap()).collect();
        assert_eq!(rows.len(), jsonl.len());
        for (row, line) in rows.iter().zip(&jsonl) {
            let line: serde_json::Value = serde_json::from_str(line).unwrap();
            let row: BTreeMap<&str, serde_json::Value> = row
                .get_column_iter()
                .map(|(name, field)| (name.as_str(), value(field)))
                .collect();
            let key = row["key"].as_i64().unwrap().cast_unsigned();
            match line.get("key") {
                Some(known) => assert_eq!(known, &format!("{key:016x}")),
                None => {
                    let fen = line["fen"].as_str().unwrap();
                    let pos = from_text(Some(fen), None).unwrap();
                    assert_eq!(polybook::position::key(&pos), key);
                }
            }
            // Castling is written as in counts: the king captures its rook.
            let number = u16::try_from(row["move"].as_i64().unwrap()).unwrap();
            let mv = polybook::position::BookMove(number);
            match line["fen"].as_str() {
                Some(fen) => {
                    let pos = from_text(Some(fen), None).unwrap();
                    assert_eq!(mv.san(&pos).as_deref(), line["san"].as_str(), "{line}");
                    let is_castling = line["san"].as_str().is_some_and(|san| san.starts_with('O'));
                    assert_eq!(is_castling, mv.to_string() != line["uci"], "{line}");
                    castling += u32::from(is_castling);
                }
                None => assert_eq!(line["uci"], mv.to_string()),
            }
            for (name, value) in line.as_object().unwrap() {
                if name != "key" {
                    assert_eq!(&row[&**name], value, "{name}");
                }
            }
        }
    }
    assert!(castling > 0);
    // A file that polybook cannot tell from others is not replaced.
    let error = fails(dir, "convert -q few.bin t.parquet", 1);
    assert!(error.contains("--force"), "{error}");
}

#[test]
fn a_suite_alone_takes_no_options_of_books() {
    let dir = temp();
    let dir = dir.path();
    fs::write(dir.join("games.pgn"), "1. e4 e5 2. Nf3 *\n").unwrap();
    for option in [
        "--min-score 5",
        "--only-white",
        "--only-black",
        "--uniform",
        "--win-factor 3",
        "--draw-factor 3",
        "--loss-factor 3",
        "--scale position",
        "--no-header",
        "--comment x",
    ] {
        let name = option.split(' ').next().unwrap();
        let line = format!("make-book -q games.pgn --suite s.pgn --plies 2 --min-game 1 {option}");
        let error = fails(dir, &line, 2);
        let expected = format!("{name} applies only to books, not to suites");
        assert!(error.contains(&expected), "{error}");
        assert!(!dir.join("s.pgn").exists());
    }
    ok(
        dir,
        "make-book -q games.pgn --suite s.pgn --plies 2 --min-game 1 --bin a.bin --only-white --uniform",
    );
}

#[test]
fn suites_replace_only_suites() {
    let dir = made();
    let dir = dir.path();
    let foreign = "rnbqkbnr/pppppppp/8/8/4P3/8/PPPP1PPP/RNBQKBNR b KQkq - hmvc 0; fmvn 1;\n";
    fs::write(dir.join("theirs.epd"), foreign).unwrap();
    fs::write(dir.join("games.pgn"), "1. e4 e5 2. Nf3 *\n").unwrap();
    let of_games = "make-book -q games.pgn --plies 2 --min-game 1";
    for line in [
        "convert -q games.obs.db3 theirs.epd --plies 2",
        "convert -q book.bin theirs.epd --plies 2",
        &format!("{of_games} --suite theirs.epd"),
    ] {
        let error = fails(dir, line, 1);
        let said = "theirs.epd exists: remove it, or replace it with --force";
        assert!(error.contains(said), "{error}");
        assert_eq!(fs::read_to_string(dir.join("theirs.epd")).unwrap(), foreign);
    }
    for line in [
        "convert -q games.obs.db3 ours.epd --plies 2 --opcodes",
        "convert -q games.obs.db3 ours.epd --plies 2",
        &format!("{of_games} --suite ours.epd"),
        &format!("{of_games} --suite ours.epd --opcodes"),
    ] {
        ok(dir, &format!("{line} --force"));
    }
    // The file with the positions where lines start is an input, even if it is a suite.
    let start = "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - c0 \"3 games, White scored 50.0%\";\n";
    fs::write(dir.join("from.epd"), start).unwrap();
    for line in [
        "convert -q games.obs.db3 from.epd --from from.epd --plies 2",
        "convert -q book.bin from.epd --from from.epd --plies 2",
        &format!("{of_games} --suite from.epd --from from.epd"),
    ] {
        let error = fails(dir, line, 1);
        assert!(error.contains("both an input and an output"), "{error}");
        assert_eq!(fs::read_to_string(dir.join("from.epd")).unwrap(), start);
    }
}

#[test]
fn python_chess_counts_the_same_suites() {
    let Some(python) = python(&["chess"]) else {
        return;
    };
    let dir = temp();
    let dir = dir.path();
    let samples = ["famous.pgn", "selfplay.pgn"].map(sample);
    let games = samples.each_ref().map(|path| path.display().to_string());
    let games = games.join(" ");
    ok(
        dir,
        &format!("make-book -q {games} --min-game 1 --obs games.obs.db3"),
    );
    for (plies, min_game) in [(2, 3), (7, 2), (12, 1)] {
        let options = format!("--plies {plies} --min-game {min_game} --force");
        for format in ["pgn", "epd"] {
            let name = format!("{plies}-{min_game}.{format}");
            ok(
                dir,
                &format!("make-book -q {games} {options} --suite games-{name}"),
            );
            ok(
                dir,
                &format!("convert -q games.obs.db3 database-{name} {options}"),
            );
        }
    }
    let mut arguments = vec![dir];
    arguments.extend(samples.iter().map(|path| path.as_path()));
    run_python(&python, "suites.py", &arguments);
}

#[test]
fn python_chess_finds_the_same_quiet_positions() {
    let Some(python) = python(&["chess"]) else {
        return;
    };
    let dir = temp();
    let dir = dir.path();
    let samples = ["famous.pgn", "selfplay.pgn"].map(sample);
    let games = samples.each_ref().map(|path| path.display().to_string());
    let games = games.join(" ");
    ok(
        dir,
        &format!("make-book -q {games} --min-game 1 --max-ply 12 --obs games.obs.db3"),
    );
    let options = "--plies 5..12 --min-game 1 --quiet-positions";
    for name in ["quiet.pgn", "quiet.epd"] {
        ok(
            dir,
            &format!("make-book -q {games} {options} --suite {name}"),
        );
    }
    let query = ["--position", "turn = white"];
    let line = format!("make-book -q {games} {options} --suite white.epd");
    ok(
        dir,
        &[&Vec::from_iter(line.split(' '))[..], &query].concat(),
    );
    ok(
        dir,
        &format!("convert -q games.obs.db3 database.epd {options}"),
    );
    let mut arguments = vec![dir, Path::new("5"), Path::new("12")];
    arguments.extend(samples.iter().map(|path| path.as_path()));
    run_python(&python, "quiet_suites.py", &arguments);
    // A query selects the same positions of a database.
    let line = format!("convert -q games.obs.db3 white-database.epd {options}");
    ok(
        dir,
        &[&Vec::from_iter(line.split(' '))[..], &query].concat(),
    );
    let all = fs::read_to_string(dir.join("database.epd")).unwrap();
    let expected: Vec<&str> = all.lines().filter(|line| line.contains(" w ")).collect();
    let white = fs::read_to_string(dir.join("white-database.epd")).unwrap();
    assert_eq!(Vec::from_iter(white.lines()), expected);
}

/// A range of lengths gives the entries of all lengths in it.
#[test]
fn suites_have_openings_of_several_lengths() {
    let dir = made();
    let dir = dir.path();
    let samples = ["famous.pgn", "selfplay.pgn"].map(|name| sample(name).display().to_string());
    let samples = samples.join(" ");
    for options in ["", "--seed 3", "--quiet-positions --tags"] {
        let database = |plies: &str, out: &str| {
            lines(
                dir,
                &format!("games.obs.db3 {out} --plies {plies} --min-game 2 {options}"),
                out,
            )
        };
        let games = |plies: &str, out: &str| {
            games_suite(
                dir,
                &format!("{samples} --plies {plies} --min-game 2 {options}"),
                out,
            )
        };
        let book = |plies: &str, out: &str| {
            lines(
                dir,
                &format!("book.bin {out} --plies {plies} {options}"),
                out,
            )
        };
        let of = |suite: &dyn Fn(&str, &str) -> Vec<String>, plies: &str| {
            let text = suite(plies, "s.pgn").join("\n");
            let found = movetexts(&text);
            let set = BTreeSet::from_iter(found.iter().cloned());
            assert_eq!(set.len(), found.len());
            set
        };
        for suite in [
            &database as &dyn Fn(&str, &str) -> Vec<String>,
            &games,
            &book,
        ] {
            let mut expected = BTreeSet::new();
            let mut positions = BTreeSet::new();
            for plies in ["2", "3", "4"] {
                expected.extend(of(suite, plies));
                let found = suite(plies, "s.epd");
                positions.extend(found.iter().map(|epd| position(epd).to_owned()));
            }
            assert_eq!(of(suite, "2..4"), expected, "{options}");
            let found = suite("2..4", "s.epd");
            assert_eq!(found.len(), positions.len(), "{options}");
            let found = found.iter().map(|epd| position(epd).to_owned());
            assert_eq!(BTreeSet::from_iter(found), positions, "{options}");
            assert_eq!(suite("3..3", "s.epd"), suite("3", "s.epd"));
            // The most played lines are the first of all.
            if options.is_empty() {
                let all = suite("2..4", "s.pgn").join("\n");
                let all = movetexts(&all);
                let limited = |plies: &str, out: &str| suite(&format!("{plies} --limit 9"), out);
                let some = limited("2..4", "s.pgn").join("\n");
                assert_eq!(movetexts(&some), all[..9]);
            }
        }
    }
}

#[test]
fn a_game_counts_once_for_a_position_that_it_reaches_after_several_lengths() {
    let dir = temp();
    let dir = dir.path();
    fs::write(
        dir.join("games.pgn"),
        "1. Nf3 Nf6 2. Ng1 Ng8 3. Nf3 1-0\n\n1. Nf3 d5 0-1\n\n1. e4 e5 2. Nf3 1-0\n",
    )
    .unwrap();
    let epds = games_suite(dir, "games.pgn --plies 1..5 --min-game 1", "s.epd");
    let of = |board: &str| {
        let found = epds.iter().filter(|epd| epd.starts_with(board));
        Vec::from_iter(found.map(|epd| epd.split('"').nth(1).unwrap().to_owned()))
    };
    let nf3 = "rnbqkbnr/pppppppp/8/8/8/5N2/PPPPPPPP/RNBQKB1R b";
    assert_eq!(of(nf3), ["2 games, White scored 50.0%"]);
    let longest = "rnbqkbnr/pppp1ppp/8/4p3/4P3/5N2/PPPP1PPP/RNBQKB1R b";
    assert_eq!(of(longest), ["1 game, White scored 100.0%"]);
}

/// A position that one line reaches by a capture and another by a quiet move is kept, but not the first line.
#[test]
fn a_quiet_position_needs_one_line_with_a_quiet_last_move() {
    let dir = temp();
    let dir = dir.path();
    let by_capture = "1. e4 d5 2. exd5 Nf6 3. Nf3 g6 4. d4 Nxd5";
    let by_pawn = "1. e4 d5 2. exd5 Nf6 3. Nf3 Nxd5 4. d4 g6";
    let line = |out: &str, plies: usize| {
        format!(
            "make-book -q games.pgn --suite {out} --plies {plies} --min-game 1 --quiet-positions --force"
        )
    };
    fs::write(
        dir.join("games.pgn"),
        games_of(&[(by_capture, &["1-0"]), (by_pawn, &["0-1"])]),
    )
    .unwrap();
    ok(dir, &*line("s.epd", 8));
    let text = fs::read_to_string(dir.join("s.epd")).unwrap();
    let end = "rnbqkb1r/ppp1pp1p/6p1/3n4/3P4/5N2/PPP2PPP/RNBQKB1R w KQkq - c0 \"2 games, White scored 50.0%\";\n";
    assert_eq!(text, end);
    ok(dir, &*line("s.pgn", 8));
    let text = fs::read_to_string(dir.join("s.pgn")).unwrap();
    assert_eq!(movetexts(&text).len(), 1, "{text}");
    assert!(text.contains("Nxd5 4. d4 g6"), "{text}");
    // The last moves are a capture, a check, and a move that leaves a pawn unprotected.
    for (moves, plies) in [
        (by_capture, 8),
        ("1. e4 d5 2. Bb5+", 3),
        ("1. e4 d5 2. Nf3", 3),
    ] {
        fs::write(dir.join("games.pgn"), games_of(&[(moves, &["1-0"])])).unwrap();
        for out in ["s.epd", "s.pgn"] {
            let error = fails(dir, &*line(out, plies), 1);
            let advice = format!(
                "no line of {plies} half-moves meets the conditions: leave --quiet-positions out"
            );
            assert!(error.contains(&advice), "{error}");
        }
    }
}

#[test]
fn python_chess_reads_suites() {
    let Some(python) = python(&["chess"]) else {
        return;
    };
    let dir = made();
    let dir = dir.path();
    ok(
        dir,
        "convert -q games.obs.db3 s.pgn --plies 6 --min-game 1 --seed 1",
    );
    ok(
        dir,
        "convert -q games.obs.db3 s.epd --plies 6 --min-game 1 --opcodes",
    );
    run_python(
        &python,
        "read_suite.py",
        &[&dir.join("s.pgn"), &dir.join("s.epd")],
    );
}

/// Returns games of one line each, with their moves and results.
fn games_of(lines: &[(&str, &[&str])]) -> String {
    let games = lines.iter().flat_map(|(moves, results)| {
        let game = move |result| format!("[Result \"{result}\"]\n\n{moves} {result}\n\n");
        results.iter().map(game)
    });
    games.collect()
}

/// Checks that suites of games and of a database contain the positions with the requested rate of draws, at most
/// N for each ECO code, with the names of their openings.
#[test]
fn draw_rates_and_openings() {
    let dir = temp();
    let dir = dir.path();
    let (win, draw, loss) = ("1-0", "1/2-1/2", "0-1");
    let games = games_of(&[
        ("1. e4 c5 2. Nf3 d6", &[draw, draw, win, loss, win]),
        ("1. Nf3 c5 2. e4 d6", &[draw]),
        ("1. e4 c5 2. Nc3 Nc6", &[draw, win, win, loss]),
        ("1. e4 c5 2. Nc3 a6", &[draw, draw, draw]),
        ("1. d4 d5 2. c4 e6", &[win, loss]),
    ]);
    fs::write(dir.join("games.pgn"), games).unwrap();
    ok(
        dir,
        "make-book -q games.pgn --min-game 1 --obs games.obs.db3",
    );
    let entries = |line: &str| -> Vec<String> {
        ok(dir, &format!("{line} --force"));
        let text = fs::read_to_string(dir.join("s.epd")).unwrap();
        text.lines()
            .map(|epd| epd.split_once(" c0 \"").unwrap())
            .map(|(epd, note)| {
                let id = epd.split_once("id ").map_or("", |(_, id)| id);
                let count = note.split(' ').next().unwrap();
                format!("{count} {id}").trim().to_owned()
            })
            .collect()
    };
    let of_games = "make-book -q games.pgn --suite s.epd --plies 4 --min-game 1";
    let of_database = "convert -q games.obs.db3 s.epd --plies 4 --min-game 1";
    for command in [of_games, of_database] {
        let entries = |options: &str| entries(&format!("{command} {options}"));
        assert_eq!(entries(""), ["6", "4", "3", "2"]);
        assert_eq!(entries("--draw-rate 50-99"), ["6"]);
        assert_eq!(entries("--draw-rate 25-50"), ["6", "4"]);
        assert_eq!(entries("--draw-rate 25-50 --balance 0-60"), ["6"]);
        let named = [
            "6 \"B50 Sicilian Defense: Modern Variations\";",
            "4 \"B23 Sicilian Defense: Closed, Traditional\";",
            "3 \"B23 Sicilian Defense: Closed\";",
            "2 \"D30 Queen's Gambit Declined\";",
        ];
        assert_eq!(entries("--tags"), named);
        assert_eq!(entries("--per-eco 1"), ["6", "4", "2"]);
        assert_eq!(entries("--per-eco 1 --limit 2"), ["6", "4"]);
        assert_eq!(entries("--per-eco 2"), ["6", "4", "3", "2"]);
        let error = fails(dir, &format!("{command} --force --draw-rate 1-2"), 1);
        assert!(error.contains("widen the range of --draw-rate"), "{error}");
        let shuffled = entries("--per-eco 1 --seed 3");
        assert_eq!(shuffled.len(), 3);
        assert_eq!(entries("--per-eco 1 --seed 3 --memory 64KiB"), shuffled);
    }
    for command in [
        "make-book -q games.pgn --suite s.pgn --plies 4 --min-game 1",
        "convert -q games.obs.db3 s.pgn --plies 4 --min-game 1",
    ] {
        ok(dir, &format!("{command} --tags --limit 1 --force"));
        let text = fs::read_to_string(dir.join("s.pgn")).unwrap();
        let tags = "[ECO \"B50\"]\n[Opening \"Sicilian Defense: Modern Variations\"]\n\n";
        assert!(text.contains(tags), "{text}");
    }
    ok(dir, "make-book -q games.pgn --min-game 1 --bin book.bin");
    let error = fails(
        dir,
        "convert book.bin s.epd --plies 4 --draw-rate 40-60 --force",
        1,
    );
    assert!(error.contains("--draw-rate"), "{error}");
}

/// Checks that games without a result are not draws.
#[test]
fn games_without_result() {
    let dir = temp();
    let dir = dir.path();
    let (win, open) = ("1-0", "*");
    let games = games_of(&[
        ("1. e4 e5", &[open, open, open, win]),
        ("1. d4 d5", &[win, "1/2-1/2"]),
        ("1. c4 c5", &[open, open, open]),
    ]);
    fs::write(dir.join("games.pgn"), games).unwrap();
    let suite = |options: &str, out: &str| {
        games_suite(
            dir,
            &format!("games.pgn --plies 2 --min-game 1 {options}"),
            out,
        )
    };
    let notes = |epds: Vec<String>| -> Vec<String> {
        let notes = epds.iter().map(|epd| epd.split('"').nth(1).unwrap());
        notes.map(str::to_owned).collect()
    };
    let drawn = "2 games, White scored 75.0%";
    let all = [
        "4 games, 3 without result, White scored 100.0%",
        "3 games, 3 without result",
        drawn,
    ];
    assert_eq!(notes(suite("", "s.epd")), all);
    assert_eq!(notes(suite("--draw-rate 40-80", "s.epd")), [drawn]);
    assert_eq!(notes(suite("--balance 45-80", "s.epd")), [drawn]);
    let pgn = suite("--draw-rate 0-10", "s.pgn").join("\n");
    assert_eq!(
        movetexts(&pgn),
        ["1. e4 e5 {4 games, 3 without result, White scored 100.0%} *"]
    );
}

/// Tests suites of positions selected by their evaluations, from games, a database and a book.
#[test]
fn evaluations() {
    let dir = temp();
    let dir = dir.path();
    let evaluated = "1. e4 {[%eval 0.9,20]} *\n\n[A \"\"]\n\n1. d4 {[%eval -1.2]} *\n\n[A \"\"]\n\n1. c4 {[%eval 0.79]} *\n\n\
        [A \"\"]\n\n1. f3 {[%eval #-5]} *\n";
    fs::write(dir.join("evals.pgn"), evaluated).unwrap();
    ok(dir, "evals -q evals.pgn --out e.evals");
    let firsts = ["e4", "d4", "c4", "f3", "a3"];
    let games: String = firsts.map(|mv| format!("1. {mv} e5 1-0\n\n")).concat();
    fs::write(dir.join("games.pgn"), games).unwrap();
    ok(
        dir,
        "make-book -q games.pgn --min-game 1 --obs games.obs.db3 --bin book.bin",
    );
    for command in [
        "make-book -q games.pgn --min-game 1 --suite {}",
        "convert -q games.obs.db3 {} --min-game 1",
        "convert -q book.bin {}",
    ] {
        for (range, moves) in [
            ("--eval 80..120", &["e4"][..]),
            ("--eval 90..90", &["e4"]),
            ("--eval -120..79", &["c4", "d4"]),
            ("--eval -32000..32000", &["c4", "d4", "e4"]),
            ("--eval-abs 80..120", &["d4", "e4"]),
        ] {
            let line = format!("{command} --plies 1 --evals e.evals --force {range}");
            ok(dir, &line.replace("{}", "s.pgn"));
            let text = fs::read_to_string(dir.join("s.pgn")).unwrap();
            let lines = text.lines().filter_map(|line| line.strip_prefix("1. "));
            let mut found: Vec<&str> = lines.map(|line| &line[..2]).collect();
            found.sort_unstable();
            assert_eq!(found, moves, "{line}");
            ok(dir, &line.replace("{}", "s.epd"));
            let text = fs::read_to_string(dir.join("s.epd")).unwrap();
            fs::remove_file(dir.join("s.epd")).unwrap();
            assert_eq!(text.lines().count(), moves.len(), "{line}");
            // Black is to move.
            let has_e4 = text.contains("/4P3/8/PPPP1PPP/RNBQKBNR b KQkq - acd 20; ce -90;");
            assert_eq!(has_e4, moves.contains(&"e4"), "{text}");
        }
        // The position after 1. a3 has no evaluation.
        let line = format!("{command} --force --plies 1 --evals e.evals --eval 80..120")
            .replace("-q ", "");
        for out in ["s.pgn", "s.epd"] {
            let line = line.replace("{}", out);
            let report = ok_json(dir, &*format!("{line} --json"));
            let made = report.get("suite").unwrap_or(&report);
            assert_eq!(made["unevaluated"], 1, "{report}");
            fs::remove_file(dir.join(out)).unwrap();
            let output = crate::common::run(dir, &*line);
            let said = String::from_utf8(output.stderr).unwrap();
            assert!(
                said.contains("; 1 left out, because no evaluation is known"),
                "{said}"
            );
            fs::remove_file(dir.join(out)).unwrap();
        }
        let line = format!("{command} --plies 1 --evals e.evals --eval 300..400");
        let error = fails(dir, &line.replace("{}", "s.pgn"), 1);
        assert!(error.contains("widen the range of --eval"), "{error}");
        assert!(
            error
                .contains(" (1 without an evaluation, which polybook evals adds): widen the range"),
            "{error}"
        );
    }
    let suite = "make-book games.pgn --suite s.pgn --plies 1";
    refused(
        dir,
        &[
            (&format!("{suite} --eval 100..200"), 2, "--evals"),
            (&format!("{suite} --evals e.evals"), 2, "--max-loss"),
            (
                &format!("{suite} --evals e.evals --eval 200..100"),
                2,
                "80..120",
            ),
            (
                &format!("{suite} --evals e.evals --eval 100..200 --eval-abs 100..200"),
                2,
                "--eval-abs",
            ),
            (
                "make-book games.pgn --bin b.bin --evals e.evals --eval 100..200",
                2,
                "--eval",
            ),
            (
                "filter book.bin --out b.bin --evals e.evals",
                2,
                "--max-loss",
            ),
        ],
    );
}

#[test]
fn suites_contain_no_positions_in_which_the_game_is_over() {
    let dir = temp();
    let dir = dir.path();
    let mate = "1. e4 e5 2. Bc4 Nc6 3. Qh5 Nf6 4. Qxf7#";
    let stalemate = "1. e3 a5 2. Qh5 Ra6 3. Qxa5 h5 4. h4 Rah6 5. Qxc7 f6 6. Qxd7+ Kf7 7. Qxb7 Qd3 8. Qxb8 Qh7 9. Qxc8 Kg6 10. Qe6";
    let threefold = "1. Nf3 Nf6 2. Ng1 Ng8 3. Nf3 Nf6 4. Ng1 Ng8 5. e4 e5";
    let hill = "1. e4 a6 2. Ke2 a5 3. Ke3 a4 4. Kd4";
    let checks = "1. e4 e5 2. Bc4 a6 3. Bxf7+ Kxf7 4. Qh5+ g6 5. Qxg6+";
    let explosion = "1. Nf3 a6 2. Ng5 a5 3. Nxf7";
    let fools = "1. f3 e5 2. g4 Qh4#";
    for (moves, plies, variant) in [
        (mate, 7, "standard"),
        (stalemate, 19, "standard"),
        (threefold, 8, "standard"),
        (threefold, 10, "standard"),
        (hill, 7, "kingofthehill"),
        (checks, 9, "3check"),
        (explosion, 5, "atomic"),
        (fools, 4, "crazyhouse"),
    ] {
        let tags = format!("[Variant \"{variant}\"]\n\n");
        fs::write(dir.join("g.pgn"), format!("{tags}{moves} *\n\n").repeat(3)).unwrap();
        for suite in ["s.epd", "s.pgn"] {
            let line = format!(
                "make-book -q g.pgn --suite {suite} --variant {variant} --min-game 1 --force --plies"
            );
            let error = fails(dir, &format!("{line} {plies}"), 1);
            let reason = format!("the game is over after every line of {plies} half-moves");
            assert!(error.contains(&reason), "{moves}: {error}");
            // The message contains advice.
            if plies != 10 {
                ok(dir, &format!("{line} {}", plies - 1));
            }
        }
        if moves == threefold {
            // Lines of databases and books never repeat a position.
            continue;
        }
        ok(
            dir,
            &format!("make-book -q g.pgn --obs g.obs.db3 --variant {variant} --min-game 1 --force"),
        );
        for suite in ["c.epd", "c.pgn"] {
            let error = fails(
                dir,
                &format!("convert -q g.obs.db3 {suite} --min-game 1 --force --plies {plies}"),
                1,
            );
            assert!(error.contains("the game is over"), "{moves}: {error}");
        }
    }
    fs::write(dir.join("g.pgn"), format!("{mate} *\n\n")).unwrap();
    ok(dir, "make-book -q g.pgn --bin g.bin --min-game 1");
    let error = fails(dir, "convert -q g.bin b.epd --plies 7", 1);
    assert!(error.contains("the game is over"), "{error}");
    // Other lines are kept.
    let twice = "1. Nf3 Nf6 2. Ng1 Ng8 3. Nf3 Nf6 4. Nc3 Nc6 5. Rg1 Rg8";
    fs::write(dir.join("g.pgn"), format!("{mate} 1-0\n\n{twice} *\n\n")).unwrap();
    ok(
        dir,
        "make-book -q g.pgn --suite s.epd --plies 7 --min-game 1 --force",
    );
    assert_eq!(
        fs::read_to_string(dir.join("s.epd"))
            .unwrap()
            .lines()
            .count(),
        1
    );
}

/// After both moves, the pawn on e5 is pinned, so the last double step gives no right to capture en passant.
const PINNED: [&str; 2] = [
    "1. e4 e5 2. f4 exf4 3. e5 d5 4. Nf3 Qe7",
    "1. e4 e5 2. f4 exf4 3. e5 Qe7 4. Nf3 d5",
];

#[test]
fn an_en_passant_square_of_a_pinned_pawn_does_not_make_a_different_position() {
    let dir = temp();
    let dir = dir.path();
    let games = |results: [&str; 2]| {
        let game = |at: usize| {
            let (moves, result) = (PINNED[at], results[at]);
            format!("[Result \"{result}\"]\n\n{moves} 5. d4 {result}\n\n")
        };
        game(0) + &game(1)
    };
    fs::write(dir.join("g.pgn"), games(["1-0", "0-1"])).unwrap();
    ok(dir, "make-book -q g.pgn --explorer g.idx");
    ok(dir, "make-book -q g.pgn --leveldb plain.idx --index-stats");
    ok(
        dir,
        "make-book -q g.pgn --counts g.counts --by speed,rating,month",
    );
    ok(dir, "make-book -q g.counts --explorer counts.idx");
    let fens = ["-", "d6"].map(|square| {
        format!("rnb1kbnr/ppp1qppp/8/3pP3/5p2/5N2/PPPP2PP/RNBQKB1R w KQkq {square} 0 5")
    });
    for index in ["g.idx", "counts.idx"] {
        let questions = PINNED.map(|line| ("--moves", line));
        let questions = questions
            .into_iter()
            .chain(fens.iter().map(|fen| ("--fen", &**fen)));
        for (option, text) in questions {
            let found = ok_json(dir, &["show", index, "--json", option, text]);
            let moves = found["moves"].as_array().unwrap();
            assert_eq!(moves.len(), 1, "{index} {text}: {found}");
            assert!(
                moves[0]["white"] == 1 && moves[0]["black"] == 1,
                "{index} {text}: {found}"
            );
        }
    }
    for line in PINNED {
        let found = ok_json(dir, &["games", "plain.idx", "--json", "--moves", line]);
        assert_eq!(found["games"].as_array().unwrap().len(), 2, "{found}");
        let tree = ok(
            dir,
            &["tree", "plain.idx", "--moves", line, "--max-ply", "1"],
        );
        assert_eq!(tree.matches("d4").count(), 1, "{tree}");
    }
    fs::write(dir.join("d.pgn"), games(["1/2-1/2", "1/2-1/2"])).unwrap();
    ok(
        dir,
        "make-book -q d.pgn --suite s.epd --plies 8 --min-game 2",
    );
    let suite = fs::read_to_string(dir.join("s.epd")).unwrap();
    assert!(
        suite.lines().count() == 1 && suite.contains("2 games"),
        "{suite}"
    );
    ok(dir, "make-book -q d.pgn --obs d.obs.db3 --min-game 1");
    ok(dir, "convert -q d.obs.db3 c.epd --plies 8 --min-game 1");
    let suite = fs::read_to_string(dir.join("c.epd")).unwrap();
    assert!(
        suite.lines().count() == 1 && suite.contains("2 times"),
        "{suite}"
    );
    for fen in &fens {
        let found = ok_json(dir, &["show", "d.obs.db3", "--json", "--fen", fen]);
        let moves = found["moves"].as_array().unwrap();
        assert!(moves.len() == 1 && moves[0]["draws"] == 2, "{found}");
        fs::write(dir.join("from.epd"), format!("{fen}\n")).unwrap();
        ok(
            dir,
            "make-book -q d.pgn --suite f.epd --from from.epd --plies 1 --min-game 2 --force",
        );
        let suite = fs::read_to_string(dir.join("f.epd")).unwrap();
        assert_eq!(suite.lines().count(), 1, "{suite}");
    }
    // A book has the keys of polyglot, so all of its records are found.
    ok(dir, "make-book -q d.pgn --bin d.bin --min-game 1");
    for fen in &fens {
        let found = ok_json(dir, &["show", "d.bin", "--json", "--fen", fen]);
        assert_eq!(found["moves"].as_array().unwrap().len(), 1, "{found}");
    }
    let tree = ok(dir, "tree d.bin");
    assert_eq!(tree.matches("5. d4").count(), 2, "{tree}");
}

#[test]
fn castling_rights_that_cannot_be_are_dropped_wherever_a_position_is_read() {
    let dir = temp();
    let dir = dir.path();
    let fen = "rnbqkbnr/pppppppp/8/8/8/5BN1/PPPPPPPP/RNBQ1RK1 b KQkq - 0 1";
    let game = format!("[FEN \"{fen}\"]\n[SetUp \"1\"]\n[Result \"0-1\"]\n\n1... e5 0-1\n");
    fs::write(dir.join("g.pgn"), game).unwrap();
    ok(
        dir,
        "make-book -q g.pgn --explorer g.idx --bin g.bin --min-game 1",
    );
    let found = ok_json(dir, &["show", "g.idx", "--json", "--fen", fen]);
    assert_eq!(found["moves"][0]["black"], 1, "{found}");
    let found = ok_json(dir, &["show", "g.bin", "--json", "--fen", fen]);
    assert_eq!(found["moves"].as_array().unwrap().len(), 1, "{found}");
    fs::write(dir.join("from.epd"), format!("{fen}\n")).unwrap();
    ok(
        dir,
        "make-book -q g.pgn --suite f.epd --from from.epd --plies 1 --min-game 1",
    );
}

/// `verify` checks the entries of a suite.
#[test]
fn suites_are_verified() {
    let dir = made();
    let dir = dir.path();
    let said = |line: &str| String::from_utf8(run(dir, line).stderr).unwrap();
    ok(dir, "convert -q games.obs.db3 lines.pgn --plies 6 --unique");
    ok(dir, "convert -q games.obs.db3 positions.epd --plies 5");
    let text = said("verify lines.pgn");
    assert!(
        text.contains(" lines of 6 half-moves without faults"),
        "{text}"
    );
    let text = said("verify positions.epd");
    assert!(text.contains("; White is to move in 0\n"), "{text}");

    fs::write(
        dir.join("mate.pgn"),
        "1. f3 e5 2. g4 Qh4# *\n\n1. e4 e5 *\n\n1. e4 e5 *\n\n",
    )
    .unwrap();
    let mated = "rnb1kbnr/pppp1ppp/8/4p3/6Pq/5P2/PPPPP2P/RNBQKBNR w KQkq -";
    let first = "rnbqkbnr/pppp1ppp/8/4p3/4P3/8/PPPP1PPP/RNBQKBNR w KQkq -";
    fs::write(
        dir.join("mate.epd"),
        format!("{mated}\n{first} ce 20;\n{first} hmvc 0;\n"),
    )
    .unwrap();
    fs::write(
        dir.join("over.pgn"),
        "1. Nf3 Nf6 2. Ng1 Ng8 3. Nf3 Nf6 4. Ng1 Ng8 *\n\n",
    )
    .unwrap();
    fs::write(dir.join("illegal.epd"), "8/8/8/8/8/8/8/K7 w - -\n").unwrap();
    let repeated = "1: the game is already over; ";
    // One report contains the entries that cannot be read and all other faults.
    fs::write(
        dir.join("mixed.epd"),
        format!("{first}\n8/8/8 w - -\n\n{first}\n"),
    )
    .unwrap();
    fs::write(dir.join("mixed.pgn"), "1. e4 *\n\n1. e9 *\n\n1. e4 *\n").unwrap();
    let mixed = "contains faults: line 2: FEN \"8/8/8 w - -\": the board has 3 ranks instead of 8";
    refused(
        dir,
        &[
            ("verify mate.pgn", 1, repeated),
            ("verify mate.pgn", 1, "; game 3 repeats game 2"),
            ("verify mate.epd", 1, repeated),
            ("verify mate.epd", 1, "; line 3 repeats line 2"),
            ("verify over.pgn", 1, "game 1: the game is already over"),
            ("verify illegal.epd", 1, "line 1"),
            ("verify mixed.epd", 1, mixed),
            ("verify mixed.epd", 1, "; line 4 repeats line 1; "),
            ("verify mixed.pgn", 1, "contains faults: game 2: e9"),
            (
                "verify mixed.pgn",
                1,
                "; game 3 repeats game 1; correct or remove these entries\n",
            ),
            ("verify lines.pgn --fix new.bin", 1, "PGN"),
        ],
    );

    // Only the first faults of a file are kept, whatever they are.
    let all = format!(
        "{first}\n{}{}",
        "8/8/8\n".repeat(600),
        format!("{first}\n").repeat(900)
    );
    fs::write(dir.join("all.epd"), &all).unwrap();
    fs::write(
        dir.join("unreadable.epd"),
        format!("{first}\n{}", "x\n".repeat(1500)),
    )
    .unwrap();
    let more = "line 11: FEN \"x\": this is not a FEN, which looks like \
                rnbqkbnr/pppppppp/8/8/4P3/8/PPPP1PPP/RNBQKBNR b KQkq - 0 1; and 1490 more faults; correct or remove";
    refused(dir, &[("verify unreadable.epd", 1, more)]);
    refused(
        dir,
        &[(
            "suite-report unreadable.epd lines.pgn",
            1,
            ", line 12, and 1489 more",
        )],
    );
    let output = run(dir, "verify all.epd --json");
    let found: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let faults = found["faults"].as_array().unwrap();
    assert_eq!(
        (faults.len(), &found["fault_count"]),
        (1000, &serde_json::json!(1500))
    );
    assert_eq!(
        faults[599],
        "line 601: FEN \"8/8/8\": the board has 3 ranks instead of 8"
    );
    assert_eq!(faults[999], "line 1001 repeats line 1");
    assert_eq!(found["entries"], 901);

    let turn = "rnbqkbnr/pppppppp/8/8/4P3/8/PPPP1PPP/RNBQKBNR b KQkq -";
    fs::write(
        dir.join("even.epd"),
        format!("{first} ce 20;\n{turn} ce -31;\n"),
    )
    .unwrap();
    let document = ok_json(dir, "verify even.epd --json -q");
    assert_eq!(document["evaluations"], serde_json::json!([20, 31]));
    assert_eq!(
        (&document["entries"], &document["white_to_move"]),
        (&2.into(), &1.into())
    );
    // Two orders of the same moves are two lines to one position.
    fs::write(
        dir.join("orders.pgn"),
        "1. d4 Nf6 2. c4 *\n\n1. c4 Nf6 2. d4 *\n\n",
    )
    .unwrap();
    assert_eq!(
        ok_json(dir, "verify orders.pgn --json -q")["transpositions"],
        1
    );
}

/// The opcodes of a perft suite each follow a semicolon, and `%` begins a comment.
#[test]
fn perft_suites_are_read() {
    let dir = made();
    let dir = dir.path();
    let start = "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq -";
    let after_e4 = "rnbqkbnr/pppppppp/8/8/4P3/8/PPPP1PPP/RNBQKBNR b KQkq -";
    fs::write(
        dir.join("perft.epd"),
        format!(
            "% numbers of lines\n  %\n{start} 0 1 ;D1 20 ;D2 400 ;D3 8902\n# more\n; and more\n\n{after_e4} 0 1;D1 20;D2 600\n"
        ),
    )
    .unwrap();
    fs::write(dir.join("plain.epd"), format!("{start}\n{after_e4}\n")).unwrap();
    let document = ok_json(dir, "verify perft.epd --json -q");
    assert_eq!(
        (&document["entries"], &document["white_to_move"]),
        (&2.into(), &1.into())
    );
    let suite = |from: &str| {
        let options = format!("--from {from} --plies 2 --min-game 1");
        lines(dir, &format!("games.obs.db3 s.epd {options}"), "s.epd")
    };
    assert_eq!(suite("perft.epd"), suite("plain.epd"));
    assert!(!suite("perft.epd").is_empty());
    // An error counts all lines of the file.
    fs::write(
        dir.join("bad.epd"),
        format!("% x\n{start} ;D1 20\n8/8 w - - ;D1 0\n"),
    )
    .unwrap();
    refused(
        dir,
        &[
            ("verify bad.epd", 1, "line 3: "),
            (
                "convert games.obs.db3 b.epd --plies 2 --from bad.epd",
                1,
                "line 3",
            ),
        ],
    );
}

/// `verify` says why a position in an EPD is illegal. It also finds defects that do not prevent reading an entry.
#[test]
fn damaged_suites_are_recognized() {
    let dir = temp();
    let dir = dir.path();
    let start = "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq -";
    let e4 = "rnbqkbnr/pppppppp/8/8/4P3/8/PPPP1PPP/RNBQKBNR b KQkq e3";
    let cases = [
        (
            start.replace("BNR w", "BQR w").replace("QKB", "QQB") + " c0 \"x\";\n",
            "missing king",
        ),
        (
            start.replace("w KQkq -", "w KQkq e3\n"),
            "the en passant square e3 is impossible",
        ),
        (
            start.replace("BNR w", "BN1 w") + "\n",
            "the castling rights KQkq are impossible",
        ),
        (format!("{e4} c0 \"x;\n"), "a quotation mark is not closed"),
        (
            start.replace("pppppppp/8", "pppppppp/q7") + "\n",
            "a side has more than eight pawns and promoted pieces",
        ),
        (
            start.replace(" KQkq -", "\n"),
            "the line has 2 of the 4 fields of an EPD",
        ),
        (format!("{e4} c0"), "the file ends within this line"),
    ];
    for (line, reason) in cases {
        fs::write(dir.join("x.epd"), format!("{e4} c0 \"first\";\n{line}")).unwrap();
        let error = fails(dir, "verify x.epd", 1);
        assert!(
            error.contains("this suite contains faults: line 2: "),
            "{error}"
        );
        assert!(error.contains(reason), "{error}");
    }
    // The last semicolon may be missing, and the first line need not look like a position.
    fs::write(dir.join("good.epd"), format!("{e4}\n{start} c0 \"x\"\n")).unwrap();
    ok(dir, "verify -q good.epd");
    fs::write(dir.join("x.epd"), format!("my suite\n{start}\n")).unwrap();
    let error = fails(dir, "verify x.epd", 1);
    assert!(
        error.contains("faults: line 1: FEN \"my suite\""),
        "{error}"
    );

    // A carriage return ends a line, too.
    fs::write(
        dir.join("mac.epd"),
        format!("{e4}\r{start} c0 \"x\";\r\nstartpos\n"),
    )
    .unwrap();
    let error = fails(dir, "verify mac.epd", 1);
    assert!(error.contains("faults: line 3 repeats line 2; "), "{error}");

    // The format of a suite depends on no comment and no URL.
    let pgn = [
        "{ from\nr/n/b/q/k/b/n/r }\n1. e4 e5 *\n\n1. d4 d5 *\n",
        "; see\nhttps://x.org/a/b/c/d/e\n1. e4 e5 *\n\n1. d4 d5 *\n",
        "#r/n/b/q/k/b/n/r\n[Event \"x\"]\n\n1. e4 e5 *\n",
        "1. e4 e5 {\nr/n/b/q/k/b/n/r} *\n",
    ];
    for text in pgn {
        assert_eq!(SuiteFormat::of_text(text), SuiteFormat::Pgn, "{text}");
    }
    for text in [
        "startpos\n",
        &format!("#x\n; y\n8/8\n{start}"),
        &start.replace("NR w", "NR[Qn] w"),
        &start.replace(' ', "_"),
    ] {
        assert_eq!(SuiteFormat::of_text(text), SuiteFormat::Epd, "{text}");
    }

    fs::write(dir.join("games.pgn"), "1. e4 e5 1-0\n\n1. d4 d5 1-0\n").unwrap();
    ok(
        dir,
        "make-book -q games.pgn --suite lines.pgn --plies 2 --min-game 1",
    );
    let lines = fs::read_to_string(dir.join("lines.pgn")).unwrap();
    // Line breaks may be converted.
    fs::write(dir.join("crlf.pgn"), lines.replace('\n', "\r\n")).unwrap();
    ok(dir, "verify -q crlf.pgn");
    let cases = [
        (
            lines.replacen("*\n\n[", "\n\n[", 1),
            "game 1: the result after the moves is missing: add *",
        ),
        (
            lines.replacen("\"2\"]", "\"2", 1),
            "game 2: a tag is damaged",
        ),
        (
            lines.split_at(lines.rfind("1. ").unwrap()).0.to_owned(),
            "game 2: there are no moves",
        ),
        (
            lines.split_at(lines.rfind("ite \"").unwrap()).0.to_owned(),
            "game 2: ",
        ),
        (
            lines
                .replacen("*\n\n[", "*\n\nstray\n[", 1)
                .replacen("\"1\"]", "\"1", 1)
                + "stray\n",
            "game 1: a tag is damaged; game 2: there is text outside of tags, moves and comments; game 3: there is text",
        ),
        (lines.clone() + "[Whit", "a tag is damaged"),
    ];
    for (text, fault) in cases {
        fs::write(dir.join("x.pgn"), text).unwrap();
        let error = fails(dir, "verify x.pgn", 1);
        assert!(error.contains(fault), "{error}");
    }
    ok(dir, "verify -q lines.pgn");
}

/// A suite made from a database of variant games contains the positions of these games, because the identities of
/// positions include given checks, pieces in hand and promoted pieces.
#[test]
fn suites_of_variant_databases_are_those_of_their_games() {
    let dir = temp();
    let dir = dir.path();
    let cases = [
        (
            "3check",
            "Three-check",
            &["1. e4 f6 2. Qh5+ g6 3. Qe2", "1. e4 e5 2. Nf3 Nc6 3. Bc4"][..],
            4,
        ),
        (
            "crazyhouse",
            "Crazyhouse",
            &["1. a4 b5 2. axb5 a6 3. bxa6 Bb7 4. axb7 Nc6 5. bxa8=Q e6 6. Qxd8+ Kxd8 7. d4"][..],
            12,
        ),
    ];
    for (variant, tag, lines, plies) in cases {
        let game = |line: &&str| format!("[Variant \"{tag}\"]\n[Result \"1-0\"]\n\n{line} 1-0\n\n");
        fs::write(
            dir.join("games.pgn"),
            lines.iter().map(game).collect::<String>(),
        )
        .unwrap();
        ok(
            dir,
            &format!(
                "make-book -q games.pgn --variant {variant} --min-game 1 --obs games.obs.db3 --suite games.epd --plies {plies} --force"
            ),
        );
        ok(
            dir,
            &format!("convert -q games.obs.db3 converted.epd --plies {plies} --min-game 1 --force"),
        );
        let read = |name: &str| {
            let text = fs::read_to_string(dir.join(name)).unwrap();
            text.lines()
                .map(|line| position(line).to_owned())
                .collect::<BTreeSet<_>>()
        };
        assert_eq!(read("converted.epd"), read("games.epd"), "{variant}");
        assert_eq!(read("games.epd").len(), lines.len());
    }
}

/// A PGN with variations is a repertoire, of which all variations are checked.
#[test]
fn a_repertoire_is_verified_with_its_variations() {
    let dir = temp();
    let dir = dir.path();
    let game = |variation: &str| format!("[Result \"*\"]\n\n1. e4 e5 ({variation}) 2. Nf3 *\n\n");
    fs::write(dir.join("good.pgn"), game("1... c5 2. Nf3").repeat(2)).unwrap();
    fs::write(dir.join("bad.pgn"), game("1... c5 2. Nf6")).unwrap();
    let said = String::from_utf8(run(dir, "verify good.pgn").stderr).unwrap();
    assert_eq!(
        said,
        "good.pgn: a repertoire of 2 games without faults, 2 with variations; all moves were checked, but not whether lines \
         are repeated\n"
    );
    let found = ok_json(dir, "verify good.pgn -q --json");
    assert_eq!(
        found,
        serde_json::json!({"path": "good.pgn", "games": 2, "faults": []})
    );
    let error = fails(dir, "verify bad.pgn", 1);
    assert_eq!(
        error,
        "polybook: bad.pgn: this repertoire contains faults: 1 variation contains an illegal move and was read up to this \
         move; correct these games\n"
    );
    let mixed = game("1... c5 2. Nf3") + "1. d4 *\n\n1. d4 *\n";
    fs::write(dir.join("mixed.pgn"), mixed).unwrap();
    let said = String::from_utf8(run(dir, "verify mixed.pgn").stderr).unwrap();
    let expected = "mixed.pgn: a repertoire of 3 games without faults, 1 with variations; all moves were checked, but not \
                    whether lines are repeated\n";
    assert_eq!(said, expected);
}
