//! The rows of counts that a run has made, for the writer: shard by shard, in sorted order.

use std::{mem, ops::Range};

use super::layout::ClassRow;
use crate::{
    counts::Row,
    error::Result,
    sort::Sealed,
    tally::{ClassCounts, ClassRecord, Counts, Finder, KeyedIdentity, Ratings, Scratch, Stats},
};

/// An iterator over rows by class, sorted by key, move and identity.
pub(super) type ClassedRows<'a> = Box<dyn Iterator<Item = Result<ClassRow>> + 'a>;

/// Counts in memory or in temporary files that are to be written.
pub(crate) enum RowSource<'a> {
    /// Counts of standard chess, in which keys identify positions.
    Keys(&'a Counts),
    /// Counts of variants, which are stored by identity, and pairs of each key and an identity that shares it.
    Identities {
        finder: Finder<'a>,
        keys: &'a Sealed<KeyedIdentity>,
    },
}

impl RowSource<'_> {
    /// Returns `true` if rows have identities that differ from their keys.
    pub(super) fn has_identities(&self) -> bool {
        matches!(self, RowSource::Identities { .. })
    }

    /// Calls `f` with the rows of a shard of keys, sorted by key, move and identity.
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

/// Calls `f` with the rows by class of `shards`, sorted by key, move and class. The counts must be of standard chess.
/// Each class of a move is passed once.
///
/// # Errors
///
/// Returns the error of `f`, or an error if a temporary file cannot be read.
pub(super) fn for_each_class_row(
    counts: &ClassCounts,
    shards: Range<usize>,
    mut f: impl FnMut(&ClassRow) -> Result<()>,
) -> Result<()> {
    let mut open: Option<(ClassRecord, Stats, Ratings)> = None;
    let mut result = Ok(());
    let row_of = |(first, stats, ratings): (ClassRecord, _, _)| ClassRow {
        row: Row {
            key: first.key(),
            identity: first.key(),
            mv: first.book_move(),
            turn: first.turn(),
            stats,
        },
        class: first.class(),
        ratings,
    };
    for shard in shards {
        let read = counts.records.for_each(shard, |record| match &mut open {
            _ if result.is_err() => {}
            Some((first, stats, ratings)) if first.has_class_of(record) => {
                *stats += record.stats();
                *ratings += record.ratings();
            }
            _ => {
                if let Some(ended) = open.replace((record, record.stats(), record.ratings())) {
                    result = f(&row_of(ended));
                }
            }
        });
        mem::replace(&mut result, Ok(()))?;
        read?;
    }
    open.map_or(Ok(()), |last| f(&row_of(last)))
}

/// Returns an iterator over the rows by class of `shards`, sorted by key, move and identity. Several rows may have the
/// same class.
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
            // Adds up neighbouring records of one class at once, because a frequent position has very many records of
            // few classes.
            let mut before = None;
            let read =
                counts.for_each_of_identity(pair.identity(), |record| match rows.last_mut() {
                    Some(row) if before.is_some_and(|of| record.has_class_of(of)) => {
                        row.row.stats += record.stats();
                        row.ratings += record.ratings();
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
        rows.sort_unstable_by_key(ClassRow::place);
        Some(Ok(rows))
    };
    let rows = std::iter::from_fn(of_key);
    Box::new(rows.flat_map(|rows| match rows {
        Ok(rows) => rows.into_iter().map(Ok).collect(),
        Err(err) => vec![Err(err)],
    }))
}

/// Creates the row of a single record at the position key `key`.
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
        ratings: record.ratings(),
    }
}

/// Calls `f` with the rows of a shard of keys of variants, sorted by key, move and identity.
///
/// # Errors
///
/// Returns the error of `f`, or an error if a temporary file cannot be read.
fn rows_of_identities(
    finder: &Finder<'_>,
    keys: &Sealed<KeyedIdentity>,
    shard: usize,
    mut f: impl FnMut(Row) -> Result<()>,
) -> Result<()> {
    let mut scratch = Scratch::default();
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
        match finder.find(finder.part(identity), &mut scratch) {
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
