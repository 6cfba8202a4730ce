//! The lines of a book. On a line, one side plays moves of the book from the starting position, and the other side
//! plays any reply after which the book has a move.
//!
//! A line ends where the book ends, and at a position that occurred earlier in the line or in an earlier line. [`count`] returns
//! the numbers of `polyglot info-book`, [`reachable`] returns those of its option `-exact`, and [`write()`] writes the lines as
//! `polyglot dump-book` does.
//!
//! The book itself may stay in its file. [`count`] and [`reachable`] spill positions to temporary files if they exceed the
//! memory budget. [`write()`] takes about 50 bytes of memory for each position on the lines that it writes.

mod dump;
mod exact;

use shakmaty::{Color, Move, Position, variant::VariantPosition};

pub use self::{
    dump::write,
    exact::{Reachable, reachable},
};
use super::{open::Book, records::Entry};
use crate::{
    error::Result,
    position::{BookMove, Keyed, Variant, key},
    progress::{Meter, Portions},
    sort::{Memory, SpillingSet},
    walk::{Limits, LinesOf, Source, TreeMove, levels},
};

/// The numbers of lines and positions of a book.
#[derive(Copy, Clone, PartialEq, Eq, Default, Debug)]
pub struct Lines {
    /// The number of lines with White's moves from the book.
    pub white: u64,
    /// The number of lines with Black's moves from the book.
    pub black: u64,
    /// The number of positions on White's lines in which the book has a move of White.
    pub white_positions: u64,
    /// The number of positions on Black's lines in which the book has a move of Black.
    pub black_positions: u64,
    /// The number of positions that the book has.
    pub positions: u64,
}

/// Counts the lines and positions of a book. `meter` shows the progress.
///
/// # Errors
///
/// Returns an error if the book cannot be read, if its keys do not ascend, or if a temporary file cannot be written.
pub fn count(book: &Book, meter: &Meter) -> Result<Lines> {
    let mut done = [Portions::new(meter), Portions::new(meter)];
    let moves = PlayableMoves::new(book, meter)?;
    let [of_white, of_black] = &mut done;
    let (white, white_positions) = count_lines(&moves, Color::White, of_white)?;
    let (black, black_positions) = count_lines(&moves, Color::Black, of_black)?;
    Ok(Lines {
        white,
        black,
        white_positions,
        black_positions,
        positions: moves.positions,
    })
}

/// Returns the number of lines of a side, and the number of positions on these lines in which the side is to move and
/// the book has moves.
fn count_lines(
    moves: &PlayableMoves<'_>,
    side: Color,
    done: &mut Portions<'_>,
) -> Result<(u64, u64)> {
    let start = Variant::Standard.start();
    let has_start = side == Color::White && moves.has_records(key(&start))?;
    let (mut arrivals, mut expanded, mut positions) = (0, 0, u64::from(has_start));
    let mut last = None;
    let lines = LinesOf(moves, side);
    levels(&lines, &[start], &Limits::default(), done, &mut |arrival| {
        arrivals += 1;
        let before = arrival.before.exact_identity();
        expanded += u64::from(last.replace(before) != Some(before));
        let is_ours = arrival.after.position().turn() == side;
        positions += u64::from(arrival.is_new && is_ours);
        Ok(())
    })?;
    // Each arrival ends a line, except the first arrival at each position that has moves. The start has no arrival of its own.
    let lines = arrivals - expanded + u64::from(expanded > 0);
    Ok((lines, positions))
}

/// Returns the keys of the positions that the moves of `source` reach from `starts` in fewer than `plies` plies.
///
/// If `side` is given, only positions in which this side is to move are included.
pub(super) fn reached(
    source: &impl Source,
    starts: &[VariantPosition],
    side: Option<Color>,
    plies: u16,
    memory: &Memory,
    done: &mut Portions<'_>,
) -> Result<SpillingSet> {
    let mut keys = SpillingSet::new(memory.clone());
    if plies == 0 {
        return Ok(keys);
    }
    let mut note = |pos: &Keyed<VariantPosition>| {
        if side.is_none_or(|side| pos.position().turn() == side) {
            keys.insert_key(pos.key())?;
        }
        Ok(())
    };
    for start in starts {
        note(&Keyed::new(start.clone()))?;
    }
    let limits = Limits {
        max_ply: Some(plies.into()),
        memory: memory.clone(),
        ..Limits::default()
    };
    levels(source, starts, &limits, done, &mut |arrival| {
        note(arrival.after)
    })?;
    Ok(keys)
}

/// Returns `true` if any of the sets, which [`reached`] has returned, contains the key.
pub(super) fn contains(reached: &[SpillingSet], key: u64) -> Result<bool> {
    for keys in reached {
        if keys.contains_key(key)? {
            return Ok(true);
        }
    }
    Ok(false)
}

/// The playable moves of a sorted book: legal moves with a weight above 0. Castling is only playable if the record spells it as
/// the format does.
pub(super) struct PlayableMoves<'a> {
    book: &'a Book,
    absent: KeyFilter,
    positions: u64,
}

impl<'a> PlayableMoves<'a> {
    /// Creates the source with a filter of at most [`KeyFilter::MOST`] bytes. See [`within`](PlayableMoves::within).
    fn new(book: &'a Book, meter: &Meter) -> Result<PlayableMoves<'a>> {
        PlayableMoves::within(book, meter, KeyFilter::MOST)
    }

    /// Creates the source. Reads all records once to build a filter of their keys.
    ///
    /// The filter takes at most `memory` bytes, or some KiB if that is more. With a smaller filter, more look-ups of absent keys
    /// have to read the book.
    ///
    /// # Errors
    ///
    /// Returns an error if the book cannot be read, or if its keys do not ascend.
    pub(super) fn within(
        book: &'a Book,
        meter: &Meter,
        memory: usize,
    ) -> Result<PlayableMoves<'a>> {
        let mut absent = KeyFilter::new(book.len(), memory);
        let mut positions = 0;
        // Null records hold the header and do not belong to a position.
        let mut last = 0;
        for entry in book.sorted_records(meter) {
            let key = entry?.key;
            if key != last {
                absent.insert(key);
                positions += 1;
            }
            last = key;
        }
        Ok(PlayableMoves {
            book,
            absent,
            positions,
        })
    }

    /// Returns the records of a key, whatever their moves and weights, in the order of the book.
    pub(super) fn records(&self, key: u64) -> Result<Vec<Entry>> {
        match self.absent.may_contain(key) {
            true => self.book.moves(key),
            false => Ok(Vec::new()),
        }
    }

    /// Returns `true` if the book has a record of a key, whatever its move and weight.
    fn has_records(&self, key: u64) -> Result<bool> {
        Ok(!self.records(key)?.is_empty())
    }
}

impl Source for PlayableMoves<'_> {
    /// Returns the playable moves in the order of the book. A move with several records is returned several times.
    fn moves(&self, pos: &Keyed<VariantPosition>) -> Result<Vec<TreeMove>> {
        let entries = self.records(pos.key())?;
        let moves = entries.into_iter().filter_map(|entry| {
            let mv = playable(pos.position(), entry)?;
            Some(TreeMove::known(mv, entry.weight.into(), None))
        });
        Ok(moves.collect())
    }

    fn node(&self, pos: &Keyed<VariantPosition>) -> u64 {
        pos.exact_identity()
    }

    fn lacks(&self, key: u64) -> bool {
        !self.absent.may_contain(key)
    }
}

/// Returns the move of a record if it is legal, has a weight above 0, and is spelled as the format requires. Otherwise
/// returns `None`.
fn playable(pos: &VariantPosition, entry: Entry) -> Option<Move> {
    let mv = entry.mv.to_move(pos)?;
    (entry.weight > 0 && BookMove::from(mv) == entry.mv).then_some(mv)
}

/// A filter that rejects most keys that a book does not have. It has one bit for each value of the low bits of a key.
struct KeyFilter {
    bits: Vec<u64>,
}

impl KeyFilter {
    /// The number of bits per record. At most one in this many absent keys passes the filter, unless its size is limited.
    const BITS_A_RECORD: u64 = 32;

    /// The maximum size of a filter in bytes: 256 MiB. For a book of 20 GB, half of the absent keys pass a filter of
    /// this size.
    const MOST: usize = 1 << 28;

    /// Creates an empty filter for `records` records in at most `memory` bytes.
    fn new(records: u64, memory: usize) -> KeyFilter {
        let words = (records * KeyFilter::BITS_A_RECORD / 64).next_power_of_two();
        let most = memory.clamp(1 << 9, KeyFilter::MOST) / size_of::<u64>();
        KeyFilter {
            bits: vec![0; words.min(1 << most.ilog2()) as usize],
        }
    }

    /// Returns the index of the word that holds the bit of a key, and a mask of the bit.
    fn bit(&self, key: u64) -> (usize, u64) {
        let word = (key >> 6) as usize & (self.bits.len() - 1);
        (word, 1 << (key & 63))
    }

    fn insert(&mut self, key: u64) {
        let (word, bit) = self.bit(key);
        self.bits[word] |= bit;
    }

    fn may_contain(&self, key: u64) -> bool {
        let (word, bit) = self.bit(key);
        self.bits[word] & bit != 0
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn no_key_is_missed(
            mut keys in proptest::collection::vec(prop_oneof![1..99u64, any::<u64>()], 0..600),
            memory in 0..1_000_000usize,
        ) {
            keys.sort_unstable();
            let records = keys.iter().flat_map(|key| (u128::from(*key) << 64).to_be_bytes());
            let book = Book::from_bytes(records.collect()).unwrap();
            let meter = Meter::default();
            let moves = PlayableMoves::within(&book, &meter, memory).unwrap();
            for key in &keys {
                prop_assert!(moves.has_records(*key).unwrap());
            }
            keys.dedup();
            prop_assert_eq!(moves.positions, keys.len() as u64);
            prop_assert!(!moves.has_records(key(&Variant::Standard.start())).unwrap());
        }
    }
}
