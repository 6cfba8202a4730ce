//! OOBS, the [Open Opening Book Standard](https://github.com/nguyenpham/oobs): books as SQLite databases
//! that keep wins, draws and losses, in plain words.
//!
//! A row of the table `Book` is a move of a position: the position's EPD, the move in coordinates
//! (`e2e4`, `e1g1`, `e7e8q`), and how many games were won, drawn and lost *by the side to move* when it
//! was played. Only rows whose `Active` has its lowest bit set are to be played. The table `Info` names
//! the variant and counts the rows.
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

mod connection;
mod error;
mod info;
mod merge;
mod read;
mod row;
mod sorted;
mod source;
mod stream;
mod table;
mod verify;
mod walk;
mod write;

use std::{fs::File, io::Read, path::Path};

pub use self::{
    error::ObsError,
    info::Info,
    merge::{ObsMergeSummary, merge_databases},
    read::Obs,
    row::{PassedOver, Row, legal_move},
    stream::Rows,
    verify::{Fault, Verified, verify},
    write::{ObsSummary, ObsWriter},
};
use crate::error::{At, Error, Result};

/// Whether a database may be made where a file is already: over an empty file always, over a database of this
/// schema with `force`.
///
/// # Errors
///
/// [`Error::File`] says why not.
fn check_replaceable(path: &Path, force: bool) -> Result<()> {
    if path
        .metadata()
        .is_ok_and(|metadata| metadata.is_file() && metadata.len() == 0)
    {
        return Ok(());
    }
    refuse_unfinished(&path.canonicalize().at(path, "open")?, path)?;
    if Obs::open(path).is_err() {
        return Err(Error::foreign(
            path,
            "exists and is not an OOBS database: name another file",
        ));
    }
    if force {
        return Ok(());
    }
    Err(Error::exists(path))
}

/// Refuses a place where SQLite would take the changes of another database for those of this one: it finds the journal and
/// the write-ahead log of a database by their names. `resolved` is the file, `path` its name for messages.
fn refuse_unfinished(resolved: &Path, path: &Path) -> Result<()> {
    for ending in ["-wal", "-journal"] {
        let mut next_to_it = resolved.as_os_str().to_owned();
        next_to_it.push(ending);
        if has_changes(Path::new(&next_to_it)) {
            let problem = format!(
                "its {ending} file is next to it: another program has it open or did not finish; open and close it \
                 there, or name another file"
            );
            return Err(Error::changed(path, problem));
        }
    }
    Ok(())
}

/// Whether SQLite may read changes from a file. As SQLite does, this takes one that is empty or begins with a zero for
/// one that is done with.
fn has_changes(path: &Path) -> bool {
    if !path.is_file() {
        return false;
    }
    let mut start = Vec::new();
    let read = File::open(path).and_then(|file| file.take(1).read_to_end(&mut start));
    read.is_err() || start.first().is_some_and(|byte| *byte != 0)
}
