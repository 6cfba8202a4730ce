//! Passes over the results of a position once. They may be stored as rows of counts, as results by period, or as a list
//! of games.
//!
//! [`scan`] passes all results that the filters admit to a [`Collector`], which adds them up. Each kind of answer about
//! a position has its own collector.

use std::ops::Range;

use rayon::prelude::*;

use super::{
    filter::{ClassFilter, SourceFilter, SourceFilters, Split, id_ranges},
    open_index::{GameSummary, OpenIndex},
};
use crate::{
    chess::position::{BookMove, Variant},
    error::Result,
    formats::{
        explorer_index::{
            COUNTS, LISTS, ListKey,
            count_pages::CountedList,
            lists::List,
            periods::PeriodResults,
            results::{Period, ResultRow, games_of},
        },
        index::{ListLocation, StoredPart},
    },
};

/// The maximum number of parts of a list of games that the calling thread filters alone. A list with this number of
/// parts contains up to about half a million games. On a busy machine, waking another thread can take longer than
/// filtering these games.
const MAX_SERIAL_PARTS: usize = 32;

/// The minimum number of parts of a list of games that a thread filters as one task. Starting a smaller task would take
/// long compared with the filtering.
const MIN_PARTS_PER_THREAD: usize = 16;

/// The factor that decides whether a part of a list of games is sparse: a part with `n` games is sparse if their ids
/// are spread over a range of more than `n * SPARSE_FACTOR` ids. The games of a sparse part are filtered one by one,
/// because scanning the data of all games in the range would take longer.
const SPARSE_FACTOR: usize = 4;

/// The kind of rows that a [`Collector`] accepts instead of individual games. A row is the stored sum of the results of
/// one move over many games. If a row is accepted, its games need not be read.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) enum AcceptedRows {
    /// Accepts no rows, because the answer is about individual games. Sources of counts are skipped.
    None,
    /// Accepts rows from sources of counts, which do not store individual games. The period of a row is not longer than
    /// the split allows.
    OfCounts(Split),
    /// Accepts rows from all sources. The period of a row is not longer than the split allows.
    All(Split),
}

/// Collects the results of a position that pass the filters of a query. The function [`scan`] passes these results to
/// the collector. A result is either an individual game or a row, which is a stored sum over many games.
pub(super) trait Collector: Send {
    /// Returns the kind of rows that this collector accepts. A row is the stored sum of the results of all games with
    /// the same move. An accepted row is passed to the collector instead of the games that it covers. By default, no
    /// rows are accepted. All collectors of one call of [`scan`] must return the same kind.
    fn accepted_rows(&self) -> AcceptedRows {
        AcceptedRows::None
    }

    /// Adds a row, which is a stored sum of results in the period `period`. The row covers the games with one move in
    /// the position of the query, or the games that ended in this position. The function is called only for rows of the
    /// kind that [`accepted_rows`](Self::accepted_rows) returns.
    fn add_row(&mut self, _source: &OpenIndex, _period: Period, _row: &ResultRow) {}

    /// Offers a game that may be one of the newest or highest-rated games of the position. Its result must not be
    /// counted, because a row passed to [`add_row`](Self::add_row) already contains it.
    fn add_candidate(&mut self, _source: &OpenIndex, _id: u32, _mv: BookMove) {}

    /// Adds games that reached the position and pass the filters. A long list of games is processed in parts, with one
    /// call for each part.
    fn add_games(
        &mut self,
        source: &OpenIndex,
        filter: &SourceFilter<'_>,
        games: &PassingGames<'_>,
    );

    /// Called if the index `_source`, which contains counts, does not contain the position of the query. If the counts
    /// are incomplete, the results may then be too low. The default implementation does nothing.
    fn note_missing(&mut self, _source: &OpenIndex) {}

    /// Adds the results of `other`, a collector that ran on another thread, to this collector.
    fn join(&mut self, other: Self);
}

/// Games that pass the filters, from one part of the list of games that an index stores for a position. Games that end
/// in this position are included.
pub(super) struct PassingGames<'a> {
    /// The distinct moves that were played in the position in the games of this part.
    pub moves: &'a [BookMove],
    /// The ids of the games, ascending, each with the index of its move in `moves`.
    pub games: &'a [(u32, u32)],
}

impl PassingGames<'_> {
    /// Returns the number of games.
    pub(super) fn len(&self) -> u64 {
        self.games.len() as u64
    }

    /// Returns an iterator over the games. An item is the id of a game, and the move that was played in the position,
    /// which is [`BookMove::NONE`] if the game ends there.
    pub(super) fn iter(&self) -> impl DoubleEndedIterator<Item = (u32, BookMove)> {
        let games = self.games.iter();
        games.map(|(id, number)| (*id, self.moves[*number as usize]))
    }

    /// Returns an iterator over the games that continue after the position. An item is the id of a game, and a summary
    /// with its date, ratings and traits. `source` is the index that contains the games.
    pub(super) fn continuing(
        &self,
        source: &OpenIndex,
    ) -> impl Iterator<Item = (u32, GameSummary)> {
        let games = self.iter().filter(|(_, mv)| *mv != BookMove::NONE);
        games.map(|(id, _)| (id, source.game(id)))
    }
}

/// Passes all results of a position that pass the filters to a collector, and returns this collector. A result is
/// either an individual game or a stored sum over many games.
///
/// `subjects` are the keys under which an index may store the position. An index of games uses only the first key, and
/// an index of counts may use any of them. `new` creates an empty collector. If a list of games is long, several
/// threads process it, each with a collector of its own.
///
/// # Errors
///
/// Returns an error if an index is damaged.
pub(super) fn scan<C: Collector>(
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
                scan_counts(classes, source, subjects, split, &mut all)?;
            }
            continue;
        }
        let subject = subjects[0];
        match (source.find_list(subject)?, &filters.class_filter, accepted) {
            (ListLocation::Chunks(list), Some(classes), AcceptedRows::All(split))
                if list.has_periods =>
            {
                scan_periods(classes, source, LISTS, subject, list.items, split, &mut all)?;
            }
            (location, ..) => {
                let stored = source.list(subject, location)?;
                scan_list(filters, source, filter, &stored, &new, &mut all)?;
            }
        }
    }
    Ok(all)
}

/// Computes a sum over all games that pass the filters, regardless of the positions that they reached. Skips games
/// whose positions are not indexed, such as rejected games.
///
/// `add` adds a game to a sum. Its arguments are the sum, the index that contains the game, the filter for this index,
/// and the id and variant of the game. `join` adds two sums, because each thread computes a sum of its own.
pub(super) fn scan_games<T: Default + Send>(
    filters: &SourceFilters<'_>,
    add: impl Fn(&mut T, &OpenIndex, &SourceFilter<'_>, u32, Variant) + Sync,
    join: impl Fn(T, T) -> T + Sync + Send,
) -> T {
    let of_source = |(source, filter): &(&OpenIndex, SourceFilter<'_>)| {
        let of_range = |range| {
            let mut sum = T::default();
            for_each_game(filters, source, filter, range, |id, variant| {
                add(&mut sum, source, filter, id, variant);
            });
            sum
        };
        id_ranges(source.rows.len())
            .map(of_range)
            .reduce(T::default, &join)
    };
    let sums = filters.of_sources.iter().map(of_source);
    sums.fold(T::default(), &join)
}

/// Calls `f` with the id and the variant of each game of the index `source` that passes the filters and whose id lies
/// in `range`. Skips games whose positions are not indexed, such as rejected games. `filter` is the element of
/// `filters` that belongs to `source`.
fn for_each_game(
    filters: &SourceFilters<'_>,
    source: &OpenIndex,
    filter: &SourceFilter<'_>,
    range: Range<usize>,
    mut f: impl FnMut(u32, Variant),
) {
    let (games, only) = (&source.rows, source.index.variant().only());
    let mut marked = Vec::new();
    let passes = match filter.precomputed(range.clone()) {
        Some(passes) => passes,
        None => {
            filter.filter_range(range.clone(), &mut marked);
            &marked
        }
    };
    let passing = range.zip(passes);
    let passing = passing.filter(|(id, passes)| **passes && games.traits[*id].is_indexed());
    let mut passing: Vec<(u32, u32)> = passing.map(|(id, _)| (id as u32, 0)).collect();
    for (id, _) in filters.keep_first(source, &mut passing) {
        if let Some(variant) = only.or(games.traits[*id as usize].variant()) {
            f(*id, variant);
        }
    }
}

/// Passes the results of a position in `source`, an index of counts, to `collector`. Leaves out results that the filter
/// `classes` rejects. The position may be stored under any of the keys `subjects`. `split` says how the answer is split
/// by time, which limits the length of the periods that are summed up.
///
/// # Errors
///
/// Returns an error if the index is damaged.
fn scan_counts(
    classes: &ClassFilter,
    source: &OpenIndex,
    subjects: &[ListKey],
    split: Split,
    collector: &mut impl Collector,
) -> Result<()> {
    let mut is_known = false;
    for subject in subjects {
        let Some(list) = source.counts(*subject)? else {
            continue;
        };
        is_known = true;
        match list {
            CountedList::Rows(rows) => {
                for row in rows.iter().filter(|row| classes.admits(row.class)) {
                    let period = Period::Month(row.month);
                    if classes.contains(period) {
                        collector.add_row(source, period, row);
                    }
                }
            }
            CountedList::Periods(games) => {
                scan_periods(classes, source, COUNTS, *subject, games, split, collector)?;
            }
        }
    }
    if !is_known {
        collector.note_missing(source);
    }
    Ok(())
}

/// Passes the results that an index stores for a position, summed up by period, to `collector`. Leaves out results that
/// the filter `classes` rejects. The periods (all time, a year or a month) do not overlap. They are as long as `split`
/// and the filter's range of dates allow.
///
/// `prefix` is the prefix of the keys in the index: [`LISTS`] for an index of games, or [`COUNTS`] for an index of
/// counts. `subject` is the key of the position, and `games` is the number of its games.
///
/// # Errors
///
/// Returns an error if the index is damaged.
fn scan_periods(
    classes: &ClassFilter,
    source: &OpenIndex,
    prefix: &[u8; 2],
    subject: ListKey,
    games: u64,
    split: Split,
    collector: &mut impl Collector,
) -> Result<()> {
    let periods = if split == Split::AllTime && classes.dates.is_all() {
        vec![Period::All]
    } else {
        classes.periods(&source.index.years(prefix, subject)?, split)
    };
    let mut found = 0;
    for period in periods {
        let results = source.index.results(prefix, subject, period)?;
        found += games_of(&results.rows);
        if found > games || period == Period::All && found != games {
            return Err(source.damaged("the results of a position do not add up to its games"));
        }
        scan_period(classes, source, period, &results, collector)?;
    }
    Ok(())
}

/// Passes `results`, the results of the period `period`, to `collector`. Leaves out results whose class (speed and
/// rating group) the filter `classes` rejects. The whole period must lie in the filter's range of dates.
fn scan_period(
    classes: &ClassFilter,
    source: &OpenIndex,
    period: Period,
    results: &PeriodResults,
    collector: &mut impl Collector,
) -> Result<()> {
    let has_game = |id: u32| u64::from(id) < source.games();
    let rows = results.rows.iter();
    let candidates = results.candidates.iter();
    let mut ids = rows.clone().filter_map(|row| row.game);
    if !ids.all(has_game) || !candidates.clone().all(|game| has_game(game.game)) {
        return Err(source.damaged("the results of a position refer to an unknown game"));
    }
    for row in rows.filter(|row| classes.admits(row.class)) {
        collector.add_row(source, period, row);
    }
    for game in candidates.filter(|game| classes.admits(game.class)) {
        collector.add_candidate(source, game.game, game.mv);
    }
    Ok(())
}

/// Filters the games of a list, and adds the games that pass to the collector `all`. `stored` contains the parts of the
/// list in the index `source`, and `filter` is the filter for this index. `filters` contains the filters for all
/// indexes, which are needed to leave out duplicate games. `new` creates an empty collector for another thread.
///
/// # Errors
///
/// Returns an error if a part is malformed or contains an unknown game.
fn scan_list<C: Collector>(
    filters: &SourceFilters<'_>,
    source: &OpenIndex,
    filter: &SourceFilter<'_>,
    stored: &[StoredPart],
    new: &(impl Fn() -> C + Sync),
    all: &mut C,
) -> Result<()> {
    let parts = stored.iter().map(|part| part.list(&source.index));
    let parts = parts.collect::<Result<Vec<List<'_>>>>()?;
    let add_part = |collector: &mut C, scratch: &mut ScanBuffers, number: usize| {
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
    // Starts with the last part, because it contains the newest games in many collections.
    if parts.len() <= MAX_SERIAL_PARTS {
        let mut scratch = ScanBuffers::default();
        return (0..parts.len())
            .rev()
            .try_for_each(|number| add_part(all, &mut scratch, number));
    }
    let begin = || (new(), ScanBuffers::default());
    let collected: Vec<Result<(C, ScanBuffers)>> = (0..parts.len())
        .into_par_iter()
        .rev()
        .with_min_len(MIN_PARTS_PER_THREAD)
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

/// Buffers for filtering one part of a list of games, which are reused for the next part.
#[derive(Default)]
struct ScanBuffers {
    /// Whether each game in a range of ids passes.
    passes: Vec<bool>,
    /// The games of a part. After filtering, the games that pass are at the front.
    games: Vec<(u32, u32)>,
}

impl ScanBuffers {
    /// Finds the games in `part`, a part of a list of games, that pass `filter`. Writes them to the front of the field
    /// `games`, and returns their number. Returns `None` if `part` is malformed or contains an invalid id. An id is
    /// invalid if no game has it, or if it is `end` or greater; `end` is the first id of the next part.
    fn select(&mut self, filter: &SourceFilter<'_>, part: &List<'_>, end: u32) -> Option<usize> {
        let first = part.first_id()?;
        let end = filter.games().min(end as usize);
        let span = end.checked_sub(first as usize).filter(|span| *span > 0)?;
        if self.games.len() < part.len {
            self.games.resize(part.len, (0, 0));
        }
        let (passes, games) = (&mut self.passes, &mut self.games[..]);
        if span > SPARSE_FACTOR * part.len {
            return select(part, games, |id| (id < end).then(|| filter.admits(id)));
        }
        // Selection all games of the range column by column, which reads memory sequentially.
        let first = first as usize;
        let passes = match filter.precomputed(first..end) {
            Some(precomputed) => precomputed,
            None if filter.filter_range(first..end, passes) => passes,
            None => return Some(0),
        };
        select(part, games, |id| passes.get(id - first).copied())
    }
}

/// Finds the games in `part`, a part of a list of games, for which `passes` returns `Some(true)`. Writes the id of each
/// such game and the index of its move to the front of `games`, and returns the number of these games.
///
/// `passes` receives the id of a game, and returns `None` if the id is invalid. In this case, or if `part` is
/// malformed, this function also returns `None`.
#[inline(always)]
fn select(
    part: &List<'_>,
    games: &mut [(u32, u32)],
    passes: impl Fn(usize) -> Option<bool>,
) -> Option<usize> {
    let mut selected = 0;
    let mut are_known = true;
    // Uses no branch, because whether a game passes is unpredictable, and a branch would often be mispredicted.
    part.for_each(|id, number| match passes(id as usize) {
        Some(passes) => {
            games[selected] = (id, number as u32);
            selected += usize::from(passes);
        }
        None => are_known = false,
    })?;
    are_known.then_some(selected)
}
