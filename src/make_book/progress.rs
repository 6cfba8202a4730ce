//! How far a run has come.

use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};

/// What a run does at present.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Phase {
    /// Reads and replays games.
    Reading,
    /// Sorts and adds up counts.
    Sorting,
    /// Finds the positions of the OOBS database and writes its rows.
    Database,
    /// Writes the index.
    Index,
    /// Writes the book and puts all outputs in place.
    Book,
}

impl Phase {
    /// All phases in their order.
    pub const ALL: [Phase; 5] = [
        Phase::Reading,
        Phase::Sorting,
        Phase::Database,
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
    /// Steps of the present phase, after reading, and how many there are.
    steps: AtomicU64,
    total_steps: AtomicU64,
    /// How long each phase takes, in units of about a replayed half-move.
    costs: [AtomicU64; Phase::ALL.len()],
}

impl Progress {
    /// What the run does at present.
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
        let (done, total) = match self.phase() {
            Phase::Reading => self.bytes(),
            _ => (
                self.steps.load(Ordering::Relaxed),
                Some(self.total_steps.load(Ordering::Relaxed)),
            ),
        };
        let total = total.filter(|total| *total > 0)?;
        Some((done as f64 / total as f64).min(1.0))
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

    /// Begins a run.
    pub(super) fn begin(&self, total_bytes: Option<u64>, costs: [u64; Phase::ALL.len()]) {
        self.phase.store(Phase::Reading as u8, Ordering::Relaxed);
        for number in [&self.bytes, &self.games, &self.steps, &self.total_steps] {
            number.store(0, Ordering::Relaxed);
        }
        let total = total_bytes.unwrap_or(0);
        self.total_bytes.store(total, Ordering::Relaxed);
        self.expect(costs);
    }

    /// Corrects how long each phase takes.
    pub(super) fn expect(&self, costs: [u64; Phase::ALL.len()]) {
        for (stored, cost) in self.costs.iter().zip(costs) {
            stored.store(cost, Ordering::Relaxed);
        }
    }

    /// Begins a phase of so many steps.
    pub(super) fn enter(&self, phase: Phase, steps: u64) {
        self.steps.store(0, Ordering::Relaxed);
        self.total_steps.store(steps, Ordering::Relaxed);
        self.phase.store(phase as u8, Ordering::Relaxed);
    }

    /// Counts steps of the present phase.
    pub(super) fn advance(&self, steps: u64) {
        self.steps.fetch_add(steps, Ordering::Relaxed);
    }

    /// Says how many bytes have been read.
    pub(super) fn set_bytes(&self, bytes: u64) {
        self.bytes.store(bytes, Ordering::Relaxed);
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
        progress.begin(Some(200), [60, 10, 0, 0, 30]);
        assert_eq!(progress.fraction(), Some(0.0));
        progress.set_bytes(100);
        assert_eq!(progress.fraction(), Some(0.3));
        progress.enter(Phase::Sorting, 0);
        assert_eq!(progress.fraction(), Some(0.6));
        progress.enter(Phase::Book, 8);
        progress.advance(4);
        assert_eq!(progress.fraction(), Some(0.85));
        progress.advance(4);
        assert_eq!(progress.fraction(), Some(1.0));
        progress.begin(None, [60, 10, 0, 0, 30]);
        assert_eq!(
            (progress.fraction(), progress.phase()),
            (None, Phase::Reading)
        );
    }
}
