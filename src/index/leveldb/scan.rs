//! Going through all entries of a database in order, a table at a time.

use super::{
    Damage, database::Database, key::Kind, long::StoredValue, manifest::TableFile, table::Table,
};
use crate::error::{Error, Result};

/// The tables of a database in the order of their keys.
#[derive(Debug)]
pub(in crate::index) struct Scan<'a> {
    database: &'a Database,
    tables: Vec<&'a TableFile>,
}

impl Database {
    /// Begins to go through a database that is as we write it: its entries are in tables that do not overlap, and
    /// each key has one.
    ///
    /// # Errors
    ///
    /// A database that another program has written to.
    pub(in crate::index) fn scan(&self) -> Result<Scan<'_>> {
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
        tables.reverse();
        Ok(Scan {
            database: self,
            tables,
        })
    }
}

impl<'a> Scan<'a> {
    /// The next table, to be read on any thread.
    pub(in crate::index) fn next_table(&mut self) -> Option<ScannedTable<'a>> {
        let file = self.tables.pop()?;
        Some(ScannedTable {
            database: self.database,
            file,
        })
    }

    /// The next table, unless all its keys are `end` or come behind it.
    pub(in crate::index) fn next_table_before(&mut self, end: &[u8]) -> Option<ScannedTable<'a>> {
        let next = self.tables.last()?;
        match next.first_key[..] < *end {
            true => self.next_table(),
            false => None,
        }
    }

    /// Passes over the tables whose last key comes before `key`.
    pub(in crate::index) fn skip_to(&mut self, key: &[u8]) {
        while self
            .tables
            .pop_if(|table| table.last_key[..] < *key)
            .is_some()
        {}
    }

    /// How many bytes the tables have that are left and begin before `end`.
    pub(in crate::index) fn bytes_before(&self, end: &[u8]) -> u64 {
        let left = self.tables.iter();
        let before = left.filter(|table| table.first_key[..] < *end);
        before.map(|table| table.size).sum()
    }
}

/// A table of a database that is gone through.
#[derive(Copy, Clone, Debug)]
pub(in crate::index) struct ScannedTable<'a> {
    database: &'a Database,
    file: &'a TableFile,
}

impl ScannedTable<'_> {
    /// How many bytes it has.
    pub(in crate::index) fn size(&self) -> u64 {
        self.file.size
    }

    /// Whether all its keys are in a stretch.
    pub(in crate::index) fn lies_within(&self, start: &[u8], end: &[u8]) -> bool {
        self.file.first_key[..] >= *start && self.file.last_key[..] < *end
    }

    /// Whether its keys go from one to another, as the manifest has it.
    pub(in crate::index) fn spans(&self, first: &[u8], last: &[u8]) -> bool {
        self.file.first_key[..] <= *first && self.file.last_key[..] >= *last
    }

    /// That its keys are not in order, or not those that the manifest names.
    pub(in crate::index) fn is_out_of_order(&self) -> Error {
        let name = TableFile::name(self.file.number);
        Error::damaged(
            self.database.tables.directory().join(name),
            "is damaged: its keys are out of order; make the index again",
        )
    }

    /// Calls `f` with the key and the value of each entry. Values in blocks of more than `longest` bytes are not held, if
    /// they are long themselves.
    pub(in crate::index) fn for_each(
        &self,
        longest: usize,
        f: impl FnMut(&[u8], TableValue<'_>),
    ) -> Result<()> {
        let number = self.file.number;
        let read = |table: &Table| table.for_each(number, longest, f);
        self.database.tables.with(number, read)
    }
}

/// A value of a table that is gone through.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(in crate::index) enum TableValue<'a> {
    Held(&'a [u8]),
    Long(StoredValue),
}

impl Table {
    /// Calls `f` with the key and value of each entry of the table `number`.
    pub(super) fn for_each(
        &self,
        number: u64,
        longest: usize,
        mut f: impl FnMut(&[u8], TableValue<'_>),
    ) -> Result<()> {
        let in_file = |damage: Damage| self.of(damage);
        // Each table is read once here, so keeping its index in memory would help nobody.
        let index = self.read_index()?;
        let file = self.read_whole()?;
        let mut room = Vec::new();
        let mut blocks = index.cursor();
        let mut behind = 0;
        while blocks.advance().map_err(in_file)? {
            let handle = self.handle(blocks.value())?;
            // So no block is read twice.
            if handle.offset < behind {
                return Err(self.damaged(handle.offset, "blocks overlap"));
            }
            behind = handle.offset.saturating_add(handle.size);
            if let Some(block) = self.long_block(handle, longest)? {
                self.for_each_in_long(number, block, &mut f)?;
                continue;
            }
            let block = match &file {
                Some(file) => self.block_of(file, handle, room)?,
                None => self.block(handle)?,
            };
            let mut entries = block.cursor();
            while entries.advance().map_err(in_file)? {
                let (key, _, kind) = entries.parts().map_err(in_file)?;
                if kind == Kind::Value {
                    f(key, TableValue::Held(entries.value()));
                }
            }
            room = block.into_bytes();
        }
        Ok(())
    }
}
