//! The baseline: a process that writes as many events of the same size to every connection, one by
//! one, from memory. It ends when its input is closed.

use std::io::{self, BufRead, BufReader};
use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};

use antiphon_bench::{Error, Process};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Builder;
use tokio::sync::watch;
use tokio::task::JoinSet;

/// Argument that makes this program the baseline: number of events, bytes per event.
pub(crate) const WORD: &str = "__bare";

/// The first connections wait for this many, so that all are served at once.
const CONNECTIONS: usize = crate::TASKS * crate::WATCHERS_EACH;

/// Prints its address, then serves.
pub(crate) fn serve() -> Result<(), Error> {
    let mut numbers = std::env::args().skip(2).map(|number| number.parse::<usize>());
    let (Some(events), Some(bytes)) = (numbers.next().transpose()?, numbers.next().transpose()?)
    else {
        return Err("say how many events, and how long".into());
    };
    let runtime = Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
        println!("{}", listener.local_addr()?);
        let mut serving = JoinSet::new();
        serving.spawn(accept(listener, events, bytes));
        tokio::task::spawn_blocking(|| io::copy(&mut io::stdin(), &mut io::sink())).await??;
        Ok(())
    })
}

async fn accept(listener: TcpListener, events: usize, bytes: usize) {
    let (arrived, _) = watch::channel(0);
    let mut connections = JoinSet::new();
    while let Ok((socket, _)) = listener.accept().await {
        let mut all = arrived.subscribe();
        let arrived = arrived.clone();
        connections.spawn(async move {
            // A client that disconnects is not an error.
            let _ = converse(socket, events, bytes, &arrived, &mut all).await;
        });
    }
}

async fn converse(
    mut socket: TcpStream,
    events: usize,
    bytes: usize,
    arrived: &watch::Sender<usize>,
    all: &mut watch::Receiver<usize>,
) -> io::Result<()> {
    socket.set_nodelay(true)?;
    let mut request = [0; 1024];
    if socket.read(&mut request).await? == 0 {
        return Ok(());
    }
    socket.write_all(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n").await?;
    arrived.send_modify(|arrived| *arrived += 1);
    // The sender lives as long as this task.
    let _ = all.wait_for(|arrived| *arrived >= CONNECTIONS).await;
    let filler = "x".repeat(bytes.saturating_sub(20));
    for id in 1..=events {
        let end = if id == events { "\"completed\"" } else { "" };
        let event = format!("id: {id}\ndata: {filler}{end}\n\n");
        let chunk = format!("{:x}\r\n{event}\r\n", event.len());
        socket.write_all(chunk.as_bytes()).await?;
    }
    socket.write_all(b"0\r\n\r\n").await
}

pub(crate) struct Bare {
    address: String,
    process: Child,
}

impl Bare {
    pub(crate) fn start(events: usize, bytes: usize) -> Result<Self, Error> {
        let mut process = Command::new(std::env::current_exe()?)
            .args([WORD, &events.to_string(), &bytes.to_string()])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let mut address = String::new();
        let output = process.stdout.take().ok_or("the baseline has no output")?;
        BufReader::new(output).read_line(&mut address)?;
        Ok(Self { address: address.trim().to_owned(), process })
    }

    pub(crate) fn socket(&self) -> Result<SocketAddr, Error> {
        Ok(self.address.parse()?)
    }

    pub(crate) fn process(&self) -> Process {
        Process::new(self.process.id())
    }
}

impl Drop for Bare {
    fn drop(&mut self) {
        drop(self.process.stdin.take());
        // It ends by itself; this only waits for it.
        let _ = self.process.wait();
    }
}
