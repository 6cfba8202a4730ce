//! The rows of a part, from its columns.

use std::ops::Range;

use parquet::schema::types::SchemaDescriptor;
use shakmaty::Color;

use super::{
    columns::{Column, Values},
    error::CountsError,
    file::Pages,
    layout::{BLACK, DRAWS, IDENTITY, KEY, LOSSES, MOVE, Row, WINS},
};
use crate::{
    position::BookMove,
    tally::{CountBatch, CountRecord, Stats},
};

/// How many rows are read at once.
pub(super) const BATCH: usize = 1 << 11;

/// The numbers of games stay below this, so that sums of them do not overflow.
pub(super) const MOST_GAMES: u64 = i64::MAX as u64;

/// Numbers of games below this fit a record together.
const SMALL: u64 = 1 << 15;

/// How many rows are looked at together, whether they are like nearly all rows.
const CHUNK: usize = 256;

/// Whether a number is a move from one square to another.
#[inline]
fn is_usual(mv: i64) -> bool {
    /// The first number after all promotions.
    const NO_STEP: u64 = 6 << 12;
    (mv.cast_unsigned() < NO_STEP) & ((mv >> 6 ^ mv) & 0x3f != 0)
}

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

impl PartColumns {
    pub(super) fn find(schema: &SchemaDescriptor) -> Result<PartColumns, CountsError> {
        let integers = |name| Column::integers(schema, name)?.ok_or(CountsError::NoColumn(name));
        Ok(PartColumns {
            key: integers(KEY)?,
            mv: integers(MOVE)?,
            games: [integers(WINS)?, integers(DRAWS)?, integers(LOSSES)?],
            black: Column::booleans(schema, BLACK)?.ok_or(CountsError::NoColumn(BLACK))?,
            identity: Column::integers(schema, IDENTITY)?,
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
}

impl GroupReader {
    pub(super) fn open(
        columns: &PartColumns,
        pages: &Pages<'_>,
    ) -> Result<GroupReader, CountsError> {
        let [wins, draws, losses] = columns.games;
        Ok(GroupReader {
            key: columns.key.open(pages)?,
            mv: columns.mv.open(pages)?,
            black: columns.black.open(pages)?,
            games: [wins.open(pages)?, draws.open(pages)?, losses.open(pages)?],
            identity: columns.identity.map(|c| c.open(pages)).transpose()?,
        })
    }

    /// Passes over this many rows.
    pub(super) fn skip(&mut self, rows: usize) -> Result<(), CountsError> {
        let GroupReader {
            key,
            mv,
            black,
            games,
            identity,
        } = self;
        let all = [key, mv, black].into_iter().chain(games).chain(identity);
        for values in all {
            values.skip(rows)?;
        }
        Ok(())
    }
}

/// Some rows, by column.
#[derive(Default)]
pub(super) struct Rows {
    /// The first of them, counted from the beginning of the part.
    pub first: u64,
    pub keys: Vec<i64>,
    pub moves: Vec<i64>,
    blacks: Vec<bool>,
    /// Wins, draws and losses.
    games: [Vec<i64>; 3],
    identities: Option<Vec<i64>>,
}

impl Rows {
    /// Replaces the rows with the next of a row group. The first is row `first` of the part.
    pub(super) fn read(
        &mut self,
        group: &mut GroupReader,
        rows: usize,
        first: u64,
    ) -> Result<(), CountsError> {
        self.first = first;
        group.key.integers(rows, first, &mut self.keys)?;
        group.mv.integers(rows, first, &mut self.moves)?;
        group.black.booleans(rows, first, &mut self.blacks)?;
        for (values, games) in group.games.iter_mut().zip(&mut self.games) {
            values.integers(rows, first, games)?;
        }
        match &mut group.identity {
            Some(values) => {
                let identities = self.identities.get_or_insert_default();
                values.integers(rows, first, identities)?;
            }
            None => self.identities = None,
        }
        Ok(())
    }

    pub(super) fn len(&self) -> usize {
        self.keys.len()
    }

    /// Drops the rows from `len` on.
    pub(super) fn truncate(&mut self, len: usize) {
        let Rows {
            first: _,
            keys,
            moves,
            blacks,
            games: [wins, draws, losses],
            identities,
        } = self;
        for numbers in [keys, moves, wins, draws, losses]
            .into_iter()
            .chain(identities)
        {
            numbers.truncate(len);
        }
        blacks.truncate(len);
    }

    /// The key and move of a row.
    pub(super) fn kind(&self, at: usize) -> Option<(i64, i64)> {
        Some((*self.keys.get(at)?, *self.moves.get(at)?))
    }

    /// The first row that should come before the one before it, by key and move.
    pub(super) fn first_out_of_order(&self) -> Option<u64> {
        let (keys, moves) = (&self.keys[..], &self.moves[..self.keys.len()]);
        let at = (1..keys.len()).find(|&at| {
            let is_behind = || keys[at - 1] == keys[at] && moves[at - 1] <= moves[at];
            keys[at - 1] >= keys[at] && !is_behind()
        })?;
        Some(self.first + at as u64)
    }

    /// Appends all rows to a batch, by their keys; returns the sum of their games.
    pub(super) fn push_to(&self, batch: &mut CountBatch) -> Result<u64, CountsError> {
        let mut sum = 0;
        for first in (0..self.len()).step_by(CHUNK) {
            let chunk = first..self.len().min(first + CHUNK);
            if self.are_usual(chunk.clone()) {
                sum += self.push_usual(chunk, batch);
            } else {
                for at in chunk {
                    let row = self.row(at)?;
                    batch.push(row.key, row.mv, row.turn, row.stats);
                    sum += row.stats.games();
                    if sum > MOST_GAMES {
                        return Err(CountsError::Overflow);
                    }
                }
            }
        }
        Ok(sum)
    }

    /// Whether all rows of a chunk have a key and a usual move, and so few games that a record holds them.
    fn are_usual(&self, chunk: Range<usize>) -> bool {
        let [wins, draws, losses] = &self.games;
        let games = wins[chunk.clone()].iter().zip(&draws[chunk.clone()]);
        let games = games.zip(&losses[chunk.clone()]);
        // Numbers below 0 are large. All are looked at, because then several are at once.
        let bits = games.fold(0, |bits, ((wins, draws), losses)| {
            bits | wins | draws | losses
        });
        let moves = &self.moves[chunk.clone()];
        let usual = moves.iter().fold(true, |all, mv| all & is_usual(*mv));
        let keys = &self.keys[chunk];
        let with_key = keys.iter().fold(true, |all, key| all & (*key != 0));
        usual & with_key & (bits.cast_unsigned() < SMALL)
    }

    /// Appends rows that are [usual](Rows::are_usual) to a batch; returns the sum of their games.
    fn push_usual(&self, chunk: Range<usize>, batch: &mut CountBatch) -> u64 {
        let [wins, draws, losses] = &self.games;
        let columns = self.keys[chunk.clone()].iter();
        let columns = columns.zip(&self.moves[chunk.clone()]);
        let columns = columns.zip(&self.blacks[chunk.clone()]);
        let columns = columns.zip(&wins[chunk.clone()]);
        let columns = columns.zip(&draws[chunk.clone()]);
        let columns = columns.zip(&losses[chunk]);
        let mut sum = 0;
        batch.extend(
            columns.map(|(((((key, mv), black), wins), draws), losses)| {
                let stats = Stats {
                    wins: wins.cast_unsigned(),
                    draws: draws.cast_unsigned(),
                    losses: losses.cast_unsigned(),
                };
                sum += stats.games();
                let turn = Color::from_white(!black);
                CountRecord::new(key.cast_unsigned(), BookMove(*mv as u16), turn, stats)
            }),
        );
        sum
    }

    /// The row at a place of the columns.
    pub(super) fn row(&self, at: usize) -> Result<Row, CountsError> {
        let key = self.keys[at].cast_unsigned();
        if key == 0 && self.identities.is_none() {
            return Err(self.cannot_be(at, KEY, 0));
        }
        let identity = self.identities.as_ref();
        Ok(Row {
            key,
            identity: identity.map_or(key, |identities| identities[at].cast_unsigned()),
            mv: self.mv(at)?,
            turn: Color::from_white(!self.blacks[at]),
            stats: self.stats(at)?,
        })
    }

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
        mv.filter(|mv| mv.is_well_formed())
            .ok_or_else(|| self.cannot_be(at, MOVE, self.moves[at]))
    }

    #[inline]
    fn stats(&self, at: usize) -> Result<Stats, CountsError> {
        let [wins, draws, losses] = &self.games;
        let games = |column, value: i64| match u64::try_from(value) {
            // Three of them and the sum so far fit 64 bits.
            Ok(games) if games > MOST_GAMES / 4 => Err(CountsError::Overflow),
            Ok(games) => Ok(games),
            Err(_) => Err(self.cannot_be(at, column, value)),
        };
        Ok(Stats {
            wins: games(WINS, wins[at])?,
            draws: games(DRAWS, draws[at])?,
            losses: games(LOSSES, losses[at])?,
        })
    }
}
