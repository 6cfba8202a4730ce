//! The target of an output: its final path, and checks of the file or directory at this path that the output will
//! replace.

use std::{
    ffi::{OsStr, OsString},
    fs::{self, File, Metadata, Permissions},
    io,
    iter::once,
    path::{Path, PathBuf},
};

use super::{
    identity::{FileId, metadata_if_any},
    in_use::check_unused,
};
use crate::error::{At, Error, Result};

#[cfg(windows)]
use crate::kind::is_windows_device;

/// The path to which an output will be renamed, and the old output at this path.
#[derive(Clone, Debug)]
pub(super) struct Target {
    /// The path as the caller wrote it, for messages.
    pub(super) name: PathBuf,
    /// The path to which the output is renamed: `name` with symbolic links resolved.
    pub(super) path: PathBuf,
    /// The metadata of the old output, or `None` if nothing existed at the path.
    old: Option<Metadata>,
    /// The sorted names of the files that belong to the old output, if it is a directory. Only these files may be
    /// removed.
    files: Vec<OsString>,
    /// Whether the old output is an SQLite database, which must not be replaced while another program uses it.
    pub(super) is_database: bool,
}

impl Target {
    /// Creates the target for the path `name`, and resolves symbolic links. If the target is a directory, the caller
    /// must then record the names of the files of the old output with [`enter_files`](Target::enter_files). Other files
    /// are not removed.
    pub(super) fn resolve(name: &Path) -> Result<Target> {
        let path = followed(name).at(name, "open")?;
        Ok(Target {
            old: metadata_if_any(&path).at(name, "open")?,
            path,
            ..Target::special(name.to_owned())
        })
    }

    /// Creates the target for a device, a pipe or standard output. Data is written to it directly, without a rename.
    pub(super) fn special(path: PathBuf) -> Target {
        Target {
            old: None,
            files: Vec::new(),
            is_database: false,
            name: path.clone(),
            path,
        }
    }

    /// Returns `true` if a file or directory existed at the target when the output was created.
    pub(super) fn exists(&self) -> bool {
        self.old.is_some()
    }

    pub(super) fn is_directory(&self) -> bool {
        self.old.as_ref().is_some_and(Metadata::is_dir)
    }

    /// Returns the access rights of the old output, which the new output will also have.
    pub(super) fn permissions(&self) -> Option<Permissions> {
        self.old.as_ref().map(Metadata::permissions)
    }

    /// Returns the names of the files in the target directory that belong to the old output. Returns an empty iterator
    /// if the target is not a directory.
    pub(super) fn files(&self) -> impl DoubleEndedIterator<Item = &OsStr> {
        self.files.iter().map(OsString::as_os_str)
    }

    /// Records the names of the files that belong to the old output directory. Names of missing files are ignored.
    pub(super) fn enter_files(&mut self, names: Vec<OsString>) -> Result<()> {
        for name in names {
            if metadata_if_any(&self.path.join(&name))
                .at(&self.name, "read")?
                .is_some()
            {
                self.files.push(name);
            }
        }
        self.files.sort();
        Ok(())
    }

    /// Checks that no other program uses the old output, if it is a database.
    pub(super) fn refuse_database_in_use(&self) -> io::Result<()> {
        if self.is_database {
            check_unused(&self.path)
        } else {
            Ok(())
        }
    }

    /// Returns an error if the parent directory of the target does not exist or is not a directory. If several
    /// directories of the path are missing, the message names the topmost one.
    pub(super) fn refuse_without_parent(&self) -> Result<()> {
        let mut missing = None;
        for directory in self.path.ancestors().skip(1) {
            let directory = if directory == Path::new("") {
                Path::new(".")
            } else {
                directory
            };
            let problem = match metadata_if_any(directory).at(&self.name, "open")? {
                None => {
                    missing = Some(directory);
                    continue;
                }
                Some(found) if !found.is_dir() => {
                    format!("{} is not a directory", directory.display())
                }
                Some(_) => match missing {
                    None => return Ok(()),
                    Some(missing) => format!(
                        "the directory {} does not exist: create the directory first",
                        missing.display()
                    ),
                },
            };
            return Err(io::Error::new(io::ErrorKind::NotFound, problem)).at(&self.name, "write");
        }
        Ok(())
    }

    /// Returns an error if the target is a file and a mount point, which is possible in containers. A rename cannot
    /// replace a mount point.
    pub(super) fn refuse_mounted_file(&self) -> Result<()> {
        if !is_mount_point(&self.path).at(&self.name, "open")? {
            return Ok(());
        }
        let problem = "this file is a mount point, so it cannot be replaced: mount its directory instead, or choose \
                       another output";
        Err(Error::file(&self.name, problem))
    }

    /// Returns an error if this user may not rename or replace the target file, for example because it belongs to
    /// another user in a shared directory such as `/tmp`.
    ///
    /// The function tries to remove the target as if it were an empty directory. Linux first checks whether the user
    /// may remove the target, and only then refuses because it is a file. Other systems may report the problem only
    /// when the output is renamed.
    pub(super) fn refuse_fixed_file(&self) -> Result<()> {
        match fs::remove_dir(&self.path) {
            Err(err) if cfg!(unix) && err.kind() == io::ErrorKind::PermissionDenied => {
                Err(Error::file(&self.name, FIXED))
            }
            _ => Ok(()),
        }
    }

    /// Returns an error if the target is a directory that cannot be renamed. Examples are a mount point, a directory in
    /// a lower layer of an overlay file system, and another user's directory in a shared directory such as `/tmp`.
    ///
    /// The function tries to rename the target to `trial`, another directory that is not empty. POSIX forbids this, so
    /// the target keeps its name. The error shows whether anything else would prevent a rename: if not, the system
    /// reports only that `trial` is not empty.
    pub(super) fn refuse_fixed_directory(&self, trial: &Path) -> Result<()> {
        use io::ErrorKind::{CrossesDevices, PermissionDenied, ResourceBusy};
        let problem = match fs::rename(&self.path, trial).map_err(|err| err.kind()) {
            Err(ResourceBusy) => {
                "this directory is a mount point, so it cannot be replaced: give a directory inside it"
            }
            Err(CrossesDevices) => {
                "this directory is in a lower layer of an overlay file system, such as the image of a container, and \
                 cannot be replaced: remove the directory first, or choose another directory"
            }
            Err(PermissionDenied) => FIXED,
            Err(_) => return Ok(()),
            // The file system does not comply with POSIX.
            Ok(()) => return fs::rename(trial, &self.path).at(&self.name, "restore"),
        };
        Err(Error::file(&self.name, problem))
    }

    /// Returns an error if the old output, or a file that belongs to it, is read-only.
    pub(super) fn refuse_read_only(&self) -> Result<()> {
        let files = self.files().map(|name| self.path.join(name));
        let mut all = once(self.path.clone()).chain(files);
        all.try_for_each(|path| {
            let is_read_only = is_read_only(&path).at(&path, "open")?;
            let name = if path == self.path {
                self.name.clone()
            } else {
                path
            };
            let problem =
                "this file is read-only: make the file writable, or choose another output";
            if is_read_only {
                Err(Error::file(name, problem))
            } else {
                Ok(())
            }
        })
    }

    /// Returns an error if another program has the target open and thereby prevents its replacement, as is usual on
    /// Windows.
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
                    "another program has this output open: close the output in that program, or choose another output",
                ))
            }
            // Other reasons why the file cannot be replaced now may no longer apply at the end of the run.
            _ => Ok(()),
        }
    }

    /// Always returns `Ok(())`, because Unix can replace a file while another program has it open.
    #[cfg(unix)]
    pub(super) fn refuse_if_held(&self) -> Result<()> {
        Ok(())
    }
}

/// The error message for a file or directory that this user may not rename.
const FIXED: &str = "the system does not let you replace this output, because it belongs to another user in a shared \
                     directory such as /tmp: choose another output";

/// Returns `path` with all symbolic links resolved, even if nothing exists at the resolved path. The result does not end
/// with a separator, because some systems rename nothing to such a path.
fn followed(path: &Path) -> io::Result<PathBuf> {
    let path: &Path = &path.components().collect::<PathBuf>();
    match canonical(path) {
        Err(err) if err.kind() == io::ErrorKind::NotFound => match fs::read_link(path) {
            Ok(next) => followed(&parent(path).join(next)),
            Err(_) => Ok(path.to_owned()),
        },
        // Creating the temporary file will report the problem.
        Err(err) if err.kind() == io::ErrorKind::NotADirectory => Ok(path.to_owned()),
        found => found,
    }
}

/// Returns `true` if only a directory can have the name `path`, because it ends with a separator or with `/.`.
pub(super) fn names_directory(path: &Path) -> bool {
    let file_name = path.file_name().unwrap_or_default().as_encoded_bytes();
    !path.as_os_str().as_encoded_bytes().ends_with(file_name)
}

/// Returns `path` with symbolic links resolved. Removes the prefix `\\?\` that Windows adds to resolved paths,
/// because many programs do not accept it.
#[cfg(windows)]
pub(crate) fn canonical(path: &Path) -> io::Result<PathBuf> {
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
pub(crate) fn canonical(path: &Path) -> io::Result<PathBuf> {
    fs::canonicalize(path)
}

/// Returns the directory that contains `path`. If `path` is only a file name, this is `.`.
pub(crate) fn parent(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if parent != Path::new("") => parent,
        _ => Path::new("."),
    }
}

/// Checks that the input and output paths of an operation do not conflict: no two outputs may be equal, and no output
/// may contain another one, be an input or contain an input. Symbolic links are resolved.
///
/// # Errors
///
/// Returns an [`Error::File`] that names the output if there is a conflict. Returns another error if a path cannot be
/// examined.
pub fn refuse_clashes(outputs: &[&Path], inputs: &[&Path]) -> Result<()> {
    let resolved = |path: &Path| in_one_case(resolved(path));
    let places: Vec<PathBuf> = outputs.iter().map(|path| resolved(path)).collect();
    for (i, output) in places.iter().enumerate() {
        let path = outputs[i];
        let is_stream = is_standard_output(path);
        if is_stream && outputs[..i].iter().any(|other| is_standard_output(other)) {
            return Err(Error::file(
                "standard output",
                "this name is given for two outputs",
            ));
        }
        if path == Path::new("-") || is_null(output) {
            continue;
        }
        for other in &places[..i] {
            if other == output {
                return Err(Error::file(
                    path,
                    "this name is given for two outputs: choose another file",
                ));
            }
            if output.starts_with(other) || other.starts_with(output) {
                return Err(Error::file(
                    path,
                    "this output lies inside another output: choose another directory",
                ));
            }
        }
        let id = FileId::of(path).at(path, "open")?;
        if id.is_some() && !is_stream && is_file_of_standard_output(path) {
            let problem = "standard output is redirected to this file: choose another file";
            return Err(Error::file(path, problem));
        }
        for input in inputs {
            let is_same = id.is_some() && FileId::of(input).at(input, "open")? == id;
            // Replacing a directory would also remove the files in it.
            if is_same || resolved(input).starts_with(output) {
                return Err(Error::file(
                    path,
                    "this file is both an input and an output: choose another output",
                ));
            }
        }
    }
    Ok(())
}

/// Returns `true` if `path` means standard output: if it is `-`, a name such as `/dev/stdout`, or the path of the
/// device or pipe to which standard output is connected.
pub fn is_standard_output(path: &Path) -> bool {
    let names = ["-", "/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"];
    let is_named = names.iter().any(|name| path == Path::new(name));
    is_named
        || (!is_null(path)
            && is_device(path).is_ok_and(|is_device| is_device)
            && is_file_of_standard_output(path))
}

/// Returns a new handle to standard output.
#[cfg(unix)]
pub(super) fn standard_output() -> io::Result<File> {
    use std::os::fd::AsFd;
    Ok(File::from(io::stdout().as_fd().try_clone_to_owned()?))
}

/// Returns a new handle to standard output.
#[cfg(windows)]
pub(super) fn standard_output() -> io::Result<File> {
    use std::os::windows::io::AsHandle;
    Ok(File::from(io::stdout().as_handle().try_clone_to_owned()?))
}

/// Returns `true` if `path` leads to the file, pipe or device to which standard output is connected.
#[cfg(unix)]
fn is_file_of_standard_output(path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    let of_stream = standard_output().and_then(|stream| stream.metadata());
    let (Ok(of_stream), Ok(of_path)) = (of_stream, path.metadata()) else {
        return false;
    };
    (of_stream.dev(), of_stream.ino()) == (of_path.dev(), of_path.ino())
}

/// Always returns `false`, because on this system a path cannot lead to the file to which standard output is
/// connected.
#[cfg(not(unix))]
fn is_file_of_standard_output(_path: &Path) -> bool {
    false
}

/// Returns `true` if `path` is the null device, which discards all data. Several outputs may use it.
fn is_null(path: &Path) -> bool {
    path == Path::new(if cfg!(windows) { "nul" } else { "/dev/null" })
}

/// Returns `true` if an output at `path` is written directly instead of through a temporary file. This is the case if
/// `path` is `-`, or leads to a device or a pipe.
///
/// # Errors
///
/// Returns an error if the operating system cannot examine the path.
pub(crate) fn is_special(path: &Path) -> Result<bool> {
    Ok(path == Path::new("-") || is_device(path).at(path, "open")?)
}

/// Returns `true` if a path leads to a device or a pipe.
///
/// # Errors
///
/// Returns an error if the operating system cannot examine the path.
#[cfg(unix)]
pub(super) fn is_device(path: &Path) -> io::Result<bool> {
    let found = metadata_if_any(path)?;
    Ok(found.is_some_and(|found| !found.is_file() && !found.is_dir()))
}

/// Returns `true` if `path` is a mount point.
#[cfg(any(target_os = "linux", target_os = "android"))]
fn is_mount_point(path: &Path) -> io::Result<bool> {
    use rustix::{
        fs::{AtFlags, CWD, StatxAttributes, StatxFlags, statx},
        io::Errno,
    };
    match statx(CWD, path, AtFlags::SYMLINK_NOFOLLOW, StatxFlags::empty()) {
        // Linux before 4.11 cannot answer.
        Err(Errno::NOSYS) => Ok(false),
        found => Ok(found?.stx_attributes.contains(StatxAttributes::MOUNT_ROOT)),
    }
}

/// Always returns `false`, because only Linux can mount single files.
#[cfg(not(any(target_os = "linux", target_os = "android")))]
fn is_mount_point(_path: &Path) -> io::Result<bool> {
    Ok(false)
}

/// Returns `true` if a path is the name of a device or a pipe.
#[cfg(windows)]
pub(super) fn is_device(path: &Path) -> io::Result<bool> {
    Ok(is_windows_device(path))
}

/// Returns `path` with symbolic links resolved. If nothing exists at `path`, resolves only the links in the path of
/// its parent directory.
fn resolved(path: &Path) -> PathBuf {
    if let Ok(path) = fs::canonicalize(path) {
        return path;
    }
    match (fs::canonicalize(parent(path)), path.file_name()) {
        (Ok(parent), Some(name)) => parent.join(name),
        _ => path.to_owned(),
    }
}

/// Converts a path to a form that can be compared with other paths. The result is lowercase on Windows and macOS,
/// whose file systems usually ignore case, and unchanged on other systems.
fn in_one_case(path: PathBuf) -> PathBuf {
    if !cfg!(any(windows, target_vendor = "apple")) {
        return path;
    }
    match path.to_str() {
        Some(text) => PathBuf::from(text.to_lowercase()),
        None => path,
    }
}

/// Returns `true` if the current user may not write to a file or directory. Also returns `true` if no user has write
/// permission, even if the user is the administrator (root), who could write to it nevertheless.
#[cfg(unix)]
fn is_read_only(path: &Path) -> io::Result<bool> {
    use rustix::{
        fs::{Access, access},
        io::Errno,
    };
    use std::os::unix::fs::MetadataExt;
    // The administrator may write to every file. Even so, a file without any write bit counts as read-only.
    if fs::metadata(path)?.mode() & 0o222 == 0 {
        return Ok(true);
    }
    match access(path, Access::WRITE_OK) {
        Err(Errno::ACCESS | Errno::PERM | Errno::ROFS) => Ok(true),
        allowed => Ok(allowed.map(|()| false)?),
    }
}

/// Returns `true` if `path` is a file with the read-only attribute. Returns `false` for a directory, because Windows
/// allows creating files in a read-only directory.
#[cfg(not(unix))]
fn is_read_only(path: &Path) -> io::Result<bool> {
    let metadata = fs::metadata(path)?;
    Ok(metadata.is_file() && metadata.permissions().readonly())
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
        check(&["a.bin", "b"], &["games.pgn", "missing.pgn"]).unwrap();
        check(&["index"], &["games.pgn"]).unwrap();
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

    #[cfg(unix)]
    #[test]
    fn only_the_null_device_may_be_given_twice() {
        let check = |outputs: [&str; 2]| refuse_clashes(&outputs.map(Path::new), &[]);
        check(["/dev/null", "/dev/null"]).unwrap();
        check(["-", "/dev/null"]).unwrap();
        for same in ["-", "/dev/stdout", "/dev/full"] {
            check([same, "/dev/null"]).unwrap();
            let err = check([same, same]).unwrap_err().to_string();
            assert!(err.contains("this name is given for two outputs"), "{err}");
        }
        assert!(check(["-", "/dev/fd/1"]).is_err());
    }

    #[cfg(unix)]
    #[test]
    fn a_link_that_leads_nowhere_has_no_target() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("loop");
        std::os::unix::fs::symlink(&path, &path).unwrap();
        assert!(Target::resolve(&path).is_err());
        assert_eq!(parent(Path::new("book.bin")), Path::new("."));
    }

    #[test]
    fn a_missing_directory_is_named() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        fs::write(at("file"), "").unwrap();
        let refusal = |path: &Path| Target::resolve(path).unwrap().refuse_without_parent();
        refusal(&at("book.bin")).unwrap();
        refusal(Path::new("polybook-no-such-file.bin")).unwrap();
        for (name, said) in [
            (
                "a/b/book.bin",
                format!(
                    "the directory {} does not exist: create the directory first",
                    at("a").display()
                ),
            ),
            (
                "file/book.bin",
                format!("{} is not a directory", at("file").display()),
            ),
        ] {
            let err = refusal(&at(name)).unwrap_err();
            let reason = std::error::Error::source(&err).unwrap().to_string();
            assert!(reason.contains(&said), "{reason}");
        }
    }
}
