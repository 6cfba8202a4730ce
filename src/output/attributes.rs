//! What a new output takes over from the one that it replaces: its rights, its owner, its extended attributes.

#[cfg(unix)]
use std::ffi::OsString;
use std::{
    fs::{self, File},
    io,
    path::Path,
};

/// The rights, the owner and the extended attributes of a file or directory.
#[cfg(unix)]
#[derive(Debug)]
pub(super) struct Attributes {
    mode: u32,
    user: u32,
    group: u32,
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

    /// Gives them to a directory.
    pub(super) fn give_directory(&self, path: &Path) -> io::Result<()> {
        self.give(&File::open(path)?)
    }

    /// Gives them to a file or directory, as far as the system allows this user.
    pub(super) fn give(&self, file: &File) -> io::Result<()> {
        use std::os::unix::fs::{MetadataExt, PermissionsExt, fchown};
        let is_own = |now: &fs::Metadata| now.uid() == self.user && now.gid() == self.group;
        if !is_own(&file.metadata()?) {
            if_allowed(fchown(file, None, Some(self.group)))?;
            if_allowed(fchown(file, Some(self.user), None))?;
        }
        let now = file.metadata()?;
        let mut mode = self.mode;
        if !is_own(&now) {
            // Running as another user is not passed on.
            mode &= 0o777;
        }
        if now.gid() != self.group {
            // Another group gets what all others have.
            mode = mode & !0o70 | (mode & 0o7) << 3;
        }
        let has = now.mode() & 0o7777;
        if has != mode {
            let set = file.set_permissions(fs::Permissions::from_mode(mode));
            // Rights that stay narrower let nobody in.
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
}

/// Elsewhere a file has the rights of its directory.
#[cfg(not(unix))]
#[derive(Debug)]
pub(super) struct Attributes;

#[cfg(not(unix))]
impl Attributes {
    pub(super) fn of(_path: &Path) -> io::Result<Attributes> {
        Ok(Attributes)
    }

    pub(super) fn give(&self, _file: &File) -> io::Result<()> {
        Ok(())
    }

    /// Windows opens no directory as a file.
    pub(super) fn give_directory(&self, _path: &Path) -> io::Result<()> {
        Ok(())
    }
}

/// Whether a file or directory must not be written: no one may, or this user may not.
#[cfg(unix)]
pub(super) fn is_read_only(path: &Path) -> io::Result<bool> {
    use rustix::{
        fs::{Access, access},
        io::Errno,
    };
    use std::os::unix::fs::MetadataExt;
    // The administrator may write everything, and has to respect the bits all the same.
    if fs::metadata(path)?.mode() & 0o222 == 0 {
        return Ok(true);
    }
    match access(path, Access::WRITE_OK) {
        Err(Errno::ACCESS | Errno::PERM | Errno::ROFS) => Ok(true),
        allowed => Ok(allowed.map(|()| false)?),
    }
}

/// Whether a file must not be written. Of directories the attribute says something else.
#[cfg(not(unix))]
pub(super) fn is_read_only(path: &Path) -> io::Result<bool> {
    let metadata = fs::metadata(path)?;
    Ok(metadata.is_file() && metadata.permissions().readonly())
}

/// Passes over what the system does not allow this user, or this file system does not have.
#[cfg(unix)]
fn if_allowed(done: io::Result<()>) -> io::Result<()> {
    use io::ErrorKind::{InvalidInput, PermissionDenied, Unsupported};
    match done {
        Err(err) if matches!(err.kind(), PermissionDenied | Unsupported | InvalidInput) => Ok(()),
        done => done,
    }
}

/// Extended attributes, and the access control lists that Linux keeps in them, as far as they are about the file as such.
/// The others of Linux are about its content, as signatures are, or are the system's to give.
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
