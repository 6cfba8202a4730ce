//! The names and ECO codes of some 3,800 openings, looked up by position.
//!
//! The names, codes and moves are those that Lichess publishes under CC0. `data/opening_names.txt` stores them as a
//! tree, one move a line: the depth of the move, the move, and the code and name of the position after it if it has a
//! name.
//!
//! ```
//! use polybook::{openings, position::Variant};
//! let pos = Variant::Standard.from_text(None, Some("1. e4 e5 2. Nf3 Nc6 3. Bb5"))?;
//! let opening = openings::name_of(&pos).expect("a well-known position");
//! assert_eq!((opening.eco, opening.name), ("C60", "Ruy Lopez"));
//! # Ok::<(), polybook::position::LineError>(())
//! ```

use std::{collections::HashMap, sync::OnceLock};

use shakmaty::{
    ByColor, ByRole, CastlingMode, Chess, Color, EnPassantMode, FromSetup, Move, Position, Setup,
    variant::{Variant as Game, VariantPosition},
};

use crate::position::{key, read_move};

/// The text of the tree of names.
const TREE: &str = include_str!("../data/opening_names.txt");

/// The ECO code and the name of an opening.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, serde::Serialize)]
pub struct Opening {
    /// The code of the Encyclopaedia of Chess Openings, a letter and two digits: `C60`.
    pub eco: &'static str,
    /// The name in English: `Ruy Lopez`.
    pub name: &'static str,
}

/// Returns the opening of a position, by whatever moves it was reached, or `None` if the position has no name.
///
/// Crazyhouse, three-check and king of the hill share the names of standard chess. Positions of other variants have
/// none.
pub fn name_of(pos: &VariantPosition) -> Option<Opening> {
    let key = match pos {
        VariantPosition::Chess(pos) if pos.castles().mode() == CastlingMode::Standard => key(pos),
        _ => key(&of_standard_chess(pos)?),
    };
    names().get(&key).copied()
}

/// Converts a position to standard chess. Returns `None` if its variant does not share the names, or if it has promoted
/// pieces or pieces in hand.
fn of_standard_chess(pos: &VariantPosition) -> Option<Chess> {
    if !matches!(
        pos.variant(),
        Game::Crazyhouse | Game::ThreeCheck | Game::KingOfTheHill
    ) {
        return None;
    }
    // With pieces in hand, or captured, it is not a position of standard chess.
    let is_empty = |pockets: &ByColor<ByRole<u8>>| {
        let held = |color: Color| pockets.get(color).iter().all(|held| *held == 0);
        Color::ALL.into_iter().all(held)
    };
    let is_same = pos.promoted().is_empty() && pos.pockets().is_none_or(is_empty);
    let setup = Setup {
        pockets: None,
        remaining_checks: None,
        ..pos.to_setup(EnPassantMode::Always)
    };
    is_same
        .then(|| Chess::from_setup(setup, CastlingMode::Standard).ok())
        .flatten()
}

/// Reads the table of names, which otherwise happens at the first look-up.
///
/// Call this before a process forks. If another thread is reading the table during the fork, the child waits for ever
/// for that thread, which the child does not have.
pub fn load() {
    names();
}

/// Returns the openings by the keys of their positions, and reads the table at the first call.
fn names() -> &'static HashMap<u64, Opening> {
    static NAMES: OnceLock<HashMap<u64, Opening>> = OnceLock::new();
    NAMES.get_or_init(|| {
        let mut names = HashMap::new();
        for_each(|opening, _, pos| {
            names.entry(key(pos)).or_insert(opening);
        });
        names
    })
}

/// Calls `f` for each opening of the table with the moves to its position and the position.
pub(crate) fn for_each(mut f: impl FnMut(Opening, &[Move], &Chess)) {
    let (mut line, mut moves) = (vec![Chess::default()], Vec::new());
    for row in TREE.lines() {
        let mut words = row.splitn(4, ' ');
        let mut word = || words.next().expect("a depth and a move");
        let depth: usize = word().parse().expect("a depth");
        line.truncate(depth + 1);
        moves.truncate(depth);
        let mut pos = line[depth].clone();
        let mv = read_move(&pos, word().as_bytes()).expect("a legal move");
        pos.play_unchecked(mv);
        moves.push(mv);
        if let (Some(eco), Some(name)) = (words.next(), words.next()) {
            f(Opening { eco, name }, &moves, &pos);
        }
        line.push(pos);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::position::Variant;

    fn name(variant: Variant, line: &str) -> Option<&'static str> {
        let pos = variant.from_text(None, Some(line)).unwrap();
        name_of(&pos).map(|opening| opening.name)
    }

    #[test]
    fn the_table_is_whole() {
        assert!(names().len() > 3_500, "{}", names().len());
        for opening in names().values() {
            let eco = opening.eco.as_bytes();
            assert!(
                matches!(eco, [b'A'..=b'E', b'0'..=b'9', b'0'..=b'9']),
                "{opening:?}"
            );
            assert!(!opening.name.is_empty() && opening.name.trim() == opening.name);
        }
    }

    #[test]
    fn names_of_positions() {
        for variant in [Variant::Standard, Variant::Crazyhouse, Variant::ThreeCheck] {
            assert_eq!(
                name(variant, "e4 c5"),
                Some("Sicilian Defense"),
                "{variant}"
            );
            assert_eq!(name(variant, ""), None);
        }
        assert_eq!(
            name(Variant::Standard, "Nf3 d5 d4 Nf6 c4 e6"),
            name(Variant::Standard, "d4 d5 c4 e6 Nf3 Nf6")
        );
        assert_eq!(name(Variant::Atomic, "e4 c5"), None);
        assert_eq!(name(Variant::Chess960, "e4 c5"), None);
        // A pawn is in hand.
        assert_eq!(name(Variant::Crazyhouse, "e4 d5 exd5 Qxd5"), None);
        assert!(name(Variant::Standard, "e4 d5 exd5 Qxd5").is_some());
    }
}
