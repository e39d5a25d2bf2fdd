//! `antiphon prompt`: what a model gets.

use std::fmt::Write as _;

use antiphon_core::{ModelRef, Tool, escape_for_terminal};
use antiphon_project::environment::Environment;
use antiphon_project::first_request::{FirstRequest, first_request};
use antiphon_project::project::Project;
use antiphon_project::task_process::TaskProcess;
use clap::{Args, Subcommand};
use serde::Serialize;

use crate::failure::Failure;
use crate::terminal;

/// The message of the shown request.
const MESSAGE: &str = "(your prompt)";

/// Show what a model gets.
#[derive(Debug, Subcommand)]
#[command(after_help = "\
Examples:
  antiphon prompt show
  antiphon prompt show --agent reviewer")]
pub(crate) enum Prompt {
    Show(Show),
}

/// Show the first request of an agent: system prompt and tools, with their sizes.
///
/// Nothing is started and nothing is recorded. Tools of MCP servers are left out.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  antiphon prompt show
  antiphon prompt show --agent reviewer
  antiphon prompt show --model openai/gpt-5 --json | jq .bytes")]
pub(crate) struct Show {
    /// The agent; a task without one when absent.
    #[arg(long, value_name = "NAME")]
    agent: Option<String>,

    /// The model as PROVIDER/MODEL; the one that a task would have when absent.
    #[arg(long)]
    model: Option<ModelRef>,

    /// Print one JSON object.
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Shown<'a> {
    agent: &'a str,
    model: &'a ModelRef,
    bytes: usize,
    system_prompt: Part<&'a str>,
    tools: Vec<Part<&'a Tool>>,
}

#[derive(Serialize)]
struct Part<T> {
    bytes: usize,
    content: T,
}

impl Prompt {
    pub(crate) async fn run(self, environment: &Environment) -> Result<(), Failure> {
        match self {
            Self::Show(show) => Box::pin(show.run(environment)).await,
        }
    }
}

impl Show {
    async fn run(self, environment: &Environment) -> Result<(), Failure> {
        let project = Project::find(environment)?;
        let settings = project.settings(environment)?;
        if !settings.mcp.0.is_empty() {
            terminal::note("antiphon: tools of MCP servers are not shown: nothing is started\n");
        }
        let process =
            TaskProcess { folder: environment.current_dir.clone(), ..TaskProcess::default() };
        let wanted = (self.agent.as_deref(), self.model);
        let first = first_request(&project, settings, &process, wanted, MESSAGE).await?;
        let shown = shown(&first)?;
        if self.json {
            terminal::print(&terminal::json(&shown)?);
        } else {
            terminal::print(&text(&shown));
        }
        Ok(())
    }
}

fn shown(first: &FirstRequest) -> Result<Shown<'_>, Failure> {
    let prompt = first.request.system_prompt.as_str();
    let system_prompt = Part { bytes: prompt.len(), content: prompt };
    let tool = |tool| {
        let json = serde_json::to_string(tool).map_err(|it| Failure::failed(it.to_string()))?;
        Ok(Part { bytes: json.len(), content: tool })
    };
    let tools = first.request.tools.iter().map(|it| tool(&**it));
    let tools: Vec<Part<&Tool>> = tools.collect::<Result<_, Failure>>()?;
    let bytes = system_prompt.bytes + tools.iter().map(|tool| tool.bytes).sum::<usize>();
    Ok(Shown { agent: &first.agent, model: &first.model, bytes, system_prompt, tools })
}

fn text(shown: &Shown<'_>) -> String {
    let Shown { agent, model, bytes, system_prompt, tools } = shown;
    let mut text = format!(
        "The first request of `{agent}` to {model}: {bytes} bytes, without your prompt and what the provider's format \
         adds\n\nSystem prompt: {} bytes\n\n{}\n",
        system_prompt.bytes, system_prompt.content
    );
    for Part { bytes, content: Tool { name, description, parameters } } in tools {
        // Writing to a String cannot fail.
        let _ = write!(text, "\nTool {name}: {bytes} bytes\n\n{description}\n{parameters}\n");
    }
    escape_for_terminal(&text).into_owned()
}
