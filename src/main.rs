//! The command-line program `polybook`.

#![forbid(unsafe_code)]

mod cli;

use std::process::ExitCode;

fn main() -> ExitCode {
    // Shells on Windows do not expand patterns such as `*.pgn`, so the program does.
    ExitCode::from(cli::run(wild::args_os()))
}
