//! The server: its configuration, its listener and its shutdown.
//!
//! While an index is being made, [`Indexing`] serves the page and the progress, and asks clients to retry all other
//! requests later.

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
    page,
    routes::routes,
    state::AppState,
};
use crate::{
    error::{At, Result},
    evals::Evals,
    explorer::Explorer,
};

/// The maximum time that a shutdown waits for a book that is still being made.
const LAST_BOOK: Duration = Duration::from_secs(2);

/// The configuration of an HTTP server for the explorer: the games, the books and the options.
pub struct Server {
    /// The explorer, which answers queries about the games.
    pub explorer: Explorer,
    /// Books whose moves the page shows next to the counts.
    pub books: Vec<BookFile>,
    /// Repertoires whose moves and gaps the page shows.
    pub repertoires: Vec<ServedRepertoire>,
    /// The names of the user in the games, until the user chooses other ones on the page.
    pub me: Vec<String>,
    /// Evaluations, which are added to answers about a position.
    pub evals: Option<Evals>,
    /// Host names that requests may use, in addition to the listening address and `localhost`.
    pub hosts: Vec<String>,
    /// Origins whose pages may read the answers, in addition to the server's own page.
    pub origins: Vec<Origin>,
    /// The maximum number of games in the sources for which the server makes books.
    pub book_games: u64,
    /// The number of threads that answer requests, or 0 for one per core.
    pub threads: usize,
    /// Called for every answered request, on a separate thread. If it is too slow, some requests are left out.
    pub log: Option<Log>,
}

impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Server").finish_non_exhaustive()
    }
}

impl Server {
    /// Starts the threads of the server. `listener` must already be bound; connections are accepted only when
    /// [`run`](Listening::run) is called.
    ///
    /// # Errors
    ///
    /// Returns an error if the operating system rejects the listener or cannot start the threads.
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
        // Requests for names wait until the names are read. If an index cannot be read, the answers to these requests
        // say so.
        let thread = thread::Builder::new().name("names".to_owned());
        let warm_up = thread.spawn(move || {
            let _reading = reading;
            state.explorer.warm_up()
        });
        warm_up.at("names", "start a thread for")?;
        Ok(listening)
    }
}

/// Starts a server with the routes `routes` on a bound listener. `allowed` are the host names that requests may use,
/// and `origins` are the origins whose pages may read the answers. `log` is called for each request. `threads` is the
/// number of threads that serve connections.
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

/// A server that has a bound listener and running threads, but does not accept connections yet.
#[derive(Debug)]
pub struct Listening {
    listener: TcpListener,
    address: SocketAddr,
    threads: Threads,
    /// Disconnected as soon as all logged requests are written.
    last_lines: Option<Receiver<()>>,
    /// The permits for making books. All are available when no book is being made.
    makers: Option<Arc<Semaphore>>,
}

impl Listening {
    /// Returns the address at which the server listens. If port 0 was requested, the address contains the port that the
    /// operating system chose.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Answers requests until `stop` is triggered. Then waits a short time for requests that are still being answered,
    /// and for a book that is being made.
    ///
    ///
    /// # Errors
    ///
    /// Returns an error if waiting for connections fails.
    pub fn run(self, stop: &Stop) -> Result<()> {
        let runtime = Builder::new_current_thread().enable_all().build();
        let runtime = runtime.at("connections", "wait for")?;
        let served = runtime.block_on(http::serve(self.listener, &self.threads, stop));
        // Dropping the threads cancels the requests for books, so their jobs stop and remove their files.
        drop(self.threads);
        if let Some(makers) = self.makers {
            // A job that takes longer ends when the program exits.
            let _ = runtime.block_on(async { timeout(LAST_BOOK, makers.acquire()).await });
        }
        if let Some(last_lines) = self.last_lines {
            // Errors need no handling: either the log thread has ended, or the reader of the log is too slow.
            let _ = last_lines.recv_timeout(LAST_LINES);
        }
        served.at(self.address.to_string(), "serve at")
    }
}

/// The response header that tells a client to retry, with the number of seconds to wait.
const RETRY: [(HeaderName, &str); 1] = [(header::RETRY_AFTER, "1")];

/// The progress of building an index.
#[derive(Copy, Clone, Debug, Default)]
pub struct IndexProgress {
    /// The number of bytes of games read so far.
    pub read: u64,
    /// The total number of bytes of games, if it is known.
    pub of: Option<u64>,
    /// The completed part of the whole work, from 0 to 1, if it is known. After all games are read, the index is
    /// written.
    pub done: Option<f64>,
}

/// A function that returns the progress of building an index.
pub type HowFar = Arc<dyn Fn() -> IndexProgress + Send + Sync>;

/// A temporary server for games that are still being indexed, which shows the progress. When the index is complete,
/// stop this server and serve the games on the same listener.
pub struct Indexing {
    /// The names of the sources.
    pub sources: Vec<String>,
    /// The progress of the index.
    pub how_far: HowFar,
    /// Host names that requests may use, like [`Server::hosts`](super::Server::hosts).
    pub hosts: Vec<String>,
}

impl std::fmt::Debug for Indexing {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Indexing").finish_non_exhaustive()
    }
}

impl Indexing {
    /// Starts the threads of the server. `listener` must already be bound.
    ///
    /// # Errors
    ///
    /// Returns an error if the operating system rejects the listener or cannot start the threads.
    pub fn listen(self, listener: TcpListener) -> Result<Listening> {
        let (sources, how_far) = (self.sources, self.how_far);
        let about = move || {
            let about = about(&sources, how_far());
            let json = [(header::CONTENT_TYPE, "application/json")];
            std::future::ready((json, about.to_string()))
        };
        let routes = Router::new()
            .merge(page::routes())
            .route("/about", get(about))
            .fallback(async || not_yet());
        listening(listener, (self.hosts, Vec::new()), routes, None, 1)
    }
}

/// Returns the answer to `/about`, a description of the server, with the progress of the index.
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

/// Returns the answer to a request that cannot be answered before the index is complete.
fn not_yet() -> Response {
    let refusal =
        Refusal::unavailable("the server is still making the index of the games: try again later");
    (RETRY, refusal).into_response()
}
