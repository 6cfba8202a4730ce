//! What a command may use: threads, memory, a place for temporary files.

use std::path::PathBuf;

use polybook::tally::Memory;

use super::size::Size;

/// The least memory budget that makes sense. A smaller one probably lacks its unit.
const LEAST_MEMORY: Size = Size(64 << 10);

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
    #[arg(long, value_name = "SIZE", default_value_t = Size(Memory::DEFAULT_BYTES), value_parser = memory)]
    memory: Size,

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
            bytes: self.memory.0,
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

fn memory(text: &str) -> Result<Size, String> {
    let size: Size = text.parse()?;
    if size.0 < LEAST_MEMORY.0 {
        return Err(format!(
            "at least {LEAST_MEMORY} are needed; write the unit, such as 512MiB"
        ));
    }
    Ok(size)
}
