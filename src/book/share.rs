//! The share of each move in the weights of a position.

/// Returns the share of each move in the sum of a position's weights, in percent: how often a program that follows the
/// weights plays the move. `weights` contains `None` for an illegal move, which has no share.
///
/// The shares add up to 100. If all weights are 0, all shares are 0.
///
/// ```
/// use polybook::book::shares;
///
/// // The second move is not legal.
/// assert_eq!(shares(&[Some(30), None, Some(10)]), [Some(75.0), None, Some(25.0)]);
/// assert_eq!(shares(&[Some(0), None]), [Some(0.0), None]);
/// ```
pub fn shares(weights: &[Option<u64>]) -> Vec<Option<f64>> {
    let sum: u64 = weights.iter().flatten().sum();
    let share = |weight| weight as f64 * 100.0 / sum.max(1) as f64;
    weights.iter().map(|weight| weight.map(share)).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn shares_are_of_the_legal_moves_and_add_up(
            weights in proptest::collection::vec(proptest::option::of(0..u64::from(u16::MAX)), 0..20),
        ) {
            let found = shares(&weights);
            let has_share: Vec<bool> = found.iter().map(Option::is_some).collect();
            let is_legal: Vec<bool> = weights.iter().map(Option::is_some).collect();
            prop_assert_eq!(has_share, is_legal);
            let sum: f64 = found.iter().flatten().sum();
            let expected = if weights.iter().flatten().any(|weight| *weight > 0) { 100.0 } else { 0.0 };
            prop_assert!((sum - expected).abs() < 1e-9, "{}", sum);
            for (weight, share) in weights.iter().zip(&found) {
                prop_assert!(*weight != Some(0) || *share == Some(0.0));
            }
        }
    }
}
