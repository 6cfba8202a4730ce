//! Clients of the server: whether they are still connected, and how much of the server they may use.
//!
//! Every limited resource is limited twice, for the whole server and for each address, so that no single address can
//! block all others.

use std::{
    collections::HashMap,
    io::ErrorKind,
    net::{self, IpAddr},
    sync::{Arc, Weak},
    time::Duration,
};

use tokio::{
    net::{TcpSocket, TcpStream},
    sync::{AcquireError, OwnedSemaphorePermit, Semaphore},
    time::timeout,
};

use super::{Refusal, content::Content};

/// The maximum time that a request waits for a permit to use a limited resource of the server, such as a thread that
/// reads games.
const PERMIT_TIMEOUT: Duration = Duration::from_secs(10);

/// The maximum size, in bytes, of a response that is sent without acquiring a permit from the semaphore that limits the
/// bytes of unsent responses. The send buffers of the operating system have about this size.
const SMALL: usize = 64 << 10;

/// The size, in bytes, of the send buffer of a connection. A blocked write continues when a third of the buffer is
/// free. The default of several megabytes is too large: a client that reads slowly would look like a client that does
/// not read.
const SEND_BUFFER: u32 = 128 << 10;

/// A resource of the server of which each client can use a limited amount.
#[derive(Copy, Clone)]
enum Share {
    /// Connections. Further connections wait to be accepted.
    Connections,
    /// Requests that are being answered. Further requests wait.
    Requests,
    /// Requests that read the texts of games, or wait to. They are limited so that counts are still answered.
    Texts,
    /// Requests that make books, or wait to.
    Books,
    /// Bytes of large answers that are not sent yet.
    Unsent,
    /// Large answers that wait until others are sent.
    Waiting,
}

/// The maximum amount of each [`Share`] that may be in use, in the order of its variants.
type ClientLimits = [usize; 6];

/// The limits of the whole server, for all clients together: 4096 connections, 256 requests, 64 requests for texts of
/// games, 4 requests for books, 64 MiB of answers that are not sent, and 8 answers that wait to be sent. The numbers
/// are in the order of the variants of [`Share`].
const OF_SERVER: ClientLimits = [4096, 256, 64, 4, 64 << 20, 8];
/// The limits for each IP address, for all its clients together. They are in the order of the variants of [`Share`].
const OF_ADDRESS: ClientLimits = [256, 32, 2, 2, 16 << 20, Semaphore::MAX_PERMITS];

/// The limits for each IP address if the server listens only on the local machine. All clients then have the same
/// address, so nothing is limited.
const OF_THIS_MACHINE: ClientLimits = [Semaphore::MAX_PERMITS; 6];

/// The semaphores that enforce the limits of the server or of one address, one for each [`Share`].
struct Capacity([Arc<Semaphore>; 6]);

impl Capacity {
    fn new(limits: ClientLimits) -> Arc<Capacity> {
        let permits = limits.map(|count| Arc::new(Semaphore::new(count)));
        Arc::new(Capacity(permits))
    }

    fn of(&self, share: Share) -> Arc<Semaphore> {
        Arc::clone(&self.0[share as usize])
    }
}

/// The clients of a server, and the limits for them.
pub(super) struct Clients {
    /// The semaphores of the whole server.
    server: Arc<Capacity>,
    /// The limits of each address.
    share: ClientLimits,
    /// The semaphores of the addresses that have connections.
    shares: HashMap<IpAddr, Weak<Capacity>>,
}

/// The client of one connection. The permits of the semaphores that limit connections are held until the last clone is
/// dropped.
#[derive(Clone)]
pub(super) struct Client {
    stream: Arc<net::TcpStream>,
    server: Arc<Capacity>,
    share: Arc<Capacity>,
    _permits: Arc<[OwnedSemaphorePermit; 2]>,
}

impl Clients {
    /// Creates the record of clients for a server that listens at the address `listening`.
    pub(super) fn new(listening: IpAddr) -> Clients {
        let (mut server, mut share) = (OF_SERVER, OF_ADDRESS);
        let connections = most_connections();
        server[Share::Connections as usize] = connections;
        // If the process may open few files, one address may use at most a quarter of the connections.
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

    /// Waits until the server may accept another connection, and returns a permit of the semaphore that limits
    /// connections.
    pub(super) async fn connection_permit(&self) -> OwnedSemaphorePermit {
        let permit = self.server.of(Share::Connections).acquire_owned().await;
        permit.expect("nobody closes the semaphore")
    }

    /// Registers the client of an accepted connection. `permit` is a permit of the server's semaphore of connections,
    /// which the client holds. Returns the client, and the stream for use in another runtime.
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

    /// Returns the semaphores that all connections of an IP address share.
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

/// Returns the maximum number of connections, which is at least eight. Each connection takes two open files. Half of
/// the files that the process may open are reserved for indexes, and some for games and the program itself.
#[cfg(unix)]
fn most_connections() -> usize {
    let soft = rlimit::Resource::NOFILE.get().map_or(0, |(soft, _)| soft);
    let files = usize::try_from(soft / 2).unwrap_or(usize::MAX);
    (files.saturating_sub(64) / 2).clamp(8, OF_SERVER[Share::Connections as usize])
}

/// Returns the maximum number of connections. Systems other than Unix do not limit open files to a number that matters.
#[cfg(not(unix))]
fn most_connections() -> usize {
    OF_SERVER[Share::Connections as usize]
}

/// Returns the part of an IP address that one client controls: an IPv4 address as a whole, or the 64-bit network of an
/// IPv6 address.
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
    /// Returns `true` if the client has closed the connection. Does not block. hyper does not always notice a closed
    /// connection.
    pub(super) fn is_gone(&self) -> bool {
        match self.stream.peek(&mut [0]) {
            Ok(waiting) => waiting == 0,
            Err(err) => err.kind() != ErrorKind::WouldBlock,
        }
    }

    /// Waits for two semaphore permits to answer a request: first for one of the client's address, then for one of the
    /// server. Dropping the result returns both permits.
    ///
    /// # Errors
    ///
    /// Returns a refusal if a permit is not available within ten seconds.
    pub(super) async fn request_permits(&self) -> Result<impl Send + use<>, Refusal> {
        let own = in_time(self.share.of(Share::Requests).acquire_owned()).await?;
        let permit = in_time(self.server.of(Share::Requests).acquire_owned()).await?;
        Ok((own, permit))
    }

    /// Acquires two semaphore permits to read the texts of games: waits for one of the client's address, and then takes
    /// one of the server without waiting. Dropping the result returns both permits.
    ///
    /// # Errors
    ///
    /// Returns a refusal if the permit of the address is not available within ten seconds, or if the permit of the
    /// server is not available at once.
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

    /// Takes the semaphore permits to make a book, without waiting for them. Dropping the result returns the permits.
    ///
    /// # Errors
    ///
    /// Returns a refusal if the client's address, or all clients together, are making too many books.
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

    /// Attaches semaphore permits for sending a large response to `content`. They are returned when the response has
    /// been sent. A small response needs no permits and is returned unchanged.
    ///
    /// # Errors
    ///
    /// Returns a refusal if the client's address has too much unread data, if too many large answers are waiting, or if
    /// the permits are not available within ten seconds.
    pub(super) async fn to_be_sent(&self, content: Content) -> Result<Content, Refusal> {
        if content.size() <= SMALL {
            return Ok(content);
        }
        // A content that is larger than the limit of an address takes the whole limit, so it is sent when nothing else
        // is being sent.
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

/// Waits for a semaphore permit and returns it. Returns a refusal if the permit is not available within ten seconds.
pub(super) async fn in_time<T>(
    permit: impl Future<Output = Result<T, AcquireError>>,
) -> Result<T, Refusal> {
    match timeout(PERMIT_TIMEOUT, permit).await {
        Ok(Ok(permit)) => Ok(permit),
        _ => Err(Refusal::unavailable(
            "the server is answering too many requests at once: try again later",
        )),
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
            assert_eq!(refusal.map(|_| ()).unwrap_err().status(), 503);
            drop((small, response));
            assert_eq!(unsent(), 0);
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
