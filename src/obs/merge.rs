//! Adding up databases.

use std::{path::Path, sync::atomic::AtomicBool, sync::mpsc::sync_channel};

use super::{
    info::Info,
    read::{Obs, Row},
    write::{BookTable, Columns, NewRow, ObsWriter},
};
use crate::{
    error::{Error, Result},
    output::Finished,
};

/// Rows that wait to be merged, from each database.
const AHEAD: usize = 1 << 12;

/// Makes a database of several: a move of a position has the games of all of them. Whether it is to be
/// played, and what is said of it, comes from the first that knows it.
///
/// Answers how many rows there are, and the database, which is not in place yet. From databases that hold every move (`--min-game 1`) this is
/// exactly the database of all the games; [`Info::selection`] of each tells.
///
/// # Errors
///
/// Databases of different variants, one that cannot be read, or a file that cannot be written; there
/// is none then.
pub fn merge_databases(inputs: &[impl AsRef<Path>], out: ObsWriter) -> Result<(u64, Finished)> {
    let mut databases = Vec::with_capacity(inputs.len());
    for path in inputs {
        databases.push(Obs::open(path)?);
    }
    let mut info: Option<Info> = None;
    for database in &databases {
        match &mut info {
            None => info = Some(database.info().clone()),
            Some(info) if info.variant == database.info().variant => info.join(database.info()),
            Some(info) => {
                return Err(Error::file(
                    database.path(),
                    format!(
                        "is for {}, and the others are for {}: merge databases of one variant",
                        database.info().variant,
                        info.variant
                    ),
                ));
            }
        }
    }
    let Some(info) = info else {
        return Err(Error::file(out.target(), "no input databases"));
    };
    let size = inputs
        .iter()
        .filter_map(|path| path.as_ref().metadata().ok())
        .map(|metadata| metadata.len())
        .sum();
    let never = AtomicBool::new(false);
    out.insert_all(&info, Columns::All, size, &never, |table| {
        merge_rows(databases, table)
    })
}

fn merge_rows(databases: Vec<Obs>, table: &mut BookTable<'_>) -> Result<()> {
    std::thread::scope(|scope| {
        // SQLite calls us with its rows; from several at a time they can only be asked for if each
        // database is read by a thread of its own.
        let mut sources = Vec::with_capacity(databases.len());
        let mut readers = Vec::with_capacity(databases.len());
        for database in databases {
            let (sender, rows) = sync_channel::<Row>(AHEAD);
            readers.push(scope.spawn(move || {
                database.for_each_by_epd(|row| sender.send(row).map_err(|_| Error::Interrupted))
            }));
            let mut rows = rows.into_iter();
            sources.push((rows.next(), rows));
        }
        let (mut position, mut ready): (Vec<Row>, Vec<Row>) = (Vec::new(), Vec::new());
        let mut merged = Ok(());
        while merged.is_ok() {
            let heads = sources.iter().filter_map(|(head, _)| head.as_ref());
            let Some(epd) = heads.map(|row| &row.epd).min().cloned() else {
                break;
            };
            for (head, rest) in &mut sources {
                while let Some(row) = head.take_if(|row| row.epd == epd) {
                    add(&mut position, row);
                    *head = rest.next();
                }
            }
            position.sort_by(Row::by_games);
            ready.append(&mut position);
            if ready.len() >= AHEAD {
                merged = insert(&mut ready, table);
            }
        }
        merged = merged.and_then(|()| insert(&mut ready, table));
        // Whoever still reads is to stop.
        drop(sources);
        for reader in readers {
            let read = reader
                .join()
                .unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            merged = merged.and(read);
        }
        merged
    })
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

/// Adds a row to those of its position.
fn add(position: &mut Vec<Row>, row: Row) {
    match position.iter_mut().find(|known| known.mv == row.mv) {
        Some(known) => {
            known.stats += row.stats;
            known.comment = known.comment.take().or(row.comment);
        }
        None => position.push(row),
    }
}
