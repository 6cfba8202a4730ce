//! Counts that other query engines add up: DuckDB and Spark.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

#[cfg(feature = "serve")]
use crate::common::served::Served;
use crate::{
    classes::class_rows,
    common::{corpus, cut_games, fails, is_without, ok, python, run_python, sample, skip, temp},
};

/// Writes games of all kinds into several files, and returns their names in order.
fn write_games(dir: &Path) -> Vec<String> {
    let games = fs::read_to_string(sample("selfplay.pgn")).unwrap();
    let half = games[..games.len() / 2].rfind("[Event ").unwrap();
    fs::write(dir.join("a.pgn"), &games[..half]).unwrap();
    let packed = zstd::encode_all(&games.as_bytes()[half..], 1).unwrap();
    fs::write(dir.join("b.pgn.zst"), packed).unwrap();
    fs::copy(sample("famous.pgn"), dir.join("c.pgn")).unwrap();
    let odd = "[Event \"x\"]\n[FEN \"4k3/8/8/8/8/8/4P3/4K3 w - - 0 1\"]\n\n1. e4 Kd7 1-0\n\n\
               [Event \"y\"]\n[Result \"1-0\"]\n\n1. e4 e5 2. Ke3 1-0\n\n";
    fs::write(dir.join("d.pgn"), odd.repeat(3)).unwrap();
    ["a.pgn", "b.pgn.zst", "c.pgn", "d.pgn"]
        .map(str::to_owned)
        .to_vec()
}

/// Makes all outputs from `inputs`, and returns their files.
fn outputs(dir: &Path, inputs: &str, name: &str) -> Vec<(String, Vec<u8>)> {
    let mut made = Vec::new();
    for (i, options) in [
        "",
        "--min-game 1",
        "--uniform",
        "--scale position --win-factor 900",
    ]
    .into_iter()
    .enumerate()
    {
        let (bin, obs) = (format!("{name}{i}.bin"), format!("{name}{i}.obs.db3"));
        ok(
            dir,
            &format!("make-book -q {inputs} {options} --bin {bin} --obs {obs} --force"),
        );
        for (file, kind) in [(bin, "bin"), (obs, "obs")] {
            made.push((
                format!("{kind} {options}"),
                fs::read(dir.join(file)).unwrap(),
            ));
        }
    }
    made
}

#[track_caller]
fn assert_same(ours: &[(String, Vec<u8>)], theirs: &[(String, Vec<u8>)]) {
    for (ours, theirs) in ours.iter().zip(theirs) {
        assert!(ours == theirs, "{} differs", ours.0);
    }
}

/// Returns a Python that has a query engine, unless the environment disables it.
fn python_with(engine: &str, modules: &[&str]) -> Option<PathBuf> {
    if is_without(engine) {
        None
    } else {
        python(modules)
    }
}

#[test]
fn the_queries_of_docs_scale_return_results_in_order() {
    let Some(python) = python_with("duckdb", &["duckdb"]) else {
        return;
    };
    let dir = temp();
    let document = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/scale.md");
    let binary = Path::new(env!("CARGO_BIN_EXE_polybook"));
    run_python(
        &python,
        "duckdb_questions.py",
        &[dir.path(), &document, binary],
    );
    ok(
        dir.path(),
        "make-book -q online.counts --speed blitz --since 2024 --min-game 2 --bin blitz.bin --allow-empty",
    );
    // The sum of DuckDB contains every count once.
    for counts in ["all", "added"] {
        let line = format!("make-book -q {counts}.counts --no-header --bin {counts}.bin");
        ok(dir.path(), &line);
    }
    let books = ["all.bin", "added.bin"].map(|book| fs::read(dir.path().join(book)).unwrap());
    assert!(books[0] == books[1]);
}

/// The queries in the document for data people return results. The names beside counts are right. Joining counts with a
/// table of moves changes no sum, and does not lose castling moves.
#[test]
fn the_queries_of_the_document_for_data_people_return_results() {
    let Some(python) = python_with("duckdb", &["duckdb", "chess"]) else {
        return;
    };
    let dir = temp();
    // The document writes these files from the reader's own games.
    let game = "1. e4 { [%eval 0.3] } e5 { [%eval 0.2] } 2. Nf3 1-0\n\n";
    fs::write(dir.path().join("games.pgn"), game.repeat(10)).unwrap();
    ok(
        dir.path(),
        "make-book -q games.pgn --counts games.counts --min-game 1",
    );
    ok(dir.path(), "evals -q games.pgn --out evals.parquet");
    let document = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/data-person.md");
    let binary = Path::new(env!("CARGO_BIN_EXE_polybook"));
    run_python(
        &python,
        "duckdb_questions.py",
        &[dir.path(), &document, binary],
    );
    ok(dir.path(), "convert -q data.obs.db3 moves.parquet");
    run_python(&python, "duckdb_join.py", &[dir.path()]);
}

#[test]
fn duckdb_adds_counts_up() {
    let Some(python) = python_with("duckdb", &["duckdb", "pyarrow"]) else {
        return;
    };
    let dir = temp();
    let pgns = write_games(dir.path());
    let mut args: Vec<PathBuf> = vec![dir.path().join("added")];
    for pgn in &pgns {
        ok(
            dir.path(),
            &format!("make-book -q {pgn} --counts {pgn}.counts"),
        );
        args.push(dir.path().join(format!("{pgn}.counts")));
    }
    let args: Vec<&Path> = args.iter().map(PathBuf::as_path).collect();
    run_python(&python, "duckdb_counts.py", &args);
    assert_same(
        &outputs(dir.path(), &pgns.join(" "), "games"),
        &outputs(dir.path(), "added", "added"),
    );
    let report = crate::common::ok_json(dir.path(), "make-book added --json --bin again.bin");
    assert_eq!(report["rejected"][0]["file"], "d.pgn", "{report}");
}

/// Returns the names and bytes of all files of a directory of counts.
fn files(dir: &Path, counts: &str) -> Vec<(String, Vec<u8>)> {
    let entries = fs::read_dir(dir.join(counts)).unwrap().map(Result::unwrap);
    let mut files: Vec<(String, Vec<u8>)> = entries
        .map(|entry| {
            let name = entry.file_name().into_string().unwrap();
            (name, fs::read(entry.path()).unwrap())
        })
        .collect();
    files.sort();
    files
}

/// Writes the same games with dates, ratings and time controls.
fn write_tagged_games(dir: &Path) -> Vec<String> {
    let names = write_games(dir);
    let packed = fs::File::open(dir.join("b.pgn.zst")).unwrap();
    fs::write(dir.join("b.pgn"), zstd::decode_all(packed).unwrap()).unwrap();
    let names = names.iter().map(|name| name.replace(".zst", ""));
    let names: Vec<String> = names.collect();
    for name in &names {
        let text = fs::read_to_string(dir.join(name)).unwrap();
        let games = text
            .split("[Event ")
            .enumerate()
            .skip(1)
            .map(|(number, game)| {
                let (year, month) = (2020 + number % 5, 1 + number % 12);
                let (elo, seconds) = (900 + 37 * (number % 50), 15 << (number % 9));
                // In some games, neither player has a rating.
                let rating = match number % 7 {
                    0 => String::new(),
                    _ => format!("[WhiteElo \"{elo}\"]\n"),
                };
                format!(
                    "[Event \"{number}\"]\n[UTCDate \"{year}.{month:02}.01\"]\n{rating}\
                 [TimeControl \"{seconds}+0\"]\n[Round {game}"
                )
            });
        fs::write(dir.join(name), games.collect::<String>()).unwrap();
    }
    names
}

#[test]
fn duckdb_adds_and_prunes_counts_by_class() {
    let Some(python) = python_with("duckdb", &["duckdb", "pyarrow"]) else {
        return;
    };
    let dir = temp();
    let dir = dir.path();
    let pgns = write_tagged_games(dir);
    let by = "--by speed,rating,month";
    let mut args: Vec<PathBuf> = vec![dir.join("added")];
    for pgn in &pgns {
        ok(
            dir,
            &format!("make-book -q {pgn} {by} --counts {pgn}.counts"),
        );
        args.push(dir.join(format!("{pgn}.counts")));
    }
    let args: Vec<&Path> = args.iter().map(PathBuf::as_path).collect();
    run_python(&python, "duckdb_counts.py", &args);
    let pruned = [
        Path::new("--min-game=3"),
        &dir.join("pruned"),
        &dir.join("added"),
    ];
    run_python(&python, "duckdb_counts.py", &pruned);
    let pgns = pgns.join(" ");
    for (theirs, options) in [("added", ""), ("pruned", "--min-game 3")] {
        ok(
            dir,
            &format!("make-book -q {pgns} {by} {options} --counts own-{theirs}"),
        );
        ok(
            dir,
            &format!("make-book -q {theirs} --counts again-{theirs}"),
        );
        assert_same(
            &files(dir, &format!("own-{theirs}")),
            &files(dir, &format!("again-{theirs}")),
        );
    }
    assert_same(
        &outputs(dir, &pgns, "games"),
        &outputs(dir, "added", "added"),
    );
    // The script writes no sidecar for counts that polybook would not read.
    let wide = "import json, os, pyarrow as pa, pyarrow.parquet as pq; os.mkdir('wide'); \
                about = json.load(open('added/_counts.json')); json.dump({**about, 'plies': 1 << 63}, open('wide/_counts.json', 'w')); \
                pq.write_table(pa.table({'move': [1, 2], 'wins': [1 << 62] * 2, 'draws': [0] * 2, 'losses': [0] * 2}), 'wide/part.parquet')";
    let job = Path::new(env!("CARGO_MANIFEST_DIR")).join("contrib/spark/polybook_spark.py");
    let run = |args: &[&str]| {
        let output = Command::new(&python).args(args).current_dir(dir).output();
        String::from_utf8(output.unwrap().stderr).unwrap()
    };
    assert_eq!(run(&["-c", wide]), "");
    for (args, problem) in [
        (&["wide", "wide"][..], "2^63 - 1 are the most"),
        (&["added", "pruned", "own-pruned"], "cannot be added"),
    ] {
        let error = run(&[&[job.to_str().unwrap(), "sidecar"], args].concat());
        assert!(error.contains(problem), "{error}");
    }
}

#[cfg(feature = "serve")]
#[test]
fn indexes_of_ranges_of_keys_serve_as_one() {
    let Some(python) = python_with("duckdb", &["duckdb"]) else {
        return;
    };
    let dir = temp();
    let dir = dir.path();
    let pgns = write_tagged_games(dir).join(" ");
    let counting = "--by speed,rating,month --max-ply 20 --counts whole";
    ok(dir, &format!("make-book -q {pgns} {counting}"));
    for (range, keys) in [("low", "--keys=key < 0"), ("high", "--keys=key >= 0")] {
        let args = [Path::new(keys), &dir.join(range), &dir.join("whole")];
        run_python(&python, "duckdb_counts.py", &args);
    }
    for counts in ["whole", "low", "high"] {
        ok(
            dir,
            &format!("make-book -q {counts} --explorer {counts}.idx"),
        );
    }
    let tree = ok(dir, "tree whole.idx --max-ply 4 --format jsonl");
    let fens: Vec<String> = tree
        .lines()
        .map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap())
        .map(|position| position["fen"].as_str().unwrap().replace(' ', "%20"))
        .collect();
    assert!(fens.len() > 50, "{}", fens.len());
    let [whole, ranges] =
        ["whole.idx", "low.idx high.idx"].map(|indexes| Served::start(dir, indexes));
    for fen in fens {
        for question in [
            "lichess?history=true",
            "lichess?ratings=0,1600,2000&speeds=blitz,rapid&since=2021-02&until=2023",
            "masters?since=2021",
            "facets?speeds=blitz",
            "scores?by=rating",
        ] {
            let path = format!("/{question}&fen={fen}");
            let [mut one, both] = [&whole, &ranges].map(|served| served.json(&path));
            // Parts without a sidecar do not say how many half-moves were counted.
            let answer = match one.get("polybook") {
                Some(_) => &mut one["polybook"],
                None => &mut one,
            };
            let max_ply = answer.as_object_mut().unwrap().remove("maxPly");
            let is_masters = question.starts_with("masters");
            assert!(is_masters || max_ply == Some(20.into()), "{path}");
            assert_eq!(one, both, "{path}");
        }
    }
    let about = ranges.json("/about");
    assert_eq!(
        (&about["games"], &about["sources"][0]["games"]),
        (&serde_json::Value::Null, &serde_json::Value::Null)
    );
    assert!(whole.json("/about")["games"].as_u64() > Some(100));
}

/// Returns a Python that has Spark and a Java.
fn spark() -> Option<PathBuf> {
    let python = python_with("spark", &["pyspark", "pyarrow", "pandas"])?;
    let java = Command::new("java").arg("-version").output();
    if !java.is_ok_and(|output| output.status.success()) {
        skip("java is not installed");
        return None;
    }
    Some(python)
}

/// Runs the job, on a cluster if `kill` is `kill`. If it fails, returns what it printed.
fn job(python: &Path, dir: &Path, kill: &str, args: &[String]) -> Result<(), String> {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/python/spark_cluster.py");
    let output = Command::new(python)
        .arg(script)
        .args([
            dir,
            Path::new(env!("CARGO_BIN_EXE_polybook")),
            Path::new(kill),
        ])
        .args(args)
        .output()
        .unwrap();
    if output.status.success() {
        return Ok(());
    }
    Err(String::from_utf8_lossy(&output.stdout).into_owned()
        + &String::from_utf8_lossy(&output.stderr))
}

fn in_dir(dir: &Path, names: &[String]) -> Vec<String> {
    let paths = names.iter().map(|name| dir.join(name));
    paths.map(|path| path.display().to_string()).collect()
}

#[test]
fn spark_adds_counts_up_though_a_worker_is_killed() {
    let Some(python) = spark() else {
        return;
    };
    let dir = temp();
    let pgns = write_games(dir.path());
    let mut args = in_dir(dir.path(), &pgns);
    let counts = dir.path().join("spark").display().to_string();
    args.extend(["--counts", &counts, "--split", "100KiB", "--parts", "3"].map(str::to_owned));
    job(&python, dir.path(), "kill", &args).unwrap();
    assert_same(
        &outputs(dir.path(), &pgns.join(" "), "games"),
        &outputs(dir.path(), "spark", "spark"),
    );
    // The offsets of rejected games are reported, although the files were read in ranges.
    ok(
        dir.path(),
        &format!("make-book -q {} --counts own", pgns.join(" ")),
    );
    let about = |counts: &str| -> serde_json::Value {
        let mut about: serde_json::Value = serde_json::from_slice(
            &fs::read(dir.path().join(counts).join("_counts.json")).unwrap(),
        )
        .unwrap();
        let (parts, starts) = (about["parts"].take(), about["starts"].take());
        assert_eq!(
            parts.as_array().unwrap().len(),
            if counts == "own" { 1 } else { 3 }
        );
        assert_eq!(starts["plies"], 3);
        about
    };
    assert_eq!(about("own"), about("spark"));
    assert_damage_is_named(dir.path(), "spark");
}

/// Checks that any damage to a part of counts gives an error that names the part.
#[track_caller]
fn assert_damage_is_named(dir: &Path, counts: &str) {
    let path = |name: &str| dir.join(counts).join(name);
    let names = ["part-000.parquet", "part-002.parquet", "_starts.pq"];
    let [first, other, starts] = names.map(|name| fs::read(path(name)).unwrap());
    let mut damages: Vec<(&str, Vec<u8>)> = Vec::new();
    for (name, bytes) in names.into_iter().zip([&first, &other, &starts]) {
        damages.push((name, bytes[..bytes.len() - 1].to_vec()));
        damages.push((name, bytes[..bytes.len() / 2].to_vec()));
        for at in (0..bytes.len()).step_by(bytes.len() / 20) {
            let mut flipped = bytes.clone();
            flipped[at] ^= 1 << (at % 8);
            damages.push((name, flipped));
        }
    }
    damages.push((names[0], other.clone()));
    damages.push((names[1], first.clone()));
    for (name, bytes) in damages {
        let whole = fs::read(path(name)).unwrap();
        fs::write(path(name), bytes).unwrap();
        let told = fails(
            dir,
            &format!("make-book -q {counts} --bin damaged.bin --obs damaged.obs.db3"),
            1,
        );
        assert!(
            told.contains(name) && told.trim().lines().count() == 1,
            "{told}"
        );
        assert!(!dir.join("damaged.bin").exists());
        fs::write(path(name), whole).unwrap();
    }
}

/// Options for counting the games of masters, and for making outputs from the counts.
const OF_MASTERS: [(&str, &[&str]); 2] = [
    ("", &["", "--uniform", "--scale position"]),
    ("--max-ply 30", &["--min-game 1"]),
];

/// Makes books and databases from all games and from the counts, and compares them.
fn assert_same_of_masters(
    dir: &Path,
    pgns: &[String],
    counting: &str,
    makings: &[&str],
    counts: &[String],
) {
    let games = format!("{} {counting}", pgns.join(" "));
    for making in makings {
        let make = |inputs: &str, name: &str| {
            let outputs = format!("--bin {name}.bin --obs {name}.obs.db3 --force");
            ok(dir, &format!("make-book -q {inputs} {making} {outputs}"));
            ["bin", "obs.db3"].map(|ending| fs::read(dir.join(format!("{name}.{ending}"))).unwrap())
        };
        let of_games = make(&games, "games");
        for inputs in counts {
            let [is_same_book, is_same_database] = {
                let of_counts = make(inputs, "counts");
                [0, 1].map(|output| of_games[output] == of_counts[output])
            };
            assert!(
                is_same_book && is_same_database,
                "{inputs}: {counting} {making}: same book {is_same_book}, same database {is_same_database}"
            );
            // If only a book is made, positions that it cannot contain are skipped.
            ok(
                dir,
                &format!("make-book -q {inputs} {making} --bin alone.bin"),
            );
            let alone = fs::read(dir.join("alone.bin")).unwrap();
            assert!(
                alone == of_games[0],
                "{inputs}: {counting} {making}: the book alone differs"
            );
        }
    }
}

/// Splits the games of masters into seven counts, which polybook and DuckDB add up.
#[test]
fn seven_counts_of_masters_come_to_the_book_of_all_games() {
    let Some(corpus) = corpus() else {
        return;
    };
    let dir = temp();
    let pgns = cut_games(&corpus.join("masters.pgn"), dir.path(), 1..=7);
    let python = python_with("duckdb", &["duckdb", "pyarrow"]);
    for (i, (counting, makings)) in OF_MASTERS.into_iter().enumerate() {
        let of_each: Vec<String> = pgns.iter().map(|pgn| format!("{pgn}.{i}.counts")).collect();
        for (pgn, counts) in pgns.iter().zip(&of_each) {
            ok(
                dir.path(),
                &format!("make-book -q {pgn} {counting} --counts {counts}"),
            );
        }
        let mut counts = vec![of_each.join(" ")];
        if let Some(python) = &python {
            let added = format!("added{i}");
            let mut args = vec![dir.path().join(&added)];
            args.extend(of_each.iter().map(|counts| dir.path().join(counts)));
            let args: Vec<&Path> = args.iter().map(PathBuf::as_path).collect();
            run_python(python, "duckdb_counts.py", &args);
            counts.push(added);
        }
        assert_same_of_masters(dir.path(), &pgns, counting, makings, &counts);
    }
}

/// Counts all games of masters while a worker is killed. This takes minutes.
#[test]
fn spark_counts_the_masters_as_polybook_does() {
    let Some(corpus) = corpus() else {
        return;
    };
    let Some(python) = spark() else {
        return;
    };
    let dir = temp();
    let pgns = cut_games(&corpus.join("masters.pgn"), dir.path(), 1..=7);
    for ((counting, makings), kill) in OF_MASTERS.into_iter().zip(["kill", ""]) {
        let work = temp();
        let counts = work.path().join("spark").display().to_string();
        let mut args = in_dir(dir.path(), &pgns);
        args.extend(["--counts", &counts].map(str::to_owned));
        args.extend(counting.split_whitespace().map(str::to_owned));
        job(&python, work.path(), kill, &args).unwrap();
        assert_same_of_masters(dir.path(), &pgns, counting, makings, &[counts]);
    }
}

#[test]
fn spark_counts_variants_and_names_what_fails() {
    let Some(python) = spark() else {
        return;
    };
    let dir = temp();
    let games = "[Variant \"Crazyhouse\"]\n\n1. e4 d5 2. exd5 Qxd5 3. P@e4 1-0\n\n";
    fs::write(dir.path().join("a.pgn"), games.repeat(3)).unwrap();
    fs::write(dir.path().join("b.pgn"), games).unwrap();
    let names = ["a.pgn", "b.pgn"].map(str::to_owned);
    let mut args = in_dir(dir.path(), &names);
    let counts = dir.path().join("spark").display().to_string();
    args.extend(["--variant", "crazyhouse", "--counts", &counts].map(str::to_owned));
    job(&python, dir.path(), "", &args).unwrap();
    assert_same(
        &outputs(dir.path(), "a.pgn b.pgn --variant crazyhouse", "games"),
        &outputs(dir.path(), "spark", "spark"),
    );
    fs::write(dir.path().join("b.pgn"), "no game at all").unwrap();
    args.push("--force".to_owned());
    let told = job(&python, dir.path(), "", &args).unwrap_err();
    assert!(
        told.starts_with("polybook_spark: ") && told.contains("b.pgn: this file contains no game"),
        "{told}"
    );
    assert_eq!(told.trim().lines().count(), 1, "{told}");
    assert!(dir.path().join("spark/_counts.json").exists());
    // Old counts are replaced. `the_job_replaces_nothing_but_counts` checks without a cluster that nothing else is.
    args.retain(|arg| !arg.ends_with("b.pgn"));
    job(&python, dir.path(), "", &args).unwrap();
    assert_same(
        &outputs(dir.path(), "a.pgn --variant crazyhouse", "games"),
        &outputs(dir.path(), "spark", "spark"),
    );
    let names = fs::read_dir(dir.path()).unwrap();
    let mut names = names.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    assert!(!names.any(|name| name.starts_with("spark.")));
}

#[test]
fn spark_counts_by_class_and_prunes() {
    let Some(python) = spark() else {
        return;
    };
    let dir = temp();
    let dir = dir.path();
    let pgns = write_tagged_games(dir);
    let mut args = in_dir(dir, &pgns);
    let counts = dir.join("spark").display().to_string();
    let by = "--by month,rating,speed --min-game 3";
    args.extend(["--counts", &counts, "--parts", "3"].map(str::to_owned));
    args.extend(by.split(' ').map(str::to_owned));
    job(&python, dir, "", &args).unwrap();
    ok(
        dir,
        &format!("make-book -q {} {by} --counts own", pgns.join(" ")),
    );
    ok(dir, "make-book -q spark --counts again");
    assert!(files(dir, "own") == files(dir, "again"));
    for counts in ["own", "spark"] {
        let line = format!("make-book -q {counts} --explorer {counts}.idx");
        ok(dir, &line);
    }
    assert!(files(dir, "own.idx") == files(dir, "spark.idx"));
    let rows = class_rows(&dir.join("own"));
    assert!(rows.iter().any(|row| row.class.group == 0));
}

#[test]
fn spark_reads_games_of_an_object_store() {
    let (Some(python), Some(_)) = (spark(), python_with("spark", &["moto"])) else {
        return;
    };
    let dir = temp();
    let dir = dir.path();
    let pgns = write_games(dir);
    let mut args = vec![
        dir,
        Path::new(env!("CARGO_BIN_EXE_polybook")),
        Path::new("stored"),
    ];
    args.extend(pgns.iter().map(Path::new));
    args.extend(["--", "--split", "100KiB", "--by", "speed"].map(Path::new));
    run_python(&python, "spark_s3.py", &args);
    ok(
        dir,
        &format!("make-book -q {} --by speed --counts own", pgns.join(" ")),
    );
    ok(dir, "make-book -q stored --counts again");
    assert!(files(dir, "own") == files(dir, "again"));
}

#[test]
fn the_job_cuts_at_games_and_knows_the_options() {
    let Some(python) = python(&["argparse"]) else {
        return;
    };
    let dir = temp();
    let help = ok(dir.path(), "make-book --help");
    let (_, games) = help.split_once("Which games count:").unwrap();
    let (games, _) = games.split_once("\n\nHeader of").unwrap();
    let options: Vec<&Path> = games
        .lines()
        .filter_map(|line| line.trim_start().strip_prefix("--"))
        .filter_map(|option| option.split([' ', '<', '[']).next())
        .filter(|option| *option != "strict")
        .map(Path::new)
        .collect();
    assert!(options.len() > 15, "{options:?}");
    run_python(&python, "spark_ranges.py", &options);
}

#[test]
fn the_job_replaces_nothing_but_counts() {
    let Some(python) = python(&["argparse"]) else {
        return;
    };
    run_python(&python, "spark_target.py", &[]);
}
