//! Going through a tree, each position once.

use std::rc::Rc;

use shakmaty::{Move, variant::VariantPosition};

use super::{
    KeptMove, Limits, Source, TreeMove,
    levels::{AfterMove, Expansion},
};
use crate::{
    error::Result,
    position::Keyed,
    progress::{Meter, Portions},
    task,
};

/// In which order moves are met.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Order {
    /// A move, then all after it, then the next of its position.
    Lines,
    /// A move, then the others of its position as variations with all after them, then what is after the move.
    Variations {
        /// How deep variations may be nested. What would be deeper becomes a game of its own.
        deepest: usize,
        /// How many moves a game may have before what is left of it becomes games of their own.
        longest: u64,
    },
    /// All moves of a position, then all after each.
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
    /// Whether the tree goes on from the position after it, but after another move.
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

/// What can be reached from a position by the moves of a source, within limits.
#[derive(Clone, Debug)]
pub struct Tree<'a, S> {
    source: S,
    start: VariantPosition,
    limits: Limits,
    meter: &'a Meter,
}

impl<'a, S: Source> Tree<'a, S> {
    /// The tree from a position on. `meter` says how far a walk through it is, as far as weights say how much is
    /// after a move.
    pub fn new(source: S, start: VariantPosition, limits: Limits, meter: &'a Meter) -> Tree<'a, S> {
        Tree {
            source,
            start,
            limits,
            meter,
        }
    }

    /// Where it starts.
    pub(crate) fn start(&self) -> &VariantPosition {
        &self.start
    }

    /// Walks through the tree and calls `f` with what it meets. Each position is gone on from once, after one of the
    /// moves that lead there.
    ///
    /// # Errors
    ///
    /// What the source and `f` answer, or a temporary file that cannot be written.
    pub fn walk(&self, order: Order, f: &mut dyn FnMut(Event<'_>) -> Result<()>) -> Result<()> {
        let Tree {
            source,
            start,
            limits,
            meter,
        } = self;
        let done = Portions::new(meter);
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
        // Games may defer others. The last goes first, so that few wait.
        while let Some(next) = walk.deferred.pop() {
            task::fault("tree");
            walk.game(next)?;
        }
        walk.done.finish();
        Ok(())
    }
}

/// A position on the way.
#[derive(Clone)]
struct TreeNode {
    pos: Keyed<VariantPosition>,
    ply: usize,
    /// How many variations it is nested in.
    nesting: usize,
    /// How much of the whole tree is likely to be after it.
    portion: f64,
    /// The position before it and the move from there.
    before: Option<(Rc<TreeNode>, Move)>,
}

impl TreeNode {
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
    Expand(Rc<TreeNode>),
    /// A move of a position, what is after it, and the depth of its nesting.
    Branch(Rc<TreeNode>, KeptMove, usize),
    Open,
    Close,
}

struct TreeWalk<'a, S> {
    source: &'a S,
    limits: &'a Limits,
    order: Order,
    expansion: Expansion,
    /// How many more moves there may be.
    left: u64,
    tasks: Vec<Task>,
    /// Moves in the present game.
    in_game: u64,
    /// What becomes games of their own.
    deferred: Vec<Task>,
    done: Portions<'a>,
    f: &'a mut dyn FnMut(Event<'_>) -> Result<()>,
}

impl<S: Source> TreeWalk<'_, S> {
    /// Goes through a game that begins with a task.
    fn game(&mut self, task: Task) -> Result<()> {
        let line = match &task {
            Task::Expand(node) => node.line(),
            Task::Branch(node, ..) => node.line(),
            Task::Open | Task::Close => unreachable!("a game begins with a position or a move"),
        };
        let has_moves = match &task {
            // A position without moves of its own is no game.
            Task::Expand(node) => line.is_empty() || !self.choices(node)?.is_empty(),
            _ => self.left > 0,
        };
        if !has_moves {
            if let Task::Expand(node) = &task {
                self.done.add(node.portion);
            }
            return Ok(());
        }
        (self.f)(Event::Game(&line))?;
        self.in_game = 0;
        self.tasks.push(task);
        let first = self.deferred.len();
        while let Some(task) = self.tasks.pop() {
            self.done.check()?;
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
                if let Some(Task::Branch(node, choice, _)) = branch {
                    self.deferred.push(Task::Branch(node, choice, 0));
                }
            }
            Task::Open => (self.f)(Event::Open)?,
            Task::Close => (self.f)(Event::Close)?,
            Task::Branch(node, choice, nesting) => {
                let after = self.meet(&node, &choice, nesting)?;
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
                (self.f)(Event::Position { pos, ply })?;
                let mut after = Vec::new();
                for choice in &choices {
                    after.extend(self.meet(node, choice, nesting)?);
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
            let after = self.meet(node, &main, nesting)?;
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

    /// The moves of a position that are within the limits.
    fn choices(&self, node: &TreeNode) -> Result<Vec<KeptMove>> {
        if self.left == 0 || node.ply >= self.limits.plies() {
            return Ok(Vec::new());
        }
        self.limits.choices(self.source, &node.pos, node.portion)
    }

    /// Meets a move; returns the position after it if the tree goes on there.
    fn meet(
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
        (self.f)(Event::Move(Branch {
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
