//! Writes trees as indented text, as JSON lines, and as PGN with variations. Also contains [`GameWriter`], which
//! writes PGN games.

use std::{
    io::{self, Write},
    path::Path,
};

use serde::Serialize;
use shakmaty::{Move, Position, san::SanPlus, variant::VariantPosition};

use crate::{
    counts::Wdl,
    error::{At, Result},
    evals::Eval,
    json,
    position::{Keyed, move_number, san, uci},
    storage::output::UNSEALED,
    walk::{Branch, Order, Source, Tree, TreeEvent},
};

/// Appends the move `mv`, which is played in the position `pos`, to movetext such as `1. e4 c5 2. Nf3`. Writes a move
/// number before each move of White, and before the first move of the text.
pub(crate) fn push_move(text: &mut String, pos: &VariantPosition, mv: Move) {
    if !text.is_empty() {
        text.push(' ');
    }
    if text.is_empty() || pos.turn().is_white() {
        *text += &move_number(pos);
        text.push(' ');
    }
    *text += &san(pos, mv).to_string();
}

impl<S: Source> Tree<'_, S> {
    /// Writes the tree to `out` as text with one move per line, and returns the number of moves. `path` is the path of
    /// the output, which error messages name.
    ///
    /// A line is indented by two spaces for each half-move before it. It contains the move, its evaluation if known,
    /// its weight or results, and its percentage of the position's total weight. The word `transposition` after a move
    /// means that another move leads to the same position, and that the continuation is written only after that other
    /// move.
    ///
    /// # Errors
    ///
    /// Returns an error if the source fails, or if the output cannot be written.
    pub fn write_text(&self, out: &mut impl Write, path: &Path) -> Result<u64> {
        let mut moves = 0;
        self.walk(Order::Lines, &mut |event| {
            let TreeEvent::Move(branch) = event else {
                return Ok(());
            };
            moves += 1;
            writeln!(out, "{}", line(&branch)).at(path, "write")
        })?;
        Ok(moves)
    }
}

/// Formats a move as a line of the text output, indented by its depth in the tree. The line contains the move, its
/// evaluation, its weight or results, and the word `transposition` if its continuation is written only after another
/// move that leads to the same position.
fn line(branch: &Branch<'_>) -> String {
    let pos = branch.pos.position();
    let number = move_number(pos);
    let san = san(pos, branch.mv.mv);
    let mark = match branch.is_transposition {
        true => "  transposition",
        false => "",
    };
    let indent = 2 * branch.ply;
    let eval = branch.mv.eval.map(|eval| format!("  {}", eval.score));
    let (remark, eval) = (remark(branch), eval.unwrap_or_default());
    format!("{:indent$}{number} {san}{eval}  {remark}{mark}", "")
}

/// Formats the weight or the results of a move, and its percentage of the position's total weight. With a weight, the
/// text is for example `weight 12, 8.5%`. With results, it is `+8 =20 -14, 30.0%`, which are the wins, draws and losses
/// of the side to move. If there are unfinished games, their number follows an asterisk, as in `+8 =20 -14 *3, 32.1%`.
/// Returns `any reply` for a move that the source of moves does not contain.
pub(super) fn remark(branch: &Branch<'_>) -> String {
    let mv = branch.mv;
    let share = format!("{:.1}%", branch.share);
    match mv.stats {
        _ if !mv.is_in_source => "any reply".to_owned(),
        Some(stats) => {
            let unfinished = match mv.unfinished {
                0 => String::new(),
                games => format!(" *{games}"),
            };
            format!(
                "+{} ={} -{}{unfinished}, {share}",
                stats.wins, stats.draws, stats.losses
            )
        }
        None => format!("weight {}, {share}", mv.weight),
    }
}

/// A line of the output of `tree --json`. It is a JSON document that contains a position of the tree and its moves.
#[derive(Serialize)]
struct TextLine {
    key: String,
    fen: String,
    /// The number of half-moves from the starting position.
    ply: usize,
    moves: Vec<TextMove>,
}

#[derive(Serialize)]
struct TextMove {
    uci: String,
    san: String,
    weight: u64,
    /// The weight of the move as a percentage of the total weight of the position.
    probability: f64,
    #[serde(flatten)]
    stats: Option<Wdl>,
    /// The number of games without a result.
    #[serde(skip_serializing_if = "Option::is_none")]
    unfinished: Option<u64>,
    /// Whether the source contains the move; see [`TreeMove::is_in_source`](crate::walk::TreeMove::is_in_source).
    known: bool,
    /// Whether the tree continues from the position after the move only after another move that leads to it.
    transposition: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    eval: Option<Eval>,
}

impl TextLine {
    fn new(pos: &Keyed<VariantPosition>, ply: usize) -> TextLine {
        let fen = crate::position::fen_of(pos.position());
        TextLine {
            key: format!("{:016x}", pos.key()),
            fen: fen.to_string(),
            ply,
            moves: Vec::new(),
        }
    }

    fn write(&self, out: &mut impl Write) -> io::Result<()> {
        let mut text = json::to_vec(self)?;
        text.push(b'\n');
        out.write_all(&text)
    }
}

impl TextMove {
    fn new(branch: &Branch<'_>) -> TextMove {
        let pos = branch.pos.position();
        TextMove {
            uci: uci(pos, branch.mv.mv),
            san: san(pos, branch.mv.mv).to_string(),
            weight: branch.mv.weight,
            probability: branch.share,
            stats: branch.mv.stats,
            unfinished: Some(branch.mv.unfinished).filter(|games| *games > 0),
            known: branch.mv.is_in_source,
            transposition: branch.is_transposition,
            eval: branch.mv.eval,
        }
    }
}

impl<S: Source> Tree<'_, S> {
    /// Writes the tree to `out` as JSON lines, one for each position that has moves. Returns the number of moves.
    /// `path` is the path of the output, which error messages name.
    ///
    /// # Errors
    ///
    /// Returns an error if the source fails, or if the output cannot be written.
    pub fn write_jsonl(&self, out: &mut impl Write, path: &Path) -> Result<u64> {
        let mut moves = 0;
        let mut line: Option<TextLine> = None;
        self.walk(Order::Positions, &mut |event| {
            match event {
                TreeEvent::Position { pos, ply } => {
                    if let Some(line) = line.replace(TextLine::new(pos, ply)) {
                        line.write(out).at(path, "write")?;
                    }
                }
                TreeEvent::Move(branch) => {
                    moves += 1;
                    if let Some(line) = &mut line {
                        line.moves.push(TextMove::new(&branch));
                    }
                }
                TreeEvent::Game(_) | TreeEvent::Open | TreeEvent::Close => {}
            }
            Ok(())
        })?;
        if let Some(line) = line {
            line.write(out).at(path, "write")?;
        }
        Ok(moves)
    }
}

/// The maximum nesting depth of variations in a game, because PGN readers limit the depth. Deeper variations are
/// written as separate games.
const MAX_NESTING: usize = 16;

/// The maximum number of moves in a game. After this number of moves, the writer continues the tree in another game.
/// The reason is that Scid limits a game to about 128 KiB, and a move with a comment takes about 25 bytes there.
const MAX_MOVES_PER_GAME: u64 = 2000;

/// The value of the `Event` tag in each game that is written for a tree.
const EVENT: &str = "Opening tree";

impl<S: Source> Tree<'_, S> {
    /// Writes the tree to `out` as PGN games with variations, and returns the number of moves. `path` is the path of
    /// the output, which error messages name.
    ///
    /// After each move, a comment contains its weight or results, its percentage of the total weight, and its
    /// evaluation if known. The word `transposition` in the comment means that another move leads to the same position,
    /// and that the continuation is written only after that other move.
    ///
    /// A game contains at most 2000 moves, and its variations are nested at most 16 deep. The rest of the tree follows
    /// in further games. Each of these begins with the moves that lead to its first new move. The returned number does
    /// not include these repeated moves.
    ///
    /// # Errors
    ///
    /// Returns an error if the source fails, or if the output cannot be written.
    pub fn write_pgn(&self, out: &mut impl Write, path: &Path) -> Result<u64> {
        self.write_commented_pgn(out, path, EVENT, &mut |_| None, false)
    }

    /// Writes the tree as PGN, like [`write_pgn`](Tree::write_pgn), but with an additional tag in the first game. The
    /// tag contains a placeholder for a checksum of the file. The caller must replace the placeholder when the file is
    /// complete.
    ///
    /// # Errors
    ///
    /// Fails for the same reasons as [`write_pgn`](Tree::write_pgn).
    pub fn write_sealed_pgn(&self, out: &mut impl Write, path: &Path) -> Result<u64> {
        self.write_commented_pgn(out, path, EVENT, &mut |_| None, true)
    }

    /// Writes the tree to `out` as PGN, like [`write_pgn`](Tree::write_pgn), but with comments that the caller chooses,
    /// and returns the number of moves. `path` is the path of the output, which error messages name. `event` is the
    /// value of the `Event` tag.
    ///
    /// `comment` returns the text of the comment after a move, to which the evaluation of the move is added if known. If
    /// it returns `None`, the comment is that of [`write_pgn`](Tree::write_pgn). `comment` is called with the moves in
    /// the order in which they are written. If `is_sealed` is `true`, the first game gets a tag with a placeholder for a
    /// checksum of the file.
    pub(crate) fn write_commented_pgn(
        &self,
        out: &mut impl Write,
        path: &Path,
        event: &str,
        comment: &mut dyn FnMut(&Branch<'_>) -> Option<String>,
        is_sealed: bool,
    ) -> Result<u64> {
        let mut games = GameWriter::new(out);
        let (mut moves, mut rounds) = (0, 0);
        let order = Order::Variations {
            deepest: MAX_NESTING,
            longest: MAX_MOVES_PER_GAME,
        };
        self.walk(order, &mut |step| {
            let written = match step {
                TreeEvent::Game(line) => {
                    let ended = if rounds > 0 { games.end() } else { Ok(()) };
                    rounds += 1;
                    let begun = ended.and_then(|()| {
                        let is_sealed = is_sealed && rounds == 1;
                        games.begin(
                            event,
                            rounds,
                            UNKNOWN_PLAYERS,
                            self.start(),
                            None,
                            is_sealed,
                        )
                    });
                    begun.and_then(|()| lead(&mut games, self.start(), line))
                }
                TreeEvent::Move(branch) => {
                    moves += 1;
                    games.words(&text(&branch, comment(&branch)))
                }
                TreeEvent::Open => games.open(),
                TreeEvent::Close => {
                    games.close();
                    Ok(())
                }
                TreeEvent::Position { .. } => Ok(()),
            };
            written.at(path, "write")
        })?;
        games.end().at(path, "write")?;
        Ok(moves)
    }
}

/// Writes the moves of `line` without comments, starting from the position `start`. A game that continues an earlier
/// game begins with these moves, which lead from the start of the tree to the first new move of the game.
fn lead<W: Write>(
    games: &mut GameWriter<W>,
    start: &VariantPosition,
    line: &[Move],
) -> io::Result<()> {
    let mut pos = start.clone();
    for mv in line {
        let number = move_number(&pos);
        let san = SanPlus::from_move_and_play_unchecked(&mut pos, *mv);
        games.words(&format!("{number} {san}"))?;
    }
    Ok(())
}

/// Formats a move as movetext: the move number, the move and a comment. The comment begins with the text `comment`. If
/// this is `None`, it begins with the weight or the results of the move, and the word `transposition` if the move is a
/// transposition. The comment ends with the evaluation of the move if known.
fn text(branch: &Branch<'_>, comment: Option<String>) -> String {
    let pos = branch.pos.position();
    let number = move_number(pos);
    let san = SanPlus::from_move(pos.clone(), branch.mv.mv);
    let comment = comment.unwrap_or_else(|| match branch.is_transposition {
        true => remark(branch) + ", transposition",
        false => remark(branch),
    });
    let eval = branch.mv.eval.map(|eval| {
        let score = eval.score.to_string();
        format!(" [%eval {},{}]", score.trim_start_matches('+'), eval.depth)
    });
    let eval = eval.unwrap_or_default();
    let comment = comment + &eval;
    match comment.trim_start() {
        "" => format!("{number} {san}"),
        comment => format!("{number} {san} {{{comment}}}"),
    }
}

/// The maximum length in bytes of a line of movetext. A line is longer only if it consists of a single longer word.
const MAX_LINE_WIDTH: usize = 80;

/// The values of the tags `White` and `Black` of a game without players.
pub(crate) const UNKNOWN_PLAYERS: [&str; 2] = ["?", "?"];

/// A writer of PGN games. It breaks movetext into lines.
#[derive(Debug)]
pub(crate) struct GameWriter<W> {
    out: W,
    /// The last word, which is not written until it is known whether a bracket follows it.
    word: String,
    /// The width of the current line in bytes, without the last word.
    column: usize,
}

impl<W: Write> GameWriter<W> {
    pub(crate) fn new(out: W) -> GameWriter<W> {
        GameWriter {
            out,
            word: String::new(),
            column: 0,
        }
    }

    /// Begins a game without result, and writes its tags. The game starts from the position `start`. `round` is the
    /// value of the `Round` tag, and `opening` contains the ECO code and the name of the opening. `players` contains the
    /// names of White and Black, or [`UNKNOWN_PLAYERS`].
    ///
    /// If `is_sealed` is `true`, also writes a tag with a placeholder for a checksum of the file. Only the first game
    /// of a file may have this tag.
    pub(crate) fn begin(
        &mut self,
        event: &str,
        round: u64,
        [white, black]: [&str; 2],
        start: &VariantPosition,
        opening: Option<(&str, &str)>,
        is_sealed: bool,
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
            let fen = crate::position::fen_of(start);
            writeln!(self.out, "[SetUp \"1\"]\n[FEN \"{fen}\"]")?;
        }
        if is_sealed {
            writeln!(self.out, "[Checksum \"{UNSEALED}\"]")?;
        }
        self.out.write_all(b"\n")
    }

    /// Splits `text` at spaces, and appends the words to the movetext of the game. The writer may break the line
    /// between two words.
    pub(crate) fn words(&mut self, text: &str) -> io::Result<()> {
        for word in text.split(' ') {
            // An opening bracket is followed directly by the next word.
            if !self.word.ends_with('(') {
                self.flush_word()?;
            }
            self.word.push_str(word);
        }
        Ok(())
    }

    /// Begins a variation: writes an opening parenthesis.
    pub(crate) fn open(&mut self) -> io::Result<()> {
        self.words("(")
    }

    /// Ends a variation: writes a closing parenthesis.
    pub(crate) fn close(&mut self) {
        self.word.push(')');
    }

    /// Ends the current game: writes its result, `*`, and a blank line. The caller must call this function once after
    /// the moves of each game.
    pub(crate) fn end(&mut self) -> io::Result<()> {
        self.words("*")?;
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

    /// Writes the word that is still in the buffer to the output. If it does not fit on the current line, begins a new
    /// line first. The last word stays in the buffer at first, because a closing parenthesis must follow it without a
    /// space.
    fn flush_word(&mut self) -> io::Result<()> {
        if self.word.is_empty() {
            return Ok(());
        }
        if self.column > 0 && self.column + 1 + self.word.len() > MAX_LINE_WIDTH {
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
