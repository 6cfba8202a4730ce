//! Decodes the rows of the Parquet files in a counts directory from their columns, and checks every value.

use std::ops::Range;

use parquet::schema::types::SchemaDescriptor;
use shakmaty::Color;

use super::{
    CountBatch, CountClass, Grouping,
    error::CountsError,
    layout::{
        BLACK, BOOK_ONLY, ClassRow, DRAWS, IDENTITY, KEY, LOSSES, MONTH, MOVE, RATING_GROUP, Row,
        SPEED, WINS, rating_groups,
    },
    parquet_file::{FoundColumn, ParquetFile, ValueType, Values},
};
use crate::{
    chess::position::BookMove,
    games::{
        pgn::Speed,
        results::{MEASURES, Mean, Means, Measure, Wdl},
    },
};

/// The number of rows that are decoded in one batch.
const ROWS_PER_BATCH: usize = 1 << 11;

/// The maximum number of games in a sum over many rows. Such a sum and the number of games in one row are less than
/// 2^63 each, so adding a row to the sum cannot overflow 64 bits.
pub(super) const MAX_TOTAL_GAMES: u64 = i64::MAX as u64;

/// The maximum number of wins, of draws and of losses in one row. Adding all three to a sum of up to
/// [`MAX_TOTAL_GAMES`] does not overflow 64 bits.
pub(super) const MAX_PER_RESULT: u64 = MAX_TOTAL_GAMES / 4;

/// A number below which wins, draws and losses are certainly valid. If all three numbers of a row are below it, as in
/// nearly all rows, the exact checks are skipped.
const SMALL_RESULT_BOUND: u64 = 1 << 15;

/// The smallest number that is too large to be a move. All moves, including promotions, are encoded as smaller numbers.
const MOVES_END: u64 = 6 << 12;

/// The columns that are read from a Parquet file of a counts directory. The column of identities, which distinguish
/// positions with equal keys, is optional.
#[derive(Copy, Clone)]
pub(super) struct PartColumns {
    pub key: FoundColumn,
    pub mv: FoundColumn,
    black: FoundColumn,
    /// The columns of wins, draws and losses.
    games: [FoundColumn; 3],
    pub identity: Option<FoundColumn>,
}

/// Returns the properties of games for which a Parquet file of a counts directory has columns: any of speed, rating
/// group and month.
///
/// # Errors
///
/// Returns an error if such a column has the wrong type or exists twice.
pub(super) fn classes_of(schema: &SchemaDescriptor) -> Result<Grouping, CountsError> {
    let has = |name| {
        Ok::<_, CountsError>(FoundColumn::find(schema, name, ValueType::Integers)?.is_some())
    };
    Ok(Grouping {
        speed: has(SPEED)?,
        rating: has(RATING_GROUP)?,
        month: has(MONTH)?,
    })
}

impl PartColumns {
    /// Finds the columns for the results of moves in the schema of a Parquet file.
    ///
    /// # Errors
    ///
    /// Returns an error if a required column is missing, or if a column has the wrong type or exists twice.
    pub(super) fn find(schema: &SchemaDescriptor) -> Result<PartColumns, CountsError> {
        let integers = |name| FoundColumn::required(schema, name, ValueType::Integers);
        Ok(PartColumns {
            key: integers(KEY)?,
            mv: integers(MOVE)?,
            games: [integers(WINS)?, integers(DRAWS)?, integers(LOSSES)?],
            black: FoundColumn::required(schema, BLACK, ValueType::Booleans)?,
            identity: FoundColumn::find(schema, IDENTITY, ValueType::Integers)?,
        })
    }
}

/// A reader of one row group in a Parquet file of a counts directory. It reads a batch of rows at a time, from all
/// requested columns.
pub(super) struct GroupReader {
    key: Values,
    mv: Values,
    black: Values,
    games: [Values; 3],
    identity: Option<Values>,
    classes: Option<ClassReader>,
    /// Whether rows without a move are valid. Such rows count games that end in a position.
    has_ends: bool,
    /// The number of the next row, counted from the beginning of the file.
    row: u64,
    /// The number of rows in the row group that have not been read yet.
    pub left: usize,
}

/// Readers of the columns of one row group for classes (speed, rating group and month) and means.
struct ClassReader {
    /// The columns of speeds, rating groups and months. A column is `None` if it was not requested.
    narrow: [Option<Values>; 3],
    book_only: Values,
    /// The two columns of each measure, or `None` if the file does not contain it.
    means: [Option<[Values; 2]>; MEASURES.len()],
}

impl ClassReader {
    /// Opens the columns of classes and means in the row group with the index `group`. `by` selects the columns of
    /// classes to open: any of speed, rating group and month.
    ///
    /// # Errors
    ///
    /// Returns an error if a column is missing or has the wrong type.
    fn open(file: &ParquetFile, group: usize, by: Grouping) -> Result<ClassReader, CountsError> {
        let open = |name, column_type| {
            FoundColumn::required(file.schema(), name, column_type)?.open(file, group)
        };
        let integers = |name| open(name, ValueType::Integers);
        let of = |is_wanted: bool, name| is_wanted.then(|| integers(name)).transpose();
        let mut means = [const { None }; MEASURES.len()];
        for (mean, Measure { columns, .. }) in means.iter_mut().zip(&MEASURES) {
            let find = |name| FoundColumn::find(file.schema(), name, ValueType::Integers);
            let [sum, known] = *columns;
            if find(sum)?.is_some() || find(known)?.is_some() {
                *mean = Some([integers(sum)?, integers(known)?]);
            }
        }
        Ok(ClassReader {
            narrow: [
                of(by.speed, SPEED)?,
                of(by.rating, RATING_GROUP)?,
                of(by.month, MONTH)?,
            ],
            book_only: open(BOOK_ONLY, ValueType::Booleans)?,
            means,
        })
    }
}

/// A batch of rows of a counts directory, stored column by column. Columns that were not read are empty, and all other
/// columns have the same length.
#[derive(Default)]
pub(super) struct ColumnBatch {
    /// The number of the first row, counted from the beginning of the file.
    pub first: u64,
    pub keys: Vec<i64>,
    pub moves: Vec<i64>,
    pub blacks: Vec<bool>,
    /// Wins, draws and losses.
    games: [Vec<i64>; 3],
    pub identities: Vec<i64>,
    /// Speeds, rating groups and months.
    narrow: [Vec<i64>; 3],
    book_only: Vec<bool>,
    /// The sums and the numbers of games of each measure.
    means: [[Vec<i64>; 2]; MEASURES.len()],
    /// Whether rows without a move are valid. Such rows count games that end in a position.
    has_ends: bool,
}

impl GroupReader {
    /// Opens the row group with the index `group`. `row` is the number of its first row, counted from the beginning of
    /// the file. `by` contains the properties of games (speed, rating group and month) whose columns are read.
    ///
    /// # Errors
    ///
    /// Returns an error if a column is missing, has the wrong type, or is damaged.
    pub(super) fn open(
        file: &ParquetFile,
        group: usize,
        row: u64,
        by: Grouping,
    ) -> Result<GroupReader, CountsError> {
        let columns = PartColumns::find(file.schema())?;
        let open = |column: FoundColumn| column.open(file, group);
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
            // Counts that are not by class may have a column `book_only` that another program added, with any type.
            has_ends: FoundColumn::find(file.schema(), BOOK_ONLY, ValueType::Booleans)
                .is_ok_and(|column| column.is_some()),
            row,
            left: file.rows(group)?,
        })
    }

    /// Replaces the content of `out` with the next batch of rows. If there are no more rows in the row group, returns
    /// `false` and leaves `out` unchanged.
    ///
    /// # Errors
    ///
    /// Returns an error if a column is damaged, contains a null, or is too short.
    pub(super) fn read(&mut self, out: &mut ColumnBatch) -> Result<bool, CountsError> {
        let (rows, first) = (self.left.min(ROWS_PER_BATCH), self.row);
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
            for (mean, columns) in classes.means.iter_mut().zip(&mut out.means) {
                columns.iter_mut().for_each(Vec::clear);
                for (values, numbers) in mean.iter_mut().flatten().zip(columns) {
                    values.integers(rows, first, numbers)?;
                }
            }
        }
        self.row += rows as u64;
        self.left -= rows;
        Ok(true)
    }
}

impl ColumnBatch {
    /// Adds the results in some rows of this batch to `batch`, a batch of results for a tally. `range` contains the
    /// indices of these rows. Skips rows without a move, which count games that ended in a position. Returns the number
    /// of games in the added rows.
    ///
    /// # Errors
    ///
    /// Returns an error if a value is invalid, or if the number of games exceeds [`MAX_TOTAL_GAMES`].
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
            let is_move = (*mv as u64) < MOVES_END && (mv >> 6 ^ mv) & 0x3f != 0;
            // A negative number becomes a large unsigned number, so the comparison rejects it.
            let is_usual =
                *key != 0 && is_move && ((wins | draws | losses) as u64) < SMALL_RESULT_BOUND;
            if !is_usual && self.row(at)?.mv == BookMove::NONE {
                continue;
            }
            let stats = Wdl {
                wins: wins.cast_unsigned(),
                draws: draws.cast_unsigned(),
                losses: losses.cast_unsigned(),
            };
            sum += stats.games();
            if sum > MAX_TOTAL_GAMES {
                return Err(CountsError::Overflow);
            }
            let turn = Color::from_white(!black);
            batch.push(key.cast_unsigned(), BookMove(*mv as u16), turn, stats);
        }
        Ok(sum)
    }

    /// Decodes the row with the index `at` in the batch, without its class (speed, rating group and month).
    ///
    /// # Errors
    ///
    /// Returns an error if a value of the row is invalid.
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

    /// Decodes the row with the index `at` in the batch, including its class (speed, rating group and month) and its
    /// means. Values whose columns were not read are 0.
    ///
    /// # Errors
    ///
    /// Returns an error if a value of the row is invalid.
    #[inline]
    pub(super) fn class_row(&self, at: usize) -> Result<ClassRow, CountsError> {
        let row = self.row(at)?;
        Ok(ClassRow {
            row,
            class: self.class(at)?,
            means: self.means(at, row.stats.games())?,
        })
    }

    /// Decodes the class (speed, rating group and month) of the row with the index `at` in the batch.
    #[inline]
    fn class(&self, at: usize) -> Result<CountClass, CountsError> {
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
        Ok(CountClass {
            speed: speed as u8,
            group: group as u8,
            month: month as u32,
            book_only: self.book_only.get(at).copied().unwrap_or(false),
        })
    }

    /// Decodes the means of the row with the index `at` in the batch. `games` is the number of games in this row.
    ///
    /// # Errors
    ///
    /// Returns an error if a measure is known in more games than the row has, or if a mean is impossible.
    #[inline]
    fn means(&self, at: usize, games: u64) -> Result<Means, CountsError> {
        let mut means = Means::default();
        for ((mean, columns), measure) in means.0.iter_mut().zip(&self.means).zip(&MEASURES) {
            let [sum, known] = columns
                .each_ref()
                .map(|numbers| numbers.get(at).copied().unwrap_or(0));
            // A negative number becomes a large unsigned number, which exceeds the number of games.
            *mean = Mean {
                sum: sum.cast_unsigned(),
                games: known.cast_unsigned(),
            };
            if mean.games > games {
                return Err(self.cannot_be(at, measure.columns[1], known));
            }
            if sum < 0 || !measure.can_be(*mean) {
                return Err(self.cannot_be(at, measure.columns[0], sum));
            }
        }
        Ok(means)
    }

    /// Creates the error for a row in which the column `column` has the invalid value `value`. `at` is the index of the
    /// row in the batch.
    #[cold]
    fn cannot_be(&self, at: usize, column: &'static str, value: i64) -> CountsError {
        CountsError::Value {
            column,
            row: self.first + at as u64,
            value,
        }
    }

    /// Decodes the move of the row with the index `at` in the batch.
    #[inline]
    fn mv(&self, at: usize) -> Result<BookMove, CountsError> {
        let mv = u16::try_from(self.moves[at]).ok().map(BookMove);
        let is_end = |mv| mv == BookMove::NONE && self.has_ends;
        mv.filter(|mv| mv.is_well_formed() || is_end(*mv))
            .ok_or_else(|| self.cannot_be(at, MOVE, self.moves[at]))
    }

    /// Decodes the wins, draws and losses of the row with the index `at` in the batch.
    #[inline]
    fn stats(&self, at: usize) -> Result<Wdl, CountsError> {
        let [wins, draws, losses] = &self.games;
        let games = |column, value: i64| match u64::try_from(value) {
            Ok(games) if games <= MAX_PER_RESULT => Ok(games),
            _ => Err(self.cannot_be(at, column, value)),
        };
        Ok(Wdl {
            wins: games(WINS, wins[at])?,
            draws: games(DRAWS, draws[at])?,
            losses: games(LOSSES, losses[at])?,
        })
    }
}
