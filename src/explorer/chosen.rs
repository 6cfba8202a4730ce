//! The games of a list that pass filters, a part of the list at a time.

use rayon::prelude::*;

use super::{
    source::OpenIndex,
    source_filter::{SourceFilter, SourceFilters},
};
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
    filters: &SourceFilters<'_>,
    source: &OpenIndex,
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
        let chosen = known.ok_or_else(|| source.index.malformed(&stored[number].key))?;
        let games = filters.keep_first(source, &mut room.games[..chosen]);
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
    /// Puts the games of a part of a list that pass first, whose ids must be less than `end`, and returns how many there
    /// are; `None` if the part is malformed or names games that there are not.
    fn choose(&mut self, filter: &SourceFilter<'_>, part: &List<'_>, end: u32) -> Option<usize> {
        let first = part.first_id()?;
        let end = filter.games().min(end as usize);
        let span = end.checked_sub(first as usize).filter(|span| *span > 0)?;
        if self.games.len() < part.len {
            self.games.resize(part.len, (0, 0));
        }
        let (passes, games) = (&mut self.passes, &mut self.games[..]);
        if span > SPARSE * part.len {
            return choose(part, games, |id| (id < end).then(|| filter.admits(id)));
        }
        // All games of the stretch are asked first, which goes from one to the next in memory.
        let first = first as usize;
        let passes = match filter.asked(first..end) {
            Some(asked) => asked,
            None if filter.mark(first..end, passes) => passes,
            None => return Some(0),
        };
        choose(part, games, |id| passes.get(id - first).copied())
    }
}

/// Puts the games of a part that pass to the front of `games`, and returns how many they are; `None` if the part is
/// malformed, or names a game that `passes` does not know.
#[inline(always)]
fn choose(
    part: &List<'_>,
    games: &mut [(u32, u32)],
    passes: impl Fn(usize) -> Option<bool>,
) -> Option<usize> {
    let mut chosen = 0;
    let mut are_known = true;
    // Games differ from one to the next, so the processor would guess wrongly at a branch.
    part.for_each(|id, number| match passes(id as usize) {
        Some(passes) => {
            games[chosen] = (id, number as u32);
            chosen += usize::from(passes);
        }
        None => are_known = false,
    })?;
    are_known.then_some(chosen)
}
