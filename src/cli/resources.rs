//! What a command may use: threads, memory, a place for temporary files.

use std::path::PathBuf;

use parse_size::Config;
use polybook::tally::Memory;

/// The least memory budget that makes sense. A smaller one probably lacks its unit.
const LEAST_MEMORY: usize = 64 << 10;

/// More threads than this only take memory from the counts.
const MOST_THREADS: i64 = 512;

/// The most files that a command has open, more than any has.
#[cfg(unix)]
const MOST_FILES: u64 = 1 << 20;

/// What a command may use.
#[derive(clap::Args, Debug)]
#[command(next_help_heading = "Resources")]
pub struct ResourceArgs {
    /// Number of threads [default: all cores]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=MOST_THREADS))]
    threads: Option<u16>,

    #[command(flatten)]
    memory: MemoryArgs,
}

/// What a command of one thread may use.
#[derive(clap::Args, Debug)]
#[command(next_help_heading = "Resources")]
pub struct MemoryArgs {
    /// Memory budget for tables; the rest goes to temporary files
    #[arg(long, value_name = "SIZE", default_value = "1GiB", value_parser = memory)]
    memory: usize,

    /// Directory for temporary files [default: the system's]
    #[arg(long, value_name = "DIR")]
    temp_dir: Option<PathBuf>,
}

impl ResourceArgs {
    /// How many threads, 0 for one per core.
    pub fn threads(&self) -> usize {
        self.threads.map_or(0, usize::from)
    }

    /// What tables may take, and where they go past it.
    pub fn memory(&self) -> Memory {
        self.memory.memory()
    }
}

impl MemoryArgs {
    /// What tables may take, and where they go past it.
    pub fn memory(&self) -> Memory {
        let temp_dir = self.temp_dir.clone();
        Memory {
            bytes: self.memory,
            temp_dir: temp_dir.unwrap_or_else(std::env::temp_dir),
        }
    }
}

/// Lets the process have as many open files as the system allows: an index holds its tables open, and a server its
/// connections. Some systems allow 256 by default.
pub fn raise_file_limit() {
    // Few files will do; what needs more than there may be says so.
    #[cfg(unix)]
    let _ = rlimit::increase_nofile_limit(MOST_FILES);
}

/// Reads a number of bytes, as people write it: `64MiB`, `1g`, `500MB`. `KiB`, `k` and their like are powers of 1024;
/// `kB` and its like are powers of 1000.
fn memory(text: &str) -> Result<usize, &'static str> {
    let is_decimal = text.trim().to_ascii_lowercase().ends_with('b');
    let config = match is_decimal {
        true => Config::new().with_decimal(),
        false => Config::new().with_binary(),
    };
    let bytes = config.parse_size(text).ok();
    match bytes.and_then(|bytes| usize::try_from(bytes).ok()) {
        Some(bytes) if bytes >= LEAST_MEMORY => Ok(bytes),
        Some(_) => Err("at least 64KiB are needed; write the unit, such as 512MiB"),
        None => Err("write a size such as 64MiB or 4GiB"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes() {
        for (text, bytes) in [
            ("64MiB", 64 << 20),
            ("64mib", 64 << 20),
            ("1GiB", Memory::DEFAULT_BYTES),
            ("1g", 1 << 30),
            ("64Ki", LEAST_MEMORY),
            ("2T", 2 << 40),
            ("500 MB", 500_000_000),
            ("300kb", 300_000),
            ("1.5GiB", 3 << 29),
            ("70000", 70_000),
            ("70000b", 70_000),
        ] {
            assert_eq!(memory(text), Ok(bytes), "{text}");
        }
        for wrong in ["", "MiB", "-1", "99999999999TiB", "1x", "lots"] {
            assert_eq!(memory(wrong), Err("write a size such as 64MiB or 4GiB"));
        }
        assert!(memory("65535").unwrap_err().starts_with("at least 64KiB"));
    }
}
