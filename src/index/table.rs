//! LevelDB tables, each made in memory by `rusty-leveldb` from entries that are in order.
//!
//! A database of its own makes one table: all entries go in as one batch and come out as one file. So
//! tables are made on all cores, written once, and there is nothing to compact; the
//! [manifest](super::manifest) makes one database of them.

use std::{path::Path, rc::Rc};

use rusty_leveldb::{
    CompressorId, DB, Options, Result, WriteBatch, compressor::SnappyCompressor, env::Env,
};

use super::env::Overlay;

/// Entries in the order of their keys, joined in one buffer.
#[derive(Default, Debug)]
pub(super) struct Entries {
    bytes: Vec<u8>,
    /// The ends of each key and of its value.
    ends: Vec<(usize, usize)>,
}

impl Entries {
    pub(super) fn len(&self) -> usize {
        self.ends.len()
    }

    /// How many bytes keys and values take.
    pub(super) fn size(&self) -> usize {
        self.bytes.len()
    }

    pub(super) fn push(&mut self, key: &[u8], value: &[u8]) {
        self.bytes.extend_from_slice(key);
        let key_end = self.bytes.len();
        self.bytes.extend_from_slice(value);
        self.ends.push((key_end, self.bytes.len()));
    }

    fn iter(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        let mut start = 0;
        self.ends.iter().map(move |(key_end, value_end)| {
            let entry = (
                &self.bytes[start..*key_end],
                &self.bytes[*key_end..*value_end],
            );
            start = *value_end;
            entry
        })
    }

    pub(super) fn first_key(&self) -> &[u8] {
        self.iter().next().map_or(&[], |(key, _)| key)
    }

    pub(super) fn last_key(&self) -> &[u8] {
        match self.ends[..] {
            [] => &[],
            [(key_end, _)] => &self.bytes[..key_end],
            [.., (_, start), (key_end, _)] => &self.bytes[start..key_end],
        }
    }
}

/// The options of both sides.
pub(super) fn options(env: Rc<Box<dyn Env>>) -> Options {
    Options {
        env,
        compressor: SnappyCompressor::ID,
        ..Options::default()
    }
}

/// The bytes of the table of some entries, which get the sequence numbers 1, 2 and so on.
pub(super) fn build(entries: &Entries) -> Result<Vec<u8>> {
    let directory = Path::new("table");
    let env: Rc<Box<dyn Env>> = Rc::new(Box::new(Overlay::in_memory()));
    let mut batch = WriteBatch::default();
    for (key, value) in entries.iter() {
        batch.put(key, value);
    }
    let mut db = DB::open(
        directory,
        Options {
            write_buffer_size: usize::MAX,
            ..options(Rc::clone(&env))
        },
    )?;
    db.write(batch, false)?;
    db.compact_range(entries.first_key(), entries.last_key())?;
    let mut table = Vec::new();
    for child in env.children(directory)? {
        if child
            .extension()
            .is_some_and(|extension| extension == "ldb")
        {
            let mut file = env.open_sequential_file(&directory.join(child))?;
            std::io::Read::read_to_end(&mut file, &mut table)?;
        }
    }
    Ok(table)
}
