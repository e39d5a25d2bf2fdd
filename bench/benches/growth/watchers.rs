//! A step of a task that many watch. Every watcher gets every event.

use std::time::Instant;

use antiphon_bench::{Address, Connection, Curve, Error, Frames, heading};
use bytes::Bytes;
use hyper::Method;
use memchr::memmem;
use tokio::runtime::Runtime;
use tokio::task::JoinSet;

use crate::{draw, model};

const WATCHERS: [usize; 4] = [1, 10, 100, 1_000];

/// Steps of the task.
const STEPS: usize = 50;

pub(crate) fn measure(runtime: &Runtime) -> Result<(), Error> {
    heading(
        &format!("a step with `read` of a task with this many watchers; the mean of {STEPS}"),
        "growth -- watchers",
    );
    println!("{:>12}{:>12}{:>12}", "watchers", "wall, ms", "CPU, ms");
    let (mut wall_line, mut cpu_line) = (Vec::new(), Vec::new());
    for watchers in WATCHERS {
        let (wall, cpu) = runtime.block_on(watched(watchers))?;
        println!("{watchers:>12}{wall:>12.2}{cpu:>12.2}");
        #[expect(clippy::cast_precision_loss, reason = "far below 2^52")]
        let x = watchers as f64;
        wall_line.push((x, wall));
        cpu_line.push((x, cpu));
    }
    let lines = vec![("wall".to_owned(), wall_line), ("CPU".to_owned(), cpu_line)];
    let title = "A step by the watchers of its task".to_owned();
    draw("watchers", &Curve { title, x: "watchers".to_owned(), y: "ms".to_owned(), lines })
}

async fn watched(watchers: usize) -> Result<(f64, f64), Error> {
    let (_model, project) = model::project("")?;
    let served = project.serve(&[])?;
    let address = served.address()?;
    let mut connection = Connection::open(&address).await?;
    // A first task, so that what every task needs is there.
    let accepted = connection.post("/v1/tasks", &model::task(0)).await?;
    let first = accepted["task_id"].as_str().ok_or("there is no task")?.to_owned();
    connection.get(&format!("/v1/tasks/{first}/rest")).await?;
    let (began, before) = (Instant::now(), served.process().usage()?);
    let accepted = connection.post("/v1/tasks", &model::task(STEPS)).await?;
    let task_id = accepted["task_id"].as_str().ok_or("there is no task")?;
    let path = format!("/v1/tasks/{task_id}/events");
    let mut watching = JoinSet::new();
    for _ in 0..watchers {
        watching.spawn(watch(address.clone(), path.clone()));
    }
    while let Some(seen) = watching.join_next().await {
        seen??;
    }
    let cpu = served.process().usage()?.cpu_since(&before);
    #[expect(clippy::cast_precision_loss, reason = "far below 2^52")]
    let each = |time: std::time::Duration| time.as_secs_f64() * 1e3 / STEPS as f64;
    let figures = (each(began.elapsed()), each(cpu));
    served.end()?;
    Ok(figures)
}

/// Watches to the end.
async fn watch(address: Address, path: String) -> Result<(), Error> {
    let mut connection = Connection::open(&address).await?;
    let response = connection.ask(Method::GET, &path, Bytes::new()).await?;
    let mut frames = Frames::new(response.into_body());
    let mut is_over = false;
    while let Some(frame) = frames.next().await? {
        is_over |= memmem::find(&frame, b"\"completed\"").is_some();
    }
    if is_over { Ok(()) } else { Err("the stream ended early".into()) }
}
