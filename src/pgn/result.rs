//! The result of a game.

use shakmaty::Color;

use super::{Tags, word::dash};

/// How a game ended, as its `Result` tag or its termination marker says.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug, Default)]
pub enum GameResult {
    // An index has them by these numbers.
    /// `1/2-1/2`
    Draw,
    /// `1-0`
    WhiteWins,
    /// `0-1`
    BlackWins,
    /// `*`: unfinished, or not known.
    #[default]
    Unknown,
}

/// The longest termination marker with dashes in ASCII.
const LONGEST_MARKER: usize = 7;

impl GameResult {
    /// All results, in the order of their numbers.
    pub const ALL: [GameResult; 4] = [
        GameResult::Draw,
        GameResult::WhiteWins,
        GameResult::BlackWins,
        GameResult::Unknown,
    ];

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

    /// What the `Result` tag says, if it is one of the four tokens.
    pub(crate) fn of_tags(tags: &Tags<'_>) -> Option<GameResult> {
        tags.get(b"Result").and_then(GameResult::from_token)
    }

    /// Reads a termination marker: one of the four tokens, or the ways people type them.
    pub(super) fn from_marker(token: &[u8]) -> Option<GameResult> {
        let mut plain = [0; LONGEST_MARKER];
        let mut length = 0;
        let mut rest = token;
        while let Some((byte, after)) = rest.split_first() {
            let dash = dash(rest);
            *plain.get_mut(length)? = if dash > 0 { b'-' } else { *byte };
            length += 1;
            rest = if dash > 0 { &rest[dash..] } else { after };
        }
        GameResult::from_token(&plain[..length]).or(match &plain[..length] {
            b"1/2" | b"\xc2\xbd-\xc2\xbd" | b"\xc2\xbd" | b"\xbd-\xbd" | b"\xbd" => {
                Some(GameResult::Draw)
            }
            _ => None,
        })
    }

    /// How many bytes at the end of a word are a termination marker that is glued to the text before
    /// it, as in `Qg20-1`. 0 if none are.
    pub(super) fn glued_length(word: &[u8]) -> usize {
        let before = without_last(word, b"1/2")
            .map(|rest| {
                without_last_dash(rest)
                    .and_then(|rest| without_last(rest, b"1/2"))
                    .unwrap_or(rest)
            })
            .or_else(|| {
                let rest = without_last(word, b"0").and_then(without_last_dash)?;
                without_last(rest, b"1")
            })
            .or_else(|| {
                let rest = without_last(word, b"1").and_then(without_last_dash)?;
                without_last(rest, b"0")
            });
        match before {
            Some(before) if !before.is_empty() => word.len() - before.len(),
            _ => 0,
        }
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

fn without_last<'a>(word: &'a [u8], end: &[u8]) -> Option<&'a [u8]> {
    word.strip_suffix(end)
}

fn without_last_dash(word: &[u8]) -> Option<&[u8]> {
    [1, 3].into_iter().find_map(|length| {
        let (before, last) = word.split_at_checked(word.len().checked_sub(length)?)?;
        (dash(last) == length).then_some(before)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markers_as_people_type_them() {
        for dash in ["-", "‐", "‑", "‒", "–", "—", "−"] {
            let marker = |text: &str| GameResult::from_marker(text.replace('-', dash).as_bytes());
            assert_eq!(marker("1-0"), Some(GameResult::WhiteWins));
            assert_eq!(marker("0-1"), Some(GameResult::BlackWins));
            assert_eq!(marker("1/2-1/2"), Some(GameResult::Draw));
            assert_eq!(marker("½-½"), Some(GameResult::Draw));
            assert_eq!(marker("0-0"), None);
        }
        for text in ["", "1", "-", "1-", "2-0", "1-0-0", "1/2-1/2-1/2"] {
            assert_eq!(GameResult::from_marker(text.as_bytes()), None, "{text}");
        }
    }

    #[test]
    fn markers_glued_to_moves() {
        for (word, marker) in [
            ("Qg20-1", "0-1"),
            ("e41/2-1/2", "1/2-1/2"),
            ("e41/2", "1/2"),
            ("Qa1+1–0", "1–0"),
            ("0-01-0", "1-0"),
            ("0-00-1", "0-1"),
        ] {
            let length = GameResult::glued_length(word.as_bytes());
            assert_eq!(&word[word.len() - length..], marker, "{word}");
        }
        for word in ["e4", "1-0", "0-0", "0-0-0", "O-O", "Ra1", "", "-1", "e2-e4"] {
            assert_eq!(GameResult::glued_length(word.as_bytes()), 0, "{word}");
        }
    }
}
