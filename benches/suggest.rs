//! Measures how long suggestions of names take for several texts.
//!
//! ```sh
//! cargo run --release --example suggest_speed -- --names 1000000
//! ```

use std::{fmt::Write, fs, time::Instant};

use clap::Parser;
use polybook::{
    MakeBook, Result,
    explorer::{Explorer, SuggestField},
    pgn::Input,
};

/// Time the suggestions of names
#[derive(Parser)]
struct Args {
    /// How many names
    #[arg(long, value_name = "N", default_value_t = 1_000_000)]
    names: u32,
}

fn main() -> Result<()> {
    let args = Args::parse();
    let dir = tempfile::tempdir().expect("a temporary directory");
    let (pgn, index) = (dir.path().join("names.pgn"), dir.path().join("index"));
    let mut random = fastrand::Rng::with_seed(7);
    let mut text = String::new();
    for _ in 0..args.names / 2 {
        let [white, black] = [name(&mut random), name(&mut random)];
        writeln!(
            text,
            "[White \"{white}\"]\n[Black \"{black}\"]\n\n1. e4 1-0\n"
        )
        .expect("text");
    }
    fs::write(&pgn, &text).expect("a file of games");
    let run = MakeBook::new([Input::file(&pgn)]).explorer(&index);
    run.run()?;
    let explorer = Explorer::open([("names".to_owned(), index)])?;
    let begin = Instant::now();
    explorer.warm_up()?;
    println!("{} names read in {:.0} ms", args.names, ms(begin));
    for text in [
        "",
        "c",
        "ca",
        "carl",
        "carlsen",
        "carlsne",
        "Carlsen, M",
        "crlsn",
        "magnus carlsen",
        "mangus calrsen",
        "zzzzzzzz",
        "nepomniachtchi",
        "a b c d e f g h",
        "abcdefgh bcdefghi cdefghij defghijk",
    ] {
        let times = (0..20).map(|_| {
            let begin = Instant::now();
            let found = explorer.suggest(SuggestField::Player, text, 8, None)?.len();
            Ok((ms(begin), found))
        });
        let mut times = times.collect::<Result<Vec<_>>>()?;
        times.sort_by(|a, b| a.0.total_cmp(&b.0));
        let (median, found) = times[times.len() / 2];
        println!(
            "{text:24} {median:7.2} ms, at most {:7.2} ms, {found} found",
            times[19].0
        );
    }
    Ok(())
}

/// Returns a random family name and given name made of syllables. Most names are distinct.
fn name(random: &mut fastrand::Rng) -> String {
    let part = |random: &mut fastrand::Rng, most: usize| {
        let mut part = String::new();
        for _ in 0..random.usize(1..=most) {
            part.push(letter(random, b"bcdfghjklmnprstvwz"));
            part.push(letter(random, b"aeiou"));
            if random.bool() {
                part.push(letter(random, b"lnrst"));
            }
        }
        part
    };
    let (family, given) = (part(random, 4), part(random, 3));
    format!("{family}, {given}")
}

fn letter(random: &mut fastrand::Rng, letters: &[u8]) -> char {
    char::from(letters[random.usize(..letters.len())])
}

fn ms(begin: Instant) -> f64 {
    begin.elapsed().as_secs_f64() * 1e3
}
