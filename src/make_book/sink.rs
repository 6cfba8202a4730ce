//! The interface between an output and the pipeline.
//!
//! A [`Plan`] describes what an output needs from the run, and opens the output before any input is read. The open
//! output is a [`Sink`]: it collects data from each batch of games, writes the output when all games are counted, and
//! returns a finished output that only needs to be renamed.

use std::{collections::BTreeMap, path::Path};

use shakmaty::Color;

use super::{
    budget::Budget,
    data::CollectedData,
    main_line::{Ply, VariationPly},
    report::Phase,
};
use crate::{
    chess::position::Variant,
    error::{Advice, Diagnosis, Error, Result},
    games::{
        openings::OpeningNumber,
        pgn::{GameReader, GameResult},
    },
    storage::output::Finished,
};

/// A plan for an output of a `make-book` run: a description of the output, and a function that opens it.
pub(super) struct Plan<'a> {
    pub path: &'a Path,
    /// The reason why the output can be made only from games, or `None` if it can also be made from counts.
    pub needs_games_reason: Option<&'static str>,
    /// The number of memory shares that the output takes while games are read. All shares have the same size; each
    /// tally takes one of them.
    pub memory_shares: usize,
    /// The function that opens the output.
    pub begin: Begin<'a>,
}

type Begin<'a> = Box<dyn FnOnce(&Budget) -> Result<Box<dyn Sink + 'a>> + 'a>;

impl<'a> Plan<'a> {
    /// Creates a plan for an output that needs only the counts of moves, and no data about individual games. `path` is
    /// the path of the output, and `begin` opens the output.
    pub(super) fn of_counts<S: Sink + 'a>(
        path: &'a Path,
        begin: impl FnOnce() -> Result<S> + 'a,
    ) -> Plan<'a> {
        Plan {
            path,
            needs_games_reason: None,
            memory_shares: 0,
            begin: Box::new(|_| Ok(Box::new(begin()?))),
        }
    }
}

/// An open output of a `make-book` run, which collects data from games and is written when all games are counted.
pub(super) trait Sink: Send + Sync {
    /// Returns a collector for the games of one batch. `_plies` is the approximate number of half-moves in the batch.
    /// Returns `None` if the output is made only from the counts of moves, and needs no data about individual games.
    fn batch(&self, _plies: usize) -> Option<Box<dyn BatchSink + '_>> {
        None
    }

    /// Checks that the output can contain games of all variants that the run has counted so far. `_met` maps each of
    /// these variants to its number of games. The run calls this function after each batch of games.
    ///
    /// # Errors
    ///
    /// Returns [`Error::File`] with the path of the output if the output cannot contain one of the variants.
    fn check_variants(&self, _met: &BTreeMap<Variant, u64>) -> Result<()> {
        Ok(())
    }

    /// Returns `true` if further games would not change the output, because it is full. If this is true for all outputs
    /// of a run, the run reads no further games.
    fn is_satisfied(&self) -> bool {
        false
    }

    /// Returns the number of bytes that the output has written to temporary files so far.
    fn spilled_bytes(&self) -> u64 {
        0
    }

    /// Returns the approximate number of bytes of memory that the output occupies until it is written.
    fn held_bytes(&self) -> usize {
        0
    }

    /// Returns the phase in which the output is written, and an estimate of the time for writing it, in thousandths of
    /// the time for reading the inputs. Returns `None` if the time is negligible.
    fn cost(&self) -> Option<(Phase, u64)> {
        None
    }

    /// Checks that the output can be written from the collected data. All outputs are checked before the first one is
    /// written.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Empty`] if the output would contain nothing. Returns another error if the format of the output
    /// cannot contain a part of the data.
    fn check(&self, _counted: &CollectedData<'_>) -> Result<()> {
        Ok(())
    }

    /// Writes the output and adds its report to `counted`. The returned output is complete, but not renamed to its
    /// target yet.
    ///
    /// # Errors
    ///
    /// Returns an error if the disk is full, if a temporary file cannot be read, or if the run is cancelled.
    fn write(self: Box<Self>, counted: &mut CollectedData<'_>) -> Result<Finished>;
}

/// Returns `true` if further games would change none of the outputs. Returns `false` for a run without outputs, because
/// it collects counts for its caller and needs all games.
pub(super) fn are_satisfied(sinks: &[Box<dyn Sink + '_>]) -> bool {
    !sinks.is_empty() && sinks.iter().all(|sink| sink.is_satisfied())
}

/// A collector of the data that an output needs from the games of one batch.
pub(crate) trait BatchSink: Send {
    /// Called when a game begins, of which only the tags have been read. `_batch_offset` is the offset of the game's
    /// batch in its input, in bytes.
    fn next_game(&mut self, _game: &GameReader<'_>, _batch_offset: u64) {}

    /// Called when all games of the batch have been read. `_text` is the text of the batch, which begins at
    /// `_batch_offset` in its input.
    fn end_batch(&mut self, _text: &[u8], _batch_offset: u64) {}

    /// Adds the moves of the current game to the collected data. The run does not call this function for games that a
    /// filter or an error excludes.
    fn count(&mut self, game: &CountedGame<'_>);

    /// Called for a game of the batch that meets the conditions but cannot be read to its end. `_number` is its number
    /// in the batch, and `_end` is the offset in the text of the batch at which it ends.
    fn reject(&mut self, _number: u32, _end: usize) {}

    /// Removes the data of games that are duplicates of earlier games. `games` contains the numbers of these games in
    /// the batch, in ascending order.
    fn leave_out(&mut self, games: &[u32]);

    /// Does the work that depends on the order of the games in all inputs, such as numbering them consecutively. The
    /// run calls this function once for each batch of games, in the order of the inputs. `_input` is the path of the
    /// batch's input.
    ///
    /// By default, does nothing.
    ///
    /// # Errors
    ///
    /// Returns an error that names the input if there are more games than the output can contain. Also returns an error
    /// if a temporary file cannot be written.
    fn process_in_order(&mut self, _input: &Path) -> Result<()> {
        Ok(())
    }

    /// Adds the collected data to the output. The run calls this function once for each batch, in any order.
    ///
    /// # Errors
    ///
    /// Returns an error if a temporary file cannot be written.
    fn add(self: Box<Self>) -> Result<()>;
}

/// A game that is counted, with its moves and positions.
pub(crate) struct CountedGame<'a> {
    /// The number of the game in its batch.
    pub number: u32,
    /// The offset in the text of the batch at which the game ends.
    pub end: usize,
    /// The numbers of half-moves after which the query about positions held.
    pub matches: &'a [u32],
    pub variant: Variant,
    /// Whether the game is contained in tallies, from which books and counts are made.
    pub is_tallied: bool,
    pub result: GameResult,
    /// The side to move in the starting position of the game.
    pub first_turn: Color,
    /// The EPD of the starting position, if an output [needs it](Needs::game_starts). `None` for a game of standard
    /// chess without a `FEN` tag.
    pub start: Option<&'a str>,
    /// The number of half-moves, including those that are not counted if an output [needs them](Needs::game_lengths).
    pub length: usize,
    /// The hash of the starting position and of all moves, if an output [needs it](Needs::game_hashes).
    pub hash: u64,
    /// The half-moves of the main line that are counted.
    pub plies: &'a [Ply],
    /// The identities (hashes) of the positions before the half-moves in `plies`, if an output [needs
    /// them](Needs::game_identities).
    pub identities: &'a [u64],
    /// The exact identities of the positions before the half-moves in `plies`, under which moves are counted.
    pub exact_identities: &'a [u64],
    /// The opening of the game, including moves that are not counted, if an output [needs it](Needs::openings).
    pub opening: OpeningNumber,
    /// The half-moves of the game's variations, if the run counts them.
    pub branches: &'a [VariationPly],
    /// The position key of the last position of the game.
    pub last_key: u64,
    /// The identity (a hash) of the last position.
    pub last_identity: u64,
    /// The exact identity (a hash) of the last position of the game.
    pub last_exact_identity: u64,
    /// Whether the key of the last position is a valid book key.
    pub last_in_book: bool,
}

/// Returns an error if `met`, which maps the variants of the games to their numbers of games, contains several
/// variants. It is used for an output that cannot store the variant of each position. `output` is the name of the
/// output's format, and `path` is its path, both for the error message.
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
            Diagnosis::new(format!(
                "{output} can contain games of only one variant, but the games are of {} and {other}",
                first.expect("the other one is the second")
            ))
            .advise(Advice::option("choose one of the two with {}", "variant")),
        )),
        None => Ok(()),
    }
}
