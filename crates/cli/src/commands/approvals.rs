//! `antiphon approvals`: tool calls that wait for the user's decision.

use std::num::NonZeroUsize;

use antiphon_core::port::{ApprovalQuery, ApprovalSelector, TaskQuery, TaskSelector};
use antiphon_core::{Approval, ApprovalStatus, Decision};
use antiphon_process::{Connection, ProjectAccess};
use antiphon_view::display::escaped;
use antiphon_view::{call_text as call, rule_text};
use clap::Subcommand;

use crate::failure::Failure;
use crate::hints::resume_command;
use crate::terminal;

/// List tool calls that wait for approval, and allow or deny them.
#[derive(Debug, Subcommand)]
#[command(after_help = "\
A decision lets the task continue: at once while `antiphon serve` runs in this project, else when you
resume the task with `antiphon run --resume TASK`.

Examples:
  antiphon approvals list
  antiphon approvals allow last
  antiphon approvals allow --always 0199…   # and every call its rule covers from now on
  antiphon approvals deny last --comment 'Use a branch.'")]
pub(crate) enum Approvals {
    /// List pending approvals, the oldest first.
    List {
        /// Include decided approvals.
        #[arg(long)]
        all: bool,
        /// Only approvals that were requested after this one: the next page.
        #[arg(long, value_name = "APPROVAL")]
        cursor: Option<String>,
        /// Most approvals to list.
        #[arg(long, default_value = "100", value_name = "N")]
        limit: NonZeroUsize,
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Allow a call.
    Allow {
        /// Id of the approval, a prefix of it, or `last`.
        approval: String,
        /// Also allow every call its rule covers, in the same task.
        #[arg(long, conflicts_with = "always")]
        task: bool,
        /// Also allow every call its rule covers, in this project from now on.
        #[arg(long)]
        always: bool,
    },
    /// Deny a call.
    Deny {
        /// Id of the approval, a prefix of it, or `last`.
        approval: String,
        /// Explanation for the model.
        #[arg(long, value_name = "TEXT")]
        comment: Option<String>,
    },
}

impl Approvals {
    pub(crate) async fn run(self, access: ProjectAccess<'_>) -> Result<(), Failure> {
        match self {
            Self::List { all, cursor, limit, json } => {
                let connection = access.read()?;
                let after = match cursor {
                    Some(name) => Some(connection.find_approval(&name).await?.approval_id),
                    None => None,
                };
                let which = if all { ApprovalSelector::All } else { ApprovalSelector::Pending };
                list(&connection, ApprovalQuery { which, after, limit }, json).await
            }
            Self::Allow { approval, task, always } => {
                let decision = match (task, always) {
                    (_, true) => Decision::AllowAlways,
                    (true, false) => Decision::AllowTask,
                    (false, false) => Decision::AllowOnce,
                };
                decide(&access.decide().await?, &approval, decision, None).await
            }
            Self::Deny { approval, comment } => {
                decide(&access.decide().await?, &approval, Decision::Deny, comment).await
            }
        }
    }
}

async fn list(connection: &Connection, query: ApprovalQuery, json: bool) -> Result<(), Failure> {
    let limit = query.limit;
    let one_more = ApprovalQuery { limit: limit.saturating_add(1), ..query };
    let mut approvals = connection.approvals(one_more).await?;
    let left_out = approvals.len() > limit.get();
    approvals.truncate(limit.get());
    terminal::print(&if json { terminal::json(&approvals)? } else { table(&approvals) });
    if let Some(last) = approvals.last().filter(|_| left_out) {
        let last = &last.approval_id;
        terminal::note(&format!("the oldest {limit}; see more with --limit or --cursor {last}\n"));
    }
    let waiting = connection.waiting_for_budget().await?;
    if waiting > 0 {
        let tasks = terminal::count(waiting as u64, "task");
        terminal::note(&format!(
            "the budget is spent and {tasks} waiting for it: see `antiphon budget show`, and allow more \
             with `antiphon budget allow`\n"
        ));
    }
    Ok(())
}

async fn decide(
    connection: &Connection,
    name: &str,
    decision: Decision,
    comment: Option<String>,
) -> Result<(), Failure> {
    let approval = connection.find_approval(name).await?;
    connection.decide(&approval.approval_id, decision, crate::DECIDER, comment).await?;
    let word = if decision.allows() { "allowed" } else { "denied" };
    let then = match connection {
        Connection::Server(..) => "its task continues".to_owned(),
        Connection::Local(books) => {
            // The whole tree is resumed.
            let which = TaskSelector::One(approval.task_id.clone());
            let task = books.tasks(TaskQuery { which, limit: NonZeroUsize::MIN }).await?;
            let root = task.into_iter().next().map_or(approval.task_id.clone(), |task| task.root);
            format!("continue with {}", resume_command(connection, &root))
        }
    };
    terminal::print(&format!("{word}: {}; {then}\n", call(&approval)));
    Ok(())
}

fn table(approvals: &[Approval]) -> String {
    if approvals.is_empty() {
        return "no pending approvals\n".to_owned();
    }
    let mut lines = vec![["APPROVAL", "STATUS", "TASK", "CALL", "RULE"].map(str::to_owned)];
    lines.extend(approvals.iter().map(|approval| {
        let status = match approval.status {
            ApprovalStatus::Pending => "waiting",
            ApprovalStatus::Allowed
            | ApprovalStatus::Denied
            | ApprovalStatus::Expired
            | ApprovalStatus::Void => approval.status.as_str(),
        };
        [
            approval.approval_id.to_string(),
            status.to_owned(),
            escaped(approval.task_id.short()).into_owned(),
            call(approval),
            rule_text(approval),
        ]
    }));
    terminal::table(&lines)
}
