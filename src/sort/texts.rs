//! Sorting texts, more than memory holds.

use super::{
    memory::Memory,
    merge::Merge,
    run::{ByteReader, ByteRun},
};
use crate::error::Result;

/// The memory that texts may take however little there is.
const LEAST_ROOM: usize = 1 << 16;

/// Where a text stands among those in memory.
type Span = (usize, usize);

/// Collects byte strings, and gives them back in their order, equal ones as often as they came. Past its memory
/// they go to sorted runs in temporary files. Two runs of about the same size become one, so there are few.
#[derive(Debug)]
pub(crate) struct TextSorter {
    memory: Memory,
    /// How many of the first are wanted.
    limit: usize,
    /// Of texts that begin with the same so many bytes, the first alone is wanted.
    unique: Option<usize>,
    /// The texts in memory, one behind the other.
    bytes: Vec<u8>,
    spans: Vec<Span>,
    /// The largest first.
    runs: Vec<ByteRun>,
}

impl TextSorter {
    /// No texts yet; `memory` is for all that will come. Keeps the first `limit` of them, or all.
    pub(crate) fn new(memory: Memory, limit: Option<usize>) -> TextSorter {
        TextSorter {
            memory,
            limit: limit.unwrap_or(usize::MAX),
            unique: None,
            bytes: Vec::new(),
            spans: Vec::new(),
            runs: Vec::new(),
        }
    }

    /// Of texts that begin with the same `prefix` bytes, keeps the first alone. No text is shorter.
    pub(crate) fn unique(memory: Memory, prefix: usize) -> TextSorter {
        TextSorter {
            unique: Some(prefix),
            ..TextSorter::new(memory, None)
        }
    }

    /// How many bytes are in temporary files.
    pub(crate) fn spilled_bytes(&self) -> u64 {
        self.runs.iter().map(ByteRun::len).sum()
    }

    /// Adds a text.
    ///
    /// # Errors
    ///
    /// A temporary file that cannot be written or read.
    pub(crate) fn push(&mut self, text: &[u8]) -> Result<()> {
        let start = self.bytes.len();
        self.bytes.extend_from_slice(text);
        self.spans.push((start, self.bytes.len()));
        // A vector that grows takes three times its room.
        if 3 * self.taken() > self.memory.bytes.max(LEAST_ROOM) {
            self.make_room()?;
        }
        Ok(())
    }

    /// What the texts in memory take.
    fn taken(&self) -> usize {
        self.bytes.len() + size_of::<Span>() * self.spans.len()
    }

    fn sort(&mut self) {
        let bytes = &self.bytes;
        self.spans
            .sort_unstable_by(|a, b| bytes[a.0..a.1].cmp(&bytes[b.0..b.1]));
        if let Some(prefix) = self.unique {
            self.spans
                .dedup_by_key(|(start, _)| &bytes[*start..*start + prefix]);
        }
        self.spans.truncate(self.limit);
    }

    /// Drops what is not wanted; if much is left, it becomes a run.
    fn make_room(&mut self) -> Result<()> {
        let taken = self.taken();
        self.sort();
        let mut kept = Vec::new();
        for (start, end) in &mut self.spans {
            let at = kept.len();
            kept.extend_from_slice(&self.bytes[*start..*end]);
            (*start, *end) = (at, kept.len());
        }
        self.bytes = kept;
        if 2 * self.taken() > taken {
            self.spill()?;
        }
        Ok(())
    }

    fn spill(&mut self) -> Result<()> {
        let sorted = self
            .spans
            .iter()
            .map(|(start, end)| &self.bytes[*start..*end]);
        let mut newest = self.run(sorted.map(|text| Ok(text.to_vec())))?;
        self.bytes.clear();
        self.spans.clear();
        while let Some(last) = self.runs.pop_if(|last| last.len() <= newest.len()) {
            newest = self.run(self.wanted(Merge::new([&last, &newest].map(Texts::of))))?;
        }
        self.runs.push(newest);
        Ok(())
    }

    /// Writes sorted texts.
    fn run(&self, sorted: impl Iterator<Item = Result<Vec<u8>>>) -> Result<ByteRun> {
        let mut run = ByteRun::new(0, self.memory.temp_dir.clone());
        for text in sorted {
            run.append_text(&text?)?;
        }
        Ok(run)
    }

    /// Those of sorted texts that are wanted.
    fn wanted(
        &self,
        sorted: impl Iterator<Item = Result<Vec<u8>>>,
    ) -> impl Iterator<Item = Result<Vec<u8>>> {
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
    pub(crate) fn sorted(&mut self) -> impl Iterator<Item = Result<Vec<u8>>> + '_ {
        self.sort();
        let in_memory = self
            .spans
            .iter()
            .map(|(start, end)| &self.bytes[*start..*end]);
        let in_memory = in_memory.map(|text| Ok(text.to_vec()));
        let mut sequences: Vec<Box<dyn Iterator<Item = Result<Vec<u8>>> + '_>> =
            vec![Box::new(in_memory)];
        for run in &self.runs {
            sequences.push(Box::new(Texts::of(run)));
        }
        self.wanted(Merge::new(sequences))
    }
}

/// The texts of a run.
struct Texts<'a>(ByteReader<'a>);

impl<'a> Texts<'a> {
    fn of(run: &'a ByteRun) -> Texts<'a> {
        Texts(run.reader(0))
    }
}

impl Iterator for Texts<'_> {
    type Item = Result<Vec<u8>>;

    fn next(&mut self) -> Option<Result<Vec<u8>>> {
        self.0.read_text().transpose()
    }
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
            let is_large = texts.len() > 3000 && limit.is_none();
            prop_assert!(!is_large || !sorter.runs.is_empty());
            texts.sort_unstable();
            texts.truncate(limit.unwrap_or(usize::MAX));
            let found: Vec<Vec<u8>> = sorter.sorted().map(Result::unwrap).collect();
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
            let found: Vec<Vec<u8>> = sorter.sorted().map(Result::unwrap).collect();
            prop_assert_eq!(found, texts);
        }
    }
}
