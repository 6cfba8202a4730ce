//! Signals and kills in every command and phase of a run: the program ends at once, keeps the old outputs, and
//! leaves no temporary files.

use std::{
    fs::{self, File},
    io::{Read, Write},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use rustix::process::Signal;

use crate::common::{
    Arguments, fails, make_fifo, many_games, ok, polybook_in, sample, send_signal, temp, until,
};

/// Returns a command that runs the binary with the default action for SIGHUP, as a terminal does. If the tests
/// run under `nohup`, a binary started by them would otherwise ignore SIGHUP.
fn heeding_hangup(dir: &Path) -> Command {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    if signals(&status, "SigIgn:").is_none_or(|ignored| ignored & 1 == 0) {
        return polybook_in(dir);
    }
    let mut command = Command::new("env");
    command
        .current_dir(dir)
        .arg("--default-signal=HUP")
        .arg(env!("CARGO_BIN_EXE_polybook"));
    command
}

/// Parses a mask of signals in `status`, the status file of a process in `/proc`. `line` is the beginning of the
/// mask's line, such as `SigIgn:`. The lowest bit is SIGHUP.
fn signals(status: &str, line: &str) -> Option<u64> {
    let mask = status.lines().find_map(|text| text.strip_prefix(line))?;
    u64::from_str_radix(mask.trim(), 16).ok()
}

/// The maximum time that a run may take to end. It should take less than a second; a loaded machine may take longer.
const END: Duration = Duration::from_secs(5);

/// Signals, and the exit statuses that report them.
const SIGNALS: [(Signal, i32); 3] = [(Signal::INT, 130), (Signal::TERM, 143), (Signal::HUP, 129)];

/// A run of the binary that is killed if the test fails.
struct Running(Child);

impl Running {
    fn start(dir: &Path, args: impl Arguments) -> Running {
        Running::spawn(heeding_hangup(dir).args(args.list()))
    }

    fn spawn(command: &mut Command) -> Running {
        let child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        Running(child)
    }

    /// Waits until the binary handles signals. If the system does not report this, waits two seconds.
    #[track_caller]
    fn until_it_listens(&self) {
        let status = format!("/proc/{}/status", self.0.id());
        if !Path::new("/proc/self/status").exists() {
            return thread::sleep(Duration::from_secs(2));
        }
        until("the binary listens", || {
            let text = fs::read_to_string(&status).unwrap_or_default();
            // SIGTERM is number 15.
            signals(&text, "SigCgt:").is_some_and(|caught| caught >> 14 & 1 == 1)
        });
        // The binary handles signals before it starts its work, so wait until it works.
        thread::sleep(Duration::from_millis(100));
    }

    fn signal(&self, signal: Signal) {
        send_signal(self.0.id(), signal);
    }

    /// Waits for the end of the run. Returns its exit status, and its text on standard error.
    #[track_caller]
    fn end(&mut self) -> (Option<i32>, String) {
        let start = Instant::now();
        while self.0.try_wait().unwrap().is_none() {
            assert!(start.elapsed() < END, "it does not end");
            thread::sleep(Duration::from_millis(5));
        }
        let status = self.0.wait().unwrap();
        let mut error = String::new();
        let stderr = self.0.stderr.as_mut().unwrap();
        stderr.read_to_string(&mut error).unwrap();
        (status.code(), error)
    }

    /// Sends a signal and checks how the run ends.
    #[track_caller]
    fn ends_by(&mut self, signal: (Signal, i32)) {
        self.ends_with_advice(signal, "");
    }

    /// Sends a signal, and checks how the run ends. `advice` is the expected end of the message.
    #[track_caller]
    fn ends_with_advice(&mut self, (signal, status): (Signal, i32), advice: &str) {
        self.signal(signal);
        let (code, error) = self.end();
        assert_eq!(code, Some(status), "{signal:?}: {error}");
        assert_eq!(
            error,
            format!("polybook: interrupted{advice}\n"),
            "{signal:?}"
        );
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Returns the names in a directory, sorted.
fn names(dir: &Path) -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(dir)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

/// Returns the path of the unfinished output of a target, or `None` if there is none.
fn part(dir: &Path, target: &str) -> Option<PathBuf> {
    let prefix = format!(".{target}.");
    let found = names(dir)
        .into_iter()
        .find(|name| name.starts_with(&prefix) && name.ends_with(".part"));
    found.map(|name| dir.join(name))
}

/// A directory with a book, an index and a database that a run would replace, and their bytes.
struct Old {
    dir: tempfile::TempDir,
    names: Vec<String>,
    bytes: Vec<Vec<u8>>,
}

const OUTPUTS: [&str; 4] = ["book.bin", "games.idx", "games.obs.db3", "explored.idx"];

const ALL_OUTPUTS: &str = "make-book -q --force --min-game 1 --bin book.bin --leveldb games.idx --obs games.obs.db3 --index-stats --explorer explored.idx";

impl Old {
    fn make() -> Old {
        let dir = temp();
        fs::copy(sample("famous.pgn"), dir.path().join("famous.pgn")).unwrap();
        fs::write(dir.path().join("many.pgn"), many_games()).unwrap();
        ok(dir.path(), &format!("{ALL_OUTPUTS} famous.pgn"));
        Old {
            names: names(dir.path()),
            bytes: Old::bytes(dir.path()),
            dir,
        }
    }

    fn bytes(dir: &Path) -> Vec<Vec<u8>> {
        let indexes = [OUTPUTS[1], OUTPUTS[3]].map(|index| fs::read_dir(dir.join(index)).unwrap());
        let entries = indexes.into_iter().flatten();
        let mut files: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
        files.sort();
        files.extend([dir.join(OUTPUTS[0]), dir.join(OUTPUTS[2])]);
        files.iter().map(|path| fs::read(path).unwrap()).collect()
    }

    fn path(&self) -> &Path {
        self.dir.path()
    }

    /// Returns `true` if all outputs are the new ones, because the signal came after the renames. Returns `false` if
    /// all outputs are the old ones. Panics in all other cases.
    #[track_caller]
    fn gave_way_to(&self, new: &[Vec<u8>]) -> bool {
        let now = Old::bytes(self.path());
        if now == self.bytes {
            return false;
        }
        // An index contains the absolute paths of its inputs. So only the book and the database, the last two files,
        // are equal to those in another directory.
        let index = now.len() - 2;
        assert!(now[index..] == new[new.len() - 2..], "some are old");
        assert!(now[..index] != self.bytes[..self.bytes.len() - 2]);
        true
    }

    /// Checks that all old outputs are unchanged, and that there are no other files.
    #[track_caller]
    fn is_intact(&self) {
        assert_eq!(names(self.path()), self.names);
        assert!(Old::bytes(self.path()) == self.bytes, "an output changed");
    }
}

#[test]
fn a_signal_ends_a_command_that_waits_for_standard_input() {
    let old = Old::make();
    let lines = [
        format!("{ALL_OUTPUTS} -"),
        "show -".to_owned(),
        "verify - --fix book.bin".to_owned(),
        "info-book --bin -".to_owned(),
        "dump-book --bin - --color white --out book.bin --force".to_owned(),
        "merge-book - --out book.bin".to_owned(),
        "convert - book.bin --force".to_owned(),
        "filter - --out book.bin".to_owned(),
        "tree - --out tree.txt".to_owned(),
        "edit - --out book.bin --set e4=1".to_owned(),
        "diff - book.bin".to_owned(),
        "extract - --out book.bin --force".to_owned(),
    ];
    for (i, line) in lines.iter().enumerate() {
        let mut run = Running::start(old.path(), line);
        run.until_it_listens();
        run.ends_by(SIGNALS[i % SIGNALS.len()]);
        old.is_intact();
    }
}

#[test]
fn every_signal_ends_a_run_that_reads_games() {
    for signal in SIGNALS {
        let old = Old::make();
        let mut run = Running::start(old.path(), &format!("{ALL_OUTPUTS} -"));
        // The games never end, so the run is certainly reading when the signal arrives.
        let mut stdin = run.0.stdin.take().unwrap();
        let feeder = thread::spawn(move || {
            let mut fed = 0;
            while stdin.write_all(many_games().as_bytes()).is_ok() {
                fed += 1;
            }
            fed
        });
        until("an output is begun", || {
            part(old.path(), "book.bin").is_some()
        });
        thread::sleep(Duration::from_millis(300));
        run.ends_by(signal);
        feeder.join().unwrap();
        old.is_intact();
    }
}

#[test]
fn a_signal_ends_a_command_that_opens_a_pipe_without_a_writer() {
    let old = Old::make();
    let outside = temp();
    let fifo = outside.path().join("games.fifo");
    make_fifo(&fifo);
    let mut run = Running::start(old.path(), &format!("{ALL_OUTPUTS} {}", fifo.display()));
    run.until_it_listens();
    run.ends_by(SIGNALS[1]);
    old.is_intact();
}

/// Sends a signal when the file of an output grows. The run may end before it receives the signal.
#[test]
fn a_signal_while_an_output_is_written_leaves_the_old_or_new_outputs() {
    let other = Old::make();
    ok(other.path(), &format!("{ALL_OUTPUTS} many.pgn"));
    let new = Old::bytes(other.path());
    for (i, output) in OUTPUTS.iter().enumerate() {
        let old = Old::make();
        let mut run = Running::start(old.path(), &format!("{ALL_OUTPUTS} many.pgn"));
        let grows = |path: PathBuf| match fs::read_dir(&path) {
            Ok(entries) => entries.count() > 0,
            Err(_) => fs::metadata(&path).is_ok_and(|metadata| metadata.len() > 0),
        };
        until("an output grows", || {
            run.0.try_wait().unwrap().is_some() || part(old.path(), output).is_some_and(grows)
        });
        let (signal, status) = SIGNALS[i % SIGNALS.len()];
        if run.0.try_wait().unwrap().is_none() {
            run.signal(signal);
        }
        let (code, error) = run.end();
        assert!(code == Some(0) || code == Some(status), "{code:?}: {error}");
        assert_eq!(names(old.path()), old.names, "{error}");
        let is_new = old.gave_way_to(&new);
        assert!(is_new || code == Some(status), "{error}");
    }
}

/// Sends signals at different times of a run. After each signal, either all outputs are the old ones, or all are
/// the new ones.
#[test]
fn a_signal_at_any_moment_leaves_all_old_or_all_new_outputs() {
    let old = Old::make();
    let line = format!("{ALL_OUTPUTS} many.pgn");
    let start = Instant::now();
    let other = Old::make();
    ok(other.path(), &line);
    let new = Old::bytes(other.path());
    let whole = start.elapsed();
    for i in 0..12 {
        let mut run = Running::start(old.path(), &line);
        run.until_it_listens();
        thread::sleep(whole * i / 12);
        let (signal, status) = SIGNALS[i as usize % SIGNALS.len()];
        if run.0.try_wait().unwrap().is_none() {
            run.signal(signal);
        }
        let (code, error) = run.end();
        assert_eq!(names(old.path()), old.names, "{error}");
        assert!(code == Some(0) || code == Some(status), "{code:?}: {error}");
        if old.gave_way_to(&new) {
            break;
        }
        assert_eq!(code, Some(status), "{error}");
    }
}

/// Returns the paths and the contents of the files of counts and of a book.
fn counts_and_book(dir: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let counts = names(&dir.join("made")).into_iter();
    let files = counts.map(|name| dir.join("made").join(name));
    let files = files.chain([dir.join("book.bin")]);
    files
        .map(|path| (path.clone(), fs::read(path).unwrap()))
        .collect()
}

/// Sends signals at different times of runs that write counts, made from games or from other counts.
#[test]
fn a_signal_at_any_moment_leaves_old_or_new_counts() {
    let dir = temp();
    let dir = dir.path();
    fs::copy(sample("famous.pgn"), dir.join("famous.pgn")).unwrap();
    fs::write(dir.join("many.pgn"), many_games()).unwrap();
    ok(dir, "make-book -q many.pgn --counts many");
    let outputs = "--counts made --bin book.bin --min-game 1 --force";
    for inputs in ["many.pgn famous.pgn", "many many many.pgn"] {
        let line = format!("make-book -q {inputs} {outputs}");
        let start = Instant::now();
        ok(dir, &line);
        let whole = start.elapsed();
        let new = counts_and_book(dir);
        ok(dir, &format!("make-book -q famous.pgn {outputs}"));
        let (old, old_names) = (counts_and_book(dir), names(dir));
        for i in 0..8 {
            let mut run = Running::start(dir, &line);
            run.until_it_listens();
            thread::sleep(whole * i / 8);
            let (signal, status) = SIGNALS[i as usize % SIGNALS.len()];
            if run.0.try_wait().unwrap().is_none() {
                run.signal(signal);
            }
            let (code, error) = run.end();
            assert_eq!(names(dir), old_names, "{error}");
            assert!(code == Some(0) || code == Some(status), "{code:?}: {error}");
            let now = counts_and_book(dir);
            if now == new {
                break;
            }
            assert!(now == old && code == Some(status), "{code:?}: {error}");
        }
    }
}

/// A reader that reads nothing delays the last output while the other outputs are complete.
#[test]
fn an_output_whose_reader_is_slow() {
    let old = Old::make();
    let outside = temp();
    let fifo = outside.path().join("book.fifo");
    make_fifo(&fifo);
    let line = format!(
        "make-book -q --force --min-game 1 --bin {} --leveldb games.idx --obs games.obs.db3 many.pgn",
        fifo.display()
    );
    let mut run = Running::start(old.path(), &line);
    let mut reader = File::open(&fifo).unwrap();
    reader.read_exact(&mut [0; 16]).unwrap();
    run.ends_by(SIGNALS[1]);
    old.is_intact();
}

#[test]
fn text_whose_reader_is_slow() {
    let old = Old::make();
    ok(
        old.path(),
        "make-book -q --min-game 1 many.pgn --bin big.bin",
    );
    let lines = [
        "dump-book --bin big.bin --color white --out -",
        "games games.idx --json",
    ];
    for line in lines {
        let mut run = Running::start(old.path(), line);
        run.until_it_listens();
        // The shorter text may have been written completely already.
        if run.0.try_wait().unwrap().is_none() {
            run.signal(Signal::INT);
            let (code, _) = run.end();
            assert_eq!(code, Some(130), "{line}");
        }
    }
    fs::remove_file(old.path().join("big.bin")).unwrap();
    old.is_intact();
}

#[test]
fn outputs_of_the_book_commands() {
    let old = Old::make();
    let outside = temp();
    let fifo = outside.path().join("out.fifo");
    make_fifo(&fifo);
    let out = fifo.display();
    // No program reads the pipe, so each command waits when it opens its output.
    for (i, line) in [
        format!("merge-book book.bin --out {out}"),
        format!("convert games.obs.db3 {out} --format csv"),
        format!("dump-book --bin book.bin --color black --out {out}"),
        format!("verify book.bin --fix {out}"),
    ]
    .iter()
    .enumerate()
    {
        let mut run = Running::start(old.path(), line);
        run.until_it_listens();
        run.ends_by(SIGNALS[i % SIGNALS.len()]);
        old.is_intact();
    }
}

/// The journal keeps the evaluations that an engine made before the signal, and the next run continues after
/// them.
#[test]
fn an_engine_at_work() {
    use std::os::unix::fs::PermissionsExt;
    let dir = temp();
    let dir = dir.path();
    // The engine never answers about the third position unless the file `fast` exists, and it ignores the end of its
    // input.
    let engine = r#"#!/bin/sh
while read -r word rest; do
  case "$word" in
    uci) echo "id name Slow"; echo uciok;;
    isready) echo readyok;;
    go)
      asked=$((asked + 1))
      if [ "$asked" = 3 ] && [ ! -e fast ]; then echo $$ > slow; exec sleep 600; else echo "info depth 9 score cp 5 nodes 99"; echo "bestmove e2e4"; fi;;
  esac
done
"#;
    fs::write(dir.join("engine.sh"), engine).unwrap();
    let executable = fs::Permissions::from_mode(0o755);
    fs::set_permissions(dir.join("engine.sh"), executable).unwrap();
    let epds = ["w KQkq -", "b KQkq -", "w - -", "b - -"]
        .map(|rest| format!("rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR {rest}\n"));
    fs::write(dir.join("positions.epd"), epds.concat()).unwrap();
    let line = "evals -q --out my.evals --engine ./engine.sh --nodes 99 --jobs 1 --positions positions.epd";
    let process = || fs::read_to_string(dir.join("slow")).unwrap_or_default();
    // The settings of the engine take fewer than 100 bytes, and the journal with an evaluation takes more.
    let has_evaluations = || {
        let journal = fs::metadata(dir.join("my.evals.journal"));
        journal.is_ok_and(|journal| journal.len() > 100)
    };
    let advice = "; my.evals.journal keeps the evaluations: repeat the command to continue";
    for signal in SIGNALS {
        let mut run = Running::start(dir, line);
        until("the engine thinks", || process().ends_with('\n'));
        until("an evaluation is in the journal", has_evaluations);
        run.ends_with_advice(signal, advice);
        until("the engine has ended", || {
            crate::common::has_ended(&process())
        });
        fs::remove_file(dir.join("slow")).unwrap();
        assert_eq!(
            names(dir),
            ["engine.sh", "my.evals.journal", "positions.epd"]
        );
        fs::remove_file(dir.join("my.evals.journal")).unwrap();
    }
    let mut run = Running::start(dir, line);
    until("the engine thinks", || dir.join("slow").exists());
    // Another run does not use the journal meanwhile.
    let error = fails(dir, line, 1);
    assert!(
        error.contains("another run of polybook is writing this journal: wait until that run ends"),
        "{error}"
    );
    until("an evaluation is in the journal", has_evaluations);
    run.ends_with_advice(SIGNALS[0], advice);
    fs::write(dir.join("fast"), "").unwrap();
    let report = crate::common::ok_json(dir, &*format!("{line} --json"));
    let numbers = ["evaluated", "known"].map(|fact| report["engine"][fact].as_u64().unwrap());
    assert_eq!(numbers, [2, 2], "{report}");
}

/// Before the first evaluation, a journal contains nothing with which the next run could continue, so it is
/// removed.
#[test]
fn an_engine_before_its_first_evaluation() {
    use std::os::unix::fs::PermissionsExt;
    let dir = temp();
    let dir = dir.path();
    let engine = r#"#!/bin/sh
while read -r word rest; do
  case "$word" in
    uci) echo "id name Slow"; echo uciok;;
    isready) echo readyok;;
    go) echo $$ > slow; exec sleep 600;;
  esac
done
"#;
    fs::write(dir.join("engine.sh"), engine).unwrap();
    let executable = fs::Permissions::from_mode(0o755);
    fs::set_permissions(dir.join("engine.sh"), executable).unwrap();
    let epd = "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq -\n";
    fs::write(dir.join("positions.epd"), epd).unwrap();
    let line = "evals -q --out my.evals --engine ./engine.sh --nodes 99 --jobs 1 --positions positions.epd";
    let process = || fs::read_to_string(dir.join("slow")).unwrap_or_default();
    for signal in SIGNALS {
        let mut run = Running::start(dir, line);
        until("the engine thinks", || process().ends_with('\n'));
        assert!(dir.join("my.evals.journal").exists());
        run.ends_by(signal);
        until("the engine has ended", || {
            crate::common::has_ended(&process())
        });
        fs::remove_file(dir.join("slow")).unwrap();
        assert_eq!(names(dir), ["engine.sh", "positions.epd"]);
    }
    // A file that another program renames to the name of the journal is kept.
    let mut run = Running::start(dir, line);
    until("the engine thinks", || process().ends_with('\n'));
    fs::write(dir.join("notes"), "notes").unwrap();
    fs::rename(dir.join("notes"), dir.join("my.evals.journal")).unwrap();
    run.ends_by(SIGNALS[0]);
    let kept = fs::read_to_string(dir.join("my.evals.journal")).unwrap();
    assert_eq!(kept, "notes");
}

#[test]
fn a_kill_leaves_the_old_output_and_the_next_run_tidies_up() {
    let old = Old::make();
    let line = format!("{ALL_OUTPUTS} -");
    let mut run = Running::start(old.path(), &line);
    until("all outputs are begun", || {
        OUTPUTS
            .iter()
            .all(|output| part(old.path(), output).is_some())
    });
    run.signal(Signal::KILL);
    run.end();
    assert!(
        OUTPUTS
            .iter()
            .all(|output| part(old.path(), output).is_some())
    );
    assert!(Old::bytes(old.path()) == old.bytes);
    ok(old.path(), &format!("{ALL_OUTPUTS} famous.pgn"));
    assert_eq!(names(old.path()), old.names);
}

/// `repertoire` makes an index of its games in the directory for temporary files.
#[test]
fn a_kill_of_a_repertoire_leaves_an_index_that_the_next_run_removes() {
    let dir = temp();
    let dir = dir.path();
    let temporary = dir.join("temporary");
    fs::create_dir(&temporary).unwrap();
    fs::write(dir.join("many.pgn"), many_games().repeat(40)).unwrap();
    fs::copy(sample("famous.pgn"), dir.join("famous.pgn")).unwrap();
    let line = |games: &str| {
        format!(
            "repertoire build {games} --color white --out mine-{games} --temp-dir temporary --force"
        )
    };
    let has_index = || {
        let directories = names(&temporary).into_iter();
        let mut directories = directories.map(|name| temporary.join(name));
        directories.any(|directory| !names(&directory).is_empty())
    };
    let mut run = Running::start(dir, &line("many.pgn"));
    until("the index is begun", has_index);
    // Another run does not remove the directory of a running one.
    ok(dir, &line("famous.pgn"));
    assert!(has_index());
    run.signal(Signal::KILL);
    run.end();
    assert!(has_index());
    ok(dir, &line("famous.pgn"));
    assert_eq!(names(&temporary), [""; 0]);
}

/// The paths of all files and directories below a directory, with the bytes of the files. Directories have no
/// bytes.
#[cfg(target_os = "linux")]
type Snapshot = std::collections::BTreeMap<PathBuf, Option<Vec<u8>>>;

#[cfg(target_os = "linux")]
fn snapshot(dir: &Path) -> Snapshot {
    let mut found = Snapshot::new();
    let mut open = vec![PathBuf::new()];
    while let Some(next) = open.pop() {
        for name in names(&dir.join(&next)) {
            let path = next.join(name);
            if dir.join(&path).is_dir() {
                open.push(path.clone());
                found.insert(path, None);
            } else {
                let bytes = fs::read(dir.join(&path)).unwrap();
                found.insert(path, Some(bytes));
            }
        }
    }
    found
}

/// Restores the files and directories of a snapshot.
#[cfg(target_os = "linux")]
fn restore(dir: &Path, snapshot: &Snapshot) {
    for name in names(dir) {
        let path = dir.join(name);
        if path.is_dir() {
            fs::remove_dir_all(path).unwrap();
        } else {
            fs::remove_file(path).unwrap();
        }
    }
    for (path, bytes) in snapshot {
        match bytes {
            None => fs::create_dir(dir.join(path)).unwrap(),
            Some(bytes) => fs::write(dir.join(path), bytes).unwrap(),
        }
    }
}

/// Kills a run at every rename and removal, on a kernel that can exchange two names and on one that cannot. After
/// each kill, each target is the old or the new output, and the next run leaves no temporary files.
#[cfg(target_os = "linux")]
#[test]
fn a_kill_between_any_two_renames() {
    let Some(injector) = crate::faults::injector() else {
        return;
    };
    let (dir, outside) = (temp(), temp());
    let dir = dir.path();
    let line = format!("{ALL_OUTPUTS} --counts counts games.pgn --threads 1");
    let run = |kind: &str, nth: u32| {
        Command::new(injector)
            .arg(outside.path().join("count"))
            .args([kind, &nth.to_string()])
            .arg(dir)
            .arg(env!("CARGO_BIN_EXE_polybook"))
            .args(line.split_whitespace())
            .current_dir(dir)
            .output()
            .unwrap()
    };
    fs::copy(sample("famous.pgn"), dir.join("games.pgn")).unwrap();
    ok(dir, &format!("{line} --max-ply 6"));
    let old = snapshot(dir);
    ok(dir, &line);
    let new = snapshot(dir);
    let part = |all: &Snapshot, target: &str| -> Snapshot {
        let of_target = all.iter().filter(|(path, _)| path.starts_with(target));
        of_target
            .map(|(path, bytes)| (path.clone(), bytes.clone()))
            .collect()
    };
    for kind in ["kill", "kill in steps"] {
        let mut were_aside = 0;
        let mut were_mixed = 0;
        for nth in 1.. {
            restore(dir, &old);
            let output = run(kind, nth);
            if output.status.success() {
                assert!(snapshot(dir) == new, "{kind}");
                assert!(nth > 8, "{kind}: only {nth} calls");
                break;
            }
            assert_eq!(output.status.code(), Some(137), "{kind} {nth}: {output:?}");
            let found = snapshot(dir);
            let mut replaced = 0;
            for target in OUTPUTS.into_iter().chain(["counts"]) {
                let now = part(&found, target);
                replaced += usize::from(now == part(&new, target));
                if now.is_empty() && kind == "kill in steps" {
                    let aside = |name: &String| {
                        name.starts_with(&format!(".{target}.")) && name.ends_with(".old")
                    };
                    assert!(names(dir).iter().any(aside), "{nth}: {target} is lost");
                    were_aside += 1;
                    continue;
                }
                let is_whole = now == part(&new, target) || now == part(&old, target);
                assert!(is_whole, "{kind} {nth}: {target} is torn");
            }
            were_mixed += usize::from(replaced > 0 && replaced < 5);
            ok(dir, &line);
            assert!(snapshot(dir) == new, "{kind} {nth}");
        }
        assert!(were_mixed > 0, "{kind}: no kill came between two renames");
        assert_eq!(were_aside, if kind == "kill" { 0 } else { 3 });
    }
}

/// The last flush of a run is the flush of the output directory. If it fails, the renames may be lost, so the run
/// must not succeed.
#[cfg(target_os = "linux")]
#[test]
fn a_directory_that_cannot_be_flushed_is_an_error() {
    let Some(injector) = crate::faults::injector() else {
        return;
    };
    let (dir, outside) = (temp(), temp());
    let count = outside.path().join("count");
    let run = |nth: &str| {
        Command::new(injector)
            .arg(&count)
            .args(["sync", nth])
            .arg(dir.path())
            .arg(env!("CARGO_BIN_EXE_polybook"))
            .args(["make-book", "-q", "--min-game", "1", "-"])
            .stdin(File::open(sample("famous.pgn")).unwrap())
            .current_dir(dir.path())
            .output()
            .unwrap()
    };
    assert!(run("0").status.success());
    let counted = fs::read_to_string(&count).unwrap();
    let last = counted.split(' ').next().unwrap().to_owned();
    let output = run(&last);
    let error = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{error}");
    let expected =
        "cannot flush the directory to the disk: Input/output error; complete outputs: book.bin\n";
    assert!(error.ends_with(expected), "{error}");
    assert_eq!(names(dir.path()), ["book.bin"]);
}

/// The last call of `open` in a run opens the output directory, after the outputs are complete.
#[cfg(target_os = "linux")]
#[test]
fn what_is_finished_is_kept_where_its_directory_cannot_be_opened() {
    let Some(injector) = crate::faults::injector() else {
        return;
    };
    let (dir, outside) = (temp(), temp());
    let count = outside.path().join("count");
    let run = |nth: &str| {
        Command::new(injector)
            .arg(&count)
            .args(["open", nth])
            .arg(dir.path())
            .arg(env!("CARGO_BIN_EXE_polybook"))
            .args(["make-book", "-q", "--min-game", "1", "-"])
            .stdin(File::open(sample("famous.pgn")).unwrap())
            .current_dir(dir.path())
            .output()
            .unwrap()
    };
    assert!(run("0").status.success());
    fs::remove_file(dir.path().join("book.bin")).unwrap();
    let counted = fs::read_to_string(&count).unwrap();
    let last = counted.split(' ').next().unwrap().to_owned();
    let output = run(&last);
    let error = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{error}");
    let expected = "the finished output cannot be renamed: Too many open files; the finished output is kept as ";
    assert!(error.contains(expected), "{error}");
    assert_eq!(names(dir.path()), ["book.bin.new"]);
}

/// While an edit waits for its script, no other run can change the book.
#[test]
fn two_edits_of_one_book() {
    let dir = temp();
    let dir = dir.path();
    let pgn = sample("famous.pgn");
    ok(dir, &format!("make-book -q --min-game 1 {}", pgn.display()));
    let mut first = Running::start(dir, "edit book.bin --in-place --script -");
    until("the output is begun", || part(dir, "book.bin").is_some());
    let error = fails(dir, "edit book.bin --in-place --set a3=70", 1);
    assert!(
        error.contains("wait until that run ends, or choose another output"),
        "{error}"
    );
    ok(dir, "edit book.bin --out other.bin --set a3=70");
    fs::remove_file(dir.join("other.bin")).unwrap();
    let mut stdin = first.0.stdin.take().unwrap();
    stdin.write_all(b"; set h3=60\n").unwrap();
    drop(stdin);
    let (code, error) = first.end();
    assert_eq!(code, Some(0), "{error}");
    ok(dir, "edit book.bin --in-place --set a3=70");
    let moves = ok(dir, "show book.bin");
    assert!(moves.contains("a3") && moves.contains("h3"), "{moves}");
    assert_eq!(names(dir), ["book.bin"]);
}

#[test]
fn two_runs_for_one_target() {
    let old = Old::make();
    let mut first = Running::start(old.path(), "make-book -q --min-game 1 -");
    until("the output is begun", || {
        part(old.path(), "book.bin").is_some()
    });
    let error = fails(old.path(), "make-book -q famous.pgn", 1);
    assert!(
        error.contains("book.bin") && error.contains("another run"),
        "{error}"
    );
    let mut stdin = first.0.stdin.take().unwrap();
    stdin
        .write_all(&fs::read(sample("famous.pgn")).unwrap())
        .unwrap();
    drop(stdin);
    until("the first run ends", || {
        first.0.try_wait().unwrap().is_some()
    });
    assert!(first.0.wait().unwrap().success());
    assert_eq!(names(old.path()), old.names);
}

/// Inputs are compared once, before the run, because other files may have replaced them after the run.
#[test]
fn an_input_that_is_named_twice_is_found_before_the_run() {
    let dir = temp();
    let dir = dir.path();
    let games = fs::read(sample("famous.pgn")).unwrap();
    fs::write(dir.join("a.pgn"), &games).unwrap();
    fs::hard_link(dir.join("a.pgn"), dir.join("b.pgn")).unwrap();
    let mut run = Running::start(dir, "make-book a.pgn b.pgn - --min-game 1");
    until("the output is begun", || part(dir, "book.bin").is_some());
    fs::write(dir.join("c.pgn"), &games).unwrap();
    fs::rename(dir.join("c.pgn"), dir.join("b.pgn")).unwrap();
    let mut stdin = run.0.stdin.take().unwrap();
    stdin.write_all(&games).unwrap();
    drop(stdin);
    let (code, error) = run.end();
    assert_eq!(code, Some(0), "{error}");
    assert!(
        error.contains("warning: b.pgn: this file is given twice"),
        "{error}"
    );
}

/// `nohup` starts a program with SIGHUP ignored, and polybook keeps ignoring it.
#[cfg(target_os = "linux")]
#[test]
fn nohup_survives_its_terminal() {
    let dir = temp();
    let mut command = Command::new("nohup");
    command
        .current_dir(dir.path())
        .arg(env!("CARGO_BIN_EXE_polybook"))
        .args(["make-book", "-"]);
    let mut run = Running::spawn(&mut command);
    run.until_it_listens();
    run.signal(Signal::HUP);
    thread::sleep(Duration::from_millis(300));
    assert!(run.0.try_wait().unwrap().is_none());
    let games = fs::read(sample("famous.pgn")).unwrap();
    let mut stdin = run.0.stdin.take().unwrap();
    stdin.write_all(&games).unwrap();
    drop(stdin);
    let (code, error) = run.end();
    assert_eq!(code, Some(0), "{error}");
    assert_eq!(names(dir.path()), ["book.bin"]);
}

/// If the tests themselves run under `nohup`, signals still end the programs that they start.
#[cfg(target_os = "linux")]
#[test]
fn tests_may_run_under_nohup() {
    let tests = std::env::current_exe().unwrap();
    let output = Command::new("nohup")
        .arg(tests)
        .args([
            "--exact",
            "interrupts::every_signal_ends_a_run_that_reads_games",
        ])
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{text}");
    assert!(text.contains("1 passed"), "{text}");
}

/// If a file has reached the limit on file sizes, the error is like that of a full disk.
#[test]
fn files_past_the_limit_of_the_shell() {
    let old = Old::make();
    for output in [
        "--bin book.bin",
        "--leveldb games.idx",
        "--obs games.obs.db3",
        "--counts counts",
        "--memory 64KiB --bin book.bin",
    ] {
        let polybook = env!("CARGO_BIN_EXE_polybook");
        let line = format!(
            "ulimit -f 8 && exec {polybook} make-book -q --force --min-game 1 many.pgn {output}"
        );
        let run = Command::new("sh")
            .current_dir(old.path())
            .args(["-c", &line])
            .output()
            .unwrap();
        let error = String::from_utf8_lossy(&run.stderr);
        assert_eq!(run.status.code(), Some(1), "{output}: {error}");
        assert_eq!(error.lines().count(), 1, "{output}: {error}");
        assert!(
            error.starts_with("polybook: cannot write "),
            "{output}: {error}"
        );
        old.is_intact();
    }
}
