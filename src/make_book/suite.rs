//! The suite among the outputs of a run.

use super::{MakeBook, report::SuiteReport};
use crate::{
    error::{Error, Result},
    output::{AtomicFile, Finished},
    suite::{self, GameLines},
};

impl MakeBook {
    /// Begins the suite, if there is to be one.
    pub(super) fn begin_suite(&self) -> Result<Option<AtomicFile>> {
        let Some(output) = &self.suite else {
            return Ok(None);
        };
        let plies = output.suite.plies;
        if plies > self.max_ply {
            let max_ply = self.max_ply;
            let problem = format!(
                "no line of {plies} half-moves can be counted, because --max-ply {max_ply} ends games sooner"
            );
            return Err(Error::file(&output.path, problem));
        }
        suite::begin(&output.path, output.format).map(Some)
    }

    /// Writes the suite.
    pub(super) fn write_suite(
        &self,
        file: AtomicFile,
        lines: GameLines,
    ) -> Result<(SuiteReport, Finished)> {
        let output = self.suite.as_ref().expect("the run writes a suite");
        let min_game = self.move_filter.min_game;
        let (file, counted) = lines.write(file, output.format, &output.suite, min_game)?;
        if counted.entries == 0 && !self.allow_empty {
            let reason = counted.why_empty(&output.suite, min_game);
            return Err(Error::Empty { reason });
        }
        let report = SuiteReport {
            path: output.path.clone(),
            lines: counted.entries,
        };
        Ok((report, file.finish()?))
    }
}
