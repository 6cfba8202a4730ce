//! Columns of integers without nulls, as polybook writes them, decoded here: in less time than the crate `parquet`
//! takes, which copies each page and each batch.

use bytes::Bytes;
use parquet::{basic::Encoding, file::metadata::ColumnChunkMetaData};

use super::{
    decode::{Dictionary, Differences, Indices, Plain, cut_short},
    error::CountsError,
    file::{ColumnPage, ColumnPages},
};

/// What the integers of a column are.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) enum NumberKind {
    /// Of 64 bits.
    Wide,
    /// Of 32 bits.
    Signed,
    /// Of 32 bits, from 0 on.
    Unsigned,
}

impl NumberKind {
    /// How many bytes an integer has.
    fn width(self) -> usize {
        match self {
            NumberKind::Wide => 8,
            NumberKind::Signed | NumberKind::Unsigned => 4,
        }
    }

    /// Makes integers of numbers of which only the low bits count.
    fn fit(self, numbers: &mut [i64]) {
        match self {
            NumberKind::Wide => {}
            NumberKind::Signed => numbers.iter_mut().for_each(|n| *n = i64::from(*n as i32)),
            NumberKind::Unsigned => numbers.iter_mut().for_each(|n| *n = i64::from(*n as u32)),
        }
    }
}

/// Whether all encodings of a column are known here.
pub(super) fn knows(column: &ColumnChunkMetaData) -> bool {
    #[expect(
        deprecated,
        reason = "old writers name it for levels, which there are none of"
    )]
    let of_levels = Encoding::BIT_PACKED;
    column.encodings().all(|encoding| {
        encoding == of_levels
            || matches!(
                encoding,
                Encoding::PLAIN
                    | Encoding::RLE
                    | Encoding::PLAIN_DICTIONARY
                    | Encoding::RLE_DICTIONARY
                    | Encoding::DELTA_BINARY_PACKED
            )
    })
}

/// Reads the integers of a column in order.
pub(super) struct NumberReader {
    column: &'static str,
    kind: NumberKind,
    pages: ColumnPages,
    dictionary: Dictionary,
    page: PageValues,
    /// How many values of the page are left.
    left: usize,
}

/// The values of a page.
enum PageValues {
    Plain(Plain),
    Indices(Indices),
    Differences(Differences),
}

impl NumberReader {
    pub(super) fn new(column: &'static str, kind: NumberKind, pages: ColumnPages) -> NumberReader {
        NumberReader {
            column,
            kind,
            pages,
            dictionary: Dictionary::default(),
            page: PageValues::Plain(Plain::new(Bytes::new())),
            left: 0,
        }
    }

    /// Replaces `values` with the next `rows` integers; `row` is the first of them.
    pub(super) fn read(
        &mut self,
        rows: usize,
        row: u64,
        values: &mut Vec<i64>,
    ) -> Result<(), CountsError> {
        values.resize(rows, 0);
        let mut out = &mut values[..];
        while !out.is_empty() {
            if self.left == 0 && !self.next_page()? {
                let end = row + (rows - out.len()) as u64;
                let problem = format!("column \"{}\" ends at row {end}", self.column);
                return Err(CountsError::Damaged(problem));
            }
            let now;
            (now, out) = out.split_at_mut(self.left.min(out.len()));
            self.left -= now.len();
            match &mut self.page {
                PageValues::Plain(plain) => {
                    plain.next(self.kind.width(), now)?;
                    self.kind.fit(now);
                }
                PageValues::Differences(differences) => {
                    differences.next(now)?;
                    self.kind.fit(now);
                }
                PageValues::Indices(indices) => {
                    indices.next(&self.dictionary, now)?;
                }
            }
        }
        Ok(())
    }

    /// Begins the next page of values; `false` at the end.
    fn next_page(&mut self) -> Result<bool, CountsError> {
        loop {
            let Some(page) = self.pages.next()? else {
                return Ok(false);
            };
            if page.is_dictionary {
                self.take_dictionary(page)?;
                continue;
            }
            if page.values == 0 {
                continue;
            }
            self.left = page.values;
            self.page = match page.encoding {
                Encoding::PLAIN => PageValues::Plain(Plain::new(page.bytes)),
                Encoding::DELTA_BINARY_PACKED => {
                    PageValues::Differences(Differences::new(page.bytes, page.values)?)
                }
                Encoding::PLAIN_DICTIONARY | Encoding::RLE_DICTIONARY => {
                    PageValues::Indices(Indices::new(page.bytes)?)
                }
                other => {
                    let problem = format!("a page of \"{}\" encoded as {other}", self.column);
                    return Err(CountsError::Damaged(problem));
                }
            };
            return Ok(true);
        }
    }

    fn take_dictionary(&mut self, page: ColumnPage) -> Result<(), CountsError> {
        if !matches!(page.encoding, Encoding::PLAIN | Encoding::PLAIN_DICTIONARY) {
            let problem = format!(
                "a dictionary of \"{}\" encoded as {}",
                self.column, page.encoding
            );
            return Err(CountsError::Damaged(problem));
        }
        let bytes = page.values.checked_mul(self.kind.width());
        if bytes.is_none_or(|bytes| bytes > page.bytes.len()) {
            return Err(cut_short());
        }
        let mut numbers = vec![0; page.values];
        Plain::new(page.bytes).next(self.kind.width(), &mut numbers)?;
        self.kind.fit(&mut numbers);
        self.dictionary = Dictionary::new(numbers);
        Ok(())
    }

    /// Passes over so many values, of which `row` is the first.
    pub(super) fn skip(&mut self, rows: usize, row: u64) -> Result<(), CountsError> {
        /// How many values are passed over at once.
        const STEP: usize = 1 << 11;
        let mut passed_over = Vec::new();
        for first in (0..rows).step_by(STEP) {
            self.read(STEP.min(rows - first), row + first as u64, &mut passed_over)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::{fs::File, sync::Arc};

    use parquet::{
        basic::{Compression, ZstdLevel},
        data_type::{Int32Type, Int64Type},
        file::{
            properties::{WriterProperties, WriterVersion},
            writer::SerializedFileWriter,
        },
        schema::parser::parse_message_type,
    };
    use proptest::prelude::*;

    use super::*;
    use crate::counts::file::{ParquetFile, caught};

    const KINDS: [(NumberKind, &str); 3] = [
        (NumberKind::Wide, "int64"),
        (NumberKind::Signed, "int32"),
        (NumberKind::Unsigned, "int32"),
    ];

    /// How a column is written.
    #[derive(Clone, Debug)]
    struct Writing {
        kind: (NumberKind, &'static str),
        encoding: Option<Encoding>,
        codec: Compression,
        version: WriterVersion,
        rows_of_page: usize,
    }

    fn writing() -> impl Strategy<Value = Writing> {
        let zstd = Compression::ZSTD(ZstdLevel::try_new(1).unwrap());
        let codecs = [Compression::UNCOMPRESSED, Compression::SNAPPY, zstd];
        let encodings = [
            None,
            Some(Encoding::PLAIN),
            Some(Encoding::DELTA_BINARY_PACKED),
        ];
        let versions = [WriterVersion::PARQUET_1_0, WriterVersion::PARQUET_2_0];
        (
            prop::sample::select(KINDS.to_vec()),
            prop::sample::select(encodings.to_vec()),
            prop::sample::select(codecs.to_vec()),
            prop::sample::select(versions.to_vec()),
            1usize..6000,
        )
            .prop_map(|(kind, encoding, codec, version, rows_of_page)| Writing {
                kind,
                encoding,
                codec,
                version,
                rows_of_page,
            })
    }

    /// Numbers with few bits and with many, those that repeat, those that ascend, and runs of one.
    fn numbers() -> impl Strategy<Value = Vec<i64>> {
        let runs =
            prop::collection::vec((any::<i64>(), 0u32..64, 1usize..200, any::<bool>()), 0..40);
        runs.prop_map(|runs| {
            let run = |(number, shift, length, is_one): (i64, u32, usize, bool)| {
                (0..length as i64).map(move |at| {
                    let more = if is_one {
                        0
                    } else {
                        at.wrapping_mul(number | 1)
                    };
                    number.wrapping_add(more) >> shift
                })
            };
            runs.into_iter().flat_map(run).collect()
        })
    }

    /// Writes the numbers as the one column of a file; answers what a reader should find.
    fn write(file: File, numbers: &[i64], writing: &Writing) -> Vec<i64> {
        let (kind, name) = writing.kind;
        let schema = format!("message numbers {{ required {name} number; }}");
        let schema = Arc::new(parse_message_type(&schema).unwrap());
        let mut properties = WriterProperties::builder()
            .set_compression(writing.codec)
            .set_writer_version(writing.version)
            .set_dictionary_enabled(writing.encoding.is_none())
            .set_write_batch_size(64)
            .set_data_page_row_count_limit(writing.rows_of_page);
        if let Some(encoding) = writing.encoding {
            properties = properties.set_encoding(encoding);
        }
        let properties = Arc::new(properties.build());
        let mut file = SerializedFileWriter::new(file, schema, properties).unwrap();
        let mut group = file.next_row_group().unwrap();
        let mut column = group.next_column().unwrap().unwrap();
        let narrow: Vec<i32> = numbers.iter().map(|number| *number as i32).collect();
        if kind == NumberKind::Wide {
            let column = column.typed::<Int64Type>();
            column.write_batch(numbers, None, None).unwrap();
        } else {
            let column = column.typed::<Int32Type>();
            column.write_batch(&narrow, None, None).unwrap();
        }
        column.close().unwrap();
        group.close().unwrap();
        file.close().unwrap();
        let narrow = narrow.into_iter();
        match kind {
            NumberKind::Wide => numbers.to_vec(),
            NumberKind::Signed => narrow.map(i64::from).collect(),
            NumberKind::Unsigned => narrow.map(|n| i64::from(n.cast_unsigned())).collect(),
        }
    }

    /// Reads so many numbers in steps of a size, and passes over each third step. Behind the last is an error.
    fn read(
        file: File,
        kind: NumberKind,
        count: usize,
        step: usize,
    ) -> Result<Vec<Option<i64>>, CountsError> {
        let mut file = ParquetFile::open(file)?;
        if file.groups().is_empty() {
            return Ok(Vec::new());
        }
        let pages = file.pages(0)?;
        assert!(knows(pages.metadata(0)));
        let mut reader = NumberReader::new("number", kind, pages.of_column(0)?);
        let (mut all, mut some) = (Vec::new(), Vec::new());
        for (number, first) in (0..count).step_by(step).enumerate() {
            let rows = step.min(count - first);
            if number % 3 == 2 {
                reader.skip(rows, first as u64)?;
                all.resize(all.len() + rows, None);
            } else {
                reader.read(rows, first as u64, &mut some)?;
                all.extend(some.iter().copied().map(Some));
            }
        }
        match reader.read(1, count as u64, &mut some) {
            Ok(()) => Err(CountsError::Damaged(
                "more numbers than were written".to_owned(),
            )),
            Err(_) => Ok(all),
        }
    }

    proptest! {
        #[test]
        fn numbers_are_read_as_they_were_written(
            numbers in numbers(), writing in writing(), step in 1usize..3000,
        ) {
            let (kind, _) = writing.kind;
            let file = tempfile::tempfile().unwrap();
            let expected = write(file.try_clone().unwrap(), &numbers, &writing);
            let found = read(file, kind, expected.len(), step).unwrap();
            prop_assert_eq!(found.len(), expected.len());
            for (at, (found, expected)) in found.iter().zip(&expected).enumerate() {
                prop_assert!(found.is_none_or(|found| found == *expected), "number {}", at);
            }
        }

        #[test]
        fn damaged_pages_do_no_harm(
            numbers in numbers(), writing in writing(), damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
        ) {
            use std::io::{Seek, Write};
            let (kind, _) = writing.kind;
            let mut file = tempfile::tempfile().unwrap();
            let expected = write(file.try_clone().unwrap(), &numbers, &writing);
            // The metadata behind the pages stay, so that the pages are read.
            let metadata = ParquetFile::open(file.try_clone().unwrap()).unwrap();
            let end = metadata.groups().first().map_or(0, |group| group.compressed_size() as usize);
            for (at, byte) in damage {
                if end > 0 {
                    file.seek(std::io::SeekFrom::Start(4 + at.index(end) as u64)).unwrap();
                    file.write_all(&[byte]).unwrap();
                }
            }
            if let Ok(found) = caught(|| read(file, kind, expected.len(), 1000)) {
                prop_assert_eq!(found.len(), expected.len());
            }
        }
    }
}
