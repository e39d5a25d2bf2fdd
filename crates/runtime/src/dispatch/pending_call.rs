//! Calls that wait: for dispatched agents, for earlier tasks, for the answer of a peer, or for the
//! client that offered the tool.
//!
//! Decides, purely, from the outcomes of tasks whether the wait is over.
//!
//! | waits for        | is over when                                                            |
//! |------------------|-------------------------------------------------------------------------|
//! | `single`, `all`  | every task has ended                                                    |
//! | `any`            | one has completed, or all have ended                                    |
//! | `quorum`         | enough have completed, or too few still can                             |
//! | `detached`       | its tasks are created                                                   |
//! | tasks            | one or all have ended, or its time is over                              |
//! | a peer           | the answer is in the inbox                                              |
//! | a client         | the client has sent the result                                          |

use std::collections::HashMap;

use antiphon_core::{
    AgentResult, Awaiting, InteractionId, InvocationResult, Join, LeftOutTool, TaskId, TaskStatus,
};
use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::task::schedule::deadline_clock::DeadlineClock;

/// What a call without a result waits for.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum PendingCall {
    /// Agents that the call dispatched.
    Children {
        /// How their results are joined.
        join: Join,
        /// Their task ids, in the order of the targets.
        children: Vec<TaskId>,
        /// Tools that they were to have and do not get.
        left_out: Vec<LeftOutTool>,
    },
    /// Tasks that were dispatched earlier.
    Await {
        /// Ids of the tasks.
        tasks: Vec<TaskId>,
        /// Whether one or all of them have to end.
        mode: Awaiting,
        /// When the wait is over in any case; no limit when absent.
        until: Option<DateTime<Utc>>,
    },
    /// The answer of a peer.
    Request {
        /// Id of the request.
        id: InteractionId,
        /// When the request counts as failed.
        until: DateTime<Utc>,
    },
    /// The client that offered the tool.
    External {
        /// Name of the tool.
        tool_name: String,
        /// When the task is reported as waiting for its client.
        until: DateTime<Utc>,
    },
}

/// How a task ended.
#[derive(Debug, Clone, PartialEq)]
pub struct TaskOutcome {
    /// Terminal status.
    pub status: TaskStatus,
    /// The result, or the reason why there is none.
    pub content: Value,
    /// When it ended.
    pub ended_at: DateTime<Utc>,
}

/// Outcomes of the tasks that have ended, by task id.
pub type Outcomes = HashMap<TaskId, TaskOutcome>;

impl PendingCall {
    /// The tasks it waits for; empty for a peer or a client.
    pub fn tasks(&self) -> &[TaskId] {
        match self {
            Self::Children { children, .. } => children,
            Self::Await { tasks, .. } => tasks,
            Self::Request { .. } | Self::External { .. } => &[],
        }
    }

    /// When the task has to be checked in any case.
    pub(crate) fn until(&self) -> Option<DateTime<Utc>> {
        match self {
            Self::Children { .. } => None,
            Self::Await { until, .. } => *until,
            Self::Request { until, .. } | Self::External { until, .. } => Some(*until),
        }
    }

    /// Whether the wait is over.
    pub(crate) fn is_over(&self, outcomes: &Outcomes, time: &DeadlineClock) -> bool {
        let ended = |task: &&TaskId| outcomes.contains_key(*task);
        match self {
            Self::Children { join: Join::Detached, .. } => true,
            Self::Children { join: Join::Single | Join::All, children, .. } => {
                children.iter().all(|child| outcomes.contains_key(child))
            }
            Self::Children { join: Join::Any, children, .. } => enough(children, 1, outcomes),
            Self::Children { join: Join::Quorum { n }, children, .. } => {
                enough(children, n.get() as usize, outcomes)
            }
            Self::Await { tasks, mode, until } => {
                until.is_some_and(|until| time.has_passed(until))
                    || match mode {
                        Awaiting::Any => tasks.iter().any(|task| outcomes.contains_key(task)),
                        Awaiting::All => tasks.iter().filter(ended).count() == tasks.len(),
                    }
            }
            // Both are over when an event says so.
            Self::Request { .. } | Self::External { .. } => false,
        }
    }

    /// How many of its tasks have to end or to complete before the wait can be over.
    pub(crate) fn goal(&self) -> WaitGoal {
        let len = self.tasks().len();
        match self {
            Self::Children { join: Join::Any, .. } => {
                WaitGoal { completions: Some(1), ..WaitGoal::all(len) }
            }
            Self::Children { join: Join::Quorum { n }, .. } => {
                let n = n.get() as usize;
                // With so many failures it can no longer succeed.
                WaitGoal { completions: Some(n), ..WaitGoal::all((len + 1).saturating_sub(n)) }
            }
            Self::Await { mode: Awaiting::Any, .. } => WaitGoal::all(1),
            Self::Children { .. }
            | Self::Await { .. }
            | Self::Request { .. }
            | Self::External { .. } => WaitGoal::all(len),
        }
    }
}

/// When a waiting task is started to check its calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct WaitGoal {
    /// Number of tasks that have to end.
    pub(crate) ends: usize,
    /// Number of tasks that have to complete; either number is enough.
    pub(crate) completions: Option<usize>,
    /// Whether every end starts the task.
    pub(crate) notify_each: bool,
}

impl WaitGoal {
    /// Every end starts the task.
    pub(crate) const EACH: Self = Self { ends: 1, completions: None, notify_each: true };

    fn all(ends: usize) -> Self {
        Self { ends, completions: None, notify_each: false }
    }
}

/// Whether `n` have completed, or `n` no longer can.
fn enough(children: &[TaskId], n: usize, outcomes: &Outcomes) -> bool {
    let ended = children.iter().filter_map(|child| outcomes.get(child));
    let (mut completed, mut others) = (0, 0);
    for outcome in ended {
        if outcome.status == TaskStatus::Completed {
            completed += 1;
        } else {
            others += 1;
        }
    }
    completed >= n || children.len() - others < n
}

/// The result of a dispatch. A task that has not ended, because the call no longer waits for it,
/// counts as canceled.
pub(crate) fn join_result(
    join: Join,
    children: &[TaskId],
    outcomes: &Outcomes,
) -> InvocationResult {
    let result = |child: &TaskId| {
        outcomes.get(child).map_or_else(|| canceled_result(child), |o| o.of(child))
    };
    let all = || children.iter().map(result).collect();
    match join {
        Join::Detached => InvocationResult::TaskIds { task_ids: children.to_vec() },
        Join::Single => match children {
            [only] => InvocationResult::Scalar { result: result(only) },
            _ => InvocationResult::Vector { results: all() },
        },
        Join::Any => match first(children, outcomes) {
            Some(first) => InvocationResult::Scalar { result: result(first) },
            None => InvocationResult::Vector { results: all() },
        },
        Join::All | Join::Quorum { .. } => InvocationResult::Vector { results: all() },
    }
}

/// Whether a dispatch succeeded.
pub(crate) fn succeeded(join: Join, result: &InvocationResult) -> bool {
    let completed = |result: &AgentResult| result.status == TaskStatus::Completed;
    match result {
        InvocationResult::TaskIds { .. } => true,
        InvocationResult::Scalar { result } => completed(result),
        InvocationResult::Vector { results } => {
            let completed = results.iter().filter(|result| completed(result)).count();
            match join {
                Join::Quorum { n } => completed >= n.get() as usize,
                // Each result has its own status; together they fail when all did.
                Join::All => completed > 0,
                Join::Single | Join::Any | Join::Detached => false,
            }
        }
    }
}

/// The first task that completed.
fn first<'a>(children: &'a [TaskId], outcomes: &Outcomes) -> Option<&'a TaskId> {
    let completed = children.iter().enumerate().filter_map(|(index, child)| {
        let outcome = outcomes.get(child)?;
        (outcome.status == TaskStatus::Completed).then_some((outcome.ended_at, index, child))
    });
    completed.min().map(|(_, _, child)| child)
}

impl TaskOutcome {
    /// The outcome as a result of that task.
    pub(crate) fn of(&self, task_id: &TaskId) -> AgentResult {
        AgentResult { content: self.content.clone(), task_id: task_id.clone(), status: self.status }
    }
}

fn canceled_result(task_id: &TaskId) -> AgentResult {
    let content = Value::String("canceled: no longer waited for".to_owned());
    AgentResult { content, task_id: task_id.clone(), status: TaskStatus::Canceled }
}
