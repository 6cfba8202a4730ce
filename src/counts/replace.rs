//! Telling counts from anything else at their target, before they are replaced.

use std::{fs, path::Path};

use super::{
    about::Sidecar,
    layout::{ENDING, SIDECAR},
};
use crate::error::{Error, Result};

/// Whether a directory holds counts: a sidecar, or files that are named like parts, of whatever program.
pub fn is_counts(path: &Path) -> bool {
    let Ok(entries) = fs::read_dir(path) else {
        return false;
    };
    entries.flatten().any(|entry| {
        let name = entry.file_name();
        let name = name.to_string_lossy();
        name == SIDECAR || name.ends_with(ENDING)
    })
}

/// Whether counts may be made where something is already: an empty directory always, counts of polybook with
/// `force`.
///
/// # Errors
///
/// [`Error::Exists`] for counts without `force`, [`Error::File`] for anything else.
pub fn check_replaceable(path: &Path, force: bool) -> Result<()> {
    if fs::read_dir(path).is_ok_and(|mut entries| entries.next().is_none()) {
        return Ok(());
    }
    let refused = |problem: &str| Err(Error::file(path, problem));
    if !is_own(path) {
        return refused("exists and is not a directory of polybook's counts: name another");
    }
    if force {
        return Ok(());
    }
    Err(Error::exists(path))
}

/// Whether a directory has a sidecar, and no file that is not of counts.
fn is_own(path: &Path) -> bool {
    let Ok(entries) = fs::read_dir(path) else {
        return false;
    };
    let is_of_counts = |name: &str| name == SIDECAR || name.ends_with(ENDING);
    let all_are = entries
        .map(|entry| entry.map(|entry| is_of_counts(&entry.file_name().to_string_lossy())))
        .all(|is| is.unwrap_or(false));
    all_are && matches!(Sidecar::read(path), Ok(Some(_)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::counts::About;

    #[test]
    fn only_counts_are_replaced_and_only_by_force() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path();
        check_replaceable(path, false).unwrap();
        assert!(!is_counts(path));
        Sidecar::new(About::default(), Vec::new(), None)
            .write(path, path)
            .unwrap();
        assert!(is_counts(path));
        assert!(matches!(
            check_replaceable(path, false),
            Err(Error::Exists { .. })
        ));
        check_replaceable(path, true).unwrap();
        fs::write(path.join("thesis.txt"), "precious").unwrap();
        assert!(check_replaceable(path, true).is_err());
        let file = path.join("thesis.txt");
        assert!(check_replaceable(&file, true).is_err() && !is_counts(&file));
    }
}
