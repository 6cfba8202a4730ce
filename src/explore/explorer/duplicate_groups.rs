//! Finds duplicate games, and the games that belong to the same match.
//!
//! Sources may contain a game several times, for example if two downloads overlap or two collections contain the same
//! tournament. The [rule of `make-book --duplicates once`](crate::games::pgn) decides which games are duplicates. If a
//! query counts each game once ([`Selection::duplicates`](crate::games::selection::Selection::duplicates)), only the
//! first game of each group of duplicates counts. Games that do not pass the filters belong to no group, so they have
//! no influence.

use std::{
    convert::Infallible,
    sync::{Arc, Mutex},
};

use rayon::prelude::*;
use rustc_hash::FxHashMap;

use super::open_index::OpenIndex;
use crate::{
    error::{Error, Result},
    formats::explorer_index::SiteId,
    games::{
        pgn::{DateAndId, DuplicateKeys, GameIdentity, Group, name_hash},
        selection::Selection,
    },
    task,
};

/// The approximate number of games that one pass of [`DuplicateGroups::find`] compares. It limits the memory for a pass
/// to about 24 MiB, unless very many games differ only in their dates and ids.
const GAMES_PER_PASS: u64 = if cfg!(test) { 3 } else { 1 << 19 };

/// The number of games after which the search for duplicates checks whether it was cancelled.
const GAMES_PER_CHECK: u64 = if cfg!(test) { 2 } else { 1 << 20 };

/// The groups of duplicate games in all indexes of an explorer. A game is identified by its number; games are numbered
/// consecutively over all indexes.
#[derive(Default, Debug)]
pub(super) struct DuplicateGroups {
    /// Links the games of each group into a ring: maps each game to the previous game of its group, and the first game
    /// to the last one. Games without duplicates are not in the map.
    previous: FxHashMap<u64, u64>,
    /// A bit set of the games that are keys of `previous`. Most games have no duplicates, and testing a bit is much
    /// faster than searching the map.
    has_previous: Vec<u64>,
    /// The date and id of each game whose group depends on which games pass the filters. An example is a game without a
    /// date that equals games of two different days. In `previous`, all games that agree with such a game in everything
    /// except date and id form one ring.
    facts: FxHashMap<u64, DateAndId>,
    /// The hashes of the names in each source, indexed by name number. The keys of the map are the numbers of the
    /// sources' first games. Different spellings of a name have equal hashes, and unknown names have the hash 0. If the
    /// groups were found for a selection with names, all names of one [condition](Selection::player_hash) also have
    /// equal hashes.
    name_hashes: FxHashMap<u64, Vec<u64>>,
}

impl DuplicateGroups {
    /// Finds the duplicate games in `sources`, the indexes of an explorer.
    ///
    /// Makes several passes over the games to limit the memory. Duplicates agree in a hash, so pass `i` of `n` compares
    /// only the games whose hash modulo `n` is `i`. `should_continue` is called repeatedly, and returns `false` to
    /// cancel the search.
    ///
    /// # Errors
    ///
    /// Returns an error if the names of an index cannot be read. Returns [`Error::Interrupted`] if `should_continue`
    /// returns `false`.
    pub(super) fn find(
        sources: &[OpenIndex],
        should_continue: &dyn Fn() -> bool,
    ) -> Result<DuplicateGroups> {
        let check = || {
            if should_continue() {
                Ok(())
            } else {
                Err(Error::Interrupted)
            }
        };
        let mut groups = DuplicateGroups::default();
        for source in sources.iter().filter(|source| source.games() > 0) {
            check()?;
            groups.name_hashes.insert(source.first, hash_names(source)?);
        }
        let games = sources.iter().map(OpenIndex::games).sum();
        groups.find_with(sources, games, &|_| true, &check)?;
        Ok(groups)
    }

    /// Finds the duplicate games in `sources` under the assumption that all names that match one condition of
    /// `selection` belong to one player. Compares only games that contain a name that matches a condition. Returns `None`
    /// if no condition matches different names, because the groups are then the same as those of `self`.
    ///
    /// # Errors
    ///
    /// Returns an error if the names of an index cannot be read.
    pub(super) fn of_named_players(
        &self,
        sources: &[OpenIndex],
        selection: &Selection,
    ) -> Result<Option<DuplicateGroups>> {
        // The names that match each condition: the first game of their index, and their number in it.
        let mut matches: Vec<Vec<(u64, usize)>> = Vec::new();
        for names in selection.player_conditions() {
            let mut matching = Vec::new();
            for (source, name) in sources
                .iter()
                .flat_map(|it| names.iter().map(move |name| (it, name)))
            {
                let numbers = source.numbers_of(name, selection.name_match())?;
                matching.extend(
                    numbers
                        .into_iter()
                        .map(|number| (source.first, number as usize)),
                );
            }
            matches.push(matching);
        }
        let hash_of =
            |(first, number): &(u64, usize)| self.name_hashes.get(first)?.get(*number).copied();
        let differ = |matching: &Vec<_>| {
            let mut hashes = matching.iter().filter_map(hash_of);
            let first = hashes.next();
            hashes.any(|other| Some(other) != first)
        };
        if !matches.iter().any(differ) {
            return Ok(None);
        }
        let mut name_hashes = self.name_hashes.clone();
        // The first condition that a name matches counts, so it is the last one that sets the hash.
        for (matching, hash) in matches.into_iter().zip([1, 2, 3, 4]).rev() {
            for (first, number) in matching {
                let hashes = name_hashes.get_mut(&first);
                if let Some(known) = hashes.and_then(|hashes| hashes.get_mut(number)) {
                    *known = hash;
                }
            }
        }
        let mut groups = DuplicateGroups {
            name_hashes,
            ..DuplicateGroups::default()
        };
        let conditions = selection.player_conditions().len() as u64;
        let is_named = |hash| (1..=conditions).contains(&hash);
        let games = sources.iter().map(|source| {
            let hashes = groups.name_hashes.get(&source.first);
            let hash_of = |name: &u32| hashes?.get(*name as usize).copied();
            let players = source.rows.players.par_iter();
            let named = players.filter(|players| players.iter().filter_map(hash_of).any(is_named));
            named.count() as u64
        });
        groups.find_with(sources, games.sum(), &is_named, &|| Ok(()))?;
        Ok(Some(groups))
    }

    /// Finds the groups of duplicates among some of the games in `sources`: those with a player whose name has a hash
    /// that `is_compared` admits. `compared_games` is the number of these games. Calls `check` repeatedly, and stops
    /// with its error if it returns one.
    fn find_with(
        &mut self,
        sources: &[OpenIndex],
        compared_games: u64,
        is_compared: &(dyn Fn(u64) -> bool + Sync),
        check: &dyn Fn() -> Result<()>,
    ) -> Result<()> {
        let games: u64 = sources.iter().map(OpenIndex::games).sum();
        self.has_previous = vec![0; games as usize / 64 + 1];
        let passes = compared_games / GAMES_PER_PASS + 1;
        for pass in 0..passes {
            let mut keyed_games = Vec::new();
            for source in sources {
                let keyed = |id| {
                    let keys = self.keys(source, id as u32, is_compared)?;
                    let is_of_pass = keys.common as u64 % passes == pass;
                    is_of_pass.then_some((keys, source.first + id))
                };
                for first in (0..source.games()).step_by(GAMES_PER_CHECK as usize) {
                    check()?;
                    let ids = first..source.games().min(first + GAMES_PER_CHECK);
                    keyed_games.par_extend(ids.into_par_iter().filter_map(keyed));
                }
            }
            keyed_games.par_sort_unstable_by_key(|(keys, number)| (keys.common, *number));
            for games in keyed_games.chunk_by(|a, b| a.0.common == b.0.common) {
                if games.len() > 1 {
                    self.compare(games);
                }
            }
        }
        Ok(())
    }

    /// Finds the groups of duplicates in `games`, which must be sorted by number and may differ only in their dates and
    /// ids.
    fn compare(&mut self, games: &[(DuplicateKeys, u64)]) {
        let games: Vec<_> = games.iter().map(|(keys, it)| (keys.facts, *it)).collect();
        let mut groups = grouped(&games);
        if depend_on_others(&groups) {
            self.facts
                .extend(games.iter().map(|(facts, it)| (*it, *facts)));
            groups = vec![games];
        }
        for group in groups.into_iter().filter(|group| group.len() > 1) {
            let predecessors = group.iter().cycle().skip(group.len() - 1);
            for ((_, game), (_, previous)) in group.iter().zip(predecessors) {
                self.previous.insert(*game, *previous);
                self.has_previous[*game as usize / 64] |= 1 << (game % 64);
            }
        }
    }

    fn is_compared(&self, number: u64) -> bool {
        let bits = self.has_previous.get(number as usize / 64);
        bits.is_some_and(|bits| bits >> (number % 64) & 1 == 1)
    }

    /// Returns an iterator over the numbers of the games with which game `number` is compared. The games with lower
    /// numbers come first, in descending order, and then those with higher numbers, also in descending order.
    fn others(&self, number: u64) -> impl Iterator<Item = u64> {
        let previous = move |game: &u64| {
            let previous = self.previous.get(game).copied();
            previous.filter(|previous| *previous != number)
        };
        let first = self
            .is_compared(number)
            .then(|| previous(&number))
            .flatten();
        std::iter::successors(first, previous)
    }

    /// Returns a hash that identifies the match to which a game belongs. A match is all games of two players at the
    /// same event in the same year. `id` is the id of the game in the index `source`.
    ///
    /// If a player, the event or the year is unknown, returns a hash that no other game has.
    pub(super) fn match_hash(&self, source: &OpenIndex, id: u32) -> u64 {
        let (games, at) = (&source.rows, id as usize);
        let hashes = self.name_hashes.get(&source.first);
        let hash_of = |name: u32| hashes.and_then(|hashes| hashes.get(name as usize).copied());
        let [white, black] = games.players[at].map(|name| hash_of(name).unwrap_or(0));
        let event = hash_of(games.events[at]).unwrap_or(0);
        let year = u64::from(games.dates[at] >> 9);
        if [white, black, event, year].contains(&0) {
            mixed(source.first, u64::from(id))
        } else {
            let players = mixed(white.min(black), white.max(black));
            mixed(mixed(players, event), year)
        }
    }

    /// Returns the keys by which a game is compared with others. `id` is the id of the game in the index `source`.
    ///
    /// Returns `None` if the game is not compared: if its positions are not indexed, if too little is known about it,
    /// or if `is_compared` does not admit the hash of either player's name.
    fn keys(
        &self,
        source: &OpenIndex,
        id: u32,
        is_compared: impl Fn(u64) -> bool,
    ) -> Option<DuplicateKeys> {
        let (games, at) = (&source.rows, id as usize);
        let hashes = self.name_hashes.get(&source.first)?;
        let hash_of = |name: u32| hashes.get(name as usize).copied();
        let [white, black] = *games.players.get(at)?;
        let players = [hash_of(white)?, hash_of(black)?];
        if !players.into_iter().any(is_compared) {
            return None;
        }
        let summary = games
            .get(id)
            .filter(|summary| summary.traits.is_indexed())?;
        let identity = GameIdentity {
            players,
            event: hash_of(games.events[at])?,
            result: summary.result(),
            variant: summary.traits.variant()?,
            date: summary.date(),
            has_event_date: summary.has_event_date(),
            site: games.site_id(id).map_or(0, SiteId::number),
            moves: games.moves[at],
        };
        identity.keys()
    }
}

/// Decides which games count in a query that counts each game only once.
pub(super) struct CountedOnce {
    groups: Arc<DuplicateGroups>,
    /// The decisions about games whose groups depend on which games pass the filters. Games that are compared with each
    /// other share an entry, whose key is the lowest of their numbers.
    decided: Mutex<FxHashMap<u64, Arc<FxHashMap<u64, Decision>>>>,
}

/// Says whether a game counts and how many duplicates it has.
#[derive(Copy, Clone, Default, Debug)]
struct Decision {
    /// The filters for which the game counts, one bit for each filter.
    counted: u32,
    /// The number of duplicates of this game that pass the first filter.
    copies: usize,
}

impl CountedOnce {
    pub(super) fn new(groups: Arc<DuplicateGroups>) -> CountedOnce {
        CountedOnce {
            groups,
            decided: Mutex::default(),
        }
    }

    /// Returns the filters for which game `number` counts: those for which it is the first game of its group.
    ///
    /// Filters are given as bits of an integer. `passed` contains the filters that the game passes, and `passed_by`
    /// returns the filters that another game passes. `passed_by` must return the same result for a game in each call.
    pub(super) fn counted(&self, number: u64, passed: u32, passed_by: impl Fn(u64) -> u32) -> u32 {
        if !self.groups.is_compared(number) {
            return passed;
        }
        if let Some(decided) = self.decided(number, &passed_by) {
            return decided.counted;
        }
        let mut counted = passed;
        let mut earlier = self.groups.others(number).filter(|other| *other < number);
        while counted != 0
            && let Some(other) = earlier.next()
        {
            counted &= !passed_by(other);
        }
        counted
    }

    /// Returns the number of other games that are duplicates of game `number` and pass the first filter. `passed_by`
    /// returns the filters that a game passes, as in [`counted`](CountedOnce::counted).
    pub(super) fn copies(&self, number: u64, passed_by: impl Fn(u64) -> u32) -> usize {
        match self.decided(number, &passed_by) {
            Some(decided) => decided.copies,
            None => {
                let others = self.groups.others(number);
                others.filter(|other| passed_by(*other) & 1 == 1).count()
            }
        }
    }

    /// Returns the decision about a game whose group depends on which games pass the filters. Returns `None` for any
    /// other game.
    fn decided(&self, number: u64, passed_by: &impl Fn(u64) -> u32) -> Option<Decision> {
        self.groups.facts.get(&number)?;
        let mut numbers: Vec<u64> = self.groups.others(number).collect();
        numbers.push(number);
        numbers.sort_unstable();
        let known = task::lock(&self.decided).get(&numbers[0]).cloned();
        let decided = known.unwrap_or_else(|| {
            let decided = Arc::new(self.decide(&numbers, passed_by));
            task::lock(&self.decided).insert(numbers[0], Arc::clone(&decided));
            decided
        });
        Some(decided.get(&number).copied().unwrap_or_default())
    }

    fn decide(&self, numbers: &[u64], passed_by: &impl Fn(u64) -> u32) -> FxHashMap<u64, Decision> {
        let games = numbers
            .iter()
            .filter_map(|number| Some((*self.groups.facts.get(number)?, *number)));
        let games: Vec<_> = games.map(|game| (game, passed_by(game.1))).collect();
        let mut decisions: FxHashMap<u64, Decision> = FxHashMap::default();
        for bit in 0..u32::BITS {
            let passing = games.iter().filter(|(_, passed)| passed >> bit & 1 == 1);
            let passing: Vec<_> = passing.map(|(game, _)| *game).collect();
            for group in grouped(&passing) {
                for (at, (_, number)) in group.iter().enumerate() {
                    let decision = decisions.entry(*number).or_default();
                    decision.counted |= u32::from(at == 0) << bit;
                    if bit == 0 {
                        decision.copies = group.len() - 1;
                    }
                }
            }
        }
        decisions
    }
}

/// A game that is compared with others, given by its date and id and by its number.
type ComparedGame = (DateAndId, u64);

/// Divides games into groups of duplicates. The games must be sorted by number, and may differ only in their dates and
/// ids. Each group keeps this order.
fn grouped(games: &[ComparedGame]) -> Vec<Vec<ComparedGame>> {
    let mut groups: Vec<(DateAndId, Vec<ComparedGame>)> = Vec::new();
    let mut exact: FxHashMap<DateAndId, usize> = FxHashMap::default();
    for game in games {
        let known = |group: usize| Ok(groups.get(group).map(|(facts, _)| *facts));
        let Ok(group) = game.0.find_group::<Infallible>(known);
        let group = match group {
            Group::First(group) => group,
            Group::Joined(group, facts) => {
                groups[group].0 = facts;
                group
            }
            Group::Exact => *exact.entry(game.0).or_insert(groups.len()),
        };
        match groups.get_mut(group) {
            Some((_, games)) => games.push(*game),
            None => groups.push((game.0, vec![*game])),
        }
    }
    groups.into_iter().map(|(_, games)| games).collect()
}

/// The maximum number of different dates and ids that [`depend_on_others`] compares. It takes quadratic time.
const MAX_COMPARED_FACTS: usize = 512;

/// Returns `true` if the games might be grouped differently if some of them did not exist. This is possible if a game
/// agrees with a game of another group: without its own group, it could join the other one. Also returns `true` if
/// there are too many games to compare.
fn depend_on_others(groups: &[Vec<ComparedGame>]) -> bool {
    if groups.len() < 2 {
        return false;
    }
    let numbered = groups.iter().enumerate();
    let mut facts: Vec<(DateAndId, usize)> = numbered
        .flat_map(|(number, games)| games.iter().map(move |(facts, _)| (*facts, number)))
        .collect();
    facts.sort_unstable();
    facts.dedup();
    facts.len() > MAX_COMPARED_FACTS
        || facts.iter().enumerate().any(|(at, (one, group))| {
            let mut others = facts[..at].iter();
            others.any(|(other, number)| number != group && one.agrees(*other))
        })
}

/// Combines two hashes into one. Each bit of the result depends on all bits of both. Uses the finalizer of
/// SplitMix64, which is fast.
fn mixed(a: u64, b: u64) -> u64 {
    let mut hash = a
        .rotate_left(32)
        .wrapping_add(b)
        .wrapping_add(0x9e37_79b9_7f4a_7c15);
    hash = (hash ^ hash >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    hash = (hash ^ hash >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    hash ^ hash >> 31
}

/// Returns the hashes of all names in `source`, indexed by name number. Different spellings of a name have equal
/// hashes. The hash of an unknown name (empty or `?`) is 0.
pub(super) fn hash_names(source: &OpenIndex) -> Result<Vec<u64>> {
    let mut names = Vec::new();
    source.for_each_name(|_, name| names.push(name_hash(name)))?;
    Ok(names)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::{
        chess::position::Variant,
        games::pgn::{Date, GameResult},
    };

    /// Returns the keys of a game that differs from others at most in its day, which may be unknown (0), and in its id at
    /// Lichess, which it may not have (0).
    fn keys(day: u8, site: u64) -> DuplicateKeys {
        let identity = GameIdentity {
            players: [1, 2],
            event: 0,
            result: GameResult::Draw,
            variant: Variant::Standard,
            date: Date::new(2024, 5, day),
            has_event_date: false,
            site,
            moves: 7,
        };
        identity.keys().unwrap()
    }

    fn counted_once(games: &[(DuplicateKeys, u64)]) -> CountedOnce {
        let mut groups = DuplicateGroups {
            has_previous: vec![0; games.len() / 64 + 1],
            ..DuplicateGroups::default()
        };
        groups.compare(games);
        CountedOnce::new(Arc::new(groups))
    }

    /// Checks that each filter counts the games that would be counted if there were no other games than those that pass
    /// it. `games` contains the day, the id and the filters of each game.
    fn check(games: &[(u8, u64, u32)]) -> Result<(), TestCaseError> {
        let numbered = games.iter().zip(0..);
        let keyed: Vec<_> = numbered
            .map(|((day, site, _), number)| (keys(*day, *site), number))
            .collect();
        let once = counted_once(&keyed);
        let passed_by = |number: u64| games[number as usize].2;
        let mut expected = vec![Decision::default(); games.len()];
        for bit in 0..2 {
            let passing = keyed
                .iter()
                .filter(|(_, it)| passed_by(*it) >> bit & 1 == 1);
            let passing: Vec<_> = passing.map(|(keys, it)| (keys.facts, *it)).collect();
            for group in grouped(&passing) {
                expected[group[0].1 as usize].counted |= 1 << bit;
                for (_, number) in &group {
                    if bit == 0 {
                        expected[*number as usize].copies = group.len() - 1;
                    }
                }
            }
        }
        for (number, expected) in (0..).zip(expected) {
            let passed = passed_by(number);
            prop_assert_eq!(once.counted(number, passed, passed_by), expected.counted);
            if passed & 1 == 1 {
                prop_assert_eq!(once.copies(number, passed_by), expected.copies);
            }
        }
        Ok(())
    }

    #[test]
    fn games_that_do_not_pass_do_not_make_others_duplicates() {
        // The first game and the third one are duplicates only if the second game does not pass.
        check(&[(0, 0, 3), (6, 0, 2), (7, 0, 3)]).unwrap();
        // Games with different ids are not duplicates, whether or not a game without an id passes.
        check(&[(6, 1, 3), (0, 0, 2), (6, 2, 3), (0, 2, 1)]).unwrap();
    }

    proptest! {
        #[test]
        fn each_filter_counts_as_if_no_other_games_existed(
            games in prop::collection::vec((0_u8..3, 0_u64..3, 0_u32..4), 0..9),
        ) {
            check(&games)?;
        }
    }

    #[test]
    fn more_groups_than_are_compared_are_counted() {
        let games: Vec<_> = (1..600).map(|site| (6, site, 3)).collect();
        check(&[&games[..], &games[..300], &[(6, 0, 3), (0, 0, 1)]].concat()).unwrap();
    }
}
