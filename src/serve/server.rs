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
    log::{Log, Served},
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
    threads: usize,
    log: Option<Log>,
}

impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Server")
            .field("books", &self.books)
            .field("hosts", &self.hosts)
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

    /// Threads that answer. Default: 0, which is one per core.
    pub fn threads(mut self, threads: usize) -> Server {
        self.threads = threads;
        self
    }

    /// Is told of every request when it is answered.
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
        let bound = TcpListener::bind(address).and_then(|listener| {
            listener.set_nonblocking(true)?;
            let address = listener.local_addr()?;
            Ok((listener, address))
        });
        let (listener, address) = bound.at(address.to_string(), "listen at")?;
        let hosts = Hosts::new(address, self.hosts);
        Ok(Listening {
            listener,
            address,
            log: self.log,
            threads: match self.threads {
                0 => std::thread::available_parallelism().map_or(1, usize::from),
                threads => threads,
            },
            answering: Arc::new(Answering::new(self.explorer, self.books, hosts)),
        })
    }
}

/// A server that has its address.
pub struct Listening {
    listener: TcpListener,
    address: SocketAddr,
    log: Option<Log>,
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
        let served = runtime.block_on(http::serve(self.listener, self.answering, self.log, stop));
        // A question of an index on a slow disk must not hold up the end.
        runtime.shutdown_timeout(Duration::from_millis(100));
        served.at(self.address.to_string(), "serve at")
    }
}
