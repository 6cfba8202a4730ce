//! Differences on Windows: shells that do not expand `*`, names of devices, books that another program has open,
//! directories that are opened as files, and keys that end a program.

use std::{
    collections::BTreeMap,
    env,
    fs::{self, File},
    io::{Read, Write},
    os::windows::{fs::OpenOptionsExt, process::CommandExt},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    thread,
};

use crate::common::{Arguments, fails, many_games, ok, polybook_in, sample, skip, temp, until};

/// The sharing mode of files that C programs open: others may read and write the file, but not replace it.
const READ_AND_WRITE: u32 = 3;

/// Starts a process on a new console without a window, so that keys pressed there do not reach the tests.
const CREATE_NO_WINDOW: u32 = 0x0800_0000;

fn names(dir: &Path) -> Vec<String> {
    let name = |entry: std::io::Result<fs::DirEntry>| entry.unwrap().file_name().into_string();
    let mut names: Vec<String> = fs::read_dir(dir)
        .unwrap()
        .map(|entry| name(entry).unwrap())
        .collect();
    names.sort();
    names
}

fn copy_sample(dir: &Path) {
    fs::copy(sample("famous.pgn"), dir.join("famous.pgn")).unwrap();
}

#[test]
fn patterns_are_expanded() {
    let dir = temp();
    for (name, text) in [
        ("b.pgn", "1. d4 1-0"),
        ("a.pgn", "1. e4 1-0"),
        ("c.txt", "x"),
    ] {
        fs::write(dir.path().join(name), text).unwrap();
    }
    ok(dir.path(), "make-book -q *.pgn --min-game 1 --bin all.bin");
    let shown = ok(dir.path(), "show all.bin");
    assert!(shown.contains("e2e4") && shown.contains("d2d4"), "{shown}");
    let err = fails(dir.path(), "make-book -q *.none --bin none.bin", 1);
    assert!(err.contains("*.none"), "{err}");
}

#[test]
fn devices_are_written_and_read_as_devices() {
    let dir = temp();
    copy_sample(dir.path());
    for device in ["NUL", "nul", "NUL:", r"\\.\NUL"] {
        ok(
            dir.path(),
            &["make-book", "-q", "famous.pgn", "--bin", device],
        );
        let args = ["make-book", "-q", "famous.pgn", "--obs", device];
        ok(dir.path(), &args);
    }
    assert_eq!(names(dir.path()), ["famous.pgn"]);
    let err = fails(dir.path(), "make-book -q NUL --bin book.bin", 1);
    assert!(err.contains("the input contains no game"), "{err}");
}

#[test]
fn a_book_that_another_program_holds_open_is_refused_before_games_are_read() {
    let dir = temp();
    copy_sample(dir.path());
    ok(dir.path(), "make-book -q famous.pgn --bin book.bin");
    let before = fs::read(dir.path().join("book.bin")).unwrap();
    let held = File::options()
        .read(true)
        .share_mode(READ_AND_WRITE)
        .open(dir.path().join("book.bin"))
        .unwrap();
    for command in [
        "make-book -q missing.pgn famous.pgn --min-game 1 --bin book.bin",
        "pgheader book.bin -c new",
        "merge-book book.bin book.bin --out book.bin",
    ] {
        fails(dir.path(), command, 1);
    }
    let err = fails(
        dir.path(),
        "make-book -q famous.pgn --min-game 1 --bin book.bin",
        1,
    );
    let advice = "close the output in that program, or choose another output";
    assert!(err.contains(advice), "{err}");
    assert_eq!(fs::read(dir.path().join("book.bin")).unwrap(), before);
    assert_eq!(names(dir.path()), ["book.bin", "famous.pgn"]);
    drop(held);
    ok(
        dir.path(),
        "make-book -q famous.pgn --min-game 1 --bin book.bin",
    );
    ok(dir.path(), "pgheader book.bin -c new");
    assert!(ok(dir.path(), "pgheader -s book.bin").contains("new"));
}

#[test]
fn a_book_that_another_program_opens_meanwhile_is_kept_beside_the_new_one() {
    let dir = temp();
    copy_sample(dir.path());
    ok(dir.path(), "make-book -q famous.pgn --bin book.bin");
    let mut run = polybook_in(dir.path())
        .args([
            "make-book",
            "-q",
            "-",
            "--min-game",
            "1",
            "--bin",
            "book.bin",
        ])
        .stdin(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut games = run.stdin.take().unwrap();
    // A pipe cannot hold all games. When this write ends, the run has claimed its output.
    games.write_all(many_games().as_bytes()).unwrap();
    let held = File::options()
        .read(true)
        .share_mode(READ_AND_WRITE)
        .open(dir.path().join("book.bin"))
        .unwrap();
    drop(games);
    let output = run.wait_with_output().unwrap();
    let err = String::from_utf8(output.stderr).unwrap();
    let advice = "close that program and rename the finished output";
    assert!(err.contains(advice), "{err}");
    let finished = names(dir.path());
    let finished = finished
        .iter()
        .find(|name| !["book.bin", "famous.pgn"].contains(&name.as_str()));
    drop(held);
    fs::remove_file(dir.path().join("book.bin")).unwrap();
    fs::rename(
        dir.path().join(finished.unwrap()),
        dir.path().join("book.bin"),
    )
    .unwrap();
    ok(dir.path(), "show book.bin");
}

#[test]
fn an_index_is_made_and_replaced() {
    let dir = temp();
    copy_sample(dir.path());
    ok(
        dir.path(),
        "make-book -q famous.pgn --leveldb idx --index-stats",
    );
    let again = "make-book -q famous.pgn --leveldb idx --index-stats --force";
    ok(dir.path(), again);
    let games = ok(
        dir.path(),
        &["games", "idx", "--moves", "1. e4 e5 2. Nf3 d6"],
    );
    assert!(games.contains("Morphy"), "{games}");
    // A front-end opens the games by the path in the index, so any program must accept the path.
    let index = polybook::index::Index::open(dir.path().join("idx")).unwrap();
    let path = index.files().next().unwrap().1;
    assert!(path.is_absolute() && !path.to_str().unwrap().starts_with(r"\\?\"));
    assert!(ok(dir.path(), "games idx --pgn --id 4").contains("Morphy"));
}

#[test]
fn directories_are_named_as_such() {
    let dir = temp();
    fs::create_dir(dir.path().join("sub")).unwrap();
    copy_sample(dir.path());
    for command in [
        "make-book -q sub --bin book.bin",
        "make-book -q famous.pgn --bin sub",
        "show sub",
        "verify sub",
        "pgheader -s sub",
        "convert sub out.bin",
    ] {
        let err = fails(dir.path(), command, 1);
        assert!(err.contains("sub") && err.contains("directory"), "{err}");
    }
}

#[test]
fn paths_with_a_drive_or_a_share() {
    let dir = temp();
    copy_sample(dir.path());
    let path = dir.path().to_str().unwrap();
    let drive = &path[..2];
    let relative = format!("{drive}relative.bin");
    let verbatim = format!(r"\\?\{path}\verbatim.bin");
    for name in [&relative, &verbatim] {
        for _ in 0..2 {
            let output = ok(
                dir.path(),
                &["make-book", "famous.pgn", "--json", "--bin", name],
            );
            assert!(output.contains("entries"), "{output}");
        }
        ok(dir.path(), &["show", name]);
    }
    let names = names(dir.path());
    assert_eq!(names, ["famous.pgn", "relative.bin", "verbatim.bin"]);
    // The machine does not exist, or there is no network.
    let share = r"\\no-such-machine\share\book.bin";
    let err = fails(
        dir.path(),
        &["make-book", "-q", "famous.pgn", "--bin", share],
        1,
    );
    assert!(err.contains("no-such-machine"), "{err}");
}

#[test]
fn text_in_a_pipe_is_utf_8_without_colors() {
    let dir = temp();
    let missing = "Bücher ♞.bin";
    let err = fails(dir.path(), &["show", missing], 1);
    assert!(err.contains(missing), "{err}");
    assert!(!ok(dir.path(), "--help").contains('\x1b'));
}

#[test]
fn names_that_differ_in_capitals_are_one_file() {
    let dir = temp();
    copy_sample(dir.path());
    let both = "make-book -q famous.pgn --bin Book.bin --obs book.BIN";
    let err = fails(dir.path(), both, 1);
    assert!(err.contains("this name is given for two outputs"), "{err}");
    let err = fails(dir.path(), "make-book -q famous.pgn --bin FAMOUS.PGN", 1);
    assert!(err.contains("both an input and an output"), "{err}");
}

/// A running binary on a console of its own. It is killed if the test fails.
struct OnConsole(Child);

impl OnConsole {
    fn start(dir: &Path, args: impl Arguments) -> OnConsole {
        let child = polybook_in(dir)
            .args(args.list())
            .creation_flags(CREATE_NO_WINDOW)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        OnConsole(child)
    }

    fn press(&self, presser: &Path, key: &str) {
        let pid = self.0.id().to_string();
        let pressed = Command::new(presser).args([key, &pid]).status().unwrap();
        assert!(pressed.success(), "{key}");
    }

    /// Returns the exit status and the text on standard error.
    fn end(&mut self) -> (Option<i32>, String) {
        until("it ends", || self.0.try_wait().unwrap().is_some());
        let mut error = String::new();
        let stderr = self.0.stderr.as_mut().unwrap();
        stderr.read_to_string(&mut error).unwrap();
        (self.0.wait().unwrap().code(), error)
    }
}

impl Drop for OnConsole {
    fn drop(&mut self) {
        // The process may have exited already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Returns all files below a directory with their bytes.
fn contents(dir: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut all = BTreeMap::new();
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            all.extend(contents(&path));
        } else {
            all.insert(path.clone(), fs::read(path).unwrap());
        }
    }
    all
}

/// `.ci/console-event.c` presses the keys, because sending console events needs unsafe code.
#[test]
fn ctrl_c_and_ctrl_break_leave_old_outputs() {
    let Some(presser) = env::var_os("POLYBOOK_CONSOLE_EVENT").map(PathBuf::from) else {
        return skip("POLYBOOK_CONSOLE_EVENT does not name the program that presses keys");
    };
    let outputs =
        "make-book -q --force --min-game 1 --bin book.bin --leveldb games.idx --obs games.obs.db3";
    for key in ["ctrl-c", "ctrl-break"] {
        let dir = temp();
        copy_sample(dir.path());
        ok(dir.path(), &format!("{outputs} famous.pgn"));
        let before = contents(dir.path());
        let mut run = OnConsole::start(dir.path(), &format!("{outputs} -"));
        // Games keep coming, so the run is certainly reading when the key is pressed.
        let mut stdin = run.0.stdin.take().unwrap();
        let feeder =
            thread::spawn(move || while stdin.write_all(many_games().as_bytes()).is_ok() {});
        let is_part = |name: &String| name.ends_with(".part");
        until("an output is begun", || {
            names(dir.path()).iter().any(is_part)
        });
        run.press(&presser, key);
        let (status, error) = run.end();
        assert_eq!(status, Some(130), "{key}: {error}");
        assert_eq!(error, "polybook: interrupted\n", "{key}");
        feeder.join().unwrap();
        assert!(
            contents(dir.path()) == before,
            "{key}: {:?}",
            names(dir.path())
        );
    }
}
