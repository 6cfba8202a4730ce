//! Evaluations as a Parquet file, which DuckDB and Spark join with counts.
//!
//! | column | type | content |
//! |---|---|---|
//! | `key` | 64-bit integer | the bits of the Polyglot key, as a signed number, as in counts |
//! | `cp` | 32-bit integer | centipawns, seen from White; null for a mate |
//! | `mate` | 32-bit integer | moves to mate, negative if Black mates; null for centipawns |
//! | `depth` | 32-bit integer | half-moves; 0 if not known |
//! | `nodes` | 64-bit integer | 0 if not known |
//! | `origin` | text | where the evaluation is from |

use std::{fs::File, io, path::Path, sync::Arc};

use parquet::{
    basic::{Compression, ZstdLevel},
    data_type::{ByteArray, ByteArrayType, DataType, Int32Type, Int64Type},
    errors::ParquetError,
    file::{
        metadata::ParquetMetaDataReader,
        properties::WriterProperties,
        writer::{SerializedFileWriter, SerializedRowGroupWriter},
    },
    schema::parser::parse_message_type,
};

use super::{layout::EvalRecord, writer::EvalsWriter};
use crate::{
    error::{At, Error, Result},
    output::{BufferedFile, Finished},
};

const SCHEMA: &str = "message evals { required int64 key; optional int32 cp; optional int32 mate; required int32 depth; \
    required int64 nodes; required binary origin (UTF8); }";

/// How many rows a row group has.
const ROWS_OF_GROUP: usize = 1 << 16;

/// Whether a file is one that [`ParquetWriter`] wrote.
pub(super) fn is_ours(path: &Path) -> Result<bool> {
    let file = File::open(path).at(path, "open")?;
    let metadata = ParquetMetaDataReader::new().parse_and_finish(&file);
    Ok(metadata.is_ok_and(|metadata| metadata.file_metadata().schema().name() == "evals"))
}

/// Writes rows in the order of keys.
pub(super) struct ParquetWriter {
    file: SerializedFileWriter<BufferedFile>,
    /// Those of the present row group.
    rows: Vec<EvalRecord>,
}

impl ParquetWriter {
    pub(super) fn new(out: BufferedFile) -> Result<ParquetWriter> {
        let path = out.target().to_owned();
        let open = || {
            let properties = WriterProperties::builder()
                .set_compression(Compression::ZSTD(ZstdLevel::try_new(1)?))
                .set_created_by(concat!("polybook ", env!("CARGO_PKG_VERSION")).to_owned());
            let schema = Arc::new(parse_message_type(SCHEMA)?);
            SerializedFileWriter::new(out, schema, Arc::new(properties.build()))
        };
        Ok(ParquetWriter {
            file: open().map_err(|err| not_written(&path, err))?,
            rows: Vec::new(),
        })
    }

    fn write_group(&mut self, origins: &[String]) -> Result<()> {
        let path = self.file.inner().target().to_owned();
        let group = group(&mut self.file, &self.rows, origins);
        self.rows.clear();
        group.map_err(|err| not_written(&path, err))
    }
}

impl EvalsWriter for ParquetWriter {
    fn push(&mut self, record: &EvalRecord, origins: &[String]) -> Result<()> {
        self.rows.push(*record);
        if self.rows.len() == ROWS_OF_GROUP {
            self.write_group(origins)?;
        }
        Ok(())
    }

    fn finish(mut self: Box<Self>, origins: &[String]) -> Result<Finished> {
        self.write_group(origins)?;
        let path = self.file.inner().target().to_owned();
        let out = self.file.into_inner();
        out.map_err(|err| not_written(&path, err))?.finish()
    }
}

fn group(
    file: &mut SerializedFileWriter<BufferedFile>,
    rows: &[EvalRecord],
    origins: &[String],
) -> Result<(), ParquetError> {
    let mut group = file.next_row_group()?;
    let signed = |number: u64| i64::try_from(number).unwrap_or(i64::MAX);
    let scores = || rows.iter().map(|row| row.eval.score);
    column::<Int64Type>(&mut group, rows.iter().map(|row| row.key.cast_signed()))?;
    optional(&mut group, scores().map(|score| score.as_centipawns()))?;
    optional(&mut group, scores().map(|score| score.as_mate()))?;
    column::<Int32Type>(&mut group, rows.iter().map(|row| row.eval.depth.into()))?;
    column::<Int64Type>(&mut group, rows.iter().map(|row| signed(row.eval.nodes)))?;
    let origins = rows.iter().map(|row| {
        let name = &*origins[usize::from(row.eval.origin)];
        ByteArray::from(name)
    });
    column::<ByteArrayType>(&mut group, origins)?;
    group.close()?;
    Ok(())
}

/// Writes the next column.
fn column<T: DataType>(
    group: &mut SerializedRowGroupWriter<'_, BufferedFile>,
    values: impl Iterator<Item = T::T>,
) -> Result<(), ParquetError> {
    let mut column = group.next_column()?.expect("the schema has the column");
    let values: Vec<T::T> = values.collect();
    column.typed::<T>().write_batch(&values, None, None)?;
    column.close()
}

/// Writes the next column, which may have nulls.
fn optional(
    group: &mut SerializedRowGroupWriter<'_, BufferedFile>,
    values: impl Iterator<Item = Option<i16>> + Clone,
) -> Result<(), ParquetError> {
    let mut column = group.next_column()?.expect("the schema has the column");
    let levels: Vec<i16> = values.clone().map(|value| value.is_some().into()).collect();
    let values: Vec<i32> = values.flatten().map(i32::from).collect();
    column
        .typed::<Int32Type>()
        .write_batch(&values, Some(&levels), None)?;
    column.close()
}

/// Adds the path to an error of the crate `parquet`.
fn not_written(path: &Path, err: ParquetError) -> Error {
    let source = match err {
        ParquetError::External(inner) => match inner.downcast::<io::Error>() {
            Ok(err) => *err,
            Err(other) => io::Error::other(other),
        },
        other => io::Error::other(other),
    };
    Error::Io {
        path: path.to_owned(),
        doing: "write",
        source,
    }
}
