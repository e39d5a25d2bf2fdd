//! HTTP as the clients of a server that dies speak it: one connection per request, and what broke off
//! did not come.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

/// How long nothing may come. Whoever waits longer comes back.
const SILENCE_MAX: Duration = Duration::from_secs(20);

/// Where the server is when it is there, and what it is asked with.
#[derive(Debug, Clone)]
pub(crate) struct Address {
    pub(crate) socket: SocketAddr,
    pub(crate) token: String,
}

/// The beginning of an answer.
pub(crate) struct Answer {
    pub(crate) status: u16,
    /// The task that a chat is.
    pub(crate) task: Option<String>,
    body: BufReader<TcpStream>,
    /// How long it is, where that was said: less of it is a part.
    length: Option<usize>,
}

impl Address {
    /// Asks. `headers` are whole lines.
    pub(crate) fn ask(
        &self,
        method: &str,
        path: &str,
        headers: &str,
        body: &str,
    ) -> io::Result<Answer> {
        let Self { socket: address, token } = self;
        let mut socket = TcpStream::connect(address)?;
        socket.set_read_timeout(Some(SILENCE_MAX))?;
        let length = body.len();
        let asked = format!(
            "{method} {path} HTTP/1.0\r\nhost: {address}\r\nauthorization: Bearer {token}\r\n\
             {headers}content-type: application/json\r\ncontent-length: {length}\r\n\r\n{body}"
        );
        socket.write_all(asked.as_bytes())?;
        Answer::read(BufReader::new(socket))
    }
}

impl Answer {
    fn read(mut body: BufReader<TcpStream>) -> io::Result<Self> {
        let first = line(&mut body)?;
        let status = first.split(' ').nth(1).and_then(|word| word.parse().ok());
        let status = status.ok_or_else(|| broken(&first))?;
        let (mut task, mut length) = (None, None);
        loop {
            let line = line(&mut body)?;
            let line = line.trim_end();
            if line.is_empty() {
                return Ok(Self { status, task, body, length });
            }
            let (name, value) = line.split_once(": ").ok_or_else(|| broken(line))?;
            match name {
                "x-antiphon-task" => task = Some(value.to_owned()),
                "content-length" => length = value.parse().ok(),
                _ => {}
            }
        }
    }

    /// The whole body, or an error when it broke off.
    pub(crate) fn text(mut self) -> io::Result<String> {
        let mut text = String::new();
        self.body.read_to_string(&mut text)?;
        match self.length {
            Some(length) if length != text.len() => Err(broken(&text)),
            Some(_) | None => Ok(text),
        }
    }

    /// The next server-sent event that is whole: its lines. `None` is the end, wherever it came.
    pub(crate) fn event(&mut self) -> Option<Vec<String>> {
        let mut lines = Vec::new();
        loop {
            let line = line(&mut self.body).ok()?;
            match line.trim_end() {
                "" if lines.is_empty() => {}
                "" => return Some(lines),
                // A sign of life.
                line if line.starts_with(':') => {}
                line => lines.push(line.to_owned()),
            }
        }
    }
}

/// A line that is whole.
fn line(from: &mut impl BufRead) -> io::Result<String> {
    let mut line = String::new();
    from.read_line(&mut line)?;
    if line.ends_with('\n') { Ok(line) } else { Err(broken(&line)) }
}

fn broken(at: &str) -> io::Error {
    io::Error::other(format!("it broke off at {at:?}"))
}
