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

use std::path::Path;

mod entry;
mod exact;
pub mod header;
pub mod lines;
mod make;
mod merge;
mod open;
mod provenance;
mod verify;
mod weight;

pub use self::{
    entry::Entry,
    make::{BookMaker, BookSummary},
    merge::{MergePolicy, MergeSummary, merge},
    open::{Book, Moves},
    provenance::{Provenance, ProvenanceError},
    verify::{Fault, faults, fix},
    weight::{Factors, Scale, Scaling, Weighting},
};
use crate::error::{Error, Result};

/// Whether a book may be written where a file is already: over an empty file or a book always, over another
/// file with `force`.
///
/// # Errors
///
/// [`Error::File`] says why not.
pub(crate) fn check_replaceable(path: &Path, force: bool) -> Result<()> {
    if force || header::detect(path).is_ok() {
        return Ok(());
    }
    Err(Error::file(
        path,
        "exists and is not a Polyglot book: name another file",
    ))
}
