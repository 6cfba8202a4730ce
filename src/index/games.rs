//! Game records on their way to the index, in bounded memory.
//!
//! They come in the order of ids and leave in the order of the index, in which `game_10_data` comes
//! before `game_1_data`. Ids with the same number of digits are in order already, so leaving means
//! merging at most ten sequences, and only the places where these begin need be known.

use std::path::PathBuf;

use super::layout;
use crate::{
    error::Result,
    sort::{Spool, SpoolReader},
};

/// Collects game records.
#[derive(Debug)]
pub(crate) struct GameRecords {
    spool: Spool,
    count: u64,
    /// Where the ids 0, 10, 100 and so on stand in the spool.
    starts: Vec<u64>,
}

impl GameRecords {
    /// Keeps up to `memory` bytes in memory, the rest in a temporary file.
    pub(crate) fn new(memory: usize, temp_dir: PathBuf) -> GameRecords {
        GameRecords {
            spool: Spool::new(memory, temp_dir),
            count: 0,
            starts: Vec::new(),
        }
    }

    /// How many records there are.
    pub(crate) fn len(&self) -> u64 {
        self.count
    }

    /// Takes the records of the next ids, joined, and the length of each.
    pub(crate) fn push_all(&mut self, lengths: &[u32], mut records: &[u8]) -> Result<()> {
        for length in lengths {
            if self.count == 0 || self.count == 10_u64.pow(self.starts.len() as u32) {
                self.starts.push(self.spool.len());
            }
            let (record, rest) = records.split_at(*length as usize);
            self.spool.append(&length.to_le_bytes())?;
            self.spool.append(record)?;
            records = rest;
            self.count += 1;
        }
        Ok(())
    }

    /// Calls `f` with the key and the value of each record in the order of the index.
    pub(crate) fn for_each(&self, mut f: impl FnMut(&[u8], &[u8]) -> Result<()>) -> Result<()> {
        let mut sequences = Vec::new();
        for (digits, start) in self.starts.iter().enumerate() {
            let digits = digits as u32 + 1;
            let mut sequence = Sequence {
                id: if digits == 1 {
                    0
                } else {
                    10_u64.pow(digits - 1)
                },
                end: self.count.min(10_u64.pow(digits)),
                key: Vec::new(),
                reader: self.spool.reader(*start),
            };
            sequence.name();
            sequences.push(sequence);
        }
        let mut value = Vec::new();
        // At most ten sequences: looking at all of them is as good as anything.
        while let Some(first) = sequences
            .iter_mut()
            .filter(|sequence| sequence.id < sequence.end)
            .min_by(|a, b| a.key.cmp(&b.key))
        {
            let mut length = [0; 4];
            first.reader.read_exact(&mut length)?;
            value.resize(u32::from_le_bytes(length) as usize, 0);
            first.reader.read_exact(&mut value)?;
            f(&first.key, &value)?;
            first.id += 1;
            first.name();
        }
        Ok(())
    }
}

/// The records of ids with the same number of digits.
struct Sequence<'a> {
    id: u64,
    end: u64,
    key: Vec<u8>,
    reader: SpoolReader<'a>,
}

impl Sequence<'_> {
    fn name(&mut self) {
        self.key = layout::game_key(self.id as u32);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
            records
                .for_each(|key, value| {
                    found.push((key.to_vec(), value.to_vec()));
                    Ok(())
                })
                .unwrap();
            let mut expected: Vec<_> = (0..count)
                .map(|id| (layout::game_key(id), format!("record {id}").into_bytes()))
                .collect();
            expected.sort();
            assert_eq!(found, expected);
        }
    }
}
