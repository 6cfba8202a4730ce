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
pub(super) struct Made {
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
    number: Number,
    stats: PositionStats,
}

impl Waiting {
    /// Whether these statistics come before the entry of a key.
    pub(super) fn is_due_before(&self, key: &[u8]) -> bool {
        layout::ends_before(self.number.digits(), key)
    }

    /// Writes the statistics.
    pub(super) fn write(&self, out: &mut Entries) {
        self.stats.write(self.number.digits(), out);
    }
}

/// A key in decimal.
#[derive(Copy, Clone, Default, Debug)]
struct Number {
    bytes: [u8; 20],
    len: u8,
}

impl Number {
    fn new(key: u64) -> Number {
        let mut buffer = itoa::Buffer::new();
        let digits = buffer.format(key).as_bytes();
        let mut bytes = [0; 20];
        bytes[..digits.len()].copy_from_slice(digits);
        Number {
            bytes,
            len: digits.len() as u8,
        }
    }

    fn digits(&self) -> &[u8] {
        &self.bytes[..usize::from(self.len)]
    }
}

/// Makes the entries of the positions whose first posting lies in a piece.
pub(super) fn position_entries(
    piece: &Piece,
    postings: &Sealed<Posting>,
    with_stats: bool,
    temp_dir: &Path,
) -> Result<Made> {
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
    made: Made,
    has_begun: bool,
    /// The position whose postings are coming.
    position: u128,
    number: Number,
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
            made: Made::default(),
            has_begun: false,
            position: 0,
            number: Number::default(),
            stats: PositionStats::default(),
            last_id: None,
            value_start: 0,
        }
    }

    /// Whether a posting is of the present position.
    #[inline]
    fn is_at(&self, posting: Posting) -> bool {
        self.has_begun && self.position == posting.position()
    }

    /// Begins the position of a posting.
    fn begin(&mut self, posting: Posting) -> Result<()> {
        self.end()?;
        self.has_begun = true;
        self.position = posting.position();
        self.number = Number::new(posting.key());
        self.release();
        self.last_id = None;
        let bytes = self.made.entries.begin(self.number.digits());
        self.value_start = bytes.len();
        Ok(())
    }

    /// Writes the statistics that are due before the present number.
    fn release(&mut self) {
        let due = |waiting: &mut Waiting| waiting.is_due_before(self.number.digits());
        while let Some(waiting) = self.made.waiting.pop_if(due) {
            waiting.write(&mut self.made.entries);
        }
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
            let key_len = self.number.digits().len();
            return self.made.entries.spill(key_len, self.temp_dir);
        }
        Ok(())
    }

    /// Ends the present position.
    fn end(&mut self) -> Result<()> {
        if !self.has_begun {
            return Ok(());
        }
        self.made.positions += 1;
        self.made.postings += self.stats.games;
        let key_len = self.number.digits().len();
        self.made.entries.end_long(key_len, self.temp_dir)?;
        let mut stats = std::mem::take(&mut self.stats);
        if self.with_stats {
            stats.moves.sort_unstable();
            self.made.waiting.push(Waiting {
                number: self.number,
                stats,
            });
        }
        Ok(())
    }
}
