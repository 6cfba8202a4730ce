//! The games of a list that pass filters, a part of the list at a time.

use std::ops::Range;

use rayon::prelude::*;

use super::{source::Source, source_filter::SourceFilter};
use crate::{
    error::Result,
    index::{explored::StoredPart, layout::played::List},
    position::BookMove,
};

/// Lists of more parts, some half a million games, are gone through on all cores. To wake a thread on a busy machine can
/// take longer than all parts of a shorter one.
const FEW_PARTS: usize = 32;

/// How many parts each thread takes at least.
const PARTS_AT_ONCE: usize = 16;

/// A list whose ids are this many times farther apart than adjacent ids is filtered game by game.
const SPARSE: usize = 4;

/// Some games of a list that pass.
pub(super) struct Chosen<'a> {
    /// The different moves of the part of the list.
    pub moves: &'a [BookMove],
    /// The ids, ascending, and the numbers of their moves.
    pub games: &'a [(u32, u32)],
}

/// Goes through the games of a list that pass, those that end there too. `begin` makes what `add` adds the games of
/// some parts to, and `join` puts these together.
pub(super) fn fold_chosen<T: Send>(
    source: &Source,
    filter: &SourceFilter<'_>,
    stored: &[StoredPart],
    begin: impl Fn() -> T + Sync,
    add: impl Fn(&mut T, Chosen<'_>) + Sync,
    mut join: impl FnMut(T),
) -> Result<()> {
    let parts = stored.iter().map(|part| part.list(&source.index));
    let parts = parts.collect::<Result<Vec<List<'_>>>>()?;
    let add_part = |(mut sum, mut room): (T, Room), number: usize| {
        let part = &parts[number];
        let end = parts.get(number + 1).map_or(Some(u32::MAX), List::first_id);
        let known = end.and_then(|end| room.choose(filter, part, end));
        let games = known.ok_or_else(|| source.index.malformed(&stored[number].key))?;
        if !games.is_empty() {
            let moves = &part.moves().collect::<Vec<BookMove>>();
            add(&mut sum, Chosen { moves, games });
        }
        Ok((sum, room))
    };
    let begin = || (begin(), Room::default());
    // The last part first: in many collections it has the newest games.
    if parts.len() <= FEW_PARTS {
        let (sum, _) = (0..parts.len()).rev().try_fold(begin(), add_part)?;
        join(sum);
        return Ok(());
    }
    let sums: Vec<Result<(T, Room)>> = (0..parts.len())
        .into_par_iter()
        .rev()
        .with_min_len(PARTS_AT_ONCE)
        .try_fold(begin, add_part)
        .collect();
    for sum in sums {
        join(sum?.0);
    }
    Ok(())
}

/// What is used again from one part to the next.
#[derive(Default)]
struct Room {
    /// Whether each game of a stretch passes.
    passes: Vec<bool>,
    /// Room for the games of a part.
    games: Vec<(u32, u32)>,
}

impl Room {
    /// The games of a part of a list that pass, whose ids must be less than `end`; `None` if the part is malformed or
    /// names games that there are not.
    fn choose(
        &mut self,
        filter: &SourceFilter<'_>,
        part: &List<'_>,
        end: u32,
    ) -> Option<&[(u32, u32)]> {
        let first = part.first_id()?;
        let end = filter.games().min(end as usize);
        let span = end.checked_sub(first as usize).filter(|span| *span > 0)?;
        if self.games.len() < part.len {
            self.games.resize(part.len, (0, 0));
        }
        let chosen = match span > SPARSE * part.len {
            true => self.ask_each(filter, part, end)?,
            false => self.look_up(filter, part, first as usize..end)?,
        };
        Some(&self.games[..chosen])
    }

    /// Asks each game by itself.
    fn ask_each(
        &mut self,
        filter: &SourceFilter<'_>,
        part: &List<'_>,
        end: usize,
    ) -> Option<usize> {
        let mut chosen = 0;
        let mut are_known = true;
        part.for_each(|id, number| match (id as usize) < end {
            true => {
                self.games[chosen] = (id, number as u32);
                chosen += usize::from(filter.admits(id as usize));
            }
            false => are_known = false,
        })?;
        are_known.then_some(chosen)
    }

    /// Asks all games of the stretch first, which goes from one to the next in memory, and looks up those of the list.
    fn look_up(
        &mut self,
        filter: &SourceFilter<'_>,
        part: &List<'_>,
        stretch: Range<usize>,
    ) -> Option<usize> {
        let first = stretch.start;
        let passes = match filter.asked(stretch.clone()) {
            Some(asked) => asked,
            None => {
                if !filter.mark(stretch, &mut self.passes) {
                    return Some(0);
                }
                &self.passes
            }
        };
        let games = &mut self.games[..];
        let mut chosen = 0;
        let mut are_known = true;
        // Games differ from one to the next, so the processor would guess wrongly at a branch.
        part.for_each(|id, number| match passes.get(id as usize - first) {
            Some(passes) => {
                games[chosen] = (id, number as u32);
                chosen += usize::from(*passes);
            }
            None => are_known = false,
        })?;
        are_known.then_some(chosen)
    }
}
