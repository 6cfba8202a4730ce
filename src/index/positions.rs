//! The entries of positions, made of sorted postings.
//!
//! Postings are cut into pieces that are made into entries in parallel. A piece has the positions
//! whose first posting lies in it, so that no position is in two.
//!
//! The statistics of a position sort after all numbers that begin with its digits, so they are kept
//! on a stack until these have passed. The stack is handed on when a piece ends.

use std::path::Path;

use shakmaty::Color;

use super::{
    entries::Entries,
    layout::{self, PositionStats},
    pieces::{Piece, scan_groups},
    posting::Posting,
};
use crate::{error::Result, position::BookMove, sort::Sealed, task};

/// The ids of a position are spilled past this many bytes.
const LONGEST_HELD: usize = 4 << 20;

/// Entries that were made together, in order.
#[derive(Default, Debug)]
pub(super) struct MadeEntries {
    pub entries: Entries,
    /// Statistics that may not come yet, the longest number last.
    pub waiting: Vec<Waiting>,
    /// How many positions they have, and how many games reached these in all.
    pub positions: u64,
    pub postings: u64,
    /// How much of the work they are.
    pub steps: u64,
}

/// Statistics of a position, kept until all numbers that begin with its key's digits have passed.
#[derive(Clone, Default, Debug)]
pub(super) struct Waiting {
    key: u64,
    stats: PositionStats,
}

/// Writes the last of some statistics if they come before the entry of a key. Returns whether they do.
pub(super) fn write_due(waiting: &mut Vec<Waiting>, next: &[u8], out: &mut Entries) -> bool {
    let Some(last) = waiting.last() else {
        return false;
    };
    let mut number = itoa::Buffer::new();
    let number = number.format(last.key).as_bytes();
    let is_due = layout::ends_before(number, next);
    if is_due {
        last.stats.write(number, out);
        waiting.pop();
    }
    is_due
}

/// Makes the entries of the positions whose first posting lies in a piece.
pub(super) fn position_entries(
    piece: &Piece,
    postings: &Sealed<Posting>,
    with_stats: bool,
    temp_dir: &Path,
) -> Result<MadeEntries> {
    task::fault("write positions");
    let mut maker = EntryMaker::new(with_stats, temp_dir);
    scan_groups(postings, piece, Posting::position, |posting| {
        if !maker.is_at(posting) {
            maker.begin(posting)?;
        }
        maker.add(posting)
    })?;
    maker.end()?;
    maker.made.steps = maker.made.postings;
    Ok(maker.made)
}

/// Makes entries of postings that come in order.
struct EntryMaker<'a> {
    with_stats: bool,
    temp_dir: &'a Path,
    made: MadeEntries,
    /// The position whose postings are coming, its key, and that in decimal.
    position: Option<u128>,
    key: u64,
    digits: Vec<u8>,
    stats: PositionStats,
    last_id: Option<u32>,
    /// Where its value begins.
    value_start: usize,
}

impl EntryMaker<'_> {
    fn new(with_stats: bool, temp_dir: &Path) -> EntryMaker<'_> {
        EntryMaker {
            with_stats,
            temp_dir,
            made: MadeEntries::default(),
            position: None,
            key: 0,
            digits: Vec::new(),
            stats: PositionStats::default(),
            last_id: None,
            value_start: 0,
        }
    }

    /// Whether a posting is of the present position.
    #[inline]
    fn is_at(&self, posting: Posting) -> bool {
        self.position == Some(posting.position())
    }

    /// Begins the position of a posting.
    fn begin(&mut self, posting: Posting) -> Result<()> {
        self.end()?;
        self.position = Some(posting.position());
        self.key = posting.key();
        self.digits.clear();
        layout::put_number(&mut self.digits, self.key);
        let made = &mut self.made;
        while write_due(&mut made.waiting, &self.digits, &mut made.entries) {}
        self.last_id = None;
        let bytes = self.made.entries.begin(&self.digits);
        self.value_start = bytes.len();
        Ok(())
    }

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
            // There are not many different ones.
            if mv != BookMove::NONE && !self.stats.moves.contains(&mv) {
                self.stats.moves.push(mv);
            }
        }
        Ok(())
    }

    #[inline]
    fn add_id(&mut self, id: u32) -> Result<()> {
        let bytes = self.made.entries.open_bytes();
        layout::write_id(bytes, id);
        if bytes.len() - self.value_start > LONGEST_HELD {
            return self.made.entries.spill(self.digits.len(), self.temp_dir);
        }
        Ok(())
    }

    /// Ends the present position.
    fn end(&mut self) -> Result<()> {
        if self.position.is_none() {
            return Ok(());
        }
        self.made.positions += 1;
        self.made.postings += self.stats.games;
        let entries = &mut self.made.entries;
        entries.end_long(self.digits.len(), self.temp_dir)?;
        let mut stats = std::mem::take(&mut self.stats);
        if self.with_stats {
            stats.moves.sort_unstable();
            self.made.waiting.push(Waiting {
                key: self.key,
                stats,
            });
        }
        Ok(())
    }
}
