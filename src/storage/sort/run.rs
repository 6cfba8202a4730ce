//! Runs: sequences of records, texts or other bytes that are written once and then read in order.
//!
//! A run is kept in memory until it outgrows its budget, and then in a temporary file that several runs may share. The
//! file is unlinked when it is opened, so the system removes it however the program ends. A run is stored in blocks of
//! [`BLOCK_SIZE`] bytes; its last block may be shorter. Each block is followed by a CRC-32C, which also covers the
//! offset of the block in the file. Therefore, a block that the disk lost, changed or stored at another offset causes
//! an error instead of wrong records.
//!
//! [`Merge`] merges sorted sequences, such as runs, and folds the merged records.

use std::{
    cmp,
    collections::VecDeque,
    fs::File,
    io,
    ops::Range,
    path::{Path, PathBuf},
    sync::{
        Arc, OnceLock,
        atomic::{AtomicU64, Ordering},
    },
};

use super::{Fold, Record};
use crate::{
    error::{At, Error, Result},
    storage::positioned::{read_exact_at, write_all_at},
};

/// The size in bytes of a block of a temporary file. Each block has a checksum. The size is a multiple of the sizes of
/// all records, so no record is in two blocks.
pub(super) const BLOCK_SIZE: usize = 85 * 48;
const CHECKSUM_SIZE: usize = size_of::<u32>();

/// The number of bytes that one operation reads from or writes to a temporary file.
const BUFFER_SIZE: usize = 4 * BLOCK_SIZE;

/// Returns the number of bytes that `bytes` bytes of data take in a temporary file, which contains a checksum after
/// each block.
fn with_checksums(bytes: u64) -> u64 {
    bytes + bytes.div_ceil(BLOCK_SIZE as u64) * CHECKSUM_SIZE as u64
}

/// Returns the checksum of a block. It also covers `offset`, the byte offset of the block in the file, so it detects
/// blocks that were stored at a wrong offset.
fn checksum(block: &[u8], offset: u64) -> [u8; CHECKSUM_SIZE] {
    let start = (offset ^ offset >> u32::BITS) as u32;
    crc32c::crc32c_append(start, block).to_le_bytes()
}

/// A temporary file that contains one or more runs. A run is a sequence of bytes that is written once. Each run must be
/// complete before the next one begins. The first write creates the file.
#[derive(Debug)]
pub(super) struct RunFile {
    file: OnceLock<File>,
    /// The length of the file in bytes.
    end: AtomicU64,
    pub(super) temp_dir: PathBuf,
}

impl RunFile {
    pub(super) fn new(temp_dir: &Path) -> Arc<RunFile> {
        Arc::new(RunFile {
            file: OnceLock::new(),
            end: AtomicU64::new(0),
            temp_dir: temp_dir.to_owned(),
        })
    }

    /// Returns the length of the file in bytes.
    pub(super) fn size(&self) -> u64 {
        self.end.load(Ordering::Relaxed)
    }

    fn file(&self) -> Result<&File> {
        if let Some(file) = self.file.get() {
            return Ok(file);
        }
        let made = tempfile::tempfile_in(&self.temp_dir);
        let made = made.at(&self.temp_dir, "create a temporary file in")?;
        Ok(self.file.get_or_init(|| made))
    }

    /// Appends bytes to a run (a byte sequence) in the file, with a checksum after each block. `start` is the offset of
    /// the run in the file. `before` is the number of bytes that have already been written to the run, not counting
    /// checksums. It must be a multiple of [`BLOCK_SIZE`].
    fn append(&self, start: u64, before: u64, bytes: &[u8]) -> Result<()> {
        let mut offset = start + with_checksums(before);
        let mut stored = Vec::with_capacity(BUFFER_SIZE + BUFFER_SIZE / BLOCK_SIZE * CHECKSUM_SIZE);
        for some in bytes.chunks(BUFFER_SIZE) {
            stored.clear();
            for block in some.chunks(BLOCK_SIZE) {
                let sum = checksum(block, offset + stored.len() as u64);
                stored.extend_from_slice(block);
                stored.extend_from_slice(&sum);
            }
            write_all_at(self.file()?, &stored, offset)
                .at(&self.temp_dir, "write a temporary file in")?;
            offset += stored.len() as u64;
        }
        self.end.store(offset, Ordering::Relaxed);
        Ok(())
    }

    /// Reads `bytes` bytes of a run (a byte sequence), verifies their checksums, and appends them to `out`. `start` is
    /// the offset of the run in the file. `before` is the number of bytes of the run to skip, not counting checksums.
    /// Reading must start at the beginning of a block. It must end at the end of a block or of the run.
    ///
    /// # Errors
    ///
    /// Returns an error if the file cannot be read, or if the checksum of a block does not match.
    fn read(&self, start: u64, before: u64, bytes: usize, out: &mut Vec<u8>) -> Result<()> {
        let offset = start + with_checksums(before);
        let first = out.len();
        out.resize(first + with_checksums(bytes as u64) as usize, 0);
        read_exact_at(self.file()?, &mut out[first..], offset)
            .at(&self.temp_dir, "read a temporary file in")?;
        let (mut from, mut to) = (first, first);
        while from < out.len() {
            let length = BLOCK_SIZE.min(out.len() - from - CHECKSUM_SIZE);
            let end = from + length;
            let expected = checksum(&out[from..end], offset + (from - first) as u64);
            if expected != out[end..end + CHECKSUM_SIZE] {
                return Err(self.is_changed());
            }
            out.copy_within(from..end, to);
            from = end + CHECKSUM_SIZE;
            to += length;
        }
        out.truncate(to);
        Ok(())
    }

    #[cold]
    fn is_changed(&self) -> Error {
        let problem = "a temporary file has changed since it was written: check the disk, or use another \
            directory for temporary files";
        Error::damaged(&self.temp_dir, problem)
    }
}

/// Returns the length prefix of a byte string: its length as four little-endian bytes.
///
/// # Panics
///
/// Panics if the string has 4 GiB or more.
pub(super) fn length_of(text: &[u8]) -> [u8; 4] {
    let length = u32::try_from(text.len()).expect("texts are short");
    length.to_le_bytes()
}

/// Returns the size in bytes of the stored form of a record.
const fn record_size<R: Record>() -> usize {
    const { assert!(BLOCK_SIZE.is_multiple_of(size_of::<R::Bytes>())) };
    size_of::<R::Bytes>()
}

/// Reads a record from its stored form.
///
/// # Panics
///
/// Panics if `bytes` does not have the size of a record.
#[inline]
fn record_of<R: Record>(bytes: &[u8]) -> R {
    R::from_bytes(bytes.try_into().expect("the bytes are a record"))
}

/// A byte sequence that is written once and then read. If it exceeds its memory budget, it is moved to a temporary
/// file.
#[derive(Debug)]
pub(crate) struct ByteRun {
    memory: usize,
    file: Arc<RunFile>,
    is_spilled: bool,
    /// The offset in the file at which the run begins.
    start: u64,
    /// The number of bytes that have been written to the file, not counting checksums. A multiple of [`BLOCK_SIZE`]
    /// until the run is finished.
    filed: u64,
    /// The bytes at the end of the run that are still in memory.
    tail: Vec<u8>,
}

impl ByteRun {
    /// Creates an empty byte sequence, which keeps at most `memory` bytes in memory. A longer sequence is moved to its
    /// own temporary file in the directory `temp_dir`.
    pub(crate) fn new(memory: usize, temp_dir: impl AsRef<Path>) -> ByteRun {
        ByteRun::within(memory, &RunFile::new(temp_dir.as_ref()))
    }

    /// Creates an empty byte sequence, which keeps at most `memory` bytes in memory. A longer sequence is moved to the
    /// end of `file`, which may already contain finished sequences. Until this sequence is finished, no other may be
    /// written to `file`.
    pub(super) fn within(memory: usize, file: &Arc<RunFile>) -> ByteRun {
        ByteRun {
            memory,
            file: Arc::clone(file),
            is_spilled: false,
            start: 0,
            filed: 0,
            tail: Vec::new(),
        }
    }

    /// Returns the directory in which the temporary file of the sequence is created.
    pub(crate) fn temp_dir(&self) -> &Path {
        &self.file.temp_dir
    }

    /// Returns the temporary file of the sequence.
    pub(super) fn file(&self) -> &Arc<RunFile> {
        &self.file
    }

    /// Returns the length of the sequence in bytes.
    pub(crate) fn len(&self) -> u64 {
        self.filed + self.tail.len() as u64
    }

    /// Returns the number of records in the sequence, which must contain only records of the type `R`.
    pub(super) fn records_len<R: Record>(&self) -> u64 {
        self.len() / record_size::<R>() as u64
    }

    /// Appends bytes to the sequence.
    ///
    /// # Errors
    ///
    /// Returns an error if the temporary file cannot be written.
    #[inline]
    pub(crate) fn append(&mut self, bytes: &[u8]) -> Result<()> {
        self.tail.extend_from_slice(bytes);
        let most = if self.is_spilled {
            BUFFER_SIZE
        } else {
            self.memory
        };
        if self.tail.len() <= most {
            Ok(())
        } else {
            self.spill(BLOCK_SIZE)
        }
    }

    /// Moves bytes from memory to the temporary file, in whole blocks of `block` bytes. The bytes after the last whole
    /// block stay in memory.
    #[cold]
    fn spill(&mut self, block: usize) -> Result<()> {
        if !self.is_spilled {
            self.is_spilled = true;
            self.start = self.file.size();
        }
        let whole = self.tail.len() / block * block;
        self.file
            .append(self.start, self.filed, &self.tail[..whole])?;
        self.filed += whole as u64;
        self.tail.drain(..whole);
        self.tail.shrink_to(2 * BUFFER_SIZE);
        Ok(())
    }

    /// Completes the sequence. If a part of it was moved to the file, writes the rest there too. Afterwards, another
    /// sequence may be written to the same file.
    pub(super) fn finish(mut self) -> Result<ByteRun> {
        if self.is_spilled {
            self.spill(1)?;
        }
        self.tail.shrink_to_fit();
        Ok(self)
    }

    pub(super) fn append_records<R: Record>(&mut self, records: &[R]) -> Result<()> {
        for some in records.chunks(BUFFER_SIZE / record_size::<R>()) {
            for record in some {
                self.tail.extend_from_slice(record.to_bytes().as_ref());
            }
            // Spills if the buffer is full.
            self.append(&[])?;
        }
        Ok(())
    }

    /// Appends a record to the sequence.
    #[inline]
    pub(super) fn push(&mut self, record: impl Record) -> Result<()> {
        self.append(record.to_bytes().as_ref())
    }

    /// Appends a byte string with a length prefix, so that [`ByteReader::read_text`] can read it.
    ///
    /// # Errors
    ///
    /// Returns an error if the temporary file cannot be written.
    pub(crate) fn append_text(&mut self, text: &[u8]) -> Result<()> {
        self.tail.extend_from_slice(&length_of(text));
        self.append(text)
    }

    /// Creates a reader of the sequence that starts at the byte offset `start`.
    pub(crate) fn reader(&self, start: u64) -> ByteReader<'_> {
        ByteReader {
            run: self,
            next: start,
            buffer: Vec::new(),
            at: 0,
        }
    }

    /// Returns an iterator over the byte strings in the sequence. Each string must have been appended by
    /// [`append_text`](ByteRun::append_text).
    pub(super) fn texts(&self) -> impl Iterator<Item = Result<Vec<u8>>> + '_ {
        let mut reader = self.reader(0);
        std::iter::from_fn(move || reader.read_text().transpose())
    }

    /// Returns an iterator over the records of the sequence.
    pub(super) fn records<R: Record>(&self) -> impl Iterator<Item = Result<R>> + use<'_, R> {
        let mut reader = self.reader(0);
        std::iter::from_fn(move || reader.read_record().transpose())
    }

    /// Returns a function that reads the records of the sequence in order, up to `max_records` per call.
    pub(super) fn refill<R: Record>(&self, max_records: usize) -> Refill<'_, R> {
        let mut reader = self.reader(0);
        Box::new(move |out| reader.read_records(max_records, out))
    }

    /// Replaces the contents of `out` with the records at the indices `range`. The sequence must be finished.
    pub(super) fn read<R: Record>(&self, range: Range<usize>, out: &mut Vec<R>) -> Result<()> {
        let size = record_size::<R>();
        let (start, end) = (range.start * size, range.end * size);
        let mut read = Vec::new();
        let bytes = if self.is_spilled {
            let before = start / BLOCK_SIZE * BLOCK_SIZE;
            let whole = (end.next_multiple_of(BLOCK_SIZE)).min(self.filed as usize);
            self.file
                .read(self.start, before as u64, whole - before, &mut read)?;
            &read[start - before..end - before]
        } else {
            &self.tail[start..end]
        };
        out.clear();
        out.extend(bytes.chunks_exact(size).map(record_of::<R>));
        Ok(())
    }
}

/// A sequential reader of the bytes of a [`ByteRun`].
#[derive(Debug)]
pub(crate) struct ByteReader<'a> {
    run: &'a ByteRun,
    /// The offset in the run of the next byte to be read into the buffer.
    next: u64,
    buffer: Vec<u8>,
    /// The offset of the next byte in the buffer.
    at: usize,
}

impl ByteReader<'_> {
    /// Fills `out` with the next bytes of the sequence.
    ///
    /// # Errors
    ///
    /// Returns an error if fewer bytes are left, or if the temporary file cannot be read or was changed.
    pub(crate) fn read_exact(&mut self, mut out: &mut [u8]) -> Result<()> {
        while !out.is_empty() {
            if self.at == self.buffer.len() {
                self.fill()?;
            }
            let some = out.len().min(self.buffer.len() - self.at);
            out[..some].copy_from_slice(&self.buffer[self.at..self.at + some]);
            out = &mut out[some..];
            self.at += some;
        }
        Ok(())
    }

    /// Skips the next `bytes` bytes of the sequence. If fewer bytes are left, the next read returns an error.
    pub(crate) fn skip(&mut self, bytes: u64) {
        let buffered = (self.buffer.len() - self.at) as u64;
        if bytes <= buffered {
            self.at += bytes as usize;
        } else {
            self.next += bytes - buffered;
            self.at = self.buffer.len();
        }
    }

    /// Reads the next record. Returns `None` after the last record.
    ///
    /// The buffer never ends within a record, because the sizes of blocks and buffers are multiples of the size of a
    /// record.
    #[inline]
    fn read_record<R: Record>(&mut self) -> Result<Option<R>> {
        if self.at == self.buffer.len() {
            if self.is_at_end() {
                return Ok(None);
            }
            self.fill()?;
        }
        let start = self.at;
        self.at += record_size::<R>();
        Ok(self.buffer.get(start..self.at).map(record_of))
    }

    /// Reads up to `max_records` further records, and appends them to `out`. Appends nothing after the last record.
    fn read_records<R: Record>(&mut self, max_records: usize, out: &mut Vec<R>) -> Result<()> {
        if self.at == self.buffer.len() && !self.is_at_end() {
            self.fill()?;
        }
        let records = self.buffer[self.at..].chunks_exact(record_size::<R>());
        debug_assert!(
            records.remainder().is_empty(),
            "no record is in two buffers"
        );
        let some = max_records.min(records.len());
        out.extend(records.take(some).map(record_of::<R>));
        self.at += some * record_size::<R>();
        Ok(())
    }

    fn is_at_end(&self) -> bool {
        self.at == self.buffer.len() && self.next >= self.run.len()
    }

    /// Reads the next byte string, which [`ByteRun::append_text`] has written. Returns `None` after the last one.
    ///
    /// # Errors
    ///
    /// Returns an error if the temporary file cannot be read or was changed.
    pub(crate) fn read_text(&mut self) -> Result<Option<Vec<u8>>> {
        if self.is_at_end() {
            return Ok(None);
        }
        let mut length = [0; 4];
        self.read_exact(&mut length)?;
        let mut text = vec![0; u32::from_le_bytes(length) as usize];
        self.read_exact(&mut text)?;
        Ok(Some(text))
    }

    /// Fills the buffer with the next bytes of the sequence. All bytes in the buffer must have been consumed before.
    ///
    /// # Errors
    ///
    /// Returns an error at the end of the sequence, or if the temporary file cannot be read or was changed.
    #[cold]
    fn fill(&mut self) -> Result<()> {
        self.buffer.clear();
        self.at = 0;
        let run = self.run;
        if self.next < run.filed {
            // A reader may start or skip to the middle of a block, but a block must be read from its beginning to
            // verify its checksum.
            let passed = self.next % BLOCK_SIZE as u64;
            let before = self.next - passed;
            let bytes = (run.filed - before).min(BUFFER_SIZE as u64);
            let read = run
                .file
                .read(run.start, before, bytes as usize, &mut self.buffer);
            if read.is_err() {
                // The reader stays at the end of the run, because bytes after a damaged block cannot be trusted.
                self.buffer.clear();
                self.next = run.len();
            }
            read?;
            self.next = before + bytes;
            self.at = passed as usize;
        } else if self.next < run.len() {
            let tail = &run.tail[(self.next - run.filed) as usize..];
            let some = tail.len().min(BUFFER_SIZE);
            self.buffer.extend_from_slice(&tail[..some]);
            self.next += some as u64;
        } else {
            let ended = io::Error::from(io::ErrorKind::UnexpectedEof);
            return Err(ended).at("temporary bytes", "read on in");
        }
        Ok(())
    }
}

/// An iterator over records in ascending order.
pub(crate) type SortedRecords<'a, R> = Box<dyn Iterator<Item = Result<R>> + 'a>;

/// A function that reads the next items of a sorted sequence and appends them to a vector. At the end of the sequence,
/// and after an error, it appends nothing.
pub(crate) type Refill<'a, T> = Box<dyn FnMut(&mut Vec<T>) -> Result<()> + 'a>;

/// The maximum number of items that a merge reads from a sequence at once.
pub(super) const MAX_BATCH_ITEMS: usize = 1 << 8;

/// The number of bytes of heap memory at which a batch of items is complete. It bounds the memory for a batch of long
/// items, as [`MAX_BATCH_ITEMS`] does for short ones.
const MAX_BATCH_BYTES: usize = 1 << 13;

/// An iterator that merges any number of sorted sequences into one. The merge is stable: if items of two sequences are
/// equal, the items of the earlier sequence come first.
///
/// The merge reads a batch of items from each sequence, and then sorts those items that must precede all unread items.
/// It uses the standard library's stable sort, which merges ascending runs and takes a third less time than a heap.
///
/// After an error, the iterator yields `None`.
pub(crate) struct Merge<'a, T> {
    /// The sequences that have not ended. Each is paired with the items that were read from it and have not been moved
    /// to `ready`.
    sources: Vec<(Refill<'a, T>, Vec<T>)>,
    /// The next items that the merge yields, in ascending order.
    ready: VecDeque<T>,
}

impl<'a, T: Ord + 'a> Merge<'a, T> {
    pub(crate) fn new<I: Iterator<Item = Result<T>> + 'a>(
        sequences: impl IntoIterator<Item = I>,
    ) -> Merge<'a, T> {
        Merge::of_long(sequences, |_| 0)
    }

    /// Creates a merge of sorted sequences whose items own heap memory. `bytes` returns the number of bytes of heap
    /// memory that an item owns. Items that own much memory are read in smaller batches.
    pub(crate) fn of_long<I: Iterator<Item = Result<T>> + 'a>(
        sequences: impl IntoIterator<Item = I>,
        bytes: fn(&T) -> usize,
    ) -> Merge<'a, T> {
        let source = |sequence: I| -> Refill<'a, T> {
            let mut sequence = sequence.fuse();
            Box::new(move |out| {
                let mut held = 0;
                while out.len() < MAX_BATCH_ITEMS
                    && held < MAX_BATCH_BYTES
                    && let Some(item) = sequence.next()
                {
                    let item = item?;
                    held += bytes(&item);
                    out.push(item);
                }
                Ok(())
            })
        };
        Merge::of_sources(sequences.into_iter().map(source))
    }

    pub(super) fn of_sources(sources: impl IntoIterator<Item = Refill<'a, T>>) -> Merge<'a, T> {
        let sources = sources.into_iter();
        Merge {
            sources: sources.map(|source| (source, Vec::new())).collect(),
            ready: VecDeque::new(),
        }
    }

    /// Returns the next batch of merged items in ascending order, or an empty slice after the last item. Drops the
    /// items of the previous batch.
    pub(super) fn window(&mut self) -> Result<&[T]> {
        if let Err(err) = self.read_on() {
            self.sources.clear();
            return Err(err);
        }
        Ok(self.ready.as_slices().0)
    }

    fn read_on(&mut self) -> Result<()> {
        self.ready.clear();
        for (source, read) in &mut self.sources {
            if read.is_empty() {
                source(read)?;
            }
        }
        self.sources.retain(|(_, read)| !read.is_empty());
        // Only items up to the smallest of the last items are final: unread items of the sequence with that item may
        // precede any larger item.
        let lasts = self.sources.iter().map(|(_, read)| read.last());
        let Some((first, _)) = lasts.enumerate().min_by(|a, b| a.1.cmp(&b.1)) else {
            return Ok(());
        };
        let last = self.sources[first].1.pop().expect("it has a last item");
        for (number, (_, read)) in self.sources.iter_mut().enumerate() {
            let is_ready = |item: &T| match item.cmp(&last) {
                cmp::Ordering::Less => true,
                cmp::Ordering::Equal => number <= first,
                cmp::Ordering::Greater => false,
            };
            let end = read.partition_point(is_ready);
            self.ready.extend(read.drain(..end));
        }
        self.ready.push_back(last);
        self.ready.make_contiguous().sort();
        Ok(())
    }
}

impl<'a, T: Ord + 'a> Iterator for Merge<'a, T> {
    type Item = Result<T>;

    #[inline]
    fn next(&mut self) -> Option<Result<T>> {
        if self.ready.is_empty()
            && let Err(err) = self.window()
        {
            return Some(Err(err));
        }
        self.ready.pop_front().map(Ok)
    }
}

/// Folds the records of a merge, for example by adding up the numbers in equal records. Passes the folded records to
/// `push` in ascending order. Stops at the first error.
pub(super) fn fold_into<R: Record>(
    mut merge: Merge<'_, R>,
    mut push: impl FnMut(R) -> Result<()>,
) -> Result<()> {
    let mut fold = R::Fold::default();
    let mut pushed = Ok(());
    let mut push = |folded, pushed: &mut Result<()>| {
        if pushed.is_ok() {
            *pushed = push(folded);
        }
    };
    while pushed.is_ok() {
        let window = merge.window()?;
        if window.is_empty() {
            fold.finish(&mut |folded| push(folded, &mut pushed));
            break;
        }
        for record in window {
            fold.take(*record, &mut |folded| push(folded, &mut pushed));
        }
    }
    pushed
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::error::Error;

    fn change_byte(file: &RunFile, offset: u64, change: u8) {
        let mut byte = [0];
        let file = file.file().unwrap();
        read_exact_at(file, &mut byte, offset).unwrap();
        write_all_at(file, &[byte[0] ^ change], offset).unwrap();
    }

    /// Writes a run of records to a file.
    fn filed(file: &Arc<RunFile>, records: impl Iterator<Item = u128>) -> ByteRun {
        let mut run = ByteRun::within(0, file);
        records.for_each(|record| run.push(record).unwrap());
        run.finish().unwrap()
    }

    #[test]
    fn a_block_of_another_place_has_another_checksum() {
        let sum = |offset: u64| checksum(b"block", offset);
        for (a, b) in [(1, 2), (1, 1 << 32 | 1), (1 << 32, 2 << 32)] {
            assert_ne!(sum(a), sum(b));
        }
    }

    #[test]
    fn blocks_that_the_disk_lost_or_put_elsewhere_are_an_error() {
        let file = RunFile::new(&std::env::temp_dir());
        let run = filed(&file, 0..2000);
        let block = BLOCK_SIZE + CHECKSUM_SIZE;
        let mut second = vec![0; block];
        let file = file.file().unwrap();
        read_exact_at(file, &mut second, block as u64).unwrap();
        for wrong in [second, vec![0; block]] {
            write_all_at(file, &wrong, 0).unwrap();
            let first = run.records::<u128>().next();
            assert!(matches!(first, Some(Err(Error::File { .. }))));
        }
    }

    proptest! {
        #[test]
        fn what_is_appended_is_read(
            parts in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..9000), 0..9),
            memory in 0..20_000usize,
            start in 0.0..1.0f64,
            skipped in 0.0..1.0f64,
        ) {
            let mut run = ByteRun::new(memory, std::env::temp_dir());
            for part in &parts {
                run.append(part).unwrap();
            }
            let all = parts.concat();
            prop_assert_eq!(run.len(), all.len() as u64);
            let start = (all.len() as f64 * start) as usize;
            let mut found = vec![0; all.len() - start];
            let mut reader = run.reader(start as u64);
            reader.read_exact(&mut found).unwrap();
            prop_assert_eq!(&found, &all[start..]);
            prop_assert!(reader.read_exact(&mut [0]).is_err());
            let mut reader = run.reader(0);
            let some = start.min(100);
            reader.read_exact(&mut found[..0]).unwrap();
            reader.read_exact(&mut vec![0; some]).unwrap();
            let skipped = ((all.len() - some) as f64 * skipped) as usize;
            reader.skip(skipped as u64);
            found.resize(all.len() - some - skipped, 0);
            reader.read_exact(&mut found).unwrap();
            prop_assert_eq!(&found, &all[some + skipped..]);
            reader.skip(1);
            prop_assert!(reader.read_exact(&mut [0]).is_err());
        }

        #[test]
        fn records_of_a_run_come_back(
            len in 0..3000usize,
            memory in prop_oneof![Just(0), Just(1 << 20)],
            cut in (0.0..1.0f64, 0.0..1.0f64),
            most in 1..3000usize,
        ) {
            let file = RunFile::new(&std::env::temp_dir());
            let records: Vec<u128> = (0..len as u128).map(|number| number << 77 | number).collect();
            let start = (cut.0 * len as f64) as usize;
            let end = start + (cut.1 * (len - start) as f64) as usize;
            // The second run begins after the first one in the file.
            for is_at_once in [false, true] {
                let mut run = ByteRun::within(memory, &file);
                if is_at_once { run.append_records(&records).unwrap() } else { records.iter().for_each(|record| run.push(*record).unwrap()) }
                let run = run.finish().unwrap();
                prop_assert_eq!(run.is_spilled, memory == 0 && len > 0);
                prop_assert_eq!(run.records_len::<u128>(), len as u64);
                let found: Vec<u128> = run.records().map(Result::unwrap).collect();
                prop_assert_eq!(&found, &records);
                let (mut refill, mut found, mut more) = (run.refill(most), Vec::<u128>::new(), 1);
                while more > 0 {
                    let known = found.len();
                    refill(&mut found).unwrap();
                    more = found.len() - known;
                    prop_assert!(more <= most);
                }
                prop_assert_eq!(&found, &records);
                let mut some = Vec::<u128>::new();
                run.read(start..end, &mut some).unwrap();
                prop_assert_eq!(&some[..], &records[start..end]);
                run.read(start..len, &mut some).unwrap();
                prop_assert_eq!(&some[..], &records[start..]);
            }
        }

        #[test]
        fn a_changed_byte_is_an_error(at in 0.0..1.0f64, change in 1..=255u8) {
            let file = RunFile::new(&std::env::temp_dir());
            let run = filed(&file, (0..2000u128).map(|number| (number * 0x1234_5678_9abc) << 64));
            let mut bytes = ByteRun::new(0, std::env::temp_dir());
            bytes.append(&[7; 20_000]).unwrap();
            let is_changed = |read: Result<()>| matches!(read, Err(Error::File { problem, .. }) if problem.text().contains("has changed"));
            change_byte(&file, (file.size() as f64 * at) as u64, change);
            prop_assert!(is_changed(run.records::<u128>().try_for_each(|record| record.map(drop))));
            prop_assert!(is_changed(run.read(0..2000, &mut Vec::<u128>::new())));
            let (mut refill, mut found) = (run.refill(100), Vec::<u128>::new());
            prop_assert!(is_changed((0..30).try_for_each(|_| refill(&mut found))));
            let known = found.len();
            refill(&mut found).unwrap();
            prop_assert_eq!(found.len(), known);
            change_byte(&bytes.file, (bytes.file.size() as f64 * at) as u64, change);
            prop_assert!(is_changed(bytes.reader(0).read_exact(&mut [0; 20_000])));
        }

        #[test]
        fn texts_keep_their_bounds(
            texts in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..900), 0..90),
            memory in 0..20_000usize,
        ) {
            let mut run = ByteRun::new(memory, std::env::temp_dir());
            for text in &texts {
                run.append_text(text).unwrap();
            }
            let mut reader = run.reader(0);
            let found = std::iter::from_fn(|| reader.read_text().unwrap());
            prop_assert_eq!(found.collect::<Vec<_>>(), texts);
        }
    }

    proptest! {
        #[test]
        fn everything_comes_once_and_in_order(mut sequences in proptest::collection::vec(
            proptest::collection::vec(0..50u32, 0..30), 0..9,
        )) {
            for sequence in &mut sequences {
                sequence.sort_unstable();
            }
            let mut expected = sequences.concat();
            expected.sort_unstable();
            let readers = sequences.iter().map(|sequence| sequence.iter().map(|item| Ok(*item)));
            let found: Vec<u32> = Merge::new(readers).map(Result::unwrap).collect();
            prop_assert_eq!(found, expected);
        }

        #[test]
        fn equal_items_come_in_the_order_of_their_sequences(mut sequences in proptest::collection::vec(
            proptest::collection::vec(0..4u32, 0..900), 0..5,
        )) {
            /// Compares by the first number.
            #[derive(Copy, Clone, PartialEq, Eq, Debug)]
            struct Numbered(u32, usize, usize);

            impl Ord for Numbered {
                fn cmp(&self, other: &Numbered) -> cmp::Ordering {
                    self.0.cmp(&other.0)
                }
            }

            impl PartialOrd for Numbered {
                fn partial_cmp(&self, other: &Numbered) -> Option<cmp::Ordering> {
                    Some(self.cmp(other))
                }
            }

            sequences.iter_mut().for_each(|sequence| sequence.sort_unstable());
            let numbered: Vec<Vec<Numbered>> = sequences.iter().enumerate().map(|(which, sequence)| {
                let items = sequence.iter().enumerate();
                items.map(|(at, item)| Numbered(*item, which, at)).collect()
            }).collect();
            let mut expected = numbered.concat();
            expected.sort_by_key(|item| (item.0, item.1, item.2));
            let readers = numbered.iter().map(|sequence| sequence.iter().map(|item| Ok(*item)));
            let found: Vec<Numbered> = Merge::new(readers).map(Result::unwrap).collect();
            prop_assert_eq!(found, expected);
        }
    }

    #[test]
    fn few_long_items_are_read_at_once() {
        use std::cell::Cell;

        let read = Cell::new(0);
        let long = (0..100).map(|number| {
            read.set(read.get() + 1);
            Ok(format!("{number:04}").repeat(MAX_BATCH_BYTES / 8))
        });
        let mut merge = Merge::of_long([long], String::len);
        merge.next().unwrap().unwrap();
        assert_eq!(read.get(), 2);
        assert_eq!(merge.count(), 99);
    }

    #[test]
    fn a_fold_ends_with_the_first_error_of_push() {
        let mut pushed = 0;
        let result = fold_into(Merge::new([(0..9_u128).map(Ok)]), |_| {
            pushed += 1;
            if pushed == 3 {
                Err(Error::Interrupted)
            } else {
                Ok(())
            }
        });
        assert!(matches!(result, Err(Error::Interrupted)));
        assert_eq!(pushed, 3);
    }

    #[test]
    fn an_error_ends_the_merge() {
        for at in 0..3 {
            let failing = (0..3).map(|i| {
                if i == at {
                    Err(Error::Interrupted)
                } else {
                    Ok(i)
                }
            });
            let merge = Merge::new([failing]);
            let found: Vec<Result<i32>> = merge.collect();
            assert!(matches!(found.last(), Some(Err(Error::Interrupted))));
            assert_eq!(found.iter().filter(|item| item.is_err()).count(), 1);
        }
    }
}
