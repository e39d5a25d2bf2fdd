//! A step with `bash -c true` in the sandbox, of one task on the server: wall, and CPU of the server with its workers and
//! the commands.

use std::time::{Duration, Instant};

use antiphon_bench::{Connection, Error, Process, heading};
use serde_json::json;
use tokio::runtime::Runtime;

use crate::model;

/// Steps of each task.
const STEPS: usize = 200;

const TASKS: usize = 3;

pub(crate) fn measure(runtime: &Runtime) -> Result<(), Error> {
    heading(
        &format!("a step with `bash -c true` in the sandbox, one task of {STEPS}, {TASKS} times"),
        "growth -- bash",
    );
    println!("{:>12}{:>12}", "wall, ms", "CPU, ms");
    for _ in 0..TASKS {
        let (wall, cpu) = runtime.block_on(steps())?;
        println!("{wall:>12.2}{cpu:>12.2}");
    }
    Ok(())
}

async fn steps() -> Result<(f64, f64), Error> {
    let (_model, project) = model::project("")?;
    let served = project.serve(&[])?;
    let mut connection = Connection::open(&served.address()?).await?;
    // A first task, so that what every task needs is there.
    task(&mut connection, 1).await?;
    settled(served.process());
    let before = served.process().usage_with_children()?;
    let began = Instant::now();
    task(&mut connection, STEPS).await?;
    let took = began.elapsed();
    settled(served.process());
    let cpu = served.process().usage_with_children()?.saturating_sub(before);
    served.end()?;
    #[expect(clippy::cast_precision_loss, reason = "far below 2^52")]
    let each = |time: Duration| time.as_secs_f64() * 1e3 / STEPS as f64;
    Ok((each(took), each(cpu)))
}

/// Waits until the workers of ended tasks are gone: then what they used counts as that of the server.
fn settled(server: Process) {
    let end = Instant::now() + Duration::from_secs(5);
    while !server.descendants().is_empty() && Instant::now() < end {
        std::thread::sleep(Duration::from_millis(2));
    }
}

async fn task(connection: &mut Connection, steps: usize) -> Result<(), Error> {
    let body = json!({
        "model": model::name_of_commands(steps), "message": "Look at it.", "tools": ["bash"],
        "limits": { "turns_max": 100_000, "tool_calls_max": 100_000 },
    });
    let accepted = connection.post("/v1/tasks", &body).await?;
    let task_id = accepted["task_id"].as_str().ok_or("there is no task")?;
    let rest = connection.get(&format!("/v1/tasks/{task_id}/rest?wait_s=30")).await?;
    if rest.to_string().contains("completed") {
        Ok(())
    } else {
        Err(format!("the task did not complete: {rest}").into())
    }
}
