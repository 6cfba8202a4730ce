//! Going through entries in order: those of a table, and those of a database.

use std::{
    cmp::{Ordering, Reverse},
    collections::btree_map,
    iter::Peekable,
    sync::Arc,
    vec,
};

use super::{
    block::{Block, EntryState},
    builder::Handle,
    database::Database,
    key::{self, EntryKind},
    log::Logged,
    long::StoredValue,
    manifest::TableFile,
    table::Table,
};
use crate::error::{Error, Result};

/// A value that is gone through.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(in crate::index) enum TableValue<'a> {
    Held(&'a [u8]),
    Long(StoredValue),
}

impl<'a> TableValue<'a> {
    /// The bytes of a value where none is too long to be held.
    pub(in crate::index) fn held(self) -> &'a [u8] {
        match self {
            TableValue::Held(value) => value,
            TableValue::Long(_) => unreachable!("values of any length are held"),
        }
    }
}

impl Database {
    /// All tables, in the order of their keys.
    ///
    /// # Errors
    ///
    /// A database that another program has written to: its tables overlap, or there are entries in a log.
    pub(in crate::index) fn tables_in_order(&self) -> Result<Vec<&TableFile>> {
        let mut tables: Vec<&TableFile> = self.version.tables().collect();
        tables.sort_by(|a, b| a.first_key.cmp(&b.first_key));
        let overlap = tables
            .windows(2)
            .any(|pair| pair[0].last_key >= pair[1].first_key);
        if overlap || !self.memtable.is_empty() {
            return Err(Error::changed(
                self.tables.directory(),
                "another program has written to it: make the index again",
            ));
        }
        Ok(tables)
    }

    /// Goes through the entries of tables that do not overlap and are in order. Only the first table may have keys before
    /// `start`. Is at the first entry.
    pub(in crate::index) fn tables_cursor<'d>(
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

    /// Begins to go through all entries: each key with its newest value. Values in blocks of more than `longest` bytes
    /// are not held, if they are long themselves.
    pub(in crate::index) fn entries(&self, longest: usize) -> Result<DatabaseCursor<'_>> {
        let [first, others @ ..] = &self.version.levels;
        // Only the tables of the first level overlap.
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

/// Goes through the entries of a table. They are in order, or an error comes.
#[derive(Debug)]
pub(in crate::index) struct TableCursor {
    table: Arc<Table>,
    longest: usize,
    index: Block,
    in_index: EntryState,
    /// The first block to be read, if it is not that of the table.
    first: Option<EntryState>,
    block: Block,
    /// Where it is in the file.
    handle: Handle,
    /// The present entry.
    place: EntryState,
    sequence: u64,
    kind: EntryKind,
    /// Whether the entry before is a newer one of the same key.
    is_old: bool,
    /// The internal key that the next one comes after.
    last: Vec<u8>,
}

impl TableCursor {
    /// Begins at the block that has the first key from `start` on, or that before it.
    pub(super) fn new(table: Arc<Table>, longest: usize, start: &[u8]) -> Result<TableCursor> {
        // Each table is read once here, so keeping its index in memory would help nobody.
        let index = table.read_index()?;
        let (mut first, mut place) = (None, EntryState::default());
        if start > &table.known.first_key[..] {
            first = Some(index.find(start)?.ok_or_else(|| out_of_order(&table))?);
            key::put(&mut place.key, &table.known.first_key, key::MAX_SEQUENCE);
        }
        Ok(TableCursor {
            longest,
            index,
            in_index: EntryState::default(),
            first,
            block: Block::of_first_part(Vec::new(), 0, 0, &table.path),
            handle: Handle { offset: 0, size: 0 },
            place,
            sequence: 0,
            kind: EntryKind::Deletion,
            is_old: false,
            last: Vec::new(),
            table,
        })
    }

    /// Goes to the next entry, first to the first; false after the last.
    #[inline]
    pub(super) fn advance(&mut self) -> Result<bool> {
        self.last.clear();
        self.last.extend_from_slice(&self.place.key);
        while !self.block.advance(&mut self.place)? {
            if !self.next_block()? {
                let last = key::parse(&self.last);
                return match last.is_some_and(|last| last.0 == self.table.known.last_key) {
                    true => Ok(false),
                    false => Err(out_of_order(&self.table)),
                };
            }
        }
        let (key, sequence, kind) = self.block.parts(&self.place)?;
        let (is_in_order, is_old) = match key::parse(&self.last) {
            Some((last, before, _)) => match key.cmp(last) {
                Ordering::Less => (false, false),
                Ordering::Equal => (sequence < before, true),
                Ordering::Greater => (true, false),
            },
            None => (key == self.table.known.first_key, false),
        };
        if !is_in_order {
            return Err(out_of_order(&self.table));
        }
        self.is_old = is_old;
        (self.sequence, self.kind) = (sequence, kind);
        Ok(true)
    }

    /// Reads the next block; false when there is none. The place of a block comes after its keys and before those of the
    /// next block.
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
        // So no block is read twice.
        if handle.offset < self.handle.offset.saturating_add(self.handle.size) {
            return Err(self.table.damaged(handle.offset, "blocks overlap"));
        }
        self.handle = handle;
        self.place = EntryState::default();
        self.block = match self.table.long_block(handle, self.longest)? {
            Some(long) => long,
            None => self.table.block(handle)?,
        };
        Ok(true)
    }

    /// The key of the present entry.
    #[inline]
    fn key(&self) -> &[u8] {
        &self.place.key[..self.place.key.len().saturating_sub(key::TRAILER)]
    }

    /// Whether the present entry says that its key is deleted.
    #[inline]
    fn is_deleted(&self) -> bool {
        self.kind == EntryKind::Deletion
    }

    /// Whether the present entry is the newest of its key, and has a value.
    #[inline]
    fn counts(&self) -> bool {
        !self.is_deleted() && !self.is_old
    }

    /// The value of the present entry.
    #[inline]
    pub(super) fn value(&self) -> TableValue<'_> {
        match self.block.value(&self.place) {
            Some(value) => TableValue::Held(value),
            None => TableValue::Long(StoredValue {
                table: self.table.known.number,
                block: self.handle,
                place: self.place.value.clone(),
            }),
        }
    }
}

/// That the keys are not in order, or not those that the manifest names.
fn out_of_order(table: &Table) -> Error {
    table.problem("is damaged: its keys are out of order; make the index again")
}

/// Goes through tables, one after the other.
#[derive(Debug)]
pub(in crate::index) struct TablesCursor<'d> {
    database: &'d Database,
    longest: usize,
    start: Vec<u8>,
    tables: vec::IntoIter<&'d TableFile>,
    table: Option<TableCursor>,
    /// How many bytes the tables have that are passed.
    passed: u64,
}

impl TablesCursor<'_> {
    /// The key of the present entry, `None` after the last.
    #[inline]
    pub(in crate::index) fn key(&self) -> Option<&[u8]> {
        self.table.as_ref().map(TableCursor::key)
    }

    /// The value of the present entry, empty after the last.
    #[inline]
    pub(in crate::index) fn value(&self) -> TableValue<'_> {
        let value = self.table.as_ref().map(TableCursor::value);
        value.unwrap_or(TableValue::Held(&[]))
    }

    /// The same if the key comes before `end`.
    #[inline]
    pub(in crate::index) fn key_before(&self, end: &[u8]) -> Option<&[u8]> {
        self.key().filter(|key| *key < end)
    }

    /// Goes to the next key that has a value.
    #[inline]
    pub(in crate::index) fn advance(&mut self) -> Result<()> {
        self.step()?;
        self.pass_without_value()
    }

    /// Goes on to an entry that is the newest of its key and has a value.
    pub(in crate::index) fn pass_without_value(&mut self) -> Result<()> {
        while self.table.as_ref().is_some_and(|table| !table.counts()) {
            self.step()?;
        }
        Ok(())
    }

    /// Goes to the next entry.
    #[inline]
    fn step(&mut self) -> Result<()> {
        loop {
            if let Some(table) = &mut self.table {
                if table.advance()? {
                    return Ok(());
                }
                self.passed += table.table.known.size;
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

/// Goes through the entries of a database, of any LevelDB program.
#[derive(Debug)]
pub(in crate::index) struct DatabaseCursor<'d> {
    levels: Vec<TablesCursor<'d>>,
    logged: Peekable<btree_map::Iter<'d, Vec<u8>, Logged>>,
    /// The level that has the present entry, or how many there are if a log has it.
    present: Option<usize>,
    logged_value: &'d [u8],
    /// The key of the present entry.
    last: Option<Vec<u8>>,
}

impl DatabaseCursor<'_> {
    /// Goes to the next entry, first to the first; false after the last.
    pub(in crate::index) fn advance(&mut self) -> Result<bool> {
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

    /// The key of the present entry.
    pub(in crate::index) fn key(&self) -> &[u8] {
        self.last.as_deref().unwrap_or_default()
    }

    /// The value of the present entry.
    pub(in crate::index) fn value(&self) -> TableValue<'_> {
        let level = self.present.and_then(|level| self.levels.get(level));
        match level.and_then(|level| level.table.as_ref()) {
            Some(table) => table.value(),
            None => TableValue::Held(self.logged_value),
        }
    }

    /// How many bytes the tables have that are passed.
    pub(in crate::index) fn passed(&self) -> u64 {
        self.levels.iter().map(|level| level.passed).sum()
    }
}
