//! The target of an output: checks of the file or directory that the output will replace, and the attributes that the
//! output inherits, which are access rights, owner and extended attributes.

use std::{
    collections::BTreeMap,
    ffi::{OsStr, OsString},
    fs::{self, File},
    io::{self, Read},
    iter::once,
    path::{Path, PathBuf},
};

use super::identity::{FileId, FileState, metadata_if_any};
use crate::error::{At, Error, Result};

#[cfg(windows)]
use crate::kind::is_windows_device;

/// The path to which an output will be renamed, and the state that the old output at this path had when the new output
/// was created.
#[derive(Clone, Debug)]
pub(super) struct Target {
    /// The path as the caller wrote it, for messages.
    pub(super) name: PathBuf,
    /// The path to which the output is renamed: `name` with symbolic links resolved.
    pub(super) path: PathBuf,
    /// The state of the old output, or `None` if nothing existed at the path.
    before: Option<FileState>,
    /// The files that belong to the old output, if it is a directory, with their states. Only these files may be
    /// removed.
    files: BTreeMap<OsString, FileState>,
    /// A check of the old output, which is called immediately before and after the new output is renamed.
    guard: Option<OldOutputCheck>,
}

/// A function that returns an error if another program uses the old file that an output will replace. `target` is the
/// path of the output, with symbolic links resolved. `old` is the current path of the old file, which differs from
/// `target` if the old file has been renamed.
pub(super) type OldOutputCheck = fn(target: &Path, old: &Path) -> io::Result<()>;

impl Target {
    /// Creates the target for the path `name`. Resolves symbolic links. If the target is a directory, the caller must
    /// then pass the names of the files of the old output to [`enter_files`](Target::enter_files), because only files
    /// that are recorded there may be removed.
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

    /// Creates the target for a device, a pipe or standard output. Data is written to it directly, without a rename.
    pub(super) fn special(path: PathBuf) -> Target {
        Target {
            before: None,
            files: BTreeMap::new(),
            guard: None,
            name: path.clone(),
            path,
        }
    }

    /// Sets a function that checks whether the old output may be replaced. The function is called immediately before
    /// and after the new output is renamed to the target. If it returns an error, the old output keeps its name, and a
    /// completed rename is undone.
    pub(super) fn set_guard(&mut self, guard: OldOutputCheck) {
        self.guard = Some(guard);
    }

    /// Updates the recorded change time of the old output, unless the old output has changed in another way.
    ///
    /// A killed process can leave a hard link to the old output. When polybook removes this link, the change time
    /// changes, and the commit would wrongly treat the old output as changed. Call this function after leftover files
    /// have been removed.
    pub(super) fn refresh_change_time(&mut self) -> Result<()> {
        let now = FileState::of(&self.path).at(&self.name, "open")?;
        if now.map(FileState::renamed) == self.before.map(FileState::renamed) {
            self.before = now;
        }
        Ok(())
    }

    /// Returns `true` if a file or directory existed at the target when the output was created.
    pub(super) fn exists(&self) -> bool {
        self.before.is_some()
    }

    pub(super) fn is_directory(&self) -> bool {
        self.before.is_some_and(|before| before.is_directory)
    }

    /// Returns the names of the files in the target directory that belong to the old output. Returns an empty iterator
    /// if the target is not a directory.
    pub(super) fn files(&self) -> impl DoubleEndedIterator<Item = &OsStr> {
        self.files.keys().map(OsString::as_os_str)
    }

    /// Records the states of the files with the given names. These files belong to the old output directory. A later
    /// check compares the states to detect changes by other programs. Names of missing files are ignored.
    pub(super) fn enter_files(&mut self, names: Vec<OsString>) -> Result<()> {
        for name in names {
            let state = FileState::of(&self.path.join(&name)).at(&self.name, "read")?;
            self.files.extend(state.map(|state| (name, state)));
        }
        Ok(())
    }

    /// Checks that no other program has changed the target since the output was created.
    ///
    /// # Errors
    ///
    /// Returns an error if the file or directory at the target was changed or replaced, or if a file in the directory
    /// was changed or added. Returns the error of the function that [`set_guard`](Target::set_guard) set. It is not an
    /// error if the target no longer exists.
    pub(super) fn check(&self) -> io::Result<()> {
        self.check_as(&self.path, |state| state)
    }

    /// Checks, after the old output has been renamed to `path`, that no other program has changed it. Unlike
    /// [`check`](Target::check), ignores the time of the last status change, because a rename changes this time.
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
            return Err(io::Error::other(
                "another program wrote this output during the run",
            ));
        }
        if !now.is_directory {
            return Ok(());
        }
        for entry in fs::read_dir(path)? {
            let name = entry?.file_name();
            if !self.contains_unchanged(path, &name)? {
                return Err(io::Error::other(format!(
                    "another program wrote {} into this output during the run",
                    name.display()
                )));
            }
        }
        Ok(())
    }

    /// Returns `true` if the file `name` belongs to the old output directory and has not changed since the new output
    /// was created. `path` is the current path of the old directory.
    pub(super) fn contains_unchanged(&self, path: &Path, name: &OsStr) -> io::Result<bool> {
        let now = FileState::of(&path.join(name))?;
        Ok(now.is_some() && now.as_ref() == self.files.get(name))
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

    /// Returns an error if the target is a file and a mount point. Such files exist in containers. A rename cannot
    /// replace a mount point.
    pub(super) fn refuse_mounted_file(&self) -> Result<()> {
        if !is_mount_point(&self.path).at(&self.name, "open")? {
            return Ok(());
        }
        let problem = "this file is a mount point, so it cannot be replaced: mount its directory instead, or choose \
                       another output";
        Err(Error::file(&self.name, problem))
    }

    /// Returns an error if this user may not rename or replace the target file. Examples are a file of another user in
    /// a shared directory such as `/tmp`, and an append-only file.
    ///
    /// The function tries to remove the target with the system call that removes empty directories. Linux first checks
    /// whether the user may remove the file, and then refuses because the file is not a directory. Other systems may
    /// report the problem only when the output is renamed.
    pub(super) fn refuse_fixed_file(&self) -> Result<()> {
        match fs::remove_dir(&self.path) {
            Err(err) if cfg!(unix) && err.kind() == io::ErrorKind::PermissionDenied => {
                Err(Error::file(&self.name, FIXED))
            }
            _ => Ok(()),
        }
    }

    /// Returns an error if the target is a directory that cannot be renamed. Examples are a mount point, a directory
    /// in a lower layer of an overlay file system, and another user's directory in a shared directory such as `/tmp`.
    ///
    /// The function tries to rename the target to `trial`, a non-empty directory next to it. POSIX forbids this, so the
    /// rename fails even if there is no other obstacle. If there is one, the system reports that obstacle instead.
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

    /// Returns `true` if the old output file has not changed since the new output was created. `path` is the current
    /// path of the old file, which may have been renamed.
    pub(super) fn is_unchanged_file(&self, path: &Path) -> io::Result<bool> {
        let now = FileState::of(path)?.map(FileState::renamed);
        Ok(now == self.before.map(FileState::renamed))
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
            match is_read_only {
                true => Err(Error::file(name, problem)),
                false => Ok(()),
            }
        })
    }

    /// Returns an error if another program has the target open and therefore prevents its replacement. This is usual on
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
const FIXED: &str = "the system does not let you replace this output: the output is append-only (chattr +a), or it \
                     belongs to another user in a shared directory such as /tmp; choose another output";

/// Returns `path` with all symbolic links resolved, even if nothing exists at the resolved path.
fn followed(path: &Path) -> io::Result<PathBuf> {
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

/// Returns the directory that contains `path`. For a bare file name, this is `.`.
pub(crate) fn parent(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if parent != Path::new("") => parent,
        _ => Path::new("."),
    }
}

/// The maximum number of bytes of an existing file that are read to find its first line.
const FIRST_LINE_BYTES: u64 = 256;

/// Checks that a file may be replaced. The file must be empty, or `is_own` must return `true` for its first line. The
/// line is passed without trailing whitespace. Only the first 256 bytes of the file are read.
///
/// # Errors
///
/// Returns [`Error::File`] if the file must not be replaced. Returns another error if the file cannot be read.
pub fn check_first_line(path: &Path, is_own: impl Fn(&[u8]) -> bool) -> Result<()> {
    let mut start = Vec::new();
    File::open(path)
        .and_then(|file| file.take(FIRST_LINE_BYTES).read_to_end(&mut start))
        .at(path, "read")?;
    let line = start.split(|byte| *byte == b'\n').next();
    if start.is_empty() || line.is_some_and(|line| is_own(line.trim_ascii_end())) {
        return Ok(());
    }
    let problem = "this file exists and may be yours: remove the file, or choose another one";
    Err(Error::foreign(path, problem))
}

/// Checks that the input and output paths of an operation do not conflict. Two outputs must not be equal, and none may
/// contain another. No output may be an input, or a directory that contains an input. Symbolic links are resolved.
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

/// Returns `true` if `path` means standard output. Such a path is `-`, a name such as `/dev/stdout`, or the path of the
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
    use rustix::fs::{AtFlags, StatxAttributes};
    has_attribute(path, AtFlags::SYMLINK_NOFOLLOW, StatxAttributes::MOUNT_ROOT)
}

/// Always returns `false`, because only Linux can mount single files.
#[cfg(not(any(target_os = "linux", target_os = "android")))]
fn is_mount_point(_path: &Path) -> io::Result<bool> {
    Ok(false)
}

/// Returns an error if `directory` is append-only. Files in such a directory can be neither renamed nor removed, so
/// every temporary file would remain in it.
#[cfg(any(target_os = "linux", target_os = "android"))]
pub(crate) fn refuse_append_only(directory: &Path) -> io::Result<()> {
    use rustix::fs::{AtFlags, StatxAttributes};
    match has_attribute(directory, AtFlags::empty(), StatxAttributes::APPEND) {
        Ok(true) => Err(io::Error::other(format!(
            "files in {} can be neither renamed nor removed: run `chattr -a` on the directory",
            directory.display()
        ))),
        // Creating the file will report an error.
        _ => Ok(()),
    }
}

/// Always returns `Ok(())`, because systems other than Linux either have no append-only directories or do not report
/// them.
#[cfg(not(any(target_os = "linux", target_os = "android")))]
pub(crate) fn refuse_append_only(_directory: &Path) -> io::Result<()> {
    Ok(())
}

/// Returns `true` if the file or directory at `path` has `attribute`, according to the system call `statx`. `flags`
/// determines whether a symbolic link at `path` is followed.
#[cfg(any(target_os = "linux", target_os = "android"))]
fn has_attribute(
    path: &Path,
    flags: rustix::fs::AtFlags,
    attribute: rustix::fs::StatxAttributes,
) -> io::Result<bool> {
    use rustix::{
        fs::{CWD, StatxFlags, statx},
        io::Errno,
    };
    match statx(CWD, path, flags, StatxFlags::empty()) {
        // Linux before 4.11 cannot answer.
        Err(Errno::NOSYS) => Ok(false),
        found => Ok(found?.stx_attributes.contains(attribute)),
    }
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

/// The access rights, the owner, the group and the extended attributes of a file or directory. On systems other than
/// Unix, the type has no fields, because a file on these systems inherits its access rights from its directory.
#[derive(Debug)]
pub(super) struct Attributes {
    #[cfg(unix)]
    mode: u32,
    #[cfg(unix)]
    user: u32,
    #[cfg(unix)]
    group: u32,
    #[cfg(unix)]
    extended: Vec<(OsString, Vec<u8>)>,
}

#[cfg(unix)]
impl Attributes {
    pub(super) fn of(path: &Path) -> io::Result<Attributes> {
        use std::os::unix::fs::MetadataExt;
        let metadata = fs::metadata(path)?;
        Ok(Attributes {
            mode: metadata.mode() & 0o7777,
            user: metadata.uid(),
            group: metadata.gid(),
            extended: extended_of(path)?,
        })
    }

    /// Sets the attributes on the directory at `path`. Attributes that the user is not allowed to set are skipped.
    pub(super) fn set_on_directory(&self, path: &Path) -> io::Result<()> {
        self.set_on(&File::open(path)?)
    }

    /// Sets the attributes on an open file or directory. Attributes that the user is not allowed to set are skipped.
    /// Nobody ever gets more access than the attributes permit.
    pub(super) fn set_on(&self, file: &File) -> io::Result<()> {
        use std::os::unix::fs::{MetadataExt, PermissionsExt, fchown};
        let is_own = |now: &fs::Metadata| now.uid() == self.user && now.gid() == self.group;
        if !is_own(&file.metadata()?) {
            if_allowed(fchown(file, None, Some(self.group)))?;
            if_allowed(fchown(file, Some(self.user), None))?;
        }
        let now = file.metadata()?;
        let mode = self.mode_for(is_own(&now), now.gid() == self.group);
        let has = now.mode() & 0o7777;
        if has != mode {
            let set = file.set_permissions(fs::Permissions::from_mode(mode));
            // It is safe to keep the current rights if they grant nothing beyond the wanted ones.
            if has & !mode == 0 {
                if_allowed(set)?;
            } else {
                set?;
            }
        }
        for (name, value) in &self.extended {
            if_allowed(xattr::FileExt::set_xattr(file, name, value))?;
        }
        Ok(())
    }

    /// Returns the access rights (mode) for a new file that replaces the old file with these attributes. `is_own` is
    /// `true` if both files have the same user and group, and `has_group` is `true` if they have the same group. If the
    /// user or the group differs, reduces the rights, so that nobody gets additional access.
    fn mode_for(&self, is_own: bool, has_group: bool) -> u32 {
        let mut mode = self.mode;
        if !is_own {
            // The set-user-ID and set-group-ID bits are not taken over if the owner or the group differs.
            mode &= 0o777;
        }
        if !has_group {
            // If the group differs, the group gets only the rights that all other users have.
            mode = mode & !0o70 | (mode & 0o7) << 3;
        }
        mode
    }
}

#[cfg(not(unix))]
impl Attributes {
    pub(super) fn of(_path: &Path) -> io::Result<Attributes> {
        Ok(Attributes {})
    }

    pub(super) fn set_on(&self, _file: &File) -> io::Result<()> {
        Ok(())
    }

    /// Does nothing, because the standard library cannot open a directory as a file on Windows.
    pub(super) fn set_on_directory(&self, _path: &Path) -> io::Result<()> {
        Ok(())
    }
}

/// Returns `true` if the current user may not write to a file or directory. Also returns `true` if no user has write
/// permission, even though the administrator (root) could write to the file.
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

/// Returns `Ok(())` instead of an error if the error means that the user may not perform the operation, or that the
/// file system does not support it. Returns all other results unchanged.
#[cfg(unix)]
fn if_allowed(result: io::Result<()>) -> io::Result<()> {
    use io::ErrorKind::{InvalidInput, PermissionDenied, Unsupported};
    match result {
        Err(err) if matches!(err.kind(), PermissionDenied | Unsupported | InvalidInput) => Ok(()),
        result => result,
    }
}

/// Returns the names and values of the extended attributes that the replacement of a file inherits. On Linux, these
/// are user attributes and access control lists. Attributes that describe the content, such as signatures, and
/// attributes that only the system may set are omitted.
#[cfg(unix)]
fn extended_of(path: &Path) -> io::Result<Vec<(OsString, Vec<u8>)>> {
    let names = match xattr::list_deref(path) {
        Err(err) if err.kind() == io::ErrorKind::Unsupported => return Ok(Vec::new()),
        names => names?,
    };
    let is_kept = |name: &OsString| {
        let name = name.as_encoded_bytes();
        cfg!(target_vendor = "apple")
            || name.starts_with(b"user.")
            || name.starts_with(b"system.posix_acl_")
    };
    let mut found = Vec::new();
    for name in names.filter(is_kept) {
        let value = xattr::get_deref(path, &name)?;
        found.extend(value.map(|value| (name, value)));
    }
    Ok(found)
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

    #[test]
    fn the_first_line_decides_whether_a_file_is_replaced() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("book.txt");
        let check = |text: &str| {
            fs::write(&path, text).unwrap();
            check_first_line(&path, |line| line == b"polybook")
        };
        for own in ["", "polybook", "polybook \r\nmore"] {
            check(own).unwrap();
        }
        for foreign in ["\n", "polybooks\n", "mine\npolybook\n"] {
            let err = check(foreign).unwrap_err().to_string();
            assert!(err.contains("exists and may be yours"), "{err}");
        }
    }

    #[cfg(unix)]
    #[test]
    fn a_file_of_another_owner_gives_nobody_more_rights() {
        let attributes = |mode| Attributes {
            mode,
            user: 1,
            group: 1,
            extended: Vec::new(),
        };
        for (mode, own, other_user, other_group) in [
            (0o644, 0o644, 0o644, 0o644),
            (0o660, 0o660, 0o660, 0o600),
            (0o6754, 0o6754, 0o754, 0o744),
            (0o2607, 0o2607, 0o607, 0o677),
        ] {
            let attributes = attributes(mode);
            assert_eq!(attributes.mode_for(true, true), own);
            assert_eq!(attributes.mode_for(false, true), other_user);
            assert_eq!(attributes.mode_for(false, false), other_group);
        }
    }

    #[cfg(unix)]
    #[test]
    fn only_what_is_not_allowed_is_ignored() {
        use io::ErrorKind::{InvalidInput, PermissionDenied, StorageFull, Unsupported};
        for kind in [InvalidInput, PermissionDenied, Unsupported] {
            if_allowed(Err(kind.into())).unwrap();
        }
        let err = if_allowed(Err(StorageFull.into())).unwrap_err();
        assert_eq!(err.kind(), StorageFull);
    }
}
