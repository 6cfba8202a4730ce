//! Writes PGN: new games, and copies of games with added comments.

use std::io::{self, Write};

use shakmaty::{Position, variant::VariantPosition};

use crate::chess::position::fen_of;

/// The maximum length in bytes of a line of movetext. A line is longer only if it consists of a single longer word.
const MAX_LINE_WIDTH: usize = 80;

/// The values of the tags `White` and `Black` if the players are unknown.
pub(crate) const UNKNOWN_PLAYERS: [&str; 2] = ["?", "?"];

/// A writer of PGN games, which breaks movetext into lines.
#[derive(Debug)]
pub(crate) struct GameWriter<W> {
    out: W,
    /// The last word, which stays in this buffer until it is known whether a closing parenthesis follows it.
    word: String,
    /// Whether the last word is an opening parenthesis. The next word follows it without a space.
    is_opening: bool,
    /// The width of the current line in bytes, not including the last word.
    column: usize,
    /// The maximum width of a line of movetext.
    width: usize,
}

impl<W: Write> GameWriter<W> {
    pub(crate) fn new(out: W) -> GameWriter<W> {
        GameWriter {
            out,
            word: String::new(),
            is_opening: false,
            column: 0,
            width: MAX_LINE_WIDTH,
        }
    }

    /// Sets the maximum width of a line of movetext, in bytes.
    pub(crate) fn with_width(mut self, width: usize) -> GameWriter<W> {
        self.width = width;
        self
    }

    /// Begins a game with the result `*`, and writes its tags. The game starts from the position `start`. `round` is
    /// the value of the `Round` tag, and `opening` contains the ECO code and the name of the opening. `players`
    /// contains the names of White and Black, or [`UNKNOWN_PLAYERS`].
    pub(crate) fn begin(
        &mut self,
        event: &str,
        round: u64,
        [white, black]: [&str; 2],
        start: &VariantPosition,
        opening: Option<(&str, &str)>,
    ) -> io::Result<()> {
        write!(
            self.out,
            "[Event \"{event}\"]\n[Site \"?\"]\n[Date \"????.??.??\"]\n[Round \"{round}\"]\n[White \"{white}\"]\n\
             [Black \"{black}\"]\n[Result \"*\"]\n"
        )?;
        if let Some((eco, name)) = opening {
            writeln!(self.out, "[ECO \"{eco}\"]\n[Opening \"{name}\"]")?;
        }
        let variant = variant_tag(start);
        if let Some(variant) = variant {
            writeln!(self.out, "[Variant \"{variant}\"]")?;
        }
        if variant == Some(CHESS960) || *start != VariantPosition::new(start.variant()) {
            let fen = fen_of(start);
            writeln!(self.out, "[SetUp \"1\"]\n[FEN \"{fen}\"]")?;
        }
        self.out.write_all(b"\n")
    }

    /// Splits `text` at spaces, and appends the words to the movetext of the game. The writer may break the line
    /// between two words.
    pub(crate) fn words(&mut self, text: &str) -> io::Result<()> {
        for word in text.split(' ') {
            if !std::mem::take(&mut self.is_opening) {
                self.flush_word()?;
            }
            self.word.push_str(word);
        }
        Ok(())
    }

    /// Begins a variation: writes an opening parenthesis.
    pub(crate) fn open(&mut self) -> io::Result<()> {
        self.words("(")?;
        self.is_opening = true;
        Ok(())
    }

    /// Ends a variation: writes a closing parenthesis.
    pub(crate) fn close(&mut self) {
        self.word.push(')');
        self.is_opening = false;
    }

    /// Ends the current game: writes its result, `*`, and a blank line. The caller must call this function once after
    /// the moves of each game.
    pub(crate) fn end(&mut self) -> io::Result<()> {
        self.end_with("*")
    }

    /// Ends the current game like [`end`](GameWriter::end), with the result `result`.
    pub(crate) fn end_with(&mut self, result: &str) -> io::Result<()> {
        self.words(result)?;
        self.flush_word()?;
        self.column = 0;
        self.out.write_all(b"\n\n")
    }

    /// Returns the underlying output. The caller may write to it only between games.
    pub(crate) fn get_mut(&mut self) -> &mut W {
        &mut self.out
    }

    /// Returns the underlying output and drops the writer.
    pub(crate) fn into_inner(self) -> W {
        self.out
    }

    /// Writes the word in the buffer to the output, on a new line if it does not fit on the current one. The last word
    /// is buffered because a closing parenthesis must follow it without a space.
    fn flush_word(&mut self) -> io::Result<()> {
        if self.word.is_empty() {
            return Ok(());
        }
        if self.column > 0 && self.column + 1 + self.word.len() > self.width {
            self.out.write_all(b"\n")?;
            self.column = 0;
        } else if self.column > 0 {
            self.out.write_all(b" ")?;
            self.column += 1;
        }
        self.out.write_all(self.word.as_bytes())?;
        self.column += self.word.len();
        self.word.clear();
        Ok(())
    }
}

const CHESS960: &str = "Chess960";

/// Returns the value of the `Variant` tag for a game that begins in the position `start`. Returns `None` for standard
/// chess.
fn variant_tag(start: &VariantPosition) -> Option<&'static str> {
    Some(match start {
        VariantPosition::Chess(pos) if pos.castles().mode().is_chess960() => CHESS960,
        VariantPosition::Chess(_) => return None,
        VariantPosition::Atomic(_) => "Atomic",
        VariantPosition::Antichess(_) => "Antichess",
        VariantPosition::KingOfTheHill(_) => "King of the Hill",
        VariantPosition::ThreeCheck(_) => "Three-check",
        VariantPosition::Crazyhouse(_) => "Crazyhouse",
        VariantPosition::RacingKings(_) => "Racing Kings",
        VariantPosition::Horde(_) => "Horde",
    })
}

/// Returns a copy of `text`, the PGN of a game, into which comments in braces were inserted. Each item of `comments`
/// contains a byte offset in `text` and a comment. The items may be in any order. If marks such as `!` or `+` are at
/// the offset, the comment is inserted after them.
pub(crate) fn commented(
    text: &[u8],
    comments: impl IntoIterator<Item = (usize, String)>,
) -> Vec<u8> {
    let mut comments = Vec::from_iter(comments);
    comments.sort_by_key(|(at, _)| *at);
    let mut made = Vec::with_capacity(text.len() + 100);
    let mut done = 0;
    for (at, comment) in comments {
        let is_mark = |byte: &&u8| matches!(byte, b'!' | b'?' | b'+' | b'#');
        let at = at + text[at..].iter().take_while(is_mark).count();
        made.extend_from_slice(&text[done..at]);
        made.extend(format!(" {{{comment}}} ").into_bytes());
        done = at;
    }
    made.extend_from_slice(&text[done..]);
    made
}
