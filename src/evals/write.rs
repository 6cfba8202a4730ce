//! Writing evaluations: as a store, as EPDs, as Parquet.

use std::{
    fs::File,
    io::{BufWriter, Write},
    path::Path,
};

use super::{
    buffered::{finish, target},
    layout::{Footer, Record, START},
    lines::{are_own, write_eval_epd},
    store::is_evals,
};
use crate::{
    checksum::Checksum,
    error::{At, Error, Result},
    output::{AtomicFile, Finished, check_first_line},
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
        EvalsFormat::Store => is_evals(old)?,
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

/// An output that is open.
pub(super) enum Output {
    Store(StoreWriter),
    Epd(BufWriter<AtomicFile>, Vec<u8>),
    #[cfg(feature = "parquet")]
    Parquet(Box<super::parquet::ParquetWriter>),
}

impl Output {
    /// Begins an output.
    pub(super) fn begin(path: &Path, format: EvalsFormat) -> Result<Output> {
        let file = AtomicFile::create_over(path, |old| may_replace(old, format))?;
        let buffered = |file| BufWriter::with_capacity(1 << 16, file);
        Ok(match format {
            EvalsFormat::Store => Output::Store(StoreWriter::new(buffered(file))?),
            EvalsFormat::Epd => Output::Epd(buffered(file), Vec::new()),
            #[cfg(feature = "parquet")]
            EvalsFormat::Parquet => {
                let writer = super::parquet::ParquetWriter::new(buffered(file))?;
                Output::Parquet(Box::new(writer))
            }
        })
    }

    /// Writes a record. Those before it have smaller keys. `origins` has the names of all.
    #[cfg_attr(not(feature = "parquet"), allow(unused_variables))]
    pub(super) fn push(&mut self, record: &Record, origins: &[String]) -> Result<()> {
        match self {
            Output::Store(writer) => writer.push(record),
            Output::Epd(out, text) => {
                let Some(pos) = record.position() else {
                    let problem = format!("the position of key {:016x} is damaged", record.key);
                    return Err(Error::damaged(out.get_ref().target(), problem));
                };
                text.clear();
                write_eval_epd(&pos, record.eval, text);
                let written = out.write_all(text);
                written.at(out.get_ref().target(), "write")
            }
            #[cfg(feature = "parquet")]
            Output::Parquet(writer) => writer.push(record, origins),
        }
    }

    /// Ends the output.
    pub(super) fn finish(self, origins: &[String]) -> Result<Finished> {
        match self {
            Output::Store(writer) => writer.finish(origins),
            Output::Epd(out, _) => finish(out),
            #[cfg(feature = "parquet")]
            Output::Parquet(writer) => writer.finish(origins),
        }
    }
}

/// Writes a store.
pub(super) struct StoreWriter {
    out: BufWriter<AtomicFile>,
    evaluations: u64,
    checksum: Checksum,
}

impl StoreWriter {
    fn new(mut out: BufWriter<AtomicFile>) -> Result<StoreWriter> {
        let path = target(&out);
        out.write_all(&START).at(path, "write")?;
        Ok(StoreWriter {
            out,
            evaluations: 0,
            checksum: Checksum::default(),
        })
    }

    fn push(&mut self, record: &Record) -> Result<()> {
        let bytes = record.to_bytes();
        self.checksum.add(&bytes);
        self.evaluations += 1;
        let written = self.out.write_all(&bytes);
        written.at(self.out.get_ref().target(), "write")
    }

    fn finish(mut self, origins: &[String]) -> Result<Finished> {
        let path = target(&self.out);
        let footer = Footer::new(self.evaluations, self.checksum, origins);
        let footer = serde_json::to_vec(&footer).expect("texts and numbers are JSON");
        let length = u32::try_from(footer.len()).expect("a footer is short");
        self.out
            .write_all(&footer)
            .and_then(|()| self.out.write_all(&length.to_be_bytes()))
            .at(path, "write")?;
        finish(self.out)
    }
}
