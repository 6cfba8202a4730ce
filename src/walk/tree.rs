//! A walk through a tree of moves that continues each position only once, in one of several orders.
//!
//! The walk keeps a stack of tasks instead of recursing, because lines may have thousands of half-moves.
//!
//! If the length of lines is limited, a breadth-first walk comes first. For each position, it chooses the one
//! move after which the tree continues the position.

use std::rc::Rc;

use shakmaty::{Move, variant::VariantPosition};

use super::{KeptMove, Limits, Source, TreeMove};
use crate::{
    error::Result,
    position::{BookMove, Keyed, restored, stored},
    progress::{FractionalProgress, Meter},
    storage::sort::{ByteRun, SpillingSet},
    task,
};

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
    /// The share of the move in the total weight of the moves of its position, in percent.
    pub share: f64,
    /// Whether the move is a transposition: another move leads to the same position, and the tree continues from this
    /// position only after that other move.
    pub is_transposition: bool,
}

/// An event of a walk through a tree of opening moves.
#[derive(Clone, Debug)]
pub enum TreeEvent<'a> {
    /// A game begins. Contains the moves from the start of the tree up to the first new move of the game.
    Game(&'a [Move]),
    /// The moves of a position follow. This event occurs only with [`Order::Positions`].
    Position {
        /// The position.
        pos: &'a Keyed<VariantPosition>,
        /// The number of half-moves from the start to the position.
        ply: usize,
    },
    /// A move is visited.
    Move(Branch<'a>),
    /// A variation begins. It is an alternative to the last move at the same depth.
    Open,
    /// A variation ends.
    Close,
}

/// A tree of opening moves: all lines from a starting position that consist of moves of a [`Source`] and are within
/// [`Limits`]. The tree is not stored. A walk through it reads the moves from the source.
#[derive(Clone, Debug)]
pub struct Tree<'a, S> {
    source: S,
    start: VariantPosition,
    limits: Limits,
    meter: &'a Meter,
}

impl<'a, S: Source> Tree<'a, S> {
    /// Creates a tree of the moves of `source` from the position `start`. Reads no moves yet. A walk through the tree
    /// estimates its progress from the weights of the moves and reports it to `meter`.
    pub fn new(source: S, start: VariantPosition, limits: Limits, meter: &'a Meter) -> Tree<'a, S> {
        Tree {
            source,
            start,
            limits,
            meter,
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
        let Tree {
            source,
            start,
            limits,
            meter,
        } = self;
        let done = FractionalProgress::new(meter);
        let expansion = Expansion::new(source, start, limits, meter)?;
        let start = Rc::new(TreeNode {
            pos: Keyed::new(start.clone()),
            ply: 0,
            nesting: 0,
            portion: 1.0,
            before: None,
        });
        let mut walk = TreeWalk {
            source,
            limits,
            order,
            expansion,
            left: limits.moves.unwrap_or(u64::MAX),
            tasks: Vec::new(),
            in_game: 0,
            deferred: vec![Task::Expand(start)],
            done,
            f,
        };
        // A game may defer further games. Taking the last one first keeps the list of waiting games short.
        while let Some(next) = walk.deferred.pop() {
            task::fault("tree");
            walk.game(next)?;
        }
        walk.done.finish();
        source.refuse_changed()
    }
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

/// A task on the stack of a walk. The walk does not use recursion, because lines may be too long for it.
enum Task {
    /// Visit the moves of a position.
    Expand(Rc<TreeNode>),
    /// Visit a move of a position and everything after it. The number is how many nested variations contain the move.
    Branch(Rc<TreeNode>, KeptMove, usize),
    Open,
    Close,
}

struct TreeWalk<'a, S> {
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
    done: FractionalProgress<'a>,
    f: &'a mut dyn FnMut(TreeEvent<'_>) -> Result<()>,
}

impl<S: Source> TreeWalk<'_, S> {
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
            Order::Positions => {
                let (pos, ply) = (&node.pos, node.ply);
                (self.f)(TreeEvent::Position { pos, ply })?;
                let mut after = Vec::new();
                for choice in &choices {
                    after.extend(self.visit(node, choice, nesting)?);
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
        choices: Vec<KeptMove>,
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
    fn choices(&self, node: &TreeNode) -> Result<Vec<KeptMove>> {
        if self.left == 0 || node.ply >= self.limits.plies() {
            return Ok(Vec::new());
        }
        self.limits.choices(self.source, &node.pos, node.portion)
    }

    /// Visits the move `choice` in the position `node`. `nesting` is the number of variations that enclose the move.
    ///
    /// Returns the position after the move if the walk continues there. Returns `None` if a limit is reached, or if the
    /// move is a transposition: the walk then continues from the position only after another move that leads to it.
    fn visit(
        &mut self,
        node: &Rc<TreeNode>,
        choice: &KeptMove,
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

/// The number of bytes of memory in which a breadth-first walk keeps the positions of one level. Further positions are
/// written to a temporary file.
const LEVEL_IN_MEMORY: usize = 1 << 16;

/// A move that a breadth-first walk visits, together with the positions before and after the move.
pub(crate) struct Arrival<'a> {
    pub before: &'a Keyed<VariantPosition>,
    pub mv: Move,
    pub after: &'a Keyed<VariantPosition>,
    /// Whether this is the first visited move that leads to `after`.
    pub is_new: bool,
}

/// Walks breadth first from `starts` through the moves of `source`, and calls `f` with each move. The walk follows only
/// moves that `limits` allows, in lines of at most `limits.plies() - 1` half-moves. It visits the moves of each
/// position once, after a shortest line to this position. `progress` advances while the walk runs.
///
/// Returns the [fingerprints](position_fingerprint) of all positions that the walk has reached.
pub(crate) fn walk_breadth_first(
    source: &impl Source,
    starts: &[VariantPosition],
    limits: &Limits,
    progress: &mut FractionalProgress<'_>,
    f: &mut dyn FnMut(Arrival<'_>) -> Result<()>,
) -> Result<SpillingSet> {
    let mut met = SpillingSet::new(limits.memory.share(4));
    let level = || ByteRun::new(LEVEL_IN_MEMORY, limits.memory.temp_dir.clone());
    let mut waiting = level();
    for start in starts {
        if met.insert(position_fingerprint(source, &Keyed::new(start.clone())))? {
            push_waiting(&mut waiting, start, 1.0 / starts.len() as f64)?;
        }
    }
    for ply in 1..limits.plies() {
        let mut next = level();
        let mut texts = waiting.reader(0);
        while let Some(text) = texts.read_text()? {
            let (pos, portion) = read_waiting(&text, &starts[0]);
            let Some(before) = pos.map(Keyed::new) else {
                progress.add(portion);
                continue;
            };
            let choices = limits.choices(source, &before, portion)?;
            if choices.is_empty() {
                progress.add(portion);
            }
            for choice in choices {
                let mv = choice.mv.mv;
                let mut after = before.clone();
                after.play(mv);
                let is_new = met.insert(position_fingerprint(source, &after))?;
                f(Arrival {
                    before: &before,
                    mv,
                    after: &after,
                    is_new,
                })?;
                if is_new && ply + 1 < limits.plies() {
                    push_waiting(&mut next, after.position(), choice.portion)?;
                } else {
                    progress.add(choice.portion);
                }
            }
        }
        waiting = next;
        if waiting.len() == 0 {
            break;
        }
    }
    progress.finish();
    Ok(met)
}

/// The decision of a walk after it has visited a move: whether it continues from the new position, marks the move as a
/// transposition, or ends the line.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) enum AfterMove {
    /// The tree continues the position after the move.
    Expanded,
    /// The tree continues from the position after the move only after another move that leads to this position.
    Transposition,
    /// The line ends, because it has reached its maximum length.
    End,
}

/// The rule that decides where a walk continues if several moves lead to the same position. The walk continues after
/// one of these moves, and marks the others as transpositions.
pub(super) enum Expansion {
    /// The walk continues after the first of these moves that it visits.
    First { met: SpillingSet, plies: usize },
    /// The walk continues after a move at the end of a shortest line: the first of these moves that
    /// [`walk_breadth_first`] visits.
    Shortest {
        /// The fingerprints of all positions within the limit.
        met: SpillingSet,
        /// The fingerprints of the moves after which the tree continues.
        moves: SpillingSet,
    },
}

impl Expansion {
    pub(super) fn new(
        source: &impl Source,
        start: &VariantPosition,
        limits: &Limits,
        meter: &Meter,
    ) -> Result<Expansion> {
        if limits.max_ply.is_none() {
            let mut met = SpillingSet::new(limits.memory.share(2));
            met.insert(position_fingerprint(source, &Keyed::new(start.clone())))?;
            let plies = limits.plies();
            return Ok(Expansion::First { met, plies });
        }
        let mut moves = SpillingSet::new(limits.memory.share(4));
        let mut done = FractionalProgress::new(meter);
        let starts = std::slice::from_ref(start);
        let met = walk_breadth_first(source, starts, limits, &mut done, &mut |arrival| {
            if arrival.is_new {
                moves.insert(move_fingerprint(source, arrival.before, arrival.mv))?;
            }
            Ok(())
        })?;
        Ok(Expansion::Shortest { met, moves })
    }

    /// Decides how a walk continues after the move `mv`, which leads from the position `before` to the position
    /// `after`. The move is a transposition if another move leads to `after`, and the walk continues from there only
    /// after that other move. `source` defines which positions are equal. `ply` is the number of half-moves from the
    /// start of the tree to `after`.
    pub(super) fn after(
        &mut self,
        source: &impl Source,
        before: &Keyed<VariantPosition>,
        mv: Move,
        after: &Keyed<VariantPosition>,
        ply: usize,
    ) -> Result<AfterMove> {
        Ok(match self {
            // The position is not marked as visited: a shorter line may reach it later.
            Expansion::First { plies, .. } if ply >= *plies => AfterMove::End,
            Expansion::First { met, .. } => {
                match met.insert(position_fingerprint(source, after))? {
                    true => AfterMove::Expanded,
                    false => AfterMove::Transposition,
                }
            }
            Expansion::Shortest { met, .. }
                if !met.contains(position_fingerprint(source, after))? =>
            {
                AfterMove::End
            }
            Expansion::Shortest { moves, .. } => {
                match moves.contains(move_fingerprint(source, before, mv))? {
                    true => AfterMove::Expanded,
                    false => AfterMove::Transposition,
                }
            }
        })
    }
}

/// Returns a number that identifies the position `pos`. The low 64 bits of the number are 0, so that
/// [`move_fingerprint`] can store a move in them.
fn position_fingerprint(source: &impl Source, pos: &Keyed<VariantPosition>) -> u128 {
    u128::from(source.position_id(pos)) << 64
}

/// Returns a number that identifies the move `mv` in the position `pos`. It is the fingerprint of the position, with
/// the Polyglot number of the move in the low 16 bits.
fn move_fingerprint(source: &impl Source, pos: &Keyed<VariantPosition>, mv: Move) -> u128 {
    position_fingerprint(source, pos) | u128::from(BookMove::from(mv).0)
}

/// Appends the position `pos` as text to `level`, which collects the positions whose moves a breadth-first walk will
/// visit in the next level. `portion` is the estimated share of the tree that follows the position.
fn push_waiting(level: &mut ByteRun, pos: &VariantPosition, portion: f64) -> Result<()> {
    let mut text = portion.to_le_bytes().to_vec();
    text.extend_from_slice(stored(pos).as_bytes());
    level.append_text(&text)
}

/// Parses `text`, which [`push_waiting`] wrote. Returns the position, and the estimated share of the tree that follows
/// it. The position is `None` if the text is malformed. `start` is any position of the same variant, which tells the
/// parser the variant.
fn read_waiting(text: &[u8], start: &VariantPosition) -> (Option<VariantPosition>, f64) {
    let (portion, pos) = text.split_first_chunk().expect("a portion comes first");
    let pos = restored(&String::from_utf8_lossy(pos), start);
    (pos, f64::from_le_bytes(*portion))
}
