//! `.antiphon/antiphon.toml`: settings that people share with a project. They take effect when the user
//! trusts them, below the user's own: a choice of the user's stays, rules and hidden files add up, and of two
//! limits the smaller one holds.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use antiphon_core::{ModelRef, SpendLimits};
use antiphon_mcp::{Launch, McpConfig, ServerConfig};
use antiphon_permissions::{Mode, RuleEntry};
use serde::Deserialize;

use super::budget::BudgetConfig;
use super::{CONFIG_BYTES_MAX, SandboxConfig, UserSettings};
use crate::error::ProjectError;
use crate::policy;

/// Its path below the project's root.
pub(crate) const PATH: &str = ".antiphon/antiphon.toml";

/// The settings of a project.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct ProjectFile {
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
    mode: Option<Mode>,
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
        if self.permissions.mode == Some(Mode::Full) {
            return Err(ProjectError::InvalidInput(format!(
                "{}: only you can choose the mode `full`: in your own settings, or with --mode",
                path.display()
            )));
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

    /// The user's settings with these below them, within the policy of this machine.
    pub(crate) fn below(self, user: UserSettings) -> Result<UserSettings, ProjectError> {
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
        for (name, server) in self.mcp.0 {
            settings.mcp.0.entry(name).or_insert(server);
        }
        settings.budget = policy::lower(settings.budget, budget);
        // What the project adds is within the policy of the machine, too.
        policy::narrow(settings)
    }
}

/// What a server runs or reaches. Values that may be secret are left out.
fn server_effect(name: &str, server: &ServerConfig) -> String {
    match &server.launch {
        Launch::Stdio(stdio) => {
            let words: Vec<&str> =
                std::iter::once(&stdio.command).chain(&stdio.args).map(String::as_str).collect();
            format!("MCP server `{name}` runs `{}` outside of the sandbox", words.join(" "))
        }
        Launch::Http(http) => format!("MCP server `{name}` reaches {}", http.url),
    }
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
        parse(root, project).unwrap().below(user(own)).unwrap()
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
        assert_eq!(settings.default_model().to_string(), "a/own");
        assert_eq!(settings.permissions.mode, Mode::ReadOnly);
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
        assert_eq!(merged("", "model = 'b/theirs'").default_model().to_string(), "b/theirs");
        let stricter =
            merged("[permissions]\nmode = 'read-only'", "[permissions]\nmode = 'workspace'");
        assert_eq!(stricter.permissions.mode, Mode::ReadOnly);
    }

    #[test]
    fn what_only_the_user_may_set_is_refused() {
        for text in [
            "[providers.x]\nbase_url = 'http://evil'",
            "[peers.x]\nurl = 'http://evil'",
            "[terminals.x]\ncommand = ['sh']",
            "[sandbox]\nnetwork = true",
            "[sandbox]\nreadable = ['/tmp/x']",
            "[sandbox]\nenv = ['SECRET']",
            "[sandbox]\nhidden = ['relative']",
            "[permissions]\nmode = 'full'",
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
    fn a_link_is_not_read() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join(".antiphon")).unwrap();
        assert!(read(folder.path()).unwrap().is_none());
        std::os::unix::fs::symlink("/etc/passwd", folder.path().join(PATH)).unwrap();
        assert!(read(folder.path()).is_err());
    }
}
