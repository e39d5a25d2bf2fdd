//! The live tree with the keyboard: its tasks are opened, steered, paused, resumed and canceled.

use antiphon_core::TaskId;
use antiphon_project::error::ProjectError;
use crossterm::event::{KeyCode, KeyEvent};

use super::Program;

/// Asks whether a task is canceled.
pub(super) const CONFIRMS_CANCEL: &str =
    "y cancels it and every task below it; any other key does not";

/// A selected task of the tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct TreeFocus {
    pub(super) selected: TaskId,
    /// The next key says whether the task is canceled.
    confirms_cancel: bool,
}

impl TreeFocus {
    /// What the keys do.
    pub(super) fn hint(&self) -> &'static str {
        if self.confirms_cancel {
            CONFIRMS_CANCEL
        } else {
            "Enter transcript · s steer · p pause · r resume · c cancel · a its question · w watch · Esc back"
        }
    }
}

impl Program<'_, '_> {
    /// Gives the keyboard to the tree. Returns false when nothing is at work.
    pub(super) fn focus_tree(&mut self) -> bool {
        let first = self.board.shown_tasks(self.own_task()).into_iter().next();
        self.focus = first.map(|selected| TreeFocus { selected, confirms_cancel: false });
        self.focus.is_some()
    }

    /// The task whose own rows are the transcript.
    pub(super) fn own_task(&self) -> Option<&TaskId> {
        let task = self.watched.as_ref().filter(|_| self.is_working || self.is_suspended)?;
        Some(&task.task_id)
    }

    /// A task that has ended is not selected any longer.
    pub(super) fn keep_focus_on_tree(&mut self) {
        let Some(focus) = &self.focus else { return };
        let shown = self.board.shown_tasks(self.own_task());
        if !shown.contains(&focus.selected) && !self.focus_tree() {
            self.focus = None;
        }
    }

    #[expect(clippy::wildcard_enum_match_arm, reason = "most keys do nothing here")]
    pub(super) async fn tree_key(&mut self, key: KeyEvent) -> Result<(), ProjectError> {
        let Some(focus) = &mut self.focus else { return Ok(()) };
        let task_id = focus.selected.clone();
        self.is_dirty = true;
        if std::mem::take(&mut focus.confirms_cancel) {
            if key.code == KeyCode::Char('y') {
                let canceled = self.connection().cancel(&task_id).await;
                self.report(canceled, &format!("canceled {}", task_id.short()));
            }
            return Ok(());
        }
        match key.code {
            KeyCode::Up | KeyCode::Char('k') => self.select_beside(false),
            KeyCode::Down | KeyCode::Char('j') => self.select_beside(true),
            KeyCode::Enter => self.show_transcript_of(&task_id),
            KeyCode::Char('c') => focus.confirms_cancel = true,
            KeyCode::Char('s') => (self.addressee, self.focus) = (Some(task_id), None),
            KeyCode::Char('p') => {
                let paused = self.connection().pause(&task_id).await;
                self.report(paused, &format!("{} pauses after its current step", task_id.short()));
            }
            KeyCode::Char('r') => {
                let resumed = self.connection().resume(&task_id).await;
                self.report(resumed, &format!("resumed {}", task_id.short()));
            }
            KeyCode::Char('a') => {
                (self.asked_task, self.focus) = (Some(task_id), None);
                self.ask_next().await?;
                if self.question.is_none() {
                    self.note("this task asks nothing");
                }
            }
            KeyCode::Char('w') => {
                self.focus = None;
                self.open_other_task(&task_id).await?;
            }
            KeyCode::Esc | KeyCode::Char('q') => self.focus = None,
            _ => {}
        }
        Ok(())
    }

    fn select_beside(&mut self, is_below: bool) {
        let shown = self.board.shown_tasks(self.own_task());
        let Some(focus) = &mut self.focus else { return };
        let at = shown.iter().position(|task| *task == focus.selected).unwrap_or(0);
        let beside = if is_below { Some(at + 1) } else { at.checked_sub(1) };
        match beside.map(|index| shown.get(index)) {
            Some(Some(task)) => focus.selected = task.clone(),
            Some(None) => {}
            // Above the first one is the prompt.
            None => self.focus = None,
        }
    }

    fn report(&mut self, done: Result<(), ProjectError>, text: &str) {
        match done {
            Ok(()) => self.note(&format!("  {text}")),
            Err(error) => self.error(&error.to_string()),
        }
    }
}
