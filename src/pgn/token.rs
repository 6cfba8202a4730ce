//! What the movetext of a game holds, piece by piece.

use super::result::GameResult;

/// What the movetext holds next.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Token<'a> {
    /// A move as it is written, without marks such as `!?`.
    Move {
        /// The bytes of the move.
        text: &'a [u8],
        /// Where they are in the text.
        offset: usize,
    },
    /// Text that can be neither a move nor anything else that movetext holds.
    Unreadable {
        /// The bytes up to the next blank.
        text: &'a [u8],
        /// Where they are in the text.
        offset: usize,
    },
    /// A null move: `--`, `Z0`, `null`, `@@@@` or `0000`. The side to move passes, which no rules of
    /// chess allow, so the moves after it say nothing about openings.
    NullMove {
        /// Where it is in the text.
        offset: usize,
    },
    /// A variation begins: an alternative to the move before it. Only
    /// [`GameReader::with_variations`](super::GameReader::with_variations) gives these.
    BeginVariation,
    /// The variation ends, and the line that it branched from goes on.
    EndVariation,
    /// The game is over.
    End(GameEnd),
}

/// How a game ends.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum GameEnd {
    /// The game was read to its end: its termination marker, `None` if it has none.
    Complete(Option<GameResult>),
    /// The game cannot be read any further.
    Broken(Flaw),
}

/// Damage that ends a game before its time.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Flaw {
    /// What is wrong.
    pub reason: &'static str,
    /// Where it begins in the text that [`GameReader::new`](super::GameReader::new) got. Add the offset of the
    /// [`Batch`](super::Batch) for the place in the file.
    pub offset: usize,
}
