//! The files and columns of a counts directory.
//!
//! | file | content |
//! |---|---|
//! | `part-NNN.parquet` | the results of the moves; each file contains a range of keys |
//! | `_starts.pq` | the positions in which games started, if a `FEN` tag or the variant determines them |
//! | `_positions.pq`, `_moves.pq` | optional: [names](super::Names) of positions and moves |
//! | `_counts.json` | which games were counted, and a list of the other files: [`CountsOrigin`](super::CountsOrigin) |
//!
//! Programs that read all Parquet files of a directory ignore files whose names begin with an underscore or do not end
//! in `.parquet`, so they read only the files `part-NNN.parquet`.
//!
//! | column of `part-NNN.parquet` | type | content |
//! |---|---|---|
//! | `key` | 64-bit integer | the Polyglot key as a signed number; 0 for a position that no book can contain |
//! | `move` | 32-bit integer | the 16-bit Polyglot move; if grouped by class, 0 for games that end in the position |
//! | `black` | boolean | `true` if Black is to move |
//! | `wins`, `draws`, `losses` | 64-bit integers | the numbers of games, from the view of the side to move |
//! | `identity` | 64-bit integer | only for games of chess variants: a number that distinguishes positions with equal keys |
//! | `speed` | 32-bit integer | if [grouped](super::Grouping) by speed: 0 (ultra bullet) to 5 (correspondence) |
//! | `rating_group` | 32-bit integer | if grouped by rating: the lowest rating of the game's group, or -1 if unknown |
//! | `month` | 32-bit integer | if grouped by month: the year times 100, plus the month; 0 if unknown |
//! | `book_only` | boolean | if grouped by class: `true` for [books only](super::CountClass::book_only) |
//! | two columns for each of the [`MEASURES`] | 64-bit integers | if grouped by class: the sum of the known numbers, and the number of games in which the number is known |
//!
//! The rating group of a game is the group that contains the mean of its known ratings.
//!
//! polybook writes one row for each position, move and class (speed, rating group and month). The rows are sorted by
//! signed key, move, identity, and the columns of the class.
//!
//! polybook reads rows in any order, except that rows that are grouped by class must be sorted by key, move and
//! identity. Rows of the same position and move are added up. Columns may be nullable but must not contain nulls.
//! Unknown columns are ignored. If the columns of a measure are missing, its numbers are unknown.
//!
//! `_positions.pq` has the columns `key`, `fen`, `eco` and `opening`, and `_moves.pq` has the columns `key`, `move`,
//! `san` and `uci`. The names are strings; `eco` and `opening` are null for positions without a name. For games of
//! chess variants, both tables also have the column `identity` after `key`. The tables are sorted by signed key.
//!
//! `_starts.pq` has the columns `epd` (a string) and `games` (a 64-bit integer). Rows with the same EPD are added up.

use std::{ffi::OsStr, ops::Range};

use shakmaty::Color;

use super::{CountClass, Grouping};
use crate::{
    chess::position::BookMove,
    games::{
        pgn::RatingGroup,
        results::{MEASURES, Means, Wdl},
    },
    kind,
    storage::sort::SHARDS,
};

/// The name of the file that describes a counts directory and lists its other files.
pub const SIDECAR: &str = kind::SIDECAR;

/// The name of the file that lists the positions in which games started.
pub const STARTS: &str = "_starts.pq";

/// The name of the file that gives the FEN and the opening of each counted position.
pub const POSITIONS: &str = "_positions.pq";

/// The name of the file that gives each counted move in SAN and UCI notation.
pub const MOVES: &str = "_moves.pq";

/// The file name extension of Parquet files, including the dot.
pub const ENDING: &str = kind::ENDING;

/// The current version of the format of a counts directory. It is written to `_counts.json`.
pub const VERSION: u32 = 2;

/// The name that identifies the format of a counts directory. It is written to `_counts.json`.
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
pub(super) const EPD: &str = "epd";
pub(super) const GAMES: &str = "games";
pub(super) const FEN: &str = "fen";

/// Returns the Parquet schema of a file with the results of moves. The schema contains a column of identities if
/// `with_identities` is `true`, and columns for the properties of games in `by`. An identity is a hash that
/// distinguishes positions with equal keys.
pub(super) fn part_schema(with_identities: bool, by: Grouping) -> String {
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
        schema.push_str(" required boolean book_only;");
        for column in MEASURES.iter().flat_map(|measure| measure.columns) {
            schema.push_str(&format!(" required int64 {column};"));
        }
    }
    schema + " }"
}

/// Returns an iterator over the valid values of the column `rating_group`, in ascending order. The first value is -1,
/// for an unknown rating, and the others are the lowest ratings of the groups.
pub(super) fn rating_groups() -> impl Iterator<Item = i32> {
    let floors = RatingGroup::all().map(|group| group.floor() as i32);
    std::iter::once(-1).chain(floors)
}

/// Returns the Parquet schema of the table of positions. The schema contains a column of identities if
/// `with_identities` is `true`, and columns for the FENs and the openings if these are requested.
pub(super) fn position_schema(with_identities: bool, with_fen: bool, with_opening: bool) -> String {
    let mut schema = "message positions { required int64 key;".to_owned();
    for (is_wanted, columns) in [
        (with_identities, " required int64 identity;"),
        (with_fen, " optional binary fen (UTF8);"),
        (
            with_opening,
            " optional binary eco (UTF8); optional binary opening (UTF8);",
        ),
    ] {
        if is_wanted {
            schema.push_str(columns);
        }
    }
    schema + " }"
}

/// Returns the Parquet schema of the table of moves. The schema contains a column of identities if `with_identities` is
/// `true`.
pub(super) fn move_schema(with_identities: bool) -> String {
    let identity = if with_identities {
        " required int64 identity;"
    } else {
        ""
    };
    format!(
        "message moves {{ required int64 key;{identity} required int32 move; optional binary san (UTF8); \
         optional binary uci (UTF8); }}"
    )
}

/// The Parquet schema of `_starts.pq`, which lists the positions in which games started.
pub(super) const STARTS_SCHEMA: &str =
    "message starts { required binary epd (UTF8); required int64 games; }";

/// The intended number of rows in a Parquet file with the results of moves. This number is part of the format, because
/// it determines into how many files the rows are divided.
const ROWS_PER_PART: u64 = 1 << 21;

/// A row of a counts directory. It contains the results of one move in one position.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Row {
    /// The key of the position, or 0 if no book can contain it.
    pub key: u64,
    /// A number that distinguishes positions with equal keys. In standard chess it equals the key.
    pub identity: u64,
    /// The move, or [`BookMove::NONE`] for games that ended in the position. Only directories that are grouped by class
    /// contain rows without a move.
    pub mv: BookMove,
    /// The side to move.
    pub turn: Color,
    /// The results, from the view of the side to move.
    pub stats: Wdl,
}

impl Row {
    /// Returns the number of half-moves counted in the row. If the row has a move, this is the number of games in which
    /// the move was played. A row without a move counts games that ended in the position, so the result is 0.
    pub fn plies(&self) -> u64 {
        match self.mv {
            BookMove::NONE => 0,
            _ => self.stats.games(),
        }
    }
}

/// A row of a counts directory that is grouped by class. It contains the results of one move in one position, in the
/// games of one class. A class consists of a speed, a rating group and a month.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct ClassRow {
    /// The position, the move, and the results.
    pub row: Row,
    /// The class of the games.
    pub class: CountClass,
    /// The means of the measures, such as the ratings, over the games.
    pub means: Means,
}

impl From<Row> for ClassRow {
    /// Converts a row without a class to a row with a class. The class and the means are 0.
    fn from(row: Row) -> ClassRow {
        ClassRow {
            row,
            class: CountClass::default(),
            means: Means::default(),
        }
    }
}

impl ClassRow {
    /// Adds to the row the results and means of other games that have the same position, move and class.
    pub(super) fn add(&mut self, stats: Wdl, means: Means) {
        self.row.stats += stats;
        self.means += means;
    }

    /// Returns the number of games in the row and the sum of each measure. The totals of these numbers over all rows
    /// must not overflow.
    pub(super) fn totals(&self) -> [u64; 1 + MEASURES.len()] {
        let mut totals = [self.row.stats.games(); 1 + MEASURES.len()];
        for (total, mean) in totals[1..].iter_mut().zip(self.means.0) {
            *total = mean.sum;
        }
        totals
    }

    /// Returns the values by which rows are sorted: the position key as a signed number, the move, and the identity.
    /// The identity is a hash that distinguishes positions with equal keys.
    pub(super) fn sort_key(&self) -> (i64, BookMove, u64) {
        (self.row.key.cast_signed(), self.row.mv, self.row.identity)
    }
}

/// Returns the name of the Parquet file with the number `number`, such as `part-007.parquet` for 7.
pub(super) fn part_name(number: usize) -> String {
    format!("part-{number:03}{ENDING}")
}

/// Returns `true` if [`part_name`] returns `name` for some number.
pub(super) fn is_part_name(name: &OsStr) -> bool {
    let number = name
        .to_str()
        .and_then(|name| name.strip_prefix("part-")?.strip_suffix(ENDING));
    number
        .is_some_and(|number| number.len() >= 3 && number.bytes().all(|byte| byte.is_ascii_digit()))
}

/// Returns the number of Parquet files into which `rows` rows of a counts directory are divided. `rows` may be
/// approximate. The result is a power of two, and at most [`SHARDS`].
pub(super) fn part_count(rows: u64) -> usize {
    let parts = rows.div_ceil(ROWS_PER_PART).max(1).next_power_of_two();
    usize::try_from(parts).map_or(SHARDS, |parts| parts.min(SHARDS))
}

/// Returns the indices of the shards in the Parquet file with the number `number`, counted from 0. `parts` is the
/// number of Parquet files. A shard is a 256th of the range of keys.
///
/// The shards are in ascending order of keys as signed numbers. Keys whose highest bit is set are negative as signed
/// numbers, so their shards come first.
pub(super) fn shards_of_part(number: usize, parts: usize) -> impl Iterator<Item = usize> {
    let each = SHARDS / parts;
    (number * each..(number + 1) * each).map(|place| (place + SHARDS / 2) % SHARDS)
}

/// Returns the shards in the Parquet file with the number `number`, counted from 0, as ranges of shard indices. `parts`
/// is the number of Parquet files. A shard is a 256th of the range of keys. The files are sorted by keys as signed
/// numbers, so a file that contains both negative and positive keys gets two ranges.
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
            ROWS_PER_PART,
            ROWS_PER_PART + 1,
            5 * ROWS_PER_PART,
            u64::MAX,
        ] {
            let parts = part_count(rows);
            let shards = (0..parts).flat_map(|part| shards_of_part(part, parts));
            // The number of a shard is the first byte of its keys.
            let first_bytes: Vec<i8> = shards.map(|shard| shard as u8 as i8).collect();
            assert!(first_bytes.is_sorted(), "{rows}");
            assert_eq!(first_bytes.len(), SHARDS);
        }
        assert_eq!((part_count(0), part_count(ROWS_PER_PART + 1)), (1, 2));
    }
}
