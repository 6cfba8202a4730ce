//! Adding up the counts among the inputs of a run.
//!
//! `without/adding.rs` stands in for this file where the feature `parquet` is left out.

use std::{ops::Range, path::Path, sync::atomic::Ordering};

use rayon::Scope;

use super::{
    merging::Merging,
    outcome::Outcome,
    read::Job,
    report::{Report, Totals},
    run::Run,
    sinks::Needs,
};
use crate::{
    counts::{About, CountsError, OrderedParts, OrderedRows, Part, Row, Start},
    error::{Error, Result},
    pgn::{Batch, Condition},
    position::Variant,
    tally::{CountBatch, KeyedIdentity, OrderedCounts},
    task,
};

/// What a run would have found in the games of counts.
fn outcome<'a>(about: &About, needs: &Needs) -> Result<Outcome<'a>, CountsError> {
    let mut totals = Totals {
        games: about.games.unwrap_or_default(),
        plies: about.plies,
        null_moves: about.null_moves,
        unplayable_variations: about.unplayable_variations,
        castling_dropped: about.castling_dropped,
        contradicted_results: about.contradicted_results,
        ..Totals::default()
    };
    if needs.left_out() {
        totals.left_out = about.left_out;
    }
    for (name, games) in &about.filtered_by {
        let unknown = || CountsError::Sidecar(format!("unknown condition \"{name}\""));
        let condition = Condition::from_name(name).ok_or_else(unknown)?;
        totals.filtered_by.insert(condition, *games);
    }
    for (name, games) in &about.variants {
        let unknown = |_| CountsError::Sidecar(format!("unknown variant \"{name}\""));
        let variant: Variant = name.parse().map_err(unknown)?;
        totals.variants.insert(variant, *games);
    }
    Ok(Outcome {
        totals,
        rejected: about
            .rejected
            .iter()
            .take(Report::DESCRIBED)
            .cloned()
            .collect(),
        recognised: true,
        has_text: true,
        ..Outcome::default()
    })
}

impl<'a> Run<'a> {
    /// Adds the counts of an input up, a task for each part. `number` counts the batches of the run.
    pub(super) fn read_counts<'scope>(
        &'scope self,
        scope: &Scope<'scope>,
        input: usize,
        number: &mut u64,
        in_flight: u64,
    ) -> Result<()> {
        let directory = self.counted.directory(input);
        let directory = directory.expect("the caller asked whether it is counts");
        let about = directory.about();
        let mut place = |outcome: Outcome<'a>| {
            self.wait_for_place(*number, in_flight);
            let job = Job {
                batch: Batch {
                    text: Vec::new(),
                    offset: 0,
                },
                number: *number,
                input,
            };
            *number += 1;
            self.submit(&job, outcome)
        };
        place(match about {
            Some(about) => {
                outcome(about, self.needs).map_err(|err| Error::format(directory.path(), err))?
            }
            None => Outcome {
                recognised: true,
                has_text: true,
                ..Outcome::default()
            },
        })?;
        if let (Some(part), true) = (directory.starts(), self.needs.starts) {
            let variant = self.variant_of_starts(about);
            let mut row = 0;
            part.read_starts(&mut |starts| {
                check_starts(&starts, variant, row)
                    .map_err(|err| Error::format(part.path(), err))?;
                row += starts.len() as u64;
                self.add_plies(starts.iter().map(|start| start.games).sum(), part.path())?;
                let starts = starts.into_iter();
                place(Outcome {
                    starts: starts
                        .map(|start| (start.epd.into_bytes(), start.games))
                        .collect(),
                    recognised: true,
                    has_text: true,
                    ..Outcome::default()
                })
            })?;
        }
        if self.merging.is_some() && self.counted.ordered_parts(input).is_some() {
            // When all else is read.
            return Ok(());
        }
        for part in directory.parts() {
            scope.spawn(move |_| self.watch(|| self.add_part(part, about.is_some())));
        }
        Ok(())
    }

    /// The variant of the positions in which games started, `None` if they are of several.
    fn variant_of_starts(&self, about: Option<&About>) -> Option<Variant> {
        let met = about.map(|about| about.variants.keys().collect::<Vec<_>>());
        match (self.options.variant.only(), met.as_deref()) {
            (Some(variant), _) => Some(variant),
            (None, Some([only])) => only.parse().ok(),
            _ => None,
        }
    }

    /// Adds what is in order to what was counted. Works on all threads of the rayon pool that it is called in.
    pub(super) fn merge_ordered(&mut self) -> Result<()> {
        let is_wanted = self.merging.is_some();
        let Some(tally) = self.tally.take_if(|_| is_wanted) else {
            return Ok(());
        };
        let run = &*self;
        let Merging {
            ranges,
            fewest,
            memory,
        } = run.merging.as_ref().expect("it is some");
        let open = |shards: Range<usize>| {
            let parts = run.counted.ordered();
            let rows = parts.map(|parts| Watched {
                run,
                rows: OrderedRows::new(parts, shards.clone()),
            });
            Ok(rows.collect())
        };
        let watch = |spilled| {
            run.options.refuse_if_stopped()?;
            run.check_space(spilled)
        };
        let merged = tally
            .seal_with(memory, *ranges, *fewest, open, watch)
            .map_err(|err| self.reason_of(err))?;
        for input in 0..run.options.inputs.len() {
            let Some(parts) = run.counted.ordered_parts(input) else {
                continue;
            };
            let plies = parts.check_read()?;
            let directory = run.counted.directory(input);
            if directory.is_some_and(|directory| directory.about().is_none()) {
                run.plies_without_sidecar
                    .fetch_add(plies, Ordering::Relaxed);
            }
        }
        self.merged = Some(merged);
        Ok(())
    }

    /// Why ordered counts cannot be merged: if some were altered, that and no other.
    fn reason_of(&self, err: Error) -> Error {
        match err {
            Error::Interrupted | Error::Io { .. } => err,
            err => match self
                .counted
                .ordered()
                .try_for_each(OrderedParts::check_bytes)
            {
                Ok(()) => err,
                Err(altered) => altered,
            },
        }
    }

    /// Adds up the rows of a part.
    fn add_part(&self, part: &Part, is_told: bool) -> Result<()> {
        if self.needs.identities && !part.has_identities()? {
            return Err(Error::format(part.path(), CountsError::NoIdentity));
        }
        let plies = part.read(&mut |rows| {
            if self.failure.is_set() {
                return Err(Error::Interrupted);
            }
            task::fault("add counts");
            self.options.refuse_if_stopped()?;
            self.check_space(0)?;
            self.add_rows(rows, part.path())
        })?;
        if !is_told {
            self.plies_without_sidecar
                .fetch_add(plies, Ordering::Relaxed);
        }
        self.options.progress.add_bytes(part.size());
        Ok(())
    }

    /// Counts the half-moves of counts, and the games that tell where they started, so that no sum can overflow.
    fn add_plies(&self, plies: u64, path: &Path) -> Result<()> {
        let before = self.counted_plies.fetch_add(plies, Ordering::Relaxed);
        if before.saturating_add(plies) > i64::MAX as u64 {
            return Err(Error::format(path, CountsError::Overflow));
        }
        Ok(())
    }

    fn add_rows(&self, rows: &[Row], path: &Path) -> Result<()> {
        self.add_plies(rows.iter().map(|row| row.stats.games()).sum(), path)?;
        if let Some(tally) = &self.tally {
            let mut batch = CountBatch::default();
            // Without a key no book can have it.
            for row in rows.iter().filter(|row| row.key != 0) {
                batch.push(row.key, row.mv, row.turn, row.stats);
            }
            tally.add_batch(&batch)?;
            tally.refuse_many_large(path)?;
        }
        if let Some(tally) = &self.identities {
            let mut batch = CountBatch::default();
            for row in rows {
                batch.push(row.identity, row.mv, row.turn, row.stats);
            }
            tally.add_batch(&batch)?;
            tally.refuse_many_large(path)?;
        }
        if let Some(pairs) = &self.pairs {
            let rows = rows.iter();
            let found: Vec<KeyedIdentity> = rows
                .map(|row| KeyedIdentity::new(row.key, row.identity))
                .collect();
            pairs.add(&found)?;
        }
        Ok(())
    }
}

/// Ordered rows on their way into a run.
struct Watched<'run, 'counts> {
    run: &'run Run<'counts>,
    rows: OrderedRows<'run>,
}

impl OrderedCounts for Watched<'_, '_> {
    fn next(&mut self, batch: &mut CountBatch) -> Result<()> {
        task::fault("merge counts");
        if let Some(step) = self.rows.next(batch)? {
            self.run.add_plies(step.games, step.part.path())?;
            self.run.options.progress.add_bytes(step.bytes);
        }
        Ok(())
    }

    fn path(&self) -> &Path {
        self.rows.path()
    }
}

/// Makes sure that the starts are positions, the first of which stands in `row`.
fn check_starts(starts: &[Start], variant: Option<Variant>, row: u64) -> Result<(), CountsError> {
    let Some(variant) = variant else {
        return Ok(());
    };
    for (at, start) in starts.iter().enumerate() {
        if let Err(err) = variant.parse_fen(&start.epd) {
            return Err(CountsError::Start {
                row: row + at as u64,
                epd: start.epd.clone(),
                reason: err.to_string(),
            });
        }
    }
    Ok(())
}
