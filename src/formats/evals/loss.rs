//! Finds moves that lose too much according to evaluations.

use std::{fmt, sync::Arc};

use rustc_hash::FxHashMap;
use shakmaty::Move;

use super::{
    store::Evals,
    value::{Value, Worth},
};
use crate::{
    chess::position::{Keyed, Rules},
    error::Result,
};

/// A limit on how much worse a move may be than the best alternative, according to a store of evaluations.
///
/// The loss of a move is the value of the best alternative minus the value of the move. Both values are in centipawns
/// for the side that plays the move. The alternatives are the other evaluated moves, and the evaluation of the position
/// itself.
///
/// A mate is better than any number of centipawns for the side that mates, and worse for the side that is mated. If
/// both values are in centipawns, they are compared only if the evaluation of the alternative is at least half as deep
/// as that of the move.
#[derive(Clone, PartialEq, Debug)]
pub struct MaxLoss {
    evals: Arc<Evals>,
    /// Values of positions for the side to move, by position key. They replace the evaluations of these positions when
    /// a move leads to them.
    values: Option<Arc<FxHashMap<u64, Value>>>,
    centipawns: u16,
    keeps_one: bool,
}

/// How much worse a move is than the best move in its position, from the point of view of the side that plays it.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Loss {
    /// The difference in centipawns, or 0 if no move is better.
    Centipawns(u32),
    /// The move misses a forced mate, or allows a mate that another move avoids.
    Mate,
}

impl MaxLoss {
    /// Creates a limit of `centipawns` on the loss of a move. Losses are computed from the evaluations in `evals`.
    pub fn new(evals: impl Into<Arc<Evals>>, centipawns: u16) -> MaxLoss {
        MaxLoss {
            evals: evals.into(),
            values: None,
            centipawns,
            keeps_one: false,
        }
    }

    /// Sets whether a position keeps the move that loses the least if all of its moves exceed the limit.
    #[must_use]
    pub fn keep_one(self, keeps_one: bool) -> MaxLoss {
        MaxLoss { keeps_one, ..self }
    }

    /// Sets values of positions, which replace the evaluations of these positions when a move leads to them. The values
    /// are those for the side to move, and the keys of the map are position keys.
    pub(crate) fn with_values(&self, values: Arc<FxHashMap<u64, Value>>) -> MaxLoss {
        MaxLoss {
            values: Some(values),
            ..self.clone()
        }
    }

    /// Returns `true` if a position keeps one move even if all of its moves exceed the limit.
    pub(crate) fn keeps_one(&self) -> bool {
        self.keeps_one
    }

    /// Returns `true` if `loss`, the loss of a move, exceeds the limit. A missed or allowed mate always exceeds the
    /// limit.
    pub(crate) fn is_exceeded_by(&self, loss: Loss) -> bool {
        match loss {
            Loss::Centipawns(loss) => loss > self.centipawns.into(),
            Loss::Mate => true,
        }
    }

    /// Returns how much each of `moves` loses compared with the best move in the position `pos`. The moves must be
    /// legal. The loss is `None` if the position after the move has no evaluation.
    ///
    /// # Errors
    ///
    /// Returns an error if the store of evaluations cannot be read or is damaged.
    pub(crate) fn judge<P: Rules>(&self, pos: &P, moves: &[Move]) -> Result<Vec<Option<Loss>>> {
        let own = moves.iter().map(|mv| self.value_of_move(pos, *mv));
        let own: Vec<Option<Value>> = own.collect::<Result<_>>()?;
        if own.iter().all(Option::is_none) {
            return Ok(vec![None; moves.len()]);
        }
        let whole = self.evals.of_position(pos)?;
        let mut others = Vec::from_iter(whole.map(|eval| Value::of(eval, pos.turn())));
        for mv in pos.legal_moves() {
            others.extend(self.value_of_move(pos, mv)?);
        }
        let loss = |own: Value| {
            let others = others.iter().filter(|other| other.counts_for(own));
            let best = others.map(|other| other.worth).max();
            match (own.worth, best.unwrap_or(own.worth)) {
                (Worth::Centipawns(own), Worth::Centipawns(best)) => {
                    Loss::Centipawns(best.max(own).abs_diff(own).into())
                }
                (own, best) if own < best => Loss::Mate,
                _ => Loss::Centipawns(0),
            }
        };
        Ok(own.into_iter().map(|own| own.map(loss)).collect())
    }

    /// Returns the value of the move `mv` for the side that plays it, or `None` if neither the values of positions nor
    /// the store contain the position after the move. Moves that give checkmate or stalemate always have a value.
    fn value_of_move<P: Rules>(&self, pos: &P, mv: Move) -> Result<Option<Value>> {
        let mut after = pos.clone();
        after.play_unchecked(mv);
        let backed_up = self.values.as_ref().and_then(|values| {
            let key = Keyed::new(after.clone()).key();
            values.get(&key).copied()
        });
        let value = match backed_up {
            Some(value) => Some(value),
            None => self.evals.value(&after)?,
        };
        Ok(value.map(Value::for_opponent))
    }
}

/// Formats the limit as a command-line option.
impl fmt::Display for MaxLoss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let keep_one = if self.keeps_one { " --keep-one" } else { "" };
        write!(f, "--max-loss {}{keep_one}", self.centipawns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        chess::position::{from_text, read_move},
        formats::evals::{EvalsFormat, MakeEvals},
        games::pgn::Input,
    };

    /// Judges moves of the position after a line, by evaluations in a PGN.
    fn judged(evals: &str, most: u16, line: &str, moves: &[&str]) -> Vec<Option<bool>> {
        let dir = tempfile::tempdir().unwrap();
        let (pgn, out) = (dir.path().join("a.pgn"), dir.path().join("a.evals"));
        std::fs::write(&pgn, evals).unwrap();
        let make = MakeEvals::new([Input::file(&pgn)]);
        make.run(&out, EvalsFormat::Store).unwrap();
        let max_loss = MaxLoss::new(Evals::open(&out).unwrap(), most);
        let pos = from_text(None, Some(line)).unwrap();
        let moves = moves
            .iter()
            .map(|mv| read_move(&pos, mv.as_bytes()).unwrap());
        let losses = max_loss.judge(&pos, &moves.collect::<Vec<_>>()).unwrap();
        let losses = losses.into_iter();
        losses
            .map(|loss| loss.map(|loss| max_loss.is_exceeded_by(loss)))
            .collect()
    }

    #[test]
    fn moves_are_compared_with_the_best_of_all() {
        let evals = "1. e4 {[%eval 0.35]} *\n\n[A \"\"]\n\n1. d4 {[%eval 0.15]} *\n\n[A \"\"]\n\n1. g4 {[%eval -0.06]} *";
        let moves = ["d4", "g4", "c4", "e4"];
        let kept = [Some(false), Some(true), None, Some(false)];
        assert_eq!(judged(evals, 40, "", &moves), kept);
        // The best move need not be one of the judged moves.
        assert_eq!(judged(evals, 40, "", &moves[..3]), kept[..3]);
        assert_eq!(judged(evals, 41, "", &["g4"]), [Some(false)]);
        assert_eq!(judged(evals, 19, "", &["d4"]), [Some(true)]);
        assert_eq!(judged(evals, 0, "", &["c4", "a3"]), [None, None]);
    }

    #[test]
    fn a_position_is_worth_its_best_move_and_depth_counts() {
        // Black can have 0.30, but 1... f6 leads to -2.00, a loss of 2.30.
        let evals = "1. e4 {[%eval -0.30,20]} f6 {[%eval 2.0,19]} *";
        assert_eq!(judged(evals, 40, "e4", &["f6"]), [Some(true)]);
        assert_eq!(judged(evals, 230, "e4", &["f6"]), [Some(false)]);
        // Mates are compared whatever their depth.
        let mated = "1. f3 e5 {[%eval -0.71,10]} 2. g4 {[%eval #-1,245]} *";
        assert_eq!(judged(mated, 900, "f3 e5", &["g4"]), [Some(true)]);
        // A shallow evaluation of another move is compared with shallow evaluations, but not with deep ones.
        let shallow = "1. e4 {[%eval 0.3,30]} *\n\n[A \"\"]\n\n1. Nh3 {[%eval 2.5,1]} *\n\n[A \"\"]\n\n1. a3 {[%eval 0.0,2]} *";
        let moves = ["e4", "Nh3", "a3"];
        let expected = [Some(false), Some(false), Some(true)];
        assert_eq!(judged(shallow, 40, "", &moves), expected);
    }

    #[test]
    fn the_side_to_move_and_mates_count() {
        let evals = "1. e4 e5 {[%eval 0.2]} *\n\n[A \"\"]\n\n1. e4 c5 {[%eval 0.7]} *\n\n[A \"\"]\n\n1. e4 f6 {[%eval #12]} *\n\n\
            [A \"\"]\n\n1. e4 g5 {[%eval #3]} *";
        let moves = ["e5", "c5", "f6"];
        assert_eq!(
            judged(evals, 40, "e4", &moves),
            [Some(false), Some(true), Some(true)]
        );
        assert_eq!(judged(evals, 65535, "e4", &["f6"]), [Some(true)]);
        // All other evaluated moves are mated as well.
        let mated = "1. e4 f6 {[%eval #12]} *\n\n[A \"\"]\n\n1. e4 g5 {[%eval #3]} *";
        assert_eq!(judged(mated, 0, "e4", &["f6", "g5"]), [Some(false); 2]);
        // A move that gives checkmate needs no evaluation.
        let line = "f3 e5 g4";
        let evals = "1. f3 e5 2. g4 d6 {[%eval -9.0]} *";
        assert_eq!(
            judged(evals, 900, line, &["Qh4#", "d6"]),
            [Some(false), Some(true)]
        );
    }
}
