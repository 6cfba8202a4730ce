//! Reads and writes LevelDB databases. This module is independent of chess.
//!
//! LevelDB's `doc/table_format.md`, `doc/log_format.md` and `doc/impl.md` describe the file formats.
//!
//! [`TableBuilder`] and [`manifest::write`] write a database. All of its tables are in the last level and do not
//! overlap, so LevelDB never compacts it. [`Database`] opens such a database, or a database that another LevelDB
//! program has written, with tables in several levels and entries in logs. [`Database::get`] looks up one key.
//! [`Database::entries`] iterates in ascending order of keys.
//!
//! Checksums are verified for all bytes that are read. A damaged file causes an error that names the file and the
//! offset, and never a wrong result of a lookup.
//!
//! polybook does not write indexes with a LevelDB library, because such a library first writes every entry to a log, on
//! one thread. An open database normally keeps its files open, so it can still be read if another run replaces it.

mod block;
mod coding;
mod database;
mod files;
mod key;
mod log;
pub(crate) mod manifest;
mod table;
#[cfg(test)]
mod tests;

pub(crate) use self::{
    coding::{put_varint, take_size, take_varint},
    database::{Database, TableValue, is_file_of_database},
    files::TableFile,
    manifest::FIRST_TABLE,
    table::{BLOCK_SIZE, TableBuilder},
};

/// A problem in a file, and the byte offset at which it was found.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
struct Damage {
    offset: u64,
    problem: &'static str,
}
