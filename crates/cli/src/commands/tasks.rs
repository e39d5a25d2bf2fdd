//! `antiphon tasks`: work, done and undone.

use std::num::NonZeroUsize;

use antiphon_core::port::{TaskQuery, Which};
use antiphon_core::{Cost, Message, PriceTable, TaskId, TaskStatus, TokenUsage, Usage, visible};
use antiphon_runtime::{Orchestrator, TaskState};
use clap::Subcommand;
use serde::Serialize;
use serde_json::Value;

use crate::config::Config;
use crate::failure::Failure;
use crate::models::Models;
use crate::project::Project;
use crate::show;
use crate::terminal;

/// Characters of a task's first line that are listed.
const TITLE_CHARS_MAX: usize = 60;

/// Look at the tasks of this project, cancel them, or go on with those that were cut off.
#[derive(Debug, Subcommand)]
#[command(after_help = "\
Examples:
  antiphon tasks list
  antiphon tasks list --unfinished --json
  antiphon tasks show 01990a7e-…
  antiphon tasks cancel 01990a7e-…
  antiphon tasks resume                  # everything that was cut off")]
pub(crate) enum Tasks {
    /// List tasks, the newest first.
    List {
        /// Only those that have not ended.
        #[arg(long)]
        unfinished: bool,
        /// At most so many.
        #[arg(long, default_value = "20", value_name = "N")]
        limit: NonZeroUsize,
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Show one task: what was said, and what it cost.
    Show {
        /// Its id.
        task: TaskId,
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// End a task.
    Cancel {
        /// Its id.
        task: TaskId,
    },
    /// Go on with tasks that were cut off, until they end.
    Resume {
        /// One of them; all when absent.
        task: Option<TaskId>,
    },
}

#[derive(Serialize)]
struct Row {
    task_id: TaskId,
    agent: String,
    status: TaskStatus,
    #[serde(skip_serializing_if = "Option::is_none")]
    model: Option<String>,
    turns: u32,
    usage: Usage,
    #[serde(skip_serializing_if = "Option::is_none")]
    cost: Option<Cost>,
    title: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    detail: Option<Value>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    messages: Vec<Message>,
}

impl Tasks {
    pub(crate) async fn run(self) -> Result<(), Failure> {
        let project = Project::here()?;
        if !project.has_journal() {
            return Err(Failure::usage("there are no tasks here: begin with `antiphon run`"));
        }
        let models = Models::new(Config::load()?);
        let prices = models.config().prices.clone();
        let orchestrator = project.orchestrator(models)?;
        match self {
            Self::List { unfinished, limit, json } => {
                let which = if unfinished { Which::Unfinished } else { Which::All };
                list(&orchestrator, &prices, TaskQuery { which, limit }, json).await
            }
            Self::Show { task, json } => {
                let state = orchestrator.task(&task).await?;
                describe(&state, &prices, json)
            }
            Self::Cancel { task } => Ok(orchestrator.cancel(&task).await?),
            Self::Resume { task } => resume(&orchestrator, task).await,
        }
    }
}

async fn list(
    orchestrator: &Orchestrator,
    prices: &PriceTable,
    query: TaskQuery,
    json: bool,
) -> Result<(), Failure> {
    let tasks = orchestrator.tasks(query).await?;
    let mut rows = Vec::new();
    for task_id in tasks {
        rows.push(row(&orchestrator.task(&task_id).await?, prices));
    }
    if json {
        terminal::print(&terminal::json(&rows)?);
        return Ok(());
    }
    let mut lines = vec![["TASK", "STATUS", "TURNS", "TOKENS", "COST", ""].map(str::to_owned)];
    lines.extend(rows.into_iter().map(|row| {
        [
            row.task_id.to_string(),
            word(row.status),
            row.turns.to_string(),
            TokenUsage::from(row.usage).total_tokens.to_string(),
            row.cost.map_or("?".to_owned(), |cost| cost.to_string()),
            row.title,
        ]
    }));
    terminal::print(&terminal::table(&lines));
    Ok(())
}

fn describe(state: &TaskState, prices: &PriceTable, json: bool) -> Result<(), Failure> {
    let row = Row { messages: state.messages.clone(), ..row(state, prices) };
    if json {
        terminal::print(&terminal::json(&row)?);
        return Ok(());
    }
    let tokens = TokenUsage::from(row.usage);
    let mut text = format!(
        "task {}, {}, {} turns, {} + {} tokens, {}\n",
        row.task_id,
        word(row.status),
        row.turns,
        tokens.prompt_tokens,
        tokens.completion_tokens,
        row.cost.map_or("cost unknown".to_owned(), |cost| cost.to_string()),
    );
    let error = row.detail.as_ref().and_then(|detail| detail["error"].as_str());
    if let Some(error) = error.filter(|_| row.status == TaskStatus::Failed) {
        text.extend(["failed: ", error, "\n"]);
    }
    text.push_str(&super::sessions::conversation(&state.created.system_prompt, &state.messages));
    terminal::print(&text);
    Ok(())
}

async fn resume(orchestrator: &Orchestrator, task: Option<TaskId>) -> Result<(), Failure> {
    let tasks = match task {
        Some(task_id) => {
            orchestrator.resume(&task_id).await?;
            vec![task_id]
        }
        None => orchestrator.recover().await?,
    };
    let mut outcome = Ok(());
    for task_id in tasks {
        let state = orchestrator.wait(&task_id).await?;
        terminal::print(&format!("{task_id} {}\n", word(state.status)));
        outcome = outcome.and(show::outcome(&state));
    }
    outcome
}

fn row(state: &TaskState, prices: &PriceTable) -> Row {
    let first = state.messages.iter().find_map(|message| match message {
        Message::User(user) => user.content.first(),
        Message::Assistant(_) | Message::ToolResult(_) => None,
    });
    let title = match first {
        Some(antiphon_core::InputBlock::Text(text)) => text.text.lines().next().unwrap_or_default(),
        Some(antiphon_core::InputBlock::Image(_)) => "(an image)",
        None => "",
    };
    let model = state.created.model.as_ref();
    Row {
        task_id: state.task_id.clone(),
        agent: state.created.agent.clone(),
        status: state.status,
        model: model.map(ToString::to_string),
        turns: state.turns,
        usage: state.usage,
        cost: model.and_then(|model| prices.cost(model, state.usage)),
        title: visible(title).chars().take(TITLE_CHARS_MAX).collect(),
        detail: state.detail.clone(),
        messages: Vec::new(),
    }
}

fn word(status: TaskStatus) -> String {
    serde_json::to_value(status)
        .ok()
        .and_then(|v| v.as_str().map(str::to_owned))
        .unwrap_or_default()
}
