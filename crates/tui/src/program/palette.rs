//! One list that finds commands, conversations, tasks at work and files.

use antiphon_project::error::ProjectError;
use antiphon_view::text::one_line;

use super::commands::LISTED;
use super::sessions::label;
use super::{Next, PaletteFiles, Picked, Program};
use crate::choice::{Choice, ChoiceList};
use crate::command::{COMMANDS, Command};

/// Title of the list.
const TITLE: &str = "Commands, conversations, tasks, files";

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
        let sessions = self.connection().conversations(LISTED).await?;
        let names = self.session_names().all();
        entries.extend(sessions.into_iter().map(|session| Choice {
            label: label(&session, &names),
            detail: "conversation".to_owned(),
            value: Picked::Session(session.session_id),
        }));
        if self.files.are_being_read() {
            self.palette_files = PaletteFiles::Awaited;
        } else {
            self.palette_files = PaletteFiles::Shown;
            entries.extend(self.file_entries());
        }
        self.list = ChoiceList::new(TITLE, entries);
        Ok(())
    }

    /// The files of the project were read: they join the list, if that is open.
    pub(super) fn add_files_to_palette(&mut self) {
        if self.palette_files == PaletteFiles::Awaited {
            self.palette_files = PaletteFiles::Shown;
            let entries = self.file_entries();
            if let Some(list) = self.list.as_mut().filter(|list| list.title == TITLE) {
                list.add(entries);
            }
        }
    }

    fn file_entries(&self) -> Vec<Choice<Picked>> {
        let entry = |file: &String| Choice {
            label: one_line(file),
            detail: "file".to_owned(),
            value: Picked::File(file.clone()),
        };
        self.files.known().iter().map(entry).collect()
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
