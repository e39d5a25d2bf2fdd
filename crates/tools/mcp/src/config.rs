//! Which servers there are, as plain values. They start programs and send keys: only the user's own
//! configuration may hold them, never a project's.

mod table;

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use reqwest::Url;
use secrecy::{ExposeSecret, SecretString};
use serde::{Deserialize, Deserializer, Serialize, de};

use crate::globs::ToolGlobs;

/// Most servers in a configuration.
pub const SERVERS_MAX: usize = 64;

/// Longest name of a server, in bytes. The rest of a tool's 64 is for the tool.
pub const SERVER_NAME_BYTES_MAX: usize = 24;

/// Servers by name.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct McpConfig(pub BTreeMap<ServerName, ServerConfig>);

/// What a server is called: letters, digits, `-` and single `_` between them. It becomes a part of
/// its tools' names.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(transparent)]
pub struct ServerName(String);

/// One server.
#[derive(Debug, Clone)]
pub struct ServerConfig {
    /// How to reach it.
    pub launch: Launch,
    /// The tools to offer; empty means all.
    pub allow: ToolGlobs,
    /// The tools not to offer, whatever `allow` says.
    pub deny: ToolGlobs,
    /// The tools that change nothing, on the user's word.
    pub read_only: ToolGlobs,
    /// Believe what the server says of its own tools: which change nothing, which may be repeated.
    pub trusted: bool,
    /// How long a call may be silent.
    pub timeout: Duration,
    /// How long a call may take at most, however much progress it reports.
    pub timeout_max: Duration,
    /// How long the server may take to start and to list its tools.
    pub start_timeout: Duration,
}

/// How a server is reached.
#[derive(Debug, Clone)]
pub enum Launch {
    /// As a child process that speaks over its standard streams.
    Stdio(StdioConfig),
    /// At an address.
    Http(HttpConfig),
}

/// A server that is a program.
#[derive(Debug, Clone)]
pub struct StdioConfig {
    /// The program.
    pub command: String,
    /// Its arguments.
    pub args: Vec<String>,
    /// Variables it gets beside the few that everybody gets.
    pub env: BTreeMap<String, SecretString>,
    /// Names of variables it inherits from us beside these.
    pub inherit_env: Vec<String>,
    /// The folder it starts in; ours if absent.
    pub cwd: Option<PathBuf>,
}

/// A server at an address.
#[derive(Debug, Clone)]
pub struct HttpConfig {
    /// Where it is.
    pub url: Url,
    /// Headers of every request.
    pub headers: BTreeMap<String, SecretString>,
    /// The variable that holds the token it wants.
    pub bearer_token_env: Option<String>,
}

/// Why a text or a table does not describe servers.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ConfigError {
    /// Not a name.
    #[error(
        "`{found}` cannot name an MCP server: use 1 to {SERVER_NAME_BYTES_MAX} letters, digits, `-` and \
         single `_` between them"
    )]
    Name {
        /// The text.
        found: String,
    },
    /// Neither a program nor an address, or both.
    #[error("an MCP server has either a `command` or a `url`")]
    Launch,
    /// A field of the other kind of server.
    #[error("`{field}` does not belong to an MCP server with a `{kind}`")]
    Misplaced {
        /// The field.
        field: &'static str,
        /// What the server has.
        kind: &'static str,
    },
    /// Not an address, or one that keys must not go to.
    #[error("the `url` of an MCP server {reason}")]
    Url {
        /// What is wrong with it.
        reason: String,
    },
    /// Not a header, or one that is ours to set.
    #[error("the header `{name}` {reason}")]
    Header {
        /// The header.
        name: String,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// Not a variable.
    #[error("`{name}` cannot name a variable of the environment")]
    Variable {
        /// The text.
        name: String,
    },
    /// Zero, or longer than a day, or out of order.
    #[error("`{field}` {reason}")]
    Seconds {
        /// The field.
        field: &'static str,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// More than [`SERVERS_MAX`].
    #[error("{found} MCP servers are configured, at most {SERVERS_MAX} can be")]
    TooMany {
        /// How many.
        found: usize,
    },
}

impl ServerName {
    /// The name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for ServerName {
    type Err = ConfigError;

    fn from_str(text: &str) -> Result<Self, ConfigError> {
        let plain = |b: u8| b.is_ascii_alphanumeric() || b == b'-' || b == b'_';
        // `__` separates a server from its tool: with it in a name, two could claim one tool.
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

/// Secrets are compared by what they are: this serves tests and change detection.
impl PartialEq for ServerConfig {
    fn eq(&self, other: &Self) -> bool {
        self.identity(Secrets::Compared) == other.identity(Secrets::Compared)
            && (self.read_only == other.read_only && self.trusted == other.trusted)
            && (self.timeout, self.timeout_max, self.start_timeout)
                == (other.timeout, other.timeout_max, other.start_timeout)
    }
}

/// Whether the values of variables and headers are a part of an identity.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Secrets {
    Compared,
    LeftOut,
}

impl ServerConfig {
    /// What decides which tools the server offers, as one text. Without secrets it may be hashed
    /// and written down.
    pub(crate) fn identity(&self, secrets: Secrets) -> String {
        let shown = |values: &BTreeMap<String, SecretString>| -> Vec<String> {
            let show = |(name, value): (&String, &SecretString)| match secrets {
                Secrets::Compared => format!("{name}={}", value.expose_secret()),
                Secrets::LeftOut => name.clone(),
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
