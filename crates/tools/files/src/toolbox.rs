//! All the tools of an agent, as one executor.
//!
//! | what comes back                  | what becomes of it                                        |
//! |----------------------------------|-----------------------------------------------------------|
//! | text over the tool's limit       | kept [aside](Aside), the model gets a preview and its id  |
//! | a secret that we know            | taken out, before anything is kept aside                  |
//! | characters that hide text        | shown as escapes, whatever tool they came from            |
//! | a tool nobody has                | [`ToolError::Unknown`]                                    |
//! | a call that is canceled already  | [`ToolError::Canceled`]; the tool does not learn of it    |

mod blocking;
mod handler;
mod reveal;

use std::collections::HashSet;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Waker};

use antiphon_core::port::ToolContext;
use antiphon_core::{
    Cancel, Effect, InputBlock, RawJson, TaskId, Tool, ToolCallId, ToolError, ToolExecutor,
    ToolResult,
};
use async_trait::async_trait;

use crate::aside::{OutputStore, ReadResult};
use crate::redacting::Secrets;
pub use blocking::{Stop, Stopped, blocking};
pub use handler::ToolHandler;
pub use reveal::reveal;

/// How much text a tool's result may have, in bytes, before it is kept aside.
pub const RESULT_BYTES_MAX: usize = 32 * 1024;

/// All the tools of an agent, as one executor.
pub struct Toolbox {
    /// In the order they were given, and `read_result` last.
    handlers: Vec<(Tool, Box<dyn ToolHandler>)>,
    executors: Vec<Arc<dyn ToolExecutor>>,
    aside: Arc<OutputStore>,
    secrets: Secrets,
}

/// Why a toolbox cannot be made.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ToolboxError {
    /// Leave one out, or rename it.
    #[error("there are two tools named `{name}`")]
    Duplicate {
        /// Which name.
        name: String,
    },
}

impl Toolbox {
    /// Puts tools together: single ones first, then those of other executors, in this order. Adds
    /// `read_result`, which reads what is kept `aside`.
    pub fn new(
        handlers: Vec<Box<dyn ToolHandler>>,
        executors: Vec<Arc<dyn ToolExecutor>>,
        aside: Arc<OutputStore>,
    ) -> Result<Self, ToolboxError> {
        let read_result: Box<dyn ToolHandler> = Box::new(ReadResult::new(Arc::clone(&aside)));
        let handlers: Vec<_> = handlers
            .into_iter()
            .chain([read_result])
            .map(|handler| (handler.definition(), handler))
            .collect();
        let own = handlers.iter().map(|(tool, _)| tool.name.clone());
        let others = executors.iter().flat_map(|executor| executor.tools());
        let mut names = HashSet::new();
        for name in own.chain(others.map(|tool| tool.name)) {
            if names.contains(&name) {
                return Err(ToolboxError::Duplicate { name });
            }
            names.insert(name);
        }
        Ok(Self { handlers, executors, aside, secrets: Secrets::default() })
    }

    /// The same, whose results hold none of these: neither what is said nor what is kept aside.
    /// What is said meanwhile and errors are [`Redacting`](crate::Redacting)'s.
    #[must_use]
    pub fn without(self, secrets: Secrets) -> Self {
        Self { secrets, ..self }
    }

    fn handler(&self, name: &str) -> Option<&dyn ToolHandler> {
        self.handlers.iter().find(|(tool, _)| tool.name == name).map(|(_, handler)| &**handler)
    }

    /// The executor that has `tool`. Its list may have changed since the toolbox was made: whoever
    /// comes first keeps a name.
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

    /// Leaves of a result what a model can bear.
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
        let preview = OutputStore::keep(&self.aside, task_id, call_id, texts.join("\n")).await;
        rest.insert(0, InputBlock::text(preview));
        ToolResult { content: rest, is_error: result.is_error }
    }
}

#[async_trait]
impl ToolExecutor for Toolbox {
    fn tools(&self) -> Vec<Tool> {
        let own = self.handlers.iter().map(|(tool, _)| tool.clone());
        let others = self.executors.iter().flat_map(|executor| executor.tools());
        let mut names = HashSet::new();
        own.chain(others).filter(|tool| names.insert(tool.name.clone())).collect()
    }

    fn effect(&self, tool: &str) -> Option<Effect> {
        match self.handler(tool) {
            Some(handler) => Some(handler.effect()),
            None => self.executor(tool)?.effect(tool),
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
        let result = revealed(self.secrets.redacted(result));
        Ok(self.bounded(result, bytes_max, task_id, call_id).await)
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
        let names: Vec<String> = self.tools().into_iter().map(|tool| tool.name).collect();
        f.debug_struct("Toolbox").field("tools", &names).finish_non_exhaustive()
    }
}

fn has_fired(cancel: &mut Cancel) -> bool {
    Pin::new(cancel).poll(&mut Context::from_waker(Waker::noop())).is_ready()
}

fn revealed(mut result: ToolResult) -> ToolResult {
    for block in &mut result.content {
        if let InputBlock::Text(block) = block {
            reveal(&mut block.text);
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
