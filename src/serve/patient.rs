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

/// How long what is to be written may wait for a client that does not read.
const PATIENCE: Duration = Duration::from_secs(5);

/// A stream whose writes fail when the client has not taken all that waits for it in time. Without that, clients that
/// ask and never read would keep their connections and answers for ever.
pub(super) struct Patient<S> {
    stream: S,
    /// Runs from the first write that had to wait until all is written.
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
        // Flushing comes after all is written.
        self.end = None;
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

    /// A client that takes so many bytes.
    struct Slow(usize);

    impl AsyncWrite for Slow {
        fn poll_write(
            mut self: Pin<&mut Self>,
            _: &mut Context<'_>,
            _: &[u8],
        ) -> Poll<io::Result<usize>> {
            match self.0.checked_sub(1) {
                Some(left) => {
                    self.0 = left;
                    Poll::Ready(Ok(1))
                }
                None => Poll::Pending,
            }
        }

        fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }

        fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }
    }

    #[test]
    fn a_client_that_does_not_read_is_given_up() {
        let mut runtime = tokio::runtime::Builder::new_current_thread();
        let runtime = runtime.enable_time().build().unwrap();
        let begun = std::time::Instant::now();
        let mut stream = Patient::new(Slow(1));
        let write = |stream: &mut Patient<Slow>| {
            runtime.block_on(poll_fn(|context| {
                Pin::new(&mut *stream).poll_write(context, &[0])
            }))
        };
        assert_eq!(write(&mut stream).unwrap(), 1);
        let err = write(&mut stream).unwrap_err();
        assert_eq!(err.kind(), io::ErrorKind::TimedOut);
        assert!(begun.elapsed() >= PATIENCE);
        // A byte now and then does not begin the time anew.
        stream.stream.0 = 1;
        assert_eq!(write(&mut stream).unwrap(), 1);
        let err = write(&mut stream).unwrap_err();
        assert_eq!(err.kind(), io::ErrorKind::TimedOut);
        assert!(begun.elapsed() < 2 * PATIENCE);
    }
}
