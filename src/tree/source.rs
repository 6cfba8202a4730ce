//! The moves of books, databases and indexes.

use shakmaty::{Position, uci::UciMove, variant::VariantPosition};

use crate::{
    book::{Book, each_move_once},
    error::{Error, Result},
    explorer::{Explorer, Filters, Line, Query, View},
    index::PositionStats,
    position::{Keyed, Variant},
    tally::Stats,
    walk::{Source, TreeMove},
};

/// The records of the position whose move is legal, those of weight 0 among them, the heaviest first.
impl Source for Book {
    fn moves(&self, pos: &Keyed<VariantPosition>) -> Result<Vec<TreeMove>> {
        let entries = Book::moves(self, pos.key())?;
        let entries = each_move_once(pos.position(), entries).into_iter();
        let legal = entries.filter_map(|entry| {
            let mv = entry.mv.to_move(pos.position())?;
            Some(TreeMove::known(mv, entry.weight.into(), None))
        });
        Ok(legal.collect())
    }

    fn node(&self, pos: &Keyed<VariantPosition>) -> u64 {
        pos.exact_identity()
    }
}

/// The rows of the position that are active, the most games first.
#[cfg(feature = "obs")]
impl Source for crate::obs::Obs {
    fn moves(&self, pos: &Keyed<VariantPosition>) -> Result<Vec<TreeMove>> {
        let rows = crate::obs::Obs::moves(self, pos.position())?;
        let active = rows.into_iter().filter(crate::obs::Row::is_active);
        let legal = active.filter_map(|row| {
            let mv = crate::obs::legal_move(pos.position(), &row.mv)?.to_move(pos.position())?;
            let weight = crate::book::Weights::default().weight(row.stats);
            Some(TreeMove::known(mv, weight, Some(row.stats)))
        });
        Ok(legal.collect())
    }
}

/// The moves that games played in the position, with the games of the positions that they lead to, whatever way
/// these took there; the most games first. The index must have statistics.
impl Source for crate::index::Index {
    fn moves(&self, pos: &Keyed<VariantPosition>) -> Result<Vec<TreeMove>> {
        let Some(here) = stats_of(self, pos)? else {
            let mut keys = pos.equal_keys();
            if keys.try_fold(true, |none, key| Ok(none && self.games(key)?.is_empty()))? {
                return Ok(Vec::new());
            }
            let problem = "has no statistics: make it with --explorer or --index-stats";
            return Err(Error::file(self.path(), problem));
        };
        let mut moves = Vec::new();
        for mv in here.moves {
            // What is not legal here belongs to another position with the same key.
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
            moves.push(TreeMove::known(mv, there.games, Some(stats)));
        }
        // A stable sort: of equal ones, that of the smallest number comes first.
        moves.sort_by_key(|mv| std::cmp::Reverse(mv.weight));
        Ok(moves)
    }
}

/// Returns the statistics of a position under all of its keys; `None` if there are none.
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

/// The games of an index that was made for the explorer, by the rules of a variant.
#[derive(Debug)]
pub struct Explored(pub Explorer, pub Variant);

/// The moves that games played in the position, with these games; the most games first.
impl Source for Explored {
    fn moves(&self, pos: &Keyed<VariantPosition>) -> Result<Vec<TreeMove>> {
        let Explored(explorer, variant) = self;
        played(explorer, *variant, pos.position(), &Filters::default())
    }
}

/// The moves that the games which pass filters played in a position; those of most games first.
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
        let stats = for_mover(pos, played.white, played.draws, played.black);
        let mv = uci.to_move(pos).ok()?;
        Some(TreeMove::known(mv, played.games(), Some(stats)))
    });
    Ok(moves.collect())
}

/// Results of the side to move.
fn for_mover(pos: &VariantPosition, wins: u64, draws: u64, losses: u64) -> Stats {
    let white = Stats {
        wins,
        draws,
        losses,
    };
    white.turned(pos.turn())
}
