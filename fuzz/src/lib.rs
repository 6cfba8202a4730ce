//! What the fuzz targets do with their bytes, one module a target. `tests/fuzz_seeds.rs` of the main package includes
//! this file and runs the seeds through the same functions.

pub mod books;
pub mod counts_files;
pub mod damage;
pub mod databases;
pub mod differential_self;
pub mod differential_shakmaty;
pub mod engine;
pub mod evals;
pub mod explorer_request;
pub mod index_files;
pub mod outputs;
pub mod pgn_outputs;
pub mod position_text;
pub mod suites;
pub mod variants;

use std::path::{Path, PathBuf};

use tempfile::TempDir;

/// A directory for the files of one input, in memory where the system has such a place.
pub struct Room(TempDir);

impl Room {
    pub fn new() -> Room {
        let in_memory = tempfile::tempdir_in("/dev/shm");
        Room(
            in_memory
                .or_else(|_| tempfile::tempdir())
                .expect("a directory can be made"),
        )
    }

    pub fn dir(&self) -> &Path {
        self.0.path()
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.dir().join(name)
    }

    /// A file with these bytes.
    pub fn file(&self, name: &str, bytes: &[u8]) -> PathBuf {
        let path = self.path(name);
        std::fs::write(&path, bytes).expect("a file can be written");
        path
    }
}

/// Splits the first byte off, which chooses what is done with the rest.
pub fn choice(data: &[u8]) -> (u8, &[u8]) {
    match data {
        [first, rest @ ..] => (*first, rest),
        [] => (0, &[]),
    }
}
