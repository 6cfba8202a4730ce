//! Writing a directory of counts.

use std::{path::Path, sync::atomic::AtomicBool};

use rayon::prelude::*;

use super::{
    about::{About, Sidecar},
    layout::{part_count, part_name, shards_of_part},
    part::PartWriter,
    replace::{check_replaceable, is_own_file},
    source::RowSource,
    starts::{Start, write_starts},
};
use crate::{
    error::Result,
    output::{AtomicDir, Finished},
    progress::Meter,
    task,
};

/// Writes counts next to their target.
#[derive(Debug)]
pub(crate) struct CountsWriter {
    directory: AtomicDir,
}

/// The size of the counts.
#[derive(Copy, Clone, PartialEq, Eq, Default, Debug)]
pub struct Written {
    /// Rows of all parts.
    pub rows: u64,
    /// Parts.
    pub parts: usize,
}

impl CountsWriter {
    /// Starts counts for `target`. Counts that exist are replaced with `force` only.
    pub(crate) fn create(target: &Path, force: bool) -> Result<CountsWriter> {
        let may_replace = |old: &Path| check_replaceable(old, force);
        Ok(CountsWriter {
            directory: AtomicDir::create_over(target, is_own_file, may_replace)?,
        })
    }

    /// Writes about this many `rows`, which decide where parts are cut, then `starts` and the facts about the counts.
    /// They are complete then, but not in place. Works on all threads of the rayon pool that it is called in;
    /// `meter` goes through the shards.
    ///
    /// # Errors
    ///
    /// A disk that cannot take it, a temporary file that cannot be read, [`Error::Interrupted`](crate::Error::Interrupted)
    /// when `stop` is set.
    pub(crate) fn write(
        self,
        source: &RowSource<'_>,
        rows: u64,
        starts: impl Iterator<Item = Result<Start>>,
        about: About,
        stop: &AtomicBool,
        meter: &Meter,
    ) -> Result<(Written, Finished)> {
        let target = self.directory.target();
        let parts = part_count(rows);
        let write_part = |number: usize| {
            task::fault("write part");
            let name = part_name(number);
            let with_identities = source.has_identities();
            let directory = self.directory.path();
            let mut part = PartWriter::create(directory, name, target, with_identities, stop)?;
            for shard in shards_of_part(number, parts) {
                source.for_each_row(shard, |row| part.push(row))?;
                meter.advance(1);
            }
            part.finish()
        };
        let parts = (0..parts)
            .into_par_iter()
            .map(write_part)
            .collect::<Result<Vec<_>>>()?;
        let written = Written {
            rows: parts.iter().map(|part| part.rows).sum(),
            parts: parts.len(),
        };
        let starts = write_starts(self.directory.path(), target, starts)?;
        Sidecar::new(about, parts, starts).write(self.directory.path(), target)?;
        Ok((written, self.directory.finish()?))
    }
}
