//! The rows of a part, from its columns.

use std::ops::Range;

use parquet::schema::types::SchemaDescriptor;
use shakmaty::Color;

use super::{
    columns::{Column, Holds, Values},
    error::CountsError,
    file::ParquetFile,
    layout::{
        BLACK, BOOK_ONLY, ClassRow, DRAWS, IDENTITY, KEY, LOSSES, MONTH, MOVE, RATED, RATING_GROUP,
        RATING_SUM, Row, SPEED, WINS, rating_groups,
    },
};
use crate::{
    pgn::{HIGHEST_RATING, Speed},
    position::BookMove,
    tally::{By, Class, CountBatch, Ratings, Stats},
};

/// How many rows are read at once.
const BATCH: usize = 1 << 11;

/// The numbers of games stay below this, so that sums of them do not overflow.
pub(super) const MOST_GAMES: u64 = i64::MAX as u64;

/// The most wins, draws or losses of a row: three of them and the sum so far fit 64 bits.
pub(super) const MOST_OF_RESULT: u64 = MOST_GAMES / 4;

/// Numbers of games below this are in nearly all rows.
const SMALL: u64 = 1 << 15;

/// The first number after all promotions.
const NO_STEP: u64 = 6 << 12;

/// Where the columns of a part are.
#[derive(Copy, Clone)]
pub(super) struct PartColumns {
    pub key: Column,
    pub mv: Column,
    black: Column,
    /// Wins, draws and losses.
    games: [Column; 3],
    pub identity: Option<Column>,
}

/// The classes that the columns of a file are for.
pub(super) fn classes_of(schema: &SchemaDescriptor) -> Result<By, CountsError> {
    let has = |name| Ok::<_, CountsError>(Column::find(schema, name, Holds::Integers)?.is_some());
    Ok(By {
        speed: has(SPEED)?,
        rating: has(RATING_GROUP)?,
        month: has(MONTH)?,
    })
}

impl PartColumns {
    pub(super) fn find(schema: &SchemaDescriptor) -> Result<PartColumns, CountsError> {
        let integers = |name| Column::required(schema, name, Holds::Integers);
        Ok(PartColumns {
            key: integers(KEY)?,
            mv: integers(MOVE)?,
            games: [integers(WINS)?, integers(DRAWS)?, integers(LOSSES)?],
            black: Column::required(schema, BLACK, Holds::Booleans)?,
            identity: Column::find(schema, IDENTITY, Holds::Integers)?,
        })
    }
}

/// The columns of a row group, read side by side.
pub(super) struct GroupReader {
    key: Values,
    mv: Values,
    black: Values,
    games: [Values; 3],
    identity: Option<Values>,
    classes: Option<ClassReader>,
    /// Whether rows may be of games that end in a position.
    has_ends: bool,
    /// The next row, counted from the beginning of the part, and how many are left.
    row: u64,
    pub left: usize,
}

/// The columns of classes.
struct ClassReader {
    /// Speed, rating group and month, `None` for those that are not counted apart.
    narrow: [Option<Values>; 3],
    book_only: Values,
    /// The sum of ratings, and how many they are.
    ratings: [Values; 2],
}

impl ClassReader {
    fn open(file: &ParquetFile, group: usize, by: By) -> Result<ClassReader, CountsError> {
        let open = |name, holds| Column::required(file.schema(), name, holds)?.open(file, group);
        let integers = |name| open(name, Holds::Integers);
        let of = |is_wanted: bool, name| is_wanted.then(|| integers(name)).transpose();
        Ok(ClassReader {
            narrow: [
                of(by.speed, SPEED)?,
                of(by.rating, RATING_GROUP)?,
                of(by.month, MONTH)?,
            ],
            book_only: open(BOOK_ONLY, Holds::Booleans)?,
            ratings: [integers(RATING_SUM)?, integers(RATED)?],
        })
    }
}

/// Some rows, by column.
#[derive(Default)]
pub(super) struct Rows {
    /// The first of them, counted from the beginning of the part.
    pub first: u64,
    pub keys: Vec<i64>,
    pub moves: Vec<i64>,
    pub blacks: Vec<bool>,
    /// Wins, draws and losses.
    games: [Vec<i64>; 3],
    pub identities: Vec<i64>,
    /// Speeds, rating groups and months, none for those that are not read.
    narrow: [Vec<i64>; 3],
    book_only: Vec<bool>,
    ratings: [Vec<i64>; 2],
    has_ends: bool,
}

impl GroupReader {
    /// Opens a row group that begins with `row` of the part, with the columns of these classes.
    pub(super) fn open(
        file: &ParquetFile,
        group: usize,
        row: u64,
        by: By,
    ) -> Result<GroupReader, CountsError> {
        let columns = PartColumns::find(file.schema())?;
        let open = |column: Column| column.open(file, group);
        let [wins, draws, losses] = columns.games;
        Ok(GroupReader {
            key: open(columns.key)?,
            mv: open(columns.mv)?,
            black: open(columns.black)?,
            games: [open(wins)?, open(draws)?, open(losses)?],
            identity: columns.identity.map(open).transpose()?,
            classes: (!by.is_none())
                .then(|| ClassReader::open(file, group, by))
                .transpose()?,
            // Without classes, a column of another type is none of ours.
            has_ends: Column::find(file.schema(), BOOK_ONLY, Holds::Booleans)
                .is_ok_and(|column| column.is_some()),
            row,
            left: file.rows(group)?,
        })
    }

    /// Replaces `out` with the next rows, some thousand of them; `false` at the end.
    pub(super) fn read(&mut self, out: &mut Rows) -> Result<bool, CountsError> {
        let (rows, first) = (self.left.min(BATCH), self.row);
        if rows == 0 {
            return Ok(false);
        }
        (out.first, out.has_ends) = (first, self.has_ends);
        self.key.integers(rows, first, &mut out.keys)?;
        self.mv.integers(rows, first, &mut out.moves)?;
        self.black.booleans(rows, first, &mut out.blacks)?;
        for (values, games) in self.games.iter_mut().zip(&mut out.games) {
            values.integers(rows, first, games)?;
        }
        match &mut self.identity {
            Some(values) => values.integers(rows, first, &mut out.identities)?,
            None => out.identities.clear(),
        }
        if let Some(classes) = &mut self.classes {
            for (values, numbers) in classes.narrow.iter_mut().zip(&mut out.narrow) {
                if let Some(values) = values {
                    values.integers(rows, first, numbers)?;
                }
            }
            classes
                .book_only
                .booleans(rows, first, &mut out.book_only)?;
            for (values, numbers) in classes.ratings.iter_mut().zip(&mut out.ratings) {
                values.integers(rows, first, numbers)?;
            }
        }
        self.row += rows as u64;
        self.left -= rows;
        Ok(true)
    }
}

impl Rows {
    /// Appends some rows with moves to a batch, by their keys; returns the sum of their games.
    pub(super) fn push_to(
        &self,
        range: Range<usize>,
        batch: &mut CountBatch,
    ) -> Result<u64, CountsError> {
        let [wins, draws, losses] = self.games.each_ref().map(|games| &games[range.clone()]);
        let games = wins.iter().zip(draws).zip(losses);
        let moves = self.moves[range.clone()].iter();
        let rows = self.keys[range.clone()].iter().zip(moves);
        let rows = rows.zip(&self.blacks[range.clone()]).zip(games);
        let mut sum = 0;
        for (at, (((key, mv), black), ((wins, draws), losses))) in range.zip(rows) {
            let is_move = (*mv as u64) < NO_STEP && (mv >> 6 ^ mv) & 0x3f != 0;
            // Numbers below 0 are large.
            let is_usual = *key != 0 && is_move && ((wins | draws | losses) as u64) < SMALL;
            if !is_usual && self.row(at)?.mv == BookMove::NONE {
                continue;
            }
            let stats = Stats {
                wins: wins.cast_unsigned(),
                draws: draws.cast_unsigned(),
                losses: losses.cast_unsigned(),
            };
            sum += stats.games();
            if sum > MOST_GAMES {
                return Err(CountsError::Overflow);
            }
            let turn = Color::from_white(!black);
            batch.push(key.cast_unsigned(), BookMove(*mv as u16), turn, stats);
        }
        Ok(sum)
    }

    /// A row by its place among these.
    #[inline]
    pub(super) fn row(&self, at: usize) -> Result<Row, CountsError> {
        let key = self.keys[at].cast_unsigned();
        if key == 0 && self.identities.is_empty() {
            return Err(self.cannot_be(at, KEY, 0));
        }
        let identity = self.identities.get(at);
        Ok(Row {
            key,
            identity: identity.map_or(key, |identity| identity.cast_unsigned()),
            mv: self.mv(at)?,
            turn: Color::from_white(!self.blacks[at]),
            stats: self.stats(at)?,
        })
    }

    /// A row with its class, if classes were read.
    #[inline]
    pub(super) fn class_row(&self, at: usize) -> Result<ClassRow, CountsError> {
        let row = self.row(at)?;
        Ok(ClassRow {
            row,
            class: self.class(at)?,
            ratings: self.ratings(at, row.stats.games())?,
        })
    }

    #[inline]
    fn class(&self, at: usize) -> Result<Class, CountsError> {
        let [speeds, groups, months] = self
            .narrow
            .each_ref()
            .map(|numbers| numbers.get(at).copied());
        let (speed, floor, month) = (
            speeds.unwrap_or(0),
            groups.unwrap_or(0),
            months.unwrap_or(0),
        );
        if !(0..Speed::ALL.len() as i64).contains(&speed) {
            return Err(self.cannot_be(at, SPEED, speed));
        }
        let is_it = |known: i32| i64::from(known) == floor;
        let group = groups.map_or(Some(0), |_| rating_groups().position(is_it));
        let Some(group) = group else {
            return Err(self.cannot_be(at, RATING_GROUP, floor));
        };
        let is_month = month == 0 || (100..=999_912).contains(&month) && month % 100 <= 12;
        if !is_month {
            return Err(self.cannot_be(at, MONTH, month));
        }
        Ok(Class {
            speed: speed as u8,
            group: group as u8,
            month: month as u32,
            book_only: self.book_only.get(at).copied().unwrap_or(false),
        })
    }

    /// The ratings of a row of some games.
    #[inline]
    fn ratings(&self, at: usize, games: u64) -> Result<Ratings, CountsError> {
        let [sum, rated] = self
            .ratings
            .each_ref()
            .map(|numbers| numbers.get(at).copied().unwrap_or(0));
        let rated = match u64::try_from(rated) {
            Ok(rated) if rated <= games => rated,
            _ => return Err(self.cannot_be(at, RATED, rated)),
        };
        match u64::try_from(sum) {
            Ok(sum) if (rated..=rated.saturating_mul(HIGHEST_RATING.into())).contains(&sum) => {
                Ok(Ratings { sum, games: rated })
            }
            _ => Err(self.cannot_be(at, RATING_SUM, sum)),
        }
    }

    #[cold]
    fn cannot_be(&self, at: usize, column: &'static str, value: i64) -> CountsError {
        CountsError::Value {
            column,
            row: self.first + at as u64,
            value,
        }
    }

    #[inline]
    fn mv(&self, at: usize) -> Result<BookMove, CountsError> {
        let mv = u16::try_from(self.moves[at]).ok().map(BookMove);
        let is_end = |mv| mv == BookMove::NONE && self.has_ends;
        mv.filter(|mv| mv.is_well_formed() || is_end(*mv))
            .ok_or_else(|| self.cannot_be(at, MOVE, self.moves[at]))
    }

    #[inline]
    fn stats(&self, at: usize) -> Result<Stats, CountsError> {
        let [wins, draws, losses] = &self.games;
        let games = |column, value: i64| match u64::try_from(value) {
            Ok(games) if games <= MOST_OF_RESULT => Ok(games),
            _ => Err(self.cannot_be(at, column, value)),
        };
        Ok(Stats {
            wins: games(WINS, wins[at])?,
            draws: games(DRAWS, draws[at])?,
            losses: games(LOSSES, losses[at])?,
        })
    }
}
