//! Performance ratings by FIDE's table.

/// The rating difference for each score from 50 to 100 percent, from the table in FIDE's rating regulations, B.02, section
/// 8.1.1. Scores below 50 percent have the negative difference.
const ABOVE: [i32; 51] = [
    0, 7, 14, 21, 29, 36, 43, 50, 57, 65, 72, 80, 87, 95, 102, 110, 117, 125, 133, 141, 149, 158,
    166, 175, 184, 193, 202, 211, 220, 230, 240, 251, 262, 273, 284, 296, 309, 322, 336, 351, 366,
    383, 401, 422, 444, 470, 501, 538, 589, 677, 800,
];

/// Returns the performance of a player who scored `half_points / 2` in `games` against opponents with a mean rating.
///
/// # Panics
///
/// Panics if `games` is 0.
pub(super) fn performance(opponents: u64, half_points: u64, games: u64) -> u64 {
    // The score in percent, rounded half up.
    let percent = (100 * half_points + games) / (2 * games);
    let above = match percent.checked_sub(50) {
        Some(above) => ABOVE[above.min(50) as usize],
        None => -ABOVE[50 - percent as usize],
    };
    opponents.saturating_add_signed(i64::from(above))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scores_and_ratings() {
        assert_eq!(performance(2400, 10, 10), 2400);
        assert_eq!(performance(2400, 20, 10), 3200);
        assert_eq!(performance(2400, 0, 10), 1600);
        assert_eq!(performance(2400, 13, 10), 2510);
        assert_eq!(performance(2400, 7, 10), 2290);
        assert_eq!(performance(100, 0, 1), 0);
    }
}
