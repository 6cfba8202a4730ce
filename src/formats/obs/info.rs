//! Reads and writes the table `Info` of an OOBS database, which describes the database.

use std::path::Path;

use rusqlite::{Connection, types::ValueRef};
use shakmaty::Color;

use super::error::{CHECKSUM, ObsError, Sql};
use crate::{
    chess::position::Variant,
    error::Result,
    formats::counts::MoveFilter,
    provenance::{GameCounts, INPUT_SEPARATOR, Provenance, shortened},
    storage::checksum::Checksum,
};

/// The version of the OOBS standard that polybook writes to the table `Info` of databases. The tool that comes with the
/// standard writes the same version.
const VERSION: &str = "0.1";

/// The name of standard chess in the table `Info` of an OOBS database.
const STANDARD: &str = "standard";

/// The beginning of the value `Generator` in the table `Info` of databases that polybook writes. The version of
/// polybook follows.
const GENERATOR: &str = "polybook ";

/// The separator between the values of different databases in the table `Info` of a merged database. The separator can
/// occur in two rows: `Options` (the options with which each database was made) and `Dropped` (the move filter of each
/// database).
const OPTION_SEPARATOR: &str = " | ";

/// The names of the rows that polybook reads from the table `Info` of an OOBS database.
const KNOWN_ROWS: [&str; 10] = [
    "Variant",
    "Generator",
    "Input",
    "Games",
    "Options",
    "MinGame",
    "MinScore",
    "Only",
    "Dropped",
    CHECKSUM,
];

/// The maximum length in bytes of a value in the table `Info` of an OOBS database. When polybook reads a longer value,
/// it ignores the rest.
const MAX_VALUE_BYTES: usize = 1 << 16;

/// The maximum length in bytes of a string that polybook writes to the table `Info`, such as the list of inputs. A
/// longer list is shortened, and the number of omitted inputs is appended. [`MAX_VALUE_BYTES`] leaves room for this
/// number.
const MAX_TEXT_BYTES: usize = MAX_VALUE_BYTES - 64;

/// The description of an OOBS database, stored in its table `Info`.
///
/// The Open Opening Book Standard defines the rows `Version`, `Variant` and `ItemCount`. polybook adds rows that
/// describe the origin of the database:
///
/// - `Input`, `Games` and `Options`: the input files, the number of games and the options, as in the header of a book;
/// - `MinGame`, `MinScore` and `Only`: the filter that selected the moves (minimum number of games, minimum score in
///   percent, and the side whose moves were kept);
/// - `Dropped`: the filters of merged databases as text, if these filters differ;
/// - `Checksum`: a checksum of the rows, which [`verify`](crate::formats::obs::verify) checks.
#[derive(Clone, PartialEq, Debug)]
pub struct Info {
    /// The name of the chess variant, which is `standard` for standard chess.
    pub variant: String,
    /// The origin of the results: input files, number of games, and options.
    pub provenance: Provenance,
    /// The filter that selected the moves. Every row passes this filter.
    pub move_filter: MoveFilter,
    /// The filters of merged databases as text, if `move_filter` does not describe them all.
    pub(crate) dropped: Option<String>,
}

impl Info {
    /// Creates the description of a new database with positions of `variant`. `provenance` is the origin of its
    /// results, and `move_filter` is the filter that selects its moves.
    pub fn new(variant: Variant, provenance: Provenance, move_filter: &MoveFilter) -> Info {
        Info {
            variant: match variant {
                Variant::Standard => STANDARD.to_owned(),
                variant => variant.name().to_owned(),
            },
            provenance,
            move_filter: move_filter.clone(),
            dropped: None,
        }
    }

    /// Returns `true` if the database contains positions of `variant`, or of a variant with the same legal moves. An
    /// unknown name of a variant is treated as standard chess.
    pub fn is_for(&self, variant: Variant) -> bool {
        variant.is_played_like(self.variant.parse().unwrap_or_default())
    }

    /// Returns the command-line options that excluded moves from the database, for example a minimum number of games.
    /// Returns `None` if no options excluded moves.
    pub fn dropped(&self) -> Option<String> {
        let dropped = self.dropped.clone();
        dropped.or_else(|| self.move_filter.pruning_text())
    }

    /// Writes the description to the table `Info`. `rows` is the number of rows in the table `Book`. `checksum` is the
    /// checksum of the rows of `Book`. The rows of `Info` are added to this checksum, and the result is written as the
    /// last row of `Info`.
    pub(super) fn write(
        &self,
        db: &Connection,
        rows: u64,
        mut checksum: Checksum,
    ) -> rusqlite::Result<()> {
        let mut insert = db.prepare("INSERT INTO Info (Name, Value) VALUES (?1, ?2)")?;
        let mut say = |name: &str, value: &str| {
            checksum.add(format!("{name}\t{value}").as_bytes());
            insert.execute([name, value])
        };
        say("Version", VERSION)?;
        say("Variant", &self.variant)?;
        say("ItemCount", &rows.to_string())?;
        let inputs = self.provenance.input_names(MAX_TEXT_BYTES, str::to_owned);
        let Provenance { games, options, .. } = &self.provenance;
        let generator = format!("{GENERATOR}{}", env!("CARGO_PKG_VERSION"));
        say("Generator", &generator)?;
        say("Input", &inputs)?;
        if let Some(games) = games {
            say("Games", &games.to_string())?;
        }
        say("Options", &shortened(options, MAX_TEXT_BYTES))?;
        say("MinGame", &self.move_filter.min_game.to_string())?;
        if self.move_filter.min_score > 0.0 {
            say("MinScore", &self.move_filter.min_score.to_string())?;
        }
        match self.move_filter.only {
            Some(Color::White) => say("Only", "white")?,
            Some(Color::Black) => say("Only", "black")?,
            None => 0,
        };
        if let Some(dropped) = &self.dropped {
            say("Dropped", &shortened(dropped, MAX_TEXT_BYTES))?;
        }
        insert.execute([CHECKSUM, &checksum.to_string()])?;
        Ok(())
    }

    /// Reads the description from the table `Info` of the database at `path`. Returns a default description if the
    /// table does not exist.
    ///
    /// If another program wrote the database, reads only the variant, because the other values may have a different
    /// meaning there.
    ///
    /// # Errors
    ///
    /// Returns an error if the database cannot be read, or if polybook wrote it and a value is malformed.
    pub(super) fn read(db: &Connection, path: &Path) -> Result<Info> {
        let rows = InfoValues::of(db).sql(path, "read")?;
        let variant = rows.get("Variant").unwrap_or(STANDARD).to_owned();
        let is_ours = rows
            .get("Generator")
            .is_some_and(|generator| generator.starts_with(GENERATOR));
        if !is_ours {
            let name = path.file_name().unwrap_or(path.as_os_str());
            return Ok(Info {
                variant,
                provenance: Provenance {
                    inputs: vec![name.to_string_lossy().into_owned()],
                    ..Provenance::default()
                },
                move_filter: MoveFilter::every_move(),
                dropped: None,
            });
        }
        let own = || -> Result<Info, ObsError> {
            Ok(Info {
                variant,
                provenance: rows.provenance()?,
                move_filter: rows.move_filter()?,
                dropped: rows.get("Dropped").map(str::to_owned),
            })
        };
        own().map_err(|err| err.at(path))
    }

    /// Merges `other` into this description of a database. The result describes a database that contains the games of
    /// both databases.
    pub(super) fn join(&mut self, other: &Info) {
        let theirs = &other.provenance;
        let ours = &mut self.provenance;
        ours.inputs.extend(theirs.inputs.iter().cloned());
        ours.games = ours.games.zip(theirs.games).map(|(mut sum, more)| {
            sum += more;
            sum
        });
        if ours.options != theirs.options && ours.options.len() <= MAX_TEXT_BYTES {
            ours.options = format!("{}{OPTION_SEPARATOR}{}", ours.options, theirs.options);
        }
        // A filter left out moves of one database only, and the other database may contain games with these moves. So
        // the description lists both filters.
        let mut dropped = self.dropped().unwrap_or_default();
        for filter in other
            .dropped()
            .iter()
            .flat_map(|text| text.split(OPTION_SEPARATOR))
        {
            let is_known = dropped.split(OPTION_SEPARATOR).any(|known| known == filter);
            if !is_known && dropped.len() <= MAX_TEXT_BYTES {
                if !dropped.is_empty() {
                    dropped.push_str(OPTION_SEPARATOR);
                }
                dropped.push_str(filter);
            }
        }
        self.move_filter.widen(&other.move_filter);
        let says_more = self.move_filter.pruning_text().unwrap_or_default() != dropped;
        self.dropped = says_more.then_some(dropped);
    }
}

/// The rows of the table `Info` of a database, as pairs of a name and a value. Rows with names that polybook does not
/// know are omitted.
struct InfoValues(Vec<(String, String)>);

impl InfoValues {
    fn of(db: &Connection) -> rusqlite::Result<InfoValues> {
        if !db.table_exists(None, "Info")? {
            return Ok(InfoValues(Vec::new()));
        }
        let query = format!(
            "SELECT CAST(Name AS TEXT), substr(CAST(Value AS BLOB), 1, {MAX_VALUE_BYTES}) FROM Info NOT INDEXED
             WHERE CAST(Name AS TEXT) COLLATE NOCASE IN ('{}') AND Value IS NOT NULL LIMIT 1000",
            KNOWN_ROWS.join("', '")
        );
        let mut statement = db.prepare(&query)?;
        let mut found = statement.query([])?;
        let mut rows = InfoValues(Vec::new());
        while let Some(row) = found.next()? {
            let name: String = row.get(0)?;
            if rows.get(&name).is_none() {
                // rusqlite returns an empty blob as NULL.
                let value = row.get_ref(1)?.as_bytes_or_null()?.unwrap_or_default();
                let value = String::from_utf8_lossy(value).into_owned();
                rows.0.push((name, value));
            }
        }
        Ok(rows)
    }

    fn get(&self, name: &str) -> Option<&str> {
        let mut rows = self.0.iter();
        let row = rows.find(|(known, _)| known.eq_ignore_ascii_case(name));
        row.map(|(_, value)| value.as_str())
    }

    /// Returns the value of the row `name` of the table `Info`, converted by `read`. Returns `None` if the row does not
    /// exist.
    ///
    /// # Errors
    ///
    /// Returns an error if the row exists but `read` returns `None`.
    fn parsed<T>(
        &self,
        name: &'static str,
        read: impl FnOnce(&str) -> Option<T>,
    ) -> Result<Option<T>, ObsError> {
        let Some(value) = self.get(name) else {
            return Ok(None);
        };
        match read(value.trim()) {
            Some(parsed) => Ok(Some(parsed)),
            None => Err(ObsError::UnknownInfo {
                name,
                value: value.to_owned(),
            }),
        }
    }

    /// Returns the origin of the results: input files, number of games, and options.
    fn provenance(&self) -> Result<Provenance, ObsError> {
        let inputs = self.get("Input").map(|names| names.split(INPUT_SEPARATOR));
        Ok(Provenance {
            inputs: inputs.into_iter().flatten().map(str::to_owned).collect(),
            games: self.parsed("Games", GameCounts::from_text)?,
            options: self.get("Options").unwrap_or_default().to_owned(),
        })
    }

    /// Returns the filter that selected the moves of the database.
    fn move_filter(&self) -> Result<MoveFilter, ObsError> {
        let mut move_filter = MoveFilter::every_move();
        if let Some(min_game) = self.parsed("MinGame", |text| text.parse().ok())? {
            move_filter.min_game = min_game;
        }
        let percent = |text: &str| {
            let percent = text.parse::<f64>().ok();
            percent.filter(|percent| (0.0..=100.0).contains(percent))
        };
        if let Some(min_score) = self.parsed("MinScore", percent)? {
            move_filter.min_score = min_score;
        }
        move_filter.only = self.parsed("Only", |text| text.parse().ok())?;
        Ok(move_filter)
    }
}

/// A comparison of two checksums of a database: the one that is stored in the table `Info`, and the one that is
/// calculated from all rows.
#[derive(Default)]
pub(super) struct ChecksumCheck {
    /// The checksum stored in the table `Info`.
    recorded: String,
    sum: Checksum,
    text: Vec<u8>,
}

impl ChecksumCheck {
    /// Begins a comparison of the stored checksum with the calculated checksum. Reads the stored one, and adds the rows
    /// of the table `Info` to the calculated one. The caller must then [add](ChecksumCheck::add) the rows of the table
    /// `Book`. Returns `None` if the database does not contain a checksum.
    pub(super) fn of(db: &Connection) -> rusqlite::Result<Option<ChecksumCheck>> {
        let Some(recorded) = InfoValues::of(db)?.get(CHECKSUM).map(str::to_owned) else {
            return Ok(None);
        };
        let mut check = ChecksumCheck {
            recorded,
            ..ChecksumCheck::default()
        };
        let others = format!("SELECT Name, Value FROM Info NOT INDEXED WHERE Name <> '{CHECKSUM}'");
        let mut statement = db.prepare(&others)?;
        let mut found = statement.query([])?;
        while let Some(row) = found.next()? {
            check.add(row)?;
        }
        Ok(Some(check))
    }

    /// Adds a row of a table to the calculated checksum. The fields of the row are joined to one string, separated by
    /// tabs.
    pub(super) fn add(&mut self, row: &rusqlite::Row<'_>) -> rusqlite::Result<()> {
        let text = &mut self.text;
        text.clear();
        for column in 0..row.as_ref().column_count() {
            if column > 0 {
                text.push(b'\t');
            }
            match row.get_ref(column)? {
                ValueRef::Null => {}
                ValueRef::Integer(number) => {
                    text.extend_from_slice(itoa::Buffer::new().format(number).as_bytes());
                }
                ValueRef::Real(number) => text.extend(number.to_string().into_bytes()),
                ValueRef::Text(bytes) | ValueRef::Blob(bytes) => text.extend_from_slice(bytes),
            }
        }
        self.sum.add(text);
        Ok(())
    }

    /// Returns `true` if the stored checksum equals the calculated one. The caller must have added all rows before.
    pub(super) fn matches(&self) -> bool {
        self.recorded == self.sum.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::formats::obs::writer::TABLES;

    fn info(inputs: impl Iterator<Item = u32>, options: &str) -> Info {
        let provenance = Provenance {
            inputs: inputs.map(|i| format!("games of week {i}.pgn")).collect(),
            games: None,
            options: options.to_owned(),
        };
        Info::new(Variant::Standard, provenance, &MoveFilter::every_move())
    }

    /// Writes an `Info` to a database in memory, and reads it again.
    fn round_trip(info: &Info) -> Info {
        let db = Connection::open_in_memory().unwrap();
        db.execute_batch(TABLES).unwrap();
        info.write(&db, 0, Checksum::default()).unwrap();
        let longest = "SELECT max(octet_length(Value)) FROM Info";
        let longest: u32 = db.query_row(longest, [], |row| row.get(0)).unwrap();
        assert!(longest as usize <= MAX_VALUE_BYTES, "{longest}");
        Info::read(&db, Path::new("a.db3")).unwrap()
    }

    #[test]
    fn few_inputs_come_back_exactly_and_many_are_counted() {
        let few = info(0..100, "--min-elo 2400");
        assert_eq!(round_trip(&few), few);

        let many = round_trip(&info(0..100_000, &"--player Tal ".repeat(100_000)));
        assert!(many.provenance.options.ends_with("..."));
        let named = |info: &Info| {
            let names = info.provenance.inputs.len();
            let last = &info.provenance.inputs[names - 1];
            let (_, more) = last.rsplit_once(" and ").unwrap();
            let more: usize = more.strip_suffix(" more").unwrap().parse().unwrap();
            names + more
        };
        assert_eq!(named(&many), 100_000);
        // Merging respects the maximum length, and does not lose the number of inputs that are not named.
        let mut merged = many.clone();
        merged.join(&info(0..7, "--eco B"));
        merged.join(&many);
        assert_eq!(named(&round_trip(&merged)), 200_007);
        let mut merged = info(0..7, "");
        merged.join(&many);
        assert_eq!(named(&round_trip(&merged)), 100_007);
    }
}
