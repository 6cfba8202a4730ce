//! Seals: checksums with which polybook recognizes text files that it wrote and that have not been changed since. It
//! may overwrite such files.
//!
//! A text contains a seal near its start if its format permits comments there. The seal is [`UNSEALED`] with a
//! checksum in place of the zeros. The checksum is computed over the whole file with the zeros in place. It
//! leaves out carriage returns, because editors and version control systems convert line breaks.

use std::{fs::File, hash::Hasher, io, path::Path};

use siphasher::sip::SipHasher13;

use super::AtomicFile;
use crate::{
    error::{At, Error, Result},
    storage::positioned::{read_exact_at, write_all_at},
};

/// The placeholder for a checksum that polybook writes near the start of a text file. When the file is complete,
/// polybook replaces the zeros with the checksum of the file. The checksum later shows whether the file was changed.
pub const UNSEALED: &str = "polybook checksum 0000000000000000";

/// The number of hexadecimal digits of a seal. A seal is a checksum that polybook writes into a text file.
const SEAL_DIGITS: usize = 16;

/// The number of bytes at the beginning of a text file that are searched for a seal. A seal is a checksum that polybook
/// writes into the file.
const SEARCHED_BYTES: u64 = 4096;

/// Creates a text output file at `path`. An existing file is replaced only in three cases: if `force` is `true`, if the
/// file is empty, or if it has not been changed since polybook wrote it.
///
/// # Errors
///
/// Fails for the same reasons as [`AtomicFile::create_over`] and [`check_text_replaceable`].
pub fn begin_text(path: impl AsRef<Path>, force: bool) -> Result<AtomicFile> {
    AtomicFile::create_over(path, |old| check_text_replaceable(old, force))
}

/// Checks that the file at `path` may be replaced. This is the case if `force` is `true`, if the file is empty, or if
/// it contains a checksum by polybook that matches its content.
///
/// # Errors
///
/// Returns [`Error::Exists`] if the file must not be replaced. Returns another error if the file cannot be read.
pub fn check_text_replaceable(path: &Path, force: bool) -> Result<()> {
    if force {
        return Ok(());
    }
    let file = File::open(path).at(path, "open")?;
    let is_empty = file.metadata().at(path, "open")?.len() == 0;
    match is_empty || matches(&file).at(path, "read")? == Some(true) {
        true => Ok(()),
        false => Err(Error::exists(path)),
    }
}

/// Replaces the zeros of the placeholder [`UNSEALED`] in a complete text file with the checksum of the file. Does
/// nothing if the file contains no placeholder.
pub(super) fn seal(file: &File) -> io::Result<()> {
    match find_digits(file)? {
        Some(offset) => write_all_at(file, &checksum(file, offset)?, offset),
        None => Ok(()),
    }
}

/// Compares the checksum in the text file at `path` with the content of the file. Returns `None` if the file contains
/// no checksum by polybook, otherwise whether the checksum matches. It does not match if the file was changed or
/// truncated.
///
/// # Errors
///
/// Returns an error if the file cannot be read.
pub fn seal_matches(path: &Path) -> Result<Option<bool>> {
    let file = File::open(path).at(path, "open")?;
    matches(&file).at(path, "read")
}

/// Compares the checksum in an open file with the content of the file, as [`seal_matches`] does.
fn matches(file: &File) -> io::Result<Option<bool>> {
    let Some(offset) = find_digits(file)? else {
        return Ok(None);
    };
    let mut digits = [0; SEAL_DIGITS];
    read_exact_at(file, &mut digits, offset)?;
    Ok(Some(digits == checksum(file, offset)?))
}

/// Returns the offset at which the digits of the first checksum in a file begin. Returns `None` if the first
/// [`SEARCHED_BYTES`] bytes contain no checksum before a blank line. A checksum after a blank line belongs to a game that
/// was copied from another file.
fn find_digits(file: &File) -> io::Result<Option<u64>> {
    let mut head = vec![0; file.metadata()?.len().min(SEARCHED_BYTES) as usize];
    read_exact_at(file, &mut head, 0)?;
    let is_blank =
        |at: &usize| matches!(head[*at..], [b'\n', b'\n', ..] | [b'\n', b'\r', b'\n', ..]);
    let end = (0..head.len()).find(is_blank).unwrap_or(head.len());
    head.truncate(end);
    let mark = UNSEALED.trim_end_matches('0').as_bytes();
    let mut seals = head.windows(UNSEALED.len());
    let at = seals.position(|text| {
        text.strip_prefix(mark)
            .is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit))
    });
    Ok(at.map(|at| (at + mark.len()) as u64))
}

/// Computes the checksum of a file without its carriage returns, as hexadecimal digits. The [`SEAL_DIGITS`] bytes at
/// `offset`, where the checksum itself is stored, are treated as zeros.
fn checksum(file: &File, offset: u64) -> io::Result<[u8; SEAL_DIGITS]> {
    let mut hasher = SipHasher13::new();
    let mut at = 0;
    let mut buffer = vec![0; 1 << 16];
    let length = file.metadata()?.len();
    while at < length {
        let part = &mut buffer[..(length - at).min(1 << 16) as usize];
        read_exact_at(file, part, at)?;
        for (byte, position) in part.iter_mut().zip(at..) {
            if (offset..offset + SEAL_DIGITS as u64).contains(&position) {
                *byte = b'0';
            }
        }
        for line in part.split(|byte| *byte == b'\r') {
            hasher.write(line);
        }
        at += part.len() as u64;
    }
    let digits = format!("{:016x}", hasher.finish());
    Ok(digits.into_bytes().try_into().expect("16 digits"))
}

#[cfg(test)]
mod tests {
    use std::{fs, io::Write};

    use super::*;
    use crate::storage::output::{AtomicFile, BufferedFile};

    #[test]
    fn only_an_untouched_text_is_replaced() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("text");
        let write = |force| -> Result<()> {
            let file = AtomicFile::create_over(&path, |old| check_text_replaceable(old, force))?;
            let mut file = BufferedFile::sealed(file);
            let text = format!("first\n% {UNSEALED}\n{}\n", "games ".repeat(20_000));
            file.write_all(text.as_bytes()).unwrap();
            file.commit()
        };
        write(false).unwrap();
        let text = fs::read(&path).unwrap();
        assert!(text.starts_with(b"first\n% polybook checksum "));
        assert!(text.ends_with(b"games games \n"));
        assert!(
            !text
                .windows(UNSEALED.len())
                .any(|part| part == UNSEALED.as_bytes())
        );
        write(false).unwrap();
        assert_eq!(fs::read(&path).unwrap(), text);
        // Each byte counts, at the start, in the seal, and at the end.
        for at in [0, 30, 70_000, text.len() - 1] {
            let mut changed = text.clone();
            changed[at] ^= 1;
            fs::write(&path, &changed).unwrap();
            let err = write(false).unwrap_err();
            assert!(matches!(err, Error::Exists { .. }), "{at}: {err}");
            assert_eq!(fs::read(&path).unwrap(), changed);
        }
        let copied = [b"[Event \"?\"]\n\n*\n\n", &text[..]].concat();
        fs::write(&path, &copied).unwrap();
        assert_eq!(seal_matches(&path).unwrap(), None);
        for other in [
            &copied[..],
            &text[..text.len() - 1],
            &[&text[..], b"more"].concat(),
            b"my notes",
        ] {
            fs::write(&path, other).unwrap();
            assert!(write(false).is_err());
        }
        write(true).unwrap();
        fs::write(&path, "").unwrap();
        write(false).unwrap();
    }
}
