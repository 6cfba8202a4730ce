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
//! The key `10` of a position sorts before the keys of its statistics, such as `10_freq`. All numbers that begin with
//! the same digits, such as `105`, sort between these two. So while entries are written in order, statistics must wait
//! until these numbers have passed; [`ends_before`] tells when this is so.

mod game;
mod ids;
mod stats;

pub(super) use self::{
    game::{FEN_FIELD, FIELDS, OFFSET_FIELD},
    stats::joined_stats,
};
pub use self::{
    game::{GameHeader, GamePlace, write_game},
    ids::{IdReader, LONGEST, TOO_LONG, id_len, parse_ids, write_id},
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
/// A LevelDB key that occurs only in indexes with a different layout, made by other programs. polybook never writes it,
/// and refuses an index that contains it.
pub const NUM_PASSES: &[u8] = b"numPasses";

/// Parses a LevelDB key. Returns the game id if it is the key of a game record, otherwise `None`.
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

/// Returns the LevelDB key of an entry that names a variant: the variant of the games without a `Variant` tag in the
/// input file with the number `number`, counted from 0.
pub fn untagged_key(number: usize) -> Vec<u8> {
    format!("untagged_variant_{number}").into_bytes()
}

/// Encodes the description of an input file: the id of its first game, a vertical bar, and its path.
pub fn file_value(first_id: u64, path: &[u8]) -> Vec<u8> {
    let mut value = format!("{first_id}|").into_bytes();
    value.extend_from_slice(path);
    value
}

/// Parses the description of an input file that [`file_value`] encoded. Returns the id of its first game and its path,
/// or `None` if the value is malformed.
pub fn parse_file_value(value: &[u8]) -> Option<(u64, &[u8])> {
    let bar = value.iter().position(|byte| *byte == b'|')?;
    Some((parse_number(&value[..bar])?, &value[bar + 1..]))
}

/// Parses a decimal number. Returns `None` if `value` is not a number of the type `N`.
pub fn parse_number<N: std::str::FromStr>(value: &[u8]) -> Option<N> {
    std::str::from_utf8(value).ok()?.parse().ok()
}

/// Appends a number in decimal.
#[inline]
pub(super) fn put_number(out: &mut Vec<u8>, number: impl itoa::Integer) {
    out.extend_from_slice(itoa::Buffer::new().format(number).as_bytes());
}

/// Returns `true` if `next` does not begin with the digits `number`. A loop over ascending LevelDB keys that began at
/// the key `number` calls this function with each next key to find out whether it has passed all keys of the number.
#[inline]
pub fn ends_before(number: &[u8], next: &[u8]) -> bool {
    !next.starts_with(number)
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
}
