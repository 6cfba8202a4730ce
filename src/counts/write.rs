//! Writing a directory of counts.

use std::{
    path::Path,
    sync::atomic::{AtomicBool, Ordering},
};

use rayon::prelude::*;

use super::{
    about::{About, ListedFile, Sidecar},
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
    tally::{By, ClassCounts},
    task,
};

/// Writes counts next to their target.
#[derive(Debug)]
pub(crate) struct CountsWriter {
    directory: AtomicDir,
}

/// The size of the counts.
#[derive(Copy, Clone, PartialEq, Eq, Default, Debug)]
pub struct CountsSummary {
    /// Rows of all parts.
    pub rows: u64,
    /// Parts.
    pub parts: usize,
    /// Positions and pairs of position and move, those that were dropped too, if it was looked whether to drop some.
    pub positions: u64,
    /// The pairs.
    pub pairs: u64,
    /// The half-moves, those that were dropped too.
    pub plies: u64,
    /// What was dropped.
    pub pruned: Option<Pruned>,
}

/// What is written besides the rows.
pub(crate) struct CountsContent<S> {
    /// About how many rows there are, or half-moves of counts by class. It decides where parts are cut.
    pub size: u64,
    /// Positions in which fewer moves were counted are dropped; 0 keeps all.
    pub min_game: u64,
    /// Where games started.
    pub starts: S,
    /// The facts about the counts, but for the half-moves.
    pub about: About,
}

impl CountsWriter {
    /// Starts counts for `target`. Counts that exist are replaced with `force` only.
    pub(crate) fn create(target: &Path, force: bool) -> Result<CountsWriter> {
        let may_replace = |old: &Path| check_replaceable(old, force);
        Ok(CountsWriter {
            directory: AtomicDir::create_over(target, is_own_file, may_replace)?,
        })
    }

    /// Writes the counts that `source` has. They are complete then, but not in place. Works on all threads of the rayon
    /// pool that it is called in; `meter` goes through the shards.
    ///
    /// # Errors
    ///
    /// A disk that cannot take it, a temporary file that cannot be read, [`Error::Interrupted`] when `stop` is set.
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
            let mut part = self.part(number, has_identities, By::default(), stop)?;
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

    /// Writes counts by class: those of directories and those of games. At most `at_once` parts are written at a time.
    ///
    /// # Errors
    ///
    /// As [`write`](CountsWriter::write), and those of the directories.
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

    /// Begins a part.
    fn part<'s>(
        &'s self,
        number: usize,
        has_identities: bool,
        by: By,
        stop: &'s AtomicBool,
    ) -> Result<PartWriter<'s>> {
        task::fault("write part");
        let directory = &self.directory;
        let (path, target) = (directory.path(), directory.target());
        PartWriter::create(path, part_name(number), target, (has_identities, by), stop)
    }

    /// Writes what is not in the parts.
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
