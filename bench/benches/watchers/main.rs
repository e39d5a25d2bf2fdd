//! A thousand watchers of busy tasks, over server-sent events.
//!
//! Ten tasks call a tool step after step, and each has a hundred watchers. First at full speed:
//! events delivered per second. Then at a sustainable pace: the delay from an event's decision
//! until each of its hundred watchers has it, including the sync.
//!
//! Every watcher checks that it got every event once, in order, to the end. Compared with the lower
//! bound: a process that writes as many events of that size to as many sockets, one by one, from
//! memory. The watchers are one thread of this process, and its CPU share is printed.

mod bare;
mod watcher;

use std::time::{Duration, Instant};

use antiphon_bench::{
    Address, Connection, Error, Process, Project, Times, Usage, heading, raise_files,
};
use serde_json::json;
use tokio::runtime::{Builder, Runtime};
use tokio::task::JoinSet;
use watcher::{Observed, watch};

const TASKS: usize = 10;
const WATCHERS_EACH: usize = 100;
const STEPS: usize = 150;

/// How long the first turn of a task takes: all watchers are connected before it is busy.
const GATE: Duration = Duration::from_secs(4);

/// How long a turn takes at a fixed pace. A step has eight events.
const PACE_MS: [u64; 2] = [100, 50];

fn main() -> Result<(), Error> {
    if std::env::args().nth(1).as_deref() == Some(bare::WORD) {
        return bare::serve();
    }
    raise_files()?;
    let runtime = Builder::new_current_thread().enable_all().build()?;
    let watchers = TASKS * WATCHERS_EACH;
    heading(
        &format!("{watchers} watchers of {TASKS} tasks that are busy, {STEPS} steps each; durable"),
        "watchers",
    );
    println!(
        "{:30}{:>12}{:>12}{:>14}{:>14}{:>16}{:>16}{:>10}",
        "",
        "events",
        "per second",
        "lag p50, ms",
        "lag p99, ms",
        "server, cores",
        "client, cores",
        "KiB each"
    );
    let bytes = row("as fast as they go", runtime.block_on(busy(0))?);
    for pace_ms in PACE_MS {
        row(&format!("a turn every {pace_ms} ms"), runtime.block_on(busy(pace_ms))?);
    }
    let bare = bare(&runtime, bytes)?;
    row("the same bytes, written bare", bare);
    Ok(())
}

/// The result of a measurement.
struct Measurement {
    delivered: usize,
    bytes: usize,
    took: Duration,
    lag: Times,
    server: (Usage, Usage),
    client: (Usage, Usage),
    grown_kib: u64,
}

/// Prints it and returns the size of an event.
#[expect(clippy::cast_precision_loss, reason = "far below 2^52")]
fn row(name: &str, measured: Measurement) -> usize {
    let Measurement { delivered, bytes, took, lag, server, client, grown_kib } = measured;
    println!(
        "{name:30}{delivered:>12}{:>12.0}{:>14.1}{:>14.1}{:>16.2}{:>16.2}{:>10.1}",
        delivered as f64 / took.as_secs_f64(),
        lag.percentile_ms(50),
        lag.percentile_ms(99),
        server.1.cores_since(&server.0),
        client.1.cores_since(&client.0),
        grown_kib as f64 / (TASKS * WATCHERS_EACH) as f64,
    );
    bytes / delivered.max(1)
}

async fn busy(pace_ms: u64) -> Result<Measurement, Error> {
    let project = Project::new(env!("CARGO_TARGET_TMPDIR"), "[scripts]\nbusy = \"busy.toml\"\n")?;
    project.write("note.txt", "There is nothing wrong with it.\n")?;
    project.write("busy.toml", &script(pace_ms))?;
    let served = project.serve(&[])?;
    let address = served.address()?;
    let mut asking = Connection::open(&address).await?;
    let mut ids = Vec::new();
    for _ in 0..TASKS {
        let task = json!({ "model": "scripted/busy", "message": "Go.", "tools": ["read"] });
        let accepted = asking.post("/v1/tasks", &task).await?;
        ids.push(accepted["task_id"].as_str().ok_or("there is no task")?.to_owned());
    }
    let before_kib = served.process().resident_kib()?;
    let paths: Vec<String> = ids.iter().map(|id| format!("/v1/tasks/{id}/events")).collect();
    gathered(&address, &paths, served.process(), before_kib).await
}

/// Opens a hundred watchers of every path and waits for their end.
async fn gathered(
    address: &Address,
    paths: &[String],
    server: Process,
    before_kib: u64,
) -> Result<Measurement, Error> {
    let mut watching = JoinSet::new();
    for path in paths {
        for _ in 0..WATCHERS_EACH {
            let mut connection = Connection::open(address).await?;
            let path = path.clone();
            watching.spawn(async move { watch(&mut connection, &path).await });
        }
    }
    let before = (server.usage()?, Process::own().usage()?);
    let (mut delivered, mut bytes, mut lag) = (0, 0, Times::default());
    let (mut began, mut ended): (Option<Instant>, Option<Instant>) = (None, None);
    let mut peak_kib = 0;
    while let Some(seen) = watching.join_next().await {
        let Observed { events, bytes: read, lag: lags, first, last } = seen??;
        peak_kib = peak_kib.max(server.resident_kib().unwrap_or_default());
        delivered += events;
        bytes += read;
        lag.extend(lags);
        began = Some(began.map_or(first, |began| began.min(first)));
        ended = Some(ended.map_or(last, |ended| ended.max(last)));
    }
    let after = (server.usage()?, Process::own().usage()?);
    let (began, ended) = began.zip(ended).ok_or("no watcher received an event")?;
    Ok(Measurement {
        delivered,
        bytes,
        took: ended - began,
        lag,
        server: (before.0, after.0),
        client: (before.1, after.1),
        grown_kib: peak_kib.saturating_sub(before_kib),
    })
}

/// Reads a file repeatedly, then answers.
fn script(pace_ms: u64) -> String {
    let gate_ms = GATE.as_millis();
    format!(
        r#"
name = "busy"
chunk_chars = 1000
[[reply]]
when = {{ turn = 0 }}
delay_ms = {gate_ms}
steps = [{{ call = {{ name = "read", arguments = {{ path = "note.txt" }} }} }}]
[[reply]]
when = {{ turn = {STEPS} }}
steps = [{{ text = "Done." }}]
[[reply]]
delay_ms = {pace_ms}
steps = [{{ call = {{ name = "read", arguments = {{ path = "note.txt" }} }} }}]
"#
    )
}

fn bare(runtime: &Runtime, event_bytes: usize) -> Result<Measurement, Error> {
    let events = STEPS * 8;
    let bare = bare::Bare::start(events, event_bytes)?;
    let paths = vec!["/".to_owned(); TASKS];
    let address = Address::new(bare.socket()?);
    let before_kib = bare.process().resident_kib()?;
    runtime.block_on(gathered(&address, &paths, bare.process(), before_kib))
}
