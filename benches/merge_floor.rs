//! Measures a lower bound for merging a small index into a large one, if the result must be identical to the index of all
//! games: the number of blocks of the new index that the old one does not contain, and the time to decompress the old
//! blocks, compress the new ones, and calculate the checksums of both.
//!
//! ```sh
//! polybook make-book all-but-a-few.pgn --explorer old.idx
//! polybook make-book all-but-a-few.pgn a-few.pgn --explorer new.idx
//! cargo run --release --example merge_floor -- old.idx new.idx
//! ```

use std::{
    collections::HashSet,
    fs,
    hash::{BuildHasher, RandomState},
    hint::black_box,
    io,
    path::{Path, PathBuf},
    time::Instant,
};

use clap::Parser;
use integer_encoding::VarInt;
use snap::raw::{Decoder, Encoder};

/// Compare the blocks of two indexes
#[derive(Parser)]
struct Args {
    /// The index before
    old: PathBuf,

    /// The index of the same games and some more
    new: PathBuf,
}

/// The size of the footer of a table in bytes: two block handles and a magic number.
const FOOTER: usize = 48;

/// The number of tables that are timed together, because the operating system measures in milliseconds.
const AT_ONCE: usize = 128;

fn main() -> io::Result<()> {
    let args = Args::parse();
    let hasher = RandomState::new();
    let mut known = HashSet::new();
    let (mut unpack, mut pack) = (0.0, 0.0);
    for some in tables(&args.old)?.chunks(AT_ONCE) {
        let bytes = read(some)?;
        let blocks: Vec<&[u8]> = bytes.iter().flat_map(|table| blocks(table)).collect();
        known.extend(blocks.iter().map(|block| hasher.hash_one(block)));
        let begin = cpu_seconds();
        for block in &blocks {
            black_box(crc32c::crc32c(block));
            black_box(unpacked(block));
        }
        unpack += cpu_seconds() - begin;
    }
    let (mut all, mut other) = (0, 0);
    let mut encoder = Encoder::new();
    for some in tables(&args.new)?.chunks(AT_ONCE) {
        let bytes = read(some)?;
        let mut blocks: Vec<&[u8]> = bytes.iter().flat_map(|table| blocks(table)).collect();
        all += blocks.len();
        blocks.retain(|block| !known.contains(&hasher.hash_one(block)));
        other += blocks.len();
        let changed: Vec<Vec<u8>> = blocks.iter().map(|block| unpacked(block)).collect();
        let begin = cpu_seconds();
        for block in &changed {
            let packed = encoder.compress_vec(block)?;
            black_box(crc32c::crc32c(&packed));
        }
        pack += cpu_seconds() - begin;
    }
    let share = 100.0 * other as f64 / all.max(1) as f64;
    println!("{other} of {all} blocks of the new index are none of the old one: {share:.3} %");
    println!("{unpack:.1} s to unpack the old blocks, {pack:.1} s to pack those, on one thread");
    Ok(())
}

/// Returns the paths of the tables of an index.
fn tables(index: &Path) -> io::Result<Vec<PathBuf>> {
    let files = fs::read_dir(index)?.map(|entry| entry.map(|entry| entry.path()));
    let mut files = files.collect::<io::Result<Vec<_>>>()?;
    files.retain(|path| {
        path.extension()
            .is_some_and(|ending| ending == "ldb" || ending == "sst")
    });
    files.sort();
    Ok(files)
}

fn read(tables: &[PathBuf]) -> io::Result<Vec<Vec<u8>>> {
    tables.iter().map(fs::read).collect()
}

/// Returns the stored bytes of the data blocks of a table.
fn blocks(table: &[u8]) -> Vec<&[u8]> {
    let mut footer = &table[table.len() - FOOTER..];
    let _metaindex = place(&mut footer);
    let (start, size) = place(&mut footer);
    let index = unpacked(&table[start..start + size]);
    let restarts = u32::from_le_bytes(*index.last_chunk().expect("a block ends with a number"));
    let mut entries = &index[..index.len() - 4 - 4 * restarts as usize];
    let mut blocks = Vec::new();
    while !entries.is_empty() {
        let [_shared, unshared, len] = [(); 3].map(|()| number(&mut entries));
        let mut value = &entries[unshared..unshared + len];
        let (start, size) = place(&mut value);
        blocks.push(&table[start..start + size]);
        entries = &entries[unshared + len..];
    }
    blocks
}

fn place(bytes: &mut &[u8]) -> (usize, usize) {
    (number(bytes), number(bytes))
}

fn number(bytes: &mut &[u8]) -> usize {
    let (number, len) = u64::decode_var(bytes).expect("the index is sound");
    *bytes = &bytes[len..];
    number as usize
}

fn unpacked(block: &[u8]) -> Vec<u8> {
    let unpacked = Decoder::new().decompress_vec(block);
    unpacked.expect("blocks of entries are packed")
}

/// Returns the CPU time of this thread if the operating system provides it, otherwise the elapsed time.
fn cpu_seconds() -> f64 {
    static BEGIN: std::sync::OnceLock<Instant> = std::sync::OnceLock::new();
    let told = fs::read_to_string("/proc/thread-self/schedstat").ok();
    let nanoseconds = told.and_then(|text| text.split(' ').next()?.parse::<f64>().ok());
    match nanoseconds {
        Some(nanoseconds) => nanoseconds / 1e9,
        None => BEGIN.get_or_init(Instant::now).elapsed().as_secs_f64(),
    }
}
