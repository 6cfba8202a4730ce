//! Converts evaluations to the values of positions and moves, which can be compared.

use shakmaty::Color;

use super::{
    layout::{Eval, Score},
    store::Evals,
};
use crate::{chess::position::Rules, error::Result};

/// The value of a position or a move for one side, with the depth of the evaluation from which the value comes. A
/// greater value is better for the side. Of two equal values, the one from the deeper evaluation is greater.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Value {
    pub(super) worth: Worth,
    pub(super) depth: u8,
}

/// The value of a move for the side that plays it. A greater value is better for this side. Mates in different numbers
/// of moves have equal values.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Worth {
    Mated,
    Centipawns(i16),
    Mates,
}

impl Value {
    /// Creates a value from an evaluation and its depth. `score` is from the point of view of the side for which the
    /// value holds.
    pub(crate) fn new(score: Score, depth: u8) -> Value {
        Value {
            worth: Worth::of(score),
            depth,
        }
    }

    /// Creates the value of an evaluation for the side `side`.
    pub(super) fn of(eval: Eval, side: Color) -> Value {
        Value::new(eval.score.seen_from(side), eval.depth)
    }

    /// Returns the value for the other side.
    pub(crate) fn for_opponent(self) -> Value {
        let worth = match self.worth {
            Worth::Mated => Worth::Mates,
            Worth::Centipawns(centipawns) => Worth::Centipawns(-centipawns),
            Worth::Mates => Worth::Mated,
        };
        Value { worth, ..self }
    }

    /// Returns the score, from 0 to 1, that a player can expect with this value: 1/(1 + exp(-k·c)), where c is the
    /// value in centipawns and k = 0.00368208. The result is 1 for a side that mates, and 0 for a side that is mated.
    ///
    /// Lichess computes its "Win%" with the same formula and constant, which it fitted to games of its players
    /// (<https://lichess.org/page/accuracy>).
    pub(crate) fn expected_score(self) -> f64 {
        const LICHESS_SLOPE: f64 = 0.003_682_08;
        match self.worth {
            Worth::Mated => 0.0,
            Worth::Centipawns(centipawns) => {
                1.0 / (1.0 + (-LICHESS_SLOPE * f64::from(centipawns)).exp())
            }
            Worth::Mates => 1.0,
        }
    }

    /// Returns `true` if a move with the value `other` may be compared with the alternative `self`. This is the case if
    /// at least one of the two values is a mate, or if the depth of `self` is at least half the depth of `other`.
    pub(crate) fn counts_for(self, other: Value) -> bool {
        let are_centipawns = [self, other].map(|known| matches!(known.worth, Worth::Centipawns(_)));
        are_centipawns != [true; 2] || u16::from(self.depth) * 2 >= other.depth.into()
    }
}

impl Worth {
    fn of(score: Score) -> Worth {
        match (score.as_centipawns(), score.as_mate()) {
            (Some(centipawns), _) => Worth::Centipawns(centipawns),
            (None, moves) if moves > Some(0) => Worth::Mates,
            (None, _) => Worth::Mated,
        }
    }
}

impl Evals {
    /// Returns the value of the position `pos` for the side to move, or `None` if the store has no evaluation of it.
    /// Positions in which the side to move is checkmated or stalemated always have a value.
    ///
    /// # Errors
    ///
    /// Returns an error if the store cannot be read or is damaged.
    pub(crate) fn value<P: Rules>(&self, pos: &P) -> Result<Option<Value>> {
        let sure = |worth| Value {
            worth,
            depth: u8::MAX,
        };
        if pos.is_checkmate() {
            return Ok(Some(sure(Worth::Mated)));
        }
        if pos.is_stalemate() {
            return Ok(Some(sure(Worth::Centipawns(0))));
        }
        let eval = self.of_position(pos)?;
        Ok(eval.map(|eval| Value::of(eval, pos.turn())))
    }
}
