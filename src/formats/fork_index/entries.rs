//! Buffers LevelDB entries until they are written to tables.

use std::{io, ops::Range, path::Path};

use crate::{error::Result, storage::sort::ByteRun};

/// A buffer of LevelDB entries in ascending order of keys. Very long values are spilled to a temporary file.
#[derive(Default, Debug)]
pub(crate) struct Entries {
    bytes: Vec<u8>,
    /// For each entry, the offsets in `bytes` at which the key and the value end.
    ends: Vec<(usize, usize)>,
    /// The values that are too long to be held in memory, each with the index of its entry, sorted by this index.
    spilled: Vec<(usize, SpilledValue)>,
    /// The temporary file that contains the spilled values.
    file: Option<ByteRun>,
    /// The offset in the file at which the value of the open entry begins, if part of this value was spilled.
    open: Option<u64>,
}

/// The location of a long value in the temporary file to which [`Entries`] spilled it.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) struct SpilledValue {
    offset: u64,
    /// The length in bytes.
    pub len: u64,
}

/// The value of an entry in [`Entries`]: its bytes if they are in memory, otherwise its location in the temporary file.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) enum Value<'a> {
    Held(&'a [u8]),
    Spilled(SpilledValue),
}

/// The number of bytes of a spilled value that are read from the temporary file at a time.
const READ_SIZE: usize = 1 << 16;

impl Entries {
    /// Returns the number of entries.
    pub(crate) fn len(&self) -> usize {
        self.ends.len()
    }

    /// Returns the number of bytes that the keys and values occupy in memory. Spilled values are not included.
    pub(crate) fn bytes_in_memory(&self) -> usize {
        self.bytes.len()
    }

    /// Reads a spilled value from the temporary file in parts, and calls `f` with each part, from first to last.
    ///
    /// # Errors
    ///
    /// Returns an error if `f` fails or if the temporary file cannot be read.
    pub(crate) fn read_spilled(
        &self,
        value: SpilledValue,
        mut f: impl FnMut(&[u8]) -> io::Result<()>,
    ) -> io::Result<()> {
        let file = self.file.as_ref().expect("a spilled value is in the file");
        let mut reader = file.reader(value.offset);
        let mut left = value.len;
        while left > 0 {
            let mut part = vec![0; left.min(READ_SIZE as u64) as usize];
            reader.read_exact(&mut part).map_err(io::Error::other)?;
            f(&part)?;
            left -= part.len() as u64;
        }
        Ok(())
    }

    /// Adds an entry to the buffer. The value is written to a temporary file in `temp_dir` instead of being kept in
    /// memory. The key must be greater than the keys of all earlier entries.
    ///
    /// # Errors
    ///
    /// Returns an error if the temporary file cannot be written.
    pub(crate) fn push_spilled(&mut self, key: &[u8], value: &[u8], temp_dir: &Path) -> Result<()> {
        self.begin(key).extend_from_slice(value);
        self.spill(key.len(), temp_dir)?;
        self.end_spilled(key.len(), temp_dir)
    }

    /// Adds an entry to the buffer. Its key must be greater than the keys of all earlier entries.
    pub(crate) fn push(&mut self, key: &[u8], value: &[u8]) {
        self.begin(key).extend_from_slice(value);
        self.end(key.len());
    }

    /// Begins an entry with the key `key`, and returns the buffer. The caller appends the value of the entry to this
    /// buffer, and then calls [`end`](Entries::end).
    #[inline]
    pub(crate) fn begin(&mut self, key: &[u8]) -> &mut Vec<u8> {
        self.bytes.extend_from_slice(key);
        &mut self.bytes
    }

    /// Returns the buffer, to which the caller can append more bytes of the value of the open entry. This is the entry
    /// that [`begin`](Entries::begin) began and that has not been completed.
    #[inline]
    pub(crate) fn open_bytes(&mut self) -> &mut Vec<u8> {
        &mut self.bytes
    }

    /// Completes the entry that [`begin`](Entries::begin) began. `key_len` is the length of the entry's key in bytes.
    /// All bytes after the key are the value.
    #[inline]
    pub(crate) fn end(&mut self, key_len: usize) {
        let key_end = self.value_end() + key_len;
        self.ends.push((key_end, self.bytes.len()));
    }

    /// Moves the value of the open entry from memory to a temporary file in `temp_dir`. More bytes can be appended to
    /// the value afterwards. `key_len` is the length of the entry's key in bytes.
    ///
    /// # Errors
    ///
    /// Returns an error if the temporary file cannot be written.
    pub(crate) fn spill(&mut self, key_len: usize, temp_dir: &Path) -> Result<()> {
        let start = self.value_end() + key_len;
        let file = &mut self.file;
        let file = file.get_or_insert_with(|| ByteRun::new(0, temp_dir));
        self.open.get_or_insert(file.len());
        file.append(&self.bytes[start..])?;
        self.bytes.truncate(start);
        Ok(())
    }

    /// Completes the open entry, even if the first part of its value was moved to the temporary file by
    /// [`spill`](Entries::spill). In this case, the rest of the value is also written to the temporary file in
    /// `temp_dir`. `key_len` is the length of the entry's key in bytes.
    ///
    /// # Errors
    ///
    /// Returns an error if the temporary file cannot be written.
    #[inline]
    pub(crate) fn end_spilled(&mut self, key_len: usize, temp_dir: &Path) -> Result<()> {
        if self.open.is_some() {
            self.spill(key_len, temp_dir)?;
        }
        if let (Some(offset), Some(file)) = (self.open.take(), &self.file) {
            let len = file.len() - offset;
            self.spilled
                .push((self.len(), SpilledValue { offset, len }));
        }
        self.end(key_len);
        Ok(())
    }

    /// Returns the offset in the buffer at which the last complete entry ends. Returns 0 if no entry is complete.
    fn value_end(&self) -> usize {
        self.ends.last().map_or(0, |ends| ends.1)
    }

    /// Returns the key of the entry with the number `number`, counted from 0.
    #[inline]
    pub(crate) fn key(&self, number: usize) -> &[u8] {
        &self.bytes[self.start(number)..self.ends[number].0]
    }

    /// Returns the value of the entry with the number `number`, counted from 0.
    #[inline]
    pub(crate) fn value(&self, number: usize) -> Value<'_> {
        let (key_end, value_end) = self.ends[number];
        if !self.spilled.is_empty()
            && let Ok(at) = self.spilled.binary_search_by_key(&number, |(n, _)| *n)
        {
            return Value::Spilled(self.spilled[at].1);
        }
        Value::Held(&self.bytes[key_end..value_end])
    }

    /// Finds the entry in `range` at which the total size of the keys and values, added up from the start of the range,
    /// reaches `size` bytes. Returns the number of this entry as `Ok` or, if the total is less than `size`, the total
    /// as `Err`.
    pub(crate) fn find_at_size(&self, range: Range<usize>, size: usize) -> Result<usize, usize> {
        let mut sum = 0;
        for number in range {
            sum += match self.value(number) {
                Value::Held(value) => value.len(),
                Value::Spilled(value) => value.len as usize,
            } + self.key(number).len();
            if sum >= size {
                return Ok(number);
            }
        }
        Err(sum)
    }

    /// Returns the offset in the buffer at which the key of the entry with the number `number`, counted from 0, begins.
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

    impl Entries {
        /// Adds an entry whose value is recorded as spilled with a length of `len` bytes, without writing a value.
        pub(crate) fn claim_spilled(&mut self, key: &[u8], len: u64) {
            self.spilled
                .push((self.len(), SpilledValue { offset: 0, len }));
            self.begin(key);
            self.end(key.len());
        }
    }

    #[test]
    fn entries_come_back() {
        let mut entries = Entries::default();
        entries.push(b"a", b"1");
        let dir = std::env::temp_dir();
        entries.begin(b"bb").extend_from_slice(&[b'x'; 700]);
        entries.spill(2, &dir).unwrap();
        entries.open_bytes().extend_from_slice(&[b'y'; 300]);
        entries.end_spilled(2, &dir).unwrap();
        entries.push(b"c", b"");
        assert_eq!(entries.len(), 3);
        assert_eq!(entries.bytes_in_memory(), 5);
        let keys: Vec<_> = (0..3).map(|n| entries.key(n)).collect();
        assert_eq!(keys, [&b"a"[..], b"bb", b"c"]);
        assert_eq!(entries.value(0), Value::Held(b"1"));
        assert_eq!(entries.value(2), Value::Held(b""));
        let Value::Spilled(value) = entries.value(1) else {
            panic!("it was spilled");
        };
        let mut read = Vec::new();
        let mut take = |part: &[u8]| {
            read.extend_from_slice(part);
            Ok(())
        };
        entries.read_spilled(value, &mut take).unwrap();
        assert_eq!(read, [[b'x'; 700].as_slice(), &[b'y'; 300]].concat());
        assert_eq!(entries.find_at_size(0..3, 2), Ok(0));
        assert_eq!(entries.find_at_size(0..3, 1000), Ok(1));
        assert_eq!(entries.find_at_size(1..3, 1003), Ok(2));
        assert_eq!(entries.find_at_size(0..3, 1006), Err(1005));
    }

    #[test]
    fn lengths_are_summed() {
        let mut entries = Entries::default();
        for (key, value) in [("a", "b"), ("cc", "dd"), ("eee", "")] {
            entries.push(key.as_bytes(), value.as_bytes());
        }
        assert_eq!(entries.find_at_size(0..3, 0), Ok(0));
        assert_eq!(entries.find_at_size(0..3, 3), Ok(1));
        assert_eq!(entries.find_at_size(1..3, 7), Ok(2));
        assert_eq!(entries.find_at_size(1..3, 8), Err(7));
        assert_eq!(entries.find_at_size(3..3, 1), Err(0));
    }
}
