//! What a command may use: threads, memory, a place for temporary files.

use std::{fmt, path::PathBuf, str::FromStr};

use parse_size::Config;
use polybook::tally::Memory;

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

/// A number of bytes, as people write it: `64MiB`, `1g`, `500MB`.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Size(pub usize);

impl FromStr for Size {
    type Err = &'static str;

    /// `KiB`, `k` and their like are powers of 1024; `kB` and its like are powers of 1000.
    fn from_str(text: &str) -> Result<Size, Self::Err> {
        let unit = text.trim().to_ascii_lowercase();
        let config = if unit.ends_with('b') {
            Config::new().with_decimal()
        } else {
            Config::new().with_binary()
        };
        config
            .parse_size(text)
            .ok()
            .and_then(|bytes| usize::try_from(bytes).ok())
            .map(Size)
            .ok_or("write a size such as 64MiB or 4GiB")
    }
}

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const UNITS: [(&str, usize); 3] = [("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)];
        let whole = UNITS
            .iter()
            .find(|(_, size)| self.0 >= *size && self.0.is_multiple_of(*size));
        match whole {
            Some((unit, size)) => write!(f, "{}{unit}", self.0 / size),
            None => write!(f, "{}", self.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_and_back() {
        for (text, bytes) in [
            ("64MiB", 64 << 20),
            ("64mib", 64 << 20),
            ("1g", 1 << 30),
            ("1Ki", 1 << 10),
            ("2T", 2 << 40),
            ("500 MB", 500_000_000),
            ("3kb", 3000),
            ("1.5GiB", 3 << 29),
            ("12", 12),
            ("12b", 12),
        ] {
            assert_eq!(text.parse(), Ok(Size(bytes)), "{text}");
            assert_eq!(Size(bytes).to_string().parse(), Ok(Size(bytes)), "{text}");
        }
        for wrong in ["", "MiB", "-1", "99999999999TiB", "1x", "lots"] {
            assert!(wrong.parse::<Size>().is_err(), "{wrong}");
        }
        assert_eq!(Size(1 << 30).to_string(), "1GiB");
        assert_eq!(Size(1000).to_string(), "1000");
    }
}
