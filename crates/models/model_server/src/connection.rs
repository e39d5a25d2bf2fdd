//! One connection: requests in, replies out.

use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, PoisonError};

use antiphon_conformance::provider::Traffic;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;
use tokio::sync::watch;

use crate::{Ending, Part, RecordedRequest, Release, Reply, Shared};

/// Largest request, in bytes. The connection of a larger one is closed.
const REQUEST_BYTES_MAX: usize = 64 * 1024 * 1024;

/// Longest header line, in bytes. The connection of a longer one is closed.
const LINE_BYTES_MAX: u64 = 64 * 1024;

pub(crate) async fn serve(socket: TcpStream, shared: Arc<Shared>) {
    shared.connections.fetch_add(1, Ordering::SeqCst);
    let _open = OpenConnection::new(&shared);
    // A peer that disconnects ends the connection: nothing else to do.
    let _ = exchange(socket, &shared).await;
}

struct OpenConnection<'a>(&'a Shared);

impl<'a> OpenConnection<'a> {
    fn new(shared: &'a Shared) -> Self {
        shared.open.fetch_add(1, Ordering::SeqCst);
        Self(shared)
    }
}

impl Drop for OpenConnection<'_> {
    fn drop(&mut self) {
        self.0.open.fetch_sub(1, Ordering::SeqCst);
    }
}

/// A request that is being answered.
struct ActiveRequest<'a> {
    traffic: &'a watch::Sender<Traffic>,
    /// Number of requests before it.
    number: usize,
}

impl<'a> ActiveRequest<'a> {
    fn new(traffic: &'a watch::Sender<Traffic>) -> Self {
        let mut number = 0;
        traffic.send_modify(|traffic| {
            number = traffic.begun;
            traffic.begun += 1;
            traffic.open += 1;
        });
        Self { traffic, number }
    }
}

impl Drop for ActiveRequest<'_> {
    fn drop(&mut self) {
        self.traffic.send_modify(|traffic| traffic.open -= 1);
    }
}

async fn exchange(socket: TcpStream, shared: &Shared) -> io::Result<()> {
    socket.set_nodelay(true)?;
    let mut socket = BufReader::new(socket);
    while let Some(request) = read_request(&mut socket).await? {
        let answering = ActiveRequest::new(&shared.traffic);
        let reply = (shared.answer)(&request, answering.number);
        if shared.record {
            shared.requests.lock().unwrap_or_else(PoisonError::into_inner).push(request);
        }
        write_reply(&mut socket, &reply, shared).await?;
        match reply.ending {
            Ending::Complete => {}
            Ending::Cut | Ending::Raw => return Ok(()),
            Ending::Stall => {
                // Until the peer disconnects.
                tokio::io::copy(&mut socket, &mut tokio::io::sink()).await?;
                return Ok(());
            }
        }
    }
    Ok(())
}

/// The next request; `None` when the peer disconnects before it. A partial request is an error.
async fn read_request(socket: &mut BufReader<TcpStream>) -> io::Result<Option<RecordedRequest>> {
    let Some(line) = read_line(socket).await? else {
        return Ok(None);
    };
    let mut words = line.split_whitespace();
    let method = words.next().unwrap_or_default().to_owned();
    let path = words.next().unwrap_or_default().to_owned();
    let mut headers = Vec::new();
    loop {
        let line = read_line(socket).await?.ok_or(io::ErrorKind::UnexpectedEof)?;
        let Some((name, value)) = line.split_once(':') else {
            break;
        };
        headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
    }
    let length = headers.iter().find(|(name, _)| name == "content-length");
    let length = length.and_then(|(_, value)| value.parse().ok()).unwrap_or_default();
    if length > REQUEST_BYTES_MAX {
        return Err(io::ErrorKind::FileTooLarge.into());
    }
    let mut body = vec![0; length];
    socket.read_exact(&mut body).await?;
    Ok(Some(RecordedRequest { method, path, headers, body }))
}

/// The next line without its end; `None` at the end of the stream.
async fn read_line(socket: &mut BufReader<TcpStream>) -> io::Result<Option<String>> {
    let mut line = String::new();
    (&mut *socket).take(LINE_BYTES_MAX).read_line(&mut line).await?;
    match line.strip_suffix('\n') {
        Some(line) => Ok(Some(line.trim_end().to_owned())),
        None if line.is_empty() => Ok(None),
        None => Err(io::ErrorKind::UnexpectedEof.into()),
    }
}

async fn write_reply(
    socket: &mut BufReader<TcpStream>,
    reply: &Reply,
    shared: &Shared,
) -> io::Result<()> {
    let framed = reply.ending != Ending::Raw;
    if framed {
        let mut head = format!("HTTP/1.1 {} Model\r\ntransfer-encoding: chunked\r\n", reply.status);
        for (name, value) in &reply.headers {
            head.extend([name, ": ", value, "\r\n"]);
        }
        head.push_str("\r\n");
        socket.write_all(head.as_bytes()).await?;
    }
    for part in &reply.parts {
        match part {
            Part::Wait(duration) => tokio::select! {
                () = tokio::time::sleep(*duration) => {}
                error = hung_up(socket) => return Err(error),
            },
            Part::Hold => hold(socket, shared).await?,
            Part::Bytes(bytes) if bytes.is_empty() => {}
            Part::Bytes(bytes) if framed => {
                let mut chunk = format!("{:x}\r\n", bytes.len()).into_bytes();
                chunk.extend_from_slice(bytes);
                chunk.extend_from_slice(b"\r\n");
                socket.write_all(&chunk).await?;
            }
            Part::Bytes(bytes) => socket.write_all(bytes).await?,
        }
    }
    if reply.ending == Ending::Complete {
        socket.write_all(b"0\r\n\r\n").await?;
    }
    socket.flush().await
}

/// Waits until the test releases held replies.
async fn hold(socket: &mut BufReader<TcpStream>, shared: &Shared) -> io::Result<()> {
    let _held = HeldReply::new(&shared.held);
    let mut release = shared.release.subscribe();
    let released = async { release.wait_for(Option::is_some).await.ok().and_then(|found| *found) };
    tokio::select! {
        released = released => match released {
            Some(Release::Continue) => Ok(()),
            Some(Release::Cut) | None => Err(io::ErrorKind::ConnectionAborted.into()),
        },
        error = hung_up(socket) => Err(error),
    }
}

/// Counts a held reply.
struct HeldReply<'a>(&'a AtomicUsize);

impl<'a> HeldReply<'a> {
    fn new(held: &'a AtomicUsize) -> Self {
        held.fetch_add(1, Ordering::SeqCst);
        Self(held)
    }
}

impl Drop for HeldReply<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Waits until the peer disconnects. A peer that sends more has not, and what it sends is not read.
async fn hung_up(socket: &mut BufReader<TcpStream>) -> io::Error {
    match socket.fill_buf().await {
        Ok([]) => io::ErrorKind::ConnectionAborted.into(),
        Ok(_) => std::future::pending().await,
        Err(error) => error,
    }
}
