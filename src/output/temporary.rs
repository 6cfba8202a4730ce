//! Temporaries beside their targets, claimed by the run that makes them.

use std::{
    ffi::{OsStr, OsString},
    fs::{self, File},
    io::{self, ErrorKind},
    path::{Path, PathBuf},
};

use same_file::Handle;
use tempfile::{Builder, NamedTempFile, TempDir};

use super::{
    claim,
    live::{Registered, Registering},
    rename,
    target::{Target, parent},
};
use crate::error::{At, Error, Result};

/// How many random characters distinguish the temporaries of a target.
const RANDOM: usize = 8;

/// The ending of an output that is not in place, and of an old one that is no more.
const SUFFIX: &str = ".part";

/// Whether a run may have left a file of this name in this temporary directory.
pub type IsOwnFile = fn(&Path, &OsStr) -> bool;

/// A temporary that belongs to this run as long as the value lives.
#[derive(Debug)]
pub(super) struct Owned<T> {
    temporary: T,
    registered: Registered,
    /// Keeps a directory claimed. An open file is its own claim.
    claim: Option<File>,
}

impl<T> Owned<T> {
    pub(super) fn get(&self) -> &T {
        &self.temporary
    }

    /// The temporary without its owner, and its claim, to be held until it has another name. It is no longer removed when
    /// the program is stopped.
    pub(super) fn into_inner(self) -> (T, Option<File>) {
        drop(self.registered);
        // Windows renames nothing that is open.
        (self.temporary, self.claim.filter(|_| cfg!(unix)))
    }
}

/// A new file beside a target.
pub(super) fn file_for(target: &Target) -> Result<Owned<NamedTempFile>> {
    loop {
        let made = new_file(target)?;
        if is_in_place(made.temporary.as_file(), made.temporary.path()) {
            return Ok(made);
        }
    }
}

/// Whether a temporary still has its name. Another run that begins before it is claimed takes it for abandoned.
fn is_in_place(file: &File, path: &Path) -> bool {
    let handle = file.try_clone().and_then(Handle::from_file);
    match (handle, Handle::from_path(path)) {
        (Ok(file), Ok(named)) => file == named,
        (_, Err(err)) => err.kind() != ErrorKind::NotFound,
        // What cannot be asked is taken for as it should be.
        (Err(_), _) => true,
    }
}

fn new_file(target: &Target) -> Result<Owned<NamedTempFile>> {
    remove_abandoned(target, None)?;
    // What replaces a file is for the eyes of its owner until it has the rights of that file.
    let mode = if target.exists() { 0o600 } else { 0o666 };
    let doing = "make a temporary file next to";
    let (file, registering) = made_beside(target, mode, doing, |builder, parent| {
        builder.tempfile_in(parent)
    })?;
    claim::file(file.as_file());
    Ok(Owned {
        registered: registering.enter(file.path())?,
        temporary: file,
        claim: None,
    })
}

/// A new directory beside a target.
pub(super) fn directory_for(target: &Target, is_own: IsOwnFile) -> Result<Owned<TempDir>> {
    loop {
        let made = new_directory(target, is_own)?;
        let path = made.temporary.path();
        let is_in_place = |claim: &File| is_in_place(claim, path);
        if path.is_dir() && made.claim.as_ref().is_none_or(is_in_place) {
            return Ok(made);
        }
    }
}

fn new_directory(target: &Target, is_own: IsOwnFile) -> Result<Owned<TempDir>> {
    remove_abandoned(target, Some(is_own))?;
    let mode = if target.exists() { 0o700 } else { 0o777 };
    let doing = "make a temporary directory next to";
    let (directory, registering) = made_beside(target, mode, doing, |builder, parent| {
        builder.tempdir_in(parent)
    })?;
    Ok(Owned {
        // Without a claim, only the name protects it.
        claim: claim::directory(directory.path()).ok(),
        registered: registering.enter(directory.path())?,
        temporary: directory,
    })
}

/// Makes a temporary under a free name beside a target, with the rights that the user's mask leaves of `mode`. It is
/// to be entered in the list.
fn made_beside<T>(
    target: &Target,
    mode: u32,
    doing: &'static str,
    make: impl FnOnce(&Builder<'_, '_>, &Path) -> io::Result<T>,
) -> Result<(T, Registering)> {
    let prefix = prefix(target.path());
    let mut builder = Builder::new();
    builder.prefix(&prefix).suffix(SUFFIX).rand_bytes(RANDOM);
    with_mode(&mut builder, mode);
    let registering = Registering::begin();
    let made = make(&builder, parent(target.path())).at(target.name(), doing)?;
    Ok((made, registering))
}

#[cfg(unix)]
fn with_mode(builder: &mut Builder<'_, '_>, mode: u32) {
    use std::os::unix::fs::PermissionsExt;
    builder.permissions(fs::Permissions::from_mode(mode));
}

/// Elsewhere a file has the rights of its directory.
#[cfg(not(unix))]
fn with_mode(_builder: &mut Builder<'_, '_>, _mode: u32) {}

/// What the names of the temporaries of a target begin with.
fn prefix(target: &Path) -> OsString {
    let mut prefix = OsString::from(".");
    prefix.push(target.file_name().unwrap_or_default());
    prefix.push(".");
    prefix
}

/// Gives its name back to an old directory that a killed run had moved aside. Answers whether there was one.
///
/// # Errors
///
/// A run that lives, or a rename that fails.
pub(super) fn restore(target: &Target) -> Result<bool> {
    let left = left_behind(target, &[rename::ASIDE]);
    let Some((path, _)) = left.into_iter().find(|(_, is_directory)| *is_directory) else {
        return Ok(false);
    };
    let _claim = claim_left_behind(target, &path, true)?;
    rename::to_new(&path, target.path()).at(target.name(), "restore")?;
    Ok(true)
}

/// Removes the temporaries that runs for the target left; an error if one of the runs lives. `is_own` is of
/// targets that are directories.
fn remove_abandoned(target: &Target, is_own: Option<IsOwnFile>) -> Result<()> {
    for (path, is_directory) in left_behind(target, &[SUFFIX, rename::ASIDE]) {
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

/// The files and directories that runs for the target left, and whether each is a directory.
fn left_behind(target: &Target, endings: &[&str]) -> Vec<(PathBuf, bool)> {
    let prefix = prefix(target.path());
    let Ok(entries) = fs::read_dir(parent(target.path())) else {
        // Making the temporary will say why.
        return Vec::new();
    };
    let mut found = Vec::new();
    for entry in entries.flatten() {
        let name = entry.file_name();
        let is_temporary = |ending: &&str| is_temporary(name.as_encoded_bytes(), &prefix, ending);
        let Ok(kind) = entry.file_type() else {
            continue;
        };
        if endings.iter().any(is_temporary) && (kind.is_file() || kind.is_dir()) {
            found.push((entry.path(), kind.is_dir()));
        }
    }
    found
}

/// Claims what a run left; `None` if it is not known whether that run lives.
fn claim_left_behind(target: &Target, path: &Path, is_directory: bool) -> Result<Option<File>> {
    match claim::left_behind(path, is_directory) {
        Ok(None) => Err(Error::Busy {
            path: target.name().into(),
        }),
        Ok(claim) => Ok(claim),
        Err(_) => Ok(None),
    }
}

/// Removes a directory that a run left, unless something else is in it.
fn remove_abandoned_directory(target: &Target, path: &Path, is_own: IsOwnFile) -> Result<()> {
    let mut names = Vec::new();
    for entry in fs::read_dir(path).at(path, "read")? {
        let entry = entry.at(path, "read")?;
        let name = entry.file_name();
        if !entry.file_type().is_ok_and(|kind| kind.is_file()) || !is_own(path, &name) {
            let problem = format!(
                "an interrupted run left {}, and another program put {} into it: move that away",
                path.display(),
                name.display()
            );
            return Err(Error::changed(target.name(), problem));
        }
        names.push(name);
    }
    names.sort();
    // What cannot be removed now is left for the next run.
    let _ = remove_directory(path, names.iter().map(OsString::as_os_str));
    Ok(())
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

/// Whether a name is that of a temporary of the target with this prefix.
fn is_temporary(name: &[u8], prefix: &OsString, ending: &str) -> bool {
    name.strip_prefix(prefix.as_encoded_bytes())
        .and_then(|rest| rest.strip_suffix(ending.as_bytes()))
        .is_some_and(|random| {
            random.len() == RANDOM && random.iter().all(u8::is_ascii_alphanumeric)
        })
}
