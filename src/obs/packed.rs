//! A position and its rows in a few bytes.
//!
//! The length of the EPD in two bytes, the EPD, and for each row the length of the move, the move, and three numbers of
//! seven bits a byte. Packed positions sort by their EPDs.

use std::ops::Range;

use integer_encoding::VarInt;

use crate::{sort::Order, tally::Stats};

/// Bytes before the EPD.
const HEAD: usize = 2;

/// The most bytes that a number takes.
const LONGEST_NUMBER: usize = 10;

/// Packs one position after the other.
#[derive(Default, Debug)]
pub(super) struct Packer {
    packed: Vec<u8>,
    moves: Vec<u8>,
    /// Where each row's move is, and its numbers.
    rows: Vec<(Range<usize>, Stats)>,
}

impl Packer {
    /// Starts a position, whose EPD `write` appends.
    pub(super) fn start(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        self.packed.clear();
        self.packed.extend_from_slice(&[0; HEAD]);
        write(&mut self.packed);
        let length = (self.packed.len() - HEAD) as u16;
        self.packed[..HEAD].copy_from_slice(&length.to_le_bytes());
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
    pub(super) fn finish(&mut self) -> &[u8] {
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
        &self.packed
    }
}

/// The EPD of a packed position.
#[inline]
pub(super) fn epd(packed: &[u8]) -> &[u8] {
    let length = *packed.first_chunk().expect("a position has a head");
    &packed[HEAD..HEAD + usize::from(u16::from_le_bytes(length))]
}

/// By their EPDs.
#[derive(Debug)]
pub(super) struct ByEpd;

impl Order for ByEpd {
    /// The board's characters take five bits each.
    const PREFIX: usize = 25;

    #[inline]
    fn key(packed: &[u8]) -> &[u8] {
        epd(packed)
    }

    fn prefix(epd: &[u8]) -> u128 {
        const CODES: [u8; 256] = codes();
        let mut prefix = 0;
        let mut shift = u128::BITS;
        for byte in epd {
            let code = CODES[usize::from(*byte)];
            // A character without a code does not belong to a board. The rest is compared in full.
            if code == 0 || shift < 8 {
                break;
            }
            shift -= 5;
            prefix |= u128::from(code) << shift;
        }
        prefix
    }
}

/// Numbers for the characters of a board, ascending with them.
const fn codes() -> [u8; 256] {
    let characters = b"/12345678BKNPQR[]bknpqr~";
    let mut codes = [0; 256];
    let mut i = 0;
    while i < characters.len() {
        codes[characters[i] as usize] = i as u8 + 1;
        i += 1;
    }
    codes
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
            prop_assert_eq!(super::epd(packed), epd.as_bytes());
            let mut found = Vec::new();
            for (mv, stats) in rows(packed) {
                prop_assert_eq!((mv, stats.draws, stats.losses), (&b"e7e8q"[..], 1 << 40, 0));
                found.push(stats.wins);
            }
            let mut expected: Vec<u64> = numbers.iter().map(|wins| wins >> 1).collect();
            expected.sort_by_key(|wins| std::cmp::Reverse(*wins));
            prop_assert_eq!(found, expected);
        }
    }
}
