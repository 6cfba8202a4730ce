//! The progress of a run of `make-book`.

use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};

use crate::progress::Meter;

/// A phase of a run of [`MakeBook`](crate::MakeBook).
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Phase {
    /// Games are read and replayed.
    Reading,
    /// Counts are sorted and added up.
    Sorting,
    /// The positions of the OOBS database are found and its rows are written.
    Database,
    /// The counts are written.
    Counts,
    /// The index of the LevelDB fork is written.
    Index,
    /// The explorer's index is written.
    Explorer,
    /// The book is written and all outputs are renamed.
    Book,
}

impl Phase {
    /// All phases, in the order in which a run goes through them.
    pub const ALL: [Phase; 7] = [
        Phase::Reading,
        Phase::Sorting,
        Phase::Database,
        Phase::Counts,
        Phase::Index,
        Phase::Explorer,
        Phase::Book,
    ];
}

/// The progress of a run of [`MakeBook`](crate::MakeBook), which another thread can display while the run is working.
///
/// ```
/// use polybook::{MakeBook, make_book::Phase, pgn::Input};
///
/// let run = MakeBook::new([Input::file("data/famous.pgn")]);
/// let progress = run.progress();
/// run.run()?;
/// assert_eq!(progress.phase(), Phase::Book);
/// assert_eq!((progress.games(), progress.fraction()), (45, Some(1.0)));
/// # Ok::<(), polybook::Error>(())
/// ```
#[derive(Debug, Default)]
pub struct Progress {
    phase: AtomicU8,
    /// The number of bytes read from the inputs, before decompression.
    bytes: AtomicU64,
    /// The total size of the inputs in bytes, or 0 if it is unknown.
    total_bytes: AtomicU64,
    games: AtomicU64,
    /// The progress within each phase after reading.
    meters: [Meter; Phase::ALL.len()],
    /// The estimated relative duration of each phase.
    costs: [AtomicU64; Phase::ALL.len()],
}

impl Progress {
    /// Returns the current phase of the run.
    pub fn phase(&self) -> Phase {
        Phase::ALL[usize::from(self.phase.load(Ordering::Relaxed))]
    }

    /// Returns the number of games read so far.
    pub fn games(&self) -> u64 {
        self.games.load(Ordering::Relaxed)
    }

    /// Returns how many bytes of the inputs were read so far, and the total size of the inputs in bytes. In compressed
    /// inputs, both numbers count the compressed bytes. The total is `None` if it is unknown, for example for standard
    /// input.
    pub fn bytes(&self) -> (u64, Option<u64>) {
        let total = self.total_bytes.load(Ordering::Relaxed);
        (
            self.bytes.load(Ordering::Relaxed),
            (total > 0).then_some(total),
        )
    }

    /// Returns the completed fraction of the current phase, from 0 to 1, or `None` if it is unknown.
    pub fn phase_fraction(&self) -> Option<f64> {
        match self.phase() {
            Phase::Reading => {
                let (read, total) = self.bytes();
                Some((read as f64 / total? as f64).min(1.0))
            }
            phase => self.meter(phase).fraction(),
        }
    }

    /// Returns the completed fraction of the whole run, from 0 to 1. It is computed from an estimate of how long each
    /// phase takes. Returns `None` while the inputs are read if their total size is unknown.
    pub fn fraction(&self) -> Option<f64> {
        let phase = self.phase();
        let present = self.phase_fraction();
        if phase == Phase::Reading {
            present?;
        }
        let cost = |phase: &Phase| self.costs[*phase as usize].load(Ordering::Relaxed) as f64;
        let total: f64 = Phase::ALL.iter().map(cost).sum();
        let before: f64 = Phase::ALL
            .iter()
            .filter(|other| **other < phase)
            .map(cost)
            .sum();
        Some((before + cost(&phase) * present.unwrap_or(0.0)) / total.max(1.0))
    }

    /// Resets the progress at the beginning of a run. `total_bytes` is the size of the inputs in bytes, or `None` if it
    /// is unknown. `writing` contains, for each output, the phase in which it is written, and its estimated cost. The
    /// cost is how long writing the output takes, in thousandths of the time for reading the inputs.
    pub(super) fn begin(
        &self,
        total_bytes: Option<u64>,
        writing: impl IntoIterator<Item = (Phase, u64)>,
    ) {
        self.phase.store(Phase::Reading as u8, Ordering::Relaxed);
        for number in [&self.bytes, &self.games].into_iter().chain(&self.costs) {
            number.store(0, Ordering::Relaxed);
        }
        self.meters.iter().for_each(Meter::reset);
        let total = total_bytes.unwrap_or(0);
        self.total_bytes.store(total, Ordering::Relaxed);
        let counting = [(Phase::Reading, 1000), (Phase::Sorting, 100)];
        for (phase, cost) in counting.into_iter().chain(writing) {
            self.costs[phase as usize].fetch_add(cost, Ordering::Relaxed);
        }
    }

    /// Marks the run as complete.
    pub(super) fn end(&self) {
        let meter = self.enter(Phase::Book);
        meter.reset();
        meter.add_total(1);
        meter.advance(1);
    }

    /// Begins the phase `phase`. Returns a meter to which the caller must report the progress of the phase.
    pub(super) fn enter(&self, phase: Phase) -> &Meter {
        self.phase.store(phase as u8, Ordering::Relaxed);
        self.meter(phase)
    }

    fn meter(&self, phase: Phase) -> &Meter {
        &self.meters[phase as usize]
    }

    /// Adds `bytes` to the number of input bytes that were read so far. The bytes are counted before decompression.
    pub(super) fn add_bytes(&self, bytes: u64) {
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Adds `games` to the number of games read so far.
    pub(super) fn add_games(&self, games: u64) {
        self.games.fetch_add(games, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fraction_of_the_run_combines_its_phases() {
        let progress = Progress::default();
        progress.begin(Some(200), [(Phase::Book, 300), (Phase::Book, 600)]);
        assert_eq!(progress.fraction(), Some(0.0));
        progress.add_bytes(100);
        assert_eq!(progress.fraction(), Some(0.25));
        progress.enter(Phase::Sorting);
        assert_eq!(progress.fraction(), Some(0.5));
        let meter = progress.enter(Phase::Book);
        meter.add_total(8);
        meter.advance(4);
        assert_eq!(progress.fraction(), Some(0.775));
        meter.advance(4);
        assert_eq!(progress.fraction(), Some(1.0));
        progress.begin(None, [(Phase::Book, 900)]);
        assert_eq!(
            (progress.fraction(), progress.phase()),
            (None, Phase::Reading)
        );
    }
}
