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

/// The key of the number of games in all inputs.
pub const TOTAL_GAMES: &[u8] = b"total_game_count";
/// The key of the path of the first input.
pub const FILE_NAME: &[u8] = b"pgn_filename";
/// The key of the number of inputs; absent if there is only one.
pub const FILE_COUNT: &[u8] = b"pgn_file_count";
/// The key of the variant of the games; absent for standard chess.
pub const VARIANT: &[u8] = b"variant";
/// A key that only indexes with another layout contain, by which front-ends recognize that layout. polybook never
/// writes it.
pub const NUM_PASSES: &[u8] = b"numPasses";

/// Returns the id in the key of a game record, or `None` for any other key.
pub(super) fn game_id(key: &[u8]) -> Option<u32> {
    parse_number(key.strip_prefix(b"game_")?.strip_suffix(b"_data")?)
}

/// Returns the key of a game record.
pub fn game_key(id: u32) -> Vec<u8> {
    format!("game_{id}_data").into_bytes()
}

/// Returns the key of the entry that lists the ids of a position's games. `key` is the Polyglot key of the position.
pub fn position_key(key: u64) -> Vec<u8> {
    key.to_string().into_bytes()
}

/// Returns the key of the entry that describes an input: the id of its first game and its path.
pub fn file_key(number: usize) -> Vec<u8> {
    format!("pgn_file_{number}").into_bytes()
}

/// Returns the key of the options that decided which games of an input are indexed.
pub fn options_key(number: usize) -> Vec<u8> {
    format!("options_{number}").into_bytes()
}

/// Returns the key of the variant of an input's games without a `Variant` tag.
pub fn untagged_key(number: usize) -> Vec<u8> {
    format!("untagged_variant_{number}").into_bytes()
}

/// Returns the value of the entry that describes an input.
pub fn file_value(first_id: u64, path: &[u8]) -> Vec<u8> {
    let mut value = format!("{first_id}|").into_bytes();
    value.extend_from_slice(path);
    value
}

/// Parses the value that [`file_value`] returned: the id of the input's first game and its path. Returns `None` if the
/// value is malformed.
pub fn parse_file_value(value: &[u8]) -> Option<(u64, &[u8])> {
    let bar = value.iter().position(|byte| *byte == b'|')?;
    Some((parse_number(&value[..bar])?, &value[bar + 1..]))
}

/// Parses a decimal number, or returns `None` if it is malformed.
pub fn parse_number<N: std::str::FromStr>(value: &[u8]) -> Option<N> {
    std::str::from_utf8(value).ok()?.parse().ok()
}

/// Appends a decimal number.
#[inline]
pub(super) fn put_number(out: &mut Vec<u8>, number: impl itoa::Integer) {
    out.extend_from_slice(itoa::Buffer::new().format(number).as_bytes());
}

/// Returns `true` if all keys that begin with the digits `number` have passed once the key `next` is reached.
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
