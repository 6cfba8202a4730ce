//! Inputs that are named more than once.

use std::{collections::HashSet, path::Path};

/// The inputs that are the same file or directory as an input before them, through links too. `-` is standard input.
/// Each is looked at once.
pub fn repeated<'a>(inputs: impl IntoIterator<Item = &'a Path>) -> impl Iterator<Item = &'a Path> {
    let mut known = HashSet::new();
    inputs
        .into_iter()
        .filter(move |path| Identity::of(path).is_some_and(|identity| !known.insert(identity)))
}

/// The identity of an input, whatever its name.
#[derive(PartialEq, Eq, Hash, Debug)]
pub(crate) enum Identity {
    StandardInput,
    #[cfg(unix)]
    File {
        device: u64,
        number: u64,
    },
    #[cfg(windows)]
    File(same_file::Handle),
}

impl Identity {
    /// `None` for what is no file or directory. A pipe is not opened, because that waits for its other end; on Unix nothing
    /// is, because closing a file ends all locks that the process has on it, those of SQLite too.
    pub(crate) fn of(path: &Path) -> Option<Identity> {
        if path == Path::new("-") {
            return Some(Identity::StandardInput);
        }
        let metadata = path.metadata().ok()?;
        if !metadata.is_file() && !metadata.is_dir() {
            return None;
        }
        #[cfg(unix)]
        {
            use std::os::unix::fs::MetadataExt;
            Some(Identity::File {
                device: metadata.dev(),
                number: metadata.ino(),
            })
        }
        #[cfg(windows)]
        same_file::Handle::from_path(path).ok().map(Identity::File)
    }
}
