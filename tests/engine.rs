//! Tests of the command `engine`: the protocol, with scripted engines as the second engine and python-chess as the
//! program.

use std::{
    fs,
    io::{BufRead, BufReader, Write},
    path::Path,
    process::{Child, ChildStdin, Stdio},
};

use crate::common::{fails, fed, ok, polybook_in, python, run_python, sample, temp};
#[cfg(unix)]
use crate::common::{has_ended, make_fifo, until};

/// A running `engine` process that receives commands.
struct Session {
    child: Child,
    input: ChildStdin,
    lines: std::io::Lines<BufReader<std::process::ChildStdout>>,
}

impl Session {
    fn start(dir: &Path, line: &str) -> Session {
        let mut child = polybook_in(dir)
            .args(line.split_whitespace())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let input = child.stdin.take().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        Session {
            child,
            input,
            lines,
        }
    }

    fn say(&mut self, text: &str) {
        writeln!(self.input, "{text}").unwrap();
    }

    /// Sends commands, and returns the lines up to the first one that begins with `last`.
    fn ask(&mut self, text: &str, last: &str) -> Vec<String> {
        self.say(text);
        let mut said = Vec::new();
        loop {
            let line = self.lines.next().expect("it goes on").unwrap();
            let is_last = line.starts_with(last);
            said.push(line);
            if is_last {
                return said;
            }
        }
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Makes a book and an index of the sample games.
fn with_sources(dir: &Path) {
    let games = sample("famous.pgn");
    let games = games.display();
    ok(
        dir,
        &format!("make-book -q {games} --min-game 1 --bin a.bin --obs a.obs.db3 --explorer a.idx"),
    );
}

#[cfg(unix)]
fn with_engine(dir: &Path, lines: &str) {
    use std::os::unix::fs::PermissionsExt;
    let path = dir.join("engine.sh");
    fs::write(&path, format!("#!/bin/sh\n{lines}\n")).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
}

/// An engine that repeats its input as `info string` and always plays a7a6.
#[cfg(unix)]
const PLAIN: &str = r#"
while read -r line; do
  case "$line" in
    uci) echo "id name Behind 1"; echo "option name Hash type spin default 16"; echo "option name Seed type spin default 1"
         echo "option name Book File type string default <empty>"
         echo "option name MultiPV type spin default 1"; echo uciok;;
    isready) echo readyok;;
    quit) exit;;
    go*) echo "info string told $line"; echo "info depth 7 multipv 1 score cp 11 pv a7a6"; echo "bestmove a7a6";;
    *) echo "info string told $line";;
  esac
done"#;

#[test]
fn limits_on_results_need_results() {
    let dir = temp();
    with_sources(dir.path());
    for option in ["--min-score 45", "--min-games 20"] {
        let error = crate::common::fails(dir.path(), &format!("engine a.bin {option}"), 2);
        assert!(error.contains("contain only weights"), "{error}");
        for sources in ["a.obs.db3", "a.bin a.idx"] {
            ok(dir.path(), &format!("engine {sources} {option}"));
        }
    }
}

#[cfg(unix)]
#[test]
fn an_engine_among_the_sources_is_explained() {
    let dir = temp();
    with_sources(dir.path());
    let error = crate::common::fails(dir.path(), "engine a.bin fish", 1);
    let advice = "if it is an engine, put -- before it: polybook engine book.bin -- fish";
    assert!(error.contains(advice), "{error}");
    let error = crate::common::fails(dir.path(), "engine a.bin gone.pgn", 1);
    assert!(!error.contains("engine,"), "{error}");
    with_engine(dir.path(), PLAIN);
    ok(dir.path(), "engine a.bin -- ./engine.sh");
}

#[test]
fn known_positions_are_answered() {
    let dir = temp();
    with_sources(dir.path());
    for source in ["a.bin", "a.obs.db3", "a.idx"] {
        let mut session = Session::start(dir.path(), &format!("engine {source} --play best"));
        let said = session.ask("uci", "uciok");
        assert!(said[0].starts_with("id name polybook"), "{said:?}");
        assert!(
            said.iter()
                .any(|line| line.starts_with("option name Play type combo"))
        );
        assert_eq!(session.ask("isready", "readyok"), ["readyok"]);
        session.say("setoption name MultiPV value 3");
        let said = session.ask(
            "position startpos moves e2e4\ngo wtime 1000 btime 1000 depth 3",
            "bestmove",
        );
        let listed: Vec<&String> = said
            .iter()
            .filter(|line| line.contains(" multipv "))
            .collect();
        // The book has two moves with a weight.
        let expected = if source == "a.bin" { 2 } else { 3 };
        assert_eq!(listed.len(), expected, "{said:?}");
        assert!(listed[0].starts_with("info depth 1 seldepth "), "{said:?}");
        let has_results = source != "a.bin";
        assert_eq!(listed[0].contains(" wdl "), has_results, "{said:?}");
        assert_eq!(
            said.iter().any(|line| line.contains("% of the weight")),
            !has_results
        );
        let first = listed[0]
            .split(" pv ")
            .nth(1)
            .unwrap()
            .split(' ')
            .next()
            .unwrap();
        assert!(
            said.last()
                .unwrap()
                .starts_with(&format!("bestmove {first}")),
            "{said:?}"
        );
        // Only these moves may be played, even if castling or the end of the book is near.
        let said = session.ask("go searchmoves c7c5", "bestmove");
        assert!(
            said.last().unwrap().starts_with("bestmove c7c5"),
            "{said:?}"
        );
        let said = session.ask("go searchmoves a7a6", "bestmove");
        assert!(
            said[0].ends_with(" not listed after searchmoves"),
            "{said:?}"
        );
        assert_eq!(said[1..], ["bestmove (none)"]);
        let said = session.ask("position startpos moves a2a3\ngo", "bestmove");
        assert_eq!(said, ["info string out of book", "bestmove (none)"]);
        session.say("position startpos moves e2e4");
        // The answer must wait for `stop` or `ponderhit`.
        session.say("go infinite");
        session.say("ponderhit");
        let said = session.ask("isready", "readyok");
        assert!(
            !said.iter().any(|line| line.starts_with("bestmove")),
            "{said:?}"
        );
        assert_eq!(session.ask("stop", "bestmove").len(), 1);
        session.say("go ponder");
        let said = session.ask("isready", "readyok");
        assert!(
            !said.iter().any(|line| line.starts_with("bestmove")),
            "{said:?}"
        );
        assert_eq!(session.ask("ponderhit", "bestmove").len(), 1);
        session.say("quit");
        assert!(session.child.wait().unwrap().success());
    }
}

/// Makes a file of each kind from `games`, with `name` as its name without the ending.
fn sources_of(dir: &Path, name: &str, games: &str) {
    fs::write(dir.join(format!("{name}.pgn")), games).unwrap();
    let make = format!("make-book -q {name}.pgn --min-game 1 --win-factor 1 --draw-factor 1");
    ok(
        dir,
        &format!(
            "{make} --loss-factor 1 --bin {name}.bin --obs {name}.obs.db3 --explorer {name}.idx --counts {name}.counts"
        ),
    );
}

/// Returns the last line of the answer to `go` after `moves`, and the line before it if it is an `info string`.
fn answer(session: &mut Session, moves: &str) -> (String, Option<String>) {
    let mut said = session.ask(&format!("position startpos moves {moves}\ngo"), "bestmove");
    let best = said.pop().unwrap().replace("bestmove ", "");
    let reason = said
        .pop()
        .and_then(|line| Some(line.strip_prefix("info string ")?.to_owned()));
    (best, reason)
}

#[test]
fn sources_have_an_order() {
    let dir = temp();
    let dir = dir.path();
    sources_of(dir, "mine", "1. d4 d5 2. c4 1-0\n");
    sources_of(
        dir,
        "masters",
        "1. e4 e5 2. Nf3 Nc6 1-0\n\n1. d4 Nf6 2. c4 e6 1-0\n\n1. e4 e5 2. Nf3 Nf6 1-0\n",
    );
    for [mine, masters] in [
        ["mine.bin", "masters.idx"],
        ["mine.idx", "masters.bin"],
        ["mine.obs.db3", "masters.pgn"],
        ["mine.counts", "masters.obs.db3"],
    ] {
        let mut session = Session::start(dir, &format!("engine {mine} {masters} --play best"));
        assert_eq!(answer(&mut session, "").0, "d2d4 ponder d7d5", "{mine}");
        assert_eq!(answer(&mut session, "e2e4").0, "e7e5 ponder g1f3", "{mine}");
        let mut session = Session::start(dir, &format!("engine {masters} {mine} --play best"));
        assert_eq!(answer(&mut session, "").0, "e2e4 ponder e7e5", "{mine}");
        assert_eq!(answer(&mut session, "d2d4 d7d5").0, "c2c4", "{mine}");
    }
}

#[test]
fn a_source_may_be_for_one_color() {
    let dir = temp();
    let dir = dir.path();
    sources_of(dir, "white", "1. e4 e5 2. Nf3 Nc6 1-0\n");
    sources_of(
        dir,
        "black",
        "1. d4 f5 2. g3 Nf6 0-1\n\n1. e4 c5 2. Nf3 d6 0-1\n",
    );
    for ending in ["bin", "obs.db3", "idx", "counts", "pgn"] {
        let line = format!("engine white.{ending}:white black.{ending}:BLACK --play best");
        let mut session = Session::start(dir, &line);
        for (moves, expected) in [
            ("", "e2e4 ponder e7e5"),
            ("e2e4 e7e5", "g1f3 ponder b8c6"),
            ("e2e4", "c7c5 ponder g1f3"),
            ("d2d4", "f7f5 ponder g2g3"),
            // The source for Black contains White's next move, and the source for White contains Black's.
            ("d2d4 f7f5", "(none)"),
            ("e2e4 e7e5 g1f3", "(none)"),
        ] {
            let (best, reason) = answer(&mut session, moves);
            assert_eq!(best, expected, "{ending} {moves}");
            let is_out = expected == "(none)";
            assert_eq!(
                reason.as_deref() == Some("out of book"),
                is_out,
                "{ending} {moves}"
            );
        }
    }
    // The source keeps its results, so limits apply to it.
    let mut session = Session::start(dir, "engine white.idx:white --min-score 60");
    let said = session.ask("position startpos\ngo", "bestmove");
    assert!(said[0].contains(" wdl "), "{said:?}");
    ok(dir, "engine white.obs.db3:white --min-score 60");
    let error = fails(dir, "engine white.bin:white --min-score 60", 2);
    assert!(error.contains("contain only weights"), "{error}");
}

#[test]
fn the_book_can_be_left_early() {
    let dir = temp();
    let dir = dir.path();
    let line = "1. e4 e5 2. Nf3 Nc6 3. Bb5 1-0\n";
    let shorter = "1. d4 d5 1-0\n\n1. d4 d5 1-0\n\n1. e4 c5 1-0\n";
    sources_of(dir, "a", &format!("{line}\n{shorter}"));
    ok(
        dir,
        "make-book -q a.pgn --min-game 1 --only-white --bin white.bin",
    );
    let end = |moves: u32| {
        let moves = if moves == 1 {
            "1 move".to_owned()
        } else {
            format!("{moves} moves")
        };
        let number = moves.split(' ').next().unwrap();
        format!(
            "the sources contain {moves} of this position, but none is played: {number} too close to the end of the \
             sources (Leave Before End 3)"
        )
    };
    for source in ["a.bin", "a.obs.db3", "a.idx", "a.pgn", "a.counts"] {
        let mut session = Session::start(
            dir,
            &format!("engine {source} --leave-before-end 3 --play best"),
        );
        let said = session.ask("uci", "uciok");
        let declared = "option name Leave Before End type spin default 3 min 0 max 100";
        assert!(said.iter().any(|line| line == declared), "{said:?}");
        for (moves, expected, reason) in [
            // More games begin with 1. d4, and a reply to 1. e4 ends the game, but one line is long enough.
            ("", "e2e4 ponder ", None),
            ("e2e4", "e7e5 ponder g1f3", None),
            ("e2e4 e7e5", "g1f3 ponder b8c6", None),
            ("e2e4 e7e5 g1f3", "(none)", Some(end(1))),
            ("e2e4 e7e5 g1f3 b8c6", "(none)", Some(end(1))),
            ("d2d4", "(none)", Some(end(1))),
            ("a2a3", "(none)", Some("out of book".to_owned())),
        ] {
            let (best, said) = answer(&mut session, moves);
            assert!(best.starts_with(expected), "{source} {moves}: {best}");
            if reason.is_some() {
                assert_eq!(said, reason, "{source} {moves}");
            }
        }
        session.say("setoption name Leave Before End value 6");
        assert_eq!(answer(&mut session, "").0, "(none)", "{source}");
        session.say("setoption name Leave Before End value 5");
        assert!(answer(&mut session, "").0.starts_with("e2e4 "), "{source}");
        session.say("setoption name Leave Before End value 0");
        assert_eq!(
            answer(&mut session, "e2e4 e7e5 g1f3 b8c6").0,
            "f1b5",
            "{source}"
        );

        // Both colors play the moves of the source with a number up to the depth.
        session.say("setoption name Max Book Depth value 2");
        for (moves, expected) in [
            ("e2e4 e7e5", "g1f3"),
            ("e2e4 e7e5 g1f3", "b8c6"),
            ("e2e4 e7e5 g1f3 b8c6", "(none)"),
        ] {
            let (best, reason) = answer(&mut session, moves);
            assert_eq!(
                best.split(' ').next().unwrap(),
                expected,
                "{source} {moves}"
            );
            let text = "the sources are used up to move 2 (Max Book Depth)";
            assert_eq!(
                reason.as_deref() == Some(text),
                expected == "(none)",
                "{source} {moves}"
            );
        }
        let said = session.ask("setoption name Max Book Depth value 10001", "info");
        assert!(said[0].contains("out of range"), "{said:?}");
    }
    // A book for one side continues after every move of the opponent to which it has an answer.
    for (plies, expected) in [(1, "e2e4"), (3, "e2e4"), (5, "e2e4"), (6, "(none)")] {
        let line =
            format!("engine white.bin --play best --leave-before-end {plies} --max-book-depth 1");
        let mut session = Session::start(dir, &line);
        let best = answer(&mut session, "").0;
        // In the book, 1. d4 has the same weight as 1. e4.
        let best = if plies == 1 {
            best.replace("d2d4", "e2e4")
        } else {
            best
        };
        assert_eq!(best, expected, "{plies}");
    }
    for refused in [
        "--leave-before-end 101",
        "--max-book-depth 10001",
        "--max-book-depth -1",
    ] {
        fails(dir, &format!("engine a.bin {refused}"), 2);
    }
}

#[test]
fn all_sources_together_make_up_the_rest_of_a_line() {
    let dir = temp();
    let dir = dir.path();
    for (name, games) in [
        ("short", "1. e4 e5 1-0\n"),
        ("reply", "1. e4 c5 2. Nf3 d6 3. d4 cxd4 4. Nxd4 Nf6 1-0\n"),
        ("knight", "1. e4 e5 2. Nf3 1-0\n"),
        ("bishop", "1. e4 e5 2. Bc4 Nc6 3. Qh5 g6 4. Qf3 1-0\n"),
        ("cycle", "1. Nf3 Nf6 2. Ng1 Ng8 1-0\n"),
    ] {
        sources_of(dir, name, games);
    }
    ok(
        dir,
        "make-book -q reply.pgn --min-game 1 --only-white --bin white.bin",
    );
    for (sources, plies, expected) in [
        // The opponent may play the moves of each source.
        ("short.bin reply.bin", 3, "e2e4"),
        ("short.idx reply.counts", 8, "e2e4"),
        ("short.bin reply.bin", 9, "(none)"),
        ("short.bin reply.bin:black", 3, "(none)"),
        // Or those to which a book for the color of the engine has an answer.
        ("short.bin white.bin:white", 7, "e2e4"),
        ("short.bin white.bin:white", 8, "(none)"),
        // After the first source ends, the engine plays moves of the second one.
        ("knight.bin bishop.bin", 4, "e2e4"),
        ("knight.obs.db3 bishop.idx", 7, "e2e4"),
        ("knight.bin bishop.bin", 8, "(none)"),
        // A line does not return to an earlier position.
        ("cycle.bin", 3, "g1f3"),
        ("cycle.bin", 4, "(none)"),
        ("cycle.idx", 100, "(none)"),
    ] {
        let line = format!("engine {sources} --play best --leave-before-end {plies}");
        let mut session = Session::start(dir, &line);
        let best = answer(&mut session, "").0;
        assert_eq!(best.split(' ').next(), Some(expected), "{sources} {plies}");
    }
}

#[test]
fn the_reason_for_leaving_the_book_is_said() {
    let dir = temp();
    let dir = dir.path();
    let games = "1. e4 e5 0-1\n\n1. e4 e5 1/2-1/2\n\n1. d4 d5 *\n\n1. c4 c5 1-0\n\n1. Nf3 Nf6 0-1\n\n1. Nf3 Nf6 0-1\n";
    sources_of(dir, "a", games);
    for source in ["a.idx", "a.pgn"] {
        let mut session = Session::start(
            dir,
            &format!("engine {source} --min-score 45 --min-games 2"),
        );
        let (best, reason) = answer(&mut session, "");
        assert_eq!(best, "(none)");
        let text = "the sources contain 4 moves of this position, but none is played: 2 with a score below 45 % \
                    (MinScore), 2 with fewer than 2 games (MinGames)";
        assert_eq!(reason.as_deref(), Some(text));
        session.say("setoption name MinGames value 1");
        let (best, _) = answer(&mut session, "");
        assert_eq!(best, "c2c4 ponder c7c5");
        let said = session.ask("go searchmoves d2d4", "bestmove");
        let text = "2 with a score below 45 % (MinScore), 1 without a finished game (MinScore), 1 not listed after searchmoves";
        assert!(said[0].ends_with(text), "{said:?}");
        assert_eq!(said[1..], ["bestmove (none)"]);
        assert_eq!(answer(&mut session, "a2a3").1.unwrap(), "out of book");
    }
}

/// The second engine answers `go ponder` only after `ponderhit` or `stop`, as the UCI protocol demands.
#[cfg(unix)]
#[test]
fn pondering_works_in_the_book_and_behind_it() {
    let dir = temp();
    let dir = dir.path();
    sources_of(
        dir,
        "a",
        "1. e4 e5 2. Nf3 1-0\n\n1. e4 c5 2. Nf3 1-0\n\n1. e4 c5 2. Nc3 1-0\n",
    );
    with_engine(
        dir,
        "while read -r line; do case $line in uci) echo 'option name Ponder type check default false'; echo uciok;; \
         isready) echo readyok;; quit) exit;; go*ponder*) echo info string told $line;; \
         ponderhit|stop) echo info string told $line; echo bestmove a7a6 ponder a2a4;; \
         *) echo info string told $line;; esac; done",
    );
    let mut alone = Session::start(dir, "engine a.idx --play best");
    let mut both = Session::start(dir, "engine a.idx --play best -- ./engine.sh");
    for session in [&mut alone, &mut both] {
        let said = session.ask("uci", "uciok");
        let declared = "option name Ponder type check default false";
        assert_eq!(said.iter().filter(|line| *line == declared).count(), 1);
        session.say("setoption name Ponder value true");
        session.ask("isready", "readyok");
        // The most played reply is the one to ponder on, and the next search is about it.
        assert_eq!(answer(session, "").0, "e2e4 ponder c7c5");
        for end in ["ponderhit", "stop"] {
            session.say("position startpos moves e2e4 c7c5\ngo ponder wtime 1000 btime 1000");
            let said = session.ask("isready", "readyok");
            assert!(
                !said.iter().any(|line| line.starts_with("bestmove")),
                "{said:?}"
            );
            let said = session.ask(end, "bestmove");
            assert!(said.last().unwrap().starts_with("bestmove "), "{said:?}");
            assert!(!said.iter().any(|line| line.contains(" told ")), "{said:?}");
        }
    }
    for end in ["ponderhit", "stop"] {
        both.say("position startpos moves a2a3\ngo ponder wtime 1000");
        let said = both.ask("isready", "readyok");
        let told = ["position startpos moves a2a3", "go ponder wtime 1000"]
            .map(|line| format!("info string told {line}"));
        assert_eq!(said[..said.len() - 1], told);
        let said = both.ask(end, "bestmove");
        assert_eq!(
            said,
            [
                format!("info string told {end}"),
                "bestmove a7a6 ponder a2a4".to_owned()
            ]
        );
    }
    let said = alone.ask(
        "position startpos moves a2a3\ngo ponder\nponderhit",
        "bestmove",
    );
    assert_eq!(said, ["info string out of book", "bestmove (none)"]);
}

#[test]
fn the_end_of_an_index_is_not_the_end_of_the_book() {
    let dir = temp();
    let dir = dir.path();
    fs::write(dir.join("games.pgn"), "1. e4 e5 2. Nf3 Nc6 3. Bb5 a6 *\n").unwrap();
    ok(
        dir,
        "make-book -q games.pgn --explorer games.idx --max-ply 3",
    );
    let mut session = Session::start(dir, "engine games.idx");
    for (moves, said) in [
        (
            "e2e4 e7e5 g1f3",
            "the next moves are not indexed: the index ends at half-move 3",
        ),
        ("e2e4 c7c5", "out of book"),
    ] {
        session.say(&format!("position startpos moves {moves}"));
        let said = [format!("info string {said}"), "bestmove (none)".to_owned()];
        assert_eq!(session.ask("go", "bestmove"), said, "{moves}");
    }
}

#[test]
fn bad_commands_are_information() {
    let dir = temp();
    with_sources(dir.path());
    let text = "joho debug on\nsetoption\nsetoption name Nothing value 1\nsetoption name Play value wild\n\
        position\nposition fen 8/8 moves e2e4\nposition startpos moves 0000\ngo\nposition startpos moves e2e5\ngo\n\
        stop\nponderhit\nregister later\n\n\u{1}\u{fffd}\nposition startpos\ngo\nisready\n";
    let output = fed(dir.path(), "engine a.bin", text.as_bytes());
    assert!(output.status.success());
    let said = String::from_utf8(output.stdout).unwrap();
    assert_eq!(said.matches("bestmove (none)").count(), 2, "{said}");
    assert_eq!(said.matches("\nbestmove ").count(), 3, "{said}");
    assert!(
        said.contains("info string position: 0000 is not a legal move"),
        "{said}"
    );
    assert!(
        said.contains("info string there is no option Nothing"),
        "{said}"
    );
    assert!(said.ends_with("readyok\n"), "{said}");
    // The answer is a random legal move.
    let text = "position startpos moves a2a3 h7h5 h2h4\ngo\n";
    let output = fed(
        dir.path(),
        "engine a.bin --fallback random --seed 5",
        text.as_bytes(),
    );
    let said = String::from_utf8(output.stdout).unwrap();
    assert!(
        said.contains("bestmove ") && !said.contains("(none)"),
        "{said}"
    );
    let error = fails(dir.path(), "engine a.bin --player Carlsen", 2);
    assert!(error.contains("filters apply to games"), "{error}");
    let error = fails(dir.path(), "engine missing.bin", 1);
    assert!(error.contains("missing.bin"), "{error}");
    let error = fails(dir.path(), "engine a.bin -- ./missing", 1);
    assert!(error.contains("cannot start the engine"), "{error}");
}

#[cfg(unix)]
#[test]
fn other_positions_go_to_the_engine_behind() {
    let dir = temp();
    with_sources(dir.path());
    with_engine(dir.path(), PLAIN);
    let mut session = Session::start(dir.path(), "engine a.idx --play best -- ./engine.sh");
    let said = session.ask("uci", "uciok");
    assert_eq!(said[0], "id name polybook: Behind 1");
    for line in [
        "option name Hash type spin default 16",
        "option name Book Seed type spin default 0 min 0 max 2147483647",
    ] {
        assert!(said.iter().any(|said| said == line), "{said:?}");
    }
    assert_eq!(
        said.iter()
            .filter(|line| line.contains("name MultiPV "))
            .count(),
        1
    );
    assert_eq!(session.ask("isready", "readyok"), ["readyok"]);
    let said = session.ask("setoption name Hash value 32", "info string told");
    assert_eq!(said, ["info string told setoption name Hash value 32"]);
    let said = session.ask("setoption name Book File value x.bin", "info string told");
    assert_eq!(
        said,
        ["info string told setoption name Book File value x.bin"]
    );
    assert_eq!(
        session.ask("register later", "info"),
        ["info string told register later"]
    );
    // The engine does not know variants, so their options would be useless.
    let said = session.ask("uci", "uciok");
    assert!(
        !said
            .iter()
            .any(|line| line.contains("UCI_Variant") || line.contains("UCI_Chess960")),
        "{said:?}"
    );
    let said = session.ask("setoption name UCI_Variant value atomic", "info");
    assert_eq!(said, ["info string there is no option UCI_Variant"]);
    // The position is in the book, then not, then again.
    let said = session.ask("position startpos\ngo", "bestmove");
    assert!(said.last().unwrap() != "bestmove a7a6", "{said:?}");
    let said = session.ask("position startpos moves a2a3\ngo movetime 5", "bestmove");
    assert_eq!(
        said,
        [
            "info string told position startpos moves a2a3",
            "info string told go movetime 5",
            "info depth 7 multipv 1 score cp 11 pv a7a6",
            "bestmove a7a6"
        ]
    );
    let said = session.ask("position startpos moves e2e4\ngo", "bestmove");
    assert!(said.iter().any(|line| line.contains(" wdl ")), "{said:?}");
    // Moves beyond those of the source come from the engine.
    session.say("setoption name MultiPV value 500");
    let said = session.ask("position startpos moves e2e4\ngo", "bestmove");
    let listed: Vec<&str> = said
        .iter()
        .filter_map(|line| line.split(" multipv ").nth(1)?.split(' ').next())
        .collect();
    let numbers: Vec<String> = (1..=listed.len())
        .map(|number| number.to_string())
        .collect();
    assert_eq!(listed, numbers, "{said:?}");
    assert!(
        said.iter().any(|line| line.ends_with(" pv a7a6")),
        "{said:?}"
    );
    assert!(said.last().unwrap() != "bestmove a7a6", "{said:?}");
    session.ask("isready", "readyok");
    // The limits of the search hold for the engine's part too.
    let said = session.ask("go searchmoves e7e5 a7a6 h7h6 depth 4", "bestmove");
    let told: Vec<&String> = said.iter().filter(|line| line.contains(" told ")).collect();
    assert_eq!(
        told,
        [
            "info string told setoption name MultiPV value 499",
            "info string told position startpos moves e2e4",
            "info string told go depth 4 searchmoves a7a6 h7h6",
        ]
    );
    assert_eq!(
        session.ask("isready", "readyok"),
        [
            "info string told setoption name MultiPV value 500",
            "readyok"
        ]
    );
    session.say("quit");
    assert!(session.child.wait().unwrap().success());
}

/// After 1. e4, Black scored at most 1 of 4 with a move of the sample games. The book has two of these moves.
#[cfg(unix)]
#[test]
fn moves_that_score_too_little_come_from_no_source_and_not_from_the_engine() {
    let dir = temp();
    with_sources(dir.path());
    with_engine(dir.path(), PLAIN);
    let searched = |args: &str, go: &str| {
        let mut session = Session::start(dir.path(), &format!("engine {args} -- ./engine.sh"));
        let said = session.ask(&format!("position startpos moves e2e4\n{go}"), "bestmove");
        let mut lines = said.iter();
        let line = lines.find_map(|line| line.strip_prefix("info string told go"));
        line.map(str::to_owned)
    };
    let strict = searched("a.idx a.bin --min-score 30", "go depth 4").unwrap();
    let moves = strict.strip_prefix(" depth 4 searchmoves ").unwrap();
    assert_eq!(moves.split(' ').count(), 14, "{moves}");
    for refused in ["e7e5", "c7c5", "c7c6", "e7e6", "d7d6", "g8f6"] {
        assert!(!moves.contains(refused), "{moves}");
    }
    // The program's own choice of moves is kept. If it leaves refused moves only, one of them has to be played.
    let own = searched("a.idx --min-score 30", "go searchmoves e7e5 a7a6");
    assert_eq!(own.unwrap(), " searchmoves a7a6");
    let own = searched("a.idx --min-score 30", "go searchmoves e7e5 e7e6");
    assert_eq!(own.unwrap(), " searchmoves e7e5 e7e6");
    // The moves of too few games are not refused: their score says little.
    let rare = searched("a.idx --min-score 30 --min-games 20", "go");
    assert_eq!(rare.unwrap(), "");
    // One of the moves scores enough.
    assert_eq!(searched("a.idx a.bin --min-score 25", "go"), None);
}

#[cfg(unix)]
#[test]
fn engines_behind_that_misbehave() {
    let dir = temp();
    with_sources(dir.path());
    let uci = "uci) echo 'id name Odd'; echo uciok;; isready) echo readyok;; quit) exit;;";
    let unknown = "position startpos moves a2a3\ngo";
    let known = "position startpos\ngo";
    // The engine exits at `go`.
    with_engine(
        dir.path(),
        &format!("while read -r word rest; do case $word in {uci} go) exit 7;; esac; done"),
    );
    let mut session = Session::start(dir.path(), "engine a.bin -- ./engine.sh");
    let said = session.ask(unknown, "bestmove");
    assert_eq!(said.len(), 2, "{said:?}");
    assert!(
        said[0].contains(
            "the engine ended: exit status: 7; polybook still answers in known positions"
        ),
        "{said:?}"
    );
    assert_eq!(said[1], "bestmove (none)");
    assert!(session.ask(known, "bestmove").last().unwrap() != "bestmove (none)");
    assert_eq!(session.ask("isready", "readyok"), ["readyok"]);
    drop(session);
    // The engine exits during a search without limits, whose answer must still wait for `stop`. Options keep their
    // names.
    with_engine(
        dir.path(),
        "while read -r word rest; do case $word in uci) echo 'option name Seed type spin default 1'; echo uciok;; isready) echo readyok;; go) exit 7;; esac; done",
    );
    let mut session = Session::start(dir.path(), "engine a.bin -- ./engine.sh");
    session.ask(&format!("{unknown} infinite"), "info string");
    assert_eq!(session.ask("isready", "readyok"), ["readyok"]);
    assert_eq!(session.ask("stop", "bestmove"), ["bestmove (none)"]);
    let said = session.ask("setoption name Book Seed value 3\nisready", "readyok");
    assert_eq!(said, ["readyok"]);
    drop(session);
    // The engine writes garbage, an unrequested answer and many lines, and answers only after `stop`.
    let flood = "seq 5000 | sed 's/^/info depth /'";
    with_engine(
        dir.path(),
        &format!(
            "while read -r word rest; do case $word in {uci} ucinewgame) echo bestmove h2h4; printf 'a\\377b\\n';; go) {flood};; stop) echo bestmove a7a6;; esac; done"
        ),
    );
    let mut session = Session::start(dir.path(), "engine a.bin -- ./engine.sh");
    session.say("ucinewgame");
    let said = session.ask("isready", "readyok");
    assert!(
        !said.iter().any(|line| line.contains("bestmove")),
        "{said:?}"
    );
    session.say(&format!("{unknown} infinite"));
    let said = session.ask("isready", "readyok");
    let said_later = session.ask("stop", "bestmove");
    let all = [said, said_later].concat();
    assert_eq!(
        all.iter()
            .filter(|line| line.starts_with("info depth "))
            .count(),
        5000
    );
    assert_eq!(all.last().unwrap(), "bestmove a7a6");
    drop(session);
    // The engine hangs at `quit`, and so does a process that it started.
    with_engine(
        dir.path(),
        "sleep 1000 & echo $! > child; while read -r word rest; do case $word in uci) echo uciok;; quit) exec sleep 1000;; esac; done",
    );
    let mut session = Session::start(dir.path(), "engine a.bin -- ./engine.sh");
    session.ask(known, "bestmove");
    session.say("quit");
    assert!(session.child.wait().unwrap().success());
    let child = fs::read_to_string(dir.path().join("child")).unwrap();
    until("the engine's process has ended", || has_ended(&child));
    // The program is not a UCI engine.
    for engine in ["true", "./engine.sh"] {
        with_engine(dir.path(), "echo uci; exit 3");
        let error = fails(dir.path(), &format!("engine a.bin -- {engine}"), 1);
        assert!(error.contains("the engine ended"), "{error}");
    }
}

/// The second engine waits for a line in a pipe before it answers.
#[cfg(unix)]
#[test]
fn slow_engines_do_not_mix_up_searches() {
    let dir = temp();
    with_sources(dir.path());
    make_fifo(&dir.path().join("gate"));
    // If the gate is opened before its last writer has closed it, `read` finds no line, so the engine opens it again.
    with_engine(
        dir.path(),
        "while read -r word rest; do case $word in uci) echo uciok;; \
         isready) until read -r x <gate; do :; done; echo readyok;; \
         stop) until read -r x <gate; do :; done; echo \"bestmove $x\";; quit) exit;; esac; done",
    );
    let open_gate = |text: &str| fs::write(dir.path().join("gate"), format!("{text}\n")).unwrap();
    let unknown = "position startpos moves a2a3";
    let mut session = Session::start(dir.path(), "engine a.idx --play best -- ./engine.sh");
    // Known positions are answered while the engine is not ready.
    session.say("isready");
    let said = session.ask("position startpos\ngo", "bestmove");
    assert!(!said.iter().any(|line| line == "readyok"), "{said:?}");
    open_gate("");
    assert_eq!(session.ask("", "readyok"), ["readyok"]);
    // The program does not wait for the answer of the first search, nor for that of the second.
    session.say(&format!("{unknown}\ngo infinite\nstop"));
    session.say(&format!(
        "{unknown} a7a6\ngo ponder\nstop\nposition startpos\ngo"
    ));
    let said = session.ask("uci", "uciok");
    assert!(
        !said.iter().any(|line| line.starts_with("bestmove")),
        "{said:?}"
    );
    open_gate("h7h6");
    assert_eq!(session.ask("", "bestmove"), ["bestmove h7h6"]);
    open_gate("b2b3");
    assert_eq!(session.ask("", "bestmove"), ["bestmove b2b3"]);
    let said = session.ask("", "bestmove");
    assert!(
        said.last().unwrap().starts_with("bestmove e2e4"),
        "{said:?}"
    );
    // Commands do not pile up.
    session.say(&format!("{unknown}\ngo infinite"));
    session.say(&"ucinewgame\n".repeat(100));
    let said = session.ask("uci", "uciok");
    let refused = said
        .iter()
        .filter(|line| line.contains("too many commands"));
    assert_eq!(refused.count(), 36);
}

/// The options that chess programs and bots set whatever the engine is.
#[cfg(unix)]
const COMMON_OPTIONS: [(&str, &str); 14] = [
    ("Hash", "64"),
    ("Threads", "4"),
    ("Move Overhead", "100"),
    ("Ponder", "true"),
    ("Contempt", "-20"),
    ("UCI_ShowWDL", "true"),
    ("MultiPV", "2"),
    ("UCI_AnalyseMode", "true"),
    ("UCI_LimitStrength", "true"),
    ("UCI_Elo", "1800"),
    ("SyzygyPath", "/tables"),
    ("Skill Level", "10"),
    ("Slow Mover", "80"),
    ("UCI_Opponent", "GM 2800 human Gary Kasparov"),
];

#[cfg(unix)]
#[test]
fn options_that_programs_set_for_every_engine_are_no_errors() {
    let dir = temp();
    with_sources(dir.path());
    // The second engine has the options Hash, Seed, Book File and MultiPV.
    with_engine(dir.path(), PLAIN);
    for (engine, has_hash) in [("", false), (" -- ./engine.sh", true)] {
        let mut session = Session::start(dir.path(), &format!("engine a.bin{engine}"));
        let declared = session.ask("uci", "uciok");
        for (name, _) in COMMON_OPTIONS {
            let line = format!("option name {name} type ");
            let count = declared.iter().filter(|said| said.starts_with(&line));
            assert_eq!(count.count(), 1, "{name} {declared:?}");
        }
        assert!(declared.contains(&"option name Clear Hash type button".to_owned()));
        for (name, value) in COMMON_OPTIONS {
            session.say(&format!("setoption name {name} value {value}"));
        }
        let said = session.ask("setoption name Clear Hash\nisready", "readyok");
        let told = "info string told setoption name Hash value 64".to_owned();
        assert_eq!(said.contains(&told), has_hash, "{said:?}");
        let passed_on = |line: &String| line.contains(" told setoption name ");
        let own = said.iter().filter(|line| !passed_on(line));
        assert_eq!(own.collect::<Vec<_>>(), ["readyok"]);
    }
}

#[test]
fn a_line_that_is_too_long_is_reported_and_the_next_one_is_read() {
    let dir = temp();
    with_sources(dir.path());
    for (length, is_too_long) in [(1 << 16, false), ((1 << 16) + 1, true), (1 << 20, true)] {
        let command = "setoption name Event value ";
        let name = "x".repeat(length - command.len());
        let text = format!("{command}{name}\nposition startpos\ngo\nquit");
        let output = fed(dir.path(), "engine a.bin --play best", text.as_bytes());
        assert!(output.status.success());
        let said = String::from_utf8(output.stdout).unwrap();
        let is_reported = said.contains("a command is longer than 65536 bytes");
        assert_eq!(is_reported, is_too_long, "{said}");
        assert!(said.contains("bestmove e2e4"), "{said}");
    }
}

/// A script that pipes commands into the engine gets the move of the second engine, too.
#[cfg(unix)]
#[test]
fn the_end_of_the_input_ends_a_search_with_its_result() {
    let dir = temp();
    with_sources(dir.path());
    with_engine(
        dir.path(),
        "while read -r word rest; do case $word in uci) echo uciok;; stop) echo bestmove a7a6;; quit) exit;; esac; done",
    );
    for end in ["", "quit\n"] {
        for (moves, answer) in [("a2a3", "bestmove a7a6"), ("e2e4", "bestmove ")] {
            let commands = format!("position startpos moves {moves}\ngo infinite\n{end}");
            let said = fed(
                dir.path(),
                "engine a.bin -- ./engine.sh",
                commands.as_bytes(),
            );
            let said = String::from_utf8(said.stdout).unwrap();
            assert!(said.contains(answer), "{moves} {end}: {said}");
        }
    }
    let twice = "position startpos moves a2a3\ngo infinite\n".repeat(2);
    let said = fed(dir.path(), "engine a.bin -- ./engine.sh", twice.as_bytes());
    let said = String::from_utf8(said.stdout).unwrap();
    assert_eq!(said.matches("bestmove a7a6").count(), 2, "{said}");
}

#[cfg(unix)]
#[test]
fn quit_ends_whatever_the_second_engine_does() {
    let dir = temp();
    with_sources(dir.path());
    let loop_with =
        |cases: &str| format!("while :; do read -r word rest; case $word in {cases} esac; done");
    let unknown = "position startpos moves a2a3\ngo infinite";
    for (lines, commands) in [
        // It never answers, or never stops answering.
        ("exec sleep 1000".to_owned(), "uci"),
        ("while :; do echo info string x; done".to_owned(), "uci"),
        // It ignores `quit` and the end of its input.
        (loop_with("uci) echo uciok;;"), unknown),
        // It floods a program that does not read.
        (
            loop_with("uci) echo uciok;; go) while :; do echo info depth 1 pv a7a6; done;;"),
            unknown,
        ),
        // It does not read.
        (
            "read -r word; echo uciok; exec sleep 1000".to_owned(),
            unknown,
        ),
    ] {
        with_engine(dir.path(), &lines);
        let mut session = Session::start(dir.path(), "engine a.bin -- ./engine.sh");
        session.say(&format!("{commands}\nquit"));
        assert!(session.child.wait().unwrap().success(), "{lines}");
    }
}

#[cfg(unix)]
#[test]
fn a_second_engine_with_too_many_options_is_refused() {
    let dir = temp();
    with_sources(dir.path());
    with_engine(
        dir.path(),
        "while :; do echo option name A type string; done",
    );
    let output = fed(dir.path(), "engine a.bin -- ./engine.sh", b"uci\nquit\n");
    let said = [output.stdout, output.stderr].concat();
    let said = String::from_utf8(said).unwrap();
    let problem =
        "the engine wrote more than 4096 lines with id or option without answering the command uci";
    assert!(said.contains(problem), "{said}");
}

/// The user interface does not read, and sends `stop` and `quit` when the lines of the second engine fill all queues.
#[cfg(unix)]
#[test]
fn a_flood_of_the_second_engine_does_not_delay_quit() {
    let dir = temp();
    with_sources(dir.path());
    // The lines are long, so that few of them wait in a pipe. The engine ends soon after it can write no more.
    let flood = "line=xxxxxxxxxxxxxxxx; for i in 1 2 3 4 5 6 7 8 9; do line=$line$line; done
         while read -r word rest; do case $word in uci) echo uciok;; go)
         i=0; while :; do echo info string $line; i=$((i + 1)); echo $i > written; done;; esac; done";
    with_engine(dir.path(), flood);
    let mut session = Session::start(dir.path(), "engine a.bin -- ./engine.sh");
    session.say("uci\nposition startpos moves a2a3\ngo infinite");
    // A queue of 1024 lines to the user interface, and one of 1024 lines from the engine.
    let written = || fs::read_to_string(dir.path().join("written")).unwrap_or_default();
    until("the queues are full", || {
        written()
            .trim()
            .parse()
            .is_ok_and(|lines: u32| lines > 2055)
    });
    session.say("stop\nquit");
    until("polybook has ended", || {
        session.child.try_wait().unwrap().is_some()
    });
}

#[cfg(unix)]
#[test]
fn the_second_engine_ends_with_polybook_even_if_polybook_is_killed() {
    let dir = temp();
    with_sources(dir.path());
    with_engine(
        dir.path(),
        "sleep 1000 & echo $! > child; echo $$ > main; read -r word; echo uciok; while :; do sleep 1000; done",
    );
    let mut session = Session::start(dir.path(), "engine a.bin -- ./engine.sh");
    session.ask("uci", "uciok");
    session.child.kill().unwrap();
    session.child.wait().unwrap();
    for name in ["main", "child"] {
        let process = fs::read_to_string(dir.path().join(name)).unwrap();
        until("the engine's processes have ended", || has_ended(&process));
    }
}

/// Games in which the knights go back and forth more often than the e-pawn moves.
#[cfg(unix)]
#[test]
fn a_position_is_not_repeated_a_third_time_while_there_is_another_move() {
    let dir = temp();
    let knights = "1. Nf3 Nf6 2. Ng1 Ng8 3. Nf3 Nf6 4. Ng1 Ng8 1-0\n\n";
    let games = format!("{}1. e4 e5 1-0\n", knights.repeat(3));
    fs::write(dir.path().join("both.pgn"), games).unwrap();
    fs::write(dir.path().join("knights.pgn"), knights).unwrap();
    for name in ["both", "knights"] {
        ok(
            dir.path(),
            &format!("make-book -q {name}.pgn --min-game 1 --bin {name}.bin --explorer {name}.idx"),
        );
    }
    with_engine(dir.path(), PLAIN);
    let twice = "position startpos moves g1f3 g8f6 f3g1 f6g8 g1f3 g8f6 f3g1 f6g8";
    let once = "position startpos moves g1f3 g8f6 f3g1 f6g8";
    // The castling rights of the first position are not those of the later ones.
    let with_rooks =
        "position startpos moves g1f3 g8f6 h1g1 h8g8 g1h1 g8h8 f3g1 f6g8 g1f3 g8f6 f3g1 f6g8";
    for (sources, position, expected) in [
        ("both.bin", once, "g1f3"),
        ("both.bin", twice, "e2e4"),
        ("both.idx", twice, "e2e4"),
        ("knights.bin both.bin", twice, "e2e4"),
        ("knights.bin", twice, "g1f3"),
        ("knights.bin -- ./engine.sh", once, "g1f3"),
        ("knights.bin -- ./engine.sh", twice, "a7a6"),
        ("knights.bin -- ./engine.sh", with_rooks, "a7a6"),
    ] {
        let (sources, engine) = match sources.split_once(" -- ") {
            Some((sources, engine)) => (sources, format!("-- {engine}")),
            None => (sources, String::new()),
        };
        let line = format!("engine {sources} --play best {engine}");
        let mut session = Session::start(dir.path(), &line);
        let said = session.ask(&format!("{position}\ngo"), "bestmove");
        let best = format!("bestmove {expected}");
        assert!(said.last().unwrap().starts_with(&best), "{line} {said:?}");
    }
}

#[test]
fn advice_about_variants_names_the_options_of_the_engine() {
    let dir = temp();
    with_sources(dir.path());
    for (fen, advice) in [
        (
            "bqnnrkrb/pppppppp/8/8/8/8/PPPPPPPP/BQNNRKRB w GEge - 0 1",
            "set the option UCI_Chess960 to true",
        ),
        (
            "nrkbbqrn/pppppppp/8/8/8/8/PPPPPPPP/NRKBBQRN w GBgb - 0 1",
            "set the option UCI_Chess960 to true",
        ),
        (
            "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR[Pq] w KQkq - 0 1",
            "set the option UCI_Variant to crazyhouse",
        ),
        (
            "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR[] w KQkq - 0 1",
            "set the option UCI_Variant to crazyhouse",
        ),
        (
            "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 3+2 0 1",
            "set the option UCI_Variant to 3check",
        ),
        (
            "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1 +0+1",
            "set the option UCI_Variant to 3check",
        ),
        ("8/8/8/8/8/8/8/8 w - - 0 1", "FEN"),
    ] {
        let text = format!("position fen {fen}\ngo\n");
        let output = fed(dir.path(), "engine a.bin", text.as_bytes());
        let said = String::from_utf8(output.stdout).unwrap();
        assert!(said.contains(advice) && !said.contains("--"), "{said}");
        if let Some(setting) = advice.strip_prefix("set the option ") {
            let setting = setting.replace(" to ", " value ");
            let text = format!("setoption name {setting}\n{text}");
            let output = fed(
                dir.path(),
                "engine a.bin --fallback random",
                text.as_bytes(),
            );
            let said = String::from_utf8(output.stdout).unwrap();
            assert!(!said.contains("FEN") && !said.contains("(none)"), "{said}");
        }
    }
}

#[test]
fn chess960_and_variants_are_played_by_their_rules() {
    let dir = temp();
    let castling = "1. e4 e5 2. Nf3 Nc6 3. Bc4 Bc5 4. O-O 1-0\n";
    let drop = "[Variant \"Crazyhouse\"]\n\n1. e4 d5 2. exd5 Qxd5 3. Nc3 Qa5 4. P@d6 1-0\n";
    fs::write(dir.path().join("games.pgn"), castling).unwrap();
    fs::write(dir.path().join("house.pgn"), drop).unwrap();
    for make in [
        "games.pgn --bin a.bin",
        "house.pgn --variant crazyhouse --bin h.bin",
    ] {
        ok(dir.path(), &format!("make-book -q --min-game 1 {make}"));
    }
    let castling = "position startpos moves e2e4 e7e5 g1f3 b8c6 f1c4 f8c5\ngo\n";
    let drop = "position startpos moves e2e4 d7d5 e4d5 d8d5 b1c3 d5a5\ngo\n";
    for (book, commands, answer) in [
        ("a.bin", castling.to_owned(), "e1g1"),
        (
            "a.bin",
            format!("setoption name UCI_Chess960 value true\n{castling}"),
            "e1h1",
        ),
        (
            "h.bin",
            format!("setoption name UCI_Variant value crazyhouse\n{drop}"),
            "P@d6",
        ),
        ("h.bin", drop.to_owned(), "(none)"),
    ] {
        let output = fed(dir.path(), &format!("engine {book}"), commands.as_bytes());
        let said = String::from_utf8(output.stdout).unwrap();
        assert!(said.ends_with(&format!("bestmove {answer}\n")), "{said}");
    }
}

#[test]
fn filters_are_options() {
    let dir = temp();
    with_sources(dir.path());
    let mut session = Session::start(dir.path(), "engine a.idx --player Fischer --color white");
    let said = session.ask("uci", "uciok");
    assert!(
        said.iter()
            .any(|line| line == "option name Player type string default Fischer")
    );
    let games = |session: &mut Session, commands: &str| -> u64 {
        let said = session.ask(
            &format!("{commands}\nsetoption name MultiPV value 500\ngo"),
            "bestmove",
        );
        let nodes = said.iter().filter_map(|line| line.split(" nodes ").nth(1));
        nodes
            .map(|nodes| nodes.split(' ').next().unwrap().parse::<u64>().unwrap())
            .sum()
    };
    let white = games(&mut session, "");
    let both = games(&mut session, "setoption name Color value any");
    let none = games(&mut session, "setoption name Since value 2000");
    let all = games(
        &mut session,
        "setoption name Player value <empty>\nsetoption name Since value",
    );
    assert!(
        // At the start, the engine plays as White.
        0 < white && white == both && none == 0 && both < all,
        "{white} {both} {none} {all}"
    );
    // A range can be moved one end after the other.
    let said = session.ask(
        "setoption name Since value 1970\nsetoption name Until value 1960",
        "info",
    );
    assert!(said[0].contains("exchange the two dates"), "{said:?}");
    let early = games(&mut session, "setoption name Since value 1950");
    assert!(0 < early && early < all, "{early} {all}");
    let said = session.ask("setoption name Opponent value Xyz", "info");
    assert_eq!(said, ["info string no player's name contains \"Xyz\""]);
}

#[test]
fn only_moves_of_the_named_player_are_played() {
    let dir = temp();
    let games = "[White \"Ann\"]\n[Black \"Bob\"]\n\n1. e4 e5 1-0\n\n[White \"Bob\"]\n[Black \"Ann\"]\n\n1. d4 d5 1-0\n";
    fs::write(dir.path().join("games.pgn"), games).unwrap();
    let index = "make-book -q games.pgn --explorer games.idx";
    ok(dir.path(), index);
    for (options, is_mixed) in [
        ("--player Ann", true),
        ("--player Ann --only-white", true),
        ("--player Ann --color white --only-white", false),
        ("--white Ann --only-white", false),
        ("", false),
    ] {
        let line = format!("make-book games.pgn --min-game 1 --bin a.bin --force {options}");
        let words = line.split_whitespace();
        let output = polybook_in(dir.path()).args(words).output().unwrap();
        let text = String::from_utf8([output.stdout, output.stderr].concat()).unwrap();
        let note = "also contains the moves of the player's opponents";
        assert_eq!(text.contains(note), is_mixed, "{line}: {text}");
    }
    let moves_of = |options: &str, line: &str| {
        let commands = format!("setoption name MultiPV value 9\nposition startpos{line}\ngo\n");
        let output = fed(
            dir.path(),
            &format!("engine games.idx {options}"),
            commands.as_bytes(),
        );
        let said = String::from_utf8(output.stdout).unwrap();
        let moves = said.lines().filter_map(|line| line.split(" pv ").nth(1));
        let moves = moves.map(|line| line[..4].to_owned()).collect::<Vec<_>>();
        (moves.join(" "), said)
    };
    for (options, line, moves) in [
        ("", "", "e2e4 d2d4"),
        ("--player Ann", "", "e2e4"),
        ("--player Ann", " moves d2d4", "d7d5"),
        ("--player Ann", " moves e2e4", ""),
        ("--player Ann --color black", " moves d2d4", "d7d5"),
        ("--player Ann --color black", "", ""),
        ("--opponent Ann", "", "d2d4"),
    ] {
        let (found, said) = moves_of(options, line);
        let sorted = |moves: &str| {
            let mut moves: Vec<_> = moves.split(' ').map(str::to_owned).collect();
            moves.sort();
            moves
        };
        assert_eq!(sorted(&found), sorted(moves), "{options}{line}: {said}");
    }
    let mut session = Session::start(dir.path(), "engine games.idx");
    // The option Color has no effect if no player is named.
    let said = session.ask("setoption name Color value black\ngo", "bestmove");
    assert_ne!(said.last().unwrap(), "bestmove (none)", "{said:?}");
    let (_, said) = moves_of("--player Ann --color black", "");
    let reason = "info string the filters select games in which the player has Black (Color)\n";
    assert!(said.contains(reason), "{said}");
    let error = fails(dir.path(), "engine games.pgn:white --player Ann", 2);
    let says = "games.pgn:white is read as a repertoire: give the file without the color";
    assert!(error.contains(says), "{error}");
}

#[test]
fn python_chess_plays_from_it() {
    let Some(python) = python(&["chess"]) else {
        return;
    };
    let dir = temp();
    with_sources(dir.path());
    let binary = Path::new(env!("CARGO_BIN_EXE_polybook"));
    run_python(&python, "engine.py", &[dir.path(), binary]);
}
