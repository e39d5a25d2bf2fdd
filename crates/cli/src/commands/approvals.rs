//! `antiphon approvals`: what agents may not do without being asked about.

mod at_server;

use std::num::NonZeroUsize;

use antiphon_core::port::{ApprovalSelector, TaskQuery, TaskSelector};
use antiphon_core::{Approval, ApprovalId, ApprovalStatus, Decision, visible};
use antiphon_runtime::Orchestrator;
use clap::Subcommand;

use crate::config::Config;
use crate::connection::{Connection, ProjectServer, journal_reader};
use crate::failure::Failure;
use crate::hands::Toolset;
use crate::models::Models;
use crate::project::Project;
use crate::terminal;

/// Characters of a call that are listed.
const CALL_CHARS_MAX: usize = 100;

/// Look at calls that wait for somebody's answer, and answer.
#[derive(Debug, Subcommand)]
#[command(after_help = "\
An answer lets its task go on: at once while `antiphon serve` works on this project, else when it is
taken up again with `antiphon run --resume TASK`.

Examples:
  antiphon approvals list
  antiphon approvals allow last
  antiphon approvals allow --always 0199…   # and whatever its rule covers from now on
  antiphon approvals deny last --comment 'Use a branch.'")]
pub(crate) enum Approvals {
    /// List what waits for an answer, the oldest first.
    List {
        /// Those that were answered as well.
        #[arg(long)]
        all: bool,
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Let a call run.
    Allow {
        /// Its id, the beginning of it, or `last`.
        approval: String,
        /// And whatever its rule covers, in the same task.
        #[arg(long, conflicts_with = "always")]
        task: bool,
        /// And whatever its rule covers, in this project from now on.
        #[arg(long)]
        always: bool,
    },
    /// Do not let a call run.
    Deny {
        /// Its id, the beginning of it, or `last`.
        approval: String,
        /// What the model is told.
        #[arg(long, value_name = "TEXT")]
        comment: Option<String>,
    },
}

impl Approvals {
    pub(crate) async fn run(self) -> Result<(), Failure> {
        let project = Project::known()?;
        let models = Models::new(Config::load()?);
        match self {
            Self::List { all, json } => {
                let which = if all { ApprovalSelector::All } else { ApprovalSelector::Pending };
                let books = match ProjectServer::find(&project).await? {
                    Some(_) => journal_reader(&project)?,
                    None => project.reader(models)?,
                };
                let approvals = books.approvals(which).await?;
                terminal::print(&if json {
                    terminal::json(&approvals)?
                } else {
                    table(&approvals)
                });
                let waiting = books.waiting_for_budget().await?.len();
                if waiting > 0 {
                    let tasks = terminal::count(waiting as u64, "task");
                    let how =
                        "see `antiphon budget show`, and let more be spent with `budget allow`";
                    terminal::note(&format!(
                        "the budget is spent, {tasks} waiting for it: {how}\n"
                    ));
                }
                Ok(())
            }
            Self::Allow { approval, task, always } => {
                let decision = match (task, always) {
                    (_, true) => Decision::AllowAlways,
                    (true, false) => Decision::AllowTask,
                    (false, false) => Decision::AllowOnce,
                };
                decide(&connection(&project, models).await?, &approval, decision, None).await
            }
            Self::Deny { approval, comment } => {
                decide(&connection(&project, models).await?, &approval, Decision::Deny, comment)
                    .await
            }
        }
    }
}

/// Who takes the answer; a rule that is allowed always is kept by the gate.
async fn connection(project: &Project, models: Models) -> Result<Connection, Failure> {
    let hands = Toolset::keeping(project, models.config())?;
    Connection::open(project, models, hands).await
}

async fn decide(
    connection: &Connection,
    name: &str,
    decision: Decision,
    comment: Option<String>,
) -> Result<(), Failure> {
    let approval = find(connection.reader(), name).await?;
    connection.decide(&approval.approval_id, decision, comment).await?;
    let word = if decision.allows() { "allowed" } else { "denied" };
    let then = match connection {
        Connection::Server(..) => "its task goes on".to_owned(),
        Connection::Local(books) => {
            // What goes on is the whole tree.
            let which = TaskSelector::One(approval.task_id.clone());
            let task = books.tasks(TaskQuery { which, limit: NonZeroUsize::MIN }).await?;
            let root = task.into_iter().next().map_or(approval.task_id.clone(), |task| task.root);
            format!("go on with {}", connection.resume_command(&root))
        }
    };
    terminal::print(&format!("{word}: {}; {then}\n", call(&approval)));
    Ok(())
}

/// The approval that is meant.
async fn find(orchestrator: &Orchestrator, name: &str) -> Result<Approval, Failure> {
    let pending = orchestrator.approvals(ApprovalSelector::Pending).await?;
    let mut meant = pending
        .into_iter()
        .filter(|approval| name == "last" || approval.approval_id.as_str().starts_with(name));
    let none = || Failure::usage(format!("nothing that waits for an answer is `{name}`"));
    if name == "last" {
        return meant.last().ok_or_else(none);
    }
    match (meant.next(), meant.next()) {
        (Some(one), None) => Ok(one),
        (Some(_), Some(_)) => Err(Failure::usage(format!("more than one begins with `{name}`"))),
        (None, _) => {
            // It may have been answered: then that is told.
            let id = ApprovalId::parse(name).map_err(|_| none())?;
            let known = orchestrator.approvals(ApprovalSelector::One(id)).await?;
            known.into_iter().next().ok_or_else(none)
        }
    }
}

fn table(approvals: &[Approval]) -> String {
    if approvals.is_empty() {
        return "nothing waits for an answer\n".to_owned();
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
            approval.task_id.to_string(),
            call(approval),
            visible(&approval.rule.0),
        ]
    }));
    terminal::table(&lines)
}

fn call(approval: &Approval) -> String {
    let text = format!("{} {}", approval.tool_name, approval.arguments.as_str());
    let mut shown: String = visible(&text).chars().take(CALL_CHARS_MAX).collect();
    if shown.len() < text.len() {
        shown.push('…');
    }
    shown
}
