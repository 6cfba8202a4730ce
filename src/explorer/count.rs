//! Counting the games of a position: by sums where the index has them and the filters allow it, else one by one.

use rustc_hash::FxHashMap;
use shakmaty::{Color, Position, variant::VariantPosition};

use super::{
    best::Best,
    line::Line,
    query::{Filters, Query, View},
    sieve::Sieve,
    source::{Hot, Source},
    sources::Sources,
    summed::SumFilter,
    tally::{MoveTally, Results},
};
use crate::{
    error::Result,
    index::{
        explored::{ListPlace, StoredList},
        layout::{
            Subject,
            played::Apart,
            sums::{ClassSums, MoveSum, Period},
        },
    },
    position::{BookMove, Keyed},
};

/// What games are ranked by, and which game it is: the higher the earlier in a list.
pub(super) type Rank = (u64, u64, BookMove);

/// By the sum of the ratings, then by the date.
#[inline]
pub(super) fn by_rating(hot: &Hot, number: u64, mv: BookMove) -> Rank {
    let rank = u64::from(hot.rating_sum()) << u32::BITS | u64::from(hot.date);
    (rank, number, mv)
}

#[inline]
pub(super) fn by_date(hot: &Hot, number: u64, mv: BookMove) -> Rank {
    (hot.date.into(), number, mv)
}

/// What was counted for a question.
pub(super) struct Counted {
    pub moves: Vec<(BookMove, MoveTally)>,
    /// Where each move stands among them.
    places: FxHashMap<BookMove, usize>,
    pub top: Best<Rank>,
    pub recent: Best<Rank>,
    /// By years and months as one number, as [`Hot::month`].
    pub months: Option<FxHashMap<u32, Results>>,
}

impl Counted {
    /// Counts the games of all sources for a question.
    pub(super) fn new(sources: &Sources, query: &Query) -> Result<Counted> {
        let pos = query.line.position();
        let subject = subject_of(&query.line);
        let color = color_of_ratings(query, pos);
        let mut counted = Counted {
            moves: Vec::new(),
            places: FxHashMap::default(),
            top: Best::new(query.top_limit()),
            recent: Best::new(query.recent_limit(0)),
            months: query.history.then(FxHashMap::default),
        };
        // Sums have the ratings of those who moved.
        let sum_filter = SumFilter::new(&query.filters).filter(|_| color == pos.turn());
        for source in sources.iter() {
            let Some(sieve) = Sieve::new(source, &query.filters)? else {
                continue;
            };
            match (source.place(subject)?, &sum_filter) {
                (ListPlace::Apart(apart), Some(filter)) if apart.has_sums => {
                    counted.add_sums(source, filter, subject, apart)?;
                }
                (place, _) => {
                    let list = source.list(subject, place)?;
                    counted.add_list(source, &sieve, &list, color)?;
                }
            }
        }
        // What is not legal here belongs to another position with the same hash.
        counted
            .moves
            .retain(|(mv, tally)| tally.results.games() > 0 && mv.to_move(pos).is_some());
        Ok(counted)
    }

    /// Where a move stands, which is new or not.
    fn place_of(&mut self, mv: BookMove) -> usize {
        *self.places.entry(mv).or_insert_with(|| {
            self.moves.push((mv, MoveTally::default()));
            self.moves.len() - 1
        })
    }

    /// Adds the games of a source by their sums.
    fn add_sums(
        &mut self,
        source: &Source,
        filter: &SumFilter,
        subject: Subject,
        apart: Apart,
    ) -> Result<()> {
        let by_month = self.months.is_some();
        filter.for_each_class(source, subject, apart, by_month, |period, class| {
            self.add_class(source, period, class)
        })
    }

    /// Adds a class of a period; `None` if it names games that there are not.
    fn add_class(&mut self, source: &Source, period: Period, class: &ClassSums) -> Option<()> {
        for sum in class.moves.iter().filter(|sum| sum.mv != BookMove::NONE) {
            source.hot.get(sum.game as usize)?;
            let place = self.place_of(sum.mv);
            self.moves[place].1.add_sum(sum, source.first);
            if let Some(months) = &mut self.months
                && let Period::Month(year, month) = period
            {
                let month = u32::from(year) << 4 | u32::from(month);
                months.entry(month).or_default().add_all(sum.games);
            }
        }
        for (id, place) in &class.games {
            let hot = source.hot.get(*id as usize)?;
            let (game, mv) = (source.first + u64::from(*id), class.moves[*place].mv);
            self.top.offer(by_rating(hot, game, mv));
            self.recent.offer(by_date(hot, game, mv));
        }
        Some(())
    }

    /// Adds the games of a source one by one.
    // One pass over the list, which may have millions of games.
    fn add_list(
        &mut self,
        source: &Source,
        sieve: &Sieve<'_>,
        list: &StoredList,
        color: Color,
    ) -> Result<()> {
        source.index.for_each_part(list, |part| {
            let places: Vec<Option<usize>> = part
                .moves()
                .map(|mv| (mv != BookMove::NONE).then(|| self.place_of(mv)))
                .collect();
            let mut is_known = true;
            part.for_each(|id, number| {
                let Some(hot) = source.hot.get(id as usize) else {
                    is_known = false;
                    return;
                };
                let Some(place) = places[number] else {
                    return;
                };
                if !sieve.admits(id, hot) {
                    return;
                }
                let game = source.first + u64::from(id);
                let (mv, tally) = &mut self.moves[place];
                tally.add(hot, hot.elo_of(color), game);
                self.top.offer(by_rating(hot, game, *mv));
                self.recent.offer(by_date(hot, game, *mv));
                if let Some(months) = &mut self.months {
                    months.entry(hot.month()).or_default().add(hot.result());
                }
            })?;
            is_known.then_some(())
        })
    }
}

/// Calls `f` with the games of a list that pass, those that end there too.
pub(super) fn for_each_game(
    sources: &Sources,
    subject: Subject,
    filters: &Filters,
    mut f: impl FnMut(&Hot, u64, BookMove),
) -> Result<()> {
    for source in sources.iter() {
        if let Some(sieve) = Sieve::new(source, filters)? {
            let list = source.list(subject, source.place(subject)?)?;
            for_each_listed(source, &sieve, &list, &mut f)?;
        }
    }
    Ok(())
}

fn for_each_listed(
    source: &Source,
    sieve: &Sieve<'_>,
    list: &StoredList,
    f: &mut impl FnMut(&Hot, u64, BookMove),
) -> Result<()> {
    source.index.for_each_part(list, |part| {
        let moves: Vec<BookMove> = part.moves().collect();
        let mut is_known = true;
        part.for_each(|id, number| match source.hot.get(id as usize) {
            Some(hot) if sieve.admits(id, hot) => {
                f(hot, source.first + u64::from(id), moves[number]);
            }
            Some(_) => {}
            None => is_known = false,
        })?;
        is_known.then_some(())
    })
}

/// How many games of a list pass, those that end there too.
pub(super) fn count_games(sources: &Sources, subject: Subject, filters: &Filters) -> Result<u64> {
    let mut games = 0;
    let sum_filter = SumFilter::new(filters);
    for source in sources.iter() {
        let Some(sieve) = Sieve::new(source, filters)? else {
            continue;
        };
        match (source.place(subject)?, &sum_filter) {
            (ListPlace::Apart(apart), Some(filter)) if apart.has_sums => {
                filter.for_each_class(source, subject, apart, false, |_, class| {
                    games += class.moves.iter().map(MoveSum::total).sum::<u64>();
                    Some(())
                })?;
            }
            (place, _) => {
                let list = source.list(subject, place)?;
                for_each_listed(source, &sieve, &list, &mut |_, _, _| games += 1)?;
            }
        }
    }
    Ok(games)
}

/// Whose ratings are averaged: those of the side to move, or of the player's opponents.
fn color_of_ratings(query: &Query, pos: &VariantPosition) -> Color {
    match (query.view, query.filters.color) {
        (View::Player, Some(color)) => !color,
        (View::Player, None) => !pos.turn(),
        _ => pos.turn(),
    }
}

/// The list of a position.
pub(super) fn subject_of(line: &Line) -> Subject {
    let identity = Keyed::new(line.position().clone()).identity();
    Subject::position(line.variant(), identity)
}
