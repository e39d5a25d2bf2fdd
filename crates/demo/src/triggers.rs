//! When the demo steers an agent and kills the server. Both depend on events and on the clock, never on
//! what the script is going to answer.
//!
//! | action | condition                                                                                 |
//! |--------|-------------------------------------------------------------------------------------------|
//! | steer  | the writer has called a tool; without a writer, any agent, a while after the dispatch     |
//! | kill   | an agent was steered, no approval is pending, and a call has been running for a moment; or the tasks are about to end |

use std::time::{Duration, Instant};

use antiphon_core::TaskId;

use crate::Speed;
use crate::observed::ObservedTree;

/// The agent that is steered, if it was dispatched.
const STEERED: &str = "writer";

/// How long the demo waits for each condition.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Timeouts {
    /// After the dispatch, until another agent than the writer is steered.
    pub(crate) steer: Duration,
    /// After the dispatch, until the kill does not need an approval before it.
    pub(crate) approval: Duration,
    /// How long a call must have been running before the kill.
    pub(crate) running: Duration,
    /// After the dispatch, until the kill needs no condition.
    pub(crate) kill: Duration,
    /// Until the demo gives up.
    pub(crate) all: Duration,
}

impl Timeouts {
    pub(crate) fn for_script(speed: Speed) -> Self {
        Self {
            steer: Duration::from_secs(8),
            approval: Duration::from_secs(15),
            running: match speed {
                Speed::Readable => Duration::from_millis(900),
                Speed::Fast => Duration::from_millis(100),
            },
            kill: Duration::from_secs(30),
            all: Duration::from_secs(120),
        }
    }

    /// A real model takes an unknown time.
    pub(crate) fn for_real_model() -> Self {
        Self {
            steer: Duration::from_secs(20),
            approval: Duration::from_secs(30),
            running: Duration::from_millis(100),
            kill: Duration::from_secs(120),
            all: Duration::from_secs(900),
        }
    }
}

/// The task that is steered now, if any.
pub(crate) fn steer(tree: &ObservedTree, timeouts: &Timeouts, now: Instant) -> Option<TaskId> {
    let waited = now.duration_since(tree.dispatched?);
    let mut active = tree.running_descendants().filter(|task| tree.has_called_tools(&task.task_id));
    let preferred = tree.running_descendants().find(|task| task.agent == STEERED);
    match preferred {
        Some(task) if tree.has_called_tools(&task.task_id) => Some(task.task_id.clone()),
        None if waited >= timeouts.steer => active.next().map(|task| task.task_id.clone()),
        Some(_) | None => None,
    }
}

/// Whether the server is killed now. `steered` means that no agent will be steered any more.
pub(crate) fn kill(tree: &ObservedTree, steered: bool, timeouts: &Timeouts, now: Instant) -> bool {
    let Some(dispatched) = tree.dispatched else { return false };
    let waited = now.duration_since(dispatched);
    // All descendants have ended: this is the last moment.
    let has_descendants = tree.tasks().count() > 1;
    if has_descendants && tree.running_descendants().next().is_none() {
        return true;
    }
    if tree.needs_approval() {
        return false;
    }
    if waited >= timeouts.kill {
        return true;
    }
    let approved = tree.approvals > 0 || waited >= timeouts.approval;
    let is_child =
        |task_id: &TaskId| tree.running_descendants().any(|task| task.task_id == *task_id);
    steered
        && approved
        && tree.running_calls().any(|(task_id, _, since)| {
            is_child(task_id) && now.duration_since(since) >= timeouts.running
        })
}
