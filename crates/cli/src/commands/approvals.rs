//! `antiphon approvals`: tool calls that wait for the user's decision.

use std::num::NonZeroUsize;

use antiphon_core::port::{ApprovalSelector, TaskQuery, TaskSelector};
use antiphon_core::{Approval, ApprovalId, ApprovalStatus, Decision};
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
            Self::List { all, json } => list(&access.read()?, all, json).await,
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

async fn list(connection: &Connection, all: bool, json: bool) -> Result<(), Failure> {
    let which = if all { ApprovalSelector::All } else { ApprovalSelector::Pending };
    let approvals = connection.approvals(which).await?;
    terminal::print(&if json { terminal::json(&approvals)? } else { table(&approvals) });
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
    let approval = find(connection, name).await?;
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

/// Finds an approval by id, prefix or `last`.
async fn find(connection: &Connection, name: &str) -> Result<Approval, Failure> {
    let pending = connection.approvals(ApprovalSelector::Pending).await?;
    let mut matching = pending
        .into_iter()
        .filter(|approval| name == "last" || approval.approval_id.is_named_by(name));
    let none = || Failure::usage(format!("there is no pending approval `{name}`"));
    if name == "last" {
        return matching.last().ok_or_else(none);
    }
    match (matching.next(), matching.next()) {
        (Some(one), None) => Ok(one),
        (Some(_), Some(_)) => {
            Err(Failure::usage(format!("more than one approval begins with `{name}`")))
        }
        (None, _) => {
            // It may be decided already: then the decision reports that.
            let id = ApprovalId::parse(name).map_err(|_| none())?;
            let known = connection.approvals(ApprovalSelector::One(id)).await?;
            known.into_iter().next().ok_or_else(none)
        }
    }
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
