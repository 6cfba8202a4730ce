//! Engines play from a book with a header. An unusual first move proves that they use the book.

use std::{
    fs,
    io::{BufRead, BufReader, Write},
    path::Path,
    process::{Child, Command, Stdio},
    sync::mpsc,
    thread,
    time::Duration,
};

use crate::common::{ok, program, temp};

/// The time that an engine on a loaded machine may take to find a move in its book.
const PATIENCE: Duration = Duration::from_secs(60);

/// No engine begins with this move by itself.
const ODD: &str = "a2a4";

/// Makes a book with a header that contains only the unusual move.
fn odd_book(dir: &Path) {
    fs::write(dir.join("games.pgn"), "1. a4 h5 2. b4 1-0").unwrap();
    ok(dir, "make-book -q games.pgn --min-game 1 --bin odd.bin");
    let book = fs::read(dir.join("odd.bin")).unwrap();
    assert!(book[8..].starts_with(b"@PG@"), "the book has a header");
}

/// An engine that is killed when the test ends.
struct Engine(Child);

impl Drop for Engine {
    fn drop(&mut self) {
        // The engine may have exited already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Sends commands to an engine, and returns the rest of the first line that begins with `begin`.
fn answer(command: &mut Command, dir: &Path, commands: &str, begin: &'static str) -> String {
    let child = command
        .current_dir(dir)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut engine = Engine(child);
    let mut input = engine.0.stdin.take().unwrap();
    input.write_all(commands.as_bytes()).unwrap();
    let output = BufReader::new(engine.0.stdout.take().unwrap());
    let (found, answer) = mpsc::channel();
    thread::spawn(move || {
        let lines = output.lines().map_while(Result::ok);
        for line in lines {
            if let Some(rest) = line.strip_prefix(begin) {
                // The receiver may have timed out.
                let _ = found.send(rest.trim().to_owned());
                return;
            }
        }
    });
    answer.recv_timeout(PATIENCE).expect("the engine answers")
}

/// Returns the first move that a UCI engine plays with a book.
fn uci_move(command: &mut Command) -> String {
    let dir = temp();
    odd_book(dir.path());
    let book = dir.path().join("odd.bin");
    let commands = format!(
        "uci\nsetoption name OwnBook value true\nsetoption name BookFile value {}\nisready\n\
         ucinewgame\nposition startpos\ngo movetime 100\n",
        book.display()
    );
    answer(command, dir.path(), &commands, "bestmove")
}

#[test]
fn polyglot_plays_it_for_stockfish() {
    let (Some(polyglot), Some(stockfish)) = (program(&["polyglot"]), program(&["stockfish"]))
    else {
        return;
    };
    let dir = temp();
    odd_book(dir.path());
    let settings = format!(
        "[PolyGlot]\nEngineCommand = {}\nBook = true\nBookFile = odd.bin\n",
        stockfish.display()
    );
    fs::write(dir.path().join("polyglot.ini"), settings).unwrap();
    let commands = "xboard\nprotover 2\nnew\nlevel 40 5 0\ngo\n";
    let mut command = Command::new(polyglot);
    command.arg("polyglot.ini");
    assert_eq!(answer(&mut command, dir.path(), commands, "move "), ODD);
}

#[test]
fn toga_plays_it() {
    let Some(toga) = program(&["toga2"]) else {
        return;
    };
    assert_eq!(uci_move(&mut Command::new(toga)), ODD);
}

/// Glaurung always opens `book.bin` in its working directory, whatever its option says. It uses the book unless
/// the time for each move is fixed.
#[test]
fn glaurung_plays_it() {
    let Some(glaurung) = program(&["glaurung"]) else {
        return;
    };
    let dir = temp();
    odd_book(dir.path());
    fs::rename(dir.path().join("odd.bin"), dir.path().join("book.bin")).unwrap();
    let commands = "uci\nucinewgame\nposition startpos\ngo depth 1\n";
    let mut command = Command::new(glaurung);
    assert_eq!(answer(&mut command, dir.path(), commands, "bestmove"), ODD);
}

#[test]
fn gnuchess_plays_it() {
    let Some(gnuchess) = program(&["gnuchess"]) else {
        return;
    };
    assert_eq!(uci_move(Command::new(gnuchess).arg("--uci")), ODD);
}
