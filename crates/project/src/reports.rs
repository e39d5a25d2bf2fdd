//! Reports for clients, computed from the orchestrator: usage, diffs, live agents, inboxes, requests,
//! sessions and trees of tasks. Nothing here changes anything.

pub(crate) mod agent_detail;
pub(crate) mod diff;
pub(crate) mod dollars;
pub(crate) mod presence;
pub(crate) mod queued_interactions;
pub(crate) mod request_status;
pub(crate) mod sessions;
pub(crate) mod task_tree;
pub(crate) mod usage;
