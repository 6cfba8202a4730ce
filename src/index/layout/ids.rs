//! The value of a position: the ids of the games that reached it.

use super::put_number;

/// The greatest length in bytes of a value that lists the game ids of a position. The LevelDB block that contains the
/// value also contains up to 64 KiB before it, and must be smaller than 4 GiB.
pub const LONGEST: u64 = u32::MAX as u64 - (1 << 16);

/// The error message for a position with too many games for one value.
pub const TOO_LONG: &str =
    "an index lists at most some 440 million games of one position: make several";

/// Returns the number of bytes that a game id and its comma take in a list of game ids.
pub fn id_len(id: u32) -> u64 {
    u64::from(id.checked_ilog10().unwrap_or(0)) + 2
}

/// Appends a game id in decimal and a comma, as in a list of game ids.
#[inline]
pub fn write_id(out: &mut Vec<u8>, id: u32) {
    put_number(out, id);
    out.push(b',');
}

/// Parses a position's list of game ids, which must be in ascending order. Returns `None` if the value is malformed.
pub fn parse_ids(value: &[u8]) -> Option<Vec<u32>> {
    let mut reader = IdReader::default();
    let mut ids = Vec::with_capacity(memchr::memchr_iter(b',', value).count());
    reader.read(value, |id| {
        ids.push(id);
        Some(())
    })?;
    reader.is_done().then_some(ids)
}

/// A parser for a position's list of game ids that receives the list in parts.
#[derive(Copy, Clone, Default, Debug)]
pub struct IdReader {
    /// The number formed by the digits of an id whose comma has not been read yet, or `None` if there are no such
    /// digits.
    open: Option<u32>,
    /// The last complete id.
    last: Option<u32>,
}

impl IdReader {
    /// Parses the next part of a list of game ids, and calls `f` with each complete id. Returns `None` if the list is
    /// malformed or if `f` returns `None`.
    #[inline]
    pub fn read(&mut self, part: &[u8], mut f: impl FnMut(u32) -> Option<()>) -> Option<()> {
        for byte in part {
            match (byte, self.open) {
                (b'0'..=b'9', open) => {
                    let tens = open.unwrap_or(0).checked_mul(10)?;
                    self.open = Some(tens.checked_add(u32::from(byte - b'0'))?);
                }
                (b',', Some(id)) if self.last.is_none_or(|last| last < id) => {
                    f(id)?;
                    self.last = self.open.take();
                }
                _ => return None,
            }
        }
        Some(())
    }

    /// Returns `true` if the list of game ids is complete, that is, if the last part did not end within an id.
    pub fn is_done(&self) -> bool {
        self.open.is_none()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_is_malformed_is_told() {
        for value in [
            "1",
            "1,2",
            ",",
            "1,,2,",
            "2,1,",
            "1,1,",
            "1,x,",
            "-1,",
            "+1,",
            " 1,",
            "4294967296,",
        ] {
            assert_eq!(parse_ids(value.as_bytes()), None, "{value}");
        }
        assert_eq!(parse_ids(b""), Some(Vec::new()));
    }

    proptest! {
        #[test]
        fn ids_come_back(ids in proptest::collection::btree_set(any::<u32>(), 0..50)) {
            let mut value = Vec::new();
            ids.iter().for_each(|id| write_id(&mut value, *id));
            prop_assert_eq!(value.len() as u64, ids.iter().map(|id| id_len(*id)).sum::<u64>());
            prop_assert_eq!(parse_ids(&value), Some(Vec::from_iter(ids)));
        }

        #[test]
        fn any_bytes_are_read(bytes in "[0-9,x]{0,30}", cut in 0..31usize) {
            // Reading in parts returns the same ids.
            let (mut reader, mut ids) = (IdReader::default(), Vec::new());
            let (first, second) = bytes.as_bytes().split_at(cut.min(bytes.len()));
            let mut read = |part| reader.read(part, |id| {
                ids.push(id);
                Some(())
            });
            let is_read = read(first).is_some() && read(second).is_some() && reader.is_done();
            prop_assert_eq!(parse_ids(bytes.as_bytes()), is_read.then_some(ids));
        }
    }
}
