//! Responses in the journal: looked up, continued and canceled by their ids.
//!
//! A key, of whatever scope, finds the responses that it asked for, and gets 404 for any other, as for a response that
//! does not exist; the owner's token finds all. The journal has every task; a task with `store: false` is not found as a
//! response.
//!
//! The id of a conversation that a key has not used is that of a new one, which is the key's own: a session whose id
//! follows from both. So a key does not learn whether another one uses the id.

use std::num::NonZeroUsize;
use std::sync::Arc;

use antiphon_core::port::{TaskQuery, TaskSelector};
use antiphon_core::{
    AssistantMessage, HistoryRef, Message, SessionId, TaskId, TaskStatus, ToolCallBlock,
};
use antiphon_interface_transport::answer::{
    AnswerError, AnswerReply, AnswerWatcher, CreationLock, OpenCalls, PreviousConversation,
};
use antiphon_interface_transport::{AppState, Caller};
use antiphon_runtime::{OrchestratorError, ReplayError, TaskState, TaskWatch};
use axum::http::StatusCode;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::responses::client_tools::ClientTools;
use crate::responses::conversation_locks::ConversationLocks;
use crate::responses::input_items;
use crate::responses::response_format::{ResponseFormat, ResponseHeader};
use crate::responses::response_request::Continues;

/// Begins the id of a response.
pub(crate) const RESPONSE: &str = "resp_";

/// Begins the id of a response that is not stored.
pub(crate) const UNSTORED: &str = "resp_unstored_";

/// Begins the id of a conversation.
pub(crate) const CONVERSATION: &str = "conv_";

/// The task of a stored response that the caller may see.
pub(crate) async fn find(
    state: &AppState,
    caller: &Caller,
    field: &str,
    id: &str,
) -> Result<TaskState, AnswerError> {
    let none = || {
        let message = format!("there is no response `{id}`");
        AnswerError::not_found(field, message).coded("response_not_found")
    };
    let task_id = id.strip_prefix(RESPONSE).and_then(|id| TaskId::parse(id).ok());
    let task_id = task_id.ok_or_else(none)?;
    let found = visible(state, caller, &task_id).await?;
    found.filter(|found| !found.created.unstored).ok_or_else(none)
}

/// A root task that the caller may see.
async fn visible(
    state: &AppState,
    caller: &Caller,
    task_id: &TaskId,
) -> Result<Option<TaskState>, AnswerError> {
    let orchestrator = &state.deps.orchestrator;
    // The summary first: how long the answer takes must not tell a task of another key from one that does not exist.
    let query = TaskQuery { which: TaskSelector::One(task_id.clone()), limit: NonZeroUsize::MIN };
    let summaries = match orchestrator.tasks(query).await {
        Ok(summaries) => summaries,
        Err(error) => return Err(AnswerError::native(error).await),
    };
    if !summaries.iter().any(|summary| caller.may_see(summary)) {
        return Ok(None);
    }
    match orchestrator.task_alone(task_id).await {
        Ok(found) => Ok(Some(found)),
        Err(OrchestratorError::Replay(ReplayError::NoTask { .. })) => Ok(None),
        Err(error) => Err(AnswerError::native(error).await),
    }
}

/// What a request continues.
#[derive(Default)]
pub(crate) struct Previous {
    /// The conversation; absent for a request that continues none.
    pub(crate) conversation: Option<PreviousConversation>,
    /// The calls in it that wait for a result.
    pub(crate) open: OpenCalls,
    /// No other response of the conversation is created while it is held.
    pub(crate) lock: Option<CreationLock>,
}

/// What a request continues.
pub(crate) async fn previous(
    state: &AppState,
    caller: &Caller,
    continues: &Continues,
    locks: &ConversationLocks,
) -> Result<Previous, AnswerError> {
    match continues {
        Continues::Nothing => Ok(Previous::default()),
        Continues::Response(id) => {
            let field = "previous_response_id";
            behind(field, &find(state, caller, field, id).await?, None)
        }
        Continues::Conversation(id) => {
            let session = id.strip_prefix(CONVERSATION).and_then(|id| SessionId::parse(id).ok());
            let Some(session_id) = session else {
                let message = "expected an id of POST /v1/conversations";
                return Err(AnswerError::field("conversation", message));
            };
            let session_id = own_session(state, caller, session_id).await?;
            let lock = Some(locks.lock(&session_id).await);
            match last_of(state, caller, session_id.clone()).await? {
                Some(last) => behind("conversation", &last, lock),
                None => {
                    let (history, system_prompt) = (None, String::new());
                    let new = PreviousConversation { session_id, history, system_prompt };
                    Ok(Previous { conversation: Some(new), open: Vec::new(), lock })
                }
            }
        }
    }
}

/// The conversation behind its last task, which must have ended.
fn behind(
    field: &str,
    last: &TaskState,
    lock: Option<CreationLock>,
) -> Result<Previous, AnswerError> {
    if !last.status.is_terminal() {
        let message =
            format!("`{field}`: its last response is not finished: {RESPONSE}{}", last.task_id);
        let error = AnswerError::new(StatusCode::CONFLICT, message);
        return Err(AnswerError { param: Some(field.to_owned()), ..error });
    }
    let conversation = PreviousConversation {
        session_id: last.created.session_id.clone(),
        history: Some(HistoryRef { task_id: last.task_id.clone(), seq: last.seq }),
        system_prompt: last.created.system_prompt.clone(),
    };
    Ok(Previous { conversation: Some(conversation), open: open_calls(last), lock })
}

/// The session that an id of a conversation names for the caller.
async fn own_session(
    state: &AppState,
    caller: &Caller,
    named: SessionId,
) -> Result<SessionId, AnswerError> {
    let Some(payer) = caller.seen_payer() else { return Ok(named) };
    if last_of(state, caller, named.clone()).await?.is_some() {
        return Ok(named);
    }
    let own = Uuid::new_v5(&Uuid::NAMESPACE_OID, format!("{payer}\n{named}").as_bytes());
    SessionId::parse(&own.to_string()).map_err(|error| AnswerError::field("conversation", error))
}

/// The last task of a session, if the caller may see it.
async fn last_of(
    state: &AppState,
    caller: &Caller,
    session_id: SessionId,
) -> Result<Option<TaskState>, AnswerError> {
    let query = TaskQuery { which: TaskSelector::Session(session_id), limit: NonZeroUsize::MIN };
    let last = match state.deps.orchestrator.tasks(query).await {
        Ok(tasks) => tasks.into_iter().next(),
        Err(error) => return Err(AnswerError::native(error).await),
    };
    match last {
        None => Ok(None),
        Some(last) => visible(state, caller, &last.task_id).await,
    }
}

/// The calls that a completed task left to its client.
fn open_calls(task: &TaskState) -> OpenCalls {
    if task.status != TaskStatus::Completed {
        return Vec::new();
    }
    let last = task.messages().iter().rev().find_map(|message| match &**message {
        Message::Assistant(answer) => Some(answer),
        Message::User(_) | Message::ToolResult(_) => None,
    });
    let answered = |call: &ToolCallBlock| {
        task.messages().iter().any(|message| match &**message {
            Message::ToolResult(result) => result.tool_call_id == call.id,
            Message::User(_) | Message::Assistant(_) => false,
        })
    };
    let calls = last.into_iter().flat_map(AssistantMessage::tool_calls);
    calls.filter(|call| !answered(call)).cloned().collect()
}

/// A response as it is now.
pub(crate) async fn show(state: &Arc<AppState>, task: &TaskState) -> Value {
    let header = header(task);
    match task.status {
        TaskStatus::Pending => return header.body("queued", json!([])),
        TaskStatus::Running | TaskStatus::InputRequired => {
            return header.body("in_progress", json!([]));
        }
        TaskStatus::Canceled => return header.body("cancelled", json!([])),
        TaskStatus::Completed | TaskStatus::Failed => {}
    }
    let orchestrator = &state.deps.orchestrator;
    let watcher = AnswerWatcher::new(orchestrator, task.task_id.clone(), TaskWatch::default());
    let format = ResponseFormat::new(header.clone(), Arc::new(ClientTools::default()));
    let mut reply = AnswerReply { state: Arc::clone(state), format, watcher, attached: None };
    match reply.collect().await {
        Ok(body) => body,
        Err(error) => {
            let mut body = header.body("failed", json!([]));
            let code = error.code.unwrap_or_else(|| "server_error".to_owned());
            body["error"] = json!({ "code": code, "message": error.message });
            body
        }
    }
}

/// What the journal knows of the request.
fn header(task: &TaskState) -> ResponseHeader {
    let created = &task.created;
    let tool = |tool: &Arc<antiphon_core::Tool>| {
        json!({
            "type": "function", "name": tool.name, "description": tool.description,
            "parameters": tool.parameters, "strict": false,
        })
    };
    let previous = created.history.as_ref().map(|before| format!("{RESPONSE}{}", before.task_id));
    ResponseHeader {
        id: format!("{RESPONSE}{}", task.task_id),
        task_id: task.task_id.clone(),
        created: task.created_at.timestamp(),
        echoed: json!({
            "model": created.model, "instructions": created.system_prompt,
            "previous_response_id": previous, "metadata": {}, "store": true,
            "temperature": created.model_options.temperature,
            "top_p": created.model_options.sampling.top_p,
            "max_output_tokens": created.limits.answer_tokens_max,
            "parallel_tool_calls":
                created.model_options.sampling.parallel_tool_calls.unwrap_or(true),
            "tool_choice": "auto",
            "tools": created.external_tools.iter().map(tool).collect::<Vec<_>>(),
            "conversation": { "id": format!("{CONVERSATION}{}", created.session_id) },
        }),
    }
}

/// The messages that a request brought, as items, newest first.
pub(crate) fn items(task: &TaskState) -> Value {
    let own = task.conversation.own();
    // The first answer that the task wrote itself names its model.
    let is_answer = |message: &Arc<Message>| {
        matches!(&**message, Message::Assistant(answer) if answer.model.is_some()
            && answer.timestamp >= task.created_at)
    };
    let brought = own.iter().position(is_answer).unwrap_or(own.len());
    let mut items: Vec<Value> = Vec::new();
    for (index, message) in own[..brought].iter().enumerate() {
        let id = format!("msg_{}_in{index}", task.task_id);
        items.extend(input_items::item(&id, message));
    }
    items.reverse();
    let first = items.first().map(|item| item["id"].clone());
    let last = items.last().map(|item| item["id"].clone());
    json!({ "object": "list", "data": items, "first_id": first, "last_id": last, "has_more": false })
}
