//! One list that finds commands, conversations, tasks at work and files.

use antiphon_project::error::ProjectError;
use antiphon_view::text::one_line;

use super::commands::LISTED;
use super::sessions::label;
use super::{Next, Picked, Program};
use crate::choice::{Choice, ChoiceList};
use crate::command::{COMMANDS, Command};

impl Program<'_, '_> {
    pub(super) async fn open_palette(&mut self) -> Result<(), ProjectError> {
        self.read_files();
        let mut entries: Vec<Choice<Picked>> = COMMANDS
            .iter()
            .map(|entry| Choice {
                label: format!("/{}", entry.name),
                detail: entry.help.to_owned(),
                value: Picked::Command(entry.command),
            })
            .collect();
        entries.extend(self.board.tasks().into_iter().map(|(task_id, name)| Choice {
            label: name,
            detail: "at work".to_owned(),
            value: Picked::Task(task_id),
        }));
        let sessions = self.connection().sessions(LISTED).await?;
        let names = self.session_names().all();
        entries.extend(sessions.into_iter().map(|session| Choice {
            label: label(&session, &names),
            detail: "conversation".to_owned(),
            value: Picked::Session(session.session_id),
        }));
        entries.extend(self.files.known().iter().map(|file| Choice {
            label: one_line(file),
            detail: "file".to_owned(),
            value: Picked::File(file.clone()),
        }));
        self.list = ChoiceList::new("Commands, conversations, tasks, files", entries);
        Ok(())
    }

    /// A command from the list: one that takes an argument is written into the prompt.
    pub(super) async fn pick_command(&mut self, command: Command) -> Result<Next, ProjectError> {
        let entry = COMMANDS.iter().find(|entry| entry.command == command);
        match entry {
            Some(entry) if !entry.argument.is_empty() => {
                self.composer.set(&format!("/{} ", entry.name));
                Ok(Next::Continue)
            }
            Some(_) | None => self.command(command, "").await,
        }
    }
}
