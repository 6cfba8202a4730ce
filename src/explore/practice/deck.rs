//! Represents the positions of a repertoire as a graph, whose edges are the moves of the repertoire and the replies
//! that it answers.

use std::collections::VecDeque;

use rustc_hash::{FxHashMap, FxHashSet};
use shakmaty::{Color, Position, variant::VariantPosition};

use super::PracticeLine;
use crate::{
    chess::position::{BookMove, Keyed, Variant, epd_of},
    error::{Advice, Diagnosis, Error, ErrorKind, Result},
    explore::{
        repertoire::OpenedSource,
        tree::{Branch, Limits, LinesOf, Order, TreeEvent},
    },
    formats::walk::walk,
    progress::{FractionalProgress, Meter},
    storage::sort::Memory,
};

/// An estimate of the memory, in bytes, for one position of a deck with its moves.
const BYTES_PER_POSITION: usize = 512;

/// The distance of a position from which no target can be reached.
pub(super) const FAR: u32 = u32::MAX;

/// The positions of a player's repertoire for one side. Each position in which this side is to move is a card, which
/// the player practises.
#[derive(Debug)]
pub struct Deck {
    variant: Variant,
    color: Color,
    positions: Vec<DeckPosition>,
    /// The positions in which lines start, each with its id.
    starts: Vec<(VariantPosition, u32)>,
    /// Maps the identity (a hash) of a position to its id, which is its index in `positions`.
    ids: FxHashMap<u64, u32>,
    /// For each position, the ids of the positions from which one move leads to it.
    before: Vec<Vec<u32>>,
}

#[derive(Default, Debug)]
struct DeckPosition {
    /// The name of the position in a [`Schedule`](super::Schedule), if the player is to move.
    card: Option<String>,
    /// The moves in the position, with the main move first.
    moves: Vec<DeckMove>,
}

/// A move between two positions of a deck.
#[derive(Debug)]
pub(super) struct DeckMove {
    pub mv: BookMove,
    /// The id of the position after the move.
    pub to: u32,
    /// The number of games or the weight of the move in the repertoire. It is 0 if the repertoire contains only answers
    /// to the move, but not the move itself.
    pub weight: u64,
}

impl Deck {
    /// Creates a deck of all positions that the lines of `repertoire` reach. Lines start in the initial position of
    /// `variant` and in the positions of games with a `FEN` tag. `color` is the side of the player. `meter` can cancel
    /// the walk through the lines.
    ///
    /// # Errors
    ///
    /// Returns an error if the repertoire cannot be read, if its positions do not fit in `memory`, or if `meter`
    /// cancels the walk.
    pub fn new(
        repertoire: &OpenedSource,
        variant: Variant,
        color: Color,
        memory: &Memory,
        meter: &Meter,
    ) -> Result<Deck> {
        let most = memory.bytes / BYTES_PER_POSITION;
        let mut deck = Deck {
            variant,
            color,
            positions: Vec::new(),
            starts: Vec::new(),
            ids: FxHashMap::default(),
            before: Vec::new(),
        };
        let mut starts = vec![variant.start()];
        let mut known = FxHashSet::from_iter([identity(&starts[0])]);
        for start in repertoire.game_starts() {
            if start.variant() == starts[0].variant() && known.insert(identity(start)) {
                starts.push(start.clone());
            }
        }
        let limits = Limits {
            memory: memory.share(2),
            ..Limits::default()
        };
        let lines = LinesOf(repertoire, color);
        let mut progress = FractionalProgress::new(meter);
        walk(
            &lines,
            &starts,
            &limits,
            Order::Positions,
            &mut progress,
            &mut |event| {
                if let TreeEvent::Move(branch) = event {
                    deck.add(&branch);
                }
                if deck.positions.len() > most {
                    let problem = Diagnosis::new(format!(
                        "the repertoire contains more than {most} positions"
                    ));
                    let problem = problem.advise(Advice::larger("memory"));
                    return Err(Error::option(ErrorKind::TooLarge, "memory", problem));
                }
                Ok(())
            },
        )?;
        deck.before = vec![Vec::new(); deck.positions.len()];
        for (id, position) in (0..).zip(&deck.positions) {
            for mv in &position.moves {
                deck.before[mv.to as usize].push(id);
            }
        }
        for start in starts {
            if let Some(id) = deck.find(&start) {
                deck.starts.push((start, id));
            }
        }
        Ok(deck)
    }

    fn add(&mut self, branch: &Branch<'_>) {
        let [from, to] = [branch.pos, branch.after].map(|pos| self.id_of(pos));
        let position = &mut self.positions[from as usize];
        let pos = branch.pos.position();
        if pos.turn() == self.color && position.card.is_none() {
            position.card = Some(card_name(self.variant, pos));
        }
        let mv = BookMove::from(branch.mv.mv);
        // Two Polyglot keys can belong to one identity, and then the position is visited twice.
        if position.moves.iter().all(|known| known.mv != mv) {
            let weight = if branch.mv.is_in_source {
                branch.mv.games()
            } else {
                0
            };
            position.moves.push(DeckMove { mv, to, weight });
        }
    }

    fn id_of(&mut self, pos: &Keyed<VariantPosition>) -> u32 {
        *self.ids.entry(pos.identity()).or_insert_with(|| {
            self.positions.push(DeckPosition::default());
            self.positions.len() as u32 - 1
        })
    }

    /// Returns the number of cards.
    pub fn cards(&self) -> u64 {
        self.positions
            .iter()
            .filter(|position| position.card.is_some())
            .count() as u64
    }

    /// Returns the side of the player.
    pub fn color(&self) -> Color {
        self.color
    }

    /// Returns the ids of all positions.
    pub(super) fn ids(&self) -> impl Iterator<Item = u32> {
        0..self.positions.len() as u32
    }

    pub(super) fn starts(&self) -> impl Iterator<Item = (&VariantPosition, u32)> {
        self.starts.iter().map(|(start, id)| (start, *id))
    }

    /// Returns the moves of a position, with the main move first.
    pub(super) fn moves(&self, id: u32) -> &[DeckMove] {
        &self.positions[id as usize].moves
    }

    /// Returns the name that identifies a card in a [`Schedule`](super::Schedule), and the moves of the repertoire in
    /// its position. Returns `None` for a position in which the opponent is to move.
    pub(super) fn card(&self, id: u32) -> Option<(&str, &[DeckMove])> {
        let position = &self.positions[id as usize];
        Some((position.card.as_deref()?, &position.moves))
    }

    /// Returns the id of a position, or `None` if the deck does not contain it.
    pub(super) fn find(&self, pos: &VariantPosition) -> Option<u32> {
        self.ids.get(&identity(pos)).copied()
    }

    /// Returns, for each position, the length in half-moves of the shortest path from there to one of the positions
    /// `targets`, or [`FAR`] if there is no path.
    pub(super) fn distances(&self, targets: impl Iterator<Item = u32>) -> Vec<u32> {
        let mut distances = vec![FAR; self.positions.len()];
        let mut waiting = VecDeque::new();
        for target in targets {
            distances[target as usize] = 0;
            waiting.push_back(target);
        }
        while let Some(id) = waiting.pop_front() {
            for before in &self.before[id as usize] {
                if distances[*before as usize] == FAR {
                    distances[*before as usize] = distances[id as usize] + 1;
                    waiting.push_back(*before);
                }
            }
        }
        distances
    }

    /// Returns the path of the deck that follows the moves of `line`, or `None` if the line leaves the deck.
    pub(super) fn path_of(&self, line: &PracticeLine) -> Option<Path> {
        let id = self.find(&line.start)?;
        self.starts().find(|(_, start)| *start == id)?;
        let mut path = Path::new(line.start.clone(), id);
        for mv in &line.moves {
            let mv = BookMove::from(*mv);
            let known = self.moves(path.end()).iter().find(|known| known.mv == mv)?;
            path.play(known);
        }
        Some(path)
    }

    /// Returns an iterator over all cards, each with a shortest line to it. Cards with shorter lines come first.
    pub(super) fn lines(&self) -> impl Iterator<Item = (u32, PracticeLine)> {
        let mut before: FxHashMap<u32, Option<(u32, BookMove)>> = FxHashMap::default();
        let mut waiting: VecDeque<u32> = VecDeque::new();
        let starts: FxHashMap<u32, &VariantPosition> =
            self.starts().map(|(start, id)| (id, start)).collect();
        for (_, id) in self.starts() {
            before.insert(id, None);
            waiting.push_back(id);
        }
        let mut order = Vec::new();
        while let Some(id) = waiting.pop_front() {
            order.push(id);
            for mv in self.moves(id) {
                before.entry(mv.to).or_insert_with(|| {
                    waiting.push_back(mv.to);
                    Some((id, mv.mv))
                });
            }
        }
        order.retain(|id| self.positions[*id as usize].card.is_some());
        order.into_iter().map(move |id| {
            let (mut moves, mut at) = (Vec::new(), id);
            while let Some((from, mv)) = before[&at] {
                moves.push(mv);
                at = from;
            }
            let mut path = Path::new(starts[&at].clone(), at);
            for mv in moves.iter().rev() {
                let known = self.moves(path.end()).iter().find(|known| known.mv == *mv);
                path.play(known.expect("the line consists of moves of the deck"));
            }
            (id, path.line)
        })
    }
}

/// A line through a deck, with the positions on it.
pub(super) struct Path {
    pub line: PracticeLine,
    pos: Keyed<VariantPosition>,
    end: u32,
    visited: FxHashSet<u32>,
}

impl Path {
    /// Creates a path without moves at the position `start`, whose id is `id`.
    pub(super) fn new(start: VariantPosition, id: u32) -> Path {
        Path {
            pos: Keyed::new(start.clone()),
            end: id,
            visited: FxHashSet::from_iter([id]),
            line: PracticeLine {
                start,
                moves: Vec::new(),
            },
        }
    }

    /// Returns the id of the last position.
    pub(super) fn end(&self) -> u32 {
        self.end
    }

    /// Returns the last position.
    pub(super) fn position(&self) -> &VariantPosition {
        self.pos.position()
    }

    pub(super) fn keyed(&self) -> &Keyed<VariantPosition> {
        &self.pos
    }

    pub(super) fn visits(&self, id: u32) -> bool {
        self.visited.contains(&id)
    }

    /// Plays a move of the deck, which must belong to the last position.
    pub(super) fn play(&mut self, mv: &DeckMove) {
        let played = mv
            .mv
            .to_move(self.pos.position())
            .expect("a deck contains legal moves");
        self.pos.play(played);
        self.line.moves.push(played);
        self.end = mv.to;
        self.visited.insert(mv.to);
    }
}

/// Returns the identity of a position, which is the key of [`Deck::ids`].
fn identity(pos: &VariantPosition) -> u64 {
    Keyed::new(pos.clone()).identity()
}

/// Returns the name that identifies a position in a [`Schedule`](super::Schedule). It is the EPD of the position,
/// preceded by the name of the variant unless this is standard chess.
fn card_name(variant: Variant, pos: &VariantPosition) -> String {
    let epd = epd_of(pos);
    if variant == Variant::Standard {
        epd
    } else {
        format!("{variant} {epd}")
    }
}
