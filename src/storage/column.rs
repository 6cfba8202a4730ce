//! The columns of tables, and the cells in their rows.

use std::borrow::Cow;

use serde_json::Value;

/// The type of the values in a column.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum ColumnType {
    /// Text.
    Text,
    /// The key of a position, a 64-bit hash.
    Key,
    /// A move as a 16-bit Polyglot number. In Parquet files, this type equals that of the column `move` in a counts
    /// directory, because polars and Arrow can join only columns of the same type.
    Move,
    /// An integer.
    Integer,
    /// A number with decimals.
    Number,
    /// `true` or `false`.
    Flag,
}

/// A column of a table.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Column {
    /// The name of the column, which is unique in the table.
    pub name: &'static str,
    /// The type of the values in the column.
    pub kind: ColumnType,
    /// The location of the value in the JSON document for a row, as a path such as `/opening/eco`. An empty path means
    /// the field with the name of the column.
    pub path: &'static str,
}

impl Column {
    /// Creates a column whose values are found in JSON documents in the field with the name `name`.
    pub const fn new(name: &'static str, kind: ColumnType) -> Column {
        Column {
            name,
            kind,
            path: "",
        }
    }

    /// Creates a column whose values are found in JSON documents at `path`, such as `/opening/eco`.
    pub const fn at(name: &'static str, kind: ColumnType, path: &'static str) -> Column {
        Column { name, kind, path }
    }

    /// Returns the cell of this column in the row that `document` describes. The cell is [`Missing`](Cell::Missing) if
    /// the document does not contain the value, or if it contains a value of another type.
    pub(super) fn cell<'a>(&self, document: &'a Value) -> Cell<'a> {
        let found = if self.path.is_empty() {
            document.get(self.name)
        } else {
            document.pointer(self.path)
        };
        let Some(value) = found else {
            return Cell::Missing;
        };
        let cell = match self.kind {
            ColumnType::Text => value.as_str().map(Cell::from),
            ColumnType::Key => {
                let key = value.as_str();
                key.and_then(|key| u64::from_str_radix(key, 16).ok().map(Cell::Key))
            }
            ColumnType::Move | ColumnType::Integer => value.as_i64().map(Cell::Integer),
            ColumnType::Number => value.as_f64().map(Cell::Number),
            ColumnType::Flag => value.as_bool().map(Cell::Flag),
        };
        cell.unwrap_or(Cell::Missing)
    }
}

/// A value in a row of a table.
#[derive(Clone, PartialEq, Debug)]
pub enum Cell<'a> {
    /// No value.
    Missing,
    /// Text, for columns of the type [`ColumnType::Text`].
    Text(Cow<'a, str>),
    /// The key of a position.
    Key(u64),
    /// An integer, for columns of the types [`ColumnType::Integer`] and [`ColumnType::Move`].
    Integer(i64),
    /// A finite number.
    Number(f64),
    /// `true` or `false`.
    Flag(bool),
}

impl<'a> From<&'a str> for Cell<'a> {
    fn from(text: &'a str) -> Cell<'a> {
        Cell::Text(text.into())
    }
}

impl From<String> for Cell<'_> {
    fn from(text: String) -> Self {
        Cell::Text(text.into())
    }
}

impl From<u64> for Cell<'_> {
    /// Converts a number of games or other things to a cell. Such numbers never exceed the range of signed integers.
    fn from(count: u64) -> Self {
        Cell::Integer(i64::try_from(count).unwrap_or(i64::MAX))
    }
}

impl From<u32> for Cell<'_> {
    fn from(number: u32) -> Self {
        Cell::Integer(number.into())
    }
}

impl From<u16> for Cell<'_> {
    fn from(number: u16) -> Self {
        Cell::Integer(number.into())
    }
}

impl From<i16> for Cell<'_> {
    fn from(number: i16) -> Self {
        Cell::Integer(number.into())
    }
}

impl<'a, T: Into<Cell<'a>>> From<Option<T>> for Cell<'a> {
    fn from(value: Option<T>) -> Cell<'a> {
        value.map_or(Cell::Missing, T::into)
    }
}

impl Cell<'_> {
    /// Returns the value as JSON. Its text in CSV is the same, unless the cell contains text or is missing.
    pub(super) fn to_json(&self) -> Value {
        match self {
            Cell::Missing => Value::Null,
            Cell::Text(text) => Value::from(&**text),
            Cell::Key(key) => Value::from(format!("{key:016x}")),
            Cell::Integer(number) => Value::from(*number),
            Cell::Number(number) => Value::from(*number),
            Cell::Flag(flag) => Value::from(*flag),
        }
    }
}
