//! Counts as a directory of Parquet files, which other engines read, add up and write too.
//!
//! Counts leave polybook so that an engine for big data can add those of many machines, and come back as an
//! input like a PGN. [`layout`] has the files and columns.
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
    about::About,
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
    tally::{By, Class, Ratings},
};
