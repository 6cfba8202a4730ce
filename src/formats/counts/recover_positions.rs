//! Finds the positions whose keys were counted.
//!
//! A tally stores only the key of each position, and a position cannot be computed from its key. But every counted
//! position was reached by counted moves from the starting position of some game. Therefore a walk that begins in all
//! starting positions and plays the counted moves of each position finds all counted positions. Storing the positions
//! themselves would take three times the memory.

use std::{
    iter::Fuse,
    sync::{
        Mutex,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
};

use rayon::Scope;
use shakmaty::Move;

use super::{Counts, Finder, LookUpBuffers, MoveCount, RecordRange, VisitedBits};
use crate::{
    chess::position::{BookMove, Keyed, Rules},
    error::{Error, Result},
    games::results::Wdl,
    task::{self, Failure},
};

/// The maximum number of positions on the stack of a task, on which positions wait until the task visits them. If the
/// stack grows longer, the task hands `MAX_STACK / 2` positions to a new task.
const MAX_STACK: usize = 64;

/// The number of lines (sequences of moves) that a task follows at the same time. A lookup of a position must wait for
/// memory. Meanwhile, the processor can look up the positions of other lines.
const LINES_PER_TASK: usize = 32;

/// The number of starting positions that a task takes at once from the iterator over all starting positions.
const STARTS_PER_TASK: usize = MAX_STACK;

/// A position that a walk found, with the moves that were counted in it.
pub(crate) struct FoundPosition<'a, P> {
    pub line: &'a Keyed<P>,
    /// The hashes under which moves of the position were counted: its identity, the exact identities of the same
    /// position with another en passant right, or both.
    pub identities: &'a [u64],
    /// The legal moves that were counted in the position.
    pub moves: &'a [LegalCount],
}

/// A function that a walk calls once for each position. The first argument is a value that belongs to one task of the
/// walk, such as a buffer. Several threads may call the function at the same time.
pub(crate) trait Visit<P, D>: Fn(&mut D, FoundPosition<'_, P>) -> Result<()> + Sync {}

impl<P, D, F: Fn(&mut D, FoundPosition<'_, P>) -> Result<()> + Sync> Visit<P, D> for F {}

/// A legal move in a position, and the results that were counted for it.
#[derive(Copy, Clone, Debug)]
pub(crate) struct LegalCount {
    pub mv: Move,
    pub stats: Wdl,
}

/// Finds the positions whose keys `counts` contains. Begins in the positions `starts`, and plays the counted moves of
/// each position that it reaches. Calls `visit` once for each position, in arbitrary order. Uses all threads of the
/// current rayon pool.
///
/// Returns the number of lost entries: counted positions that the walk did not reach, plus counted moves that are
/// illegal in the reached position with their key. If `starts` contains the starting positions of all games, this
/// number is 0 unless two positions have the same hash key.
///
/// # Errors
///
/// Returns an error if `starts` or `visit` returns one, or if a temporary file cannot be read. Returns
/// [`Error::Interrupted`] if `stop` is set.
pub(crate) fn recover_positions<P, D, F>(
    counts: &Counts,
    starts: impl Iterator<Item = Result<Keyed<P>>> + Send,
    stop: &AtomicBool,
    visit: F,
) -> Result<u64>
where
    P: Rules,
    D: Default,
    F: Visit<P, D>,
{
    let finder = counts.finder()?;
    let positions = finder.positions();
    let walk = CountWalk {
        marks: finder.visited_bits(),
        finder,
        visit,
        visited: AtomicU64::new(0),
        illegal: AtomicU64::new(0),
        failure: Failure::default(),
        stop,
    };
    let starts = Mutex::new(starts.fuse());
    rayon::scope(|scope| walk.take_starts::<P, D, _>(scope, &starts));
    walk.failure.take()?;
    Ok(positions - walk.visited.into_inner() + walk.illegal.into_inner())
}

/// Returns an iterator over the starting positions in `starts`, each with its key. Skips items that are `None`, which
/// come from EPDs that could not be parsed.
pub(crate) fn keyed_starts<P: Rules>(
    starts: impl Iterator<Item = Result<Option<P>>>,
) -> impl Iterator<Item = Result<Keyed<P>>> {
    starts.filter_map(|start| start.map(|start| start.map(Keyed::new)).transpose())
}

struct CountWalk<'a, F> {
    finder: Finder<'a>,
    /// The set of positions that have been visited.
    marks: VisitedBits,
    visit: F,
    visited: AtomicU64,
    /// The number of moves that are illegal, because they belong to another position with the same key.
    illegal: AtomicU64,
    failure: Failure,
    stop: &'a AtomicBool,
}

/// The state of a task of a walk. The task follows several lines of moves at the same time.
struct Follower<P, D> {
    lines: Vec<Keyed<P>>,
    ranges: Vec<RecordRange>,
    scratch: LookUpBuffers,
    legal: Vec<LegalCount>,
    /// The hashes under which the moves in `legal` were counted.
    identities: Vec<u64>,
    /// The value that the task passes to the visit function.
    own: D,
}

impl<F> CountWalk<'_, F> {
    /// Takes [`STARTS_PER_TASK`] positions from `starts`, and walks from these positions. First spawns a task in
    /// `scope` that will take the next positions. rayon runs this task only when a thread has no other work, so few
    /// positions are in memory at the same time.
    fn take_starts<'scope, P, D, I>(
        &'scope self,
        scope: &Scope<'scope>,
        starts: &'scope Mutex<Fuse<I>>,
    ) where
        P: Rules + 'scope,
        D: Default,
        F: Visit<P, D>,
        I: Iterator<Item = Result<Keyed<P>>> + Send,
    {
        self.failure.watch(|| {
            if self.failure.is_set() {
                return Ok(());
            }
            let stack: Result<Vec<_>> = task::lock(starts).by_ref().take(STARTS_PER_TASK).collect();
            let stack = stack?;
            if stack.is_empty() {
                return Ok(());
            }
            // A rayon thread runs its own newest task first, and steals the oldest tasks of other threads.
            scope.spawn(move |scope| self.take_starts::<P, D, I>(scope, starts));
            self.go(scope, stack)
        });
    }

    /// Walks from all positions on `stack`. The walk is depth-first, which keeps the stack small. If the stack
    /// nevertheless exceeds [`MAX_STACK`] positions, hands part of the stack to a new task in `scope`.
    fn go<'scope, P, D>(&'scope self, scope: &Scope<'scope>, mut stack: Vec<Keyed<P>>) -> Result<()>
    where
        P: Rules + 'scope,
        D: Default,
        F: Visit<P, D>,
    {
        let mut follower = Follower {
            lines: Vec::with_capacity(LINES_PER_TASK),
            ranges: Vec::new(),
            scratch: LookUpBuffers::default(),
            legal: Vec::new(),
            identities: Vec::new(),
            own: D::default(),
        };
        loop {
            let next = stack
                .len()
                .saturating_sub(LINES_PER_TASK - follower.lines.len());
            follower.lines.extend(stack.drain(next..));
            if follower.lines.is_empty() || self.failure.is_set() {
                return Ok(());
            }
            if self.stop.load(Ordering::Relaxed) {
                return Err(Error::Interrupted);
            }
            task::fault("walk");
            self.follow(&mut follower, &mut stack)?;
            if stack.len() > MAX_STACK {
                let rest = stack.drain(..MAX_STACK / 2).collect();
                scope.spawn(|scope| self.failure.watch(|| self.go::<P, D>(scope, rest)));
            }
        }
    }

    /// Advances each line of `follower` by one half-move. For each line, visits the current position and plays the
    /// first of the moves that were counted in it. Pushes the positions after the other counted moves onto `stack`,
    /// from which they are visited later. Removes a line if its current position has no counted moves or was visited
    /// before.
    fn follow<P, D>(&self, follower: &mut Follower<P, D>, stack: &mut Vec<Keyed<P>>) -> Result<()>
    where
        P: Rules,
        F: Visit<P, D>,
    {
        let Follower {
            lines,
            ranges,
            scratch,
            legal,
            identities,
            own,
        } = follower;
        let (mut visited, mut illegal) = (0, 0);
        self.finder
            .find_ranges(lines.iter().map(Keyed::identity), ranges);
        self.marks.fetch(ranges);
        // Iterates in descending order, because `swap_remove` replaces a removed line by the last line, which has been
        // advanced already.
        for (number, range) in ranges.iter().enumerate().rev() {
            let line = &mut lines[number];
            legal.clear();
            identities.clear();
            let mut is_new = None;
            // Adds the moves that were counted under one identity of the position. Returns `false` if the position was
            // visited before.
            let mut add = |identity, range| -> Result<bool> {
                let Some(found) = self.finder.find(range, scratch)? else {
                    return Ok(true);
                };
                // The bit of the first identity with counted moves represents the position.
                if !*is_new.get_or_insert_with(|| self.marks.set(found.place)) {
                    return Ok(false);
                }
                visited += 1;
                identities.push(identity);
                illegal += add_legal(found.moves, line.position(), legal);
                Ok(true)
            };
            if add(line.identity(), *range)? {
                for identity in line.other_exact_identities() {
                    if !add(identity, self.finder.range_of(identity))? {
                        break;
                    }
                }
            }
            if is_new == Some(true) {
                let found = FoundPosition {
                    line,
                    identities,
                    moves: legal,
                };
                (self.visit)(own, found)?;
            }
            let Some((first, others)) = legal.split_first() else {
                lines.swap_remove(number);
                continue;
            };
            for count in others {
                let mut after = line.clone();
                after.play(count.mv);
                stack.push(after);
            }
            line.play(first.mv);
        }
        self.visited.fetch_add(visited, Ordering::Relaxed);
        self.illegal.fetch_add(illegal, Ordering::Relaxed);
        Ok(())
    }
}

/// Appends the moves in `moves` that are legal in `pos` to `legal`, with their results. If `legal` already contains a
/// move, adds up its results. Returns the number of illegal moves in `moves`, which were counted in another position
/// with the same hash key.
fn add_legal<P: Rules>(moves: &[MoveCount], pos: &P, legal: &mut Vec<LegalCount>) -> u64 {
    let known = legal.len();
    let mut illegal = 0;
    for count in moves {
        let Some(mv) = pos.quick_move(count.mv).or_else(|| count.mv.to_move(pos)) else {
            illegal += 1;
            continue;
        };
        let stats = count.stats;
        match legal[..known].iter_mut().find(|known| known.mv == mv) {
            Some(known) => known.stats += stats,
            None => legal.push(LegalCount { mv, stats }),
        }
    }
    if known > 0 {
        legal.sort_by_key(|count| BookMove::from(count.mv));
    }
    illegal
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use shakmaty::{Chess, Position};

    use super::*;
    use crate::{
        chess::position::{read_move, write_epd},
        error::Error,
        formats::counts::{CountBatch, Tally},
        storage::sort::Memory,
    };

    fn epd(pos: &Chess) -> String {
        let mut text = Vec::new();
        write_epd(pos, &mut text);
        String::from_utf8(text).unwrap()
    }

    /// Counts the games `lines` with `bytes` bytes of memory. Returns the counts, and for each position the moves
    /// that a walk must find.
    fn counted(lines: &[&str], bytes: usize) -> (Counts, BTreeMap<String, BTreeSet<String>>) {
        let tally = Tally::new(Memory {
            bytes,
            ..Memory::default()
        });
        let mut batch = CountBatch::default();
        let mut expected: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        for line in lines {
            let mut line_pos = Keyed::new(Chess::default());
            for san in line.split(' ') {
                let pos = line_pos.position();
                let mv = read_move(pos, san.as_bytes()).unwrap();
                let moves = expected.entry(epd(pos)).or_default();
                moves.insert(mv.to_string());
                let won = Wdl {
                    wins: 1,
                    ..Wdl::default()
                };
                batch.push(line_pos.identity(), BookMove::from(mv), pos.turn(), won);
                line_pos.play(mv);
            }
        }
        tally.add_batch(&batch).unwrap();
        (tally.sort().unwrap(), expected)
    }

    const LINES: [&str; 4] = [
        "d4 d5 c4 e6 Nc3",
        "c4 d5 d4 e6 Nf3",
        "e4 e5 Nf3 Nc6 Bb5 a6 Ba4",
        "Nf3 Nf6 Ng1 Ng8 Nf3 d5",
    ];

    fn walked(
        counts: &Counts,
        starts: impl Iterator<Item = Result<Keyed<Chess>>> + Send,
    ) -> Result<(BTreeMap<String, BTreeSet<String>>, u64)> {
        let found = Mutex::new(BTreeMap::new());
        let visit = |_: &mut (), position: FoundPosition<'_, Chess>| {
            let pos = position.line.position();
            assert_eq!(position.identities, [position.line.identity()]);
            let moves = position.moves.iter();
            let moves = moves.map(|count| count.mv.to_string()).collect();
            let before = found.lock().unwrap().insert(epd(pos), moves);
            assert!(before.is_none(), "visited twice: {}", epd(pos));
            Ok(())
        };
        let strays = recover_positions(counts, starts, &AtomicBool::new(false), visit)?;
        Ok((found.into_inner().unwrap(), strays))
    }

    fn start() -> Keyed<Chess> {
        Keyed::new(Chess::default())
    }

    #[test]
    fn every_position_is_visited_once_with_its_moves() {
        for bytes in [0, 1 << 20] {
            let (counts, expected) = counted(&LINES, bytes);
            let (found, strays) = walked(&counts, std::iter::once(Ok(start()))).unwrap();
            assert_eq!((found, strays), (expected, 0));
        }
    }

    #[test]
    fn many_starts_are_as_good_as_one() {
        let (counts, expected) = counted(&LINES, 1 << 20);
        let starts = std::iter::repeat_with(|| Ok(start())).take(10 * STARTS_PER_TASK + 1);
        let (found, strays) = walked(&counts, starts).unwrap();
        assert_eq!((found, strays), (expected, 0));
    }

    #[test]
    fn what_cannot_be_reached_is_counted() {
        let (counts, expected) = counted(&LINES, 1 << 20);
        let (found, strays) = walked(&counts, std::iter::empty()).unwrap();
        assert!(found.is_empty());
        assert_eq!(strays, expected.len() as u64);
    }

    #[test]
    fn failures_and_the_stop_flag_end_a_walk() {
        let (counts, _) = counted(&LINES, 1 << 20);
        let bad = [Ok(start()), Err(Error::file("starts", "cannot be read"))];
        let err = walked(&counts, bad.into_iter()).unwrap_err();
        assert!(err.to_string().contains("starts"), "{err}");

        let visit = |_: &mut (), _: FoundPosition<'_, Chess>| Err(Error::file("rows", "full"));
        let stop = AtomicBool::new(false);
        let err =
            recover_positions(&counts, std::iter::once(Ok(start())), &stop, visit).unwrap_err();
        assert!(err.to_string().contains("rows"), "{err}");

        let visit = |_: &mut (), _: FoundPosition<'_, Chess>| Ok(());
        let stop = AtomicBool::new(true);
        let err = recover_positions(
            &counts,
            std::iter::repeat_with(|| Ok(start())),
            &stop,
            visit,
        );
        assert!(matches!(err, Err(Error::Interrupted)));
    }
}
