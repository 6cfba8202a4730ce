//! An engine that evaluates positions.

use std::{
    path::PathBuf,
    time::{Duration, Instant},
};

use shakmaty::Chess;

use super::{layout::Eval, score::Score};
use crate::{
    error::{Error, Result},
    position::epd_of,
    task::{self, Feed},
    uci::{EngineProcess, is_answer, option_name, shortened},
};

/// The number of lines that may wait to be read.
const AHEAD: usize = 64;

/// The maximum number of options that an engine may declare, and of characters of their names in an error message.
const MAX_OPTIONS: usize = 1 << 12;
const LONGEST_LIST: usize = 2000;

/// The longest wait that counts as one. While polybook is stopped, as by Ctrl-Z, no time passes for the engine.
const SLICE: Duration = Duration::from_millis(200);

/// The program of an engine and its settings.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct EngineOptions {
    /// The program.
    pub program: PathBuf,
    /// UCI options by their names, such as `Hash`.
    pub options: Vec<(String, String)>,
    /// The number of nodes that the engine searches in each position.
    pub nodes: u64,
    /// The number of processes that run at the same time; 0 for one per core.
    pub jobs: usize,
    /// The maximum time for a position. An engine that takes longer is ended.
    pub time_limit: Duration,
}

/// A running engine that evaluates positions.
pub(super) struct Engine {
    process: EngineProcess,
    lines: Feed<String>,
    /// The name that the engine gave, or that of the program.
    pub name: String,
    time_limit: Duration,
}

impl Engine {
    /// Starts an engine and sets its options.
    pub(super) fn start(options: &EngineOptions) -> Result<Engine> {
        let ahead = AHEAD + options.options.len();
        let (process, output) = EngineProcess::start(&options.program, &[], ahead)?;
        let (lines, _) = task::start("engine", AHEAD, move |lines| {
            output.each_line(|line| lines.send(line))
        })?;
        let mut engine = Engine {
            process,
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
            known.extend(option_name(line));
            if let Some(said) = line.strip_prefix("id name ") {
                name = Some(shortened(said));
            }
            line == "uciok" || known.len() > MAX_OPTIONS
        })?;
        if known.len() > MAX_OPTIONS {
            return Err(self.fails(&format!("names more than {MAX_OPTIONS} options")));
        }
        self.name = name.unwrap_or_else(|| {
            let program = options.program.file_stem().unwrap_or_default();
            program.to_string_lossy().into_owned()
        });
        for (name, value) in &options.options {
            let is_known = known.iter().any(|known| known.eq_ignore_ascii_case(name));
            if !known.is_empty() && !is_known {
                let known = known.join(", ");
                let known: String = known.chars().take(LONGEST_LIST).collect();
                let problem = format!("the engine has no option {name}; it has {known}");
                return Err(Error::file(&options.program, problem));
            }
            self.say(&format!("setoption name {name} value {value}"))?;
        }
        Ok(())
    }

    /// Evaluates a position. The engine forgets the positions before, so that their order does not matter.
    ///
    /// # Errors
    ///
    /// Returns an error if the engine ends, takes longer than the time limit, or gives no score.
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
        self.process.say(line)
    }

    /// Passes lines to `is_last` until it returns `true`.
    ///
    /// # Errors
    ///
    /// Returns an error if the engine ends before, or if that takes longer than the time limit.
    fn read_until(&mut self, mut is_last: impl FnMut(&str) -> bool) -> Result<()> {
        let mut left = self.time_limit;
        // Endless rubbish uses up the time limit too.
        while left > Duration::ZERO {
            let (begin, slice) = (Instant::now(), left.min(SLICE));
            let line = self.lines.next_before(begin + slice)?;
            let elapsed = begin.elapsed();
            match line {
                Some(line) if is_last(&line) => return Ok(()),
                None if elapsed < slice => {
                    return Err(self.process.has_ended("closed its output"));
                }
                _ => left -= elapsed.min(slice),
            }
        }
        let seconds = self.time_limit.as_secs();
        Err(self.fails(&format!("gave no answer in {seconds} s")))
    }

    fn fails(&self, how: &str) -> Error {
        self.process.fails(how)
    }
}

/// The last `info` lines of a search.
#[derive(Default)]
struct EngineInfo {
    /// Seen from the side to move.
    score: Option<Score>,
    depth: u64,
    nodes: u64,
}

impl EngineInfo {
    /// Takes score, depth and nodes of the best variation from a line. Ignores a score that is only a bound.
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
