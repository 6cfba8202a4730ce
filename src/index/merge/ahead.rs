//! Reading the entries of the inputs ahead, a stretch of keys at a time, on all threads.
//!
//! A stretch ends where an input has not been read any further. It is cut at keys, and the parts are joined on
//! all threads.

use std::sync::Arc;

use rayon::prelude::*;

use super::{cursor::EntryCursor, plan::Plan};
use crate::{
    error::Result,
    index::{
        Index,
        entries::Entries,
        leveldb::{Scan, ScannedTable},
        tables::TABLE_SIZE,
    },
};

/// The most bytes of entries that make a stretch, unless an input has to be read further for it to have any.
const MOST_STRETCH: usize = 8 << 20;

/// How many tables are read at once, of one input; of several as many together.
const FEWEST_TABLES: usize = 8;
const MOST_TABLES: usize = 64;

/// Entries of all inputs whose keys lie in a stretch, which are read as they are needed.
pub(super) struct ReadAhead<'a> {
    inputs: Vec<Input<'a>>,
    /// The first key behind those that have been joined.
    start: Vec<u8>,
    /// The first key behind all.
    end: &'static [u8],
    /// How many bytes of entries make a stretch.
    stretch: usize,
    /// How many tables of an input are read at once.
    tables: usize,
    /// How many bytes the tables have that have not been read.
    bytes_left: u64,
}

/// An input that is read.
struct Input<'a> {
    scan: Scan<'a>,
    /// Entries that have been read, a table each, none of them empty.
    read: Vec<Arc<Entries>>,
    has_ended: bool,
}

/// Keys from one on and before another.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct KeyRange {
    pub start: Vec<u8>,
    pub end: Vec<u8>,
}

impl<'a> ReadAhead<'a> {
    /// Of the entries whose keys are not less than `start` and less than `end`.
    pub(super) fn new(
        plan: &Plan<'a>,
        start: &'static [u8],
        end: &'static [u8],
    ) -> Result<ReadAhead<'a>> {
        let open = |index: &'a Index| -> Result<Input<'a>> {
            let mut scan = index.scan()?;
            scan.skip_to(start);
            Ok(Input {
                scan,
                read: Vec::new(),
                has_ended: false,
            })
        };
        let inputs = plan.inputs.iter().map(|part| open(part.index));
        let inputs: Vec<Input<'a>> = inputs.collect::<Result<_>>()?;
        let at_once = (2 * rayon::current_num_threads()).clamp(FEWEST_TABLES, MOST_TABLES);
        let at_once = at_once.min(plan.read_ahead / TABLE_SIZE);
        Ok(ReadAhead {
            stretch: plan.read_ahead.min(MOST_STRETCH),
            tables: (at_once / inputs.len().max(1)).max(1),
            bytes_left: inputs
                .iter()
                .map(|input| input.scan.bytes_before(end))
                .sum(),
            inputs,
            start: start.to_vec(),
            end,
        })
    }

    /// How many bytes the tables have that have not been read.
    pub(super) fn bytes_left(&self) -> u64 {
        self.bytes_left
    }

    /// Reads a stretch, which begins where the one before ended. `None` behind the last.
    ///
    /// `horizon` tells from what has been read of an input the first key that is not complete yet, `None` if none is
    /// complete.
    pub(super) fn next_stretch(
        &mut self,
        horizon: impl Fn(&[Arc<Entries>]) -> Option<Vec<u8>>,
    ) -> Result<Option<KeyRange>> {
        loop {
            let limits = self.inputs.iter().enumerate();
            let limits = limits.filter(|(_, input)| !input.has_ended);
            let limit = limits
                .map(|(number, input)| (horizon(&input.read).unwrap_or_default(), number))
                .min();
            let Some((bound, number)) = limit else {
                // All has been read.
                return Ok(self.range_to(self.end.to_vec()));
            };
            let held: usize = self.inputs.iter().map(Input::held).sum();
            if held >= self.stretch && bound > self.start {
                return Ok(self.range_to(bound));
            }
            let input = &mut self.inputs[number];
            self.bytes_left -= input.read_tables(self.tables, &self.start, self.end)?;
        }
    }

    fn range_to(&self, end: Vec<u8>) -> Option<KeyRange> {
        let start = self.start.clone();
        (start < end).then_some(KeyRange { start, end })
    }

    /// Cuts a stretch into parts of about the same size. `align` answers for a key one that may begin a part and
    /// does not come behind it.
    pub(super) fn cut(
        &self,
        stretch: &KeyRange,
        align: impl Fn(&[u8]) -> Option<Vec<u8>>,
    ) -> Vec<KeyRange> {
        let parts = 4 * rayon::current_num_threads();
        let longest = self.inputs.iter().max_by_key(|input| input.held());
        let tables = longest.map_or(&[][..], |input| &input.read[..]);
        let each = tables.len().div_ceil(parts).max(1);
        let of_table = if each > 1 {
            1
        } else {
            parts.div_ceil(tables.len().max(1))
        };
        let mut cuts = vec![stretch.start.clone()];
        for table in tables.iter().step_by(each) {
            let keys = (0..of_table).map(|part| table.key(part * table.len() / of_table));
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

    /// Goes through what has been read of each input, from a key on.
    pub(super) fn cursors(&self, start: &[u8]) -> Vec<EntryCursor<'_>> {
        let inputs = self.inputs.iter();
        let cursors = inputs.map(|input| EntryCursor::from_key(&input.read, start));
        cursors.collect()
    }

    /// Passes over a stretch.
    pub(super) fn pass(&mut self, stretch: KeyRange) {
        self.start = stretch.end;
        for input in &mut self.inputs {
            let is_passed = |table: &Arc<Entries>| table.last_key() < Some(&self.start[..]);
            let passed = input.read.partition_point(is_passed);
            input.read.drain(..passed);
        }
    }
}

impl Input<'_> {
    /// How many bytes of entries have been read.
    fn held(&self) -> usize {
        self.read.iter().map(|table| table.held()).sum()
    }

    /// Reads the next tables, at most `count` of them. Answers how many bytes they have.
    fn read_tables(&mut self, count: usize, start: &[u8], end: &[u8]) -> Result<u64> {
        let mut tables = Vec::new();
        while tables.len() < count
            && let Some(table) = self.scan.next_table_before(end)
        {
            tables.push(table);
        }
        self.has_ended = tables.len() < count;
        let read = tables
            .par_iter()
            .map(|table| entries_of(table, start, end))
            .collect::<Result<Vec<_>>>()?;
        let read = read.into_iter().filter(|entries| entries.len() > 0);
        self.read.extend(read.map(Arc::new));
        Ok(tables.iter().map(ScannedTable::size).sum())
    }
}

/// The entries of a table whose keys are not less than `start` and less than `end`.
pub(super) fn entries_of(table: &ScannedTable<'_>, start: &[u8], end: &[u8]) -> Result<Entries> {
    // As many as a table has of single games.
    let mut entries = Entries::with_room(TABLE_SIZE / 32, TABLE_SIZE + TABLE_SIZE / 8);
    if table.lies_within(start, end) {
        table.for_each(|key, value| entries.push(key, value))?;
        return Ok(entries);
    }
    table.for_each(|key, value| {
        if key >= start && key < end {
            entries.push(key, value);
        }
    })?;
    Ok(entries)
}
