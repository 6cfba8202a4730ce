//! Reading a directory of counts.

use std::{
    fs::{self, File},
    panic::{AssertUnwindSafe, catch_unwind},
    path::{Path, PathBuf},
};

use parquet::{
    file::{
        reader::{FileReader, RowGroupReader},
        serialized_reader::SerializedFileReader,
    },
    schema::types::SchemaDescriptor,
};
use shakmaty::Color;

use super::{
    about::{About, Listed, Sidecar},
    columns::{Column, Values},
    error::CountsError,
    layout::{BLACK, DRAWS, ENDING, IDENTITY, KEY, LOSSES, MOVE, Row, STARTS, WINS},
    starts::{Start, read_starts},
};
use crate::{
    error::{At, Error, Result},
    position::BookMove,
    tally::Stats,
};

/// How many rows are handed over at once.
const BATCH: usize = 1 << 13;

/// The numbers of games stay below this, so that sums of them do not overflow.
const MOST_GAMES: u64 = i64::MAX as u64;

/// A directory of counts.
#[derive(Clone, Debug)]
pub struct CountsDirectory {
    path: PathBuf,
    about: Option<About>,
    parts: Vec<Part>,
    starts: Option<Part>,
}

/// A file of counts.
#[derive(Clone, Debug)]
pub struct Part {
    path: PathBuf,
    size: u64,
    /// What the sidecar says of it.
    listed: Option<Listed>,
}

impl CountsDirectory {
    /// Opens counts, whoever wrote them. Looks whether every part is there, and reads none.
    ///
    /// # Errors
    ///
    /// A directory that cannot be read or holds no part, and a sidecar that cannot be understood or lists other
    /// parts than there are.
    pub fn open(path: impl Into<PathBuf>) -> Result<CountsDirectory> {
        let path = path.into();
        let sidecar = Sidecar::read(&path)?;
        let found = parquet_files(&path)?;
        let Some(Sidecar {
            about,
            parts,
            starts,
            ..
        }) = sidecar
        else {
            let (starts, parts): (Vec<Part>, Vec<Part>) =
                found.into_iter().partition(|part| part.name() == STARTS);
            if parts.is_empty() {
                return Err(Error::file(
                    &path,
                    "no counts in it: name a directory with Parquet files",
                ));
            }
            return Ok(CountsDirectory {
                path,
                about: None,
                parts,
                starts: starts.into_iter().next(),
            });
        };
        let is_listed = |part: &Part| {
            let mut all = parts.iter().chain(&starts);
            all.any(|listed| listed.file == part.name())
        };
        if let Some(part) = found.iter().find(|part| !is_listed(part)) {
            return Err(Error::format(&part.path, CountsError::Unlisted));
        }
        Ok(CountsDirectory {
            about: Some(about),
            parts: parts
                .into_iter()
                .map(|listed| Part::listed(&path, listed))
                .collect::<Result<_>>()?,
            starts: starts
                .map(|listed| Part::listed(&path, listed))
                .transpose()?,
            path,
        })
    }

    /// The directory.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Where the counts come from, `None` if they do not say.
    pub fn about(&self) -> Option<&About> {
        self.about.as_ref()
    }

    /// The files of counts.
    pub fn parts(&self) -> &[Part] {
        &self.parts
    }

    /// The file of the positions in which games started, if there is one; [`Part::read_starts`] reads it.
    pub fn starts(&self) -> Option<&Part> {
        self.starts.as_ref()
    }

    /// How many bytes all parts have.
    pub fn size(&self) -> u64 {
        self.parts.iter().map(Part::size).sum()
    }
}

/// The files of a directory that are named like parts, those aside that are hidden or that engines keep for themselves.
fn parquet_files(directory: &Path) -> Result<Vec<Part>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(directory).at(directory, "read")? {
        let path = entry.at(directory, "read")?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if name.ends_with(ENDING) && !name.starts_with(['.', '_']) {
            let size = fs::metadata(&path).at(&path, "open")?.len();
            files.push(Part {
                path,
                size,
                listed: None,
            });
        }
    }
    files.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(files)
}

impl Part {
    fn listed(directory: &Path, listed: Listed) -> Result<Part> {
        let path = directory.join(&listed.file);
        let size = match fs::metadata(&path) {
            Ok(metadata) => metadata.len(),
            Err(err) if err.kind() == std::io::ErrorKind::NotFound => {
                return Err(Error::format(path, CountsError::Missing));
            }
            Err(err) => return Err(err).at(path, "open"),
        };
        if size != listed.bytes {
            let (found, expected) = (size, listed.bytes);
            return Err(Error::format(
                path,
                CountsError::Differs {
                    what: "bytes",
                    found,
                    expected,
                },
            ));
        }
        Ok(Part {
            path,
            size,
            listed: Some(listed),
        })
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Its size in bytes.
    pub fn size(&self) -> u64 {
        self.size
    }

    fn name(&self) -> &str {
        self.path
            .file_name()
            .and_then(|name| name.to_str())
            .unwrap_or_default()
    }

    /// Whether its rows tell positions of one key apart.
    ///
    /// # Errors
    ///
    /// A file that is not Parquet.
    pub fn has_identities(&self) -> Result<bool> {
        let mut has_identities = false;
        self.open_file(|file| {
            let schema = file.metadata().file_metadata().schema_descr();
            has_identities = Column::integers(schema, IDENTITY)?.is_some();
            Ok(Ok((0, 0)))
        })?;
        Ok(has_identities)
    }

    /// Hands all rows to `f`, some thousand at a time. Answers the sum of their games.
    ///
    /// # Errors
    ///
    /// A file that cannot be read or does not hold what it should, which a [`CountsError`] tells, and what `f` answers.
    pub fn read(&self, f: &mut dyn FnMut(&[Row]) -> Result<()>) -> Result<u64> {
        self.read_file(|file| {
            let schema = file.metadata().file_metadata().schema_descr();
            let columns = PartColumns::find(schema)?;
            let mut rows = Rows::default();
            for group in 0..file.num_row_groups() {
                let group = file.get_row_group(group)?;
                if let Err(err) = rows.read_group(&columns, &*group, f)? {
                    return Ok(Err(err));
                }
            }
            Ok(Ok((rows.read, rows.games)))
        })
    }

    /// Hands all positions in which games started to `f`, some thousand at a time. Answers how many games these are.
    ///
    /// # Errors
    ///
    /// As [`read`](Part::read).
    pub fn read_starts(&self, f: &mut dyn FnMut(Vec<Start>) -> Result<()>) -> Result<u64> {
        self.read_file(|file| read_starts(file, f))
    }

    /// Reads the file with `read`, which answers its rows and games, and compares them with the sidecar.
    fn read_file(
        &self,
        read: impl FnOnce(&dyn FileReader) -> Result<Result<(u64, u64)>, CountsError>,
    ) -> Result<u64> {
        let (rows, games) = self.open_file(read)?;
        let Some(listed) = &self.listed else {
            return Ok(games);
        };
        for (what, found, expected) in [
            ("rows", rows, listed.rows),
            ("half-moves", games, listed.plies),
        ] {
            if found != expected {
                let differs = CountsError::Differs {
                    what,
                    found,
                    expected,
                };
                return Err(Error::format(&self.path, differs));
            }
        }
        Ok(games)
    }

    /// Opens the file for `read`. Panics of the crate `parquet`, which some damaged files bring about, are errors
    /// like others.
    fn open_file<T>(
        &self,
        read: impl FnOnce(&dyn FileReader) -> Result<Result<T>, CountsError>,
    ) -> Result<T> {
        let file = File::open(&self.path).at(&self.path, "open")?;
        let read = || {
            let file = SerializedFileReader::new(file)?;
            read(&file)
        };
        let damaged = |_| {
            Err(CountsError::Damaged(
                "its numbers do not fit together".to_owned(),
            ))
        };
        catch_unwind(AssertUnwindSafe(read))
            .unwrap_or_else(damaged)
            .map_err(|err| Error::format(&self.path, err))?
    }
}

/// Where the columns of a part stand.
struct PartColumns {
    numbers: [Column; 5],
    black: Column,
    identity: Option<Column>,
}

impl PartColumns {
    fn find(schema: &SchemaDescriptor) -> Result<PartColumns, CountsError> {
        let integers = |name| Column::integers(schema, name)?.ok_or(CountsError::NoColumn(name));
        Ok(PartColumns {
            numbers: [
                integers(KEY)?,
                integers(MOVE)?,
                integers(WINS)?,
                integers(DRAWS)?,
                integers(LOSSES)?,
            ],
            black: Column::booleans(schema, BLACK)?.ok_or(CountsError::NoColumn(BLACK))?,
            identity: Column::integers(schema, IDENTITY)?,
        })
    }
}

/// The rows of a part on their way out, and the columns that they are made of.
#[derive(Default)]
struct Rows {
    rows: Vec<Row>,
    numbers: [Vec<i64>; 5],
    blacks: Vec<bool>,
    identities: Vec<i64>,
    /// Rows so far.
    read: u64,
    /// Their games.
    games: u64,
}

impl Rows {
    /// Hands the rows of a row group to `f`. The inner error is what `f` answers.
    fn read_group(
        &mut self,
        columns: &PartColumns,
        group: &dyn RowGroupReader,
        f: &mut dyn FnMut(&[Row]) -> Result<()>,
    ) -> Result<Result<()>, CountsError> {
        let mut left = usize::try_from(group.metadata().num_rows())
            .map_err(|_| CountsError::Damaged("a row group of negative length".to_owned()))?;
        let mut numbers: Vec<Values> = columns
            .numbers
            .iter()
            .map(|column| column.open(group))
            .collect::<Result<_, _>>()?;
        let mut blacks = columns.black.open(group)?;
        let mut identities = columns
            .identity
            .map(|column| column.open(group))
            .transpose()?;
        while left > 0 {
            let rows = left.min(BATCH);
            for (values, out) in numbers.iter_mut().zip(&mut self.numbers) {
                values.integers(rows, self.read, out)?;
            }
            blacks.booleans(rows, self.read, &mut self.blacks)?;
            if let Some(identities) = &mut identities {
                identities.integers(rows, self.read, &mut self.identities)?;
            }
            self.rows.clear();
            for at in 0..rows {
                let row = self.row(at, identities.is_some())?;
                self.games += row.stats.games();
                if self.games > MOST_GAMES {
                    return Err(CountsError::Overflow);
                }
                self.rows.push(row);
            }
            if let Err(err) = f(&self.rows) {
                return Ok(Err(err));
            }
            self.read += rows as u64;
            left -= rows;
        }
        Ok(Ok(()))
    }

    /// The row at a place of the columns.
    fn row(&self, at: usize, has_identity: bool) -> Result<Row, CountsError> {
        let [keys, moves, wins, draws, losses] = &self.numbers;
        let row = self.read + at as u64;
        let cannot_be = |column, value| CountsError::Value { column, row, value };
        let games = |column, value: i64| {
            // Three of them and the sum so far fit 64 bits.
            match u64::try_from(value) {
                Ok(games) if games > MOST_GAMES / 4 => Err(CountsError::Overflow),
                Ok(games) => Ok(games),
                Err(_) => Err(cannot_be(column, value)),
            }
        };
        let mv = u16::try_from(moves[at]).ok().map(BookMove);
        let Some(mv) = mv.filter(|mv| mv.is_well_formed()) else {
            return Err(cannot_be(MOVE, moves[at]));
        };
        let key = keys[at].cast_unsigned();
        if key == 0 && !has_identity {
            return Err(cannot_be(KEY, 0));
        }
        Ok(Row {
            key,
            identity: if has_identity {
                self.identities[at].cast_unsigned()
            } else {
                key
            },
            mv,
            turn: Color::from_white(!self.blacks[at]),
            stats: Stats {
                wins: games(WINS, wins[at])?,
                draws: games(DRAWS, draws[at])?,
                losses: games(LOSSES, losses[at])?,
            },
        })
    }
}
