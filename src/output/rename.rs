//! Renames that take no name from another program's file.

use std::{fs, io, path::Path};

/// What a rename does with a name that is taken.
#[derive(Copy, Clone, Debug)]
enum Taken {
    Refuse,
    Exchange,
}

/// Renames a directory to a name that nothing has.
pub(super) fn to_new(from: &Path, to: &Path) -> io::Result<()> {
    in_one_step(from, to, Taken::Refuse).unwrap_or_else(|| {
        if to.symlink_metadata().is_ok() {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        fs::rename(from, to)
    })
}

/// Puts a directory in the place of another, which is removed. There is no moment without one where the system
/// can exchange two names.
pub(super) fn replace(made: &Path, target: &Path) -> io::Result<()> {
    match in_one_step(made, target, Taken::Exchange) {
        Some(exchanged) => {
            exchanged?;
            // The new one is in place; what is left of the old one is the next run's to remove.
            let _ = fs::remove_dir_all(made);
            Ok(())
        }
        None => replace_in_steps(made, target),
    }
}

/// Moves the old directory aside first, and back if the new one cannot take its place.
fn replace_in_steps(made: &Path, target: &Path) -> io::Result<()> {
    let mut name = made.file_name().unwrap_or_default().to_owned();
    name.push(".old");
    let aside = made.with_file_name(name);
    fs::rename(target, &aside)?;
    if let Err(err) = fs::rename(made, target) {
        fs::rename(&aside, target)?;
        return Err(err);
    }
    let _ = fs::remove_dir_all(&aside);
    Ok(())
}

/// A rename as one step of the system; `None` where the system or its file system has no such step.
#[cfg(any(target_vendor = "apple", target_os = "linux", target_os = "android"))]
fn in_one_step(from: &Path, to: &Path, taken: Taken) -> Option<io::Result<()>> {
    use rustix::{
        fs::{CWD, RenameFlags, renameat_with},
        io::Errno,
    };
    let flag = match taken {
        Taken::Refuse => RenameFlags::NOREPLACE,
        Taken::Exchange => RenameFlags::EXCHANGE,
    };
    match renameat_with(CWD, from, CWD, to, flag) {
        Err(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP) => None,
        renamed => Some(renamed.map_err(io::Error::from)),
    }
}

#[cfg(not(any(target_vendor = "apple", target_os = "linux", target_os = "android")))]
fn in_one_step(_from: &Path, _to: &Path, _taken: Taken) -> Option<io::Result<()>> {
    None
}
