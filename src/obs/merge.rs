//! Adding up databases.

use std::{
    cmp::Ordering,
    iter,
    path::{Path, PathBuf},
    sync::atomic::AtomicBool,
};

use super::{
    error::ObsError,
    info::Info,
    read::Obs,
    row::{PassedOver, Row},
    source::MOST_GAMES,
    stream::Rows,
    table::Gatherer,
    write::{MadeDatabase, ObsWriter},
};
use crate::{
    error::Result,
    output::{Finished, repeated},
    sort::{Memory, Merge},
    task,
};

/// What became of the databases.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct ObsMergeSummary {
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
    let databases: Vec<Obs> = inputs.iter().map(Obs::open).collect::<Result<_>>()?;
    let info = joined_info(&databases)?.ok_or_else(|| ObsError::NoInput.at(out.target()))?;
    let sizes = inputs
        .iter()
        .filter_map(|path| path.as_ref().metadata().ok());
    let made = MadeDatabase {
        info: &info,
        size: sizes.map(|metadata| metadata.len()).sum(),
        temp_dir: &memory.temp_dir,
    };
    let target = out.target().to_owned();
    let mut passed_over = PassedOver::default();
    let (rows, finished) = out.insert_all(made, stop, |gatherer| {
        passed_over = merge_rows(databases, gatherer, &target, memory, stop)?;
        Ok(())
    })?;
    let merged = ObsMergeSummary {
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
    gatherer: &mut Gatherer<'_>,
    target: &Path,
    memory: &Memory,
    stop: &AtomicBool,
) -> Result<PassedOver> {
    let share = memory.share(databases.len());
    let mut readers: Vec<Rows> = databases
        .into_iter()
        .map(|database| database.rows_by_own_epd(&share))
        .collect::<Result<_>>()?;
    let sources = readers.iter_mut().map(|rows| {
        iter::from_fn(|| {
            let row = rows.next_unless(stop)?;
            Some(row.map(ByMove))
        })
    });
    let mut position: Vec<Row> = Vec::new();
    for row in Merge::of_long(sources, ByMove::text_bytes) {
        let ByMove(row) = row?;
        match position.last_mut() {
            Some(last) if last.epd == row.epd && last.mv == row.mv => {
                last.join(row);
                check(last, target)?;
                continue;
            }
            Some(last) if last.epd != row.epd => take_position(&mut position, gatherer)?,
            _ => {}
        }
        position.push(row);
    }
    take_position(&mut position, gatherer)?;
    let mut passed_over = PassedOver::default();
    for rows in &readers {
        passed_over.add(rows.passed_over().clone());
    }
    Ok(passed_over)
}

/// Hands over the rows of a position in the order of their games.
fn take_position(rows: &mut Vec<Row>, gatherer: &mut Gatherer<'_>) -> Result<()> {
    rows.sort_by(Row::by_games);
    for row in rows.drain(..) {
        let comment = row.comment.as_deref();
        gatherer.take(&row.epd, &row.mv, row.active, row.stats, comment)?;
    }
    Ok(())
}

/// Refuses a sum that no database can have.
fn check(row: &Row, target: &Path) -> Result<()> {
    let largest = row.stats.wins.max(row.stats.draws).max(row.stats.losses);
    if largest <= MOST_GAMES as u64 {
        return Ok(());
    }
    let impossible = ObsError::ImpossibleGames {
        epd: row.epd.clone(),
        mv: row.mv.clone(),
        games: largest as i64,
    };
    Err(impossible.at(target))
}

/// A row that compares by its position and move.
struct ByMove(Row);

impl ByMove {
    fn text_bytes(&self) -> usize {
        let ByMove(row) = self;
        row.epd.len() + row.mv.len() + row.comment.as_ref().map_or(0, String::len)
    }
}

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
