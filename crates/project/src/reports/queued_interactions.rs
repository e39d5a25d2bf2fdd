//! Interactions that wait in inboxes: of live agents, and of agents that are not live, whose unread
//! interactions wait for their next start. Read from the journal, without changing anything.

use std::num::NonZeroUsize;

use antiphon_api::QueuedInteraction;
use antiphon_core::{
    AgentName, EventBody, InteractionId, MessageQueued, Position, QueuedMessage, TaskSummary,
};
use antiphon_runtime::{Orchestrator, OrchestratorError};

use crate::reports::presence::live_agents;

/// Interactions of all inboxes that are read, at most.
pub const QUEUED_INTERACTIONS_MAX: NonZeroUsize = NonZeroUsize::new(100_000).unwrap();

/// Whose inboxes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Inboxes<'a> {
    /// Inboxes of live agents, and of the named agents that are not live.
    All(&'a [AgentName]),
    /// The inbox of one agent.
    Of(&'a AgentName),
}

/// Interactions that wait, in the order of arrival, those of live agents first.
pub async fn queued_interactions(
    orchestrator: &Orchestrator,
    inboxes: Inboxes<'_>,
) -> Result<Vec<QueuedInteraction>, OrchestratorError> {
    let live = live_agents(orchestrator).await?;
    let mut found = Vec::new();
    for queued in orchestrator.queued(QUEUED_INTERACTIONS_MAX).await? {
        if let Some(task) = live.get(&queued.task_id)
            && inboxes.include(&task.agent)
        {
            found.push(QueuedInteraction::of(&task.agent, true, queued));
        }
    }
    let names = match inboxes {
        Inboxes::All(names) => names,
        Inboxes::Of(name) => std::slice::from_ref(name),
    };
    for name in names {
        if live.values().any(|task| task.agent == name.as_str()) {
            continue;
        }
        if let Some(last) = orchestrator.agent_task(name).await? {
            let unread = unread(orchestrator, &last).await?;
            found.extend(
                unread.into_iter().map(|queued| QueuedInteraction::of(&last.agent, false, queued)),
            );
        }
    }
    Ok(found)
}

impl Inboxes<'_> {
    fn include(&self, agent: &str) -> bool {
        match self {
            Self::All(_) => true,
            Self::Of(name) => name.as_str() == agent,
        }
    }
}

/// Interactions that a task had not read when it ended, in the order of arrival.
async fn unread(
    orchestrator: &Orchestrator,
    last: &TaskSummary,
) -> Result<Vec<QueuedMessage>, OrchestratorError> {
    let mut unread: Vec<QueuedMessage> = Vec::new();
    let mut events = orchestrator.follow(Some(last.task_id.clone()), Position(0));
    loop {
        let event = events.next().await?;
        let seq = event.seq;
        let read = read_by(&event.body);
        unread.retain(|queued| Some(queued.message.id) != read);
        if let EventBody::MessageQueued(message) = event.body {
            unread.push(QueuedMessage {
                task_id: event.task_id,
                position: event.position,
                at: event.at,
                message,
            });
        }
        if seq >= last.seq {
            return Ok(unread);
        }
    }
}

/// The interaction that an event takes out of the inbox.
fn read_by(body: &EventBody) -> Option<InteractionId> {
    if let EventBody::MessageQueued(MessageQueued { replaces, .. }) = body {
        *replaces
    } else if let EventBody::MessageAppended(appended) = body {
        appended.queued
    } else if let EventBody::Replied(replied) = body {
        Some(replied.in_reply_to)
    } else {
        None
    }
}
