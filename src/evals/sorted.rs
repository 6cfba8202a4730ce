//! Sorting evaluations by key and choosing one for each position.

use std::sync::Mutex;

use rayon::prelude::*;

use super::layout::{EvalRecord, RANK, RankedBytes};
use crate::{
    error::Result,
    sort::{Memory, TextSorter},
    task,
};

/// The number of shards. The first bits of its key choose the shard of a record, so that threads rarely wait for each other.
const SHARDS: usize = 16;

/// Bytes of a key.
const KEY: usize = 8;

/// A collection of records that sorts them, and spills to temporary files what exceeds its memory.
pub(super) struct EvalSorter {
    shards: Vec<Mutex<TextSorter>>,
}

impl EvalSorter {
    pub(super) fn new(memory: &Memory) -> EvalSorter {
        let shard = || TextSorter::best(memory.share(SHARDS), KEY, RANK);
        EvalSorter {
            shards: (0..SHARDS).map(|_| Mutex::new(shard())).collect(),
        }
    }

    /// Adds the records of a batch.
    ///
    /// # Errors
    ///
    /// Returns an error if a temporary file cannot be written.
    pub(super) fn append(&self, records: &[RankedBytes]) -> Result<()> {
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

    /// Calls `take` with the chosen record of each key, in ascending order of keys. Sorts on all threads of the current rayon
    /// pool.
    ///
    /// # Errors
    ///
    /// Returns an error if a temporary file cannot be read, or if `take` fails.
    pub(super) fn for_each(self, mut take: impl FnMut(EvalRecord) -> Result<()>) -> Result<()> {
        let shards = self.shards.into_iter().map(task::unlocked);
        let mut shards: Vec<TextSorter> = shards.collect();
        shards.par_iter_mut().for_each(TextSorter::sort);
        for mut shard in shards {
            let mut equal: Vec<(RankedBytes, u64)> = Vec::new();
            for text in shard.sorted() {
                let record: RankedBytes = (&*text?).try_into().expect("it was a record");
                match equal.last_mut() {
                    Some((last, times)) if *last == record => *times += 1,
                    Some((last, _)) if last[..KEY] != record[..KEY] => {
                        take(chosen(&equal))?;
                        equal.clear();
                        equal.push((record, 1));
                    }
                    _ => equal.push((record, 1)),
                }
            }
            if !equal.is_empty() {
                take(chosen(&equal))?;
            }
        }
        Ok(())
    }
}

/// Chooses one of the best evaluations of a position, which differ only in their scores. `equal` has them in ascending order,
/// each with the number of times that it was read.
///
/// Returns the most frequent evaluation. If several are equally frequent, returns the median of these; if their number is
/// even, a bit of the key chooses between the two in the middle, so that neither side is favored.
fn chosen(equal: &[(RankedBytes, u64)]) -> EvalRecord {
    let most = equal.iter().map(|(_, times)| *times).max().unwrap_or(0);
    let commonest: Vec<&RankedBytes> = equal
        .iter()
        .filter(|(_, times)| *times == most)
        .map(|(record, _)| record)
        .collect();
    let key_bit = usize::from(equal[0].0[KEY - 1] & 1);
    let middle = commonest[(commonest.len() - 1 + key_bit) / 2];
    EvalRecord::from_ranked(middle).expect("it was a record")
}

#[cfg(test)]
mod tests {
    use shakmaty::Chess;

    use super::*;
    use crate::evals::{Eval, Score};

    /// Adds all scores under the keys 2 and 3, and returns the score that is kept for each key.
    fn kept(scores: &[i64]) -> [i16; 2] {
        let sorted = EvalSorter::new(&Memory {
            bytes: 0,
            ..Memory::default()
        });
        for key in [2, 3] {
            for score in scores {
                let eval = Eval {
                    score: Score::centipawns(*score),
                    depth: 0,
                    nodes: 0,
                    origin: 0,
                };
                let record = EvalRecord::new(&Chess::default(), key, eval).unwrap();
                sorted.append(&[record.to_ranked()]).unwrap();
            }
        }
        let mut kept = Vec::new();
        let take = |record: EvalRecord| {
            kept.push(record.eval.score.to_code());
            Ok(())
        };
        sorted.for_each(take).unwrap();
        kept.try_into().unwrap()
    }

    #[test]
    fn what_most_say_counts_and_no_side_is_favored() {
        for (scores, expected) in [
            (&[30, 30, -90, 30, 30][..], [30, 30]),
            (&[-90, 400, 20], [20, 20]),
            (&[-90, 400], [-90, 400]),
            (&[5, 400, -90, 400, 5, 7], [5, 400]),
        ] {
            assert_eq!(kept(scores), expected, "{scores:?}");
            let reversed: Vec<i64> = scores.iter().rev().copied().collect();
            assert_eq!(kept(&reversed), expected, "{scores:?}");
        }
    }
}
