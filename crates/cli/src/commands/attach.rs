//! `antiphon agents attach`: sit down at the terminal of an agent.

use std::num::NonZeroUsize;
use std::path::PathBuf;

use antiphon_core::TaskSummary;
use antiphon_core::port::{TaskQuery, TaskSelector};
use antiphon_project::environment::Environment;
use antiphon_project::models::Models;
use antiphon_project::project::Project;
use antiphon_project::settings::UserSettings;
use antiphon_project::team::TERMINALS;
use antiphon_terminal::{AttachError, Attachment, DetachKey, Left, Watching, attach, socket_path};
use clap::Args;

use crate::failure::Failure;
use crate::terminal;

/// Unfinished tasks that are looked through.
const TASKS_MAX: NonZeroUsize = NonZeroUsize::new(1000).unwrap();

/// Watch an agent that runs in a terminal, and type.
///
/// The agent runs on when you leave. Several can watch at once; the terminal is as large as the
/// smallest of their windows.
#[derive(Debug, Args)]
#[command(after_help = "\
Leave with Ctrl-\\, or with the key that --detach-key names.

Examples:
  antiphon agents attach coder
  antiphon agents attach coder --read-only
  antiphon agents attach coder --detach-key ctrl-]")]
pub(crate) struct Attach {
    /// Which agent, or the beginning of its task's id.
    name: String,
    /// Look and do not type.
    #[arg(long)]
    read_only: bool,
    /// What to press to leave.
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
            Left::Detached => {
                let name = &self.name;
                terminal::note(&format!("`{name}` runs on; `antiphon agents attach {name}`\n"));
                Ok(())
            }
            Left::Over { how } => {
                terminal::note(&format!("{how}\n"));
                Ok(())
            }
            Left::Interrupted => Err(Failure::interrupted()),
            Left::Gone => Err(Failure::unavailable("whoever kept the terminal is gone")),
        }
    }

    /// Where the newest terminal of the agent is attached to.
    async fn socket(&self, environment: &Environment) -> Result<PathBuf, Failure> {
        let project = Project::find_existing(environment)?;
        let folder = project.folder().join(TERMINALS);
        let reader = project.reader(Models::new(UserSettings::load(environment)?))?;
        let query = TaskQuery { which: TaskSelector::Unfinished, limit: TASKS_MAX };
        let tasks = reader.tasks(query).await?;
        let meant = tasks.iter().filter(|task| self.is_meant(task));
        let mut sockets = meant.filter_map(|task| socket_path(&folder, &task.task_id));
        sockets.find(|socket| socket.exists()).ok_or_else(|| {
            let name = &self.name;
            Failure::usage(format!("no terminal of `{name}` is there: see `antiphon tasks list`"))
        })
    }

    fn is_meant(&self, task: &TaskSummary) -> bool {
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
