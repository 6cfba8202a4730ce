//! Encodes the lists of an explorer index. For each position, such a list contains the games that reached the position,
//! each with the move that was played there.
//!
//! A list belongs to a [`ListKey`], which is called its subject: a position, a player with a color, a name, or an id of
//! another site. Subjects are 64-bit numbers, and lists are sorted by subject. Lists of up to [`MAX_INLINE_ITEMS`]
//! items are stored in *pages*. A page contains the lists of all subjects with the same first bits. Longer lists are
//! stored in *chunks* of [`ITEMS_PER_CHUNK`] items each; the last chunk contains the rest.
//!
//! | part | encoding |
//! |---|---|
//! | a page | for each subject: its last bits in as many whole bytes as they need, high ones first, and its list |
//! | a list | varint 2n + t, where n is the number of items, or 0 for a list in chunks, and t is 1 if White is to move; the items |
//! | a list in chunks | after varint t: varint 4n + 2p + s, where n is the number of items, p is 1 if the subject is a position, and s is 1 if the position has results by [`period`](super::periods) |
//! | a chunk | a byte that is 1 if another chunk follows and 0 otherwise; a list |
//! | one item | the move, 2 bytes; varint of the id |
//! | several items | varint m and the m different moves, 2 bytes each, in the order of their first occurrence; for each item a varint: the id minus the previous id minus 1 (for the first item, the id), times 2^b, plus the index of its move, where b is the least number of bits that m - 1 fits into |
//!
//! Moves are 16-bit Polyglot numbers, little-endian. The move is 0 for games that end in the position. It is 65534 in
//! lists of players and site ids, and 65535 in lists of name numbers.
//!
//! `ListBuilder` converts sorted records to pages, chunks and results by period. Records are divided into ranges that
//! are processed in parallel. A page belongs to the range that contains its first record.

use std::ops::Range;

use super::{
    LISTS, ListKey, Paging,
    bits::bits_for,
    chunk_key,
    games::StoredGames,
    list_record::{ListItem, ListRecord, is_of_position},
    page_key,
    periods::ListResults,
};
use crate::{
    chess::position::BookMove,
    error::Result,
    formats::{
        fork_index::entry_batches::{EntryBatch, ShardRange, scan_groups},
        leveldb::{BLOCK_SIZE, put_varint, take_size, take_varint},
    },
    storage::sort::Sorted,
    task,
};

/// The maximum number of items in a list that is stored in a page, an index entry that contains several lists. The
/// limit keeps pages short. A longer list is divided into chunks, and each chunk is stored in a separate entry.
pub const MAX_INLINE_ITEMS: usize = 256;

/// The number of items in each chunk of a long list, except the last chunk, which may contain fewer. An item is a game
/// id with a move.
pub const ITEMS_PER_CHUNK: usize = 1 << 14;

/// Encodes a list of games and appends it to `out`. `items` must be sorted by game id, and must not be empty.
/// `white_to_move` tells whether White is to move in the position to which the list belongs.
///
/// # Panics
///
/// Panics in builds with overflow checks if the items are not sorted by id.
pub fn write_list(items: &[ListItem], white_to_move: bool, out: &mut Vec<u8>) {
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

/// A description of a long list of games, which a page contains in place of the list itself. A long list is divided
/// into parts, called chunks, and each chunk is stored in a separate index entry.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct ChunkedList {
    /// The number of items in all chunks together.
    pub items: u64,
    /// Whether the subject is a position.
    pub is_of_position: bool,
    /// Whether the position has results by [period](super::periods).
    pub has_periods: bool,
}

impl ChunkedList {
    /// Encodes the description of a long list and appends it to `out`, the page that contains the description in place
    /// of the list. `white_to_move` tells whether White is to move in the position to which the list belongs.
    pub fn write(self, white_to_move: bool, out: &mut Vec<u8>) {
        put_varint(out, u64::from(white_to_move));
        let flags = u64::from(self.is_of_position) << 1 | u64::from(self.has_periods);
        put_varint(out, self.items << 2 | flags);
    }

    /// Returns the number of chunks into which the list is divided. Each chunk is stored in a separate index entry.
    pub fn chunks(self) -> u64 {
        self.items.div_ceil(ITEMS_PER_CHUNK as u64)
    }

    /// Decodes the description of a long list at the front of `rest`, and removes it from `rest`. Returns `None` if the
    /// description is malformed, or if it describes a list that is too short for chunks.
    fn take(rest: &mut &[u8]) -> Option<ChunkedList> {
        let number = take_varint(rest)?;
        let items = number >> 2;
        (items > MAX_INLINE_ITEMS as u64).then_some(ChunkedList {
            items,
            is_of_position: number >> 1 & 1 == 1,
            has_periods: number & 1 == 1,
        })
    }
}

/// An encoded list of games, or one chunk of a long list. Each item consists of a game id and the move that was played
/// in the position to which the list belongs. Items are decoded when they are needed, without copying the list.
#[derive(Copy, Clone, Debug)]
pub struct List<'a> {
    /// The number of items, or 0 if the list is stored in chunks.
    pub len: usize,
    /// A description of the list if it is stored in chunks.
    pub chunked: Option<ChunkedList>,
    /// Whether White is to move in the position to which the list belongs.
    pub white_to_move: bool,
    /// The encoded list and all bytes after it.
    whole: &'a [u8],
    /// The different moves, two bytes each.
    moves: &'a [u8],
    /// The encoded items and all bytes after them.
    rest: &'a [u8],
}

impl<'a> List<'a> {
    /// Parses the head of the encoded list of games at the start of `bytes`. The head contains the number of games and
    /// the different moves that were played in the position. Returns `None` if the head is malformed.
    pub fn parse(bytes: &'a [u8]) -> Option<List<'a>> {
        let mut rest = bytes;
        let head = take_varint(&mut rest)?;
        let len = usize::try_from(head >> 1).ok()?;
        let chunked = match len {
            0 => Some(ChunkedList::take(&mut rest)?),
            _ => None,
        };
        let moves = match len {
            0 => 0,
            1 => 1,
            // Each item takes at least one byte.
            _ if len > rest.len() => return None,
            _ => take_size(&mut rest)?,
        };
        let (moves, rest) = rest.split_at_checked(moves.checked_mul(2)?)?;
        (len == 0 || !moves.is_empty()).then_some(List {
            len,
            chunked,
            white_to_move: head & 1 == 1,
            whole: bytes,
            moves,
            rest,
        })
    }

    /// Returns the offset in `page` at which this list begins. The list must have been parsed from a slice that ends
    /// where `page` ends.
    pub fn start_in(&self, page: &[u8]) -> usize {
        page.len() - self.whole.len()
    }

    /// Returns the number of games in this list if it contains the games of a position. Returns `None` if it contains
    /// the games of a player or of a Lichess id, or names.
    pub fn games_of_position(&self) -> Option<u64> {
        match self.chunked {
            Some(chunked) => chunked.is_of_position.then_some(chunked.items),
            None => self.moves().any(is_of_position).then_some(self.len as u64),
        }
    }

    /// Returns an iterator over the different moves in the list. Encoded items contain indices into this sequence
    /// instead of moves. The iterator is empty if the list is stored in chunks.
    pub fn moves(&self) -> impl Iterator<Item = BookMove> + 'a {
        let (moves, _) = self.moves.as_chunks::<2>();
        moves.iter().map(|mv| BookMove(u16::from_le_bytes(*mv)))
    }

    /// Returns the game id of the first item. Returns `None` if the list has no items, or if its first item is
    /// malformed.
    pub fn first_id(&self) -> Option<u32> {
        let bits = bits_for(self.moves.len() / 2);
        let mut rest = self.rest;
        let item = take_varint(&mut rest).filter(|_| self.len > 0)?;
        u32::try_from(item >> bits).ok()
    }

    /// Calls `f` with the game id of each item and the index of its move in [`moves`](List::moves), in ascending
    /// order of ids. Returns the bytes after the list, or `None` if the list is malformed.
    // A single loop, because every query runs it for every game.
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

    /// Decodes all items of the list. An item is a pair of a game id and the move that was played in this game. Returns
    /// the items and the bytes after the list, or `None` if the list is malformed.
    pub fn items(&self) -> Option<(Vec<ListItem>, &'a [u8])> {
        let moves: Vec<BookMove> = self.moves().collect();
        let mut items = Vec::with_capacity(self.len);
        let rest = self.for_each(|id, number| items.push((id, moves[number])))?;
        Some((items, rest))
    }
}

/// Finds the list with the key `subject` in `page`, an encoded index entry with several lists. `paging` is the rule
/// that groups lists in pages. Returns `Some(None)` if the page does not contain the list, and `None` if the page is
/// malformed.
pub fn find_list(paging: Paging, page: &[u8], subject: ListKey) -> Option<Option<List<'_>>> {
    let mut found = None;
    for_each_list(paging, page, subject, |other, list, _| {
        found = found.or((other == subject).then_some(list));
        Some(())
    })?;
    Some(found)
}

/// Calls `f` for each list in `page`, an encoded index entry with several lists. `f` receives the key of the list, the
/// list, and the list's byte range in the page.
///
/// `paging` is the rule that groups lists in pages: all keys of a page begin with the same bits. The page does not
/// store these bits, so `page_member` supplies them: any key that belongs to the page by this rule, even if the page
/// does not contain it. Returns `None` if the page is malformed, or if `f` returns `None`.
pub fn for_each_list<'a>(
    paging: Paging,
    page: &'a [u8],
    page_member: ListKey,
    mut f: impl FnMut(ListKey, List<'a>, Range<usize>) -> Option<()>,
) -> Option<()> {
    let first = paging.first_of(page_member).0;
    let mut rest = page;
    let mut last = None;
    while !rest.is_empty() {
        let (stored, list) = rest.split_at_checked(paging.stored())?;
        let mut bytes = [0; 8];
        bytes[8 - stored.len()..].copy_from_slice(stored);
        let subject = ListKey(first | u64::from_be_bytes(bytes));
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

/// The maximum total size in bytes of the chunks that are held in memory until their page is complete. A page is an
/// index entry that contains several lists, and a chunk is a part of a long list. The chunks are written before the
/// page. When the limit is exceeded, chunks longer than [`BLOCK_SIZE`] are spilled to a temporary file.
const MAX_CHUNK_BYTES_IN_MEMORY: usize = 256 << 10;

/// Creates index entries from those of `records` that are in `range`. Lists are stored in pages, which are entries with
/// several lists. If a page extends over several ranges, the call for the first of these ranges creates the whole page.
///
/// `paging` is the rule that groups lists in pages. `games` contains the game rows, which are needed to add up the
/// results of long lists.
///
/// # Errors
///
/// Returns an error if a temporary file cannot be read or written.
pub(crate) fn list_entries(
    range: &ShardRange,
    records: &Sorted<ListRecord>,
    games: &StoredGames,
    paging: Paging,
) -> Result<EntryBatch> {
    task::fault("write lists");
    let mut maker = ListBuilder::new(paging, games);
    let page_of = |record: ListRecord| paging.page(record.subject());
    scan_groups(records, range, page_of, |record| maker.add(record))?;
    maker.finish()
}

/// A builder that converts sorted list records to the entries of an explorer index.
///
/// Short lists are stored together in pages. A longer list is divided into chunks, and each chunk becomes one entry.
/// For a position with very many games, the builder also creates entries with the results by period.
pub(crate) struct ListBuilder<'a> {
    paging: Paging,
    /// The games whose results are added up for long lists.
    games: &'a StoredGames,
    batch: EntryBatch,
    /// The number of the current page, or `None` if no page is open.
    page: Option<u64>,
    /// The encoded lists of the current page.
    lists: Vec<u8>,
    /// The subject of the current list.
    subject: ListKey,
    white_to_move: bool,
    /// The items of the current list that are not in a complete chunk.
    list: Vec<ListItem>,
    /// The number of complete chunks of the current list.
    chunks: u32,
    /// The total size in bytes of the chunks of the current page.
    bytes_before: usize,
    /// Whether an item in the complete chunks shows that the subject is a position.
    is_position: bool,
    /// The results of the games in the complete chunks.
    sums: ListResults<'a>,
}

impl<'a> ListBuilder<'a> {
    /// Creates a builder without records. `paging` determines which lists share a page, an index entry that contains
    /// several lists. `games` contains the game rows, which are needed to add up the results of long lists.
    pub(crate) fn new(paging: Paging, games: &'a StoredGames) -> ListBuilder<'a> {
        ListBuilder {
            paging,
            games,
            batch: EntryBatch::default(),
            page: None,
            lists: Vec::new(),
            subject: ListKey(0),
            white_to_move: false,
            list: Vec::new(),
            chunks: 0,
            bytes_before: 0,
            is_position: false,
            sums: ListResults::default(),
        }
    }

    /// Adds a record, which contains one item of a list: the id of a game, or the number that the index has assigned to
    /// a player or event name. Records must be added in ascending order of list keys, and within a list in ascending
    /// order of ids or numbers.
    ///
    /// # Errors
    ///
    /// Returns an error if a temporary file cannot be read or written.
    #[inline]
    pub(crate) fn add(&mut self, record: ListRecord) -> Result<()> {
        let subject = record.subject();
        if self.page.is_none() || subject != self.subject {
            self.begin(subject, record.white_to_move())?;
        } else if self.list.len() == ITEMS_PER_CHUNK {
            self.end_chunk(true)?;
        }
        self.list.push((record.id(), record.book_move()));
        self.batch.steps += 1;
        Ok(())
    }

    /// Ends the current list, and begins the list with the key `subject`. If the new list belongs to another page (an
    /// index entry with several lists), also ends the current page. `white_to_move` tells whether White is to move in
    /// the position to which the new list belongs.
    fn begin(&mut self, subject: ListKey, white_to_move: bool) -> Result<()> {
        self.end_list()?;
        let page = self.paging.page(subject);
        if self.page != Some(page) {
            self.end_page();
            self.page = Some(page);
        }
        self.subject = subject;
        self.white_to_move = white_to_move;
        Ok(())
    }

    /// Ends the current list of games. Adds a short list to the current page. For a long list, adds its last chunk and
    /// its results by period to the entries of the index. Does nothing if the list has no items.
    fn end_list(&mut self) -> Result<()> {
        if self.list.is_empty() {
            return Ok(());
        }
        self.paging.put_subject(self.subject, &mut self.lists);
        self.is_position |= self.list.iter().any(|(_, mv)| is_of_position(*mv));
        let is_position = std::mem::take(&mut self.is_position);
        let items = u64::from(self.chunks) * ITEMS_PER_CHUNK as u64 + self.list.len() as u64;
        if is_position {
            self.batch.positions += 1;
            self.batch.postings += items;
        }
        if self.chunks == 0 && self.list.len() <= MAX_INLINE_ITEMS {
            write_list(&self.list, self.white_to_move, &mut self.lists);
            self.list.clear();
            return Ok(());
        }
        self.end_chunk(false)?;
        self.chunks = 0;
        let sums = std::mem::take(&mut self.sums);
        let has_periods = sums.write(self.subject, &mut self.batch.entries);
        let list = ChunkedList {
            items,
            is_of_position: is_position,
            has_periods,
        };
        list.write(self.white_to_move, &mut self.lists);
        Ok(())
    }

    /// Stores the items that were collected for the current list as a chunk of this list. Each chunk of a long list is
    /// a separate index entry. `another_follows` tells whether the list will have another chunk.
    fn end_chunk(&mut self, another_follows: bool) -> Result<()> {
        self.is_position |= another_follows && self.list.iter().any(|(_, mv)| is_of_position(*mv));
        self.sums.add(&self.list, self.white_to_move, self.games)?;
        let mut chunk = vec![u8::from(another_follows)];
        write_list(&self.list, self.white_to_move, &mut chunk);
        self.list.clear();
        let key = chunk_key(self.subject, self.chunks);
        self.chunks += 1;
        self.push(&key, &chunk)
    }

    /// Adds a chunk of a long list to the entries of the index. `key` and `value` are the key and the value of its
    /// entry. If the chunks that precede the current page already take more memory than [`MAX_CHUNK_BYTES_IN_MEMORY`],
    /// spills the chunk to a temporary file, unless it is short.
    fn push(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        self.bytes_before += value.len();
        let entries = &mut self.batch.entries;
        if self.bytes_before > MAX_CHUNK_BYTES_IN_MEMORY && value.len() > BLOCK_SIZE {
            return entries.push_spilled(key, value, self.games.temp_dir());
        }
        entries.push(key, value);
        Ok(())
    }

    /// Ends the current page, an index entry with several lists, and adds it to the completed entries. Does nothing if
    /// no page is open.
    fn end_page(&mut self) {
        if self.page.take().is_some() {
            let key = page_key(LISTS, self.paging.last_of(self.subject));
            self.batch.entries.push(&key, &self.lists);
            self.lists.clear();
            self.bytes_before = 0;
        }
    }

    /// Ends the current list and the current page. Returns all index entries that this builder has created.
    pub(crate) fn finish(mut self) -> Result<EntryBatch> {
        self.end_list()?;
        self.end_page();
        Ok(self.batch)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::storage::sort::{Memory, Record, Shards};

    fn lists() -> impl Strategy<Value = Vec<ListItem>> {
        let ids = proptest::collection::btree_map(any::<u32>(), 0..400u16, 1..60);
        ids.prop_map(|items| {
            items
                .into_iter()
                .map(|(id, mv)| (id, BookMove(mv)))
                .collect()
        })
    }

    fn written(items: &[ListItem], white_to_move: bool) -> Vec<u8> {
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
            bits in 8..=40u32,
        ) {
            let paging = Paging::of_bits(bits).unwrap();
            let first = ListKey(0x1234_5678_9abc_def0);
            let in_page = |low: u64| ListKey(paging.last_of(first).0 & (low | !(u64::MAX >> bits)));
            let lists: std::collections::BTreeMap<ListKey, _> = lists.iter().map(|(low, list)| (in_page(*low), list)).collect();
            let mut page = Vec::new();
            for (subject, list) in &lists {
                prop_assert_eq!(paging.page(*subject), paging.page(first));
                paging.put_subject(*subject, &mut page);
                page.extend_from_slice(&written(list, false));
            }
            for (subject, list) in &lists {
                let found = find_list(paging, &page, *subject).unwrap().unwrap();
                prop_assert_eq!(&found.items().unwrap().0, *list);
                let other = ListKey(subject.0 ^ 1);
                prop_assert_eq!(find_list(paging, &page, other).unwrap().is_some(), lists.contains_key(&other));
            }
            let mut all = Vec::new();
            let read = for_each_list(paging, &page, first, |subject, list, range| {
                assert_eq!(list.start_in(&page), range.start);
                all.push((subject, range));
                Some(())
            });
            prop_assert!(read.is_some());
            prop_assert!(all.iter().map(|(subject, _)| subject).eq(lists.keys()));
            prop_assert!(all.iter().all(|(subject, range)| page[range.clone()] == written(lists[subject], false)));
            prop_assert!(for_each_list(paging, &page, first, |_, _, _| None).is_none());
        }

        #[test]
        fn any_bytes_are_read(bytes: Vec<u8>, subject: u64) {
            if let Some(list) = List::parse(&bytes) {
                let _ = (list.first_id(), list.items());
            }
            let paging = Paging::for_items(1000);
            let _ = find_list(paging, &bytes, ListKey(subject));
            let _ = for_each_list(paging, &bytes, ListKey(subject), |_, _, _| Some(()));
        }
    }

    #[test]
    fn lists_apart_come_back() {
        let chunked = ChunkedList {
            items: 70_000,
            is_of_position: true,
            has_periods: true,
        };
        let mut bytes = Vec::new();
        chunked.write(true, &mut bytes);
        let list = List::parse(&bytes).unwrap();
        assert_eq!((list.len, list.chunked), (0, Some(chunked)));
        assert_eq!(list.games_of_position(), Some(70_000));
        assert!(list.white_to_move && list.items().unwrap().1.is_empty());
        bytes.clear();
        ChunkedList {
            items: 256,
            ..chunked
        }
        .write(true, &mut bytes);
        assert!(List::parse(&bytes).is_none(), "such a list is in its page");
    }

    #[test]
    fn games_in_a_row_take_a_byte_each() {
        let items: Vec<ListItem> = (0..1000).map(|id| (id, BookMove(id as u16 % 20))).collect();
        assert_eq!(written(&items, true).len(), 2 + 1 + 2 * 20 + 1000);
    }

    #[test]
    fn a_single_game_takes_few_bytes() {
        assert_eq!(written(&[(1_000_000, BookMove(7))], false).len(), 6);
    }

    #[test]
    fn the_chunks_of_a_page_are_spilled() {
        const GAMES: u32 = 2_000_000;
        let subject = ListKey(7 << 40);
        let dir = tempfile::tempdir().unwrap();
        let shards = Shards::new(Memory::default());
        let all: Vec<ListRecord> = (0..GAMES)
            .map(|id| ListRecord::listed(subject, id))
            .collect();
        for records in all.chunks(100_000) {
            shards.append(records).unwrap();
        }
        let records = shards.sort().unwrap();
        let games = StoredGames::new(0, dir.path().to_owned());

        let range = ShardRange {
            shard: all[0].shard(),
            indices: 0..1000,
        };
        let paging = Paging::for_items(u64::from(GAMES));
        let batch = list_entries(&range, &records, &games, paging).unwrap();
        assert_eq!(batch.steps, u64::from(GAMES));
        let held = batch.entries.bytes_in_memory();
        assert!(held < 512 << 10, "{held}");
    }
}
