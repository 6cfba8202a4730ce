//! What a run did.

use std::{
    collections::BTreeMap,
    fmt,
    path::{Path, PathBuf},
};

use crate::{position::Variant, provenance::Games};

/// A game that could not be replayed to its end.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Rejection {
    /// The input.
    pub file: PathBuf,
    /// The number of the game in the input, from 0.
    pub game: u64,
    /// Where the move, or whatever else is wrong, stands in the unpacked input, in bytes.
    pub offset: u64,
    /// How many half-moves were played before it.
    pub ply: usize,
    /// The move as it is written; empty if something else is wrong.
    pub mv: String,
    /// What is wrong.
    pub reason: String,
}

impl fmt::Display for Rejection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Rejection {
            file,
            game,
            offset,
            ply,
            mv,
            reason,
        } = self;
        write!(
            f,
            "{}: game {game}, byte {offset}, after {ply} half-moves: ",
            file.display()
        )?;
        if !mv.is_empty() {
            write!(f, "\"{}\": ", mv.escape_debug())?;
        }
        write!(f, "{reason}")
    }
}

/// What a run did. The first 100 rejected games are described.
#[derive(Clone, PartialEq, Default, Debug)]
pub struct Report {
    /// What became of the games.
    pub games: Games,
    /// Half-moves that count.
    pub plies: u64,
    /// Positions in which a counted move was played.
    pub positions: u64,
    /// Pairs of position and move that were counted.
    pub entries: u64,
    /// The book, if one was made.
    pub book: Option<BookReport>,
    /// The index, if one was made.
    pub index: Option<IndexReport>,
    /// The OOBS database, if one was made.
    pub obs: Option<ObsReport>,
    /// Half-moves that are not in the book because a rook may castle that is not the outermost of its
    /// side, which only Chess960 knows.
    pub left_out: u64,
    /// Games that count, by their variant, unless only standard chess was asked for.
    pub variants: BTreeMap<Variant, u64>,
    /// The first rejected games, in the order of the inputs.
    pub rejected: Vec<Rejection>,
    /// What the user may want to know of the inputs, a line each.
    pub warnings: Vec<String>,
}

impl Report {
    /// How many rejected games are described.
    pub const DESCRIBED: usize = 100;
}

/// A book that was made.
#[derive(Clone, PartialEq, Debug)]
pub struct BookReport {
    /// The file.
    pub path: PathBuf,
    /// Its records, without the header.
    pub entries: u64,
    /// The largest weight before scaling.
    pub largest_weight: u64,
    /// What every weight was multiplied with.
    pub scale: f64,
}

/// An index that was made.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct IndexReport {
    /// The directory.
    pub path: PathBuf,
    /// Games of the inputs, all of which have a record.
    pub games: u64,
    /// Positions that a game reached.
    pub positions: u64,
    /// Pairs of a position and a game that reached it.
    pub postings: u64,
}

/// An OOBS database that was made.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ObsReport {
    /// The file.
    pub path: PathBuf,
    /// Its rows, one for each move of each position.
    pub rows: u64,
}

/// A variant whose games were filtered.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum FilteredVariant {
    /// Another one was asked for.
    Other(Variant),
    /// It has no place in the book that is being made.
    Unnumbered(Variant),
    /// Its name means nothing here.
    Unknown(String),
    /// Nor do these, which are too many to be told apart.
    More,
}

impl FilteredVariant {
    pub(super) fn warning(&self, games: u64) -> String {
        match self {
            FilteredVariant::Other(variant) => {
                format!("{variant}: {games} games filtered, --variant {variant} counts them")
            }
            FilteredVariant::Unnumbered(variant) => format!(
                "{variant}: {games} games filtered, because the Polyglot format has no number for it"
            ),
            FilteredVariant::Unknown(name) => {
                format!(
                    "unknown variant \"{}\": {games} games filtered",
                    name.escape_debug()
                )
            }
            FilteredVariant::More => format!("more unknown variants: {games} games filtered"),
        }
    }
}

/// A problem that cost no game.
pub(super) fn stray_text(file: &Path, offset: u64) -> String {
    format!(
        "{}: text that belongs to no game was passed over, first at byte {offset}",
        file.display()
    )
}
