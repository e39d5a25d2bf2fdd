//! The whole transcript of a task on the alternate screen, over everything else.

use antiphon_core::{Event, Seq, TaskId};
use antiphon_process::Connection;
use antiphon_project::error::ProjectError;
use antiphon_view::display::escaped;
use antiphon_view::text::fit;
use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ratatui_core::style::{Color, Modifier, Style};
use ratatui_core::text::Line;

use super::lookups::Found;
use super::tree_focus::CONFIRMS_CANCEL;
use super::{Program, unusable};
use crate::asked_question::AskedQuestion;
use crate::document::{Entry, text_of};
use crate::pager::{KEYS, Pager, PagerNext};
use crate::terminal_mode;

/// A transcript that is shown, and up to which event.
pub(super) struct Overlay {
    task_id: TaskId,
    seen: Seq,
    pager: Pager,
    /// The next key says whether the task is canceled.
    confirms_cancel: bool,
    /// What became of the last order.
    message: Option<String>,
}

/// What the keys do in the transcript of a task that has not ended.
const OPEN_KEYS: &str = "q closes, / searches, s steers, p pauses, r resumes, c cancels";

/// A transcript that is read beside the loop.
pub(super) struct Opening {
    task_id: TaskId,
    /// What happened meanwhile.
    later: Vec<(Seq, Entry)>,
}

impl Program<'_, '_> {
    /// Shows everything that was said in the conversation.
    pub(super) fn show_transcript(&mut self) {
        let watched = self.watched.as_ref().map(|task| task.task_id.clone());
        let last = self.conversation.session.as_ref().map(|(_, task)| task.clone());
        match watched.or(last) {
            Some(task_id) => self.show_transcript_of(&task_id),
            None => self.note("nothing was said yet"),
        }
    }

    /// Shows everything that was said in a task, and in the conversation before it.
    pub(super) fn show_transcript_of(&mut self, task_id: &TaskId) {
        let (size, task_id) = (self.screen.size(), task_id.clone());
        let connection = self.connection().clone();
        let opening = Opening { task_id: task_id.clone(), later: Vec::new() };
        self.look_up(async move {
            let (title, seen, entries) = match read(&connection, &task_id).await {
                Ok(read) => read,
                Err(error) => return Found::Error(error.to_string()),
            };
            let pager = Pager::new(title, entries, size);
            Found::Transcript(Box::new(Overlay {
                task_id,
                seen,
                pager,
                confirms_cancel: false,
                message: None,
            }))
        });
        self.opening = Some(opening);
    }

    /// A transcript is formatted: it is shown with what happened meanwhile.
    pub(super) fn open_overlay(&mut self, mut overlay: Overlay) {
        let Some(opening) = self.opening.take().filter(|it| it.task_id == overlay.task_id) else {
            return;
        };
        for (seq, entry) in opening.later {
            if seq > overlay.seen {
                overlay.seen = seq;
                overlay.pager.add(entry);
            }
        }
        overlay.pager.resize(self.screen.size());
        self.overlay = Some(overlay);
        self.question.iter_mut().for_each(AskedQuestion::was_hidden);
        self.is_dirty = true;
    }

    pub(super) fn overlay_event(&mut self, event: &Event) {
        if let Some(opening) = self.opening.as_mut().filter(|it| it.task_id == event.task_id) {
            opening.later.extend(Entry::of(event).map(|entry| (event.seq, entry)));
        }
        let Some(overlay) = &mut self.overlay else { return };
        if event.task_id == overlay.task_id && event.seq > overlay.seen {
            overlay.seen = event.seq;
            if let Some(entry) = Entry::of(event) {
                overlay.pager.add(entry);
            }
        }
    }

    pub(super) async fn overlay_key(&mut self, key: KeyEvent) -> Result<(), ProjectError> {
        let Some(overlay) = &mut self.overlay else { return Ok(()) };
        overlay.message = None;
        if std::mem::take(&mut overlay.confirms_cancel) {
            if key.code == KeyCode::Char('y') {
                let task_id = overlay.task_id.clone();
                let canceled = self.connection().cancel(&task_id).await;
                self.say_in_overlay(canceled, "The task is canceled");
            }
            return Ok(());
        }
        let suspends =
            key.code == KeyCode::Char('z') && key.modifiers.contains(KeyModifiers::CONTROL);
        match overlay.pager.key(key) {
            _ if suspends => {
                self.close_overlay()?;
                self.suspend()
            }
            PagerNext::Close => self.close_overlay(),
            PagerNext::Unknown => self.overlay_order(key.code).await,
            PagerNext::Stay => Ok(()),
        }
    }

    /// A key that steers, pauses, resumes or cancels the task whose transcript is shown.
    #[expect(clippy::wildcard_enum_match_arm, reason = "most keys do nothing here")]
    async fn overlay_order(&mut self, key: KeyCode) -> Result<(), ProjectError> {
        let Some(task_id) = self.open_overlay_task() else { return Ok(()) };
        match key {
            KeyCode::Char('s') => {
                self.close_overlay()?;
                // It may have been opened from the tree, which had the keyboard.
                (self.addressee, self.focus) = (Some(task_id), None);
            }
            KeyCode::Char('p') => {
                let paused = self.connection().pause(&task_id).await;
                self.say_in_overlay(paused, "The task pauses after its current step");
            }
            KeyCode::Char('r') => {
                let resumed = self.connection().resume(&task_id).await;
                self.say_in_overlay(resumed, "The task is resumed");
            }
            KeyCode::Char('c') => {
                if let Some(overlay) = &mut self.overlay {
                    overlay.confirms_cancel = true;
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// The task whose transcript is shown, if it has not ended.
    fn open_overlay_task(&self) -> Option<TaskId> {
        let task_id = &self.overlay.as_ref()?.task_id;
        let is_open = self.board.is_open(task_id);
        is_open.then(|| task_id.clone())
    }

    fn say_in_overlay(&mut self, done: Result<(), ProjectError>, text: &str) {
        let text = match done {
            Ok(()) => text.to_owned(),
            Err(error) => escaped(&error.to_string()).into_owned(),
        };
        if let Some(overlay) = &mut self.overlay {
            overlay.message = Some(text);
        }
    }

    pub(super) fn close_overlay(&mut self) -> Result<(), ProjectError> {
        self.overlay = None;
        self.is_dirty = true;
        terminal_mode::set_alternate(false);
        self.screen.close_overlay().map_err(unusable)
    }

    pub(super) fn resize_overlay(&mut self) {
        let size = self.screen.size();
        if let Some(overlay) = &mut self.overlay {
            overlay.pager.resize(size);
        }
    }

    /// The rows of the overlay, if one is open.
    pub(super) fn overlay_rows(&mut self) -> Option<Vec<Line<'static>>> {
        let keys = if self.open_overlay_task().is_some() { OPEN_KEYS } else { KEYS };
        let columns = self.width();
        let overlay = self.overlay.as_mut()?;
        let mut rows = overlay.pager.screen(keys);
        let said = if self.question.is_some() {
            Some("A question waits for you: q closes this")
        } else if overlay.confirms_cancel {
            Some(CONFIRMS_CANCEL)
        } else {
            overlay.message.as_deref()
        };
        if let (Some(said), Some(last)) = (said, rows.last_mut()) {
            let style = Style::new().fg(Color::Yellow).add_modifier(Modifier::REVERSED);
            *last = Line::styled(fit(said, columns), style);
        }
        Some(rows)
    }
}

async fn read(
    connection: &Connection,
    task_id: &TaskId,
) -> Result<(String, Seq, Vec<Entry>), ProjectError> {
    let state = connection.reader().task(task_id).await?;
    let conversation = &state.conversation;
    let mut entries: Vec<Entry> =
        conversation.messages().iter().cloned().map(Entry::Message).collect();
    if let Some(antiphon_core::Message::User(summary)) = conversation.summary() {
        let at = conversation.kept_from().min(entries.len());
        entries.insert(at, Entry::compacted(&text_of(&summary.content)));
    }
    let title = format!("{} {}", escaped(&state.created.agent), task_id.short());
    Ok((title, state.seq, entries))
}
