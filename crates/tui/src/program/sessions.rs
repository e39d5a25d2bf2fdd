//! Conversations: listed, looked at before one is chosen, and found by what was said in them.

use std::collections::BTreeMap;
use std::num::NonZeroUsize;

use antiphon_core::port::{TaskQuery, TaskSelector};
use antiphon_core::{Message, SessionId, SessionSummary};
use antiphon_process::Connection;
use antiphon_project::error::ProjectError;
use antiphon_project::session_names::SessionNames;
use antiphon_runtime::Orchestrator;
use antiphon_view::display::escaped;
use antiphon_view::text::{age, count, fit, one_line};
use chrono::Utc;
use ratatui_core::style::{Color, Modifier, Style};
use ratatui_core::text::{Line, Span};

use super::commands::LISTED;
use super::lookups::Found;
use super::{Picked, Program};
use crate::choice::{Choice, ChoiceList};
use crate::document::text_of;

/// Tasks of a conversation whose prompt and answer are shown before it is chosen.
const PREVIEWED: NonZeroUsize = NonZeroUsize::new(3).unwrap();

/// Bytes of messages that one search reads.
const SEARCHED_BYTES_MAX: usize = 256 * 1024 * 1024;

/// Characters around the text that was found.
const AROUND_CHARS: usize = 30;

/// What was said last in a conversation.
pub(super) struct Preview {
    session: SessionId,
    lines: Vec<Line<'static>>,
}

impl Program<'_, '_> {
    /// The names of the project's conversations.
    pub(super) fn session_names(&self) -> SessionNames {
        SessionNames::new(self.options.project.state())
    }

    /// Names the conversation, or takes its name away.
    pub(super) fn name_session(&mut self, name: &str) {
        let Some((session, _)) = self.conversation.session.clone() else {
            return self.note("there is no conversation to name yet");
        };
        let name = Some(name).filter(|name| !name.is_empty());
        match self.session_names().set(&session, name) {
            Ok(()) => {
                self.conversation.name = name.map(|name| name.trim().to_owned());
                self.note(name.map_or(
                    "The conversation has no name any more",
                    |_| "The name is in /sessions, and in antiphon sessions",
                ));
            }
            Err(error) => self.error(&error.to_string()),
        }
    }

    /// Lists the conversations, or those in which a text was said.
    pub(super) async fn list_sessions(&mut self, text: &str) -> Result<(), ProjectError> {
        if !text.is_empty() {
            self.note(&format!("Searching the newest {LISTED} conversations …"));
            let (connection, text) = (self.connection().clone(), text.to_lowercase());
            let names = self.session_names().all();
            self.look_up(async move {
                match search(&connection, &text, &names).await {
                    Ok(found) => found,
                    Err(error) => Found::Error(error.to_string()),
                }
            });
            return Ok(());
        }
        let sessions = self.connection().conversations(LISTED).await?;
        let names = self.session_names().all();
        let entries = sessions.into_iter().map(|session| {
            let tasks = count(session.tasks, "task");
            entry(session, &tasks, &names)
        });
        self.list = ChoiceList::new("Conversations", entries.collect());
        if self.list.is_none() {
            self.note("there is no conversation yet");
        }
        self.look_at_selected();
        Ok(())
    }

    /// Reads what was said last in the selected conversation.
    pub(super) fn look_at_selected(&mut self) {
        let selected = self.list.as_ref().and_then(ChoiceList::selected);
        let Some(Picked::Session(session)) = selected.map(|choice| choice.value.clone()) else {
            self.preview = None;
            return;
        };
        if self.preview.as_ref().is_some_and(|preview| preview.session == session) {
            return;
        }
        self.preview = Some(Preview { session: session.clone(), lines: Vec::new() });
        let reader = self.connection().reader().clone();
        self.look_up(async move {
            match last_said(&reader, &session).await {
                Ok(lines) => Found::Preview(Preview { session, lines }),
                Err(error) => Found::Error(error.to_string()),
            }
        });
    }

    /// Another conversation may be selected by now.
    pub(super) fn show_preview(&mut self, found: Preview) {
        if self.preview.as_ref().is_some_and(|preview| preview.session == found.session) {
            self.preview = Some(found);
        }
    }

    /// The rows beneath the list.
    pub(super) fn preview_lines(&self, width: usize, rows_max: usize) -> Vec<Line<'static>> {
        let preview = self.preview.as_ref().filter(|_| self.list.is_some());
        let lines = preview.map_or(&[][..], |preview| &preview.lines);
        let first = lines.len().saturating_sub(rows_max);
        let fitting = |line: &Line<'static>| {
            let text = fit(&line.to_string(), width);
            Line::styled(text, line.style)
        };
        lines[first..].iter().map(fitting).collect()
    }
}

type Names = BTreeMap<SessionId, String>;

/// The name of a conversation and how it began.
pub(super) fn label(session: &SessionSummary, names: &Names) -> String {
    let title = one_line(&session.title);
    // A copy of a conversation begins without a prompt of its own.
    let title = if title.is_empty() { "(a copy)".to_owned() } else { title };
    match names.get(&session.session_id) {
        Some(name) => format!("{} · {title}", one_line(name)),
        None => title,
    }
}

fn entry(session: SessionSummary, detail: &str, names: &Names) -> Choice<Picked> {
    Choice {
        label: label(&session, names),
        detail: format!("{} ago · {detail}", age(Utc::now() - session.updated_at)),
        value: Picked::Session(session.session_id),
    }
}

/// The first lines of the last prompts and answers.
async fn last_said(
    reader: &Orchestrator,
    session: &SessionId,
) -> Result<Vec<Line<'static>>, ProjectError> {
    let which = TaskSelector::Session(session.clone());
    let mut tasks = reader.tasks(TaskQuery { which, limit: PREVIEWED }).await?;
    tasks.reverse();
    let dim = Style::new().add_modifier(Modifier::DIM);
    let mut lines = Vec::new();
    for task in tasks {
        if !task.title.is_empty() {
            let prompt = format!("    › {}", one_line(&task.title));
            lines.push(Line::from(Span::raw(prompt)).style(Style::new().fg(Color::Cyan)));
        }
        if let Some(answer) = &task.preview {
            lines.push(Line::styled(format!("      {}", one_line(answer)), dim));
        }
    }
    Ok(lines)
}

/// The conversations whose messages or names have the text, in lower case.
async fn search(connection: &Connection, text: &str, names: &Names) -> Result<Found, ProjectError> {
    let (mut entries, mut failures, mut read) = (Vec::new(), Vec::new(), 0);
    for summary in connection.conversations(LISTED).await? {
        if read > SEARCHED_BYTES_MAX {
            failures.push(format!(
                "only the newest {} MiB were searched",
                SEARCHED_BYTES_MAX / 1024 / 1024
            ));
            break;
        }
        let session = connection.session(summary.clone()).await?;
        let name = names.get(&summary.session_id);
        let mut found = name.and_then(|name| around(name, text));
        for message in &session.messages {
            let said = said(message);
            read += said.len();
            found = found.or_else(|| around(&said, text));
        }
        if let Some(found) = found {
            entries.push(entry(summary, &found, names));
        }
    }
    Ok(Found::List { title: "Conversations with this text", entries, failures })
}

fn said(message: &Message) -> String {
    match message {
        Message::User(user) => text_of(&user.content),
        Message::Assistant(answer) => answer.text(),
        Message::ToolResult(result) => text_of(&result.content),
    }
}

/// The text that was found with what stands around it; `None` when it is not there.
fn around(said: &str, text: &str) -> Option<String> {
    let lower = said.to_lowercase();
    let at = lower.find(text)?;
    let before = lower[..at].chars().count().saturating_sub(AROUND_CHARS);
    let length = text.chars().count() + 2 * AROUND_CHARS;
    let part: String = said.chars().skip(before).take(length).collect();
    Some(escaped(&one_line(&part)).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_found_in_any_case_with_what_stands_around_it() {
        assert_eq!(around("The Parser is new", "parser"), Some("The Parser is new".to_owned()));
        assert_eq!(around("nothing", "parser"), None);
        let long = format!("{} needle {}", "a".repeat(100), "b".repeat(100));
        let found = around(&long, "needle").unwrap();
        assert!(found.len() < 70 && found.contains("needle"), "{found}");
    }
}
