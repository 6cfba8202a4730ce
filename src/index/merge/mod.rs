//! Merging indexes: one that is, to the byte, the index of all their games.
//!
//! The ids of the second index run on behind those of the first, and so on. All entries are read in order, joined where
//! several inputs have them, and written in order; only game records, rows and names pass through memory or temporary
//! files, because new ids and numbers change their order.

mod games;
mod lists;
mod positions;
mod stream;

use std::{
    path::{Path, PathBuf},
    sync::{Arc, atomic::AtomicBool},
};

use rayon::ThreadPoolBuilder;

use self::{
    games::{ExploredMerge, merged_records},
    lists::ListMerge,
    positions::PositionMerge,
};
use super::{
    GameRecords, Index,
    entries::Entries,
    explored::{GameEntries, PageMaker},
    games::GameWalk,
    layout::{Contents, played::Paging},
    replace::check_replaceable,
    write::{IndexSummary, IndexWriter, Wave, Waves, contents_entry, file_entries},
};
use crate::{
    error::{Error, Result},
    position::VariantChoice,
    progress::Meter,
    sort::Memory,
};

/// How many bytes of entries make a wave.
const WAVE: usize = 8 << 20;

/// Makes one index of several, which is to the byte the index that [`MakeBook`](crate::MakeBook) makes of all their
/// inputs in that order.
///
/// ```
/// use polybook::{MakeBook, index::{Index, MergeIndexes}, pgn::Input};
///
/// # let dir = tempfile::tempdir()?;
/// # let path = |name| dir.path().join(name);
/// for name in ["famous", "selfplay"] {
///     let pgn = Input::file(format!("data/{name}.pgn"));
///     MakeBook::new([pgn]).leveldb(path(name)).run()?;
/// }
/// let merged = MergeIndexes::new([path("famous"), path("selfplay")]).run(&path("both"))?;
/// assert_eq!(merged.games, 545);
/// assert_eq!(Index::open(path("both"))?.game_count(), 545);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct MergeIndexes {
    inputs: Vec<PathBuf>,
    force: bool,
    threads: usize,
    memory: Memory,
    stop: Arc<AtomicBool>,
    meter: Arc<Meter>,
}

/// What an index of several has.
#[derive(Copy, Clone, PartialEq, Eq, Default, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct MergedIndex {
    /// Games of all inputs.
    pub games: u64,
    /// Positions that a game reached.
    pub positions: u64,
    /// Pairs of a position and a game that reached it.
    pub postings: u64,
}

impl MergeIndexes {
    /// A merge of these indexes, in this order.
    pub fn new(inputs: impl IntoIterator<Item = PathBuf>) -> MergeIndexes {
        MergeIndexes {
            inputs: inputs.into_iter().collect(),
            force: false,
            threads: 0,
            memory: Memory::default(),
            stop: Arc::default(),
            meter: Arc::default(),
        }
    }

    /// Replaces an index that exists. Default: an error.
    pub fn force(mut self, force: bool) -> MergeIndexes {
        self.force = force;
        self
    }

    /// How many threads write, 0 for one per core. Default: 0.
    pub fn threads(mut self, threads: usize) -> MergeIndexes {
        self.threads = threads;
        self
    }

    /// How much memory headers of games may take before they go to temporary files. Default: 1 GiB.
    pub fn memory(mut self, memory: Memory) -> MergeIndexes {
        self.memory = memory;
        self
    }

    /// A flag that, once set, ends the merge with [`Error::Interrupted`].
    pub fn stop_flag(mut self, stop: Arc<AtomicBool>) -> MergeIndexes {
        self.stop = stop;
        self
    }

    /// How far the merge has come, for another thread to show.
    pub fn meter(&self) -> Arc<Meter> {
        Arc::clone(&self.meter)
    }

    /// Merges the indexes into `out`, which appears when it is complete.
    ///
    /// # Errors
    ///
    /// No input, one that cannot be read or was made with other options than the first, more games than an index holds,
    /// an output that cannot be written, or [`Error::Interrupted`].
    pub fn run(&self, out: &Path) -> Result<MergedIndex> {
        let inputs = self
            .inputs
            .iter()
            .map(Index::open)
            .collect::<Result<Vec<_>>>()?;
        let plan = Plan::new(&inputs, out)?;
        let writer = IndexWriter::create(out, plan.with_stats, |old| {
            check_replaceable(old, self.force)
        })?;
        let pool = ThreadPoolBuilder::new()
            .num_threads(self.threads)
            .build()
            .map_err(|err| Error::file("threads", err.to_string()))?;
        let (summary, finished) = pool.install(|| self.write(&plan, writer))?;
        finished.commit()?;
        Ok(MergedIndex {
            games: summary.games,
            positions: summary.positions,
            postings: summary.postings,
        })
    }

    fn write(
        &self,
        plan: &Plan<'_>,
        writer: IndexWriter,
    ) -> Result<(IndexSummary, crate::output::Finished)> {
        let records = merged_records(plan, &self.memory, &self.stop)?;
        let explored = plan
            .contents
            .as_ref()
            .map(|contents| ExploredMerge::new(plan, contents, &self.memory, &self.stop))
            .transpose()?;
        let merge = IndexMerge::new(plan, &records, explored.as_ref(), &self.meter)?;
        writer.write_waves(merge, plan.games, &self.stop, &self.meter)
    }
}

/// What is merged.
struct Plan<'a> {
    inputs: Vec<Part<'a>>,
    games: u64,
    variant: VariantChoice,
    with_stats: bool,
    /// What each input has for the explorer, if all have.
    contents: Option<Vec<Contents>>,
}

/// An input and the new id of its first game.
struct Part<'a> {
    index: &'a Index,
    first_id: u32,
}

impl<'a> Plan<'a> {
    fn new(indexes: &'a [Index], out: &Path) -> Result<Plan<'a>> {
        let Some(first) = indexes.first() else {
            return Err(Error::file(out, "there is nothing to merge: name indexes"));
        };
        let mut plan = Plan {
            inputs: Vec::new(),
            games: 0,
            variant: first.variant(),
            with_stats: false,
            contents: None,
        };
        let mut contents = Vec::new();
        let mut stats = None;
        for index in indexes {
            let other = |what: &str| {
                let problem = format!(
                    "{what} than {}: make one of them again",
                    first.path().display()
                );
                Error::file(index.path(), problem)
            };
            if index.variant() != plan.variant {
                return Err(other("holds games of another variant"));
            }
            let has_stats = index.has_stats()?;
            if has_stats.is_some_and(|has| stats.is_some_and(|others| has != others)) {
                return Err(other("was made with another choice of --index-stats"));
            }
            stats = stats.or(has_stats);
            contents.extend(index.contents()?);
            plan.inputs.push(Part {
                index,
                first_id: plan.games as u32,
            });
            if !contents.is_empty() && contents.len() < plan.inputs.len() {
                return Err(other("was made with another choice of --explorer"));
            }
            plan.games += index.game_count();
            if plan.games > u64::from(u32::MAX) {
                return Err(Error::file(out, "an index holds at most 4294967295 games"));
            }
        }
        plan.with_stats = stats.unwrap_or(false);
        plan.contents = (!contents.is_empty()).then_some(contents);
        Ok(plan)
    }
}

/// Makes all entries of the new index, in order.
struct IndexMerge<'a> {
    positions: PositionMerge<'a>,
    games: GameWalk<'a>,
    files: Option<Entries>,
    explored: Option<ExploredEntries<'a>>,
}

/// Makes those for the explorer.
struct ExploredEntries<'a> {
    games: GameEntries<'a>,
    lists: ListMerge<'a>,
    maker: Option<PageMaker<'a>>,
    items: u64,
    names: u32,
}

impl<'a> IndexMerge<'a> {
    fn new(
        plan: &'a Plan<'a>,
        records: &'a GameRecords,
        explored: Option<&'a ExploredMerge>,
        meter: &Meter,
    ) -> Result<IndexMerge<'a>> {
        let mut files = Vec::new();
        for part in &plan.inputs {
            files.extend(part.index.indexed_files(part.first_id)?);
        }
        let explored = explored
            .zip(plan.contents.as_ref())
            .map(|(merge, contents)| -> Result<ExploredEntries<'a>> {
                let names: u64 = contents
                    .iter()
                    .map(|contents| u64::from(contents.names))
                    .sum();
                let items: u64 = contents.iter().map(|contents| contents.items).sum();
                let items = items.saturating_sub(names) + u64::from(merge.games.name_count());
                meter.expect(items);
                Ok(ExploredEntries {
                    games: merge.games.entries(),
                    lists: ListMerge::new(plan, contents, merge)?,
                    maker: Some(PageMaker::new(Paging::for_items(items), &merge.games)),
                    items,
                    names: merge.games.name_count(),
                })
            })
            .transpose()?;
        meter.expect(plan.games);
        Ok(IndexMerge {
            positions: PositionMerge::new(plan)?,
            games: records.walk(),
            files: Some(file_entries(&files, plan.games, plan.variant)),
            explored,
        })
    }
}

impl Waves for IndexMerge<'_> {
    fn next_wave(&mut self) -> Result<Wave> {
        let mut entries = Entries::default();
        let counted = self.positions.fill(&mut entries, WAVE)?;
        if entries.len() > 0 {
            return Ok(Wave::Joined {
                entries,
                positions: counted.positions,
                postings: counted.postings,
                steps: 0,
            });
        }
        self.games.fill(&mut entries, WAVE)?;
        if entries.len() > 0 {
            return Ok(Wave::Entries(entries));
        }
        if let Some(files) = self.files.take() {
            return Ok(Wave::Entries(files));
        }
        match &mut self.explored {
            Some(explored) => explored.next_wave(),
            None => Ok(Wave::End),
        }
    }

    fn last(&self, positions: u64) -> Option<Entries> {
        let explored = self.explored.as_ref()?;
        Some(contents_entry(Contents {
            paging: Paging::for_items(explored.items),
            positions,
            items: explored.items,
            names: explored.names,
        }))
    }
}

impl ExploredEntries<'_> {
    fn next_wave(&mut self) -> Result<Wave> {
        let mut entries = Entries::default();
        self.games.fill(&mut entries, WAVE)?;
        if entries.len() > 0 {
            return Ok(Wave::Entries(entries));
        }
        let Some(maker) = &mut self.maker else {
            return Ok(Wave::End);
        };
        let mut steps = 0;
        while maker.held() < WAVE {
            let Some(items) = self.lists.add_next(maker)? else {
                let rest = self.maker.take().expect("it was there").finish()?;
                return Ok(joined(rest.entries, steps));
            };
            steps += items;
        }
        Ok(joined(maker.take_entries(), steps))
    }
}

fn joined(entries: Entries, steps: u64) -> Wave {
    Wave::Joined {
        entries,
        positions: 0,
        postings: 0,
        steps,
    }
}
