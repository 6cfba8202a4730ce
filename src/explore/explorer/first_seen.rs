//! Finds out whether any games have reached given positions, and when these games were played.

use std::sync::Mutex;

use rayon::prelude::*;
use rustc_hash::FxHashMap;

use super::{
    filter::{SourceFilter, SourceFilters},
    open_index::{OpenIndex, earliest},
    scan::{Collector, PassingGames, scan},
    sources::Sources,
    tally::{Rank, by_date},
};
use crate::{
    error::{Error, Result},
    formats::explorer_index::{ListKey, game_rows::date_number, lists::List},
    games::{pgn::Date, selection::Selection},
    task,
};

/// Looks up positions in the games of an explorer. A lookup tells whether any game reached a position, and when the
/// first of these games was played.
pub(crate) struct FirstSeen<'a> {
    filters: SourceFilters<'a>,
    /// Caches the results of [`first_day`](FirstSeen::first_day) for long lists of games. There are few such lists, but
    /// most games reach one of their positions. Without the cache, each batch of games would read them again, which
    /// would take quadratic time.
    first_days: Mutex<FxHashMap<ListKey, u32>>,
}

/// A position to look up with a [`FirstSeen`], given by `subject`, the key under which the index stores the list of
/// games that reached the position. The fields `game` and `ply` tell the caller where the position comes from: it
/// occurred in game `game` after `ply` half-moves. The lookup itself does not use them.
pub(crate) struct Probe {
    pub subject: ListKey,
    pub game: u32,
    pub ply: u32,
}

/// A summary of the games that reached a position: how many there are, the newest of them, and the day by which the
/// first of them was certainly played.
#[derive(Copy, Clone, Default, Debug)]
pub(crate) struct Visits {
    /// The number of games.
    pub games: u64,
    /// The day by which at least one of the games was certainly played, as a date number. For a date with unknown
    /// parts, this is the latest possible day. `None` if there are no games.
    pub first: Option<u32>,
    last: Option<Rank>,
    /// The day before which a game must certainly have been played to be counted, or `None` to count all games.
    before: Option<u32>,
}

impl Visits {
    /// Returns the game number of the newest game, or `None` if there are no games.
    pub fn last(self) -> Option<u64> {
        self.last.map(|(_, number, _)| number)
    }
}

/// Returns the earliest day on which a game with the date `date` may have been played, as a date number (see
/// [`date_number`]). If the year is unknown, the result is later than every day.
///
/// Callers pass the result to a [`FirstSeen`] lookup to ignore games that may have been played on this day or later.
/// For a game without a known year, the lookup therefore ignores no game with a known date.
pub(crate) fn first_day(date: Date) -> u32 {
    match date.year() {
        Some(_) => earliest(date_number(date)),
        None => u32::MAX,
    }
}

/// Returns the index of the move after which a game never again reaches a known position. `known[i]` says whether the
/// position after the move with the index `i` is known. Returns `None` if the last position is known.
pub(crate) fn last_departure(known: &[bool]) -> Option<usize> {
    let departure = known
        .iter()
        .rposition(|is_known| *is_known)
        .map_or(0, |last| last + 1);
    (departure < known.len()).then_some(departure)
}

impl FirstSeen<'_> {
    /// Creates a lookup in all games of an explorer.
    ///
    /// # Errors
    ///
    /// Returns an error if an index of the explorer contains counts instead of individual games.
    pub(super) fn new(sources: &Sources) -> Result<FirstSeen<'_>> {
        let mut indexes = sources.indexes.iter();
        if let Some(source) = indexes.find(|source| source.counted.is_some()) {
            return Err(Error::file(
                &source.name,
                "this index contains counts instead of games",
            ));
        }
        Ok(FirstSeen {
            filters: sources.filters(&Selection::default())?,
            first_days: Mutex::default(),
        })
    }

    /// Calls `new` for each probe whose position is new, because no game has reached it. `probes` must be sorted by
    /// `subject`.
    ///
    /// If `before` is given, it returns a day, as a date number, for each probe. Only games that were certainly played
    /// before this day then count for this probe.
    ///
    /// Because the probes are sorted, each page of the index (an entry that contains the lists of several positions) is
    /// read only once. Searches only the first index of the explorer. This suffices, because callers of this function
    /// open explorers with a single index.
    ///
    /// # Errors
    ///
    /// Returns an error if the index is damaged.
    pub fn for_each_new(
        &self,
        probes: &[Probe],
        before: Option<impl Fn(&Probe) -> u32 + Sync>,
        new: impl Fn(&Probe) + Sync,
    ) -> Result<()> {
        // All games pass the filters, and an explorer for this lookup has one source.
        let Some((source, _)) = self.filters.of_sources.first() else {
            probes.iter().for_each(new);
            return Ok(());
        };
        let page_of = |probe: &Probe| source.contents.paging.page(probe.subject);
        let pages = probes.par_chunk_by(|a, b| page_of(a) == page_of(b));
        pages.try_for_each(|probes| {
            let mut left = probes.iter().peekable();
            source.for_each_list(probes[0].subject, |subject, list| {
                while let Some(probe) = left.next_if(|probe| probe.subject < subject) {
                    new(probe);
                }
                let mut first = None;
                while let Some(probe) = left.next_if(|probe| probe.subject == subject) {
                    let Some(before) = &before else { continue };
                    let first = match first {
                        Some(first) => first,
                        None => *first.insert(self.first_day(source, subject, &list)?),
                    };
                    if first >= before(probe) {
                        new(probe);
                    }
                }
                Ok(())
            })?;
            left.for_each(&new);
            Ok(())
        })
    }

    /// Returns the day by which at least one game in `list` was certainly played, as a date number. This is the minimum
    /// over all games, where a date with unknown parts counts as its latest possible day. If the list is long, the
    /// result is cached under the key `subject` of the list.
    fn first_day(&self, source: &OpenIndex, subject: ListKey, list: &List<'_>) -> Result<u32> {
        if list.chunked.is_some() {
            if let Some(day) = task::lock(&self.first_days).get(&subject) {
                return Ok(*day);
            }
            let day = self.visits(subject, None)?.first.unwrap_or(u32::MAX);
            task::lock(&self.first_days).insert(subject, day);
            return Ok(day);
        }
        let mut first = u32::MAX;
        list.for_each(|id, _| {
            let day = source.rows.get(id).map(|summary| summary.last_day());
            first = first.min(day.unwrap_or(u32::MAX));
        });
        Ok(first)
    }

    /// Returns a summary of the games that reached or ended in the position with the key `subject`. If `before` is
    /// given, as a date number (see [`date_number`]), the summary contains only games that were certainly played before
    /// this day.
    ///
    /// # Errors
    ///
    /// Returns an error if the index is damaged.
    pub fn visits(&self, subject: ListKey, before: Option<u32>) -> Result<Visits> {
        scan(&self.filters, &[subject], || Visits {
            before,
            ..Visits::default()
        })
    }
}

impl Collector for Visits {
    fn add_games(
        &mut self,
        source: &OpenIndex,
        _filter: &SourceFilter<'_>,
        passing: &PassingGames<'_>,
    ) {
        for (id, mv) in passing.iter() {
            let summary = source.game(id);
            let day = summary.last_day();
            if self.before.is_some_and(|before| day >= before) {
                continue;
            }
            let rank = by_date(&summary, source.first + u64::from(id), mv);
            self.games += 1;
            self.first = Some(self.first.map_or(day, |first| first.min(day)));
            self.last = self.last.max(Some(rank));
        }
    }

    fn join(&mut self, other: Visits) {
        self.games += other.games;
        self.first = self.first.into_iter().chain(other.first).min();
        self.last = self.last.max(other.last);
    }
}

#[cfg(test)]
mod tests {
    use std::{fs, sync::atomic::AtomicBool};

    use super::{
        super::{Explorer, open_index::latest},
        *,
    };
    use crate::{
        MakeBook,
        chess::position::{Keyed, Variant, read_move},
        formats::explorer_index::lists::MAX_INLINE_ITEMS,
        games::pgn::Input,
    };

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
    /// Each batch of games looks up the positions that most games reach, and the lists of these positions are long.
    #[test]
    fn a_long_list_of_games_is_read_once() {
        let dir = tempfile::tempdir().unwrap();
        let [pgn, index] = ["games.pgn", "games.idx"].map(|name| dir.path().join(name));
        let game = "[Date \"2001.05.03\"]\n\n1. e4 e5 *\n\n";
        fs::write(&pgn, game.repeat(MAX_INLINE_ITEMS + 1)).unwrap();
        let make = MakeBook::new([Input::file(&pgn)]);
        make.explorer(&index).run().unwrap();
        let explorer = Explorer::open([("games".to_owned(), index)]).unwrap();
        let first_seen = explorer.first_seen().unwrap();
        let mut pos = Keyed::new(Variant::Standard.start());
        pos.play(read_move(pos.position(), b"e4").unwrap());
        let subject = ListKey::position(Variant::Standard, pos.identity());
        let is_new = |before: Date| {
            let is_new = AtomicBool::new(false);
            let probe = Probe {
                subject,
                game: 0,
                ply: 0,
            };
            let before = |_: &Probe| first_day(before);
            let new = |_: &Probe| is_new.store(true, std::sync::atomic::Ordering::Relaxed);
            first_seen
                .for_each_new(&[probe], Some(before), new)
                .unwrap();
            is_new.into_inner()
        };
        assert!(is_new(Date::new(2001, 5, 3)));
        assert!(!is_new(Date::new(2001, 5, 4)));
        // Replaces the cached day. The next lookup must use the new value instead of the list.
        let found = task::lock(&first_seen.first_days).insert(subject, u32::MAX);
        assert_eq!(found, Some(latest(date_number(Date::new(2001, 5, 3)))));
        assert!(is_new(Date::new(2001, 5, 4)));
    }
}
