//! How long the phases of a run take compared with one another, for the progress. Measured on games of masters,
//! on two cores; the unit is about the replaying of a half-move.

use super::{MakeBook, Phase, Report, inputs::Inputs, progress::Costs, sinks::Sink};

/// What there is to write.
pub(super) struct Amounts {
    pub plies: f64,
    pub positions: f64,
    /// Moves that are kept.
    pub kept: f64,
}

impl Amounts {
    fn costs(&self, sinks: &[Box<dyn Sink + '_>]) -> Costs {
        let mut costs = Costs::default();
        let run = [
            (Phase::Reading, self.plies),
            (Phase::Sorting, self.plies / 10.0),
        ];
        let outputs = sinks.iter().filter_map(|sink| sink.cost(self));
        for (phase, cost) in run.into_iter().chain(outputs) {
            costs[phase as usize] += cost as u64;
        }
        costs
    }
}

impl MakeBook {
    /// Begins the progress with what is known before anything is read.
    pub(super) fn begin_progress(&self, inputs: &Inputs<'_>, sinks: &[Box<dyn Sink + '_>]) {
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
        self.progress.begin(inputs.size(), amounts.costs(sinks));
    }

    /// Corrects the progress when all games are counted and `kept` moves go into a book.
    pub(super) fn correct_progress(
        &self,
        sinks: &[Box<dyn Sink + '_>],
        report: &Report,
        kept: u64,
    ) {
        let amounts = Amounts {
            plies: report.totals.plies as f64,
            positions: report.positions as f64,
            kept: kept as f64,
        };
        self.progress.correct(amounts.costs(sinks));
    }
}
