//! Deciding whether something at the target of counts may be replaced.

use std::{
    ffi::{OsStr, OsString},
    fs,
    path::Path,
};

use super::{
    about::Sidecar,
    layout::{SIDECAR, STARTS, is_part_name},
};
use crate::{
    error::{Error, Result},
    output::own_files,
};

/// Checks that new counts may replace what is at `path`. An empty directory may be replaced always, and polybook's
/// counts with `force`. Returns the files of the counts.
///
/// # Errors
///
/// Returns [`Error::Exists`] for counts without `force`, and [`Error::foreign`] for anything else, such as a directory
/// that contains a file which the sidecar does not list.
pub(super) fn check_replaceable(path: &Path, force: bool) -> Result<Vec<OsString>> {
    if fs::read_dir(path).is_ok_and(|mut entries| entries.next().is_none()) {
        return Ok(Vec::new());
    }
    let refused = |problem: &str| Err(Error::foreign(path, problem));
    let Ok(Some(sidecar)) = Sidecar::read(path) else {
        return refused("exists and is not a directory of polybook's counts: name another");
    };
    match own_files(path, |name| name == SIDECAR || sidecar.lists(name))? {
        Err(other) => refused(&format!(
            "exists and has {} in it, which {SIDECAR} does not list: move that away, or name another directory",
            other.display()
        )),
        Ok(files) if force => Ok(files),
        Ok(_) => Err(Error::exists(path)),
    }
}

/// Returns `true` if an interrupted run that wrote counts may have left this file.
pub(super) fn is_own_file(directory: &Path, name: &OsStr) -> bool {
    let is_listed = || matches!(Sidecar::read(directory), Ok(Some(sidecar)) if sidecar.lists(name));
    name == SIDECAR || name == STARTS || is_part_name(name) || is_listed()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::counts::CountsOrigin;

    #[test]
    fn only_counts_are_replaced_and_only_by_force() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path();
        check_replaceable(path, false).unwrap();
        Sidecar::new(CountsOrigin::default(), Vec::new(), None)
            .write(path, path)
            .unwrap();
        assert!(matches!(
            check_replaceable(path, false),
            Err(Error::Exists { .. })
        ));
        check_replaceable(path, true).unwrap();
        for foreign in ["thesis.txt", "mine.parquet", "part-000.parquet"] {
            fs::write(path.join(foreign), "precious").unwrap();
            let err = check_replaceable(path, true).unwrap_err().to_string();
            assert!(err.contains(foreign), "{err}");
            fs::remove_file(path.join(foreign)).unwrap();
        }
        fs::write(path.join("thesis.txt"), "precious").unwrap();
        let file = path.join("thesis.txt");
        assert!(check_replaceable(&file, true).is_err());
    }
}
