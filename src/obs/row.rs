//! A row of the table `Book`.

use std::cmp::Ordering;

use shakmaty::uci::UciMove;

use crate::{
    counts::Stats,
    position::{BookMove, Rules, read_move},
};

/// A row of a database.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ObsRow {
    /// The EPD of the position.
    pub epd: String,
    /// The move in coordinates.
    pub mv: String,
    /// The bits of the column `Active`. The standard gives a meaning to the lowest alone; the others are kept.
    pub active: i64,
    /// The games in which the move was played, from the view of the side to move.
    pub stats: Stats,
    /// A comment on the move.
    pub comment: Option<String>,
}

impl ObsRow {
    /// Compares the rows of a position: by descending number of games, then by move.
    pub fn by_games(a: &ObsRow, b: &ObsRow) -> Ordering {
        let games = b.stats.games().cmp(&a.stats.games());
        games.then_with(|| a.mv.cmp(&b.mv))
    }

    /// The default of the column `Active`: the move may be played.
    pub const ACTIVE: i64 = 1;

    /// Returns `true` if the move may be played.
    pub fn is_active(&self) -> bool {
        self.active & 1 == 1
    }

    /// Returns the approximate number of bytes of memory that the row takes.
    pub(crate) fn bytes(&self) -> usize {
        let comment = self.comment.as_ref().map_or(0, String::len);
        size_of::<ObsRow>() + self.epd.len() + self.mv.len() + comment
    }

    /// Adds the games of another row of the same position and move. Keeps this row's comment, or takes the other's if it has none.
    pub(super) fn join(&mut self, other: ObsRow) {
        self.stats += other.stats;
        self.comment = self.comment.take().or(other.comment);
    }
}

/// The rows that a reader passed over because they are malformed or illegal.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct PassedOver {
    /// The number of rows.
    pub rows: u64,
    /// A description of the first of them.
    pub example: Option<String>,
}

impl PassedOver {
    /// Counts a row that was read but is not used.
    pub(crate) fn row(&mut self, row: &ObsRow, reason: &str) {
        self.rows += 1;
        self.example
            .get_or_insert_with(|| format!("\"{}\" \"{}\": {reason}", row.epd, row.mv));
    }

    /// Counts a row that cannot be read.
    pub(super) fn problem(&mut self, problem: String) {
        self.rows += 1;
        self.example.get_or_insert(problem);
    }

    /// Adds the rows that another reader passed over.
    pub(crate) fn add(&mut self, other: PassedOver) {
        self.rows += other.rows;
        self.example = self.example.take().or(other.example);
    }
}

/// Returns the legal move that a row's text describes, in coordinate or algebraic notation. Returns `None` if there is none.
pub fn legal_move<P: Rules>(pos: &P, text: &str) -> Option<BookMove> {
    let coordinates = UciMove::from_ascii(text.as_bytes());
    let mv = coordinates.ok().and_then(|mv| mv.to_move(pos).ok());
    mv.or_else(|| read_move(pos, text.as_bytes()).ok())
        .map(BookMove::from)
}
