//! Helpers of the integration tests: running the binary, temporary directories, and skipping tests if a reference
//! program is missing.

#[cfg(feature = "serve")]
pub mod served;
pub mod transcript;

#[cfg(unix)]
use std::fs;
use std::{
    cmp::Reverse,
    collections::BTreeMap,
    env,
    ffi::{OsStr, OsString},
    fs::File,
    io::{self, Write},
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
    sync::OnceLock,
    thread,
    time::{Duration, Instant},
};

use polybook::{
    book::Entry,
    position::{BookMove, Keyed, Variant},
};
use proptest::{collection::vec, prelude::*};
#[cfg(unix)]
use rustix::process::{Pid, Signal, kill_process};
use shakmaty::{Chess, Position, san::SanPlus};
use tempfile::TempDir;

/// The time that a loaded machine may need for something that usually takes milliseconds.
const PATIENCE: Duration = Duration::from_secs(60);

/// Returns the path of a sample file of the repository.
pub fn sample(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("data")
        .join(name)
}

/// Creates a directory that is removed after the test.
pub fn temp() -> TempDir {
    tempfile::tempdir().unwrap()
}

/// Creates a directory that is removed after the test. The directory is in memory if the system has a file system
/// there, for tests that write thousands of files.
pub fn temp_in_memory() -> TempDir {
    tempfile::tempdir_in("/dev/shm").unwrap_or_else(|_| temp())
}

/// Returns a command that runs the binary in a directory, with its cache in the subdirectory `cache`.
pub fn polybook_in(dir: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_polybook"));
    command
        .current_dir(dir)
        .env("XDG_CACHE_HOME", dir.join("cache"));
    command
}

/// The arguments of a command line: a list, or a text that is split at blanks.
pub trait Arguments {
    fn list(&self) -> Vec<OsString>;
}

impl Arguments for &str {
    fn list(&self) -> Vec<OsString> {
        self.split_whitespace().map(OsString::from).collect()
    }
}

impl Arguments for &String {
    fn list(&self) -> Vec<OsString> {
        self.as_str().list()
    }
}

impl<T: AsRef<OsStr>> Arguments for &[T] {
    fn list(&self) -> Vec<OsString> {
        self.iter().map(|arg| arg.as_ref().to_owned()).collect()
    }
}

impl<T: AsRef<OsStr>, const N: usize> Arguments for &[T; N] {
    fn list(&self) -> Vec<OsString> {
        self.as_slice().list()
    }
}

impl<T: AsRef<OsStr>> Arguments for &Vec<T> {
    fn list(&self) -> Vec<OsString> {
        self.as_slice().list()
    }
}

/// Creates a list of arguments of different types, such as `args!["show", &book, "--json"]`.
macro_rules! args {
    ($($arg:expr),* $(,)?) => {
        &[$(AsRef::<std::ffi::OsStr>::as_ref(&$arg).to_owned()),*]
    };
}

/// Runs the binary in a directory.
pub fn run(dir: &Path, args: impl Arguments) -> Output {
    // On a loaded machine, Wine may fail to start a process. Or it fails to provide a console, and the process exits
    // before its first instruction.
    const ERROR_INTERNAL_ERROR: i32 = 1359;
    const STATUS_DLL_INIT_FAILED: i32 = 0xC000_0142_u32.cast_signed();
    let mut command = polybook_in(dir);
    command.args(args.list());
    for _ in 0..3 {
        match command.output() {
            Ok(output) if output.status.code() == Some(STATUS_DLL_INIT_FAILED) => {}
            Err(error) if cfg!(windows) && error.raw_os_error() == Some(ERROR_INTERNAL_ERROR) => {}
            output => return output.unwrap(),
        }
        thread::sleep(Duration::from_millis(100));
    }
    command.output().unwrap()
}

/// Runs the binary in a directory, and sends bytes to its standard input through a pipe.
pub fn fed(dir: &Path, args: impl Arguments, input: &[u8]) -> Output {
    let mut child = polybook_in(dir)
        .args(args.list())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    // The command may exit before it has read everything.
    let _ = stdin.write_all(input);
    drop(stdin);
    child.wait_with_output().unwrap()
}

/// Runs a command line that must succeed, and returns its standard output.
#[track_caller]
pub fn ok(dir: &Path, args: impl Arguments) -> String {
    let output = run(dir, &args.list());
    assert!(
        output.status.success(),
        "{:?}: {}\n{}",
        args.list(),
        output.status,
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8(output.stdout).unwrap()
}

/// Runs a command line that must succeed and print exactly one JSON document, and returns the document.
#[track_caller]
pub fn ok_json(dir: &Path, args: impl Arguments) -> serde_json::Value {
    serde_json::from_str(&ok(dir, args)).unwrap()
}

/// Runs a command line that must fail with this status, print nothing on standard output, and print one line on
/// standard error. Returns this line.
#[track_caller]
pub fn fails(dir: &Path, args: impl Arguments, status: i32) -> String {
    let output = run(dir, &args.list());
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    let line = args.list();
    assert_eq!(output.status.code(), Some(status), "{line:?}: {error}");
    assert_eq!(error.lines().count(), 1, "{line:?}: {error}");
    assert!(error.starts_with("polybook: "), "{line:?}: {error}");
    assert!(!error.contains("internal error"), "{line:?}: {error}");
    assert!(!error.contains("(os error"), "{line:?}: {error}");
    error
}

/// Runs command lines that must [fail](fails), each with its status and a text that its error must contain.
#[track_caller]
pub fn refused(dir: &Path, lines: &[(&str, i32, &str)]) {
    let wrong: Vec<String> = lines
        .iter()
        .map(|(line, status, says)| (line, says, fails(dir, *line, *status)))
        .filter(|(_, says, error)| !error.contains(*says))
        .map(|(line, says, error)| format!("{line}: expected {says:?}, found {error}"))
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.concat());
}

/// Returns the path of a reference program, or skips the test if none is installed. If `POLYBOOK_REQUIRE_INTEROP`
/// is set, a missing program is a failure.
pub fn program(names: &[&str]) -> Option<PathBuf> {
    let found = names
        .iter()
        .flat_map(|name| [PathBuf::from(name), Path::new("/usr/games").join(name)])
        .find(|path| Command::new(path).arg("--version").output().is_ok());
    if found.is_none() {
        skip(&format!("{} is not installed", names[0]));
    }
    found
}

/// Splits the games of a PGN file into several files. Each file ends at about the given seventh of all games.
/// Returns the names of the files in order.
#[cfg(unix)]
pub fn cut_games(pgn: &Path, dir: &Path, sevenths: impl IntoIterator<Item = usize>) -> Vec<String> {
    let games = fs::read(pgn).unwrap();
    let mut begin = 0;
    let cut = |number: usize| {
        let start = games.len() * number / 7;
        let event = memchr::memmem::find(&games[start..], b"\n[Event ");
        event.map_or(games.len(), |at| start + at + 1)
    };
    sevenths
        .into_iter()
        .map(|number| {
            let name = format!("sevenths{number}.pgn");
            let end = cut(number);
            fs::write(dir.join(&name), &games[begin..end]).unwrap();
            begin = end;
            name
        })
        .collect()
}

/// Returns short games with the tags that the explorer's filters use. The games are numbered, starting with `first`.
pub fn short_games(first: usize, games: usize) -> String {
    const MOVES: [&str; 7] = [
        "",
        "1. e4",
        "1. e4 e5",
        "1. e4 c5 2. Nf3",
        "1. d4",
        "1. d4 d5",
        "1. Nf3",
    ];
    const CONTROLS: [&str; 5] = ["60+0", "180+2", "600+5", "1800+30", "-"];
    const DATES: [&str; 3] = ["????.??.??", "2015.??.??", "2016.02.??"];
    const RESULTS: [&str; 4] = ["1-0", "0-1", "1/2-1/2", "*"];
    let mut state = first as u32;
    let mut random = |end: usize| {
        // The constants of the generator in Numerical Recipes.
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 8) as usize % end
    };
    let mut text = String::new();
    for _ in 0..games {
        let date = match random(9) {
            known @ 0..3 => DATES[known].to_owned(),
            _ => format!(
                "{}.{:02}.{:02}",
                2014 + random(4),
                1 + random(12),
                1 + random(28)
            ),
        };
        let mut rating = || match random(5) {
            0 => 0,
            _ => 900 + random(1800),
        };
        let (white, black) = (rating(), rating());
        let (player, control) = (random(50), CONTROLS[random(5)]);
        // The seventh move is rare, so that a period may contain a single game with it.
        let moves = MOVES[random(MOVES.len() - 1) + usize::from(random(2000) == 0)];
        let result = RESULTS[random(4)];
        text.push_str(&format!(
            "[White \"P{player}\"]\n[Black \"Q\"]\n[Date \"{date}\"]\n[WhiteElo \"{white}\"]\n\
             [BlackElo \"{black}\"]\n[TimeControl \"{control}\"]\n[Result \"{result}\"]\n\n{moves} {result}\n\n",
        ));
    }
    text
}

/// Returns the path of a Python that has these modules, or skips the test.
pub fn python(modules: &[&str]) -> Option<PathBuf> {
    let import = format!("import {}", modules.join(", "));
    let works = Command::new("python3")
        .args(["-c", &import])
        .output()
        .is_ok_and(|output| output.status.success());
    if !works {
        skip(&format!("python3 cannot {import}"));
        return None;
    }
    Some("python3".into())
}

/// Prints why a test is skipped. Fails if tests must not be skipped.
pub fn skip(why: &str) {
    assert!(
        env::var_os("POLYBOOK_REQUIRE_INTEROP").is_none(),
        "{why}, and POLYBOOK_REQUIRE_INTEROP is set"
    );
    leave_out(why);
}

/// Prints which test is skipped and why, and adds this line to the file that `POLYBOOK_SKIPPED` names.
pub fn leave_out(why: &str) {
    let test = thread::current().name().unwrap_or_default().to_owned();
    let line = format!("{test}: {why}\n");
    // The output of `eprintln` is not shown if the test passes.
    let _ = io::stderr().write_all(format!("skipped {line}").as_bytes());
    let Some(list) = env::var_os("POLYBOOK_SKIPPED") else {
        return;
    };
    let mut list = File::options()
        .create(true)
        .append(true)
        .open(list)
        .unwrap();
    list.write_all(line.as_bytes()).unwrap();
}

/// Returns `true` if tests that take more than a few seconds run: the environment variable `POLYBOOK_SLOW` is set.
/// Otherwise prints that the test is skipped.
pub fn runs_slow_tests() -> bool {
    let is_set = env::var_os("POLYBOOK_SLOW").is_some();
    if !is_set {
        skip("a slow test, which POLYBOOK_SLOW=1 runs");
    }
    is_set
}

/// Returns `true` if tests may take hours: the environment variable `POLYBOOK_HOURS` is set.
pub fn takes_hours() -> bool {
    env::var_os("POLYBOOK_HOURS").is_some()
}

/// Sends a signal to a process. The program `kill` is not part of every system.
#[cfg(unix)]
#[track_caller]
pub fn send_signal(process: u32, signal: Signal) {
    let process = process.try_into().ok().and_then(Pid::from_raw);
    kill_process(process.unwrap(), signal).unwrap();
}

/// Returns `true` if the environment variable `POLYBOOK_WITHOUT`, a list of words, contains `what`. The tests
/// that need `what` are then skipped.
pub fn is_without(what: &str) -> bool {
    let without = env::var("POLYBOOK_WITHOUT").unwrap_or_default();
    let is_named = without.split_whitespace().any(|word| word == what);
    if is_named {
        leave_out(&format!("POLYBOOK_WITHOUT has {what}"));
    }
    is_named
}

/// A mounted file system, which is unmounted when the value is dropped.
pub struct Mounted(PathBuf);

impl Mounted {
    /// Mounts a file system at `path` with the arguments `args` of `mount`. Returns `None` if this fails, because
    /// only root may mount, and many containers do not allow even that.
    pub fn at(path: &Path, args: impl Arguments) -> Option<Mounted> {
        let mounted = Command::new("mount")
            .args(args.list())
            .arg(path)
            .status()
            .is_ok_and(|status| status.success());
        if !mounted && !is_without("mount") {
            skip("cannot mount");
        }
        mounted.then(|| Mounted(path.to_owned()))
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(&self.0).status();
    }
}

/// Returns the directory of the big corpus, or skips the test.
pub fn corpus() -> Option<PathBuf> {
    let corpus = env::var_os("POLYBOOK_CORPUS").map(PathBuf::from);
    if corpus.is_none() && !is_without("corpus") {
        skip("POLYBOOK_CORPUS is not set");
    }
    corpus
}

/// Runs a script of `tests/python`, which must succeed.
#[track_caller]
pub fn run_python(python: &Path, script: &str, args: &[&Path]) {
    let output = Command::new(python)
        .arg(
            Path::new(env!("CARGO_MANIFEST_DIR"))
                .join("tests/python")
                .join(script),
        )
        .args(args)
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{script}: {}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
}

/// Returns the records of a book file without its header.
pub fn records(book: &Path) -> Vec<[u8; 16]> {
    std::fs::read(book)
        .unwrap()
        .chunks_exact(16)
        .map(|record| record.try_into().unwrap())
        .filter(|record: &[u8; 16]| record[..8] != [0; 8])
        .collect()
}

/// Generates lines from the starting position, as indices of legal moves. Many indices are small, so that lines
/// transpose.
pub fn lines() -> impl Strategy<Value = Vec<Vec<u8>>> {
    vec(vec(prop_oneof![0..4u8, any::<u8>()], 0..20), 1..12)
}

/// Returns a book without a header that contains the moves of some lines. All moves are reachable and have a weight.
pub fn book_of(lines: &[Vec<u8>], variant: Variant) -> Vec<u8> {
    let mut records = BTreeMap::new();
    for line in lines {
        let mut pos = Keyed::new(variant.start());
        for choice in line {
            let moves = pos.position().legal_moves();
            let Some(mv) = moves.get(usize::from(*choice) % moves.len().max(1)) else {
                break;
            };
            let weight: &mut u16 = records.entry((pos.key(), BookMove::from(*mv))).or_default();
            *weight += u16::from(*choice) + 1;
            pos.play(*mv);
        }
    }
    let mut entries: Vec<Entry> = records
        .into_iter()
        .map(|((key, mv), weight)| Entry {
            key,
            mv,
            weight,
            learn: 0,
        })
        .collect();
    entries.sort_by_key(|entry| (entry.key, Reverse(entry.weight), entry.mv));
    entries.into_iter().flat_map(Entry::to_bytes).collect()
}

/// Returns random games, enough that every phase of a run takes some time.
pub fn many_games() -> &'static str {
    static GAMES: OnceLock<String> = OnceLock::new();
    GAMES.get_or_init(|| {
        let mut seed = 1_u64;
        let mut text = String::new();
        for game in 0..1500 {
            text.push_str(&format!("[White \"{game}\"]\n[Result \"1-0\"]\n\n"));
            let mut pos = Chess::default();
            for _ in 0..60 {
                let moves = pos.legal_moves();
                if moves.is_empty() {
                    break;
                }
                seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                let mv = moves[(seed >> 33) as usize % moves.len()];
                text.push_str(&SanPlus::from_move_and_play_unchecked(&mut pos, mv).to_string());
                text.push(' ');
            }
            text.push_str("1-0\n\n");
        }
        text
    })
}

/// Returns `true` if a process has ended. A process that is still a zombie counts as ended.
#[cfg(target_os = "linux")]
pub fn has_ended(process: &str) -> bool {
    let Ok(stat) = fs::read_to_string(format!("/proc/{}/stat", process.trim())) else {
        return true;
    };
    // The state follows the name of the program, which is in parentheses.
    stat.rsplit_once(") ")
        .is_none_or(|(_, state)| state.starts_with('Z'))
}

/// Returns `true` if a process has ended. A process that is still a zombie counts as ended.
#[cfg(all(unix, not(target_os = "linux")))]
pub fn has_ended(process: &str) -> bool {
    let state = Command::new("ps")
        .args(["-o", "stat=", "-p", process.trim()])
        .output()
        .unwrap()
        .stdout;
    let state = state.trim_ascii();
    state.is_empty() || state.starts_with(b"Z")
}

/// Waits until a condition is true, for as long as a loaded machine may need.
#[track_caller]
pub fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let (mut waited, mut last) = (Duration::ZERO, Instant::now());
    while !is_so() {
        assert!(waited < PATIENCE, "not in time: {what}");
        thread::sleep(Duration::from_millis(2));
        // A virtual machine may be suspended for minutes, so count at most a second for each check.
        waited += last.elapsed().min(Duration::from_secs(1));
        last = Instant::now();
    }
}

/// Creates a named pipe.
#[cfg(unix)]
pub fn make_fifo(path: &Path) {
    let made = Command::new("mkfifo").arg(path).status().unwrap();
    assert!(made.success());
}
