//! Tools whose words hold no secret that we know: provider keys, the server's token. What a call says has
//! the exact values taken out before anybody reads or keeps it; nothing else of it is changed.
//!
//! A value shorter than [`SECRET_BYTES_MIN`] is left: it would be found in words that mean something else.

mod flow;
mod secrets;

use std::sync::Arc;

use antiphon_core::port::{Progress, ToolContext};
use antiphon_core::{Effect, RawJson, TaskId, Tool, ToolError, ToolExecutor, ToolResult};
use async_trait::async_trait;

use flow::Flow;
pub use secrets::{SECRET_BYTES_MIN, Secrets};

/// Tools whose words hold no secret that we know.
pub struct Redacting {
    tools: Arc<dyn ToolExecutor>,
    secrets: Secrets,
}

impl Redacting {
    /// These tools, without these secrets.
    pub fn new(tools: Arc<dyn ToolExecutor>, secrets: Secrets) -> Self {
        Self { tools, secrets }
    }

    fn error(&self, mut error: ToolError) -> ToolError {
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
impl ToolExecutor for Redacting {
    fn tools(&self) -> Vec<Tool> {
        self.tools.tools()
    }

    fn effect(&self, tool: &str) -> Option<Effect> {
        self.tools.effect(tool)
    }

    async fn execute(
        &self,
        tool: &str,
        arguments: &RawJson,
        context: ToolContext,
    ) -> Result<ToolResult, ToolError> {
        let heard = context.progress.clone();
        let flow = Arc::new(Flow::new(self.secrets.clone()));
        let flowing = Arc::clone(&flow);
        let progress = Progress::to(move |text| {
            let safe = flowing.feed(text);
            if !safe.is_empty() {
                heard.say(&safe);
            }
        });
        let last = context.progress.clone();
        let done = self.tools.execute(tool, arguments, ToolContext { progress, ..context }).await;
        let rest = flow.finish();
        if !rest.is_empty() {
            last.say(&rest);
        }
        done.map(|result| self.secrets.redacted(result)).map_err(|error| self.error(error))
    }

    async fn release(&self, task_id: &TaskId) {
        self.tools.release(task_id).await;
    }
}
