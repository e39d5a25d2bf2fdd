//! One tool and the code that runs it.

use antiphon_core::port::{CutOffCall, CutOffOutcome, ToolContext};
use antiphon_core::{Effect, Offer, RawJson, TaskId, Tool, ToolError, ToolResult};
use async_trait::async_trait;
use serde_json::Value;

/// Most text of a result that goes to the model as it is, in bytes. Longer text is stored, and the
/// model gets a preview.
pub const RESULT_BYTES_MAX: usize = 32 * 1024;

/// One tool and the code that runs it. A [`Toolbox`](crate::Toolbox) combines several.
#[async_trait]
pub trait ToolHandler: Send + Sync {
    /// Name, description and parameters, as sent to the model. Called once, when the toolbox is created.
    fn definition(&self) -> Tool;

    /// The effect of a call on the world.
    fn effect(&self) -> Effect;

    /// When a model is offered the tool, under the contract of
    /// [`ToolExecutor::offer`](antiphon_core::ToolExecutor::offer).
    fn offer(&self, _task_id: &TaskId) -> Offer {
        Offer::Always
    }

    /// Runs the tool once, under the contract of
    /// [`ToolExecutor::execute`](antiphon_core::ToolExecutor::execute). The toolbox does not start a call
    /// that is already canceled.
    async fn call(
        &self,
        arguments: &RawJson,
        context: ToolContext,
    ) -> Result<ToolResult, ToolError>;

    /// What is recorded with the start of a call, under the contract of
    /// [`ToolExecutor::start_note`](antiphon_core::ToolExecutor::start_note).
    async fn start_note(&self, _arguments: &RawJson, _task_id: &TaskId) -> Option<Value> {
        None
    }

    /// Looks whether a call that was cut off happened, under the contract of
    /// [`ToolExecutor::inspect_cut_off`](antiphon_core::ToolExecutor::inspect_cut_off).
    async fn inspect_cut_off(&self, _arguments: &RawJson, _call: &CutOffCall) -> CutOffOutcome {
        CutOffOutcome::Unknown { known: String::new() }
    }

    /// Most text of a result that goes to the model as it is, in bytes; longer text is stored. A tool
    /// that reads by range has an own limit: the model can ask for the next range.
    fn result_bytes_max(&self) -> usize {
        RESULT_BYTES_MAX
    }

    /// No process works on this task anymore: drops state held for it.
    async fn release(&self, _task_id: &TaskId) {}
}
