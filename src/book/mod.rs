//! Polyglot books: [opening and probing](Book) them, their [header], making them from
//! [counts](crate::tally::Counts), [merging](merge), [checking](faults) and [listing their lines](lines).
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
mod exact;
pub mod header;
pub mod lines;
mod make;
mod merge;
mod open;
mod verify;
mod weight;

pub use self::{
    entry::Entry,
    make::{BookMaker, BookSummary},
    merge::{MergePolicy, MergeSummary, merge},
    open::{Book, Moves},
    verify::{Fault, faults, fix},
    weight::{Factors, Scale, Scaling, Weights},
};
