//! Temporaries beside their targets, claimed by the run that makes them.

use std::{
    ffi::OsString,
    fs::{self, File},
    io::{self, ErrorKind},
    path::Path,
};

use same_file::Handle;
use tempfile::{Builder, NamedTempFile, TempDir};

use super::{
    claim,
    live::{Registered, Registering},
    target::{Target, parent},
};
use crate::error::{At, Error, Result};

/// How many random characters tell the temporaries of a target apart.
const RANDOM: usize = 8;

const SUFFIX: &str = ".part";

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

    /// The temporary without its owner. It is no longer removed when the program is stopped.
    pub(super) fn into_inner(self) -> T {
        drop((self.registered, self.claim));
        self.temporary
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
    let (file, registering) =
        made_beside(target, 0o666, "make a file beside", |builder, parent| {
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
pub(super) fn directory_for(target: &Target) -> Result<Owned<TempDir>> {
    loop {
        let made = new_directory(target)?;
        let path = made.temporary.path();
        let is_in_place = |claim: &File| is_in_place(claim, path);
        if path.is_dir() && made.claim.as_ref().is_none_or(is_in_place) {
            return Ok(made);
        }
    }
}

fn new_directory(target: &Target) -> Result<Owned<TempDir>> {
    let doing = "make a directory beside";
    let (directory, registering) = made_beside(target, 0o777, doing, |builder, parent| {
        builder.tempdir_in(parent)
    })?;
    Ok(Owned {
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
    remove_abandoned(target)?;
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

/// Removes the temporaries that runs for the target left behind; an error if one of the runs lives.
fn remove_abandoned(target: &Target) -> Result<()> {
    let prefix = prefix(target.path());
    let Ok(entries) = fs::read_dir(parent(target.path())) else {
        // Making the temporary will say why.
        return Ok(());
    };
    for entry in entries.flatten() {
        if !is_temporary(entry.file_name().as_encoded_bytes(), &prefix) {
            continue;
        }
        let path = entry.path();
        let is_directory = entry.file_type().is_ok_and(|kind| kind.is_dir());
        if claim::remove_unless_claimed(&path, is_directory) {
            return Err(Error::file(
                target.name(),
                "another run is writing it: wait for that run, or name another output",
            ));
        }
    }
    Ok(())
}

/// Whether a name is that of a temporary of the target with this prefix.
fn is_temporary(name: &[u8], prefix: &OsString) -> bool {
    name.strip_prefix(prefix.as_encoded_bytes())
        .and_then(|rest| rest.strip_suffix(SUFFIX.as_bytes()))
        .is_some_and(|random| {
            random.len() == RANDOM && random.iter().all(u8::is_ascii_alphanumeric)
        })
}
