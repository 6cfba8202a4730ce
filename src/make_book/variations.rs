//! The moves of variations, each counted once from where it branches.

use shakmaty::Color;

use super::options::MakeBook;
use crate::{
    pgn::{GameReader, Token},
    position::{BookMove, Keyed, PieceLetters, Rules, has_inner_castling_rook},
};

/// How deep variations may be nested. Deeper ones are passed over.
const DEEPEST: usize = 64;

/// The half-moves in the variations of the current game.
#[derive(Debug, Default)]
pub(super) struct Variations {
    pub branches: Vec<VariationPly>,
    /// Variations with a move that cannot be played, which count up to there.
    pub unplayable: u64,
    /// Variations with a null move, which count up to there.
    pub null_moves: u64,
}

/// A half-move of a variation.
#[derive(Copy, Clone, Debug)]
pub(crate) struct VariationPly {
    /// The key and the exact identity of the position before it.
    pub key: u64,
    pub identity: u64,
    pub mv: BookMove,
    pub turn: Color,
    /// Whether the position before it is for books.
    pub in_book: bool,
}

/// A line that is being played: the main line, or a variation.
struct VariationLine<P: Rules> {
    /// The position before its last move, from where a variation branches, if there is one.
    before: Option<Keyed<P>>,
    /// The position that is reached, `None` after a move that cannot be played.
    now: Option<Keyed<P>>,
    /// How many half-moves of the game lead there.
    plies: usize,
}

impl<P: Rules> VariationLine<P> {
    /// A variation of this line, another move in place of its last.
    fn branch(&self) -> VariationLine<P> {
        VariationLine {
            before: None,
            now: self.before.clone(),
            plies: self.plies.saturating_sub(1),
        }
    }
}

impl Variations {
    pub(super) fn clear(&mut self) {
        *self = Variations {
            branches: std::mem::take(&mut self.branches),
            ..Variations::default()
        };
        self.branches.clear();
    }

    /// Plays the variation that has just begun, and all in it. It branches `before` the last of the
    /// `plies` half-moves that were played.
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
