//! Creates an accepted task and starts it.
//!
//! The creation and the first state change are one append, and the new state goes to the cache, so
//! that the start reads nothing from the journal. Tasks that continue a conversation which is not in memory,
//! use a runner, have a parent, or have no model here, take the usual way: created, then loaded.
//!
//! A repeated idempotency key is found by the journal, in the transaction of the creation
//! (`crates/stores/sqlite/src/writer/append_transaction.rs`): it answers with the first task and records nothing.

use std::pin::pin;
use std::sync::Arc;

use antiphon_core::port::{Append, Appended, JournalError};
use antiphon_core::{
    AgentId, AgentState, EventBody, StateChanged, StatusChanged, TaskCreated, TaskId, TaskStatus,
};

use crate::budget::tree_usage::Tree;
use crate::orchestrator_error::OrchestratorError;
use crate::services::Services;
use crate::task::schedule::supervise::{self, EarlyStart};
use crate::task::state::TaskState;
use crate::task::state::conversation::Conversation;
use crate::task::state::state_cache::{AfterEnd, CachedTask, Freshness};

/// A task that the journal holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AcceptedTask {
    /// Id of the task. For a repeated idempotency key: the task of the first request.
    pub task_id: TaskId,
    /// Whether the idempotency key was used before. Then this request recorded nothing.
    pub deduplicated: bool,
}

impl From<Appended> for AcceptedTask {
    fn from(Appended { task_id, deduplicated, .. }: Appended) -> Self {
        Self { task_id, deduplicated }
    }
}

/// Appends an accepted task and starts it. Must not be dropped before it returns.
pub(crate) async fn create_and_start(
    services: &Arc<Services>,
    mut append: Append,
    after_end: AfterEnd,
) -> Result<Appended, OrchestratorError> {
    let task_id = append.task_id.clone();
    let mut may_start = false;
    if let Some(prepared) = started_state(services, &mut append, after_end) {
        may_start = may_start_early(services, &prepared.state.created);
        // Before the task becomes visible: the first run or cancel finds the cached state.
        services.cache.insert(task_id.clone(), prepared);
    }
    let followed = matches!(append.events.first(), Some(EventBody::TaskCreated(it)) if it.followed);
    if followed {
        services.followed.note_client(&task_id);
    }
    let (appended, mut early) = append_and_start_early(services, append, may_start).await;
    if !appended.as_ref().is_ok_and(|appended| appended.task_id == task_id) {
        drop(early.take());
        services.cache.take(&task_id);
        services.followed.forget(&task_id);
    }
    let appended = appended?;
    match early {
        Some(early) => early.recorded(),
        None => supervise::start(services, &appended.task_id),
    }
    Ok(appended)
}

/// Writes a creation. The task starts meanwhile if it may and if it is certainly not a repeated one.
async fn append_and_start_early(
    services: &Arc<Services>,
    append: Append,
    may_start: bool,
) -> (Result<Appended, JournalError>, Option<EarlyStart>) {
    let task_id = append.task_id.clone();
    let start = || supervise::start_early(services, &task_id);
    let Some(key) = append.key.clone() else {
        let early = if may_start { start() } else { None };
        return (services.append(append).await, early);
    };
    let written = services.creation_keys.begin(&key);
    if !may_start {
        return (services.append(append).await, None);
    }
    let mut appending = pin!(services.append(append));
    let is_new = written.is_new(&task_id, &*services.deps.journal);
    tokio::select! {
        // The journal gets the creation before it is asked about the key.
        biased;
        appended = &mut appending => (appended, None),
        is_new = is_new => {
            let early = if is_new { start() } else { None };
            (appending.await, early)
        }
    }
}

/// Whether the first model request of a task may leave while its creation is written. When that write fails, what the
/// request cost is not recorded: under a spend limit the request waits.
fn may_start_early(services: &Services, created: &TaskCreated) -> bool {
    !created.followed && !services.budget.limits.applies_to(created.payer.as_deref())
}

/// Adds the first state change to the append, if the task can start at once.
fn started_state(
    services: &Services,
    append: &mut Append,
    after_end: AfterEnd,
) -> Option<CachedTask> {
    let Some((EventBody::TaskCreated(created), said)) = append.events.split_first() else {
        return None;
    };
    if services.background.stop.is_cancelled() || !is_plain(created) {
        return None;
    }
    let before = match &created.history {
        Some(history) => services.reader.conversations.find(history)?,
        None => Conversation::default(),
    };
    let task_id = append.task_id.clone();
    let mut state = TaskState::created(task_id.clone(), created.clone(), append.at, before);
    for body in said {
        state.apply(body);
    }
    services.check_model(&state).ok()?;
    let trees = vec![services.trees.register(Tree::for_new_task(task_id, created))];
    let agent_id = AgentId::from(services.deps.ids.random());
    let (from, to) = (AgentState::Idle, AgentState::Thinking);
    let begun: [EventBody; 2] = [
        StatusChanged::new(TaskStatus::Running).into(),
        StateChanged::new(agent_id, from, to).into(),
    ];
    for body in begun {
        state.apply(&body);
        append.events.push(body);
    }
    let (thinking, freshness) = (Some(agent_id), Freshness::Complete);
    Some(CachedTask { state, trees, thinking, freshness, after_end })
}

/// Whether the creation event and the conversation before it alone describe the task.
fn is_plain(created: &TaskCreated) -> bool {
    created.runner.is_none() && created.parent.is_none()
}
