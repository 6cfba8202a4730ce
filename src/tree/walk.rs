//! Going through a tree, each position once.

use std::{collections::HashMap, rc::Rc};

use shakmaty::{Move, variant::VariantPosition};

use super::source::{Source, TreeMove};
use crate::{
    error::Result,
    position::Keyed,
    sort::{Memory, Seen},
};

/// How far a tree goes. The default is every move, in lines of up to 1024 half-moves.
#[derive(Clone, PartialEq, Debug)]
pub struct Limits {
    /// Half-moves of the longest line, at most [`Limits::LONGEST`].
    pub max_ply: usize,
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

impl Limits {
    /// The most half-moves that a line may have.
    pub const LONGEST: usize = 4096;
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            max_ply: 1024,
            min_weight: 0,
            min_share: 0.0,
            min_game: 0,
            moves: None,
            memory: Memory::default(),
        }
    }
}

/// In which order moves are met.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Order {
    /// A move, then all behind it, then the next of its position.
    Lines,
    /// A move, then the others of its position as variations with all behind them, then what is behind the move.
    Variations {
        /// How many variations may stand in one another. What would be deeper becomes a game of its own.
        deepest: usize,
        /// How many moves a game may have before what is left of it becomes games of their own.
        longest: u64,
    },
    /// All moves of a position, then all behind each.
    Positions,
}

/// A move that a walk meets.
#[derive(Clone, Debug)]
pub struct Branch<'a> {
    /// The position before it.
    pub pos: &'a Keyed<VariantPosition>,
    /// Half-moves from the start to that position.
    pub ply: usize,
    /// The move.
    pub mv: &'a TreeMove,
    /// Its share of the weights of the position, in percent.
    pub share: f64,
    /// Whether the position behind it was met before, and the tree does not go on here.
    pub is_transposition: bool,
}

/// What a walk meets.
#[derive(Clone, Debug)]
pub enum Event<'a> {
    /// A game begins that goes to its first new move by the moves of a line from the start.
    Game(&'a [Move]),
    /// The moves of a position follow: of [`Order::Positions`] alone.
    Position {
        /// The position.
        pos: &'a Keyed<VariantPosition>,
        /// Half-moves from the start to it.
        ply: usize,
    },
    /// A move.
    Move(Branch<'a>),
    /// A variation begins, an alternative to the last move of the same depth.
    Open,
    /// The variation ends.
    Close,
}

/// Walks from a position and calls `f` with what it meets. Each position is gone on from once: what was met first has
/// what is behind it.
///
/// # Errors
///
/// What the source and `f` answer, or a temporary file that cannot be written.
pub fn walk(
    source: &impl Source,
    start: &VariantPosition,
    limits: &Limits,
    order: Order,
    f: &mut dyn FnMut(Event<'_>) -> Result<()>,
) -> Result<()> {
    let start = Rc::new(Node {
        pos: Keyed::new(start.clone()),
        ply: 0,
        nesting: 0,
        before: None,
    });
    let mut walk = Walk {
        source,
        limits,
        order,
        seen: Seen::new(limits.memory.clone()),
        left: limits.moves.unwrap_or(u64::MAX),
        tasks: Vec::new(),
        in_game: 0,
        deferred: Vec::new(),
        f,
    };
    walk.claim(&start)?;
    walk.deferred.push(Task::Expand(start));
    // Games may defer others. The last goes first, so that few wait.
    while let Some(task) = walk.deferred.pop() {
        walk.game(task)?;
    }
    Ok(())
}

/// A position on the way.
#[derive(Clone)]
struct Node {
    pos: Keyed<VariantPosition>,
    ply: usize,
    /// How many variations it stands in.
    nesting: usize,
    /// The position before it and the move from there.
    before: Option<(Rc<Node>, Move)>,
}

impl Node {
    /// The moves from the start.
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

/// What is still to be done, the last first.
enum Task {
    /// The moves of a position.
    Expand(Rc<Node>),
    /// A move of a position with its share, in so many variations, and what is behind it.
    Branch(Rc<Node>, TreeMove, f64, usize),
    Open,
    Close,
}

struct Walk<'a, S> {
    source: &'a S,
    limits: &'a Limits,
    order: Order,
    seen: Seen,
    /// How many more moves there may be.
    left: u64,
    tasks: Vec<Task>,
    /// Moves in the present game.
    in_game: u64,
    /// What becomes games of their own.
    deferred: Vec<Task>,
    f: &'a mut dyn FnMut(Event<'_>) -> Result<()>,
}

impl<S: Source> Walk<'_, S> {
    /// Goes through a game that begins with a task.
    fn game(&mut self, task: Task) -> Result<()> {
        let line = match &task {
            Task::Expand(node) => node.line(),
            Task::Branch(node, ..) => node.line(),
            Task::Open | Task::Close => unreachable!("a game begins with a position or a move"),
        };
        let has_moves = match &task {
            // A position without moves of its own is no game.
            Task::Expand(node) => line.is_empty() || !self.moves(node)?.is_empty(),
            _ => self.left > 0,
        };
        if !has_moves {
            return Ok(());
        }
        (self.f)(Event::Game(&line))?;
        self.in_game = 0;
        self.tasks.push(task);
        let first = self.deferred.len();
        while let Some(task) = self.tasks.pop() {
            self.run(task)?;
        }
        // The first that was deferred is the first to go on with.
        self.deferred[first..].reverse();
        Ok(())
    }

    fn run(&mut self, task: Task) -> Result<()> {
        let is_full =
            matches!(self.order, Order::Variations { longest, .. } if self.in_game >= longest);
        match task {
            Task::Open if self.left == 0 || is_full => {
                // Without its move, a variation would be empty.
                let branch = self.tasks.pop();
                self.tasks.pop();
                if let Some(Task::Branch(node, mv, share, _)) = branch {
                    self.deferred.push(Task::Branch(node, mv, share, 0));
                }
            }
            Task::Open => (self.f)(Event::Open)?,
            Task::Close => (self.f)(Event::Close)?,
            Task::Branch(node, mv, share, nesting) => {
                let behind = self.meet(&node, &mv, share, nesting)?;
                self.tasks.extend(behind.map(Task::Expand));
            }
            Task::Expand(node) if is_full => {
                let node = Rc::unwrap_or_clone(node);
                let outside = Node { nesting: 0, ..node };
                self.deferred.push(Task::Expand(Rc::new(outside)));
            }
            Task::Expand(node) => self.expand(&node)?,
        }
        Ok(())
    }

    fn expand(&mut self, node: &Rc<Node>) -> Result<()> {
        let moves = self.moves(node)?;
        let nesting = node.nesting;
        match self.order {
            Order::Lines => {
                let branches = moves.into_iter().rev();
                let branch = |(mv, share)| Task::Branch(Rc::clone(node), mv, share, nesting);
                self.tasks.extend(branches.map(branch));
            }
            Order::Positions => {
                if !moves.is_empty() && self.left > 0 {
                    let (pos, ply) = (&node.pos, node.ply);
                    (self.f)(Event::Position { pos, ply })?;
                }
                let mut behind = Vec::new();
                for (mv, share) in &moves {
                    behind.extend(self.meet(node, mv, *share, nesting)?);
                }
                self.tasks
                    .extend(behind.into_iter().rev().map(Task::Expand));
            }
            Order::Variations { deepest, .. } => {
                let mut moves = moves.into_iter();
                let Some((main, share)) = moves.next() else {
                    return Ok(());
                };
                let behind = self.meet(node, &main, share, nesting)?;
                self.tasks.extend(behind.map(Task::Expand));
                if nesting == deepest {
                    let branch = |(mv, share)| Task::Branch(Rc::clone(node), mv, share, 0);
                    self.deferred.extend(moves.map(branch));
                    return Ok(());
                }
                for (mv, share) in moves.rev() {
                    self.tasks.push(Task::Close);
                    let branch = Task::Branch(Rc::clone(node), mv, share, nesting + 1);
                    self.tasks.push(branch);
                    self.tasks.push(Task::Open);
                }
            }
        }
        Ok(())
    }

    /// The moves of a position that are within the limits, with their shares.
    fn moves(&self, node: &Node) -> Result<Vec<(TreeMove, f64)>> {
        if self.left == 0 || node.ply >= self.limits.max_ply.min(Limits::LONGEST) {
            return Ok(Vec::new());
        }
        let moves = self.source.moves(&node.pos)?;
        let sum: u64 = moves.iter().map(|mv| mv.weight).sum();
        let with_shares = moves.into_iter().map(|mv| {
            let share = mv.weight as f64 * 100.0 / sum.max(1) as f64;
            (mv, share)
        });
        Ok(with_shares
            .filter(|(mv, share)| self.admits(mv, *share))
            .collect())
    }

    fn admits(&self, mv: &TreeMove, share: f64) -> bool {
        let has_games = mv
            .stats
            .is_none_or(|stats| stats.games() >= self.limits.min_game);
        !mv.is_known
            || (mv.weight >= self.limits.min_weight && share >= self.limits.min_share && has_games)
    }

    /// Meets a move; answers the position behind it if the tree goes on there.
    fn meet(
        &mut self,
        node: &Rc<Node>,
        mv: &TreeMove,
        share: f64,
        nesting: usize,
    ) -> Result<Option<Rc<Node>>> {
        if self.left == 0 {
            return Ok(None);
        }
        self.left -= 1;
        self.in_game += 1;
        let mut pos = node.pos.clone();
        pos.play(mv.mv);
        let behind = Rc::new(Node {
            pos,
            ply: node.ply + 1,
            nesting,
            before: Some((Rc::clone(node), mv.mv)),
        });
        // A position that no line may go on from here may be met sooner elsewhere.
        let ends = behind.ply >= self.limits.max_ply;
        let is_new = ends || self.claim(&behind)?;
        (self.f)(Event::Move(Branch {
            pos: &node.pos,
            ply: node.ply,
            mv,
            share,
            is_transposition: !is_new,
        }))?;
        Ok((is_new && !ends).then_some(behind))
    }

    /// Notes a position; answers whether it was not met before.
    fn claim(&mut self, node: &Node) -> Result<bool> {
        let identity = u128::from(node.pos.identity());
        self.seen.insert(identity << 64 | identity)
    }
}

/// The positions with these keys that a walk from `start` comes to.
///
/// # Errors
///
/// What the source answers, or a temporary file that cannot be written.
pub fn find(
    source: &impl Source,
    start: &VariantPosition,
    keys: impl IntoIterator<Item = u64>,
) -> Result<HashMap<u64, VariantPosition>> {
    let mut found: HashMap<u64, Option<VariantPosition>> =
        keys.into_iter().map(|key| (key, None)).collect();
    let mut note = |pos: &Keyed<VariantPosition>| {
        if let Some(place) = found.get_mut(&pos.key()) {
            place.get_or_insert_with(|| pos.position().clone());
        }
    };
    walk(
        source,
        start,
        &Limits::default(),
        Order::Positions,
        &mut |event| {
            if let Event::Position { pos, .. } = event {
                note(pos);
            }
            Ok(())
        },
    )?;
    let found = found.into_iter();
    Ok(found.filter_map(|(key, pos)| Some((key, pos?))).collect())
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use proptest::prelude::*;
    use shakmaty::{Chess, Position};

    use super::*;
    use crate::{
        book::{Book, Entry},
        position::{BookMove, Variant},
    };

    /// A book of random moves from the start, and every record of it.
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
        let entry = |(key, mv): &(u64, u16)| Entry {
            key: *key,
            mv: BookMove(*mv),
            weight: 1,
            learn: 0,
        };
        let bytes = records.iter().flat_map(|record| entry(record).to_bytes());
        (Book::from_bytes(bytes.collect()).unwrap(), records)
    }

    /// Few different moves, so that lines come together again.
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
            let start = Variant::Standard.start();
            for order in [Order::Lines, Order::Positions, Order::Variations { deepest, longest }] {
                let mut met: BTreeMap<(u64, u16), u32> = BTreeMap::new();
                let mut open = 0;
                walk(&book, &start, &Limits::default(), order, &mut |event| {
                    match event {
                        Event::Move(branch) => {
                            let mv = BookMove::from(branch.mv.mv).0;
                            *met.entry((branch.pos.key(), mv)).or_default() += 1;
                        }
                        Event::Open => open += 1,
                        Event::Close => open -= 1,
                        Event::Game(_) => assert_eq!(open, 0),
                        Event::Position { .. } => {}
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
        fn limits_hold(choices in lines(), max_ply in 1..6usize, most in 0..20u64) {
            let (book, _) = book(&choices);
            let start = Variant::Standard.start();
            let limits = Limits { max_ply, moves: Some(most), ..Limits::default() };
            for order in [Order::Lines, Order::Positions, Order::Variations { deepest: 9, longest: 7 }] {
                let mut met = 0;
                walk(&book, &start, &limits, order, &mut |event| {
                    if let Event::Move(branch) = event {
                        assert!(branch.ply < max_ply);
                        met += 1;
                    }
                    Ok(())
                })
                .unwrap();
                prop_assert!(met <= most);
            }
        }
    }
}
