//! Counts the wins, draws and losses of each move in each position. The numbers are exact, and any number of games can
//! be counted in bounded memory.
//!
//! A [record](CountRecord) has 128 bits and contains a position key, a move, and the numbers of wins, draws and losses.
//! Records are ordered by key and move. The module `sort` collects, sorts and adds up records. It spills records to
//! temporary files if they exceed the memory budget.
//!
//! Sorting records takes one seventh of the time of counting in a hash map, and less memory. The numbers state how many
//! times a move was played, not in how many games: a move that a game plays twice in the same position is counted
//! twice. The last position of a game has no move, so it is counted only if results are grouped by class. A record
//! contains the key of its position, not the position; the module `obs` finds positions by replaying the counted moves.
//!
//! ```
//! use polybook::{counts::{Memory, Tally}, position::BookMove, results::Wdl};
//! use shakmaty::Color;
//!
//! let tally = Tally::new(Memory::default());
//! let won = Wdl { wins: 1, ..Wdl::default() };
//! let drawn = Wdl { draws: 1, ..Wdl::default() };
//! tally.add(7, BookMove(796), Color::White, won)?;
//! tally.add(7, BookMove(796), Color::White, drawn)?;
//! let counts = tally.sort()?;
//! let positions = counts.positions().collect::<Result<Vec<_>, _>>()?;
//! assert_eq!(positions[0].key, 7);
//! assert_eq!(positions[0].moves[0].stats, Wdl { wins: 1, draws: 1, losses: 0 });
//! # Ok::<(), polybook::Error>(())
//! ```
//!
//! # Directories of counts
//!
//! If the feature `parquet` is on, results can also be stored in a *counts directory*, a directory of Parquet files.
//! Query engines such as DuckDB and Spark can read and write such files. For example, a query engine can add up the
//! counts directories of many machines, and polybook can read the result like a PGN file. [`layout`] documents the
//! files and their columns.
//!
//! `CountsWriter` writes a directory. [`CountsDirectory`] opens a directory, and [`Part::read`] reads one of its files.
//! `OrderedParts` and `ClassedCounts` read sorted files by ranges of keys, so that several directories can be merged in
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

mod class;
mod record;
mod recover_positions;
mod tally;

pub(crate) use self::{
    class::{ClassCounts, ClassRecord, ClassTally, KeyedIdentity},
    recover_positions::{FoundPosition, LegalCount, keyed_starts, recover_positions},
    tally::{FindableCounts, Finder, LookUpBuffers, OrderedCounts, RecordRange, VisitedBits},
};
pub use self::{
    class::{CountClass, Grouping, UnknownClass},
    record::{CountBatch, CountRecord, MoveCount, MoveFilter},
    tally::{Counts, PositionCount, Tally},
};
pub use crate::{provenance::Pruned, storage::sort::Memory};

cfg_if::cfg_if! {
    if #[cfg(feature = "parquet")] {
        mod classed;
        mod directory;
        mod error;
        pub mod layout;
        mod names;
        mod parquet_file;
        mod rows;
        mod sidecar;
        mod writer;

        pub use self::{
            directory::{CountsDirectory, Part},
            error::CountsError,
            layout::{ClassRow, Row},
            names::{Names, UnknownNames},
            sidecar::{CountsOrigin, Start},
            writer::CountsSummary,
        };
        pub(crate) use self::{
            classed::{ClassedCounts, RowSource},
            directory::OrderedParts,
            names::CountedNames,
            writer::{CountsContent, CountsWriter},
        };
    }
}
