//! How far a tree goes.

use shakmaty::variant::VariantPosition;

use crate::{
    error::Result,
    position::Keyed,
    sort::Memory,
    tree::source::{Source, TreeMove},
};

/// How far a tree goes. The default is every move, in lines of up to [`Limits::LONGEST`] half-moves.
#[derive(Clone, PartialEq, Default, Debug)]
pub struct Limits {
    /// The tree has all that can be reached in this many half-moves, each position on its shortest path. To find
    /// these, it is walked through once before. Without it, a position is where the walk comes to it first.
    pub max_ply: Option<usize>,
    /// The least weight of a move.
    pub min_weight: u64,
    /// The least share of the weights of its position, in percent.
    pub min_share: f64,
    /// The fewest games of a move, if the source counts games.
    pub min_game: u64,
    /// The most moves of the whole tree, none for any number.
    pub moves: Option<u64>,
    /// What telling positions that were met before may take; past it, they go to temporary files.
    pub memory: Memory,
}

/// A move that is within the limits.
#[derive(Clone, Debug)]
pub(super) struct KeptMove {
    pub mv: TreeMove,
    /// Its share of the weights of the position, in percent.
    pub share: f64,
    /// How much of the whole tree is likely to be after it, from 0 to 1.
    pub portion: f64,
}

impl Limits {
    /// The most half-moves that a line may have.
    pub const LONGEST: usize = 4096;

    /// Half-moves of the longest line.
    pub(super) fn plies(&self) -> usize {
        self.max_ply.unwrap_or(Limits::LONGEST).min(Limits::LONGEST)
    }

    /// The moves of a position that are within the limits, which have a portion of the tree together.
    pub(super) fn choices(
        &self,
        source: &impl Source,
        pos: &Keyed<VariantPosition>,
        portion: f64,
    ) -> Result<Vec<KeptMove>> {
        let moves = source.moves(pos)?;
        let sum: u64 = moves.iter().map(|mv| mv.weight).sum();
        let with_shares = moves.into_iter().map(|mv| {
            let share = mv.weight as f64 * 100.0 / sum.max(1) as f64;
            (mv, share)
        });
        let admitted: Vec<(TreeMove, f64)> = with_shares
            .filter(|(mv, share)| self.admits(mv, *share))
            .collect();
        // A move of no weight has something after it too.
        let size = |share: f64| share + 1.0;
        let sizes: f64 = admitted.iter().map(|(_, share)| size(*share)).sum();
        let choice = |(mv, share)| KeptMove {
            mv,
            share,
            portion: portion * size(share) / sizes,
        };
        Ok(admitted.into_iter().map(choice).collect())
    }

    fn admits(&self, mv: &TreeMove, share: f64) -> bool {
        let has_games = mv.stats.is_none_or(|stats| stats.games() >= self.min_game);
        !mv.is_known || (mv.weight >= self.min_weight && share >= self.min_share && has_games)
    }
}
