//! HTTP for clients of a server that may die: one connection per request, and an incomplete response is
//! an error.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

/// Time without data after which a client reconnects.
const READ_WAIT: Duration = Duration::from_secs(20);

/// The address of the server, and the token for it.
#[derive(Debug, Clone)]
pub(crate) struct Address {
    pub(crate) socket: SocketAddr,
    pub(crate) token: String,
}

/// A response whose body has not been read.
pub(crate) struct Response {
    pub(crate) status: u16,
    /// The task of a chat.
    pub(crate) task: Option<String>,
    body: BufReader<TcpStream>,
    /// The announced length of the body; a shorter body is incomplete.
    length: Option<usize>,
}

impl Address {
    /// Sends a request. Each of the `headers` ends with a line break.
    pub(crate) fn request(
        &self,
        method: &str,
        path: &str,
        headers: &str,
        body: &str,
    ) -> io::Result<Response> {
        let Self { socket: address, token } = self;
        let mut socket = TcpStream::connect(address)?;
        socket.set_read_timeout(Some(READ_WAIT))?;
        let length = body.len();
        let request = format!(
            "{method} {path} HTTP/1.0\r\nhost: {address}\r\nauthorization: Bearer {token}\r\n\
             {headers}content-type: application/json\r\ncontent-length: {length}\r\n\r\n{body}"
        );
        socket.write_all(request.as_bytes())?;
        Response::read(BufReader::new(socket))
    }
}

impl Response {
    fn read(mut body: BufReader<TcpStream>) -> io::Result<Self> {
        let first = line(&mut body)?;
        let status = first.split(' ').nth(1).and_then(|word| word.parse().ok());
        let status = status.ok_or_else(|| incomplete(&first))?;
        let (mut task, mut length) = (None, None);
        loop {
            let line = line(&mut body)?;
            let line = line.trim_end();
            if line.is_empty() {
                return Ok(Self { status, task, body, length });
            }
            let (name, value) = line.split_once(": ").ok_or_else(|| incomplete(line))?;
            match name {
                "x-antiphon-task" => task = Some(value.to_owned()),
                "content-length" => length = value.parse().ok(),
                _ => {}
            }
        }
    }

    /// The body; an error when it is incomplete.
    pub(crate) fn text(mut self) -> io::Result<String> {
        let mut text = String::new();
        self.body.read_to_string(&mut text)?;
        match self.length {
            Some(length) if length != text.len() => Err(incomplete(&text)),
            Some(_) | None => Ok(text),
        }
    }

    /// The lines of the next complete server-sent event. `None` when the stream has ended.
    pub(crate) fn event(&mut self) -> Option<Vec<String>> {
        let mut lines = Vec::new();
        loop {
            let line = line(&mut self.body).ok()?;
            match line.trim_end() {
                "" if lines.is_empty() => {}
                "" => return Some(lines),
                // A sign of process.
                line if line.starts_with(':') => {}
                line => lines.push(line.to_owned()),
            }
        }
    }
}

/// A complete line.
fn line(from: &mut impl BufRead) -> io::Result<String> {
    let mut line = String::new();
    from.read_line(&mut line)?;
    if line.ends_with('\n') { Ok(line) } else { Err(incomplete(&line)) }
}

fn incomplete(at: &str) -> io::Error {
    io::Error::other(format!("incomplete at {at:?}"))
}
