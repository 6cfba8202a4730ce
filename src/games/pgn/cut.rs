//! Cuts a stream of PGN into batches of whole games.
//!
//! The cutter usually does not read games. It searches backwards from the end of its buffer for a line that begins
//! the tags of a game. This line must be outside comments, which is certain if the nearest brace before it is a
//! closing brace. The text before the line becomes a batch.
//!
//! If there is no such line, because the games have no tags or a comment is not closed, the cutter reads the games
//! to find where they begin. Batches therefore always end at game boundaries, no matter in which portions the bytes
//! arrive.

use std::io::{self, BufRead};

use memchr::{memchr_iter, memchr2, memrchr, memrchr2};

use super::{
    game::{GameReader, MAX_COMMENT_DISTANCE},
    movetext::{Flaw, GameEnd},
    tags::{
        MAX_CONTINUATION_LENGTH, closing_quote, damaged_start_tag, has_tag, is_tag_start,
        moves_begin, number_after_tags,
    },
    text::{Text, WINDOW},
    word::is_control,
};

/// The maximum distance in bytes from the beginning of one game to the beginning of the next: 16 MiB. If no game begins
/// within this distance, a [`Cutter`] returns an error, because it holds a whole game in memory.
pub const MAX_GAME_LENGTH: usize = 16 << 20;

/// The number of bytes that a [`Cutter`] reads ahead before it cuts the stream at what looks like the beginning of a game.
/// If these bytes close a comment or tag value that was still open, the apparent game is a part of this text, and the
/// cutter does not cut. The number is the greater of [`MAX_COMMENT_DISTANCE`] and [`MAX_CONTINUATION_LENGTH`].
const LOOKAHEAD: usize = if MAX_COMMENT_DISTANCE > MAX_CONTINUATION_LENGTH {
    MAX_COMMENT_DISTANCE
} else {
    MAX_CONTINUATION_LENGTH
};

/// The maximum number of lines that [`tagged_boundary`] examines in its backward search for the beginning of a game. If
/// all of these lines may be inside comments, the slower [`read_boundary`] parses the games instead.
const MAX_CANDIDATES: usize = 64;

/// A part of a PGN stream that contains only whole games.
#[derive(Debug)]
pub struct Batch {
    /// The text of the games.
    pub text: Vec<u8>,
    /// The offset of the first byte of `text` in the decompressed stream.
    pub offset: u64,
}

/// A reader that divides a PGN stream into [batches](Batch), each of which consists of whole games.
#[derive(Debug)]
pub struct Cutter<R> {
    stream: R,
    batch_size: usize,
    /// Bytes that have been read but not returned yet. They begin at a game boundary.
    held: Vec<u8>,
    /// The offset of the first byte of `held` in the stream.
    offset: u64,
    /// Whether the stream has ended.
    ended: bool,
    /// A function that returns the last offset greater than 0 at which a text may be cut, or `None` if there is no
    /// such offset.
    boundary: fn(&[u8]) -> Option<usize>,
    /// The words that follow "no" in the error message for a text that cannot be cut, such as "game begins".
    lacks: &'static str,
}

impl<R: BufRead> Cutter<R> {
    /// Creates a cutter that reads PGN from `stream`. Each batch will have about `batch_size` bytes. A size of 512 KiB
    /// is suitable if several threads parse one batch each at the same time.
    pub fn new(stream: R, batch_size: usize) -> Cutter<R> {
        Cutter {
            stream,
            batch_size: batch_size.max(1),
            held: Vec::new(),
            offset: 0,
            ended: false,
            boundary: last_boundary,
            lacks: "game begins",
        }
    }

    /// Creates a cutter for a stream of lines instead of games. Each batch will consist of whole lines, with about
    /// `batch_size` bytes in total.
    pub(crate) fn of_lines(stream: R, batch_size: usize) -> Cutter<R> {
        Cutter {
            boundary: |text| memrchr(b'\n', text).map(|last| last + 1),
            lacks: "line ends",
            ..Cutter::new(stream, batch_size)
        }
    }

    /// Reads the next batch of games. Returns `None` at the end of the stream.
    ///
    /// # Errors
    ///
    /// Returns an error if the stream cannot be read. Returns an error of the kind [`io::ErrorKind::InvalidData`] if no
    /// game begins within [`MAX_GAME_LENGTH`] bytes.
    pub fn next_batch(&mut self) -> io::Result<Option<Batch>> {
        let mut wanted = self.batch_size;
        loop {
            self.fill(wanted)?;
            if self.ended {
                return Ok(self.hand_out(self.held.len()));
            }
            if let Some(end) = (self.boundary)(&self.held) {
                return Ok(self.hand_out(end));
            }
            if self.held.len() >= MAX_GAME_LENGTH {
                return Err(io::Error::new(
                    io::ErrorKind::InvalidData,
                    format!(
                        "no {} in the {} MiB after byte {}",
                        self.lacks,
                        MAX_GAME_LENGTH >> 20,
                        self.offset
                    ),
                ));
            }
            wanted = (self.held.len() * 2).min(MAX_GAME_LENGTH);
        }
    }

    /// Reads from the stream until the buffer contains `wanted` bytes, or until the stream ends.
    fn fill(&mut self, wanted: usize) -> io::Result<()> {
        if self.held.capacity() < wanted {
            self.held.reserve_exact(wanted - self.held.len());
        }
        // Unlike `read_to_end`, this does not first set the buffer to zero.
        while self.held.len() < wanted && !self.ended {
            let bytes = match self.stream.fill_buf() {
                Err(err) if err.kind() == io::ErrorKind::Interrupted => continue,
                bytes => bytes?,
            };
            self.ended = bytes.is_empty();
            let some = bytes.len().min(wanted - self.held.len());
            self.held.extend_from_slice(&bytes[..some]);
            self.stream.consume(some);
        }
        Ok(())
    }

    /// Removes the first `end` bytes from the buffer, and returns them as a batch. Returns `None` if `end` is 0.
    fn hand_out(&mut self, end: usize) -> Option<Batch> {
        let rest = self.held[end..].to_vec();
        let mut text = std::mem::replace(&mut self.held, rest);
        text.truncate(end);
        let offset = self.offset;
        self.offset += end as u64;
        (!text.is_empty()).then_some(Batch { text, offset })
    }
}

/// Returns the offset of the last game boundary in `text`, or `None` if no boundary is found. A game boundary is an
/// offset greater than 0 at which a game certainly begins.
fn last_boundary(text: &[u8]) -> Option<usize> {
    tagged_boundary(text).or_else(|| read_boundary(text))
}

/// Returns the offset of the last line in `text` that begins the tags of a game and is outside comments. Returns `None`
/// if no such line is found. The line is a game boundary regardless of the text after it.
fn tagged_boundary(text: &[u8]) -> Option<usize> {
    let mut end = text.len();
    let mut tries = 0;
    while tries < MAX_CANDIDATES {
        let at = memrchr(b'[', &text[..end])?;
        end = at;
        // The moves of a game may go on after a tag. The bytes after the tag decide about this.
        let begins_game = at > 0
            && matches!(text[at - 1], b'\n' | b'\r')
            && is_tag_start(Text::new(text), at)
            && text.len() - at >= WINDOW
            && !line_before_is_tag(text, at)
            && number_after_tags(Text::new(text), at).is_none();
        if !begins_game {
            continue;
        }
        tries += 1;
        let brace = memrchr2(b'{', b'}', &text[..at]);
        if brace.is_none_or(|brace| text[brace] == b'}') {
            return Some(at);
        }
    }
    None
}

/// Returns `true` if the tag at the offset `at` may belong to a game whose first tag comes earlier. Examines the last
/// line before `at` that is neither blank nor a comment. The result is `true` if this line is a tag, or may be one.
fn line_before_is_tag(text: &[u8], at: usize) -> bool {
    let mut before = &text[..at];
    let mut is_next_to = true;
    loop {
        let whole = before;
        before = before.trim_ascii_end();
        is_next_to &= memchr_iter(b'\n', &whole[before.len()..]).count() <= 1;
        let start = memrchr2(b'\n', b'\r', before).map_or(0, |i| i + 1);
        let line = &before[start..];
        // If a line contains braces and also a semicolon or an escape, either kind of comment may be inside the
        // other, so the line is ambiguous. A line that contains an escape and the end of a tag is ambiguous too,
        // because the value of the tag may have begun on an earlier line.
        let is_escaped = line.first() == Some(&b'%') || line.contains(&b';');
        if is_escaped
            && (memchr2(b'{', b'}', line).is_some() || closing_quote(Text::new(line)).is_some())
        {
            return true;
        }
        if !matches!(line.first(), Some(b'%' | b';')) {
            // A tag may begin anywhere in a line, and a comment may separate two tags.
            let after_comments = match memrchr(b'}', line) {
                Some(brace) => &line[brace + 1..],
                None => line,
            };
            let before_comment = after_comments.split(|byte| *byte == b';').next();
            // Other text directly above the tag, or directly above comments before the tag, may be stray text among
            // the tags of this game. Even text that looks like moves may be stray text, unless the tag is `Event`,
            // with which most games begin. If a comment ends on the line, only the text after the comment is
            // examined.
            let begins_game = moves_begin(line)
                && memchr2(b'{', b'}', line).is_none_or(|brace| line[brace] == b'{')
                && text[at..].starts_with(b"[Event ");
            // The reader skips unusual blanks and markup between tags.
            let may_be_skipped =
                |byte: &u8| !byte.is_ascii() || is_control(*byte) || b"%\\<&".contains(byte);
            let may_be_text = (is_next_to || line.iter().any(may_be_skipped) && !moves_begin(line))
                && !begins_game;
            // The number of a list looks like a move number if the tag below it is not examined.
            let digits_end = line
                .iter()
                .rposition(u8::is_ascii_digit)
                .map_or(0, |i| i + 1);
            let digits = line[..digits_end]
                .iter()
                .rev()
                .take_while(|byte| byte.is_ascii_digit());
            let number = digits_end - digits.count();
            let numbers_tags =
                moves_begin(&line[number..]) && !moves_begin(&text[start + number..]);
            let has_start_tag = || {
                memchr_iter(b'[', line).any(|bracket| damaged_start_tag(&line[bracket..]).is_some())
            };
            return may_be_text
                || numbers_tags
                || has_start_tag()
                || line.trim_ascii_start().starts_with(b"[")
                || has_tag(Text::new(line))
                || closing_quote(Text::new(line)).is_some()
                || line.ends_with(b"]")
                || before_comment.is_none_or(|text| text.trim_ascii().is_empty());
        }
        if start == 0 {
            return true;
        }
        before = &before[..start];
    }
}

/// Parses the games in `text`, and returns the offset of the last game at which the text can be cut: the game certainly
/// begins there, and the game before it is read in the same way if the text ends there. Returns `None` if there is no
/// such game after the start of the text. At least [`LOOKAHEAD`] bytes of `text` follow the offset, because bytes at a
/// greater distance cannot change where the games before it end.
fn read_boundary(text: &[u8]) -> Option<usize> {
    let certain = text.len().checked_sub(LOOKAHEAD)?;
    let mut games = GameReader::new(text);
    let (mut last, mut boundary) = (None, None);
    while games.next_game() && games.game_offset() <= certain {
        let start = games.game_offset();
        if let Some((before, read)) = last
            && read_alone(&text[before..start]) == Some(read)
        {
            boundary = Some(start);
        }
        last = Some((start, read_moves(&mut games, start)));
    }
    boundary
}

/// The number of tags of a game, the number of its moves, and how the game ends. Offsets are relative to the beginning
/// of the game.
type ReadGame = (usize, usize, GameEnd);

/// Reads the moves of the current game of `games`, which begins at the offset `start`.
fn read_moves(games: &mut GameReader<'_>, start: usize) -> ReadGame {
    let (tags, mut moves) = (games.tags().iter().len(), 0);
    let end = match games.rest_of_moves(|_| moves += 1) {
        GameEnd::Broken(flaw) => GameEnd::Broken(Flaw {
            offset: flaw.offset - start,
            ..flaw
        }),
        end => end,
    };
    (tags, moves, end)
}

/// Reads the only game in `text`, without the text that follows it in the file, which may change the meaning of the
/// game's last words. Returns `None` if `text` is not a single game.
fn read_alone(text: &[u8]) -> Option<ReadGame> {
    let mut games = GameReader::new(text);
    let has_game = games.next_game();
    let game = read_moves(&mut games, 0);
    (has_game && !games.next_game()).then_some(game)
}

#[cfg(test)]
mod tests {
    use std::io::BufReader;

    use proptest::prelude::*;

    use super::*;
    use crate::games::pgn::Token;

    /// Returns the offset and the end of each game, read from batches of `batch_size` bytes.
    fn games(text: &[u8], batch_size: usize) -> Vec<(u64, String)> {
        // The reader returns a few bytes at a time, as a pipe may do.
        let mut cutter = Cutter::new(BufReader::with_capacity(7, text), batch_size);
        let mut found = Vec::new();
        let mut offset = 0;
        while let Some(batch) = cutter.next_batch().unwrap() {
            assert_eq!(batch.offset, offset);
            offset += batch.text.len() as u64;
            let mut reader = GameReader::new(&batch.text);
            while reader.next_game() {
                let start = batch.offset + reader.game_offset() as u64;
                let mut moves = format!("{:?} ", reader.tags());
                loop {
                    match reader.next_token() {
                        Token::Move { text, .. } | Token::Unreadable { text, .. } => {
                            moves += &String::from_utf8_lossy(text);
                            moves.push(' ');
                        }
                        Token::NullMove { .. } => moves += "-- ",
                        Token::BeginVariation => moves += "( ",
                        Token::EndVariation => moves += ") ",
                        Token::End(GameEnd::Complete(result)) => {
                            break moves += &format!("{result:?}");
                        }
                        Token::End(GameEnd::Broken(flaw)) => {
                            break moves += &flaw.reason.to_string();
                        }
                    }
                }
                found.push((start, moves));
            }
        }
        assert_eq!(offset, text.len() as u64);
        found
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(16))]

        #[test]
        fn batches_are_whole_lines(lengths in proptest::collection::vec(0..300_000usize, 0..20), ends: bool) {
            let mut text = Vec::new();
            for length in &lengths {
                text.resize(text.len() + length, b'x');
                text.push(b'\n');
            }
            if !ends {
                text.pop();
            }
            let mut cutter = Cutter::of_lines(&*text, 1 << 19);
            let mut all = Vec::new();
            while let Some(batch) = cutter.next_batch().unwrap() {
                prop_assert_eq!(batch.offset, all.len() as u64);
                all.extend(batch.text);
                prop_assert!(all.len() == text.len() || all.ends_with(b"\n"));
            }
            prop_assert_eq!(all, text);
        }
    }

    #[test]
    fn a_line_that_is_too_long_is_refused() {
        let text = vec![b'x'; MAX_GAME_LENGTH + 2];
        let err = Cutter::of_lines(&*text, 1 << 19).next_batch().unwrap_err();
        assert!(
            err.to_string().contains("no line ends in the 16 MiB"),
            "{err}"
        );
    }

    #[test]
    fn games_do_not_depend_on_the_batch_size() {
        let text: String = (0..200)
            .map(|i| {
                format!(
                    "[Event \"{i}\"]\n[Site \"x\"]\n\n1. e4 {{ a\n\n[Event \"no\"]\n }} e5 {} 1-0\n\n",
                    if i % 7 == 0 { "{ oops" } else { "" }
                )
            })
            .collect();
        let whole = games(text.as_bytes(), 1 << 22);
        assert_eq!(whole.len(), 200);
        for batch_size in [1, 50, 333, 5000] {
            assert_eq!(games(text.as_bytes(), batch_size), whole, "{batch_size}");
        }
    }

    #[test]
    fn the_last_line_of_a_comment_is_not_skipped_as_a_comment() {
        let text = "{\n;}1. d4 [Event \"x\"]\n[White \"y\"] e4 *\n[Event \"z\"]\n\n1. e4 *\n";
        let whole = games(text.as_bytes(), 1 << 20);
        assert_eq!(whole.len(), 3);
        for batch_size in 1..text.len() {
            assert_eq!(games(text.as_bytes(), batch_size), whole, "{batch_size}");
        }
    }

    #[test]
    fn the_last_line_of_a_value_is_not_an_escaped_line() {
        let text = "[White \"a\nb\n% c\"]\n[Result \"1-0\"]\n\n1. e4 1-0\n\n[White \"a\n; b\"]\n[Result \"*\"]\n\n*\n";
        let whole = games(text.as_bytes(), 1 << 20);
        assert_eq!(whole.len(), 2);
        for batch_size in 1..text.len() {
            assert_eq!(games(text.as_bytes(), batch_size), whole, "{batch_size}");
        }
    }

    #[test]
    fn games_without_tags_are_cut_too() {
        let text = "1. e4 e5 2. Nf3 Nc6 1-0\n".repeat(3 * MAX_COMMENT_DISTANCE / 24);
        let mut cutter = Cutter::new(text.as_bytes(), 1 << 10);
        let mut batches = 0;
        while let Some(batch) = cutter.next_batch().unwrap() {
            assert!(batch.text.len() <= 4 << 20);
            batches += 1;
        }
        assert!(batches > 1);
    }

    #[test]
    fn numbers_of_a_list_of_games_are_read_with_the_tags_below_them() {
        for number in ["1.", "2. ", "12", "3\u{2026}", "4.\n ", "x **5."] {
            let game = format!(
                "{number}\n\n[White \"x\"]\n\n1. e4 e5 1-0{}\n\n",
                " ".repeat(300)
            );
            let text = game.repeat(4);
            let whole = games(text.as_bytes(), 1 << 20);
            for batch_size in [1, 10, 100, 400] {
                assert_eq!(games(text.as_bytes(), batch_size), whole, "{number}");
            }
        }
    }

    #[test]
    fn blanks_and_markup_of_all_kinds_may_be_above_tags() {
        for blank in ["\0", "\u{a0}", "%0A", "\\n", " ", "<br />", "&quot;"] {
            for line in ["[2-0)", " ", ""] {
                let tag = format!("\n\n\n[FEN \"8/8 w\"]{}\n\n", " ".repeat(300));
                let text = format!("[A \"x\"]\n{blank}{line}{tag}").repeat(20);
                let whole = games(text.as_bytes(), 1 << 20);
                for batch_size in [1, 30, 100, 400] {
                    let cut = games(text.as_bytes(), batch_size);
                    assert_eq!(cut, whole, "{blank:?} {line:?}");
                }
            }
        }
    }

    #[test]
    fn text_without_games_is_an_error_not_a_memory_hog() {
        let text = vec![b'x'; MAX_GAME_LENGTH + 1];
        let err = Cutter::new(&text[..], 1 << 20).next_batch().unwrap_err();
        assert_eq!(err.kind(), io::ErrorKind::InvalidData);
    }

    proptest! {
        #[test]
        fn any_text_is_cut_the_same_in_any_size(
            parts in proptest::collection::vec(
                prop_oneof![
                    Just("\n"), Just("[Event \"x\"]\n"), Just("[White \"y\"]"), Just("{"), Just("}"),
                    Just("("), Just(")"), Just(";"), Just("%"), Just("1-0"), Just("*"), Just(" e4 "),
                    Just("1. d4"), Just("\r\n"), Just("[%clk 1]"), Just("["), Just("\""), Just("\u{feff}"),
                    Just("\n(est.)"), Just(" x"), Just("\nx y\n"), Just("[Site \"a\n"), Just("b\"]"), Just("c\"]\n"), Just("\"]"), Just("\n% d\"]\n"), Just("\n;\"]\n"), Just(" Qg20-1 "), Just("\n{ d\"] "),
                    Just("--"), Just("1/2"), Just("\u{2013}"), Just("\u{a0}"), Just("[x]"), Just("[x\n"), Just("[White \"z\"]\n"), Just("x y"),
                    Just("0.5-0.5"), Just("1:0"), Just("draw"), Just(" White wins\n"), Just("2-0"), Just("remis"), Just("\u{2206}"), Just("\u{200b}"), Just("0-0"), Just("\u{2026}"), Just("\u{25a1}"),
                    Just("| "), Just("%0A"), Just("\\n"), Just("\n\n1. c4"), Just("\n1. c4"), Just("[1]"),
                ],
                0..60,
            ),
            batch_size in 1..200usize,
        ) {
            let text = parts.concat();
            let whole = games(text.as_bytes(), 1 << 20);
            prop_assert_eq!(games(text.as_bytes(), batch_size), whole);
        }

        #[test]
        fn any_bytes_never_panic(text in proptest::collection::vec(any::<u8>(), 0..400)) {
            let _ = games(&text, 32);
        }
    }

    #[test]
    fn games_on_lines_of_other_games_do_not_depend_on_the_batch_size() {
        for part in [
            "\n \"]e4 [Event \"x\"]",
            "e4 \\[Event \"x\"]\n! ",
            "remis 1-0 1. d4 ",
            "1. e4 1-0 1. d4 * ",
            "e4 1-0\n",
            "1. e4 {x} e5 (1... c5) 1-0\tNf3 (1) e4 ",
        ] {
            let text = part.repeat(LOOKAHEAD * 3 / 2 / part.len());
            assert_eq!(
                games(text.as_bytes(), 1 << 18),
                games(text.as_bytes(), text.len() + 1),
                "{part}"
            );
        }
        let long = "\\$14 Nf3} **[FEN ".repeat(1000);
        let text = format!("1. e4 {{x{long}\n[Event \"q\"]\n\n1. d4 d5 *\n");
        let text = text.repeat(20);
        assert_eq!(
            games(text.as_bytes(), 1 << 14),
            games(text.as_bytes(), text.len() + 1)
        );
    }
}
