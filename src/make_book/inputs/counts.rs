//! Reads counts directories as inputs of a run.

use std::{ops::Range, path::Path, sync::atomic::Ordering};

use super::{CountsDescription, OrderedInput, RunInput};
use crate::{
    chess::position::{Variant, VariantChoice},
    error::{Advice, Diagnosis, Error, Result},
    formats::counts::{
        ClassRow, CountBatch, CountsDirectory, CountsError, CountsOrigin, Grouping, KeyedIdentity,
        OrderedCounts, OrderedParts, Part, Row, Start, Tally,
    },
    games::{pgn::Input, selection::Condition},
    kind::FileKind,
    make_book::{
        needs::Needs,
        options::MakeBook,
        replay::Outcome,
        report::{Report, Totals},
        run::{BatchDispatcher, Run},
    },
    provenance::Provenance,
    task,
};

/// The size in bytes up to which the metadata of a Parquet file is ignored in the memory budget. The metadata of a
/// usual file, which has up to about sixty row groups, is smaller.
const FREE_METADATA_BYTES: usize = 1 << 20;

/// A counts directory (Parquet files with the results of moves) that is an input of a `make-book` run.
pub(super) struct CountsInput {
    directory: CountsDirectory,
    /// The files in the order of their keys, if the rows of the directory are sorted by key and all its games count.
    ordered: Option<OrderedParts>,
    /// The inputs and options with which the counts were made, and their variant, if the directory contains the file
    /// `_counts.json`.
    origin: Option<(Provenance, VariantChoice)>,
    by: Grouping,
    /// The approximate memory, in bytes, that the metadata of a Parquet file takes beyond [`FREE_METADATA_BYTES`].
    metadata: usize,
}

impl CountsInput {
    /// Opens `input` as a counts directory. Returns `None` if it is not a counts directory.
    ///
    /// # Errors
    ///
    /// Returns an error if the counts cannot be read, or if the metadata of one Parquet file would take more than
    /// `max_metadata` bytes of memory. Also returns an error if a condition of `run` cannot be applied to counts.
    pub(super) fn open(
        input: &Input,
        max_metadata: usize,
        run: &MakeBook,
    ) -> Result<Option<CountsInput>> {
        let path = input.path();
        if input.kind()? != FileKind::Counts {
            return Ok(None);
        }
        let mut directory = CountsDirectory::open(path)?;
        let metadata = directory.metadata_memory()? as usize;
        let metadata = metadata.saturating_sub(FREE_METADATA_BYTES);
        if metadata > max_metadata {
            let problem = Diagnosis::new(format!(
                "the metadata of these counts take about {} MiB of memory in each thread",
                metadata >> 20
            ))
            .advise("write the Parquet files with larger row groups")
            .advise(Advice::larger("memory"));
            return Err(Error::too_large(path, problem));
        }
        let origin = directory.about().map(|about| {
            let unknown = |_| {
                let problem = format!("it contains the unknown variant \"{}\"", about.variant);
                Error::format(path, CountsError::Sidecar(problem))
            };
            let provenance = Provenance {
                inputs: about.inputs.clone(),
                games: about.games,
                options: about.options.clone(),
            };
            Ok((provenance, about.variant.parse().map_err(unknown)?))
        });
        let mut origin: Option<(Provenance, VariantChoice)> = origin.transpose()?;
        let own = run.option_text();
        let is_made_so = origin.as_ref().is_some_and(|(made, _)| made.options == own);
        if !is_made_so && !run.selection.is_empty() {
            directory = directory.selecting(&run.selection)?;
            if let Some((made, _)) = &mut origin {
                made.games = None;
                let conditions = run.selection.option_text();
                made.options = format!("{} {conditions}", made.options).trim().to_owned();
            }
        }
        let ordered = if directory.is_selecting() {
            None
        } else {
            directory.ordered()?
        };
        Ok(Some(CountsInput {
            by: directory.by()?,
            ordered,
            directory,
            origin,
            metadata,
        }))
    }

    /// Reads the starting positions of games that the counts directory contains, and passes them to `batches`, which
    /// adds them to the data of the run. Does nothing if no output needs starting positions.
    fn read_starts(&self, batches: &mut BatchDispatcher<'_, '_, '_>) -> Result<()> {
        let run = batches.run;
        let (Some(part), true) = (self.directory.starts(), run.needs.starts) else {
            return Ok(());
        };
        if self.directory.is_selecting() && run.options.counts.is_some() {
            let problem = Diagnosis::new(
                "these counts do not say how many of the selected games began in another position",
            )
            .advise("count the games again");
            return Err(Error::file(self.directory.path(), problem));
        }
        let variant = self.variant_of_starts(run.options.variant);
        let mut row = 0;
        part.read_starts(&mut |starts| {
            check_starts(&starts, variant, row).map_err(|err| Error::format(part.path(), err))?;
            row += starts.len() as u64;
            add_plies(
                run,
                starts.iter().map(|start| start.games).sum(),
                part.path(),
            )?;
            let starts = starts.into_iter();
            batches.submit(Outcome {
                starts: starts
                    .map(|start| (start.epd.into_bytes(), start.games))
                    .collect(),
                ..Outcome::of_counts()
            })
        })?;
        Ok(())
    }

    /// Returns `true` if the directory states how many half-moves it contains. If only a part of its games counts,
    /// their number of half-moves is not stated.
    fn states_plies(&self) -> bool {
        self.directory.about().is_some() && !self.directory.is_selecting()
    }

    /// Returns the variant of the starting positions in this counts directory, or `None` if they may be of several
    /// variants. `choice` is the variant whose games the run counts, or [`VariantChoice::Auto`] if it counts all
    /// variants.
    fn variant_of_starts(&self, choice: VariantChoice) -> Option<Variant> {
        let about = self.directory.about();
        let met = about.map(|about| about.variants.keys().collect::<Vec<_>>());
        match (choice.only(), met.as_deref()) {
            (Some(variant), _) => Some(variant),
            (None, Some([only])) => only.parse().ok(),
            _ => None,
        }
    }

    /// Reads the Parquet file `part` of the counts directory, and adds its rows to the counts of `run`.
    fn add_part(&self, run: &Run<'_>, part: &Part) -> Result<()> {
        let is_standard = !run.options.distinguishes_variants();
        let problem = match part.has_identities()? {
            false if run.needs.identities => Some(CountsError::NoIdentity),
            // Counts with `_counts.json` name their variant. An index refuses counts of variants itself.
            true if is_standard
                && self.directory.about().is_none()
                && run.options.explorer.is_none() =>
            {
                Some(CountsError::Identity)
            }
            _ => None,
        };
        if let Some(problem) = problem {
            return Err(Error::format(part.path(), problem));
        }
        let add = |rows: &[Row]| {
            if run.failure.is_set() {
                return Err(Error::Interrupted);
            }
            task::fault("add counts");
            run.options.refuse_if_stopped()?;
            run.check_space(0)?;
            add_rows(run, rows, part.path())
        };
        let plies = if self.directory.is_selecting() {
            let mut plies = 0;
            part.read_classed(self.by, &mut |rows| {
                let is_selected =
                    |row: &&ClassRow| row.row.plies() > 0 && self.directory.admits(row.class);
                let rows: Vec<Row> = rows.iter().filter(is_selected).map(|row| row.row).collect();
                plies += rows.iter().map(Row::plies).sum::<u64>();
                add(&rows)
            })?;
            plies
        } else {
            part.read(&mut |rows| add(rows))?
        };
        if !self.states_plies() {
            run.plies_without_sidecar
                .fetch_add(plies, Ordering::Relaxed);
        }
        run.options.progress.add_bytes(part.size());
        Ok(())
    }
}

impl RunInput for CountsInput {
    fn size(&self) -> Option<u64> {
        Some(self.directory.size())
    }

    fn counts(&self) -> Option<CountsDescription<'_>> {
        Some(CountsDescription {
            path: self.directory.path(),
            origin: self.origin.as_ref(),
            by: self.by,
            pruned: self.directory.about().and_then(|about| about.pruned),
            metadata: self.metadata,
            directory: &self.directory,
        })
    }

    fn ordered(&self) -> Option<&dyn OrderedInput> {
        let parts = self.ordered.as_ref();
        parts.map(|parts| parts as &dyn OrderedInput)
    }

    fn read<'scope>(&'scope self, batches: &mut BatchDispatcher<'_, 'scope, '_>) -> Result<()> {
        let run = batches.run;
        let mut found = match self.directory.about() {
            Some(about) => outcome(about, run.needs)
                .map_err(|err| Error::format(self.directory.path(), err))?,
            None => Outcome::of_counts(),
        };
        if self.directory.is_selecting() {
            // The directory does not state the other numbers for a part of its games.
            found.totals = Totals {
                variants: found.totals.variants,
                ..Totals::default()
            };
        }
        batches.submit(found)?;
        self.read_starts(batches)?;
        if run.merges_ordered && self.ordered.is_some() {
            // The ordered rows are merged after all other inputs have been read.
            return Ok(());
        }
        if run.needs.tallies() == 0 && self.states_plies() {
            // Counts by class are read when the output is written. Other counts must be read now, because otherwise
            // their number of half-moves is unknown.
            run.options.progress.add_bytes(self.directory.size());
            return Ok(());
        }
        for part in self.directory.parts() {
            let add = move || self.add_part(run, part);
            batches.scope.spawn(move |_| run.watch(add));
        }
        Ok(())
    }
}

impl OrderedInput for OrderedParts {
    fn rows(&self) -> u64 {
        self.rows()
    }

    fn open<'r>(&'r self, run: &'r Run<'_>, shards: Range<usize>) -> OrderedCounts<'r> {
        let mut rows = self.rows_of(shards);
        Box::new(move |batch| {
            task::fault("merge counts");
            let step = rows.next(batch)?;
            if let Some(step) = &step {
                add_plies(run, step.games, step.path)?;
                run.options.progress.add_bytes(step.bytes);
            }
            Ok(step.map(|step| step.path))
        })
    }

    fn check_bytes(&self) -> Result<()> {
        self.check_bytes()
    }

    fn check_read(&self) -> Result<u64> {
        self.check_read()
    }
}

/// Adds `plies`, the number of half-moves that were just read from the file `path`, to the total number of half-moves
/// in the input counts of `run`.
///
/// # Errors
///
/// Returns an error that names `path` if the total becomes so large that sums could overflow.
fn add_plies(run: &Run<'_>, plies: u64, path: &Path) -> Result<()> {
    let before = run.counted_plies.fetch_add(plies, Ordering::Relaxed);
    if before.saturating_add(plies) > i64::MAX as u64 {
        return Err(Error::format(path, CountsError::Overflow));
    }
    Ok(())
}

/// Adds rows of the Parquet file `path` to the counts of `run`. A row contains the results of one move in one position.
fn add_rows(run: &Run<'_>, rows: &[Row], path: &Path) -> Result<()> {
    add_plies(run, rows.iter().map(|row| row.stats.games()).sum(), path)?;
    if let Some(tally) = &run.tally {
        // A book cannot contain a position whose key is 0.
        let rows = rows.iter().filter(|row| row.key != 0);
        add_keyed(tally, rows.map(|row| (row.key, row)), path)?;
    }
    if let Some(tally) = &run.identities {
        add_keyed(tally, rows.iter().map(|row| (row.identity, row)), path)?;
    }
    if let Some(pairs) = &run.pairs {
        let rows = rows.iter();
        let found: Vec<KeyedIdentity> = rows
            .map(|row| KeyedIdentity::new(row.key, row.identity))
            .collect();
        pairs.append(&found)?;
    }
    Ok(())
}

/// Adds rows of counts to `tally`, a store that adds up the results of moves. An item of `rows` is a row with the hash
/// of its position in `tally`, which is a position key or an identity. Error messages name `path`, the Parquet file of
/// the rows.
fn add_keyed<'r>(
    tally: &Tally,
    rows: impl Iterator<Item = (u64, &'r Row)>,
    path: &Path,
) -> Result<()> {
    let mut batch = CountBatch::default();
    for (key, row) in rows {
        batch.push(key, row.mv, row.turn, row.stats);
    }
    tally.add_batch(&batch)?;
    tally.refuse_many_large(path)
}

/// Converts the description of a counts directory to an [`Outcome`], with the totals that replaying the counted games
/// would have produced. It contains no records of moves, because these are read from the Parquet files.
///
/// # Errors
///
/// Returns an error if the description contains an unknown filter or variant.
fn outcome<'a>(about: &CountsOrigin, needs: &Needs) -> Result<Outcome<'a>, CountsError> {
    let mut totals = Totals {
        games: about.games.unwrap_or_default(),
        plies: about.plies,
        null_moves: about.null_moves,
        unplayable_variations: about.unplayable_variations,
        castling_dropped: about.castling_dropped,
        contradicted_results: about.contradicted_results,
        unreadable_results: about.unreadable_results,
        unfinished: about.unfinished,
        undated: about.undated,
        unrated: about.unrated,
        ..Totals::default()
    };
    if needs.counts_unbookable() {
        totals.ambiguous_castling = about.left_out;
    }
    for (name, games) in &about.filtered_by {
        let unknown = || CountsError::Sidecar(format!("it contains the unknown filter \"{name}\""));
        let condition = Condition::from_name(name).ok_or_else(unknown)?;
        totals.filtered_by.insert(condition, *games);
    }
    for (name, games) in &about.variants {
        let unknown =
            |_| CountsError::Sidecar(format!("it contains the unknown variant \"{name}\""));
        let variant: Variant = name.parse().map_err(unknown)?;
        totals.variants.insert(variant, *games);
    }
    Ok(Outcome {
        totals,
        rejected: about
            .rejected
            .iter()
            .take(Report::MAX_DESCRIBED_GAMES)
            .cloned()
            .collect(),
        ..Outcome::of_counts()
    })
}

/// Checks that the starting positions in `starts` can be parsed as positions of `variant`. Checks nothing if `variant`
/// is `None`. Returns an error for the first invalid position. `row` is the number of the first element of `starts`
/// among all rows of the file, for the error message.
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

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::MakeBook;

    #[test]
    fn counts_are_not_read_to_their_end_when_an_input_fails() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        let counting = MakeBook::new([Input::file("data/famous.pgn")]).counts(at("counts"));
        counting.run().unwrap();
        let files = fs::read_dir(at("counts")).unwrap();
        let part = files
            .map(|file| file.unwrap().path())
            .find(|path| path.to_string_lossy().contains("part-"))
            .unwrap();
        fs::create_dir(at("parts")).unwrap();
        for number in 0..300 {
            fs::copy(&part, at("parts").join(format!("part-{number}.parquet"))).unwrap();
        }
        fs::write(at("games.pgn.gz"), b"\x1f\x8b\x08 cut off").unwrap();
        let inputs = [at("parts"), at("games.pgn.gz")].map(Input::file);
        let run = MakeBook::new(inputs).bin(at("book.bin")).threads(1);
        let progress = run.progress();
        let err = run.run().unwrap_err().to_string();
        assert!(err.contains("games.pgn.gz"), "{err}");
        let (read, _) = progress.bytes();
        let all = 300 * fs::metadata(&part).unwrap().len();
        assert!(read < all, "all {all} bytes are read after the failure");
    }
}
