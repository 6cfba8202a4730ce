//! Entries on their way into tables.

use std::{
    borrow::Cow,
    io,
    ops::Range,
    path::Path,
    sync::{Arc, Mutex},
};

use super::leveldb::StoredValue;
use crate::{error::Result, sort::ByteRun, task};

/// Entries in order, as parts of others.
pub(super) type Parts = Vec<(Arc<Entries>, Range<usize>)>;

/// Values of entries, in a temporary file.
pub(super) type SpillFile = Arc<Mutex<ByteRun>>;

/// A file for values in a directory, which is made when there are some.
pub(super) fn spill_file(temp_dir: &Path) -> SpillFile {
    Arc::new(Mutex::new(ByteRun::new(0, temp_dir.to_owned())))
}

/// Entries in the order of their keys, joined in one buffer.
#[derive(Default, Debug)]
pub(super) struct Entries {
    bytes: Vec<u8>,
    /// The ends of each key and of its value.
    ends: Vec<(usize, usize)>,
    /// The values that are too long to be held, by the numbers of their entries.
    long_values: Vec<(usize, LongValue)>,
    /// Values that were spilled.
    spilled: Option<SpillFile>,
}

/// A value that is read again when it is written: the ids of a position that has very many, or a spilled value.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct LongValue {
    /// Where they are.
    pub ids: LongIds,
    /// How many bytes the value has.
    pub len: usize,
}

/// Where many ids are.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum LongIds {
    /// In the postings of a position.
    Postings { shard: usize, range: Range<usize> },
    /// In the indexes that are merged.
    Stored(Vec<StoredIds>),
    /// From a place on among the spilled values of the entries, which are not ids.
    Spilled(u64),
}

/// Some of the ids of a merged position.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum StoredIds {
    /// As they are to be written.
    Held(Vec<u8>),
    /// A value of an input, by its number.
    Long(usize, StoredValue),
}

/// Reads ids again that were too many to be held.
pub(super) trait ReadIds: Sync {
    /// Hands the bytes of a value to `out`, in parts.
    fn read_ids(
        &self,
        ids: &LongIds,
        out: &mut dyn FnMut(&[u8]) -> io::Result<()>,
    ) -> io::Result<()>;
}

/// The value of an entry.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) enum Value<'a> {
    Bytes(&'a [u8]),
    Long(&'a LongValue),
}

impl Entries {
    /// With room for this many entries and bytes.
    pub(super) fn with_room(entries: usize, bytes: usize) -> Entries {
        Entries {
            bytes: Vec::with_capacity(bytes),
            ends: Vec::with_capacity(entries),
            ..Entries::default()
        }
    }

    pub(super) fn len(&self) -> usize {
        self.ends.len()
    }

    /// The keys and values of some entries, joined.
    pub(super) fn bytes_of(&self, some: Range<usize>) -> &[u8] {
        let end = some.end.checked_sub(1).map_or(0, |last| self.ends[last].1);
        &self.bytes[self.start(some.start)..end]
    }

    /// How many bytes are held.
    pub(super) fn held(&self) -> usize {
        self.bytes.len()
    }

    /// The values of some entries that are not held.
    pub(super) fn long_values(&self, some: &Range<usize>) -> impl Iterator<Item = &LongValue> {
        let place = |at| self.long_values.partition_point(|(number, _)| *number < at);
        let (start, end) = (place(some.start), place(some.end));
        self.long_values[start..end].iter().map(|(_, value)| value)
    }

    /// Adds an entry whose value is not held.
    pub(super) fn push_long(&mut self, key: &[u8], value: LongValue) {
        self.begin(key);
        self.end_long(key.len(), value);
    }

    /// Adds an entry after all others, whose value goes to a file, the same for all of the entries.
    pub(super) fn push_spilled(
        &mut self,
        key: &[u8],
        value: &[u8],
        file: &SpillFile,
    ) -> Result<()> {
        self.spilled.get_or_insert_with(|| Arc::clone(file));
        let place = {
            let mut file = task::lock(file);
            file.append(value)?;
            file.len() - value.len() as u64
        };
        let (ids, len) = (LongIds::Spilled(place), value.len());
        self.push_long(key, LongValue { ids, len });
        Ok(())
    }

    /// The value of an entry that is not the ids of a position; `None` if it is longer than such a value is.
    pub(super) fn short_value(&self, number: usize) -> Result<Option<Cow<'_, [u8]>>> {
        match self.value(number) {
            Value::Bytes(value) => Ok(Some(Cow::Borrowed(value))),
            Value::Long(value) => Ok(self.spilled_value(value)?.map(Cow::Owned)),
        }
    }

    /// A value that was spilled; `None` if it is another.
    pub(super) fn spilled_value(&self, value: &LongValue) -> Result<Option<Vec<u8>>> {
        let (LongIds::Spilled(place), Some(file)) = (&value.ids, &self.spilled) else {
            return Ok(None);
        };
        let mut bytes = vec![0; value.len];
        task::lock(file).reader(*place).read_exact(&mut bytes)?;
        Ok(Some(bytes))
    }

    /// Adds an entry after all others.
    pub(super) fn push(&mut self, key: &[u8], value: &[u8]) {
        self.begin(key).extend_from_slice(value);
        self.end(key.len());
    }

    /// The number of the first entry from `start` on that `is_before` is not true of, which must be true of all those
    /// before it. Is quickest if there are few of them.
    pub(super) fn find(&self, start: usize, is_before: impl Fn(&[u8]) -> bool) -> usize {
        let (mut low, mut high) = (start, start);
        let mut step = 1;
        while high < self.len() && is_before(self.key(high)) {
            low = high + 1;
            high += step;
            step *= 2;
        }
        high = high.min(self.len());
        while low < high {
            let middle = low.midpoint(high);
            if is_before(self.key(middle)) {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        low
    }

    /// Begins an entry with its key. The bytes appended until [`end`](Entries::end) are its value.
    #[inline]
    pub(super) fn begin(&mut self, key: &[u8]) -> &mut Vec<u8> {
        self.bytes.extend_from_slice(key);
        &mut self.bytes
    }

    /// The bytes up to those of the value that is being appended.
    #[inline]
    pub(super) fn open_bytes(&mut self) -> &mut Vec<u8> {
        &mut self.bytes
    }

    /// Ends an entry whose key has a length.
    #[inline]
    pub(super) fn end(&mut self, key_len: usize) {
        let key_end = self.value_end() + key_len;
        self.ends.push((key_end, self.bytes.len()));
    }

    /// Ends an entry whose value is not held.
    pub(super) fn end_long(&mut self, key_len: usize, value: LongValue) {
        self.bytes.truncate(self.value_end() + key_len);
        self.end(key_len);
        self.long_values.push((self.ends.len() - 1, value));
    }

    /// Where the value of the last entry ends.
    fn value_end(&self) -> usize {
        self.ends.last().map_or(0, |ends| ends.1)
    }

    /// The key of an entry.
    #[inline]
    pub(super) fn key(&self, number: usize) -> &[u8] {
        &self.bytes[self.start(number)..self.ends[number].0]
    }

    /// The last key, `None` if there are no entries.
    pub(super) fn last_key(&self) -> Option<&[u8]> {
        self.len().checked_sub(1).map(|last| self.key(last))
    }

    /// The value of an entry.
    #[inline]
    pub(super) fn value(&self, number: usize) -> Value<'_> {
        let (key_end, value_end) = self.ends[number];
        let long = || {
            let at = self.long_values.binary_search_by_key(&number, |(n, _)| *n);
            at.ok().map(|at| Value::Long(&self.long_values[at].1))
        };
        let held = Value::Bytes(&self.bytes[key_end..value_end]);
        if self.long_values.is_empty() {
            return held;
        }
        long().unwrap_or(held)
    }

    /// The first of some entries with which their keys and values have `size` bytes together, or else how
    /// many bytes all of them have.
    pub(super) fn reach(&self, some: Range<usize>, size: usize) -> Result<usize, usize> {
        if self.long_values.is_empty() {
            // The ends add up the lengths already.
            let start = self.start(some.start);
            let ends = &self.ends[some.clone()];
            let before = ends.partition_point(|(_, end)| end - start < size);
            return match ends.last() {
                Some(_) if before < ends.len() => Ok(some.start + before),
                last => Err(last.map_or(0, |(_, end)| end - start)),
            };
        }
        let mut sum = 0;
        for number in some {
            sum += match self.value(number) {
                Value::Bytes(value) => value.len(),
                Value::Long(long) => long.len,
            } + self.key(number).len();
            if sum >= size {
                return Ok(number);
            }
        }
        Err(sum)
    }

    #[inline]
    fn start(&self, number: usize) -> usize {
        match number.checked_sub(1) {
            Some(before) => self.ends[before].1,
            None => 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_come_back() {
        let long = LongValue {
            ids: LongIds::Postings {
                shard: 7,
                range: 3..12,
            },
            len: 1000,
        };
        let mut entries = Entries::default();
        entries.push(b"a", b"1");
        entries.begin(b"bb").extend_from_slice(b"dropped");
        entries.end_long(2, long.clone());
        entries.push(b"c", b"");
        assert_eq!(entries.len(), 3);
        assert_eq!(entries.held(), 5);
        let keys: Vec<_> = (0..3).map(|n| entries.key(n)).collect();
        assert_eq!(keys, [&b"a"[..], b"bb", b"c"]);
        assert_eq!(entries.value(0), Value::Bytes(b"1"));
        assert_eq!(entries.value(1), Value::Long(&long));
        assert_eq!(entries.value(2), Value::Bytes(b""));
        assert!(entries.long_values(&(0..3)).eq([&long]));
        assert_eq!(entries.long_values(&(2..3)).count(), 0);
        assert_eq!(entries.last_key(), Some(&b"c"[..]));
        assert_eq!(Entries::default().last_key(), None);
        assert_eq!(entries.find(0, |key| key < &b"bc"[..]), 2);
        assert_eq!(entries.find(1, |_| true), 3);
        assert_eq!(entries.reach(0..3, 2), Ok(0));
        assert_eq!(entries.reach(0..3, 1000), Ok(1));
        assert_eq!(entries.reach(1..3, 1003), Ok(2));
        assert_eq!(entries.reach(0..3, 1006), Err(1005));
    }

    #[test]
    fn lengths_are_summed() {
        let mut entries = Entries::default();
        for (key, value) in [("a", "b"), ("cc", "dd"), ("eee", "")] {
            entries.push(key.as_bytes(), value.as_bytes());
        }
        assert_eq!(entries.reach(0..3, 0), Ok(0));
        assert_eq!(entries.reach(0..3, 3), Ok(1));
        assert_eq!(entries.reach(1..3, 7), Ok(2));
        assert_eq!(entries.reach(1..3, 8), Err(7));
        assert_eq!(entries.reach(3..3, 1), Err(0));
    }
}
