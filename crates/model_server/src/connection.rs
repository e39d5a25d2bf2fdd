//! One connection: requests in, replies out.

use std::io;
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};

use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;

use crate::{Ending, Part, Recorded, Reply, Shared};

/// Largest request.
const REQUEST_BYTES_MAX: u64 = 64 * 1024 * 1024;

pub(crate) async fn serve(socket: TcpStream, shared: Arc<Shared>) {
    shared.connections.fetch_add(1, Ordering::SeqCst);
    let _open = Open::new(&shared);
    // A peer that goes away ends the connection, which is all there is to do about it.
    let _ = exchange(socket, &shared).await;
}

struct Open<'a>(&'a Shared);

impl<'a> Open<'a> {
    fn new(shared: &'a Shared) -> Self {
        shared.open.fetch_add(1, Ordering::SeqCst);
        Self(shared)
    }
}

impl Drop for Open<'_> {
    fn drop(&mut self) {
        self.0.open.fetch_sub(1, Ordering::SeqCst);
    }
}

async fn exchange(socket: TcpStream, shared: &Shared) -> io::Result<()> {
    socket.set_nodelay(true)?;
    let mut socket = BufReader::new(socket);
    while let Some(request) = read_request(&mut socket).await? {
        let number = shared.served.fetch_add(1, Ordering::SeqCst);
        let reply = (shared.answer)(&request, number);
        if shared.record {
            shared.requests.lock().unwrap_or_else(PoisonError::into_inner).push(request);
        }
        match reply.ending {
            Ending::Complete => write_reply(&mut socket, &reply).await?,
            Ending::Cut | Ending::Raw => return write_reply(&mut socket, &reply).await,
            Ending::Stall => {
                write_reply(&mut socket, &reply).await?;
                // Until the peer hangs up.
                let mut rest = Vec::new();
                socket.read_to_end(&mut rest).await?;
                return Ok(());
            }
        }
    }
    Ok(())
}

async fn read_request(socket: &mut BufReader<TcpStream>) -> io::Result<Option<Recorded>> {
    let Some(line) = read_line(socket).await? else {
        return Ok(None);
    };
    let mut words = line.split_whitespace();
    let method = words.next().unwrap_or_default().to_owned();
    let path = words.next().unwrap_or_default().to_owned();
    let mut headers = Vec::new();
    while let Some(line) = read_line(socket).await? {
        let Some((name, value)) = line.split_once(':') else {
            break;
        };
        headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
    }
    let length = headers.iter().find(|(name, _)| name == "content-length");
    let length: u64 = length.and_then(|(_, value)| value.parse().ok()).unwrap_or_default();
    let mut body = Vec::new();
    socket.take(length.min(REQUEST_BYTES_MAX)).read_to_end(&mut body).await?;
    Ok(Some(Recorded { method, path, headers, body }))
}

/// The next line without its end; `None` at the end of the stream.
async fn read_line(socket: &mut BufReader<TcpStream>) -> io::Result<Option<String>> {
    let mut line = String::new();
    let read = (&mut *socket).take(64 * 1024).read_line(&mut line).await?;
    Ok((read > 0).then(|| line.trim_end().to_owned()))
}

async fn write_reply(socket: &mut BufReader<TcpStream>, reply: &Reply) -> io::Result<()> {
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
            Part::Wait(duration) => tokio::time::sleep(*duration).await,
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
