//! `antiphon` and `antiphon chat`: the terminal program.

mod own_command;
mod plain;
mod start_form;

use std::io::IsTerminal;
use std::num::NonZeroU32;
use std::path::PathBuf;
use std::sync::Arc;

use antiphon_core::{ModelRef, TaskAccess, TaskLimits};
use antiphon_process::{AttachedTask, OwnTask};
use antiphon_project::agent_files::read_catalog;
use antiphon_project::environment::Environment;
use antiphon_project::models::{Models, Route};
use antiphon_project::project::{OwnerRole, Project};
use antiphon_project::prompt_commands::{self, ListedCommand};
use antiphon_project::settings::UserSettings;
use antiphon_project::task_process::TaskProcess;
use antiphon_project::toolset::check_overrides;
use antiphon_tui::{Asks, Keymap, NotificationSequence, ProgramOptions, PromptEntry, StartWith};
use clap::Args;
use plain::PlainChat;
use uuid::Uuid;

use super::run::{amounts, leave};
use crate::failure::Failure;
use crate::first_run;
use crate::interface::interface;
use crate::permission_args::{AskMode, PermissionArgs};
use crate::remaining_work::RemainingWork;
use crate::terminal;
pub(crate) use start_form::is_meant;

/// Name of the command.
pub(crate) const NAME: &str = "chat";

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

Without a command, these options and a prompt of several words mean this program too.

Examples:
  antiphon
  antiphon -c
  antiphon \"What does this project do?\"
  antiphon --agent reviewer --plan
  antiphon --mode read-only --model anthropic/claude-sonnet-4-5")]
pub(crate) struct Chat {
    /// Prompt to begin with.
    prompt: Option<String>,

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

    #[command(flatten)]
    permissions: PermissionArgs,

    /// The first task only reads until you have accepted its plan.
    #[arg(long)]
    plan: bool,

    /// What happens to a call that needs approval: ask here (the default), wait for a decision of another command, or
    /// refuse.
    #[arg(long, value_name = "HOW")]
    ask: Option<AskMode>,

    /// Most model calls of each task and of the tasks below it.
    #[arg(long, value_name = "N", value_parser = amounts::at_least_one)]
    max_turns: Option<NonZeroU32>,

    /// Most US dollars that each task may cost.
    #[arg(long, value_name = "USD", value_parser = amounts::dollars)]
    budget_usd: Option<f64>,

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
        // A conversation that is continued has a model.
        let has_model = self.model.is_some() || self.script.is_some() || self.continues;
        let chosen =
            if has_model { None } else { first_run::choose_model(environment, &settings).await? };
        let environment = chosen.as_ref().unwrap_or(environment);
        if chosen.is_some() {
            settings = project.reviewed_settings(environment)?;
        }
        let process = self.process(environment).at_providers_of(&settings);
        if process.has_own_permissions() {
            check_overrides(&project, &settings, &process.overrides())?;
        }
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

    /// What this process gives to its tasks.
    fn process(&self, environment: &Environment) -> TaskProcess {
        TaskProcess {
            id: Some(Uuid::new_v4()),
            folder: environment.current_dir.clone(),
            refuses_approvals: self.ask == Some(AskMode::Refuse),
            ..self.permissions.process()
        }
    }

    fn limits(&self) -> Result<TaskLimits, Failure> {
        Ok(TaskLimits {
            turns_max: self.max_turns,
            cost_nano_usd_max: self.budget_usd.map(amounts::nano_usd).transpose()?,
            ..TaskLimits::default()
        })
    }

    fn options(
        self,
        environment: &Environment,
        project: &Project,
        settings: &UserSettings,
        process: TaskProcess,
    ) -> Result<ProgramOptions, Failure> {
        if self.prompt.as_deref().is_some_and(|prompt| prompt.trim().is_empty()) {
            return Err(Failure::usage(
                "the prompt is empty: omit it, or write what you want to know",
            ));
        }
        let limits = self.limits()?;
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
            first_prompt: self.prompt,
            route: route.absolute(environment)?,
            limits,
            access: if self.plan { TaskAccess::PlanFirst } else { TaskAccess::Permitted },
            asks: match self.ask {
                Some(AskMode::Wait) => Asks::Elsewhere,
                Some(AskMode::Terminal | AskMode::Refuse) | None => Asks::Here,
            },
            models: Arc::new(Models::new(settings.clone())),
            prices: settings.prices.clone(),
            windows: settings.windows().clone(),
            root: project.root().to_owned(),
            history: project.state().join(HISTORY),
            decider: crate::DECIDER,
            program: own_command::path(),
            program_options: own_command::options(environment)?,
            editor: program(&["VISUAL", "EDITOR"], "vi"),
            shell: program(&["SHELL"], "/bin/sh"),
            keymap: Keymap::new(&settings.tui.keys).map_err(|reason| {
                Failure::usage(format!("{}: [tui.keys]: {reason}", settings.path.display()))
            })?,
            notifications: NotificationSequence::of(settings.notify.in_program(), |name| {
                environment.text(name)
            }),
            project: project.clone(),
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
