//! How far a run has come.

use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};

use crate::progress::Meter;

/// The present step of a run.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Phase {
    /// Reads and replays games.
    Reading,
    /// Sorts and adds up counts.
    Sorting,
    /// Finds the positions of the OOBS database and writes its rows.
    Database,
    /// Writes the counts.
    Counts,
    /// Writes the index.
    Index,
    /// Writes the book and puts all outputs in place.
    Book,
}

impl Phase {
    /// All phases in their order.
    pub const ALL: [Phase; 6] = [
        Phase::Reading,
        Phase::Sorting,
        Phase::Database,
        Phase::Counts,
        Phase::Index,
        Phase::Book,
    ];
}

/// How far a run has come, for another thread that shows it.
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
    /// Bytes read from the inputs, packed as they are.
    bytes: AtomicU64,
    /// Bytes of all inputs, 0 if that is not known.
    total_bytes: AtomicU64,
    games: AtomicU64,
    /// The work of each phase after reading.
    meters: [Meter; Phase::ALL.len()],
    /// How long each phase takes.
    costs: [AtomicU64; Phase::ALL.len()],
}

impl Progress {
    /// The present step of the run.
    pub fn phase(&self) -> Phase {
        Phase::ALL[usize::from(self.phase.load(Ordering::Relaxed))]
    }

    /// Games read.
    pub fn games(&self) -> u64 {
        self.games.load(Ordering::Relaxed)
    }

    /// Bytes read from the inputs, packed as they are, and how many there are; `None` if that is not known,
    /// as of standard input.
    pub fn bytes(&self) -> (u64, Option<u64>) {
        let total = self.total_bytes.load(Ordering::Relaxed);
        (
            self.bytes.load(Ordering::Relaxed),
            (total > 0).then_some(total),
        )
    }

    /// How much of the present phase is done, from 0 to 1; `None` while that is not known.
    pub fn phase_fraction(&self) -> Option<f64> {
        match self.phase() {
            Phase::Reading => {
                let (read, total) = self.bytes();
                Some((read as f64 / total? as f64).min(1.0))
            }
            phase => self.meter(phase).fraction(),
        }
    }

    /// How much of the whole run is done, by an estimate of how long each phase takes; `None` while the size of
    /// the input is not known.
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

    /// Begins a run. Says also how long writing its outputs takes, where replaying a game of a thousand half-moves takes
    /// 1000. The numbers were measured on games of masters, on two cores.
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

    /// Ends a run.
    pub(super) fn end(&self) {
        let meter = self.enter(Phase::Book);
        meter.reset();
        meter.add_total(1);
        meter.advance(1);
    }

    /// Begins a phase. Its work is counted on the meter that is returned.
    pub(super) fn enter(&self, phase: Phase) -> &Meter {
        self.phase.store(phase as u8, Ordering::Relaxed);
        self.meter(phase)
    }

    fn meter(&self, phase: Phase) -> &Meter {
        &self.meters[phase as usize]
    }

    /// Counts bytes that have been read.
    pub(super) fn add_bytes(&self, bytes: u64) {
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Counts games.
    pub(super) fn add_games(&self, games: u64) {
        self.games.fetch_add(games, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_whole_is_made_of_its_phases() {
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
