//! The list of tools: one for each agent that the caller may use, then those that look after tasks.

use std::sync::Arc;

use rmcp::model::{JsonObject, Tool, ToolAnnotations};
use serde_json::{Value, json};

use crate::agent_offer::AgentOffer;
use crate::task_view::{object, output_schema};

pub(crate) const TASK_GET: &str = "task_get";
pub(crate) const TASK_WAIT: &str = "task_wait";
pub(crate) const TASK_LIST: &str = "task_list";
pub(crate) const TASK_SEND: &str = "task_send";
pub(crate) const TASK_CANCEL: &str = "task_cancel";

/// Names of the tools that are no agents.
pub(crate) const OWN_TOOLS: [&str; 5] = [TASK_GET, TASK_WAIT, TASK_LIST, TASK_SEND, TASK_CANCEL];

/// Longest wait of `task_wait`, in seconds.
pub(crate) const WAIT_S_MAX: u64 = 3600;

/// Tasks of one `task_list`, and at most.
pub(crate) const LIST_DEFAULT: usize = 20;
pub(crate) const LIST_MAX: usize = 100;

/// All tools of a caller.
pub(crate) fn tools(agents: &[AgentOffer]) -> Vec<Tool> {
    let output = Arc::new(output_schema());
    let mut tools: Vec<Tool> = agents.iter().map(|offer| agent_tool(offer, &output)).collect();
    tools.extend(own_tools(&output));
    tools
}

/// The tool that gives a task to an agent.
fn agent_tool(offer: &AgentOffer, output: &Arc<JsonObject>) -> Tool {
    let input = schema(
        json!({
            "message": {
                "type": "string",
                "description": "What the agent is to do, with everything that it needs to know.",
            },
            "session": {
                "type": "string",
                "description": "The `sessionId` of an earlier result, to continue that conversation. \
                                Omit it for a new one.",
            },
        }),
        &["message"],
    );
    let annotations = ToolAnnotations::new().read_only(false).open_world(true);
    Tool::new(offer.tool.clone(), offer.description.clone(), Arc::new(input))
        .with_title(offer.name.to_string())
        .with_raw_output_schema(Arc::clone(output))
        .with_annotations(annotations)
}

fn own_tools(output: &Arc<JsonObject>) -> Vec<Tool> {
    let task = json!({ "type": "string", "description": "The `taskId` of a result." });
    let reads = || ToolAnnotations::new().read_only(true);
    let tool = |name: &'static str, about: &'static str, input: JsonObject| {
        Tool::new(name, about, Arc::new(input))
    };
    let wait = json!({
        "type": "integer", "minimum": 0, "maximum": WAIT_S_MAX,
        "description": "Longest wait in seconds. Omit it to wait until the task ends or needs a person.",
    });
    let count = json!({ "type": "integer", "minimum": 1, "maximum": LIST_MAX });
    let status = json!({
        "type": "string",
        "enum": ["pending", "running", "input_required", "completed", "failed", "canceled"],
    });
    let by_task = || schema(json!({ "taskId": task }), &["taskId"]);
    vec![
        tool(TASK_GET, "Reads a task: its status, its result, and what it waits for.", by_task())
            .with_raw_output_schema(Arc::clone(output))
            .with_annotations(reads()),
        tool(
            TASK_WAIT,
            "Waits until a task has ended or needs a person.",
            schema(json!({ "taskId": task, "timeoutSeconds": wait }), &["taskId"]),
        )
        .with_raw_output_schema(Arc::clone(output))
        .with_annotations(reads()),
        tool(
            TASK_LIST,
            "Lists your tasks, the newest first.",
            schema(json!({ "limit": count, "status": status, "before": task }), &[]),
        )
        .with_annotations(reads()),
        tool(
            TASK_SEND,
            "Sends a message to a task that has not ended. A paused or interrupted task goes on with it.",
            schema(json!({ "taskId": task, "message": { "type": "string" } }), &["taskId", "message"]),
        )
        .with_raw_output_schema(Arc::clone(output))
        .with_annotations(ToolAnnotations::new().read_only(false)),
        tool(TASK_CANCEL, "Cancels a task and everything that it has started.", by_task())
            .with_raw_output_schema(Arc::clone(output))
            .with_annotations(
                ToolAnnotations::new().read_only(false).destructive(true).idempotent(true),
            ),
    ]
}

fn schema(properties: Value, required: &[&str]) -> JsonObject {
    object(json!({
        "type": "object", "properties": properties, "required": required,
        "additionalProperties": false,
    }))
}
