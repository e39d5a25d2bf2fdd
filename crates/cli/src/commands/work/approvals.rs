//! `antiphon approvals`: tool calls that wait for the user's decision, questions of agents, and their plans.

use std::fs::File;
use std::io::Read as _;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

use antiphon_core::port::{ApprovalQuery, ApprovalSelector, TaskQuery, TaskSelector};
use antiphon_core::{
    ANSWER_BYTES_MAX, Answer, Approval, ApprovalReply, ApprovalStatus, Decision, Question,
};
use antiphon_process::{Connection, ProjectAccess, Twice};
use antiphon_view::display::escaped;
use antiphon_view::{
    answer_text, answers_text, call_lines, call_text as call, rule_text, typed_reply,
};
use clap::Subcommand;

use crate::failure::Failure;
use crate::hints::resume_command;
use crate::terminal;

/// List what waits for you: tool calls, questions and plans of agents. Allow, answer or deny them.
#[derive(Debug, Subcommand)]
#[command(after_help = "\
A decision lets the task continue: at once while `antiphon serve` runs in this project, else when you
resume the task with `antiphon run --resume TASK`.

Examples:
  antiphon approvals list
  antiphon approvals allow last
  antiphon approvals allow --always 0199…   # and every call its rule covers from now on
  antiphon approvals deny last --comment 'Use a branch.'
  antiphon approvals answer last 2          # a question: a choice, or an answer in words
  antiphon approvals allow last --plan my.md  # a plan, as you changed it")]
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
    /// Show one approval whole: the call, the question with its choices, or the plan.
    #[command(after_help = "\
Examples:
  antiphon approvals show last")]
    Show {
        /// Id of the approval, a prefix of it, or `last`.
        approval: String,
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Answer a question of an agent.
    #[command(after_help = "\
Examples:
  antiphon approvals answer last 2
  antiphon approvals answer last 'Use the second file.'")]
    Answer {
        /// Id of the approval, a prefix of it, or `last`.
        approval: String,
        /// Numbers or labels of choices, separated by commas, or your own words; the default when absent.
        answer: Option<String>,
    },
    /// Allow a call, or accept a plan.
    #[command(after_help = "\
Examples:
  antiphon approvals allow last
  antiphon approvals allow last --always")]
    Allow {
        /// Id of the approval, a prefix of it, or `last`.
        approval: String,
        /// Also allow every call its rule covers, in the same task.
        #[arg(long, conflicts_with = "always")]
        task: bool,
        /// Also allow every call its rule covers, in this project from now on.
        #[arg(long)]
        always: bool,
        /// Accept the plan as this file has it; `-` reads standard input.
        #[arg(long, value_name = "FILE", conflicts_with_all = ["task", "always"])]
        plan: Option<PathBuf>,
    },
    /// Deny a call, reject a plan, or leave a question unanswered.
    #[command(after_help = "\
Examples:
  antiphon approvals deny last --comment 'Not on this branch.'")]
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
            Self::Show { approval, json } => {
                let connection = access.read()?;
                let approval = connection.find_approval(&approval).await?;
                terminal::print(&if json { terminal::json(&approval)? } else { whole(&approval) });
                Ok(())
            }
            Self::Answer { approval, answer } => {
                let approval = access.read()?.find_approval(&approval).await?;
                if approval.question.is_none() {
                    return Err(Failure::usage(
                        "it asks whether a call may run: use `antiphon approvals allow` or `deny`",
                    ));
                }
                let reply = typed_reply(&approval, answer.as_deref().unwrap_or_default());
                let reply =
                    reply.map_err(|possible| Failure::usage(escaped(&possible).into_owned()))?;
                decide(&access, &approval, reply).await
            }
            Self::Allow { approval, task, always, plan } => {
                let answer = plan.as_deref().map(changed_plan).transpose()?;
                let decision = match (task, always) {
                    (_, true) => Decision::AllowAlways,
                    (true, false) => Decision::AllowTask,
                    (false, false) => Decision::AllowOnce,
                };
                let reply = ApprovalReply { decision, comment: None, answer };
                decide_named(&access, &approval, reply).await
            }
            Self::Deny { approval, comment } => {
                let reply = ApprovalReply { decision: Decision::Deny, comment, answer: None };
                decide_named(&access, &approval, reply).await
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

/// A plan that the person has changed.
fn changed_plan(file: &Path) -> Result<Answer, Failure> {
    let named = if file == Path::new("-") { Path::new("/dev/stdin") } else { file };
    let mut text = String::new();
    let limit = ANSWER_BYTES_MAX as u64 + 1;
    let read = File::open(named).and_then(|file| file.take(limit).read_to_string(&mut text));
    read.map_err(|error| {
        Failure::usage(format!(
            "cannot read the plan {}: {error}",
            escaped(&file.to_string_lossy())
        ))
    })?;
    Ok(Answer { choices: Vec::new(), text: Some(text) })
}

async fn decide_named(
    access: &ProjectAccess<'_>,
    name: &str,
    reply: ApprovalReply,
) -> Result<(), Failure> {
    let approval = access.read()?.find_approval(name).await?;
    decide(access, &approval, reply).await
}

async fn decide(
    access: &ProjectAccess<'_>,
    approval: &Approval,
    reply: ApprovalReply,
) -> Result<(), Failure> {
    let word = match (&approval.question, reply.decision.allows()) {
        (None, true) => "allowed",
        (None, false) => "denied",
        (Some(Question::Plan(_)), true) => "accepted",
        (Some(Question::Plan(_)), false) => "rejected",
        (Some(Question::Choice(_)), true) => "answered",
        (Some(Question::Choice(_)), false) => "left unanswered",
    };
    let decide = async |connection: &Connection| {
        connection.reply(&approval.approval_id, reply.clone(), crate::DECIDER).await
    };
    let (connection, ()) = access.decided(Twice::IsTwice, decide).await?;
    let then = match &connection {
        Connection::Server(..) => "its task continues".to_owned(),
        Connection::Local(books) => {
            // The whole tree is resumed.
            let which = TaskSelector::One(approval.task_id.clone());
            let task = books.tasks(TaskQuery { which, limit: NonZeroUsize::MIN }).await?;
            let root = task.into_iter().next().map_or(approval.task_id.clone(), |task| task.root);
            format!("continue with {}", resume_command(&connection, &root))
        }
    };
    terminal::print(&format!("{word}: {}; {then}\n", call(approval)));
    Ok(())
}

/// One approval whole.
fn whole(approval: &Approval) -> String {
    let Approval { approval_id, task_id, status, .. } = approval;
    let mut lines = vec![format!("approval {approval_id}, {}, task {task_id}", status.as_str())];
    lines.extend(call_lines(approval));
    match &approval.question {
        None => lines.push(format!("why: {}", escaped(&approval.reason))),
        Some(question) => match answer_text(approval) {
            Some(answer) => lines.push(format!("answer: {answer}")),
            None if *status == ApprovalStatus::Pending => lines.push(answers_text(question)),
            None => {}
        },
    }
    lines.join("\n") + "\n"
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
