//! Rows that are read ahead.

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
    row::{PassedOver, Row},
    source::read_row,
};
use crate::{
    error::Result,
    task::{self, Feed, Feeder},
};

/// Rows that are handed over at once, and how many bytes of them.
const CHUNK_ROWS: usize = 1 << 10;
const CHUNK_BYTES: usize = 1 << 17;

/// Chunks that are read ahead.
const AHEAD: usize = 2;

/// Rows of a database. A thread with a connection of its own reads them ahead; it ends when the iterator is
/// dropped. After an error the iterator is at its end, and a checksum that differs is an error after the last row.
pub struct Rows {
    ready: vec::IntoIter<Row>,
    passed_over: PassedOver,
    /// `None` at the end.
    chunks: Option<Feed<Chunk>>,
    reader: Option<JoinHandle<()>>,
    interrupt: InterruptHandle,
    /// Goes back only when the thread has ended: the next borrower must not be interrupted.
    db: Option<Arc<Mutex<Lent>>>,
}

/// Rows that are handed over at once.
#[derive(Default, Debug)]
struct Chunk {
    rows: Vec<Row>,
    bytes: usize,
    passed_over: PassedOver,
}

impl Chunk {
    fn push(&mut self, row: Row) {
        self.bytes += row.bytes();
        self.rows.push(row);
    }

    fn is_full(&self) -> bool {
        self.rows.len() >= CHUNK_ROWS || self.bytes >= CHUNK_BYTES
    }
}

impl Rows {
    /// Reads the rows of a query.
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

    /// Rows before the next one that make no sense: their EPD, move or numbers cannot be read.
    pub fn passed_over(&self) -> &PassedOver {
        &self.passed_over
    }

    /// The next row, or [`Error::Interrupted`] when `stop` is set.
    pub(super) fn next_unless(&mut self, stop: &AtomicBool) -> Option<Result<Row>> {
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

    /// Ends the thread.
    fn end(&mut self) {
        self.ready = Vec::new().into_iter();
        self.chunks = None;
        let Some(reader) = self.reader.take() else {
            return;
        };
        // Sorting takes long, and an interrupt before it begins has no effect.
        while !reader.is_finished() {
            self.interrupt.interrupt();
            thread::sleep(Duration::from_millis(1));
        }
        // Its last word was its result.
        let _ = reader.join();
        self.db = None;
    }
}

impl Iterator for Rows {
    type Item = Result<Row>;

    #[inline]
    fn next(&mut self) -> Option<Result<Row>> {
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

/// Sends all rows of a query, until the receiver is gone. If the database has a checksum that is not that of the rows, an
/// error follows the last: nothing right can be made of them.
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
