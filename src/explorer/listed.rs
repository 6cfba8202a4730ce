//! Lists of games for people, with the details of each game; the games of a match can be folded into one entry.

use std::collections::BTreeSet;

use rustc_hash::FxHashMap;

use super::{
    answer::{GameList, ListedGame, MatchGames, PlayedGame},
    chosen::{Chosen, fold_chosen},
    count::{Rank, count_games, rank_of, subject_of},
    dates::text_of_number,
    line::Line,
    query::{Filters, Page, Query, View},
    ranked::{number_of, ranked},
    source_filter::SourceFilters,
    sources::Explorer,
};
use crate::{
    error::{Error, Result},
    position::{BookMove, Variant},
};

/// The maximum number of positions on a line for which games are counted.
const MOST_REACHED: usize = 600;

/// The number of a game, its move, and the number of other games of its match.
type First = (u64, BookMove, u64);

impl Explorer {
    pub(super) fn listed(&self, query: &Query, page: &Page) -> Result<GameList> {
        let filters = self.filters_of_games(&query.filters)?;
        // One more game tells whether there is another page.
        let longer = &Page {
            limit: page.limit.saturating_add(1),
            ..*page
        };
        let (total, mut games) = match page.fold_matches {
            true => self.folded(&filters, query, longer)?,
            false => {
                let (total, games) = ranked(self.filters_of_games(&query.filters)?, query, longer)?;
                let games = games.map(|game| game.map(|(number, mv)| (number, mv, 0)));
                (total, games.collect::<Result<Vec<_>>>()?)
            }
        };
        let has_next = page.limit > 0 && games.len() > page.limit;
        let next = has_next.then_some(page.skip.saturating_add(page.limit));
        games.truncate(page.limit);
        let played = games.iter().map(|(number, mv, _)| (*number, *mv));
        let played = self.games_of(query, played)?.into_iter();
        let listed = played.zip(&games).map(|(played, (.., more))| {
            self.with_details(&filters, played, Some(*more).filter(|more| *more > 0))
        });
        Ok(GameList {
            total,
            next,
            games: listed.collect::<Result<_>>()?,
        })
    }

    /// Returns the entry that an unfiltered list contains for the game `number`.
    ///
    /// # Errors
    ///
    /// Returns an error if no game has the number, or if the index is damaged.
    pub fn listed_game(&self, number: u64) -> Result<ListedGame> {
        let game = self.info(number, View::Lichess)?;
        let filters = self.filters(&Filters::default())?;
        self.with_details(&filters, PlayedGame { uci: None, game }, None)
    }

    /// Returns the variant as which a game was indexed.
    ///
    /// # Errors
    ///
    /// Returns an error if there is no such game.
    pub fn variant_of_game(&self, number: u64) -> Result<Variant> {
        let (source, id) = self.place(number)?;
        let indexed = source.rows.traits[id as usize].variant();
        Ok(indexed
            .or(source.index.variant().only())
            .unwrap_or_default())
    }

    /// Returns, for each move of a line, the number of games of the selected source that reach the position after it; `None`
    /// if the index does not state it. Other filters are ignored.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Interrupted`] when `goes_on` returns `false`, and an error if the index is damaged or the source does not
    /// exist.
    pub fn reached(
        &self,
        line: &Line,
        filters: &Filters,
        goes_on: &dyn Fn() -> bool,
    ) -> Result<Vec<Option<u64>>> {
        let filters = self.filters(&Filters {
            source: filters.source.clone(),
            skip_unfinished: filters.skip_unfinished,
            ..Filters::default()
        })?;
        let mut all = Vec::with_capacity(line.moves().len());
        for pos in line.positions().iter().skip(1) {
            if !goes_on() {
                return Err(Error::Interrupted);
            }
            let here = Line::at(line.variant(), pos.clone());
            let games = match all.len() < MOST_REACHED {
                true => count_games(&filters, &here)?,
                false => None,
            };
            // The game of the line reaches the position, so 0 means that the index ends before it.
            all.push(games.filter(|games| *games > 0));
        }
        Ok(all)
    }

    fn with_details(
        &self,
        filters: &SourceFilters<'_>,
        played: PlayedGame,
        more: Option<u64>,
    ) -> Result<ListedGame> {
        let number = played.game.number;
        let (source, id) = self.place(number)?;
        let (games, at) = (&source.rows, id as usize);
        let event = source.name(games.events[at])?;
        let eco = games.eco[at].code();
        Ok(ListedGame {
            date: text_of_number(games.dates[at]),
            event: Some(event).filter(|event| event != "?" && !event.is_empty()),
            eco: eco.map(|code| code.map(char::from).iter().collect()),
            plies: games.plies[at],
            copies: filters.copies_of(number),
            of_match: more.map(|more| MatchGames { more }),
            played,
        })
    }

    /// Returns the number of passing games of a position, and for each match on the page its first game with the number of
    /// other games.
    fn folded(
        &self,
        filters: &SourceFilters<'_>,
        query: &Query,
        page: &Page,
    ) -> Result<(u64, Vec<First>)> {
        let duplicates = self.duplicates()?;
        let subject = subject_of(&query.line);
        let wanted = page.skip.saturating_add(page.limit);
        let (mut total, mut firsts) = (0, FirstGames::new(wanted));
        for (source, filter) in &filters.of_sources {
            let list = source.list(subject, source.place(subject)?)?;
            let add = |(total, firsts): &mut (u64, FirstGames), chosen: Chosen<'_>| {
                *total += chosen.games.len() as u64;
                for (id, number) in chosen.games.iter().rev() {
                    let rank = rank_of(source, *id, chosen.moves[*number as usize], page.sort);
                    firsts.offer(rank, || duplicates.match_hash(source, *id));
                }
            };
            let begin = || (0, FirstGames::new(wanted));
            fold_chosen(
                filters,
                source,
                filter,
                &list,
                begin,
                add,
                |(more, part)| {
                    total += more;
                    part.ranks
                        .into_iter()
                        .for_each(|(rank, key)| firsts.offer(rank, || key));
                },
            )?;
        }
        let ranks = firsts.ranks.into_iter().rev().skip(page.skip);
        let ranks: Vec<(Rank, u64)> = ranks.collect();
        let games: FxHashMap<u64, u64> = ranks.iter().map(|(_, key)| (*key, 0)).collect();
        let mut counted = games.clone();
        for (source, filter) in &filters.of_sources {
            let list = source.list(subject, source.place(subject)?)?;
            let add = |counted: &mut FxHashMap<u64, u64>, chosen: Chosen<'_>| {
                for (id, _) in chosen.games {
                    if let Some(games) = counted.get_mut(&duplicates.match_hash(source, *id)) {
                        *games += 1;
                    }
                }
            };
            fold_chosen(
                filters,
                source,
                filter,
                &list,
                || games.clone(),
                add,
                |part| {
                    for (key, more) in part {
                        *counted.entry(key).or_default() += more;
                    }
                },
            )?;
        }
        let first = |((_, number, mv), key): (Rank, u64)| {
            let more = counted[&key].saturating_sub(1);
            (number_of(number, page.sort), mv, more)
        };
        Ok((total, ranks.into_iter().map(first).collect()))
    }
}

/// Collects the highest-ranked game of each match, for the `wanted` matches whose games rank highest.
struct FirstGames {
    wanted: usize,
    of_match: FxHashMap<u64, Rank>,
    ranks: BTreeSet<(Rank, u64)>,
}

impl FirstGames {
    fn new(wanted: usize) -> FirstGames {
        FirstGames {
            wanted,
            of_match: FxHashMap::default(),
            ranks: BTreeSet::new(),
        }
    }

    /// Offers a game. `key` returns the hash of its match, and is called only if the game ranks high enough.
    fn offer(&mut self, rank: Rank, key: impl FnOnce() -> u64) {
        let is_full = self.ranks.len() == self.wanted;
        if is_full && self.ranks.first().is_none_or(|last| rank < last.0) {
            return;
        }
        let key = key();
        if let Some(known) = self.of_match.get(&key).copied() {
            if rank <= known {
                return;
            }
            self.ranks.remove(&(known, key));
        } else if is_full && let Some((_, last)) = self.ranks.pop_first() {
            self.of_match.remove(&last);
        }
        self.of_match.insert(key, rank);
        self.ranks.insert((rank, key));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_games_of_the_first_matches_are_kept() {
        let rank = |rank| (rank, rank, BookMove::NONE);
        let mut firsts = FirstGames::new(2);
        for (key, number) in [(1, 5), (2, 4), (3, 3), (3, 9), (1, 1), (2, 8), (1, 6)] {
            firsts.offer(rank(number), || key);
        }
        let kept: Vec<_> = firsts
            .ranks
            .iter()
            .map(|(rank, key)| (rank.0, *key))
            .collect();
        assert_eq!(kept, [(8, 2), (9, 3)]);
        assert_eq!(firsts.of_match.len(), 2);
        let mut none = FirstGames::new(0);
        none.offer(rank(1), || 1);
        assert!(none.ranks.is_empty());
    }
}
