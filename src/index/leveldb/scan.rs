//! Going through all entries of a database in order, a table at a time.

use super::{Damage, database::Database, key::Kind, manifest::TableFile, table::Table};
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
            return Err(Error::file(
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

impl Scan<'_> {
    /// Calls `f` with the key and the value of each entry of the next table; false if there is none.
    pub(in crate::index) fn next_table(&mut self, mut f: impl FnMut(&[u8], &[u8])) -> Result<bool> {
        let Some(file) = self.tables.pop() else {
            return Ok(false);
        };
        let read = |table: &Table| table.for_each(&mut f);
        self.database.tables.with(file.number, read)?;
        Ok(true)
    }

    /// Passes over the tables whose last key comes before `key`.
    pub(in crate::index) fn skip_to(&mut self, key: &[u8]) {
        while self
            .tables
            .pop_if(|table| table.last_key[..] < *key)
            .is_some()
        {}
    }
}

impl Table {
    /// Calls `f` with the key and value of each entry.
    pub(super) fn for_each(&self, mut f: impl FnMut(&[u8], &[u8])) -> Result<()> {
        let in_file = |damage: Damage| self.of(damage);
        let mut blocks = self.index()?.cursor();
        while blocks.advance().map_err(in_file)? {
            let block = self.block(self.handle(blocks.value())?)?;
            let mut entries = block.cursor();
            while entries.advance().map_err(in_file)? {
                let (key, _, kind) = entries.parts().map_err(in_file)?;
                if kind == Kind::Value {
                    f(key, entries.value());
                }
            }
        }
        Ok(())
    }
}
