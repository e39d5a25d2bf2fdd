//! `antiphon agents attach`: attaches to the terminal of an agent.

use std::num::NonZeroUsize;
use std::path::PathBuf;

use antiphon_core::TaskSummary;
use antiphon_core::port::{TaskQuery, TaskSelector};
use antiphon_project::environment::Environment;
use antiphon_project::models::Models;
use antiphon_project::project::Project;
use antiphon_project::runners::TERMINALS;
use antiphon_terminal::{
    AttachError, Attachment, DetachKey, DetachReason, Watching, attach, socket_path,
};
use clap::Args;

use crate::failure::Failure;
use crate::terminal;

/// Most unfinished tasks that are searched.
const TASKS_MAX: NonZeroUsize = NonZeroUsize::new(1000).unwrap();

/// Attach to an agent that runs in a terminal.
///
/// The agent keeps running when you detach. Several users can attach at once; the terminal is as large as
/// the smallest of their windows.
#[derive(Debug, Args)]
#[command(after_help = "\
Detach with Ctrl-\\, or with the key of --detach-key.

Examples:
  antiphon agents attach coder
  antiphon agents attach coder --read-only
  antiphon agents attach coder --detach-key ctrl-]")]
pub(crate) struct Attach {
    /// Name of the agent, or a prefix of its task's id.
    name: String,
    /// Watch without typing.
    #[arg(long)]
    read_only: bool,
    /// Key that detaches.
    #[arg(long, value_name = "KEY", default_value_t)]
    detach_key: DetachKey,
}

impl Attach {
    pub(crate) async fn run(self, environment: &Environment) -> Result<(), Failure> {
        let socket = self.socket(environment).await?;
        let watching = if self.read_only { Watching::ReadOnly } else { Watching::Control };
        let tty = PathBuf::from("/dev/tty");
        let attachment = Attachment { socket, tty, watching, detach: self.detach_key };
        match attach(attachment).await.map_err(|error| self.failure(error))? {
            DetachReason::Detached => {
                let name = &self.name;
                terminal::note(&format!(
                    "detached: `{name}` keeps running; attach again with `antiphon agents attach {name}`\n"
                ));
                Ok(())
            }
            DetachReason::Over { how } => {
                terminal::note(&format!("{how}\n"));
                Ok(())
            }
            DetachReason::Interrupted => Err(Failure::interrupted()),
            DetachReason::Gone => {
                Err(Failure::unavailable("the process of the terminal has ended"))
            }
        }
    }

    /// Socket of the agent's newest terminal.
    async fn socket(&self, environment: &Environment) -> Result<PathBuf, Failure> {
        let project = Project::find_existing(environment)?;
        let folder = project.state().join(TERMINALS);
        let reader = project.reader(Models::new(project.settings(environment)?))?;
        let query = TaskQuery { which: TaskSelector::Unfinished, limit: TASKS_MAX };
        let tasks = reader.tasks(query).await?;
        let matching = tasks.iter().filter(|task| self.matches(task));
        let mut sockets = matching.filter_map(|task| socket_path(&folder, &task.task_id));
        sockets.find(|socket| socket.exists()).ok_or_else(|| {
            let name = &self.name;
            Failure::usage(format!("`{name}` has no terminal: see `antiphon tasks list`"))
        })
    }

    fn matches(&self, task: &TaskSummary) -> bool {
        task.agent == self.name || task.task_id.as_str().starts_with(&self.name)
    }

    fn failure(&self, error: AttachError) -> Failure {
        let message = format!("cannot attach to `{}`: {error}", self.name);
        match error {
            AttachError::NoTerminal(_) => Failure::unavailable(message),
            AttachError::NotOurs | AttachError::Refused { .. } => Failure::refused(message),
            AttachError::NoTty(_) => Failure::usage(message),
        }
    }
}
