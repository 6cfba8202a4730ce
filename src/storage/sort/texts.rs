//! Sorts byte strings, also if there are more than memory holds.

use std::{borrow::Cow, hint::black_box, iter, mem, sync::Arc};

use super::{
    Memory,
    merge::Merge,
    run::{ByteRun, RunFile, length_of},
};
use crate::error::Result;

/// The minimum number of bytes that a sorter may use for texts in memory, however small its memory budget is.
const MIN_BYTES: usize = if cfg!(test) { 1 << 12 } else { 1 << 18 };

/// The number of sorted runs (sequences of texts in temporary files) that are merged at once. Runs of one level are
/// merged into one run of the next level.
const FAN_IN: usize = if cfg!(test) { 4 } else { 128 };

/// The size in bytes of the length prefix that is stored before each text.
const LENGTH: usize = 4;

/// The maximum number of texts with equal prefixes whose remaining bytes are copied and compared. It bounds the memory
/// for these copies.
const MAX_COPIED: usize = 1 << 16;

/// The number of consecutive texts that are loaded into the processor's cache together.
const FETCHED: usize = 32;

/// The number of bytes at the start of a text that are stored in its [`TextRef`], so that most comparisons need not
/// read the text.
const PREFIX: usize = size_of::<[u64; 2]>();

/// The number of bytes in the first element of [`TextRef::prefix`].
const KEY: usize = size_of::<u64>();

/// The offset of a text in memory, and the first bytes of the text, by which texts are compared quickly.
#[derive(Copy, Clone, Debug)]
struct TextRef {
    /// The result of [`prefix`] for the text. Two `u64` instead of a `u128`, because their alignment makes the struct
    /// smaller.
    prefix: [u64; 2],
    /// The offset of the text's length prefix in [`TextSorter::bytes`].
    start: usize,
}

/// Returns the first 16 bytes of a text as two big-endian integers, which compare like these bytes. A shorter text is
/// padded with zeros, so the lowest byte is 0.
fn prefix(text: &[u8]) -> [u64; 2] {
    let mut first = [[0; 8]; 2];
    let some = text.len().min(PREFIX);
    first.as_flattened_mut()[..some].copy_from_slice(&text[..some]);
    first.map(u64::from_be_bytes)
}

/// A rule that decides which sorted texts are kept. Texts with the same first `key` bytes form a group, of which the
/// first text is kept. If `rank` is `Some`, all texts of the group that share the first text's first `rank` bytes are
/// kept.
#[derive(Copy, Clone, Debug)]
struct KeepRule {
    key: usize,
    rank: Option<usize>,
}

impl KeepRule {
    /// Returns `true` if the rule keeps `text`. `last` is the previous text, in sorted order, that was kept.
    fn keeps(self, last: &[u8], text: &[u8]) -> bool {
        let is_equal = |bytes: usize| last[..bytes] == text[..bytes];
        !is_equal(self.key) || self.rank.is_some_and(is_equal)
    }
}

/// A sorter of byte strings, called texts. Equal texts are all kept, unless the sorter was created by
/// [`unique`](TextSorter::unique) or [`best`](TextSorter::best).
///
/// Texts that exceed the memory budget are spilled to sorted runs in temporary files. If there are many runs, they are
/// merged.
#[derive(Debug)]
pub(crate) struct TextSorter {
    memory: Memory,
    /// The number of texts to keep, from the first one on. `usize::MAX` means all.
    limit: usize,
    /// The rule by which texts are dropped, or `None` to keep all.
    best: Option<KeepRule>,
    /// The texts in memory, each after its length prefix.
    bytes: Vec<u8>,
    places: Vec<TextRef>,
    /// The runs, by level. Level 0 has the spilled runs; each run of another level was merged from [`FAN_IN`] runs of
    /// the level below. The runs of a level share a file.
    levels: Vec<Vec<ByteRun>>,
}

impl TextSorter {
    /// Creates an empty sorter with a memory budget. It keeps only the first `limit` texts in sorted order, or all
    /// texts if `limit` is `None`.
    pub(crate) fn new(memory: Memory, limit: Option<usize>) -> TextSorter {
        TextSorter {
            memory,
            limit: limit.unwrap_or(usize::MAX),
            best: None,
            bytes: Vec::new(),
            places: Vec::new(),
            levels: Vec::new(),
        }
    }

    /// Returns the number of bytes that the texts take in temporary files, without checksums.
    pub(crate) fn spilled_bytes(&self) -> u64 {
        self.levels.iter().flatten().map(ByteRun::len).sum()
    }

    /// Returns the number of bytes of all texts in memory and in files, including the length prefix of each.
    pub(crate) fn size(&self) -> u64 {
        self.bytes.len() as u64 + self.spilled_bytes()
    }

    /// Adds a byte string to the sorter.
    ///
    /// # Errors
    ///
    /// Returns an error if a temporary file cannot be written or read.
    pub(crate) fn push(&mut self, text: &[u8]) -> Result<()> {
        let more = LENGTH + text.len() + size_of::<TextRef>();
        if self.bytes_in_memory() + more > self.memory.bytes.max(MIN_BYTES)
            && !self.places.is_empty()
        {
            self.spill()?;
        }
        self.places.push(TextRef {
            prefix: prefix(text),
            start: self.bytes.len(),
        });
        self.bytes.extend_from_slice(&length_of(text));
        self.bytes.extend_from_slice(text);
        Ok(())
    }

    /// Returns the number of bytes that the texts in memory take, including their offsets and prefixes.
    fn bytes_in_memory(&self) -> usize {
        self.bytes.len() + size_of::<TextRef>() * self.places.len()
    }

    /// Returns the text that is stored in memory at `place`.
    fn at(&self, place: TextRef) -> &[u8] {
        let bytes = &self.bytes[place.start..];
        let (length, text) = bytes.split_first_chunk().expect("a text has a length");
        &text[..u32::from_le_bytes(*length) as usize]
    }

    /// Sorts the texts in memory. Drops the texts that the sorter does not keep: duplicates, or those after its limit.
    pub(crate) fn sort(&mut self) {
        let mut places = mem::take(&mut self.places);
        places.sort_unstable_by_key(|place| place.prefix);
        let mut after = Vec::new();
        for same in places.chunk_by_mut(|a, b| a.prefix == b.prefix) {
            if same.len() > 1 {
                self.sort_equal_prefixes(same, &mut after);
            }
        }
        if let Some(best) = self.best {
            places.dedup_by(|place, last| {
                // Comparing prefixes first avoids reading the text, which is not in the processor's cache.
                if best.key >= KEY && place.prefix[0] != last.prefix[0] {
                    return false;
                }
                let is_same = best.key == KEY && best.rank.is_none();
                is_same || !best.keeps(self.at(*last), self.at(*place))
            });
        }
        places.truncate(self.limit);
        self.places = places;
    }

    /// Sorts the texts in `same`, whose first bytes (prefixes) are equal. `after` is a buffer, which is reused between
    /// calls.
    ///
    /// Texts are scattered over memory, so each comparison of whole texts is slow. Therefore, the bytes after the
    /// prefix of each text are first copied to `after` and sorted. Whole texts are compared only if these bytes are
    /// equal too.
    fn sort_equal_prefixes(&self, same: &mut [TextRef], after: &mut Vec<([u64; 2], TextRef)>) {
        let is_full = same[0].prefix[1] as u8 != 0;
        if !is_full || same.len() > MAX_COPIED {
            same.sort_unstable_by(|a, b| self.at(*a).cmp(self.at(*b)));
            return;
        }
        self.prefetch(same);
        after.clear();
        after.extend(
            same.iter()
                .map(|place| (prefix(&self.at(*place)[PREFIX..]), *place)),
        );
        after.sort_unstable_by(|(a, a_place), (b, b_place)| {
            a.cmp(b)
                .then_with(|| self.at(*a_place).cmp(self.at(*b_place)))
        });
        for (place, (_, sorted)) in same.iter_mut().zip(after) {
            *place = *sorted;
        }
    }

    /// Loads the texts at `places` into the processor's cache. The loop body is short, so the processor loads many
    /// texts in parallel.
    fn prefetch(&self, places: &[TextRef]) {
        let first = |place: &TextRef| self.at(*place).first().copied().unwrap_or(0);
        black_box(places.iter().fold(0, |all, place| all ^ first(place)));
    }

    /// Sorts the texts in memory and writes those that the sorter keeps to a temporary file, as a sorted run. If a
    /// level then has [`FAN_IN`] runs, merges them into one run of the next level.
    fn spill(&mut self) -> Result<()> {
        self.sort();
        let texts = self
            .places
            .iter()
            .map(|place| Ok(Cow::Borrowed(self.at(*place))));
        let mut run = self.run(0, texts)?;
        self.bytes.clear();
        self.places.clear();
        for level in 0.. {
            if self.levels.len() == level {
                self.levels.push(Vec::new());
            }
            self.levels[level].push(run);
            if self.levels[level].len() < FAN_IN {
                break;
            }
            let runs = mem::take(&mut self.levels[level]);
            let merged = Merge::of_long(runs.iter().map(of_run), |text| text.len());
            run = self.run(level + 1, self.filter_kept(merged))?;
        }
        Ok(())
    }

    /// Writes sorted byte strings as a run: a sequence in the temporary file of level number `level`. Returns the run.
    /// Runs of the same level share a file.
    fn run<'a>(
        &self,
        level: usize,
        sorted: impl Iterator<Item = Result<Cow<'a, [u8]>>>,
    ) -> Result<ByteRun> {
        let before = self.levels.get(level).and_then(|runs| runs.first());
        let file = match before {
            Some(run) => Arc::clone(run.file()),
            None => RunFile::new(&self.memory.temp_dir),
        };
        let mut writer = ByteRun::within(0, &file);
        for text in sorted {
            writer.append_text(&text?)?;
        }
        writer.finish()
    }

    /// Returns those texts of a sorted sequence that the limits in `self.best` keep. Without limits, returns all texts.
    fn filter_kept<'a>(
        &self,
        sorted: impl Iterator<Item = Result<Cow<'a, [u8]>>>,
    ) -> impl Iterator<Item = Result<Cow<'a, [u8]>>> {
        let best = self.best;
        let mut last = Vec::new();
        let wanted = sorted.filter(move |text| match (text, best) {
            (Ok(text), Some(best)) => {
                let is_kept = last.is_empty() || best.keeps(&last, text);
                if is_kept {
                    last.clear();
                    last.extend_from_slice(&text[..best.rank.unwrap_or(best.key)]);
                }
                is_kept
            }
            _ => true,
        });
        wanted.take(self.limit)
    }

    /// Sorts the texts, and returns an iterator over those that the sorter keeps, in ascending order.
    pub(crate) fn sorted(&mut self) -> Texts<'_> {
        self.sort();
        if self.levels.is_empty() {
            return Box::new(self.in_memory());
        }
        Box::new(self.filter_kept(Merge::of_long(self.sequences(), |text| text.len())))
    }

    /// Returns the sorted sequences that together contain all texts: the texts in memory, on which
    /// [`sort`](TextSorter::sort) must have been called, and each run in a temporary file.
    ///
    /// If the sorter merges equal texts, it does so only within a sequence, so several sequences may contain the same
    /// text.
    pub(crate) fn sequences(&self) -> impl Iterator<Item = Texts<'_>> {
        let runs = self.levels.iter().flatten();
        let runs = runs.map(|run| Box::new(of_run(run)) as Texts<'_>);
        iter::once(Box::new(self.in_memory()) as Texts<'_>).chain(runs)
    }

    /// Returns an iterator over the texts in memory, in their current order.
    fn in_memory(&self) -> impl Iterator<Item = Result<Cow<'_, [u8]>>> {
        self.places.chunks(FETCHED).flat_map(|places| {
            self.prefetch(places);
            let texts = places.iter();
            texts.map(|place| Ok(Cow::Borrowed(self.at(*place))))
        })
    }

    /// Creates a sorter that keeps only the smallest of the texts whose first `prefix` bytes are equal. Every text must
    /// have at least `prefix` bytes.
    pub(crate) fn unique(memory: Memory, prefix: usize) -> TextSorter {
        TextSorter::of_best(memory, prefix, None)
    }

    /// Creates a sorter that groups texts by their first `key` bytes. Of each group, it keeps the texts whose first
    /// `rank` bytes equal those of the smallest text. `rank` must be at least `key`, and every text must have at least
    /// `rank` bytes.
    pub(crate) fn best(memory: Memory, key: usize, rank: usize) -> TextSorter {
        TextSorter::of_best(memory, key, Some(rank))
    }

    fn of_best(memory: Memory, key: usize, rank: Option<usize>) -> TextSorter {
        TextSorter {
            best: Some(KeepRule { key, rank }),
            ..TextSorter::new(memory, None)
        }
    }
}

/// An iterator over byte strings in ascending order.
pub(crate) type Texts<'a> = Box<dyn Iterator<Item = Result<Cow<'a, [u8]>>> + 'a>;

/// Returns an iterator over the byte strings of a sorted run.
fn of_run<'a>(run: &ByteRun) -> impl Iterator<Item = Result<Cow<'a, [u8]>>> + use<'_, 'a> {
    run.texts().map(|text| Ok(Cow::Owned(text?)))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(32))]

        #[test]
        fn a_small_memory_sorts_as_a_list_does(
            mut texts in proptest::collection::vec(proptest::collection::vec(0..4u8, 0..40), 0..6000),
            limit in proptest::option::of(0..3000usize),
        ) {
            let mut sorter = TextSorter::new(Memory { bytes: 0, ..Memory::default() }, limit);
            for text in &texts {
                sorter.push(text).unwrap();
            }
            prop_assert!(texts.len() <= 3000 || sorter.spilled_bytes() > 0 || limit == Some(0));
            texts.sort_unstable();
            texts.truncate(limit.unwrap_or(usize::MAX));
            let found: Vec<Vec<u8>> = sorter.sorted().map(|text| text.unwrap().into_owned()).collect();
            prop_assert_eq!(found, texts);
        }

        #[test]
        fn the_best_of_each_beginning(
            mut texts in proptest::collection::vec(proptest::collection::vec(0..9u8, 4..30), 0..6000),
            rank in proptest::option::of(2..4usize),
        ) {
            let memory = Memory { bytes: 0, ..Memory::default() };
            let mut sorter = match rank {
                Some(rank) => TextSorter::best(memory, 2, rank),
                None => TextSorter::unique(memory, 2),
            };
            for text in &texts {
                sorter.push(text).unwrap();
            }
            texts.sort_unstable();
            texts.dedup_by(|a, b| a[..2] == b[..2] && rank.is_none_or(|rank| a[..rank] != b[..rank]));
            let found: Vec<Vec<u8>> = sorter.sorted().map(|text| text.unwrap().into_owned()).collect();
            prop_assert_eq!(found, texts);
        }
    }
}
