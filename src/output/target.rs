//! Where an output goes, and what is there.

use std::{
    ffi::OsString,
    fs::{self, File},
    io::{self, Read},
    iter::once,
    path::{Path, PathBuf},
};

use super::{attributes::is_read_only, before::Before};
use crate::error::{At, Error, Result};

/// Where an output goes.
#[derive(Clone, Debug)]
pub(super) struct Target {
    /// As the caller named it.
    name: PathBuf,
    /// With links followed.
    path: PathBuf,
    /// What was there when the output was begun.
    before: Before,
}

impl Target {
    /// Follows symbolic links to what will be replaced, or made.
    pub(super) fn resolve(name: &Path) -> Result<Target> {
        let path = followed(name).at(name, "open")?;
        Ok(Target {
            before: Before::of(&path).at(name, "open")?,
            name: name.to_owned(),
            path,
        })
    }

    /// A device, pipe or standard output.
    pub(super) fn special(path: PathBuf) -> Target {
        Target {
            before: Before::default(),
            name: path.clone(),
            path,
        }
    }

    /// As the caller named it, for messages.
    pub(super) fn name(&self) -> &Path {
        &self.name
    }

    /// The path that is replaced.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Whether there was something when the output was begun.
    pub(super) fn exists(&self) -> bool {
        self.before.exists()
    }

    /// What was there when the output was begun.
    pub(super) fn before(&self) -> &Before {
        &self.before
    }

    /// Enters the files of a directory that belong to the old output. Only they may be removed.
    pub(super) fn enter_files(&mut self, names: Vec<OsString>) -> Result<()> {
        let entered = self.before.enter_files(&self.path, names);
        entered.at(&self.name, "read")
    }

    /// An error if what is there, or a file of it, must not be written.
    pub(super) fn refuse_read_only(&self) -> Result<()> {
        let files = self.before.files().map(|name| self.path.join(name));
        let mut all = once(self.path.clone()).chain(files);
        let Some(path) = all.find(|path| is_read_only(path)) else {
            return Ok(());
        };
        let name = if path == self.path {
            self.name.clone()
        } else {
            path
        };
        let problem = "is read-only: make it writable, or name another output";
        Err(Error::file(name, problem))
    }

    /// An error if a program has the file open in a way that keeps others from replacing it, as programs on Windows do.
    #[cfg(windows)]
    pub(super) fn refuse_if_held(&self) -> Result<()> {
        use std::os::windows::fs::OpenOptionsExt;
        use windows_sys::Win32::{
            Foundation::ERROR_SHARING_VIOLATION, Storage::FileSystem::DELETE,
        };
        match fs::File::options().access_mode(DELETE).open(&self.path) {
            Err(err) if err.raw_os_error() == Some(ERROR_SHARING_VIOLATION.cast_signed()) => {
                Err(Error::changed(
                    &self.name,
                    "another program has it open: close it there, or name another output",
                ))
            }
            // Other reasons not to replace it may be gone at the end.
            _ => Ok(()),
        }
    }

    /// Elsewhere a file that is open can be replaced.
    #[cfg(unix)]
    pub(super) fn refuse_if_held(&self) -> Result<()> {
        Ok(())
    }
}

/// A path with its links followed, also one that leads to nothing.
fn followed(path: &Path) -> io::Result<PathBuf> {
    match canonical(path) {
        Err(err) if err.kind() == io::ErrorKind::NotFound => match fs::read_link(path) {
            Ok(next) => followed(&parent(path).join(next)),
            Err(_) => Ok(path.to_owned()),
        },
        // Making the temporary will say what is wrong.
        Err(err) if err.kind() == io::ErrorKind::NotADirectory => Ok(path.to_owned()),
        found => found,
    }
}

/// A path with its links followed, as people and other programs write paths: Windows answers with a prefix, `\\?\`,
/// that many of its programs do not take.
#[cfg(windows)]
fn canonical(path: &Path) -> io::Result<PathBuf> {
    use std::path::{Component, Prefix};
    let found = dunce::canonicalize(path)?;
    let mut components = found.components();
    let Some(Component::Prefix(prefix)) = components.next() else {
        return Ok(found);
    };
    let Prefix::VerbatimUNC(server, share) = prefix.kind() else {
        return Ok(found);
    };
    let mut plain = std::ffi::OsString::from(r"\\");
    plain.push(server);
    plain.push(r"\");
    plain.push(share);
    Ok(PathBuf::from(plain).join(components.as_path()))
}

#[cfg(unix)]
fn canonical(path: &Path) -> io::Result<PathBuf> {
    fs::canonicalize(path)
}

/// The directory that a path is in.
pub(super) fn parent(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if parent != Path::new("") => parent,
        _ => Path::new("."),
    }
}

/// Bytes of a file's start that show what it is.
const START: u64 = 256;

/// Refuses to replace a file, unless it is empty or its first line, without what ends it, is one that `is_own` knows.
///
/// # Errors
///
/// A file that cannot be read, or [`Error::File`] for one of another kind.
pub fn check_first_line(path: &Path, is_own: impl Fn(&[u8]) -> bool) -> Result<()> {
    let mut start = Vec::new();
    File::open(path)
        .and_then(|file| file.take(START).read_to_end(&mut start))
        .at(path, "read")?;
    let line = start.split(|byte| *byte == b'\n').next();
    if start.is_empty() || line.is_some_and(|line| is_own(line.trim_ascii_end())) {
        return Ok(());
    }
    let problem =
        "exists, and its first line is not of polybook, so it is not replaced: name another file";
    Err(Error::foreign(path, problem))
}

/// Refuses an output that is an input, lies in another, or is on the path of another, links followed.
///
/// # Errors
///
/// [`Error::File`] names the output.
pub fn refuse_clashes(outputs: &[&Path], inputs: &[&Path]) -> Result<()> {
    let resolved = |path: &Path| in_one_case(resolved(path));
    let places: Vec<PathBuf> = outputs.iter().map(|path| resolved(path)).collect();
    for (i, output) in places.iter().enumerate() {
        let path = outputs[i];
        if is_special(path) {
            let twice = places[..i].contains(output);
            if twice && path == Path::new("-") {
                return Err(Error::file("standard output", "given for two outputs"));
            }
            continue;
        }
        for other in &places[..i] {
            if other == output {
                return Err(Error::file(path, "given for two outputs: name another"));
            }
            if output.starts_with(other) || other.starts_with(output) {
                return Err(Error::file(path, "one output cannot lie in another"));
            }
        }
        for input in inputs {
            // What is in the directory of an output would go with it.
            if resolved(input).starts_with(output) || is_same(input, path) {
                return Err(Error::file(
                    path,
                    "both an input and an output: name another output",
                ));
            }
        }
    }
    Ok(())
}

/// Whether two names lead to one file, through hard links too.
fn is_same(a: &Path, b: &Path) -> bool {
    // Comparing opens both, which would wait for the other end of a pipe.
    let opens = |path: &Path| path.metadata().is_ok_and(|of| of.is_file() || of.is_dir());
    opens(a) && opens(b) && same_file::is_same_file(a, b).unwrap_or(false)
}

/// Whether a path is standard output, a device or a pipe, which several outputs may share.
fn is_special(path: &Path) -> bool {
    path == Path::new("-") || is_device(path)
}

/// Whether a path is that of a device or a pipe.
#[cfg(unix)]
pub(super) fn is_device(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|at| !at.is_file() && !at.is_dir())
}

/// Whether a path is that of a device or a pipe. Windows has names for devices that are the same in any directory.
#[cfg(windows)]
pub(super) fn is_device(path: &Path) -> bool {
    use std::path::{Component, Prefix};
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
    ["NUL", "CON", "CONOUT$", "PRN", "AUX"].contains(&&*name)
        || is_numbered("COM")
        || is_numbered("LPT")
}

/// A path with its links followed, as far as it exists.
fn resolved(path: &Path) -> PathBuf {
    if let Ok(path) = fs::canonicalize(path) {
        return path;
    }
    match (fs::canonicalize(parent(path)), path.file_name()) {
        (Ok(parent), Some(name)) => parent.join(name),
        _ => path.to_owned(),
    }
}

/// A path as it is compared: where most file systems take capitals and small letters as equal, no two outputs may
/// differ in them alone.
fn in_one_case(path: PathBuf) -> PathBuf {
    if !cfg!(any(windows, target_vendor = "apple")) {
        return path;
    }
    match path.to_str() {
        Some(text) => PathBuf::from(text.to_lowercase()),
        None => path,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clashes_are_found_through_links() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        fs::write(at("games.pgn"), "").unwrap();
        fs::create_dir(at("index")).unwrap();
        fs::write(at("index/inside.pgn"), "").unwrap();
        fs::hard_link(at("games.pgn"), at("hard.bin")).unwrap();
        let check = |outputs: &[&str], inputs: &[&str]| {
            let outputs: Vec<PathBuf> = outputs.iter().map(|name| at(name)).collect();
            let inputs: Vec<PathBuf> = inputs.iter().map(|name| at(name)).collect();
            let outputs: Vec<&Path> = outputs.iter().map(PathBuf::as_path).collect();
            let inputs: Vec<&Path> = inputs.iter().map(PathBuf::as_path).collect();
            refuse_clashes(&outputs, &inputs)
        };
        check(&["a.bin", "b"], &["games.pgn"]).unwrap();
        for (outputs, inputs) in [
            (&["a.bin", "a.bin"][..], &[][..]),
            (&["a.bin", "index/../a.bin"], &[]),
            (&["index", "index/a.bin"], &[]),
            (&["games.pgn"], &["games.pgn"]),
            (&["hard.bin"], &["games.pgn"]),
            (&["index"], &["index/inside.pgn"]),
        ] {
            assert!(check(outputs, inputs).is_err(), "{outputs:?} {inputs:?}");
        }
    }
}
