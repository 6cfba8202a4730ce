//! Temporaries next to their targets, claimed by the run that makes them, and removed if a signal ends the program.

use std::{
    collections::BTreeSet,
    ffi::{OsStr, OsString},
    fs::{self, File},
    hash::BuildHasher,
    io::{self, ErrorKind},
    path::{Path, PathBuf},
    sync::{Mutex, MutexGuard, PoisonError},
};

use rustc_hash::FxBuildHasher;
use tempfile::Builder;

use super::{
    claim,
    identity::{FileId, is_absent},
    rename,
    target::{Target, parent},
};
use crate::error::{At, Error, Result};

/// How many random characters distinguish the temporaries of a target.
pub(super) const RANDOM: usize = 8;

/// The ending of an output that is not in place, and of an old one that is no more.
const SUFFIX: &str = ".part";

/// An empty file that is in a temporary directory for a moment.
const TRIAL: &str = ".trial";

/// Whether a run may have left a file of this name in this temporary directory.
pub type IsOwnFile = fn(&Path, &OsStr) -> bool;

/// The temporaries of this process.
static LIVE: Mutex<Live> = Mutex::new(Live {
    paths: BTreeSet::new(),
    is_closed: false,
});

/// Held while outputs are put in place.
static COMMIT: Mutex<()> = Mutex::new(());

struct Live {
    paths: BTreeSet<PathBuf>,
    /// Set when the process is about to end: nothing is begun or put in place any more.
    is_closed: bool,
}

/// Locks the list. A thread that panicked with the lock cannot have left it half changed.
fn live() -> MutexGuard<'static, Live> {
    LIVE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Removes all unfinished outputs and temporary directories of this process and prevents that any other is begun or put in
/// place. For a program that ends, by a signal too: afterwards it can exit at any point.
///
/// A commit that is under way is completed first.
pub fn discard_all() {
    let _commit = COMMIT.lock().unwrap_or_else(PoisonError::into_inner);
    let mut live = live();
    live.is_closed = true;
    for path in std::mem::take(&mut live.paths) {
        if path.is_dir() {
            // Other threads may still add files; without the directory they fail.
            for _ in 0..100 {
                if fs::remove_dir_all(&path).is_ok() || !path.exists() {
                    break;
                }
            }
        } else {
            // One that cannot be removed is left for the next run.
            let _ = fs::remove_file(&path);
        }
    }
}

/// Keeps [`discard_all`] out while outputs are put in place.
///
/// # Errors
///
/// [`Error::Interrupted`] if the process is about to end.
pub(super) fn begin_commit() -> Result<MutexGuard<'static, ()>> {
    let lock = COMMIT.lock().unwrap_or_else(PoisonError::into_inner);
    if live().is_closed {
        return Err(Error::Interrupted);
    }
    Ok(lock)
}

/// A temporary file or directory that belongs to this run as long as the value lives. It goes with it.
#[derive(Debug)]
pub(super) struct Temporary {
    path: PathBuf,
    is_directory: bool,
    /// The file, open for writing, which is its own claim; of a directory its claim. Without one only the name protects it.
    handle: Option<File>,
}

impl Temporary {
    /// A new file next to a target, or a directory if `is_own` knows the files that a killed run may have left in one.
    /// Checks whether the target can be put in place from there, as far as that can be known before the output is written.
    ///
    /// The new one has the rights that the user's mask leaves.
    pub(super) fn next_to(target: &Target, is_own: Option<IsOwnFile>) -> Result<Temporary> {
        target.refuse_without_parent()?;
        let is_directory = is_own.is_some();
        let prefix = prefix(&target.path);
        let mut builder = Builder::new();
        builder.prefix(&prefix).suffix(SUFFIX).rand_bytes(RANDOM);
        let all = if is_directory { 0o777 } else { 0o666 };
        // What replaces an output is for the eyes of its owner until it has the rights of that output.
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
        // Windows renames no directory that is open.
        if cfg!(unix) {
            made.try_rename(&builder, target)?;
        }
        if cfg!(unix) && is_directory && target.exists() {
            made.try_to_make_way(target)?;
        }
        Ok(made)
    }

    /// Renames the temporary within its directory, because there are directories in which files can be made but not renamed.
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

    /// Returns an error if the old output, a directory, cannot be renamed.
    fn try_to_make_way(&self, target: &Target) -> Result<()> {
        const DOING: &str = "write into a temporary directory next to";
        let file = self.path.join(TRIAL);
        File::create_new(&file).at(&target.name, DOING)?;
        let refused = target.refuse_fixed_directory(&self.path);
        fs::remove_file(&file).at(&target.name, DOING)?;
        refused
    }

    /// Makes one. The last parameters are for errors.
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
            let handle = claim::directory(&path).ok();
            (path, handle)
        } else {
            let made = builder.tempfile_in(parent);
            let made = made.and_then(|file| Ok(file.keep()?));
            let (file, path) = made.at(name, doing)?;
            claim::file(&file);
            (path, Some(file))
        };
        live.paths.insert(path.clone());
        Ok(Temporary {
            path,
            is_directory,
            handle,
        })
    }

    /// Whether it still has its name. Another run that begins before it is claimed takes it for abandoned.
    fn is_in_place(&self) -> bool {
        match (
            FileId::of(&self.path),
            self.handle.as_ref().map(FileId::of_open),
        ) {
            (Ok(Some(named)), Some(Ok(own))) => own == named,
            (Ok(named), _) => named.is_some(),
            // What cannot be asked is taken for as it should be.
            (Err(_), _) => true,
        }
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// The file.
    pub(super) fn file(&self) -> &File {
        self.handle.as_ref().expect("a file is open")
    }

    /// The path, and the claim, to be held until it has another name. It is no longer removed.
    pub(super) fn keep(mut self) -> (PathBuf, Option<File>) {
        live().paths.remove(&self.path);
        // Windows renames nothing that is open.
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
        // One that cannot be removed is left for the next run.
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

/// Elsewhere a file has the rights of its directory.
#[cfg(not(unix))]
pub(super) fn with_mode(_builder: &mut Builder<'_, '_>, _mode: u32) {}

/// What the names of the temporaries of a target begin with: the target's name, or the beginning and the hash of a name that
/// is so long that the name of a temporary would be longer than systems allow.
fn prefix(target: &Path) -> OsString {
    /// The most bytes of a name that is used whole. The longest names have 255, and SQLite appends to those of temporaries.
    const LONGEST: usize = 200;
    let name = target.file_name().unwrap_or_default();
    let mut prefix = OsString::from(".");
    if name.len() <= LONGEST {
        prefix.push(name);
    } else {
        let text = name.to_string_lossy();
        prefix.push(&text[..text.floor_char_boundary(LONGEST / 2)]);
        prefix.push(format!("~{:016x}", FxBuildHasher.hash_one(name)));
    }
    prefix.push(".");
    prefix
}

/// Gives its name back to an old directory that a killed run had moved aside. Returns whether there was one.
///
/// # Errors
///
/// A run that lives, or a rename that fails.
pub(super) fn restore(target: &Target) -> Result<bool> {
    let left = left_behind(target, &[rename::ASIDE])?;
    let Some((path, _)) = left.into_iter().find(|(_, is_directory)| *is_directory) else {
        return Ok(false);
    };
    let _claim = claim_left_behind(target, &path, true)?;
    rename::to_new(&path, &target.path).at(&target.name, "restore")?;
    Ok(true)
}

/// Removes the temporaries that runs for the target left; an error if one of the runs lives. `is_own` is of
/// targets that are directories.
fn remove_abandoned(target: &Target, is_own: Option<IsOwnFile>) -> Result<()> {
    for (path, is_directory) in left_behind(target, &[SUFFIX, rename::ASIDE])? {
        let Some(_claim) = claim_left_behind(target, &path, is_directory)? else {
            continue;
        };
        match is_own {
            Some(is_own) if is_directory => remove_abandoned_directory(target, &path, is_own)?,
            // What cannot be removed now is left for the next run.
            None if !is_directory => drop(fs::remove_file(&path)),
            // A target of the other kind had this name.
            _ => {}
        }
    }
    Ok(())
}

/// Returns the files and directories that runs for the target left, and whether each is a directory.
///
/// # Errors
///
/// Returns an error if the directory cannot be read, unless it does not exist or this user may not read it. Who may not read
/// a directory may still be allowed to make a file in it.
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
            // The run that made it has removed it meanwhile.
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

/// Claims what a run left; `None` if it is not known whether that run lives.
fn claim_left_behind(target: &Target, path: &Path, is_directory: bool) -> Result<Option<File>> {
    match claim::left_behind(path, is_directory) {
        Ok(None) => Err(Error::Busy {
            path: target.name.clone(),
        }),
        Ok(claim) => Ok(claim),
        Err(_) => Ok(None),
    }
}

/// Removes a directory that a run left, unless something else is in it.
fn remove_abandoned_directory(target: &Target, path: &Path, is_own: IsOwnFile) -> Result<()> {
    let is_own = |name: &OsStr| name == TRIAL || is_own(path, name);
    let mut names = own_files(path, is_own)?.map_err(|other| {
        let problem = format!(
            "an interrupted run left {}, and another program put {} into it: move that away",
            path.display(),
            other.display()
        );
        Error::changed(&target.name, problem)
    })?;
    names.sort();
    // What cannot be removed now is left for the next run.
    let _ = remove_directory(path, names.iter().map(OsString::as_os_str));
    Ok(())
}

/// The files of a directory, or one of its entries that is not a file or not `is_own`.
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

/// Removes a directory with these files, the first at last.
///
/// # Errors
///
/// A directory that has others too. They are left, and so is the directory.
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

/// Whether a name is that of a temporary with this prefix and ending.
pub(super) fn is_temporary(name: &[u8], prefix: &OsStr, ending: &str) -> bool {
    name.strip_prefix(prefix.as_encoded_bytes())
        .and_then(|rest| rest.strip_suffix(ending.as_bytes()))
        .is_some_and(|random| {
            random.len() == RANDOM && random.iter().all(u8::is_ascii_alphanumeric)
        })
}
