//! The protocol over a child's standard streams: one message per line. Lines that are not messages
//! are ignored.

use std::collections::HashSet;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures_util::FutureExt as _;
use rmcp::RoleClient;
use rmcp::model::{
    ClientJsonRpcMessage, ClientRequest, JsonRpcMessage, RequestId, ServerJsonRpcMessage,
};
use rmcp::transport::Transport;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinSet;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use crate::connection::rate_limiter::RateLimiter;
use crate::transport::lines::{Line, Lines, answered};
use crate::transport::wire::{MESSAGE_BYTES_MAX, decode, encode, too_large, unreadable};

/// Messages queued for writing. When the queue is full, the sender waits.
const OUTGOING_MAX: usize = 32;

/// Received messages queued for handling. When the queue is full, reading pauses.
const INCOMING_MAX: usize = 4;

/// Time limit for one write. A server that reads slower counts as ended.
const WRITE_LIMIT: Duration = Duration::from_secs(30);

/// A server's standard streams.
pub(crate) struct StdioTransport {
    /// `None` once the input is closed.
    outgoing: Option<mpsc::Sender<Outgoing>>,
    incoming: mpsc::Receiver<ServerJsonRpcMessage>,
    pending: Pending,
    /// The reader and the writer; aborted on drop.
    _tasks: JoinSet<()>,
}

/// Ids of unanswered requests. Answers to other ids and duplicate answers are dropped.
#[derive(Clone, Default)]
struct Pending(Arc<Mutex<HashSet<RequestId>>>);

struct Outgoing {
    bytes: Vec<u8>,
    written: oneshot::Sender<io::Result<()>>,
}

impl StdioTransport {
    pub(crate) fn new(
        input: impl AsyncWrite + Send + Unpin + 'static,
        output: impl AsyncRead + Send + Unpin + 'static,
    ) -> Self {
        let (outgoing, to_write) = mpsc::channel(OUTGOING_MAX);
        let (read, incoming) = mpsc::channel(INCOMING_MAX);
        let pending = Pending::default();
        let broken = CancellationToken::new();
        let reading = self::read(output, read, pending.clone());
        let mut tasks = JoinSet::new();
        tasks.spawn(broken.clone().run_until_cancelled_owned(reading).map(drop));
        tasks.spawn(write(input, to_write, broken));
        Self { outgoing: Some(outgoing), incoming, pending, _tasks: tasks }
    }
}

impl Transport<RoleClient> for StdioTransport {
    type Error = io::Error;

    /// Safe to cancel: a message is written whole or not at all.
    fn send(
        &mut self,
        message: ClientJsonRpcMessage,
    ) -> impl Future<Output = io::Result<()>> + Send + 'static {
        let closed = || io::Error::from(io::ErrorKind::BrokenPipe);
        let outgoing = self.outgoing.clone();
        let bytes = encode(&message).map_err(io::Error::from);
        self.pending.sent(&message);
        async move {
            let (written, answer) = oneshot::channel();
            let mut bytes = bytes?;
            bytes.push(b'\n');
            let outgoing = outgoing.ok_or_else(closed)?;
            outgoing.send(Outgoing { bytes, written }).await.map_err(|_| closed())?;
            answer.await.map_err(|_| closed())?
        }
    }

    async fn receive(&mut self) -> Option<ServerJsonRpcMessage> {
        self.incoming.recv().await
    }

    /// Closes the server's standard input once the queued messages are written.
    async fn close(&mut self) -> io::Result<()> {
        self.outgoing = None;
        Ok(())
    }
}

impl Pending {
    fn sent(&self, message: &ClientJsonRpcMessage) {
        let JsonRpcMessage::Request(request) = message else {
            return;
        };
        let mut ids = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if matches!(request.request, ClientRequest::InitializeRequest(_)) {
            // The answer to an earlier probe may arrive late.
            ids.clear();
        }
        ids.insert(request.id.clone());
    }

    /// Whether the message is expected: any request or notification, or the answer to a pending
    /// request.
    fn expects(&self, message: &ServerJsonRpcMessage) -> bool {
        let id = match message {
            JsonRpcMessage::Response(response) => &response.id,
            JsonRpcMessage::Error(error) => match &error.id {
                Some(id) => id,
                // The server could not parse a request, so the error has no id.
                None => return true,
            },
            JsonRpcMessage::Request(_) | JsonRpcMessage::Notification(_) => return true,
        };
        let mut ids = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let number = match id {
            RequestId::Number(_) => None,
            // Some servers answer 7 with "7".
            RequestId::String(text) => text.parse().ok().map(RequestId::Number),
        };
        ids.remove(id) || number.is_some_and(|number| ids.remove(&number))
    }
}

/// Writes queued messages. A failed write breaks the connection.
async fn write(
    mut input: impl AsyncWrite + Unpin,
    mut to_write: mpsc::Receiver<Outgoing>,
    broken: CancellationToken,
) {
    while let Some(Outgoing { bytes, written }) = to_write.recv().await {
        let writing = async {
            input.write_all(&bytes).await?;
            input.flush().await
        };
        let result = match timeout(WRITE_LIMIT, writing).await {
            Ok(result) => result,
            Err(_) => Err(io::Error::from(io::ErrorKind::TimedOut)),
        };
        let failed = result.is_err();
        // The sender may have been canceled.
        let _ = written.send(result);
        if failed {
            // A partial message may have been written, so the server could not parse what follows.
            broken.cancel();
            return;
        }
    }
}

async fn read(
    output: impl AsyncRead + Unpin,
    incoming: mpsc::Sender<ServerJsonRpcMessage>,
    pending: Pending,
) {
    let mut lines = Lines::new(output, MESSAGE_BYTES_MAX);
    let mut garbage = RateLimiter::for_messages();
    loop {
        let message = match lines.next().await {
            Ok(Line::Whole(line)) => decode(&line).ok().or_else(|| answered(&line).map(unreadable)),
            Ok(Line::TooLong(id)) => {
                tracing::warn!(
                    "an MCP server sent a message larger than {MESSAGE_BYTES_MAX} bytes"
                );
                id.map(too_large)
            }
            Ok(Line::End) => return,
            Err(error) => {
                tracing::warn!("an MCP server cannot be read: {error}");
                return;
            }
        };
        match message.filter(|message| pending.expects(message)) {
            Some(message) => {
                if incoming.send(message).await.is_err() {
                    return;
                }
            }
            None => garbage.acquire(1).await,
        }
    }
}
