//! Opening a database and looking up keys.

use std::{
    collections::BTreeSet,
    ffi::OsStr,
    fs,
    path::{Path, PathBuf},
};

use super::{
    Damage,
    files::{self, Tables},
    log::Memtable,
    manifest::{self, TableFile, Version},
    table::LastBlocks,
};
use crate::error::{At, Error, Result};

impl Damage {
    /// Converts the damage to an error that names the file `path` and the offset of the damage.
    pub(super) fn of(self, path: &Path) -> Error {
        Error::damaged(
            path,
            format!(
                "is damaged at byte {}: {}; make the index again",
                self.offset, self.problem
            ),
        )
    }
}

/// A LevelDB database that is open for reading.
///
/// Reading never writes a file, not even a lock or a log. The database may therefore be on a read-only medium, and
/// several programs may read it at the same time.
#[derive(Debug)]
pub(crate) struct Database {
    pub(super) version: Version,
    pub(super) tables: Tables,
    last: LastBlocks,
    pub(super) memtable: Memtable,
}

impl Database {
    /// Opens the database in `directory`.
    ///
    /// # Errors
    ///
    /// Returns an error if the manifest, a log or a table cannot be read or is damaged, or if a required log is
    /// missing.
    pub(crate) fn open(directory: &Path) -> Result<Database> {
        let version = Version::read(directory)?;
        Ok(Database {
            memtable: read_logs(directory, &version)?,
            tables: Tables::open(directory, version.tables())?,
            last: LastBlocks::default(),
            version,
        })
    }

    /// Returns the names that files of the database in `directory` may have. They are the names of its manifest, its
    /// logs and its tables, and the names that occur in every LevelDB database. Each table is included with both
    /// extensions that LevelDB uses, `.ldb` and `.sst`.
    ///
    /// # Errors
    ///
    /// Returns an error if the manifest or the directory cannot be read, or if the manifest is damaged.
    pub(crate) fn names_in(directory: &Path) -> Result<BTreeSet<String>> {
        let version = Version::read(directory)?;
        let manifest = manifest::name_in(directory)?;
        let mut names = BTreeSet::from([manifest]);
        names.extend(OWN_NAMES.map(str::to_owned));
        for table in version.tables() {
            names.insert(TableFile::name(table.number));
            names.insert(TableFile::old_name(table.number));
        }
        let logs = logs(directory, &version)?.into_iter();
        names.extend(logs.filter_map(|(_, path)| path.file_name()?.to_str().map(str::to_owned)));
        Ok(names)
    }

    /// Returns the size of each table's file in bytes.
    pub(crate) fn table_sizes(&self) -> Vec<u64> {
        self.version.tables().map(|table| table.size).collect()
    }

    /// Verifies the checksums of each table's metaindex and of the blocks that the metaindex lists, such as filters.
    ///
    /// # Errors
    ///
    /// Returns an error if a table cannot be read, or if one of the verified blocks is damaged.
    pub(crate) fn check_metadata(&self) -> Result<()> {
        let mut tables = self.version.tables();
        tables.try_for_each(|table| self.tables.get(table.number)?.check_metadata())
    }

    /// Returns `true` if the database has no tables and no entries in a log.
    pub(crate) fn is_empty(&self) -> bool {
        self.memtable.is_empty() && self.version.tables().next().is_none()
    }

    /// Returns the newest value of a key, or `None` if the database does not contain the key or it was deleted.
    ///
    /// # Errors
    ///
    /// Returns an error if a table cannot be read or is damaged.
    pub(crate) fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>> {
        // Newer entries hide older ones: first the logs, then the first level from its newest table on, then the other
        // levels.
        if let Some(value) = self.memtable.get(key) {
            return Ok(value.map(<[u8]>::to_vec));
        }
        let [first, others @ ..] = &self.version.levels;
        let overlapping = first
            .iter()
            .filter(|table| (&table.first_key[..]..=&table.last_key[..]).contains(&key));
        let of_levels = others.iter().filter_map(|level| {
            let at = level.partition_point(|table| table.last_key[..] < *key);
            level.get(at).filter(|table| table.first_key[..] <= *key)
        });
        for table in overlapping.chain(of_levels) {
            if let Some(value) = self.tables.get(table.number)?.get(key, &self.last)? {
                return Ok(value);
            }
        }
        Ok(None)
    }
}

/// Returns the number and the path of each log file that contains entries not yet moved to a table, sorted by number.
fn logs(directory: &Path, version: &Version) -> Result<Vec<(u64, PathBuf)>> {
    let mut logs = Vec::new();
    for entry in fs::read_dir(directory).at(directory, "read")? {
        let path = entry.at(directory, "read")?.path();
        if let Some(number) = log_number(&path)
            && version.needs_log(number)
        {
            logs.push((number, path));
        }
    }
    logs.sort();
    Ok(logs)
}

/// Reads the entries of all log files that have not been moved to a table yet.
///
/// # Errors
///
/// Returns an error if a log cannot be read or is damaged, or if a log that must exist according to the manifest is
/// missing.
fn read_logs(directory: &Path, version: &Version) -> Result<Memtable> {
    let logs = logs(directory, version)?;
    if let Some(required) = version.required_log()
        && logs.iter().all(|(number, _)| *number != required)
    {
        return Err(Error::damaged(
            directory,
            format!("is damaged: the log {required:06}.log is missing; make the index again"),
        ));
    }
    let mut memtable = Memtable::default();
    for (_, path) in logs {
        let bytes = files::read_whole(&path)?;
        memtable
            .read_log(&bytes)
            .map_err(|damage| damage.of(&path))?;
    }
    Ok(memtable)
}

/// The names of files that are the same in every LevelDB database.
const OWN_NAMES: [&str; 4] = ["CURRENT", "LOCK", "LOG", "LOG.old"];

/// Returns `true` if `name` is a name that LevelDB may give to a file of a database.
pub(crate) fn is_file_of_database(name: &OsStr) -> bool {
    let Some(name) = name.to_str() else {
        return false;
    };
    let is_number = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    match name.rsplit_once('.') {
        Some((number, "ldb" | "sst" | "log" | "dbtmp")) => is_number(number),
        _ => OWN_NAMES.contains(&name) || manifest::is_manifest(name),
    }
}

/// Returns the number in the file name of a log, or `None` if `path` is not the path of a log.
fn log_number(path: &Path) -> Option<u64> {
    let is_log = path.extension()? == "log";
    is_log.then(|| path.file_stem()?.to_str()?.parse().ok())?
}
