//! The errors of OOBS databases.

use std::{io, path::Path};

use rusqlite::{ErrorCode, ffi};
use thiserror::Error as ThisError;

use crate::{
    error::{Error, Result},
    storage::output::side_file,
};

/// The name of the row in the table `Info` that contains the checksum of the database. The checksum covers all
/// other rows of `Info` and all rows of the table `Book`.
pub(super) const CHECKSUM: &str = "Checksum";

/// An error in the content or structure of an OOBS database. Such an error becomes the source of an [`Error::Format`].
#[derive(Clone, PartialEq, Eq, Debug, ThisError)]
#[non_exhaustive]
pub enum ObsError {
    /// The file is not an SQLite database, because it does not begin with SQLite's header.
    #[error(
        "this file is not an OOBS database, because it is not an SQLite database: give an OOBS database"
    )]
    NotSqlite,
    /// The table `Book` does not exist, or it lacks the named column.
    #[error(
        "this file is not an OOBS database, because it has no table Book with a column {0}: give an OOBS database"
    )]
    MissingColumn(&'static str),
    /// The table `Info` contains a value that polybook cannot read.
    #[error("the table Info contains the unknown value {name} = \"{value}\": correct this row")]
    UnknownInfo {
        /// The name of the row.
        name: &'static str,
        /// The value of the row.
        value: String,
    },
    /// A row contains a number of games that is negative or too large.
    #[error(
        "in the position \"{epd}\", the row of the move \"{mv}\" contains {games} games, which is impossible: correct \
         or delete the row"
    )]
    ImpossibleGames {
        /// The position.
        epd: String,
        /// The move.
        mv: String,
        /// The number of games.
        games: i64,
    },
    /// A row to be written contains more wins, draws or losses than readers accept.
    #[error(
        "in the position \"{epd}\", the move \"{mv}\" has {games} games with the same result, but a row of a database can \
         contain at most {most}: write counts instead of a database, or distribute the games over several databases"
    )]
    TooManyGames {
        /// The position.
        epd: String,
        /// The move.
        mv: String,
        /// The number of games.
        games: u64,
        /// The maximum number of wins, of draws, and of losses in one row.
        most: u64,
    },
    /// A row contains a value that does not fit its column. The string describes the row and the problem.
    #[error("the database contains an invalid row: {0}; correct or delete the row")]
    MalformedRow(String),
    /// A table is a view or a virtual table, or contains generated columns. Reading it would run code from the file.
    #[error(
        "the table {0} is a view or a virtual table, or has generated columns, so polybook does not read it: copy its rows \
         to an ordinary table"
    )]
    NotPlainTable(&'static str),
    /// SQLite found damage, or an index of the table `Book` does not match the table. The string is SQLite's
    /// description.
    #[error("the database is damaged: {0}; use an intact copy, or make the database again")]
    Damaged(String),
    /// The checksum does not match the rows.
    #[error(
        "the checksum in the table Info does not match the rows: the database is damaged, or another program changed it; \
         use an intact copy, or remove the checksum with DELETE FROM Info WHERE Name = '{}'",
        CHECKSUM
    )]
    Checksum,
    /// The databases to merge do not all have the same variant.
    #[error(
        "this database is for {variant}, but the other databases are for {others}: merge only databases of one \
             variant"
    )]
    OtherVariant {
        /// The variant of the database that differs.
        variant: String,
        /// The variant of the previous databases.
        others: String,
    },
    /// There are no databases to merge.
    #[error("no database is given: give the databases to merge")]
    NoInput,
    /// Another file has replaced the database, so no further connection to the first file can be opened.
    #[error("another file has replaced this database while it was open: open the database again")]
    Replaced,
}

impl ObsError {
    /// Converts the error to an [`Error`] about the file `path`.
    pub(super) fn at(self, path: &Path) -> Error {
        Error::format(path, self)
    }
}

/// An extension trait that converts errors in SQLite results to the library's [`Error`].
pub(super) trait Sql<T> {
    /// Converts the SQLite error in this result to an [`Error::Io`] about the file `path`. `doing` is a verb, such as
    /// `read`, that names the failed operation in the error message. An interrupted query becomes
    /// [`Error::Interrupted`].
    fn sql(self, path: &Path, doing: &'static str) -> Result<T>;
}

impl<T> Sql<T> for rusqlite::Result<T> {
    fn sql(self, path: &Path, doing: &'static str) -> Result<T> {
        self.map_err(|err| {
            if err.sqlite_error_code() == Some(ErrorCode::OperationInterrupted) {
                return Error::Interrupted;
            }
            let (doing, source) = match err.sqlite_error_code() {
                // Only a query that sorts writes temporary files, so the disk for temporary files is full.
                Some(ErrorCode::DiskFull) if doing == "read" => {
                    let problem = "the disk for temporary files is full: free some space, or choose another directory \
                                   for temporary files";
                    let source = io::Error::new(io::ErrorKind::StorageFull, problem);
                    ("sort the rows of", source)
                }
                _ => (doing, io_error(err, path)),
            };
            Error::Io {
                path: path.to_owned(),
                doing,
                source,
            }
        })
    }
}

/// Converts an SQLite error about the database at `path` to an I/O error of the corresponding kind, with a
/// message for the user.
fn io_error(err: rusqlite::Error, path: &Path) -> io::Error {
    if let Some(problem) = unfinished(&err, path) {
        return io::Error::other(problem);
    }
    match err.sqlite_error_code() {
        Some(ErrorCode::DiskFull) => io::Error::new(
            io::ErrorKind::StorageFull,
            "the disk is full: free some space, or give a file on another disk",
        ),
        Some(ErrorCode::TooBig) => io::Error::new(
            io::ErrorKind::InvalidData,
            "a row of the database contains more than a megabyte of text: correct or delete the row",
        ),
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => io::Error::new(
            io::ErrorKind::ResourceBusy,
            "another program is writing the database: wait until that program has finished",
        ),
        // SQLite's message contains the name of the temporary output file, which the user does not know.
        Some(ErrorCode::CannotOpen) => io::Error::other("SQLite cannot open the database"),
        // `err.to_string()` already contains the message of the source.
        Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => {
            io::Error::new(io::ErrorKind::InvalidData, err.to_string())
        }
        _ => io::Error::other(err.to_string()),
    }
}

/// Returns a message for the user if the error means that another program left a change to the database unfinished.
/// SQLite must repair such a database before reading it, which a read-only connection cannot do. Returns `None` for any
/// other error.
fn unfinished(err: &rusqlite::Error, path: &Path) -> Option<String> {
    use ffi::{
        SQLITE_CANTOPEN_DIRTYWAL, SQLITE_READONLY_CANTINIT, SQLITE_READONLY_CANTLOCK,
        SQLITE_READONLY_RECOVERY, SQLITE_READONLY_ROLLBACK,
    };
    let (ending, work) = match err.sqlite_error()?.extended_code {
        SQLITE_READONLY_ROLLBACK => ("-journal", "undoes the changes that were begun"),
        SQLITE_READONLY_RECOVERY
        | SQLITE_READONLY_CANTINIT
        | SQLITE_READONLY_CANTLOCK
        | SQLITE_CANTOPEN_DIRTYWAL => ("-wal", "completes the changes"),
        _ => return None,
    };
    // SQLite resolves symbolic links before it appends to the name.
    let database = path.canonicalize();
    let side_file = side_file(database.as_deref().unwrap_or(path), ending);
    let name = side_file.file_name().unwrap_or_default().display();
    Some(format!(
        "the file {name} exists: another program is writing the database, or was interrupted; wait until that program \
         has finished, or run sqlite3 FILE \"PRAGMA schema_version\", which {work}"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_another_program_has_not_finished_is_named_with_its_file() {
        let said = |extended: i32| {
            let failure = rusqlite::Error::SqliteFailure(ffi::Error::new(extended), None);
            let err = Err::<(), _>(failure).sql(Path::new("no/such/a.db3"), "read");
            let Error::Io { source, .. } = err.unwrap_err() else {
                panic!("{extended}");
            };
            source.to_string()
        };
        let journal = said(ffi::SQLITE_READONLY_ROLLBACK);
        assert!(
            journal.starts_with("the file a.db3-journal exists"),
            "{journal}"
        );
        for extended in [
            ffi::SQLITE_READONLY_RECOVERY,
            ffi::SQLITE_READONLY_CANTINIT,
            ffi::SQLITE_READONLY_CANTLOCK,
            ffi::SQLITE_CANTOPEN_DIRTYWAL,
        ] {
            let log = said(extended);
            assert!(log.starts_with("the file a.db3-wal exists"), "{log}");
        }
        for extended in [
            ffi::SQLITE_BUSY,
            ffi::SQLITE_BUSY_RECOVERY,
            ffi::SQLITE_BUSY_SNAPSHOT,
            ffi::SQLITE_LOCKED,
        ] {
            let busy = said(extended);
            assert!(
                busy.contains("wait until that program has finished"),
                "{busy}"
            );
        }
        let dir = tempfile::tempdir().unwrap();
        let open = || rusqlite::Connection::open(dir.path().join("a.db3")).unwrap();
        let (writer, reader) = (open(), open());
        writer.execute_batch("BEGIN EXCLUSIVE").unwrap();
        reader.busy_timeout(std::time::Duration::ZERO).unwrap();
        let read = || reader.execute_batch("PRAGMA schema_version");
        let err = std::error::Error::source(&read().sql(Path::new("a.db3"), "read").unwrap_err())
            .map(ToString::to_string);
        let advice =
            "another program is writing the database: wait until that program has finished";
        assert_eq!(err.as_deref(), Some(advice));
        writer.execute_batch("COMMIT").unwrap();
        read().unwrap();
        // A write-protected database is not reported as unfinished.
        assert!(!said(ffi::SQLITE_READONLY).contains("exists: another program"));
    }

    #[test]
    fn a_full_disk_names_the_file_and_the_reason() {
        let full = rusqlite::Error::SqliteFailure(ffi::Error::new(ffi::SQLITE_FULL), None);
        let err = Err::<(), _>(full)
            .sql(Path::new("a.db3"), "write")
            .unwrap_err();
        let Error::Io { source, .. } = &err else {
            panic!("{err:?}");
        };
        assert_eq!(err.to_string(), "cannot write a.db3");
        assert_eq!(source.kind(), io::ErrorKind::StorageFull);
        assert!(source.to_string().starts_with("the disk is full"));
        let full = rusqlite::Error::SqliteFailure(ffi::Error::new(ffi::SQLITE_FULL), None);
        let err = Err::<(), _>(full)
            .sql(Path::new("a.db3"), "read")
            .unwrap_err();
        assert_eq!(err.to_string(), "cannot sort the rows of a.db3");
    }

    #[test]
    fn damage_is_told_in_the_words_of_sqlite_once() {
        let damage = rusqlite::Error::SqliteFailure(ffi::Error::new(ffi::SQLITE_CORRUPT), None);
        let err = Err::<(), _>(damage)
            .sql(Path::new("a.db3"), "read")
            .unwrap_err();
        let mut chain = vec![err.to_string()];
        let mut cause = std::error::Error::source(&err);
        while let Some(err) = cause {
            chain.push(err.to_string());
            cause = err.source();
        }
        let malformed = chain.iter().filter(|text| text.contains("malformed"));
        assert_eq!(malformed.count(), 1, "{chain:?}");
    }
}
