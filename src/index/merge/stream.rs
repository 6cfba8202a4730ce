//! The entries of an index in order, some at a time.

use crate::{
    error::Result,
    index::{
        Index,
        entries::{Entries, Value},
        leveldb::Scan,
    },
};

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

    /// Appends the entries up to a key to others, until these have `size` bytes or the present table ends.
    pub(super) fn pass_until(
        &mut self,
        end: Option<&[u8]>,
        out: &mut Entries,
        size: usize,
    ) -> Result<()> {
        let start = self.at;
        let end = self
            .entries
            .find(start, |key| end.is_none_or(|end| key < end));
        let room = size.saturating_sub(out.held());
        let end = match self.entries.reach(start..end, room) {
            Ok(last) => last + 1,
            Err(_) => end,
        };
        out.push_all(&self.entries, start..end);
        self.at = end;
        if self.at == self.entries.len() && start < end {
            self.read()?;
        }
        Ok(())
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
        loop {
            let mut entries = Entries::default();
            let (start, end) = (self.start, self.end);
            let mut is_behind = false;
            let has_table = self.scan.next_table(|key, value| {
                is_behind |= key >= end;
                if key >= start && key < end {
                    entries.push(key, value);
                }
            })?;
            self.entries = entries;
            if self.entries.len() > 0 || is_behind || !has_table {
                return Ok(());
            }
        }
    }
}
