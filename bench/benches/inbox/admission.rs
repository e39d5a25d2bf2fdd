//! Durable admissions per second while the agents are busy.

use std::sync::Arc;

use antiphon_core::port::{Append, Expected, Journal};
use antiphon_core::{
    AgentName, HandlingMode, InteractionId, MessageQueued, Sender, SessionId, SourceName,
    TaskCreated, TaskId, UserMessage,
};
use antiphon_runtime::{Arrival, Orchestrator, Receipt};
use chrono::Utc;
use futures_util::{StreamExt, stream};
use tokio::time::Instant;
use uuid::Uuid;

use crate::Error;
use crate::world::{self, SILENT};

/// Concurrent senders that wait for a receipt.
const AT_ONCE: [usize; 3] = [1, 64, 1024];
const AGENTS: [usize; 2] = [1, 1000];
const ROUNDS: usize = 3;

/// Enough to measure a rate, and less than the capacity of an inbox.
fn admissions(at_once: usize) -> usize {
    if at_once == 1 { 500 } else { 4000 }
}

pub(crate) async fn compare() -> Result<(), Error> {
    println!("durable admissions per second, agents busy; the fastest of {ROUNDS}\n");
    println!("{:34}{:>10}{:>12}{:>12}", "", "agents", "at a time", "per second");
    for agents in AGENTS {
        for at_once in AT_ONCE {
            let mut best: (f64, f64) = (0.0, 0.0);
            for _ in 0..ROUNDS {
                best.0 = best.0.max(admitted(agents, at_once).await?);
                best.1 = best.1.max(appended(agents, at_once).await?);
            }
            println!("{:34}{agents:>10}{at_once:>12}{:>12.0}", "admitted", best.0);
            println!("{:34}{agents:>10}{at_once:>12}{:>12.0}", "  the journal alone", best.1);
        }
    }
    println!();
    Ok(())
}

async fn admitted(agents: usize, at_once: usize) -> Result<f64, Error> {
    let folder = world::folder()?;
    let names: Vec<String> = (0..agents).map(|n| format!("{SILENT}-{n}")).collect();
    let (orchestrator, _asked) = world::orchestrator(world::journal(folder.path())?, &names)?;
    let names: Vec<AgentName> =
        names.iter().map(|n| AgentName::parse(n)).collect::<Result<_, _>>()?;
    for name in &names {
        send(&orchestrator, name, usize::MAX).await?;
    }
    let count = admissions(at_once);
    let began = Instant::now();
    let sends = (0..count).map(|n| {
        let (orchestrator, name) = (orchestrator.clone(), names[n % names.len()].clone());
        async move { send(&orchestrator, &name, n).await }
    });
    let mut sends = std::pin::pin!(stream::iter(sends).buffer_unordered(at_once));
    while let Some(sent) = sends.next().await {
        sent?;
    }
    let rate = rate(count, began);
    orchestrator.shutdown(std::time::Duration::ZERO).await;
    Ok(rate)
}

async fn send(orchestrator: &Orchestrator, to: &AgentName, n: usize) -> Result<(), Error> {
    let from = Sender::External(SourceName::parse(&format!("source {}", n % 8))?);
    let arrival = Arrival {
        key: Some(n.to_string()),
        ..Arrival::message(to.clone(), from, format!("The build of commit {n} has failed."))
    };
    match orchestrator.admit(arrival).await? {
        Receipt::Accepted { .. } => Ok(()),
        other @ (Receipt::Deduplicated { .. } | Receipt::Filtered | Receipt::Rejected(_)) => {
            Err(format!("{other:?}").into())
        }
    }
}

/// As many appends of the same events to the journal alone.
async fn appended(tasks: usize, at_once: usize) -> Result<f64, Error> {
    let folder = world::folder()?;
    let journal = world::journal(folder.path())?;
    let ids: Vec<TaskId> = (0..tasks).map(|_| TaskId::from(Uuid::new_v4())).collect();
    for id in &ids {
        let created = TaskCreated::new("a", SessionId::from(Uuid::new_v4()));
        append(&journal, id, Expected::NoTask, vec![created.into()]).await?;
    }
    let count = admissions(at_once);
    let began = Instant::now();
    let appends = (0..count).map(|n| {
        let (journal, id) = (Arc::clone(&journal), ids[n % ids.len()].clone());
        async move {
            let text = format!("The build of commit {n} has failed.");
            let send_message = UserMessage::text(text, Utc::now());
            let queued =
                MessageQueued::of_user(InteractionId::new(), HandlingMode::Queue, send_message);
            append(&journal, &id, Expected::Exists, vec![queued.into()]).await
        }
    });
    let mut appends = std::pin::pin!(stream::iter(appends).buffer_unordered(at_once));
    while let Some(done) = appends.next().await {
        done?;
    }
    Ok(rate(count, began))
}

async fn append(
    journal: &Arc<dyn Journal>,
    task_id: &TaskId,
    expected: Expected,
    events: Vec<antiphon_core::EventBody>,
) -> Result<(), Error> {
    let append = Append { task_id: task_id.clone(), expected, at: Utc::now(), events, key: None };
    journal.append(append).await?;
    Ok(())
}

#[expect(clippy::cast_precision_loss, reason = "far below 2^52")]
fn rate(count: usize, began: Instant) -> f64 {
    count as f64 / began.elapsed().as_secs_f64()
}
