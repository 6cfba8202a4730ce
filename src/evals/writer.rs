//! Writes evaluations as a store, as EPD or as Parquet. Each format implements [`EvalsWriter`].

use std::path::Path;

use super::{
    layout::{BLOCK, EvalRecord, Footer, START},
    lines::write_eval_epd,
};
use crate::{
    error::{Error, Result},
    kind::FileKind,
    storage::checksum::Checksum,
    storage::output::{AtomicFile, BufferedFile, Finished, check_first_line},
};

/// A writer of evaluations to an output in one format.
pub(super) trait EvalsWriter: Send {
    /// Writes an evaluation. Its position key must be greater than that of every earlier evaluation. `origins` contains
    /// the names of all origins, into which `record` has an index.
    fn push(&mut self, record: &EvalRecord, origins: &[String]) -> Result<()>;

    /// Completes the output and returns it, ready to be committed. `origins` contains the names of the engines and
    /// files from which the evaluations come.
    fn finish(self: Box<Self>, origins: &[String]) -> Result<Finished>;
}

/// A format in which evaluations are written.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum EvalsFormat {
    /// A store, which [`Evals`](super::Evals) opens.
    Store,
    /// One EPD per line, with the operations `acd`, `acn`, `ce` and `dm`. Scores are seen from the side to move.
    Epd,
    /// A Parquet file. Its column `key` has the same values as in Parquet files of [counts](crate::counts).
    #[cfg(feature = "parquet")]
    Parquet,
}

/// Creates the output at `path` in the format `format`. Returns its writer, and a flag. The flag is `true` if
/// `path` is already a store of evaluations, which the new store must keep.
///
/// # Errors
///
/// Returns an error if the output cannot be created. Also returns an error if `force` is `false`, and `path` is a file
/// that polybook has not written or that somebody has changed.
pub(super) fn begin(
    path: &Path,
    format: EvalsFormat,
    force: bool,
) -> Result<(Box<dyn EvalsWriter>, bool)> {
    let mut has_store = false;
    let file = AtomicFile::create_over(path, |old| {
        if force {
            return Ok(());
        }
        let is_own = match format {
            EvalsFormat::Store => {
                has_store = FileKind::of(old)? == FileKind::Evals;
                has_store
            }
            // An EPD file has no room for a checksum that would show changes by hand, and a Parquet file could hold
            // more evaluations than the new one.
            EvalsFormat::Epd => false,
            #[cfg(feature = "parquet")]
            EvalsFormat::Parquet => false,
        };
        // An empty file is replaced.
        match is_own {
            true => Ok(()),
            false => check_first_line(old, |_| false),
        }
    })?;
    let out = BufferedFile::new(file);
    let writer: Box<dyn EvalsWriter> = match format {
        EvalsFormat::Store => Box::new(StoreWriter::new(out)?),
        EvalsFormat::Epd => Box::new(EpdWriter(out, Vec::new())),
        #[cfg(feature = "parquet")]
        EvalsFormat::Parquet => Box::new(super::parquet::ParquetWriter::new(out)?),
    };
    Ok((writer, has_store))
}

/// A writer of evaluations as lines of EPD. It reuses a buffer for the current line.
struct EpdWriter(BufferedFile, Vec<u8>);

impl EvalsWriter for EpdWriter {
    fn push(&mut self, record: &EvalRecord, _: &[String]) -> Result<()> {
        let EpdWriter(out, text) = self;
        let Some(pos) = record.position() else {
            let problem = format!("the position of key {:016x} is damaged", record.key);
            return Err(Error::damaged(out.target(), problem));
        };
        text.clear();
        write_eval_epd(&pos, record.eval, text);
        out.put(text)
    }

    fn finish(self: Box<Self>, _: &[String]) -> Result<Finished> {
        self.0.finish()
    }
}

/// A writer of a store of evaluations, a binary file that can be searched by position key.
struct StoreWriter {
    out: BufferedFile,
    evaluations: u64,
    checksum: Checksum,
    /// The CRC-32C of the records of the block that is being written.
    block: u32,
    /// The checksums of the complete blocks. They take 1/700 of the memory of the blocks' records.
    blocks: Vec<u8>,
}

impl StoreWriter {
    fn new(mut out: BufferedFile) -> Result<StoreWriter> {
        out.put(&START)?;
        Ok(StoreWriter {
            out,
            evaluations: 0,
            checksum: Checksum::default(),
            block: 0,
            blocks: Vec::new(),
        })
    }

    fn end_block(&mut self) {
        self.blocks.extend(self.block.to_be_bytes());
        self.block = 0;
    }
}

impl EvalsWriter for StoreWriter {
    fn push(&mut self, record: &EvalRecord, _: &[String]) -> Result<()> {
        let bytes = record.to_bytes();
        self.checksum.add(&bytes);
        self.evaluations += 1;
        self.block = crc32c::crc32c_append(self.block, &bytes);
        if self.evaluations.is_multiple_of(BLOCK) {
            self.end_block();
        }
        self.out.put(&bytes)
    }

    fn finish(mut self: Box<Self>, origins: &[String]) -> Result<Finished> {
        if !self.evaluations.is_multiple_of(BLOCK) {
            self.end_block();
        }
        self.out.put(&self.blocks)?;
        let footer = Footer::new(self.evaluations, self.checksum, origins);
        let footer = serde_json::to_vec(&footer).expect("texts and numbers are JSON");
        let length = u32::try_from(footer.len()).expect("a footer is short");
        self.out.put(&footer)?;
        self.out.put(&crc32c::crc32c(&footer).to_be_bytes())?;
        self.out.put(&length.to_be_bytes())?;
        self.out.finish()
    }
}
