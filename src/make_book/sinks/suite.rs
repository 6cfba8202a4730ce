//! Writes an opening suite, which consists of the games' opening lines, as an output of a run.

use std::collections::{BTreeMap, HashMap};

use crate::{
    chess::position::{Keyed, Variant, stored},
    error::{Advice, Diagnosis, Error, Result},
    formats::suite::{self, GameLine, GameLines, SuiteFormat, is_chess960_start},
    make_book::{
        data::CollectedData,
        inputs::Inputs,
        needs::Needs,
        options::{MakeBook, SuiteOutput},
        report::SuiteReport,
        sink::{BatchSink, CountedGame, Plan, Sink, refuse_several_variants},
    },
    storage::output::{BufferedFile, Finished},
};

struct SuiteSink<'a> {
    options: &'a MakeBook,
    output: &'a SuiteOutput,
    file: BufferedFile,
    lines: GameLines,
    /// The positions at which lines begin, as EPDs keyed by the identities (hashes) of the positions. Empty if lines
    /// begin at the start of games.
    wanted: HashMap<u64, String>,
    /// The identities of the usual starting positions, by variant.
    usual: [u64; Variant::ALL.len()],
}

/// Returns a plan for writing the opening suite, or `None` if the options request no suite. Adds the data that
/// the suite needs to `needs`.
pub(super) fn plan<'a>(
    options: &'a MakeBook,
    _: &'a Inputs<'_>,
    needs: &mut Needs,
) -> Option<Plan<'a>> {
    let output = options.suite.as_ref()?;
    needs.game_identities = true;
    needs.game_starts |= output.suite.starts.is_empty();
    Some(Plan {
        path: &output.path,
        needs_games_reason: Some("a suite is made from the lines of games"),
        memory_shares: 1,
        begin: Box::new(move |budget| {
            refuse_long(options, output)?;
            let starts = output.suite.starts.iter();
            Ok(Box::new(SuiteSink {
                options,
                output,
                file: suite::begin_suite(&output.path, options.force)?,
                lines: GameLines::new(&budget.share),
                // If positions differ only in their move counters, the first one is kept.
                wanted: starts
                    .rev()
                    .map(|pos| (Keyed::new(pos.clone()).identity(), stored(pos)))
                    .collect(),
                usual: Variant::ALL.map(|variant| Keyed::new(variant.start()).identity()),
            }))
        }),
    })
}

/// Returns an error if the lines of the suite `output` are longer than `--max-ply`, the maximum number of half-moves
/// that the run counts in each game.
fn refuse_long(options: &MakeBook, output: &SuiteOutput) -> Result<()> {
    let (plies, max_ply) = (&output.suite.plies, options.max_ply);
    if *plies.end() <= max_ply {
        return Ok(());
    }
    let plies = suite::half_moves(plies);
    let problem = Diagnosis::new(format!(
        "the suite needs lines of {plies}, but only {max_ply} of each game are counted"
    ))
    .advise(Advice::larger("max-ply"))
    .advise(Advice::smaller("plies"));
    Err(Error::file(&output.path, problem))
}

impl Sink for SuiteSink<'_> {
    fn batch(&self, _plies: usize) -> Option<Box<dyn BatchSink + '_>> {
        let lines = Vec::new();
        Some(Box::new(SuiteBatch { sink: self, lines }))
    }

    fn check_variants(&self, met: &BTreeMap<Variant, u64>) -> Result<()> {
        match self.output.format {
            SuiteFormat::Epd => refuse_several_variants(&self.output.path, "a suite of EPDs", met),
            SuiteFormat::Pgn => Ok(()),
        }
    }

    fn spilled_bytes(&self) -> u64 {
        self.lines.spilled_bytes()
    }

    fn write(self: Box<Self>, counted: &mut CollectedData<'_>) -> Result<Finished> {
        let SuiteOutput {
            path,
            format,
            suite,
        } = self.output;
        let min_game = self.options.move_filter.min_game;
        let (file, lines) = self.lines.write(self.file, *format, suite, min_game)?;
        if lines.entries == 0 && !self.options.allow_empty {
            let reason = lines.why_empty(suite, *format, min_game);
            return Err(Error::Empty { reason });
        }
        counted.games.report.suite = Some(SuiteReport {
            path: path.clone(),
            plies: suite.plies.clone(),
            lines: lines.entries,
            limit: suite.limit,
            rare: lines.rare,
            outside: lines.outside,
            conditions: suite.conditions(),
            unevaluated: suite.evals.as_ref().map(|_| lines.unevaluated),
            repeated: lines.repeated,
        });
        file.finish()
    }
}

impl SuiteSink<'_> {
    /// Returns the EPD of a game's starting position if a line of the suite may begin there. The usual starting
    /// position of the variant is returned as an empty string, which is how a [`GameLine`] stores it. Returns `None` if
    /// the game begins in any other position, unless it is a starting position of Chess960.
    fn start<'g>(&self, game: &CountedGame<'g>) -> Option<&'g str> {
        let first = game.identities.first().copied();
        if first.unwrap_or(game.last_identity) == self.usual[game.variant as usize] {
            return Some("");
        }
        let is_chess960 = game.variant == Variant::Chess960;
        game.start
            .filter(|epd| is_chess960 && is_chess960_start(epd))
    }

    /// Returns the lines of a game that belong in the suite: one for each length of the suite that the game reaches. If
    /// the suite has start positions (`Suite::starts`), lines begin where the game first reaches each of these
    /// positions. Otherwise, they begin at the start of the game.
    ///
    /// Leaves out a line that leads to the same position as a shorter line from the same start, so that the game counts
    /// only once for each position.
    fn lines(&self, game: &CountedGame<'_>) -> Vec<GameLine> {
        let lengths = &self.output.suite.plies;
        let mut found = Vec::new();
        let mut add_from = |start: &str, first: usize| {
            let mut ends = Vec::new();
            for length in lengths.clone() {
                let Some(moves) = game.plies.get(first..first + length) else {
                    break;
                };
                let end = game.identities.get(first + length).copied();
                let end = end.unwrap_or(game.last_identity);
                if !ends.contains(&end) {
                    ends.push(end);
                    let moves = moves.iter().map(|ply| ply.mv);
                    found.push(GameLine::new(game.variant, start, moves, end, game.result));
                }
            }
        };
        if self.wanted.is_empty() {
            if let Some(start) = self.start(game) {
                add_from(start, 0);
            }
            return found;
        }
        let mut met = Vec::new();
        for (ply, identity) in game.identities.iter().enumerate() {
            if let Some(start) = self.wanted.get(identity)
                && !met.contains(identity)
            {
                met.push(*identity);
                add_from(start, ply);
            }
        }
        found
    }
}

/// Collects opening lines from one batch of games. The lines are for a suite, which is a file of openings from which
/// engine matches start.
struct SuiteBatch<'a> {
    sink: &'a SuiteSink<'a>,
    /// The lines, each with the number of its game in the batch.
    lines: Vec<(u32, GameLine)>,
}

impl BatchSink for SuiteBatch<'_> {
    fn count(&mut self, game: &CountedGame<'_>) {
        let lines = self.sink.lines(game).into_iter();
        self.lines.extend(lines.map(|line| (game.number, line)));
    }

    fn leave_out(&mut self, games: &[u32]) {
        self.lines
            .retain(|(game, _)| games.binary_search(game).is_err());
    }

    fn add(self: Box<Self>) -> Result<()> {
        let lines = self.lines.into_iter().map(|(_, line)| line);
        self.sink.lines.add(&lines.collect::<Vec<_>>())
    }
}
