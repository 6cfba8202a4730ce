//! The outputs of a run appear together or not at all, and never in the place of something else.

#[cfg(unix)]
use std::process::Stdio;
use std::{
    collections::BTreeMap,
    fs,
    path::Path,
    time::{Duration, Instant},
};

#[cfg(unix)]
use crate::common::polybook_in;
use crate::common::{fails, ok, run, sample, temp};
use polybook::{MakeBook, pgn::Input};

/// Every file below a directory, with its bytes.
fn contents(dir: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut files = BTreeMap::new();
    let mut directories = vec![dir.to_owned()];
    while let Some(next) = directories.pop() {
        for entry in fs::read_dir(next).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                directories.push(path);
            } else {
                let name = path.strip_prefix(dir).unwrap().display().to_string();
                files.insert(name, fs::read(path).unwrap());
            }
        }
    }
    files
}

/// A directory with a book, an index and a database of few moves.
fn old_outputs() -> tempfile::TempDir {
    let dir = temp();
    let pgn = sample("famous.pgn").display().to_string();
    let line = format!(
        "make-book -q {pgn} --max-ply 2 --min-game 1 --bin a.bin --leveldb a.idx --obs a.obs.db3"
    );
    ok(dir.path(), &line);
    dir
}

#[cfg(target_os = "linux")]
#[test]
fn an_output_that_fails_leaves_all_old_ones() {
    let dir = old_outputs();
    let before = contents(dir.path());
    let pgn = sample("famous.pgn").display().to_string();
    let line = format!(
        "make-book -q {pgn} --min-game 1 --force --bin /dev/full --leveldb a.idx --obs a.obs.db3"
    );
    let output = run(dir.path(), &line);
    let error = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{error}");
    assert_eq!(
        error,
        "polybook: cannot write /dev/full: No space left on device\n"
    );
    assert!(contents(dir.path()) == before, "an old output was changed");
}

#[test]
fn an_output_that_cannot_be_begun_leaves_all_old_ones() {
    let dir = old_outputs();
    let before = contents(dir.path());
    let pgn = sample("famous.pgn").display().to_string();
    for outputs in [
        "--bin no/such/a.bin --leveldb a.idx --obs a.obs.db3",
        "--bin a.bin --leveldb no/such/a.idx --obs a.obs.db3",
        "--bin a.bin --leveldb a.idx --obs no/such/a.obs.db3",
        "--bin a.bin --leveldb a.idx --obs a.bin",
        "--bin a.idx/a.bin --leveldb a.idx",
    ] {
        let line = format!("make-book -q {pgn} --min-game 1 --force {outputs}");
        let output = run(dir.path(), &line);
        assert_eq!(output.status.code(), Some(1), "{outputs}");
        assert!(
            contents(dir.path()) == before,
            "{outputs} changed something"
        );
    }
}

#[test]
fn an_output_that_is_an_input_is_refused() {
    let dir = temp();
    let pgn = dir.path().join("games.pgn");
    fs::copy(sample("famous.pgn"), &pgn).unwrap();
    fs::hard_link(&pgn, dir.path().join("hard.bin")).unwrap();
    let before = contents(dir.path());
    for outputs in [
        "--bin games.pgn",
        "--bin ./games.pgn --force",
        "--bin hard.bin --force",
    ] {
        let output = run(dir.path(), &format!("make-book -q games.pgn {outputs}"));
        let error = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1), "{error}");
        assert!(error.contains("both an input and an output"), "{error}");
        assert!(
            contents(dir.path()) == before,
            "{outputs} changed something"
        );
    }
}

#[test]
fn a_file_that_is_no_book_is_replaced_only_by_force() {
    let dir = temp();
    let pgn = sample("famous.pgn").display().to_string();
    let notes = dir.path().join("notes.txt");
    // Sixteen bytes could be a record; these are not.
    fs::write(&notes, "never lose these notes").unwrap();
    let make = format!("make-book -q {pgn} --bin notes.txt");
    let output = run(dir.path(), &make);
    let error = String::from_utf8(output.stderr).unwrap();
    assert!(error.contains("not a Polyglot book"), "{error}");
    assert!(error.contains("or replace it with --force"), "{error}");
    assert_eq!(fs::read(&notes).unwrap(), b"never lose these notes");
    ok(dir.path(), &format!("{make} --force"));
    ok(dir.path(), "verify notes.txt");
    fs::write(dir.path().join("empty"), "").unwrap();
    ok(dir.path(), &format!("make-book -q {pgn} --bin empty"));
}

#[test]
fn a_run_that_is_run_again_counts_anew() {
    let dir = temp();
    let run = MakeBook::new([Input::file(sample("famous.pgn"))])
        .min_game(1)
        .bin(dir.path().join("a.bin"));
    let first = run.run().unwrap();
    let book = fs::read(dir.path().join("a.bin")).unwrap();
    assert_eq!(run.run().unwrap(), first);
    assert_eq!(fs::read(dir.path().join("a.bin")).unwrap(), book);
    assert_eq!(run.progress().games(), first.totals.games.read);
}

#[test]
fn an_input_that_is_named_twice_is_a_warning() {
    let pgn = sample("famous.pgn");
    let report = MakeBook::new([Input::file(&pgn), Input::file(&pgn)])
        .run()
        .unwrap();
    assert_eq!(report.totals.games.read, 90);
    assert!(report.warnings[0].contains("named twice"), "{report:?}");
}

/// Each input is looked at once: comparing each with each took minutes for so many.
#[test]
#[cfg_attr(windows, ignore = "a command line there has no room for so many names")]
fn thousands_of_inputs_are_compared_in_no_time() {
    let dir = temp();
    let names: Vec<String> = (0..5000).map(|number| format!("{number}.pgn")).collect();
    for name in &names {
        fs::write(dir.path().join(name), "").unwrap();
    }
    fs::copy(sample("famous.pgn"), dir.path().join("0.pgn")).unwrap();
    fs::hard_link(dir.path().join("0.pgn"), dir.path().join("again.pgn")).unwrap();
    let start = Instant::now();
    let output = run(
        dir.path(),
        &format!("make-book again.pgn {}", names.join(" ")),
    );
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{error}");
    let warnings: Vec<&str> = error
        .lines()
        .filter(|line| line.contains("twice"))
        .collect();
    let expected = "warning: 0.pgn: named twice, so its games count twice";
    assert_eq!(warnings, [expected]);
    assert!(
        start.elapsed() < Duration::from_secs(20),
        "{:?}",
        start.elapsed()
    );
}

/// Standard output that is closed early ends quietly a run that writes nothing else.
#[cfg(unix)]
#[test]
fn standard_output_that_closes_early() {
    let dir = temp();
    let games = sample("selfplay.pgn").display().to_string();
    for (outputs, others) in [
        ("--bin -", None),
        ("--obs -", None),
        ("--bin - --leveldb x.idx", Some("x.idx")),
        ("--bin - --obs x.obs.db3", Some("x.obs.db3")),
        ("--bin - --counts x.counts", Some("x.counts")),
        ("--obs - --bin x.bin", Some("x.bin")),
        ("--suite -", None),
        ("--suite - --bin x.bin", Some("x.bin")),
        ("--bin - --suite x.epd", Some("x.epd")),
    ] {
        let line = format!("make-book -q --min-game 1 {games} {outputs}");
        let mut child = polybook_in(dir.path())
            .args(line.split_whitespace())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        drop(child.stdout.take());
        let ended = child.wait_with_output().unwrap();
        let error = String::from_utf8_lossy(&ended.stderr);
        if others.is_none() {
            assert_eq!((ended.status.code(), &*error), (Some(0), ""), "{outputs}");
        } else {
            assert_eq!(ended.status.code(), Some(1), "{outputs}: {error}");
            let expected =
                "polybook: no output was written: cannot write standard output: Broken pipe\n";
            assert_eq!(error, expected, "{outputs}");
        }
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0, "{outputs}");
    }
}

#[test]
fn a_run_without_games_or_moves_says_what_took_them_and_changes_nothing() {
    let dir = old_outputs();
    let before = contents(dir.path());
    let pgn = sample("famous.pgn").display().to_string();
    fs::write(dir.path().join("bad.pgn"), "[White \"x\"]\n1. Ke2 1-0\n").unwrap();
    fs::write(dir.path().join("empty.pgn"), "").unwrap();
    fs::write(dir.path().join("moveless.pgn"), "[White \"x\"]\n\n*\n").unwrap();
    for (line, reason) in [
        (
            "empty.pgn --variations --uniform --min-game 1 --bin a.bin".to_owned(),
            "written: empty.pgn: there is no game; --allow-empty",
        ),
        (
            "moveless.pgn --variations --uniform --min-game 1 --bin a.bin".to_owned(),
            "written: moveless.pgn: there is no move; --allow-empty",
        ),
        (
            format!("{pgn} --min-elo 4000 --require-elo --bin a.bin"),
            "none of 45 games counts (45 filtered by rating)",
        ),
        (
            "bad.pgn --bin a.bin".to_owned(),
            "none of 1 games counts (1 rejected); rejected first: bad.pgn: game 0, byte 15",
        ),
        (
            format!("{pgn} --max-ply 1 --min-game 50 --bin a.bin"),
            "none of 7 moves is kept (7 played fewer than 50 times: --min-game 1 keeps them)",
        ),
        (
            format!("{pgn} --min-elo 4000 --require-elo --force --leveldb a.idx --obs a.obs.db3"),
            "45 filtered by rating",
        ),
    ] {
        let output = run(dir.path(), &format!("make-book -q {line}"));
        let error = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1), "{error}");
        assert!(error.contains(reason), "{error}");
        assert!(error.contains("--allow-empty"), "{error}");
    }
    for name in ["bad.pgn", "empty.pgn", "moveless.pgn"] {
        fs::remove_file(dir.path().join(name)).unwrap();
    }
    assert!(contents(dir.path()) == before, "an old output was changed");
    let line = format!("make-book -q {pgn} --min-elo 4000 --require-elo --allow-empty --bin a.bin");
    ok(dir.path(), &line);
}

/// Files that no manifest of the old output names.
#[test]
fn files_that_an_output_does_not_name_are_kept() {
    let dir = temp();
    let pgn = sample("famous.pgn").display().to_string();
    let make = format!("make-book -q {pgn} --min-game 1 --force --leveldb a.idx --counts a.counts");
    ok(dir.path(), &make);
    fs::create_dir(dir.path().join("a.idx/000099.ldb")).unwrap();
    for foreign in [
        "a.idx/000099.ldb/thesis.txt",
        "a.idx/000098.ldb",
        "a.counts/mine.parquet",
    ] {
        let path = dir.path().join(foreign);
        fs::write(&path, "mine").unwrap();
        let before = contents(dir.path());
        let error = fails(dir.path(), &make, 1);
        assert!(error.contains("exists and has "), "{error}");
        assert!(
            contents(dir.path()) == before,
            "{foreign}: something changed"
        );
        if path.parent().unwrap().ends_with("000099.ldb") {
            fs::remove_dir_all(path.parent().unwrap()).unwrap();
        } else {
            fs::remove_file(path).unwrap();
        }
    }
    ok(dir.path(), &make);
}

#[cfg(unix)]
#[test]
fn a_replaced_output_keeps_its_rights_and_a_read_only_one_is_refused() {
    use std::os::unix::fs::PermissionsExt;
    let dir = old_outputs();
    let pgn = sample("famous.pgn").display().to_string();
    let set = |name: &str, mode| {
        let rights = fs::Permissions::from_mode(mode);
        fs::set_permissions(dir.path().join(name), rights).unwrap();
    };
    let rights = |name: &str| {
        let metadata = dir.path().join(name).metadata().unwrap();
        metadata.permissions().mode() & 0o7777
    };
    let make = format!(
        "make-book -q {pgn} --min-game 1 --force --bin a.bin --leveldb a.idx --obs a.obs.db3"
    );
    let outputs = [("a.bin", 0o600), ("a.idx", 0o700), ("a.obs.db3", 0o640)];
    for (name, mode) in outputs {
        set(name, mode);
    }
    ok(dir.path(), &make);
    for (name, mode) in outputs {
        assert_eq!(rights(name), mode, "{name}");
    }
    let before = contents(dir.path());
    for (name, read_only, writable) in [
        ("a.bin", 0o444, 0o644),
        ("a.idx", 0o555, 0o755),
        ("a.obs.db3", 0o400, 0o600),
    ] {
        set(name, read_only);
        let error = fails(dir.path(), &make, 1);
        assert!(error.contains(&format!("{name}: is read-only")), "{error}");
        set(name, writable);
        assert!(contents(dir.path()) == before, "{name} was changed");
    }
}
