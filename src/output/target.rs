//! Where an output goes, and what is there.

use std::{
    collections::BTreeMap,
    ffi::{OsStr, OsString},
    fs::{self, File},
    io::{self, Read},
    iter::once,
    path::{Path, PathBuf},
};

use super::{
    attributes::is_read_only,
    identity::{FileId, FileState},
};
use crate::error::{At, Error, Result};

/// Where an output goes, and what was there when the output was begun.
#[derive(Clone, Debug)]
pub(super) struct Target {
    /// As the caller named it, for messages.
    pub(super) name: PathBuf,
    /// The path that is replaced: with links followed.
    pub(super) path: PathBuf,
    /// `None` if nothing was there.
    before: Option<FileState>,
    /// The files of an old output that is a directory. Only they may be removed.
    files: BTreeMap<OsString, FileState>,
    /// A check of the format that is repeated immediately before and after the output gets its name.
    guard: Option<Guard>,
}

/// Refuses to replace a file that another program uses. The first path is the target, with links followed; the second
/// one is where the old file is now, which is the target until the two files change places.
pub(crate) type Guard = fn(target: &Path, old: &Path) -> io::Result<()>;

impl Target {
    /// Follows symbolic links to what will be replaced, or made. Of a directory, no file belongs to the output yet.
    pub(super) fn resolve(name: &Path) -> Result<Target> {
        let path = followed(name).at(name, "open")?;
        Ok(Target {
            before: FileState::of(&path).at(name, "open")?,
            files: BTreeMap::new(),
            guard: None,
            name: name.to_owned(),
            path,
        })
    }

    /// A device, pipe or standard output.
    pub(super) fn special(path: PathBuf) -> Target {
        Target {
            before: None,
            files: BTreeMap::new(),
            guard: None,
            name: path.clone(),
            path,
        }
    }

    /// Sets a check that is repeated immediately before and after the output gets its name.
    pub(super) fn set_guard(&mut self, guard: Guard) {
        self.guard = Some(guard);
    }

    /// Whether there was something when the output was begun.
    pub(super) fn exists(&self) -> bool {
        self.before.is_some()
    }

    pub(super) fn is_directory(&self) -> bool {
        self.before.is_some_and(|before| before.is_directory)
    }

    /// The names of the files that belong to an old output that is a directory.
    pub(super) fn files(&self) -> impl DoubleEndedIterator<Item = &OsStr> {
        self.files.keys().map(OsString::as_os_str)
    }

    /// Enters the files of a directory that belong to the old output.
    pub(super) fn enter_files(&mut self, names: Vec<OsString>) -> Result<()> {
        for name in names {
            let state = FileState::of(&self.path.join(&name)).at(&self.name, "read")?;
            self.files.extend(state.map(|state| (name, state)));
        }
        Ok(())
    }

    /// Checks that the target is what it was when the output was begun: not another file, and not a directory with a file
    /// that was changed or does not belong to it. A target that is gone is not an error.
    pub(super) fn check(&self) -> io::Result<()> {
        self.check_as(&self.path, |state| state)
    }

    /// Checks as [`check`](Target::check) does, but for an old output that was renamed to `path`.
    pub(super) fn check_renamed(&self, path: &Path) -> io::Result<()> {
        self.check_as(path, FileState::renamed)
    }

    fn check_as(&self, path: &Path, aspect: impl Fn(FileState) -> FileState) -> io::Result<()> {
        if let Some(guard) = self.guard {
            guard(&self.path, path)?;
        }
        let Some(now) = FileState::of(path)? else {
            return Ok(());
        };
        if self.before.map(&aspect) != Some(aspect(now)) {
            return Err(io::Error::other("another program wrote it meanwhile"));
        }
        if !now.is_directory {
            return Ok(());
        }
        // Only known files are removed, so one that cannot be listed is safe.
        let entries = fs::read_dir(path).into_iter().flatten().flatten();
        let mut names = entries.map(|entry| entry.file_name());
        match names.find(|name| !self.has_unchanged(path, name)) {
            None => Ok(()),
            Some(name) => Err(io::Error::other(format!(
                "another program wrote {} into it meanwhile",
                name.display()
            ))),
        }
    }

    /// Whether the file `name` in the directory that is now at `path` belongs to the old output and was not changed.
    pub(super) fn has_unchanged(&self, path: &Path, name: &OsStr) -> bool {
        let now = FileState::of(&path.join(name));
        matches!(now, Ok(Some(now)) if self.files.get(name) == Some(&now))
    }

    /// An error if what is there, or a file of it, must not be written.
    pub(super) fn refuse_read_only(&self) -> Result<()> {
        let files = self.files().map(|name| self.path.join(name));
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
    let problem = "exists and may be yours: remove it or name another file";
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
        let id = FileId::of(path);
        for input in inputs {
            // What is in the directory of an output would go with it.
            if resolved(input).starts_with(output) || (id.is_some() && FileId::of(input) == id) {
                return Err(Error::file(
                    path,
                    "both an input and an output: name another output",
                ));
            }
        }
    }
    Ok(())
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
