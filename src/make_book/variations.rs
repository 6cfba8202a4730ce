//! The moves of variations. Each variation is counted once, from the move where it branches.

use shakmaty::Color;

use super::options::MakeBook;
use crate::{
    pgn::{GameReader, Token},
    position::{BookMove, Keyed, PieceLetters, Rules, has_inner_castling_rook},
};

/// The maximum depth to which variations may be nested. Variations at greater depths are skipped.
const DEEPEST: usize = 64;

/// The half-moves in the variations of the current game.
#[derive(Debug, Default)]
pub(super) struct Variations {
    pub branches: Vec<VariationPly>,
    /// The number of variations that contain a move that cannot be played. Their half-moves before this move are
    /// counted.
    pub unplayable: u64,
    /// The number of variations that contain a null move. Their half-moves before it are counted.
    pub null_moves: u64,
}

/// A half-move of a variation.
#[derive(Copy, Clone, Debug)]
pub(crate) struct VariationPly {
    /// The key of the position before the half-move.
    pub key: u64,
    /// The exact identity of the position before the half-move.
    pub identity: u64,
    pub mv: BookMove,
    pub turn: Color,
    /// Whether the key is a valid book key.
    pub in_book: bool,
}

/// A line that is being played: the main line or a variation.
struct VariationLine<P: Rules> {
    /// The position before the last move, from which a variation branches, if there is one.
    before: Option<Keyed<P>>,
    /// The current position, or `None` after a move that cannot be played.
    now: Option<Keyed<P>>,
    /// The number of half-moves of the game before the current position.
    plies: usize,
}

impl<P: Rules> VariationLine<P> {
    /// Returns a new variation that replaces the last move of this line.
    fn branch(&self) -> VariationLine<P> {
        VariationLine {
            before: None,
            now: self.before.clone(),
            plies: self.plies.saturating_sub(1),
        }
    }
}

impl Variations {
    /// Removes the half-moves of the previous game, but keeps the allocation.
    pub(super) fn clear(&mut self) {
        *self = Variations {
            branches: std::mem::take(&mut self.branches),
            ..Variations::default()
        };
        self.branches.clear();
    }

    /// Plays the variation that the reader has just entered, including all variations in it. It replaces the last of the
    /// `plies` half-moves of the main line, which was played in the position `before`.
    pub(super) fn play<P: Rules>(
        &mut self,
        games: &mut GameReader<'_>,
        options: &MakeBook,
        before: Option<&Keyed<P>>,
        plies: usize,
    ) {
        let main_line = VariationLine {
            before: before.cloned(),
            now: None,
            plies,
        };
        let mut lines = vec![main_line.branch()];
        let mut too_deep = 0;
        loop {
            let is_deepest = lines.len() == DEEPEST;
            let Some(line) = lines.last_mut() else {
                return;
            };
            match games.next_token() {
                Token::BeginVariation if too_deep > 0 || is_deepest => too_deep += 1,
                Token::BeginVariation => {
                    let variation = line.branch();
                    lines.push(variation);
                }
                Token::EndVariation if too_deep > 0 => too_deep -= 1,
                Token::EndVariation => drop(lines.pop()),
                Token::End(_) => unreachable!("a variation that is entered is closed"),
                _ if too_deep > 0 => {}
                Token::Move { text, .. } | Token::Unreadable { text, .. } => {
                    if line.plies < options.max_ply {
                        self.play_move(line, text, options.piece_letters);
                    } else {
                        line.now = None;
                    }
                }
                Token::NullMove { .. } => {
                    self.null_moves += u64::from(line.now.take().is_some());
                }
            }
        }
    }

    /// Plays a move of a variation and records it. Ends the variation if the move cannot be played.
    fn play_move<P: Rules>(
        &mut self,
        line: &mut VariationLine<P>,
        text: &[u8],
        letters: PieceLetters,
    ) {
        let Some(mut pos) = line.now.take() else {
            return;
        };
        let Ok(mv) = letters.read_move(pos.position(), text) else {
            self.unplayable += 1;
            return;
        };
        self.branches.push(VariationPly {
            key: pos.key(),
            identity: pos.exact_identity(),
            mv: BookMove::from(mv),
            turn: pos.position().turn(),
            in_book: !has_inner_castling_rook(pos.position()),
        });
        line.before = Some(pos.clone());
        pos.play(mv);
        line.now = Some(pos);
        line.plies += 1;
    }
}
