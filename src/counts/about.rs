//! The sidecar `counts.json`: where counts come from, and which parts there are.

use std::{
    collections::BTreeMap,
    ffi::OsStr,
    fs::{self, File},
    io::{self, Read, Write},
    path::Path,
};

use crc32fast::Hasher;
use serde::{Deserialize, Serialize};

use super::{
    error::CountsError,
    file::file_size,
    layout::{FORMAT, SIDECAR, VERSION},
    rows::MOST_GAMES,
};
use crate::{
    error::{At, Error, Result},
    provenance::{Games, Pruned, Rejection},
    tally::By,
};

/// The most bytes that a sidecar may have: many thousand names of inputs.
const LONGEST: u64 = if cfg!(test) { 1 << 12 } else { 4 << 20 };

/// Where counts come from: the facts that a book's header has, and the report of a run.
#[derive(Clone, PartialEq, Eq, Default, Debug, Serialize, Deserialize)]
pub struct About {
    /// The names of the inputs in their order, without directories.
    pub inputs: Vec<String>,
    /// What became of the games; `None` if counts without them are among the inputs.
    pub games: Option<Games>,
    /// The options that decided what was counted and that differ from the defaults, spelled as on the command line.
    pub options: String,
    /// The variant, as the option `--variant` names it.
    pub variant: String,
    /// Half-moves that count: the sum of all wins, draws and losses.
    pub plies: u64,
    /// The classes that are counted apart.
    #[serde(default, skip_serializing_if = "is_none")]
    pub by: By,
    /// What was dropped, if positions were.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pruned: Option<Pruned>,
    /// Half-moves that no book can have.
    #[serde(default)]
    pub left_out: u64,
    /// Games and variations that a null move ends.
    #[serde(default)]
    pub null_moves: u64,
    /// Variations with a move that cannot be played.
    #[serde(default)]
    pub unplayable_variations: u64,
    /// Games that start with castling rights that cannot be.
    #[serde(default)]
    pub castling_dropped: u64,
    /// Games that end with another result than their `Result` tag has.
    #[serde(default)]
    pub contradicted_results: u64,
    /// Games that were left out, by the filter that rejected them.
    #[serde(default)]
    pub filtered_by: BTreeMap<String, u64>,
    /// Games that count by their variant, unless only standard chess was asked for.
    #[serde(default)]
    pub variants: BTreeMap<String, u64>,
    /// The first rejected games, in the order of the inputs.
    #[serde(default)]
    pub rejected: Vec<Rejection>,
}

// What serde asks for.
#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
fn is_none(by: &By) -> bool {
    by.is_none()
}

/// A file that a sidecar lists.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(super) struct ListedFile {
    /// Its name.
    pub file: String,
    pub rows: u64,
    /// Its size.
    pub bytes: u64,
    /// The sum of its wins, draws and losses; of starts, their games.
    pub plies: u64,
    /// The CRC-32 of its bytes, as in gzip and PNG. Not every query engine writes it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub crc32: Option<u32>,
}

impl ListedFile {
    /// Lists a file that has been written.
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

/// The CRC-32 of a file.
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

/// All that a sidecar holds.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub(super) struct Sidecar {
    pub format: String,
    pub version: u32,
    #[serde(flatten)]
    pub about: About,
    pub parts: Vec<ListedFile>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub starts: Option<ListedFile>,
}

/// The files of a sidecar. Serde keeps unknown fields in memory where one structure has all.
#[derive(Deserialize)]
struct Files {
    parts: Vec<ListedFile>,
    #[serde(default)]
    starts: Option<ListedFile>,
}

/// The fields that every version of a sidecar has.
#[derive(Deserialize)]
struct Versioned {
    format: String,
    version: u32,
}

impl Sidecar {
    pub(super) fn new(about: About, parts: Vec<ListedFile>, starts: Option<ListedFile>) -> Sidecar {
        Sidecar {
            format: FORMAT.to_owned(),
            version: VERSION,
            about,
            parts,
            starts,
        }
    }

    /// Whether it lists a file of this name.
    pub(super) fn lists(&self, name: &OsStr) -> bool {
        let mut listed = self.parts.iter().chain(&self.starts);
        listed.any(|listed| *name == *listed.file)
    }

    /// Writes it into a directory.
    pub(super) fn write(&self, directory: &Path, target: &Path) -> Result<()> {
        let text = serde_json::to_vec_pretty(self).map_err(io::Error::from);
        let mut text = text.at(target, "write")?;
        text.push(b'\n');
        if text.len() as u64 > LONGEST {
            let problem = format!(
                "the names of the inputs take more than {LONGEST} bytes: count fewer files"
            );
            return Err(Error::too_large(target, problem));
        }
        let file = File::create_new(directory.join(SIDECAR));
        file.and_then(|mut file| file.write_all(&text))
            .at(target, "write")
    }

    /// Reads that of a directory, `None` if it has none.
    pub(super) fn read(directory: &Path) -> Result<Option<Sidecar>> {
        let path = directory.join(SIDECAR);
        if fs::symlink_metadata(&path).is_err_and(|err| err.kind() == io::ErrorKind::NotFound) {
            return Ok(None);
        }
        file_size(&path)?;
        let mut text = Vec::new();
        File::open(&path)
            .and_then(|file| file.take(LONGEST + 1).read_to_end(&mut text))
            .at(&path, "read")?;
        let sidecar = Sidecar::parsed(&text).map_err(|err| Error::format(&path, err))?;
        Ok(Some(sidecar))
    }

    fn parsed(text: &[u8]) -> Result<Sidecar, CountsError> {
        let unknown = |err: serde_json::Error| CountsError::Sidecar(err.to_string());
        if text.len() as u64 > LONGEST {
            return Err(CountsError::Sidecar(format!("more than {LONGEST} bytes")));
        }
        let Versioned { format, version } = serde_json::from_slice(text).map_err(unknown)?;
        if format != FORMAT {
            return Err(CountsError::Sidecar(format!("the format is \"{format}\"")));
        }
        if version != VERSION {
            return Err(CountsError::Version(version));
        }
        let about = serde_json::from_slice(text).map_err(unknown)?;
        let Files { parts, starts } = serde_json::from_slice(text).map_err(unknown)?;
        let sidecar = Sidecar::new(about, parts, starts);
        sidecar.check()?;
        Ok(sidecar)
    }

    /// Makes sure that the numbers can be, and that names stay in the directory.
    fn check(&self) -> Result<(), CountsError> {
        for listed in self.parts.iter().chain(&self.starts) {
            let is_name = Path::new(&listed.file)
                .file_name()
                .is_some_and(|name| name == listed.file.as_str());
            if !is_name {
                let file = &listed.file;
                return Err(CountsError::Sidecar(format!(
                    "\"{file}\" is not a file's name"
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
        ];
        if let Some(pruned) = self.about.pruned {
            let numbers = [pruned.positions, pruned.rows, pruned.plies];
            if numbers.iter().any(|number| *number > MOST_GAMES) {
                return Err(CountsError::Overflow);
            }
            // A position that was kept has as many half-moves.
            let (least, plies) = (pruned.min_game, self.about.plies);
            if least == 0 || (1..least).contains(&plies) {
                return Err(CountsError::Sidecar(format!(
                    "it keeps {plies} half-moves with \"min_game\" {least}"
                )));
            }
        }
        let by_name = self
            .about
            .filtered_by
            .values()
            .chain(self.about.variants.values());
        let most = numbers.iter().chain(by_name).max().copied();
        // So that those of many directories add up.
        if most.unwrap_or_default() > 1 << 50 {
            return Err(CountsError::Overflow);
        }
        let parts: u128 = self.parts.iter().map(|part| u128::from(part.plies)).sum();
        if parts != u128::from(self.about.plies) {
            return Err(CountsError::Sidecar(format!(
                "its parts have {parts} half-moves and its games {}, so a part is missing or counts twice",
                self.about.plies
            )));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sidecar() -> Sidecar {
        let part = ListedFile {
            file: "part-000.parquet".to_owned(),
            rows: 1,
            bytes: 500,
            plies: 3,
            crc32: None,
        };
        let about = About {
            inputs: vec!["a.pgn".to_owned()],
            plies: 3,
            variant: "normal".to_owned(),
            ..About::default()
        };
        Sidecar::new(about, vec![part], None)
    }

    #[test]
    fn what_was_written_is_listed_with_its_checksum() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("file"), "123456789").unwrap();
        let listed = ListedFile::of(dir.path(), "file".to_owned(), 1, 2).unwrap();
        // The check value of the catalogue of CRCs.
        assert_eq!((listed.bytes, listed.crc32), (9, Some(0xcbf4_3926)));
    }

    fn parsed(sidecar: &Sidecar) -> Result<Sidecar, CountsError> {
        Sidecar::parsed(&serde_json::to_vec(sidecar).unwrap())
    }

    #[test]
    fn what_is_written_is_read() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(Sidecar::read(dir.path()).unwrap(), None);
        sidecar().write(dir.path(), dir.path()).unwrap();
        assert_eq!(Sidecar::read(dir.path()).unwrap(), Some(sidecar()));
    }

    #[test]
    fn no_sidecar_is_written_that_would_not_be_read() {
        let dir = tempfile::tempdir().unwrap();
        let mut long = sidecar();
        long.about.inputs = vec!["games.pgn".to_owned(); LONGEST as usize / 9];
        let err = long.write(dir.path(), dir.path()).unwrap_err();
        assert_eq!(err.kind(), crate::error::ErrorKind::TooLarge);
    }

    #[test]
    fn what_cannot_be_is_refused() {
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
        many.about.games = Some(Games {
            read: u64::MAX,
            ..Games::default()
        });
        assert_eq!(parsed(&many), Err(CountsError::Overflow));
        for text in ["", "{}", "[1]", "{\"format\":\"x\",\"version\":1}"] {
            let err = Sidecar::parsed(text.as_bytes()).unwrap_err();
            assert!(matches!(err, CountsError::Sidecar(_)), "{text}: {err}");
        }
    }
}
