//! The points that a player is expected to score in some games, by the player's other games.
//!
//! For games against rated opponents, the expected score follows from the ratings by the logistic curve of Elo's system
//! (A. E. Elo, The Rating of Chessplayers, Past and Present, 1978, chapter 8): a player of the strength `p` scores
//! 1/(1 + 10^((r - p)/400)) on average against an opponent with the rating `r`. The strength is the performance in the
//! other games with the same color: the rating for which the expected points are the actual points. In games against
//! opponents without a rating, the expected score is the average of the other games with the same color.

use std::{collections::BTreeMap, ops::AddAssign};

use crate::games::results::Wdl;

/// The minimum variance of a game's result. Without it, a player with only wins would be expected to win each game.
const MIN_VARIANCE: f64 = 0.02;

/// The maximum difference between a performance and the nearest rating of an opponent, as in FIDE's table.
const MAX_DIFFERENCE: f64 = 800.0;

/// The maximum number of steps of the search for a performance. Each halves the interval at least.
const MAX_STEPS: usize = 60;

/// The results of a player's finished games with one color, by the rating of the opponent. The rating of an unrated
/// opponent is 0.
#[derive(Clone, Default, Debug)]
pub(super) struct Scores(BTreeMap<u16, Wdl>);

/// The score that is expected of a player in some games.
#[derive(Copy, Clone, PartialEq, Debug)]
pub(super) struct Expectation {
    /// The expected points. Games that cannot be compared with others count with their actual points.
    pub points: f64,
    /// The standard deviation of the difference between the actual and the expected points.
    pub deviation: f64,
    /// The number of games that can be compared with others.
    pub games: u64,
}

impl Scores {
    /// Adds the result of a finished game against an opponent with the rating `rating`, which is 0 if it is unknown.
    pub(super) fn add(&mut self, rating: u16, result: Wdl) {
        *self.0.entry(rating).or_default() += result;
    }

    fn total(&self) -> Wdl {
        let mut total = Wdl::default();
        for results in self.0.values() {
            total += *results;
        }
        total
    }

    /// Returns these results without those of `part`, which must be a part of them.
    fn without(&self, part: &Scores) -> Scores {
        let rest = self.0.iter().map(|(rating, all)| {
            let less = part.0.get(rating).copied().unwrap_or_default();
            let rest = Wdl {
                wins: all.wins - less.wins,
                draws: all.draws - less.draws,
                losses: all.losses - less.losses,
            };
            (*rating, rest)
        });
        Scores(rest.filter(|(_, rest)| rest.games() > 0).collect())
    }

    fn rated(&self) -> impl Iterator<Item = (f64, Wdl)> {
        let rated = self.0.iter().filter(|(rating, _)| **rating > 0);
        rated.map(|(rating, results)| (f64::from(*rating), *results))
    }

    /// Returns the performance in the games against rated opponents: the rating for which the expected points are the
    /// actual ones. Returns `None` if no opponent is rated.
    fn performance(&self) -> Option<f64> {
        let ratings = || self.rated().map(|(rating, _)| rating);
        let mut low = ratings().reduce(f64::min)? - MAX_DIFFERENCE;
        let mut high = ratings().reduce(f64::max)? + MAX_DIFFERENCE;
        let points: f64 = self.rated().map(|(_, results)| points(results)).sum();
        let mut strength = (low + high) / 2.0;
        for _ in 0..MAX_STEPS {
            let (mut more, mut slope) = (-points, 0.0);
            for (rating, results) in self.rated() {
                let expected = expected_score(strength, rating);
                more += results.games() as f64 * expected;
                slope += results.games() as f64 * slope_of(expected);
            }
            if more > 0.0 {
                high = strength;
            } else {
                low = strength;
            }
            // Newton's method, unless it leaves the interval.
            let next = strength - more / slope;
            let next = if low < next && next < high {
                next
            } else {
                (low + high) / 2.0
            };
            if (next - strength).abs() < 1e-9 {
                break;
            }
            strength = next;
        }
        Some(strength)
    }
}

impl AddAssign<&Scores> for Scores {
    fn add_assign(&mut self, other: &Scores) {
        for (rating, results) in &other.0 {
            self.add(*rating, *results);
        }
    }
}

fn points(results: Wdl) -> f64 {
    results.half_points() as f64 / 2.0
}

/// Returns the score from 0 to 1 that a player is expected to reach against an opponent with the rating `rating`.
fn expected_score(strength: f64, rating: f64) -> f64 {
    1.0 / (1.0 + 10_f64.powf((rating - strength) / 400.0))
}

/// Returns the derivative of the expected score by the strength of the player.
fn slope_of(expected: f64) -> f64 {
    std::f64::consts::LN_10 / 400.0 * expected * (1.0 - expected)
}

/// Returns the variance of the result of a game. `draws` is the share of draws in the other games. A game with a very
/// high or low expected score ends in a draw less often.
fn variance(expected: f64, draws: f64) -> f64 {
    let draws = draws.min(2.0 * expected.min(1.0 - expected));
    (expected * (1.0 - expected) - draws / 4.0).max(MIN_VARIANCE)
}

/// Returns what a player is expected to score in the games `part`, by the other games in `all`. Both contain the games
/// with each color.
pub(super) fn expectation(part: &[Scores; 2], all: &[Scores; 2]) -> Expectation {
    let mut sum = Expectation {
        points: 0.0,
        deviation: 0.0,
        games: 0,
    };
    let mut variances = 0.0;
    for (part, all) in part.iter().zip(all) {
        let (expected, variance, games) = of_color(part, &all.without(part));
        sum.points += expected;
        sum.games += games;
        variances += variance;
    }
    sum.deviation = variances.sqrt();
    sum
}

/// Returns the expected points in the games `part` with one color, the variance of the difference between these and the
/// actual points, and the number of games that can be compared with the games `others`.
fn of_color(part: &Scores, others: &Scores) -> (f64, f64, u64) {
    let (games, other) = (part.total(), others.total());
    if games.games() == 0 {
        return (0.0, 0.0, 0);
    }
    if other.games() == 0 {
        return (points(games), 0.0, 0);
    }
    let average = points(other) / other.games() as f64;
    let draws = other.draws as f64 / other.games() as f64;
    let strength = others.performance();
    let unrated = part.0.get(&0).copied().unwrap_or_default().games() as f64;
    let (mut expected, mut spread) = (unrated * average, unrated * variance(average, draws));
    // The average is itself a result of chance.
    let mut of_others = unrated * (variance(average, draws) / other.games() as f64).sqrt();
    let mut slope = 0.0;
    for (rating, results) in part.rated() {
        let games = results.games() as f64;
        let score = strength.map_or(average, |strength| expected_score(strength, rating));
        expected += games * score;
        spread += games * variance(score, draws);
        slope += games * slope_of(score);
    }
    if let Some(strength) = strength {
        // So is the performance: its variance follows from that of the other games.
        let (mut all, mut slopes) = (0.0, 0.0);
        for (rating, results) in others.rated() {
            let score = expected_score(strength, rating);
            all += results.games() as f64 * variance(score, draws);
            slopes += results.games() as f64 * slope_of(score);
        }
        of_others += slope / slopes * all.sqrt();
    } else {
        let rated = games.games() as f64 - unrated;
        of_others += rated * (variance(average, draws) / other.games() as f64).sqrt();
    }
    (expected, spread + of_others * of_others, games.games())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A game of a simulated player: the opening, the color, the rating of the opponent, and the result.
    type Game = (usize, usize, u16, Wdl);

    fn result(half_points: u64) -> Wdl {
        Wdl {
            wins: u64::from(half_points == 2),
            draws: u64::from(half_points == 1),
            losses: u64::from(half_points == 0),
        }
    }

    fn scores(games: &[Game], wanted: impl Fn(usize) -> bool) -> [Scores; 2] {
        let mut scores = [Scores::default(), Scores::default()];
        for (opening, color, rating, result) in games {
            if wanted(*opening) {
                scores[*color].add(*rating, *result);
            }
        }
        scores
    }

    /// Returns the numbers of compared and of marked openings.
    fn marked(games: &[Game]) -> (u64, u64) {
        let all = scores(games, |_| true);
        let (mut judged, mut marked) = (0, 0);
        for opening in 0..12 {
            let part = scores(games, |other| other == opening);
            let expected = expectation(&part, &all);
            if expected.games >= 10 {
                judged += 1;
                let actual = points(part[0].total()) + points(part[1].total());
                marked += u64::from((actual - expected.points).abs() > 1.2816 * expected.deviation);
            }
        }
        (judged, marked)
    }

    /// Returns the games of a player of the strength 2000 without weaknesses. Each opening has opponents of its own
    /// strength, and one opening is played in a third of the games.
    fn games_of_player(random: &mut fastrand::Rng, unrated: f64) -> Vec<Game> {
        let game = |_| {
            let opening = if random.u8(0..3) == 0 {
                0
            } else {
                random.usize(0..12)
            };
            let mut rating = 1700 + 50 * opening as u16 + random.u16(0..100);
            // White scores more.
            let color = random.usize(0..2);
            let strength = [2030.0, 1970.0][color];
            let expected = expected_score(strength, f64::from(rating));
            let draw = 0.3_f64.min(2.0 * expected.min(1.0 - expected));
            let at = random.f64();
            let half_points = match () {
                () if at < draw => 1,
                () if at < draw + expected - draw / 2.0 => 2,
                () => 0,
            };
            if random.f64() < unrated {
                rating = 0;
            }
            (opening, color, rating, result(half_points))
        };
        (0..500).map(game).collect()
    }

    /// The share of openings that chance marks is one in five, whatever the strength of the opponents.
    #[test]
    fn chance_marks_one_opening_in_five() {
        let mut random = fastrand::Rng::with_seed(67);
        let (mut judged, mut found) = (0, 0);
        let (mut judged_shuffled, mut shuffled) = (0, 0);
        for _ in 0..400 {
            let mut games = games_of_player(&mut random, 0.0);
            let (of, marks) = marked(&games);
            (judged, found) = (judged + of, found + marks);
            // Shuffled results, without ratings: no opening is different from another.
            let mut results: Vec<Wdl> = games.iter().map(|game| game.3).collect();
            random.shuffle(&mut results);
            for (game, result) in games.iter_mut().zip(results) {
                (game.2, game.3) = (0, result);
            }
            let (of, marks) = marked(&games);
            (judged_shuffled, shuffled) = (judged_shuffled + of, shuffled + marks);
        }
        let share = |found: u64, judged: u64| found as f64 / judged as f64;
        let shares = [share(found, judged), share(shuffled, judged_shuffled)];
        assert!(judged > 4000 && judged_shuffled > 4000);
        assert!(
            shares.iter().all(|share| (0.18..0.22).contains(share)),
            "{shares:?}"
        );
        // An average would mark the openings against strong and against weak opponents.
        let games = games_of_player(&mut random, 0.0);
        let unrated = games
            .iter()
            .map(|(opening, color, _, result)| (*opening, *color, 0, *result));
        assert!(marked(&unrated.collect::<Vec<_>>()).1 > 5);
    }

    /// An opening in which the player is 100 points weaker is found more often than by chance.
    #[test]
    fn a_weakness_is_found() {
        let mut random = fastrand::Rng::with_seed(4);
        let mut found = 0;
        for _ in 0..100 {
            let mut games = games_of_player(&mut random, 0.2);
            for game in games
                .iter_mut()
                .filter(|game| game.0 == 0 && game.3.wins == 1)
            {
                if random.f64() < 0.3 {
                    game.3 = result(0);
                }
            }
            let part = scores(&games, |opening| opening == 0);
            let expected = expectation(&part, &scores(&games, |_| true));
            let actual = points(part[0].total()) + points(part[1].total());
            found += u32::from(actual < expected.points - 1.2816 * expected.deviation);
        }
        assert!(found > 90, "{found}");
    }

    /// Calculates the expected points and their deviation game by game, with a performance that is found by halving.
    #[test]
    fn expectations_are_those_of_a_calculation_game_by_game() {
        let mut random = fastrand::Rng::with_seed(11);
        for unrated in [0.0, 0.3, 1.0] {
            let games = games_of_player(&mut random, unrated);
            let found = expectation(
                &scores(&games, |opening| opening == 3),
                &scores(&games, |_| true),
            );
            let (mut expected, mut variances) = (0.0, 0.0);
            for color in 0..2 {
                let of_color = || games.iter().filter(move |game| game.1 == color);
                let others: Vec<(u16, f64)> = of_color()
                    .filter(|game| game.0 != 3)
                    .map(|game| (game.2, points(game.3)))
                    .collect();
                let rated: Vec<_> = others.iter().filter(|game| game.0 > 0).collect();
                let (mut low, mut high) = (0.0, 4000.0);
                for _ in 0..100 {
                    let middle = (low + high) / 2.0;
                    let sum = |of: &dyn Fn(&(u16, f64)) -> f64| {
                        rated.iter().map(|game| of(game)).sum::<f64>()
                    };
                    let by_rating = sum(&|game| expected_score(middle, f64::from(game.0)));
                    if by_rating > sum(&|game| game.1) {
                        high = middle;
                    } else {
                        low = middle;
                    }
                }
                let number = others.len() as f64;
                let average = others.iter().map(|game| game.1).sum::<f64>() / number;
                let draws = others.iter().filter(|game| game.1 == 0.5).count() as f64 / number;
                let score = |rating: u16| match rating {
                    0 => average,
                    rating => expected_score(low, f64::from(rating)),
                };
                let mut influence = 0.0;
                let slopes: f64 = rated.iter().map(|game| slope_of(score(game.0))).sum();
                let spread: f64 = rated
                    .iter()
                    .map(|game| variance(score(game.0), draws))
                    .sum();
                for game in of_color().filter(|game| game.0 == 3) {
                    let score = score(game.2);
                    expected += score;
                    variances += variance(score, draws);
                    influence += if game.2 == 0 {
                        (variance(score, draws) / number).sqrt()
                    } else {
                        slope_of(score) / slopes * spread.sqrt()
                    };
                }
                variances += influence * influence;
            }
            assert!(
                (found.points - expected).abs() < 1e-6,
                "{found:?} {expected}"
            );
            assert!(
                (found.deviation - variances.sqrt()).abs() < 1e-6,
                "{found:?}"
            );
        }
    }

    #[test]
    fn extreme_scores_and_missing_games_have_finite_expectations() {
        let game = |opening, rating, half_points| (opening, 0, rating, result(half_points));
        let of = |games: &[Game]| {
            expectation(
                &scores(games, |opening| opening == 0),
                &scores(games, |_| true),
            )
        };
        // Only wins: a win is expected against any opponent.
        let wins = of(&[game(0, 2000, 2), game(1, 2000, 2), game(1, 1900, 2)]);
        assert!(
            wins.points > 0.98 && wins.points < 1.0 && wins.deviation > 0.1,
            "{wins:?}"
        );
        // Games can be compared only with other games of the same color.
        let alone = of(&[game(0, 2000, 1), game(0, 0, 2)]);
        assert_eq!(
            alone,
            Expectation {
                points: 1.5,
                deviation: 0.0,
                games: 0
            }
        );
        // The average of the other games is expected if none of them has a rating.
        let unrated = of(&[game(0, 2000, 0), game(1, 0, 2), game(1, 0, 1)]);
        assert_eq!(unrated.points, 0.75);
        assert_eq!(of(&[game(1, 2000, 1)]).games, 0);
    }
}
