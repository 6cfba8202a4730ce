//! Suites and tables that `polybook convert` makes of books and databases.

use std::{collections::BTreeSet, fs, path::Path};

use crate::common::{fails, ok, ok_json, python, records, refused, run_python, sample, temp};

/// A book and a database of the sample games.
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
    ok(dir, &format!("convert -q {line}"));
    let text = fs::read_to_string(dir.join(out)).unwrap();
    text.lines().map(str::to_owned).collect()
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
    // What games came to a position scored, by the rows of the positions before it.
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
            if text == epd.as_bytes() {
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
        "convert games.obs.db3 s.epd --plies 2 --min-game 5 --balance 1-2",
        1,
    );
    assert!(error.contains("balanced"), "{error}");
}

#[test]
fn a_book_makes_suites_as_a_database_does() {
    let dir = made();
    let dir = dir.path();
    let of_database = lines(dir, "games.obs.db3 a.epd --plies 3 --min-game 1", "a.epd");
    let of_book = lines(dir, "book.bin b.epd --plies 3", "b.epd");
    assert_eq!(
        of_book.iter().collect::<BTreeSet<_>>(),
        of_database.iter().collect()
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
    let two = lines(dir, "book.bin s.epd --plies 2 --opcodes", "s.epd");
    assert!(two.iter().any(|epd| epd == knights), "{two:?}");
    // The same file may be written again, and be where lines start.
    ok(
        dir,
        "convert -q book.bin s.epd --plies 2 --opcodes --seed 3",
    );
    ok(dir, "convert -q book.bin t.epd --plies 1 --from s.epd");
}

#[test]
fn tables_of_a_book_have_every_record() {
    let dir = made();
    let dir = dir.path();
    // A record of a position that no line comes to.
    let mut few = fs::read(dir.join("book.bin")).unwrap();
    few.extend_from_slice(b"\xff\xff\xff\xff\xff\xff\xff\xff\x03\x1c\0\x01\0\0\0\0");
    fs::write(dir.join("few.bin"), few).unwrap();
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

#[test]
fn what_cannot_be() {
    let dir = made();
    let dir = dir.path();
    fs::write(dir.join("bad.epd"), "\nnot a position\n").unwrap();
    fs::write(dir.join("none.epd"), "# none\n").unwrap();
    let lines = [
        ("convert book.bin s.epd --balance 45-55", 1, "no scores"),
        ("convert book.bin s.epd --balance 55-45", 2, "45-55"),
        (
            "convert book.bin s.epd --min-game 3",
            2,
            "--min-game needs games",
        ),
        ("convert book.bin s.epd --limit 0", 2, "--limit"),
        ("convert book.bin other.bin", 2, "polybook filter"),
        (
            "convert book.bin s.epd --from bad.epd",
            1,
            "bad.epd: line 2: FEN",
        ),
        (
            "convert book.bin s.epd --from none.epd",
            1,
            "none.epd: has no position",
        ),
        (
            "convert book.bin s.epd --plies 40",
            1,
            "the longest line kept has 12",
        ),
        (
            "convert games.obs.db3 t.csv --limit 4",
            2,
            "--limit is for suites",
        ),
        (
            "convert games.obs.db3 t.csv --from bad.epd",
            2,
            "--from is for",
        ),
        ("convert book.bin t.txt", 2, ".jsonl"),
    ];
    refused(dir, &lines);
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
