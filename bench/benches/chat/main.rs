//! Chat completions over HTTP, everything synced to disk.
//!
//! First the requests per second, with a scripted model that answers at once. Then the added
//! latency of Antiphon compared with the model's own server, which is a separate process: both are
//! asked in turn, by the same client. Also the cost of one sync, because an answer is durable
//! before it is complete and cannot be faster than the disk.
//!
//! The client is one thread of this process. Its CPU share is printed, because the server cannot
//! use it.

mod disk;
mod interfaces;
mod load;
mod upstream;

use std::time::Duration;

use antiphon_bench::{Address, Error, ModelProcess, Process, Project, Times, heading, raise_files};
use load::{Api, Load, ResponseTimes};
use tokio::runtime::{Builder, Runtime};

/// Concurrent requests to a model that answers at once.
const AT_ONCE: [usize; 3] = [1, 64, 512];

/// Concurrent requests when an upstream server is also measured.
const AT_ONCE_ADDED: [usize; 2] = [1, 64];

/// How long each is measured, and how long it warms up.
const DURATION: Duration = Duration::from_secs(3);
const WARM_UP: Duration = Duration::from_millis(500);

/// How often both are measured in turn, and how long each time.
const TURNS: usize = 6;
const TURN: Duration = Duration::from_millis(700);

type Part = fn(&Runtime) -> Result<(), Error>;

/// What is measured: everything, or the names after `--`.
const PARTS: [(&str, Part); 4] = [
    ("disk", disk::compare),
    ("throughput", throughput),
    ("added", added),
    ("interfaces", interfaces::compare),
];

/// Answers at once, with as much text as `upstream`.
const SCRIPT: &str = r#"
name = "instant"
[[reply]]
steps = [{ text = "There is nothing wrong with it, as far as anybody can see: every test passes, and so does the review." }]
"#;

fn main() -> Result<(), Error> {
    if std::env::args().nth(1).as_deref() == Some(upstream::WORD) {
        return upstream::serve();
    }
    raise_files()?;
    let runtime = Builder::new_current_thread().enable_all().build()?;
    let named: Vec<String> =
        std::env::args().skip(1).filter(|word| !word.starts_with('-')).collect();
    for (name, part) in PARTS {
        if named.is_empty() || named.iter().any(|word| word == name) {
            part(&runtime)?;
        }
    }
    Ok(())
}

/// A project with a scripted model and, if given, an upstream server.
fn project(upstream: Option<&ModelProcess>) -> Result<Project, Error> {
    let models = upstream.map_or_else(String::new, ModelProcess::config);
    let config = format!("[scripts]\ninstant = \"instant.toml\"\n{models}");
    let project = Project::new(env!("CARGO_TARGET_TMPDIR"), &config)?;
    project.write("instant.toml", SCRIPT)?;
    Ok(project)
}

fn throughput(runtime: &Runtime) -> Result<(), Error> {
    heading(
        &format!(
            "chat completions of a scripted model of 0 ms, durable; {} s each",
            DURATION.as_secs()
        ),
        "chat -- throughput",
    );
    println!(
        "{:12}{:>10}{:>12}{:>10}{:>10}{:>18}{:>16}{:>16}{:>10}",
        "",
        "at a time",
        "per second",
        "p50, ms",
        "p99, ms",
        "server, µs each",
        "server, cores",
        "client, cores",
        "RSS, MiB"
    );
    for (name, stream) in [("whole", false), ("streamed", true)] {
        for at_once in AT_ONCE {
            // A new server for each: nothing is left of the one before.
            let project = project(None)?;
            let served = project.serve(&[])?;
            let asking = Load::new(Api::Chat, served.address()?, "scripted/instant", stream);
            runtime.block_on(asking.ask(at_once, WARM_UP))?;
            let (process, client) = (served.process(), Process::own());
            let before = (process.usage()?, client.usage()?);
            let ResponseTimes { end, .. } = runtime.block_on(asking.ask(at_once, DURATION))?;
            let after = (process.usage()?, client.usage()?);
            println!(
                "{name:12}{at_once:>10}{:>12.0}{:>10.2}{:>10.2}{:>18.0}{:>16.2}{:>16.2}{:>10.0}",
                count(&end) / DURATION.as_secs_f64(),
                end.percentile_ms(50),
                end.percentile_ms(99),
                after.0.cpu_since(&before.0).as_secs_f64() * 1e6 / count(&end),
                after.0.cores_since(&before.0),
                after.1.cores_since(&before.1),
                mib(process.resident_kib()?),
            );
            served.end()?;
        }
    }
    println!();
    Ok(())
}

fn added(runtime: &Runtime) -> Result<(), Error> {
    heading(
        "added to a model server of 0 ms that is asked in turn; milliseconds, durable",
        "chat -- added",
    );
    println!(
        "{:40}{:>10}{:>20}{:>20}{:>20}",
        "", "at a time", "direct p50, p99", "through p50, p99", "added p50, p99"
    );
    for at_once in AT_ONCE_ADDED {
        for stream in [false, true] {
            let upstream = ModelProcess::start(&[upstream::WORD])?;
            let project = project(Some(&upstream))?;
            let served = project.serve(&[])?;
            let directly = Load::new(Api::Chat, Address::new(upstream.socket()?), "m", stream);
            let address = served.address()?;
            let through = Api::ALL.map(|api| Load::new(api, address.clone(), "upstream/m", stream));
            let (direct, through) = runtime.block_on(in_turn(&directly, &through, at_once))?;
            for (api, through) in Api::ALL.into_iter().zip(&through) {
                let name = |what: &str| format!("{}: {what}", api.as_str());
                if stream {
                    let first = name("streamed, to the first token");
                    row(&first, at_once, &direct.first, &through.first);
                    row(&name("streamed, to the end"), at_once, &direct.end, &through.end);
                } else {
                    row(&name("whole"), at_once, &direct.end, &through.end);
                }
            }
            served.end()?;
        }
    }
    println!();
    Ok(())
}

async fn in_turn(
    directly: &Load,
    through: &[Load; 3],
    at_once: usize,
) -> Result<(ResponseTimes, [ResponseTimes; 3]), Error> {
    directly.ask(at_once, WARM_UP).await?;
    for load in through {
        load.ask(at_once, WARM_UP).await?;
    }
    let (mut direct, mut times) =
        (ResponseTimes::default(), [(); 3].map(|()| ResponseTimes::default()));
    for _ in 0..TURNS {
        direct.add(directly.ask(at_once, TURN).await?);
        for (load, times) in through.iter().zip(&mut times) {
            times.add(load.ask(at_once, TURN).await?);
        }
    }
    Ok((direct, times))
}

fn row(name: &str, at_once: usize, direct: &Times, through: &Times) {
    let (direct, through) =
        ([50, 99].map(|p| direct.percentile_ms(p)), [50, 99].map(|p| through.percentile_ms(p)));
    println!(
        "{name:40}{at_once:>10}{:>11.2}{:>9.2}{:>11.2}{:>9.2}{:>11.2}{:>9.2}",
        direct[0],
        direct[1],
        through[0],
        through[1],
        through[0] - direct[0],
        through[1] - direct[1],
    );
}

#[expect(clippy::cast_precision_loss, reason = "far below 2^52")]
fn count(times: &Times) -> f64 {
    times.len() as f64
}

#[expect(clippy::cast_precision_loss, reason = "far below 2^52")]
fn mib(kib: u64) -> f64 {
    kib as f64 / 1024.0
}
