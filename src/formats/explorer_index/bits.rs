//! Reads and writes integers with any number of bits, most significant bit first.

/// The maximum number of bits that [`BitWriter`] writes in one step. Longer numbers are written in two steps.
const MAX_BITS_PER_WRITE: u32 = 32;

/// The number of bits that [`BitReader`] can read in one step. A step loads the next 8 bytes, but up to 7 bits of the
/// first byte may already have been read.
const WINDOW: u32 = 57;

/// The maximum number of leading zero bits that an exponential Golomb code may have. Encoded numbers are less than
/// 2^56, so their codes have at most this many.
const MOST_ZEROS: u32 = 56;

/// An encoder that writes numbers to a byte vector, each with as many bits as the caller chooses. The most significant
/// bit of a number comes first.
#[derive(Default, Debug)]
pub(super) struct BitWriter {
    bytes: Vec<u8>,
    /// The bits that do not fill a byte yet.
    open: u64,
    /// The number of bits in `open`, less than 8.
    len: u32,
}

impl BitWriter {
    /// Appends the lowest `width` bits of `number`. The higher bits must be 0.
    pub(super) fn put(&mut self, number: u64, width: u32) {
        debug_assert!(width == u64::BITS || number >> width == 0);
        if width > MAX_BITS_PER_WRITE {
            self.put(number >> MAX_BITS_PER_WRITE, width - MAX_BITS_PER_WRITE);
            return self.put(number & u64::from(u32::MAX), MAX_BITS_PER_WRITE);
        }
        self.open = self.open << width | number;
        self.len += width;
        while self.len >= 8 {
            self.len -= 8;
            self.bytes.push((self.open >> self.len) as u8);
        }
        self.open &= (1 << self.len) - 1;
    }

    /// Appends `number`, which must be less than 2^56, as an exponential Golomb code of order `k`. In such a code,
    /// small numbers take few bits. Choose `k` such that most numbers are less than 2^k.
    pub(super) fn put_golomb(&mut self, number: u64, k: u32) {
        let high = (number >> k) + 1;
        let zeros = high.ilog2();
        debug_assert!(zeros <= MOST_ZEROS);
        self.put(0, zeros);
        // The first bit of `high` is set, so the zeros before it can be counted.
        self.put(high, zeros + 1);
        self.put(number & ((1 << k) - 1), k);
    }

    /// Pads the last byte with zero bits, and returns all bytes.
    pub(super) fn finish(mut self) -> Vec<u8> {
        if self.len > 0 {
            self.put(0, 8 - self.len);
        }
        self.bytes
    }
}

/// A decoder that reads numbers from a byte slice. The caller chooses the number of bits of each number. The most
/// significant bit of a number comes first.
#[derive(Copy, Clone, Debug)]
pub(super) struct BitReader<'a> {
    bytes: &'a [u8],
    /// The number of bits that have been read.
    at: usize,
}

impl<'a> BitReader<'a> {
    /// Creates a reader at the beginning of `bytes`.
    pub(super) fn new(bytes: &'a [u8]) -> BitReader<'a> {
        BitReader { bytes, at: 0 }
    }

    /// Returns the next bits of the input as the highest bits of a 64-bit word. At least the highest 57 bits of the
    /// word are valid. Bits beyond the end of the input are 0.
    #[inline]
    fn window(&self) -> u64 {
        let rest = self.bytes.get(self.at / 8..).unwrap_or_default();
        let window = match rest.first_chunk() {
            Some(bytes) => u64::from_be_bytes(*bytes),
            None => {
                let mut bytes = [0; 8];
                bytes[..rest.len()].copy_from_slice(rest);
                u64::from_be_bytes(bytes)
            }
        };
        window << (self.at % 8)
    }

    /// Reads a number that was written with `width` bits. `width` is at most 64. Returns `None` if fewer bits are left.
    #[inline]
    pub(super) fn take(&mut self, width: u32) -> Option<u64> {
        if width > WINDOW {
            return self.take_wide(width);
        }
        let number = self.window().checked_shr(u64::BITS - width).unwrap_or(0);
        self.at += width as usize;
        (self.at <= 8 * self.bytes.len()).then_some(number)
    }

    /// Reads a number that was written with `width` bits, in two steps, because one step can read at most 57 bits.
    /// Returns `None` if fewer bits are left.
    fn take_wide(&mut self, width: u32) -> Option<u64> {
        let high = self.take(width - MAX_BITS_PER_WRITE)?;
        Some(high << MAX_BITS_PER_WRITE | self.take(MAX_BITS_PER_WRITE)?)
    }

    /// Reads an exponential Golomb code of order `k`, as written by [`put_golomb`](BitWriter::put_golomb). Returns
    /// `None` if the code is malformed or incomplete.
    #[inline]
    pub(super) fn take_golomb(&mut self, k: u32) -> Option<u64> {
        let window = self.window();
        let zeros = window.leading_zeros();
        if 2 * zeros + 1 + k > WINDOW {
            return self.take_wide_golomb(zeros, k);
        }
        let high = (window << zeros >> (u64::BITS - 1 - zeros)) - 1;
        // Two shifts, because a shift by 64 bits would overflow if `k` is 0.
        let low = window << (2 * zeros + 1) >> 1 >> (u64::BITS - 1 - k);
        self.at += (2 * zeros + 1 + k) as usize;
        (self.at <= 8 * self.bytes.len()).then_some(high << k | low)
    }

    /// Reads an exponential Golomb code of order `k` in several steps, because one step can read at most 57 bits.
    /// `zeros` is the number of leading zeros of the code. Returns `None` if the code is malformed or incomplete.
    fn take_wide_golomb(&mut self, zeros: u32, k: u32) -> Option<u64> {
        if zeros > MOST_ZEROS || zeros + k >= u64::BITS {
            return None;
        }
        self.take(zeros + 1)?;
        let high = (1 << zeros | self.take(zeros)?) - 1;
        Some(high << k | self.take(k)?)
    }

    /// Returns `true` if the rest of the input consists only of the zero bits that pad the last byte.
    pub(super) fn is_at_end(mut self) -> bool {
        let left = 8 * self.bytes.len() - self.at.min(8 * self.bytes.len());
        left < 8 && self.take(left as u32) == Some(0)
    }
}

/// Returns the smallest number of bits that can represent every number from 0 to `most`.
pub(super) fn bits_of(most: u64) -> u32 {
    u64::BITS - most.leading_zeros()
}

/// Returns the smallest number of bits that can represent any index into a list of `moves` moves.
pub(super) fn bits_for(moves: usize) -> u32 {
    bits_of(moves.saturating_sub(1) as u64)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn numbers_come_back(numbers in proptest::collection::vec((any::<u64>(), 0..=64u32, 0..40u32), 0..50)) {
            let mut out = BitWriter::default();
            let small = |number: u64, width: u32| number.checked_shr(u64::BITS - width).unwrap_or(0);
            for (number, width, k) in &numbers {
                out.put(small(*number, *width), *width);
                out.put_golomb(small(*number, (*width).min(56)), *k);
            }
            let bytes = out.finish();
            let mut reader = BitReader::new(&bytes);
            for (number, width, k) in &numbers {
                prop_assert_eq!(reader.take(*width), Some(small(*number, *width)));
                prop_assert_eq!(reader.take_golomb(*k), Some(small(*number, (*width).min(56))));
            }
            prop_assert!(reader.is_at_end());
            prop_assert_eq!(reader.take(8), None);
        }

        #[test]
        fn any_bits_are_read(bytes: Vec<u8>, k in 0..64u32) {
            let mut reader = BitReader::new(&bytes);
            while reader.take_golomb(k).is_some() {}
            let _ = reader.is_at_end();
        }
    }
}
