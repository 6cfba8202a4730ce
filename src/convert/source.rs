//! What suites are made of: the kept moves of a database, or those of a book that are played.

use std::cell::RefCell;

use shakmaty::{Position, variant::VariantPosition};

use crate::{
    book::{Book, Weights},
    error::Result,
    position::{BookMove, Keyed},
    tally::{Finder, MoveFilter, Scratch, Stats},
    walk::{Source, TreeMove},
};

/// The moves of a database that are kept.
pub(super) struct CountedMoves<'a> {
    pub finder: Finder<'a>,
    pub filter: MoveFilter,
    pub weights: &'a Weights,
    /// Whether moves of weight 0 are left out.
    pub only_weighted: bool,
    pub scratch: RefCell<Scratch>,
}

impl CountedMoves<'_> {
    /// White's results in all games that came to a position, if some did.
    pub(super) fn results(&self, pos: &Keyed<VariantPosition>) -> Result<Option<Stats>> {
        let part = self.finder.part(pos.identity());
        let mut scratch = self.scratch.borrow_mut();
        let found = self.finder.find(part, &mut scratch)?;
        let arrivals = found.and_then(|found| {
            let mut moves = found.moves.iter();
            moves.find(|count| count.mv == BookMove::NONE)
        });
        let stats = arrivals.map(|count| count.stats.turned(!pos.position().turn()));
        Ok(stats)
    }
}

impl Source for CountedMoves<'_> {
    fn moves(&self, pos: &Keyed<VariantPosition>) -> Result<Vec<TreeMove>> {
        let part = self.finder.part(pos.key());
        let mut scratch = self.scratch.borrow_mut();
        let Some(found) = self.finder.find(part, &mut scratch)? else {
            return Ok(Vec::new());
        };
        let turn = pos.position().turn();
        let kept = found.moves.iter().filter_map(|count| {
            let weight = self.weights.weight(count.stats);
            let is_left_out = self.only_weighted && weight == 0;
            if !self.filter.selects(turn, count.stats) || is_left_out {
                return None;
            }
            let mv = count.mv.to_move(pos.position())?;
            Some(TreeMove::known(mv, weight, Some(count.stats)))
        });
        Ok(kept.collect())
    }
}

/// The moves of a book that are played: those of a weight.
pub(super) struct PlayedMoves<'a>(pub &'a Book);

impl Source for PlayedMoves<'_> {
    fn moves(&self, pos: &Keyed<VariantPosition>) -> Result<Vec<TreeMove>> {
        let mut moves = Source::moves(self.0, pos)?;
        moves.retain(|mv| mv.weight > 0);
        Ok(moves)
    }
}
