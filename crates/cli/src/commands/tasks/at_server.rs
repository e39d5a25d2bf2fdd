//! `antiphon tasks … --server URL`.

use std::num::NonZeroUsize;

use antiphon_api::{DiffQuery, LISTED_MAX, TaskDetail, TaskQuery};
use antiphon_core::{HandlingMode, PriceTable, TaskId, TaskStatus, TaskSummary, TokenUsage};

use super::{Tasks, diff, print_list, row, status, titled, tree};
use crate::connection::ProjectServer;
use crate::failure::Failure;
use crate::server_args::not_through_server;
use crate::terminal;
use antiphon_project::environment::Environment;
use antiphon_project::settings::UserSettings;
use antiphon_project::task_lookup::choose_task;
use antiphon_view::{Collapse, LastColumn, TaskTree};

/// Pages that are searched for a task by the beginning of its id, at most.
const PAGES_MAX: usize = 10;

impl Tasks {
    /// Runs the command through a server.
    pub(crate) async fn run_at(
        self,
        server: &ProjectServer,
        environment: &Environment,
    ) -> Result<(), Failure> {
        let prices = UserSettings::load(environment)?.prices;
        match self {
            Self::List { all, unfinished, status, agent, cursor, limit, json } => {
                let statuses: Vec<&str> = status.iter().map(|status| status.as_str()).collect();
                let query = TaskQuery {
                    limit: NonZeroUsize::new(limit.get().min(LISTED_MAX)),
                    status: (!statuses.is_empty()).then(|| statuses.join(",")),
                    unfinished,
                    tops: !(all || unfinished || agent.is_some()),
                    session_id: None,
                    agent,
                    all,
                    cursor,
                };
                let page = server.client.tasks(&query).await;
                let page = page.map_err(|error| server.failure(error))?;
                let has_more = page.next_cursor.is_some();
                print_list(&page.tasks, has_more, &prices, limit, json)
            }
            Self::Show { task, json } => show(server, &task, &prices, json).await,
            Self::Tree { task, all, ids, json } => {
                let found = find(server, &task, TaskQuery::default()).await?;
                let top = if task == "last" { found.root } else { found.task_id };
                let task_tree = task_tree(server, &top).await?;
                if json {
                    return tree::print_tree_json(&task_tree, &prices);
                }
                let last_column = if ids { LastColumn::Id } else { LastColumn::Output };
                let collapse = if all { Collapse::Never } else { tree::COLLAPSE_DEFAULT };
                tree::print(&tree::lines(&task_tree, &prices, collapse, last_column))
            }
            Self::Diff { task, below, json } => {
                let task_id = find(server, &task, TaskQuery::default()).await?.task_id;
                let found = server.client.task_diff(&task_id, &DiffQuery { below }).await;
                diff::print(&found.map_err(|error| server.failure(error))?, json)
            }
            Self::Watch { .. } => Err(not_through_server("tasks watch")),
            Self::Cancel { task } => {
                let task = find(server, &task, unfinished()).await?;
                let sent = server.client.cancel_task(&task.task_id).await;
                sent.map_err(|error| server.failure(error))?;
                terminal::print(&format!("canceled {}: {}\n", task.task_id, titled(&task)));
                Ok(())
            }
            Self::Pause { task } => {
                let task = find(server, &task, unfinished()).await?;
                let sent = server.client.pause_task(&task.task_id).await;
                sent.map_err(|error| server.failure(error))?;
                let task_id = &task.task_id;
                terminal::print(&format!(
                    "paused; resume it with `antiphon tasks resume {task_id}`\n"
                ));
                Ok(())
            }
            Self::Send { task, text, steer } => {
                if text.trim().is_empty() {
                    return Err(Failure::usage("the message is empty"));
                }
                let task = find(server, &task, unfinished()).await?;
                let mode = if steer { HandlingMode::Steer } else { HandlingMode::Queue };
                server.send_text(&task.task_id, &text, mode).await?;
                terminal::print("queued\n");
                Ok(())
            }
            Self::Resume { task } => resume(server, task).await,
        }
    }
}

/// A task and its descendants.
async fn task_tree(server: &ProjectServer, top: &TaskId) -> Result<TaskTree, Failure> {
    let tasks = server.client.task_tree(top).await.map_err(|error| server.failure(error))?.tasks;
    TaskTree::new(top, tasks).ok_or_else(|| Failure::failed(format!("task {top} is not there")))
}

fn unfinished() -> TaskQuery {
    TaskQuery { unfinished: true, ..TaskQuery::default() }
}

/// The task that a user means: by its id, the beginning of it, or `last`.
async fn find(
    server: &ProjectServer,
    name: &str,
    query: TaskQuery,
) -> Result<TaskSummary, Failure> {
    let mut query = TaskQuery { limit: NonZeroUsize::new(LISTED_MAX), ..query };
    if name == "last" {
        let page = server.client.tasks(&query).await.map_err(|error| server.failure(error))?;
        return Ok(choose_task(name, page.tasks)?);
    }
    let mut found = Vec::new();
    query.all = true;
    query.unfinished = false;
    for _ in 0..PAGES_MAX {
        let page = server.client.tasks(&query).await.map_err(|error| server.failure(error))?;
        let is_meant = |task: &TaskSummary| task.task_id.as_str().starts_with(name);
        found.extend(page.tasks.into_iter().filter(is_meant));
        match page.next_cursor {
            Some(cursor) => query.cursor = Some(cursor),
            None => return Ok(choose_task(name, found)?),
        }
    }
    // An older task is found by its whole id.
    if let (true, Ok(task_id)) = (found.is_empty(), TaskId::parse(name)) {
        let task = server.client.task(&task_id).await.map_err(|error| server.failure(error))?;
        return Ok(task.summary);
    }
    Ok(choose_task(name, found)?)
}

/// Shows one task and its result. The conversation is in its session.
async fn show(
    server: &ProjectServer,
    task: &str,
    prices: &PriceTable,
    json: bool,
) -> Result<(), Failure> {
    let task_id = find(server, task, TaskQuery::default()).await?.task_id;
    let detail = server.client.task(&task_id).await.map_err(|error| server.failure(error))?;
    if json {
        terminal::print(&terminal::json(&detail)?);
        return Ok(());
    }
    let TaskDetail { summary, result, reason } = &detail;
    let tokens = TokenUsage::from(summary.usage());
    let cost = row(summary, prices).cost.map_or("?".to_owned(), |cost| cost.to_string());
    let mut text = format!(
        "task {}, {}, {}, {} + {} tokens, {cost}\n",
        summary.task_id,
        status(summary),
        terminal::count(u64::from(summary.turns), "turn"),
        tokens.prompt_tokens,
        tokens.completion_tokens,
    );
    for detail in [result, reason].into_iter().flatten() {
        let words = detail.as_str().map_or_else(|| detail.to_string(), str::to_owned);
        text.extend([words.as_str(), "\n"]);
    }
    let session = format!("its messages: `antiphon sessions show {}`\n", summary.session_id);
    text.push_str(&session);
    terminal::print(&text);
    Ok(())
}

/// Resumes one task, or all that wait for no one, and waits until they have ended or are suspended.
async fn resume(server: &ProjectServer, task: Option<String>) -> Result<(), Failure> {
    let tasks = match task {
        Some(name) => vec![find(server, &name, unfinished()).await?],
        None => {
            let query = TaskQuery { limit: NonZeroUsize::new(LISTED_MAX), ..unfinished() };
            let page = server.client.tasks(&query).await;
            let tasks = page.map_err(|error| server.failure(error))?.tasks;
            let is_resident = antiphon_runtime::is_resident;
            let interrupted = |task: &TaskSummary| task.waiting_for.is_none() && !is_resident(task);
            tasks.into_iter().filter(interrupted).collect()
        }
    };
    let mut all_completed = true;
    for task in tasks {
        let resumed = server.client.resume_task(&task.task_id).await;
        if let Err(error) = resumed
            && !error.is_conflict()
        {
            return Err(server.failure(error));
        }
        let waited = server.client.wait_for_task(&task.task_id).await;
        let summary = waited.map_err(|error| server.failure(error))?;
        terminal::print(&format!("{} {}\n", summary.task_id, summary.status.as_str()));
        all_completed &= summary.status == TaskStatus::Completed;
    }
    if all_completed { Ok(()) } else { Err(Failure::failed("not every task was completed")) }
}
