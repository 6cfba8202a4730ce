//! Counts wins, draws and losses per position and move: exactly, for any number of games, in bounded memory.
//!
//! A count is a 128-bit [record](CountRecord) of a key, a move and three numbers. Records are ordered by key and move. The stores
//! of the module `sort` collect, sort and add up records, and spill to temporary files what exceeds the memory budget.
//!
//! ```
//! use polybook::{position::BookMove, tally::{Memory, Stats, Tally}};
//! use shakmaty::Color;
//!
//! let tally = Tally::new(Memory::default());
//! let won = Stats { wins: 1, ..Stats::default() };
//! let drawn = Stats { draws: 1, ..Stats::default() };
//! tally.add(7, BookMove(796), Color::White, won)?;
//! tally.add(7, BookMove(796), Color::White, drawn)?;
//! let counts = tally.seal()?;
//! let positions = counts.positions().collect::<Result<Vec<_>, _>>()?;
//! assert_eq!(positions[0].key, 7);
//! assert_eq!(positions[0].moves[0].stats, Stats { wins: 1, draws: 1, losses: 0 });
//! # Ok::<(), polybook::Error>(())
//! ```

mod batch;
mod by;
mod class;
mod counts;
mod filter;
mod find;
mod ordered;
mod record;
mod shared_keys;
mod stats;
mod visited;

pub use self::{
    batch::CountBatch,
    by::{Grouping, UnknownClass},
    class::{CountClass, Ratings},
    counts::{Counts, PositionCount, Tally},
    filter::MoveFilter,
    record::CountRecord,
    stats::{MoveCount, Stats},
};
pub(crate) use self::{
    class::{ClassCounts, ClassRecord, ClassTally},
    find::{FindableCounts, Finder, RecordRange, Scratch},
    ordered::OrderedCounts,
    shared_keys::KeyedIdentity,
    visited::VisitedBits,
};
pub use crate::sort::Memory;
