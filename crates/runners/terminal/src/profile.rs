//! Profiles: which program runs in a terminal, and how messages are typed into it. They come from
//! the user's trusted settings; an invalid one is refused with its name and the reason.

use std::collections::BTreeMap;
use std::time::Duration;

use regex::Regex;
use serde::{Deserialize, Serialize};

/// The built-in profile of Claude Code.
pub const CLAUDE_CODE: &str = "claude-code";

/// The built-in profile of Codex.
pub const CODEX: &str = "codex";

/// The built-in profile of an interactive shell.
pub const BASH: &str = "bash";

/// Default of `submit`: the return key.
pub const SUBMIT_DEFAULT: &str = "\r";

/// Default of `quiet_ms`.
pub const QUIET_MS_DEFAULT: u64 = 500;

/// Largest `quiet_ms`: a minute.
const QUIET_MS_MAX: u64 = 60_000;

/// Largest number of restarts.
pub const RESTARTS_MAX: u32 = 100;

/// Default of `ready_lines`.
pub const READY_LINES_DEFAULT: u16 = 1;

/// Largest `ready_lines`.
const READY_LINES_MAX: u16 = 24;

/// Longest pattern, in bytes.
const PATTERN_BYTES_MAX: usize = 1000;

/// Most words of a command, and of `context_args`.
const WORDS_MAX: usize = 256;

/// A list of numbered choices with a cursor: a dialog.
const CHOICES: &str = r"(?m)^[│\s]*[>❯›▌]\s*\d+[.)]\s";

/// The program of a terminal, and how messages are typed into it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TerminalProfile {
    /// The program and its arguments. A name without a slash is searched in `PATH`.
    pub command: Vec<String>,
    /// Arguments that pass the agent's context: in them `{text}` is the context, `{quoted}` the
    /// context as a JSON string, and `{file}` the path of a file that contains it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub context_args: Vec<String>,
    /// A file in the working folder from which the program reads its context, for programs that
    /// know no other way. Created if it does not exist, and removed at the end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context_file: Option<String>,
    /// Additional environment variables.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub env: BTreeMap<String, String>,
    /// Keys that submit a message.
    #[serde(default = "submit")]
    pub submit: String,
    /// What to do when the program fails.
    #[serde(default)]
    pub restart: Restart,
    /// Pattern of the prompt at which the program waits for input. Without it nothing is typed by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ready: Option<String>,
    /// Number of lines, up to the one of the cursor, that `ready` and `busy` describe. With 1, `ready`
    /// describes the line up to the cursor, and nothing may be typed behind it.
    #[serde(default = "ready_lines")]
    pub ready_lines: u16,
    /// Pattern of what the program shows when it does not wait for input although `ready` matches: a dialog,
    /// a progress indicator.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub busy: Option<String>,
    /// How long the screen must be still before a message is typed, in milliseconds.
    #[serde(default = "quiet_ms")]
    pub quiet_ms: u64,
}

/// What to do when a program fails: exits with another code than 0, is killed by a signal, or is
/// interrupted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Restart {
    /// The task fails.
    #[default]
    Never,
    /// The program is started again.
    OnFailure {
        /// Most restarts.
        max: u32,
    },
}

impl TerminalProfile {
    /// Profiles of known programs. None is used unless the user enables it.
    pub fn built_in() -> BTreeMap<String, Self> {
        let claude = Self {
            context_args: vec!["--append-system-prompt".to_owned(), "{text}".to_owned()],
            quiet_ms: 1500,
            // Its input is a line of its own near the bottom, empty or with a suggestion.
            ready: Some(r#"(?m)^[│\s]*[>❯][│\s\u{a0}]*(Try "[^\n]*)?$"#.to_owned()),
            ready_lines: 8,
            busy: Some(format!("{CHOICES}|(?i)esc to (interrupt|cancel)")),
            ..Self::of("claude")
        };
        let codex = Self {
            context_args: vec!["-c".to_owned(), "developer_instructions={quoted}".to_owned()],
            quiet_ms: 1500,
            // The cursor is in its input, which is empty or has a dimmed suggestion.
            ready: Some(r"^\s*[›▌>] ?$".to_owned()),
            busy: Some(format!("{CHOICES}|(?i)esc to (interrupt|cancel)")),
            ..Self::of("codex")
        };
        let bash = Self { ready: Some(r"[$#] $".to_owned()), ..Self::of("bash") };
        let profiles = [(CLAUDE_CODE, claude), (CODEX, codex), (BASH, bash)];
        profiles.into_iter().map(|(name, profile)| (name.to_owned(), profile)).collect()
    }

    /// A program that gets no context, and whose prompt is not known.
    pub fn of(program: &str) -> Self {
        Self {
            command: vec![program.to_owned()],
            context_args: Vec::new(),
            context_file: None,
            env: BTreeMap::new(),
            submit: submit(),
            restart: Restart::Never,
            ready: None,
            ready_lines: READY_LINES_DEFAULT,
            busy: None,
            quiet_ms: QUIET_MS_DEFAULT,
        }
    }

    /// Validates the profile. The error says what is wrong.
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
        self.check_patterns()?;
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

    fn check_patterns(&self) -> Result<(), String> {
        for (field, pattern) in [("ready", &self.ready), ("busy", &self.busy)] {
            let Some(pattern) = pattern else { continue };
            if pattern.len() > PATTERN_BYTES_MAX {
                return Err(format!("`{field}` may have {PATTERN_BYTES_MAX} bytes at most"));
            }
            let pattern = Regex::new(pattern)
                .map_err(|error| format!("`{field}` is no regular expression: {error}"))?;
            if pattern.is_match("") {
                return Err(format!(
                    "`{field}` matches an empty line, so it would match every screen: describe the prompt"
                ));
            }
        }
        if !(1..=READY_LINES_MAX).contains(&self.ready_lines) {
            return Err(format!("`ready_lines` must be 1 to {READY_LINES_MAX}"));
        }
        Ok(())
    }

    pub(crate) fn quiet(&self) -> Duration {
        Duration::from_millis(self.quiet_ms)
    }
}

impl Restart {
    /// Whether this attempt, counted from 1, is allowed.
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

fn ready_lines() -> u16 {
    READY_LINES_DEFAULT
}

fn quiet_ms() -> u64 {
    QUIET_MS_DEFAULT
}
