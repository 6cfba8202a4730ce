//! What a server reports to a log, on a thread of its own: an answer must not wait for the reader of a log.

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

/// How many requests may wait for a log that is slow. Those beyond are counted and left out.
const WAITING: usize = 1024;

/// How long the end waits for the last lines.
pub(super) const LAST_LINES: Duration = Duration::from_millis(200);

/// A request that was answered, for a log.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Served {
    /// `GET`, `HEAD`, ...
    pub method: String,
    /// The path and the query.
    pub path: String,
    /// The status of the answer.
    pub status: u16,
    /// How long the answer took.
    pub time: Duration,
    /// How many requests before this one are not in the log, because it was too slow.
    pub left_out: u64,
}

/// Takes note of requests.
pub type Log = Box<dyn Fn(&Served) + Send>;

/// Hands requests to the thread of the log.
#[derive(Clone, Debug)]
pub(super) struct Logging {
    waiting: SyncSender<Served>,
    left_out: Arc<AtomicU64>,
}

impl Logging {
    /// Starts the thread. The receiver is disconnected when the thread ends.
    pub(super) fn start(log: Log) -> io::Result<(Logging, Receiver<()>)> {
        let (waiting, requests) = mpsc::sync_channel(WAITING);
        let (ended, end) = mpsc::channel();
        thread::Builder::new()
            .name("log".to_owned())
            .spawn(move || {
                // Dropped when the thread ends, in whatever way.
                let _ended: mpsc::Sender<()> = ended;
                requests.iter().for_each(|served| log(&served));
            })?;
        let left_out = Arc::default();
        Ok((Logging { waiting, left_out }, end))
    }

    /// Notes a request if the log has room. Never waits.
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
    fn a_log_that_is_not_read_leaves_requests_out_and_says_how_many() {
        let (go_on, waits) = mpsc::channel::<()>();
        let waits = std::sync::Mutex::new(waits);
        let (line, lines) = mpsc::channel();
        let log = move |served: &Served| {
            // An error: the test has let it go on.
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
        const SENT: usize = 3 * WAITING;
        (0..SENT).for_each(|number| logging.note(served(number)));
        drop(go_on);
        let mut logged: Vec<Served> = (0..WAITING).map(|_| lines.recv().unwrap()).collect();
        logging.note(served(SENT));
        drop(logging);
        last.recv_timeout(LAST_LINES).unwrap_err();
        logged.extend(lines.try_iter());
        let left_out: u64 = logged.iter().map(|served| served.left_out).sum();
        assert_eq!(logged.len() as u64 + left_out, SENT as u64 + 1);
        assert!(logged.last().unwrap().left_out > 0);
    }
}
