//! Collecting records in shards.

use std::sync::{Arc, Mutex, MutexGuard};

use super::{
    Memory,
    blocks::Pool,
    record::{Plain, Record, SHARDS},
    run::RunFile,
    seal::{Room, SHARDS_PER_FILE, seal},
    sealed::Sealed,
    shard::Shard,
};
use crate::{error::Result, task};

/// The records that a shard may hold however little memory there is.
const SMALLEST_QUOTA: usize = 64;

/// Records sorted into the order of their shards, ready to be [appended](Shards::append).
#[derive(Debug)]
pub(crate) struct Partition<R> {
    records: Vec<R>,
    /// Where the records of each shard begin, and the end.
    starts: Vec<u32>,
}

impl<R: Record> Partition<R> {
    /// Sorts `records` by shard; at most 2^32 of them.
    pub(crate) fn new(records: &[R]) -> Partition<R> {
        let mut starts = vec![0u32; SHARDS + 1];
        for record in records {
            starts[record.shard() + 1] += 1;
        }
        for shard in 0..SHARDS {
            starts[shard + 1] += starts[shard];
        }
        let mut ends = starts.clone();
        let mut sorted = vec![R::from_bits(0); records.len()];
        for record in records {
            let end = &mut ends[record.shard()];
            sorted[*end as usize] = *record;
            *end += 1;
        }
        Partition {
            records: sorted,
            starts,
        }
    }

    fn shard(&self, shard: usize) -> &[R] {
        &self.records[self.starts[shard] as usize..self.starts[shard + 1] as usize]
    }
}

/// Records being collected. Any number of threads may append at the same time.
#[derive(Debug)]
pub(crate) struct Shards<R> {
    shards: Vec<Mutex<Shard<R>>>,
    pool: Pool<R>,
    files: Vec<Mutex<Option<Arc<RunFile>>>>,
    /// How many records a shard may hold.
    quota: usize,
    memory: Memory,
}

impl<R: Record> Shards<R> {
    /// No records yet.
    pub(crate) fn new(memory: Memory) -> Shards<R> {
        // A quarter is left for the unused ends of blocks and for what a compaction needs meanwhile.
        let records = memory.bytes / size_of::<R>() / 4 * 3;
        let quota = (records / SHARDS).max(SMALLEST_QUOTA);
        Shards {
            shards: (0..SHARDS).map(|_| Mutex::default()).collect(),
            pool: Pool::new(quota),
            files: (0..SHARDS / SHARDS_PER_FILE)
                .map(|_| Mutex::default())
                .collect(),
            quota,
            memory,
        }
    }

    /// Takes records, each into its shard.
    ///
    /// # Errors
    ///
    /// A temporary file that cannot be written.
    pub(crate) fn append(&self, partition: &Partition<R>) -> Result<()> {
        // A shard that another thread holds is left for later rather than waited for.
        let mut busy = Vec::new();
        for (number, shard) in self.shards.iter().enumerate() {
            match shard.try_lock() {
                Ok(shard) => self.extend(number, shard, partition.shard(number))?,
                // Or its holder panicked.
                Err(_) => busy.push(number),
            }
        }
        for number in busy {
            let shard = task::lock(&self.shards[number]);
            self.extend(number, shard, partition.shard(number))?;
        }
        Ok(())
    }

    fn extend(
        &self,
        number: usize,
        mut shard: MutexGuard<'_, Shard<R>>,
        records: &[R],
    ) -> Result<()> {
        task::fault("tally");
        for chunk in records.chunks(self.quota / 2) {
            shard.new.extend(chunk, &self.pool);
            if shard.len() >= self.quota {
                shard.compact(&self.pool);
                if shard.sorted.len() > self.quota / 2 {
                    self.spill(number, &mut shard)?;
                }
            }
        }
        Ok(())
    }

    /// Moves the sorted records of a shard to its file.
    fn spill(&self, number: usize, shard: &mut Shard<R>) -> Result<()> {
        // Other shards of the file wait until the run is written.
        let mut file = task::lock(&self.files[number / SHARDS_PER_FILE]);
        let file = match &*file {
            Some(file) => file,
            None => file.insert(RunFile::create(&self.memory.temp_dir)?),
        };
        task::fault("spill");
        let sorted = std::mem::take(&mut shard.sorted);
        shard.runs.push(file.append(sorted.iter())?);
        self.pool.give_back(sorted.into_blocks());
        Ok(())
    }

    /// How many bytes are in temporary files.
    pub(crate) fn spilled_bytes(&self) -> u64 {
        let size = |file: &Mutex<Option<Arc<RunFile>>>| {
            task::lock(file).as_ref().map_or(0, |file| file.size())
        };
        self.files.iter().map(size).sum()
    }

    /// Ends collecting: every shard becomes one sorted sequence. Works on all threads of the rayon
    /// pool that it is called in.
    ///
    /// # Errors
    ///
    /// A temporary file that cannot be written or read.
    pub(crate) fn seal(mut self) -> Result<Sealed<R>> {
        let shards = std::mem::take(&mut self.shards).into_iter();
        let shards: Vec<Shard<R>> = shards.map(task::unlocked).collect();
        // The runs hold their files.
        self.files.clear();
        let held: usize = shards.iter().map(Shard::len).sum();
        let most = (self.quota * SHARDS).saturating_sub(held);
        seal(shards, &Room::new(&self.pool, most, &self.memory.temp_dir))
    }
}

/// Records that are handed to the shards at once.
const BATCH: usize = 1 << 14;

/// Collects 128-bit records and gives them back in order, repeated ones as often as they came.
pub(crate) struct Sorter {
    shards: Shards<Plain>,
    batch: Vec<Plain>,
}

impl Sorter {
    /// No records yet; `memory` is for all that will come.
    pub(crate) fn new(memory: &Memory) -> Sorter {
        Sorter {
            shards: Shards::new(memory.clone()),
            batch: Vec::with_capacity(BATCH),
        }
    }

    /// Adds a record.
    ///
    /// # Errors
    ///
    /// A temporary file that cannot be written.
    pub(crate) fn push(&mut self, record: u128) -> Result<()> {
        self.batch.push(Plain(record));
        if self.batch.len() == BATCH {
            self.append()?;
        }
        Ok(())
    }

    fn append(&mut self) -> Result<()> {
        self.shards.append(&Partition::new(&self.batch))?;
        self.batch.clear();
        Ok(())
    }

    /// Calls `f` with all records in order, until it answers an error.
    ///
    /// # Errors
    ///
    /// A temporary file that cannot be written or read, or the errors of `f`.
    pub(crate) fn for_each(mut self, mut f: impl FnMut(u128) -> Result<()>) -> Result<()> {
        self.append()?;
        // A pool of its own: the one that is shared panics if its threads cannot be started.
        let shards = self.shards;
        let sealed = task::pool(0)?.install(|| shards.seal())?;
        for shard in 0..SHARDS {
            for record in sealed.records(shard) {
                f(record?.0)?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::sort::Fold;

    /// A record whose low 16 bits are added up.
    #[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
    struct Sum(u128);

    #[derive(Default)]
    struct AddUp(Option<u128>);

    impl Record for Sum {
        type Fold = AddUp;

        fn from_bits(bits: u128) -> Sum {
            Sum(bits)
        }

        fn to_bits(self) -> u128 {
            self.0
        }

        fn rank(self) -> u64 {
            (self.0 >> 64) as u64
        }
    }

    impl Fold for AddUp {
        type Record = Sum;

        fn take(&mut self, record: Sum, out: &mut impl FnMut(Sum)) {
            match &mut self.0 {
                Some(open) if *open >> 16 == record.0 >> 16 => *open += record.0 & 0xffff,
                _ => {
                    self.finish(out);
                    self.0 = Some(record.0);
                }
            }
        }

        fn finish(&mut self, out: &mut impl FnMut(Sum)) {
            self.0.take().into_iter().for_each(|bits| out(Sum(bits)));
        }
    }

    fn sealed_records(records: &[Sum], bytes: usize) -> (Vec<Sum>, bool) {
        let shards = Shards::new(Memory {
            bytes,
            ..Memory::default()
        });
        for batch in records.chunks(1000) {
            shards.append(&Partition::new(batch)).unwrap();
        }
        let sealed = shards.seal().unwrap();
        let mut found = Vec::new();
        for shard in 0..SHARDS {
            sealed.for_each(shard, |record| found.push(record)).unwrap();
        }
        (found, sealed.is_spilled())
    }

    #[test]
    fn spilling_changes_nothing() {
        // Few kinds often and many seldom, in three shards, so that a shard spills many runs.
        let mut state = 1u64;
        let mut next = || {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            u128::from(state >> 33)
        };
        let records: Vec<Sum> = (0..600_000)
            .map(|i| {
                let kind = if i % 3 == 0 {
                    next() % 40
                } else {
                    next() % 200_000
                };
                Sum(kind << 64 | (next() % 3) << 120 | 1)
            })
            .collect();
        let (roomy, spilled) = sealed_records(&records, 1 << 30);
        assert!(!spilled);
        let (tight, spilled) = sealed_records(&records, 0);
        assert!(spilled);
        assert!(roomy.is_sorted());
        assert_eq!(roomy, tight);
        let counted: u128 = roomy.iter().map(|record| record.0 & 0xffff).sum();
        assert_eq!(counted, 600_000);
    }

    #[test]
    fn temporary_files_that_cannot_be_made_are_an_error() {
        let shards = Shards::new(Memory {
            bytes: 0,
            temp_dir: "/nonexistent/directory".into(),
        });
        let records: Vec<Sum> = (0..10_000u128).map(|i| Sum(i << 64 | 1)).collect();
        let err = shards.append(&Partition::new(&records)).unwrap_err();
        assert!(err.to_string().contains("/nonexistent/directory"), "{err}");
    }

    proptest! {
        #[test]
        fn partitions_keep_every_record(mut records in proptest::collection::vec(any::<u128>().prop_map(Sum), 0..500)) {
            let partition = Partition::new(&records);
            let mut found: Vec<Sum> = (0..SHARDS).flat_map(|s| partition.shard(s).to_vec()).collect();
            prop_assert!(found.is_sorted_by_key(|record| record.shard()));
            found.sort_unstable();
            records.sort_unstable();
            prop_assert_eq!(found, records);
        }
    }
}
