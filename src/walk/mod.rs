//! Walking from a position through the moves of a source: along a [`Tree`], each position once, or [level by
//! level](levels).

mod levels;
mod tree;

use std::cell::Cell;

use shakmaty::{Color, Move, Position, variant::VariantPosition};

pub(crate) use self::levels::levels;
pub use self::tree::{Branch, Event, Order, Tree};
use crate::{
    error::Result,
    evals::{Eval, Evals},
    position::Keyed,
    progress::Meter,
    sort::Memory,
    tally::Stats,
};

/// A move of a tree.
#[derive(Clone, PartialEq, Debug)]
pub struct TreeMove {
    /// The move.
    pub mv: Move,
    /// Its weight; of a database the one that it has in a book before scaling, of an index the games.
    pub weight: u64,
    /// The games of a database or an index, for the side that moves.
    pub stats: Option<Stats>,
    /// Whether the source has the move. It does not have it where the tree [goes on by any reply](Replies).
    pub is_known: bool,
    /// The evaluation of the position after it, if [evaluations](Evaluated) are asked for.
    pub eval: Option<Eval>,
}

impl TreeMove {
    /// A move that the source has.
    pub(crate) fn known(mv: Move, weight: u64, stats: Option<Stats>) -> TreeMove {
        TreeMove {
            mv,
            weight,
            stats,
            is_known: true,
            eval: None,
        }
    }

    /// How many games it has; without games, its weight.
    pub(crate) fn games(&self) -> u64 {
        self.stats.map_or(self.weight, Stats::games)
    }
}

/// Knows the moves of positions.
pub trait Source {
    /// The legal moves that are known in a position, each once, the best first.
    ///
    /// # Errors
    ///
    /// A file that cannot be read.
    fn moves(&self, pos: &Keyed<VariantPosition>) -> Result<Vec<TreeMove>>;

    /// Returns the number by which a walk recognizes a position that it met before: the identity, or, for a
    /// source whose moves are stored by Polyglot key, the exact identity.
    fn node(&self, pos: &Keyed<VariantPosition>) -> u64 {
        pos.identity()
    }
}

/// A source that also has a move where the other has none: each after which the other knows one. So the book of one
/// side goes on after the replies of the other.
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
}

/// The lines of a side: what the source knows for it, against each reply after which the source knows a move.
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
}

/// All ways through a source: by its moves, or any reply where it has none, and along the lines of both sides.
pub(crate) fn every_way<'a>(source: &'a impl Source) -> [Box<dyn Source + 'a>; 3] {
    [
        Box::new(Replies(source)),
        Box::new(LinesOf(source, Color::White)),
        Box::new(LinesOf(source, Color::Black)),
    ]
}

/// Walks through all ways of a source, from each of the starts, until `visit` answers that nothing is left to look for. It
/// may come to a position several times. `memory` is for one walk.
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
        for way in every_way(&source) {
            if is_done.get() {
                break;
            }
            let tree = Tree::new(way, start.clone(), limits.clone(), meter);
            tree.walk(Order::Positions, &mut |event| {
                if let Event::Position { pos, .. } = event {
                    is_done.set(!visit(pos)?);
                }
                Ok(())
            })?;
        }
    }
    Ok(())
}

/// A source that knows nothing any more when nothing is left to look for, so that the walk ends.
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

    /// The positions are looked for by their Polyglot keys.
    fn node(&self, pos: &Keyed<VariantPosition>) -> u64 {
        pos.exact_identity()
    }
}

/// The legal moves after which a source knows a move, with what is known of them; those that were played most come
/// first. Moves that are not known follow, those that were answered most first.
fn answered(
    source: &impl Source,
    pos: &Keyed<VariantPosition>,
    known: &[TreeMove],
) -> Result<Vec<TreeMove>> {
    let mut replies = Vec::new();
    for mv in pos.position().legal_moves() {
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
    // A known one was played here, others only lead where games came by other moves.
    replies.sort_by_key(|(played, reply)| std::cmp::Reverse((reply.is_known, *played)));
    Ok(replies.into_iter().map(|(_, reply)| reply).collect())
}

/// The moves of a source with the evaluations of a store.
#[derive(Debug)]
pub struct Evaluated<S>(pub S, pub Evals);

impl<S: Source> Source for Evaluated<S> {
    fn moves(&self, pos: &Keyed<VariantPosition>) -> Result<Vec<TreeMove>> {
        let Evaluated(source, evals) = self;
        let mut moves = source.moves(pos)?;
        for mv in &mut moves {
            mv.eval = evals.after(pos.position(), mv.mv)?;
        }
        Ok(moves)
    }

    fn node(&self, pos: &Keyed<VariantPosition>) -> u64 {
        self.0.node(pos)
    }
}

/// The moves of two sources.
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
}

impl<S: Source + ?Sized> Source for &S {
    fn moves(&self, pos: &Keyed<VariantPosition>) -> Result<Vec<TreeMove>> {
        (**self).moves(pos)
    }

    fn node(&self, pos: &Keyed<VariantPosition>) -> u64 {
        (**self).node(pos)
    }
}

impl<S: Source + ?Sized> Source for Box<S> {
    fn moves(&self, pos: &Keyed<VariantPosition>) -> Result<Vec<TreeMove>> {
        (**self).moves(pos)
    }

    fn node(&self, pos: &Keyed<VariantPosition>) -> u64 {
        (**self).node(pos)
    }
}

/// How far a tree goes. The default is every move, in lines of up to [`Limits::LONGEST`] half-moves.
#[derive(Clone, PartialEq, Default, Debug)]
pub struct Limits {
    /// The tree has all that can be reached in this many half-moves, each position on its shortest path. To find
    /// these, it is walked through once before. Without it, a position is where the walk comes to it first.
    pub max_ply: Option<usize>,
    /// The least weight of a move.
    pub min_weight: u64,
    /// The least share of the weights of its position, in percent.
    pub min_share: f64,
    /// The fewest games of a move, if the source counts games.
    pub min_game: u64,
    /// The most moves of the whole tree, none for any number.
    pub moves: Option<u64>,
    /// What telling positions that were met before may take; past it, they go to temporary files.
    pub memory: Memory,
}

/// A move that is within the limits.
#[derive(Clone, Debug)]
struct KeptMove {
    pub mv: TreeMove,
    /// Its share of the weights of the position, in percent.
    pub share: f64,
    /// How much of the whole tree is likely to be after it, from 0 to 1.
    pub portion: f64,
}

impl Limits {
    /// The most half-moves that a line may have.
    pub const LONGEST: usize = 4096;

    /// Half-moves of the longest line.
    fn plies(&self) -> usize {
        self.max_ply.unwrap_or(Limits::LONGEST).min(Limits::LONGEST)
    }

    /// The moves of a position that are within the limits, which have a portion of the tree together.
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
        // A move of no weight has something after it too.
        let size = |share: f64| share + 1.0;
        let sizes: f64 = admitted.iter().map(|(_, share)| size(*share)).sum();
        let choice = |(mv, share)| KeptMove {
            mv,
            share,
            portion: portion * size(share) / sizes,
        };
        Ok(admitted.into_iter().map(choice).collect())
    }

    fn admits(&self, mv: &TreeMove, share: f64) -> bool {
        let has_games = mv.stats.is_none_or(|stats| stats.games() >= self.min_game);
        !mv.is_known || (mv.weight >= self.min_weight && share >= self.min_share && has_games)
    }
}
