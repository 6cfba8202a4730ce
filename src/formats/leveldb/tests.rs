//! Tests of tables and databases against `rusty-leveldb`, an independent implementation.

use std::{collections::BTreeMap, fs, path::Path, rc::Rc, sync::Arc};

use proptest::{collection::vec, prelude::*};
use rusty_leveldb::{
    CompressorId, DB, LdbIterator, MemEnv, Options, WriteBatch, compressor::SnappyCompressor,
    env::Env,
};

use super::{
    Database, FIRST_TABLE, TableBuilder, TableFile, TableValue,
    block::{Block, BlockBuilder, EntryState},
    coding::{put_string, take_size},
    database::{TableCursor, Tables},
    log, manifest,
    table::{BLOCK_TRAILER_SIZE, BlockCache, FOOTER_SIZE, MAGIC},
};

type EntryMap = BTreeMap<Vec<u8>, Vec<u8>>;

/// Returns the table that `rusty-leveldb` writes for `entries`.
fn foreign_table(entries: &EntryMap) -> Vec<u8> {
    let directory = Path::new("table");
    let env: Rc<Box<dyn Env>> = Rc::new(Box::new(MemEnv::new()));
    let mut batch = WriteBatch::default();
    for (key, value) in entries {
        batch.put(key, value);
    }
    let options = Options {
        env: Rc::clone(&env),
        compressor: SnappyCompressor::ID,
        write_buffer_size: usize::MAX,
        max_file_size: usize::MAX,
        ..Options::default()
    };
    let mut db = DB::open(directory, options).unwrap();
    db.write(batch, false).unwrap();
    let (first, last) = (
        entries.first_key_value().unwrap(),
        entries.last_key_value().unwrap(),
    );
    db.compact_range(first.0, last.0).unwrap();
    let mut table = Vec::new();
    for child in env.children(directory).unwrap() {
        if child
            .extension()
            .is_some_and(|extension| extension == "ldb")
        {
            let mut file = env.open_sequential_file(&directory.join(child)).unwrap();
            file.read_to_end(&mut table).unwrap();
        }
    }
    table
}

/// Returns the table that [`TableBuilder`] writes for `entries`, and its description.
fn our_table(number: u64, entries: &EntryMap) -> (TableFile, Vec<u8>) {
    let mut bytes = Vec::new();
    let mut builder = TableBuilder::new(&mut bytes);
    for (key, value) in entries {
        builder.add(key, value).unwrap();
    }
    (builder.finish(number).unwrap(), bytes)
}

/// Returns the offset of a table's metaindex and the stored bytes of its index. In our tables the metaindex follows the
/// last data block; `rusty-leveldb` writes filters between them.
fn end_and_index(table: &[u8]) -> (usize, &[u8]) {
    let mut footer = &table[table.len() - FOOTER_SIZE..];
    let mut next = || take_size(&mut footer).unwrap();
    let (end, _, index, size) = (next(), next(), next(), next());
    let (padding, _) = footer.split_at(footer.len() - MAGIC.len());
    assert!(padding.iter().all(|byte| *byte == 0));
    (end, &table[index..index + size + BLOCK_TRAILER_SIZE])
}

/// Writes a database with a table for every `per_table` entries.
fn our_database(entries: &EntryMap, per_table: usize) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    let all: Vec<_> = entries.clone().into_iter().collect();
    let mut tables = Vec::new();
    for (number, some) in (FIRST_TABLE..).zip(all.chunks(per_table)) {
        let (table, bytes) = our_table(number, &some.iter().cloned().collect());
        fs::write(dir.path().join(TableFile::name(number)), bytes).unwrap();
        tables.push(table);
    }
    manifest::write(dir.path(), &tables).unwrap();
    dir
}

fn keys() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        "[0-9]{1,20}(_freq|_draws|_moves|_white_score)?".prop_map(String::into_bytes),
        "game_[0-9]{1,8}_data".prop_map(String::into_bytes),
        // Null bytes are left out because `rusty-leveldb` loses a key that equals the previous one followed by a null
        // byte.
        vec(
            prop_oneof![Just(1), Just(0xff), Just(0xfe), 1..=u8::MAX],
            1..12
        ),
    ]
}

fn values() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        8 => "([0-9]{1,6},){1,20}".prop_map(String::into_bytes),
        4 => vec(any::<u8>(), 0..300),
        1 => (vec(any::<u8>(), 1..9), 0..40_000usize).prop_map(|(some, times)| some.repeat(times)),
    ]
}

fn entries() -> impl Strategy<Value = EntryMap> {
    proptest::collection::btree_map(keys(), values(), 1..400)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn tables_are_those_of_rusty_leveldb(entries in entries()) {
        let (ours, theirs) = (our_table(3, &entries).1, foreign_table(&entries));
        let (end, index) = end_and_index(&ours);
        prop_assert!(ours[..end] == theirs[..end]);
        prop_assert!(index == end_and_index(&theirs).1);
    }

    #[test]
    fn values_in_parts_make_the_same_table(entries in entries(), part in prop_oneof![1..10usize, 1000..200_000usize]) {
        let mut bytes = Vec::new();
        let mut builder = TableBuilder::new(&mut bytes);
        for (key, value) in &entries {
            // `add_long` ends the block after its value, as `add` does only after a long one.
            if value.len() > 5000 {
                let put = |out: &mut dyn FnMut(&[u8]) -> std::io::Result<()>| value.chunks(part).try_for_each(out);
                builder.add_long(key, value.len(), put).unwrap();
            } else {
                builder.add(key, value).unwrap();
            }
        }
        let (table, expected) = our_table(3, &entries);
        prop_assert_eq!(builder.finish(3).unwrap(), table);
        prop_assert!(bytes == expected);
    }

    #[test]
    fn what_is_written_is_read_by_both(entries in entries(), per_table in 1..200usize, strangers in vec(keys(), 20)) {
        let dir = our_database(&entries, per_table);
        let database = Database::open(dir.path()).unwrap();
        for (key, value) in &entries {
            prop_assert_eq!(database.get(key).unwrap(), Some(value.clone()));
        }
        for key in strangers {
            prop_assert_eq!(database.get(&key).unwrap(), entries.get(&key).cloned());
        }
        drop(database);

        let options = Options { create_if_missing: false, ..Options::default() };
        let mut foreign = DB::open(dir.path(), options).unwrap();
        let mut iterator = foreign.new_iter().unwrap();
        for (key, value) in &entries {
            prop_assert_eq!(iterator.next(), Some((key.clone(), value.clone())));
        }
        prop_assert!(iterator.next().is_none());
    }

    #[cfg_attr(windows, ignore = "there rusty-leveldb cannot unlock what it made")]
    #[test]
    fn what_leveldb_wrote_is_read(changes in vec(vec((keys(), prop::option::of(values())), 1..60), 1..8), strangers in vec(keys(), 20)) {
        let dir = tempfile::tempdir().unwrap();
        let mut expected = EntryMap::new();
        // The sizes are small enough for a log and tables in several levels.
        let options = Options { write_buffer_size: 40_000, max_file_size: 30_000, ..Options::default() };
        for batch in changes {
            let mut db = DB::open(dir.path(), options.clone()).unwrap();
            for (key, value) in batch {
                match value {
                    Some(value) => {
                        db.put(&key, &value).unwrap();
                        expected.insert(key, value);
                    }
                    None => {
                        db.delete(&key).unwrap();
                        expected.remove(&key);
                    }
                }
            }
            db.close().unwrap();
        }
        let database = Database::open(dir.path()).unwrap();
        prop_assert_eq!(&all_entries(&database), &expected);
        for (key, value) in &expected {
            prop_assert_eq!(database.get(key).unwrap(), Some(value.clone()));
        }
        for key in strangers {
            prop_assert_eq!(database.get(&key).unwrap(), expected.get(&key).cloned());
        }
    }

    #[test]
    fn any_bytes_are_a_table_or_an_error(mut bytes in vec(any::<u8>(), 0..300), has_footer: bool, offset in 0..128u8, size in 0..300u16, key in keys()) {
        if has_footer {
            let mut footer = vec![0, 0, offset, (size & 0x7f) as u8 | 0x80, (size >> 7) as u8];
            footer.resize(40, 0);
            footer.extend_from_slice(&MAGIC);
            bytes.extend(footer);
        }
        check_bytes(bytes, &key);
    }

    #[test]
    fn blocks_that_are_not_well_formed_are_errors(mut block in vec(prop_oneof![0..4u8, any::<u8>()], 4..200), compression in 0..3u8, key in keys()) {
        // The checksum is made valid, so that the reader has to detect everything else.
        let count = block.len() - 4;
        block[count + 1..].fill(0);
        let size = block.len() as u64;
        block.push(compression);
        let checksum = super::coding::masked(crc32c::crc32c(&block));
        block.extend(checksum.to_le_bytes());
        let mut footer = vec![0, 0, 0];
        super::coding::put_varint(&mut footer, size);
        footer.resize(40, 0);
        block.extend(footer);
        block.extend_from_slice(&MAGIC);
        check_bytes(block, &key);
    }
}

/// Checks that reading arbitrary bytes as a table terminates and does not panic.
fn check_bytes(bytes: Vec<u8>, key: &[u8]) {
    let dir = tempfile::tempdir().unwrap();
    let file = TableFile {
        number: 3,
        size: bytes.len() as u64,
        first_sequence: 1,
        last_sequence: 0,
        first_key: vec![],
        last_key: vec![0xff],
    };
    fs::write(dir.path().join(TableFile::name(3)), bytes).unwrap();
    let tables = Tables::open(dir.path(), [&file].into_iter()).unwrap();
    let table = tables.get(file.number).unwrap();
    let _ = table.get(key, &BlockCache::default());
    if let Ok(mut cursor) = TableCursor::new(table, 0) {
        while cursor.advance().is_ok_and(|is_there| is_there) {
            let _ = cursor.value();
        }
    }
}

#[test]
fn keys_that_differ_by_null_bytes_are_found() {
    let key = |nulls: usize| [b"key", &vec![0; nulls][..]].concat();
    let entries: EntryMap = (0..50)
        .map(|nulls| (key(nulls), vec![b'x'; 5000]))
        .collect();
    let dir = our_database(&entries, 7);
    let database = Database::open(dir.path()).unwrap();
    for (key, value) in &entries {
        assert_eq!(database.get(key).unwrap().as_ref(), Some(value));
    }
    assert_eq!(database.get(&key(50)).unwrap(), None);
}

#[test]
fn every_entry_of_a_table_is_passed() {
    let entries: EntryMap = (0..5000u32)
        .map(|i| (format!("{i:06}").into_bytes(), i.to_string().into_bytes()))
        .collect();
    let dir = our_database(&entries, usize::MAX);
    assert_eq!(all_entries(&Database::open(dir.path()).unwrap()), entries);
}

#[cfg_attr(windows, ignore = "there rusty-leveldb cannot unlock what it made")]
#[test]
fn an_old_value_in_the_table_of_the_new_one_is_passed_over() {
    let dir = tempfile::tempdir().unwrap();
    let options = Options {
        write_buffer_size: 1000,
        ..Options::default()
    };
    let mut db = DB::open(dir.path(), options).unwrap();
    for (key, value) in [("a", "old"), ("b", "old"), ("c", "only"), ("a", "new")] {
        db.put(key.as_bytes(), value.as_bytes()).unwrap();
    }
    db.delete(b"b").unwrap();
    // The large value fills the write buffer, so the entries before it go to a table.
    db.put(b"d", &[b'x'; 2000]).unwrap();
    db.put(b"e", b"logged").unwrap();
    db.close().unwrap();
    let database = Database::open(dir.path()).unwrap();
    let expected = [
        ("a", b"new".to_vec()),
        ("c", b"only".to_vec()),
        ("d", vec![b'x'; 2000]),
        ("e", b"logged".to_vec()),
    ];
    assert_eq!(
        all_entries(&database),
        expected.map(|(key, value)| (key.into(), value)).into()
    );
}

/// Returns all entries of a database, and checks that the cursor returns them in ascending order.
fn all_entries(database: &Database) -> EntryMap {
    let mut cursor = database.entries(usize::MAX).unwrap();
    let mut found = EntryMap::new();
    while cursor.advance().unwrap() {
        let key = cursor.key().to_vec();
        assert!(found.last_key_value().is_none_or(|(last, _)| *last < key));
        found.insert(key, cursor.value().held().to_vec());
    }
    found
}

/// A length below 128 takes one byte, and a length from 128 on takes two.
#[test]
fn lengths_of_one_and_two_bytes_are_those_of_rusty_leveldb() {
    let mut entries = EntryMap::new();
    for (first, length) in (b'a'..).zip([119, 120, 121, 127, 128, 130, 300]) {
        // The second and the third key share `length` bytes with the key before.
        for end in ["", "1", "12"] {
            let key = [&vec![first; length][..], end.as_bytes()].concat();
            entries.insert(key, vec![b'x'; length * end.len() / 2]);
        }
    }
    let (ours, theirs) = (our_table(3, &entries).1, foreign_table(&entries));
    let (end, index) = end_and_index(&ours);
    assert!(ours[..end] == theirs[..end]);
    assert!(index == end_and_index(&theirs).1);
    let dir = our_database(&entries, usize::MAX);
    assert_eq!(all_entries(&Database::open(dir.path()).unwrap()), entries);
}

#[test]
fn blocks_end_at_the_size_at_which_those_of_rusty_leveldb_end() {
    for length in 4060..4090 {
        let values = [length, 1, 1].map(|length| vec![b'x'; length]);
        let keys = [b"a", b"b", b"c"].map(|key| key.to_vec());
        let entries: EntryMap = keys.into_iter().zip(values).collect();
        let (ours, theirs) = (our_table(3, &entries).1, foreign_table(&entries));
        assert_eq!(end_and_index(&ours).1, end_and_index(&theirs).1, "{length}");
    }
}

#[test]
fn a_long_value_must_have_the_length_that_it_was_said_to_have() {
    for (length, says) in [(9999, "shorter"), (10_001, "longer")] {
        let mut builder = TableBuilder::new(Vec::new());
        let put = |out: &mut dyn FnMut(&[u8]) -> std::io::Result<()>| out(&vec![b'x'; length]);
        let err = builder.add_long(b"key", 10_000, put).unwrap_err();
        assert!(err.to_string().contains(says), "{err}");
    }
}

#[test]
fn a_block_whose_restarts_are_wrong_is_damaged() {
    let path = Arc::from(Path::new("x.ldb"));
    assert!(Block::new(vec![0; 4], 0, &path).is_err());
    let empty = Block::new(BlockBuilder::new().finish().to_vec(), 0, &path).unwrap();
    assert!(empty.find(b"a").unwrap().is_none());
    let outside = [9_u32.to_le_bytes(), 1_u32.to_le_bytes()].concat();
    let outside = Block::new(outside, 0, &path).unwrap();
    let err = outside.find(b"a").unwrap_err();
    assert!(
        format!("{err:?}").contains("a restart lies outside"),
        "{err:?}"
    );
    // An entry with a key of 9 bytes and a value of 4 bytes. Two restart points follow, the first of them where the
    // value should be.
    let entry = [&[0, 9, 4][..], b"a\x01\0\0\0\0\0\0\0"].concat();
    let block = [&entry[..], &[0; 8], &2_u32.to_le_bytes()].concat();
    let block = Block::new(block, 0, &path).unwrap();
    let err = block.advance(&mut EntryState::default()).unwrap_err();
    assert!(format!("{err:?}").contains("malformed"), "{err:?}");
}

#[test]
fn a_long_block_without_a_long_value_is_damaged() {
    let mut builder = BlockBuilder::new();
    let mut ends = Vec::new();
    for key in ["a", "b", "c"] {
        builder.add_key(key.as_bytes(), &[0; 8], 5);
        builder.value().extend_from_slice(b"value");
        ends.push(builder.entries().len());
    }
    let len = builder.size();
    // The held part ends at the end of an entry, so no long value follows.
    let part = builder.entries()[..ends[1]].to_vec();
    let block = Block::of_first_part(part, len, 0, &Arc::from(Path::new("x.ldb")));
    let mut entry = EntryState::default();
    for _ in 0..2 {
        assert!(block.advance(&mut entry).unwrap());
    }
    let err = block.advance(&mut entry).unwrap_err();
    assert!(format!("{err:?}").contains("malformed"), "{err:?}");
}

#[test]
fn long_values_are_read_in_parts() {
    let mut random = fastrand::Rng::with_seed(5);
    let mut long = |len: usize| -> Vec<u8> { (0..len).map(|_| random.u8(b'0'..=b'9')).collect() };
    let entries: EntryMap = [
        ("a", 3),
        ("b", 900_000),
        ("c", 20),
        ("d", 200_000),
        // A block of 128 KiB is read as a whole, and a longer one is not.
        ("e", 131_050),
        ("f", 131_051),
        ("g", 1),
    ]
    .map(|(key, len)| (key.as_bytes().to_vec(), long(len)))
    .into();
    let dir = our_database(&entries, usize::MAX);
    let database = Database::open(dir.path()).unwrap();
    let mut found = EntryMap::new();
    let mut parts = Vec::new();
    let mut cursor = database.entries(0).unwrap();
    assert_eq!(cursor.passed(), 0);
    while cursor.advance().unwrap() {
        let key = cursor.key().to_vec();
        match cursor.value() {
            TableValue::Held(value) => drop(found.insert(key, value.to_vec())),
            TableValue::Long(value) => parts.push((key, value)),
        }
    }
    assert_eq!(cursor.passed(), database.table_sizes().iter().sum::<u64>());
    assert_eq!(parts.len(), 3);
    for (key, value) in &parts {
        let mut bytes = Vec::new();
        let mut add = |part: &[u8]| {
            assert!(part.len() <= 1 << 16);
            bytes.extend_from_slice(part);
            Ok(())
        };
        database.read_long(value, &mut add).unwrap();
        assert_eq!(bytes.len(), value.range.len());
        found.insert(key.clone(), bytes);
    }
    assert_eq!(found, entries);

    // Damage is noticed after the last part at the latest.
    let path = fs::read_dir(dir.path())
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .find(|path| path.extension().is_some_and(|extension| extension == "ldb"))
        .unwrap();
    let mut bytes = fs::read(&path).unwrap();
    bytes[200_000] ^= 1;
    fs::write(&path, bytes).unwrap();
    let (_, value) = &parts[0];
    let err = database
        .read_long(value, |_| Ok(()))
        .unwrap_err()
        .to_string();
    assert!(err.contains("damaged"), "{err}");
}

#[cfg_attr(windows, ignore = "there rusty-leveldb cannot unlock what it made")]
#[test]
fn long_values_that_are_not_compressed_are_read_in_parts() {
    let dir = tempfile::tempdir().unwrap();
    let mut random = fastrand::Rng::with_seed(5);
    let long: Vec<u8> = (0..300_000).map(|_| random.u8(..)).collect();
    let options = Options {
        write_buffer_size: 1000,
        ..Options::default()
    };
    let mut db = DB::open(dir.path(), options).unwrap();
    for (key, value) in [("a", &b"short"[..]), ("b", &long), ("c", b"logged")] {
        db.put(key.as_bytes(), value).unwrap();
    }
    db.close().unwrap();
    let database = Database::open(dir.path()).unwrap();
    let mut found = Vec::new();
    let mut cursor = database.entries(0).unwrap();
    while cursor.advance().unwrap() {
        let mut value = Vec::new();
        let is_long = match cursor.value() {
            TableValue::Held(held) => {
                value = held.to_vec();
                false
            }
            TableValue::Long(long) => {
                let add = |part: &[u8]| {
                    value.extend_from_slice(part);
                    Ok(())
                };
                database.read_long(&long, add).unwrap();
                true
            }
        };
        found.push((cursor.key().to_vec(), is_long, value));
    }
    let expected = [
        (b"a".to_vec(), false, b"short".to_vec()),
        (b"b".to_vec(), true, long),
        (b"c".to_vec(), false, b"logged".to_vec()),
    ];
    assert!(found == expected);
}

#[test]
fn keys_must_be_in_order_and_within_the_range_in_the_manifest() {
    for (keys, [first, last], is_valid) in [
        (["a", "b", "c"], ["a", "c"], true),
        (["b", "a", "c"], ["b", "c"], false),
        (["a", "a", "c"], ["a", "c"], false),
        (["a", "c", "b"], ["a", "b"], false),
        (["a", "b", "c"], ["A", "c"], false),
        (["a", "b", "c"], ["b", "c"], false),
        (["a", "b", "c"], ["a", "b"], false),
        (["a", "b", "c"], ["a", "d"], false),
    ] {
        // The entries are in one block or in one block each.
        for size in [1, 5000] {
            let dir = tempfile::tempdir().unwrap();
            let mut bytes = Vec::new();
            let mut builder = TableBuilder::new(&mut bytes);
            for key in keys {
                builder.add(key.as_bytes(), &vec![b'x'; size]).unwrap();
            }
            let table = TableFile {
                first_key: first.into(),
                last_key: last.into(),
                ..builder.finish(FIRST_TABLE).unwrap()
            };
            fs::write(dir.path().join(TableFile::name(FIRST_TABLE)), bytes).unwrap();
            manifest::write(dir.path(), &[table]).unwrap();
            let database = Database::open(dir.path()).unwrap();
            let read = database.entries(usize::MAX).and_then(|mut cursor| {
                while cursor.advance()? {}
                Ok(())
            });
            let case = format!("{keys:?} {first} {last} {size}");
            match read {
                Ok(()) => assert!(is_valid, "{case}"),
                Err(err) => assert!(
                    !is_valid && err.to_string().contains("not in order"),
                    "{case}: {err}"
                ),
            }
        }
    }
}

#[test]
fn the_newer_of_two_tables_that_share_a_key_is_read() {
    for second in ["b", "bb"] {
        let dir = tempfile::tempdir().unwrap();
        let tables = [(3, ["a", "b"]), (4, [second, "c"])].map(|(number, keys)| {
            let entries = keys.map(|key| (key.into(), number.to_string().into_bytes()));
            let (table, bytes) = our_table(number, &entries.into());
            fs::write(dir.path().join(TableFile::name(number)), bytes).unwrap();
            TableFile {
                last_sequence: table.last_sequence + 4 - number,
                ..table
            }
        });
        manifest::write(dir.path(), &tables).unwrap();
        let database = Database::open(dir.path()).unwrap();
        // The first table contains the newer entry.
        assert_eq!(all_entries(&database)[&b"b"[..]], b"3");
        assert_eq!(database.get(b"b").unwrap().unwrap(), b"3");
    }
}

#[test]
fn a_table_may_have_the_name_that_old_versions_gave_it() {
    let entries: EntryMap = [(b"a".to_vec(), b"1".to_vec())].into();
    let dir = our_database(&entries, 1);
    let old = dir.path().join(TableFile::old_name(FIRST_TABLE));
    let new = dir.path().join(TableFile::name(FIRST_TABLE));
    // The new name takes precedence over the old name.
    fs::write(&old, b"another table").unwrap();
    assert_eq!(all_entries(&Database::open(dir.path()).unwrap()), entries);
    fs::rename(&new, &old).unwrap();
    let database = Database::open(dir.path()).unwrap();
    assert_eq!(all_entries(&database), entries);
    let names = Database::names_in(dir.path()).unwrap();
    assert!(
        ["000003.ldb", "000003.sst", "CURRENT", "MANIFEST-000001"].map(|name| names.contains(name))
            == [true; 4]
    );
    let mut bytes = fs::read(&old).unwrap();
    bytes.push(0);
    fs::write(&old, bytes).unwrap();
    let err = Database::open(dir.path()).unwrap_err().to_string();
    assert!(
        err.contains("000003.sst") && err.contains("instead of"),
        "{err}"
    );
    fs::remove_file(&old).unwrap();
    let err = Database::open(dir.path()).unwrap_err().to_string();
    assert!(err.contains("000003.ldb"), "{err}");
}

#[test]
fn filters_are_verified() {
    let entries: EntryMap = [(b"a".to_vec(), b"1".to_vec())].into();
    let table = foreign_table(&entries);
    let metaindex = end_and_index(&table).0;
    // A byte of the filter, and a byte of the metaindex.
    let damaged = [metaindex - BLOCK_TRAILER_SIZE - 1, metaindex + 1];
    for at in [None, Some(damaged[0]), Some(damaged[1])] {
        let dir = our_database(&entries, 1);
        let mut bytes = table.clone();
        at.into_iter().for_each(|at| bytes[at] ^= 1);
        let file = TableFile {
            size: bytes.len() as u64,
            ..our_table(FIRST_TABLE, &entries).0
        };
        fs::write(dir.path().join(TableFile::name(FIRST_TABLE)), bytes).unwrap();
        manifest::write(dir.path(), &[file]).unwrap();
        let database = Database::open(dir.path()).unwrap();
        assert_eq!(all_entries(&database), entries);
        assert_eq!(database.check_metadata().is_ok(), at.is_none(), "{at:?}");
    }
}

/// Writes a database with `rusty-leveldb`. Opens the database once for each of `batches`, and writes the entries of the
/// batch to the log. At each opening, `rusty-leveldb` moves the entries of the previous batch from the log to a table.
fn foreign_database(batches: &[&[(&str, Option<&str>)]]) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    for batch in batches {
        let options = Options {
            reuse_logs: false,
            reuse_manifest: false,
            ..Options::default()
        };
        let mut db = DB::open(dir.path(), options).unwrap();
        for (key, value) in *batch {
            match value {
                Some(value) => db.put(key.as_bytes(), value.as_bytes()).unwrap(),
                None => db.delete(key.as_bytes()).unwrap(),
            }
        }
        db.close().unwrap();
    }
    dir
}

#[cfg_attr(windows, ignore = "there rusty-leveldb cannot unlock what it made")]
#[test]
fn a_log_with_entries_may_not_be_missing() {
    let dir = foreign_database(&[&[("a", Some("1"))], &[("b", Some("2"))]]);
    for name in Database::names_in(dir.path()).unwrap() {
        if name.ends_with(".log") {
            fs::remove_file(dir.path().join(name)).unwrap();
        }
    }
    let err = Database::open(dir.path()).unwrap_err().to_string();
    assert!(err.contains("is missing"), "{err}");
}

#[cfg_attr(windows, ignore = "there rusty-leveldb cannot unlock what it made")]
#[test]
fn a_deletion_in_a_table_hides_the_value_in_an_older_table() {
    let (old, new) = (("a", Some("old")), ("b", Some("new")));
    let dir = foreign_database(&[&[old, ("b", Some("old"))], &[("a", None), new], &[]]);
    let database = Database::open(dir.path()).unwrap();
    assert_eq!(database.version.tables().count(), 2);
    assert_eq!(database.get(b"a").unwrap(), None);
    assert_eq!(database.get(b"b").unwrap().unwrap(), b"new");
    assert_eq!(
        all_entries(&database),
        [(b"b".to_vec(), b"new".to_vec())].into()
    );
}

#[cfg_attr(windows, ignore = "there rusty-leveldb cannot unlock what it made")]
#[test]
fn a_database_with_entries_in_tables_or_logs_is_not_empty() {
    let empty = tempfile::tempdir().unwrap();
    manifest::write(empty.path(), &[]).unwrap();
    let in_tables = our_database(&[(b"a".to_vec(), b"1".to_vec())].into(), 1);
    let in_a_log = foreign_database(&[&[("a", Some("1"))]]);
    for (dir, is_empty) in [(empty, true), (in_tables, false), (in_a_log, false)] {
        assert_eq!(Database::open(dir.path()).unwrap().is_empty(), is_empty);
    }
}

#[test]
fn logs_are_read_from_the_oldest_to_the_newest_that_the_manifest_needs() {
    let dir = our_database(&[(b"a".to_vec(), b"of the table".to_vec())].into(), 1);
    let write = |name: &str| {
        // A batch begins with the sequence number, the number of entries and the kind of the first entry.
        let mut batch = [&7_u64.to_le_bytes()[..], &1_u32.to_le_bytes(), &[1]].concat();
        put_string(&mut batch, b"a");
        put_string(&mut batch, name.as_bytes());
        fs::write(dir.path().join(name), log::of_record(&batch)).unwrap();
    };
    let value = || {
        Database::open(dir.path())
            .unwrap()
            .get(b"a")
            .unwrap()
            .unwrap()
    };
    // The manifest says that only logs with the number 2 or a greater number are needed.
    write("000001.log");
    write("+9.log");
    assert_eq!(value(), b"of the table");
    for number in [5, 9, 2, 8, 3, 7, 4, 6] {
        write(&format!("{number:06}.log"));
    }
    assert_eq!(value(), b"000009.log");
    let names = Database::names_in(dir.path()).unwrap();
    assert!(
        names.contains("000002.log") && !names.contains("000001.log"),
        "{names:?}"
    );
}

#[test]
fn a_cursor_that_found_damage_fails_again() {
    let entries: EntryMap = [b"a", b"b"]
        .map(|key| (key.to_vec(), b"value".to_vec()))
        .into();
    let dir = our_database(&entries, 1);
    let path = dir.path().join(TableFile::name(FIRST_TABLE + 1));
    let mut bytes = fs::read(&path).unwrap();
    bytes[1] ^= 1;
    fs::write(&path, bytes).unwrap();
    let database = Database::open(dir.path()).unwrap();
    let mut cursor = database.entries(usize::MAX).unwrap();
    assert!(cursor.advance().unwrap());
    for _ in 0..2 {
        assert!(cursor.advance().is_err());
    }
}
