//! Agents that are exposed over A2A, where push notifications may go, and remote agents of others.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use antiphon_a2a::{A2A_RUNNER, RemoteAgentConfig};
use antiphon_agent_files::{AgentFileEntry, FolderOwner, version_of};
use antiphon_core::{AgentDefinition, AgentName, RunnerConfig, Runtime};
use secrecy::SecretString;
use serde::Deserialize;
use serde_json::json;

use super::UserSettings;
use super::peers::token;
use crate::environment::Environment;
use crate::error::ProjectError;

/// Settings of the A2A interface.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct A2aConfig {
    /// Agents that clients see, the one at the well-known address first. Absent: all, for clients on this machine alone.
    pub agents: Option<Vec<AgentName>>,
    /// Address of the server in agent cards. Absent: as the client names the server.
    pub url: Option<String>,
    /// Hosts that push notifications may go to beside public ones, as in rules about hosts.
    pub push_hosts: Vec<String>,
    /// Remote agents by name: each can be called like an agent of the project.
    pub remote: BTreeMap<AgentName, RemoteA2a>,
}

/// A remote agent that speaks A2A.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RemoteA2a {
    /// Address of its card.
    pub card: String,
    /// What it is good for; agents that may call it read this.
    #[serde(default)]
    description: String,
    pub(super) token_env: Option<String>,
    token_file: Option<PathBuf>,
    /// Name of the header that has the token; absent: `Authorization: Bearer`.
    header: Option<String>,
    /// Hosts that it may be at beside the public host of its card.
    #[serde(default)]
    hosts: Vec<String>,
    /// File with public keys, one of which has to have signed its card.
    card_keys: Option<PathBuf>,
}

impl RemoteA2a {
    /// How it is reached. A token file is read now.
    pub(crate) fn config(
        &self,
        name: &AgentName,
        environment: &Environment,
    ) -> Result<RemoteAgentConfig, ProjectError> {
        let read = |path: &PathBuf| {
            std::fs::read_to_string(path).map_err(|error| {
                let (place, path) = (format!("[a2a.remote.{name}]"), path.display());
                ProjectError::InvalidInput(format!("{place}: `card_keys`: {path}: {error}"))
            })
        };
        Ok(RemoteAgentConfig {
            card: self.card.clone(),
            token: self.token(name, environment)?,
            header: self.header.clone(),
            hosts: self.hosts.clone(),
            card_keys: self.card_keys.as_ref().map(read).transpose()?,
        })
    }

    /// Its token; `None` without one.
    pub(super) fn token(
        &self,
        name: &AgentName,
        environment: &Environment,
    ) -> Result<Option<SecretString>, ProjectError> {
        if self.token_env.is_none() && self.token_file.is_none() {
            return Ok(None);
        }
        let place = format!("[a2a.remote.{name}]");
        token(&place, self.token_env.as_ref(), self.token_file.as_ref(), environment).map(Some)
    }
}

impl UserSettings {
    /// The remote agents, as agents that can be called.
    pub(crate) fn remote_agents(&self) -> Vec<AgentFileEntry> {
        let entry = |(name, remote): (&AgentName, &RemoteA2a)| {
            let runner =
                RunnerConfig::new(A2A_RUNNER).with_config(json!({ "peer": name.as_str() }));
            let description = match remote.description.trim() {
                "" => format!("A remote agent that speaks A2A ({}).", remote.card),
                given => given.to_owned(),
            };
            let version = version_of(format!("{} {description}", remote.card).as_bytes());
            let definition = AgentDefinition {
                description,
                runtimes: vec![Runtime::Runner(runner)],
                tools: Some(Vec::new()),
                ..AgentDefinition::new(name.clone(), "")
            };
            AgentFileEntry {
                definition: Arc::new(definition),
                path: self.path.clone(),
                origin: FolderOwner::User,
                shadows: Vec::new(),
                version,
                fault: None,
                imported: None,
            }
        };
        self.a2a.remote.iter().map(entry).collect()
    }
}
