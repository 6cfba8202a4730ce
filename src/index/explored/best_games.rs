//! The games of a position that answers name: those with the highest ratings and the newest.

use crate::{
    index::layout::{
        played::Item,
        sums::{RECENT, TOP},
    },
    position::BookMove,
};

/// A game as it is ranked.
#[derive(Copy, Clone, Debug)]
pub(super) struct Ranked {
    pub rating_sum: u32,
    /// A number that grows with time.
    pub date: u32,
    pub id: u32,
    pub mv: BookMove,
}

/// The games of a class that come first by their ratings, and the newest ones, the best first.
#[derive(Clone, Default, Debug)]
pub(super) struct BestGames {
    pub top: Vec<Ranked>,
    pub recent: Vec<Ranked>,
}

impl BestGames {
    /// Takes a game among the first by rating, if it belongs there.
    pub(super) fn offer_top(&mut self, game: Ranked) {
        let rank = |game: &Ranked| (game.rating_sum, game.date, game.id);
        insert(&mut self.top, TOP, game, rank);
    }

    /// Takes a game among the newest, if it belongs there.
    pub(super) fn offer_recent(&mut self, game: Ranked) {
        insert(&mut self.recent, RECENT, game, |game| (game.date, game.id));
    }

    /// Their ids, ascending and each once, with their moves.
    pub(super) fn items(&self) -> Vec<Item> {
        let games = self.top.iter().chain(&self.recent);
        let mut items: Vec<Item> = games.map(|game| (game.id, game.mv)).collect();
        items.sort_unstable();
        items.dedup();
        items
    }
}

/// Puts a game among the `most` that rank highest, if it belongs there.
fn insert<R: Ord>(games: &mut Vec<Ranked>, most: usize, game: Ranked, rank: impl Fn(&Ranked) -> R) {
    let own = rank(&game);
    if games.len() == most && games.last().is_some_and(|last| rank(last) >= own) {
        return;
    }
    let place = games.partition_point(|other| rank(other) > own);
    games.insert(place, game);
    games.truncate(most);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_best_games_are_kept() {
        let mut best = BestGames::default();
        for id in 0..100u32 {
            let game = Ranked {
                rating_sum: id * 37 % 100,
                date: id / 2,
                id,
                mv: BookMove(7),
            };
            best.offer_top(game);
            best.offer_recent(game);
        }
        let ids: Vec<u32> = best.top.iter().map(|game| game.rating_sum).collect();
        assert!(ids.into_iter().eq((85..100).rev()));
        let ids: Vec<u32> = best.recent.iter().map(|game| game.id).collect();
        assert!(ids.into_iter().eq((92..100).rev()));
        assert!(best.items().is_sorted());
    }
}
