//! Games that the sources have more than once.

use std::hash::{DefaultHasher, Hash, Hasher};

use rustc_hash::FxHashMap;

use super::source::OpenIndex;
use crate::{error::Result, index::layout::Subject, pgn::folded};

/// About how many games are compared at a time, which bounds the memory that takes.
const AT_ONCE: u64 = if cfg!(test) { 3 } else { 1 << 20 };

/// Which games are equal, and which are of one match.
#[derive(Default, Debug)]
pub(super) struct Copies {
    /// Of the numbers of games with equal ones: each has the one before, and the first the last.
    equal: FxHashMap<u64, u64>,
    /// The hashes of the names of each source as they are compared, by the number of its first game.
    names: FxHashMap<u64, Vec<u64>>,
}

impl Copies {
    /// Finds the equal games of some sources.
    pub(super) fn of(sources: &[OpenIndex]) -> Result<Copies> {
        let mut copies = Copies::default();
        for source in sources.iter().filter(|source| source.games() > 0) {
            copies.names.insert(source.first, folded_names(source)?);
        }
        let games: u64 = sources.iter().map(OpenIndex::games).sum();
        let parts = games / AT_ONCE + 1;
        for part in 0..parts {
            let mut keys = Vec::new();
            for source in sources {
                let of_source = (0..source.games()).filter_map(|id| {
                    let key = copies.key(source, id as u32)?;
                    (key % parts == part).then_some((key, source.first + id))
                });
                keys.extend(of_source);
            }
            keys.sort_unstable();
            for same in keys.chunk_by(|a, b| a.0 == b.0) {
                let before = same.iter().cycle().skip(same.len() - 1);
                let linked = same
                    .iter()
                    .zip(before)
                    .map(|(game, before)| (game.1, before.1));
                copies
                    .equal
                    .extend(linked.filter(|(game, before)| game != before));
            }
        }
        Ok(copies)
    }

    /// The games that are equal to one: those before it first, from the last of them.
    pub(super) fn of_game(&self, number: u64) -> impl Iterator<Item = u64> {
        let before = move |game: &u64| {
            let before = self.equal.get(game).copied();
            before.filter(|before| *before != number)
        };
        std::iter::successors(before(&number), before)
    }

    /// The games before one that are equal to it.
    pub(super) fn before(&self, number: u64) -> impl Iterator<Item = u64> {
        self.of_game(number).filter(move |other| *other < number)
    }

    /// What the games of a match have in common: the event, the year, and the players with any colors. Of a game of which
    /// that is not known something that no other has.
    pub(super) fn match_of(&self, source: &OpenIndex, id: u32) -> u64 {
        let (games, at) = (&source.rows, id as usize);
        let mut players = games.players[at].map(|name| self.name(source, name));
        players.sort_unstable();
        let event = self.name(source, games.events[at]);
        let mut hasher = DefaultHasher::new();
        let year = games.dates[at] >> 9;
        match (players, event) {
            ([Some(one), Some(other)], Some(event)) if year > 0 => {
                (event, year, one, other).hash(&mut hasher);
            }
            _ => (source.first + u64::from(id)).hash(&mut hasher),
        }
        hasher.finish()
    }

    /// The hash of a name; `None` of one that is not known.
    fn name(&self, source: &OpenIndex, number: u32) -> Option<u64> {
        let names = self.names.get(&source.first)?;
        let name = names.get(number as usize).copied();
        name.filter(|name| *name > 0)
    }

    /// What equal games have in common; `None` if the game does not count, or not enough is known of it.
    fn key(&self, source: &OpenIndex, id: u32) -> Option<u64> {
        let (games, at) = (&source.rows, id as usize);
        let hot = games.get(id)?;
        let own = games.own_number(id);
        if !hot.traits.counts() || own == 0 {
            return None;
        }
        let [white, black] = games.players[at];
        let players = (self.name(source, white)?, self.name(source, black)?);
        let end = (hot.result(), games.plies[at], own);
        let mut hasher = DefaultHasher::new();
        (players, hot.date, end, hot.traits.variant()).hash(&mut hasher);
        Some(hasher.finish())
    }
}

/// The hash of each name of a source as it is compared, 0 of a name that is not known.
pub(super) fn folded_names(source: &OpenIndex) -> Result<Vec<u64>> {
    let mut names = Vec::new();
    source.for_each_name(|_, name| {
        let name = folded(name);
        names.push(match &*name {
            "" | "?" => 0,
            name => Subject::name(name).0,
        });
    })?;
    Ok(names)
}
