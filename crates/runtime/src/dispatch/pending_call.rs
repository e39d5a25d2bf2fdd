//! Calls that wait for somebody else: for agents that were dispatched, for tasks that were
//! dispatched before, for the answer of a peer, for the client that offered a tool.
//!
//! Whether one is over is decided here, purely, from how the tasks it waits for ended.
//!
//! | waits for        | is over when                                                            |
//! |------------------|-------------------------------------------------------------------------|
//! | `single`, `all`  | every task has ended                                                    |
//! | `any`            | one has completed, or every one has ended                               |
//! | `quorum`         | so many have completed, or so many no longer can                        |
//! | `detached`       | its tasks are there                                                     |
//! | tasks            | one or all have ended, or its time is over                              |
//! | a peer           | its answer is in the inbox                                              |
//! | a client         | the client has said what came of it                                     |

use std::collections::HashMap;

use antiphon_core::{
    AgentResult, Awaiting, InteractionId, InvocationResult, Join, TaskId, TaskStatus,
};
use chrono::{DateTime, Utc};
use serde_json::Value;
use uuid::Uuid;

/// What a call without a result waits for.
#[derive(Debug, Clone, PartialEq)]
pub enum PendingCall {
    /// Agents that it dispatched.
    Children {
        /// How it waits.
        join: Join,
        /// Their tasks, in the order of the targets.
        children: Vec<TaskId>,
    },
    /// Tasks that were dispatched before.
    Await {
        /// Which.
        tasks: Vec<TaskId>,
        /// For how many of them.
        mode: Awaiting,
        /// For how long.
        until: Option<DateTime<Utc>>,
    },
    /// The answer of a peer.
    Request {
        /// To which request.
        id: InteractionId,
        /// When the answer is no.
        until: DateTime<Utc>,
    },
    /// The client that offered the tool.
    External {
        /// When somebody is to look why there is no result.
        until: DateTime<Utc>,
    },
}

/// How a task ended.
#[derive(Debug, Clone, PartialEq)]
pub struct Outcome {
    /// How.
    pub status: TaskStatus,
    /// What it delivered, or the reason why it did not.
    pub content: Value,
    /// When.
    pub ended_at: DateTime<Utc>,
}

/// The tasks that have ended, of those that somebody waits for.
pub type Outcomes = HashMap<TaskId, Outcome>;

impl PendingCall {
    /// The tasks it waits for.
    pub fn tasks(&self) -> &[TaskId] {
        match self {
            Self::Children { children, .. } => children,
            Self::Await { tasks, .. } => tasks,
            Self::Request { .. } | Self::External { .. } => &[],
        }
    }

    /// When it has to be looked at, whatever happens.
    pub(crate) fn until(&self) -> Option<DateTime<Utc>> {
        match self {
            Self::Children { .. } => None,
            Self::Await { until, .. } => *until,
            Self::Request { until, .. } | Self::External { until } => Some(*until),
        }
    }

    /// Whether it is over.
    pub(crate) fn is_over(&self, outcomes: &Outcomes, now: DateTime<Utc>) -> bool {
        let ended = |task: &&TaskId| outcomes.contains_key(*task);
        match self {
            Self::Children { join: Join::Detached, .. } => true,
            Self::Children { join: Join::Single | Join::All, children } => {
                children.iter().all(|child| outcomes.contains_key(child))
            }
            Self::Children { join: Join::Any, children } => enough(children, 1, outcomes),
            Self::Children { join: Join::Quorum { n }, children } => {
                enough(children, n.get() as usize, outcomes)
            }
            Self::Await { tasks, mode, until } => {
                until.is_some_and(|until| now >= until)
                    || match mode {
                        Awaiting::Any => tasks.iter().any(|task| outcomes.contains_key(task)),
                        Awaiting::All => tasks.iter().filter(ended).count() == tasks.len(),
                    }
            }
            // Both are over when somebody has written so.
            Self::Request { .. } | Self::External { .. } => false,
        }
    }

    /// How many of its tasks have to end, and how many have to complete, before it is worth a
    /// look.
    pub(crate) fn wants(&self) -> Wants {
        let len = self.tasks().len();
        match self {
            Self::Children { join: Join::Any, .. } => {
                Wants { completions: Some(1), ..Wants::all(len) }
            }
            Self::Children { join: Join::Quorum { n }, .. } => {
                let n = n.get() as usize;
                // So many failures, and it can no longer succeed.
                Wants { completions: Some(n), ..Wants::all((len + 1).saturating_sub(n)) }
            }
            Self::Await { mode: Awaiting::Any, .. } => Wants::all(1),
            Self::Children { .. }
            | Self::Await { .. }
            | Self::Request { .. }
            | Self::External { .. } => Wants::all(len),
        }
    }
}

/// When it is worth a look whether a call is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Wants {
    /// Tasks that have to end.
    pub(crate) ends: usize,
    /// Tasks that have to complete; either is enough.
    pub(crate) completions: Option<usize>,
    /// Every end is worth a look.
    pub(crate) each: bool,
}

impl Wants {
    /// Every end is worth a look.
    pub(crate) const EACH: Self = Self { ends: 1, completions: None, each: true };

    fn all(ends: usize) -> Self {
        Self { ends, completions: None, each: false }
    }
}

/// Whether `n` have completed, or can no longer.
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

/// What a dispatch delivers. A task that has not ended, because nobody waits for it any more,
/// counts as canceled.
pub(crate) fn delivered(join: Join, children: &[TaskId], outcomes: &Outcomes) -> InvocationResult {
    let result = |child: &TaskId| outcomes.get(child).map_or_else(|| gone(child), |o| o.of(child));
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

/// Whether a dispatch delivered what was asked of it.
pub(crate) fn succeeded(join: Join, result: &InvocationResult) -> bool {
    let completed = |result: &AgentResult| result.status == TaskStatus::Completed;
    match result {
        InvocationResult::TaskIds { .. } => true,
        InvocationResult::Scalar { result } => completed(result),
        InvocationResult::Vector { results } => {
            let completed = results.iter().filter(|result| completed(result)).count();
            match join {
                Join::Quorum { n } => completed >= n.get() as usize,
                // Each says for itself how it ended; together they fail when all did.
                Join::All => completed > 0,
                Join::Single | Join::Any | Join::Detached => false,
            }
        }
    }
}

/// The first that completed.
fn first<'a>(children: &'a [TaskId], outcomes: &Outcomes) -> Option<&'a TaskId> {
    let completed = children.iter().enumerate().filter_map(|(index, child)| {
        let outcome = outcomes.get(child)?;
        (outcome.status == TaskStatus::Completed).then_some((outcome.ended_at, index, child))
    });
    completed.min().map(|(_, _, child)| child)
}

impl Outcome {
    /// The same as a result of that task.
    pub(crate) fn of(&self, task_id: &TaskId) -> AgentResult {
        AgentResult { content: self.content.clone(), task_id: task_id.clone(), status: self.status }
    }
}

fn gone(task_id: &TaskId) -> AgentResult {
    let content = Value::String("nobody waited for it any more".to_owned());
    AgentResult { content, task_id: task_id.clone(), status: TaskStatus::Canceled }
}

/// What the report of a detached task is called: always the same for the same task, so that it
/// arrives once.
pub(crate) fn report_id(task_id: &TaskId) -> InteractionId {
    // Ours are UUIDs; another's name is folded into one.
    let named = Uuid::parse_str(task_id.as_str());
    InteractionId(named.unwrap_or_else(|_| folded(task_id.as_str().bytes())))
}

/// A name for something that a call of a task says, always the same for the same call. Some models
/// use an id again in a later answer, which is what `turn` is for.
pub(crate) fn derived_id(task_id: &TaskId, turn: u32, call: &str) -> InteractionId {
    let turn = turn.to_be_bytes();
    InteractionId(folded(task_id.as_str().bytes().chain([0]).chain(turn).chain(call.bytes())))
}

/// A name for something that is known by a text, always the same for the same text.
pub(crate) fn named_id(name: &str) -> InteractionId {
    InteractionId(folded(name.bytes()))
}

/// Bytes as a UUID: nobody can find others that are called the same.
fn folded(bytes: impl Iterator<Item = u8>) -> Uuid {
    Uuid::new_v5(&Uuid::NAMESPACE_OID, &bytes.collect::<Vec<u8>>())
}
