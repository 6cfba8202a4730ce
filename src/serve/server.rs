//! What is served, and where.

use std::{
    fmt,
    net::{SocketAddr, TcpListener},
    sync::Arc,
    time::Duration,
};

use super::{
    BookFile,
    answering::{Answering, READERS},
    guard::Hosts,
    http,
    log::{Log, Logging, Served},
    origin::Origin,
    routes::routes,
    stop::Stop,
};
use crate::{
    error::{At, Result},
    explorer::Explorer,
};

/// An explorer and books that are to be served.
pub struct Server {
    explorer: Explorer,
    books: Vec<BookFile>,
    hosts: Vec<String>,
    origins: Vec<Origin>,
    threads: usize,
    log: Option<Log>,
}

impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Server")
            .field("books", &self.books)
            .field("hosts", &self.hosts)
            .field("origins", &self.origins)
            .field("threads", &self.threads)
            .finish_non_exhaustive()
    }
}

impl Server {
    /// A server of these games.
    pub fn new(explorer: Explorer) -> Server {
        Server {
            explorer,
            books: Vec::new(),
            hosts: Vec::new(),
            origins: Vec::new(),
            threads: 0,
            log: None,
        }
    }

    /// Shows what a book plays beside the counts.
    pub fn book(mut self, book: BookFile) -> Server {
        self.books.push(book);
        self
    }

    /// Answers requests that name this host, besides those for the listening address and `localhost`.
    pub fn allow_host(mut self, name: impl Into<String>) -> Server {
        self.hosts.push(name.into());
        self
    }

    /// Lets pages of this origin read the answers. Default: no page but the server's own.
    pub fn allow_origin(mut self, origin: Origin) -> Server {
        self.origins.push(origin);
        self
    }

    /// Threads that answer. Default: 0, which is one per core.
    pub fn threads(mut self, threads: usize) -> Server {
        self.threads = threads;
        self
    }

    /// Calls this for every request that was answered, on a thread of its own. When it is too slow, it misses some.
    pub fn log(mut self, log: impl Fn(&Served) + Send + Sync + 'static) -> Server {
        self.log = Some(Arc::new(log));
        self
    }

    /// Takes an address. Port 0 is any that is free.
    ///
    /// # Errors
    ///
    /// An address that is taken or not of this machine.
    pub fn bind(self, address: SocketAddr) -> Result<Listening> {
        self.listen(TcpListener::bind(address).at(address.to_string(), "listen at")?)
    }

    /// Takes a listener that is bound already.
    ///
    /// # Errors
    ///
    /// A listener that the system does not know.
    pub fn listen(self, listener: TcpListener) -> Result<Listening> {
        let address = listener
            .set_nonblocking(true)
            .and_then(|()| listener.local_addr());
        let address = address.at("the listener", "use")?;
        let threads = match self.threads {
            0 => std::thread::available_parallelism().map_or(1, usize::from),
            threads => threads,
        };
        let hosts = Hosts::new(address, self.hosts);
        Ok(Listening {
            listener,
            address,
            log: self.log,
            origins: self.origins,
            threads,
            answering: Arc::new(Answering::new(self.explorer, self.books, hosts, threads)),
        })
    }
}

/// A server that has its address.
pub struct Listening {
    listener: TcpListener,
    address: SocketAddr,
    log: Option<Log>,
    origins: Vec<Origin>,
    threads: usize,
    answering: Arc<Answering>,
}

impl fmt::Debug for Listening {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Listening")
            .field("address", &self.address)
            .finish_non_exhaustive()
    }
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
    /// A system that gives no threads.
    pub fn run(self, stop: &Stop) -> Result<()> {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(self.threads)
            .max_blocking_threads(self.threads + READERS)
            .enable_all()
            .build()
            .at(self.address.to_string(), "serve at")?;
        let (log, last_lines) = self
            .log
            .map(Logging::start)
            .transpose()
            .at(self.address.to_string(), "serve at")?
            .unzip();
        let routes = routes(self.answering, &self.origins);
        let served = runtime.block_on(http::serve(self.listener, routes, log, stop));
        // A question of an index on a slow disk must not hold up the end.
        runtime.shutdown_timeout(Duration::from_millis(100));
        if let Some(last_lines) = last_lines {
            last_lines.wait();
        }
        served.at(self.address.to_string(), "serve at")
    }
}
