//! Plays the half-moves of one game, from its starting position to its end or to the first move that cannot be played,
//! which rejects the game.
//!
//! [`Variations`] collects the moves of variations. Each variation is counted once, from the move at which it branches
//! off.
//!
//! A [hash of the half-moves](MainLine::hash) helps to recognize duplicate games. The threads that replay games do not
//! know which of two equal games comes first in the inputs. Each thread therefore passes on all of its games as
//! candidates, and the records of a batch are added to the counts only after all earlier batches are complete.

use shakmaty::{Color, Move};
use siphasher::sip::SipHasher13;

use super::{needs::Needs, options::MakeBook};
use crate::{
    chess::position::{BookMove, Keyed, PieceLetters, Rules, Variant, has_inner_castling_rook},
    games::{
        board_query::Matcher,
        openings::{self, OpeningNumber},
        pgn::{
            GameEnd, GameReader, GameResult, LineStop, MoveReceiver, OpenLines, Step, Token,
            play_main_line,
        },
        selection::Selection,
    },
};

/// The main line of the game that is being replayed: its counted half-moves with their positions, and data about the
/// moves after them, which are not counted. The same value is reused for each game, to avoid allocations.
#[derive(Default)]
pub(super) struct MainLine {
    pub plies: Vec<Ply>,
    /// The number of counted half-moves whose position has no valid book key, so that a book cannot contain them.
    pub not_for_books: u64,
    /// The identities (hashes) of the positions before the counted half-moves, if an output needs them.
    pub identities: Vec<u64>,
    /// The exact identities of the positions before the counted half-moves, if an output needs them.
    pub exact_identities: Vec<u64>,
    /// The half-moves of the game's variations, if the run counts them.
    pub variations: Variations,
    /// The encoding of the moves that are not counted, if the run needs the [hashes](MainLine::hash) of games.
    rest: Vec<u8>,
    /// The identities of the positions after the moves that are not counted, if the run needs the openings of games.
    pub rest_identities: Vec<u64>,
    /// The query that must match a position of the game, if there is one.
    pub matcher: Option<Matcher>,
    /// A buffer for the bytes from which [`hash`](MainLine::hash) computes its result.
    hashed: Vec<u8>,
}

/// A counted half-move of a game, with its position.
#[derive(Copy, Clone)]
pub(crate) struct Ply {
    /// The key of the position before the half-move.
    pub key: u64,
    pub mv: BookMove,
    /// Whether the position before the half-move has a valid book key.
    pub in_book: bool,
}

/// The reason why a game is rejected, and the place of the problem in the game.
pub(super) struct Problem {
    /// The offset of the problem in the text of the batch.
    pub offset: usize,
    /// The number of half-moves before the problem.
    pub ply: usize,
    /// The move that cannot be played, as the PGN spells it. Empty if the text is damaged.
    pub mv: String,
    pub reason: String,
}

/// The facts about a game that are known after its main line has been played: its length, its result, and the problem
/// that ended it early, if there was one.
pub(super) struct MainLineEnd {
    /// The result that the termination marker states.
    pub marker: Option<GameResult>,
    /// The number of half-moves. Half-moves that are not counted are included if they were read.
    pub plies: usize,
    /// Whether a null move ended the counted half-moves.
    pub null_move: bool,
    /// The problem that ended the game, if there was one.
    pub problem: Option<Problem>,
}

impl MainLine {
    /// Creates an empty main line for the games that `selection` filters.
    pub(super) fn new(selection: &Selection) -> MainLine {
        MainLine {
            matcher: selection.board_query().map(|query| query.matcher()),
            ..MainLine::default()
        }
    }

    /// Removes the half-moves of the previous game, but keeps the memory for the next game.
    pub(super) fn clear(&mut self) {
        self.plies.clear();
        self.not_for_books = 0;
        self.identities.clear();
        self.exact_identities.clear();
        self.variations.clear();
        self.rest.clear();
        self.rest_identities.clear();
    }

    /// Returns the opening of the game: the name of the last position that has one, including positions after moves
    /// that are not counted. `last` is the identity (a hash) of the position after the last counted move. May be called
    /// only if the run [needs openings](Needs::openings), because the identities of the other positions are not stored
    /// otherwise.
    pub(super) fn opening(&self, variant: Variant, last: u64) -> OpeningNumber {
        let identities = self.identities.iter().chain([&last]);
        let identities = identities.chain(&self.rest_identities);
        openings::of_game(variant, identities.copied())
    }

    /// Returns a hash of the starting position and of all moves of the game. It does not depend on how many half-moves
    /// are counted, and is never 0. `start` is the identity (a hash) of the starting position. May be called only if
    /// the run [needs hashes](Needs::game_hashes).
    ///
    /// Moves are hashed as 16-bit numbers, up to the first move that cannot be played. That move and all later ones are
    /// hashed as the PGN spells them.
    pub(super) fn hash(&mut self, start: u64) -> u64 {
        self.hashed.clear();
        self.hashed.extend(start.to_le_bytes());
        self.hashed
            .extend(self.plies.iter().flat_map(|ply| ply.mv.0.to_le_bytes()));
        self.hashed.extend(&self.rest);
        SipHasher13::new().hash(&self.hashed).max(1)
    }

    /// Plays the counted half-moves of a game from the starting position `pos`, and reads the game to its end. Leaves
    /// the position after the last counted half-move in `pos`.
    // Inlined into its caller, the loop has too few registers.
    #[inline(never)]
    pub(super) fn play<P: Rules>(
        &mut self,
        options: &MakeBook,
        needs: &Needs,
        pos: &mut Keyed<P>,
        games: &mut GameReader<'_>,
    ) -> MainLineEnd {
        let mut moves = MoveCounter {
            line: self,
            options,
            needs,
            before: None,
        };
        let stop = match options.max_ply {
            0 => LineStop::Receiver,
            _ => play_main_line(games, options.piece_letters, pos, &mut moves),
        };
        let before = moves.before;
        if !matches!(stop, LineStop::Receiver) {
            self.visit_last(pos);
        }
        match stop {
            LineStop::End(end) => self.end_of_game(end),
            LineStop::Receiver if options.variations => {
                let ply = self.plies.len().saturating_sub(1);
                match self.read_variations(options, games, before.as_ref(), ply) {
                    Token::End(end) => {
                        self.visit_last(pos);
                        self.end_of_game(end)
                    }
                    token => self.rest_of_game(options, needs, games, pos, Some(token.text())),
                }
            }
            LineStop::Receiver => self.rest_of_game(options, needs, games, pos, None),
            LineStop::NullMove => MainLineEnd {
                null_move: true,
                ..self.skip_unplayable(options, needs, games, pos, b"")
            },
            LineStop::Illegal(mv) => {
                let problem = Problem {
                    offset: mv.offset,
                    ply: self.plies.len(),
                    mv: mv.name(),
                    reason: mv.reason,
                };
                MainLineEnd {
                    problem: Some(problem),
                    ..self.skip_unplayable(options, needs, games, pos, mv.text)
                }
            }
        }
    }

    /// Evaluates the query about positions in the last position of the game, if there is a query.
    fn visit_last<P: Rules>(&mut self, pos: &Keyed<P>) {
        if let Some(matcher) = &mut self.matcher {
            matcher.visit(pos.position(), None);
        }
    }

    /// Plays the variations at the current offset, and returns the token after them. The variations replace the last
    /// move, so they begin in `before`, the position before this move. `ply` is the number of half-moves up to
    /// `before`.
    fn read_variations<'a, P: Rules>(
        &mut self,
        options: &MakeBook,
        games: &mut GameReader<'a>,
        before: Option<&Keyed<P>>,
        ply: usize,
    ) -> Token<'a> {
        loop {
            match games.next_token() {
                Token::BeginVariation => self.variations.play(games, options, before, ply),
                token => return token,
            }
        }
    }

    /// Reads the moves of a game after its last counted move, and returns data about the end of the game. `pos` is the
    /// position after the counted moves. `first` is the text of the first uncounted move if the caller has already read
    /// it; an empty text means a null move.
    ///
    /// Stores these moves if the run needs hashes or openings of games. Otherwise, counts them if the length of the
    /// game is needed, and skips them if it is not.
    fn rest_of_game<P: Rules>(
        &mut self,
        options: &MakeBook,
        needs: &Needs,
        games: &mut GameReader<'_>,
        pos: &Keyed<P>,
        first: Option<&[u8]>,
    ) -> MainLineEnd {
        let (rest, end) = if needs.game_hashes || needs.openings || self.matcher.is_some() {
            let mut rest = UncountedMoves::new(Some(pos.clone()), options.piece_letters);
            rest.matcher = self.matcher.take();
            first.into_iter().for_each(|text| rest.push(text));
            let end = games.rest_of_moves(|text| rest.push(text));
            self.matcher = rest.matcher.take();
            if let Some(last) = &rest.pos {
                self.visit_last(last);
            }
            let plies = rest.plies;
            self.rest_identities = std::mem::take(&mut rest.identities);
            self.rest = rest.into_bytes();
            (plies, end)
        } else if options.selection.min_plies as usize <= self.plies.len() && !needs.game_lengths
            || first == Some(b"")
        {
            (0, games.skip_moves())
        } else {
            let (plies, end) = games.count_moves();
            (usize::from(first.is_some()) + plies, end)
        };
        let mut ending = self.end_of_game(end);
        ending.plies += rest;
        ending
    }

    /// Skips the rest of a game after a move that cannot be played in the position `pos`, and returns data about the
    /// end of the game. `text` is the text of this move, or empty for a null move.
    ///
    /// If the run counts variations, first plays the variations that replace this move. If the run needs hashes of
    /// games, stores the skipped moves as text, because games are duplicates only if these moves are equal, too.
    fn skip_unplayable<P: Rules>(
        &mut self,
        options: &MakeBook,
        needs: &Needs,
        games: &mut GameReader<'_>,
        pos: &Keyed<P>,
        text: &[u8],
    ) -> MainLineEnd {
        let mut rest = UncountedMoves::<P>::new(None, options.piece_letters);
        rest.push(text);
        if options.variations {
            match self.read_variations(options, games, Some(pos), self.plies.len()) {
                Token::End(end) => {
                    self.rest = rest.into_bytes();
                    return self.end_of_game(end);
                }
                token => rest.push(token.text()),
            }
        }
        let end = if needs.game_hashes {
            games.rest_of_moves(|text| rest.push(text))
        } else {
            games.skip_moves()
        };
        self.rest = rest.into_bytes();
        self.end_of_game(end)
    }

    /// Creates the [`MainLineEnd`] of a game from the half-moves in `self.plies` and from `end`, which says how the
    /// text of the game ended. Must be called after the last counted half-move was played.
    ///
    /// The caller must add the number of half-moves that were read but not counted to `plies`. It must also set
    /// `null_move` or `problem` if a null move or a move that cannot be played ended the counted half-moves.
    fn end_of_game(&self, end: GameEnd) -> MainLineEnd {
        let (marker, problem) = match end {
            GameEnd::Complete(marker) => (marker, None),
            GameEnd::Broken(flaw) => {
                let problem = Problem {
                    offset: flaw.offset,
                    ply: self.plies.len(),
                    mv: String::new(),
                    reason: flaw.reason.to_string(),
                };
                (None, Some(problem))
            }
        };
        MainLineEnd {
            marker,
            plies: self.plies.len(),
            null_move: false,
            problem,
        }
    }
}

/// Receives the moves of a game, and adds them to its main line. Also adds the moves of variations if the run counts
/// them.
struct MoveCounter<'m, P: Rules> {
    line: &'m mut MainLine,
    options: &'m MakeBook,
    needs: &'m Needs,
    /// The position before the last move, in which variations begin. `None` if the run does not count variations.
    before: Option<Keyed<P>>,
}

impl<P: Rules> MoveReceiver<P> for MoveCounter<'_, P> {
    #[inline(always)]
    fn receive(&mut self, pos: &Keyed<P>, mv: Move, _end: usize) -> bool {
        if let Some(matcher) = &mut self.line.matcher {
            matcher.visit(pos.position(), Some(mv));
        }
        let in_book = !has_inner_castling_rook(pos.position());
        if !in_book {
            self.line.not_for_books += 1;
        }
        self.line.plies.push(Ply {
            key: pos.key(),
            mv: BookMove::from(mv),
            in_book,
        });
        if self.needs.line_identities() {
            self.line.identities.push(pos.identity());
            self.line.exact_identities.push(pos.exact_identity());
        }
        if self.options.variations {
            self.before = Some(pos.clone());
        }
        self.line.plies.len() != self.options.max_ply
    }

    #[cold]
    fn read_variation(&mut self, games: &mut GameReader<'_>) {
        let ply = self.line.plies.len().saturating_sub(1);
        let variations = &mut self.line.variations;
        variations.play(games, self.options, self.before.as_ref(), ply);
    }
}

/// The counted half-moves of all variations of a game.
#[derive(Debug, Default)]
pub(super) struct Variations {
    pub branches: Vec<VariationPly>,
    /// The number of variations that contain a move that cannot be played. Only their half-moves before this move are
    /// counted.
    pub unplayable: u64,
    /// The number of variations that contain a null move. Only their half-moves before the null move are counted.
    pub null_moves: u64,
}

/// A counted half-move of a variation, with its position.
#[derive(Copy, Clone, Debug)]
pub(crate) struct VariationPly {
    /// The key of the position before the half-move.
    pub key: u64,
    /// The exact identity of the position before the half-move.
    pub identity: u64,
    pub mv: BookMove,
    pub turn: Color,
    /// Whether the key of the position is a valid book key.
    pub in_book: bool,
}

impl Variations {
    /// Removes the half-moves of the previous game, but keeps the memory for the next game.
    pub(super) fn clear(&mut self) {
        *self = Variations {
            branches: std::mem::take(&mut self.branches),
            ..Variations::default()
        };
        self.branches.clear();
    }

    /// Plays the variation that the reader `games` has just entered, and all variations nested in it. The variation
    /// replaces a half-move of the main line, so it begins in `before`, the position before this half-move. `ply` is
    /// the number of half-moves up to `before`. If `before` is `None`, the variation is skipped.
    fn play<P: Rules>(
        &mut self,
        games: &mut GameReader<'_>,
        options: &MakeBook,
        before: Option<&Keyed<P>>,
        ply: usize,
    ) {
        let Some(before) = before else {
            return games.leave_variation();
        };
        let (letters, max_ply) = (options.piece_letters, options.max_ply);
        let mut lines = OpenLines::replacing(before.clone(), ply, letters, max_ply);
        lines.step(Token::BeginVariation);
        while lines.depth() > 0 {
            match lines.step(games.next_token()) {
                Step::Played { before: pos, mv } => self.branches.push(VariationPly {
                    key: pos.key(),
                    identity: pos.exact_identity(),
                    mv: BookMove::from(mv),
                    turn: pos.position().turn(),
                    in_book: !has_inner_castling_rook(pos.position()),
                }),
                Step::NullMove => self.null_moves += 1,
                Step::Illegal => self.unplayable += 1,
                Step::EndOfGame => return,
                _ => {}
            }
        }
    }
}

/// The moves of a game that the run does not count: the moves after the maximum number of half-moves, or a null move or
/// unplayable move with all moves after it. They are collected to recognize duplicate games, because games are
/// duplicates only if these moves are equal, too.
pub(super) struct UncountedMoves<P> {
    /// The current position, or `None` once a move could not be played.
    pos: Option<Keyed<P>>,
    letters: PieceLetters,
    /// The encoding of the moves so far, which is part of the [hash](MainLine::hash).
    bytes: Vec<u8>,
    /// The number of half-moves before the first null move.
    pub plies: usize,
    /// Whether a null move has ended the game's moves.
    is_over: bool,
    /// The identities of the positions after the moves, up to the first move that cannot be played.
    pub identities: Vec<u64>,
    /// The query about positions, which is evaluated before each move.
    pub matcher: Option<Matcher>,
}

impl<P: Rules> UncountedMoves<P> {
    /// Creates an empty list of uncounted moves. `pos` is the position after the counted moves, or `None` if the next
    /// move cannot be played. Without a position, moves cannot be parsed, so they are compared with those of other
    /// games as the PGN spells them. `letters` is the language of the piece letters in the moves.
    pub(super) fn new(pos: Option<Keyed<P>>, letters: PieceLetters) -> UncountedMoves<P> {
        UncountedMoves {
            pos,
            letters,
            bytes: Vec::new(),
            plies: 0,
            is_over: false,
            identities: Vec::new(),
            matcher: None,
        }
    }

    /// Adds the next uncounted move of the game. `text` is the move as the PGN spells it; an empty text means a null
    /// move.
    pub(super) fn push(&mut self, text: &[u8]) {
        self.is_over |= text.is_empty();
        self.plies += usize::from(!self.is_over);
        let pos = self.pos.take();
        let played = pos.and_then(|pos| {
            let mv = self.letters.read_move(pos.position(), text).ok();
            if let Some(matcher) = &mut self.matcher {
                matcher.visit(pos.position(), mv);
            }
            Some((pos, mv?))
        });
        match played {
            Some((mut pos, mv)) => {
                self.bytes.extend(BookMove::from(mv).0.to_le_bytes());
                pos.play(mv);
                self.identities.push(pos.identity());
                self.pos = Some(pos);
            }
            // Moves that cannot be played are compared by their text.
            None => {
                self.bytes.extend(NOT_PLAYED.to_le_bytes());
                self.bytes.extend((text.len() as u64).to_le_bytes());
                self.bytes.extend(text);
            }
        }
    }

    /// Returns an encoding of the collected moves, which is part of the [hash](MainLine::hash) of a game.
    pub(super) fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }
}

/// A 16-bit number that no move has. It precedes the text of a move that cannot be played.
const NOT_PLAYED: u16 = u16::MAX;

#[cfg(test)]
mod tests {
    use shakmaty::Chess;

    use super::*;

    #[test]
    fn uncounted_moves_are_compared_as_moves_if_they_can_be_played() {
        let rest = |words: &[&str]| {
            let start = Some(Keyed::new(Chess::default()));
            let mut rest = UncountedMoves::new(start, PieceLetters::English);
            words.iter().for_each(|word| rest.push(word.as_bytes()));
            (rest.plies, rest.into_bytes())
        };
        assert_eq!(rest(&["Nf3", "d5"]), rest(&["Ng1f3", "d5"]));
        assert_ne!(rest(&["Nf3", "d5"]).1, rest(&["Nf3", "d6"]).1);
        assert_ne!(rest(&["Ke4", "d5"]).1, rest(&["Ke5", "d5"]).1);
        assert_eq!(rest(&["Nf3", "", "d5"]).0, 1);
    }
}
