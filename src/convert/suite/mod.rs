//! Opening suites: the lines or positions that games begin with, for matches between engines.

mod lines;
mod positions;
mod ranking;

use std::{io::BufWriter, path::Path};

use shakmaty::{Color, variant::VariantPosition};

use self::ranking::Ranking;
use super::{
    Converted,
    replace::{Kind, check_replaceable},
};
use crate::{
    error::{At, Error, Result},
    output::AtomicFile,
    progress::Meter,
    sort::Memory,
    tally::Stats,
    tree::TreeMove,
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
    /// White's score in percent in the games that came there, from the one to the other, both among them.
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
    /// Whether the games that came somewhere are balanced as asked; `stats` are White's.
    fn is_balanced(&self, stats: Stats) -> bool {
        self.balance.is_none_or(|(low, high)| {
            let score = stats.score() * 100.0;
            stats.games() > 0 && (low..=high).contains(&score)
        })
    }
}

/// A suite that is made of what a source knows behind some positions, of which there is at least one.
pub(super) struct SuiteOf<'a, S> {
    pub source: &'a S,
    pub starts: &'a [VariantPosition],
    pub suite: &'a Suite,
    /// For the lines and positions on the way.
    pub memory: Memory,
    pub meter: &'a Meter,
}

/// Statistics of a move for White.
fn for_white(mv: &TreeMove, turn: Color) -> Stats {
    let stats = mv.stats.unwrap_or_default();
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

fn begin(path: &Path, kind: Kind) -> Result<AtomicFile> {
    AtomicFile::create_over(path, |old| check_replaceable(old, kind))
}

fn end(out: BufWriter<AtomicFile>, path: &Path, entries: u64) -> Result<Converted> {
    let file = out
        .into_inner()
        .map_err(std::io::IntoInnerError::into_error);
    file.at(path, "write")?.commit()?;
    Ok(Converted {
        entries,
        ..Converted::default()
    })
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

fn none(path: &Path, suite: &Suite, longest: usize) -> Error {
    let plies = suite.plies;
    let why = match longest {
        0 => format!(
            "no line has {plies} half-moves; no move of the starting position is kept: keep moves of fewer games"
        ),
        longest if longest < plies => format!(
            "no line has {plies} half-moves; the longest line kept has {longest}: choose fewer half-moves"
        ),
        _ => "no line is balanced as asked: choose a wider range".to_owned(),
    };
    Error::file(path, format!("would be empty, {why}"))
}
