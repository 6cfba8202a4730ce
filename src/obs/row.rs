//! A row of the table `Book`.

use std::cmp::Ordering;

use shakmaty::uci::UciMove;

use crate::{
    position::{BookMove, Rules, read_move},
    tally::Stats,
};

/// A row of a database.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Row {
    /// The position.
    pub epd: String,
    /// The move in coordinates.
    pub mv: String,
    /// The bits of the column `Active`. The standard gives a meaning to the lowest alone; the others are kept.
    pub active: i64,
    /// The games in which it was played, for the side to move.
    pub stats: Stats,
    /// A remark on the move.
    pub comment: Option<String>,
}

impl Row {
    /// The order of the rows of a position: the most games first, and of equal ones by the move.
    pub fn by_games(a: &Row, b: &Row) -> Ordering {
        let games = b.stats.games().cmp(&a.stats.games());
        games.then_with(|| a.mv.cmp(&b.mv))
    }

    /// The column `Active` of a move that nothing is said of: it is to be played.
    pub const ACTIVE: i64 = 1;

    /// Whether the move is to be played.
    pub fn is_active(&self) -> bool {
        self.active & 1 == 1
    }

    /// About how many bytes of memory the row takes.
    pub(crate) fn bytes(&self) -> usize {
        let comment = self.comment.as_ref().map_or(0, String::len);
        size_of::<Row>() + self.epd.len() + self.mv.len() + comment
    }

    /// Adds the games of another row of the same position and move. A remark that only one of them has stays.
    pub(super) fn join(&mut self, other: Row) {
        self.stats += other.stats;
        self.comment = self.comment.take().or(other.comment);
    }
}

/// Rows that were passed over, because they make no sense.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct PassedOver {
    /// How many.
    pub rows: u64,
    /// The fault of one of them.
    pub example: Option<String>,
}

impl PassedOver {
    /// Counts a row that was read.
    pub(crate) fn row(&mut self, row: &Row, reason: &str) {
        self.rows += 1;
        self.example
            .get_or_insert_with(|| format!("\"{}\" \"{}\": {reason}", row.epd, row.mv));
    }

    /// Counts a row that cannot be read.
    pub(super) fn problem(&mut self, problem: String) {
        self.rows += 1;
        self.example.get_or_insert(problem);
    }

    /// Counts those of another part too.
    pub(crate) fn add(&mut self, other: PassedOver) {
        self.rows += other.rows;
        self.example = self.example.take().or(other.example);
    }
}

/// The legal move that a row's text is: in coordinates, or as people write moves.
pub fn legal_move<P: Rules>(pos: &P, text: &str) -> Option<BookMove> {
    let coordinates = UciMove::from_ascii(text.as_bytes());
    let mv = coordinates.ok().and_then(|mv| mv.to_move(pos).ok());
    mv.or_else(|| read_move(pos, text.as_bytes()).ok())
        .map(BookMove::from)
}
