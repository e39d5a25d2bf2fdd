//! Events: entries of the journal, in the one JSON form that watchers, `--json` and replay
//! share.
//!
//! ```json
//! {"v":1,"position":7,"task_id":"…","seq":3,"at":"2026-02-18T12:00:00Z",
//!  "type":"state_changed","data":{"agent_id":"…","from":"idle","to":"thinking"}}
//! ```
//!
//! `position` orders the whole journal, `seq` the events of one task; both count from 1 without
//! a gap. `v` is raised when an existing event changes its meaning; an event of a later version
//! or of an unknown type is refused, never guessed at.

mod defaults;

use std::fmt;
use std::sync::Arc;

use chrono::{DateTime, Utc};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::port::Rule;
use crate::{
    AgentId, AgentName, AgentState, ApprovalId, CallableAgents, ContextScope, Decision, Effect,
    HandlingMode, InteractionContent, InteractionId, Join, Message, ModelOptions, ModelRef,
    PeerInputClass, RawJson, RenderMetadata, ResponseStatus, RunnerConfig, Sender, SessionId,
    TaskId, TaskLimits, TaskStatus, Tool, ToolCallId, Usage,
};

use defaults::{
    a_message, anybody, is_a_message, is_anybody, is_false, is_user, is_zero, present, said, user,
};

/// The version of the event format.
pub const EVENT_VERSION: u32 = 1;

/// A place in the journal. 0 is before the first event.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default, Serialize, Deserialize,
)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(transparent)]
pub struct Position(pub u64);

/// A place among the events of one task. 0 is before the first event.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default, Serialize, Deserialize,
)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(transparent)]
pub struct Seq(pub u64);

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Display for Seq {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// One entry of the journal.
#[derive(Debug, Clone, PartialEq)]
pub struct Event {
    /// Where in the journal.
    pub position: Position,
    /// Whose.
    pub task_id: TaskId,
    /// Where among that task's events.
    pub seq: Seq,
    /// When.
    pub at: DateTime<Utc>,
    /// What happened.
    pub body: EventBody,
}

macro_rules! events {
    ($( $(#[$doc:meta])* $name:ident = $word:literal { $( $(#[$field_doc:meta])* $field:ident : $type:ty, )* } )*) => {
        /// What happened.
        #[derive(Debug, Clone, PartialEq, Serialize)]
        #[serde(untagged)]
        #[expect(
            clippy::large_enum_variant,
            reason = "the largest is the creation of a task, which every task begins with"
        )]
        pub enum EventBody {
            $( $(#[$doc])* $name($name), )*
        }

        $(
            $(#[$doc])*
            #[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
            pub struct $name {
                $(
                    $(#[$field_doc])*
                    pub $field: $type,
                )*
            }

            impl From<$name> for EventBody {
                fn from(body: $name) -> Self {
                    Self::$name(body)
                }
            }
        )*

        impl EventBody {
            /// Every `type` there is.
            pub const TYPES: &'static [&'static str] = &[$( $word, )*];

            /// Its `type` in JSON.
            pub fn event_type(&self) -> &'static str {
                match self {
                    $( Self::$name(_) => $word, )*
                }
            }

            /// Reads the `data` of an event of type `word`.
            pub fn parse(word: &str, data: &str) -> Result<Self, EventError> {
                let malformed = |error: serde_json::Error| EventError::Malformed {
                    event_type: word.to_owned(),
                    reason: error.to_string(),
                };
                match word {
                    $( $word => serde_json::from_str(data).map(Self::$name).map_err(malformed), )*
                    _ => Err(EventError::UnknownType { found: word.to_owned() }),
                }
            }
        }
    };
}

events! {
    /// A task was accepted. Always the first event of its task.
    TaskCreated = "task_created" {
        /// Who works on it.
        agent: String,
        /// The conversation it belongs to.
        session_id: SessionId,
        /// The task that dispatched it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        parent: Option<TaskId>,
        /// The task at the top of its tree; itself when absent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        root: Option<TaskId>,
        /// How many tasks are above it.
        #[serde(default, skip_serializing_if = "is_zero")]
        depth: u32,
        /// What was said before it, in another task.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        history: Option<HistoryRef>,
        /// Who answers; a task that is taken up again asks the same.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        model: Option<ModelRef>,
        /// Who answers when that one cannot, in order.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        fallbacks: Vec<ModelRef>,
        /// The scene.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        system_prompt: String,
        /// The tools it may use; all there are when absent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        tools: Option<Vec<String>>,
        /// Tools that the client offered who asked for it: it runs them itself.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        external_tools: Vec<Tool>,
        /// The agents it may call; any when absent.
        #[serde(default = "anybody", skip_serializing_if = "is_anybody")]
        agents: CallableAgents,
        /// Who works on it, when that is not this orchestrator.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        runner: Option<RunnerConfig>,
        /// It is an agent's inbox: what it does is never done, and it ends when it is stopped.
        #[serde(default, skip_serializing_if = "is_false")]
        standing: bool,
        /// How far it may go.
        #[serde(default, skip_serializing_if = "TaskLimits::is_none")]
        limits: TaskLimits,
        /// JSON Schema of its result.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        output_schema: Option<RawJson>,
        /// How its model is asked.
        #[serde(default, skip_serializing_if = "ModelOptions::is_usual")]
        manner: ModelOptions,
        /// The key that pays for it, by its id; the owner when absent. Whoever works for a task is
        /// paid by the same.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        payer: Option<String>,
        /// How its model is reached, in the words of the program that accepted it: a script, a
        /// recording. Whoever takes the task up again reads it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        route: Option<RawJson>,
    }
    /// A task got a new status. After a terminal one nothing else of that task follows.
    StatusChanged = "status_changed" {
        /// The new one.
        status: TaskStatus,
        /// The result, or the reason. A result of `null` is one.
        #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "present")]
        detail: Option<Value>,
        /// What a task that is `input_required` waits for.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        waiting_for: Option<WaitingFor>,
    }
    /// A live agent moved along its lap.
    StateChanged = "state_changed" {
        /// Which.
        agent_id: AgentId,
        /// From where.
        from: AgentState,
        /// To where.
        to: AgentState,
    }
    /// A message joined the conversation.
    MessageAppended = "message_appended" {
        /// The message.
        message: Arc<Message>,
        /// It was waiting in the inbox.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        queued: Option<InteractionId>,
    }
    /// Something arrived and waits for its turn.
    MessageQueued = "message_queued" {
        /// Which.
        id: InteractionId,
        /// When it may join the conversation.
        mode: HandlingMode,
        /// Who sent it.
        #[serde(default = "user", skip_serializing_if = "is_user")]
        from: Sender,
        /// What it says.
        #[serde(alias = "message", deserialize_with = "said")]
        content: InteractionContent,
        /// What it is to the orchestrator, decided when it arrived.
        #[serde(default = "a_message", skip_serializing_if = "is_a_message")]
        class: PeerInputClass,
        /// How it is shown and how urgent it is.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        render_metadata: Option<RenderMetadata>,
        /// It wakes nobody: whoever is awake reads it.
        #[serde(default, skip_serializing_if = "is_false")]
        quiet: bool,
        /// The task that waits for the answer.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reply_to: Option<TaskId>,
        /// When an answer comes too late.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        until: Option<DateTime<Utc>>,
        /// What waited and need not be read any more, now that this is here.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        replaces: Option<InteractionId>,
        /// How often agents had written to each other before, since anything else made them.
        #[serde(default, skip_serializing_if = "is_zero")]
        hops: u32,
        /// What came with an event from outside: for programs, and not for the model.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        payload: Option<RawJson>,
    }
    /// A call asks a peer for something. The request is delivered behind it, under this id.
    RequestSent = "request_sent" {
        /// Which call.
        tool_call_id: ToolCallId,
        /// Which request.
        id: InteractionId,
        /// Whom.
        to: AgentName,
        /// For what.
        intent: String,
        /// With what.
        #[serde(default, skip_serializing_if = "Value::is_null")]
        params: Value,
        /// When the answer is no.
        until: DateTime<Utc>,
        /// The call waits for the answer.
        #[serde(default, skip_serializing_if = "is_false")]
        waits: bool,
    }
    /// An answer to a request. It is delivered behind it.
    Replied = "replied" {
        /// To which.
        in_reply_to: InteractionId,
        /// Who asked.
        to: Sender,
        /// The task that waits for it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reply_to: Option<TaskId>,
        /// How far it got.
        status: ResponseStatus,
        /// What came of it.
        #[serde(default, skip_serializing_if = "Value::is_null")]
        result: Value,
    }
    /// Somebody is asked whether a call may run.
    ApprovalRequested = "approval_requested" {
        /// The question.
        approval_id: ApprovalId,
        /// Which call.
        tool_call_id: ToolCallId,
        /// Which tool.
        tool_name: String,
        /// With what.
        arguments: RawJson,
        /// Why it is asked.
        reason: String,
        /// What would be allowed beyond this call.
        rule: Rule,
        /// When the answer is no.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        expires_at: Option<DateTime<Utc>>,
    }
    /// Somebody answered, or nobody did in time.
    ApprovalDecided = "approval_decided" {
        /// The question.
        approval_id: ApprovalId,
        /// The answer.
        decision: Decision,
        /// Who.
        by: String,
        /// What they said to it; the model reads it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        comment: Option<String>,
    }
    /// A call was not allowed to run.
    ToolRefused = "tool_refused" {
        /// Which call.
        tool_call_id: ToolCallId,
        /// Which tool.
        tool_name: String,
        /// Why.
        reason: String,
    }
    /// A call is about to run. What it does to the world may have begun.
    ToolStarted = "tool_started" {
        /// Which call.
        tool_call_id: ToolCallId,
        /// Which tool.
        tool_name: String,
        /// What recovery may do about it.
        effect: Effect,
    }
    /// A call goes out to the client that offered its tool.
    ToolRequested = "tool_requested" {
        /// Which call.
        tool_call_id: ToolCallId,
        /// Which tool.
        tool_name: String,
        /// With what.
        arguments: RawJson,
        /// When somebody is to look why there is no result.
        until: DateTime<Utc>,
    }
    /// A call dispatches agents. Their tasks are created behind it, under these ids.
    Dispatched = "dispatched" {
        /// Which call.
        tool_call_id: ToolCallId,
        /// What the children see first.
        #[serde(default)]
        context: ContextScope,
        /// How the task waits for them.
        join: Join,
        /// Their tasks, in the order of the targets.
        children: Vec<TaskId>,
    }
    /// A call waits for tasks that were dispatched before.
    Awaited = "awaited" {
        /// Which call.
        tool_call_id: ToolCallId,
        /// For which tasks.
        tasks: Vec<TaskId>,
        /// For how many of them.
        mode: Awaiting,
        /// For how long.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        until: Option<DateTime<Utc>>,
    }
    /// Another agent takes over: what it delivers is what the task delivers.
    HandedOver = "handed_over" {
        /// The call that did it.
        tool_call_id: ToolCallId,
        /// Who works on it from here on.
        agent: String,
        /// Who answers from here on.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        model: Option<ModelRef>,
        /// Who answers when that one cannot, in order.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        fallbacks: Vec<ModelRef>,
        /// The scene from here on.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        system_prompt: String,
        /// The tools it may use from here on.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        tools: Option<Vec<String>>,
        /// The agents it may call from here on.
        #[serde(default = "anybody", skip_serializing_if = "is_anybody")]
        agents: CallableAgents,
    }
    /// What happened elsewhere is written down here up to this place.
    Relayed = "relayed" {
        /// The task there.
        task_id: TaskId,
        /// Its last event that is written down here.
        seq: Seq,
    }
    /// A model was paid.
    UsageRecorded = "usage_recorded" {
        /// Which model.
        model: String,
        /// What it took.
        usage: Usage,
        /// What for, if it was not a turn.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        purpose: Option<Purpose>,
    }
    /// Somebody allowed more to be spent, on the day that this was written and in its month.
    BudgetRaised = "budget_raised" {
        /// By how much, in billionths of a US dollar.
        nano_usd: u64,
        /// The key whose limits are raised, by its id; those of all together when absent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        payer: Option<String>,
        /// Who.
        by: String,
        /// What they said to it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        comment: Option<String>,
    }
    /// What the model delivered is not what its task asks for. It gets another try.
    OutputRejected = "output_rejected" {
        /// What is wrong with it; the model reads it.
        reason: String,
    }
    /// From here on the model reads a summary in place of the older messages. The journal keeps
    /// them all.
    Compacted = "compacted" {
        /// What it reads instead.
        summary: String,
        /// The first message it still reads as it was, counted from 0 over the conversation.
        kept_from: u64,
    }
}

/// What was said in another task, up to one of its events.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HistoryRef {
    /// Which task.
    pub task_id: TaskId,
    /// Its last event that counts.
    pub seq: Seq,
}

/// What a task waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum WaitingFor {
    /// Somebody to say whether a call may run.
    Approval,
    /// Somebody to let it go on.
    Resume,
    /// The client that offered a tool, which has not said what came of a call.
    ToolResult,
    /// A new day or month, or somebody to let more be spent.
    Budget,
}

/// For how many tasks a call waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Awaiting {
    /// For the first that ends.
    Any,
    /// For every one.
    #[default]
    All,
}

/// What a model was paid for, if not for a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Purpose {
    /// For a summary of what was said.
    Compaction,
}

impl MessageAppended {
    /// A message that was not waiting.
    pub fn new(message: impl Into<Arc<Message>>) -> Self {
        Self { message: message.into(), queued: None }
    }
}

impl StatusChanged {
    /// A new status, and nothing to say about it.
    pub fn new(status: TaskStatus) -> Self {
        Self { status, detail: None, waiting_for: None }
    }
}

impl TaskCreated {
    /// A task of its own, without limits.
    pub fn new(agent: impl Into<String>, session_id: SessionId) -> Self {
        Self {
            agent: agent.into(),
            session_id,
            parent: None,
            root: None,
            depth: 0,
            history: None,
            model: None,
            fallbacks: Vec::new(),
            system_prompt: String::new(),
            tools: None,
            external_tools: Vec::new(),
            agents: CallableAgents::Any,
            runner: None,
            standing: false,
            limits: TaskLimits::default(),
            output_schema: None,
            manner: ModelOptions::default(),
            payer: None,
            route: None,
        }
    }
}

impl EventBody {
    /// Whether the loop of a task writes it, wherever that runs. The rest is for people and for the
    /// orchestrator.
    pub fn is_of_the_loop(&self) -> bool {
        match self {
            Self::StatusChanged(_)
            | Self::StateChanged(_)
            | Self::MessageAppended(_)
            | Self::ApprovalRequested(_)
            | Self::ToolRefused(_)
            | Self::ToolStarted(_)
            | Self::UsageRecorded(_)
            | Self::OutputRejected(_)
            | Self::Compacted(_) => true,
            Self::TaskCreated(_)
            | Self::MessageQueued(_)
            | Self::ApprovalDecided(_)
            | Self::ToolRequested(_)
            | Self::Dispatched(_)
            | Self::Awaited(_)
            | Self::HandedOver(_)
            | Self::RequestSent(_)
            | Self::Replied(_)
            | Self::BudgetRaised(_)
            | Self::Relayed(_) => false,
        }
    }

    /// Whether it only says that something came in: whoever writes on behind it need not have seen
    /// it.
    pub fn is_arrival(&self) -> bool {
        matches!(self, Self::MessageQueued(_))
    }

    /// Whether nothing of its task can follow it.
    pub fn ends_task(&self) -> bool {
        matches!(self, Self::StatusChanged(StatusChanged { status, .. }) if status.is_terminal())
    }
}

/// Why a JSON value is no event.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EventError {
    /// Written by a later Antiphon.
    #[error("event version {found} is newer than this program knows ({EVENT_VERSION})")]
    UnknownVersion {
        /// Its version.
        found: u32,
    },
    /// Written by a later Antiphon, or not by Antiphon.
    #[error("unknown event type `{found}`, expected one of {}", EventBody::TYPES.join(", "))]
    UnknownType {
        /// Its type.
        found: String,
    },
    /// The type is known, its data is not what it should be.
    #[error("malformed `{event_type}` event: {reason}")]
    Malformed {
        /// Its type.
        event_type: String,
        /// Which field and why.
        reason: String,
    },
}

#[derive(Serialize)]
struct EventOut<'a> {
    v: u32,
    position: Position,
    task_id: &'a TaskId,
    seq: Seq,
    at: DateTime<Utc>,
    #[serde(rename = "type")]
    event_type: &'static str,
    data: &'a EventBody,
}

#[derive(Deserialize)]
struct EventIn {
    v: u32,
    position: Position,
    task_id: TaskId,
    seq: Seq,
    at: DateTime<Utc>,
    #[serde(rename = "type")]
    event_type: String,
    data: Box<RawValue>,
}

impl Serialize for Event {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        EventOut {
            v: EVENT_VERSION,
            position: self.position,
            task_id: &self.task_id,
            seq: self.seq,
            at: self.at,
            event_type: self.body.event_type(),
            data: &self.body,
        }
        .serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Event {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let wire = EventIn::deserialize(deserializer)?;
        if wire.v > EVENT_VERSION {
            return Err(de::Error::custom(EventError::UnknownVersion { found: wire.v }));
        }
        let body =
            EventBody::parse(&wire.event_type, wire.data.get()).map_err(de::Error::custom)?;
        Ok(Self {
            position: wire.position,
            task_id: wire.task_id,
            seq: wire.seq,
            at: wire.at,
            body,
        })
    }
}
