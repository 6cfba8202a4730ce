//! Ranks the moves of a source and chooses the move to play.

use std::hash::{BuildHasher, Hasher, RandomState};

use shakmaty::Move;

use super::settings::{Play, Settings};
use crate::{counts::Wdl, walk::TreeMove};

/// Removes moves that the settings of the engine exclude: moves with too few games, with weight 0, or with a score
/// below the minimum. The moves removed for their score are also added to `refused`, so that neither another source nor
/// the second engine plays them.
pub(super) fn restrict(moves: &mut Vec<TreeMove>, settings: &Settings, refused: &mut Vec<Move>) {
    moves.retain(|mv| match mv.stats {
        Some(stats) => {
            mv.games() >= settings.min_games.max(1) && {
                let min_score = f64::from(settings.min_score);
                let is_good = stats.games() == 0 || stats.score() * 100.0 >= min_score;
                if !is_good {
                    refused.push(mv.mv);
                }
                is_good
            }
        }
        None => mv.weight > 0,
    });
}

/// Sorts moves from best to worst. A move with results is ranked by the lower bound of the confidence interval of its
/// score, and a move without results by its weight.
pub(super) fn rank(moves: &mut [TreeMove]) {
    moves.sort_by(|a, b| merit(b).total_cmp(&merit(a)));
}

fn merit(mv: &TreeMove) -> f64 {
    mv.stats.map_or(mv.weight as f64, Wdl::lower_bound)
}

/// Chooses one of `moves`, which must be sorted from best to worst, by the rule `play`. Returns the index of the chosen
/// move, or 0 if `moves` is empty. `random` is a random number from 0 (inclusive) to 1 (exclusive), which
/// [`Play::Best`] does not use.
pub(super) fn choose(moves: &[TreeMove], play: Play, random: f64) -> usize {
    let weight = |mv: &TreeMove| match (play, mv.stats) {
        (Play::Uniform, _) => 1.0,
        (_, Some(stats)) => stats.score().powi(2) * stats.games() as f64,
        (_, None) => mv.weight as f64,
    };
    let sum: f64 = moves.iter().map(weight).sum();
    // If all games were lost, all weights are 0.
    if play == Play::Best || sum <= 0.0 {
        return 0;
    }
    let mut left = random * sum;
    let chosen = moves.iter().position(|mv| {
        left -= weight(mv);
        left < 0.0
    });
    chosen.unwrap_or(0)
}

/// Converts the results of a move to a score in centipawns. The score is the logarithm of the odds of winning: 400
/// centipawns mean odds of ten to one. The odds are calculated from the center of the confidence interval of the move's
/// score.
///
/// The lower bound of this interval, by which moves are ranked, is not suitable here. After a single lost game, it
/// would indicate a lost position, and programs might resign in the opening.
pub(super) fn centipawns(stats: Wdl) -> i64 {
    let share = stats.interval_center().clamp(0.001, 0.999);
    (400.0 * (share / (1.0 - share)).log10()).round() as i64
}

/// Returns the shares of wins, draws and losses in thousandths, in this order. The shares are rounded down, and the
/// remainder is added to the largest share, so that they add up to 1000.
pub(super) fn wdl(stats: Wdl) -> [u64; 3] {
    let share = |part: u64| (u128::from(part) * 1000 / u128::from(stats.games().max(1))) as u64;
    let mut shares = [stats.wins, stats.draws, stats.losses].map(share);
    let rest = 1000 - shares.iter().sum::<u64>();
    if let Some(largest) = shares.iter_mut().max() {
        *largest += rest;
    }
    shares
}

/// A pseudorandom number generator (SplitMix64 by G. L. Steele, D. Lea and C. H. Flood, 2014). Equal seeds produce
/// equal sequences of numbers.
pub(super) struct Random(u64);

impl Random {
    /// Creates a generator with the given seed. If `seed` is 0, each generator gets a different random seed.
    pub(super) fn new(seed: u64) -> Random {
        // The standard library creates the keys of its hashers from the system's random numbers.
        let new = || RandomState::new().build_hasher().finish();
        Random(if seed == 0 { new() } else { seed })
    }

    /// Returns the next random number, from 0 (inclusive) to 1 (exclusive).
    pub(super) fn next(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) >> 11) as f64 / (1_u64 << 53) as f64
    }
}

#[cfg(test)]
mod tests {
    use shakmaty::{Chess, Position};

    use super::*;

    fn moves(stats: &[(u64, u64, u64)]) -> Vec<TreeMove> {
        let legal = Chess::default().legal_moves();
        let of = |(at, (wins, draws, losses)): (usize, &(u64, u64, u64))| {
            let stats = Wdl {
                wins: *wins,
                draws: *draws,
                losses: *losses,
            };
            TreeMove::without_evaluation(legal[at], stats.games(), Some(stats))
        };
        stats.iter().enumerate().map(of).collect()
    }

    #[test]
    fn one_lucky_game_does_not_lead() {
        let mut ranked = moves(&[(1, 0, 0), (600, 100, 300), (10, 0, 90)]);
        let mut refused = Vec::new();
        restrict(&mut ranked, &Settings::default(), &mut refused);
        rank(&mut ranked);
        assert_eq!(ranked[0].weight, 1000);
        let strict = Settings {
            min_score: 45,
            min_games: 2,
            ..Settings::default()
        };
        restrict(&mut ranked, &strict, &mut refused);
        assert_eq!(ranked.len(), 1);
        // The single game is too few to say anything about its move.
        assert_eq!(refused, [Chess::default().legal_moves()[2]]);
        let stats = ranked[0].stats.unwrap();
        assert!(centipawns(stats) > 0 && centipawns(stats) < 110);
        assert_eq!(wdl(stats), [600, 100, 300]);
        let even = Wdl {
            wins: 1,
            draws: 1,
            losses: 1,
        };
        assert_eq!(wdl(even).iter().sum::<u64>(), 1000);
    }

    #[test]
    fn few_games_do_not_look_lost() {
        let of = |wins, draws, losses| {
            centipawns(Wdl {
                wins,
                draws,
                losses,
            })
        };
        assert_eq!(of(0, 2, 0), 0);
        assert!(of(0, 0, 1) < 0 && of(0, 0, 1) > -100);
        assert_eq!(of(1, 0, 0), -of(0, 0, 1));
        // Odds of 3 to 1 are 400 log10(3) centipawns.
        assert_eq!(of(750_000, 0, 250_000), 191);
        assert_eq!(of(0, 0, 1_000_000), -1200);
        // The first move has the better score in centipawns, but the second has the better lower bound.
        let mut ranked = moves(&[(1, 0, 0), (50, 2, 48)]);
        rank(&mut ranked);
        assert_eq!(ranked[0].weight, 100);
        assert!(of(1, 0, 0) > of(50, 2, 48));
    }

    /// The chi-squared test of 2000 choices among three moves: 13.8 is exceeded in one of a thousand cases.
    #[test]
    fn choices_are_as_frequent_as_their_weights() {
        let ranked = moves(&[(100, 0, 0), (50, 0, 50), (0, 100, 0)]);
        let mut random = Random::new(7);
        let mut counts = [0.0; 3];
        for _ in 0..2000 {
            counts[choose(&ranked, Play::Weighted, random.next())] += 1.0;
        }
        let expected = [4.0, 1.0, 1.0].map(|share| share * 2000.0 / 6.0);
        let squares = counts.iter().zip(expected);
        let chi: f64 = squares
            .map(|(count, expected)| (count - expected) * (count - expected) / expected)
            .sum();
        assert!(chi < 13.8, "{counts:?}");
        assert_eq!(choose(&ranked, Play::Best, 0.99), 0);
        assert_eq!(choose(&ranked, Play::Uniform, 0.5), 1);
        assert_ne!(Random::new(0).next(), Random::new(0).next());
        let lost = moves(&[(0, 0, 5), (0, 0, 9)]);
        assert_eq!(choose(&lost, Play::Weighted, 0.9), 0);
    }
}
