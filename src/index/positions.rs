//! The entries of positions, made of sorted postings.
//!
//! Postings are cut into pieces that are made into entries in parallel. A piece has the positions
//! whose first posting lies in it, so that no position is in two.
//!
//! The statistics of a position sort after all numbers that begin with its digits, so they are kept
//! on a stack until these have passed. The stack is handed on when a piece ends.

use std::{io, ops::ControlFlow};

use shakmaty::Color;

use super::{
    entries::{Entries, LongIds, LongValue, ReadIds},
    layout::{self, PositionStats},
    pieces::{Piece, scan, scan_groups},
    posting::Posting,
    waves::Made,
};
use crate::{error::Result, position::BookMove, sort::Sealed, task};

/// How many bytes of a long value are written at once.
const PART: usize = 1 << 16;

/// The ids of a position are not held past this many bytes: another game takes up to 11.
const LONGEST_HELD: usize = 4 << 20;

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
) -> Result<Made> {
    task::fault("write positions");
    let mut maker = EntryMaker::new(piece.shard, with_stats);
    let end = scan_groups(postings, piece, Posting::position, |at, posting| {
        if !maker.is_at(posting) {
            maker.begin(posting, at);
        }
        maker.add(posting);
        Ok(())
    })?;
    maker.end(end);
    maker.made.steps = maker.made.postings;
    Ok(maker.made)
}

impl ReadIds for Sealed<Posting> {
    fn read_ids(
        &self,
        ids: &LongIds,
        out: &mut dyn FnMut(&[u8]) -> io::Result<()>,
    ) -> io::Result<()> {
        let LongIds::Postings { shard, range } = ids else {
            unreachable!("these ids are made of postings");
        };
        let mut left = range.len();
        let mut last_id = None;
        let mut part = Vec::new();
        let mut written = Ok(());
        scan(self, *shard, range.start, |posting| {
            if left == 0 || written.is_err() {
                return ControlFlow::Break(());
            }
            left -= 1;
            if last_id != Some(posting.id()) {
                last_id = Some(posting.id());
                layout::write_id(&mut part, posting.id());
            }
            if part.len() >= PART {
                written = out(&part);
                part.clear();
            }
            ControlFlow::Continue(())
        })
        .map_err(io::Error::other)?;
        written.and_then(|()| out(&part))
    }
}

/// Makes entries of postings that come in order.
struct EntryMaker {
    shard: usize,
    with_stats: bool,
    made: Made,
    has_begun: bool,
    /// The position whose postings are coming.
    position: u128,
    number: Number,
    stats: PositionStats,
    last_id: Option<u32>,
    first_posting: usize,
    /// Where its value begins, and how many bytes of it are not held.
    value_start: usize,
    not_held: usize,
}

impl EntryMaker {
    fn new(shard: usize, with_stats: bool) -> EntryMaker {
        EntryMaker {
            shard,
            with_stats,
            made: Made::default(),
            has_begun: false,
            position: 0,
            number: Number::default(),
            stats: PositionStats::default(),
            last_id: None,
            first_posting: 0,
            value_start: 0,
            not_held: 0,
        }
    }

    /// Whether a posting is of the present position.
    #[inline]
    fn is_at(&self, posting: Posting) -> bool {
        self.has_begun && self.position == posting.position()
    }

    /// Begins the position of a posting, which has the number `at` in its shard.
    fn begin(&mut self, posting: Posting, at: usize) {
        self.end(at);
        self.has_begun = true;
        self.position = posting.position();
        self.number = Number::new(posting.key());
        self.release();
        self.last_id = None;
        self.first_posting = at;
        self.not_held = 0;
        let bytes = self.made.entries.begin(self.number.digits());
        self.value_start = bytes.len();
    }

    /// Writes the statistics that are due before the present number.
    fn release(&mut self) {
        let due = |waiting: &mut Waiting| waiting.is_due_before(self.number.digits());
        while let Some(waiting) = self.made.waiting.pop_if(due) {
            waiting.write(&mut self.made.entries);
        }
    }

    #[inline]
    fn add(&mut self, posting: Posting) {
        let id = posting.id();
        if self.last_id != Some(id) {
            self.last_id = Some(id);
            self.add_id(id);
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
    }

    #[inline]
    fn add_id(&mut self, id: u32) {
        let bytes = self.made.entries.open_bytes();
        layout::write_id(bytes, id);
        let held = bytes.len() - self.value_start;
        if held > LONGEST_HELD || self.not_held > 0 {
            // All of it is read again when it is written.
            bytes.truncate(self.value_start);
            self.not_held += held;
        }
    }

    /// Ends the present position, whose last posting is the one before number `at`.
    fn end(&mut self, at: usize) {
        if !self.has_begun {
            return;
        }
        self.made.positions += 1;
        self.made.postings += self.stats.games;
        let key_len = self.number.digits().len();
        if self.not_held == 0 {
            self.made.entries.end(key_len);
        } else {
            let value = LongValue {
                ids: LongIds::Postings {
                    shard: self.shard,
                    range: self.first_posting..at,
                },
                len: self.not_held,
            };
            self.made.entries.end_long(key_len, value);
        }
        let mut stats = std::mem::take(&mut self.stats);
        if self.with_stats {
            stats.moves.sort_unstable();
            self.made.waiting.push(Waiting {
                number: self.number,
                stats,
            });
        }
    }
}
