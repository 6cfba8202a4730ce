//! Reads and writes OOBS databases, which are opening books in SQLite files with the wins, draws and losses of each
//! move. OOBS is the [Open Opening Book Standard](https://github.com/nguyenpham/oobs).
//!
//! A row of the table `Book` describes one move in one position. It contains the EPD of the position, the move in
//! coordinate notation (`e2e4`, `e1g1`, `e7e8q`), and the numbers of games that the side to move won, drew and lost
//! after playing the move. A move may be played only if the lowest bit of its column `Active` is set. The table `Info`
//! describes the database, for example its variant and number of rows.
//!
//! polybook never changes a database in place. Readers open a database read-only, and [`ObsWriter`] writes a new file.
//! The new file replaces an old database only if no other program has the old one open. Otherwise the run fails, and
//! the old database is unchanged.
//!
//! ```
//! use polybook::{MakeBook, obs::Obs, pgn::Input, position::from_text};
//!
//! # let dir = tempfile::tempdir()?;
//! # let path = dir.path().join("famous.obs.db3");
//! MakeBook::new([Input::file("data/famous.pgn")]).min_game(1).obs(&path).run()?;
//! let obs = Obs::open(&path)?;
//! let moves = obs.moves(&from_text(None, Some("e4"))?)?;
//! assert_eq!(moves[0].mv, "e7e5");
//! assert!(moves[0].stats.games() > 5);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod book_table;
mod connection;
mod database;
mod error;
mod info;
mod merge;
mod rows;
mod writer;

use std::path::Path;

pub(crate) use self::rows::{NOT_LEGAL, position_of};
pub use self::{
    database::{DatabaseFault, Obs, VerifiedDatabase, verify},
    error::ObsError,
    info::Info,
    merge::{ObsMergeSummary, merge_databases},
    rows::{ObsRow, Rows, SkippedRows, legal_move},
    writer::{ObsSummary, ObsWriter},
};

use crate::{
    error::{At, Error, Result},
    storage::output::check_not_in_use,
};

/// Checks whether a new OOBS database may replace the file at `path`. An empty file may always be replaced. An OOBS
/// database may be replaced only if `force` is `true`.
///
/// # Errors
///
/// Returns an error if the file must not be replaced: if it is not an OOBS database, if another program has it open, or
/// if it is an OOBS database and `force` is `false`.
fn check_replaceable(path: &Path, force: bool) -> Result<()> {
    let metadata = path.metadata().at(path, "open")?;
    if metadata.is_file() && metadata.len() == 0 {
        return Ok(());
    }
    let target = path.canonicalize().at(path, "open")?;
    check_not_in_use(&target, path)?;
    if !database::is_database(path)? {
        return Err(Error::foreign(
            path,
            "this file exists and is not an OOBS database: choose another file",
        ));
    }
    if force {
        return Ok(());
    }
    Err(Error::exists(path))
}
