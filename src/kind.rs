//! Which kind of file a file is.

use std::{
    ffi::OsStr,
    fs::{self, File},
    io::Read,
    path::Path,
};

use crate::error::{At, Result};

/// What a file or a directory is, as far as its first bytes or the names in it show.
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
    /// An SQLite database, as those of OOBS are.
    Sqlite,
    /// A store of [evaluations](crate::evals), of whatever version.
    Evals,
    /// A Parquet file.
    Parquet,
    /// Packed with gzip.
    Gzip,
    /// Packed with bzip2.
    Bzip2,
    /// Packed with zstd.
    Zstd,
    /// A zip archive.
    Zip,
    /// Packed with xz.
    Xz,
    /// A directory of [counts](crate::counts), of whatever program.
    Counts,
    /// Any other directory, perhaps an index.
    Directory,
    /// Anything else: PGN, a Polyglot book, an empty file, a pipe, which is not read.
    Other,
}

/// The first bytes of all stores of evaluations. No other mark is longer.
pub(crate) const EVALS: &[u8] = b"\0\0\0\0\0\0\0\0polybook evals ";

/// The file of a directory of counts that says where they come from, and the ending of the others.
pub(crate) const SIDECAR: &str = "counts.json";
pub(crate) const ENDING: &str = ".parquet";

/// What files begin with.
const MAGICS: [(&[u8], FileKind); 8] = [
    (b"SQLite format 3\0", FileKind::Sqlite),
    (EVALS, FileKind::Evals),
    (b"PAR1", FileKind::Parquet),
    (b"\x1f\x8b\x08", FileKind::Gzip),
    (b"\x28\xb5\x2f\xfd", FileKind::Zstd),
    (b"PK\x03\x04", FileKind::Zip),
    (b"PK\x05\x06", FileKind::Zip),
    (b"\xfd7zXZ\0", FileKind::Xz),
];

impl FileKind {
    /// The kind of a file or a directory.
    ///
    /// # Errors
    ///
    /// What is not there or cannot be read.
    pub fn of(path: impl AsRef<Path>) -> Result<FileKind> {
        let path = path.as_ref();
        let metadata = path.metadata().at(path, "open")?;
        if metadata.is_dir() {
            let mut entries = fs::read_dir(path).into_iter().flatten().flatten();
            let has_counts = entries.any(|entry| is_of_counts(&entry.file_name()));
            return Ok(match has_counts {
                true => FileKind::Counts,
                false => FileKind::Directory,
            });
        }
        if !metadata.is_file() {
            return Ok(FileKind::Other);
        }
        let mut start = Vec::new();
        let file = File::open(path).at(path, "open")?;
        file.take(EVALS.len() as u64)
            .read_to_end(&mut start)
            .at(path, "read")?;
        Ok(FileKind::of_start(&start))
    }

    /// The kind of a file that begins with these bytes.
    pub fn of_start(start: &[u8]) -> FileKind {
        if let Some((_, kind)) = MAGICS.iter().find(|(magic, _)| start.starts_with(magic)) {
            return *kind;
        }
        match *start {
            [b'B', b'Z', b'h', b'1'..=b'9', ..] => FileKind::Bzip2,
            // A frame of zstd that is passed over.
            [0x50..=0x5f, 0x2a, 0x4d, 0x18, ..] => FileKind::Zstd,
            _ => FileKind::Other,
        }
    }

    /// Whether inputs may be packed so.
    pub(crate) fn is_unpacked(self) -> bool {
        matches!(
            self,
            FileKind::Gzip | FileKind::Bzip2 | FileKind::Zstd | FileKind::Zip
        )
    }
}

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
        for (magic, kind) in MAGICS {
            assert_eq!(kind_of(magic), kind);
            assert_eq!(kind_of(&[magic, b"more"].concat()), kind);
            assert_eq!(kind_of(&magic[..magic.len() - 1]), FileKind::Other);
        }
        assert_eq!(kind_of(b"BZh9"), FileKind::Bzip2);
        assert_eq!(kind_of(b"\x5f\x2a\x4d\x18"), FileKind::Zstd);
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
