//! All tools of an agent, as one executor.
//!
//! | case                              | outcome                                                              |
//! |-----------------------------------|----------------------------------------------------------------------|
//! | text over the tool's limit        | stored in the [`OutputStore`]; the model gets a preview and an id    |
//! | a known secret                    | replaced by `[redacted]`, before the result is stored                |
//! | characters that hide text         | replaced by escapes, whichever tool returned them                    |
//! | an unknown tool                   | [`ToolError::Unknown`]                                               |
//! | a call that is already canceled   | [`ToolError::Canceled`]; the tool is not called                      |

use std::borrow::Cow;
use std::collections::HashSet;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Waker};

use antiphon_core::port::{CutOffCall, CutOffOutcome, ToolContext};
use antiphon_core::redaction::Secrets;
use antiphon_core::{
    Cancel, Effect, InputBlock, Offer, RawJson, TaskId, Tool, ToolCallId, ToolError, ToolExecutor,
    ToolResult, escape_hidden_text,
};
use async_trait::async_trait;
use serde_json::Value;
use uuid::Uuid;

use crate::handler::{RESULT_BYTES_MAX, ToolHandler};
use crate::output_store::{OutputStore, ReadResult};

/// All tools of an agent, as one executor.
pub struct Toolbox {
    /// In the order given to [`Toolbox::new`], then `read_result`.
    handlers: Vec<(Arc<Tool>, Box<dyn ToolHandler>)>,
    executors: Vec<Arc<dyn ToolExecutor>>,
    outputs: Arc<OutputStore>,
    secrets: Secrets,
}

/// Why a toolbox cannot be created.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ToolboxError {
    /// Remove one of the two tools, or rename it.
    #[error("there are two tools named `{name}`")]
    Duplicate {
        /// The name that both tools have.
        name: String,
    },
}

impl Toolbox {
    /// Combines tools: `handlers` first, then the tools of `executors`, in this order. Adds
    /// `read_result`, which reads results stored in `outputs`.
    pub fn new(
        handlers: Vec<Box<dyn ToolHandler>>,
        executors: Vec<Arc<dyn ToolExecutor>>,
        outputs: Arc<OutputStore>,
    ) -> Result<Self, ToolboxError> {
        let read_result: Box<dyn ToolHandler> = Box::new(ReadResult::new(Arc::clone(&outputs)));
        let handlers: Vec<_> = handlers
            .into_iter()
            .chain([read_result])
            .map(|handler| (Arc::new(handler.definition()), handler))
            .collect();
        let own = handlers.iter().map(|(tool, _): &(Arc<Tool>, _)| Arc::clone(tool));
        let others = executors.iter().flat_map(|executor| executor.tools());
        let mut names = HashSet::new();
        for tool in own.chain(others) {
            if !names.insert(tool.name.clone()) {
                return Err(ToolboxError::Duplicate { name: tool.name.clone() });
            }
        }
        Ok(Self { handlers, executors, outputs, secrets: Secrets::default() })
    }

    /// Removes `secrets` from every result, also from stored ones. Progress and errors are redacted by
    /// [`RedactingTools`](crate::RedactingTools).
    #[must_use]
    pub fn redacting(self, secrets: Secrets) -> Self {
        Self { secrets, ..self }
    }

    fn handler(&self, name: &str) -> Option<&dyn ToolHandler> {
        self.handlers.iter().find(|(tool, _)| tool.name == name).map(|(_, handler)| &**handler)
    }

    /// The executor that has the tool. Its list may have changed since the toolbox was created: for
    /// equal names the first executor wins.
    fn executor(&self, name: &str) -> Option<&Arc<dyn ToolExecutor>> {
        self.executors.iter().find(|executor| executor.effect(name).is_some())
    }

    async fn run(
        &self,
        name: &str,
        arguments: &RawJson,
        context: ToolContext,
    ) -> Result<(ToolResult, usize), ToolError> {
        if let Some(handler) = self.handler(name) {
            return Ok((handler.call(arguments, context).await?, handler.result_bytes_max()));
        }
        match self.executor(name) {
            Some(executor) => {
                Ok((executor.execute(name, arguments, context).await?, RESULT_BYTES_MAX))
            }
            None => Err(ToolError::Unknown { name: name.to_owned() }),
        }
    }

    /// A result as the model gets it: without secrets and hidden text, and not too long.
    async fn presentable(
        &self,
        result: ToolResult,
        bytes_max: usize,
        task_id: TaskId,
        call_id: ToolCallId,
    ) -> ToolResult {
        let result = with_hidden_text_escaped(self.secrets.redact_result(result));
        self.bounded(result, bytes_max, task_id, call_id).await
    }

    /// Replaces text over `bytes_max` by a preview and stores the whole.
    async fn bounded(
        &self,
        result: ToolResult,
        bytes_max: usize,
        task_id: TaskId,
        call_id: ToolCallId,
    ) -> ToolResult {
        let is_text = |block: &InputBlock| matches!(block, InputBlock::Text(_));
        let bytes: usize = result.content.iter().map(text_bytes).sum();
        if bytes <= bytes_max {
            return result;
        }
        let (texts, mut rest): (Vec<_>, Vec<_>) = result.content.into_iter().partition(is_text);
        let texts: Vec<String> = texts.into_iter().filter_map(text_of).collect();
        let preview = OutputStore::store(&self.outputs, task_id, call_id, texts.join("\n")).await;
        rest.insert(0, InputBlock::text(preview));
        ToolResult { content: rest, is_error: result.is_error }
    }
}

#[async_trait]
impl ToolExecutor for Toolbox {
    fn tools(&self) -> Vec<Arc<Tool>> {
        let own = self.handlers.iter().map(|(tool, _)| Arc::clone(tool));
        let mut tools: Vec<Arc<Tool>> = own.collect();
        for executor in &self.executors {
            let offered = executor.tools();
            // Of two tools with one name, also of one executor, the first counts.
            let mut known: HashSet<&str> = tools.iter().map(|tool| tool.name.as_str()).collect();
            let new = offered.iter().filter(|tool| known.insert(tool.name.as_str()));
            let new: Vec<_> = new.map(Arc::clone).collect();
            tools.extend(new);
        }
        tools
    }

    fn effect(&self, tool: &str) -> Option<Effect> {
        match self.handler(tool) {
            Some(handler) => Some(handler.effect()),
            None => self.executor(tool)?.effect(tool),
        }
    }

    fn offer(&self, tool: &str, task_id: &TaskId) -> Offer {
        match (self.handler(tool), self.executor(tool)) {
            (Some(handler), _) => handler.offer(task_id),
            (None, Some(executor)) => executor.offer(tool, task_id),
            (None, None) => Offer::NotYet,
        }
    }

    async fn execute(
        &self,
        tool: &str,
        arguments: &RawJson,
        mut context: ToolContext,
    ) -> Result<ToolResult, ToolError> {
        if has_fired(&mut context.cancel) {
            return Err(ToolError::Canceled);
        }
        let (task_id, call_id) = (context.task_id.clone(), context.tool_call_id.clone());
        let (result, bytes_max) = self.run(tool, arguments, context).await?;
        Ok(self.presentable(result, bytes_max, task_id, call_id).await)
    }

    async fn start_note(&self, tool: &str, arguments: &RawJson, task_id: &TaskId) -> Option<Value> {
        match self.handler(tool) {
            Some(handler) => handler.start_note(arguments, task_id).await,
            None => self.executor(tool)?.start_note(tool, arguments, task_id).await,
        }
    }

    async fn inspect_cut_off(
        &self,
        tool: &str,
        arguments: &RawJson,
        call: &CutOffCall,
    ) -> CutOffOutcome {
        let look = match (self.handler(tool), self.executor(tool)) {
            (Some(handler), _) => handler.inspect_cut_off(arguments, call).await,
            (None, Some(executor)) => executor.inspect_cut_off(tool, arguments, call).await,
            (None, None) => CutOffOutcome::Unknown { known: String::new() },
        };
        let task_id = call.task_id.clone();
        let present = |result| {
            let call_id = ToolCallId::from(call.call_uuid);
            self.presentable(result, RESULT_BYTES_MAX, task_id, call_id)
        };
        match look {
            CutOffOutcome::Happened(result) => CutOffOutcome::Happened(present(result).await),
            CutOffOutcome::MayRun => CutOffOutcome::MayRun,
            CutOffOutcome::Unknown { known } => {
                let ToolResult { content, .. } = present(ToolResult::text(known)).await;
                let texts: Vec<String> = content.into_iter().filter_map(text_of).collect();
                CutOffOutcome::Unknown { known: texts.join("\n") }
            }
        }
    }

    async fn settled(&self, tool: &str, task_id: &TaskId, call_uuid: Uuid) {
        // No handler keeps anything.
        if self.handler(tool).is_none()
            && let Some(executor) = self.executor(tool)
        {
            executor.settled(tool, task_id, call_uuid).await;
        }
    }

    async fn release(&self, task_id: &TaskId) {
        for (_, handler) in &self.handlers {
            handler.release(task_id).await;
        }
        for executor in &self.executors {
            executor.release(task_id).await;
        }
    }
}

impl std::fmt::Debug for Toolbox {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let names: Vec<String> = self.tools().iter().map(|tool| tool.name.clone()).collect();
        f.debug_struct("Toolbox").field("tools", &names).finish_non_exhaustive()
    }
}

fn has_fired(cancel: &mut Cancel) -> bool {
    Pin::new(cancel).poll(&mut Context::from_waker(Waker::noop())).is_ready()
}

fn with_hidden_text_escaped(mut result: ToolResult) -> ToolResult {
    for block in &mut result.content {
        if let InputBlock::Text(block) = block
            && let Cow::Owned(escaped) = escape_hidden_text(&block.text)
        {
            block.text = escaped;
        }
    }
    result
}

fn text_bytes(block: &InputBlock) -> usize {
    match block {
        InputBlock::Text(block) => block.text.len(),
        InputBlock::Image(_) => 0,
    }
}

fn text_of(block: InputBlock) -> Option<String> {
    match block {
        InputBlock::Text(block) => Some(block.text),
        InputBlock::Image(_) => None,
    }
}
