//! The tools by which an agent manages the tasks it dispatched: get, wait, cancel, list, send. They
//! reach descendants of the caller only.

use std::num::NonZeroU32;
use std::sync::{Arc, LazyLock};

use antiphon_core::{
    AgentResult, Awaited, Awaiting, Executor, HandlingMode, Interaction, InteractionContent,
    InvocationResult, LeftOutTool, MessageQueued, RenderClass, RenderMetadata, ResponseStatus,
    RunnerConfig, Sender, SilentIntents, TaskId, TaskSnapshot, TaskStatus, TaskSummary, Tool,
    ToolCallBlock, ToolResult, classify,
};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::budget::tree_usage;
use crate::dispatch::call_agent::CALL_AGENT;
use crate::dispatch::dispatch_call;
use crate::dispatch::pending_call::{self, PendingCall};
use crate::dispatch::refusal::DispatchRefusal;
use crate::dispatch::run_skill::RUN_SKILL;
use crate::dispatch::wake_parent;
use crate::inbox::derived_id;
use crate::inbox::peer_tools::tool;
use crate::inbox::task_message;
use crate::inbox::wait_cycle;
use crate::orchestrator_error::OrchestratorError;
use crate::task::control::cancel;
use crate::task::state::reader::DEPTH_MAX;
use crate::task::step::TaskRun;

const GET_TASK: &str = "get_task";
const WAIT_TASK: &str = "wait_task";
const CANCEL_TASK: &str = "cancel_task";
const LIST_MY_TASKS: &str = "list_my_tasks";
const SEND_TASK: &str = "send_task";

/// Maximum bytes of JSON of all results of a call together. A longer result is cut there;
/// `get_task` shows all of it.
const RESULTS_BYTES_MAX: usize = 128 * 1024;

/// Bytes of each result that are always shown.
const RESULT_BYTES_MIN: usize = 256;

/// Maximum characters of a result that `get_task` shows at a time.
const PART_CHARS_MAX: usize = 64 * 1024;

/// Maximum number of tasks that `list_my_tasks` shows.
const LISTED_MAX: usize = 200;

/// Whether the orchestrator answers calls of this tool.
pub(crate) fn is_ours(name: &str) -> bool {
    [CALL_AGENT, RUN_SKILL, GET_TASK, WAIT_TASK, CANCEL_TASK, LIST_MY_TASKS, SEND_TASK]
        .contains(&name)
}

/// The tools to manage dispatched tasks.
pub(crate) static TOOLS: LazyLock<Vec<Arc<Tool>>> = LazyLock::new(|| {
    let task = json!({ "type": "string", "description": "The id of a task you dispatched." });
    let tasks = json!({ "type": "array", "items": task, "minItems": 1 });
    let text_schema = json!({ "type": "string", "description": "What to tell it." });
    let each = [
        (
            GET_TASK,
            "Shows a task you dispatched: how far it got, and its result.",
            json!({ "task_id": task, "offset": { "type": "integer", "minimum": 0, "description":
                "Characters of a long result to leave out." } }),
            json!(["task_id"]),
        ),
        (
            WAIT_TASK,
            "Waits until tasks you dispatched have ended, and returns their results.",
            json!({ "task_ids": tasks, "mode": { "enum": ["any", "all"] }, "timeout_s":
                { "type": "integer", "minimum": 1, "description": "Wait no longer than this." } }),
            json!(["task_ids"]),
        ),
        (
            CANCEL_TASK,
            "Ends a task you dispatched, and everything below it.",
            json!({ "task_id": task }),
            json!(["task_id"]),
        ),
        (LIST_MY_TASKS, "Lists the tasks you dispatched.", json!({}), json!([])),
        (
            SEND_TASK,
            "Tells a task you dispatched something while it works.",
            json!({ "task_id": task, "text": text_schema, "mode": { "enum": ["steer", "queue"] } }),
            json!(["task_id", "text"]),
        ),
    ];
    each.into_iter().filter_map(tool).collect()
});

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct GetTask {
    task_id: TaskId,
    #[serde(default)]
    offset: usize,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WaitTask {
    task_ids: Vec<TaskId>,
    #[serde(default)]
    mode: Awaiting,
    timeout_s: Option<NonZeroU32>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CancelTask {
    task_id: TaskId,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SendTask {
    task_id: TaskId,
    text: String,
    #[serde(default)]
    mode: Option<HandlingMode>,
}

pub(crate) fn read<T: DeserializeOwned>(call: &ToolCallBlock) -> Result<T, DispatchRefusal> {
    let refuse = |reason: String| DispatchRefusal::Arguments { reason };
    let none = || refuse("the arguments are not a JSON object".to_owned());
    call.arguments.object().ok_or_else(none)?.to().map_err(|error| refuse(error.to_string()))
}

/// The answer to a call of one of these tools.
enum Answer {
    Result(ToolResult),
    /// The call waits for tasks.
    Waits,
}

impl TaskRun {
    /// Answers a call of one of these tools. A call that waits gets its result later.
    pub(crate) async fn call_supervisor_tool(
        &mut self,
        call: &ToolCallBlock,
    ) -> Result<(), OrchestratorError> {
        let answer = match call.name.as_str() {
            GET_TASK => self.get_task(call).await?,
            WAIT_TASK => self.wait_task(call).await?,
            CANCEL_TASK => self.cancel_task(call).await?,
            LIST_MY_TASKS => self.list_my_tasks().await?,
            SEND_TASK => self.send_task(call).await?,
            _ => return Ok(()),
        };
        match answer {
            Ok(Answer::Result(result)) => self.add_result(call, result),
            Ok(Answer::Waits) => {}
            Err(refusal) => self.add_result(call, refusal.result()),
        }
        Ok(())
    }

    async fn get_task(&self, call: &ToolCallBlock) -> SupervisorResult {
        let arguments: GetTask = match read(call) {
            Ok(arguments) => arguments,
            Err(refusal) => return Ok(Err(refusal)),
        };
        let Some(summary) = self.descendant(&arguments.task_id).await? else {
            return Ok(Err(not_yours(&arguments.task_id)));
        };
        let mut shown = json!(self.snapshot(&summary).await?);
        if summary.status.is_terminal() {
            let outcome = self.services.reader.outcome(&summary).await?;
            let whole = text(&outcome.content);
            let total = whole.chars().count();
            if arguments.offset == 0 && total <= PART_CHARS_MAX {
                shown["result"] = outcome.content;
            } else {
                let part: String =
                    whole.chars().skip(arguments.offset).take(PART_CHARS_MAX).collect();
                let next = arguments.offset.saturating_add(part.chars().count());
                shown["result_part"] = json!(part);
                shown["result_chars"] = json!(total);
                if next < total {
                    shown["next_offset"] = json!(next);
                }
            }
        }
        Ok(Ok(Answer::Result(ToolResult::text(shown.to_string()))))
    }

    async fn wait_task(&mut self, call: &ToolCallBlock) -> SupervisorResult {
        let arguments: WaitTask = match read(call) {
            Ok(arguments) => arguments,
            Err(refusal) => return Ok(Err(refusal)),
        };
        if arguments.task_ids.is_empty() {
            let reason = "`task_ids` is empty: say which tasks".to_owned();
            return Ok(Err(DispatchRefusal::Arguments { reason }));
        }
        let mut tasks = Vec::new();
        for task_id in &arguments.task_ids {
            let Some(task) = self.descendant(task_id).await? else {
                return Ok(Err(not_yours(task_id)));
            };
            tasks.push(task.task_id);
        }
        let now = self.services.deps.clock.now();
        let until =
            arguments.timeout_s.map(|s| now + chrono::TimeDelta::seconds(i64::from(s.get())));
        let mode = arguments.mode;
        let pending_call = PendingCall::Await { tasks: tasks.clone(), mode, until };
        // The first that ends is enough: a cycle through one of several is none.
        let needed = if mode == Awaiting::Any && tasks.len() > 1 { &[] } else { tasks.as_slice() };
        let register = || self.wait_for_call(&pending_call);
        if let Err(refusal) =
            wait_cycle::wait_for_tasks(&self.services, &self.state, needed, register)
        {
            return Ok(Err(refusal));
        }
        // Outcomes so far are recorded now, later ones as the tasks end.
        for task_id in &tasks {
            let summary = self.services.reader.summary(task_id).await?;
            wake_parent::rejoin(&self.services, &self.state.task_id, &summary).await?;
        }
        let boot_until = until.and_then(|until| self.services.time.boot_until(until));
        self.push(Awaited { tool_call_id: call.id.clone(), tasks, mode, until, boot_until });
        Ok(Ok(Answer::Waits))
    }

    async fn cancel_task(&self, call: &ToolCallBlock) -> SupervisorResult {
        let arguments: CancelTask = match read(call) {
            Ok(arguments) => arguments,
            Err(refusal) => return Ok(Err(refusal)),
        };
        let Some(task) = self.descendant(&arguments.task_id).await? else {
            return Ok(Err(not_yours(&arguments.task_id)));
        };
        cancel::cancel_all(&self.services, vec![task.task_id.clone()]).await?;
        let summary = self.services.reader.summary(&task.task_id).await?;
        let shown = json!(self.snapshot(&summary).await?);
        Ok(Ok(Answer::Result(ToolResult::text(shown.to_string()))))
    }

    async fn list_my_tasks(&self) -> SupervisorResult {
        let below = self
            .services
            .reader
            .descendants(std::slice::from_ref(&self.state.task_id), self.root())
            .await?;
        let mut shown = Vec::new();
        for task in below.iter().rev().take(LISTED_MAX) {
            shown.push(self.snapshot(task).await?);
        }
        let mut listed = json!({ "tasks": shown });
        if below.len() > LISTED_MAX {
            listed["more"] = json!(below.len() - LISTED_MAX);
        }
        Ok(Ok(Answer::Result(ToolResult::text(listed.to_string()))))
    }

    async fn send_task(&self, call: &ToolCallBlock) -> SupervisorResult {
        let arguments: SendTask = match read(call) {
            Ok(arguments) => arguments,
            Err(refusal) => return Ok(Err(refusal)),
        };
        let Some(task) = self.descendant(&arguments.task_id).await? else {
            return Ok(Err(not_yours(&arguments.task_id)));
        };
        // The id derives from the call: repeated after a crash, the message is queued once.
        let id = self.interaction_id_of(call);
        let content = InteractionContent::Message { body: arguments.text, blocks: None };
        let mode = arguments.mode.unwrap_or(HandlingMode::Steer);
        let class = RenderClass::FlowStep;
        let queued = message_from(&self.state.created.agent, id, content, mode, class);
        let result = match task_message::queue_message(&self.services, &task.task_id, queued).await
        {
            Ok(()) => ToolResult::text("queued"),
            Err(
                error @ (OrchestratorError::Ended { .. }
                | OrchestratorError::InboxFull { .. }
                | OrchestratorError::PeerUnavailable { .. }
                | OrchestratorError::PeerRefused { .. }),
            ) => ToolResult::failed(error.to_string()),
            Err(error) => return Err(error),
        };
        Ok(Ok(Answer::Result(result)))
    }

    async fn snapshot(&self, summary: &TaskSummary) -> Result<TaskSnapshot, OrchestratorError> {
        let journal = &*self.services.deps.journal;
        let (created, _) = tree_usage::creation(&summary.task_id, journal).await?;
        // The runner's config stays private to the runner.
        let remote =
            |runner: RunnerConfig| Executor::Remote { runner: RunnerConfig::new(runner.kind) };
        Ok(TaskSnapshot {
            task_id: summary.task_id.clone(),
            agent_id: summary.agent.clone(),
            status: summary.status,
            executor: created.runner.map_or(Executor::Local, remote),
            started_at: summary.created_at.timestamp_millis(),
            last_event_at: summary.last_event_at.timestamp_millis(),
            ended_at: summary.ended_at.map(|at| at.timestamp_millis()),
            preview: summary.preview.clone(),
        })
    }

    async fn descendant_named(
        &self,
        start: &TaskId,
    ) -> Result<Option<TaskSummary>, OrchestratorError> {
        let own = std::slice::from_ref(&self.state.task_id);
        let below = self.services.reader.descendants(own, self.root()).await?;
        let mut named = below.into_iter().filter(|task| task.task_id.is_named_by(start.as_str()));
        Ok(match (named.next(), named.next()) {
            (Some(task), None) => Some(task),
            (Some(_), Some(_)) | (None, _) => None,
        })
    }

    /// The descendant of this task of this id, or the only one whose id begins so.
    async fn descendant(&self, task_id: &TaskId) -> Result<Option<TaskSummary>, OrchestratorError> {
        let found = match self.services.reader.summary(task_id).await {
            Ok(found) => found,
            Err(OrchestratorError::Replay(_)) => return self.descendant_named(task_id).await,
            Err(error) => return Err(error),
        };
        let mut parent = found.parent.clone();
        for _ in 0..DEPTH_MAX {
            match parent {
                None => return Ok(None),
                Some(parent) if parent == self.state.task_id => return Ok(Some(found)),
                Some(above) => parent = self.services.reader.summary(&above).await?.parent,
            }
        }
        Ok(None)
    }

    /// The results of awaited tasks, as far as they have ended.
    pub(crate) async fn awaited(
        &mut self,
        tasks: &[TaskId],
    ) -> Result<ToolResult, OrchestratorError> {
        let mut results = Vec::new();
        for task_id in tasks {
            let ended = |outcomes: &pending_call::Outcomes| outcomes.get(task_id).cloned();
            results.push(match self.services.waiters.outcomes(&self.state.task_id, ended) {
                Some(outcome) => outcome.of(task_id),
                None => {
                    let status = self.services.reader.summary(task_id).await?.status;
                    AgentResult { content: Value::Null, task_id: task_id.clone(), status }
                }
            });
        }
        let unreported = |task: &TaskId| self.state.detached.values().any(|known| known == task);
        // Another call may wait for the same task.
        let waits = |task: &TaskId| {
            let pending_calls = self.state.pending_calls.values();
            pending_calls.filter(|pending_call| pending_call.tasks().contains(task)).count() > 1
        };
        let settled = tasks.iter().filter(|task| !unreported(task) && !waits(task));
        let settled: Vec<TaskId> = settled.cloned().collect();
        self.services.waiters.stop_waiting(&self.state.task_id, &settled);
        let text = result_text(&InvocationResult::Vector { results }, &[]);
        Ok(ToolResult::text(text))
    }

    /// Queues the reports of detached tasks that have ended.
    pub(crate) async fn report_detached(
        &mut self,
        tasks: Vec<TaskId>,
    ) -> Result<(), OrchestratorError> {
        for task_id in tasks {
            let ended = |outcomes: &pending_call::Outcomes| outcomes.get(&task_id).cloned();
            let Some(outcome) = self.services.waiters.outcomes(&self.state.task_id, ended) else {
                continue;
            };
            let summary = self.services.reader.summary(&task_id).await?;
            let id = derived_id::of_report(&task_id);
            let status = match outcome.status {
                TaskStatus::Completed => ResponseStatus::Completed,
                TaskStatus::Pending
                | TaskStatus::Running
                | TaskStatus::InputRequired
                | TaskStatus::Failed
                | TaskStatus::Canceled => ResponseStatus::Failed,
            };
            let result = cut(outcome.content, RESULTS_BYTES_MAX);
            let content = InteractionContent::Response { in_reply_to: id, status, result };
            let (mode, class) = (HandlingMode::Steer, RenderClass::Continuation);
            let report = message_from(&summary.agent, id, content, mode, class);
            self.push(report);
            let waited_for =
                self.state.pending_calls.values().any(|f| f.tasks().contains(&task_id));
            if !waited_for {
                self.services.waiters.stop_waiting(&self.state.task_id, &[task_id]);
            }
        }
        Ok(())
    }

    pub(crate) fn root(&self) -> &TaskId {
        self.state.created.root.as_ref().unwrap_or(&self.state.task_id)
    }
}

fn message_from(
    agent: &str,
    id: antiphon_core::InteractionId,
    content: InteractionContent,
    handling_mode: HandlingMode,
    class: RenderClass,
) -> MessageQueued {
    let from = Sender::agent(agent);
    let render_metadata = Some(RenderMetadata::usual(class));
    let interaction = Interaction { id, from, content, handling_mode, render_metadata };
    MessageQueued::of(classify(interaction, &SilentIntents::default()))
        .from_provenance(antiphon_core::Provenance::Agent(agent.to_owned()))
}

type SupervisorResult = Result<Result<Answer, DispatchRefusal>, OrchestratorError>;

fn not_yours(task_id: &TaskId) -> DispatchRefusal {
    DispatchRefusal::NotYours { task_id: task_id.to_string() }
}

/// The text of a result: all of it, or as much as fits, and the tools that the agents did not get.
pub(crate) fn result_text(result: &InvocationResult, left_out: &[LeftOutTool]) -> String {
    let count = dispatch_call::results(result).len().max(1);
    let room = (RESULTS_BYTES_MAX / count).max(RESULT_BYTES_MIN);
    let mut result = result.clone();
    match &mut result {
        InvocationResult::Scalar { result } => result.content = cut(result.content.take(), room),
        InvocationResult::Vector { results } => {
            for result in results {
                result.content = cut(result.content.take(), room);
            }
        }
        InvocationResult::TaskIds { .. } => {}
    }
    let mut json = json!(result);
    if !left_out.is_empty() {
        json["left_out"] = json!(left_out);
    }
    json.to_string()
}

/// The content if it fits, or its beginning.
fn cut(content: Value, bytes_max: usize) -> Value {
    let whole = text(&content);
    if whole.len() <= bytes_max {
        return content;
    }
    let beginning = &whole[..whole.floor_char_boundary(bytes_max)];
    let note = format!("{} bytes, cut: get_task shows all of it", whole.len());
    json!({ "beginning": beginning, "note": note })
}

fn text(content: &Value) -> String {
    content.as_str().map_or_else(|| content.to_string(), str::to_owned)
}
