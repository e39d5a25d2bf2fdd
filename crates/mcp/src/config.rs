//! Which servers there are, as plain values. They start programs and send keys: only the user's own
//! configuration may hold them, never a project's.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use reqwest::Url;
use reqwest::header::{HeaderName, HeaderValue};
use secrecy::{ExposeSecret, SecretString};
use serde::{Deserialize, Deserializer, Serialize, de};

use crate::globs::ToolGlobs;

/// Most servers in a configuration.
pub const SERVERS_MAX: usize = 64;

/// Longest name of a server, in bytes. The rest of a tool's 64 is for the tool.
pub const SERVER_NAME_BYTES_MAX: usize = 24;

/// Longest time a call or a start may be given, in seconds: a day.
const SECONDS_MAX: u64 = 24 * 60 * 60;

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
        Table::deserialize(deserializer)?.try_into().map_err(de::Error::custom)
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

/// A server as it is written down.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Table {
    command: Option<String>,
    args: Option<Vec<String>>,
    env: Option<BTreeMap<String, SecretString>>,
    inherit_env: Option<Vec<String>>,
    cwd: Option<PathBuf>,
    url: Option<String>,
    headers: Option<BTreeMap<String, SecretString>>,
    bearer_token_env: Option<String>,
    #[serde(default)]
    allow: ToolGlobs,
    #[serde(default)]
    deny: ToolGlobs,
    #[serde(default)]
    read_only: ToolGlobs,
    #[serde(default)]
    trusted: bool,
    #[serde(default = "default_timeout_s")]
    timeout_s: u64,
    timeout_max_s: Option<u64>,
    #[serde(default = "default_start_timeout_s")]
    start_timeout_s: u64,
}

fn default_timeout_s() -> u64 {
    60
}

fn default_start_timeout_s() -> u64 {
    20
}

/// How many times over a call that reports progress may have its time, if nothing else is said.
const TIMEOUT_MAX_FACTOR: u64 = 10;

impl TryFrom<Table> for ServerConfig {
    type Error = ConfigError;

    fn try_from(table: Table) -> Result<Self, ConfigError> {
        let launch = launch(&table)?;
        let timeout = seconds("timeout_s", table.timeout_s)?;
        let timeout_max_s = table
            .timeout_max_s
            .unwrap_or_else(|| table.timeout_s.saturating_mul(TIMEOUT_MAX_FACTOR).min(SECONDS_MAX));
        let timeout_max = seconds("timeout_max_s", timeout_max_s)?;
        if timeout_max < timeout {
            let reason = "must not be less than `timeout_s`";
            return Err(ConfigError::Seconds { field: "timeout_max_s", reason });
        }
        Ok(Self {
            launch,
            allow: table.allow,
            deny: table.deny,
            read_only: table.read_only,
            trusted: table.trusted,
            timeout,
            timeout_max,
            start_timeout: seconds("start_timeout_s", table.start_timeout_s)?,
        })
    }
}

fn seconds(field: &'static str, value: u64) -> Result<Duration, ConfigError> {
    match value {
        0 => Err(ConfigError::Seconds { field, reason: "must be at least 1" }),
        1..=SECONDS_MAX => Ok(Duration::from_secs(value)),
        _ => Err(ConfigError::Seconds { field, reason: "must be at most 86400, which is a day" }),
    }
}

fn launch(table: &Table) -> Result<Launch, ConfigError> {
    let misplaced = |field, there: bool, kind| {
        if there { Err(ConfigError::Misplaced { field, kind }) } else { Ok(()) }
    };
    match (&table.command, &table.url) {
        (Some(command), None) => {
            misplaced("headers", table.headers.is_some(), "command")?;
            misplaced("bearer_token_env", table.bearer_token_env.is_some(), "command")?;
            let env = table.env.clone().unwrap_or_default();
            let inherit_env = table.inherit_env.clone().unwrap_or_default();
            env.keys().chain(&inherit_env).try_for_each(|name| variable(name))?;
            if command.trim().is_empty() {
                return Err(ConfigError::Launch);
            }
            Ok(Launch::Stdio(StdioConfig {
                command: command.clone(),
                args: table.args.clone().unwrap_or_default(),
                env,
                inherit_env,
                cwd: table.cwd.clone(),
            }))
        }
        (None, Some(url)) => {
            misplaced("args", table.args.is_some(), "url")?;
            misplaced("env", table.env.is_some(), "url")?;
            misplaced("inherit_env", table.inherit_env.is_some(), "url")?;
            misplaced("cwd", table.cwd.is_some(), "url")?;
            let headers = table.headers.clone().unwrap_or_default();
            headers.iter().try_for_each(|(name, value)| header(name, value))?;
            table.bearer_token_env.iter().try_for_each(|name| variable(name))?;
            let has_key = !headers.is_empty() || table.bearer_token_env.is_some();
            Ok(Launch::Http(HttpConfig {
                url: address(url, has_key)?,
                headers,
                bearer_token_env: table.bearer_token_env.clone(),
            }))
        }
        (None, None) | (Some(_), Some(_)) => Err(ConfigError::Launch),
    }
}

fn variable(name: &str) -> Result<(), ConfigError> {
    let good = !name.is_empty() && !name.contains(['=', '\0']);
    if good { Ok(()) } else { Err(ConfigError::Variable { name: name.to_owned() }) }
}

/// Headers that the protocol or the connection sets.
const OURS: [&str; 10] = [
    "accept",
    "connection",
    "content-length",
    "content-type",
    "host",
    "last-event-id",
    "mcp-protocol-version",
    "mcp-session-id",
    "origin",
    "transfer-encoding",
];

fn header(name: &str, value: &SecretString) -> Result<(), ConfigError> {
    let refuse = |reason| Err(ConfigError::Header { name: name.to_owned(), reason });
    let Ok(parsed) = HeaderName::from_str(name) else {
        return refuse("is not the name of a header");
    };
    if OURS.contains(&parsed.as_str()) {
        return refuse("is set by Antiphon");
    }
    if HeaderValue::from_str(value.expose_secret()).is_err() {
        return refuse("has a value that cannot be sent");
    }
    Ok(())
}

fn address(text: &str, has_key: bool) -> Result<Url, ConfigError> {
    let refuse = |reason: String| Err(ConfigError::Url { reason });
    if text.contains('@') {
        return refuse("must not hold a user name or password: use `bearer_token_env`".to_owned());
    }
    let url = match Url::parse(text.trim()) {
        Ok(url) => url,
        Err(error) => return refuse(format!("`{text}` is not an address: {error}")),
    };
    match url.scheme() {
        "https" => Ok(url),
        "http" if !has_key || is_loopback(&url) => Ok(url),
        "http" => refuse(format!(
            "`{text}` would carry a key over the network for all to read: use https"
        )),
        _ => refuse(format!("`{text}` is not an http or https address")),
    }
}

fn is_loopback(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default();
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    host == "localhost" || bare.parse::<std::net::IpAddr>().is_ok_and(|ip| ip.is_loopback())
}
