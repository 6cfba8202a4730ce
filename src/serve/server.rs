//! Configures, starts and stops the server, accepts its connections, and writes its log. The number and the duration of
//! connections are limited. A separate thread writes the log, so that requests never wait for it.
//!
//! While an index is being built, an [`Indexing`] server serves the page and the progress. It asks clients to repeat
//! all other requests later.

use std::{
    convert::Infallible,
    fmt, io,
    net::{self, IpAddr, SocketAddr, TcpListener},
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
        mpsc::{self, Receiver, SyncSender, TrySendError},
    },
    thread,
    time::Duration,
};

use axum::{
    Router,
    body::Body,
    http::{HeaderName, StatusCode, header},
    response::{IntoResponse, Response},
    routing::get,
};
use hyper::{
    Request,
    server::conn::http1,
    service::{Service as _, service_fn},
};
use hyper_util::{
    rt::{TokioIo, TokioTimer},
    server::graceful::{GracefulConnection, GracefulShutdown, Watcher},
    service::TowerToHyperService,
};
use serde::Serialize;
use tokio::{
    net::TcpStream,
    runtime::Builder,
    sync::{
        mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel},
        watch,
    },
    time::{Instant, sleep, timeout},
};
use tokio_io_timeout::TimeoutStream;

use super::{
    BookFile, JSON, Refusal, ServedRepertoire,
    body::{is_body_refused, receive_body},
    client::{Client, Clients},
    content::CacheKey,
    guard::{Guard, Hosts, Origin},
    queue::{FairQueue, Visitor},
    refusal::as_json,
    routes::{routes, with_page},
    state::AppState,
    uploads::Uploads,
};
use crate::{
    error::{At, Result},
    explore::explorer::Explorer,
    formats::evals::Evals,
};

/// The maximum time for which a shutdown waits until a book that is being made is complete.
const LAST_BOOK: Duration = Duration::from_secs(2);

/// The configuration of a web server for the explorer: the games, the books and the options.
pub struct Server {
    /// The explorer that answers queries about the games.
    pub explorer: Explorer,
    /// The books whose moves the web page shows next to the results of games.
    pub books: Vec<BookFile>,
    /// The repertoires whose moves and gaps the web page shows.
    pub repertoires: Vec<ServedRepertoire>,
    /// The directory in which repertoires sent by visitors are stored, or `None` to keep such repertoires only until
    /// the server ends.
    pub repertoire_directory: Option<PathBuf>,
    /// The names under which the user appears in the games. On the web page, the user can choose other names.
    pub me: Vec<String>,
    /// Evaluations of positions, which are included in responses about positions.
    pub evals: Option<Evals>,
    /// The host names that requests may use, in addition to the server's address and `localhost`.
    pub hosts: Vec<String>,
    /// The origins whose pages may read the responses, in addition to the server's own page.
    pub origins: Vec<Origin>,
    /// The addresses of trusted proxies. For a request from such an address, the visitor is the last entry of the
    /// header `X-Forwarded-For`.
    pub proxies: Vec<IpAddr>,
    /// The maximum number of games in the PGN files from which a book or a repertoire may be made.
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
        let address = listener.local_addr().at("the listener", "use")?;
        let is_local = address.ip().is_loopback() && self.proxies.is_empty();
        let mut repertoires = self.repertoires;
        for served in &mut repertoires {
            // The answers of different visitors must not be recorded in one file.
            served.practise = is_local;
        }
        let uploads = Uploads::new(self.repertoire_directory, is_local);
        let books = (self.books, repertoires, self.evals, self.me);
        let (reading, names) = watch::channel(());
        let state = AppState::new(
            self.explorer,
            books,
            uploads,
            threads,
            self.book_games,
            names,
        )?;
        let state = Arc::new(state);
        let routes = routes(Arc::clone(&state), &self.origins);
        let allowed = (self.hosts, self.origins);
        let mut listening = listening(listener, allowed, routes, self.log, threads)?;
        listening.makers = Some(state.makers.queue.clone());
        listening.proxies = self.proxies;
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
    let threads =
        start_connection_threads(threads, &site).at("connections", "start threads for")?;
    Ok(Listening {
        listener,
        address,
        threads,
        last_lines,
        makers: None,
        proxies: Vec::new(),
    })
}

/// A server whose threads are already running, but which accepts connections only when [`run`](Listening::run) is
/// called.
pub struct Listening {
    listener: TcpListener,
    address: SocketAddr,
    threads: Threads,
    /// A receiver that is disconnected as soon as all requests have been logged. `None` if the server has no log.
    last_lines: Option<Receiver<()>>,
    /// The queue for the thread that makes books. No book is being made if its permit is available.
    makers: Option<FairQueue>,
    /// The addresses of trusted proxies.
    proxies: Vec<IpAddr>,
}

impl fmt::Debug for Listening {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut listening = f.debug_struct("Listening");
        listening
            .field("address", &self.address)
            .finish_non_exhaustive()
    }
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
        let accepting = accept_connections(self.listener, &self.proxies, &self.threads, stop);
        let served = runtime.block_on(accepting);
        // When the threads end, the requests for books are dropped, which cancels their work. The work then removes
        // its files.
        drop(self.threads);
        if let Some(makers) = self.makers {
            // If the work takes longer, it ends when the program exits.
            let ended = makers.acquire(Visitor::Local, 1, Refusal::too_many);
            let _ = runtime.block_on(async { timeout(LAST_BOOK, ended).await });
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
#[derive(Copy, Clone, Debug, Default, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
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
    #[expect(clippy::missing_panics_doc, reason = "texts and numbers are JSON")]
    pub fn listen(self, listener: TcpListener) -> Result<Listening> {
        let (sources, how_far) = (self.sources, self.how_far);
        let about = move || {
            let about = about(&sources, how_far());
            let json = [(header::CONTENT_TYPE, JSON)];
            let about = serde_json::to_string(&about).expect("texts and numbers are JSON");
            std::future::ready((json, about))
        };
        let api = Router::new().route("/about", get(about));
        let routes = with_page(api.fallback(async || not_yet()), &self.origins);
        listening(listener, (self.hosts, self.origins), routes, None, 1)
    }
}

/// A description of the server while an index is being made.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(super) struct AboutIndexing {
    /// The version of polybook.
    version: &'static str,
    /// Always 0.
    games: u64,
    /// Always 0.
    positions: u64,
    /// Always `None`.
    years: Option<[u16; 2]>,
    /// The sources, which have no games yet.
    sources: Vec<FutureSource>,
    /// Always empty.
    books: [String; 0],
    /// The progress of the index.
    indexing: IndexProgress,
}

/// A source whose index is being made.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct FutureSource {
    /// The name that was given to the source.
    name: String,
    /// Always 0.
    games: u64,
    /// Always empty.
    files: [String; 0],
}

/// Creates the answer to `/about` while an index is being built. It describes the server, the names of its `sources`,
/// and the progress.
fn about(sources: &[String], progress: IndexProgress) -> AboutIndexing {
    let source = |name: &String| FutureSource {
        name: name.clone(),
        games: 0,
        files: [],
    };
    AboutIndexing {
        version: env!("CARGO_PKG_VERSION"),
        games: 0,
        positions: 0,
        years: None,
        sources: sources.iter().map(source).collect(),
        books: [],
        indexing: progress,
    }
}

/// Creates the response to a request that the server cannot answer until the index is complete. The response asks the
/// client to try again later.
fn not_yet() -> Response {
    let refusal =
        Refusal::unavailable("the server is still making the index of the games: try again later");
    (RETRY, refusal).into_response()
}

/// The maximum size of a request's headers, in bytes. hyper does not accept a lower limit.
const MAX_REQUEST_HEAD: usize = 8 << 10;

/// The maximum time that a client may take to send all headers of a request, and for which a connection may be idle
/// between two requests.
const READ_TIMEOUT: Duration = Duration::from_secs(10);

/// The maximum time for which the server waits for a client that does not read its response. Without this limit, such
/// clients could occupy connections and memory forever.
const WRITE_TIMEOUT: Duration = Duration::from_secs(5);

/// The number of tokio scheduler ticks after which a thread checks for new events. In one tick, the server sends up to
/// 16 responses to a client that pipelines requests. With tokio's default of 61 ticks, other clients would therefore
/// wait for seconds. Checking more often has no measurable cost.
const EVENT_INTERVAL: u32 = 4;

/// The maximum time for which a shutdown waits for requests that are still being answered.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_millis(500);

/// A handle that stops a running server. It can be cloned and used on another thread.
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
    /// Makes the server stop accepting requests. Returns immediately.
    pub fn stop(&self) {
        self.0.send_replace(true);
    }

    /// Waits until [`stop`](Stop::stop) is called.
    pub(super) async fn stopped(&self) {
        // The channel cannot close while `self` exists.
        let _ = self.0.subscribe().wait_for(|stopped| *stopped).await;
    }
}

/// The parts of the server that all connections share: the guard that checks requests, the routes, and the log.
#[derive(Clone)]
pub(super) struct Site {
    pub(super) guard: Guard,
    pub(super) routes: Router,
    pub(super) log: Option<Logging>,
}

/// An accepted connection that is passed to the thread that will serve it. It consists of the client, the stream, and a
/// watcher with which a shutdown waits for the connection to end.
type AcceptedClient = (Client, net::TcpStream, Watcher);

/// The channels through which accepted connections are passed to the threads that serve them, one for each thread. A
/// thread ends when its channel is dropped.
pub(super) type Threads = Vec<UnboundedSender<AcceptedClient>>;

/// Starts `count` threads that serve connections. Each thread has a tokio runtime of its own. A single multi-threaded
/// runtime would wait forever if the operating system could not start all of its threads.
fn start_connection_threads(count: usize, site: &Site) -> io::Result<Threads> {
    let start_one = |_| {
        let runtime = Builder::new_current_thread()
            .event_interval(EVENT_INTERVAL)
            .enable_all()
            .build()?;
        let (sender, arrivals) = unbounded_channel();
        let serving = serve_arrivals(arrivals, site.clone());
        let thread = thread::Builder::new().name("connections".to_owned());
        thread.spawn(move || runtime.block_on(serving))?;
        Ok(sender)
    };
    (0..count).map(start_one).collect()
}

/// Serves the connections that arrive through the channel `arrivals`. Ends when the sender of the channel is dropped.
async fn serve_arrivals(mut arrivals: UnboundedReceiver<AcceptedClient>, site: Site) {
    while let Some((client, stream, watcher)) = arrivals.recv().await {
        // If the conversion fails, the connection is broken and cannot be answered.
        if let Ok(stream) = TcpStream::from_std(stream) {
            tokio::spawn(watcher.watch(connection(client, stream, site.clone())));
        }
    }
}

/// Accepts connections and distributes them evenly among the threads, until `stop` is triggered. Then waits for at most
/// [`SHUTDOWN_TIMEOUT`] until the requests that are still being answered are complete. `proxies` are the addresses of
/// trusted proxies.
async fn accept_connections(
    listener: TcpListener,
    proxies: &[IpAddr],
    threads: &Threads,
    stop: &Stop,
) -> io::Result<()> {
    let listener = tokio::net::TcpListener::from_std(listener)?;
    let connections = GracefulShutdown::new();
    let clients = Clients::new(listener.local_addr()?.ip(), proxies);
    let accept = async {
        for thread in threads.iter().cycle() {
            let permit = clients.connection_permit().await;
            match listener.accept().await {
                Ok((stream, address)) => {
                    if let Some((client, stream)) = clients.enter(permit, stream, address.ip()) {
                        // The receivers exist as long as `threads`, so sending cannot fail.
                        let _ = thread.send((client, stream, connections.watcher()));
                    }
                }
                // Too many files are open, or the connection was closed before it was accepted. Trying again later
                // may succeed.
                Err(_) => sleep(Duration::from_millis(20)).await,
            }
        }
    };
    tokio::select! {
        () = accept => {}
        () = stop.stopped() => {}
    }
    // Answers that take longer end when the program exits.
    let _ = timeout(SHUTDOWN_TIMEOUT, connections.shutdown()).await;
    Ok(())
}

/// Returns a future that answers all requests of one connection. `client` is attached to each of these requests, so
/// that routes can read it.
fn connection(
    client: Client,
    stream: TcpStream,
    site: Site,
) -> impl GracefulConnection<Error = hyper::Error> + Send {
    // Answers are written in one piece, so Nagle's algorithm would only delay them. If this fails, the stream is
    // closed.
    let _ = stream.set_nodelay(true);
    let mut stream = TimeoutStream::new(stream);
    stream.set_write_timeout(Some(WRITE_TIMEOUT));
    let service = service_fn(move |request: Request<_>| {
        let (site, client) = (site.clone(), client.clone());
        async move { Ok::<_, Infallible>(site.answer(request.map(Body::new), client).await) }
    });
    http1::Builder::new()
        .max_buf_size(MAX_REQUEST_HEAD)
        .timer(TokioTimer::new())
        .header_read_timeout(READ_TIMEOUT)
        .serve_connection(TokioIo::new(Box::pin(stream)), service)
}

impl Site {
    /// Answers a request, adds the security headers to the response, and logs the request.
    async fn answer(self, request: Request<Body>, client: Client) -> Response {
        let start = Instant::now();
        let log = self.log.clone();
        let logged = log.map(|log| (log, request.method().to_string(), request.uri().to_string()));
        let origin = request.headers().get(header::ORIGIN).cloned();
        let guard = self.guard.clone();
        let client = client.of_request(request.headers());
        let accepts_json = CacheKey::of(&request).accepts_json();
        let mut response = self.checked(request, client).await.into_response();
        if accepts_json {
            response = as_json(response);
        }
        guard.protect(origin.as_ref(), &mut response);
        if let Some((log, method, path)) = logged {
            log.note(Served {
                method,
                path,
                status: response.status().as_u16(),
                time: start.elapsed(),
                left_out: 0,
            });
        }
        response
    }

    /// Answers a request if the [`Guard`] accepts it. First waits until the limits of `client` allow another request.
    ///
    /// # Errors
    ///
    /// Returns an error response if the guard rejects the request, or if too many requests are waiting. Also returns an
    /// error response if the client accepts no content coding of the server.
    async fn checked(self, request: Request<Body>, client: Client) -> Result<Response, Refusal> {
        self.guard.check(&request)?;
        let _own = client.arrival_permit().await?;
        // Requests whose bodies arrive slowly hold only the permits of their visitor and of the bytes that have arrived,
        // so they do not block other visitors.
        let (mut request, _body) = receive_body(request, &client).await;
        // A refused body needs no work, so it is answered even if the server is busy.
        let _permit = if is_body_refused(&request) {
            None
        } else {
            Some(client.request_permit().await?)
        };
        request.extensions_mut().insert(client);
        let Ok(response) = TowerToHyperService::new(self.routes).call(request).await;
        match response.status() {
            // The compression layer returns this status together with the uncompressed body.
            StatusCode::NOT_ACCEPTABLE => Err(Refusal::no_coding()),
            _ => Ok(response),
        }
    }
}

/// The maximum number of requests in the queue of the log. If the queue is full, further requests are counted but not
/// logged.
const QUEUE_LENGTH: usize = 1024;

/// The maximum time for which a shutdown waits until the last requests are logged.
const LAST_LINES: Duration = Duration::from_millis(200);

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
    use std::{future::Future, net::IpAddr, pin::Pin};

    use axum::routing::{get, post};

    use super::{
        super::{
            body::{
                form_as_query, take_body,
                tests::{unfinished, unfinished_at},
            },
            guard::Hosts,
        },
        *,
    };

    /// Returns the output of a future if it is available immediately.
    async fn immediate<T>(future: Pin<&mut impl Future<Output = T>>) -> Option<T> {
        // If a task never yields, tokio makes its operations wait after some time.
        tokio::task::yield_now().await;
        tokio::select! {
            biased;
            output = future => Some(output),
            () = std::future::ready(()) => None,
        }
    }

    /// Returns a site with a route that accepts forms and a route that does not.
    fn site() -> Site {
        let posted = async |request| form_as_query(request).map(|_| "answer");
        let listed = async |mut request| take_body(&mut request).map(|_| "answer");
        Site {
            guard: Guard {
                hosts: Hosts {
                    listening: [127, 0, 0, 1].into(),
                    allowed: Vec::new(),
                },
                origins: Vec::new(),
            },
            routes: Router::new()
                .route("/gaps", get(async || "answer").post(posted))
                .route("/positions", post(listed))
                .route("/facets", get(async || "answer")),
            log: None,
        }
    }

    /// Returns the future that answers a request of `client`.
    fn answer(
        mut request: Request<Body>,
        client: &Client,
    ) -> Pin<Box<impl Future<Output = Result<Response, Refusal>> + use<>>> {
        let host = "localhost".parse().unwrap();
        request.headers_mut().insert(header::HOST, host);
        Box::pin(site().checked(request, client.clone()))
    }

    fn get_request() -> Request<Body> {
        Request::get("/gaps").body(Body::empty()).unwrap()
    }

    /// Runs `test` with a connection of each of `count` clients, which have different addresses. `listening` is the
    /// address of the server.
    fn with_clients(listening: IpAddr, count: u8, test: impl AsyncFnOnce(Vec<Client>)) {
        let runtime = Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let clients = Clients::new(listening, &[]);
            let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
            let mut entered = Vec::new();
            for address in 0..count {
                let stream = TcpStream::connect(listener.local_addr().unwrap());
                let (stream, permit) = (stream.await.unwrap(), clients.connection_permit().await);
                entered.extend(clients.enter(permit, stream, [10, 0, 0, address].into()));
            }
            let clients = entered.iter().map(|(client, _)| client.clone());
            test(clients.collect()).await;
        });
    }

    #[test]
    fn forms_that_do_not_arrive_do_not_block_other_clients() {
        with_clients([0, 0, 0, 0].into(), 9, async |clients| {
            let mut waiting = Vec::new();
            for client in &clients[..8] {
                for _ in 0..32 {
                    let mut request = answer(unfinished(100, false), client);
                    assert!(immediate(request.as_mut()).await.is_none());
                    waiting.push(request);
                }
            }
            // Requests with unfinished forms count toward the limit of their address.
            let of_address = immediate(answer(get_request(), &clients[0]).as_mut()).await;
            assert!(of_address.is_none());
            let other = immediate(answer(get_request(), &clients[8]).as_mut()).await;
            assert_eq!(other.unwrap().unwrap().status(), StatusCode::OK);
        });
    }

    #[test]
    fn forms_of_all_clients_together_are_limited() {
        with_clients([127, 0, 0, 1].into(), 1, async |clients| {
            let client = &clients[0];
            let mut waiting = Vec::new();
            let refusal = loop {
                let mut request = answer(unfinished(48 << 10, false), client);
                match immediate(request.as_mut()).await {
                    None => waiting.push(request),
                    Some(answered) => break answered,
                }
                assert!(waiting.len() <= (16 << 20) / (48 << 10));
            };
            assert_eq!(refusal.unwrap().status(), StatusCode::SERVICE_UNAVAILABLE);
            // Requests without a form, and forms that are still empty, need no permits.
            let get = immediate(answer(get_request(), client).as_mut()).await;
            assert_eq!(get.unwrap().unwrap().status(), StatusCode::OK);
            let mut empty = answer(unfinished(0, false), client);
            assert!(immediate(empty.as_mut()).await.is_none());
            drop(waiting.pop());
            let mut request = answer(unfinished(48 << 10, false), client);
            assert!(immediate(request.as_mut()).await.is_none());
        });
    }

    #[test]
    fn lists_of_positions_that_do_not_arrive_do_not_block_other_clients() {
        with_clients([0, 0, 0, 0].into(), 2, async |clients| {
            let mut waiting = Vec::new();
            // Each visitor may send 4 MiB at once.
            for _ in 0..16 {
                let request = unfinished_at("/positions", 256 << 10, false);
                let mut request = answer(request, &clients[0]);
                assert!(immediate(request.as_mut()).await.is_none());
                waiting.push(request);
            }
            let more = answer(unfinished_at("/positions", 1, false), &clients[0]);
            let refusal = immediate(std::pin::pin!(more).as_mut()).await;
            assert_eq!(
                refusal.unwrap().unwrap().status(),
                StatusCode::SERVICE_UNAVAILABLE
            );
            let other = immediate(answer(get_request(), &clients[1]).as_mut()).await;
            assert_eq!(other.unwrap().unwrap().status(), StatusCode::OK);
            let too_long = unfinished_at("/positions", (256 << 10) + 1, false);
            let refusal = immediate(answer(too_long, &clients[1]).as_mut()).await;
            assert_eq!(
                refusal.unwrap().unwrap().status(),
                StatusCode::PAYLOAD_TOO_LARGE
            );
        });
    }

    #[test]
    fn forms_need_permits_for_their_encoded_bytes() {
        with_clients([127, 0, 0, 1].into(), 1, async |clients| {
            for (form, bytes) in [("edits=e4", 8), ("edits=%FF", 15), ("edits=\u{e9}", 12)] {
                let mut request = unfinished(0, false);
                *request.body_mut() = Body::from(form);
                let (_, permits) = receive_body(request, &clients[0]).await;
                assert_eq!(permits.unwrap().count(), bytes, "{form}");
            }
        });
    }

    #[test]
    fn a_broken_connection_is_not_called_a_long_form() {
        with_clients([127, 0, 0, 1].into(), 1, async |clients| {
            for bytes in [0, 100] {
                let answered =
                    immediate(answer(unfinished(bytes, true), &clients[0]).as_mut()).await;
                let response = answered.unwrap().unwrap();
                assert_eq!(response.status(), StatusCode::BAD_REQUEST);
                let text = axum::body::to_bytes(response.into_body(), 1000)
                    .await
                    .unwrap();
                assert!(
                    text.starts_with(b"the form cannot be received: "),
                    "{text:?}"
                );
            }
        });
    }

    #[test]
    fn forms_are_received_only_where_they_are_accepted() {
        with_clients([127, 0, 0, 1].into(), 1, async |clients| {
            let mut request = unfinished(100, false);
            *request.uri_mut() = "/facets".parse().unwrap();
            let answered = immediate(answer(request, &clients[0]).as_mut()).await;
            let status = answered.unwrap().unwrap().status();
            assert_eq!(status, StatusCode::METHOD_NOT_ALLOWED);
            // A form that is too long is refused even if the server cannot answer any other request.
            let mut taken = Vec::new();
            for _ in 0..256 {
                taken.push(clients[0].request_permit().await.unwrap());
            }
            let valid = immediate(answer(get_request(), &clients[0]).as_mut()).await;
            assert!(valid.is_none());
            let too_long =
                immediate(answer(unfinished((48 << 10) + 1, false), &clients[0]).as_mut()).await;
            let status = too_long.unwrap().unwrap().status();
            assert_eq!(status, StatusCode::PAYLOAD_TOO_LARGE);
        });
    }

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
