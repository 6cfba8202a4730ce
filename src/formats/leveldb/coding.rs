//! Encodes and decodes integers, strings and checksums as in all LevelDB files.

use integer_encoding::VarInt;

/// Appends `number` to `out` as a varint, which has seven bits of the number in each byte, the least significant
/// bits first.
#[inline]
pub(crate) fn put_varint(out: &mut Vec<u8>, number: u64) {
    // Nearly all numbers take one or two bytes, which are pushed in fewer instructions than a slice is copied.
    let mut rest = number;
    while rest >= 0x80 {
        out.push(rest as u8 | 0x80);
        rest >>= 7;
    }
    out.push(rest as u8);
}

/// Appends a byte string to `out`: its length as a varint, then its bytes.
pub(super) fn put_string(out: &mut Vec<u8>, string: &[u8]) {
    put_varint(out, string.len() as u64);
    out.extend_from_slice(string);
}

/// Converts a CRC32C checksum to the masked form in which LevelDB stores it.
///
/// LevelDB masks checksums because a CRC detects fewer errors in data that itself contains CRCs.
#[inline]
pub(super) fn masked(checksum: u32) -> u32 {
    checksum.rotate_right(15).wrapping_add(0xa282_ead8)
}

/// Removes a varint from the front of `rest` and returns its value.
///
/// Returns `None` if `rest` does not begin with a complete varint of at most 64 bits.
#[inline]
pub(crate) fn take_varint(rest: &mut &[u8]) -> Option<u64> {
    let (number, len) = u64::decode_var(rest)?;
    *rest = &rest[len..];
    Some(number)
}

/// Removes a varint from the front of `rest` and returns its value as a `usize`.
///
/// Returns `None` if `rest` does not begin with a complete varint, or if the value does not fit into a `usize`.
#[inline]
pub(crate) fn take_size(rest: &mut &[u8]) -> Option<usize> {
    take_varint(rest)?.try_into().ok()
}

/// Removes a length-prefixed byte string, as written by [`put_string`], from the front of `rest` and returns its bytes.
///
/// Returns `None` if the string is incomplete.
pub(super) fn take_string<'a>(rest: &mut &'a [u8]) -> Option<&'a [u8]> {
    let len = take_size(rest)?;
    rest.split_off(..len)
}

/// Removes the first `N` bytes of `rest` and returns them, or returns `None` if `rest` is shorter.
pub(super) fn take_array<const N: usize>(rest: &mut &[u8]) -> Option<[u8; N]> {
    rest.split_off(..N)?.try_into().ok()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn what_is_put_comes_back(numbers: Vec<u64>, string: Vec<u8>) {
            let mut out = Vec::new();
            numbers.iter().for_each(|number| put_varint(&mut out, *number));
            put_string(&mut out, &string);
            let mut rest = &out[..];
            for number in numbers {
                prop_assert_eq!(take_varint(&mut rest), Some(number));
            }
            prop_assert_eq!(take_string(&mut rest), Some(&string[..]));
            prop_assert!(rest.is_empty());
            prop_assert_eq!(take_varint(&mut rest), None);
        }

        #[test]
        fn any_bytes_are_read(bytes: Vec<u8>) {
            let mut rest = &bytes[..];
            while take_varint(&mut rest).is_some() {}
            while take_string(&mut rest).is_some() {}
        }
    }

    #[test]
    fn varints_are_leb128() {
        let mut out = Vec::new();
        for number in [0, 127, 128, 300, u64::MAX] {
            put_varint(&mut out, number);
        }
        assert_eq!(out[..6], [0, 127, 0x80, 1, 0xac, 2]);
        assert_eq!(out.len(), 16);
    }
}
