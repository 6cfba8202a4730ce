//! Trees of moves: everything that can be reached from a position by the moves of a book, a database or an index.
//!
//! A [`Source`] returns the moves of a position. Books, databases and indexes are sources. A [`Tree`] walks from position to position and continues each position
//! once. It is written as PGN, text or JSON lines during the walk, so it can be larger than memory.
//!
//! ```
//! use polybook::{
//!     MakeBook, book::Book, pgn::Input, position::Variant, progress::Meter,
//!     tree::{Limits, Tree},
//! };
//!
//! # let dir = tempfile::tempdir()?;
//! # let bin = dir.path().join("book.bin");
//! MakeBook::new([Input::file("data/famous.pgn")]).max_ply(2).min_game(6).bin(&bin).run()?;
//! let mut text = Vec::new();
//! let book = Book::open(&bin)?;
//! let meter = Meter::default();
//! Tree::new(&book, Variant::Standard.start(), Limits::default(), &meter).write_text(&mut text, &bin)?;
//! let text = String::from_utf8(text)?;
//! assert!(text.starts_with("1. e4 "), "{text}");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod find;
#[cfg(test)]
mod tests;
mod text;

use shakmaty::{Position, uci::UciMove, variant::VariantPosition};

pub use self::find::{FoundPositions, Wanted, book_positions};
pub(crate) use self::text::{GameWriter, move_number, push_move};
pub use crate::walk::{
    Branch, EvaluatedSource, Limits, LinesOf, Order, Replies, Source, Tree, TreeEvent, TreeMove,
    Union,
};
use crate::{
    book::{Book, each_move_once},
    counts::Wdl,
    error::{Error, Result},
    explorer::{Explorer, Filters, Line, Query, View},
    index::PositionStats,
    position::{Keyed, Variant},
};

/// The format of a tree.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum TreeFormat {
    /// PGN: games with variations.
    Pgn,
    /// Text: one move a line, indented by its depth.
    Text,
    /// JSON lines: one document for each position.
    Jsonl,
}

/// The legal moves of the book's records, including those of weight 0, sorted by weight in descending order.
impl Source for Book {
    fn moves(&self, pos: &Keyed<VariantPosition>) -> Result<Vec<TreeMove>> {
        let entries = Book::moves(self, pos.key())?;
        let entries = each_move_once(pos.position(), entries).into_iter();
        let legal = entries.filter_map(|entry| {
            let mv = entry.mv.to_move(pos.position())?;
            Some(TreeMove::without_evaluation(mv, entry.weight.into(), None))
        });
        Ok(legal.collect())
    }

    fn node(&self, pos: &Keyed<VariantPosition>) -> u64 {
        pos.exact_identity()
    }

    fn lacks(&self, key: u64) -> bool {
        self.certainly_lacks(key)
    }
}

/// The legal moves of the database's active rows, sorted by games in descending order.
#[cfg(feature = "obs")]
impl Source for crate::obs::Obs {
    fn moves(&self, pos: &Keyed<VariantPosition>) -> Result<Vec<TreeMove>> {
        let rows = crate::obs::Obs::moves(self, pos.position())?;
        let active = rows.into_iter().filter(crate::obs::ObsRow::is_active);
        let legal = active.filter_map(|row| {
            let mv = crate::obs::legal_move(pos.position(), &row.mv)?.to_move(pos.position())?;
            let weight = crate::book::Weights::default().weight(row.stats);
            Some(TreeMove::without_evaluation(mv, weight, Some(row.stats)))
        });
        Ok(legal.collect())
    }

    fn refuse_changed(&self) -> Result<()> {
        crate::obs::Obs::refuse_changed(self)
    }
}

/// The moves that games played in the position, sorted by games in descending order. The results of a move are those of
/// all games that reached the position after it, by any move. The index must be one of the fork with statistics. The
/// source of moves of an explorer's index is [`Explored`].
impl Source for crate::index::Index {
    fn moves(&self, pos: &Keyed<VariantPosition>) -> Result<Vec<TreeMove>> {
        if self.kind().is_of_explorer() {
            let problem = "is an explorer's index: open it with Explorer::open, and use tree::Explored as the source of moves";
            return Err(Error::file(self.path(), problem));
        }
        let Some(here) = stats_of(self, pos)? else {
            if self.games_of(pos)?.is_empty() {
                return Ok(Vec::new());
            }
            let problem = "has no statistics: make it again with --index-stats, or make an index with make-book --explorer";
            return Err(Error::file(self.path(), problem));
        };
        let mut moves = Vec::new();
        for mv in here.moves {
            // A move that is not legal here belongs to another position with the same key.
            let Some(mv) = mv.to_move(pos.position()) else {
                continue;
            };
            let mut after = pos.clone();
            after.play(mv);
            let there = stats_of(self, &after)?.unwrap_or_default();
            let stats = for_mover(
                pos.position(),
                there.white_wins(),
                there.draws,
                there.black_wins(),
            );
            moves.push(TreeMove::without_evaluation(mv, there.games, Some(stats)));
        }
        // The sort is stable, so moves with equal games stay sorted by their numbers.
        moves.sort_by_key(|mv| std::cmp::Reverse(mv.weight));
        Ok(moves)
    }
}

/// Returns the statistics of a position in an index, added up over all Polyglot keys under which the position may be
/// stored. Returns `None` if the index contains no statistics of the position.
fn stats_of(
    index: &crate::index::Index,
    pos: &Keyed<VariantPosition>,
) -> Result<Option<PositionStats>> {
    let mut sum: Option<PositionStats> = None;
    for key in pos.equal_keys() {
        let Some(stats) = index.stats(key)? else {
            continue;
        };
        let sum = sum.get_or_insert_default();
        sum.games += stats.games;
        sum.white_score += stats.white_score;
        sum.draws += stats.draws;
        sum.moves.extend(stats.moves);
        sum.moves.sort_unstable();
        sum.moves.dedup();
    }
    Ok(sum)
}

/// A source that returns the moves of an explorer's index: the moves that games of one variant played from a position,
/// with their results.
#[derive(Debug)]
pub struct Explored(pub Explorer, pub Variant);

/// The moves that games played in the position, with the results of these games, sorted by games in descending order.
impl Source for Explored {
    fn moves(&self, pos: &Keyed<VariantPosition>) -> Result<Vec<TreeMove>> {
        let Explored(explorer, variant) = self;
        played(explorer, *variant, pos.position(), &Filters::default())
    }
}

/// Returns the moves that were played in `pos` in the games of `variant` that pass `filters`. The moves have their
/// results, and are sorted by number of games in descending order.
pub(crate) fn played(
    explorer: &Explorer,
    variant: Variant,
    pos: &VariantPosition,
    filters: &Filters,
) -> Result<Vec<TreeMove>> {
    let query = Query {
        moves: None,
        top_games: 0,
        filters: filters.clone(),
        ..Query::new(Line::at(variant, pos.clone()), View::Masters)
    };
    let moves = explorer.answer(&query)?.moves.into_iter();
    let moves = moves.filter_map(|played| {
        let uci: UciMove = played.uci.parse().ok()?;
        let stats = for_mover(pos, played.white, played.drawn(), played.black);
        let mv = uci.to_move(pos).ok()?;
        Some(TreeMove {
            unfinished: played.unfinished,
            ..TreeMove::without_evaluation(mv, played.games(), Some(stats))
        })
    });
    Ok(moves.collect())
}

/// Converts results from White's view (White's wins, draws, Black's wins) to the view of the side to move in `pos`.
fn for_mover(pos: &VariantPosition, wins: u64, draws: u64, losses: u64) -> Wdl {
    let white = Wdl {
        wins,
        draws,
        losses,
    };
    white.turned(pos.turn())
}
