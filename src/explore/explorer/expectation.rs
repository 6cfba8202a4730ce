//! Predicts how many points a player scores in some games from the player's other games.
//!
//! In games against rated opponents, the expected score follows from the ratings by the logistic curve of Elo's system
//! (A. E. Elo, The Rating of Chessplayers, Past and Present, 1978, chapter 8): a player of the strength `p` scores
//! 1/(1 + 10^((r - p)/400)) on average against an opponent with the rating `r`. The strength is the player's
//! performance in the other games with the same color: the rating for which the expected points equal the actual
//! points. In games against opponents without a rating, the expected score is the average of the other games with the
//! same color.

use std::{collections::BTreeMap, ops::AddAssign};

use shakmaty::Color;

use super::open_index::GameSummary;
use crate::games::results::Wdl;

/// The 90 % quantile of the standard normal distribution. An 80 % confidence interval extends this many standard
/// deviations to each side, which leaves out 10 % of the values on each side.
pub(super) const QUANTILE: f64 = 1.2816;

/// The minimum number of finished games for judging a score. With fewer games, all results may be equal; the deviation
/// of the expected score is then too small for a confidence interval.
pub(super) const FEW_GAMES: u64 = 10;

/// The minimum variance of a game's result. Without this limit, a player who has only won would be expected to win each
/// game.
const MIN_VARIANCE: f64 = 0.02;

/// The maximum difference between a performance rating and the nearest rating of an opponent, as in FIDE's table.
const MAX_DIFFERENCE: f64 = 800.0;

/// The maximum number of steps in the search for a performance rating. Each step at least halves the interval that
/// contains it.
const MAX_STEPS: usize = 60;

/// The results of a player's finished games with one color, keyed by the rating of the opponent. An unknown rating is
/// 0.
#[derive(Clone, Default, Debug)]
pub(super) struct Scores(BTreeMap<u16, Wdl>);

/// The results of a player's finished games with both colors. The array is indexed by the color of the player (`Color
/// as usize`).
#[derive(Clone, Default, Debug)]
pub(super) struct PlayerScores([Scores; 2]);

/// The points that a player is expected to score in some games.
#[derive(Copy, Clone, PartialEq, Default, Debug)]
pub(super) struct Expectation {
    /// The expected points. A game that cannot be compared with other games counts with its actual points.
    pub points: f64,
    /// The standard deviation of the difference between the actual and the expected points.
    pub deviation: f64,
    /// The number of games that can be compared with other games.
    pub games: u64,
}

impl Scores {
    /// Adds the result of a finished game against an opponent with the rating `rating`, which is 0 if it is unknown.
    fn add(&mut self, rating: u16, result: Wdl) {
        *self.0.entry(rating).or_default() += result;
    }

    fn total(&self) -> Wdl {
        let mut total = Wdl::default();
        for results in self.0.values() {
            total += *results;
        }
        total
    }

    /// Returns these results minus the results in `part`, which must be a part of them.
    fn without(&self, part: &Scores) -> Scores {
        let rest = self.0.iter().map(|(rating, all)| {
            let less = part.0.get(rating).copied().unwrap_or_default();
            let rest = Wdl {
                wins: all.wins.saturating_sub(less.wins),
                draws: all.draws.saturating_sub(less.draws),
                losses: all.losses.saturating_sub(less.losses),
            };
            (*rating, rest)
        });
        Scores(rest.filter(|(_, rest)| rest.games() > 0).collect())
    }

    fn rated(&self) -> impl Iterator<Item = (f64, Wdl)> {
        let rated = self.0.iter().filter(|(rating, _)| **rating > 0);
        rated.map(|(rating, results)| (f64::from(*rating), *results))
    }

    /// Returns the performance rating in the games against rated opponents: the rating for which the expected points
    /// equal the actual points. Returns `None` if no opponent is rated.
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

impl PlayerScores {
    /// Adds the result of a finished game in which the player has the color `player`. `rating` is the rating of the
    /// opponent, or 0 if it is unknown.
    pub(super) fn add(&mut self, player: Color, rating: u16, result: Wdl) {
        self.0[player as usize].add(rating, result);
    }

    /// Adds the result of a game in which the player has the color `player`. Ignores an unfinished game.
    pub(super) fn add_game(&mut self, game: &GameSummary, player: Color) {
        if game.has_result() {
            let result = Wdl::of_game(game.winner(), player);
            self.add(player, game.elo_of(!player), result);
        }
    }

    /// Returns the form of the player with the color `player`, from which scores in other games can be predicted.
    /// Returns `None` if there are no games with this color.
    pub(super) fn form(&self, player: Color) -> Option<Form> {
        Form::of(&self.0[player as usize])
    }

    /// Returns the points that the player is expected to score in these games. The prediction is based on the other
    /// games in `all`, which must include these games.
    pub(super) fn expectation(&self, all: &PlayerScores) -> Expectation {
        let mut sum = Expectation::default();
        let mut variances = 0.0;
        for (part, all) in self.0.iter().zip(&all.0) {
            let (expected, variance, games) = of_color(part, &all.without(part));
            sum.points += expected;
            sum.games += games;
            variances += variance;
        }
        sum.deviation = variances.sqrt();
        sum
    }
}

impl AddAssign<&PlayerScores> for PlayerScores {
    fn add_assign(&mut self, other: &PlayerScores) {
        for (sum, more) in self.0.iter_mut().zip(&other.0) {
            *sum += more;
        }
    }
}

/// A player's strength with one color, from which the expected scores of other games with this color are calculated.
#[derive(Copy, Clone, Debug)]
pub(super) struct Form {
    /// The number of games.
    pub games: f64,
    /// The average score in the games, from 0 to 1.
    average: f64,
    /// The share of games that were drawn.
    draws: f64,
    /// The performance rating against rated opponents, or `None` if no opponent is rated.
    strength: Option<f64>,
    /// The sum of [`slope`](Form::slope) over the games against rated opponents.
    pub slopes: f64,
    /// The variance of the points in the games against rated opponents.
    variance: f64,
}

impl Form {
    fn of(scores: &Scores) -> Option<Form> {
        let total = scores.total();
        if total.games() == 0 {
            return None;
        }
        let games = total.games() as f64;
        let mut form = Form {
            games,
            average: points(total) / games,
            draws: total.draws as f64 / games,
            strength: scores.performance(),
            slopes: 0.0,
            variance: 0.0,
        };
        for (rating, results) in scores.0.iter().filter(|(rating, _)| **rating > 0) {
            let games = results.games() as f64;
            form.slopes += games * form.slope(*rating);
            form.variance += games * variance(form.expected(*rating), form.draws);
        }
        Some(form)
    }

    /// Returns `true` if the expected score against this opponent depends on the opponent's rating.
    pub(super) fn uses_rating(&self, rating: u16) -> bool {
        self.strength.is_some() && rating > 0
    }

    /// Returns the expected score, from 0 to 1, against an opponent with the rating `rating`. An unknown rating is 0.
    pub(super) fn expected(&self, rating: u16) -> f64 {
        match self.strength {
            Some(strength) if rating > 0 => expected_score(strength, rating.into()),
            _ => self.average,
        }
    }

    /// Returns the derivative of the expected score with respect to the strength of the player.
    pub(super) fn slope(&self, rating: u16) -> f64 {
        slope_of(self.expected(rating))
    }

    /// Returns the probability of a draw in a game with the expected score `expected`. The higher or lower the expected
    /// score, the less often games are drawn.
    pub(super) fn draw_chance(&self, expected: f64) -> f64 {
        draw_chance(expected, self.draws)
    }
}

fn points(results: Wdl) -> f64 {
    results.half_points() as f64 / 2.0
}

/// Returns the expected score, from 0 to 1, of a player with the given strength against an opponent with the rating
/// `rating`.
fn expected_score(strength: f64, rating: f64) -> f64 {
    1.0 / (1.0 + 10_f64.powf((rating - strength) / 400.0))
}

/// Returns the derivative of the expected score with respect to the strength of the player.
fn slope_of(expected: f64) -> f64 {
    std::f64::consts::LN_10 / 400.0 * expected * (1.0 - expected)
}

fn draw_chance(expected: f64, draws: f64) -> f64 {
    draws.min(2.0 * expected.min(1.0 - expected))
}

/// Returns the variance of the result of a game. `draws` is the share of draws in the other games.
fn variance(expected: f64, draws: f64) -> f64 {
    (expected * (1.0 - expected) - draw_chance(expected, draws) / 4.0).max(MIN_VARIANCE)
}

/// Predicts the score in the games `part` with one color from the games `others` with this color. Returns the expected
/// points, the variance of the difference between the expected and the actual points, and the number of games that can
/// be compared with `others`.
fn of_color(part: &Scores, others: &Scores) -> (f64, f64, u64) {
    let games = part.total();
    if games.games() == 0 {
        return (0.0, 0.0, 0);
    }
    let Some(form) = Form::of(others) else {
        return (points(games), 0.0, 0);
    };
    let (mut expected, mut spread) = (0.0, 0.0);
    // The numbers from which the expected points follow, the average and the performance, are themselves results of
    // chance. Their variance follows from that of the other games.
    let (mut by_average, mut slope) = (0.0, 0.0);
    for (rating, results) in &part.0 {
        let games = results.games() as f64;
        let score = form.expected(*rating);
        expected += games * score;
        spread += games * variance(score, form.draws);
        if form.uses_rating(*rating) {
            slope += games * form.slope(*rating);
        } else {
            by_average += games;
        }
    }
    let mut of_others = by_average * (variance(form.average, form.draws) / form.games).sqrt();
    if slope > 0.0 {
        of_others += slope / form.slopes * form.variance.sqrt();
    }
    (expected, spread + of_others * of_others, games.games())
}

/// Returns the 80 % confidence interval of a player's score in some games, in percent, or `None` if no game has a
/// result. `stats` contains the player's results in these games.
///
/// The width of the interval follows from the deviation of `expected`. If there are no other games to compare with, it
/// follows from the results themselves, to which a win and a loss are added. For [few games](FEW_GAMES), the larger of
/// both widths is used.
pub(super) fn score_range(stats: Wdl, expected: Expectation) -> Option<[f64; 2]> {
    let games = stats.games() as f64;
    if games == 0.0 {
        return None;
    }
    let score = points(stats) / games;
    let by_results = {
        let mean = (score * games + 1.0) / (games + 2.0);
        let squares = (stats.wins as f64 + stats.draws as f64 / 4.0 + 1.0) / (games + 2.0);
        ((squares - mean * mean) / games).sqrt()
    };
    let deviation = match expected.games {
        0 => by_results,
        _ if stats.games() < FEW_GAMES => by_results.max(expected.deviation / games),
        _ => expected.deviation / games,
    };
    let half = QUANTILE * deviation;
    Some([score - half, score + half].map(|end| 100.0 * end.clamp(0.0, 1.0)))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

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

    fn scores(games: &[Game], wanted: impl Fn(usize) -> bool) -> PlayerScores {
        let mut scores = PlayerScores::default();
        for (opening, color, rating, result) in games {
            if wanted(*opening) {
                scores.0[*color].add(*rating, *result);
            }
        }
        scores
    }

    fn total_points(scores: &PlayerScores) -> f64 {
        scores.0.iter().map(|scores| points(scores.total())).sum()
    }

    /// Returns the numbers of compared and of marked openings.
    fn marked(games: &[Game]) -> (u64, u64) {
        let all = scores(games, |_| true);
        let (mut judged, mut marked) = (0, 0);
        for opening in 0..12 {
            let part = scores(games, |other| other == opening);
            let expected = part.expectation(&all);
            if expected.games >= FEW_GAMES {
                judged += 1;
                let difference = total_points(&part) - expected.points;
                marked += u64::from(difference.abs() > QUANTILE * expected.deviation);
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
            let expected = part.expectation(&scores(&games, |_| true));
            let difference = total_points(&part) - expected.points;
            found += u32::from(difference < -QUANTILE * expected.deviation);
        }
        assert!(found > 90, "{found}");
    }

    /// Calculates the expected points and their deviation game by game, with a performance that is found by halving.
    #[test]
    fn expectations_are_those_of_a_calculation_game_by_game() {
        let mut random = fastrand::Rng::with_seed(11);
        for unrated in [0.0, 0.3, 1.0] {
            let games = games_of_player(&mut random, unrated);
            let part = scores(&games, |opening| opening == 3);
            let found = part.expectation(&scores(&games, |_| true));
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
            let part = scores(games, |opening| opening == 0);
            part.expectation(&scores(games, |_| true))
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

    fn stats(wins: u64, draws: u64, losses: u64) -> Wdl {
        Wdl {
            wins,
            draws,
            losses,
        }
    }

    fn expected(points: f64, deviation: f64, games: u64) -> Expectation {
        Expectation {
            points,
            deviation,
            games,
        }
    }

    #[test]
    fn ranges_of_scores() {
        assert_eq!(score_range(stats(0, 0, 0), expected(0.0, 0.0, 0)), None);
        let range = score_range(stats(5, 4, 1), expected(5.0, 1.5, 10)).unwrap();
        // The ends are not rounded, because each display rounds them.
        assert!((range[0] - (70.0 - 10.0 * 1.2816 * 1.5)).abs() < 1e-9);
        assert!((range[1] - (70.0 + 10.0 * 1.2816 * 1.5)).abs() < 1e-9);
        // One win says little, even if the player won the other games.
        let range = score_range(stats(1, 0, 0), expected(1.0, 0.2, 1)).unwrap();
        assert!(range[0] < 45.0 && range[1] == 100.0, "{range:?}");
        // Ranges stay between 0 and 100 percent, and equal results have one, too.
        let range = score_range(stats(1000, 0, 0), expected(0.0, 0.0, 0)).unwrap();
        assert!(range[0] < 99.9 && range[1] == 100.0, "{range:?}");
    }

    proptest! {
        #[test]
        fn mirrored_results_have_mirrored_ranges(
            wins in 0..40u64, draws in 0..40u64, losses in 0..40u64, deviation in 0.0..=9.0, compared in 0..2u64,
        ) {
            let games = (wins + draws + losses) as f64;
            let of = |stats| score_range(stats, expected(0.0, deviation, compared));
            let (range, mirrored) = (of(stats(wins, draws, losses)), of(stats(losses, draws, wins)));
            prop_assert_eq!(range.is_some(), games > 0.0);
            if let (Some([low, high]), Some([mirrored_low, mirrored_high])) = (range, mirrored) {
                prop_assert!((low + mirrored_high - 100.0).abs() < 1e-9, "{low} {mirrored_high}");
                prop_assert!((high + mirrored_low - 100.0).abs() < 1e-9, "{high} {mirrored_low}");
            }
        }
    }
}
