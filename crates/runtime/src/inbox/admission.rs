//! Admission: an interaction is classified once, recorded in the agent's inbox, and then accepted.
//!
//! | receipt        | when                                                                     |
//! |----------------|--------------------------------------------------------------------------|
//! | `accepted`     | it is durable                                                            |
//! | `deduplicated` | the same sender has used the same key before                             |
//! | `filtered`     | it is an acknowledgment and needs no inbox                               |
//! | `rejected`     | it is not recorded; the reason says what to do                           |
//!
//! Whether an inbox is full is decided in `quotas.rs`.

use std::sync::Arc;

use antiphon_core::port::{Append, Expected, IdempotencyKey, JournalError};
use antiphon_core::{
    AgentDefinition, AgentName, Interaction, InteractionContent, InteractionId, MessageQueued,
    PeerInputClass, Provenance, Sender, TaskId, Wake, classify,
};
use chrono::TimeDelta;

use crate::inbox::arrival::{Arrival, Receipt, Rejection, check, interface_refusal};
use crate::inbox::derived_id;
use crate::inbox::lifecycle;
use crate::inbox::peer_tools;
use crate::inbox::quotas::{Full, Reservation};
use crate::inbox::start_agent;
use crate::orchestrator_error::OrchestratorError;
use crate::services::Services;
use crate::task::schedule::deadlines;
use crate::task::schedule::supervise;

/// Most names of agents in the refusal of an unknown one.
pub(crate) const KNOWN_SHOWN_MAX: usize = 64;

/// What the orchestrator, not the sender, determines about an interaction.
pub(crate) struct Origin {
    pub(crate) id: InteractionId,
    /// Id of the task that waits for an answer.
    pub(crate) reply_to: Option<TaskId>,
    pub(crate) key: Option<IdempotencyKey>,
    pub(crate) starts: StartPolicy,
    /// Number of consecutive messages between agents, including this one.
    pub(crate) hops: u32,
}

/// Whether an interaction may start the agent it is addressed to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StartPolicy {
    /// The sender is a user, or an interface that a user opened.
    MayStart,
    /// The sender is an agent: only running agents are reached.
    OnlyStarted,
}

/// Admits an interaction from an interface.
pub(crate) async fn admit(
    services: &Arc<Services>,
    arrival: Arrival,
    starts: StartPolicy,
) -> Result<Receipt, OrchestratorError> {
    if let Some(refusal) = interface_refusal(&arrival) {
        return Ok(Receipt::Rejected(refusal));
    }
    let key = key_of(&arrival);
    let id = match &key {
        Some(key) => derived_id::of_name(&key.0),
        None => InteractionId::from(services.deps.ids.next()),
    };
    let origin = Origin { id, reply_to: None, key, starts, hops: 0 };
    admit_as(services, arrival, origin).await
}

/// Admits an interaction of known origin.
pub(crate) async fn admit_as(
    services: &Arc<Services>,
    arrival: Arrival,
    origin: Origin,
) -> Result<Receipt, OrchestratorError> {
    let (key, starts) = (origin.key.clone(), origin.starts);
    let (to, from) = (arrival.to.clone(), arrival.from.clone());
    let rejected = match classify_arrival(services, arrival, origin) {
        Ok(Some(queued)) => {
            match queue_for_agent(services, &to, queued, key.clone(), starts).await? {
                Ok(receipt) => return Ok(receipt),
                Err(rejection) => rejection,
            }
        }
        Ok(None) => return Ok(Receipt::Filtered),
        Err(rejection) => rejection,
    };
    // An interaction that was accepted once stays accepted, even when the inbox is full now.
    if let Some(key) = &key
        && let Some(first) = services.deps.journal.answered(key).await?
    {
        let id = derived_id::of_name(&key.0);
        return Ok(Receipt::Deduplicated { id, task_id: first.task_id });
    }
    tracing::debug!(agent.name = %to, sender = %from, %rejected, "rejected");
    Ok(Receipt::Rejected(rejected))
}

/// Classifies and checks an interaction. `None` when it is filtered.
fn classify_arrival(
    services: &Services,
    arrival: Arrival,
    origin: Origin,
) -> Result<Option<MessageQueued>, Rejection> {
    let definition = definition_of(services, &arrival.to)?;
    check(&arrival.from, &arrival.content, arrival.payload.as_ref(), &definition)?;
    let interaction = Interaction {
        id: origin.id,
        from: arrival.from,
        content: arrival.content,
        handling_mode: arrival.mode,
        render_metadata: arrival.render_metadata,
    };
    let candidate = classify(interaction, &definition.silent_intents);
    if candidate.class == PeerInputClass::Ack {
        return Ok(None);
    }
    let quiet = arrival.wake == Wake::No;
    let (reply_to, hops) = (origin.reply_to, origin.hops);
    let payload = arrival.payload;
    let provenance = stamped(arrival.provenance, &candidate.interaction.from);
    let queued = MessageQueued {
        quiet,
        reply_to,
        hops,
        payload,
        provenance,
        ..MessageQueued::of(candidate)
    };
    // Every request has a deadline.
    let usual = TimeDelta::seconds(i64::from(peer_tools::REQUEST_TIMEOUT_S_DEFAULT));
    let until = arrival.until.unwrap_or_else(|| services.deps.clock.now() + usual);
    let until = Some(until).filter(|_| queued.expects_answer() || arrival.until.is_some());
    let boot_until = until.and_then(|until| services.time.boot_until(until));
    Ok(Some(MessageQueued { until, boot_until, ..queued }))
}

/// The provenance to record. A person who sends in the name of a source sends an event.
fn stamped(provenance: Provenance, from: &Sender) -> Provenance {
    match from {
        Sender::External(source) if provenance.is_person() => {
            Provenance::Event(source.as_str().to_owned())
        }
        Sender::External(_) | Sender::User | Sender::Peer(_) => provenance,
    }
}

/// Checks a request against the definition of the receiving agent.
pub(crate) fn check_request(
    services: &Services,
    to: &AgentName,
    intent: &str,
    params: &serde_json::Value,
) -> Result<(), Rejection> {
    let (intent, params) = (intent.to_owned(), params.clone());
    let arrival = Arrival {
        content: InteractionContent::Request { intent, params },
        ..Arrival::message(to.clone(), Sender::User, "")
    };
    if let Some(refusal) = interface_refusal(&arrival) {
        return Err(refusal);
    }
    check(&arrival.from, &arrival.content, None, &*definition_of(services, to)?)
}

pub(crate) fn definition_of(
    services: &Services,
    name: &AgentName,
) -> Result<Arc<AgentDefinition>, Rejection> {
    let agents = services.deps.agents.as_ref();
    let found = agents.and_then(|agents| agents.find(name.as_str()));
    found.ok_or_else(|| {
        let known = agents.map(|agents| agents.list());
        let known = known.iter().flat_map(|known| known.iter());
        let known = known.map(|agent| agent.name.to_string()).take(KNOWN_SHOWN_MAX).collect();
        Rejection::UnknownAgent { agent: name.to_string(), known }
    })
}

/// Records the interaction in the inbox of the agent's resident task.
async fn queue_for_agent(
    services: &Arc<Services>,
    to: &AgentName,
    queued: MessageQueued,
    key: Option<IdempotencyKey>,
    starts: StartPolicy,
) -> Result<Result<Receipt, Rejection>, OrchestratorError> {
    loop {
        let provenance = &queued.provenance;
        let task_id = match start_agent::started_task(services, to, starts, provenance).await? {
            Ok(task_id) => task_id,
            Err(rejection) => return Ok(Err(rejection)),
        };
        let id = queued.id;
        match queue_for_task(services, &task_id, queued.clone(), key.clone()).await? {
            QueueOutcome::Queued { deduplicated: false, task_id } => {
                return Ok(Ok(Receipt::Accepted { id, task_id }));
            }
            QueueOutcome::Queued { deduplicated: true, task_id } => {
                return Ok(Ok(Receipt::Deduplicated { id, task_id }));
            }
            QueueOutcome::Full(full) => {
                let agent = to.to_string();
                return Ok(Err(match full {
                    Full::Inbox => Rejection::Full { agent },
                    Full::Sender => Rejection::SenderFull { agent, from: queued.from },
                }));
            }
            // The process that ended it may not have removed the resident yet.
            QueueOutcome::Ended => {
                let outcome =
                    services.reader.outcome(&services.reader.summary(&task_id).await?).await?;
                lifecycle::remove_resident(services, &task_id, &outcome);
            }
        }
    }
}

/// Records an interaction in the inbox of a task and starts the task.
pub(crate) async fn queue_for_task(
    services: &Arc<Services>,
    task_id: &TaskId,
    mut queued: MessageQueued,
    key: Option<IdempotencyKey>,
) -> Result<QueueOutcome, OrchestratorError> {
    if !services.quotas.is_counted(task_id) {
        let state = services.reader.load_without_messages(task_id).await?;
        services.quotas.count(task_id, &state.queue);
    }
    let mut counted = Vec::new();
    match services.quotas.reserve(task_id, &queued) {
        Ok(Reservation::New { replaces }) => {
            queued.replaces = replaces;
            counted.push(queued.id);
        }
        Ok(Reservation::AlreadyCounted) => {}
        Err(full) => return Ok(QueueOutcome::Full(full)),
    }
    let until = queued.until.filter(|_| queued.expects_answer()).map(|until| (until, queued.id));
    let append = Append {
        task_id: task_id.clone(),
        expected: Expected::Exists,
        at: services.deps.clock.now(),
        events: vec![queued.into()],
        key,
    };
    // On a future of its own: the caller may stop waiting, but the task must start.
    let shared = Arc::clone(services);
    let task_id = task_id.clone();
    services
        .background
        .run_detached(async move {
            match shared.append(append).await {
                Ok(appended) => {
                    if appended.deduplicated {
                        shared.quotas.release(&task_id, &counted);
                    }
                    let deduplicated = appended.deduplicated;
                    // Before the task can answer, which drops the deadline.
                    if let Some((until, request)) = until.filter(|_| !deduplicated) {
                        deadlines::watch_reply(&shared, until, task_id.clone(), request);
                    }
                    supervise::start(&shared, &task_id);
                    Ok(QueueOutcome::Queued { deduplicated, task_id: appended.task_id })
                }
                Err(JournalError::Ended { .. }) => {
                    shared.quotas.forget(&task_id);
                    Ok(QueueOutcome::Ended)
                }
                Err(error) => {
                    shared.quotas.release(&task_id, &counted);
                    Err(error.into())
                }
            }
        })
        .await
}

/// Result of recording an interaction in an inbox.
pub(crate) enum QueueOutcome {
    Queued { deduplicated: bool, task_id: TaskId },
    Full(Full),
    Ended,
}

/// The idempotency key of an arrival, if its sender gave it one.
pub(crate) fn key_of(arrival: &Arrival) -> Option<IdempotencyKey> {
    arrival.key.as_ref().map(|key| keyed(&arrival.to, &arrival.from, key))
}

/// Keys are separate for each sender and receiver.
fn keyed(to: &AgentName, from: &Sender, key: &str) -> IdempotencyKey {
    IdempotencyKey(format!("inbox:{to}:{from}:{key}"))
}
