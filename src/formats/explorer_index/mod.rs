//! The keys and values of an index for the [explorer](crate::explore::explorer).
//!
//! There are two kinds of such indexes: an *index of games* contains games, and an *index of counts* contains only the
//! results of the moves in each position.
//!
//! An index of games contains the entries in this table, and the entries about inputs and the variant that the [index
//! of the fork](super::fork_index) also contains. Keys that begin with `x` contain binary numbers, which are
//! big-endian, so that LevelDB sorts them by value:
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
//! | `xz` | the description of these data, see [`IndexDescription`] |
//!
//! An index of counts contains none of these keys. It contains these instead:
//!
//! | key | value |
//! |---|---|
//! | `xq`, 8 bytes of a [`ListKey`], byte 255 | a page of positions, see [`count_pages`]; the key contains the greatest subject that the page may contain |
//! | `xq`, 8 bytes of a [`ListKey`], byte 1, a [`Period`] | the rows of a period, for a position that has too many rows for a page. See [`periods`] |
//! | `xy` | the description of the index, see [`CountedContents`] |
//!
//! An index of counts is always for standard chess.
//!
//! While games are read, `GameFacts` and `ListRecord`s are collected. `StoredGames` numbers the names and stores the
//! rows and details. `ListBuilder` turns sorted records into pages and chunks of lists, and into the results by period
//! of long lists. `CountPageBuilder` does the same for rows of counts. `NameReader` and the methods of
//! [`Index`](super::index::Index) read the data.

mod best;
mod bits;
pub mod count_pages;
pub mod game_details;
pub mod game_rows;
mod games;
pub mod list_record;
pub mod lists;
pub mod names;
pub mod periods;
pub mod results;

use serde::{Deserialize, Serialize};

#[cfg(test)]
use self::games::facts_of;
use self::results::Period;
pub(crate) use self::{
    best::Best,
    games::{GameFacts, StoredGames},
    list_record::ListRecord,
    names::NameReader,
};
pub(super) use self::{count_pages::CountPageBuilder, lists::list_entries};
pub use self::{
    game_rows::{EcoNumber, GameRow, SiteId},
    list_record::{ListKey, Paging},
};
use super::fork_index::layout::parse_number;
use crate::games::results::MEASURES;

/// The LevelDB key of the [`IndexDescription`], which only an explorer index with games contains.
pub const CONTENTS: &[u8] = b"xz";

/// The LevelDB key of the [`CountedContents`], which only an index of counts contains: an explorer index with results
/// but without games.
pub const COUNTED: &[u8] = b"xy";

/// Returns the LevelDB key of the entry with the number `number`, counted from 0, among the entries with game rows.
pub fn rows_key(number: u32) -> Vec<u8> {
    [b"xg", &number.to_be_bytes()[..]].concat()
}

/// Returns the LevelDB key of the entry with the number `number`, counted from 0, among the entries with game details.
pub fn details_key(number: u32) -> Vec<u8> {
    [b"xh", &number.to_be_bytes()[..]].concat()
}

/// Returns the LevelDB key of the entry with the number `number`, counted from 0, among the entries with player and
/// event names.
pub fn names_key(number: u32) -> Vec<u8> {
    [b"xn", &number.to_be_bytes()[..]].concat()
}

/// The prefix of the LevelDB keys under which an index of games stores its lists, and the results by period of long
/// lists.
pub const LISTS: &[u8; 2] = b"xp";

/// The prefix of the LevelDB keys under which an index of counts stores the results of positions. A position with very
/// many rows has an entry for each period.
pub const COUNTS: &[u8; 2] = b"xq";

/// Returns the LevelDB key of a page, an index entry that contains several lists or positions. `prefix` is the prefix:
/// [`LISTS`] or [`COUNTS`]. `last` is the greatest list key that belongs to the page.
pub fn page_key(prefix: &[u8; 2], last: ListKey) -> Vec<u8> {
    [&prefix[..], &last.0.to_be_bytes(), &[0xff]].concat()
}

/// Returns the LevelDB key of a chunk, a part of a long list. `subject` is the key of the list, and `number` is
/// the number of the chunk in this list, counted from 0.
pub fn chunk_key(subject: ListKey, number: u32) -> Vec<u8> {
    [&subject_start(subject)[..], &[0], &number.to_be_bytes()].concat()
}

/// Returns the LevelDB key of the results of a position in a period (all time, a year or a month). `prefix` is
/// [`LISTS`] for an index of games, or [`COUNTS`] for an index of counts. `subject` is the list key of the position.
pub fn period_key(prefix: &[u8; 2], subject: ListKey, period: Period) -> Vec<u8> {
    let subject = subject.0.to_be_bytes();
    [&prefix[..], &subject, &[1], &period.key_bytes()].concat()
}

/// The kind of an index entry with lists or results, which its LevelDB key determines.
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

/// Returns the common prefix of the LevelDB keys of all entries that belong to the list with the key `subject`. The
/// prefix sorts before all these keys.
pub(super) fn subject_start(subject: ListKey) -> [u8; 10] {
    let mut key = *b"xp\0\0\0\0\0\0\0\0";
    key[2..].copy_from_slice(&subject.0.to_be_bytes());
    key
}

/// The version of the layout of an explorer index with games that this version of polybook reads and writes.
///
/// An index contains hashes of names that [`normalized`](crate::games::pgn::normalized) has normalized. If the
/// normalization changes, the version must be increased. The version also depends on the number of [`MEASURES`],
/// because the index contains their sums.
const VERSION: u64 = 10 + MEASURES.len() as u64;

/// The description of an explorer index with games, encoded as decimal numbers that are separated by vertical bars. The
/// lists of the index each contain the items of one subject, such as the games of one position. A page is an index
/// entry that contains several lists.
///
/// | field | meaning |
/// |---|---|
/// | 0 | the version of the layout |
/// | 1 | the number of leading bits in which the keys of all lists of a page agree |
/// | 2 | the number of positions |
/// | 3 | the total number of items in all lists |
/// | 4 | the number of names |
/// | 5 | the last half-move of a game that is counted; only with `--max-ply` |
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct IndexDescription {
    /// The rule by which lists are assigned to pages.
    pub paging: Paging,
    /// The number of positions.
    pub positions: u64,
    /// The total number of items in all lists.
    pub items: u64,
    /// The number of names.
    pub names: u32,
    /// The number of half-moves after which counting stopped in each game, or `None` if all half-moves were counted.
    pub max_ply: Option<usize>,
}

impl IndexDescription {
    /// Creates a description of an index. `items` is the total number of items in all lists. `names` is the number of
    /// player and event names. If `max_ply` is not `None`, only this many half-moves of each game were counted. The
    /// caller must set the number of positions, which is 0 at first.
    pub fn new(items: u64, names: u32, max_ply: Option<usize>) -> IndexDescription {
        IndexDescription {
            paging: Paging::for_items(items),
            positions: 0,
            items,
            names,
            max_ply,
        }
    }

    /// Encodes the description as the value of a LevelDB entry.
    pub fn write(&self) -> Vec<u8> {
        let bits = self.paging.bits();
        let (positions, items, names) = (self.positions, self.items, self.names);
        let end = self.max_ply.map(|ply| format!("|{ply}"));
        let end = end.unwrap_or_default();
        format!("{VERSION}|{bits}|{positions}|{items}|{names}{end}").into_bytes()
    }

    /// Returns `true` if `value`, an encoded description of an index, states a version of the layout that this version
    /// of polybook cannot read. Returns `false` if polybook can read the version, or if `value` is malformed.
    pub fn is_of_other_version(value: &[u8]) -> bool {
        let version = value.split(|byte| *byte == b'|').next();
        version
            .and_then(parse_number)
            .is_some_and(|version: u64| version != VERSION)
    }

    /// Decodes the description of an index. Returns `None` if it is malformed, or if it states another version of the
    /// layout.
    pub fn parse(value: &[u8]) -> Option<IndexDescription> {
        let mut fields = value.split(|byte| *byte == b'|');
        let mut number = || parse_number::<u64>(fields.next()?);
        if number()? != VERSION {
            return None;
        }
        let contents = IndexDescription {
            paging: Paging::of_bits(u32::try_from(number()?).ok()?)?,
            positions: number()?,
            items: number()?,
            names: u32::try_from(number()?).ok()?,
            max_ply: match fields.next() {
                Some(ply) => Some(parse_number(ply)?),
                None => None,
            },
        };
        fields.next().is_none().then_some(contents)
    }
}

/// The version of the layout of an index of counts that this version of polybook reads and writes. The version depends
/// on the number of [`MEASURES`], because the index contains their sums.
const COUNTED_VERSION: u32 = 1 + MEASURES.len() as u32;

/// The maximum length in bytes of the encoded description of an index of counts. A longer description is rejected as
/// malformed before it is parsed.
const MAX_DESCRIPTION_BYTES: usize = 4 << 20;

/// The limits for the names of inputs in the description of an index of counts: the maximum number of names, and their
/// maximum total length in bytes. The second limit leaves room for JSON, which may encode one byte as six.
const MAX_INPUT_NAMES: (usize, usize) = (1000, 256 << 10);

/// The maximum number of games, positions or rows that the description of an index of counts may state. The limit
/// ensures that the sum of these numbers over several indexes cannot overflow.
const MAX_TOTAL: u64 = 1 << 50;

/// The description of an index of counts, encoded as JSON. Such an index contains the results of each move in each
/// position, but no games.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct CountedContents {
    version: u32,
    /// The number of leading bits in which the keys of all positions of a page agree.
    bits: u32,
    /// The number of positions.
    pub positions: u64,
    /// The number of rows of all positions.
    pub rows: u64,
    /// The first and the last year of the counted games, or `None` if no year is known.
    pub years: Option<[u16; 2]>,
    /// Whether there are rows without a move, for games that end in a position.
    #[serde(default)]
    pub has_ends: bool,
    /// The number of counted games, or `None` if it is unknown.
    pub games: Option<u64>,
    /// The minimum number of half-moves that were counted in a position. Positions with fewer half-moves were pruned.
    pub min_game: u64,
    /// The number of half-moves after which counting stopped in each game, or `None` if all half-moves were counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_ply: Option<usize>,
    /// The names of the inputs. If there are too many, the last element states how many were omitted.
    pub inputs: Vec<String>,
}

/// The origin of an index of counts, which contains results but no games: the names of the inputs, the number of games,
/// and the limits that applied when the games were counted.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct CountsSources {
    /// The number of counted games, or `None` if it is unknown.
    pub games: Option<u64>,
    /// The minimum number of half-moves that were counted in a position. Positions with fewer half-moves were pruned.
    pub min_game: u64,
    /// The number of half-moves after which counting stopped in each game, or `None` if all half-moves were counted.
    pub max_ply: Option<usize>,
    /// The names of the inputs.
    pub inputs: Vec<String>,
}

impl CountedContents {
    /// Creates the description of an index of counts. `paging` determines which positions share a page, an index entry
    /// that contains several positions. `about` describes the origin of the index. The caller must set the numbers of
    /// positions and rows, which are 0 at first.
    pub fn new(paging: Paging, about: CountsSources) -> CountedContents {
        let mut inputs = about.inputs;
        let mut bytes = 0;
        let fit = inputs.iter().take(MAX_INPUT_NAMES.0).take_while(|name| {
            bytes += name.len();
            bytes <= MAX_INPUT_NAMES.1
        });
        let fit = fit.count();
        if fit < inputs.len() {
            let more = format!("and {} more", inputs.len() - fit);
            inputs.splice(fit.., [more]);
        }
        CountedContents {
            version: COUNTED_VERSION,
            bits: paging.bits(),
            positions: 0,
            rows: 0,
            years: None,
            has_ends: false,
            games: about.games.filter(|games| *games <= MAX_TOTAL),
            min_game: about.min_game,
            max_ply: about.max_ply,
            inputs,
        }
    }

    /// Encodes the description as JSON, for the value of a LevelDB entry.
    #[expect(clippy::missing_panics_doc, reason = "numbers and texts are JSON")]
    pub fn write(&self) -> Vec<u8> {
        serde_json::to_vec(self).expect("numbers and texts are JSON")
    }

    /// Decodes the description of an index of counts. Returns `None` if it is malformed, or if it states another
    /// version of the layout.
    pub fn parse(value: &[u8]) -> Option<CountedContents> {
        if value.len() > MAX_DESCRIPTION_BYTES {
            return None;
        }
        let contents: CountedContents = serde_json::from_slice(value).ok()?;
        let numbers = [
            contents.positions,
            contents.rows,
            contents.games.unwrap_or(0),
        ];
        let are_years = |[first, last]: [u16; 2]| 1 <= first && first <= last && last <= 9999;
        let is_readable = contents.version == COUNTED_VERSION
            && numbers.iter().all(|number| *number <= MAX_TOTAL)
            && contents.years.is_none_or(are_years);
        (is_readable && Paging::of_bits(contents.bits).is_some()).then_some(contents)
    }

    /// Returns the rule by which the index groups positions in pages. A page is an index entry with several positions.
    ///
    /// # Panics
    ///
    /// Panics if the description was neither created by [`new`](CountedContents::new) nor decoded by
    /// [`parse`](CountedContents::parse).
    pub fn paging(&self) -> Paging {
        Paging::of_bits(self.bits).expect("it was checked")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counted_contents_come_back() {
        let about = CountsSources {
            games: Some(7),
            min_game: 5,
            max_ply: Some(30),
            inputs: vec!["a.pgn".to_owned()],
        };
        let contents = CountedContents {
            years: Some([1999, 2024]),
            has_ends: true,
            ..CountedContents::new(Paging::for_items(1 << 20), about)
        };
        assert_eq!(
            CountedContents::parse(&contents.write()),
            Some(contents.clone())
        );
        assert_eq!(contents.paging(), Paging::for_items(1 << 20));
        let of = |change: fn(&mut CountedContents)| {
            let mut other = contents.clone();
            change(&mut other);
            CountedContents::parse(&other.write())
        };
        let changes: [fn(&mut CountedContents); 8] = [
            |other| other.version = 1,
            |other| other.bits = 99,
            |other| other.positions = u64::MAX,
            |other| other.rows = MAX_TOTAL + 1,
            |other| other.games = Some(u64::MAX),
            |other| other.years = Some([9999, 0]),
            |other| other.years = Some([2000, 10_000]),
            |other| other.inputs = vec!["a".repeat(MAX_DESCRIPTION_BYTES)],
        ];
        for change in changes {
            assert_eq!(of(change), None);
        }
        assert_eq!(CountedContents::parse(b"{}"), None);
    }

    #[test]
    fn many_names_of_inputs_are_shortened() {
        let inputs_of = |inputs: Vec<String>| {
            let about = CountsSources {
                games: Some(u64::MAX),
                inputs,
                ..CountsSources::default()
            };
            let contents = CountedContents::new(Paging::for_items(1), about);
            let read = CountedContents::parse(&contents.write()).unwrap();
            assert_eq!(read.games, None);
            read.inputs
        };
        let many = inputs_of((0..1003).map(|number| number.to_string()).collect());
        assert_eq!(
            (many.len(), &*many[999], &*many[1000]),
            (1001, "999", "and 3 more")
        );
        assert_eq!(inputs_of(vec!["\u{1}".repeat(1 << 20)]), ["and 1 more"]);
    }

    /// Ties the normalization of names to the version of the layout, because an index contains hashes of normalized
    /// names. If this test fails because names are normalized in another way, increase `VERSION`, and `GENERATION` in
    /// `serve::cache`.
    #[test]
    fn names_are_folded_as_the_layout_requires() {
        let names = [
            "Weiß,  Jürgen",
            "Σίσυφος",
            "Işık",
            "İnan",
            "Nguye\u{302}\u{303}n",
            "Ἀΐδης",
            "Æther \\\"X\\\"",
            "Tal , M.N.",
        ];
        let folded = names.map(crate::games::pgn::normalized);
        let of_layout = [
            "weiss,jürgen",
            "σίσυφοσ",
            "işik",
            "i\u{307}nan",
            "nguyễn",
            "ἀΐδησ",
            "æther \"x\"",
            "tal,m n",
        ];
        let version = VERSION - MEASURES.len() as u64;
        assert_eq!((version, folded), (10, of_layout.map(str::to_owned)));
    }

    #[test]
    fn contents_come_back() {
        let contents = IndexDescription {
            paging: Paging::for_items(5_000_000),
            positions: 4_000_000,
            items: 5_000_000,
            names: 12,
            max_ply: None,
        };
        let text = format!("{VERSION}|16|4000000|5000000|12");
        assert_eq!(contents.write(), text.as_bytes());
        for max_ply in [None, Some(30)] {
            let contents = IndexDescription {
                max_ply,
                ..contents
            };
            assert_eq!(IndexDescription::parse(&contents.write()), Some(contents));
        }
        for (malformed, is_other) in [
            (String::new(), false),
            ("x".to_owned(), false),
            ("7".to_owned(), true),
            ("7|16|1|1|1".to_owned(), true),
            (format!("{VERSION}|99|1|1|1"), false),
            (format!("{VERSION}|16|1|1|x"), false),
            (format!("{VERSION}|16|1|1|1|"), false),
            (format!("{VERSION}|16|1|1|1|1|1"), false),
        ] {
            let value = malformed.as_bytes();
            assert_eq!(IndexDescription::parse(value), None, "{malformed}");
            assert_eq!(
                IndexDescription::is_of_other_version(value),
                is_other,
                "{malformed}"
            );
        }
    }
}
