//! Calls visitors of the crate `pgn-reader` with the tags and moves of games.

use std::ops::ControlFlow;

use pgn_reader::{Nag, RawComment, RawTag, Skip, Visitor};
use shakmaty::{
    KnownOutcome, Outcome,
    san::{San, SanPlus},
};

use super::{
    game::GameReader,
    movetext::{Flaw, FlawKind, GameEnd, Token},
    result::GameResult,
};
use crate::chess::position::san_of;

/// An element of movetext: a token such as a move, a comment or an annotation.
pub(crate) enum Annotated<'a> {
    Token(Token<'a>),
    /// The text of a comment.
    Comment(&'a [u8]),
    /// A mark such as `!?`, or a numeric annotation such as `$1`.
    Nag(Nag),
}

impl<'a> GameReader<'a> {
    /// Returns the next token, comment or annotation of the current game.
    pub(crate) fn next_annotated(&mut self) -> Annotated<'a> {
        loop {
            let start = self.at;
            if let Some(token) = self.read_element() {
                return Annotated::Token(token);
            }
            if let Some(annotation) = self.annotation(start) {
                return annotation;
            }
        }
    }

    /// Returns the annotation that the element at the offset `start` contains, or `None` if the element is not an
    /// annotation. [`read_element`](GameReader::read_element) must have just skipped this element.
    fn annotation(&mut self, start: usize) -> Option<Annotated<'a>> {
        match *self.text.get(start).expect("an element was read there") {
            b'{' => return Some(Annotated::Comment(self.text.passed(start + 1, self.at - 1))),
            b';' => return Some(Annotated::Comment(self.text.passed(start + 1, self.at))),
            b'!' | b'?' if matches!(self.text.get(self.at), Some(b'!' | b'?')) => self.at += 1,
            b'!' | b'?' | b'$' => {}
            _ => return None,
        }
        let nag = Nag::from_ascii(self.text.passed(start, self.at)).ok();
        nag.map(Annotated::Nag)
    }
}

impl GameReader<'_> {
    /// Reads the next game and calls a [`pgn_reader::Visitor`] with its tags and moves. Returns the visitor's output
    /// for the game, or `None` if there are no more games.
    ///
    /// `pgn_reader::Reader` calls a visitor in the same way, with these differences:
    ///
    /// - This reader decides where games begin and end.
    /// - Spellings such as `0-0`, `Ng1-f3` and `exd6e.p.` are also passed as SAN.
    /// - A word that is not a move ends the game with a [`Flaw`]; `pgn_reader::Reader` skips such words.
    /// - Each comment is passed as a whole.
    /// - A null move is passed as the SAN `--`.
    /// - A move that consists only of squares, such as `g1f3`, is passed as a pawn move, even if another piece moves.
    ///   SAN cannot express such a move, so `San::to_move` fails. If your files contain such moves, read them with
    ///   [`next_token`](GameReader::next_token) and [`read_move`](crate::chess::position::read_move).
    ///
    /// The visitor decides for each variation whether to skip it; [`with_variations`](GameReader::with_variations)
    /// has no effect.
    ///
    /// To run a visitor on several threads, let each thread take [batches](super::Cutter) of the file:
    ///
    /// ```
    /// use std::{io, ops::ControlFlow, sync::Mutex};
    ///
    /// use pgn_reader::{SanPlus, Visitor};
    /// use polybook::pgn::{Cutter, GameReader, Input, StreamOptions};
    ///
    /// struct CountMoves;
    ///
    /// impl Visitor for CountMoves {
    ///     type Tags = ();
    ///     type Movetext = usize;
    ///     type Output = usize;
    ///
    ///     fn begin_tags(&mut self) -> ControlFlow<usize> {
    ///         ControlFlow::Continue(())
    ///     }
    ///
    ///     fn begin_movetext(&mut self, _tags: ()) -> ControlFlow<usize, usize> {
    ///         ControlFlow::Continue(0)
    ///     }
    ///
    ///     fn san(&mut self, moves: &mut usize, _san: SanPlus) -> ControlFlow<usize> {
    ///         *moves += 1;
    ///         ControlFlow::Continue(())
    ///     }
    ///
    ///     fn end_game(&mut self, moves: usize) -> usize {
    ///         moves
    ///     }
    /// }
    ///
    /// let stream = Input::file("data/famous.pgn").open(&StreamOptions::default())?;
    /// let cutter = Mutex::new(Cutter::new(stream, 1 << 16));
    /// let moves = rayon::broadcast(|_| {
    ///     let mut moves = 0;
    ///     loop {
    ///         let batch = cutter.lock().unwrap().next_batch()?;
    ///         let Some(batch) = batch else {
    ///             return io::Result::Ok(moves);
    ///         };
    ///         let mut games = GameReader::new(&batch.text);
    ///         while let Some(game) = games.visit_game(&mut CountMoves) {
    ///             moves += game.expect("all games can be read");
    ///         }
    ///     }
    /// });
    /// assert_eq!(moves.into_iter().sum::<io::Result<usize>>()?, 2710);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Returns a [`Flaw`] if the game contains an unclosed comment or variation, or a word that is not a move. The
    /// visitor's output for this game is lost. The next call reads the next game.
    pub fn visit_game<V: Visitor>(&mut self, visitor: &mut V) -> Option<Result<V::Output, Flaw>> {
        if !self.next_game() {
            return None;
        }
        let with_variations = std::mem::replace(&mut self.with_variations, true);
        let visited = match self.visit_moves(visitor) {
            ControlFlow::Continue((mut movetext, GameEnd::Complete(result))) => {
                let outcome = result.map(outcome_of);
                let outcome = outcome.map(|outcome| visitor.outcome(&mut movetext, outcome));
                match outcome {
                    Some(ControlFlow::Break(output)) => Ok(output),
                    _ => Ok(visitor.end_game(movetext)),
                }
            }
            ControlFlow::Continue((_, GameEnd::Broken(flaw))) => Err(flaw),
            ControlFlow::Break(visited) => {
                self.skip_moves();
                visited
            }
        };
        self.with_variations = with_variations;
        Some(visited)
    }

    /// Passes the tags and the moves of the current game to `visitor`. At the end of the game, returns `Continue` with
    /// the state of the visitor (`V::Movetext`) and how the game ended. If the visitor stops early, returns `Break`
    /// with the visitor's output. If a word is not a move, returns `Break` with a [`Flaw`].
    fn visit_moves<V: Visitor>(
        &mut self,
        visitor: &mut V,
    ) -> ControlFlow<Result<V::Output, Flaw>, (V::Movetext, GameEnd)> {
        let mut tags = visitor.begin_tags().map_break(Ok)?;
        for tag in self.tags().iter() {
            let value = RawTag(tag.value);
            visitor.tag(&mut tags, tag.name, value).map_break(Ok)?;
        }
        let mut movetext = visitor.begin_movetext(tags).map_break(Ok)?;
        self.return_to_comments();
        loop {
            let start = self.at;
            let visited = match self.read_element() {
                Some(Token::Move { text, offset } | Token::Unreadable { text, offset }) => {
                    let Some(san) = san_of(text) else {
                        let reason = FlawKind::NotAMove;
                        return ControlFlow::Break(Err(Flaw { reason, offset }));
                    };
                    visitor.san(&mut movetext, san)
                }
                Some(Token::NullMove { .. }) => {
                    let (san, suffix) = (San::Null, None);
                    visitor.san(&mut movetext, SanPlus { san, suffix })
                }
                Some(Token::BeginVariation) => {
                    let Skip(skip) = visitor.begin_variation(&mut movetext).map_break(Ok)?;
                    if !skip {
                        continue;
                    }
                    self.leave_variation();
                    visitor.end_variation(&mut movetext)
                }
                Some(Token::EndVariation) => visitor.end_variation(&mut movetext),
                Some(Token::End(end)) => return ControlFlow::Continue((movetext, end)),
                None => self.visit_annotation(start, visitor, &mut movetext),
            };
            visited.map_break(Ok)?;
        }
    }

    /// Passes an annotation to `visitor`: a comment, a mark such as `!?`, or a numeric annotation such as `$1`. `start`
    /// is the offset of the element that [`read_element`](GameReader::read_element) has just skipped, and `movetext` is
    /// the visitor's state for the game. Does nothing if the element is not an annotation.
    fn visit_annotation<V: Visitor>(
        &mut self,
        start: usize,
        visitor: &mut V,
        movetext: &mut V::Movetext,
    ) -> ControlFlow<V::Output> {
        let is_rest_of_line = self.text.get(start) == Some(&b';');
        match self.annotation(start) {
            Some(Annotated::Comment(comment)) if !is_rest_of_line => {
                visitor.comment(movetext, RawComment(comment))
            }
            Some(Annotated::Nag(nag)) => visitor.nag(movetext, nag),
            _ => ControlFlow::Continue(()),
        }
    }
}

fn outcome_of(result: GameResult) -> Outcome {
    match (result, result.winner()) {
        (_, Some(winner)) => Outcome::Known(KnownOutcome::Decisive { winner }),
        (GameResult::Draw, None) => Outcome::Known(KnownOutcome::Draw),
        (_, None) => Outcome::Unknown,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A visitor that records its calls.
    struct Recorder {
        skips_variations: bool,
        /// The number of calls after which the visitor skips the rest of a game.
        most: usize,
    }

    impl Recorder {
        fn note(&self, calls: &mut Vec<String>, call: String) -> ControlFlow<Vec<String>> {
            calls.push(call);
            if calls.len() < self.most {
                ControlFlow::Continue(())
            } else {
                ControlFlow::Break(std::mem::take(calls))
            }
        }
    }

    impl Visitor for Recorder {
        type Tags = Vec<String>;
        type Movetext = Vec<String>;
        type Output = Vec<String>;

        fn begin_tags(&mut self) -> ControlFlow<Vec<String>, Vec<String>> {
            ControlFlow::Continue(Vec::new())
        }

        fn tag(
            &mut self,
            calls: &mut Vec<String>,
            name: &[u8],
            value: RawTag<'_>,
        ) -> ControlFlow<Vec<String>> {
            let name = String::from_utf8_lossy(name);
            self.note(calls, format!("{name} {value:?}"))
        }

        fn begin_movetext(&mut self, calls: Vec<String>) -> ControlFlow<Vec<String>, Vec<String>> {
            ControlFlow::Continue(calls)
        }

        fn san(&mut self, calls: &mut Vec<String>, san: SanPlus) -> ControlFlow<Vec<String>> {
            self.note(calls, san.to_string())
        }

        fn nag(&mut self, calls: &mut Vec<String>, nag: Nag) -> ControlFlow<Vec<String>> {
            self.note(calls, nag.to_string())
        }

        fn comment(
            &mut self,
            calls: &mut Vec<String>,
            comment: RawComment<'_>,
        ) -> ControlFlow<Vec<String>> {
            self.note(calls, format!("{{{comment:?}}}"))
        }

        fn begin_variation(&mut self, calls: &mut Vec<String>) -> ControlFlow<Vec<String>, Skip> {
            self.note(calls, "(".to_owned())?;
            ControlFlow::Continue(Skip(self.skips_variations))
        }

        fn end_variation(&mut self, calls: &mut Vec<String>) -> ControlFlow<Vec<String>> {
            self.note(calls, ")".to_owned())
        }

        fn outcome(
            &mut self,
            calls: &mut Vec<String>,
            outcome: Outcome,
        ) -> ControlFlow<Vec<String>> {
            self.note(calls, outcome.to_string())
        }

        fn end_game(&mut self, mut calls: Vec<String>) -> Vec<String> {
            calls.push("end".to_owned());
            calls
        }
    }

    /// Returns the recorded calls for each game, or the reason why the game cannot be read.
    fn ours(text: &str, mut recorder: Recorder) -> Vec<Result<Vec<String>, FlawKind>> {
        let mut games = GameReader::new(text.as_bytes());
        let mut found = Vec::new();
        while let Some(game) = games.visit_game(&mut recorder) {
            found.push(game.map_err(|flaw| flaw.reason));
        }
        assert_eq!(games.offset(), text.len());
        found
    }

    fn all(text: &str) -> Vec<Result<Vec<String>, FlawKind>> {
        let skips_variations = false;
        let most = usize::MAX;
        ours(
            text,
            Recorder {
                skips_variations,
                most,
            },
        )
    }

    #[test]
    fn moves_written_as_squares_are_passed_as_pawn_moves() {
        use shakmaty::{Chess, san::San};
        let san = san_of(b"g1f3").unwrap().san;
        assert!(matches!(
            san,
            San::Normal {
                role: shakmaty::Role::Pawn,
                ..
            }
        ));
        assert!(san.to_move(&Chess::default()).is_err());
        assert!(crate::chess::position::read_move(&Chess::default(), b"g1f3").is_ok());
    }

    #[test]
    fn games_that_pgn_reader_cuts_short_are_read_completely() {
        let text = "[White \"A\"]\n{b}\n\n1. e4 {a\n\nb} e5\n\n2. 0-0 exd6e.p.+ N(f)d7 Ng1-f3 -- 1/2\n\n\
            1. Sf3 *\n1. d4 {\n[A \"\"]\n1. e2-e4 c5 1-0 1. c4 *\n2. c4";
        let games = all(text);
        assert_eq!(
            games[0].as_ref().unwrap().join(" "),
            "White \"A\" {\"b\"} e4 {\"a\\n\\nb\"} e5 O-O exd6+ Nfd7 Ng1f3 -- 1/2-1/2 end"
        );
        assert_eq!(games[1], Err(FlawKind::NotAMove));
        assert_eq!(games[2], Err(FlawKind::UnclosedComment));
        assert_eq!(
            games[3].as_ref().unwrap().join(" "),
            "A \"\" e2e4 c5 1-0 end"
        );
        assert_eq!(games[4].as_ref().unwrap().join(" "), "c4 * end");
        let (number, is_black) = (2, false);
        assert_eq!(games[5], Err(FlawKind::NoStart { number, is_black }));
        assert_eq!(games.len(), 6);
    }

    /// Generates movetext that both readers accept: words with marks, comments and variations.
    fn movetext() -> impl Strategy<Value = String> {
        let piece = prop_oneof![
            6 => prop_oneof![
                Just("e4"), Just("Nf3"), Just("Qa1xb2+"), Just("exd8=Q#"), Just("O-O"), Just("O-O-O+"), Just("R1a3"),
                Just("0-0"), Just("--"), Just("Z0"), Just("N@f3"),
            ].prop_map(str::to_owned),
            2 => prop_oneof![
                Just("!"), Just("??"), Just("!?"), Just(" $7"), Just(" $255"), Just(" $256"), Just(" !!!"), Just("?"),
            ].prop_map(str::to_owned),
            2 => "\\{[ -z|~\n]{0,20}\\}",
            1 => prop_oneof![
                Just("12."), Just("3..."), Just("; 1-0 {\n"), Just("\n% {\n"), Just("\n"), Just("\r\n"),
            ].prop_map(str::to_owned),
        ];
        let line = proptest::collection::vec(piece, 0..12).prop_map(|pieces| pieces.join(" "));
        line.prop_recursive(3, 30, 4, |inner| {
            let variation = inner.prop_map(|line| format!("( {line} )"));
            proptest::collection::vec(prop_oneof![variation, Just("d4".to_owned())], 1..4)
                .prop_map(|parts| parts.join(" "))
        })
        // For `pgn-reader`, a blank line ends the game.
        .prop_map(|text| {
            text.replace("\n\n", "\n")
                .replace("\n \n", "\n")
                .replace("\r\n\r\n", "\n")
        })
    }

    proptest! {
        #[test]
        fn visitors_see_what_pgn_reader_shows_them(
            games in proptest::collection::vec(
                (
                    proptest::collection::vec(("[A-Z][a-z]{1,9}", "([ !#-Z^-~]|\\\\\"|\\\\\\\\){0,20}"), 1..5),
                    movetext(),
                    prop_oneof![Just("1-0"), Just("0-1"), Just("1/2-1/2"), Just("*")],
                ),
                1..4,
            ),
            skips_variations: bool,
            most in prop_oneof![1 => 1..20usize, 1 => Just(usize::MAX)],
        ) {
            let mut text = String::new();
            for (tags, movetext, result) in &games {
                // polybook reads this tag in any spelling.
                let tags = tags.iter().filter(|(name, _)| name != "Fen");
                tags.for_each(|(name, value)| text += &format!("[{name} \"{value}\"]\n"));
                text += &format!("\n{movetext} {result}\n\n");
            }
            let expected = {
                let mut reader = pgn_reader::Reader::new(text.as_bytes());
                let mut recorder = Recorder { skips_variations, most };
                reader.read_games(&mut recorder).map(Result::unwrap).collect::<Vec<_>>()
            };
            let found = ours(&text, Recorder { skips_variations, most });
            prop_assert_eq!(found.len(), expected.len());
            for (found, expected) in found.into_iter().zip(expected) {
                // `pgn-reader` does not examine move numbers.
                if !matches!(found, Err(FlawKind::NoStart { .. })) {
                    prop_assert_eq!(found, Ok(expected), "{}", text);
                }
            }
        }

        #[test]
        fn any_text_is_visited_to_its_end(
            parts in proptest::collection::vec(
                prop_oneof![
                    Just("("), Just(")"), Just("{"), Just("}"), Just("!"), Just("$"), Just("$9"), Just("e4"), Just("--?!"),
                    Just("g1f3"), Just("\u{e9}"), Just(" "), Just("\n"), Just("[A \"\"]\n"), Just("1-0"), Just("*"), Just("1."),
                ],
                0..40,
            ),
            skips_variations: bool,
            most in 1..20usize,
        ) {
            let text = parts.concat();
            ours(&text, Recorder { skips_variations, most });
        }
    }
}
