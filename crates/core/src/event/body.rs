//! The list of events and their fields.

use std::sync::Arc;

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::defaults::{
    any_agent, content, is_any_agent, is_false, is_message, is_user, is_zero, message_class,
    present, user,
};
use super::{EventError, Seq};
use crate::port::{BootTime, Rule};
use crate::{
    AgentId, AgentName, AgentState, Answer, ApprovalId, CallableAgents, CanonicalHeader,
    ContextScope, Decision, Effect, HandlingMode, InteractionContent, InteractionId, Join,
    LeftOutTool, Message, ModelOptions, ModelRef, PeerInputClass, Provenance, Question, RawJson,
    RenderMetadata, ResponseStatus, RunnerConfig, Sender, SessionId, TaskAccess, TaskId,
    TaskLimits, TaskStatus, TaskSummary, TodoItem, Tool, ToolCallId, Usage,
};

macro_rules! events {
    ($( $(#[$doc:meta])* $name:ident $method:ident = $word:literal { $( $(#[$field_doc:meta])* $field:ident : $type:ty, )* } )*) => {
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

        /// Handles events by type. Every method does nothing unless it is implemented, so that a
        /// new event changes only the visitors that handle it.
        pub trait EventVisitor {
            $(
                $(#[$doc])*
                fn $method(&mut self, event: &$name) {
                    let _ = event;
                }
            )*
        }

        impl EventBody {
            /// Every `type` of an event.
            pub const TYPES: &'static [&'static str] = &[$( $word, )*];

            /// The `type` of the event in JSON.
            pub fn event_type(&self) -> &'static str {
                match self {
                    $( Self::$name(_) => $word, )*
                }
            }

            /// Calls the method of the visitor for this event.
            pub fn visit(&self, visitor: &mut impl EventVisitor) {
                match self {
                    $( Self::$name(event) => visitor.$method(event), )*
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
    /// The orchestrator accepted a task. Always the first event of its task.
    TaskCreated task_created = "task_created" {
        /// Name of the agent that works on the task.
        agent: String,
        /// Id of the session the task belongs to.
        session_id: SessionId,
        /// Id of the task that dispatched it. Absent for a root task.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        parent: Option<TaskId>,
        /// Id of the root of its tree. Absent: the task is the root.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        root: Option<TaskId>,
        /// Number of tasks above it; 0 for a root task.
        #[serde(default, skip_serializing_if = "is_zero")]
        depth: u32,
        /// Messages of another task that come before its own. Absent: none.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        history: Option<HistoryRef>,
        /// Model of the task; a resumed task uses the same. Absent: the task needs no model.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        model: Option<ModelRef>,
        /// Models to use, in order, when the first one is not available.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        fallbacks: Vec<ModelRef>,
        /// System prompt of the agent. Absent: empty.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        system_prompt: String,
        /// Names of the tools the agent may use. Absent: every tool.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        tools: Option<Vec<String>>,
        /// Names of tools that change something and whose calls of one answer run side by side.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        parallel_tools: Vec<String>,
        /// Tools that the client offered and runs itself.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        external_tools: Vec<Arc<Tool>>,
        /// Whether agents that it calls get none of the client's tools. Absent: `false`.
        #[serde(default, skip_serializing_if = "is_false")]
        keeps_client_tools: bool,
        /// Agents the agent may call. Absent: any agent.
        #[serde(default = "any_agent", skip_serializing_if = "is_any_agent")]
        agents: CallableAgents,
        /// Runner that works on the task. Absent: this orchestrator.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        runner: Option<RunnerConfig>,
        /// Whether the task is a resident task: it reads the inbox of its agent, and ends only when
        /// it is stopped. Absent: `false`.
        #[serde(rename = "standing", default, skip_serializing_if = "is_false")]
        resident: bool,
        /// Limits of the task. Absent: no limit.
        #[serde(default, skip_serializing_if = "TaskLimits::is_none")]
        limits: TaskLimits,
        /// JSON Schema of the result. Absent: any result.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        output_schema: Option<RawJson>,
        /// Options of the model calls. Absent: the defaults of the provider.
        #[serde(rename = "manner", default, skip_serializing_if = "ModelOptions::is_default")]
        model_options: ModelOptions,
        /// Id of the API key that pays for the task and for every task below it. Absent: the owner
        /// pays.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        payer: Option<String>,
        /// How the program that accepted the task reaches its model: a script, a recording. A
        /// resumed task uses the same. Absent: as configured.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        route: Option<RawJson>,
        /// Where the order to start it came from, stamped when it was accepted. Absent: unknown.
        #[serde(default, skip_serializing_if = "Provenance::is_unknown")]
        provenance: Provenance,
        /// The canonical messages that the task was given, in their order and without content. Absent: none.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        canonical: Vec<CanonicalHeader>,
        /// Whether the client asked that nothing can be looked up as a response or continued behind it. Absent: `false`.
        #[serde(default, skip_serializing_if = "is_false")]
        unstored: bool,
        /// Times of the conversation that was imported into the task, as its file says. Absent: it was not imported.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        imported: Option<ImportedTimes>,
        /// The moment of the creation by a clock that cannot be set, for a task with a time limit.
        /// Absent: unknown.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        boot_time: Option<BootTime>,
        /// Whether the client that created it follows it: after a restart, it and the tasks below it go on when
        /// that client follows it again. Absent: `false`.
        #[serde(default, skip_serializing_if = "is_false")]
        followed: bool,
        /// The task on a peer that this one cancels there. Such a task has no model. Absent: none.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cancels: Option<PeerCancel>,
        /// What it may do within its permissions. Absent: what they allow.
        #[serde(default, skip_serializing_if = "TaskAccess::is_permitted")]
        access: TaskAccess,
    }
    /// The task came from a file with `antiphon restore`. Its route, its runner, the rules that were
    /// allowed for it, the answers to its approvals and its open requests no longer count, and who sent the
    /// messages before this event is unknown: another user may have made them.
    TaskRestored task_restored = "task_restored" {
        /// Name of the file.
        file: String,
    }
    /// A task got a new status. No event of the task follows a terminal status.
    StatusChanged status_changed = "status_changed" {
        /// The new status.
        status: TaskStatus,
        /// The result of a completed task, or the reason of another status. Absent: none. `null` is
        /// a result.
        #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "present")]
        detail: Option<Value>,
        /// What the task waits for: an `input_required` task for a person or a client, a `running`
        /// task for its `model`. Absent otherwise.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        waiting_for: Option<WaitingFor>,
    }
    /// A live agent changed its state.
    StateChanged state_changed = "state_changed" {
        /// Id of the live agent.
        agent_id: AgentId,
        /// State before the change.
        from: AgentState,
        /// State after the change.
        to: AgentState,
    }
    /// A message joined the conversation.
    MessageAppended message_appended = "message_appended" {
        /// The message.
        message: Arc<Message>,
        /// Id of the queued message that it was in the inbox. Absent: it was not queued.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        queued: Option<InteractionId>,
        /// Whether it is an answer that broke off and that the model is asked for again: another one
        /// takes its place, and no model reads this one. Absent: `false`.
        #[serde(default, skip_serializing_if = "is_false")]
        superseded: bool,
    }
    /// An interaction arrived and waits in the inbox of the task.
    MessageQueued message_queued = "message_queued" {
        /// Id of the interaction.
        id: InteractionId,
        /// When it may join the conversation.
        mode: HandlingMode,
        /// Sender. Absent: the user.
        #[serde(default = "user", skip_serializing_if = "is_user")]
        from: Sender,
        /// Content, as it arrived.
        #[serde(alias = "message", deserialize_with = "content")]
        content: InteractionContent,
        /// Class, decided on arrival. Absent: `actionable_message`.
        #[serde(default = "message_class", skip_serializing_if = "is_message")]
        class: PeerInputClass,
        /// How to show it and how urgent it is. Absent: the defaults of its class.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        render_metadata: Option<RenderMetadata>,
        /// Whether it waits until the agent works for another reason. Absent: `false`.
        #[serde(default, skip_serializing_if = "is_false")]
        quiet: bool,
        /// Id of the task that waits for the answer. Absent: no task waits.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reply_to: Option<TaskId>,
        /// Time after which an answer is too late. Absent: never.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        until: Option<DateTime<Utc>>,
        /// The same moment by a clock that cannot be set. Absent: unknown.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        boot_until: Option<BootTime>,
        /// Id of an older queued message that this one replaces. Absent: none.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        replaces: Option<InteractionId>,
        /// Number of messages between agents in the chain that led to this one; 0 when it comes
        /// from outside. Absent: 0.
        #[serde(default, skip_serializing_if = "is_zero")]
        hops: u32,
        /// JSON that came with an external event, for programs; the model does not see it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        payload: Option<RawJson>,
        /// Where it came from, stamped when it was accepted. Absent: unknown.
        #[serde(default, skip_serializing_if = "Provenance::is_unknown")]
        provenance: Provenance,
    }
    /// A tool call sends a request to another agent. The orchestrator delivers it under this id
    /// after this event.
    RequestSent request_sent = "request_sent" {
        /// Id of the tool call.
        tool_call_id: ToolCallId,
        /// Id of the request.
        id: InteractionId,
        /// Name of the receiver.
        to: AgentName,
        /// Intent of the request.
        intent: String,
        /// Parameters of the request. Absent: `null`.
        #[serde(default, skip_serializing_if = "Value::is_null")]
        params: Value,
        /// Time after which the request counts as failed.
        until: DateTime<Utc>,
        /// The same moment by a clock that cannot be set. Absent: unknown.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        boot_until: Option<BootTime>,
        /// Whether the tool call waits for the answer. Absent: `false`.
        #[serde(default, skip_serializing_if = "is_false")]
        waits: bool,
    }
    /// The task answers a request. The orchestrator delivers the answer after this event.
    Replied replied = "replied" {
        /// Id of the request.
        in_reply_to: InteractionId,
        /// Sender of the request.
        to: Sender,
        /// Id of the task that waits for the answer. Absent: no task waits.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reply_to: Option<TaskId>,
        /// `accepted` for a promise, `completed` or `failed` for the final answer.
        status: ResponseStatus,
        /// The answer. Absent: `null`.
        #[serde(default, skip_serializing_if = "Value::is_null")]
        result: Value,
    }
    /// A tool call needs the approval of a person, or asks a person a question.
    ApprovalRequested approval_requested = "approval_requested" {
        /// Id of the approval.
        approval_id: ApprovalId,
        /// Id of the tool call.
        tool_call_id: ToolCallId,
        /// Name of the tool.
        tool_name: String,
        /// Arguments of the call, byte for byte.
        arguments: RawJson,
        /// Why the call needs approval.
        reason: String,
        /// Rule that the decisions `allow_task` and `allow_always` grant.
        rule: Rule,
        /// Time after which the call counts as denied. Absent: never.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        expires_at: Option<DateTime<Utc>>,
        /// The same moment by a clock that cannot be set. Absent: unknown.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        boot_until: Option<BootTime>,
        /// What the person is asked. Absent: whether the call may run.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        question: Option<Question>,
    }
    /// A person decided about an approval, or it expired.
    ApprovalDecided approval_decided = "approval_decided" {
        /// Id of the approval.
        approval_id: ApprovalId,
        /// The decision.
        decision: Decision,
        /// Name of the person or program that decided.
        by: String,
        /// Comment on the decision; the model reads it. Absent: none.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        comment: Option<String>,
        /// The answer to a question, or the plan that is to be carried out in place of the agent's own. Absent: none.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        answer: Option<Answer>,
    }
    /// A tool call was not allowed to run.
    ToolRefused tool_refused = "tool_refused" {
        /// Id of the tool call.
        tool_call_id: ToolCallId,
        /// Name of the tool.
        tool_name: String,
        /// Why it was refused.
        reason: String,
    }
    /// A tool call starts. Its side effects may have begun.
    ToolStarted tool_started = "tool_started" {
        /// Id of the tool call.
        tool_call_id: ToolCallId,
        /// Name of the tool.
        tool_name: String,
        /// Effect of the tool, which decides what recovery does with an interrupted call.
        effect: Effect,
        /// What the tool needs to find out later whether the call happened. Absent: nothing.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        note: Option<Value>,
    }
    /// A tool call goes to the client that offered the tool.
    ToolRequested tool_requested = "tool_requested" {
        /// Id of the tool call.
        tool_call_id: ToolCallId,
        /// Name of the tool.
        tool_name: String,
        /// Arguments of the call, byte for byte.
        arguments: RawJson,
        /// Time after which the task becomes `input_required` without a result.
        until: DateTime<Utc>,
        /// The same moment by a clock that cannot be set. Absent: unknown.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        boot_until: Option<BootTime>,
    }
    /// A tool call dispatches agents. The orchestrator creates their tasks under these ids after
    /// this event.
    Dispatched dispatched = "dispatched" {
        /// Id of the tool call.
        tool_call_id: ToolCallId,
        /// What the children see of the conversation.
        #[serde(default)]
        context: ContextScope,
        /// How the task waits for the children.
        join: Join,
        /// Ids of the children's tasks, in the order of the targets.
        children: Vec<TaskId>,
        /// Tools that children were to have and do not get.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        left_out: Vec<LeftOutTool>,
    }
    /// A tool call waits for tasks that were dispatched before.
    Awaited awaited = "awaited" {
        /// Id of the tool call.
        tool_call_id: ToolCallId,
        /// Ids of the tasks.
        tasks: Vec<TaskId>,
        /// Whether the call waits for any or for all of the tasks.
        mode: Awaiting,
        /// Time after which the call stops waiting. Absent: never.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        until: Option<DateTime<Utc>>,
        /// The same moment by a clock that cannot be set. Absent: unknown.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        boot_until: Option<BootTime>,
    }
    /// Another agent takes over the task: its result is the result of the task.
    HandedOver handed_over = "handed_over" {
        /// Id of the tool call that handed over.
        tool_call_id: ToolCallId,
        /// Name of the agent that works on the task from here on.
        agent: String,
        /// Model from here on. Absent: the agent needs no model.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        model: Option<ModelRef>,
        /// Models to use, in order, when that one is not available.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        fallbacks: Vec<ModelRef>,
        /// System prompt from here on. Absent: empty.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        system_prompt: String,
        /// Names of the tools the agent may use from here on. Absent: every tool.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        tools: Option<Vec<String>>,
        /// Agents the agent may call from here on. Absent: any agent.
        #[serde(default = "any_agent", skip_serializing_if = "is_any_agent")]
        agents: CallableAgents,
    }
    /// A runner copied the events of a remote task up to this one.
    Relayed relayed = "relayed" {
        /// Id of the remote task.
        task_id: TaskId,
        /// Seq of the last remote event that was copied.
        seq: Seq,
        /// Tasks below the remote task that are new or have changed since the last such event, as the other
        /// orchestrator lists them. Absent: none.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        tasks: Vec<TaskSummary>,
    }
    /// A model call used tokens.
    UsageRecorded usage_recorded = "usage_recorded" {
        /// Model, as `PROVIDER/MODEL`.
        model: String,
        /// Tokens used.
        usage: Usage,
        /// Purpose of the call. Absent: a step of the task.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        purpose: Option<Purpose>,
    }
    /// The spend limits of this day and its month were raised.
    BudgetRaised budget_raised = "budget_raised" {
        /// Amount, in billionths of a US dollar.
        nano_usd: u64,
        /// Id of the API key whose limits are raised. Absent: the total limits.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        payer: Option<String>,
        /// Name of the person or program that raised the limits.
        by: String,
        /// Comment. Absent: none.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        comment: Option<String>,
    }
    /// The result of the model does not fit the output schema of the task. The model tries again.
    OutputRejected output_rejected = "output_rejected" {
        /// What is wrong with the result; the model reads it.
        reason: String,
    }
    /// The agent replaced the list of things to do that it keeps.
    TodoChanged todo_changed = "todo_changed" {
        /// The list.
        items: Vec<TodoItem>,
    }
    /// From here on the model reads a summary in place of the older messages. The journal keeps
    /// them all.
    Compacted compacted = "compacted" {
        /// The summary.
        summary: String,
        /// Index of the first message that the model still reads, counted from 0 over the
        /// conversation.
        kept_from: u64,
    }
}

/// The messages of another task, up to one of its events.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HistoryRef {
    /// Id of the other task.
    pub task_id: TaskId,
    /// Seq of the last event that counts.
    pub seq: Seq,
}

/// The cancellation of a task on a peer, which the peer has to get.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PeerCancel {
    /// Id of the task here.
    pub task_id: TaskId,
    /// Id of the task on the peer. Absent: the peer has not confirmed that it created one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remote_task_id: Option<TaskId>,
}

/// What a task waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum WaitingFor {
    /// The decision about a tool call.
    Approval,
    /// A user resumes the task.
    Resume,
    /// The client that offered a tool sends the result of a call.
    ToolResult,
    /// A new day or month begins, or a user raises the spend limit.
    Budget,
    /// The model can be reached again. The status is `running`, and the detail is a
    /// [`OutageWait`](crate::OutageWait).
    Model,
    /// The peer that runs the task can be reached again. Status and detail are as for `Model`.
    Peer,
    /// The journal can be written again. Never recorded, since it cannot be: the orchestrator that runs the task says
    /// so in its lists.
    Storage,
}

impl WaitingFor {
    /// Whether the task continues without a person or a client.
    pub fn continues_by_itself(self) -> bool {
        match self {
            Self::Budget | Self::Model | Self::Peer | Self::Storage => true,
            Self::Approval | Self::Resume | Self::ToolResult => false,
        }
    }

    /// Whether a running task waits for the end of an outage that is recorded.
    pub fn is_outage(self) -> bool {
        match self {
            Self::Model | Self::Peer => true,
            Self::Approval | Self::Resume | Self::ToolResult | Self::Budget | Self::Storage => {
                false
            }
        }
    }
}

/// When a conversation began and was last changed before it was imported.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ImportedTimes {
    /// When it began.
    pub created_at: DateTime<Utc>,
    /// When it was last changed.
    pub updated_at: DateTime<Utc>,
}

/// For how many tasks a tool call waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Awaiting {
    /// For the first task that ends.
    Any,
    /// For every task.
    #[default]
    All,
}

/// Purpose of a model call that is not a step of the task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Purpose {
    /// A summary of the conversation.
    Compaction,
    /// An answer that broke off and was asked for again, or whose tokens were not counted. It is no
    /// turn.
    Superseded,
}

impl UsageRecorded {
    /// The name that its tokens are summed under: its model. An answer whose tokens were not counted has a name of its
    /// own, which no model has and which has no price: a sum of counted tokens would hide that its cost is unknown.
    pub fn summed_under(&self) -> String {
        let is_counted = self.usage != Usage::default();
        if is_counted || self.purpose != Some(Purpose::Superseded) {
            return self.model.clone();
        }
        format!("{} (uncounted)", self.model)
    }
}

impl MessageAppended {
    /// A message that was not queued.
    pub fn new(message: impl Into<Arc<Message>>) -> Self {
        Self { message: message.into(), queued: None, superseded: false }
    }

    /// A message that left the inbox.
    pub fn of_queued(message: impl Into<Arc<Message>>, id: InteractionId) -> Self {
        Self { queued: Some(id), ..Self::new(message) }
    }

    /// An answer that broke off and that the model is asked for again.
    pub fn superseded(answer: impl Into<Arc<Message>>) -> Self {
        Self { superseded: true, ..Self::new(answer) }
    }
}

impl Relayed {
    /// The same mark without tasks.
    #[must_use]
    pub fn mark(&self) -> Self {
        Self { task_id: self.task_id.clone(), seq: self.seq, tasks: Vec::new() }
    }
}

impl StatusChanged {
    /// A new status without detail.
    pub fn new(status: TaskStatus) -> Self {
        Self { status, detail: None, waiting_for: None }
    }
}

impl TaskCreated {
    /// A root task without model, limits or history.
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
            parallel_tools: Vec::new(),
            external_tools: Vec::new(),
            keeps_client_tools: false,
            agents: CallableAgents::Any,
            runner: None,
            resident: false,
            limits: TaskLimits::default(),
            output_schema: None,
            model_options: ModelOptions::default(),
            payer: None,
            route: None,
            provenance: Provenance::Unknown,
            canonical: Vec::new(),
            unstored: false,
            imported: None,
            boot_time: None,
            followed: false,
            cancels: None,
            access: TaskAccess::Permitted,
        }
    }
}
