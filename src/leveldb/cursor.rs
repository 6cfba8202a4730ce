//! Cursors, which iterate over entries in ascending order of keys.
//!
//! A [`TableCursor`] iterates over one table, and verifies that its keys are in order. A [`TablesCursor`]
//! iterates over several tables that do not overlap, one after the other. A [`DatabaseCursor`] merges all levels
//! and logs of a database. The newest entry of a key comes first and hides the older ones.

use std::{
    cmp::{Ordering, Reverse},
    collections::btree_map,
    iter::Peekable,
    sync::Arc,
    vec,
};

use super::{
    block::{Block, EntryState},
    database::Database,
    files::TableFile,
    key::{self, EntryKind},
    log::Logged,
    table::{Handle, StoredValue, Table},
};
use crate::error::{Error, Result};

/// The value of a cursor's current entry. It consists of the bytes of the value or, if the value is too long to be held
/// in memory, of its location in the database.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum TableValue<'a> {
    Held(&'a [u8]),
    Long(StoredValue),
}

impl<'a> TableValue<'a> {
    /// Returns the bytes of a value that is held in memory. A cursor that was created without a limit on the length
    /// of values holds every value in memory.
    ///
    /// # Panics
    ///
    /// Panics if the value is not held in memory.
    pub(crate) fn held(self) -> &'a [u8] {
        match self {
            TableValue::Held(value) => value,
            TableValue::Long(_) => unreachable!("values of any length are held"),
        }
    }
}

impl Database {
    /// Returns all tables of the database, sorted by key. Their key ranges do not overlap.
    ///
    /// # Errors
    ///
    /// Returns an error if tables overlap or a log contains entries. This happens only if another program has written
    /// to the database.
    pub(crate) fn tables_in_order(&self) -> Result<Vec<&TableFile>> {
        let mut tables: Vec<&TableFile> = self.version.tables().collect();
        tables.sort_by(|a, b| a.first_key.cmp(&b.first_key));
        let overlap = tables
            .windows(2)
            .any(|pair| pair[0].last_key >= pair[1].first_key);
        if overlap || !self.memtable.is_empty() {
            return Err(Error::changed(
                self.tables.directory(),
                "another program has written to this index: make the index again",
            ));
        }
        Ok(tables)
    }

    /// Creates a cursor over the entries of `tables`. The tables must be sorted by key and must not overlap. Only the
    /// first table may contain keys less than `start`.
    ///
    /// The cursor begins with the block that contains the first key greater than or equal to `start`. This block may
    /// begin with smaller keys.
    ///
    /// `longest` is the maximum size in bytes of a decompressed block that is read as a whole; a limit below 128 KiB
    /// counts as 128 KiB. Only the last value of a block can be long. If a block is larger than `longest`, the cursor
    /// reads all of the block except the last value, and returns the location of this value instead of its bytes.
    ///
    /// # Errors
    ///
    /// Returns an error if the first table cannot be read or is damaged.
    pub(crate) fn tables_cursor<'d>(
        &'d self,
        tables: Vec<&'d TableFile>,
        start: &[u8],
        longest: usize,
    ) -> Result<TablesCursor<'d>> {
        let mut cursor = TablesCursor {
            database: self,
            longest,
            start: start.to_vec(),
            tables: tables.into_iter(),
            table: None,
            passed: 0,
        };
        cursor.step()?;
        Ok(cursor)
    }

    /// Creates a cursor over the database that returns each key once, with its newest value, and skips deleted keys.
    /// Call [`advance`](DatabaseCursor::advance) to move it to the first entry.
    ///
    /// `longest` is the maximum size in bytes of a decompressed block that is read as a whole; a limit below 128 KiB
    /// counts as 128 KiB. Only the last value of a block can be long. If a block is larger than `longest`, the cursor
    /// reads all of the block except the last value, and returns the location of this value instead of its bytes.
    ///
    /// # Errors
    ///
    /// Returns an error if a table cannot be read or is damaged.
    pub(crate) fn entries(&self, longest: usize) -> Result<DatabaseCursor<'_>> {
        let [first, others @ ..] = &self.version.levels;
        // The tables of the first level may overlap, so each of them gets a cursor of its own.
        let levels = first.chunks(1).chain(others.iter().map(Vec::as_slice));
        let levels = levels.map(|tables| self.tables_cursor(tables.iter().collect(), b"", longest));
        Ok(DatabaseCursor {
            levels: levels.collect::<Result<_>>()?,
            logged: self.memtable.entries().peekable(),
            present: None,
            logged_value: &[],
            last: None,
        })
    }
}

/// A cursor over all entries of one table in ascending order of keys. It also returns deletions, and old entries that
/// were replaced by a newer entry of the same key.
///
/// [`advance`](TableCursor::advance) returns an error if the keys are out of order, or if they contradict the
/// table's index or the manifest.
#[derive(Debug)]
pub(crate) struct TableCursor {
    table: Arc<Table>,
    /// The maximum size in bytes of a block that is held in memory as a whole.
    longest: usize,
    index: Block,
    /// The index entry of the current block.
    in_index: EntryState,
    /// The index entry of the block at which to begin, if it is not the table's first block. `None` after the block has
    /// been read.
    first: Option<EntryState>,
    block: Block,
    /// The location of the current block.
    handle: Handle,
    /// The current entry.
    entry: EntryState,
    sequence: u64,
    kind: EntryKind,
    /// Whether the previous entry has the same user key, and is therefore newer.
    is_old: bool,
    /// The previous internal key. The next one must be greater.
    last: Vec<u8>,
}

impl TableCursor {
    /// Creates a cursor over `table`. The cursor begins with the block that contains the first key greater than or
    /// equal to `start`. This block may begin with smaller keys.
    ///
    /// `longest` is the maximum size in bytes of a decompressed block that is read as a whole; a limit below 128 KiB
    /// counts as 128 KiB. Only the last value of a block can be long. If a block is larger than `longest`, the cursor
    /// reads all of the block except the last value, and returns the location of this value instead of its bytes.
    ///
    /// # Errors
    ///
    /// Returns an error if the table's index cannot be read, or if all keys in the index are less than `start`.
    pub(super) fn new(table: Arc<Table>, longest: usize, start: &[u8]) -> Result<TableCursor> {
        // A cursor reads the index once, so caching it would only take memory.
        let index = table.read_index()?;
        let (mut first, mut entry) = (None, EntryState::default());
        if start > &table.file.first_key[..] {
            first = Some(index.find(start)?.ok_or_else(|| out_of_order(&table))?);
            key::put(&mut entry.key, &table.file.first_key, key::MAX_SEQUENCE);
        }
        Ok(TableCursor {
            longest,
            index,
            in_index: EntryState::default(),
            first,
            block: Block::of_first_part(Vec::new(), 0, 0, &table.path),
            handle: Handle { offset: 0, size: 0 },
            entry,
            sequence: 0,
            kind: EntryKind::Deletion,
            is_old: false,
            last: Vec::new(),
            table,
        })
    }

    /// Moves to the next entry. The first call moves to the first entry. Returns `false` if there is no next entry.
    ///
    /// # Errors
    ///
    /// Returns an error if a block cannot be read or is damaged, if the keys are out of order, or if the last key of
    /// the table is not the one that the manifest states.
    #[inline]
    pub(super) fn advance(&mut self) -> Result<bool> {
        self.last.clear();
        self.last.extend_from_slice(&self.entry.key);
        while !self.block.advance(&mut self.entry)? {
            if !self.next_block()? {
                let last = key::parse(&self.last);
                return match last.is_some_and(|last| last.0 == self.table.file.last_key) {
                    true => Ok(false),
                    false => Err(out_of_order(&self.table)),
                };
            }
        }
        let (key, sequence, kind) = self.block.parts(&self.entry)?;
        let (is_in_order, is_old) = match key::parse(&self.last) {
            Some((last, before, _)) => match key.cmp(last) {
                Ordering::Less => (false, false),
                Ordering::Equal => (sequence < before, true),
                Ordering::Greater => (true, false),
            },
            None => (key == self.table.file.first_key, false),
        };
        if !is_in_order {
            return Err(out_of_order(&self.table));
        }
        self.is_old = is_old;
        (self.sequence, self.kind) = (sequence, kind);
        Ok(true)
    }

    /// Reads the next block of the table. Returns `false` if there is no next block.
    ///
    /// # Errors
    ///
    /// Returns an error if the next block cannot be read, or if it begins before the end of the previous block in the
    /// file. Also returns an error if the previous block contains a greater key than the table's index permits.
    fn next_block(&mut self) -> Result<bool> {
        if let Some((separator, sequence, _)) = key::parse(&self.in_index.key) {
            let last = key::parse(&self.last);
            if last.is_some_and(|last| (last.0, Reverse(last.1)) > (separator, Reverse(sequence))) {
                return Err(out_of_order(&self.table));
            }
        }
        if let Some(first) = self.first.take() {
            self.in_index = first;
        } else {
            let separator = self.in_index.key.clone();
            if !self.index.advance(&mut self.in_index)? {
                return Ok(false);
            }
            self.last = separator;
        }
        self.index.parts(&self.in_index)?;
        let handle = self.table.handle(&self.index, &self.in_index)?;
        // Increasing offsets guarantee that no block is read twice.
        if handle.offset < self.handle.offset.saturating_add(self.handle.size) {
            return Err(self.table.damaged(handle.offset, "blocks overlap"));
        }
        self.handle = handle;
        self.entry = EntryState::default();
        self.block = match self.table.long_block(handle, self.longest)? {
            Some(long) => long,
            None => self.table.block(handle)?,
        };
        Ok(true)
    }

    /// Returns the user key of the current entry, without the sequence number and the kind that follow it in an
    /// internal key.
    #[inline]
    fn key(&self) -> &[u8] {
        &self.entry.key[..self.entry.key.len().saturating_sub(key::TRAILER_LENGTH)]
    }

    /// Returns `true` if the current entry marks its key as deleted.
    #[inline]
    fn is_deleted(&self) -> bool {
        self.kind == EntryKind::Deletion
    }

    /// Returns `true` if the current entry is visible. A visible entry is the newest entry of its key in the table, and
    /// is not a deletion.
    #[inline]
    fn is_visible(&self) -> bool {
        !self.is_deleted() && !self.is_old
    }

    /// Returns the value of the current entry. If the value is too long to be held in memory, returns its location.
    #[inline]
    pub(super) fn value(&self) -> TableValue<'_> {
        match self.block.value(&self.entry) {
            Some(value) => TableValue::Held(value),
            None => TableValue::Long(StoredValue {
                table: self.table.file.number,
                block: self.handle,
                range: self.entry.value.clone(),
            }),
        }
    }
}

/// Creates the error for a table whose keys are out of order.
fn out_of_order(table: &Table) -> Error {
    table.problem("the index is damaged: the keys are not in order; make the index again")
}

/// A cursor over the entries of several tables, one table after the other. The key ranges of the tables do not
/// overlap.
#[derive(Debug)]
pub(crate) struct TablesCursor<'d> {
    database: &'d Database,
    /// The maximum size in bytes of a block that is held in memory as a whole.
    longest: usize,
    /// The key at which the cursor of each table begins.
    start: Vec<u8>,
    /// The tables that remain to be read.
    tables: vec::IntoIter<&'d TableFile>,
    /// The cursor of the current table, `None` after the last entry.
    table: Option<TableCursor>,
    /// The total size in bytes of the tables that have been read completely.
    passed: u64,
}

impl TablesCursor<'_> {
    /// Returns the key of the current entry, or `None` if the cursor is after the last entry.
    #[inline]
    pub(crate) fn key(&self) -> Option<&[u8]> {
        self.table.as_ref().map(TableCursor::key)
    }

    /// Returns the value of the current entry, or an empty value if the cursor is after the last entry.
    #[inline]
    pub(crate) fn value(&self) -> TableValue<'_> {
        let value = self.table.as_ref().map(TableCursor::value);
        value.unwrap_or(TableValue::Held(&[]))
    }

    /// Returns the key of the current entry if it is less than `end`. Returns `None` if the key is greater or equal, or
    /// if the cursor is after the last entry.
    #[inline]
    pub(crate) fn key_before(&self, end: &[u8]) -> Option<&[u8]> {
        self.key().filter(|key| *key < end)
    }

    /// Moves to the next key that has a value. Moves after the last entry if there is no such key.
    ///
    /// # Errors
    ///
    /// Returns an error if a table cannot be read or is damaged.
    #[inline]
    pub(crate) fn advance(&mut self) -> Result<()> {
        self.step()?;
        self.skip_hidden()
    }

    /// Skips hidden entries: moves forward until the current entry is visible. An entry is hidden if it is a deletion,
    /// or if it was replaced by a newer entry of the same key.
    pub(crate) fn skip_hidden(&mut self) -> Result<()> {
        while self.table.as_ref().is_some_and(|table| !table.is_visible()) {
            self.step()?;
        }
        Ok(())
    }

    /// Moves to the next entry, even if it is a deletion or was replaced by a newer entry of the same key. Moves after
    /// the last entry if there is no next entry.
    #[inline]
    fn step(&mut self) -> Result<()> {
        loop {
            if let Some(table) = &mut self.table {
                if table.advance()? {
                    return Ok(());
                }
                self.passed += table.table.file.size;
            }
            let Some(next) = self.tables.next() else {
                self.table = None;
                return Ok(());
            };
            let table = self.database.tables.get(next.number)?;
            self.table = Some(TableCursor::new(table, self.longest, &self.start)?);
        }
    }
}

/// A cursor over all keys of a database with their newest values, in ascending order of keys. It merges the tables of
/// all levels and the entries of the logs, and skips deleted keys.
#[derive(Debug)]
pub(crate) struct DatabaseCursor<'d> {
    /// The cursors: one for each table of the first level, and one for each further level.
    levels: Vec<TablesCursor<'d>>,
    /// The entries of the logs that the cursor has not passed yet.
    logged: Peekable<btree_map::Iter<'d, Vec<u8>, Logged>>,
    /// The index in `levels` of the cursor with the current entry, or `levels.len()` if the entry comes from a log.
    present: Option<usize>,
    /// The value of the entry at the front of `logged`.
    logged_value: &'d [u8],
    /// The key of the current entry.
    last: Option<Vec<u8>>,
}

impl DatabaseCursor<'_> {
    /// Moves to the next key that has a value. The first call moves to the first such key. Returns `false` if there is
    /// no such key.
    ///
    /// # Errors
    ///
    /// Returns an error if a table cannot be read or is damaged.
    pub(crate) fn advance(&mut self) -> Result<bool> {
        loop {
            match self.present.take() {
                Some(level) if level < self.levels.len() => self.levels[level].step()?,
                Some(_) => drop(self.logged.next()),
                None => {}
            }
            let tables = self.levels.iter().enumerate();
            let tables = tables.filter_map(|(level, cursor)| {
                let table = cursor.table.as_ref()?;
                Some((
                    table.key(),
                    Reverse(table.sequence),
                    level,
                    table.is_deleted(),
                ))
            });
            let logged = self.logged.peek().map(|(key, (sequence, value))| {
                let log = self.levels.len();
                self.logged_value = value.as_deref().unwrap_or_default();
                (&key[..], Reverse(*sequence), log, value.is_none())
            });
            let Some((key, _, source, is_deleted)) = tables.chain(logged).min() else {
                return Ok(false);
            };
            self.present = Some(source);
            if self.last.as_deref() == Some(key) {
                continue;
            }
            let mut last = self.last.take().unwrap_or_default();
            last.clear();
            last.extend_from_slice(key);
            self.last = Some(last);
            if !is_deleted {
                return Ok(true);
            }
        }
    }

    /// Returns the key of the current entry.
    pub(crate) fn key(&self) -> &[u8] {
        self.last.as_deref().unwrap_or_default()
    }

    /// Returns the value of the current entry. If the value is too long to be held in memory, returns its location.
    pub(crate) fn value(&self) -> TableValue<'_> {
        let level = self.present.and_then(|level| self.levels.get(level));
        match level.and_then(|level| level.table.as_ref()) {
            Some(table) => table.value(),
            None => TableValue::Held(self.logged_value),
        }
    }

    /// Returns the total size in bytes of the tables that the cursor has read completely. Callers use it to show
    /// progress.
    pub(crate) fn passed(&self) -> u64 {
        self.levels.iter().map(|level| level.passed).sum()
    }
}
