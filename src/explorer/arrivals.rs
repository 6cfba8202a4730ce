//! Finds the games that reached positions, and when they were played.

use std::sync::Mutex;

use rayon::prelude::*;
use rustc_hash::FxHashMap;

use super::{
    chosen::{Chosen, fold_chosen},
    count::{Rank, by_date},
    dates::earliest,
    query::Filters,
    source::OpenIndex,
    source_filter::SourceFilters,
    sources::Explorer,
};
use crate::{
    error::{Error, Result},
    index::layout::{Subject, played::List, rows::date_number},
    pgn::Date,
    task,
};

/// The games of an explorer, prepared for looking up many positions.
pub(crate) struct Arrivals<'a> {
    filters: SourceFilters<'a>,
    /// The results of [`first_day`](Arrivals::first_day) for spilled lists, which are long. There are few of them, and most
    /// games reach some, so reading them once for each batch of games would take quadratic time.
    first_days: Mutex<FxHashMap<Subject, u32>>,
}

/// A position to look up, with the game and the half-move after which it occurs.
pub(crate) struct Ask {
    pub subject: Subject,
    pub game: u32,
    pub ply: u32,
}

/// The games that reached a position.
#[derive(Copy, Clone, Default, Debug)]
pub(crate) struct Reached {
    /// The number of games.
    pub games: u64,
    /// The earliest day by which at least one of the games had certainly been played: the minimum of their last
    /// possible days. `None` if there are no games.
    pub first: Option<u32>,
    last: Option<Rank>,
}

impl Reached {
    /// Returns the number of the newest game.
    pub fn last(self) -> Option<u64> {
        self.last.map(|(_, number, _)| number)
    }
}

/// Returns the first day that a date can mean, in the form that [`Arrivals::reached`] accepts. For a date without a
/// year, the result is later than every day.
pub(crate) fn first_day(date: Date) -> u32 {
    match date.year() {
        Some(_) => earliest(date_number(date)),
        None => u32::MAX,
    }
}

/// Returns the index of the first move after which all positions of a game are unknown. `known` contains, for the
/// position after each move, whether it is known. Returns `None` if the last position is known.
pub(crate) fn last_departure(known: &[bool]) -> Option<usize> {
    let departure = known
        .iter()
        .rposition(|is_known| *is_known)
        .map_or(0, |last| last + 1);
    (departure < known.len()).then_some(departure)
}

impl Explorer {
    /// Prepares the games for looking up many positions.
    ///
    /// # Errors
    ///
    /// Returns an error if a source has counts instead of games.
    pub(crate) fn arrivals(&self) -> Result<Arrivals<'_>> {
        let counted = self.sources.iter().find(|source| source.counted.is_some());
        if let Some(source) = counted {
            return Err(Error::file(&source.name, "has counts and no games"));
        }
        Ok(Arrivals {
            filters: self.filters(&Filters::default())?,
            first_days: Mutex::default(),
        })
    }
}

impl Arrivals<'_> {
    /// Calls `new` for each position in `asked` that no game has reached. With `before`, a game counts only if it was
    /// certainly played before the day that `before` returns. `asked` must be sorted by position, so that each page of
    /// the index is read once.
    ///
    /// # Errors
    ///
    /// Returns an error if the index is damaged.
    pub fn for_each_new(
        &self,
        asked: &[Ask],
        before: Option<impl Fn(&Ask) -> u32 + Sync>,
        new: impl Fn(&Ask) + Sync,
    ) -> Result<()> {
        // Every game passes the filters.
        let Some((source, _)) = self.filters.of_sources.first() else {
            asked.iter().for_each(new);
            return Ok(());
        };
        let page_of = |ask: &Ask| source.contents.paging.page(ask.subject);
        let pages = asked.par_chunk_by(|a, b| page_of(a) == page_of(b));
        pages.try_for_each(|asked| {
            let mut left = asked.iter().peekable();
            source.for_each_list(asked[0].subject, |subject, list| {
                while let Some(ask) = left.next_if(|ask| ask.subject < subject) {
                    new(ask);
                }
                let mut first = None;
                while let Some(ask) = left.next_if(|ask| ask.subject == subject) {
                    let Some(before) = &before else { continue };
                    let first = match first {
                        Some(first) => first,
                        None => *first.insert(self.first_day(source, subject, &list)?),
                    };
                    if first >= before(ask) {
                        new(ask);
                    }
                }
                Ok(())
            })?;
            left.for_each(&new);
            Ok(())
        })
    }

    /// Returns the earliest of the last possible days of the games in a list.
    fn first_day(&self, source: &OpenIndex, subject: Subject, list: &List<'_>) -> Result<u32> {
        if list.apart.is_some() {
            if let Some(day) = task::lock(&self.first_days).get(&subject) {
                return Ok(*day);
            }
            let day = self.reached(subject, None)?.first.unwrap_or(u32::MAX);
            task::lock(&self.first_days).insert(subject, day);
            return Ok(day);
        }
        let mut first = u32::MAX;
        list.for_each(|id, _| {
            let day = source.rows.get(id).map(|hot| hot.last_day());
            first = first.min(day.unwrap_or(u32::MAX));
        });
        Ok(first)
    }

    /// Returns the games that reached a position, including those that ended there. With `before`, only games that are known
    /// to have been played before that day count.
    ///
    /// # Errors
    ///
    /// Returns an error if the index is damaged.
    pub fn reached(&self, subject: Subject, before: Option<u32>) -> Result<Reached> {
        let mut reached = Reached::default();
        for (source, filter) in &self.filters.of_sources {
            let list = source.list(subject, source.place(subject)?)?;
            let add = |reached: &mut Reached, chosen: Chosen<'_>| {
                for (id, number) in chosen.games {
                    let hot = source.rows.get(*id).expect("only known games are chosen");
                    let day = hot.last_day();
                    if before.is_some_and(|before| day >= before) {
                        continue;
                    }
                    let game = source.first + u64::from(*id);
                    let rank = by_date(&hot, game, chosen.moves[*number as usize]);
                    reached.games += 1;
                    reached.first = Some(reached.first.map_or(day, |first| first.min(day)));
                    reached.last = reached.last.max(Some(rank));
                }
            };
            let join = |part: Reached| {
                reached.games += part.games;
                reached.first = reached.first.into_iter().chain(part.first).min();
                reached.last = reached.last.max(part.last);
            };
            fold_chosen(
                &self.filters,
                source,
                filter,
                &list,
                Reached::default,
                add,
                join,
            )?;
        }
        Ok(reached)
    }
}

#[cfg(test)]
mod tests {
    use super::{super::dates::latest, *};

    #[test]
    fn only_games_that_are_certainly_earlier_count() {
        let day = |year, month, day| Date::new(year, month, day);
        let is_before = |a, b| latest(date_number(a)) < first_day(b);
        assert!(is_before(day(2001, 5, 3), day(2001, 5, 4)));
        assert!(!is_before(day(2001, 5, 3), day(2001, 5, 3)));
        assert!(!is_before(day(2001, 5, 0), day(2001, 5, 31)));
        assert!(is_before(day(2001, 5, 0), day(2001, 6, 1)));
        assert!(!is_before(day(2001, 0, 0), day(2001, 12, 31)));
        assert!(is_before(day(2001, 0, 0), day(2002, 0, 0)));
        assert!(!is_before(day(0, 0, 0), day(0, 0, 0)));
        assert!(is_before(day(2001, 5, 3), day(0, 0, 0)));
    }
}
