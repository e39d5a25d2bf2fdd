//! Filter of tasks.

use crate::{SessionId, TaskId, TaskStatus, TaskSummary};

/// Filter of tasks. An absent or empty field is no condition; all others must hold.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TaskFilter {
    /// Only tasks with one of these statuses.
    pub statuses: Vec<TaskStatus>,
    /// Only tasks of this agent.
    pub agent: Option<String>,
    /// Only tasks of this session.
    pub session: Option<SessionId>,
    /// Only tasks that this API key pays for.
    pub payer: Option<String>,
    /// Only tasks without a parent.
    pub roots: bool,
    /// No tasks that only record an order, see [`TaskSummary::is_record`].
    pub without_records: bool,
    /// Only tasks created before this one. A task that does not exist gives an empty page.
    pub before: Option<TaskId>,
}

impl TaskFilter {
    /// Whether a task matches, without regard to `before`.
    pub fn matches(&self, task: &TaskSummary) -> bool {
        (self.statuses.is_empty() || self.statuses.contains(&task.status))
            && self.agent.as_ref().is_none_or(|agent| *agent == task.agent)
            && self.session.as_ref().is_none_or(|session| *session == task.session_id)
            && self.payer.as_ref().is_none_or(|payer| task.payer.as_ref() == Some(payer))
            && !(self.roots && task.parent.is_some())
            && !(self.without_records && task.is_record())
    }
}
