//! Adds tables to a counts directory that make it readable: the FEN and the opening of each position, and each move in
//! SAN.
//!
//! The directory contains only hashes of positions, so a [walk](recover_positions) finds the positions by replaying the
//! moves. The walk visits positions in arbitrary order; the tables are then sorted by key, like the other files.

use std::{
    fmt,
    fs::File,
    path::Path,
    str::FromStr,
    sync::atomic::{AtomicBool, Ordering},
};

use bytes::Bytes;
use parquet::{
    basic::Compression,
    data_type::{ByteArray, ByteArrayType, DataType, Int32Type, Int64Type},
    errors::ParquetError,
    file::{
        metadata::SortingColumn,
        properties::{EnabledStatistics, WriterProperties},
        writer::SerializedRowGroupWriter,
    },
    schema::types::ColumnPath,
};
use shakmaty::Chess;
use thiserror::Error;

use super::{
    Counts, FoundPosition, LegalCount,
    layout::{FEN, KEY, MOVES, POSITIONS, move_schema, position_schema},
    recover_positions::{keyed_starts, recover_positions},
    sidecar::ListedFile,
};
use crate::{
    chess::position::{BookMove, Rules, Variant, parse_fen, san, write_epd, write_uci},
    error::{At, Error, Result},
    games::openings::{self, Opening, OpeningNumber},
    storage::{
        parquet_table::{ROWS_PER_GROUP, TableWriter, properties, write_column},
        sort::{Memory, ThreadSorters},
    },
    task,
};

/// The names that are added to a counts directory: any of the FENs of positions, the openings of positions, and the
/// moves in SAN.
#[derive(Copy, Clone, PartialEq, Eq, Default, Debug)]
pub struct Names {
    /// The FENs of positions.
    pub fen: bool,
    /// The ECO codes and names of the openings of positions.
    pub opening: bool,
    /// The moves in SAN and UCI notation.
    pub san: bool,
}

/// The error for a string that is not a list of kinds of names. A valid list is `fen,san`, for example.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
#[error("use one or more of fen, san and opening, separated by commas")]
pub struct UnknownNames;

impl FromStr for Names {
    type Err = UnknownNames;

    fn from_str(text: &str) -> Result<Names, UnknownNames> {
        let mut names = Names::default();
        for name in text.split(',') {
            match name.trim() {
                "fen" => names.fen = true,
                "san" => names.san = true,
                "opening" => names.opening = true,
                _ => return Err(UnknownNames),
            }
        }
        Ok(names)
    }
}

impl fmt::Display for Names {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let all = [
            (self.fen, "fen"),
            (self.san, "san"),
            (self.opening, "opening"),
        ];
        let names = all
            .iter()
            .filter_map(|(is_wanted, name)| is_wanted.then_some(*name));
        f.write_str(&names.collect::<Vec<_>>().join(","))
    }
}

/// The counted positions and moves for which names are written.
pub(crate) struct CountedNames<'a> {
    pub names: Names,
    pub counts: &'a Counts,
    pub variant: Variant,
    /// Whether positions also have identities, hashes that distinguish positions with equal keys.
    pub has_identities: bool,
    /// The positions in which games started, as EPDs. The usual starting position of standard chess need not be
    /// included.
    pub starts: Box<dyn Iterator<Item = Result<String>> + Send + 'a>,
    pub memory: Memory,
}

impl CountedNames<'_> {
    /// Writes the tables to `directory`, a temporary directory that will be renamed to `target`. Leaves out positions
    /// in which fewer than `min_game` moves were counted. Returns the entries of the files for `_counts.json`.
    ///
    /// # Errors
    ///
    /// Returns an error if a file cannot be written, or [`Error::Interrupted`] if `stop` is set.
    pub(super) fn write(
        self,
        directory: &Path,
        target: &Path,
        min_game: u64,
        stop: &AtomicBool,
    ) -> Result<Vec<ListedFile>> {
        let sorters = ThreadSorters::new(rayon::current_num_threads(), &self.memory);
        let (counts, variant, names) = (self.counts, self.variant, self.names);
        let starts = self.starts;
        if variant == Variant::Standard {
            let others = starts.map(|epd| Ok(parse_fen(&epd?).ok()));
            let all = std::iter::once(Ok(Some(Chess::default()))).chain(others);
            let visit = |encoder: &mut Encoder, found: FoundPosition<'_, Chess>| {
                encoder.encode(found, variant, names, min_game, &sorters)
            };
            recover_positions(counts, keyed_starts(all), stop, visit)?;
        } else {
            let all = starts.map(|epd| Ok(variant.parse_fen(&epd?).ok()));
            let visit = |encoder: &mut Encoder, found: FoundPosition<'_, _>| {
                encoder.encode(found, variant, names, min_game, &sorters)
            };
            recover_positions(counts, keyed_starts(all), stop, visit)?;
        }
        let mut tables = Tables::create(directory, target, names, self.has_identities)?;
        sorters.into_sorted().for_each(|encoded| {
            if stop.load(Ordering::Relaxed) {
                return Err(Error::Interrupted);
            }
            tables.push(encoded)
        })?;
        tables.finish(directory, target)
    }
}

/// An encoder of positions with their names. Encoded positions are sorted as byte strings, which orders them by signed
/// key and then by identity.
///
/// An encoded position consists of the key (with an inverted sign bit), the identity, the number of the opening, the
/// length of the FEN, the FEN, and the moves. Each move consists of its 16-bit number, the length of its SAN, the SAN,
/// the length of its UCI notation, and the UCI notation.
#[derive(Default)]
struct Encoder {
    encoded: Vec<u8>,
}

/// The number of bytes before the FEN of an encoded position.
const HEAD: usize = 20;

impl Encoder {
    /// Adds a position to `sorters`, once for each hash under which its moves were counted.
    fn encode<P: Rules>(
        &mut self,
        found: FoundPosition<'_, P>,
        variant: Variant,
        names: Names,
        min_game: u64,
        sorters: &ThreadSorters,
    ) -> Result<()> {
        let FoundPosition {
            line,
            identities,
            moves,
        } = found;
        let games: u64 = moves.iter().map(|count| count.stats.games()).sum();
        if games < min_game {
            return Ok(());
        }
        let pos = line.position();
        let text = &mut self.encoded;
        text.clear();
        text.resize(HEAD, 0);
        let opening = if names.opening {
            openings::of_game(variant, std::iter::once(line.identity()))
        } else {
            OpeningNumber::default()
        };
        text[16..18].copy_from_slice(&(opening.number() as u16).to_le_bytes());
        if names.fen {
            // The counters of a position depend on how the walk reached it.
            write_epd(pos, text);
            text.extend_from_slice(b" 0 1");
        }
        let length = (text.len() - HEAD) as u16;
        text[18..HEAD].copy_from_slice(&length.to_le_bytes());
        if names.san {
            for LegalCount { mv, .. } in moves {
                let number = BookMove::from(*mv);
                text.extend_from_slice(&number.0.to_le_bytes());
                push_text(text, |text| {
                    san(pos, *mv).append_ascii_to(text);
                });
                push_text(text, |text| write_uci(pos, *mv, text));
            }
        }
        // The state that an identity contains besides the key is the same for all of them.
        let state = line.exact_identity() ^ line.key();
        for identity in identities {
            let key = (identity ^ state) ^ (1 << 63);
            text[..8].copy_from_slice(&key.to_be_bytes());
            text[8..16].copy_from_slice(&identity.to_be_bytes());
            sorters.push(text)?;
        }
        Ok(())
    }
}

/// Appends a text to `encoded`: one byte with the length of the text, and the text itself, which `write` appends.
fn push_text(encoded: &mut Vec<u8>, write: impl FnOnce(&mut Vec<u8>)) {
    let at = encoded.len();
    encoded.push(0);
    write(encoded);
    encoded[at] = (encoded.len() - at - 1) as u8;
}

/// Writers of the table of positions and the table of moves. A table that was not requested is `None`.
struct Tables {
    positions: Option<Table>,
    moves: Option<Table>,
    names: Names,
}

/// A writer of one table, which holds the rows of the current row group.
struct Table {
    file: TableWriter<File>,
    name: &'static str,
    keys: Vec<i64>,
    /// The identities, if the table has a column for them.
    identities: Option<Vec<i64>>,
    /// The moves as 16-bit numbers, in the table of moves.
    moves: Vec<i32>,
    /// The columns of texts.
    texts: Vec<NameColumn>,
    rows: u64,
}

/// A column of optional texts.
#[derive(Default)]
struct NameColumn {
    /// For each row, 1 if it has a text, otherwise 0.
    levels: Vec<i16>,
    /// All texts, one after the other.
    bytes: Vec<u8>,
    /// The offset in `bytes` at which each text ends.
    ends: Vec<usize>,
}

impl NameColumn {
    fn push(&mut self, text: Option<&[u8]>) {
        self.levels.push(text.is_some().into());
        if let Some(text) = text {
            self.bytes.extend_from_slice(text);
            self.ends.push(self.bytes.len());
        }
    }

    fn write(
        &mut self,
        group: &mut SerializedRowGroupWriter<'_, File>,
    ) -> Result<(), ParquetError> {
        let mut column = group.next_column()?.expect("the schema has the column");
        // The texts share one buffer, because allocating each of them takes longer than writing it.
        let bytes = Bytes::from(std::mem::take(&mut self.bytes));
        let begins = std::iter::once(0).chain(self.ends.iter().copied());
        let texts = begins.zip(&self.ends);
        let texts = texts.map(|(begin, end)| ByteArray::from(bytes.slice(begin..*end)));
        let values = column.typed::<ByteArrayType>();
        values.write_batch(&texts.collect::<Vec<_>>(), Some(&self.levels), None)?;
        self.levels.clear();
        self.ends.clear();
        column.close()
    }
}

impl Tables {
    fn create(
        directory: &Path,
        target: &Path,
        names: Names,
        has_identities: bool,
    ) -> Result<Tables> {
        let table = |name, schema: String, texts| {
            Table::create(directory, target, name, &schema, has_identities, texts)
        };
        let texts = usize::from(names.fen) + 2 * usize::from(names.opening);
        let positions = (texts > 0).then(|| {
            let schema = position_schema(has_identities, names.fen, names.opening);
            table(POSITIONS, schema, texts)
        });
        let moves = names
            .san
            .then(|| table(MOVES, move_schema(has_identities), 2));
        Ok(Tables {
            positions: positions.transpose()?,
            moves: moves.transpose()?,
            names,
        })
    }

    /// Adds an encoded position and its moves to the tables.
    fn push(&mut self, encoded: &[u8]) -> Result<()> {
        let (head, rest) = encoded.split_at(HEAD);
        let number = |at: usize| {
            let bytes = head[at..at + 8].try_into().expect("these are 8 bytes");
            u64::from_be_bytes(bytes)
        };
        let short = |at: usize| u16::from_le_bytes([head[at], head[at + 1]]);
        let (key, identity) = ((number(0) ^ 1 << 63).cast_signed(), number(8).cast_signed());
        let (fen, mut rest) = rest.split_at(short(18).into());
        if let Some(table) = &mut self.positions {
            let opening = OpeningNumber::new(short(16)).and_then(OpeningNumber::opening);
            let Opening { eco, name } = opening.unwrap_or(Opening { eco: "", name: "" });
            let known = |text: &'static str| (!text.is_empty()).then_some(text.as_bytes());
            let names = [
                (self.names.fen, Some(fen)),
                (self.names.opening, known(eco)),
                (self.names.opening, known(name)),
            ];
            let names = names.iter().filter(|(is_wanted, _)| *is_wanted);
            table.push(key, identity, None, names.map(|(_, name)| *name))?;
        }
        if let Some(table) = &mut self.moves {
            while let [low, high, after @ ..] = rest {
                let mv = u16::from_le_bytes([*low, *high]);
                let (san, after) = text_of(after);
                let (uci, after) = text_of(after);
                table.push(key, identity, Some(mv), [Some(san), Some(uci)].into_iter())?;
                rest = after;
            }
        }
        Ok(())
    }

    /// Completes the files of the tables, and returns their entries for `_counts.json`.
    fn finish(self, directory: &Path, target: &Path) -> Result<Vec<ListedFile>> {
        let tables = self.positions.into_iter().chain(self.moves);
        tables
            .map(|table| table.finish(directory, target))
            .collect()
    }
}

/// Splits an encoded text, which begins with its length, from the bytes after it.
fn text_of(bytes: &[u8]) -> (&[u8], &[u8]) {
    bytes[1..].split_at(bytes[0].into())
}

impl Table {
    fn create(
        directory: &Path,
        target: &Path,
        name: &'static str,
        schema: &str,
        has_identities: bool,
        texts: usize,
    ) -> Result<Table> {
        let file = File::create_new(directory.join(name)).at(target, "write")?;
        Ok(Table {
            file: TableWriter::new(file, target, schema, table_properties())?,
            name,
            keys: Vec::new(),
            identities: has_identities.then(Vec::new),
            moves: Vec::new(),
            texts: (0..texts).map(|_| NameColumn::default()).collect(),
            rows: 0,
        })
    }

    /// Adds a row. `mv` is the move in the table of moves. `texts` contains the value of each column of texts.
    fn push<'t>(
        &mut self,
        key: i64,
        identity: i64,
        mv: Option<u16>,
        texts: impl Iterator<Item = Option<&'t [u8]>>,
    ) -> Result<()> {
        self.keys.push(key);
        self.identities
            .iter_mut()
            .for_each(|all| all.push(identity));
        self.moves.extend(mv.map(i32::from));
        for (column, text) in self.texts.iter_mut().zip(texts) {
            column.push(text);
        }
        self.rows += 1;
        if self.keys.len() == ROWS_PER_GROUP {
            self.write_group()
        } else {
            Ok(())
        }
    }

    fn write_group(&mut self) -> Result<()> {
        task::fault("write part");
        let Table {
            file,
            keys,
            identities,
            moves,
            texts,
            ..
        } = self;
        file.write_group(|group| {
            drain::<Int64Type>(group, keys)?;
            identities
                .iter_mut()
                .try_for_each(|all| drain::<Int64Type>(group, all))?;
            if !moves.is_empty() {
                drain::<Int32Type>(group, moves)?;
            }
            texts.iter_mut().try_for_each(|column| column.write(group))
        })
    }

    fn finish(mut self, directory: &Path, target: &Path) -> Result<ListedFile> {
        if !self.keys.is_empty() {
            self.write_group()?;
        }
        self.file.finish()?;
        let listed = ListedFile::of(directory, self.name.to_owned(), self.rows, 0);
        listed.at(target, "read")
    }
}

/// Writes `values` as the next column of a row group, and then clears `values`.
fn drain<T: DataType>(
    group: &mut SerializedRowGroupWriter<'_, File>,
    values: &mut Vec<T::T>,
) -> Result<(), ParquetError> {
    write_column::<T>(group, values.drain(..))
}

/// Returns the properties of the tables, which are sorted by key. Keys and FENs do not repeat, so a dictionary of them
/// would be larger than the column. FENs are compressed with Snappy, because zstd takes longer than all other work on
/// the table. The columns of names have no statistics, because nobody searches them by range.
fn table_properties() -> WriterProperties {
    let key = SortingColumn {
        column_idx: 0,
        descending: false,
        nulls_first: false,
    };
    let mut table = properties()
        .set_sorting_columns(Some(vec![key]))
        .set_column_compression(ColumnPath::from(KEY), Compression::UNCOMPRESSED)
        .set_column_compression(ColumnPath::from(FEN), Compression::SNAPPY);
    for column in [KEY, FEN] {
        table = table.set_column_dictionary_enabled(ColumnPath::from(column), false);
    }
    for column in [FEN, "eco", "opening", "san", "uci"] {
        let column = ColumnPath::from(column);
        table = table.set_column_statistics_enabled(column, EnabledStatistics::None);
    }
    table.build()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_and_written() {
        for text in ["fen", "san", "opening", "fen,san,opening"] {
            assert_eq!(text.parse::<Names>().unwrap().to_string(), text);
        }
        assert_eq!(
            " opening , fen".parse::<Names>().unwrap().to_string(),
            "fen,opening"
        );
        for wrong in ["", "fen,", "FEN", "uci", "none"] {
            assert_eq!(wrong.parse::<Names>(), Err(UnknownNames), "{wrong}");
        }
    }
}
