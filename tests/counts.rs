//! Counts as Parquet: outputs made from counts are equal to outputs made from the games.

use std::{
    collections::BTreeMap,
    fs::{self, File},
    path::{Path, PathBuf},
    sync::Arc,
};

use crate::common::{fails, fed, ok, ok_json, refused, run, sample, temp};
use parquet::{
    basic::Compression,
    data_type::{BoolType, Int32Type, Int64Type},
    file::{
        metadata::SortingColumn,
        properties::WriterProperties,
        reader::{FileReader, SerializedFileReader},
        writer::{SerializedFileWriter, SerializedRowGroupWriter},
    },
    schema::parser::parse_message_type,
};
use polybook::counts::{CountsDirectory, Row};

/// Splits the games of a sample into files named `0.pgn` and so on, and returns the names.
fn cut(dir: &Path, name: &str, files: usize) -> Vec<String> {
    let text = fs::read_to_string(sample(name)).unwrap();
    let games: Vec<String> = text
        .split("[Event ")
        .skip(1)
        .map(|game| format!("[Event {game}"))
        .collect();
    let size = games.len().div_ceil(files);
    let parts = games.chunks(size).enumerate();
    parts
        .map(|(i, games)| {
            let name = format!("{i}.pgn");
            fs::write(dir.join(&name), games.concat()).unwrap();
            name
        })
        .collect()
}

/// Counts each file into a directory named `0.counts` and so on, and returns the names.
fn count_each(dir: &Path, files: &[String], options: &str) -> Vec<String> {
    files
        .iter()
        .map(|file| {
            let counts = file.replace(".pgn", ".counts");
            ok(
                dir,
                &format!("make-book -q {file} {options} --counts {counts}"),
            );
            counts
        })
        .collect()
}

/// Returns all rows of counts, grouped by file.
fn rows(counts: &Path) -> Vec<Vec<Row>> {
    let directory = CountsDirectory::open(counts).unwrap();
    let parts = directory.parts().iter();
    parts
        .map(|part| {
            let mut all = Vec::new();
            part.read(&mut |rows| {
                all.extend_from_slice(rows);
                Ok(())
            })
            .unwrap();
            all
        })
        .collect()
}

fn bytes(dir: &Path, name: &str) -> Vec<u8> {
    fs::read(dir.join(name)).unwrap()
}

/// Returns the names and bytes of all files of a directory.
fn files(path: &Path) -> BTreeMap<String, Vec<u8>> {
    let entries = fs::read_dir(path).unwrap().map(Result::unwrap);
    entries
        .map(|entry| {
            let name = entry.file_name().into_string().unwrap();
            (name, fs::read(entry.path()).unwrap())
        })
        .collect()
}

#[test]
fn added_counts_make_what_all_games_make() {
    if !crate::common::runs_slow_tests() {
        return;
    }
    let dir = temp();
    let pgns = cut(dir.path(), "selfplay.pgn", 4);
    let counts = count_each(dir.path(), &pgns, "");
    let (pgns, counts) = (pgns.join(" "), counts.join(" "));
    for options in [
        "",
        "--min-game 1",
        "--uniform --only-black",
        "--scale position --win-factor 7 --min-score 40",
        "--no-header",
        "--comment mine",
    ] {
        for (inputs, name) in [(&pgns, "games"), (&counts, "counts")] {
            ok(
                dir.path(),
                &format!(
                    "make-book -q {inputs} {options} --bin {name}.bin --obs {name}.obs.db3 --counts {name} --force"
                ),
            );
        }
        assert!(
            bytes(dir.path(), "games.bin") == bytes(dir.path(), "counts.bin"),
            "{options}"
        );
        assert!(
            bytes(dir.path(), "games.obs.db3") == bytes(dir.path(), "counts.obs.db3"),
            "{options}"
        );
        let [of_games, of_counts] = ["games", "counts"].map(|name| files(&dir.path().join(name)));
        assert!(of_games == of_counts, "{options}");
    }
}

/// Books are made from ordered counts by merging them. Moves that no book keeps only add to the numbers in the
/// report.
#[test]
fn books_of_ordered_counts_are_those_of_the_games() {
    if !crate::common::runs_slow_tests() {
        return;
    }
    let dir = temp();
    let pgns = cut(dir.path(), "selfplay.pgn", 5);
    let counts = count_each(dir.path(), &pgns, "");
    let (pgns, counts) = (pgns.join(" "), counts.join(" "));
    for options in [
        "",
        "--min-game 1",
        "--min-game 2 --only-white",
        "--uniform --min-game 5",
    ] {
        for how in ["--threads 1", "--threads 3 --memory 1MiB", "--memory 64MiB"] {
            let mut reports = [(&pgns, "games"), (&counts, "counts")].map(|(inputs, name)| {
                let line =
                    format!("make-book {inputs} {options} {how} --json --force --bin {name}.bin");
                ok_json(dir.path(), &line)
            });
            let told = format!("{options} {how}");
            for report in &mut reports {
                report["book"]["path"].take();
                report["seconds"].take();
            }
            assert_eq!(reports[0], reports[1], "{told}");
            assert!(
                bytes(dir.path(), "games.bin") == bytes(dir.path(), "counts.bin"),
                "{told}"
            );
        }
    }
    let [of_games, of_counts] = [&pgns, &counts].map(|inputs| {
        fails(
            dir.path(),
            &format!("make-book {inputs} --min-game 1000 --bin none.bin"),
            1,
        )
    });
    assert!(
        of_games.contains("played fewer than 1000 times"),
        "{of_games}"
    );
    assert_eq!(of_games, of_counts);
}

#[test]
fn rows_that_are_not_in_the_order_that_they_tell_are_an_error() {
    let dir = temp();
    let key = 0x463b_9618_1691_fc9c;
    let part = |name: &str, keys: [i64; 3], is_declared: bool| {
        let of_each = |value| Column::Long(vec![Some(value); 3]);
        let columns = vec![
            ("key", Column::Long(keys.map(Some).to_vec())),
            ("move", Column::Int(vec![796, 796, 100])),
            ("black", Column::Bool(vec![false; 3])),
            ("wins", of_each(5)),
            ("draws", of_each(2)),
            ("losses", of_each(1)),
        ];
        let ascending = [0, 1].map(|column_idx| SortingColumn {
            column_idx,
            descending: false,
            nulls_first: false,
        });
        let declared = is_declared.then(|| ascending.to_vec());
        let properties = WriterProperties::builder().set_sorting_columns(declared);
        fs::create_dir(dir.path().join(name)).unwrap();
        let path = dir.path().join(name).join("data.parquet");
        write_part_with(&path, &columns, properties.build());
    };
    part("sorted", [-1, key - 1, key], true);
    let report = ok_json(dir.path(), "make-book sorted --json --bin sorted.bin");
    assert_eq!(
        (&report["entries"], &report["plies"]),
        (&3.into(), &24.into()),
        "{report}"
    );
    for (name, keys, row) in [
        ("keys", [-1, key, key - 1], 2),
        ("moves", [-1, key, key], 2),
    ] {
        part(name, keys, true);
        let err = fails(dir.path(), &format!("make-book {name} --bin book.bin"), 1);
        let told =
            format!("{name}/data.parquet: row {row} is not in the order that the file declares");
        assert!(err.contains(&told), "{err}");
        assert!(
            err.contains("sort the rows, or write the file without sorting_columns"),
            "{err}"
        );
        assert!(!dir.path().join("book.bin").exists());
        let undeclared = format!("{name}-undeclared");
        part(&undeclared, keys, false);
        ok(
            dir.path(),
            &format!("make-book {undeclared} --bin {name}.bin"),
        );
    }
}

/// A page whose decompressed size is excessive is refused before it is decompressed.
#[test]
fn pages_that_would_fill_the_memory_are_refused() {
    if !crate::common::runs_slow_tests() {
        return;
    }
    let dir = temp();
    let rows = 1 << 20;
    let of_each = |value| Column::Long(vec![Some(value); rows]);
    let columns = vec![
        ("key", of_each(0x463b_9618_1691_fc9c)),
        ("move", Column::Int(vec![796; rows])),
        ("black", Column::Bool(vec![false; rows])),
        ("wins", of_each(5)),
        ("draws", of_each(2)),
        ("losses", of_each(1)),
    ];
    let properties = WriterProperties::builder()
        .set_compression(Compression::SNAPPY)
        .set_dictionary_enabled(false)
        .set_data_page_size_limit(1 << 30)
        .set_data_page_row_count_limit(usize::MAX)
        .set_write_batch_size(rows);
    fs::create_dir(dir.path().join("large")).unwrap();
    let path = dir.path().join("large/data.parquet");
    write_part_with(&path, &columns, properties.build());
    let err = fails(dir.path(), "make-book large --bin book.bin", 1);
    assert!(
        err.contains("large/data.parquet: a page of this Parquet file has 8")
            && err.contains("write the file with smaller pages"),
        "{err}"
    );
    write_part(&path, &columns);
    ok(dir.path(), "make-book large --bin book.bin");
}

#[test]
fn counts_and_games_can_be_inputs_of_one_run() {
    let dir = temp();
    let pgns = cut(dir.path(), "selfplay.pgn", 3);
    count_each(dir.path(), &pgns[1..2], "--max-ply 20");
    let book = |inputs: &str, bin: &str| {
        ok(
            dir.path(),
            &format!("make-book -q --max-ply 20 {inputs} --bin {bin}"),
        );
    };
    book("0.pgn 1.pgn 2.pgn", "games.bin");
    book("0.pgn 1.counts 2.pgn", "mixed.bin");
    assert_eq!(
        bytes(dir.path(), "games.bin"),
        bytes(dir.path(), "mixed.bin")
    );
}

#[test]
fn reports_are_those_of_the_games() {
    let dir = temp();
    let broken = "[Event \"a\"]\n[Result \"1-0\"]\n\n1. e4 e5 2. Ke3 1-0\n\n";
    let null = "[Event \"b\"]\n\n1. e4 -- 2. d4 1/2-1/2\n\n";
    fs::write(dir.path().join("a.pgn"), format!("{broken}{null}{null}")).unwrap();
    fs::write(dir.path().join("b.pgn"), format!("{null}{broken}")).unwrap();
    let options = "--min-elo 0 --result 1/2-1/2 --result 1-0";
    let names = ["a.pgn", "b.pgn"].map(str::to_owned);
    count_each(dir.path(), &names, options);
    let report = |line: &str| {
        let mut report = ok_json(dir.path(), &format!("make-book {line} --min-game 1 --json"));
        report["seconds"].take();
        report
    };
    let of_games = report(&format!("a.pgn b.pgn {options}"));
    assert_eq!(of_games["unrated"], 3);
    let of_counts = report("a.counts b.counts");
    assert_eq!(of_games, of_counts);
    assert_eq!(of_counts["rejected"][1]["file"], "b.pgn");
    assert_eq!(of_counts["rejected"][1]["game"], 1);
    let err = fails(dir.path(), "make-book --strict a.counts b.counts", 1);
    assert!(
        err.contains("a.pgn: game 1, byte 40") && err.contains("Ke3"),
        "{err}"
    );
}

#[test]
fn rows_are_in_signed_order_and_cut_alike_by_every_number_of_threads() {
    let dir = temp();
    let pgn = sample("selfplay.pgn");
    for (name, options) in [("a", "--threads 1"), ("b", "--threads 5 --memory 64KiB")] {
        let line = format!("make-book -q {} {options} --counts {name}", pgn.display());
        ok(dir.path(), &line);
    }
    let [a, b] = ["a", "b"].map(|name| files(&dir.path().join(name)));
    assert!(a == b);
    let rows = rows(&dir.path().join("a")).concat();
    let places: Vec<(i64, u16)> = rows
        .iter()
        .map(|row| (row.key.cast_signed(), row.mv.0))
        .collect();
    assert!(places.is_sorted_by(|a, b| a < b));
    assert!(rows.iter().any(|row| row.key > 1 << 63));
}

#[test]
fn counts_are_replaced_by_force_and_nothing_else_is() {
    let dir = temp();
    let pgn = sample("famous.pgn").display().to_string();
    let line = format!("make-book -q {pgn} --counts famous.counts");
    fs::create_dir(dir.path().join("famous.counts")).unwrap();
    ok(dir.path(), &line);
    let err = fails(dir.path(), &line, 1);
    assert!(
        err.contains("famous.counts exists: remove it, or replace it with --force"),
        "{err}"
    );
    ok(dir.path(), &format!("{line} --force"));
    fs::write(dir.path().join("famous.counts/thesis.txt"), "mine").unwrap();
    let err = fails(dir.path(), &format!("{line} --force"), 1);
    assert!(
        err.contains("contains thesis.txt, which _counts.json does not list"),
        "{err}"
    );
    assert!(dir.path().join("famous.counts/thesis.txt").exists());
    let err = fails(
        dir.path(),
        "make-book famous.counts --counts famous.counts --force",
        1,
    );
    assert!(err.contains("both an input and an output"), "{err}");
}

#[test]
fn games_are_not_chosen_in_counts() {
    let dir = temp();
    let pgns = cut(dir.path(), "famous.pgn", 2);
    count_each(dir.path(), &pgns, "");
    for (options, told) in [
        (
            "0.counts --min-elo 2000",
            "counts contain no ratings of single players, which the condition min-elo needs: give the PGN files",
        ),
        (
            "0.counts --speed blitz --since 2000",
            "these counts are not divided, but the conditions need counts that are divided by speed,month: count the \
             games with --by speed,month",
        ),
        (
            "0.counts --max-ply 10",
            "--max-ply 10 cannot be applied: give the PGN files",
        ),
        (
            "0.counts --drop-duplicates",
            "counts contain no duplicates, which the condition duplicates needs: give the PGN files",
        ),
        (
            "0.counts 1.pgn --max-ply 10",
            "0.counts: these counts were made with the defaults, but the games",
        ),
        (
            "0.counts --variant crazyhouse",
            "--variant crazyhouse cannot be applied: give the PGN files",
        ),
        (
            "0.counts --leveldb idx",
            "idx: an index for front-ends is made from games",
        ),
    ] {
        let err = fails(dir.path(), &format!("make-book {options}"), 1);
        assert!(err.contains(told), "{options}: {err}");
    }
    ok(dir.path(), "make-book -q 1.pgn --max-ply 10 --counts short");
    // Both inputs were counted before, and the header says so.
    let warns = |line: &str| {
        let output = run(dir.path(), line);
        assert!(output.status.success(), "{line}");
        let report = String::from_utf8(output.stderr).unwrap();
        report.contains(
            "warning: some inputs are counted up to half-move 10, others up to half-move 1024, so some games are \
             missing from the positions after half-move 10",
        )
    };
    assert!(!warns("make-book short --bin both.bin"));
    assert!(warns(
        "make-book 0.counts short --counts sum --bin both.bin"
    ));
    assert!(warns("make-book sum --obs sum.obs.db3"));
    let header = ok(dir.path(), "pgheader -s both.bin");
    assert!(
        header.contains("Options: defaults | --max-ply 10"),
        "{header}"
    );
    // Options that equal those of the counts are not a contradiction.
    ok(
        dir.path(),
        "make-book -q short --max-ply 10 --bin short.bin",
    );
    let report = run(dir.path(), "make-book short short --bin twice.bin");
    let report = String::from_utf8(report.stderr).unwrap();
    assert!(
        report.contains("short: this file is given twice, so its games count twice"),
        "{report}"
    );
}

#[test]
fn inputs_with_games_of_the_same_file_are_reported() {
    let dir = temp();
    let dir = dir.path();
    for name in ["a.pgn", "b.pgn", "c.pgn", "more/a.pgn"] {
        fs::create_dir_all(dir.join("more")).unwrap();
        fs::write(dir.join(name), "1. e4 e5 1-0\n").unwrap();
    }
    for line in [
        "a.pgn --counts a",
        "b.pgn c.pgn --counts bc",
        "a bc --counts all",
        "more/a.pgn a.pgn --counts aa",
        "- --counts x",
        "- --counts y",
    ] {
        fed(dir, &format!("make-book {line}"), b"1. e4 e5 1-0\n");
    }
    let warning = |inputs: &str| {
        let output = run(dir, &format!("make-book {inputs} --counts sum --force"));
        assert!(output.status.success(), "{inputs}");
        let report = String::from_utf8(output.stderr).unwrap();
        let mut found = report.lines().filter(|line| line.contains("count twice"));
        let warning = found.next().unwrap_or_default().to_owned();
        assert_eq!(found.next(), None, "{report}");
        warning
    };
    for (inputs, expected) in [
        (
            "all a",
            "warning: all and a both contain games of a file with the name a.pgn; if it is the same file, its games count twice",
        ),
        (
            "a a.pgn",
            "warning: a and a.pgn both contain games of a file with the name a.pgn; if it is the same file, its games count twice",
        ),
        (
            "bc a all",
            "warning: a and all both contain games of a file with the name a.pgn, and of 2 other names; if it is the same file, its games count twice",
        ),
        (
            "a a",
            "warning: a: this file is given twice, so its games count twice",
        ),
        ("a bc", ""),
        ("aa bc", ""),
        ("x y", ""),
        ("a.pgn more/a.pgn", ""),
    ] {
        assert_eq!(warning(inputs), expected, "{inputs}");
    }
}

#[test]
fn counts_contain_the_starting_positions_of_games() {
    let dir = temp();
    let fen = "4k3/8/8/8/8/8/4P3/4K3 w - - 0 1";
    let game = |fen: &str| format!("[Event \"x\"]\n[FEN \"{fen}\"]\n\n1. e4 Kd7 2. Ke2 1-0\n\n");
    fs::write(dir.path().join("a.pgn"), [game(fen), game(fen)].concat()).unwrap();
    let other = fen.replace("4P3", "3PP3");
    fs::write(dir.path().join("b.pgn"), [game(&other), game(fen)].concat()).unwrap();
    let names = ["a.pgn", "b.pgn"].map(str::to_owned);
    count_each(dir.path(), &names, "");
    for (inputs, name) in [("a.pgn b.pgn", "games"), ("a.counts b.counts", "counts")] {
        let line =
            format!("make-book -q {inputs} --min-game 1 --obs {name}.obs.db3 --counts {name}");
        ok(dir.path(), &line);
    }
    assert_eq!(
        bytes(dir.path(), "games.obs.db3"),
        bytes(dir.path(), "counts.obs.db3")
    );
    assert!(files(&dir.path().join("games")) == files(&dir.path().join("counts")));
    let directory = CountsDirectory::open(dir.path().join("counts")).unwrap();
    let mut starts = Vec::new();
    let games = directory.starts().unwrap().read_starts(&mut |some| {
        starts.extend(some);
        Ok(())
    });
    assert_eq!((games.unwrap(), starts.len()), (4, 2));
    assert_eq!(
        (starts[0].epd.as_str(), starts[0].games),
        (&fen[..fen.len() - 4], 3)
    );
}

#[test]
fn counts_of_variants_tell_positions_of_one_key_apart() {
    let dir = temp();
    // A book cannot contain positions in which inner rooks may castle, and the keys of drops do not include the
    // pockets.
    let inner = "[Variant \"Chess960\"]\n[FEN \"1rr1k3/8/8/8/8/8/8/1RR1K3 w Cc - 0 1\"]\n\n1. Ke2 Kd7 1-0\n\n";
    let chess960 = "[Variant \"Chess960\"]\n\n1. e4 e5 2. Nf3 0-1\n\n";
    let crazyhouse = "[Variant \"Crazyhouse\"]\n\n1. e4 d5 2. exd5 Qxd5 3. P@e4 1-0\n\n\
                      [Variant \"Crazyhouse\"]\n\n1. e4 d5 2. e5 f6 3. exf6 1-0\n\n";
    let horde = "[Variant \"Horde\"]\n\n1. a5 h6 1-0\n\n";
    for (variant, games, has_book) in [
        ("fischerandom", [inner, chess960], true),
        ("crazyhouse", [crazyhouse, crazyhouse], true),
        ("horde", [horde, horde], false),
        ("auto", [chess960, chess960], true),
    ] {
        for (name, games) in ["a.pgn", "b.pgn"].iter().zip(games) {
            fs::write(dir.path().join(name), games).unwrap();
        }
        let names = ["a.pgn", "b.pgn"].map(str::to_owned);
        count_each(dir.path(), &names, &format!("--variant {variant} --force"));
        let of_counts = "a.counts b.counts".to_owned();
        for (inputs, name) in [
            (format!("a.pgn b.pgn --variant {variant}"), "games"),
            (of_counts, "counts"),
        ] {
            let bin = if has_book {
                format!("--bin {name}.bin")
            } else {
                String::new()
            };
            let outputs =
                format!("{bin} --obs {name}.obs.db3 --counts {name} --force --min-game 1");
            ok(dir.path(), &format!("make-book -q {inputs} {outputs}"));
        }
        if has_book {
            assert_eq!(
                bytes(dir.path(), "games.bin"),
                bytes(dir.path(), "counts.bin"),
                "{variant}"
            );
        }
        assert_eq!(
            bytes(dir.path(), "games.obs.db3"),
            bytes(dir.path(), "counts.obs.db3"),
            "{variant}"
        );
        assert!(
            files(&dir.path().join("games")) == files(&dir.path().join("counts")),
            "{variant}"
        );
        let has_keyless = rows(&dir.path().join("counts"))
            .concat()
            .iter()
            .any(|row| row.key == 0);
        assert_eq!(has_keyless, variant == "fischerandom", "{variant}");
    }
    ok(
        dir.path(),
        "make-book -q a.pgn --variant fischerandom --counts one --allow-empty",
    );
    ok(
        dir.path(),
        "make-book -q a.pgn --variant crazyhouse --counts other --allow-empty",
    );
    let err = fails(dir.path(), "make-book one other", 1);
    assert!(
        err.contains("these counts are for crazyhouse, but other inputs are for fischerandom"),
        "{err}"
    );
}

/// A column of a part, as another program writes it.
#[derive(Clone)]
enum Column {
    Long(Vec<Option<i64>>),
    Unsigned(Vec<Option<i64>>),
    Int(Vec<i32>),
    Bool(Vec<bool>),
}

/// Returns the columns that a part must have, with one row.
fn one_row() -> Vec<(&'static str, Column)> {
    let long = |value| Column::Long(vec![Some(value)]);
    vec![
        ("key", long(0x463b_9618_1691_fc9c)),
        ("move", Column::Int(vec![796])),
        ("black", Column::Bool(vec![false])),
        ("wins", long(5)),
        ("draws", long(2)),
        ("losses", long(1)),
    ]
}

/// Writes a part with nullable columns, as query engines do.
fn write_part(path: &Path, columns: &[(&'static str, Column)]) {
    write_part_with(path, columns, WriterProperties::new());
}

fn write_part_with(path: &Path, columns: &[(&'static str, Column)], properties: WriterProperties) {
    write_groups(path, columns, properties, 1);
}

/// Writes a part with `groups` row groups, each with the same rows.
fn write_groups(
    path: &Path,
    columns: &[(&'static str, Column)],
    properties: WriterProperties,
    groups: usize,
) {
    let fields = columns.iter().map(|(name, column)| match column {
        Column::Long(_) => format!("optional int64 {name};"),
        Column::Unsigned(_) => format!("optional int64 {name} (INTEGER(64,false));"),
        Column::Int(_) => format!("optional int32 {name};"),
        Column::Bool(_) => format!("optional boolean {name};"),
    });
    let schema = format!("message any {{ {} }}", fields.collect::<Vec<_>>().join(" "));
    let schema = Arc::new(parse_message_type(&schema).unwrap());
    let file = File::create(path).unwrap();
    let mut out = SerializedFileWriter::new(file, schema, Arc::new(properties)).unwrap();
    for _ in 0..groups {
        write_group(out.next_row_group().unwrap(), columns);
    }
    out.close().unwrap();
}

fn write_group(mut group: SerializedRowGroupWriter<'_, File>, columns: &[(&'static str, Column)]) {
    for (_, column) in columns {
        let mut writer = group.next_column().unwrap().unwrap();
        match column {
            Column::Long(values) | Column::Unsigned(values) => {
                let levels: Vec<i16> = values
                    .iter()
                    .map(|value| i16::from(value.is_some()))
                    .collect();
                let values: Vec<i64> = values.iter().copied().flatten().collect();
                let typed = writer.typed::<Int64Type>();
                typed.write_batch(&values, Some(&levels), None).unwrap();
            }
            Column::Int(values) => {
                let typed = writer.typed::<Int32Type>();
                typed
                    .write_batch(values, Some(&vec![1; values.len()]), None)
                    .unwrap();
            }
            Column::Bool(values) => {
                let typed = writer.typed::<BoolType>();
                typed
                    .write_batch(values, Some(&vec![1; values.len()]), None)
                    .unwrap();
            }
        }
        writer.close().unwrap();
    }
    group.close().unwrap();
}

/// Creates a directory of counts with one part and without a sidecar.
fn foreign(dir: &Path, name: &str, columns: &[(&'static str, Column)]) -> PathBuf {
    let counts = dir.join(name);
    fs::create_dir(&counts).unwrap();
    write_part(&counts.join("data.parquet"), columns);
    counts
}

#[test]
fn counts_of_other_programs_are_read_and_the_header_says_so() {
    let dir = temp();
    let mut columns = one_row();
    columns.rotate_left(2);
    columns.push(("year", Column::Int(vec![1994])));
    let counts = foreign(dir.path(), "theirs", &columns);
    // Several rows of one move add up, in any order.
    write_part(&counts.join("more.parquet"), &one_row());
    fs::write(counts.join("_SUCCESS"), "").unwrap();
    fs::write(counts.join(".part.parquet.crc"), "crc").unwrap();
    let made = run(dir.path(), "make-book theirs --bin theirs.bin");
    let said = String::from_utf8_lossy(&made.stderr);
    assert!(made.status.success(), "{said}");
    assert!(
        said.starts_with("the number of games is unknown") && !said.contains("0 games"),
        "{said}"
    );
    let report = ok_json(dir.path(), "make-book -q theirs --bin theirs.bin --json");
    assert_eq!(report["has_unknown_games"], true, "{report}");
    let header = ok(dir.path(), "pgheader -s theirs.bin");
    assert!(
        header.contains("Input: theirs (counts that do not name their games)\nOptions:"),
        "{header}"
    );
    let shown = ok_json(dir.path(), "show theirs.bin --json");
    assert_eq!(shown["moves"][0]["weight"], 24, "{shown}");
}

#[test]
fn an_error_about_an_impossible_row_names_its_part() {
    let dir = temp();
    let long = |values: &[Option<i64>]| Column::Long(values.to_vec());
    let cases: Vec<(&str, Option<Column>, &str)> = vec![
        (
            "wins",
            Some(long(&[None])),
            "column \"wins\" contains a null in row 0 or soon after: write a value in every row",
        ),
        (
            "wins",
            Some(long(&[Some(-1)])),
            "row 0: \"wins\" is -1, which is impossible: correct the row",
        ),
        (
            "losses",
            Some(long(&[Some(i64::MAX)])),
            "row 0: \"losses\" is 9223372036854775807, which is impossible: correct the row",
        ),
        (
            "key",
            Some(long(&[Some(0)])),
            "row 0: \"key\" is 0, which is impossible: correct the row",
        ),
        (
            "move",
            Some(Column::Int(vec![0])),
            "row 0: \"move\" is 0, which is impossible: correct the row",
        ),
        (
            "move",
            Some(Column::Int(vec![65_536])),
            "\"move\" is 65536, which is impossible",
        ),
        (
            "move",
            Some(Column::Int(vec![-1])),
            "\"move\" is -1, which is impossible",
        ),
        (
            "move",
            Some(Column::Int(vec![6 << 12 | 796])),
            "\"move\" is 25372, which is impossible",
        ),
        ("draws", None, "no column \"draws\""),
        (
            "black",
            Some(Column::Int(vec![1])),
            "column \"black\" has the type INT32, but must be a boolean: cast the column",
        ),
        (
            "key",
            Some(Column::Bool(vec![true])),
            "column \"key\" has the type BOOLEAN",
        ),
        (
            "wins twice",
            Some(long(&[Some(5)])),
            "several columns named \"wins\": keep only one of the columns",
        ),
    ];
    for (i, (name, column, told)) in cases.into_iter().enumerate() {
        let mut columns = one_row();
        let place = columns.iter().position(|(known, _)| *known == name);
        match (place, column) {
            (Some(place), Some(column)) => columns[place].1 = column,
            (Some(place), None) => drop(columns.remove(place)),
            (None, column) => columns.push(("wins", column.unwrap())),
        }
        let counts = format!("case{i}");
        foreign(dir.path(), &counts, &columns);
        let err = fails(dir.path(), &format!("make-book {counts}"), 1);
        assert!(
            err.contains(&format!("{counts}/data.parquet: ")) && err.contains(told),
            "{name}: {err}"
        );
    }
    // This row follows the advice of all messages: correct values, the right types, no nulls, and each column once.
    foreign(dir.path(), "correct", &one_row());
    ok(dir.path(), "make-book -q correct --bin correct.bin");
    // Each part is valid, but their sum is too large.
    let many = || {
        let mut columns = one_row();
        columns[3].1 = Column::Long(vec![Some(1 << 60); 8]);
        columns[0].1 = Column::Long(vec![Some(7); 8]);
        columns[1].1 = Column::Int(vec![796; 8]);
        columns[2].1 = Column::Bool(vec![false; 8]);
        columns[4].1 = Column::Long(vec![Some(0); 8]);
        columns[5].1 = Column::Long(vec![Some(0); 8]);
        columns
    };
    let counts = foreign(dir.path(), "many", &many());
    write_part(&counts.join("more.parquet"), &many());
    let err = fails(dir.path(), "make-book many", 1);
    assert!(err.contains("add up to more than 2^63"), "{err}");
    assert!(err.contains("correct the rows"), "{err}");
    for part in ["data.parquet", "more.parquet"] {
        write_part(&counts.join(part), &one_row());
    }
    ok(dir.path(), "make-book -q many --bin many.bin");
    // Counts of variants need a column that distinguishes their positions, and a book needs keys.
    let err = fails(
        dir.path(),
        "make-book case0 --variant crazyhouse --obs x.obs.db3",
        1,
    );
    assert!(
        err.contains("case0/data.parquet: this Parquet file has no column \"identity\""),
        "{err}"
    );
}

/// A row of a database contains fewer games than a row of counts can.
#[test]
fn counts_of_more_games_than_a_database_can_contain() {
    let dir = temp();
    let dir = dir.path();
    for (name, wins) in [("all", 1 << 37), ("one", 1 << 36), ("two", 1 << 36)] {
        let mut columns = one_row();
        columns[3].1 = Column::Long(vec![Some(wins)]);
        foreign(dir, name, &columns);
    }
    let err = fails(dir, "make-book all --obs all.obs.db3", 1);
    let advice =
        "write counts instead of a database, or distribute the games over several databases";
    assert!(err.contains(advice), "{err}");
    ok(dir, "make-book -q all --counts all.counts");
    ok(dir, "make-book -q one --obs one.obs.db3");
    ok(dir, "make-book -q two --obs two.obs.db3");
}

/// The metadata of a Parquet file describe each column of each row group.
#[test]
fn metadata_that_are_too_long_are_refused() {
    let dir = temp();
    let long: &'static str = "x".repeat(1 << 20).leak();
    let mut columns = one_row();
    columns.push((long, Column::Int(vec![0])));
    let part = foreign(dir.path(), "counts", &columns).join("data.parquet");
    let make = "make-book -q counts --min-game 1 --bin book.bin";
    write_groups(&part, &columns, WriterProperties::new(), 20);
    let err = fails(dir.path(), make, 1);
    let advice = "write the file with larger row groups";
    assert!(err.contains(advice), "{err}");
    write_groups(&part, &columns, WriterProperties::new(), 1);
    ok(dir.path(), make);
}

#[test]
fn an_error_about_an_impossible_row_by_class_names_its_part() {
    let dir = temp();
    let dir = dir.path();
    let long = |value| Column::Long(vec![Some(value); 2]);
    let two = || {
        let key = 0x463b_9618_1691_fc9c;
        vec![
            ("key", long(key)),
            ("move", Column::Int(vec![796; 2])),
            ("black", Column::Bool(vec![false; 2])),
            ("wins", long(5)),
            ("draws", long(2)),
            ("losses", long(1)),
            ("month", Column::Int(vec![202_401, 202_312])),
            ("speed", Column::Int(vec![5; 2])),
            ("rating_group", Column::Int(vec![2500; 2])),
            ("book_only", Column::Bool(vec![false; 2])),
            ("rated", long(8)),
            ("rating_sum", long(20_000)),
        ]
    };
    let large = i64::MAX / 4;
    let cases: Vec<(&str, Option<Column>, &str)> = vec![
        (
            "month",
            Some(Column::Int(vec![202_413; 2])),
            "row 0: \"month\" is 202413, which is impossible: correct the row",
        ),
        (
            "month",
            Some(Column::Int(vec![202_401, 12])),
            "row 1: \"month\" is 12, which is impossible: correct the row",
        ),
        ("month", Some(Column::Int(vec![-1; 2])), "\"month\" is -1"),
        (
            "month",
            Some(Column::Int(vec![1_000_001; 2])),
            "\"month\" is 1000001",
        ),
        ("speed", Some(Column::Int(vec![6; 2])), "\"speed\" is 6"),
        (
            "rating_group",
            Some(Column::Int(vec![2501; 2])),
            "\"rating_group\" is 2501",
        ),
        ("rated", Some(long(9)), "\"rated\" is 9"),
        ("rated", Some(long(-1)), "\"rated\" is -1"),
        ("rating_sum", Some(long(32_001)), "\"rating_sum\" is 32001"),
        ("rating_sum", Some(long(7)), "\"rating_sum\" is 7"),
        ("rating_sum", None, "no column \"rating_sum\""),
        ("book_only", None, "no column \"book_only\""),
        (
            "month",
            Some(Column::Bool(vec![false; 2])),
            "\"month\" has the type BOOLEAN",
        ),
        (
            "move",
            Some(Column::Int(vec![796, 795])),
            "row 1 is not in order: sort the rows by key, move and identity, and write all rows of a key to one Parquet \
             file",
        ),
        (
            "key",
            Some(Column::Unsigned(vec![Some(0x463b_9618_1691_fc9c); 2])),
            "the column \"key\" is unsigned: cast the column to signed numbers of 64 bits, and then sort the rows by \
             key, move and identity",
        ),
        (
            "black",
            Some(Column::Bool(vec![false, true])),
            "row 1: \"black\" differs from the row before, although both rows have the same key: correct one of the \
             two rows",
        ),
    ];
    for (number, (name, column, problem)) in cases.into_iter().enumerate() {
        let mut columns = two();
        columns.retain(|(other, _)| *other != name || column.is_some());
        for (_, old) in columns.iter_mut().filter(|(other, _)| *other == name) {
            *old = column.clone().unwrap();
        }
        let counts = foreign(dir, &format!("{number}"), &columns);
        for output in ["--counts x", "--explorer x"] {
            let err = fails(dir, &format!("make-book {number} {output}"), 1);
            assert!(
                err.contains(problem) && err.contains("data.parquet"),
                "{problem}: {err}"
            );
            assert!(!dir.join("x").exists() && counts.exists());
        }
    }
    // These rows follow the advice of all messages: they are correct, and sorted by signed keys, moves and identities.
    // The classes of one move may come in any order, and several rows of a class add up.
    foreign(dir, "rows", &two());
    ok(
        dir,
        "make-book -q rows rows --by month,speed --counts added",
    );
    let directory = CountsDirectory::open(dir.join("added")).unwrap();
    let mut months = Vec::new();
    let by = directory.by().unwrap();
    directory.parts()[0]
        .read_classed(by, &mut |rows| {
            months.extend(
                rows.iter()
                    .map(|row| (row.class.month, row.means.rating().sum, row.row.stats.wins)),
            );
            Ok(())
        })
        .unwrap();
    assert_eq!(
        (by.to_string(), months),
        (
            "speed,month".to_owned(),
            vec![(202_312, 40_000, 10), (202_401, 40_000, 10)]
        )
    );
    // If the columns of the ratings are missing, no rating is known.
    let mut columns = two();
    columns.retain(|(name, _)| !name.starts_with("rat") || *name == "rating_group");
    foreign(dir, "unrated", &columns);
    ok(dir, "make-book -q unrated rows --explorer partly");
    let moves = ok_json(dir, "show partly --json");
    let e4 = &moves["moves"][0];
    let rating = [&e4["games"], &e4["average_rating"], &e4["rating_games"]];
    assert_eq!(
        rating.map(|number| number.as_u64().unwrap()),
        [32, 2500, 16]
    );
    // The sums are too large.
    let mut columns = two();
    for (name, column) in &mut columns {
        match *name {
            "wins" => *column = long(large),
            "rated" => *column = long(large / 2),
            "rating_sum" => *column = long(i64::MAX - 5),
            _ => {}
        }
    }
    foreign(dir, "large", &columns);
    let err = fails(dir, "make-book large --counts x", 1);
    assert!(err.contains("add up to more than 2^63"), "{err}");
    for (name, column) in &mut columns {
        if *name == "rating_sum" || *name == "rated" {
            *column = long(large / 2);
        }
    }
    foreign(dir, "many", &columns);
    ok(dir, "make-book -q many --counts many.counts");
    for (inputs, problem) in [
        ("many many many", "add up to more than 2^63"),
        (
            "many",
            "the counts contain an impossibly large number of games of a move",
        ),
    ] {
        let output = match inputs {
            "many" => "--explorer x",
            _ => "--counts x",
        };
        let err = fails(dir, &format!("make-book {inputs} {output}"), 1);
        assert!(err.contains(problem), "{err}");
        assert!(!dir.join("x").exists());
    }
    // The parts have different classes.
    let mut columns = two();
    columns.retain(|(name, _)| *name != "speed");
    foreign(dir, "mixed", &two());
    write_part(&dir.join("mixed/more.parquet"), &columns);
    for output in ["--counts x", "--counts x --by month", "--explorer x"] {
        let err = fails(dir, &format!("make-book mixed {output}"), 1);
        let problem = "mixed/more.parquet: the columns of this Parquet file are those of counts by rating,month, but other files have those of counts by speed,rating,month: count all games by the same properties";
        assert!(err.contains(problem), "{output}: {err}");
        assert!(!dir.join("x").exists());
    }
    let mut other_keys = two();
    other_keys[0].1 = Column::Long(vec![Some(i64::MAX); 2]);
    write_part(&dir.join("mixed/more.parquet"), &other_keys);
    ok(dir, "make-book -q mixed --counts mixed.counts");
    // The parts share keys.
    let mut columns = two();
    columns[0].1 = Column::Long(vec![Some(1), Some(i64::MAX)]);
    write_part(&dir.join("rows/more.parquet"), &columns);
    let err = fails(dir, "make-book rows --counts x", 1);
    assert!(
        err.contains("all rows of a key to one Parquet file"),
        "{err}"
    );
    ok(dir, "make-book -q rows --bin rows.bin");
}

/// Returns the columns of counts by month, with a row of 1. e4 for each key.
fn by_month(keys: &[i64], wins: i64) -> Vec<(&'static str, Column)> {
    let long = |value| Column::Long(vec![Some(value); keys.len()]);
    vec![
        (
            "key",
            Column::Long(keys.iter().copied().map(Some).collect()),
        ),
        ("move", Column::Int(vec![796; keys.len()])),
        ("black", Column::Bool(vec![false; keys.len()])),
        ("wins", long(wins)),
        ("draws", long(0)),
        ("losses", long(0)),
        ("month", Column::Int(vec![0; keys.len()])),
        ("book_only", Column::Bool(vec![false; keys.len()])),
        ("rating_sum", long(0)),
        ("rated", long(0)),
    ]
}

/// polybook does not write counts that it would refuse to read.
#[test]
fn sums_that_no_counts_can_have_are_not_written() {
    let dir = temp();
    let dir = dir.path();
    let start = 0x463b_9618_1691_fc9c;
    let most = i64::MAX / 4;
    foreign(dir, "large", &by_month(&[start], most));
    foreign(dir, "four", &by_month(&[1, 2, 3, 4], most));
    fs::write(dir.join("one.pgn"), "1. e4 e5 2. Nf3 Nc6 3. Bb5 1-0\n").unwrap();
    for inputs in ["large one.pgn", "large large", "four one.pgn"] {
        let err = fails(dir, &format!("make-book {inputs} --by month --counts x"), 1);
        assert!(
            err.contains("x: the numbers of games add up"),
            "{inputs}: {err}"
        );
        assert!(!dir.join("x").exists());
    }
    ok(dir, "make-book -q large --counts x");
    ok(dir, "make-book -q x --counts again");
}

#[test]
fn rows_by_class_that_do_not_fit_those_of_other_inputs_are_refused() {
    let dir = temp();
    let dir = dir.path();
    let write = |name: &str, column: &str, values: Column| {
        let mut columns = by_month(&[5], 1);
        columns.retain(|(name, _)| *name != column);
        columns.push((Box::leak(column.to_owned().into_boxed_str()), values));
        foreign(dir, name, &columns)
    };
    foreign(dir, "white", &by_month(&[5], 1));
    let black = write("black", "black", Column::Bool(vec![true]));
    let mut other = by_month(&[5], 1);
    other[1].1 = Column::Int(vec![797]);
    other[2].1 = Column::Bool(vec![true]);
    foreign(dir, "other", &other);
    for inputs in ["white black", "white other"] {
        let err = fails(dir, &format!("make-book {inputs} --counts x"), 1);
        assert!(
            err.contains("white: the inputs have different values of \"black\" for the key 5"),
            "{err}"
        );
        assert!(!dir.join("x").exists() && black.exists());
    }
    // The counts belong to a variant, but the variant is not named.
    write("identity", "identity", Column::Long(vec![Some(6)]));
    for by in ["", "--by none"] {
        let err = fails(dir, &format!("make-book identity {by} --counts x"), 1);
        assert!(
            err.contains("identity/data.parquet: this Parquet file has a column \"identity\"")
                && err.contains("name the variant"),
            "{err}"
        );
    }
    ok(
        dir,
        "make-book -q identity --variant crazyhouse --counts named",
    );
    let err = fails(dir, "make-book white --variant crazyhouse --counts x", 1);
    assert!(
        err.contains("white/data.parquet: this Parquet file has no column \"identity\""),
        "{err}"
    );
    // The rows have no games.
    foreign(dir, "none", &by_month(&[4, 5], 0));
    ok(dir, "make-book -q white none --counts sum");
    assert_eq!(rows(&dir.join("sum")).concat().len(), 1);
    // Counts without classes may have a column with this name.
    let mut plain = one_row();
    plain.push(("book_only", Column::Int(vec![1])));
    foreign(dir, "plain", &plain);
    ok(dir, "make-book -q plain --counts plain.counts");
}

#[test]
fn counts_without_games_that_end_in_a_position_are_not_added_to_others() {
    let dir = temp();
    let dir = dir.path();
    let pgn = sample("famous.pgn").display().to_string();
    ok(
        dir,
        &format!("make-book -q {pgn} --by speed,rating,month --counts ends"),
    );
    for (name, number) in [("few", 10_000), ("many", 10_001)] {
        let keys: Vec<i64> = (1..=number).collect();
        let mut columns = by_month(&keys, 1);
        columns.push(("speed", Column::Int(vec![0; keys.len()])));
        columns.push(("rating_group", Column::Int(vec![-1; keys.len()])));
        foreign(dir, name, &columns);
    }
    let pgn = format!("many {pgn} --counts x");
    for line in ["ends many --counts x", "many ends --explorer x", &pgn] {
        let err = fails(dir, &format!("make-book {line}"), 1);
        assert!(
            err.contains("many: these counts have no rows with the move 0")
                && err.contains("keep these rows in all counts, or leave them out of all")
                && !dir.join("x").exists(),
            "{err}"
        );
    }
    // The rows are left out of all counts, are missing only by chance, or are kept in all counts.
    for inputs in ["many few", "ends few", "ends ends"] {
        ok(dir, &format!("make-book -q {inputs} --counts x --force"));
    }
    ok(dir, "make-book -q many --explorer many.idx");
}

#[test]
fn row_groups_have_as_many_rows_as_their_file() {
    let dir = temp();
    let dir = dir.path();
    let path = foreign(dir, "groups", &by_month(&[5], 1)).join("data.parquet");
    let mut bytes = fs::read(&path).unwrap();
    // The number of rows and the beginning of the list of row groups, in Thrift's compact encoding.
    let rows = [0x16, 2, 0x19, 0x1c];
    let place = bytes.windows(4).rposition(|four| four == rows).unwrap();
    bytes[place + 1] = 14;
    fs::write(&path, bytes).unwrap();
    let err = fails(dir, "make-book groups --counts x", 1);
    assert!(
        err.contains("the row groups have more or fewer rows than the file states"),
        "{err}"
    );
}

#[test]
fn parts_that_are_damaged_missing_or_foreign_are_told() {
    let dir = temp();
    let line = format!(
        "make-book -q {} --counts sound",
        sample("famous.pgn").display()
    );
    ok(dir.path(), &line);
    let sound = files(&dir.path().join("sound"));
    let part = "part-000.parquet";
    let refused = |change: &dyn Fn(&Path), told: &str| {
        let counts = dir.path().join("damaged");
        fs::create_dir(&counts).unwrap();
        for (name, bytes) in &sound {
            fs::write(counts.join(name), bytes).unwrap();
        }
        change(&counts);
        let err = fails(dir.path(), "make-book damaged --bin book.bin", 1);
        assert!(err.contains(told), "{told}: {err}");
        assert!(!dir.path().join("book.bin").exists());
        fs::remove_dir_all(&counts).unwrap();
    };
    refused(
        &|counts| fs::remove_file(counts.join(part)).unwrap(),
        "part-000.parquet: this file is missing, although _counts.json lists",
    );
    refused(
        &|counts| fs::write(counts.join(part), &sound[part][..1000]).unwrap(),
        "part-000.parquet: this file has 1000 bytes, but _counts.json states",
    );
    refused(
        &|counts| {
            let mut bytes = sound[part].clone();
            let end = bytes.len();
            bytes[end - 400..end - 8].fill(0xff);
            fs::write(counts.join(part), bytes).unwrap();
        },
        "part-000.parquet: this file is damaged, or is not",
    );
    // The damage must be reported, whether it makes rows invalid or not.
    for eighth in 0..6 {
        refused(
            &|counts| {
                let mut bytes = sound[part].clone();
                let at = bytes.len() / 8 * eighth + 100;
                bytes[at] ^= 1;
                fs::write(counts.join(part), bytes).unwrap();
            },
            "part-000.parquet: the checksum of this file differs from the checksum in _counts.json",
        );
    }
    refused(
        &|counts| fs::write(counts.join("part-001.parquet"), &sound[part]).unwrap(),
        "part-001.parquet: _counts.json does not list this file",
    );
    refused(
        &|counts| {
            let text = String::from_utf8(sound["_counts.json"].clone()).unwrap();
            let rows = text.lines().find(|line| line.contains("\"rows\"")).unwrap();
            fs::write(
                counts.join("_counts.json"),
                text.replace(rows, "\"rows\": 7,"),
            )
            .unwrap();
        },
        "rows, but _counts.json states 7",
    );
    refused(
        &|counts| fs::write(counts.join("_counts.json"), "{").unwrap(),
        "_counts.json: this file does not describe counts",
    );
    refused(
        &|counts| {
            let text = String::from_utf8(sound["_counts.json"].clone()).unwrap();
            fs::write(
                counts.join("_counts.json"),
                text.replacen("\"version\": 2", "\"version\": 3", 1),
            )
            .unwrap();
        },
        "the counts use version 3 of the format, but this polybook reads version 2",
    );
    refused(
        &|counts| {
            let text = String::from_utf8(sound["_counts.json"].clone()).unwrap();
            fs::write(
                counts.join("_counts.json"),
                text.replacen("\"version\": 2", "\"version\": 1", 1),
            )
            .unwrap();
        },
        "the counts use version 1 of the format, but this polybook reads version 2: count the games again",
    );
    let err = fails(
        dir.path(),
        &format!("make-book {}", dir.path().display()),
        1,
    );
    assert!(
        err.contains("this is a directory: give the PGN files in the directory"),
        "{err}"
    );
}

/// Only `make-book` reads counts. Other commands report this in an error, and a single file of counts is not an
/// input.
#[test]
fn counts_are_named_as_such() {
    let dir = temp();
    let dir = dir.path();
    let pgn = sample("famous.pgn").display().to_string();
    ok(
        dir,
        &format!("make-book -q {pgn} --counts c --bin b.bin --leveldb i.idx"),
    );
    // A directory with a PGN file and a Parquet file of another program.
    fs::create_dir(dir.join("p")).unwrap();
    fs::copy(sample("famous.pgn"), dir.join("p/famous.pgn")).unwrap();
    ok(dir, "convert b.bin p/table.parquet");
    let counts = "c: this is a directory of counts: make a book or an index from the counts with polybook make-book";
    let advice = "c: this is a directory of counts: make an index with polybook make-book --explorer c.idx c";
    let games = "c: this is a directory of counts, but games are needed: make an index from the PGN files of the games \
                 with polybook make-book --explorer DIR";
    let index = "i.idx: this is an index: give a book or a database";
    refused(
        dir,
        &[
            (
                "convert c a.epd",
                1,
                "make a database of all moves with polybook make-book c --min-game 1 --obs FILE.obs.db3, and convert",
            ),
            ("merge-book b.bin c", 1, counts),
            ("diff b.bin c", 1, counts),
            ("verify c", 1, counts),
            (
                "verify c --fix a.bin",
                1,
                "c: this is a directory, but --fix applies only to Polyglot books",
            ),
            ("serve c", 1, advice),
            (
                "serve p",
                1,
                "p: this is a directory, but not an index: give the PGN files in the directory, such as p/*.pgn",
            ),
            ("openings c", 1, games),
            ("games c", 1, games),
            ("games c --pgn --id 0", 1, games),
            ("prepare c --player A --opponent B --color white", 1, games),
            ("serve i.idx --book c", 1, counts),
            ("convert i.idx a.epd", 1, index),
            ("diff i.idx b.bin", 1, index),
            (
                "edit . --remove e4 --in-place",
                1,
                ".: this is a directory: give the name of a file",
            ),
            (
                "make-book c/part-000.parquet",
                1,
                "give the directory of counts to which this file belongs",
            ),
        ],
    );
    // In the directory of the counts, the advice names an index next to the directory.
    let advice = fails(&dir.join("c"), "serve .", 1);
    let index = dir.canonicalize().unwrap().join("c.idx");
    let expected = format!(
        "make an index with polybook make-book --explorer {} ., and",
        index.display()
    );
    assert!(advice.contains(&expected), "{advice}");
}

/// Counts contain every move, so an option that filters or weighs moves would have no effect.
#[test]
fn options_of_books_are_not_for_counts_alone() {
    let dir = temp();
    let dir = dir.path();
    fs::write(dir.join("games.pgn"), "1. e4 e5 2. Nf3 *\n").unwrap();
    for option in ["--min-score 5", "--only-white", "--only-black", "--uniform"] {
        let name = option.split(' ').next().unwrap();
        for other in ["", "--leveldb i.idx"] {
            let line = format!("make-book -q games.pgn --counts c {option} {other}");
            let err = fails(dir, line.as_str(), 2);
            let expected = format!("{name} applies only to books, and counts contain every move");
            assert!(err.contains(&expected), "{err}");
        }
    }
    ok(dir, "make-book -q games.pgn --counts c --min-game 1");
    ok(
        dir,
        "make-book -q games.pgn --counts c --force --obs d.obs.db3 --min-game 1 --only-white",
    );
}

/// If a move has more games than fit into a record, it has several records, the largest first.
#[test]
fn counts_of_a_move_of_very_many_games_are_added() {
    let dir = temp();
    fs::write(dir.path().join("0.pgn"), "1. e4 1-0\n").unwrap();
    ok(dir.path(), "make-book -q 0.pgn --counts c0");
    for i in 0..16 {
        let line = format!("make-book -q c{i} c{i} --counts c{}", i + 1);
        ok(dir.path(), &line);
    }
    let book = ok_json(dir.path(), "make-book c16 c16 --bin book.bin --json");
    assert_eq!(book["book"]["largest_weight"], 1 << 18);
    let games = ok_json(dir.path(), "make-book c16 --obs sum.obs.db3 --json");
    assert_eq!(games["games"]["counted"], 1 << 16);
    // A sidecar cannot contain the names of a million inputs.
    fs::remove_file(dir.path().join("c16/_counts.json")).unwrap();
    // Large numbers, which are stored separately, make a position frequent, whatever other counts add.
    for i in 16..20 {
        let line = format!("make-book -q c{i} c{i} --counts c{}", i + 1);
        ok(dir.path(), &line);
    }
    for memory in ["64KiB", "1GiB"] {
        let line = format!(
            "make-book c20 c0 --min-game 10 --memory {memory} --bin book.bin --force --json"
        );
        assert_eq!(ok_json(dir.path(), &line)["book"]["entries"], 1, "{memory}");
    }
}

#[test]
fn a_run_without_games_writes_no_counts() {
    let dir = temp();
    fs::write(dir.path().join("none.pgn"), "\n").unwrap();
    let err = fails(dir.path(), "make-book none.pgn --counts none", 1);
    assert!(err.contains("nothing was written"), "{err}");
    assert!(!dir.path().join("none").exists());
    ok(
        dir.path(),
        "make-book -q none.pgn --counts none --allow-empty",
    );
    // --min-game may drop everything.
    let pgn = sample("famous.pgn");
    let all = format!(
        "make-book -q {} --counts few --by speed,rating,month --min-game 1000",
        pgn.display()
    );
    let err = fails(dir.path(), &all, 1);
    let reason = "positions contains at least 1000 counted moves: use a smaller --min-game";
    assert!(
        err.contains(reason) && !dir.path().join("few").exists(),
        "{err}"
    );
    ok(dir.path(), &(all + " --allow-empty"));
    let index = "make-book -q few --explorer few.idx";
    let err = fails(dir.path(), index, 1);
    assert!(
        err.contains("the counts contain no move or end of a game that an index could show"),
        "{err}"
    );
    ok(dir.path(), &format!("{index} --allow-empty"));
    assert!(fails(dir.path(), "make-book none", 1).contains("the input contains no game"));
    ok(dir.path(), "make-book -q none --bin none.bin --allow-empty");
}

/// Returns the number of rows of a Parquet file.
fn rows_of(path: &Path) -> i64 {
    let reader = SerializedFileReader::new(File::open(path).unwrap()).unwrap();
    reader.metadata().file_metadata().num_rows()
}

#[test]
fn names_are_written_beside_counts_and_do_not_depend_on_threads_and_memory() {
    let dir = temp();
    let dir = dir.path();
    let inputs = format!(
        "--max-ply 30 {} {}",
        sample("selfplay.pgn").display(),
        sample("famous.pgn").display()
    );
    ok(dir, &format!("make-book -q {inputs} --counts plain.counts"));
    let mut named: Option<BTreeMap<String, Vec<u8>>> = None;
    for options in ["--threads 1", "--threads 3", "--threads 2 --memory 64KiB"] {
        let counts = "--counts named.counts --with fen,san,opening --force";
        ok(dir, &format!("make-book -q {inputs} {options} {counts}"));
        let files = files(&dir.join("named.counts"));
        assert!(
            named.as_ref().is_none_or(|named| *named == files),
            "{options}"
        );
        named = Some(files);
    }
    let named = named.unwrap();
    for (name, bytes) in files(&dir.join("plain.counts")) {
        assert!(name == "_counts.json" || named[&name] == bytes, "{name}");
    }
    let [positions, moves] =
        ["_positions.pq", "_moves.pq"].map(|name| dir.join("named.counts").join(name));
    let all = rows(&dir.join("named.counts")).concat();
    let mut keys: Vec<u64> = all.iter().map(|row| row.key).collect();
    keys.dedup();
    assert_eq!(
        (rows_of(&positions), rows_of(&moves)),
        (keys.len() as i64, all.len() as i64)
    );
    // Counts of counts have the same names, and only those that are requested.
    ok(
        dir,
        "make-book -q named.counts --counts again.counts --with san,fen,opening",
    );
    let again = files(&dir.join("again.counts"));
    for name in ["_positions.pq", "_moves.pq"] {
        assert!(again[name] == named[name], "{name}");
    }
    ok(
        dir,
        "make-book -q named.counts --counts again.counts --force --with san",
    );
    let again = files(&dir.join("again.counts"));
    assert!(again["_moves.pq"] == named["_moves.pq"] && !again.contains_key("_positions.pq"));
    ok(
        dir,
        "make-book -q named.counts --counts again.counts --force",
    );
    assert!(!files(&dir.join("again.counts")).contains_key("_moves.pq"));
}

#[test]
fn names_follow_the_kept_positions_the_classes_and_the_variant() {
    let dir = temp();
    let dir = dir.path();
    let selfplay = sample("selfplay.pgn");
    let selfplay = selfplay.display();
    ok(
        dir,
        &format!("make-book -q {selfplay} --counts few.counts --min-game 5 --with fen,san"),
    );
    let mut keys: Vec<u64> = rows(&dir.join("few.counts"))
        .concat()
        .iter()
        .map(|row| row.key)
        .collect();
    keys.dedup();
    assert!(keys.len() > 20);
    assert_eq!(
        rows_of(&dir.join("few.counts/_positions.pq")),
        keys.len() as i64
    );
    // Classes divide rows, but not positions and moves.
    ok(
        dir,
        &format!("make-book -q {selfplay} --counts all.counts --with fen,san,opening"),
    );
    ok(
        dir,
        &format!(
            "make-book -q {selfplay} --counts by.counts --by month,rating --with fen,san,opening"
        ),
    );
    let [all, by] = ["all.counts", "by.counts"].map(|name| files(&dir.join(name)));
    for name in ["_positions.pq", "_moves.pq"] {
        assert!(all[name] == by[name], "{name}");
    }
    let variants = sample("variants.pgn");
    let variants = variants.display();
    ok(
        dir,
        &format!("make-book -q {variants} --variant crazyhouse --counts zh.counts --with fen,san"),
    );
    let mut identities: Vec<u64> = rows(&dir.join("zh.counts"))
        .concat()
        .iter()
        .map(|row| row.identity)
        .collect();
    identities.sort_unstable();
    identities.dedup();
    assert!(identities.len() > 10);
    assert_eq!(
        rows_of(&dir.join("zh.counts/_positions.pq")),
        identities.len() as i64
    );
    let several = format!("make-book -q {variants} --variant auto --counts x.counts --with fen");
    let refusal = fails(dir, &*several, 1);
    assert!(
        refusal.contains("counts with names can contain games of only one variant"),
        "{refusal}"
    );
    for (wrong, says) in [
        (
            "--counts x.counts --with uci",
            "use one or more of fen, san and opening",
        ),
        (
            "--counts x.counts --with fen,",
            "use one or more of fen, san and opening",
        ),
        ("--bin x.bin --with fen", "--counts"),
    ] {
        let error = fails(dir, &*format!("make-book -q {selfplay} {wrong}"), 2);
        assert!(error.contains(says), "{error}");
    }
    assert!(!dir.join("x.counts").exists() && !dir.join("x.bin").exists());
}
