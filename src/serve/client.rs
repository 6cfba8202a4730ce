//! Clients of the server: finds out whether they are still connected, and limits with [fair queues](super::queue) what
//! each of them may use.

use std::{
    io::ErrorKind,
    net::{self, IpAddr},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use axum::http::{HeaderMap, HeaderName};
use tokio::{
    net::{TcpSocket, TcpStream},
    sync::{OwnedSemaphorePermit, Semaphore},
    time::timeout,
};

use super::{
    Refusal,
    content::ResponseBody,
    queue::{FairQueue, Permit, QueueLimits, Visitor},
};

/// The maximum time that the server spends on reading the PGN text of games for one request.
pub(super) const READING: Duration = Duration::from_secs(10);

/// The interval at which the server checks whether a client that waits for a response is still connected.
const PAUSE: Duration = Duration::from_millis(50);

/// The maximum size of a small response, in bytes. A small response is sent without permits for unsent bytes, because
/// it fits into the send buffer of the operating system.
const SMALL: usize = 64 << 10;

/// The size, in bytes, of the send buffer of a connection. A blocked write continues when a third of the buffer is
/// free. The default of several megabytes would take a slow client so long to empty that writes would seem to make no
/// progress.
const SEND_BUFFER: u32 = 128 << 10;

/// The header in which a proxy states the address from which it received the request. Each proxy appends an address.
const FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");

/// The maximum number of connections of all clients.
const MAX_CONNECTIONS: usize = 4096;

/// The maximum number of connections of one visitor.
const CONNECTIONS_OF_ONE: usize = 256;

/// The maximum number of requests of one visitor that are received or answered at the same time. A few more requests
/// wait.
const REQUESTS_OF_ONE: usize = 32;

/// The maximum number of requests of one visitor that wait because [`REQUESTS_OF_ONE`] others are being received or
/// answered. A proxy uses a connection for each of them.
const WAITING_OF_ONE: usize = 64;

/// The limits on the number of requests that are answered at the same time. Further requests wait.
const REQUESTS: QueueLimits = QueueLimits {
    permits: 256,
    held_by_one: REQUESTS_OF_ONE,
    ..QueueLimits::NONE
};

/// The limits on the total size in bytes of the request bodies that have been received but whose requests are not
/// answered yet.
const BODIES: QueueLimits = QueueLimits {
    permits: 16 << 20,
    held_by_one: 4 << 20,
    waiting: 0,
    waiting_of_one: 0,
};

/// The limits on the total size in bytes of the large responses that have not been sent yet.
const UNSENT: QueueLimits = QueueLimits {
    permits: 64 << 20,
    held_by_one: 16 << 20,
    waiting: 8,
    ..QueueLimits::NONE
};

/// The fair queues for the resources that all routes share. Worker threads have queues of their own.
struct Queues {
    connections: FairQueue,
    /// The queue for requests that are being received or answered.
    arrivals: FairQueue,
    /// The queue for requests that are being answered.
    requests: FairQueue,
    bodies: FairQueue,
    unsent: FairQueue,
}

/// The clients of a server, with the queues for the resources that they use.
pub(super) struct Clients {
    /// One permit for each connection that may be accepted.
    connections: Arc<Semaphore>,
    queues: Arc<Queues>,
    /// The addresses of trusted proxies, which say in a header who sent a request.
    proxies: Vec<IpAddr>,
    /// Whether all clients run on this machine, so that limits for one visitor would be pointless.
    are_local: bool,
}

/// The client of a request or of a connection. A `Client` and its clones share the permits of the connection, which are
/// released when the last clone is dropped.
#[derive(Clone)]
pub(super) struct Client {
    stream: Arc<net::TcpStream>,
    visitor: Visitor,
    /// Whether the connection comes from a trusted proxy.
    is_proxy: bool,
    queues: Arc<Queues>,
    _permits: Arc<(OwnedSemaphorePermit, Permit)>,
}

impl Clients {
    /// Creates an empty set of clients for a server that listens at the IP address `listening`. `proxies` are the
    /// addresses of trusted proxies; a request from one of them belongs to the visitor whom the proxy names. If
    /// `listening` is a loopback address and there are no trusted proxies, all clients run on this machine, so there
    /// are no limits for one visitor.
    pub(super) fn new(listening: IpAddr, proxies: &[IpAddr]) -> Clients {
        let connections = most_connections();
        // If the process may open only few files, a visitor may use at most a quarter of the connections. Behind a
        // proxy, these are the connections with requests that wait and with others.
        let quarter = connections / 4;
        let of_one = QueueLimits {
            held_by_one: CONNECTIONS_OF_ONE.min(quarter),
            waiting: 0,
            ..QueueLimits::NONE
        };
        let arrivals = QueueLimits {
            held_by_one: REQUESTS_OF_ONE.min(quarter / 2),
            waiting_of_one: WAITING_OF_ONE.min(quarter / 2),
            ..QueueLimits::NONE
        };
        Clients {
            connections: Arc::new(Semaphore::new(connections)),
            queues: Arc::new(Queues {
                connections: FairQueue::new(of_one),
                arrivals: FairQueue::new(arrivals),
                requests: FairQueue::new(REQUESTS),
                bodies: FairQueue::new(BODIES),
                unsent: FairQueue::new(UNSENT),
            }),
            proxies: proxies.iter().map(IpAddr::to_canonical).collect(),
            are_local: listening.is_loopback() && proxies.is_empty(),
        }
    }

    /// Waits until the limit on connections allows the server to accept another one. Returns the semaphore permit for
    /// this connection.
    pub(super) async fn connection_permit(&self) -> OwnedSemaphorePermit {
        let permit = Arc::clone(&self.connections).acquire_owned().await;
        permit.expect("nobody closes the semaphore")
    }

    /// Registers the client of an accepted connection. Returns the client, and a stream that can be moved to the
    /// runtime of another thread. `permit` is the server's permit for the connection, which the client then holds.
    ///
    /// Returns `None` if the visitor has too many connections, or if the operating system cannot open another file.
    pub(super) fn enter(
        &self,
        permit: OwnedSemaphorePermit,
        stream: TcpStream,
        address: IpAddr,
    ) -> Option<(Client, net::TcpStream)> {
        let is_proxy = self.proxies.contains(&address.to_canonical());
        let visitor = if self.are_local {
            Visitor::Local
        } else {
            Visitor::at(address)
        };
        // A proxy has a connection for each of its visitors.
        let holder = if is_proxy { Visitor::Local } else { visitor };
        let own = self.queues.connections.try_acquire(holder, 1)?;
        let stream = stream.into_std().ok()?;
        let socket = TcpSocket::from_std_stream(stream.try_clone().ok()?);
        // If this fails, the operating system chooses the size of the buffer.
        let _ = socket.set_send_buffer_size(SEND_BUFFER);
        let client = Client {
            stream: Arc::new(stream.try_clone().ok()?),
            visitor,
            is_proxy,
            queues: Arc::clone(&self.queues),
            _permits: Arc::new((permit, own)),
        };
        Some((client, stream))
    }
}

/// Returns the maximum number of connections, at least 8, from the number of files that the process may open. Half of
/// these files are reserved for indexes, and another 64 for games and the program itself. Each connection takes two of
/// the remaining files.
#[cfg(unix)]
fn most_connections() -> usize {
    let soft = rlimit::Resource::NOFILE.get().map_or(0, |(soft, _)| soft);
    let files = usize::try_from(soft / 2).unwrap_or(usize::MAX);
    (files.saturating_sub(64) / 2).clamp(8, MAX_CONNECTIONS)
}

/// Returns the maximum number of connections on systems other than Unix, where the limit on open files is so high that
/// it does not matter.
#[cfg(not(unix))]
fn most_connections() -> usize {
    MAX_CONNECTIONS
}

/// Returns the address in the last entry of the header `X-Forwarded-For`, which the nearest proxy appended. Earlier
/// entries are not trustworthy, because the visitor can write any address there. Returns `None` if the last entry is
/// not an IP address, with or without a port.
fn last_forwarded(headers: &HeaderMap) -> Option<IpAddr> {
    let last = headers.get_all(FORWARDED_FOR).iter().next_back()?;
    let last = last.to_str().ok()?.rsplit(',').next()?.trim();
    let with_port = || {
        last.parse()
            .ok()
            .map(|address: net::SocketAddr| address.ip())
    };
    let bare = last.trim_start_matches('[').trim_end_matches(']');
    bare.parse().ok().or_else(with_port)
}

impl Client {
    /// Returns `true` if the client has closed the connection, without waiting for it. The check is needed because
    /// hyper does not always notice a closed connection.
    pub(super) fn is_gone(&self) -> bool {
        match self.stream.peek(&mut [0]) {
            Ok(waiting) => waiting == 0,
            Err(err) => err.kind() != ErrorKind::WouldBlock,
        }
    }

    /// Returns the visitor who sent the request.
    pub(super) fn visitor(&self) -> Visitor {
        self.visitor
    }

    /// Returns the client who sent a request with the given headers. If the request came through a trusted proxy, this
    /// is the visitor whom the proxy names; otherwise, it is the client of the connection.
    pub(super) fn of_request(mut self, headers: &HeaderMap) -> Client {
        if self.is_proxy
            && let Some(address) = last_forwarded(headers)
        {
            self.visitor = Visitor::at(address);
        }
        self
    }

    /// Waits for a permit to send a request, of which each visitor can hold a limited number. Dropping the returned
    /// value releases the permit.
    ///
    /// # Errors
    ///
    /// Returns an error response if the permit is not available within ten seconds. Returns it at once if too many
    /// requests of the visitor are waiting.
    pub(super) async fn arrival_permit(&self) -> Result<Permit, Refusal> {
        self.queues.arrivals.acquire_soon(self.visitor, 1).await
    }

    /// Waits for a permit to answer a request, of which the server has a limited number. Dropping the returned value
    /// releases the permit. To prevent a deadlock, call [`arrival_permit`](Client::arrival_permit) first.
    ///
    /// # Errors
    ///
    /// Returns an error response if the permit is not available within ten seconds.
    pub(super) async fn request_permit(&self) -> Result<Permit, Refusal> {
        self.queues.requests.acquire_soon(self.visitor, 1).await
    }

    /// Acquires the permits for storing `bytes` bytes of a request body. Does not wait for them, because unfinished
    /// bodies hold permits too, so that they might wait for each other forever.
    ///
    /// # Errors
    ///
    /// Returns a refusal if the bodies of the visitor or of all clients together contain too many bytes.
    pub(super) fn body_permits(&self, bytes: usize) -> Result<Permit, Refusal> {
        let permits = self.queues.bodies.try_acquire(self.visitor, bytes);
        permits.ok_or_else(|| {
            Refusal::unavailable(
                "the server is receiving too many bodies of requests at once: try again later",
            )
        })
    }

    /// Acquires the permits for sending `content` if it is large, and attaches them to it, so that they are released
    /// when the response has been sent. Returns a small response unchanged, because it needs no permits.
    ///
    /// # Errors
    ///
    /// Returns an error response if too many unsent bytes are waiting for the visitor, or if too many large responses
    /// are waiting. Also returns an error response if the permits are not available within ten seconds.
    pub(super) async fn to_be_sent(&self, content: ResponseBody) -> Result<ResponseBody, Refusal> {
        if content.size() <= SMALL {
            return Ok(content);
        }
        // A response that exceeds the limit of a visitor takes all permits of the visitor, so it is sent when no other
        // response is.
        let permits = content.size().min(UNSENT.held_by_one);
        let unsent = &self.queues.unsent;
        if unsent.exceeds(self.visitor, permits) {
            return Err(Refusal::unavailable(
                "earlier answers to your address are still being sent: read these answers first",
            ));
        }
        let permits = unsent.acquire_soon(self.visitor, permits).await?;
        Ok(content.holding(permits))
    }
}

/// A guard that sets the stop flag of a long operation when it is dropped. A request holds the guard while the
/// operation runs, so the operation is cancelled if the client closes the connection.
#[derive(Default)]
pub(super) struct StopAtEnd(pub(super) Arc<AtomicBool>);

impl Drop for StopAtEnd {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Awaits a future, but only as long as the client is connected.
///
/// # Errors
///
/// Returns an error response as soon as the client has disconnected.
pub(super) async fn while_connected<T>(
    client: &Client,
    future: impl Future<Output = T>,
) -> Result<T, Refusal> {
    let mut future = Box::pin(future);
    loop {
        match timeout(PAUSE, &mut future).await {
            Ok(output) => return Ok(output),
            Err(_) if client.is_gone() => return Err(Refusal::unavailable("the client is gone")),
            Err(_) => {}
        }
    }
}

/// Awaits a future for at most the time `limit`, and only as long as the client is connected.
///
/// # Errors
///
/// Returns the error response that `too_long` creates if the time limit is exceeded. Returns a different error response
/// as soon as the client has disconnected.
pub(super) async fn while_wanted<T>(
    client: &Client,
    limit: Duration,
    future: impl Future<Output = T>,
    too_long: impl FnOnce() -> Refusal,
) -> Result<T, Refusal> {
    match timeout(limit, while_connected(client, future)).await {
        Ok(output) => output,
        Err(_) => Err(too_long()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs `test` with a client at `address` of a server at `listening`, which trusts `proxies`.
    fn with_client(
        listening: [u8; 4],
        proxies: &[IpAddr],
        address: [u8; 4],
        test: impl AsyncFnOnce(Client),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread();
        let runtime = { runtime }.enable_all().build().unwrap();
        runtime.block_on(async {
            let clients = Clients::new(listening.into(), proxies);
            let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
            let stream = TcpStream::connect(listener.local_addr().unwrap());
            let (stream, permit) = (stream.await.unwrap(), clients.connection_permit().await);
            let (client, _stream) = clients.enter(permit, stream, address.into()).unwrap();
            test(client).await;
        });
    }

    #[test]
    fn only_a_trusted_proxy_names_the_visitor_and_only_its_own_entry_counts() {
        let headers = |values: &[&str]| {
            let mut headers = HeaderMap::new();
            for value in values {
                headers.append(FORWARDED_FOR, value.parse().unwrap());
            }
            headers
        };
        let at = |address: &str| Visitor::at(address.parse().unwrap());
        let proxy: IpAddr = [127, 0, 0, 1].into();
        for (values, named) in [
            (&["192.0.2.7"][..], at("192.0.2.7")),
            (&["203.0.113.1, 192.0.2.7"], at("192.0.2.7")),
            (&["203.0.113.1", "192.0.2.7"], at("192.0.2.7")),
            (&["192.0.2.7:5000"], at("192.0.2.7")),
            (&["[2001:db8::1]:5000"], at("2001:db8::2")),
            (&["[2001:db8::1]"], at("2001:db8::2")),
            (&["192.0.2.7, unknown"], at("127.0.0.1")),
            (&[], at("127.0.0.1")),
        ] {
            with_client([127, 0, 0, 1], &[proxy], [127, 0, 0, 1], async |client| {
                assert_eq!(
                    client.of_request(&headers(values)).visitor(),
                    named,
                    "{values:?}"
                );
            });
            with_client([0, 0, 0, 0], &[proxy], [10, 0, 0, 1], async |client| {
                let client = client.of_request(&headers(values));
                assert_eq!(client.visitor(), at("10.0.0.1"), "{values:?}");
            });
            with_client([127, 0, 0, 1], &[], [127, 0, 0, 1], async |client| {
                let client = client.of_request(&headers(values));
                assert_eq!(client.visitor(), Visitor::Local, "{values:?}");
            });
        }
    }

    /// A proxy has a connection for each request, so these would keep other visitors from connecting.
    #[test]
    fn few_requests_of_a_visitor_wait() {
        let proxy: IpAddr = [127, 0, 0, 1].into();
        with_client([127, 0, 0, 1], &[proxy], [127, 0, 0, 1], async |client| {
            let visitor = |address: &str| {
                let mut headers = HeaderMap::new();
                headers.append(FORWARDED_FOR, address.parse().unwrap());
                client.clone().of_request(&headers)
            };
            let (first, second) = (visitor("192.0.2.1"), visitor("192.0.2.2"));
            let soon = Duration::from_millis(1);
            let (mut held, mut waiting, mut refused) = (Vec::new(), Vec::new(), 0);
            for _ in 0..CONNECTIONS_OF_ONE {
                let mut permit = Box::pin(first.arrival_permit());
                match timeout(soon, &mut permit).await {
                    Ok(Ok(permit)) => held.push(permit),
                    Ok(Err(refusal)) => {
                        assert_eq!(refusal.status(), 503);
                        refused += 1;
                    }
                    Err(_) => waiting.push(permit),
                }
            }
            assert!(!held.is_empty() && !waiting.is_empty());
            assert!(held.len() <= REQUESTS_OF_ONE && waiting.len() <= WAITING_OF_ONE);
            assert!(refused >= CONNECTIONS_OF_ONE - REQUESTS_OF_ONE - WAITING_OF_ONE);
            assert!(
                timeout(soon, second.arrival_permit())
                    .await
                    .unwrap()
                    .is_ok()
            );
            held.pop();
            assert!(waiting.remove(0).await.is_ok());
        });
    }

    #[test]
    fn large_answers_hold_permits_until_they_are_sent() {
        with_client([0, 0, 0, 0], &[], [10, 0, 0, 1], async |client| {
            let content = |size| ResponseBody::pgn(vec![b'x'; size]);
            let other = Visitor::at([10, 0, 0, 2].into());
            let unsent = |client: &Client| UNSENT.permits - client.queues.unsent.free();

            let small = client.to_be_sent(content(SMALL)).await.unwrap();
            assert_eq!(unsent(&client), 0);
            let large = client.to_be_sent(content(5 << 20)).await.unwrap();
            let etag = large.etag();
            let response = large.into_response(etag);
            assert_eq!(unsent(&client), 5 << 20);
            // This is more than the visitor may use, regardless of other visitors.
            let refusal = client.to_be_sent(content(12 << 20)).await;
            let refusal = refusal.map(|_| ()).unwrap_err();
            let advice = "read these answers first";
            assert_eq!(refusal.status(), 503);
            assert!(refusal.text().contains(advice), "{refusal:?}");
            drop((small, response));
            assert_eq!(unsent(&client), 0);
            client.to_be_sent(content(12 << 20)).await.unwrap();
            let largest = client.to_be_sent(content(24 << 20)).await.unwrap();
            assert_eq!(unsent(&client), UNSENT.held_by_one);
            drop(largest);
            assert_eq!(unsent(&client), 0);

            // While all of the server's bytes are taken, answers wait.
            let taken = client
                .queues
                .unsent
                .try_acquire(Visitor::Local, UNSENT.permits);
            assert!(taken.is_some());
            let waits = client.to_be_sent(content(1 << 20));
            let mut waits = std::pin::pin!(waits);
            let soon = Duration::from_millis(10);
            assert!(timeout(soon, &mut waits).await.is_err());
            assert!(client.queues.unsent.try_acquire(other, 1).is_none());
            drop(taken);
            assert!(waits.await.is_ok());
        });
    }
}
