//! The arguments of the shell tools. Their JSON Schemas are sent to the model.

use std::path::{Path, PathBuf};
use std::time::Duration;

use antiphon_core::{RawJson, ToolError};
use antiphon_hosts::{HostRule, requested_hosts};
use antiphon_toolbox::arguments as parse;
use schemars::JsonSchema;
use serde::Deserialize;

/// Longest command, in bytes. The kernel takes no argument beyond 131,071.
pub(crate) const COMMAND_BYTES_MAX: usize = 100_000;

/// How long a command runs before it continues in the background, in seconds.
pub(crate) const TIMEOUT_S: u64 = 120;

/// Longest `timeout_s` and `wait_s`, in seconds.
pub(crate) const TIMEOUT_S_MAX: u64 = 600;

/// Arguments of `bash`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Bash {
    pub(crate) command: String,
    /// Default: 120.
    #[schemars(range(min = 1, max = 600))]
    pub(crate) timeout_s: Option<u64>,
    /// Go on in the background at once: for servers.
    pub(crate) background: Option<bool>,
    /// Folder to run in, below the working folder.
    pub(crate) workdir: Option<String>,
    /// Ask the user to run this without the sandbox, with network and all files. Only if the sandbox refused
    /// something that the task needs.
    pub(crate) without_sandbox: Option<bool>,
    /// Hosts to ask the user for, such as `example.com` or `localhost:8081`.
    #[schemars(length(max = 16))]
    pub(crate) hosts: Option<Vec<String>>,
    /// Its purpose in a few words, for people.
    #[serde(rename = "description")]
    #[schemars(rename = "description")]
    pub(crate) _description: Option<String>,
}

/// Arguments of `bash_output`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct BashOutput {
    /// The id that `bash` returned.
    pub(crate) id: String,
    /// Seconds to wait for the end of the command. Default: 0. At most 600.
    #[schemars(range(min = 0, max = 600))]
    pub(crate) wait_s: Option<u64>,
}

/// Arguments of `bash_kill`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct BashKill {
    /// The id that `bash` returned.
    pub(crate) id: String,
}

impl Bash {
    pub(crate) const NAME: &str = "bash";

    pub(crate) fn parse(arguments: &RawJson) -> Result<Self, ToolError> {
        let parsed: Self = parse(Self::NAME, arguments)?;
        let refused = |reason: &str| Err(invalid(Self::NAME, reason.to_owned()));
        if parsed.command.trim().is_empty() {
            return refused("`command` is empty");
        }
        if parsed.command.len() > COMMAND_BYTES_MAX {
            return refused(
                "`command` is longer than 100,000 bytes: write it to a file and run that",
            );
        }
        if parsed.command.contains('\0') {
            return refused("`command` contains a NUL character, which no command may have");
        }
        if !parsed.timeout_s.is_none_or(|seconds| (1..=TIMEOUT_S_MAX).contains(&seconds)) {
            return refused(
                "`timeout_s` must be from 1 to 600; a longer command continues in the background",
            );
        }
        Ok(parsed)
    }

    pub(crate) fn is_background(&self) -> bool {
        self.background.unwrap_or(false)
    }

    pub(crate) fn is_without_sandbox(&self) -> bool {
        self.without_sandbox.unwrap_or(false)
    }

    pub(crate) fn timeout(&self) -> Duration {
        Duration::from_secs(self.timeout_s.unwrap_or(TIMEOUT_S))
    }

    /// The hosts that the call asks for.
    pub(crate) fn hosts(&self) -> Result<Vec<HostRule>, ToolError> {
        requested_hosts(self.hosts.iter().flatten().map(String::as_str))
            .map_err(|error| invalid(Self::NAME, format!("`hosts`: {error}")))
    }

    /// The folder to run in, which must be within one of `roots`.
    pub(crate) fn workdir(&self, roots: &[PathBuf]) -> Result<PathBuf, ToolError> {
        let refused = |reason: String| invalid(Self::NAME, format!("`workdir` {reason}"));
        let first = roots.first().map_or(Path::new("/"), PathBuf::as_path);
        let path = self.workdir.as_deref().unwrap_or("");
        if path.contains('\0') {
            return Err(refused("contains a NUL character".to_owned()));
        }
        let folder = first.join(path).canonicalize();
        let folder = folder.map_err(|error| refused(format!("`{path}`: {error}")))?;
        if !roots.iter().any(|root| folder.starts_with(root)) {
            let first = first.display();
            return Err(refused(format!("`{path}` is not within the workspace `{first}`")));
        }
        if !folder.is_dir() {
            return Err(refused(format!("`{path}` is not a folder")));
        }
        Ok(folder)
    }
}

impl BashOutput {
    pub(crate) const NAME: &str = "bash_output";

    pub(crate) fn parse(arguments: &RawJson) -> Result<Self, ToolError> {
        let parsed: Self = parse(Self::NAME, arguments)?;
        if parsed.wait_s.is_some_and(|seconds| seconds > TIMEOUT_S_MAX) {
            return Err(invalid(Self::NAME, "`wait_s` must be 600 at most".to_owned()));
        }
        Ok(parsed)
    }

    pub(crate) fn wait(&self) -> Duration {
        Duration::from_secs(self.wait_s.unwrap_or(0))
    }
}

impl BashKill {
    pub(crate) const NAME: &str = "bash_kill";

    pub(crate) fn parse(arguments: &RawJson) -> Result<Self, ToolError> {
        parse(Self::NAME, arguments)
    }
}

fn invalid(tool: &str, reason: String) -> ToolError {
    ToolError::InvalidArguments { tool: tool.to_owned(), reason }
}
