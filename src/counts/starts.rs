//! The file `starts.parquet`: the positions in which games started.

use std::{fs::File, path::Path};

use parquet::data_type::{ByteArray, ByteArrayType, Int64Type};

use super::{
    about::ListedFile,
    columns::{Column, Holds},
    error::CountsError,
    file::ParquetFile,
    layout::{EPD, GAMES, STARTS, STARTS_SCHEMA},
    rows::MOST_GAMES,
};
use crate::{
    error::{At, Result},
    parquet_table::{ROWS_OF_GROUP, TableWriter, properties, write_column},
};

/// The greatest length in bytes of an EPD. The EPDs of the largest variants have about 100 bytes.
const LONGEST_EPD: usize = 1000;

/// The number of rows that are read at once. It is small because a compressed string may be as long as a page.
const BATCH: usize = 8;

/// A position in which games started.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Start {
    /// The position as an EPD.
    pub epd: String,
    /// The number of games that started in the position.
    pub games: u64,
}

/// Writes the starts into `directory`, which will be renamed to `target`. Returns the sidecar's entry for the file, or
/// `None` if there are no starts, in which case no file is written.
///
/// # Errors
///
/// Returns the error of `starts`, or an error if the file cannot be written.
pub(super) fn write_starts(
    directory: &Path,
    target: &Path,
    starts: impl Iterator<Item = Result<Start>>,
) -> Result<Option<ListedFile>> {
    let mut starts = starts.peekable();
    if starts.peek().is_none() {
        return Ok(None);
    }
    let file = File::create_new(directory.join(STARTS)).at(target, "write")?;
    let mut out = TableWriter::new(file, target, STARTS_SCHEMA, properties().build())?;
    let (mut rows, mut plies) = (0, 0);
    let (mut epds, mut games) = (Vec::new(), Vec::new());
    while let Some(start) = starts.next() {
        let start = start?;
        rows += 1;
        plies += start.games;
        epds.push(ByteArray::from(start.epd.into_bytes()));
        games.push(start.games.cast_signed());
        if epds.len() == ROWS_OF_GROUP || starts.peek().is_none() {
            out.write_group(|group| {
                write_column::<ByteArrayType>(group, epds.drain(..))?;
                write_column::<Int64Type>(group, games.drain(..))
            })?;
        }
    }
    out.finish()?;
    let listed = ListedFile::of(directory, STARTS.to_owned(), rows, plies);
    listed.at(target, "read").map(Some)
}

/// Calls `f` with the starts of a file, a few at a time. Returns the number of rows and of games.
///
/// # Errors
///
/// The outer result is an error if the file is damaged or contains an invalid value. The inner result is the error of
/// `f`.
pub(super) fn read_starts(
    file: &ParquetFile,
    f: &mut dyn FnMut(Vec<Start>) -> Result<()>,
) -> Result<Result<(u64, u64)>, CountsError> {
    let schema = file.schema();
    let epds = Column::required(schema, EPD, Holds::Texts)?;
    let games = Column::required(schema, GAMES, Holds::Integers)?;
    let (mut texts, mut numbers) = (Vec::new(), Vec::new());
    let (mut row, mut sum) = (0, 0u64);
    for group in 0..file.groups().len() {
        let mut left = file.rows(group)?;
        let (mut epds, mut games) = (epds.open(file, group)?, games.open(file, group)?);
        while left > 0 {
            let rows = left.min(BATCH);
            epds.texts(rows, row, &mut texts)?;
            games.integers(rows, row, &mut numbers)?;
            let mut starts = Vec::with_capacity(rows);
            for (at, (epd, games)) in texts.iter().zip(&numbers).enumerate() {
                let start = start(epd.data(), *games, row + at as u64)?;
                sum += start.games;
                if sum > MOST_GAMES {
                    return Err(CountsError::Overflow);
                }
                starts.push(start);
            }
            if let Err(err) = f(starts) {
                return Ok(Err(err));
            }
            row += rows as u64;
            left -= rows;
        }
    }
    Ok(Ok((row, sum)))
}

/// Decodes a row of the file.
fn start(epd: &[u8], games: i64, row: u64) -> Result<Start, CountsError> {
    let games = u64::try_from(games).map_err(|_| CountsError::Value {
        column: GAMES,
        row,
        value: games,
    })?;
    match std::str::from_utf8(epd) {
        Ok(text) if text.len() <= LONGEST_EPD => Ok(Start {
            epd: text.to_owned(),
            games,
        }),
        _ => Err(CountsError::Start {
            row,
            epd: String::from_utf8_lossy(&epd[..epd.len().min(40)]).into_owned(),
            reason: "too long, or not UTF-8".to_owned(),
        }),
    }
}
