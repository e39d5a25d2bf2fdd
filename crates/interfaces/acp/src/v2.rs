//! Version 2 of the protocol, as the pinned schema has its draft: what is sent, in its shapes. Everything else of this crate
//! speaks version 1, whose values are rewritten here.
//!
//! | version 1                        | version 2                                                           |
//! |----------------------------------|---------------------------------------------------------------------|
//! | answer of `session/prompt`       | `state_update` (`idle` with the stop reason); the answer has the id of the message |
//! | `tool_call`                      | the first `tool_call_update`                                        |
//! | `plan`                           | `plan_update`                                                       |
//! | old and new text of a diff       | changes of files, and a patch                                       |
//! | `modes`, `current_mode_update`   | the option `mode`                                                   |
//! | chunks without `messageId`       | each has one                                                        |

mod diff;

use antiphon_core::UserMessage;
use serde::Serialize;
use serde_json::{Map, Value, json};
use uuid::Uuid;

use crate::replay;
use crate::schema::{
    AvailableCommandsUpdate, Error, RequestPermissionRequest, SessionConfigOption, SessionUpdate,
    StopReason,
};

/// The only plan of a session: things to do, and child tasks.
const PLAN: &str = "tasks";

/// The foreground state of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SessionState {
    Running,
    /// A person has to decide or answer.
    RequiresAction,
    Idle,
}

impl SessionState {
    fn name(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::RequiresAction => "requires_action",
            Self::Idle => "idle",
        }
    }

    pub(crate) fn update(self) -> Value {
        json!({ "sessionUpdate": "state_update", "state": self.name() })
    }
}

/// The update that ends a turn.
pub(crate) fn ended(ended: &Result<StopReason, Error>) -> Value {
    let mut update = SessionState::Idle.update();
    match ended {
        Ok(reason) => update["stopReason"] = json!(reason),
        Err(error) => {
            update["stopReason"] = json!("error");
            update["error"] = json!(error);
        }
    }
    update
}

/// The id of a message of a user. Its time tells it from the others of its session, and is in the journal: it stays.
pub(crate) fn message_id(message: &UserMessage) -> String {
    format!("user-{}", message.timestamp.timestamp_micros())
}

/// A message of a user, where it is in the conversation.
pub(crate) fn user_message(message: &UserMessage) -> Value {
    let content: Vec<_> = message.content.iter().map(replay::content).collect();
    json!({ "sessionUpdate": "user_message", "messageId": message_id(message), "content": content })
}

/// The answer to `initialize`.
pub(crate) fn initialized() -> Value {
    json!({
        "protocolVersion": 2,
        "info": { "name": "antiphon", "title": "Antiphon", "version": env!("CARGO_PKG_VERSION") },
        "capabilities": { "session": { "prompt": { "image": {}, "embeddedContext": {} } } },
    })
}

/// An update of version 1; `None` where version 2 has none.
pub(crate) fn update(update: &SessionUpdate) -> Option<Value> {
    let mut rewritten = json!(update);
    if let SessionUpdate::CurrentModeUpdate(_) = update {
        return None;
    } else if let SessionUpdate::ToolCall(_) | SessionUpdate::ToolCallUpdate(_) = update {
        rewritten["sessionUpdate"] = json!("tool_call_update");
        rewrite_content(&mut rewritten);
    } else if let SessionUpdate::Plan(plan) = update {
        let plan = json!({ "type": "items", "planId": PLAN, "entries": plan.entries });
        rewritten = json!({ "sessionUpdate": "plan_update", "plan": plan });
    } else if let SessionUpdate::AvailableCommandsUpdate(update) = update {
        rewritten["availableCommands"] = commands(update);
    } else if let SessionUpdate::ConfigOptionUpdate(update) = update {
        rewritten["configOptions"] = options(&update.config_options);
    } else if rewritten.get("content").is_some() && rewritten.get("messageId").is_none() {
        rewritten["messageId"] = json!(Uuid::new_v4().to_string());
    }
    Some(rewritten)
}

/// Options of a session.
pub(crate) fn options(options: &[SessionConfigOption]) -> Value {
    let option = |option: &SessionConfigOption| {
        let mut fields = fields(option);
        if let Some(id) = fields.shift_remove("id") {
            fields.insert("configId".to_owned(), id);
        }
        Value::Object(fields)
    };
    options.iter().map(option).collect()
}

/// Commands of a session.
pub(crate) fn commands(update: &AvailableCommandsUpdate) -> Value {
    let mut commands = json!(update.available_commands);
    for command in commands.as_array_mut().into_iter().flatten() {
        command["type"] = json!("command");
        if let Some(input) = command.get_mut("input").and_then(Value::as_object_mut) {
            input.insert("type".to_owned(), json!("text"));
        }
    }
    commands
}

/// A question to the person.
pub(crate) fn permission(request: &RequestPermissionRequest) -> Value {
    let mut call = json!(request.tool_call);
    rewrite_content(&mut call);
    let title = request.tool_call.fields.title.as_deref().unwrap_or("May the agent do this?");
    json!({
        "sessionId": request.session_id,
        "title": title,
        "subject": { "type": "tool_call", "toolCall": call },
        "options": request.options,
    })
}

/// Rewrites the diffs in the content of a tool call.
fn rewrite_content(call: &mut Value) {
    for content in call.get_mut("content").and_then(Value::as_array_mut).into_iter().flatten() {
        if content["type"] == "diff" {
            *content = diff::rewritten(content);
        }
    }
}

fn fields(value: &impl Serialize) -> Map<String, Value> {
    if let Value::Object(fields) = json!(value) { fields } else { Map::new() }
}
