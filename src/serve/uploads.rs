//! The repertoires that visitors have sent, with their files. Without a directory, a repertoire is available only to
//! the visitor who sent it, and only until the server ends. With a directory, all visitors can request it by its name.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::{Arc, Mutex},
};

use shakmaty::Color;

use super::{Refusal, ServedRepertoire, queue::Visitor};
use crate::{
    error::{At, Result},
    explore::practice::Schedule,
    storage::output::{AtomicFile, BufferedFile, TemporaryDir, is_regular_file},
    task,
};

/// The path of the route to which visitors send repertoires.
pub(super) const PATH: &str = "/repertoires";

/// The maximum number of repertoires that the server keeps for all visitors together, and for one visitor. If there are
/// more, the oldest ones are removed. A repertoire and its positions take at most about 40 MiB.
pub(super) const MAX_KEPT: [usize; 2] = [8, 4];

/// The maximum number of files in the directory for repertoires.
const MAX_FILES: usize = 200;

/// The maximum total size of the repertoires in the directory, in bytes. The server keeps all of them in memory, where
/// each takes at most about 20 times the size of its file.
const MAX_BYTES: u64 = 16 << 20;

/// The repertoires that visitors have sent.
pub(super) struct Uploads {
    /// The repertoires, each with the visitor who sent it. The newest one is at the end.
    kept: Mutex<Vec<(Visitor, Arc<ServedRepertoire>)>>,
    /// The paths of all files that visitors have stored in the directory since the server was started, and their
    /// repertoires, without secrets. The total size of the repertoires is limited by [`MAX_BYTES`], because one whose
    /// file was deleted is replaced by `None`. No other repertoire gets its path, because caches may contain responses
    /// about it.
    shared: Mutex<Vec<(PathBuf, Option<Arc<ServedRepertoire>>)>>,
    /// Whether visitors can practise shared repertoires.
    shares_practice: bool,
    /// The directory in which the files are stored, or `None` if they are removed when the server ends.
    pub(super) directory: Option<PathBuf>,
}

impl Uploads {
    /// Creates an empty collection of repertoires. Files are stored in `directory` or, if it is `None`, in temporary
    /// directories. If `shares_practice` is `true`, all visitors can practise the repertoires in `directory`.
    pub(super) fn new(directory: Option<PathBuf>, shares_practice: bool) -> Uploads {
        Uploads {
            kept: Mutex::default(),
            shared: Mutex::default(),
            shares_practice,
            directory,
        }
    }

    /// Returns the repertoires that visitors have sent since the server was started, if all visitors can request them.
    pub(super) fn shared(&self) -> Vec<Arc<ServedRepertoire>> {
        let shared = task::lock(&self.shared);
        let served = shared.iter().filter_map(|(_, served)| served.clone());
        served.collect()
    }

    /// Returns the number of repertoires that visitors have stored since the server was started. The result of
    /// [`shared`](Uploads::shared) changes only together with this number.
    pub(super) fn stored(&self) -> usize {
        task::lock(&self.shared).len()
    }

    /// Returns the repertoire with the secret `id`.
    pub(super) fn find(&self, id: &str) -> Option<Arc<ServedRepertoire>> {
        let kept = task::lock(&self.kept);
        let found = kept.iter().find(|(_, sent)| sent.id.as_deref() == Some(id));
        found.map(|(_, sent)| Arc::clone(sent))
    }

    /// Keeps a repertoire that `visitor` sent, and removes the oldest ones if there are too many, and shared ones whose
    /// files were deleted. If all clients run on this machine, they are one visitor, for which only the limit for all
    /// visitors applies.
    pub(super) fn keep(&self, visitor: Visitor, sent: Arc<ServedRepertoire>) {
        if let Some(directory) = &self.directory {
            let path = directory.join(file_name(&sent.name, sent.color));
            let served = Arc::new(sent.for_all_visitors(self.shares_practice));
            let mut shared = task::lock(&self.shared);
            for (path, served) in &mut *shared {
                // If the file cannot be examined, it may still exist.
                if matches!(is_regular_file(path), Ok(false)) {
                    *served = None;
                }
            }
            shared.push((path, Some(served)));
        }
        let mut kept = task::lock(&self.kept);
        kept.push((visitor, sent));
        let [most, most_of_one] = MAX_KEPT;
        let own = kept.iter().filter(|(other, _)| *other == visitor).count();
        if visitor != Visitor::Local && own > most_of_one {
            let oldest = kept.iter().position(|(other, _)| *other == visitor);
            oldest.map(|at| kept.remove(at));
        }
        if kept.len() > most {
            kept.remove(0);
        }
    }

    /// Writes a repertoire to a new file. The repertoire is called `name`, or a similar name if `is_taken` returns
    /// `true` for this name, if another repertoire was stored under it since the server was started, or if the
    /// directory contains the results of practising such a repertoire. Returns the path of the file, and the temporary
    /// directory that contains it unless files are stored permanently.
    ///
    /// # Errors
    ///
    /// Returns an error response if the directory contains too many or too large files, or if the file cannot be
    /// written.
    pub(super) fn store(
        &self,
        name: &str,
        color: Color,
        bytes: &[u8],
        is_taken: &dyn Fn(&str) -> bool,
    ) -> Result<(PathBuf, Option<TemporaryDir>), Refusal> {
        let temporary = match self.directory {
            Some(_) => None,
            None => Some(TemporaryDir::new_in(&std::env::temp_dir())?),
        };
        // Two requests must not choose the same name.
        let _kept = task::lock(&self.kept);
        let mut files = names(name)
            .filter(|name| !is_taken(name))
            .map(|name| file_name(&name, color));
        let path = match (&self.directory, &temporary) {
            (Some(directory), _) => {
                check_space(directory, bytes.len() as u64)?;
                let shared = task::lock(&self.shared);
                let mut paths = files.map(|file| directory.join(file));
                paths.find(|path| {
                    // The results of practice of a repertoire that was deleted belong to another visitor.
                    let is_free = !path.exists() && !Schedule::path_of(path).exists();
                    is_free && shared.iter().all(|(stored, _)| stored != path)
                })
            }
            (None, Some(temporary)) => files.next().map(|file| temporary.path().join(file)),
            (None, None) => unreachable!("without a directory, there is a temporary one"),
        };
        let path = path.expect("few of many names are taken");
        let mut out = BufferedFile::new(AtomicFile::create(&path)?);
        out.put(bytes)?;
        out.commit()?;
        Ok((path, temporary))
    }
}

/// Returns the name of the file in which a repertoire is stored. The name contains the side, which the server reads
/// from it when it is started again.
fn file_name(name: &str, color: Color) -> String {
    format!("{name}.{color}.repertoire")
}

/// Returns the side of a repertoire from the name of the file `path` in which a server has stored it. Returns `None` if
/// a server gives no such names to files.
pub fn stored_color(path: &Path) -> Option<Color> {
    let name = path.file_name()?.to_str()?;
    let (_, color) = name.strip_suffix(".repertoire")?.rsplit_once('.')?;
    color.parse().ok()
}

/// Checks that the directory for repertoires has space for another one of `size` bytes.
fn check_space(directory: &Path, mut size: u64) -> Result<(), Refusal> {
    let mut files = 1;
    for entry in fs::read_dir(directory).at(directory, "read")? {
        let path = entry.at(directory, "read")?.path();
        files += 1;
        if stored_color(&path).is_some() {
            // Another program may have deleted the file in the meantime.
            size += fs::metadata(&path).map_or(0, |file| file.len());
        }
    }
    if files > MAX_FILES || size > MAX_BYTES {
        return Err(Refusal::bad(
            "the directory for repertoires is full: remove files that you do not need",
        ));
    }
    Ok(())
}

/// Returns `name` and then similar names.
fn names(name: &str) -> impl Iterator<Item = String> {
    let others = (2..).map(move |number| format!("{name} {number}"));
    std::iter::once(name.to_owned()).chain(others)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_repertoire_does_not_inherit_results_of_practice() {
        let dir = tempfile::tempdir().unwrap();
        let uploads = Uploads::new(Some(dir.path().to_owned()), true);
        let stored = || {
            let stored = uploads.store("a", Color::White, b"1. e4 *", &|_| false);
            stored.unwrap().0
        };
        let first = stored();
        assert_eq!(first.file_name().unwrap(), "a.white.repertoire");
        let results = Schedule::path_of(&first);
        fs::write(&results, "").unwrap();
        fs::remove_file(&first).unwrap();
        let second = stored();
        assert_eq!(second.file_name().unwrap(), "a 2.white.repertoire");
        fs::remove_file(results).unwrap();
        assert_eq!(stored(), first);
    }

    #[test]
    fn stored_files_have_new_names_with_their_side() {
        let dir = tempfile::tempdir().unwrap();
        let uploads = Uploads::new(Some(dir.path().to_owned()), true);
        let store = || uploads.store("a", Color::White, b"1. e4 *", &|name| name == "a 2");
        for expected in [
            "a.white.repertoire",
            "a 3.white.repertoire",
            "a 4.white.repertoire",
        ] {
            let (path, directory) = store().unwrap();
            assert!(directory.is_none());
            assert_eq!(path.file_name().unwrap(), expected);
            assert_eq!(stored_color(&path), Some(Color::White));
        }
        for other in [
            "a.pgn",
            "a.repertoire",
            "a.red.repertoire",
            "a.white.repertoire.practice.json",
        ] {
            assert_eq!(stored_color(other.as_ref()), None);
        }
        let assert_full = || {
            let refusal = store().unwrap_err();
            assert!(
                refusal.text().contains("remove files that you do not need"),
                "{refusal:?}"
            );
        };
        // The server keeps all repertoires in memory.
        let large = dir.path().join("large.black.repertoire");
        let file = fs::File::create(&large).unwrap();
        file.set_len(MAX_BYTES - 3 * 7).unwrap();
        assert_full();
        file.set_len(MAX_BYTES - 4 * 7).unwrap();
        store().unwrap();
        fs::remove_file(large).unwrap();
        for number in 0..MAX_FILES {
            fs::write(dir.path().join(number.to_string()), "").unwrap();
        }
        assert_full();
    }
}
