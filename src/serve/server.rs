//! The server: its configuration, its start and its shutdown.
//!
//! While an index is being built, an [`Indexing`] server serves the page and the progress. It asks clients to retry
//! all other requests later.

use std::{
    fmt,
    net::{SocketAddr, TcpListener},
    sync::{Arc, mpsc::Receiver},
    thread,
    time::Duration,
};

use axum::{
    Router,
    http::{HeaderName, header},
    response::{IntoResponse, Response},
    routing::get,
};
use serde_json::{Value, json};
use tokio::{
    runtime::Builder,
    sync::{Semaphore, watch},
    time::timeout,
};

use super::{
    BookFile, Refusal, ServedRepertoire,
    guard::{Guard, Hosts, Origin},
    http::{self, Site, Stop, Threads},
    log::{LAST_LINES, Log, Logging},
    routes::{routes, with_page},
    state::AppState,
};
use crate::{
    error::{At, Result},
    evals::Evals,
    explorer::Explorer,
};

/// The maximum time for which a shutdown waits for a book that is being made.
const LAST_BOOK: Duration = Duration::from_secs(2);

/// The configuration of a web server for the explorer: the games, the books and the options.
pub struct Server {
    /// The explorer that answers queries about the games.
    pub explorer: Explorer,
    /// The books whose moves the web page shows next to the results of games.
    pub books: Vec<BookFile>,
    /// The repertoires whose moves and gaps the web page shows.
    pub repertoires: Vec<ServedRepertoire>,
    /// The names of the user in the games. On the web page, the user can choose other names.
    pub me: Vec<String>,
    /// Evaluations of positions, which are added to the responses about positions.
    pub evals: Option<Evals>,
    /// The host names that requests may use, in addition to the server's address and `localhost`.
    pub hosts: Vec<String>,
    /// The origins whose pages may read the responses, in addition to the server's own page.
    pub origins: Vec<Origin>,
    /// The maximum number of games in the PGN files from which the server makes a book or repertoire.
    pub book_games: u64,
    /// The number of threads that answer requests, or 0 for one per core.
    pub threads: usize,
    /// A function that is called for each answered request, on a separate thread. If it is too slow, some requests
    /// are not logged.
    pub log: Option<Log>,
}

impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Server").finish_non_exhaustive()
    }
}

impl Server {
    /// Starts the threads of the server. `listener` must already be bound to an address. No connections are accepted
    /// until [`run`](Listening::run) is called.
    ///
    /// # Errors
    ///
    /// Returns an error if the operating system cannot use the listener or cannot start the threads.
    pub fn listen(self, listener: TcpListener) -> Result<Listening> {
        let threads = match self.threads {
            0 => thread::available_parallelism().map_or(1, usize::from),
            threads => threads,
        };
        let books = (self.books, self.repertoires, self.evals, self.me);
        let (reading, names) = watch::channel(());
        let state = AppState::new(self.explorer, books, threads, self.book_games, names)?;
        let state = Arc::new(state);
        let routes = routes(Arc::clone(&state), &self.origins);
        let allowed = (self.hosts, self.origins);
        let mut listening = listening(listener, allowed, routes, self.log, threads)?;
        listening.makers = Some(Arc::clone(&state.makers.permits));
        // Requests for suggestions wait until the names are read. If an index cannot be read, the answers to these
        // requests say so.
        let thread = thread::Builder::new().name("names".to_owned());
        let warm_up = thread.spawn(move || {
            let _reading = reading;
            state.explorer.warm_up()
        });
        warm_up.at("names", "start a thread for")?;
        Ok(listening)
    }
}

/// Starts the threads of a server that answers requests with `routes`. `listener` must already be bound to an address.
/// `allowed` are the host names that requests may use, and `origins` are the origins whose pages may read the
/// responses. `log` is called for each request. `threads` is the number of threads that serve connections.
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

/// A server whose threads are already running. It accepts connections as soon as [`run`](Listening::run) is called.
#[derive(Debug)]
pub struct Listening {
    listener: TcpListener,
    address: SocketAddr,
    threads: Threads,
    /// A receiver that is disconnected as soon as all requests are logged. `None` if the server has no log.
    last_lines: Option<Receiver<()>>,
    /// The semaphore for making books. If all of its permits are available, no book is being made.
    makers: Option<Arc<Semaphore>>,
}

impl Listening {
    /// Returns the address at which the server listens. For a listener that was bound to port 0, the address contains
    /// the port that the operating system chose.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Answers requests until `stop` is triggered. Then waits a short time for three kinds of unfinished work: requests
    /// that are being answered, a book that is being made, and the last entries of the log.
    ///
    /// # Errors
    ///
    /// Returns an error if the server cannot wait for connections.
    pub fn run(self, stop: &Stop) -> Result<()> {
        let runtime = Builder::new_current_thread().enable_all().build();
        let runtime = runtime.at("connections", "wait for")?;
        let served = runtime.block_on(http::serve(self.listener, &self.threads, stop));
        // When the threads end, the requests for books are dropped, which cancels their work. The work then removes
        // its files.
        drop(self.threads);
        if let Some(makers) = self.makers {
            // If the work takes longer, it ends when the program exits.
            let _ = runtime.block_on(async { timeout(LAST_BOOK, makers.acquire()).await });
        }
        if let Some(last_lines) = self.last_lines {
            // An error needs no handling: either the log is complete, or writing it takes too long.
            let _ = last_lines.recv_timeout(LAST_LINES);
        }
        served.at(self.address.to_string(), "serve at")
    }
}

/// The header `Retry-After`, which tells a client after how many seconds it may send the request again.
const RETRY: [(HeaderName, &str); 1] = [(header::RETRY_AFTER, "1")];

/// The progress of building an index.
#[derive(Copy, Clone, Debug, Default)]
pub struct IndexProgress {
    /// The number of bytes of games that were read so far.
    pub read: u64,
    /// The number of bytes of games in total, or `None` if it is unknown.
    pub of: Option<u64>,
    /// The finished fraction of the whole work, from 0 to 1, or `None` if it is unknown. After all games are read,
    /// the index still has to be written.
    pub done: Option<f64>,
}

/// A function that returns the progress of building an index.
pub type ProgressFn = Arc<dyn Fn() -> IndexProgress + Send + Sync>;

/// A temporary server that shows the progress of an index that is still being built. When the index is complete, stop
/// this server, and start a [`Server`] on the same listener.
pub struct Indexing {
    /// The names of the sources that are being indexed.
    pub sources: Vec<String>,
    /// A function that returns the current progress.
    pub how_far: ProgressFn,
    /// The host names that requests may use, in addition to the server's address and `localhost`.
    pub hosts: Vec<String>,
    /// The origins whose pages may read the responses, in addition to the server's own page.
    pub origins: Vec<Origin>,
}

impl std::fmt::Debug for Indexing {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Indexing").finish_non_exhaustive()
    }
}

impl Indexing {
    /// Starts the threads of the server. `listener` must already be bound to an address. No connections are accepted
    /// until [`run`](Listening::run) is called.
    ///
    /// # Errors
    ///
    /// Returns an error if the operating system cannot use the listener or cannot start the threads.
    pub fn listen(self, listener: TcpListener) -> Result<Listening> {
        let (sources, how_far) = (self.sources, self.how_far);
        let about = move || {
            let about = about(&sources, how_far());
            let json = [(header::CONTENT_TYPE, "application/json")];
            std::future::ready((json, about.to_string()))
        };
        let api = Router::new().route("/about", get(about));
        let routes = with_page(api.fallback(async || not_yet()), &self.origins);
        listening(listener, (self.hosts, self.origins), routes, None, 1)
    }
}

/// Returns the JSON document for `/about` while an index is being built. It describes the server, the names of its
/// `sources`, and the progress of the index.
fn about(sources: &[String], progress: IndexProgress) -> Value {
    let sources = sources
        .iter()
        .map(|name| json!({"name": name, "games": 0, "files": []}));
    json!({
        "version": env!("CARGO_PKG_VERSION"),
        "games": 0,
        "positions": 0,
        "years": null,
        "sources": sources.collect::<Vec<_>>(),
        "books": [],
        "indexing": {"read": progress.read, "of": progress.of, "done": progress.done},
    })
}

/// Creates the response to a request that the server cannot answer until the index is complete. The response asks the
/// client to try again later.
fn not_yet() -> Response {
    let refusal =
        Refusal::unavailable("the server is still making the index of the games: try again later");
    (RETRY, refusal).into_response()
}
