//! Writes evaluations as a Parquet file, which DuckDB and Spark can join with a counts directory.
//!
//! | column | type | content |
//! |---|---|---|
//! | `key` | 64-bit integer | the bits of the Polyglot key, as a signed number, as in a counts directory |
//! | `cp` | 32-bit integer | centipawns, seen from White; null for a mate |
//! | `mate` | 32-bit integer | moves to mate, negative if Black mates; null for centipawns |
//! | `depth` | 32-bit integer | half-moves; 0 if not known |
//! | `nodes` | 64-bit integer | 0 if not known |
//! | `origin` | text | the name of the origin of the evaluation |

use std::{fs::File, path::Path};

use parquet::{
    data_type::{ByteArray, ByteArrayType, Int32Type, Int64Type},
    file::metadata::ParquetMetaDataReader,
};

use super::{layout::EvalRecord, writer::EvalsWriter};
use crate::{
    error::{At, Result},
    storage::{
        output::{BufferedFile, Finished},
        parquet_table::{
            ROWS_PER_GROUP, TableWriter, properties, system_error, write_column, write_optional,
        },
    },
};

const SCHEMA: &str = "message evals { required int64 key; optional int32 cp; optional int32 mate; required int32 depth; \
    required int64 nodes; required binary origin (UTF8); }";

/// Returns `true` if the file at `path` is a Parquet file of evaluations, as [`ParquetWriter`] writes it. Returns
/// `false` for any other file and for a damaged file.
///
/// # Errors
///
/// Returns an error if the operating system cannot read the file.
pub(super) fn contains_evals(path: &Path) -> Result<bool> {
    let file = File::open(path).at(path, "open")?;
    match ParquetMetaDataReader::new().parse_and_finish(&file) {
        Ok(metadata) => Ok(metadata.file_metadata().schema().name() == "evals"),
        Err(err) => match system_error(err) {
            Some(err) => Err(err).at(path, "read"),
            None => Ok(false),
        },
    }
}

/// A writer that writes evaluations to a Parquet file. The evaluations must be written in ascending order of their
/// position keys.
pub(super) struct ParquetWriter {
    file: TableWriter<BufferedFile>,
    /// The rows of the current row group.
    rows: Vec<EvalRecord>,
}

impl ParquetWriter {
    pub(super) fn new(out: BufferedFile) -> Result<ParquetWriter> {
        let path = out.target().to_owned();
        Ok(ParquetWriter {
            file: TableWriter::new(out, &path, SCHEMA, properties().build())?,
            rows: Vec::new(),
        })
    }

    fn write_group(&mut self, origins: &[String]) -> Result<()> {
        let rows = &self.rows;
        self.file.write_group(|group| {
            let signed = |number: u64| i64::try_from(number).unwrap_or(i64::MAX);
            let scores = || rows.iter().map(|row| row.eval.score);
            write_column::<Int64Type>(group, rows.iter().map(|row| row.key.cast_signed()))?;
            write_optional(group, scores().map(|score| score.as_centipawns()))?;
            write_optional(group, scores().map(|score| score.as_mate()))?;
            write_column::<Int32Type>(group, rows.iter().map(|row| row.eval.depth.into()))?;
            write_column::<Int64Type>(group, rows.iter().map(|row| signed(row.eval.nodes)))?;
            let origins = rows.iter().map(|row| {
                let name = &*origins[usize::from(row.eval.origin)];
                ByteArray::from(name)
            });
            write_column::<ByteArrayType>(group, origins)
        })?;
        self.rows.clear();
        Ok(())
    }
}

impl EvalsWriter for ParquetWriter {
    fn push(&mut self, record: &EvalRecord, origins: &[String]) -> Result<()> {
        self.rows.push(*record);
        if self.rows.len() == ROWS_PER_GROUP {
            self.write_group(origins)?;
        }
        Ok(())
    }

    fn finish(mut self: Box<Self>, origins: &[String]) -> Result<Finished> {
        self.write_group(origins)?;
        self.file.finish()?.finish()
    }
}
