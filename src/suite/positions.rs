//! Makes suites of positions from a database or a book.
//!
//! Positions are searched breadth first. A level contains the paths to all positions after the same number of
//! half-moves. It is sorted, so that all paths to the same position are adjacent and the moves of the position are
//! looked up only once.

use std::path::Path;

use shakmaty::{Position, variant::VariantPosition};

use super::{
    SourceSuite, Suite,
    format::{epd, note_of_times},
    ranking::{Candidate, Ranking},
};
use crate::{
    counts::Wdl,
    error::Result,
    position::{Keyed, restored, stored},
    progress::Portions,
    storage::sort::{Memory, TextSorter},
    walk::{Source, TreeMove},
};

/// The maximum number of paths to one position that are stored. Of further paths, only the weights are added up.
const MAX_PATHS: usize = 64;

impl<S: Source> SourceSuite<'_, S> {
    /// Searches for the positions of the suite, one half-move after another, and ranks the positions after the full
    /// number of half-moves. Error messages name `path`.
    pub(super) fn rank_positions(&self, path: &Path) -> Result<Ranking<'_>> {
        let (suite, starts) = (self.suite, self.starts);
        let mut done = Portions::new(self.meter);
        let mut level = Level::new(self.memory.share(4));
        for pos in starts {
            level.add(&LinePath {
                pos: Keyed::new(pos.clone()),
                opening: suite.opening(pos, ""),
                before: Vec::new(),
                weight: 0,
                portion: 1.0 / starts.len() as f64,
            })?;
        }
        // All starts follow the rules of one variant.
        let rules = &starts[0];
        let mut longest = 0;
        for ply in 0..suite.plies {
            let mut next = Level::new(self.memory.share(4));
            level.for_each(rules, |reached| {
                let moves = self.source.moves(reached.pos())?;
                if moves.is_empty() {
                    done.add(reached.portion);
                }
                for mv in &moves {
                    for path in reached.after(mv, moves.len(), suite) {
                        longest = ply + 1;
                        next.add(&path)?;
                    }
                }
                Ok(())
            })?;
            level = next;
            if longest <= ply {
                break;
            }
        }
        let mut ranking = Ranking::new(suite, &self.memory.share(2), path);
        ranking.longest = longest;
        if longest < suite.plies {
            return Ok(ranking);
        }
        level.for_each(rules, |reached| {
            done.add(reached.portion);
            let results = (self.results)(reached.pos())?;
            let is_kept = suite.plies == 0 || suite.keeps(results);
            if !is_kept {
                return Ok(());
            }
            let Some(operations) = ranking.judged(reached.pos().position())? else {
                return Ok(());
            };
            ranking.add(&Candidate {
                start: &[0; 8],
                identities: &[reached.pos().identity()],
                games: results.map_or(reached.weight, Wdl::games),
                opening: &reached.paths[0].opening,
                text: &(epd(reached.pos().position(), suite.opcodes) + &operations),
                note: &results.map(note_of_times).unwrap_or_default(),
            })
        })?;
        Ok(ranking)
    }
}

/// A path of moves to a position, in a breadth-first search.
struct LinePath {
    pos: Keyed<VariantPosition>,
    opening: String,
    /// The identities of the earlier positions on the path that a later move could still repeat, sorted ascending.
    before: Vec<u64>,
    /// The weight of the last move, or 0 if another path already includes this weight.
    weight: u64,
    /// The estimated share of all lines that take this path, from 0 to 1.
    portion: f64,
}

/// A position that a search has reached after a certain number of half-moves, with the paths that lead to it.
struct ReachedPosition {
    /// The paths, at least one. A line must not return to an earlier position on its path, so paths allow different
    /// continuations. Each path that is kept allows a continuation that no other path allows.
    paths: Vec<LinePath>,
    weight: u64,
    portion: f64,
}

impl ReachedPosition {
    fn new(path: LinePath) -> ReachedPosition {
        let (weight, portion) = (path.weight, path.portion);
        ReachedPosition {
            paths: vec![path],
            weight,
            portion,
        }
    }

    /// Returns the position. Its move counters come from the first path, on which the last capture or pawn move is the
    /// most recent.
    fn pos(&self) -> &Keyed<VariantPosition> {
        &self.paths[0].pos
    }

    /// Adds a path to the position. Paths must be added in ascending order of their number of earlier positions. If a
    /// stored path allows every continuation that the new one allows, only the weight of the new path is added.
    fn add(&mut self, path: LinePath) {
        self.weight += path.weight;
        self.portion += path.portion;
        let is_needless = |other: &LinePath| {
            let known = &path.before;
            other
                .before
                .iter()
                .all(|id| known.binary_search(id).is_ok())
        };
        if self.paths.len() < MAX_PATHS && !self.paths.iter().any(is_needless) {
            self.paths.push(path);
        }
    }

    /// Extends the paths to this position by the move `mv`. Returns the extended paths that do not repeat a position.
    /// `moves` is the number of moves of the position, among which the progress is divided.
    fn after(&self, mv: &TreeMove, moves: usize, suite: &Suite) -> Vec<LinePath> {
        let mut paths: Vec<LinePath> = Vec::new();
        for path in &self.paths {
            let mut pos = path.pos.clone();
            pos.play(mv.mv);
            if path.before.binary_search(&pos.identity()).is_ok() {
                continue;
            }
            // Positions before a capture or a pawn move cannot recur, except in crazyhouse, where a captured piece can
            // return.
            let is_final = pos.position().halfmoves() == 0
                && !matches!(pos.position(), VariantPosition::Crazyhouse(_));
            let mut before = Vec::new();
            if !is_final {
                before.clone_from(&path.before);
                let here = path.pos.identity();
                let place = before.partition_point(|id| *id < here);
                before.insert(place, here);
            }
            let is_first = paths.is_empty();
            paths.push(LinePath {
                opening: suite.opening(pos.position(), &path.opening),
                pos,
                before,
                weight: if is_first { mv.games() } else { 0 },
                portion: if is_first {
                    self.portion / moves as f64
                } else {
                    0.0
                },
            });
            if is_final {
                break;
            }
        }
        paths
    }
}

/// A level of the search: the paths to all positions after the same number of half-moves. Paths that exceed the memory
/// budget are spilled to temporary files.
struct Level {
    /// The paths as texts: the identity of the position, the number and the identities of the earlier positions, the
    /// move counters, the weight and the portion, the position, the opening. Sorting them groups the paths by position.
    texts: TextSorter,
}

/// The length of the move counters in an encoded path, in bytes.
const COUNTERS: usize = 8;
/// The length of the weight and the portion in an encoded path, in bytes.
const NUMBERS: usize = 16;

impl Level {
    fn new(memory: Memory) -> Level {
        Level {
            texts: TextSorter::new(memory, None),
        }
    }

    fn add(&mut self, path: &LinePath) -> Result<()> {
        let pos = path.pos.position();
        let stored = stored(pos);
        let mut text = path.pos.identity().to_be_bytes().to_vec();
        text.extend((path.before.len() as u64).to_be_bytes());
        text.extend(path.before.iter().flat_map(|id| id.to_be_bytes()));
        text.extend(pos.halfmoves().to_be_bytes());
        text.extend(pos.fullmoves().get().to_be_bytes());
        text.extend(path.weight.to_be_bytes());
        text.extend(path.portion.to_be_bytes());
        text.extend(stored.as_bytes());
        text.push(0);
        text.extend(path.opening.as_bytes());
        self.texts.push(&text)
    }

    /// Calls `f` with each position of the level and all paths to it. `rules` is any position of the same variant.
    fn for_each(
        &mut self,
        rules: &VariantPosition,
        mut f: impl FnMut(ReachedPosition) -> Result<()>,
    ) -> Result<()> {
        let mut open: Option<ReachedPosition> = None;
        for text in self.texts.sorted() {
            let Some(path) = read(&text?, rules) else {
                continue;
            };
            match &mut open {
                Some(reached) if reached.pos().identity() == path.pos.identity() => {
                    reached.add(path)
                }
                _ => {
                    if let Some(before) = open.replace(ReachedPosition::new(path)) {
                        f(before)?;
                    }
                }
            }
        }
        open.map_or(Ok(()), f)
    }
}

/// Decodes a path of a level. Returns `None` if the bytes are malformed. `rules` is any position of the same variant.
fn read(text: &[u8], rules: &VariantPosition) -> Option<LinePath> {
    let (_, rest) = text.split_first_chunk::<8>()?;
    let (count, rest) = rest.split_first_chunk()?;
    let (before, rest) = rest.split_at_checked(8 * u64::from_be_bytes(*count) as usize)?;
    let (numbers, pos) = rest.get(COUNTERS..)?.split_first_chunk::<NUMBERS>()?;
    let (pos, opening) = std::str::from_utf8(pos).ok()?.split_once('\0')?;
    let pos = restored(pos, rules)?;
    let ([weight, portion], _) = numbers.as_chunks() else {
        return None;
    };
    Some(LinePath {
        pos: Keyed::new(pos),
        opening: opening.to_owned(),
        before: before
            .as_chunks()
            .0
            .iter()
            .copied()
            .map(u64::from_be_bytes)
            .collect(),
        weight: u64::from_be_bytes(*weight),
        portion: f64::from_be_bytes(*portion),
    })
}
