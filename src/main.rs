//! The `polybook` command.

#![forbid(unsafe_code)]

mod cli;

use std::process::ExitCode;

fn main() -> ExitCode {
    // Shells on Windows leave `*.pgn` to the program.
    ExitCode::from(cli::run(wild::args_os()))
}
