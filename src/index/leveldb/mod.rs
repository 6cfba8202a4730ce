//! LevelDB's files, to write and to read: tables, logs, manifests. Nothing here knows of chess.
//!
//! The formats are those of LevelDB's `doc/table_format.md`, `doc/log_format.md` and `doc/impl.md`.
//! [`TableBuilder`] and [`manifest::write`] make a database whose tables are all in the last level,
//! so that there is nothing to compact. [`Database`] reads that, and what LevelDB itself writes too:
//! tables in several levels, and logs that are not yet in a table.
//!
//! Every byte that is read is covered by a checksum, which is verified. A file that is damaged gives an
//! error that names the file and the place, never an answer that leaves something out.

mod block;
mod builder;
mod coding;
mod cursor;
mod database;
mod files;
mod key;
mod log;
mod long;
pub(super) mod manifest;
mod table;
#[cfg(test)]
mod tests;

pub(super) use self::{
    builder::{BLOCK_SIZE, TableBuilder},
    coding::{put_varint, take_size, take_varint},
    cursor::{TableValue, TablesCursor},
    database::{Database, is_file_of_database},
    manifest::{FIRST_TABLE, TableFile},
};

/// What is wrong with a file, and where in it.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
struct Damage {
    offset: u64,
    problem: &'static str,
}
