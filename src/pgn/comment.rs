//! Finding the end of a `{` comment, and recognizing comments that are never closed.
//!
//! A comment may contain anything, even line breaks, blank lines and tag pairs. But the tags inside a comment that is
//! never closed belong to the next game. To tell the two cases apart, each line of a comment that could begin a game is
//! examined. If another comment opens between this line and the next closing brace, or if there is no closing brace
//! within [`REACH`], the comment counts as unclosed and the next game begins at this line.

use memchr::{memchr, memchr2};

use super::tags::{ends_game, is_tag_start};

/// The maximum distance in bytes between a line in a comment that looks like the start of a game and the closing brace
/// of the comment. If the brace is farther away, the comment counts as unclosed.
pub(super) const REACH: usize = 1 << 20;

/// The place where a comment ends, and whether it is closed.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) enum CommentEnd {
    /// The comment is closed. Contains the offset of the byte after its closing brace.
    Closed(usize),
    /// The comment is not closed. Contains the offset where the next game begins, or the length of the text.
    Unclosed(usize),
}

/// A finder of the ends of comments in one text.
///
/// The offset of the last closing brace that was found is cached. Without this cache, reading a file in which every
/// game opens a comment and none closes it would take quadratic time.
#[derive(Clone, Default, Debug)]
pub(super) struct Comments {
    /// The offset from which the last search for a closing brace started.
    looked_from: usize,
    /// The result of the last search: the offset of the first closing brace at or after `looked_from`, or `Some(None)`
    /// if there is none. `None` if nothing has been searched for yet.
    close: Option<Option<usize>>,
}

impl Comments {
    /// Finds the end of the comment whose opening brace is at `open`.
    ///
    /// All calls must pass the same text, because the last search is cached. [`CommentEnd::Unclosed`] is reliable only
    /// if the text ends where the file ends, ends where a later game begins, or continues for at least [`REACH`] bytes
    /// after the returned offset.
    #[inline]
    pub(super) fn end_of(&mut self, text: &[u8], open: usize) -> CommentEnd {
        let close = self.closing_brace(text, open);
        let body_end = close.unwrap_or(text.len());
        match unclosed_at(text, open + 1, body_end, close) {
            Some(start) => CommentEnd::Unclosed(start),
            None => close.map_or(CommentEnd::Unclosed(text.len()), |at| {
                CommentEnd::Closed(at + 1)
            }),
        }
    }

    /// Returns the offset of the first closing brace after the offset `open`, or `None` if there is none.
    #[inline]
    fn closing_brace(&mut self, text: &[u8], open: usize) -> Option<usize> {
        match self.close {
            Some(close) if self.looked_from <= open && close.is_none_or(|at| at >= open) => close,
            _ => {
                let close = memchr(b'}', &text[open..]).map(|i| open + i);
                self.looked_from = open;
                self.close = Some(close);
                close
            }
        }
    }
}

/// Checks whether a comment has no closing brace, so that the next game begins inside it. The comment consists of the
/// bytes `start..end` of `text`. `close` is the offset of the next closing brace, if there is one.
///
/// Returns the offset of the line at which the next game begins, or `None` if no game begins in the comment.
#[inline]
fn unclosed_at(text: &[u8], start: usize, end: usize, close: Option<usize>) -> Option<usize> {
    let mut at = start;
    while let Some(line_break) = memchr2(b'\n', b'\r', &text[at..end]).map(|i| at + i) {
        at = line_break + 1;
        if !may_begin_game(text, start, at) {
            continue;
        }
        let closes_it = close
            .is_some_and(|close| close - at <= REACH && memchr(b'{', &text[at..close]).is_none());
        // The closing brace found for this line is also the first one after all later lines, so they need no check.
        return (!closes_it).then_some(at);
    }
    None
}

/// Returns `true` if the line at the offset `line` may be the first line of a game: if it starts with a tag, or if it
/// starts with `1.` and the text from the offset `comment` up to the line ends with a termination marker such as `1-0`.
fn may_begin_game(text: &[u8], comment: usize, line: usize) -> bool {
    match text.get(line) {
        Some(b'[') => is_tag_start(text, line),
        Some(b'1') => text.get(line + 1) == Some(&b'.') && ends_game(&text[comment..line]),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn comment_end(text: &[u8], open: usize) -> CommentEnd {
        Comments::default().end_of(text, open)
    }

    #[test]
    fn closed_comments_may_contain_anything() {
        for text in [
            "{}",
            "{ [%clk 0:00:01] }",
            "{ a\n\n[Event \"quoted\"]\n\nb }",
            "{ 1-0\n\n1. e4 was the other game }",
        ] {
            assert_eq!(
                comment_end(text.as_bytes(), 0),
                CommentEnd::Closed(text.len()),
                "{text}"
            );
        }
        // Comments in braces do not nest.
        assert_eq!(comment_end(b"{ a { b } c }", 0), CommentEnd::Closed(9));
    }

    #[test]
    fn unclosed_comments_end_where_a_game_begins() {
        let text = b"{ oops 1-0\n\n[Event \"x\"]\n\n1. e4 { fine } *";
        assert_eq!(comment_end(text, 0), CommentEnd::Unclosed(12));
        let text = b"{ oops 1-0\n\n[Event \"x\"]\n\n1. e4 *";
        assert_eq!(comment_end(text, 0), CommentEnd::Unclosed(12));
        let text = b"{ oops 1-0\n\n1. d4 d5 *";
        assert_eq!(comment_end(text, 0), CommentEnd::Unclosed(12));
        let text = b"{ oops 1-0";
        assert_eq!(comment_end(text, 0), CommentEnd::Unclosed(text.len()));
    }

    #[test]
    fn a_distant_brace_does_not_close_a_comment() {
        let mut text = b"{ oops\n[Event \"x\"]\n".to_vec();
        text.resize(text.len() + REACH, b' ');
        text.push(b'}');
        assert_eq!(comment_end(&text, 0), CommentEnd::Unclosed(7));
    }
}
