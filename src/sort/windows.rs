//! Ordered sources side by side: the next records of all of them, a window at a time.

use super::record::Record;
use crate::error::Result;

/// About how many records a source should hand over at once.
const WINDOW: usize = 1 << 11;

/// Records of some shards in ascending order. Those that are folded into one may come in any order.
pub(crate) trait Ascending<R> {
    /// Appends the next records, about [`WINDOW`] of them. If it appends none, there are no more.
    ///
    /// # Errors
    ///
    /// A source that cannot be read, or is not in order.
    fn next(&mut self, out: &mut Vec<R>) -> Result<()>;
}

impl<R: Record, I: Iterator<Item = Result<R>>> Ascending<R> for I {
    fn next(&mut self, out: &mut Vec<R>) -> Result<()> {
        for record in self.by_ref().take(WINDOW) {
            out.push(record?);
        }
        Ok(())
    }
}

/// Which groups of records are kept. A group is all records of a [rank](Record::rank).
pub(crate) trait Choice<R>: Sync {
    /// Whether a group is kept.
    fn keeps(&self, group: &[R]) -> bool;

    /// Whether every group is kept.
    fn keeps_all(&self) -> bool;
}

/// What a choice did not keep.
#[derive(Copy, Clone, PartialEq, Eq, Default, Debug)]
pub(crate) struct PassedOver {
    pub groups: u64,
    pub records: u64,
}

/// How many times as many marks as records a sieve has: few ranks share one.
const MARKS_OF_RECORD: usize = 8;

/// Sources that are read side by side.
pub(super) struct Windows<'a, R> {
    sources: Vec<Source<'a, R>>,
    sieve: Sieve,
    /// The records of the window. Those behind them are old.
    window: Vec<R>,
}

struct Source<'a, R> {
    rows: Box<dyn Ascending<R> + 'a>,
    /// What was read of it, from `at` on not yet merged.
    read: Vec<R>,
    at: usize,
    /// How many records of it the window has.
    ready: usize,
}

impl<R> Source<'_, R> {
    fn ready(&self) -> &[R] {
        &self.read[self.at..self.at + self.ready]
    }
}

impl<'a, R: Record> Windows<'a, R> {
    pub(super) fn new(sources: Vec<Box<dyn Ascending<R> + 'a>>) -> Windows<'a, R> {
        let source = |rows| Source {
            rows,
            read: Vec::with_capacity(WINDOW),
            at: 0,
            ready: 0,
        };
        Windows {
            sources: sources.into_iter().map(source).collect(),
            sieve: Sieve::default(),
            window: Vec::new(),
        }
    }

    /// The next records of all sources, sorted, without some of which it is known that they are not chosen; `None` at
    /// the end.
    pub(super) fn next(
        &mut self,
        choice: &impl Choice<R>,
        passed_over: &mut PassedOver,
    ) -> Result<Option<&[R]>> {
        for source in &mut self.sources {
            source.at += source.ready;
            source.ready = 0;
            if source.at == source.read.len() {
                source.read.clear();
                source.at = 0;
                source.rows.next(&mut source.read)?;
            }
        }
        self.sources.retain(|source| !source.read.is_empty());
        // What follows in the source that has come least far is not known, so the others wait for it there.
        let Some(last) = self.sources.iter().filter_map(|s| s.read.last()).min() else {
            return Ok(None);
        };
        let last = *last;
        for source in &mut self.sources {
            let unmerged = &source.read[source.at..];
            source.ready = unmerged.partition_point(|record| *record <= last);
        }
        let records = if choice.keeps_all() {
            self.gather(last)
        } else {
            self.sift(last, choice, passed_over)
        };
        let window = &mut self.window[..records];
        // The sort of the standard library finds what is in order, and merges it.
        window.sort();
        Ok(Some(window))
    }

    /// Makes room for all records that are ready; answers how many these are.
    fn make_room(&mut self, filler: R) -> usize {
        let records = self.sources.iter().map(|source| source.ready).sum();
        if self.window.len() < records {
            self.window.resize(records, filler);
        }
        records
    }

    /// Fills the window with what is ready; answers how many records these are.
    fn gather(&mut self, last: R) -> usize {
        let records = self.make_room(last);
        let mut rest = &mut self.window[..records];
        for source in &self.sources {
            let (now, later) = rest.split_at_mut(source.ready);
            now.copy_from_slice(source.ready());
            rest = later;
        }
        records
    }

    /// Fills the window with what is ready, but for the records that are a group each and are not kept: most, which
    /// need not be sorted then. Answers how many records the window has.
    fn sift(&mut self, last: R, choice: &impl Choice<R>, passed_over: &mut PassedOver) -> usize {
        let records = self.make_room(last);
        let firsts = self
            .sources
            .iter()
            .filter_map(|source| source.ready().first());
        let first = firsts
            .min()
            .expect("the source that has come least far is ready");
        let sieve = &mut self.sieve;
        sieve.start(first.rank(), last.rank(), records);
        for source in &self.sources {
            for record in source.ready() {
                sieve.mark(record.rank());
            }
        }
        let mut kept = 0;
        for source in &self.sources {
            for record in source.ready() {
                self.window[kept] = *record;
                // Which of them it is cannot be guessed, so it is written first.
                let is_kept = !sieve.is_alone(record.rank()) | choice.keeps(&[*record]);
                kept += usize::from(is_kept);
            }
        }
        passed_over.groups += (records - kept) as u64;
        passed_over.records += (records - kept) as u64;
        kept
    }
}

/// Tells which ranks of a window occur once. Of some it does not know.
#[derive(Default)]
struct Sieve {
    /// For each range of ranks: none, one, or more numbers.
    marks: Vec<u8>,
    first: u64,
    shift: u32,
}

impl Sieve {
    /// Forgets all ranks, and expects so many between a `first` and a `last`.
    fn start(&mut self, first: u64, last: u64, records: usize) {
        let bits = (records * MARKS_OF_RECORD).next_power_of_two().ilog2();
        let length = u64::BITS - (last - first).leading_zeros();
        self.first = first;
        self.shift = length.saturating_sub(bits);
        self.marks.clear();
        self.marks.resize(1 << bits, 0);
        // These may go on in other windows.
        for rank in [first, last] {
            self.mark(rank);
            self.mark(rank);
        }
    }

    #[inline]
    fn place(&self, rank: u64) -> usize {
        ((rank - self.first) >> self.shift) as usize
    }

    #[inline]
    fn mark(&mut self, rank: u64) {
        let place = self.place(rank);
        let mark = &mut self.marks[place];
        // The lowest bit after the first, another after the second, and so on.
        *mark = *mark << 1 | 1;
    }

    /// Whether it is known that a rank that was marked occurs once.
    #[inline]
    fn is_alone(&self, rank: u64) -> bool {
        self.marks[self.place(rank)] == 1
    }
}
