//! Temporary files and directories next to their targets. The run that creates them claims them, and they are removed
//! if a signal ends the program.
//!
//! A [`TemporaryDir`] has a different purpose: it contains the files that a run needs but that are not outputs.
//!
//! A run claims its temporary files and directories, so that another run for the same target does not remove them.
//! On Unix, a claim is an advisory lock, which does not hinder reading and writing. On Windows, a lock would block
//! reads through any other handle, even in the same process, and SQLite opens its own handles. So on Windows, a claim
//! is an open handle with write access: as long as it exists, the file cannot be opened without sharing it for writing.

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
    target::{Target, parent, refuse_append_only},
};
use crate::error::{At, Error, Result};

/// The number of random characters in the name of a temporary file or directory.
pub(super) const RANDOM: usize = 8;

/// The ending of temporary names. A new output has a temporary name until it is renamed to its target, and a replaced
/// output has one until it is removed.
const SUFFIX: &str = ".part";

/// The name of an empty file that is created for a moment in a temporary directory. Then polybook tries to
/// rename the output's target to the path of this directory. POSIX forbids this for a directory that is not
/// empty, but the kind of the error shows whether the target could be renamed to an unused path.
const TRIAL: &str = ".trial";

/// A function that takes the path of an abandoned temporary directory and the name of a file in it. It returns `true`
/// if polybook may have created the file, so that it may be removed.
pub type IsOwnFile = fn(&Path, &OsStr) -> bool;

/// The paths of all temporary files and directories of this process. They are removed when a signal ends the process.
static LIVE: Mutex<Live> = Mutex::new(Live {
    paths: BTreeSet::new(),
    named: BTreeMap::new(),
    is_closed: false,
});

/// A lock that is held while outputs are renamed to their targets.
static COMMIT: Mutex<()> = Mutex::new(());

struct Live {
    paths: BTreeSet<PathBuf>,
    /// The files of all [`RemovedAtEnd`] of this process. Their names are not temporary, so another program may replace
    /// them, which the identity shows.
    named: BTreeMap<PathBuf, FileId>,
    /// Whether the process is about to end. Then no output may be begun or renamed to its target.
    is_closed: bool,
}

/// Locks the list of this process's temporary files and directories. Ignores poisoning, because a panic cannot leave
/// the list inconsistent.
fn live() -> MutexGuard<'static, Live> {
    LIVE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Removes all unfinished outputs and temporary directories of this process and its journals without evaluations, and
/// prevents further ones from being
/// created or renamed to their targets. Call this before the program ends, for example because of a signal. Afterwards,
/// the program can exit at any point.
///
/// If [`commit_all`](super::commit_all) is running on another thread, waits until it has returned.
pub fn discard_all() {
    let _commit = COMMIT.lock().unwrap_or_else(PoisonError::into_inner);
    let mut live = live();
    live.is_closed = true;
    for path in std::mem::take(&mut live.paths) {
        if path.is_dir() {
            // Other threads may still add files to the directory. They fail once it has been removed.
            for _ in 0..100 {
                if fs::remove_dir_all(&path).is_ok() || !path.exists() {
                    break;
                }
            }
        } else {
            // If it cannot be removed, it is left for the next run.
            let _ = fs::remove_file(&path);
        }
    }
    for (path, id) in std::mem::take(&mut live.named) {
        if matches!(FileId::of(&path), Ok(Some(found)) if found == id) {
            // If it cannot be removed, it is left for the next run.
            let _ = fs::remove_file(&path);
        }
    }
}

/// A mark of a file that has no content worth keeping. [`discard_all`] removes the file if the mark still exists and no
/// other program has replaced the file. Dropping the mark keeps the file.
#[derive(Debug)]
pub(crate) struct RemovedAtEnd(PathBuf);

impl RemovedAtEnd {
    /// Marks `file`, which was opened from `path`.
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

/// Acquires the lock under which outputs are renamed to their targets. [`discard_all`] waits until the returned guard
/// is dropped.
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
    /// The claim: for a file, the file itself, open for writing. If a directory cannot be claimed, this is `None`, and
    /// only its name protects it.
    handle: Option<File>,
}

impl Temporary {
    /// Creates a temporary file next to `target`, or a temporary directory if `is_own` is `Some`. Removes the temporary
    /// files that killed processes with the same target have left. `is_own` decides which files of an abandoned
    /// temporary directory may be removed. Checks as far as possible that the new file or directory can later be
    /// renamed to the target.
    ///
    /// If the target exists, only the owner gets access to the file or directory; otherwise it has the default access
    /// rights.
    pub(super) fn next_to(target: &Target, is_own: Option<IsOwnFile>) -> Result<Temporary> {
        target.refuse_without_parent()?;
        let is_directory = is_own.is_some();
        let prefix = prefix(&target.path);
        let mut builder = Builder::new();
        builder.prefix(&prefix).suffix(SUFFIX).rand_bytes(RANDOM);
        let all = if is_directory { 0o777 } else { 0o666 };
        // If an old output is replaced, only the owner may read the new one until it has the rights of the old one.
        let is_private = target.exists();
        with_mode(&mut builder, if is_private { all & 0o700 } else { all });
        let doing = match is_directory {
            true => "make a temporary directory next to",
            false => "make a temporary file next to",
        };
        let parent = parent(&target.path);
        let mut made = loop {
            remove_abandoned(target, is_own)?;
            let made = Temporary::create(&builder, parent, is_directory, (&target.name, doing))?;
            if made.is_in_place() {
                break made;
            }
        };
        // Windows does not rename a directory that is open.
        if cfg!(unix) {
            made.try_rename(&builder, target)?;
        }
        if cfg!(unix) && is_directory && target.exists() {
            made.try_to_make_way(target)?;
        }
        Ok(made)
    }

    /// Tests whether the directory allows renaming files, by renaming the temporary file to a name that `builder`
    /// chooses. Some directories allow only creating files. Returns an error that names `target` if the file cannot be
    /// renamed.
    fn try_rename(&mut self, builder: &Builder<'_, '_>, target: &Target) -> Result<()> {
        let mut live = live();
        if live.is_closed {
            return Err(Error::Interrupted);
        }
        let renamed = builder.make_in(parent(&target.path), |to| rename::to_new(&self.path, to));
        let renamed = renamed.and_then(|renamed| Ok(renamed.keep()?));
        let ((), path) = renamed.at(&target.name, "rename a temporary file next to")?;
        live.paths.remove(&self.path);
        live.paths.insert(path.clone());
        self.path = path;
        Ok(())
    }

    /// Checks that the old output at `target`, a directory, can be renamed.
    ///
    /// # Errors
    ///
    /// Returns an error if the system does not let this user rename it.
    fn try_to_make_way(&self, target: &Target) -> Result<()> {
        const DOING: &str = "write into a temporary directory next to";
        // Where the test succeeds, the old output is in the temporary directory for a moment. `discard_all` must not
        // remove it then.
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

    /// Creates a temporary file in `parent`, or a temporary directory if `is_directory` is `true`, and marks it as in
    /// use by this process. `builder` determines its name and access rights. Error messages say that `doing`, a verb
    /// phrase, failed for the path `name`.
    pub(super) fn create(
        builder: &Builder<'_, '_>,
        parent: &Path,
        is_directory: bool,
        (name, doing): (&Path, &'static str),
    ) -> Result<Temporary> {
        refuse_append_only(parent).at(name, doing)?;
        let mut live = live();
        if live.is_closed {
            return Err(Error::Interrupted);
        }
        let (path, handle) = if is_directory {
            let path = builder.tempdir_in(parent).at(name, doing)?.keep();
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

    /// Returns `true` if the temporary file or directory still exists under its name. Before it was marked as in use,
    /// another process may have removed it as abandoned.
    fn is_in_place(&self) -> bool {
        match (
            FileId::of(&self.path),
            self.handle.as_ref().map(FileId::of_open),
        ) {
            (Ok(Some(named)), Some(Ok(own))) => own == named,
            (Ok(named), _) => named.is_some(),
            // If the system cannot tell, assume that nothing has happened to it.
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
    /// Panics if `self` is a directory that could not be opened.
    pub(super) fn file(&self) -> &File {
        self.handle.as_ref().expect("a file is open")
    }

    /// Releases the file or directory, so that it is no longer removed when the value is dropped. Returns its path, and
    /// an open handle that marks the file or directory as in use. The caller must hold the handle until the file or
    /// directory has been renamed. The handle is `None` on Windows, which cannot rename open files.
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
        // If it cannot be removed, it is left for the next run.
        let _ = match self.is_directory {
            true => fs::remove_dir_all(&self.path),
            false => fs::remove_file(&self.path),
        };
        live().paths.remove(&self.path);
    }
}

#[cfg(unix)]
pub(super) fn with_mode(builder: &mut Builder<'_, '_>, mode: u32) {
    use std::os::unix::fs::PermissionsExt;
    builder.permissions(fs::Permissions::from_mode(mode));
}

/// Does nothing, because only Unix sets the access rights of a new file by a mode.
#[cfg(not(unix))]
pub(super) fn with_mode(_builder: &mut Builder<'_, '_>, _mode: u32) {
    // On other systems, a file takes its rights from its directory.
}

/// Returns the prefix that the names of all temporary files for the output `target` share: a dot, the name of the
/// output, and a dot.
fn prefix(target: &Path) -> OsString {
    /// The maximum length in bytes of an output's name that is not shortened. File names may have at most 255 bytes,
    /// and SQLite appends endings to the names of temporary files.
    const LONGEST: usize = 200;
    let mut prefix = OsString::from(".");
    prefix.push(shortened(target.file_name().unwrap_or_default(), LONGEST));
    prefix.push(".");
    prefix
}

/// Returns a file name of at most `longest` bytes unchanged. Shortens a longer name to its first 100 bytes, a tilde and
/// a hash of the whole name. `longest` must be at least 117, the length of a shortened name.
pub(crate) fn shortened(name: &OsStr, longest: usize) -> Cow<'_, OsStr> {
    /// The maximum number of bytes that are kept from the beginning of a long name.
    const BEGINNING: usize = 100;
    if name.len() <= longest {
        return Cow::Borrowed(name);
    }
    let text = name.to_string_lossy();
    let beginning = &text[..text.floor_char_boundary(BEGINNING)];
    let hash = FxBuildHasher.hash_one(name);
    Cow::Owned(format!("{beginning}~{hash:016x}").into())
}

/// Restores an old output directory that a killed process has moved aside, by renaming it to `target`. Returns `true`
/// if the directory was found and restored.
///
/// # Errors
///
/// Returns an error if the process that moved the directory is still running, or if the directory cannot be renamed.
pub(super) fn restore(target: &Target) -> Result<bool> {
    let left = left_behind(target, &[rename::ASIDE])?;
    let Some((path, _)) = left.into_iter().find(|(_, is_directory)| *is_directory) else {
        return Ok(false);
    };
    let _claim = claim_left_behind(target, &path, true)?;
    rename::to_new(&path, &target.path).at(&target.name, "restore")?;
    Ok(true)
}

/// Removes the temporary files and directories that were left by killed processes with the same target. For a target
/// that is a directory, `is_own` decides which files of an abandoned directory may be removed. It is `None` for a file.
///
/// # Errors
///
/// Returns an error if another process with this target is still running.
fn remove_abandoned(target: &Target, is_own: Option<IsOwnFile>) -> Result<()> {
    for (path, is_directory) in left_behind(target, &[SUFFIX, rename::ASIDE])? {
        let Some(_claim) = claim_left_behind(target, &path, is_directory)? else {
            continue;
        };
        match is_own {
            Some(is_own) if is_directory => remove_abandoned_directory(target, &path, is_own)?,
            // A file that cannot be removed now is left for the next run.
            None if !is_directory => drop(fs::remove_file(&path)),
            // An earlier target with this name was a directory instead of a file, or the reverse.
            _ => {}
        }
    }
    Ok(())
}

/// Removes the temporary directories that killed processes with the target `target` have left. `is_own` decides which
/// files in them may be removed. Call this for a target that will not be written again; otherwise the next process that
/// writes it removes them.
///
/// # Errors
///
/// Returns an error if another process with this target is still running, or if a directory contains other files.
#[cfg(feature = "serve")]
pub(crate) fn remove_abandoned_directories(target: &Path, is_own: IsOwnFile) -> Result<()> {
    remove_abandoned(&Target::resolve(target)?, Some(is_own))
}

/// Lists the temporary files and directories next to `target` that were created for this target. `endings` contains the
/// endings of their names. Each path is returned with `true` for a directory. Returns an empty list if this user may
/// not read the parent directory, or if it does not exist.
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
            // The run that created the file has removed it in the meantime.
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

/// Takes over the temporary file or directory at `path` from a process that has ended, so that it can be removed or
/// restored. `is_directory` is `true` for a directory. Returns the locked file, which must stay open as long as `path`
/// is used. Returns `None` if it is unknown whether the process has ended; then the caller must leave `path` alone.
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

/// Removes the temporary directory `path` that a killed process has left next to the output `target`. `is_own` returns
/// `true` for the names of files that polybook creates in a temporary directory. `target` is named in errors.
///
/// # Errors
///
/// Returns an error, and removes nothing, if the directory contains anything else.
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

/// Returns the names of all entries of a directory if they are files for which `is_own` returns `true`. Otherwise, the
/// inner `Err` contains the name of the first other entry.
///
/// # Errors
///
/// The outer `Err` means that the directory cannot be read.
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

/// Removes the files with the given names from a directory, in reverse order, and then the directory itself.
///
/// # Errors
///
/// Returns an error if a file cannot be removed, or if the directory contains further files. These files and the
/// directory are kept.
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

/// Returns `true` if `name` is the name of a temporary file or directory: `prefix`, random letters and digits, and
/// `ending`.
pub(super) fn is_temporary(name: &[u8], prefix: &OsStr, ending: &str) -> bool {
    name.strip_prefix(prefix.as_encoded_bytes())
        .and_then(|rest| rest.strip_suffix(ending.as_bytes()))
        .is_some_and(|random| {
            random.len() == RANDOM && random.iter().all(u8::is_ascii_alphanumeric)
        })
}

// The prefix and the suffix of the names of temporary directories.
const DIRECTORY_PREFIX: &str = "polybook-temporary-";
const DIRECTORY_SUFFIX: &str = ".tmp";

/// The age after which a temporary directory counts as abandoned if it is not marked as in use. A process marks a
/// directory shortly after creating it, so a younger directory may belong to a process that is still running.
const UNCLAIMED: Duration = Duration::from_secs(60);

/// The access rights of a temporary directory. Only the owner has access, because the directory may contain private
/// games.
const OWNER_ONLY: u32 = 0o700;

/// A temporary directory of this process. It is removed when the value is dropped. If a signal ends the process,
/// [`discard_all`](super::discard_all) removes it. If the process is killed, the next process of polybook that creates
/// a temporary directory in the same parent directory removes it.
#[derive(Debug)]
pub struct TemporaryDir(Temporary);

impl TemporaryDir {
    /// Creates a temporary directory in `parent`. Also tries to remove temporary directories that killed processes have
    /// left in `parent`.
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
            .rand_bytes(RANDOM);
        with_mode(&mut builder, OWNER_ONLY);
        let made = Temporary::create(
            &builder,
            parent,
            true,
            (parent, "make a temporary directory in"),
        )?;
        remove_left_behind(parent, made.path());
        Ok(TemporaryDir(made))
    }

    /// Returns the path of the directory.
    pub fn path(&self) -> &Path {
        self.0.path()
    }
}

/// Removes the temporary directories in `parent` that killed processes of this user have left. Keeps `own`, the
/// temporary directory of this process.
fn remove_left_behind(parent: &Path, own: &Path) {
    let Ok(own) = own.metadata() else {
        return;
    };
    for entry in fs::read_dir(parent).into_iter().flatten().flatten() {
        let (path, name) = (entry.path(), entry.file_name());
        // These are the metadata of the entry itself, even if it is a link.
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

/// Returns `true` if `found` describes a directory that belongs to the owner of `own` and that only this owner can
/// access.
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

/// Returns `true` if the process that created a temporary directory must have had time to mark it as in use. This is
/// the case if the directory contains a file, because files are created only after marking, or if the directory is
/// older than [`UNCLAIMED`]. `found` is the metadata of the directory.
fn was_claimed(path: &Path, found: &Metadata) -> bool {
    let age = found.modified().ok().and_then(|time| time.elapsed().ok());
    fs::read_dir(path).is_ok_and(|mut entries| entries.next().is_some())
        || age.is_some_and(|age| age > UNCLAIMED)
}

/// Marks an open temporary file as in use by this process, with an advisory lock, so that other processes of polybook
/// do not remove it. Ignores errors, because some file systems have no locks.
#[cfg(unix)]
pub(super) fn claim_file(file: &File) {
    // An error is ignored, because the run does not need the claim.
    let _ = file.try_lock();
}

/// Does nothing. On Windows, a file that is open for writing is protected from removal anyway.
#[cfg(windows)]
pub(super) fn claim_file(_file: &File) {
    // The open handle is the claim.
}

/// Marks a temporary directory as in use by this process, so that other processes of polybook do not remove it. Returns
/// a handle to the directory. The mark lasts until the handle is dropped.
#[cfg(unix)]
pub(super) fn claim_directory(path: &Path) -> io::Result<File> {
    let directory = File::open(path)?;
    claim_file(&directory);
    Ok(directory)
}

/// Marks a temporary directory as in use by this process, so that other processes of polybook do not remove it. Returns
/// a handle to the directory. The mark lasts until the handle is dropped.
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

/// Locks an old output, so that no other process of polybook removes it while it is being replaced: the old output then
/// has a temporary name for a moment. The lock is released when the returned file is dropped. Returns `None` if the
/// output cannot be opened. Always returns `None` on Windows, which does not rename open files.
pub(super) fn claim_replaced(path: &Path) -> Option<File> {
    if cfg!(windows) {
        return None;
    }
    let replaced = File::open(path).ok()?;
    claim_file(&replaced);
    Some(replaced)
}

/// Takes over the temporary file or directory at `path`, which another process created, so that it can be removed.
/// `is_directory` says which of the two it is. No third process can take it over until the returned file is dropped.
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

/// Opens a temporary file or directory that another process created, so that it can be removed. Returns `None` if the
/// process that created it is still running.
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
        let time = SystemTime::now() - 2 * UNCLAIMED;
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
