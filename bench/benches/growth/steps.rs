//! Durable steps per second of 100 tasks at once, and a step of one task alone, on the server.

use std::time::{Duration, Instant};

use antiphon_bench::{Address, Connection, Error, heading};
use tokio::runtime::Runtime;
use tokio::task::JoinSet;

use crate::model;

/// Steps of each task, its answer included.
const STEPS: usize = 21;

const AT_ONCE: [usize; 2] = [1, 100];

pub(crate) fn measure(runtime: &Runtime) -> Result<(), Error> {
    heading("steps with `read` on the server, over HTTP and durable", "growth -- steps");
    println!("{:>8}{:>14}{:>12}{:>14}", "tasks", "per second", "step, ms", "CPU each, ms");
    for tasks in AT_ONCE {
        let (took, cpu) = runtime.block_on(together(tasks))?;
        #[expect(clippy::cast_precision_loss, reason = "far below 2^52")]
        let steps = (tasks * STEPS) as f64;
        println!(
            "{tasks:>8}{:>14.0}{:>12.2}{:>14.3}",
            steps / took.as_secs_f64(),
            took.as_secs_f64() * 1e3 / f64::from(u32::try_from(STEPS)?),
            cpu.as_secs_f64() * 1e3 / steps,
        );
    }
    Ok(())
}

async fn together(tasks: usize) -> Result<(Duration, Duration), Error> {
    let (_model, project) = model::project("")?;
    let served = project.serve(&[])?;
    let address = served.address()?;
    one(address.clone()).await?;
    let (began, before) = (Instant::now(), served.process().usage()?);
    let mut running = JoinSet::new();
    for _ in 0..tasks {
        running.spawn(one(address.clone()));
    }
    while let Some(ended) = running.join_next().await {
        ended??;
    }
    let figures = (began.elapsed(), served.process().usage()?.cpu_since(&before));
    served.end()?;
    Ok(figures)
}

async fn one(address: Address) -> Result<(), Error> {
    let mut connection = Connection::open(&address).await?;
    let accepted = connection.post("/v1/tasks", &model::task(STEPS - 1)).await?;
    let task_id = accepted["task_id"].as_str().ok_or("there is no task")?;
    let rest = connection.get(&format!("/v1/tasks/{task_id}/rest?wait_s=30")).await?;
    if rest.to_string().contains("completed") {
        Ok(())
    } else {
        Err(format!("the task did not complete: {rest}").into())
    }
}
