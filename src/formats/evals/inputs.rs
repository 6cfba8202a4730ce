//! Reads the inputs from which a store of evaluations is made, in batches that several threads can process.

use std::{
    io::{Chain, Cursor, Read},
    sync::{
        Arc, OnceLock,
        atomic::{AtomicU64, Ordering},
    },
};

use super::{
    games::read_games,
    layout::{RECORD_SIZE, RECORDS_PER_BLOCK},
    lines::{BatchRead, LineFormat, read_lines},
    store::Evals,
};
use crate::{
    error::{Error, Result},
    games::pgn::{Batch, Cutter, Input, Stream, StreamOptions},
    kind::FileKind,
    progress::Meter,
};

/// The approximate size of a batch in bytes. A batch is the part of an input that a thread processes as one task.
const BATCH_SIZE: usize = 1 << 19;

/// The number of bytes at the start of a text input that are examined to detect its format.
const DETECTION_SIZE: u64 = 1 << 16;

/// An input with evaluations: a text file, such as a PGN or EPD file, or a store of evaluations.
pub(super) enum EvalsSource {
    Text(Input),
    Store(Evals),
}

/// The kind of entries in an input: games, lines of text, or records of a store of evaluations.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) enum InputEntries {
    Games,
    Lines(LineFormat),
    Records,
}

impl EvalsSource {
    /// Opens an input with evaluations, and determines whether it is a text file or a store. Verifies all checksums of
    /// a store.
    ///
    /// # Errors
    ///
    /// Returns an error if the input cannot be read or is a damaged store. Also returns an error if the input is a
    /// Parquet file of evaluations, because polybook writes such files but does not read them.
    pub(super) fn new(input: &Input) -> Result<EvalsSource> {
        input.check()?;
        match input.kind()? {
            FileKind::Evals => {
                let evals = Evals::open(input.path())?;
                evals.check()?;
                Ok(EvalsSource::Store(evals))
            }
            #[cfg(feature = "parquet")]
            FileKind::Parquet if super::parquet::contains_evals(input.path())? => {
                let problem = "this Parquet file contains evaluations, but polybook does not read evaluations from \
                               Parquet: give the store from which the file was made";
                Err(Error::foreign(input.path(), problem))
            }
            _ => Ok(EvalsSource::Text(input.clone())),
        }
    }

    /// Returns the store of evaluations, or `None` if the input is a text file.
    pub(super) fn store(&self) -> Option<&Evals> {
        match self {
            EvalsSource::Text(_) => None,
            EvalsSource::Store(evals) => Some(evals),
        }
    }

    /// Returns the names of the origins that the input's evaluations may have. The origin of an evaluation is its
    /// source, such as an engine. Evaluations in a text file have the origin `PGN`, `EPD` or `Lichess`.
    pub(super) fn origins(&self) -> Vec<&str> {
        match self {
            EvalsSource::Text(_) => vec![EPD, LICHESS, PGN],
            EvalsSource::Store(evals) => evals.origins().iter().map(String::as_str).collect(),
        }
    }

    /// Opens the input for reading in batches.
    ///
    /// # Errors
    ///
    /// Returns an error if the input cannot be opened or read.
    pub(super) fn open(&self, options: &StreamOptions) -> Result<SourceBatches<'_>> {
        match self {
            EvalsSource::Store(evals) => Ok(SourceBatches::new(
                BatchSource::Records(evals),
                Arc::default(),
            )),
            EvalsSource::Text(input) => SourceBatches::of_text(input, options),
        }
    }
}

impl<'a> SourceBatches<'a> {
    /// Opens a text file for reading in batches, and detects whether it contains games or lines.
    ///
    /// # Errors
    ///
    /// Returns an error if the file cannot be opened or read.
    pub(super) fn of_text(input: &'a Input, options: &StreamOptions) -> Result<SourceBatches<'a>> {
        let mut stream = input.open(options)?;
        let (taken, unread) = (Arc::clone(&stream.taken), Arc::clone(&stream.left_out));
        let mut start = Vec::new();
        let read = (&mut stream).take(DETECTION_SIZE).read_to_end(&mut start);
        read.map_err(|err| input.error(err))?;
        let format = LineFormat::of(&start);
        let text = Cursor::new(start).chain(stream);
        let (entries, cutter) = match format {
            Some(format) => (
                InputEntries::Lines(format),
                Cutter::of_lines(text, BATCH_SIZE),
            ),
            None => (InputEntries::Games, Cutter::new(text, BATCH_SIZE)),
        };
        let cut = BatchSource::Text(input, entries, Box::new(cutter));
        Ok(SourceBatches {
            unread,
            ..SourceBatches::new(cut, taken)
        })
    }
}

const EPD: &str = "EPD";
const LICHESS: &str = "Lichess";
const PGN: &str = "PGN";

/// A reader that divides an input into batches of entries (games, lines or records), which several threads can process.
pub(super) struct SourceBatches<'a> {
    cut: BatchSource<'a>,
    /// The number of bytes of the input that have been read.
    taken: Arc<AtomicU64>,
    /// A cell that receives a description of the files in a zip archive that are not read.
    unread: Arc<OnceLock<String>>,
    /// The number of bytes that have already been added to the meter.
    shown: u64,
    /// The number of records of a store that have been read.
    records: u64,
    /// The number of blocks of a store that have been read.
    blocks: u64,
}

/// The data that a [`SourceBatches`] divides into batches: a text file with the [`Cutter`] that divides it, or a store
/// of evaluations.
enum BatchSource<'a> {
    Text(&'a Input, InputEntries, Box<Cutter<TextStream>>),
    Records(&'a Evals),
}

/// A reader of the decompressed bytes of a text file. The reader first returns the bytes that were already read to
/// detect the format.
type TextStream = Chain<Cursor<Vec<u8>>, Stream>;

impl<'a> SourceBatches<'a> {
    fn new(cut: BatchSource<'a>, taken: Arc<AtomicU64>) -> SourceBatches<'a> {
        SourceBatches {
            cut,
            taken,
            unread: Arc::default(),
            shown: 0,
            records: 0,
            blocks: 0,
        }
    }

    /// Returns the kind of entries in the batches: games, lines of text, or records of a store.
    pub(super) fn entries(&self) -> InputEntries {
        match &self.cut {
            BatchSource::Text(_, entries, _) => *entries,
            BatchSource::Records(..) => InputEntries::Records,
        }
    }

    /// Returns a description of the files in a zip archive that were skipped. Returns `None` if no file was skipped.
    /// Call this function after the last batch; before that, the description is incomplete.
    pub(super) fn unread_files(&self) -> Option<String> {
        self.unread.get().cloned()
    }

    /// Returns the next batch of the input, or `None` after the last one. Advances `meter` by the number of bytes read.
    ///
    /// # Errors
    ///
    /// Returns an error if the input cannot be read, or if a checksum of a store does not match.
    pub(super) fn next_batch(&mut self, meter: &Meter) -> Result<Option<Batch>> {
        let batch = match &mut self.cut {
            BatchSource::Text(input, _, cutter) => {
                cutter.next_batch().map_err(|err| input.error(err))?
            }
            BatchSource::Records(evals) => {
                let offset = self.records;
                let blocks = (BATCH_SIZE / RECORD_SIZE) as u64 / RECORDS_PER_BLOCK;
                let text = evals.blocks(self.blocks, blocks)?;
                self.blocks += blocks;
                self.records += (text.len() / RECORD_SIZE) as u64;
                self.taken.fetch_add(text.len() as u64, Ordering::Relaxed);
                (!text.is_empty()).then_some(Batch { text, offset })
            }
        };
        let taken = self.taken.load(Ordering::Relaxed);
        meter.advance(taken - self.shown);
        self.shown = taken;
        Ok(batch)
    }
}

/// Reads the evaluations in `batch`, a batch of the input `source` that contains entries of the kind `entries`.
/// `origin_of` converts the name of an origin (the source of an evaluation, such as an engine) to its number in the
/// output.
///
/// # Errors
///
/// Returns an error if a record of a store is damaged. A game or line that cannot be read is not an error, but is
/// counted in the result.
pub(super) fn read_batch(
    source: &EvalsSource,
    entries: InputEntries,
    batch: &Batch,
    origin_of: impl Fn(&str) -> u8,
) -> Result<BatchRead> {
    match (entries, source) {
        (InputEntries::Games, _) => Ok(read_games(&batch.text, origin_of(PGN))),
        (InputEntries::Lines(format), _) => {
            let origin = match format {
                LineFormat::Epd => EPD,
                LineFormat::Lichess => LICHESS,
            };
            Ok(read_lines(format, &batch.text, origin_of(origin)))
        }
        (InputEntries::Records, EvalsSource::Store(evals)) => {
            let mut read = BatchRead::default();
            let origins = evals.origins().iter();
            let origins: Vec<u8> = origins.map(|name| origin_of(name)).collect();
            for bytes in batch.text.as_chunks().0 {
                let mut record = evals.read(bytes)?;
                record.eval.origin = origins[usize::from(record.eval.origin)];
                read.records.push(record.to_ranked());
                read.entries += 1;
            }
            Ok(read)
        }
        (InputEntries::Records, EvalsSource::Text(_)) => unreachable!("a text has no records"),
    }
}
