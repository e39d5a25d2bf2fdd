//! Finds an interaction by its id, or the beginning of it: in the inboxes, then in what agents have read, the newest
//! first.

use std::num::NonZeroUsize;

use antiphon_api::QueuedInteraction;
use antiphon_core::port::{JournalError, TaskQuery, TaskSelector};
use antiphon_core::{
    AgentName, Event, EventBody, InteractionId, Position, QueuedMessage, TaskSummary,
};
use antiphon_project::error::ProjectError;
use antiphon_project::{Inboxes, QUEUED_INTERACTIONS_MAX, live_agents};
use antiphon_runtime::{Orchestrator, session_of};

use super::Connection;

/// Most resident tasks of one agent that are searched, the newest first.
const TASKS_MAX: NonZeroUsize = NonZeroUsize::new(64).unwrap();

/// An interaction, and whether it is still queued.
#[derive(Debug, Clone)]
pub struct FoundInteraction {
    /// The interaction as its inbox has it, or had it.
    pub interaction: QueuedInteraction,
    /// `false` when the agent has read it.
    pub waits: bool,
}

impl Connection {
    /// The interaction whose id begins so. `names` are the defined agents, whose inboxes are searched.
    pub async fn find_interaction(
        &self,
        names: &[AgentName],
        id: &str,
    ) -> Result<FoundInteraction, ProjectError> {
        if let Some(interaction) = find_waiting(self, names, id).await? {
            return Ok(FoundInteraction { interaction, waits: true });
        }
        let read = find_read(self.reader(), names, id).await?;
        let none = || {
            ProjectError::InvalidInput(format!(
                "there is no interaction `{id}` here: see `antiphon inbox list`"
            ))
        };
        Ok(FoundInteraction { interaction: read.ok_or_else(none)?, waits: false })
    }
}

fn matches_id(found: InteractionId, id: &str) -> bool {
    let (found, id) = (found.to_string(), id.to_lowercase());
    // The last group of a UUID is random, and the first ones are a time.
    let random = found.rsplit('-').next().unwrap_or_default();
    found.starts_with(&id) || random.starts_with(&id)
}

async fn find_waiting(
    connection: &Connection,
    names: &[AgentName],
    id: &str,
) -> Result<Option<QueuedInteraction>, ProjectError> {
    let found =
        connection.queued_interactions(Inboxes::All(names), QUEUED_INTERACTIONS_MAX).await?;
    let mut matching = found.waiting.into_iter().filter(|waiting| matches_id(waiting.id, id));
    match (matching.next(), matching.next()) {
        (Some(one), Some(other)) if one.id != other.id => Err(more_than_one(id)),
        (first, _) => Ok(first),
    }
}

fn more_than_one(id: &str) -> ProjectError {
    ProjectError::InvalidInput(format!(
        "more than one interaction begins with `{id}`: give more of it"
    ))
}

/// Looks through what agents have read.
async fn find_read(
    reader: &Orchestrator,
    names: &[AgentName],
    id: &str,
) -> Result<Option<QueuedInteraction>, ProjectError> {
    let mut names = names.to_vec();
    for task in live_agents(reader).await?.into_values() {
        names.extend(AgentName::parse(&task.agent).ok().filter(|name| !names.contains(name)));
    }
    let mut found: Option<QueuedInteraction> = None;
    for name in names {
        let query =
            TaskQuery { which: TaskSelector::Session(session_of(&name)?), limit: TASKS_MAX };
        for task in reader.tasks(query).await? {
            for interaction in arrived(reader, &task, id).await? {
                if found.as_ref().is_some_and(|found| found.id != interaction.id) {
                    return Err(more_than_one(id));
                }
                found.get_or_insert(interaction);
            }
        }
    }
    Ok(found)
}

/// What arrived at a task under an id that begins so.
async fn arrived(
    reader: &Orchestrator,
    task: &TaskSummary,
    id: &str,
) -> Result<Vec<QueuedInteraction>, ProjectError> {
    let mut found = Vec::new();
    let mut events = reader.follow(Some(task.task_id.clone()), Position(0));
    loop {
        let unavailable = |error: JournalError| ProjectError::Unavailable(error.to_string());
        let event = events.next().await.map_err(unavailable)?;
        let seq = event.seq;
        if let EventBody::MessageQueued(message) = event.body
            && matches_id(message.id, id)
        {
            let Event { task_id, position, at, .. } = event;
            let queued = QueuedMessage { task_id, position, at, message };
            let live = !task.status.is_terminal();
            found.push(QueuedInteraction::of(&task.agent, live, queued));
        }
        if seq >= task.seq {
            return Ok(found);
        }
    }
}
