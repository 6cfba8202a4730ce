//! The entries of an index in order, some at a time.

use crate::{
    error::Result,
    index::{
        Index,
        entries::{Entries, Value},
        leveldb::Scan,
    },
};

use super::ahead::entries_of;

/// Entries of an index whose keys lie in a stretch.
pub(super) struct EntryStream<'a> {
    scan: Scan<'a>,
    /// The first key, and the first behind the stretch.
    start: &'static [u8],
    end: &'static [u8],
    /// Entries of a table, and the number of the present one.
    entries: Entries,
    at: usize,
}

impl<'a> EntryStream<'a> {
    /// Begins with the first entry whose key is not less than `start`, and ends before `end`.
    pub(super) fn new(
        index: &'a Index,
        start: &'static [u8],
        end: &'static [u8],
    ) -> Result<EntryStream<'a>> {
        let mut scan = index.scan()?;
        scan.skip_to(start);
        let mut stream = EntryStream {
            scan,
            start,
            end,
            entries: Entries::default(),
            at: 0,
        };
        stream.read()?;
        Ok(stream)
    }

    /// The key of the present entry, `None` behind the last.
    #[inline]
    pub(super) fn key(&self) -> Option<&[u8]> {
        (self.at < self.entries.len()).then(|| self.entries.key(self.at))
    }

    /// The value of the present entry.
    #[inline]
    pub(super) fn value(&self) -> &[u8] {
        match self.entries.value(self.at) {
            Value::Bytes(value) => value,
            Value::Long(_) => unreachable!("what is read from a table is held"),
        }
    }

    /// Goes to the next entry.
    #[inline]
    pub(super) fn advance(&mut self) -> Result<()> {
        self.at += 1;
        if self.at < self.entries.len() {
            return Ok(());
        }
        self.read()
    }

    /// Reads tables until one has entries of the stretch.
    fn read(&mut self) -> Result<()> {
        self.at = 0;
        self.entries = Entries::default();
        while self.entries.len() == 0
            && let Some(table) = self.scan.next_table_before(self.end)
        {
            self.entries = entries_of(&table, self.start, self.end, None, None)?;
        }
        Ok(())
    }
}
