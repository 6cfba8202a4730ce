//! Records which games earlier downloads have received, so that later downloads request only games that may be new.
//!
//! The records are stored in a JSON file next to the PGN file, one for each account and its conditions. A record is
//! valid only while the PGN file contains the games, so it also contains their number.

use std::{collections::BTreeMap, fs, io, path::Path};

use serde::{Deserialize, Serialize};

use crate::{
    error::{At, Error, Result},
    storage::output::{AtomicFile, BufferedFile},
};

/// The records of the downloaded games of all accounts.
#[derive(Clone, PartialEq, Eq, Default, Debug, Serialize, Deserialize)]
pub(super) struct Completed {
    #[serde(rename = "polybookDownload")]
    accounts: BTreeMap<String, CompletedAccount>,
}

/// A record of the downloaded games of an account.
#[derive(Clone, PartialEq, Eq, Default, Debug, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct CompletedAccount {
    /// The number of the account's games in the PGN file when the record was made. The file may contain more.
    pub games: u64,
    /// The time up to which all games of a Lichess account have been received, in seconds since 1 January 1970. Games
    /// are ordered by their starting times.
    pub until: Option<i64>,
    /// The months whose games have been received from Chess.com, such as `2024/05`.
    pub months: BTreeMap<String, Marks>,
}

/// The values by which Chess.com recognizes whether the games of a month have changed: the headers `ETag` and
/// `Last-Modified` of its answer. A later request repeats these values, and Chess.com sends the games only if the month
/// has changed since.
#[derive(Clone, PartialEq, Eq, Default, Debug, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct Marks {
    pub etag: Option<String>,
    pub last_modified: Option<String>,
}

impl Completed {
    /// Reads the records in the file at `path`. Returns an empty value if the file does not exist.
    ///
    /// # Errors
    ///
    /// Returns an error if the file cannot be read, or was not written by [`write`](Completed::write).
    pub(super) fn read(path: &Path) -> Result<Completed> {
        match fs::read(path) {
            Ok(text) => serde_json::from_slice(&text).map_err(|_| {
                let problem = "polybook keeps what it has downloaded in a file of this name, but this file has other \
                               contents: move it away";
                Error::file(path, problem)
            }),
            Err(err) if err.kind() == io::ErrorKind::NotFound => Ok(Completed::default()),
            Err(err) => Err(err).at(path, "read"),
        }
    }

    /// Returns the record of an account. `key` contains the name of the account and its conditions, and `games` is the
    /// number of its games in the PGN file. Returns an empty record if there is none, or if games have been removed
    /// from the PGN file.
    pub(super) fn get(&self, key: &str, games: u64) -> CompletedAccount {
        let known = self.accounts.get(key).filter(|known| known.games <= games);
        known.cloned().unwrap_or_default()
    }

    pub(super) fn set(&mut self, key: &str, account: CompletedAccount) {
        self.accounts.insert(key.to_owned(), account);
    }

    /// Replaces the file at `path` with these records.
    pub(super) fn write(&self, path: &Path) -> Result<()> {
        let mut file = BufferedFile::new(AtomicFile::create(path)?);
        let text = serde_json::to_vec_pretty(self).map_err(io::Error::from);
        file.put(&text.at(path, "write")?)?;
        file.put(b"\n")?;
        file.commit()
    }
}
