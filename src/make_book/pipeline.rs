//! The stages of a run of `make-book`, from opening the inputs to renaming the outputs.

use std::{ops::Range, path::Path, sync::atomic::Ordering};

use rayon::ThreadPool;

use super::{
    budget::{Budget, Merging},
    data::{CollectedData, OrderedResults, SortedCounts},
    inputs::Inputs,
    needs::Needs,
    options::{EMPTY_OUTPUTS, MakeBook},
    report::Report,
    run::{BatchDispatcher, Run},
    sequence::BatchId,
    sink::{Plan, Sink},
    sinks,
};
use crate::{
    error::{Advice, Error, Result},
    formats::counts::{Counts, Tally},
    games::pgn::Input,
    storage::output::{Finished, commit_all, is_directory, is_special, refuse_clashes, repeated},
    task,
};

impl MakeBook {
    /// Reads the inputs and writes the outputs. The builder can be run several times; each run starts from the
    /// beginning.
    ///
    /// # Errors
    ///
    /// Returns an error if an input cannot be read or is neither PGN nor counts, if an output cannot be written, or if
    /// no game is counted and [`allow_empty`](MakeBook::allow_empty) is not set. Returns [`Error::Rejected`] for the
    /// first rejected game if the run is [strict](MakeBook::strict), and [`Error::Interrupted`] if the [stop
    /// flag](MakeBook::stop_flag) is set.
    ///
    /// After an error, all existing files are unchanged, with one exception: if some outputs were already renamed when
    /// renaming another one failed, the error says which outputs are in place.
    pub fn run(&self) -> Result<Report> {
        task::caught(|| {
            let pool = task::pool(self.threads)?;
            let inputs = Inputs::open(self, pool.current_num_threads())?;
            self.with_properties_of(&inputs).run_with(&inputs, &pool)
        })
    }

    /// Checks that all outputs can be written, by creating them like [`run`](MakeBook::run) and removing them again.
    /// Call this function before you read data from a pipe, such as evaluations, which would be lost if the run failed
    /// later. Outputs that are pipes or devices are not opened.
    ///
    /// # Errors
    ///
    /// Fails for the reasons for which [`run`](MakeBook::run) can fail before it reads games.
    pub fn check_outputs(&self) -> Result<()> {
        let threads = task::pool(self.threads)?.current_num_threads();
        let inputs = Inputs::open(self, threads)?;
        let options = self.with_properties_of(&inputs);
        let (plans, _, budget) = options.plan_outputs(&inputs, threads)?;
        let mut files = Vec::new();
        for plan in plans {
            if !is_special(plan.path)? {
                files.push(plan);
            }
        }
        options.begin(files, &budget).map(drop)
    }

    /// Returns a copy of the options with the variant and the grouping of `inputs`. Both may differ from those in
    /// `self`, because they depend on the input counts.
    fn with_properties_of(&self, inputs: &Inputs<'_>) -> MakeBook {
        MakeBook {
            variant: inputs.variant,
            by: Some(inputs.by),
            ..self.clone()
        }
    }

    /// Plans all outputs. Returns the plans, the data that the outputs need, and the memory budget of a run on
    /// `threads` threads. The variant and the grouping in `self` must be those of the inputs (see
    /// [`with_properties_of`](MakeBook::with_properties_of)).
    ///
    /// # Errors
    ///
    /// Returns an error if an output cannot be made from `inputs`, or if an input does not exist.
    fn plan_outputs<'a>(
        &'a self,
        inputs: &'a Inputs<'_>,
        threads: usize,
    ) -> Result<(Vec<Plan<'a>>, Needs, Budget)> {
        let (plans, needs) = sinks::plans(self, inputs);
        refuse_counts_for(&plans, inputs)?;
        self.check(inputs)?;
        let of_outputs = plans.iter().map(|plan| plan.memory_shares);
        let shares = needs.tallies() + of_outputs.sum::<usize>();
        // Counts by identity are sorted differently, so they cannot be merged with ordered counts.
        let ordered = if needs.keys && !needs.identities && !needs.shared_keys {
            inputs.ordered_size()
        } else {
            None
        };
        let budget = Budget::divide(self, inputs.metadata, shares, ordered, threads);
        Ok((plans, needs, budget))
    }

    /// Makes all outputs from `inputs`, on the threads of `pool`, and returns the report. The variant and the grouping
    /// in `self` must be those of the inputs (see [`with_properties_of`](MakeBook::with_properties_of)).
    fn run_with(&self, inputs: &Inputs<'_>, pool: &ThreadPool) -> Result<Report> {
        let repeated = self.repeated_inputs();
        let threads = pool.current_num_threads();
        let (plans, needs, budget) = self.plan_outputs(inputs, threads)?;
        let sinks = self.begin(plans, &budget)?;
        let writing = sinks.iter().filter_map(|sink| sink.cost());
        self.progress.begin(inputs.size(), writing);
        let run = Run::new(self, &needs, &sinks, &budget);
        let collected = self.collect(pool, run, inputs, &budget)?;
        if !sinks.is_empty() {
            self.refuse_without_games(&collected.1.report)?;
        }
        let written = pool.install(|| self.write_outputs(inputs, &needs, collected, sinks));
        let (mut report, finished, counts) = written?;
        self.refuse_if_stopped()?;
        // Renaming waits for the disk, and freeing much memory takes time as well, so do both at once.
        let (committed, ()) = pool.join(|| commit_all(finished), || drop(counts));
        committed?;
        report.warnings.splice(0..0, repeated);
        report.warnings.extend(inputs.warnings(self));
        self.progress.end();
        Ok(report)
    }

    /// Reads the inputs and counts the results of the moves in all positions, but writes no outputs. Returns the
    /// counts, and the report of the run.
    ///
    /// # Errors
    ///
    /// Returns an error if an input cannot be read or is neither PGN nor counts, or if the run is cancelled.
    pub(crate) fn count(&self) -> Result<(Counts, Report)> {
        task::caught(|| {
            let pool = task::pool(self.threads)?;
            let threads = pool.current_num_threads();
            let inputs = Inputs::open(self, threads)?;
            let mut options = self.clone();
            options.variant = inputs.variant;
            options.check(&inputs)?;
            let mut needs = Needs::default();
            needs.add_all_positions(&options);
            needs.starts = false;
            let ordered = if needs.keys {
                inputs.ordered_size()
            } else {
                None
            };
            let budget =
                Budget::divide(&options, inputs.metadata, needs.tallies(), ordered, threads);
            options.progress.begin(inputs.size(), []);
            let run = Run::new(&options, &needs, &[], &budget);
            let (sorted, games) = options.collect(&pool, run, &inputs, &budget)?;
            options.progress.end();
            let counts = sorted.by_identity.or(sorted.by_key);
            let counts = counts.expect("all positions were counted");
            let mut report = games.report;
            report.warnings.extend(inputs.warnings(&options));
            Ok((counts, report))
        })
    }

    /// Opens the outputs that `plans` describe, and returns them in the same order. `budget` limits their memory. A run
    /// opens its outputs before it reads games, so that it fails early if an output cannot be written.
    fn begin<'a>(&self, plans: Vec<Plan<'a>>, budget: &Budget) -> Result<Vec<Box<dyn Sink + 'a>>> {
        let outputs: Vec<&Path> = plans.iter().map(|plan| plan.path).collect();
        let inputs: Vec<&Path> = self.inputs.iter().map(Input::path).collect();
        refuse_clashes(&outputs, &inputs)?;
        plans.into_iter().map(|plan| (plan.begin)(budget)).collect()
    }

    /// Checks that the inputs and the directory for temporary files exist, so that a mistake is reported before hours
    /// of counting.
    fn check(&self, inputs: &Inputs<'_>) -> Result<()> {
        inputs.all.iter().try_for_each(|input| input.check())?;
        let temp_dir = &self.memory.temp_dir;
        if !is_directory(temp_dir)? {
            return Err(Error::file(
                temp_dir,
                "this is not a directory, so temporary files cannot be written there: choose another directory",
            ));
        }
        Ok(())
    }

    /// Returns a warning for each input that the user named more than once. The games of such an input are counted each
    /// time.
    fn repeated_inputs(&self) -> Vec<String> {
        let repeated = repeated(self.inputs.iter().map(Input::path));
        repeated
            .map(|path| {
                let path = path.display();
                format!("{path}: this file is given twice, so its games count twice")
            })
            .collect()
    }

    /// Reads all inputs on the threads of `pool`, and counts their games. `run` is the state that the threads share.
    /// Returns the sorted counts, and the data that depends on the order of the games, such as the report and the
    /// starting positions.
    fn collect(
        &self,
        pool: &ThreadPool,
        mut run: Run<'_>,
        inputs: &Inputs<'_>,
        budget: &Budget,
    ) -> Result<(SortedCounts, OrderedResults)> {
        let in_flight = 2 * pool.current_num_threads() as u64;
        let read = pool.in_place_scope(|scope| {
            let mut batches = BatchDispatcher {
                run: &run,
                scope,
                next: BatchId {
                    number: 0,
                    input: 0,
                },
                in_flight,
            };
            match task::caught(|| inputs.read(&mut batches)) {
                // Other threads may still have parts of counts to read, and setting the failure stops them. If an
                // earlier batch has failed, its error is kept.
                Err(err) if inputs.has_counts() => {
                    run.failure.set(err);
                    Ok(())
                }
                read => read,
            }
        });
        // If a job failed, its error is the reason why the reading ended.
        run.failure.take().and(read)?;
        pool.install(|| {
            if let Some(merging) = &budget.merging {
                let tally = run.tally.take().expect("only tallies by key are merged");
                run.merged = Some(merge_ordered(&run, tally, inputs, merging)?);
            }
            run.finish()
        })
    }

    /// Writes the outputs `sinks` from the collected data, under temporary names. The caller must rename the finished
    /// outputs to their targets.
    ///
    /// `sorted` contains the counts of moves, and `games` contains the data that depends on the order of the games.
    /// `needs` says which kinds of data the outputs use. Returns the report, the finished outputs and `sorted`, so that
    /// the caller can choose when to free its memory.
    fn write_outputs(
        &self,
        inputs: &Inputs<'_>,
        needs: &Needs,
        (sorted, mut games): (SortedCounts, OrderedResults),
        sinks: Vec<Box<dyn Sink + '_>>,
    ) -> Result<(Report, Vec<Finished>, SortedCounts)> {
        let weighed = sorted.weighed(self, needs)?;
        let report = &mut games.report;
        let provenance = inputs.provenance(self, report.totals.tallied().games);
        report.has_unknown_games = provenance.games.is_none();
        (report.positions, report.pairs) = match (&weighed, sorted.counts_for_weights()) {
            (Some(weighed), _) => {
                let summary = weighed.summary();
                (summary.positions, summary.counted_entries)
            }
            (None, Some(counts)) => counts.size()?,
            (None, None) => (0, 0),
        };
        let mut counted = CollectedData {
            counts: &sorted,
            weighed,
            provenance,
            options: &inputs.options,
            pruned: inputs.pruned,
            games,
            held_bytes: 0,
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
        Ok((counted.games.report, finished, sorted))
    }

    /// Checks in `report` that at least one game was counted. Otherwise, returns [`Error::Empty`] with the reasons,
    /// unless the options allow empty outputs.
    fn refuse_without_games(&self, report: &Report) -> Result<()> {
        if !report.counts_nothing() || self.allow_empty {
            return Ok(());
        }
        let mut reason = report.why_none_counts();
        if self.selection.needs_both_colors() {
            reason = reason.advise(Advice::option(
                "white and black name the same player, but a game must meet both conditions: name the player with {}, \
                 which admits games with either color",
                "player",
            ));
        }
        if !reason.has_advice() {
            reason = reason.advise(EMPTY_OUTPUTS);
        }
        Err(Error::Empty { reason })
    }
}

/// Returns an error if one of `plans` is for an output that can be made only from games, but an input is a counts
/// directory.
fn refuse_counts_for(plans: &[Plan<'_>], inputs: &Inputs<'_>) -> Result<()> {
    let mut of_games = plans
        .iter()
        .filter_map(|plan| Some((plan, plan.needs_games_reason?)));
    match of_games.next() {
        Some((plan, reason)) if inputs.has_counts() => Err(Error::file(
            plan.path,
            format!("{reason}, but an input contains counts instead of games: give the PGN files"),
        )),
        _ => Ok(()),
    }
}

/// Merges `tally`, which contains the counts of other inputs, with the input counts that are already sorted by key.
/// `merging` is the plan for the merge. Returns the merged counts. Uses all threads of the current rayon pool.
fn merge_ordered(
    run: &Run<'_>,
    tally: Tally,
    inputs: &Inputs<'_>,
    merging: &Merging,
) -> Result<Counts> {
    let open = |shards: Range<usize>| {
        let counts = inputs.ordered();
        counts
            .map(|counts| counts.open(run, shards.clone()))
            .collect()
    };
    let watch = |spilled| {
        run.options.refuse_if_stopped()?;
        run.check_space(spilled)
    };
    // The minimum number of times that a move of a position must have been played for the position to be kept.
    let fewest = if run.needs.rare_positions {
        0
    } else {
        run.options.move_filter.min_game
    };
    // Check for modified files first, because a modified file is the likely cause of any later error.
    inputs
        .ordered()
        .try_for_each(|counts| counts.check_bytes())?;
    let merged = tally.sort_with(&merging.memory, merging.ranges, fewest, open, watch)?;
    for input in &inputs.all {
        if let Some(counts) = input.ordered() {
            let plies = counts.check_read()?;
            if input
                .counts()
                .is_some_and(|counted| counted.origin.is_none())
            {
                run.plies_without_sidecar
                    .fetch_add(plies, Ordering::Relaxed);
            }
        }
    }
    Ok(merged)
}
