//! Opening an index and looking up positions, games and inputs.

use std::{
    path::{Path, PathBuf},
    str::FromStr,
    sync::Mutex,
};

use super::{
    entry_batches::IndexedFile,
    layout::{self, GameHeader, GameOffset, PositionStats},
    replace::holds_database,
    store::{self, Contents, ListKey, NameReader, names::NAMES_PER_ENTRY},
};
#[cfg(feature = "parquet")]
use crate::counts::CountsDirectory;
use crate::{
    error::{At, Error, Result},
    kind::FileKind,
    leveldb::Database,
    position::{Keyed, Rules, Variant, VariantChoice},
    storage::output::{is_empty_directory, metadata_if_any, open_again_if_replaced},
};

/// The kind of an index. It determines what the index contains and which functions can read it. Every index is a
/// LevelDB database.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum IndexKind {
    /// The index that polyglot's LevelDB fork defined, which other front-ends read: the games that reached each
    /// position. `make-book --leveldb` writes it.
    Leveldb,
    /// The [explorer](crate::explorer)'s index of games: the moves that were played in each position, and what filters
    /// need to know about the games. `make-book --explorer` writes it.
    Explorer,
    /// The explorer's index of counts: the results of each move by speed, rating group and month, without games.
    /// `make-book --explorer` writes it if the inputs are [counts](crate::counts).
    Counts,
}

impl IndexKind {
    /// Returns `true` if an [`Explorer`](crate::explorer::Explorer) can open an index of this kind.
    pub fn is_of_explorer(self) -> bool {
        self != IndexKind::Leveldb
    }
}

/// An index of games by position, open for reading. Any number of threads can use it at the same time.
///
/// Reading never changes the index. An open index keeps working after another program replaces or removes it, because
/// the index keeps its files open. An index with very many files is an exception: it keeps open at most half as many
/// files as the process may open. The other files are opened for each read, which fails after the index is removed.
///
/// All data is protected by checksums, which are verified on reading. Damaged data causes an error, never an incomplete
/// answer.
#[derive(Debug)]
pub struct Index {
    path: PathBuf,
    database: Database,
    games: u64,
    variant: VariantChoice,
    kind: IndexKind,
    inputs: Vec<IndexedFile>,
    /// The description of an explorer's index of games, or `None` for other kinds of indexes.
    contents: Option<Contents>,
    /// The names of players and events; empty for other kinds of indexes than the explorer's index of games.
    names: NameReader,
    /// A cache of the entry of game rows that was read last, with the number of the entry.
    pub(super) last_rows: Mutex<Option<(u64, Vec<u8>)>>,
}

impl Index {
    /// Opens the index at `path`.
    ///
    /// # Errors
    ///
    /// Returns an error if there is no index at `path`, if the index has an unknown layout, or if it cannot be read or
    /// is damaged.
    pub fn open(path: impl AsRef<Path>) -> Result<Index> {
        let path = path.as_ref();
        open_again_if_replaced(path, || Index::open_once(path))
    }

    /// Opens the index at `path`. Another program may replace the index while this function reads it. The caller must
    /// check whether this has happened, and if so, call the function again.
    fn open_once(path: &Path) -> Result<Index> {
        if !holds_database(path)? {
            return Err(no_database(path));
        }
        let mut index = Index {
            path: path.to_owned(),
            database: Database::open(path)?,
            games: 0,
            variant: VariantChoice::default(),
            kind: IndexKind::Leveldb,
            inputs: Vec::new(),
            contents: None,
            names: NameReader::new(0),
            last_rows: Mutex::default(),
        };
        if index.database.get(layout::NUM_PASSES)?.is_some() {
            return Err(Error::foreign(
                path,
                "this index has an old layout (it contains numPasses): make the index again with make-book",
            ));
        }
        index.games = index
            .parsed(layout::TOTAL_GAMES, layout::parse_number)?
            .ok_or_else(|| Error::foreign(path, no_total(&index.database)))?;
        index.variant = index.read_variant()?;
        index.kind = index.read_kind()?;
        if index.kind == IndexKind::Explorer {
            let contents = index.required(store::CONTENTS, Contents::parse)?;
            index.names = NameReader::new(contents.names);
            index.contents = Some(contents);
        }
        index.inputs = index.read_inputs()?;
        Ok(index)
    }

    /// Returns the path of the index.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the kind of the index.
    pub fn kind(&self) -> IndexKind {
        self.kind
    }

    /// Returns the description that an explorer's index of games stores about itself, or `None` if this index is of
    /// another kind.
    pub(crate) fn contents(&self) -> Option<Contents> {
        self.contents
    }

    /// Returns the name of a player or an event. `number` is the number that the index has assigned to the name. The
    /// index must be an explorer's index of games.
    ///
    /// # Errors
    ///
    /// Returns an error if the name cannot be read or is malformed, or if no name has this number.
    pub(crate) fn name(&self, number: u32) -> Result<Box<str>> {
        let read = |entry, names| self.name_entry(entry, names);
        let name = self.names.name(number, read)?;
        name.ok_or_else(|| self.malformed(&store::names_key(number / NAMES_PER_ENTRY)))
    }

    /// Calls `f` with the number and the text of every player and event name in the index, in ascending order of
    /// numbers. Reads the names in small portions, so that only a few are in memory at a time.
    pub(crate) fn for_each_name(&self, f: impl FnMut(u32, &str)) -> Result<()> {
        self.names
            .for_each(|entry, names| self.name_entry(entry, names), f)
    }

    /// Returns the variant of the games in the index.
    pub fn variant(&self) -> VariantChoice {
        self.variant
    }

    /// Returns the number of games in the index.
    pub fn game_count(&self) -> u64 {
        self.games
    }

    /// Returns an iterator over the input files from which the index was made. Each item contains the id of the file's
    /// first game, and the path of the file. Files without games are left out.
    pub fn files(&self) -> impl Iterator<Item = (u64, &Path)> {
        let with_games = self.inputs_with_games();
        with_games.map(|file| (file.first_id, file.path.as_path()))
    }

    /// Returns an iterator over the input files from which the index was made, except files without games.
    pub(crate) fn inputs_with_games(&self) -> impl Iterator<Item = &IndexedFile> {
        let next = self.inputs.iter().skip(1).map(|next| Some(next.first_id));
        let with_games = self.inputs.iter().zip(next.chain([None]));
        let with_games = with_games.filter(|(file, next)| *next != Some(file.first_id));
        with_games.map(|(file, _)| file)
    }

    /// Determines the kind of the index from its entries.
    ///
    /// # Errors
    ///
    /// Returns an error if the index cannot be read, or if it was made by a version of polybook with a different
    /// layout.
    fn read_kind(&self) -> Result<IndexKind> {
        if self.value(store::COUNTED)?.is_some() {
            return Ok(IndexKind::Counts);
        }
        match self.value(store::CONTENTS)? {
            None => Ok(IndexKind::Leveldb),
            Some(value) if store::Contents::is_of_other_version(&value) => {
                let problem = "this index was made by another version of polybook: make the index again with make-book \
                               --explorer";
                Err(Error::file(self.path(), problem))
            }
            Some(_) => Ok(IndexKind::Explorer),
        }
    }

    /// Reads the variant of the games in the index. An index that stores no variant contains standard chess.
    fn read_variant(&self) -> Result<VariantChoice> {
        Ok(self.variant_at(layout::VARIANT)?.unwrap_or_default())
    }

    /// Reads the variant that the index stores under the LevelDB key `key`. Returns `None` if the index does not
    /// contain the key.
    ///
    /// # Errors
    ///
    /// Returns an error if the index cannot be read, or if this version of polybook does not support the variant.
    fn variant_at<T: FromStr>(&self, key: &[u8]) -> Result<Option<T>> {
        let Some(name) = self.database.get(key)? else {
            return Ok(None);
        };
        let variant = str::from_utf8(&name)
            .ok()
            .and_then(|name| name.parse().ok());
        let unknown = || {
            let name = name.escape_ascii();
            Error::file(
                &self.path,
                format!(
                    "this index contains games of the variant '{name}', which this version of polybook does not \
                     support"
                ),
            )
        };
        variant.ok_or_else(unknown).map(Some)
    }

    /// Reads the descriptions of all input files from which the index was made.
    fn read_inputs(&self) -> Result<Vec<IndexedFile>> {
        let count = self.parsed(layout::FILE_COUNT, layout::parse_number)?;
        let count: usize = count.unwrap_or(0);
        let mut inputs = Vec::new();
        for number in 0..count {
            inputs.push(self.required(&layout::file_key(number), |value| {
                let (first_id, path) = layout::parse_file_value(value)?;
                let path = path_of(path);
                Some(IndexedFile {
                    path,
                    first_id,
                    untagged: Variant::Standard,
                    options: String::new(),
                })
            })?);
        }
        if count == 0
            && let Some(path) = self.database.get(layout::FILE_NAME)?
        {
            let path = path_of(&path);
            inputs.push(IndexedFile {
                path,
                first_id: 0,
                untagged: Variant::Standard,
                options: String::new(),
            });
        }
        for (number, input) in inputs.iter_mut().enumerate() {
            if let Some(variant) = self.variant_at(&layout::untagged_key(number))? {
                input.untagged = variant;
            }
            let options = self.parsed(&layout::options_key(number), |text| {
                String::from_utf8(text.to_vec()).ok()
            })?;
            input.options = options.unwrap_or_default();
        }
        Ok(inputs)
    }

    /// Returns the LevelDB database of the index.
    pub(super) fn database(&self) -> &Database {
        &self.database
    }

    /// Returns all input files from which the index was made, including those without games.
    pub(super) fn inputs(&self) -> &[IndexedFile] {
        &self.inputs
    }

    /// Returns the ids of the games that reached a position, in ascending order. `key` is the position's [Polyglot hash
    /// key](crate::position::key).
    ///
    /// # Errors
    ///
    /// Returns an error if the index cannot be read or is damaged, or if it is an explorer's index, which cannot be
    /// searched by Polyglot keys.
    pub fn games(&self, key: u64) -> Result<Vec<u32>> {
        if self.kind != IndexKind::Leveldb {
            let problem = "this is an explorer's index, which does not list positions by key: use an index made with \
                           --leveldb";
            return Err(Error::file(&self.path, problem));
        }
        let key = layout::position_key(key);
        let value = self.database.get(&key)?.unwrap_or_default();
        layout::parse_ids(&value).ok_or_else(|| self.malformed(&key))
    }

    /// Returns the ids of the games that reached a position, in ascending order.
    ///
    /// Positions that differ only in an en passant right that no legal move uses are equal. In an index made by
    /// `make-book --leveldb`, such positions have different keys. The function returns the games of all these keys.
    ///
    /// # Errors
    ///
    /// Returns an error if the index cannot be read or is damaged, or if it contains counts instead of games.
    pub fn games_of<P: Rules>(&self, pos: &Keyed<P>) -> Result<Vec<u32>> {
        if self.kind == IndexKind::Counts {
            let problem = "this index contains counts instead of games: moves and serve show the results of moves";
            return Err(Error::file(&self.path, problem));
        }
        if let Some(contents) = self.contents {
            let variant = self.variant.only().unwrap_or(pos.position().rules());
            let subject = ListKey::position(variant, pos.identity());
            return self.list_ids(contents.paging, subject);
        }
        let mut ids = Vec::new();
        for key in pos.equal_keys() {
            ids.extend(self.games(key)?);
        }
        // A game may have reached the position twice.
        ids.sort_unstable();
        ids.dedup();
        Ok(ids)
    }

    /// Returns the header of game `id`: its names, ratings, date and other tags.
    ///
    /// # Errors
    ///
    /// Returns an error if no game has this id, or if the index cannot be read or is damaged.
    pub fn header(&self, id: u32) -> Result<GameHeader> {
        self.check_id(id)?;
        if self.kind() == IndexKind::Explorer {
            return self.stored_header(id);
        }
        self.required(&layout::game_key(id), |record| {
            GameHeader::parse(record.to_vec())
        })
    }

    /// Returns the offset at which game `id` begins in its PGN file. Returns `None` for a game without tags in an
    /// index made by `make-book --leveldb`, because such an index does not store the offset.
    pub(super) fn offset_of_game(&self, id: u32) -> Result<Option<GameOffset>> {
        if self.kind() == IndexKind::Explorer {
            self.check_id(id)?;
            return self.with_details(id, |details| details.place).map(Some);
        }
        Ok(self.header(id)?.offset_of_text())
    }

    /// Checks that the index contains a game with the id `id`.
    ///
    /// # Errors
    ///
    /// Returns an error that names the valid ids if no game has this id.
    fn check_id(&self, id: u32) -> Result<()> {
        if u64::from(id) < self.games {
            return Ok(());
        }
        let problem = match self.games.checked_sub(1) {
            Some(last) => {
                format!("the index contains no game with the id {id}: use an id from 0 to {last}")
            }
            None => {
                format!("the index contains no game with the id {id}, because it contains no games")
            }
        };
        Err(Error::file(&self.path, problem))
    }

    /// Returns the statistics of a position: the number of games, the results and the moves. `key` is the position's
    /// Polyglot hash key. Returns `None` if no game reached the position, or if the index was made without
    /// `--index-stats`.
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

    /// Returns the absolute path of the PGN file from which a game was indexed, or `-` for standard input.
    ///
    /// # Errors
    ///
    /// Returns an error if no game has this id.
    pub fn path_of_game(&self, id: u32) -> Result<&Path> {
        Ok(self.file_of(id)?.0)
    }

    /// Finds the input file that contains game `id`. Returns the path of the file and the id of the first game in the
    /// file.
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

    /// Returns the end (exclusive) of the range of game ids of an input file. `first` is the id of the first game in
    /// this file.
    pub(super) fn end_of_file(&self, first: u64) -> u64 {
        let mut firsts = self.files().map(|(first, _)| first);
        firsts.find(|next| *next > first).unwrap_or(self.games)
    }

    /// Returns the value of a LevelDB key, or `None` if the index does not contain the key.
    pub(super) fn value(&self, key: &[u8]) -> Result<Option<Vec<u8>>> {
        self.database.get(key)
    }

    /// Returns the value of a LevelDB key, decoded by `parse`. Returns `None` if the index does not contain the key.
    ///
    /// # Errors
    ///
    /// Returns an error if the index cannot be read, or if `parse` returns `None`.
    fn parsed<T>(&self, key: &[u8], parse: impl FnOnce(&[u8]) -> Option<T>) -> Result<Option<T>> {
        let value = self.database.get(key)?;
        value
            .map(|value| parse(&value).ok_or_else(|| self.malformed(key)))
            .transpose()
    }

    /// Returns the value of a LevelDB key that the index must contain, decoded by `parse`.
    ///
    /// # Errors
    ///
    /// Returns an error if the index cannot be read, if it does not contain the key, or if `parse` returns `None`.
    fn required<T>(&self, key: &[u8], parse: impl FnOnce(&[u8]) -> Option<T>) -> Result<T> {
        self.parsed(key, parse)?.ok_or_else(|| self.malformed(key))
    }

    /// Creates the error for a LevelDB key whose value is missing or malformed.
    pub(crate) fn malformed(&self, key: &[u8]) -> Error {
        let key = key.escape_ascii();
        Error::damaged(
            &self.path,
            format!(
                "the index is damaged: the value of '{key}' is missing or malformed; make the index again"
            ),
        )
    }
}

/// Creates the error for a path at which there is no LevelDB database. The message says what is at the path, such as an
/// empty directory or a PGN file.
fn no_database(path: &Path) -> Error {
    let why = || -> Result<Error> {
        if is_empty_directory(path)? {
            let problem =
                "this is an empty directory, not an index: give an index that make-book made";
            return Ok(Error::foreign(path, problem));
        }
        let Some(found) = metadata_if_any(path).at(path, "open")? else {
            return Ok(Error::foreign(path, "this index does not exist"));
        };
        if found.is_dir() {
            #[cfg(feature = "parquet")]
            if let Some(advice) = CountsDirectory::index_advice(path) {
                return Ok(Error::foreign(path, advice));
            }
            let problem = "this directory is not an index: give an index that make-book made";
            return Ok(Error::foreign(path, problem));
        }
        // Only regular files are read; reading from a pipe could block.
        let start = match found.is_file() {
            true => FileKind::start_of_file(path).at(path, "read")?,
            false => Vec::new(),
        };
        let how = "make an index with polybook make-book FILE.pgn --explorer DIR";
        let problem = FileKind::problem(path, &start, "an index", how);
        Ok(Error::foreign(path, problem))
    };
    why().unwrap_or_else(|err| err)
}

/// Returns the error message for a LevelDB database that does not contain the number of games, and is therefore not an
/// index. There is one message for an empty database, and another one for a database of another program.
fn no_total(database: &Database) -> &'static str {
    if database.is_empty() {
        "this index is empty: make the index again"
    } else {
        "this LevelDB database is not an index of games, because total_game_count is missing: give an index that \
         make-book made"
    }
}

/// Converts the bytes of a path, as stored in an index, to a path.
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
