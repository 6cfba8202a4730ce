//! Duplicate games, and the games of one match.
//!
//! Sources may contain a game several times, for example if two downloads overlap or two collections contain the same
//! tournament. The [rule of `make-book --duplicates once`](crate::pgn) decides which games are duplicates. Answers that
//! count each game once ([`Selection::duplicates`](crate::selection::Selection::duplicates)) count only the first game
//! of each group that passes the filters.

use std::collections::BTreeMap;

use rayon::prelude::*;
use rustc_hash::FxHashMap;

use super::open_index::OpenIndex;
use crate::{
    error::{Error, Result},
    index::store::SiteId,
    pgn::{DuplicateKeys, GameIdentity, name_hash},
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
    /// sources' first games. Spellings of a name have equal hashes. The hash of an unknown name is 0.
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
        let games: u64 = sources.iter().map(OpenIndex::games).sum();
        groups.has_previous = vec![0; games as usize / 64 + 1];
        let passes = games / GAMES_PER_PASS + 1;
        for pass in 0..passes {
            let mut keyed_games = Vec::new();
            for source in sources {
                let keyed = |id| {
                    let keys = groups.keys(source, id as u32)?;
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
                    groups.compare(games);
                }
            }
        }
        Ok(groups)
    }

    /// Finds the groups of duplicates in `games`, which agree in everything except their dates and ids. They are sorted
    /// by their numbers.
    fn compare(&mut self, games: &[(DuplicateKeys, u64)]) {
        let mut firsts: FxHashMap<u128, u64> = FxHashMap::default();
        let mut found: BTreeMap<u64, Vec<u64>> = BTreeMap::new();
        for (keys, number) in games {
            let known = keys.of_duplicate().filter_map(|key| firsts.get(&key)).min();
            let first = known.copied().unwrap_or_else(|| {
                for key in keys.of_first() {
                    firsts.entry(key).or_insert(*number);
                }
                *number
            });
            found.entry(first).or_default().push(*number);
        }
        for group in found.into_values().filter(|group| group.len() > 1) {
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
    /// Returns `None` if the game is not compared. This is the case if the positions of the game are not indexed, or if
    /// too little is known about it.
    fn keys(&self, source: &OpenIndex, id: u32) -> Option<DuplicateKeys> {
        let (games, at) = (&source.rows, id as usize);
        let summary = games
            .get(id)
            .filter(|summary| summary.traits.is_indexed())?;
        let hashes = self.name_hashes.get(&source.first)?;
        let hash_of = |name: u32| hashes.get(name as usize).copied();
        let [white, black] = games.players[at];
        let identity = GameIdentity {
            players: [hash_of(white)?, hash_of(black)?],
            event: hash_of(games.events[at])?,
            result: summary.result(),
            variant: summary.traits.variant()?,
            date: summary.own_date(),
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
