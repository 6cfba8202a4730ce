//! Counts as an output.

mod classed;
pub(super) mod index;

use std::path::{Path, PathBuf};

use self::classed::ClassBatch;
use crate::{
    counts::{
        ClassedCounts, CountsContent, CountsDirectory, CountsOrigin, CountsWriter, RowSource, Start,
    },
    error::{Error, Result},
    make_book::{
        budget::Budget,
        counted::Counted,
        inputs::Inputs,
        needs::Needs,
        options::MakeBook,
        progress::Phase,
        report::CountsReport,
        sink::{BatchSink, Plan, Sink},
    },
    output::Finished,
    provenance::Rejection,
    sort::SHARDS,
    tally::{ClassTally, Grouping},
};

impl MakeBook {
    /// Writes the [counts](crate::counts) of all moves to this directory, including moves that the book and the database
    /// drop.
    pub fn counts(mut self, path: impl Into<PathBuf>) -> MakeBook {
        self.counts = Some(path.into());
        self
    }

    /// Sets the classes by which the [counts](MakeBook::counts) separate games. Default: the classes of the counts among the
    /// inputs, which must agree, or no classes.
    pub fn by(mut self, by: Grouping) -> MakeBook {
        self.by = Some(by);
        self
    }

    /// Drops positions from the [counts](MakeBook::counts) in which fewer moves than this were counted. Default: 0.
    pub fn prune_counts(mut self, min_game: u64) -> MakeBook {
        self.prune_counts = min_game;
        self
    }
}

struct CountsSink<'a> {
    options: &'a MakeBook,
    path: &'a Path,
    writer: CountsWriter,
    /// The half-moves of games by class, and the counts by class among the inputs, if the output has classes.
    classes: Option<(ClassTally, ClassedCounts)>,
    /// The approximate memory that a thread needs to read all counts among the inputs in order, in bytes.
    reading: usize,
}

/// Returns the plan for the counts, if the options ask for them.
pub(super) fn plan<'a>(
    options: &'a MakeBook,
    inputs: &'a Inputs<'_>,
    needs: &mut Needs,
) -> Option<Plan<'a>> {
    let path = options.counts.as_deref()?;
    needs.numbered_variants = true;
    let has_identities = options.distinguishes_variants();
    let has_classes = options.by.is_some_and(|by| !by.is_none());
    if has_classes {
        needs.classes = true;
        needs.game_identities = true;
        needs.starts = true;
    } else {
        needs.all_positions(options);
        // The counts must also contain keys, because books are made from counts.
        needs.shared_keys |= has_identities;
    }
    Some(Plan {
        path,
        of_games: None,
        memory_shares: usize::from(has_classes) * (1 + usize::from(has_identities)),
        begin: Box::new(move |budget| {
            let begin = || {
                let tally = ClassTally::new(&budget.share, has_identities);
                Ok((tally, opened_classed(options, inputs)?))
            };
            for counted in inputs.counted() {
                counted.directory.check_identities(has_identities)?;
            }
            let classes = has_classes.then(begin).transpose()?;
            Ok(Box::new(CountsSink {
                options,
                path,
                writer: CountsWriter::create(path, options.force)?,
                classes,
                reading: inputs.counted().map(|counted| counted.memory()).sum(),
            }))
        }),
    })
}

/// Opens the counts by class among the inputs. Their rows are added to the counts of the run.
///
/// # Errors
///
/// Returns an error if a part cannot be read, or if reading all directories needs more memory than the budget.
fn opened_classed(options: &MakeBook, inputs: &Inputs<'_>) -> Result<ClassedCounts> {
    let directories: Vec<CountsDirectory> = inputs
        .counted()
        .map(|counted| counted.directory.clone())
        .collect();
    let bytes: usize = inputs.counted().map(|counted| counted.memory()).sum();
    if let Some(first) = directories.first()
        && bytes > options.memory.bytes
    {
        let (what, or) = match directories.len() {
            1 => ("reading".to_owned(), ""),
            number => (
                format!("adding {number} directories of"),
                ", or add some of them first",
            ),
        };
        let problem = format!(
            "{what} counts by class takes {} MiB of memory: give more with --memory{or}",
            bytes >> 20,
        );
        return Err(Error::too_large(first.path(), problem));
    }
    ClassedCounts::open(&directories, inputs.by)
}

impl Sink for CountsSink<'_> {
    fn batch(&self, plies: usize) -> Option<Box<dyn BatchSink + '_>> {
        let (by, has_identities) = (self.by(), self.options.distinguishes_variants());
        let (tally, _) = self.classes.as_ref()?;
        Some(Box::new(ClassBatch::new(tally, by, has_identities, plies)))
    }

    fn spilled_bytes(&self) -> u64 {
        let classes = self.classes.as_ref();
        classes.map_or(0, |(tally, _)| tally.spilled_bytes())
    }

    fn cost(&self) -> Option<(Phase, u64)> {
        Some((Phase::Counts, 700))
    }

    fn write(mut self: Box<Self>, counted: &mut Counted<'_>) -> Result<Finished> {
        let meter = self.options.progress.enter(Phase::Counts);
        meter.add_total(SHARDS as u64);
        let stop = &self.options.stop;
        let about = self.about(counted);
        let starts = counted.starts.all().map(|start| {
            let (epd, games) = start?;
            Ok(Start { epd, games })
        });
        let mut content = CountsContent {
            size: about.plies,
            min_game: self.options.prune_counts,
            starts,
            about,
        };
        let (written, finished) = if let Some((tally, classed)) = self.classes.take() {
            let own = tally.seal()?;
            classed.check_bytes()?;
            let at_once = Budget::parts_at_once(self.options, self.reading);
            let has_identities = self.options.distinguishes_variants();
            let sources = (&classed, &own);
            self.writer
                .write_classed(sources, has_identities, at_once, content, stop, meter)?
        } else {
            let counts = counted.counts.by_position();
            let (source, rows) = match &counted.counts.shared_keys {
                Some(keys) => {
                    let finder = counts.finder()?;
                    (RowSource::Identities { finder, keys }, counts.size()?.1)
                }
                None => (RowSource::Keys(counts), counted.report.pairs),
            };
            content.size = rows;
            self.writer.write(&source, content, stop, meter)?
        };
        let least = self.options.prune_counts;
        if written.rows == 0 && least > 0 && !self.options.allow_empty {
            let positions = written.positions;
            let reason = format!(
                "none of {positions} positions is kept (each has fewer than {least} counted moves)"
            );
            return Err(Error::Empty { reason });
        }
        let report = &mut counted.report;
        if report.pairs == 0 {
            // All counts are by class, so the run has not counted pairs yet.
            (report.positions, report.pairs) = (written.positions, written.pairs);
            report.totals.plies = written.plies;
        }
        report.counts = Some(CountsReport {
            path: self.path.to_owned(),
            rows: written.rows,
            parts: written.parts,
            pruned: written.pruned,
        });
        Ok(finished)
    }
}

impl CountsSink<'_> {
    fn by(&self) -> Grouping {
        self.options.by.unwrap_or_default()
    }

    /// Returns the contents of the sidecar.
    fn about(&self, counted: &Counted<'_>) -> CountsOrigin {
        let totals = &counted.report.totals;
        // The directories of the inputs are not part of the counts.
        let without_directory = |rejection: &Rejection| Rejection {
            file: PathBuf::from(rejection.file.file_name().unwrap_or_default()),
            ..rejection.clone()
        };
        let rejected = counted.report.rejected.iter();
        CountsOrigin {
            inputs: counted.provenance.inputs.clone(),
            games: counted.provenance.games,
            options: counted.options.to_owned(),
            variant: self.options.variant.to_string(),
            plies: totals.plies,
            by: self.by(),
            pruned: counted.pruned,
            left_out: totals.ambiguous_castling,
            null_moves: totals.null_moves,
            unplayable_variations: totals.unplayable_variations,
            castling_dropped: totals.castling_dropped,
            contradicted_results: totals.contradicted_results,
            unreadable_results: totals.unreadable_results,
            unfinished: totals.unfinished,
            undated: totals.undated,
            unrated: totals.unrated,
            filtered_by: totals
                .filtered_by
                .iter()
                .map(|(condition, games)| (condition.to_string(), *games))
                .collect(),
            variants: totals
                .variants
                .iter()
                .map(|(variant, games)| (variant.name().to_owned(), *games))
                .collect(),
            rejected: rejected.map(without_directory).collect(),
        }
    }
}
