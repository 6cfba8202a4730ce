//! The layout of counts.
//!
//! | file | what it holds |
//! |---|---|
//! | `part-NNN.parquet` | the counts, each part a range of the key |
//! | `starts.parquet` | where games started, if a `FEN` tag or a variant says so |
//! | `counts.json` | where the counts come from, and which parts there are: [`About`](super::About) |
//!
//! | column of a part | type | what it holds |
//! |---|---|---|
//! | `key` | 64-bit integer | the bits of the Polyglot key, as a signed number; 0 for a position that no book can have |
//! | `move` | 32-bit integer | the 16-bit number of the move; 0, of counts by class, for games that end in the position |
//! | `black` | boolean | whether Black is to move |
//! | `wins`, `draws`, `losses` | 64-bit integers | the games, seen from the side to move |
//! | `identity` | 64-bit integer | of variants alone: a number that tells positions of one key apart |
//! | `speed` | 32-bit integer | of counts [by](super::By) speed: 0 ultra bullet to 5 correspondence |
//! | `rating_group` | 32-bit integer | by rating: the lowest rating of the group of the mean of the known ratings, -1 if no rating is known |
//! | `month` | 32-bit integer | by month: a hundred times the year, and the month; 0 if not known |
//! | `book_only` | boolean | by any class: whether [books alone](crate::tally::Class::book_only) count the row |
//! | `rating_sum`, `rated` | 64-bit integers | by any class: the sum of the known ratings of those who moved, and how many these are |
//!
//! polybook writes a row for each move and class of each position, by the signed key, then by move, identity, and the
//! columns of the class. It reads rows in any order, several of one move, which add up, and columns that may hold nulls
//! but hold none. Columns of other names are passed over. Rows that are added up by class must be in the order of key,
//! move and identity.
//!
//! `starts.parquet` has the columns `epd`, a text, and `games`, a 64-bit integer. Several rows of one EPD add up.

use std::{ffi::OsStr, ops::Range};

use shakmaty::Color;

use crate::{
    kind,
    pgn::RatingGroup,
    position::BookMove,
    sort::SHARDS,
    tally::{By, Class, Ratings, Stats},
};

/// The file that says where the counts come from.
pub const SIDECAR: &str = kind::SIDECAR;

/// Where games started.
pub const STARTS: &str = "starts.parquet";

/// The ending of all parts.
pub const ENDING: &str = kind::ENDING;

/// The version of this layout.
pub const VERSION: u32 = 2;

/// The name of the format in a sidecar.
pub const FORMAT: &str = "polybook counts";

pub(super) const KEY: &str = "key";
pub(super) const MOVE: &str = "move";
pub(super) const BLACK: &str = "black";
pub(super) const WINS: &str = "wins";
pub(super) const DRAWS: &str = "draws";
pub(super) const LOSSES: &str = "losses";
pub(super) const IDENTITY: &str = "identity";
pub(super) const SPEED: &str = "speed";
pub(super) const RATING_GROUP: &str = "rating_group";
pub(super) const MONTH: &str = "month";
pub(super) const BOOK_ONLY: &str = "book_only";
pub(super) const RATING_SUM: &str = "rating_sum";
pub(super) const RATED: &str = "rated";
pub(super) const EPD: &str = "epd";
pub(super) const GAMES: &str = "games";

/// The schema of parts, in the language of Parquet: of variants with identities, and by classes.
pub(super) fn part_schema(with_identities: bool, by: By) -> String {
    let mut schema =
        "message counts { required int64 key; required int32 move; required boolean black; \
         required int64 wins; required int64 draws; required int64 losses;"
            .to_owned();
    if with_identities {
        schema.push_str(" required int64 identity;");
    }
    for (is_wanted, column) in [
        (by.speed, SPEED),
        (by.rating, RATING_GROUP),
        (by.month, MONTH),
    ] {
        if is_wanted {
            schema.push_str(&format!(" required int32 {column};"));
        }
    }
    if !by.is_none() {
        schema.push_str(
            " required boolean book_only; required int64 rating_sum; required int64 rated;",
        );
    }
    schema + " }"
}

/// The values of the column of rating groups, in the order of their numbers.
pub(super) fn rating_groups() -> impl Iterator<Item = i32> {
    let floors = RatingGroup::all().map(|group| group.floor() as i32);
    std::iter::once(-1).chain(floors)
}

/// The schema of starts.
pub(super) const STARTS_SCHEMA: &str =
    "message starts { required binary epd (UTF8); required int64 games; }";

/// About how many rows a part has. It decides where parts are cut, so it is part of the format.
const ROWS_OF_PART: u64 = 1 << 21;

/// The games of a move in a position.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Row {
    /// The key of the position, 0 if no book can have it.
    pub key: u64,
    /// Tells the position from others of its key. In standard chess the key itself.
    pub identity: u64,
    /// The move. [`BookMove::NONE`], of counts by class alone, for games that end in the position and never moved from it.
    pub mv: BookMove,
    /// The side to move.
    pub turn: Color,
    /// The games, seen from the side to move.
    pub stats: Stats,
}

impl Row {
    /// How many half-moves it counts.
    pub fn plies(&self) -> u64 {
        match self.mv {
            BookMove::NONE => 0,
            _ => self.stats.games(),
        }
    }
}

/// The games of a move in a position in one class.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct ClassRow {
    /// The position, the move, and the games.
    pub row: Row,
    /// The class of the games.
    pub class: Class,
    /// The known ratings of those who moved.
    pub ratings: Ratings,
}

impl From<Row> for ClassRow {
    /// A row of all classes.
    fn from(row: Row) -> ClassRow {
        ClassRow {
            row,
            class: Class::default(),
            ratings: Ratings::default(),
        }
    }
}

impl ClassRow {
    /// The place of the position and the move among all: rows of one place add up by their classes.
    pub(super) fn place(&self) -> (i64, BookMove, u64) {
        (self.row.key.cast_signed(), self.row.mv, self.row.identity)
    }
}

/// The file of a part.
pub(super) fn part_name(number: usize) -> String {
    format!("part-{number:03}{ENDING}")
}

/// Whether [`part_name`] gives a file this name.
pub(super) fn is_part_name(name: &OsStr) -> bool {
    let number = name
        .to_str()
        .and_then(|name| name.strip_prefix("part-")?.strip_suffix(ENDING));
    number
        .is_some_and(|number| number.len() >= 3 && number.bytes().all(|byte| byte.is_ascii_digit()))
}

/// Into how many parts this many rows are cut: a power of two, at most one for each shard of the sorter.
pub(super) fn part_count(rows: u64) -> usize {
    let parts = rows.div_ceil(ROWS_OF_PART).max(1).next_power_of_two();
    usize::try_from(parts).map_or(SHARDS, |parts| parts.min(SHARDS))
}

/// The shards of a part, in the order of keys as signed numbers: those that begin with a set bit come first.
pub(super) fn shards_of_part(number: usize, parts: usize) -> impl Iterator<Item = usize> {
    let each = SHARDS / parts;
    (number * each..(number + 1) * each).map(|place| (place + SHARDS / 2) % SHARDS)
}

/// The same as ranges, each in one half of the keys.
pub(super) fn ranges_of_part(number: usize, parts: usize) -> impl Iterator<Item = Range<usize>> {
    let shards: Vec<usize> = shards_of_part(number, parts).collect();
    let ranges = shards.chunk_by(|a, b| a + 1 == *b);
    let ranges: Vec<Range<usize>> = ranges
        .map(|range| range[0]..range[0] + range.len())
        .collect();
    ranges.into_iter()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_share_out_all_shards_in_signed_order() {
        for rows in [
            0,
            1,
            ROWS_OF_PART,
            ROWS_OF_PART + 1,
            5 * ROWS_OF_PART,
            u64::MAX,
        ] {
            let parts = part_count(rows);
            let shards = (0..parts).flat_map(|part| shards_of_part(part, parts));
            // A shard is the first byte of a key.
            let first_bytes: Vec<i8> = shards.map(|shard| shard as u8 as i8).collect();
            assert!(first_bytes.is_sorted(), "{rows}");
            assert_eq!(first_bytes.len(), SHARDS);
        }
        assert_eq!((part_count(0), part_count(ROWS_OF_PART + 1)), (1, 2));
    }
}
