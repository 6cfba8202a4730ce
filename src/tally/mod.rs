//! Counting: wins, draws and losses per position and move, exact at any size, in bounded memory.
//!
//! A count is a 128-bit [record]: key, move and three numbers, so that the order of records
//! is the order of keys and moves. Records go into [`Shards`] by the first bits of their key, are
//! sorted and folded there when a shard is full, and go to a temporary file when folding does not
//! make room. [sealing](Tally::seal) leaves one sorted sequence per shard; one shard after the other
//! is the whole in order, without a big sort.
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
//! let mut found = Vec::new();
//! for shard in 0..counts.shard_count() {
//!     counts.for_each_position(shard, |key, _turn, moves| found.push((key, moves.to_vec())))?;
//! }
//! assert_eq!(found[0].0, 7);
//! assert_eq!(found[0].1[0].stats, Stats { wins: 1, draws: 1, losses: 0 });
//! # Ok::<(), polybook::Error>(())
//! ```

mod counts;
mod filter;
mod find;
mod merge;
pub mod record;
mod run;
mod shards;
mod spool;
mod stats;

pub use self::{
    counts::{Counts, MoveCount, Tally},
    filter::MoveFilter,
    find::{Finder, Marks, Part, Place},
    shards::{BUCKETS, Fold, Memory, Partition, SHARDS, Sealed, Shards},
    spool::{Spool, SpoolReader},
    stats::Stats,
};
