//! Reading a directory of counts.

use std::{
    fs::{self, File},
    io,
    path::{Path, PathBuf},
};

use super::{
    about::{About, ListedFile, Sidecar, crc32_of},
    error::CountsError,
    file::{ParquetFile, caught, file_size, metadata_memory},
    layout::{ClassRow, ENDING, Row, STARTS},
    rows::{GroupReader, MOST_GAMES, PartColumns, Rows, classes_of},
    starts::{Start, read_starts},
};
use crate::{
    error::{At, Error, Result},
    output::open_again_if_replaced,
    position::BookMove,
    tally::By,
    task,
};

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
    listed: Option<ListedFile>,
}

impl CountsDirectory {
    /// Opens counts of polybook or of another program. Looks whether every part is there, and reads none.
    ///
    /// # Errors
    ///
    /// A directory that cannot be read or has no part, and a sidecar (`counts.json`, the file that says where the counts
    /// come from) that cannot be understood or lists other parts than there are.
    pub fn open(path: impl Into<PathBuf>) -> Result<CountsDirectory> {
        let path = path.into();
        open_again_if_replaced(&path, || CountsDirectory::open_once(&path))
    }

    fn open_once(path: &Path) -> Result<CountsDirectory> {
        let path = path.to_owned();
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

    /// The classes that are counted apart: those of the sidecar, or without it those that the parts have columns for.
    ///
    /// # Errors
    ///
    /// A file that is not Parquet, and parts of different classes.
    pub fn by(&self) -> Result<By> {
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

    /// The files of counts.
    pub fn parts(&self) -> &[Part] {
        &self.parts
    }

    /// The file of the positions in which games started, if there is one; [`Part::read_starts`] reads it.
    pub fn starts(&self) -> Option<&Part> {
        self.starts.as_ref()
    }

    /// About how much memory the metadata of the part take that has the most of them.
    ///
    /// # Errors
    ///
    /// A part that cannot be read.
    pub(crate) fn metadata_memory(&self) -> Result<u64> {
        let of_part = |part: &Part| {
            let file = File::open(&part.path).at(&part.path, "open")?;
            part.named(metadata_memory(&file, part.size))
        };
        let mut parts = self.parts.iter().chain(&self.starts).map(of_part);
        parts.try_fold(0, |most, part| Ok(most.max(part?)))
    }

    /// Makes sure that the parts of variants have identities, and no others.
    ///
    /// # Errors
    ///
    /// A part that does not, or that cannot be read.
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
            let size = file_size(&path)?;
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
    fn listed(directory: &Path, listed: ListedFile) -> Result<Part> {
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
        let file = self.open()?;
        let columns = caught(|| PartColumns::find(file.schema()));
        Ok(self.named(columns)?.identity.is_some())
    }

    /// Hands all rows with moves to `f`, some thousand at a time. Returns how many half-moves they count.
    ///
    /// # Errors
    ///
    /// A file that cannot be read; a [`CountsError`] if it does not hold what it should; and the errors of `f`.
    pub fn read(&self, f: &mut dyn FnMut(&[Row]) -> Result<()>) -> Result<u64> {
        self.read_rows(By::default(), Rows::row, |row| *row, false, f)
    }

    /// Hands all rows with their classes to `f`, some thousand at a time; `by` says which classes are read. Returns how many
    /// half-moves they count.
    ///
    /// # Errors
    ///
    /// As [`read`](Part::read), and a part without a column of the classes.
    pub fn read_classed(
        &self,
        by: By,
        f: &mut dyn FnMut(&[ClassRow]) -> Result<()>,
    ) -> Result<u64> {
        self.read_rows(by, Rows::class_row, |row| row.row, true, f)
    }

    fn read_rows<R>(
        &self,
        by: By,
        read_row: impl Fn(&Rows, usize) -> Result<R, CountsError>,
        row_of: impl Fn(&R) -> Row,
        with_ends: bool,
        f: &mut dyn FnMut(&[R]) -> Result<()>,
    ) -> Result<u64> {
        // A panic of the crate `parquet` is a damaged file, and one of `f` is not.
        let mut f = |rows: &[R]| task::caught(|| f(rows));
        self.read_file(|file| {
            let (mut rows, mut batch) = (Rows::default(), Vec::new());
            let (mut read, mut games) = (0, 0);
            for group in 0..file.groups().len() {
                let mut group = GroupReader::open(file, group, read, by)?;
                while group.read(&mut rows)? {
                    batch.clear();
                    for at in 0..rows.keys.len() {
                        let read = read_row(&rows, at)?;
                        let row = row_of(&read);
                        games += row.plies();
                        if games > MOST_GAMES {
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

    /// Hands all positions in which games started to `f`, some at a time. Returns how many games these are.
    ///
    /// # Errors
    ///
    /// As [`read`](Part::read).
    pub fn read_starts(&self, f: &mut dyn FnMut(Vec<Start>) -> Result<()>) -> Result<u64> {
        let mut f = |starts: Vec<Start>| task::caught(|| f(starts));
        self.read_file(|file| read_starts(file, &mut f))
    }

    /// Reads the file with `read`, which returns its rows and games, and compares them with the sidecar.
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

    /// Opens the file.
    pub(super) fn open(&self) -> Result<ParquetFile> {
        let file = File::open(&self.path).at(&self.path, "open")?;
        self.named(caught(|| ParquetFile::open(file)))
    }

    /// Compares the bytes with the checksum in the sidecar.
    pub(super) fn check_bytes(&self) -> Result<()> {
        let Some(expected) = self.listed.as_ref().and_then(|listed| listed.crc32) else {
            return Ok(());
        };
        let mut file = File::open(&self.path).at(&self.path, "open")?;
        if crc32_of(&mut file).at(&self.path, "read")? == expected {
            return Ok(());
        }
        self.named(Err(CountsError::Altered))
    }

    /// Compares rows and games that were read with what the sidecar says.
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

    /// An error with the name of the file.
    pub(super) fn named<T>(&self, result: Result<T, CountsError>) -> Result<T> {
        result.map_err(|err| match err {
            CountsError::Io(problem) => {
                Error::failed(&self.path, format!("cannot be read: {problem}"))
            }
            err => Error::format(&self.path, err),
        })
    }
}
