//! Merging OOBS databases.

use std::{fs, path::Path, sync::atomic::AtomicBool};

use crate::common::{fails, ok, ok_json, run, sample, temp};
use polybook::{
    Error,
    counts::Memory,
    obs::{ObsError, ObsWriter, merge_databases},
};
use rusqlite::Connection;

/// The EPD, move, `Active`, wins, draws, losses and comment of a row.
type Row = (String, String, i64, i64, i64, i64, Option<String>);

/// Returns all rows without their numbers, in the order of the numbers.
fn rows(db: &Path) -> Vec<Row> {
    let db = Connection::open(db).unwrap();
    let mut query = db
        .prepare("SELECT EPD, Move, Active, Win, Draw, Loss, Comment FROM Book ORDER BY ID")
        .unwrap();
    let rows = query.query_map([], |row| row.try_into()).unwrap();
    rows.collect::<Result<_, _>>().unwrap()
}

#[test]
fn merged_databases_are_that_of_all_games() {
    if !crate::common::runs_slow_tests() {
        return;
    }
    let dir = temp();
    let text = fs::read_to_string(sample("selfplay.pgn")).unwrap();
    let games: Vec<String> = text
        .split("[Event ")
        .skip(1)
        .map(|game| format!("[Event {game}"))
        .collect();
    let parts = [&games[..50], &games[50..300], &games[300..]];
    for (i, part) in parts.into_iter().enumerate() {
        fs::write(dir.path().join(format!("{i}.pgn")), part.concat()).unwrap();
        ok(
            dir.path(),
            &format!("make-book -q {i}.pgn --min-game 1 --obs {i}.obs.db3"),
        );
    }
    fs::write(dir.path().join("all.pgn"), &text).unwrap();
    ok(
        dir.path(),
        "make-book -q all.pgn --min-game 1 --obs all.obs.db3 --bin all.bin --comment x",
    );
    ok(
        dir.path(),
        "merge-book 0.obs.db3 1.obs.db3 2.obs.db3 --out merged.obs.db3",
    );
    let merged = dir.path().join("merged.obs.db3");
    assert!(rows(&merged) == rows(&dir.path().join("all.obs.db3")));
    ok(
        dir.path(),
        "convert -q merged.obs.db3 merged.bin --min-game 1 --comment x",
    );
    let bytes = |name: &str| fs::read(dir.path().join(name)).unwrap();
    assert!(bytes("merged.bin") == bytes("all.bin"));
    let info = Connection::open(&merged).unwrap();
    let info: String = info
        .query_row(
            "SELECT group_concat(Value, ';') FROM Info WHERE Name IN ('Input', 'Games')",
            [],
            |row| row.get(0),
        )
        .unwrap();
    assert_eq!(
        info,
        "500 read, 500 counted, 0 filtered, 0 rejected;0.pgn, 1.pgn, 2.pgn"
    );
}

#[test]
fn what_cannot_be_merged_is_refused() {
    let dir = temp();
    fs::write(
        dir.path().join("a.pgn"),
        "1. e4 *\n\n[Variant \"Horde\"]\n1. e5 *\n\n".repeat(3),
    )
    .unwrap();
    ok(dir.path(), "make-book -q a.pgn --obs a.obs.db3 --bin a.bin");
    ok(
        dir.path(),
        "make-book -q a.pgn --obs h.obs.db3 --variant horde",
    );
    let error = fails(
        dir.path(),
        "merge-book a.obs.db3 h.obs.db3 --out o.obs.db3",
        1,
    );
    assert!(
        error.contains("h.obs.db3") && error.contains("horde"),
        "{error}"
    );
    let error = fails(dir.path(), "merge-book a.obs.db3 a.bin", 2);
    assert!(error.contains("polybook convert"), "{error}");
    fails(
        dir.path(),
        "merge-book --policy first a.obs.db3 a.obs.db3",
        2,
    );
    assert!(!dir.path().join("o.obs.db3").exists());
    // A move that was played once in each of two databases would be missing from the sum.
    let output = run(dir.path(), "merge-book a.obs.db3 a.obs.db3");
    let error = String::from_utf8(output.stderr).unwrap();
    assert!(
        output.status.success() && error.contains("--min-game 3"),
        "{error}"
    );
    assert!(dir.path().join("out.obs.db3").exists());
}

/// Writes a database of one position with many moves.
fn many_moves(path: &Path, moves: usize) {
    Connection::open(path)
        .unwrap()
        .execute_batch(&format!(
            "CREATE TABLE Book (EPD TEXT, Move TEXT, Active INTEGER, Win INTEGER, Draw INTEGER, Loss INTEGER, Comment TEXT);
             WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {moves})
             INSERT INTO Book SELECT 'an EPD', 'm' || i, i % 4, i % 1000, 1, 0, 'c' || i FROM n;
             INSERT INTO Book VALUES ('before', 'm1', 1, 1, 1, 1, NULL);"
        ))
        .unwrap();
}

#[test]
fn a_position_of_many_moves_takes_neither_quadratic_time_nor_memory() {
    if !crate::common::runs_slow_tests() {
        return;
    }
    let dir = temp();
    let at = |name: &str| dir.path().join(name);
    let moves = 300_000;
    many_moves(&at("a.db3"), moves);
    many_moves(&at("b.db3"), moves / 2);
    // Searching for each row would take hours.
    ok(dir.path(), "merge-book -q a.db3 b.db3 --out merged.db3");
    let found = rows(&at("merged.db3"));
    assert_eq!(found.len(), moves + 1);
    let games = |row: &Row| row.3 + row.4 + row.5;
    assert!(found[..moves].is_sorted_by(|a, b| {
        (std::cmp::Reverse(games(a)), &a.1) < (std::cmp::Reverse(games(b)), &b.1)
    }));
    let sum: i64 = found[..moves].iter().map(games).sum();
    let expected = |moves: usize| (1..=moves).map(|i| i as i64 % 1000 + 1).sum::<i64>();
    assert_eq!(sum, expected(moves) + expected(moves / 2));
    let one = found.iter().find(|row| row.1 == "m7").unwrap();
    assert_eq!(
        (one.2, one.3, one.4, one.6.as_deref()),
        (3, 14, 2, Some("c7"))
    );
    assert_eq!(found[moves].0, "before");
    assert_eq!(games(&found[moves]), 6);
}

/// More databases than may be open at once are merged in groups.
#[test]
fn sixty_databases_are_merged_in_their_order() {
    let dir = temp();
    let names: Vec<String> = (1..=60).map(|number| format!("{number}.db3")).collect();
    for (name, moves) in names.iter().zip(1..) {
        let path = dir.path().join(name);
        many_moves(&path, moves);
        let comment = format!("UPDATE Book SET Comment = Comment || ' of {name}'");
        Connection::open(&path)
            .unwrap()
            .execute(&comment, [])
            .unwrap();
    }
    let line = format!("merge-book -q {} --out m.db3", names.join(" "));
    ok(dir.path(), &line);
    let mut found = rows(&dir.path().join("m.db3"));
    let before = found.pop().unwrap();
    assert_eq!((&before.0[..], before.3, before.6), ("before", 60, None));
    assert_eq!(found.len(), 60);
    for row in found {
        // The move is in the databases from this one on, and has the comment of the first of them.
        let first: i64 = row.1[1..].parse().unwrap();
        let databases = 61 - first;
        let comment = format!("c{first} of {first}.db3");
        let numbers = (first % 4, databases * first, databases, 0);
        assert_eq!((row.2, row.3, row.4, row.5), numbers);
        assert_eq!(row.6, Some(comment));
    }
}

#[test]
fn a_database_named_twice_is_reported_even_if_one_name_is_a_link() {
    let dir = temp();
    let at = |name: &str| dir.path().join(name);
    many_moves(&at("a.db3"), 3);
    many_moves(&at("b.db3"), 3);
    fs::hard_link(at("a.db3"), at("link.db3")).unwrap();
    let output = run(dir.path(), "merge-book a.db3 b.db3 link.db3 --out m.db3");
    let error = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success());
    assert!(
        error.contains("warning: link.db3: this database is given twice"),
        "{error}"
    );
    assert!(
        !error.contains("b.db3: this database is given twice"),
        "{error}"
    );
}

#[test]
fn the_stop_flag_ends_merging() {
    let dir = temp();
    let at = |name: &str| dir.path().join(name);
    many_moves(&at("a.db3"), 200_000);
    fs::write(at("m.db3"), "").unwrap();
    let writer = ObsWriter::create(at("m.db3"), true).unwrap();
    let merged = merge_databases(
        &[at("a.db3")],
        writer,
        &Memory::default(),
        &AtomicBool::new(true),
    );
    assert!(matches!(merged, Err(Error::Interrupted)));
    assert_eq!(fs::read(at("m.db3")).unwrap(), b"");
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 2);
}

#[test]
fn merging_no_databases_is_an_error() {
    let dir = temp();
    let writer = ObsWriter::create(dir.path().join("m.db3"), true).unwrap();
    let inputs: [&Path; 0] = [];
    let err =
        merge_databases(&inputs, writer, &Memory::default(), &AtomicBool::new(false)).unwrap_err();
    assert_eq!(err.carried(), Some(&ObsError::NoInput));
}

#[test]
fn a_sum_that_no_database_can_have_is_refused() {
    let dir = temp();
    let at = |name: &str| dir.path().join(name);
    many_moves(&at("a.db3"), 3);
    Connection::open(at("a.db3"))
        .unwrap()
        .execute("UPDATE Book SET Win = 1 << 36 WHERE Move = 'm2'", [])
        .unwrap();
    let error = fails(dir.path(), "merge-book a.db3 a.db3 --out m.db3", 1);
    assert!(
        error.contains("m.db3") && error.contains("at most 68719476736"),
        "{error}"
    );
    assert!(!at("m.db3").exists());
    ok(dir.path(), "merge-book -q a.db3 --out m.db3");
    assert_eq!(rows(&at("m.db3")).len(), 4);
}

#[test]
fn merged_samples_are_their_sums() {
    if !crate::common::runs_slow_tests() {
        return;
    }
    let dir = temp();
    for name in ["famous", "selfplay"] {
        let pgn = sample(&format!("{name}.pgn"));
        ok(
            dir.path(),
            &format!(
                "make-book -q {} --min-game 1 --obs {name}.db3",
                pgn.display()
            ),
        );
    }
    let both = format!(
        "{} {}",
        sample("famous.pgn").display(),
        sample("selfplay.pgn").display()
    );
    ok(
        dir.path(),
        &format!("make-book -q {both} --min-game 1 --obs all.db3"),
    );
    ok(
        dir.path(),
        "merge-book -q selfplay.db3 famous.db3 --out merged.db3",
    );
    assert!(rows(&dir.path().join("merged.db3")) == rows(&dir.path().join("all.db3")));
}

#[test]
fn a_file_that_is_no_database_is_not_replaced() {
    let dir = temp();
    fs::write(dir.path().join("a.pgn"), "1. e4 *\n").unwrap();
    ok(
        dir.path(),
        "make-book -q a.pgn --min-game 1 --obs a.obs.db3",
    );
    fs::write(dir.path().join("notes.txt"), "precious").unwrap();
    let error = fails(dir.path(), "merge-book a.obs.db3 --out notes.txt", 1);
    assert!(error.contains("notes.txt"), "{error}");
    let kept = fs::read(dir.path().join("notes.txt")).unwrap();
    assert_eq!(kept, b"precious");
}

#[test]
fn a_sum_of_differently_filtered_databases_loses_no_row() {
    let dir = temp();
    let pgn = sample("famous.pgn");
    let make = |options: &str, out: &str| {
        let pgn = pgn.display();
        ok(
            dir.path(),
            &format!("make-book -q {pgn} {options} --obs {out}.db3"),
        );
    };
    make("--min-game 1", "all");
    make("--min-game 1 --only-white", "white");
    make("--min-game 1 --only-black", "black");
    ok(
        dir.path(),
        "merge-book -q white.db3 black.db3 --out sides.db3",
    );
    assert!(rows(&dir.path().join("sides.db3")) == rows(&dir.path().join("all.db3")));
    for name in ["all", "sides"] {
        ok(
            dir.path(),
            &format!("convert -q {name}.db3 {name}.bin --min-game 1 --comment x"),
        );
    }
    let bytes = |name: &str| fs::read(dir.path().join(name)).unwrap();
    assert!(bytes("sides.bin") == bytes("all.bin"));
    ok(
        dir.path(),
        "convert -q sides.db3 sides.bin --min-game 1 --force",
    );
    let header = ok(dir.path(), "pgheader -s sides.bin");
    assert!(!header.contains("--only"), "{header}");

    // The filters apply to numbers of games and to scores, and each row of a sum passes the filter that the sum names.
    make("--min-game 3 --min-score 40", "often");
    make("--min-game 2 --only-white", "seldom");
    ok(
        dir.path(),
        "merge-book -q often.db3 seldom.db3 --out sum.db3",
    );
    let merged = rows(&dir.path().join("sum.db3"));
    let games = |row: &Row| row.3 + row.4 + row.5;
    assert!(
        merged.iter().any(|row| games(row) == 2) && merged.iter().any(|row| row.0.contains(" b "))
    );
    let table = ok_json(dir.path(), "convert -q sum.db3 sum.csv --json");
    assert_eq!(
        (&table["entries"], &table["left_out"]),
        (&merged.len().into(), &0.into())
    );

    // Sums also record what was dropped, and so do sums of sums.
    ok(dir.path(), "merge-book -q all.db3 sum.db3 --out again.db3");
    let output = run(dir.path(), "merge-book again.db3 --out last.db3");
    let warning = String::from_utf8(output.stderr).unwrap();
    let filters = "made with --min-score 40 | --min-game 2 --only-white, so moves may be missing";
    assert!(warning.contains(filters), "{warning}");
}

#[test]
fn a_move_has_one_row_in_a_sum_however_its_position_is_spelled() {
    let dir = temp();
    let at = |name: &str| dir.path().join(name);
    fs::write(at("a.pgn"), "1. e4 e5 *\n\n1. e4 Nf6 *\n").unwrap();
    ok(dir.path(), "make-book -q a.pgn --min-game 1 --obs a.db3");
    let board = "rnbqkbnr/pppppppp/8/8/4P3/8/PPPP1PPP/RNBQKBNR b";
    Connection::open(at("b.db3"))
        .unwrap()
        .execute_batch(&format!(
            "CREATE TABLE Book (EPD TEXT, Move TEXT, Active INTEGER, Win INTEGER, Draw INTEGER, Loss INTEGER, Comment TEXT);
             CREATE INDEX BookByEPD ON Book (EPD);
             INSERT INTO Book VALUES ('{board} KQkq e3 0 1', 'e7e5', 1, 4, 0, 0, NULL),
               ('{board} kqKQ - hmvc 0;', 'e7e5', 1, 2, 0, 0, 'one'), ('{board} x', 'e7e5', 1, 1, 1, 1, NULL),
               ('{board} KQkq e3 0 1', 'g8f6', 1, 5, 0, 0, NULL), ('{board} KQkq -', 'e7e5', 1, 1, 0, 0, NULL);"
        ))
        .unwrap();
    for order in ["a.db3 b.db3", "b.db3 a.db3"] {
        ok(
            dir.path(),
            &format!("merge-book -q {order} --out sum.db3 --force"),
        );
        let found: Vec<(String, String, i64)> = rows(&at("sum.db3"))
            .into_iter()
            .map(|row| (row.0, row.1, row.3 + row.4 + row.5))
            .filter(|row| row.0.starts_with(board))
            .collect();
        let row = |end: &str, mv: &str, games| (format!("{board} {end}"), mv.to_owned(), games);
        assert_eq!(
            found,
            [
                row("KQkq -", "e7e5", 8),
                row("KQkq -", "g8f6", 6),
                row("x", "e7e5", 3)
            ]
        );
    }
    let comment = rows(&at("sum.db3")).into_iter().find_map(|row| row.6);
    assert_eq!(comment.as_deref(), Some("one"));
    ok(dir.path(), "convert -q sum.db3 sum.csv --min-game 8");
    let table = fs::read_to_string(at("sum.csv")).unwrap();
    assert!(
        table.contains(&format!("{board} KQkq -,e7e5,7,1,0,")),
        "{table}"
    );
}

/// An en passant square that only a pinned pawn attacks, and impossible castling rights, do not make a separate
/// position in a merged database.
#[test]
fn positions_with_the_same_legal_moves_are_one_in_a_sum() {
    let dir = temp();
    let at = |name: &str| dir.path().join(name);
    let pinned = "rnb1kbnr/ppp1qppp/8/3pP3/5p2/5N2/PPPP2PP/RNBQKB1R w KQkq";
    let castled = "rnbqkbnr/pppppppp/8/8/8/5BN1/PPPPPPPP/RNBQ1RK1 b";
    let games = format!(
        "1. e4 e5 2. f4 exf4 3. e5 Qe7 4. Nf3 d5 5. d4 *\n\n[FEN \"{castled} kq - 0 1\"]\n\n1... e5 *\n"
    );
    fs::write(at("a.pgn"), games).unwrap();
    ok(dir.path(), "make-book -q a.pgn --min-game 1 --obs a.db3");
    Connection::open(at("b.db3"))
        .unwrap()
        .execute_batch(&format!(
            "CREATE TABLE Book (EPD TEXT, Move TEXT, Active INTEGER, Win INTEGER, Draw INTEGER, Loss INTEGER, Comment TEXT);
             CREATE INDEX BookByEPD ON Book (EPD);
             INSERT INTO Book VALUES ('{pinned} d6', 'd2d4', 1, 4, 0, 0, NULL), ('{castled} KQkq -', 'e7e5', 1, 7, 0, 0, NULL);"
        ))
        .unwrap();
    for order in ["a.db3 b.db3", "b.db3 a.db3"] {
        ok(
            dir.path(),
            &format!("merge-book -q {order} --out sum.db3 --force"),
        );
        let wins = |position: &str| -> Vec<(String, i64, i64)> {
            let found = rows(&at("sum.db3")).into_iter();
            let found = found.filter(|row| row.0.starts_with(position));
            found.map(|row| (row.0, row.3, row.4)).collect()
        };
        assert_eq!(wins(pinned), [(format!("{pinned} -"), 4, 1)], "{order}");
        assert_eq!(
            wins(castled),
            [(format!("{castled} kq -"), 7, 1)],
            "{order}"
        );
    }
}
