//! Interactions that wait in inboxes: of live agents, and of agents that are not live, whose unread
//! interactions wait for their next start. Read from the journal, without changing anything.

use std::num::NonZeroUsize;

use antiphon_api::{InboxPage, QueuedInteraction};
use antiphon_core::port::QueuedQuery;
use antiphon_core::{AgentName, EventBody, Position, QueuedMessage, TaskSummary};
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

/// Interactions that wait, in the order of arrival: all of them up to [`QUEUED_INTERACTIONS_MAX`], or a page.
pub async fn queued_interactions(
    orchestrator: &Orchestrator,
    inboxes: Inboxes<'_>,
    page: impl Into<QueuedQuery>,
) -> Result<InboxPage, OrchestratorError> {
    let live = live_agents(orchestrator).await?;
    let mut found: Vec<(String, bool, QueuedMessage)> = Vec::new();
    for queued in orchestrator.queued(QUEUED_INTERACTIONS_MAX).await? {
        if let Some(task) = live.get(&queued.task_id)
            && inboxes.include(&task.agent)
        {
            found.push((task.agent.clone(), true, queued));
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
            found.extend(unread.into_iter().map(|queued| (last.agent.clone(), false, queued)));
        }
    }
    found.sort_by_key(|(_, _, queued)| queued.position);
    Ok(page_of(found, &page.into()))
}

/// One page of what was found.
fn page_of(found: Vec<(String, bool, QueuedMessage)>, page: &QueuedQuery) -> InboxPage {
    let total = found.len();
    let mut rest = found.into_iter().filter(|(_, _, queued)| queued.position > page.after);
    let waiting: Vec<QueuedInteraction> = rest
        .by_ref()
        .take(page.limit.get())
        .map(|(agent, live, queued)| QueuedInteraction::of(&agent, live, queued))
        .collect();
    let next_cursor = rest.next().and_then(|_| waiting.last()).map(|last| last.position);
    InboxPage { waiting, total, next_cursor }
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
        let read = event.body.leaves_inbox();
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
