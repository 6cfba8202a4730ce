//! The attributes that a new output inherits from the output that it replaces: access rights, owner and extended
//! attributes.

#[cfg(unix)]
use std::ffi::OsString;
use std::{
    fs::{self, File},
    io,
    path::Path,
};

/// The access rights, the owner, the group and the extended attributes of a file or directory.
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

/// The attributes of a file on systems other than Unix. The type is empty, because a file on these systems inherits its
/// access rights from its directory.
#[cfg(not(unix))]
#[derive(Debug)]
pub(super) struct Attributes;

#[cfg(not(unix))]
impl Attributes {
    pub(super) fn of(_path: &Path) -> io::Result<Attributes> {
        Ok(Attributes)
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
pub(super) fn is_read_only(path: &Path) -> io::Result<bool> {
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
pub(super) fn is_read_only(path: &Path) -> io::Result<bool> {
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

#[cfg(all(test, unix))]
mod tests {
    use super::*;

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
