//! Sorting texts, more than memory holds.

use std::{borrow::Cow, cmp::Ordering, hint::black_box, marker::PhantomData, mem, sync::Arc};

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

/// How texts are sorted: by a key, and first by a number made of its first bytes.
pub(crate) trait Order: 'static {
    /// How many bytes of a key go into its prefix at most.
    const PREFIX: usize;

    /// The part of a text by which it is sorted.
    fn key(text: &[u8]) -> &[u8];

    /// The first bytes of a key as a number that sorts as they do. Its lowest byte is 0 if it is of fewer bytes than
    /// [`PREFIX`](Order::PREFIX).
    fn prefix(key: &[u8]) -> u128;
}

/// By all bytes.
#[derive(Debug)]
pub(crate) struct Whole;

impl Order for Whole {
    const PREFIX: usize = size_of::<u128>();

    fn key(text: &[u8]) -> &[u8] {
        text
    }

    fn prefix(key: &[u8]) -> u128 {
        let mut first = [0; size_of::<u128>()];
        let some = key.len().min(first.len());
        first[..some].copy_from_slice(&key[..some]);
        u128::from_be_bytes(first)
    }
}

/// A text in memory, and where it is.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Place {
    /// The prefix of its key. In two parts, whose alignment makes a place smaller.
    prefix: [u64; 2],
    /// Where its length begins, and in the highest byte the number of the sorter.
    start: u64,
}

const SORTER_SHIFT: u32 = 56;

/// How many sorters may be merged.
pub(crate) const MOST_SORTERS: usize = 1 << (u64::BITS - SORTER_SHIFT);

impl Place {
    pub(crate) const NOWHERE: Place = Place {
        prefix: [0; 2],
        start: 0,
    };

    /// The same in another sorter than the first.
    pub(crate) fn in_sorter(self, number: usize) -> Place {
        Place {
            start: self.start | (number as u64) << SORTER_SHIFT,
            ..self
        }
    }

    pub(crate) fn sorter(self) -> usize {
        (self.start >> SORTER_SHIFT) as usize
    }

    /// The highest bits of the prefix.
    pub(crate) fn part(self, bits: u32) -> usize {
        (self.prefix[0] >> (u64::BITS - bits)) as usize
    }
}

/// Collects byte strings, and gives them back in their order, equal ones as often as they came. Past its memory
/// they go to sorted runs in temporary files. Where these are many, they are merged.
#[derive(Debug)]
pub(crate) struct TextSorter<O = Whole> {
    memory: Memory,
    /// How many of the first are wanted.
    limit: usize,
    /// Of texts whose first this many bytes are equal, the first alone is kept.
    unique: Option<usize>,
    /// The texts in memory, each after its length.
    bytes: Vec<u8>,
    places: Vec<Place>,
    /// Runs, those of spilled texts first, those of merged runs next, and so on. Each level has a file.
    levels: Vec<Vec<ByteRun>>,
    order: PhantomData<fn() -> O>,
}

impl<O: Order> TextSorter<O> {
    /// No texts yet; `memory` is for all that will come. Keeps the first `limit` of them, or all.
    pub(crate) fn new(memory: Memory, limit: Option<usize>) -> TextSorter<O> {
        TextSorter {
            memory,
            limit: limit.unwrap_or(usize::MAX),
            unique: None,
            bytes: Vec::new(),
            places: Vec::new(),
            levels: Vec::new(),
            order: PhantomData,
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
        let more = LENGTH + text.len() + size_of::<Place>();
        if self.taken() + more > self.memory.bytes.max(LEAST_ROOM) && !self.places.is_empty() {
            self.spill()?;
        }
        let prefix = O::prefix(O::key(text));
        self.places.push(Place {
            prefix: [(prefix >> 64) as u64, prefix as u64],
            start: self.bytes.len() as u64,
        });
        self.bytes.extend_from_slice(&length_of(text));
        self.bytes.extend_from_slice(text);
        Ok(())
    }

    /// The bytes that the texts in memory take.
    fn taken(&self) -> usize {
        self.bytes.len() + size_of::<Place>() * self.places.len()
    }

    /// The text in memory at a place, after its length.
    fn stored_at(&self, place: Place) -> &[u8] {
        let start = (place.start & ((1 << SORTER_SHIFT) - 1)) as usize;
        let bytes = &self.bytes[start..];
        let length = bytes.first_chunk().expect("a text has a length");
        &bytes[..LENGTH + u32::from_le_bytes(*length) as usize]
    }

    /// The text in memory at a place.
    pub(crate) fn at(&self, place: Place) -> &[u8] {
        &self.stored_at(place)[LENGTH..]
    }

    /// The places of the texts in memory.
    pub(crate) fn places(&self) -> &[Place] {
        &self.places
    }

    /// Takes the places of the texts in memory, which stay where they are.
    pub(crate) fn take_places(&mut self) -> Vec<Place> {
        mem::take(&mut self.places)
    }

    fn sort(&mut self) {
        let mut places = mem::take(&mut self.places);
        sort_places::<O>(&mut places, |place| self.at(place));
        if let Some(prefix) = self.unique {
            places.dedup_by_key(|place| &self.at(*place)[..prefix]);
        }
        places.truncate(self.limit);
        self.places = places;
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
            let merged = Merge::new(runs.iter().map(Text::<O>::of_run)).map(|text| Ok(text?.0));
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
        let unique = self.unique;
        let mut last: Option<Vec<u8>> = None;
        let wanted = sorted.filter(move |text| match (text, unique) {
            (Ok(text), Some(prefix)) => {
                let start = &text[..prefix];
                let is_new = last.as_deref() != Some(start);
                last.replace(start.to_vec());
                is_new
            }
            _ => true,
        });
        wanted.take(self.limit)
    }

    /// The texts that are wanted, in their order.
    pub(crate) fn sorted(&mut self) -> impl Iterator<Item = Result<Cow<'_, [u8]>>> + '_ {
        self.sort();
        let in_memory = self.places.iter().map(|place| self.at(*place));
        self.wanted(merged::<O>(in_memory, [&*self]))
    }
}

impl TextSorter {
    /// Of texts that begin with the same `prefix` bytes, keeps the first alone. No text is shorter.
    pub(crate) fn unique(memory: Memory, prefix: usize) -> TextSorter {
        TextSorter {
            unique: Some(prefix),
            ..TextSorter::new(memory, None)
        }
    }
}

/// Sorted texts from memory, and those of the runs of sorters.
pub(crate) fn merged<'a, O: Order>(
    in_memory: impl Iterator<Item = &'a [u8]> + 'a,
    sorters: impl IntoIterator<Item = &'a TextSorter<O>>,
) -> impl Iterator<Item = Result<Cow<'a, [u8]>>> + 'a {
    type Source<'a, O> = Box<dyn Iterator<Item = Result<Text<'a, O>>> + 'a>;
    let in_memory = in_memory.map(|text| Ok(Text::new(Cow::Borrowed(text))));
    let mut sequences: Vec<Source<'a, O>> = vec![Box::new(in_memory)];
    for run in sorters
        .into_iter()
        .flat_map(|sorter| sorter.levels.iter().flatten())
    {
        sequences.push(Box::new(Text::of_run(run)));
    }
    Merge::new(sequences).map(|text| Ok(text?.0))
}

/// Sorts places by the keys of their texts.
pub(crate) fn sort_places<'a, O: Order>(places: &mut [Place], at: impl Fn(Place) -> &'a [u8]) {
    places.sort_unstable_by_key(|place| place.prefix);
    let mut after = Vec::new();
    for same in places.chunk_by_mut(|a, b| a.prefix == b.prefix) {
        if same.len() > 1 {
            sort_same::<O>(same, &mut after, &at);
        }
    }
}

/// Sorts places that have the same prefix. Texts are all over memory, so each is fetched once, for the part of its key
/// after the prefix, which hardly any other has too.
fn sort_same<'a, O: Order>(
    same: &mut [Place],
    after: &mut Vec<(u128, Place)>,
    at: impl Fn(Place) -> &'a [u8],
) {
    let key = |place: &Place| O::key(at(*place));
    let is_full = same[0].prefix[1] as u8 != 0;
    if !is_full || same.len() > MOST_AFTER {
        same.sort_unstable_by(|a, b| key(a).cmp(key(b)));
        return;
    }
    wait_together(same, &at);
    after.clear();
    after.extend(
        same.iter()
            .map(|place| (O::prefix(&key(place)[O::PREFIX..]), *place)),
    );
    after.sort_unstable_by(|(a, a_place), (b, b_place)| {
        a.cmp(b).then_with(|| key(a_place).cmp(key(b_place)))
    });
    for (place, (_, sorted)) in same.iter_mut().zip(after) {
        *place = *sorted;
    }
}

/// Fetches texts into the processor's cache: in so short a loop, it waits for many at once.
pub(crate) fn wait_together<'a>(places: &[Place], at: impl Fn(Place) -> &'a [u8]) {
    let first = |place: &Place| at(*place).first().copied().unwrap_or(0);
    black_box(places.iter().fold(0, |all, place| all ^ first(place)));
}

/// A text that compares by its key.
struct Text<'a, O>(Cow<'a, [u8]>, PhantomData<O>);

impl<'a, O: Order> Text<'a, O> {
    fn new(text: Cow<'a, [u8]>) -> Text<'a, O> {
        Text(text, PhantomData)
    }

    fn of_run(run: &ByteRun) -> impl Iterator<Item = Result<Text<'a, O>>> + use<'_, 'a, O> {
        run.texts().map(|text| Ok(Text::new(Cow::Owned(text?))))
    }
}

impl<O: Order> Ord for Text<'_, O> {
    fn cmp(&self, other: &Self) -> Ordering {
        O::key(&self.0).cmp(O::key(&other.0))
    }
}

impl<O: Order> PartialOrd for Text<'_, O> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<O: Order> PartialEq for Text<'_, O> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl<O: Order> Eq for Text<'_, O> {}

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
            let mut sorter: TextSorter = TextSorter::new(Memory { bytes: 0, ..Memory::default() }, limit);
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
        fn the_first_of_each_beginning(
            mut texts in proptest::collection::vec(proptest::collection::vec(0..9u8, 4..30), 0..6000),
        ) {
            let mut sorter = TextSorter::unique(Memory { bytes: 0, ..Memory::default() }, 3);
            for text in &texts {
                sorter.push(text).unwrap();
            }
            texts.sort_unstable();
            texts.dedup_by(|a, b| a[..3] == b[..3]);
            let found: Vec<Vec<u8>> = sorter.sorted().map(|text| text.unwrap().into_owned()).collect();
            prop_assert_eq!(found, texts);
        }
    }
}
