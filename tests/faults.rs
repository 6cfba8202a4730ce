//! Tests of single failures. Each command runs once for every file operation that it makes, such as its n-th
//! write, flush, rename, open or read, and this operation fails. Each command that writes is also killed at
//! random moments.
//!
//! After a failure, each old output is unchanged, no temporary file is left, and a message of one line says what
//! failed. A command that does not need the failed operation must give the right answer. `faults/inject.c` makes
//! the calls fail; it needs a C compiler and the seccomp filters of Linux.

use std::{
    collections::BTreeMap,
    fs::{self, File},
    io::Write,
    os::unix::fs::FileExt,
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
    sync::OnceLock,
    thread,
    time::Instant,
};

use crate::common::{ok, polybook_in, sample, skip, takes_hours, temp_in_memory, until};
use tempfile::TempDir;

/// The kinds of calls that `inject.c` can make fail.
pub const KINDS: [&str; 10] = [
    "write", "sync", "rename", "open", "read", "remove", "status", "change", "lock", "thread",
];

/// The exit status of the injector on a system on which it does not work.
const UNSUPPORTED: i32 = 77;

/// Returns the path of the compiled injector, or `None` if it cannot be compiled or does not work here.
pub fn injector() -> Option<&'static Path> {
    static INJECTOR: OnceLock<Option<PathBuf>> = OnceLock::new();
    INJECTOR.get_or_init(compiled).as_deref()
}

/// Compiles a file in `tests/faults` and returns the path of the program or library, or `None` if there is no compiler.
fn compile(source: &str, options: &[&str]) -> Option<PathBuf> {
    let source = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/faults")
        .join(source);
    let made = Path::new(env!("CARGO_TARGET_TMPDIR")).join(source.file_stem().unwrap());
    let compiler = Command::new("cc")
        .args(["-O1", "-Wall", "-Wextra", "-Werror"])
        .args(options)
        .arg("-o")
        .args([&made, &source])
        .output();
    let Ok(compiler) = compiler else {
        skip("there is no C compiler cc");
        return None;
    };
    assert!(
        compiler.status.success(),
        "{}",
        String::from_utf8_lossy(&compiler.stderr)
    );
    Some(made)
}

fn compiled() -> Option<PathBuf> {
    let program = compile("inject.c", &[])?;
    let count = program.with_extension("probe");
    let probe = Command::new(&program)
        .arg(&count)
        .args(["write", "0", "/nowhere", "/bin/true"])
        .status();
    if probe.unwrap().code() == Some(UNSUPPORTED) {
        skip("the kernel does not let a program watch the system calls of another");
        return None;
    }
    Some(program)
}

/// The paths and the contents of all files under a directory. Directories have empty contents.
pub type Files = BTreeMap<PathBuf, Vec<u8>>;

pub fn files(dir: &Path) -> Files {
    let mut found = Files::new();
    let mut open = vec![dir.to_owned()];
    while let Some(current) = open.pop() {
        for entry in fs::read_dir(&current).unwrap() {
            let path = entry.unwrap().path();
            let name = path.strip_prefix(dir).unwrap().to_owned();
            if path.is_dir() {
                found.insert(name, Vec::new());
                open.push(path);
            } else {
                found.insert(name, fs::read(&path).unwrap());
            }
        }
    }
    found
}

/// Returns the paths of the files and directories that are not inside another directory.
pub fn tops(files: &Files) -> impl Iterator<Item = &Path> {
    let paths = files.keys().map(PathBuf::as_path);
    paths.filter(|path| path.components().count() == 1)
}

/// Returns `true` if a path is that of an unfinished output, or inside one.
pub fn is_temporary(path: &Path) -> bool {
    let top = path.iter().next().and_then(|top| top.to_str());
    top.is_some_and(|top| top.starts_with('.') && top.ends_with(".part"))
}

/// Returns how many times each command that writes is killed.
fn kills() -> u64 {
    if takes_hours() { 200 } else { 3 }
}

/// Returns the entries of `files` whose path is `top` or inside `top`.
pub fn part(files: &Files, top: &Path) -> Files {
    let under = files.iter().filter(|(path, _)| path.starts_with(top));
    under
        .map(|(path, bytes)| (path.clone(), bytes.clone()))
        .collect()
}

/// A directory with files, and a command that is run in it repeatedly.
pub struct Scene {
    /// A temporary directory that contains the directory of the scene and the files of the injector.
    room: TempDir,
    pub line: String,
    pub before: Files,
}

/// The result of a command in which one call failed.
pub struct Outcome {
    /// The number of calls of the kind that the command made.
    pub calls: u64,
    /// The kind of file on which the failed call was made, or `none` if no call failed.
    failed: String,
    pub output: Output,
    pub files: Files,
}

impl Scene {
    /// Creates a scene. `prepare` puts files into its directory.
    pub fn new(line: &str, prepare: impl FnOnce(&Path)) -> Scene {
        let room = temp_in_memory();
        let dir = room.path().join("scene");
        fs::create_dir(&dir).unwrap();
        prepare(&dir);
        Scene {
            before: files(&dir),
            room,
            line: line.to_owned(),
        }
    }

    pub fn dir(&self) -> PathBuf {
        self.room.path().join("scene")
    }

    /// Returns the path of the file to which the injector logs calls.
    pub fn log(&self) -> PathBuf {
        self.room.path().join("log")
    }

    /// Restores the initial files of the directory.
    pub fn restore(&self) {
        let dir = self.dir();
        fs::remove_dir_all(&dir).unwrap();
        fs::create_dir(&dir).unwrap();
        let parents = self.before.keys().filter_map(|path| path.parent());
        for parent in parents {
            fs::create_dir_all(dir.join(parent)).unwrap();
        }
        for (path, bytes) in &self.before {
            if !dir.join(path).is_dir() {
                fs::write(dir.join(path), bytes).unwrap();
            }
        }
    }

    /// Runs the command and makes its `nth` call of a kind fail. 0 makes no call fail. If a `+` follows the number,
    /// all later calls of the kind fail too.
    pub fn run(&self, injector: &Path, kind: &str, nth: impl ToString) -> Outcome {
        self.run_beside(injector, kind, nth, "")
    }

    /// Runs the command without failures and returns the files after it.
    #[track_caller]
    pub fn run_soundly(&self, case: &str) -> Files {
        let output = polybook_in(&self.dir())
            .args(self.line.split_whitespace())
            .env("TMPDIR", self.dir())
            .output()
            .unwrap();
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{case}: {error}");
        files(&self.dir())
    }

    /// Runs the command like [`run`](Scene::run). If the kind is `meanwhile`, the `nth` call does not fail, but waits
    /// until a shell has run the command `meanwhile`.
    fn run_beside(
        &self,
        injector: &Path,
        kind: &str,
        nth: impl ToString,
        meanwhile: &str,
    ) -> Outcome {
        let count = self.room.path().join("count");
        let output = Command::new(injector)
            .arg(&count)
            .args([kind, &nth.to_string()])
            .arg(self.dir())
            .arg(env!("CARGO_BIN_EXE_polybook"))
            .args(self.line.split_whitespace())
            .env("TMPDIR", self.dir())
            .env("MEANWHILE", meanwhile)
            .env("LOG", self.log())
            .current_dir(self.dir())
            .output()
            .unwrap();
        let count = fs::read_to_string(count).unwrap();
        let (calls, failed) = count.trim().split_once(' ').unwrap();
        Outcome {
            calls: calls.parse().unwrap(),
            failed: failed.to_owned(),
            output,
            files: files(&self.dir()),
        }
    }

    /// Kills the command at random moments. After that, each output must be the old one or the new one, and the next
    /// run must remove everything that the killed run left.
    fn outlive_kills(&self) {
        let command = || {
            let mut command = polybook_in(&self.dir());
            command.args(self.line.split_whitespace());
            command
        };
        self.restore();
        let start = Instant::now();
        assert!(command().status().unwrap().success(), "{}", self.line);
        let whole = start.elapsed();
        let new = files(&self.dir());
        for number in 0..kills() {
            self.restore();
            let delay = whole.mul_f64(1.1 * fastrand::f64());
            let mut child = command().spawn().unwrap();
            thread::sleep(delay);
            child.kill().unwrap();
            child.wait().unwrap();
            let case = format!("{}, kill {number} after {delay:?} of {whole:?}", self.line);
            let found = files(&self.dir());
            for top in tops(&found).chain(tops(&self.before)).chain(tops(&new)) {
                let is_new = part(&found, top) == part(&new, top);
                let is_old = part(&found, top) == part(&self.before, top);
                let is_temporary = is_temporary(top) && !new.contains_key(top);
                assert!(
                    is_new || is_old || is_temporary,
                    "{case}: {}",
                    top.display()
                );
            }
            if found != new {
                assert!(command().status().unwrap().success(), "{case}");
                assert_same(&case, &files(&self.dir()), &new);
            }
        }
    }

    /// Runs the command once for each of its calls, and makes this call fail.
    fn endure(&self) {
        self.endure_failures_of(&KINDS);
    }

    /// Runs the command once for each of its calls of some kinds, and makes this call fail.
    fn endure_failures_of(&self, kinds: &[&str]) {
        let Some(injector) = injector() else { return };
        for kind in kinds {
            self.restore();
            let sound = self.run(injector, kind, 0);
            let error = String::from_utf8_lossy(&sound.output.stderr);
            assert!(sound.output.status.success(), "{}: {error}", self.line);
            let mut nth = 1;
            loop {
                self.restore();
                let outcome = self.run(injector, kind, nth);
                let case = format!("{}, {kind} {nth} of {}", self.line, sound.calls);
                self.judge(&case, kind, &outcome, &sound);
                if outcome.calls < nth {
                    break;
                }
                nth += 1;
            }
        }
    }

    fn judge(&self, case: &str, kind: &str, outcome: &Outcome, sound: &Outcome) {
        let error = String::from_utf8_lossy(&outcome.output.stderr);
        if outcome.output.status.success() {
            // The system reports lost writes only once, so the command must not ignore the error of a sync.
            let lost = kind == "sync" && outcome.failed != "none";
            assert!(!lost, "{case}: an error of a sync is lost");
            assert_eq!(outcome.output.stdout, sound.output.stdout, "{case}");
            self.judge_success(case, outcome, sound);
            return;
        }
        assert_eq!(outcome.output.status.code(), Some(1), "{case}: {error}");
        assert_one_line(case, &error);
        // If the status of a target cannot be read, another program may have written it. If a directory cannot be
        // opened, it cannot be flushed; if it cannot be listed, it may contain new files.
        let is_of_directory = matches!(kind, "open" | "read")
            && error.contains("the finished output cannot be renamed");
        if kind == "rename"
            || kind == "status"
            || kind == "sync" && outcome.failed == "directory"
            || is_of_directory
        {
            self.judge_renames(case, &error, &outcome.files, &sound.files);
        } else {
            assert_same(case, &outcome.files, &self.before);
        }
    }

    /// Checks the outputs of a command that succeeded although a call failed. If the failed call would have removed
    /// the old index, which has a temporary name at that time, the next run must remove it.
    fn judge_success(&self, case: &str, outcome: &Outcome, sound: &Outcome) {
        let mut found = outcome.files.clone();
        found.retain(|path, _| !is_temporary(path));
        assert_same(case, &found, &sound.files);
        if found.len() < outcome.files.len() {
            ok(&self.dir(), &self.line);
            assert_same(case, &files(&self.dir()), &sound.files);
        }
    }

    /// Checks the outputs after a failed rename. Each target must be the complete old or new output. A new output
    /// that could not be renamed to its target must be kept under a name that the error contains.
    fn judge_renames(&self, case: &str, error: &str, found: &Files, new: &Files) {
        for top in tops(new) {
            let is_new = part(found, top) == part(new, top);
            let is_old = part(found, top) == part(&self.before, top);
            assert!(is_new || is_old, "{case}: {} is torn", top.display());
        }
        for top in tops(found) {
            if new.contains_key(top) {
                continue;
            }
            let name = top.to_str().unwrap();
            assert!(!name.ends_with(".part"), "{case}: {name} is left");
            assert!(error.contains(name), "{case}: {name} is not told: {error}");
        }
    }
}

#[track_caller]
pub fn assert_same(case: &str, found: &Files, expected: &Files) {
    let paths = |files: &Files| files.keys().cloned().collect::<Vec<_>>();
    assert_eq!(paths(found), paths(expected), "{case}");
    for (path, bytes) in expected {
        assert!(found[path] == *bytes, "{case}: {} differs", path.display());
    }
}

#[track_caller]
fn assert_one_line(case: &str, error: &str) {
    assert_eq!(error.lines().count(), 1, "{case}: {error}");
    assert!(error.starts_with("polybook: "), "{case}: {error}");
    for wrong in ["panicked", "internal error", "os error", ".part"] {
        assert!(!error.contains(wrong), "{case}: {error}");
    }
}

/// Writes some games of the sample `from` to the file `name` of a directory: `games` games after the first `skip` ones.
pub fn write_games(dir: &Path, name: &str, from: &str, skip: usize, games: usize) {
    let text = fs::read_to_string(sample(from)).unwrap();
    let chosen: Vec<&str> = text.split("[Event ").skip(1 + skip).take(games).collect();
    let joined: String = chosen.iter().map(|game| format!("[Event {game}")).collect();
    fs::write(dir.join(name), joined).unwrap();
}

/// Writes games, and an old book, index and database of other games.
fn with_old_outputs(dir: &Path) {
    write_games(dir, "games.pgn", "famous.pgn", 0, 6);
    write_games(dir, "old.pgn", "famous.pgn", 10, 4);
    ok(
        dir,
        "make-book old.pgn --min-game 1 --bin book.bin --leveldb index --index-stats --explorer explored --obs games.obs.db3 -q",
    );
    write_games(dir, "other.pgn", "famous.pgn", 8, 7);
    ok(
        dir,
        "make-book other.pgn --min-game 1 --bin other.bin --obs other.obs.db3 -q",
    );
    fs::copy(dir.join("book.bin"), dir.join("third.bin")).unwrap();
}

/// Writes a store, and many games whose evaluations replace it.
fn with_old_evals(dir: &Path) {
    fs::write(dir.join("evals.pgn"), "1. d4 { [%eval 0.2] } d5 *\n").unwrap();
    ok(dir, "evals evals.pgn --out my.evals -q");
    let games = "1. e4 { [%eval 0.1] } e5 { [%eval #3,9] } *\n\n".repeat(20_000);
    fs::write(dir.join("evals.pgn"), games).unwrap();
}

fn endures(line: &str) {
    Scene::new(line, with_old_outputs).endure();
}

const ALL_OUTPUTS: &str = "--min-game 1 --bin book.bin --leveldb index --index-stats --explorer explored --obs games.obs.db3 --force -q";

#[test]
fn make_book_with_all_outputs() {
    if !crate::common::runs_slow_tests() {
        return;
    }
    endures(&format!("make-book games.pgn --threads 1 {ALL_OUTPUTS}"));
}

#[test]
fn make_book_of_new_outputs() {
    Scene::new(
        "make-book games.pgn --threads 1 --min-game 1 --bin a.bin --leveldb a --obs a.obs.db3 -q",
        |dir| write_games(dir, "games.pgn", "famous.pgn", 0, 3),
    )
    .endure();
}

#[test]
fn make_book_of_counts() {
    let with_counts = |dir: &Path| {
        write_games(dir, "games.pgn", "famous.pgn", 0, 3);
        ok(
            dir,
            "make-book games.pgn --min-game 1 --max-ply 9 --bin book.bin --counts counts -q",
        );
    };
    for line in [
        "make-book games.pgn --threads 1 --counts counts --force -q",
        "make-book counts --threads 1 --min-game 1 --max-ply 9 --uniform --bin book.bin -q",
    ] {
        Scene::new(line, with_counts).endure();
    }
}

/// A run that spills makes more writes and reads, and starts more threads, than a run that does not spill. Failures of
/// its other calls are tested by `make_book_with_all_outputs`, because both runs make the same other calls.
#[test]
fn make_book_that_spills() {
    if !crate::common::runs_slow_tests() {
        return;
    }
    let line = format!("make-book games.pgn --memory 64KiB --threads 2 {ALL_OUTPUTS}");
    Scene::new(&line, |dir| {
        with_old_outputs(dir);
        write_games(dir, "games.pgn", "selfplay.pgn", 0, 12);
    })
    .endure_failures_of(&["write", "read", "thread"]);
}

#[test]
fn merging_books() {
    endures("merge-book other.bin third.bin --out book.bin -q");
    endures("merge-book other.bin book.bin --policy first --out new.bin -q");
}

/// `--reachable` looks up every move of every position, so the books contain only a few plies of three games.
#[test]
fn filtering_books() {
    Scene::new(
        "filter other.bin third.bin --out book.bin --reachable -q",
        |dir| {
            write_games(dir, "games.pgn", "famous.pgn", 8, 3);
            for (book, plies) in [("other.bin", 6), ("third.bin", 4), ("book.bin", 2)] {
                let line =
                    format!("make-book games.pgn --min-game 1 --max-ply {plies} --bin {book} -q");
                ok(dir, &line);
            }
        },
    )
    .endure();
}

#[test]
fn editing_books() {
    endures("edit book.bin --in-place --set a3=50% -q");
}

#[test]
fn merging_databases() {
    endures("merge-book other.obs.db3 games.obs.db3 --out new.obs.db3 -q");
}

#[test]
fn converting() {
    if !crate::common::runs_slow_tests() {
        return;
    }
    for out in [
        "book.bin",
        "suite.pgn --plies 2",
        "suite.epd --plies 2",
        "table.csv",
    ] {
        endures(&format!(
            "convert other.obs.db3 {out} --min-game 1 --threads 1 -q"
        ));
    }
    endures("convert other.bin table.csv --force -q");
}

#[test]
fn changing_headers() {
    endures("pgheader -s book.bin");
    endures("pgheader -S book.bin");
    endures("pgheader -c changed book.bin");
    endures("pgheader -d book.bin");
}

#[test]
fn writing_lines_and_mended_copies() {
    endures("dump-book --bin other.bin --color white --out lines.txt --force -q");
    endures("verify other.bin --fix book.bin -q");
}

#[test]
fn writing_trees() {
    endures("tree other.bin --out tree.jsonl --format jsonl --force -q");
}

#[test]
fn collecting_evaluations() {
    for out in ["my.evals", "my.epd", "my.parquet"] {
        let line = format!("evals games.pgn --out {out} --threads 1 -q");
        Scene::new(&line, |dir| {
            let games = "1. e4 { [%eval 0.1] } e5 { [%eval #3,9] } *\n";
            fs::write(dir.join("games.pgn"), games).unwrap();
        })
        .endure();
    }
}

/// An engine for `evals`, which notes when it searches without a journal.
const ENGINE: &str = r#"#!/bin/sh
while read -r word rest; do
  case "$word" in
    uci) echo uciok;;
    isready) echo readyok;;
    go) [ -e my.evals.journal ] || touch without_journal; echo "info depth 9 score cp 5 nodes 99"; echo "bestmove e2e4";;
  esac
done
"#;

/// Writes the engine into a directory, and returns its path.
pub fn write_engine(dir: &Path) -> PathBuf {
    use std::os::unix::fs::PermissionsExt;
    let engine = dir.join("engine.sh");
    fs::write(&engine, ENGINE).unwrap();
    fs::set_permissions(&engine, fs::Permissions::from_mode(0o755)).unwrap();
    engine
}

/// Another run writes the same store between any two steps of a run with an engine. Neither run may lose the
/// evaluations of the other, and each search must have a journal.
#[test]
fn a_store_that_another_run_adds_to_meanwhile() {
    let Some(injector) = injector() else { return };
    let programs = tempfile::tempdir().unwrap();
    let engine = write_engine(programs.path());
    let run = |positions: &str| {
        let engine = engine.display();
        format!(
            "evals -q --out my.evals --engine {engine} --nodes 50 --jobs 1 --positions {positions}"
        )
    };
    let scene = Scene::new(&run("mine.epd"), |dir| {
        fs::write(dir.join("old.pgn"), "1. c4 { [%eval 0.1] } *\n").unwrap();
        fs::write(dir.join("other.pgn"), "1. a3 { [%eval 0.1] } *\n").unwrap();
        let epd = |line| {
            let pos = polybook::position::from_text(None, Some(line)).unwrap();
            polybook::position::fen_of(&pos)
        };
        fs::write(dir.join("mine.epd"), epd("e4")).unwrap();
        fs::write(dir.join("other.epd"), epd("a3")).unwrap();
        ok(dir, "evals -q --out my.evals old.pgn");
    });
    let polybook = env!("CARGO_BIN_EXE_polybook");
    let calls = scene.run(injector, "meanwhile at open", 0).calls;
    assert!(calls > 0);
    let others = [
        "evals -q --out my.evals other.pgn".to_owned(),
        run("other.epd"),
    ];
    let (mut both, mut one) = (0, 0);
    for (other, nth) in others
        .iter()
        .flat_map(|other| (1..=calls).map(move |nth| (other, nth)))
    {
        scene.restore();
        let won = scene.dir().join("won");
        let _ = fs::remove_file(&won);
        let meanwhile = format!("{polybook} {other} 2> refused && touch won; true");
        let outcome = scene.run_beside(injector, "meanwhile at open", nth, &meanwhile);
        let case = format!(
            "{other} at {nth} of {calls}: {outcome:?}",
            outcome = outcome.output
        );
        let evals = polybook::evals::Evals::open(scene.dir().join("my.evals")).unwrap();
        let has = |line| {
            let pos = polybook::position::from_text(None, Some(line)).unwrap();
            evals.of_position(&pos).unwrap().is_some()
        };
        let (has_won, is_done) = (won.exists(), outcome.output.status.success());
        assert!(has("c4") && (has_won || is_done), "{case}");
        assert_eq!((has("a3"), has("e4")), (has_won, is_done), "{case}");
        assert!(!scene.dir().join("without_journal").exists(), "{case}");
        if has_won && is_done {
            both += 1
        } else {
            one += 1
        }
    }
    assert!(both > 0 && one > 0, "{both} {one}");
}

/// Runs commands whose input is replaced by another valid file at each call that opens, examines or locks a file.
#[test]
fn an_input_that_is_replaced_while_it_is_read_is_not_called_damaged() {
    let Some(injector) = injector() else { return };
    let outputs =
        "--bin F.bin --obs F.db3 --leveldb F.fork --index-stats --explorer F.idx --counts F.counts";
    for line in [
        "verify new.fork",
        "verify new.idx",
        "verify new.db3",
        "verify new.bin",
        "verify new.evals",
        "show new.fork",
        "show new.idx",
        "show new.db3",
        "show new.bin",
        "games new.fork",
        "tree new.idx --max-ply 2",
        "info-book new.bin",
        "make-book new.counts --bin x --force --min-game 1",
    ] {
        let scene = Scene::new(line, |dir| {
            for (name, pgn, first) in [("new", "famous.pgn", 0), ("other", "selfplay.pgn", 40)] {
                write_games(dir, &format!("{name}.pgn"), pgn, first, 5);
                let outputs = outputs.replace('F', name);
                ok(
                    dir,
                    &format!("make-book {name}.pgn {outputs} --min-game 1 -q"),
                );
                let evaluated = format!("1. {} {{ [%eval 0.1] }} *\n", ["a3", "e4"][first / 40]);
                fs::write(dir.join(format!("{name}.txt")), evaluated).unwrap();
                ok(dir, &format!("evals {name}.txt --out {name}.evals -q"));
            }
        });
        let calls = scene.run(injector, "meanwhile at open", 0).calls;
        assert!(calls > 0, "{line}");
        let input = line
            .split(' ')
            .find(|word| word.starts_with("new."))
            .unwrap();
        let other = input.replace("new", "other");
        for nth in 1..=calls {
            scene.restore();
            let meanwhile = format!("mv {input} old && mv {other} {input}");
            let outcome = scene.run_beside(injector, "meanwhile at open", nth, &meanwhile);
            let error = String::from_utf8_lossy(&outcome.output.stderr);
            let asks_again = input == "new.counts" && error.contains("was replaced");
            assert!(
                outcome.output.status.success() || asks_again,
                "{line} at {nth} of {calls}: {error}"
            );
        }
    }
}

/// Tests new and replaced outputs on a file system that has only plain renames.
#[test]
fn outputs_on_a_bare_file_system() {
    let Some(injector) = injector() else { return };
    let outputs = "--bin a.bin --leveldb a --obs a.obs.db3 --counts a.counts";
    let line = format!("make-book games.pgn --threads 1 --min-game 1 {outputs} --force -q");
    let scene = Scene::new(&line, |dir| {
        write_games(dir, "games.pgn", "famous.pgn", 0, 3)
    });
    ok(&scene.dir(), &line);
    let expected = files(&scene.dir());
    scene.restore();
    for what in ["new", "replaced"] {
        let outcome = scene.run(injector, "bare", 0);
        let error = String::from_utf8_lossy(&outcome.output.stderr);
        assert!(outcome.output.status.success(), "{what}: {error}");
        assert_same(what, &outcome.files, &expected);
        write_games(&scene.dir(), "games.pgn", "famous.pgn", 0, 3);
    }
}

/// Kills each command that writes. The inputs contain more games than those of the tests of single failures.
#[test]
fn kills_at_random_moments() {
    if !crate::common::runs_slow_tests() {
        return;
    }
    let mut scene = Scene::new("", |dir| {
        with_old_outputs(dir);
        with_old_evals(dir);
        fs::copy(sample("selfplay.pgn"), dir.join("games.pgn")).unwrap();
        ok(dir, "make-book old.pgn --counts counts -q");
        ok(dir, "make-book games.pgn --counts other.counts -q");
        ok(
            dir,
            "make-book games.pgn --min-game 1 --bin other.bin --obs other.obs.db3 --force -q",
        );
    });
    for line in [
        &format!("make-book games.pgn {ALL_OUTPUTS}"),
        &format!("make-book games.pgn --memory 64KiB {ALL_OUTPUTS}"),
        "make-book games.pgn --counts counts --force -q",
        "make-book counts other.counts --min-game 1 --bin book.bin --obs games.obs.db3 --counts more.counts --force -q",
        "merge-book other.bin third.bin --out book.bin -q",
        "merge-book other.obs.db3 games.obs.db3 --out merged.obs.db3 -q",
        "filter other.bin third.bin --out book.bin --reachable -q",
        "edit other.bin --in-place --set a3=50% -q",
        "convert other.obs.db3 book.bin --min-game 1 -q",
        "convert other.obs.db3 suite.pgn --plies 2 --force -q",
        "convert other.obs.db3 suite.epd --plies 2 --force -q",
        "convert other.obs.db3 table.csv --force -q",
        "convert other.obs.db3 table.jsonl --force -q",
        "pgheader -c changed book.bin",
        "dump-book --bin other.bin --color white --out lines.txt --force -q",
        "tree other.bin --out tree.txt --force -q",
        "verify other.bin --fix book.bin -q",
        "evals evals.pgn --out my.evals -q",
    ] {
        scene.line = line.to_owned();
        scene.outlive_kills();
    }
}

/// A database without an index is sorted in the temporary directory that the command names.
#[test]
fn databases_are_sorted_in_the_directory_that_is_named() {
    let Some(injector) = injector() else { return };
    let dir = crate::common::temp();
    let room = dir.path().join("room");
    fs::create_dir(&room).unwrap();
    fs::copy(sample("selfplay.pgn"), dir.path().join("games.pgn")).unwrap();
    ok(
        dir.path(),
        "make-book games.pgn --min-game 1 --obs games.obs.db3 -q",
    );
    let db = rusqlite::Connection::open(dir.path().join("games.obs.db3")).unwrap();
    db.execute_batch("DROP INDEX BookByEPD").unwrap();
    drop(db);
    for line in [
        "merge-book games.obs.db3 --out merged.obs.db3 --memory 64KiB -q",
        "convert games.obs.db3 table.csv --memory 64KiB --force -q",
    ] {
        let count = dir.path().join("count");
        let run = Command::new(injector)
            .arg(&count)
            .args(["write", "0"])
            .arg(&room)
            .arg(env!("CARGO_BIN_EXE_polybook"))
            .args(line.split_whitespace())
            .arg("--temp-dir")
            .arg(&room)
            .current_dir(dir.path())
            .output()
            .unwrap();
        let error = String::from_utf8_lossy(&run.stderr);
        assert!(run.status.success(), "{line}: {error}");
        let count = fs::read_to_string(&count).unwrap();
        assert!(!count.starts_with("0 "), "{line}: sorted elsewhere");
    }
    let error = crate::common::fails(
        dir.path(),
        "merge-book games.obs.db3 --out merged.obs.db3 --temp-dir missing --force",
        1,
    );
    assert!(
        error.contains("missing: this is not a directory, so temporary files"),
        "{error}"
    );
}

#[test]
fn commands_that_read_books_and_databases() {
    endures("show book.bin --json");
    endures("show games.obs.db3");
    endures("info-book --bin book.bin");
    endures("verify book.bin -q");
    endures("dump-book --bin book.bin --color black --out -");
}

#[test]
fn commands_that_read_an_index() {
    endures("games index --json");
    endures("games index --pgn --moves e4");
    endures("games index --pgn --id 0 --id 2");
    endures("show index");
}

/// Commands that decide by the content of a file, such as whether it is damaged or may be replaced. If the system
/// cannot read the file, its content is not known, so the error must name the cause.
#[test]
fn an_error_of_the_system_is_not_called_damage() {
    const CAUSES: [&str; 6] = [
        "Input/output error",
        "Too many open files",
        "disk I/O error",
        "SQLite cannot open the database",
        "SQLite cannot read the database",
        // SQLite has the same error for a page that the system cannot read and for a malformed one.
        "database disk image is malformed",
    ];
    let Some(injector) = injector() else { return };
    for line in [
        "verify index -q",
        "verify games.obs.db3 -q",
        "verify suite.epd -q",
        "show book.bin",
        "make-book games.pgn --leveldb index -q",
        "make-book games.pgn --leveldb index --force -q",
        "make-book games.pgn --counts counts --force -q",
        "evals my.parquet --out new.evals",
    ] {
        let scene = Scene::new(line, |dir| {
            write_games(dir, "games.pgn", "famous.pgn", 0, 2);
            let outputs = "--bin book.bin --leveldb index --obs games.obs.db3 --counts counts";
            ok(
                dir,
                &format!("make-book games.pgn --min-game 1 {outputs} -q"),
            );
            ok(
                dir,
                "make-book games.pgn --min-game 1 --suite suite.epd --plies 2 -q",
            );
            fs::write(dir.join("evals.pgn"), "1. d4 { [%eval 0.2] } d5 *\n").unwrap();
            ok(dir, "evals evals.pgn --out my.parquet -q");
        });
        for kind in ["open", "read", "status"] {
            // The crate parquet takes a file that it cannot examine for an empty one.
            if line.contains(".parquet") && kind == "status" {
                continue;
            }
            scene.restore();
            let sound = scene.run(injector, kind, 0);
            for nth in 1..=sound.calls {
                scene.restore();
                let outcome = scene.run(injector, kind, nth);
                let error = String::from_utf8_lossy(&outcome.output.stderr);
                let is_as_before = outcome.output.stderr == sound.output.stderr;
                assert!(
                    outcome.output.status.success()
                        || is_as_before
                        || CAUSES.iter().any(|cause| error.contains(cause)),
                    "{line}, {kind} {nth} of {}: {error}",
                    sound.calls
                );
            }
        }
    }
}

/// On NFS, a lock that polybook itself holds on the file that it writes would block SQLite in the same process.
#[test]
fn databases_where_one_lock_keeps_out_another() {
    let Some(nfs) = compile("nfs_locks.c", &["-shared", "-fPIC"]) else {
        return;
    };
    let scene = Scene::new("", with_old_outputs);
    let locks = scene.room.path().join("locks");
    for line in [
        "make-book games.pgn --min-game 1 --obs new.obs.db3 -q",
        "make-book games.pgn --min-game 1 --obs games.obs.db3 --force -q",
        "merge-book other.obs.db3 games.obs.db3 --out merged.obs.db3 -q",
        "convert new.obs.db3 new.csv --force -q",
        "show merged.obs.db3",
    ] {
        let output = polybook_in(&scene.dir())
            .args(line.split_whitespace())
            .env("LD_PRELOAD", &nfs)
            .env("NFS_LOCKS", &locks)
            .output()
            .unwrap();
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{line}: {error}");
    }
    if !locks.exists() {
        skip("the binary does not load libraries, so its locks cannot be made those of NFS");
    }
}

/// A killed run may have left the old output under a temporary name. If it is unknown whether the run has ended, the
/// output cannot be restored, and a new output would hide that the old one exists.
#[test]
fn an_old_output_that_cannot_be_restored_is_named() {
    let Some(injector) = injector() else { return };
    let scene = Scene::new(
        "make-book games.pgn --min-game 1 --leveldb index -q",
        |dir| {
            write_games(dir, "games.pgn", "famous.pgn", 0, 6);
            fs::create_dir(dir.join(".index.AbCd1234.old")).unwrap();
            fs::write(dir.join(".index.AbCd1234.old/CURRENT"), "old").unwrap();
        },
    );
    let outcome = scene.run(injector, "lock", 1);
    let error = String::from_utf8_lossy(&outcome.output.stderr);
    assert_eq!(outcome.output.status.code(), Some(1), "{error}");
    assert_eq!(outcome.files, scene.before, "{error}");
    assert!(
        error.contains("index: the old output may be in ") && error.contains(".index.AbCd1234.old"),
        "{error}"
    );
}

/// SQLite reports a full disk without the error of the system.
#[test]
fn a_database_for_a_full_disk_goes_to_another_disk() {
    let Some(injector) = injector() else { return };
    let dir = crate::common::temp();
    for disk in ["full", "other"] {
        fs::create_dir(dir.path().join(disk)).unwrap();
    }
    fs::write(dir.path().join("games.pgn"), "1. e4 e5 *\n").unwrap();
    let make = |fails: &str, disk: &str| {
        Command::new(injector)
            .arg(dir.path().join("count"))
            .args(["write", fails])
            .arg(dir.path().join("full"))
            .arg(env!("CARGO_BIN_EXE_polybook"))
            .args(["make-book", "-q", "games.pgn", "--min-game", "1", "--obs"])
            .arg(format!("{disk}/games.obs.db3"))
            .current_dir(dir.path())
            .output()
            .unwrap()
    };
    let refused = String::from_utf8(make("1+", "full").stderr).unwrap();
    let advice = "the disk is full: free some space, or give a file on another disk";
    assert!(refused.contains(advice), "{refused}");
    assert!(make("1+", "other").status.success());
    assert!(make("0", "full").status.success());
}

/// Tests each output on a full device.
#[test]
fn outputs_on_a_full_device() {
    let scene = Scene::new("", with_old_outputs);
    let dir = scene.dir();
    for name in [
        "full.bin",
        "full.csv",
        "full.epd",
        "full.pgn",
        "full.obs.db3",
    ] {
        std::os::unix::fs::symlink("/dev/full", dir.join(name)).unwrap();
    }
    let before = names_and_sizes(&dir);
    for line in [
        "make-book games.pgn --min-game 1 --bin full.bin --leveldb index --obs games.obs.db3 --force -q",
        "make-book games.pgn --min-game 1 --bin book.bin --leveldb index --obs full.obs.db3 --force -q",
        "make-book games.pgn --min-game 1 --bin book.bin --leveldb /dev/full --obs games.obs.db3 --force -q",
        "merge-book other.bin book.bin --out full.bin -q",
        "merge-book other.obs.db3 games.obs.db3 --out full.obs.db3 -q",
        "convert other.obs.db3 full.bin --min-game 1 -q",
        "convert other.obs.db3 full.pgn --min-game 1 --plies 2 -q",
        "convert other.obs.db3 full.epd --min-game 1 --plies 2 --force -q",
        "convert other.obs.db3 full.csv --force -q",
        "convert other.bin full.csv --force -q",
        "dump-book --bin other.bin --color white --out full.bin -q",
        "verify other.bin --fix full.bin -q",
    ] {
        let error = crate::common::fails(&dir, line, 1);
        assert_one_line(line, &error);
        assert_eq!(names_and_sizes(&dir), before, "{line}: {error}");
    }
}

/// Tests standard output on a full device.
#[test]
fn answers_on_a_full_device() {
    let scene = Scene::new("", with_old_outputs);
    for line in [
        "show book.bin",
        "show games.obs.db3 --json",
        "games index",
        "games index --pgn",
        "games index --pgn --id 0",
        "show index",
        "key",
        "info-book --bin book.bin",
        "pgheader -s book.bin",
        "dump-book --bin book.bin --color white --out -",
        "make-book games.pgn --min-game 1 --bin - -q",
        "merge-book other.bin book.bin --out - -q",
        "verify other.bin --fix - -q",
    ] {
        let full = File::options().write(true).open("/dev/full").unwrap();
        let output = polybook_in(&scene.dir())
            .args(line.split_whitespace())
            .stdout(full)
            .output()
            .unwrap();
        let error = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{line}: {error}");
        assert_one_line(line, &error);
        assert!(!scene.dir().join("-").exists(), "{line}");
    }
}

/// Changes bytes of temporary files while a command runs. Finds the files by the descriptors of the process.
#[test]
fn temporary_files_that_change_are_an_error() {
    if !Path::new("/proc/self/fd").exists() {
        return skip("there is no /proc");
    }
    let games = fs::read(sample("selfplay.pgn")).unwrap();
    for line in [
        "make-book - --min-game 1 --bin new.bin --memory 64KiB --temp-dir spilled -q",
        "make-book - --min-game 1 --leveldb new --memory 64KiB --temp-dir spilled -q",
    ] {
        let scene = Scene::new("", |_| ());
        fs::create_dir_all(scene.dir().join("spilled")).unwrap();
        let mut child = polybook_in(&scene.dir())
            .args(line.split_whitespace())
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut games_in = child.stdin.take().unwrap();
        (0..4).for_each(|_| games_in.write_all(&games).unwrap());
        let descriptors = PathBuf::from(format!("/proc/{}/fd", child.id()));
        let spilled = || {
            let files = fs::read_dir(&descriptors)
                .unwrap()
                .map(|entry| entry.unwrap().path());
            let is_temporary = |file: &PathBuf| {
                fs::read_link(file).is_ok_and(|to| to.to_string_lossy().contains("/spilled/"))
            };
            let files = files.filter(is_temporary);
            let with_bytes = |file: &PathBuf| fs::metadata(file).is_ok_and(|meta| meta.len() > 0);
            files.filter(with_bytes).collect::<Vec<_>>()
        };
        until("a temporary file has bytes", || !spilled().is_empty());
        for path in spilled() {
            let file = File::options().read(true).write(true).open(path).unwrap();
            let mut byte = [0];
            file.read_exact_at(&mut byte, 100).unwrap();
            file.write_all_at(&[!byte[0]], 100).unwrap();
        }
        drop(games_in);
        let output = child.wait_with_output().unwrap();
        let error = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{line}: {error}");
        assert_one_line(line, &error);
        assert!(
            error.contains("spilled: a temporary file has changed")
                && error.contains("check the disk, or use another directory for temporary files"),
            "{line}: {error}"
        );
        assert!(!scene.dir().join("new.bin").exists() && !scene.dir().join("new").exists());
        fs::create_dir(scene.dir().join("other")).unwrap();
        let other = line.replace("spilled", "other");
        let made = crate::common::fed(&scene.dir(), &other, &games);
        assert!(made.status.success(), "{made:?}");
    }
}

/// Returns the names in a directory with the sizes and times of the files, without following links.
fn names_and_sizes(dir: &Path) -> Vec<(PathBuf, u64, std::time::SystemTime)> {
    let mut found: Vec<_> = fs::read_dir(dir)
        .unwrap()
        .map(|entry| {
            let path = entry.unwrap().path();
            let metadata = fs::symlink_metadata(&path).unwrap();
            (path, metadata.len(), metadata.modified().unwrap())
        })
        .collect();
    found.sort();
    found
}
