//! Suites of positions of a database or a book.

use std::path::Path;

use shakmaty::{Position, variant::VariantPosition};

use super::{
    Suite, SuiteOf,
    ranking::{Candidate, Ranking},
    write::{epd, note_of_times},
};
use crate::{
    error::Result,
    position::{Keyed, restored, stored},
    progress::Portions,
    sort::{Memory, TextSorter},
    tally::Stats,
    walk::{Source, TreeMove},
};

/// The most ways to a position that are kept apart by the positions on them.
const MOST_WAYS: usize = 64;

impl<S: Source> SuiteOf<'_, S> {
    /// Goes from level to level, and ranks the positions of the last.
    pub(super) fn rank_positions(&self, path: &Path) -> Result<Ranking<'_>> {
        let (suite, starts) = (self.suite, self.starts);
        let mut done = Portions::new(self.meter);
        let mut level = Level::new(self.memory.share(4));
        for pos in starts {
            level.add(&Way {
                pos: Keyed::new(pos.clone()),
                opening: suite.opening(pos, ""),
                before: Vec::new(),
                weight: 0,
                portion: 1.0 / starts.len() as f64,
            })?;
        }
        // All positions are of the same rules.
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
                    for way in reached.after(mv, moves.len(), suite) {
                        longest = ply + 1;
                        next.add(&way)?;
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
                way: &[reached.pos().identity()],
                games: results.map_or(reached.weight, Stats::games),
                opening: &reached.ways[0].opening,
                text: &(epd(reached.pos().position(), suite.opcodes) + &operations),
                note: &results.map(note_of_times).unwrap_or_default(),
            })
        })?;
        Ok(ranking)
    }
}

/// A way to a position.
struct Way {
    pos: Keyed<VariantPosition>,
    opening: String,
    /// The identities, in ascending order, of the positions on the way to which a move could lead back.
    before: Vec<u64>,
    /// The weight of the last move, or 0 if another way has it.
    weight: u64,
    /// How much of all lines is likely to come this way, from 0 to 1.
    portion: f64,
}

/// A position that lines come to.
struct ReachedPosition {
    /// The ways there. None can be left out: from each, a line can go on that no other can. There is one at
    /// least.
    ways: Vec<Way>,
    weight: u64,
    portion: f64,
}

impl ReachedPosition {
    fn new(way: Way) -> ReachedPosition {
        let (weight, portion) = (way.weight, way.portion);
        ReachedPosition {
            ways: vec![way],
            weight,
            portion,
        }
    }

    /// The position, with the counters of the way on which the last capture or pawn move was the shortest time ago.
    fn pos(&self) -> &Keyed<VariantPosition> {
        &self.ways[0].pos
    }

    /// Adds another way, which has no fewer positions than those before it.
    fn add(&mut self, way: Way) {
        self.weight += way.weight;
        self.portion += way.portion;
        let is_needless = |other: &Way| {
            let known = &way.before;
            other
                .before
                .iter()
                .all(|id| known.binary_search(id).is_ok())
        };
        if self.ways.len() < MOST_WAYS && !self.ways.iter().any(is_needless) {
            self.ways.push(way);
        }
    }

    /// The ways to the position after one of its moves, on which no position is repeated.
    fn after(&self, mv: &TreeMove, moves: usize, suite: &Suite) -> Vec<Way> {
        let mut ways: Vec<Way> = Vec::new();
        for way in &self.ways {
            let mut pos = way.pos.clone();
            pos.play(mv.mv);
            if way.before.binary_search(&pos.identity()).is_ok() {
                continue;
            }
            // In crazyhouse, what was captured can come back.
            let is_final = pos.position().halfmoves() == 0
                && !matches!(pos.position(), VariantPosition::Crazyhouse(_));
            let mut before = Vec::new();
            if !is_final {
                before.clone_from(&way.before);
                let here = way.pos.identity();
                let place = before.partition_point(|id| *id < here);
                before.insert(place, here);
            }
            let is_first = ways.is_empty();
            ways.push(Way {
                opening: suite.opening(pos.position(), &way.opening),
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
        ways
    }
}

/// Positions after the same number of half-moves. Past their memory they go to temporary files.
struct Level {
    /// The ways: the identity of each position, the positions before, the counters of moves, the numbers, the
    /// position, the opening.
    texts: TextSorter,
}

/// Bytes of the counters, and of the weight and the portion.
const COUNTERS: usize = 8;
const NUMBERS: usize = 16;

impl Level {
    fn new(memory: Memory) -> Level {
        Level {
            texts: TextSorter::new(memory, None),
        }
    }

    fn add(&mut self, way: &Way) -> Result<()> {
        let pos = way.pos.position();
        let stored = stored(pos);
        let mut text = way.pos.identity().to_be_bytes().to_vec();
        text.extend((way.before.len() as u64).to_be_bytes());
        text.extend(way.before.iter().flat_map(|id| id.to_be_bytes()));
        text.extend(pos.halfmoves().to_be_bytes());
        text.extend(pos.fullmoves().get().to_be_bytes());
        text.extend(way.weight.to_be_bytes());
        text.extend(way.portion.to_be_bytes());
        text.extend(stored.as_bytes());
        text.push(0);
        text.extend(way.opening.as_bytes());
        self.texts.push(&text)
    }

    /// Calls `f` with each position once, with the ways there.
    fn for_each(
        &mut self,
        rules: &VariantPosition,
        mut f: impl FnMut(ReachedPosition) -> Result<()>,
    ) -> Result<()> {
        let mut open: Option<ReachedPosition> = None;
        for text in self.texts.sorted() {
            let Some(way) = read(&text?, rules) else {
                continue;
            };
            match &mut open {
                Some(reached) if reached.pos().identity() == way.pos.identity() => reached.add(way),
                _ => {
                    if let Some(before) = open.replace(ReachedPosition::new(way)) {
                        f(before)?;
                    }
                }
            }
        }
        open.map_or(Ok(()), f)
    }
}

/// A way of a level.
fn read(text: &[u8], rules: &VariantPosition) -> Option<Way> {
    let (_, rest) = text.split_first_chunk::<8>()?;
    let (count, rest) = rest.split_first_chunk()?;
    let (before, rest) = rest.split_at_checked(8 * u64::from_be_bytes(*count) as usize)?;
    let (numbers, pos) = rest.get(COUNTERS..)?.split_first_chunk::<NUMBERS>()?;
    let (pos, opening) = std::str::from_utf8(pos).ok()?.split_once('\0')?;
    let pos = restored(pos, rules)?;
    let ([weight, portion], _) = numbers.as_chunks() else {
        return None;
    };
    Some(Way {
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
