//! Turning sorted records into the entries of the explorer's lists.
//!
//! As with positions, records are divided into pieces that are processed in parallel. A piece owns the pages whose
//! first record is in it.

use super::{games::StoredGames, list_record::ListRecord, period_builder::ListResults};
use crate::{
    error::Result,
    index::{
        pieces::{Piece, scan_groups},
        positions::EntryBatch,
        store::{
            LISTS, ListEntry, ListKey, chunk_key, list_entry,
            lists::{CHUNK, ChunkedList, INLINE, Item, Paging, is_of_position, write_list},
            page_key,
        },
    },
    leveldb::BLOCK_SIZE,
    sort::Sealed,
    task,
};

/// The maximum number of bytes of chunks that are held in memory for one page. Further chunks are spilled, unless they
/// are small.
const MOST_HELD: usize = 256 << 10;

/// Creates the entries of all pages whose first record is in `piece`.
///
/// # Errors
///
/// Returns an error if a temporary file cannot be read or written.
pub(in crate::index) fn list_entries(
    piece: &Piece,
    records: &Sealed<ListRecord>,
    games: &StoredGames,
    paging: Paging,
) -> Result<EntryBatch> {
    task::fault("write lists");
    let mut maker = ListBuilder::new(paging, games);
    let page_of = |record: ListRecord| paging.page(record.subject());
    scan_groups(records, piece, page_of, |record| maker.add(record))?;
    maker.finish()
}

/// A builder that turns sorted records into entries of pages, chunks and sums.
///
/// Short lists are stored in pages. A longer list is divided into chunks, each in an entry of its own before the page
/// that refers to it.
pub(in crate::index) struct ListBuilder<'a> {
    paging: Paging,
    /// The games whose rows are added up in sums.
    games: &'a StoredGames,
    made: EntryBatch,
    /// The number of the current page, or `None` if no page is open.
    page: Option<u64>,
    /// The encoded lists of the current page.
    lists: Vec<u8>,
    /// The subject of the current list.
    subject: ListKey,
    white_to_move: bool,
    /// The items of the current list that are not in a complete chunk.
    list: Vec<Item>,
    /// The number of complete chunks of the current list.
    chunks: u32,
    /// The number of bytes of the current page's chunks.
    bytes_before: usize,
    /// Whether an item in the complete chunks says that the subject is a position.
    is_position: bool,
    /// The sums of the items in the complete chunks.
    sums: ListResults<'a>,
}

impl<'a> ListBuilder<'a> {
    /// Creates a maker without records.
    pub(in crate::index) fn new(paging: Paging, games: &'a StoredGames) -> ListBuilder<'a> {
        ListBuilder {
            paging,
            games,
            made: EntryBatch::default(),
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

    /// Adds the next record.
    ///
    /// # Errors
    ///
    /// Returns an error if a temporary file cannot be read or written.
    #[inline]
    pub(in crate::index) fn add(&mut self, record: ListRecord) -> Result<()> {
        let subject = record.subject();
        if self.page.is_none() || subject != self.subject {
            self.begin(subject, record.white_to_move())?;
        } else if self.list.len() == CHUNK {
            self.end_chunk(true)?;
        }
        self.list.push((record.id(), record.book_move()));
        self.made.steps += 1;
        Ok(())
    }

    /// Adds encoded inline lists with their subjects, which all belong to the same page. `last` is the subject of the
    /// last list. The caller has passed them to [`count_lists`](ListBuilder::count_lists).
    pub(in crate::index) fn add_lists(&mut self, last: ListKey, lists: &[u8]) -> Result<()> {
        self.begin(last, false)?;
        self.lists.extend_from_slice(lists);
        Ok(())
    }

    /// Counts the positions among encoded lists with their subjects, which all belong to the page of `any`. Returns
    /// `None` if the lists are malformed.
    pub(in crate::index) fn count_lists(&mut self, any: ListKey, lists: &[u8]) -> Option<()> {
        let made = &mut self.made;
        self.paging.for_each_list(lists, any, |_, list, _| {
            let games = list.games_of_position();
            made.positions += u64::from(games.is_some());
            made.postings += games.unwrap_or(0);
            Some(())
        })
    }

    /// Closes the current list and begins the list of `subject`.
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

    /// Closes the current list, if it has items: encodes it into the page, or writes its last chunk and its sums.
    fn end_list(&mut self) -> Result<()> {
        if self.list.is_empty() {
            return Ok(());
        }
        self.paging.put_subject(self.subject, &mut self.lists);
        self.is_position |= self.list.iter().any(|(_, mv)| is_of_position(*mv));
        let is_position = std::mem::take(&mut self.is_position);
        let items = u64::from(self.chunks) * CHUNK as u64 + self.list.len() as u64;
        if is_position {
            self.made.positions += 1;
            self.made.postings += items;
        }
        if self.chunks == 0 && self.list.len() <= INLINE {
            write_list(&self.list, self.white_to_move, &mut self.lists);
            self.list.clear();
            return Ok(());
        }
        self.end_chunk(false)?;
        self.chunks = 0;
        let sums = std::mem::take(&mut self.sums);
        let has_periods = sums.write(self.subject, &mut self.made.entries);
        let list = ChunkedList {
            items,
            is_of_position: is_position,
            has_periods,
        };
        list.write(self.white_to_move, &mut self.lists);
        Ok(())
    }

    /// Writes the current items as a chunk.
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

    /// Adds an entry for a chunk of a long list, which is stored before the page that refers to it. Spills the chunk to
    /// a temporary file if the page already has many bytes of chunks.
    fn push(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        self.bytes_before += value.len();
        let entries = &mut self.made.entries;
        if self.bytes_before > MOST_HELD && value.len() > BLOCK_SIZE {
            return entries.push_spilled(key, value, self.games.temp_dir());
        }
        entries.push(key, value);
        Ok(())
    }

    /// Copies an entry of the next page, a chunk or the page itself, from another index. The caller has passed a page to
    /// [`count_lists`](ListBuilder::count_lists).
    pub(in crate::index) fn pass(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        self.end_list()?;
        self.end_page();
        if let Some(ListEntry::Page(_)) = list_entry(LISTS, key) {
            self.made.entries.push(key, value);
            self.bytes_before = 0;
            return Ok(());
        }
        self.push(key, value)
    }

    /// Writes the current page, if one is open.
    fn end_page(&mut self) {
        if self.page.take().is_some() {
            let key = page_key(LISTS, self.paging.last_of(self.subject));
            self.made.entries.push(&key, &self.lists);
            self.lists.clear();
            self.bytes_before = 0;
        }
    }

    /// Writes the last page and returns the entries.
    pub(in crate::index) fn finish(mut self) -> Result<EntryBatch> {
        self.end_list()?;
        self.end_page();
        Ok(self.made)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        index::entries::{Entries, Value},
        sort::{Memory, Record, Shards},
    };

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
        let records = shards.seal().unwrap();
        let games = StoredGames::new(0, dir.path().to_owned());

        let piece = Piece {
            shard: all[0].shard(),
            range: 0..1000,
        };
        let paging = Paging::for_items(u64::from(GAMES));
        let made = list_entries(&piece, &records, &games, paging).unwrap();
        assert_eq!(made.steps, u64::from(GAMES));
        let held = made.entries.held();
        assert!(held < 512 << 10, "{held}");

        // Copied entries are spilled too.
        let mut maker = ListBuilder::new(paging, &games);
        let value_in = |entries: &Entries, number| match entries.value(number) {
            Value::Held(value) => value.to_vec(),
            Value::Spilled(value) => {
                let mut bytes = Vec::new();
                let mut take = |part: &[u8]| {
                    bytes.extend_from_slice(part);
                    Ok(())
                };
                entries.read_spilled(value, &mut take).unwrap();
                bytes
            }
        };
        for number in 0..made.entries.len() {
            let value = value_in(&made.entries, number);
            maker.pass(made.entries.key(number), &value).unwrap();
        }
        let passed = maker.finish().unwrap().entries;
        assert_eq!(passed.held(), held);
        for number in 0..made.entries.len() {
            assert_eq!(passed.key(number), made.entries.key(number));
            assert_eq!(value_in(&passed, number), value_in(&made.entries, number));
        }
    }
}
