//! What a server says when it begins and when it stops.

use std::num::NonZeroUsize;
use std::time::Duration;

use antiphon_core::port::{TaskQuery, TaskSelector};
use antiphon_project::control_orders::REQUEST_FOLDERS;
use antiphon_project::server_files::ServerAddress;
use antiphon_runtime::{Orchestrator, is_resident};

use crate::terminal;

/// Most unfinished tasks that a server counts when it stops.
const UNFINISHED_MAX: NonZeroUsize = NonZeroUsize::new(10_000).unwrap();

/// How long counting them may delay the end.
const COUNT_TIMEOUT: Duration = Duration::from_secs(1);

/// Counts that the start of a server reports.
pub(super) struct StartCounts {
    /// Interrupted tasks that it resumes.
    pub(super) resumed: usize,
    /// Live agents.
    pub(super) live: usize,
    pub(super) schedules: usize,
}

/// What a server that stops leaves behind, on one line.
pub(super) async fn stopping(orchestrator: &Orchestrator) -> String {
    let query = TaskQuery { which: TaskSelector::Unfinished, limit: UNFINISHED_MAX };
    let counted = tokio::time::timeout(COUNT_TIMEOUT, orchestrator.tasks(query)).await;
    let Ok(Ok(unfinished)) = counted else { return "stopping\n".to_owned() };
    let of = |word: &str, count: usize| match count {
        0 => None,
        count => Some(format!("{} {word}", terminal::count(count as u64, "task"))),
    };
    let ordinary = unfinished.iter().filter(|task| !is_resident(task));
    let (waiting, working): (Vec<_>, Vec<_>) =
        ordinary.partition(|task| task.waiting_for.is_some());
    let live = unfinished.iter().filter(|task| is_resident(task)).count();
    let live = (live > 0).then(|| terminal::count(live as u64, "live agent"));
    let kept: Vec<String> = [of("at work", working.len()), of("waiting", waiting.len()), live]
        .into_iter()
        .flatten()
        .collect();
    if kept.is_empty() {
        return "stopping; no task is unfinished\n".to_owned();
    }
    format!("stopping; kept for the next `antiphon serve`: {}\n", kept.join(", "))
}

/// How to reach the server, and what it begins with.
pub(super) fn announce(address: ServerAddress<'_>, counts: &StartCounts) {
    let resuming = match counts.resumed {
        0 => String::new(),
        resumed => {
            let tasks = terminal::count(resumed as u64, "interrupted task");
            format!("resuming {tasks}\n")
        }
    };
    let live = terminal::count(counts.live as u64, "live agent");
    let schedules = terminal::count(counts.schedules as u64, "schedule");
    let folders = REQUEST_FOLDERS.join(" and ");
    let socket = address.socket.map(|path| path.display().to_string()).unwrap_or_default();
    let (place, url) = match address.url {
        Some(url) => (url.to_owned(), url.to_owned()),
        None => (socket.clone(), format!("--unix-socket '{socket}' http://localhost")),
    };
    terminal::print(&format!(
        "listening on {place}\n`antiphon token` prints the token\n{live}, {schedules}; requests are read from \
         {folders}\n{resuming}\n  \
         curl -H \"Authorization: Bearer $(antiphon token)\" -H 'Content-Type: application/json' \\\n    \
         -d '{{\"message\": \"Hello\"}}' {url}/v1/tasks\n\n"
    ));
}
