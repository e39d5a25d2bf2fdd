//! `antiphon` and `antiphon chat`: the terminal program.

mod plain;

use std::ffi::OsString;
use std::io::IsTerminal;
use std::path::PathBuf;

use antiphon_core::ModelRef;
use antiphon_process::{AttachedTask, OwnTask};
use antiphon_project::agent_files::read_catalog;
use antiphon_project::environment::Environment;
use antiphon_project::models::Route;
use antiphon_project::project::{OwnerRole, Project};
use antiphon_project::prompt_commands::{self, ListedCommand};
use antiphon_project::settings::UserSettings;
use antiphon_project::task_process::TaskProcess;
use antiphon_tui::{ProgramOptions, PromptEntry, StartWith};
use clap::Args;
use plain::PlainChat;
use uuid::Uuid;

use super::run::leave;
use crate::failure::Failure;
use crate::first_run;
use crate::interface::interface;
use crate::remaining_work::RemainingWork;
use crate::terminal;

/// Name of the command.
pub(crate) const NAME: &str = "chat";

/// Whether arguments without a command mean this one: there are none and a person is at the terminal, or the first is
/// an option of it.
pub(crate) fn is_meant(arguments: &[OsString]) -> bool {
    match arguments.get(1) {
        None => has_terminal(),
        Some(first) => first == "-c" || first == "--continue",
    }
}

fn has_terminal() -> bool {
    std::io::stdin().is_terminal() && std::io::stdout().is_terminal()
}

/// Prompts of a project, in its state folder.
const HISTORY: &str = "prompts";

/// Talk to the agents of this project in the terminal.
#[derive(Debug, Default, Args)]
#[command(after_help = "\
Type a prompt; /help lists keys and commands (docs/terminal.md). What an agent answers stays in the scrollback of your terminal; beneath the prompt is everything at work in the project, also of other terminals.
Ctrl-D quits. A task that works then is interrupted, and can be resumed.

Examples:
  antiphon
  antiphon -c
  antiphon chat --agent reviewer
  antiphon chat --model anthropic/claude-sonnet-4-5")]
pub(crate) struct Chat {
    /// Continue the last conversation.
    #[arg(short = 'c', long = "continue")]
    continues: bool,

    /// Model as PROVIDER/MODEL; when absent, `ANTIPHON_MODEL`, the configured one, or the default of the provider whose key is set.
    #[arg(long)]
    model: Option<ModelRef>,

    /// Agent that new conversations begin with (see `antiphon agents list`).
    #[arg(long, value_name = "NAME")]
    agent: Option<String>,

    /// Text only, for screen readers: nothing is drawn again, and questions are numbered lines. Also where `TERM` is `dumb`.
    #[arg(long)]
    plain: bool,

    /// Script that answers in place of a built-in one (see docs/scripted.md).
    #[arg(long, value_name = "FILE")]
    script: Option<PathBuf>,
}

impl Chat {
    pub(crate) async fn run(
        self,
        environment: &Environment,
        remaining_work: &mut RemainingWork,
    ) -> Result<(), Failure> {
        if !has_terminal() {
            return Err(Failure::usage(
                "the terminal program needs a terminal: use `antiphon run` for a single prompt",
            ));
        }
        if terminal::is_in_background() {
            return Err(Failure::usage(
                "the terminal program cannot run in the background, where the shell keeps the terminal: start it in \
                 the foreground, or use `antiphon run` for a single prompt",
            ));
        }
        let project = Project::find(environment)?;
        let mut settings = project.reviewed_settings(environment)?;
        let is_named = self.model.is_some() || self.script.is_some();
        let chosen =
            if is_named { None } else { first_run::choose_model(environment, &settings).await? };
        let environment = chosen.as_ref().unwrap_or(environment);
        if chosen.is_some() {
            settings = project.reviewed_settings(environment)?;
        }
        let process = TaskProcess {
            id: Some(Uuid::new_v4()),
            folder: environment.current_dir.clone(),
            ..TaskProcess::default()
        };
        let process = process.at_providers_of(&settings);
        let is_plain = self.plain || terminal::is_dumb();
        let options = self.options(environment, &project, &settings, process.clone())?;
        let own = OwnTask {
            project: &project,
            environment,
            settings: Some(settings),
            role: OwnerRole::Run(process),
            interface,
        };
        let mut attachment = AttachedTask::open(own).await?;
        if is_plain {
            let ended = Box::pin(PlainChat::new(options)?.run(&mut attachment)).await;
            leave(attachment, false, remaining_work).await;
            return ended;
        }
        let ended = tokio::select! {
            ended = Box::pin(antiphon_tui::run(&mut attachment, options)) => ended,
            () = panic_of_test(environment) => Ok(()),
        };
        leave(attachment, false, remaining_work).await;
        Ok(ended?)
    }

    fn options(
        self,
        environment: &Environment,
        project: &Project,
        settings: &UserSettings,
        process: TaskProcess,
    ) -> Result<ProgramOptions, Failure> {
        let route = Route { script: self.script, process: Some(process), ..Route::default() };
        let program = |names: &[&str], otherwise: &str| {
            let named = names.iter().find_map(|name| environment.text(name));
            named.unwrap_or_else(|| otherwise.to_owned())
        };
        let agents = read_catalog(project, settings).entries();
        let commands = prompt_commands::list(project, settings);
        Ok(ProgramOptions {
            start_with: if self.continues { StartWith::Last } else { StartWith::New },
            model: self.model,
            default_model: settings
                .default_model()
                .model()
                .map_or_else(String::new, ToString::to_string),
            agent: self.agent,
            agents: agents
                .into_iter()
                .map(|entry| entry.definition)
                .map(|agent| (agent.name.to_string(), agent.description.clone()))
                .collect(),
            prompts: commands.iter().map(prompt_entry).collect(),
            expand: Box::new(move |name, typed| {
                prompt_commands::expand_typed(&commands, name, typed)
            }),
            route: route.absolute(environment)?,
            prices: settings.prices.clone(),
            windows: settings.windows().clone(),
            root: project.root().to_owned(),
            history: project.state().join(HISTORY),
            decider: crate::DECIDER,
            program: own_path(),
            editor: program(&["VISUAL", "EDITOR"], "vi"),
            shell: program(&["SHELL"], "/bin/sh"),
            colors: terminal::stdout_colors() == antiphon_view::Colors::On,
        })
    }
}

fn prompt_entry(listed: &ListedCommand) -> PromptEntry {
    PromptEntry {
        name: listed.name.clone(),
        hint: listed.command.hint.clone().unwrap_or_default(),
        description: listed.command.description.clone(),
    }
}

/// Panics when the file exists that a test names: the terminal is restored then, too.
#[cfg(debug_assertions)]
async fn panic_of_test(environment: &Environment) {
    let Some(file) = environment.text("ANTIPHON_TEST_PANIC") else {
        return std::future::pending().await;
    };
    while !std::path::Path::new(&file).exists() {
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    #[expect(clippy::panic, reason = "it is what the test asked for")]
    {
        panic!("a test asked for this panic");
    }
}

/// Never, in the program that people use.
#[cfg(not(debug_assertions))]
async fn panic_of_test(_environment: &Environment) {
    std::future::pending().await
}

/// The path of this program, or its name, which the shell finds.
fn own_path() -> String {
    let path = std::env::current_exe().ok();
    let path = path.and_then(|path| path.to_str().map(str::to_owned));
    path.unwrap_or_else(|| "antiphon".to_owned())
}
