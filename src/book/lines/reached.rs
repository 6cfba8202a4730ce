//! How soon a walk along the lines of a book comes to its positions.

use shakmaty::Color;

use super::knowledge::{Knowledge, Known};
use crate::{
    book::open::Book,
    error::Result,
    position::{Keyed, Rules},
};

/// How a walk goes on from a position.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(in crate::book) enum Way {
    /// By the book's moves of a side, and every reply after which the book knows a move.
    LinesOf(Color),
    /// By the book's moves; where it has none, by every move after which it knows one.
    Followed,
}

/// The positions that a walk comes to, by the number of the first record of each.
pub(in crate::book) struct Reached {
    /// Half-moves to each position, [`NEVER`] for those that no walk came to.
    plies: Vec<u16>,
}

/// Of positions that no walk comes to.
const NEVER: u16 = u16::MAX;

impl Reached {
    /// No position of a book is reached yet.
    pub(in crate::book) fn none(knowledge: &Knowledge<'_>) -> Reached {
        Reached {
            plies: vec![NEVER; knowledge.book().len() as usize],
        }
    }

    /// After how many half-moves the position with this first record is reached, if it is.
    pub(in crate::book) fn ply(&self, place: u64) -> Option<u16> {
        let ply = self.plies[place as usize];
        (ply != NEVER).then_some(ply)
    }

    /// The keys of the positions that are reached.
    ///
    /// # Errors
    ///
    /// A book that cannot be read.
    pub(in crate::book) fn keys(&self, book: &Book) -> Result<Vec<u64>> {
        let mut keys = Vec::new();
        for (place, entry) in (0..).zip(book) {
            let key = entry?.key;
            if self.ply(place).is_some() {
                keys.push(key);
            }
        }
        Ok(keys)
    }

    /// Notes the positions in which a side is to move along its lines, or all that are [followed](Way::Followed).
    /// Does not go on from positions with the keys `closed`, and does not note them. Goes less than `plies`
    /// half-moves deep. One value may take a walk along the lines of White and one along those of Black.
    ///
    /// # Errors
    ///
    /// A book that cannot be read.
    pub(in crate::book) fn walk<P: Rules>(
        &mut self,
        knowledge: &Knowledge<'_>,
        start: Keyed<P>,
        way: Way,
        closed: &[u64],
        plies: u16,
    ) -> Result<()> {
        // The positions in which the other side is to move.
        let mut passed = match way {
            Way::LinesOf(_) => Reached::none(knowledge),
            Way::Followed => Reached { plies: Vec::new() },
        };
        let mut waiting = vec![(knowledge.look_up(start)?, 0)];
        while let Some((known, ply)) = waiting.pop() {
            if ply >= plies || closed.contains(&known.pos.key()) {
                continue;
            }
            let is_theirs =
                matches!(way, Way::LinesOf(side) if known.pos.position().turn() != side);
            let noted = if is_theirs { &mut passed } else { &mut *self };
            if !noted.is_sooner(&known, ply) {
                continue;
            }
            let choices = match is_theirs {
                true => Vec::new(),
                false => knowledge.choices(&known)?,
            };
            for choice in &choices {
                let mut after = known.pos.clone();
                after.play(choice.mv);
                waiting.push((knowledge.look_up(after)?, ply + 1));
            }
            if is_theirs || (way == Way::Followed && choices.is_empty()) {
                let replies = knowledge.replies(&known.pos)?;
                waiting.extend(replies.into_iter().map(|reply| (reply.after, ply + 1)));
            }
        }
        Ok(())
    }

    /// Notes a position; answers whether a walk has to go on from it: from one that is not in the book always, from
    /// another if it was not reached as soon before.
    fn is_sooner<P: Rules>(&mut self, known: &Known<P>, ply: u16) -> bool {
        let Some(place) = known.place else {
            return true;
        };
        let before = &mut self.plies[place as usize];
        let is_sooner = ply < *before;
        if is_sooner {
            *before = ply;
        }
        is_sooner
    }
}
