//! A tree of tasks as its journal records it, and the guarantees about it.

mod guarantees;
mod members;

use std::collections::BTreeMap;

use antiphon_core::{
    EventBody, InputBlock, Message, StopReason, TaskCreated, TaskId, TaskStatus, ToolCallBlock,
    ToolCallId, ToolResultMessage,
};
use serde_json::Value;

pub(crate) use guarantees::starts_call;

/// A tree of tasks.
pub(crate) struct Tree {
    /// Seed and kills of the run, for failure messages.
    context: String,
    tasks: BTreeMap<TaskId, Task>,
}

/// A task that has ended.
struct Task {
    created: TaskCreated,
    /// Its first prompt, which identifies it.
    prompt: String,
    bodies: Vec<EventBody>,
    status: TaskStatus,
    /// The result its caller gets.
    content: Value,
}

impl Tree {
    /// The tree in a journal. Checks that every task is created once and ends once.
    pub(crate) fn of(by_task: BTreeMap<TaskId, Vec<EventBody>>, context: &str) -> Self {
        let task = |(task_id, bodies): (TaskId, Vec<EventBody>)| {
            let task = Task::of(bodies, &format!("{task_id}: {context}"));
            (task_id, task)
        };
        Self { context: context.to_owned(), tasks: by_task.into_iter().map(task).collect() }
    }

    fn with_prompt(&self, prompt: &str) -> &Task {
        let found = self.tasks.values().find(|task| task.prompt == prompt);
        found.unwrap_or_else(|| panic!("there is no task {prompt}: {}", self.context))
    }

    /// Describes a task in failure messages.
    fn describe(&self, task: &Task) -> String {
        format!("{} ({}), {:?}: {}", task.prompt, task.created.agent, task.status, self.context)
    }
}

impl Task {
    fn of(bodies: Vec<EventBody>, context: &str) -> Self {
        let Some(EventBody::TaskCreated(created)) = bodies.first() else {
            panic!("it begins with {:?}: {context}", bodies.first());
        };
        let Some(EventBody::StatusChanged(end)) = bodies.last().filter(|last| last.ends_task())
        else {
            panic!("{} has not ended, it is at {:?}: {context}", created.agent, bodies.last());
        };
        let created_count =
            bodies.iter().filter(|body| matches!(body, EventBody::TaskCreated(_))).count();
        let ended_count = bodies.iter().filter(|body| body.ends_task()).count();
        assert_eq!((created_count, ended_count), (1, 1), "{context}");
        let prompt = bodies.iter().find_map(|body| match message(body) {
            Some(Message::User(user)) => Some(text(&user.content)),
            Some(Message::Assistant(_) | Message::ToolResult(_)) | None => None,
        });
        let word = Value::String(end.status.as_str().to_owned());
        Self {
            created: created.clone(),
            prompt: prompt.unwrap_or_default(),
            status: end.status,
            content: end.detail.clone().unwrap_or(word),
            bodies,
        }
    }

    /// Every tool call, in order.
    fn calls(&self) -> impl Iterator<Item = &ToolCallBlock> {
        self.bodies.iter().filter_map(message).flat_map(|message| match message {
            // The calls of an answer that broke off never run.
            Message::Assistant(answer) if answer.stop_reason == StopReason::Aborted => Vec::new(),
            Message::Assistant(answer) => answer.tool_calls().collect(),
            Message::User(_) | Message::ToolResult(_) => Vec::new(),
        })
    }

    /// Every result of a call.
    fn results(&self, call: &ToolCallId) -> Vec<&ToolResultMessage> {
        let result = |body| match message(body)? {
            Message::ToolResult(result) => (result.tool_call_id == *call).then_some(result),
            Message::User(_) | Message::Assistant(_) => None,
        };
        self.bodies.iter().filter_map(result).collect()
    }

    /// Whether it was canceled: then its calls may have no results.
    fn is_canceled(&self) -> bool {
        self.status == TaskStatus::Canceled
    }
}

pub(crate) fn message(body: &EventBody) -> Option<&Message> {
    if let EventBody::MessageAppended(appended) = body { Some(&appended.message) } else { None }
}

pub(crate) fn text(blocks: &[InputBlock]) -> String {
    let text = |block: &InputBlock| match block {
        InputBlock::Text(text) => text.text.clone(),
        InputBlock::Image(_) => String::new(),
    };
    blocks.iter().map(text).collect()
}
