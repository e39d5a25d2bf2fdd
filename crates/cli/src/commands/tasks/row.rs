//! A task as a row of a list, in JSON and as text.

use antiphon_core::{Cost, PriceTable, TaskStatus, TaskSummary, WaitingFor};
use antiphon_runtime::is_resident;
use antiphon_view::display::escaped;
use antiphon_view::text::one_line;
use antiphon_view::waits_for;
use serde::Serialize;

/// Most characters of a title in a list.
const TITLE_CHARS_MAX: usize = 60;

/// A task in JSON.
#[derive(Serialize)]
pub(super) struct TaskRow<'a> {
    #[serde(flatten)]
    summary: &'a TaskSummary,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) cost: Option<Cost>,
    /// Whether it is a resident task of a live agent.
    #[serde(rename = "standing", skip_serializing_if = "std::ops::Not::not")]
    resident: bool,
}

pub(super) fn row<'a>(summary: &'a TaskSummary, prices: &PriceTable) -> TaskRow<'a> {
    let cost = antiphon_runtime::cost(&summary.spent, prices).ok();
    TaskRow { summary, cost, resident: is_resident(summary) }
}

/// The status in one word.
pub(super) fn status(task: &TaskSummary) -> &'static str {
    match (task.status, task.waiting_for) {
        (TaskStatus::InputRequired, Some(WaitingFor::Approval)) => "asks",
        (TaskStatus::InputRequired, Some(WaitingFor::Resume)) => "paused",
        (TaskStatus::InputRequired, Some(WaitingFor::Budget)) => "budget",
        (TaskStatus::Running, Some(WaitingFor::Model | WaitingFor::Peer | WaitingFor::Storage)) => {
            "waits"
        }
        // A list does not say whether the agent is working or idle: see the tree, or `agents status`.
        (TaskStatus::Pending | TaskStatus::Running, _) if is_resident(task) => "resident",
        (status, _) => status.as_str(),
    }
}

/// The title of a task; of a live agent, its name.
pub(super) fn titled(task: &TaskSummary) -> String {
    if is_resident(task) { format!("agent {}", cut(&task.agent)) } else { cut(&task.title) }
}

fn cut(title: &str) -> String {
    one_line(title).chars().take(TITLE_CHARS_MAX).collect()
}

/// What a task waits for on its peer, where it is given.
pub(super) fn held_text(task: &TaskSummary) -> Option<String> {
    let peer = task.runs_on.peer.as_ref().filter(|_| task.status == TaskStatus::InputRequired)?;
    let what = waits_for(task.waiting_for.filter(|what| *what != WaitingFor::Resume)?);
    Some(format!("waits {what} on the peer {}", escaped(peer)))
}
