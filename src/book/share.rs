//! The shares of a position's moves.

/// Returns the share of each move of a position in the weights of the position's legal moves, in percent: how often a
/// program that follows the weights plays the move. `weights` has `None` for a move that is not legal, which cannot be
/// played and has no share.
///
/// The shares add up to 100. If no legal move has a weight, all shares are 0.
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
