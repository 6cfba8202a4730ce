//! Determines whether a player has prepared a reply to a move of the opponent. [`Reply::of`] is the only place that
//! decides what is a gap, for preparations, reports on a position and gaps of a repertoire.

use shakmaty::{Position, variant::VariantPosition};

use crate::error::Result;

/// The default minimum number of the opponent's games. A move of the opponent is considered a gap only if it was played
/// in at least this many games, and a line to prepare ends where fewer games continue. A single game says little about
/// what will be played.
pub const MIN_REPLY_GAMES: u64 = 2;

/// The state of a player's preparation for a move of the opponent.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Reply {
    /// The move was played in at least the minimum number of games, and the player does not answer it although the
    /// player answers another move in the same position.
    Gap,
    /// The player answers no move of the opponent in this position, so a line of the player's repertoire ends there.
    LineEnd,
    /// The move was played in fewer than the minimum number of games, and the player does not answer it.
    Rare,
    /// The player answers the move, or the game is over after it.
    Answered,
}

impl Reply {
    /// Determines whether a player is prepared for a move of the opponent that leads to the position `after`. The move
    /// was played in `games` games; fewer than `min_games` games are too few. `is_answered` says whether the player
    /// answers the move. `answers_another` tells whether the player answers another of the opponent's moves in the same
    /// position, and is called only if the move is not answered.
    ///
    /// # Errors
    ///
    /// Returns the error of `answers_another`.
    pub fn of(
        after: &VariantPosition,
        games: u64,
        min_games: u64,
        is_answered: bool,
        answers_another: impl FnOnce() -> Result<bool>,
    ) -> Result<Reply> {
        Ok(if is_answered || after.legal_moves().is_empty() {
            Reply::Answered
        } else if games < min_games {
            Reply::Rare
        } else if answers_another()? {
            Reply::Gap
        } else {
            Reply::LineEnd
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chess::position::Variant;

    #[test]
    fn a_gap_needs_games_no_answer_and_an_answer_to_another_move() {
        let start = Variant::Standard.start();
        let reply = |games, is_answered, answers_another| {
            Reply::of(&start, games, MIN_REPLY_GAMES, is_answered, || {
                Ok(answers_another)
            })
            .unwrap()
        };
        assert_eq!(reply(2, false, true), Reply::Gap);
        assert_eq!(reply(2, false, false), Reply::LineEnd);
        assert_eq!(reply(1, false, true), Reply::Rare);
        assert_eq!(reply(1, true, false), Reply::Answered);
        let mate = "rnb1kbnr/pppp1ppp/8/4p3/6Pq/5P2/PPPPP2P/RNBQKBNR w KQkq - 1 3";
        let mate =
            crate::explore::explorer::Line::parse(Variant::Standard, Some(mate), "").unwrap();
        let mated = Reply::of(mate.position(), 9, 2, false, || Ok(true));
        assert_eq!(mated.unwrap(), Reply::Answered);
    }
}
