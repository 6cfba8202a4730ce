//! An iterator over rows that reads ahead in a thread.

use std::{
    fmt,
    iter::FusedIterator,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, atomic::AtomicBool},
    thread::{self, JoinHandle},
    time::Duration,
    vec,
};

use rusqlite::InterruptHandle;

use super::{
    connection::Lent,
    error::{ObsError, Sql},
    info::ChecksumCheck,
    row::{ObsRow, PassedOver},
    source::read_row,
};
use crate::{
    error::Result,
    task::{self, Feed, Feeder},
};

/// The maximum number of rows in a chunk, and the number of bytes at which a chunk is full.
const CHUNK_ROWS: usize = 1 << 10;
const CHUNK_BYTES: usize = 1 << 17;

/// The maximum number of chunks that are read ahead.
const AHEAD: usize = 2;

/// An iterator over the rows of a database.
///
/// A thread with a connection of its own reads the rows ahead. The thread ends when the iterator is dropped. After an error the
/// iterator returns `None`. If a checksum does not match, the iterator returns an error after the last row.
pub struct Rows {
    ready: vec::IntoIter<ObsRow>,
    passed_over: PassedOver,
    /// The chunks from the thread. `None` at the end.
    chunks: Option<Feed<Chunk>>,
    reader: Option<JoinHandle<()>>,
    interrupt: InterruptHandle,
    /// The connection of the thread. It returns to the pool after the thread ended, so that its next user is not interrupted.
    db: Option<Arc<Mutex<Lent>>>,
}

/// Rows that are sent together.
#[derive(Default, Debug)]
struct Chunk {
    rows: Vec<ObsRow>,
    bytes: usize,
    passed_over: PassedOver,
}

impl Chunk {
    fn push(&mut self, row: ObsRow) {
        self.bytes += row.bytes();
        self.rows.push(row);
    }

    fn is_full(&self) -> bool {
        self.rows.len() >= CHUNK_ROWS || self.bytes >= CHUNK_BYTES
    }
}

impl Rows {
    /// Starts a thread that reads the rows of a query.
    pub(super) fn of_query(db: Lent, query: String, path: PathBuf) -> Result<Rows> {
        let interrupt = db.get_interrupt_handle();
        let db = Arc::new(Mutex::new(db));
        let of_thread = Arc::clone(&db);
        let (chunks, reader) = task::start("rows", AHEAD, move |chunks| {
            let db = task::lock(&of_thread);
            read(&db, &query, &path, chunks)
        })?;
        Ok(Rows {
            ready: Vec::new().into_iter(),
            passed_over: PassedOver::default(),
            chunks: Some(chunks),
            reader: Some(reader),
            interrupt,
            db: Some(db),
        })
    }

    /// Returns the malformed rows that have been skipped so far: rows whose EPD, move or numbers cannot be read.
    pub fn passed_over(&self) -> &PassedOver {
        &self.passed_over
    }

    /// Returns the next row, [`Error::Interrupted`] if `stop` is set, or `None` at the end.
    pub(super) fn next_unless(&mut self, stop: &AtomicBool) -> Option<Result<ObsRow>> {
        loop {
            if let Some(row) = self.ready.next() {
                return Some(Ok(row));
            }
            match self.chunks.as_mut()?.next(&[stop]) {
                Ok(Some(chunk)) => {
                    self.ready = chunk.rows.into_iter();
                    self.passed_over.add(chunk.passed_over);
                }
                last => {
                    self.end();
                    return last.err().map(Err);
                }
            }
        }
    }

    /// Interrupts the thread and waits for it to end.
    fn end(&mut self) {
        self.ready = Vec::new().into_iter();
        self.chunks = None;
        let Some(reader) = self.reader.take() else {
            return;
        };
        // Sorting takes long. An interrupt before the query begins has no effect, so it is repeated.
        while !reader.is_finished() {
            self.interrupt.interrupt();
            thread::sleep(Duration::from_millis(1));
        }
        // The thread already sent its result.
        let _ = reader.join();
        self.db = None;
    }
}

impl Iterator for Rows {
    type Item = Result<ObsRow>;

    #[inline]
    fn next(&mut self) -> Option<Result<ObsRow>> {
        match self.ready.next() {
            Some(row) => Some(Ok(row)),
            None => self.next_unless(&AtomicBool::new(false)),
        }
    }
}

impl FusedIterator for Rows {}

impl fmt::Debug for Rows {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Rows")
            .field("passed_over", &self.passed_over)
            .finish_non_exhaustive()
    }
}

impl Drop for Rows {
    fn drop(&mut self) {
        self.end();
    }
}

/// Sends all rows of a query to `chunks`, until the receiver is dropped.
///
/// If the checksum of the database does not match its rows, an error follows the last row, so that nothing is made from them.
fn read(db: &Lent, query: &str, path: &Path, chunks: &Feeder<Chunk>) -> Result<()> {
    let mut check = ChecksumCheck::of(db).sql(path, "read")?;
    let mut statement = db.prepare(query).sql(path, "read")?;
    let mut rows = statement.query([]).sql(path, "read")?;
    let mut chunk = Chunk::default();
    while let Some(row) = rows.next().sql(path, "read")? {
        check
            .as_mut()
            .map_or(Ok(()), |check| check.add(row))
            .sql(path, "read")?;
        match read_row(row).sql(path, "read")? {
            Ok(row) => chunk.push(row),
            Err(ObsError::MalformedRow(problem)) => chunk.passed_over.problem(problem),
            Err(err) => return Err(err.at(path)),
        }
        if chunk.is_full() {
            task::fault("rows");
            chunks.send(std::mem::take(&mut chunk))?;
        }
    }
    task::fault("last rows");
    chunks.send(chunk)?;
    match check.is_none_or(|check| check.matches()) {
        true => Ok(()),
        false => Err(ObsError::Checksum.at(path)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::obs::connection::Connections;

    #[test]
    fn a_connection_goes_back_when_it_can_no_longer_be_interrupted() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.db3");
        let db = rusqlite::Connection::open(&path).unwrap();
        db.execute_batch("CREATE TABLE Book (x)").unwrap();
        let connections = Connections::open(&path).unwrap();
        let query = "SELECT 'an EPD', 'e2e4', 1, 1, 0, 0, NULL".to_owned();
        let rows = Rows::of_query(connections.lend().unwrap(), query, path).unwrap();
        while !rows.reader.as_ref().unwrap().is_finished() {
            thread::sleep(Duration::from_millis(1));
        }
        assert_eq!(connections.idle(), 1);
        assert_eq!(rows.map(Result::unwrap).count(), 1);
        assert_eq!(connections.idle(), 2);
    }
}
