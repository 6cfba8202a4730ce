//! Measures how long the PGN reader takes for a byte of unusual texts: `cargo bench --bench reader`.
//!
//! The texts of 1 MB repeat one to four tokens, after the beginning of a game, a comment or a tag. All tokens and pairs
//! of tokens are measured, and as many longer combinations. The benchmark prints the median time and the largest ones.

use std::{env, fmt, hint::black_box, time::Instant};

use polybook::pgn::GameReader;

/// Tokens of PGN, and of what people and programs write instead.
const TOKENS: &[&str] = &include!("../src/games/pgn/tokens.rs");

/// The beginnings of texts.
const STARTS: [&str; 6] = ["", "1. e4 ", "1. e4 (", "1. e4 {x", "[A \"x\n", "[FEN "];

/// The size of a measured text in bytes.
const SIZE: usize = 1_000_000;

/// The size of a short text in bytes, with which all combinations are measured first.
const SHORT_SIZE: usize = 20_000;

/// The number of combinations with the largest times that are measured with texts of [`SIZE`] bytes.
const MEASURED_AGAIN: usize = 300;

/// A start and the tokens that follow it again and again.
struct Pattern {
    start: &'static str,
    tokens: Vec<&'static str>,
}

impl Pattern {
    /// Returns the nanoseconds that the reader takes for a byte of a text of `size` bytes.
    fn measure(&self, size: usize) -> f64 {
        let part = self.tokens.concat();
        let text = self.start.to_owned() + &part.repeat(size / part.len());
        let begun = Instant::now();
        let mut games = GameReader::new(text.as_bytes());
        while games.next_game() {
            black_box(games.count_moves());
        }
        begun.elapsed().as_secs_f64() * 1e9 / text.len() as f64
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{:?} and {:?} repeated",
            self.start,
            self.tokens.concat()
        )
    }
}

/// Returns the patterns of one and two tokens, and for each of them one of three and one of four tokens.
fn patterns() -> Vec<Pattern> {
    let mut patterns = Vec::new();
    let mut random = 1_u64;
    let mut token = || {
        random = random.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
        TOKENS[(random >> 33) as usize % TOKENS.len()]
    };
    for (at, first) in TOKENS.iter().enumerate() {
        let start = STARTS[at % STARTS.len()];
        patterns.extend(STARTS.map(|start| Pattern {
            start,
            tokens: vec![*first],
        }));
        for second in TOKENS {
            let pair = vec![*first, *second];
            let three = [&pair[..], &[token()]].concat();
            let four = [&three[..], &[token()]].concat();
            patterns.extend([pair, three, four].map(|tokens| Pattern { start, tokens }));
        }
    }
    patterns
}

fn main() {
    // Other programs, such as `cargo test`, start a benchmark without this argument.
    if !env::args().any(|arg| arg == "--bench") {
        return;
    }
    let mut timed: Vec<(f64, Pattern)> = patterns()
        .into_iter()
        .map(|pattern| (pattern.measure(SHORT_SIZE), pattern))
        .collect();
    timed.sort_by(|a, b| b.0.total_cmp(&a.0));
    // A part of the texts represents all of them in the median. The slowest ones are all measured.
    let step = timed.len() / MEASURED_AGAIN;
    let sample = timed.iter().step_by(step);
    let mut usual: Vec<f64> = sample.map(|(_, pattern)| pattern.measure(SIZE)).collect();
    usual.sort_by(f64::total_cmp);
    let median = usual[usual.len() / 2];
    let mut slowest: Vec<(f64, &Pattern)> = timed[..MEASURED_AGAIN]
        .iter()
        .map(|(_, pattern)| (pattern.measure(SIZE).min(pattern.measure(SIZE)), pattern))
        .collect();
    slowest.sort_by(|a, b| b.0.total_cmp(&a.0));
    println!("{} texts, median {median:.1} ns a byte", timed.len());
    for (time, pattern) in &slowest[..10] {
        println!(
            "{time:8.1} ns, {:5.1} times the median: {pattern}",
            time / median
        );
    }
}
