//! Every key and value of the index, to write and to read. Numbers are decimal, keys and values
//! bytes; LevelDB keeps the keys in the order of their bytes.
//!
//! | key | value |
//! |---|---|
//! | `game_<id>_data` | 14 fields joined by a vertical bar, 15 of a game without tags, see [`GameHeader`] |
//! | `<key>` | the ids of the games that reached the position, ascending, a comma after each |
//! | `<key>_freq`, `<key>_white_score`, `<key>_draws`, `<key>_moves` | see [`PositionStats`] |
//! | `total_game_count` | how many games the input has |
//! | `pgn_filename` | absolute path of the first PGN |
//! | `pgn_file_count`, `pgn_file_<i>` | with several inputs: how many, and `<first id>\|<path>` |
//! | `variant` | the variant of the games, `auto` for several; absent for standard chess |
//!
//! The data of the [explorer](crate::explorer) come after these, under keys of bytes that begin with an `x`. Numbers
//! in them have the high byte first, so that LevelDB keeps their order:
//!
//! | key | value |
//! |---|---|
//! | `xg`, 4 bytes | rows of games, see [`rows`] |
//! | `xn`, 4 bytes | names, see [`names`] |
//! | `xp`, 8 bytes of a [`Subject`], byte 255 | a page of lists, see [`played`]; the bytes are the last subject that it may have |
//! | `xp`, 8 bytes of a [`Subject`], byte 0, 4 bytes | a chunk of a list that is not in a page, by its number |
//! | `xp`, 8 bytes of a [`Subject`], byte 1, a [`Period`] | the sums of the games of such a list, see [`sums`]: of all time byte 0; of a year byte 1 and the year in 2 bytes; of a month byte 2, the year, and the month in a byte |
//! | `xz` | what there is, see [`Contents`] |
//!
//! An index of counts has no games and none of these, but
//!
//! | key | value |
//! |---|---|
//! | `xq`, 8 bytes of a [`Subject`], byte 255 | a page of positions, see [`counted`]; the bytes are the last subject that it may have |
//! | `xq`, 8 bytes of a [`Subject`], byte 1, a [`Period`] | the rows of a period of a position that has very many; the value of all time begins with the years and months, as [`sums`] do |
//! | `xy` | what there is, see [`CountedContents`] |
//!
//! It is of standard chess.
//!
//! A decimal number sorts before the same number with an underscore after it. Between the two come all
//! numbers that begin with its digits. [`ends_before`] says when the second is due.

mod bits;
mod contents;
pub mod counted;
mod game;
mod ids;
pub mod names;
pub mod played;
pub mod rows;
mod stats;
mod subject;
pub mod sums;

pub use self::{
    contents::{AboutCounts, Contents, CountedContents},
    game::{GameHeader, GamePlace, append_start, split_start, write_game},
    ids::{IdReader, LONGEST, TOO_LONG, id_len, parse_ids, write_id},
    rows::{EcoNumber, GameRow, SiteId},
    stats::PositionStats,
    subject::Subject,
};
pub(super) use stats::joined_stats;

use self::sums::Period;
use super::leveldb::{put_varint, take_size, take_varint};

/// How many games the input has.
pub const TOTAL_GAMES: &[u8] = b"total_game_count";
/// The first input.
pub const FILE_NAME: &[u8] = b"pgn_filename";
/// How many inputs there are, if there are several.
pub const FILE_COUNT: &[u8] = b"pgn_file_count";
/// The variant of the games; absent for standard chess.
pub const VARIANT: &[u8] = b"variant";
/// A key by which front-ends recognize another layout. Never written.
pub const NUM_PASSES: &[u8] = b"numPasses";

/// The key of the explorer's [`Contents`]; absent in an index without.
pub const CONTENTS: &[u8] = b"xz";

/// The key of the [`CountedContents`] of an index of counts; absent in an index of games.
pub const COUNTED: &[u8] = b"xy";

/// The key of an entry of rows, by its number.
pub fn rows_key(number: u32) -> Vec<u8> {
    [b"xg", &number.to_be_bytes()[..]].concat()
}

/// The key of an entry of names, by its number.
pub fn names_key(number: u32) -> Vec<u8> {
    [b"xn", &number.to_be_bytes()[..]].concat()
}

/// How the keys of lists begin.
pub const LISTS: &[u8; 2] = b"xp";

/// How the keys of counted positions begin.
pub const COUNTS: &[u8; 2] = b"xq";

/// The key of a page of [`LISTS`] or [`COUNTS`], by the last subject that it may have.
pub fn page_key(of: &[u8; 2], last: Subject) -> Vec<u8> {
    [&of[..], &last.0.to_be_bytes(), &[0xff]].concat()
}

/// The key of a chunk of a list, by its number from 0.
pub fn chunk_key(subject: Subject, number: u32) -> Vec<u8> {
    [&subject_start(subject)[..], &[0], &number.to_be_bytes()].concat()
}

/// The key of the sums or rows of a period.
pub fn sums_key(of: &[u8; 2], subject: Subject, period: Period) -> Vec<u8> {
    let subject = subject.0.to_be_bytes();
    [&of[..], &subject, &[1], &period.key_bytes()].concat()
}

/// What a key of the explorer's lists or counts is of.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) enum ListKey {
    /// A page, by the last subject that it may have.
    Page(Subject),
    /// A chunk of a list.
    Chunk(Subject),
    /// Sums of a list's games, or rows of a period.
    Sums,
}

/// Reads a key of a page, a chunk or sums.
pub(super) fn list_key(of: &[u8; 2], key: &[u8]) -> Option<ListKey> {
    let (subject, rest) = key.strip_prefix(of)?.split_first_chunk()?;
    let subject = Subject(u64::from_be_bytes(*subject));
    match rest {
        [0xff] => Some(ListKey::Page(subject)),
        [0, _, _, _, _] => Some(ListKey::Chunk(subject)),
        [1, 0] | [1, 1, _, _] | [1, 2, _, _, _] => Some(ListKey::Sums),
        _ => None,
    }
}

/// The first key that an entry of a subject's list may have.
pub(super) fn subject_start(subject: Subject) -> [u8; 10] {
    let mut key = *b"xp\0\0\0\0\0\0\0\0";
    key[2..].copy_from_slice(&subject.0.to_be_bytes());
    key
}

/// The subject in the key of a page, a chunk or sums.
pub(super) fn list_subject(key: &[u8]) -> Option<Subject> {
    let (subject, _) = key.strip_prefix(LISTS)?.split_first_chunk()?;
    Some(Subject(u64::from_be_bytes(*subject)))
}

/// The id in the key of a game record.
pub(super) fn game_id(key: &[u8]) -> Option<u32> {
    parse_number(key.strip_prefix(b"game_")?.strip_suffix(b"_data")?)
}

/// The key of a game record.
pub fn game_key(id: u32) -> Vec<u8> {
    format!("game_{id}_data").into_bytes()
}

/// The id in the key of the place where a game without tags begins.
pub(super) fn start_id(key: &[u8]) -> Option<u32> {
    parse_number(key.strip_prefix(b"game_")?.strip_suffix(b"_start")?)
}

/// The key of the place where a game without tags begins. It follows that of the game record, and only an index with
/// the explorer's data has it.
pub fn start_key(id: u32) -> Vec<u8> {
    format!("game_{id}_start").into_bytes()
}

/// The key of a position's game ids, from the position's Polyglot key.
pub fn position_key(key: u64) -> Vec<u8> {
    key.to_string().into_bytes()
}

/// The key of an input's place and name.
pub fn file_key(number: usize) -> Vec<u8> {
    format!("pgn_file_{number}").into_bytes()
}

/// The value for an input.
pub fn file_value(first_id: u64, path: &[u8]) -> Vec<u8> {
    let mut value = format!("{first_id}|").into_bytes();
    value.extend_from_slice(path);
    value
}

/// Reads the value for an input: the id of its first game and its path.
pub fn parse_file_value(value: &[u8]) -> Option<(u64, &[u8])> {
    let bar = value.iter().position(|byte| *byte == b'|')?;
    Some((parse_number(&value[..bar])?, &value[bar + 1..]))
}

/// Reads a decimal number.
pub fn parse_number<N: std::str::FromStr>(value: &[u8]) -> Option<N> {
    std::str::from_utf8(value).ok()?.parse().ok()
}

/// Appends a decimal number.
#[inline]
pub(super) fn put_number(out: &mut Vec<u8>, number: impl itoa::Integer) {
    out.extend_from_slice(itoa::Buffer::new().format(number).as_bytes());
}

/// Whether everything that begins with the digits `number` has been passed when `next` comes.
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
