//! The policy of this machine: what its administrator allows. Users and projects can only narrow it.
//!
//! The file is at a constant path and belongs to root; no variable and no flag names another one. Without
//! the file there is no policy. A file that exists and cannot be used refuses every command that reads the
//! settings.
//!
//! | file       | subject                                                     |
//! |------------|-------------------------------------------------------------|
//! | `file`     | reads the file, and checks who can write it                 |
//! | `document` | the file as it is written, and what follows from it         |
//! | `model`    | models, by name and address                                 |
//! | `server`   | MCP servers, by name and by what they run or connect to     |
//! | `narrow_settings` | finished settings within the policy                  |
//! | `trial`    | tries to get around the policy, for `antiphon doctor`       |

mod document;
mod file;
mod model;
mod narrow_settings;
mod server;
mod trial;

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;

use antiphon_core::{ModelRef, PriceTable, SpendLimits};
use antiphon_mcp::{ServerConfig, ServerName};
use antiphon_permissions::{PermissionMode, PolicyRules};
use antiphon_runtime::SpendCeiling;

use crate::error::ProjectError;
use crate::settings::UserSettings;
use model::AllowedModel;
pub(crate) use narrow_settings::{lower, narrow};
use server::AllowedServer;
pub use trial::{PolicyTrial, policy_trials};

/// Folder of the policy. Nothing can name another one.
const FOLDER: &str = "/etc/antiphon";

/// Name of the policy in its folder.
const FILE: &str = "policy.toml";

/// Path of the policy. Nothing can name another one.
pub const POLICY_PATH: &str = "/etc/antiphon/policy.toml";

/// User id of the owner of the policy: root.
const OWNER: u32 = 0;

/// What the administrator of this machine allows. The default allows everything.
#[derive(Debug, Clone, Default)]
pub struct Policy {
    is_found: bool,
    mode_max: Option<Limit<PermissionMode>>,
    models: Option<Limit<Vec<AllowedModel>>>,
    /// Where it says that commands never get the whole network.
    no_whole_network: Option<PolicyLine>,
    /// Where it says that commands never leave the sandbox.
    no_way_out: Option<PolicyLine>,
    no_unix_sockets: Option<PolicyLine>,
    no_terminals: Option<PolicyLine>,
    /// Addresses of the only peers.
    peers: Option<Limit<Vec<String>>>,
    mcp: Option<Limit<BTreeMap<ServerName, AllowedServer>>>,
    budget: Option<Limit<SpendLimits>>,
    prices: PriceTable,
    rules: PolicyRules,
    /// What it took from the user's settings.
    narrowed: Vec<String>,
}

/// A limit, and where the policy sets it.
#[derive(Debug, Clone)]
struct Limit<T> {
    value: T,
    place: PolicyLine,
}

/// A line of the policy.
#[derive(Debug, Clone, PartialEq, Eq)]
struct PolicyLine {
    line: usize,
    text: String,
}

impl fmt::Display for PolicyLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{POLICY_PATH}, line {}: `{}`", self.line, self.text)
    }
}

impl Policy {
    /// Reads the policy of this machine.
    pub fn load() -> Result<Self, ProjectError> {
        Self::load_from(Path::new(FOLDER), OWNER)
    }

    fn load_from(folder: &Path, owner: u32) -> Result<Self, ProjectError> {
        match file::read(folder, owner)? {
            None => Ok(Self::default()),
            Some(text) => document::parse(&text).map_err(|reason| {
                ProjectError::Refused(format!(
                    "the policy of this machine cannot be used, so nothing runs: {POLICY_PATH}, {reason}. Ask \
                     its administrator to correct it"
                ))
            }),
        }
    }

    /// Whether this machine has a policy.
    pub fn is_found(&self) -> bool {
        self.is_found
    }

    /// What the policy took from the user's settings, one line each.
    pub fn narrowed(&self) -> &[String] {
        &self.narrowed
    }

    /// What the policy limits, one line each.
    pub fn limits(&self) -> Vec<String> {
        let mut limits: Vec<String> = Vec::new();
        let mut add = |what: &str, place: Option<&PolicyLine>| {
            limits
                .extend(place.map(|place| format!("{what} (line {}: {})", place.line, place.text)));
        };
        add("the mode", self.mode_max.as_ref().map(|limit| &limit.place));
        add("models", self.models.as_ref().map(|limit| &limit.place));
        add("the whole network", self.no_whole_network.as_ref());
        add("commands without the sandbox", self.no_way_out.as_ref());
        add("Unix sockets", self.no_unix_sockets.as_ref());
        add("programs in terminals", self.no_terminals.as_ref());
        add("peers", self.peers.as_ref().map(|limit| &limit.place));
        add("MCP servers", self.mcp.as_ref().map(|limit| &limit.place));
        add("the budget", self.budget.as_ref().map(|limit| &limit.place));
        if let Some(hosts) = &self.rules.hosts {
            let named = if hosts.hosts.is_empty() { "none" } else { &hosts.hosts.join(" ") };
            limits.push(format!("hosts: {named}"));
        }
        let entries = self.rules.ask.iter().map(|entry| ("ask", entry));
        let entries = entries.chain(self.rules.deny.iter().map(|entry| ("deny", entry)));
        limits.extend(entries.map(|(kind, entry)| format!("{kind}: {}", entry.rule)));
        limits
    }

    /// Rules above those of every user.
    pub(crate) fn rules(&self) -> &PolicyRules {
        &self.rules
    }

    /// Checks a mode that a command asks for.
    pub(crate) fn check_mode(&self, mode: PermissionMode) -> Result<(), ProjectError> {
        match &self.mode_max {
            Some(limit) if mode > limit.value => {
                Err(refused(&format!("the mode `{mode}` is not allowed here"), &limit.place))
            }
            Some(_) | None => Ok(()),
        }
    }

    /// The mode, or the widest one that is allowed.
    pub(crate) fn at_most(&self, mode: PermissionMode) -> PermissionMode {
        self.mode_max.as_ref().map_or(mode, |limit| mode.min(limit.value))
    }

    /// Checks that commands may use the whole network.
    pub(crate) fn check_whole_network(&self) -> Result<(), ProjectError> {
        let what =
            "commands may not use the whole network here: allow single hosts with `network(HOST)`";
        self.no_whole_network.as_ref().map_or(Ok(()), |place| Err(refused(what, place)))
    }

    /// Whether commands can leave the sandbox when a person allows it.
    pub(crate) fn allows_way_out(&self) -> bool {
        self.no_way_out.is_none()
    }

    /// Checks that a model may be called, as these settings would reach it.
    pub(crate) fn check_model(
        &self,
        model: &ModelRef,
        settings: &UserSettings,
    ) -> Result<(), ProjectError> {
        if let Some(limit) = &self.models {
            let provider = settings.providers.get(model.provider());
            let address = provider.map(|provider| provider.base_url.as_str());
            model::check(&limit.value, model, address)
                .map_err(|reason| refused(&reason, &limit.place))?;
        }
        let is_priced = model.provider() == "scripted" || settings.prices.price(model).is_some();
        match &self.budget {
            Some(limit) if !is_priced => Err(refused(
                &format!(
                    "the policy limits spending and knows no price of `{model}`: use another model, or ask the \
                     administrator to add [prices.\"{model}\"]"
                ),
                &limit.place,
            )),
            Some(_) | None => Ok(()),
        }
    }

    /// Checks that any model of a provider may be called, at the address that is configured for it.
    pub fn check_provider(&self, name: &str, settings: &UserSettings) -> Result<(), ProjectError> {
        let Some(limit) = &self.models else { return Ok(()) };
        let address = settings.providers.get(name).map(|provider| provider.base_url.as_str());
        model::check_provider(&limit.value, name, address)
            .map_err(|reason| refused(&reason, &limit.place))
    }

    /// Checks that an MCP server may be used under this name.
    fn check_server(&self, name: &ServerName, config: &ServerConfig) -> Result<(), ProjectError> {
        let Some(limit) = &self.mcp else { return Ok(()) };
        let found = limit.value.get(name).ok_or_else(|| "the policy does not name it".to_owned());
        found.and_then(|allowed| allowed.check(config)).map_err(|reason| {
            refused(&format!("the MCP server `{name}` is not allowed here: {reason}"), &limit.place)
        })
    }

    /// Most that a project may spend, whatever a user allows.
    pub(crate) fn spend_ceiling(&self) -> Option<SpendCeiling> {
        let limit = self.budget.as_ref()?;
        Some(SpendCeiling { limits: limit.value, origin: limit.place.to_string() })
    }
}

fn refused(what: &str, place: &PolicyLine) -> ProjectError {
    ProjectError::Refused(format!("{what} ({place})"))
}

#[cfg(test)]
mod tests;
