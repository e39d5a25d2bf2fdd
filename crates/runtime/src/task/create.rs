//! The beginning of a task that was just accepted.
//!
//! It is worked on at once, and thinks first. That is written together with its creation, which is one
//! append for what would be two, and nobody reads from the journal what was written to it a moment ago.
//! Whatever stands in the way of that (another task's words before its own, a runner, no model, an
//! orchestrator at rest) makes it a task like any other: it is read when it is taken up.

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

/// Writes an accepted task down and begins to work on it. Not to be dropped half-way.
pub(crate) async fn begin(
    inner: &Arc<Inner>,
    mut append: Append,
) -> Result<Appended, OrchestratorError> {
    let task_id = append.task_id.clone();
    if let Some(prepared) = thinking(inner, &mut append) {
        // Before anybody can see it: whoever takes it up first, or ends it, finds this.
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

/// Has the task think from the beginning, if it can.
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

/// Whether everything there is to know of a task is in its own creation.
fn is_plain(created: &TaskCreated) -> bool {
    created.runner.is_none() && created.history.is_none() && created.parent.is_none()
}
