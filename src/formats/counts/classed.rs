//! Adds up the results of moves by class (speed, rating group and month). The results come from several counts
//! directories and from the games of the current run.
//!
//! Each input is sorted by position key, move and identity. [`ClassedCounts::for_each_row`] merges the inputs and adds
//! up the rows of each move by class. It needs memory only for one batch of each input and for the classes of one move.
//! A [`RowSource`] passes the results of the current run to the writer, in ascending order.

use std::{
    cmp::Ordering,
    mem,
    ops::Range,
    path::Path,
    sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed},
};

use super::{
    ClassCounts, ClassRecord, Counts, Finder, Grouping, KeyedIdentity, LookUpBuffers,
    directory::{CountsDirectory, OrderedParts, OrderedRows},
    error::CountsError,
    layout::ClassRow,
    rows::MAX_TOTAL_GAMES,
};
use crate::{
    chess::position::BookMove,
    error::{Advice, Diagnosis, Error, Result},
    formats::counts::Row,
    games::results::MEASURES,
    storage::sort::{Merge, Sorted},
};

/// The number of rows of one move that a merge buffers before it adds up the rows of the same class (speed, rating
/// group and month). The limit bounds the memory for a move with very many rows.
const MAX_BUFFERED_ROWS: usize = 1 << 16;

/// The maximum number of classes of one move. A class is a combination of speed, rating group and month. The limit
/// bounds the memory, and is large enough for the games of fifty years, which have fewer than 80,000 classes.
const MAX_CLASSES_PER_MOVE: usize = if cfg!(test) { 1 << 12 } else { 1 << 17 };

/// The maximum number of rows in a counts directory that may lack rows for the ends of games although other inputs of
/// the merge contain such rows. A small directory may lack them by chance, but a larger one without them was written by
/// a program that does not count the ends of games. Such a directory must not be merged with the other inputs.
const MAX_ROWS_WITHOUT_ENDS: u64 = 10_000;

/// A merge of several counts directories. Each directory contains Parquet files with the results of each move in each
/// position. The merge adds up rows with the same position, move and class (speed, rating group and month).
#[derive(Debug)]
pub(crate) struct ClassedCounts {
    /// The properties of games by which the sums are grouped. Each directory is grouped by at least these properties.
    by: Grouping,
    /// For each directory: the directory itself, the properties by which it is grouped, whether a row without a move
    /// has been read from it, and its sorted files.
    directories: Vec<(CountsDirectory, Grouping, AtomicBool, OrderedParts)>,
    /// Whether the sums contain a row without a move, which counts games that ended in the row's position.
    has_ends: AtomicBool,
    /// The [totals](ClassRow::totals) of the rows read so far. These totals are limited, so that no sum can overflow.
    totals: [AtomicU64; 1 + MEASURES.len()],
}

/// A row in a merge of counts directories. The merge orders rows by position key, move and identity. An identity is a
/// hash that distinguishes positions with equal keys.
struct MergeRow(ClassRow);

impl PartialEq for MergeRow {
    fn eq(&self, other: &MergeRow) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for MergeRow {}

impl PartialOrd for MergeRow {
    fn partial_cmp(&self, other: &MergeRow) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for MergeRow {
    fn cmp(&self, other: &MergeRow) -> Ordering {
        self.0.sort_key().cmp(&other.0.sort_key())
    }
}

impl ClassedCounts {
    /// Opens several counts directories for merging. Reads no rows yet. The merge adds up rows of the same move in the
    /// same position if they agree in all properties in `by`: any of speed, rating group and month. Each directory must
    /// be grouped by at least the properties in `by`.
    ///
    /// # Errors
    ///
    /// Returns an error if a Parquet file of a directory cannot be read. Also returns an error if the position keys of
    /// two files of one directory overlap, because a merge must read the rows of a directory in order.
    pub(crate) fn open(directories: &[CountsDirectory], by: Grouping) -> Result<ClassedCounts> {
        let open = |directory: &CountsDirectory| {
            let (by, parts) = (directory.by()?, directory.classed()?);
            Ok((directory.clone(), by, AtomicBool::new(false), parts))
        };
        Ok(ClassedCounts {
            by,
            directories: directories.iter().map(open).collect::<Result<_>>()?,
            has_ends: AtomicBool::new(false),
            totals: Default::default(),
        })
    }

    /// Returns `true` if any Parquet file of the counts directories has a column of identities. An identity is a hash
    /// that distinguishes positions with equal keys. Only directories with games of chess variants need this column.
    ///
    /// # Errors
    ///
    /// Returns an error if a file cannot be read.
    pub(crate) fn has_identities(&self) -> Result<bool> {
        let parts = self
            .directories
            .iter()
            .flat_map(|(directory, ..)| directory.parts());
        for part in parts {
            if part.has_identities()? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Merges the rows whose position keys are in `shards`, and calls `f` with each row of the result, in ascending
    /// order. Rows with the same position, move and class (speed, rating group and month) are added up. `own` contains
    /// the results of games that were read in the same run of `make-book`, and is merged with the directories.
    ///
    /// A shard is a 256th of the range of keys. `shards` must not contain keys on both sides of 2^63: directories are
    /// sorted by keys as signed numbers, so keys from 2^63 on come before all other keys.
    ///
    /// # Errors
    ///
    /// Returns the error of `f`, or an error if an input cannot be read, is invalid or is not sorted.
    ///
    /// Also returns an error if inputs disagree about the side to move in a position, or if a move has more than
    /// [`MAX_CLASSES_PER_MOVE`] classes.
    pub(crate) fn for_each_row(
        &self,
        shards: Range<usize>,
        own: Option<&ClassCounts>,
        mut f: impl FnMut(&ClassRow) -> Result<()>,
    ) -> Result<()> {
        // The own counts of standard games are sorted and added up already, so they need no merge if there is no
        // directory.
        if let Some(own) = own
            && self.directories.is_empty()
            && own.keys.is_none()
        {
            let (mut place, mut classes) = (None, 0);
            return for_each_class_row(own, shards, |row| {
                let is_next = place.replace(row.sort_key()) != Some(row.sort_key());
                classes = if is_next { 1 } else { classes + 1 };
                self.check_classes(classes)?;
                f(row)
            });
        }
        let directories = self.directories.iter();
        let of_directories = directories.map(|(directory, has, has_ends, parts)| {
            let rows = self.rows(parts.classed_rows_of(shards.clone(), *has), has_ends);
            let is_selected = |row: &Result<ClassRow>| {
                row.as_ref().map_or(true, |row| directory.admits(row.class))
            };
            Box::new(rows.filter(is_selected)) as ClassedRows<'_>
        });
        let sources = of_directories.chain(own.map(|own| class_rows(own, shards.clone())));
        let sources = sources.map(|rows| rows.map(|row| row.map(MergeRow)));
        self.add_moves(
            Merge::new(sources).map(|row| row.map(|MergeRow(row)| row)),
            f,
        )
    }

    /// Adds up the rows of each move by class, and calls `f` with each sum. A class consists of speed, rating group
    /// and month. `sorted` must yield the rows in ascending order of key, move and identity.
    fn add_moves(
        &self,
        sorted: impl Iterator<Item = Result<ClassRow>>,
        mut f: impl FnMut(&ClassRow) -> Result<()>,
    ) -> Result<()> {
        let mut rows: Vec<ClassRow> = Vec::new();
        let mut most = MAX_BUFFERED_ROWS;
        for row in sorted {
            let mut row = row?;
            row.class = self.by.project(row.class);
            if let Some(last) = rows.last() {
                let position = |row: &ClassRow| (row.row.key, row.row.identity);
                if position(last) == position(&row) && last.row.turn != row.row.turn {
                    let sides = CountsError::Sides(row.row.key.cast_signed());
                    return Err(Error::format(self.path(), sides));
                }
                if last.sort_key() != row.sort_key() {
                    self.flush_move(&mut rows, &mut f)?;
                    most = MAX_BUFFERED_ROWS;
                }
            }
            rows.push(row);
            if rows.len() > most {
                add_up(&mut rows);
                self.check_classes(rows.len())?;
                most = 2 * rows.len().max(MAX_BUFFERED_ROWS);
            }
        }
        self.flush_move(&mut rows, &mut f)
    }

    /// Adds up the rows in the buffer `rows` by class (speed, rating group and month). The rows must belong to one
    /// move. Calls `f` with each sum, and clears the buffer.
    fn flush_move(
        &self,
        rows: &mut Vec<ClassRow>,
        f: &mut impl FnMut(&ClassRow) -> Result<()>,
    ) -> Result<()> {
        add_up(rows);
        self.check_classes(rows.len())?;
        note_ends(rows, &self.has_ends);
        rows.drain(..).try_for_each(|row| f(&row))
    }

    /// Returns the path for errors that concern several counts directories: the path of the first directory, or
    /// `counts` if there are no directories.
    fn path(&self) -> &Path {
        let directory = self.directories.first();
        directory.map_or("counts".as_ref(), |(directory, ..)| directory.path())
    }

    /// Returns an error if `classes`, the number of classes of a move, exceeds [`MAX_CLASSES_PER_MOVE`]. A class is a
    /// combination of speed, rating group and month.
    fn check_classes(&self, classes: usize) -> Result<()> {
        if classes <= MAX_CLASSES_PER_MOVE {
            return Ok(());
        }
        let problem = Diagnosis::new(format!(
            "a move has more than {MAX_CLASSES_PER_MOVE} combinations of speed, rating group and month"
        ))
        .advise(Advice::option("choose fewer of these with {}", "by"));
        Err(Error::too_large(self.path(), problem))
    }

    /// Returns an iterator over the rows that `rows` reads from one counts directory. The iterator sets `has_ends` to
    /// `true` when it finds a row without a move, which counts games that ended in its position.
    fn rows<'a>(&'a self, mut rows: OrderedRows<'a>, has_ends: &'a AtomicBool) -> ClassedRows<'a> {
        let (mut batch, mut at) = (Vec::new(), 0);
        Box::new(std::iter::from_fn(move || {
            // A batch is empty if all of its rows have no games. Therefore batches are read until one contains rows.
            while at == batch.len() {
                batch.clear();
                at = 0;
                match self.read(&mut rows, &mut batch) {
                    Ok(true) => note_ends(&batch, has_ends),
                    Ok(false) => return None,
                    Err(err) => return Some(Err(err)),
                }
            }
            at += 1;
            Some(Ok(batch[at - 1]))
        }))
    }

    /// Reads the next rows of one counts directory into `batch`, and adds their numbers of games and their measures to
    /// the totals of all directories. Returns `false` if there are no more rows.
    ///
    /// # Errors
    ///
    /// Returns an error if a file cannot be read or is not sorted. Also returns an error if a total exceeds
    /// [`MAX_TOTAL_GAMES`], so that sums cannot overflow.
    fn read<'a>(&'a self, rows: &mut OrderedRows<'a>, batch: &mut Vec<ClassRow>) -> Result<bool> {
        let Some(step) = rows.next_classed(batch)? else {
            return Ok(false);
        };
        for (number, total) in self.totals.iter().enumerate() {
            let more: u128 = batch
                .iter()
                .map(|row| u128::from(row.totals()[number]))
                .sum();
            let more = u64::try_from(more).unwrap_or(u64::MAX);
            if total
                .fetch_add(more.min(MAX_TOTAL_GAMES + 1), Relaxed)
                .saturating_add(more)
                > MAX_TOTAL_GAMES
            {
                return Err(Error::format(step.path, CountsError::Overflow));
            }
        }
        Ok(true)
    }

    /// Checks that every Parquet file has the checksum that the `_counts.json` of its directory states. Uses all
    /// threads of the current rayon pool.
    ///
    /// # Errors
    ///
    /// Returns an error if a file cannot be read, or if its checksum differs.
    pub(crate) fn check_bytes(&self) -> Result<()> {
        let mut parts = self.directories.iter().map(|(.., parts)| parts);
        parts.try_for_each(OrderedParts::check_bytes)
    }

    /// Returns the total number of rows in the counts directories, before rows of the same move are added up.
    pub(crate) fn row_count(&self) -> u64 {
        let parts = self.directories.iter().map(|(.., parts)| parts);
        parts.map(OrderedParts::rows).sum()
    }

    /// Checks that each row of the counts directories was read exactly once. Also resets the totals to 0, so that the
    /// rows can be read once more.
    ///
    /// # Errors
    ///
    /// Returns an error if the number of rows that were read from a file differs from the number in its metadata or in
    /// `_counts.json`.
    ///
    /// Also returns an error if other inputs contain rows for the ends of games, but a directory of more than 10,000
    /// rows does not. The program that wrote this directory did not count the ends of games, so the merged counts would
    /// be wrong.
    pub(crate) fn check_read(&self) -> Result<()> {
        self.totals.iter().for_each(|total| total.store(0, Relaxed));
        for (directory, _, has_ends, parts) in &self.directories {
            parts.check_read()?;
            let lacks_ends = self.has_ends.load(Relaxed) && !has_ends.load(Relaxed);
            if lacks_ends && parts.rows() > MAX_ROWS_WITHOUT_ENDS {
                return Err(Error::format(directory.path(), CountsError::NoEnds));
            }
        }
        Ok(())
    }
}

/// Sets `has_ends` to `true` if `rows` contains a row without a move. Such a row counts games that ended in its
/// position.
fn note_ends(rows: &[ClassRow], has_ends: &AtomicBool) {
    let is_end = |row: &ClassRow| row.row.mv == BookMove::NONE;
    if !has_ends.load(Relaxed) && rows.iter().any(is_end) {
        has_ends.store(true, Relaxed);
    }
}

/// Sorts the rows of one move by class (speed, rating group and month), and merges the rows of each class into one
/// row.
fn add_up(rows: &mut Vec<ClassRow>) {
    if rows.len() < 2 {
        return;
    }
    rows.sort_unstable_by_key(|row| row.class);
    rows.dedup_by(|later, first| {
        let is_same = later.class == first.class;
        if is_same {
            first.add(later.row.stats, later.means);
        }
        is_same
    });
}

/// An iterator over rows of counts, sorted by position key, move and identity. Each row has a class: a speed, a
/// rating group and a month.
pub(super) type ClassedRows<'a> = Box<dyn Iterator<Item = Result<ClassRow>> + 'a>;

/// The source of the rows of a new counts directory: sorted results of moves, in memory or in temporary files.
pub(crate) enum RowSource<'a> {
    /// Results of standard chess, in which the key identifies the position.
    Keys(&'a Counts),
    /// Results of variants, which are stored by identity, a hash that distinguishes positions with equal keys. `keys`
    /// contains the key that belongs to each identity.
    Identities {
        finder: Finder<'a>,
        keys: &'a Sorted<KeyedIdentity>,
    },
}

impl RowSource<'_> {
    /// Returns `true` if each row contains an identity in addition to the position key. An identity is a hash that
    /// distinguishes positions with equal keys. Only rows of chess variants contain identities.
    pub(super) fn has_identities(&self) -> bool {
        matches!(self, RowSource::Identities { .. })
    }

    /// Calls `f` with each row in one shard, sorted by position key, move and identity. An identity is a hash that
    /// distinguishes positions with equal keys. `shard` is the index of the shard, which is a 256th of the range of
    /// keys.
    ///
    /// # Errors
    ///
    /// Returns the error of `f`, or an error if a temporary file cannot be read.
    pub(super) fn for_each_row(
        &self,
        shard: usize,
        mut f: impl FnMut(Row) -> Result<()>,
    ) -> Result<()> {
        match self {
            RowSource::Keys(counts) => {
                let mut result = Ok(());
                counts.for_each_position(shard, |key, turn, moves| {
                    for count in moves {
                        if result.is_ok() {
                            result = f(Row {
                                key,
                                identity: key,
                                mv: count.mv,
                                turn,
                                stats: count.stats,
                            });
                        }
                    }
                })?;
                result
            }
            RowSource::Identities { finder, keys } => rows_of_identities(finder, keys, shard, f),
        }
    }
}

/// Calls `f` with one row for each position, move and class (speed, rating group and month) in `shards`, in ascending
/// order. The row contains the sum of all records with these properties. `counts` must contain only games of standard
/// chess. A shard is a 256th of the range of keys.
///
/// # Errors
///
/// Returns the error of `f`, or an error if a temporary file cannot be read.
pub(super) fn for_each_class_row(
    counts: &ClassCounts,
    shards: Range<usize>,
    mut f: impl FnMut(&ClassRow) -> Result<()>,
) -> Result<()> {
    let mut open: Option<(ClassRecord, ClassRow)> = None;
    let mut result = Ok(());
    for shard in shards {
        let read = counts.records.for_each(shard, |record| match &mut open {
            _ if result.is_err() => {}
            Some((first, row)) if first.has_class_of(record) => {
                row.add(record.stats(), record.means());
            }
            _ => {
                if let Some((_, ended)) = open.replace((record, class_row(record.key(), record))) {
                    result = f(&ended);
                }
            }
        });
        mem::replace(&mut result, Ok(()))?;
        read?;
    }
    open.map_or(Ok(()), |(_, last)| f(&last))
}

/// Returns an iterator over the rows of `counts` in `shards`, sorted by position key, move and identity. Several rows
/// may have the same move and class (speed, rating group and month). A shard is a 256th of the range of keys.
pub(super) fn class_rows(counts: &ClassCounts, shards: Range<usize>) -> ClassedRows<'_> {
    let Some(keys) = &counts.keys else {
        let records = shards.flat_map(|shard| counts.records.records(shard));
        return Box::new(
            records.map(|record| record.map(|record| class_row(record.key(), record))),
        );
    };
    let mut pairs = shards.flat_map(|shard| keys.records(shard)).peekable();
    let of_key = move || -> Option<Result<Vec<ClassRow>>> {
        let key = match pairs.peek()? {
            Ok(pair) => pair.key(),
            Err(_) => return pairs.next().map(|err| err.map(|_| Vec::new())),
        };
        let mut rows: Vec<ClassRow> = Vec::new();
        while let Some(Ok(pair)) =
            pairs.next_if(|next| next.as_ref().is_ok_and(|next| next.key() == key))
        {
            // A frequent position has very many records but few classes, so consecutive records of the same class are
            // added up at once.
            let mut before = None;
            let read =
                counts.for_each_of_identity(pair.identity(), |record| match rows.last_mut() {
                    Some(row) if before.is_some_and(|of| record.has_class_of(of)) => {
                        row.add(record.stats(), record.means());
                    }
                    _ => {
                        before = Some(record);
                        rows.push(class_row(key, record));
                    }
                });
            if let Err(err) = read {
                return Some(Err(err));
            }
        }
        rows.sort_unstable_by_key(ClassRow::sort_key);
        Some(Ok(rows))
    };
    let rows = std::iter::from_fn(of_key);
    Box::new(rows.flat_map(|rows| match rows {
        Ok(rows) => rows.into_iter().map(Ok).collect(),
        Err(err) => vec![Err(err)],
    }))
}

/// Converts a record to a row. `key` becomes the position key of the row, and the hash in the record becomes its
/// identity, which distinguishes positions with equal keys.
fn class_row(key: u64, record: ClassRecord) -> ClassRow {
    ClassRow {
        row: Row {
            key,
            identity: record.key(),
            mv: record.book_move(),
            turn: record.turn(),
            stats: record.stats(),
        },
        class: record.class(),
        means: record.means(),
    }
}

/// Calls `f` with each row in one shard of the results of a chess variant, sorted by position key, move and identity.
/// An identity is a hash that distinguishes positions with equal keys. `finder` finds the moves of the position with a
/// given identity, and `keys` pairs each identity with its position key. `shard` is the index of the shard, which is a
/// 256th of the range of keys.
///
/// # Errors
///
/// Returns the error of `f`, or an error if a temporary file cannot be read.
fn rows_of_identities(
    finder: &Finder<'_>,
    keys: &Sorted<KeyedIdentity>,
    shard: usize,
    mut f: impl FnMut(Row) -> Result<()>,
) -> Result<()> {
    let mut scratch = LookUpBuffers::default();
    let mut rows: Vec<Row> = Vec::new();
    let mut result = Ok(());
    let mut hand_over = |rows: &mut Vec<Row>| {
        rows.sort_by_key(|row| (row.mv, row.identity));
        rows.drain(..).try_for_each(&mut f)
    };
    keys.for_each(shard, |pair| {
        let (key, identity) = (pair.key(), pair.identity());
        if result.is_err() {
            return;
        }
        if rows.first().is_some_and(|first| first.key != key) {
            result = hand_over(&mut rows);
        }
        match finder.find(finder.range_of(identity), &mut scratch) {
            Ok(found) => {
                let found = found.expect("every identity was counted");
                rows.extend(found.moves.iter().map(|count| Row {
                    key,
                    identity,
                    mv: count.mv,
                    turn: found.turn,
                    stats: count.stats,
                }));
            }
            Err(err) => result = Err(err),
        }
    })?;
    result.and_then(|()| hand_over(&mut rows))
}

#[cfg(test)]
mod tests {
    use shakmaty::Color;

    use super::*;
    use crate::{
        chess::position::BookMove,
        formats::counts::{ClassRecord, ClassTally, CountClass, layout::Row},
        games::results::{Measured, Wdl},
        storage::sort::{Memory, SHARDS},
    };

    #[test]
    fn a_move_of_too_many_classes_is_an_error() {
        let counts = ClassedCounts::open(&[], "month".parse().unwrap()).unwrap();
        let rows = |months: u32| {
            let row = |month| ClassRow {
                class: CountClass {
                    month,
                    ..CountClass::default()
                },
                ..ClassRow::from(Row {
                    key: 1,
                    identity: 1,
                    mv: BookMove(1),
                    turn: Color::White,
                    stats: Wdl::default(),
                })
            };
            let mut taken = 0;
            let rows = (0..months).map(move |month| Ok(row(month)));
            let ended = counts.add_moves(rows, |_| {
                taken += 1;
                Ok(())
            });
            ended.map(|()| taken)
        };
        assert_eq!(
            rows(MAX_CLASSES_PER_MOVE as u32).unwrap(),
            MAX_CLASSES_PER_MOVE
        );
        let err = rows(MAX_CLASSES_PER_MOVE as u32 + 1)
            .unwrap_err()
            .to_string();
        assert!(err.contains("choose fewer of these with by"), "{err}");
        // If --by does not contain month, the move has one class.
        assert_eq!(rows(1).unwrap(), 1);

        // The limit also applies to the games of a single run, so that their counts can later be added up with
        // others.
        let of_games = |months: u32| {
            let tally = ClassTally::new(&Memory::default(), false);
            let record = |number: u32| {
                let month = number / 12 * 100 + number % 12 + 1;
                let class = CountClass {
                    month,
                    ..CountClass::default()
                };
                ClassRecord::new(
                    1,
                    BookMove(1),
                    Color::White,
                    class,
                    None,
                    Measured::default(),
                )
            };
            let records: Vec<ClassRecord> = (0..months).map(record).collect();
            tally.append(&records, &[]).unwrap();
            let own = tally.sort().unwrap();
            let mut taken = 0;
            let ended = counts.for_each_row(0..SHARDS, Some(&own), |_| {
                taken += 1;
                Ok(())
            });
            ended.map(|()| taken)
        };
        assert_eq!(
            of_games(MAX_CLASSES_PER_MOVE as u32).unwrap(),
            MAX_CLASSES_PER_MOVE
        );
        let err = of_games(MAX_CLASSES_PER_MOVE as u32 + 1)
            .unwrap_err()
            .to_string();
        assert!(err.contains("fewer of"), "{err}");
    }
}
