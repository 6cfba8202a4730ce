//! Finding the positions behind the keys again.
//!
//! Counts know positions by their keys alone, and a key does not give its position back. But every
//! position that was counted was reached by counted moves from where some game started. Playing these
//! moves from there, each position's once, comes to all of them, and costs no memory while games are
//! being read.

use std::sync::{
    Mutex, PoisonError,
    atomic::{AtomicBool, AtomicU64, Ordering},
};

use rayon::Scope;

use crate::{
    error::{Error, Result},
    position::{Keyed, Rules},
    tally::{Counts, Finder, Marks, MoveCount},
};

/// Positions that wait; past so many, half of them are for another thread to take.
const SHARED: usize = 48;

/// A position in which games started.
pub type Start<P> = Keyed<P>;

/// What a walk calls with each position and its moves, from any thread.
pub(super) trait Visit<P>: Fn(&P, &[MoveCount]) -> Result<()> + Sync {}

impl<P, F: Fn(&P, &[MoveCount]) -> Result<()> + Sync> Visit<P> for F {}

/// Calls `visit` with each position that can be reached from the starts by counted moves, once, in any
/// order. Works on all threads of the rayon pool that it is called in.
///
/// Answers how many positions and moves there are that it did not come to. There are none unless two
/// positions share a key.
pub(super) fn walk<P, F>(
    counts: &Counts,
    starts: impl Iterator<Item = Result<Start<P>>>,
    stop: &AtomicBool,
    visit: F,
) -> Result<u64>
where
    P: Rules + Send + Sync,
    F: Visit<P>,
{
    let finder = counts.finder()?;
    let positions = finder.positions();
    let walk = Walk {
        marks: finder.marks(),
        finder,
        visit,
        visited: AtomicU64::new(0),
        illegal: AtomicU64::new(0),
        failure: Mutex::new(None),
        stop,
        failed: AtomicBool::new(false),
    };
    rayon::in_place_scope(|scope| {
        for start in starts {
            let start = start?;
            scope.spawn(|scope| walk.go(scope, vec![start]));
        }
        Ok::<(), Error>(())
    })?;
    let failure = walk.failure.into_inner();
    match failure.unwrap_or_else(PoisonError::into_inner) {
        Some(err) => Err(err),
        None => Ok(positions - walk.visited.into_inner() + walk.illegal.into_inner()),
    }
}

struct Walk<'a, F> {
    finder: Finder<'a>,
    /// The positions that were visited.
    marks: Marks,
    visit: F,
    visited: AtomicU64,
    /// Moves that belong to another position of the same key.
    illegal: AtomicU64,
    /// The first thing that went wrong.
    failure: Mutex<Option<Error>>,
    failed: AtomicBool,
    stop: &'a AtomicBool,
}

impl<F> Walk<'_, F> {
    /// Goes on from the positions of a stack, in depth first, so that few wait.
    fn go<'scope, P>(&'scope self, scope: &Scope<'scope>, stack: Vec<Keyed<P>>)
    where
        P: Rules + Send + Sync + 'scope,
        F: Visit<P>,
    {
        if let Err(err) = self.try_go(scope, stack) {
            let mut failure = self.failure.lock().unwrap_or_else(PoisonError::into_inner);
            failure.get_or_insert(err);
            self.failed.store(true, Ordering::Relaxed);
        }
    }

    fn try_go<'scope, P>(
        &'scope self,
        scope: &Scope<'scope>,
        mut stack: Vec<Keyed<P>>,
    ) -> Result<()>
    where
        P: Rules + Send + Sync + 'scope,
        F: Visit<P>,
    {
        let (mut desk, mut moves) = (Vec::new(), Vec::new());
        let (mut visited, mut illegal) = (0, 0);
        while let Some(mut line) = stack.pop() {
            let Some(place) = self.finder.find(line.identity(), &mut desk, &mut moves)? else {
                continue;
            };
            if !self.marks.set(place) {
                continue;
            }
            visited += 1;
            (self.visit)(line.position(), &moves)?;
            let mut last = None;
            for count in &moves {
                match count.mv.to_move(line.position()) {
                    Some(mv) => {
                        // The last one needs no copy.
                        if let Some(before) = last.replace(mv) {
                            let mut next = line.clone();
                            next.play(before);
                            stack.push(next);
                        }
                    }
                    None => illegal += 1,
                }
            }
            if let Some(mv) = last {
                line.play(mv);
                stack.push(line);
            }
            if stack.len() > SHARED {
                let rest = stack.drain(..SHARED / 2).collect();
                scope.spawn(|scope| self.go(scope, rest));
                if self.failed.load(Ordering::Relaxed) {
                    break;
                }
                if self.stop.load(Ordering::Relaxed) {
                    return Err(Error::Interrupted);
                }
            }
        }
        self.visited.fetch_add(visited, Ordering::Relaxed);
        self.illegal.fetch_add(illegal, Ordering::Relaxed);
        Ok(())
    }
}
