//! Programs that get the terminal for a while: the user's editor, pager and shell. And suspending this one.

use std::io::{self, Write as _};
use std::path::Path;
use std::process::{ExitStatus, Stdio};

use antiphon_project::error::ProjectError;
use crossterm::event::EventStream;
use tokio::process::Command;

use super::signals::{Signals, stop_this_process};
use super::{Program, unusable};
use crate::composer::PROMPT_BYTES_MAX;
use crate::inline_screen::Size;
use crate::terminal_mode::{self, TerminalMode};

impl Program<'_, '_> {
    /// Runs a command of the user with the terminal. Its output stays in the scrollback.
    pub(super) async fn shell_command(&mut self, command: &str) -> Result<(), ProjectError> {
        if command.is_empty() {
            self.note("type a shell command behind the !");
            return Ok(());
        }
        self.show_prompt(&format!("!{command}"));
        let shell = self.options.shell.clone();
        self.outside(&shell, &["-c", command]).await
    }

    /// Runs another command of this program with the terminal.
    pub(super) async fn own_command(&mut self, arguments: &[&str]) -> Result<(), ProjectError> {
        self.show_prompt(&format!("antiphon {}", arguments.join(" ")));
        let program = self.options.program.clone();
        self.outside(&program, arguments).await
    }

    /// Lets the user write the prompt in an editor.
    pub(super) async fn edit_outside(&mut self) -> Result<(), ProjectError> {
        let file = tempfile::Builder::new().suffix(".md").tempfile().map_err(unusable)?;
        let text = self.composer.take();
        file.as_file().write_all(text.as_bytes()).map_err(unusable)?;
        let editor = format!("{} \"$1\"", self.options.editor);
        let path = file.path().to_string_lossy().into_owned();
        self.outside("/bin/sh", &["-c", &editor, "sh", &path]).await?;
        match read_back(file.path()) {
            Ok(edited) => self.composer.set(edited.trim_end()),
            Err(reason) => {
                self.composer.set(&text);
                self.error(&reason);
            }
        }
        Ok(())
    }

    pub(super) async fn outside(
        &mut self,
        program: &str,
        arguments: &[&str],
    ) -> Result<(), ProjectError> {
        self.draw()?;
        self.screen.clear().map_err(unusable)?;
        // It reads the terminal no longer.
        self.keys = None;
        let mode = TerminalMode::leave();
        let mut command = Command::new(program);
        command.args(arguments).current_dir(&self.options.root);
        command.stdin(Stdio::inherit()).stdout(Stdio::inherit()).stderr(Stdio::inherit());
        let status = self.wait_for(&mut command).await;
        mode.map_err(unusable)?;
        self.return_to_terminal()?;
        match status {
            Ok(status) if status.success() => {}
            Ok(status) => self.note(&format!("  {program}: {status}")),
            Err(error) => self.error(&format!("{program} cannot be started: {error}")),
        }
        Ok(())
    }

    /// Waits for a program that has the terminal. Ctrl-C there is for that program, and Ctrl-Z suspends both.
    async fn wait_for(&mut self, command: &mut Command) -> io::Result<ExitStatus> {
        let mut child = command.spawn()?;
        loop {
            tokio::select! {
                status = child.wait() => return status,
                () = suspended_outside(&mut self.signals) => stop_this_process()?,
            }
        }
    }

    /// Stops this program until the shell continues it.
    pub(super) fn suspend(&mut self) -> Result<(), ProjectError> {
        self.screen.clear().map_err(unusable)?;
        terminal_mode::set_alternate(false);
        self.keys = None;
        TerminalMode::leave().map_err(unusable)?;
        stop_this_process().map_err(unusable)?;
        self.return_to_terminal()
    }

    /// The program goes on after it was stopped by a signal that it cannot catch.
    pub(super) fn continued(&mut self) -> Result<(), ProjectError> {
        if terminal_mode::is_kept() {
            self.screen.redraw();
            self.is_dirty = true;
            return Ok(());
        }
        // The shell has written below the rows of this program.
        self.screen.forget();
        self.keys = None;
        TerminalMode::leave().map_err(unusable)?;
        self.return_to_terminal()
    }

    fn return_to_terminal(&mut self) -> Result<(), ProjectError> {
        TerminalMode::enter_again().map_err(unusable)?;
        self.keys = Some(EventStream::new());
        if let Some(signals) = &mut self.signals {
            signals.settle();
        }
        self.screen.resize(Size::of(crossterm::terminal::size().unwrap_or((0, 0))));
        self.is_dirty = true;
        Ok(())
    }
}

async fn suspended_outside(signals: &mut Option<Signals>) {
    match signals {
        Some(signals) => signals.suspended_outside().await,
        None => std::future::pending().await,
    }
}

/// What the user wrote.
pub(super) fn read_back(path: &Path) -> Result<String, String> {
    let text =
        std::fs::read(path).map_err(|error| format!("the prompt cannot be read: {error}"))?;
    if text.len() > PROMPT_BYTES_MAX {
        return Err("the prompt is too long: save it to a file and name that with @".to_owned());
    }
    String::from_utf8(text).map_err(|_| "the prompt is no UTF-8 text".to_owned())
}
