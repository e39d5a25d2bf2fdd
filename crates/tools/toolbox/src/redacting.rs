//! Removes known secrets (provider keys, the server's token) from the results, progress and errors of
//! tools, before they are recorded or shown. Changes nothing else.

mod stream;

use std::sync::Arc;

use antiphon_core::port::{CutOffCall, CutOffOutcome, Progress, ToolContext};
use antiphon_core::redaction::Secrets;
use antiphon_core::{Effect, Offer, RawJson, TaskId, Tool, ToolError, ToolExecutor, ToolResult};
use async_trait::async_trait;
use serde_json::Value;
use uuid::Uuid;

use stream::StreamRedactor;

/// An executor that removes known secrets from what its tools return.
pub struct RedactingTools {
    tools: Arc<dyn ToolExecutor>,
    secrets: Secrets,
}

impl RedactingTools {
    /// Removes `secrets` from what `tools` return. Secrets that are added later are removed too.
    pub fn new(tools: Arc<dyn ToolExecutor>, secrets: Secrets) -> Self {
        Self { tools, secrets }
    }

    fn redact_error(&self, mut error: ToolError) -> ToolError {
        match &mut error {
            ToolError::InvalidArguments { reason, .. } | ToolError::Unavailable { reason, .. } => {
                self.secrets.redact(reason);
            }
            ToolError::Unknown { .. } | ToolError::Canceled => {}
        }
        error
    }
}

#[async_trait]
impl ToolExecutor for RedactingTools {
    fn tools(&self) -> Vec<Arc<Tool>> {
        self.tools.tools()
    }

    fn effect(&self, tool: &str) -> Option<Effect> {
        self.tools.effect(tool)
    }

    fn offer(&self, tool: &str, task_id: &TaskId) -> Offer {
        self.tools.offer(tool, task_id)
    }

    async fn execute(
        &self,
        tool: &str,
        arguments: &RawJson,
        context: ToolContext,
    ) -> Result<ToolResult, ToolError> {
        let output = context.progress.clone();
        let redactor = Arc::new(StreamRedactor::new(self.secrets.clone()));
        let progress = Progress::to({
            let (redactor, output) = (Arc::clone(&redactor), output.clone());
            move |text| {
                let safe = redactor.feed(text);
                if !safe.is_empty() {
                    output.say(&safe);
                }
            }
        });
        let result = self.tools.execute(tool, arguments, ToolContext { progress, ..context }).await;
        let rest = redactor.finish();
        if !rest.is_empty() {
            output.say(&rest);
        }
        result
            .map(|result| self.secrets.redact_result(result))
            .map_err(|error| self.redact_error(error))
    }

    async fn start_note(&self, tool: &str, arguments: &RawJson, task_id: &TaskId) -> Option<Value> {
        self.tools.start_note(tool, arguments, task_id).await
    }

    async fn inspect_cut_off(
        &self,
        tool: &str,
        arguments: &RawJson,
        call: &CutOffCall,
    ) -> CutOffOutcome {
        match self.tools.inspect_cut_off(tool, arguments, call).await {
            CutOffOutcome::Happened(result) => {
                CutOffOutcome::Happened(self.secrets.redact_result(result))
            }
            CutOffOutcome::MayRun => CutOffOutcome::MayRun,
            CutOffOutcome::Unknown { mut known } => {
                self.secrets.redact(&mut known);
                CutOffOutcome::Unknown { known }
            }
        }
    }

    async fn settled(&self, tool: &str, task_id: &TaskId, call_uuid: Uuid) {
        self.tools.settled(tool, task_id, call_uuid).await;
    }

    async fn release(&self, task_id: &TaskId) {
        self.tools.release(task_id).await;
    }
}
