//! Opens a counts directory and reads its Parquet files.
//!
//! [`OrderedParts`] reads the rows in a range of position keys from sorted files. The metadata of a file that polybook
//! wrote states that the rows are sorted, and which keys are the first and the last of each row group. Therefore only
//! row groups that overlap the requested range are read. The order of all rows is checked.

use std::{
    collections::VecDeque,
    fs::{self, File},
    io,
    ops::{Range, RangeInclusive},
    path::{Path, PathBuf},
    sync::atomic::{AtomicU64, Ordering},
};

use parquet::file::{metadata::RowGroupMetaData, statistics::Statistics};
use rayon::prelude::*;

use super::{
    CountBatch, CountClass, Grouping,
    error::CountsError,
    layout::{ClassRow, ENDING, Row, SIDECAR, STARTS},
    parquet_file::{ParquetFile, caught, file_size, metadata_memory},
    rows::{ColumnBatch, GroupReader, MAX_TOTAL_GAMES, PartColumns, classes_of},
    sidecar::{CountsOrigin, ListedFile, Sidecar, Start, crc32_of, read_starts},
};
use crate::{
    chess::position::BookMove,
    error::{Advice, At, Diagnosis, Error, Result},
    games::selection::{Evaluator, Selection},
    storage::{
        output::{FileId, canonical, open_again_if_replaced},
        sort::SHARDS,
    },
    task,
};

/// An open counts directory. Its Parquet files contain the results of each move in each position. The optional file
/// `_counts.json` says which games were counted.
#[derive(Clone, Debug)]
pub struct CountsDirectory {
    path: PathBuf,
    about: Option<CountsOrigin>,
    parts: Vec<Part>,
    starts: Option<Part>,
    /// The conditions that games must meet to be counted.
    selection: Selection,
}

/// A Parquet file in a counts directory.
#[derive(Clone, Debug)]
pub struct Part {
    path: PathBuf,
    /// The directory that contained the file when it was opened.
    directory: Option<FileId>,
    size: u64,
    /// The entry of `_counts.json` for the file, or `None` if `_counts.json` does not exist.
    listed: Option<ListedFile>,
}

impl CountsDirectory {
    /// Opens a counts directory that was written by polybook or another program. Reads no rows.
    ///
    /// If the directory contains `_counts.json`, this file must list exactly the Parquet files that exist, with their
    /// sizes. Otherwise, all Parquet files in the directory are opened. Files whose names begin with a dot or an
    /// underscore are ignored.
    ///
    /// # Errors
    ///
    /// Returns an error if the directory cannot be read or contains no counts, if `_counts.json` is malformed or has an
    /// unsupported version, or if `_counts.json` does not match the Parquet files that exist.
    pub fn open(path: impl Into<PathBuf>) -> Result<CountsDirectory> {
        let path = path.into();
        open_again_if_replaced(&path, || CountsDirectory::open_once(&path))
    }

    /// Returns an error message for a user who passed the counts directory `path` where an index is expected. The
    /// message contains the command that makes an index from this directory. Returns `None` if `path` is not a counts
    /// directory. Such a directory contains `_counts.json`, or only Parquet files with the columns of a counts
    /// directory.
    #[doc(hidden)]
    pub fn index_advice(path: &Path) -> Option<Diagnosis> {
        let has_columns = |part: &Part| {
            let file = part.open()?;
            part.named(caught(|| PartColumns::find(file.schema())))
        };
        let is_of_counts = path.join(SIDECAR).exists()
            || CountsDirectory::open(path)
                .is_ok_and(|counts| counts.parts.iter().all(|part| has_columns(part).is_ok()));
        // The name of `.` is that of the current directory. The index must be next to the counts, not in them.
        let named = match path.file_name() {
            Some(_) => path.to_owned(),
            None => canonical(path).ok()?,
        };
        let mut index = named.file_stem().unwrap_or_default().to_owned();
        index.push(".idx");
        is_of_counts.then(|| {
            let index = named.with_file_name(index);
            let make = Advice::option("make an index with {}", "explorer")
                .of_command("make-book")
                .with_value(format_args!("{} {}", index.display(), path.display()));
            Diagnosis::new("this is a directory of counts").advise(make)
        })
    }

    /// Makes one attempt to open a counts directory. [`CountsDirectory::open`] calls this function again if another
    /// program replaced the directory in the meantime.
    fn open_once(path: &Path) -> Result<CountsDirectory> {
        let path = path.to_owned();
        let directory = FileId::of(&path).at(&path, "open")?;
        let sidecar = Sidecar::read(&path)?;
        let found = parquet_files(&path, directory)?;
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
                    "this directory contains no counts: give a directory of counts, which contains Parquet files",
                ));
            }
            return Ok(CountsDirectory {
                path,
                about: None,
                parts,
                starts: starts.into_iter().next(),
                selection: Selection::default(),
            });
        };
        let is_listed = |part: &Part| {
            let mut all = parts.iter().chain(&starts);
            all.any(|listed| listed.file == part.name())
        };
        if let Some(part) = found.iter().find(|part| !is_listed(part)) {
            return Err(Error::format(&part.path, CountsError::Unlisted));
        }
        let part = |listed| Part::listed(&path, directory, listed);
        Ok(CountsDirectory {
            about: Some(about),
            parts: parts.into_iter().map(part).collect::<Result<_>>()?,
            starts: starts.map(part).transpose()?,
            path,
            selection: Selection::default(),
        })
    }

    /// Restricts the directory to games that meet the conditions in `selection`. The directory must be grouped by all
    /// properties that the conditions examine. The files still contain all rows, so the caller must skip rows whose
    /// class the directory does not [admit](CountsDirectory::admits).
    ///
    /// # Errors
    ///
    /// Returns an error if a condition cannot be applied to counted games, or if the directory is not grouped by the
    /// property that the condition examines.
    pub(crate) fn selecting(self, selection: &Selection) -> Result<CountsDirectory> {
        if let Some(unanswerable) = selection.unanswerable(Evaluator::Counts) {
            let problem = Diagnosis::new(unanswerable.to_string()).advise("give the PGN files");
            return Err(Error::file(&self.path, problem));
        }
        let (by, needed) = (self.by()?, Grouping::examined_by(selection));
        if !by.includes(needed) {
            let problem = Diagnosis::new(format!(
                "these counts are {}, but the conditions need counts that are {}",
                by.division(),
                needed.division()
            ))
            .advise(Advice::option("count the games with {}", "by").with_value(needed));
            return Err(Error::file(&self.path, problem));
        }
        Ok(CountsDirectory {
            selection: selection.clone(),
            ..self
        })
    }

    /// Returns `true` if [`selecting`](CountsDirectory::selecting) has restricted the directory to some of its games.
    pub(crate) fn is_selecting(&self) -> bool {
        !self.selection.is_empty()
    }

    /// Returns `true` if games of the class `class` meet the conditions of [`selecting`](CountsDirectory::selecting).
    pub(crate) fn admits(&self, class: CountClass) -> bool {
        !self.is_selecting() || class.passes(&self.selection)
    }

    /// Returns the path of the directory.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the content of `_counts.json`, which says which games were counted. Returns `None` if that file does not
    /// exist.
    pub fn about(&self) -> Option<&CountsOrigin> {
        self.about.as_ref()
    }

    /// Returns the properties of games by which the directory is grouped: any of speed, rating group and month. They
    /// are read from `_counts.json` or, if that file does not exist, from the columns of the Parquet files.
    ///
    /// # Errors
    ///
    /// Returns an error if a file cannot be read or is not Parquet, or if two files are grouped by different
    /// properties.
    pub fn by(&self) -> Result<Grouping> {
        if let Some(about) = &self.about {
            return Ok(about.by);
        }
        let mut all = None;
        for part in &self.parts {
            let file = part.open()?;
            let found = part.named(caught(|| classes_of(file.schema())))?;
            let expected = *all.get_or_insert(found);
            if found != expected {
                return part.named(Err(CountsError::Classes { found, expected }));
            }
        }
        Ok(all.unwrap_or_default())
    }

    /// Returns the Parquet files that contain the results of moves.
    pub fn parts(&self) -> &[Part] {
        &self.parts
    }

    /// Returns the file that lists the positions in which games started, or `None` if the directory does not contain
    /// such a file. Call [`Part::read_starts`] to read it.
    pub fn starts(&self) -> Option<&Part> {
        self.starts.as_ref()
    }

    /// Returns the largest estimate, over the files in the directory, of the memory in bytes that is needed to parse
    /// the metadata of a Parquet file.
    ///
    /// # Errors
    ///
    /// Returns an error if a file cannot be read, or if its metadata is too large.
    pub(crate) fn metadata_memory(&self) -> Result<u64> {
        let of_part = |part: &Part| part.named(metadata_memory(&part.open_file()?, part.size));
        let mut parts = self.parts.iter().chain(&self.starts).map(of_part);
        parts.try_fold(0, |most, part| Ok(most.max(part?)))
    }

    /// Checks whether the files have a column of identities. If `are_wanted` is `true`, all files must have this
    /// column, otherwise none may have it. An identity is a hash that distinguishes positions with equal keys. Only
    /// directories with games of chess variants need this column.
    ///
    /// # Errors
    ///
    /// Returns an error for the first file that fails the check or cannot be read.
    pub(crate) fn check_identities(&self, are_wanted: bool) -> Result<()> {
        for part in &self.parts {
            match (are_wanted, part.has_identities()?) {
                (false, true) => return part.named(Err(CountsError::Identity)),
                (true, false) => return part.named(Err(CountsError::NoIdentity)),
                _ => {}
            }
        }
        Ok(())
    }

    /// Returns the total size in bytes of the files that contain the results of moves. Does not include the file of
    /// starting positions or `_counts.json`.
    pub fn size(&self) -> u64 {
        self.parts.iter().map(Part::size).sum()
    }
}

/// Returns the Parquet files in `directory`, sorted by path. Skips files whose names begin with a dot or an underscore,
/// because query engines use such names for their own files. `id` identifies the directory. Each returned [`Part`]
/// stores `id`, to detect later that another program has replaced the directory.
fn parquet_files(directory: &Path, id: Option<FileId>) -> Result<Vec<Part>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(directory).at(directory, "read")? {
        let path = entry.at(directory, "read")?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let is_counts = name.ends_with(ENDING) && !name.starts_with(['.', '_']);
        if is_counts || name == STARTS {
            let size = file_size(&path)?;
            files.push(Part {
                path,
                directory: id,
                size,
                listed: None,
            });
        }
    }
    files.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(files)
}

impl Part {
    /// Creates a [`Part`] for a file in `directory`. `listed` is the entry of the file in `_counts.json`. `id`
    /// identifies the directory. The [`Part`] stores `id`, to detect later that another program has replaced the
    /// directory.
    ///
    /// # Errors
    ///
    /// Returns an error if the file does not exist, or if its size differs from the size in the entry.
    fn listed(directory: &Path, id: Option<FileId>, listed: ListedFile) -> Result<Part> {
        let path = directory.join(&listed.file);
        let size = match file_size(&path) {
            Err(Error::Io { source, .. }) if source.kind() == io::ErrorKind::NotFound => {
                return Err(Error::format(path, CountsError::Missing));
            }
            size => size?,
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
            directory: id,
            size,
            listed: Some(listed),
        })
    }

    /// Returns the path of the file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the size of the file in bytes.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// Returns the name of the file, or an empty string if the name is not valid UTF-8.
    fn name(&self) -> &str {
        self.path
            .file_name()
            .and_then(|name| name.to_str())
            .unwrap_or_default()
    }

    /// Returns `true` if the file has a column of identities. An identity is a hash that distinguishes positions with
    /// equal keys.
    ///
    /// # Errors
    ///
    /// Returns an error if the file cannot be read, is not Parquet, or lacks a required column.
    pub fn has_identities(&self) -> Result<bool> {
        let file = self.open()?;
        let columns = caught(|| PartColumns::find(file.schema()));
        Ok(self.named(columns)?.identity.is_some())
    }

    /// Calls `f` with the rows of the file, in batches of up to a few thousand rows. Skips rows without a move, which
    /// count games that ended in a position. Returns the number of half-moves counted in the rows.
    ///
    /// # Errors
    ///
    /// Returns the error of `f`, or an error if the file cannot be read, contains an invalid row, or does not match
    /// `_counts.json`.
    pub fn read(&self, f: &mut dyn FnMut(&[Row]) -> Result<()>) -> Result<u64> {
        self.read_rows(Grouping::default(), ColumnBatch::row, |row| *row, false, f)
    }

    /// Calls `f` with the rows of the file and their classes, in batches of up to a few thousand rows. A class consists
    /// of speed, rating group and month. Reads only the properties in `by` and sets the others to 0. Returns the number
    /// of half-moves counted in the rows.
    ///
    /// # Errors
    ///
    /// Returns the error of `f`, or an error if the file cannot be read, contains an invalid row, does not match
    /// `_counts.json`, or lacks a column for a property in `by`.
    pub fn read_classed(
        &self,
        by: Grouping,
        f: &mut dyn FnMut(&[ClassRow]) -> Result<()>,
    ) -> Result<u64> {
        self.read_rows(by, ColumnBatch::class_row, |row| row.row, true, f)
    }

    /// Decodes the rows of the file, and calls `f` with them in batches. `by` contains the properties of games (speed,
    /// rating group, month) to read. `read_row` decodes one row of a batch: its second argument is the index of the row
    /// in the batch. `row_of` converts a decoded row, which may also contain a class, to a [`Row`].
    ///
    /// A row without a move counts the games that ended in a position. Such rows are passed to `f` only if `with_ends`
    /// is `true`. Returns the number of half-moves counted in the rows.
    fn read_rows<R>(
        &self,
        by: Grouping,
        read_row: impl Fn(&ColumnBatch, usize) -> Result<R, CountsError>,
        row_of: impl Fn(&R) -> Row,
        with_ends: bool,
        f: &mut dyn FnMut(&[R]) -> Result<()>,
    ) -> Result<u64> {
        // A panic of the crate `parquet` means that the file is damaged. A panic of `f` does not, so it is caught
        // separately.
        let mut f = |rows: &[R]| task::caught(|| f(rows));
        self.read_file(|file| {
            let (mut rows, mut batch) = (ColumnBatch::default(), Vec::new());
            let (mut read, mut games) = (0, 0);
            for group in 0..file.groups().len() {
                let mut group = GroupReader::open(file, group, read, by)?;
                while group.read(&mut rows)? {
                    batch.clear();
                    for at in 0..rows.keys.len() {
                        let read = read_row(&rows, at)?;
                        let row = row_of(&read);
                        games += row.plies();
                        if games > MAX_TOTAL_GAMES {
                            return Err(CountsError::Overflow);
                        }
                        if with_ends || row.mv != BookMove::NONE {
                            batch.push(read);
                        }
                    }
                    if let Err(err) = f(&batch) {
                        return Ok(Err(err));
                    }
                    read += rows.keys.len() as u64;
                }
            }
            Ok(Ok((read, games)))
        })
    }

    /// Calls `f` with the positions in which games started and the number of games that started in each of them. Each
    /// call receives a few positions. Returns the total number of games.
    ///
    /// # Errors
    ///
    /// Returns the error of `f`, or an error if the file cannot be read, contains an invalid value, or does not match
    /// `_counts.json`.
    pub fn read_starts(&self, f: &mut dyn FnMut(Vec<Start>) -> Result<()>) -> Result<u64> {
        let mut f = |starts: Vec<Start>| task::caught(|| f(starts));
        self.read_file(|file| read_starts(file, &mut f))
    }

    /// Opens the file, decodes it with `read`, and checks it against its entry in `_counts.json`. The check compares
    /// the checksum and the two numbers that `read` returns: the numbers of rows and half-moves or, for the file of
    /// starting positions, of rows and games. Returns the second number. An error in the inner result of `read` comes
    /// from the caller's own function and is returned unchanged.
    fn read_file(
        &self,
        read: impl FnOnce(&ParquetFile) -> Result<Result<(u64, u64)>, CountsError>,
    ) -> Result<u64> {
        let file = self.open()?;
        self.check_bytes()?;
        let (rows, games) = self.named(caught(|| read(&file)))??;
        self.check(rows, games)?;
        Ok(games)
    }

    /// Opens the Parquet file and parses its metadata.
    ///
    /// # Errors
    ///
    /// Returns an error if the file cannot be read or is not valid Parquet.
    pub(super) fn open(&self) -> Result<ParquetFile> {
        let file = self.open_file()?;
        self.named(caught(|| ParquetFile::open(file)))
    }

    /// Opens the file without reading from it.
    fn open_file(&self) -> Result<File> {
        let file = File::open(&self.path).at(&self.path, "open");
        file.map_err(|err| self.unless_replaced(err))
    }

    /// Returns `err` if the directory is still the one that was opened. If another program has replaced the directory,
    /// returns an error of the kind [`Changed`](crate::ErrorKind::Changed) instead. In that case, `err` would be
    /// misleading, because it concerns a file of the new directory.
    fn unless_replaced(&self, err: Error) -> Error {
        let directory = self.path.parent().unwrap_or(&self.path);
        match FileId::of(directory) {
            Ok(now) if now != self.directory => {
                let problem =
                    "this directory was replaced while it was read: run the command again";
                Error::changed(directory, problem)
            }
            _ => err,
        }
    }

    /// Compares the checksum of the file with the one in `_counts.json`. Does nothing if `_counts.json` does not state
    /// a checksum.
    ///
    /// # Errors
    ///
    /// Returns an error if the file cannot be read, or if its checksum differs.
    pub(super) fn check_bytes(&self) -> Result<()> {
        let Some(expected) = self.listed.as_ref().and_then(|listed| listed.crc32) else {
            return Ok(());
        };
        let mut file = self.open_file()?;
        if crc32_of(&mut file).at(&self.path, "read")? == expected {
            return Ok(());
        }
        self.named(Err(CountsError::Altered))
    }

    /// Compares the numbers of rows and games that were read from the file with the numbers in `_counts.json`. Does
    /// nothing if `_counts.json` does not exist.
    ///
    /// # Errors
    ///
    /// Returns an error if one of the numbers differs.
    pub(super) fn check(&self, rows: u64, games: u64) -> Result<()> {
        let Some(listed) = &self.listed else {
            return Ok(());
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
                return self.named(Err(differs));
            }
        }
        Ok(())
    }

    /// Converts a [`CountsError`] to an [`Error`] that names this file.
    pub(super) fn named<T>(&self, result: Result<T, CountsError>) -> Result<T> {
        result.map_err(|err| {
            self.unless_replaced(match err {
                CountsError::Io(problem) => {
                    Error::failed(&self.path, format!("this file cannot be read: {problem}"))
                }
                err => Error::format(&self.path, err),
            })
        })
    }
}

/// The maximum number of rows in a Parquet row group that can be read by ranges of position keys. The reader keeps one
/// row group of each counts directory in memory, so this limit bounds the memory.
const MAX_ROWS_PER_GROUP: u64 = 1 << 17;

/// The Parquet files of a counts directory, in ascending order of position keys. The rows of each file are sorted, and
/// no two files contain overlapping ranges of keys.
#[derive(Debug)]
pub(crate) struct OrderedParts(Vec<OrderedPart>);

/// A sorted Parquet file of a counts directory, with the numbers of rows and half-moves that have been read from it.
#[derive(Debug)]
struct OrderedPart {
    part: Part,
    /// The row groups, in the order of the file.
    groups: Vec<RowGroup>,
    /// The number of rows that have been read since the last check.
    rows_read: AtomicU64,
    /// The number of half-moves counted in the rows that have been read since the last check.
    games_read: AtomicU64,
}

/// The range of position keys and the number of rows in a Parquet row group, according to the metadata of the file.
#[derive(Clone, Debug)]
struct RowGroup {
    keys: RangeInclusive<i64>,
    rows: u64,
}

impl CountsDirectory {
    /// Returns the Parquet files of the directory in ascending order of keys, which allows reading only the rows in a
    /// range of keys. Returns `None` if the keys of two files overlap, or if a file cannot be read by ranges of keys,
    /// for example because its metadata does not state that its rows are sorted.
    ///
    /// # Errors
    ///
    /// Returns an error if a file cannot be read.
    pub(crate) fn ordered(&self) -> Result<Option<OrderedParts>> {
        let parts = self.parts().iter().map(OrderedPart::open);
        let parts = parts.collect::<Result<Option<Vec<OrderedPart>>>>()?;
        let parts = parts.map(OrderedParts::by_keys);
        Ok(parts.filter(|parts| parts.first_out_of_order().is_none()))
    }

    /// Returns the Parquet files of the directory in ascending order of keys, for a merge by class (speed, rating group
    /// and month). The order allows reading only the rows in a range of keys. The rows of each file must be sorted,
    /// which is checked when they are read.
    ///
    /// # Errors
    ///
    /// Returns an error if a file cannot be read. Also returns an error if the keys of two files overlap, because their
    /// rows cannot be read in order.
    pub(super) fn classed(&self) -> Result<OrderedParts> {
        let parts = self.parts().iter().map(OrderedPart::open_classed);
        let parts = OrderedParts::by_keys(parts.collect::<Result<_>>()?);
        match parts.first_out_of_order() {
            Some(part) => part.part.named(Err(CountsError::ClassOrder(0))),
            None => Ok(parts),
        }
    }
}

impl OrderedPart {
    /// Opens a file of a counts directory whose rows are sorted. Returns `None` if the file cannot be read by ranges of
    /// keys. This is the case if the metadata does not state that the rows are sorted, if the keys are unsigned, or if
    /// the file has a column of identities, like files with games of chess variants.
    fn open(part: &Part) -> Result<Option<OrderedPart>> {
        let file = part.open()?;
        let find = || -> Result<_, CountsError> {
            let columns = PartColumns::find(file.schema())?;
            let in_order = columns.identity.is_none() && !columns.key.is_unsigned(file.schema());
            let groups = file
                .groups()
                .iter()
                .map(|group| RowGroup::find(group, &columns));
            Ok(groups
                .collect::<Option<Vec<RowGroup>>>()
                .filter(|_| in_order))
        };
        let groups = part.named(caught(find))?;
        Ok(groups.map(|groups| OrderedPart::new(part, groups)))
    }

    /// Opens a file whose rows are grouped by class (speed, rating group and month). The rows must be sorted. If the
    /// metadata of a row group does not state its first and last key, assumes that the row group may contain any key.
    fn open_classed(part: &Part) -> Result<OrderedPart> {
        let file = part.open()?;
        let groups = part.named(caught(|| {
            let columns = PartColumns::find(file.schema())?;
            if columns.key.is_unsigned(file.schema()) {
                return Err(CountsError::UnsignedKeys);
            }
            let mut groups = Vec::new();
            for (number, group) in file.groups().iter().enumerate() {
                groups.push(RowGroup {
                    keys: RowGroup::keys(group, columns.key.index()).unwrap_or(i64::MIN..=i64::MAX),
                    rows: file.rows(number)? as u64,
                });
            }
            let rows: i128 = groups.iter().map(|group| i128::from(group.rows)).sum();
            if rows != i128::from(file.all_rows()) {
                let problem =
                    "the row groups have more or fewer rows than the file states".to_owned();
                return Err(CountsError::Damaged(problem));
            }
            Ok(groups)
        }));
        Ok(OrderedPart::new(part, groups?))
    }

    /// Creates an `OrderedPart` for the Parquet file `part`, with 0 rows read. `groups` contains the row groups of the
    /// file.
    fn new(part: &Part, groups: Vec<RowGroup>) -> OrderedPart {
        OrderedPart {
            part: part.clone(),
            groups,
            rows_read: AtomicU64::new(0),
            games_read: AtomicU64::new(0),
        }
    }

    /// Adds `rows` rows and `games` half-moves to the numbers that have been read.
    ///
    /// # Errors
    ///
    /// Returns an error if the number of half-moves that have been read from the file exceeds [`MAX_TOTAL_GAMES`], so
    /// that the number cannot overflow.
    fn add_read(&self, rows: u64, games: u64) -> Result<(), CountsError> {
        self.rows_read.fetch_add(rows, Ordering::Relaxed);
        let before = self.games_read.fetch_add(games, Ordering::Relaxed);
        if before + games > MAX_TOTAL_GAMES {
            return Err(CountsError::Overflow);
        }
        Ok(())
    }

    /// Returns the number of rows in the file, according to its metadata.
    fn rows(&self) -> u64 {
        self.groups.iter().map(|group| group.rows).sum()
    }
}

impl RowGroup {
    /// Returns the range of keys and the number of rows of a row group, according to its metadata. Returns `None` if
    /// the row group cannot be read by ranges of keys.
    ///
    /// A row group can be read by ranges of keys if its metadata states the first and the last key, and that the rows
    /// are sorted by key and move. The row group must also have at least one and at most [`MAX_ROWS_PER_GROUP`] rows.
    fn find(group: &RowGroupMetaData, columns: &PartColumns) -> Option<RowGroup> {
        let rows = u64::try_from(group.num_rows()).ok()?;
        let [key, mv] = [columns.key, columns.mv].map(|column| column.index());
        let sorting = group.sorting_columns()?;
        let ascending = sorting
            .iter()
            .take_while(|column| !column.descending)
            .map(|column| usize::try_from(column.column_idx).ok());
        let in_order = ascending.take(2).eq([Some(key), Some(mv)]);
        let keys = RowGroup::keys(group, key)?;
        (in_order && (1..=MAX_ROWS_PER_GROUP).contains(&rows)).then_some(RowGroup { keys, rows })
    }

    /// Returns the first and the last position key of a row group, or `None` if its metadata does not state them. `key`
    /// is the index of the column of keys.
    fn keys(group: &RowGroupMetaData, key: usize) -> Option<RangeInclusive<i64>> {
        let Some(Statistics::Int64(keys)) = group.column(key).statistics() else {
            return None;
        };
        let (first, last) = (*keys.min_opt()?, *keys.max_opt()?);
        (first <= last).then_some(first..=last)
    }
}

impl OrderedParts {
    /// Sorts `parts` by the first key of each file. Files without rows come first.
    fn by_keys(mut parts: Vec<OrderedPart>) -> OrderedParts {
        parts.sort_by_key(|part| part.groups.first().map(|group| *group.keys.start()));
        OrderedParts(parts)
    }

    /// Returns the first file with a row group that is out of order: its first key is less than the last key of the
    /// previous row group, which may be in another file. Returns `None` if all row groups are in order.
    fn first_out_of_order<'a>(&'a self) -> Option<&'a OrderedPart> {
        let of_part =
            |part: &'a OrderedPart| part.groups.iter().map(move |group| (part, &group.keys));
        let groups = || self.0.iter().flat_map(of_part);
        let mut neighbors = groups().zip(groups().skip(1));
        let found = neighbors.find(|((_, before), (_, after))| before.end() > after.start());
        found.map(|(_, (part, _))| part)
    }

    /// Returns the total number of rows in all files, according to their metadata.
    pub(crate) fn rows(&self) -> u64 {
        let rows = self.0.iter().map(OrderedPart::rows);
        rows.fold(0, u64::saturating_add)
    }

    /// Returns a reader of the rows whose position keys are in `shards`. The reader ignores the columns of classes
    /// (speed, rating group and month). A shard is a 256th of the range of keys.
    ///
    /// `shards` must not contain keys on both sides of 2^63: the files are sorted by keys as signed numbers, so keys
    /// from 2^63 on come before all other keys.
    pub(crate) fn rows_of(&self, shards: Range<usize>) -> OrderedRows<'_> {
        self.classed_rows_of(shards, Grouping::default())
    }

    /// Returns a reader of the rows whose position keys are in `shards`. The reader also reads the properties of games
    /// in `by`: any of speed, rating group and month. A shard is a 256th of the range of keys. `shards` must not
    /// contain keys on both sides of 2^63, because keys from 2^63 on come before all other keys in the files.
    pub(super) fn classed_rows_of(&self, shards: Range<usize>, by: Grouping) -> OrderedRows<'_> {
        let first = |shard: usize| (shard as u64) << (u64::BITS - SHARDS.ilog2());
        let keys = first(shards.start).cast_signed()
            ..=(first(shards.end - 1) | (u64::MAX >> SHARDS.ilog2())).cast_signed();
        let mut groups = VecDeque::new();
        for part in &self.0 {
            let mut first_row = 0;
            for (number, group) in part.groups.iter().enumerate() {
                if group.keys.start() <= keys.end() && group.keys.end() >= keys.start() {
                    groups.push_back((part, number, first_row));
                }
                first_row += group.rows;
            }
        }
        OrderedRows {
            keys,
            by,
            groups,
            open: None,
            rows: ColumnBatch::default(),
            last: None,
        }
    }

    /// Compares the checksum of each file with the one in `_counts.json`. Uses all threads of the current rayon pool.
    ///
    /// # Errors
    ///
    /// Returns an error if a file cannot be read, or if its checksum differs.
    pub(crate) fn check_bytes(&self) -> Result<()> {
        let parts = self.0.par_iter();
        parts.map(|part| part.part.check_bytes()).collect()
    }

    /// Checks that each row of each file was read exactly once since the last call of this function. Returns the number
    /// of half-moves counted in the rows.
    ///
    /// # Errors
    ///
    /// Returns an error if the number of rows or half-moves that were read from a file differs from the number in its
    /// metadata or in `_counts.json`.
    pub(crate) fn check_read(&self) -> Result<u64> {
        let mut sum = 0;
        for part in &self.0 {
            let (rows, games) = (
                part.rows_read.swap(0, Ordering::Relaxed),
                part.games_read.swap(0, Ordering::Relaxed),
            );
            part.part.check(rows, games)?;
            if rows != part.rows() {
                let problem = "the keys of the rows differ from the metadata".to_owned();
                return part.part.named(Err(CountsError::Damaged(problem)));
            }
            sum += games;
        }
        Ok(sum)
    }
}

/// A reader of the rows in a range of position keys. It reads the sorted files of a counts directory in ascending order
/// of keys.
pub(crate) struct OrderedRows<'a> {
    keys: RangeInclusive<i64>,
    by: Grouping,
    /// The row groups that have not been opened yet: the file, the index of the row group in the file, and the number
    /// of its first row, counted from the beginning of the file.
    groups: VecDeque<(&'a OrderedPart, usize, u64)>,
    open: Option<OpenGroup<'a>>,
    /// The batch that was read last, stored by column.
    rows: ColumnBatch,
    /// The key, the move and the identity of the row that was read last, and whether Black is to move in its position.
    /// The identity is 0 if the file has no column of identities.
    last: Option<((i64, i64, i64), bool)>,
}

/// The Parquet row group that an [`OrderedRows`] is reading, and the file that contains it.
struct OpenGroup<'a> {
    part: &'a OrderedPart,
    file: ParquetFile,
    reader: GroupReader,
}

/// Information for reporting the progress of [`OrderedRows`]: the path of the file from which the last batch was read,
/// and the numbers of games and bytes in this batch.
pub(crate) struct ReadProgress<'a> {
    /// The path of the file that was read.
    pub path: &'a Path,
    /// The number of games in the batch.
    pub games: u64,
    /// The approximate number of bytes of the file that were read.
    pub bytes: u64,
}

impl<'a> OrderedRows<'a> {
    /// Reads the next batch of rows into `batch`, which must be empty. Returns the path of the file, and the numbers of
    /// games and bytes in the batch. Returns `None` at the end of the range of keys.
    ///
    /// # Errors
    ///
    /// Returns an error if a file cannot be read, contains an invalid row, or is not sorted.
    pub(crate) fn next(&mut self, batch: &mut CountBatch) -> Result<Option<ReadProgress<'a>>> {
        self.next_with(|rows, range| rows.push_to(range, batch))
    }

    /// Reads the next batch of rows with their classes (speed, rating group and month), and appends the rows to `out`.
    /// Rows without games are skipped, so nothing may be appended. Returns the path of the file, and the numbers of
    /// games and bytes in the batch. Returns `None` at the end of the range of keys.
    ///
    /// # Errors
    ///
    /// Returns an error if a file cannot be read, contains an invalid row or is not sorted, or if the batch counts more
    /// than [`MAX_TOTAL_GAMES`] games.
    pub(super) fn next_classed(
        &mut self,
        out: &mut Vec<ClassRow>,
    ) -> Result<Option<ReadProgress<'a>>> {
        self.next_with(|rows, range| {
            let mut games = 0;
            for at in range {
                let row = rows.class_row(at)?;
                games += row.row.plies();
                if games > MAX_TOTAL_GAMES {
                    return Err(CountsError::Overflow);
                }
                if row.row.stats.games() > 0 {
                    out.push(row);
                }
            }
            Ok(games)
        })
    }

    /// Reads batches of rows until a batch contains rows in this reader's range of position keys. Calls `take` for each
    /// batch, with the indices of the batch's rows in the range, which may be none. `take` must return the number of
    /// half-moves counted in these rows. Returns the path of the file, and the numbers of games and bytes in the last
    /// batch. Returns `None` at the end of the range.
    fn next_with(
        &mut self,
        mut take: impl FnMut(&ColumnBatch, Range<usize>) -> Result<u64, CountsError>,
    ) -> Result<Option<ReadProgress<'a>>> {
        loop {
            if self.open.as_ref().is_none_or(|open| open.reader.left == 0) && !self.open_next()? {
                return Ok(None);
            }
            let part = self.open.as_ref().expect("a row group is open").part;
            let (rows, games) = part.part.named(caught(|| self.read(&mut take)))?;
            if rows > 0 {
                return Ok(Some(ReadProgress {
                    path: part.part.path(),
                    games,
                    bytes: part.part.size() * rows / part.rows(),
                }));
            }
        }
    }

    /// Opens the next row group that may contain keys in this reader's range. Returns `false` if no such row group is
    /// left.
    fn open_next(&mut self) -> Result<bool> {
        let Some((part, number, row)) = self.groups.pop_front() else {
            return Ok(false);
        };
        let file = match self.open.take() {
            Some(open) if std::ptr::eq(open.part, part) => open.file,
            _ => part.part.open()?,
        };
        let reader = caught(|| GroupReader::open(&file, number, row, self.by));
        self.open = Some(OpenGroup {
            reader: part.part.named(reader)?,
            part,
            file,
        });
        Ok(true)
    }

    /// Reads a batch of rows from the open row group, and checks that the rows are in order. Calls `take` with the
    /// batch and the indices of its rows in this reader's range of position keys. `take` must return the number of
    /// half-moves counted in these rows. Returns the number of rows in the range, and the number of half-moves counted
    /// in these rows.
    fn read(
        &mut self,
        take: &mut impl FnMut(&ColumnBatch, Range<usize>) -> Result<u64, CountsError>,
    ) -> Result<(u64, u64), CountsError> {
        let open = self.open.as_mut().expect("a row group is open");
        open.reader.read(&mut self.rows)?;
        let ColumnBatch {
            first,
            keys,
            moves,
            blacks,
            identities,
            ..
        } = &self.rows;
        for (at, ((key, mv), black)) in keys.iter().zip(moves).zip(blacks).enumerate() {
            let kind = (*key, *mv, identities.get(at).copied().unwrap_or(0));
            let Some((before, was_black)) = self.last.replace((kind, *black)) else {
                continue;
            };
            let row = first + at as u64;
            if before > kind {
                return Err(if self.by.is_none() {
                    CountsError::Order(row)
                } else {
                    CountsError::ClassOrder(row)
                });
            }
            if was_black != *black && before.0 == *key && identities.is_empty() {
                return Err(CountsError::Side(row));
            }
        }
        let start = keys.partition_point(|key| key < self.keys.start());
        let end = keys.partition_point(|key| key <= self.keys.end());
        if end < keys.len() {
            // The following rows have keys after the range.
            self.groups.clear();
            open.reader.left = 0;
        }
        let games = take(&self.rows, start..end)?;
        let rows = (end - start) as u64;
        open.part.add_read(rows, games)?;
        Ok((rows, games))
    }
}

#[cfg(test)]
mod tests {
    use std::{path::Path, sync::atomic::AtomicBool};

    use shakmaty::Color;

    use super::{
        super::{
            CountsContent, CountsDirectory, CountsOrigin, CountsWriter, Memory, RowSource, Tally,
        },
        *,
    };
    use crate::{
        chess::position::BookMove, games::results::Wdl, progress::Meter,
        storage::output::commit_all,
    };

    /// Writes counts with `rows` rows to a directory, and opens the directory.
    fn written(dir: &Path, rows: u64) -> CountsDirectory {
        let tally = Tally::new(Memory::default());
        for row in 1..=rows {
            let key = row.wrapping_mul(0x2545_f491_4f6c_dd1d);
            let stats = Wdl {
                wins: row % 40_000,
                draws: 1,
                losses: 0,
            };
            tally.add(key, BookMove(796), Color::White, stats).unwrap();
        }
        let counts = tally.sort().unwrap();
        let target = dir.join("counts");
        let writer = CountsWriter::create(&target, false).unwrap();
        let about = CountsOrigin {
            plies: (1..=rows).map(|row| row % 40_000 + 1).sum(),
            ..CountsOrigin::default()
        };
        let (source, stop) = (RowSource::Keys(&counts), AtomicBool::new(false));
        let content = CountsContent {
            size: rows,
            min_game: 0,
            starts: std::iter::empty(),
            names: None,
            about,
        };
        let (_, finished) = writer
            .write(&source, content, &stop, &Meter::default())
            .unwrap();
        commit_all(vec![finished]).unwrap();
        CountsDirectory::open(target).unwrap()
    }

    #[test]
    fn ranges_contain_each_row_once() {
        let dir = tempfile::tempdir().unwrap();
        let rows = 150_000;
        let directory = written(dir.path(), rows);
        let mut whole = CountBatch::default();
        for part in directory.parts() {
            part.read(&mut |rows| {
                for row in rows {
                    whole.push(row.key, row.mv, row.turn, row.stats);
                }
                Ok(())
            })
            .unwrap();
        }
        for ranges in [2, 8, 128] {
            let parts = directory.ordered().unwrap().expect("they are in order");
            assert!(parts.check_read().is_err(), "nothing was read");
            let mut batch = CountBatch::default();
            let each = SHARDS / ranges;
            // As signed numbers, the keys of the upper half come first.
            for range in (ranges / 2..ranges).chain(0..ranges / 2) {
                let mut rows = parts.rows_of(range * each..(range + 1) * each);
                while rows.next(&mut batch).unwrap().is_some() {}
            }
            assert_eq!(batch, whole, "{ranges} ranges");
            let games = directory.about().map(|about| about.plies);
            assert_eq!(parts.check_read().ok(), games);
        }
    }
}
