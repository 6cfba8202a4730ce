//! Collects data for the web page, which does not know the rules of chess: positions with their legal moves, and the
//! moves of games and of pasted texts.
//!
//! [`Annotations`] contains the clock times, evaluations, marks and comments in the text of a game.

use serde::Serialize;
use shakmaty::{Position, variant::VariantPosition};

use super::request::Request;
use crate::{
    chess::position::{BookMove, Variant, fen_of, move_number, read_move, san, uci},
    error::Error,
    explore::explorer::{
        Answer, Explorer, Line, MoveAnswer, MoveTime, Resulting, Times, UnknownName,
    },
    formats::evals::{Eval, Evals, Score, evaluation},
    games::pgn::{CommentTimes, GameReader, Token, comment_text, tag_text},
};

/// Facts about a position that follow from the rules of chess: the FEN, the legal moves, and whether the side to move
/// is in check. The server computes them because the web page does not know the rules.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(super) struct PositionRules {
    /// The FEN of the position after the line.
    fen: String,
    /// Whether the side to move is in check.
    check: bool,
    /// The moves of the line in the request.
    line: Vec<WrittenMove>,
    /// The legal moves.
    legal: Vec<WrittenMove>,
}

/// Additional data about a position for polybook's web page, such as the legal moves. The server sends it together with
/// the explorer's answer, which contains the results of the moves.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(super) struct Board {
    /// The position with its legal moves, or `None` if the request has the parameter `legal=0`.
    #[serde(flatten)]
    rules: Option<PositionRules>,
    /// A name in the filters that occurs in no game. `None` if games pass the filters, or if there is no such name.
    #[serde(skip_serializing_if = "Option::is_none", rename = "unknownName")]
    unknown_name: Option<UnknownName>,
    /// The number of games that pass the filters but begin in another position than the starting position. `None` if
    /// there are none, or if the line of the request begins in another position too.
    #[serde(skip_serializing_if = "Option::is_none", rename = "otherStarts")]
    other_starts: Option<u64>,
    /// The number of games that the history by month does not contain, because their month is unknown. `None` if the
    /// answer has no such history.
    #[serde(skip_serializing_if = "Option::is_none", rename = "unknownMonths")]
    unknown_months: Option<u64>,
    /// The moves after which the position is also reached by other move orders. `None` if the request asks for
    /// transpositions, but the explorer does not know them.
    transpositions: Option<Vec<Transpositions>>,
    /// The minimum number of moves that were counted in each position of the counts. `None` if the counts are
    /// complete.
    #[serde(skip_serializing_if = "Option::is_none", rename = "minGame")]
    min_game: Option<u64>,
    /// The number of half-moves of each game that were counted. `None` if the games were counted to their end.
    #[serde(skip_serializing_if = "Option::is_none", rename = "maxPly")]
    max_ply: Option<usize>,
    /// The evaluation of the position.
    #[serde(skip_serializing_if = "Option::is_none")]
    eval: Option<Eval>,
    /// The legal moves whose resulting positions have an evaluation.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    evals: Vec<MoveEval>,
    /// The mean times that players took for the moves, if the request asks for them.
    #[serde(skip_serializing_if = "Option::is_none")]
    clocks: Option<ClockTimes>,
}

/// How long players thought about their moves in a position, on average.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct ClockTimes {
    /// The number of games with the position that pass the filters.
    games: u64,
    /// The number of these games that were read, starting with the newest.
    read: u64,
    /// The moves whose times are known.
    moves: Vec<MoveClock>,
}

/// A move, and how long players thought about it on average.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct MoveClock {
    uci: String,
    #[serde(flatten)]
    time: MoveTime,
}

/// A move, and the evaluation of the position after it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct MoveEval {
    uci: String,
    #[serde(flatten)]
    eval: Eval,
}

/// A move in two notations: UCI and standard algebraic notation.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(super) struct WrittenMove {
    /// The move in UCI notation, in which castling is written as the king capturing its own rook.
    uci: String,
    /// The move in standard algebraic notation.
    san: String,
}

/// A move, and the number of games that reach the position after it by another move order.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[cfg_attr(test, schemars(rename = "Transposition"))]
struct Transpositions {
    uci: String,
    games: u64,
}

impl WrittenMove {
    pub(super) fn new(pos: &VariantPosition, mv: shakmaty::Move) -> WrittenMove {
        WrittenMove {
            uci: BookMove::from(mv).to_string(),
            san: san(pos, mv).to_string(),
        }
    }
}

impl PositionRules {
    pub(super) fn new(line: &Line) -> PositionRules {
        let pos = line.position();
        let played = line.positions().iter().zip(line.moves());
        let legal = pos.legal_moves().into_iter();
        PositionRules {
            fen: fen_of(pos),
            check: pos.is_check(),
            line: played.map(|(pos, mv)| WrittenMove::new(pos, *mv)).collect(),
            legal: legal.map(|mv| WrittenMove::new(pos, mv)).collect(),
        }
    }
}

impl Board {
    /// Creates the data for the web page about the position in `request`. `answer` is the explorer's answer to the
    /// request. `explorer` tells which positions may be missing from its counts: those with too few moves, and those
    /// after the last counted half-move of a game.
    pub(super) fn new(request: &Request, answer: &Answer, explorer: &Explorer) -> Board {
        let filters = &request.query.filters;
        let line = &request.query.line;
        let moves = &answer.moves;
        let reached = |mv: &MoveAnswer| mv.resulting.and_then(Resulting::reached);
        let is_known = !request.transpositions
            || moves.is_empty()
            || moves.iter().any(|mv| reached(mv).is_some());
        let transpositions = moves.iter().filter_map(|mv| {
            let games = reached(mv)?.checked_sub(mv.results.games())?;
            (games > 0 && request.transpositions).then(|| Transpositions {
                uci: mv.uci.clone(),
                games,
            })
        });
        Board {
            rules: request.legal.then(|| PositionRules::new(line)),
            unknown_name: None,
            other_starts: None,
            unknown_months: answer.unknown_months,
            transpositions: is_known.then(|| transpositions.collect()),
            min_game: explorer.min_game(filters),
            max_ply: explorer.max_ply(filters),
            eval: None,
            evals: Vec::new(),
            clocks: None,
        }
    }

    /// Adds `unknown` to the response: a name from the filters that occurs in no game, with similar names that occur in
    /// games.
    pub(super) fn set_unknown_name(&mut self, unknown: Option<UnknownName>) {
        self.unknown_name = unknown;
    }

    /// Sets the number of games that do not begin in the starting position, which the response may leave out.
    pub(super) fn set_other_starts(&mut self, games: Option<u64>) {
        self.other_starts = games;
    }

    /// Stores the evaluations of the position `pos` and of the positions after its legal moves, which are looked up in
    /// `evals`.
    ///
    /// # Errors
    ///
    /// Returns an error if the evaluations cannot be read.
    pub(super) fn evaluate(&mut self, pos: &VariantPosition, evals: &Evals) -> Result<(), Error> {
        self.eval = evals.of_position(pos)?;
        for mv in pos.legal_moves() {
            if let Some(eval) = evals.after(pos, mv)? {
                let uci = BookMove::from(mv).to_string();
                self.evals.push(MoveEval { uci, eval });
            }
        }
        Ok(())
    }

    /// Stores the mean time that players needed for each legal move of the position `pos`. `times` contains these
    /// times.
    pub(super) fn add_times(&mut self, pos: &VariantPosition, times: &Times) {
        let moves = pos.legal_moves().into_iter().filter_map(|mv| {
            Some(MoveClock {
                uci: BookMove::from(mv).to_string(),
                time: *times.moves.get(&uci(pos, mv))?,
            })
        });
        self.clocks = Some(ClockTimes {
            games: times.games,
            read: times.read,
            moves: moves.collect(),
        });
    }
}

/// The maximum number of half-moves that the server reads from a game. Even the longest games have only about 600
/// half-moves.
const MOST_MOVES: usize = 2000;

/// The error message if a user pastes a web address instead of a position or moves.
const ADDRESS: &str = "this is an address, and polybook loads nothing from the Internet: paste the moves, the FEN or the PGN \
                       of the game";

const NEITHER: &str = "this is neither a FEN nor moves from the start";

/// Returns `true` if `text`, which could not be parsed, was probably meant as a FEN: its first word contains a slash,
/// but neither a hyphen (as in the result `1-0`) nor an opening bracket (as in a tag).
fn begins_like_fen(text: &str) -> bool {
    let word = text.split_whitespace().next().unwrap_or_default();
    word.contains('/') && !word.contains(['-', '['])
}

/// A move of a game, and the annotations that follow it in the text of the game.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct AnnotatedMove {
    #[serde(flatten)]
    mv: WrittenMove,
    #[serde(flatten)]
    annotations: Annotations,
}

/// The starting position, the moves and the tags of a game or of a pasted text. If a move cannot be played, the moves
/// after it are left out, too.
#[derive(Clone, PartialEq, Default, Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(super) struct Moves {
    /// The variant, by its name in the UCI protocol.
    variant: Variant,
    /// The FEN of the starting position, or `None` for the usual starting position of the variant.
    start: Option<String>,
    /// The comments before the first move.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    comments: Vec<String>,
    /// The moves of the main line.
    moves: Vec<AnnotatedMove>,
    /// The reason why not all moves of the text could be read, or `None` if all were read.
    problem: Option<String>,
    /// The tags in the order of the text.
    tags: Vec<(String, String)>,
    /// Whether the starting position is known.
    #[serde(skip)]
    is_placed: bool,
}

impl Moves {
    /// Returns `true` if the starting position is known. It is unknown if the variant is not supported or the FEN is
    /// invalid.
    pub(super) fn has_known_start(&self) -> bool {
        self.is_placed
    }

    /// Parses the first game in `text`. `variant` is assumed for a game without a `Variant` tag. If a part of the game
    /// cannot be read, the result contains only the moves before this part.
    pub(super) fn of_game(variant: Variant, text: &[u8]) -> Moves {
        let mut moves = Moves {
            variant,
            ..Moves::default()
        };
        moves.problem = moves.read(text).err();
        moves
    }

    /// Returns the line of play that consists of the starting position and all moves.
    pub(super) fn line(&self) -> Line {
        let moves = self.moves.iter().map(|mv| &*mv.mv.uci);
        let play = moves.collect::<Vec<_>>().join(",");
        let line = Line::parse(self.variant, self.start.as_deref(), &play);
        line.expect("the moves were played from there")
    }

    /// Returns the value of the tag `name`, or `None` if the tag is missing or its value means "unknown", such as `?`.
    pub(super) fn tag(&self, name: &str) -> Option<String> {
        let found = self.tags.iter().find(|(known, _)| known == name);
        let value = found.map(|(_, value)| value.trim());
        let value = value.filter(|value| !matches!(*value, "" | "?" | "-"));
        value.map(str::to_owned)
    }

    /// Parses text that a user has pasted: a FEN, an EPD, or moves with or without tags, move numbers and comments.
    /// `variant` is assumed if the text has no tags. If the text cannot be parsed completely, the result says why.
    pub(super) fn of_text(variant: Variant, text: &str) -> Moves {
        let text = text.trim();
        let mut moves = Moves {
            variant,
            ..Moves::default()
        };
        if ["https://", "http://", "lichess.org/"]
            .iter()
            .any(|start| text.starts_with(start))
        {
            moves.problem = Some(ADDRESS.to_owned());
            return moves;
        }
        match variant.parse_position(text) {
            Ok(pos) => moves.start = Some(fen_of(&pos)),
            Err(err) if begins_like_fen(text) => moves.problem = Some(err.to_string()),
            Err(_) if text.starts_with('[') => {
                moves = Moves::of_game(Variant::Standard, text.as_bytes())
            }
            Err(_) if !GameReader::new(text.as_bytes()).next_game() => {
                moves.problem = Some(NEITHER.to_owned());
            }
            Err(_) => {
                moves.problem = moves.play(text.as_bytes(), variant.start()).err();
                if let (Some(problem), true) = (&mut moves.problem, moves.moves.is_empty()) {
                    problem.insert_str(0, &format!("{NEITHER}: "));
                }
            }
        }
        moves
    }

    /// Reads the tags and the moves of a game. If a part of the game cannot be read, keeps what comes before this part,
    /// and returns the reason as an error message.
    fn read(&mut self, game_text: &[u8]) -> Result<(), String> {
        let mut game = GameReader::new(game_text).with_untagged_variant(self.variant);
        if !game.next_game() {
            return Err(NEITHER.to_owned());
        }
        let text = |bytes| tag_text(bytes).into_owned();
        let tags = game.tags();
        self.tags = tags
            .iter()
            .map(|tag| (text(tag.name), text(tag.value)))
            .collect();
        self.variant = tags
            .variant()
            .map_err(|_| "polybook does not support the variant of this game")?;
        let mut start = self.variant.start();
        if let Some(fen) = tags.fen().map(text) {
            (start, _) = self
                .variant
                .game_start(&fen)
                .map_err(|err| err.to_string())?;
            self.start = Some(fen_of(&start));
        }
        self.is_placed = true;
        self.play(game_text, start)
    }

    /// Plays the moves of a game from the position `pos`, and stores them with their annotations. If a move cannot be
    /// played, keeps the moves before it, and returns the reason as an error message.
    fn play(&mut self, game_text: &[u8], mut pos: VariantPosition) -> Result<(), String> {
        let mut game = GameReader::new(game_text);
        game.next_game();
        // The end of the last move or, before the first move, the end of the tags.
        let mut last = game.tags_end();
        loop {
            let (text, offset, read) = match game.next_token() {
                Token::Move { text, offset } => {
                    let read = read_move(&pos, text).map_err(|err| err.to_string());
                    if read.is_err() && game.is_double_loss(text) {
                        self.annotate(&game_text[last..offset]);
                        return Ok(());
                    }
                    (text, offset, read)
                }
                Token::Unreadable { text, offset } => (text, offset, Err("not a move".to_owned())),
                Token::NullMove { offset } => (&b"--"[..], offset, Err("a null move".to_owned())),
                _ => {
                    self.annotate(&game_text[last..game.offset().max(last)]);
                    return Ok(());
                }
            };
            self.annotate(&game_text[last..offset]);
            if self.moves.len() == MOST_MOVES {
                return Err(format!(
                    "the game goes on: here are {MOST_MOVES} half-moves"
                ));
            }
            last = offset + text.len();
            let mv = read.map_err(|problem| {
                let text = String::from_utf8_lossy(text);
                format!("{} {text}: {problem}", move_number(&pos))
            })?;
            self.moves.push(AnnotatedMove {
                mv: WrittenMove::new(&pos, mv),
                annotations: Annotations::default(),
            });
            pos.play_unchecked(mv);
        }
    }

    /// Parses the annotations in `text`, and adds them to the last stored move. Before the first move, stores comments
    /// as comments on the game.
    fn annotate(&mut self, text: &[u8]) {
        let said = Annotations::read(text);
        match self.moves.last_mut() {
            Some(mv) => mv.annotations = said,
            None => self.comments = said.comments,
        }
    }
}

/// The annotations of a move in the text of a game, such as comments and marks like `!?`.
#[derive(Clone, PartialEq, Default, Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(super) struct Annotations {
    /// The remaining time on the player's clock, in seconds.
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
    /// Parses the annotations in the text between two moves of the main line. Variations are skipped.
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

    /// Stores the clock time, the evaluation and the text of a comment. `depth` is the nesting depth of the variation
    /// that contains the comment, or 0 in the main line. Comments in variations are ignored.
    fn take_comment(&mut self, comment: &[u8], depth: u32) {
        if depth > 0 {
            return;
        }
        let mut time = CommentTimes::default();
        time.read(comment);
        self.clk = time.left.or(self.clk);
        let score = evaluation(comment).flatten().map(|(score, _)| score);
        self.eval = score.or(self.eval);
        let text = comment_text(comment);
        if !text.is_empty() {
            self.comments.push(text);
        }
    }
}

/// Returns the offset of the first line break in `text`, or the length of `text` if it has none.
fn line_end(text: &[u8]) -> usize {
    memchr::memchr2(b'\n', b'\r', text).unwrap_or(text.len())
}

/// Returns the numeric annotation glyph (NAG) for a mark such as `!?`, or `None` if the mark is unknown.
fn nag(mark: &[u8]) -> Option<u16> {
    let marks: [&[u8]; 6] = [b"!", b"?", b"!!", b"??", b"!?", b"?!"];
    let at = marks.iter().position(|known| *known == mark)?;
    Some(at as u16 + 1)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn sans(moves: &Moves) -> String {
        let sans: Vec<_> = moves.moves.iter().map(|mv| &*mv.mv.san).collect();
        sans.join(" ")
    }

    #[test]
    fn a_game_is_played_as_far_as_it_goes() {
        let game = Moves::of_game(
            Variant::Standard,
            b"[White \"A\"]\n\n1. e4 {best} e5 (1... c5) 2. Nf3 Nc6 3. Bb5 a6 4. O-O Kd5 1-0",
        );
        assert_eq!(sans(&game), "e4 e5 Nf3 Nc6 Bb5 a6 O-O");
        assert_eq!(game.problem.as_deref(), Some("4... Kd5: illegal move"));
        assert_eq!(game.tags, [("White".to_owned(), "A".to_owned())]);
        // Tags are read as in all other places: with brackets in values, without a closing bracket, and in Latin-1.
        let tagged = Moves::of_game(
            Variant::Standard,
            b"[Event \"Open [A] 2015\"]\n[Site \"M\xfcnchen\"]\n\n1. e4 *",
        );
        assert!(tagged.comments.is_empty() && tagged.has_known_start());
        assert_eq!(tagged.tag("Site").as_deref(), Some("München"));
        let open = Moves::of_game(Variant::Standard, b"[Event \"x\"\n\n{Before.} 1. e4 e5 *");
        assert_eq!(
            (sans(&open), open.comments),
            ("e4 e5".to_owned(), vec!["Before.".to_owned()])
        );
        assert!(
            !Moves::of_game(Variant::Standard, b"[Variant \"Dark\"]\n\n1. e4 *").has_known_start()
        );
        let empty = Moves::of_game(Variant::Standard, b"");
        assert!(empty.problem.is_some() && empty.moves.is_empty());
        let from = Moves::of_game(
            Variant::Standard,
            b"[FEN \"4k3/8/8/8/8/8/8/R3K3 w Q - 0 1\"]\n\n1. O-O-O *",
        );
        assert_eq!(sans(&from), "O-O-O");
        assert!(from.start.is_some());
    }

    #[test]
    fn a_game_without_end_is_read_up_to_a_bound() {
        let game = Moves::of_game(Variant::Standard, "Nf3 Nf6 Ng1 Ng8 ".repeat(600).as_bytes());
        assert_eq!(game.moves.len(), MOST_MOVES);
        assert!(game.problem.unwrap().starts_with("the game goes on"));
    }

    #[test]
    fn pasted_text_is_recognized_by_its_form() {
        let fen = Moves::of_text(Variant::Standard, "4k3/8/8/8/8/8/8/R3K3 w Q - 0 1\n");
        assert!(fen.start.is_some() && fen.problem.is_none());
        let epd = Moves::of_text(
            Variant::Standard,
            "4k3/8/8/8/8/8/8/R3K3 w Q - hmvc 3; id \"a\";",
        );
        assert!(epd.start.unwrap().ends_with(" 3 1"));
        let line = Moves::of_text(Variant::Standard, "1. e4 c5 2. Nf3");
        assert_eq!(sans(&line), "e4 c5 Nf3");
        assert_eq!(
            sans(&Moves::of_text(Variant::Standard, "e2e4 c7c5")),
            "e4 c5"
        );
        assert_eq!(
            sans(&Moves::of_text(
                Variant::Standard,
                "[White \"A\"]\n\n1. d4 *"
            )),
            "d4"
        );
        let problem = |text| Moves::of_text(Variant::Standard, text).problem.unwrap();
        assert_eq!(problem("good morning"), NEITHER);
        let illegal = format!("{NEITHER}: 1. e5: illegal move");
        assert_eq!(problem("1. e5"), illegal);
        assert_eq!(problem("1. e4 Ke6"), "1... Ke6: illegal move");
        assert_eq!(problem(""), NEITHER);
        // The texts above are pasted as this message advises.
        let advice = "paste the moves, the FEN or the PGN of the game";
        assert!(problem("https://lichess.org/abcdefgh").contains(advice));
        assert!(problem("8/8/8 w - -").starts_with("FEN \"8/8/8 w - -\": "));
        let drops = Moves::of_text(Variant::Crazyhouse, "e4 d5 exd5 Qxd5 Nc3 P@d4");
        assert_eq!(drops.moves.len(), 6);
    }

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
