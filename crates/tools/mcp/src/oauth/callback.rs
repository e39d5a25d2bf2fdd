//! Waits on a loopback port for the browser that comes back from the authorization server.

use std::io;
use std::time::Duration;

use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{TcpListener, TcpStream};

/// Path that the browser comes back to.
const PATH: &str = "/callback";

/// Longest first line of a request, in bytes.
const LINE_BYTES_MAX: u64 = 16 * 1024;

/// How long a connection may take to send its first line.
const LINE_WAIT: Duration = Duration::from_secs(5);

/// Where the browser comes back to.
pub(super) struct Callback {
    listener: TcpListener,
    port: u16,
}

impl Callback {
    pub(super) async fn listen() -> io::Result<Self> {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
        let port = listener.local_addr()?.port();
        Ok(Self { listener, port })
    }

    /// The address that the authorization server sends the browser to.
    pub(super) fn url(&self) -> String {
        format!("http://127.0.0.1:{}{PATH}", self.port)
    }

    /// The address that the browser came back with. Requests for other paths are answered with 404.
    pub(super) async fn wait(&self) -> io::Result<String> {
        loop {
            let (mut connection, _) = self.listener.accept().await?;
            let line = tokio::time::timeout(LINE_WAIT, first_line(&mut connection)).await;
            let Ok(Ok(target)) = line else { continue };
            if target.split('?').next() == Some(PATH) {
                let text = "This window can be closed: go on in the terminal.\n";
                // The browser may be gone; what it brought counts.
                let _ = respond(&mut connection, "200 OK", text).await;
                return Ok(format!("http://127.0.0.1:{}{target}", self.port));
            }
            let _ = respond(&mut connection, "404 Not Found", "There is nothing here.\n").await;
        }
    }
}

/// The target of a `GET` request.
async fn first_line(connection: &mut TcpStream) -> io::Result<String> {
    let mut line = String::new();
    BufReader::new(connection.take(LINE_BYTES_MAX)).read_line(&mut line).await?;
    let mut words = line.split_whitespace();
    match (words.next(), words.next()) {
        (Some("GET"), Some(target)) => Ok(target.to_owned()),
        _ => Err(io::Error::from(io::ErrorKind::InvalidData)),
    }
}

async fn respond(connection: &mut TcpStream, status: &str, text: &str) -> io::Result<()> {
    let response = format!(
        "HTTP/1.1 {status}\r\ncontent-type: text/plain\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{text}",
        text.len()
    );
    connection.write_all(response.as_bytes()).await?;
    connection.shutdown().await
}
