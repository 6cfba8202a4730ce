//! Adding up databases.

use std::{
    cmp::Ordering,
    iter,
    path::{Path, PathBuf},
    sync::atomic::AtomicBool,
};

use super::{
    by_games::ByGames,
    error::ObsError,
    info::Info,
    read::Obs,
    row::{PassedOver, Row},
    source::MOST_GAMES,
    stream::Rows,
    table::{BookTable, Columns, NewRow},
    write::{Made, ObsWriter},
};
use crate::{
    error::Result,
    output::{Finished, repeated},
    sort::{Memory, Merge},
    task,
};

/// Rows that are inserted at once, and how many bytes of them.
const READY_ROWS: usize = 1 << 12;
const READY_BYTES: usize = 1 << 21;

/// What became of the databases.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Merged {
    /// Rows of the new database.
    pub rows: u64,
    /// Rows of the databases that cannot be read.
    pub passed_over: PassedOver,
    /// Inputs that are the same file as an input before them, so that its games count twice.
    pub repeated: Vec<PathBuf>,
}

/// Makes a database of several: a move of a position has the games of all of them. Whether it is to be
/// played comes from the first that knows it, a remark from the first that has one.
///
/// Returns what became of the databases, and the new one, which is not in place yet. If all of them hold
/// every move, it is exactly the database of all the games; [`Info::dropped`] says whether they do. Databases
/// without an index of their EPDs are sorted in `memory`.
///
/// # Errors
///
/// No inputs, databases of different variants, one that cannot be read, a file that cannot be written, or
/// [`Error::Interrupted`](crate::Error::Interrupted) when `stop` is set.
pub fn merge_databases(
    inputs: &[impl AsRef<Path>],
    out: ObsWriter,
    memory: &Memory,
    stop: &AtomicBool,
) -> Result<(Merged, Finished)> {
    task::caught(|| merge(inputs, out, memory, stop))
}

fn merge(
    inputs: &[impl AsRef<Path>],
    out: ObsWriter,
    memory: &Memory,
    stop: &AtomicBool,
) -> Result<(Merged, Finished)> {
    let repeated = repeated(inputs.iter().map(AsRef::as_ref));
    let repeated = repeated.map(Path::to_owned).collect();
    let databases: Vec<Obs> = inputs.iter().map(Obs::open).collect::<Result<_>>()?;
    let info = joined_info(&databases)?.ok_or_else(|| ObsError::NoInput.at(out.target()))?;
    let sizes = inputs
        .iter()
        .filter_map(|path| path.as_ref().metadata().ok());
    let made = Made {
        info: &info,
        columns: Columns::All,
        size: sizes.map(|metadata| metadata.len()).sum(),
        temp_dir: &memory.temp_dir,
    };
    let target = out.target().to_owned();
    let mut passed_over = PassedOver::default();
    let (rows, finished) = out.insert_all(made, stop, |table| {
        let mut inserter = Inserter {
            table,
            target: &target,
            position: ByGames::new(&memory.temp_dir),
            ready: Vec::new(),
            bytes: 0,
        };
        passed_over = merge_rows(databases, &mut inserter, memory, stop)?;
        Ok(())
    })?;
    let merged = Merged {
        rows,
        passed_over,
        repeated,
    };
    Ok((merged, finished))
}

/// What the new database says of itself.
fn joined_info(databases: &[Obs]) -> Result<Option<Info>> {
    let mut joined: Option<Info> = None;
    for database in databases {
        let info = database.info();
        match &mut joined {
            None => joined = Some(info.clone()),
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
    Ok(joined)
}

/// Adds up the rows of all databases; returns which were passed over.
fn merge_rows(
    databases: Vec<Obs>,
    inserter: &mut Inserter<'_, '_>,
    memory: &Memory,
    stop: &AtomicBool,
) -> Result<PassedOver> {
    let share = memory.share(databases.len());
    let mut readers: Vec<Rows> = databases
        .into_iter()
        .map(|database| database.into_rows_by_epd(&share))
        .collect::<Result<_>>()?;
    let sources = readers.iter_mut().map(|rows| {
        iter::from_fn(|| {
            let row = rows.next_unless(stop)?;
            Some(row.map(ByMove))
        })
    });
    let mut open: Option<Row> = None;
    for row in Merge::new(sources) {
        let ByMove(row) = row?;
        match &mut open {
            Some(open) if open.epd == row.epd && open.mv == row.mv => {
                open.join(row);
                inserter.check(open)?;
            }
            _ => {
                if let Some(complete) = open.replace(row) {
                    inserter.take(complete)?;
                }
            }
        }
    }
    if let Some(complete) = open {
        inserter.take(complete)?;
    }
    inserter.finish()?;
    let mut passed_over = PassedOver::default();
    for rows in &readers {
        passed_over.add(rows.passed_over().clone());
    }
    Ok(passed_over)
}

/// A row that compares by its position and move.
struct ByMove(Row);

impl Ord for ByMove {
    fn cmp(&self, other: &ByMove) -> Ordering {
        let (ByMove(a), ByMove(b)) = (self, other);
        a.epd.cmp(&b.epd).then_with(|| a.mv.cmp(&b.mv))
    }
}

impl PartialOrd for ByMove {
    fn partial_cmp(&self, other: &ByMove) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for ByMove {
    fn eq(&self, other: &ByMove) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for ByMove {}

/// Takes rows in the order of positions and inserts them in the order of their games.
struct Inserter<'a, 'b> {
    table: &'a mut BookTable<'b>,
    target: &'a Path,
    /// The rows of the position that comes.
    position: ByGames,
    ready: Vec<Row>,
    bytes: usize,
}

impl Inserter<'_, '_> {
    /// Refuses a sum that no database can have.
    fn check(&self, row: &Row) -> Result<()> {
        let largest = row.stats.wins.max(row.stats.draws).max(row.stats.losses);
        if largest <= MOST_GAMES as u64 {
            return Ok(());
        }
        let impossible = ObsError::ImpossibleGames {
            epd: row.epd.clone(),
            mv: row.mv.clone(),
            games: largest as i64,
        };
        Err(impossible.at(self.target))
    }

    fn take(&mut self, row: Row) -> Result<()> {
        if self.position.epd().is_some_and(|epd| epd != row.epd) {
            self.finish_position()?;
        }
        self.position.push(row)
    }

    fn finish_position(&mut self) -> Result<()> {
        let (table, ready, bytes) = (&mut *self.table, &mut self.ready, &mut self.bytes);
        self.position.drain(|row| {
            *bytes += row.bytes();
            ready.push(row);
            if ready.len() >= READY_ROWS || *bytes >= READY_BYTES {
                *bytes = 0;
                insert(ready, table)?;
            }
            Ok(())
        })
    }

    fn finish(&mut self) -> Result<()> {
        self.finish_position()?;
        insert(&mut self.ready, self.table)
    }
}

fn insert(ready: &mut Vec<Row>, table: &mut BookTable<'_>) -> Result<()> {
    let rows: Vec<NewRow<'_>> = ready
        .iter()
        .map(|row| NewRow {
            epd: &row.epd,
            mv: &row.mv,
            active: row.active,
            stats: row.stats,
            comment: row.comment.as_deref(),
        })
        .collect();
    table.insert(&rows)?;
    ready.clear();
    Ok(())
}
