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
use shakmaty::Move;

use crate::{
    error::{Error, Result},
    position::{Keyed, Rules},
    tally::{Counts, Finder, Marks, Scratch, Stats},
};

/// Positions that wait; past so many, half of them are for another thread to take.
const SHARED: usize = 64;

/// Positions that are looked for at the same time.
const TOGETHER: usize = 16;

/// What a walk calls with each position and its moves, from any thread, and with a desk to work on.
pub(super) trait Visit<P, D>: Fn(&mut D, &P, &[LegalCount]) -> Result<()> + Sync {}

impl<P, D, F: Fn(&mut D, &P, &[LegalCount]) -> Result<()> + Sync> Visit<P, D> for F {}

/// A counted move of a position, as the rules have it.
#[derive(Copy, Clone, Debug)]
pub(super) struct LegalCount {
    pub mv: Move,
    pub stats: Stats,
}

/// Calls `visit` with each position that can be reached from the starts by counted moves, once, in any
/// order. Works on all threads of the rayon pool that it is called in.
///
/// Answers how many positions and moves there are that it did not come to. There are none unless two
/// positions share a key.
pub(super) fn walk<P, D, F>(
    counts: &Counts,
    starts: impl Iterator<Item = Result<Keyed<P>>>,
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
            scope.spawn(|scope| walk.go::<P, D>(scope, vec![start]));
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
    fn go<'scope, P, D>(&'scope self, scope: &Scope<'scope>, stack: Vec<Keyed<P>>)
    where
        P: Rules + 'scope,
        D: Default,
        F: Visit<P, D>,
    {
        if let Err(err) = self.try_go(scope, stack) {
            let mut failure = self.failure.lock().unwrap_or_else(PoisonError::into_inner);
            failure.get_or_insert(err);
            self.failed.store(true, Ordering::Relaxed);
        }
    }

    fn try_go<'scope, P, D>(
        &'scope self,
        scope: &Scope<'scope>,
        mut stack: Vec<Keyed<P>>,
    ) -> Result<()>
    where
        P: Rules + 'scope,
        D: Default,
        F: Visit<P, D>,
    {
        let mut own = D::default();
        let (mut scratch, mut legal) = (Scratch::default(), Vec::new());
        let (mut visited, mut illegal) = (0, 0);
        let (mut next, mut parts) = (Vec::new(), Vec::new());
        while !stack.is_empty() {
            next.clear();
            next.extend(stack.drain(stack.len().saturating_sub(TOGETHER)..));
            parts.clear();
            parts.extend(next.iter().map(|line| self.finder.part(line.identity())));
            for (line, part) in next.iter().zip(&parts) {
                let Some(found) = self.finder.find(*part, &mut scratch)? else {
                    continue;
                };
                if !self.marks.set(found.place) {
                    continue;
                }
                visited += 1;
                legal.clear();
                legal.extend(found.moves.iter().filter_map(|count| {
                    let mv = count.mv.to_move(line.position())?;
                    let stats = count.stats;
                    Some(LegalCount { mv, stats })
                }));
                illegal += (found.moves.len() - legal.len()) as u64;
                (self.visit)(&mut own, line.position(), &legal)?;
                for count in &legal {
                    stack.push(line.clone());
                    if let Some(behind) = stack.last_mut() {
                        behind.play(count.mv);
                    }
                }
            }
            if stack.len() > SHARED {
                let rest = stack.drain(..SHARED / 2).collect();
                scope.spawn(|scope| self.go::<P, D>(scope, rest));
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
