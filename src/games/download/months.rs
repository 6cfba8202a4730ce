//! The months of Chess.com that have been downloaded completely, so that later downloads can skip them.
//!
//! Chess.com sends the games of each month with an `ETag` or a `Last-Modified` date. A later request for the month
//! contains these values. If the month has not changed since, Chess.com answers that, without the games. The values are
//! stored in a JSON file next to the PGN file.

use std::{collections::BTreeMap, fs, io, path::Path};

use serde::{Deserialize, Serialize};

use crate::{
    error::{At, Error, Result},
    storage::output::{AtomicFile, BufferedFile, Finished},
};

/// The marks of the months that have been downloaded completely, for each account and its conditions.
#[derive(Clone, PartialEq, Eq, Default, Debug, Serialize, Deserialize)]
pub(super) struct CompleteMonths {
    #[serde(rename = "polybookDownload")]
    accounts: BTreeMap<String, BTreeMap<String, Marks>>,
    #[serde(skip)]
    is_changed: bool,
}

/// The values by which Chess.com recognizes whether a month has changed: the headers `ETag` and `Last-Modified` of its
/// answer.
#[derive(Clone, PartialEq, Eq, Default, Debug, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct Marks {
    pub etag: Option<String>,
    pub last_modified: Option<String>,
}

impl CompleteMonths {
    /// Reads the marks of the file at `path`. Returns no marks if the file does not exist.
    ///
    /// # Errors
    ///
    /// Returns an error if the file cannot be read, or was not written by [`write`](Months::write).
    pub(super) fn read(path: &Path) -> Result<CompleteMonths> {
        match fs::read(path) {
            Ok(text) => serde_json::from_slice(&text).map_err(|_| {
                let problem = "polybook keeps the complete months of Chess.com in a file of this name, but this file \
                               has other contents: move it away";
                Error::file(path, problem)
            }),
            Err(err) if err.kind() == io::ErrorKind::NotFound => Ok(CompleteMonths::default()),
            Err(err) => Err(err).at(path, "read"),
        }
    }

    /// Returns the marks of a month, such as `2024/05`. `account` is the account, followed by its conditions as
    /// options.
    pub(super) fn get(&self, account: &str, month: &str) -> Option<&Marks> {
        self.accounts.get(account)?.get(month)
    }

    pub(super) fn set(&mut self, account: &str, month: String, marks: Marks) {
        let months = self.accounts.entry(account.to_owned()).or_default();
        self.is_changed |= months.insert(month, marks.clone()) != Some(marks);
    }

    /// Writes the marks to the file at `path`, unless they are unchanged.
    pub(super) fn write(&self, path: &Path) -> Result<Option<Finished>> {
        if !self.is_changed {
            return Ok(None);
        }
        let file = AtomicFile::create_over(path, |old| CompleteMonths::read(old).map(drop))?;
        let mut file = BufferedFile::new(file);
        file.put(
            &serde_json::to_vec_pretty(self)
                .map_err(io::Error::from)
                .at(path, "write")?,
        )?;
        file.put(b"\n")?;
        file.finish().map(Some)
    }
}
