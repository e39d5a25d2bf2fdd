//! The live rows, from top to bottom: what still changes of the transcript, queued prompts, the status, the prompt, lists
//! to choose from, and everything at work.

use std::time::Instant;

use antiphon_core::TaskAccess;
use antiphon_core::port::{Clock as _, SystemClock};
use antiphon_project::error::ProjectError;
use antiphon_view::text::{fit, one_line};
use ratatui_core::style::{Color, Modifier, Style};
use ratatui_core::text::{Line, Span};

use super::keys::SECOND_ESCAPE;
use super::{Conversation, FRAME, Program, unusable};
use crate::composer::{ComposerView, ViMode};
use crate::inline_screen::Cursor;
use crate::terminal_mode;
use crate::transcript::TaskTranscript;

/// Rows of the prompt. A longer one scrolls.
const COMPOSER_ROWS_MAX: usize = 10;

/// Rows of the list that an agent keeps.
const TODO_ROWS_MAX: usize = 6;

/// Rows of everything at work.
const BOARD_ROWS_MAX: usize = 8;

const DIM: Style = Style::new().add_modifier(Modifier::DIM);

impl Program<'_, '_> {
    /// Draws a frame, unless nothing changed or the last one was drawn just now.
    pub(super) fn draw_if_due(&mut self) -> Result<(), ProjectError> {
        if !self.is_dirty || self.drawn.elapsed() < FRAME {
            return Ok(());
        }
        self.draw()
    }

    pub(super) fn draw(&mut self) -> Result<(), ProjectError> {
        if let Some(task) = &mut self.watched {
            self.finished.extend(task.take_finished());
        }
        if let Some(rows) = self.overlay_rows() {
            terminal_mode::set_alternate(true);
            self.screen.draw_overlay(&rows).map_err(unusable)?;
            (self.is_dirty, self.drawn) = (false, Instant::now());
            return Ok(());
        }
        self.keep_focus_on_tree();
        let (live, cursor) = self.live();
        let finished = std::mem::take(&mut self.finished);
        self.screen.draw(&finished, &live, cursor).map_err(unusable)?;
        (self.is_dirty, self.drawn) = (false, Instant::now());
        if let Some(question) = &mut self.question {
            question.is_on_screen(self.drawn, !self.composer.is_empty());
        }
        Ok(())
    }

    /// Tells a person who looks at something else.
    pub(super) fn notify(&mut self, text: &str) -> Result<(), ProjectError> {
        match self.notifier.bytes(text) {
            Some(sequence) => self.screen.write_sequence(&sequence).map_err(unusable),
            None => Ok(()),
        }
    }

    /// Adds a line of the program to the scrollback.
    pub(super) fn note(&mut self, text: &str) {
        let dim = Line::styled(text.to_owned(), DIM);
        self.add_lines(crate::wrap::wrap(&dim, self.width(), 2));
    }

    /// Adds an error to the scrollback.
    pub(super) fn error(&mut self, text: &str) {
        let line = Line::styled(format!("✗ {text}"), Style::new().fg(Color::Red));
        self.add_lines(crate::wrap::wrap(&line, self.width(), 2));
    }

    pub(super) fn add_lines(&mut self, lines: impl IntoIterator<Item = Line<'static>>) {
        if let Some(task) = &mut self.watched {
            self.finished.extend(task.take_finished());
        }
        self.finished.extend(lines);
        self.is_dirty = true;
    }

    fn live(&mut self) -> (Vec<Line<'static>>, Cursor) {
        let (width, rows) = (self.width(), self.screen.live_rows_max());
        let composer = ComposerView::new(&self.composer, width);
        let (composer, mut cursor) = composer.lines(COMPOSER_ROWS_MAX.min(rows / 2), self.hint());
        let status = self.status(width);
        let mut below = self.lists(width, rows / 2);
        let free = rows.saturating_sub(composer.len() + 2 + below.len());
        let selected = self.focus.as_ref().map(|focus| &focus.selected);
        let board = (width, BOARD_ROWS_MAX.min(free / 2));
        let board = self.board.lines(self.own_task(), selected, board, SystemClock.now());
        below.extend(board);
        let free = rows.saturating_sub(composer.len() + 2 + below.len());
        let todo = self.todo(TODO_ROWS_MAX.min(free / 2));
        let free = free.saturating_sub(todo.len());
        let mut lines = self.above(width);
        // The end of what is written is the newest.
        let first = lines.len().saturating_sub(free);
        lines.drain(..first);
        lines.extend(todo);
        lines.push(status);
        cursor.row += lines.len();
        lines.extend(composer);
        lines.extend(below);
        (lines, cursor)
    }

    /// What still changes of the transcript, and queued prompts.
    fn above(&mut self, width: usize) -> Vec<Line<'static>> {
        let mut lines = self.watched.as_mut().map_or(Vec::new(), TaskTranscript::live_lines);
        for prompt in &self.queue {
            let text = format!("  ⋯ queued: {}", one_line(prompt));
            lines.push(Line::styled(fit(&text, width), DIM));
        }
        if let Some(warning) = &self.warning {
            let warning = Line::styled(warning.clone(), Style::new().fg(Color::Yellow));
            lines.extend(crate::wrap::wrap(&warning, width, 2));
        }
        lines
    }

    /// What the agent has to do, while its task is open.
    fn todo(&self, rows_max: usize) -> Vec<Line<'static>> {
        let task = self.watched.as_ref().filter(|_| self.is_working || self.is_suspended);
        task.map_or(Vec::new(), |task| task.todo_lines(rows_max))
    }

    fn lists(&self, width: usize, rows_max: usize) -> Vec<Line<'static>> {
        if let Some(list) = &self.list {
            let mut lines = list.lines(width, rows_max);
            let free = rows_max.saturating_sub(lines.len());
            lines.extend(self.preview_lines(width, free));
            return lines;
        }
        self.completions.as_ref().map_or(Vec::new(), |list| list.lines(width, rows_max))
    }

    fn hint(&self) -> &'static str {
        if let Some(question) = &self.question {
            question.hint()
        } else if self.addressee.is_some() {
            "A message to the selected task; Esc takes it back"
        } else if self.is_compacting() {
            "What you send waits for the summary. Esc interrupts it"
        } else if self.is_working {
            "Enter steers, Tab queues, Esc interrupts"
        } else if self.escaped.is_some_and(|at| at.elapsed() < SECOND_ESCAPE) {
            "Esc again goes back to an earlier message"
        } else if self.is_suspended {
            "Enter resumes the task, or type how it should go on"
        } else {
            "Ask anything, / for commands, @ for files, ! for a shell command"
        }
    }

    fn status(&mut self, width: usize) -> Line<'static> {
        let working = self.is_working;
        if let Some(focus) = &self.focus {
            let style = Style::new().fg(Color::Yellow);
            return Line::styled(fit(focus.hint(), width), style);
        }
        if let Some(task_id) = &self.addressee {
            let text = format!("to task {}", task_id.short());
            return Line::styled(fit(&text, width), Style::new().fg(Color::Magenta));
        }
        let left = self.watched.as_ref();
        let left = left.and_then(|task| task.context_left(&self.options.windows));
        let left = left.map_or(String::new(), |left| format!(" · {left}% context left"));
        let asked = self.question.as_ref().map(|question| &question.approval.task_id);
        let text = match &mut self.watched {
            Some(task) if asked == Some(&task.task_id) => {
                format!("? waits for your answer {}{left}", task.spent())
            }
            Some(task) if working => task.activity() + &left,
            Some(_) | None if self.is_suspended => format!("⏸ interrupted{left}"),
            Some(_) | None => self.options.default_status(&self.conversation, &left),
        };
        let vi = match self.vi.as_ref().map(|vi| vi.mode) {
            Some(ViMode::Normal) => "vi commands · ",
            Some(ViMode::Insert) | None => "",
        };
        let text = format!("{vi}{text}");
        let style = if self.question.is_some() {
            Style::new().fg(Color::Yellow)
        } else if working {
            Style::new().fg(Color::Cyan)
        } else {
            DIM
        };
        Line::from(vec![Span::styled(fit(&one_line(&text), width), style)])
    }
}

impl super::ProgramOptions {
    /// Model, agent and permissions of the next task, which has the model of its conversation unless another is chosen.
    fn default_status(&self, conversation: &Conversation, context_left: &str) -> String {
        let model = self.model.as_ref().or(conversation.model.as_ref());
        let name = conversation.name.as_ref().map_or(String::new(), |name| format!("{name} · "));
        let model = model.map_or(self.default_model.clone(), ToString::to_string);
        let agent = self.agent.as_deref().map_or(String::new(), |agent| format!(" · {agent}"));
        let mode = self.mode_name();
        let plan = match self.access {
            TaskAccess::PlanFirst => " · plan first",
            TaskAccess::Permitted | TaskAccess::ReadOnly | TaskAccess::CompactOnly => "",
        };
        format!("{name}{model}{agent} · {mode}{plan}{context_left} · /help")
    }
}
