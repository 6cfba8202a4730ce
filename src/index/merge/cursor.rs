//! Going through entries that were read, and handing on most of them unchanged.

use std::{borrow::Cow, ops::Range, sync::Arc};

use crate::{
    error::Result,
    index::{
        Index,
        entries::{Entries, Parts, Value},
    },
};

/// Entries of an input in order.
#[derive(Clone)]
pub(super) struct EntryCursor<'r> {
    /// The tables that are left, none of them empty, and the number of the present entry in the first.
    tables: &'r [Arc<Entries>],
    at: usize,
}

impl<'r> EntryCursor<'r> {
    /// Begins with the first entry whose key is not less than `start`.
    pub(super) fn from_key(tables: &'r [Arc<Entries>], start: &[u8]) -> EntryCursor<'r> {
        let passed = tables.partition_point(|table| table.last_key() < Some(start));
        let tables = &tables[passed..];
        let at = tables.first().map(|table| table.find(0, |key| key < start));
        EntryCursor {
            tables,
            at: at.unwrap_or(0),
        }
    }

    /// The key of the present entry, `None` after the last.
    #[inline]
    pub(super) fn key(&self) -> Option<&'r [u8]> {
        self.tables.first().map(|table| table.key(self.at))
    }

    /// The key, if it comes before `end`.
    #[inline]
    pub(super) fn key_before(&self, end: &[u8]) -> Option<&'r [u8]> {
        self.key().filter(|key| *key < end)
    }

    /// The value of the present entry, empty after the last.
    #[inline]
    pub(super) fn value(&self) -> Value<'r> {
        let value = self.tables.first().map(|table| table.value(self.at));
        value.unwrap_or(Value::Bytes(&[]))
    }

    /// The present entry.
    pub(super) fn entry(&self) -> Option<Entry<'r>> {
        let (entries, number) = (self.tables.first()?, self.at);
        Some(Entry { entries, number })
    }

    /// Goes to the next entry.
    #[inline]
    pub(super) fn advance(&mut self) {
        let len = self.tables.first().map_or(0, |table| table.len());
        self.go_to(self.at + 1, len);
    }

    /// Passes the entries up to a key of the present table, which go to the output unchanged. Returns which they are;
    /// `None` if there is none.
    pub(super) fn pass_until(&mut self, end: &[u8]) -> Option<(&'r Arc<Entries>, Range<usize>)> {
        let table = self.tables.first()?;
        let start = self.at;
        let found = table.find(start, |key| key < end);
        self.go_to(found, table.len());
        (found > start).then_some((table, start..found))
    }

    #[inline]
    fn go_to(&mut self, at: usize, len: usize) {
        self.at = at;
        if at >= len {
            self.tables = self.tables.get(1..).unwrap_or_default();
            self.at = 0;
        }
    }
}

/// An entry of an input.
#[derive(Copy, Clone)]
pub(super) struct Entry<'r> {
    entries: &'r Entries,
    number: usize,
}

impl<'r> Entry<'r> {
    /// The value, which is not the ids of a position.
    ///
    /// # Errors
    ///
    /// A value that is longer than that of `index` can be, or a temporary file that cannot be read.
    pub(super) fn short_value(self, index: &Index) -> Result<Cow<'r, [u8]>> {
        let value = self.entries.short_value(self.number)?;
        value.ok_or_else(|| index.malformed(self.entries.key(self.number)))
    }
}

/// Entries of the output, some of them made and the others as they were read.
#[derive(Default)]
pub(super) struct Joined {
    /// The parts in order, of entries that were read or, without them, of those that are made.
    parts: Vec<(Option<Arc<Entries>>, Range<usize>)>,
    /// How many of those made are in parts.
    made: usize,
}

impl Joined {
    /// Adds entries as they were read. They come after the first `made` of the new entries.
    pub(super) fn pass(&mut self, made: usize, read: &Arc<Entries>, some: Range<usize>) {
        self.add_made(made);
        self.parts.push((Some(Arc::clone(read)), some));
    }

    fn add_made(&mut self, made: usize) {
        if self.made < made {
            self.parts.push((None, self.made..made));
            self.made = made;
        }
    }

    /// All parts, with the entries that were made.
    pub(super) fn finish(mut self, made: Entries) -> Parts {
        self.add_made(made.len());
        let made = Arc::new(made);
        let parts = self.parts.into_iter();
        let parts = parts.map(|(read, some)| (read.unwrap_or_else(|| Arc::clone(&made)), some));
        parts.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Tables with these keys, each of which is its own value too.
    fn tables(keys: &[&[&str]]) -> Vec<Arc<Entries>> {
        let table = |keys: &&[&str]| {
            let mut entries = Entries::default();
            keys.iter()
                .for_each(|key| entries.push(key.as_bytes(), key.as_bytes()));
            Arc::new(entries)
        };
        keys.iter().map(table).collect()
    }

    #[test]
    fn cursors_go_from_table_to_table() {
        let tables = tables(&[&["a", "c"], &["e"], &["g", "i"]]);
        let mut cursor = EntryCursor::from_key(&tables, b"b");
        let mut keys = Vec::new();
        while let Some(key) = cursor.key() {
            assert_eq!(cursor.value(), Value::Bytes(key));
            keys.push(key);
            cursor.advance();
        }
        assert_eq!(keys, [b"c", b"e", b"g", b"i"]);
        assert!(cursor.entry().is_none());
        let cursor = EntryCursor::from_key(&tables, b"d");
        assert_eq!(cursor.key_before(b"f"), Some(&b"e"[..]));
        assert_eq!(cursor.key_before(b"e"), None);
        assert_eq!(EntryCursor::from_key(&tables, b"j").key(), None);
    }

    #[test]
    fn entries_are_passed_and_made_in_order() {
        let tables = tables(&[&["a", "c"], &["e"], &["g", "i"]]);
        let mut cursor = EntryCursor::from_key(&tables, b"");
        let (mut made, mut joined) = (Entries::default(), Joined::default());
        for other in ["b", "h", "j"] {
            while let Some((read, some)) = cursor.pass_until(other.as_bytes()) {
                joined.pass(made.len(), read, some);
            }
            made.push(other.as_bytes(), b"");
        }
        assert_eq!(cursor.key(), None);
        let parts = joined.finish(made);
        let keys = parts
            .iter()
            .flat_map(|(entries, part)| part.clone().map(|entry| entries.key(entry)));
        assert_eq!(keys.collect::<Vec<_>>().concat(), b"abceghij");
    }
}
