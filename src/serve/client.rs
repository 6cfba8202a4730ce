//! Clients of the server: whether they are still connected, and how many resources of the server they may use.
//!
//! Each resource has two limits, one for the whole server and one for each address, so that no single address can
//! block all others.

use std::{
    collections::HashMap,
    io::ErrorKind,
    net::{self, IpAddr},
    sync::{
        Arc, Weak,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use tokio::{
    net::{TcpSocket, TcpStream},
    sync::{AcquireError, OwnedSemaphorePermit, Semaphore},
    time::timeout,
};

use super::{Refusal, content::Content};

/// The maximum time for which a request waits for a semaphore permit. A permit allows a request to use a limited
/// resource, such as a thread that reads games.
const PERMIT_TIMEOUT: Duration = Duration::from_secs(10);

/// The interval at which the server checks whether a client that waits for a response is still connected.
const PAUSE: Duration = Duration::from_millis(50);

/// The maximum size of a small response, in bytes. Small responses are sent without a permit of the semaphore that
/// limits the bytes of unsent responses, because they fit into the send buffers of the operating system.
const SMALL: usize = 64 << 10;

/// The size, in bytes, of the send buffer of a connection. A blocked write continues when a third of the buffer is
/// free. The default of several megabytes would take a slow client so long to empty that writes would seem to make no
/// progress.
const SEND_BUFFER: u32 = 128 << 10;

/// A resource of the server, such as connections. The server limits how much of each resource clients may use.
#[derive(Copy, Clone)]
enum Share {
    /// Connections. When the limit of the server is reached, further connections wait to be accepted.
    Connections,
    /// Requests that are being answered. Further requests wait.
    Requests,
    /// Requests that read the PGN text of games, including those that wait for a thread. The limit keeps other requests
    /// from waiting for them.
    Texts,
    /// Requests that make books, including those that wait for the thread.
    Books,
    /// Bytes of large responses that have not been sent yet.
    Unsent,
    /// Large responses that wait until other responses have been sent.
    Waiting,
    /// Bytes of forms that have been received and not answered yet.
    Forms,
}

/// The limits of all resources, in the order of the variants of [`Share`].
type ClientLimits = [usize; 7];

/// The limits for all clients of the server together, in the order of the variants of [`Share`]. They allow 4096
/// connections, 256 requests, 64 requests for the PGN text of games, 4 requests for books, 64 MiB of unsent responses,
/// 8 waiting responses, and 16 MiB of forms.
const OF_SERVER: ClientLimits = [4096, 256, 64, 4, 64 << 20, 8, 16 << 20];
/// The limits for all clients with the same IP address, in the order of the variants of [`Share`]. They allow 256
/// connections, 32 requests, 2 requests for the PGN text of games, 2 requests for books and 16 MiB of unsent
/// responses. The number of requests also limits the forms.
const OF_ADDRESS: ClientLimits = [256, 32, 2, 2, 16 << 20, UNLIMITED, UNLIMITED];

/// The limit of a resource that is not limited.
const UNLIMITED: usize = Semaphore::MAX_PERMITS;

/// The limits for one IP address if the server listens only on the local machine. All clients then have the same
/// address, so nothing is limited.
const OF_THIS_MACHINE: ClientLimits = [UNLIMITED; 7];

/// One semaphore for each [`Share`]. The semaphores enforce the limits of the whole server or of one address.
struct Capacity([Arc<Semaphore>; 7]);

impl Capacity {
    fn new(limits: ClientLimits) -> Arc<Capacity> {
        let permits = limits.map(|count| Arc::new(Semaphore::new(count)));
        Arc::new(Capacity(permits))
    }

    fn of(&self, share: Share) -> Arc<Semaphore> {
        Arc::clone(&self.0[share as usize])
    }
}

/// The clients of a server, and the semaphores that limit how much of each resource they use.
pub(super) struct Clients {
    /// The semaphores of the whole server.
    server: Arc<Capacity>,
    /// The limits of each address.
    share: ClientLimits,
    /// The semaphores of the addresses that have connections.
    shares: HashMap<IpAddr, Weak<Capacity>>,
}

/// The client of one connection. A `Client` and its clones share the semaphore permits of the connection. The permits
/// are released when the last clone is dropped.
#[derive(Clone)]
pub(super) struct Client {
    stream: Arc<net::TcpStream>,
    server: Arc<Capacity>,
    share: Arc<Capacity>,
    _permits: Arc<[OwnedSemaphorePermit; 2]>,
}

impl Clients {
    /// Creates an empty set of clients for a server that accepts connections at the IP address `listening`. If this is
    /// a loopback address, all clients run on this machine, so there are no limits per address.
    pub(super) fn new(listening: IpAddr) -> Clients {
        let (mut server, mut share) = (OF_SERVER, OF_ADDRESS);
        let connections = most_connections();
        server[Share::Connections as usize] = connections;
        // If the process may open only few files, an address may use at most a quarter of the connections.
        let own = &mut share[Share::Connections as usize];
        *own = (*own).min(connections / 4);
        Clients {
            server: Capacity::new(server),
            share: match listening.is_loopback() {
                true => OF_THIS_MACHINE,
                false => share,
            },
            shares: HashMap::new(),
        }
    }

    /// Waits until the limit on connections allows the server to accept another one. Returns the semaphore permit for
    /// this connection.
    pub(super) async fn connection_permit(&self) -> OwnedSemaphorePermit {
        let permit = self.server.of(Share::Connections).acquire_owned().await;
        permit.expect("nobody closes the semaphore")
    }

    /// Registers the client of an accepted connection. `permit` is the server's semaphore permit for the connection.
    /// The client holds this permit from now on. Returns the client and its stream. The stream can be moved to the
    /// runtime of another thread.
    ///
    /// Returns `None` if the address has too many connections, or if the operating system cannot open another file.
    pub(super) fn enter(
        &mut self,
        permit: OwnedSemaphorePermit,
        stream: TcpStream,
        address: IpAddr,
    ) -> Option<(Client, net::TcpStream)> {
        let share = self.share_of(address);
        let own = share.of(Share::Connections).try_acquire_owned().ok()?;
        let stream = stream.into_std().ok()?;
        let socket = TcpSocket::from_std_stream(stream.try_clone().ok()?);
        // If this fails, the operating system chooses the size of the buffer.
        let _ = socket.set_send_buffer_size(SEND_BUFFER);
        let client = Client {
            stream: Arc::new(stream.try_clone().ok()?),
            server: Arc::clone(&self.server),
            share,
            _permits: Arc::new([permit, own]),
        };
        Some((client, stream))
    }

    /// Returns the semaphores that all connections of one address share. Creates new semaphores if this address has no
    /// other connection.
    fn share_of(&mut self, address: IpAddr) -> Arc<Capacity> {
        let address = client_network(address);
        if let Some(share) = self.shares.get(&address).and_then(Weak::upgrade) {
            return share;
        }
        self.shares.retain(|_, share| share.strong_count() > 0);
        let share = Capacity::new(self.share);
        self.shares.insert(address, Arc::downgrade(&share));
        share
    }
}

/// Returns the maximum number of connections, which is at least 8. Half of the files that the process may open are
/// reserved for indexes, and another 64 for games and the program itself. Each connection takes two of the remaining
/// files.
#[cfg(unix)]
fn most_connections() -> usize {
    let soft = rlimit::Resource::NOFILE.get().map_or(0, |(soft, _)| soft);
    let files = usize::try_from(soft / 2).unwrap_or(usize::MAX);
    (files.saturating_sub(64) / 2).clamp(8, OF_SERVER[Share::Connections as usize])
}

/// Returns the maximum number of connections on systems other than Unix. There, the limit on open files is high enough
/// and need not be considered.
#[cfg(not(unix))]
fn most_connections() -> usize {
    OF_SERVER[Share::Connections as usize]
}

/// Returns the IP address to which the limits for a client apply. Returns an IPv4 address unchanged. Reduces an IPv6
/// address to its 64-bit network, because one client can use all addresses in this network.
fn client_network(client: IpAddr) -> IpAddr {
    match client.to_canonical() {
        IpAddr::V4(address) => address.into(),
        IpAddr::V6(address) => {
            let network = address.to_bits() >> 64 << 64;
            IpAddr::V6(network.into())
        }
    }
}

impl Client {
    /// Returns `true` if the client has closed the connection. Never blocks. This check is needed because hyper does
    /// not always notice a closed connection.
    pub(super) fn is_gone(&self) -> bool {
        match self.stream.peek(&mut [0]) {
            Ok(waiting) => waiting == 0,
            Err(err) => err.kind() != ErrorKind::WouldBlock,
        }
    }

    /// Waits for the semaphore permit of the client's address that is needed to receive and answer a request. Dropping
    /// the returned value releases the permit.
    ///
    /// # Errors
    ///
    /// Returns an error response if the permit is not available within ten seconds.
    pub(super) async fn address_permit(&self) -> Result<impl Send + use<>, Refusal> {
        in_time(self.share.of(Share::Requests).acquire_owned()).await
    }

    /// Waits for the semaphore permit of the server that is needed to answer a request. Dropping the returned value
    /// releases the permit. To prevent a deadlock, call [`address_permit`](Client::address_permit) first.
    ///
    /// # Errors
    ///
    /// Returns an error response if the permit is not available within ten seconds.
    pub(super) async fn server_permit(&self) -> Result<impl Send + use<>, Refusal> {
        in_time(self.server.of(Share::Requests).acquire_owned()).await
    }

    /// Acquires the two semaphore permits that are needed to read the PGN text of games. Waits for the permit of the
    /// client's address, but not for that of the server. Dropping the result releases both permits.
    ///
    /// # Errors
    ///
    /// Returns an error response if the permit of the address is not available within ten seconds. Also returns an
    /// error response if the permit of the server is not available immediately.
    pub(super) async fn text_permits(&self) -> Result<impl Send + use<>, Refusal> {
        let own = in_time(self.share.of(Share::Texts).acquire_owned()).await?;
        let permit = self.server.of(Share::Texts).try_acquire_owned();
        let too_many = |_| {
            Refusal::unavailable(
                "the server is already reading the games of other requests: try again later",
            )
        };
        Ok((own, permit.map_err(too_many)?))
    }

    /// Acquires the two semaphore permits that are needed to make a book: one of the client's address and one of the
    /// server. Does not wait for them. Dropping the result releases both permits.
    ///
    /// # Errors
    ///
    /// Returns an error response if too many books are being made for the client's address or for all clients together.
    pub(super) fn book_permits(&self) -> Result<impl Send + use<>, Refusal> {
        let permit = |of: &Capacity| of.of(Share::Books).try_acquire_owned();
        let too_many = |_| {
            Refusal::unavailable(
                "the server is already making as many books as it can: try again later",
            )
        };
        let own = permit(&self.share).map_err(too_many)?;
        Ok((own, permit(&self.server).map_err(too_many)?))
    }

    /// Acquires the semaphore permits that are needed to store `bytes` bytes of a form. Does not wait for them, because
    /// forms that are incomplete hold permits too.
    ///
    /// # Errors
    ///
    /// Returns a refusal if the forms of all clients together contain too many bytes.
    pub(super) fn form_permits(&self, bytes: usize) -> Result<OwnedSemaphorePermit, Refusal> {
        let bytes = u32::try_from(bytes).unwrap_or(u32::MAX);
        let permits = self.server.of(Share::Forms).try_acquire_many_owned(bytes);
        permits.map_err(|_| {
            Refusal::unavailable("the server is receiving too many forms at once: try again later")
        })
    }

    /// Acquires the semaphore permits that are needed to send `content`, if it is large, and attaches them to
    /// `content`. They are released when the response has been sent. Returns a small response unchanged, because it
    /// needs no permits.
    ///
    /// # Errors
    ///
    /// Returns an error response if too many unsent bytes are waiting for the client's address, or if too many large
    /// responses are waiting. Also returns an error response if the permits are not available within ten seconds.
    pub(super) async fn to_be_sent(&self, content: Content) -> Result<Content, Refusal> {
        if content.size() <= SMALL {
            return Ok(content);
        }
        // A response that exceeds the limit of an address takes all permits of the address, so it is sent when no
        // other response is.
        let permits = content.size().min(OF_ADDRESS[Share::Unsent as usize]) as u32;
        let own = self.share.of(Share::Unsent).try_acquire_many_owned(permits);
        let too_much = |_| {
            Refusal::unavailable(
                "earlier answers to your address are still being sent: read these \
                                                 answers first",
            )
        };
        let own = own.map_err(too_much)?;
        let unsent = || self.server.of(Share::Unsent);
        if let Ok(unsent) = unsent().try_acquire_many_owned(permits) {
            return Ok(content.holding((own, unsent)));
        }
        let waits = self.server.of(Share::Waiting).try_acquire_owned();
        let _waits = waits.map_err(|_| {
            Refusal::unavailable(
                "the server is sending too many large answers at once: try again later",
            )
        })?;
        let unsent = in_time(unsent().acquire_many_owned(permits)).await?;
        Ok(content.holding((own, unsent)))
    }
}

/// A guard that sets the stop flag of an operation when the guard is dropped. Each request that starts a long operation
/// owns such a guard, so the operation is cancelled if the client closes the connection.
#[derive(Default)]
pub(super) struct StopAtEnd(pub(super) Arc<AtomicBool>);

impl Drop for StopAtEnd {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Awaits a future as long as the client is connected.
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

/// Awaits a future for at most the time `limit`, as long as the client is connected.
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

/// Waits for a semaphore permit and returns it. `permit` is the future that acquires the permit. Returns an error
/// response if this takes longer than ten seconds.
pub(super) async fn in_time<T>(
    permit: impl Future<Output = Result<T, AcquireError>>,
) -> Result<T, Refusal> {
    match timeout(PERMIT_TIMEOUT, permit).await {
        Ok(Ok(permit)) => Ok(permit),
        _ => Err(Refusal::too_many()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn on_network() -> Clients {
        Clients::new([0, 0, 0, 0].into())
    }

    #[test]
    fn the_connections_of_an_address_share_and_leave_the_rest_to_others() {
        let mut clients = on_network();
        let mut share = |client: &str| clients.share_of(client.parse().unwrap());
        let first = share("10.0.0.1");
        assert!(Arc::ptr_eq(&first, &share("::ffff:10.0.0.1")));
        assert!(!Arc::ptr_eq(&first, &share("10.0.0.2")));
        let network = share("2001:db8:0:1::1");
        assert!(Arc::ptr_eq(&network, &share("2001:db8:0:1:ffff::")));
        assert!(!Arc::ptr_eq(&network, &share("2001:db8:0:2::")));
        assert_eq!(
            first.of(Share::Requests).available_permits(),
            OF_ADDRESS[Share::Requests as usize]
        );
        drop((first, network));
        // Entries of addresses without connections are removed when another address connects.
        share("10.0.0.3");
        assert_eq!(clients.shares.len(), 1);
    }

    #[test]
    fn large_answers_hold_permits_until_they_are_sent() {
        let runtime = tokio::runtime::Builder::new_current_thread();
        let runtime = { runtime }.enable_all().build().unwrap();
        runtime.block_on(async {
            let mut clients = on_network();
            let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
            let stream = TcpStream::connect(listener.local_addr().unwrap());
            let (stream, permit) = (stream.await.unwrap(), clients.connection_permit().await);
            let client = clients.enter(permit, stream, [10, 0, 0, 1].into());
            let (client, _stream) = client.unwrap();
            let content = |size| Content::pgn(vec![b'x'; size]);
            let unsent = || {
                OF_SERVER[Share::Unsent as usize]
                    - client.server.of(Share::Unsent).available_permits()
            };

            let small = client.to_be_sent(content(SMALL)).await.unwrap();
            assert_eq!(unsent(), 0);
            let large = client.to_be_sent(content(5 << 20)).await.unwrap();
            let etag = large.etag();
            let response = large.into_response(etag);
            assert_eq!(unsent(), 5 << 20);
            // This is more than the address may use, regardless of other addresses.
            let refusal = client.to_be_sent(content(12 << 20)).await;
            let refusal = refusal.map(|_| ()).unwrap_err();
            let advice = "read these answers first";
            assert_eq!(refusal.status(), 503);
            assert!(refusal.text().contains(advice), "{refusal:?}");
            drop((small, response));
            assert_eq!(unsent(), 0);
            client.to_be_sent(content(12 << 20)).await.unwrap();
            let largest = client.to_be_sent(content(24 << 20)).await.unwrap();
            assert_eq!(unsent(), OF_ADDRESS[Share::Unsent as usize]);
            drop(largest);
            assert_eq!(unsent(), 0);

            // While all of the server's bytes are taken, a few answers wait and further ones are refused.
            let server = Arc::clone(&client.server);
            let taken = server
                .of(Share::Unsent)
                .try_acquire_many_owned(OF_SERVER[Share::Unsent as usize] as u32);
            let _waiting = server
                .of(Share::Waiting)
                .try_acquire_many_owned(OF_SERVER[Share::Waiting as usize] as u32 - 1);
            let waits = client.to_be_sent(content(1 << 20));
            let mut waits = std::pin::pin!(waits);
            let soon = std::time::Duration::from_millis(10);
            assert!(timeout(soon, &mut waits).await.is_err());
            let refusal = client.to_be_sent(content(1 << 20)).await;
            assert_eq!(refusal.map(|_| ()).unwrap_err().status(), 503);
            drop(taken);
            assert!(waits.await.is_ok());
        });
    }
}
