//! A task alone, and as the next one of a session with 300 and 1,000 tasks.

use std::time::Instant;

use antiphon_bench::{Connection, Curve, Error, Served, heading};
use serde_json::Value;
use tokio::runtime::Runtime;

use crate::{draw, model};

/// How many tasks the session has before.
const LENGTHS: [usize; 4] = [1, 100, 300, 1_000];

/// How many tasks are measured. They make the session longer by as many.
const MEASURED: usize = 50;

pub(crate) fn measure(runtime: &Runtime) -> Result<(), Error> {
    heading(
        &format!("a task with one answer, one after the other; the mean of {MEASURED}"),
        "growth -- sessions",
    );
    println!("{:>28}{:>12}{:>12}", "", "wall, ms", "CPU, ms");
    runtime.block_on(async {
        let (_model, project) = model::project("")?;
        let served = project.serve(&[])?;
        let mut connection = Connection::open(&served.address()?).await?;
        let (wall, cpu, session) = tasks(&mut connection, &served, None, MEASURED).await?;
        println!("{:>28}{wall:>12.2}{cpu:>12.2}", "alone");
        // The session of the last of them goes on.
        let (mut length, mut points) = (1, Vec::new());
        let session = session.as_deref();
        for tasks_before in LENGTHS {
            tasks(&mut connection, &served, session, tasks_before - length).await?;
            let (wall, cpu, _) = tasks(&mut connection, &served, session, MEASURED).await?;
            length = tasks_before + MEASURED;
            println!("{:>28}{wall:>12.2}{cpu:>12.2}", format!("in a session of {tasks_before}"));
            #[expect(clippy::cast_precision_loss, reason = "far below 2^52")]
            points.push((tasks_before as f64, cpu));
        }
        served.end()?;
        let title = "CPU of a task by the tasks of its session before it".to_owned();
        let lines = vec![("CPU".to_owned(), points)];
        draw("sessions", &Curve { title, x: "tasks".to_owned(), y: "ms".to_owned(), lines })
    })
}

/// Runs tasks one after the other. Returns wall and CPU of each, in ms, and the session of the last.
async fn tasks(
    connection: &mut Connection,
    served: &Served,
    session: Option<&str>,
    count: usize,
) -> Result<(f64, f64, Option<String>), Error> {
    let (began, before) = (Instant::now(), served.process().usage()?);
    let mut body = model::task(0);
    if let Some(session) = session {
        body["session_id"] = Value::from(session);
    }
    let mut last = None;
    for _ in 0..count {
        let accepted = connection.post("/v1/tasks", &body).await?;
        let task_id = accepted["task_id"].as_str().ok_or("there is no task")?;
        let rest = connection.get(&format!("/v1/tasks/{task_id}/rest")).await?;
        if !rest.to_string().contains("completed") {
            return Err(format!("the task did not complete: {rest}").into());
        }
        last = rest["session_id"].as_str().map(str::to_owned);
    }
    let cpu = served.process().usage()?.cpu_since(&before);
    #[expect(clippy::cast_precision_loss, reason = "far below 2^52")]
    let each = |time: std::time::Duration| time.as_secs_f64() * 1e3 / count.max(1) as f64;
    Ok((each(began.elapsed()), each(cpu), last))
}
