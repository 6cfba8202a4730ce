//! The keys of the lists in an explorer index, the rule that groups lists in pages, and the records from which lists
//! are made. A record has 128 bits; sorting the records by their bits puts them in the order of the lists:
//!
//! | bits | meaning |
//! |---|---|
//! | 64-127 | the [`ListKey`] |
//! | 32-63 | the id of a game, or the number of a name |
//! | 17-31 | the number of half-moves that the game had played after the move, 0 for none |
//! | 16 | 1 if White was to move |
//! | 0-15 | the move |

use shakmaty::Color;
use siphasher::sip::SipHasher24;

use super::SiteId;
use crate::{
    chess::position::{BookMove, Variant},
    storage::sort::{Fold, Record},
};

/// The key of a list in an explorer index. The key identifies the subject of the list: a position, a player with a
/// color, a player or event name, or a Lichess id.
///
/// The key of a position is derived from the position's [identity](crate::chess::position::Keyed::identity). All other
/// keys are one-way hashes, and each kind of subject seeds the hash function differently. Finding a name that has the
/// same key as a given position would therefore take about 2^64 trials.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct ListKey(pub u64);

/// The kind of subject that a list key is hashed from: a player with White or with Black, the name of a player or an
/// event, or a Lichess id. The kind seeds the hash function, so that the same text has a different key for each kind.
#[derive(Copy, Clone)]
enum SubjectKind {
    White = 1,
    Black = 2,
    Name = 3,
    SiteId = 4,
}

/// The first of the two numbers that seed the hash of names and Lichess ids: the bytes of the word "polybook". The
/// second number is the [`SubjectKind`].
const KEY: u64 = u64::from_be_bytes(*b"polybook");

impl ListKey {
    /// Returns the key of the list of games that reached a position. `identity` is the identity of the position, a
    /// 64-bit hash. The key also depends on `variant`, because positions of different variants can have equal
    /// identities.
    #[inline]
    pub fn position(variant: Variant, identity: u64) -> ListKey {
        let number = match variant {
            Variant::Standard => return ListKey(identity),
            Variant::Chess960 => 1,
            Variant::Crazyhouse => 2,
            // These two variants have the same rules for moves.
            Variant::Suicide | Variant::Giveaway => 3,
            Variant::Atomic => 4,
            Variant::ThreeCheck => 5,
            Variant::Horde => 6,
            Variant::KingOfTheHill => 7,
            Variant::RacingKings => 8,
        };
        ListKey(identity ^ mixed(number))
    }

    /// Returns the key of the list of games that a player played with `color`. `folded` is the name of the player,
    /// [normalized](crate::games::pgn::NameMatch) so that different spellings of the name are equal.
    pub fn player(folded: &str, color: Color) -> ListKey {
        let kind = color.fold_wb(SubjectKind::White, SubjectKind::Black);
        ListKey::hashed(kind, folded.as_bytes())
    }

    /// Returns the key of the list that contains the numbers of a player or event name. `folded` is the name after
    /// normalization, for example in lower case. The list contains the number of every stored name that equals `folded`
    /// after normalization.
    pub fn name(folded: &str) -> ListKey {
        ListKey::hashed(SubjectKind::Name, folded.as_bytes())
    }

    /// Returns the key of the list of games that have the Lichess id `id`.
    pub fn site_id(id: SiteId) -> ListKey {
        ListKey::hashed(SubjectKind::SiteId, &id.number().to_le_bytes())
    }

    /// Hashes `bytes` to a list key. `bytes` is the text or the number that identifies the subject of the list, such as
    /// the name of a player. The key also depends on `kind`.
    fn hashed(kind: SubjectKind, bytes: &[u8]) -> ListKey {
        ListKey(SipHasher24::new_with_keys(KEY, kind as u64).hash(bytes))
    }
}

/// Returns a number that depends on all bits of `number`. Different numbers have different results. This is the output
/// function of the random number generator SplitMix64.
fn mixed(number: u64) -> u64 {
    let mut z = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// The rule that groups lists in pages. A page is an index entry that contains several short lists. Two lists belong to
/// the same page if the first `bits` bits of their keys are equal.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Paging {
    bits: u32,
}

/// The minimum number of leading bits of a key by which lists are grouped in pages. A page is an index entry that
/// contains several lists. The first eight bits of a key select the shard in which its records are sorted. Shards are
/// processed separately, so a page must not extend over several shards.
const MIN_PAGE_BITS: u32 = 8;
/// The maximum number of leading bits of a key by which lists are grouped in pages. A page is an index entry that
/// contains several lists. An index needs at most 2^40 pages.
const MAX_PAGE_BITS: u32 = 40;

/// The number of items that a page should contain on average. A page is an index entry with several lists, and an item
/// is a game id with a move.
const ITEMS_PER_PAGE: u64 = 64;

impl Paging {
    /// Creates the rule that divides the lists of an index into pages. A page is an index entry with several lists, and
    /// has about 64 items on average. `items` is the total number of items in all lists of the index.
    pub fn for_items(items: u64) -> Paging {
        let bits = (items / ITEMS_PER_PAGE).max(1).ilog2();
        Paging {
            bits: bits.clamp(MIN_PAGE_BITS, MAX_PAGE_BITS),
        }
    }

    /// Creates the rule that puts two lists in the same page if the first `bits` bits of their keys are equal. A page
    /// is an index entry with several lists. Returns `None` if `bits` is not in `8..=40`.
    pub fn of_bits(bits: u32) -> Option<Paging> {
        (MIN_PAGE_BITS..=MAX_PAGE_BITS)
            .contains(&bits)
            .then_some(Paging { bits })
    }

    /// Returns the number of leading bits that are equal in all keys of a page (an index entry with several lists).
    pub fn bits(self) -> u32 {
        self.bits
    }

    /// Returns the number of the page to which the list with the key `subject` belongs. A page is an index entry that
    /// contains several lists.
    #[inline]
    pub fn page(self, subject: ListKey) -> u64 {
        subject.0 >> (u64::BITS - self.bits)
    }

    /// Returns the smallest list key that can belong to the same page as `subject`. A page is an index entry that
    /// contains several lists.
    #[inline]
    pub fn first_of(self, subject: ListKey) -> ListKey {
        ListKey(subject.0 & !(u64::MAX >> self.bits))
    }

    /// Returns the greatest list key that can belong to the same page as `subject`. A page is an index entry that
    /// contains several lists. The LevelDB key of the page contains the returned key.
    pub fn last_of(self, subject: ListKey) -> ListKey {
        ListKey(subject.0 | (u64::MAX >> self.bits))
    }

    /// Returns the number of bytes that each list key takes in a page, an index entry with several lists. Leading bytes
    /// that are equal in all keys of the page are not stored.
    pub(super) fn stored(self) -> usize {
        (u64::BITS - self.bits).div_ceil(8) as usize
    }

    /// Appends the list key `subject` to the encoded page `page`. Leaves out leading bytes whose bits are equal in all
    /// keys of the page.
    pub fn put_subject(self, subject: ListKey, page: &mut Vec<u8>) {
        let bytes = subject.0.to_be_bytes();
        page.extend_from_slice(&bytes[bytes.len() - self.stored()..]);
    }
}

/// A value that replaces the move in the items of lists of players and Lichess ids. No move has this value.
pub const LISTED: BookMove = BookMove(u16::MAX - 1);

/// A value that replaces the move in the items of lists of name numbers. An index assigns a number to each name of a
/// player or event. No move has this value.
pub const NAMED: BookMove = BookMove(u16::MAX);

/// Returns `true` if an item with the move `mv` comes from the list of a position. In such a list, `mv` is the move
/// that was played in the position, or [`BookMove::NONE`] if the game ended in the position. In all other lists, `mv`
/// is [`LISTED`] or [`NAMED`].
pub fn is_of_position(mv: BookMove) -> bool {
    mv != LISTED && mv != NAMED
}

/// An item in a list. It consists of a game id and the move that was played in the position, or [`LISTED`] in the lists
/// of players and Lichess ids. In a list of name numbers, it consists of the number of a name and [`NAMED`].
pub type ListItem = (u32, BookMove);

/// A 128-bit record that adds one item to a list. The item is a game or, in lists of name numbers, the number of a
/// name. In the list of a position, the record also contains the move that was played there.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug)]
pub(crate) struct ListRecord(u128);

impl ListRecord {
    /// The greatest half-move number, counted from 1, that a record can hold. Later half-moves cannot be told apart, so
    /// for a longer game the caller adds only the last move that was played in each position.
    pub(crate) const LAST_PLY: usize = (1 << 15) - 1;

    /// Creates a record of the game `id`, in which the move `mv` was played in the position with the key `subject`.
    /// `ply` is the number of this half-move in the game, counted from 1.
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

    /// Creates a record of the game `id`, which ended in the position with the key `subject`. The record contains
    /// [`BookMove::NONE`] in place of a move.
    #[inline]
    pub(crate) fn end(subject: ListKey, id: u32, white_to_move: bool) -> ListRecord {
        ListRecord::new(subject, id, 0, white_to_move, BookMove::NONE)
    }

    /// Creates a record that adds the game `id` to the list with the key `subject`, which is the list of a player or of
    /// a Lichess id. In place of a move, the record contains [`LISTED`].
    pub(crate) fn listed(subject: ListKey, id: u32) -> ListRecord {
        ListRecord::new(subject, id, 0, false, LISTED)
    }

    /// Creates a record that adds `number`, the number of a player or event name, to the list with the key `subject`.
    /// This list contains all numbers of the name. In place of a move, the record contains [`NAMED`].
    pub(crate) fn named(subject: ListKey, number: u32) -> ListRecord {
        ListRecord::new(subject, number, 0, false, NAMED)
    }

    /// Returns a copy of the record with the final id of its game. The games of a batch, or of an input of a merge, are
    /// first numbered from 0. `first_id`, which is added to the number, is the id of the first of these games in the
    /// new index.
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
    type Bytes = [u8; 16];

    #[inline]
    fn from_bytes(bytes: [u8; 16]) -> ListRecord {
        ListRecord(u128::from_le_bytes(bytes))
    }

    #[inline]
    fn to_bytes(self) -> [u8; 16] {
        self.0.to_le_bytes()
    }

    #[inline]
    fn rank(self) -> u64 {
        self.subject().0
    }
}

/// A filter for sorted list records that keeps only the last record of each game in a list. A game that reached a
/// position several times is therefore listed once, with the last move that it played there.
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

    #[test]
    fn variants_and_kinds_are_told_apart() {
        let mut all: Vec<ListKey> = Variant::ALL
            .iter()
            .map(|variant| ListKey::position(*variant, 4711))
            .collect();
        assert_eq!(all[3], all[4]);
        all.remove(3);
        all.extend(Color::ALL.map(|color| ListKey::player("tal, mikhail", color)));
        all.push(ListKey::name("tal, mikhail"));
        all.push(ListKey::site_id(SiteId::parse("abcdefgh").unwrap()));
        for (i, subject) in all.iter().enumerate() {
            assert!(!all[..i].contains(subject));
        }
    }

    #[test]
    fn names_are_hashed_with_siphash() {
        // The values of the reference implementation of SipHash-2-4.
        let name = "tal, mikhail";
        assert_eq!(
            ListKey::player(name, Color::White),
            ListKey(0xdbab_543c_e669_9258)
        );
        assert_eq!(
            ListKey::player(name, Color::Black),
            ListKey(0xf2bd_9ee7_3a34_4944)
        );
        assert_eq!(ListKey::name(name), ListKey(0xa9ac_843b_e848_b864));
    }

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
