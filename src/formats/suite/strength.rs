//! Estimates the difference in strength between two players from the results of their games, as Elo, normalized Elo,
//! the likelihood of superiority (LOS), and the log-likelihood ratio (LLR) of an SPRT.
//!
//! The page `docs/engine-tester.md` explains the formulas and names their sources.

use std::f64::consts::{LN_10, SQRT_2};

use serde::{Serialize, Serializer, ser::SerializeStruct};

use super::Pentanomial;
use crate::games::results::Wdl;

/// A sequential probability ratio test (SPRT), which decides between two hypotheses about the difference in strength
/// between two players: the hypothesis H0 that it is `elo0`, and the hypothesis H1 that it is `elo1`.
#[derive(Copy, Clone, PartialEq, Debug)]
pub struct Sprt {
    elo0: f64,
    elo1: f64,
    alpha: f64,
    beta: f64,
    model: SprtModel,
}

/// The unit of the two differences in strength that an SPRT compares.
#[derive(Copy, Clone, PartialEq, Eq, Default, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum SprtModel {
    /// Normalized Elo.
    #[default]
    Normalized,
    /// Logistic Elo, the unit of ratings.
    Logistic,
}

impl Sprt {
    /// The largest difference in strength, in Elo, that a hypothesis of an SPRT may assume. For larger differences, the
    /// iteration that calculates the log-likelihood ratio may not converge.
    const MAX_ELO: f64 = 200.0;

    /// Creates a test. `alpha` is the probability that the test accepts H1 if H0 is true, and `beta` is the probability
    /// that it accepts H0 if H1 is true. H0 and H1 are the hypotheses that the difference in strength is `elo0` or
    /// `elo1`.
    ///
    /// # Errors
    ///
    /// Returns an error message if `elo0` is not less than `elo1`, if one of them lies outside of -200 to 200, if
    /// `alpha` or `beta` does not lie between 0 and 1, or if their sum is 1 or more.
    pub fn new(
        [elo0, elo1]: [f64; 2],
        [alpha, beta]: [f64; 2],
        model: SprtModel,
    ) -> Result<Sprt, &'static str> {
        let is_elo = |elo: f64| elo.abs() <= Sprt::MAX_ELO;
        let is_probability = |value: f64| value > 0.0 && value < 1.0;
        if !is_elo(elo0) || !is_elo(elo1) {
            Err("use two differences in Elo from -200 to 200, such as 0,2")
        } else if elo0 >= elo1 {
            Err("put the lower difference first, as in 0,2")
        } else if !is_probability(alpha) || !is_probability(beta) || alpha + beta >= 1.0 {
            Err(
                "use error probabilities between 0 and 1 whose sum is less than 1, such as 0.05,0.05",
            )
        } else {
            Ok(Sprt {
                elo0,
                elo1,
                alpha,
                beta,
                model,
            })
        }
    }

    /// Returns the same test with the unit `model` for the differences in strength.
    pub fn with_model(self, model: SprtModel) -> Sprt {
        Sprt { model, ..self }
    }

    /// Returns the differences in strength that the hypotheses H0 and H1 assume.
    pub fn elos(&self) -> [f64; 2] {
        [self.elo0, self.elo1]
    }

    /// Returns the unit of the differences in strength.
    pub fn model(&self) -> SprtModel {
        self.model
    }

    /// Returns the two bounds of the log-likelihood ratio (LLR). The test accepts the hypothesis H0 if the LLR is at
    /// most the lower bound, and H1 if it is at least the upper bound.
    pub fn bounds(&self) -> [f64; 2] {
        let Sprt { alpha, beta, .. } = self;
        [(beta / (1.0 - alpha)).ln(), ((1.0 - beta) / alpha).ln()]
    }

    /// Returns the log-likelihood ratio of H1 to H0, or `None` if the calculation does not converge.
    ///
    /// A score that never occurred is counted 0.001 times, as in fishtest and fastchess. Without these counts, the mean
    /// that a hypothesis requires might be impossible.
    fn llr(&self, counts: &[u64], games: f64) -> Option<f64> {
        let counts = counts.iter().map(|count| match count {
            0 => 1e-3,
            count => *count as f64,
        });
        let observed = Distribution::new(counts)?;
        let likeliest = |elo: f64| match self.model {
            SprtModel::Normalized => {
                observed.likeliest_with_ratio(elo * games.sqrt() / NORMALIZED_ELO)
            }
            SprtModel::Logistic => {
                observed.likeliest_with_mean(1.0 / (1.0 + 10f64.powf(-elo / 400.0)))
            }
        };
        let (first, second) = (likeliest(self.elo0)?, likeliest(self.elo1)?);
        let shares = observed.shares.iter().zip(first.iter().zip(&second));
        let mean: f64 = shares.map(|(share, (p0, p1))| share * (p1 / p0).ln()).sum();
        Some(observed.total * mean)
    }
}

/// Serializes the parameters by name, and the bounds of the LLR as `lower` and `upper`.
impl Serialize for Sprt {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let [lower, upper] = self.bounds();
        let mut fields = serializer.serialize_struct("Sprt", 7)?;
        fields.serialize_field("elo0", &self.elo0)?;
        fields.serialize_field("elo1", &self.elo1)?;
        fields.serialize_field("alpha", &self.alpha)?;
        fields.serialize_field("beta", &self.beta)?;
        fields.serialize_field("model", &self.model)?;
        fields.serialize_field("lower", &lower)?;
        fields.serialize_field("upper", &upper)?;
        fields.end()
    }
}

/// The difference in strength between two players, estimated from the results of one of them. A field is `None` if the
/// results do not determine it. For example, the difference is unlimited if a player won all games.
#[derive(Copy, Clone, PartialEq, Default, Debug, Serialize)]
pub struct Strength {
    /// The kind of results from which the strength was estimated, pairs or single games, or `None` if there are no
    /// games.
    pub estimated_from: Option<Sample>,
    /// The difference in logistic Elo.
    pub elo: Option<f64>,
    /// Half the length of the 95 % confidence interval of `elo`. `None` if all pairs or games have the same result.
    pub elo_error: Option<f64>,
    /// The lower end of the 95 % confidence interval of `elo`.
    pub elo_low: Option<f64>,
    /// The upper end of the 95 % confidence interval of `elo`.
    pub elo_high: Option<f64>,
    /// The difference in normalized Elo.
    pub nelo: Option<f64>,
    /// Half the length of the 95 % confidence interval of `nelo`.
    pub nelo_error: Option<f64>,
    /// The likelihood of superiority: the probability, in percent, that the first player is the stronger one. `None` if
    /// all pairs or games have the same result.
    pub los: Option<f64>,
    /// The share of pairs with one point for each player, in percent, or the share of draws if the strength was
    /// estimated from single games.
    pub draw_ratio: Option<f64>,
    /// The log-likelihood ratio of the SPRT. `None` if no SPRT was requested.
    pub llr: Option<f64>,
}

/// The kind of results from which a difference in strength is estimated.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Sample {
    /// Pairs of games, which have five possible numbers of points (pentanomial).
    Pairs,
    /// Single games, which are won, drawn or lost (trinomial).
    Games,
}

/// The factor between a difference in normalized Elo and the ratio of the mean advantage to the standard deviation.
const NORMALIZED_ELO: f64 = 800.0 / LN_10;

/// The number of standard deviations on each side of the mean that contain 95 % of a normal distribution.
const DEVIATIONS_95: f64 = 1.959_963_984_540_054;

impl Strength {
    /// Estimates the difference in strength between two players from pairs of games or, if there are no pairs, from
    /// single games.
    pub(super) fn estimate(pairs: Pentanomial, games: Wdl, sprt: Option<&Sprt>) -> Strength {
        if pairs.pairs() > 0 {
            Strength::of_counts(Sample::Pairs, &pairs.0, sprt)
        } else {
            let counts = [games.losses, games.draws, games.wins];
            Strength::of_counts(Sample::Games, &counts, sprt)
        }
    }

    /// Estimates the difference in strength between two players from the results of one of them. `counts` contains how
    /// often each possible number of points occurred, in ascending order of points.
    fn of_counts(sample: Sample, counts: &[u64], sprt: Option<&Sprt>) -> Strength {
        let Some(observed) = Distribution::new(counts.iter().map(|count| *count as f64)) else {
            return Strength::default();
        };
        // The number of games in one observation.
        let games = match sample {
            Sample::Pairs => 2.0,
            Sample::Games => 1.0,
        };
        let (mean, variance) = moments(&observed.shares);
        let is_varied = variance > 0.0;
        let deviation = (variance / observed.total).sqrt();
        let elo_of = |score: f64| {
            let score = score.clamp(0.0, 1.0);
            400.0 * (score / (1.0 - score)).log10()
        };
        let margin = DEVIATIONS_95 * deviation;
        let ends = [mean - margin, mean + margin].map(elo_of);
        let [elo_low, elo_high] = ends.map(|end| finite(end).filter(|_| is_varied));
        let normalized = |advantage: f64| {
            finite(advantage / (games * variance).sqrt() * NORMALIZED_ELO).filter(|_| is_varied)
        };
        let los = 50.0 * (1.0 + libm::erf((mean - 0.5) / deviation / SQRT_2));
        Strength {
            estimated_from: Some(sample),
            elo: finite(elo_of(mean)),
            elo_error: elo_low.zip(elo_high).map(|(low, high)| (high - low) / 2.0),
            elo_low,
            elo_high,
            nelo: normalized(mean - 0.5),
            nelo_error: normalized(margin),
            los: finite(los).filter(|_| is_varied),
            draw_ratio: Some(100.0 * observed.shares[counts.len() / 2]),
            llr: sprt.and_then(|sprt| sprt.llr(counts, games)),
        }
    }
}

fn finite(number: f64) -> Option<f64> {
    number.is_finite().then_some(number)
}

/// The observed distribution of scores. The possible scores are evenly spaced from 0 to 1.
struct Distribution {
    /// The share of each score among all observations, in ascending order of the scores.
    shares: Vec<f64>,
    /// The number of observations.
    total: f64,
}

/// Returns `count` evenly spaced scores from 0 to 1.
fn scores(count: usize) -> impl Iterator<Item = f64> {
    (0..count).map(move |number| number as f64 / (count - 1) as f64)
}

/// Returns the mean and the variance of a distribution. `shares` contains the probability of each possible score.
fn moments(shares: &[f64]) -> (f64, f64) {
    let weighted = || scores(shares.len()).zip(shares);
    let mean: f64 = weighted().map(|(score, share)| share * score).sum();
    let variance = weighted().map(|(score, share)| share * (score - mean).powi(2));
    (mean, variance.sum())
}

impl Distribution {
    /// Creates a distribution from the number of observations of each score. Returns `None` if there are no
    /// observations.
    fn new(counts: impl Iterator<Item = f64>) -> Option<Distribution> {
        let counts = Vec::from_iter(counts);
        let total: f64 = counts.iter().sum();
        (total > 0.0).then(|| Distribution {
            shares: counts.iter().map(|count| count / total).collect(),
            total,
        })
    }

    /// Returns the distribution with the mean `mean` under which the observed scores are most likely.
    fn likeliest_with_mean(&self, mean: f64) -> Option<Vec<f64>> {
        self.likeliest(&Vec::from_iter(
            scores(self.shares.len()).map(|score| score - mean),
        ))
    }

    /// Returns the distribution under which the observed scores are most likely, among the distributions whose mean
    /// exceeds 0.5 by `ratio` standard deviations. Returns `None` if the calculation does not converge.
    ///
    /// The condition is not linear in the probabilities. Each iteration therefore replaces it by its linear
    /// approximation at the distribution that the previous iteration found. The first iteration begins with the uniform
    /// distribution.
    fn likeliest_with_ratio(&self, ratio: f64) -> Option<Vec<f64>> {
        const MAX_ITERATIONS: usize = 100;
        let count = self.shares.len();
        let mut shares = vec![1.0 / count as f64; count];
        for _ in 0..MAX_ITERATIONS {
            let (mean, variance) = moments(&shares);
            let deviation = variance.sqrt();
            let terms = scores(count).map(|score| {
                let normalized = (score - mean) / deviation;
                score - 0.5 - 0.5 * ratio * deviation * (1.0 + normalized * normalized)
            });
            let next = self.likeliest(&Vec::from_iter(terms))?;
            let is_stable = shares
                .iter()
                .zip(&next)
                .all(|(old, new)| (old - new).abs() < 1e-9);
            shares = next;
            if is_stable {
                return Some(shares);
            }
        }
        None
    }

    /// Returns the distribution under which the observed scores are most likely, among the distributions for which the
    /// mean of `terms` is 0. `terms` contains one number for each score. Returns `None` if no distribution meets this
    /// condition because all terms have the same sign.
    fn likeliest(&self, terms: &[f64]) -> Option<Vec<f64>> {
        let least = terms.iter().copied().fold(f64::INFINITY, f64::min);
        let greatest = terms.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        if !(least < 0.0 && greatest > 0.0) {
            return None;
        }
        let shares = |multiplier: f64| {
            let pairs = self.shares.iter().zip(terms);
            pairs.map(move |(share, term)| share / (1.0 + multiplier * term))
        };
        // The mean of the terms decreases as the Lagrange multiplier increases, from infinity to minus infinity.
        let (mut low, mut high) = (-1.0 / greatest, -1.0 / least);
        loop {
            let middle = f64::midpoint(low, high);
            if middle <= low || middle >= high {
                return Some(shares(middle).collect());
            }
            let mean: f64 = shares(middle)
                .zip(terms)
                .map(|(share, term)| share * term)
                .sum();
            if mean > 0.0 {
                low = middle;
            } else {
                high = middle;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Returns the estimate from pairs that end LL, LD, WL, DD, WD and WW, the order of fastchess.
    fn of_pairs(ends: [u64; 6], sprt: Option<&Sprt>) -> Strength {
        let [ll, ld, wl, dd, wd, ww] = ends;
        Strength::of_counts(Sample::Pairs, &[ll, ld, wl + dd, wd, ww], sprt)
    }

    /// Returns the estimate from won, lost and drawn games, the order of fastchess.
    fn of_games([wins, losses, draws]: [u64; 3], sprt: Option<&Sprt>) -> Strength {
        Strength::of_counts(Sample::Games, &[losses, draws, wins], sprt)
    }

    fn sprt(elos: [f64; 2], model: SprtModel) -> Sprt {
        Sprt::new(elos, [0.05, 0.05], model).unwrap()
    }

    /// Returns a number with two decimals, or a dash.
    fn short(number: Option<f64>) -> String {
        number.map_or("-".to_owned(), |number| format!("{number:.2}"))
    }

    /// Returns Elo, normalized Elo, both with their errors, the LOS and the draw ratio with two decimals.
    fn numbers(of: &Strength) -> String {
        let Strength {
            elo,
            elo_error,
            nelo,
            nelo_error,
            los,
            draw_ratio,
            ..
        } = *of;
        [elo, elo_error, nelo, nelo_error, los, draw_ratio]
            .map(short)
            .join(" ")
    }

    /// The results are those of fastchess's tests, and the numbers are what fastchess calculates from them.
    #[test]
    fn elo_and_los_equal_those_of_fastchess() {
        for (games, expected) in [
            ([76, 89, 123], "-15.69 30.46 -20.76 40.13 15.53 42.71"),
            ([136, 96, 111], "40.70 30.43 49.77 36.77 99.60 32.36"),
            ([34, 356, 0], "-407.99 63.16 -508.44 34.48 0.00 0.00"),
        ] {
            assert_eq!(numbers(&of_games(games, None)), expected, "{games:?}");
        }
        for (pairs, expected) in [
            (
                [34, 54, 31, 32, 64, 75],
                "55.58 27.65 57.94 28.28 100.00 21.72",
            ),
            (
                [332, 433, 457, 41, 333, 334],
                "-8.64 10.33 -9.17 10.96 5.05 25.80",
            ),
            (
                [7895, 8757, 5485, 200, 568, 9999],
                "-21.04 2.95 -19.01 2.65 0.00 17.28",
            ),
        ] {
            assert_eq!(numbers(&of_pairs(pairs, None)), expected, "{pairs:?}");
        }
    }

    /// The results and bounds are mostly those of fastchess's tests, and the numbers are what fastchess calculates.
    #[test]
    fn log_likelihood_ratios_equal_those_of_fastchess() {
        use SprtModel::{Logistic, Normalized};
        for (model, elos, games, expected) in [
            (Normalized, [0.0, 2.0], [36433, 36027, 68692], "0.92"),
            (Normalized, [-1.75, 0.25], [10871, 10650, 20431], "2.30"),
            (Normalized, [0.0, 10.0], [4250, 0, 0], "120.55"),
            (Normalized, [0.0, 3.0], [76, 89, 123], "-0.16"),
            (Logistic, [0.5, 2.5], [21404, 21184, 40708], "-1.57"),
            (Logistic, [0.0, 2.0], [57433, 57030, 106593], "-2.59"),
            (Logistic, [0.0, 50.0], [10, 0, 0], "1.34"),
        ] {
            let found = of_games(games, Some(&sprt(elos, model)));
            assert_eq!(short(found.llr), expected, "{games:?}");
        }
        for (model, elos, pairs, expected) in [
            (
                Normalized,
                [0.0, 2.0],
                [365, 16618, 36029, 200, 16974, 390],
                "2.25",
            ),
            (
                Normalized,
                [-1.75, 0.25],
                [127, 4883, 10311, 401, 5150, 104],
                "3.01",
            ),
            (Normalized, [0.0, 5.0], [0, 0, 0, 0, 0, 5550], "111.80"),
            (Normalized, [0.0, 5.0], [34, 54, 31, 32, 64, 75], "1.30"),
            (
                Normalized,
                [-3.0, 1.0],
                [332, 433, 457, 41, 333, 334],
                "-1.04",
            ),
            (
                Normalized,
                [0.0, 2.0],
                [7895, 8757, 5485, 200, 568, 9999],
                "-21.62",
            ),
            (Normalized, [0.0, 100.0], [1, 0, 0, 0, 0, 0], "-0.47"),
            (
                Normalized,
                [-200.0, 200.0],
                [34, 54, 31, 32, 64, 75],
                "100.50",
            ),
            (
                Logistic,
                [0.5, 2.5],
                [223, 9863, 20279, 1000, 10037, 246],
                "-3.07",
            ),
            (
                Logistic,
                [0.0, 2.0],
                [871, 26175, 55003, 980, 26678, 821],
                "-4.98",
            ),
            (Logistic, [0.0, 5.0], [34, 54, 31, 32, 64, 75], "1.34"),
        ] {
            let found = of_pairs(pairs, Some(&sprt(elos, model)));
            assert_eq!(short(found.llr), expected, "{pairs:?}");
        }
    }

    #[test]
    fn numbers_that_the_results_do_not_determine_are_unknown() {
        assert_eq!(of_games([0, 0, 0], None), Strength::default());
        // A player who scores all points, or the same in each pair.
        for (pairs, expected) in [
            ([0, 0, 0, 0, 0, 9], "- - - - - 0.00"),
            ([9, 0, 0, 0, 0, 0], "- - - - - 0.00"),
            ([0, 0, 0, 0, 1, 0], "190.85 - - - - 0.00"),
            ([0, 0, 3, 4, 0, 0], "0.00 - - - - 100.00"),
            // The interval contains all points.
            ([0, 0, 0, 0, 1, 5], "544.69 - 1208.56 196.58 100.00 0.00"),
        ] {
            assert_eq!(numbers(&of_pairs(pairs, None)), expected, "{pairs:?}");
        }
        assert_eq!(of_pairs([1, 2, 3, 4, 5, 6], None).llr, None);
    }

    #[test]
    fn the_bounds_follow_from_the_error_probabilities() {
        let bounds = |errors| {
            Sprt::new([0.0, 2.0], errors, SprtModel::Normalized)
                .unwrap()
                .bounds()
        };
        assert_eq!(
            bounds([0.05, 0.05]).map(|bound| format!("{bound:.2}")),
            ["-2.94", "2.94"]
        );
        assert_eq!(
            bounds([0.1, 0.01]).map(|bound| format!("{bound:.2}")),
            ["-4.50", "2.29"]
        );
        for (elos, errors) in [
            ([2.0, 0.0], [0.05, 0.05]),
            ([0.0, 0.0], [0.05, 0.05]),
            ([f64::NAN, 2.0], [0.05, 0.05]),
            ([0.0, 201.0], [0.05, 0.05]),
            ([0.0, 2.0], [0.0, 0.05]),
            ([0.0, 2.0], [0.05, 1.0]),
            ([0.0, 2.0], [0.5, 0.5]),
            ([0.0, 2.0], [f64::NAN, 0.05]),
        ] {
            let found = Sprt::new(elos, errors, SprtModel::Normalized);
            assert!(found.is_err(), "{elos:?} {errors:?}");
        }
    }

    proptest! {
        /// From the view of the opponent, all numbers change their sign.
        #[test]
        fn estimates_are_symmetric(
            counts in proptest::collection::vec(0..300u64, 5),
            low in -20.0..0.0f64,
            high in 0.1..20.0f64,
            is_normalized in any::<bool>(),
        ) {
            let model = if is_normalized { SprtModel::Normalized } else { SprtModel::Logistic };
            let mut turned = counts.clone();
            turned.reverse();
            let one = Strength::of_counts(Sample::Pairs, &counts, Some(&sprt([low, high], model)));
            let other = Strength::of_counts(Sample::Pairs, &turned, Some(&sprt([-high, -low], model)));
            let is_negated = |one: Option<f64>, other: Option<f64>| match (one, other) {
                (Some(one), Some(other)) => (one + other).abs() < 1e-6,
                (one, other) => one == other,
            };
            prop_assert!(is_negated(one.elo, other.elo));
            prop_assert!(is_negated(one.elo_low, other.elo_high));
            prop_assert!(is_negated(one.nelo, other.nelo));
            prop_assert!(is_negated(one.los.map(|los| los - 50.0), other.los.map(|los| los - 50.0)));
            prop_assert!(is_negated(one.llr, other.llr), "{:?} {:?}", one.llr, other.llr);
            prop_assert_eq!(one.llr.is_some(), counts.iter().any(|count| *count > 0));
        }

        /// The distribution that meets the condition and is found by trying many has no higher likelihood.
        #[test]
        fn no_other_distribution_with_the_same_mean_is_likelier(
            counts in proptest::collection::vec(1..50u64, 3),
            mean in 0.2..0.8f64,
        ) {
            let observed = Distribution::new(counts.iter().map(|count| *count as f64)).unwrap();
            let found = observed.likeliest_with_mean(mean).unwrap();
            prop_assert!((moments(&found).0 - mean).abs() < 1e-9);
            prop_assert!((found.iter().sum::<f64>() - 1.0).abs() < 1e-9);
            let likelihood = |shares: &[f64]| -> f64 {
                observed.shares.iter().zip(shares).map(|(share, p)| share * p.ln()).sum()
            };
            // Three probabilities with a given mean and the sum 1 have one degree of freedom: the share of draws.
            for draws in (1..1000).map(|thousandths| f64::from(thousandths) / 1000.0) {
                let wins = mean - draws / 2.0;
                let other = [1.0 - wins - draws, draws, wins];
                if other.iter().all(|share| *share > 0.0) {
                    prop_assert!(likelihood(&other) <= likelihood(&found) + 1e-9);
                }
            }
        }
    }
}
