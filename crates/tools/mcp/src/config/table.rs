//! The TOML table of a server, and its validation.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use reqwest::Url;
use reqwest::header::{HeaderName, HeaderValue};
use secrecy::{ExposeSecret, SecretString};
use serde::Deserialize;

use super::{ConfigError, HttpConfig, Launch, OAuthConfig, ServerConfig, StdioConfig};
use crate::config::globs::ToolGlobs;

/// Largest time limit of a call or a start, in seconds: a day.
const SECONDS_MAX: u64 = 24 * 60 * 60;

/// Default of `timeout_max_s`, as a multiple of `timeout_s`.
const TIMEOUT_MAX_FACTOR: u64 = 10;

/// Fields of one server.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Table {
    command: Option<String>,
    args: Option<Vec<String>>,
    env: Option<BTreeMap<String, SecretString>>,
    inherit_env: Option<Vec<String>>,
    cwd: Option<PathBuf>,
    url: Option<String>,
    headers: Option<BTreeMap<String, SecretString>>,
    bearer_token_env: Option<String>,
    oauth: Option<OAuthConfig>,
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
            misplaced("oauth", table.oauth.is_some(), "command")?;
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
                oauth: table.oauth.clone().unwrap_or_default(),
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
