//! Which agents are exposed, to whom, and at which address.

use std::path::{Path, PathBuf};

use antiphon_core::{AgentName, TaskSummary};
use antiphon_interface_transport::{AppState, Caller, ExposedAgents};
use antiphon_outbound::OutboundRules;
use axum::http::header::HOST;
use axum::http::request::Parts;

use crate::error::A2aError;

/// Settings of the interface.
#[derive(Debug, Clone)]
pub struct A2aConfig {
    /// Agents that clients see.
    pub agents: ExposedAgents,
    /// Address of this server in cards, such as `https://agents.example`; as the client names the server when absent.
    pub url: Option<String>,
    /// Whether the server's listener speaks TLS.
    pub is_tls: bool,
    /// Hosts of push notifications beside public ones.
    pub push_hosts: OutboundRules,
    /// The state folder, which exists: configurations of push notifications are stored in it, and the key of agent cards.
    pub state: PathBuf,
}

impl A2aConfig {
    /// All agents for clients on this machine, without TLS.
    pub fn new(state: &Path) -> Self {
        Self {
            agents: ExposedAgents::AllOnLoopback,
            url: None,
            is_tls: false,
            push_hosts: OutboundRules::default(),
            state: state.to_owned(),
        }
    }

    /// Agents that the client of a request sees: those that are defined, in the order of the settings.
    pub(crate) fn visible(&self, state: &AppState, parts: &Parts) -> Vec<AgentName> {
        self.agents.visible(&*state.deps.task_factory, &parts.extensions)
    }

    /// The agent of a path, if the client sees it.
    pub(crate) fn find(
        &self,
        state: &AppState,
        parts: &Parts,
        name: &str,
    ) -> Result<AgentName, A2aError> {
        let mut visible = self.visible(state, parts).into_iter();
        visible.find(|agent| agent.as_str() == name).ok_or_else(|| {
            A2aError::no_agent("there is no such agent here: see docs/a2a.md for how to expose one")
        })
    }

    /// Address of this server, as the client of a request reaches it.
    pub(crate) fn base_url(&self, parts: &Parts) -> String {
        if let Some(url) = &self.url {
            return url.trim_end_matches('/').to_owned();
        }
        let host = parts.headers.get(HOST).and_then(|host| host.to_str().ok());
        let scheme = if self.is_tls { "https" } else { "http" };
        format!("{scheme}://{}", host.unwrap_or("localhost"))
    }
}

/// Whether a caller may see a task through the interface of an agent: a root task of the agent that the caller's own
/// key pays for. The owner and `admin` keys of persons see all of them.
pub(crate) fn may_see(caller: &Caller, agent: &AgentName, task: &TaskSummary) -> bool {
    caller.may_see(task) && task.agent == agent.as_str()
}
