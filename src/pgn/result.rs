//! The result of a game.

use shakmaty::Color;

/// How a game ended, as its `Result` tag or its termination marker says.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug, Default)]
pub enum GameResult {
    /// `1-0`
    WhiteWins,
    /// `0-1`
    BlackWins,
    /// `1/2-1/2`
    Draw,
    /// `*`: unfinished, or nobody said.
    #[default]
    Unknown,
}

impl GameResult {
    /// Reads one of the four tokens of the PGN standard, exactly.
    ///
    /// ```
    /// use polybook::pgn::GameResult;
    /// assert_eq!(GameResult::from_token(b"1/2-1/2"), Some(GameResult::Draw));
    /// assert_eq!(GameResult::from_token(b"1/2"), None);
    /// ```
    pub fn from_token(token: &[u8]) -> Option<GameResult> {
        match token {
            b"1-0" => Some(GameResult::WhiteWins),
            b"0-1" => Some(GameResult::BlackWins),
            b"1/2-1/2" => Some(GameResult::Draw),
            b"*" => Some(GameResult::Unknown),
            _ => None,
        }
    }

    /// Reads a termination marker: one of the four tokens, or the ways people type them.
    pub(super) fn from_marker(token: &[u8]) -> Option<GameResult> {
        GameResult::from_token(token).or_else(|| match std::str::from_utf8(token).ok()? {
            "1–0" | "1—0" => Some(GameResult::WhiteWins),
            "0–1" | "0—1" => Some(GameResult::BlackWins),
            "1/2" | "½-½" | "½–½" | "½" | "1/2–1/2" => Some(GameResult::Draw),
            _ => None,
        })
    }

    /// The side that won, `None` for a draw or an unknown result.
    #[inline]
    pub fn winner(self) -> Option<Color> {
        match self {
            GameResult::WhiteWins => Some(Color::White),
            GameResult::BlackWins => Some(Color::Black),
            GameResult::Draw | GameResult::Unknown => None,
        }
    }

    /// The token of the PGN standard.
    pub fn token(self) -> &'static str {
        match self {
            GameResult::WhiteWins => "1-0",
            GameResult::BlackWins => "0-1",
            GameResult::Draw => "1/2-1/2",
            GameResult::Unknown => "*",
        }
    }
}
