//! Opening an index and looking up positions, games and inputs.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::Mutex,
};

use super::{
    layout::{self, GameHeader, PositionStats, rows::ROWS},
    leveldb::Database,
    replace::{holds_database, is_empty_directory},
    waves::IndexedFile,
};
use crate::{
    error::{Error, Result},
    output::{is_absent, open_again_if_replaced},
    pgn::GameResult,
    position::{Keyed, Rules, VariantChoice},
    task,
};

/// An index that is open for reading, by any number of threads.
///
/// The index is never changed, and other programs may read it at the same time. It keeps working when it is replaced or
/// removed, because its files are held open. At most half of the files that the process may open are held; an index has
/// about one file for each megabyte. If it has more, the others are opened for each use, which fails after the index
/// was removed.
///
/// Everything that is read is covered by checksums, and the checksums are verified. Damage causes an error and never an
/// incomplete answer.
#[derive(Debug)]
pub struct Index {
    path: PathBuf,
    database: Database,
    games: u64,
    variant: VariantChoice,
    /// Whether the index contains counts and no games.
    pub(super) has_counts: bool,
    inputs: Vec<IndexedFile>,
    /// A cache of the results in the entry of rows that was read last, with the number of this entry.
    last_results: Mutex<(Option<u64>, Vec<GameResult>)>,
}

impl Index {
    /// Opens an index.
    ///
    /// # Errors
    ///
    /// Returns an error if `path` is not an index, if the index has another layout, or if it cannot be read or is
    /// damaged.
    pub fn open(path: impl AsRef<Path>) -> Result<Index> {
        let path = path.as_ref();
        open_again_if_replaced(path, || Index::open_once(path))
    }

    /// Opens the index without checking whether it has been replaced in the meantime.
    fn open_once(path: &Path) -> Result<Index> {
        if !holds_database(path)? {
            return Err(no_database(path));
        }
        let mut index = Index {
            path: path.to_owned(),
            database: Database::open(path)?,
            games: 0,
            variant: VariantChoice::default(),
            has_counts: false,
            inputs: Vec::new(),
            last_results: Mutex::default(),
        };
        if index.database.get(layout::NUM_PASSES)?.is_some() {
            return Err(Error::foreign(
                path,
                "is an index of another layout (it has numPasses): make a new one with make-book",
            ));
        }
        index.games = index
            .parsed(layout::TOTAL_GAMES, layout::parse_number)?
            .ok_or_else(|| Error::foreign(path, no_total(&index.database)))?;
        index.variant = index.read_variant()?;
        index.has_counts = index.value(layout::COUNTED)?.is_some();
        index.inputs = index.read_inputs()?;
        Ok(index)
    }

    /// Returns the path of the index.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the variant of the games.
    pub fn variant(&self) -> VariantChoice {
        self.variant
    }

    /// Returns the number of games.
    pub fn game_count(&self) -> u64 {
        self.games
    }

    /// Returns an iterator over the inputs that contain games, each with the id of its first game.
    pub fn files(&self) -> impl Iterator<Item = (u64, &Path)> {
        let next = self.inputs.iter().skip(1).map(|next| Some(next.first_id));
        let with_games = self.inputs.iter().zip(next.chain([None]));
        let with_games = with_games.filter(|(file, next)| *next != Some(file.first_id));
        with_games.map(|(file, _)| (file.first_id, file.path.as_path()))
    }

    /// Reads the variant of the games.
    fn read_variant(&self) -> Result<VariantChoice> {
        let Some(name) = self.database.get(layout::VARIANT)? else {
            return Ok(VariantChoice::default());
        };
        let variant = str::from_utf8(&name)
            .ok()
            .and_then(|name| name.parse().ok());
        let unknown = || {
            let name = name.escape_ascii();
            Error::file(
                &self.path,
                format!(
                    "has games of the variant '{name}', which this version of polybook does not support"
                ),
            )
        };
        variant.ok_or_else(unknown)
    }

    /// Reads the list of inputs.
    fn read_inputs(&self) -> Result<Vec<IndexedFile>> {
        let count = self.parsed(layout::FILE_COUNT, layout::parse_number)?;
        let count: usize = count.unwrap_or(0);
        let mut inputs = Vec::new();
        for number in 0..count {
            inputs.push(self.required(&layout::file_key(number), |value| {
                let (first_id, path) = layout::parse_file_value(value)?;
                let path = path_of(path);
                Some(IndexedFile { path, first_id })
            })?);
        }
        if count == 0
            && let Some(path) = self.database.get(layout::FILE_NAME)?
        {
            let path = path_of(&path);
            inputs.push(IndexedFile { path, first_id: 0 });
        }
        Ok(inputs)
    }

    /// Returns the LevelDB database of the index.
    pub(super) fn database(&self) -> &Database {
        &self.database
    }

    /// Returns the inputs as the index lists them, including those without games.
    pub(super) fn inputs(&self) -> &[IndexedFile] {
        &self.inputs
    }

    /// Returns the ids of the games that reached a position, ascending. `key` is the position's
    /// [key](crate::position::key).
    ///
    /// # Errors
    ///
    /// Returns an error if the index cannot be read or is damaged, or if it contains counts and no games.
    pub fn games(&self, key: u64) -> Result<Vec<u32>> {
        if self.has_counts {
            let problem = "has counts and no games: moves and serve say what was played";
            return Err(Error::file(&self.path, problem));
        }
        let key = layout::position_key(key);
        let value = self.database.get(&key)?.unwrap_or_default();
        layout::parse_ids(&value).ok_or_else(|| self.malformed(&key))
    }

    /// Returns the ids of the games that reached a position, ascending. Games are found under each Polyglot key that the
    /// position can have, so an en passant right that no legal move uses does not count.
    ///
    /// # Errors
    ///
    /// Returns an error if the index cannot be read or is damaged, or if it contains counts and no games.
    pub fn games_of<P: Rules>(&self, pos: &Keyed<P>) -> Result<Vec<u32>> {
        let mut ids = Vec::new();
        for key in pos.equal_keys() {
            ids.extend(self.games(key)?);
        }
        // A game may have reached the position twice.
        ids.sort_unstable();
        ids.dedup();
        Ok(ids)
    }

    /// Returns the header of a game.
    ///
    /// # Errors
    ///
    /// Returns an error if no game has this id, or if the index cannot be read or is damaged.
    pub fn header(&self, id: u32) -> Result<GameHeader> {
        let mut header = self.record(id)?;
        if header.lacks_result() && self.has_explorer_data()? {
            header.set_result(self.counted_result(id)?);
        }
        Ok(header)
    }

    /// Returns the result with which a game is counted. The index must have explorer data.
    fn counted_result(&self, id: u32) -> Result<GameResult> {
        let (entry, row) = (u64::from(id) / ROWS, (u64::from(id) % ROWS) as usize);
        if let Some(last) = task::try_lock(&self.last_results)
            && last.0 == Some(entry)
        {
            return Ok(last.1[row]);
        }
        let rows = self.row_entry(entry)?;
        let results: Vec<GameResult> = rows.iter().map(|row| row.result).collect();
        let result = results[row];
        if let Some(mut last) = task::try_lock(&self.last_results) {
            *last = (Some(entry), results);
        }
        Ok(result)
    }

    /// Returns the record of a game, without the result with which the game is counted.
    pub(super) fn record(&self, id: u32) -> Result<GameHeader> {
        self.check_id(id)?;
        let key = layout::game_key(id);
        let record = self.database.get(&key)?;
        let header = record.and_then(GameHeader::parse);
        let mut header = header.ok_or_else(|| self.malformed(&key))?;
        if header.offset().is_none() {
            header.set_start(self.parsed(&layout::start_key(id), layout::parse_number)?);
        }
        Ok(header)
    }

    /// Returns an error if no game has this id.
    fn check_id(&self, id: u32) -> Result<()> {
        if u64::from(id) < self.games {
            return Ok(());
        }
        let problem = match self.games.checked_sub(1) {
            Some(last) => format!("has no game {id}: ids go from 0 to {last}"),
            None => format!("has no game {id}: it has no games"),
        };
        Err(Error::file(&self.path, problem))
    }

    /// Returns the statistics of a position, or `None` if no game reached it or the index was made without statistics.
    ///
    /// # Errors
    ///
    /// Returns an error if the index cannot be read or is damaged.
    pub fn stats(&self, key: u64) -> Result<Option<PositionStats>> {
        let mut stats = PositionStats::default();
        for (number, name) in PositionStats::NAMES.into_iter().enumerate() {
            let key = [&layout::position_key(key)[..], name].concat();
            let value = self.value(&key)?;
            if value.is_none() && number == 0 {
                return Ok(None);
            }
            value
                .and_then(|value| stats.read(name, &value))
                .ok_or_else(|| self.malformed(&key))?;
        }
        Ok(Some(stats))
    }

    /// Returns the input that contains a game, and the id of the input's first game.
    ///
    /// # Errors
    ///
    /// Returns an error if no game has this id.
    pub(crate) fn file_of(&self, id: u32) -> Result<(&Path, u64)> {
        self.check_id(id)?;
        let before = self
            .files()
            .take_while(|(first, _)| *first <= u64::from(id));
        let file = before.last().map(|(first, path)| (path, first));
        file.ok_or_else(|| self.malformed(layout::FILE_NAME))
    }

    /// Returns the id after the last game of the input whose first game is `first`.
    pub(super) fn end_of_file(&self, first: u64) -> u64 {
        let mut firsts = self.files().map(|(first, _)| first);
        firsts.find(|next| *next > first).unwrap_or(self.games)
    }

    /// Returns the value of a key, or `None` if the index does not contain the key.
    pub(super) fn value(&self, key: &[u8]) -> Result<Option<Vec<u8>>> {
        self.database.get(key)
    }

    /// Returns the value of a key, decoded by `parse`, or `None` if the index does not contain the key.
    ///
    /// # Errors
    ///
    /// Returns an error if `parse` returns `None`.
    fn parsed<T>(&self, key: &[u8], parse: impl FnOnce(&[u8]) -> Option<T>) -> Result<Option<T>> {
        let value = self.database.get(key)?;
        value
            .map(|value| parse(&value).ok_or_else(|| self.malformed(key)))
            .transpose()
    }

    /// Returns the value of a key, decoded by `parse`.
    ///
    /// # Errors
    ///
    /// Returns an error if the index does not contain the key, or if `parse` returns `None`.
    fn required<T>(&self, key: &[u8], parse: impl FnOnce(&[u8]) -> Option<T>) -> Result<T> {
        self.parsed(key, parse)?.ok_or_else(|| self.malformed(key))
    }

    /// Returns the error for an index in which the value of `key` is missing or malformed.
    pub(crate) fn malformed(&self, key: &[u8]) -> Error {
        let key = key.escape_ascii();
        Error::damaged(
            &self.path,
            format!(
                "is damaged: the value of '{key}' is missing or malformed; make the index again"
            ),
        )
    }
}

/// Returns the error for a path at which there is no database.
fn no_database(path: &Path) -> Error {
    let problem = if is_empty_directory(path) {
        "an empty directory, not an index: name a directory that make-book made"
    } else {
        match fs::metadata(path) {
            Ok(found) if found.is_dir() => "not an index: there is no LevelDB database in it",
            Ok(_) => {
                "a file, not an index: make one with polybook make-book FILE.pgn --leveldb DIR --explorer"
            }
            Err(err) if is_absent(&err) => "does not exist",
            Err(source) => {
                return Error::Io {
                    path: path.to_owned(),
                    doing: "open",
                    source,
                };
            }
        }
    };
    Error::foreign(path, problem)
}

/// Returns the error message for a database that does not contain the number of games.
fn no_total(database: &Database) -> &'static str {
    if database.is_empty() {
        "is an empty LevelDB database: make the index again"
    } else {
        "is a LevelDB database but no game index: total_game_count is missing"
    }
}

/// Returns the path that the index stores as `bytes`.
#[cfg(unix)]
fn path_of(bytes: &[u8]) -> PathBuf {
    use std::os::unix::ffi::OsStrExt;
    PathBuf::from(std::ffi::OsStr::from_bytes(bytes))
}

#[cfg(not(unix))]
fn path_of(bytes: &[u8]) -> PathBuf {
    PathBuf::from(String::from_utf8_lossy(bytes).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_index_is_shared_by_threads() {
        fn shared<T: Send + Sync>() {}
        shared::<Index>();
    }
}
