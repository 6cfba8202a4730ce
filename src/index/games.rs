//! Game records on their way to the index, in bounded memory.
//!
//! They come in the order of ids and leave in the order of the index, in which `game_10_data` comes
//! before `game_1_data`. Ids with the same number of digits are in order already, so leaving means
//! merging at most ten sequences, and only the places where these begin need be known.

use std::{
    ops::Range,
    path::{Path, PathBuf},
};

use super::{entries::Entries, layout};
use crate::{
    error::Result,
    sort::{ByteReader, ByteRun},
};

/// Collects game records.
#[derive(Debug)]
pub(crate) struct GameRecords {
    run: ByteRun,
    count: u64,
    /// Where the ids 0, 10, 100 and so on begin in the run.
    starts: Vec<u64>,
}

impl GameRecords {
    /// Keeps up to `memory` bytes in memory, the rest in a temporary file.
    pub(crate) fn new(memory: usize, temp_dir: PathBuf) -> GameRecords {
        GameRecords {
            run: ByteRun::new(memory, temp_dir),
            count: 0,
            starts: Vec::new(),
        }
    }

    /// How many records there are.
    pub(crate) fn len(&self) -> u64 {
        self.count
    }

    /// Where records are spilled.
    pub(super) fn temp_dir(&self) -> &Path {
        self.run.temp_dir()
    }

    /// Takes the records of the next ids, joined, and the length of each. A record may have a
    /// [start](layout::append_start), which becomes an entry of its own.
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

    /// The records in the order of the index.
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

/// The records of games in the order of the index.
pub(crate) struct GameWalk<'a> {
    /// The ids with the same number of digits that are left, and their records.
    sequences: Vec<(Range<u64>, ByteReader<'a>)>,
}

impl GameWalk<'_> {
    /// Appends entries until they have `size` bytes or all records have come.
    pub(super) fn fill(&mut self, entries: &mut Entries, size: usize) -> Result<()> {
        while entries.held() < size {
            // At most ten sequences: looking at all of them is as good as anything.
            let some = self.sequences.iter_mut().filter(|(ids, _)| !ids.is_empty());
            let first = some.min_by_key(|(ids, _)| layout::game_key(ids.start as u32));
            let Some((ids, reader)) = first else {
                break;
            };
            let id = ids.start as u32;
            ids.start += 1;
            let value = reader.read_text()?.unwrap_or_default();
            let (record, start) = layout::split_start(&value);
            entries.push(&layout::game_key(id), record);
            if let Some(start) = start {
                entries.push(&layout::start_key(id), start);
            }
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
