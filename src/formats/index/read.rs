//! Opens an index, looks up positions, games and inputs, and reads the PGN text of a game from the input file.

use std::{
    fs::File,
    io::{self, BufReader, Read, Seek, SeekFrom},
    path::{Path, PathBuf},
    str::FromStr,
    sync::{Arc, Mutex},
};

use rustc_hash::FxHashMap;
use shakmaty::variant::VariantPosition;

use super::write::holds_database;
#[cfg(feature = "parquet")]
use crate::formats::counts::CountsDirectory;
use crate::{
    chess::position::{Keyed, PieceLetters, Rules, Variant, VariantChoice},
    error::{Advice, At, Diagnosis, Error, Result},
    formats::{
        explorer_index::{
            self, COUNTED, COUNTS, CountedContents, GameRow, IndexDescription, LISTS, ListKey,
            NameReader, Paging, chunk_key,
            count_pages::{CountedList, find_counts},
            game_details::{GAMES_PER_ENTRY, GameDetails, GameText},
            game_rows::{ROW_SIZE, ROWS_PER_ENTRY},
            lists::{ChunkedList, ITEMS_PER_CHUNK, List, find_list, for_each_list},
            names::{NAMES_PER_ENTRY, parse_names},
            names_key, page_key, period_key,
            periods::{PeriodResults, take_years},
            results::{Period, YearMonths},
        },
        fork_index::{
            entry_batches::IndexedFile,
            layout::{self, GameHeader, GameOffset, PositionStats},
        },
        leveldb::Database,
    },
    games::pgn::{Cutter, GameReader, Input, StreamOptions, Token},
    kind::FileKind,
    storage::output::{is_empty_directory, metadata_if_any, open_again_if_replaced},
    task,
};

/// The kind of an index. The kind determines what the index contains and which functions can read it. Every index is a
/// LevelDB database.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum IndexKind {
    /// An index in the format of polyglot's LevelDB fork, which other front-ends can read. It contains the games that
    /// reached each position. Made by `make-book --leveldb`.
    Leveldb,
    /// An index for the [explorer](crate::explore::explorer) that contains games: the moves that were played in each
    /// position, and the data that filters need, such as ratings. Made by `make-book --explorer` from games.
    Explorer,
    /// An index for the explorer that contains no games, but only the results of each move by speed, rating group and
    /// month. Made by `make-book --explorer` from [counts directories](crate::formats::counts).
    Counts,
}

impl IndexKind {
    /// Returns `true` if an [`Explorer`](crate::explore::explorer::Explorer) can open an index of this kind.
    pub fn is_of_explorer(self) -> bool {
        self != IndexKind::Leveldb
    }
}

/// An index of games by position, open for reading. Several threads can use it at the same time.
///
/// Reading never changes the index. An open index keeps working after another program replaces or removes it, because
/// its files stay open. An index with very many files is an exception: it keeps open at most half as many files as the
/// process may open. The other files are opened for each read, which fails after the index has been replaced or
/// removed.
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
    /// The description of the index if it is an explorer index with games, otherwise `None`.
    contents: Option<IndexDescription>,
    /// A reader of the names of players and events. The reader has no names unless the index is an explorer index with
    /// games.
    names: NameReader,
    /// A cache of the last entry of game rows that was read: its number and its bytes.
    pub(super) last_rows: Mutex<Option<(u64, Vec<u8>)>>,
    /// A cache of the games that reached a position after one move, by the position's identity.
    first_moves: Mutex<FxHashMap<u64, Arc<[u32]>>>,
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

    /// Opens the index at `path`. The caller must check whether another program replaced the index meanwhile and, if
    /// so, call the function again.
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
            first_moves: Mutex::default(),
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
            let contents = index.required(explorer_index::CONTENTS, IndexDescription::parse)?;
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

    /// Returns the description of the index if it is an explorer index with games, otherwise `None`.
    pub(crate) fn contents(&self) -> Option<IndexDescription> {
        self.contents
    }

    /// Returns the name of a player or an event. `number` is the number that the index has assigned to the name. This
    /// index must be an explorer index with games.
    ///
    /// # Errors
    ///
    /// Returns an error if the name cannot be read or is malformed, or if no name has this number.
    pub(crate) fn name(&self, number: u32) -> Result<Box<str>> {
        let read = |entry, names| self.name_entry(entry, names);
        let name = self.names.name(number, read)?;
        name.ok_or_else(|| self.malformed(&explorer_index::names_key(number / NAMES_PER_ENTRY)))
    }

    /// Calls `f` with the number and the text of every player and event name in the index, in ascending order of
    /// numbers. Only a few names are in memory at a time.
    pub(crate) fn for_each_name(&self, f: impl FnMut(u32, &str)) -> Result<()> {
        self.names
            .for_each(|entry, names| self.name_entry(entry, names), f)
    }

    /// Returns the variant of the games in the index.
    pub fn variant(&self) -> VariantChoice {
        self.variant
    }

    /// Checks that a lookup of positions of the variant `asked` in an index of polyglot's fork cannot find positions of
    /// another variant. Position keys include the number that the Polyglot format assigns to a variant, so variants
    /// whose [number](Variant::number) is 0 have the same keys.
    ///
    /// # Errors
    ///
    /// Returns an error if such a lookup could find positions of another variant.
    pub fn refuse_other_variant(&self, asked: Variant) -> Result<()> {
        match self.variant.only() {
            Some(own) => asked.check_file(self.path(), &[own.name().to_owned()]),
            None if asked.number().is_none_or(|number| number == 0) => {
                let problem = "this index mixes several variants, whose positions may have the same key: make an \
                               explorer's index, which distinguishes variants";
                Err(Error::file(self.path(), problem))
            }
            None => Ok(()),
        }
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
        if self.value(explorer_index::COUNTED)?.is_some() {
            return Ok(IndexKind::Counts);
        }
        match self.value(explorer_index::CONTENTS)? {
            None => Ok(IndexKind::Leveldb),
            Some(value) if explorer_index::IndexDescription::is_of_other_version(&value) => {
                let problem = Diagnosis::new("this index was made by another version of polybook")
                    .advise(
                        Advice::option("make the index again with {}", "explorer")
                            .of_command("make-book"),
                    );
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
    /// key](crate::chess::position::key).
    ///
    /// # Errors
    ///
    /// Returns an error if the index cannot be read or is damaged, or if it is an explorer index, which cannot be
    /// searched by Polyglot keys.
    pub fn games(&self, key: u64) -> Result<Vec<u32>> {
        if self.kind != IndexKind::Leveldb {
            let problem =
                Diagnosis::new("this is an explorer's index, which does not list positions by key")
                    .advise(
                        Advice::option("use an index made with {}", "leveldb")
                            .of_command("make-book"),
                    );
            return Err(Error::file(&self.path, problem));
        }
        let key = layout::position_key(key);
        let value = self.database.get(&key)?.unwrap_or_default();
        layout::parse_ids(&value).ok_or_else(|| self.malformed(&key))
    }

    /// Returns the ids of the games that reached a position, in ascending order.
    ///
    /// Positions that differ only in an en passant right that no legal move uses are treated as equal. In an index made
    /// by `make-book --leveldb`, such positions have different keys, and this function returns the games of all these
    /// keys.
    ///
    /// # Errors
    ///
    /// Returns an error if the index cannot be read or is damaged, or if it contains no games, only results.
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

    /// Returns the header of the game with the id `id`: its names, ratings, date and other tags.
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

    /// Finds the input file that contains the game with the id `id`. Returns the path of the file and the id of the
    /// first game in the file.
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

    /// Returns the exclusive end of the range of game ids of an input file. `first` is the id of the first game in this
    /// file.
    fn end_of_file(&self, first: u64) -> u64 {
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

/// Creates the error for a path at which there is no LevelDB database. The message says what is there instead, such as
/// an empty directory or a PGN file.
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
        let start = if found.is_file() {
            FileKind::start_of_file(path).at(path, "read")?
        } else {
            Vec::new()
        };
        let how = "make an index with polybook make-book";
        let problem = FileKind::problem(path, &start, "an index", how);
        Ok(Error::foreign(path, problem))
    };
    why().unwrap_or_else(|err| err)
}

/// Returns the error message for a LevelDB database that does not contain the number of games, and is therefore not an
/// index. The message depends on whether the database is empty or was made by another program.
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

/// The number of bytes that are read from a PGN file at a time.
const READ_SIZE: usize = 1 << 16;

/// The path that an index stores for games that were read from standard input.
const STDIN: &str = "-";

impl Index {
    /// Returns the PGN text of the game with the id `id`, byte for byte. The text begins with the first tag of the
    /// game, or with its first move if the game has no tags, and ends where the next game begins.
    ///
    /// The text is read from the PGN file from which the index was made. If this file is compressed, everything before
    /// the game must be decompressed; see [`is_slow_to_read`](Index::is_slow_to_read).
    ///
    /// # Errors
    ///
    /// Returns an error if no game has this id, if the index cannot be read or is damaged, or if the PGN file is
    /// missing or has changed.
    pub fn text(&self, id: u32) -> Result<Vec<u8>> {
        self.text_while(id, &|| true)
    }

    /// Returns the PGN text of the game with the id `id`, like [`text`](Index::text), but can be cancelled.
    /// `should_continue` is called repeatedly while the PGN file is read, and cancels reading by returning `false`.
    ///
    /// # Errors
    ///
    /// Fails for the same reasons as [`text`](Index::text). Returns [`Error::Interrupted`] if `should_continue` returns
    /// `false`.
    pub fn text_while(&self, id: u32, should_continue: &dyn Fn() -> bool) -> Result<Vec<u8>> {
        let (path, first) = self.file_of(id)?;
        refuse_stdin(path)?;
        let changed = || no_longer_there(path, id);
        if self.kind() == IndexKind::Explorer {
            let (place, text) = self.with_details(id, |details| (details.place, details.text))?;
            let Some(stream) = open_at(path, place.start(), should_continue)? else {
                return Err(changed());
            };
            let mut found = Vec::new();
            let stream = Stoppable {
                stream,
                should_continue,
            };
            read_from(path, stream.take(text.length).read_to_end(&mut found))?;
            // The file may be any file if another person made the index, so only the indexed text is returned.
            return if GameText::of(&found) == text {
                Ok(found)
            } else {
                Err(changed())
            };
        }
        let place = self.range_of_game(id, first, should_continue)?;
        let Some(stream) = open_at(path, place.start, should_continue)? else {
            return Err(changed());
        };
        let limit = place
            .end
            .map_or(u64::MAX, |end| end.saturating_sub(place.start));
        let stream = Stoppable {
            stream,
            should_continue,
        }
        .take(limit);
        let found = nth_game(stream, place.games_before, READ_SIZE);
        let (start, text) = read_from(path, found)?.ok_or_else(changed)?;
        let header = self.header(id)?;
        // The index has no checksum of the text, and the file may be any file if another person made the index. The game
        // must therefore begin exactly at its offset and have the tags that were indexed. A game without tags must begin
        // with a move after which the index lists it.
        let is_game = match header.offset_of_text() {
            Some(_) => start == 0 && header.matches_text(&text),
            None => self.lists_first_move(id, &text)?,
        };
        if is_game { Ok(text) } else { Err(changed()) }
    }

    /// Calls `f` with the PGN text, the id and the file of each game in an explorer index, in ascending order of ids.
    /// Skips games for which `is_wanted` returns `false`. Each file is read only once. `should_continue` is called
    /// repeatedly, and cancels reading by returning `false`.
    ///
    /// # Errors
    ///
    /// Fails for the same reasons as [`text_while`](Index::text_while), or if `f` fails.
    pub(crate) fn for_each_text(
        &self,
        is_wanted: &dyn Fn(u32) -> bool,
        should_continue: &dyn Fn() -> bool,
        mut f: impl FnMut(u32, &IndexedFile, Vec<u8>) -> Result<()>,
    ) -> Result<()> {
        let mut files = self.inputs_with_games().peekable();
        let mut file = files.next();
        // The open file, and the offset that was reached in it.
        let mut open: Option<(BufReader<Box<dyn Read>>, u64)> = None;
        for entry in 0..self.game_count().div_ceil(GAMES_PER_ENTRY) {
            let mut texts = Vec::new();
            self.for_each_details(entry, |_, details| {
                texts.push((details.place.start(), details.text));
                Ok(())
            })?;
            for (id, (start, text)) in (entry * GAMES_PER_ENTRY..).zip(texts) {
                while let Some(next) = files.next_if(|next| next.first_id <= id) {
                    (file, open) = (Some(next), None);
                }
                let Some(file) = file.filter(|_| is_wanted(id as u32)) else {
                    continue;
                };
                let changed = || no_longer_there(&file.path, id as u32);
                let (mut stream, at) = match open.take().filter(|(_, at)| *at <= start) {
                    Some(open) => open,
                    None => {
                        refuse_stdin(&file.path)?;
                        let stream = open_at(&file.path, start, should_continue)?;
                        (
                            BufReader::with_capacity(READ_SIZE, stream.ok_or_else(changed)?),
                            start,
                        )
                    }
                };
                let mut stoppable = Stoppable {
                    stream: &mut stream,
                    should_continue,
                };
                let mut before = stoppable.by_ref().take(start - at);
                let skipped = io::copy(&mut before, &mut io::sink());
                read_from(&file.path, skipped)?;
                let mut found = Vec::new();
                read_from(
                    &file.path,
                    stoppable.take(text.length).read_to_end(&mut found),
                )?;
                if GameText::of(&found) != text {
                    return Err(changed());
                }
                open = Some((stream, start + text.length));
                f(id as u32, file, found)?;
            }
        }
        Ok(())
    }

    /// Returns `true` if `text`, the text of a game without tags, begins with a move after which the index lists the
    /// game with the id `id`.
    fn lists_first_move(&self, id: u32, text: &[u8]) -> Result<bool> {
        let mut games = GameReader::new(text);
        if !games.next_game() || !games.tags().is_empty() {
            return Ok(false);
        }
        let Token::Move { text: first, .. } = games.next_token() else {
            return Ok(false);
        };
        // An index of all variants does not say to which of them the game belongs.
        let variants = match self.variant.only() {
            Some(variant) => vec![variant],
            None => Variant::ALL.to_vec(),
        };
        for start in variants.into_iter().map(Variant::start) {
            for letters in PieceLetters::ALL {
                let Ok(mv) = letters.read_move(&start, first) else {
                    continue;
                };
                let mut pos = Keyed::new(start.clone());
                pos.play(mv);
                if self.games_after(&pos)?.binary_search(&id).is_ok() {
                    return Ok(true);
                }
            }
        }
        Ok(false)
    }

    /// Returns the games that reached `pos`, a position after one move. The result is cached, because many games have
    /// the same first move.
    fn games_after(&self, pos: &Keyed<VariantPosition>) -> Result<Arc<[u32]>> {
        let identity = pos.identity();
        if let Some(games) = task::lock(&self.first_moves).get(&identity) {
            return Ok(Arc::clone(games));
        }
        let games: Arc<[u32]> = self.games_of(pos)?.into();
        task::lock(&self.first_moves).insert(identity, Arc::clone(&games));
        Ok(games)
    }

    /// Returns the length and the checksum of the text of the game with the id `id`. This index must be an explorer
    /// index with games.
    pub(crate) fn text_checksum(&self, id: u32) -> Result<GameText> {
        self.with_details(id, |details| details.text)
    }

    /// Returns `true` if the PGN file that contains the game with the id `id` is compressed. Reading the text of the
    /// game is then slow, because everything before the game must be decompressed.
    ///
    /// # Errors
    ///
    /// Returns an error if no game has this id, or if the PGN file cannot be read.
    pub fn is_slow_to_read(&self, id: u32) -> Result<bool> {
        let (path, _) = self.file_of(id)?;
        if path == Path::new(STDIN) {
            return Ok(false);
        }
        check_regular(path)?;
        Input::file(path).is_packed()
    }

    /// Returns a range of a PGN file that contains the game with the id `id`. If the index does not store the offset of
    /// this game, the range begins with the last earlier game whose offset is stored. `first` is the id of the first
    /// game in the file. Returns [`Error::Interrupted`] if `should_continue` returns `false`.
    fn range_of_game(
        &self,
        id: u32,
        first: u64,
        should_continue: &dyn Fn() -> bool,
    ) -> Result<GameRange> {
        let start_of = |id: u64| {
            if should_continue() {
                Ok(self
                    .header(id as u32)?
                    .offset_of_text()
                    .map(GameOffset::start))
            } else {
                Err(Error::Interrupted)
            }
        };
        // The index of the fork does not store the offset of a game without tags, so the search begins at the last
        // preceding game that has tags.
        let mut anchor = u64::from(id);
        let mut start = start_of(anchor)?;
        while start.is_none() && anchor > first {
            anchor -= 1;
            start = start_of(anchor)?;
        }
        let mut end = None;
        let mut next = u64::from(id) + 1;
        while end.is_none() && next < self.end_of_file(first) {
            end = start_of(next)?;
            next += 1;
        }
        Ok(GameRange {
            start: start.unwrap_or(0),
            end,
            games_before: u64::from(id) - anchor,
        })
    }
}

/// Returns an error if `path` stands for standard input, which cannot be read a second time.
fn refuse_stdin(path: &Path) -> Result<()> {
    if path == Path::new(STDIN) {
        Err(Error::file(
            path,
            "the games were read from standard input, so their text is not available: make the index from a file",
        ))
    } else {
        Ok(())
    }
}

/// Creates the error for a file in which the text of the game with the id `id` is no longer where it was when the index
/// was made.
fn no_longer_there(path: &Path, id: u32) -> Error {
    Error::changed(
        path,
        format!(
            "this file has changed since the index was made, and the game with the id {id} is no longer at the same \
             place: make the index again"
        ),
    )
}

/// A range of a PGN file that contains the wanted game, and possibly other games. `start` and `end` are offsets in
/// bytes in the decompressed text. If `end` is `None`, the range extends to the end of the file. `games_before` is the
/// number of games in the range that precede the wanted game.
struct GameRange {
    start: u64,
    end: Option<u64>,
    games_before: u64,
}

/// A reader that can be cancelled. Each read calls `should_continue`. If this function returns `false`, the read fails
/// with [`Error::Interrupted`].
struct Stoppable<'a, R> {
    stream: R,
    should_continue: &'a dyn Fn() -> bool,
}

impl<R: Read> Read for Stoppable<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if (self.should_continue)() {
            self.stream.read(buffer)
        } else {
            Err(io::Error::other(Error::Interrupted))
        }
    }
}

/// Converts the I/O error in `read`, the result of reading the PGN file `path`, to the library's error.
fn read_from<T>(path: &Path, read: io::Result<T>) -> Result<T> {
    match read {
        Err(err) if is_stop(&err) => Err(Error::Interrupted),
        // An error without an error number of the operating system comes from decompression or from the cutter.
        Err(err) if err.raw_os_error().is_none() => {
            Err(Error::damaged(path, format!("damaged: {err}")))
        }
        read => read.at(path, "read"),
    }
}

/// Returns `true` if a [`Stoppable`] reader returned the error `err` because it was cancelled.
fn is_stop(err: &io::Error) -> bool {
    let inner = err.get_ref().and_then(|inner| inner.downcast_ref());
    matches!(inner, Some(Error::Interrupted))
}

/// Checks that `path`, the path of a PGN file from which an index was made, still leads to a regular file.
///
/// # Errors
///
/// Returns an error if the file does not exist, cannot be examined, or is not a regular file.
fn check_regular(path: &Path) -> Result<()> {
    let metadata = path.metadata();
    if metadata
        .as_ref()
        .is_err_and(|err| err.kind() == io::ErrorKind::NotFound)
    {
        let problem = "this file is no longer where it was when the index was made: put the file back, or make the index again";
        return Err(Error::changed(path, problem));
    }
    // Opening a pipe could wait forever.
    if !metadata.at(path, "open")?.is_file() {
        let problem =
            "this is no longer a regular file: put the file back, or make the index again";
        return Err(Error::changed(path, problem));
    }
    Ok(())
}

/// Opens a PGN file and skips the first `start` bytes of its decompressed text. Returns `None` if the text is
/// shorter. Decompression is cancelled if `should_continue` returns `false`.
///
/// # Errors
///
/// Returns an error if the file is missing or cannot be read. Returns [`Error::Interrupted`] if `should_continue`
/// returns `false`.
fn open_at(
    path: &Path,
    start: u64,
    should_continue: &dyn Fn() -> bool,
) -> Result<Option<Box<dyn Read>>> {
    check_regular(path)?;
    let input = Input::file(path);
    if input.is_packed()? {
        let mut stream = input.open(&StreamOptions::default())?;
        let before = Stoppable {
            stream: &mut stream,
            should_continue,
        };
        return match io::copy(&mut before.take(start), &mut io::sink()) {
            Ok(skipped) => Ok((skipped == start).then_some(Box::new(stream))),
            Err(err) if is_stop(&err) => Err(Error::Interrupted),
            Err(err) => Err(err).at(path, "unpack"),
        };
    }
    let mut file = File::open(path).at(path, "open")?;
    let end = file.seek(SeekFrom::End(0)).at(path, "read")?;
    file.seek(SeekFrom::Start(start)).at(path, "read")?;
    Ok((start < end).then_some(Box::new(file)))
}

/// Skips the first `before` games of a PGN stream. Returns the offset and the text of the next game, or `None` if the
/// stream has no further game. Reads the stream in batches of about `read_size` bytes, so that only one batch and the
/// returned game are held in memory.
fn nth_game(
    stream: impl Read,
    mut before: u64,
    read_size: usize,
) -> io::Result<Option<(u64, Vec<u8>)>> {
    let mut cutter = Cutter::new(BufReader::new(stream), read_size);
    let mut found: Option<(u64, Vec<u8>)> = None;
    while let Some(batch) = cutter.next_batch()? {
        // The offset in this batch at which the text of the game continues.
        let mut rest = 0;
        let mut games = GameReader::new(&batch.text);
        while games.next_game() {
            let start = games.game_offset();
            match &mut found {
                Some((_, text)) => {
                    text.extend_from_slice(&batch.text[rest..start]);
                    return Ok(found);
                }
                None if before > 0 => before -= 1,
                None => {
                    found = Some((batch.offset + start as u64, Vec::new()));
                    rest = start;
                }
            }
            games.skip_moves();
        }
        if let Some((_, text)) = &mut found {
            text.extend_from_slice(&batch.text[rest..]);
        }
    }
    Ok(found)
}

impl Index {
    /// Returns the names in the entry with the number `number` of the table of player and event names. `names` is the
    /// total number of names in the index, from which the expected number of names in the entry follows.
    ///
    /// # Errors
    ///
    /// Returns an error if the entry cannot be read, is malformed, or does not contain the expected number of names.
    pub(crate) fn name_entry(&self, number: u32, names: u32) -> Result<Vec<Box<str>>> {
        let key = names_key(number);
        let expected = names
            .saturating_sub(number.saturating_mul(NAMES_PER_ENTRY))
            .min(NAMES_PER_ENTRY);
        let value = self.value(&key)?.unwrap_or_default();
        parse_names(&value)
            .filter(|names| names.len() == expected as usize)
            .ok_or_else(|| self.malformed(&key))
    }

    /// Returns the game rows in the entry with the number `number`. An entry contains [`ROWS_PER_ENTRY`] rows, or fewer
    /// if it is the last entry.
    pub(crate) fn row_entry(&self, number: u64) -> Result<Vec<GameRow>> {
        let value = self.row_bytes(number)?;
        let (rows, _) = value.as_chunks::<ROW_SIZE>();
        rows.iter()
            .map(|row| self.parsed_row(number, row))
            .collect()
    }

    /// Returns the encoded game rows in the entry with the number `number`, one after the other.
    ///
    /// # Errors
    ///
    /// Returns an error if the entry cannot be read or does not have the expected length.
    fn row_bytes(&self, number: u64) -> Result<Vec<u8>> {
        let key = explorer_index::rows_key(number as u32);
        let value = self.value(&key)?.unwrap_or_default();
        let games = (self.game_count() - number * ROWS_PER_ENTRY).min(ROWS_PER_ENTRY) as usize;
        if value.len() == games * ROW_SIZE {
            Ok(value)
        } else {
            Err(self.malformed(&key))
        }
    }

    fn parsed_row(&self, entry: u64, row: &[u8; ROW_SIZE]) -> Result<GameRow> {
        GameRow::parse(row).ok_or_else(|| self.malformed(&explorer_index::rows_key(entry as u32)))
    }

    /// Returns the row of the game with the id `id`. A row contains the properties of a game that filters use, such as
    /// the ratings and the date.
    fn row(&self, id: u32) -> Result<GameRow> {
        let (entry, index) = (
            u64::from(id) / ROWS_PER_ENTRY,
            (u64::from(id) % ROWS_PER_ENTRY) as usize,
        );
        let row_in = |rows: &[u8]| self.parsed_row(entry, &rows.as_chunks::<ROW_SIZE>().0[index]);
        if let Some(last) = task::try_lock(&self.last_rows)
            && let Some((number, rows)) = &*last
            && *number == entry
        {
            return row_in(rows);
        }
        let rows = self.row_bytes(entry)?;
        let row = row_in(&rows)?;
        if let Some(mut last) = task::try_lock(&self.last_rows) {
            *last = Some((entry, rows));
        }
        Ok(row)
    }

    /// Returns the header of the game with the id `id`. This index must be an explorer index with games.
    pub(crate) fn stored_header(&self, id: u32) -> Result<GameHeader> {
        let row = self.row(id)?;
        let name = |number| self.name(number);
        let [white, black, event] = [name(row.white)?, name(row.black)?, name(row.event)?];
        self.with_details(id, |details| details.header(&row, [&white, &black, &event]))
    }

    /// Calls `f` with the details of the game with the id `id`, and returns the result of `f`. The details contain the
    /// offset of the game in its PGN file, and the header fields that the row of the game does not contain.
    pub(crate) fn with_details<T>(
        &self,
        id: u32,
        f: impl FnOnce(GameDetails<'_>) -> T,
    ) -> Result<T> {
        let (entry, before) = (
            u64::from(id) / GAMES_PER_ENTRY,
            u64::from(id) % GAMES_PER_ENTRY,
        );
        let key = explorer_index::details_key(entry as u32);
        let value = self.value(&key)?.unwrap_or_default();
        let mut rest = &value[..];
        let passed = (0..before).all(|_| GameDetails::take(&mut rest).is_some());
        let details = GameDetails::take(&mut rest).filter(|_| passed);
        details.map(f).ok_or_else(|| self.malformed(&key))
    }

    /// Calls `f` with the details of each game in the entry with the number `entry`, in ascending order of game ids.
    /// `f` receives the details both as encoded bytes and in decoded form.
    ///
    /// # Errors
    ///
    /// Returns an error if `f` fails, or if the entry cannot be read, is malformed, or does not contain the expected
    /// number of games.
    pub(crate) fn for_each_details(
        &self,
        entry: u64,
        mut f: impl FnMut(&[u8], GameDetails<'_>) -> Result<()>,
    ) -> Result<()> {
        let key = explorer_index::details_key(entry as u32);
        let value = self.value(&key)?.unwrap_or_default();
        let mut rest = &value[..];
        for _ in 0..(self.game_count() - entry * GAMES_PER_ENTRY).min(GAMES_PER_ENTRY) {
            let start = rest;
            let details = GameDetails::take(&mut rest).ok_or_else(|| self.malformed(&key))?;
            f(&start[..start.len() - rest.len()], details)?;
        }
        if rest.is_empty() {
            Ok(())
        } else {
            Err(self.malformed(&key))
        }
    }

    /// Reads the list with the key `subject` in one or several parts. The parts of a long list are its chunks. A list
    /// in a page (an index entry with several lists) has one part, and a list that does not exist has none. `location`
    /// must be the result of [`find_list`](Index::find_list) for the same key.
    pub(crate) fn list(&self, subject: ListKey, location: ListLocation) -> Result<Vec<StoredPart>> {
        match location {
            ListLocation::InPage(list) => Ok(list.into_iter().collect()),
            ListLocation::Chunks(chunked) => self.chunks(subject, chunked).collect(),
        }
    }

    /// Finds where the list with the key `subject` is stored. `paging` is the rule that groups lists in pages, which
    /// are index entries with several lists.
    pub(crate) fn find_list(&self, paging: Paging, subject: ListKey) -> Result<ListLocation> {
        let nowhere = ListLocation::InPage(None);
        let key = page_key(LISTS, paging.last_of(subject));
        let Some(page) = self.value(&key)? else {
            return Ok(nowhere);
        };
        let found = find_list(paging, &page, subject);
        let Some(list) = found.ok_or_else(|| self.malformed(&key))? else {
            return Ok(nowhere);
        };
        if let Some(chunked) = list.chunked {
            return Ok(ListLocation::Chunks(chunked));
        }
        let start = list.start_in(&page);
        Ok(ListLocation::InPage(Some(StoredPart {
            key,
            value: page,
            start,
        })))
    }

    /// Calls `f` with each list in a page and its key, in ascending order of keys. A page is an index entry that
    /// contains several lists. `page_member` is any list key that belongs to the page, and `paging` is the rule that
    /// groups lists in pages.
    ///
    /// # Errors
    ///
    /// Returns an error if `f` fails, or if the page cannot be read or is malformed.
    pub(crate) fn for_each_list(
        &self,
        paging: Paging,
        page_member: ListKey,
        mut f: impl FnMut(ListKey, List<'_>) -> Result<()>,
    ) -> Result<()> {
        let key = page_key(LISTS, paging.last_of(page_member));
        let page = self.value(&key)?.unwrap_or_default();
        let mut failed = Ok(());
        let read = for_each_list(paging, &page, page_member, |subject, list, _| {
            failed = f(subject, list);
            failed.is_ok().then_some(())
        });
        failed?;
        read.ok_or_else(|| self.malformed(&key))
    }

    /// Returns an iterator over the chunks of a long list of games. Each chunk is stored in a separate index entry.
    /// `subject` is the key of the list, and `chunked` is its description.
    pub(crate) fn chunks(
        &self,
        subject: ListKey,
        chunked: ChunkedList,
    ) -> impl Iterator<Item = Result<StoredPart>> {
        (0..chunked.chunks()).map(move |number| {
            let items = chunked.items - number * ITEMS_PER_CHUNK as u64;
            self.chunk(subject, number as u32, items)
        })
    }

    /// Reads the chunk with the number `number`, counted from 0, of the long list with the key `subject`. `items` is
    /// the number of items from this chunk to the end of the list, which determines how many items the chunk must
    /// contain.
    fn chunk(&self, subject: ListKey, number: u32, items: u64) -> Result<StoredPart> {
        let key = chunk_key(subject, number);
        let chunk = self.value(&key)?.unwrap_or_default();
        let another_follows = u8::from(items > ITEMS_PER_CHUNK as u64);
        let expected = items.min(ITEMS_PER_CHUNK as u64) as usize;
        match List::parse(chunk.get(1..).unwrap_or_default()) {
            Some(list) if list.len == expected && chunk[0] == another_follows => Ok(StoredPart {
                key,
                value: chunk,
                start: 1,
            }),
            _ => Err(self.malformed(&key)),
        }
    }

    /// Returns the description of an explorer index that contains results but no games. Returns `None` if this index is
    /// of another kind.
    ///
    /// # Errors
    ///
    /// Returns an error if the description cannot be read, is damaged, or has another version of the layout.
    pub(crate) fn counted(&self) -> Result<Option<CountedContents>> {
        let Some(value) = self.value(COUNTED)? else {
            return Ok(None);
        };
        let contents = CountedContents::parse(&value);
        contents.map(Some).ok_or_else(|| {
            let problem = "the counts in this index are damaged, or were made by another version of polybook: make the \
                           index again";
            Error::damaged(self.path(), problem)
        })
    }

    /// Returns the results of each move in the position with the key `subject`, from an explorer index without games.
    /// Returns `None` if the index does not contain the position. `paging` is the rule that groups positions in pages
    /// (index entries with several positions).
    ///
    /// # Errors
    ///
    /// Returns an error if the page of the position cannot be read or is malformed.
    pub(crate) fn counted_list(
        &self,
        paging: Paging,
        subject: ListKey,
    ) -> Result<Option<CountedList>> {
        let key = page_key(COUNTS, paging.last_of(subject));
        let Some(page) = self.value(&key)? else {
            return Ok(None);
        };
        let found = find_counts(paging, &page, subject);
        found.ok_or_else(|| self.malformed(&key))
    }

    /// Reads the years in which a position has games, each with its months. The index must contain results by period
    /// for this position. `subject` is the key of the position. `prefix` is the prefix of the LevelDB key: [`LISTS`]
    /// for an index with games, [`COUNTS`] for one without games.
    ///
    /// # Errors
    ///
    /// Returns an error if the entry cannot be read or is malformed.
    pub(crate) fn years(&self, prefix: &[u8; 2], subject: ListKey) -> Result<Vec<YearMonths>> {
        let key = period_key(prefix, subject, Period::All);
        let value = self.value(&key)?.unwrap_or_default();
        take_years(&mut &value[..]).ok_or_else(|| self.malformed(&key))
    }

    /// Reads the results of a position in a period: all time, a year or a month. The index must contain results by
    /// period for this position. `subject` is the key of the position. `prefix` is the prefix of the LevelDB key:
    /// [`LISTS`] for an index with games, [`COUNTS`] for one without games.
    ///
    /// # Errors
    ///
    /// Returns an error if the entry cannot be read, is missing or is malformed.
    pub(crate) fn results(
        &self,
        prefix: &[u8; 2],
        subject: ListKey,
        period: Period,
    ) -> Result<PeriodResults> {
        let key = period_key(prefix, subject, period);
        let value = self.value(&key)?.unwrap_or_default();
        let parse = |mut rest: &[u8]| {
            if period == Period::All {
                take_years(&mut rest)?;
            }
            PeriodResults::parse(rest, prefix != COUNTS)
        };
        parse(&value).ok_or_else(|| self.malformed(&key))
    }

    /// Returns the ids of all games in the list with the key `subject`, in ascending order. `paging` determines which
    /// lists share a page, an index entry that contains several lists.
    pub(crate) fn list_ids(&self, paging: Paging, subject: ListKey) -> Result<Vec<u32>> {
        let mut ids = Vec::new();
        for part in self.list(subject, self.find_list(paging, subject)?)? {
            part.list(self)?
                .for_each(|id, _| ids.push(id))
                .ok_or_else(|| self.malformed(&part.key))?;
        }
        ids.sort_unstable();
        Ok(ids)
    }
}

/// The location of a list in an explorer index.
#[derive(Debug)]
pub(crate) enum ListLocation {
    /// The list is stored in a page, an index entry with several lists. `None` if the list does not exist.
    InPage(Option<StoredPart>),
    /// The list is stored in chunks, each of which is a separate index entry.
    Chunks(ChunkedList),
}

/// A list that is stored in a page, or one chunk of a long list. Contains the whole index entry, and the offset in this
/// entry at which the list or the chunk begins.
#[derive(Debug)]
pub(crate) struct StoredPart {
    pub key: Vec<u8>,
    value: Vec<u8>,
    /// The offset in the value at which the list begins.
    start: usize,
}

impl StoredPart {
    /// Parses this list or chunk. `index` is the index that contains it, for error messages.
    ///
    /// # Errors
    ///
    /// Returns an error if the list is malformed or has no items.
    pub(crate) fn list(&self, index: &Index) -> Result<List<'_>> {
        List::parse(&self.value[self.start..])
            .filter(|list| list.len > 0)
            .ok_or_else(|| index.malformed(&self.key))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn an_index_is_shared_by_threads() {
        fn shared<T: Send + Sync>() {}
        shared::<Index>();
    }

    const PIECES: [&str; 9] = [
        "[Event \"A\"]\n[White \"B\"]\n\n1. e4 e5 1-0\n\n",
        "[Event \"C\"]\n\n1. d4 { a comment\n[Event \"no\"]\n } *\n",
        "1. c4 c5 *\n",
        "\n\n",
        "{ between the games }\n",
        "; to the end of the line\n",
        "% escaped\n",
        "[Event \"D\"]\n[Site \"E\"]\n1. f4",
        "0-1\n",
    ];

    proptest! {
        #[test]
        fn a_game_is_the_same_however_it_is_read(pieces in proptest::collection::vec(0..PIECES.len(), 0..20), number in 0..12u64) {
            let text: String = pieces.iter().map(|piece| PIECES[*piece]).collect();
            let whole = nth_game(text.as_bytes(), number, 1 << 20).unwrap();
            for read_size in [1, 16, 100] {
                prop_assert_eq!(&nth_game(text.as_bytes(), number, read_size).unwrap(), &whole);
            }
            if let Some((start, game)) = whole {
                prop_assert!(text.as_bytes()[start as usize..].starts_with(&game));
            }
        }
    }

    #[test]
    fn reading_ends_when_nobody_waits_for_it() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("idx");
        let input = Input::file("data/famous.pgn");
        let run = crate::MakeBook::new([input]).leveldb(&path);
        run.run().unwrap();
        let index = Index::open(&path).unwrap();
        let text = index.text(7).unwrap();
        let mut asked = 0_u32;
        loop {
            let left = std::cell::Cell::new(asked);
            let should_continue = || left.replace(left.get().saturating_sub(1)) > 0;
            match index.text_while(7, &should_continue) {
                Ok(found) => {
                    assert_eq!(found, text);
                    break;
                }
                Err(err) => assert!(matches!(err, Error::Interrupted), "{err}"),
            }
            asked += 1;
        }
        assert!(asked > 1);
    }

    #[test]
    fn what_follows_a_game_is_not_read() {
        /// A stream of games that never ends, with the number of reads.
        struct Endless(usize);
        impl Read for Endless {
            fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
                self.0 += 1;
                let games = "[Event \"A\"]\n\n1. e4 *\n\n".as_bytes();
                Ok(games
                    .iter()
                    .cycle()
                    .zip(buffer)
                    .map(|(from, to)| *to = *from)
                    .count())
            }
        }
        let mut games = Endless(0);
        let (start, _) = nth_game(&mut games, 1, 1000).unwrap().unwrap();
        assert_eq!(start, 22);
        assert!(games.0 < 100);

        // A game that does not end is rejected before it fills the memory.
        let endless = io::repeat(b'x');
        let err = nth_game("1. e4 {".as_bytes().chain(endless), 0, READ_SIZE).unwrap_err();
        assert_eq!(err.kind(), io::ErrorKind::InvalidData);
    }
}
