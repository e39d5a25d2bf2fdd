//! The agents that `model` may name in a request for an answer.

use std::convert::Infallible;
use std::sync::Arc;

use antiphon_core::AgentName;
use axum::extract::FromRequestParts;
use axum::http::request::Parts;

use crate::openapi::OperationInput;
use crate::state::AppState;

/// Agents that the client of a request may name, by the setting of the server. Another one is as one that does not exist.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AnswerAgents(Vec<AgentName>);

impl AnswerAgents {
    /// Their names, in the order of the setting.
    pub(crate) fn names(&self) -> &[AgentName] {
        &self.0
    }

    /// The agent of this name.
    pub(crate) fn find(&self, name: &str) -> Option<&AgentName> {
        self.0.iter().find(|agent| agent.as_str() == name)
    }
}

impl FromRequestParts<Arc<AppState>> for AnswerAgents {
    type Rejection = Infallible;

    async fn from_request_parts(
        parts: &mut Parts,
        state: &Arc<AppState>,
    ) -> Result<Self, Infallible> {
        let factory = &*state.deps.task_factory;
        Ok(Self(state.chat_agents.visible(factory, &parts.extensions)))
    }
}

impl OperationInput for AnswerAgents {}
