//! The entries of the merged index, in order.

use super::{games::ExploredMerge, lists::ListMerge, plan::Plan, positions::PositionMerge};
use crate::{
    error::Result,
    index::{
        GameRecords,
        entries::Entries,
        explored::GameEntries,
        games::GameWalk,
        waves::{ExploredWaves, LastWaves, Wave, Waves, file_entries},
    },
    progress::Meter,
};

/// How many bytes of entries make a wave. Two waves are held, one that is made and one that is written.
const WAVE: usize = 4 << 20;

/// Room for a wave, and for the entry that completes it.
fn room() -> Entries {
    Entries::with_room(WAVE / 64, WAVE + (64 << 10))
}

/// Makes all entries of the new index, in order.
pub(super) struct IndexMerge<'a> {
    positions: PositionMerge<'a>,
    games: GameWalk<'a>,
    last: LastWaves<ExploredEntries<'a>>,
}

/// Makes those for the explorer.
struct ExploredEntries<'a> {
    games: GameEntries<'a>,
    lists: ListMerge<'a>,
    items: u64,
    names: u32,
}

impl<'a> IndexMerge<'a> {
    pub(super) fn new(
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
                let lists = ListMerge::new(plan, contents, merge, items)?;
                meter.add_total(lists.bytes_left());
                Ok(ExploredEntries {
                    games: merge.games.entries(),
                    lists,
                    items,
                    names: merge.games.name_count(),
                })
            })
            .transpose()?;
        let positions = PositionMerge::new(plan)?;
        meter.add_total(positions.bytes_left());
        meter.add_total(plan.games);
        Ok(IndexMerge {
            positions,
            games: records.walk(),
            last: LastWaves {
                files: Some(file_entries(&files, plan.games, plan.variant)),
                explored,
            },
        })
    }
}

impl Waves for IndexMerge<'_> {
    fn next_wave(&mut self) -> Result<Wave> {
        if let Some(wave) = self.positions.next_wave()? {
            return Ok(wave);
        }
        let mut entries = room();
        self.games.fill(&mut entries, WAVE)?;
        if entries.len() > 0 {
            return Ok(Wave::Entries(entries));
        }
        self.last.next_wave()
    }

    fn last(&self, positions: u64) -> Option<Entries> {
        self.last.last(positions)
    }
}

impl ExploredWaves for ExploredEntries<'_> {
    fn next_wave(&mut self) -> Result<Wave> {
        let mut entries = room();
        self.games.fill(&mut entries, WAVE)?;
        if entries.len() > 0 {
            return Ok(Wave::Entries(entries));
        }
        Ok(self.lists.next_wave()?.unwrap_or(Wave::End))
    }

    fn items(&self) -> u64 {
        self.items
    }

    fn names(&self) -> u32 {
        self.names
    }
}
