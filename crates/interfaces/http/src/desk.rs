//! The desk: where a request becomes a task, and where agents are defined. Whoever starts the server
//! brings it.

use std::sync::Arc;

use antiphon_api::AgentOrigin;
use antiphon_core::{AgentDefinition, AgentName, ErrorCode, ErrorResponse, ModelRef};
use antiphon_runtime::NewTask;
use async_trait::async_trait;

use crate::agent_change::AgentChange;
use crate::task_request::TaskRequest;

/// Knows the agents and the models, which the door does not.
#[async_trait]
pub trait TaskFactory: Send + Sync {
    /// The task that is asked for: who works on it, with which model, in which scene. An error is
    /// what the client is told.
    async fn task(&self, request: TaskRequest) -> Result<NewTask, ErrorResponse>;

    /// Who is defined here.
    fn agents(&self) -> Vec<AgentName>;

    /// Models that are known to be there, the one that answers where none is named first.
    fn models(&self) -> Vec<ModelRef> {
        Vec::new()
    }

    /// What an agent that is made on the spot is told: what every agent is, and this.
    fn system_prompt(&self, prompt: &str) -> String {
        prompt.to_owned()
    }

    /// Who is defined here, and what is known of each, by name.
    fn defined(&self) -> Vec<Defined> {
        Vec::new()
    }

    /// Defines an agent that is not there. The same again, when nothing was changed since, is the
    /// same agent.
    async fn create_agent(
        &self,
        name: &AgentName,
        change: AgentChange,
    ) -> Result<Defined, ErrorResponse> {
        let _ = (name, change);
        Err(unwritten())
    }

    /// Changes what is said of an agent of the project.
    async fn change_agent(
        &self,
        name: &AgentName,
        change: AgentChange,
    ) -> Result<Defined, ErrorResponse> {
        let _ = (name, change);
        Err(unwritten())
    }

    /// Takes an agent of the project away.
    async fn delete_agent(&self, name: &AgentName) -> Result<(), ErrorResponse> {
        let _ = name;
        Err(unwritten())
    }
}

/// An agent that is defined, and where.
#[derive(Debug, Clone, PartialEq)]
pub struct Defined {
    /// Who it is.
    pub definition: Arc<AgentDefinition>,
    /// Whose it is.
    pub origin: AgentOrigin,
    /// Its file.
    pub path: String,
    /// What is wrong with the file now, when this is what it said before.
    pub fault: Option<String>,
}

fn unwritten() -> ErrorResponse {
    ErrorResponse {
        code: ErrorCode::Forbidden,
        message: "agents are not defined through this server: write their files".to_owned(),
        details: None,
    }
}
