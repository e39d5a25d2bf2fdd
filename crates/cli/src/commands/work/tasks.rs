//! `antiphon tasks`: the tasks of this project.

mod diff;
mod list;
mod listed_task;
mod resume;
mod show;
mod tree;
mod watch;

use std::num::NonZeroUsize;

use antiphon_core::port::{TaskFilter, TaskSelector};
use antiphon_core::{HandlingMode, TaskStatus};
use antiphon_process::{Connection, ProjectAccess, Twice};
use antiphon_project::error::ProjectError;
use antiphon_project::task_lookup::find_task;
use antiphon_view::{Collapse, LastColumn, task_title};
use clap::Subcommand;
use uuid::Uuid;

use crate::failure::Failure;
use crate::hints::{delivery_time, idle_hint, reading_time, resume_command};
use crate::remaining_work::RemainingWork;
use crate::terminal;

/// List, show, watch, pause, resume and cancel the tasks of this project, and send messages to them.
#[derive(Debug, Subcommand)]
#[command(after_help = "\
Name a task by its id, by the short form that lists show or another prefix of it, by the name of its
agent (its live task, or else its newest), or `last`: the newest task without a parent that is no live
agent. A live agent is a resident task: `resident` in lists, `idle` in trees while its inbox is empty.

Examples:
  antiphon tasks list
  antiphon tasks list --unfinished --json
  antiphon tasks list --status failed,canceled --agent lead
  antiphon tasks show last
  antiphon tasks tree                    # the last one, and all tasks below it
  antiphon tasks watch                   # the same while it runs
  antiphon tasks diff                    # what its file tools changed
  antiphon tasks cancel 01990a7e-…
  antiphon tasks send last 'Also update the changelog.'
  antiphon tasks resume                  # every interrupted task

While `antiphon serve` runs in this project, these commands go through the server.")]
pub(crate) enum Tasks {
    /// List tasks without a parent, the newest first.
    List {
        /// Include child tasks and the records of orders.
        #[arg(long)]
        all: bool,
        /// Only unfinished tasks, child tasks included.
        #[arg(long, conflicts_with = "all")]
        unfinished: bool,
        /// Only tasks with these statuses: `running`, `failed`, …, separated by commas.
        #[arg(long, value_name = "STATUS", value_delimiter = ',', value_parser = status_of, conflicts_with = "unfinished")]
        status: Vec<TaskStatus>,
        /// Only tasks of this agent, child tasks included.
        #[arg(long, value_name = "NAME")]
        agent: Option<String>,
        /// Only tasks that were created before this one: the next page.
        #[arg(long, value_name = "TASK")]
        cursor: Option<String>,
        /// Most tasks to list.
        #[arg(long, default_value = "20", value_name = "N")]
        limit: NonZeroUsize,
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Show one task: its conversation and its cost.
    #[command(after_help = "\
Examples:
  antiphon tasks show last
  antiphon tasks show last --json | jq .status")]
    Show {
        /// Id of the task, a prefix of it, the name of its agent, or `last`.
        task: String,
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Show a task and all tasks below it as a tree, with time and cost.
    #[command(after_help = "\
Examples:
  antiphon tasks tree
  antiphon tasks tree 01990a7e --ids")]
    Tree {
        /// Id of the task, a prefix of it, the name of its agent, or `last`.
        #[arg(default_value = "last")]
        task: String,
        /// Show every task, also where there are many siblings.
        #[arg(long)]
        all: bool,
        /// Show the id of each task in place of its result.
        #[arg(long, conflicts_with = "json")]
        ids: bool,
        /// Print JSON; each task contains its children.
        #[arg(long)]
        json: bool,
    },
    /// Show what the file tools of a task changed, as a unified diff.
    #[command(after_help = "\
Shows changes of the tools `edit` and `write`, not of commands (`bash`).

Examples:
  antiphon tasks diff
  antiphon tasks diff last --below         # also of all tasks below it
  antiphon tasks diff --json | jq -r '.changes[].path'")]
    Diff {
        /// Id of the task, a prefix of it, the name of its agent, or `last`.
        #[arg(default_value = "last")]
        task: String,
        /// Include changes of all tasks below it.
        #[arg(long)]
        below: bool,
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Watch the tree until its root has ended, also while another process runs it.
    #[command(after_help = "\
Examples:
  antiphon tasks watch
  antiphon tasks watch reviewer --json")]
    Watch {
        /// Id of the task, a prefix of it, the name of its agent, or `last`.
        #[arg(default_value = "last")]
        task: String,
        /// Show every task, as far as the screen allows.
        #[arg(long, conflicts_with = "json")]
        all: bool,
        /// Print each changed task as one line of JSON.
        #[arg(long)]
        json: bool,
    },
    /// Cancel a task and all tasks below it.
    #[command(after_help = "\
Examples:
  antiphon tasks cancel last")]
    Cancel {
        /// Id of the task, a prefix of it, the name of its agent, or `last`.
        task: String,
    },
    /// Suspend a task until it is resumed.
    #[command(after_help = "\
Examples:
  antiphon tasks pause last")]
    Pause {
        /// Id of the task, a prefix of it, the name of its agent, or `last`.
        task: String,
    },
    /// Send a message to an unfinished task. The agent reads it when the task continues.
    #[command(after_help = "\
Examples:
  antiphon tasks send last 'Also update the changelog.'
  antiphon tasks send last --steer 'Leave the tests alone.'")]
    Send {
        /// Id of the task, a prefix of it, the name of its agent, or `last`.
        task: String,
        /// The message.
        text: String,
        /// Deliver after the current step, not after the turn.
        #[arg(long)]
        steer: bool,
    },
    /// Resume interrupted tasks, and wait until they end.
    #[command(after_help = "\
Examples:
  antiphon tasks resume
  antiphon tasks resume last")]
    Resume {
        /// Id of the task, a prefix of it, the name of its agent, or `last`; every interrupted task when absent.
        task: Option<String>,
    },
}

impl Tasks {
    pub(crate) async fn run(
        self,
        access: ProjectAccess<'_>,
        remaining_work: &mut RemainingWork,
    ) -> Result<(), Failure> {
        let prices = access.prices()?;
        match self {
            Self::List { all, unfinished, status, agent, cursor, limit, json } => {
                let connection = access.read()?;
                let before = match cursor {
                    Some(name) => Some(
                        find_task(connection.reader(), &name, TaskSelector::All).await?.task_id,
                    ),
                    None => None,
                };
                let filter = TaskFilter {
                    statuses: list::statuses(unfinished, status),
                    payer: None,
                    roots: !(all || unfinished || agent.is_some()),
                    without_records: !all,
                    session: None,
                    before,
                    agent,
                };
                list::list(&access, &connection, &prices, filter, limit, json).await
            }
            Self::Show { task, json } => {
                let connection = access.read()?;
                let reader = connection.reader();
                let mut summary = find_task(reader, &task, TaskSelector::All).await?;
                access.mark_storage_waits(std::slice::from_mut(&mut summary)).await;
                show::describe(&reader.task(&summary.task_id).await?, &summary, &prices, json)?;
                let hint = idle_hint(&access, std::slice::from_ref(&summary)).filter(|_| !json);
                if let Some(hint) = hint {
                    terminal::note(&hint);
                }
                Ok(())
            }
            Self::Tree { task, all, ids, json } => {
                let reader = access.tree_reader().await?;
                if json {
                    return tree::print_json(reader, &task, &prices).await;
                }
                let last_column = if ids { LastColumn::Id } else { LastColumn::Output };
                let collapse = if all { Collapse::Never } else { tree::COLLAPSE_DEFAULT };
                tree::show(reader, &task, &prices, collapse, last_column).await
            }
            Self::Diff { task, below, json } => {
                diff::show(access.read()?.reader(), &task, below, json).await
            }
            Self::Watch { task, all, json } => {
                let format = match (json, all) {
                    (true, _) => watch::TreeFormat::Json,
                    (false, true) => watch::TreeFormat::Text(Collapse::Never),
                    (false, false) => watch::TreeFormat::Text(tree::COLLAPSE_DEFAULT),
                };
                watch::watch(access.tree_reader().await?, &task, &prices, format).await
            }
            Self::Resume { task } => {
                Box::pin(resume::resume_tasks(access, task, remaining_work)).await
            }
            Self::Cancel { task } => cancel(&access, &task).await,
            Self::Pause { task } => pause(&access, &task).await,
            Self::Send { task, text, steer } => {
                let mode = if steer { HandlingMode::Steer } else { HandlingMode::Queue };
                send(&access, &task, text, mode).await
            }
        }
    }
}

async fn cancel(access: &ProjectAccess<'_>, task: &str) -> Result<(), Failure> {
    // The reader is let go before this process may become the owner.
    let task = find_task(access.read()?.reader(), task, TaskSelector::Unfinished).await?;
    let (_, cancellation) = access
        .changed(Twice::IsOnce, async |connection| {
            let cancellation = connection.peer_cancellation(&task).await?;
            match connection.cancel(&task.task_id).await {
                // The owner that has ended may have done it.
                Err(error @ ProjectError::InvalidInput(_)) => {
                    let status = connection.reader().task_alone(&task.task_id).await?.status;
                    let is_done = status == TaskStatus::Canceled && !task.status.is_terminal();
                    if is_done { Ok(cancellation) } else { Err(error) }
                }
                canceled => canceled.map(|()| cancellation),
            }
        })
        .await?;
    let delivery = delivery_time(&cancellation);
    terminal::print(&format!("canceled {}: {}{delivery}\n", task.task_id, task_title(&task)));
    Ok(())
}

async fn pause(access: &ProjectAccess<'_>, task: &str) -> Result<(), Failure> {
    let task = find_task(access.read()?.reader(), task, TaskSelector::Unfinished).await?;
    let pause = async |connection: &Connection| connection.pause(&task.task_id).await;
    let (connection, ()) = access.changed(Twice::IsOnce, pause).await?;
    let again = resume_command(&connection, &task.task_id);
    terminal::print(&format!("paused; resume it with {again}\n"));
    Ok(())
}

async fn send(
    access: &ProjectAccess<'_>,
    task: &str,
    text: String,
    mode: HandlingMode,
) -> Result<(), Failure> {
    if text.trim().is_empty() {
        return Err(Failure::usage("the message is empty"));
    }
    let task = find_task(access.read()?.reader(), task, TaskSelector::Unfinished).await?;
    let key = Uuid::new_v4().to_string();
    let send = async |connection: &Connection| {
        connection.send_once(&task.task_id, &text, mode, &key).await
    };
    let (connection, ()) = access.changed(Twice::IsOnce, send).await?;
    terminal::print(&format!("queued; {}\n", reading_time(&connection, &task)));
    Ok(())
}

/// Parses a status.
fn status_of(word: &str) -> Result<TaskStatus, String> {
    let found = TaskStatus::ALL.into_iter().find(|status| status.as_str() == word);
    found.ok_or_else(|| {
        let known: Vec<&str> = TaskStatus::ALL.iter().map(|status| status.as_str()).collect();
        format!("one of {}", known.join(", "))
    })
}
