//! Builds graphs of positions and the moves between them, and computes values of the positions by minimax.

use std::collections::hash_map::Entry;

use rustc_hash::FxHashMap;
use shakmaty::{Move, variant::VariantPosition};

use crate::{
    chess::position::{BookMove, Keyed},
    error::Result,
    formats::walk::{MoveSource, each_position},
    progress::Meter,
    storage::sort::Memory,
};

/// The maximum number of half-moves by which [`MoveGraph::values`] looks ahead to determine the value of a position.
const MAX_LOOKAHEAD: usize = 256;

/// A graph of positions and moves. The nodes are the positions that have moves, and the edges are these moves. A node
/// stores data of the type `N`, and an edge stores data of the type `E`. The edges may form cycles.
pub(super) struct MoveGraph<N, E> {
    nodes: Vec<GraphPosition<N>>,
    edges: Vec<GraphMove<E>>,
}

/// A position in a graph.
pub(super) struct GraphPosition<N> {
    /// The position key.
    pub key: u64,
    /// The end of the position's range in the list of edges, which begins where the range of the previous node ends.
    end: usize,
    pub data: N,
}

/// A move in a graph.
pub(super) struct GraphMove<E> {
    pub mv: BookMove,
    /// The position after the move: its key while the graph is built, then the index of its node, or [`NOWHERE`] if it
    /// has no moves.
    after: u64,
    pub data: E,
}

/// The data of a position, and its moves with their data.
pub(super) type NodeData<N, E> = (N, Vec<(BookMove, Move, E)>);

/// The value of [`GraphMove::after`] for a move to a position without moves.
const NOWHERE: u64 = u64::MAX;

impl<E> GraphMove<E> {
    /// Returns the element of `values` for the position after the move, or `None` if this position has no moves.
    /// `values` contains an element for each node of the graph.
    pub(super) fn after<'a, V>(&self, values: &'a [V]) -> Option<&'a V> {
        values.get(usize::try_from(self.after).ok()?)
    }
}

impl<N, E> MoveGraph<N, E> {
    /// Returns the number of bytes that a graph with the given numbers of positions and moves takes, together with a
    /// table that has an entry for each move.
    pub(super) fn bytes(positions: usize, moves: usize) -> usize {
        // While the graph is built, each position also has an entry in the map of node numbers.
        2 * (positions * size_of::<GraphPosition<N>>() + moves * size_of::<GraphMove<E>>())
    }

    /// Creates a graph of the positions that the moves of `source` reach from `starts`. For each position, `describe`
    /// returns the moves that become edges, with their data, and the data of the node. A position without such moves
    /// does not become a node. The search ends early when the graph has `most` nodes.
    ///
    /// # Errors
    ///
    /// Returns an error if `source` or a temporary file cannot be read, or the error of `describe`.
    pub(super) fn build(
        source: &impl MoveSource,
        starts: impl Iterator<Item = Result<VariantPosition>>,
        most: usize,
        memory: Memory,
        mut describe: impl FnMut(&Keyed<VariantPosition>) -> Result<NodeData<N, E>>,
    ) -> Result<MoveGraph<N, E>> {
        let mut graph = MoveGraph {
            nodes: Vec::new(),
            edges: Vec::new(),
        };
        let mut numbers: FxHashMap<u64, u64> = FxHashMap::default();
        each_position(source, starts, memory, &Meter::default(), &mut |pos| {
            if let Entry::Vacant(number) = numbers.entry(pos.key()) {
                let (data, moves) = describe(pos)?;
                if !moves.is_empty() {
                    number.insert(graph.nodes.len() as u64);
                    graph.add(pos, data, moves);
                }
            }
            Ok(graph.nodes.len() < most)
        })?;
        for edge in &mut graph.edges {
            edge.after = numbers.get(&edge.after).copied().unwrap_or(NOWHERE);
        }
        Ok(graph)
    }

    fn add(&mut self, pos: &Keyed<VariantPosition>, data: N, moves: Vec<(BookMove, Move, E)>) {
        for (book_move, mv, data) in moves {
            let mut after = pos.clone();
            after.play(mv);
            self.edges.push(GraphMove {
                mv: book_move,
                after: after.key(),
                data,
            });
        }
        self.nodes.push(GraphPosition {
            key: pos.key(),
            end: self.edges.len(),
            data,
        });
    }

    /// Returns the positions in the order in which they were reached. The first starting position that has moves comes
    /// first.
    pub(super) fn nodes(&self) -> &[GraphPosition<N>] {
        &self.nodes
    }

    /// Returns the moves of the position with the index `node`.
    pub(super) fn edges(&self, node: usize) -> &[GraphMove<E>] {
        let first = node
            .checked_sub(1)
            .map_or(0, |before| self.nodes[before].end);
        &self.edges[first..self.nodes[node].end]
    }

    /// Computes a value for each position, and returns the values in the order of the nodes.
    ///
    /// `first` contains the initial values, which do not depend on moves. `value` computes a new value for the node
    /// with the given index from the current values of all nodes. The function applies `value` to all nodes until no
    /// value changes, but at most 256 times. A move can therefore influence only the values of positions up to 256
    /// half-moves before it, even if the moves form a cycle.
    pub(super) fn values<V: PartialEq>(
        &self,
        first: Vec<V>,
        value: impl Fn(usize, &[V]) -> V,
    ) -> Vec<V> {
        let mut values = first;
        for _ in 0..MAX_LOOKAHEAD {
            let next: Vec<V> = (0..self.nodes.len())
                .map(|number| value(number, &values))
                .collect();
            if next == values {
                break;
            }
            values = next;
        }
        values
    }

    /// Creates a graph from a list of nodes. Each item contains the data of a node and its moves. A move consists of
    /// its data and the index of the node that it leads to, or `None` if it leaves the graph.
    #[cfg(test)]
    pub(super) fn of_lists(
        lists: impl Iterator<Item = (N, Vec<(E, Option<usize>)>)>,
    ) -> MoveGraph<N, E> {
        let mut graph = MoveGraph {
            nodes: Vec::new(),
            edges: Vec::new(),
        };
        for (key, (data, moves)) in lists.enumerate() {
            for (number, (data, after)) in moves.into_iter().enumerate() {
                graph.edges.push(GraphMove {
                    mv: BookMove(number as u16),
                    after: after.map_or(NOWHERE, |after| after as u64),
                    data,
                });
            }
            graph.nodes.push(GraphPosition {
                key: key as u64,
                end: graph.edges.len(),
                data,
            });
        }
        graph
    }
}
