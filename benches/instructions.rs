//! Counts the instructions of whole runs of `make-book` with one thread: `cargo bench --bench instructions`.
//!
//! Unlike times, instruction counts hardly depend on what else the machine does, so they show differences of a percent.
//! The program valgrind counts them. If it is not installed, the benchmark measures nothing.
//!
//! The runs read the first 6,000 games of the file that `POLYBOOK_BENCH_PGN` names, or of `data/selfplay.pgn`, and one
//! run reads the file that `POLYBOOK_BENCH_SYNTHETIC` names. These commands make the latter file and run the benchmark:
//!
//! ```sh
//! cargo run --release --example synth_pgn -- --games 8000 --seed 5 > /tmp/synth.pgn
//! POLYBOOK_BENCH_SYNTHETIC=/tmp/synth.pgn cargo bench --bench instructions
//! ```

use std::{env, fs, path::Path, process::Command};

use memchr::memmem;

/// The maximum number of games that the runs read.
const MAX_GAMES: usize = 6000;

fn main() {
    // Other programs, such as `cargo test`, start a benchmark without this argument.
    if !env::args().any(|arg| arg == "--bench") {
        return;
    }
    if Command::new("valgrind").arg("--version").output().is_err() {
        println!("valgrind is not installed: install it to count instructions");
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let sample = concat!(env!("CARGO_MANIFEST_DIR"), "/data/selfplay.pgn");
    let games = env::var("POLYBOOK_BENCH_PGN").unwrap_or_else(|_| sample.to_owned());
    let text = fs::read(games).unwrap();
    let first = dir.path().join("first.pgn");
    fs::write(&first, first_games(&text)).unwrap();
    for (output, what) in [
        ("--bin", "book of every move"),
        ("--leveldb", "LevelDB index"),
        ("--explorer", "explorer index"),
        ("--counts", "counts"),
        ("--obs", "OOBS database"),
    ] {
        print_instructions(what, &first, output, dir.path());
    }
    if let Some(synthetic) = env::var_os("POLYBOOK_BENCH_SYNTHETIC") {
        print_instructions(
            "book, synthetic",
            Path::new(&synthetic),
            "--bin",
            dir.path(),
        );
    }
}

/// Returns the first [`MAX_GAMES`] games of a PGN text.
fn first_games(text: &[u8]) -> &[u8] {
    let mut starts = memmem::find_iter(text, b"\n[Event ");
    let end = starts.nth(MAX_GAMES - 1);
    end.map_or(text, |end| &text[..=end])
}

/// Makes an output of the kind `output` from the games in the file `games`, and prints the number of instructions that
/// this takes. `what` describes the output.
fn print_instructions(what: &str, games: &Path, output: &str, dir: &Path) {
    let run = Command::new("valgrind")
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
        .arg(env!("CARGO_BIN_EXE_polybook"))
        .arg("make-book")
        .arg(games)
        .args(["--threads", "1", "--min-game", "1", output])
        .arg(dir.join(format!("output{output}")))
        .arg("--force")
        .output()
        .unwrap();
    let messages = String::from_utf8_lossy(&run.stderr);
    let collected = messages
        .lines()
        .find_map(|line| line.split_once("Collected : "));
    let Some((_, instructions)) = collected.filter(|_| run.status.success()) else {
        panic!("{what}: {messages}");
    };
    let millions = instructions.trim().parse::<u64>().unwrap() / 1_000_000;
    println!("{what:<20} {millions:>6} million instructions");
}
