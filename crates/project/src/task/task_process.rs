//! Folder and permissions that a process gave to its task. They belong to the task, not to the process that owns the
//! journal, and are recorded with the task, so that the next owner keeps them. Variables of the environment are not
//! among them: they hold keys.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::PathBuf;

use antiphon_permissions::PermissionMode;
use antiphon_runtime::ApprovalPolicy;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use uuid::Uuid;

use crate::settings::UserSettings;
use crate::toolset::PermissionOverrides;

/// Bytes of the digest of an address.
const DIGEST_BYTES: usize = 8;

/// What the process that asked for a task gave to it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct TaskProcess {
    /// Names the environment of the process while an owner knows it; absent for a task of a server.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<Uuid>,
    /// The folder it was started in: rules for agents are read from the root down to it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub folder: Option<PathBuf>,
    /// Replaces the configured mode.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mode: Option<PermissionMode>,
    /// Allow rules in addition to the configured ones.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub allow: Vec<String>,
    /// Commands may use the network.
    #[serde(skip_serializing_if = "is_false")]
    pub network: bool,
    /// Calls that need an approval are refused. Otherwise they wait for a decision.
    #[serde(skip_serializing_if = "is_false")]
    pub refuses_approvals: bool,
    /// No rules for agents are read.
    #[serde(skip_serializing_if = "is_false")]
    pub no_rules: bool,
    /// Digest of the address of each provider: another owner never asks a model at another address.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub providers: BTreeMap<String, String>,
}

impl TaskProcess {
    /// Its permissions.
    pub fn overrides(&self) -> PermissionOverrides {
        let (mode, network) = (self.mode, self.network);
        PermissionOverrides { mode, rules: self.allow.clone(), network }
    }

    /// What happens to a call that needs an approval.
    pub fn approvals(&self) -> ApprovalPolicy {
        if self.refuses_approvals {
            ApprovalPolicy::Refuse
        } else {
            ApprovalPolicy::Wait { timeout: None }
        }
    }

    /// Whether its permissions are those of the settings.
    pub fn has_own_permissions(&self) -> bool {
        self.mode.is_some() || !self.allow.is_empty() || self.network
    }

    /// The same with the addresses of the providers of `settings`.
    #[must_use]
    pub fn at_providers_of(self, settings: &UserSettings) -> Self {
        let address = |(name, config): (&String, &crate::settings::ProviderConfig)| {
            (name.clone(), digest(&config.base_url))
        };
        Self { providers: settings.providers.iter().map(address).collect(), ..self }
    }
}

/// A digest of the address of a provider.
pub(crate) fn digest(address: &str) -> String {
    let mut text = String::new();
    for byte in Sha256::digest(address.as_bytes()).iter().take(DIGEST_BYTES) {
        // Writing to a String cannot fail.
        let _ = write!(text, "{byte:02x}");
    }
    text
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it with a reference")]
fn is_false(value: &bool) -> bool {
    !value
}
