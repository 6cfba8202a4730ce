//! Turning sorted postings into the entries of positions.
//!
//! Postings are divided into ranges, which are turned into entries in parallel. A range owns the positions whose first
//! posting is in it, so every position belongs to exactly one range.
//!
//! The keys of a position's statistics, such as `10_freq`, sort after all position keys that begin with the same
//! digits, such as `105`. Statistics are therefore kept on a stack until these keys have passed. At the end of a range,
//! the stack is passed on with the entries.

use std::path::Path;

use shakmaty::Color;

use super::{
    entry_batches::{EntryBatch, WaitingStats, write_due},
    layout::{self, PositionStats},
    posting::Posting,
    shard_ranges::{ShardRange, scan_groups},
};
use crate::{error::Result, position::BookMove, storage::sort::Sealed, task};

/// The greatest number of bytes of a position's list of games that is held in memory. Longer lists are spilled to a
/// temporary file.
const LONGEST_HELD: usize = 4 << 20;

/// Creates the entries of the positions in `range`, which is a range of `postings`. A posting records that a game
/// reached a position. A position belongs to the range if its first posting does.
///
/// If `with_stats` is `true`, adds entries with the statistics of the positions. Long lists of games are spilled to
/// `temp_dir`.
///
/// # Errors
///
/// Returns an error if a temporary file cannot be read or written.
pub(super) fn position_entries(
    range: &ShardRange,
    postings: &Sealed<Posting>,
    with_stats: bool,
    temp_dir: &Path,
) -> Result<EntryBatch> {
    task::fault("write positions");
    let mut maker = EntryMaker::new(with_stats, temp_dir);
    scan_groups(postings, range, Posting::position, |posting| {
        if !maker.is_at(posting) {
            maker.begin(posting)?;
        }
        maker.add(posting)
    })?;
    maker.end()?;
    maker.batch.steps = maker.batch.postings;
    Ok(maker.batch)
}

/// A builder that turns sorted postings (records that a game reached a position) into entries of an index.
struct EntryMaker<'a> {
    with_stats: bool,
    temp_dir: &'a Path,
    batch: EntryBatch,
    /// The current position, or `None` before the first one.
    position: Option<u128>,
    /// The key of the current position.
    key: u64,
    /// The key in decimal.
    digits: Vec<u8>,
    stats: PositionStats,
    /// The id of the last posting's game, if the position has a posting.
    last_id: Option<u32>,
    /// The offset in the buffer at which the value begins.
    value_start: usize,
}

impl EntryMaker<'_> {
    /// Creates a builder without entries. If `with_stats` is `true`, it also makes entries with statistics. Long lists
    /// of games are spilled to `temp_dir`.
    fn new(with_stats: bool, temp_dir: &Path) -> EntryMaker<'_> {
        EntryMaker {
            with_stats,
            temp_dir,
            batch: EntryBatch::default(),
            position: None,
            key: 0,
            digits: Vec::new(),
            stats: PositionStats::default(),
            last_id: None,
            value_start: 0,
        }
    }

    /// Returns `true` if `posting`, the record that a game reached a position, belongs to the position whose entry is
    /// being built.
    #[inline]
    fn is_at(&self, posting: Posting) -> bool {
        self.position == Some(posting.position())
    }

    /// Ends the entry that lists the games of the current position, and begins the entry for the position of `posting`.
    fn begin(&mut self, posting: Posting) -> Result<()> {
        self.end()?;
        self.position = Some(posting.position());
        self.key = posting.key();
        self.digits.clear();
        layout::put_number(&mut self.digits, self.key);
        let batch = &mut self.batch;
        while write_due(&mut batch.waiting, &self.digits, &mut batch.entries) {}
        self.last_id = None;
        let bytes = self.batch.entries.begin(&self.digits);
        self.value_start = bytes.len();
        Ok(())
    }

    /// Adds a game to the entry of the current position. `posting` says which game reached the position, with which
    /// result and move; its position must be the current one. A game that reached the position several times is added
    /// once.
    #[inline]
    fn add(&mut self, posting: Posting) -> Result<()> {
        let id = posting.id();
        if self.last_id != Some(id) {
            self.last_id = Some(id);
            self.add_id(id)?;
            self.stats.games += 1;
            match posting.winner() {
                Some(Color::White) => self.stats.white_score += 1,
                Some(Color::Black) => self.stats.white_score -= 1,
                None => self.stats.draws += 1,
            }
        }
        if self.with_stats {
            let mv = posting.book_move();
            // A position has few different moves, so a linear search is fastest.
            if mv != BookMove::NONE && !self.stats.moves.contains(&mv) {
                self.stats.moves.push(mv);
            }
        }
        Ok(())
    }

    /// Appends a game id to the entry of the current position. If the ids of the position exceed the memory, writes
    /// them to a temporary file.
    #[inline]
    fn add_id(&mut self, id: u32) -> Result<()> {
        let bytes = self.batch.entries.open_bytes();
        layout::write_id(bytes, id);
        if bytes.len() - self.value_start > LONGEST_HELD {
            return self.batch.entries.spill(self.digits.len(), self.temp_dir);
        }
        Ok(())
    }

    /// Ends the entry that lists the games of the current position. Does nothing if no entry was begun.
    fn end(&mut self) -> Result<()> {
        if self.position.is_none() {
            return Ok(());
        }
        self.batch.positions += 1;
        self.batch.postings += self.stats.games;
        let entries = &mut self.batch.entries;
        entries.end_long(self.digits.len(), self.temp_dir)?;
        let mut stats = std::mem::take(&mut self.stats);
        if self.with_stats {
            stats.moves.sort_unstable();
            self.batch.waiting.push(WaitingStats {
                key: self.key,
                stats,
            });
        }
        Ok(())
    }
}
