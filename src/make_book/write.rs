//! Writing the outputs of all that was counted.

use super::{
    MakeBook,
    inputs::Inputs,
    progress::Amounts,
    report::Report,
    sequence::Sequenced,
    sinks::{Needs, Sink},
    starts::Starts,
};
use crate::{
    book::BookMaker,
    error::Result,
    output::Finished,
    provenance::Provenance,
    tally::{Counts, SharedKeys},
};

/// The counts of a run, sorted.
pub(super) struct SealedCounts {
    /// Those by the keys of positions, if the run needs them.
    pub by_key: Option<Counts>,
    /// Those by the identities of positions, if the run needs them.
    pub by_identity: Option<Counts>,
    /// Which identities share a key, if the run needs to know.
    pub shared_keys: Option<SharedKeys>,
}

impl SealedCounts {
    /// The counts by identity, which separate positions with equal keys. In standard chess they are the counts by key.
    pub(super) fn by_position(&self) -> &Counts {
        let counts = self.by_identity.as_ref().or(self.by_key.as_ref());
        counts.expect("the output needs counts")
    }

    /// The counts that moves are weighed by, if there are any: those by keys, which a book has.
    pub(super) fn weighable(&self) -> Option<&Counts> {
        self.by_key.as_ref().or(self.by_identity.as_ref())
    }

    pub(super) fn bytes_in_memory(&self) -> u64 {
        let tables = self.by_key.iter().chain(&self.by_identity);
        let keys = self.shared_keys.as_ref();
        tables.map(Counts::bytes_in_memory).sum::<u64>()
            + keys.map_or(0, SharedKeys::bytes_in_memory)
    }
}

/// The data of the outputs.
pub(super) struct Counted<'a> {
    pub counts: &'a SealedCounts,
    /// The moves that a book keeps of them, if an output [needs](Needs::weights) to know.
    pub weighed: Option<BookMaker<'a>>,
    /// The inputs of the counts.
    pub provenance: Provenance,
    /// Where games started.
    pub starts: Starts,
    /// The number of the first game of each input.
    pub first_games: Vec<u64>,
    /// About how much memory the outputs hold that are still to be written.
    pub held_bytes: usize,
    pub report: Report,
}

impl<'a> Counted<'a> {
    /// The moves that a book keeps.
    pub(super) fn weighed(&self) -> &BookMaker<'a> {
        self.weighed.as_ref().expect("the output needs weights")
    }
}

impl MakeBook {
    /// Makes the outputs of the collected data. They are complete then, but not in place. The counts
    /// are not needed any more.
    pub(super) fn write_outputs(
        &self,
        inputs: &Inputs<'_>,
        needs: &Needs,
        (sealed, games): (SealedCounts, Sequenced),
        sinks: Vec<Box<dyn Sink + '_>>,
    ) -> Result<(Report, Vec<Finished>, SealedCounts)> {
        let counts = sealed.weighable();
        let weighed = counts
            .filter(|_| needs.weights)
            .map(|counts| BookMaker::new(counts, &self.move_filter, &self.weights))
            .transpose()?;
        let summary = weighed.as_ref().map(BookMaker::summary).unwrap_or_default();
        let mut report = games.report;
        let provenance = inputs.provenance(self, report.totals.games);
        report.has_unknown_games = provenance.games.is_none();
        (report.positions, report.pairs) = match (&weighed, counts) {
            (None, Some(counts)) => counts.size()?,
            _ => (summary.positions, summary.counted_entries),
        };
        let amounts = Amounts {
            plies: report.totals.plies as f64,
            positions: report.positions as f64,
            kept: summary.entries as f64,
        };
        self.progress.correct(amounts.costs(&sinks));
        let mut counted = Counted {
            counts: &sealed,
            weighed,
            provenance,
            starts: games.starts,
            first_games: games.first_games,
            held_bytes: 0,
            report,
        };
        sinks.iter().try_for_each(|sink| sink.check(&counted))?;

        let mut finished = Vec::new();
        let mut sinks = sinks.into_iter();
        while let Some(sink) = sinks.next() {
            self.refuse_if_stopped()?;
            let others = sinks.as_slice().iter();
            counted.held_bytes = others.map(|sink| sink.held_bytes()).sum();
            finished.push(sink.write(&mut counted)?);
        }
        Ok((counted.report, finished, sealed))
    }
}
