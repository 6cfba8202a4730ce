//! Numbers, strings and checksums as all LevelDB files encode them.

use integer_encoding::VarInt;

/// The bytes of the longest varint.
const MAX_VARINT: usize = 10;

/// Appends a number, seven bits a byte, the lowest first.
#[inline]
pub(in crate::index) fn put_varint(out: &mut Vec<u8>, number: u64) {
    if number < 0x80 {
        return out.push(number as u8);
    }
    let mut bytes = [0; MAX_VARINT];
    let len = number.encode_var(&mut bytes);
    out.extend_from_slice(&bytes[..len]);
}

/// Appends the length of a string, then the string.
pub(super) fn put_string(out: &mut Vec<u8>, string: &[u8]) {
    put_varint(out, string.len() as u64);
    out.extend_from_slice(string);
}

/// The stored form of a checksum: a checksum of data that holds checksums is still a good one.
#[inline]
pub(super) fn masked(checksum: u32) -> u32 {
    checksum.rotate_right(15).wrapping_add(0xa282_ead8)
}

/// Reads fields one after the other. Each is `None` when the rest is too short for it.
#[derive(Copy, Clone, Debug)]
pub(super) struct Fields<'a> {
    rest: &'a [u8],
}

impl<'a> Fields<'a> {
    #[inline]
    pub(super) fn new(bytes: &'a [u8]) -> Fields<'a> {
        Fields { rest: bytes }
    }

    #[inline]
    pub(super) fn rest(&self) -> &'a [u8] {
        self.rest
    }

    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    #[inline]
    pub(super) fn bytes(&mut self, len: usize) -> Option<&'a [u8]> {
        let (bytes, rest) = self.rest.split_at_checked(len)?;
        self.rest = rest;
        Some(bytes)
    }

    #[inline]
    pub(super) fn byte(&mut self) -> Option<u8> {
        Some(self.bytes(1)?[0])
    }

    pub(super) fn u32(&mut self) -> Option<u32> {
        let (bytes, rest) = self.rest.split_first_chunk()?;
        self.rest = rest;
        Some(u32::from_le_bytes(*bytes))
    }

    pub(super) fn u64(&mut self) -> Option<u64> {
        let (bytes, rest) = self.rest.split_first_chunk()?;
        self.rest = rest;
        Some(u64::from_le_bytes(*bytes))
    }

    #[inline]
    pub(super) fn varint(&mut self) -> Option<u64> {
        let (number, len) = u64::decode_var(self.rest)?;
        self.rest = &self.rest[len..];
        Some(number)
    }

    /// A varint that is a length or a level.
    #[inline]
    pub(super) fn size(&mut self) -> Option<usize> {
        self.varint()?.try_into().ok()
    }

    pub(super) fn string(&mut self) -> Option<&'a [u8]> {
        let len = self.size()?;
        self.bytes(len)
    }
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
            let mut fields = Fields::new(&out);
            for number in numbers {
                prop_assert_eq!(fields.varint(), Some(number));
            }
            prop_assert_eq!(fields.string(), Some(&string[..]));
            prop_assert!(fields.is_empty());
            prop_assert_eq!(fields.varint(), None);
        }

        #[test]
        fn any_bytes_are_read(bytes: Vec<u8>) {
            let mut fields = Fields::new(&bytes);
            while fields.varint().is_some() {}
            while fields.string().is_some() {}
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
