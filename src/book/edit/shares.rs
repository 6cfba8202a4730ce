//! Chooses weights that give moves the requested shares of the sum of their position's weights.

use crate::{book::Entry, position::BookMove};

/// The largest accepted difference between a share and its intended value, as a fraction of 1. If the difference is
/// larger, larger weights are tried.
const CLOSE: f64 = 0.005;

/// The largest accepted relative difference between a requested share and the resulting share.
const CLOSE_TO_ASKED: f64 = 0.01;

/// Sets the weights of `entries` so that each move in `shares` gets its share, in percent. The other moves share the
/// rest in their old proportions.
///
/// Returns the number of requested shares that no weights up to 65535 can approximate closely enough.
///
/// # Errors
///
/// Returns an error message if the shares leave nothing to the other moves.
pub(super) fn share(
    entries: &mut [Entry],
    shares: &[(BookMove, f64)],
) -> Result<u64, &'static str> {
    if shares.is_empty() {
        return Ok(0);
    }
    let given: f64 = shares.iter().map(|(_, percent)| percent).sum();
    let others: u64 = entries.iter().map(|entry| u64::from(entry.weight)).sum();
    if given > 100.0 || (given >= 100.0 && others > 0) {
        return Err("the shares leave nothing to the other moves");
    }
    let share_of = |mv| shares.iter().find(|(other, _)| *other == mv);
    // The moves without a requested share keep their weights, or multiples of them if those are too coarse.
    let unit = if others > 0 {
        others as f64 / (100.0 - given)
    } else {
        1.0
    };
    let exact: Vec<Exact> = entries
        .iter()
        .map(|entry| match share_of(entry.mv) {
            Some((_, percent)) => Exact {
                weight: percent * unit,
                is_asked: true,
            },
            None => Exact {
                weight: entry.weight.into(),
                is_asked: false,
            },
        })
        .collect();
    let largest = exact.iter().map(|exact| exact.weight).fold(0.0, f64::max);
    let most = f64::from(u16::MAX) / largest;
    // Each step raises the largest weight by at least 1, so the loop ends however small the shares are.
    let step = (1.0 / largest).max(1.0);
    let mut factor = most.min(1.0);
    let mut weights = rounded(&exact, factor);
    while far(&exact, &weights).next().is_some() && factor < most {
        factor = (factor + step).min(most);
        weights = rounded(&exact, factor);
    }
    let inexact = far(&exact, &weights).filter(|exact| exact.is_asked).count() as u64;
    for (entry, weight) in entries.iter_mut().zip(weights) {
        entry.weight = weight;
    }
    Ok(inexact)
}

/// The intended weight of a move, before scaling and rounding.
struct Exact {
    weight: f64,
    /// `true` if the share of the move was requested.
    is_asked: bool,
}

/// Multiplies weights by `factor` and rounds them. A weight above 0 becomes at least 1.
fn rounded(exact: &[Exact], factor: f64) -> Vec<u16> {
    let weight = |exact: &Exact| match exact.weight {
        0.0 => 0,
        exact => (exact * factor).round().clamp(1.0, u16::MAX.into()) as u16,
    };
    exact.iter().map(weight).collect()
}

/// Returns the moves whose shares of the sum of `weights` are not close enough to their intended shares.
fn far<'a>(exact: &'a [Exact], weights: &'a [u16]) -> impl Iterator<Item = &'a Exact> {
    let wanted: f64 = exact.iter().map(|exact| exact.weight).sum();
    let sum: f64 = weights.iter().map(|weight| f64::from(*weight)).sum();
    let pairs = exact.iter().zip(weights);
    let is_far = move |(exact, weight): &(&Exact, &u16)| {
        let share = exact.weight / wanted;
        let close = if exact.is_asked {
            CLOSE.min(share * CLOSE_TO_ASKED)
        } else {
            CLOSE
        };
        (share - f64::from(**weight) / sum).abs() > close
    };
    pairs.filter(is_far).map(|(exact, _)| exact)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::book::records::of_weights;

    /// Returns the weights after the first moves got the given shares.
    fn shared(weights: &[u16], percents: &[f64]) -> Option<Vec<u16>> {
        let mut entries = of_weights(weights);
        for entry in &mut entries[..percents.len()] {
            entry.weight = 0;
        }
        let shares: Vec<(BookMove, f64)> =
            (0..).map(BookMove).zip(percents.iter().copied()).collect();
        share(&mut entries, &shares).ok()?;
        Some(entries.iter().map(|entry| entry.weight).collect())
    }

    #[test]
    fn shares_leave_the_others_as_they_are_where_that_is_exact() {
        assert_eq!(shared(&[7, 30, 45], &[25.0]).unwrap(), [25, 30, 45]);
        assert_eq!(shared(&[0, 0], &[70.0, 30.0]).unwrap(), [70, 30]);
        assert_eq!(shared(&[5], &[100.0]).unwrap(), [100]);
        assert_eq!(shared(&[5, 1], &[100.0]), None);
        assert_eq!(shared(&[5, 1, 1], &[60.0, 50.0]), None);
        // Weights this small cannot express the share: 1 of 4 is a quarter.
        assert_eq!(shared(&[0, 3], &[33.0]).unwrap()[1] % 3, 0);
    }

    #[test]
    fn small_shares_are_met_as_far_as_weights_go() {
        for (percent, is_met) in [(0.5, true), (0.05, true), (0.005, true), (0.0001, false)] {
            let mut entries = of_weights(&[0, 39, 20, 7, 2, 1, 1]);
            let inexact = share(&mut entries, &[(BookMove(0), percent)]).unwrap();
            let weights: Vec<f64> = entries.iter().map(|entry| entry.weight.into()).collect();
            let found = weights[0] * 100.0 / weights.iter().sum::<f64>();
            let is_close = (found - percent).abs() <= percent * CLOSE_TO_ASKED;
            assert_eq!(
                (is_close, inexact),
                (is_met, u64::from(!is_met)),
                "{weights:?}"
            );
        }
    }

    proptest! {
        #[test]
        fn shares_are_close(weights in proptest::collection::vec(1..=u16::MAX, 2..6), percent in 1..99u8) {
            let found = shared(&weights, &[percent.into()]).unwrap();
            let sum: f64 = found.iter().map(|weight| f64::from(*weight)).sum();
            let share = f64::from(found[0]) * 100.0 / sum;
            prop_assert!((share - f64::from(percent)).abs() < 0.6, "{found:?}");
        }
    }
}
