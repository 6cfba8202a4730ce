//! That a game played a move in a position, as 128 bits in the order of the explorer's lists.
//!
//! | bits | meaning |
//! |---|---|
//! | 64-127 | the [`Subject`] |
//! | 32-63 | id of the game, or number of a name |
//! | 17-31 | how many half-moves of the game had been played with the move, 0 for none |
//! | 16 | whether White was to move |
//! | 0-15 | the move |

use crate::{
    index::layout::Subject,
    position::BookMove,
    sort::{Fold, Record},
};

/// In place of a move in the lists of names' numbers: no move of any variant.
pub(in crate::index) const NAMED: BookMove = BookMove(u16::MAX);

/// That a game played a move in a position.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) struct Played(u128);

impl Played {
    /// The last half-move, counted from 1, that a record can hold.
    pub(crate) const LAST_PLY: usize = (1 << 15) - 1;

    /// Game `id` played `mv` as its half-move number `ply`, from 1, in a position with White to move or not.
    #[inline]
    pub(crate) fn new(
        subject: Subject,
        id: u32,
        ply: u16,
        white_to_move: bool,
        mv: BookMove,
    ) -> Played {
        let low = u64::from(id) << 32
            | u64::from(ply) << 17
            | u64::from(white_to_move) << 16
            | u64::from(mv.0);
        Played(u128::from(subject.0) << 64 | u128::from(low))
    }

    /// Game `id` ended in a position.
    #[inline]
    pub(crate) fn end(subject: Subject, id: u32, white_to_move: bool) -> Played {
        Played::new(subject, id, 0, white_to_move, BookMove::NONE)
    }

    /// An id in the list of a subject that is no position.
    pub(crate) fn listed(subject: Subject, id: u32) -> Played {
        Played::new(subject, id, 0, false, BookMove::NONE)
    }

    /// The number of a name in the list of its subject. [`NAMED`] in place of the move marks such lists.
    pub(crate) fn named(subject: Subject, number: u32) -> Played {
        Played::new(subject, number, 0, false, NAMED)
    }

    /// The record of a game whose ids were counted from 0 and begin at `first_id`.
    #[inline]
    pub(crate) fn shifted_by(self, first_id: u32) -> Played {
        Played(self.0 + (u128::from(first_id) << 32))
    }

    #[inline]
    pub(crate) fn subject(self) -> Subject {
        Subject((self.0 >> 64) as u64)
    }

    #[inline]
    pub(crate) fn id(self) -> u32 {
        (self.0 >> 32) as u32
    }

    #[inline]
    pub(crate) fn white_to_move(self) -> bool {
        self.0 >> 16 & 1 == 1
    }

    #[inline]
    pub(crate) fn book_move(self) -> BookMove {
        BookMove(self.0 as u16)
    }
}

impl Record for Played {
    type Fold = Last;

    #[inline]
    fn from_bits(bits: u128) -> Played {
        Played(bits)
    }

    #[inline]
    fn to_bits(self) -> u128 {
        self.0
    }

    #[inline]
    fn rank(self) -> u64 {
        self.subject().0
    }
}

/// Keeps the last of the moves that a game played in a position.
#[derive(Clone, Default, Debug)]
pub(crate) struct Last {
    last: Option<Played>,
}

impl Fold for Last {
    type Record = Played;

    #[inline]
    fn take(&mut self, record: Played, out: &mut impl FnMut(Played)) {
        if let Some(last) = self.last.replace(record)
            && last.0 >> 32 != record.0 >> 32
        {
            out(last);
        }
    }

    #[inline]
    fn finish(&mut self, out: &mut impl FnMut(Played)) {
        if let Some(last) = self.last.take() {
            out(last);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn what_is_packed_comes_back(subject: u64, id in 0..u32::MAX - 9, ply in 0..1u16 << 15, white: bool, mv: u16) {
            let record = Played::new(Subject(subject), id, ply, white, BookMove(mv)).shifted_by(9);
            prop_assert_eq!(record.subject(), Subject(subject));
            prop_assert_eq!(record.id(), id + 9);
            prop_assert_eq!(record.white_to_move(), white);
            prop_assert_eq!(record.book_move(), BookMove(mv));
        }
    }

    #[test]
    fn the_last_move_of_a_game_is_kept() {
        let subject = Subject(7);
        let mut records = [
            Played::end(subject, 1, true),
            Played::new(subject, 1, 3, true, BookMove(900)),
            Played::new(subject, 1, 7, true, BookMove(20)),
            Played::end(subject, 2, true),
        ];
        records.sort();
        let (mut last, mut kept) = (Last::default(), Vec::new());
        for record in records {
            last.take(record, &mut |record| kept.push(record));
        }
        last.finish(&mut |record| kept.push(record));
        let kept: Vec<_> = kept
            .iter()
            .map(|record| (record.id(), record.book_move()))
            .collect();
        assert_eq!(kept, [(1, BookMove(20)), (2, BookMove::NONE)]);
    }
}
