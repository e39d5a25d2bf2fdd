//! A tree of tasks as its journal tells it, and what must hold of it.

mod family;
mod promises;

use std::collections::BTreeMap;

use antiphon_core::{
    EventBody, InputBlock, Message, TaskCreated, TaskId, TaskStatus, ToolCallBlock, ToolCallId,
    ToolResultMessage,
};
use serde_json::Value;

pub(crate) use promises::begins;

/// A tree of tasks.
pub(crate) struct Tree {
    /// Where to look when something does not hold.
    place: String,
    tasks: BTreeMap<TaskId, Task>,
}

/// A task that has ended.
struct Task {
    created: TaskCreated,
    /// What it was asked first, by which it is known.
    asked: String,
    bodies: Vec<EventBody>,
    status: TaskStatus,
    /// What whoever waits for it is told.
    content: Value,
}

impl Tree {
    /// The tree in a journal: every task begins once, and nothing follows its end.
    pub(crate) fn of(by_task: BTreeMap<TaskId, Vec<EventBody>>, place: &str) -> Self {
        let task = |(task_id, bodies): (TaskId, Vec<EventBody>)| {
            let task = Task::of(bodies, &format!("{task_id}: {place}"));
            (task_id, task)
        };
        Self { place: place.to_owned(), tasks: by_task.into_iter().map(task).collect() }
    }

    fn named(&self, asked: &str) -> &Task {
        let found = self.tasks.values().find(|task| task.asked == asked);
        found.unwrap_or_else(|| panic!("there is no task {asked}: {}", self.place))
    }

    /// Of a task, for whoever reads that something does not hold.
    fn at(&self, task: &Task) -> String {
        format!("{} ({}), {:?}: {}", task.asked, task.created.agent, task.status, self.place)
    }
}

impl Task {
    fn of(bodies: Vec<EventBody>, place: &str) -> Self {
        let Some(EventBody::TaskCreated(created)) = bodies.first() else {
            panic!("it begins with {:?}: {place}", bodies.first());
        };
        let Some(EventBody::StatusChanged(end)) = bodies.last().filter(|last| last.ends_task())
        else {
            panic!("{} has not ended, it is at {:?}: {place}", created.agent, bodies.last());
        };
        let created_often =
            bodies.iter().filter(|body| matches!(body, EventBody::TaskCreated(_))).count();
        let ended_often = bodies.iter().filter(|body| body.ends_task()).count();
        assert_eq!((created_often, ended_often), (1, 1), "{place}");
        let asked = bodies.iter().find_map(|body| match message(body) {
            Some(Message::User(user)) => Some(text(&user.content)),
            Some(Message::Assistant(_) | Message::ToolResult(_)) | None => None,
        });
        let word = Value::String(end.status.as_str().to_owned());
        Self {
            created: created.clone(),
            asked: asked.unwrap_or_default(),
            status: end.status,
            content: end.detail.clone().unwrap_or(word),
            bodies,
        }
    }

    /// Every call of a tool, in order.
    fn calls(&self) -> impl Iterator<Item = &ToolCallBlock> {
        self.bodies.iter().filter_map(message).flat_map(|message| match message {
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

    /// Whether somebody called it off: then it need not have done what it began.
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
