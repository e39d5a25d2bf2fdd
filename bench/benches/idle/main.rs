//! Ten thousand idle connections.
//!
//! Each asks once whether the server is alive, and stays open. Measured are the memory per
//! connection, the CPU while nothing happens, and the latency of other requests meanwhile. Then
//! they are left alone until the server closes them, and its memory is printed again.

use std::time::{Duration, Instant};

use antiphon_bench::{Address, Connection, Error, Process, Project, Times, heading, raise_files};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::runtime::Builder;

const CONNECTIONS: usize = 10_000;

/// How long nothing happens.
const SILENCE: Duration = Duration::from_secs(2);

/// Number of other requests meanwhile.
const REQUESTS: usize = 500;

/// How long the server may take to close them: twice its idle timeout.
const CLOSED_WITHIN: Duration = Duration::from_secs(30);

/// Files that the server opens at its first request and keeps open.
const OTHER_FILES: usize = 16;

fn main() -> Result<(), Error> {
    let files = raise_files()?;
    if files < CONNECTIONS as u64 + 256 {
        println!("idle connections: needs more open files than {files}: raise `ulimit -Hn`");
        return Ok(());
    }
    let runtime = Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(idle())
}

async fn idle() -> Result<(), Error> {
    heading(&format!("{CONNECTIONS} connections that say nothing"), "idle");
    let project = Project::new(env!("CARGO_TARGET_TMPDIR"), "")?;
    let served = project.serve(&["--connections-max", &(CONNECTIONS + 16).to_string()])?;
    let (address, process) = (served.address()?, served.process());
    let files = process.files()?;
    let calm = request_times(&address).await?;
    let before_kib = process.resident_kib()?;
    let began = Instant::now();
    let mut idle = Vec::with_capacity(CONNECTIONS);
    for _ in 0..CONNECTIONS {
        idle.push(arrive(&address).await?);
    }
    let arrived = began.elapsed();
    let grown_kib = process.resident_kib()?.saturating_sub(before_kib);
    if process.files()? < files + CONNECTIONS {
        return Err("some of them were closed too early".into());
    }
    let before = process.usage()?;
    tokio::time::sleep(SILENCE).await;
    let after = process.usage()?;
    let crowded = request_times(&address).await?;
    row("connections accepted and answered, per second", per_second(CONNECTIONS, arrived));
    row("memory for each, KiB", kib_each(grown_kib));
    row("CPU while nothing happens, cores", after.cores_since(&before));
    row("another client's request, without them: p50, ms", calm.percentile_ms(50));
    row("another client's request, beside them: p50, ms", crowded.percentile_ms(50));
    row("another client's request, beside them: p99, ms", crowded.percentile_ms(99));
    closed(process, files).await?;
    let kept_kib = process.resident_kib()?.saturating_sub(before_kib);
    row("memory kept once they are closed, KiB of each", kib_each(kept_kib));
    drop(idle);
    served.end()
}

fn row(name: &str, figure: f64) {
    println!("{name:52}{figure:>10.2}");
}

/// Connects, asks once, and stays open.
async fn arrive(address: &Address) -> Result<TcpStream, Error> {
    let mut socket = TcpStream::connect(address.socket()).await?;
    let request = format!("GET /health/live HTTP/1.1\r\nhost: {}\r\n\r\n", address.socket());
    socket.write_all(request.as_bytes()).await?;
    let mut answer = [0; 1024];
    let read = socket.read(&mut answer).await?;
    if !answer[..read].starts_with(b"HTTP/1.1 200") {
        return Err("that is not how a server is alive".into());
    }
    Ok(socket)
}

/// Latency of other requests.
async fn request_times(address: &Address) -> Result<Times, Error> {
    let mut connection = Connection::open(address).await?;
    let mut times = Times::default();
    for _ in 0..REQUESTS {
        let began = Instant::now();
        connection.get("/v1/agents/status").await?;
        times.push(began.elapsed());
    }
    Ok(times)
}

/// Waits until the server has closed them.
async fn closed(server: Process, files: usize) -> Result<(), Error> {
    let until = Instant::now() + CLOSED_WITHIN;
    while server.files()? > files + OTHER_FILES {
        if Instant::now() > until {
            return Err("they are still open".into());
        }
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    Ok(())
}

#[expect(clippy::cast_precision_loss, reason = "far below 2^52")]
fn per_second(count: usize, took: Duration) -> f64 {
    count as f64 / took.as_secs_f64()
}

#[expect(clippy::cast_precision_loss, reason = "far below 2^52")]
fn kib_each(kib: u64) -> f64 {
    kib as f64 / CONNECTIONS as f64
}
