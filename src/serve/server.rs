//! The server: its games and books, its address, and its end.

use std::{
    fmt,
    net::{SocketAddr, TcpListener},
    sync::{Arc, mpsc::Receiver},
    thread,
    time::Duration,
};

use axum::Router;
use tokio::{
    runtime::Builder,
    sync::{Semaphore, watch},
    time::timeout,
};

use super::{
    BookFile, ServedRepertoire,
    guard::{Guard, Hosts, Origin},
    http::{self, Site, Threads},
    log::{LAST_LINES, Log, Logging},
    routes::routes,
    state::AppState,
};
use crate::{
    error::{At, Result},
    evals::Evals,
    explorer::Explorer,
};

/// How long a run that makes a book may take to end with the server.
const LAST_BOOK: Duration = Duration::from_secs(2);

/// An explorer and books that are to be served.
pub struct Server {
    /// The games.
    pub explorer: Explorer,
    /// Books whose moves are shown next to the counts.
    pub books: Vec<BookFile>,
    /// Repertoires whose moves and gaps are shown.
    pub repertoires: Vec<ServedRepertoire>,
    /// Evaluations that are in the answers about a position.
    pub evals: Option<Evals>,
    /// Hosts that requests may name, besides the listening address and `localhost`.
    pub hosts: Vec<String>,
    /// Origins whose pages may read the answers, besides the server's own.
    pub origins: Vec<Origin>,
    /// The most games that the sources may have for books to be made of them.
    pub book_games: u64,
    /// Threads that answer; 0 is one per core.
    pub threads: usize,
    /// Called for every request that was answered, on a thread of its own. When it is too slow, it misses some.
    pub log: Option<Log>,
}

impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Server").finish_non_exhaustive()
    }
}

impl Server {
    /// Takes a listener that is bound already.
    ///
    /// # Errors
    ///
    /// A listener that the system does not know, and a system that gives no threads.
    pub fn listen(self, listener: TcpListener) -> Result<Listening> {
        let threads = match self.threads {
            0 => thread::available_parallelism().map_or(1, usize::from),
            threads => threads,
        };
        let books = (self.books, self.repertoires, self.evals);
        let (reading, names) = watch::channel(());
        let state = AppState::new(self.explorer, books, threads, self.book_games, names)?;
        let state = Arc::new(state);
        let routes = routes(Arc::clone(&state), &self.origins);
        let allowed = (self.hosts, self.origins);
        let mut listening = listening(listener, allowed, routes, self.log, threads)?;
        listening.makers = Some(Arc::clone(&state.makers.permits));
        // Who asks before that waits, and an index that cannot be read says so to who asks.
        let thread = thread::Builder::new().name("names".to_owned());
        let warm_up = thread.spawn(move || {
            let _reading = reading;
            state.explorer.warm_up()
        });
        warm_up.at("names", "start a thread for")?;
        Ok(listening)
    }
}

/// Answers by these routes at a listener.
pub(super) fn listening(
    listener: TcpListener,
    (allowed, origins): (Vec<String>, Vec<Origin>),
    routes: Router,
    log: Option<Log>,
    threads: usize,
) -> Result<Listening> {
    let address = listener
        .set_nonblocking(true)
        .and_then(|()| listener.local_addr());
    let address = address.at("the listener", "use")?;
    let log = log.map(Logging::start).transpose();
    let (log, last_lines) = log.at("the log", "start a thread for")?.unzip();
    let site = Site {
        guard: Guard {
            hosts: Hosts {
                listening: address.ip(),
                allowed,
            },
            origins,
        },
        routes,
        log,
    };
    let threads = http::start(threads, &site).at("connections", "start threads for")?;
    Ok(Listening {
        listener,
        address,
        threads,
        last_lines,
        makers: None,
    })
}

/// A server that has its address and its threads.
#[derive(Debug)]
pub struct Listening {
    listener: TcpListener,
    address: SocketAddr,
    threads: Threads,
    /// Disconnected when all that was logged is written.
    last_lines: Option<Receiver<()>>,
    /// All are there when no book is being made.
    makers: Option<Arc<Semaphore>>,
}

impl Listening {
    /// The address, with the port that was found free.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Answers requests until `stop` says so, and then those that are under way, for half a second at most.
    ///
    /// # Errors
    ///
    /// A listener that the system does not know.
    pub fn run(self, stop: &Stop) -> Result<()> {
        let runtime = Builder::new_current_thread().enable_all().build();
        let runtime = runtime.at("connections", "wait for")?;
        let served = runtime.block_on(http::serve(self.listener, &self.threads, stop));
        // The requests for books go with them, which ends the run and removes its files.
        drop(self.threads);
        if let Some(makers) = self.makers {
            // A run that takes longer ends with the program.
            let _ = runtime.block_on(async { timeout(LAST_BOOK, makers.acquire()).await });
        }
        if let Some(last_lines) = self.last_lines {
            // Both are an error: the thread has ended, or nobody reads the log.
            let _ = last_lines.recv_timeout(LAST_LINES);
        }
        served.at(self.address.to_string(), "serve at")
    }
}

/// Ends a server from another thread.
///
/// ```
/// let stop = polybook::serve::Stop::default();
/// let other = stop.clone();
/// std::thread::spawn(move || other.stop());
/// ```
#[derive(Clone, Debug)]
pub struct Stop(watch::Sender<bool>);

impl Default for Stop {
    fn default() -> Stop {
        Stop(watch::Sender::new(false))
    }
}

impl Stop {
    /// Takes no more requests. Returns at once.
    pub fn stop(&self) {
        self.0.send_replace(true);
    }

    pub(super) async fn stopped(&self) {
        // The channel is open as long as `self` is there.
        let _ = self.0.subscribe().wait_for(|stopped| *stopped).await;
    }
}
