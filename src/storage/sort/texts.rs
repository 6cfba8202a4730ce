//! Sorts byte strings whose total size may exceed the available memory.

use std::{borrow::Cow, hint::black_box, iter, mem, sync::Arc};

use super::{
    Memory,
    run::{ByteRun, Merge, RunFile, length_of},
};
use crate::error::Result;

/// The number of bytes of memory that a sorter of byte strings may always use, even if its memory budget is smaller.
const MIN_BYTES: usize = if cfg!(test) { 1 << 12 } else { 1 << 18 };

/// The number of sorted runs (sequences of byte strings in temporary files) that one merge combines. Runs are grouped
/// into levels. When a level contains this many runs, they are merged into one run of the next level.
const FAN_IN: usize = if cfg!(test) { 4 } else { 128 };

/// The size in bytes of the length prefix that is stored before each byte string.
const LENGTH_SIZE: usize = 4;

/// The maximum number of byte strings with the same first 16 bytes for which the sorter copies the next 16 bytes, in
/// order to compare the strings faster. The limit bounds the memory for these copies.
const MAX_COPIED: usize = 1 << 16;

/// The number of consecutive byte strings that are loaded into the processor's cache together, shortly before they are
/// read.
const TEXTS_PER_PREFETCH: usize = 32;

/// The number of bytes at the start of a byte string that its [`TextRef`] contains. Most comparisons need only these
/// bytes.
const PREFIX_SIZE: usize = size_of::<[u64; 2]>();

/// The number of bytes at the start of a byte string that the first element of [`TextRef::prefix`] contains.
const KEY_SIZE: usize = size_of::<u64>();

/// A reference to a byte string in memory. It contains the location of the string, and its first bytes for fast
/// comparisons.
#[derive(Copy, Clone, Debug)]
struct TextRef {
    /// The first bytes of the string, as [`prefix`] returns them. Two `u64` are used instead of a `u128`, whose
    /// alignment would make the struct larger.
    prefix: [u64; 2],
    /// The offset of the text's length prefix in [`TextSorter::bytes`].
    start: usize,
}

/// Returns the first 16 bytes of a byte string as two big-endian integers, which compare like the bytes. A shorter
/// string is padded with zeros.
fn prefix(text: &[u8]) -> [u64; 2] {
    let mut first = [[0; 8]; 2];
    let some = text.len().min(PREFIX_SIZE);
    first.as_flattened_mut()[..some].copy_from_slice(&text[..some]);
    first.map(u64::from_be_bytes)
}

/// A rule that decides which byte strings of a sorted sequence a [`TextSorter`] keeps. Strings with the same first
/// `key` bytes form a group. If `rank` is `None`, only the first string of each group is kept. Otherwise, a string is
/// kept if its first `rank` bytes equal those of the first string of its group.
#[derive(Copy, Clone, Debug)]
struct KeepRule {
    key: usize,
    rank: Option<usize>,
}

impl KeepRule {
    /// Returns `true` if a sorter with this rule keeps the byte string `text`. The caller must pass strings in
    /// ascending order. `last` is the most recent string that was kept.
    fn keeps(self, last: &[u8], text: &[u8]) -> bool {
        let is_equal = |bytes: usize| last[..bytes] == text[..bytes];
        !is_equal(self.key) || self.rank.is_some_and(is_equal)
    }
}

/// A sorter of byte strings (texts). It keeps duplicates unless it was created by [`unique`](TextSorter::unique).
///
/// When the strings exceed the memory budget, they are moved to a temporary file as a sorted run. When there are many
/// runs, they are merged.
#[derive(Debug)]
pub(crate) struct TextSorter {
    memory: Memory,
    /// The maximum number of byte strings to keep, counted from the smallest one. `usize::MAX` means no limit.
    limit: usize,
    /// The rule that decides which byte strings are kept, or `None` to keep all.
    best: Option<KeepRule>,
    /// The byte strings in memory, each preceded by its length.
    bytes: Vec<u8>,
    refs: Vec<TextRef>,
    /// The sorted runs by level. Level 0 contains the runs that were written from memory. Each run of a higher level
    /// was merged from [`FAN_IN`] runs of the level below. All runs of a level share a file.
    levels: Vec<Vec<ByteRun>>,
}

impl TextSorter {
    /// Creates an empty sorter of byte strings with the memory budget `memory`. If `limit` is `Some(n)`, the sorter
    /// keeps only the `n` smallest strings. Otherwise, it keeps all strings.
    pub(crate) fn new(memory: Memory, limit: Option<usize>) -> TextSorter {
        TextSorter {
            memory,
            limit: limit.unwrap_or(usize::MAX),
            best: None,
            bytes: Vec::new(),
            refs: Vec::new(),
            levels: Vec::new(),
        }
    }

    /// Returns the total number of bytes of the strings in temporary files. This includes length prefixes, but no
    /// checksums.
    pub(crate) fn spilled_bytes(&self) -> u64 {
        self.levels.iter().flatten().map(ByteRun::len).sum()
    }

    /// Returns the total number of bytes of the strings in memory and in temporary files, including a length prefix for
    /// each string.
    pub(crate) fn size(&self) -> u64 {
        self.bytes.len() as u64 + self.spilled_bytes()
    }

    /// Adds a byte string to the sorter.
    ///
    /// # Errors
    ///
    /// Returns an error if a temporary file cannot be written or read.
    pub(crate) fn push(&mut self, text: &[u8]) -> Result<()> {
        let more = LENGTH_SIZE + text.len() + size_of::<TextRef>();
        if self.bytes_in_memory() + more > self.memory.bytes.max(MIN_BYTES) && !self.refs.is_empty()
        {
            self.spill()?;
        }
        self.refs.push(TextRef {
            prefix: prefix(text),
            start: self.bytes.len(),
        });
        self.bytes.extend_from_slice(&length_of(text));
        self.bytes.extend_from_slice(text);
        Ok(())
    }

    /// Returns the number of bytes of memory for the strings in memory, including the [`TextRef`] of each string.
    fn bytes_in_memory(&self) -> usize {
        self.bytes.len() + size_of::<TextRef>() * self.refs.len()
    }

    /// Returns the byte string in memory to which `text` refers.
    fn at(&self, text: TextRef) -> &[u8] {
        let bytes = &self.bytes[text.start..];
        let (length, text) = bytes.split_first_chunk().expect("a text has a length");
        &text[..u32::from_le_bytes(*length) as usize]
    }

    /// Sorts the byte strings in memory, and removes those that the sorter need not keep: strings that its [`KeepRule`]
    /// rejects, and strings beyond its limit. Strings in temporary files do not change.
    pub(crate) fn sort(&mut self) {
        let mut refs = mem::take(&mut self.refs);
        refs.sort_unstable_by_key(|text| text.prefix);
        let mut after = Vec::new();
        for same in refs.chunk_by_mut(|a, b| a.prefix == b.prefix) {
            if same.len() > 1 {
                self.sort_equal_prefixes(same, &mut after);
            }
        }
        if let Some(best) = self.best {
            refs.dedup_by(|text, last| {
                // Comparing prefixes first avoids reading the text, which is not in the processor's cache.
                if best.key >= KEY_SIZE && text.prefix[0] != last.prefix[0] {
                    return false;
                }
                let is_same = best.key == KEY_SIZE && best.rank.is_none();
                is_same || !best.keeps(self.at(*last), self.at(*text))
            });
        }
        refs.truncate(self.limit);
        self.refs = refs;
    }

    /// Sorts byte strings whose first 16 bytes are equal. The strings are scattered over memory, so comparing whole
    /// strings is slow.
    ///
    /// The function first copies the second 16 bytes of each string to `after`, and compares the copies. It compares
    /// whole strings only if these bytes are equal too. `after` is a buffer that is reused between calls.
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
                .map(|text| (prefix(&self.at(*text)[PREFIX_SIZE..]), *text)),
        );
        after.sort_unstable_by(|(a, a_place), (b, b_place)| {
            a.cmp(b)
                .then_with(|| self.at(*a_place).cmp(self.at(*b_place)))
        });
        for (text, (_, sorted)) in same.iter_mut().zip(after) {
            *text = *sorted;
        }
    }

    /// Loads the byte strings to which `refs` refer into the processor's cache. The loop body is short, so the
    /// processor can load many strings in parallel.
    fn prefetch(&self, refs: &[TextRef]) {
        let first = |text: &TextRef| self.at(*text).first().copied().unwrap_or(0);
        black_box(refs.iter().fold(0, |all, text| all ^ first(text)));
    }

    /// Sorts the byte strings in memory and moves them to a temporary file as a sorted run of level 0. If a level then
    /// contains [`FAN_IN`] runs, merges these into one run of the next level, and repeats this for that level.
    fn spill(&mut self) -> Result<()> {
        self.sort();
        let texts = self
            .refs
            .iter()
            .map(|text| Ok(Cow::Borrowed(self.at(*text))));
        let mut run = self.run(0, texts)?;
        self.bytes.clear();
        self.refs.clear();
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

    /// Writes the byte strings `sorted` as a run to the temporary file of `level`, and returns the run. All runs of a
    /// level share a file.
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

    /// Returns an iterator over the byte strings in `sorted` that the sorter keeps. Skips strings that the sorter's
    /// [`KeepRule`] rejects and strings beyond its limit. `sorted` must yield the strings in ascending order.
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

    /// Sorts the byte strings, and returns an iterator over them in ascending order. Skips strings that the sorter's
    /// [`KeepRule`] rejects and strings beyond its limit.
    pub(crate) fn sorted(&mut self) -> Texts<'_> {
        self.sort();
        if self.levels.is_empty() {
            return Box::new(self.in_memory());
        }
        Box::new(self.filter_kept(Merge::of_long(self.sequences(), |text| text.len())))
    }

    /// Returns several sorted sequences that together contain all byte strings: the strings in memory, and each run in
    /// a temporary file. The caller must have called [`sort`](TextSorter::sort) after it added the last string.
    ///
    /// Duplicates, and other strings that the sorter need not keep, are removed from each sequence separately. Several
    /// sequences may therefore contain the same string, even if the sorter keeps no duplicates.
    pub(crate) fn sequences(&self) -> impl Iterator<Item = Texts<'_>> {
        let runs = self.levels.iter().flatten();
        let runs = runs.map(|run| Box::new(of_run(run)) as Texts<'_>);
        iter::once(Box::new(self.in_memory()) as Texts<'_>).chain(runs)
    }

    /// Returns an iterator over the byte strings in memory, in their current order.
    fn in_memory(&self) -> impl Iterator<Item = Result<Cow<'_, [u8]>>> {
        self.refs.chunks(TEXTS_PER_PREFETCH).flat_map(|refs| {
            self.prefetch(refs);
            let texts = refs.iter();
            texts.map(|text| Ok(Cow::Borrowed(self.at(*text))))
        })
    }

    /// Creates a sorter that groups byte strings by their first `prefix` bytes, and keeps only the smallest string of
    /// each group. Every string must have at least `prefix` bytes.
    pub(crate) fn unique(memory: Memory, prefix: usize) -> TextSorter {
        TextSorter::of_best(memory, prefix, None)
    }

    /// Creates a sorter that groups byte strings by their first `key` bytes, and keeps only the best strings of each
    /// group. A string is among the best if its first `rank` bytes equal those of the smallest string of its group.
    /// `rank` must be at least `key`, and every string must have at least `rank` bytes.
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

/// Returns an iterator over the byte strings of a sorted run, in ascending order.
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
                prop_assert!(sorter.bytes_in_memory() <= MIN_BYTES);
            }
            let size: usize = texts.iter().map(|text| LENGTH_SIZE + text.len()).sum();
            prop_assert!(sorter.size() == size as u64 || limit.is_some());
            prop_assert!(texts.len() <= 3000 || sorter.spilled_bytes() > 0 || limit == Some(0));
            texts.sort_unstable();
            texts.truncate(limit.unwrap_or(usize::MAX));
            let found: Vec<Vec<u8>> = sorter.sorted().map(|text| text.unwrap().into_owned()).collect();
            prop_assert_eq!(found, texts);
        }

        #[test]
        fn the_best_of_each_beginning(
            texts in proptest::collection::vec(proptest::collection::vec(0..3u8, 11..30), 0..6000),
            key in prop_oneof![Just(2), Just(KEY_SIZE), Just(10)],
            longer in proptest::option::of(0..2usize),
        ) {
            let rank = longer.map(|longer| key + longer);
            let mut expected = texts.clone();
            expected.sort_unstable();
            expected.dedup_by(|a, b| a[..key] == b[..key] && rank.is_none_or(|rank| a[..rank] != b[..rank]));
            for bytes in [0, 1 << 20] {
                let memory = Memory::default().with_bytes(bytes);
                let mut sorter = match rank {
                    Some(rank) => TextSorter::best(memory, key, rank),
                    None => TextSorter::unique(memory, key),
                };
                for text in &texts {
                    sorter.push(text).unwrap();
                }
                let found: Vec<Vec<u8>> = sorter.sorted().map(|text| text.unwrap().into_owned()).collect();
                prop_assert_eq!(&found, &expected);
            }
        }
    }

    /// Beginnings of more than 16 bytes are compared in two steps, and those of more than 32 bytes in three.
    #[test]
    fn texts_with_long_equal_beginnings_are_sorted() {
        let mut random = fastrand::Rng::with_seed(5);
        let texts: Vec<Vec<u8>> = (0..400)
            .map(|_| {
                let mut text =
                    vec![b'a'; *random.choice(&[7, 8, 15, 16, 17, 31, 32, 33, 48]).unwrap()];
                text.extend((0..random.usize(..4)).map(|_| random.choice(b"\0ab").unwrap()));
                text
            })
            .collect();
        let mut sorted = texts.clone();
        sorted.sort_unstable();
        for (bytes, limit) in [
            (0, None),
            (0, Some(100)),
            (1 << 20, None),
            (1 << 20, Some(100)),
        ] {
            let mut sorter = TextSorter::new(Memory::default().with_bytes(bytes), limit);
            for (number, text) in texts.iter().enumerate() {
                sorter.push(text).unwrap();
                assert!(number > 9 || sorter.spilled_bytes() == 0);
            }
            assert_eq!(sorter.spilled_bytes() > 0, bytes == 0);
            assert!(sorter.levels.iter().all(|runs| runs.len() < FAN_IN));
            let size: usize = texts.iter().map(|text| LENGTH_SIZE + text.len()).sum();
            assert!(sorter.size() == size as u64 || limit.is_some());
            let found: Vec<Vec<u8>> = sorter
                .sorted()
                .map(|text| text.unwrap().into_owned())
                .collect();
            assert_eq!(found, sorted[..limit.unwrap_or(sorted.len())]);
        }
    }
}
