//! An executor under test, with examples of calls.

use std::sync::Arc;

use antiphon_core::port::{Cancel, ToolContext, ToolError, ToolExecutor};
use antiphon_core::{RawJson, ToolResult};
use tokio::sync::oneshot;

use crate::suite::{During, Finding};

/// An executor, with an example for each of its tools.
#[derive(Clone)]
pub struct ToolFixture {
    pub(super) executor: Arc<dyn ToolExecutor>,
    pub(super) examples: Vec<Example>,
}

/// Example calls of a tool, valid and invalid. All arguments are JSON texts.
///
/// Every tool has `good` and `bad` arguments, except that a tool that always fails or never ends has no
/// `good` ones, and a tool without parameters has no `bad` ones.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Example {
    pub(super) tool: String,
    pub(super) good: Option<String>,
    pub(super) bad: Option<String>,
    pub(super) failing: Option<String>,
    pub(super) slow: Option<String>,
}

impl ToolFixture {
    /// An executor, without examples.
    pub fn new(executor: impl ToolExecutor + 'static) -> Self {
        Self { executor: Arc::new(executor), examples: Vec::new() }
    }

    /// Adds an example.
    pub fn example(mut self, example: Example) -> Self {
        self.examples.push(example);
        self
    }

    pub(super) async fn call(
        &self,
        tool: &str,
        arguments: &str,
        cancel: Cancel,
    ) -> Result<Result<ToolResult, ToolError>, Finding> {
        let arguments = RawJson::parse(arguments).during("the example's arguments")?;
        let context = ToolContext::trial(cancel);
        Ok(self.executor.execute(tool, &arguments, context).await)
    }

    /// The example of a tool.
    pub(super) fn example_of(&self, tool: &str) -> Result<&Example, Finding> {
        self.examples
            .iter()
            .find(|example| example.tool == tool)
            .ok_or_else(|| Finding::Broken(format!("the fixture has no example of `{tool}`")))
    }

    /// The tools with good arguments. Without any, the check is skipped.
    pub(super) fn good(&self) -> Result<Vec<(String, String)>, Finding> {
        self.having("good", |example| example.good.clone())
    }

    /// The tools with slow arguments. Without any, the check is skipped.
    pub(super) fn slow(&self) -> Result<Vec<(String, String)>, Finding> {
        self.having("slow", |example| example.slow.clone())
    }

    /// The tools with failing arguments. Without any, the check is skipped.
    pub(super) fn failing(&self) -> Result<Vec<(String, String)>, Finding> {
        self.having("failing", |example| example.failing.clone())
    }

    fn having(
        &self,
        what: &str,
        arguments: impl Fn(&Example) -> Option<String>,
    ) -> Result<Vec<(String, String)>, Finding> {
        let found: Vec<_> = self
            .examples
            .iter()
            .filter_map(|example| Some((example.tool.clone(), arguments(example)?)))
            .collect();
        if found.is_empty() {
            return Err(Finding::Skipped(format!("no example is {what}")));
        }
        Ok(found)
    }
}

impl Example {
    /// Arguments that the tool accepts.
    pub(super) fn acceptable(&self) -> Option<&String> {
        self.good.as_ref().or(self.slow.as_ref()).or(self.failing.as_ref())
    }

    /// An example of a tool, without arguments.
    pub fn of(tool: &str) -> Self {
        Self { tool: tool.to_owned(), good: None, bad: None, failing: None, slow: None }
    }

    /// Arguments with which the tool succeeds quickly, any number of times.
    pub fn good(mut self, arguments: &str) -> Self {
        self.good = Some(arguments.to_owned());
        self
    }

    /// An object that the tool must refuse: a field is missing or has the wrong type.
    pub fn bad(mut self, arguments: &str) -> Self {
        self.bad = Some(arguments.to_owned());
        self
    }

    /// Arguments with which the tool runs and fails.
    pub fn failing(mut self, arguments: &str) -> Self {
        self.failing = Some(arguments.to_owned());
        self
    }

    /// Arguments with which the tool does not end by itself within a minute.
    pub fn slow(mut self, arguments: &str) -> Self {
        self.slow = Some(arguments.to_owned());
        self
    }
}

/// Fires a [`Cancel`]. Dropping it fires it too.
pub(super) fn switch() -> (oneshot::Sender<()>, Cancel) {
    let (sender, receiver) = oneshot::channel();
    let signal = async { drop(receiver.await) };
    (sender, Cancel::when(signal))
}
