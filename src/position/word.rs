//! Short written moves, stored in a register. Nearly all moves of games are short enough, and comparing registers is
//! faster than comparing slices.

use shakmaty::{File, Rank, Square};

/// The maximum length of a [`Word`] in bytes.
const LONGEST: usize = 7;

/// An integer whose eight bytes are all 1. Multiplying it by a byte repeats the byte eight times.
const EACH: u64 = u64::from_ne_bytes([1; 8]);

/// A written move of one to seven bytes. It is stored in an integer, so that it can be compared quickly.
///
/// ```
/// use polybook::position::Word;
/// let word = Word::new(b"Nf3").unwrap();
/// assert_eq!(Word::before_blank(b"Nf3 Nc6 "), Some(word));
/// assert_eq!(Word::before_blank(b"Nf3!? Nc"), Word::new(b"Nf3!?"));
/// assert_eq!(Word::before_blank(b"f2xg1=Q+"), None);
/// ```
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Word {
    /// The bytes of the word, with the first byte in the lowest bits and zeros after the last byte.
    bytes: u64,
    len: usize,
}

impl Word {
    /// Creates a word from its bytes. Returns `None` if `text` is empty or longer than seven bytes.
    #[inline]
    pub fn new(text: &[u8]) -> Option<Word> {
        if text.is_empty() || text.len() > LONGEST {
            return None;
        }
        let mut bytes = [0; 8];
        bytes[..text.len()].copy_from_slice(text);
        Some(Word {
            bytes: u64::from_le_bytes(bytes),
            len: text.len(),
        })
    }

    /// Creates a word from the bytes before the first blank or control character in `text`. Returns `None` if `text`
    /// begins with such a character, or contains none.
    #[inline]
    pub fn before_blank(text: &[u8; 8]) -> Option<Word> {
        let text = u64::from_le_bytes(*text);
        // The subtraction borrows in each byte that is lower than `!`. A borrow may cause false hits in higher bytes,
        // but the lowest hit is always correct.
        let blanks = text.wrapping_sub(EACH * u64::from(b'!')) & !text & (EACH << 7);
        let len = (blanks.trailing_zeros() / 8) as usize;
        (1..=LONGEST).contains(&len).then(|| Word {
            bytes: text & ((1 << (8 * len)) - 1),
            len,
        })
    }

    /// Returns the length of the word in bytes, from 1 to 7.
    #[inline]
    pub(crate) fn len(self) -> usize {
        self.len
    }

    /// Returns the byte at the offset `at`, or 0 if `at` is after the end of the word.
    #[inline]
    pub(super) fn byte(self, at: usize) -> u8 {
        (self.bytes >> (8 * (at & 7))) as u8
    }

    /// Returns the word without its last `count` bytes. `count` must be less than the length of the word.
    #[inline]
    pub(super) fn without_last(self, count: usize) -> Word {
        let len = self.len - count;
        Word {
            bytes: self.bytes & ((1 << (8 * len)) - 1),
            len,
        }
    }

    /// Returns the word without the check sign or mate sign at its end, if there is one.
    #[inline]
    pub(super) fn without_check(self) -> Word {
        let is_check = self.len > 1 && matches!(self.byte(self.len - 1), b'+' | b'#');
        self.without_last(usize::from(is_check))
    }

    /// Returns the square that the last two bytes of the word name, for example `f3`. Returns `None` if they do not
    /// name a square.
    #[inline]
    pub(super) fn square(self) -> Option<Square> {
        let start = self.len.checked_sub(2)?;
        square(self.byte(start), self.byte(start + 1))
    }
}

/// Returns the square with the given file letter and rank digit, or `None` if one of them is not valid.
#[inline]
pub(super) fn square(file: u8, rank: u8) -> Option<Square> {
    let (file, rank) = (file.wrapping_sub(b'a'), rank.wrapping_sub(b'1'));
    (file < 8 && rank < 8)
        .then(|| Square::from_coords(File::new(u32::from(file)), Rank::new(u32::from(rank))))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_word_ends_before_the_first_blank(bytes in proptest::array::uniform8(prop_oneof![
            any::<u8>(), Just(b' '), Just(b'!'), Just(0x20), Just(0x80), Just(0xa0), b'a'..=b'h',
        ])) {
            let expected = bytes.iter().position(|byte| *byte <= b' ').and_then(|end| Word::new(&bytes[..end]));
            prop_assert_eq!(Word::before_blank(&bytes), expected);
            if let Some(word) = expected {
                for (at, byte) in bytes[..word.len()].iter().enumerate() {
                    prop_assert_eq!(word.byte(at), *byte);
                }
                prop_assert_eq!(word.byte(word.len()), 0);
            }
        }
    }

    #[test]
    fn check_signs_and_squares() {
        let word = |text: &[u8]| Word::new(text).unwrap();
        assert_eq!(word(b"Bb5+").without_check(), word(b"Bb5"));
        assert_eq!(word(b"+").without_check(), word(b"+"));
        assert_eq!(word(b"Nf3").square(), Some(Square::F3));
        assert_eq!(word(b"e").square(), None);
        assert_eq!(word(b"e8=Q").square(), None);
        assert_eq!(word(b"e9").square(), None);
    }
}
