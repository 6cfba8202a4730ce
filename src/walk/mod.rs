//! Walks from a position through the moves of a source.
//!
//! A [`Source`] returns the moves of a position. A [`Tree`] visits all positions that its moves reach and continues
//! each of them once, in one of several [orders](Order); [`tree`] visits them breadth first. [`Limits`] bound how far
//! a walk goes. Wrappers such as [`Replies`] and [`LinesOf`] add moves to a source that has the moves of one side
//! alone.

mod tree;

use std::cell::Cell;

use shakmaty::{Color, Move, Position, variant::VariantPosition};

pub(crate) use self::tree::levels;
pub use self::tree::{Branch, Order, Tree, TreeEvent};
use crate::{
    counts::Wdl,
    error::Result,
    evals::{Eval, Evals},
    position::Keyed,
    progress::Meter,
    storage::sort::Memory,
};

/// A move of a tree.
#[derive(Clone, PartialEq, Debug)]
pub struct TreeMove {
    /// The move.
    pub mv: Move,
    /// The weight of the move. In a database it is the weight that a book would give the move, before scaling; in an
    /// index it is the number of games.
    pub weight: u64,
    /// The results of the side that moves, or `None` if the source has weights alone.
    pub stats: Option<Wdl>,
    /// The number of games without a result, which are not in `stats`. It is 0 if the source does not tell them from
    /// draws.
    pub unfinished: u64,
    /// Whether the source has the move. If not, [`Replies`] or [`LinesOf`] added it.
    pub is_known: bool,
    /// The evaluation of the position after the move, or `None` if it is unknown or [evaluations](EvaluatedSource) are not
    /// used.
    pub eval: Option<Eval>,
}

impl TreeMove {
    /// Creates a move that the source has, without an evaluation.
    pub(crate) fn known(mv: Move, weight: u64, stats: Option<Wdl>) -> TreeMove {
        TreeMove {
            mv,
            weight,
            stats,
            unfinished: 0,
            is_known: true,
            eval: None,
        }
    }

    /// Returns the number of games of the move, with those without a result, or its weight if the source has no results.
    pub(crate) fn games(&self) -> u64 {
        self.stats
            .map_or(self.weight, |stats| stats.games() + self.unfinished)
    }
}

/// A source of the moves of positions.
pub trait Source {
    /// Returns the legal moves that the source has in a position. Each move occurs once, and the best moves come first.
    ///
    /// # Errors
    ///
    /// Returns an error if a file cannot be read.
    fn moves(&self, pos: &Keyed<VariantPosition>) -> Result<Vec<TreeMove>>;

    /// Returns the number by which a walk recognizes a position that it visited before. It is the identity of the
    /// position; a source that stores moves by Polyglot key returns the exact identity.
    fn node(&self, pos: &Keyed<VariantPosition>) -> u64 {
        pos.identity()
    }

    /// Returns `true` if the source certainly has no move in positions with this Polyglot key. A source that cannot tell without
    /// reading a file returns `false`.
    fn lacks(&self, _key: u64) -> bool {
        false
    }

    /// Returns an error if another program has changed the file of the source since it was opened, so that moves from before and
    /// after the change may be mixed. A source whose reads fail after a change, or one in memory, has nothing to check.
    ///
    /// # Errors
    ///
    /// Returns an error if the file was changed, or if its state cannot be read.
    fn refuse_changed(&self) -> Result<()> {
        Ok(())
    }
}

/// A source that adds replies to positions in which the inner source has no moves: each legal move after which the
/// inner source has a move. So a walk through the book of one side goes on after the replies of the other.
#[derive(Debug)]
pub struct Replies<S>(pub S);

impl<S: Source> Source for Replies<S> {
    fn moves(&self, pos: &Keyed<VariantPosition>) -> Result<Vec<TreeMove>> {
        let known = self.0.moves(pos)?;
        if known.is_empty() {
            answered(&self.0, pos, &[])
        } else {
            Ok(known)
        }
    }

    fn node(&self, pos: &Keyed<VariantPosition>) -> u64 {
        self.0.node(pos)
    }

    fn refuse_changed(&self) -> Result<()> {
        self.0.refuse_changed()
    }
}

/// The lines of one side: its moves that the inner source has, and each reply of the other side after which the inner
/// source has a move.
#[derive(Debug)]
pub struct LinesOf<S>(pub S, pub Color);

impl<S: Source> Source for LinesOf<S> {
    fn moves(&self, pos: &Keyed<VariantPosition>) -> Result<Vec<TreeMove>> {
        let LinesOf(source, side) = self;
        let known = source.moves(pos)?;
        if pos.position().turn() == *side {
            return Ok(known);
        }
        answered(source, pos, &known)
    }

    fn node(&self, pos: &Keyed<VariantPosition>) -> u64 {
        self.0.node(pos)
    }

    fn refuse_changed(&self) -> Result<()> {
        self.0.refuse_changed()
    }
}

/// Returns sources that together lead to every position that a source can mean: with replies where it has no moves, and
/// with the lines of each side.
pub(crate) fn sources_of_all_lines<'a>(source: &'a impl Source) -> [Box<dyn Source + 'a>; 3] {
    [
        Box::new(Replies(source)),
        Box::new(LinesOf(source, Color::White)),
        Box::new(LinesOf(source, Color::Black)),
    ]
}

/// Calls `visit` with each position that the lines of a source lead to from the starts, until `visit` returns `false`.
///
/// The lines are those of [`sources_of_all_lines`]. A position may be visited several times. `memory` is the budget of
/// one walk.
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

/// A source that returns no more moves once `is_done` is set, so that the walk ends.
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

    /// Callers look positions up by their Polyglot keys, so positions with different keys must be different.
    fn node(&self, pos: &Keyed<VariantPosition>) -> u64 {
        pos.exact_identity()
    }
}

/// Returns the legal moves that lead to a position in which the source contains moves. Moves of `known` come first, sorted
/// by their games in descending order. The other moves follow, sorted in descending order by the games of all replies to them.
fn answered(
    source: &impl Source,
    pos: &Keyed<VariantPosition>,
    known: &[TreeMove],
) -> Result<Vec<TreeMove>> {
    let mut replies = Vec::new();
    for mv in pos.position().legal_moves() {
        // Most legal moves lead to no position of the source, and are not worth playing.
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
                    is_known: false,
                    ..TreeMove::known(mv, 0, None)
                };
                (answers.iter().map(TreeMove::games).sum(), reply)
            }
        };
        replies.push(reply);
    }
    // A known move was played in this position. The others only lead to positions that games reached by other moves.
    replies.sort_by_key(|(played, reply)| std::cmp::Reverse((reply.is_known, *played)));
    Ok(replies.into_iter().map(|(_, reply)| reply).collect())
}

/// A source that adds the evaluation of the position after each move to the moves of the inner source.
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

    fn node(&self, pos: &Keyed<VariantPosition>) -> u64 {
        self.0.node(pos)
    }

    fn refuse_changed(&self) -> Result<()> {
        self.0.refuse_changed()
    }
}

/// The union of two sources. If both have a move, the first source's is returned.
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

    fn node(&self, pos: &Keyed<VariantPosition>) -> u64 {
        self.0.node(pos)
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

    fn node(&self, pos: &Keyed<VariantPosition>) -> u64 {
        (**self).node(pos)
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

    fn node(&self, pos: &Keyed<VariantPosition>) -> u64 {
        (**self).node(pos)
    }

    fn lacks(&self, key: u64) -> bool {
        (**self).lacks(key)
    }

    fn refuse_changed(&self) -> Result<()> {
        (**self).refuse_changed()
    }
}

/// The limits of a tree. By default it has every move, in lines of up to [`Limits::LONGEST`] half-moves.
#[derive(Clone, PartialEq, Default, Debug)]
pub struct Limits {
    /// The maximum length of lines in half-moves. With it, the tree has every position that can be reached in so many
    /// half-moves, each on a shortest path, which takes a second walk. `None` continues each position where the walk
    /// first meets it.
    pub max_ply: Option<usize>,
    /// The minimum weight of a move.
    pub min_weight: u64,
    /// The minimum share of a move in the weights of its position, in percent.
    pub min_share: f64,
    /// The minimum number of games of a move. It does not apply to a source without results.
    pub min_game: u64,
    /// The maximum number of moves of the whole tree, or `None` for no limit.
    pub moves: Option<u64>,
    /// The memory for recognizing visited positions; more spills to temporary files.
    pub memory: Memory,
}

/// A move that is within the limits.
#[derive(Clone, Debug)]
struct KeptMove {
    pub mv: TreeMove,
    /// The share of the move in the weights of the position, in percent.
    pub share: f64,
    /// The estimated share of the whole tree that follows the move, from 0 to 1. It measures progress.
    pub portion: f64,
}

impl Limits {
    /// The maximum length of a line without [`Limits::max_ply`], in half-moves.
    pub const LONGEST: usize = 4096;

    /// Returns the maximum length of a line, in half-moves.
    fn plies(&self) -> usize {
        self.max_ply.unwrap_or(Limits::LONGEST).min(Limits::LONGEST)
    }

    /// Returns the moves of a position that are within the limits. `portion` is the estimated share of the tree that
    /// follows the position; it is divided among the moves.
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
        // Moves follow a move of weight 0 too, so its size is not 0.
        let size = |share: f64| share + 1.0;
        let sizes: f64 = admitted.iter().map(|(_, share)| size(*share)).sum();
        let choice = |(mv, share)| KeptMove {
            mv,
            share,
            portion: portion * size(share) / sizes,
        };
        Ok(admitted.into_iter().map(choice).collect())
    }

    /// Returns `true` if a move is within the limits. Replies that the source does not have always are.
    fn admits(&self, mv: &TreeMove, share: f64) -> bool {
        let has_games = mv.stats.is_none() || mv.games() >= self.min_game;
        !mv.is_known || (mv.weight >= self.min_weight && share >= self.min_share && has_games)
    }
}
