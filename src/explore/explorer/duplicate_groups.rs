//! Duplicate games, and the games of one match.
//!
//! Sources may contain a game several times, for example if two downloads overlap or two collections contain the same
//! tournament. The [rule of `make-book --duplicates once`](crate::games::pgn) decides which games are duplicates. Answers that
//! count each game once ([`Selection::duplicates`](crate::games::selection::Selection::duplicates)) count only the first game
//! of each group that passes the filters.

use std::convert::Infallible;

use rayon::prelude::*;
use rustc_hash::FxHashMap;

use super::open_index::OpenIndex;
use crate::{
    error::{Error, Result},
    formats::index::store::SiteId,
    games::{
        pgn::{DateAndId, DuplicateKeys, GameIdentity, Group, name_hash},
        selection::Selection,
    },
};

/// The approximate number of games that one pass of [`DuplicateGroups::find`] compares. It limits the memory that a
/// pass takes to about 24 MiB, unless very many games are equal except for their dates and ids.
const GAMES_PER_PASS: u64 = if cfg!(test) { 3 } else { 1 << 19 };

/// The number of games after which the search for duplicates checks whether to continue.
const GAMES_PER_CHECK: u64 = if cfg!(test) { 2 } else { 1 << 20 };

/// The groups of duplicate games in all indexes of an explorer. Games are identified by their numbers, which are
/// consecutive over all indexes.
#[derive(Default, Debug)]
pub(super) struct DuplicateGroups {
    /// Links the games of each group into a ring. The entry of a game is the previous game of its group; the entry of
    /// the first game is the last one. Games without duplicates have no entry.
    previous: FxHashMap<u64, u64>,
    /// A bit for each game, which is set if `previous` has an entry for the game. Most games have none, and reading the
    /// bit is much faster than searching the map.
    has_previous: Vec<u64>,
    /// The hashes of the names in each source, indexed by name number. The keys of the map are the numbers of the
    /// sources' first games. Spellings of a name have equal hashes. The hash of an unknown name is 0. The names of a
    /// [condition](Selection::player_hash) also have equal hashes if the groups were found for a selection with names.
    name_hashes: FxHashMap<u64, Vec<u64>>,
}

impl DuplicateGroups {
    /// Finds the duplicate games in `sources`, the indexes of an explorer.
    ///
    /// Needs little memory, because it makes several passes over the games. Duplicates have equal common hashes, so pass
    /// `i` of `n` compares only the games whose hash modulo `n` is `i`. `should_continue` is called repeatedly, and returns
    /// `false` to cancel the search.
    ///
    /// # Errors
    ///
    /// Returns an error if the names of an index cannot be read. Returns [`Error::Interrupted`] if `should_continue`
    /// returns `false`.
    pub(super) fn find(
        sources: &[OpenIndex],
        should_continue: &dyn Fn() -> bool,
    ) -> Result<DuplicateGroups> {
        let check = || match should_continue() {
            true => Ok(()),
            false => Err(Error::Interrupted),
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

    /// Finds the duplicate games in `sources` if all names that match one condition of `selection` are names of one
    /// player. Only games with such names are compared. Returns `None` if no condition matches different names, so that
    /// the groups are those of `self`.
    ///
    /// # Errors
    ///
    /// Returns an error if the names of an index cannot be read.
    pub(super) fn of_named_players(
        &self,
        sources: &[OpenIndex],
        selection: &Selection,
    ) -> Result<Option<DuplicateGroups>> {
        let mut name_hashes: Option<FxHashMap<u64, Vec<u64>>> = None;
        let named = selection.player_conditions().into_iter().zip([1, 2, 3, 4]);
        // The first condition that a name matches counts, so it is the last one that sets the hash.
        for (names, hash) in named.rev() {
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
            let hash_of =
                |(first, number): &(u64, usize)| self.name_hashes.get(first)?.get(*number).copied();
            let mut hashes = matching.iter().filter_map(hash_of);
            let first = hashes.next();
            if hashes.any(|other| Some(other) != first) || name_hashes.is_some() {
                let name_hashes = name_hashes.get_or_insert_with(|| self.name_hashes.clone());
                for (first, number) in matching {
                    if let Some(known) = name_hashes
                        .get_mut(&first)
                        .and_then(|it| it.get_mut(number))
                    {
                        *known = hash;
                    }
                }
            }
        }
        let Some(name_hashes) = name_hashes else {
            return Ok(None);
        };
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

    /// Finds the groups of duplicates among the games in `sources` of which a player's name has a hash that
    /// `is_compared` admits. `compared_games` is the number of these games. Calls `check` repeatedly, and stops if it
    /// returns an error.
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

    /// Finds the groups of duplicates in `games`, which agree in everything except their dates and ids. They are sorted
    /// by their numbers.
    fn compare(&mut self, games: &[(DuplicateKeys, u64)]) {
        let mut groups: Vec<(DateAndId, Vec<u64>)> = Vec::new();
        let mut exact: FxHashMap<DateAndId, usize> = FxHashMap::default();
        for (keys, number) in games {
            let known = |group: usize| Ok(groups.get(group).map(|(facts, _)| *facts));
            let Ok(group) = keys.find_group::<Infallible>(known);
            let group = match group {
                Group::First(group) => group,
                Group::Joined(group, facts) => {
                    groups[group].0 = facts;
                    group
                }
                Group::Exact => *exact.entry(keys.facts).or_insert(groups.len()),
            };
            match groups.get_mut(group) {
                Some((_, games)) => games.push(*number),
                None => groups.push((keys.facts, vec![*number])),
            }
        }
        for (_, group) in groups.into_iter().filter(|(_, group)| group.len() > 1) {
            let predecessors = group.iter().cycle().skip(group.len() - 1);
            for (game, previous) in group.iter().zip(predecessors) {
                self.previous.insert(*game, *previous);
                self.has_previous[*game as usize / 64] |= 1 << (game % 64);
            }
        }
    }

    /// Returns an iterator over the numbers of the games that are duplicates of game `number`. Duplicates with lower
    /// numbers come first, then those with higher numbers. Both groups are in descending order.
    pub(super) fn duplicates_of(&self, number: u64) -> impl Iterator<Item = u64> {
        let previous = move |game: &u64| {
            let previous = self.previous.get(game).copied();
            previous.filter(|previous| *previous != number)
        };
        let bits = self.has_previous.get(number as usize / 64);
        let has_previous = bits.is_some_and(|bits| bits >> (number % 64) & 1 == 1);
        let first = has_previous.then(|| previous(&number)).flatten();
        std::iter::successors(first, previous)
    }

    /// Returns an iterator over the numbers of the duplicates of game `number` that have lower numbers than this game.
    /// The numbers are in descending order.
    pub(super) fn earlier_duplicates_of(&self, number: u64) -> impl Iterator<Item = u64> {
        self.duplicates_of(number)
            .filter(move |other| *other < number)
    }

    /// Returns the hash of the match to which a game belongs. A match is all games of two players at the same event in
    /// the same year. `id` is the id of the game in the index `source`.
    ///
    /// If a player, the event or the year is unknown, returns a hash that no other game has.
    pub(super) fn match_hash(&self, source: &OpenIndex, id: u32) -> u64 {
        let (games, at) = (&source.rows, id as usize);
        let hashes = self.name_hashes.get(&source.first);
        let hash_of = |name: u32| hashes.and_then(|hashes| hashes.get(name as usize).copied());
        let [white, black] = games.players[at].map(|name| hash_of(name).unwrap_or(0));
        let event = hash_of(games.events[at]).unwrap_or(0);
        let year = u64::from(games.dates[at] >> 9);
        match [white, black, event, year].contains(&0) {
            true => mixed(source.first, u64::from(id)),
            false => {
                let players = mixed(white.min(black), white.max(black));
                mixed(mixed(players, event), year)
            }
        }
    }

    /// Returns the keys by which a game is compared with others. `id` is the id of the game in the index `source`.
    ///
    /// Returns `None` if the game is not compared. This is the case if the positions of the game are not indexed, if too
    /// little is known about it, or if `is_compared` admits the hash of no player's name.
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

/// Returns the hashes of all names in `source`, indexed by name number. Spellings of a name have equal hashes. The hash
/// of an unknown name (empty or `?`) is 0.
pub(super) fn hash_names(source: &OpenIndex) -> Result<Vec<u64>> {
    let mut names = Vec::new();
    source.for_each_name(|_, name| names.push(name_hash(name)))?;
    Ok(names)
}
