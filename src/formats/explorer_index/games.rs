//! Collects the rows, details and names of games for an explorer index, in the order of the inputs.

use std::path::{Path, PathBuf};

use rustc_hash::FxHashMap;
use shakmaty::Color;

use super::{
    EcoNumber, GameRow, ListKey, SiteId, details_key,
    game_details::{GAMES_PER_ENTRY, GameText, write_details},
    game_rows,
    list_record::ListRecord,
    names, names_key, rows_key,
};
use crate::{
    chess::position::Variant,
    error::{Error, Result},
    formats::fork_index::{
        entries::Entries,
        layout::{self, GameOffset},
    },
    games::{
        openings::OpeningNumber,
        pgn::{Date, GameResult, Mode, Speed, Tags, normalized, rating, tag_text},
    },
    storage::sort::{ByteReader, ByteRun},
};

/// The text that is stored for a player or event whose name is missing.
const NO_NAME: &str = "?";

/// The data that an explorer index stores about the games in one batch of PGN text, before numbers are assigned to the
/// names of players and events.
#[derive(Default, Debug)]
pub(crate) struct GameFacts {
    rows: Vec<GameRow>,
    /// The concatenated records of the games. `places` contains the length of each record and the offset of the game.
    records: Vec<u8>,
    places: Vec<(u32, GameOffset)>,
    /// The length and the checksum of the text of each game, once the batch has [ended](GameFacts::end).
    texts: Vec<GameText>,
    /// The names of White, Black and the event of each game.
    names: Vec<[Box<str>; 3]>,
    /// The records of the lists of players. In these records, games are numbered from the first game of the batch.
    players: Vec<ListRecord>,
    /// The records of the lists of Lichess ids. In these records, games are numbered from the first game of the batch.
    site_ids: Vec<ListRecord>,
}

impl GameFacts {
    /// Adds the next game of the batch, with its tags and its offset in the PGN text (`place`). If the positions of the
    /// game are to be indexed, the caller must then call [`count_last`](GameFacts::count_last).
    pub(crate) fn add(&mut self, tags: &Tags<'_>, place: GameOffset) {
        let before = self.records.len();
        layout::write_game(&mut self.records, tags, place, layout::FIELDS.len());
        self.places
            .push(((self.records.len() - before) as u32, place));
        let rating_of = |name: &[u8]| tags.get(name).and_then(rating).unwrap_or(0);
        let id = tags.get(b"Site").and_then(SiteId::of_tag);
        if let Some(id) = id {
            let number = self.rows.len() as u32;
            let subject = ListKey::site_id(id);
            self.site_ids.push(ListRecord::listed(subject, number));
        }
        let (dated_by, date) = Date::with_tag(tags).unwrap_or_default();
        self.rows.push(GameRow {
            white: 0,
            black: 0,
            event: 0,
            white_elo: rating_of(b"WhiteElo"),
            black_elo: rating_of(b"BlackElo"),
            date,
            has_event_date: dated_by == b"EventDate",
            result: tags.result().unwrap_or_default(),
            speed: Speed::of_tag(tags.get(b"TimeControl")),
            mode: Mode::of_tags(tags),
            counts: false,
            variant: None,
            eco: EcoNumber::of_tag(tags.get(b"ECO").unwrap_or_default()),
            opening: OpeningNumber::default(),
            plies: 0,
            site_id: id,
            moves: 0,
        });
        let names = [&b"White"[..], b"Black", b"Event"];
        self.names.push(names.map(|name| name_of(tags.get(name))));
    }

    /// Returns the number of games that were added.
    pub(crate) fn len(&self) -> usize {
        self.rows.len()
    }

    /// Completes the game that was added last, when its moves have been played. Stores its result, number of half-moves
    /// (`plies`), variant and opening, and the hash `moves` of its starting position and moves. Marks the game as
    /// counted, which means that its positions are indexed.
    pub(crate) fn count_last(
        &mut self,
        result: GameResult,
        plies: usize,
        variant: Variant,
        opening: OpeningNumber,
        moves: u64,
    ) {
        let number = self.rows.len() as u32 - 1;
        if let (Some(row), Some([white, black, _])) = (self.rows.last_mut(), self.names.last()) {
            row.counts = true;
            row.result = result;
            row.plies = u16::try_from(plies).unwrap_or(u16::MAX);
            row.variant = Some(variant);
            row.opening = opening;
            row.moves = moves;
            for (name, color) in [(white, Color::White), (black, Color::Black)] {
                let subject = ListKey::player(&normalized(name), color);
                self.players.push(ListRecord::listed(subject, number));
            }
        }
    }

    /// Calculates the checksums of the texts of all games. `text` is the text of the batch, which begins at
    /// `batch_offset` in the input. This function must be called after the last game has been added.
    pub(crate) fn end(&mut self, text: &[u8], batch_offset: u64) {
        let starts = self
            .places
            .iter()
            .map(|(_, place)| (place.start() - batch_offset) as usize);
        let ends = starts.clone().skip(1).chain([text.len()]);
        let texts = starts
            .zip(ends)
            .map(|(start, end)| GameText::of(&text[start..end]));
        self.texts = texts.collect();
    }

    /// Marks games as not counted, for example because they are duplicates, and removes them from the lists of players
    /// and Lichess ids. `numbers` contains the numbers of these games within the batch, counted from 0 and in ascending
    /// order.
    pub(crate) fn leave_out(&mut self, numbers: &[u32]) {
        for number in numbers {
            if let Some(row) = self.rows.get_mut(*number as usize) {
                row.counts = false;
                row.moves = 0;
                // The duplicate that counts keeps the id.
                row.site_id = None;
            }
        }
        let stays = |record: &ListRecord| numbers.binary_search(&record.id()).is_err();
        self.players.retain(stays);
        self.site_ids.retain(stays);
    }
}

/// Converts the value of a name tag, such as `White`, to text, and truncates it to [`names::LONGEST_NAME`] bytes.
/// Returns `?` if `value` is `None`, because the tag is missing.
fn name_of(value: Option<&[u8]>) -> Box<str> {
    let value = value.unwrap_or(NO_NAME.as_bytes());
    // A byte of Latin-1 takes up to two bytes in UTF-8. Cutting may split the last character.
    let value = &value[..value.len().min(names::LONGEST_NAME + 4)];
    let name = match str::from_utf8(value) {
        Err(err) if err.error_len().is_none() => tag_text(&value[..err.valid_up_to()]),
        _ => tag_text(value),
    };
    let end = name.floor_char_boundary(names::LONGEST_NAME);
    name[..end].into()
}

/// A collection of the data that an explorer index stores about its games: a row and details for each game, and the
/// names of players and events. Data beyond a memory limit is spilled to temporary files.
#[derive(Debug)]
pub(crate) struct StoredGames {
    rows: ByteRun,
    /// The encoded details of each game.
    details: ByteRun,
    names: ByteRun,
    namer: Namer,
    games: u64,
}

impl StoredGames {
    /// Creates an empty collection that holds up to `memory` bytes in memory, and spills further data to files in
    /// `temp_dir`.
    pub(crate) fn new(memory: usize, temp_dir: PathBuf) -> StoredGames {
        StoredGames {
            rows: ByteRun::new(memory / 2, temp_dir.clone()),
            details: ByteRun::new(memory / 4, temp_dir.clone()),
            names: ByteRun::new(memory / 4, temp_dir),
            namer: Namer::default(),
            games: 0,
        }
    }

    /// Adds the games of the next batch to the collection. Returns records that the caller must add to the lists of the
    /// index: the ids of the new games for the lists of players and of Lichess ids, and the numbers of new names for
    /// the lists of names.
    ///
    /// # Errors
    ///
    /// Returns an error if a temporary file cannot be written, or if there are too many names.
    pub(crate) fn push_all(&mut self, facts: GameFacts) -> Result<Vec<ListRecord>> {
        let first_id = self.games as u32;
        let mut lists = facts.players;
        lists.extend(facts.site_ids);
        for record in &mut lists {
            *record = record.shifted_by(first_id);
        }
        let (mut records, mut details) = (&facts.records[..], Vec::new());
        let games = facts.rows.into_iter().zip(&facts.names);
        let places = facts.places.into_iter().zip(facts.texts);
        for ((row, names), ((length, place), text)) in games.zip(places) {
            let (record, rest) = records.split_at(length as usize);
            records = rest;
            details.clear();
            let [white, black, event] = names;
            let names_of = [&**white, black, event];
            write_details(&mut details, record, (place, text), &row, names_of);
            self.push(row, names, &details, &mut lists)?;
        }
        Ok(lists)
    }

    /// Returns the number of games that were added.
    pub(crate) fn len(&self) -> u64 {
        self.games
    }

    /// Adds the next game to the collection, and returns the numbers of its three names. `details` contains the encoded
    /// details of the game. `names` contains the names of White, Black and the event. For each new name, appends a
    /// record to `lists`, which adds the number of the name to the list of all names that are equal after
    /// normalization, for example names that differ only in case.
    ///
    /// # Errors
    ///
    /// Returns an error if a temporary file cannot be written, or if there are too many names.
    pub(crate) fn push(
        &mut self,
        mut row: GameRow,
        names: &[Box<str>; 3],
        details: &[u8],
        lists: &mut Vec<ListRecord>,
    ) -> Result<[u32; 3]> {
        let mut numbers = [0; 3];
        for (number, name) in numbers.iter_mut().zip(names) {
            let (given, is_new) = self.namer.number(name);
            *number = given;
            if is_new {
                self.keep_name(name)?;
                let subject = ListKey::name(&normalized(name));
                lists.push(ListRecord::named(subject, given));
            }
        }
        [row.white, row.black, row.event] = numbers;
        self.games += 1;
        self.rows.append(&row.to_bytes())?;
        self.details.append_text(details)?;
        Ok(numbers)
    }

    /// Stores a new name. Names are stored in the order of their numbers, so this name must have the next number.
    ///
    /// # Errors
    ///
    /// Returns an error if a temporary file cannot be written, or if there are too many names.
    fn keep_name(&mut self, name: &str) -> Result<()> {
        if self.namer.len() == u32::MAX {
            return Err(Error::too_large(
                "names",
                "an explorer's index can contain at most 4294967295 names: make several indexes",
            ));
        }
        self.names.append_text(name.as_bytes())
    }

    /// Returns the directory of the collection's temporary files.
    pub(crate) fn temp_dir(&self) -> &Path {
        self.rows.temp_dir()
    }

    /// Returns the number of stored names. A [`Namer`] remembers only a limited number of names. If a forgotten name
    /// occurs again, it is stored again under another number and counted twice.
    pub(crate) fn name_count(&self) -> u32 {
        self.namer.len()
    }

    /// Returns a reader for the rows of games. The rows must be looked up in ascending order of game ids.
    pub(super) fn row_reader(&self) -> RowReader<'_> {
        RowReader {
            rows: self.rows.reader(0),
            next: 0,
        }
    }

    /// Returns a reader of the LevelDB entries that contain the rows, the details and the names of the games. The
    /// reader returns the entries in ascending order of keys.
    pub(crate) fn entries(&self) -> GameEntries<'_> {
        GameEntries {
            games: self,
            rows: self.rows.reader(0),
            next_row: 0,
            details: self.details.reader(0),
            next_details: 0,
            names: self.names.reader(0),
            next_name: 0,
            value: Vec::new(),
        }
    }
}

/// A reader for the rows of individual games, which must be looked up in ascending order of game ids. The reader skips
/// the rows of the games in between.
pub(super) struct RowReader<'a> {
    rows: ByteReader<'a>,
    /// The id of the game whose row is next in the file.
    next: u32,
}

impl RowReader<'_> {
    /// Returns the row of the game with the id `id`, which must be greater than in all earlier calls.
    pub(super) fn row(&mut self, id: u32) -> Result<GameRow> {
        let passed = id.saturating_sub(self.next);
        self.rows
            .skip(u64::from(passed) * game_rows::ROW_SIZE as u64);
        let mut row = [0; game_rows::ROW_SIZE];
        self.rows.read_exact(&mut row)?;
        self.next = id.wrapping_add(1);
        Ok(GameRow::parse(&row).expect("rows are kept as they are stored"))
    }
}

/// A reader of the LevelDB entries that contain the rows, the details and the names of all games in [`StoredGames`]. It
/// returns the entries in ascending order of keys.
pub(crate) struct GameEntries<'a> {
    games: &'a StoredGames,
    rows: ByteReader<'a>,
    next_row: u64,
    details: ByteReader<'a>,
    next_details: u64,
    names: ByteReader<'a>,
    next_name: u32,
    value: Vec<u8>,
}

impl GameEntries<'_> {
    /// Appends the next LevelDB entries with rows, details or names of games to `entries`. Stops when `entries` holds
    /// at least `size` bytes or when no entry is left.
    pub(crate) fn fill(&mut self, entries: &mut Entries, size: usize) -> Result<()> {
        while entries.bytes_in_memory() < size && self.next_row < self.games.games {
            let some = (self.games.games - self.next_row).min(game_rows::ROWS_PER_ENTRY);
            self.value.resize(some as usize * game_rows::ROW_SIZE, 0);
            self.rows.read_exact(&mut self.value)?;
            let number = (self.next_row / game_rows::ROWS_PER_ENTRY) as u32;
            entries.push(&rows_key(number), &self.value);
            self.next_row += some;
        }
        while entries.bytes_in_memory() < size
            && self.next_row == self.games.games
            && self.next_details < self.games.games
        {
            self.value.clear();
            let number = (self.next_details / GAMES_PER_ENTRY) as u32;
            let some = (self.games.games - self.next_details).min(GAMES_PER_ENTRY);
            for _ in 0..some {
                let details = self.details.read_text()?.unwrap_or_default();
                self.value.extend_from_slice(&details);
            }
            entries.push(&details_key(number), &self.value);
            self.next_details += some;
        }
        while entries.bytes_in_memory() < size
            && self.next_details == self.games.games
            && self.next_name < self.games.name_count()
        {
            self.value.clear();
            let number = self.next_name / names::NAMES_PER_ENTRY;
            let left = self.games.name_count() - self.next_name;
            for _ in 0..left.min(names::NAMES_PER_ENTRY) {
                let name = self.names.read_text()?.unwrap_or_default();
                let name = str::from_utf8(&name).expect("names are kept as text");
                names::write_name(&mut self.value, name);
                self.next_name += 1;
            }
            entries.push(&names_key(number), &self.value);
        }
        Ok(())
    }
}

/// The maximum number of player and event names that a [`Namer`] remembers, to limit its memory. When the limit is
/// reached, the `Namer` forgets all names. A forgotten name gets a new number when it occurs again.
const MAX_REMEMBERED_NAMES: usize = 1 << 17;
/// The maximum total size in bytes of the player and event names that a [`Namer`] remembers. When the limit is reached,
/// the `Namer` forgets all names. A forgotten name gets a new number when it occurs again.
const MAX_REMEMBERED_BYTES: usize = 4 << 20;

/// A table that assigns numbers to player and event names, in the order in which the names first occur. To limit its
/// memory, it forgets all names from time to time (see [`MAX_REMEMBERED_NAMES`] and [`MAX_REMEMBERED_BYTES`]). These
/// limits do not depend on the memory budget, so the same games always get the same numbers.
#[derive(Default, Debug)]
struct Namer {
    known: FxHashMap<Box<str>, u32>,
    bytes: usize,
    next: u32,
}

impl Namer {
    /// Returns the number of a name, and `true` if the name got this number in this call. A name gets a new number if
    /// it has not occurred before, or if the table has forgotten it.
    fn number(&mut self, name: &str) -> (u32, bool) {
        if let Some(number) = self.known.get(name) {
            return (*number, false);
        }
        if self.known.len() == MAX_REMEMBERED_NAMES || self.bytes > MAX_REMEMBERED_BYTES {
            self.known.clear();
            self.bytes = 0;
        }
        let number = self.next;
        self.known.insert(name.into(), number);
        self.bytes += name.len();
        // Saturates: `keep_name` reports an error when all numbers are used.
        self.next = self.next.saturating_add(1);
        (number, true)
    }

    /// Returns how many numbers have been assigned to names. A name that was forgotten and occurred again has several
    /// numbers.
    fn len(&self) -> u32 {
        self.next
    }
}

/// Returns the row that an index stores for a game with the given tags, and the names of White, Black and the event.
#[cfg(test)]
pub(crate) fn facts_of(tags: &Tags<'_>) -> (GameRow, [Box<str>; 3]) {
    let mut facts = GameFacts::default();
    facts.add(tags, GameOffset::Moves(0));
    (facts.rows[0], facts.names.remove(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_text_of_bounded_length() {
        assert_eq!(&*name_of(Some(b"M\xfcller,\nHans")), "Müller, Hans");
        assert_eq!(&*name_of(None), "?");
        let long = "ü".repeat(names::LONGEST_NAME);
        assert_eq!(name_of(Some(long.as_bytes())).len(), names::LONGEST_NAME);
        let latin = vec![0xfc; 2 * names::LONGEST_NAME];
        assert_eq!(name_of(Some(&latin)).len(), names::LONGEST_NAME);
    }

    #[test]
    fn names_get_one_number_each() {
        let mut namer = Namer::default();
        assert_eq!(namer.number("a"), (0, true));
        assert_eq!(namer.number("b"), (1, true));
        assert_eq!(namer.number("a"), (0, false));
        assert_eq!(namer.len(), 2);
    }

    #[test]
    fn an_index_has_a_limited_number_of_names() {
        let [mut full, mut second] =
            [0, 1].map(|_| StoredGames::new(1 << 10, std::env::temp_dir()));
        full.namer.next = u32::MAX;
        let err = full.keep_name("Ann").unwrap_err().to_string();
        assert!(err.contains("make several indexes"), "{err}");
        second.keep_name("Ann").unwrap();
    }

    #[test]
    fn memory_is_bounded() {
        let mut namer = Namer::default();
        for i in 0..2 * MAX_REMEMBERED_NAMES {
            namer.number(&format!("{}", i % (3 * MAX_REMEMBERED_NAMES / 2)));
            assert!(namer.known.len() <= MAX_REMEMBERED_NAMES);
        }
    }
}
