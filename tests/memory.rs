//! Peak memory is at most `--memory` plus 64 MiB, for any input.
//!
//! The peak is the kernel's `VmHWM` of the process, sampled while it runs. The inputs are hostile: empty games, files
//! with only tags, a starting position for each game, and numbers and windows that are too large.

use std::{
    collections::{BTreeSet, HashMap},
    fs::{self, File},
    io::{BufWriter, Write},
    path::Path,
    process::{Command, Output, Stdio},
    sync::Arc,
    thread,
    time::Duration,
};

use parquet::{
    data_type::{BoolType, Int32Type, Int64Type},
    file::{metadata::SortingColumn, properties::WriterProperties, writer::SerializedFileWriter},
    schema::parser::parse_message_type,
};

use crate::common::{ok, polybook_in, sample, skip, temp};
use polybook::{
    book::Entry,
    position::{BookMove, Keyed},
};
use shakmaty::{Chess, Position};

/// The memory in MiB that a command may use in addition to its budget.
const BESIDES: u64 = 64;

/// A finished command with its peak memory in MiB.
struct Measured {
    output: Output,
    peak: u64,
}

/// Runs a command, and samples its memory until it exits.
fn measure(mut command: Command) -> Measured {
    let mut child = command
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let status = format!("/proc/{}/status", child.id());
    let mut peak = 0;
    while child.try_wait().unwrap().is_none() {
        peak = peak.max(high_water(&status).unwrap_or(0));
        thread::sleep(Duration::from_millis(2));
    }
    Measured {
        output: child.wait_with_output().unwrap(),
        peak: peak >> 10,
    }
}

/// Returns the peak memory of a process in KiB. A process that has just exited reports none.
fn high_water(status: &str) -> Option<u64> {
    let text = fs::read_to_string(status).ok()?;
    let line = text.lines().find(|line| line.starts_with("VmHWM:"))?;
    line.split_whitespace().nth(1)?.parse().ok()
}

/// Runs a command line that must stay within a budget of `budget` MiB, whether it succeeds or fails.
#[track_caller]
fn stays_within(dir: &Path, line: &str, budget: u64) -> Output {
    let mut command = polybook_in(dir);
    command.args(line.split_whitespace());
    let measured = measure(command);
    let error = String::from_utf8_lossy(&measured.output.stderr);
    eprintln!("{} MiB: {line}", measured.peak);
    assert!(
        matches!(measured.output.status.code(), Some(0 | 1)),
        "{line}: {error}"
    );
    assert!(!error.contains("internal error"), "{line}: {error}");
    assert!(
        measured.peak <= budget + BESIDES,
        "{line}: {} MiB: {error}",
        measured.peak
    );
    measured.output
}

/// Runs a command line that must succeed and [stay within](stays_within) a budget.
#[track_caller]
fn succeeds_within(dir: &Path, line: &str, budget: u64) {
    let output = stays_within(dir, line, budget);
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{line}: {error}");
}

/// Creates a file whose contents are written by `write`.
fn file(dir: &Path, name: &str, write: impl FnOnce(&mut dyn Write) -> std::io::Result<()>) {
    let mut out = BufWriter::new(File::create(dir.join(name)).unwrap());
    write(&mut out).unwrap();
    out.flush().unwrap();
}

#[test]
fn a_million_empty_games_with_an_index() {
    let dir = temp();
    file(dir.path(), "games.pgn", |out| {
        (0..1_000_000).try_for_each(|_| out.write_all(b"[Event \"\"]\n\n*\n\n"))
    });
    succeeds_within(
        dir.path(),
        "make-book games.pgn --leveldb index --allow-empty --memory 16MiB -q",
        16,
    );
}

#[test]
fn a_start_position_a_game_with_a_database() {
    let dir = temp();
    file(dir.path(), "games.pgn", |out| {
        (0..100_000_u32).try_for_each(|game| {
            // The digits of the number in base 8 are the empty squares between pawns.
            let pawns: String = (0..6)
                .map(|rank| {
                    let file = game >> (3 * rank) & 7;
                    let (before, behind) = (file, 7 - file);
                    let blank = |n: u32| if n == 0 { String::new() } else { n.to_string() };
                    format!("{}p{}/", blank(before), blank(behind))
                })
                .collect();
            write!(
                out,
                "[FEN \"k7/{pawns}7K w - - 0 1\"]\n[Result \"1-0\"]\n\n1. Kg1 1-0\n\n"
            )
        })
    });
    succeeds_within(
        dir.path(),
        "make-book games.pgn --obs games.obs.db3 --min-game 1 --memory 16MiB -q",
        16,
    );
}

#[test]
fn a_game_of_millions_of_tags() {
    let dir = temp();
    file(dir.path(), "games.pgn", |out| {
        (0..2_500_000).try_for_each(|_| out.write_all(b"[A \"\"]\n"))?;
        out.write_all(b"\n1. e4 e5 1-0\n")
    });
    stays_within(
        dir.path(),
        "make-book games.pgn --bin book.bin --leveldb index --allow-empty --memory 16MiB -q",
        16,
    );
}

#[test]
fn a_packed_input_of_a_long_window() {
    let dir = temp();
    if crate::common::program(&["zstd"]).is_none() {
        return;
    }
    file(dir.path(), "games.pgn", |out| {
        (0..3_000_000)
            .try_for_each(|game| write!(out, "[Event \"{game}\"]\n\n1. e4 e5 2. Nf3 Nc6 *\n\n"))
    });
    let packed = Command::new("zstd")
        .args(["-q", "-1", "--long=30", "games.pgn"])
        .current_dir(dir.path())
        .status()
        .unwrap();
    assert!(packed.success());
    // Refusing is also correct if the message says how much memory would be enough.
    let output = stays_within(
        dir.path(),
        "make-book games.pgn.zst --bin book.bin --memory 16MiB -q",
        16,
    );
    if !output.status.success() {
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(error.contains("memory"), "{error}");
    }
}

#[test]
fn a_database_of_enormous_counts() {
    let dir = temp();
    let path = dir.path().join("huge.obs.db3");
    let db = rusqlite::Connection::open(&path).unwrap();
    db.execute_batch(
        "CREATE TABLE Book(ID INTEGER PRIMARY KEY AUTOINCREMENT, EPD TEXT NOT NULL, Move TEXT, Active INTEGER DEFAULT 1, \
         Win INTEGER, Draw INTEGER, Loss INTEGER, Comment TEXT); CREATE TABLE Info(Name TEXT UNIQUE NOT NULL, Value TEXT); \
         WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 300) \
         INSERT INTO Book(EPD, Move, Win, Draw, Loss) \
         SELECT 'rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq -', 'e2e4', 1 << 36, 1 << 36, 1 << 36 FROM n;",
    )
    .unwrap();
    drop(db);
    stays_within(
        dir.path(),
        "convert huge.obs.db3 book.bin --min-game 1 --memory 16MiB -q",
        16,
    );
}

#[test]
fn a_database_of_long_texts() {
    let dir = temp();
    let path = dir.path().join("long.obs.db3");
    let db = rusqlite::Connection::open(&path).unwrap();
    db.execute_batch(
        "CREATE TABLE Book(EPD TEXT, Move TEXT, Active INTEGER, Win INTEGER, Draw INTEGER, Loss INTEGER, Comment TEXT); \
         CREATE TABLE Info(Name TEXT UNIQUE NOT NULL, Value TEXT); \
         WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 150) \
         INSERT INTO Info SELECT 'name ' || i, printf('%1000000s', '') FROM n; \
         WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 2500) \
         INSERT INTO Book SELECT 'rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq -', 'e2e4', 1, 1, 0, 0, \
         printf('%60000s', '') FROM n;",
    )
    .unwrap();
    drop(db);
    for command in [
        "convert long.obs.db3 book.bin --min-game 1 --memory 1MiB -q",
        "show long.obs.db3",
    ] {
        succeeds_within(dir.path(), command, 1);
    }
}

/// Writes ordered counts like polybook, with `groups` row groups of `rows` rows. A book contains all of their moves.
fn ordered_counts(dir: &Path, name: &str, groups: i64, rows: i64) {
    let schema = "message counts { required int64 key; required int32 move; required boolean black; \
                  required int64 wins; required int64 draws; required int64 losses; }";
    let ascending = [0, 1].map(|column_idx| SortingColumn {
        column_idx,
        descending: false,
        nulls_first: false,
    });
    let properties = WriterProperties::builder().set_sorting_columns(Some(ascending.to_vec()));
    fs::create_dir(dir.join(name)).unwrap();
    let file = File::create(dir.join(name).join("data.parquet")).unwrap();
    let schema = Arc::new(parse_message_type(schema).unwrap());
    let mut out = SerializedFileWriter::new(file, schema, Arc::new(properties.build())).unwrap();
    let step = i64::MAX / (groups * rows / 2 + 1);
    for group in 0..groups {
        let first = group * rows - groups * rows / 2;
        // 0 is not a key.
        let keys: Vec<i64> = (first..first + rows).map(|row| row * step + 1).collect();
        let games = vec![5; keys.len()];
        let mut out = out.next_row_group().unwrap();
        for column in 0..6 {
            let mut writer = out.next_column().unwrap().unwrap();
            match column {
                1 => writer
                    .typed::<Int32Type>()
                    .write_batch(&vec![796; keys.len()], None, None),
                2 => writer
                    .typed::<BoolType>()
                    .write_batch(&vec![false; keys.len()], None, None),
                _ => {
                    let numbers = if column == 0 { &keys } else { &games };
                    writer.typed::<Int64Type>().write_batch(numbers, None, None)
                }
            }
            .unwrap();
            writer.close().unwrap();
        }
        out.close().unwrap();
    }
    out.close().unwrap();
}

#[test]
fn counts_larger_than_memory() {
    if !crate::common::runs_slow_tests() {
        return;
    }
    let dir = temp();
    ordered_counts(dir.path(), "counts", 64, 1 << 16);
    // Two directories are merged. With little memory, three are too many to be read in parallel.
    for (directories, budget) in [(2, 16), (3, 16), (3, 96)] {
        let inputs = "counts ".repeat(directories);
        let line = format!(
            "make-book {inputs} --bin book.bin --counts added --memory {budget}MiB --force -q"
        );
        succeeds_within(dir.path(), &line, budget);
        let book = fs::metadata(dir.path().join("book.bin")).unwrap().len();
        assert!(book > 64 << 20, "{book}");
    }
}

/// Unused parts of a sidecar must not take memory.
#[test]
fn counts_of_a_long_sidecar() {
    let dir = temp();
    ordered_counts(dir.path(), "counts", 1, 2);
    ok(dir.path(), "make-book -q counts --counts listed");
    let sidecar = dir.path().join("listed/_counts.json");
    let text = fs::read_to_string(&sidecar).unwrap();
    let more = format!("{{ \"more\": [{}0],", "0,".repeat((2 << 20) - (1 << 10)));
    fs::write(&sidecar, text.replacen('{', &more, 1)).unwrap();
    succeeds_within(
        dir.path(),
        "make-book listed --bin book.bin -q --memory 1MiB",
        1,
    );
}

/// The metadata of a row group take some KiB of memory, even if it has few rows.
#[test]
fn counts_of_thousands_of_row_groups() {
    let dir = temp();
    ordered_counts(dir.path(), "counts", 5000, 2);
    let make = |budget: u64| {
        let line = format!("make-book counts --bin book.bin -q --threads 2 --memory {budget}MiB");
        stays_within(dir.path(), &line, budget)
    };
    let refused = make(16);
    let err = String::from_utf8_lossy(&refused.stderr);
    assert!(
        !refused.status.success()
            && err.contains("counts: the metadata of these counts take about")
            && err.contains(
                "write the Parquet files with larger row groups, or use a larger --memory"
            ),
        "{err}"
    );
    assert!(make(512).status.success());
    ordered_counts(dir.path(), "larger", 1, 10_000);
    let line = "make-book larger --bin larger.bin -q --threads 2 --memory 16MiB";
    succeeds_within(dir.path(), line, 16);
    // polybook's own parts have some dozens of row groups, and can be read with any budget.
    ordered_counts(dir.path(), "usual", 48, 100);
    let line = "make-book usual --bin usual.bin -q --threads 16 --memory 1MiB";
    succeeds_within(dir.path(), line, 1);
}

/// Writes a book of `mebibytes` MiB whose records have ascending keys.
fn ascending_book(dir: &Path, name: &str, mebibytes: u64) {
    let records = mebibytes << 16;
    file(dir, name, |out| {
        (1..=records).try_for_each(|record| {
            let key = record * (u64::MAX / (records + 1));
            out.write_all(&key.to_be_bytes())?;
            out.write_all(&[0x03, 0x1c, 0, 7, 0, 0, 0, 0])
        })
    });
}

#[test]
fn a_book_larger_than_memory() {
    if !crate::common::runs_slow_tests() {
        return;
    }
    let dir = temp();
    ascending_book(dir.path(), "large.bin", 320);
    for line in [
        "show large.bin",
        "verify large.bin -q",
        "merge-book large.bin large.bin --out merged.bin -q",
    ] {
        succeeds_within(dir.path(), line, 0);
    }
}

#[test]
fn a_long_list_of_moves() {
    let dir = temp();
    let position = "8/8/8/8/8/4k3/8/4K2R w - - 0 1";
    let path = dir.path().join("many.obs.db3");
    let db = rusqlite::Connection::open(&path).unwrap();
    db.execute_batch(&format!(
        "CREATE TABLE Book(ID INTEGER PRIMARY KEY AUTOINCREMENT, EPD TEXT NOT NULL, Move TEXT, Active INTEGER DEFAULT 1, \
         Win INTEGER, Draw INTEGER, Loss INTEGER, Comment TEXT); CREATE TABLE Info(Name TEXT UNIQUE NOT NULL, Value TEXT); \
         WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 300000) \
         INSERT INTO Book(EPD, Move, Win, Draw, Loss) SELECT '{}', 'move ' || i, 1, 1, 1 FROM n;",
        position.strip_suffix(" 0 1").unwrap()
    ))
    .unwrap();
    drop(db);
    stays_within(
        dir.path(),
        "merge-book many.obs.db3 many.obs.db3 --out merged.obs.db3 --memory 1MiB -q",
        1,
    );
}

#[test]
fn parts_of_a_book_larger_than_memory() {
    if !crate::common::runs_slow_tests() {
        return;
    }
    let dir = temp();
    // A filter of the keys without a limit takes 128 MiB.
    ascending_book(dir.path(), "large.bin", 260);
    ascending_book(dir.path(), "other.bin", 40);
    ascending_book(dir.path(), "another.bin", 39);
    file(dir.path(), "script", |out| {
        writeln!(out, "; set e4=1; remove-position")
    });
    for line in [
        "filter large.bin --reachable --out kept.bin --memory 16MiB -q",
        "edit large.bin --script script --out edited.bin --memory 16MiB -q",
        "info-book large.bin --memory 16MiB",
        "tree large.bin --memory 16MiB",
        "convert large.bin suite.epd --plies 2 --memory 16MiB -q",
        "diff other.bin another.bin --memory 4MiB -q",
        "convert other.bin - --format jsonl --memory 4MiB -q",
    ] {
        let budget = if line.contains("16MiB") { 16 } else { 4 };
        stays_within(dir.path(), line, budget);
    }
}

#[test]
fn a_repertoire_of_nested_variations() {
    let dir = temp();
    let text = format!("1. e4 e5 {}{}", "(".repeat(500_000), ")".repeat(500_000));
    fs::write(dir.path().join("deep.pgn"), text).unwrap();
    let text = format!("1. e4 {}{}", "e5(".repeat(250_000), ")".repeat(250_000));
    fs::write(dir.path().join("moves.pgn"), text).unwrap();
    stays_within(dir.path(), "tree deep.pgn --memory 16MiB", 16);
    stays_within(dir.path(), "tree moves.pgn --memory 16MiB", 16);
}

#[test]
fn a_suite_of_very_many_lines() {
    let dir = temp();
    // The first moves of each position, to a depth of six half-moves.
    let mut records = BTreeSet::new();
    let mut level = vec![Keyed::new(Chess::default())];
    for _ in 0..6 {
        let mut next = HashMap::new();
        for pos in level {
            for mv in pos.position().legal_moves().into_iter().take(9) {
                records.insert((pos.key(), BookMove::from(mv)));
                let mut after = pos.clone();
                after.play(mv);
                next.insert(after.key(), after);
            }
        }
        level = next.into_values().collect();
    }
    file(dir.path(), "book.bin", |out| {
        records.iter().try_for_each(|(key, mv)| {
            let (key, mv, weight, learn) = (*key, *mv, 1, 0);
            let entry = Entry {
                key,
                mv,
                weight,
                learn,
            };
            out.write_all(&entry.to_bytes())
        })
    });
    for line in [
        "convert book.bin lines.pgn --plies 6 --seed 1 --memory 2MiB -q",
        "convert book.bin positions.epd --plies 6 --opcodes --memory 2MiB -q",
        "tree book.bin --max-ply 6 --format pgn --out tree.pgn --memory 2MiB -q",
    ] {
        succeeds_within(dir.path(), line, 2);
    }
    let lines = fs::read_to_string(dir.path().join("lines.pgn")).unwrap();
    assert_eq!(lines.matches("[Event ").count(), 9_usize.pow(6));
}

/// Few files are open at a time, however much is spilled.
#[test]
fn few_open_files_are_enough() {
    let dir = temp();
    let line = "make-book games.pgn --memory 64KiB --min-game 1 --bin book.bin --leveldb index --index-stats --explorer explored --obs games.obs.db3 -q";
    fs::copy(sample("selfplay.pgn"), dir.path().join("games.pgn")).unwrap();
    let output = Command::new("sh")
        .args(["-c", "ulimit -n 256 && exec \"$@\"", "sh"])
        .arg(env!("CARGO_BIN_EXE_polybook"))
        .args(line.split_whitespace())
        .current_dir(dir.path())
        .output();
    let Ok(output) = output else {
        return skip("there is no sh");
    };
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{error}");
    ok(dir.path(), "verify book.bin -q");
}

/// Counts by class are added up with one file of each directory open, so their number is limited by the memory.
#[test]
fn counts_by_class_of_many_directories() {
    let dir = temp();
    let dir = dir.path();
    let games = sample("famous.pgn").display().to_string();
    ok(
        dir,
        &format!("make-book -q {games} --by month --counts counts"),
    );
    let names: Vec<String> = (0..33).map(|number| format!("counts{number}")).collect();
    for name in &names {
        fs::create_dir(dir.join(name)).unwrap();
        for entry in fs::read_dir(dir.join("counts")).unwrap() {
            let entry = entry.unwrap();
            fs::copy(entry.path(), dir.join(name).join(entry.file_name())).unwrap();
        }
    }
    let add = |names: &[String], out: &str, budget: u64| {
        let names = names.join(" ");
        let line = format!("make-book -q {names} --counts {out} --force --memory {budget}MiB");
        stays_within(dir, &line, budget)
    };
    let refused = add(&names, "sum", 64);
    let error = String::from_utf8_lossy(&refused.stderr);
    let advice =
        "takes 66 MiB of memory: use a larger --memory, or add up some of the directories first";
    assert!(error.contains(advice), "{error}");
    // The advice works.
    assert!(add(&names, "sum", 66).status.success());
    assert!(add(&names[..20], "first", 64).status.success());
    let rest = [&["first".to_owned()], &names[20..]].concat();
    assert!(add(&rest, "second", 64).status.success());
    let rows = |name: &str| crate::classes::class_rows(&dir.join(name));
    assert!(rows("sum") == rows("second"));
}
