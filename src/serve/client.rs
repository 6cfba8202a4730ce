//! Whether the client of a connection is still there. hyper does not always notice that it has hung up.

use std::{
    io::{self, ErrorKind},
    net,
    sync::Arc,
};

use tokio::net::TcpStream;

/// The client of a connection.
#[derive(Clone)]
pub(super) struct Client(Arc<net::TcpStream>);

impl Client {
    /// The client of a stream, which goes on as before.
    ///
    /// # Errors
    ///
    /// A system that has no more open files.
    pub(super) fn of(stream: TcpStream) -> io::Result<(Client, TcpStream)> {
        let stream = stream.into_std()?;
        let client = Client(Arc::new(stream.try_clone()?));
        Ok((client, TcpStream::from_std(stream)?))
    }

    /// Whether the client has hung up. Never waits.
    pub(super) fn is_gone(&self) -> bool {
        match self.0.peek(&mut [0]) {
            Ok(waiting) => waiting == 0,
            Err(err) => err.kind() != ErrorKind::WouldBlock,
        }
    }
}
