//! What a new output takes over from the one that it replaces: its rights, its owner, its extended attributes.

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
    extended: Vec<(Vec<u8>, Vec<u8>)>,
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
            extended: extended::of(path)?,
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
            extended::set(file, name, value)?;
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
pub(super) fn is_read_only(path: &Path) -> bool {
    use rustix::{
        fs::{Access, access},
        io::Errno,
    };
    use std::os::unix::fs::MetadataExt;
    // The administrator may write everything, and has to respect the bits all the same.
    let is_for_all = fs::metadata(path).is_ok_and(|metadata| metadata.mode() & 0o222 == 0);
    let denied = [Errno::ACCESS, Errno::PERM, Errno::ROFS];
    is_for_all || access(path, Access::WRITE_OK).is_err_and(|err| denied.contains(&err))
}

/// Whether a file must not be written. Of directories the attribute says something else.
#[cfg(not(unix))]
pub(super) fn is_read_only(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|metadata| metadata.is_file() && metadata.permissions().readonly())
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

/// Extended attributes, and the access control lists that Linux keeps in them.
#[cfg(any(target_vendor = "apple", target_os = "linux", target_os = "android"))]
mod extended {
    use std::{ffi::OsStr, fs::File, io, os::unix::ffi::OsStrExt, path::Path};

    use rustix::{
        fs::{XattrFlags, fsetxattr, getxattr, getxattr_query, listxattr, listxattr_query},
        io::Errno,
    };

    pub(super) fn of(path: &Path) -> io::Result<Vec<(Vec<u8>, Vec<u8>)>> {
        let mut names = match listxattr_query(path) {
            // Without room, the second call would answer again how much is needed.
            Err(Errno::NOTSUP | Errno::NOSYS) | Ok(0) => return Ok(Vec::new()),
            length => vec![0; length?],
        };
        let length = listxattr(path, &mut names[..])?;
        let mut found = Vec::new();
        for name in names[..length]
            .split(|byte| *byte == 0)
            .filter(|name| is_kept(name))
        {
            let as_str = OsStr::from_bytes(name);
            let mut value = vec![0; getxattr_query(path, as_str)?];
            let length = getxattr(path, as_str, &mut value[..])?;
            value.truncate(length);
            found.push((name.to_vec(), value));
        }
        Ok(found)
    }

    pub(super) fn set(file: &File, name: &[u8], value: &[u8]) -> io::Result<()> {
        let set = fsetxattr(file, OsStr::from_bytes(name), value, XattrFlags::empty());
        super::if_allowed(set.map_err(io::Error::from))
    }

    /// Whether an attribute is about the file as such. The others of Linux are about its content, as signatures are, or
    /// are the system's to give.
    fn is_kept(name: &[u8]) -> bool {
        let kinds = [&b"user."[..], b"system.posix_acl_"];
        let all = cfg!(target_vendor = "apple") && !name.is_empty();
        all || kinds.iter().any(|kind| name.starts_with(kind))
    }
}

#[cfg(all(
    unix,
    not(any(target_vendor = "apple", target_os = "linux", target_os = "android"))
))]
mod extended {
    use std::{fs::File, io, path::Path};

    pub(super) fn of(_path: &Path) -> io::Result<Vec<(Vec<u8>, Vec<u8>)>> {
        Ok(Vec::new())
    }

    pub(super) fn set(_file: &File, _name: &[u8], _value: &[u8]) -> io::Result<()> {
        Ok(())
    }
}
