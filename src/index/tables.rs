//! Dividing entries into tables and writing the tables.
//!
//! A table is complete when its keys and values take one mebibyte; the entry that reaches this size is its last entry.
//! The entries arrive in ascending order of keys but in batches of any size, so a table may contain entries from
//! several batches.

use std::{
    fs::File,
    io::{self, BufWriter},
    ops::Range,
    path::Path,
    sync::Arc,
};

use super::{
    entries::{Entries, Value},
    entry_batches::{EntryBatch, WaitingStats, write_due},
    layout,
};
use crate::leveldb::{FIRST_TABLE, TableBuilder, TableFile};

/// The total size in bytes of the keys and values at which a LevelDB table is complete, so that the next table is
/// begun.
pub(super) const TABLE_SIZE: usize = 1 << 20;

/// The entries of a LevelDB table. Each element is a range of consecutive entries in one batch of entries.
type Parts = Vec<(Arc<Entries>, Range<usize>)>;

/// The entries of a LevelDB table that is to be written, and the number from which the name of its file is made.
#[derive(Debug)]
pub(super) struct TableEntries {
    number: u64,
    parts: Parts,
}

/// A builder that divides a sequence of entries into LevelDB tables of about one mebibyte.
#[derive(Debug)]
pub(super) struct TableCutter {
    /// The complete tables that have not been taken yet.
    tables: Vec<TableEntries>,
    next_number: u64,
    parts: Parts,
    /// The size in bytes of the keys and values in `parts`.
    size: usize,
    /// Statistics that must not be added yet, because their keys may be greater than the keys of the next entries.
    /// These statistics are sorted by the number of digits of their position keys, ascending.
    waiting: Vec<WaitingStats>,
}

impl TableCutter {
    /// Creates a builder without entries and tables.
    pub(super) fn new() -> TableCutter {
        TableCutter {
            tables: Vec::new(),
            next_number: FIRST_TABLE,
            parts: Vec::new(),
            size: 0,
            waiting: Vec::new(),
        }
    }

    /// Adds a batch of entries to the tables. The keys of the batch must be greater than all keys of earlier batches.
    /// The statistics of positions are an exception: if their keys sort after keys of later batches, they wait (see
    /// [`WaitingStats`]). Statistics that have waited since an earlier batch are inserted between the entries of this
    /// batch, in the order of keys.
    pub(super) fn push(&mut self, batch: EntryBatch) {
        let entries = Arc::new(batch.entries);
        let mut part = 0..entries.len();
        // Waiting statistics of earlier batches precede the first entry whose key does not begin with the digits of
        // their position key.
        while !part.is_empty() && !self.waiting.is_empty() {
            if !self.release(entries.key(part.start)) {
                self.push_part(&entries, part.start..part.start + 1);
                part.start += 1;
            }
        }
        self.push_part(&entries, part);
        self.waiting.extend(batch.waiting);
    }

    /// Adds the waiting statistics of one earlier position to the tables, if their keys are less than `next`, the key
    /// of the entry that the caller will add next. An empty `next` means that no entry follows. Returns `true` if
    /// statistics were added. The caller then calls the function again, because further statistics may follow.
    fn release(&mut self, next: &[u8]) -> bool {
        let mut stats = Entries::default();
        let is_due = write_due(&mut self.waiting, next, &mut stats);
        let all = 0..stats.len();
        self.push_part(&Arc::new(stats), all);
        is_due
    }

    /// Adds the entries of `entries` in the index range `part` to the current table. Begins a new table whenever a
    /// table is complete. The caller must first add all statistics with smaller keys that are still in the field
    /// `waiting`.
    fn push_part(&mut self, entries: &Arc<Entries>, mut part: Range<usize>) {
        loop {
            match entries.find_at_size(part.clone(), TABLE_SIZE - self.size) {
                Ok(last) => {
                    self.parts.push((Arc::clone(entries), part.start..last + 1));
                    self.end_table();
                    part.start = last + 1;
                }
                Err(size) => {
                    self.size += size;
                    if !part.is_empty() {
                        self.parts.push((Arc::clone(entries), part));
                    }
                    return;
                }
            }
        }
    }

    /// Ends the current LevelDB table. Does nothing if the table has no entries.
    fn end_table(&mut self) {
        if self.parts.is_empty() {
            return;
        }
        self.tables.push(TableEntries {
            number: self.next_number,
            parts: std::mem::take(&mut self.parts),
        });
        self.next_number += 1;
        self.size = 0;
    }

    /// Removes the complete tables from the builder, and returns them.
    pub(super) fn take_tables(&mut self) -> Vec<TableEntries> {
        std::mem::take(&mut self.tables)
    }

    /// Adds all statistics that are still in the field `waiting`, and ends the last table.
    pub(super) fn finish(&mut self) {
        while self.release(b"") {}
        self.end_table();
    }
}

impl TableEntries {
    /// Writes the LevelDB table to a file in `directory`. Returns the description of the table that the manifest of the
    /// database must contain.
    ///
    /// # Errors
    ///
    /// Returns an error if the table cannot be written, if spilled values cannot be read, or if a value is longer than
    /// LevelDB allows.
    pub(super) fn write(self, directory: &Path) -> io::Result<TableFile> {
        let path = directory.join(TableFile::name(self.number));
        let file = BufWriter::with_capacity(1 << 16, File::create(path)?);
        let mut table = TableBuilder::new(file);
        for (entries, part) in self.parts {
            for number in part {
                let key = entries.key(number);
                match entries.value(number) {
                    Value::Held(value) => table.add(key, value)?,
                    Value::Spilled(value) if value.len > layout::MAX_LIST_BYTES => {
                        return Err(io::Error::other(layout::TOO_LONG));
                    }
                    Value::Spilled(value) => {
                        table.add_long(key, value.len as usize, |out| {
                            entries.read_spilled(value, out)
                        })?;
                    }
                }
            }
        }
        table.finish(self.number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_that_is_too_long_for_leveldb_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let mut entries = Entries::default();
        entries.claim_spilled(b"1", layout::MAX_LIST_BYTES + 1);
        let table = TableEntries {
            number: FIRST_TABLE,
            parts: vec![(Arc::new(entries), 0..1)],
        };
        let err = table.write(dir.path()).unwrap_err().to_string();
        assert!(err.contains("440 million"), "{err}");
    }
}
