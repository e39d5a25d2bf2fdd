//! Creates an accepted task and starts it.
//!
//! The creation and the first state change are one append, and the new state goes to the cache, so
//! that the start reads nothing from the journal. Tasks that continue another conversation, use a
//! runner, have a parent, or have no model here, take the usual way: created, then loaded.

use std::sync::Arc;

use antiphon_core::port::{Append, Appended};
use antiphon_core::{
    AgentId, AgentState, EventBody, StateChanged, StatusChanged, TaskCreated, TaskStatus,
};

use crate::budget::tree::Tree;
use crate::orchestrator_error::OrchestratorError;
use crate::services::{Age, Inner, Prepared};
use crate::task::conversation::Conversation;
use crate::task::run_slots;
use crate::task::state::TaskState;

/// Appends an accepted task and starts it. Must not be dropped before it returns.
pub(crate) async fn begin(
    inner: &Arc<Inner>,
    mut append: Append,
) -> Result<Appended, OrchestratorError> {
    let task_id = append.task_id.clone();
    if let Some(prepared) = thinking(inner, &mut append) {
        // Before the task becomes visible: the first run or cancel finds the cached state.
        inner.prepare(task_id.clone(), prepared);
    }
    let appended = inner.append(append).await;
    if !appended.as_ref().is_ok_and(|appended| appended.task_id == task_id) {
        inner.take_prepared(&task_id);
    }
    let appended = appended?;
    run_slots::start(inner, &appended.task_id);
    Ok(appended)
}

/// Adds the first state change to the append, if the task can start at once.
fn thinking(inner: &Inner, append: &mut Append) -> Option<Prepared> {
    let Some((EventBody::TaskCreated(created), said)) = append.events.split_first() else {
        return None;
    };
    if inner.stop.is_cancelled() || !is_plain(created) {
        return None;
    }
    let (task_id, before) = (append.task_id.clone(), Conversation::default());
    let mut state = TaskState::created(task_id.clone(), created.clone(), append.at, before);
    for body in said {
        state.apply(body);
    }
    inner.check_model(&state).ok()?;
    let trees = vec![inner.trees.share(Tree::sprout(task_id, created))];
    let agent_id = AgentId::from(inner.world.ids.next());
    let (from, to) = (AgentState::Idle, AgentState::Thinking);
    let begun: [EventBody; 2] = [
        StatusChanged::new(TaskStatus::Running).into(),
        StateChanged { agent_id, from, to }.into(),
    ];
    for body in begun {
        state.apply(&body);
        append.events.push(body);
    }
    Some(Prepared { state, trees, thinking: Some(agent_id), age: Age::New })
}

/// Whether the creation event alone describes the task.
fn is_plain(created: &TaskCreated) -> bool {
    created.runner.is_none() && created.history.is_none() && created.parent.is_none()
}
