//! How far an operation has come, for another thread that shows it.

use std::sync::{
    Arc,
    atomic::{AtomicBool, AtomicU64, Ordering},
};

use crate::error::{Error, Result};

/// Work that is done in steps of one kind, such as records that are read. A run that makes a book has
/// [phases](crate::make_book::Progress) instead.
///
/// ```
/// use polybook::{book::{Book, lines}, progress::Meter};
///
/// let meter = Meter::default();
/// assert_eq!(meter.fraction(), None);
/// lines::count(&Book::from_bytes(vec![1; 32]).expect("two records"), &meter)?;
/// assert!(meter.fraction().is_some());
/// # Ok::<(), polybook::Error>(())
/// ```
#[derive(Debug, Default)]
pub struct Meter {
    done: AtomicU64,
    total: AtomicU64,
    stop: Arc<AtomicBool>,
}

impl Meter {
    /// How much is done, from 0 to 1; `None` while the size of the work is not known.
    pub fn fraction(&self) -> Option<f64> {
        let total = self.total();
        let done = self.done.load(Ordering::Relaxed);
        (total > 0).then(|| (done as f64 / total as f64).min(1.0))
    }

    /// The meter of work that ends when a flag is set, if it looks at it.
    #[cfg(feature = "serve")]
    pub(crate) fn stopped_by(stop: &Arc<AtomicBool>) -> Meter {
        Meter {
            stop: Arc::clone(stop),
            ..Meter::default()
        }
    }

    /// Refuses to go on with work that shall end.
    pub(crate) fn check(&self) -> Result<()> {
        match self.stop.load(Ordering::Relaxed) {
            true => Err(Error::Interrupted),
            false => Ok(()),
        }
    }

    /// Adds steps to the work.
    pub(crate) fn add_total(&self, steps: u64) {
        self.total.fetch_add(steps, Ordering::Relaxed);
    }

    /// How many steps there are.
    pub(crate) fn total(&self) -> u64 {
        self.total.load(Ordering::Relaxed)
    }

    /// Begins anew, with no work.
    pub(crate) fn reset(&self) {
        self.done.store(0, Ordering::Relaxed);
        self.total.store(0, Ordering::Relaxed);
    }

    /// Counts steps that are done.
    pub(crate) fn advance(&self, steps: u64) {
        self.done.fetch_add(steps, Ordering::Relaxed);
    }
}

/// Steps that the whole of some [`Portions`] counts as.
const WHOLE: u64 = 1 << 20;

/// Work that is divided into parts, and these again, whose size is not known before: each part is a portion of the
/// whole, from 0 to 1.
#[derive(Debug)]
pub(crate) struct Portions<'a> {
    meter: &'a Meter,
    done: f64,
    /// Steps that the meter has.
    reported: u64,
}

impl<'a> Portions<'a> {
    /// Work that has not begun.
    pub(crate) fn new(meter: &'a Meter) -> Portions<'a> {
        meter.add_total(WHOLE);
        Portions {
            meter,
            done: 0.0,
            reported: 0,
        }
    }

    /// Refuses to go on with work that shall end.
    pub(crate) fn check(&self) -> Result<()> {
        self.meter.check()
    }

    /// Counts a part that is done.
    pub(crate) fn add(&mut self, portion: f64) {
        self.done += portion;
        let steps = ((self.done * WHOLE as f64) as u64).min(WHOLE);
        self.meter.advance(steps - self.reported);
        self.reported = steps;
    }

    /// Counts all that is left, at the end.
    pub(crate) fn finish(&mut self) {
        self.add(1.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fraction_of_the_work_that_is_known() {
        let meter = Meter::default();
        assert_eq!(meter.fraction(), None);
        meter.add_total(4);
        meter.advance(1);
        assert_eq!(meter.fraction(), Some(0.25));
        meter.add_total(4);
        assert_eq!(meter.fraction(), Some(0.125));
        meter.advance(9);
        assert_eq!(meter.fraction(), Some(1.0));
    }

    #[test]
    fn portions_of_two_works() {
        let meter = Meter::default();
        let (mut first, mut second) = (Portions::new(&meter), Portions::new(&meter));
        first.add(0.5);
        assert_eq!(meter.fraction(), Some(0.25));
        first.add(0.25);
        first.finish();
        second.add(0.125);
        assert_eq!(meter.fraction(), Some(0.5625));
    }
}
