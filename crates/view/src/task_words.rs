//! A task in a list: its status in one word, its title, and what it waits for elsewhere.

use antiphon_core::{TaskStatus, TaskSummary, WaitingFor};
use antiphon_runtime::is_resident;

use crate::display::escaped;
use crate::text::one_line;
use crate::wording::waits_for;

/// Most characters of a title in a list.
const TITLE_CHARS_MAX: usize = 60;

/// The status in one word: that of the journal, or `asks`, `paused`, `budget`, `waits`, `resident`.
pub fn status_word(task: &TaskSummary) -> &'static str {
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
pub fn task_title(task: &TaskSummary) -> String {
    if is_resident(task) { format!("agent {}", cut(&task.agent)) } else { cut(&task.title) }
}

fn cut(title: &str) -> String {
    one_line(title).chars().take(TITLE_CHARS_MAX).collect()
}

/// What a task waits for on its peer; `None` for a task that waits for nothing there.
pub fn peer_wait_text(task: &TaskSummary) -> Option<String> {
    let peer = task.runs_on.peer.as_ref().filter(|_| task.status == TaskStatus::InputRequired)?;
    let what = waits_for(task.waiting_for.filter(|what| *what != WaitingFor::Resume)?);
    Some(format!("waits {what} on the peer {}", escaped(peer)))
}
