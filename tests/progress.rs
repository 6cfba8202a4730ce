//! The progress bar: its phases on a terminal, and no output elsewhere.

use std::{
    fs::{self, File},
    io::Read,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::{Arc, Mutex},
    thread::{self, JoinHandle},
};

use crate::common::{make_fifo, many_games, ok, python, run, temp, until};

/// The binary on a pseudo-terminal, which Python creates.
struct OnTerminal {
    child: Child,
    shown: Arc<Mutex<Vec<u8>>>,
    watcher: JoinHandle<()>,
}

impl OnTerminal {
    fn start(python: &Path, dir: &Path, args: &[&str]) -> OnTerminal {
        let spawn = "import pty, sys; sys.exit(pty.spawn(sys.argv[1:]) >> 8)";
        let mut child = Command::new(python)
            .current_dir(dir)
            .args(["-c", spawn, env!("CARGO_BIN_EXE_polybook")])
            .args(args)
            .env("TERM", "xterm")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let shown = Arc::new(Mutex::new(Vec::new()));
        let screen = Arc::clone(&shown);
        let mut terminal = child.stdout.take().unwrap();
        let watcher = thread::spawn(move || {
            let mut buffer = [0; 4096];
            while let Ok(read @ 1..) = terminal.read(&mut buffer) {
                screen.lock().unwrap().extend_from_slice(&buffer[..read]);
            }
        });
        OnTerminal {
            child,
            shown,
            watcher,
        }
    }

    fn has(&self, text: &str) -> bool {
        String::from_utf8_lossy(&self.shown.lock().unwrap()).contains(text)
    }

    /// Waits for a successful exit, and returns everything that was displayed.
    #[track_caller]
    fn end(mut self) -> String {
        assert!(self.child.wait().unwrap().success());
        self.watcher.join().unwrap();
        String::from_utf8_lossy(&self.shown.lock().unwrap()).into_owned()
    }
}

/// Creates a directory with games, and a pipe for an output that can be blocked.
fn prepared() -> (tempfile::TempDir, PathBuf) {
    let dir = temp();
    fs::write(dir.path().join("many.pgn"), many_games()).unwrap();
    let fifo = dir.path().join("out.fifo");
    make_fifo(&fifo);
    (dir, fifo)
}

#[test]
fn a_progress_bar_shows_the_phases_of_make_book() {
    let Some(python) = python(&["pty"]) else {
        return;
    };
    let (dir, fifo) = prepared();
    let args = [
        "make-book",
        "--min-game",
        "1",
        "many.pgn",
        "--bin",
        "out.fifo",
    ];
    let run = OnTerminal::start(&python, dir.path(), &args);
    let mut book = File::open(&fifo).unwrap();
    book.read_exact(&mut [0; 16]).unwrap();
    until("the last phase is shown", || run.has("writing the book: "));
    book.read_to_end(&mut Vec::new()).unwrap();
    let shown = run.end();
    for part in ["1500 games", "games/s", "%"] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
}

#[test]
fn progress_bars_of_other_commands_show_their_phases() {
    let Some(python) = python(&["pty"]) else {
        return;
    };
    let (dir, fifo) = prepared();
    let made = run(
        dir.path(),
        "make-book -q --min-game 1 many.pgn --bin book.bin",
    );
    assert!(made.status.success());
    for (args, phase) in [
        (
            &["merge-book", "book.bin", "--out", "out.fifo"][..],
            "merging: ",
        ),
        (
            &[
                "dump-book",
                "--bin",
                "book.bin",
                "--color",
                "white",
                "--out",
                "out.fifo",
            ],
            "writing lines: ",
        ),
        (
            &["convert", "book.bin", "out.fifo", "--format", "csv"],
            "converting: ",
        ),
    ] {
        let run = OnTerminal::start(&python, dir.path(), args);
        let mut out = File::open(&fifo).unwrap();
        out.read_exact(&mut [0; 4]).unwrap();
        until("the phase is shown", || run.has(phase));
        out.read_to_end(&mut Vec::new()).unwrap();
        run.end();
    }
}

#[test]
fn no_bar_where_there_is_no_terminal() {
    let (dir, _) = prepared();
    for line in [
        "make-book -q many.pgn",
        "merge-book -q book.bin",
        "info-book --bin book.bin",
        "convert -q book.bin book.csv",
    ] {
        let output = run(dir.path(), line);
        assert!(output.status.success(), "{line}");
        assert!(output.stderr.is_empty(), "{line}");
    }
    let output = run(dir.path(), "make-book many.pgn");
    let told = String::from_utf8(output.stderr).unwrap();
    assert!(
        !told.contains('\u{1b}') && !told.contains("reading"),
        "{told}"
    );
}

#[test]
fn the_manual_is_text_on_a_terminal_and_roff_elsewhere() {
    let Some(python) = python(&["pty"]) else {
        return;
    };
    let dir = temp();
    let shown = OnTerminal::start(&python, dir.path(), &["man"]).end();
    assert!(shown.contains("Usage: polybook"), "{shown}");
    assert!(!shown.contains(".TH "), "{shown}");
    assert!(ok(dir.path(), "man").contains(".TH polybook"));
}

/// Escape sequences that set the title of a terminal, with 7-bit and 8-bit control characters.
const HOSTILE: &str =
    "[White \"Tal\u{1b}]0;x\u{7}\"]\n[Event \"A\u{9b}2J\u{7f}\"]\n\n1. e4 {\u{1b}c} e5 *\n";

#[test]
fn control_characters_of_games_are_shown_and_files_keep_them() {
    let Some(python) = python(&["pty"]) else {
        return;
    };
    let dir = temp();
    fs::write(dir.path().join("hostile.pgn"), HOSTILE).unwrap();
    ok(dir.path(), "make-book -q hostile.pgn --explorer idx");
    let in_pipe = ok(dir.path(), "games idx");
    assert!(
        in_pipe.contains(r"Tal\u001b]0;x\u0007 - *, A\u009b2J\u007f"),
        "{in_pipe}"
    );
    assert_eq!(ok(dir.path(), "games idx --pgn --id 0"), HOSTILE);
    for args in [
        &["games", "idx"][..],
        &["games", "idx", "--sort", "recent"],
        &["games", "idx", "--pgn"],
        &["games", "idx", "--json"],
        &["games", "idx", "--pgn", "--id", "0"],
    ] {
        let shown = OnTerminal::start(&python, dir.path(), args).end();
        for raw in ['\u{1b}', '\u{7}', '\u{7f}', '\u{9b}'] {
            assert!(!shown.contains(raw), "{args:?}: {shown:?}");
        }
        assert!(
            shown.contains(r"Tal\u001b]0;x\u0007"),
            "{args:?}: {shown:?}"
        );
        assert!(shown.contains(r"A\u009b2J\u007f"), "{args:?}: {shown:?}");
        if args.contains(&"--json") {
            let document: serde_json::Value = serde_json::from_str(&shown).unwrap();
            assert_eq!(document["games"][0]["white"], "Tal\u{1b}]0;x\u{7}");
        }
    }
    // Names of files and players in errors and documents.
    for (args, text) in [
        (
            &["verify", "no\u{1b}c\u{9b}m.bin"][..],
            r"no\u001bc\u009bm.bin",
        ),
        (&["show", "idx", "--player", "Tall"], r"Tal\u001b]0;x\u0007"),
        (
            &["tree", "idx", "-q", "--json", "--out", "t\u{9b}.txt"],
            r#""t\u009b.txt""#,
        ),
    ] {
        let shown = OnTerminal::start(&python, dir.path(), args);
        until("the name is shown", || shown.has(text));
        assert!(!shown.has("\u{1b}") && !shown.has("\u{9b}"), "{args:?}");
    }
}

#[cfg(feature = "serve")]
#[test]
fn control_characters_of_requests_are_shown() {
    let Some(python) = python(&["pty"]) else {
        return;
    };
    let dir = temp();
    fs::write(dir.path().join("hostile.pgn"), HOSTILE).unwrap();
    ok(dir.path(), "make-book -q hostile.pgn --explorer idx");
    let served = OnTerminal::start(
        &python,
        dir.path(),
        &["serve", "-v", "idx", "--listen", "127.0.0.1:0"],
    );
    until("the server has begun", || served.has("/\r\n"));
    let shown = String::from_utf8_lossy(&served.shown.lock().unwrap()).into_owned();
    let page = shown.lines().next().unwrap().trim();
    let address = page.strip_prefix("http://").unwrap();
    let address = address.trim_end_matches('/');
    let mut stream = std::net::TcpStream::connect(address).unwrap();
    let asked = "GET /lichess?\u{9b}2J HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
    std::io::Write::write_all(&mut stream, asked.as_bytes()).unwrap();
    stream.read_to_end(&mut Vec::new()).unwrap();
    until("the request is shown", || served.has(r"/lichess?\u009b2J"));
    assert!(!served.has("\u{9b}"));
    let OnTerminal {
        mut child, watcher, ..
    } = served;
    child.kill().unwrap();
    child.wait().unwrap();
    watcher.join().unwrap();
}
