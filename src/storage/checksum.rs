//! Computes a checksum of a set of records that does not depend on their order: the sum, modulo 2^64, of the CRC-32C of
//! each record.
//!
//! If only bits within 32 neighboring bits of one record are damaged, the checksum always changes. Other damage remains
//! undetected in about one of four billion cases.

use std::{fmt, str::FromStr};

/// A checksum of a set of records (byte strings), independent of their order. Its string form consists of 16 lowercase
/// hexadecimal digits.
#[derive(Copy, Clone, PartialEq, Eq, Default, Debug)]
pub(crate) struct Checksum(u64);

/// The length in bytes of a record of a Polyglot book.
const RECORD_SIZE: usize = 16;

/// A table for computing the CRC-32C of a record of [`RECORD_SIZE`] bytes. For each offset and each byte, it contains
/// the part that a byte at this offset contributes. The CRC-32C is the XOR of the parts of all bytes and
/// [`CRC_OF_ZEROS`]. For such short records, this takes a quarter of the time of the crate `crc32c`.
static CRC_PARTS: [[u32; 256]; RECORD_SIZE] = crc_parts();

/// The CRC-32C of [`RECORD_SIZE`] null bytes.
const CRC_OF_ZEROS: u32 = {
    let (mut crc, mut at) = (u32::MAX, 0);
    while at < RECORD_SIZE {
        crc = crc_after_null(crc);
        at += 1;
    }
    !crc
};

const fn crc_parts() -> [[u32; 256]; RECORD_SIZE] {
    let mut parts = [[0; 256]; RECORD_SIZE];
    let mut byte = 0;
    while byte < 256 {
        let (mut part, mut offset) = (byte as u32, RECORD_SIZE);
        while offset > 0 {
            part = crc_after_null(part);
            offset -= 1;
            parts[offset][byte] = part;
        }
        byte += 1;
    }
    parts
}

/// Returns the state of a CRC-32C computation after a null byte. `crc` is the state before it.
const fn crc_after_null(mut crc: u32) -> u32 {
    /// The polynomial of CRC-32C, with its bits in reverse order.
    const POLYNOMIAL: u32 = 0x82f6_3b78;
    let mut bit = 0;
    while bit < u8::BITS {
        crc = (crc >> 1) ^ ((crc & 1) * POLYNOMIAL);
        bit += 1;
    }
    crc
}

impl Checksum {
    /// Adds `record` to the set of records.
    #[inline]
    pub(crate) fn add(&mut self, record: &[u8]) {
        self.0 = self.0.wrapping_add(crc32c::crc32c(record).into());
    }

    /// Adds a record of 16 bytes to the set of records. This is faster than [`add`](Checksum::add).
    #[inline]
    pub(crate) fn add_short(&mut self, record: &[u8; RECORD_SIZE]) {
        let bits = u128::from_le_bytes(*record);
        let (low, high) = (bits as u64, (bits >> 64) as u64);
        let part = |half: u64, first: usize, at: usize| {
            CRC_PARTS[first + at][(half >> (8 * at)) as usize & 0xff]
        };
        let mut sum = CRC_OF_ZEROS;
        for at in 0..8 {
            sum ^= part(low, 0, at);
        }
        for at in 0..4 {
            sum ^= part(high, 8, at);
        }
        // Null bytes contribute nothing. The records of most books end with four of them.
        if high >> 32 != 0 {
            for at in 4..8 {
                sum ^= part(high, 8, at);
            }
        }
        self.0 = self.0.wrapping_add(sum.into());
    }

    /// Returns the checksum of the union of two disjoint sets of records, whose checksums are `self` and `other`.
    pub(crate) fn plus(self, other: Checksum) -> Checksum {
        Checksum(self.0.wrapping_add(other.0))
    }

    /// Returns the checksum of the records that remain if some records are removed from a set. `self` is the checksum
    /// of the set, and `other` is the checksum of the removed records, which the set must contain.
    pub(crate) fn minus(self, other: Checksum) -> Checksum {
        Checksum(self.0.wrapping_sub(other.0))
    }
}

impl fmt::Display for Checksum {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

/// The error for a string that is not a valid [`Checksum`]. A valid one has exactly 16 lowercase hexadecimal digits.
#[derive(Copy, Clone, Debug)]
pub(crate) struct InvalidChecksum;

impl FromStr for Checksum {
    type Err = InvalidChecksum;

    fn from_str(text: &str) -> Result<Checksum, InvalidChecksum> {
        let is_digit = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
        if text.len() != 16 || !text.bytes().all(is_digit) {
            return Err(InvalidChecksum);
        }
        u64::from_str_radix(text, 16)
            .map(Checksum)
            .map_err(|_| InvalidChecksum)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn sum(records: &[[u8; 16]]) -> Checksum {
        let mut sum = Checksum::default();
        records.iter().for_each(|record| sum.add_short(record));
        sum
    }

    #[test]
    fn a_checksum_is_the_sum_of_crc_32c_in_16_digits() {
        // The check value of CRC-32C.
        let mut one = Checksum::default();
        one.add(b"123456789");
        assert_eq!(one.to_string(), "00000000e3069283");
        assert_eq!("00000000e3069283".parse().ok(), Some(one));
        for text in ["", "e3069283", "00000000E3069283", "+0000000e3069283"] {
            assert!(text.parse::<Checksum>().is_err(), "{text}");
        }
    }

    proptest! {
        #[test]
        fn a_short_record_has_the_same_checksum_in_both_ways(records: Vec<[u8; RECORD_SIZE]>) {
            let mut expected = Checksum::default();
            records.iter().for_each(|record| expected.add(record));
            prop_assert_eq!(sum(&records), expected);
        }

        #[test]
        fn a_checksum_does_not_depend_on_order_and_changes_with_any_bit(
            mut records in proptest::collection::vec(any::<[u8; 16]>(), 1..20), bit in 0..128usize, at: prop::sample::Index,
        ) {
            let before = sum(&records);
            records.reverse();
            prop_assert_eq!(sum(&records), before);
            let damaged = at.index(records.len());
            records[damaged][bit / 8] ^= 1 << (bit % 8);
            prop_assert_ne!(sum(&records), before);
        }
    }
}
