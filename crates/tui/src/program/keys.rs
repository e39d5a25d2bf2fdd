//! Keys: what each does to the prompt, the lists beneath it, the question and the task.

use antiphon_core::{ApprovalReply, Decision};
use antiphon_project::error::ProjectError;
use crossterm::event::{Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};

use super::{Next, Picked, Program};
use crate::choice::{Choice, ChoiceList};
use crate::completion::{completions, project_files};
use crate::composer::{ComposerView, Motion};
use crate::inline_screen::Size;

impl Program<'_, '_> {
    pub(super) async fn input(&mut self, event: Event) -> Result<Next, ProjectError> {
        let next = match event {
            Event::Key(key) if key.kind != KeyEventKind::Release => self.key(key).await?,
            Event::Paste(text) => {
                if !self.composer.paste(&text) {
                    self.error(
                        "the pasted text is too long: save it to a file and name that with @",
                    );
                }
                self.complete();
                Next::Continue
            }
            Event::Resize(columns, rows) => {
                self.screen.resize(Size::of((columns, rows)));
                let width = self.width();
                if let Some(task) = &mut self.watched {
                    task.resize(width);
                }
                Next::Continue
            }
            Event::Key(_) | Event::FocusGained | Event::FocusLost | Event::Mouse(_) => {
                Next::Continue
            }
        };
        // Keys are answered at once.
        if next == Next::Continue {
            self.draw()?;
        }
        Ok(next)
    }

    #[expect(clippy::wildcard_enum_match_arm, reason = "most keys do nothing here")]
    async fn key(&mut self, key: KeyEvent) -> Result<Next, ProjectError> {
        let control = key.modifiers.contains(KeyModifiers::CONTROL);
        if control && key.code == KeyCode::Char('c') {
            self.list = None;
            return self.interrupt_or_quit().await;
        }
        if self.list.is_some() {
            return self.list_key(key).await;
        }
        if self.question.as_ref().is_some_and(|asked| asked.question.is_none())
            && self.composer.is_empty()
            && let Some(decision) = answer(key)
        {
            self.reply(ApprovalReply { decision, comment: None, answer: None }).await?;
            return Ok(Next::Continue);
        }
        if control {
            return self.control_key(key.code).await;
        }
        match key.code {
            KeyCode::Enter if key.modifiers.intersects(KeyModifiers::ALT | KeyModifiers::SHIFT) => {
                self.composer.insert("\n");
            }
            KeyCode::Enter => return self.enter().await,
            KeyCode::Tab => self.tab(),
            KeyCode::Esc => self.escape().await,
            KeyCode::Up => self.up(),
            KeyCode::Down => self.down(),
            _ => self.edit(key),
        }
        Ok(Next::Continue)
    }

    #[expect(clippy::wildcard_enum_match_arm, reason = "most keys do nothing here")]
    async fn control_key(&mut self, code: KeyCode) -> Result<Next, ProjectError> {
        match code {
            KeyCode::Char('d') if self.composer.is_empty() => return Ok(Next::Quit),
            KeyCode::Char('d') => self.composer.remove(Motion::Right),
            KeyCode::Char('a') => self.composer.go(Motion::LineStart),
            KeyCode::Char('e') => self.composer.go(Motion::LineEnd),
            KeyCode::Char('b') => self.composer.go(Motion::Left),
            KeyCode::Char('f') => self.composer.go(Motion::Right),
            KeyCode::Char('u') => self.composer.remove(Motion::LineStart),
            KeyCode::Char('k') => self.composer.remove(Motion::LineEnd),
            KeyCode::Char('w') => self.composer.remove(Motion::WordLeft),
            KeyCode::Char('y') => self.composer.insert_removed(),
            KeyCode::Char('j') => drop(self.composer.insert("\n")),
            KeyCode::Char('p') => self.up(),
            KeyCode::Char('n') => self.down(),
            KeyCode::Left => self.composer.go(Motion::WordLeft),
            KeyCode::Right => self.composer.go(Motion::WordRight),
            KeyCode::Home => self.composer.go(Motion::Start),
            KeyCode::End => self.composer.go(Motion::End),
            KeyCode::Char('r') => self.search_history(),
            KeyCode::Char('t') => self.show_transcript().await?,
            KeyCode::Char('g') => self.edit_outside().await?,
            KeyCode::Char('l') => self.screen.resize(self.screen.size()),
            KeyCode::Char('z') => self.suspend()?,
            _ => {}
        }
        self.complete();
        Ok(Next::Continue)
    }

    /// Keys that change the text.
    #[expect(clippy::wildcard_enum_match_arm, reason = "most keys do nothing here")]
    fn edit(&mut self, key: KeyEvent) {
        let by_word = key.modifiers.contains(KeyModifiers::ALT);
        match key.code {
            KeyCode::Char('b') if by_word => self.composer.go(Motion::WordLeft),
            KeyCode::Char('f') if by_word => self.composer.go(Motion::WordRight),
            KeyCode::Char('d') if by_word => self.composer.remove(Motion::WordRight),
            KeyCode::Char(c) if !by_word => drop(self.composer.insert(c.encode_utf8(&mut [0; 4]))),
            KeyCode::Backspace if by_word => self.composer.remove(Motion::WordLeft),
            KeyCode::Backspace => self.composer.remove(Motion::Left),
            KeyCode::Delete => self.composer.remove(Motion::Right),
            KeyCode::Left => self.composer.go(Motion::Left),
            KeyCode::Right => self.composer.go(Motion::Right),
            KeyCode::Home => self.composer.go(Motion::LineStart),
            KeyCode::End => self.composer.go(Motion::LineEnd),
            _ => return,
        }
        self.complete();
    }

    /// Looks for completions of what is typed.
    fn complete(&mut self) {
        let (_, word) = self.composer.word_before_cursor();
        let files = match &mut self.files {
            Some(files) => files,
            none if word.starts_with('@') => none.insert(project_files(&self.options.root)),
            none => none.get_or_insert_default(),
        };
        self.completions = completions(&self.composer, files);
        if files.is_empty() {
            self.files = None;
        }
    }

    async fn enter(&mut self) -> Result<Next, ProjectError> {
        if self.composer.text().ends_with('\\')
            && self.composer.cursor() == self.composer.text().len()
        {
            self.composer.remove(Motion::Left);
            self.composer.insert("\n");
            return Ok(Next::Continue);
        }
        let typed = self.composer.text().trim_end().to_owned();
        if let Some(list) = self.completions.take() {
            let value = list.selected().value.clone();
            if value.trim_end() != typed && !typed.contains(' ') || value.starts_with('@') {
                self.accept(&value);
                if !value.starts_with('/') {
                    return Ok(Next::Continue);
                }
            }
        }
        let prompt = self.composer.take();
        if let Err(error) = self.history.add(&prompt) {
            self.note(&format!("the prompt is not in the history: {error}"));
        }
        self.history.reset();
        self.submit(prompt).await
    }

    async fn submit(&mut self, prompt: String) -> Result<Next, ProjectError> {
        if self.question.is_some() && !prompt.trim().is_empty() && !prompt.starts_with('/') {
            self.reply_typed(&prompt).await?;
            return Ok(Next::Continue);
        }
        if let Some(command) = prompt.strip_prefix('!') {
            self.shell_command(command.trim()).await?;
            return Ok(Next::Continue);
        }
        match crate::command::parse(&prompt) {
            Some(Ok((command, argument))) => return self.command(command, argument).await,
            Some(Err(name)) => self.error(&format!("there is no command /{name}: see /help")),
            None if prompt.trim().is_empty() && !self.is_suspended => {}
            None => self.send(prompt).await?,
        }
        Ok(Next::Continue)
    }

    fn accept(&mut self, value: &str) {
        let (start, _) = self.composer.word_before_cursor();
        self.composer.replace_back_to(start, value);
        self.completions = None;
    }

    /// Takes a completion, or queues the prompt while a task works.
    fn tab(&mut self) {
        if let Some(list) = self.completions.take() {
            let value = list.selected().value.clone();
            self.accept(&value);
        } else if self.is_working && !self.composer.text().trim().is_empty() {
            let prompt = self.composer.take();
            self.queue.push_back(prompt);
        }
    }

    async fn escape(&mut self) {
        if self.completions.take().is_none() {
            self.interrupt().await;
        }
    }

    fn up(&mut self) {
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

    fn down(&mut self) {
        if let Some(list) = &mut self.completions {
            return list.down();
        }
        let below = ComposerView::new(&self.composer, self.width()).vertical(true);
        if let Some(byte) = below {
            return self.composer.go_to(byte);
        }
        if let Some(prompt) = self.history.later() {
            let prompt = prompt.to_owned();
            self.composer.set(&prompt);
        }
    }

    fn search_history(&mut self) {
        let entries = self.history.found(self.composer.text()).into_iter().map(|prompt| Choice {
            label: antiphon_view::text::one_line(prompt),
            detail: String::new(),
            value: Picked::Prompt(prompt.to_owned()),
        });
        let entries: Vec<_> = entries.collect();
        self.list = ChoiceList::new("Earlier prompts: Enter takes one, Esc none", entries);
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
                let picked = list.selected().value.clone();
                self.list = None;
                self.pick(picked).await?;
            }
            KeyCode::Esc => self.list = None,
            _ => {}
        }
        Ok(Next::Continue)
    }
}

/// The answer to a question that a key gives.
#[expect(clippy::wildcard_enum_match_arm, reason = "most keys do nothing here")]
fn answer(key: KeyEvent) -> Option<Decision> {
    if key.modifiers.contains(KeyModifiers::CONTROL) {
        return None;
    }
    match key.code {
        KeyCode::Char('y') => Some(Decision::AllowOnce),
        KeyCode::Char('t') => Some(Decision::AllowTask),
        KeyCode::Char('a') => Some(Decision::AllowAlways),
        KeyCode::Char('n') => Some(Decision::Deny),
        _ => None,
    }
}
