//! Where a `{` comment ends, and whether it is closed at all.
//!
//! A comment may contain anything, even line breaks, blank lines and tag pairs. Only in a comment that is never
//! closed may tags be the next game's. It counts as never closed if, after a line in it
//! from which a game could begin, another comment opens before one closes, or none closes within
//! [`REACH`].

use memchr::{memchr, memchr2};

use super::tags::{ends_game, is_tag_start};

/// How far past the line of a possible next game the closing brace may be.
pub(super) const REACH: usize = 1 << 20;

/// How a comment ends.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) enum CommentEnd {
    /// Just after its closing brace.
    Closed(usize),
    /// It is not closed. The next game begins here, or the text ends.
    Unclosed(usize),
}

/// Finds the ends of comments, remembering the brace it last looked ahead to: a file in which every
/// game opens a comment and none closes it is still read in linear time.
#[derive(Clone, Default, Debug)]
pub(super) struct Comments {
    looked_from: usize,
    close: Option<Option<usize>>,
}

impl Comments {
    /// Finds the end of the comment whose opening brace is at `open`, in a text that is the same
    /// at each call. It must reach to the end of the file, or to the start of a game that follows,
    /// or [`REACH`] past the place that is asked.
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

/// The first line of the comment that is really the next game's.
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
        // The brace that closes this line's comment also closes that of all lines after it.
        return (!closes_it).then_some(at);
    }
    None
}

/// Whether a game could begin at this line: with a tag, or with move 1 below a termination marker.
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
    fn closed_comments_may_hold_anything() {
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
    fn a_brace_out_of_reach_closes_nothing() {
        let mut text = b"{ oops\n[Event \"x\"]\n".to_vec();
        text.resize(text.len() + REACH, b' ');
        text.push(b'}');
        assert_eq!(comment_end(&text, 0), CommentEnd::Unclosed(7));
    }
}
