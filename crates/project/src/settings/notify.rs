//! How the user is told that an agent needs an answer or is done: `[notify]`. A project cannot set it: it starts a program
//! and sends to an address.

use std::path::Path;

use serde::Deserialize;

use crate::error::ProjectError;

/// Seconds that a task has to take, so that its end is told.
const AFTER_S: u64 = 10;

/// Most words of the command.
const WORDS_MAX: usize = 64;

/// The ways in which the user is told. Without one, nothing is.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct NotifyConfig {
    /// What is told.
    pub when: Vec<NotifyWhen>,
    /// The end of a task that took less is not told.
    pub after_s: u64,
    /// `notify-send` shows it on the desktop.
    pub desktop: bool,
    /// A program and its arguments.
    pub command: Vec<String>,
    /// Address that gets it with POST, as ntfy takes it.
    pub url: Option<String>,
    /// Environment variable that holds the token for the address.
    pub token_env: Option<String>,
    /// How a terminal notifies, if the user says so.
    pub terminal: Option<TerminalNotice>,
}

impl Default for NotifyConfig {
    fn default() -> Self {
        Self {
            when: vec![NotifyWhen::Question, NotifyWhen::Done],
            after_s: AFTER_S,
            desktop: false,
            command: Vec::new(),
            url: None,
            token_env: None,
            terminal: None,
        }
    }
}

/// What is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum NotifyWhen {
    /// An agent waits for an answer of a person.
    Question,
    /// A task without a parent has ended.
    Done,
}

/// How a terminal notifies the user.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TerminalNotice {
    /// As fits the terminal.
    Auto,
    /// With the sequence OSC 9, which shows a text in iTerm2, Windows Terminal, kitty and others.
    Osc9,
    /// With the sequence OSC 777, which shows a title and a text in urxvt, foot, Ghostty and others.
    Osc777,
    /// With the bell.
    Bell,
    /// Not at all.
    Off,
}

impl NotifyConfig {
    /// Whether anything beside a terminal is told.
    pub fn is_on(&self) -> bool {
        self.desktop || !self.command.is_empty() || self.url.is_some()
    }

    /// How the terminal program notifies. It knows whether the terminal has the focus, and does so unless it is told not to.
    pub fn in_program(&self) -> TerminalNotice {
        self.terminal.unwrap_or(TerminalNotice::Auto)
    }

    /// How `antiphon run` notifies. It does not know whether the terminal has the focus, and does so only if it is told to.
    pub fn in_run(&self) -> TerminalNotice {
        self.terminal.unwrap_or(TerminalNotice::Off)
    }

    /// Refuses what could not be started or reached.
    pub(super) fn checked(self, file: &Path) -> Result<Self, ProjectError> {
        let refuse = |field: &str, reason: &str| {
            let file = file.display();
            ProjectError::InvalidInput(format!("{file}: `notify.{field}`: {reason}"))
        };
        let is_address = |url: &String| {
            ["http://", "https://"].iter().any(|scheme| url.starts_with(scheme))
                && !url.contains(|c: char| c.is_whitespace() || c.is_control())
        };
        if self.command.len() > WORDS_MAX {
            return Err(refuse("command", &format!("it has more than {WORDS_MAX} words")));
        }
        if self.command.first().is_some_and(|program| program.trim().is_empty()) {
            return Err(refuse(
                "command",
                "the program is empty: name it first, then its arguments",
            ));
        }
        if self.url.as_ref().is_some_and(|url| !is_address(url)) {
            return Err(refuse("url", "it must begin with http:// or https://"));
        }
        if self.token_env.is_some() && self.url.is_none() {
            return Err(refuse("token_env", "it goes with `notify.url`, which is not set"));
        }
        Ok(self)
    }
}
