//! Parses positions from user input and `FEN` tags: a FEN, an EPD or only a board, optionally followed by a line of
//! moves. The errors say what is wrong with the text.

use std::borrow::Cow;

use shakmaty::{
    CastlingMode, Chess, Color, File, Piece, PositionError, PositionErrorKinds, Role, Setup,
    Square,
    fen::{Fen, ParseFenError},
    variant::{Variant as Game, VariantPosition},
};
use thiserror::Error;

use super::{MoveError, Rules, Variant, epd::operand, read_move};

/// An error in a FEN, or in a line of moves from a position.
#[derive(Debug, Error)]
pub enum LineError {
    /// The FEN is malformed, or its position is illegal.
    #[error("FEN \"{}\": {reason}", truncated(fen))]
    Fen {
        /// The FEN as the user wrote it.
        fen: String,
        /// A description of what is wrong with the FEN.
        reason: String,
    },
    /// The FEN belongs to another variant: it contains castling rights that are possible only in Chess960, pieces in
    /// hand as in crazyhouse, or given checks as in three-check.
    #[error(
        "the {} in FEN \"{}\" are those of {}: give the variant {variant}",
        part_and_title(*variant).0,
        truncated(fen),
        part_and_title(*variant).1
    )]
    OtherVariant {
        /// The FEN as the user wrote it.
        fen: String,
        /// The variant to which the FEN belongs.
        variant: Variant,
    },
    /// A move of the line is not legal.
    #[error(
        "move {number} of the line, \"{text}\", is not possible: {reason} in {fen}{}",
        advice_for_word(text)
    )]
    Move {
        /// The number of the half-move in the line, starting at 1.
        number: usize,
        /// The move as the user wrote it.
        text: String,
        /// The reason why the move cannot be played.
        reason: MoveError,
        /// The FEN of the position before the move.
        fen: String,
    },
}

/// Returns advice for `word`, which is not a move: the word for the starting position, if the user meant this position.
fn advice_for_word(word: &str) -> &'static str {
    match word.eq_ignore_ascii_case("start") {
        true => "; for the starting position, write startpos",
        false => "",
    }
}

/// The maximum number of characters of a FEN that an error message quotes. FENs of standard chess have at most 90
/// characters.
const MAX_QUOTED_CHARACTERS: usize = 100;

impl LineError {
    /// Returns the part of the FEN that is possible only in another variant, such as "castling rights", and the usual
    /// name of that variant. Returns `None` for all errors except [`LineError::OtherVariant`].
    pub fn part_of_other_variant(&self) -> Option<(&'static str, &'static str)> {
        match self {
            LineError::OtherVariant { variant, .. } => Some(part_and_title(*variant)),
            _ => None,
        }
    }
}

/// Returns the part of a FEN by which `variant` is recognized in [`LineError::OtherVariant`], such as "pieces in hand",
/// and the usual name of `variant`.
fn part_and_title(variant: Variant) -> (&'static str, &'static str) {
    match variant {
        Variant::Crazyhouse => ("pieces in hand", "crazyhouse"),
        Variant::ThreeCheck => ("checks", "three-check"),
        _ => ("castling rights", "Chess960"),
    }
}

/// Truncates a FEN to [`MAX_QUOTED_CHARACTERS`] characters for an error message. Three dots replace the rest.
fn truncated(fen: &str) -> String {
    let mut cut: String = fen.chars().take(MAX_QUOTED_CHARACTERS).collect();
    if cut.len() < fen.len() {
        cut.push_str("...");
    }
    cut
}

/// Parses a FEN or an EPD of standard chess.
///
/// # Errors
///
/// Returns [`LineError::Fen`] if the FEN is malformed or its position is illegal. Returns [`LineError::OtherVariant`]
/// if the FEN belongs to another variant.
pub fn parse_fen(text: &str) -> Result<Chess, LineError> {
    Variant::Standard.parse_fen(text).map(standard)
}

/// Converts a position of standard chess to [`Chess`].
///
/// # Panics
///
/// Panics if `pos` is a position of another variant.
fn standard(pos: VariantPosition) -> Chess {
    match pos {
        VariantPosition::Chess(pos) => Some(pos),
        _ => None,
    }
    .expect("a variant makes positions of its own only")
}

/// Parses the value of a `FEN` tag: the starting position of a game of standard chess. Returns the position, and `true`
/// if castling rights in the FEN were ignored because the king or the rook is not on its square. For other variants,
/// use [`Variant::game_start`].
///
/// # Errors
///
/// Returns [`LineError::Fen`] if the FEN is malformed or its position is illegal. Returns [`LineError::OtherVariant`]
/// if the FEN belongs to another variant.
pub fn game_start(fen: &str) -> Result<(Chess, bool), LineError> {
    let (start, dropped) = Variant::Standard.game_start(fen)?;
    Ok((standard(start), dropped))
}

/// Plays the moves of `line` from the position `fen`, which is a FEN or an EPD, and returns the resulting position.
///
/// If `fen` is `None`, the line starts from the starting position. If `line` is `None`, no moves are played. `line`
/// may contain move numbers, and annotations such as `!?`.
///
/// # Errors
///
/// Returns a [`LineError`] if `fen` cannot be parsed, or if a move is not legal. The error quotes the FEN or the move.
///
/// ```
/// use polybook::position::{from_text, key};
/// let pos = from_text(None, Some("1. e4 d5 2. e5"))?;
/// assert_eq!(key(&pos), 0x662f_afb9_65db_29d4);
/// # Ok::<(), polybook::position::LineError>(())
/// ```
pub fn from_text(fen: Option<&str>, line: Option<&str>) -> Result<Chess, LineError> {
    Variant::Standard.from_text(fen, line).map(standard)
}

/// Plays the moves of `line` from `pos`, and returns the resulting position. `line` may contain move numbers, and
/// annotations such as `!?`.
///
/// # Errors
///
/// Returns [`LineError::Move`] for the first word that is not a legal move.
pub(super) fn play_line<P: Rules>(mut pos: P, line: &str) -> Result<P, LineError> {
    for (index, word) in move_words(line).enumerate() {
        let mv = read_move(&pos, word.as_bytes()).map_err(|reason| LineError::Move {
            number: index + 1,
            text: word.to_owned(),
            reason,
            fen: super::fen_of(&pos),
        })?;
        pos.play_unchecked(mv);
    }
    Ok(pos)
}

/// Returns an iterator over the moves in `line`, which are separated by blanks or commas. Leaves out move numbers, and
/// annotations such as `!?`.
pub(crate) fn move_words(line: &str) -> impl Iterator<Item = &str> {
    line.split(|c: char| c.is_whitespace() || c == ',')
        .map(without_move_number)
        .map(|word| word.trim_end_matches(['!', '?']))
        .filter(|word| !word.is_empty())
}

/// Removes a move number from a word: converts `12.Nf3` and `12...Nf3` to `Nf3`, and `12.` and `12` to an empty string.
/// Returns `00`, `000` and `0000` unchanged, because they mean castling or the null move.
fn without_move_number(word: &str) -> &str {
    if word.bytes().all(|byte| byte == b'0') {
        return word;
    }
    let rest = word.trim_start_matches(|c: char| c.is_ascii_digit());
    if rest.is_empty() || rest.starts_with('.') {
        rest.trim_start_matches('.')
    } else {
        word
    }
}

/// The numbers of fields that a written position can have, in the order in which the parser tries them. A FEN has 6
/// fields and an EPD has 4. Either can have one more: the checks given in three-check.
const FIELD_COUNTS: [usize; 4] = [7, 6, 5, 4];

/// The maximum length in bytes of a string that is parsed as a position. It bounds the memory for parsing.
const MAX_POSITION_LENGTH: usize = 1 << 16;

impl Variant {
    /// Parses a position of this variant: a FEN, an EPD with or without operations, or `startpos` for the starting
    /// position. The EPD operations `hmvc` and `fmvn` set the half-move clock and the move number. Underscores may
    /// separate the fields instead of spaces.
    ///
    /// Many other spellings are accepted. The side to move may be `W`, `white`, `B` or `black`. A dash may replace a
    /// hyphen. An unknown counter may be `-1`, `-` or `?`. Fields may also be missing: without castling rights, all
    /// kings and rooks on their initial squares may castle, and if the text contains only a board, White is to move.
    ///
    /// # Errors
    ///
    /// Fails for the same reasons as [`parse_fen`](Variant::parse_fen). Also returns [`LineError::Fen`] if the text
    /// after the position consists neither of move counters nor of EPD operations, or if the text is longer than 64
    /// KiB.
    ///
    /// ```
    /// use polybook::position::Variant;
    /// use shakmaty::Position;
    /// let epd = "4k3/8/8/8/8/8/8/4K2R w K - hmvc 7; fmvn 40; c0 \"12 games, White scored 54.2%\";";
    /// let pos = Variant::Standard.parse_position(epd)?;
    /// assert_eq!((pos.halfmoves(), pos.fullmoves().get()), (7, 40));
    /// let board = "4k3/8/8/8/8/8/8/4K2R";
    /// assert_eq!(
    ///     Variant::Standard.parse_position(board)?,
    ///     Variant::Standard.parse_fen(&format!("{board} w K - 0 1"))?,
    /// );
    /// # Ok::<(), polybook::position::LineError>(())
    /// ```
    pub fn parse_position(self, text: &str) -> Result<VariantPosition, LineError> {
        self.game_start(text).map(|(pos, _)| pos)
    }

    /// Parses a position of this variant that is written in any form that
    /// [`parse_position`](Variant::parse_position) accepts, or as moves from the starting position, such as `1. e4 c5`.
    ///
    /// # Errors
    ///
    /// Returns an error if the text is neither a position nor a line of legal moves.
    pub fn position_or_line(self, text: &str) -> Result<VariantPosition, LineError> {
        // A FEN contains seven slashes; moves contain none.
        if text.contains('/') || text.trim().eq_ignore_ascii_case("startpos") {
            self.parse_position(text)
        } else {
            self.from_text(None, Some(text))
        }
    }

    /// Parses the value of a `FEN` tag: the starting position of a game of this variant. Accepts every form that
    /// [`parse_position`](Variant::parse_position) accepts. Returns the position, and `true` if castling rights were
    /// dropped because the king or the rook is not on its square. Many programs write such invalid rights.
    ///
    /// # Errors
    ///
    /// Fails for the same reasons as [`parse_position`](Variant::parse_position).
    ///
    /// ```
    /// use polybook::position::Variant;
    /// let (start, dropped) = Variant::Standard.game_start("4k3/8/8/8/8/8/8/R3K3 w KQ - 0 1")?;
    /// assert!(dropped);
    /// assert_eq!(start, Variant::Standard.parse_fen("4k3/8/8/8/8/8/8/R3K3 w Q - 0 1")?);
    /// # Ok::<(), polybook::position::LineError>(())
    /// ```
    pub fn game_start(self, text: &str) -> Result<(VariantPosition, bool), LineError> {
        let error = |reason: String| LineError::Fen {
            fen: text.chars().take(MAX_POSITION_LENGTH).collect(),
            reason,
        };
        if text.len() > MAX_POSITION_LENGTH {
            return Err(error(
                "the text is too long for a position: remove the text after the position"
                    .to_owned(),
            ));
        }
        // UCI's word for the starting position.
        if text.trim().eq_ignore_ascii_case("startpos") {
            return Ok((self.start(), false));
        }
        let text = with_blanks(text);
        let is_whole = text.split_ascii_whitespace().count() > 2;
        let written = match self.read_start(&text) {
            Ok(start) if is_whole => return Ok(start),
            Err(err @ LineError::OtherVariant { .. }) if is_whole => return Err(err),
            written => written,
        };
        // shakmaty also parses a board without castling rights, but then assumes that there are none.
        match standard_spelling(&text).map(|text| self.read_start(&text)) {
            Some(start @ (Ok(_) | Err(LineError::OtherVariant { .. }))) => start,
            Some(Err(err)) => Err(written.err().unwrap_or(err)),
            None => written,
        }
    }

    /// Parses a FEN or an EPD of this variant whose fields are spelled as the PGN standard requires. A semicolon may
    /// follow a FEN. Returns the position, and `true` if castling rights were dropped because the king or the rook is
    /// not on its square.
    fn read_start(self, text: &str) -> Result<(VariantPosition, bool), LineError> {
        // Nearly every text is a FEN, or an EPD without operations.
        let problem = match self.read_fen(text) {
            Err(err @ LineError::Fen { .. }) => err,
            start => return start,
        };
        // `0 1;`: a FEN that ends as an EPD does. `0 1 ;D1 20 ;D2 400`: the opcodes of a perft suite, which each follow
        // a semicolon.
        if let Some((fen, operations)) = text.split_once(';')
            && operations.split(';').all(|operation| {
                let first = operation.trim_ascii_start().bytes().next();
                first.is_none_or(|byte| byte.is_ascii_alphabetic())
            })
            && fen.split_ascii_whitespace().count() >= 4
            && let start @ (Ok(_) | Err(LineError::OtherVariant { .. })) = self.read_fen(fen)
        {
            return start;
        }
        let fields: Vec<&str> = text.split_ascii_whitespace().collect();
        for count in FIELD_COUNTS
            .into_iter()
            .filter(|count| *count < fields.len())
        {
            let (position, operations) = fields.split_at(count);
            let position = position.join(" ");
            let start = match self.read_fen(&position) {
                Ok(start) => start,
                Err(LineError::Fen { .. }) => continue,
                Err(err) => return Err(err),
            };
            let operations = operations.join(" ");
            if !are_operations(&operations) {
                let quoted = truncated(&operations);
                let reason = if are_operations(&format!("{operations};")) {
                    format!(
                        "the text \"{quoted}\" follows the position: remove this text, or add a semicolon after \
                         the position if this is an EPD operation"
                    )
                } else {
                    format!("the text \"{quoted}\" follows the position: remove this text")
                };
                let fen = text.to_owned();
                return Err(LineError::Fen { fen, reason });
            }
            let counted = counters(&operations)
                .and_then(|counters| self.read_fen(&format!("{position} {counters}")).ok());
            return Ok(counted.unwrap_or(start));
        }
        // An operation is never a field of a FEN, so what is before the first one is a whole position.
        let is_word = |field: &&str| field.starts_with(|c: char| c.is_ascii_alphabetic());
        let before = FIELD_COUNTS
            .into_iter()
            .rev()
            .find(|count| fields.get(*count).is_some_and(is_word));
        let illegal = before.and_then(|count| self.read_fen(&fields[..count].join(" ")).err());
        Err(illegal.unwrap_or(problem))
    }

    /// Parses a FEN, or an EPD without operations, of this variant. The fields must be spelled as the PGN standard
    /// requires. [`parse_position`](Variant::parse_position) also accepts other spellings.
    ///
    /// In Chess960, the castling rights may be written as `KQkq`, for the outermost rooks (X-FEN), or as the files of
    /// the rooks (Shredder-FEN). Castling rights are ignored if the king or the rook is not on its square.
    ///
    /// # Errors
    ///
    /// Returns [`LineError::Fen`] if the FEN is malformed or its position is illegal. Returns
    /// [`LineError::OtherVariant`] if the FEN belongs to another variant.
    pub fn parse_fen(self, text: &str) -> Result<VariantPosition, LineError> {
        let missing = match text.split_ascii_whitespace().count() {
            1 => {
                "the side to move and the castling rights are missing: add w or b, and KQkq or -, after the board"
            }
            2 => "the castling rights are missing: add KQkq or - after the side to move",
            _ => "",
        };
        if !missing.is_empty() {
            return Err(LineError::Fen {
                fen: text.to_owned(),
                reason: missing.to_owned(),
            });
        }
        let (pos, _) = self.read_fen(text)?;
        Ok(pos)
    }

    /// Parses a FEN, or an EPD without operations, of this variant. Returns the position, and `true` if castling rights
    /// were dropped because the king or the rook is not on its square. If the text contains no castling rights, the
    /// position has none.
    fn read_fen(self, text: &str) -> Result<(VariantPosition, bool), LineError> {
        let error = |reason: String| LineError::Fen {
            fen: text.to_owned(),
            reason,
        };
        // The value of a tag may extend over several lines.
        let line = text.split_ascii_whitespace().collect::<Vec<_>>().join(" ");
        let fen: Fen = line
            .parse()
            .map_err(|err| error(problem_of_fen(&line, err)))?;
        let setup = Setup::from(fen);
        let mode = match self {
            Variant::Standard => CastlingMode::Standard,
            Variant::Chess960 => CastlingMode::Chess960,
            _ => CastlingMode::detect(&setup),
        };
        let is_of_other = [
            (setup.pockets.is_some(), Variant::Crazyhouse),
            (setup.remaining_checks.is_some(), Variant::ThreeCheck),
            (
                self == Variant::Standard && is_chess960(&setup, &line),
                Variant::Chess960,
            ),
        ];
        if let Some((_, variant)) = is_of_other
            .into_iter()
            .find(|(is, other)| *is && self != *other)
        {
            return Err(LineError::OtherVariant {
                fen: text.to_owned(),
                variant,
            });
        }
        // Many programs write an en passant square that no pawn can capture on, and composed positions may contain any
        // number of queens.
        let pos = VariantPosition::from_setup(self.game(), setup, mode)
            .or_else(PositionError::ignore_invalid_ep_square)
            .or_else(PositionError::ignore_too_much_material);
        match pos {
            Ok(pos) => Ok((pos, false)),
            Err(err) => {
                // Suicide chess has no castling, so no warning is needed.
                let is_news = self.game() != Game::Antichess;
                err.ignore_invalid_castling_rights()
                    .map(|pos| (pos, is_news))
                    .map_err(|err| error(format!("{err}")))
            }
        }
    }

    /// Plays the moves of `line` from the position `fen`, which is a FEN or an EPD, and returns the resulting
    /// position.
    ///
    /// If `fen` is `None`, the line starts from the starting position of the variant. If `line` is `None`, no moves
    /// are played. `line` may contain move numbers, and annotations such as `!?`.
    ///
    /// # Errors
    ///
    /// Returns a [`LineError`] if `fen` cannot be parsed, or if a move is not legal. The error quotes the FEN or the
    /// move.
    ///
    /// ```
    /// use polybook::position::Variant;
    /// let pos = Variant::Crazyhouse.from_text(None, Some("e4 d5 exd5 Qxd5 Nc3 P@d4"))?;
    /// assert!(shakmaty::Position::pockets(&pos).is_some());
    /// # Ok::<(), polybook::position::LineError>(())
    /// ```
    pub fn from_text(
        self,
        fen: Option<&str>,
        line: Option<&str>,
    ) -> Result<VariantPosition, LineError> {
        let start = fen.map_or_else(|| Ok(self.start()), |fen| self.parse_position(fen))?;
        play_line(start, line.unwrap_or_default())
    }
}

/// Describes why shakmaty cannot parse `fen`. `err` is the error that shakmaty returned.
fn problem_of_fen(fen: &str, err: ParseFenError) -> String {
    let problem = match err {
        ParseFenError::InvalidFen | ParseFenError::InvalidBoard => return problem_of_board(fen),
        ParseFenError::InvalidPocket => PROBLEM_OF_POCKET,
        ParseFenError::InvalidTurn => "the side to move must be w or b",
        ParseFenError::InvalidCastling => "the castling rights must be letters such as KQkq, or -",
        ParseFenError::InvalidEpSquare => "the en passant square must be a square such as e3, or -",
        ParseFenError::InvalidRemainingChecks => {
            "the checks must be two numbers, as in 3+3 (left) or +0+0 (given)"
        }
        ParseFenError::InvalidHalfmoveClock => {
            "the fifth field, which counts half-moves, must be a number"
        }
        ParseFenError::InvalidFullmoves => "the sixth field, the move number, must be a number",
    };
    problem.to_owned()
}

/// Describes what is wrong with the board in the first field of `fen`. The errors of shakmaty do not say this.
fn problem_of_board(fen: &str) -> String {
    let field = fen.split(' ').next().unwrap_or_default();
    let board = field.split('[').next().unwrap_or_default();
    let ranks: Vec<&str> = board.split('/').collect();
    if ranks.len() == 1 {
        return format!("this is not a FEN, which looks like {EXAMPLE_FEN}");
    }
    for (number, rank) in (1..=8).rev().zip(&ranks) {
        let mut squares = 0;
        for c in rank.chars().filter(|c| *c != '~') {
            squares += match c {
                '1'..='8' => c.to_digit(10).unwrap_or_default(),
                _ if Piece::from_char(c).is_some() => 1,
                _ => {
                    return format!(
                        "the board contains \"{c}\", which is neither a piece nor a number from 1 to 8"
                    );
                }
            };
        }
        if squares != 8 && ranks.len() >= 8 {
            return format!("rank {number} of the board has {squares} squares instead of 8");
        }
    }
    match ranks.len() {
        8 if field != board => PROBLEM_OF_POCKET.to_owned(),
        8 if board.contains('~') => {
            "the mark ~ of a promoted piece must follow the letter of the piece".to_owned()
        }
        8 => "the FEN has too many fields".to_owned(),
        ranks => format!("the board has {ranks} ranks instead of 8"),
    }
}

const PROBLEM_OF_POCKET: &str =
    "the pieces in hand must be letters in brackets after the board, as in [Qp]";

/// The FEN that error messages give as an example: the position after 1. e4.
const EXAMPLE_FEN: &str = "rnbqkbnr/pppppppp/8/8/4P3/8/PPPP1PPP/RNBQKBNR b KQkq - 0 1";

/// Replaces Unicode spaces, such as no-break spaces, with ASCII spaces. If the text contains no spaces, also replaces
/// underscores, because FENs in URLs contain underscores instead of spaces.
fn with_blanks(text: &str) -> Cow<'_, str> {
    let is_odd =
        |c: char| !c.is_ascii() && (c.is_whitespace() || matches!(c, '\u{200b}' | '\u{feff}'));
    let text = if text.contains(is_odd) {
        Cow::from(text.replace(is_odd, " "))
    } else {
        text.into()
    };
    if text.contains('_')
        && !text
            .trim_ascii()
            .contains(|c: char| c.is_ascii_whitespace())
    {
        text.replace('_', " ").into()
    } else {
        text
    }
}

/// Converts `text`, a position in any spelling that [`Variant::parse_position`] accepts, to a FEN as the PGN standard
/// prescribes. Returns `None` if the first field is not a valid board, or if the second field is not a side to move.
fn standard_spelling(text: &str) -> Option<String> {
    let mut fields = text.split_ascii_whitespace().peekable();
    let board = fields.next()?;
    let turn = match fields.next().map(str::to_ascii_lowercase).as_deref() {
        None | Some("w" | "white") => "w",
        Some("b" | "black") => "b",
        Some(_) => return None,
    };
    let is_rights = |field: &str| {
        is_dash(field)
            || field
                .bytes()
                .all(|right| b"KQkqABCDEFGHabcdefgh".contains(&right))
    };
    // `ce 35;` is an evaluation, but `ce` could also be the files of two rooks.
    let mut after = fields.clone();
    let is_evaluation =
        after.next() == Some("ce") && after.next().is_some_and(|score| score.ends_with(';'));
    let rights = match fields.next_if(|field| is_rights(field) && !is_evaluation) {
        Some(rights) if !is_dash(rights) => rights.to_owned(),
        Some(_) => "-".to_owned(),
        None => usual_rights(board)?,
    };
    let is_square = |field: &str| field.to_ascii_lowercase().parse::<Square>().is_ok();
    let en_passant = match fields.next_if(|field| is_dash(field) || is_square(field)) {
        Some(square) if is_square(square) => square.to_ascii_lowercase(),
        _ => "-".to_owned(),
    };
    let mut text = format!("{board} {turn} {rights} {en_passant}");
    // Unknown counters are replaced with their values in the starting position.
    let mut counters = ["0", "1"].into_iter();
    let mut are_counters = true;
    for field in fields {
        let is_unknown = is_dash(field) || field == "?" || field.parse().is_ok_and(|n: i64| n < 0);
        let is_checks = field.contains('+');
        are_counters &= is_unknown || is_checks || field.parse::<u32>().is_ok();
        let usual = if are_counters && !is_checks {
            counters.next()
        } else {
            None
        };
        text.push(' ');
        text.push_str(usual.filter(|_| is_unknown).unwrap_or(field));
    }
    Some(text)
}

/// Returns `true` if a field of a FEN consists of a hyphen, or of a dash in its place. The dash may be encoded in
/// Unicode or Windows-1252.
fn is_dash(field: &str) -> bool {
    matches!(
        field,
        "-" | "\u{96}"
            | "\u{97}"
            | "\u{2010}"
            | "\u{2011}"
            | "\u{2012}"
            | "\u{2013}"
            | "\u{2014}"
            | "\u{2212}"
    )
}

/// Returns the castling rights field of a FEN in which all kings and rooks on their initial squares may castle. `board`
/// is the first field of a FEN. Returns `None` if `board` is malformed.
fn usual_rights(board: &str) -> Option<String> {
    let placed = board.parse::<Fen>().ok()?.into_setup().board;
    let has = |square, role: Role, color| placed.piece_at(square) == Some(role.of(color));
    let mut rights: String = [
        (Color::White, Square::E1, Square::H1, 'K'),
        (Color::White, Square::E1, Square::A1, 'Q'),
        (Color::Black, Square::E8, Square::H8, 'k'),
        (Color::Black, Square::E8, Square::A8, 'q'),
    ]
    .into_iter()
    .filter(|(color, king, rook, _)| {
        has(*king, Role::King, *color) && has(*rook, Role::Rook, *color)
    })
    .map(|(.., right)| right)
    .collect();
    if rights.is_empty() {
        rights.push('-');
    }
    Some(rights)
}

/// Returns `true` if `text`, which follows the fields of a written position, is empty or may consist of EPD operations.
/// Returns `false` if it is certainly something else, such as moves or the rest of a FEN.
fn are_operations(text: &str) -> bool {
    text.is_empty() || (text.starts_with(|c: char| c.is_ascii_alphabetic()) && text.ends_with(';'))
}

/// Converts the EPD operations `hmvc` and `fmvn` in `operations` to the last two fields of a FEN: the half-move clock
/// and the move number. If one operation is missing, uses the value of the starting position instead. Returns `None` if
/// both are missing.
fn counters(operations: &str) -> Option<String> {
    let operand = |opcode| operand(operations, opcode)?.parse::<u32>().ok();
    let (halfmoves, fullmoves) = (operand("hmvc"), operand("fmvn"));
    halfmoves.or(fullmoves)?;
    Some(format!(
        "{} {}",
        halfmoves.unwrap_or(0),
        fullmoves.unwrap_or(1)
    ))
}

/// Returns `true` if the castling rights in `fen` are possible in Chess960 but not in standard chess. `setup` is the
/// parsed `fen`. The function recognizes three cases: the king is not on the e-file, the rights are written as the
/// files of rooks, or the position is a starting position of Chess960.
fn is_chess960(setup: &Setup, fen: &str) -> bool {
    let rights = fen.split(' ').nth(2).unwrap_or_default();
    let names_files = rights
        .bytes()
        .any(|right| matches!(right, b'A'..=b'H' | b'a'..=b'h'));
    let king_elsewhere = |color: Color| {
        let rank = color.backrank();
        let king = setup.board.king_of(color);
        (setup.castling_rights & rank).any()
            && king.is_some_and(|king| king.rank() == rank && king.file() != File::E)
    };
    let is_wrong_in = |mode| {
        VariantPosition::from_setup(Game::Chess, setup.clone(), mode).is_err_and(|err| {
            err.kinds()
                .contains(PositionErrorKinds::INVALID_CASTLING_RIGHTS)
        })
    };
    // In 204 of the starting positions of Chess960, the king is on the e-file.
    let is_start = || {
        let ranks: Vec<&str> = fen.split(['/', ' ']).take(8).collect();
        setup.castling_rights.count() == 4
            && matches!(
                ranks[..],
                [black, "pppppppp", "8", "8", "8", "8", "PPPPPPPP", white]
                    if white.len() == 8
                        && white.bytes().all(|piece| piece.is_ascii_uppercase())
                        && black.eq_ignore_ascii_case(white)
            )
    };
    (names_files || Color::ALL.into_iter().any(king_elsewhere) || is_start())
        && is_wrong_in(CastlingMode::Standard)
        && !is_wrong_in(CastlingMode::Chess960)
}

#[cfg(test)]
mod tests {
    use shakmaty::Position;

    use super::*;
    use crate::chess::position::key;

    #[test]
    fn a_long_fen_is_cut_in_its_error() {
        let error = from_text(Some(&"x".repeat(9999)), None).unwrap_err();
        assert!(error.to_string().len() < 300, "{error}");
    }

    #[test]
    fn advice_about_missing_and_superfluous_fields_works() {
        let board = "8/8/8/8/8/4k3/8/4K3";
        for (length, advice) in [
            (9999, "remove this text"),
            (MAX_POSITION_LENGTH, "remove the text after the position"),
        ] {
            let long = format!("{board} w - - 0 1 {}", "x".repeat(length));
            let error = Variant::Standard.game_start(&long).unwrap_err().to_string();
            assert!(error.contains(advice) && error.len() < 600, "{error}");
        }
        for (missing, advice) in [
            ("", "add w or b, and KQkq or -, after the board"),
            (" w", "add KQkq or - after the side to move"),
        ] {
            let error = Variant::Standard.parse_fen(&format!("{board}{missing}"));
            let error = error.unwrap_err().to_string();
            assert!(error.ends_with(advice), "{error}");
        }
        for complete in [" w -", " b - - 0 1"] {
            let fen = format!("{board}{complete}");
            assert!(Variant::Standard.parse_fen(&fen).is_ok(), "{fen}");
        }
    }

    #[test]
    fn a_board_with_eight_ranks_has_another_problem() {
        let ranks = "4k3/8/8/8/8/8/8/4K2R";
        for (rest, problem) in [
            ("[Q w - - 0 1", PROBLEM_OF_POCKET),
            ("[ w - - 0 1", PROBLEM_OF_POCKET),
            ("[Q]x w - - 0 1", PROBLEM_OF_POCKET),
            ("[Q!] w - - 0 1", PROBLEM_OF_POCKET),
            (
                "~~ w - - 0 1",
                "the mark ~ of a promoted piece must follow the letter of the piece",
            ),
            (" w - - 0 1 2 3 4", "the FEN has too many fields"),
        ] {
            let error = Variant::Crazyhouse.parse_fen(&format!("{ranks}{rest}"));
            let error = error.unwrap_err().to_string();
            assert!(error.ends_with(problem), "{rest}: {error}");
        }
    }

    #[test]
    fn san_uci_and_numbers_mix() {
        let expected = key(&from_text(None, Some("e4 c5 Nf3")).unwrap());
        for line in [
            "1. e4 c5 2. Nf3",
            "1.e4 c5 2.Nf3!?",
            "e2e4 c7c5 g1f3",
            "1 e4, c5 2 Nf3",
        ] {
            assert_eq!(
                key(&from_text(None, Some(line)).unwrap()),
                expected,
                "{line}"
            );
        }
    }

    #[test]
    fn castling_with_zeros_is_not_a_move_number() {
        let castled = key(&from_text(None, Some("e4 e5 Nf3 Nf6 Bc4 Bc5 O-O")).unwrap());
        for castling in ["0-0", "00", "4.00"] {
            let line = format!("e4 e5 Nf3 Nf6 Bc4 Bc5 {castling}");
            assert_eq!(
                key(&from_text(None, Some(&line)).unwrap()),
                castled,
                "{line}"
            );
        }
    }

    #[test]
    fn errors_say_where() {
        let err = from_text(None, Some("1. e4 e5 2. Ke3"))
            .unwrap_err()
            .to_string();
        assert!(
            err.contains("move 3") && err.contains("Ke3") && err.contains("illegal"),
            "{err}"
        );
        let err = from_text(Some("8/8/8"), None).unwrap_err().to_string();
        assert!(err.contains("8/8/8"), "{err}");
    }

    #[track_caller]
    fn check(variant: Variant, line: &str, halfmoves: u32, fullmoves: u32) {
        let pos = variant.parse_position(line).unwrap();
        let found = (pos.halfmoves(), pos.fullmoves().get());
        assert_eq!(found, (halfmoves, fullmoves), "{line}");
    }

    #[test]
    fn counters_of_moves_are_read() {
        let with = |operations: &str| format!("4k3/8/8/8/8/8/8/4K2R w K - {operations}");
        for (operations, halfmoves, fullmoves) in [
            ("", 0, 1),
            ("7 40", 7, 40),
            ("hmvc 7; fmvn 40;", 7, 40),
            ("fmvn 40; id \"hmvc 3; fmvn 4;\"; hmvc 7;", 7, 40),
            ("bm O-O; hmvc 7;", 7, 1),
            ("c0 \"12 games\"; fmvn x;", 0, 1),
        ] {
            check(Variant::Standard, &with(operations), halfmoves, fullmoves);
        }
        for operations in ["3+2 7 40", "3+2 hmvc 7; fmvn 40;"] {
            check(Variant::ThreeCheck, &with(operations), 7, 40);
        }
    }

    #[test]
    fn fields_may_be_separated_by_any_blanks() {
        let fen = "4k3/8/8/8/8/8/8/4K2R w K - 3 9";
        let expected = Variant::Standard.parse_fen(fen).unwrap();
        for blank in [
            "_",
            "  ",
            "\t",
            "\u{a0}",
            "\u{2009}",
            "\u{3000}",
            "\u{200b} ",
        ] {
            let text = format!("\u{feff}{}\u{a0}", fen.replace(' ', blank));
            assert_eq!(
                Variant::Standard.parse_position(&text).unwrap(),
                expected,
                "{text:?}"
            );
            let (start, _) = Variant::Standard.game_start(&text).unwrap();
            assert_eq!(start, expected);
        }
        // `ce` could be the files of two rooks.
        let evaluated = "r3k2r/8/8/8/8/8/8/R3K2R b ce 35;";
        let pos = Variant::Standard.parse_position(evaluated).unwrap();
        assert_eq!(pos.castles().castling_rights().count(), 4);
    }

    #[test]
    fn nothing_else_may_follow_a_position() {
        let fen = "4k3/8/8/8/8/8/8/4K2R w K -";
        for rest in ["e4", "0 1 e4 e5", "0 1 moves e2e4", "hmvc 7", "7 40 x 3"] {
            let read = Variant::Standard.parse_position(&format!("{fen} {rest}"));
            assert!(read.is_err(), "{rest}");
        }
    }

    #[test]
    fn impossible_castling_rights_are_dropped() {
        let board = "r3k3/8/8/8/8/8/8/1R2K2R w";
        for (rights, left, dropped) in [
            ("Kq", "Kq", false),
            ("KQkq", "Kq", true),
            ("Qk", "-", true),
            ("K", "K", false),
        ] {
            let fen = format!("{board} {rights} - 0 1");
            let (pos, was_dropped) = Variant::Standard.game_start(&fen).unwrap();
            let expected = Variant::Standard.parse_fen(&format!("{board} {left} - 0 1"));
            let expected = expected.unwrap();
            assert_eq!(Variant::Standard.parse_fen(&fen).unwrap(), expected);
            assert_eq!((pos, was_dropped), (expected, dropped), "{rights}");
        }
        // The king has moved, so all castling rights are dropped.
        let (pos, dropped) = Variant::Standard
            .game_start("4k3/8/8/8/8/8/4K3/R6R w KQ - 0 1")
            .unwrap();
        assert!(dropped && pos.castles().is_empty());
        let broken = "r3k3/8/8/8/8/8/8/1R2K2R\r\nw Kq\n- 0 1";
        assert!(Variant::Standard.parse_fen(broken).is_ok());
    }

    #[test]
    fn a_fen_of_another_variant_is_not_read() {
        let board = "rnb1kbnr/ppp1pppp/8/3q4/8/8/PPPP1PPP/RNBQKBNR";
        for (fen, expected) in [
            (format!("{board}[Pp] w KQkq - 0 3"), Variant::Crazyhouse),
            (format!("{board}[] w KQkq -"), Variant::Crazyhouse),
            (format!("{board}/Pp w KQkq - 0 3"), Variant::Crazyhouse),
            (format!("{board}[Qn]"), Variant::Crazyhouse),
            (
                format!("{board}[Qn] W KQkq \u{2013} -1 -1"),
                Variant::Crazyhouse,
            ),
            (format!("{board} w KQkq - 3+3 0 3"), Variant::ThreeCheck),
            (format!("{board} w KQkq - 0 3 +0+0"), Variant::ThreeCheck),
            (format!("{board} w KQkq - 2+1"), Variant::ThreeCheck),
            (
                format!("{board} white KQkq - 0 3 +1+0;"),
                Variant::ThreeCheck,
            ),
        ] {
            for variant in Variant::ALL {
                let pos = variant.parse_position(&fen);
                if variant == expected {
                    let pos = pos.unwrap();
                    assert!(pos.pockets().is_some() || pos.remaining_checks().is_some());
                    continue;
                }
                let err = pos.unwrap_err();
                assert!(
                    matches!(err, LineError::OtherVariant { variant, .. } if variant == expected),
                    "{fen}: {err}"
                );
                assert!(
                    err.to_string()
                        .contains(&format!("give the variant {expected}")),
                    "{err}"
                );
            }
        }
    }

    #[test]
    fn both_spellings_of_castling_rights() {
        let x = "bqnb1rkr/pp3ppp/3ppn2/2p5/5P2/P2P4/NPP1P1PP/BQ1BNRKR w HFhf - 2 9";
        let shredder = x.replace("HFhf", "KQkq");
        let variant = Variant::Chess960;
        assert_eq!(
            variant.parse_fen(x).unwrap(),
            variant.parse_fen(&shredder).unwrap()
        );
        for fen in [x, &shredder] {
            let err = Variant::Standard.game_start(fen).unwrap_err();
            assert!(
                matches!(
                    err,
                    LineError::OtherVariant {
                        variant: Variant::Chess960,
                        ..
                    }
                ),
                "{err}"
            );
        }
    }
}
