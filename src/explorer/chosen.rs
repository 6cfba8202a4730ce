//! Applies filters to the list of a position's games. A long list is stored in several parts; each part is filtered
//! separately.

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

/// The largest number of parts of a list that is filtered on one thread. 32 parts have about half a million games; on a busy
/// machine, waking another thread can take longer than filtering them.
const FEW_PARTS: usize = 32;

/// The smallest number of parts that a thread filters.
const PARTS_AT_ONCE: usize = 16;

/// A part whose ids span more than this many times its length is filtered game by game instead of column by column.
const SPARSE: usize = 4;

/// The games of one part of a list that pass the filters.
pub(super) struct Chosen<'a> {
    /// The distinct moves that were played in the position in the games of this part.
    pub moves: &'a [BookMove],
    /// The ids of the games, ascending, each with the index of its move in `moves`.
    pub games: &'a [(u32, u32)],
}

/// Folds the games of a list that pass the filters, including the games that end in the position.
///
/// `begin` creates an empty accumulator, `add` adds the passing games of one part to an accumulator, and `join` receives
/// each finished accumulator. Long lists are folded on several threads, each with its own accumulator.
///
/// # Errors
///
/// Returns an error if a part is malformed or names an unknown game.
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
    // Starts with the last part, because in many collections it contains the newest games.
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

/// Buffers that are reused for every part.
#[derive(Default)]
struct Room {
    /// For each game in a range of ids, whether it passes.
    passes: Vec<bool>,
    /// The games of a part; the passing games are at the front.
    games: Vec<(u32, u32)>,
}

impl Room {
    /// Moves the passing games of a part to the front of `games`, and returns their number. Returns `None` if the part is
    /// malformed, names an unknown game, or has an id of `end` or more.
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
        // Filters all games of the range column by column, which reads memory sequentially.
        let first = first as usize;
        let passes = match filter.asked(first..end) {
            Some(asked) => asked,
            None if filter.mark(first..end, passes) => passes,
            None => return Some(0),
        };
        choose(part, games, |id| passes.get(id - first).copied())
    }
}

/// Moves the games of a part for which `passes` returns `Some(true)` to the front of `games`, and returns their number.
/// Returns `None` if the part is malformed or `passes` returns `None` for a game.
#[inline(always)]
fn choose(
    part: &List<'_>,
    games: &mut [(u32, u32)],
    passes: impl Fn(usize) -> Option<bool>,
) -> Option<usize> {
    let mut chosen = 0;
    let mut are_known = true;
    // Branchless: whether a game passes is unpredictable, so a branch would be mispredicted often.
    part.for_each(|id, number| match passes(id as usize) {
        Some(passes) => {
            games[chosen] = (id, number as u32);
            chosen += usize::from(passes);
        }
        None => are_known = false,
    })?;
    are_known.then_some(chosen)
}
