//! How much memory to use.

use std::path::PathBuf;

/// How much memory a table of records may take, and where it spills to.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Memory {
    /// Bytes that records may take before they go to temporary files. Default: 1 GiB.
    pub bytes: usize,
    /// The directory of the temporary files. Default: the system's.
    pub temp_dir: PathBuf,
}

impl Memory {
    /// The default budget: 1 GiB.
    pub const DEFAULT_BYTES: usize = 1 << 30;

    /// One of several equal parts.
    pub(crate) fn share(&self, parts: usize) -> Memory {
        Memory {
            bytes: self.bytes / parts,
            temp_dir: self.temp_dir.clone(),
        }
    }
}

impl Default for Memory {
    fn default() -> Memory {
        Memory {
            bytes: Memory::DEFAULT_BYTES,
            temp_dir: std::env::temp_dir(),
        }
    }
}
