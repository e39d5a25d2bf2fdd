//! Needs of the demo that its program fulfills: a client of the server, the journal, and the
//! sandbox. The demo uses nothing that another command could not use.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use antiphon_core::port::Journal;
use antiphon_core::{
    ApprovalId, Decision, Event, HandlingMode, ModelRef, PriceTable, Seq, TaskId, ToolResult,
};
use async_trait::async_trait;

use crate::DemoError;

/// The configuration a part of the demo runs with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConfigSource<'a> {
    /// The user's own.
    User,
    /// This file alone.
    File(&'a Path),
}

/// The program around the demo.
#[async_trait]
pub trait Host: Send + Sync {
    /// Prices of models under a configuration.
    fn prices(&self, config: ConfigSource<'_>) -> Result<PriceTable, DemoError>;

    /// A client of the server that owns the journal of the project in `root`; `None` when no server
    /// answers.
    async fn connect(&self, root: &Path) -> Result<Option<Arc<dyn ServerClient>>, DemoError>;

    /// Runs a shell command in `root`, in the sandbox of the agents. `Err` says why it cannot run, such
    /// as a missing sandbox; a command that failed is a result with `is_error`.
    async fn run_command(
        &self,
        root: &Path,
        config: ConfigSource<'_>,
        command: &str,
    ) -> Result<ToolResult, String>;

    /// The journal of the project in `root`, read-only.
    fn open_journal(&self, root: &Path) -> Result<Arc<dyn Journal>, DemoError>;

    /// The file of that journal.
    fn journal_path(&self, root: &Path) -> PathBuf;
}

/// A client of the server's HTTP API.
#[async_trait]
pub trait ServerClient: Send + Sync {
    /// Creates a task. It is durable when this returns.
    async fn create_task(
        &self,
        agent: &str,
        model: &ModelRef,
        prompt: &str,
    ) -> Result<TaskId, DemoError>;

    /// Sends a message to a task.
    async fn send_message(
        &self,
        task_id: &TaskId,
        text: &str,
        mode: HandlingMode,
    ) -> Result<(), DemoError>;

    /// Decides an approval. [`DemoError::Usage`] when it has been decided before.
    async fn decide(
        &self,
        approval_id: &ApprovalId,
        decision: Decision,
        comment: Option<&str>,
    ) -> Result<(), DemoError>;

    /// The events of a task behind `after`.
    async fn events(
        &self,
        task_id: &TaskId,
        after: Seq,
    ) -> Result<Box<dyn EventStream>, StreamLost>;
}

/// The events of one task, as a server sends them.
#[async_trait]
pub trait EventStream: Send {
    /// The next events, at least one. Cancel safe.
    async fn next(&mut self) -> Result<Vec<Event>, StreamLost>;
}

/// The stream ended before the task did: the server is gone, or does not know the task yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StreamLost;
