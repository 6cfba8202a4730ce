//! Opening suites: the lines or positions that games begin with, for matches between engines.
//!
//! Of a database or a book, a [`SuiteOf`] walks the moves that are known. Of games, [`GameLines`] counts the lines as
//! they were played. Both rank what they find, and write it in the same way.

mod games;
mod lines;
mod positions;
mod ranking;
mod starts;
mod write;

use std::path::Path;

use shakmaty::{Color, variant::VariantPosition};

pub(crate) use self::{
    games::{GameLine, GameLines},
    starts::is_chess960_start,
    write::begin,
};
use self::{ranking::Ranking, write::none};
pub use self::{starts::read_starts, write::SuiteFormat};
use crate::{
    error::{Error, Result},
    output::AtomicFile,
    position::Keyed,
    progress::Meter,
    sort::Memory,
    tally::Stats,
    tree::{Source, TreeMove},
};

/// What a suite has in it.
#[derive(Clone, PartialEq, Debug)]
pub struct Suite {
    /// Half-moves of each line. Default: 8.
    pub plies: usize,
    /// The most lines or positions, none for all: the first in their order.
    pub limit: Option<usize>,
    /// Puts them into an order that looks random, which this number and the moves alone decide. Default: the commonest
    /// first.
    pub seed: Option<u64>,
    /// White's score in percent in all games that came to the position after a line, from the one to the other, both
    /// among them.
    pub balance: Option<(f64, f64)>,
    /// Leaves lines out that lead to the position of one before them.
    pub unique: bool,
    /// Whether EPDs say the counters of moves, as `hmvc` and `fmvn`; of several ways to a position, the smallest.
    pub opcodes: bool,
    /// Where lines start, none for the starting position.
    pub starts: Vec<VariantPosition>,
}

impl Default for Suite {
    fn default() -> Suite {
        Suite {
            plies: 8,
            limit: None,
            seed: None,
            balance: None,
            unique: false,
            opcodes: false,
            starts: Vec::new(),
        }
    }
}

impl Suite {
    /// Whether the commonest are wanted of all, and not others.
    fn takes_the_commonest(&self) -> bool {
        self.limit.is_some() && self.seed.is_none()
    }

    /// Whether the games of a position are balanced as asked; `stats` are White's.
    fn is_balanced(&self, stats: Option<Stats>) -> bool {
        self.balance.is_none_or(|(low, high)| {
            stats.is_some_and(|stats| {
                let score = stats.score() * 100.0;
                stats.games() > 0 && (low..=high).contains(&score)
            })
        })
    }
}

/// What making a suite came to.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) struct Written {
    /// Its lines or positions.
    pub entries: u64,
    /// Whether lines were left that nobody looked at.
    pub is_cut: bool,
}

/// White's results in all games that came to a position, `None` where games are not counted.
pub(crate) type Results<'a> = &'a dyn Fn(&Keyed<VariantPosition>) -> Result<Option<Stats>>;

/// A suite that is made of the moves that a source has after some positions, of which there is at least one.
pub(crate) struct SuiteOf<'a, S> {
    pub source: &'a S,
    pub results: Results<'a>,
    pub starts: &'a [VariantPosition],
    pub suite: &'a Suite,
    /// For the lines and positions on the way.
    pub memory: Memory,
    pub meter: &'a Meter,
}

impl<S: Source> SuiteOf<'_, S> {
    /// Writes the suite, and puts it in place.
    pub(crate) fn write(&self, file: AtomicFile, format: SuiteFormat) -> Result<Written> {
        match format {
            SuiteFormat::Pgn => self.write_lines(file),
            SuiteFormat::Epd => self.write_positions(file),
        }
    }
}

/// Results of the side to move, for White.
pub(crate) fn for_white(stats: Stats, turn: Color) -> Stats {
    match turn {
        Color::White => stats,
        Color::Black => Stats {
            wins: stats.losses,
            draws: stats.draws,
            losses: stats.wins,
        },
    }
}

/// How many games a move has; of a book, its weight.
fn games(mv: &TreeMove) -> u64 {
    mv.stats.map_or(mv.weight, Stats::games)
}

fn too_many(path: &Path, suite: &Suite) -> Error {
    let plies = suite.plies;
    Error::file(
        path,
        format!(
            "would have more than {} lines of {plies} half-moves: choose fewer half-moves, or keep only moves of more \
             games",
            Ranking::MOST
        ),
    )
}
