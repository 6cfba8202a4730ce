//! Temporary files and directories next to the final paths of outputs. If a signal ends the program, they are removed.
//!
//! A [`TemporaryDir`] has a different purpose: it contains files that an operation needs, but that are not outputs.
//!
//! A process claims its temporary files and directories, so that other processes do not remove them. While they are
//! claimed, another process that writes the same output fails with [`Error::Busy`]. On Unix, a claim is an advisory
//! lock, which does not block reading and writing. On Windows, a lock would block reads through any other handle, even
//! in the same process, and SQLite opens its own handles. Therefore, a claim on Windows is an open handle with write
//! access: while it is open, no process can open the file without permitting others to write.

use std::{
    borrow::Cow,
    collections::{BTreeMap, BTreeSet},
    ffi::{OsStr, OsString},
    fs::{self, File, Metadata},
    hash::BuildHasher,
    io::{self, ErrorKind},
    path::{Path, PathBuf},
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use rustc_hash::FxBuildHasher;
use tempfile::Builder;

use super::{
    identity::{FileId, is_absent},
    rename,
    target::{Target, parent},
};
use crate::error::{At, Error, Result};

/// The number of random characters in the name of a temporary file or directory.
pub(super) const RANDOM_CHARACTERS: usize = 8;

/// The extension of the temporary names of outputs. A new output has such a name until it is renamed to its target. An
/// old output gets such a name when it is replaced, and keeps it until it is removed.
const SUFFIX: &str = ".part";

/// The name of an empty file that polybook briefly creates in its temporary directory, to test whether the old output
/// directory can be renamed. The test renames the old directory to the path of the temporary directory. This always
/// fails on POSIX systems, because the file makes the temporary directory non-empty. However, the error shows whether
/// something else would also prevent a rename.
const TRIAL: &str = ".trial";

/// A function that decides whether a file in an abandoned temporary directory may be removed. It returns `true` if
/// polybook may have created the file. The arguments are the path of the directory and the name of the file.
pub type IsOwnFile = fn(&Path, &OsStr) -> bool;

/// The temporary files and directories of this process. They are removed if a signal ends the process.
static LIVE: Mutex<Live> = Mutex::new(Live {
    paths: BTreeSet::new(),
    named: BTreeMap::new(),
    is_closed: false,
});

/// A lock that a thread holds while it renames outputs to their targets. [`discard_all`] waits for it.
static COMMIT: Mutex<()> = Mutex::new(());

struct Live {
    paths: BTreeSet<PathBuf>,
    /// The files of all [`RemovedAtEnd`] values of this process, with their identities. These files have no temporary
    /// names, so another program may replace them. The identities show whether this has happened.
    named: BTreeMap<PathBuf, FileId>,
    /// Whether the process is about to end. If it is, no output may be created or renamed to its target.
    is_closed: bool,
}

/// Locks the list of the temporary files and directories of this process, and returns it. Poisoning is ignored, because
/// a panic cannot leave the list inconsistent.
fn live() -> MutexGuard<'static, Live> {
    LIVE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Removes all unfinished outputs and temporary directories of this process, and empty journals of engine analyses.
/// Call this function before the program exits early, for example because of a signal. After this call, the process can
/// no longer create temporary files or rename outputs to their targets, so it can exit at any time.
///
/// If [`commit_all`](super::commit_all) is running on another thread, waits until it returns.
pub fn discard_all() {
    let _commit = COMMIT.lock().unwrap_or_else(PoisonError::into_inner);
    let mut live = live();
    live.is_closed = true;
    for path in std::mem::take(&mut live.paths) {
        if path.is_dir() {
            // Other threads may still create files in the directory. They fail once it has been removed.
            for _ in 0..100 {
                if fs::remove_dir_all(&path).is_ok() || !path.exists() {
                    break;
                }
            }
        } else {
            // A file that cannot be removed now is left for the next run.
            let _ = fs::remove_file(&path);
        }
    }
    for (path, id) in std::mem::take(&mut live.named) {
        if matches!(FileId::of(&path), Ok(Some(found)) if found == id) {
            // A file that cannot be removed now is left for the next run.
            let _ = fs::remove_file(&path);
        }
    }
}

/// A marker for a file that has no useful content yet. While the marker exists, [`discard_all`] removes the file,
/// unless another program has put a different file at its path. Drop the marker to keep the file.
#[derive(Debug)]
pub(crate) struct RemovedAtEnd(PathBuf);

impl RemovedAtEnd {
    /// Marks `file` for removal by [`discard_all`]. `path` is the path from which the file was opened.
    ///
    /// # Errors
    ///
    /// Returns an error if the operating system cannot examine the file. Returns [`Error::Interrupted`] if
    /// [`discard_all`] has been called, because the process is about to end.
    pub(crate) fn new(path: &Path, file: &File) -> Result<RemovedAtEnd> {
        let id = FileId::of_open(file).at(path, "open")?;
        let mut live = live();
        if live.is_closed {
            return Err(Error::Interrupted);
        }
        live.named.insert(path.to_owned(), id);
        Ok(RemovedAtEnd(path.to_owned()))
    }
}

impl Drop for RemovedAtEnd {
    fn drop(&mut self) {
        live().named.remove(&self.0);
    }
}

/// Acquires the lock that a thread must hold while it renames outputs to their targets. [`discard_all`] waits until the
/// returned guard is dropped.
///
/// # Errors
///
/// Returns [`Error::Interrupted`] if [`discard_all`] has been called, because the process is about to end.
pub(super) fn begin_commit() -> Result<MutexGuard<'static, ()>> {
    let lock = COMMIT.lock().unwrap_or_else(PoisonError::into_inner);
    if live().is_closed {
        return Err(Error::Interrupted);
    }
    Ok(lock)
}

/// A temporary file or directory of this process. It is removed when the value is dropped.
#[derive(Debug)]
pub(super) struct Temporary {
    path: PathBuf,
    is_directory: bool,
    /// The open file or directory, which is also the claim. `None` if a directory cannot be claimed, and is protected
    /// only by its name.
    handle: Option<File>,
}

impl Temporary {
    /// Creates a temporary file next to `target`, or a temporary directory if `is_own` is `Some`. Also removes
    /// temporary files and directories that killed processes with the same target have left behind. `is_own` decides
    /// which files of such a directory may be removed.
    ///
    /// If the target exists, only the owner can access the temporary file or directory. Otherwise, it has the default
    /// access rights.
    pub(super) fn next_to(target: &Target, is_own: Option<IsOwnFile>) -> Result<Temporary> {
        target.refuse_without_parent()?;
        let is_directory = is_own.is_some();
        let prefix = prefix(&target.path);
        let mut builder = Builder::new();
        builder
            .prefix(&prefix)
            .suffix(SUFFIX)
            .rand_bytes(RANDOM_CHARACTERS);
        let all = if is_directory { 0o777 } else { 0o666 };
        // If an old output is replaced, only the owner may read the new one until it has inherited the old access
        // rights.
        let is_private = target.exists();
        with_mode(&mut builder, if is_private { all & 0o700 } else { all });
        let doing = if is_directory {
            "create a temporary directory next to"
        } else {
            "create a temporary file next to"
        };
        let parent = parent(&target.path);
        let made = loop {
            remove_abandoned(target, is_own, None)?;
            let made = Temporary::create(&builder, parent, is_directory, (&target.name, doing))?;
            // Another process may have looked for others before this one was there, and created its own afterwards.
            remove_abandoned(target, is_own, made.path.file_name())?;
            if made.is_in_place() {
                break made;
            }
        };
        if cfg!(unix) && is_directory && target.exists() {
            made.test_renaming_target(target)?;
        }
        Ok(made)
    }

    /// Tests whether the old output directory at `target` can be renamed.
    ///
    /// # Errors
    ///
    /// Returns an error if the system does not permit this user to rename the directory.
    fn test_renaming_target(&self, target: &Target) -> Result<()> {
        const DOING: &str = "write into a temporary directory next to";
        // If the test rename succeeds, the temporary directory briefly contains the old output. The lock keeps
        // `discard_all` from removing it.
        let live = live();
        if live.is_closed {
            return Err(Error::Interrupted);
        }
        let file = self.path.join(TRIAL);
        File::create_new(&file).at(&target.name, DOING)?;
        let refused = target.refuse_fixed_directory(&self.path);
        fs::remove_file(&file).at(&target.name, DOING)?;
        refused
    }

    /// Creates a temporary file in `parent`, or a temporary directory if `is_directory` is `true`, and claims it for
    /// this process. `builder` determines its name and access rights. Error messages name the path `name` and the
    /// operation `doing`, such as "create a temporary file next to".
    pub(super) fn create(
        builder: &Builder<'_, '_>,
        parent: &Path,
        is_directory: bool,
        (name, doing): (&Path, &'static str),
    ) -> Result<Temporary> {
        let mut live = live();
        if live.is_closed {
            return Err(Error::Interrupted);
        }
        let (path, handle) = if is_directory {
            let path = builder.tempdir_in(parent).at(name, doing)?.keep();
            // If the directory cannot be opened, it is used without a claim.
            let handle = claim_directory(&path).ok();
            (path, handle)
        } else {
            let made = builder.tempfile_in(parent);
            let made = made.and_then(|file| Ok(file.keep()?));
            let (file, path) = made.at(name, doing)?;
            claim_file(&file);
            (path, Some(file))
        };
        live.paths.insert(path.clone());
        Ok(Temporary {
            path,
            is_directory,
            handle,
        })
    }

    /// Returns `true` if the temporary file or directory still exists under its name. Just before this process claimed
    /// it, another process may have removed it because it seemed abandoned.
    fn is_in_place(&self) -> bool {
        match (
            FileId::of(&self.path),
            self.handle.as_ref().map(FileId::of_open),
        ) {
            (Ok(Some(named)), Some(Ok(own))) => own == named,
            (Ok(named), _) => named.is_some(),
            // If the system cannot answer, assume that the file still exists.
            (Err(_), _) => true,
        }
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the open file.
    ///
    /// # Panics
    ///
    /// Panics if `self` is a directory that could not be claimed.
    pub(super) fn file(&self) -> &File {
        self.handle.as_ref().expect("a file is open")
    }

    /// Releases the file or directory, so that it is no longer removed automatically. Returns its path, and the open
    /// handle that claims it for this process. The caller must hold the handle until it has renamed the file or
    /// directory. The handle is `None` on Windows, which cannot rename open files.
    pub(super) fn keep(mut self) -> (PathBuf, Option<File>) {
        live().paths.remove(&self.path);
        // Windows does not rename a file or directory that is open.
        let claim = self.handle.take().filter(|_| cfg!(unix));
        (std::mem::take(&mut self.path), claim)
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        if self.path == Path::new("") {
            return;
        }
        self.handle = None;
        // A file or directory that cannot be removed now is left for the next run.
        let _ = if self.is_directory {
            // An empty directory need not be opened for this, so it does not stay if no file can be opened.
            fs::remove_dir(&self.path).or_else(|_| fs::remove_dir_all(&self.path))
        } else {
            fs::remove_file(&self.path)
        };
        live().paths.remove(&self.path);
    }
}

#[cfg(unix)]
pub(super) fn with_mode(builder: &mut Builder<'_, '_>, mode: u32) {
    use std::os::unix::fs::PermissionsExt;
    builder.permissions(fs::Permissions::from_mode(mode));
}

/// Does nothing, because only Unix has modes that determine the access rights of a new file.
#[cfg(not(unix))]
pub(super) fn with_mode(_builder: &mut Builder<'_, '_>, _mode: u32) {
    // On other systems, a file takes its rights from its directory.
}

/// Returns the prefix of the names of all temporary files for the output `target`: a dot, the name of the output, and
/// another dot.
fn prefix(target: &Path) -> OsString {
    /// The maximum length in bytes of an output's name in temporary names. A longer name is shortened, because file
    /// names may have at most 255 bytes, and SQLite appends endings to them.
    const MAX_NAME_LENGTH: usize = 200;
    let mut prefix = OsString::from(".");
    prefix.push(shortened(
        target.file_name().unwrap_or_default(),
        MAX_NAME_LENGTH,
    ));
    prefix.push(".");
    prefix
}

/// Shortens a file name if it has more than `longest` bytes. A shortened name consists of the first 100 bytes, a tilde
/// and a hash of the whole name. `longest` must be at least 117, the length of a shortened name.
pub(crate) fn shortened(name: &OsStr, longest: usize) -> Cow<'_, OsStr> {
    /// The number of bytes of a long file name that its shortened form keeps.
    const KEPT_BYTES: usize = 100;
    if name.len() <= longest {
        return Cow::Borrowed(name);
    }
    let text = name.to_string_lossy();
    let beginning = &text[..text.floor_char_boundary(KEPT_BYTES)];
    let hash = FxBuildHasher.hash_one(name);
    Cow::Owned(format!("{beginning}~{hash:016x}").into())
}

/// Restores an old output directory that a killed process has left behind under a temporary name: renames it back to
/// `target`. Returns `true` if there was such a directory.
///
/// # Errors
///
/// Returns an error if the process that renamed the directory is still running, if it is unknown whether it is running,
/// or if the directory cannot be renamed back.
pub(super) fn restore(target: &Target) -> Result<bool> {
    let left = left_behind(target, &[rename::ASIDE])?;
    let Some((path, _)) = left.into_iter().find(|(_, is_directory)| *is_directory) else {
        return Ok(false);
    };
    let Some(_claim) = claim_left_behind(target, &path, true)? else {
        // The process that renamed the directory may still be running. If this function returned no error, the old
        // output would keep its temporary name without the user's knowledge.
        let problem = format!(
            "the old output may be in {}, which cannot be opened or locked: if no other polybook is writing, rename \
             this directory to {}, or move it away",
            path.display(),
            target.name.display()
        );
        return Err(Error::changed(&target.name, problem));
    };
    rename::to_new(&path, &target.path).at(&target.name, "restore")?;
    Ok(true)
}

/// Removes the temporary files or directories that killed processes with the same target have left behind. `is_own` is
/// `None` if the output is a file. If the output is a directory, `is_own` decides which files of an abandoned directory
/// may be removed. `own` is the name of the temporary file or directory that the caller has created.
///
/// # Errors
///
/// Returns an error if another process with this target is still running.
fn remove_abandoned(target: &Target, is_own: Option<IsOwnFile>, own: Option<&OsStr>) -> Result<()> {
    let left = left_behind(target, &[SUFFIX, rename::ASIDE])?.into_iter();
    for (path, is_directory) in left.filter(|(path, _)| path.file_name() != own) {
        let Some(_claim) = claim_left_behind(target, &path, is_directory)? else {
            continue;
        };
        match is_own {
            Some(is_own) if is_directory => remove_abandoned_directory(target, &path, is_own)?,
            // A file that cannot be removed now is left for the next run.
            None if !is_directory => drop(fs::remove_file(&path)),
            // An earlier output with this name was a directory if this one is a file, or the reverse.
            _ => {}
        }
    }
    Ok(())
}

/// Removes the temporary directories that killed processes with the same target have left behind. `is_own` decides
/// which files in them may be removed. Call this function only if `target` will not be written again, because every
/// process that writes it removes these directories first.
///
/// # Errors
///
/// Returns an error if another process with this target is still running, or if a directory contains files for which
/// `is_own` returns `false`.
#[cfg(feature = "serve")]
pub(crate) fn remove_abandoned_directories(target: &Path, is_own: IsOwnFile) -> Result<()> {
    remove_abandoned(&Target::resolve(target)?, Some(is_own), None)
}

/// Lists the temporary files and directories that processes created for the output `target`. `endings` contains the
/// extensions of their names. Each path is paired with `true` for a directory and `false` for a file. Returns an empty
/// list if the parent directory does not exist, or if this user may not read it.
///
/// # Errors
///
/// Returns an error if the parent directory cannot be read for another reason.
fn left_behind(target: &Target, endings: &[&str]) -> Result<Vec<(PathBuf, bool)>> {
    let (prefix, parent) = (prefix(&target.path), parent(&target.path));
    let entries = match fs::read_dir(parent) {
        Err(err) if is_absent(&err) || err.kind() == ErrorKind::PermissionDenied => {
            return Ok(Vec::new());
        }
        entries => entries.at(parent, "read")?,
    };
    let mut found = Vec::new();
    for entry in entries {
        let entry = entry.at(parent, "read")?;
        let name = entry.file_name();
        let is_temporary = |ending: &&str| is_temporary(name.as_encoded_bytes(), &prefix, ending);
        if !endings.iter().any(is_temporary) {
            continue;
        }
        match entry.file_type() {
            // The process that created the file has removed it in the meantime.
            Err(err) if is_absent(&err) => {}
            kind => {
                let kind = kind.at(entry.path(), "open")?;
                if kind.is_file() || kind.is_dir() {
                    found.push((entry.path(), kind.is_dir()));
                }
            }
        }
    }
    Ok(found)
}

/// Claims the temporary file or directory at `path`, which another process created for `target`, so that this process
/// can remove or restore it. The claim lasts until the returned handle is dropped. Returns `None` if it is unknown
/// whether the other process has ended. In this case, the caller must not touch `path`.
///
/// # Errors
///
/// Returns [`Error::Busy`] if the other process is still running.
fn claim_left_behind(target: &Target, path: &Path, is_directory: bool) -> Result<Option<File>> {
    match claim_abandoned(path, is_directory) {
        Ok(None) => Err(Error::Busy {
            path: target.name.clone(),
        }),
        Ok(claim) => Ok(claim),
        Err(_) => Ok(None),
    }
}

/// Removes the temporary directory `path`, which a killed process has left behind next to `target`. `is_own` returns
/// `true` for files that polybook creates in such a directory. Error messages name `target`.
///
/// # Errors
///
/// Returns an error and removes nothing if the directory contains any other file.
fn remove_abandoned_directory(target: &Target, path: &Path, is_own: IsOwnFile) -> Result<()> {
    let is_own = |name: &OsStr| name == TRIAL || is_own(path, name);
    let mut names = own_files(path, is_own)?.map_err(|other| {
        let problem = format!(
            "an interrupted run left the directory {}, and another program put {} into it: move that file away",
            path.display(),
            other.display()
        );
        Error::changed(&target.name, problem)
    })?;
    names.sort();
    // A file that cannot be removed now is left for the next run.
    let _ = remove_directory(path, names.iter().map(OsString::as_os_str));
    Ok(())
}

/// Returns the names of all entries of a directory if each of them is a file for which `is_own` returns `true`.
/// Otherwise, returns the name of an entry for which this is not the case as an inner `Err`.
///
/// # Errors
///
/// Returns an outer `Err` if the directory cannot be read.
pub(crate) fn own_files(
    path: &Path,
    is_own: impl Fn(&OsStr) -> bool,
) -> Result<Result<Vec<OsString>, OsString>> {
    let mut names = Vec::new();
    for entry in fs::read_dir(path).at(path, "read")? {
        let entry = entry.at(path, "read")?;
        let name = entry.file_name();
        if !entry.file_type().at(path, "read")?.is_file() || !is_own(&name) {
            return Ok(Err(name));
        }
        names.push(name);
    }
    Ok(Ok(names))
}

/// Removes `files` from a directory, the last one first, and then the directory itself.
///
/// # Errors
///
/// Returns an error if a file cannot be removed, or if the directory contains other files, which are kept.
pub(super) fn remove_directory<'a>(
    path: &Path,
    files: impl DoubleEndedIterator<Item = &'a OsStr>,
) -> io::Result<()> {
    for name in files.rev() {
        match fs::remove_file(path.join(name)) {
            Err(err) if err.kind() == ErrorKind::NotFound => {}
            removed => removed?,
        }
    }
    fs::remove_dir(path)
}

/// Returns `true` if a file name has the form of a temporary name: `prefix`, random letters and digits, and `ending`.
pub(super) fn is_temporary(name: &[u8], prefix: &OsStr, ending: &str) -> bool {
    name.strip_prefix(prefix.as_encoded_bytes())
        .and_then(|rest| rest.strip_suffix(ending.as_bytes()))
        .is_some_and(|random| {
            random.len() == RANDOM_CHARACTERS && random.iter().all(u8::is_ascii_alphanumeric)
        })
}

// The prefix and the suffix of the names of temporary directories.
const DIRECTORY_PREFIX: &str = "polybook-temporary-";
const DIRECTORY_SUFFIX: &str = ".tmp";

/// The age from which an unclaimed temporary directory counts as abandoned. A process claims a directory shortly
/// after creating it, so a younger directory may belong to a running process.
const ABANDONED_AGE: Duration = Duration::from_secs(60);

/// The access rights (mode) of a temporary directory. Only the owner has access, because the directory may contain
/// private games.
const OWNER_ONLY: u32 = 0o700;

/// A temporary directory of this process. It is removed when the value is dropped. If a signal ends the process,
/// [`discard_all`](super::discard_all) removes the directory. If the process is killed, the next process that creates a
/// `TemporaryDir` in the same parent directory removes it.
#[derive(Debug)]
pub struct TemporaryDir(Temporary);

impl TemporaryDir {
    /// Creates a temporary directory in `parent`. Also tries to remove the temporary directories that killed processes
    /// have left behind there.
    ///
    /// # Errors
    ///
    /// Returns an error if the directory cannot be created, and [`Error::Interrupted`](crate::Error::Interrupted) if
    /// the process is about to end.
    pub fn new_in(parent: &Path) -> Result<TemporaryDir> {
        let mut builder = Builder::new();
        builder
            .prefix(DIRECTORY_PREFIX)
            .suffix(DIRECTORY_SUFFIX)
            .rand_bytes(RANDOM_CHARACTERS);
        with_mode(&mut builder, OWNER_ONLY);
        let made = Temporary::create(
            &builder,
            parent,
            true,
            (parent, "create a temporary directory in"),
        )?;
        remove_left_behind(parent, made.path());
        Ok(TemporaryDir(made))
    }

    /// Returns the path of the directory.
    pub fn path(&self) -> &Path {
        self.0.path()
    }
}

/// Removes the temporary directories that killed processes of this user have left behind in `parent`. `own` is the
/// temporary directory of this process, which is kept.
fn remove_left_behind(parent: &Path, own: &Path) {
    let Ok(own) = own.metadata() else {
        return;
    };
    for entry in fs::read_dir(parent).into_iter().flatten().flatten() {
        let (path, name) = (entry.path(), entry.file_name());
        // If the entry is a link, these are the metadata of the link.
        let may_be_left = is_temporary(
            name.as_encoded_bytes(),
            DIRECTORY_PREFIX.as_ref(),
            DIRECTORY_SUFFIX,
        ) && entry
            .metadata()
            .is_ok_and(|found| is_as_own(&found, &own) && was_claimed(&path, &found));
        if may_be_left && let Ok(Some(_claim)) = claim_abandoned(&path, true) {
            // The system cleans the parent directory too, so a directory that cannot be removed is left.
            let _ = fs::remove_dir_all(&path);
        }
    }
}

/// Returns `true` if a directory belongs to the user of this process and only this user can access it. `found` is the
/// metadata of the directory. `own` is the metadata of this process's temporary directory, which belongs to the same
/// user.
fn is_as_own(found: &Metadata, own: &Metadata) -> bool {
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt;
        if found.uid() != own.uid() || found.mode() & 0o777 != OWNER_ONLY {
            return false;
        }
    }
    #[cfg(not(unix))]
    let _ = own;
    found.is_dir()
}

/// Returns `true` if the process that created the temporary directory `path` must have claimed it by now: if the
/// directory is older than [`ABANDONED_AGE`] or is not empty, because a process claims a directory before it creates
/// files in it. `found` is the metadata of the directory.
fn was_claimed(path: &Path, found: &Metadata) -> bool {
    let age = found.modified().ok().and_then(|time| time.elapsed().ok());
    fs::read_dir(path).is_ok_and(|mut entries| entries.next().is_some())
        || age.is_some_and(|age| age > ABANDONED_AGE)
}

/// Claims a new temporary file for this process, with an advisory lock, so that other processes of polybook do not
/// remove it. If another process has claimed the file because it seemed abandoned, waits until that process has removed
/// it. Errors are ignored, because some file systems do not support locks.
#[cfg(unix)]
fn claim_file(file: &File) {
    // The process can also work without a claim.
    let _ = file.lock();
}

/// Does nothing. On Windows, an open file cannot be removed by other processes of polybook.
#[cfg(windows)]
fn claim_file(_file: &File) {
    // The open handle is the claim.
}

/// Claims a temporary directory for this process, so that other processes of polybook do not remove it. Returns an
/// open handle to the directory. The claim ends when the handle is dropped.
#[cfg(unix)]
pub(super) fn claim_directory(path: &Path) -> io::Result<File> {
    let directory = File::open(path)?;
    claim_file(&directory);
    Ok(directory)
}

/// Claims a temporary directory for this process, so that other processes of polybook do not remove it. Returns an
/// open handle to the directory. The claim ends when the handle is dropped.
#[cfg(windows)]
pub(super) fn claim_directory(path: &Path) -> io::Result<File> {
    use std::os::windows::fs::OpenOptionsExt;
    use windows_sys::Win32::Storage::FileSystem::{
        FILE_ADD_FILE, FILE_FLAG_BACKUP_SEMANTICS, FILE_LIST_DIRECTORY,
    };
    File::options()
        .access_mode(FILE_ADD_FILE | FILE_LIST_DIRECTORY)
        .custom_flags(FILE_FLAG_BACKUP_SEMANTICS)
        .open(path)
}

/// Claims the old output at `path` for this process, so that other processes of polybook do not remove it while it has
/// a temporary name. The claim ends when the returned handle is dropped. Returns `None` if the output cannot be opened.
/// Always returns `None` on Windows, which cannot rename open files.
pub(super) fn claim_replaced(path: &Path) -> Option<File> {
    if cfg!(windows) {
        return None;
    }
    let replaced = File::open(path).ok()?;
    // The process can also work without a claim.
    let _ = replaced.try_lock();
    Some(replaced)
}

/// Claims the temporary file or directory at `path`, which another process created, so that this process can remove it.
/// `is_directory` is `true` for a directory. No other process can claim it until the returned handle is dropped.
/// Returns `None` if the process that created it is still running.
///
/// # Errors
///
/// Returns an error if the file or directory cannot be opened or locked. In this case, it is unknown whether its
/// creator is still running.
#[cfg(unix)]
pub(crate) fn claim_abandoned(path: &Path, is_directory: bool) -> io::Result<Option<File>> {
    use std::fs::TryLockError;
    let left = File::options().read(true).write(!is_directory).open(path)?;
    match left.try_lock() {
        Ok(()) => Ok(Some(left)),
        Err(TryLockError::WouldBlock) => Ok(None),
        Err(TryLockError::Error(err)) => Err(err),
    }
}

/// Claims the temporary file or directory at `path`, which another process created, so that it can be removed.
/// Returns `None` if the process that created it is still running.
///
/// # Errors
///
/// Returns an error if the file or directory cannot be opened. In this case, it is unknown whether its creator is still
/// running.
#[cfg(windows)]
pub(crate) fn claim_abandoned(path: &Path, _is_directory: bool) -> io::Result<Option<File>> {
    use std::os::windows::fs::OpenOptionsExt;
    use windows_sys::Win32::{
        Foundation::ERROR_SHARING_VIOLATION,
        Storage::FileSystem::{FILE_FLAG_BACKUP_SEMANTICS, FILE_SHARE_DELETE, FILE_SHARE_READ},
    };
    let opened = File::options()
        .read(true)
        .share_mode(FILE_SHARE_READ | FILE_SHARE_DELETE)
        .custom_flags(FILE_FLAG_BACKUP_SEMANTICS)
        .open(path);
    match opened {
        Err(err) if err.raw_os_error() == Some(ERROR_SHARING_VIOLATION.cast_signed()) => Ok(None),
        opened => opened.map(Some),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_is_removed_with_its_own_files_alone() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("index");
        fs::create_dir(&path).unwrap();
        fs::write(path.join("CURRENT"), "").unwrap();
        fs::create_dir(path.join("lost")).unwrap();
        let remove = |names: &[&'static str]| {
            let names: Vec<&OsStr> = names.iter().map(OsStr::new).collect();
            remove_directory(&path, names.into_iter())
        };
        // `lost` is not a file.
        assert!(remove(&["CURRENT", "lost"]).is_err());
        assert!(path.join("CURRENT").exists());
        let err = remove(&[]).unwrap_err();
        assert_eq!(err.kind(), ErrorKind::DirectoryNotEmpty);
        fs::remove_dir(path.join("lost")).unwrap();
        // A file that has been removed already is no obstacle.
        remove(&["CURRENT", "000003.ldb"]).unwrap();
        assert!(!path.exists());
    }

    #[test]
    fn long_names_are_shortened_to_different_ones() {
        let name = |length: usize, end: &str| OsString::from("ä".repeat(length) + end);
        assert_eq!(shortened(&name(100, ""), 200), name(100, ""));
        let (a, b) = (name(100, "a"), name(100, "b"));
        let short = [&a, &b].map(|name| shortened(name, 200));
        assert_ne!(short[0], short[1]);
        for name in short {
            let name = name.to_str().unwrap();
            assert_eq!((name.len(), name.matches('ä').count()), (117, 50));
        }
    }

    #[test]
    #[cfg(unix)]
    fn only_abandoned_temporary_directories_are_removed() {
        use std::{
            fs::{DirBuilder, File, Permissions},
            os::unix::fs::{DirBuilderExt, PermissionsExt, symlink},
            time::SystemTime,
        };

        let dir = tempfile::tempdir().unwrap();
        let parent = dir.path();
        let make = |name: &str| {
            let path = parent.join(name);
            DirBuilder::new().mode(0o700).create(&path).unwrap();
            path
        };
        let fill = |path: &Path| fs::write(path.join("games"), "1. e4 *").unwrap();
        let living = TemporaryDir::new_in(parent).unwrap();
        let full = make("polybook-temporary-AbCd1234.tmp");
        let old = make("polybook-temporary-AbCd1235.tmp");
        let young = make("polybook-temporary-AbCd1236.tmp");
        let shared = make("polybook-temporary-AbCd1237.tmp");
        let backups = make("polybook-temporary-my-games.tmp");
        let theirs = make("theirs");
        let link = parent.join("polybook-temporary-AbCd1238.tmp");
        symlink(&theirs, &link).unwrap();
        symlink(&theirs, full.join("link")).unwrap();
        for path in [living.path(), &full, &shared, &backups, &theirs] {
            fill(path);
        }
        fs::set_permissions(&shared, Permissions::from_mode(0o755)).unwrap();
        let time = SystemTime::now() - 2 * ABANDONED_AGE;
        File::open(&old).unwrap().set_modified(time).unwrap();

        let new = TemporaryDir::new_in(parent).unwrap();
        let mode = new.path().metadata().unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o700);
        assert!(!full.exists() && !old.exists());
        assert!(young.exists() && link.exists());
        for path in [living.path(), &shared, &backups, &theirs] {
            assert!(path.join("games").exists(), "{}", path.display());
        }
        let path = new.path().to_owned();
        fill(&path);
        drop(new);
        assert!(!path.exists());
    }
}
