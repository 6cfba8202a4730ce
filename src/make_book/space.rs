//! Watching the disk space for temporary files, so that a shortage is reported early instead of after hours.

use std::{
    path::PathBuf,
    sync::atomic::{AtomicU64, Ordering},
};

use crate::error::{Error, Result};

/// The number of further spilled bytes after which the free space is checked again.
const STEP: u64 = 64 << 20;

/// The fraction of the input that must have been read before the rest can be estimated.
const ENOUGH_READ: f64 = 0.02;

/// The factor by which the estimated need must exceed the free space to end the run, because the estimate is inexact.
const TOLERANCE: f64 = 1.25;

/// Watches the disk space for the temporary files of a run.
#[derive(Debug)]
pub(super) struct TemporarySpace {
    directory: PathBuf,
    /// The number of spilled bytes at which the free space is checked next.
    next: AtomicU64,
}

impl TemporarySpace {
    pub(super) fn new(directory: PathBuf) -> TemporarySpace {
        TemporarySpace {
            directory,
            next: AtomicU64::new(STEP),
        }
    }

    /// Checks whether the temporary files will probably fit on the disk. `spilled` is the number of bytes spilled so
    /// far, and `read` is the fraction of the input that has been read.
    ///
    /// # Errors
    ///
    /// Returns an error that names the needed and the free space if the files will not fit.
    pub(super) fn check(&self, spilled: u64, read: Option<f64>) -> Result<()> {
        if spilled < self.next.load(Ordering::Relaxed) {
            return Ok(());
        }
        self.next.store(spilled + STEP, Ordering::Relaxed);
        // If the free space is unknown, the write that fills the disk will fail.
        let Ok(free) = fs4::available_space(&self.directory) else {
            return Ok(());
        };
        match read.map(|read| still_needed(spilled, read)) {
            Some(Some(needed)) if needed as f64 > free as f64 * TOLERANCE => Err(Error::too_large(
                &self.directory,
                format!(
                    "too little space for temporary files: about {} MiB more are needed and {} MiB are free; name a directory \
                     with more, or allow more memory",
                    needed >> 20,
                    free >> 20
                ),
            )),
            _ => Ok(()),
        }
    }
}

/// Returns the estimated number of bytes that the rest of the input will spill. Returns `None` if too little has been
/// read for an estimate.
fn still_needed(spilled: u64, read: f64) -> Option<u64> {
    (read >= ENOUGH_READ).then(|| (spilled as f64 * (1.0 / read - 1.0)) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_need_is_estimated_from_the_part_that_was_read() {
        assert_eq!(still_needed(100, 0.25), Some(300));
        assert_eq!(still_needed(100, 1.0), Some(0));
        assert_eq!(still_needed(100, 0.01), None);
    }

    #[test]
    fn a_shortage_is_reported_with_needed_and_free_space() {
        let space = TemporarySpace::new(std::env::temp_dir());
        space.check(STEP - 1, Some(0.5)).unwrap();
        space.check(STEP, Some(1.0)).unwrap();
        // No disk has this much free space.
        let err = space.check(1 << 60, Some(0.05)).unwrap_err().to_string();
        assert!(err.contains("MiB more are needed"), "{err}");
        space.check(u64::MAX - STEP, None).unwrap();
    }
}
