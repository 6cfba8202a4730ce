//! Reading the explorer's index.

use crate::{
    error::{Error, Result},
    index::{
        Index,
        layout::GameHeader,
        store::{
            self, COUNTED, COUNTS, CountedContents, GameRow, LISTS, ListKey, Paging, chunk_key,
            count_pages::{CountedList, find_counts},
            game_details::{GAMES_PER_ENTRY, GameDetails},
            game_rows::{ROW_SIZE, ROWS_PER_ENTRY},
            lists::{ChunkedList, ITEMS_PER_CHUNK, List, find_list, for_each_list},
            names::{NAMES_PER_ENTRY, parse_names},
            names_key, page_key, period_key,
            periods::{PeriodResults, take_years},
            results::{Period, YearMonths},
        },
    },
    task,
};

impl Index {
    /// Returns the names in entry `number` of the table of player and event names. `names` is the total number of names
    /// in the index, from which the expected number of names in the entry follows.
    ///
    /// # Errors
    ///
    /// Returns an error if the entry cannot be read, is malformed, or does not contain the expected number of names.
    pub(in crate::index) fn name_entry(&self, number: u32, names: u32) -> Result<Vec<Box<str>>> {
        let key = names_key(number);
        let expected = names
            .saturating_sub(number.saturating_mul(NAMES_PER_ENTRY))
            .min(NAMES_PER_ENTRY);
        let value = self.value(&key)?.unwrap_or_default();
        parse_names(&value)
            .filter(|names| names.len() == expected as usize)
            .ok_or_else(|| self.malformed(&key))
    }

    /// Returns the game rows in entry `number` of the table of games. An entry contains [`ROWS_PER_ENTRY`] rows, or
    /// fewer if it is the last entry.
    pub(crate) fn row_entry(&self, number: u64) -> Result<Vec<GameRow>> {
        let value = self.row_bytes(number)?;
        let (rows, _) = value.as_chunks::<ROW_SIZE>();
        rows.iter()
            .map(|row| self.parsed_row(number, row))
            .collect()
    }

    /// Returns the encoded game rows in entry `number` of the table of games, one after the other.
    ///
    /// # Errors
    ///
    /// Returns an error if the entry cannot be read or does not have the expected length.
    fn row_bytes(&self, number: u64) -> Result<Vec<u8>> {
        let key = store::rows_key(number as u32);
        let value = self.value(&key)?.unwrap_or_default();
        let games = (self.game_count() - number * ROWS_PER_ENTRY).min(ROWS_PER_ENTRY) as usize;
        match value.len() == games * ROW_SIZE {
            true => Ok(value),
            false => Err(self.malformed(&key)),
        }
    }

    fn parsed_row(&self, entry: u64, row: &[u8; ROW_SIZE]) -> Result<GameRow> {
        GameRow::parse(row).ok_or_else(|| self.malformed(&store::rows_key(entry as u32)))
    }

    /// Returns the row of game `id`. The row contains the properties of the game that filters use, such as its ratings
    /// and its date.
    fn row(&self, id: u32) -> Result<GameRow> {
        let (entry, index) = (
            u64::from(id) / ROWS_PER_ENTRY,
            (u64::from(id) % ROWS_PER_ENTRY) as usize,
        );
        let row_in = |rows: &[u8]| self.parsed_row(entry, &rows.as_chunks::<ROW_SIZE>().0[index]);
        if let Some(last) = task::try_lock(&self.last_rows)
            && let Some((number, rows)) = &*last
            && *number == entry
        {
            return row_in(rows);
        }
        let rows = self.row_bytes(entry)?;
        let row = row_in(&rows)?;
        if let Some(mut last) = task::try_lock(&self.last_rows) {
            *last = Some((entry, rows));
        }
        Ok(row)
    }

    /// Returns the header of game `id`. The index must be an explorer's index that was made from games, not from counts.
    pub(in crate::index) fn stored_header(&self, id: u32) -> Result<GameHeader> {
        let row = self.row(id)?;
        let name = |number| self.name(number);
        let [white, black, event] = [name(row.white)?, name(row.black)?, name(row.event)?];
        self.with_details(id, |details| details.header(&row, [&white, &black, &event]))
    }

    /// Calls `f` with the details of game `id`, and returns the result of `f`. The details contain the offset of the
    /// game in its PGN file, and the header fields that the row of the game does not contain.
    pub(in crate::index) fn with_details<T>(
        &self,
        id: u32,
        f: impl FnOnce(GameDetails<'_>) -> T,
    ) -> Result<T> {
        let (entry, before) = (
            u64::from(id) / GAMES_PER_ENTRY,
            u64::from(id) % GAMES_PER_ENTRY,
        );
        let key = store::details_key(entry as u32);
        let value = self.value(&key)?.unwrap_or_default();
        let mut rest = &value[..];
        let passed = (0..before).all(|_| GameDetails::take(&mut rest).is_some());
        let details = GameDetails::take(&mut rest).filter(|_| passed);
        details.map(f).ok_or_else(|| self.malformed(&key))
    }

    /// Calls `f` with the details of each game in the entry with the number `entry`, in ascending order of game ids.
    /// `f` receives the details both as encoded bytes and in decoded form.
    ///
    /// # Errors
    ///
    /// Returns an error if `f` fails, or if the entry cannot be read, is malformed, or does not contain the expected
    /// number of games.
    pub(in crate::index) fn for_each_details(
        &self,
        entry: u64,
        mut f: impl FnMut(&[u8], GameDetails<'_>) -> Result<()>,
    ) -> Result<()> {
        let key = store::details_key(entry as u32);
        let value = self.value(&key)?.unwrap_or_default();
        let mut rest = &value[..];
        for _ in 0..(self.game_count() - entry * GAMES_PER_ENTRY).min(GAMES_PER_ENTRY) {
            let start = rest;
            let details = GameDetails::take(&mut rest).ok_or_else(|| self.malformed(&key))?;
            f(&start[..start.len() - rest.len()], details)?;
        }
        match rest.is_empty() {
            true => Ok(()),
            false => Err(self.malformed(&key)),
        }
    }

    /// Reads the list with the key `subject`, in one or several parts. The parts of a long list are its chunks. A list
    /// in a page (an entry that contains several lists) has a single part, and a list that does not exist has none.
    /// `location` must be the result of [`find_list`](Index::find_list) for the same key.
    pub(crate) fn list(&self, subject: ListKey, location: ListLocation) -> Result<Vec<StoredPart>> {
        match location {
            ListLocation::InPage(list) => Ok(list.into_iter().collect()),
            ListLocation::Chunks(chunked) => self.chunks(subject, chunked).collect(),
        }
    }

    /// Finds out where the list with the key `subject` is stored. `paging` is the rule that groups lists in pages,
    /// which are entries that contain several lists.
    pub(crate) fn find_list(&self, paging: Paging, subject: ListKey) -> Result<ListLocation> {
        let nowhere = ListLocation::InPage(None);
        let key = page_key(LISTS, paging.last_of(subject));
        let Some(page) = self.value(&key)? else {
            return Ok(nowhere);
        };
        let found = find_list(paging, &page, subject);
        let Some(list) = found.ok_or_else(|| self.malformed(&key))? else {
            return Ok(nowhere);
        };
        if let Some(chunked) = list.chunked {
            return Ok(ListLocation::Chunks(chunked));
        }
        let start = list.start_in(&page);
        Ok(ListLocation::InPage(Some(StoredPart {
            key,
            value: page,
            start,
        })))
    }

    /// Calls `f` with the key and the list for each list in a page, in ascending order of keys. A page is an entry that
    /// contains several lists. `page_member` is any list key that belongs to the page, and `paging` is the rule that
    /// groups lists in pages.
    ///
    /// # Errors
    ///
    /// Returns an error if `f` fails, or if the page cannot be read or is malformed.
    pub(crate) fn for_each_list(
        &self,
        paging: Paging,
        page_member: ListKey,
        mut f: impl FnMut(ListKey, List<'_>) -> Result<()>,
    ) -> Result<()> {
        let key = page_key(LISTS, paging.last_of(page_member));
        let page = self.value(&key)?.unwrap_or_default();
        let mut failed = Ok(());
        let read = for_each_list(paging, &page, page_member, |subject, list, _| {
            failed = f(subject, list);
            failed.is_ok().then_some(())
        });
        failed?;
        read.ok_or_else(|| self.malformed(&key))
    }

    /// Returns an iterator over the chunks of a long list of games. Each chunk is stored in an entry of its own.
    /// `subject` is the key of the list, and `chunked` is its description.
    pub(in crate::index) fn chunks(
        &self,
        subject: ListKey,
        chunked: ChunkedList,
    ) -> impl Iterator<Item = Result<StoredPart>> {
        (0..chunked.chunks()).map(move |number| {
            let items = chunked.items - number * ITEMS_PER_CHUNK as u64;
            self.chunk(subject, number as u32, items)
        })
    }

    /// Reads chunk `number` of the long list with the key `subject`. Chunks are counted from 0. `items` is the number
    /// of items from this chunk to the end of the list. It determines how many items the chunk must contain.
    fn chunk(&self, subject: ListKey, number: u32, items: u64) -> Result<StoredPart> {
        let key = chunk_key(subject, number);
        let chunk = self.value(&key)?.unwrap_or_default();
        let another_follows = u8::from(items > ITEMS_PER_CHUNK as u64);
        let expected = items.min(ITEMS_PER_CHUNK as u64) as usize;
        match List::parse(chunk.get(1..).unwrap_or_default()) {
            Some(list) if list.len == expected && chunk[0] == another_follows => Ok(StoredPart {
                key,
                value: chunk,
                start: 1,
            }),
            _ => Err(self.malformed(&key)),
        }
    }

    /// Returns the description of an index of counts. Returns `None` if the index is of another kind.
    ///
    /// # Errors
    ///
    /// Returns an error if the description cannot be read, is damaged, or has another version of the layout.
    pub(crate) fn counted(&self) -> Result<Option<CountedContents>> {
        let Some(value) = self.value(COUNTED)? else {
            return Ok(None);
        };
        let contents = CountedContents::parse(&value);
        contents.map(Some).ok_or_else(|| {
            let problem = "the counts in this index are damaged, or were made by another version of polybook: make the \
                           index again";
            Error::damaged(self.path(), problem)
        })
    }

    /// Returns the counts of the position with the key `subject`: the results of its games, counted for each move.
    /// Returns `None` if the index does not contain the position. `paging` is the rule that groups positions in pages
    /// (entries with several positions).
    ///
    /// # Errors
    ///
    /// Returns an error if the page of the position cannot be read or is malformed.
    pub(crate) fn counted_list(
        &self,
        paging: Paging,
        subject: ListKey,
    ) -> Result<Option<CountedList>> {
        let key = page_key(COUNTS, paging.last_of(subject));
        let Some(page) = self.value(&key)? else {
            return Ok(None);
        };
        let found = find_counts(paging, &page, subject);
        found.ok_or_else(|| self.malformed(&key))
    }

    /// Reads the years in which a position has games, each with its months. The index must contain results by period
    /// for this position. `subject` is the key of the position. `prefix` is the prefix of the LevelDB key: [`LISTS`]
    /// for an index of games, [`COUNTS`] for an index of counts.
    ///
    /// # Errors
    ///
    /// Returns an error if the entry cannot be read or is malformed.
    pub(crate) fn years(&self, prefix: &[u8; 2], subject: ListKey) -> Result<Vec<YearMonths>> {
        let key = period_key(prefix, subject, Period::All);
        let value = self.value(&key)?.unwrap_or_default();
        take_years(&mut &value[..]).ok_or_else(|| self.malformed(&key))
    }

    /// Reads the results of a position in a period: all time, a year or a month. The index must contain results by
    /// period for this position. `subject` is the key of the position. `prefix` is the prefix of the LevelDB key:
    /// [`LISTS`] for an index of games, [`COUNTS`] for an index of counts.
    ///
    /// # Errors
    ///
    /// Returns an error if the entry cannot be read, is missing or is malformed.
    pub(crate) fn results(
        &self,
        prefix: &[u8; 2],
        subject: ListKey,
        period: Period,
    ) -> Result<PeriodResults> {
        let key = period_key(prefix, subject, period);
        let value = self.value(&key)?.unwrap_or_default();
        let parse = |mut rest: &[u8]| {
            if period == Period::All {
                take_years(&mut rest)?;
            }
            PeriodResults::parse(rest, prefix != COUNTS)
        };
        parse(&value).ok_or_else(|| self.malformed(&key))
    }

    /// Returns the ids of all games in the list with the key `subject`, in ascending order. `paging` is the rule that
    /// groups lists in pages (entries that contain several lists).
    pub(crate) fn list_ids(&self, paging: Paging, subject: ListKey) -> Result<Vec<u32>> {
        let mut ids = Vec::new();
        for part in self.list(subject, self.find_list(paging, subject)?)? {
            part.list(self)?
                .for_each(|id, _| ids.push(id))
                .ok_or_else(|| self.malformed(&part.key))?;
        }
        ids.sort_unstable();
        Ok(ids)
    }
}

/// The place at which an explorer's index stores a list.
#[derive(Debug)]
pub(crate) enum ListLocation {
    /// The list is stored in a page, or does not exist (`None`).
    InPage(Option<StoredPart>),
    /// The list is stored in chunks.
    Chunks(ChunkedList),
}

/// A list that is stored in a page, or one chunk of a long list. The struct contains the whole index entry, and the
/// offset in it at which the list or the chunk begins.
#[derive(Debug)]
pub(crate) struct StoredPart {
    pub key: Vec<u8>,
    value: Vec<u8>,
    /// The offset in the value at which the list begins.
    start: usize,
}

impl StoredPart {
    /// Parses this list or chunk. `index` is the index that contains it, which error messages name.
    ///
    /// # Errors
    ///
    /// Returns an error if the list is malformed or has no items.
    pub(crate) fn list(&self, index: &Index) -> Result<List<'_>> {
        List::parse(&self.value[self.start..])
            .filter(|list| list.len > 0)
            .ok_or_else(|| index.malformed(&self.key))
    }
}
