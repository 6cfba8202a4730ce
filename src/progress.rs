//! The progress of an operation, for another thread that shows it.

use std::sync::{
    Arc,
    atomic::{AtomicBool, AtomicU64, Ordering},
};

use crate::error::{Error, Result};

/// The progress of an operation whose steps are of one kind, such as records that are read. A run that makes a book has
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
    /// Returns the fraction of the steps that are done, from 0 to 1, or `None` while the number of steps is not known.
    pub fn fraction(&self) -> Option<f64> {
        let total = self.total();
        let done = self.done.load(Ordering::Relaxed);
        (total > 0).then(|| (done as f64 / total as f64).min(1.0))
    }

    /// Creates the meter of an operation that is cancelled by a flag. The operation must call [`check`](Meter::check).
    #[cfg(feature = "serve")]
    pub(crate) fn stopped_by(stop: &Arc<AtomicBool>) -> Meter {
        Meter {
            stop: Arc::clone(stop),
            ..Meter::default()
        }
    }

    /// Returns [`Error::Interrupted`] if the operation was cancelled.
    pub(crate) fn check(&self) -> Result<()> {
        match self.stop.load(Ordering::Relaxed) {
            true => Err(Error::Interrupted),
            false => Ok(()),
        }
    }

    /// Adds steps to the total.
    pub(crate) fn add_total(&self, steps: u64) {
        self.total.fetch_add(steps, Ordering::Relaxed);
    }

    /// Returns the number of steps, done or not.
    pub(crate) fn total(&self) -> u64 {
        self.total.load(Ordering::Relaxed)
    }

    /// Sets both the steps done and the total to 0.
    pub(crate) fn reset(&self) {
        self.done.store(0, Ordering::Relaxed);
        self.total.store(0, Ordering::Relaxed);
    }

    /// Adds steps to the steps done.
    pub(crate) fn advance(&self, steps: u64) {
        self.done.fetch_add(steps, Ordering::Relaxed);
    }
}

/// The steps of a [`Meter`] that one [`Portions`] takes.
const WHOLE: u64 = 1 << 20;

/// The progress of an operation whose number of steps is not known before, such as a walk through a tree: each part of it is
/// reported as a fraction of the whole, from 0 to 1.
#[derive(Debug)]
pub(crate) struct Portions<'a> {
    meter: &'a Meter,
    done: f64,
    /// The steps that were added to the meter.
    reported: u64,
}

impl<'a> Portions<'a> {
    /// Creates the progress of an operation of which nothing is done.
    pub(crate) fn new(meter: &'a Meter) -> Portions<'a> {
        meter.add_total(WHOLE);
        Portions {
            meter,
            done: 0.0,
            reported: 0,
        }
    }

    /// Returns [`Error::Interrupted`] if the operation was cancelled.
    pub(crate) fn check(&self) -> Result<()> {
        self.meter.check()
    }

    /// Adds the fraction of a part that is done.
    pub(crate) fn add(&mut self, portion: f64) {
        self.done += portion;
        let steps = ((self.done * WHOLE as f64) as u64).min(WHOLE);
        self.meter.advance(steps - self.reported);
        self.reported = steps;
    }

    /// Reports the whole operation as done.
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
