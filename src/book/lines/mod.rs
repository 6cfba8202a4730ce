//! The lines of a book: what one side can play from the starting position by the book, against every
//! reply after which the book still has a move.
//!
//! A line ends where the book ends, and at a position that was already in it or in an earlier
//! line. [`count`] gives the numbers of `polyglot info-book`, [`reachable`] those of its option
//! `-exact`, and [`write()`] the lines of `polyglot dump-book`.
//!
//! The book itself may stay in its file. [`count`] and [`reachable`] spill to temporary files the positions that exceed
//! the default memory; [`write()`] takes some 50 bytes for each position on the lines that it writes.

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

/// The numbers of a book's lines and positions.
#[derive(Copy, Clone, PartialEq, Eq, Default, Debug)]
pub struct Lines {
    /// Lines with White's moves from the book.
    pub white: u64,
    /// Lines with Black's.
    pub black: u64,
    /// Positions on White's lines in which the book has White's move.
    pub white_positions: u64,
    /// Number of positions on Black's lines in which the book has a move of Black.
    pub black_positions: u64,
    /// All positions of the book.
    pub positions: u64,
}

/// Counts the lines and positions of a book. `meter` shows the progress.
///
/// # Errors
///
/// A book that cannot be read, or whose keys do not ascend.
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

/// The lines of a side, and the positions on them in which it is to move and the book has moves.
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
    // Each arrival ends a line, but for the first at each position that has moves. Nothing arrives at the start.
    let lines = arrivals - expanded + u64::from(expanded > 0);
    Ok((lines, positions))
}

/// The keys of the positions that the moves of a source reach in fewer than `plies` half-moves from the starts: of those
/// in which a side is to move, or of all.
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

/// Returns `true` if one of several sets from [`reached`] contains a key.
pub(super) fn contains(reached: &[SpillingSet], key: u64) -> Result<bool> {
    for keys in reached {
        if keys.contains_key(key)? {
            return Ok(true);
        }
    }
    Ok(false)
}

/// The moves that can be played by a book whose records are in order, with those of weight 0 left out. Castling counts
/// only as the format writes it.
pub(super) struct PlayableMoves<'a> {
    book: &'a Book,
    absent: AbsentKeys,
    positions: u64,
}

impl<'a> PlayableMoves<'a> {
    /// Calls [`within`](PlayableMoves::within) with the largest filter.
    fn new(book: &'a Book, meter: &Meter) -> Result<PlayableMoves<'a>> {
        PlayableMoves::within(book, meter, AbsentKeys::MOST)
    }

    /// Reads all records once, and keeps a filter of their keys in at most `memory` bytes plus some KiB. A smaller filter
    /// lets more look-ups of absent keys read the book.
    ///
    /// # Errors
    ///
    /// Returns an error if the book cannot be read, or if its keys do not ascend.
    pub(super) fn within(
        book: &'a Book,
        meter: &Meter,
        memory: usize,
    ) -> Result<PlayableMoves<'a>> {
        let mut absent = AbsentKeys::new(book.len(), memory);
        let mut positions = 0;
        // The null key is the header's.
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
    /// In the order of the book, and as often as it has them.
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
}

/// The legal move of a record that may be chosen.
fn playable(pos: &VariantPosition, entry: Entry) -> Option<Move> {
    let mv = entry.mv.to_move(pos)?;
    (entry.weight > 0 && BookMove::from(mv) == entry.mv).then_some(mv)
}

/// A filter that rejects most keys that a book does not have, by a bit for each value of their low bits.
struct AbsentKeys {
    bits: Vec<u64>,
}

impl AbsentKeys {
    /// Bits for each record: of the keys that the book does not have, at most one in this many passes.
    const BITS_A_RECORD: u64 = 32;

    /// A filter takes no more than 256 MiB. In a book of 20 GB, half of the keys pass.
    const MOST: usize = 1 << 28;

    /// A filter for `records` records, in at most `memory` bytes.
    fn new(records: u64, memory: usize) -> AbsentKeys {
        let words = (records * AbsentKeys::BITS_A_RECORD / 64).next_power_of_two();
        let most = memory.clamp(1 << 9, AbsentKeys::MOST) / size_of::<u64>();
        AbsentKeys {
            bits: vec![0; words.min(1 << most.ilog2()) as usize],
        }
    }

    /// The word of a key and its bit there.
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
