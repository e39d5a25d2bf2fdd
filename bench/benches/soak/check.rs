//! Checks that every accepted task completed.

use std::time::{Duration, Instant};

use antiphon_bench::{Connection, Error};

use crate::accepted_tasks::AcceptedTasks;
use crate::server::ServerUnderTest;

/// How long running tasks may take to end.
const SETTLED_WITHIN: Duration = Duration::from_secs(60);

/// Waits until nothing runs, and checks every accepted task.
pub(crate) async fn settled(
    server: &ServerUnderTest,
    accepted: &AcceptedTasks,
) -> Result<(), Error> {
    let address = server.address().borrow().clone();
    let mut connection = Connection::open(&address).await?;
    let until = Instant::now() + SETTLED_WITHIN;
    loop {
        let waiting = connection.get("/v1/inbox").await?["total"].as_u64().ok_or("no inbox")?;
        let unfinished = connection.get("/v1/tasks?unfinished=true&limit=1000").await?;
        let unfinished = unfinished["tasks"].as_array().ok_or("no tasks")?;
        let unfinished: Vec<_> =
            unfinished.iter().filter(|task| task["agent"] != "listener").collect();
        if waiting == 0 && unfinished.is_empty() {
            break;
        }
        if Instant::now() > until {
            let first = unfinished.first();
            let tasks = unfinished.len();
            return Err(format!("{waiting} messages wait, {tasks} tasks go on: {first:?}").into());
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    let promised = accepted.promised();
    for task_id in &promised {
        let task = connection.get(&format!("/v1/tasks/{task_id}")).await?;
        if task["status"] != "completed" {
            return Err(format!("a task that was accepted is not done: {task}").into());
        }
    }
    println!("{:52}{:>10}", "tasks that were accepted and are not done", 0);
    Ok(())
}
