//! Finds lines in which a player scores worse than the player's other games predict, and estimates how many such lines
//! chance alone would produce.
//!
//! A difference between the score after a line and the [expected score](super::expectation) is partly due to chance. It
//! is therefore reduced by the empirical Bayes estimate of B. Efron and C. Morris (Data Analysis Using Stein's
//! Estimator and Its Generalizations, 1975): the difference is multiplied by t²/(t² + s²), where t is the standard
//! deviation of the true differences, and s the standard deviation of the differences that chance causes.
//!
//! Many lines are judged, and the games of a line also belong to all shorter lines with which it begins. The number of
//! lines that chance would produce is therefore simulated: the results of all games are drawn at random with the
//! expected scores, and the same rules choose lines from them.

use rayon::prelude::*;

use super::{
    expectation::{Expectation, Form, QUANTILE},
    random::Random,
};
use crate::json::rounded;

/// The standard deviation of the true differences between scores and expected scores. For 927 openings of 60 masters,
/// with 10 to 99 games each, the most likely value is 0.037.
const TRUE_DEVIATION: f64 = 0.04;

/// The minimum number of points per game that a listed line is expected to cost the player.
const MIN_LISTED_LOSS: f64 = 0.005;

/// The number of simulations. With 400 simulations, the standard error of the mean number of lines is less than 0.1.
const SIMULATIONS: u64 = 400;

/// A line whose score is compared with the expected score.
pub(super) struct JudgedLine {
    /// The moves of the line in UCI notation.
    pub play: Vec<String>,
    /// The probability that a game follows the line.
    pub chance: f64,
    /// The points that the player was expected to score in the finished games that reached the end of the line.
    pub expected: Expectation,
    /// The indexes of these games in the list of all of the player's finished games, in ascending order.
    pub games: Vec<u32>,
}

/// Returns the number of points per game that a line is expected to cost a player. `chance` is the probability of the
/// line, and `lost` is the number of points that the player scored less than `expected`. Returns `None` if the loss may
/// be due to chance, or if it is small.
pub(super) fn expected_loss(chance: f64, lost: f64, expected: Expectation) -> Option<f64> {
    let games = expected.games as f64;
    let (lost, deviation) = (lost / games, expected.deviation / games);
    let truth = TRUE_DEVIATION * TRUE_DEVIATION;
    let loss = rounded(chance * lost * truth / (truth + deviation * deviation));
    (lost > QUANTILE * deviation && loss >= MIN_LISTED_LOSS).then_some(loss)
}

/// Returns `true` if one of two lines of moves is the beginning of the other.
pub(super) fn are_related(one: &[String], other: &[String]) -> bool {
    one.starts_with(other) || other.starts_with(one)
}

/// Returns how many of `lines` would be listed, on average, if the player had no weaknesses. At most `most` lines are
/// listed. `form` describes the player's results in all finished games, and `ratings` contains the ratings of the
/// opponents in these games, 0 if unknown.
pub(super) fn listed_by_chance(
    form: &Form,
    ratings: &[u16],
    lines: &[JudgedLine],
    most: usize,
) -> f64 {
    if lines.is_empty() || most == 0 {
        return 0.0;
    }
    let games = ratings
        .iter()
        .map(|rating| SimulatedGame::new(form, *rating));
    let games: Vec<SimulatedGame> = games.collect();
    let simulated = |number: u64| {
        let mut random = Random::new(number);
        let lost: Vec<f64> = games
            .iter()
            .map(|game| game.lost(random.next_number()))
            .collect();
        let sum = |numbers: &mut dyn Iterator<Item = usize>| {
            let mut sum = LostPoints::default();
            numbers.for_each(|number| sum.add(&games[number], lost[number]));
            sum
        };
        let all = sum(&mut (0..games.len()));
        let loss = |line: &JudgedLine| {
            let of_line = sum(&mut line.games.iter().map(|number| *number as usize));
            expected_loss(line.chance, of_line.compared_with(&all), line.expected)
        };
        let losses = lines.iter().filter_map(|line| Some((loss(line)?, line)));
        let mut losses: Vec<(f64, &JudgedLine)> = losses.collect();
        losses
            .sort_by(|(a, one), (b, other)| b.total_cmp(a).then_with(|| one.play.cmp(&other.play)));
        let mut listed: Vec<&JudgedLine> = Vec::new();
        for (_, line) in losses {
            if listed.len() < most && !listed.iter().any(|one| are_related(&one.play, &line.play)) {
                listed.push(line);
            }
        }
        listed.len() as u64
    };
    let listed: u64 = (1..=SIMULATIONS).into_par_iter().map(simulated).sum();
    listed as f64 / SIMULATIONS as f64
}

/// The probabilities of the results of a game, from which a simulation draws a result.
struct SimulatedGame {
    expected: f64,
    draw_chance: f64,
    /// The derivative of the expected score with respect to the player's strength, or `None` if the expected score is
    /// an average and does not depend on it.
    slope: Option<f64>,
}

impl SimulatedGame {
    fn new(form: &Form, rating: u16) -> SimulatedGame {
        let expected = form.expected(rating);
        SimulatedGame {
            expected,
            draw_chance: form.draw_chance(expected),
            slope: form.uses_rating(rating).then(|| form.slope(rating)),
        }
    }

    /// Returns by how many points a simulated result is below the expected score. `random`, a random number from 0 to
    /// 1, determines the result.
    fn lost(&self, random: f64) -> f64 {
        let wins = self.expected - self.draw_chance / 2.0;
        self.expected
            - match () {
                () if random < wins => 1.0,
                () if random < wins + self.draw_chance => 0.5,
                () => 0.0,
            }
    }
}

/// The difference between the expected and the actual points in some simulated games.
#[derive(Default)]
struct LostPoints {
    lost: f64,
    games: f64,
    expected: f64,
    /// The value of `lost` for the games whose expected score follows from the opponent's rating.
    lost_by_rating: f64,
    games_by_rating: f64,
    expected_by_rating: f64,
    /// The sum of the slopes of the games whose expected score follows from the opponent's rating.
    slopes: f64,
}

impl LostPoints {
    fn add(&mut self, game: &SimulatedGame, lost: f64) {
        self.lost += lost;
        self.games += 1.0;
        self.expected += game.expected;
        if let Some(slope) = game.slope {
            self.lost_by_rating += lost;
            self.games_by_rating += 1.0;
            self.expected_by_rating += game.expected;
            self.slopes += slope;
        }
    }

    /// Returns how many points the player lost in these games, compared with a prediction from the other games of
    /// `all`. To first order, the strength that the other games suggest differs from the player's form by the points
    /// lost in them, divided by the sum of their slopes.
    fn compared_with(&self, all: &LostPoints) -> f64 {
        let (mut lost, mut by_average, mut expected) = (self.lost, self.games, self.expected);
        if all.games_by_rating > self.games_by_rating {
            let lost_by_others = all.lost_by_rating - self.lost_by_rating;
            lost -= self.slopes * lost_by_others / (all.slopes - self.slopes);
            by_average -= self.games_by_rating;
            expected -= self.expected_by_rating;
        }
        let others = all.games - self.games;
        if others > 0.0 {
            let scored_by_others = all.expected - all.lost - (self.expected - self.lost);
            lost += by_average * scored_by_others / others - expected;
        }
        lost
    }
}

#[cfg(test)]
mod tests {
    use shakmaty::Color;

    use super::*;
    use crate::{explore::explorer::expectation::PlayerScores, games::results::Wdl};

    /// The points that a player loses in some games, compared with a prediction from the other games, are nearly those
    /// of an exact calculation.
    #[test]
    fn predictions_follow_the_other_simulated_games() {
        let mut random = Random::new(5);
        for unrated in [0.0, 0.4, 1.0] {
            let mut rating = || match random.next_number() < unrated {
                true => 0,
                false => 1800 + (600.0 * random.next_number()) as u16,
            };
            let ratings: Vec<u16> = (0..200).map(|_| rating()).collect();
            let add = |scores: &mut PlayerScores, rating: u16, lost: f64, expected: f64| {
                let half_points = (2.0 * (expected - lost)).round() as u64;
                let result = Wdl {
                    wins: u64::from(half_points == 2),
                    draws: u64::from(half_points == 1),
                    losses: u64::from(half_points == 0),
                };
                scores.add(Color::White, rating, result);
            };
            let mut before = PlayerScores::default();
            for (number, rating) in ratings.iter().enumerate() {
                add(&mut before, *rating, 0.0, [0.0, 0.5, 1.0][number % 3]);
            }
            let form = before.form(Color::White).unwrap();
            let (mut part, mut all) = (PlayerScores::default(), PlayerScores::default());
            let (mut lost_in_part, mut lost_in_all) =
                (LostPoints::default(), LostPoints::default());
            let mut points = 0.0;
            for (number, rating) in ratings.iter().enumerate() {
                let game = SimulatedGame::new(&form, *rating);
                let lost = game.lost(random.next_number());
                add(&mut all, *rating, lost, game.expected);
                lost_in_all.add(&game, lost);
                if number < 50 {
                    add(&mut part, *rating, lost, game.expected);
                    lost_in_part.add(&game, lost);
                    points += game.expected - lost;
                }
            }
            let expected = part.expectation(&all);
            let exact = expected.points - points;
            let nearly = lost_in_part.compared_with(&lost_in_all);
            assert!(
                (exact - nearly).abs() < 0.1 * expected.deviation,
                "{exact} {nearly}"
            );
        }
    }

    #[test]
    fn a_small_loss_or_one_by_chance_is_none() {
        let expected = Expectation {
            points: 50.0,
            deviation: 4.0,
            games: 100,
        };
        // Chance explains a difference of 1.2816 standard deviations.
        assert_eq!(expected_loss(1.0, 5.1, expected), None);
        let loss = expected_loss(1.0, 6.0, expected).unwrap();
        let share = TRUE_DEVIATION.powi(2) / (TRUE_DEVIATION.powi(2) + 0.04_f64.powi(2));
        assert!((loss - 0.06 * share).abs() < 1e-6, "{loss}");
        assert_eq!(expected_loss(0.05, 6.0, expected), None);
        assert_eq!(expected_loss(1.0, -6.0, expected), None);
    }

    #[test]
    fn nothing_is_listed_by_chance_without_lines() {
        let mut scores = PlayerScores::default();
        scores.add(
            Color::White,
            2000,
            Wdl {
                wins: 0,
                draws: 1,
                losses: 0,
            },
        );
        let form = scores.form(Color::White).unwrap();
        assert_eq!(listed_by_chance(&form, &[2000], &[], 7), 0.0);
    }
}
