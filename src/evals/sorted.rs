//! All evaluations that are read, in the order of their keys, the best of each position alone.

use std::sync::Mutex;

use rayon::prelude::*;

use super::layout::{RECORD, Record};
use crate::{
    error::Result,
    sort::{Memory, TextSorter},
    task,
};

/// A record as bytes that [sort](Record::to_ranked).
pub(super) type Ranked = [u8; RECORD];

/// Into how many shards records are divided by the first bits of their keys, so that threads do not wait for each other.
const SHARDS: usize = 16;

/// Bytes of the key.
const KEY: usize = 8;

/// Collects records. Past its memory they go to temporary files.
pub(super) struct Sorted {
    shards: Vec<Mutex<TextSorter>>,
}

impl Sorted {
    pub(super) fn new(memory: &Memory) -> Sorted {
        let shard = || TextSorter::unique(memory.share(SHARDS), KEY);
        Sorted {
            shards: (0..SHARDS).map(|_| Mutex::new(shard())).collect(),
        }
    }

    /// Takes the records of a batch.
    pub(super) fn append(&self, records: &[Ranked]) -> Result<()> {
        let mut sharded = vec![Vec::new(); SHARDS];
        for record in records {
            sharded[usize::from(record[0]) * SHARDS / 256].push(record);
        }
        for (records, shard) in sharded.iter().zip(&self.shards) {
            let mut shard = task::lock(shard);
            for record in records {
                shard.push(&record[..])?;
            }
        }
        Ok(())
    }

    /// Hands over the best record of each key, in ascending order. Works on all threads of the rayon pool that it is
    /// called in.
    pub(super) fn for_each(self, mut take: impl FnMut(Record) -> Result<()>) -> Result<()> {
        let shards = self.shards.into_iter().map(task::unlocked);
        let mut shards: Vec<TextSorter> = shards.collect();
        shards.par_iter_mut().for_each(TextSorter::sort);
        for mut shard in shards {
            for record in shard.sorted() {
                take(Record::from_ranked(&record?).expect("it was a record"))?;
            }
        }
        Ok(())
    }
}
