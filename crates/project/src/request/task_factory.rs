//! How a request becomes a task, and where agents are defined. The process that starts a server
//! implements it.

use std::sync::Arc;

use antiphon_api::{AgentChange, AgentOrigin, AgentProblem, ImportedFrom, RunStarted, StartRun};
use antiphon_core::port::IdempotencyKey;
use antiphon_core::{AgentDefinition, AgentName, ErrorResponse, ModelRef};
use antiphon_runtime::NewTask;
use async_trait::async_trait;

use crate::request::request_error::forbidden;
use crate::request::task_request::TaskRequest;

/// Builds tasks from requests, and knows the agents and the models of a project.
#[async_trait]
pub trait TaskFactory: Send + Sync {
    /// The task that is requested, with its agent, model and system prompt. The client reads the
    /// error.
    async fn task(&self, request: TaskRequest) -> Result<NewTask, ErrorResponse>;

    /// Starts the task of another process of the user, or goes on with it. `key` makes a repeated request the same
    /// one. The journal has the task when this returns.
    async fn start_run(
        &self,
        run: StartRun,
        key: Option<IdempotencyKey>,
    ) -> Result<RunStarted, ErrorResponse> {
        let _ = (run, key);
        Err(forbidden("this server runs no tasks of other processes"))
    }

    /// Asks this process to give the journal to a server, when the calls that run are recorded.
    fn hand_over(&self) -> Result<(), ErrorResponse> {
        Err(forbidden("this server keeps the journal"))
    }

    /// From now on this process carries out requests that are dropped as files, if it does not do so already.
    fn watch_requests(&self) {}

    /// Names of the agents that are defined.
    fn agents(&self) -> Vec<AgentName>;

    /// Models that are known to exist, the default model first.
    fn models(&self) -> Vec<ModelRef> {
        Vec::new()
    }

    /// The agent or PROVIDER/MODEL that the user's settings give for a name that clients send.
    fn alias(&self, name: &str) -> Option<String> {
        let _ = name;
        None
    }

    /// The names that have one; a final `*` stands for any text.
    fn aliases(&self) -> Vec<String> {
        Vec::new()
    }

    /// The system prompt of an ad-hoc agent: the part that every agent has, followed by `prompt`.
    fn system_prompt(&self, prompt: &str) -> String {
        prompt.to_owned()
    }

    /// The agents that are defined, ordered by name.
    fn defined(&self) -> Vec<DefinedAgent> {
        Vec::new()
    }

    /// Files and folders of agents that are not valid.
    fn problems(&self) -> Vec<AgentProblem> {
        Vec::new()
    }

    /// Defines a new agent. Repeating the call with the same change, while the file is unchanged,
    /// returns the same agent.
    async fn create_agent(
        &self,
        name: &AgentName,
        change: AgentChange,
    ) -> Result<DefinedAgent, ErrorResponse> {
        let _ = (name, change);
        Err(not_writable())
    }

    /// Changes the definition of an agent of the project.
    async fn change_agent(
        &self,
        name: &AgentName,
        change: AgentChange,
    ) -> Result<DefinedAgent, ErrorResponse> {
        let _ = (name, change);
        Err(not_writable())
    }

    /// Deletes the definition of an agent of the project.
    async fn delete_agent(&self, name: &AgentName) -> Result<(), ErrorResponse> {
        let _ = name;
        Err(not_writable())
    }
}

/// An agent that is defined, and where.
#[derive(Debug, Clone, PartialEq)]
pub struct DefinedAgent {
    /// The definition in use.
    pub definition: Arc<AgentDefinition>,
    /// Whether the agent belongs to the project or to the user.
    pub origin: AgentOrigin,
    /// Path of its file.
    pub path: String,
    /// Paths of files of the same name that this one replaces.
    pub shadows: Vec<String>,
    /// What is wrong with the file now, while the definition from before is still in use.
    pub fault: Option<String>,
    /// The program its file was written for, when that is another one.
    pub imported: Option<ImportedFrom>,
}

fn not_writable() -> ErrorResponse {
    forbidden("this server does not define agents: write their files")
}
