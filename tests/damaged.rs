//! Files that are damaged, or are not what their names say.

use std::fs;
#[cfg(unix)]
use std::path::Path;

use rusqlite::Connection;

use crate::common::{fails, ok, sample, temp};

/// Creates a book and a database whose records do not match their checksums, and the games.
fn changed() -> tempfile::TempDir {
    let dir = temp();
    fs::copy(sample("famous.pgn"), dir.path().join("games.pgn")).unwrap();
    let make = "make-book -q games.pgn --min-game 1 --bin book.bin --obs book.db3";
    ok(dir.path(), make);
    let book = dir.path().join("book.bin");
    let mut bytes = fs::read(&book).unwrap();
    *bytes.last_mut().unwrap() ^= 1;
    fs::write(&book, bytes).unwrap();
    Connection::open(dir.path().join("book.db3"))
        .unwrap()
        .execute("UPDATE Book SET Win = Win + 1 WHERE ID = 1", [])
        .unwrap();
    dir
}

#[test]
fn commands_that_read_a_whole_file_refuse_a_wrong_checksum() {
    let dir = changed();
    let dir = dir.path();
    for command in [
        "tree book.bin --max-ply 2",
        "tree book.bin --out tree.txt",
        "tree book.db3 --out tree.txt",
        "info-book book.bin",
        "dump-book book.bin --color white --out lines.txt",
        "diff book.bin book.bin",
        "repertoire build book.bin --color white --by weight --out rep.bin",
        "repertoire build book.db3 --color white --out rep.bin",
        "repertoire gaps book.bin --against games.pgn --color white",
        "repertoire gaps games.pgn --against book.db3 --color white",
        "filter book.bin --out other.bin",
        "edit book.bin --out other.bin --set e4=1",
        "convert book.db3 other.bin",
        "show book.db3",
        "pgheader book.bin -c other",
        "pgheader book.bin -d",
    ] {
        let error = fails(dir, command, 1);
        assert!(error.contains("the checksum in the"), "{command}: {error}");
    }
    assert!(!dir.join("tree.txt").exists() && !dir.join("lines.txt").exists());
    // A damaged file is not repaired by this, and looking up a position does not read the rest.
    ok(dir, "pgheader book.bin -v normal,suicide");
    let error = fails(dir, "verify book.bin", 1);
    assert!(error.contains("checksum"), "{error}");
    ok(dir, "show book.bin");
    // The advice works.
    ok(dir, "verify book.bin --fix mended.bin");
    ok(dir, "tree mended.bin --out tree.txt");
}

#[cfg(unix)]
#[test]
fn files_of_an_index_are_regular_and_of_a_plausible_size() {
    use crate::common::make_fifo;
    let dir = temp();
    let games = sample("famous.pgn");
    ok(
        dir.path(),
        args!["make-book", "-q", games, "--leveldb", "good"],
    );
    let names = fs::read_dir(dir.path().join("good")).unwrap();
    let names: Vec<_> = names.map(|entry| entry.unwrap().file_name()).collect();
    let has = |start: &str| {
        names
            .iter()
            .any(|name| name.to_string_lossy().starts_with(start))
    };
    assert!(
        has("CURRENT") && has("MANIFEST") && has("000003"),
        "{names:?}"
    );
    let broken = |spoilt: &std::ffi::OsStr, spoil: &dyn Fn(&Path)| {
        let index = dir.path().join("broken");
        let _ = fs::remove_dir_all(&index);
        fs::create_dir(&index).unwrap();
        for name in &names {
            if name == spoilt {
                spoil(&index.join(name))
            } else {
                fs::copy(dir.path().join("good").join(name), index.join(name))
                    .map(drop)
                    .unwrap()
            }
        }
        let opened = polybook::index::Index::open(&index);
        opened.unwrap_err().to_string()
    };
    for name in &names {
        let error = broken(name, &|path| make_fifo(path));
        assert!(error.contains("is not a file"), "{name:?}: {error}");
        let zeros = |path: &Path| std::os::unix::fs::symlink("/dev/zero", path).unwrap();
        let error = broken(name, &zeros);
        assert!(error.contains("is not a file"), "{name:?}: {error}");
        let sparse = |path: &Path| fs::File::create(path).unwrap().set_len(3 << 30).unwrap();
        let error = broken(name, &sparse);
        assert!(
            error.contains("is damaged: it has 3221225472 bytes"),
            "{name:?}: {error}"
        );
    }
}

#[cfg(unix)]
#[test]
fn an_index_that_the_system_does_not_open_is_not_called_another_directory() {
    let dir = temp();
    fs::create_dir(dir.path().join("loop")).unwrap();
    std::os::unix::fs::symlink("CURRENT", dir.path().join("loop/CURRENT")).unwrap();
    for command in ["serve loop --listen 127.0.0.1:0", "engine loop"] {
        let error = fails(dir.path(), command, 1);
        assert!(
            error.contains("cannot open loop: Too many levels of symbolic links"),
            "{command}: {error}"
        );
    }
}

/// Returns the names in a directory.
#[cfg(unix)]
fn names_in(dir: &Path) -> Vec<String> {
    let names = fs::read_dir(dir).unwrap();
    let names = names.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<String> = names.collect();
    names.sort();
    names
}

#[cfg(unix)]
#[test]
fn reading_a_database_in_wal_mode_leaves_nothing_beside_it() {
    let dir = temp();
    let games = sample("famous.pgn");
    ok(
        dir.path(),
        args!["make-book", "-q", games, "--obs", "made.db3"],
    );
    // A name with characters that have a meaning in URLs.
    let foreign = dir.path().join("a dir %41?#");
    fs::create_dir(&foreign).unwrap();
    let path = foreign.join("foreign.db3");
    let shown = |name: &Path| ok(dir.path(), args!["show", name]);
    fs::copy(dir.path().join("made.db3"), &path).unwrap();
    let expected = shown(&path);
    let db = Connection::open(&path).unwrap();
    db.execute_batch("PRAGMA journal_mode = WAL; DELETE FROM Info WHERE Name = 'Checksum'")
        .unwrap();
    drop(db);
    assert_eq!(names_in(&foreign), ["foreign.db3"]);
    assert_eq!(shown(&path), expected);
    ok(dir.path(), args!["tree", &path, "--max-ply", "2"]);
    ok(dir.path(), args!["convert", "-q", &path, "made.bin"]);
    assert_eq!(names_in(&foreign), ["foreign.db3"]);

    // Changes of a running program are read.
    let db = Connection::open(&path).unwrap();
    db.execute_batch("UPDATE Book SET Win = 77777").unwrap();
    assert!(shown(&path).contains("77777"));
    // Changes of a program that was killed are refused.
    let dead = temp();
    for name in ["foreign.db3", "foreign.db3-wal"] {
        fs::copy(foreign.join(name), dead.path().join(name)).unwrap();
    }
    let error = fails(dead.path(), "show foreign.db3", 1);
    let advice = "open and close the database with that program, or run sqlite3 FILE \"PRAGMA wal_checkpoint";
    assert!(error.contains(advice), "{error}");
    assert_eq!(names_in(dead.path()), ["foreign.db3", "foreign.db3-wal"]);
    // Follow the advice.
    let db = Connection::open(dead.path().join("foreign.db3")).unwrap();
    db.execute_batch("SELECT * FROM Info").unwrap();
    drop(db);
    assert!(ok(dead.path(), "show foreign.db3").contains("77777"));
}

/// A program that was killed leaves a journal, from which SQLite restores the database when it is opened for writing.
#[cfg(unix)]
#[test]
fn a_journal_of_an_interrupted_program_is_named_and_the_advice_works() {
    let dir = temp();
    let games = sample("famous.pgn");
    let path = dir.path().join("games.db3");
    ok(
        dir.path(),
        args!["make-book", "-q", games, "--min-game", "1", "--obs", &path],
    );
    let expected = ok(dir.path(), "show games.db3");
    let db = Connection::open(&path).unwrap();
    // If few pages fit into memory, SQLite writes changed pages before the end of the transaction. SQLite writes
    // the journal first.
    db.execute_batch("PRAGMA cache_size = 1; BEGIN; UPDATE Book SET Win = Win + 1")
        .unwrap();
    let killed = temp();
    for name in ["games.db3", "games.db3-journal"] {
        fs::copy(dir.path().join(name), killed.path().join(name)).unwrap();
    }
    drop(db);
    let journal = fs::read(killed.path().join("games.db3-journal")).unwrap();
    assert!(journal.starts_with(b"\xd9\xd5\x05\xf9"), "not hot");
    let link = killed.path().join("link.db3");
    std::os::unix::fs::symlink("games.db3", &link).unwrap();
    for command in [
        "show games.db3",
        "show link.db3",
        "tree games.db3",
        "convert games.db3 a.bin",
        "verify games.db3",
        "merge-book games.db3 games.db3 --out b.db3",
    ] {
        let error = fails(killed.path(), command, 1);
        assert!(
            error.contains("the file games.db3-journal exists")
                && error.contains(
                    "or was interrupted; wait until that program has finished, or run sqlite3 FILE"
                ),
            "{command}: {error}"
        );
    }
    let make = format!(
        "make-book -q {} --min-game 1 --obs games.db3 --force",
        games.display()
    );
    let error = fails(killed.path(), &make, 1);
    assert!(
        error.contains("open and close the database with that program, or choose another file"),
        "{error}"
    );
    // Follow the advice.
    let db = Connection::open(killed.path().join("games.db3")).unwrap();
    db.query_row("PRAGMA schema_version", [], |_| Ok(()))
        .unwrap();
    drop(db);
    assert_eq!(ok(killed.path(), "show games.db3"), expected);
    assert_eq!(names_in(killed.path()), ["games.db3", "link.db3"]);
    ok(killed.path(), &make);
}

#[test]
fn the_starting_position_has_the_name_that_uci_gives_it() {
    let dir = temp();
    let key = ok(dir.path(), "key");
    for command in ["key startpos", "key --fen startpos", "key --fen StartPos"] {
        assert_eq!(ok(dir.path(), command), key, "{command}");
    }
    let games = sample("famous.pgn");
    ok(
        dir.path(),
        args!["make-book", "-q", games, "--bin", "book.bin"],
    );
    let moves = ok(dir.path(), "show book.bin");
    assert_eq!(ok(dir.path(), "show book.bin --fen startpos"), moves);
    let after = ok(dir.path(), "key e4");
    assert_eq!(ok(dir.path(), "key --fen startpos --moves e4"), after);
}

#[test]
fn merging_without_a_name_says_first_what_it_writes() {
    let dir = temp();
    let games = sample("famous.pgn");
    ok(
        dir.path(),
        args!["make-book", "-q", games, "--bin", "a.bin"],
    );
    let said = crate::common::run(dir.path(), "merge-book a.bin a.bin").stderr;
    let said = String::from_utf8(said).unwrap();
    assert!(
        said.starts_with("--out is not given, so the output is out.bin\n"),
        "{said}"
    );
}

/// A single damaged bit of a database never changes an answer: a command fails, or answers as before.
#[test]
fn a_damaged_bit_of_a_database_changes_no_answer() {
    if !crate::common::runs_slow_tests() {
        return;
    }
    let dir = temp();
    let dir = dir.path();
    fs::copy(sample("famous.pgn"), dir.join("games.pgn")).unwrap();
    ok(
        dir,
        "make-book -q games.pgn --min-game 1 --max-ply 16 --obs good.db3",
    );
    let good = fs::read(dir.join("good.db3")).unwrap();
    fs::write(dir.join("rep.pgn"), "1. e4 e5 *\n").unwrap();
    let commands = [
        ("show book.db3", ""),
        ("show book.db3 --moves e4", ""),
        ("tree book.db3", ""),
        ("convert book.db3 out.bin", "out.bin"),
        ("convert book.db3 out.csv", "out.csv"),
        ("convert book.db3 out.jsonl", "out.jsonl"),
        (
            "merge-book book.db3 good.db3 --out out.db3 --force",
            "out.db3",
        ),
        (
            "repertoire build book.db3 --color white --out out.pgn",
            "out.pgn",
        ),
        (
            "repertoire gaps rep.pgn --against book.db3 --color white",
            "",
        ),
    ];
    let answer = |(command, file): (&str, &str)| {
        let _ = fs::remove_file(dir.join(file));
        let output = crate::common::run(dir, command);
        output.status.success().then(|| {
            let written = match file {
                "" => Vec::new(),
                file => fs::read(dir.join(file)).unwrap(),
            };
            (output.stdout, written)
        })
    };
    fs::write(dir.join("book.db3"), &good).unwrap();
    let expected = commands.map(answer);
    assert!(expected.iter().all(Option::is_some), "{expected:?}");
    let mut random = fastrand::Rng::with_seed(20);
    let rounds = if crate::common::takes_hours() {
        2000
    } else {
        40
    };
    let mut failures = 0;
    for _ in 0..rounds {
        let mut damaged = good.clone();
        let bit = random.usize(..8 * good.len());
        damaged[bit / 8] ^= 1 << (bit % 8);
        fs::write(dir.join("book.db3"), damaged).unwrap();
        for (command, expected) in commands.iter().zip(&expected) {
            match answer(*command) {
                None => failures += 1,
                found => assert_eq!(found, *expected, "bit {bit}: {command:?}"),
            }
        }
    }
    assert!(failures > 0);
}

/// Views, virtual tables and generated columns would run code of the file.
#[test]
fn databases_whose_tables_are_not_plain_are_refused() {
    let dir = temp();
    let columns = "EPD TEXT, Move TEXT, Win INTEGER, Draw INTEGER, Loss INTEGER";
    let plain = format!("CREATE TABLE Book ({columns});");
    for (name, schema) in [
        (
            "Book",
            format!("CREATE TABLE x ({columns}); CREATE VIEW Book AS SELECT * FROM x;"),
        ),
        (
            "Book",
            format!("CREATE TABLE Book ({columns}, Active INTEGER AS (Win % 2));"),
        ),
        (
            "Book",
            format!("CREATE TABLE Book ({columns}, Other INTEGER AS (Win) STORED);"),
        ),
        (
            "Book",
            format!(
                "CREATE TABLE book ({}, WIN INT AS (1));",
                columns.replace("Win INTEGER, ", "")
            ),
        ),
        (
            "Info",
            format!("{plain} CREATE VIEW Info AS SELECT 'Variant' AS Name, 'atomic' AS Value;"),
        ),
        (
            "Info",
            format!("{plain} CREATE TABLE Info (Name TEXT, Value TEXT AS (Name));"),
        ),
        (
            "EPD",
            "CREATE TABLE Book (EPDID INTEGER, Move TEXT, Win, Draw, Loss); \
             CREATE VIEW EPD AS SELECT 1 AS ID, 'x' AS EPD;"
                .to_owned(),
        ),
    ] {
        let path = dir.path().join("foreign.db3");
        let _ = fs::remove_file(&path);
        Connection::open(&path)
            .unwrap()
            .execute_batch(&schema)
            .unwrap();
        for command in [
            "show foreign.db3",
            "tree foreign.db3",
            "convert foreign.db3 x.bin",
            "merge-book foreign.db3 foreign.db3 --out x.db3",
            "engine foreign.db3",
            "verify foreign.db3",
        ] {
            let error = fails(dir.path(), command, 1);
            let expected = format!("the table {name} is a view or a virtual table");
            assert!(error.contains(&expected), "{schema}: {command}: {error}");
            assert!(
                error.contains("copy its rows to an ordinary table"),
                "{error}"
            );
        }
    }
    // The advice works.
    let path = dir.path().join("copied.db3");
    let copy = "CREATE VIEW Old AS SELECT 'rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq -' AS EPD, 'e2e4' AS Move,
                1 AS Win, 0 AS Draw, 0 AS Loss; CREATE TABLE Book AS SELECT * FROM Old;";
    Connection::open(&path)
        .unwrap()
        .execute_batch(copy)
        .unwrap();
    assert!(ok(dir.path(), "show copied.db3").contains("e2e4"));
    // A trigger is never run, because polybook only reads.
    let path = dir.path().join("trigger.db3");
    let trigger = "CREATE TRIGGER t AFTER INSERT ON Book BEGIN DELETE FROM Book; END;";
    Connection::open(&path)
        .unwrap()
        .execute_batch(&(plain + trigger))
        .unwrap();
    ok(dir.path(), "show trigger.db3");
}
