//! Entries on their way into tables.

use std::{
    io,
    ops::Range,
    path::Path,
    sync::{Arc, Mutex},
};

use super::leveldb::StoredValue;
use crate::{error::Result, sort::ByteRun, task};

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
    pub(super) fn len(&self) -> usize {
        self.ends.len()
    }

    /// How many bytes are held.
    pub(super) fn held(&self) -> usize {
        self.bytes.len()
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
