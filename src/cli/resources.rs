//! What a command may use: threads, memory, a place for temporary files.

use std::path::PathBuf;

use super::size;

/// What a command may use.
#[derive(clap::Args, Debug)]
pub struct ResourceArgs {
    /// Threads to work on [default: all cores]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    threads: Option<u16>,

    /// Memory for the counting tables; past it they go to temporary files
    #[arg(long, value_name = "SIZE", default_value = "1GiB", value_parser = size::parse)]
    pub memory: usize,

    /// Where temporary files go [default: the system's directory for them]
    #[arg(long, value_name = "DIR")]
    temp_dir: Option<PathBuf>,
}

impl ResourceArgs {
    /// How many threads, 0 for one per core.
    pub fn threads(&self) -> usize {
        self.threads.map_or(0, usize::from)
    }

    /// The directory for temporary files.
    pub fn temp_dir(&self) -> PathBuf {
        self.temp_dir.clone().unwrap_or_else(std::env::temp_dir)
    }
}
