//! Polyglot books: [opening and probing](Book) them, their [header], [making](make) them from counts.
//!
//! ```no_run
//! use polybook::{book::Book, position::key};
//!
//! let book = Book::open("performance.bin")?;
//! for entry in book.moves(key(&shakmaty::Chess::default())) {
//!     println!("{} {}", entry.mv, entry.weight);
//! }
//! # Ok::<(), polybook::Error>(())
//! ```

mod entry;
pub mod header;
mod make;
mod open;
mod weight;

pub use self::{
    entry::Entry,
    make::{BookMaker, BookSummary},
    open::{Book, Moves},
    weight::{Factors, Scale, Scaling, Weighting},
};
