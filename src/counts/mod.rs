//! Counts: a directory of Parquet files that query engines read, add up and write too.
//!
//! Counts contain the results of each move in each position. A query engine such as DuckDB or Spark can add up the
//! counts of many machines, and its output is an input of polybook like a PGN. [`layout`] documents the files and
//! columns.
//!
//! `CountsWriter` writes a directory. [`CountsDirectory`] opens one, and [`Part::read`] reads one of its parts.
//! `OrderedParts` and `ClassedCounts` read sorted parts by ranges of keys, so that several directories can be merged in
//! bounded memory.
//!
//! ```
//! use polybook::{MakeBook, counts::CountsDirectory, pgn::Input};
//!
//! # let dir = tempfile::tempdir()?;
//! # let (counts, bin) = (dir.path().join("counts"), dir.path().join("book.bin"));
//! MakeBook::new([Input::file("data/famous.pgn")]).counts(&counts).run()?;
//! let report = MakeBook::new([Input::file(&counts)]).bin(&bin).run()?;
//! assert_eq!(report.totals.games.read, 45);
//!
//! let directory = CountsDirectory::open(&counts)?;
//! let mut moves = 0;
//! for part in directory.parts() {
//!     part.read(&mut |rows| {
//!         moves += rows.len() as u64;
//!         Ok(())
//!     })?;
//! }
//! assert_eq!(moves, report.pairs);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod about;
mod classed;
mod columns;
mod error;
mod file;
pub mod layout;
mod ordered;
mod part;
mod prune;
mod read;
mod replace;
mod rows;
mod source;
mod starts;
mod write;

pub use self::{
    about::CountsOrigin,
    error::CountsError,
    layout::{ClassRow, Row},
    read::{CountsDirectory, Part},
    starts::Start,
    write::CountsSummary,
};
pub(crate) use self::{
    classed::ClassedCounts,
    ordered::OrderedParts,
    source::RowSource,
    write::{CountsContent, CountsWriter},
};
pub use crate::{
    provenance::Pruned,
    tally::{CountClass, Grouping, Ratings},
};
