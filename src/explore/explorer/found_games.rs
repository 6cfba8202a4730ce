//! Keeps the games that the latest queries about the board found in an index, so that the same query is answered at
//! once.

use std::sync::{Arc, Mutex};

use crate::{games::board_query::BoardQuery, task};

/// The maximum size in bytes of the sets of games that an index keeps for later queries. The newest set is kept even if
/// it is larger.
const MAX_KEPT_BYTES: usize = 64 << 20;

/// A set of games, stored as a bit for each game id.
pub(super) type GameSet = Arc<[u64]>;

/// The sets of games that the latest queries found, each with its query. The newest one is at the end.
#[derive(Default, Debug)]
pub(super) struct FoundGames(Mutex<Vec<(BoardQuery, GameSet)>>);

impl FoundGames {
    /// Returns the games that were found for a query, or `None` if they are not or no longer kept.
    pub fn get(&self, query: &BoardQuery) -> Option<GameSet> {
        let mut kept = task::lock(&self.0);
        let at = kept.iter().position(|(of, _)| of == query)?;
        kept[at..].rotate_left(1);
        kept.last().map(|(_, games)| Arc::clone(games))
    }

    /// Keeps the games that were found for a query, and discards the oldest sets if all sets together are too large.
    pub fn keep(&self, query: &BoardQuery, games: &GameSet) {
        let mut kept = task::lock(&self.0);
        kept.retain(|(of, _)| of != query);
        kept.push((query.clone(), Arc::clone(games)));
        let bytes = |(query, games): &(BoardQuery, GameSet)| query.size() + size_of_val(&**games);
        let mut all: usize = kept.iter().map(bytes).sum();
        while all > MAX_KEPT_BYTES && kept.len() > 1 {
            all -= bytes(&kept.remove(0));
        }
    }
}
