//! Changes of a task with its file tools.

use antiphon_api::TaskDiff;
use antiphon_core::port::TaskSelector;
use antiphon_project::{DiffScope, TREE_TASKS_MAX, task_diff};
use antiphon_runtime::Orchestrator;
use antiphon_view::display::escaped;

use crate::failure::Failure;
use crate::terminal;
use antiphon_project::task_lookup::find_task;

pub(super) async fn show(
    orchestrator: &Orchestrator,
    task: &str,
    below: bool,
    json: bool,
) -> Result<(), Failure> {
    let task_id = find_task(orchestrator, task, TaskSelector::All).await?.task_id;
    let whose = if below { DiffScope::Tree } else { DiffScope::Task };
    let found = task_diff(orchestrator, &task_id, whose).await?;
    let found = found
        .ok_or_else(|| Failure::usage(format!("its tree has more than {TREE_TASKS_MAX} tasks")))?;
    print(&found, json)
}

/// Prints the changes of a task.
pub(super) fn print(found: &TaskDiff, json: bool) -> Result<(), Failure> {
    if json {
        terminal::print(&terminal::json(found)?);
        return Ok(());
    }
    terminal::print(&found.text());
    for change in found.changes.iter().filter(|change| change.diff.is_empty()) {
        terminal::note(&format!("{}: changed, and no diff is known\n", escaped(&change.path)));
    }
    terminal::note(&format!("{}: {}\n", count(found.changes.len()), found.note));
    Ok(())
}

fn count(changes: usize) -> String {
    if changes == 0 { "no changes".to_owned() } else { terminal::count(changes as u64, "change") }
}
