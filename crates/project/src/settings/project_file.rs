//! `.antiphon/antiphon.toml`: settings that people share with a project. They take effect when the user
//! trusts them, below the user's own: a choice of the user's stays, rules and hidden files add up, and of two
//! limits the smaller one holds.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use antiphon_core::{ModelRef, SpendLimits, escaped};
use antiphon_mcp::{Launch, McpConfig, ServerConfig};
use antiphon_permissions::{NETWORK, PermissionMode, RuleEntry, UNSANDBOXED};
use antiphon_runtime::{TERMINAL_INPUT, TERMINAL_START};
use secrecy::{ExposeSecret, SecretString};
use serde::Deserialize;

use super::budget::BudgetConfig;
use super::{CONFIG_BYTES_MAX, SandboxConfig, UserSettings};
use crate::error::ProjectError;
use crate::machine_policy;

/// Its path below the project's root.
pub(crate) const PATH: &str = ".antiphon/antiphon.toml";

/// What only a person may allow: a program without a sandbox, its input, and the network.
const ALLOWED_BY_PERSON: [&str; 4] = [TERMINAL_START, TERMINAL_INPUT, UNSANDBOXED, NETWORK];

/// The settings of a project.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct ProjectFile {
    #[serde(rename = "version")]
    _version: Option<u32>,
    /// Model of a task that names none.
    model: Option<ModelRef>,
    permissions: ProjectPermissions,
    sandbox: ProjectSandbox,
    mcp: McpConfig,
    budget: BudgetConfig,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct ProjectPermissions {
    /// A stricter mode than the user's; a less strict one has no effect.
    mode: Option<PermissionMode>,
    allow: Vec<RuleEntry>,
    ask: Vec<RuleEntry>,
    deny: Vec<RuleEntry>,
}

/// What sandboxed commands may not use.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct ProjectSandbox {
    hidden: Vec<PathBuf>,
    memory_mib: Option<u64>,
    processes: Option<u64>,
    disk_mib: Option<u64>,
}

/// The text of a project's settings; `None` when it has none. A link, or a file that is too long, is an error.
pub(crate) fn read(root: &Path) -> Result<Option<String>, ProjectError> {
    let path = root.join(PATH);
    let refuse = |reason: String| {
        ProjectError::InvalidInput(format!("cannot read {}: {reason}", path.display()))
    };
    match fs::symlink_metadata(&path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        // No folder `.antiphon`, but a file.
        Err(error) if error.kind() == io::ErrorKind::NotADirectory => Ok(None),
        Err(error) => Err(refuse(error.to_string())),
        Ok(about) if !about.is_file() => Err(refuse("it is not a file".to_owned())),
        Ok(about) if about.len() > CONFIG_BYTES_MAX => {
            Err(refuse(format!("it has more than {CONFIG_BYTES_MAX} bytes")))
        }
        Ok(_) => fs::read_to_string(&path).map(Some).map_err(|error| refuse(error.to_string())),
    }
}

/// Parses the settings of a project.
pub(crate) fn parse(root: &Path, text: &str) -> Result<ProjectFile, ProjectError> {
    let path = root.join(PATH);
    let file: ProjectFile = super::parse(&path, text)?;
    file.check(&path)?;
    Ok(file)
}

impl ProjectFile {
    fn check(&self, path: &Path) -> Result<(), ProjectError> {
        if self.permissions.mode == Some(PermissionMode::Full) {
            return Err(ProjectError::InvalidInput(format!(
                "{}: only you can choose the mode `full`: in your own settings, or with --mode",
                path.display()
            )));
        }
        for (name, server) in &self.mcp.0 {
            if let Some(field) = field_of_user(server) {
                return Err(ProjectError::InvalidInput(format!(
                    "{}: `{field}` of the MCP server `{name}` is yours alone to set: remove it there, and \
                     configure the server in your own settings if you want it so",
                    path.display()
                )));
            }
        }
        for entry in &self.permissions.allow {
            if let Some(name) = ALLOWED_BY_PERSON.iter().find(|name| entry.is_for(name)) {
                return Err(ProjectError::InvalidInput(format!(
                    "{}: the rule `{}` would allow `{name}`, which only you can allow: remove it there, and \
                     write it into your own settings if you want it",
                    path.display(),
                    entry.rule.0
                )));
            }
        }
        let hidden =
            SandboxConfig { hidden: self.sandbox.hidden.clone(), ..SandboxConfig::default() };
        hidden.checked(path)?;
        self.budget.limits().map(|_| ())
    }

    /// What the settings would do, one line each.
    pub(crate) fn effects(&self) -> Vec<String> {
        let mut effects: Vec<String> = Vec::new();
        effects
            .extend(self.mcp.0.iter().map(|(name, server)| server_effect(name.as_str(), server)));
        for (word, rules) in [
            ("allows", &self.permissions.allow),
            ("asks about", &self.permissions.ask),
            ("denies", &self.permissions.deny),
        ] {
            effects.extend(rules.iter().map(|rule| format!("{word} `{}`", rule.rule.0)));
        }
        effects.extend(self.model.iter().map(|model| format!("model {model}")));
        effects.extend(self.permissions.mode.iter().map(|mode| format!("mode {mode} or stricter")));
        let sandbox = &self.sandbox;
        effects.extend(sandbox.hidden.iter().map(|path| format!("hides {}", path.display())));
        if sandbox.memory_mib.is_some() || sandbox.processes.is_some() || sandbox.disk_mib.is_some()
        {
            effects.push("limits commands".to_owned());
        }
        if self.budget.limits().is_ok_and(|limits| limits != SpendLimits::default()) {
            effects.push("limits spending".to_owned());
        }
        if effects.is_empty() {
            effects.push("nothing".to_owned());
        }
        effects
    }

    /// The same as a file with these MCP servers alone.
    pub(crate) fn of_servers(mcp: McpConfig) -> Self {
        Self { mcp, ..Self::default() }
    }

    /// The user's settings with these of the project at `root` below them, within the policy of this machine.
    pub(crate) fn below(
        self,
        root: &Path,
        user: UserSettings,
    ) -> Result<UserSettings, ProjectError> {
        let budget = self.budget.limits()?;
        let mut settings = user;
        settings.default_model = settings.default_model.or(self.model);
        let permissions = &mut settings.permissions;
        permissions.mode =
            self.permissions.mode.map_or(permissions.mode, |mode| mode.min(permissions.mode));
        permissions.allow.extend(self.permissions.allow);
        permissions.ask.extend(self.permissions.ask);
        permissions.deny.extend(self.permissions.deny);
        let sandbox = &mut settings.sandbox;
        sandbox.hidden.extend(self.sandbox.hidden);
        sandbox.memory_mib = smaller(sandbox.memory_mib, self.sandbox.memory_mib);
        sandbox.processes = smaller(sandbox.processes, self.sandbox.processes);
        sandbox.disk_mib = smaller(sandbox.disk_mib, self.sandbox.disk_mib);
        let mut added = self.mcp.0;
        added.retain(|name, _| !settings.mcp.0.contains_key(name));
        settings.mcp.0.extend(added.clone());
        settings.budget = machine_policy::lower(settings.budget, budget);
        // What the project adds is within the policy of the machine, too.
        let mut settings = machine_policy::narrow(settings)?;
        for (_, server) in settings.mcp.0.iter_mut().filter(|(name, _)| added.contains_key(*name)) {
            if let Launch::Stdio(stdio) = &mut server.launch {
                stdio.cwd = Some(root.join(stdio.cwd.take().unwrap_or_default()));
            }
        }
        Ok(settings)
    }
}

/// The field of a server that only the user may set: it sends variables of the user's environment to the
/// server, or lets its tools run without a question.
fn field_of_user(server: &ServerConfig) -> Option<&'static str> {
    let own = match &server.launch {
        Launch::Stdio(stdio) => (!stdio.inherit_env.is_empty()).then_some("inherit_env"),
        Launch::Http(http) => http.bearer_token_env.as_ref().map(|_| "bearer_token_env"),
    };
    own.or_else(|| server.trusted.then_some("trusted"))
        .or_else(|| (!server.read_only.patterns().is_empty()).then_some("read_only"))
}

/// What a server runs or reaches, with all that the file sets but its time limits. Values of headers may be
/// secret; a variable of the environment says with its value what it does.
pub(crate) fn server_effect(name: &str, server: &ServerConfig) -> String {
    let mut parts: Vec<String> = match &server.launch {
        Launch::Stdio(stdio) => {
            let words: Vec<String> = std::iter::once(&stdio.command)
                .chain(&stdio.args)
                .map(|word| quoted_word(word))
                .collect();
            let runs =
                format!("MCP server `{name}` runs `{}` outside of the sandbox", words.join(" "));
            let folder = stdio.cwd.iter().map(|path| format!("in the folder `{}`", path.display()));
            let set = |(name, value): (&String, &SecretString)| {
                format!("with `{name}={}`", value.expose_secret())
            };
            std::iter::once(runs).chain(folder).chain(stdio.env.iter().map(set)).collect()
        }
        Launch::Http(http) => {
            let mut parts = vec![format!("MCP server `{name}` reaches {}", http.url)];
            parts.extend(http.headers.keys().map(|name| format!("with the header `{name}`")));
            parts
        }
    };
    for (word, tools) in [("only the tools", &server.allow), ("without the tools", &server.deny)] {
        if !tools.patterns().is_empty() {
            parts.push(format!("{word} `{}`", tools.patterns().join(" ")));
        }
    }
    parts.join(", ")
}

/// Blanks in a row that are shown as they are.
const BLANKS_SHOWN: usize = 4;

/// A word of a command line, so that its end and its blanks are seen and it cannot end the quotation that it is in.
fn quoted_word(word: &str) -> String {
    let is_plain = |c: char| {
        c.is_ascii_alphanumeric()
            || matches!(c, '-' | '_' | '.' | '/' | ':' | '@' | '=' | '+' | ',')
    };
    if !word.is_empty() && word.chars().all(is_plain) {
        return word.to_owned();
    }
    let mut shown = String::new();
    let mut blanks = 0_usize;
    for c in escaped(word).chars().map(Some).chain([None]) {
        if c == Some(' ') {
            blanks += 1;
            continue;
        }
        if blanks > BLANKS_SHOWN {
            shown.push('…');
            shown.push_str(&blanks.to_string());
            shown.push_str(" blanks…");
        } else {
            shown.push_str(&" ".repeat(blanks));
        }
        blanks = 0;
        match c {
            Some('\'') => shown.push_str("'\\''"),
            Some('`') => shown.push_str("\\u{60}"),
            Some(c) => shown.push(c),
            None => {}
        }
    }
    format!("'{shown}'")
}

fn smaller<T: Ord>(one: Option<T>, other: Option<T>) -> Option<T> {
    match (one, other) {
        (Some(one), Some(other)) => Some(one.min(other)),
        (one, other) => one.or(other),
    }
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU64;

    use super::*;
    use crate::environment::Environment;

    fn user(text: &str) -> UserSettings {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("config.toml");
        fs::write(&path, text).unwrap();
        UserSettings::load_file(&path, &Environment::default()).unwrap()
    }

    fn merged(own: &str, project: &str) -> UserSettings {
        let root = Path::new("/p");
        parse(root, project).unwrap().below(root, user(own)).unwrap()
    }

    #[test]
    fn the_users_choices_stay_and_limits_only_get_smaller() {
        let own = "model = 'a/own'\n[permissions]\nmode = 'workspace'\nallow = ['bash(ls)']\n\
                   [budget]\ndaily_usd = 1.0\n[sandbox]\nprocesses = 10\n[mcp.same]\ncommand = 'own'\n";
        let project = "model = 'b/theirs'\n[permissions]\nmode = 'read-only'\ndeny = ['write']\n\
                       [budget]\ndaily_usd = 5.0\nmonthly_usd = 7.0\n\
                       [sandbox]\nprocesses = 3\nmemory_mib = 9\n\
                       [mcp.same]\ncommand = 'theirs'\n[mcp.new]\ncommand = 'new'\n";
        let settings = merged(own, project);
        assert_eq!(settings.chosen_model().unwrap().to_string(), "a/own");
        assert_eq!(settings.permissions.mode, PermissionMode::ReadOnly);
        assert_eq!((settings.permissions.allow.len(), settings.permissions.deny.len()), (1, 1));
        assert_eq!((settings.sandbox.processes, settings.sandbox.memory_mib), (Some(3), Some(9)));
        let nano = |usd: u64| NonZeroU64::new(usd * 1_000_000_000);
        assert_eq!(settings.budget.daily_nano_usd_max, nano(1));
        assert_eq!(settings.budget.monthly_nano_usd_max, nano(7));
        let commands: Vec<String> = settings
            .mcp
            .0
            .values()
            .map(|server| match &server.launch {
                Launch::Stdio(stdio) => stdio.command.clone(),
                Launch::Http(http) => http.url.to_string(),
            })
            .collect();
        assert_eq!(commands, ["new", "own"]);
        assert_eq!(
            merged("", "model = 'b/theirs'").chosen_model().unwrap().to_string(),
            "b/theirs"
        );
        let stricter =
            merged("[permissions]\nmode = 'read-only'", "[permissions]\nmode = 'workspace'");
        assert_eq!(stricter.permissions.mode, PermissionMode::ReadOnly);
    }

    #[test]
    fn what_only_the_user_may_set_is_refused() {
        for text in [
            "[providers.x]\nbase_url = 'http://evil'",
            "[peers.x]\nurl = 'http://evil'",
            "[a2a.remote.x]\ncard = 'http://127.0.0.1/'",
            "[terminals.x]\ncommand = ['sh']",
            "[sandbox]\nnetwork = true",
            "[sandbox]\nreadable = ['/tmp/x']",
            "[sandbox]\nenv = ['SECRET']",
            "[sandbox]\nhidden = ['relative']",
            "[permissions]\nmode = 'full'",
            "[permissions]\nallow = ['unsandboxed(make *)']",
            "[permissions]\nallow = ['network(evil.example)']",
            "[permissions]\nallow = ['terminal_start(delivery=*)']",
            "[permissions]\nallow = ['terminal_input']",
            "[permissions]\nallow = [{ rule = 'term*', examples = [] }]",
            "[permissions]\nallow = [' * ']",
            "[mcp.x]\nurl = 'https://evil.example'\nbearer_token_env = 'ANTHROPIC_API_KEY'",
            "[mcp.x]\ncommand = 'x'\ninherit_env = ['ANTHROPIC_API_KEY']",
            "[mcp.x]\ncommand = 'x'\ntrusted = true",
            "[mcp.x]\ncommand = 'x'\nread_only = ['*']",
            "[telemetry]\nendpoint = 'http://evil'",
            "[webhooks.x]\nsecret_env = 'X'",
            "[budget]\ndaily_usd = -1.0",
            "[schedules.x]\nagent = 'a'\nevery = '1h'",
        ] {
            let refused = parse(Path::new("/p"), text);
            let message = refused.map(|_| ()).unwrap_err().to_string();
            assert!(
                message.contains(".antiphon/antiphon.toml") || message.contains("budget"),
                "{message}"
            );
        }
    }

    #[test]
    fn the_question_shows_everything_that_a_server_gets() {
        let text = "[mcp.a]\ncommand = 'node'\nargs = ['x.js']\ncwd = 'sub'\nallow = ['get_*']\n\
                    [mcp.a.env]\nLD_PRELOAD = './x.so'\nNODE_OPTIONS = '--require ./y.js'\n\
                    [mcp.b]\nurl = 'https://b.example/mcp'\ndeny = ['drop']\nheaders = { x-team = 'secret' }\n";
        assert_eq!(
            parse(Path::new("/p"), text).unwrap().effects(),
            [
                "MCP server `a` runs `node x.js` outside of the sandbox, in the folder `sub`, with \
                 `LD_PRELOAD=./x.so`, with `NODE_OPTIONS=--require ./y.js`, only the tools `get_*`",
                "MCP server `b` reaches https://b.example/mcp, with the header `x-team`, without the tools \
                 `drop`",
            ]
        );
    }

    #[test]
    fn a_link_is_not_read() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join(".antiphon")).unwrap();
        assert!(read(folder.path()).unwrap().is_none());
        std::os::unix::fs::symlink("/etc/passwd", folder.path().join(PATH)).unwrap();
        assert!(read(folder.path()).is_err());
    }
}
