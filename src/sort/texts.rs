//! Sorting texts, more than memory holds.

use std::{borrow::Cow, hint::black_box, iter, mem, sync::Arc};

use super::{
    Memory,
    merge::Merge,
    run::{ByteRun, RunFile, length_of},
};
use crate::error::Result;

/// The memory that texts may take however little there is.
const LEAST_ROOM: usize = if cfg!(test) { 1 << 12 } else { 1 << 18 };

/// How many runs become one. As many are read at once.
const FAN_IN: usize = if cfg!(test) { 4 } else { 128 };

/// Bytes of the length before a text.
const LENGTH: usize = 4;

/// The most texts whose keys after the same prefix are in memory at once.
const MOST_AFTER: usize = 1 << 16;

/// Texts that are fetched from memory at once.
const FETCHED: usize = 32;

/// Bytes of a text that are compared first.
const PREFIX: usize = size_of::<[u64; 2]>();

/// Bytes of the first part of a [`TextPlace::prefix`].
const KEY: usize = size_of::<u64>();

/// A text in memory.
#[derive(Copy, Clone, Debug)]
struct TextPlace {
    /// Its first bytes as a number. In two parts, whose alignment makes a place smaller.
    prefix: [u64; 2],
    /// Where its length begins.
    start: usize,
}

/// The first bytes of a text as a number that sorts as they do. Its lowest byte is 0 if the text has fewer bytes.
fn prefix(text: &[u8]) -> [u64; 2] {
    let mut first = [[0; 8]; 2];
    let some = text.len().min(PREFIX);
    first.as_flattened_mut()[..some].copy_from_slice(&text[..some]);
    first.map(u64::from_be_bytes)
}

/// Of texts whose first `key` bytes are equal, the first is kept, and those whose first `rank` bytes are equal to its own.
#[derive(Copy, Clone, Debug)]
struct Best {
    key: usize,
    rank: Option<usize>,
}

impl Best {
    /// Whether a text is kept after another one, which is.
    fn keeps(self, last: &[u8], text: &[u8]) -> bool {
        let is_equal = |bytes: usize| last[..bytes] == text[..bytes];
        !is_equal(self.key) || self.rank.is_some_and(is_equal)
    }
}

/// Collects byte strings, and gives them back in their order, equal ones as often as they came. Past its memory
/// they go to sorted runs in temporary files. Where these are many, they are merged.
#[derive(Debug)]
pub(crate) struct TextSorter {
    memory: Memory,
    /// How many of the first are wanted.
    limit: usize,
    /// Which texts are kept besides the first of each key, if not all.
    best: Option<Best>,
    /// The texts in memory, each after its length.
    bytes: Vec<u8>,
    places: Vec<TextPlace>,
    /// Runs, those of spilled texts first, those of merged runs next, and so on. Each level has a file.
    levels: Vec<Vec<ByteRun>>,
}

impl TextSorter {
    /// No texts yet; `memory` is for all that will come. Keeps the first `limit` of them, or all.
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

    /// How many bytes are in temporary files.
    pub(crate) fn spilled_bytes(&self) -> u64 {
        self.levels.iter().flatten().map(ByteRun::len).sum()
    }

    /// How many bytes the texts have, in memory and in files.
    pub(crate) fn size(&self) -> u64 {
        self.bytes.len() as u64 + self.spilled_bytes()
    }

    /// Adds a text.
    ///
    /// # Errors
    ///
    /// A temporary file that cannot be written or read.
    pub(crate) fn push(&mut self, text: &[u8]) -> Result<()> {
        let more = LENGTH + text.len() + size_of::<TextPlace>();
        if self.taken() + more > self.memory.bytes.max(LEAST_ROOM) && !self.places.is_empty() {
            self.spill()?;
        }
        self.places.push(TextPlace {
            prefix: prefix(text),
            start: self.bytes.len(),
        });
        self.bytes.extend_from_slice(&length_of(text));
        self.bytes.extend_from_slice(text);
        Ok(())
    }

    /// The bytes that the texts in memory take.
    fn taken(&self) -> usize {
        self.bytes.len() + size_of::<TextPlace>() * self.places.len()
    }

    /// The text in memory at a place.
    fn at(&self, place: TextPlace) -> &[u8] {
        let bytes = &self.bytes[place.start..];
        let (length, text) = bytes.split_first_chunk().expect("a text has a length");
        &text[..u32::from_le_bytes(*length) as usize]
    }

    /// Sorts the texts in memory.
    pub(crate) fn sort(&mut self) {
        let mut places = mem::take(&mut self.places);
        places.sort_unstable_by_key(|place| place.prefix);
        let mut after = Vec::new();
        for same in places.chunk_by_mut(|a, b| a.prefix == b.prefix) {
            if same.len() > 1 {
                self.sort_same(same, &mut after);
            }
        }
        if let Some(best) = self.best {
            places.dedup_by(|place, last| {
                // The text itself is not in the processor's cache.
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

    /// Sorts places that have the same prefix. Texts are all over memory, so each is fetched once, for the bytes after
    /// the prefix, which hardly any other has too.
    fn sort_same(&self, same: &mut [TextPlace], after: &mut Vec<([u64; 2], TextPlace)>) {
        let is_full = same[0].prefix[1] as u8 != 0;
        if !is_full || same.len() > MOST_AFTER {
            same.sort_unstable_by(|a, b| self.at(*a).cmp(self.at(*b)));
            return;
        }
        self.wait_together(same);
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

    /// Fetches texts into the processor's cache: in so short a loop, it waits for many at once.
    fn wait_together(&self, places: &[TextPlace]) {
        let first = |place: &TextPlace| self.at(*place).first().copied().unwrap_or(0);
        black_box(places.iter().fold(0, |all, place| all ^ first(place)));
    }

    /// Moves the texts that are wanted to a run.
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
            run = self.run(level + 1, self.wanted(merged))?;
        }
        Ok(())
    }

    /// Writes sorted texts to the file of a level.
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

    /// Those of sorted texts that are wanted.
    fn wanted<'a>(
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

    /// The texts that are wanted, in their order.
    pub(crate) fn sorted(&mut self) -> Texts<'_> {
        self.sort();
        if self.levels.is_empty() {
            return Box::new(self.in_memory());
        }
        Box::new(self.wanted(Merge::of_long(self.sequences(), |text| text.len())))
    }

    /// Sequences in order, one of the texts in memory, which were [sorted](TextSorter::sort), and the others of files.
    pub(crate) fn sequences(&self) -> impl Iterator<Item = Texts<'_>> {
        let runs = self.levels.iter().flatten();
        let runs = runs.map(|run| Box::new(of_run(run)) as Texts<'_>);
        iter::once(Box::new(self.in_memory()) as Texts<'_>).chain(runs)
    }

    /// The texts in memory.
    fn in_memory(&self) -> impl Iterator<Item = Result<Cow<'_, [u8]>>> {
        self.places.chunks(FETCHED).flat_map(|places| {
            self.wait_together(places);
            let texts = places.iter();
            texts.map(|place| Ok(Cow::Borrowed(self.at(*place))))
        })
    }

    /// Of texts that begin with the same `prefix` bytes, keeps the first alone. No text is shorter.
    pub(crate) fn unique(memory: Memory, prefix: usize) -> TextSorter {
        TextSorter::of_best(memory, prefix, None)
    }

    /// Of texts that begin with the same `key` bytes, keeps those that begin with the same `rank` bytes as the first. No
    /// text is shorter.
    pub(crate) fn best(memory: Memory, key: usize, rank: usize) -> TextSorter {
        TextSorter::of_best(memory, key, Some(rank))
    }

    fn of_best(memory: Memory, key: usize, rank: Option<usize>) -> TextSorter {
        TextSorter {
            best: Some(Best { key, rank }),
            ..TextSorter::new(memory, None)
        }
    }
}

/// A sequence of texts.
pub(crate) type Texts<'a> = Box<dyn Iterator<Item = Result<Cow<'a, [u8]>>> + 'a>;

/// The texts of a run.
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
