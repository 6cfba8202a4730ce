//! The games of a line.

use std::ops::AddAssign;

use crate::tally::Stats;

/// Games: White's results, and how many have none.
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
