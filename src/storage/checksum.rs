//! A checksum of records that does not depend on their order: the sum of the CRC-32C of each, modulo 2^64.
//!
//! Any damage that is confined to 32 neighboring bits of one record changes the checksum. Other damage is missed in
//! about one of four billion cases.

use std::{fmt, str::FromStr};

/// A checksum of a set of records (byte strings) that does not depend on their order. Its string form consists of 16
/// lowercase hexadecimal digits.
#[derive(Copy, Clone, PartialEq, Eq, Default, Debug)]
pub(crate) struct Checksum(u64);

impl Checksum {
    /// Updates the checksum after `record` has been added to the set of records.
    #[inline]
    pub(crate) fn add(&mut self, record: &[u8]) {
        self.0 = self.0.wrapping_add(crc32c::crc32c(record).into());
    }

    /// Returns the checksum of the union of two disjoint sets of records, whose checksums are `self` and `other`.
    pub(crate) fn plus(self, other: Checksum) -> Checksum {
        Checksum(self.0.wrapping_add(other.0))
    }

    /// Returns the checksum of the records that remain if the records of one set are removed from another. `self` is
    /// the checksum of the larger set, and `other` is the checksum of the records to remove. The larger set must
    /// contain them.
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
        records.iter().for_each(|record| sum.add(record));
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
