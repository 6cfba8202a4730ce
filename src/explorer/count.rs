//! Counts the games of a position: from sums where the index has them and the filters allow it, else game by game.

use rustc_hash::FxHashMap;
use shakmaty::{Color, Position};

use super::{
    chosen::{Chosen, fold_chosen},
    games::Hot,
    line::Line,
    query::{Query, Sort, View},
    source::OpenIndex,
    source_filter::SourceFilters,
    summed::Split,
    tally::{MoveTally, ResultSum},
};
use crate::{
    error::Result,
    index::{
        explored::{Best, ListPlace},
        layout::{
            Subject,
            counted::CountedRow,
            sums::{ClassSums, Period, PeriodEntry},
        },
    },
    position::{BookMove, Keyed},
};

/// A sort key for game lists, followed by the game's number and move. Lists are sorted by it in descending order.
pub(super) type Rank = (u64, u64, BookMove);

/// Returns the rank of a game by the mean of its known ratings, then by its date.
#[inline]
pub(super) fn by_rating(hot: &Hot, number: u64, mv: BookMove) -> Rank {
    let rank = u64::from(hot.doubled_rating()) << u32::BITS | u64::from(hot.date);
    (rank, number, mv)
}

/// Returns the rank of a game by its date.
#[inline]
pub(super) fn by_date(hot: &Hot, number: u64, mv: BookMove) -> Rank {
    (hot.date.into(), number, mv)
}

/// The counts that answer a query.
pub(super) struct PositionTally {
    pub moves: FxHashMap<BookMove, MoveTally>,
    pub top: Best<Rank>,
    pub recent: Best<Rank>,
    /// The results by month, in the form of [`Hot::month`], if the query asks for a history.
    pub months: Option<FxHashMap<u32, ResultSum>>,
    /// The results by year and move, if the query asks for years.
    pub years: Option<FxHashMap<(u16, BookMove), ResultSum>>,
}

impl PositionTally {
    /// Counts the games for a query.
    pub(super) fn new(filters: &SourceFilters<'_>, query: &Query) -> Result<PositionTally> {
        let pos = query.line.position();
        let subjects = subjects_of(&query.line);
        let subject = subjects[0];
        let color = pos.turn();
        let of_player = query.view == View::Player;
        let mut counted = PositionTally::empty(query);
        let class_filter = filters.class_filter.as_ref().filter(|_| !of_player);
        for (source, filter) in &filters.of_sources {
            let add = |period, row: &CountedRow| counted.add_row(period, row);
            if filters.for_each_row(source, &subjects, split_of(query), add)? {
                continue;
            }
            match (source.place(subject)?, class_filter) {
                (ListPlace::Apart(apart), Some(filter)) if apart.has_sums => {
                    filter.for_each_part(
                        source,
                        subject,
                        apart.items,
                        split_of(query),
                        |period, class| counted.add_class(source, period, class),
                    )?;
                }
                (place, _) => {
                    let list = source.list(subject, place)?;
                    let begin = || PositionTally::empty(query);
                    let add = |counted: &mut PositionTally, chosen: Chosen<'_>| {
                        let player_of = |id| filter.player_of(id);
                        counted.add_chosen(source, &chosen, color, of_player.then_some(player_of));
                    };
                    let join = |part| counted.join(part);
                    fold_chosen(filters, source, filter, &list, begin, add, join)?;
                }
            }
        }
        // An illegal move belongs to another position with the same hash.
        counted
            .moves
            .retain(|mv, tally| tally.results.games() > 0 && mv.to_move(pos).is_some());
        Ok(counted)
    }

    /// Creates a tally without games.
    fn empty(query: &Query) -> PositionTally {
        PositionTally {
            moves: FxHashMap::default(),
            top: Best::new(query.top_limit()),
            recent: Best::new(query.recent_candidates()),
            months: query.history.then(FxHashMap::default),
            years: query.years.then(FxHashMap::default),
        }
    }

    /// Adds a tally of other games to this one.
    fn join(&mut self, other: PositionTally) {
        for (mv, tally) in other.moves {
            *self.moves.entry(mv).or_default() += tally;
        }
        self.top.join(&other.top);
        self.recent.join(&other.recent);
        for (month, results) in other.months.into_iter().flatten() {
            let months = self.months.get_or_insert_default();
            *months.entry(month).or_default() += results;
        }
        for (year, results) in other.years.into_iter().flatten() {
            let years = self.years.get_or_insert_default();
            *years.entry(year).or_default() += results;
        }
    }

    /// Adds the sums of a class and period. Returns `None` if they name a game that the source does not have.
    fn add_class(&mut self, source: &OpenIndex, period: Period, class: &ClassSums) -> Option<()> {
        for sum in class.moves.iter().filter(|sum| sum.mv != BookMove::NONE) {
            source.rows.get(sum.game)?;
            let tally = self.moves.entry(sum.mv).or_default();
            tally.add_sum(sum, source.first);
            self.add_results(period, sum.mv, sum.games);
        }
        for (id, place) in &class.games {
            let hot = source.rows.get(*id)?;
            let (game, mv) = (source.first + u64::from(*id), class.moves[*place].mv);
            self.top.offer(by_rating(&hot, game, mv));
            self.recent.offer(by_date(&hot, game, mv));
        }
        Some(())
    }

    /// Adds a row of counts from a period.
    fn add_row(&mut self, period: Period, row: &CountedRow) {
        self.moves.entry(row.mv).or_default().add_row(row);
        self.add_results(period, row.mv, row.games);
    }

    /// Adds results to the history and the years, if the query asks for them.
    fn add_results<N: Copy + Into<u64>>(
        &mut self,
        period: Period,
        mv: BookMove,
        games: impl IntoIterator<Item = N> + Clone,
    ) {
        if let Some(months) = &mut self.months
            && let Period::Month(year, month) = period
        {
            let month = u32::from(year) << 4 | u32::from(month);
            months.entry(month).or_default().add_all(games.clone());
        }
        if let Some(years) = &mut self.years
            && let Period::Month(year, _) | Period::Year(year) = period
        {
            years.entry((year, mv)).or_default().add_all(games);
        }
    }

    /// Adds the filtered games of one part of a list.
    fn add_chosen(
        &mut self,
        source: &OpenIndex,
        chosen: &Chosen<'_>,
        color: Color,
        player_of: Option<impl Fn(usize) -> Color>,
    ) {
        let mut tallies = vec![MoveTally::default(); chosen.moves.len()];
        // Starts with the last game, because in many collections it is the newest: then few others replace it.
        for (id, number) in chosen.games.iter().rev() {
            let mv = chosen.moves[*number as usize];
            if mv == BookMove::NONE {
                continue;
            }
            let hot = source.game(*id);
            let game = source.first + u64::from(*id);
            let tally = &mut tallies[*number as usize];
            tally.add(&hot, hot.elo_of(color), game);
            if let Some(player_of) = &player_of {
                tally.player.add(&hot, player_of(*id as usize));
            }
            self.top.offer(by_rating(&hot, game, mv));
            self.recent.offer(by_date(&hot, game, mv));
            if let Some(months) = &mut self.months {
                months.entry(hot.month()).or_default().add(hot.result());
            }
            if let Some(years) = &mut self.years {
                let year = hot.year();
                years.entry((year, mv)).or_default().add(hot.result());
            }
        }
        for (mv, tally) in chosen.moves.iter().zip(tallies) {
            *self.moves.entry(*mv).or_default() += tally;
        }
    }
}

/// Returns the rank of a game in an order.
#[inline]
pub(super) fn rank_of(source: &OpenIndex, id: u32, mv: BookMove, sort: Sort) -> Rank {
    let hot = source.game(id);
    let game = source.first + u64::from(id);
    match sort {
        Sort::Recent => by_date(&hot, game, mv),
        Sort::Rating => by_rating(&hot, game, mv),
        Sort::Id => by_number(game, mv),
    }
}

/// Returns a rank by the game's number, so that games with lower numbers come first.
fn by_number(number: u64, mv: BookMove) -> Rank {
    (0, u64::MAX - number, mv)
}

/// Returns the number of passing games of a position, including games that end there, and the ranks of the first `wanted` games.
/// If `after` is given, only games that rank below it are listed.
pub(super) fn first_games(
    filters: &SourceFilters<'_>,
    query: &Query,
    sort: Sort,
    wanted: usize,
    after: Option<Rank>,
) -> Result<(u64, Vec<Rank>)> {
    let subject = subject_of(&query.line);
    let (mut total, mut best) = (0, Best::new(wanted));
    for (source, filter) in &filters.of_sources {
        let list = source.list(subject, source.place(subject)?)?;
        let add = |(total, best): &mut (u64, Best<Rank>), chosen: Chosen<'_>| {
            *total += chosen.games.len() as u64;
            let mut offer = |(id, number): &(u32, u32)| {
                let rank = rank_of(source, *id, chosen.moves[*number as usize], sort);
                if after.is_none_or(|after| rank < after) {
                    best.offer(rank);
                }
            };
            // Offers games that probably rank high first, so that few of them are replaced.
            match sort {
                Sort::Id => chosen.games.iter().for_each(offer),
                Sort::Recent | Sort::Rating => chosen.games.iter().rev().for_each(&mut offer),
            }
        };
        let begin = || (0, Best::new(wanted));
        fold_chosen(
            filters,
            source,
            filter,
            &list,
            begin,
            add,
            |(more, part)| {
                total += more;
                best.join(&part);
            },
        )?;
    }
    Ok((total, best.into_sorted()))
}

/// Returns the number of passing games that reached the position at the end of a line, including games that end there.
/// Returns `None` if a source cannot tell: pruned counts lack positions, and counts of other programs may lack the
/// games that end in a position.
pub(super) fn count_games(filters: &SourceFilters<'_>, line: &Line) -> Result<Option<u64>> {
    let subjects = subjects_of(line);
    let subject = subjects[0];
    let mut games = 0;
    for (source, filter) in &filters.of_sources {
        if source
            .counted
            .as_ref()
            .is_some_and(|counted| !counted.has_ends)
        {
            return Ok(None);
        }
        let add = |_, row: &CountedRow| games += row.total();
        match filters.for_each_row_and_end(source, &subjects, Split::Nowhere, add)? {
            Some(false) if source.min_game().is_some() => return Ok(None),
            Some(_) => continue,
            None => {}
        }
        match (source.place(subject)?, filters.class_filter.as_ref()) {
            (ListPlace::Apart(apart), Some(filter)) if apart.has_sums => {
                let add = |_, class: &ClassSums| {
                    games += class.games();
                    Some(())
                };
                filter.for_each_part(source, subject, apart.items, Split::Nowhere, add)?;
            }
            (place, _) => {
                let list = source.list(subject, place)?;
                let add = |sum: &mut u64, chosen: Chosen<'_>| *sum += chosen.games.len() as u64;
                let join = |sum| games += sum;
                fold_chosen(filters, source, filter, &list, || 0, add, join)?;
            }
        }
    }
    Ok(Some(games))
}

/// Returns the longest period by which sums for a query may be grouped: a month for a history, for example.
fn split_of(query: &Query) -> Split {
    match (query.history, query.years) {
        (true, _) => Split::ByMonth,
        (false, true) => Split::ByYear,
        (false, false) => Split::Nowhere,
    }
}

/// Returns the subject under which a source of games lists the games of the position at the end of a line.
pub(super) fn subject_of(line: &Line) -> Subject {
    let identity = Keyed::new(line.position().clone()).identity();
    Subject::position(line.variant(), identity)
}

/// Returns the subjects under which the position at the end of a line may be stored. A source of games uses only the
/// first. A source of counts may use all of them, because it stores positions by Polyglot key.
pub(super) fn subjects_of(line: &Line) -> Vec<Subject> {
    let pos = Keyed::new(line.position().clone());
    pos.exact_identities()
        .map(|identity| Subject::position(line.variant(), identity))
        .collect()
}
