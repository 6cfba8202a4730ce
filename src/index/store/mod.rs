//! The [explorer](crate::explorer)'s index: its keys and values, and writing, reading and merging them.
//!
//! An index of games contains the entries about inputs and the variant that the [index of the
//! fork](super::layout) contains, and the entries in this table. Keys that begin with `x` contain binary numbers,
//! which are big-endian, so that LevelDB sorts them by value:
//!
//! | key | value |
//! |---|---|
//! | `options_<i>` | the options that decided which games of an input are indexed, such as `--min-elo 2200`; absent if there are none |
//! | `untagged_variant_<i>` | the variant of an input's games without a `Variant` tag; absent for standard chess |
//! | `xg`, 4 bytes | rows of games, see [`game_rows`] |
//! | `xh`, 4 bytes | details of games, see [`game_details`] |
//! | `xn`, 4 bytes | names, see [`names`] |
//! | `xp`, 8 bytes of a [`ListKey`], byte 255 | a page of lists, see [`lists`]; the key contains the greatest subject that the page may contain |
//! | `xp`, 8 bytes of a [`ListKey`], byte 0, 4 bytes | a chunk of a list that is too long for a page; the 4 bytes are the number of the chunk |
//! | `xp`, 8 bytes of a [`ListKey`], byte 1, a [`Period`] | the results of the games of such a list in a period, see [`periods`]. The period is encoded as byte 0 for all time; byte 1 and 2 bytes for a year; or byte 2, 2 bytes for the year and 1 byte for the month |
//! | `xz` | the description of these data, see [`Contents`] |
//!
//! An index of counts contains neither games nor any of these keys. It contains these instead:
//!
//! | key | value |
//! |---|---|
//! | `xq`, 8 bytes of a [`ListKey`], byte 255 | a page of positions, see [`count_pages`]; the key contains the greatest subject that the page may contain |
//! | `xq`, 8 bytes of a [`ListKey`], byte 1, a [`Period`] | the rows of a period, for a position that has too many rows for a page. See [`periods`] |
//! | `xy` | the description of the counts, see [`CountedContents`] |
//!
//! An index of counts is always for standard chess.
//!
//! While games are read, `GameFacts` and `ListRecord`s are collected. `StoredGames` numbers the names and stores the
//! rows and details. `ListBuilder` turns sorted records into pages and chunks of lists, and into the results by period
//! of long lists. `CountPageBuilder` does the same for rows of counts. `NameReader` and the methods of
//! [`Index`](super::Index) read the data.

mod best;
mod bits;
mod contents;
pub mod count_pages;
pub mod game_details;
pub mod game_rows;
mod games;
pub mod list_record;
pub mod lists;
pub mod names;
pub mod periods;
mod read;
pub mod results;

#[cfg(test)]
pub(in crate::index) use self::games::facts_of;
pub(crate) use self::{
    best::Best,
    games::{GameFacts, StoredGames},
    list_record::ListRecord,
    names::NameReader,
    read::{ListLocation, StoredPart},
};
pub use self::{
    contents::{Contents, CountedContents, CountsSources},
    game_rows::{EcoNumber, GameRow, SiteId},
    list_record::{ListKey, Paging},
};
pub(super) use self::{
    count_pages::CountPageBuilder,
    lists::{ListBuilder, list_entries},
};

use self::results::Period;

/// The LevelDB key of the [`Contents`], the description of an explorer's index of games. Other indexes do not
/// contain it.
pub const CONTENTS: &[u8] = b"xz";

/// The LevelDB key of the [`CountedContents`], the description of an index of counts. An index of games does not
/// contain it.
pub const COUNTED: &[u8] = b"xy";

/// Returns the LevelDB key of entry `number` of the game rows. Entries are numbered from 0.
pub fn rows_key(number: u32) -> Vec<u8> {
    [b"xg", &number.to_be_bytes()[..]].concat()
}

/// Returns the LevelDB key of entry `number` of the game details. Entries are numbered from 0.
pub fn details_key(number: u32) -> Vec<u8> {
    [b"xh", &number.to_be_bytes()[..]].concat()
}

/// Returns the LevelDB key of entry `number` of the player and event names. Entries are numbered from 0.
pub fn names_key(number: u32) -> Vec<u8> {
    [b"xn", &number.to_be_bytes()[..]].concat()
}

/// The prefix of the LevelDB keys under which an index of games stores its lists, and the results by period of long
/// lists.
pub const LISTS: &[u8; 2] = b"xp";

/// The prefix of the LevelDB keys under which an index of counts stores the counts of positions. Positions with very
/// many rows have an entry for each period.
pub const COUNTS: &[u8; 2] = b"xq";

/// Returns the LevelDB key of a page, an entry that contains several lists or positions. `prefix` is the prefix:
/// [`LISTS`] or [`COUNTS`]. `last` is the greatest list key that belongs to the page.
pub fn page_key(prefix: &[u8; 2], last: ListKey) -> Vec<u8> {
    [&prefix[..], &last.0.to_be_bytes(), &[0xff]].concat()
}

/// Returns the LevelDB key of a chunk, a part of a long list. `subject` is the key of the list, and `number` is
/// the number of the chunk in this list, counted from 0.
pub fn chunk_key(subject: ListKey, number: u32) -> Vec<u8> {
    [&subject_start(subject)[..], &[0], &number.to_be_bytes()].concat()
}

/// Returns the LevelDB key of the results of a position in a period (all time, a year or a month). `prefix` is the
/// prefix: [`LISTS`] for an index of games, or [`COUNTS`] for an index of counts. `subject` is the list key of the
/// position.
pub fn period_key(prefix: &[u8; 2], subject: ListKey, period: Period) -> Vec<u8> {
    let subject = subject.0.to_be_bytes();
    [&prefix[..], &subject, &[1], &period.key_bytes()].concat()
}

/// The kind of an entry of the explorer's lists or counts, as its LevelDB key states it.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) enum ListEntry {
    /// A page, with the greatest list key that belongs to the page.
    Page(ListKey),
    /// A chunk of a long list, with the key of the list.
    Chunk(ListKey),
    /// The results of a position in a period.
    Period,
}

/// Parses the LevelDB key of a page, a chunk of a list, or the results of a period. `prefix` is the prefix of the
/// key: [`LISTS`] or [`COUNTS`]. Returns `None` for any other key.
pub(super) fn list_entry(prefix: &[u8; 2], key: &[u8]) -> Option<ListEntry> {
    let (subject, rest) = key.strip_prefix(prefix)?.split_first_chunk()?;
    let subject = ListKey(u64::from_be_bytes(*subject));
    match rest {
        [0xff] => Some(ListEntry::Page(subject)),
        [0, _, _, _, _] => Some(ListEntry::Chunk(subject)),
        [1, 0] | [1, 1, _, _] | [1, 2, _, _, _] => Some(ListEntry::Period),
        _ => None,
    }
}

/// Returns the common beginning of the LevelDB keys of all entries that belong to the list with the key
/// `subject`. It is less than all these keys.
pub(super) fn subject_start(subject: ListKey) -> [u8; 10] {
    let mut key = *b"xp\0\0\0\0\0\0\0\0";
    key[2..].copy_from_slice(&subject.0.to_be_bytes());
    key
}

/// Returns the list key in the LevelDB key of a page, a chunk of a list, or the results of a period. Returns
/// `None` for any other key.
pub(super) fn list_subject(key: &[u8]) -> Option<ListKey> {
    let (subject, _) = key.strip_prefix(LISTS)?.split_first_chunk()?;
    Some(ListKey(u64::from_be_bytes(*subject)))
}
