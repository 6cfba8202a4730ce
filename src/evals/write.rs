//! Writing evaluations: as a store, as EPDs, as Parquet.

use std::{fs::File, path::Path};

use super::{
    layout::{EvalRecord, Footer, START},
    lines::{are_own, write_eval_epd},
    writer::EvalsWriter,
};
use crate::{
    checksum::Checksum,
    error::{At, Error, Result},
    kind::FileKind,
    output::{AtomicFile, BufferedFile, Finished, check_first_line},
};

/// What evaluations are written as.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum EvalsFormat {
    /// A store, which [`Evals`](super::Evals) opens.
    Store,
    /// An EPD a line, with `acd`, `acn`, `ce`, seen from the side to move, and `dm`.
    Epd,
    /// A Parquet file with a column `key` as [counts](crate::counts) have it.
    #[cfg(feature = "parquet")]
    Parquet,
}

/// Refuses to replace a file that is not of the format.
fn may_replace(old: &Path, format: EvalsFormat) -> Result<()> {
    let is_own = match format {
        EvalsFormat::Store => FileKind::of(old)? == FileKind::Evals,
        EvalsFormat::Epd => File::open(old).and_then(are_own).at(old, "read")?,
        #[cfg(feature = "parquet")]
        EvalsFormat::Parquet => super::parquet::is_ours(old)?,
    };
    // As all outputs, an empty file is replaced.
    match is_own {
        true => Ok(()),
        false => check_first_line(old, |_| false),
    }
}

/// Begins an output.
pub(super) fn begin(path: &Path, format: EvalsFormat) -> Result<Box<dyn EvalsWriter>> {
    let file = AtomicFile::create_over(path, |old| may_replace(old, format))?;
    let out = BufferedFile::new(file);
    Ok(match format {
        EvalsFormat::Store => Box::new(StoreWriter::new(out)?),
        EvalsFormat::Epd => Box::new(EpdWriter(out, Vec::new())),
        #[cfg(feature = "parquet")]
        EvalsFormat::Parquet => Box::new(super::parquet::ParquetWriter::new(out)?),
    })
}

/// Writes EPDs, each by way of a text that is used again.
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

/// Writes a store.
struct StoreWriter {
    out: BufferedFile,
    evaluations: u64,
    checksum: Checksum,
}

impl StoreWriter {
    fn new(mut out: BufferedFile) -> Result<StoreWriter> {
        out.put(&START)?;
        Ok(StoreWriter {
            out,
            evaluations: 0,
            checksum: Checksum::default(),
        })
    }
}

impl EvalsWriter for StoreWriter {
    fn push(&mut self, record: &EvalRecord, _: &[String]) -> Result<()> {
        let bytes = record.to_bytes();
        self.checksum.add(&bytes);
        self.evaluations += 1;
        self.out.put(&bytes)
    }

    fn finish(mut self: Box<Self>, origins: &[String]) -> Result<Finished> {
        let footer = Footer::new(self.evaluations, self.checksum, origins);
        let footer = serde_json::to_vec(&footer).expect("texts and numbers are JSON");
        let length = u32::try_from(footer.len()).expect("a footer is short");
        self.out.put(&footer)?;
        self.out.put(&length.to_be_bytes())?;
        self.out.finish()
    }
}
