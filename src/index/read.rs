//! Opening an index and asking it.

use std::{
    cell::RefCell,
    collections::BTreeMap,
    fmt,
    panic::{AssertUnwindSafe, catch_unwind},
    path::{Path, PathBuf},
    rc::Rc,
};

use rusty_leveldb::{DB, Options, env::Env};

use super::{
    env::Overlay,
    layout::{self, GameHeader, GameIds, PositionStats},
    table,
};
use crate::{
    error::{Error, Result},
    position::VariantChoice,
};

/// An index that is open for reading. It is never changed, and others may read it at the same time.
pub struct Index {
    path: PathBuf,
    db: RefCell<DB>,
    games: u64,
    variant: VariantChoice,
    /// The inputs by the ids of their first games.
    files: BTreeMap<u64, PathBuf>,
}

impl fmt::Debug for Index {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Index")
            .field("path", &self.path)
            .field("games", &self.games)
            .finish_non_exhaustive()
    }
}

impl Index {
    /// Opens an index.
    ///
    /// # Errors
    ///
    /// What is no index, is one of another layout, or is damaged.
    pub fn open(path: impl AsRef<Path>) -> Result<Index> {
        let path = path.as_ref();
        if !path.join("CURRENT").is_file() {
            let problem = if path.is_dir() {
                "is no index: there is no LevelDB database in it"
            } else if path.exists() {
                "is no index but a file: name a directory that make-book --leveldb made"
            } else {
                "does not exist"
            };
            return Err(Error::file(path, problem));
        }
        let env: Rc<Box<dyn Env>> = Rc::new(Box::new(Overlay::over_disk()));
        let options = Options {
            create_if_missing: false,
            ..table::options(env)
        };
        let db = guarded(path, || DB::open(path, options))?.map_err(|err| {
            Error::file(path, format!("is damaged, or no LevelDB database: {err}"))
        })?;
        let mut index = Index {
            path: path.to_owned(),
            db: RefCell::new(db),
            games: 0,
            variant: VariantChoice::default(),
            files: BTreeMap::new(),
        };
        if index.get(layout::NUM_PASSES)?.is_some() {
            return Err(Error::file(
                path,
                "is an index of another layout (it has numPasses): make a new one with make-book --leveldb",
            ));
        }
        if let Some(name) = index.get(layout::VARIANT)? {
            let name = String::from_utf8_lossy(&name);
            index.variant = name.parse().map_err(|_| {
                let name = name.escape_debug();
                Error::file(
                    path,
                    format!("of an unknown variant, \"{name}\": a newer polybook may read it"),
                )
            })?;
        }
        index.games = index
            .get(layout::TOTAL_GAMES)?
            .as_deref()
            .and_then(layout::parse_number)
            .ok_or_else(|| {
                Error::file(
                    path,
                    "is a LevelDB database but no game index: total_game_count is missing",
                )
            })?;
        index.files = index.read_files()?;
        Ok(index)
    }

    /// Where the index is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The variant of the games.
    pub fn variant(&self) -> VariantChoice {
        self.variant
    }

    /// How many games the inputs have.
    pub fn game_count(&self) -> u64 {
        self.games
    }

    /// The inputs with the ids of their first games.
    pub fn files(&self) -> impl Iterator<Item = (u64, &Path)> {
        self.files.iter().map(|(id, path)| (*id, path.as_path()))
    }

    fn read_files(&self) -> Result<BTreeMap<u64, PathBuf>> {
        let mut files = BTreeMap::new();
        let count: usize = self
            .get(layout::FILE_COUNT)?
            .as_deref()
            .and_then(layout::parse_number)
            .unwrap_or(0);
        for number in 0..count {
            let value = self.get(&layout::file_key(number))?;
            let Some((id, path)) = value.as_deref().and_then(layout::parse_file_value) else {
                return Err(Error::file(&self.path, "is damaged: an input is missing"));
            };
            files.insert(id, path_of(path));
        }
        if let (true, Some(path)) = (files.is_empty(), self.get(layout::FILE_NAME)?) {
            files.insert(0, path_of(&path));
        }
        Ok(files)
    }

    /// The games that reached a position, by its [key](crate::position::key).
    ///
    /// # Errors
    ///
    /// A damaged index.
    pub fn games(&self, key: u64) -> Result<GameIds> {
        let value = self.get(key.to_string().as_bytes())?;
        Ok(GameIds::new(value.unwrap_or_default()))
    }

    /// What the index says of a game.
    ///
    /// # Errors
    ///
    /// An id that no game has, or a damaged index.
    pub fn header(&self, id: u32) -> Result<GameHeader> {
        if u64::from(id) >= self.games {
            return Err(Error::file(
                &self.path,
                format!(
                    "has no game {id}: ids go from 0 to {}",
                    self.games.saturating_sub(1)
                ),
            ));
        }
        self.get(&layout::game_key(id))?
            .and_then(GameHeader::parse)
            .ok_or_else(|| {
                Error::file(
                    &self.path,
                    format!("is damaged: the record of game {id} is missing"),
                )
            })
    }

    /// The statistics of a position; `None` if no game reached it or the index was made without them.
    ///
    /// # Errors
    ///
    /// A damaged index.
    pub fn stats(&self, key: u64) -> Result<Option<PositionStats>> {
        PositionStats::read(key, |key| self.get(key))
    }

    /// The input that a game stands in, and the id of the input's first game.
    pub(super) fn file_of(&self, id: u32) -> Result<(&Path, u64)> {
        self.files
            .range(..=u64::from(id))
            .next_back()
            .map(|(first, path)| (path.as_path(), *first))
            .ok_or_else(|| Error::file(&self.path, "is damaged: the PGN file is not named"))
    }

    /// The id behind the last game of the input that begins with `first`.
    pub(super) fn end_of_file(&self, first: u64) -> u64 {
        self.files
            .range(first + 1..)
            .next()
            .map_or(self.games, |(next, _)| *next)
    }

    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>> {
        let value = guarded(&self.path, || self.db.borrow_mut().get(key))?;
        Ok(value.map(|bytes| bytes.to_vec()))
    }
}

/// `rusty-leveldb` panics at some kinds of damage. To whoever asks, that is an error like others.
fn guarded<T>(path: &Path, f: impl FnOnce() -> T) -> Result<T> {
    catch_unwind(AssertUnwindSafe(f))
        .map_err(|_| Error::file(path, "is damaged: make a new one with make-book --leveldb"))
}

#[cfg(unix)]
fn path_of(bytes: &[u8]) -> PathBuf {
    use std::os::unix::ffi::OsStrExt;
    PathBuf::from(std::ffi::OsStr::from_bytes(bytes))
}

#[cfg(not(unix))]
fn path_of(bytes: &[u8]) -> PathBuf {
    PathBuf::from(String::from_utf8_lossy(bytes).into_owned())
}
