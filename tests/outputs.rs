//! The outputs of a run are replaced together or not at all, and only if they may be replaced.

#[cfg(unix)]
use std::process::{Command, Stdio};
use std::{collections::BTreeMap, fs, path::Path};

#[cfg(unix)]
use crate::common::polybook_in;
#[cfg(target_os = "linux")]
use crate::common::{Mounted, leave_out};
use crate::common::{fails, ok, refused, run, sample, temp};
#[cfg(feature = "parquet")]
use polybook::counts::CountsDirectory;
use polybook::{MakeBook, pgn::Input};

/// Returns every file below a directory with its bytes.
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

/// Creates a directory with a book, an index and a database with few moves.
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

/// The options of `make-book` that name an output.
const OUTPUTS: &[&str] = if cfg!(feature = "parquet") {
    &[
        "--bin",
        "--obs",
        "--leveldb",
        "--explorer",
        "--suite",
        "--counts",
    ]
} else {
    &["--bin", "--obs", "--leveldb", "--explorer", "--suite"]
};

/// Returns a file name that an option for an output accepts: that of a suite must end in .epd or .pgn.
fn named(stem: &str, output: &str) -> String {
    match output {
        "--suite" => format!("{stem}.epd"),
        _ => stem.to_owned(),
    }
}

#[test]
fn a_missing_directory_is_named_before_games_are_read() {
    let dir = temp();
    let dir = dir.path();
    fs::write(dir.join("no.pgn"), "[Event \"?\"]\n\n1. e9 *\n").unwrap();
    for output in OUTPUTS {
        refused(
            dir,
            &[
                (
                    &format!(
                        "make-book no.pgn {output} months/2024/{}",
                        named("01", output)
                    ),
                    1,
                    "the directory months does not exist: create the directory first",
                ),
                (
                    &format!("make-book no.pgn {output} ./no.pgn/{}", named("01", output)),
                    1,
                    ": ./no.pgn is not a directory",
                ),
            ],
        );
    }
    let pgn = sample("famous.pgn").display().to_string();
    fs::create_dir(dir.join("months")).unwrap();
    ok(
        dir,
        &format!("make-book -q {pgn} --bin months/01 --min-game 1"),
    );
    for line in [
        "tree months/01 --out x/a.txt",
        "dump-book months/01 --color white --out x/a.txt",
        "filter months/01 --out x/a.bin --min-weight 1",
    ] {
        refused(
            dir,
            &[(
                line,
                1,
                "the directory x does not exist: create the directory first",
            )],
        );
    }
}

#[cfg(target_os = "linux")]
#[test]
fn an_output_that_is_a_mount_point_is_refused_before_games_are_read() {
    let dir = temp();
    let dir = dir.path();
    let pgn = sample("famous.pgn").display().to_string();
    fs::write(dir.join("no.pgn"), "[Event \"?\"]\n\n1. e9 *\n").unwrap();
    fs::create_dir(dir.join("volume")).unwrap();
    let Some(_volume) = Mounted::at(&dir.join("volume"), "-t tmpfs none") else {
        return;
    };
    let directories = OUTPUTS
        .iter()
        .filter(|output| matches!(**output, "--leveldb" | "--explorer" | "--counts"));
    for output in directories {
        let refusal = "volume: this directory is a mount point, so it cannot be replaced: give a directory inside it";
        refused(
            dir,
            &[(&format!("make-book no.pgn {output} volume"), 1, refusal)],
        );
    }
    ok(dir, &format!("make-book -q {pgn} --leveldb volume/index"));
    // A file that is bound to a name is not found by its device.
    for name in ["a.bin", "b.bin"] {
        ok(
            dir,
            &format!("make-book -q {pgn} --min-game 1 --bin {name}"),
        );
    }
    let bound = format!("--bind {}", dir.join("a.bin").display());
    let Some(_bound) = Mounted::at(&dir.join("b.bin"), &bound) else {
        return;
    };
    let refusal = "b.bin: this file is a mount point, so it cannot be replaced: mount its directory instead, or choose \
                   another output";
    refused(dir, &[("make-book no.pgn --bin b.bin", 1, refusal)]);
    for name in ["volume/b.bin", "c.bin"] {
        ok(
            dir,
            &format!("make-book -q {pgn} --min-game 1 --bin {name}"),
        );
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_directory_of_a_lower_layer_is_refused_before_games_are_read() {
    let dir = temp();
    let dir = dir.path();
    let pgn = sample("famous.pgn").display().to_string();
    fs::write(dir.join("no.pgn"), "[Event \"?\"]\n\n1. e9 *\n").unwrap();
    for name in ["lower", "layers", "layers/upper", "layers/work", "both"] {
        fs::create_dir(dir.join(name)).unwrap();
    }
    ok(dir, &format!("make-book -q {pgn} --leveldb lower/index"));
    // The layers of an overlay cannot be on an overlay, which the root of a container is.
    let Some(_layers) = Mounted::at(&dir.join("layers"), "-t tmpfs none") else {
        return;
    };
    for name in ["layers/upper", "layers/work"] {
        fs::create_dir(dir.join(name)).unwrap();
    }
    let at = |name: &str| dir.join(name).display().to_string();
    let layers = format!(
        "-t overlay overlay -o lowerdir={},upperdir={},workdir={},redirect_dir=off",
        at("lower"),
        at("layers/upper"),
        at("layers/work")
    );
    let Some(_both) = Mounted::at(&dir.join("both"), &layers) else {
        return;
    };
    let refusal = "both/index: this directory is in a lower layer of an overlay file system, such as the image of a \
                   container, and cannot be replaced: remove the directory first, or choose another directory";
    refused(
        dir,
        &[("make-book no.pgn --leveldb both/index --force", 1, refusal)],
    );
    fs::remove_dir_all(dir.join("both/index")).unwrap();
    let index = format!("make-book -q {pgn} --leveldb both/index --force");
    ok(dir, &index);
    ok(dir, &index);
    ok(dir, "verify both/index");
}

/// A book that polybook did not write may be edited.
#[test]
fn a_single_record_is_edited_and_not_replaced() {
    let dir = temp();
    let dir = dir.path();
    let pgn = sample("famous.pgn").display().to_string();
    ok(
        dir,
        &format!("make-book -q {pgn} --min-game 1 --bin book.bin"),
    );
    let entry = polybook::book::Entry {
        key: 7,
        mv: polybook::position::BookMove(0o1434),
        weight: 1,
        learn: 0,
    };
    fs::write(dir.join("one.bin"), entry.to_bytes()).unwrap();
    for command in [
        "filter book.bin --best 1 --out one.bin",
        "merge-book book.bin --out one.bin",
        "verify book.bin --fix one.bin",
        "edit book.bin --set e4=1 --out one.bin",
    ] {
        let expected = "one.bin exists: remove it, or replace it with --force";
        refused(dir, &[(command, 1, expected)]);
        assert_eq!(fs::read(dir.join("one.bin")).unwrap(), entry.to_bytes());
        ok(dir, &format!("{command} --force -q"));
        assert!(fs::read(dir.join("one.bin")).unwrap().len() > 32);
        fs::write(dir.join("one.bin"), entry.to_bytes()).unwrap();
    }
    ok(dir, "edit one.bin --in-place --set e4=1 -q");
    assert_eq!(fs::read(dir.join("one.bin")).unwrap().len(), 32);
    // This book has a checksum.
    ok(dir, "filter book.bin --best 1 --out book2.bin -q");
    ok(dir, "filter book.bin --best 2 --out book2.bin -q");
}

/// A directory with the sticky bit, as `/tmp`, lets a user replace only the user's own files.
#[cfg(target_os = "linux")]
#[test]
fn an_output_that_the_user_may_not_rename_is_refused_before_games_are_read() {
    use std::os::unix::fs::PermissionsExt as _;
    let dir = temp();
    let dir = dir.path();
    let pgn = sample("famous.pgn").display().to_string();
    fs::write(dir.join("no.pgn"), "[Event \"?\"]\n\n1. e9 *\n").unwrap();
    fs::create_dir(dir.join("shared")).unwrap();
    let outputs = OUTPUTS
        .iter()
        .map(|output| format!("{output} shared/{}", named(output, output)));
    let outputs: Vec<String> = outputs.collect();
    let plain = outputs.join(" ");
    ok(dir, &format!("make-book -q {pgn} --plies 4 {plain}"));
    let before = names(&dir.join("shared"));
    let for_all = |path: &Path, mode| {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    };
    for_all(dir, 0o755);
    for_all(&dir.join("shared"), 0o1777);
    for entry in fs::read_dir(dir.join("shared")).unwrap() {
        let path = entry.unwrap().path();
        for_all(&path, 0o777);
        if path.is_dir() {
            for file in fs::read_dir(&path).unwrap() {
                for_all(&file.unwrap().path(), 0o666);
            }
        }
    }
    fs::copy(env!("CARGO_BIN_EXE_polybook"), dir.join("polybook")).unwrap();
    let as_another = |line: &str| {
        let mut command = std::process::Command::new("setpriv");
        command.args(["--reuid=54321", "--regid=54321", "--clear-groups"]);
        command.arg("./polybook").args(line.split(' '));
        command.current_dir(dir).output()
    };
    let version = as_another("--version");
    if !version.is_ok_and(|output| output.status.success()) {
        leave_out("this user cannot start a program as another");
        return;
    }
    for output in &outputs {
        let made = as_another(&format!("make-book no.pgn {output} --force")).unwrap();
        let error = String::from_utf8_lossy(&made.stderr);
        let expected = "the system does not let you replace this output";
        assert!(error.contains(expected), "{output}: {error}");
    }
    assert_eq!(names(&dir.join("shared")), before);
}

/// Returns the names in a directory, sorted.
#[cfg(target_os = "linux")]
fn names(directory: &Path) -> Vec<std::ffi::OsString> {
    let entries = fs::read_dir(directory).unwrap();
    let mut names: Vec<_> = entries.map(|entry| entry.unwrap().file_name()).collect();
    names.sort();
    names
}

#[cfg(unix)]
#[test]
fn outputs_of_the_longest_names() {
    let dir = temp();
    let dir = dir.path();
    let pgn = sample("famous.pgn").display().to_string();
    for length in [200, 201, 241, 255] {
        for output in OUTPUTS {
            // The names of the outputs have a common beginning.
            let end = named(output, output);
            let name = "n".repeat(length - end.len()) + &end;
            let line = format!("make-book -q {pgn} --min-game 1 --plies 4 {output} {name} --force");
            let line = match *output {
                "--suite" => line,
                _ => line.replace("--plies 4", ""),
            };
            ok(dir, &line);
            ok(dir, &line);
            let left = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap());
            let names: Vec<_> = left.map(|entry| entry.file_name()).collect();
            assert_eq!(names, [name.as_str()]);
            if dir.join(&name).is_dir() {
                fs::remove_dir_all(dir.join(&name)).unwrap()
            } else {
                fs::remove_file(dir.join(&name)).unwrap()
            }
        }
    }
}

#[cfg(unix)]
#[test]
fn two_outputs_to_one_stream_are_refused() {
    let dir = temp();
    let dir = dir.path();
    fs::write(dir.join("no.pgn"), "[Event \"?\"]\n\n1. e9 *\n").unwrap();
    for (bin, obs) in [
        ("-", "/dev/stdout"),
        ("/dev/stdout", "-"),
        ("/dev/fd/1", "/dev/stdout"),
    ] {
        let line = format!("make-book no.pgn --bin {bin} --obs {obs}");
        refused(
            dir,
            &[(
                &line,
                1,
                "standard output: this name is given for two outputs",
            )],
        );
    }
    let line = "make-book no.pgn --bin /dev/stderr --obs /dev/stderr";
    refused(dir, &[(line, 1, "this name is given for two outputs")]);
    let pgn = sample("famous.pgn").display().to_string();
    let line = format!("make-book -q {pgn} --min-game 1 --bin /dev/null --obs /dev/null");
    ok(dir, &line);
}

#[cfg(feature = "parquet")]
#[test]
fn a_part_of_counts_that_were_replaced_is_not_called_damaged() {
    let dir = temp();
    let dir = dir.path();
    for (pgn, plies) in [("famous.pgn", 4), ("selfplay.pgn", 6)] {
        let pgn = sample(pgn).display().to_string();
        ok(
            dir,
            &format!("make-book -q {pgn} --max-ply {plies} --counts {plies}"),
        );
    }
    let counts = CountsDirectory::open(dir.join("4")).unwrap();
    fs::rename(dir.join("4"), dir.join("old")).unwrap();
    fs::rename(dir.join("6"), dir.join("4")).unwrap();
    let errors = counts.parts().iter().map(|part| {
        let read = part.read(&mut |_| Ok(()));
        read.unwrap_err()
    });
    for err in errors {
        assert_eq!(err.kind(), polybook::ErrorKind::Changed, "{err}");
        let advice = "was replaced while it was read: run the command again";
        assert!(err.to_string().contains(advice), "{err}");
    }
    assert!(!counts.parts().is_empty());
    let again = CountsDirectory::open(dir.join("4")).unwrap();
    let mut parts = again.parts().iter();
    assert!(parts.all(|part| part.read(&mut |_| Ok(())).is_ok()));
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
    // Sixteen bytes could be a record, but these are not.
    fs::write(&notes, "never lose these notes").unwrap();
    let make = format!("make-book -q {pgn} --bin notes.txt");
    let output = run(dir.path(), &make);
    let error = String::from_utf8(output.stderr).unwrap();
    assert!(
        error.contains("notes.txt exists: remove it, or replace it with --force"),
        "{error}"
    );
    assert_eq!(fs::read(&notes).unwrap(), b"never lose these notes");
    ok(dir.path(), &format!("{make} --force"));
    ok(dir.path(), "verify notes.txt");
    fs::write(dir.path().join("empty"), "").unwrap();
    ok(dir.path(), &format!("make-book -q {pgn} --bin empty"));
}

#[test]
fn running_a_run_again_gives_the_same_result() {
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
    assert!(report.warnings[0].contains("is given twice"), "{report:?}");
}

/// The time to check whether an input is given twice is linear in the number of inputs. An earlier version compared all
/// pairs of inputs, which took minutes of processor time for 5,000 inputs.
#[cfg(unix)]
#[test]
fn thousands_of_inputs_are_compared_in_linear_time() {
    let dir = temp();
    let names: Vec<String> = (0..5000).map(|number| format!("{number}.pgn")).collect();
    for name in &names {
        fs::write(dir.path().join(name), "").unwrap();
    }
    fs::copy(sample("famous.pgn"), dir.path().join("0.pgn")).unwrap();
    fs::hard_link(dir.path().join("0.pgn"), dir.path().join("again.pgn")).unwrap();
    let output = Command::new("sh")
        .current_dir(dir.path())
        .args(["-c", "ulimit -t 20; exec \"$@\"", "sh"])
        .args([env!("CARGO_BIN_EXE_polybook"), "make-book", "again.pgn"])
        .args(&names)
        .output()
        .unwrap();
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{:?}: {error}", output.status);
    let warnings: Vec<&str> = error
        .lines()
        .filter(|line| line.contains("twice"))
        .collect();
    let expected = "warning: 0.pgn: this file is given twice, so its games count twice";
    assert_eq!(warnings, [expected]);
}

/// If standard output is closed early, a run without other outputs ends quietly.
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
    fs::write(dir.path().join("one.pgn"), "1. e4 1-0\n").unwrap();
    for (line, reason) in [
        (
            "empty.pgn --variations --uniform --min-game 1 --bin a.bin".to_owned(),
            "empty.pgn: nothing was written, because the input contains no game: --allow-empty",
        ),
        (
            "moveless.pgn --variations --uniform --min-game 1 --bin a.bin".to_owned(),
            "moveless.pgn: nothing was written, because the games contain no move: --allow-empty",
        ),
        (
            format!("{pgn} --min-elo 4000 --require-elo --bin a.bin"),
            "none of 45 games can be counted (45 filtered by rating)",
        ),
        (
            "bad.pgn --bin a.bin".to_owned(),
            "the only game cannot be counted (1 rejected): the first rejected game is bad.pgn: game 1, byte 15",
        ),
        (
            format!("{pgn} --max-ply 1 --min-game 50 --bin a.bin"),
            "none of 7 moves is kept (7 played fewer than 50 times): --min-game 1 keeps the moves",
        ),
        (
            "one.pgn --max-ply 1 --min-game 50 --bin a.bin".to_owned(),
            "the only move is not kept (1 played fewer than 50 times): --min-game 1 keeps the moves",
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
        // Other advice is better where there is any.
        let is_rejected = line.starts_with("bad.pgn");
        assert_eq!(error.contains("--allow-empty"), !is_rejected, "{error}");
    }
    for name in ["bad.pgn", "empty.pgn", "moveless.pgn", "one.pgn"] {
        fs::remove_file(dir.path().join(name)).unwrap();
    }
    assert!(contents(dir.path()) == before, "an old output was changed");
    let line = format!("make-book -q {pgn} --min-elo 4000 --require-elo --allow-empty --bin a.bin");
    ok(dir.path(), &line);
}

/// Files that the manifest of the old output does not list are kept.
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
        assert!(error.contains("exists and "), "{error}");
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
        assert!(
            error.contains(&format!(
                "{name}: this file is read-only: make the file writable, or choose another output"
            )),
            "{error}"
        );
        set(name, writable);
        assert!(contents(dir.path()) == before, "{name} was changed");
    }
    ok(dir.path(), &make);
    set("a.bin", 0o444);
    ok(dir.path(), &make.replace("a.bin", "b.bin"));
}

#[test]
fn a_text_is_replaced_only_by_force() {
    let dir = temp();
    let at = |name: &str| dir.path().join(name);
    let pgn = sample("famous.pgn").display().to_string();
    let make = "--min-game 1 --bin a.bin --obs a.obs.db3";
    ok(dir.path(), &format!("make-book -q {pgn} {make}"));
    ok(
        dir.path(),
        &format!("repertoire build {pgn} --color white --out white.pgn --max-ply 8 -q"),
    );
    let check = format!("repertoire check white.pgn {pgn} --color white -q --out");
    let build = format!("repertoire build {pgn} --color white --max-ply 8 -q --out");
    let gaps = format!("repertoire gaps white.pgn --against {pgn} --color white --add 1 -q --out");
    let new = format!("repertoire new {pgn} --reference white.pgn -q");
    let suite = format!("make-book {pgn} --plies 4 --min-game 1 -q --suite");
    for command in [
        "convert a.obs.db3 x.pgn -q --plies 2",
        "convert a.obs.db3 x.epd -q --plies 2",
        "convert a.bin x.pgn -q --plies 2",
        "convert a.obs.db3 x.csv -q",
        "convert a.obs.db3 x.jsonl -q",
        "convert a.bin x.csv -q",
        "tree a.bin --max-ply 4 -q --format pgn --out x.pgn",
        "tree a.bin --max-ply 4 -q --format text --out x.txt",
        "tree a.bin --max-ply 4 -q --format jsonl --out x.jsonl",
        "dump-book a.bin --color white -q --out x.txt",
        &*format!("{check} x.pgn"),
        &*format!("{build} x.pgn"),
        &*format!("{gaps} x.pgn"),
        &*format!("{new} --format pgn --out x.pgn"),
        &*format!("{new} --format csv --out x.csv"),
        &*format!("{suite} x.pgn"),
        &*format!("{suite} x.epd"),
        "man --dir . -q",
    ] {
        let name = if command.starts_with("man") {
            "polybook-show.1"
        } else {
            command
                .split([' '])
                .find(|word| word.starts_with("x."))
                .unwrap()
        };
        let refused = |case: &str| {
            let before = fs::read(at(name)).unwrap();
            let error = fails(dir.path(), command, 1);
            let advice = "exists: remove it, or replace it with --force";
            assert!(error.contains(advice), "{command}, {case}: {error}");
            assert_eq!(fs::read(at(name)).unwrap(), before, "{command}, {case}");
        };
        fs::write(at(name), "").unwrap();
        ok(dir.path(), command);
        let written = fs::read(at(name)).unwrap();
        refused("as it was written");
        let mine = [&written[..], b"{my own comment}\n"].concat();
        fs::write(at(name), mine).unwrap();
        refused("with a comment");
        ok(dir.path(), &format!("{command} --force"));
        assert_eq!(fs::read(at(name)).unwrap(), written, "{command}");
        fs::remove_file(at(name)).unwrap();
    }
    #[cfg(unix)]
    {
        fs::write(at("notes"), "mine").unwrap();
        std::os::unix::fs::symlink("notes", at("link")).unwrap();
        fs::create_dir(at("man1")).unwrap();
        std::os::unix::fs::symlink("../notes", at("man1/polybook.1")).unwrap();
        fails(dir.path(), "man --dir man1 -q", 1);
        assert_eq!(fs::read(at("notes")).unwrap(), b"mine");
        assert_eq!(fs::read_dir(at("man1")).unwrap().count(), 1);
    }
}

/// Without `--force`, a book replaces only a book with a checksum in its header.
#[test]
fn a_book_without_a_checksum_is_kept() {
    let dir = temp();
    let pgn = sample("famous.pgn").display().to_string();
    let book = dir.path().join("a.bin");
    ok(
        dir.path(),
        &format!("make-book -q {pgn} --min-game 1 --no-header --bin a.bin"),
    );
    let sound = fs::read(&book).unwrap();
    ok(
        dir.path(),
        &format!("make-book -q {pgn} --min-game 1 --comment mine --bin b.bin"),
    );
    let commented = fs::read(dir.path().join("b.bin")).unwrap();
    let mut late = sound.clone();
    // A move that no piece can make, beyond the records that a quick look examines.
    let at = 16 * (sound.len() / 16 / 4);
    late[at + 8..at + 10].copy_from_slice(&[0x07, 0x30]);
    // A sorted record with the move e2e4 in a position other than the starting position.
    let short = [[7; 8], [0x03, 0x1c, 0, 1, 0, 0, 0, 0]].concat();
    for other in [
        &b"sixteen letters!"[..],
        &[11; 16],
        &short,
        &late,
        &sound,
        &commented,
    ] {
        fs::write(&book, other).unwrap();
        let make = format!("make-book -q {pgn} --min-game 1 --bin a.bin");
        let error = fails(dir.path(), &make, 1);
        assert!(error.contains("a.bin exists"), "{error}");
        let convert = "merge-book -q other.bin third.bin --out a.bin";
        fs::write(dir.path().join("other.bin"), &sound).unwrap();
        fs::write(dir.path().join("third.bin"), &sound).unwrap();
        let error = fails(dir.path(), convert, 1);
        assert!(error.contains("a.bin exists"), "{error}");
        assert_eq!(fs::read(&book).unwrap(), other);
        ok(dir.path(), &format!("{make} --force"));
    }
    ok(
        dir.path(),
        &format!("make-book -q {pgn} --min-game 1 --bin a.bin"),
    );
}

/// The file of evaluations that Lichess publishes is gigabytes long, and its first line looks like a line of a
/// text of polybook.
#[test]
fn the_evaluations_of_lichess_are_not_replaced() {
    let dir = old_outputs();
    let dir = dir.path();
    let path = dir.join("lichess_db_eval.jsonl");
    let fen = "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq -";
    let evals = r#""evals":[{"pvs":[{"cp":20,"line":"e2e4 e7e5"}],"knodes":9,"depth":20}]"#;
    let line = format!("{{\"fen\":\"{fen}\",{evals}}}\n");
    fs::write(&path, &line).unwrap();
    let name = "lichess_db_eval.jsonl";
    for command in [
        format!("convert a.bin {name}"),
        format!("convert a.obs.db3 {name}"),
        format!("tree a.bin --out {name}"),
        format!("dump-book a.bin --color white --out {name}"),
        format!("evals {name} --out {name}"),
        format!("make-book a.obs.db3 --bin {name}"),
    ] {
        let output = run(dir, &command);
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success(), "{command}");
        assert!(error.contains(name), "{command}: {error}");
        assert_eq!(fs::read_to_string(&path).unwrap(), line, "{command}");
    }
    ok(dir, &format!("convert -q a.bin {name} --force"));
    assert_ne!(fs::read_to_string(&path).unwrap(), line);
}

/// An index is lost without its PGN files, so these are never replaced by a command that reads the index.
#[test]
fn no_pgn_file_of_an_index_is_replaced() {
    let dir = temp();
    fs::copy(sample("famous.pgn"), dir.path().join("a.pgn")).unwrap();
    ok(
        dir.path(),
        "make-book -q a.pgn --min-game 1 --explorer a.idx --bin a.bin",
    );
    fs::write(dir.path().join("r.pgn"), "1. e4 e5 2. Nf3 *\n").unwrap();
    let before = contents(dir.path());
    for line in [
        "games a.idx --pgn --limit 1 --out a.pgn",
        "games a.idx --json --out ./a.pgn",
        "games a.idx --id 1 --out a.pgn",
        "show a.idx --out a.pgn",
        "tree a.idx --out a.pgn",
        "openings a.idx --out a.pgn",
        "prepare a.idx --opponent x --out a.pgn",
        "extract a.idx --limit 1 --out a.pgn",
        "repertoire build a.idx --color white --reach 9 --out a.pgn",
        "repertoire gaps r.pgn --against a.idx --color white --add 1 --out a.pgn",
        "repertoire new r.pgn --reference a.idx --out a.pgn",
    ] {
        let output = run(dir.path(), &format!("{line} --force"));
        let error = String::from_utf8(output.stderr).unwrap();
        let is_refused = error.contains("a.pgn: this file is both an input and an output");
        assert!(is_refused && !output.status.success(), "{line}: {error}");
        assert!(contents(dir.path()) == before, "{line} changed something");
    }
    ok(
        dir.path(),
        "games a.idx --pgn --limit 1 --out r.pgn --force",
    );
}

/// A name that ends with a slash is refused as the name of a file before the work begins, and accepted for a directory.
#[test]
fn a_name_with_a_slash_is_that_of_a_directory() {
    let dir = temp();
    let pgn = sample("famous.pgn").display().to_string();
    ok(
        dir.path(),
        &format!("make-book -q {pgn} --min-game 1 --bin a.bin --obs a.obs.db3"),
    );
    ok(dir.path(), "show -q a.bin --out a.txt");
    // The commands below find this index in the cache.
    ok(dir.path(), &format!("show -q {pgn}"));
    let before = contents(dir.path());
    for (line, out) in [
        (format!("make-book {pgn} --bin"), "z.bin"),
        (format!("make-book {pgn} --obs"), "z.obs.db3"),
        (format!("make-book {pgn} --suite"), "z.epd"),
        (format!("show {pgn} --out"), "z.csv"),
        (format!("games {pgn} --pgn --out"), "z.pgn"),
        (format!("extract {pgn} --out"), "z.pgn"),
        (format!("plies {pgn} --out"), "z.csv"),
        (format!("evals {pgn} --out"), "z.evals"),
        ("tree a.bin --out".to_owned(), "z.pgn"),
        ("convert a.obs.db3".to_owned(), "z.bin"),
        ("merge-book a.bin a.bin --out".to_owned(), "z.bin"),
        ("filter a.bin --out".to_owned(), "z.bin"),
        ("show a.bin --out".to_owned(), "a.txt"),
    ] {
        for end in ["/", "/.", "//"] {
            let line = format!("{line} {out}{end}");
            let error = fails(dir.path(), &line, 1);
            let is_refused = error.contains("a name that ends with a slash")
                || error.contains("Not a directory");
            assert!(
                is_refused && !error.contains("cannot be renamed"),
                "{line}: {error}"
            );
        }
    }
    assert!(contents(dir.path()) == before);
    for end in ["", "/", "/.", "//"] {
        ok(
            dir.path(),
            &format!("make-book -q {pgn} --explorer z.idx{end} --leveldb y.idx{end} --force"),
        );
        assert!(dir.path().join("z.idx/CURRENT").exists());
        fs::remove_dir_all(dir.path().join("z.idx")).unwrap();
    }
}

/// A file that is read is never replaced, whichever option names it, even with `--force`.
#[test]
fn no_input_of_any_option_is_replaced() {
    let dir = temp();
    let games = "1. e4 { [%eval 0.1] } e5 { [%eval 0.2] } *\n";
    fs::write(dir.path().join("games.pgn"), games).unwrap();
    ok(dir.path(), "evals games.pgn --out s.evals -q");
    ok(
        dir.path(),
        "make-book games.pgn --min-game 1 --bin a.bin --obs a.obs.db3 -q",
    );
    fs::write(
        dir.path().join("from.epd"),
        "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq -\n",
    )
    .unwrap();
    fs::write(dir.path().join("script"), "").unwrap();
    fs::write(dir.path().join("book.bin"), games).unwrap();
    let before = contents(dir.path());
    for line in [
        "make-book games.pgn --min-game 1 --max-loss 50 --evals s.evals --bin s.evals --force",
        "make-book games.pgn --min-game 1 --max-loss 50 --evals s.evals --bin ./s.evals --force",
        "make-book games.pgn --min-game 1 --max-loss 50 --evals book.bin --force",
        "make-book games.pgn --min-game 1 --suite from.epd --from from.epd --plies 2 --force",
        "make-book games.pgn --min-game 1 --explorer games.pgn --force",
        "make-book games.pgn --min-game 1 --max-loss 50 --evals s.evals --explorer ./s.evals --force",
        "convert a.obs.db3 s.evals --format bin --max-loss 50 --evals s.evals --force",
        "convert a.obs.db3 from.epd --from from.epd --plies 2 --force",
        "tree a.bin --evals s.evals --out s.evals --force",
        "filter a.bin --evals s.evals --max-loss 50 --out s.evals",
        "edit a.bin --script script --out script",
        "repertoire build a.bin --color white --keep games.pgn --out games.pgn --force",
        "repertoire check games.pgn games.pgn --color white --out games.pgn --force",
    ] {
        let error = fails(dir.path(), line, 1);
        assert!(
            error.contains("both an input and an output") || error.contains("twice"),
            "{line}: {error}"
        );
        assert!(contents(dir.path()) == before, "{line} changed something");
    }
    // An output that is standard output by another name also goes there.
    #[cfg(unix)]
    for out in ["-", "/dev/stdout", "/dev/fd/1"] {
        let error = fails(
            dir.path(),
            &format!("make-book games.pgn --bin {out} --json"),
            2,
        );
        assert!(error.contains("both go to standard output"), "{error}");
    }
}

#[cfg(unix)]
#[test]
fn the_file_of_standard_output_is_no_other_output() {
    let dir = temp();
    let games = sample("famous.pgn");
    let path = dir.path().join("same.json");
    let run = |out: &str| {
        polybook_in(dir.path())
            .args(["make-book", "-q", "--json"])
            .arg(&games)
            .args(["--bin", out])
            .stdout(fs::File::create(&path).unwrap())
            .output()
            .unwrap()
    };
    let refused = run("same.json");
    assert_eq!(refused.status.code(), Some(1));
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(
        said.contains("standard output is redirected to this file"),
        "{said}"
    );
    assert!(run("other.bin").status.success());
    assert!(fs::read_to_string(&path).unwrap().starts_with('{'));
    // A link to standard output leads to the pipe from which this test reads.
    std::os::unix::fs::symlink("/dev/stdout", dir.path().join("link")).unwrap();
    let refused = polybook_in(dir.path())
        .args(["make-book", "-q", "--json"])
        .arg(&games)
        .args(["--bin", "link"])
        .output()
        .unwrap();
    assert_eq!(refused.status.code(), Some(2));
}
