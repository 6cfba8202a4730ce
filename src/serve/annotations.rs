//! The annotations in the text of a game: clocks, evaluations, marks and comments.

use serde::Serialize;

use crate::{
    evals::{Score, evaluation},
    pgn::{TimeSaid, tag_text},
};

/// The annotations that follow a move.
#[derive(Clone, PartialEq, Default, Debug, Serialize)]
pub(super) struct Annotations {
    /// The seconds left on the clock.
    #[serde(skip_serializing_if = "Option::is_none")]
    clk: Option<f64>,
    /// The evaluation from White's point of view.
    #[serde(skip_serializing_if = "Option::is_none")]
    eval: Option<Score>,
    /// The marks as numeric annotation glyphs (NAGs) of PGN: 1 is a good move, 4 a blunder.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    nags: Vec<u16>,
    /// The comments, without commands such as `[%clk ...]`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub comments: Vec<String>,
}

impl Annotations {
    /// Reads the text between a move of the main line and the next one. Variations are skipped.
    pub(super) fn read(mut text: &[u8]) -> Annotations {
        let mut read = Annotations::default();
        let mut depth = 0u32;
        let mut is_line_start = false;
        while let Some((&byte, rest)) = text.split_first() {
            let len = match byte {
                b'{' => {
                    let end = memchr::memchr(b'}', rest).unwrap_or(rest.len());
                    read.take_comment(&rest[..end], depth);
                    (end + 2).min(text.len())
                }
                b';' => {
                    let end = line_end(rest);
                    read.take_comment(&rest[..end], depth);
                    end + 1
                }
                b'%' if is_line_start => line_end(text).max(1),
                b'(' => {
                    depth = depth.saturating_add(1);
                    1
                }
                b')' => {
                    depth = depth.saturating_sub(1);
                    1
                }
                b'$' => {
                    let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
                    if depth == 0 {
                        let number = str::from_utf8(&rest[..digits]).unwrap_or_default();
                        read.nags.extend(number.parse::<u16>());
                    }
                    digits + 1
                }
                b'!' | b'?' => {
                    let is_mark = |byte: &&u8| matches!(byte, b'!' | b'?');
                    let len = text.iter().take_while(is_mark).count();
                    if depth == 0 {
                        read.nags.extend(nag(&text[..len]));
                    }
                    len
                }
                _ => 1,
            };
            is_line_start = matches!(text[len - 1], b'\n' | b'\r');
            text = &text[len..];
        }
        read
    }

    /// Adds a comment of the main line: its clock, its evaluation, and its text without commands. Comments in variations are
    /// ignored.
    fn take_comment(&mut self, comment: &[u8], depth: u32) {
        if depth > 0 {
            return;
        }
        let mut time = TimeSaid::default();
        time.read(comment);
        self.clk = time.left.or(self.clk);
        let score = evaluation(comment).flatten().map(|(score, _)| score);
        self.eval = score.or(self.eval);
        let text = tag_text(comment);
        let mut said = String::new();
        let mut rest = &*text;
        while let Some(start) = rest.find("[%") {
            let Some(len) = rest[start..].find(']') else {
                break;
            };
            said.push_str(&rest[..start]);
            rest = &rest[start + len + 1..];
        }
        said.push_str(rest);
        let words: Vec<&str> = said.split_whitespace().collect();
        if !words.is_empty() {
            self.comments.push(words.join(" "));
        }
    }
}

/// Returns the offset of the first line break, or the length of the text.
fn line_end(text: &[u8]) -> usize {
    memchr::memchr2(b'\n', b'\r', text).unwrap_or(text.len())
}

/// Returns the NAG of a mark that is written after a move, such as `!?`.
fn nag(mark: &[u8]) -> Option<u16> {
    let marks: [&[u8]; 6] = [b"!", b"?", b"!!", b"??", b"!?", b"?!"];
    let at = marks.iter().position(|known| *known == mark)?;
    Some(at as u16 + 1)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(text: &str) -> serde_json::Value {
        serde_json::to_value(Annotations::read(text.as_bytes())).unwrap()
    }

    #[test]
    fn commands_marks_and_comments_are_read() {
        assert_eq!(read(" 1..."), json!({}));
        assert_eq!(
            read("!? $14 { [%eval 0.17,22] Best\nby  test. [%clk 1:02:03.5][%cal Ge2e4] } 2."),
            json!({"clk": 3723.5, "eval": {"cp": 17}, "nags": [5, 14], "comments": ["Best by test."]})
        );
        assert_eq!(
            read("{[%eval #-3]} (1. d4! {no; $9} (1. c4??)) ; to the end\n% not this ! \n$4"),
            json!({"eval": {"mate": -3}, "nags": [4], "comments": ["to the end"]})
        );
        assert_eq!(
            read("{[%eval 0.3,20]} ; [%clk 10:00:00]"),
            json!({"clk": 36000.0, "eval": {"cp": 30}})
        );
    }

    #[test]
    fn malformed_values_are_left_out() {
        for text in [
            "{[%clk ]}",
            "{[%clk nan]}",
            "{[%clk 1:-2]}",
            "{[%clk inf]}",
            "{[%clk 3:00]}",
            "{[%clk 180]}",
            "{[%clk 0:90:00]}",
            "{[%eval nan]}",
            "{[%eval 1e300]}",
            "{[%eval 35]}",
            "{[%eval 0.3,x]}",
            "{[%eval #]}",
            "{[%eval #0]}",
            "$",
            "$99999999",
            "!!!",
            "{",
            "{}",
            "(",
            "; ",
            "%",
        ] {
            assert_eq!(read(text), json!({}), "{text}");
        }
        assert_eq!(read("{[%eval 1"), json!({"comments": ["[%eval 1"]}));
    }
}
