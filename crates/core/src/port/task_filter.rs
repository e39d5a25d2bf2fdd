//! Which tasks of a long list.

use crate::{SessionId, TaskId, TaskStatus, TaskSummary};

/// Which tasks of a long list. What is absent or empty is no condition; all others hold together.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TaskFilter {
    /// How far they got: one of these.
    pub statuses: Vec<TaskStatus>,
    /// Who works on them.
    pub agent: Option<String>,
    /// Their conversation.
    pub session: Option<SessionId>,
    /// Nobody dispatched them.
    pub tops: bool,
    /// They are more than what is kept of an order, see [`TaskSummary::is_record`].
    pub without_records: bool,
    /// They were created before this one. When there is no such task, there are none before it.
    pub before: Option<TaskId>,
}

impl TaskFilter {
    /// Whether a task is as it should be, whenever it was created.
    pub fn fits(&self, task: &TaskSummary) -> bool {
        (self.statuses.is_empty() || self.statuses.contains(&task.status))
            && self.agent.as_ref().is_none_or(|agent| *agent == task.agent)
            && self.session.as_ref().is_none_or(|session| *session == task.session_id)
            && !(self.tops && task.parent.is_some())
            && !(self.without_records && task.is_record())
    }
}
