//! A chess engine as another process, which speaks UCI.

use std::{
    collections::BTreeSet,
    io::{BufRead, BufReader, Read, Write},
    path::PathBuf,
    process::{Child, Command, Stdio},
    sync::Mutex,
    thread,
    time::{Duration, Instant},
};

use shakmaty::Chess;

use super::{layout::Eval, score::Score};
use crate::{
    error::{At, Error, Result},
    position::epd_of,
    task::{self, Feed, Taker},
};

/// The longest line that is read of an engine.
const LONGEST_LINE: u64 = 1 << 16;

/// How many lines may wait to be read.
const AHEAD: usize = 64;

/// The most options that an engine may name, and the longest name.
const MOST_OPTIONS: usize = 1 << 12;
const LONGEST_NAME: usize = 200;

/// The engines that run, by the numbers of their processes.
static RUNNING: Mutex<Running> = Mutex::new(Running {
    engines: BTreeSet::new(),
    is_closed: false,
});

struct Running {
    engines: BTreeSet<u32>,
    /// Set when the process is about to end: no engine is started any more.
    is_closed: bool,
}

/// Ends all engines of this process, and prevents that any other is started. For a program that a signal ends.
pub fn end_engines() {
    let mut running = task::lock(&RUNNING);
    running.is_closed = true;
    std::mem::take(&mut running.engines)
        .into_iter()
        .for_each(end_group);
}

/// Ends the process group that an engine leads: it may be a script that started the engine.
#[cfg(unix)]
fn end_group(engine: u32) {
    use rustix::process::{Pid, Signal, kill_process_group};
    if let Some(group) = engine.try_into().ok().and_then(Pid::from_raw) {
        // All of it may have ended.
        let _ = kill_process_group(group, Signal::KILL);
    }
}

/// Ends an engine and what it started.
#[cfg(windows)]
fn end_group(engine: u32) {
    let mut kill = Command::new("taskkill");
    kill.args(["/T", "/F", "/PID", &engine.to_string()]);
    // All of it may have ended.
    let _ = kill.stdout(Stdio::null()).stderr(Stdio::null()).status();
}

/// An engine, and how it is asked.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct EngineOptions {
    /// The program.
    pub program: PathBuf,
    /// UCI options by their names, such as `Hash`.
    pub options: Vec<(String, String)>,
    /// How many nodes it searches in each position.
    pub nodes: u64,
    /// How many processes of it run at a time.
    pub jobs: usize,
    /// An engine that takes longer for a position is ended.
    pub time_limit: Duration,
}

/// A running engine. It is killed when this is dropped, with the processes that it started.
pub(super) struct Engine {
    program: PathBuf,
    child: Child,
    input: Taker<String>,
    lines: Feed<String>,
    /// What it calls itself.
    pub name: String,
    time_limit: Duration,
}

impl Drop for Engine {
    fn drop(&mut self) {
        let mut running = task::lock(&RUNNING);
        running.engines.remove(&self.child.id());
        end_group(self.child.id());
        drop(running);
        // It may have ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Engine {
    /// Starts an engine and sets its options.
    pub(super) fn start(options: &EngineOptions) -> Result<Engine> {
        let program = &options.program;
        let mut command = Command::new(program);
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null());
        #[cfg(unix)]
        std::os::unix::process::CommandExt::process_group(&mut command, 0);
        let mut running = task::lock(&RUNNING);
        if running.is_closed {
            return Err(Error::Interrupted);
        }
        let mut child = command.spawn().at(program, "start the engine")?;
        running.engines.insert(child.id());
        drop(running);
        let (input, output) = (child.stdin.take(), child.stdout.take());
        let (mut input, output) = input.zip(output).expect("both are pipes");
        // An engine that does not read must not hold up the run.
        let ahead = AHEAD + options.options.len();
        let input = task::start_taking("engine", ahead, move |line: String| {
            input.write_all(line.as_bytes())
        })?;
        let (lines, _) = task::start("engine", AHEAD, move |lines| {
            let mut output = BufReader::new(output);
            loop {
                let mut line = Vec::new();
                let read = (&mut output)
                    .take(LONGEST_LINE)
                    .read_until(b'\n', &mut line);
                // Its end, or a line that no engine says.
                if read.is_err() || line.last() != Some(&b'\n') {
                    return Ok(());
                }
                lines.send(String::from_utf8_lossy(&line).trim().to_owned())?;
            }
        })?;
        let mut engine = Engine {
            program: program.clone(),
            child,
            input,
            lines,
            name: String::new(),
            time_limit: options.time_limit,
        };
        engine.prepare(options)?;
        Ok(engine)
    }

    fn prepare(&mut self, options: &EngineOptions) -> Result<()> {
        self.say("uci")?;
        let mut name = None;
        let mut known = Vec::new();
        self.read_until(|line| {
            if let Some(said) = line.strip_prefix("option name ") {
                let name = said.split_once(" type ").map_or(said, |(name, _)| name);
                known.push(shortened(name));
            }
            if let Some(said) = line.strip_prefix("id name ") {
                name = Some(shortened(said));
            }
            line == "uciok" || known.len() > MOST_OPTIONS
        })?;
        if known.len() > MOST_OPTIONS {
            return Err(self.fails(&format!("names more than {MOST_OPTIONS} options")));
        }
        self.name = name.unwrap_or_else(|| {
            let program = options.program.file_stem().unwrap_or_default();
            program.to_string_lossy().into_owned()
        });
        for (name, value) in &options.options {
            let is_known = known.iter().any(|known| known.eq_ignore_ascii_case(name));
            if !known.is_empty() && !is_known {
                let known = known.join(", ");
                let known: String = known.chars().take(10 * LONGEST_NAME).collect();
                let problem = format!("the engine has no option {name}; it has {known}");
                return Err(Error::file(&self.program, problem));
            }
            self.say(&format!("setoption name {name} value {value}"))?;
        }
        Ok(())
    }

    /// Evaluates a position. It forgets those before, so that the order of positions does not matter.
    pub(super) fn evaluate(&mut self, pos: &Chess, nodes: u64) -> Result<Eval> {
        use shakmaty::Position;
        self.say("ucinewgame")?;
        self.say("isready")?;
        self.read_until(|line| line == "readyok")?;
        // An evaluation is that of all games with this position, so none of their clocks counts.
        self.say(&format!("position fen {} 0 1", epd_of(pos)))?;
        // An answer that is there already is not one.
        for _ in 0..AHEAD {
            match self.lines.next_waiting() {
                Some(line) if is_answer(&line) => {
                    return Err(self.fails("answers before it is asked"));
                }
                Some(_) => {}
                None => break,
            }
        }
        self.say(&format!("go nodes {nodes}"))?;
        let mut last = EngineInfo::default();
        self.read_until(|line| {
            last.read(line);
            is_answer(line)
        })?;
        let score = last.score.ok_or_else(|| self.fails("gave no score"))?;
        Ok(Eval {
            score: score.seen_from(pos.turn()),
            depth: last.depth.min(255) as u8,
            nodes: last.nodes,
            origin: 0,
        })
    }

    fn say(&mut self, line: &str) -> Result<()> {
        match self.input.offer(format!("{line}\n")) {
            true => Ok(()),
            false => Err(self.has_ended("does not read")),
        }
    }

    /// Reads lines until one is the last, within the time limit.
    fn read_until(&mut self, mut is_last: impl FnMut(&str) -> bool) -> Result<()> {
        let end = Instant::now() + self.time_limit;
        loop {
            match self.lines.next_before(end)? {
                Some(line) if is_last(&line) => return Ok(()),
                // Rubbish without end is not an answer.
                Some(_) if Instant::now() < end => {}
                None if Instant::now() < end => {
                    return Err(self.has_ended("closed its output"));
                }
                _ => {
                    let seconds = self.time_limit.as_secs();
                    return Err(self.fails(&format!("gave no answer in {seconds} s")));
                }
            }
        }
    }

    /// Why there is nothing more to read, or nobody reads: the engine ended, or else what `otherwise` says.
    fn has_ended(&mut self, otherwise: &str) -> Error {
        // Its pipes are closed a moment before it has ended.
        for _ in 0..20 {
            if let Ok(Some(status)) = self.child.try_wait() {
                return self.fails(&format!("ended: {status}"));
            }
            thread::sleep(Duration::from_millis(10));
        }
        self.fails(otherwise)
    }

    fn fails(&self, how: &str) -> Error {
        Error::failed(&self.program, format!("the engine {how}"))
    }
}

/// Whether a line ends a search.
fn is_answer(line: &str) -> bool {
    line.split_ascii_whitespace().next() == Some("bestmove")
}

/// A name that an engine says.
fn shortened(name: &str) -> String {
    name.chars().take(LONGEST_NAME).collect()
}

/// What an engine says of a search.
#[derive(Default)]
struct EngineInfo {
    /// Seen from the side to move.
    score: Option<Score>,
    depth: u64,
    nodes: u64,
}

impl EngineInfo {
    /// Takes what a line says of the best variation. A score that is a bound only is not taken.
    fn read(&mut self, line: &str) {
        let mut words = line.split_ascii_whitespace();
        if words.next() != Some("info") {
            return;
        }
        let mut said = EngineInfo {
            nodes: self.nodes,
            ..EngineInfo::default()
        };
        let (mut is_best, mut is_bound) = (true, false);
        while let Some(word) = words.next() {
            let mut number = || words.next().and_then(|word| word.parse::<i64>().ok());
            let natural =
                |number: Option<i64>| number.and_then(|number| u64::try_from(number).ok());
            match word {
                "depth" => said.depth = natural(number()).unwrap_or(0),
                "nodes" => said.nodes = natural(number()).unwrap_or(said.nodes),
                "multipv" => is_best = number() == Some(1),
                "cp" => said.score = number().map(Score::centipawns),
                "mate" => said.score = number().and_then(Score::mate),
                "lowerbound" | "upperbound" => is_bound = true,
                // The rest is a text or moves.
                "string" | "pv" => break,
                _ => {}
            }
        }
        self.nodes = said.nodes;
        if is_best && !is_bound && said.score.is_some() {
            *self = said;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_exact_score_of_the_best_variation_counts() {
        let mut info = EngineInfo::default();
        for line in [
            "info string NNUE evaluation using nn.nnue cp 99",
            "info depth 1 seldepth 2 multipv 1 score cp 17 nodes 20 nps 20000 time 1 pv e2e4",
            "info depth 2 multipv 2 score cp 90 nodes 30 pv d2d4",
            "info depth 3 score cp 25 lowerbound nodes 40",
            "info depth x score cp y nodes -5",
            "info depth 3 currmove e2e4 currmovenumber 1",
            "score cp 4",
        ] {
            info.read(line);
        }
        assert_eq!(
            (info.score, info.depth, info.nodes),
            (Some(Score::centipawns(17)), 1, 40)
        );
        info.read("info depth 4 score mate -3 nodes 50 pv a2a3 cp 3");
        assert_eq!(
            (info.score, info.depth, info.nodes),
            (Score::mate(-3), 4, 50)
        );
    }
}
