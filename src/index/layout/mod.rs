//! The keys and values of the index of the LevelDB fork. Keys and values are byte strings. LevelDB sorts keys by their
//! bytes. Numbers are decimal:
//!
//! | key | value |
//! |---|---|
//! | `game_<id>_data` | the record of a game: 14 fields, separated by vertical bars; see [`GameHeader`] |
//! | `<key>` | the ids of the games that reached the position, ascending, a comma after each |
//! | `<key>_freq`, `<key>_white_score`, `<key>_draws`, `<key>_moves` | see [`PositionStats`] |
//! | `total_game_count` | the number of games in all inputs |
//! | `pgn_filename` | the absolute path of the first input |
//! | `pgn_file_count`, `pgn_file_<i>` | only with several inputs: their number, and for each input `<id of its first game>\|<path>` |
//! | `variant` | the variant of the games, or `auto` if there are several; absent for standard chess |
//!
//! The key `10` of a position sorts before the keys of its statistics, such as `10_freq`. All position keys that
//! begin with the same digits, such as `105`, sort between these two. Entries are written in order, so the
//! statistics must wait until all these position keys have been written; [`ends_before`] returns `true` when this
//! is the case.

mod game;
mod stats;

pub(super) use self::{
    game::{FEN_FIELD, FIELDS, OFFSET_FIELD},
    stats::joined_stats,
};
pub use self::{
    game::{GameHeader, GameOffset, write_game},
    stats::PositionStats,
};

/// The LevelDB key of the total number of games in all input files.
pub const TOTAL_GAMES: &[u8] = b"total_game_count";
/// The LevelDB key of the path of the first input file.
pub const FILE_NAME: &[u8] = b"pgn_filename";
/// The LevelDB key of the number of input files. An index of a single file has no such entry.
pub const FILE_COUNT: &[u8] = b"pgn_file_count";
/// The LevelDB key of the variant of the games. An index of standard chess has no such entry.
pub const VARIANT: &[u8] = b"variant";
/// A LevelDB key that occurs only in indexes with a different layout, which other programs made. polybook never
/// writes it, and refuses an index that contains it.
pub const NUM_PASSES: &[u8] = b"numPasses";

/// Returns the game id in the LevelDB key of a game record, such as `game_17_data`. Returns `None` for any other key.
pub(super) fn game_id(key: &[u8]) -> Option<u32> {
    parse_number(key.strip_prefix(b"game_")?.strip_suffix(b"_data")?)
}

/// Returns the LevelDB key of the record of game `id`.
pub fn game_key(id: u32) -> Vec<u8> {
    format!("game_{id}_data").into_bytes()
}

/// Returns the LevelDB key of the entry that lists the games of a position. `key` is the Polyglot hash key of the
/// position.
pub fn position_key(key: u64) -> Vec<u8> {
    key.to_string().into_bytes()
}

/// Returns the LevelDB key of the entry that contains the path of input file `number`, counted from 0.
pub fn file_key(number: usize) -> Vec<u8> {
    format!("pgn_file_{number}").into_bytes()
}

/// Returns the LevelDB key of the entry that contains the options with which games were selected from an input file.
/// `number` is the number of the input file, counted from 0.
pub fn options_key(number: usize) -> Vec<u8> {
    format!("options_{number}").into_bytes()
}

/// Returns the LevelDB key of the entry that names the default variant of an input file: the variant of its games
/// without a `Variant` tag. `number` is the number of the input file, counted from 0.
pub fn untagged_key(number: usize) -> Vec<u8> {
    format!("untagged_variant_{number}").into_bytes()
}

/// Encodes the description of an input file: the id of its first game, a vertical bar, and its path.
pub fn file_value(first_id: u64, path: &[u8]) -> Vec<u8> {
    let mut value = format!("{first_id}|").into_bytes();
    value.extend_from_slice(path);
    value
}

/// Parses the description of an input file that [`file_value`] encoded. Returns the id of the file's first game
/// and the path of the file, or `None` if the value is malformed.
pub fn parse_file_value(value: &[u8]) -> Option<(u64, &[u8])> {
    let bar = value.iter().position(|byte| *byte == b'|')?;
    Some((parse_number(&value[..bar])?, &value[bar + 1..]))
}

/// Parses a decimal number. Returns `None` if `value` is not a decimal number that fits into `N`.
pub fn parse_number<N: std::str::FromStr>(value: &[u8]) -> Option<N> {
    std::str::from_utf8(value).ok()?.parse().ok()
}

/// Appends the decimal digits of `number` to `out`.
#[inline]
pub(super) fn put_number(out: &mut Vec<u8>, number: impl itoa::Integer) {
    out.extend_from_slice(itoa::Buffer::new().format(number).as_bytes());
}

/// Returns `true` if the LevelDB key `next` does not begin with `number`, the digits of a position key. A caller that
/// reads keys in ascending order, starting at `number`, then knows that no later key begins with these digits either.
#[inline]
pub fn ends_before(number: &[u8], next: &[u8]) -> bool {
    !next.starts_with(number)
}

/// The greatest length in bytes of a value that lists the game ids of a position. The value is stored in a LevelDB
/// block, which must be smaller than 4 GiB. Other entries can take up to 64 KiB of this block before the value.
pub const MAX_LIST_BYTES: u64 = u32::MAX as u64 - (1 << 16);

/// The error message for a position whose list of games is too long for one value.
pub const TOO_LONG: &str =
    "an index can list at most about 440 million games of one position: make several indexes";

/// Returns the number of bytes that the game id `id` takes in a list of game ids. The list contains the decimal digits
/// of each id, followed by a comma.
pub fn id_len(id: u32) -> u64 {
    u64::from(id.checked_ilog10().unwrap_or(0)) + 2
}

/// Appends the decimal digits of a game id and a comma to a list of game ids.
#[inline]
pub fn write_id(out: &mut Vec<u8>, id: u32) {
    put_number(out, id);
    out.push(b',');
}

/// Parses the list of game ids that an index stores for a position. Returns `None` if the value is malformed, for
/// example if the ids are not in ascending order.
pub fn parse_ids(value: &[u8]) -> Option<Vec<u32>> {
    let mut reader = IdReader::default();
    let mut ids = Vec::with_capacity(memchr::memchr_iter(b',', value).count());
    reader.read(value, |id| {
        ids.push(id);
        Some(())
    })?;
    reader.is_done().then_some(ids)
}

/// A parser for the list of a position's game ids. The list can be passed to the parser in several parts, so a long
/// list need not be held in memory.
#[derive(Copy, Clone, Default, Debug)]
pub struct IdReader {
    /// The number formed by the digits of an id whose comma has not been read yet, or `None` if there are no such
    /// digits.
    open: Option<u32>,
    /// The last complete id.
    last: Option<u32>,
}

impl IdReader {
    /// Parses the next bytes of a list of game ids, and calls `f` with each id that is complete. Digits of an
    /// incomplete id at the end are kept for the next call. Returns `None` if the list is malformed or if `f` returns
    /// `None`.
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

    /// Returns `true` if the text parsed so far ends with a complete game id and its comma. If it does not after the
    /// last part, the list is incomplete.
    pub fn is_done(&self) -> bool {
        self.open.is_none()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn inputs_come_back(first_id: u64, path: Vec<u8>) {
            let value = file_value(first_id, &path);
            prop_assert_eq!(parse_file_value(&value), Some((first_id, &path[..])));
        }

        #[test]
        fn any_bytes_are_read(bytes: Vec<u8>) {
            let _ = parse_file_value(&bytes);
            let _ = parse_number::<u64>(&bytes);
        }
    }

    #[test]
    fn malformed_ids_are_refused() {
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
        fn reading_in_parts_returns_equal_ids(bytes in "[0-9,x]{0,30}", cut in 0..31usize) {
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
