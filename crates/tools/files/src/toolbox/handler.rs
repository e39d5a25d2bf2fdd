//! One tool, with what runs it.

use antiphon_core::port::ToolContext;
use antiphon_core::{Effect, RawJson, TaskId, Tool, ToolError, ToolResult};
use async_trait::async_trait;

use super::RESULT_BYTES_MAX;

/// One tool, with what runs it. A [`Toolbox`](super::Toolbox) is made of these.
#[async_trait]
pub trait ToolHandler: Send + Sync {
    /// How the model is told of it. Asked once, when the toolbox is made.
    fn definition(&self) -> Tool;

    /// What a call does to the world.
    fn effect(&self) -> Effect;

    /// Runs it once, as [`ToolExecutor::execute`](antiphon_core::ToolExecutor::execute) does. The
    /// toolbox has looked already that the call is not canceled before it begins.
    async fn call(
        &self,
        arguments: &RawJson,
        context: ToolContext,
    ) -> Result<ToolResult, ToolError>;

    /// How much text goes to the model as it is; what is longer is kept aside. A tool that reads
    /// by range says its own limit: what it leaves out can be asked for again.
    fn result_bytes_max(&self) -> usize {
        RESULT_BYTES_MAX
    }

    /// Nobody works on this task any more.
    async fn release(&self, _task_id: &TaskId) {}
}
