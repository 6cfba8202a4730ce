//! Reads and writes two files of a counts directory: `_counts.json`, which says which games were counted and lists the
//! Parquet files, and `_starts.pq`, which contains the positions in which games started. `_counts.json` is also needed
//! to decide whether a directory may be replaced.

use std::{
    collections::BTreeMap,
    ffi::{OsStr, OsString},
    fs::{self, File},
    io::{self, Read, Write},
    path::Path,
};

use crc32fast::Hasher;
use parquet::data_type::{ByteArray, ByteArrayType, Int64Type};
use serde::{Deserialize, Serialize};

use super::{
    Grouping,
    error::CountsError,
    layout::{
        EPD, FORMAT, GAMES, MOVES, POSITIONS, SIDECAR, STARTS, STARTS_SCHEMA, VERSION, is_part_name,
    },
    parquet_file::{FoundColumn, ParquetFile, ValueType, file_size},
    rows::MAX_TOTAL_GAMES,
};
use crate::{
    error::{At, Error, ErrorKind, Result},
    provenance::{GameCounts, Pruned, Rejection},
    storage::output::{is_absent, is_empty_directory, own_files},
    storage::parquet_table::{ROWS_PER_GROUP, TableWriter, properties, write_column},
};

/// The maximum size of `_counts.json` in bytes. This size is enough for the names of many thousands of inputs.
const MAX_SIDECAR_SIZE: u64 = if cfg!(test) { 1 << 12 } else { 4 << 20 };

/// A description of how a counts directory was made: the inputs, the options, and the report of the run that counted
/// the games. It is stored in the file `_counts.json`.
#[derive(Clone, PartialEq, Eq, Default, Debug, Serialize, Deserialize)]
pub struct CountsOrigin {
    /// The file names of the inputs, in the order of the inputs, without directories.
    pub inputs: Vec<String>,
    /// The numbers of games that were read, counted and left out. `None` if an input is a counts directory without
    /// these numbers.
    pub games: Option<GameCounts>,
    /// The command-line options that determine what was counted. Options with their default values are left out.
    pub options: String,
    /// The variant, by its name on the command line.
    pub variant: String,
    /// The number of counted half-moves: the sum of all wins, draws and losses.
    pub plies: u64,
    /// The properties of games (speed, rating group and month) by which the rows are grouped.
    #[serde(default, skip_serializing_if = "is_none")]
    pub by: Grouping,
    /// The numbers of positions, rows and half-moves that were pruned, or `None` if pruning was not requested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pruned: Option<Pruned>,
    /// The number of half-moves that no book can contain.
    #[serde(default)]
    pub left_out: u64,
    /// The number of games and variations that end early at a null move.
    #[serde(default)]
    pub null_moves: u64,
    /// The number of variations with an illegal move.
    #[serde(default)]
    pub unplayable_variations: u64,
    /// The number of games whose starting position has impossible castling rights.
    #[serde(default)]
    pub castling_dropped: u64,
    /// The number of games whose result after the moves differs from the `Result` tag.
    #[serde(default)]
    pub contradicted_results: u64,
    /// The number of counted games whose `Result` tag, or whose text after the moves, is not a valid result.
    #[serde(default)]
    pub unreadable_results: u64,
    /// The number of counted games that were neither won nor drawn, such as unfinished games, which are counted as
    /// draws.
    #[serde(default)]
    pub unfinished: u64,
    /// The number of games that passed a filter on dates although their year is unknown.
    #[serde(default)]
    pub undated: u64,
    /// The number of games that passed a filter on ratings although a rating is unknown.
    #[serde(default)]
    pub unrated: u64,
    /// The number of games that each filter rejected, keyed by the name of the filter.
    #[serde(default)]
    pub filtered_by: BTreeMap<String, u64>,
    /// The number of counted games of each variant, unless only standard chess was requested.
    #[serde(default)]
    pub variants: BTreeMap<String, u64>,
    /// The first rejected games, in the order of the inputs.
    #[serde(default)]
    pub rejected: Vec<Rejection>,
}

/// Returns `true` if rows are not grouped by any property of games. In this case, serde omits the field `by`.
#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
fn is_none(by: &Grouping) -> bool {
    by.is_none()
}

/// An entry of `_counts.json` that describes one file of a counts directory.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(super) struct ListedFile {
    /// The file name, without a directory.
    pub file: String,
    /// The number of rows.
    pub rows: u64,
    /// The size in bytes.
    pub bytes: u64,
    /// The sum of wins, draws and losses, or the number of games in a file of starting positions.
    pub plies: u64,
    /// The CRC-32 of the file, as in gzip and PNG. `None` if the program that wrote `_counts.json` did not calculate
    /// it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub crc32: Option<u32>,
}

impl ListedFile {
    /// Creates the entry of `_counts.json` for a file in `directory`. `file` is the name of the file, which must be
    /// completely written. `rows` and `plies` are the numbers of its rows and half-moves. The size and the checksum are
    /// read from the file.
    ///
    /// # Errors
    ///
    /// Returns an error if the file cannot be read.
    pub(super) fn of(
        directory: &Path,
        file: String,
        rows: u64,
        plies: u64,
    ) -> io::Result<ListedFile> {
        let mut written = File::open(directory.join(&file))?;
        Ok(ListedFile {
            rows,
            bytes: written.metadata()?.len(),
            plies,
            crc32: Some(crc32_of(&mut written)?),
            file,
        })
    }
}

/// Calculates the CRC-32 checksum of the rest of a file, from its current offset to its end.
///
/// # Errors
///
/// Returns an error if the file cannot be read.
pub(super) fn crc32_of(file: &mut File) -> io::Result<u32> {
    let mut sum = Hasher::new();
    let mut buffer = vec![0; 1 << 18];
    loop {
        match file.read(&mut buffer) {
            Ok(0) => return Ok(sum.finalize()),
            Ok(read) => sum.update(&buffer[..read]),
            Err(err) if err.kind() == io::ErrorKind::Interrupted => {}
            Err(err) => return Err(err),
        }
    }
}

/// The complete content of `_counts.json`: a description of the counted games, and a list of the files in the counts
/// directory.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub(super) struct Sidecar {
    pub format: String,
    pub version: u32,
    #[serde(flatten)]
    pub about: CountsOrigin,
    pub parts: Vec<ListedFile>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub starts: Option<ListedFile>,
    /// The files with the names of positions and moves.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub names: Vec<ListedFile>,
}

/// The fields of `_counts.json` that list files. They are deserialized separately from the other fields, because serde
/// would otherwise buffer all unknown fields in memory.
#[derive(Deserialize)]
struct Files {
    parts: Vec<ListedFile>,
    #[serde(default)]
    starts: Option<ListedFile>,
    #[serde(default)]
    names: Vec<ListedFile>,
}

/// The fields of `_counts.json` that exist in every version of the format.
#[derive(Deserialize)]
struct Versioned {
    format: String,
    version: u32,
}

impl Sidecar {
    /// Creates the content of `_counts.json` in the current version of the format. `about` describes the games that
    /// were counted, and `parts` lists the Parquet files. `starts` is the entry of the file with the starting
    /// positions, or `None` if there is no such file.
    pub(super) fn new(
        about: CountsOrigin,
        parts: Vec<ListedFile>,
        starts: Option<ListedFile>,
    ) -> Sidecar {
        Sidecar {
            format: FORMAT.to_owned(),
            version: VERSION,
            about,
            parts,
            starts,
            names: Vec::new(),
        }
    }

    /// Returns an iterator over all files that `_counts.json` lists.
    fn files(&self) -> impl Iterator<Item = &ListedFile> {
        self.parts.iter().chain(&self.starts).chain(&self.names)
    }

    /// Returns `true` if `_counts.json` lists a file with the name `name`.
    pub(super) fn lists(&self, name: &OsStr) -> bool {
        self.files().any(|listed| *name == *listed.file)
    }

    /// Writes `_counts.json` to `directory`, a temporary directory that will be renamed to `target`. Error messages
    /// name the path `target`.
    ///
    /// # Errors
    ///
    /// Returns an error if the file exists already or cannot be written. Also returns an error if the text would be
    /// longer than [`MAX_SIDECAR_SIZE`] bytes, because [`read`](Sidecar::read) would reject the file.
    pub(super) fn write(&self, directory: &Path, target: &Path) -> Result<()> {
        let text = serde_json::to_vec_pretty(self).map_err(io::Error::from);
        let mut text = text.at(target, "write")?;
        text.push(b'\n');
        if text.len() as u64 > MAX_SIDECAR_SIZE {
            let problem = format!(
                "the names of all inputs together are longer than {MAX_SIDECAR_SIZE} bytes: count fewer files at a time"
            );
            return Err(Error::too_large(target, problem));
        }
        let file = File::create_new(directory.join(SIDECAR));
        file.and_then(|mut file| file.write_all(&text))
            .at(target, "write")
    }

    /// Reads the file `_counts.json` in `directory`. Returns `None` if the file does not exist.
    ///
    /// # Errors
    ///
    /// Returns an error if the file cannot be read, is malformed, contradicts itself, or has an unsupported version of
    /// the format.
    pub(super) fn read(directory: &Path) -> Result<Option<Sidecar>> {
        let path = directory.join(SIDECAR);
        if fs::symlink_metadata(&path).is_err_and(|err| is_absent(&err)) {
            return Ok(None);
        }
        file_size(&path)?;
        let mut text = Vec::new();
        File::open(&path)
            .and_then(|file| file.take(MAX_SIDECAR_SIZE + 1).read_to_end(&mut text))
            .at(&path, "read")?;
        let sidecar = Sidecar::parsed(&text).map_err(|err| Error::format(&path, err))?;
        Ok(Some(sidecar))
    }

    /// Parses the text of `_counts.json` and checks its content.
    fn parsed(text: &[u8]) -> Result<Sidecar, CountsError> {
        let unknown = |err: serde_json::Error| CountsError::Sidecar(err.to_string());
        if text.len() as u64 > MAX_SIDECAR_SIZE {
            return Err(CountsError::Sidecar(format!(
                "the file has more than {MAX_SIDECAR_SIZE} bytes"
            )));
        }
        let Versioned { format, version } = serde_json::from_slice(text).map_err(unknown)?;
        if format != FORMAT {
            return Err(CountsError::Sidecar(format!("the format is \"{format}\"")));
        }
        if version != VERSION {
            return Err(CountsError::Version(version));
        }
        let about = serde_json::from_slice(text).map_err(unknown)?;
        let Files {
            parts,
            starts,
            names,
        } = serde_json::from_slice(text).map_err(unknown)?;
        let sidecar = Sidecar {
            names,
            ..Sidecar::new(about, parts, starts)
        };
        sidecar.check()?;
        Ok(sidecar)
    }

    /// Checks the content of `_counts.json`. File names must not contain directories. The numbers of rows and
    /// half-moves must be consistent, and small enough that sums over many directories cannot overflow.
    fn check(&self) -> Result<(), CountsError> {
        for listed in self.files() {
            let is_name = Path::new(&listed.file)
                .file_name()
                .is_some_and(|name| name == listed.file.as_str());
            if !is_name {
                let file = &listed.file;
                return Err(CountsError::Sidecar(format!(
                    "\"{file}\" is not the name of a file in this directory"
                )));
            }
        }
        let games = self.about.games.unwrap_or_default();
        let numbers = [
            games.read,
            games.counted,
            games.filtered,
            games.rejected,
            self.about.left_out,
            self.about.null_moves,
            self.about.unplayable_variations,
            self.about.castling_dropped,
            self.about.contradicted_results,
            self.about.unreadable_results,
            self.about.unfinished,
            self.about.undated,
            self.about.unrated,
        ];
        if let Some(pruned) = self.about.pruned {
            let numbers = [pruned.positions, pruned.rows, pruned.plies];
            if numbers.iter().any(|number| *number > MAX_TOTAL_GAMES) {
                return Err(CountsError::Overflow);
            }
            // A kept position has at least `min_game` half-moves, so the sum is 0 or at least `min_game`.
            let (least, plies) = (pruned.min_game, self.about.plies);
            if least == 0 || (1..least).contains(&plies) {
                return Err(CountsError::Sidecar(format!(
                    "the counts keep {plies} half-moves, which contradicts \"min_game\" {least}"
                )));
            }
        }
        let by_name = self
            .about
            .filtered_by
            .values()
            .chain(self.about.variants.values());
        let most = numbers.iter().chain(by_name).max().copied();
        // This limit is lower than `MAX_TOTAL_GAMES`, so that the numbers of many directories can be added up.
        if most.unwrap_or_default() > 1 << 50 {
            return Err(CountsError::Overflow);
        }
        let parts: u128 = self.parts.iter().map(|part| u128::from(part.plies)).sum();
        if parts != u128::from(self.about.plies) {
            return Err(CountsError::Sidecar(format!(
                "the Parquet files contain {parts} half-moves, but the games contain {}, so a file is missing or is \
                 listed twice",
                self.about.plies
            )));
        }
        Ok(())
    }
}

/// Checks that a new counts directory may replace the file or directory at `path`. Returns the names of the old files,
/// which are removed together with the old directory. An empty directory may always be replaced. A counts directory may
/// be replaced only if `force` is `true`.
///
/// # Errors
///
/// Returns [`Error::Exists`] for a counts directory if `force` is `false`. Returns [`Error::foreign`] for anything
/// else, such as a directory with a file that `_counts.json` does not list. Also returns an error if the directory
/// cannot be read.
pub(super) fn check_replaceable(path: &Path, force: bool) -> Result<Vec<OsString>> {
    if is_empty_directory(path)? {
        return Ok(Vec::new());
    }
    let refused = |problem: &str| Err(Error::foreign(path, problem));
    let sidecar = match Sidecar::read(path) {
        Ok(Some(sidecar)) => sidecar,
        Err(err) if err.kind() == ErrorKind::Io => return Err(err),
        _ => {
            return refused(
                "this file or directory exists and is not a directory of counts made by polybook: choose another \
                 directory",
            );
        }
    };
    match own_files(path, |name| name == SIDECAR || sidecar.lists(name))? {
        Err(other) => refused(&format!(
            "this directory exists and contains {}, which {SIDECAR} does not list: move that file away, or choose \
             another directory",
            other.display()
        )),
        Ok(files) if force => Ok(files),
        Ok(_) => Err(Error::exists(path)),
    }
}

/// Returns `true` if polybook may have written the file `name` in `directory`, a temporary directory that an
/// interrupted run may have left. This is the case if `name` has the form of a name that polybook gives to files in a
/// counts directory, or if `_counts.json` lists the file.
pub(super) fn is_own_file(directory: &Path, name: &OsStr) -> bool {
    let is_listed = || matches!(Sidecar::read(directory), Ok(Some(sidecar)) if sidecar.lists(name));
    let is_table = [SIDECAR, STARTS, POSITIONS, MOVES]
        .iter()
        .any(|own| name == *own);
    is_table || is_part_name(name) || is_listed()
}

/// The maximum length of an EPD in bytes. Even in variants with large boards or many pieces, an EPD has only about
/// 100 bytes.
const MAX_EPD_LENGTH: usize = 1000;

/// The number of rows of starting positions that are read at a time. This number is small because each row contains a
/// string, which may be as large as a Parquet page.
const ROWS_PER_BATCH: usize = 8;

/// A starting position, and the number of games that started in it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Start {
    /// The position as an EPD.
    pub epd: String,
    /// The number of games that started in the position.
    pub games: u64,
}

/// Writes the positions in which games started to `_starts.pq` in `directory`, a temporary directory that will be
/// renamed to `target`. Returns the entry of the file for `_counts.json`. If there are no positions, writes no file
/// and returns `None`.
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
        if epds.len() == ROWS_PER_GROUP || starts.peek().is_none() {
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

/// Calls `f` with the positions in which games started, a few positions at a time. Returns the number of rows in `file`
/// and the total number of games counted in the rows.
///
/// # Errors
///
/// The outer result is an error if the file is damaged or contains an invalid value. The inner result is the error
/// of `f`.
pub(super) fn read_starts(
    file: &ParquetFile,
    f: &mut dyn FnMut(Vec<Start>) -> Result<()>,
) -> Result<Result<(u64, u64)>, CountsError> {
    let schema = file.schema();
    let epds = FoundColumn::required(schema, EPD, ValueType::Texts)?;
    let games = FoundColumn::required(schema, GAMES, ValueType::Integers)?;
    let (mut texts, mut numbers) = (Vec::new(), Vec::new());
    let (mut row, mut sum) = (0, 0u64);
    for group in 0..file.groups().len() {
        let mut left = file.rows(group)?;
        let (mut epds, mut games) = (epds.open(file, group)?, games.open(file, group)?);
        while left > 0 {
            let rows = left.min(ROWS_PER_BATCH);
            epds.texts(rows, row, &mut texts)?;
            games.integers(rows, row, &mut numbers)?;
            let mut starts = Vec::with_capacity(rows);
            for (at, (epd, games)) in texts.iter().zip(&numbers).enumerate() {
                let start = start(epd.data(), *games, row + at as u64)?;
                sum += start.games;
                if sum > MAX_TOTAL_GAMES {
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

/// Creates a [`Start`] from the values of one row. `epd` is the EPD of a position, and `games` is the number of games
/// that started in this position. `row` is the number of the row, for error messages.
///
/// # Errors
///
/// Returns an error if `epd` is too long or not UTF-8, or if `games` is negative.
fn start(epd: &[u8], games: i64, row: u64) -> Result<Start, CountsError> {
    let games = u64::try_from(games).map_err(|_| CountsError::Value {
        column: GAMES,
        row,
        value: games,
    })?;
    match std::str::from_utf8(epd) {
        Ok(text) if text.len() <= MAX_EPD_LENGTH => Ok(Start {
            epd: text.to_owned(),
            games,
        }),
        _ => Err(CountsError::Start {
            row,
            epd: String::from_utf8_lossy(&epd[..epd.len().min(40)]).into_owned(),
            reason: "the text is too long, or is not UTF-8".to_owned(),
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::formats::counts::CountsOrigin;

    fn sidecar() -> Sidecar {
        let part = ListedFile {
            file: "part-000.parquet".to_owned(),
            rows: 1,
            bytes: 500,
            plies: 3,
            crc32: None,
        };
        let about = CountsOrigin {
            inputs: vec!["a.pgn".to_owned()],
            plies: 3,
            variant: "normal".to_owned(),
            ..CountsOrigin::default()
        };
        Sidecar::new(about, vec![part], None)
    }

    #[test]
    fn files_are_listed_with_their_checksums() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("file"), "123456789").unwrap();
        let listed = ListedFile::of(dir.path(), "file".to_owned(), 1, 2).unwrap();
        // The check value that catalogues of CRC algorithms list for CRC-32.
        assert_eq!((listed.bytes, listed.crc32), (9, Some(0xcbf4_3926)));
    }

    fn parsed(sidecar: &Sidecar) -> Result<Sidecar, CountsError> {
        Sidecar::parsed(&serde_json::to_vec(sidecar).unwrap())
    }

    #[test]
    fn a_written_sidecar_can_be_read() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(Sidecar::read(dir.path()).unwrap(), None);
        sidecar().write(dir.path(), dir.path()).unwrap();
        assert_eq!(Sidecar::read(dir.path()).unwrap(), Some(sidecar()));
    }

    #[test]
    fn a_sidecar_that_is_too_large_is_not_written() {
        let dir = tempfile::tempdir().unwrap();
        let mut long = sidecar();
        long.about.inputs = vec!["games.pgn".to_owned(); MAX_SIDECAR_SIZE as usize / 9];
        let err = long.write(dir.path(), dir.path()).unwrap_err();
        assert_eq!(err.kind(), crate::error::ErrorKind::TooLarge);
        let advice = "count fewer files at a time";
        assert!(err.to_string().contains(advice), "{err}");
        long.about.inputs.truncate(MAX_SIDECAR_SIZE as usize / 40);
        long.write(dir.path(), dir.path()).unwrap();
    }

    #[test]
    fn contradictory_sidecars_are_refused() {
        let mut newer = sidecar();
        newer.version = VERSION + 1;
        assert_eq!(parsed(&newer), Err(CountsError::Version(VERSION + 1)));
        let mut lost = sidecar();
        lost.parts.clear();
        assert!(parsed(&lost).unwrap_err().to_string().contains("missing"));
        for name in ["../part-000.parquet", "/etc/passwd", "", "..", "a/b"] {
            let mut elsewhere = sidecar();
            elsewhere.parts[0].file = name.to_owned();
            assert!(parsed(&elsewhere).is_err(), "{name}");
        }
        for (min_game, is_possible) in [(0, false), (1, true), (3, true), (4, false)] {
            let mut pruned = sidecar();
            pruned.about.pruned = Some(Pruned {
                min_game,
                ..Pruned::default()
            });
            assert_eq!(parsed(&pruned).is_ok(), is_possible, "{min_game}");
        }
        let mut many = sidecar();
        many.about.games = Some(GameCounts {
            read: u64::MAX,
            ..GameCounts::default()
        });
        assert_eq!(parsed(&many), Err(CountsError::Overflow));
        for text in ["", "{}", "[1]", "{\"format\":\"x\",\"version\":1}"] {
            let err = Sidecar::parsed(text.as_bytes()).unwrap_err();
            assert!(matches!(err, CountsError::Sidecar(_)), "{text}: {err}");
        }
    }

    #[test]
    fn only_counts_are_replaced_and_only_by_force() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path();
        check_replaceable(path, false).unwrap();
        Sidecar::new(CountsOrigin::default(), Vec::new(), None)
            .write(path, path)
            .unwrap();
        assert!(matches!(
            check_replaceable(path, false),
            Err(Error::Exists { .. })
        ));
        check_replaceable(path, true).unwrap();
        for foreign in ["thesis.txt", "mine.parquet", "part-000.parquet"] {
            fs::write(path.join(foreign), "precious").unwrap();
            let err = check_replaceable(path, true).unwrap_err().to_string();
            assert!(err.contains(foreign), "{err}");
            fs::remove_file(path.join(foreign)).unwrap();
        }
        fs::write(path.join("thesis.txt"), "precious").unwrap();
        let file = path.join("thesis.txt");
        assert!(check_replaceable(&file, true).is_err());
    }
}
