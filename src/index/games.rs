//! A collection of game records in bounded memory, which returns the records in the order of the index.
//!
//! Records are added in the order of game ids. In the index, they are sorted by key, and `game_10_data` precedes
//! `game_1_data`. Ids with equal numbers of digits have the same order in both, so the records are returned by
//! merging at most ten runs. Only the offsets at which these runs begin are kept in memory.

use std::{
    ops::Range,
    path::{Path, PathBuf},
};

use super::{entries::Entries, layout};
use crate::{
    error::Result,
    storage::sort::{ByteReader, ByteRun},
};

/// A collection of game records. A record contains the header of a game, such as its players and date. Records
/// beyond a memory limit are spilled to a temporary file.
#[derive(Debug)]
pub(crate) struct GameRecords {
    run: ByteRun,
    count: u64,
    /// The offsets in `run` of the records with the ids 0, 10, 100 and so on.
    starts: Vec<u64>,
}

impl GameRecords {
    /// Creates an empty collection. It holds up to `memory` bytes in memory, and spills further records to a file in
    /// `temp_dir`.
    pub(crate) fn new(memory: usize, temp_dir: PathBuf) -> GameRecords {
        GameRecords {
            run: ByteRun::new(memory, temp_dir),
            count: 0,
            starts: Vec::new(),
        }
    }

    /// Returns the number of game records.
    pub(crate) fn len(&self) -> u64 {
        self.count
    }

    /// Returns the directory in which the collection creates its temporary file.
    pub(super) fn temp_dir(&self) -> &Path {
        self.run.temp_dir()
    }

    /// Appends game records. The new games get the next ids, in the order of their records. `records` contains the
    /// bytes of all new records without separators. `lengths` contains the length of each record in bytes.
    ///
    /// # Errors
    ///
    /// Returns an error if the temporary file cannot be written.
    pub(crate) fn push_all(&mut self, lengths: &[u32], mut records: &[u8]) -> Result<()> {
        for length in lengths {
            if self.count == 0 || self.count == 10_u64.pow(self.starts.len() as u32) {
                self.starts.push(self.run.len());
            }
            let (record, rest) = records.split_at(*length as usize);
            self.run.append_text(record)?;
            records = rest;
            self.count += 1;
        }
        Ok(())
    }

    /// Returns a reader of the records, sorted by their keys in the index. Keys are compared as text, so the record of
    /// game 10 comes before the record of game 9.
    pub(crate) fn walk(&self) -> GameWalk<'_> {
        let sequence = |(digits, start): (u32, &u64)| {
            let first = if digits == 0 { 0 } else { 10_u64.pow(digits) };
            let end = self.count.min(10_u64.pow(digits + 1));
            (first..end, self.run.reader(*start))
        };
        GameWalk {
            sequences: (0..).zip(&self.starts).map(sequence).collect(),
        }
    }
}

/// A reader of game records, sorted by their keys in the index. Keys are compared as text, so the record of game 10
/// comes before the record of game 9.
pub(crate) struct GameWalk<'a> {
    /// For each number of digits, the range of ids that have not been read yet and a reader of their records.
    sequences: Vec<(Range<u64>, ByteReader<'a>)>,
}

impl GameWalk<'_> {
    /// Appends the next game records to `entries`. Stops when `entries` holds at least `size` bytes or when no record
    /// is left.
    ///
    /// # Errors
    ///
    /// Returns an error if the temporary file cannot be read.
    pub(super) fn fill(&mut self, entries: &mut Entries, size: usize) -> Result<()> {
        while entries.bytes_in_memory() < size {
            // There are at most ten sequences, so a linear search for the smallest key is fast.
            let some = self.sequences.iter_mut().filter(|(ids, _)| !ids.is_empty());
            let first = some.min_by_key(|(ids, _)| layout::game_key(ids.start as u32));
            let Some((ids, reader)) = first else {
                break;
            };
            let id = ids.start as u32;
            ids.start += 1;
            let value = reader.read_text()?.unwrap_or_default();
            entries.push(&layout::game_key(id), &value);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::index::entries::Value;

    #[test]
    fn records_leave_in_the_order_of_their_keys() {
        for (count, memory) in [(0, 0), (1, 0), (10, 1 << 20), (1234, 0), (1234, 1 << 20)] {
            let mut records = GameRecords::new(memory, std::env::temp_dir());
            for id in 0..count {
                let text = format!("record {id}");
                records
                    .push_all(&[text.len() as u32], text.as_bytes())
                    .unwrap();
            }
            let mut found = Vec::new();
            let mut walk = records.walk();
            loop {
                let mut entries = Entries::default();
                walk.fill(&mut entries, 1000).unwrap();
                if entries.len() == 0 {
                    break;
                }
                found.extend((0..entries.len()).map(|number| {
                    let Value::Held(value) = entries.value(number) else {
                        unreachable!("records are short");
                    };
                    (entries.key(number).to_vec(), value.to_vec())
                }));
            }
            let mut expected: Vec<_> = (0..count)
                .map(|id| (layout::game_key(id), format!("record {id}").into_bytes()))
                .collect();
            expected.sort();
            assert_eq!(found, expected);
        }
    }
}
