//! Measures the progress of an operation, which another thread can display.

use std::sync::{
    Arc,
    atomic::{AtomicBool, AtomicU64, Ordering},
};

use crate::error::{Error, Result};

/// The progress of an operation: the number of completed steps and the total number of steps. Another thread can
/// display it while the operation runs. A run of [`MakeBook`](crate::make_book::MakeBook) reports
/// [phases](crate::make_book::Progress) instead.
///
/// ```
/// use polybook::{book::{Book, lines}, counts::Memory, progress::Meter};
///
/// let meter = Meter::default();
/// assert_eq!(meter.fraction(), None);
/// let book = Book::from_bytes(vec![1; 32]).expect("two records");
/// lines::count(&book, &Memory::default(), &meter)?;
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
    /// Returns the completed fraction of the operation, from 0 to 1. Returns `None` while the total number of steps is
    /// unknown.
    pub fn fraction(&self) -> Option<f64> {
        let total = self.total();
        let done = self.done.load(Ordering::Relaxed);
        (total > 0).then(|| (done as f64 / total as f64).min(1.0))
    }

    /// Creates a meter for an operation that can be cancelled by setting the flag `stop` to `true`. The operation must
    /// regularly call [`check`](Meter::check) to notice this.
    pub(crate) fn stopped_by(stop: &Arc<AtomicBool>) -> Meter {
        Meter {
            stop: Arc::clone(stop),
            ..Meter::default()
        }
    }

    /// Returns [`Error::Interrupted`] if the operation has been cancelled.
    pub(crate) fn check(&self) -> Result<()> {
        if self.stop.load(Ordering::Relaxed) {
            Err(Error::Interrupted)
        } else {
            Ok(())
        }
    }

    /// Adds `steps` to the total number of steps.
    pub(crate) fn add_total(&self, steps: u64) {
        self.total.fetch_add(steps, Ordering::Relaxed);
    }

    /// Returns the total number of steps, including steps that are not completed yet.
    pub fn total(&self) -> u64 {
        self.total.load(Ordering::Relaxed)
    }

    /// Returns the number of completed steps.
    pub fn done(&self) -> u64 {
        self.done.load(Ordering::Relaxed)
    }

    /// Sets the number of completed steps and the total number of steps to 0.
    pub(crate) fn reset(&self) {
        self.done.store(0, Ordering::Relaxed);
        self.total.store(0, Ordering::Relaxed);
    }

    /// Adds `steps` to the number of completed steps.
    pub(crate) fn advance(&self, steps: u64) {
        self.done.fetch_add(steps, Ordering::Relaxed);
    }
}

/// The number of steps into which [`FractionalProgress`] divides an operation. A [`Meter`] counts whole steps, so
/// fractions are converted to steps.
const STEPS: u64 = 1 << 20;

/// The progress of an operation whose number of steps is not known in advance, such as a walk through a tree. The
/// operation reports the size of each completed part as a fraction of the whole.
#[derive(Debug)]
pub(crate) struct FractionalProgress<'a> {
    meter: &'a Meter,
    done: f64,
    /// The number of completed steps that were reported to the meter.
    reported: u64,
}

impl<'a> FractionalProgress<'a> {
    /// Creates the progress of an operation that begins now, and reports it to `meter`.
    pub(crate) fn new(meter: &'a Meter) -> FractionalProgress<'a> {
        meter.add_total(STEPS);
        FractionalProgress {
            meter,
            done: 0.0,
            reported: 0,
        }
    }

    /// Creates the progress of another operation, and reports it to the same meter.
    pub(crate) fn of_same_meter(&self) -> FractionalProgress<'a> {
        FractionalProgress::new(self.meter)
    }

    /// Returns [`Error::Interrupted`] if the operation has been cancelled.
    pub(crate) fn check(&self) -> Result<()> {
        self.meter.check()
    }

    /// Reports that a further part of the operation has been completed. `portion` is the size of this part, as a
    /// fraction of the whole operation.
    pub(crate) fn add(&mut self, portion: f64) {
        self.done += portion;
        let steps = ((self.done * STEPS as f64) as u64).min(STEPS);
        self.meter.advance(steps - self.reported);
        self.reported = steps;
    }

    /// Reports that the operation is complete. All of its steps then count as completed, even if the portions passed to
    /// [`add`](FractionalProgress::add) amount to less than 1.
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
        let (mut first, mut second) = (
            FractionalProgress::new(&meter),
            FractionalProgress::new(&meter),
        );
        first.add(0.5);
        assert_eq!(meter.fraction(), Some(0.25));
        first.add(0.25);
        first.finish();
        second.add(0.125);
        assert_eq!(meter.fraction(), Some(0.5625));
    }
}
