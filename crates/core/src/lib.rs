//! The domain of Antiphon.
//!
//! Every noun of Antiphon is a type here, with its rules, its defaults and its JSON. Every external
//! dependency is a trait in [`port`]. There is no I/O in this crate, no
//! async runtime and no HTTP: read and test it as the specification of the system.
//!
//! # Vocabulary
//!
//! | word            | type                                                     |
//! |-----------------|----------------------------------------------------------|
//! | message, block  | [`Message`], [`InputBlock`], [`AssistantBlock`]          |
//! | request, answer | [`Request`], [`MessageStream`], [`StreamEvent`]          |
//! | price, cost     | [`PriceTable`], [`Cost`], [`Usage`]                      |
//! | budget          | [`SpendLimits`], [`Spending`], [`AccountSpending`]                 |
//! | tool            | [`Tool`], [`Effect`], [`ToolResult`]                     |
//! | session         | [`Session`]                                              |
//! | agent           | [`AgentDefinition`], [`AgentState`], [`AgentStatus`]     |
//! | task            | [`TaskStatus`], [`AgentResult`], [`TaskSnapshot`]        |
//! | invocation      | [`Invocation`], [`ValidInvocation`], [`InvocationResult`]|
//! | interaction     | [`Interaction`], [`classify`], [`render`]                |
//! | command         | [`OrchestratorRequest`], [`Command`]                     |
//! | event           | [`Event`], [`EventBody`], [`Position`]                   |
//! | canonical chat  | [`CanonicalMessage`], [`ChatCompletionRequest`]          |
//!
//! # To add an adapter
//!
//! Implement one of the traits in [`port`], whose documentation is its contract, and run the
//! suite of `antiphon-conformance` for it. Then wire it in the binary; nothing else
//! changes.

#[cfg(not(target_os = "linux"))]
compile_error!("Antiphon runs on Linux only: its sandbox and process handling need a Linux kernel");

mod agent;
mod budget;
mod conversation;
mod error;
mod event;
mod health;
mod hidden_text;
mod interaction;
pub mod port;
pub mod redaction;
#[cfg(feature = "schema")]
pub mod schema;
mod task;
mod value;

pub use agent::definition::{
    AgentDefinition, CONTEXT_BYTES_MAX, CallableAgents, DESCRIPTION_BYTES_MAX, Profile, Runtime,
};
pub use agent::{AgentState, AgentStatus};
pub use budget::price::{Cost, Price, PriceError, PriceTable, UsdPerMillion};
pub use budget::spend_window::SpendWindow;
pub use budget::spending::{
    Account, AccountSpending, DayRange, RaisedLimit, Spending, SpendingFold,
};
pub use budget::status::{BudgetStatus, ScopeStatus, WindowStatus};
pub use budget::{PerWindow, SpendExceeded, SpendLimits};
pub use conversation::chat::{
    CanonicalHeader, CanonicalMessage, ChatCompletionRequest, ChatCompletionResponse, Role,
    TokenUsage,
};
pub use conversation::environment_block::{
    ENVIRONMENT_BEGIN, ENVIRONMENT_END, without_environment,
};
pub use conversation::message::{
    AssistantBlock, AssistantMessage, IMAGE_BYTES_MAX, ImageBlock, InputBlock, Message,
    MessageError, OpaqueBlock, Signature, TextBlock, ThinkingBlock, ToolArguments, ToolCallBlock,
    ToolResultMessage, UserMessage,
};
pub use conversation::message_list::MessageList;
pub use conversation::model_switch::{HistoryConverter, HistoryMark, IdRule, for_model, steps};
pub use conversation::request::{ModelOptions, Request, Temperature, TemperatureError, ToolChoice};
pub use conversation::sampling::{
    METADATA_MAX, Penalty, ReasoningEffort, STOP_SEQUENCES_MAX, Sampling, SamplingError, TopP,
};
pub use conversation::sendable_history::sendable;
pub use conversation::session::Session;
pub use conversation::stream::{MessageStream, NotStarted, StreamError, StreamEvent};
pub use conversation::tool::{Effect, Offer, SKILL, Tool, ToolResult};
pub use conversation::usage::{StopReason, Usage};
pub use conversation::{message, stream};
pub use error::{DomainError, ErrorCode, ErrorResponse};
pub use event::peer_tasks::PeerTasks;
pub use event::summary::{LiveAgent, ORDERS, QueuedMessage, SessionSummary, TaskSummary};
pub use event::{
    ApprovalDecided, ApprovalRequested, Awaited, Awaiting, BudgetRaised, Compacted, Dispatched,
    EVENT_VERSION, Event, EventBody, EventError, EventVisitor, HandedOver, HistoryRef,
    ImportedTimes, MessageAppended, MessageQueued, OutageWait, OutputRejected, PEER_UNAVAILABLE,
    PeerCancel, PeerWait, Position, Purpose, Relayed, Replied, RequestSent, Seq, StateChanged,
    StatusChanged, TaskCreated, TaskRestored, TodoChanged, ToolRefused, ToolRequested, ToolStarted,
    UsageRecorded, WaitingFor,
};
pub use health::{HealthProblem, HealthState, HealthStatus};
pub use hidden_text::{escape_for_terminal, escape_hidden_text, escaped, visible};
pub use interaction::control_request::{
    CONTROL_REQUEST, Command, CommandError, OrchestratorRequest,
};
pub use interaction::{
    HandlingMode, InboxInteraction, Interaction, InteractionContent, LifecycleIntent, Order,
    OrderError, OrderResult, OrderStatus, PeerInputCandidate, PeerInputClass, Provenance,
    RenderClass, RenderMetadata, ResponseStatus, Salience, Sender, SilentIntents, Wait, Wake,
    classify, external_event_text, render,
};
pub use port::{Cancel, Piece, PieceSource, Provider, ProviderError, ToolError, ToolExecutor};
pub use task::approval::{Approval, ApprovalReply, ApprovalStatus, Decision};
pub use task::invocation::{
    AgentRef, ContextScope, Executor, ExecutorHint, Invocation, InvocationError, Join, LeftOutTool,
    RunnerConfig, TARGETS_MAX, Target, ToolPolicy, ValidInvocation,
};
pub use task::plan::{Plan, PlanStatus, TaskAccess};
pub use task::question::{
    ANSWER_BYTES_MAX, Answer, CHOICE_DESCRIPTION_BYTES_MAX, CHOICES_MAX, Choice, ChoiceQuestion,
    LABEL_BYTES_MAX, PlanQuestion, QUESTION_BYTES_MAX, Question, QuestionError,
};
pub use task::runs_on::RunsOn;
pub use task::todo::{TODO_ITEMS_MAX, TODO_TEXT_BYTES_MAX, TodoError, TodoItem, TodoStatus};

pub use task::{AgentResult, InvocationResult, TaskLimits, TaskSnapshot, TaskStatus};
pub use value::id::{
    AgentId, ApprovalId, IdError, InteractionId, MessageId, SessionId, TEXT_ID_BYTES_MAX, TaskId,
    ToolCallId,
};
pub use value::model_ref::{MODEL_REF_BYTES_MAX, ModelRef, ModelRefError};
pub use value::name::{AgentName, NAME_BYTES_MAX, NameError, RESERVED_NAMES, SourceName};
pub use value::raw_json::{DEPTH_MAX, RawJson, RawJsonError};
