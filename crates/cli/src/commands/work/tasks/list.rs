//! `antiphon tasks list`: tasks, the newest first.

use std::num::NonZeroUsize;

use antiphon_core::port::{Clock, SystemClock, TaskFilter, TaskQuery, TaskSelector};
use antiphon_core::{PriceTable, TaskStatus, TokenUsage};
use antiphon_process::{Connection, ProjectAccess};
use antiphon_view::display::escaped;
use antiphon_view::{outage_wait_text, peer_wait_text, status_word, task_title};

use super::listed_task::{ListedTask, listed_task};
use crate::failure::Failure;
use crate::hints::idle_hint;
use crate::terminal;

pub(super) async fn list(
    access: &ProjectAccess<'_>,
    connection: &Connection,
    prices: &PriceTable,
    filter: TaskFilter,
    limit: NonZeroUsize,
    json: bool,
) -> Result<(), Failure> {
    let (which, more) = (TaskSelector::Matching(filter), limit.saturating_add(1));
    let mut tasks = connection.reader().tasks(TaskQuery { which, limit: more }).await?;
    let left_out = tasks.len() > limit.get();
    tasks.truncate(limit.get());
    access.mark_storage_waits(&mut tasks).await;
    if json {
        let rows: Vec<ListedTask<'_>> =
            tasks.iter().map(|task| listed_task(task, prices)).collect();
        terminal::print(&terminal::json(&rows)?);
        return Ok(());
    }
    let now = SystemClock.now();
    let mut lines =
        vec![["TASK", "STATUS", "AGE", "TURNS", "TOKENS", "COST", ""].map(str::to_owned)];
    lines.extend(tasks.iter().map(|task| {
        [
            escaped(task.task_id.short()).into_owned(),
            status_word(task).to_owned(),
            terminal::age(now - task.created_at),
            task.turns.to_string(),
            TokenUsage::from(task.usage()).total_tokens.to_string(),
            listed_task(task, prices).cost.map_or("?".to_owned(), |cost| cost.to_string()),
            task_title(task),
        ]
    }));
    terminal::print(&terminal::table(&lines));
    for (task, wait) in tasks.iter().filter_map(|task| Some((task, task.wait.as_ref()?))) {
        terminal::note(&format!("{} {}\n", escaped(task.task_id.short()), outage_wait_text(wait)));
    }
    for task in &tasks {
        if let Some(text) = peer_wait_text(task) {
            terminal::note(&format!("{} {text}\n", escaped(task.task_id.short())));
        }
    }
    if let Some(hint) = idle_hint(access, &tasks) {
        terminal::note(&hint);
    }
    if let Some(last) = tasks.last().filter(|_| left_out) {
        let last = escaped(last.task_id.short());
        terminal::note(&format!("the newest {limit}; see more with --limit or --cursor {last}\n"));
    }
    Ok(())
}

/// The requested statuses, or every unfinished one.
pub(super) fn statuses(unfinished: bool, requested: Vec<TaskStatus>) -> Vec<TaskStatus> {
    if !unfinished {
        return requested;
    }
    TaskStatus::ALL.into_iter().filter(|status| !status.is_terminal()).collect()
}
