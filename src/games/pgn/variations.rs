//! Plays the moves of a game with variations: finds out which moves can be played, and in which positions.
//!
//! A variation is an alternative to the move before it, so it begins in the position before that move. [`OpenLines`]
//! follows the tokens of a [`GameReader`](super::GameReader), and is the only code that plays variations. It stores the
//! state of the main line and of each variation that has begun but not ended. After a move that is not played, such as
//! a null move, the position is unknown, so neither the later moves of the line nor alternatives to them can be played.
//! An alternative to the unplayed move itself can be played, because it begins in the position before that move.

use shakmaty::Move;

use super::Token;
use crate::chess::position::{Keyed, PieceLetters, Rules};

/// The maximum depth to which variations may be nested. The moves of deeper variations are not played. The limit bounds
/// the memory for open lines, and the recursion of code that writes the lines of a game. In practice, variations are
/// nested less than 20 deep.
pub(crate) const MAX_NESTING: usize = 64;

/// A position in a game, and the number of half-moves before it.
#[derive(Clone)]
struct Reached<P: Rules> {
    pos: Keyed<P>,
    ply: usize,
}

/// The state of a main line or variation after the moves that were read so far.
enum OpenLine<P: Rules> {
    /// No move has been read. A variation that begins here has no move to replace, so its moves cannot be played.
    Empty(Reached<P>),
    /// All moves so far were played. A variation that begins here replaces the last one.
    Played {
        before: Reached<P>,
        after: Reached<P>,
    },
    /// The last move was not played. A variation that begins here replaces it, and starts in the contained position.
    Stopped(Reached<P>),
    /// A move before the last one was not played, so the position is unknown.
    Unknown,
}

impl<P: Rules> OpenLine<P> {
    /// Returns the position in which an alternative to the last move begins, or `None` if it is unknown.
    fn before(&self) -> Option<&Reached<P>> {
        match self {
            OpenLine::Played { before, .. } | OpenLine::Stopped(before) => Some(before),
            OpenLine::Empty(_) | OpenLine::Unknown => None,
        }
    }
}

/// The effect of a token on the lines of a game, such as a move that was played.
pub(crate) enum Step<'l, P: Rules> {
    /// A move that was played in the position `before`.
    Played {
        before: &'l Keyed<P>,
        mv: Move,
    },
    /// A null move after moves that were played. The moves after it in its line cannot be played.
    NullMove,
    /// A move that is not legal, after moves that were played. The moves after it in its line cannot be played.
    Illegal,
    /// A move that is not played, because an earlier move was not played, or because the line has reached the maximum
    /// number of half-moves.
    NotPlayed,
    BeginVariation,
    EndVariation,
    /// A part of a variation that is nested more than [`MAX_NESTING`] deep.
    TooDeep,
    EndOfGame,
}

/// The lines that contain the current token of a game: the main line, a variation of it, a variation of that variation,
/// and so on.
pub(crate) struct OpenLines<P: Rules> {
    /// The main line, and the open variations that are nested at most [`MAX_NESTING`] deep.
    lines: Vec<OpenLine<P>>,
    /// The number of open variations that are nested deeper.
    too_deep: usize,
    letters: PieceLetters,
    max_ply: usize,
}

impl<P: Rules> OpenLines<P> {
    /// Creates the lines of a game before its first move. The game starts in the position `start`, or in an unknown
    /// position.
    pub(crate) fn of_game(start: Option<Keyed<P>>) -> OpenLines<P> {
        let start = start.map(|pos| OpenLine::Empty(Reached { pos, ply: 0 }));
        OpenLines {
            lines: vec![start.unwrap_or(OpenLine::Unknown)],
            too_deep: 0,
            letters: PieceLetters::English,
            max_ply: usize::MAX,
        }
    }

    /// Creates the lines for reading variations that replace one move of the main line, the move in the position
    /// `before`. `ply` is the number of half-moves before this position. `letters` is the language of the piece
    /// letters. Only the first `max_ply` half-moves of each line are played, counted from the start of the game.
    pub(crate) fn replacing(
        before: Keyed<P>,
        ply: usize,
        letters: PieceLetters,
        max_ply: usize,
    ) -> OpenLines<P> {
        OpenLines {
            lines: vec![OpenLine::Stopped(Reached { pos: before, ply })],
            too_deep: 0,
            letters,
            max_ply,
        }
    }

    /// Sets the language of the piece letters in the moves. Default: English.
    pub(crate) fn with_letters(mut self, letters: PieceLetters) -> OpenLines<P> {
        self.letters = letters;
        self
    }

    /// Returns the number of open variations, which is 0 in the main line.
    pub(crate) fn depth(&self) -> usize {
        self.lines.len() - 1 + self.too_deep
    }

    /// Updates the lines with the next token of the game, and returns the effect of the token.
    pub(crate) fn step(&mut self, token: Token<'_>) -> Step<'_, P> {
        match token {
            Token::End(_) => Step::EndOfGame,
            Token::BeginVariation if self.depth() >= MAX_NESTING => {
                self.too_deep += 1;
                Step::TooDeep
            }
            Token::EndVariation if self.too_deep > 0 => {
                self.too_deep -= 1;
                Step::TooDeep
            }
            _ if self.too_deep > 0 => Step::TooDeep,
            Token::BeginVariation => {
                let before = self.lines.last().and_then(OpenLine::before).cloned();
                self.lines
                    .push(before.map_or(OpenLine::Unknown, OpenLine::Empty));
                Step::BeginVariation
            }
            Token::EndVariation => {
                self.lines.pop();
                Step::EndVariation
            }
            Token::Move { text, .. } | Token::Unreadable { text, .. } => self.play(Some(text)),
            Token::NullMove { .. } => self.play(None),
        }
    }

    /// Adds a move to the innermost line and plays it if possible. `text` is the text of the move, or `None` for a null
    /// move.
    fn play(&mut self, text: Option<&[u8]>) -> Step<'_, P> {
        let Some(line) = self.lines.last_mut() else {
            return Step::NotPlayed;
        };
        let now = match std::mem::replace(line, OpenLine::Unknown) {
            OpenLine::Empty(now) | OpenLine::Played { after: now, .. } => now,
            OpenLine::Stopped(_) | OpenLine::Unknown => return Step::NotPlayed,
        };
        if now.ply >= self.max_ply {
            *line = OpenLine::Stopped(now);
            return Step::NotPlayed;
        }
        let Some(text) = text else {
            *line = OpenLine::Stopped(now);
            return Step::NullMove;
        };
        let Ok(mv) = self.letters.read_move(now.pos.position(), text) else {
            *line = OpenLine::Stopped(now);
            return Step::Illegal;
        };
        let mut after = now.clone();
        after.pos.play(mv);
        after.ply += 1;
        *line = OpenLine::Played { before: now, after };
        line.before()
            .map_or(Step::NotPlayed, |before| Step::Played {
                before: &before.pos,
                mv,
            })
    }
}
