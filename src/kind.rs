//! Recognizes the formats of files, mainly by their first bytes.

use std::{
    ffi::OsStr,
    fs::{self, File},
    io::{self, Read},
    ops::Range,
    path::{Component, Path, Prefix},
};

use crate::error::{At, Result};

/// The kind of a file or directory. The kind of a file is recognized by its first bytes, and the kind of a directory by
/// the names of its files.
///
/// ```
/// use polybook::FileKind;
///
/// assert_eq!(FileKind::of_start(b"\x28\xb5\x2f\xfd"), FileKind::Zstd);
/// assert_eq!(FileKind::of("data/famous.pgn")?, FileKind::Other);
/// assert_eq!(FileKind::of("data")?, FileKind::Directory);
/// # Ok::<(), polybook::Error>(())
/// ```
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum FileKind {
    /// An SQLite database, for example an OOBS database, in which polybook stores the moves of positions.
    Sqlite,
    /// A store of [evaluations](crate::formats::evals) of positions that polybook wrote, in any version of the format.
    Evals,
    /// A Parquet file.
    Parquet,
    /// A file that is compressed with gzip.
    Gzip,
    /// A file that is compressed with bzip2.
    Bzip2,
    /// A file that is compressed with zstd.
    Zstd,
    /// A zip archive.
    Zip,
    /// A file that is compressed with xz.
    Xz,
    /// A file in another known format that no command of polybook reads, for example a 7z archive.
    Foreign,
    /// A [counts directory](crate::formats::counts), which contains the number of games of each move. It was written by
    /// polybook or another program.
    Counts,
    /// Any other directory, for example an index.
    Directory,
    /// A file without a known signature, for example a PGN file, a Polyglot book or an empty file. Pipes and devices
    /// also have this kind, because they are not read.
    Other,
}

/// The first bytes of every store of position evaluations, as the command `polybook evals` writes it.
pub(crate) const EVALS: &[u8] = b"\0\0\0\0\0\0\0\0polybook evals ";

/// The name of the file in a counts directory that describes from which games, and with which options, the directory
/// was made.
pub(crate) const SIDECAR: &str = "_counts.json";

/// The suffix of the names of all Parquet files in a counts directory.
pub(crate) const ENDING: &str = ".parquet";

/// A file format that polybook recognizes, with advice for users who have a file in this format.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Format {
    pub(crate) kind: FileKind,
    /// The name of the format, which completes the sentence "this file is ...".
    pub(crate) name: &'static str,
    /// Advice for the user of a command that needs a different format, as an imperative.
    pub(crate) advice: &'static str,
}

impl Format {
    const fn new(kind: FileKind, name: &'static str, advice: &'static str) -> Format {
        Format { kind, name, advice }
    }

    const fn foreign(name: &'static str, advice: &'static str) -> Format {
        Format::new(FileKind::Foreign, name, advice)
    }

    const fn archive(name: &'static str) -> Format {
        Format::foreign(name, "unpack the archive and give the files in it")
    }

    const fn games(name: &'static str) -> Format {
        Format::foreign(
            name,
            "export the games as PGN with the program that made this file",
        )
    }

    const fn table(name: &'static str) -> Format {
        Format::foreign(name, "export the games as PGN")
    }

    /// Recognizes a format by the first bytes of a file, `start`. Returns `None` if they contain no known signature.
    /// More than [`MAX_SIGNATURE_LENGTH`] bytes are not needed.
    pub(crate) fn of_start(start: &[u8]) -> Option<&'static Format> {
        let has = |(offset, bytes): &(usize, &[u8])| {
            start
                .get(*offset..)
                .is_some_and(|from| from.starts_with(bytes))
        };
        if let Some((_, format)) = SIGNATURES.iter().find(|(signature, _)| has(signature)) {
            return Some(format);
        }
        match *start {
            [b'B', b'Z', b'h', b'1'..=b'9', ..] => Some(&BZIP2),
            // A skippable frame of zstd (RFC 8878, 3.1.2).
            [0x50..=0x5f, 0x2a, 0x4d, 0x18, ..] => Some(&ZSTD),
            // The name of the compression method, for example `-lh5-` or `-lzs-`.
            [_, _, b'-', b'l', b'h' | b'z', _, b'-', ..] => Some(&LHA),
            _ if is_old_tar(start) => Some(&TAR),
            _ => None,
        }
    }

    /// Recognizes text in UTF-16 or UTF-32 without a byte order mark. `start` contains the first bytes of a file. In
    /// such an encoding of English text, nearly all bytes of a character are 0 except one, which is always at the same
    /// offset. Returns `None` for any other bytes.
    pub(crate) fn of_wide_text(start: &[u8]) -> Option<&'static Format> {
        let zeros = |first: usize, step: usize| {
            let bytes = start.iter().skip(first).step_by(step);
            let total = bytes.len().max(1);
            bytes.filter(|byte| **byte == 0).count() * 100 / total
        };
        let is_wide = |size: usize| {
            let zeros: Vec<usize> = (0..size).map(|first| zeros(first, size)).collect();
            let is_letter = |at: usize| {
                zeros[at] < 10 && (0..size).all(|other| other == at || zeros[other] > 90)
            };
            start.len() >= 2 * size && (is_letter(0) || is_letter(size - 1))
        };
        match () {
            () if is_wide(4) => Some(&UTF_32),
            () if is_wide(2) => Some(&UTF_16),
            () => None,
        }
    }

    /// Recognizes a format by the file extension of `path`. Returns `None` if the extension belongs to no known format.
    /// Call [`of_start`](Format::of_start) first, because most formats are recognized by their first bytes instead.
    pub(crate) fn of_extension(path: &Path) -> Option<&'static Format> {
        let extension = path.extension()?.to_str()?.to_ascii_lowercase();
        let mut known = EXTENSIONS.iter();
        known
            .find(|(extensions, _)| extensions.contains(&extension.as_str()))
            .map(|(_, format)| format)
    }
}

/// The number of bytes at the start of a file that suffice to recognize every format with a signature.
pub(crate) const MAX_SIGNATURE_LENGTH: usize = 512;

const GZIP: Format = Format::new(
    FileKind::Gzip,
    "a file compressed with gzip",
    "unpack the file, for instance with gzip -dc",
);
const BZIP2: Format = Format::new(
    FileKind::Bzip2,
    "a file compressed with bzip2",
    "unpack the file, for instance with bzip2 -dc",
);
const ZSTD: Format = Format::new(
    FileKind::Zstd,
    "a file compressed with zstd",
    "unpack the file, for instance with zstd -dc",
);
const ZIP: Format = Format::new(
    FileKind::Zip,
    "a zip archive",
    "unpack the archive and give the files in it",
);
const RAR: Format = Format::archive("a RAR archive");
const LHA: Format = Format::archive("an LHA archive");
const TAR: Format = Format::archive("a tar archive");
const CHESSBASE: Format = Format::games("a ChessBase database");
const SCID: Format = Format::games("a Scid database");
const ARENA_BOOK: Format = Format::games("an Arena book (ABK)");
const UTF_16: Format = Format::foreign(
    "text in UTF-16",
    "convert the file to UTF-8, for instance with iconv -f UTF-16 -t UTF-8",
);
const UTF_32: Format = Format::foreign(
    "text in UTF-32",
    "convert the file to UTF-8, for instance with iconv -f UTF-32 -t UTF-8",
);
const WEB_PAGE: Format = Format::foreign("a web page", "download the file to which the page links");
const IMAGE: Format = Format::foreign("an image", "give a file of games");

/// Returns `true` if the first 512 bytes of a file are the header of a tar archive in the format of Unix version 7,
/// which has no signature. Instead, the function checks the sum of the header's bytes, which the header contains as an
/// octal number. In this sum, the bytes of the number itself count as spaces.
fn is_old_tar(start: &[u8]) -> bool {
    const SUM: Range<usize> = 148..156;
    let Some(header) = start.get(..512) else {
        return false;
    };
    let digits = str::from_utf8(&header[SUM]).unwrap_or_default();
    let stated = u32::from_str_radix(digits.trim_matches(['\0', ' ']), 8);
    let others = header[..SUM.start].iter().chain(&header[SUM.end..]);
    let sum = others.map(|byte| u32::from(*byte)).sum::<u32>() + 8 * u32::from(b' ');
    stated.is_ok_and(|stated| stated == sum)
}

/// The signature of a file format: an offset in the file, and the bytes at this offset.
type Signature = (usize, &'static [u8]);

/// A table of signatures and the formats that they identify. If a file contains several signatures, the first one in
/// this table applies.
const SIGNATURES: &[(Signature, Format)] = &[
    (
        (0, b"SQLite format 3\0"),
        Format::new(
            FileKind::Sqlite,
            "an SQLite database",
            "if the file is an OOBS database, convert it to another format with polybook convert",
        ),
    ),
    (
        (0, EVALS),
        Format::new(
            FileKind::Evals,
            "a store of evaluations",
            "give the store as evaluations, or as an input of polybook evals",
        ),
    ),
    (
        (0, b"PAR1"),
        Format::new(
            FileKind::Parquet,
            "a Parquet file",
            "export the games as PGN, or give the directory of counts to which this file belongs",
        ),
    ),
    ((0, b"\x1f\x8b\x08"), GZIP),
    ((0, b"\x28\xb5\x2f\xfd"), ZSTD),
    ((0, b"PK\x03\x04"), ZIP),
    ((0, b"PK\x05\x06"), ZIP),
    (
        (0, b"\xfd7zXZ\0"),
        Format::new(
            FileKind::Xz,
            "a file compressed with xz",
            "unpack the file, for instance with xz -dc",
        ),
    ),
    ((0, b"7z\xbc\xaf\x27\x1c"), Format::archive("a 7z archive")),
    ((0, b"Rar!\x1a\x07"), RAR),
    ((0, b"RE~^"), RAR),
    ((257, b"ustar\0"), TAR),
    ((257, b"ustar  \0"), TAR),
    ((0, b"MSCF\0\0\0\0"), Format::archive("a cabinet archive")),
    ((7, b"**ACE**"), Format::archive("an ACE archive")),
    ((0, b"EGGA"), Format::archive("an EGG archive")),
    ((0, b"xar!\0"), Format::archive("a xar archive")),
    ((0, b"070701"), Format::archive("a cpio archive")),
    ((0, b"070707"), Format::archive("a cpio archive")),
    ((0, b"!<arch>\n"), Format::archive("an ar archive")),
    (
        (0, b"PK\x07\x08PK\x03\x04"),
        Format::archive("a split zip archive"),
    ),
    (
        (0, b"LRZI"),
        Format::foreign(
            "a file compressed with lrzip",
            "unpack the file, for instance with lrzcat",
        ),
    ),
    (
        (0, b"\x89LZO\0"),
        Format::foreign(
            "a file compressed with lzop",
            "unpack the file, for instance with lzop -dc",
        ),
    ),
    (
        (0, b"SZDD\x88\xf0\x27\x33"),
        Format::archive("a file compressed with compress.exe"),
    ),
    (
        (0, b"\x04\x22\x4d\x18"),
        Format::foreign(
            "a file compressed with lz4",
            "unpack the file, for instance with lz4 -dc",
        ),
    ),
    (
        (0, b"LZIP\x01"),
        Format::foreign(
            "a file compressed with lzip",
            "unpack the file, for instance with lzip -dc",
        ),
    ),
    (
        (0, b"\x5d\0\0"),
        Format::foreign(
            "a file compressed with LZMA",
            "unpack the file, for instance with xz -dc",
        ),
    ),
    (
        (0, b"\x1f\x9d"),
        Format::foreign(
            "a file compressed with compress",
            "unpack the file, for instance with gzip -dc",
        ),
    ),
    ((0, b"\x03ABK"), ARENA_BOOK),
    // The headers of ChessBase and of ChessBase Light.
    ((0, b"\0\0\x2c\0\x2e\x01"), CHESSBASE),
    ((0, b"\0\0\x24\0\x2e\x01"), CHESSBASE),
    ((0, b"Scid.si"), SCID),
    ((0, b"Scid.sn"), SCID),
    ((0, b"ARROW1\0\0"), Format::table("an Arrow file")),
    ((0, b"Obj\x01"), Format::table("an Avro file")),
    ((0, b"\x89HDF\r\n"), Format::table("an HDF5 file")),
    (
        (0, b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"),
        Format::foreign("a document of Microsoft Office", "export the games as PGN"),
    ),
    (
        (0, b"%PDF-"),
        Format::foreign("a PDF document", "give a file of games"),
    ),
    ((0, b"\x89PNG\r\n"), IMAGE),
    ((0, b"\xff\xd8\xff"), IMAGE),
    ((0, b"<!DOCTYPE"), WEB_PAGE),
    ((0, b"<!doctype"), WEB_PAGE),
    ((0, b"<html"), WEB_PAGE),
    ((0, b"<HTML"), WEB_PAGE),
    (
        (0, b"{\\rtf"),
        Format::foreign("a document in RTF", "save the document as plain text"),
    ),
    ((0, b"GIF8"), IMAGE),
    // In UTF-32, the little-endian byte order mark begins with that of UTF-16.
    ((0, b"\xff\xfe\0\0"), UTF_32),
    ((0, b"\0\0\xfe\xff"), UTF_32),
    ((0, b"\xff\xfe"), UTF_16),
    ((0, b"\xfe\xff"), UTF_16),
];

/// A table of file extensions and the formats that they identify. These formats have no signature.
const EXTENSIONS: &[(&[&str], Format)] = &[
    (
        &["ctg", "cto", "ctb"],
        Format::games("a ChessBase book (CTG)"),
    ),
    (
        &["cbv", "cbz"],
        Format::foreign(
            "a ChessBase archive (CBV)",
            "unpack the archive and export the games as PGN with ChessBase",
        ),
    ),
    (&["cbh", "cbg", "cba", "cbf", "cbi"], CHESSBASE),
    (&["si5", "sg5", "sn5", "si4", "sg4", "sn4"], SCID),
    (&["abk"], ARENA_BOOK),
];

impl FileKind {
    /// Determines the kind of the file or directory at `path`. Only regular files are opened. Pipes and devices have
    /// the kind [`Other`](FileKind::Other).
    ///
    /// # Errors
    ///
    /// Returns an error if the path does not exist or cannot be read.
    pub fn of(path: impl AsRef<Path>) -> Result<FileKind> {
        let path = path.as_ref();
        if is_windows_device(path) {
            return Ok(FileKind::Other);
        }
        let metadata = path.metadata().at(path, "open")?;
        if metadata.is_dir() {
            for entry in fs::read_dir(path).at(path, "read")? {
                if is_of_counts(&entry.at(path, "read")?.file_name()) {
                    return Ok(FileKind::Counts);
                }
            }
            return Ok(FileKind::Directory);
        }
        if !metadata.is_file() {
            return Ok(FileKind::Other);
        }
        let start = FileKind::start_of_file(path).at(path, "read")?;
        Ok(FileKind::of_start(&start))
    }

    /// Determines the kind of a file from its first bytes, `start`. More than 512 bytes are not needed.
    pub fn of_start(start: &[u8]) -> FileKind {
        Format::of_start(start).map_or(FileKind::Other, |format| format.kind)
    }

    /// Returns the name of a file's format, and advice on what to do with such a file, for error messages of commands
    /// that need a different format. Returns `None` if the format is not known. The file is not opened: `start`
    /// contains its first bytes. The extension of `path` is used only if `start` is binary data without a known
    /// signature.
    ///
    /// ```
    /// use polybook::FileKind;
    ///
    /// let advice = FileKind::advice("games.7z", b"7z\xbc\xaf\x27\x1c");
    /// assert_eq!(advice.unwrap(), "a 7z archive: unpack the archive and give the files in it");
    /// ```
    pub fn advice(path: impl AsRef<Path>, start: &[u8]) -> Option<String> {
        let by_extension = || {
            start
                .contains(&0)
                .then(|| Format::of_extension(path.as_ref()))
        };
        let format = Format::of_start(start)
            .or_else(|| Format::of_wide_text(&start[..start.len().min(1 << 16)]))
            .or_else(|| by_extension().flatten());
        format.map(|format| format!("{}: {}", format.name, format.advice))
    }

    /// Returns an error message for a file that does not have the format that a command needs. `needed` names this
    /// format, for example `an index`, and `how` says how to make such a file from games. The message names the actual
    /// format if it is known.
    pub(crate) fn problem(path: &Path, start: &[u8], needed: &str, how: &str) -> String {
        let format = Format::of_start(start).or_else(|| Format::of_extension(path));
        match format {
            Some(Format {
                kind: FileKind::Foreign,
                name,
                advice,
            }) => format!("this is {name}, not {needed}: {advice}; then {how}"),
            Some(Format { name, .. }) => format!("this is {name}, not {needed}: {how}"),
            None => format!("this is a file, not {needed}: {how}"),
        }
    }

    /// Reads the first [`MAX_SIGNATURE_LENGTH`] bytes of a file, which suffice to recognize its format. Reads the whole
    /// file if it is shorter.
    pub(crate) fn start_of_file(path: &Path) -> io::Result<Vec<u8>> {
        let mut start = Vec::new();
        File::open(path)?
            .take(MAX_SIGNATURE_LENGTH as u64)
            .read_to_end(&mut start)?;
        Ok(start)
    }

    /// Returns `true` for compressed files and archives that polybook can decompress to read PGN.
    pub(crate) fn is_unpacked(self) -> bool {
        matches!(
            self,
            FileKind::Gzip | FileKind::Bzip2 | FileKind::Zstd | FileKind::Zip
        )
    }
}

/// Returns `true` if `path` is the name of a device on Windows. Some file names denote devices in every directory, and
/// reading the metadata of a device fails. Always returns `false` on other systems.
pub(crate) fn is_windows_device(path: &Path) -> bool {
    if !cfg!(windows) {
        return false;
    }
    let is_device_prefix = |component| matches!(component, Component::Prefix(prefix) if matches!(prefix.kind(), Prefix::DeviceNS(_)));
    if path.components().next().is_some_and(is_device_prefix) {
        return true;
    }
    let Some(name) = path.file_name().and_then(|name| name.to_str()) else {
        return false;
    };
    let name = name.trim_end_matches([' ', ':']).to_ascii_uppercase();
    let is_numbered = |kind: &str| {
        name.strip_prefix(kind)
            .is_some_and(|number| matches!(number.as_bytes(), [b'1'..=b'9']))
    };
    let is_named = ["NUL", "CON", "CONOUT$", "PRN", "AUX"].contains(&&*name);
    is_named || is_numbered("COM") || is_numbered("LPT")
}

/// Returns `true` if a file named `name` identifies its directory as a counts directory. This is the case for
/// `_counts.json` and for Parquet files.
fn is_of_counts(name: &OsStr) -> bool {
    let name = name.to_string_lossy();
    name == SIDECAR || name.ends_with(ENDING)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_of_the_kind_that_their_first_bytes_show() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("file");
        let kind_of = |bytes: &[u8]| {
            fs::write(&path, bytes).unwrap();
            FileKind::of(&path).unwrap()
        };
        for ((offset, magic), format) in SIGNATURES {
            assert!(offset + magic.len() <= MAX_SIGNATURE_LENGTH);
            let start = [&vec![b' '; *offset], *magic].concat();
            assert_eq!(kind_of(&start), format.kind);
            assert_eq!(kind_of(&[&start, &b"more"[..]].concat()), format.kind);
            // The byte order mark of UTF-32 begins with that of UTF-16, so it is recognized when it is cut.
            if format.name != UTF_32.name {
                assert_eq!(kind_of(&start[..start.len() - 1]), FileKind::Other);
            }
        }
        assert_eq!(kind_of(b"BZh9"), FileKind::Bzip2);
        assert_eq!(kind_of(b"\x5f\x2a\x4d\x18"), FileKind::Zstd);
        assert_eq!(kind_of(b"\x1f\x5a-lh5-"), FileKind::Foreign);
        assert_eq!(kind_of(b"\x19\x08-lzs-"), FileKind::Foreign);
        assert_eq!(kind_of(b""), FileKind::Other);
        assert_eq!(kind_of(b"1. e4 *"), FileKind::Other);
    }

    #[test]
    fn directories_are_of_the_kind_that_their_files_show() {
        let dir = tempfile::tempdir().unwrap();
        let kind = || FileKind::of(dir.path()).unwrap();
        assert_eq!(kind(), FileKind::Directory);
        fs::write(dir.path().join("a.parquet"), "").unwrap();
        assert_eq!(kind(), FileKind::Counts);
        fs::rename(dir.path().join("a.parquet"), dir.path().join(SIDECAR)).unwrap();
        assert_eq!(kind(), FileKind::Counts);
        assert!(FileKind::of(dir.path().join("missing")).is_err());
    }
}
