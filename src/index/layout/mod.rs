//! Encoding and decoding the keys and values of indexes. Keys and values are byte strings. LevelDB sorts keys by their
//! bytes.
//!
//! These entries are in the index of the LevelDB fork. Numbers in them are decimal:
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
//! The [explorer](crate::explorer)'s index of games does not contain the records of games, nor the ids and the statistics
//! of positions. It contains the other entries of this table, and these, whose keys begin with `x` and contain binary numbers, which are
//! big-endian, so that LevelDB sorts them by value:
//!
//! | key | value |
//! |---|---|
//! | `xg`, 4 bytes | rows of games, see [`rows`] |
//! | `xh`, 4 bytes | details of games, see [`details`] |
//! | `xn`, 4 bytes | names, see [`names`] |
//! | `xp`, 8 bytes of a [`Subject`], byte 255 | a page of lists, see [`played`]; the key contains the greatest subject that the page may contain |
//! | `xp`, 8 bytes of a [`Subject`], byte 0, 4 bytes | a chunk of a list that is too long for a page; the 4 bytes are the number of the chunk |
//! | `xp`, 8 bytes of a [`Subject`], byte 1, a [`Period`] | the results of the games of such a list in a period, see [`periods`]. The period is encoded as byte 0 for all time; byte 1 and 2 bytes for a year; or byte 2, 2 bytes for the year and 1 byte for the month |
//! | `xz` | the description of these data, see [`Contents`] |
//!
//! The explorer's index of counts contains neither games nor any of these keys. It contains these instead:
//!
//! | key | value |
//! |---|---|
//! | `xq`, 8 bytes of a [`Subject`], byte 255 | a page of positions, see [`counted`]; the key contains the greatest subject that the page may contain |
//! | `xq`, 8 bytes of a [`Subject`], byte 1, a [`Period`] | the rows of a period, for a position that has too many rows for a page. See [`periods`] |
//! | `xy` | the description of the counts, see [`CountedContents`] |
//!
//! An index of counts is always for standard chess.
//!
//! The key `10` of a position sorts before the keys of its statistics, such as `10_freq`. All numbers that begin with
//! the same digits, such as `105`, sort between these two. So while entries are written in order, statistics must wait
//! until these numbers have passed; [`ends_before`] tells when this is so.

mod bits;
mod contents;
pub mod counted;
pub mod details;
mod game;
mod ids;
pub mod names;
pub mod periods;
pub mod played;
pub mod results;
pub mod rows;
mod stats;
mod subject;

pub use self::{
    contents::{AboutCounts, Contents, CountedContents},
    game::{GameHeader, GamePlace, write_game},
    ids::{IdReader, LONGEST, TOO_LONG, id_len, parse_ids, write_id},
    rows::{EcoNumber, GameRow, SiteId},
    stats::PositionStats,
    subject::Subject,
};
pub(super) use stats::joined_stats;

use self::results::Period;
use super::leveldb::{put_varint, take_size, take_varint};

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

/// The key of the [`Contents`] of an explorer's index of games; absent in other indexes.
pub const CONTENTS: &[u8] = b"xz";

/// The key of the [`CountedContents`] of an index of counts; absent in an index of games.
pub const COUNTED: &[u8] = b"xy";

/// Returns the key of the entry of rows with this number.
pub fn rows_key(number: u32) -> Vec<u8> {
    [b"xg", &number.to_be_bytes()[..]].concat()
}

/// Returns the key of the entry of details with this number.
pub fn details_key(number: u32) -> Vec<u8> {
    [b"xh", &number.to_be_bytes()[..]].concat()
}

/// Returns the key of the entry of names with this number.
pub fn names_key(number: u32) -> Vec<u8> {
    [b"xn", &number.to_be_bytes()[..]].concat()
}

/// The prefix of the keys of lists, and of the results of long lists.
pub const LISTS: &[u8; 2] = b"xp";

/// The prefix of the keys of counts.
pub const COUNTS: &[u8; 2] = b"xq";

/// Returns the key of a page. `of` is [`LISTS`] or [`COUNTS`], and `last` is the greatest subject that the page may
/// contain.
pub fn page_key(of: &[u8; 2], last: Subject) -> Vec<u8> {
    [&of[..], &last.0.to_be_bytes(), &[0xff]].concat()
}

/// Returns the key of a chunk of a subject's list. Chunks of a list are numbered from 0.
pub fn chunk_key(subject: Subject, number: u32) -> Vec<u8> {
    [&subject_start(subject)[..], &[0], &number.to_be_bytes()].concat()
}

/// Returns the key of the results of a position in a period. `of` is [`LISTS`] or [`COUNTS`].
pub fn period_key(of: &[u8; 2], subject: Subject, period: Period) -> Vec<u8> {
    let subject = subject.0.to_be_bytes();
    [&of[..], &subject, &[1], &period.key_bytes()].concat()
}

/// The kind of entry that a key of the explorer's lists or counts belongs to.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) enum ListKey {
    /// A page. Contains the greatest subject that the page may contain.
    Page(Subject),
    /// A chunk of the list of a subject.
    Chunk(Subject),
    /// The results of a position in a period.
    Period,
}

/// Parses the key of a page, a chunk or a period. `of` is [`LISTS`] or [`COUNTS`]. Returns `None` for any other key.
pub(super) fn list_key(of: &[u8; 2], key: &[u8]) -> Option<ListKey> {
    let (subject, rest) = key.strip_prefix(of)?.split_first_chunk()?;
    let subject = Subject(u64::from_be_bytes(*subject));
    match rest {
        [0xff] => Some(ListKey::Page(subject)),
        [0, _, _, _, _] => Some(ListKey::Chunk(subject)),
        [1, 0] | [1, 1, _, _] | [1, 2, _, _, _] => Some(ListKey::Period),
        _ => None,
    }
}

/// Returns the smallest key that an entry of a subject's list can have.
pub(super) fn subject_start(subject: Subject) -> [u8; 10] {
    let mut key = *b"xp\0\0\0\0\0\0\0\0";
    key[2..].copy_from_slice(&subject.0.to_be_bytes());
    key
}

/// Returns the subject in the key of a page, a chunk or a period, or `None` for any other key.
pub(super) fn list_subject(key: &[u8]) -> Option<Subject> {
    let (subject, _) = key.strip_prefix(LISTS)?.split_first_chunk()?;
    Some(Subject(u64::from_be_bytes(*subject)))
}

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
