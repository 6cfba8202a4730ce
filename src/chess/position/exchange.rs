//! Static exchange evaluation: computes how much material a side wins by captures on one square.
//!
//! Only legal captures count, so pins and checks are respected, and each side may stop capturing at any time. Unlike in
//! a chess engine, the result is exact: the function does not assume that the least valuable piece captures first.
//! Captures on other squares and quiet moves are ignored.

use shakmaty::{Color, Move, Position, Role, Square};

/// The maximum number of positions that [`is_quiet`] visits. The number of sequences of captures grows factorially with
/// the number of pieces around a square, but only contrived positions with dozens of them need more.
const MAX_POSITIONS: u32 = 20_000;

/// Returns the value of a piece in pawns. The value of the king matters only in variants in which it can be captured
/// or explodes.
fn value(role: Role) -> i32 {
    match role {
        Role::Pawn => 1,
        Role::Knight | Role::Bishop => 3,
        Role::Rook => 5,
        Role::Queen => 9,
        Role::King => 100,
    }
}

/// Returns the material of `side` minus that of its opponent, in pawns.
fn balance(pos: &impl Position, side: Color) -> i32 {
    let board = pos.board();
    let material = |color| -> i32 {
        let pieces = |role| (board.by_role(role) & board.by_color(color)).count() as i32;
        Role::ALL
            .map(|role| value(role) * pieces(role))
            .iter()
            .sum()
    };
    material(side) - material(!side)
}

/// Returns `true` if the side to move is not in check and cannot win material by captures on any single square,
/// provided that the opponent recaptures as well as possible. If the search would visit more than [`MAX_POSITIONS`]
/// positions, the position counts as not quiet.
pub(crate) fn is_quiet(pos: &(impl Position + Clone)) -> bool {
    !pos.is_check() && !wins_material(pos)
}

/// Returns `true` if the move is a capture or a promotion, which change the material on the board.
pub(crate) fn changes_material(mv: Move) -> bool {
    mv.is_capture() || mv.is_promotion()
}

fn wins_material(pos: &(impl Position + Clone)) -> bool {
    let captures = pos.capture_moves();
    let mut squares = Vec::from_iter(captures.iter().map(|mv| mv.to()));
    squares.sort_unstable();
    squares.dedup();
    let mut left = MAX_POSITIONS;
    let mut squares = squares.into_iter();
    squares.any(|square| gains(pos, square, 1, &mut left) || left == 0)
}

/// Returns `true` if the side to move gains at least `least` pawns by captures on `square`, even if the opponent
/// recaptures there as well as possible. Both sides may stop at any time, so each of them gains at least 0.
///
/// The recursion searches for a bound instead of the exact gain, because a bound ends the search early. Each level
/// removes a piece, so there are at most 31 levels. `left` is the number of positions that may still be visited. If it
/// reaches 0, the return value is meaningless.
fn gains<P: Position + Clone>(pos: &P, square: Square, least: i32, left: &mut u32) -> bool {
    if least <= 0 || *left == 0 {
        return true;
    }
    *left -= 1;
    let mut captures = pos.capture_moves();
    captures.retain(|mv| mv.to() == square);
    // The capture by the least valuable piece is usually the best one.
    captures.sort_by_key(|mv| value(mv.role()));
    let side = pos.turn();
    let before = balance(pos, side);
    captures.into_iter().any(|mv| {
        let mut after = pos.clone();
        after.play_unchecked(mv);
        let gained = balance(&after, side) - before;
        !gains(&after, square, gained - least + 1, left)
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use shakmaty::{Chess, variant::VariantPosition};

    use super::*;
    use crate::chess::position::Variant;

    /// Returns the gain of the side to move by the best sequence of captures on a square. Tries all sequences.
    fn best_gain<P: Position + Clone>(pos: &P, square: Square) -> i32 {
        let captures = pos.legal_moves().into_iter();
        let captures = captures.filter(|mv| mv.is_capture() && mv.to() == square);
        let gains = captures.map(|mv| {
            let mut after = pos.clone();
            after.play_unchecked(mv);
            let side = pos.turn();
            balance(&after, side) - balance(pos, side) - best_gain(&after, square)
        });
        gains.max().unwrap_or(0).max(0)
    }

    fn position(fen: &str) -> VariantPosition {
        Variant::Standard.parse_fen(fen).unwrap()
    }

    #[test]
    fn captures_win_material_only_if_recaptures_do_not_take_it_back() {
        for (fen, expected) in [
            (
                "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1",
                true,
            ),
            // A pawn that is protected by a pawn.
            ("4k3/8/2p5/3p4/8/8/3Q4/4K3 w - - 0 1", true),
            // A pawn that nothing protects.
            ("4k3/8/8/3p4/8/8/3Q4/4K3 w - - 0 1", false),
            // The protecting pawn is pinned to its king.
            ("8/4k3/3p4/4p3/1B6/8/4R3/4K3 w - - 0 1", false),
            // Bishop for knight.
            ("4k3/3p4/2n5/1B6/8/8/8/4K3 w - - 0 1", true),
            // The second rook protects the first one through it.
            ("3rk3/3r4/8/8/8/8/3R4/3RK3 w - - 0 1", true),
            ("4k3/3r4/8/8/8/8/3R4/3RK3 w - - 0 1", false),
            // A capture en passant.
            ("4k3/8/8/3pP3/8/8/8/4K3 w - d6 0 1", false),
            // A capture by promotion.
            ("1n1rk3/2P5/8/8/8/8/8/4K3 w - - 0 1", false),
            // The king cannot take a protected piece.
            ("4k3/8/8/8/2b5/8/4n3/4K3 w - - 0 1", true),
            ("4k3/8/8/8/8/8/4n3/4K3 w - - 0 1", false),
            // The side to move is in check.
            ("4k3/8/8/8/8/8/4r3/3QK3 w - - 0 1", false),
            ("4k3/8/8/8/8/8/3p4/4K3 w - - 0 1", false),
        ] {
            assert_eq!(is_quiet(&position(fen)), expected, "{fen}");
        }
    }

    #[test]
    fn an_explosion_wins_what_it_removes() {
        // A capture in atomic chess removes the pieces around its square: the knight takes a pawn, and removes the queen next
        // to this pawn.
        let pos = |fen: &str| Variant::Atomic.parse_fen(fen).unwrap();
        assert!(!is_quiet(&pos("3qk3/4p3/8/5N2/8/8/8/4K3 w - - 0 1")));
        assert!(is_quiet(&pos("k7/p7/1p6/3N4/8/8/8/4K3 w - - 0 1")));
    }

    /// Returns whether the side to move gains at least `least` pawns on `square`, and the number of visited positions.
    fn gains_within<P: Position + Clone>(pos: &P, square: Square, least: i32) -> (bool, u32) {
        let mut left = u32::MAX;
        let gains = gains(pos, square, least, &mut left);
        (gains, u32::MAX - left)
    }

    /// A position with many pieces that attack one square is decided quickly.
    #[test]
    fn many_attackers_of_a_square_take_little_time() {
        let pos = position("k2q4/1q1q1q2/2q1q3/qqqp1qqq/2Q1Q3/1Q1Q1Q2/Q2Q3Q/K7 w - - 0 1");
        let (gains, visited) = gains_within(&pos, Square::D5, 1);
        assert!(!gains);
        assert!(visited < MAX_POSITIONS, "{visited}");
    }

    proptest! {
        #[test]
        fn exchanges_equal_those_of_all_sequences(seed in any::<u64>(), plies in 1..160usize) {
            let mut random = fastrand::Rng::with_seed(seed);
            let mut pos = Chess::default();
            for _ in 0..plies {
                let moves = pos.legal_moves();
                let Some(mv) = random.choice(moves) else { break };
                pos.play_unchecked(mv);
            }
            let best = Square::ALL.into_iter().map(|square| {
                let gain = best_gain(&pos, square);
                for least in [1, 2, 3, 9] {
                    assert_eq!(gains_within(&pos, square, least).0, gain >= least, "{square} {least} {pos:?}");
                }
                gain
            });
            let best = best.max().unwrap_or(0);
            prop_assert_eq!(wins_material(&pos), best > 0);
            prop_assert_eq!(is_quiet(&pos), best == 0 && pos.checkers().is_empty());
        }
    }
}
