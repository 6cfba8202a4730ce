//! Reads and writes the manifest of a LevelDB database, which lists the tables of the database with their key ranges.
//!
//! A manifest is a log of edits. [`write`] writes a single edit that adds all tables. LevelDB appends an edit for each
//! change. Applying all edits gives the current version of the database. The file `CURRENT` contains the name of the
//! manifest.

use std::{cmp::Reverse, fs, io, path::Path};

use super::{
    Damage,
    coding::{put_string, put_varint, take_size, take_string, take_varint},
    files::{TableFile, damaged_if_missing, read_whole},
    key, log,
};
use crate::error::{Error, Result};

/// The number of levels of a LevelDB database. Each table belongs to one level.
pub(super) const LEVELS: usize = 7;

/// The level of all tables that polybook writes: the last level, which LevelDB never compacts.
const LAST_LEVEL: u64 = LEVELS as u64 - 1;

/// The number in the file name of the manifest that polybook writes.
const MANIFEST_NUMBER: u64 = 1;
/// The log number that polybook writes to a manifest. No log with this number exists, because all entries are in
/// tables.
const LOG_NUMBER: u64 = 2;

/// The number in the file name of the first table that polybook writes to a database.
pub(crate) const FIRST_TABLE: u64 = 3;

/// The name of the file that contains the name of the current manifest of a database.
const CURRENT: &str = "CURRENT";

/// The name of LevelDB's default comparator, which compares keys byte by byte.
const COMPARATOR: &[u8] = b"leveldb.BytewiseComparator";

/// The numbers that identify the fields of an edit.
mod tag {
    pub(super) const COMPARATOR: u64 = 1;
    pub(super) const LOG_NUMBER: u64 = 2;
    pub(super) const NEXT_NUMBER: u64 = 3;
    pub(super) const LAST_SEQUENCE: u64 = 4;
    pub(super) const COMPACTED_TO: u64 = 5;
    pub(super) const DELETED_TABLE: u64 = 6;
    pub(super) const NEW_TABLE: u64 = 7;
    pub(super) const PREVIOUS_LOG_NUMBER: u64 = 9;
}

/// Writes a manifest that lists `tables`, and a `CURRENT` file that contains the name of the manifest. The key
/// ranges of the tables must not overlap.
///
/// # Errors
///
/// Returns an error if one of the two files cannot be written.
pub(crate) fn write(directory: &Path, tables: &[TableFile]) -> io::Result<()> {
    let name = format!("MANIFEST-{MANIFEST_NUMBER:06}");
    fs::write(directory.join(&name), log::of_record(&edit(tables)))?;
    fs::write(directory.join(CURRENT), format!("{name}\n"))
}

/// Encodes the record of a manifest that adds all tables of a database. LevelDB calls such a record a version edit.
fn edit(tables: &[TableFile]) -> Vec<u8> {
    let mut edit = Vec::new();
    let last_number = tables.iter().map(|table| table.number).max();
    let last_sequence = tables.iter().map(|table| table.last_sequence).max();
    put_varint(&mut edit, tag::COMPARATOR);
    put_string(&mut edit, COMPARATOR);
    for (tag, number) in [
        (tag::LOG_NUMBER, LOG_NUMBER),
        (tag::PREVIOUS_LOG_NUMBER, 0),
        (tag::NEXT_NUMBER, last_number.unwrap_or(LOG_NUMBER) + 1),
        (tag::LAST_SEQUENCE, last_sequence.unwrap_or(0)),
    ] {
        put_varint(&mut edit, tag);
        put_varint(&mut edit, number);
    }
    let mut internal = Vec::new();
    for table in tables {
        for number in [tag::NEW_TABLE, LAST_LEVEL, table.number, table.size] {
            put_varint(&mut edit, number);
        }
        for (key, sequence) in [
            (&table.first_key, table.first_sequence),
            (&table.last_key, table.last_sequence),
        ] {
            internal.clear();
            key::put(&mut internal, key, sequence);
            put_string(&mut edit, &internal);
        }
    }
    edit
}

/// The state of a database according to its manifest, which is a list of edits. An edit is a record that describes
/// changes to the database.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub(super) struct Version {
    comparator: Option<Vec<u8>>,
    next_number: Option<u64>,
    last_sequence: Option<u64>,
    log_number: Option<u64>,
    previous_log_number: u64,
    /// The tables of each level. The tables of the first level may overlap, and are sorted from the newest to the
    /// oldest. The tables of the other levels are sorted by key.
    pub levels: [Vec<TableFile>; LEVELS],
}

impl Version {
    /// Reads the manifest of the database in `directory`.
    ///
    /// # Errors
    ///
    /// Returns an error if `CURRENT` or the manifest cannot be read, or if the manifest is damaged or inconsistent.
    pub(super) fn read(directory: &Path) -> Result<Version> {
        let path = directory.join(name_in(directory)?);
        let bytes = damaged_if_missing(&path, read_whole(&path))?;
        Version::parse(&bytes).map_err(|damage| damage.into_error(&path))
    }

    /// Parses a manifest.
    ///
    /// # Errors
    ///
    /// Returns the problem and its offset if the manifest is damaged or inconsistent.
    fn parse(manifest: &[u8]) -> Result<Version, Damage> {
        let mut version = Version::default();
        for (offset, record) in log::records(manifest)? {
            version
                .apply(&record)
                .map_err(|problem| Damage { offset, problem })?;
        }
        version
            .check()
            .map_err(|problem| Damage { offset: 0, problem })?;
        Ok(version)
    }

    /// Applies an edit to this state. An edit is a record of the manifest that describes changes to the database.
    ///
    /// # Errors
    ///
    /// Returns a description of the problem if the edit is malformed.
    fn apply(&mut self, edit: &[u8]) -> Result<(), &'static str> {
        let mut rest = edit;
        while !rest.is_empty() {
            self.apply_field(&mut rest)
                .ok_or("a record of the manifest is malformed")?;
        }
        Ok(())
    }

    /// Decodes one field of an edit from the front of `rest`, advances `rest` past this field, and applies the field. A
    /// field describes a change, such as a new table. Returns `None` if the field is malformed or unknown.
    fn apply_field(&mut self, rest: &mut &[u8]) -> Option<()> {
        match take_varint(rest)? {
            tag::COMPARATOR => self.comparator = Some(take_string(rest)?.to_vec()),
            tag::LOG_NUMBER => self.log_number = Some(take_varint(rest)?),
            tag::PREVIOUS_LOG_NUMBER => self.previous_log_number = take_varint(rest)?,
            tag::NEXT_NUMBER => self.next_number = Some(take_varint(rest)?),
            tag::LAST_SEQUENCE => self.last_sequence = Some(take_varint(rest)?),
            tag::COMPACTED_TO => {
                self.levels.get(take_size(rest)?)?;
                take_string(rest)?;
            }
            tag::DELETED_TABLE => {
                let level = self.levels.get_mut(take_size(rest)?)?;
                let number = take_varint(rest)?;
                level.retain(|table| table.number != number);
            }
            tag::NEW_TABLE => {
                let level = self.levels.get_mut(take_size(rest)?)?;
                let (number, size) = (take_varint(rest)?, take_varint(rest)?);
                let (first_key, first_sequence, _) = key::parse(take_string(rest)?)?;
                let (last_key, last_sequence, _) = key::parse(take_string(rest)?)?;
                level.push(TableFile {
                    number,
                    size,
                    first_key: first_key.to_vec(),
                    last_key: last_key.to_vec(),
                    first_sequence,
                    last_sequence,
                });
            }
            _ => return None,
        }
        Some(())
    }

    /// Sorts the tables of each level, and checks the manifest: it must contain all required fields, keys must be
    /// compared byte by byte, and the tables of a level must not overlap.
    ///
    /// # Errors
    ///
    /// Returns a description of the problem, for example that two tables overlap.
    fn check(&mut self) -> Result<(), &'static str> {
        if self.comparator.as_deref() != Some(COMPARATOR) {
            return Err("the keys are sorted in an order that polybook does not support");
        }
        if self.log_number.is_none() || self.next_number.is_none() || self.last_sequence.is_none() {
            return Err("the manifest is not complete");
        }
        // The first level is sorted from the newest table to the oldest. In the other levels, the entries of one key
        // may continue in the next table if LevelDB kept old entries for a snapshot. The newest entry is in the first
        // of these tables.
        let [first, others @ ..] = &mut self.levels;
        first.sort_by_key(|table| Reverse(table.number));
        for level in others {
            level.sort_by(|a, b| a.first().cmp(&b.first()));
            let overlap = level
                .windows(2)
                .any(|pair| pair[0].last() >= pair[1].first());
            if overlap {
                return Err("the key ranges of two tables overlap");
            }
        }
        if self.tables().any(|table| table.first() > table.last()) {
            return Err("the last key of a table is before its first key");
        }
        Ok(())
    }

    /// Returns an iterator over the tables of all levels.
    pub(super) fn tables(&self) -> impl Iterator<Item = &TableFile> {
        self.levels.iter().flatten()
    }

    /// Returns `true` if the log with the number `number` must be read, because its entries are not in a table yet.
    pub(super) fn needs_log(&self, number: u64) -> bool {
        self.log_number.is_some_and(|first| number >= first)
            || number == self.previous_log_number && number != 0
    }

    /// Returns the number of the log that must exist, or `None` if no log is required. The log that the manifest names
    /// need not exist if the database is new.
    pub(super) fn required_log(&self) -> Option<u64> {
        self.log_number.filter(|number| *number > LOG_NUMBER)
    }
}

/// Returns the file name of the current manifest of the database in `directory`.
///
/// # Errors
///
/// Returns an error if `CURRENT` cannot be read or does not contain the name of a manifest.
pub(super) fn name_in(directory: &Path) -> Result<String> {
    let current = directory.join(CURRENT);
    let text = read_whole(&current)?;
    str::from_utf8(&text)
        .ok()
        .and_then(|text| text.strip_suffix('\n'))
        .filter(|name| is_manifest(name))
        .map(str::to_owned)
        .ok_or_else(|| {
            Error::damaged(
                &current,
                "this file of the index is damaged: it does not contain the name of a manifest; make the index again",
            )
        })
}

/// Returns `true` if `name` has the form of a manifest's file name, such as `MANIFEST-000001`.
pub(super) fn is_manifest(name: &str) -> bool {
    name.strip_prefix("MANIFEST-").is_some_and(is_number)
}

/// Returns `true` if `text` has the form of a number in a file name of LevelDB: one or more ASCII digits.
pub(super) fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn tables() -> Vec<TableFile> {
        let table = |number: u64, first: &str, last: &str| TableFile {
            number,
            size: 1000 + number,
            first_key: first.into(),
            last_key: last.into(),
            first_sequence: 9,
            last_sequence: 9,
        };
        vec![table(3, "a", "b"), table(4, "c", "c"), table(5, "d", "x")]
    }

    #[test]
    fn what_is_written_comes_back() {
        for (tables, next, last) in [(vec![], 3, 0), (tables(), 6, 9)] {
            let log = log::of_record(&edit(&tables));
            let version = Version::parse(&log).unwrap();
            // LevelDB gives the next number to the next file that it creates.
            assert_eq!(version.next_number, Some(next));
            assert_eq!(version.last_sequence, Some(last));
            assert_eq!(version.levels[6], tables);
            assert!(version.levels[..6].iter().all(Vec::is_empty));
            assert_eq!(version.required_log(), None);
            assert!(!(0..LOG_NUMBER).any(|number| version.needs_log(number)));
        }
    }

    #[test]
    fn tables_may_be_listed_in_any_order() {
        let mut tables = tables();
        tables.reverse();
        let version = Version::parse(&log::of_record(&edit(&tables))).unwrap();
        tables.reverse();
        assert_eq!(version.levels[6], tables);
    }

    #[test]
    fn what_contradicts_itself_is_refused() {
        let mut overlapping = tables();
        overlapping[0].last_key = b"c".to_vec();
        let mut reversed = tables();
        reversed[2].last_key = b"a".to_vec();
        for tables in [overlapping, reversed] {
            assert!(Version::parse(&log::of_record(&edit(&tables))).is_err());
        }
        assert!(Version::parse(b"").is_err());
        // Only an edit with all of these fields describes a database.
        let fields = [tag::LOG_NUMBER, tag::NEXT_NUMBER, tag::LAST_SEQUENCE];
        for missing in fields.map(Some).into_iter().chain([None]) {
            let mut edit = Vec::new();
            put_varint(&mut edit, tag::COMPARATOR);
            put_string(&mut edit, COMPARATOR);
            for tag in fields.into_iter().filter(|tag| Some(*tag) != missing) {
                put_varint(&mut edit, tag);
                put_varint(&mut edit, 5);
            }
            let version = Version::parse(&log::of_record(&edit));
            assert_eq!(version.is_ok(), missing.is_none(), "{missing:?}");
        }
        let mut other_order = edit(&[]);
        other_order[5] ^= 1;
        assert!(Version::parse(&log::of_record(&other_order)).is_err());
    }

    #[test]
    fn versions_of_a_key_may_go_on_in_the_next_table() {
        let mut tables = tables();
        tables[0].last_key = b"c".to_vec();
        for (last, first, is_legal) in [(9, 8, true), (8, 8, false), (8, 9, false)] {
            tables[0].last_sequence = last;
            tables[1].first_sequence = first;
            tables[1].last_sequence = 1;
            let version = Version::parse(&log::of_record(&edit(&tables)));
            assert_eq!(version.is_ok(), is_legal, "{last} before {first}");
        }
    }

    #[test]
    fn logs_that_a_manifest_names() {
        let version = |log_number, previous_log_number| Version {
            log_number: Some(log_number),
            previous_log_number,
            ..Version::default()
        };
        let needed = |version: Version| -> Vec<u64> {
            (0..8).filter(|number| version.needs_log(*number)).collect()
        };
        assert_eq!(needed(version(6, 0)), [6, 7]);
        assert_eq!(needed(version(6, 4)), [4, 6, 7]);
        assert_eq!(version(6, 4).required_log(), Some(6));
        assert_eq!(version(LOG_NUMBER, 0).required_log(), None);
    }

    #[test]
    fn names_of_manifests() {
        assert!(is_manifest("MANIFEST-000001"));
        for name in [
            "MANIFEST-",
            "MANIFEST-1/../x",
            "../MANIFEST-1",
            "CURRENT",
            "",
        ] {
            assert!(!is_manifest(name), "{name}");
        }
    }

    #[test]
    fn the_current_manifest_is_in_the_directory() {
        let dir = tempfile::tempdir().unwrap();
        let current = dir.path().join(CURRENT);
        fs::write(&current, "MANIFEST-000007\n").unwrap();
        assert_eq!(name_in(dir.path()).unwrap(), "MANIFEST-000007");
        for text in [
            &b"../MANIFEST-000007\n"[..],
            b"MANIFEST-000007",
            b"\n",
            b"\xff\n",
        ] {
            fs::write(&current, text).unwrap();
            let err = name_in(dir.path()).unwrap_err().to_string();
            assert!(err.contains("the name of a manifest"), "{err}");
        }
        // A file that is too large for a manifest or a log is not read.
        let file = fs::File::create(&current).unwrap();
        file.set_len((256 << 20) + 1).unwrap();
        let err = name_in(dir.path()).unwrap_err().to_string();
        assert!(err.contains("are possible"), "{err}");
    }

    proptest! {
        #[test]
        fn any_bytes_are_read(bytes: Vec<u8>) {
            let _ = Version::parse(&bytes);
            let _ = Version::parse(&log::of_record(&bytes));
        }

        #[test]
        fn changed_edits_are_read(at: prop::sample::Index, byte: u8) {
            let mut edit = edit(&tables());
            let at = at.index(edit.len());
            edit[at] = byte;
            let _ = Version::parse(&log::of_record(&edit));
        }
    }
}
