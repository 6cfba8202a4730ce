//! OOBS databases: made from games, read as SQL, merged, converted, and written by other programs.

use std::{fs, path::Path, process::Command, sync::atomic::AtomicBool};

use crate::common::{corpus, fails, ok, ok_json, program, python, run, run_python, sample, temp};
use polybook::{
    counts::Memory,
    obs::{ObsWriter, merge_databases},
};
use rusqlite::Connection;

const START: &str = "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq -";

/// The EPD, move, `Active`, wins, draws, losses and comment of a row.
type Row = (String, String, i64, i64, i64, i64, Option<String>);

/// Returns all rows without their numbers, in the order of the numbers.
fn rows(db: &Path) -> Vec<Row> {
    let db = Connection::open(db).unwrap();
    let mut query = db
        .prepare("SELECT EPD, Move, Active, Win, Draw, Loss, Comment FROM Book ORDER BY ID")
        .unwrap();
    let rows = query
        .query_map([], |row| {
            Ok((
                row.get(0)?,
                row.get(1)?,
                row.get(2)?,
                row.get(3)?,
                row.get(4)?,
                row.get(5)?,
                row.get(6)?,
            ))
        })
        .unwrap();
    rows.collect::<Result<_, _>>().unwrap()
}

#[test]
fn damage_in_a_database_is_noticed() {
    let dir = temp();
    let games = sample("famous.pgn");
    ok(
        dir.path(),
        args![
            "make-book",
            "-q",
            games,
            "--min-game",
            "1",
            "--obs",
            "a.obs.db3"
        ],
    );
    let of = |path: &str| ok_json(dir.path(), args!["verify", path, "--json"]);
    assert_eq!(of("a.obs.db3")["checksum"], "matches");
    ok(dir.path(), "merge-book a.obs.db3 a.obs.db3 --out b.obs.db3");
    assert_eq!(of("b.obs.db3")["checksum"], "matches");
    let good = fs::read(dir.path().join("a.obs.db3")).unwrap();
    let bad = dir.path().join("bad.obs.db3");
    let mut rng = fastrand::Rng::with_seed(3);
    let table = |path: &str| {
        let out = dir.path().join("table.csv");
        let made = run(
            dir.path(),
            args!["convert", "-q", "--force", path, "table.csv"],
        );
        made.status.success().then(|| fs::read(out).unwrap())
    };
    let whole = table("a.obs.db3");
    let mut refused = 0;
    for _ in 0..100 {
        let mut bytes = good.clone();
        let at = rng.usize(100..bytes.len());
        bytes[at] ^= rng.u8(1..);
        fs::write(&bad, &bytes).unwrap();
        match table("bad.obs.db3") {
            Some(table) => assert!(Some(table) == whole, "byte {at}"),
            None => {
                let verified = run(dir.path(), "verify bad.obs.db3");
                assert!(!verified.status.success(), "byte {at}");
                refused += 1;
            }
        }
    }
    assert!(refused > 50, "too little damage reaches a table: {refused}");
    // If the reader of a table closes the pipe early, the command ends quietly.
    let pipe = format!(
        "{{ '{}' convert a.obs.db3 - --format csv; echo $? >status; }} | head -c 10 >head.txt; exit $(cat status)",
        env!("CARGO_BIN_EXE_polybook")
    );
    let mut shell = Command::new("sh");
    let ended = shell.args(["-c", &pipe]).current_dir(dir.path()).output();
    let ended = ended.unwrap();
    assert!(
        ended.status.success() && ended.stderr.is_empty(),
        "{ended:?}"
    );
    // An edit by another program is a difference.
    fs::write(&bad, &good).unwrap();
    let db = Connection::open(&bad).unwrap();
    db.execute("UPDATE Book SET Win = Win + 1 WHERE ID = 1", [])
        .unwrap();
    drop(db);
    fs::write(dir.path().join("out.bin"), []).unwrap();
    for line in [
        "verify bad.obs.db3",
        "convert bad.obs.db3 out.bin",
        "convert bad.obs.db3 lines.pgn --plies 2",
        "convert bad.obs.db3 positions.epd --plies 2",
        "convert bad.obs.db3 out.csv",
        "convert bad.obs.db3 out.jsonl --scale position",
        "merge-book a.obs.db3 bad.obs.db3 --out out.obs.db3",
    ] {
        let error = fails(dir.path(), line, 1);
        assert!(
            error.contains("bad.obs.db3: the checksum"),
            "{line}: {error}"
        );
        assert!(
            error.contains("another program changed it"),
            "{line}: {error}"
        );
    }
    assert!(fs::read(dir.path().join("out.bin")).unwrap().is_empty());
    let db = Connection::open(&bad).unwrap();
    db.execute("DELETE FROM Info WHERE Name = 'Checksum'", [])
        .unwrap();
    drop(db);
    assert_eq!(of("bad.obs.db3")["checksum"], serde_json::Value::Null);
    assert!(table("bad.obs.db3").is_some_and(|table| Some(table) != whole));
}

fn number(db: &Path, query: &str) -> i64 {
    let db = Connection::open(db).unwrap();
    db.query_row(query, [], |row| row.get(0)).unwrap()
}

/// Makes a database of the sample games, and returns the report.
fn make(dir: &Path, options: &str) -> serde_json::Value {
    let (famous, selfplay) = (sample("famous.pgn"), sample("selfplay.pgn"));
    ok_json(
        dir,
        &format!(
            "make-book -q --json {} {} {options}",
            famous.display(),
            selfplay.display()
        ),
    )
}

/// A run says how many moves a database lacks because they were played too seldom.
#[test]
fn rare_moves_are_counted() {
    let dir = temp();
    let dir = dir.path();
    let games = "1. e4 e5 *\n\n".repeat(3) + "1. e4 c5 *\n\n1. d4 *\n\n";
    fs::write(dir.join("games.pgn"), games).unwrap();
    let output = run(dir, "make-book games.pgn --obs games.obs.db3");
    let said = String::from_utf8(output.stderr).unwrap();
    let line =
        "games.obs.db3: 2 rows; 2 moves were played fewer than 3 times: --min-game 1 keeps them\n";
    assert!(said.contains(line), "{said}");
    let report = ok_json(
        dir,
        "make-book -q games.pgn --obs games.obs.db3 --force --json --min-game 1",
    );
    assert_eq!(
        (&report["obs"]["rows"], &report["obs"]["rare"]),
        (&4.into(), &0.into())
    );
}

#[test]
fn every_half_move_is_in_the_database_in_order() {
    let dir = temp();
    let report = make(dir.path(), "--min-game 1 --obs all.obs.db3 --bin all.bin");
    let db = dir.path().join("all.obs.db3");
    let found = rows(&db);
    assert_eq!(report["obs"]["path"], "all.obs.db3");
    assert_eq!(report["obs"]["rare"], 0);
    assert_eq!(report["obs"]["rows"], found.len());
    assert_eq!(report["entries"], found.len());
    let games = |row: &Row| row.3 + row.4 + row.5;
    assert_eq!(report["plies"], found.iter().map(games).sum::<i64>());
    assert!(found.is_sorted_by(|a, b| {
        (&a.0, std::cmp::Reverse(games(a)), &a.1) < (&b.0, std::cmp::Reverse(games(b)), &b.1)
    }));
    assert!(found.iter().all(|row| row.2 == 1 && row.6.is_none()));
    let castled = found.iter().filter(|row| row.1 == "e1g1").count();
    assert!(castled > 50, "{castled}");

    // The tables are exactly those of the standard's own tool.
    let schema = |query: &str| {
        let db = Connection::open(&db).unwrap();
        let text: String = db.query_row(query, [], |row| row.get(0)).unwrap();
        text.split_whitespace()
            .collect::<Vec<_>>()
            .join(" ")
            .replace("( ", "(")
            .replace(" )", ")")
    };
    assert_eq!(
        schema("SELECT sql FROM sqlite_master WHERE name = 'Book'"),
        "CREATE TABLE Book (ID INTEGER PRIMARY KEY AUTOINCREMENT, EPD TEXT NOT NULL, Move TEXT, \
         Active INTEGER DEFAULT 1, Win INTEGER, Draw INTEGER, Loss INTEGER, Comment TEXT)"
    );
    assert_eq!(
        schema("SELECT sql FROM sqlite_master WHERE name = 'Info'"),
        "CREATE TABLE Info (Name TEXT UNIQUE NOT NULL, Value TEXT)"
    );
    assert_eq!(
        schema(
            "SELECT group_concat(Name || '=' || Value, ';') FROM Info WHERE Name IN ('Version', 'Variant', 'ItemCount')"
        ),
        format!("ItemCount={};Variant=standard;Version=0.1", found.len())
    );
    assert_eq!(schema("PRAGMA integrity_check"), "ok");
    let plan = "EXPLAIN QUERY PLAN SELECT * FROM Book WHERE EPD = 'x'";
    let db = Connection::open(&db).unwrap();
    let plan: String = db.query_row(plan, [], |row| row.get(3)).unwrap();
    assert!(plan.contains("USING INDEX"), "{plan}");
}

#[test]
fn sqlite3_runs_every_statement_of_the_standard() {
    let Some(sqlite3) = program(&["sqlite3"]) else {
        return;
    };
    let dir = temp();
    make(dir.path(), "--min-game 1 --obs all.obs.db3");
    for statement in [
        format!("SELECT * FROM Book WHERE EPD=\"{START}\""),
        format!(
            "SELECT *, (2*Win + Draw) Score FROM Book WHERE EPD=\"{START}\" ORDER BY Score DESC"
        ),
        "CREATE INDEX EPDIndex ON Book (EPD)".to_owned(),
        format!("SELECT * FROM Book WHERE EPD=\"{START}\""),
    ] {
        let output = Command::new(&sqlite3)
            .current_dir(dir.path())
            .args(["-bail", "all.obs.db3", &statement])
            .output()
            .unwrap();
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{statement}: {error}");
        let lines = String::from_utf8(output.stdout).unwrap();
        if statement.starts_with("SELECT") {
            assert!(lines.lines().count() >= 4, "{statement}: {lines}");
        }
    }
}

#[test]
fn counts_equal_those_of_python_chess() {
    let Some(python) = python(&["chess", "sqlite3"]) else {
        return;
    };
    let dir = temp();
    for name in ["famous.pgn", "selfplay.pgn"] {
        let pgn = sample(name);
        ok(
            dir.path(),
            &format!(
                "make-book -q {} --min-game 1 --obs a.obs.db3 --force",
                pgn.display()
            ),
        );
        run_python(
            &python,
            "obs_counts.py",
            &[&dir.path().join("a.obs.db3"), &pgn],
        );
    }
}

#[test]
fn memory_and_threads_change_nothing() {
    let dir = temp();
    make(dir.path(), "--min-game 1 --obs all.obs.db3");
    make(
        dir.path(),
        "--min-game 1 --obs small.obs.db3 --memory 64KiB --threads 3",
    );
    make(
        dir.path(),
        "--min-game 1 --obs one.obs.db3 --threads 1 --bin a.bin",
    );
    let bytes = |name: &str| fs::read(dir.path().join(name)).unwrap();
    assert!(bytes("all.obs.db3") == bytes("small.obs.db3"));
    assert!(bytes("all.obs.db3") == bytes("one.obs.db3"));
}

#[test]
fn a_database_omits_dropped_moves_but_keeps_moves_that_only_lost() {
    let dir = temp();
    let pgn = "[Result \"0-1\"]\n1. e4 e5 0-1\n\n[Result \"0-1\"]\n1. e4 c5 0-1\n\n[Result \"1-0\"]\n1. d4 1-0\n";
    fs::write(dir.path().join("a.pgn"), pgn).unwrap();
    let made = |options: &str| {
        ok(
            dir.path(),
            &format!("make-book -q a.pgn --obs a.obs.db3 --force --allow-empty {options}"),
        );
        let rows = rows(&dir.path().join("a.obs.db3")).into_iter();
        rows.map(|row| format!("{} {}-{}-{}", row.1, row.3, row.4, row.5))
            .collect::<Vec<_>>()
            .join(", ")
    };
    let all = "c7c5 1-0-0, e7e5 1-0-0, e2e4 0-0-2, d2d4 1-0-0";
    assert_eq!(made("--min-game 1"), all);
    assert_eq!(made("--min-game 2"), "e2e4 0-0-2");
    assert_eq!(made("--min-game 1 --only-black"), "c7c5 1-0-0, e7e5 1-0-0");
    assert_eq!(
        made("--min-game 1 --only-white --min-score 50"),
        "d2d4 1-0-0"
    );
    assert_eq!(made(""), "");
}

#[test]
fn positions_of_games_from_a_fen_are_found_again() {
    let dir = temp();
    // The en passant square is present only if a pawn can capture there, as in the key.
    let pgn = "[FEN \"4k3/3p4/8/4P3/8/8/8/4K3 b - - 0 1\"]\n\n1... d5 2. exd6 *\n\n\
               [FEN \"4k3/3p4/8/8/4P3/8/8/4K3 b - - 0 1\"]\n\n1... d5 2. e5 *\n\n\
               [FEN \"4k3/3p4/8/8/4P3/8/8/4K3 b - - 7 30\"]\n\n30... d5 31. e5 *\n\n1. e4 *\n";
    fs::write(dir.path().join("a.pgn"), pgn).unwrap();
    ok(
        dir.path(),
        "make-book -q a.pgn --min-game 1 --obs a.obs.db3",
    );
    let found: Vec<_> = rows(&dir.path().join("a.obs.db3"))
        .into_iter()
        .map(|row| format!("{} {} {}", row.0, row.1, row.4))
        .collect();
    assert_eq!(
        found,
        [
            "4k3/3p4/8/4P3/8/8/8/4K3 b - - d7d5 1",
            "4k3/3p4/8/8/4P3/8/8/4K3 b - - d7d5 2",
            "4k3/8/8/3p4/4P3/8/8/4K3 w - - e4e5 2",
            "4k3/8/8/3pP3/8/8/8/4K3 w - d6 e5d6 1",
            &format!("{START} e2e4 1"),
        ]
    );
}

#[test]
fn an_existing_database_is_replaced_only_by_force() {
    let dir = temp();
    let at = |name: &str| dir.path().join(name);
    fs::write(at("a.pgn"), "1. e4 *\n").unwrap();
    ok(
        dir.path(),
        "make-book -q a.pgn --obs a.obs.db3 --min-game 1",
    );
    let old = fs::read(at("a.obs.db3")).unwrap();
    let error = fails(dir.path(), "make-book a.pgn --obs a.obs.db3", 1);
    assert!(
        error.contains("a.obs.db3 exists") && error.contains("--force"),
        "{error}"
    );
    // A failed run does not modify it either.
    fs::write(at("bad.pgn"), "1. Ke2 *\n").unwrap();
    fails(
        dir.path(),
        "make-book bad.pgn --obs a.obs.db3 --force --strict",
        1,
    );
    assert_eq!(fs::read(at("a.obs.db3")).unwrap(), old);
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 3);
    fs::write(at("a.pgn"), "1. d4 d5 *\n").unwrap();
    ok(
        dir.path(),
        "make-book -q a.pgn --obs a.obs.db3 --force --min-game 1",
    );
    assert_eq!(rows(&at("a.obs.db3")).len(), 2);
    assert!(!at("book.bin").exists());
}

#[test]
fn what_is_not_a_database_is_never_replaced() {
    let dir = temp();
    let at = |name: &str| dir.path().join(name);
    fs::write(at("a.pgn"), "1. e4 *\n").unwrap();
    fs::write(at("a.obs.db3"), "mine").unwrap();
    Connection::open(at("other.db3"))
        .unwrap()
        .execute_batch("CREATE TABLE Games (x)")
        .unwrap();
    for name in ["a.obs.db3", "other.db3"] {
        let old = fs::read(at(name)).unwrap();
        let error = fails(
            dir.path(),
            &format!("make-book a.pgn --force --obs {name}"),
            1,
        );
        assert!(error.contains("not an OOBS database"), "{error}");
        assert_eq!(fs::read(at(name)).unwrap(), old);
    }
}

/// SQLite applies the journal and the write-ahead log next to a database, which it finds by their names.
#[test]
fn a_database_is_not_written_where_sqlite_would_add_old_changes_to_it() {
    let dir = temp();
    let at = |name: &str| dir.path().join(name);
    fs::write(at("a.pgn"), "1. e4 *\n").unwrap();
    ok(
        dir.path(),
        "make-book -q a.pgn --obs a.obs.db3 --min-game 1",
    );
    let make = "make-book -q a.pgn --min-game 1 --force --obs";
    let merge = "merge-book -q a.obs.db3 --out";
    let refused = |command: &str| {
        let error = fails(dir.path(), command, 1);
        assert!(error.contains("or was interrupted"), "{error}");
    };

    fs::copy(at("a.obs.db3"), at("open.db3")).unwrap();
    let open = Connection::open(at("open.db3")).unwrap();
    open.execute_batch("PRAGMA journal_mode = WAL; UPDATE Book SET Win = 7")
        .unwrap();
    let old = fs::read(at("open.db3")).unwrap();
    refused(&format!("{make} open.db3"));
    refused(&format!("{merge} open.db3"));
    assert_eq!(fs::read(at("open.db3")).unwrap(), old);
    drop(open);
    ok(dir.path(), &format!("{make} open.db3"));
    ok(dir.path(), "verify open.db3");

    // The database was removed, but the journal of a killed program is left.
    fs::write(at("gone.db3-journal"), "changes").unwrap();
    refused(&format!("{make} gone.db3"));
    #[cfg(unix)]
    {
        std::os::unix::fs::symlink("gone.db3", at("link.db3")).unwrap();
        refused(&format!("{make} link.db3"));
    }
    assert!(!at("gone.db3").exists());
    // A running transaction may have a journal without a header, and a reader may have an empty log.
    for (ending, bytes) in [("-journal", &[0; 512][..]), ("-wal", &[]), ("-shm", &[])] {
        fs::remove_file(at("gone.db3-journal")).unwrap();
        let side_file = at(&format!("gone.db3{ending}"));
        fs::write(&side_file, bytes).unwrap();
        refused(&format!("{make} gone.db3"));
        fs::remove_file(side_file).unwrap();
        fs::write(at("gone.db3-journal"), "").unwrap();
    }
    // SQLite ignores an empty journal, and a database in this mode that no program has open is complete.
    ok(dir.path(), &format!("{make} gone.db3"));
    Connection::open(at("gone.db3"))
        .unwrap()
        .execute_batch("PRAGMA journal_mode = WAL; UPDATE Book SET Win = 7")
        .unwrap();
    ok(dir.path(), &format!("{make} gone.db3"));
    ok(dir.path(), "verify gone.db3");

    // Another program opens the database while the new one is being made.
    let out = ObsWriter::create(at("late.db3"), true).unwrap();
    fs::write(at("late.db3-wal"), "changes").unwrap();
    let (memory, stop) = (Memory::default(), AtomicBool::new(false));
    let (_, made) = merge_databases(&[at("a.obs.db3")], out, &memory, &stop).unwrap();
    let err = made.commit().unwrap_err().to_string();
    assert!(
        err.contains("late.db3") && err.contains("late.db3.new"),
        "{err}"
    );
    assert!(!at("late.db3").exists() && at("late.db3.new").exists());
}

/// SQLite reads the replaced database by a URI, in which two slashes begin an authority.
#[cfg(unix)]
#[test]
fn a_database_whose_path_begins_with_two_slashes_is_replaced() {
    let dir = temp();
    let dir = dir.path();
    let make = format!(
        "make-book -q {} --force --obs /{}/a%?.obs.db3",
        sample("famous.pgn").display(),
        dir.display()
    );
    ok(dir, &make);
    ok(dir, &make);
    ok(dir, "verify a%?.obs.db3");
}

/// Options that filter and weigh moves differently.
const OPTIONS: [&str; 6] = [
    "",
    "--min-game 1",
    "--only-white --uniform --min-game 2",
    "--min-score 55 --scale position --no-header",
    "--win-factor 30000 --draw-factor 100 --loss-factor 1 --only-black --min-game 1",
    "--comment mine",
];

#[test]
fn the_converted_book_is_the_direct_one_to_the_byte() {
    let dir = temp();
    for counted in [
        "",
        "--max-ply 30 --unfinished skip --result 1-0 --result 0-1",
    ] {
        make(
            dir.path(),
            &format!("{counted} --min-game 1 --obs all.obs.db3 --force"),
        );
        for options in OPTIONS {
            make(
                dir.path(),
                &format!("{counted} {options} --bin direct.bin --force"),
            );
            ok(
                dir.path(),
                &format!("convert -q all.obs.db3 converted.bin {options} --force"),
            );
            let bytes = |name: &str| fs::read(dir.path().join(name)).unwrap();
            assert!(
                bytes("direct.bin") == bytes("converted.bin"),
                "{counted} {options}"
            );
            assert!(bytes("direct.bin").len() > 160);
        }
    }
}

#[test]
fn a_database_without_the_seldom_moves_says_so_in_its_books() {
    let dir = temp();
    make(
        dir.path(),
        "--min-game 4 --obs some.obs.db3 --bin direct.bin",
    );
    // The default would keep more moves, but the database no longer contains them.
    ok(dir.path(), "convert -q some.obs.db3 converted.bin");
    let bytes = |name: &str| fs::read(dir.path().join(name)).unwrap();
    assert!(bytes("direct.bin") == bytes("converted.bin"));
}

#[test]
fn opening_suites_hold_each_line_or_position_once_the_commonest_first() {
    let dir = temp();
    // Two lines lead to one position, one line ends early, and one is longer.
    let pgn = "1. d4 d5 2. c4 e6 *\n\n1. d4 d5 2. c4 c6 *\n\n1. c4 d5 2. d4 e6 *\n\n1. d4 d5 2. c4 e6 3. Nc3 *\n\n1. d4 *\n\n1. e4 e5 2. Nf3 Nc6 *\n";
    fs::write(dir.path().join("a.pgn"), pgn).unwrap();
    ok(
        dir.path(),
        "make-book -q a.pgn --min-game 1 --obs a.obs.db3",
    );
    ok(
        dir.path(),
        "convert -q a.obs.db3 s.pgn --plies 4 --min-game 1",
    );
    let suite = fs::read_to_string(dir.path().join("s.pgn")).unwrap();
    let lines: Vec<&str> = suite
        .lines()
        .filter(|line| line.starts_with("1."))
        .collect();
    assert_eq!(
        lines,
        [
            "1. d4 d5 2. c4 e6 {3 times, White scored 50.0%} *",
            "1. c4 d5 2. d4 c6 {1 time, White scored 50.0%} *",
            "1. c4 d5 2. d4 e6 {3 times, White scored 50.0%} *",
            "1. d4 d5 2. c4 c6 {1 time, White scored 50.0%} *",
            "1. e4 e5 2. Nf3 Nc6 {1 time, White scored 50.0%} *"
        ]
    );
    ok(
        dir.path(),
        "convert -q a.obs.db3 s.epd --plies 4 --min-game 1",
    );
    let positions = fs::read_to_string(dir.path().join("s.epd")).unwrap();
    assert_eq!(
        positions,
        "rnbqkbnr/ppp2ppp/4p3/3p4/2PP4/8/PP2PPPP/RNBQKBNR w KQkq - c0 \"3 times, White scored 50.0%\";\n\
         r1bqkbnr/pppp1ppp/2n5/4p3/4P3/5N2/PPPP1PPP/RNBQKB1R w KQkq - c0 \"1 time, White scored 50.0%\";\n\
         rnbqkbnr/pp2pppp/2p5/3p4/2PP4/8/PP2PPPP/RNBQKBNR w KQkq - c0 \"1 time, White scored 50.0%\";\n"
    );
    ok(
        dir.path(),
        "convert -q --force a.obs.db3 s.epd --plies 4 --min-game 2",
    );
    assert_eq!(
        fs::read_to_string(dir.path().join("s.epd"))
            .unwrap()
            .lines()
            .count(),
        1
    );
    let error = fails(
        dir.path(),
        "convert a.obs.db3 s.pgn --plies 9 --min-game 1 --force",
        1,
    );
    assert!(
        error.contains("the longest line has only 5 half-moves, but lines of 9 are requested"),
        "{error}"
    );
    let error = fails(
        dir.path(),
        "convert a.obs.db3 s.epd --min-game 50 --force",
        1,
    );
    assert!(error.contains("or use a smaller --min-game"), "{error}");

    // The suite can be read as PGN up to the last move.
    let report = ok_json(
        dir.path(),
        "make-book -q --json --strict --min-game 1 s.pgn --bin s.bin",
    );
    assert_eq!(report["games"]["counted"], 5);
    assert_eq!(report["plies"], 20);
}

/// A database counts how often moves were played, not in how many games. It also lists the moves whose games it
/// contains.
#[test]
fn suites_of_databases_count_occurrences_and_report_missing_games() {
    let dir = temp();
    let games = "1. Nf3 Nf6 2. Ng1 Ng8 3. Nf3 Nf6 1-0\n\n1. e4 e5 0-1\n\n1. e4 c5 0-1\n\n";
    fs::write(dir.path().join("a.pgn"), games).unwrap();
    ok(
        dir.path(),
        "make-book -q a.pgn --min-game 1 --obs all.obs.db3 --suite games.epd --plies 2",
    );
    let convert = |line: &str| {
        let made = run(dir.path(), line);
        assert!(made.status.success(), "{made:?}");
        String::from_utf8(made.stderr).unwrap()
    };
    let said = convert("convert all.obs.db3 all.epd --plies 2 --min-game 1");
    assert!(!said.contains("warning"), "{said}");
    let notes = |name: &str| {
        let suite = fs::read_to_string(dir.path().join(name)).unwrap();
        let notes = suite.lines().map(|line| line.split_once("c0 ").unwrap().1);
        notes.map(str::to_owned).collect::<Vec<_>>()
    };
    let [once, lost] = ["1 game, White scored 100.0%", "1 game, White scored 0.0%"];
    let games = [lost, lost, once].map(|note| format!("\"{note}\";"));
    let mut found = notes("games.epd");
    found.sort();
    assert_eq!(found, games);
    assert_eq!(notes("all.epd")[0], "\"2 times, White scored 100.0%\";");
    convert("convert all.obs.db3 all.epd --plies 2 --min-game 1 --force");

    ok(
        dir.path(),
        "make-book -q a.pgn --min-game 2 --obs part.obs.db3",
    );
    let said = convert("convert part.obs.db3 part.epd --plies 1 --min-game 1");
    assert!(
        said.contains(
            "warning: part.obs.db3: this database does not contain moves played fewer than 2 times"
        ),
        "{said}"
    );
    let said = convert("convert part.obs.db3 part.bin --min-game 1");
    assert!(
        said.contains("so the book does not contain these moves either"),
        "{said}"
    );
    let said = convert("convert part.obs.db3 half.bin --min-game 2");
    assert!(!said.contains("warning"), "{said}");
    let said = convert("convert part.obs.db3 part.csv");
    assert!(!said.contains("warning"), "{said}");
}

#[test]
fn a_book_is_converted_to_csv() {
    let dir = temp();
    fs::write(dir.path().join("a.pgn"), "1. e4 *\n").unwrap();
    ok(dir.path(), "make-book -q a.pgn --min-game 1");
    ok(dir.path(), "convert book.bin book.csv");
    assert_eq!(
        fs::read_to_string(dir.path().join("book.csv")).unwrap(),
        "Key,FEN,SAN,UCI,Weight,Learn\n\
         463b96181691fc9c,rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1,e4,e2e4,1,0\n"
    );
}

/// Tests sums, bytes and merging with the big corpus.
#[test]
fn databases_of_the_corpus_of_masters_have_right_sums_and_merge() {
    let Some(corpus) = corpus() else {
        return;
    };
    let dir = temp();
    let masters = corpus.join("masters.pgn");
    let pgn = masters.display();
    let report = ok_json(
        dir.path(),
        &format!("make-book -q --json {pgn} --min-game 1 --obs all.obs.db3"),
    );
    let db = dir.path().join("all.obs.db3");
    let sum = number(&db, "SELECT sum(Win + Draw + Loss) FROM Book");
    assert_eq!(report["plies"], sum);
    for options in OPTIONS {
        ok(
            dir.path(),
            &format!("make-book -q {pgn} {options} --bin direct.bin --force"),
        );
        ok(
            dir.path(),
            &format!("convert -q all.obs.db3 converted.bin {options} --force"),
        );
        let bytes = |name: &str| fs::read(dir.path().join(name)).unwrap();
        assert!(bytes("direct.bin") == bytes("converted.bin"), "{options}");
    }
    let text = fs::read(&masters).unwrap();
    let starts: Vec<usize> = memchr::memmem::find_iter(&text, b"[Event ").collect();
    let cuts = [
        0,
        starts[starts.len() / 5],
        starts[starts.len() / 2],
        text.len(),
    ];
    for (i, cut) in cuts.windows(2).enumerate() {
        fs::write(dir.path().join("part.pgn"), &text[cut[0]..cut[1]]).unwrap();
        ok(
            dir.path(),
            &format!("make-book -q part.pgn --min-game 1 --obs {i}.obs.db3"),
        );
    }
    ok(
        dir.path(),
        "merge-book -q 0.obs.db3 1.obs.db3 2.obs.db3 --out merged.obs.db3",
    );
    assert!(rows(&db) == rows(&dir.path().join("merged.obs.db3")));
}

#[cfg(unix)]
#[test]
fn a_database_can_go_to_standard_output_or_a_device() {
    let dir = temp();
    make(dir.path(), "--min-game 1 --obs all.obs.db3");
    let pgn = format!(
        "{} {}",
        sample("famous.pgn").display(),
        sample("selfplay.pgn").display()
    );
    fs::create_dir(dir.path().join("temp")).unwrap();
    let output = crate::common::run(
        dir.path(),
        &format!("make-book -q {pgn} --min-game 1 --obs - --temp-dir temp"),
    );
    assert!(output.status.success(), "{output:?}");
    assert!(output.stdout == fs::read(dir.path().join("all.obs.db3")).unwrap());
    ok(
        dir.path(),
        &format!("make-book -q {pgn} --min-game 1 --obs /dev/null"),
    );
    if Path::new("/dev/full").exists() {
        let error = fails(
            dir.path(),
            &format!("make-book {pgn} --obs /dev/full --temp-dir temp"),
            1,
        );
        assert!(error.contains("cannot write /dev/full"), "{error}");
    }
    assert_eq!(fs::read_dir(dir.path().join("temp")).unwrap().count(), 0);
}

#[test]
fn games_from_many_positions_are_found_again() {
    let dir = temp();
    let squares = (0..64).flat_map(|a| (0..64).map(move |b| (a, b)));
    let mut pgn = String::new();
    let mut games = 0;
    for (white, black) in squares {
        let (wf, wr, bf, br) = (white % 8, white / 8, black % 8, black / 8);
        if i32::abs(wf - bf) < 2 && i32::abs(wr - br) < 2 {
            continue;
        }
        let row = |rank: i32| -> String {
            let piece = |file: i32| match (file, rank) {
                at if at == (wf, wr) => "K",
                at if at == (bf, br) => "k",
                _ => "1",
            };
            (0..8).map(piece).collect()
        };
        let board: Vec<String> = (0..8).rev().map(row).collect();
        let mv = match (wf, bf) {
            (0, _) => format!("Kb{}", wr + 1),
            (file, _) => format!("K{}{}", (b'a' + file as u8 - 1) as char, wr + 1),
        };
        pgn.push_str(&format!(
            "[FEN \"{} w - - 0 1\"]\n\n1. {mv} *\n\n",
            board.join("/")
        ));
        games += 1;
    }
    fs::write(dir.path().join("a.pgn"), pgn).unwrap();
    let report = ok_json(
        dir.path(),
        "make-book -q --json a.pgn --min-game 1 --obs a.obs.db3 --keep-prefix",
    );
    assert_eq!(report["games"]["read"], games);
    assert_eq!(report["obs"]["rows"], report["entries"]);
    assert!(report["entries"].as_u64().unwrap() > 2500);
}
