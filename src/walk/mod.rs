//! Walks from a position through the moves of a source.
//!
//! A [`Source`] returns the moves of a position. A [`Tree`] visits all positions that these moves reach, in one
//! of several [orders](Order). If several moves lead to the same position, the tree continues after only one of
//! them. [`tree`] also contains a breadth-first walk. [`Limits`] bound how far a walk goes. Wrappers such as
//! [`Replies`] and [`LinesOf`] add the opponent's moves to a source that contains the moves of only one side.

mod tree;

use std::cell::Cell;

use rustc_hash::{FxHashMap, FxHashSet};
use shakmaty::{Color, Move, Position, variant::VariantPosition};

pub(crate) use self::tree::walk_breadth_first;
pub use self::tree::{Branch, Order, Tree, TreeEvent};
use crate::{
    counts::Wdl,
    error::Result,
    evals::{Eval, Evals},
    position::Keyed,
    progress::Meter,
    storage::sort::Memory,
};

/// A move of a [`Source`], such as a book or a database, with its weight and its results.
#[derive(Clone, PartialEq, Debug)]
pub struct TreeMove {
    /// The move.
    pub mv: Move,
    /// The weight of the move. In a database, it is the weight that a book would assign to the move, before scaling.
    /// In an index, it is the number of games.
    pub weight: u64,
    /// The results from the perspective of the side that moves, or `None` if the source stores only weights.
    pub stats: Option<Wdl>,
    /// The number of unfinished games, which are not part of `stats`. It is 0 if the source counts them as draws.
    pub unfinished: u64,
    /// Whether the source contains the move. If not, [`Replies`] or [`LinesOf`] added the move.
    pub is_in_source: bool,
    /// The evaluation of the position after the move, or `None` if it is unknown or the source has no
    /// [evaluations](EvaluatedSource).
    pub eval: Option<Eval>,
}

impl TreeMove {
    /// Creates a move that the source contains, without an evaluation. `weight` is the weight of the move in the
    /// source. `stats` contains its results from the perspective of the side that moves, or `None` if the source
    /// stores only weights.
    pub(crate) fn without_evaluation(mv: Move, weight: u64, stats: Option<Wdl>) -> TreeMove {
        TreeMove {
            mv,
            weight,
            stats,
            unfinished: 0,
            is_in_source: true,
            eval: None,
        }
    }

    /// Returns the number of games in which the move was played, including unfinished games. If the source of the move
    /// stores no results, returns the weight of the move instead.
    pub(crate) fn games(&self) -> u64 {
        self.stats
            .map_or(self.weight, |stats| stats.games() + self.unfinished)
    }
}

/// A source of opening moves, such as a book, a database or an index. It returns the moves of a given position.
pub trait Source {
    /// Returns the legal moves that the source contains for the position `pos`. The best moves come first, and no
    /// move occurs twice.
    ///
    /// # Errors
    ///
    /// Returns an error if a file cannot be read.
    fn moves(&self, pos: &Keyed<VariantPosition>) -> Result<Vec<TreeMove>>;

    /// Returns a number that identifies the position `pos`. A walk uses it to recognize positions that it has already
    /// visited. By default, returns the [identity](Keyed::identity), which ignores an en passant right that no legal
    /// move uses.
    ///
    /// Two positions that differ only in such a right can have different Polyglot keys. A source that stores moves by
    /// Polyglot key may contain different moves for them. Such a source returns the [exact
    /// identity](Keyed::exact_identity) instead.
    fn position_id(&self, pos: &Keyed<VariantPosition>) -> u64 {
        pos.identity()
    }

    /// Returns `true` only if the source certainly contains no move for positions with the given Polyglot key. The
    /// function reads no file, so it may return `false` even if the source contains no such move. By default, returns
    /// `false`.
    fn lacks(&self, _key: u64) -> bool {
        false
    }

    /// Returns an error if another program has changed the file of the source since it was opened. A walk calls this
    /// function at its end, because it may have read some moves before such a change and others after it. By default,
    /// does nothing.
    ///
    /// # Errors
    ///
    /// Returns an error if the file was changed, or if its state cannot be read.
    fn refuse_changed(&self) -> Result<()> {
        Ok(())
    }
}

/// A source that adds replies to the inner source `S`. If `S` contains no moves for a position, this source returns
/// every legal move after which `S` contains moves. In all other positions, it returns the moves of `S`. A walk through
/// a book for one side can thus continue after any reply of the opponent to which the book has an answer.
#[derive(Debug)]
pub struct Replies<S>(pub S);

impl<S: Source> Source for Replies<S> {
    fn moves(&self, pos: &Keyed<VariantPosition>) -> Result<Vec<TreeMove>> {
        let known = self.0.moves(pos)?;
        if known.is_empty() {
            replies_with_answers(&self.0, pos, &[])
        } else {
            Ok(known)
        }
    }

    fn position_id(&self, pos: &Keyed<VariantPosition>) -> u64 {
        self.0.position_id(pos)
    }

    fn refuse_changed(&self) -> Result<()> {
        self.0.refuse_changed()
    }
}

/// A source of the lines that a player prepares for one color, which is the second field. If this color is to move, it
/// returns the moves of the inner source `S`. If the opponent is to move, it returns every legal move to which `S`
/// contains an answer.
#[derive(Debug)]
pub struct LinesOf<S>(pub S, pub Color);

impl<S: Source> Source for LinesOf<S> {
    fn moves(&self, pos: &Keyed<VariantPosition>) -> Result<Vec<TreeMove>> {
        let LinesOf(source, side) = self;
        let known = source.moves(pos)?;
        if pos.position().turn() == *side {
            return Ok(known);
        }
        replies_with_answers(source, pos, &known)
    }

    fn position_id(&self, pos: &Keyed<VariantPosition>) -> u64 {
        self.0.position_id(pos)
    }

    fn refuse_changed(&self) -> Result<()> {
        self.0.refuse_changed()
    }
}

/// Creates three sources from `source`: [`Replies`], and [`LinesOf`] for White and for Black. A book for one side
/// contains no moves of the opponent, and these sources add them in different ways. Together, walks through the three
/// sources reach every position that the lines of `source` can reach.
pub(crate) fn sources_of_all_lines<'a>(source: &'a impl Source) -> [Box<dyn Source + 'a>; 3] {
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
/// A position may be visited several times. `memory` is the memory budget, and `meter` receives the progress.
pub(crate) fn each_position(
    source: &impl Source,
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
    source: &impl Source,
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

/// A source that returns the moves of the inner source `S` until `is_done` is set. After that, it returns no moves. A
/// walk through this source can thus be ended early.
struct UntilDone<'a, S> {
    source: &'a S,
    is_done: &'a Cell<bool>,
}

impl<S: Source> Source for UntilDone<'_, S> {
    fn moves(&self, pos: &Keyed<VariantPosition>) -> Result<Vec<TreeMove>> {
        match self.is_done.get() {
            true => Ok(Vec::new()),
            false => self.source.moves(pos),
        }
    }

    /// Returns the exact identity of the position. The inner source may store moves by Polyglot key, and may then
    /// contain different moves for two positions that have the same identity but different keys. Such positions have
    /// different exact identities.
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
/// moves that `source` itself contains in `pos`. Moves in `known` that have an answer come first, in descending order
/// of their numbers of games. The other moves follow, in descending order of the total number of games of their
/// answers.
fn replies_with_answers(
    source: &impl Source,
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

/// A source that returns the moves of the inner source `S` with evaluations. The evaluation of a move is the stored
/// evaluation of the position after it.
#[derive(Debug)]
pub struct EvaluatedSource<S>(pub S, pub Evals);

impl<S: Source> Source for EvaluatedSource<S> {
    fn moves(&self, pos: &Keyed<VariantPosition>) -> Result<Vec<TreeMove>> {
        let EvaluatedSource(source, evals) = self;
        let mut moves = source.moves(pos)?;
        for mv in &mut moves {
            mv.eval = evals.after(pos.position(), mv.mv)?;
        }
        Ok(moves)
    }

    fn position_id(&self, pos: &Keyed<VariantPosition>) -> u64 {
        self.0.position_id(pos)
    }

    fn lacks(&self, key: u64) -> bool {
        self.0.lacks(key)
    }

    fn refuse_changed(&self) -> Result<()> {
        self.0.refuse_changed()
    }
}

/// A source that combines the moves of two inner sources. If both contain the same move, it returns the move with the
/// data of the first source.
#[derive(Debug)]
pub struct Union<A, B>(pub A, pub B);

impl<A: Source, B: Source> Source for Union<A, B> {
    fn moves(&self, pos: &Keyed<VariantPosition>) -> Result<Vec<TreeMove>> {
        let mut moves = self.0.moves(pos)?;
        for mv in self.1.moves(pos)? {
            if !moves.iter().any(|other| other.mv == mv.mv) {
                moves.push(mv);
            }
        }
        Ok(moves)
    }

    /// Returns the id that both inner sources give to the position. If their ids differ, one of the sources
    /// distinguishes positions by their Polyglot keys. In this case, returns the exact identity, which also
    /// distinguishes these positions.
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

impl<S: Source + ?Sized> Source for &S {
    fn moves(&self, pos: &Keyed<VariantPosition>) -> Result<Vec<TreeMove>> {
        (**self).moves(pos)
    }

    fn position_id(&self, pos: &Keyed<VariantPosition>) -> u64 {
        (**self).position_id(pos)
    }

    fn lacks(&self, key: u64) -> bool {
        (**self).lacks(key)
    }

    fn refuse_changed(&self) -> Result<()> {
        (**self).refuse_changed()
    }
}

impl<S: Source + ?Sized> Source for Box<S> {
    fn moves(&self, pos: &Keyed<VariantPosition>) -> Result<Vec<TreeMove>> {
        (**self).moves(pos)
    }

    fn position_id(&self, pos: &Keyed<VariantPosition>) -> u64 {
        (**self).position_id(pos)
    }

    fn lacks(&self, key: u64) -> bool {
        (**self).lacks(key)
    }

    fn refuse_changed(&self) -> Result<()> {
        (**self).refuse_changed()
    }
}

/// The limits that determine which moves and lines belong to a tree of opening moves. By default, the tree contains
/// every move of its source, in lines of up to [`Limits::MAX_PLIES`] half-moves.
#[derive(Clone, PartialEq, Default, Debug)]
pub struct Limits {
    /// The greatest length of a line in half-moves. If it is set, an additional walk finds every position within this
    /// length, and the tree continues each position at the end of a shortest line. If it is `None`, the tree
    /// continues each position where the walk first reaches it.
    pub max_ply: Option<usize>,
    /// The minimum weight of a move.
    pub min_weight: u64,
    /// The minimum share of a move in the total weight of the moves of its position, in percent.
    pub min_share: f64,
    /// The minimum number of games of a move. It does not apply to a source without results.
    pub min_game: u64,
    /// The maximum number of moves of the whole tree, or `None` for no limit.
    pub moves: Option<u64>,
    /// The memory budget for recognizing visited positions. Further data is spilled to temporary files.
    pub memory: Memory,
}

/// A move that the limits of a tree allow, with two shares: the share of the move in the total weight of its position,
/// and the estimated share of the whole tree that follows the move.
#[derive(Clone, Debug)]
struct KeptMove {
    pub mv: TreeMove,
    /// The share of the move in the total weight of the moves of its position, in percent.
    pub share: f64,
    /// The estimated share of the whole tree that follows the move, from 0 to 1. It is used to measure progress.
    pub portion: f64,
}

impl Limits {
    /// The maximum length of any line, in half-moves. It applies if [`Limits::max_ply`] is greater or not set.
    pub const MAX_PLIES: usize = 4096;

    /// Returns the maximum length of a line that these limits allow, in half-moves.
    fn plies(&self) -> usize {
        self.max_ply
            .unwrap_or(Limits::MAX_PLIES)
            .min(Limits::MAX_PLIES)
    }

    /// Returns the moves of a position that are within the limits. `portion` is the estimated share of the whole tree
    /// that follows the position, from 0 to 1. It is divided among the returned moves, in order to measure the
    /// progress.
    fn choices(
        &self,
        source: &impl Source,
        pos: &Keyed<VariantPosition>,
        portion: f64,
    ) -> Result<Vec<KeptMove>> {
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
        let choice = |(mv, share)| KeptMove {
            mv,
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
        let has_games = mv.stats.is_none() || mv.games() >= self.min_game;
        !mv.is_in_source || (mv.weight >= self.min_weight && share >= self.min_share && has_games)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::{
        Error,
        position::{Variant, read_move},
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

    impl Source for OneSide {
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

    /// A source without moves. It distinguishes positions by their exact identity if the field is `true`.
    struct Empty(bool);

    impl Source for Empty {
        fn moves(&self, _: &Keyed<VariantPosition>) -> Result<Vec<TreeMove>> {
            Ok(Vec::new())
        }

        fn position_id(&self, pos: &Keyed<VariantPosition>) -> u64 {
            match self.0 {
                true => pos.exact_identity(),
                false => pos.identity(),
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

    impl Source for Changed {
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
        type Walk = fn(&OneSide) -> Result<u64>;
        let one_side: Walk = |source| {
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
        let all_lines: Walk = |source| {
            let starts = [Ok(Variant::Standard.start())];
            let mut positions = 0;
            let memory = Memory::default();
            each_position(source, starts, memory, &Meter::default(), &mut |_| {
                positions += 1;
                Ok(true)
            })?;
            Ok(positions)
        };
        let joined: Walk = |source| {
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
