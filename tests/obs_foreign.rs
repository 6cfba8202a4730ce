//! OOBS databases of other programs, including unusual and damaged ones.

#[cfg(unix)]
use std::process::Command;
use std::{fs, path::Path};

#[cfg(unix)]
use crate::common::python;
use crate::common::{fails, ok, ok_json, run, sample, temp};
use polybook::{
    Error,
    counts::Memory,
    obs::{Obs, ObsError},
    position::from_text,
};
use rusqlite::Connection;

const E3: &str = "rnbqkbnr/pppppppp/8/8/8/4P3/PPPP1PPP/RNBQKBNR b KQkq -";
const START: &str = "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq -";

/// Returns the EPD, move, `Active`, wins, draws and losses of all rows, in the order of the table.
fn rows(db: &Path) -> Vec<(String, String, i64, i64, i64, i64)> {
    let db = Connection::open(db).unwrap();
    let mut query = db
        .prepare("SELECT EPD, Move, Active, Win, Draw, Loss FROM Book ORDER BY ID")
        .unwrap();
    let rows = query.query_map([], |row| row.try_into()).unwrap();
    rows.collect::<Result<_, _>>().unwrap()
}

/// Makes a database of the sample games.
fn make(dir: &Path, options: &str) {
    let (famous, selfplay) = (sample("famous.pgn"), sample("selfplay.pgn"));
    let (famous, selfplay) = (famous.display(), selfplay.display());
    ok(dir, &format!("make-book -q {famous} {selfplay} {options}"));
}

/// Creates a database from SQL.
fn database(path: &Path, sql: &str) {
    Connection::open(path).unwrap().execute_batch(sql).unwrap();
}

/// Creates a database as other tools make them: with more columns in another order, without an index, with rows in any
/// order, and with several bits in `Active`.
fn foreign(path: &Path) {
    let db = Connection::open(path).unwrap();
    db.execute_batch(&format!(
        "CREATE TABLE Book (Loss INTEGER, Note TEXT, Move TEXT, epd TEXT, Win INTEGER, ACTIVE INTEGER, Draw INTEGER);
         CREATE TABLE Other (x);
         INSERT INTO Book (Loss, Note, Move, epd, Win, ACTIVE, Draw) VALUES
           (1, 'good', 'e7e5', '{E3}', 5, 3, 2),
           (0, NULL, 'e2e4', '{START}', 7, 1, 0),
           (9, 'bad', 'd7d5', '{E3}', 90, 2, 0),
           (0, NULL, 'c7c5', '{E3}', 6, NULL, 0),
           (0, NULL, 'a7a6', '{E3}', '4', 0, 0),
           (0, NULL, 'g8f6', '{E3}', '8', 1, NULL);"
    ))
    .unwrap();
}

#[test]
fn databases_of_other_tools_are_read_as_they_are() {
    let dir = temp();
    foreign(&dir.path().join("their.db3"));
    let shown = ok_json(dir.path(), "show --json their.db3 e3");
    let moves: Vec<String> = shown["moves"]
        .as_array()
        .unwrap()
        .iter()
        .map(|mv| format!("{} {} {}", mv["san"], mv["weight"], mv["active"]))
        .collect();
    assert_eq!(
        moves,
        [
            "\"Nf6\" 16 true",
            "\"e5\" 12 true",
            "\"c5\" 12 true",
            "\"d5\" 0 false",
            "\"a6\" 0 false"
        ]
    );
    assert_eq!(shown["moves"][1]["wins"], 5);
    assert_eq!(shown["moves"][1]["draws"], 2);
    assert_eq!(shown["moves"][1]["losses"], 1);

    ok(dir.path(), "convert -q their.db3 their.bin --min-game 1");
    let book = ok_json(dir.path(), "show --json their.bin e3");
    let moves: Vec<_> = book["moves"]
        .as_array()
        .unwrap()
        .iter()
        .map(|mv| mv["uci"].as_str().unwrap())
        .collect();
    assert_eq!(moves, ["g8f6", "c7c5", "e7e5"]);
    let header = ok(dir.path(), "pgheader -s their.bin");
    assert!(
        header.contains("Input: their.db3\nOptions: --min-game 1"),
        "{header}"
    );

    ok(dir.path(), "convert -q their.db3 their.csv --min-game 1");
    let table = fs::read_to_string(dir.path().join("their.csv")).unwrap();
    assert_eq!(
        table,
        format!(
            "EPD,Move,Win,Draw,Loss,Weight\n{E3},e7e5,5,2,1,12\n{E3},g8f6,8,0,0,16\n{E3},c7c5,6,0,0,12\n{START},e2e4,7,0,0,14\n"
        )
    );

    ok(
        dir.path(),
        "convert -q their.db3 san.csv --min-game 1 --with-san",
    );
    let with_san = fs::read_to_string(dir.path().join("san.csv")).unwrap();
    let sans = ["SAN", "e5", "Nf6", "c5", "e4"].into_iter();
    let lines = table.lines().zip(sans);
    let expected: String = lines.map(|(line, san)| format!("{line},{san}\n")).collect();
    assert_eq!(with_san, expected);

    // In a merge with itself, everything is doubled, and inactive moves stay inactive.
    ok(
        dir.path(),
        "merge-book -q their.db3 their.db3 --out both.db3",
    );
    let both = rows(&dir.path().join("both.db3"));
    assert_eq!(both[0], (E3.to_owned(), "d7d5".to_owned(), 2, 180, 0, 18));
    assert_eq!(both.len(), 6);
}

/// Programs write castling as the king's two steps, as king takes rook, or in SAN. A merged database has one row
/// for the move.
#[test]
fn merged_databases_have_one_spelling_of_each_move() {
    let dir = temp();
    let dir = dir.path();
    let castling = "r3k2r/pppppppp/8/8/8/8/PPPPPPPP/R3K2R w KQkq -";
    // A rook on e1 also goes to g1 and h1, which are two moves.
    let rook = "k7/8/8/8/8/8/1K6/4R3 w - -";
    for (name, moves) in [
        ("a.db3", ["e1h1", "e1a1", "e1g1"]),
        ("b.db3", ["O-O", "e1c1", "Rh1"]),
        ("c.db3", ["e1g1", "O-O-O", "Rg1"]),
    ] {
        let [short, long, step] = moves;
        database(
            &dir.join(name),
            &format!(
                "CREATE TABLE Book (EPD TEXT, Move TEXT, Win INTEGER, Draw INTEGER, Loss INTEGER);
                 INSERT INTO Book VALUES
                   ('{castling}', '{short}', 3, 2, 1), ('{castling}', '{long}', 1, 0, 0), ('{rook}', '{step}', 0, 0, 1);"
            ),
        );
    }
    let expected = [
        (castling, "e1g1", 9, 6, 3),
        (castling, "e1c1", 3, 0, 0),
        (rook, "e1g1", 0, 0, 2),
        (rook, "e1h1", 0, 0, 1),
    ]
    .map(|(epd, mv, win, draw, loss)| (epd.to_owned(), mv.to_owned(), 1, win, draw, loss));
    for order in ["a.db3 b.db3 c.db3", "c.db3 b.db3 a.db3"] {
        ok(dir, &format!("merge-book -q {order} --out m.db3 --force"));
        let mut merged = rows(&dir.join("m.db3"));
        merged.sort_by_key(|row| (row.0 != castling, std::cmp::Reverse(row.3 + row.4 + row.5)));
        assert_eq!(merged, expected, "{order}");
    }
}

#[test]
fn positions_in_a_table_of_their_own_are_found() {
    let dir = temp();
    let path = dir.path().join("two.obs.db3");
    let db = Connection::open(&path).unwrap();
    db.execute_batch(&format!(
        "CREATE TABLE EPD (ID INTEGER PRIMARY KEY AUTOINCREMENT, EPD TEXT NOT NULL);
         CREATE TABLE Book (ID INTEGER PRIMARY KEY AUTOINCREMENT, EPDID INTEGER NOT NULL, Move TEXT, Active INTEGER DEFAULT 1, Win INTEGER, Draw INTEGER, Loss INTEGER, FOREIGN KEY(EPDID) REFERENCES EPD);
         INSERT INTO EPD VALUES (4, '{START}'), (9, '{E3}');
         INSERT INTO Book (EPDID, Move, Win, Draw, Loss) VALUES (9, 'e7e5', 1, 2, 3), (4, 'e2e3', 4, 5, 6);"
    ))
    .unwrap();
    drop(db);
    ok(dir.path(), "convert -q two.obs.db3 two.csv --min-game 1");
    let table = fs::read_to_string(dir.path().join("two.csv")).unwrap();
    assert_eq!(
        table,
        format!("EPD,Move,Win,Draw,Loss,Weight\n{E3},e7e5,1,2,3,4\n{START},e2e3,4,5,6,13\n")
    );
    assert!(ok(dir.path(), "show two.obs.db3 e3").contains("e5       e7e5"));
}

#[test]
fn invalid_rows_are_skipped_and_reported() {
    let dir = temp();
    let path = dir.path().join("odd.obs.db3");
    let db = Connection::open(&path).unwrap();
    db.execute_batch(&format!(
        "CREATE TABLE Book (EPD TEXT, Move TEXT, Win INTEGER, Draw INTEGER, Loss INTEGER);
         INSERT INTO Book VALUES ('{START}', 'e2e4', 3, 0, 0), ('{START}', 'e2e5', 3, 0, 0),
           ('nonsense', 'e2e4', 3, 0, 0), (NULL, NULL, 3, 0, 0), ('{START}', 'Nf3', 3, 0, 0), (x'00ff', x'ff', 1, 1, 1);"
    ))
    .unwrap();
    drop(db);
    let output = run(dir.path(), "convert odd.obs.db3 odd.bin");
    let error = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{error}");
    assert!(
        error.contains("4 rows skipped") && error.contains("e2e5"),
        "{error}"
    );
    assert!(error.contains("odd.bin: 2 entries"), "{error}");

    let db = Connection::open(&path).unwrap();
    db.execute(
        "UPDATE Book SET Win = 9223372036854775807 WHERE Move = 'e2e4'",
        [],
    )
    .unwrap();
    drop(db);
    for out in ["odd.bin", "odd.csv", "odd.pgn"] {
        let error = fails(dir.path(), &format!("convert odd.obs.db3 {out}"), 1);
        assert!(error.contains("is impossible"), "{error}");
    }
    fails(dir.path(), "show odd.obs.db3", 1);
}

#[test]
fn a_file_that_is_no_database_is_an_error_of_one_line() {
    let dir = temp();
    fs::write(dir.path().join("text.obs.db3"), "no database").unwrap();
    Connection::open(dir.path().join("other.db3"))
        .unwrap()
        .execute_batch("CREATE TABLE Games (x)")
        .unwrap();
    make(dir.path(), "--obs good.obs.db3");
    let good = fs::read(dir.path().join("good.obs.db3")).unwrap();
    fs::write(dir.path().join("cut.obs.db3"), &good[..good.len() / 2]).unwrap();
    for (name, word) in [
        ("other.db3", "no table Book"),
        ("missing.obs.db3", "cannot open missing.obs.db3"),
        ("cut.obs.db3", "malformed"),
    ] {
        let error = fails(dir.path(), &format!("convert {name} out.bin"), 1);
        assert!(error.contains(name) && error.contains(word), "{error}");
    }
    let error = fails(dir.path(), "convert text.obs.db3 out.bin", 1);
    assert!(error.contains("text.obs.db3"), "{error}");
    for out in ["out.txt", "out", "out.obs.db3"] {
        fails(dir.path(), &format!("convert good.obs.db3 {out}"), 2);
    }
    assert!(!dir.path().join("out.bin").exists());
}

#[test]
fn damaged_databases_never_panic() {
    let dir = temp();
    make(dir.path(), "--max-ply 6 --min-game 1 --obs good.obs.db3");
    let good = fs::read(dir.path().join("good.obs.db3")).unwrap();
    let mut state = 7u64;
    let mut random = |below: usize| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % below
    };
    for _ in 0..40 {
        let mut bytes = good.clone();
        for _ in 0..1 + random(20) {
            // Damage in the header and in the roots has the greatest effect.
            let at = if random(2) == 0 {
                random(1 << 15)
            } else {
                random(bytes.len())
            };
            let at = at.min(bytes.len() - 1);
            bytes[at] = random(256) as u8;
        }
        fs::write(dir.path().join("bad.obs.db3"), bytes).unwrap();
        for line in [
            "convert bad.obs.db3 bad.bin",
            "show bad.obs.db3",
            "merge-book bad.obs.db3 good.obs.db3 --out o.obs.db3",
        ] {
            let output = run(dir.path(), line);
            let error = String::from_utf8_lossy(&output.stderr);
            assert!(
                output.status.code().is_some_and(|code| code <= 2),
                "{line}: {error}"
            );
            assert!(!error.contains("internal error"), "{line}: {error}");
        }
    }
}

#[test]
fn positions_are_found_under_the_epds_of_other_programs() {
    let dir = temp();
    let path = dir.path().join("six.db3");
    let board = "rnbqkbnr/pppppppp/8/8/4P3/8/PPPP1PPP/RNBQKBNR";
    database(
        &path,
        &format!(
            "CREATE TABLE Book (EPD TEXT, Move TEXT, Win INTEGER, Draw INTEGER, Loss INTEGER);
             INSERT INTO Book VALUES ('{board} b KQkq e3 0 1', 'e7e5', 1, 0, 0), ('{board} b kqKQ - 4 9', 'e7e5', 2, 0, 0),
               ('{board} b KQkq -', 'c7c5', 0, 1, 0), ('{board} b KQk -', 'a7a6', 9, 0, 0),
               ('{board} w KQkq -', 'a7a6', 9, 0, 0), ('{board}[Q] b KQkq -', 'a7a6', 9, 0, 0);"
        ),
    );
    let obs = Obs::open(&path).unwrap();
    let moves = obs.moves(&from_text(None, Some("e4")).unwrap()).unwrap();
    let found: Vec<_> = moves
        .iter()
        .map(|row| (row.mv.as_str(), row.stats.games()))
        .collect();
    assert_eq!(found, [("e7e5", 3), ("c7c5", 1)]);
    assert!(
        moves
            .iter()
            .all(|row| row.epd == format!("{board} b KQkq -"))
    );
    assert!(
        obs.moves(&from_text(None, Some("d4")).unwrap())
            .unwrap()
            .is_empty()
    );
    assert!(ok(dir.path(), "show six.db3 e4").contains("e7e5        3"));
}

/// Looking up a position and reading all rows give the same games.
#[test]
fn rows_with_operations_count_everywhere() {
    let dir = temp();
    let rows = format!(
        "CREATE TABLE Book (EPD, Move, Win, Draw, Loss);
         INSERT INTO Book VALUES ('{START} hmvc 0; fmvn 1;', 'e2e4', 5, 0, 0);
         INSERT INTO Book VALUES ('{START} 0 1', 'd2d4', 4, 0, 0), ('{START}', 'e2e4', 3, 1, 0);"
    );
    database(&dir.path().join("a.db3"), &rows);
    let shown = ok_json(dir.path(), "show a.db3 --json");
    assert_eq!(shown["moves"][0]["wins"], 8);
    ok(dir.path(), "convert -q a.db3 a.bin --min-game 1");
    let weights = ok_json(dir.path(), "show a.bin --json");
    assert_eq!(weights["moves"][0]["weight"], 17);
    assert_eq!(weights["moves"][1]["weight"], 8);
    let made = ok_json(dir.path(), "convert -q a.db3 a.csv --json");
    assert_eq!(
        (&made["entries"], &made["passed_over"]),
        (&3.into(), &0.into())
    );
}

#[test]
fn cells_that_hold_no_text_or_number_are_counted() {
    let dir = temp();
    let path = dir.path().join("odd.db3");
    database(
        &path,
        &format!(
            "CREATE TABLE Book (EPD, Move, Active, Win, Draw, Loss);
             INSERT INTO Book VALUES ('{START}', 'e2e4', 1, 1, 0, 0), ('', 'e2e4', 1, 9, 0, 0),
               ('{START}', '', 1, 9, 0, 0), ('{START}', NULL, 1, 9, 0, 0), (7, 'e2e4', 1, 9, 0, 0),
               ('{START}', 'e2e4', 'yes', 9, 0, 0), ('{START}', 'e2e4', 1, 'many', 0, 0),
               ('{START}', 'e2e4', 1, 0.5, 0, 0), ('é', 'e2e4', 1, 9, 0, 0), ('{START}', 'd2d4', NULL, 2.0, NULL, '3');"
        ),
    );
    let obs = Obs::open(&path).unwrap();
    for rows in [obs.rows(), obs.rows_by_epd(&Memory::default())] {
        let mut rows = rows.unwrap();
        let mut games: Vec<u64> = (&mut rows).map(|row| row.unwrap().stats.games()).collect();
        games.sort_unstable();
        assert_eq!(games, [1, 5]);
        assert_eq!(rows.skipped_rows().rows, 8);
        assert!(rows.skipped_rows().example.is_some());
    }
    // A query fails rather than returning the undamaged part of a position.
    let err = obs.moves(&from_text(None, None).unwrap()).unwrap_err();
    assert!(
        matches!(err.carried(), Some(ObsError::MalformedRow(_))),
        "{err:?}"
    );
    for out in ["odd.bin", "odd.csv"] {
        let output = run(dir.path(), &format!("convert odd.db3 {out} --min-game 1"));
        let error = String::from_utf8(output.stderr).unwrap();
        assert!(
            output.status.success() && error.contains("8 rows skipped"),
            "{error}"
        );
    }
    let output = run(dir.path(), "merge-book odd.db3 --out merged.db3");
    let error = String::from_utf8(output.stderr).unwrap();
    assert!(
        output.status.success() && error.contains("8 rows skipped"),
        "{error}"
    );
    assert_eq!(rows(&dir.path().join("merged.db3")).len(), 2);
}

#[test]
fn values_in_info_that_are_not_known_are_named() {
    let dir = temp();
    fs::write(dir.path().join("a.pgn"), "1. e4 *\n").unwrap();
    ok(
        dir.path(),
        "make-book -q a.pgn --min-game 1 --obs a.obs.db3",
    );
    let path = dir.path().join("a.obs.db3");
    for (name, value) in [
        ("MinGame", "few"),
        ("MinScore", "101"),
        ("Only", "green"),
        ("Games", "7"),
    ] {
        let db = Connection::open(&path).unwrap();
        db.execute("DELETE FROM Info WHERE Name = ?1", [name])
            .unwrap();
        db.execute("INSERT INTO Info VALUES (?1, ?2)", [name, value])
            .unwrap();
        drop(db);
        let error = fails(dir.path(), "convert a.obs.db3 a.bin", 1);
        assert!(
            error.contains("a.obs.db3") && error.contains(&format!("{name} = \"{value}\"")),
            "{error}"
        );
        let db = Connection::open(&path).unwrap();
        db.execute("DELETE FROM Info WHERE Name = ?1", [name])
            .unwrap();
    }
    // In a database of another program, the name may have any meaning.
    database(
        &path,
        "UPDATE Info SET Value = 'Other 1' WHERE Name = 'Generator'; INSERT INTO Info VALUES ('Games', '7');
         DELETE FROM Info WHERE Name = 'Checksum'",
    );
    ok(dir.path(), "convert -q a.obs.db3 a.bin --min-game 1");
}

#[test]
fn rows_end_with_the_first_error_and_when_they_are_dropped() {
    let dir = temp();
    let path = dir.path().join("many.db3");
    database(
        &path,
        &format!(
            "CREATE TABLE Book (EPD TEXT, Move TEXT, Win INTEGER, Draw INTEGER, Loss INTEGER);
             WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 300000)
             INSERT INTO Book SELECT '{START}', 'm' || i, i, 0, 0 FROM n;"
        ),
    );
    let obs = Obs::open(&path).unwrap();
    assert_eq!(obs.rows().unwrap().count(), 300_000);
    // Drop the reader while the rows are being sorted, while they are being read, and between queries.
    drop(obs.rows_by_epd(&Memory::default()).unwrap());
    for _ in 0..5 {
        let mut rows = obs.rows().unwrap();
        rows.next().unwrap().unwrap();
        assert_eq!(
            obs.moves(&from_text(None, Some("e4")).unwrap())
                .unwrap()
                .len(),
            0
        );
    }
    database(&path, "UPDATE Book SET Win = -1 WHERE Move = 'm200000'");
    let mut rows = obs.rows().unwrap();
    let read = rows.by_ref().take_while(Result::is_ok).count();
    assert!(read < 200_000);
    assert!(rows.next().is_none());
    let err = obs.rows().unwrap().find_map(Result::err).unwrap();
    assert!(
        matches!(
            err.carried(),
            Some(ObsError::ImpossibleGames { games: -1, .. })
        ),
        "{err:?}"
    );
}

#[cfg(unix)]
#[test]
fn a_database_that_is_replaced_goes_on_answering() {
    let dir = temp();
    let at = |name: &str| dir.path().join(name);
    // There are more rows than are read ahead.
    let many = 20_000;
    for (name, mv) in [("a", "e2e4"), ("b", "d2d4")] {
        database(
            &at(&format!("{name}.obs.db3")),
            &format!(
                "CREATE TABLE Book (EPD TEXT, Move TEXT, Win INTEGER, Draw INTEGER, Loss INTEGER);
                 INSERT INTO Book VALUES ('{START}', '{mv}', 1, 0, 0);
                 WITH RECURSIVE n(i) AS (SELECT 2 UNION ALL SELECT i + 1 FROM n WHERE i < {many})
                 INSERT INTO Book SELECT '{E3}', 'm' || i, i, 0, 0 FROM n;"
            ),
        );
    }
    let obs = Obs::open(at("a.obs.db3")).unwrap();
    fs::rename(at("b.obs.db3"), at("a.obs.db3")).unwrap();
    let start = from_text(None, None).unwrap();
    let mut rows = obs.rows_by_epd(&Memory::default()).unwrap();
    for _ in 0..3 {
        assert_eq!(obs.moves(&start).unwrap()[0].mv, "e2e4");
    }
    // Both connections are in use, and a third one to the first file is impossible.
    let more = obs.rows().unwrap();
    let err = obs.moves(&start).unwrap_err();
    assert!(matches!(err.carried(), Some(ObsError::Replaced)), "{err:?}");
    let advice = "while it was open: open the database again";
    let reason = err.carried::<ObsError>().map(ToString::to_string);
    assert!(reason.unwrap().contains(advice), "{err:?}");
    drop(more);
    assert_eq!(obs.moves(&start).unwrap()[0].mv, "e2e4");
    assert_eq!(rows.by_ref().count(), many);
    assert_eq!(
        Obs::open(at("a.obs.db3")).unwrap().moves(&start).unwrap()[0].mv,
        "d2d4"
    );
}

/// Closing a file releases all locks of the process on it, so only SQLite may open the database.
#[cfg(unix)]
#[test]
fn a_further_connection_leaves_readers_their_lock() {
    let Some(python) = python(&["sqlite3"]) else {
        return;
    };
    let dir = temp();
    let path = dir.path().join("a.obs.db3");
    database(
        &path,
        &format!(
            "CREATE TABLE Book (EPD TEXT, Move TEXT, Win INTEGER, Draw INTEGER, Loss INTEGER);
             WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 100000)
             INSERT INTO Book SELECT '{E3}', 'm' || i, i, 0, 0 FROM n;"
        ),
    );
    let can_write = || {
        let script = "import sqlite3, sys\n\
                      db = sqlite3.connect(sys.argv[1], timeout=0)\n\
                      db.execute('UPDATE Book SET Win = 0')\n\
                      db.commit()";
        let output = Command::new(&python)
            .args(["-c", script])
            .arg(&path)
            .output();
        output.unwrap().status.success()
    };
    let obs = Obs::open(&path).unwrap();
    let mut readers: Vec<_> = (0..3).map(|_| obs.rows().unwrap()).collect();
    for reader in &mut readers {
        reader.next().unwrap().unwrap();
    }
    assert!(!can_write());
    drop(readers);
    assert!(can_write());
}

#[test]
fn threads_share_a_database() {
    let dir = temp();
    let path = dir.path().join("a.obs.db3");
    let pgn = sample("famous.pgn");
    ok(
        dir.path(),
        &format!(
            "make-book -q {} --min-game 1 --obs a.obs.db3",
            pgn.display()
        ),
    );
    let obs = Obs::open(&path).unwrap();
    let start = from_text(None, None).unwrap();
    let expected = obs.moves(&start).unwrap();
    assert!(expected.len() > 3);
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                for _ in 0..20 {
                    assert_eq!(obs.moves(&start).unwrap(), expected);
                }
            });
        }
    });
}

/// Twenty kilobytes of rows would expand to gigabytes of records.
#[cfg(target_os = "linux")]
#[test]
fn large_numbers_take_no_memory() {
    let dir = temp();
    database(
        &dir.path().join("large.db3"),
        &format!(
            "CREATE TABLE Book (EPD TEXT, Move TEXT, Win INTEGER, Draw INTEGER, Loss INTEGER);
             WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < 199)
             INSERT INTO Book SELECT '{START}', char(97 + i % 8) || '2' || char(97 + i % 8) || '4', 1 << 36, 1 << 35, i FROM n;"
        ),
    );
    let output = std::process::Command::new("sh")
        .arg("-c")
        .arg("ulimit -v 1000000; exec \"$0\" convert large.db3 large.csv --min-game 1 --threads 2 && exec \"$0\" convert large.db3 large.bin --min-game 1 --threads 2")
        .arg(env!("CARGO_BIN_EXE_polybook"))
        .current_dir(dir.path())
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    ok(
        dir.path(),
        "convert -q large.db3 large.bin --min-game 1 --threads 2",
    );
    let shown = ok_json(dir.path(), "show --json large.bin");
    assert_eq!(shown["moves"].as_array().unwrap().len(), 8);
    assert_eq!(shown["moves"][0]["weight"], 65535);
}

/// An engine that opens its source in time answers the first `go` in time.
#[test]
fn a_damaged_database_is_refused_before_it_is_asked() {
    let dir = temp();
    let path = dir.path().join("a.db3");
    foreign(&path);
    ok(dir.path(), "show a.db3");
    // The index has the order of another column.
    database(
        &path,
        "CREATE INDEX i ON Book (Move);
         PRAGMA writable_schema = ON;
         UPDATE sqlite_schema SET sql = 'CREATE INDEX i ON Book (epd)' WHERE name = 'i'",
    );
    let error = fails(dir.path(), "engine a.db3", 1);
    assert!(error.contains("the database is damaged"), "{error}");
}

#[test]
fn a_missing_column_is_an_error_to_match_on() {
    let dir = temp();
    let path = dir.path().join("other.db3");
    database(&path, "CREATE TABLE Book (EPD, Move, Win, Draw)");
    let err = Obs::open(&path).unwrap_err();
    assert!(matches!(err, Error::Format { .. }));
    assert_eq!(err.carried(), Some(&ObsError::MissingColumn("Loss")));
}

/// `python-chess` writes an en passant square only if the capture is legal, but keys contain it if a pawn is next
/// to the pawn that moved two squares.
#[test]
fn a_pinned_capture_en_passant_is_found_and_exported_where_play_comes_to_it() {
    let dir = temp();
    let before = "4k3/3p4/8/r3P2K/8/8/8/8 b - -";
    let after = "4k3/8/8/r2pP2K/8/8/8/8 w - -";
    let table = "CREATE TABLE Book (EPD TEXT, Move TEXT, Win INTEGER, Draw INTEGER, Loss INTEGER);";
    let row = |epd: &str, mv: &str| format!("INSERT INTO Book VALUES ('{epd}', '{mv}', 5, 0, 0);");
    let by_step = [table, &row(before, "d7d5"), &row(after, "h5g6")].concat();
    database(&dir.path().join("step.db3"), &by_step);
    // No move in this table leads to the position.
    let without = [table, &row(after, "h5g6")].concat();
    database(&dir.path().join("without.db3"), &without);
    let stepped = format!("{}d6 0 2", after.strip_suffix('-').unwrap());
    let unstepped = format!("{after} 0 2");
    for (name, has_stepped) in [("step", true), ("without", false)] {
        let moves = |file: &str, fen: &str| {
            let found = ok_json(dir.path(), &["show", file, "--json", "--fen", fen]);
            found["moves"].as_array().unwrap().len()
        };
        assert_eq!(moves(&format!("{name}.db3"), &stepped), 1);
        assert_eq!(moves(&format!("{name}.db3"), &unstepped), 1);
        ok(
            dir.path(),
            &format!("convert -q {name}.db3 {name}.bin --min-game 1"),
        );
        let book = format!("{name}.bin");
        assert_eq!(moves(&book, &stepped), usize::from(has_stepped));
        assert_eq!(moves(&book, &unstepped), usize::from(!has_stepped));
    }
    // If a database contains such squares in other positions, a missing square means that there is no right to
    // capture.
    let exact = [&by_step[..], &row("4k3/8/8/r1p1P2K/8/8/8/8 w - -", "h5g6")].concat();
    let named = row("4k3/8/8/r3PpK1/8/8/8/8 w - f6", "g5f5");
    database(&dir.path().join("exact.db3"), &[exact, named].concat());
    ok(dir.path(), "convert -q exact.db3 exact.bin --min-game 1");
    let found = ok_json(
        dir.path(),
        &["show", "exact.bin", "--json", "--fen", &unstepped],
    );
    assert_eq!(found["moves"].as_array().unwrap().len(), 1);
}

/// Uses a database with two unusable rows and a usable one, then a row with an illegal move.
#[test]
fn every_command_that_reads_all_rows_names_those_that_it_cannot_use() {
    let dir = temp();
    let at = dir.path();
    let insert = |values: &str| {
        let sql = format!("INSERT INTO Book VALUES {values}");
        let db = Connection::open(at.join("odd.db3")).unwrap();
        db.execute_batch(&sql).unwrap();
    };
    database(
        &at.join("odd.db3"),
        "CREATE TABLE Book (EPD TEXT, Move TEXT, Active INTEGER, Win INTEGER, Draw INTEGER, Loss INTEGER)",
    );
    insert(&format!(
        "('{START}', 'e2e4', 1, 3, 0, 0), ('nonsense', 'e2e4', 1, 3, 0, 0), ('8/8/8/8/8/8/8/8 w - -', 'a1a2', 1, 1, 0, 0)"
    ));
    fs::write(at.join("e4.pgn"), "1. e4 e5 1-0\n").unwrap();
    // Commands that read the rows in the order of their EPDs meet the empty board first.
    let warnings = [
        "warning: odd.db3: 2 rows skipped: \"nonsense\" \"e2e4\": FEN \"nonsense\": ",
        "warning: odd.db3: 2 rows skipped: \"8/8/8/8/8/8/8/8 w - -\" \"a1a2\": FEN ",
    ];
    for command in [
        "convert odd.db3 odd.bin --min-game 1",
        "convert odd.db3 odd.csv",
        "convert odd.db3 odd.epd --plies 1 --min-game 1",
        "repertoire gaps odd.db3 --color white --against e4.pgn",
        "repertoire check odd.db3 e4.pgn --color white",
    ] {
        let output = run(at, command);
        let error = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.success(), "{command}: {error}");
        assert!(
            warnings.iter().any(|warning| error.contains(warning)),
            "{command}: {error}"
        );
    }
    ok(at, "merge-book -q odd.db3 --out merged.db3");
    assert_eq!(rows(&at.join("merged.db3")).len(), 3);
    fails(at, "verify merged.db3", 1);

    let error = fails(at, "verify odd.db3", 1);
    assert!(
        error.contains("odd.db3: 2 rows cannot be used; the first of these rows: \"nonsense\"")
            && error.contains("correct or delete these rows"),
        "{error}"
    );
    let db = Connection::open(at.join("odd.db3")).unwrap();
    db.execute("DELETE FROM Book WHERE EPD NOT LIKE 'rnbq%'", [])
        .unwrap();
    drop(db);
    ok(at, "verify odd.db3");
    insert(&format!("('{START}', 'e2e5', 1, 3, 0, 0)"));
    let error = fails(at, "verify odd.db3", 1);
    assert!(
        error.contains("this is not a legal move in the position"),
        "{error}"
    );
    let output = run(at, "repertoire gaps odd.db3 --color white --against e4.pgn");
    let error = String::from_utf8(output.stderr).unwrap();
    assert!(error.contains("1 row skipped"), "{error}");
}
