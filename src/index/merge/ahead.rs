//! Reading the entries of the inputs ahead, a stretch of keys at a time, on all threads.
//!
//! A stretch ends where the first input has no more entries in memory. It is cut at keys, and the parts are joined on
//! all threads.

use std::{collections::VecDeque, mem, ops::Range, path::Path, sync::Arc};

use rayon::prelude::*;

use super::{cursor::EntryCursor, plan::Plan};
use crate::{
    error::Result,
    index::{
        Index,
        entries::{Entries, LongIds, LongValue, SpillFile, StoredIds, spill_file},
        leveldb::{TableFile, TableValue},
        tables::TABLE_SIZE,
    },
    task,
};

/// How many tables are read ahead, of all inputs together.
const FEWEST_TABLES: usize = 8;
const MOST_TABLES: usize = 64;

/// The longest value that is held.
const LONGEST_HELD: usize = 256 << 10;

/// Values of at least this many bytes are spilled where more is to be read ahead than there is memory for.
const LEAST_SPILLED: usize = 1 << 12;

/// What an entry takes in addition to its bytes.
const PLACE: usize = 16;

/// Entries of all inputs whose keys lie in a stretch, which are read as they are needed.
pub(super) struct ReadAhead<'a> {
    inputs: Vec<InputTables<'a>>,
    /// The first key after those that were joined.
    start: Vec<u8>,
    /// The first key after all.
    end: &'static [u8],
    /// How many bytes of entries of an input are read ahead, unless it has to be read further for a stretch to have any.
    share: usize,
    /// Where longer values are spilled then, if they are.
    spill_to: Option<SpillFile>,
    /// How many bytes of the tables are still to be read.
    bytes_left: u64,
}

/// An input that is read.
struct InputTables<'a> {
    index: &'a Index,
    /// The tables that are still to be read.
    tables: VecDeque<&'a TableFile>,
    /// Entries that have been read, a table each, none of them empty.
    read: Vec<Arc<Entries>>,
    /// Whether more is to be read.
    is_due: bool,
    has_ended: bool,
}

/// Keys from one on and before another.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct KeyRange {
    pub start: Vec<u8>,
    pub end: Vec<u8>,
}

impl<'a> ReadAhead<'a> {
    /// Of the entries whose keys are not less than `start` and less than `end`. With a directory, a stretch may be longer
    /// than memory: longer values are spilled to it.
    pub(super) fn new(
        plan: &Plan<'a>,
        start: &'static [u8],
        end: &'static [u8],
        spill_to: Option<&Path>,
    ) -> Result<ReadAhead<'a>> {
        let open = |index: &'a Index| -> Result<InputTables<'a>> {
            Ok(InputTables {
                index,
                tables: index.database().tables_within(start, end)?.into(),
                read: Vec::new(),
                is_due: false,
                has_ended: false,
            })
        };
        let inputs = plan.inputs.iter().map(|part| open(part.index));
        let inputs: Vec<InputTables<'a>> = inputs.collect::<Result<_>>()?;
        let tables = (2 * rayon::current_num_threads()).clamp(FEWEST_TABLES, MOST_TABLES);
        let bytes = (tables * TABLE_SIZE).min(plan.read_ahead);
        Ok(ReadAhead {
            share: bytes / inputs.len().max(1),
            spill_to: spill_to.map(spill_file),
            bytes_left: inputs
                .iter()
                .flat_map(|input| &input.tables)
                .map(|table| table.size)
                .sum(),
            inputs,
            start: start.to_vec(),
            end,
        })
    }

    /// How many bytes of the tables are still to be read.
    pub(super) fn bytes_left(&self) -> u64 {
        self.bytes_left
    }

    /// Reads a stretch, which begins where the one before ended. `None` after the last.
    ///
    /// From the entries read of an input `horizon` finds the first key that is not complete yet, `None` if none is
    /// complete.
    pub(super) fn next_stretch(
        &mut self,
        horizon: impl Fn(&[Arc<Entries>]) -> Option<Vec<u8>>,
    ) -> Result<Option<KeyRange>> {
        for input in &mut self.inputs {
            input.is_due = input.held() < self.share;
        }
        loop {
            self.read_due()?;
            let limits = self.inputs.iter().enumerate();
            let limits = limits.filter(|(_, input)| !input.has_ended);
            let limit = limits
                .map(|(number, input)| (horizon(&input.read).unwrap_or_default(), number))
                .min();
            let Some((bound, number)) = limit else {
                // All has been read.
                return Ok(self.range_to(self.end.to_vec()));
            };
            if bound > self.start {
                return Ok(self.range_to(bound));
            }
            self.inputs[number].is_due = true;
        }
    }

    /// Reads the next tables of the inputs that are due, on all threads.
    fn read_due(&mut self) -> Result<()> {
        let count = self.share.div_ceil(TABLE_SIZE).max(1);
        let mut tables = Vec::new();
        for (number, input) in self.inputs.iter_mut().enumerate() {
            if mem::take(&mut input.is_due) {
                let spill_to = self.spill_to.as_ref();
                let spill_to = spill_to.filter(|_| input.held() >= self.share);
                input.has_ended = input.tables.len() < count;
                let next = input.tables.drain(..count.min(input.tables.len()));
                tables.extend(next.map(|table| (number, input.index, table, spill_to)));
            }
        }
        let read = tables
            .par_iter()
            .map(|(number, index, table, spill_to)| {
                entries_of(*number, index, table, &self.start, self.end, *spill_to)
            })
            .collect::<Result<Vec<_>>>()?;
        for ((number, _, table, _), entries) in tables.iter().zip(read) {
            self.bytes_left -= table.size;
            if entries.len() > 0 {
                self.inputs[*number].read.push(Arc::new(entries));
            }
        }
        Ok(())
    }

    fn range_to(&self, end: Vec<u8>) -> Option<KeyRange> {
        let start = self.start.clone();
        (start < end).then_some(KeyRange { start, end })
    }

    /// Cuts a stretch into parts of about the same size. For a key `align` returns one that may begin a part and
    /// does not come after it.
    pub(super) fn cut(
        &self,
        stretch: &KeyRange,
        align: impl Fn(&[u8]) -> Option<Vec<u8>>,
    ) -> Vec<KeyRange> {
        let count = |input: &InputTables<'_>| -> usize {
            let parts = input.parts_in(stretch);
            parts.map(|(_, entries)| entries.len()).sum()
        };
        let longest = self.inputs.iter().max_by_key(|input| count(input));
        let parts = 4 * rayon::current_num_threads();
        let each = longest.map_or(0, count).div_ceil(parts).max(1);
        let mut cuts = vec![stretch.start.clone()];
        for (table, entries) in longest.iter().flat_map(|input| input.parts_in(stretch)) {
            let keys = entries.step_by(each).map(|entry| table.key(entry));
            cuts.extend(keys.filter_map(&align));
        }
        cuts.retain(|key| *key >= stretch.start && *key < stretch.end);
        cuts.dedup();
        cuts.push(stretch.end.clone());
        let ranges = cuts.windows(2).map(|pair| KeyRange {
            start: pair[0].clone(),
            end: pair[1].clone(),
        });
        ranges.collect()
    }

    /// Goes through the entries read of each input, from a key on.
    pub(super) fn cursors(&self, start: &[u8]) -> Vec<EntryCursor<'_>> {
        let inputs = self.inputs.iter();
        let cursors = inputs.map(|input| EntryCursor::from_key(&input.read, start));
        cursors.collect()
    }

    /// Passes over a stretch.
    pub(super) fn pass(&mut self, stretch: KeyRange) {
        self.start = stretch.end;
        // The file lasts as long as the entries whose values it has.
        if let Some(file) = &mut self.spill_to
            && task::lock(file).len() > 0
        {
            let dir = task::lock(file).temp_dir().to_owned();
            *file = spill_file(&dir);
        }
        for input in &mut self.inputs {
            let is_passed = |table: &Arc<Entries>| table.last_key() < Some(&self.start[..]);
            let passed = input.read.partition_point(is_passed);
            input.read.drain(..passed);
        }
    }
}

impl<'a> InputTables<'a> {
    /// How much memory the entries take that have been read.
    fn held(&self) -> usize {
        let tables = self.read.iter();
        tables.map(|table| table.held() + PLACE * table.len()).sum()
    }

    /// The entries that have been read whose keys lie in a stretch.
    fn parts_in(&self, stretch: &KeyRange) -> impl Iterator<Item = (&Entries, Range<usize>)> {
        let KeyRange { start, end } = stretch.clone();
        self.read.iter().map(move |table| {
            let first = table.find(0, |key| *key < start[..]);
            let last = table.find(first, |key| *key < end[..]);
            (&**table, first..last)
        })
    }
}

/// The entries of a table of an input whose keys are not less than `start` and less than `end`. Long values are named by
/// the number of the input. With a file, values of some kilobytes are spilled to it.
fn entries_of(
    input: usize,
    index: &Index,
    table: &TableFile,
    start: &[u8],
    end: &[u8],
    spill_to: Option<&SpillFile>,
) -> Result<Entries> {
    // As many as a table has of single games.
    let room = TABLE_SIZE.min(4 * table.size as usize);
    let mut entries = Entries::with_room(room / 32, room + room / 8);
    let is_whole = table.first_key[..] >= *start && table.last_key[..] < *end;
    task::fault("read tables");
    let mut cursor = index.database().table(table, LONGEST_HELD)?;
    while cursor.advance()? {
        let key = cursor.key();
        if cursor.is_deleted() || !(is_whole || (key >= start && key < end)) {
            continue;
        }
        match cursor.value() {
            TableValue::Held(value) => match spill_to {
                Some(file) if value.len() >= LEAST_SPILLED => {
                    entries.push_spilled(key, value, file)?;
                }
                _ => entries.push(key, value),
            },
            TableValue::Long(value) => {
                let len = value.len;
                let ids = LongIds::Stored(vec![StoredIds::Long(input, value)]);
                entries.push_long(key, LongValue { ids, len });
            }
        }
    }
    Ok(entries)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicBool;

    use super::*;
    use crate::{
        index::{
            GameRecords,
            explored::{ExploredGames, Played, list_entries},
            layout::{
                ListKey, Subject, list_key,
                played::{List, Paging},
            },
            pieces::Piece,
            write::{ExploredData, IndexSource, IndexWriter},
        },
        position::VariantChoice,
        progress::Meter,
        sort::{Memory, Partition, Record, Shards},
    };

    #[test]
    fn the_chunks_of_a_page_are_spilled() {
        const GAMES: u32 = 2_000_000;
        let subject = Subject(7 << 40);
        let dir = tempfile::tempdir().unwrap();
        let shards = Shards::new(Memory::default());
        let all: Vec<Played> = (0..GAMES).map(|id| Played::listed(subject, id)).collect();
        for records in all.chunks(100_000) {
            shards.append(&Partition::new(records)).unwrap();
        }
        let records = shards.seal().unwrap();
        let games = ExploredGames::new(0, dir.path().to_owned());

        // Where they are made.
        let piece = Piece {
            shard: all[0].shard(),
            range: 0..1000,
        };
        let paging = Paging::for_items(u64::from(GAMES));
        let made = list_entries(&piece, &records, &games, paging).unwrap();
        assert_eq!(made.records, u64::from(GAMES));
        assert!(made.entries.held() < 512 << 10, "{}", made.entries.held());

        // Where they are read to be merged.
        let target = dir.path().join("index");
        let writer = IndexWriter::create(&target, false, false).unwrap();
        let postings = Shards::new(Memory::default()).seal().unwrap();
        let from = IndexSource {
            postings: &postings,
            games: &GameRecords::new(0, dir.path().to_owned()),
            files: &[],
            variant: VariantChoice::default(),
            explored: Some(ExploredData {
                records: &records,
                games: &games,
            }),
        };
        let stop = AtomicBool::new(false);
        let (_, finished) = writer.write(from, &stop, &Meter::default()).unwrap();
        finished.commit().unwrap();
        let indexes = [Index::open(&target).unwrap()];
        let plan = Plan::new(&indexes, &dir.path().join("out"), 1000).unwrap();
        let mut ahead = ReadAhead::new(&plan, b"xp", b"xq", Some(dir.path())).unwrap();
        let stretch = ahead.next_stretch(|_| None).unwrap().unwrap();
        let held = ahead.inputs[0].held();
        assert!(held < TABLE_SIZE + (128 << 10), "{held}");
        let mut cursor = ahead.cursors(&stretch.start).remove(0);
        let mut next = 0;
        while let (Some(key), Some(entry)) = (cursor.key(), cursor.entry()) {
            if let Some(ListKey::Chunk(_)) = list_key(key) {
                let chunk = entry.short_value(&indexes[0]).unwrap();
                let (items, _) = List::parse(&chunk[1..]).unwrap().items().unwrap();
                let ids = items.iter().map(|(id, _)| *id);
                assert!(ids.eq(next..next + items.len() as u32));
                next += items.len() as u32;
            }
            cursor.advance();
        }
        assert_eq!(next, GAMES);
    }
}
