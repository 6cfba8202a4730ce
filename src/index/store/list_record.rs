//! Records of the explorer's lists: 128 bits, in the order of the lists.
//!
//! | bits | meaning |
//! |---|---|
//! | 64-127 | the [`ListKey`] |
//! | 32-63 | the id of a game, or the number of a name |
//! | 17-31 | the number of half-moves that the game had played after the move, 0 for none |
//! | 16 | 1 if White was to move |
//! | 0-15 | the move |

use super::ListKey;
use crate::{
    position::BookMove,
    storage::sort::{Fold, Record},
};

/// The value that an item contains instead of a move if it belongs to the list of a player or of a Lichess id. No move
/// has this value.
pub const LISTED: BookMove = BookMove(u16::MAX - 1);

/// The value that an item contains instead of a move if it belongs to a list of name numbers, which are the numbers
/// that the index has assigned to player and event names. No move has this value.
pub const NAMED: BookMove = BookMove(u16::MAX);

/// Returns `true` if an item with the move `mv` comes from the list of a position. In such a list, `mv` is the move
/// that was played in the position, or [`BookMove::NONE`] if the game ended in the position. In all other lists, `mv`
/// is [`LISTED`] or [`NAMED`].
pub fn is_of_position(mv: BookMove) -> bool {
    mv != LISTED && mv != NAMED
}

/// An item in a list. In the list of a position, it consists of a game id and the move that was played in the position.
/// In the list of a player or of a Lichess id, it consists of a game id and [`LISTED`]. In a list of name numbers, it
/// consists of the number of a name and [`NAMED`].
pub type ListItem = (u32, BookMove);

/// A 128-bit record which says that a list contains an item. The item is a game or, in lists of name numbers, the
/// number of a name. In the list of a position, the record contains the move that was played there.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) struct ListRecord(u128);

impl ListRecord {
    /// The greatest half-move number that a record can hold. Half-moves are numbered from 1. The half-moves of a longer
    /// game cannot be numbered, so the caller adds only the last move that was played in each position.
    pub(crate) const LAST_PLY: usize = (1 << 15) - 1;

    /// Creates a record which says that game `id` reached the position with the key `subject`, and that the move `mv`
    /// was played there. `ply` is the number of this half-move in the game, counted from 1.
    #[inline]
    pub(crate) fn new(
        subject: ListKey,
        id: u32,
        ply: u16,
        white_to_move: bool,
        mv: BookMove,
    ) -> ListRecord {
        let low = u64::from(id) << 32
            | u64::from(ply) << 17
            | u64::from(white_to_move) << 16
            | u64::from(mv.0);
        ListRecord(u128::from(subject.0) << 64 | u128::from(low))
    }

    /// Creates a record which says that game `id` ended in the position with the key `subject`. Such a record contains
    /// [`BookMove::NONE`] in place of a move.
    #[inline]
    pub(crate) fn end(subject: ListKey, id: u32, white_to_move: bool) -> ListRecord {
        ListRecord::new(subject, id, 0, white_to_move, BookMove::NONE)
    }

    /// Creates a record which says that game `id` belongs to the list with the key `subject`, the list of a player or
    /// of a Lichess id. In place of a move, the record contains [`LISTED`].
    pub(crate) fn listed(subject: ListKey, id: u32) -> ListRecord {
        ListRecord::new(subject, id, 0, false, LISTED)
    }

    /// Creates a record which says that a player or event name has the number `number`. `subject` is the key of the
    /// list that contains the numbers of this name. In place of a move, the record contains [`NAMED`].
    pub(crate) fn named(subject: ListKey, number: u32) -> ListRecord {
        ListRecord::new(subject, number, 0, false, NAMED)
    }

    /// Returns a copy of the record with the final game id. The games of each batch, or of each input of a merge, are
    /// first numbered from 0. `first_id`, the id that the first of these games gets in the new index, is added to the
    /// number.
    #[inline]
    pub(crate) fn shifted_by(self, first_id: u32) -> ListRecord {
        ListRecord(self.0 + (u128::from(first_id) << 32))
    }

    #[inline]
    pub(crate) fn subject(self) -> ListKey {
        ListKey((self.0 >> 64) as u64)
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

impl Record for ListRecord {
    type Fold = LastOfGame;

    #[inline]
    fn from_bits(bits: u128) -> ListRecord {
        ListRecord(bits)
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

/// A filter for sorted list records. It keeps only the last record of each game in a list. A game that reached a
/// position several times is therefore listed once, with the last move that was played there.
#[derive(Clone, Default, Debug)]
pub(crate) struct LastOfGame {
    last: Option<ListRecord>,
}

impl Fold for LastOfGame {
    type Record = ListRecord;

    #[inline]
    fn take(&mut self, record: ListRecord, out: &mut impl FnMut(ListRecord)) {
        if let Some(last) = self.last.replace(record)
            && last.0 >> 32 != record.0 >> 32
        {
            out(last);
        }
    }

    #[inline]
    fn finish(&mut self, out: &mut impl FnMut(ListRecord)) {
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
            let record = ListRecord::new(ListKey(subject), id, ply, white, BookMove(mv)).shifted_by(9);
            prop_assert_eq!(record.subject(), ListKey(subject));
            prop_assert_eq!(record.id(), id + 9);
            prop_assert_eq!(record.white_to_move(), white);
            prop_assert_eq!(record.book_move(), BookMove(mv));
        }
    }

    #[test]
    fn the_last_move_of_a_game_is_kept() {
        let subject = ListKey(7);
        let mut records = [
            ListRecord::end(subject, 1, true),
            ListRecord::new(subject, 1, 3, true, BookMove(900)),
            ListRecord::new(subject, 1, 7, true, BookMove(20)),
            ListRecord::end(subject, 2, true),
        ];
        records.sort();
        let (mut last, mut kept) = (LastOfGame::default(), Vec::new());
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
