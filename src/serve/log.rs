//! Logs requests on a separate thread, so that requests never wait until the log is written.

use std::{
    io,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
        mpsc::{self, Receiver, SyncSender, TrySendError},
    },
    thread,
    time::Duration,
};

/// The maximum number of requests in the queue of the log. If the queue is full, further requests are counted but not
/// logged.
const QUEUE_LENGTH: usize = 1024;

/// The maximum time for which a shutdown waits until the last requests are logged.
pub(super) const LAST_LINES: Duration = Duration::from_millis(200);

/// An entry of the server's log: a request and the status of its response.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Served {
    /// The method of the request, such as `GET` or `HEAD`.
    pub method: String,
    /// The path and the query string of the request.
    pub path: String,
    /// The HTTP status of the response.
    pub status: u16,
    /// The time from the arrival of the request until the response was ready.
    pub time: Duration,
    /// The number of requests before this one that are not in the log, because its queue was full.
    pub left_out: u64,
}

/// A function that writes one entry of the server's log.
pub type Log = Box<dyn Fn(&Served) + Send>;

/// The sending end of the queue of the log. A separate thread receives the entries and writes them. The length of the
/// queue is limited. Entries for which the queue has no space are counted but not written.
#[derive(Clone, Debug)]
pub(super) struct Logging {
    waiting: SyncSender<Served>,
    left_out: Arc<AtomicU64>,
}

impl Logging {
    /// Starts a thread that calls `log` for each logged request. Returns the sending end of the thread's queue, and a
    /// receiver that is disconnected as soon as the thread has ended.
    pub(super) fn start(log: Log) -> io::Result<(Logging, Receiver<()>)> {
        let (waiting, requests) = mpsc::sync_channel(QUEUE_LENGTH);
        let (ended, end) = mpsc::channel();
        thread::Builder::new()
            .name("log".to_owned())
            .spawn(move || {
                // This sender is dropped when the thread ends, even by a panic.
                let _ended: mpsc::Sender<()> = ended;
                requests.iter().for_each(|served| log(&served));
            })?;
        let left_out = Arc::default();
        Ok((Logging { waiting, left_out }, end))
    }

    /// Adds a request to the queue of the log. Never blocks. If the queue is full, the request is only counted.
    pub(super) fn note(&self, mut served: Served) {
        served.left_out = self.left_out.swap(0, Ordering::Relaxed);
        let noted = self.waiting.try_send(served);
        if let Err(TrySendError::Full(served) | TrySendError::Disconnected(served)) = noted {
            self.left_out
                .fetch_add(served.left_out + 1, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slow_log_leaves_requests_out_and_counts_them() {
        let (go_on, waits) = mpsc::channel::<()>();
        let waits = std::sync::Mutex::new(waits);
        let (line, lines) = mpsc::channel();
        let log = move |served: &Served| {
            // An error means that the test has let the log continue.
            let _ = waits.lock().unwrap().recv();
            line.send(served.clone()).unwrap();
        };
        let (logging, last) = Logging::start(Box::new(log)).unwrap();
        let served = |number: usize| Served {
            method: "GET".to_owned(),
            path: format!("/{number}"),
            status: 200,
            time: Duration::ZERO,
            left_out: 0,
        };
        const SENT: usize = 3 * QUEUE_LENGTH;
        (0..SENT).for_each(|number| logging.note(served(number)));
        drop(go_on);
        let mut logged: Vec<Served> = (0..QUEUE_LENGTH).map(|_| lines.recv().unwrap()).collect();
        logging.note(served(SENT));
        drop(logging);
        last.recv_timeout(LAST_LINES).unwrap_err();
        logged.extend(lines.try_iter());
        let left_out: u64 = logged.iter().map(|served| served.left_out).sum();
        assert_eq!(logged.len() as u64 + left_out, SENT as u64 + 1);
        assert!(logged.last().unwrap().left_out > 0);
    }
}
