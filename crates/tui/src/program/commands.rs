//! What the commands behind a slash do.

use std::num::NonZeroUsize;

use antiphon_core::port::{TaskQuery, TaskSelector};
use antiphon_core::{SessionId, TaskId, WaitingFor};
use antiphon_project::error::ProjectError;
use antiphon_view::display::escaped;
use antiphon_view::status_word;
use antiphon_view::text::{age, one_line};
use chrono::Utc;
use ratatui_core::style::{Modifier, Style};
use ratatui_core::text::{Line, Span};
use uuid::Uuid;

use super::{Conversation, Next, Picked, Program};
use crate::choice::{Choice, ChoiceList};
use crate::command::{COMMANDS, Command};

/// Conversations that are listed.
pub(super) const LISTED: NonZeroUsize = NonZeroUsize::new(200).unwrap();

/// Keys that always do the same.
const KEYS: [(&str, &str); 9] = [
    ("Enter", "send; while an agent works it reads the message after its current step"),
    ("\\ Enter", "a new line"),
    ("Esc", "interrupt the turn; Enter resumes it"),
    ("Esc Esc", "go back to an earlier message, in a copy of the conversation"),
    ("↑ ↓", "earlier prompts, queued ones first; beneath the prompt, the tasks at work"),
    ("@", "a file of the project"),
    ("!", "a shell command of yours; the agent does not see it"),
    ("y t a n e", "answer a question: once, for this task, always, no; e edits a plan"),
    ("Ctrl-C, Ctrl-D", "clear the prompt, interrupt, or quit"),
];

/// Keys of the settings that the help lists; `/keys` lists all.
const HELP_KEYS: usize = 11;

impl Program<'_, '_> {
    pub(super) async fn command(
        &mut self,
        command: Command,
        argument: &str,
    ) -> Result<Next, ProjectError> {
        match command {
            Command::Help => self.help(),
            Command::New => self.new_conversation(),
            Command::Model => self.choose_model(argument),
            Command::Agent => self.choose_agent(argument),
            Command::Sessions => self.list_sessions(argument).await?,
            Command::Mcp => self.list_mcp(),
            Command::Keys => self.list_keys(),
            Command::Theme => self.choose_theme(argument),
            Command::Vi => self.toggle_vi(),
            Command::Tasks => self.list_tasks(),
            Command::Resume => match self.open_task().filter(|_| self.is_suspended) {
                Some(task_id) => self.resume(&task_id).await,
                None => self.list_unfinished().await?,
            },
            Command::Pause => self.pause().await,
            Command::Cancel => self.cancel().await,
            Command::Approvals => self.ask_next().await?,
            Command::Fork => self.fork().await?,
            Command::Name => self.name_session(argument),
            Command::Compact => self.compact().await?,
            Command::Detach => return Ok(self.detach()),
            Command::Agents => self.same_project(&["agents", "list"]).await?,
            Command::Budget => self.same_project(&["budget", "show"]).await?,
            Command::Doctor => self.same_project(&["doctor"]).await?,
            Command::Diff => self.shell_command("git --no-pager diff --stat -p").await?,
            Command::Cost => self.show_cost(),
            Command::Plan => self.toggle_plan(),
            Command::Permissions => self.permissions(argument),
            Command::Export => self.export(argument).await?,
            Command::Transcript => self.show_transcript(),
            Command::Quit => return Ok(Next::Quit),
        }
        Ok(Next::Continue)
    }

    pub(super) fn welcome(&mut self) {
        let bold = Style::new().add_modifier(Modifier::BOLD);
        let dim = Style::new().add_modifier(Modifier::DIM);
        let root = antiphon_view::display::escaped_path(&self.options.root);
        let title = vec![
            Span::styled("Antiphon ", bold),
            Span::styled(format!("{} · {root}", antiphon_api::VERSION), dim),
        ];
        self.add_lines([Line::from(title), Line::default()]);
    }

    fn help(&mut self) {
        let bold = Style::new().add_modifier(Modifier::BOLD);
        let mut lines = Vec::new();
        let row = |name: &str, help: &str| {
            let name = format!("  {name:<30} ");
            Line::from(vec![Span::styled(name, bold), Span::raw(help.to_owned())])
        };
        for (keys, help) in KEYS {
            lines.extend(crate::wrap::wrap(&row(keys, help), self.width(), 4));
        }
        for (keys, _, help) in self.options.keymap.rows().into_iter().take(HELP_KEYS) {
            lines.extend(crate::wrap::wrap(&row(&keys, help), self.width(), 4));
        }
        lines.push(Line::default());
        for entry in &COMMANDS {
            let name = format!("/{} {}", entry.name, entry.argument);
            lines.extend(crate::wrap::wrap(&row(&name, entry.help), self.width(), 4));
        }
        lines.push(Line::default());
        self.add_lines(lines);
    }

    fn new_conversation(&mut self) {
        if self.open_task().is_some() {
            self.note("the task of the last conversation goes on: see /tasks");
        }
        self.conversation = Conversation::default();
        self.forget_watched();
        self.note("A new conversation");
    }

    pub(super) fn forget_watched(&mut self) {
        if let Some(mut task) = self.watched.take() {
            task.finish();
            let lines = task.take_finished();
            self.add_lines(lines);
        }
        (self.is_working, self.is_suspended, self.question) = (false, false, None);
    }

    fn choose_agent(&mut self, argument: &str) {
        if !argument.is_empty() {
            return self.set_agent(argument);
        }
        let entries = self.options.agents.iter().map(|(name, description)| Choice {
            label: name.clone(),
            detail: one_line(description),
            value: Picked::Agent(name.clone()),
        });
        let entries: Vec<_> = entries.collect();
        self.list = ChoiceList::new("Agents of this project", entries);
        if self.list.is_none() {
            self.note("this project has no agents: `antiphon agents new NAME` makes one");
        }
    }

    fn set_agent(&mut self, name: &str) {
        if !self.options.agents.iter().any(|(known, _)| known == name) {
            let name = escaped(name).into_owned();
            return self.error(&format!("there is no agent {name}: /agent lists them"));
        }
        self.options.agent = Some(name.to_owned());
        self.conversation = Conversation::default();
        self.note(&format!("The next prompt begins a conversation with {name}"));
    }

    fn list_tasks(&mut self) {
        let entries = self.board.tasks().into_iter().map(|(task_id, name)| Choice {
            label: name,
            detail: String::new(),
            value: Picked::Task(task_id),
        });
        let entries: Vec<_> = entries.collect();
        self.list = ChoiceList::new("At work", entries);
        if self.list.is_none() {
            self.note("nothing is at work");
        }
    }

    /// Lists the tasks that have not ended, of which one can be resumed here.
    async fn list_unfinished(&mut self) -> Result<(), ProjectError> {
        let query = TaskQuery { which: TaskSelector::Unfinished, limit: LISTED };
        let tasks = self.connection().reader().tasks(query).await?;
        let entries = tasks.into_iter().filter(|task| task.parent.is_none()).map(|task| Choice {
            label: one_line(&task.title),
            detail: format!(
                "{} · {} · {} ago",
                status_word(&task),
                escaped(&task.agent),
                age(Utc::now() - task.last_event_at)
            ),
            value: if task.waiting_for == Some(WaitingFor::Resume) {
                Picked::Resumed(task.task_id)
            } else {
                Picked::Task(task.task_id)
            },
        });
        self.list = ChoiceList::new("Tasks that have not ended", entries.collect());
        if self.list.is_none() {
            self.note("every task has ended: see /sessions");
        }
        Ok(())
    }

    /// Watches a task that was interrupted, and resumes it.
    async fn resume_other(&mut self, task_id: &TaskId) -> Result<(), ProjectError> {
        self.open_other_task(task_id).await?;
        if self.is_suspended && self.open_task().as_ref() == Some(task_id) {
            self.resume(task_id).await;
        }
        Ok(())
    }

    /// Runs another command on this project, with the options of this process.
    async fn same_project(&mut self, command: &[&str]) -> Result<(), ProjectError> {
        let options = self.options.program_options.clone();
        let arguments = options.iter().map(String::as_str).chain(command.iter().copied());
        self.own_command(&arguments.collect::<Vec<_>>()).await
    }

    pub(super) async fn pick(&mut self, picked: Picked) -> Result<Next, ProjectError> {
        match picked {
            Picked::Command(command) => return self.pick_command(command).await,
            Picked::File(file) => drop(self.composer.insert(&format!("@{file} "))),
            Picked::Earlier(index, text) => self.go_back(index, &text).await?,
            Picked::Prompt(prompt) => self.composer.set(&prompt),
            Picked::Model(model) => self.set_model(model),
            Picked::Resumed(task) => self.resume_other(&task).await?,
            Picked::Agent(name) => self.set_agent(&name),
            Picked::Session(session) => self.open_session(&session).await?,
            Picked::Task(task) => self.open_other_task(&task).await?,
        }
        Ok(Next::Continue)
    }

    async fn open_session(&mut self, session: &SessionId) -> Result<(), ProjectError> {
        match self.connection().find_session(&session.to_string()).await {
            Ok(summary) => self.continue_session(summary).await,
            Err(error) => {
                self.error(&error.to_string());
                Ok(())
            }
        }
    }

    /// Watches a task that another process or another agent began.
    pub(super) async fn open_other_task(&mut self, task_id: &TaskId) -> Result<(), ProjectError> {
        let created = self.connection().reader().created(task_id).await?;
        self.open_session(&created.session_id).await
    }

    async fn pause(&mut self) {
        let Some(task_id) = self.open_task() else { return self.note("no task works here") };
        match self.connection().pause(&task_id).await {
            Ok(()) => self.note("Queued: the task pauses after the current step"),
            Err(error) => self.error(&error.to_string()),
        }
    }

    async fn cancel(&mut self) {
        let Some(task_id) = self.open_task() else { return self.note("no task works here") };
        if let Err(error) = self.connection().cancel(&task_id).await {
            self.error(&error.to_string());
        }
    }

    async fn fork(&mut self) -> Result<(), ProjectError> {
        let Some((session, _)) = self.conversation.session.clone() else {
            self.note("there is no conversation to copy yet");
            return Ok(());
        };
        let summary = self.connection().find_session(&session.to_string()).await?;
        match self.connection().fork(&summary, &Uuid::new_v4().to_string()).await {
            Ok(fork) => {
                let summary = self.connection().find_session(&fork.to_string()).await?;
                // A copy has no model of its own.
                let session = Some((fork, summary.last_task));
                self.conversation = Conversation { session, model: None, name: None };
                self.forget_watched();
                self.note("The next prompt continues a copy of the conversation");
            }
            Err(error) => self.error(&error.to_string()),
        }
        Ok(())
    }

    async fn export(&mut self, file: &str) -> Result<(), ProjectError> {
        let Some((session, _)) = &self.conversation.session else {
            self.note("there is no conversation to export yet");
            return Ok(());
        };
        let name =
            if file.is_empty() { format!("session-{session}.json") } else { file.to_owned() };
        let summary = self.connection().find_session(&session.to_string()).await?;
        let session = self.connection().session(summary).await?;
        let written = antiphon_session_file::to_json(&session)
            .map_err(|error| error.to_string())
            .and_then(|json| self.write_new(&name, &json));
        match written {
            Ok(()) => self.note(&format!("saved to {}", escaped(&name))),
            Err(error) => self.error(&error),
        }
        Ok(())
    }

    /// Writes a file that does not exist yet.
    fn write_new(&self, name: &str, text: &str) -> Result<(), String> {
        use std::io::Write as _;
        let path = self.options.root.join(name);
        let mut options = std::fs::OpenOptions::new();
        let file = options.write(true).create_new(true).open(&path);
        let written = file.and_then(|mut file| file.write_all(text.as_bytes()));
        written.map_err(|error| format!("{name} cannot be written: {error}"))
    }
}
