//! Notices about resident agents, sent to the agents that name them as peers.

use std::collections::HashMap;
use std::sync::Arc;

use antiphon_core::port::{Append, Expected, IdempotencyKey, JournalError};
use antiphon_core::{
    AgentName, CallableAgents, HandlingMode, Interaction, InteractionContent, LifecycleIntent,
    MessageQueued, Provenance, RenderClass, RenderMetadata, Sender, SilentIntents, TaskCreated,
    TaskId, TaskStatus, TaskSummary, classify,
};
use serde_json::{Value, json};

use crate::dispatch::pending_call::TaskOutcome;
use crate::inbox::derived_id;
use crate::inbox::residents::ResidentTask;
use crate::inbox::start_agent;
use crate::orchestrator_error::OrchestratorError;
use crate::services::Services;
use crate::task::schedule::supervise;

/// What happened to an agent.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum LifecycleNotice {
    /// It was started.
    Added,
    /// It is no longer defined.
    Unwired,
    /// It has ended.
    Ended {
        status: TaskStatus,
        why: Value,
        /// It ended before its first model answer.
        at_kickoff: bool,
    },
}

impl LifecycleNotice {
    fn intent(&self) -> LifecycleIntent {
        match self {
            Self::Added => LifecycleIntent::PeerAdded,
            Self::Unwired => LifecycleIntent::PeerUnwired,
            Self::Ended { at_kickoff: false, .. } => LifecycleIntent::PeerRetired,
            Self::Ended { status: TaskStatus::Canceled, .. } => LifecycleIntent::KickoffCancelled,
            Self::Ended { .. } => LifecycleIntent::KickoffFailed,
        }
    }

    /// An agent that is no longer defined is out of reach of the tools that name it.
    fn render_class(&self) -> RenderClass {
        match self {
            Self::Added | Self::Ended { .. } => RenderClass::SystemNotice,
            Self::Unwired => RenderClass::ToolScopeNotice,
        }
    }

    fn params(&self, name: &AgentName) -> Value {
        match self {
            Self::Added | Self::Unwired => json!({ "peer": name }),
            Self::Ended { status, why, .. } => {
                let reason = why.get("error").unwrap_or(why);
                json!({ "peer": name, "status": status, "reason": reason })
            }
        }
    }
}

/// Notifies the agents that name an agent as a peer, once each.
pub(crate) async fn notify_peers(
    services: &Arc<Services>,
    name: &AgentName,
    about: &TaskId,
    notice: LifecycleNotice,
) -> Result<(), OrchestratorError> {
    for peer in services.residents.peers_of(name) {
        notify_peer(services, &peer, name, about, &notice).await?;
    }
    Ok(())
}

async fn notify_peer(
    services: &Arc<Services>,
    peer: &TaskId,
    name: &AgentName,
    about: &TaskId,
    notice: &LifecycleNotice,
) -> Result<(), OrchestratorError> {
    let intent = notice.intent().as_str();
    let key = format!("{intent}:{about}:{peer}");
    let content =
        InteractionContent::Request { intent: intent.to_owned(), params: notice.params(name) };
    let interaction = Interaction {
        id: derived_id::of_name(&key),
        from: Sender::Peer(name.clone()),
        content,
        handling_mode: HandlingMode::Queue,
        render_metadata: Some(RenderMetadata::usual(notice.render_class())),
    };
    let queued = MessageQueued::of(classify(interaction, &SilentIntents::default()))
        .from_provenance(Provenance::Agent(name.to_string()));
    let append = Append {
        task_id: peer.clone(),
        expected: Expected::Exists,
        at: services.deps.clock.now(),
        events: vec![queued.into()],
        key: Some(IdempotencyKey(key)),
    };
    match services.append(append).await {
        Ok(_) => supervise::start(services, peer),
        Err(JournalError::Ended { .. }) => {}
        Err(error) => return Err(error.into()),
    }
    Ok(())
}

/// Notifies live agents of changes of their peers since their own start: an earlier process may have
/// ended before it did. `live` are their tasks: only other peers are looked up, once each.
pub(crate) async fn notify_peers_again(
    services: &Arc<Services>,
    live: &HashMap<TaskId, TaskSummary>,
) -> Result<(), OrchestratorError> {
    let mut newest: HashMap<AgentName, Option<TaskSummary>> = HashMap::new();
    for ResidentTask { task_id, agents } in services.residents.all() {
        let CallableAgents::Only(names) = &agents else { continue };
        let since = match live.get(&task_id) {
            Some(task) => task.created_at,
            None => services.reader.summary(&task_id).await?.created_at,
        };
        for name in names.iter().filter_map(|name| AgentName::parse(name).ok()) {
            if !newest.contains_key(&name) {
                let lives = services.residents.find(&name).and_then(|id| live.get(&id));
                let last = match lives {
                    Some(task) => Some(task.clone()),
                    None => start_agent::newest_resident(services, &name).await?,
                };
                newest.insert(name.clone(), last);
            }
            let Some(Some(last)) = newest.get(&name) else { continue };
            let notice = match last.ended_at {
                Some(ended_at) if ended_at > since => end_of(services, last).await?,
                None if last.created_at > since => LifecycleNotice::Added,
                Some(_) | None => continue,
            };
            notify_peer(services, &task_id, &name, &last.task_id, &notice).await?;
        }
    }
    Ok(())
}

async fn end_of(
    services: &Services,
    task: &TaskSummary,
) -> Result<LifecycleNotice, OrchestratorError> {
    let TaskOutcome { status, content: why, .. } = services.reader.outcome(task).await?;
    Ok(LifecycleNotice::Ended { status, why, at_kickoff: task.turns == 0 })
}

/// Notifies the peers of an agent that is no longer defined.
pub(crate) async fn notify_undefined(
    services: &Arc<Services>,
    name: &AgentName,
) -> Result<(), OrchestratorError> {
    let Some(task_id) = services.residents.find(name) else { return Ok(()) };
    notify_peers(services, name, &task_id, LifecycleNotice::Unwired).await
}

/// Registers a resident agent that an earlier process started.
pub(crate) fn register_resident(services: &Services, task: &TaskSummary, created: &TaskCreated) {
    if let Ok(name) = AgentName::parse(&task.agent)
        && created.resident
    {
        let (task_id, agents) = (task.task_id.clone(), created.agents.clone());
        services.residents.insert(name, ResidentTask { task_id, agents });
    }
}

/// Removes an ended task from the residents and notifies the peers of its agent.
pub(crate) fn remove_resident(services: &Arc<Services>, task_id: &TaskId, outcome: &TaskOutcome) {
    services.sent_requests.forget(task_id);
    services.request_waits.forget(task_id);
    let Some(name) = services.residents.remove(task_id) else { return };
    let (shared, task_id, outcome) = (Arc::clone(services), task_id.clone(), outcome.clone());
    services.background.tracker.spawn(async move {
        let turns = shared.reader.summary(&task_id).await.map(|summary| summary.turns);
        let notice = LifecycleNotice::Ended {
            status: outcome.status,
            why: outcome.content,
            at_kickoff: turns.is_ok_and(|turns| turns == 0),
        };
        if let Err(error) = notify_peers(&shared, &name, &task_id, notice).await {
            tracing::warn!(agent.name = %name, %error, "could not notify the peers of an ended agent");
        }
    });
}
