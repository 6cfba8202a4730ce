//! The lists of the explorer: for each position the games that reached it, with the move that each played there.
//!
//! A list belongs to a [`Subject`]: a position, a player with a color, a name, an id of another site. Each is a
//! number of 64 bits, and the lists are in the order of these. Lists of up to [`INLINE`] items are in *pages*, each
//! with the subjects whose first bits are the same. Longer ones are apart, in *chunks*, each with [`CHUNK`] items and
//! the last with those that are left.
//!
//! | part | meaning |
//! |---|---|
//! | a page | for each subject: its last bits in as many whole bytes as they need, high ones first, and its list |
//! | a list | varint 2n + t, where n is the number of items, 0 for a list that is apart, and t is 1 where White is to move; the items |
//! | after that of a list apart | varint 2n + s, where n is the number of its items, and s is 1 if it has [`sums`](super::sums) |
//! | a chunk | a byte that is 1 if another follows, 0 if none does; a list |
//! | one item | the move, 2 bytes; varint of the id |
//! | several items | varint m and the m different moves, 2 bytes each, as they come up; for each item a varint: the id less the one before and 1 (the first less 0), times 2^b, plus the number of its move, where b is the fewest bits that m - 1 fits in |
//!
//! Moves are 16-bit Polyglot numbers, little-endian; 0 is for games that end there, and for the games of players and
//! ids. The numbers of names have 65535 in the place of a move.

use std::ops::Range;

use super::{Subject, put_varint, take_size, take_varint};
use crate::position::BookMove;

/// The longest list that is in a page.
pub const INLINE: usize = 256;

/// How many items a chunk has.
pub const CHUNK: usize = 1 << 14;

/// A game and the move that it played.
pub type Item = (u32, BookMove);

/// Appends a list of items in ascending order of their ids.
pub fn write_list(items: &[Item], white_to_move: bool, out: &mut Vec<u8>) {
    put_varint(out, (items.len() as u64) << 1 | u64::from(white_to_move));
    if let [(id, mv)] = items {
        out.extend_from_slice(&mv.0.to_le_bytes());
        put_varint(out, u64::from(*id));
        return;
    }
    let mut moves = Vec::new();
    for (_, mv) in items {
        if !moves.contains(mv) {
            moves.push(*mv);
        }
    }
    put_varint(out, moves.len() as u64);
    for mv in &moves {
        out.extend_from_slice(&mv.0.to_le_bytes());
    }
    let bits = bits_for(moves.len());
    let mut next = 0;
    for (id, mv) in items {
        let number = moves.iter().position(|known| known == mv);
        let number = number.expect("all moves were collected") as u64;
        put_varint(out, u64::from(id - next) << bits | number);
        next = id.wrapping_add(1);
    }
}

/// A list that is apart, in chunks.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Apart {
    /// How many items it has.
    pub items: u64,
    /// Whether it has [`sums`](super::sums).
    pub has_sums: bool,
}

impl Apart {
    /// Appends the entry of the list in a page.
    pub fn write(self, white_to_move: bool, out: &mut Vec<u8>) {
        put_varint(out, u64::from(white_to_move));
        put_varint(out, self.items << 1 | u64::from(self.has_sums));
    }

    /// How many chunks it has.
    pub fn chunks(self) -> u64 {
        self.items.div_ceil(CHUNK as u64)
    }

    fn take(rest: &mut &[u8]) -> Option<Apart> {
        let number = take_varint(rest)?;
        let items = number >> 1;
        (items > INLINE as u64).then_some(Apart {
            items,
            has_sums: number & 1 == 1,
        })
    }
}

/// The fewest bits that the numbers of `moves` moves fit in.
pub(super) fn bits_for(moves: usize) -> u32 {
    usize::BITS - moves.saturating_sub(1).leading_zeros()
}

/// A list that is read in place.
#[derive(Copy, Clone, Debug)]
pub struct List<'a> {
    /// How many items it has, 0 if it is apart.
    pub len: usize,
    /// Its length, and whether it has sums, if it is apart.
    pub apart: Option<Apart>,
    /// Whether White is to move in the position.
    pub white_to_move: bool,
    /// The list and all after it.
    whole: &'a [u8],
    /// Two bytes a move.
    moves: &'a [u8],
    /// The items after the moves.
    rest: &'a [u8],
}

impl<'a> List<'a> {
    /// Reads the head of a list; `None` if it is malformed.
    pub fn parse(bytes: &'a [u8]) -> Option<List<'a>> {
        let mut rest = bytes;
        let head = take_varint(&mut rest)?;
        let len = usize::try_from(head >> 1).ok()?;
        let apart = match len {
            0 => Some(Apart::take(&mut rest)?),
            _ => None,
        };
        let moves = match len {
            0 => 0,
            1 => 1,
            // Each item has a byte at least.
            _ if len > rest.len() => return None,
            _ => take_size(&mut rest)?,
        };
        let (moves, rest) = rest.split_at_checked(moves.checked_mul(2)?)?;
        (len == 0 || !moves.is_empty()).then_some(List {
            len,
            apart,
            white_to_move: head & 1 == 1,
            whole: bytes,
            moves,
            rest,
        })
    }

    /// Where the list begins in its page.
    pub fn start_in(&self, page: &[u8]) -> usize {
        page.len() - self.whole.len()
    }

    /// The different moves, in the order of their numbers.
    pub fn moves(&self) -> impl Iterator<Item = BookMove> + 'a {
        let (moves, _) = self.moves.as_chunks::<2>();
        moves.iter().map(|mv| BookMove(u16::from_le_bytes(*mv)))
    }

    /// The id of the first item; `None` if there is none or it is malformed.
    pub fn first_id(&self) -> Option<u32> {
        let bits = bits_for(self.moves.len() / 2);
        let mut rest = self.rest;
        let item = take_varint(&mut rest).filter(|_| self.len > 0)?;
        u32::try_from(item >> bits).ok()
    }

    /// Calls `f` with the id and the number of the move of each item. Returns the bytes after the list; `None` if it
    /// is malformed.
    // One loop, because this runs for each game of each question.
    #[inline]
    pub fn for_each(&self, mut f: impl FnMut(u32, usize)) -> Option<&'a [u8]> {
        let moves = self.moves.len() / 2;
        let bits = bits_for(moves);
        let mask = (1u64 << bits) - 1;
        let mut rest = self.rest;
        let mut next = 0u64;
        for _ in 0..self.len {
            let item = match rest {
                [byte @ 0..0x80, after @ ..] => {
                    rest = after;
                    u64::from(*byte)
                }
                _ => take_varint(&mut rest)?,
            };
            let id = u32::try_from(next.checked_add(item >> bits)?).ok()?;
            let number = (item & mask) as usize;
            if number >= moves {
                return None;
            }
            f(id, number);
            next = u64::from(id) + 1;
        }
        Some(rest)
    }

    /// All items, and the bytes after the list; `None` if it is malformed.
    pub fn items(&self) -> Option<(Vec<Item>, &'a [u8])> {
        let moves: Vec<BookMove> = self.moves().collect();
        let mut items = Vec::with_capacity(self.len);
        let rest = self.for_each(|id, number| items.push((id, moves[number])))?;
        Some((items, rest))
    }
}

/// How subjects are put into pages: by their first bits.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Paging {
    bits: u32,
}

/// Fewer bits than these would put several shards of the sorter into a page.
const FEWEST_BITS: u32 = 8;
const MOST_BITS: u32 = 40;

/// About how many items a page has.
const PAGE: u64 = 64;

impl Paging {
    /// For this many items in all.
    pub fn for_items(items: u64) -> Paging {
        let bits = (items / PAGE).max(1).ilog2();
        Paging {
            bits: bits.clamp(FEWEST_BITS, MOST_BITS),
        }
    }

    /// Of this many bits; `None` for more or fewer than there can be.
    pub fn of_bits(bits: u32) -> Option<Paging> {
        (FEWEST_BITS..=MOST_BITS)
            .contains(&bits)
            .then_some(Paging { bits })
    }

    /// The bits that the subjects of a page have in common.
    pub fn bits(self) -> u32 {
        self.bits
    }

    /// The number of the page of a subject.
    #[inline]
    pub fn page(self, subject: Subject) -> u64 {
        subject.0 >> (u64::BITS - self.bits)
    }

    /// The first subject that the page of a subject may have.
    #[inline]
    pub fn first_of(self, subject: Subject) -> Subject {
        Subject(subject.0 & !(u64::MAX >> self.bits))
    }

    /// The last subject that a page may have, which its key is made of.
    pub fn last_of(self, subject: Subject) -> Subject {
        Subject(subject.0 | (u64::MAX >> self.bits))
    }

    /// How many bytes of a subject a page stores.
    fn stored(self) -> usize {
        (u64::BITS - self.bits).div_ceil(8) as usize
    }

    /// Appends the bytes of a subject that a page stores.
    pub fn put_subject(self, subject: Subject, page: &mut Vec<u8>) {
        let bytes = subject.0.to_be_bytes();
        page.extend_from_slice(&bytes[bytes.len() - self.stored()..]);
    }

    /// The list of a subject in its page: `Some(None)` if the page has none, `None` if it is malformed.
    pub fn find(self, page: &[u8], subject: Subject) -> Option<Option<List<'_>>> {
        let mut found = None;
        self.for_each_list(page, subject, |other, list, _| {
            found = found.or((other == subject).then_some(list));
            Some(())
        })?;
        Some(found)
    }

    /// Calls `f` with each subject of a page, its list, and where this is; `None` if the page is malformed or `f`
    /// says so. `any` is a subject of the page.
    pub fn for_each_list<'a>(
        self,
        page: &'a [u8],
        any: Subject,
        mut f: impl FnMut(Subject, List<'a>, Range<usize>) -> Option<()>,
    ) -> Option<()> {
        let first = self.first_of(any).0;
        let mut rest = page;
        let mut last = None;
        while !rest.is_empty() {
            let (stored, list) = rest.split_at_checked(self.stored())?;
            let mut bytes = [0; 8];
            bytes[8 - stored.len()..].copy_from_slice(stored);
            let subject = Subject(first | u64::from_be_bytes(bytes));
            if last.replace(subject).is_some_and(|last| last >= subject) {
                return None;
            }
            let list = List::parse(list)?;
            rest = list.for_each(|_, _| ())?;
            let range = list.start_in(page)..page.len() - rest.len();
            f(subject, list, range)?;
        }
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn lists() -> impl Strategy<Value = Vec<Item>> {
        let ids = proptest::collection::btree_map(any::<u32>(), 0..400u16, 1..60);
        ids.prop_map(|items| {
            items
                .into_iter()
                .map(|(id, mv)| (id, BookMove(mv)))
                .collect()
        })
    }

    fn written(items: &[Item], white_to_move: bool) -> Vec<u8> {
        let mut out = Vec::new();
        write_list(items, white_to_move, &mut out);
        out
    }

    proptest! {
        #[test]
        fn lists_come_back(items in lists(), white: bool) {
            let mut bytes = written(&items, white);
            bytes.extend_from_slice(b"rest");
            let list = List::parse(&bytes).unwrap();
            prop_assert_eq!((list.len, list.white_to_move), (items.len(), white));
            prop_assert_eq!(list.first_id(), Some(items[0].0));
            prop_assert_eq!(list.items().unwrap(), (items, &b"rest"[..]));
        }

        #[test]
        fn pages_have_all_lists(
            lists in proptest::collection::btree_map(any::<u64>(), lists(), 1..20),
            bits in FEWEST_BITS..=MOST_BITS,
        ) {
            let paging = Paging::of_bits(bits).unwrap();
            let first = Subject(0x1234_5678_9abc_def0);
            let in_page = |low: u64| Subject(paging.last_of(first).0 & (low | !(u64::MAX >> bits)));
            let lists: std::collections::BTreeMap<Subject, _> = lists.iter().map(|(low, list)| (in_page(*low), list)).collect();
            let mut page = Vec::new();
            for (subject, list) in &lists {
                prop_assert_eq!(paging.page(*subject), paging.page(first));
                paging.put_subject(*subject, &mut page);
                page.extend_from_slice(&written(list, false));
            }
            for (subject, list) in &lists {
                let found = paging.find(&page, *subject).unwrap().unwrap();
                prop_assert_eq!(&found.items().unwrap().0, *list);
                let other = Subject(subject.0 ^ 1);
                prop_assert_eq!(paging.find(&page, other).unwrap().is_some(), lists.contains_key(&other));
            }
            let mut all = Vec::new();
            let read = paging.for_each_list(&page, first, |subject, list, range| {
                assert_eq!(list.start_in(&page), range.start);
                all.push((subject, range));
                Some(())
            });
            prop_assert!(read.is_some());
            prop_assert!(all.iter().map(|(subject, _)| subject).eq(lists.keys()));
            prop_assert!(all.iter().all(|(subject, range)| page[range.clone()] == written(lists[subject], false)));
            prop_assert!(paging.for_each_list(&page, first, |_, _, _| None).is_none());
        }

        #[test]
        fn any_bytes_are_read(bytes: Vec<u8>, subject: u64) {
            if let Some(list) = List::parse(&bytes) {
                let _ = (list.first_id(), list.items());
            }
            let paging = Paging::for_items(1000);
            let _ = paging.find(&bytes, Subject(subject));
            let _ = paging.for_each_list(&bytes, Subject(subject), |_, _, _| Some(()));
        }
    }

    #[test]
    fn lists_apart_come_back() {
        let apart = Apart {
            items: 70_000,
            has_sums: true,
        };
        let mut bytes = Vec::new();
        apart.write(true, &mut bytes);
        let list = List::parse(&bytes).unwrap();
        assert_eq!((list.len, list.apart), (0, Some(apart)));
        assert!(list.white_to_move && list.items().unwrap().1.is_empty());
        bytes.clear();
        Apart {
            items: 256,
            ..apart
        }
        .write(true, &mut bytes);
        assert!(List::parse(&bytes).is_none(), "such a list is in its page");
    }

    #[test]
    fn games_in_a_row_take_a_byte_each() {
        let items: Vec<Item> = (0..1000).map(|id| (id, BookMove(id as u16 % 20))).collect();
        assert_eq!(written(&items, true).len(), 2 + 1 + 2 * 20 + 1000);
    }

    #[test]
    fn a_single_game_takes_few_bytes() {
        assert_eq!(written(&[(1_000_000, BookMove(7))], false).len(), 6);
    }
}
