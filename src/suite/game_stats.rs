//! The numbers of games in which a line was played, by result.

use std::ops::AddAssign;

use crate::counts::Stats;

/// White's results in some games, and the number of games without a result.
#[derive(Copy, Clone, PartialEq, Eq, Default, Debug)]
pub(super) struct GameStats {
    pub stats: Stats,
    pub without_result: u64,
}

impl GameStats {
    pub(super) fn games(self) -> u64 {
        self.stats.games() + self.without_result
    }
}

impl AddAssign for GameStats {
    fn add_assign(&mut self, other: GameStats) {
        self.stats += other.stats;
        self.without_result += other.without_result;
    }
}
