//! Who asks: whether a client is still there, and how much of the server it takes.
//!
//! What requests take, they take twice: of what the whole server has, and of the share of the client's address. So one
//! address cannot keep the others from being answered.

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

/// How long a request waits for its share of the limits.
const WAITING: Duration = Duration::from_secs(10);

/// The largest answer that needs no permit until it is sent. The system's own buffers hold about as much.
const SMALL: usize = 64 << 10;

/// How many bytes the system keeps that a client has not read. A write goes on when a third of them is free: with the
/// megabytes that the system would keep on this machine, a client that reads slowly looks like one that does not read.
const SENT_AHEAD: u32 = 128 << 10;

/// What clients take.
#[derive(Copy, Clone)]
enum Share {
    /// Those beyond wait to be accepted.
    Connections,
    /// Requests that are answered. More wait.
    Requests,
    /// Requests that read games' texts or wait to, so that counts are still answered.
    Texts,
    /// Requests that make books or wait to.
    Books,
    /// Bytes of large answers that are not sent yet.
    Unsent,
    /// Large answers that wait until others are sent.
    Waiting,
}

/// How much clients may take at once of each [`Share`], in their order.
type ClientLimits = [usize; 6];

const OF_SERVER: ClientLimits = [4096, 256, 64, 4, 64 << 20, 8];
const OF_ADDRESS: ClientLimits = [256, 32, 2, 2, 16 << 20, Semaphore::MAX_PERMITS];

/// On this machine all clients have the same address.
const OF_THIS_MACHINE: ClientLimits = [Semaphore::MAX_PERMITS; 6];

/// Permits, as many as the limits say.
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

/// All clients of a server.
pub(super) struct Clients {
    server: Arc<Capacity>,
    share: ClientLimits,
    /// The shares of the addresses that have connections.
    shares: HashMap<IpAddr, Weak<Capacity>>,
}

/// The client of a connection. The connection counts until nothing is done for the client any more.
#[derive(Clone)]
pub(super) struct Client {
    stream: Arc<net::TcpStream>,
    server: Arc<Capacity>,
    share: Arc<Capacity>,
    _places: Arc<[OwnedSemaphorePermit; 2]>,
}

impl Clients {
    /// No clients yet of a server that listens at this address.
    pub(super) fn new(listening: IpAddr) -> Clients {
        let (mut server, mut share) = (OF_SERVER, OF_ADDRESS);
        let connections = most_connections();
        server[Share::Connections as usize] = connections;
        // Where there may be few open files, an address may have a quarter of the places.
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

    /// A place for a connection, once one is free.
    pub(super) async fn place(&self) -> OwnedSemaphorePermit {
        let place = self.server.of(Share::Connections).acquire_owned().await;
        place.expect("nobody closes the semaphore")
    }

    /// The client of a stream, and the stream for another runtime; `None` if its address has too many connections, or the system has
    /// no more open files.
    pub(super) fn enter(
        &mut self,
        place: OwnedSemaphorePermit,
        stream: TcpStream,
        address: IpAddr,
    ) -> Option<(Client, net::TcpStream)> {
        let share = self.share_of(address);
        let own = share.of(Share::Connections).try_acquire_owned().ok()?;
        let stream = stream.into_std().ok()?;
        let socket = TcpSocket::from_std_stream(stream.try_clone().ok()?);
        // Without it the system sends as it likes.
        let _ = socket.set_send_buffer_size(SENT_AHEAD);
        let client = Client {
            stream: Arc::new(stream.try_clone().ok()?),
            server: Arc::clone(&self.server),
            share,
            _places: Arc::new([place, own]),
        };
        Some((client, stream))
    }

    /// The share of an address, which all of its connections have in common.
    fn share_of(&mut self, address: IpAddr) -> Arc<Capacity> {
        let address = owned(address);
        if let Some(share) = self.shares.get(&address).and_then(Weak::upgrade) {
            return share;
        }
        self.shares.retain(|_, share| share.strong_count() > 0);
        let share = Capacity::new(self.share);
        self.shares.insert(address, Arc::downgrade(&share));
        share
    }
}

/// How many connections there may be: each takes two open files, and half of those that there may be are for an index,
/// some for the games and the program itself. Eight are left however few open files there may be.
#[cfg(unix)]
fn most_connections() -> usize {
    let soft = rlimit::Resource::NOFILE.get().map_or(0, |(soft, _)| soft);
    let files = usize::try_from(soft / 2).unwrap_or(usize::MAX);
    (files.saturating_sub(64) / 2).clamp(8, OF_SERVER[Share::Connections as usize])
}

/// Elsewhere the system has no limit that matters.
#[cfg(not(unix))]
fn most_connections() -> usize {
    OF_SERVER[Share::Connections as usize]
}

/// What one client has for itself: an IPv4 address, or the 64 bits of a network of IPv6.
fn owned(client: IpAddr) -> IpAddr {
    match client.to_canonical() {
        IpAddr::V4(address) => address.into(),
        IpAddr::V6(address) => {
            let network = address.to_bits() >> 64 << 64;
            IpAddr::V6(network.into())
        }
    }
}

impl Client {
    /// Whether the client has hung up, which hyper does not always notice. Never waits.
    pub(super) fn is_gone(&self) -> bool {
        match self.stream.peek(&mut [0]) {
            Ok(waiting) => waiting == 0,
            Err(err) => err.kind() != ErrorKind::WouldBlock,
        }
    }

    /// A place for a request, once one is free.
    ///
    /// # Errors
    ///
    /// Waiting too long.
    pub(super) async fn place_for_request(&self) -> Result<impl Send + use<>, Refusal> {
        let own = in_time(self.share.of(Share::Requests).acquire_owned()).await?;
        let place = in_time(self.server.of(Share::Requests).acquire_owned()).await?;
        Ok((own, place))
    }

    /// A place for a request for games' texts, once the client's address has one.
    ///
    /// # Errors
    ///
    /// Waiting too long, and too many requests of all clients.
    pub(super) async fn place_for_texts(&self) -> Result<impl Send + use<>, Refusal> {
        let own = in_time(self.share.of(Share::Texts).acquire_owned()).await?;
        let place = self.server.of(Share::Texts).try_acquire_owned();
        let too_many = |_| Refusal::unavailable("too many games are being read: ask again");
        Ok((own, place.map_err(too_many)?))
    }

    /// A place for a request for a book.
    ///
    /// # Errors
    ///
    /// Too many requests of the client's address, or of all clients.
    pub(super) fn place_for_book(&self) -> Result<impl Send + use<>, Refusal> {
        let place = |of: &Capacity| of.of(Share::Books).try_acquire_owned();
        let too_many = |_| Refusal::unavailable("too many books are being made: ask again");
        let own = place(&self.share).map_err(too_many)?;
        Ok((own, place(&self.server).map_err(too_many)?))
    }

    /// A content that takes permits until it is sent, if it is large.
    ///
    /// # Errors
    ///
    /// An address that has too much to read, and too many that wait, or wait too long, for others to read theirs.
    pub(super) async fn to_be_sent(&self, content: Content) -> Result<Content, Refusal> {
        if content.size() <= SMALL {
            return Ok(content);
        }
        // One that is larger than a share is sent too, when nothing else is.
        let permits = content.size().min(OF_ADDRESS[Share::Unsent as usize]) as u32;
        let own = self.share.of(Share::Unsent).try_acquire_many_owned(permits);
        let too_much = |_| Refusal::unavailable("read the answers that you asked for before");
        let own = own.map_err(too_much)?;
        let unsent = || self.server.of(Share::Unsent);
        if let Ok(unsent) = unsent().try_acquire_many_owned(permits) {
            return Ok(content.holding((own, unsent)));
        }
        let waits = self.server.of(Share::Waiting).try_acquire_owned();
        let _waits =
            waits.map_err(|_| Refusal::unavailable("too many large answers: ask again"))?;
        let unsent = in_time(unsent().acquire_many_owned(permits)).await?;
        Ok(content.holding((own, unsent)))
    }
}

/// A permit, or a refusal once that takes too long.
pub(super) async fn in_time<T>(
    permit: impl Future<Output = Result<T, AcquireError>>,
) -> Result<T, Refusal> {
    match timeout(WAITING, permit).await {
        Ok(Ok(permit)) => Ok(permit),
        _ => Err(Refusal::unavailable("too many requests at once: ask again")),
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
        // Those of addresses without connections go when another comes.
        share("10.0.0.3");
        assert_eq!(clients.shares.len(), 1);
    }

    #[test]
    fn large_answers_are_counted_until_they_are_sent() {
        let runtime = tokio::runtime::Builder::new_current_thread();
        let runtime = { runtime }.enable_all().build().unwrap();
        runtime.block_on(async {
            let mut clients = on_network();
            let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
            let stream = TcpStream::connect(listener.local_addr().unwrap());
            let (stream, place) = (stream.await.unwrap(), clients.place().await);
            let client = clients.enter(place, stream, [10, 0, 0, 1].into());
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
            // More than the address may have, whatever others read.
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
