//! Keys: what each does to the prompt, the lists beneath it, the question and the task.

use std::time::{Duration, Instant};

use antiphon_project::error::ProjectError;
use crossterm::event::{Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};

use super::{Next, Picked, Program};
use crate::choice::{Choice, ChoiceList};
use crate::completion::completions;
use crate::composer::{ComposerView, Motion, Vi};
use crate::inline_screen::Size;
use crate::terminal_mode;

/// A second Esc within this time goes back to an earlier message.
pub(super) const SECOND_ESCAPE: Duration = Duration::from_secs(2);

impl Program<'_, '_> {
    pub(super) async fn input(&mut self, event: Event) -> Result<Next, ProjectError> {
        let next = match event {
            Event::Key(key) if key.kind != KeyEventKind::Release => self.key(key).await?,
            Event::Paste(_) if self.overlay.is_some() => Next::Continue,
            Event::Paste(text) => {
                self.focus = None;
                if !self.composer.paste(&text) {
                    self.error(
                        "the pasted text is too long: save it to a file and name that with @",
                    );
                }
                self.complete();
                self.typed_beside_question();
                Next::Continue
            }
            Event::Resize(columns, rows) => {
                self.screen.resize(Size::of((columns, rows)));
                let width = self.width();
                if let Some(task) = &mut self.watched {
                    task.resize(width);
                }
                self.resize_overlay();
                terminal_mode::look_for_keys();
                Next::Continue
            }
            Event::FocusGained => {
                self.notifier.set_focus(true);
                return Ok(Next::Continue);
            }
            Event::FocusLost => {
                self.notifier.set_focus(false);
                return Ok(Next::Continue);
            }
            Event::Key(_) | Event::Mouse(_) => Next::Continue,
        };
        // Keys are answered at once.
        if next == Next::Continue {
            self.draw()?;
        }
        Ok(next)
    }

    async fn key(&mut self, key: KeyEvent) -> Result<Next, ProjectError> {
        let control = key.modifiers.contains(KeyModifiers::CONTROL);
        if self.overlay.is_some() {
            self.overlay_key(key).await?;
            return Ok(Next::Continue);
        }
        if control && key.code == KeyCode::Char('c') {
            (self.list, self.focus, self.addressee) = (None, None, None);
            let next = self.interrupt_or_quit().await;
            self.typed_beside_question();
            return next;
        }
        if self.list.is_some() {
            let next = self.list_key(key).await;
            self.typed_beside_question();
            return next;
        }
        if self.focus.is_some() && !control {
            self.tree_key(key).await?;
            self.typed_beside_question();
            return Ok(Next::Continue);
        }
        if self.question_key(key).await? {
            return Ok(Next::Continue);
        }
        let next = self.plain_key(key, control).await;
        self.typed_beside_question();
        next
    }

    /// Looks for completions of what is typed.
    pub(super) fn complete(&mut self) {
        let (_, word) = self.composer.word_before_cursor();
        if word.starts_with('@') {
            self.files.refresh();
        }
        self.completions = completions(&self.composer, self.files.known(), &self.options.prompts);
    }

    /// Begins to read the files of the project.
    pub(super) fn read_files(&mut self) {
        self.files.refresh();
    }

    pub(super) async fn enter(&mut self) -> Result<Next, ProjectError> {
        if self.composer.text().ends_with('\\')
            && self.composer.cursor() == self.composer.text().len()
        {
            self.composer.remove(Motion::Left);
            self.composer.insert("\n");
            return Ok(Next::Continue);
        }
        let typed = self.composer.text().trim_end().to_owned();
        if let Some(value) = self.take_completion()
            && (value.trim_end() != typed && !typed.contains(' ') || value.starts_with('@'))
        {
            self.accept(&value);
            if !value.starts_with('/') {
                return Ok(Next::Continue);
            }
        }
        if !self.question_text().await? {
            return Ok(Next::Continue);
        }
        let prompt = self.composer.take();
        self.vi.iter_mut().for_each(Vi::reset);
        if let Err(error) = self.history.add(&prompt) {
            self.note(&format!("the prompt is not in the history: {error}"));
        }
        self.history.reset();
        self.submit(prompt).await
    }

    async fn submit(&mut self, prompt: String) -> Result<Next, ProjectError> {
        if let Some(command) = prompt.strip_prefix('!') {
            self.shell_command(command.trim()).await?;
            return Ok(Next::Continue);
        }
        match crate::command::parse(&prompt) {
            Some(Ok((command, argument))) => return self.command(command, argument).await,
            Some(Err(name)) => match (self.options.expand)(name, &prompt) {
                Some(Ok(expanded)) => {
                    self.typed = Some(prompt);
                    let sent = self.send(expanded).await;
                    self.typed = None;
                    sent?;
                }
                Some(Err(reason)) => self.error(&reason),
                None => self.error(&format!("there is no command /{name}: see /help")),
            },
            None if prompt.trim().is_empty() && !self.is_suspended => {}
            None => self.send(prompt).await?,
        }
        Ok(Next::Continue)
    }

    /// The selected completion; the list is closed.
    fn take_completion(&mut self) -> Option<String> {
        let list = self.completions.take()?;
        list.selected().map(|choice| choice.value.clone())
    }

    fn accept(&mut self, value: &str) {
        let (start, _) = self.composer.word_before_cursor();
        self.composer.replace_back_to(start, value);
        self.completions = None;
    }

    /// Takes a completion, or queues the prompt while a task works.
    pub(super) fn tab(&mut self) {
        if let Some(value) = self.take_completion() {
            self.accept(&value);
        } else if self.is_working && !self.composer.text().trim().is_empty() {
            let prompt = self.composer.take();
            self.queue.push_back(prompt);
        }
    }

    /// Closes what is open, or interrupts the turn. Twice, with nothing to interrupt, goes back to an earlier message.
    pub(super) async fn escape(&mut self) -> Result<(), ProjectError> {
        if self.completions.take().is_some() || self.addressee.take().is_some() {
            return Ok(());
        }
        if self.vi.as_mut().is_some_and(|vi| vi.escape(&mut self.composer)) {
            return Ok(());
        }
        if self.is_working {
            self.interrupt().await;
            return Ok(());
        }
        let is_second = self.escaped.take().is_some_and(|at| at.elapsed() < SECOND_ESCAPE);
        if is_second && self.composer.is_empty() && self.question.is_none() {
            return self.list_earlier().await;
        }
        self.escaped = Some(Instant::now());
        Ok(())
    }

    pub(super) fn up(&mut self) {
        if let Some(list) = &mut self.completions {
            return list.up();
        }
        let above = ComposerView::new(&self.composer, self.width()).vertical(false);
        if let Some(byte) = above {
            return self.composer.go_to(byte);
        }
        // A queued prompt is edited before an earlier one.
        if self.composer.is_empty()
            && let Some(prompt) = self.queue.pop_back()
        {
            return self.composer.set(&prompt);
        }
        if let Some(prompt) = self.history.earlier(self.composer.text()) {
            let prompt = prompt.to_owned();
            self.composer.set(&prompt);
        }
    }

    pub(super) fn down(&mut self) {
        if let Some(list) = &mut self.completions {
            return list.down();
        }
        let below = ComposerView::new(&self.composer, self.width()).vertical(true);
        if let Some(byte) = below {
            return self.composer.go_to(byte);
        }
        if let Some(prompt) = self.history.later() {
            let prompt = prompt.to_owned();
            return self.composer.set(&prompt);
        }
        // Below the prompt is the tree.
        if self.composer.is_empty() {
            self.focus_tree();
        }
    }

    pub(super) fn search_history(&mut self) {
        let entries = self.history.found(self.composer.text()).into_iter().map(|prompt| Choice {
            label: antiphon_view::text::one_line(prompt),
            detail: String::new(),
            value: Picked::Prompt(prompt.to_owned()),
        });
        let entries: Vec<_> = entries.collect();
        self.list = ChoiceList::new("Earlier prompts", entries);
        if self.list.is_none() {
            self.note("no earlier prompt has this text");
        }
    }

    #[expect(clippy::wildcard_enum_match_arm, reason = "most keys do nothing here")]
    async fn list_key(&mut self, key: KeyEvent) -> Result<Next, ProjectError> {
        let Some(list) = &mut self.list else { return Ok(Next::Continue) };
        match key.code {
            KeyCode::Up => list.up(),
            KeyCode::Down | KeyCode::Tab => list.down(),
            KeyCode::Enter => {
                let Some(picked) = list.selected().map(|choice| choice.value.clone()) else {
                    return Ok(Next::Continue);
                };
                self.list = None;
                return self.pick(picked).await;
            }
            KeyCode::Esc => self.list = None,
            KeyCode::Backspace => list.widen(),
            KeyCode::Char('p') if key.modifiers.contains(KeyModifiers::CONTROL) => list.up(),
            KeyCode::Char('n') if key.modifiers.contains(KeyModifiers::CONTROL) => list.down(),
            KeyCode::Char(c) if !key.modifiers.contains(KeyModifiers::CONTROL) => list.narrow(c),
            _ => {}
        }
        self.look_at_selected();
        Ok(Next::Continue)
    }
}
