//! The outputs of a run as the pipeline sees them.
//!
//! A [`Plan`] says what an output needs of the run, and begins it next to its target before anything is read. From then
//! on it is a [`Sink`]: it takes what each batch of games brings, writes when all is counted, and hands back a finished
//! output.

use std::{collections::BTreeMap, path::Path};

use shakmaty::Color;

use super::{
    budget::Budget, counted::Counted, main_line::Ply, progress::Phase, variations::VariationPly,
};
use crate::{
    error::{Error, Result},
    output::Finished,
    pgn::{GameReader, GameResult},
    position::Variant,
};

/// An output that is to be made.
pub(super) struct Plan<'a> {
    pub path: &'a Path,
    /// Why the output cannot be made of counts, if it takes games.
    pub of_games: Option<&'static str>,
    /// How many of the equal shares of memory it takes while games are read. Each tally takes one.
    pub memory_shares: usize,
    /// Begins the output.
    pub begin: Begin<'a>,
}

type Begin<'a> = Box<dyn FnOnce(&Budget) -> Result<Box<dyn Sink + 'a>> + 'a>;

impl<'a> Plan<'a> {
    /// An output that is made of counts alone.
    pub(super) fn of_counts<S: Sink + 'a>(
        path: &'a Path,
        begin: impl FnOnce() -> Result<S> + 'a,
    ) -> Plan<'a> {
        Plan {
            path,
            of_games: None,
            memory_shares: 0,
            begin: Box::new(|_| Ok(Box::new(begin()?))),
        }
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

    /// The phase in which it is written, and about how long that takes, where replaying a thousand half-moves takes 1000.
    fn cost(&self) -> Option<(Phase, u64)> {
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
pub(crate) trait BatchSink: Send {
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
pub(crate) struct CountedGame<'a> {
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
    /// The exact identities of these positions, which counts have, if the identities are needed.
    pub exact_identities: &'a [u64],
    /// The half-moves of its variations, if they count.
    pub branches: &'a [VariationPly],
    /// The key, the identity and the exact identity of the last position, and whether it is for books.
    pub last_key: u64,
    pub last_identity: u64,
    pub last_exact_identity: u64,
    pub last_in_book: bool,
}

/// Refuses games of several variants in an output whose positions do not say by which rules they are played.
pub(super) fn refuse_several_variants(
    path: &Path,
    output: &str,
    met: &BTreeMap<Variant, u64>,
) -> Result<()> {
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
