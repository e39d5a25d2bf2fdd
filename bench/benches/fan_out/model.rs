//! A model server that answers every request with the same stream after 50 ms.
//!
//! It reads no more of a request than necessary. A connection that sends anything else is closed.
//! It ends when its input is closed.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::runtime::Builder;
use tokio::task::JoinSet;

use crate::Error;

/// How long an answer takes.
pub(crate) const ANSWER_AFTER: Duration = Duration::from_millis(50);

/// Text of the answer.
pub(crate) const TEXT: &str = "There is nothing wrong with it.";

/// Listeners on the one port. A listener queues a few thousand connections and drops further ones,
/// which are retried a second later; together they queue all of them.
const LISTENERS: usize = 8;

/// Queue length of each listener.
const BACKLOG: u32 = 4096;

/// Largest request. The connection of a larger one is closed.
const REQUEST_BYTES_MAX: usize = 64 * 1024;

/// Prints its address, then serves.
pub(crate) fn serve() -> Result<(), Error> {
    let runtime = Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let first = listen(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)))?;
        let address = first.local_addr()?;
        let mut serving = JoinSet::new();
        serving.spawn(accept(first));
        for _ in 1..LISTENERS {
            serving.spawn(accept(listen(address)?));
        }
        println!("http://{address}");
        tokio::task::spawn_blocking(|| io::copy(&mut io::stdin(), &mut io::sink())).await??;
        Ok(())
    })
}

fn listen(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = TcpSocket::new_v4()?;
    socket.set_reuseport(true)?;
    socket.bind(address)?;
    socket.listen(BACKLOG)
}

async fn accept(listener: TcpListener) {
    let answer = answer();
    let mut connections = JoinSet::new();
    while let Ok((socket, _)) = listener.accept().await {
        let answer = answer.clone();
        // A client that disconnects is not an error.
        connections.spawn(async move { drop(converse(socket, &answer).await) });
    }
}

async fn converse(mut socket: TcpStream, answer: &[u8]) -> io::Result<()> {
    socket.set_nodelay(true)?;
    let mut received = Vec::with_capacity(1024);
    loop {
        while !is_whole(&received) {
            if received.len() > REQUEST_BYTES_MAX || socket.read_buf(&mut received).await? == 0 {
                return Ok(());
            }
        }
        received.clear();
        tokio::time::sleep(ANSWER_AFTER).await;
        socket.write_all(answer).await?;
    }
}

/// Whether the request is complete. No client sends the next one before the answer.
fn is_whole(received: &[u8]) -> bool {
    let Some(end) = received.windows(4).position(|four| four == b"\r\n\r\n") else { return false };
    let lines = String::from_utf8_lossy(&received[..end]).to_ascii_lowercase();
    let length = lines.lines().find_map(|line| line.strip_prefix("content-length:"));
    let length: usize = length.and_then(|length| length.trim().parse().ok()).unwrap_or_default();
    received.len() >= end + 4 + length
}

/// The bytes of an answer.
fn answer() -> Vec<u8> {
    let chunk = |rest: &str| {
        format!(
            "data: {{\"id\":\"chatcmpl-1\",\"object\":\"chat.completion.chunk\",\"created\":1,\
             \"model\":\"m\",{rest}}}\n\n"
        )
    };
    let choice = |delta: &str, finish: &str| {
        chunk(&format!(
            "\"choices\":[{{\"index\":0,\"delta\":{delta},\"finish_reason\":{finish}}}]"
        ))
    };
    let events = [
        choice(&format!("{{\"role\":\"assistant\",\"content\":\"{TEXT}\"}}"), "null"),
        choice("{}", "\"stop\""),
        chunk(
            "\"choices\":[],\"usage\":{\"prompt_tokens\":20,\"completion_tokens\":8,\
             \"total_tokens\":28}",
        ),
        "data: [DONE]\n\n".to_owned(),
    ]
    .concat();
    let length = events.len();
    format!(
        "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n\
         {length:x}\r\n{events}\r\n0\r\n\r\n"
    )
    .into_bytes()
}
