//! Parses the results of games.

use memchr::memchr_iter;
use shakmaty::Color;

use super::word::{blank, dash, first_word};

/// The result of a game, as stated by its `Result` tag or its termination marker.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug, Default)]
pub enum GameResult {
    // Indexes store results by these discriminants, so their order must not change.
    /// `1/2-1/2`
    Draw,
    /// `1-0`
    WhiteWins,
    /// `0-1`
    BlackWins,
    /// `*`: the game is unfinished, or its result is unknown.
    #[default]
    Unknown,
}

/// The maximum length in bytes of a text that can be a result, without its blanks and with all characters converted to
/// ASCII.
const MAX_TEXT_LENGTH: usize = "1/2-1/2".len();

/// The maximum length in bytes of a word that can be a termination marker with other signs around it. A result itself
/// has at most 13 bytes, however it is spelled.
pub(super) const MAX_MARKER_LENGTH: usize = 32;

impl GameResult {
    /// All results, in the order of their discriminants.
    pub const ALL: [GameResult; 4] = [
        GameResult::Draw,
        GameResult::WhiteWins,
        GameResult::BlackWins,
        GameResult::Unknown,
    ];

    /// Parses one of the four result tokens of the PGN standard: `1-0`, `0-1`, `1/2-1/2` or `*`. Returns `None` for
    /// any other text.
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

    /// Parses a result in any form that people and programs use in a tag or after the moves. Examples are `1-0`,
    /// `1:0`, `1 – 0`, `½-½`, `1/2`, `0,5-0,5`, `1-0 (forfeit)`, `+:-`, `White wins` and `draw agreed`.
    ///
    /// If both sides lost, as in `0-0`, the result is [`GameResult::Unknown`]. Returns `None` for any other text,
    /// such as the score of a match (`2-0`, `1-1`).
    ///
    /// ```
    /// use polybook::pgn::GameResult;
    /// assert_eq!(GameResult::from_text("1–0 ".as_bytes()), Some(GameResult::WhiteWins));
    /// assert_eq!(GameResult::from_text(b"0.5-0.5"), Some(GameResult::Draw));
    /// assert_eq!(GameResult::from_text(b"0-0"), Some(GameResult::Unknown));
    /// assert_eq!(GameResult::from_text(b"?"), None);
    /// ```
    pub fn from_text(text: &[u8]) -> Option<GameResult> {
        GameResult::from_token(text)
            .or_else(|| spelled(text).map(|(result, _)| result))
            .or_else(|| GameResult::from_words(text))
    }

    /// Parses a result in English words, such as `draw`, `Draw agreed`, `White wins`, `Black won on time.` or `White
    /// resigns`. Returns `None` for any other text.
    pub(super) fn from_words(text: &[u8]) -> Option<GameResult> {
        let text = str::from_utf8(text).ok()?.to_ascii_lowercase();
        let mut words = text.trim().trim_end_matches(['.', '!']).split_whitespace();
        let subject = match words.next()? {
            "game" => words.next()?,
            subject => subject,
        };
        let mut words = words.peekable();
        let result = match (subject, words.peek()) {
            ("draw" | "drawn", Some(&"agreed")) => {
                words.next();
                GameResult::Draw
            }
            ("draw" | "drawn", _) => GameResult::Draw,
            ("white" | "black", _) => {
                let side_wins = match words.next()? {
                    "wins" | "won" => true,
                    "resigns" | "resigned" => false,
                    _ => return None,
                };
                if (subject == "white") == side_wins {
                    GameResult::WhiteWins
                } else {
                    GameResult::BlackWins
                }
            }
            _ => return None,
        };
        // Other words may change the meaning, as in `draw offered` or `White wins a pawn`.
        matches!(words.next(), None | Some("by" | "on")).then_some(result)
    }

    /// Returns the length in bytes of the score of a match at the start of `text`, such as `2-0` or `1 : 1`. A single
    /// game cannot have such a result. Returns 0 if `text` does not start with such a score.
    pub(super) fn match_score_length(text: &[u8]) -> usize {
        let is_digit = |at: usize| text.get(at).is_some_and(u8::is_ascii_digit);
        let dash_at = 1 + blanks_length(text.get(1..).unwrap_or_default());
        let sign = sign_length(text.get(dash_at..).unwrap_or_default());
        let second = dash_at + sign + blanks_length(text.get(dash_at + sign..).unwrap_or_default());
        let is_score = is_digit(0)
            && sign > 0
            && is_digit(second)
            && first_word(&text[second + 1..]).is_empty()
            && spelled_exactly(&text[..=second]).is_none();
        if is_score { second + 1 } else { 0 }
    }

    /// Parses `word` as a termination marker: the result of the game after its moves. Returns `None` for any other
    /// word, and for a word that could also be castling (`0-0`) or an annotation (`+--`).
    pub(super) fn from_marker(word: &[u8]) -> Option<GameResult> {
        GameResult::from_token(word).or_else(|| {
            let (result, certainty) = spelled(word)?;
            (certainty == Certainty::Marker).then_some(result)
        })
    }

    /// Parses the last word of a game as a termination marker. Accepts a forfeit such as `+--`, which would be an
    /// annotation if moves followed. Returns `None` for any other word, and for a word that could also be castling
    /// (`0-0`).
    pub(super) fn from_last_word(word: &[u8]) -> Option<GameResult> {
        let (result, certainty) = spelled(word)?;
        (certainty != Certainty::MayBeCastling).then_some(result)
    }

    /// Parses a termination marker with signs directly before or after it, such as `1-0#`, `‘1-0’` or `½-½∆`. Returns
    /// `None` for any other word.
    pub(super) fn from_marker_among_signs(word: &[u8]) -> Option<GameResult> {
        let text = str::from_utf8(word).ok()?;
        let is_sign = |sign: char| !sign.is_alphanumeric();
        let marker = text.trim_matches(is_sign);
        if marker.len() == word.len() {
            return None;
        }
        GameResult::from_marker(marker.as_bytes())
    }

    /// Returns `true` if `text` is a result such as `0-0`, which means that both sides lost the game. Among moves, the
    /// same text can be castling.
    pub(super) fn is_double_loss(text: &[u8]) -> bool {
        spelled(text).is_some_and(|(_, certainty)| certainty == Certainty::MayBeCastling)
    }

    /// Parses a termination marker with blanks between its parts at the start of `text`, such as `1 - 0`, `0 : 1` or
    /// `1/2 - 1/2`. Returns `None` if there is no such marker.
    ///
    /// Otherwise returns the result, the length of the marker in bytes, and `true` if the marker is ambiguous. An
    /// ambiguous marker states the result only at the end of a game. Elsewhere it could be castling or an annotation.
    pub(super) fn spaced_marker(text: &[u8]) -> Option<(GameResult, usize, bool)> {
        let first = points_length(text)?;
        let dash_at = first + blanks_length(&text[first..]);
        let sign = sign_length(&text[dash_at..]);
        let second_at = dash_at + sign + blanks_length(&text[dash_at + sign..]);
        let has_blanks = dash_at > first || second_at > dash_at + sign;
        let end = second_at + points_length(&text[second_at..])?;
        let has_breaks = |sign| memchr_iter(sign, &text[..end]).nth(1).is_some();
        let has_blank_line = has_breaks(b'\n') || has_breaks(b'\r');
        if sign == 0 || !has_blanks || has_blank_line || !first_word(&text[end..]).is_empty() {
            return None;
        }
        let (result, certainty) = spelled_exactly(&text[..end])?;
        Some((result, end, certainty != Certainty::Marker))
    }

    /// Returns the length in bytes of a termination marker that ends a word without a blank before it, as in `Qg20-1`.
    /// Returns 0 if the word does not end with a marker.
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

    /// Returns the side that won the game, or `None` for a draw or an unknown result.
    #[inline]
    pub fn winner(self) -> Option<Color> {
        match self {
            GameResult::WhiteWins => Some(Color::White),
            GameResult::BlackWins => Some(Color::Black),
            GameResult::Draw | GameResult::Unknown => None,
        }
    }

    /// Returns the result as the PGN standard writes it, such as `1-0`.
    pub fn token(self) -> &'static str {
        match self {
            GameResult::WhiteWins => "1-0",
            GameResult::BlackWins => "0-1",
            GameResult::Draw => "1/2-1/2",
            GameResult::Unknown => "*",
        }
    }
}

/// The certainty that a text among the moves is the result of the game. Some texts are ambiguous: for example, `0-0`
/// can also be castling.
#[derive(Copy, Clone, PartialEq, Eq)]
enum Certainty {
    /// The text can only be a termination marker.
    Marker,
    /// The text is an annotation, unless it is the last word of the game.
    MayBeAnnotation,
    /// The text is castling, unless castling is impossible.
    MayBeCastling,
}

/// Parses a result at the start of `text`. Ignores words, letters and dots after the result, as in `1-0 (forfeit)` and
/// `1-0F`. Returns the result, and how certain it is that the text is a result. Returns `None` if the text does not
/// begin with a result.
#[cold]
fn spelled(text: &[u8]) -> Option<(GameResult, Certainty)> {
    spelled_exactly(text).or_else(|| {
        // `1-0 (forfeit)`, `0-1 ff`, `1-0F`, `1/2.`
        let start = text.trim_ascii_start();
        let start = &start[..start.len().min(MAX_MARKER_LENGTH)];
        let mut words = start.split(|byte| byte.is_ascii_whitespace() || *byte == b'(');
        let word = words.next()?;
        let is_extra = |byte: &u8| byte.is_ascii_alphabetic() || b".,".contains(byte);
        let last = word.iter().rposition(|byte| !is_extra(byte))?;
        let without_extra = &word[..=last];
        (without_extra.len() < text.len())
            .then(|| spelled_exactly(without_extra))
            .flatten()
    })
}

/// Parses a text that consists only of a result. Returns the result, and how certain it is that the text is one,
/// because `0-0`, for example, can also be castling. Returns `None` for any other text.
fn spelled_exactly(text: &[u8]) -> Option<(GameResult, Certainty)> {
    let mut plain = [0; MAX_TEXT_LENGTH];
    let mut length = 0;
    let mut rest = text;
    while let [byte, ..] = *rest {
        let (sign, taken): (&[u8], usize) = match rest {
            [
                b'0' | b'1' | b'2' | b'5' | b'/' | b'.' | b'-' | b'O' | b'o' | b'*' | b'+' | b'=',
                ..,
            ] => {
                *plain.get_mut(length)? = byte;
                length += 1;
                rest = &rest[1..];
                continue;
            }
            [b':', ..] => (b"-", 1),
            [b',', ..] => (b".", 1),
            [0xc2, 0xbd, ..] => (b"1/2", 2),
            [0xbd, ..] => (b"1/2", 1),
            // Fraction slash and division slash.
            [0xe2, 0x81, 0x84, ..] | [0xe2, 0x88, 0x95, ..] => (b"/", 3),
            // Fullwidth colon.
            [0xef, 0xbc, 0x9a, ..] => (b"-", 3),
            _ if byte.is_ascii_whitespace() => (b"", 1),
            _ if dash(rest) > 0 => (b"-", dash(rest)),
            _ if blank(rest) > 0 => (b"", blank(rest)),
            _ => return None,
        };
        plain
            .get_mut(length..length + sign.len())?
            .copy_from_slice(sign);
        length += sign.len();
        rest = &rest[taken..];
    }
    let result = match &plain[..length] {
        // Some people write the letter O for the digit.
        b"1-0" | b"1-O" | b"1-o" | b"1.0-0.0" => GameResult::WhiteWins,
        b"0-1" | b"O-1" | b"o-1" | b"0.0-1.0" => GameResult::BlackWins,
        // The reader skips the first dot of `.5-.5`, so the dot may be missing.
        b"1/2-1/2" | b"1/2" | b"0.5-0.5" | b".5-.5" | b"5-.5" => GameResult::Draw,
        b"*" | b"1/2-0" | b"0-1/2" | b"0.5-0" | b"0-0.5" => GameResult::Unknown,
        b"0-0" => return Some((GameResult::Unknown, Certainty::MayBeCastling)),
        b"+--" => return Some((GameResult::WhiteWins, Certainty::MayBeAnnotation)),
        b"--+" => return Some((GameResult::BlackWins, Certainty::MayBeAnnotation)),
        b"=-=" => return Some((GameResult::Draw, Certainty::MayBeAnnotation)),
        b"---" => return Some((GameResult::Unknown, Certainty::MayBeAnnotation)),
        _ => return None,
    };
    Some((result, Certainty::Marker))
}

/// Returns the length in bytes of the points of one side at the start of `text`. Points are written as `1`, `0`, `½`,
/// `1/2` or `0.5`. Returns `None` if `text` does not start with points.
fn points_length(text: &[u8]) -> Option<usize> {
    const HALVES: [&[u8]; 9] = [
        b"1/2",
        b"1\xe2\x81\x842",
        b"1\xe2\x88\x952",
        b"\xc2\xbd",
        b"\xbd",
        b"0.5",
        b"0,5",
        b"1",
        b"0",
    ];
    let half = HALVES.into_iter().find(|half| text.starts_with(half))?;
    Some(half.len())
}

/// Returns the length in bytes of the colon or dash at the start of `text`, or 0 if `text` begins with neither.
fn sign_length(text: &[u8]) -> usize {
    match text {
        [b':', ..] => 1,
        _ => dash(text),
    }
}

/// Returns the length in bytes of the blanks and line breaks at the start of `text`. Examines only blanks that begin in
/// the first 8 bytes of `text`.
fn blanks_length(text: &[u8]) -> usize {
    let mut length = 0;
    while length < 8 && length < text.len() {
        length += match text[length] {
            byte if byte.is_ascii_whitespace() => 1,
            _ => match blank(&text[length..]) {
                0 => break,
                blank => blank,
            },
        };
    }
    length
}

/// Returns `word` without the ending `end`, or `None` if `word` does not end with `end`.
fn without_last<'a>(word: &'a [u8], end: &[u8]) -> Option<&'a [u8]> {
    word.strip_suffix(end)
}

/// Returns `word` without the dash or colon at its end, or `None` if `word` ends with neither.
fn without_last_dash(word: &[u8]) -> Option<&[u8]> {
    if let [before @ .., b':'] = word {
        return Some(before);
    }
    [1, 3].into_iter().find_map(|length| {
        let (before, last) = word.split_at_checked(word.len().checked_sub(length)?)?;
        (dash(last) == length).then_some(before)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scores_of_matches_are_no_results() {
        for (text, length) in [
            ("2-0", 3),
            ("1:1", 3),
            ("0\u{2013}2 ", 5),
            ("1 - 1\n\n[", 5),
            ("1-0", 0),
            ("0-0", 0),
            ("1 : 0", 0),
            ("10-0", 0),
            ("2-0-0", 0),
            ("2-", 0),
            ("-2", 0),
            ("2", 0),
            ("", 0),
        ] {
            assert_eq!(
                GameResult::match_score_length(text.as_bytes()),
                length,
                "{text}"
            );
            if length > 0 {
                assert_eq!(GameResult::from_text(&text.as_bytes()[..length]), None);
            }
        }
    }

    #[test]
    fn markers_in_common_spellings_are_read() {
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
    fn results_in_all_spellings_are_read() {
        for (text, result) in [
            ("1:0", GameResult::WhiteWins),
            ("0 : 1", GameResult::BlackWins),
            ("1 \u{2013} 0", GameResult::WhiteWins),
            ("\u{feff}0-1\u{a0}", GameResult::BlackWins),
            ("1-0 (forfeit)", GameResult::WhiteWins),
            ("0-1 ff", GameResult::BlackWins),
            ("1-0F", GameResult::WhiteWins),
            ("+:-", GameResult::WhiteWins),
            ("--+", GameResult::BlackWins),
            ("0,5:0,5", GameResult::Draw),
            (".5-.5", GameResult::Draw),
            ("½ : ½", GameResult::Draw),
            ("1\u{2044}2-1\u{2044}2", GameResult::Draw),
            ("1/2 - 1/2", GameResult::Draw),
            ("1/2.", GameResult::Draw),
            ("1-O", GameResult::WhiteWins),
            ("O-1", GameResult::BlackWins),
            ("1,0:0,0", GameResult::WhiteWins),
            ("=:=", GameResult::Draw),
            ("0-0", GameResult::Unknown),
            ("-:-", GameResult::Unknown),
            ("0-½", GameResult::Unknown),
            ("draw", GameResult::Draw),
            ("Draw.", GameResult::Draw),
            ("Draw agreed", GameResult::Draw),
            ("game drawn", GameResult::Draw),
            ("DRAWN BY REPETITION", GameResult::Draw),
            ("White wins", GameResult::WhiteWins),
            ("White won on time", GameResult::WhiteWins),
            ("black  won.", GameResult::BlackWins),
            ("White resigns", GameResult::BlackWins),
            ("Black resigned", GameResult::WhiteWins),
        ] {
            let found = GameResult::from_text(text.as_bytes());
            assert_eq!(found, Some(result), "{text}");
        }
        let latin = GameResult::from_text(b"\xbd-\xbd");
        assert_eq!(latin, Some(GameResult::Draw));
        for text in [
            "",
            "?",
            "0-0-0",
            "O-O",
            "+-",
            "1-1",
            "2-0",
            "remis",
            "white",
            "draw?",
            "draw offered",
            "White wins a pawn",
            "White win",
            "game",
            "wins",
            "1-0-0",
            "2-1",
            "=",
            "-",
        ] {
            assert_eq!(GameResult::from_text(text.as_bytes()), None, "{text}");
        }
    }

    #[test]
    fn markers_glued_to_moves_are_found() {
        for (word, marker) in [
            ("Qg20-1", "0-1"),
            ("e41/2-1/2", "1/2-1/2"),
            ("e41/2", "1/2"),
            ("Qa1+1–0", "1–0"),
            ("0-01-0", "1-0"),
            ("0-00-1", "0-1"),
            ("Qg21:0", "1:0"),
        ] {
            let length = GameResult::glued_length(word.as_bytes());
            assert_eq!(&word[word.len() - length..], marker, "{word}");
        }
        for word in ["e4", "1-0", "0-0", "0-0-0", "O-O", "Ra1", "", "-1", "e2-e4"] {
            assert_eq!(GameResult::glued_length(word.as_bytes()), 0, "{word}");
        }
    }
}
