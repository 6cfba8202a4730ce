//! Walks from a position through the moves of a source, such as a book, a database or an index.
//!
//! A [`MoveSource`] returns the moves of a position. A [`Tree`] visits all positions that these moves reach, in one of
//! several [orders](Order). If several moves lead to the same position, the tree continues after only one of them.
//! [`Limits`] bound how far a walk goes. Wrappers such as [`Replies`] and [`LinesOf`] add the opponent's moves to a
//! source that contains the moves of only one side.
//!
//! A tree keeps a stack of tasks instead of recursing, because lines may have thousands of half-moves.
//!
//! If the length of lines is limited, a walk [level by level](Order::Levels) is made first. It determines after which
//! of the moves to a position the tree continues.

use std::{cell::Cell, rc::Rc};

use rustc_hash::{FxHashMap, FxHashSet};
use shakmaty::{Color, Move, Position, variant::VariantPosition};

use crate::{
    chess::position::{BookMove, Keyed, restored, stored},
    error::Result,
    formats::evals::{Eval, Evals},
    games::results::{Results, Wdl},
    progress::{FractionalProgress, Meter},
    storage::sort::{ByteRun, Memory, SpillingSet},
    task,
};

/// A move of a [`MoveSource`], such as a book or a database, with its weight and its results.
#[derive(Clone, PartialEq, Debug)]
pub struct TreeMove {
    /// The move.
    pub mv: Move,
    /// The weight of the move. For a database, this is the weight that the move would get in a book, before scaling.
    /// For an index, it is the number of games.
    pub weight: u64,
    /// The results of the games in which the move was played, or `None` if the source stores only weights.
    pub results: Option<Results>,
    /// Whether the source contains the move. Otherwise, [`Replies`] or [`LinesOf`] added it.
    pub is_in_source: bool,
    /// The evaluation of the position after the move, or `None` if it is unknown or the source has no
    /// [evaluations](EvaluatedSource).
    pub eval: Option<Eval>,
}

impl TreeMove {
    /// Creates a move that the source contains, without an evaluation. `weight` is the weight of the move in the
    /// source. `results` contains the results of the games with the move, or `None` if the source stores only weights.
    pub(crate) fn without_evaluation(mv: Move, weight: u64, results: Option<Results>) -> TreeMove {
        TreeMove {
            mv,
            weight,
            results,
            is_in_source: true,
            eval: None,
        }
    }

    /// Returns the number of games in which the move was played, including unfinished games. If the source of the move
    /// stores no results, returns the weight of the move instead.
    pub(crate) fn games(&self) -> u64 {
        self.results.map_or(self.weight, Results::games)
    }

    /// Returns the results of the finished games from the view of `turn`, the side that moves, or `None` if the source
    /// stores only weights.
    pub(crate) fn stats(&self, turn: Color) -> Option<Wdl> {
        self.results.map(|results| results.for_side(turn))
    }
}

/// A source of opening moves, such as a book, a database or an index. It returns the moves of a given position.
pub trait MoveSource {
    /// Returns the legal moves that the source contains for the position `pos`. The best moves come first, and no
    /// move occurs twice.
    ///
    /// # Errors
    ///
    /// Returns an error if a file cannot be read.
    fn moves(&self, pos: &Keyed<VariantPosition>) -> Result<Vec<TreeMove>>;

    /// Returns a number that identifies the position `pos`, by which a walk recognizes positions that it has already
    /// visited. The default implementation returns the [identity](Keyed::identity), which ignores an en passant right
    /// that no legal move uses.
    ///
    /// Two positions that differ only in such a right can have different Polyglot keys. A source that stores moves by
    /// Polyglot key may contain different moves for these positions, and must return the [exact
    /// identity](Keyed::exact_identity) instead.
    fn position_id(&self, pos: &Keyed<VariantPosition>) -> u64 {
        pos.identity()
    }

    /// Returns `true` if the source is known to contain no move for positions with the given Polyglot key. No file is
    /// read, so the result may be `false` even if the source contains no such move. The default implementation returns
    /// `false`.
    fn lacks(&self, _key: u64) -> bool {
        false
    }

    /// Returns an error if another program has changed the file of the source since it was opened. A walk calls this
    /// function at its end, because it may have read some moves before such a change and others after it. The default
    /// implementation does nothing.
    ///
    /// # Errors
    ///
    /// Returns an error if the file was changed, or if its state cannot be read.
    fn refuse_changed(&self) -> Result<()> {
        Ok(())
    }
}

/// A source that changes the moves of another source. Every `SourceWrapper` also implements [`MoveSource`]: all
/// functions that the wrapper does not change are forwarded to the inner source.
pub trait SourceWrapper {
    /// The inner source.
    type Inner: MoveSource + ?Sized;

    /// Whether the wrapper may return moves for a position in which the inner source contains none. If `false`,
    /// [`changed`](SourceWrapper::changed) is not called for such positions.
    const ADDS_MOVES: bool = false;

    /// Returns the inner source.
    fn inner(&self) -> &Self::Inner;

    /// Returns the moves of this source for the position `pos`. `moves` contains the moves of the inner source, which
    /// the default implementation returns unchanged.
    ///
    /// # Errors
    ///
    /// Returns an error if a file cannot be read.
    fn changed(
        &self,
        _pos: &Keyed<VariantPosition>,
        moves: Vec<TreeMove>,
    ) -> Result<Vec<TreeMove>> {
        Ok(moves)
    }
}

impl<W: SourceWrapper> MoveSource for W {
    fn moves(&self, pos: &Keyed<VariantPosition>) -> Result<Vec<TreeMove>> {
        let moves = self.inner().moves(pos)?;
        if moves.is_empty() && !W::ADDS_MOVES {
            return Ok(moves);
        }
        self.changed(pos, moves)
    }

    fn position_id(&self, pos: &Keyed<VariantPosition>) -> u64 {
        self.inner().position_id(pos)
    }

    fn lacks(&self, key: u64) -> bool {
        !W::ADDS_MOVES && self.inner().lacks(key)
    }

    fn refuse_changed(&self) -> Result<()> {
        self.inner().refuse_changed()
    }
}

/// A source that adds replies to the inner source `S`. If `S` contains no moves for a position, this source returns
/// every legal move after which `S` contains moves. In all other positions, it returns the moves of `S`. With these
/// replies, a walk through a book for one side can continue after every reply of the opponent to which the book has an
/// answer.
#[derive(Debug)]
pub struct Replies<S>(pub S);

impl<S: MoveSource> SourceWrapper for Replies<S> {
    type Inner = S;
    const ADDS_MOVES: bool = true;

    fn inner(&self) -> &S {
        &self.0
    }

    fn changed(&self, pos: &Keyed<VariantPosition>, known: Vec<TreeMove>) -> Result<Vec<TreeMove>> {
        if known.is_empty() {
            replies_with_answers(&self.0, pos, &[])
        } else {
            Ok(known)
        }
    }
}

/// A source of the lines that a player prepares for one color, the second field. If this color is to move, the source
/// returns the moves of the inner source `S`. If the opponent is to move, it returns every legal move to which `S`
/// contains an answer.
#[derive(Debug)]
pub struct LinesOf<S>(pub S, pub Color);

impl<S: MoveSource> SourceWrapper for LinesOf<S> {
    type Inner = S;
    const ADDS_MOVES: bool = true;

    fn inner(&self) -> &S {
        &self.0
    }

    fn changed(&self, pos: &Keyed<VariantPosition>, known: Vec<TreeMove>) -> Result<Vec<TreeMove>> {
        if pos.position().turn() == self.1 {
            Ok(known)
        } else {
            replies_with_answers(&self.0, pos, &known)
        }
    }
}

/// Creates three sources from `source`: [`Replies`], and [`LinesOf`] for White and for Black. These sources differ in
/// which moves of the opponent they add, because a book for one side contains no such moves. Together, walks through
/// the three sources reach every position on the lines of `source`.
pub(crate) fn sources_of_all_lines<'a>(
    source: &'a impl MoveSource,
) -> [Box<dyn MoveSource + 'a>; 3] {
    [
        Box::new(Replies(source)),
        Box::new(LinesOf(source, Color::White)),
        Box::new(LinesOf(source, Color::Black)),
    ]
}

/// Calls `visit` with each position that has moves and can be reached from `starts` by moves of `source`. Because
/// `source` may contain the moves of only one side, the walk also follows any legal move to which `source` contains an
/// answer. The walk stops when `visit` returns `false`.
///
/// A position may be visited several times. `memory` is the memory budget, and `meter` shows the progress.
pub(crate) fn each_position(
    source: &impl MoveSource,
    starts: impl IntoIterator<Item = Result<VariantPosition>>,
    memory: Memory,
    meter: &Meter,
    visit: &mut dyn FnMut(&Keyed<VariantPosition>) -> Result<bool>,
) -> Result<()> {
    let is_done = Cell::new(false);
    let source = UntilDone {
        source,
        is_done: &is_done,
    };
    let limits = Limits {
        memory,
        ..Limits::default()
    };
    for start in starts {
        let start = start?;
        for lines in sources_of_all_lines(&source) {
            if is_done.get() {
                break;
            }
            let tree = Tree::new(lines, start.clone(), limits.clone(), meter);
            tree.walk(Order::Positions, &mut |event| {
                if let TreeEvent::Position { pos, .. } = event {
                    is_done.set(!visit(pos)?);
                }
                Ok(())
            })?;
        }
    }
    Ok(())
}

/// Finds a shortest line from `start` to each position whose Polyglot key is in `keys`. A line consists of moves of
/// `source`, and of legal moves to which `source` contains an answer. Returns a map from the key of each position to
/// its line. The map does not contain the keys of positions that no line reaches.
///
/// `memory` is the memory budget.
///
/// # Errors
///
/// Returns an error if the source fails, or if a temporary file cannot be written.
pub(crate) fn shortest_lines(
    source: &impl MoveSource,
    start: &VariantPosition,
    keys: &FxHashSet<u64>,
    memory: &Memory,
) -> Result<FxHashMap<u64, Vec<Move>>> {
    let mut lines = FxHashMap::default();
    let (is_done, meter) = (Cell::new(keys.is_empty()), Meter::default());
    let source = UntilDone {
        source,
        is_done: &is_done,
    };
    let limits = Limits {
        max_ply: Some(Limits::MAX_PLIES),
        memory: memory.clone(),
        ..Limits::default()
    };
    for directions in sources_of_all_lines(&source) {
        if is_done.get() {
            break;
        }
        // The positions on the path from the start to the position that the walk visits.
        let mut path: Vec<VariantPosition> = Vec::new();
        let tree = Tree::new(directions, start.clone(), limits.clone(), &meter);
        tree.walk(Order::Positions, &mut |event| {
            if let TreeEvent::Position { pos, ply } = event {
                path.truncate(ply);
                path.push(pos.position().clone());
                if keys.contains(&pos.key()) {
                    lines.entry(pos.key()).or_insert_with(|| moves_along(&path));
                    is_done.set(lines.len() == keys.len());
                }
            }
            Ok(())
        })?;
    }
    Ok(lines)
}

/// Returns the moves that lead from each position of `path` to the next one.
fn moves_along(path: &[VariantPosition]) -> Vec<Move> {
    let moves = path.windows(2).map(|pair| {
        let mut moves = pair[0].legal_moves().into_iter();
        let leads = |mv: &Move| {
            let mut after = pair[0].clone();
            after.play_unchecked(*mv);
            after == pair[1]
        };
        moves
            .find(leads)
            .expect("each position of a path follows from the one before")
    });
    moves.collect()
}

/// A source that returns the moves of the inner source `S` until `is_done` is set. After that, it returns no moves, so
/// that a walk through this source ends early.
struct UntilDone<'a, S> {
    source: &'a S,
    is_done: &'a Cell<bool>,
}

impl<S: MoveSource> MoveSource for UntilDone<'_, S> {
    fn moves(&self, pos: &Keyed<VariantPosition>) -> Result<Vec<TreeMove>> {
        if self.is_done.get() {
            Ok(Vec::new())
        } else {
            self.source.moves(pos)
        }
    }

    /// Returns the [exact identity](Keyed::exact_identity) of the position, which also differs between positions that
    /// differ only in their Polyglot key. A book stores its moves by this key.
    fn position_id(&self, pos: &Keyed<VariantPosition>) -> u64 {
        pos.exact_identity()
    }

    fn lacks(&self, key: u64) -> bool {
        self.source.lacks(key)
    }

    fn refuse_changed(&self) -> Result<()> {
        self.source.refuse_changed()
    }
}

/// Returns the legal moves of `pos` after which `source` contains an answer, sorted for display. `known` contains the
/// moves that `source` itself contains in `pos`. Moves in `known` come first, sorted by their numbers of games in
/// descending order. The other moves follow, sorted by the total numbers of games of their answers in descending order.
fn replies_with_answers(
    source: &impl MoveSource,
    pos: &Keyed<VariantPosition>,
    known: &[TreeMove],
) -> Result<Vec<TreeMove>> {
    let mut replies = Vec::new();
    for mv in pos.position().legal_moves() {
        // Most legal moves lead to a position that the source does not contain, so skip them before playing them.
        if pos.key_after_plain(mv).is_some_and(|key| source.lacks(key)) {
            continue;
        }
        let mut after = pos.clone();
        after.play(mv);
        let answers = source.moves(&after)?;
        if answers.is_empty() {
            continue;
        }
        let reply = match known.iter().find(|known| known.mv == mv) {
            Some(known) => (known.games(), known.clone()),
            None => {
                let reply = TreeMove {
                    is_in_source: false,
                    ..TreeMove::without_evaluation(mv, 0, None)
                };
                (answers.iter().map(TreeMove::games).sum(), reply)
            }
        };
        replies.push(reply);
    }
    // A known move was played in this position. Any other move only leads to a position that games reached in
    // another way.
    replies.sort_by_key(|(played, reply)| std::cmp::Reverse((reply.is_in_source, *played)));
    Ok(replies.into_iter().map(|(_, reply)| reply).collect())
}

/// Returns the color whose moves `source` contains if it seems to contain the moves of only one color, like the book of
/// a player with White. Returns `None` if it contains the moves of both colors, or no moves near `start`.
///
/// Examines only the first moves after the position `start`: the moves of one color, and the positions after them, in
/// which the other color is to move.
///
/// # Errors
///
/// Returns an error if a file cannot be read.
pub fn only_color(source: &impl MoveSource, start: VariantPosition) -> Result<Option<Color>> {
    let turn = start.turn();
    let start = Keyed::new(start);
    let after = |pos: &Keyed<VariantPosition>, moves: Vec<TreeMove>| {
        let after = moves.into_iter().map(|TreeMove { mv, .. }| {
            let mut after = pos.clone();
            after.play(mv);
            after
        });
        after.collect::<Vec<_>>()
    };
    let first = source.moves(&start)?;
    let (color, of_other) = if first.is_empty() {
        let replies = replies_with_answers(source, &start, &[])?;
        let mut of_other = Vec::new();
        for pos in after(&start, replies) {
            let moves = source.moves(&pos)?;
            of_other.extend(after(&pos, moves));
        }
        (!turn, of_other)
    } else {
        (turn, after(&start, first))
    };
    for pos in &of_other {
        if !source.moves(pos)?.is_empty() {
            return Ok(None);
        }
    }
    // A book of single moves from `start` ends before the other color moves.
    let mut is_only = color != turn && !of_other.is_empty();
    for pos in &of_other {
        is_only = is_only || !replies_with_answers(source, pos, &[])?.is_empty();
    }
    Ok(is_only.then_some(color))
}

/// A source that returns the moves of the inner source `S` with evaluations. The evaluation of a move is the stored
/// evaluation of the position after it.
#[derive(Debug)]
pub struct EvaluatedSource<S>(pub S, pub Evals);

impl<S: MoveSource> SourceWrapper for EvaluatedSource<S> {
    type Inner = S;

    fn inner(&self) -> &S {
        &self.0
    }

    fn changed(
        &self,
        pos: &Keyed<VariantPosition>,
        mut moves: Vec<TreeMove>,
    ) -> Result<Vec<TreeMove>> {
        for mv in &mut moves {
            mv.eval = self.1.after(pos.position(), mv.mv)?;
        }
        Ok(moves)
    }
}

/// A source that combines the moves of two inner sources. If both contain the same move, the data of the move come from
/// the first source.
#[derive(Debug)]
pub struct Union<A, B>(pub A, pub B);

impl<A: MoveSource, B: MoveSource> MoveSource for Union<A, B> {
    fn moves(&self, pos: &Keyed<VariantPosition>) -> Result<Vec<TreeMove>> {
        let mut moves = self.0.moves(pos)?;
        for mv in self.1.moves(pos)? {
            if !moves.iter().any(|other| other.mv == mv.mv) {
                moves.push(mv);
            }
        }
        Ok(moves)
    }

    /// Returns the id of the position if both inner sources agree on it. Otherwise, one of the sources distinguishes
    /// positions by their Polyglot keys, so the exact identity is returned, which also distinguishes such positions.
    fn position_id(&self, pos: &Keyed<VariantPosition>) -> u64 {
        let id = self.0.position_id(pos);
        if id == self.1.position_id(pos) {
            id
        } else {
            pos.exact_identity()
        }
    }

    fn lacks(&self, key: u64) -> bool {
        self.0.lacks(key) && self.1.lacks(key)
    }

    fn refuse_changed(&self) -> Result<()> {
        self.0.refuse_changed()?;
        self.1.refuse_changed()
    }
}

impl<S: MoveSource + ?Sized> SourceWrapper for &S {
    type Inner = S;

    fn inner(&self) -> &S {
        self
    }
}

impl<S: MoveSource + ?Sized> SourceWrapper for Box<S> {
    type Inner = S;

    fn inner(&self) -> &S {
        self
    }
}

/// The limits that determine which moves and lines belong to a tree of opening moves. By default, the tree contains
/// every move of its source, in lines of up to [`Limits::MAX_PLIES`] half-moves.
#[derive(Clone, PartialEq, Default, Debug)]
pub struct Limits {
    /// The maximum length of a line in half-moves. If it is set, the tree contains every position within this length:
    /// an additional walk finds a shortest line to each position, at the end of which the tree continues. If it is
    /// `None`, the tree continues each position where the walk first reaches it.
    pub max_ply: Option<usize>,
    /// The minimum weight of a move.
    pub min_weight: u64,
    /// The minimum share of a move in the total weight of the moves of its position, in percent.
    pub min_share: f64,
    /// The minimum number of games of a move. This limit is ignored for a source without results.
    pub min_game: u64,
    /// The maximum number of moves of the whole tree, or `None` for no limit.
    pub moves: Option<u64>,
    /// The memory budget for recognizing visited positions. Further data is spilled to temporary files.
    pub memory: Memory,
}

/// A move that the limits of a tree allow, with its share of the total weight of its position, and the estimated share
/// of the whole tree that follows the move.
#[derive(Clone, Debug)]
struct LimitedMove {
    pub mv: TreeMove,
    /// The total weight of the moves in the position.
    pub sum: u64,
    /// The share of the move in the total weight of the moves of its position, in percent.
    pub share: f64,
    /// The estimated share of the whole tree that follows the move, from 0 to 1. This share is used to measure
    /// progress.
    pub portion: f64,
}

impl Limits {
    /// The maximum length of any line, in half-moves, if [`Limits::max_ply`] is greater or not set.
    pub const MAX_PLIES: usize = 4096;

    /// Returns the maximum length of a line that these limits allow, in half-moves.
    fn plies(&self) -> usize {
        self.max_ply
            .unwrap_or(Limits::MAX_PLIES)
            .min(Limits::MAX_PLIES)
    }

    /// Returns the moves of a position that are within the limits. `portion` is the estimated share of the whole tree
    /// that follows the position, from 0 to 1. This share is divided among the returned moves, to measure the progress.
    fn choices(
        &self,
        source: &impl MoveSource,
        pos: &Keyed<VariantPosition>,
        portion: f64,
    ) -> Result<Vec<LimitedMove>> {
        let moves = source.moves(pos)?;
        let sum: u64 = moves.iter().map(|mv| mv.weight).sum();
        let with_shares = moves.into_iter().map(|mv| {
            let share = mv.weight as f64 * 100.0 / sum.max(1) as f64;
            (mv, share)
        });
        let admitted: Vec<(TreeMove, f64)> = with_shares
            .filter(|(mv, share)| self.admits(mv, *share))
            .collect();
        // A move of weight 0 can also be followed by moves, so its size must not be 0.
        let size = |share: f64| share + 1.0;
        let sizes: f64 = admitted.iter().map(|(_, share)| size(*share)).sum();
        let choice = |(mv, share)| LimitedMove {
            mv,
            sum,
            share,
            portion: portion * size(share) / sizes,
        };
        Ok(admitted.into_iter().map(choice).collect())
    }

    /// Returns `true` if the limits allow a walk to follow the move `mv`. `share` is the share of the move in the
    /// total weight of its position, in percent.
    ///
    /// A move that [`Replies`] or [`LinesOf`] added is always allowed, because it has no weight.
    fn admits(&self, mv: &TreeMove, share: f64) -> bool {
        let has_games = mv.results.is_none() || mv.games() >= self.min_game;
        !mv.is_in_source || (mv.weight >= self.min_weight && share >= self.min_share && has_games)
    }
}

/// The order in which a walk visits the moves of a tree.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Order {
    /// Depth first: a move, everything after it, and then the next move of its position.
    Lines,
    /// The order in which PGN writes variations: a move, then the other moves of its position with everything after
    /// them, and then everything after the first move.
    Variations {
        /// The maximum nesting of variations. A deeper variation becomes a separate game.
        deepest: usize,
        /// The maximum number of moves in a game. The remaining moves become further games.
        longest: u64,
    },
    /// All moves of a position, and then everything after each of them.
    Positions,
    /// Breadth first: the moves of all positions at one depth, before the moves of the positions at the next depth. The
    /// walk reaches each position by a shortest line. Positions that wait for the next level are spilled to temporary
    /// files.
    Levels,
}

/// A move that a walk through a tree visits, together with the position before the move.
#[derive(Clone, Debug)]
pub struct Branch<'a> {
    /// The position before the move.
    pub pos: &'a Keyed<VariantPosition>,
    /// The number of half-moves from the start to the position `pos`.
    pub ply: usize,
    /// The move.
    pub mv: &'a TreeMove,
    /// The position after the move.
    pub after: &'a Keyed<VariantPosition>,
    /// The total weight of the moves in the position `pos`.
    pub(crate) sum: u64,
    /// The share of the move in the total weight of the moves in the position `pos`, in percent.
    pub share: f64,
    /// Whether the move is a transposition: another move leads to the same position, and the tree continues from this
    /// position only after that other move.
    pub is_transposition: bool,
}

/// An event of a walk through a tree of opening moves.
#[derive(Clone, Debug)]
pub enum TreeEvent<'a> {
    /// A game begins. Holds the moves from the start of the tree that precede the first new move of the game.
    Game(&'a [Move]),
    /// The moves of a position follow. This event occurs only with [`Order::Positions`] and [`Order::Levels`].
    Position {
        /// The position.
        pos: &'a Keyed<VariantPosition>,
        /// The number of half-moves from the start to the position.
        ply: usize,
    },
    /// A move is visited.
    Move(Branch<'a>),
    /// A variation begins, which is an alternative to the last move at the same depth.
    Open,
    /// A variation ends.
    Close,
}

/// A tree of opening moves: all lines from a starting position that consist of moves of a [`MoveSource`] and are within
/// [`Limits`]. The tree is not stored. A walk through it reads the moves from the source.
#[derive(Clone, Debug)]
pub struct Tree<'a, S> {
    source: S,
    start: VariantPosition,
    limits: Limits,
    meter: &'a Meter,
    /// The side whose moves are written without their weights, or `None` to write the weights of all moves.
    pub(crate) unweighted: Option<Color>,
}

impl<'a, S: MoveSource> Tree<'a, S> {
    /// Creates a tree of the moves of `source` from the position `start`. Reads no moves yet. A walk through the tree
    /// estimates its progress from the weights of the moves and reports it to `meter`.
    pub fn new(source: S, start: VariantPosition, limits: Limits, meter: &'a Meter) -> Tree<'a, S> {
        Tree {
            source,
            start,
            limits,
            meter,
            unweighted: None,
        }
    }

    /// Omits the weights and shares of the moves of `side` when the tree is written as text or PGN. For example, the
    /// weights of the opponent's moves in a repertoire do not tell how often opponents play these moves. If `side` is
    /// `None`, no weights are omitted.
    pub fn without_weights_of(self, side: Option<Color>) -> Tree<'a, S> {
        Tree {
            unweighted: side,
            ..self
        }
    }

    /// Returns the starting position of the tree.
    pub(crate) fn start(&self) -> &VariantPosition {
        &self.start
    }

    /// Walks through the tree and calls `f` with each event, such as a move. The walk visits the moves of each position
    /// only once, even if several moves lead to the position.
    ///
    /// # Errors
    ///
    /// Returns an error if the source or `f` fails, or if a temporary file cannot be written.
    pub fn walk(&self, order: Order, f: &mut dyn FnMut(TreeEvent<'_>) -> Result<()>) -> Result<()> {
        let mut done = FractionalProgress::new(self.meter);
        let starts = std::slice::from_ref(&self.start);
        walk(&self.source, starts, &self.limits, order, &mut done, f)
    }
}

/// Walks from the positions `starts` through the moves of `source` that `limits` allows, and calls `f` with each event.
/// The walk visits the moves of each position only once. `progress` advances while the walk runs.
///
/// # Errors
///
/// Returns an error if the source or `f` fails, or if a temporary file cannot be written.
pub(crate) fn walk(
    source: &impl MoveSource,
    starts: &[VariantPosition],
    limits: &Limits,
    order: Order,
    progress: &mut FractionalProgress<'_>,
    f: &mut dyn FnMut(TreeEvent<'_>) -> Result<()>,
) -> Result<()> {
    let expansion = match order {
        Order::Levels => Expansion::first(usize::MAX, limits.memory.share(4)),
        _ if limits.max_ply.is_none() => Expansion::first(limits.plies(), limits.memory.share(2)),
        _ => Expansion::shortest(source, starts, limits, &mut progress.of_same_meter())?,
    };
    let mut walk = TreeWalk::new(source, limits, order, expansion, progress, f);
    walk.run_from(starts)?;
    source.refuse_changed()
}

/// A position on the current path of a walk through a tree of moves, linked to the previous position on the path.
#[derive(Clone)]
struct TreeNode {
    pos: Keyed<VariantPosition>,
    ply: usize,
    /// The number of nested variations that contain the position.
    nesting: usize,
    /// The estimated share of the whole tree that follows the position, from 0 to 1.
    portion: f64,
    /// The previous position and the move from there to this position, or `None` for the start.
    before: Option<(Rc<TreeNode>, Move)>,
}

impl TreeNode {
    /// Returns the moves from the start of the tree to this position.
    fn line(&self) -> Vec<Move> {
        let mut line = Vec::new();
        let mut at = self.before.as_ref();
        while let Some((node, mv)) = at {
            line.push(*mv);
            at = node.before.as_ref();
        }
        line.reverse();
        line
    }
}

/// A task on the stack of a walk, which does not use recursion because lines may be very long.
enum Task {
    /// Visit the moves of a position.
    Expand(Rc<TreeNode>),
    /// Visit a move of a position and everything after it. The number is the number of nested variations that contain
    /// the move.
    Branch(Rc<TreeNode>, LimitedMove, usize),
    Open,
    Close,
}

struct TreeWalk<'a, 'm, S> {
    source: &'a S,
    limits: &'a Limits,
    order: Order,
    expansion: Expansion,
    /// The number of moves that may still be visited.
    left: u64,
    tasks: Vec<Task>,
    /// The number of moves in the current game.
    in_game: u64,
    /// Tasks that become separate games.
    deferred: Vec<Task>,
    /// The positions of the next level of a walk in [`Order::Levels`].
    level: ByteRun,
    done: &'a mut FractionalProgress<'m>,
    f: &'a mut dyn FnMut(TreeEvent<'_>) -> Result<()>,
}

impl<'a, 'm, S: MoveSource> TreeWalk<'a, 'm, S> {
    fn new(
        source: &'a S,
        limits: &'a Limits,
        order: Order,
        expansion: Expansion,
        done: &'a mut FractionalProgress<'m>,
        f: &'a mut dyn FnMut(TreeEvent<'_>) -> Result<()>,
    ) -> TreeWalk<'a, 'm, S> {
        TreeWalk {
            source,
            limits,
            order,
            expansion,
            left: limits.moves.unwrap_or(u64::MAX),
            tasks: Vec::new(),
            in_game: 0,
            deferred: Vec::new(),
            level: new_level(limits),
            done,
            f,
        }
    }

    /// Visits everything that follows the positions `starts`.
    fn run_from(&mut self, starts: &[VariantPosition]) -> Result<()> {
        for start in starts {
            let node = TreeNode {
                pos: Keyed::new(start.clone()),
                ply: 0,
                nesting: 0,
                portion: 1.0 / starts.len() as f64,
                before: None,
            };
            if !self.expansion.begin(self.source, &node.pos)? {
                continue;
            }
            match self.order {
                Order::Levels => self.push_to_level(&node)?,
                _ => self.deferred.push(Task::Expand(Rc::new(node))),
            }
        }
        self.deferred.reverse();
        // A game may defer further games. Taking the last one first keeps the list of waiting games short.
        while let Some(next) = self.deferred.pop() {
            task::fault("tree");
            self.game(next)?;
        }
        for ply in 0.. {
            if self.level.len() == 0 {
                break;
            }
            let level = std::mem::replace(&mut self.level, new_level(self.limits));
            let mut texts = level.reader(0);
            while let Some(text) = texts.read_text()? {
                self.done.check()?;
                match read_from_level(&text, &starts[0]) {
                    (Some(pos), portion) => self.expand(&Rc::new(TreeNode {
                        pos: Keyed::new(pos),
                        ply,
                        nesting: 0,
                        portion,
                        before: None,
                    }))?,
                    (None, portion) => self.done.add(portion),
                }
            }
        }
        self.done.finish();
        Ok(())
    }

    /// Appends a position to the next level, if the limits allow moves from this position.
    fn push_to_level(&mut self, node: &TreeNode) -> Result<()> {
        if node.ply >= self.limits.plies() {
            self.done.add(node.portion);
            return Ok(());
        }
        let mut text = node.portion.to_le_bytes().to_vec();
        text.extend_from_slice(stored(node.pos.position()).as_bytes());
        self.level.append_text(&text)
    }

    /// Performs `task` and all tasks that result from it. The moves that these tasks visit are passed to the callback
    /// of the walk as the moves of one game. Tasks that exceed the limits of a game are deferred, and become separate
    /// games.
    fn game(&mut self, task: Task) -> Result<()> {
        let line = match &task {
            Task::Expand(node) => node.line(),
            Task::Branch(node, ..) => node.line(),
            Task::Open | Task::Close => unreachable!("a game begins with a position or a move"),
        };
        let has_moves = match &task {
            // A deferred position without moves would make a game without anything new.
            Task::Expand(node) => line.is_empty() || !self.choices(node)?.is_empty(),
            _ => self.left > 0,
        };
        if !has_moves {
            if let Task::Expand(node) = &task {
                self.done.add(node.portion);
            }
            return Ok(());
        }
        (self.f)(TreeEvent::Game(&line))?;
        self.in_game = 0;
        self.tasks.push(task);
        let first = self.deferred.len();
        while let Some(task) = self.tasks.pop() {
            self.done.check()?;
            self.run(task)?;
        }
        // Reversed, because the next game is popped from the end.
        self.deferred[first..].reverse();
        Ok(())
    }

    fn run(&mut self, task: Task) -> Result<()> {
        let is_full =
            matches!(self.order, Order::Variations { longest, .. } if self.in_game >= longest);
        match task {
            Task::Open if self.left == 0 || is_full => {
                // A variation without its move would be empty, so it is deferred as a whole.
                let branch = self.tasks.pop();
                self.tasks.pop();
                if let Some(Task::Branch(node, choice, _)) = branch {
                    self.deferred.push(Task::Branch(node, choice, 0));
                }
            }
            Task::Open => (self.f)(TreeEvent::Open)?,
            Task::Close => (self.f)(TreeEvent::Close)?,
            Task::Branch(node, choice, nesting) => {
                let after = self.visit(&node, &choice, nesting)?;
                self.tasks.extend(after.map(Task::Expand));
            }
            Task::Expand(node) if is_full => {
                let node = Rc::unwrap_or_clone(node);
                let outside = TreeNode { nesting: 0, ..node };
                self.deferred.push(Task::Expand(Rc::new(outside)));
            }
            Task::Expand(node) => self.expand(&node)?,
        }
        Ok(())
    }

    fn expand(&mut self, node: &Rc<TreeNode>) -> Result<()> {
        let choices = self.choices(node)?;
        if choices.is_empty() {
            self.done.add(node.portion);
            return Ok(());
        }
        let nesting = node.nesting;
        match self.order {
            Order::Lines => {
                let branch = |choice| Task::Branch(Rc::clone(node), choice, nesting);
                self.tasks.extend(choices.into_iter().rev().map(branch));
            }
            Order::Positions | Order::Levels => {
                let (pos, ply) = (&node.pos, node.ply);
                (self.f)(TreeEvent::Position { pos, ply })?;
                let mut after = Vec::new();
                for choice in &choices {
                    after.extend(self.visit(node, choice, nesting)?);
                }
                if self.order == Order::Levels {
                    return after.iter().try_for_each(|node| self.push_to_level(node));
                }
                self.tasks.extend(after.into_iter().rev().map(Task::Expand));
            }
            Order::Variations { deepest, .. } => self.expand_variations(node, choices, deepest)?,
        }
        Ok(())
    }

    fn expand_variations(
        &mut self,
        node: &Rc<TreeNode>,
        choices: Vec<LimitedMove>,
        deepest: usize,
    ) -> Result<()> {
        let nesting = node.nesting;
        let mut choices = choices.into_iter();
        if let Some(main) = choices.next() {
            let after = self.visit(node, &main, nesting)?;
            self.tasks.extend(after.map(Task::Expand));
        }
        if nesting == deepest {
            let branch = |choice| Task::Branch(Rc::clone(node), choice, 0);
            self.deferred.extend(choices.map(branch));
            return Ok(());
        }
        for choice in choices.rev() {
            self.tasks.push(Task::Close);
            let branch = Task::Branch(Rc::clone(node), choice, nesting + 1);
            self.tasks.push(branch);
            self.tasks.push(Task::Open);
        }
        Ok(())
    }

    /// Returns the moves with which the tree continues in the position `node`. Returns no moves if the tree already has
    /// its maximum number of moves, or if the line to the position already has its maximum length.
    fn choices(&self, node: &TreeNode) -> Result<Vec<LimitedMove>> {
        if self.left == 0 || node.ply >= self.limits.plies() {
            return Ok(Vec::new());
        }
        self.limits.choices(self.source, &node.pos, node.portion)
    }

    /// Visits the move `choice` in the position `node`. `nesting` is the number of variations that enclose the move.
    ///
    /// Returns the position after the move if the walk continues there. Returns `None` if a limit is reached, or if the
    /// move is a transposition, which means that the walk continues from the position only after another move that
    /// leads to it.
    fn visit(
        &mut self,
        node: &Rc<TreeNode>,
        choice: &LimitedMove,
        nesting: usize,
    ) -> Result<Option<Rc<TreeNode>>> {
        if self.left == 0 {
            return Ok(None);
        }
        self.left -= 1;
        self.in_game += 1;
        let mv = choice.mv.mv;
        let (mut pos, ply) = (node.pos.clone(), node.ply + 1);
        pos.play(mv);
        let after = self
            .expansion
            .after(self.source, &node.pos, mv, &pos, ply)?;
        (self.f)(TreeEvent::Move(Branch {
            pos: &node.pos,
            ply: node.ply,
            mv: &choice.mv,
            after: &pos,
            sum: choice.sum,
            share: choice.share,
            is_transposition: after == AfterMove::Transposition,
        }))?;
        if after != AfterMove::Expanded {
            self.done.add(choice.portion);
            return Ok(None);
        }
        Ok(Some(Rc::new(TreeNode {
            pos,
            ply,
            nesting,
            portion: choice.portion,
            before: Some((Rc::clone(node), mv)),
        })))
    }
}

/// The number of bytes of one level's positions that a walk in [`Order::Levels`] keeps in memory. Further positions are
/// written to a temporary file.
const LEVEL_IN_MEMORY: usize = 1 << 16;

/// Creates an empty level of a walk in [`Order::Levels`].
fn new_level(limits: &Limits) -> ByteRun {
    ByteRun::new(LEVEL_IN_MEMORY, limits.memory.temp_dir.clone())
}

/// The decision of a walk after it has visited a move: whether it continues from the new position, marks the move as a
/// transposition, or ends the line.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
enum AfterMove {
    /// The tree continues from the position after the move.
    Expanded,
    /// The tree continues from the position after the move only after another move that leads to this position.
    Transposition,
    /// The line ends, because it has reached its maximum length.
    End,
}

/// The rule that decides where a walk continues if several moves lead to the same position. The walk continues after
/// one of these moves, and marks the others as transpositions.
enum Expansion {
    /// The walk continues after the first of the moves that it visits.
    First { met: SpillingSet, plies: usize },
    /// The walk continues after the move that ends a shortest line to the position. This is the first of the moves that
    /// a walk in [`Order::Levels`] visits.
    Shortest {
        /// The fingerprints of all positions within the limit.
        met: SpillingSet,
        /// The fingerprints of the moves after which the tree continues.
        moves: SpillingSet,
    },
}

impl Expansion {
    /// Creates the rule that a walk continues from a position only where it first reaches the position, in lines of at
    /// most `plies` half-moves. `memory` is the memory budget.
    fn first(plies: usize, memory: Memory) -> Expansion {
        let met = SpillingSet::new(memory);
        Expansion::First { met, plies }
    }

    /// Finds a shortest line to each position that the moves of `source` reach from `starts` within `limits`. Returns
    /// the rule that a walk continues from each position only at the end of this line.
    fn shortest(
        source: &impl MoveSource,
        starts: &[VariantPosition],
        limits: &Limits,
        progress: &mut FractionalProgress<'_>,
    ) -> Result<Expansion> {
        let mut moves = SpillingSet::new(limits.memory.share(4));
        // The last half-move of a line leads to a position that the tree does not continue.
        let limits = Limits {
            max_ply: Some(limits.plies().saturating_sub(1)),
            moves: None,
            ..limits.clone()
        };
        let mut note = |event: TreeEvent<'_>| {
            if let TreeEvent::Move(branch) = event
                && !branch.is_transposition
            {
                moves.insert(move_fingerprint(source, branch.pos, branch.mv.mv))?;
            }
            Ok(())
        };
        let expansion = Expansion::first(usize::MAX, limits.memory.share(4));
        let order = Order::Levels;
        let mut walk = TreeWalk::new(source, &limits, order, expansion, progress, &mut note);
        walk.run_from(starts)?;
        let (Expansion::First { met, .. } | Expansion::Shortest { met, .. }) = walk.expansion;
        Ok(Expansion::Shortest { met, moves })
    }

    /// Marks `pos`, a starting position of a walk, as visited. Returns `false` if it was already visited.
    fn begin(&mut self, source: &impl MoveSource, pos: &Keyed<VariantPosition>) -> Result<bool> {
        match self {
            Expansion::First { met, .. } => met.insert(position_fingerprint(source, pos)),
            Expansion::Shortest { .. } => Ok(true),
        }
    }

    /// Decides how a walk continues after the move `mv`, which leads from the position `before` to the position
    /// `after`. The move is a transposition if another move leads to `after`, and the walk continues from there only
    /// after that other move. `source` defines which positions are equal. `ply` is the number of half-moves from the
    /// start of the tree to `after`.
    fn after(
        &mut self,
        source: &impl MoveSource,
        before: &Keyed<VariantPosition>,
        mv: Move,
        after: &Keyed<VariantPosition>,
        ply: usize,
    ) -> Result<AfterMove> {
        Ok(match self {
            // The position is not marked as visited: a shorter line may reach it later.
            Expansion::First { plies, .. } if ply >= *plies => AfterMove::End,
            Expansion::First { met, .. } => {
                if met.insert(position_fingerprint(source, after))? {
                    AfterMove::Expanded
                } else {
                    AfterMove::Transposition
                }
            }
            Expansion::Shortest { met, .. }
                if !met.contains(position_fingerprint(source, after))? =>
            {
                AfterMove::End
            }
            Expansion::Shortest { moves, .. } => {
                if moves.contains(move_fingerprint(source, before, mv))? {
                    AfterMove::Expanded
                } else {
                    AfterMove::Transposition
                }
            }
        })
    }
}

/// Returns a number that identifies the position `pos`. The low 64 bits of the number are 0, so that
/// [`move_fingerprint`] can store a move in them.
fn position_fingerprint(source: &impl MoveSource, pos: &Keyed<VariantPosition>) -> u128 {
    u128::from(source.position_id(pos)) << 64
}

/// Returns a number that identifies the move `mv` in the position `pos`. This number is the fingerprint of the position
/// with the Polyglot number of the move in its low 16 bits.
fn move_fingerprint(source: &impl MoveSource, pos: &Keyed<VariantPosition>, mv: Move) -> u128 {
    position_fingerprint(source, pos) | u128::from(BookMove::from(mv).0)
}

/// Parses `text`, which [`push_to_level`](TreeWalk::push_to_level) wrote. Returns the position, and the estimated share
/// of the tree that follows it. The position is `None` if the text is malformed. `start` is any position of the same
/// variant, from which the parser gets the variant.
fn read_from_level(text: &[u8], start: &VariantPosition) -> (Option<VariantPosition>, f64) {
    let (portion, pos) = text.split_first_chunk().expect("a portion comes first");
    let pos = restored(&String::from_utf8_lossy(pos), start);
    (pos, f64::from_le_bytes(*portion))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::{
        Error,
        chess::position::{Variant, read_move},
    };

    /// The moves of White in a game, by Polyglot key, and the number of positions in which a walk requested them.
    struct OneSide {
        moves: BTreeMap<u64, Move>,
        can_lack: bool,
        requests: Cell<usize>,
    }

    impl OneSide {
        fn new(line: &str, can_lack: bool) -> OneSide {
            let mut moves = BTreeMap::new();
            let mut pos = Keyed::new(Variant::Standard.start());
            for san in line.split(' ') {
                let mv = read_move(pos.position(), san.as_bytes()).unwrap();
                if pos.position().turn() == Color::White {
                    moves.insert(pos.key(), mv);
                }
                pos.play(mv);
            }
            OneSide {
                moves,
                can_lack,
                requests: Cell::new(0),
            }
        }
    }

    impl MoveSource for OneSide {
        fn moves(&self, pos: &Keyed<VariantPosition>) -> Result<Vec<TreeMove>> {
            self.requests.set(self.requests.get() + 1);
            let mv = self.moves.get(&pos.key());
            Ok(Vec::from_iter(
                mv.map(|mv| TreeMove::without_evaluation(*mv, 1, None)),
            ))
        }

        fn lacks(&self, key: u64) -> bool {
            self.can_lack && !self.moves.contains_key(&key)
        }
    }

    #[test]
    fn books_of_one_color_are_recognized() {
        let start = || Variant::Standard.start();
        let white = OneSide::new("e4 e5 Nf3 Nc6 Bb5", true);
        assert_eq!(only_color(&white, start()).unwrap(), Some(Color::White));
        let mut black = OneSide::new("e4 e5 Nf3 Nc6 Bb5", true);
        let mut after_e4 = Keyed::new(start());
        after_e4.play(read_move(after_e4.position(), b"e4").unwrap());
        let e5 = read_move(after_e4.position(), b"e5").unwrap();
        black.moves = BTreeMap::from([(after_e4.key(), e5)]);
        assert_eq!(only_color(&black, start()).unwrap(), Some(Color::Black));
        // Moves of both colors, a single move, and no moves.
        let mut both = OneSide::new("e4 e5 Nf3", true);
        both.moves.insert(after_e4.key(), e5);
        for source in [both, OneSide::new("e4", true)] {
            assert_eq!(only_color(&source, start()).unwrap(), None);
        }
        assert_eq!(only_color(&Empty(true), start()).unwrap(), None);
    }

    /// A source without moves. It distinguishes positions by their exact identity if the field is `true`.
    struct Empty(bool);

    impl MoveSource for Empty {
        fn moves(&self, _: &Keyed<VariantPosition>) -> Result<Vec<TreeMove>> {
            Ok(Vec::new())
        }

        fn position_id(&self, pos: &Keyed<VariantPosition>) -> u64 {
            if self.0 {
                pos.exact_identity()
            } else {
                pos.identity()
            }
        }
    }

    #[test]
    fn a_union_distinguishes_the_positions_that_one_of_its_sources_distinguishes() {
        // The king would be in check after e4xd3, so the positions have the same legal moves, but other Polyglot keys.
        let [with, without] = ["d3", "-"].map(|en_passant| {
            let fen = format!("8/8/8/8/k2Pp2Q/8/8/3K4 b - {en_passant} 0 1");
            Keyed::new(Variant::Standard.parse_fen(&fen).unwrap())
        });
        for (first, second, differ) in [
            (false, false, false),
            (true, false, true),
            (false, true, true),
            (true, true, true),
        ] {
            let union = Union(Empty(first), Empty(second));
            let [with, without] = [&with, &without].map(|pos| union.position_id(pos));
            assert_eq!(with != without, differ, "{first} {second}");
        }
    }

    /// A source whose file was changed after it was opened.
    struct Changed;

    impl MoveSource for Changed {
        fn moves(&self, _: &Keyed<VariantPosition>) -> Result<Vec<TreeMove>> {
            Ok(Vec::new())
        }

        fn refuse_changed(&self) -> Result<()> {
            Err(Error::changed("games.obs.db3", "changed while it was read"))
        }
    }

    #[test]
    fn finding_positions_fails_if_the_file_of_the_source_was_changed() {
        let visited = each_position(
            &Changed,
            [Ok(Variant::Standard.start())],
            Memory::default(),
            &Meter::default(),
            &mut |_| Ok(true),
        );
        assert!(visited.unwrap_err().to_string().contains("changed"));
    }

    /// A walk through the moves of one side asks the source which replies of the other side lead to further moves.
    /// Most replies are excluded by the key of the resulting position alone.
    #[test]
    fn replies_that_lead_to_no_move_are_not_played() {
        const LINE: &str = "e4 e5 Nf3 Nc6 Bb5 a6 Ba4 Nf6 O-O Be7 Re1 b5 Bb3 d6 c3";
        type SourceWalk = fn(&OneSide) -> Result<u64>;
        let one_side: SourceWalk = |source| {
            let start = Variant::Standard.start();
            let meter = Meter::default();
            let tree = Tree::new(
                LinesOf(source, Color::White),
                start,
                Limits::default(),
                &meter,
            );
            let mut positions = 0;
            tree.walk(Order::Positions, &mut |event| {
                positions += u64::from(matches!(event, TreeEvent::Position { .. }));
                Ok(())
            })?;
            Ok(positions)
        };
        let all_lines: SourceWalk = |source| {
            let starts = [Ok(Variant::Standard.start())];
            let mut positions = 0;
            let memory = Memory::default();
            each_position(source, starts, memory, &Meter::default(), &mut |_| {
                positions += 1;
                Ok(true)
            })?;
            Ok(positions)
        };
        let joined: SourceWalk = |source| {
            let pos = Keyed::new(Variant::Standard.start());
            let mut after = pos.clone();
            after.play(read_move(pos.position(), b"e4").unwrap());
            let lines = LinesOf(Union(source, source), Color::White);
            Ok(lines.moves(&after)?.len() as u64)
        };
        for walk in [one_side, all_lines, joined] {
            let [with, without] = [true, false].map(|can_lack| OneSide::new(LINE, can_lack));
            assert_eq!(walk(&with).unwrap(), walk(&without).unwrap());
            let [with, without] = [with, without].map(|source| source.requests.into_inner());
            assert!(2 * with < without, "{with} requests instead of {without}");
        }
    }
}
