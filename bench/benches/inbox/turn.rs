//! From a message to the model, and from a request to its answer.

use std::time::Duration;

use antiphon_core::{AgentName, EventBody, Sender};
use antiphon_runtime::{Arrival, Orchestrator, Receipt};
use tokio::time::Instant;

use crate::world::{self, ASKER, ModelRequests, SPEAKER};
use crate::{Error, summary};

const TIMES: usize = 500;

pub(crate) async fn compare() -> Result<(), Error> {
    println!("milliseconds, {TIMES} times one after the other, durable\n");
    println!("{:46}{:>10}{:>10}", "", "median", "p99");
    println!("{:46}{}", "from a message to an idle agent to its model", summary(woken().await?));
    println!(
        "{:46}{}",
        "from a request to its answer, two agents",
        summary(model_requests().await?)
    );
    Ok(())
}

async fn woken() -> Result<Vec<Duration>, Error> {
    let folder = world::folder()?;
    let names = [SPEAKER.to_owned()];
    let (orchestrator, mut model_requests) =
        world::orchestrator(world::journal(folder.path())?, &names)?;
    let speaker = AgentName::parse(SPEAKER)?;
    orchestrator.start_agent(&speaker).await?;
    let mut times = Vec::new();
    for n in 0..TIMES {
        let began = Instant::now();
        send_message(&orchestrator, &speaker, &format!("Message {n}.")).await?;
        times.push(until_asked(&mut model_requests, SPEAKER).await? - began);
        until_idle(&orchestrator, &speaker).await?;
    }
    orchestrator.shutdown(Duration::ZERO).await;
    Ok(times)
}

/// From the model answer that sends a request to the model call that sees its result: two agents,
/// and the second one's model call in between.
async fn model_requests() -> Result<Vec<Duration>, Error> {
    let folder = world::folder()?;
    let names = [SPEAKER.to_owned(), ASKER.to_owned()];
    let (orchestrator, mut models) = world::orchestrator(world::journal(folder.path())?, &names)?;
    let asker = AgentName::parse(ASKER)?;
    orchestrator.start_agent(&AgentName::parse(SPEAKER)?).await?;
    orchestrator.start_agent(&asker).await?;
    let mut times = Vec::new();
    for n in 0..TIMES {
        send_message(&orchestrator, &asker, &format!("Ask, for the {n}th time.")).await?;
        let sent = until_asked(&mut models, ASKER).await?;
        times.push(until_asked(&mut models, ASKER).await? - sent);
        until_idle(&orchestrator, &asker).await?;
    }
    orchestrator.shutdown(Duration::ZERO).await;
    Ok(times)
}

async fn send_message(
    orchestrator: &Orchestrator,
    to: &AgentName,
    text: &str,
) -> Result<(), Error> {
    match orchestrator.admit(Arrival::message(to.clone(), Sender::User, text)).await? {
        Receipt::Accepted { .. } => Ok(()),
        other @ (Receipt::Deduplicated { .. } | Receipt::Filtered | Receipt::Rejected(_)) => {
            Err(format!("{other:?}").into())
        }
    }
}

async fn until_asked(model_requests: &mut ModelRequests, who: &str) -> Result<Instant, Error> {
    loop {
        let (word, at) = model_requests.recv().await.ok_or("the models are closed")?;
        if word == who {
            return Ok(at);
        }
    }
}

/// Waits until an agent is idle.
async fn until_idle(orchestrator: &Orchestrator, name: &AgentName) -> Result<(), Error> {
    let task = orchestrator.agent_task(name).await?.ok_or("it was not started")?;
    let mut follower = orchestrator.follow(Some(task.task_id), orchestrator.head().await?);
    loop {
        let idle = orchestrator.agents(std::num::NonZeroUsize::MAX).await?;
        let state = idle.iter().find(|live| live.agent == name.as_str()).map(|l| l.status.state);
        if state == Some(antiphon_core::AgentState::Idle) {
            return Ok(());
        }
        let event = tokio::time::timeout(Duration::from_millis(20), follower.next()).await;
        if let Ok(event) = event
            && let EventBody::StatusChanged(change) = event?.body
            && change.status.is_terminal()
        {
            return Err(format!("{name} has ended: {:?}", change.detail).into());
        }
    }
}
