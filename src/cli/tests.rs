//! Tests that a panic in any stage of any command is reported as an error of the command.
//!
//! The test program also plays the role of the command: it starts itself with a command line in an environment
//! variable, and then runs this command.

use std::{
    collections::{BTreeMap, BTreeSet},
    env,
    ffi::OsString,
    fs,
    io::{BufRead, BufReader, Read, Write},
    net::TcpStream,
    path::{Path, PathBuf},
    process::{self, Child, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use polybook::{
    pgn::Input,
    plies::{Plies, PlyOptions},
};

use clap::CommandFactory;

use super::{Cli, errors, plural};

/// The time after which a test considers a command to be stuck.
const PATIENCE: Duration = Duration::from_secs(60);

/// The separator between the arguments in the environment variable `POLYBOOK_COMMAND`.
const BETWEEN: &str = "\u{1f}";

const MAKE_ALL: &str = "make-book games.pgn --bin new.bin --leveldb new.idx --explorer new.explored --obs new.obs.db3 \
    --counts new.counts --min-game 1 --memory 1MiB --threads 2 --force";
const MAKE_BOOK: &str = "make-book long.pgn --bin new.bin --threads 2";
const ADD_UP: &str = "make-book counts --bin new.bin --min-game 1";
const ADD_UP_SORTED: &str = "make-book counts --bin new.bin --min-game 1 --memory 1MiB";
const MERGE_OBS: &str = "merge-book a.obs.db3 b.obs.db3 --out new.obs.db3 --force";
const MERGE_BOOK: &str = "merge-book a.bin b.bin --out new.bin";
const FROM_FRAMES: &str = "make-book frames.pgn.zst --bin new.bin --force";
const CONVERT: &str = "convert a.obs.db3 new.bin";
const TO_CSV: &str = "convert a.obs.db3 new.csv --force";
const TO_JSONL: &str = "convert a.obs.db3 new.jsonl";
const TO_PARQUET: &str = "convert a.obs.db3 new.parquet";
const BOOK_TO_JSONL: &str = "convert a.bin new.jsonl";
const TREE: &str = "tree a.bin --out new.pgn --force";
const CHECK: &str = "repertoire check a.bin games.pgn --color white --limit 9 --out new-games.pgn";
const BUILD: &str = "repertoire build a.idx --color white --reach 9 --max-ply 6 --out new.bin";
const PLIES: &str = "plies games.pgn";
const SUITE: &str = "make-book games.pgn --suite new.epd --plies 2 --min-game 1";
const TO_SUITE: &str = "convert a.obs.db3 new.epd --plies 2";
const FILTER: &str = "filter a.bin --out new.bin";
const EDIT: &str = "edit new.bin --in-place --set a3=50%";
const DUMP: &str = "dump-book --bin a.bin --color white --out new.txt";
const FIX: &str = "verify a.bin --fix new.bin";
const EVALS: &str = "evals evals.pgn --out new.evals --threads 2";
const HEADER: &str = "pgheader -c changed new.bin";

/// The places in the code that the test makes panic. Each element contains the name of a stage, the number of the
/// call that panics, and a command that reaches the stage.
const FAULTS: &[(&str, &str, &str)] = &[
    ("unpack", "0", MAKE_ALL),
    ("unpack", "1", PLIES),
    ("unpack", "40", MAKE_BOOK),
    ("unpack frame", "0", FROM_FRAMES),
    ("cut", "0", MAKE_ALL),
    ("cut", "40", MAKE_BOOK),
    ("replay", "0", MAKE_BOOK),
    ("replay", "3", MAKE_BOOK),
    ("replay", "40", MAKE_BOOK),
    ("replay", "3+", MAKE_BOOK),
    ("sequence", "0", MAKE_ALL),
    ("sequence", "3", MAKE_BOOK),
    ("tally", "0", MAKE_ALL),
    ("tally", "1000+", MAKE_BOOK),
    ("spill", "3", MAKE_ALL),
    ("sort", "3", MAKE_ALL),
    ("walk", "0", MAKE_ALL),
    ("walk", "40", MAKE_ALL),
    ("pile", "40", MAKE_ALL),
    ("flush", "0", MAKE_ALL),
    ("gather", "0", MAKE_ALL),
    ("rows", "0", MAKE_ALL),
    ("write part", "0", MAKE_ALL),
    ("write positions", "0", MAKE_ALL),
    ("write tables", "0", MAKE_ALL),
    ("write lists", "0", MAKE_ALL),
    ("weigh", "3", MAKE_ALL),
    ("write book", "3", MAKE_ALL),
    ("put in place", "0", MAKE_ALL),
    ("add counts", "0", ADD_UP_SORTED),
    ("merge counts", "0", ADD_UP),
    ("write tables", "0", MAKE_ALL),
    ("rows", "0", MERGE_OBS),
    ("last rows", "1", MERGE_OBS),
    ("merge books", "3", MERGE_BOOK),
    ("rows", "0", CONVERT),
    ("count rows", "0", CONVERT),
    ("write book", "0", CONVERT),
    ("last rows", "0", TO_CSV),
    ("write lines", "3", TO_JSONL),
    ("write lines", "3", BOOK_TO_JSONL),
    ("write rows", "0", TO_PARQUET),
    ("tree", "0", TREE),
    ("plies", "0", PLIES),
    ("evals", "0", EVALS),
    ("play games", "0", CHECK),
    ("answer", "3", BUILD),
    ("put in place", "0", CHECK),
    ("put in place", "0", BUILD),
    ("put in place", "0", SUITE),
    ("put in place", "0", MERGE_BOOK),
    ("put in place", "0", MERGE_OBS),
    ("put in place", "0", CONVERT),
    ("put in place", "0", TO_SUITE),
    ("put in place", "0", TREE),
    ("put in place", "0", FILTER),
    ("put in place", "0", EDIT),
    ("put in place", "0", DUMP),
    ("put in place", "0", FIX),
    ("put in place", "0", HEADER),
];

/// The stages of `serve`. The server continues after a panic in one of them.
const ANSWERING: &[&str] = &["answer"];

/// Creates a command that starts this test program in the directory `dir` to run the command line `line`.
fn command(test: &str, line: &str, dir: &Path) -> Command {
    let mut command = Command::new(env::current_exe().unwrap());
    let line: Vec<&str> = line.split_whitespace().collect();
    command
        .args([&*format!("cli::tests::{test}"), "--exact", "--nocapture"])
        .env("POLYBOOK_COMMAND", line.join(BETWEEN))
        .env("TMPDIR", dir.join("tmp"))
        .env("TMP", dir.join("tmp"))
        .current_dir(dir)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

/// Runs the command line in the environment variable and exits. Does nothing if the variable is not set.
fn become_command() {
    let Ok(line) = env::var("POLYBOOK_COMMAND") else {
        return;
    };
    let args: Vec<&str> = line.split(BETWEEN).collect();
    let status = match args[..] {
        ["plies", path] => errors::without_backtraces(|| {
            let mut plies = Plies::open(Input::file(path), PlyOptions::default())?;
            while plies.next_batch()?.is_some() {}
            Ok(())
        }),
        #[cfg(all(unix, feature = "serve"))]
        ["interrupted"] => errors::without_backtraces(|| {
            super::signals::watch()?;
            super::signals::before_end(|| panic!("while saying farewell"));
            let _directory = polybook::storage::output::TemporaryDir::new_in(&env::temp_dir())?;
            signal_hook::low_level::raise(signal_hook::consts::SIGTERM)?;
            loop {
                super::signals::wait_if_ending();
            }
        }),
        _ => super::run(["polybook"].iter().chain(&args).map(OsString::from)),
    };
    process::exit(status.into());
}

/// Waits until a command ends. Returns its exit status and what it wrote to standard error.
fn ended(mut child: Child, what: &str) -> (Option<i32>, String) {
    let start = Instant::now();
    let status = loop {
        if let Some(status) = child.try_wait().unwrap() {
            break status;
        }
        if start.elapsed() > PATIENCE {
            child.kill().unwrap();
            panic!("{what}: did not end");
        }
        thread::sleep(Duration::from_millis(5));
    };
    let mut errors = String::new();
    let mut stderr = child.stderr.take().unwrap();
    stderr.read_to_string(&mut errors).unwrap();
    (status.code(), errors)
}

/// Returns the paths of all files and directories below a directory, with the contents of the files.
fn content(dir: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.insert(path.clone(), Vec::new());
            found.extend(content(&path));
        } else {
            found.insert(path.clone(), fs::read(path).unwrap());
        }
    }
    found
}

/// Creates a directory with inputs for the commands, and with outputs of earlier runs.
fn prepared(test: &str) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name);
    fs::create_dir(path("tmp")).unwrap();
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("data");
    let games = fs::read(data.join("selfplay.pgn")).unwrap();
    fs::write(path("games.pgn"), &games).unwrap();
    // This file is read in more than 41 batches.
    fs::write(path("long.pgn"), games.repeat(50)).unwrap();
    let frame = zstd::encode_all(&games[..], 1).unwrap();
    fs::write(path("frames.pgn.zst"), frame.repeat(2)).unwrap();
    fs::copy(data.join("famous.pgn"), path("old.pgn")).unwrap();
    fs::write(path("evals.pgn"), "1. e4 { [%eval 0.1] } *").unwrap();
    for line in [
        "make-book games.pgn --bin a.bin --leveldb a.fork --explorer a.idx --obs a.obs.db3 --counts counts --min-game 1",
        "make-book old.pgn --bin b.bin --leveldb b.fork --explorer b.idx --obs b.obs.db3 --min-game 1",
        "make-book old.pgn --bin new.bin --leveldb new.idx --explorer new.explored --obs new.obs.db3 --counts new.counts --min-game 1",
        "convert new.obs.db3 new.csv",
        "tree new.bin --out new.pgn",
    ] {
        let child = command(test, line, dir.path()).spawn().unwrap();
        let (status, errors) = ended(child, line);
        assert_eq!(status, Some(0), "{line}: {errors}");
    }
    dir
}

#[test]
fn the_command_line_is_consistent() {
    Cli::command().debug_assert();
}

#[test]
fn the_noun_after_the_number_1_is_singular() {
    let found = [0, 1, 2].map(|number| plural(number, "game"));
    assert_eq!(found, ["0 games", "1 game", "2 games"]);
    assert_eq!(plural(1, "entry"), "1 entry");
    assert_eq!(plural(7, "entry"), "7 entries");
}

#[test]
fn a_panic_in_any_stage_ends_the_command_with_one_line() {
    become_command();
    let test = "a_panic_in_any_stage_ends_the_command_with_one_line";
    let dir = prepared(test);
    let before = content(dir.path());
    for (stage, time, line) in FAULTS {
        let what = format!("{stage}:{time} in {line}");
        let mut command = command(test, line, dir.path());
        command.env("POLYBOOK_FAULT", format!("{stage}:{time}"));
        let (status, errors) = ended(command.spawn().unwrap(), &what);
        assert_eq!(status, Some(1), "{what}: {errors}");
        let start = format!("polybook: internal error: a fault in {stage} (");
        assert!(errors.starts_with(&start), "{what}: {errors}");
        assert_eq!(errors.lines().count(), 1, "{what}: {errors}");
        assert!(
            errors.ends_with("please report this message with your command line\n"),
            "{what}: {errors}"
        );
        let after = content(dir.path());
        let changed: Vec<_> = before
            .keys()
            .chain(after.keys())
            .filter(|path| before.get(*path) != after.get(*path))
            .collect();
        assert!(changed.is_empty(), "{what}: {changed:?}");
    }
}

#[cfg(all(unix, feature = "serve"))]
#[test]
fn a_panic_does_not_hold_up_the_end_by_a_signal() {
    become_command();
    let test = "a_panic_does_not_hold_up_the_end_by_a_signal";
    let dir = tempfile::tempdir().unwrap();
    fs::create_dir(dir.path().join("tmp")).unwrap();
    let child = command(test, "interrupted", dir.path()).spawn().unwrap();
    let (status, errors) = ended(child, test);
    assert_eq!(status, Some(143), "{errors}");
    assert_eq!(errors, "polybook: stopped\n");
    assert_eq!(content(&dir.path().join("tmp")), BTreeMap::new());
}

#[test]
fn a_pipe_that_gives_nothing_does_not_hold_up_the_end() {
    become_command();
    let test = "a_pipe_that_gives_nothing_does_not_hold_up_the_end";
    let dir = tempfile::tempdir().unwrap();
    fs::create_dir(dir.path().join("tmp")).unwrap();
    let games = fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join("data/selfplay.pgn")).unwrap();
    let mut child = command(test, "make-book - --bin new.bin", dir.path())
        .env("POLYBOOK_FAULT", "replay:0")
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    let mut open = child.stdin.take().unwrap();
    // Write one batch and the beginning of a second one, which never becomes complete. The command may close the pipe
    // earlier, so an error is ignored.
    let _ = open.write_all(&games.repeat(2));
    let (status, errors) = ended(child, test);
    drop(open);
    assert_eq!(status, Some(1), "{errors}");
    assert_eq!(errors.lines().count(), 1, "{errors}");
}

#[test]
fn a_panic_ends_one_answer_of_a_server() {
    become_command();
    let test = "a_panic_ends_one_answer_of_a_server";
    let dir = prepared(test);
    for stage in ANSWERING {
        let mut child = command(
            test,
            "serve a.idx --threads 1 --listen 127.0.0.1:0",
            dir.path(),
        )
        .env("POLYBOOK_FAULT", format!("{stage}:0"))
        .spawn()
        .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let address = lines
            .map(|line| line.unwrap())
            .find_map(|line| {
                Some(
                    line.strip_prefix("http://")?
                        .trim_end_matches('/')
                        .to_owned(),
                )
            })
            .unwrap();
        let status = || {
            let mut stream = TcpStream::connect(&address).unwrap();
            stream.set_read_timeout(Some(PATIENCE)).unwrap();
            let request =
                format!("GET /lichess HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
            stream.write_all(request.as_bytes()).unwrap();
            let mut answer = String::new();
            stream.read_to_string(&mut answer).unwrap();
            answer.split_whitespace().nth(1).map(str::to_owned)
        };
        let answers = [status(), status()];
        child.kill().unwrap();
        let (_, errors) = ended(child, stage);
        assert_eq!(answers, [Some("503".to_owned()), Some("200".to_owned())]);
        let (first, errors) = errors.split_once('\n').unwrap();
        assert!(first.starts_with("open this address"), "{first}");
        let start = format!("polybook: internal error: a fault in {stage} (");
        assert!(errors.starts_with(&start), "{errors}");
        assert_eq!(errors.lines().count(), 1, "{errors}");
    }
}

/// Finds the names of all stages in the source files below `dir`, and adds them to `found`.
fn stages(dir: &Path, found: &mut BTreeSet<String>) {
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            stages(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let source = fs::read_to_string(&path).unwrap();
            let named = source.split("task::fault(\"").skip(1);
            found.extend(named.map(|rest| rest.split('"').next().unwrap_or_default().to_owned()));
        }
    }
}

#[test]
fn every_stage_is_tested() {
    let mut found = BTreeSet::new();
    stages(
        &Path::new(env!("CARGO_MANIFEST_DIR")).join("src"),
        &mut found,
    );
    let listed = FAULTS
        .iter()
        .map(|(stage, ..)| *stage)
        .chain(ANSWERING.iter().copied());
    let listed: BTreeSet<String> = listed.map(str::to_owned).collect();
    assert_eq!(found, listed);
}
