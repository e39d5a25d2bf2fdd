//! The desk: where a request becomes a task. Whoever starts the server brings it.

use antiphon_core::{AgentName, ErrorResponse, ModelRef};
use antiphon_runtime::NewTask;
use async_trait::async_trait;

use crate::task_request::TaskRequest;

/// Knows the agents and the models, which the door does not.
#[async_trait]
pub trait Desk: Send + Sync {
    /// The task that is asked for: who works on it, with which model, in which scene. An error is
    /// what the client is told.
    async fn task(&self, request: TaskRequest) -> Result<NewTask, ErrorResponse>;

    /// Who is defined here.
    fn agents(&self) -> Vec<AgentName>;

    /// Models that are known to be there, the one that answers where none is named first.
    fn models(&self) -> Vec<ModelRef> {
        Vec::new()
    }
}
