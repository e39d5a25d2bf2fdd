//! MCP servers that a policy allows. A user chooses the names of servers, and rules about their tools use
//! those names. So a server is allowed under one name, and as what it runs or connects to.

use std::collections::BTreeMap;
use std::path::PathBuf;

use antiphon_mcp::{HttpConfig, Launch, ServerConfig, StdioConfig};
use secrecy::{ExposeSecret, SecretString};
use serde::Deserialize;

use super::model::normalized;

/// Where programs of servers look for other programs: folders of root.
const PROGRAM_FOLDERS: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// A server in the policy.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ServerTable {
    command: Option<PathBuf>,
    #[serde(default)]
    args: Vec<String>,
    #[serde(default)]
    env: Vec<String>,
    cwd: Option<PathBuf>,
    url: Option<String>,
}

/// What a server has to be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum AllowedServer {
    /// This program with exactly these arguments.
    Program {
        command: String,
        args: Vec<String>,
        /// Variables that the user may set or pass on.
        env: Vec<String>,
        cwd: Option<PathBuf>,
    },
    /// A server at this address.
    Address(String),
}

impl AllowedServer {
    pub(super) fn of(table: ServerTable) -> Result<Self, String> {
        let ServerTable { command, args, env, cwd, url } = table;
        match (command, url) {
            (Some(command), None) => {
                let absolute = command.is_absolute().then(|| command.to_str()).flatten();
                let command = absolute.ok_or(
                    "`command` must be an absolute path: users choose what a name on PATH means",
                )?;
                Ok(Self::Program { command: command.to_owned(), args, env, cwd })
            }
            (None, Some(url)) if args.is_empty() && env.is_empty() && cwd.is_none() => {
                normalized(&url)
                    .map(Self::Address)
                    .ok_or_else(|| format!("`{url}` is not an http or https address"))
            }
            (None, Some(_)) => Err("`args`, `env` and `cwd` belong to a `command`".to_owned()),
            (None, None) | (Some(_), Some(_)) => Err("write a `command` or a `url`".to_owned()),
        }
    }

    /// Checks that a configured server is this one. The error says what differs.
    pub(super) fn check(&self, config: &ServerConfig) -> Result<(), String> {
        match (self, &config.launch) {
            (Self::Program { command, args, env, cwd }, Launch::Stdio(stdio)) => {
                let StdioConfig { env: set, inherit_env, .. } = stdio;
                if stdio.command != *command || stdio.args != *args {
                    return Err(format!(
                        "it has to be `{}`",
                        [std::slice::from_ref(command), args].concat().join(" ")
                    ));
                }
                if stdio.cwd != *cwd {
                    return Err("its `cwd` differs from that of the policy".to_owned());
                }
                // That of `secure` stays when settings are narrowed again.
                let is_ours = |(name, value): &(&String, &SecretString)| {
                    *name == "PATH" && value.expose_secret() == PROGRAM_FOLDERS
                };
                let set = set.iter().filter(|pair| !is_ours(pair)).map(|(name, _)| name);
                let mut variables = set.chain(inherit_env);
                match variables.find(|name| !env.contains(name)) {
                    Some(name) => Err(format!("it may not get the variable `{name}`")),
                    None => Ok(()),
                }
            }
            (Self::Address(address), Launch::Http(HttpConfig { url, .. })) => {
                match normalized(url.as_str()) {
                    Some(url) if url == *address => Ok(()),
                    Some(_) | None => Err(format!("it has to be at {address}")),
                }
            }
            (Self::Program { command, .. }, Launch::Http(_)) => {
                Err(format!("it has to be the program `{command}`"))
            }
            (Self::Address(address), Launch::Stdio(_)) => Err(format!("it has to be at {address}")),
        }
    }

    /// Takes from a server what would change which programs it runs.
    pub(super) fn secure(&self, config: &mut ServerConfig) {
        let Self::Program { env, .. } = self else { return };
        let Launch::Stdio(StdioConfig { env: set, .. }) = &mut config.launch else { return };
        if !env.iter().any(|name| name == "PATH") {
            set.insert("PATH".to_owned(), SecretString::from(PROGRAM_FOLDERS));
        }
    }
}

/// The servers of the policy by name.
pub(super) fn servers<K: Ord + std::fmt::Display>(
    tables: BTreeMap<K, ServerTable>,
) -> Result<BTreeMap<K, AllowedServer>, String> {
    let server = |(name, table): (K, ServerTable)| {
        let allowed =
            AllowedServer::of(table).map_err(|reason| format!("[mcp.{name}]: {reason}"))?;
        Ok((name, allowed))
    };
    tables.into_iter().map(server).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn allowed(text: &str) -> Result<AllowedServer, String> {
        AllowedServer::of(toml::from_str(text).unwrap())
    }

    fn check(policy: &str, server: &str) -> Result<(), String> {
        let config: ServerConfig = toml::from_str(server).unwrap();
        allowed(policy).unwrap().check(&config)
    }

    #[test]
    fn a_program_is_its_whole_command_line() {
        let policy = "command = \"/usr/bin/npx\"\nargs = [\"-y\", \"docs\"]\nenv = [\"TOKEN\"]";
        let npx = "command = \"/usr/bin/npx\"\nargs = [\"-y\", \"docs\"]\n";
        assert_eq!(check(policy, npx), Ok(()));
        assert_eq!(check(policy, &format!("{npx}env = {{ TOKEN = \"x\" }}")), Ok(()));
        assert_eq!(check(policy, &format!("{npx}inherit_env = [\"TOKEN\"]")), Ok(()));
        for other in [
            "command = \"npx\"\nargs = [\"-y\", \"docs\"]".to_owned(),
            "command = \"/usr/bin/../bin/npx\"\nargs = [\"-y\", \"docs\"]".to_owned(),
            "command = \"/usr/bin/npx\"\nargs = [\"-y\", \"evil\"]".to_owned(),
            "command = \"/usr/bin/npx\"\nargs = [\"-y\", \"docs\", \"--more\"]".to_owned(),
            "command = \"/usr/bin/npx\"".to_owned(),
            format!("{npx}env = {{ LD_PRELOAD = \"/home/me/x.so\" }}"),
            format!("{npx}env = {{ PATH = \"/home/me\" }}"),
            format!("{npx}inherit_env = [\"NODE_OPTIONS\"]"),
            format!("{npx}cwd = \"/home/me\""),
            "url = \"https://a.org\"".to_owned(),
        ] {
            assert!(check(policy, &other).is_err(), "{other}");
        }
    }

    #[test]
    fn an_address_is_exact() {
        let policy = "url = \"https://mcp.example.com/v1\"";
        assert_eq!(check(policy, "url = \"https://MCP.example.com:443/v1/\""), Ok(()));
        for other in [
            "url = \"https://mcp.example.com/v2\"",
            "url = \"https://mcp.example.com.evil.org/v1\"",
            "url = \"http://mcp.example.com/v1\"",
            "url = \"https://mcp.example.com/v1?to=evil\"",
            "command = \"/bin/true\"",
        ] {
            assert!(check(policy, other).is_err(), "{other}");
        }
    }

    #[test]
    fn an_entry_that_pins_nothing_is_refused() {
        for text in [
            "",
            "command = \"npx\"",
            "url = \"nonsense\"",
            "url = \"https://a.org\"\nargs = [\"x\"]",
            "command = \"/a\"\nurl = \"https://a.org\"",
        ] {
            assert!(allowed(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_program_looks_for_others_in_folders_of_root() {
        let policy = allowed("command = \"/bin/true\"").unwrap();
        let mut config: ServerConfig = toml::from_str("command = \"/bin/true\"").unwrap();
        policy.secure(&mut config);
        let Launch::Stdio(stdio) = &config.launch else { unreachable!() };
        assert!(stdio.env.contains_key("PATH"));
        assert_eq!(policy.check(&config), Ok(()), "it is allowed when it is checked again");
    }
}
