//! A position and its rows in a few bytes.
//!
//! The length of all in four bytes, that of the EPD in two, the EPD, and for each row the length of the move, the
//! move, and three numbers of seven bits a byte.

use std::{borrow::Cow, cmp::Ordering, ops::Range};

use integer_encoding::VarInt;

use crate::{error::Result, sort::ByteReader, tally::Stats};

/// Bytes before the EPD.
const HEAD: usize = 6;

/// The most bytes that a number takes.
const LONGEST_NUMBER: usize = 10;

/// Packs one position after the other.
#[derive(Default, Debug)]
pub(super) struct Packer {
    packed: Vec<u8>,
    moves: Vec<u8>,
    /// Where each row's move stands, and its numbers.
    rows: Vec<(Range<usize>, Stats)>,
}

impl Packer {
    /// Starts a position, whose EPD `write` appends.
    pub(super) fn start(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        self.packed.clear();
        self.packed.extend_from_slice(&[0; HEAD]);
        write(&mut self.packed);
        let length = (self.packed.len() - HEAD) as u16;
        self.packed[4..HEAD].copy_from_slice(&length.to_le_bytes());
        self.moves.clear();
        self.rows.clear();
    }

    /// Adds a row, whose move `write` appends.
    pub(super) fn row(&mut self, stats: Stats, write: impl FnOnce(&mut Vec<u8>)) {
        let start = self.moves.len();
        write(&mut self.moves);
        self.rows.push((start..self.moves.len(), stats));
    }

    /// The packed position, the rows with the most games first.
    pub(super) fn finish(&mut self) -> Packed<'_> {
        let moves = &self.moves;
        self.rows.sort_unstable_by(|(a, a_stats), (b, b_stats)| {
            let games = b_stats.games().cmp(&a_stats.games());
            games.then_with(|| moves[a.clone()].cmp(&moves[b.clone()]))
        });
        for (mv, stats) in &self.rows {
            self.packed.push(mv.len() as u8);
            self.packed.extend_from_slice(&moves[mv.clone()]);
            for number in [stats.wins, stats.draws, stats.losses] {
                let mut bytes = [0; LONGEST_NUMBER];
                let length = number.encode_var(&mut bytes);
                self.packed.extend_from_slice(&bytes[..length]);
            }
        }
        let length = self.packed.len() as u32;
        self.packed[..4].copy_from_slice(&length.to_le_bytes());
        Packed(Cow::Borrowed(&self.packed))
    }
}

/// A packed position. It compares by its EPD.
#[derive(Clone, Debug)]
pub(super) struct Packed<'a>(Cow<'a, [u8]>);

impl<'a> Packed<'a> {
    /// The one that more bytes begin with.
    #[inline]
    pub(super) fn at_start(bytes: &'a [u8]) -> Packed<'a> {
        let length = u32::from_le_bytes(*bytes.first_chunk().expect("a position has a head"));
        Packed(Cow::Borrowed(&bytes[..length as usize]))
    }

    /// Reads the next one of a file.
    pub(super) fn read(file: &mut ByteReader<'_>) -> Result<Packed<'static>> {
        let mut length = [0; 4];
        file.read_exact(&mut length)?;
        let mut packed = vec![0; u32::from_le_bytes(length) as usize];
        packed[..4].copy_from_slice(&length);
        file.read_exact(&mut packed[4..])?;
        Ok(Packed(Cow::Owned(packed)))
    }

    /// All of its bytes.
    pub(super) fn bytes(&self) -> &[u8] {
        &self.0
    }

    /// The EPD.
    pub(super) fn epd(&self) -> &[u8] {
        epd(&self.0)
    }
}

impl Ord for Packed<'_> {
    fn cmp(&self, other: &Packed<'_>) -> Ordering {
        self.epd().cmp(other.epd())
    }
}

impl PartialOrd for Packed<'_> {
    fn partial_cmp(&self, other: &Packed<'_>) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Packed<'_> {
    fn eq(&self, other: &Packed<'_>) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Packed<'_> {}

/// The EPD of the packed position that some bytes begin with.
#[inline]
pub(super) fn epd(packed: &[u8]) -> &[u8] {
    let length = *packed[4..].first_chunk().expect("a position has a head");
    &packed[HEAD..HEAD + usize::from(u16::from_le_bytes(length))]
}

/// The move and the numbers of each row of a packed position.
#[inline]
pub(super) fn rows(packed: &[u8]) -> impl Iterator<Item = (&[u8], Stats)> {
    let mut rest = &packed[HEAD + epd(packed).len()..];
    std::iter::from_fn(move || {
        let (length, after) = rest.split_first()?;
        let (mv, after) = after.split_at(usize::from(*length));
        rest = after;
        let mut number = || {
            let (number, length) = u64::decode_var(rest).expect("a row has three numbers");
            rest = &rest[length..];
            number
        };
        let stats = Stats {
            wins: number(),
            draws: number(),
            losses: number(),
        };
        Some((mv, stats))
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn what_is_packed_comes_back(
            epd in "[ -~]{0,90}", numbers in proptest::collection::vec(any::<u64>(), 0..40),
        ) {
            let mut packer = Packer::default();
            packer.start(|text| text.extend_from_slice(epd.as_bytes()));
            for wins in &numbers {
                let stats = Stats { wins: *wins >> 1, draws: 1 << 40, losses: 0 };
                packer.row(stats, |text| text.extend_from_slice(b"e7e8q"));
            }
            let packed = packer.finish();
            prop_assert_eq!(packed.epd(), epd.as_bytes());
            let mut found = Vec::new();
            for (mv, stats) in rows(packed.bytes()) {
                prop_assert_eq!((mv, stats.draws, stats.losses), (&b"e7e8q"[..], 1 << 40, 0));
                found.push(stats.wins);
            }
            let mut expected: Vec<u64> = numbers.iter().map(|wins| wins >> 1).collect();
            expected.sort_by_key(|wins| std::cmp::Reverse(*wins));
            prop_assert_eq!(found, expected);
            let mut more = packed.bytes().to_vec();
            more.extend_from_slice(b"more");
            let first = Packed::at_start(&more);
            prop_assert_eq!(first.bytes(), packed.bytes());
        }
    }
}
