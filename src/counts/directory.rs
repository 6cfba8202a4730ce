//! Opens a counts directory and reads its Parquet files.

use std::{
    fs::{self, File},
    io,
    path::{Path, PathBuf},
};

use super::Grouping;
use super::{
    error::CountsError,
    layout::{ClassRow, ENDING, Row, SIDECAR, STARTS},
    parquet_file::{ParquetFile, caught, file_size, metadata_memory},
    rows::{ColumnBatch, GroupReader, MAX_TOTAL_GAMES, PartColumns, classes_of},
    sidecar::{CountsOrigin, ListedFile, Sidecar, Start, crc32_of, read_starts},
};
use crate::{
    error::{At, Error, Result},
    position::BookMove,
    storage::output::{FileId, canonical, open_again_if_replaced},
    task,
};

/// An open counts directory. Its Parquet files contain the results of each move in each position. The optional file
/// `counts.json` describes the counts.
#[derive(Clone, Debug)]
pub struct CountsDirectory {
    path: PathBuf,
    about: Option<CountsOrigin>,
    parts: Vec<Part>,
    starts: Option<Part>,
}

/// A Parquet file in a counts directory.
#[derive(Clone, Debug)]
pub struct Part {
    path: PathBuf,
    /// The directory that contained the file when it was opened.
    directory: Option<FileId>,
    size: u64,
    /// The entry of `counts.json` for the file, or `None` if that file does not exist.
    listed: Option<ListedFile>,
}

impl CountsDirectory {
    /// Opens a counts directory that was written by polybook or another program. Reads no rows.
    ///
    /// If the directory contains `counts.json`, this file must list exactly the Parquet files that exist, with their
    /// sizes. Otherwise, all Parquet files in the directory are opened. Files whose names begin with a dot or an
    /// underscore are ignored.
    ///
    /// # Errors
    ///
    /// Returns an error if the directory cannot be read or contains no counts, if `counts.json` is malformed or has an
    /// unsupported version, or if `counts.json` does not match the Parquet files that exist.
    pub fn open(path: impl Into<PathBuf>) -> Result<CountsDirectory> {
        let path = path.into();
        open_again_if_replaced(&path, || CountsDirectory::open_once(&path))
    }

    /// Returns a message for a user who passed the counts directory `path` where an index is expected. The message
    /// contains the command that makes an index from the counts. Returns `None` if `path` is not a counts directory.
    /// Such a directory contains `counts.json`, or only Parquet files that have the columns of counts.
    #[doc(hidden)]
    pub fn index_advice(path: &Path) -> Option<String> {
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
            format!(
                "this is a directory of counts: make an index with polybook make-book {} --explorer {}",
                path.display(),
                named.with_file_name(index).display()
            )
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
        })
    }

    /// Returns the path of the directory.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the content of `counts.json`, which describes the origin of the counts. Returns `None` if that file
    /// does not exist.
    pub fn about(&self) -> Option<&CountsOrigin> {
        self.about.as_ref()
    }

    /// Returns the properties of games by which the counts are grouped: any of speed, rating group and month. Reads
    /// them from `counts.json` or, if it does not exist, from the columns of the Parquet files.
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

    /// Returns the Parquet files that contain the counts.
    pub fn parts(&self) -> &[Part] {
        &self.parts
    }

    /// Returns the file that lists the positions in which games started, or `None` if the directory does not contain
    /// such a file. Call [`Part::read_starts`] to read it.
    pub fn starts(&self) -> Option<&Part> {
        self.starts.as_ref()
    }

    /// Estimates how many bytes of memory are needed to parse the metadata of one Parquet file. Returns the largest of
    /// the estimates for the files in the directory.
    ///
    /// # Errors
    ///
    /// Returns an error if a file cannot be read, or if its metadata is too large.
    pub(crate) fn metadata_memory(&self) -> Result<u64> {
        let of_part = |part: &Part| part.named(metadata_memory(&part.open_file()?, part.size));
        let mut parts = self.parts.iter().chain(&self.starts).map(of_part);
        parts.try_fold(0, |most, part| Ok(most.max(part?)))
    }

    /// Checks that all files have a column of identities if `are_wanted` is `true`, and that no file has one
    /// otherwise. An identity is a hash that distinguishes positions with equal keys. Only counts of chess variants
    /// need this column.
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

    /// Returns the total size in bytes of the files that contain counts. Does not include the file of starting
    /// positions and `counts.json`.
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
        if name.ends_with(ENDING) && !name.starts_with(['.', '_']) {
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
    /// Creates a [`Part`] for a file in `directory`. `listed` is the entry of the file in `counts.json`. `id`
    /// identifies the directory. The [`Part`] stores it, to detect later that another program has replaced the
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
    /// `counts.json`.
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
    /// `counts.json`, or lacks a column for a property in `by`.
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

    /// Calls `f` with the positions in which games started and the number of games that started in each of them. Passes
    /// a few positions at a time. Returns the total number of games.
    ///
    /// # Errors
    ///
    /// Returns the error of `f`, or an error if the file cannot be read, contains an invalid value, or does not match
    /// `counts.json`.
    pub fn read_starts(&self, f: &mut dyn FnMut(Vec<Start>) -> Result<()>) -> Result<u64> {
        let mut f = |starts: Vec<Start>| task::caught(|| f(starts));
        self.read_file(|file| read_starts(file, &mut f))
    }

    /// Opens the file, decodes it with `read`, and checks that it matches its entry in `counts.json`: the checksum, and
    /// the two numbers that `read` returns. These are the numbers of rows and half-moves or, for the file of starting
    /// positions, the numbers of rows and games. Returns the second number. An error in the inner result of `read`
    /// comes from the caller's own function and is returned unchanged.
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
    /// returns an error of the kind [`Changed`](crate::ErrorKind::Changed) instead. In that case, `err` concerns a file
    /// of the new directory and would be misleading.
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

    /// Compares the checksum of the file with the one in `counts.json`. Does nothing if `counts.json` does not state
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

    /// Compares the numbers of rows and games that were read from the file with the numbers in `counts.json`. Does
    /// nothing if `counts.json` does not exist.
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
