//! What waits in the inboxes of live agents, and in those of agents that are not there: what was not
//! read when one ended waits for its next start. It is read from the journal, also beside the process
//! that works on it; nothing is changed.

use std::collections::HashMap;
use std::num::NonZeroUsize;

use antiphon_core::port::{TaskQuery, TaskSelector};
use antiphon_core::{
    AgentName, Event, EventBody, HandlingMode, Interaction, InteractionContent, InteractionId,
    PeerInputClass, Position, QueuedMessage, Salience, Sender, TaskId, TaskSummary, render,
};
use antiphon_runtime::{Orchestrator, OrchestratorError, is_resident};
use chrono::{DateTime, Utc};
use schemars::JsonSchema;
use serde::Serialize;

/// Interactions of all inboxes that are looked at, at most.
pub const WAITING_MAX: NonZeroUsize = NonZeroUsize::new(100_000).unwrap();

/// Tasks that have not ended among which live agents are looked for.
const TASKS_MAX: NonZeroUsize = NonZeroUsize::new(100_000).unwrap();

/// Something that waits in an inbox.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize)]
pub struct Waiting {
    /// Whose inbox.
    pub agent: String,
    /// Whether its agent is there.
    pub live: bool,
    /// The task that reads it; of an agent that is not there, its last.
    pub task_id: TaskId,
    /// When it arrived.
    pub at: DateTime<Utc>,
    /// Which.
    pub id: InteractionId,
    /// Who sent it.
    pub from: Sender,
    /// What it is to the orchestrator.
    pub class: PeerInputClass,
    /// How urgent it is.
    pub salience: Salience,
    /// When it may reach the model.
    pub mode: HandlingMode,
    /// Whether an agent that does nothing begins a turn for it.
    pub wakes: bool,
    /// When an answer comes too late.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub until: Option<DateTime<Utc>>,
    /// What it says.
    pub content: InteractionContent,
    /// What a model reads of it.
    pub rendered_text: String,
}

impl Waiting {
    /// What was queued, as it is shown.
    pub fn of(agent: &str, live: bool, queued: QueuedMessage) -> Self {
        let QueuedMessage { task_id, at, message, .. } = queued;
        Self {
            agent: agent.to_owned(),
            live,
            task_id,
            at,
            id: message.id,
            class: message.class,
            salience: message.salience(),
            mode: message.mode,
            wakes: message.wakes(),
            until: message.until,
            rendered_text: render(&Interaction {
                id: message.id,
                from: message.from.clone(),
                content: message.content.clone(),
                handling_mode: message.mode,
                render_metadata: message.render_metadata,
            }),
            from: message.from,
            content: message.content,
        }
    }
}

/// Whose inboxes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Inboxes<'a> {
    /// Those of live agents, and of these where they are not there.
    All(&'a [AgentName]),
    /// One agent's.
    Of(&'a AgentName),
}

/// What waits, in the order of arrival, live agents first.
pub async fn waiting(
    orchestrator: &Orchestrator,
    inboxes: Inboxes<'_>,
) -> Result<Vec<Waiting>, OrchestratorError> {
    let live = live_agents(orchestrator).await?;
    let mut found = Vec::new();
    for queued in orchestrator.queued(WAITING_MAX).await? {
        if let Some(task) = live.get(&queued.task_id)
            && inboxes.hold(&task.agent)
        {
            found.push(Waiting::of(&task.agent, true, queued));
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
            let left = left_behind(orchestrator, &last).await?;
            found.extend(left.into_iter().map(|queued| Waiting::of(&last.agent, false, queued)));
        }
    }
    Ok(found)
}

impl Inboxes<'_> {
    fn hold(&self, agent: &str) -> bool {
        match self {
            Self::All(_) => true,
            Self::Of(name) => name.as_str() == agent,
        }
    }
}

/// The standing tasks that have not ended, by id.
pub async fn live_agents(
    orchestrator: &Orchestrator,
) -> Result<HashMap<TaskId, TaskSummary>, OrchestratorError> {
    let query = TaskQuery { which: TaskSelector::Unfinished, limit: TASKS_MAX };
    let unfinished = orchestrator.tasks(query).await?;
    let standing = unfinished.into_iter().filter(is_resident);
    Ok(standing.map(|task| (task.task_id.clone(), task)).collect())
}

/// What a task that has ended had not read, in order.
async fn left_behind(
    orchestrator: &Orchestrator,
    last: &TaskSummary,
) -> Result<Vec<QueuedMessage>, OrchestratorError> {
    let mut left: Vec<QueuedMessage> = Vec::new();
    let mut events = orchestrator.follow(Some(last.task_id.clone()), Position(0));
    loop {
        let event = events.next().await?;
        let seq = event.seq;
        let gone = event.body.leaves_inbox();
        left.retain(|queued| Some(queued.message.id) != gone);
        if let EventBody::MessageQueued(message) = event.body {
            let Event { task_id, position, at, .. } = event;
            left.push(QueuedMessage { task_id, position, at, message });
        }
        if seq >= last.seq {
            return Ok(left);
        }
    }
}
