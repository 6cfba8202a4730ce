//! What polybook adds to an answer for its own page: the position, its line and its legal moves, so that the page needs
//! no rules of chess.

use serde::Serialize;
use shakmaty::{Position, san::SanPlus, variant::VariantPosition};

use super::request::Request;
use crate::{explorer::Answer, position::BookMove};

/// A position for a board.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub(super) struct Board {
    /// The position behind the line.
    fen: String,
    /// Whether the king of the side to move is attacked.
    check: bool,
    /// The moves of the request.
    line: Vec<WrittenMove>,
    /// The moves that the rules allow.
    legal: Vec<WrittenMove>,
    /// Of the moves of the answer, those behind which more games pass than played them.
    transpositions: Vec<Transpositions>,
}

/// A move in both notations.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub(super) struct WrittenMove {
    /// Coordinates, castling as the king taking its rook.
    uci: String,
    /// As people write it.
    san: String,
}

/// Games that reach the position behind a move by other ways.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
struct Transpositions {
    uci: String,
    games: u64,
}

impl WrittenMove {
    pub(super) fn new(pos: &VariantPosition, mv: shakmaty::Move) -> WrittenMove {
        WrittenMove {
            uci: BookMove::from(mv).to_string(),
            san: SanPlus::from_move(pos.clone(), mv).to_string(),
        }
    }
}

#[cfg(test)]
impl WrittenMove {
    pub(super) fn san(&self) -> &str {
        &self.san
    }
}

impl Board {
    /// The board of a request, with what an answer tells of transpositions if it was asked for.
    pub(super) fn new(request: &Request, answer: &Answer) -> Board {
        let line = &request.query.line;
        let pos = line.position();
        let mut at = request.start.clone();
        let played = line.moves().iter().map(|mv| {
            let written = WrittenMove::new(&at, *mv);
            at.play_unchecked(*mv);
            written
        });
        let transpositions = answer.moves.iter().filter_map(|mv| {
            let games = mv.reached?.saturating_sub(mv.games());
            (games > 0).then(|| Transpositions {
                uci: mv.uci.clone(),
                games,
            })
        });
        Board {
            line: played.collect(),
            fen: crate::position::fen_of(pos),
            check: pos.is_check(),
            legal: pos
                .legal_moves()
                .into_iter()
                .map(|mv| WrittenMove::new(pos, mv))
                .collect(),
            transpositions: transpositions.collect(),
        }
    }
}
