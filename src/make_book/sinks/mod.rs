//! The outputs of a run, a file for each.
//!
//! A [`Plan`] says what an output needs of the run, and begins it next to its target before anything is read. From then
//! on it is a [`Sink`]: it takes what each batch of games brings, writes when all is counted, and hands back a finished
//! output. A new output is a new file here, a line in [`plans`], and its option.

mod book;
#[cfg(feature = "parquet")]
mod counts;
mod index;
#[cfg(feature = "obs")]
mod obs;
mod suite;

use std::{collections::BTreeMap, path::Path};

use shakmaty::Color;

use super::{MakeBook, Phase, main_line::Ply, progress::Amounts, write::Counted};
use crate::{
    error::{Error, Result},
    output::Finished,
    pgn::{GameReader, GameResult},
    position::Variant,
    sort::Memory,
};

/// Says what an output needs and how it begins, if the options ask for it.
type Planned = for<'a> fn(&'a MakeBook, &mut Needs) -> Option<Plan<'a>>;

/// The outputs that the options ask for, in the order in which they are written, and what they need.
pub(super) fn plans(options: &MakeBook) -> (Vec<Plan<'_>>, Needs) {
    let all: &[Planned] = &[
        suite::plan,
        #[cfg(feature = "obs")]
        obs::plan,
        #[cfg(feature = "parquet")]
        counts::plan,
        index::plan,
        book::plan,
    ];
    let mut needs = Needs::default();
    let plans = all.iter().filter_map(|plan| plan(options, &mut needs));
    let plans: Vec<Plan<'_>> = plans.collect();
    if plans.is_empty() {
        // For the report.
        needs.keys = true;
        needs.rare_positions = true;
    }
    (plans, needs)
}

/// An output that is to be made.
pub(super) struct Plan<'a> {
    pub path: &'a Path,
    /// Why the output cannot be made of counts, if it takes games.
    pub of_games: Option<&'static str>,
    /// How many of the equal shares of memory it takes while games are read. Each tally takes one.
    pub memory_shares: usize,
    /// Begins the output with that memory.
    pub begin: Begin<'a>,
}

type Begin<'a> = Box<dyn FnOnce(Memory) -> Result<Box<dyn Sink + 'a>> + 'a>;

impl<'a> Plan<'a> {
    /// An output that is made of counts alone.
    fn of_counts<S: Sink + 'a>(path: &'a Path, begin: impl FnOnce() -> Result<S> + 'a) -> Plan<'a> {
        Plan {
            path,
            of_games: None,
            memory_shares: 0,
            begin: Box::new(|_| Ok(Box::new(begin()?))),
        }
    }
}

/// The data that the outputs of a run need besides its totals.
#[derive(Default, Debug)]
pub(super) struct Needs {
    /// Counts by the keys of positions.
    pub keys: bool,
    /// Counts by the identities of positions. In standard chess these are the keys.
    pub identities: bool,
    /// Which identities share a key.
    pub shared_keys: bool,
    /// Where games started, and how many.
    pub starts: bool,
    /// Also the positions without a move that is played often enough to be kept.
    pub rare_positions: bool,
    /// How much the counted moves weigh in a book.
    pub weights: bool,
    /// Only variants that the Polyglot format has a number for.
    pub numbered_variants: bool,
    /// The identities of the positions of each game.
    pub game_identities: bool,
    /// The length of each game, with the half-moves that do not count.
    pub game_lengths: bool,
    /// The EPD of the start of each game that does not start as usual.
    pub game_starts: bool,
}

impl Needs {
    /// Adds what an output needs that is made of the moves of all positions.
    fn all_positions(&mut self, options: &MakeBook) {
        let by_identity = options.distinguishes_variants();
        self.keys |= !by_identity;
        self.identities |= by_identity;
        self.starts = true;
        self.rare_positions = true;
    }

    /// Whether the identities of the positions of each game are needed.
    pub(super) fn line_identities(&self) -> bool {
        self.identities || self.game_identities
    }

    /// Whether the report says how many half-moves no book can have.
    pub(super) fn left_out(&self) -> bool {
        self.keys || self.shared_keys
    }

    /// How many tallies the run has.
    pub(super) fn tallies(&self) -> usize {
        let tallies = [self.keys, self.identities, self.shared_keys];
        tallies.into_iter().filter(|wanted| *wanted).count()
    }
}

/// An output that has begun.
pub(super) trait Sink: Send + Sync {
    /// What it takes of a batch of about this many half-moves, if it takes games.
    fn batch(&self, _plies: usize) -> Option<Box<dyn BatchSink + '_>> {
        None
    }

    /// Refuses games of these variants together, as soon as they were met.
    ///
    /// # Errors
    ///
    /// [`Error::File`] that names the output.
    fn check_variants(&self, _met: &BTreeMap<Variant, u64>) -> Result<()> {
        Ok(())
    }

    /// How many bytes it has in temporary files.
    fn spilled_bytes(&self) -> u64 {
        0
    }

    /// About how much memory it holds until it is written.
    fn held_bytes(&self) -> usize {
        0
    }

    /// The phase in which it is written, and how long that takes, in units of about a replayed half-move.
    fn cost(&self, _amounts: &Amounts) -> Option<(Phase, f64)> {
        None
    }

    /// Refuses an output that cannot be written, before anything is.
    ///
    /// # Errors
    ///
    /// [`Error::Empty`], or what the format cannot hold.
    fn check(&self, _counted: &Counted<'_>) -> Result<()> {
        Ok(())
    }

    /// Writes the output, and says so in the report. It is complete then, but not in place.
    ///
    /// # Errors
    ///
    /// A disk that cannot take it, a temporary file that cannot be read, and [`Error::Interrupted`].
    fn write(self: Box<Self>, counted: &mut Counted<'_>) -> Result<Finished>;
}

/// The data that a sink takes of the games of one batch. Any thread may hold it.
pub(super) trait BatchSink: Send {
    /// Takes the next game; only its tags were read. The batch is at this offset of its input.
    fn next_game(&mut self, _game: &GameReader<'_>, _batch_offset: u64) {}

    /// Takes the moves of that game, which counts.
    fn count(&mut self, game: &CountedGame<'_>);

    /// Drops the moves of some games, by their ascending numbers: they do not count.
    fn leave_out(&mut self, games: &[u32]);

    /// Does what depends on the order of games. It is called for each batch after those before it, of earlier inputs
    /// too.
    ///
    /// # Errors
    ///
    /// More games than the output can hold, which names the input, and a temporary file that cannot be written.
    fn in_order(&mut self, _input: &Path) -> Result<()> {
        Ok(())
    }

    /// Hands all over to the sink, in any order.
    ///
    /// # Errors
    ///
    /// A temporary file that cannot be written.
    fn add(self: Box<Self>) -> Result<()>;
}

/// A game that counts.
pub(super) struct CountedGame<'a> {
    /// Counts the games of the batch.
    pub number: u32,
    pub variant: Variant,
    pub result: GameResult,
    /// Who moved first.
    pub first_turn: Color,
    /// [Where it started](Needs::game_starts), `None` for the usual place.
    pub start: Option<&'a str>,
    /// How many half-moves it has, [if that is needed](Needs::game_lengths).
    pub length: usize,
    /// The half-moves that count.
    pub plies: &'a [Ply],
    /// The identities of the positions before them, [if they are needed](Needs::game_identities).
    pub identities: &'a [u64],
    /// The key and the identity of the last position.
    pub last_key: u64,
    pub last_identity: u64,
}

/// Refuses games of several variants in an output whose positions do not say by which rules they are played.
fn refuse_several_variants(path: &Path, output: &str, met: &BTreeMap<Variant, u64>) -> Result<()> {
    let mut variants = met.keys();
    let first = variants.next();
    match variants.find(|other| first.is_some_and(|first| !first.is_played_like(**other))) {
        Some(other) => Err(Error::file(
            path,
            format!(
                "{output} is for one variant, and the games are of {} and {other}: choose one",
                first.expect("the other one is the second")
            ),
        )),
        None => Ok(()),
    }
}
