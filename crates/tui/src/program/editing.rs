//! Keys of the prompt: what each does to its text, and to the program.

use antiphon_project::error::ProjectError;
use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use super::{Next, Program};
use crate::composer::{Motion, ViMode, ViNext};
use crate::keymap::Action;

impl Program<'_, '_> {
    #[expect(clippy::wildcard_enum_match_arm, reason = "other keys change the text")]
    pub(super) async fn plain_key(
        &mut self,
        key: KeyEvent,
        control: bool,
    ) -> Result<Next, ProjectError> {
        if control && key.code == KeyCode::Char('d') && self.composer.is_empty() {
            return Ok(Next::Quit);
        }
        if self.vi_key(key) {
            self.complete();
            return Ok(Next::Continue);
        }
        if let Some(action) = self.options.keymap.action(key) {
            return self.act(action).await;
        }
        match key.code {
            KeyCode::Enter => return self.enter().await,
            KeyCode::Esc => self.escape().await?,
            KeyCode::Up => self.up(),
            KeyCode::Down => self.down(),
            _ => self.edit(key, control),
        }
        Ok(Next::Continue)
    }

    /// A key of vi, while keys are commands. False when it is a key like any other.
    fn vi_key(&mut self, key: KeyEvent) -> bool {
        let is_plain = !key.modifiers.intersects(KeyModifiers::CONTROL | KeyModifiers::ALT);
        let KeyCode::Char(c) = key.code else { return false };
        let Some(vi) = self.vi.as_mut().filter(|vi| is_plain && vi.mode == ViMode::Normal) else {
            return false;
        };
        match vi.key(c, &mut self.composer) {
            ViNext::Done => {}
            ViNext::Up => self.up(),
            ViNext::Down => self.down(),
        }
        true
    }

    async fn act(&mut self, action: Action) -> Result<Next, ProjectError> {
        match action {
            Action::NewLine => drop(self.composer.insert("\n")),
            Action::Queue => {
                self.tab();
                return Ok(Next::Continue);
            }
            Action::Plan => self.toggle_plan(),
            Action::History => self.search_history(),
            Action::Transcript => self.show_transcript(),
            Action::Tasks => {
                if !self.focus_tree() {
                    self.note("nothing else is at work");
                }
            }
            Action::Palette => self.open_palette().await?,
            Action::Editor => self.edit_outside().await?,
            Action::Image => self.take_image(),
            Action::Redraw => self.screen.redraw(),
            Action::Suspend => self.suspend()?,
            Action::Left => self.composer.go(Motion::Left),
            Action::Right => self.composer.go(Motion::Right),
            Action::WordLeft => self.composer.go(Motion::WordLeft),
            Action::WordRight => self.composer.go(Motion::WordRight),
            Action::LineStart => self.composer.go(Motion::LineStart),
            Action::LineEnd => self.composer.go(Motion::LineEnd),
            Action::RemoveWordLeft => self.composer.remove(Motion::WordLeft),
            Action::RemoveWordRight => self.composer.remove(Motion::WordRight),
            Action::RemoveToLineStart => self.composer.remove(Motion::LineStart),
            Action::RemoveToLineEnd => self.composer.remove(Motion::LineEnd),
            Action::InsertRemoved => self.composer.insert_removed(),
        }
        self.complete();
        Ok(Next::Continue)
    }

    /// Keys that change the text and always do the same.
    #[expect(clippy::wildcard_enum_match_arm, reason = "most keys do nothing here")]
    fn edit(&mut self, key: KeyEvent, control: bool) {
        let is_held = control || key.modifiers.contains(KeyModifiers::ALT);
        match key.code {
            KeyCode::Char('n') if control => return self.down(),
            KeyCode::Char('d') if control => self.composer.remove(Motion::Right),
            KeyCode::Char(c) if !is_held => drop(self.composer.insert(c.encode_utf8(&mut [0; 4]))),
            KeyCode::Backspace => self.composer.remove(Motion::Left),
            KeyCode::Delete => self.composer.remove(Motion::Right),
            KeyCode::Left => self.composer.go(Motion::Left),
            KeyCode::Right => self.composer.go(Motion::Right),
            KeyCode::Home if control => self.composer.go(Motion::Start),
            KeyCode::End if control => self.composer.go(Motion::End),
            KeyCode::Home => self.composer.go(Motion::LineStart),
            KeyCode::End => self.composer.go(Motion::LineEnd),
            _ => return,
        }
        self.complete();
    }
}
