//! How long the phases of a run take compared with one another, for the progress. Measured on games of masters,
//! on two cores; the unit is about the replaying of a half-move.

use super::{MakeBook, Report, counted::CountedInputs, progress::Costs};

/// What there is to write.
struct Amounts {
    plies: f64,
    positions: f64,
    /// Moves that are kept.
    kept: f64,
}

impl Amounts {
    fn costs(&self, run: &MakeBook) -> Costs {
        let per_posting = if run.index_stats { 5.0 } else { 2.5 };
        let if_wanted = |wanted: bool, cost: f64| if wanted { cost } else { 0.0 };
        [
            self.plies,
            self.plies / 10.0,
            if_wanted(run.obs.is_some(), 5.0 * self.positions + 8.0 * self.kept),
            if_wanted(run.counts.is_some(), self.positions),
            if_wanted(run.leveldb.is_some(), per_posting * self.plies),
            if_wanted(run.bin.is_some(), self.plies / 10.0 + 0.3 * self.kept),
        ]
        .map(|cost| cost as u64)
    }
}

impl MakeBook {
    /// Begins the progress with what is known before anything is read.
    pub(super) fn begin_progress(&self, counted: &CountedInputs) {
        let inputs = self.inputs.iter().enumerate();
        let sizes = inputs.map(|(number, input)| counted.size(number, input));
        let total = sizes.sum::<Option<u64>>();
        let plies = 1000.0;
        let positions = 0.7 * plies;
        let amounts = Amounts {
            plies,
            positions,
            kept: if self.move_filter.min_game > 1 {
                plies / 10.0
            } else {
                positions
            },
        };
        self.progress.begin(total, amounts.costs(self));
    }

    /// Corrects the progress when all games are counted and `kept` moves go into a book.
    pub(super) fn correct_progress(&self, report: &Report, kept: u64) {
        let amounts = Amounts {
            plies: report.totals.plies as f64,
            positions: report.positions as f64,
            kept: kept as f64,
        };
        self.progress.correct(amounts.costs(self));
    }
}
