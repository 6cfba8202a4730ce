//! Watching the space for temporary files, so that a shortage is known before hours have passed.

use std::{
    path::PathBuf,
    sync::atomic::{AtomicU64, Ordering},
};

use crate::error::{Error, Result};

/// How many more bytes are spilled before the space is looked at again.
const STEP: u64 = 64 << 20;

/// The part of the input that must have been read before the rest can be judged by it.
const ENOUGH_READ: f64 = 0.02;

/// How much more than there is an estimate must ask for: it is only an estimate.
const TOLERANCE: f64 = 1.25;

/// The space for the temporary files of a run.
#[derive(Debug)]
pub(super) struct TemporarySpace {
    directory: PathBuf,
    /// The spilled bytes at which to look next.
    next: AtomicU64,
}

impl TemporarySpace {
    pub(super) fn new(directory: PathBuf) -> TemporarySpace {
        TemporarySpace {
            directory,
            next: AtomicU64::new(STEP),
        }
    }

    /// Judges by what was spilled for the part of the input that was read whether the rest will fit.
    ///
    /// # Errors
    ///
    /// [`Error::File`] says how much is needed and how much there is.
    pub(super) fn check(&self, spilled: u64, read: Option<f64>) -> Result<()> {
        if spilled < self.next.load(Ordering::Relaxed) {
            return Ok(());
        }
        self.next.store(spilled + STEP, Ordering::Relaxed);
        // If the file system does not say, the write fails that fills it.
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

/// The bytes that the rest of the input will spill; `None` if too little was read to tell.
fn still_needed(spilled: u64, read: f64) -> Option<u64> {
    (read >= ENOUGH_READ).then(|| (spilled as f64 * (1.0 / read - 1.0)) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rest_is_judged_by_what_was_read() {
        assert_eq!(still_needed(100, 0.25), Some(300));
        assert_eq!(still_needed(100, 1.0), Some(0));
        assert_eq!(still_needed(100, 0.01), None);
    }

    #[test]
    fn a_shortage_is_told_with_both_numbers() {
        let space = TemporarySpace::new(std::env::temp_dir());
        space.check(STEP - 1, Some(0.5)).unwrap();
        space.check(STEP, Some(1.0)).unwrap();
        // No disk has this much.
        let err = space.check(1 << 60, Some(0.05)).unwrap_err().to_string();
        assert!(err.contains("MiB more are needed"), "{err}");
        space.check(u64::MAX - STEP, None).unwrap();
    }
}
