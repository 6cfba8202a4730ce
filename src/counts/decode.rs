//! Decoding Parquet's integers. Damaged bytes give errors or other numbers, and never more of them than asked for.

use bytes::Bytes;

use super::error::CountsError;

/// The error for a page that does not have the values that it tells.
#[cold]
pub(super) fn cut_short() -> CountsError {
    CountsError::Damaged("a page with fewer values than it tells".to_owned())
}

/// The error for numbers that no writer writes.
#[cold]
fn no_encoding() -> CountsError {
    CountsError::Damaged("the numbers of a page are not encoded as it tells".to_owned())
}

/// A number in LEB128 at the place `at`, which is moved behind it.
fn leb128(bytes: &[u8], at: &mut usize) -> Result<u64, CountsError> {
    let mut number = 0;
    for shift in (0..64).step_by(7) {
        let byte = *bytes.get(*at).ok_or_else(cut_short)?;
        *at += 1;
        number |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Ok(number);
        }
    }
    Err(no_encoding())
}

/// A signed number in LEB128, of which the lowest bit is the sign.
fn zigzag(bytes: &[u8], at: &mut usize) -> Result<i64, CountsError> {
    let number = leb128(bytes, at)?;
    Ok((number >> 1).cast_signed() ^ -(number & 1).cast_signed())
}

/// The number whose lowest byte is at a place. Behind the end all bits are 0.
#[inline]
fn word(bytes: &[u8], at: usize) -> u64 {
    match bytes.get(at..).and_then(<[u8]>::first_chunk) {
        Some(word) => u64::from_le_bytes(*word),
        None => last_word(bytes, at),
    }
}

#[cold]
fn last_word(bytes: &[u8], at: usize) -> u64 {
    let rest = bytes.get(at..).unwrap_or_default();
    let byte = |at: usize| u64::from(rest.get(at).copied().unwrap_or(0));
    (0..8).fold(0, |word, at| word | byte(at) << (8 * at))
}

/// Fills `out` with numbers of `width` bits, at most 64, packed from a bit on.
fn unpack(bytes: &[u8], mut bit: usize, width: usize, out: &mut [i64]) {
    // Eight begin where a byte does, and then all of them lie in their bytes as any other eight.
    let beside = |bit: usize| match width {
        0 => 0,
        _ => (0..8)
            .find(|more| (bit + more * width).is_multiple_of(8))
            .unwrap_or(0),
    };
    let (before, out) = out.split_at_mut(beside(bit).min(out.len()));
    unpack_each(bytes, bit, width, before);
    bit += before.len() * width;
    let (eights, after) = out.as_chunks_mut::<8>();
    unpack_eights(bytes, bit / 8, width, eights);
    bit += eights.len() * 8 * width;
    unpack_each(bytes, bit, width, after);
}

/// [`unpack`], a number at a time.
fn unpack_each(bytes: &[u8], mut bit: usize, width: usize, out: &mut [i64]) {
    let mask = mask(width);
    for number in out {
        let words = u128::from(word(bytes, bit / 8)) | u128::from(word(bytes, bit / 8 + 8)) << 64;
        *number = ((words >> (bit % 8)) as u64 & mask).cast_signed();
        bit += width;
    }
}

/// The largest number of so many bits.
const fn mask(width: usize) -> u64 {
    match width {
        0 => 0,
        _ => u64::MAX >> (64 - width),
    }
}

/// [`unpack`] for eights that begin with a byte.
fn unpack_eights(bytes: &[u8], at: usize, width: usize, out: &mut [[i64; 8]]) {
    /// Calls what is compiled for a width.
    macro_rules! of_width {
        ($($width:literal)*) => {
            match width {
                $($width => eights_of_width::<$width>(bytes, at, out),)*
                _ => unreachable!("no number has more than 64 bits"),
            }
        };
    }
    of_width!(
        0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31 32
        33 34 35 36 37 38 39 40 41 42 43 44 45 46 47 48 49 50 51 52 53 54 55 56 57 58 59 60 61 62 63 64
    );
}

/// The width is known to the compiler, so shifts and places are constants.
fn eights_of_width<const WIDTH: usize>(bytes: &[u8], mut at: usize, out: &mut [[i64; 8]]) {
    for eight in out {
        // The last number is read with up to two words.
        let Some(packed) = bytes.get(at..at.saturating_add(WIDTH + 16)) else {
            unpack_each(bytes, 8 * at, WIDTH, eight);
            at += WIDTH;
            continue;
        };
        for (number, out) in eight.iter_mut().enumerate() {
            let (from, shift) = (number * WIDTH / 8, number * WIDTH % 8);
            let mut bits = word(packed, from) >> shift;
            if shift + WIDTH > 64 {
                bits |= word(packed, from + 8) << (64 - shift);
            }
            *out = (bits & mask(WIDTH)).cast_signed();
        }
        at += WIDTH;
    }
}

/// The numbers of a dictionary.
#[derive(Default)]
pub(super) struct Dictionary {
    /// Room for as many places as there are, or [`Dictionary::ROOM`]. Behind the last number are others.
    numbers: Vec<i64>,
    len: usize,
}

impl Dictionary {
    /// How many places have room at least, so that looking most of them up needs no comparison.
    const ROOM: usize = 1 << 12;

    pub(super) fn new(mut numbers: Vec<i64>) -> Dictionary {
        let len = numbers.len();
        numbers.resize(len.max(Dictionary::ROOM), 0);
        Dictionary { numbers, len }
    }

    /// Replaces places, which have at most 32 bits, by the numbers there.
    fn look_up(&self, places: &mut [i64]) -> Result<(), CountsError> {
        // Places behind the last number make it negative, which is asked once for all.
        let (last, mut beyond) = (self.len as i64 - 1, 0);
        match self.numbers.first_chunk::<{ Dictionary::ROOM }>() {
            Some(numbers) if self.len <= Dictionary::ROOM => {
                for place in places {
                    beyond |= last - *place;
                    *place = numbers[*place as usize % Dictionary::ROOM];
                }
            }
            _ => {
                for place in places {
                    beyond |= last - *place;
                    *place = self.numbers.get(*place as usize).copied().unwrap_or(0);
                }
            }
        }
        match beyond < 0 {
            true => Err(no_encoding()),
            false => Ok(()),
        }
    }
}

/// Numbers as places in a dictionary: runs of one place, and places packed side by side.
pub(super) struct Indices {
    bytes: Bytes,
    /// The next byte that is not of the run.
    at: usize,
    /// How many bits a place has.
    width: usize,
    run: Run,
    /// How many places of the run are left.
    left: usize,
}

#[derive(Copy, Clone)]
enum Run {
    Same(u64),
    /// Packed from this bit on.
    Packed(usize),
}

impl Indices {
    pub(super) fn new(bytes: Bytes) -> Result<Indices, CountsError> {
        let width = usize::from(*bytes.first().ok_or_else(cut_short)?);
        if width > 32 {
            return Err(no_encoding());
        }
        Ok(Indices {
            bytes,
            at: 1,
            width,
            run: Run::Same(0),
            left: 0,
        })
    }

    /// Fills `out` with the numbers of the dictionary at the next places.
    pub(super) fn next(
        &mut self,
        dictionary: &Dictionary,
        out: &mut [i64],
    ) -> Result<(), CountsError> {
        let mut rest = &mut out[..];
        while !rest.is_empty() {
            if self.left == 0 {
                self.begin_run()?;
                continue;
            }
            let now;
            (now, rest) = rest.split_at_mut(self.left.min(rest.len()));
            self.left -= now.len();
            match &mut self.run {
                Run::Same(place) => now.fill(place.cast_signed()),
                Run::Packed(bit) => {
                    unpack(&self.bytes, *bit, self.width, now);
                    *bit += now.len() * self.width;
                }
            }
        }
        dictionary.look_up(out)
    }

    fn begin_run(&mut self) -> Result<(), CountsError> {
        let head = leb128(&self.bytes, &mut self.at)?;
        let length = usize::try_from(head >> 1).map_err(|_| no_encoding())?;
        if head & 1 == 0 {
            let place = word(&self.bytes, self.at);
            let bytes = self.width.div_ceil(8);
            self.at += bytes;
            if self.at > self.bytes.len() {
                return Err(cut_short());
            }
            self.run = Run::Same(place & ((1 << (8 * bytes)) - 1));
            self.left = length;
        } else {
            // Eight places take so many bytes. The last may be left out where they are not needed.
            let bytes = length.checked_mul(self.width).ok_or_else(no_encoding)?;
            let there = self.bytes.len() - self.at;
            self.run = Run::Packed(8 * self.at);
            self.left = match bytes <= there {
                true => length.checked_mul(8).ok_or_else(no_encoding)?,
                false => 8 * there / self.width,
            };
            if self.left == 0 && length > 0 {
                return Err(cut_short());
            }
            self.at += bytes.min(there);
        }
        Ok(())
    }
}

/// Numbers as differences of each to the one before, in blocks with a least difference, and these in small blocks with
/// a width each.
pub(super) struct Differences {
    bytes: Bytes,
    /// The next byte that is not of the small block.
    at: usize,
    /// How many small blocks a block has, and how many numbers these.
    small_blocks: usize,
    in_small_block: usize,
    /// The small blocks of the block that are left: the bytes that have their widths.
    widths: std::ops::Range<usize>,
    least: i64,
    /// The small block: its next bit, its width, and how many numbers of it are left.
    bit: usize,
    width: usize,
    left: usize,
    /// The number before the next one; the first of all, if it is not taken yet.
    last: i64,
    is_first: bool,
}

impl Differences {
    /// Of a page with so many numbers.
    pub(super) fn new(bytes: Bytes, numbers: usize) -> Result<Differences, CountsError> {
        let mut at = 0;
        let mut size = || {
            let number = leb128(&bytes, &mut at)?;
            usize::try_from(number).map_err(|_| no_encoding())
        };
        let (in_block, small_blocks, all) = (size()?, size()?, size()?);
        // The last small block has more numbers than there are.
        if all != numbers {
            return Err(no_encoding());
        }
        let in_small_block = in_block.checked_div(small_blocks).unwrap_or(0);
        if in_small_block == 0 || !in_block.is_multiple_of(small_blocks) {
            return Err(no_encoding());
        }
        let last = zigzag(&bytes, &mut at)?;
        Ok(Differences {
            bytes,
            at,
            small_blocks,
            in_small_block,
            widths: 0..0,
            least: 0,
            bit: 0,
            width: 0,
            left: 0,
            last,
            is_first: true,
        })
    }

    /// Fills `out` with the next numbers.
    pub(super) fn next(&mut self, mut out: &mut [i64]) -> Result<(), CountsError> {
        if self.is_first && !out.is_empty() {
            self.is_first = false;
            out[0] = self.last;
            out = &mut out[1..];
        }
        while !out.is_empty() {
            if self.left == 0 {
                self.begin_small_block()?;
            }
            let now;
            (now, out) = out.split_at_mut(self.left.min(out.len()));
            let bits = self.width.checked_mul(now.len()).ok_or_else(no_encoding)?;
            if bits > 8 * self.bytes.len() - self.bit {
                return Err(cut_short());
            }
            self.left -= now.len();
            unpack(&self.bytes, self.bit, self.width, now);
            self.bit += bits;
            let (mut last, least) = (self.last, self.least);
            for number in now {
                last = last.wrapping_add(least.wrapping_add(*number));
                *number = last;
            }
            self.last = last;
        }
        Ok(())
    }

    fn begin_small_block(&mut self) -> Result<(), CountsError> {
        if self.widths.is_empty() {
            self.least = zigzag(&self.bytes, &mut self.at)?;
            let end = self.at.saturating_add(self.small_blocks);
            if end > self.bytes.len() {
                return Err(cut_short());
            }
            self.widths = self.at..end;
            self.at = end;
        }
        let width = self.widths.next().map(|at| self.bytes[at]);
        self.width = width.map_or(0, usize::from);
        if self.width > 64 {
            return Err(no_encoding());
        }
        let bytes = self.in_small_block.div_ceil(8).saturating_mul(self.width);
        self.bit = 8 * self.at;
        self.left = self.in_small_block;
        // The last may be cut behind its last number.
        self.at = self.at.saturating_add(bytes).min(self.bytes.len());
        Ok(())
    }
}

/// Numbers as they are, each in so many bytes.
pub(super) struct Plain {
    bytes: Bytes,
    at: usize,
}

impl Plain {
    pub(super) fn new(bytes: Bytes) -> Plain {
        Plain { bytes, at: 0 }
    }

    /// Fills `out` with the next numbers of `width` bytes, four or eight. The upper half of those of four is 0.
    pub(super) fn next(&mut self, width: usize, out: &mut [i64]) -> Result<(), CountsError> {
        let end = self.at.saturating_add(out.len().saturating_mul(width));
        let bytes = self.bytes.get(self.at..end).ok_or_else(cut_short)?;
        unpack(bytes, 0, 8 * width, out);
        self.at = end;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn packed_numbers_are_unpacked_from_any_of_them_on(
            width in 0usize..=64, numbers in prop::collection::vec(any::<i64>(), 0..200), first in 0usize..200,
        ) {
            let numbers: Vec<i64> = numbers.iter().map(|number| number & mask(width).cast_signed()).collect();
            let mut bytes = vec![0u8; (numbers.len() * width).div_ceil(8)];
            for (at, number) in numbers.iter().enumerate() {
                for bit in 0..width {
                    let place = at * width + bit;
                    bytes[place / 8] |= u8::from(number >> bit & 1 == 1) << (place % 8);
                }
            }
            let first = first.min(numbers.len());
            let mut found = vec![-1; numbers.len() - first];
            unpack(&bytes, first * width, width, &mut found);
            prop_assert_eq!(&found[..], &numbers[first..]);
        }

        #[test]
        fn any_bytes_end(bytes in prop::collection::vec(any::<u8>(), 0..300), few in any::<bool>(), count in 0usize..5000, total in 0usize..300) {
            let bytes = Bytes::from(bytes);
            let mut out = vec![0; count];
            let dictionary = Dictionary::new((0..if few { 5 } else { 5000 }).collect());
            if let Ok(mut indices) = Indices::new(bytes.clone())
                && indices.next(&dictionary, &mut out).is_ok()
            {
                prop_assert!(out.iter().all(|number| (0..dictionary.len as i64).contains(number)));
            }
            if let Ok(mut differences) = Differences::new(bytes.clone(), total) {
                let _any = differences.next(&mut out);
            }
            prop_assert_eq!(Plain::new(bytes.clone()).next(4, &mut out).is_ok(), 4 * count <= bytes.len());
        }
    }

    #[test]
    fn places_behind_the_dictionary_are_errors() {
        for len in [0usize, 1, 5, Dictionary::ROOM, Dictionary::ROOM + 1] {
            let dictionary = Dictionary::new((0..len as i64).map(|number| -number).collect());
            let mut places: Vec<i64> = (0..len as i64).collect();
            assert!(dictionary.look_up(&mut places).is_ok());
            assert!(
                places
                    .iter()
                    .enumerate()
                    .all(|(at, number)| *number == -(at as i64))
            );
            assert!(dictionary.look_up(&mut [len as i64]).is_err());
        }
        assert!(Dictionary::default().look_up(&mut [0]).is_err());
    }
}
