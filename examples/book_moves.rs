//! What a book plays in a position: each move with how often the book chooses it.
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
        // A book may hold a move that is not legal here: two positions may share a key.
        let Some(san) = entry.mv.san(&position) else {
            continue;
        };
        let percent = 100.0 * f64::from(entry.weight) / total as f64;
        println!("{san:<7} {percent:5.1}%");
    }
    Ok(())
}
