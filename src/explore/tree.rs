//! Trees of moves: all positions that can be reached from a position by the moves of a book, a database or an index.
//!
//! A [`MoveSource`] returns the moves of a position. Books, databases and indexes are sources. A [`Tree`] walks from
//! position to position, and continues from each position only once. It is written as PGN with variations, as
//! indented text or as JSON lines during the walk, so it can be larger than memory.
//!
//! ```
//! use polybook::{
//!     MakeBook, book::Book, pgn::Input, position::Variant, progress::Meter,
//!     tree::{Limits, Tree},
//! };
//!
//! # let dir = tempfile::tempdir()?;
//! # let bin = dir.path().join("book.bin");
//! MakeBook::new([Input::file("data/famous.pgn")]).max_ply(2).min_game(6).bin(&bin).run()?;
//! let mut text = Vec::new();
//! let book = Book::open(&bin)?;
//! let meter = Meter::default();
//! Tree::new(&book, Variant::Standard.start(), Limits::default(), &meter).write_text(&mut text, &bin)?;
//! let text = String::from_utf8(text)?;
//! assert!(text.starts_with("1. e4 "), "{text}");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use std::{
    borrow::Cow,
    io::{self, Write},
    path::Path,
    sync::Arc,
};

use serde::{Serialize, Serializer};
use shakmaty::{Color, Move, Position, san::SanPlus, uci::UciMove, variant::VariantPosition};

pub use crate::formats::walk::{
    Branch, EvaluatedSource, Limits, LinesOf, MoveSource, Order, Replies, SourceWrapper, Tree,
    TreeEvent, TreeMove, Union, only_color,
};
use crate::{
    chess::position::{Keyed, Variant, move_number, restored, san, stored, uci},
    error::{Advice, At, Diagnosis, Error, Result},
    explore::explorer::{Explorer, Line, Query, Selection, View},
    formats::{
        book::{Book, each_move_once},
        evals::{EnginePosition, Eval, check_memory},
        fork_index::PositionStats,
        walk::each_position,
    },
    games::{
        pgn::{GameWriter, UNKNOWN_PLAYERS},
        results::Results,
    },
    json,
    progress::Meter,
    storage::sort::{Memory, SpillingSet, TextSorter},
};

/// The file format in which a tree of moves is written.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum TreeFormat {
    /// PGN games whose variations contain the branches of the tree.
    Pgn,
    /// Text with one move per line, indented by its depth.
    Text,
    /// JSON lines, with one document for each position.
    Jsonl,
}

/// Returns the legal moves of the book, including moves of weight 0, sorted by weight in descending order.
impl MoveSource for Book {
    fn moves(&self, pos: &Keyed<VariantPosition>) -> Result<Vec<TreeMove>> {
        let entries = Book::moves(self, pos.key())?;
        let entries = each_move_once(pos.position(), entries).into_iter();
        let legal = entries.filter_map(|entry| {
            let mv = entry.mv.to_move(pos.position())?;
            Some(TreeMove::without_evaluation(mv, entry.weight.into(), None))
        });
        Ok(legal.collect())
    }

    fn position_id(&self, pos: &Keyed<VariantPosition>) -> u64 {
        pos.exact_identity()
    }

    fn lacks(&self, key: u64) -> bool {
        self.certainly_lacks(key)
    }
}

/// Returns the legal moves of the active rows of the database, sorted by number of games in descending order.
#[cfg(feature = "obs")]
impl MoveSource for crate::formats::obs::Obs {
    fn moves(&self, pos: &Keyed<VariantPosition>) -> Result<Vec<TreeMove>> {
        let rows = crate::formats::obs::Obs::moves(self, pos.position())?;
        let active = rows
            .into_iter()
            .filter(crate::formats::obs::ObsRow::is_active);
        let legal = active.filter_map(|row| {
            let mv = crate::formats::obs::legal_move(pos.position(), &row.mv)?
                .to_move(pos.position())?;
            let weight = crate::formats::book::Weights::default().weight(row.stats);
            let results = Results::from_side(pos.position().turn(), row.stats);
            Some(TreeMove::without_evaluation(mv, weight, Some(results)))
        });
        Ok(legal.collect())
    }

    fn refuse_changed(&self) -> Result<()> {
        crate::formats::obs::Obs::refuse_changed(self)
    }
}

/// Returns the moves that were played in the position, sorted by number of games in descending order. The results of a
/// move are those of all games that reached the position after the move, by any order of moves. The index must contain
/// statistics. It must not be an explorer's index, whose moves [`Explored`] returns.
impl MoveSource for crate::formats::index::Index {
    fn moves(&self, pos: &Keyed<VariantPosition>) -> Result<Vec<TreeMove>> {
        if self.kind().is_of_explorer() {
            let problem = "is an explorer's index: open it with Explorer::open, and use tree::Explored as the source of moves";
            return Err(Error::file(self.path(), problem));
        }
        let Some(here) = stats_of(self, pos)? else {
            if self.games_of(pos)?.is_empty() {
                return Ok(Vec::new());
            }
            let again =
                |option| Advice::option("make an index with {}", option).of_command("make-book");
            let problem = Diagnosis::new("this index has no statistics")
                .advise(again("index-stats"))
                .advise(again("explorer"));
            return Err(Error::file(self.path(), problem));
        };
        let mut moves = Vec::new();
        for mv in here.moves {
            // A move that is not legal here belongs to another position with the same key.
            let Some(mv) = mv.to_move(pos.position()) else {
                continue;
            };
            let mut after = pos.clone();
            after.play(mv);
            let there = stats_of(self, &after)?.unwrap_or_default();
            moves.push(TreeMove::without_evaluation(
                mv,
                there.games,
                Some(there.results()),
            ));
        }
        // The sort is stable, so moves with equal games stay sorted by their numbers.
        moves.sort_by_key(|mv| std::cmp::Reverse(mv.weight));
        Ok(moves)
    }
}

/// Returns the statistics of a position in an index, added up over all Polyglot keys under which the index may store
/// the position. Returns `None` if the index contains no statistics of the position.
fn stats_of(
    index: &crate::formats::index::Index,
    pos: &Keyed<VariantPosition>,
) -> Result<Option<PositionStats>> {
    let mut sum: Option<PositionStats> = None;
    for key in pos.equal_keys() {
        let Some(stats) = index.stats(key)? else {
            continue;
        };
        let sum = sum.get_or_insert_default();
        sum.games += stats.games;
        sum.white_score += stats.white_score;
        sum.draws += stats.draws;
        sum.moves.extend(stats.moves);
        sum.moves.sort_unstable();
        sum.moves.dedup();
    }
    Ok(sum)
}

/// A source of moves that returns the moves of the games in an explorer, with the results of these games.
#[derive(Clone, Debug)]
pub struct Explored {
    /// The explorer.
    pub explorer: Arc<Explorer>,
    /// The variant of the games that count.
    pub variant: Variant,
    /// The conditions on the games that count.
    pub selection: Selection,
}

/// Returns the moves that were played in the position, with the results of the games, sorted by number of games in
/// descending order.
impl MoveSource for Explored {
    fn moves(&self, pos: &Keyed<VariantPosition>) -> Result<Vec<TreeMove>> {
        played(
            &self.explorer,
            self.variant,
            pos.position(),
            &self.selection,
        )
    }
}

/// Returns the moves that were played in `pos`, with the results of the games. Only games of `variant` that pass
/// `filters` count. The moves are sorted by number of games in descending order.
pub(crate) fn played(
    explorer: &Explorer,
    variant: Variant,
    pos: &VariantPosition,
    filters: &Selection,
) -> Result<Vec<TreeMove>> {
    let query = Query {
        moves: None,
        top_games: 0,
        filters: filters.clone(),
        ..Query::new(Line::at(variant, pos.clone()), View::Masters)
    };
    let moves = explorer.answer(&query)?.moves.into_iter();
    let moves = moves.filter_map(|played| {
        let uci: UciMove = played.uci.parse().ok()?;
        let mv = uci.to_move(pos).ok()?;
        let results = played.results;
        Some(TreeMove::without_evaluation(
            mv,
            results.games(),
            Some(results),
        ))
    });
    Ok(moves.collect())
}

/// A search for the positions to which given Polyglot hash keys belong. It walks through the moves of books, databases
/// or indexes, and collects the positions that it finds. Data that exceeds its memory budget is spilled to temporary
/// files.
///
/// ```
/// use polybook::{
///     book::{Book, Entry}, position::{BookMove, Variant, key}, progress::Meter, counts::Memory, tree::Wanted,
/// };
///
/// let start = Variant::Standard.start();
/// let e4 = Entry { key: key(&start), mv: BookMove(0o1434), weight: 1, learn: 0 };
/// let book = Book::from_bytes(e4.to_bytes().to_vec()).expect("whole records");
/// let mut wanted = Wanted::new(Memory::default());
/// wanted.add(7)?;
/// wanted.add(key(&start))?;
/// wanted.look(&book, &start, &Meter::default())?;
/// let mut found = wanted.found();
/// assert_eq!(found.position(7)?, None);
/// assert_eq!(found.position(key(&start))?, Some(start.clone()));
/// # Ok::<(), polybook::Error>(())
/// ```
#[derive(Debug)]
pub struct Wanted {
    keys: SpillingSet,
    found: SpillingSet,
    /// The number of keys whose positions have not been found yet.
    left: u64,
    /// The positions that were found, each stored as text after its key.
    positions: TextSorter,
    rules: Option<VariantPosition>,
    memory: Memory,
}

/// The positions that a [`Wanted`] search has found. They must be requested with [`position`](FoundPositions::position)
/// in ascending order of their keys.
pub struct FoundPositions<'a> {
    texts: Box<dyn Iterator<Item = Result<Cow<'a, [u8]>>> + 'a>,
    rules: Option<&'a VariantPosition>,
    /// The position that was read last, as its key and its text.
    next: Option<(u64, String)>,
}

/// The number of bytes of the key that precedes a stored position.
const KEY_SIZE: usize = size_of::<u64>();

impl Wanted {
    /// Creates a search without keys. `memory` is the memory budget of the whole search.
    pub fn new(memory: Memory) -> Wanted {
        let share = memory.share(4);
        Wanted {
            keys: SpillingSet::new(share.clone()),
            found: SpillingSet::new(share.clone()),
            left: 0,
            positions: TextSorter::new(share.clone(), None),
            rules: None,
            memory: share,
        }
    }

    /// Adds a Polyglot hash key whose position is searched for. A key that was added before is ignored.
    ///
    /// # Errors
    ///
    /// Returns an error if a temporary file cannot be written.
    pub fn add(&mut self, key: u64) -> Result<()> {
        self.left += u64::from(self.keys.insert_key(key)?);
        Ok(())
    }

    /// Searches for the wanted positions by a walk from `start`. The walk follows the moves of `source`, and also any
    /// other legal move after which `source` contains a move. It ends when all wanted positions have been found.
    ///
    /// All calls must use starting positions of the same variant.
    ///
    /// # Errors
    ///
    /// Returns an error if the source fails, or if a temporary file cannot be written.
    pub fn look(
        &mut self,
        source: &impl MoveSource,
        start: &VariantPosition,
        meter: &Meter,
    ) -> Result<()> {
        self.rules.get_or_insert_with(|| start.clone());
        if self.left == 0 {
            return Ok(());
        }
        let (start, memory) = ([Ok(start.clone())], self.memory.clone());
        each_position(source, start, memory, meter, &mut |pos| {
            let key = pos.key();
            if self.keys.contains_key(key)? && self.found.insert_key(key)? {
                self.left -= 1;
                let mut text = key.to_be_bytes().to_vec();
                text.extend_from_slice(stored(pos.position()).as_bytes());
                self.positions.push(&text)?;
            }
            Ok(self.left > 0)
        })
    }

    /// Returns the positions that [`look`](Wanted::look) has found so far.
    pub fn found(&mut self) -> FoundPositions<'_> {
        FoundPositions {
            texts: Box::new(self.positions.sorted()),
            rules: self.rules.as_ref(),
            next: None,
        }
    }
}

impl FoundPositions<'_> {
    /// Returns the position whose Polyglot hash key is `key`, or `None` if it was not found. Successive calls must
    /// pass keys in ascending order.
    ///
    /// # Errors
    ///
    /// Returns an error if a temporary file cannot be read.
    #[expect(clippy::missing_panics_doc, reason = "each text begins with a key")]
    pub fn position(&mut self, key: u64) -> Result<Option<VariantPosition>> {
        while self.next.as_ref().is_none_or(|(next, _)| *next < key) {
            let Some(text) = self.texts.next().transpose()? else {
                return Ok(None);
            };
            let (next, pos) = text
                .split_first_chunk::<KEY_SIZE>()
                .expect("a key comes first");
            let pos = String::from_utf8_lossy(pos).into_owned();
            self.next = Some((u64::from_be_bytes(*next), pos));
        }
        let found = self.next.as_ref().filter(|(next, _)| *next == key);
        Ok(found.and_then(|(_, pos)| restored(pos, self.rules?)))
    }
}

/// Returns all positions that the moves of a standard chess book reach from the starting position: positions in which
/// the book contains a move, and the positions after these moves. Checkmates and stalemates are omitted. A line of
/// moves ends in a position if the book contains neither a move there nor an answer to any legal move. `memory` limits
/// both the walk and the number of positions.
///
/// # Errors
///
/// Returns an error if the book cannot be read, if a temporary file cannot be written, or if the positions do not fit
/// in memory.
pub fn book_positions(book: &Book, memory: &Memory, meter: &Meter) -> Result<Vec<EnginePosition>> {
    let mut positions = Vec::new();
    let mut reached = SpillingSet::new(memory.share(4));
    let start = [Ok(Variant::Standard.start())];
    each_position(book, start, memory.share(4), meter, &mut |pos| {
        let moves = MoveSource::moves(book, pos)?;
        // The walk does not visit positions for which the book contains no move.
        let after = moves.iter().map(|mv| {
            let mut after = pos.clone();
            after.play(mv.mv);
            after
        });
        for pos in after.chain([pos.clone()]) {
            if let VariantPosition::Chess(chess) = pos.position()
                && !moves.is_empty()
                && !chess.legal_moves().is_empty()
                && reached.insert_key(pos.key())?
            {
                positions.push(EnginePosition {
                    pos: chess.clone(),
                    is_end: Replies(book).moves(&pos)?.is_empty(),
                });
                check_memory(positions.len(), memory, book.path())?;
            }
        }
        Ok(true)
    })?;
    Ok(positions)
}

impl<S: MoveSource> Tree<'_, S> {
    /// Writes the tree to `out` as text with one move per line, and returns the number of moves. `path` is the path of
    /// the output for error messages.
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
            writeln!(out, "{}", line(&branch, self.unweighted)).at(path, "write")
        })?;
        Ok(moves)
    }
}

/// Formats a move as a line of the text output, indented by its depth in the tree. The line contains the move, its
/// evaluation, and its weight or results. The word `transposition` follows if the continuation is written only after
/// another move that leads to the same position. Moves of the side `unweighted` are written without weights and
/// results.
fn line(branch: &Branch<'_>, unweighted: Option<Color>) -> String {
    let pos = branch.pos.position();
    let number = move_number(pos);
    let san = san(pos, branch.mv.mv);
    let mark = if branch.is_transposition {
        "  transposition"
    } else {
        ""
    };
    let indent = 2 * branch.ply;
    let eval = branch.mv.eval.map(|eval| format!("  {}", eval.score));
    let remark = if unweighted == Some(pos.turn()) && branch.mv.is_in_source {
        String::new()
    } else {
        format!("  {}", remark(branch))
    };
    let eval = eval.unwrap_or_default();
    format!("{:indent$}{number} {san}{eval}{remark}{mark}", "")
}

/// Formats the weight or the results of a move, and its percentage of the position's total weight. A weight is
/// formatted as `weight 12, 8.5%`. Results are formatted as `+8 =20 -14, 30.0%`, which are the wins, draws and losses
/// of the side to move. If there are unfinished games, their number follows an asterisk, as in `+8 =20 -14 *3, 32.1%`.
/// Returns `any reply` for a move that the source of moves does not contain.
pub(crate) fn remark(branch: &Branch<'_>) -> String {
    let mv = branch.mv;
    let share = format!("{:.1}%", branch.share);
    match mv.results {
        _ if !mv.is_in_source => "any reply".to_owned(),
        Some(results) => {
            let stats = results.for_side(branch.pos.position().turn());
            let unfinished = match results.unfinished {
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

/// A line of the output of `tree --json`: a JSON document that contains a position of the tree and its moves.
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
    /// The results, and the side from whose point of view they are written.
    #[serde(flatten, serialize_with = "of_side")]
    results: Option<(Results, Color)>,
    /// Whether the source contains the move; see
    /// [`TreeMove::is_in_source`](crate::formats::walk::TreeMove::is_in_source).
    known: bool,
    /// Whether the tree continues from the position after the move only after another move that leads to it.
    transposition: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    eval: Option<Eval>,
}

/// Serializes results from the point of view of a side.
fn of_side<S: Serializer>(
    results: &Option<(Results, Color)>,
    serializer: S,
) -> std::result::Result<S::Ok, S::Error> {
    match results {
        Some((results, side)) => results.of_side(*side, serializer),
        None => serializer.serialize_none(),
    }
}

impl TextLine {
    fn new(pos: &Keyed<VariantPosition>, ply: usize) -> TextLine {
        let fen = crate::chess::position::fen_of(pos.position());
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
            results: branch.mv.results.map(|results| (results, pos.turn())),
            known: branch.mv.is_in_source,
            transposition: branch.is_transposition,
            eval: branch.mv.eval,
        }
    }
}

impl<S: MoveSource> Tree<'_, S> {
    /// Writes the tree to `out` as JSON lines, one for each position that has moves, and returns the number of moves.
    /// `path` is the path of the output for error messages.
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

/// The maximum nesting depth of variations in a game. Deeper variations are written as separate games, because PGN
/// readers limit the depth.
const MAX_NESTING: usize = 16;

/// The maximum number of moves in a game, after which the tree is continued in another game. The limit exists because
/// Scid limits a game to about 128 KiB, and a move with a comment takes about 25 bytes there.
const MAX_MOVES_PER_GAME: u64 = 2000;

/// The value of the `Event` tag in each game that is written for a tree.
const EVENT: &str = "Opening tree";

impl<S: MoveSource> Tree<'_, S> {
    /// Writes the tree to `out` as PGN games with variations, and returns the number of moves. `path` is the path of
    /// the output for error messages.
    ///
    /// A comment after each move contains its weight or results, its percentage of the total weight, and its evaluation
    /// if known. The word `transposition` in the comment means that another move leads to the same position, and that
    /// the continuation is written only after that other move.
    ///
    /// A game contains at most 2000 moves, and its variations are nested at most 16 deep. The rest of the tree follows
    /// in further games, each of which begins with the moves that lead to its first new move. The returned number does
    /// not include these repeated moves.
    ///
    /// # Errors
    ///
    /// Returns an error if the source fails, or if the output cannot be written.
    pub fn write_pgn(&self, out: &mut impl Write, path: &Path) -> Result<u64> {
        self.write_commented_pgn(out, path, EVENT, &mut |branch| self.comment(branch))
    }

    /// Returns the comment on a move if the move belongs to the side whose moves are written without weights.
    /// Otherwise, returns `None`.
    fn comment(&self, branch: &Branch<'_>) -> Option<String> {
        let turn = branch.pos.position().turn();
        let is_unweighted = self.unweighted == Some(turn) && branch.mv.is_in_source;
        is_unweighted.then(|| {
            if branch.is_transposition {
                "transposition".to_owned()
            } else {
                String::new()
            }
        })
    }

    /// Writes the tree to `out` as PGN, like [`write_pgn`](Tree::write_pgn), but with comments that the caller chooses.
    /// Returns the number of moves. `path` is the path of the output for error messages. `event` is the value of the
    /// `Event` tag.
    ///
    /// `comment` returns the comment on a move, to which the evaluation of the move is added if known. If it returns
    /// `None`, the comment is that of [`write_pgn`](Tree::write_pgn). It is called with the moves in the order in which
    /// they are written.
    pub(crate) fn write_commented_pgn(
        &self,
        out: &mut impl Write,
        path: &Path,
        event: &str,
        comment: &mut dyn FnMut(&Branch<'_>) -> Option<String>,
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
                        games.begin(event, rounds, UNKNOWN_PLAYERS, self.start(), None)
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

/// Writes the moves of `line`, which begin in the position `start`, without comments. They lead from the start of the
/// tree to the first new move of a game that continues an earlier game.
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

/// Formats a move as movetext: the move number, the move and a comment. The comment begins with `comment` or, if this
/// is `None`, with the weight or the results of the move, and the word `transposition` if the move is a transposition.
/// The comment ends with the evaluation of the move if known.
fn text(branch: &Branch<'_>, comment: Option<String>) -> String {
    let pos = branch.pos.position();
    let number = move_number(pos);
    let san = SanPlus::from_move(pos.clone(), branch.mv.mv);
    let comment = comment.unwrap_or_else(|| {
        if branch.is_transposition {
            remark(branch) + ", transposition"
        } else {
            remark(branch)
        }
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

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet, btree_map::Entry};

    use proptest::prelude::*;
    use shakmaty::{Chess, Position};

    use super::*;
    use crate::{
        MakeBook,
        chess::position::{BookMove, Keyed, Variant},
        explore::explorer::Explorer,
        formats::{
            book::{self, Book},
            index::Index,
            walk::MoveSource,
        },
        games::pgn::Input,
        progress::Meter,
    };

    /// Returns a book of the moves that `choices` select, in lines from the start, and the keys and moves of its
    /// records.
    fn book(choices: &[Vec<u8>]) -> (Book, BTreeSet<(u64, u16)>) {
        let mut records = BTreeSet::new();
        for line in choices {
            let mut pos = Keyed::new(Chess::default());
            for choice in line {
                let moves = pos.position().legal_moves();
                let Some(mv) = moves.get(usize::from(*choice) % moves.len().max(1)) else {
                    break;
                };
                records.insert((pos.key(), BookMove::from(*mv).0));
                pos.play(*mv);
            }
        }
        let entry = |(key, mv): &(u64, u16)| book::Entry {
            key: *key,
            mv: BookMove(*mv),
            weight: 1,
            learn: 0,
        };
        let bytes = records.iter().flat_map(|record| entry(record).to_bytes());
        (Book::from_bytes(bytes.collect()).unwrap(), records)
    }

    /// Generates choices for [`book`]. Most are small numbers, so that different lines often reach the same position.
    fn lines() -> impl Strategy<Value = Vec<Vec<u8>>> {
        let line = proptest::collection::vec(prop_oneof![0..4u8, any::<u8>()], 0..20);
        proptest::collection::vec(line, 0..12)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn every_move_is_met_once_in_every_order(
            choices in lines(),
            deepest in 0..3usize,
            longest in 1..9u64,
        ) {
            let (book, records) = book(&choices);
            let meter = Meter::default();
            let tree = Tree::new(&book, Variant::Standard.start(), Limits::default(), &meter);
            for order in [Order::Lines, Order::Positions, Order::Levels, Order::Variations { deepest, longest }] {
                let mut met: BTreeMap<(u64, u16), u32> = BTreeMap::new();
                let mut open = 0;
                tree.walk(order, &mut |event| {
                    match event {
                        TreeEvent::Move(branch) => {
                            let mv = BookMove::from(branch.mv.mv).0;
                            *met.entry((branch.pos.key(), mv)).or_default() += 1;
                        }
                        TreeEvent::Open => open += 1,
                        TreeEvent::Close => open -= 1,
                        TreeEvent::Game(_) => assert_eq!(open, 0),
                        TreeEvent::Position { .. } => {}
                    }
                    assert!((0..=deepest as i32).contains(&open));
                    Ok(())
                })
                .unwrap();
                prop_assert_eq!(open, 0);
                prop_assert!(met.values().all(|times| *times == 1));
                let met: BTreeSet<(u64, u16)> = met.into_keys().collect();
                prop_assert_eq!(&met, &records);
            }
        }

        #[test]
        fn a_limit_of_plies_leaves_out_what_takes_longer_and_nothing_else(
            choices in lines(),
            max_ply in 0..9usize,
            deepest in 0..3usize,
            longest in 1..9u64,
        ) {
            let (book, records) = book(&choices);
            let meter = Meter::default();
            let limits = Limits { max_ply: Some(max_ply), ..Limits::default() };
            let tree = Tree::new(&book, Variant::Standard.start(), limits, &meter);
            let plies = soonest(&records);
            let within: BTreeSet<(u64, u16)> = records
                .iter()
                .copied()
                .filter(|(key, _)| plies.get(key).is_some_and(|ply| *ply < max_ply))
                .collect();
            for order in [Order::Lines, Order::Positions, Order::Levels, Order::Variations { deepest, longest }] {
                let mut met = BTreeSet::new();
                tree.walk(order, &mut |event| {
                    if let TreeEvent::Move(branch) = event {
                        let key = branch.pos.key();
                        assert_eq!(plies[&key], branch.ply);
                        assert!(met.insert((key, BookMove::from(branch.mv.mv).0)));
                        let elsewhere = plies.get(&branch.after.key()).is_some_and(|ply| *ply < branch.ply + 1);
                        assert!(branch.is_transposition || !elsewhere);
                    }
                    Ok(())
                })
                .unwrap();
                prop_assert_eq!(&met, &within);
            }
            prop_assert_eq!(meter.fraction(), Some(1.0));
        }

        #[test]
        fn a_limit_of_moves_holds(choices in lines(), most in 0..20u64) {
            let (book, records) = book(&choices);
            let meter = Meter::default();
            let limits = Limits { moves: Some(most), ..Limits::default() };
            let tree = Tree::new(&book, Variant::Standard.start(), limits, &meter);
            for order in [Order::Lines, Order::Positions, Order::Levels, Order::Variations { deepest: 9, longest: 7 }] {
                let mut met = 0;
                tree.walk(order, &mut |event| {
                    met += u64::from(matches!(event, TreeEvent::Move(_)));
                    Ok(())
                })
                .unwrap();
                prop_assert_eq!(met, most.min(records.len() as u64));
            }
        }
    }

    /// Returns the minimum number of half-moves in which the records lead to each position, by its key.
    fn soonest(records: &BTreeSet<(u64, u16)>) -> BTreeMap<u64, usize> {
        let mut plies = BTreeMap::new();
        let mut level = vec![Keyed::new(Chess::default())];
        for ply in 0.. {
            level.retain(|pos| match plies.entry(pos.key()) {
                Entry::Vacant(place) => {
                    place.insert(ply);
                    true
                }
                Entry::Occupied(_) => false,
            });
            if level.is_empty() {
                break;
            }
            let after = |pos: &Keyed<Chess>| -> Vec<Keyed<Chess>> {
                let moves = pos.position().legal_moves().into_iter();
                let known =
                    moves.filter(|mv| records.contains(&(pos.key(), BookMove::from(*mv).0)));
                known
                    .map(|mv| {
                        let mut after = pos.clone();
                        after.play(mv);
                        after
                    })
                    .collect()
            };
            level = level.iter().flat_map(after).collect();
        }
        plies
    }

    #[test]
    fn an_explorers_index_says_how_to_get_its_moves() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("idx");
        let input = Input::file("data/famous.pgn");
        let run = MakeBook::new([input]).explorer(&path);
        run.run().unwrap();
        let start = Keyed::new(Variant::Standard.start());
        let index = Index::open(&path).unwrap();
        let error = index.moves(&start).unwrap_err().to_string();
        let advice = "open it with Explorer::open, and use tree::Explored";
        assert!(error.contains(advice), "{error}");
        let explorer = Explorer::open([(String::new(), path)]).unwrap();
        let explored = Explored {
            explorer: Arc::new(explorer),
            variant: Variant::Standard,
            selection: Selection::default(),
        };
        let moves = explored.moves(&start).unwrap();
        assert!(moves.len() > 1);
    }
}
