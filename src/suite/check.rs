//! Checks the entries of a suite: positions in which the game is over, repeated positions, and the lengths of lines.

use std::ops::RangeInclusive;

use shakmaty::Color;

use super::SuiteFormat;

/// The findings about a suite. Every entry is legal, because a suite with an illegal position or move cannot be read.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SuiteCheck {
    /// The format: lines of moves in PGN, or positions, one per line of text.
    pub format: SuiteFormat,
    /// The number of entries.
    pub entries: u64,
    /// The number of entries whose last position has White to move.
    pub white_to_move: u64,
    /// The number of lines that lead to the same position as an earlier line, but by other moves.
    pub transpositions: u64,
    /// The shortest and the longest line in half-moves, or `None` for positions.
    pub plies: Option<RangeInclusive<usize>>,
    /// The lowest and the highest evaluation in the EPD operations `ce`, in centipawns from White's view. `None` if any
    /// entry lacks the operation.
    pub evaluations: Option<RangeInclusive<i32>>,
    /// The faults, in the order of the entries.
    pub faults: Vec<SuiteFault>,
}

/// A fault of an entry. Entries are numbered from 1.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum SuiteFault {
    /// The game is over after the entry: by mate, stalemate, the end of a variant, insufficient material, or because the line repeats
    /// a position twice.
    Over {
        /// The number of the entry.
        entry: usize,
    },
    /// The entry repeats an earlier entry: a position that equals an earlier position, or a line with the same moves as
    /// an earlier line.
    Repeated {
        /// The number of the entry.
        entry: usize,
        /// The number of the earliest equal entry.
        first: usize,
    },
}

impl std::fmt::Display for SuiteFault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            SuiteFault::Over { entry } => write!(f, "entry {entry}: the game is over there"),
            SuiteFault::Repeated { entry, first } => {
                write!(f, "entry {entry}: repeats entry {first}")
            }
        }
    }
}

/// Returns the evaluation in the EPD operation `ce` of a line of text, converted from the view of the side to move to
/// White's view, in centipawns. Returns `None` if the operation is missing.
pub(super) fn evaluation(line: &str, turn: Color) -> Option<i32> {
    let operations = line.split_once(" ce ")?.1;
    let own: i32 = operations.split(';').next()?.trim().parse().ok()?;
    Some(turn.fold_wb(own, own.checked_neg()?))
}

/// Returns the smallest range that contains all values, or `None` without values.
pub(super) fn range<T: Ord + Copy>(values: impl Iterator<Item = T>) -> Option<RangeInclusive<T>> {
    values
        .map(|value| (value, value))
        .reduce(|(low, high), (value, _)| (low.min(value), high.max(value)))
        .map(|(low, high)| low..=high)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn evaluations_have_the_view_of_white() {
        let line = "8/8/8/8/8/8/8/K1k5 b - - acd 12; ce -30; id \"x\";";
        assert_eq!(evaluation(line, Color::Black), Some(30));
        assert_eq!(evaluation(line, Color::White), Some(-30));
        assert_eq!(
            evaluation("8/8/8/8/8/8/8/K1k5 b - - acd 12;", Color::White),
            None
        );
    }

    #[test]
    fn a_range_contains_all_values() {
        assert_eq!(range([3, -1, 2].into_iter()), Some(-1..=3));
        assert_eq!(range(std::iter::empty::<i32>()), None);
    }
}
