//! The fuzz targets, one module each. `tests/fuzz_seeds.rs` of the main package includes this file, and runs the seeds
//! through the same functions.

pub mod board_query;
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
pub mod reader;
pub mod suites;
pub mod variants;

use std::path::{Path, PathBuf};

use tempfile::TempDir;

/// A temporary directory for the files of one input, in memory if the operating system supports that.
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

    /// Creates a file with these bytes.
    pub fn file(&self, name: &str, bytes: &[u8]) -> PathBuf {
        let path = self.path(name);
        std::fs::write(&path, bytes).expect("a file can be written");
        path
    }
}

/// Returns the first byte, which chooses what to do, and the remaining bytes.
pub fn choice(data: &[u8]) -> (u8, &[u8]) {
    match data {
        [first, rest @ ..] => (*first, rest),
        [] => (0, &[]),
    }
}
