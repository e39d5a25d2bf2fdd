//! A connection to a host that counts its bytes and ends when it is idle for too long.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::{Instant, Sleep, sleep};

use crate::traffic::Counters;

/// How long a connection may carry nothing before it is ended.
pub const IDLE_MAX: Duration = Duration::from_secs(600);

/// Most bytes of one call, in both directions together. Then its connections end.
pub const TRANSFER_BYTES_MAX: u64 = 16 << 30;

/// A connection to a host.
pub(crate) struct Metered {
    stream: TcpStream,
    counters: Arc<Counters>,
    total: Arc<AtomicU64>,
    idle: Pin<Box<Sleep>>,
}

impl Metered {
    pub(crate) fn new(stream: TcpStream, counters: Arc<Counters>, total: Arc<AtomicU64>) -> Self {
        Self { stream, counters, total, idle: Box::pin(sleep(IDLE_MAX)) }
    }

    /// Adds to the bytes of the call. Fails when they are too many.
    fn moved(&mut self, bytes: usize) -> io::Result<u64> {
        let bytes = bytes as u64;
        self.idle.as_mut().reset(Instant::now() + IDLE_MAX);
        if self.total.fetch_add(bytes, Ordering::Relaxed) + bytes > TRANSFER_BYTES_MAX {
            return Err(io::Error::from(io::ErrorKind::QuotaExceeded));
        }
        Ok(bytes)
    }

    /// Fails when the connection has been idle for too long.
    fn poll_idle<T>(&mut self, context: &mut Context<'_>) -> Poll<io::Result<T>> {
        ready!(self.idle.as_mut().poll(context));
        Poll::Ready(Err(io::Error::from(io::ErrorKind::TimedOut)))
    }
}

impl AsyncRead for Metered {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let before = buffer.filled().len();
        match Pin::new(&mut this.stream).poll_read(context, buffer) {
            Poll::Ready(Ok(())) => {
                let bytes = this.moved(buffer.filled().len() - before)?;
                this.counters.add_received(bytes);
                Poll::Ready(Ok(()))
            }
            Poll::Ready(Err(error)) => Poll::Ready(Err(error)),
            Poll::Pending => this.poll_idle(context),
        }
    }
}

impl AsyncWrite for Metered {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        match Pin::new(&mut this.stream).poll_write(context, bytes) {
            Poll::Ready(Ok(written)) => {
                let bytes = this.moved(written)?;
                this.counters.add_sent(bytes);
                Poll::Ready(Ok(written))
            }
            Poll::Ready(Err(error)) => Poll::Ready(Err(error)),
            Poll::Pending => this.poll_idle(context),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_flush(context)
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_shutdown(context)
    }
}
