//! Writes evaluations as a store, as EPD or as Parquet. Each format implements [`EvalsWriter`].

use super::{
    layout::{EvalRecord, FIRST_BYTES, Footer, RECORDS_PER_BLOCK},
    lines::write_eval_epd,
};
use crate::{
    error::{Error, Result},
    storage::checksum::Checksum,
    storage::output::{BufferedFile, Finished},
};

/// A writer that writes evaluations to an output. Each implementation writes one format.
pub(super) trait EvalsWriter: Send {
    /// Writes the evaluation in `record`. Evaluations must be written in ascending order of their position keys.
    /// `origins` lists the names of the sources of evaluations, such as engines, and `record` contains an index into
    /// this list.
    fn push(&mut self, record: &EvalRecord, origins: &[String]) -> Result<()>;

    /// Completes the output and returns it, ready to be committed. `origins` lists the names of the sources of
    /// evaluations, such as engines.
    fn finish(self: Box<Self>, origins: &[String]) -> Result<Finished>;
}

/// A writer that writes evaluations as lines of EPD. The second field is a buffer for the current line.
pub(super) struct EpdWriter(BufferedFile, Vec<u8>);

impl EpdWriter {
    pub(super) fn new(out: BufferedFile) -> EpdWriter {
        EpdWriter(out, Vec::new())
    }
}

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

/// A writer that writes a store of evaluations, a binary file in which positions are found by their keys.
pub(super) struct StoreWriter {
    out: BufferedFile,
    evaluations: u64,
    checksum: Checksum,
    /// The CRC-32C of the records of the block that is being written.
    block: u32,
    /// The checksums of the complete blocks. These checksums take about 0.14 % of the size of the records.
    blocks: Vec<u8>,
}

impl StoreWriter {
    pub(super) fn new(mut out: BufferedFile) -> Result<StoreWriter> {
        out.put(&FIRST_BYTES)?;
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
        if self.evaluations.is_multiple_of(RECORDS_PER_BLOCK) {
            self.end_block();
        }
        self.out.put(&bytes)
    }

    fn finish(mut self: Box<Self>, origins: &[String]) -> Result<Finished> {
        if !self.evaluations.is_multiple_of(RECORDS_PER_BLOCK) {
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
