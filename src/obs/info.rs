//! What a database says of itself: the table `Info`.

use rusqlite::{Connection, OptionalExtension};
use shakmaty::Color;

use crate::{
    position::Variant,
    provenance::{Games, Provenance},
    tally::MoveFilter,
};

/// The version that the standard's own tool gives its databases.
const VERSION: &str = "0.1";

/// The name of standard chess, as the standard's own tool writes it.
const STANDARD: &str = "standard";

/// Separates the names of inputs.
const SEPARATOR: &str = ", ";

/// What a database says of itself.
///
/// `Version`, `Variant` and `ItemCount` are the standard's. The rest is polybook's own, so that
/// a book made of the database can tell where it comes from: `Input`, `Games` and `Options` as in a
/// book's header, and in `MinGame`, `MinScore` and `Only` which moves were left out.
#[derive(Clone, PartialEq, Debug)]
pub struct Info {
    /// The variant of chess; `standard` for what everybody plays.
    pub variant: String,
    /// Where the counts come from.
    pub provenance: Provenance,
    /// Which moves are there.
    pub selection: MoveFilter,
}

impl Info {
    /// For a new database.
    pub fn new(variant: Variant, provenance: Provenance, selection: &MoveFilter) -> Info {
        Info {
            variant: match variant {
                Variant::Standard => STANDARD.to_owned(),
                variant => variant.name().to_owned(),
            },
            provenance,
            selection: selection.clone(),
        }
    }

    pub(super) fn write(&self, db: &Connection, rows: u64) -> rusqlite::Result<()> {
        let mut insert = db.prepare("INSERT INTO Info (Name, Value) VALUES (?1, ?2)")?;
        let mut say = |name: &str, value: &str| insert.execute([name, value]);
        say("Version", VERSION)?;
        say("Variant", &self.variant)?;
        say("ItemCount", &rows.to_string())?;
        let Provenance {
            inputs,
            games,
            options,
        } = &self.provenance;
        let generator = format!("polybook {}", env!("CARGO_PKG_VERSION"));
        say("Generator", &generator)?;
        say("Input", &inputs.join(SEPARATOR))?;
        if let Some(games) = games {
            say("Games", &games.to_string())?;
        }
        say("Options", options)?;
        say("MinGame", &self.selection.min_game.to_string())?;
        if self.selection.min_score > 0.0 {
            say("MinScore", &self.selection.min_score.to_string())?;
        }
        match self.selection.only {
            Some(Color::White) => say("Only", "white")?,
            Some(Color::Black) => say("Only", "black")?,
            None => 0,
        };
        Ok(())
    }

    /// Reads what there is; a database without the table says nothing of itself.
    pub(super) fn read(db: &Connection, name: &str) -> rusqlite::Result<Info> {
        let table = "SELECT 1 FROM sqlite_master WHERE name = 'Info' COLLATE NOCASE";
        let has_info = db.query_row(table, [], |_| Ok(())).optional()?.is_some();
        let value = |name: &str| -> rusqlite::Result<Option<String>> {
            if !has_info {
                return Ok(None);
            }
            let query = "SELECT CAST(Value AS TEXT) FROM Info WHERE Name = ?1 COLLATE NOCASE";
            let value = db.query_row(query, [name], |row| row.get::<_, Option<String>>(0));
            Ok(value.optional()?.flatten())
        };
        let number = |text: Option<String>| text.and_then(|text| text.trim().parse::<u64>().ok());
        let mut selection = MoveFilter::every_move();
        selection.min_game = number(value("MinGame")?).unwrap_or(1);
        selection.min_score = value("MinScore")?
            .and_then(|text| text.parse::<f64>().ok())
            .filter(|percent| (0.0..=100.0).contains(percent))
            .unwrap_or(0.0);
        selection.only = match value("Only")?.as_deref() {
            Some("white") => Some(Color::White),
            Some("black") => Some(Color::Black),
            _ => None,
        };
        let inputs = match value("Input")? {
            Some(inputs) => inputs.split(SEPARATOR).map(str::to_owned).collect(),
            None => vec![name.to_owned()],
        };
        Ok(Info {
            variant: value("Variant")?.unwrap_or_else(|| STANDARD.to_owned()),
            provenance: Provenance {
                inputs,
                games: value("Games")?.and_then(|text| Games::from_text(&text)),
                options: value("Options")?.unwrap_or_default(),
            },
            selection,
        })
    }

    /// What a database says that holds the games of both.
    pub(super) fn join(&mut self, other: &Info) {
        let theirs = &other.provenance;
        let ours = &mut self.provenance;
        ours.inputs.extend(theirs.inputs.iter().cloned());
        ours.games = ours.games.zip(theirs.games).map(|(mut sum, more)| {
            sum += more;
            sum
        });
        if ours.options != theirs.options {
            ours.options = format!("{} | {}", ours.options, theirs.options);
        }
        // A move that one of them lacks may be missing from the sum.
        self.selection.narrowed_by(&other.selection);
    }
}
