//! Merges several OOBS databases into one.

use std::{
    cmp, iter, mem,
    path::{Path, PathBuf},
    sync::atomic::{AtomicBool, Ordering},
};

use super::{
    database::Obs,
    error::ObsError,
    info::Info,
    rows::{ObsRow, Rows, SkippedRows},
    writer::{DatabaseProperties, ObsWriter, RowCollector},
};
use crate::{
    error::{At, Error, Result},
    games::results::Wdl,
    storage::output::{Finished, repeated},
    storage::sort::{ByteRun, Memory, Merge, TextSorter},
    task,
};

/// The maximum size in bytes of the rows of one position that are held in memory. Further rows are written to a
/// temporary file. The rows of a real position need less than a hundredth of this size.
const MAX_ROW_BYTES_IN_MEMORY: usize = 1 << 23;

/// The maximum number of databases that are open at the same time. Each database needs two open files, and up to two
/// more if SQLite sorts its rows. If there are more inputs, groups of inputs are merged first, and then the results of
/// these merges.
const MAX_OPEN_DATABASES: usize = 48;

/// The result of [`merge_databases`]: the number of rows of the new database, and the problems found in the inputs.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct ObsMergeSummary {
    /// The number of rows of the new database.
    pub rows: u64,
    /// The inputs in which rows could not be read, each with a description of these rows.
    pub skipped_rows: Vec<(PathBuf, SkippedRows)>,
    /// The inputs that are the same file as an earlier input. Their games are counted twice.
    pub repeated: Vec<PathBuf>,
    /// The inputs from which moves were left out when they were made, each with the responsible options, as returned by
    /// [`Info::dropped`].
    pub dropped: Vec<(PathBuf, String)>,
}

/// Merges several OOBS databases into a new one, which is written to `out`.
///
/// The results of equal moves of a position are added up. The value of the column `Active` comes from the first input
/// that contains the move. The comment comes from the first input that contains a comment on the move. SQLite sorts the
/// rows of the inputs within the memory budget `memory`. If `stop` is set, the merge is cancelled.
///
/// Returns a summary and the finished output, which the caller must rename to its target. If no moves were left out of
/// the inputs (see [`Info::dropped`]), the new database is equal to one made from all games at once.
///
/// # Errors
///
/// Returns an error if there are no inputs, if their variants differ, if an input cannot be read or does not match its
/// checksum, or if a file cannot be written. Returns [`Error::Interrupted`](crate::Error::Interrupted) if `stop` is
/// set.
pub fn merge_databases(
    inputs: &[impl AsRef<Path>],
    out: ObsWriter,
    memory: &Memory,
    stop: &AtomicBool,
) -> Result<(ObsMergeSummary, Finished)> {
    task::caught(|| merge(inputs, out, memory, stop))
}

fn merge(
    inputs: &[impl AsRef<Path>],
    out: ObsWriter,
    memory: &Memory,
    stop: &AtomicBool,
) -> Result<(ObsMergeSummary, Finished)> {
    let repeated = repeated(inputs.iter().map(AsRef::as_ref));
    let repeated = repeated.map(Path::to_owned).collect();
    let mut joined = None;
    let (mut skipped_rows, mut dropped) = (Vec::new(), Vec::new());
    let mut runs = Vec::new();
    let mut databases = Vec::new();
    let is_grouped = inputs.len() > MAX_OPEN_DATABASES;
    let share = memory.share(inputs.len().div_ceil(MAX_OPEN_DATABASES).max(1));
    for group in inputs.chunks(MAX_OPEN_DATABASES) {
        databases = group.iter().map(Obs::open).collect::<Result<Vec<_>>>()?;
        join_info(&mut joined, &databases)?;
        dropped.extend(databases.iter().filter_map(|database| {
            let options = database.info().dropped()?;
            Some((database.path().to_owned(), options))
        }));
        if is_grouped {
            let mut run = ByteRun::new(share.bytes, &share.temp_dir);
            let write = |row: ObsRow| run.append_text(&with_epd(&row));
            let group = mem::take(&mut databases);
            skipped_rows.extend(merge_databases_into(write, group, &share, stop)?);
            runs.push(run);
        }
    }
    let info = joined.ok_or_else(|| ObsError::NoInput.at(out.target()))?;
    let mut size = 0;
    for path in inputs {
        size += path.as_ref().metadata().at(path.as_ref(), "open")?.len();
    }
    let properties = DatabaseProperties {
        info: &info,
        size,
        temp_dir: &memory.temp_dir,
    };
    let (rows, finished) = out.write_rows(properties, stop, |collector| {
        let mut position = PositionRows::new(&memory.temp_dir);
        let write = |row| position.take(row, collector);
        if is_grouped {
            merge_rows(runs.iter().map(|run| rows_of_run(run, stop)), write)?;
        } else {
            skipped_rows = merge_databases_into(write, databases, memory, stop)?;
        }
        position.finish(collector)
    })?;
    let merged = ObsMergeSummary {
        rows,
        skipped_rows,
        repeated,
        dropped,
    };
    Ok((merged, finished))
}

/// Adds the descriptions of `databases` to `joined`, the description of the merged database. `joined` is `None`
/// until the first description is added.
///
/// # Errors
///
/// Returns an error if the databases have different variants.
fn join_info(joined: &mut Option<Info>, databases: &[Obs]) -> Result<()> {
    for database in databases {
        let info = database.info();
        match joined {
            None => *joined = Some(info.clone()),
            Some(joined) if joined.variant == info.variant => joined.join(info),
            Some(joined) => {
                let other = ObsError::OtherVariant {
                    variant: info.variant.clone(),
                    others: joined.variant.clone(),
                };
                return Err(other.at(database.path()));
            }
        }
    }
    Ok(())
}

/// Merges the rows of `databases`, and calls `write` with each merged row, sorted by EPD and then by move. Skips rows
/// that cannot be read. Returns the paths of the databases in which rows were skipped, each with a description of these
/// rows. If `stop` is set, the merge is cancelled.
fn merge_databases_into(
    write: impl FnMut(ObsRow) -> Result<()>,
    databases: Vec<Obs>,
    memory: &Memory,
    stop: &AtomicBool,
) -> Result<Vec<(PathBuf, SkippedRows)>> {
    let share = memory.share(databases.len());
    let paths: Vec<PathBuf> = databases
        .iter()
        .map(|database| database.path().to_owned())
        .collect();
    let mut readers: Vec<Rows> = databases
        .into_iter()
        .map(|database| database.rows_by_own_epd(&share))
        .collect::<Result<_>>()?;
    let sources = readers
        .iter_mut()
        .map(|rows| iter::from_fn(|| rows.next_unless(stop)));
    merge_rows(sources, write)?;
    let skipped_rows = readers.iter().map(|rows| rows.skipped_rows().clone());
    let skipped_rows = paths.into_iter().zip(skipped_rows);
    Ok(skipped_rows
        .filter(|(_, skipped)| skipped.rows > 0)
        .collect())
}

/// Merges several sources of rows, which must be sorted by EPD and then by move. Combines rows with the same EPD and
/// move into one row with the sums of their results. Calls `write` with each resulting row, in the same order.
fn merge_rows(
    sources: impl Iterator<Item = impl Iterator<Item = Result<ObsRow>>>,
    mut write: impl FnMut(ObsRow) -> Result<()>,
) -> Result<()> {
    let sources = sources.map(|rows| rows.map(|row| row.map(ByMove)));
    let mut open: Option<ObsRow> = None;
    for row in Merge::of_long(sources, ByMove::text_bytes) {
        let ByMove(row) = row?;
        match &mut open {
            Some(open) if open.epd == row.epd && open.mv == row.mv => {
                open.join(row);
            }
            _ => {
                if let Some(complete) = open.replace(row) {
                    write(complete)?;
                }
            }
        }
    }
    open.map_or(Ok(()), write)
}

/// Returns the encoding of a row for a temporary file: its EPD, a null byte, and the encoding that [`sortable`]
/// returns. [`rows_of_run`] decodes such rows.
fn with_epd(row: &ObsRow) -> Vec<u8> {
    [row.epd.as_bytes(), &[0], &sortable(row)].concat()
}

/// Returns an iterator over the rows in the temporary file `run`, in the order in which they were written. The
/// rows must have been encoded by [`with_epd`]. If `stop` is set, the next item is [`Error::Interrupted`].
fn rows_of_run<'a>(
    run: &'a ByteRun,
    stop: &'a AtomicBool,
) -> impl Iterator<Item = Result<ObsRow>> + 'a {
    let mut reader = run.reader(0);
    iter::from_fn(move || {
        if stop.load(Ordering::Relaxed) {
            return Some(Err(Error::Interrupted));
        }
        let text = reader.read_text().transpose()?;
        Some(text.map(|text| {
            let end = memchr::memchr(0, &text).expect("an EPD ends");
            let (mv, [active, wins, draws, losses], comment) = decode_row(&text[end + 1..]);
            ObsRow {
                epd: str::from_utf8(&text[..end])
                    .expect("it was text")
                    .to_owned(),
                mv: mv.to_owned(),
                active: active as i64,
                stats: Wdl {
                    wins,
                    draws,
                    losses,
                },
                comment: comment.map(str::to_owned),
            }
        }))
    })
}

/// A row that is ordered by EPD and then by move, as needed to merge sorted sources of rows.
struct ByMove(ObsRow);

impl ByMove {
    fn text_bytes(&self) -> usize {
        let ByMove(row) = self;
        row.epd.len() + row.mv.len() + row.comment.as_ref().map_or(0, String::len)
    }
}

impl Ord for ByMove {
    fn cmp(&self, other: &ByMove) -> cmp::Ordering {
        let (ByMove(a), ByMove(b)) = (self, other);
        a.epd.cmp(&b.epd).then_with(|| a.mv.cmp(&b.mv))
    }
}

impl PartialOrd for ByMove {
    fn partial_cmp(&self, other: &ByMove) -> Option<cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for ByMove {
    fn eq(&self, other: &ByMove) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for ByMove {}

/// A buffer for the rows of one position. When the position is complete, its rows are sorted by number of games in
/// descending order, and passed to a [`RowCollector`].
struct PositionRows {
    /// The rows of the position except `last`.
    rows: TextSorter,
    last: Option<ObsRow>,
    memory: Memory,
}

impl PositionRows {
    fn new(temp_dir: &Path) -> PositionRows {
        let memory = Memory {
            bytes: MAX_ROW_BYTES_IN_MEMORY,
            temp_dir: temp_dir.to_owned(),
        };
        PositionRows {
            rows: TextSorter::new(memory.clone(), None),
            last: None,
            memory,
        }
    }

    /// Adds a row to the buffer of the current position. If the buffered rows belong to a different position, first
    /// passes them to `collector`.
    fn take(&mut self, row: ObsRow, collector: &mut RowCollector<'_>) -> Result<()> {
        match &self.last {
            Some(last) if last.epd == row.epd => self.rows.push(&sortable(last))?,
            _ => self.finish(collector)?,
        }
        self.last = Some(row);
        Ok(())
    }

    fn finish(&mut self, collector: &mut RowCollector<'_>) -> Result<()> {
        let Some(last) = self.last.take() else {
            return Ok(());
        };
        // Nearly every position has only one row, which needs no sorting.
        if self.rows.size() == 0 {
            let comment = last.comment.as_deref();
            return collector.take(&last.epd, &last.mv, last.active, last.stats, comment);
        }
        self.rows.push(&sortable(&last))?;
        let rows = TextSorter::new(self.memory.clone(), None);
        for row in mem::replace(&mut self.rows, rows).sorted() {
            let row = row?;
            let (mv, [active, wins, draws, losses], comment) = decode_row(&row);
            let stats = Wdl {
                wins,
                draws,
                losses,
            };
            collector.take(&last.epd, mv, active as i64, stats, comment)?;
        }
        Ok(())
    }
}

/// Encodes a row without its EPD. Sorting the encoded rows of a position as bytes sorts the rows by number of games in
/// descending order, and then by move.
fn sortable(row: &ObsRow) -> Vec<u8> {
    let mut text = (u64::MAX - row.stats.games()).to_be_bytes().to_vec();
    text.extend_from_slice(row.mv.as_bytes());
    text.push(0);
    let Wdl {
        wins,
        draws,
        losses,
    } = row.stats;
    for number in [row.active as u64, wins, draws, losses] {
        text.extend_from_slice(&number.to_le_bytes());
    }
    if let Some(comment) = &row.comment {
        text.push(0);
        text.extend_from_slice(comment.as_bytes());
    }
    text
}

/// Decodes a row that [`sortable`] encoded. Returns the text of the move, four numbers, and the comment. The four
/// numbers are the value of the column `Active`, the wins, the draws and the losses.
fn decode_row(text: &[u8]) -> (&str, [u64; 4], Option<&str>) {
    let string = |text| str::from_utf8(text).expect("it was text");
    let text = &text[size_of::<u64>()..];
    let end = text
        .iter()
        .position(|byte| *byte == 0)
        .expect("a move ends");
    let (numbers, _) = text[end + 1..].as_chunks();
    let (_, comment) = text[end + 1..].split_at(size_of::<[u64; 4]>());
    let number = |place: usize| u64::from_le_bytes(numbers[place]);
    let comment = comment.split_first().map(|(_, comment)| string(comment));
    (string(&text[..end]), [0, 1, 2, 3].map(number), comment)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_sortable_row_has_all_of_the_row(
            games in any::<(u32, u16, i64)>(), mv in "[ -~]{0,9}", comment in proptest::option::of("\\PC{0,20}"),
        ) {
            let (wins, draws, bits) = games;
            let stats = Wdl { wins: wins.into(), draws: draws.into(), losses: 1 };
            let row = ObsRow { epd: String::new(), mv: mv.clone(), active: bits, stats, comment: comment.clone() };
            let numbers = [bits as u64, stats.wins, stats.draws, stats.losses];
            let text = sortable(&row);
            prop_assert_eq!(decode_row(&text), (&mv[..], numbers, comment.as_deref()));
        }

        #[test]
        fn rows_sort_as_their_texts(rows in proptest::collection::vec((0..4u64, "[a-c]{0,3}"), 0..9)) {
            let row = |(draws, mv): &(u64, String)| ObsRow {
                epd: String::new(),
                mv: mv.clone(),
                active: ObsRow::ACTIVE,
                stats: Wdl { draws: *draws, ..Wdl::default() },
                comment: None,
            };
            let mut sorted: Vec<ObsRow> = rows.iter().map(row).collect();
            sorted.sort_by(ObsRow::by_games);
            prop_assert!(sorted.iter().map(sortable).is_sorted());
        }
    }
}
