//! Ports: the external dependencies of the orchestrator, as traits.
//!
//! An adapter implements one of these, passes the suite of `antiphon-conformance` for it, and
//! is wired in the binary. Each port has one error type; each variant says what the caller
//! can do.

mod agents;
mod bus;
mod cancel;
mod clock;
mod gate;
mod journal;
mod order_executor;
mod provider;
mod runner;
mod task_filter;
mod tool_executor;
mod vector_store;

pub use agents::{AgentList, Agents, PromptSource, UntrustedAgent};
pub use bus::{
    Bus, BusError, Claim, Delivery, Subscription, TOPIC_BYTES_MAX, Topic, TopicError, WorkItem,
};
pub use cancel::Cancel;
pub use clock::{BootTime, Clock, IdSource, RandomIds, SystemClock};
pub use gate::{Gate, GateRequest, GateVerdict, Rule};
pub use journal::{
    APPEND_EVENTS_MAX, AgentQuery, Append, AppendFault, Appended, ApprovalQuery, ApprovalSelector,
    Checkpoint, Expected, HISTORY_TASKS_MAX, History, HistoryCollector, HistoryExtent,
    IdempotencyKey, Journal, JournalError, JournalIndex, JournalLog, KEY_BYTES_MAX, Page,
    QueuedQuery, Read, SessionQuery, SingleTaskJournal, TaskHead, TaskIndex, TaskJournal,
    TaskQuery, TaskSelector, missing_task, too_many_tasks,
};
pub use order_executor::OrderExecutor;
pub use provider::{Piece, PieceSource, Provider, ProviderError, StopSignal, TimeoutPhase};
pub use runner::{
    AnswerChange, AnswerDisplay, DispatchPermission, HiddenAnswer, InputPermit, InputSubject,
    NoTaskUpdates, RemoteError, RemoteTask, Runner, RunnerError, RunnerInput, RunnerTask,
    TaskUpdates, UncheckedInput,
};
pub use task_filter::TaskFilter;
pub use tool_executor::{
    CutOffCall, CutOffOutcome, Progress, START_NOTE_BYTES_MAX, ToolContext, ToolError, ToolExecutor,
};
pub use vector_store::{
    Embedder, EmbedderError, Embedding, EmbeddingError, Metadata, VectorHit, VectorSearch,
    VectorStore, VectorStoreError,
};
