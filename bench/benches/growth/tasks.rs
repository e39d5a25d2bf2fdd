//! List, show, append and start, with ever more ended tasks in the journal.

use std::time::{Duration, Instant};

use antiphon_bench::{Connection, Curve, Error, Served, Times, heading};
use antiphon_core::TaskId;
use serde_json::json;
use tokio::runtime::Runtime;

use crate::seed::{Left, seed};
use crate::{draw, model};

const TASKS: [usize; 4] = [1_000, 10_000, 100_000, 1_000_000];

/// Variable that adds the last of them, which takes minutes.
const MILLION: &str = "GROWTH_MILLION";

/// How often each is asked for.
const REQUESTS: usize = 200;

const NAMES: [&str; 4] = ["list, ms", "show, ms", "chat, ms", "start, ms"];

pub(crate) fn measure(runtime: &Runtime) -> Result<(), Error> {
    let sizes = if std::env::var_os(MILLION).is_some() { &TASKS[..] } else { &TASKS[..3] };
    heading(
        &format!("with this many ended tasks; p50 of {REQUESTS} requests, one start"),
        "growth -- tasks",
    );
    print!("{:>12}", "tasks");
    for name in NAMES {
        print!("{name:>12}");
    }
    println!();
    let (_model, project) = model::project("")?;
    project.serve(&[])?.end()?;
    let journal = project.journal()?;
    let mut lines = NAMES.map(|name| (name.to_owned(), Vec::new()));
    let mut there = 0;
    for &tasks in sizes {
        let last = seed(&journal, tasks - there, Left::Completed)?;
        there = tasks + REQUESTS;
        let began = Instant::now();
        let served = project.serve(&[])?;
        let started = began.elapsed();
        let figures = runtime.block_on(ask(&served, &last, started))?;
        served.end()?;
        print!("{tasks:>12}");
        for ((_, points), figure) in lines.iter_mut().zip(figures) {
            print!("{figure:>12.2}");
            #[expect(clippy::cast_precision_loss, reason = "far below 2^52")]
            points.push((tasks as f64, figure));
        }
        println!();
    }
    let title = "Requests and start by tasks in the journal".to_owned();
    let lines = lines.into_iter().collect();
    draw("tasks", &Curve { title, x: "tasks".to_owned(), y: "ms".to_owned(), lines })
}

async fn ask(served: &Served, last: &TaskId, started: Duration) -> Result<[f64; 4], Error> {
    let mut connection = Connection::open(&served.address()?).await?;
    let show = format!("/v1/tasks/{last}");
    let mut times = [Times::default(), Times::default(), Times::default()];
    let chat =
        json!({ "model": model::name(0), "messages": [{ "role": "user", "content": "Go." }] });
    for _ in 0..REQUESTS {
        let began = Instant::now();
        connection.get("/v1/tasks?limit=50").await?;
        times[0].push(began.elapsed());
        let began = Instant::now();
        connection.get(&show).await?;
        times[1].push(began.elapsed());
        let began = Instant::now();
        connection.post("/v1/chat/completions", &chat).await?;
        times[2].push(began.elapsed());
    }
    let [listed, shown, answered] = times.map(|times| times.percentile_ms(50));
    Ok([listed, shown, answered, started.as_secs_f64() * 1e3])
}
