//! Writes a counts directory. Leaves out positions in which too few moves were counted, and writes the sorted rows to
//! several Parquet files.

use std::{
    fs::File,
    path::{Path, PathBuf},
    sync::atomic::{AtomicBool, Ordering},
};

use parquet::{
    basic::{Compression, Encoding},
    data_type::{BoolType, Int32Type, Int64Type},
    errors::ParquetError,
    file::{
        metadata::SortingColumn, properties::EnabledStatistics, writer::SerializedRowGroupWriter,
    },
    schema::types::ColumnPath,
};
use rayon::prelude::*;
use rustc_hash::FxHashMap;

use super::{
    ClassCounts, CountClass, CountedNames, Grouping,
    classed::{ClassedCounts, RowSource},
    error::CountsError,
    layout::{
        BLACK, ClassRow, DRAWS, IDENTITY, KEY, LOSSES, MONTH, MOVE, RATING_GROUP, Row, SPEED, WINS,
        part_count, part_name, part_schema, ranges_of_part, rating_groups, shards_of_part,
    },
    rows::{MAX_PER_RESULT, MAX_TOTAL_GAMES},
    sidecar::{
        CountsOrigin, ListedFile, Sidecar, Start, check_replaceable, is_own_file, write_starts,
    },
};
use crate::{
    chess::position::BookMove,
    error::{Advice, At, Diagnosis, Error, Result},
    games::results::{MEASURES, Means, Wdl},
    progress::Meter,
    provenance::Pruned,
    storage::output::{AtomicDir, Finished},
    storage::parquet_table::{ROWS_PER_GROUP, TableWriter, properties, write_column},
    task,
};

/// A writer of a counts directory. It writes to a temporary directory next to the target.
#[derive(Debug)]
pub(crate) struct CountsWriter {
    directory: AtomicDir,
}

/// The numbers of rows, files, positions and half-moves that were written to a counts directory.
#[derive(Copy, Clone, PartialEq, Eq, Default, Debug)]
pub struct CountsSummary {
    /// The number of rows in all files.
    pub rows: u64,
    /// The number of Parquet files.
    pub parts: usize,
    /// The number of positions, including pruned ones. Positions are counted only if a minimum number of games is set
    /// or the rows are grouped by class; otherwise, the number is 0.
    pub positions: u64,
    /// The number of pairs of a position and a move, including pruned ones. It is 0 if `positions` is not counted.
    pub pairs: u64,
    /// The number of half-moves, including pruned ones.
    pub plies: u64,
    /// The numbers of positions, rows and half-moves that were pruned, or `None` if pruning was not requested.
    pub pruned: Option<Pruned>,
}

/// The content of a new counts directory apart from its rows, such as the starting positions, and settings for writing
/// the rows.
pub(crate) struct CountsContent<'a, S> {
    /// The approximate number of rows, or of half-moves if they are grouped by class. This number determines into how
    /// many files the rows are divided.
    pub size: u64,
    /// The minimum number of half-moves that must have been counted in a position. Positions with fewer half-moves are
    /// pruned. 0 keeps all positions.
    pub min_game: u64,
    /// The positions in which games started.
    pub starts: S,
    /// The names of positions and moves to write, or `None` to write no names.
    pub names: Option<CountedNames<'a>>,
    /// The description of the counted games. The writer adds the numbers of half-moves and of pruned rows.
    pub about: CountsOrigin,
}

impl CountsWriter {
    /// Creates a writer of a counts directory, and a temporary directory that will later be renamed to `target`. If
    /// `target` is already a counts directory, it may be replaced only if `force` is `true`.
    ///
    /// # Errors
    ///
    /// Returns an error if `target` exists and may not be replaced, or if the temporary directory cannot be created.
    pub(crate) fn create(target: &Path, force: bool) -> Result<CountsWriter> {
        let may_replace = |old: &Path| check_replaceable(old, force);
        Ok(CountsWriter {
            directory: AtomicDir::create_over(target, is_own_file, may_replace)?,
        })
    }

    /// Writes the rows of `source`, the starting positions in `content`, and `_counts.json` to the temporary directory.
    /// The caller must then call [`Finished::commit`] on the returned output, which renames the directory to its
    /// target.
    ///
    /// Uses all threads of the current rayon pool. `meter` advances by one for each of the 256 shards.
    ///
    /// # Errors
    ///
    /// Returns an error if the directory cannot be written, if a temporary file cannot be read, or
    /// [`Error::Interrupted`] if `stop` is set.
    pub(crate) fn write(
        self,
        source: &RowSource<'_>,
        content: CountsContent<'_, impl Iterator<Item = Result<Start>>>,
        stop: &AtomicBool,
        meter: &Meter,
    ) -> Result<(CountsSummary, Finished)> {
        let parts = part_count(content.size);
        let has_identities = source.has_identities();
        let write_part = |number: usize| {
            let mut part = self.create_part(number, has_identities, Grouping::default(), stop)?;
            let mut pruner = Pruner::new(content.min_game, has_identities, self.directory.target());
            for shard in shards_of_part(number, parts) {
                if content.min_game == 0 {
                    source.for_each_row(shard, |row| part.push(row))?;
                } else {
                    let mut push = |row: &ClassRow| part.push(row.row);
                    source.for_each_row(shard, |row| pruner.take(&row.into(), &mut push))?;
                    pruner.end_key(&mut push)?;
                }
                meter.advance(1);
            }
            Ok((part.finish()?, pruner))
        };
        let parts = (0..parts).into_par_iter().map(write_part);
        let parts = parts.collect::<Result<_>>()?;
        self.finish(parts, content, stop)
    }

    /// Writes the rows of a counts directory that is grouped by class (speed, rating group and month) to the temporary
    /// directory. Merges the rows of the input directories, `classed`, with `own`, the results of games that were read
    /// in the same run of `make-book`. Rows with the same position, move and class are added up.
    ///
    /// `content` contains the starting positions and a description of the counted games. If `has_identities` is `true`,
    /// as for chess variants, the files get a column of identities. At most `at_once` files are written at the same
    /// time, which bounds the memory.
    ///
    /// # Errors
    ///
    /// Returns an error if an input cannot be read, is damaged or is not sorted, if the directory cannot be written, if
    /// a temporary file cannot be read, or [`Error::Interrupted`] if `stop` is set.
    pub(crate) fn write_classed(
        self,
        (classed, own): (&ClassedCounts, &ClassCounts),
        has_identities: bool,
        at_once: usize,
        content: CountsContent<'_, impl Iterator<Item = Result<Start>>>,
        stop: &AtomicBool,
        meter: &Meter,
    ) -> Result<(CountsSummary, Finished)> {
        let parts = part_count(content.size);
        let by = content.about.by;
        let write_part = |number: usize| {
            let mut part = self.create_part(number, has_identities, by, stop)?;
            let mut pruner = Pruner::new(content.min_game, has_identities, self.directory.target());
            let mut push = |row: &ClassRow| part.push_classed(row);
            for shards in ranges_of_part(number, parts) {
                classed.for_each_row(shards.clone(), Some(own), |row| {
                    if stop.load(Ordering::Relaxed) {
                        return Err(Error::Interrupted);
                    }
                    pruner.take(row, &mut push)
                })?;
                meter.advance(shards.len() as u64);
            }
            pruner.end_key(&mut push)?;
            Ok((part.finish()?, pruner))
        };
        let mut written = Vec::new();
        for numbers in (0..parts).collect::<Vec<_>>().chunks(at_once) {
            let numbers = numbers.into_par_iter().copied().map(write_part);
            written.extend(numbers.collect::<Result<Vec<_>>>()?);
        }
        classed.check_read()?;
        self.finish(written, content, stop)
    }

    /// Creates the Parquet file with the number `number` in the writer's temporary directory. `has_identities` adds a
    /// column of identities (hashes that distinguish positions with equal keys), and `by` adds columns for properties
    /// of games. If `stop` is set, writing is interrupted.
    fn create_part<'s>(
        &'s self,
        number: usize,
        has_identities: bool,
        by: Grouping,
        stop: &'s AtomicBool,
    ) -> Result<PartWriter<'s>> {
        task::fault("write part");
        let directory = &self.directory;
        let (path, target) = (directory.path(), directory.target());
        PartWriter::create(path, part_name(number), target, (has_identities, by), stop)
    }

    /// Writes the file of starting positions, the names and `_counts.json`. For each Parquet file, `parts` contains its
    /// entry for `_counts.json` and the filter that dropped its rare positions. Returns the numbers of rows, files,
    /// positions and half-moves in the finished directory, and the directory itself.
    fn finish(
        self,
        parts: Vec<(ListedFile, Pruner)>,
        content: CountsContent<'_, impl Iterator<Item = Result<Start>>>,
        stop: &AtomicBool,
    ) -> Result<(CountsSummary, Finished)> {
        let mut about = content.about;
        let mut written = CountsSummary {
            parts: parts.len(),
            ..CountsSummary::default()
        };
        let mut listed = Vec::new();
        for (part, pruner) in parts {
            written.rows += part.rows;
            written.plies += part.plies + pruner.pruned.plies;
            written.positions += pruner.positions;
            written.pairs += pruner.pairs;
            if content.min_game > 0 {
                about.pruned.get_or_insert_default().add(pruner.pruned);
            }
            listed.push(part);
        }
        about.plies = listed.iter().map(|part| part.plies).sum();
        written.pruned = about.pruned;
        let target = self.directory.target();
        if about.plies > MAX_TOTAL_GAMES {
            return Err(Error::format(target, CountsError::Overflow));
        }
        let starts = write_starts(self.directory.path(), target, content.starts)?;
        let mut sidecar = Sidecar::new(about, listed, starts);
        if let Some(names) = content.names {
            let directory = self.directory.path();
            sidecar.names = names.write(directory, target, content.min_game, stop)?;
        }
        sidecar.write(self.directory.path(), target)?;
        Ok((written, self.directory.finish()?))
    }
}

/// Writes the columns of classes and means to a Parquet row group. `by` selects the properties of classes to write: any
/// of speed, rating group and month. `classes` contains the class and the means of each row.
fn write_classes(
    group: &mut SerializedRowGroupWriter<'_, File>,
    by: Grouping,
    classes: &[(CountClass, Means)],
) -> Result<(), ParquetError> {
    let groups: Vec<i32> = rating_groups().collect();
    let classes = || classes.iter();
    let mut narrow = |wanted: bool, value: &dyn Fn(CountClass) -> i32| {
        if wanted {
            write_column::<Int32Type>(group, classes().map(|(class, _)| value(*class)))
        } else {
            Ok(())
        }
    };
    narrow(by.speed, &|class| class.speed.into())?;
    narrow(by.rating, &|class| groups[usize::from(class.group)])?;
    narrow(by.month, &|class| class.month.cast_signed())?;
    write_column::<BoolType>(group, classes().map(|(class, _)| class.book_only))?;
    for number in 0..MEASURES.len() {
        let means = || classes().map(|(_, means)| means.0[number]);
        write_column::<Int64Type>(group, means().map(|mean| mean.sum.cast_signed()))?;
        write_column::<Int64Type>(group, means().map(|mean| mean.games.cast_signed()))?;
    }
    Ok(())
}

/// The number of rows in a Parquet page if rows are grouped by class (speed, rating group and month). Such pages are
/// smaller than others, because a merge of several directories holds one page of each column of each directory in
/// memory.
const ROWS_PER_CLASSED_PAGE: usize = 1 << 13;

/// A writer of one Parquet file in a counts directory. It buffers rows, and writes one row group at a time.
pub(super) struct PartWriter<'a> {
    file: TableWriter<File>,
    directory: &'a Path,
    name: String,
    /// The path that error messages name.
    target: &'a Path,
    stop: &'a AtomicBool,
    with_identities: bool,
    by: Grouping,
    /// The rows of the current row group.
    rows: Vec<Row>,
    /// The classes and means of `rows`. This vector is empty if rows are not grouped by class.
    classes: Vec<(CountClass, Means)>,
    /// The number of rows in the finished row groups.
    written: u64,
    /// The number of half-moves in all rows.
    plies: u64,
}

impl<'a> PartWriter<'a> {
    /// Creates the Parquet file `name` in `directory`, a temporary directory that will be renamed to `target`.
    /// `with_identities` adds a column of identities (hashes that distinguish positions with equal keys), and `by` adds
    /// columns for properties of games, such as the speed. If `stop` is set, writing is interrupted.
    ///
    /// # Errors
    ///
    /// Returns an error if the file exists or cannot be created.
    pub(super) fn create(
        directory: &'a Path,
        name: String,
        target: &'a Path,
        (with_identities, by): (bool, Grouping),
        stop: &'a AtomicBool,
    ) -> Result<PartWriter<'a>> {
        let file = File::create_new(directory.join(&name)).at(target, "write")?;
        let sorted = |column_idx| SortingColumn {
            column_idx,
            descending: false,
            nulls_first: false,
        };
        // Columns 0 and 1 are the key and the move.
        let mut properties = properties().set_sorting_columns(Some(vec![sorted(0), sorted(1)]));
        // Readers filter by key. In other columns, the minimum and maximum of each row group span nearly all values,
        // so they are not useful to readers.
        properties = properties
            .set_statistics_enabled(EnabledStatistics::None)
            .set_column_statistics_enabled(KEY.into(), EnabledStatistics::Page);
        // Each page takes time to open, so a row group of counts that are not by class has one page per column.
        let rows_of_page = if by.is_none() {
            ROWS_PER_GROUP
        } else {
            ROWS_PER_CLASSED_PAGE
        };
        properties = properties.set_data_page_row_count_limit(rows_of_page);
        // These columns are encoded. Compression would not make them smaller, but slower to read.
        let packed_already = [KEY, MOVE, BLACK, IDENTITY, SPEED, RATING_GROUP, MONTH].into_iter();
        let sums = MEASURES.iter().map(|measure| measure.columns[0]);
        for column in packed_already.chain(sums).map(ColumnPath::from) {
            properties = properties.set_column_compression(column, Compression::UNCOMPRESSED);
        }
        // Rows of counts by class have few games, so a dictionary of results would cost more time than the saved
        // space is worth.
        let results = [WINS, DRAWS, LOSSES].into_iter();
        let results = results.filter(|_| !by.is_none());
        let means = MEASURES.iter().flat_map(|measure| measure.columns);
        let numbers = [KEY, IDENTITY, SPEED].into_iter().chain(means);
        for column in numbers.chain(results).map(ColumnPath::from) {
            properties = properties
                .set_column_dictionary_enabled(column.clone(), false)
                .set_column_encoding(column, Encoding::DELTA_BINARY_PACKED);
        }
        let schema = part_schema(with_identities, by);
        Ok(PartWriter {
            file: TableWriter::new(file, target, &schema, properties.build())?,
            directory,
            name,
            target,
            stop,
            with_identities,
            by,
            rows: Vec::new(),
            classes: Vec::new(),
            written: 0,
            plies: 0,
        })
    }

    /// Appends a row to a file whose rows are not grouped by class (speed, rating group and month).
    ///
    /// # Errors
    ///
    /// Returns an error if a full row group cannot be written, or [`Error::Interrupted`] if `stop` is set. Also returns
    /// an error if the number of wins, draws or losses exceeds [`MAX_PER_RESULT`], because readers reject such a row.
    pub(super) fn push(&mut self, row: Row) -> Result<()> {
        let Wdl {
            wins,
            draws,
            losses,
        } = row.stats;
        if wins.max(draws).max(losses) > MAX_PER_RESULT {
            return Err(Error::format(self.target, CountsError::Overflow));
        }
        self.plies += row.plies();
        self.rows.push(row);
        if self.rows.len() == ROWS_PER_GROUP {
            self.write_group()?;
        }
        Ok(())
    }

    /// Appends a row to a file whose rows are grouped by class (speed, rating group and month). The row contains its
    /// class and its means.
    ///
    /// # Errors
    ///
    /// Returns an error if the sum of a measure exceeds [`MAX_TOTAL_GAMES`], or for the same reasons as
    /// [`push`](PartWriter::push).
    pub(super) fn push_classed(&mut self, row: &ClassRow) -> Result<()> {
        if row.means.0.iter().any(|mean| mean.sum > MAX_TOTAL_GAMES) {
            return Err(Error::format(self.target, CountsError::Overflow));
        }
        self.classes.push((row.class, row.means));
        self.push(row.row)
    }

    /// Writes the buffered rows as one row group, and removes them from memory.
    ///
    /// # Errors
    ///
    /// Returns an error if writing fails, or [`Error::Interrupted`] if `stop` is set.
    fn write_group(&mut self) -> Result<()> {
        if self.stop.load(Ordering::Relaxed) {
            return Err(Error::Interrupted);
        }
        self.written += self.rows.len() as u64;
        let (rows, by, classes) = (&self.rows, self.by, &self.classes);
        self.file.write_group(|group| {
            let rows = || rows.iter();
            let integers = |group: &mut _, value: fn(&Row) -> u64| {
                write_column::<Int64Type>(group, rows().map(|row| value(row).cast_signed()))
            };
            integers(group, |row| row.key)?;
            write_column::<Int32Type>(group, rows().map(|row| i32::from(row.mv.0)))?;
            write_column::<BoolType>(group, rows().map(|row| row.turn.is_black()))?;
            integers(group, |row| row.stats.wins)?;
            integers(group, |row| row.stats.draws)?;
            integers(group, |row| row.stats.losses)?;
            if self.with_identities {
                integers(group, |row| row.identity)?;
            }
            if by.is_none() {
                Ok(())
            } else {
                write_classes(group, by, classes)
            }
        })?;
        self.rows.clear();
        self.classes.clear();
        Ok(())
    }

    /// Writes the last row group and the metadata of the file. Returns the entry of the file for `_counts.json`.
    ///
    /// # Errors
    ///
    /// Returns an error if the file cannot be written, or if it cannot be read again to calculate its checksum.
    pub(super) fn finish(mut self) -> Result<ListedFile> {
        if !self.rows.is_empty() {
            self.write_group()?;
        }
        self.file.finish()?;
        let listed = ListedFile::of(self.directory, self.name, self.written, self.plies);
        listed.at(self.target, "read")
    }
}

/// The maximum number of buffered rows with the same position key. The limit bounds the memory. Each row contains the
/// results of one move.
const MAX_BUFFERED_ROWS: usize = if cfg!(test) { 1 << 8 } else { 1 << 18 };

/// A filter that drops the rows of positions in which fewer than `min_game` half-moves were counted.
///
/// The rows must be sorted by position key. The filter buffers the rows of a position until it knows whether the
/// position is dropped.
pub(super) struct Pruner {
    /// The path that error messages name.
    target: PathBuf,
    /// Whether several positions may have the same key. The rows of such positions are interleaved, so all rows of a
    /// key are buffered.
    has_identities: bool,
    /// The current key.
    key: Option<u64>,
    /// The buffered rows of the current key.
    waiting: Vec<ClassRow>,
    /// The number of half-moves in the buffered rows.
    plies: u64,
    /// Whether a row of the current key has a move.
    has_moves: bool,
    /// Whether the current position has enough half-moves, so that its further rows are passed on immediately.
    is_kept: bool,
    /// The numbers of positions, rows and half-moves that have been dropped so far.
    pub pruned: Pruned,
    /// The number of positions with moves, including dropped ones.
    pub positions: u64,
    /// The number of pairs of a position and a move, including dropped ones.
    pub pairs: u64,
    /// The sort key of the last row.
    place: Option<(i64, BookMove, u64)>,
}

impl Pruner {
    /// Creates a filter that keeps a position if at least `min_game` half-moves were counted in it. If `min_game` is
    /// 0, keeps all positions. `has_identities` is `true` for chess variants, in which several positions may have the
    /// same key. Error messages contain the path `target`.
    pub(super) fn new(min_game: u64, has_identities: bool, target: &Path) -> Pruner {
        Pruner {
            target: target.to_owned(),
            has_identities,
            key: None,
            waiting: Vec::new(),
            plies: 0,
            has_moves: false,
            is_kept: false,
            pruned: Pruned {
                min_game,
                ..Pruned::default()
            },
            positions: 0,
            pairs: 0,
            place: None,
        }
    }

    /// Passes the next row to the filter. The rows must be sorted by position key. The filter buffers the rows of a
    /// position until they contain enough half-moves, and then calls `out` with the buffered rows and with all further
    /// rows of the position.
    ///
    /// # Errors
    ///
    /// Returns the error of `out`. Also returns an error if more than [`MAX_BUFFERED_ROWS`] rows would have to be
    /// buffered, which would take too much memory.
    pub(super) fn take(
        &mut self,
        row: &ClassRow,
        out: &mut impl FnMut(&ClassRow) -> Result<()>,
    ) -> Result<()> {
        let (place, is_move) = (row.sort_key(), row.row.mv != BookMove::NONE);
        let is_next = self.place.replace(place) != Some(place);
        self.pairs += u64::from(is_next && is_move);
        if self.key != Some(row.row.key) {
            self.end_key(out)?;
            self.key = Some(row.row.key);
        }
        let had_moves = self.has_moves;
        self.has_moves |= is_move;
        if !self.is_kept {
            self.plies += row.row.plies();
            if self.has_identities || self.plies < self.pruned.min_game {
                if self.waiting.len() == MAX_BUFFERED_ROWS {
                    let problem = Diagnosis::new(format!(
                        "positions with the same key have more than {MAX_BUFFERED_ROWS} rows, which is too many for \
                         leaving out rare positions"
                    ))
                    .advise(Advice::option("choose fewer of speed, rating and month with {}", "by"));
                    return Err(Error::too_large(&self.target, problem));
                }
                self.waiting.push(*row);
                return Ok(());
            }
            self.is_kept = true;
            self.positions += u64::from(had_moves);
            self.waiting.drain(..).try_for_each(|row| out(&row))?;
        }
        self.positions += u64::from(is_move && !had_moves);
        out(row)
    }

    /// Ends the current position key: passes the buffered rows of positions with enough half-moves to `out`, and drops
    /// the other buffered rows. [`take`](Pruner::take) calls this function before each new key. The caller must also
    /// call it after the last row.
    ///
    /// # Errors
    ///
    /// Returns the error of `out`.
    pub(super) fn end_key(&mut self, out: &mut impl FnMut(&ClassRow) -> Result<()>) -> Result<()> {
        (self.plies, self.has_moves, self.is_kept) = (0, false, false);
        if self.waiting.is_empty() {
            return Ok(());
        }
        let mut positions: FxHashMap<u64, (u64, bool)> = FxHashMap::default();
        for ClassRow { row, .. } in &self.waiting {
            let (plies, has_moves) = positions.entry(row.identity).or_default();
            *plies += row.plies();
            *has_moves |= row.mv != BookMove::NONE;
        }
        let least = self.pruned.min_game;
        for (plies, _) in positions.values().filter(|(_, has_moves)| *has_moves) {
            self.positions += 1;
            self.pruned.positions += u64::from(*plies < least);
        }
        for row in self.waiting.drain(..) {
            if positions[&row.row.identity].0 >= least {
                out(&row)?;
            } else {
                self.pruned.rows += 1;
                self.pruned.plies += row.row.plies();
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use shakmaty::Color;

    use super::*;
    use crate::formats::counts::Row;

    proptest! {
        #[test]
        fn positions_of_few_moves_are_dropped_whole(
            mut rows in proptest::collection::vec((0..6u64, 0..4u16, 0..3u64, 0..4u64), 0..60),
            least in 0..9u64,
            has_identities: bool,
        ) {
            let row = |(key, mv, identity, wins): (u64, u16, u64, u64)| ClassRow::from(Row {
                key,
                identity: if has_identities { identity } else { key },
                mv: BookMove(mv),
                turn: Color::White,
                stats: Wdl { wins, ..Wdl::default() },
            });
            rows.sort();
            let rows: Vec<ClassRow> = rows.into_iter().map(row).collect();
            let plies_of = |of: &ClassRow| rows.iter()
                .filter(|row| (row.row.key, row.row.identity) == (of.row.key, of.row.identity))
                .map(|row| row.row.plies())
                .sum::<u64>();
            let (kept, dropped): (Vec<ClassRow>, Vec<ClassRow>) =
                rows.iter().partition(|row| plies_of(row) >= least);
            let (mut pruner, mut found) = (Pruner::new(least, has_identities, Path::new("x")), Vec::new());
            for row in &rows {
                pruner.take(row, &mut |row| { found.push(*row); Ok(()) }).unwrap();
            }
            pruner.end_key(&mut |row| { found.push(*row); Ok(()) }).unwrap();
            prop_assert_eq!(found, kept);
            let positions = |rows: &[ClassRow]| {
                let with_moves = rows.iter().filter(|row| row.row.mv != BookMove::NONE);
                let mut all: Vec<_> = with_moves.map(|row| (row.row.key, row.row.identity)).collect();
                all.sort();
                all.dedup();
                all.len() as u64
            };
            prop_assert_eq!(pruner.positions, positions(&rows));
            prop_assert_eq!(pruner.pruned, Pruned {
                min_game: least,
                positions: positions(&dropped),
                rows: dropped.len() as u64,
                plies: dropped.iter().map(|row| row.row.plies()).sum(),
            });
        }
    }

    #[test]
    fn the_number_of_buffered_rows_of_a_key_is_limited() {
        let mut pruner = Pruner::new(9, true, Path::new("x"));
        let row = ClassRow::from(Row {
            key: 1,
            identity: 1,
            mv: BookMove(1),
            turn: Color::White,
            stats: Wdl::default(),
        });
        let mut take = || pruner.take(&row, &mut |_| Ok(()));
        (0..MAX_BUFFERED_ROWS).for_each(|_| take().unwrap());
        let err = take().unwrap_err().to_string();
        assert!(err.contains("x: positions with the same key"), "{err}");
        let advice = "choose fewer of speed, rating and month with by";
        assert!(err.contains(advice), "{err}");
        // A key has fewer rows if its moves have fewer classes.
        let mut pruner = Pruner::new(9, true, Path::new("x"));
        (0..MAX_BUFFERED_ROWS).for_each(|_| pruner.take(&row, &mut |_| Ok(())).unwrap());
        pruner.end_key(&mut |_| Ok(())).unwrap();
    }
}
