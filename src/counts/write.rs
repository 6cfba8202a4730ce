//! Writing a directory of counts.

use std::{
    path::Path,
    sync::atomic::{AtomicBool, Ordering},
};

use rayon::prelude::*;

use super::{
    about::{CountsOrigin, ListedFile, Sidecar},
    classed::ClassedCounts,
    error::CountsError,
    layout::{ClassRow, part_count, part_name, ranges_of_part, shards_of_part},
    part::PartWriter,
    prune::Pruner,
    replace::{check_replaceable, is_own_file},
    rows::MOST_GAMES,
    source::RowSource,
    starts::{Start, write_starts},
};
use crate::{
    error::{Error, Result},
    output::{AtomicDir, Finished},
    progress::Meter,
    provenance::Pruned,
    tally::{ClassCounts, Grouping},
    task,
};

/// Writes counts to a temporary directory next to their target.
#[derive(Debug)]
pub(crate) struct CountsWriter {
    directory: AtomicDir,
}

/// The size of counts that were written.
#[derive(Copy, Clone, PartialEq, Eq, Default, Debug)]
pub struct CountsSummary {
    /// The number of rows in all parts.
    pub rows: u64,
    /// The number of parts.
    pub parts: usize,
    /// The number of positions, including pruned ones. It is counted only if a minimum number of games is set, or in
    /// counts by class.
    pub positions: u64,
    /// The number of pairs of position and move, including pruned ones. It is counted in the same cases as `positions`.
    pub pairs: u64,
    /// The number of half-moves, including pruned ones.
    pub plies: u64,
    /// The positions, rows and half-moves that were pruned, or `None` if pruning was not requested.
    pub pruned: Option<Pruned>,
}

/// The data that are written in addition to the rows.
pub(crate) struct CountsContent<S> {
    /// The approximate number of rows, or of half-moves in counts by class. It decides into how many parts the counts
    /// are divided.
    pub size: u64,
    /// Positions with fewer counted moves are pruned; 0 keeps all positions.
    pub min_game: u64,
    /// The positions in which games started.
    pub starts: S,
    /// The description of the counts. The writer sets the half-moves and what was pruned.
    pub about: CountsOrigin,
}

impl CountsWriter {
    /// Creates a temporary directory for the counts that will be at `target`. With `force`, existing counts may be
    /// replaced.
    ///
    /// # Errors
    ///
    /// Returns an error if something that may not be replaced exists at `target`, or if the temporary directory cannot
    /// be created.
    pub(crate) fn create(target: &Path, force: bool) -> Result<CountsWriter> {
        let may_replace = |old: &Path| check_replaceable(old, force);
        Ok(CountsWriter {
            directory: AtomicDir::create_over(target, is_own_file, may_replace)?,
        })
    }

    /// Writes the counts of `source`. They are complete afterwards, but not renamed to their target yet.
    ///
    /// Uses all threads of the current rayon pool. `meter` advances by one for each shard.
    ///
    /// # Errors
    ///
    /// Returns an error if the counts cannot be written, if a temporary file cannot be read, or [`Error::Interrupted`]
    /// if `stop` is set.
    pub(crate) fn write(
        self,
        source: &RowSource<'_>,
        counts: CountsContent<impl Iterator<Item = Result<Start>>>,
        stop: &AtomicBool,
        meter: &Meter,
    ) -> Result<(CountsSummary, Finished)> {
        let parts = part_count(counts.size);
        let has_identities = source.has_identities();
        let write_part = |number: usize| {
            let mut part = self.part(number, has_identities, Grouping::default(), stop)?;
            let mut pruner = Pruner::new(counts.min_game, has_identities, self.directory.target());
            for shard in shards_of_part(number, parts) {
                if counts.min_game == 0 {
                    source.for_each_row(shard, |row| part.push(row))?;
                } else {
                    let mut push = |row: &ClassRow| part.push(row.row);
                    source.for_each_row(shard, |row| pruner.take(&row.into(), &mut push))?;
                    pruner.end_key(&mut push)?;
                }
                meter.advance(1);
            }
            Ok((part.finish()?, pruner))
        };
        let parts = (0..parts).into_par_iter().map(write_part);
        let parts = parts.collect::<Result<_>>()?;
        self.finish(parts, counts)
    }

    /// Writes the sums of the counts by class in `classed`, which come from directories, and `own`, which come from
    /// games. At most `at_once` parts are written at the same time, to bound memory.
    ///
    /// # Errors
    ///
    /// Returns an error in the cases of [`write`](CountsWriter::write), or if a directory cannot be read, is damaged or
    /// is not sorted.
    pub(crate) fn write_classed(
        self,
        (classed, own): (&ClassedCounts, &ClassCounts),
        has_identities: bool,
        at_once: usize,
        counts: CountsContent<impl Iterator<Item = Result<Start>>>,
        stop: &AtomicBool,
        meter: &Meter,
    ) -> Result<(CountsSummary, Finished)> {
        let parts = part_count(counts.size);
        let by = counts.about.by;
        let write_part = |number: usize| {
            let mut part = self.part(number, has_identities, by, stop)?;
            let mut pruner = Pruner::new(counts.min_game, has_identities, self.directory.target());
            let mut push = |row: &ClassRow| part.push_classed(row);
            for shards in ranges_of_part(number, parts) {
                classed.for_each_row(shards.clone(), Some(own), |row| {
                    if stop.load(Ordering::Relaxed) {
                        return Err(Error::Interrupted);
                    }
                    pruner.take(row, &mut push)
                })?;
                meter.advance(shards.len() as u64);
            }
            pruner.end_key(&mut push)?;
            Ok((part.finish()?, pruner))
        };
        let mut written = Vec::new();
        for numbers in (0..parts).collect::<Vec<_>>().chunks(at_once) {
            let numbers = numbers.into_par_iter().copied().map(write_part);
            written.extend(numbers.collect::<Result<Vec<_>>>()?);
        }
        classed.check_read()?;
        self.finish(written, counts)
    }

    /// Creates the writer of a part.
    fn part<'s>(
        &'s self,
        number: usize,
        has_identities: bool,
        by: Grouping,
        stop: &'s AtomicBool,
    ) -> Result<PartWriter<'s>> {
        task::fault("write part");
        let directory = &self.directory;
        let (path, target) = (directory.path(), directory.target());
        PartWriter::create(path, part_name(number), target, (has_identities, by), stop)
    }

    /// Writes the starts and the sidecar, and returns the summary.
    fn finish(
        self,
        parts: Vec<(ListedFile, Pruner)>,
        counts: CountsContent<impl Iterator<Item = Result<Start>>>,
    ) -> Result<(CountsSummary, Finished)> {
        let mut about = counts.about;
        let mut written = CountsSummary {
            parts: parts.len(),
            ..CountsSummary::default()
        };
        let mut listed = Vec::new();
        for (part, pruner) in parts {
            written.rows += part.rows;
            written.plies += part.plies + pruner.pruned.plies;
            written.positions += pruner.positions;
            written.pairs += pruner.pairs;
            if counts.min_game > 0 {
                about.pruned.get_or_insert_default().add(pruner.pruned);
            }
            listed.push(part);
        }
        about.plies = listed.iter().map(|part| part.plies).sum();
        written.pruned = about.pruned;
        let target = self.directory.target();
        if about.plies > MOST_GAMES {
            return Err(Error::format(target, CountsError::Overflow));
        }
        let starts = write_starts(self.directory.path(), target, counts.starts)?;
        Sidecar::new(about, listed, starts).write(self.directory.path(), target)?;
        Ok((written, self.directory.finish()?))
    }
}
