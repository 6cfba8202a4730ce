//! Reading columns of Parquet as other programs write them: integers of 32 or 64 bits, and nullable columns without
//! nulls.

use parquet::{
    basic::{LogicalType, Type},
    column::reader::{ColumnReader, ColumnReaderImpl},
    data_type::{BoolType, ByteArray, ByteArrayType, DataType, Int32Type, Int64Type},
    schema::types::{ColumnDescriptor, SchemaDescriptor},
};

use super::{error::CountsError, file::ParquetFile};

/// A column of a file: its name and its index.
#[derive(Copy, Clone, Debug)]
pub(super) struct Column {
    name: &'static str,
    place: usize,
}

/// The type of values that a column must contain.
#[derive(Copy, Clone)]
pub(super) enum Holds {
    Integers,
    Booleans,
    Texts,
}

impl Column {
    /// Finds the column with this name. Returns `None` if there is none.
    ///
    /// # Errors
    ///
    /// Returns an error if several columns have this name, or if the column has another type than `holds`.
    pub(super) fn find(
        schema: &SchemaDescriptor,
        name: &'static str,
        holds: Holds,
    ) -> Result<Option<Column>, CountsError> {
        let is_it =
            |column: &ColumnDescriptor| matches!(column.path().parts(), [only] if only == name);
        let columns = schema.columns().iter().enumerate();
        let mut places = columns
            .filter(|(_, column)| is_it(column))
            .map(|(place, _)| place);
        let Some(place) = places.next() else {
            return Ok(None);
        };
        if places.next().is_some() {
            return Err(CountsError::Columns(name));
        }
        let column = &schema.columns()[place];
        let of_type = column.physical_type();
        let (wanted, is_wanted) = match holds {
            Holds::Integers => ("a 64-bit or 32-bit integer", is_plain_integer(column)),
            Holds::Booleans => ("a boolean", of_type == Type::BOOLEAN),
            Holds::Texts => ("a text", of_type == Type::BYTE_ARRAY),
        };
        if column.max_rep_level() > 0 || !is_wanted {
            let found = match column.logical_type_ref() {
                Some(logical) => format!("{of_type} as {logical:?}"),
                None => of_type.to_string(),
            };
            return Err(CountsError::Type {
                column: name,
                found,
                wanted,
            });
        }
        Ok(Some(Column { name, place }))
    }

    /// Finds the column with this name.
    ///
    /// # Errors
    ///
    /// Returns an error if there is none, and in the cases of [`Column::find`].
    pub(super) fn required(
        schema: &SchemaDescriptor,
        name: &'static str,
        holds: Holds,
    ) -> Result<Column, CountsError> {
        Column::find(schema, name, holds)?.ok_or(CountsError::NoColumn(name))
    }

    /// Returns the index of the column in the file.
    pub(super) fn place(&self) -> usize {
        self.place
    }

    /// Returns `true` if the column's integers are unsigned.
    pub(super) fn is_unsigned(&self, schema: &SchemaDescriptor) -> bool {
        matches!(
            schema.column(self.place).logical_type_ref(),
            Some(LogicalType::Integer(integer)) if !integer.is_signed
        )
    }

    /// Creates a reader of the column's values in a row group.
    ///
    /// # Errors
    ///
    /// Returns an error if the metadata of the column are damaged.
    pub(super) fn open(&self, file: &ParquetFile, group: usize) -> Result<Values, CountsError> {
        Ok(Values {
            column: self.name,
            reader: file.column(group, self.place)?,
            is_unsigned: self.is_unsigned(file.schema()),
            narrow: Vec::new(),
            levels: Vec::new(),
        })
    }
}

/// Returns `true` if the column contains integers and not dates, times or decimal numbers stored as integers.
fn is_plain_integer(column: &ColumnDescriptor) -> bool {
    use parquet::basic::ConvertedType;
    let is_integer = matches!(column.physical_type(), Type::INT32 | Type::INT64);
    let is_plain = matches!(
        column.logical_type_ref(),
        None | Some(LogicalType::Integer(_))
    );
    let is_other = matches!(
        column.converted_type(),
        ConvertedType::DECIMAL
            | ConvertedType::DATE
            | ConvertedType::TIME_MILLIS
            | ConvertedType::TIME_MICROS
            | ConvertedType::TIMESTAMP_MILLIS
            | ConvertedType::TIMESTAMP_MICROS
    );
    is_integer && is_plain && !is_other
}

/// Reads the values of a column in a row group, in order.
pub(super) struct Values {
    column: &'static str,
    reader: ColumnReader,
    /// Whether 32-bit values are unsigned.
    is_unsigned: bool,
    /// A buffer for 32-bit values.
    narrow: Vec<i32>,
    /// A buffer for definition levels.
    levels: Vec<i16>,
}

impl Values {
    /// Replaces `values` with the next `rows` integers. `row` is the number of the first row, for error messages.
    ///
    /// # Errors
    ///
    /// Returns an error if a value is null, if the column has fewer values, or if the file is damaged.
    pub(super) fn integers(
        &mut self,
        rows: usize,
        row: u64,
        values: &mut Vec<i64>,
    ) -> Result<(), CountsError> {
        match &mut self.reader {
            ColumnReader::Int64ColumnReader(reader) => {
                read::<Int64Type>(self.column, reader, rows, row, values, &mut self.levels)
            }
            ColumnReader::Int32ColumnReader(reader) => {
                let narrow = &mut self.narrow;
                read::<Int32Type>(self.column, reader, rows, row, narrow, &mut self.levels)?;
                values.clear();
                if self.is_unsigned {
                    values.extend(narrow.iter().map(|value| i64::from(value.cast_unsigned())));
                } else {
                    values.extend(narrow.iter().map(|value| i64::from(*value)));
                }
                Ok(())
            }
            _ => Err(self.other_type()),
        }
    }

    /// Replaces `values` with the next `rows` booleans. Otherwise like [`integers`](Values::integers).
    pub(super) fn booleans(
        &mut self,
        rows: usize,
        row: u64,
        values: &mut Vec<bool>,
    ) -> Result<(), CountsError> {
        match &mut self.reader {
            ColumnReader::BoolColumnReader(reader) => {
                read::<BoolType>(self.column, reader, rows, row, values, &mut self.levels)
            }
            _ => Err(self.other_type()),
        }
    }

    /// Replaces `values` with the next `rows` strings. Otherwise like [`integers`](Values::integers).
    pub(super) fn texts(
        &mut self,
        rows: usize,
        row: u64,
        values: &mut Vec<ByteArray>,
    ) -> Result<(), CountsError> {
        match &mut self.reader {
            ColumnReader::ByteArrayColumnReader(reader) => {
                read::<ByteArrayType>(self.column, reader, rows, row, values, &mut self.levels)
            }
            _ => Err(self.other_type()),
        }
    }

    /// Returns an error that the row group's column has another type than the schema says.
    fn other_type(&self) -> CountsError {
        CountsError::Damaged(format!("column \"{}\" changes its type", self.column))
    }
}

/// Replaces `values` with exactly `rows` values.
///
/// # Errors
///
/// Returns an error if a value is null, if there are fewer values, or if the file is damaged.
fn read<T: DataType>(
    column: &'static str,
    reader: &mut ColumnReaderImpl<T>,
    rows: usize,
    row: u64,
    values: &mut Vec<T::T>,
    levels: &mut Vec<i16>,
) -> Result<(), CountsError> {
    values.clear();
    levels.clear();
    let (records, found, _) = reader.read_records(rows, Some(levels), None, values)?;
    if found < records {
        return Err(CountsError::Null { column, row });
    }
    if records != rows || values.len() != rows {
        let problem = format!("column \"{column}\" ends at row {}", row + records as u64);
        return Err(CountsError::Damaged(problem));
    }
    Ok(())
}
