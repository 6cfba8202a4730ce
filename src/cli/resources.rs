//! The options for the resources that a command uses: threads, memory and the directory for temporary files.

use std::path::PathBuf;

use clap::builder::RangedU64ValueParser;
use parse_size::Config;
use polybook::counts::Memory;

/// The minimum memory budget, in bytes. A user who gives a smaller number has probably forgotten the unit.
const MIN_MEMORY: usize = 64 << 10;

/// The maximum number of threads. More threads would use memory without saving time.
const MAX_THREADS: i64 = 512;

/// The maximum value of options that count games, moves or lines. It is so low that sums of such numbers cannot
/// overflow.
pub const MAX_COUNT: u64 = 1_000_000_000_000;

/// The maximum memory budget, in bytes.
const MAX_MEMORY: usize = isize::MAX as usize >> 8;

/// The limit on open files that polybook requests from the operating system. It is far higher than any command needs.
#[cfg(unix)]
const REQUESTED_OPEN_FILES: u64 = 1 << 20;

/// The options for the threads, the memory and the temporary files of a command.
#[derive(clap::Args, Debug)]
#[command(next_help_heading = "Resources")]
pub struct ResourceArgs {
    /// Use N threads [default: one for each core]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=MAX_THREADS))]
    threads: Option<u16>,

    #[command(flatten)]
    memory: MemoryArgs,
}

/// The options for the memory and the temporary files of a command that uses only one thread. Other commands use
/// [`ResourceArgs`], which also contains the option for the number of threads.
#[derive(clap::Args, Debug)]
#[command(next_help_heading = "Resources")]
pub struct MemoryArgs {
    /// Use at most this much memory for tables, such as 512MiB or 4GiB. Data that needs more memory is written to
    /// temporary files
    #[arg(long, value_name = "SIZE", default_value = "1GiB", value_parser = memory)]
    memory: usize,

    /// Write temporary files to this directory [default: the temporary directory of the system]
    #[arg(long, value_name = "DIR")]
    temp_dir: Option<PathBuf>,
}

impl ResourceArgs {
    /// Returns the number of threads that the user requested, or 0, which means one thread per core.
    pub fn threads(&self) -> usize {
        self.threads.map_or(0, usize::from)
    }

    /// Returns the memory budget, and the directory of temporary files for data that exceeds the budget.
    pub fn memory(&self) -> Memory {
        self.memory.memory()
    }
}

impl MemoryArgs {
    /// Returns the memory budget, and the directory of temporary files for data that exceeds the budget.
    pub fn memory(&self) -> Memory {
        let temp_dir = self.temp_dir.clone();
        Memory {
            bytes: self.memory,
            temp_dir: temp_dir.unwrap_or_else(std::env::temp_dir),
        }
    }
}

/// Creates a clap parser for the value of an option that counts games, moves or lines. It accepts numbers from `min` to
/// [`MAX_COUNT`].
pub fn count<T: TryFrom<u64>>(min: u64) -> RangedU64ValueParser<T> {
    RangedU64ValueParser::new().range(min..=MAX_COUNT)
}

/// Raises the limit on open files as far as the operating system allows. Some systems allow only 256 open files by
/// default, which is too few for an index, and for a server with many connections.
pub fn raise_file_limit() {
    // An error is ignored: most commands need few files, and a command that needs more reports the error itself.
    #[cfg(unix)]
    let _ = rlimit::increase_nofile_limit(REQUESTED_OPEN_FILES);
}

/// Parses a size in bytes with a unit, such as `64MiB`, `1g` or `500MB`. Units such as `KiB` and `k` are powers of
/// 1024, and units such as `kB` are powers of 1000. Returns an error message if the text is not a size, or if the
/// size is less than [`MIN_MEMORY`].
fn memory(text: &str) -> Result<usize, &'static str> {
    let is_decimal = text.trim().to_ascii_lowercase().ends_with('b');
    let config = if is_decimal {
        Config::new().with_decimal()
    } else {
        Config::new().with_binary()
    };
    let bytes = config.parse_size(text).ok();
    match bytes.and_then(|bytes| usize::try_from(bytes).ok()) {
        Some(bytes) if bytes > MAX_MEMORY => Err("use a size such as 64MiB or 4GiB"),
        Some(bytes) if bytes >= MIN_MEMORY => Ok(bytes),
        Some(_) => {
            Err("the size must be at least 64KiB: use a number with its unit, such as 512MiB")
        }
        None => Err("use a size such as 64MiB or 4GiB"),
    }
}

#[cfg(test)]
mod tests {
    use clap::{Command, CommandFactory, error::ErrorKind};

    use super::*;
    use crate::cli::Cli;

    /// Calls `f` with each command that has no subcommands, and its name.
    fn for_each_command(command: &Command, f: &mut impl FnMut(&Command)) {
        if command.has_subcommands() {
            command
                .get_subcommands()
                .for_each(|it| for_each_command(it, f))
        } else {
            f(command)
        }
    }

    #[test]
    fn each_option_that_is_a_number_has_a_range() {
        let mut numbers = 0;
        let mut unlimited: Vec<String> = Vec::new();
        for_each_command(&Cli::command(), &mut |command| {
            for arg in command.get_arguments() {
                let (Some(long), true) = (arg.get_long(), arg.get_action().takes_values()) else {
                    continue;
                };
                let is_refused = |value: &str| {
                    let line = ["polybook".to_owned(), format!("--{long}={value}")];
                    let parsed = command.clone().try_get_matches_from(line);
                    parsed.is_err_and(|err| {
                        matches!(
                            err.kind(),
                            ErrorKind::ValueValidation | ErrorKind::InvalidValue
                        )
                    })
                };
                let is_whole_number = !is_refused("16") && is_refused("text") && is_refused("16.5");
                if !is_whole_number {
                    continue;
                }
                numbers += 1;
                // Every number is a seed, and a query of positions.
                if !["seed", "position"].contains(&long)
                    && !is_refused(&(i64::MAX as u64 - 1).to_string())
                {
                    unlimited.push(format!("{} --{long}", command.get_name()));
                }
            }
        });
        assert!(numbers > 40, "{numbers}");
        assert!(unlimited.is_empty(), "{unlimited:?}");
    }

    #[test]
    fn sizes_of_memory_are_parsed() {
        for (text, bytes) in [
            ("64MiB", 64 << 20),
            ("64mib", 64 << 20),
            ("1GiB", Memory::DEFAULT_BYTES),
            ("1g", 1 << 30),
            ("64Ki", MIN_MEMORY),
            ("2T", 2 << 40),
            ("500 MB", 500_000_000),
            ("300kb", 300_000),
            ("1.5GiB", 3 << 29),
            ("70000", 70_000),
            ("70000b", 70_000),
        ] {
            assert_eq!(memory(text), Ok(bytes), "{text}");
        }
        for wrong in ["", "MiB", "-1", "99999999999TiB", "9EiB", "1x", "lots"] {
            assert_eq!(memory(wrong), Err("use a size such as 64MiB or 4GiB"));
        }
        assert!(
            memory("65535")
                .unwrap_err()
                .starts_with("the size must be at least 64KiB")
        );
    }
}
