//! A step at turn 10, 100, 1,000 and 5,000 of one task: from the end of one answer to the end of the next, over 50 steps.

use std::time::Instant;

use antiphon_bench::{Connection, Curve, Error, Frames, Usage, heading};
use bytes::Bytes;
use hyper::Method;
use memchr::memmem;
use tokio::runtime::Runtime;

use crate::{draw, model};

/// Where in the task steps are measured.
const TURNS: [usize; 5] = [10, 100, 1_000, 2_000, 5_000];

/// How many are.
const STEPS: usize = 50;

pub(crate) fn measure(runtime: &Runtime) -> Result<(), Error> {
    heading(
        &format!("a step with `read` of one task, over HTTP and durable; the mean of {STEPS}"),
        "growth -- turns",
    );
    println!("{:>8}{:>12}{:>12}", "turn", "wall, ms", "CPU, ms");
    let measured = runtime.block_on(steps())?;
    for (turn, wall, cpu) in &measured {
        println!("{turn:>8}{wall:>12.2}{cpu:>12.2}");
    }
    #[expect(clippy::cast_precision_loss, reason = "far below 2^52")]
    let line = |of: fn(&(usize, f64, f64)) -> f64| {
        measured.iter().map(|one| (one.0 as f64, of(one))).collect()
    };
    let lines = vec![("wall".to_owned(), line(|one| one.1)), ("CPU".to_owned(), line(|one| one.2))];
    let title = "A step by the turn of its task".to_owned();
    draw("turns", &Curve { title, x: "turn".to_owned(), y: "ms".to_owned(), lines })
}

async fn steps() -> Result<Vec<(usize, f64, f64)>, Error> {
    let (_model, project) = model::project("")?;
    let served = project.serve(&[])?;
    let address = served.address()?;
    let mut connection = Connection::open(&address).await?;
    let last = TURNS[TURNS.len() - 1] + STEPS;
    let accepted = connection.post("/v1/tasks", &model::task(last)).await?;
    let task_id = accepted["task_id"].as_str().ok_or("there is no task")?;
    let path = format!("/v1/tasks/{task_id}/events");
    let response = connection.ask(Method::GET, &path, Bytes::new()).await?;
    let mut frames = Frames::new(response.into_body());
    let (mut turn, mut began, mut measured) = (0, None::<(Instant, Usage)>, Vec::new());
    while let Some(frame) = frames.next().await? {
        if memmem::find(&frame, b"\"usage_recorded\"").is_none() {
            continue;
        }
        turn += 1;
        if TURNS.contains(&turn) {
            began = Some((Instant::now(), served.process().usage()?));
        }
        if let Some((at, usage)) = began.filter(|_| TURNS.contains(&(turn - STEPS.min(turn)))) {
            began = None;
            let cpu = served.process().usage()?.cpu_since(&usage);
            measured.push((turn - STEPS, each_ms(at.elapsed()), each_ms(cpu)));
        }
    }
    served.end()?;
    if measured.len() == TURNS.len() { Ok(measured) } else { Err("the task ended early".into()) }
}

#[expect(clippy::cast_precision_loss, reason = "far below 2^52")]
fn each_ms(time: std::time::Duration) -> f64 {
    time.as_secs_f64() * 1e3 / STEPS as f64
}
