//! All evaluations that are read, in the order of their keys, one of each position.

use std::sync::Mutex;

use rayon::prelude::*;

use super::layout::{EvalRecord, RANK, Ranked};
use crate::{
    error::Result,
    sort::{Memory, TextSorter},
    task,
};

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
        let shard = || TextSorter::best(memory.share(SHARDS), KEY, RANK);
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

    /// Hands over a record of each key, in ascending order. Works on all threads of the rayon pool that it is called in.
    pub(super) fn for_each(self, mut take: impl FnMut(EvalRecord) -> Result<()>) -> Result<()> {
        let shards = self.shards.into_iter().map(task::unlocked);
        let mut shards: Vec<TextSorter> = shards.collect();
        shards.par_iter_mut().for_each(TextSorter::sort);
        for mut shard in shards {
            let mut equal: Vec<(Ranked, u64)> = Vec::new();
            for text in shard.sorted() {
                let record: Ranked = (&*text?).try_into().expect("it was a record");
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

/// Of evaluations of a position that differ in their scores only, which ascend, with how often each was said: the one
/// that was said most often. Of several of these the middle one; of an even number, the key decides between the two in
/// the middle, so that no side is favored.
fn chosen(equal: &[(Ranked, u64)]) -> EvalRecord {
    let most = equal.iter().map(|(_, times)| *times).max().unwrap_or(0);
    let commonest: Vec<&Ranked> = equal
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

    /// The scores that are kept of these, of the keys 2 and 3.
    fn kept(scores: &[i64]) -> [i16; 2] {
        let sorted = Sorted::new(&Memory {
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
