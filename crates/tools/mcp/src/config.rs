//! Configuration of servers. Servers start programs and send keys: the user's own configuration defines them, or
//! a project's that the user trusts, which may not name variables of the user's environment.
//!
//! | file    | subject                               |
//! |---------|---------------------------------------|
//! | `table` | a server as it is written in the file |
//! | `globs` | patterns for the names of tools       |

pub(crate) mod globs;
mod table;

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use reqwest::Url;
use secrecy::{ExposeSecret, SecretString};
use serde::{Deserialize, Deserializer, Serialize, de};

use crate::config::globs::ToolGlobs;
use crate::server::process::INHERITED_VARIABLES;

/// Most servers in a configuration.
pub const SERVERS_MAX: usize = 64;

/// Longest name of a server, in bytes. The rest of a tool name's 64 bytes is for the tool.
pub const SERVER_NAME_BYTES_MAX: usize = 24;

/// Configured servers by name.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct McpConfig(pub BTreeMap<ServerName, ServerConfig>);

impl McpConfig {
    /// Whether a server gets the value of this variable of its user's environment.
    pub fn uses_variable(&self, name: &str) -> bool {
        let uses = |server: &ServerConfig| match &server.launch {
            Launch::Stdio(stdio) => {
                INHERITED_VARIABLES.contains(&name)
                    || stdio.inherit_env.iter().any(|inherited| inherited == name)
            }
            Launch::Http(http) => http.bearer_token_env.as_deref() == Some(name),
        };
        self.0.values().any(uses)
    }
}

/// Name of a server: letters, digits, `-` and single `_` between them. It is part of the names of
/// its tools.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(transparent)]
pub struct ServerName(String);

/// Configuration of one server.
#[derive(Debug, Clone)]
pub struct ServerConfig {
    /// How to start or reach the server.
    pub launch: Launch,
    /// Tools to use; empty means all.
    pub allow: ToolGlobs,
    /// Tools not to use; overrides `allow`.
    pub deny: ToolGlobs,
    /// Tools that the user declares free of effects.
    pub read_only: ToolGlobs,
    /// Trust the effects that the server declares: read-only and idempotent tools.
    pub trusted: bool,
    /// Time limit of a call between progress messages.
    pub timeout: Duration,
    /// Time limit of a call, even if it reports progress.
    pub timeout_max: Duration,
    /// Time limit for starting the server and listing its tools.
    pub start_timeout: Duration,
}

/// How a server is reached.
#[derive(Debug, Clone)]
pub enum Launch {
    /// A child process, over its standard streams.
    Stdio(StdioConfig),
    /// An HTTP server.
    Http(HttpConfig),
}

/// A server that runs as a child process.
#[derive(Debug, Clone)]
pub struct StdioConfig {
    /// Program to start, by path or by name on `PATH`.
    pub command: String,
    /// Arguments of the program.
    pub args: Vec<String>,
    /// Variables to set, in addition to the inherited ones.
    pub env: BTreeMap<String, SecretString>,
    /// Names of further variables to inherit from this process.
    pub inherit_env: Vec<String>,
    /// Working folder; that of this process if absent.
    pub cwd: Option<PathBuf>,
}

/// A server that is reached over HTTP.
#[derive(Debug, Clone)]
pub struct HttpConfig {
    /// Address of the server.
    pub url: Url,
    /// Headers to send with every request.
    pub headers: BTreeMap<String, SecretString>,
    /// Variable that holds the bearer token.
    pub bearer_token_env: Option<String>,
    /// How `antiphon mcp login` logs in.
    pub oauth: OAuthConfig,
}

/// How a user logs in to a server.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct OAuthConfig {
    /// Id of this client at the authorization server, which does not register clients itself.
    pub client_id: Option<String>,
    /// Scopes to ask for; those that the server names when empty.
    pub scopes: Vec<String>,
}

/// Why a configuration of servers is invalid.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ConfigError {
    /// Invalid name of a server.
    #[error(
        "`{found}` cannot name an MCP server: use 1 to {SERVER_NAME_BYTES_MAX} letters, digits, `-` and \
         single `_` between them"
    )]
    Name {
        /// The invalid name.
        found: String,
    },
    /// Neither `command` nor `url`, or both.
    #[error("an MCP server has either a `command` or a `url`")]
    Launch,
    /// The field belongs to the other kind of server.
    #[error("`{field}` does not belong to an MCP server with a `{kind}`")]
    Misplaced {
        /// Name of the misplaced field.
        field: &'static str,
        /// `command` or `url`, whichever the server has.
        kind: &'static str,
    },
    /// Invalid URL, or one that keys must not be sent to.
    #[error("the `url` of an MCP server {reason}")]
    Url {
        /// What is wrong with the URL.
        reason: String,
    },
    /// Invalid header, or one that Antiphon sets.
    #[error("the header `{name}` {reason}")]
    Header {
        /// Name of the header.
        name: String,
        /// What is wrong with the header.
        reason: &'static str,
    },
    /// Invalid name of a variable.
    #[error("`{name}` cannot name a variable of the environment")]
    Variable {
        /// The invalid name.
        name: String,
    },
    /// A time limit of zero, longer than a day, or less than another limit.
    #[error("`{field}` {reason}")]
    Seconds {
        /// Name of the field.
        field: &'static str,
        /// What is wrong with the value.
        reason: &'static str,
    },
    /// More than [`SERVERS_MAX`] servers.
    #[error("{found} MCP servers are configured, at most {SERVERS_MAX} can be")]
    TooMany {
        /// Number of configured servers.
        found: usize,
    },
}

impl ServerName {
    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for ServerName {
    type Err = ConfigError;

    fn from_str(text: &str) -> Result<Self, ConfigError> {
        let plain = |b: u8| b.is_ascii_alphanumeric() || b == b'-' || b == b'_';
        // `__` separates server and tool: inside a name it would make tool names ambiguous.
        let good = (1..=SERVER_NAME_BYTES_MAX).contains(&text.len())
            && text.bytes().all(plain)
            && !text.contains("__")
            && !text.starts_with('_')
            && !text.ends_with('_');
        if good { Ok(Self(text.to_owned())) } else { Err(ConfigError::Name { found: text.into() }) }
    }
}

impl fmt::Display for ServerName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for ServerName {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(de::Error::custom)
    }
}

impl<'de> Deserialize<'de> for McpConfig {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let servers = BTreeMap::<ServerName, ServerConfig>::deserialize(deserializer)?;
        if servers.len() > SERVERS_MAX {
            return Err(de::Error::custom(ConfigError::TooMany { found: servers.len() }));
        }
        Ok(Self(servers))
    }
}

impl<'de> Deserialize<'de> for ServerConfig {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        table::Table::deserialize(deserializer)?.try_into().map_err(de::Error::custom)
    }
}

/// Compares secrets by value, for tests and change detection.
impl PartialEq for ServerConfig {
    fn eq(&self, other: &Self) -> bool {
        self.identity(Secrets::Included) == other.identity(Secrets::Included)
            && (self.read_only == other.read_only && self.trusted == other.trusted)
            && (self.timeout, self.timeout_max, self.start_timeout)
                == (other.timeout, other.timeout_max, other.start_timeout)
    }
}

/// Whether the identity includes the values of variables and headers.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Secrets {
    Included,
    Excluded,
}

impl ServerConfig {
    /// The settings that determine which tools the server offers, as one text. Without secrets it
    /// may be hashed and stored.
    pub(crate) fn identity(&self, secrets: Secrets) -> String {
        let shown = |values: &BTreeMap<String, SecretString>| -> Vec<String> {
            let show = |(name, value): (&String, &SecretString)| match secrets {
                Secrets::Included => format!("{name}={}", value.expose_secret()),
                Secrets::Excluded => name.clone(),
            };
            values.iter().map(show).collect()
        };
        let tools = (self.allow.patterns(), self.deny.patterns());
        match &self.launch {
            Launch::Stdio(stdio) => format!(
                "{:?}",
                (
                    "stdio",
                    &stdio.command,
                    &stdio.args,
                    shown(&stdio.env),
                    &stdio.inherit_env,
                    &stdio.cwd,
                    tools
                )
            ),
            Launch::Http(http) => format!(
                "{:?}",
                ("http", http.url.as_str(), shown(&http.headers), &http.bearer_token_env, tools)
            ),
        }
    }
}
