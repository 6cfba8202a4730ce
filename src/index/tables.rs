//! Cutting entries into tables and writing these.
//!
//! A table ends with the entry that makes it a mebibyte of keys and values. The entries come in order but
//! in pieces of any size; a table takes parts of several.

use std::{
    fs::File,
    io::{self, BufWriter},
    ops::Range,
    path::Path,
    sync::Arc,
};

use super::{
    entries::{Entries, Value},
    layout,
    leveldb::{FIRST_TABLE, TableBuilder, TableFile},
    positions::{MadeEntries, Waiting, write_due},
};

/// How many bytes of keys and values end a table.
pub(super) const TABLE_SIZE: usize = 1 << 20;

/// Entries in order, as parts of others.
type Parts = Vec<(Arc<Entries>, Range<usize>)>;

/// The entries of a table.
#[derive(Debug)]
pub(super) struct TableEntries {
    number: u64,
    parts: Parts,
}

/// Takes entries in order and cuts them into tables.
#[derive(Debug)]
pub(super) struct TableCutter {
    /// Tables that are complete.
    tables: Vec<TableEntries>,
    next_number: u64,
    parts: Parts,
    size: usize,
    /// Statistics that may not come yet, the longest number last.
    waiting: Vec<Waiting>,
}

impl TableCutter {
    pub(super) fn new() -> TableCutter {
        TableCutter {
            tables: Vec::new(),
            next_number: FIRST_TABLE,
            parts: Vec::new(),
            size: 0,
            waiting: Vec::new(),
        }
    }

    /// Takes the next entries.
    pub(super) fn push(&mut self, made: MadeEntries) {
        let entries = Arc::new(made.entries);
        let mut part = 0..entries.len();
        // The statistics of earlier pieces come before the first entry after their numbers.
        while !part.is_empty() && !self.waiting.is_empty() {
            if !self.release(entries.key(part.start)) {
                self.push_part(&entries, part.start..part.start + 1);
                part.start += 1;
            }
        }
        self.push_part(&entries, part);
        self.waiting.extend(made.waiting);
    }

    /// Writes the statistics that are due first, if they come before the entry of a key.
    fn release(&mut self, next: &[u8]) -> bool {
        let mut stats = Entries::default();
        let is_due = write_due(&mut self.waiting, next, &mut stats);
        let all = 0..stats.len();
        self.push_part(&Arc::new(stats), all);
        is_due
    }

    /// Takes some of the next entries, when no statistics wait.
    fn push_part(&mut self, entries: &Arc<Entries>, mut part: Range<usize>) {
        loop {
            match entries.reach(part.clone(), TABLE_SIZE - self.size) {
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

    /// The tables that are complete by now.
    pub(super) fn take_tables(&mut self) -> Vec<TableEntries> {
        std::mem::take(&mut self.tables)
    }

    /// Completes the last table, when all entries have come.
    pub(super) fn finish(&mut self) {
        while self.release(b"") {}
        self.end_table();
    }
}

impl TableEntries {
    /// Writes the table into a directory.
    pub(super) fn write(self, directory: &Path) -> io::Result<TableFile> {
        let path = directory.join(TableFile::name(self.number));
        let file = BufWriter::with_capacity(1 << 16, File::create(path)?);
        let mut table = TableBuilder::new(file);
        for (entries, part) in self.parts {
            for number in part {
                let key = entries.key(number);
                match entries.value(number) {
                    Value::Held(value) => table.add(key, value)?,
                    Value::Spilled(value) if value.len > layout::LONGEST => {
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
        entries.claim_spilled(b"1", layout::LONGEST + 1);
        let table = TableEntries {
            number: FIRST_TABLE,
            parts: vec![(Arc::new(entries), 0..1)],
        };
        let err = table.write(dir.path()).unwrap_err().to_string();
        assert!(err.contains("440 million"), "{err}");
    }
}
