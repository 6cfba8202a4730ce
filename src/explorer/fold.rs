//! One pass over the results of a position, whatever they are stored as: rows of counts, results by period, or a list
//! of games.
//!
//! [`fold`] passes everything that the filters admit to a [`Collector`]. Each answer about a position has a collector.

use rayon::prelude::*;

use super::{
    class_filter::Split,
    filter::{SourceFilter, SourceFilters},
    games::GameSummary,
    source::OpenIndex,
};
use crate::{
    error::Result,
    index::{
        store::{
            LISTS, ListKey,
            lists::List,
            results::{Period, ResultRow},
        },
        store::{ListPlace, StoredPart},
    },
    position::BookMove,
};

/// The greatest number of parts of a list of games that are filtered on the calling thread alone. A list of this length
/// has about half a million games. On a busy machine, it can take longer to wake another thread than to filter these
/// games.
const FEW_PARTS: usize = 32;

/// The least number of parts that a thread filters at a time. The parts belong to the list of games of a position.
const PARTS_AT_ONCE: usize = 16;

/// The ratio that decides how a part of a list is filtered. If the range of its ids is more than this many times its
/// length, filters are applied game by game, and not to whole columns.
const SPARSE: usize = 4;

/// The kinds of rows that a [`Collector`] accepts in place of single games. A row is the stored results of one move.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) enum AcceptedRows {
    /// No rows, because the answer is about single games. Sources of counts are skipped.
    None,
    /// Rows of sources of counts, which have nothing else, for periods that are at most as long as the split allows.
    OfCounts(Split),
    /// Rows of all sources, for periods that are at most as long as the split allows.
    All(Split),
}

/// A collector of the results of a position. [`fold`] passes it all games, and stored results of several games, that
/// pass the filters of a query.
pub(super) trait Collector: Send {
    /// Returns which rows (stored results of one move) the collector accepts in place of single games. All collectors
    /// of one fold must return the same value. Default: none.
    fn accepted_rows(&self) -> AcceptedRows {
        AcceptedRows::None
    }

    /// Adds the stored results of one move, or of the games that end in the position. This function is called only for
    /// rows that the collector accepts.
    fn add_row(&mut self, _source: &OpenIndex, _period: Period, _row: &ResultRow) {}

    /// Adds a game that may be one of the highest-rated or the newest games of the position. This function is called
    /// for every game of which that is possible. The result of the game is already part of a row.
    fn add_candidate(&mut self, _source: &OpenIndex, _id: u32, _mv: BookMove) {}

    /// Adds the games of one part of a position's list of games. `games` contains only games that pass the filters.
    fn add_games(
        &mut self,
        source: &OpenIndex,
        filter: &SourceFilter<'_>,
        games: &PassingGames<'_>,
    );

    /// Records that an index of counts (results of moves without games) does not contain the position at all. Default:
    /// does nothing.
    fn lack(&mut self, _source: &OpenIndex) {}

    /// Adds the results of another collector, which ran on another thread.
    fn join(&mut self, other: Self);
}

/// The games of one part of a position's list that pass the filters, including games that end in the position.
pub(super) struct PassingGames<'a> {
    /// The distinct moves that were played in the position in the games of this part.
    pub moves: &'a [BookMove],
    /// The ids of the games, ascending, each with the index of its move in `moves`.
    pub games: &'a [(u32, u32)],
}

impl PassingGames<'_> {
    /// Returns the number of games in the part that pass the filters.
    pub(super) fn len(&self) -> u64 {
        self.games.len() as u64
    }

    /// Returns an iterator over the id of each game and the move that it played in the position. If a game ends in the
    /// position, its move is [`BookMove::NONE`].
    pub(super) fn iter(&self) -> impl DoubleEndedIterator<Item = (u32, BookMove)> {
        let games = self.games.iter();
        games.map(|(id, number)| (*id, self.moves[*number as usize]))
    }

    /// Returns an iterator over the id and the data of each game that continues from the position. `source` is the
    /// index that contains the games.
    pub(super) fn continuing(
        &self,
        source: &OpenIndex,
    ) -> impl Iterator<Item = (u32, GameSummary)> {
        let games = self.iter().filter(|(_, mv)| *mv != BookMove::NONE);
        games.map(|(id, _)| (id, source.game(id)))
    }
}

/// Passes all games and stored results of a position that pass the filters to collectors. Returns one collector with
/// all results.
///
/// `subjects` are the keys under which the position may be stored. An index of games uses only the first one, an index
/// of counts all of them. `new` creates an empty collector. A long list is processed on several threads, each with its
/// own collector.
///
/// # Errors
///
/// Returns an error if an index is damaged.
pub(super) fn fold<C: Collector>(
    filters: &SourceFilters<'_>,
    subjects: &[ListKey],
    new: impl Fn() -> C + Sync,
) -> Result<C> {
    let mut all = new();
    let accepted = all.accepted_rows();
    for (source, filter) in &filters.of_sources {
        if source.counted.is_some() {
            if let Some(classes) = &filters.class_filter
                && let AcceptedRows::OfCounts(split) | AcceptedRows::All(split) = accepted
            {
                classes.fold_counts(source, subjects, split, &mut all)?;
            }
            continue;
        }
        let subject = subjects[0];
        match (source.place(subject)?, &filters.class_filter, accepted) {
            (ListPlace::Chunks(list), Some(classes), AcceptedRows::All(split))
                if list.has_periods =>
            {
                classes.fold_periods(source, LISTS, subject, list.items, split, &mut all)?;
            }
            (place, ..) => {
                let stored = source.list(subject, place)?;
                fold_list(filters, source, filter, &stored, &new, &mut all)?;
            }
        }
    }
    Ok(all)
}

/// Adds those games of a list that pass the filters to the collector `all`. `stored` are the parts of the list, read
/// from `source`. `filter` is the filter for this source, and `new` creates an empty collector for another thread.
///
/// # Errors
///
/// Returns an error if a part is malformed or contains an unknown game.
fn fold_list<C: Collector>(
    filters: &SourceFilters<'_>,
    source: &OpenIndex,
    filter: &SourceFilter<'_>,
    stored: &[StoredPart],
    new: &(impl Fn() -> C + Sync),
    all: &mut C,
) -> Result<()> {
    let parts = stored.iter().map(|part| part.list(&source.index));
    let parts = parts.collect::<Result<Vec<List<'_>>>>()?;
    let add_part = |collector: &mut C, scratch: &mut Scratch, number: usize| {
        let part = &parts[number];
        let end = parts.get(number + 1).map_or(Some(u32::MAX), List::first_id);
        let known = end.and_then(|end| scratch.select(filter, part, end));
        let selected = known.ok_or_else(|| source.index.malformed(&stored[number].key))?;
        let games = filters.keep_first(source, &mut scratch.games[..selected]);
        if !games.is_empty() {
            let moves = &part.moves().collect::<Vec<BookMove>>();
            collector.add_games(source, filter, &PassingGames { moves, games });
        }
        Ok(())
    };
    // Starts with the last part, because in many collections it contains the newest games.
    if parts.len() <= FEW_PARTS {
        let mut scratch = Scratch::default();
        return (0..parts.len())
            .rev()
            .try_for_each(|number| add_part(all, &mut scratch, number));
    }
    let begin = || (new(), Scratch::default());
    let collected: Vec<Result<(C, Scratch)>> = (0..parts.len())
        .into_par_iter()
        .rev()
        .with_min_len(PARTS_AT_ONCE)
        .try_fold(begin, |(mut collector, mut scratch), number| {
            add_part(&mut collector, &mut scratch, number)?;
            Ok((collector, scratch))
        })
        .collect();
    for collector in collected {
        all.join(collector?.0);
    }
    Ok(())
}

/// Buffers that are needed to filter a part of a list. They are reused for each part.
#[derive(Default)]
struct Scratch {
    /// For each game in a range of ids, whether it passes.
    passes: Vec<bool>,
    /// The games of a part; the passing games are at the front.
    games: Vec<(u32, u32)>,
}

impl Scratch {
    /// Filters the games of `part`, a part of a list, and stores those that pass at the front of `games`. Returns their
    /// number. Returns `None` if the part is malformed, or if it contains an id that belongs to no game or is not less
    /// than `end`.
    fn select(&mut self, filter: &SourceFilter<'_>, part: &List<'_>, end: u32) -> Option<usize> {
        let first = part.first_id()?;
        let end = filter.games().min(end as usize);
        let span = end.checked_sub(first as usize).filter(|span| *span > 0)?;
        if self.games.len() < part.len {
            self.games.resize(part.len, (0, 0));
        }
        let (passes, games) = (&mut self.passes, &mut self.games[..]);
        if span > SPARSE * part.len {
            return select(part, games, |id| (id < end).then(|| filter.admits(id)));
        }
        // Filters all games of the range column by column, which reads memory sequentially.
        let first = first as usize;
        let passes = match filter.precomputed(first..end) {
            Some(precomputed) => precomputed,
            None if filter.filter_range(first..end, passes) => passes,
            None => return Some(0),
        };
        select(part, games, |id| passes.get(id - first).copied())
    }
}

/// Selects the games of `part`, a part of a list of games, for which `passes` returns `Some(true)`. The argument of
/// `passes` is the id of a game.
///
/// Writes the id and the move index of each selected game to the first elements of `games`, and returns the number of
/// selected games. Returns `None` if `part` is malformed, or if `passes` returns `None` for a game.
#[inline(always)]
fn select(
    part: &List<'_>,
    games: &mut [(u32, u32)],
    passes: impl Fn(usize) -> Option<bool>,
) -> Option<usize> {
    let mut selected = 0;
    let mut are_known = true;
    // Branchless: whether a game passes is unpredictable, so a branch would be mispredicted often.
    part.for_each(|id, number| match passes(id as usize) {
        Some(passes) => {
            games[selected] = (id, number as u32);
            selected += usize::from(passes);
        }
        None => are_known = false,
    })?;
    are_known.then_some(selected)
}
