//! Prints the moves of a book in a position, with the probability of each.
//!
//! ```sh
//! cargo run --release --example book_moves -- book.bin "1. e4 c5"
//! ```

use std::{env, error::Error};

use polybook::{
    book::{Book, Entry},
    position::from_text,
};

fn main() -> Result<(), Box<dyn Error>> {
    let mut args = env::args().skip(1);
    let path = args.next().ok_or("usage: book_moves BOOK [MOVES]")?;
    let position = from_text(None, args.next().as_deref())?;

    let book = Book::open(path)?;
    let entries: Vec<Entry> = book.moves_of(&position)?;
    let total: u64 = entries.iter().map(|entry| u64::from(entry.weight)).sum();
    for entry in entries {
        // Two positions may share a key, so a book may contain a move that is illegal here.
        let Some(san) = entry.mv.san(&position) else {
            continue;
        };
        let percent = 100.0 * f64::from(entry.weight) / total as f64;
        println!("{san:<7} {percent:5.1}%");
    }
    Ok(())
}
