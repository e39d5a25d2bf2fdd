//! Profiles: which program runs in a terminal, and how it is talked to. They come from the user's
//! trusted settings; one that makes no sense is refused with its name and the reason.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// The built-in profile of Claude Code.
pub const CLAUDE_CODE: &str = "claude-code";

/// The built-in profile of Codex.
pub const CODEX: &str = "codex";

/// The built-in profile of an interactive shell.
pub const BASH: &str = "bash";

/// What ends a message unless told otherwise: the return key.
pub const SUBMIT_DEFAULT: &str = "\r";

/// How long the screen is still before a message is typed in, unless told otherwise.
pub const QUIET_MS_DEFAULT: u64 = 500;

/// The longest that can be asked for: a minute.
const QUIET_MS_MAX: u64 = 60_000;

/// How often a program can be begun again, at most.
pub const RESTARTS_MAX: u32 = 100;

/// Words of a command, and words that pass the context on, at most.
const WORDS_MAX: usize = 256;

/// Which program runs, and how it is talked to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TerminalProfile {
    /// The program and its arguments. A name without a slash is looked for in `PATH`.
    pub command: Vec<String>,
    /// How the agent's context is passed on the command line: further arguments, in which `{text}`
    /// is the context, `{quoted}` the same as a JSON string, and `{file}` a file that holds it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub context_args: Vec<String>,
    /// The file in the working folder in which the program looks for its context, for programs that
    /// know no other way. It is made if nobody has one, and taken away in the end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context_file: Option<String>,
    /// Further variables of its environment.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub env: BTreeMap<String, String>,
    /// What ends a message.
    #[serde(default = "submit")]
    pub submit: String,
    /// What to do when it fails.
    #[serde(default)]
    pub restart: Restart,
    /// How long the screen must be still before a message is typed in.
    #[serde(default = "quiet_ms")]
    pub quiet_ms: u64,
}

/// What to do when a program fails: ends with another code than 0, or by a signal, or is cut off.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Restart {
    /// The task has failed.
    #[default]
    Never,
    /// It is begun again.
    OnFailure {
        /// As often as this.
        max: u32,
    },
}

impl TerminalProfile {
    /// Profiles of programs that are known. None is used unless the user says so.
    pub fn built_in() -> BTreeMap<String, Self> {
        let claude = Self {
            context_args: vec!["--append-system-prompt".to_owned(), "{text}".to_owned()],
            quiet_ms: 1500,
            ..Self::of("claude")
        };
        let codex = Self {
            context_args: vec!["-c".to_owned(), "developer_instructions={quoted}".to_owned()],
            quiet_ms: 1500,
            ..Self::of("codex")
        };
        let profiles = [(CLAUDE_CODE, claude), (CODEX, codex), (BASH, Self::of("bash"))];
        profiles.into_iter().map(|(name, profile)| (name.to_owned(), profile)).collect()
    }

    /// A program that is told nothing about its context.
    pub fn of(program: &str) -> Self {
        Self {
            command: vec![program.to_owned()],
            context_args: Vec::new(),
            context_file: None,
            env: BTreeMap::new(),
            submit: submit(),
            restart: Restart::Never,
            quiet_ms: QUIET_MS_DEFAULT,
        }
    }

    /// What is wrong with it.
    pub(crate) fn check(&self) -> Result<(), String> {
        if self.command.first().is_none_or(|program| program.trim().is_empty()) {
            return Err("`command` is empty".to_owned());
        }
        if self.command.len() > WORDS_MAX || self.context_args.len() > WORDS_MAX {
            return Err(format!("more than {WORDS_MAX} arguments"));
        }
        let mut words = self.command.iter().chain(&self.context_args);
        if words.any(|word| word.contains('\0')) {
            return Err("an argument contains a NUL character".to_owned());
        }
        if let Some(name) = &self.context_file
            && (name.is_empty()
                || name.starts_with('.') && name.trim_matches('.').is_empty()
                || name.contains(['/', '\0']))
        {
            return Err(format!("`context_file` must be the name of a file, not `{name}`"));
        }
        let is_name = |name: &str| !name.is_empty() && !name.contains(['=', '\0']);
        if self.env.iter().any(|(name, value)| !is_name(name) || value.contains('\0')) {
            return Err("`env` holds what is no variable".to_owned());
        }
        if self.quiet_ms > QUIET_MS_MAX {
            return Err(format!("`quiet_ms` may be {QUIET_MS_MAX} at most"));
        }
        match self.restart {
            Restart::OnFailure { max } if max > RESTARTS_MAX => {
                Err(format!("`restart.on_failure.max` may be {RESTARTS_MAX} at most"))
            }
            Restart::OnFailure { .. } | Restart::Never => Ok(()),
        }
    }

    pub(crate) fn quiet(&self) -> Duration {
        Duration::from_millis(self.quiet_ms)
    }
}

impl Restart {
    /// Whether this attempt, counted from 1, may be made.
    pub(crate) fn allows(self, attempt: u32) -> bool {
        match self {
            Self::Never => attempt <= 1,
            Self::OnFailure { max } => attempt <= max.saturating_add(1),
        }
    }
}

fn submit() -> String {
    SUBMIT_DEFAULT.to_owned()
}

fn quiet_ms() -> u64 {
    QUIET_MS_DEFAULT
}
