//! The stream of a connection, which does not wait for ever until its client reads.

use std::{
    io,
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    time::{Sleep, sleep},
};

/// How long a write may wait for a client that does not read.
const PATIENCE: Duration = Duration::from_secs(5);

/// A stream whose writes fail when the client has taken nothing for a while. Without that, clients that ask and never
/// read would keep their connections and answers for ever.
pub(super) struct Patient<S> {
    stream: S,
    /// Runs from the first write that had to wait until one takes bytes.
    end: Option<Pin<Box<Sleep>>>,
}

impl<S> Patient<S> {
    pub(super) fn new(stream: S) -> Patient<S> {
        Patient { stream, end: None }
    }

    /// The answer to a write, or an error once it has waited too long.
    fn in_time(
        &mut self,
        context: &mut Context<'_>,
        written: Poll<io::Result<usize>>,
    ) -> Poll<io::Result<usize>> {
        if written.is_pending() {
            let end = self.end.get_or_insert_with(|| Box::pin(sleep(PATIENCE)));
            if end.as_mut().poll(context).is_ready() {
                return Poll::Ready(Err(io::ErrorKind::TimedOut.into()));
            }
        } else {
            self.end = None;
        }
        written
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Patient<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Patient<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.in_time(context, written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(context, bytes);
        self.in_time(context, written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;

    use super::*;

    /// A client that takes a byte each time this has passed.
    struct Slow {
        pause: Duration,
        next: Pin<Box<Sleep>>,
    }

    impl Slow {
        fn new(pause: Duration) -> Slow {
            let next = Box::pin(sleep(pause));
            Slow { pause, next }
        }
    }

    impl AsyncWrite for Slow {
        fn poll_write(
            mut self: Pin<&mut Self>,
            context: &mut Context<'_>,
            _: &[u8],
        ) -> Poll<io::Result<usize>> {
            let taken = self.next.as_mut().poll(context).map(|()| Ok(1));
            if taken.is_ready() {
                *self = Slow::new(self.pause);
            }
            taken
        }

        fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }

        fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }
    }

    /// How many of three bytes are written to a client, and the error after that.
    async fn written(pause: Duration) -> (usize, Option<io::ErrorKind>) {
        let mut stream = Patient::new(Slow::new(pause));
        for count in 0..3 {
            let byte = poll_fn(|context| Pin::new(&mut stream).poll_write(context, &[0]));
            if let Err(err) = byte.await {
                return (count, Some(err.kind()));
            }
        }
        (3, None)
    }

    #[test]
    fn a_client_that_reads_nothing_is_given_up_and_a_slow_one_is_served() {
        let mut runtime = tokio::runtime::Builder::new_current_thread();
        let runtime = runtime.enable_time().build().unwrap();
        let (deaf, slow) =
            runtime.block_on(async { tokio::join!(written(4 * PATIENCE), written(PATIENCE / 2)) });
        assert_eq!(deaf, (0, Some(io::ErrorKind::TimedOut)));
        assert_eq!(slow, (3, None));
    }
}
