//! The plan of a turn as the editor shows it: the agent's list of things to do, and behind it the child tasks.

use antiphon_core::{
    Event, EventBody, InputBlock, Message, TaskId, TaskStatus, TodoItem, TodoStatus,
};
use antiphon_view::display::escaped;
use antiphon_view::text::{cut, one_line};

use crate::schema::{Plan, PlanEntry, PlanEntryPriority, PlanEntryStatus, SessionUpdate};

/// Most child tasks of a plan.
const CHILDREN_MAX: usize = 100;

/// The plan of a turn.
pub(crate) struct TaskPlan {
    task_id: TaskId,
    todo: Vec<TodoItem>,
    children: Vec<Child>,
}

/// A child task.
struct Child {
    task_id: TaskId,
    text: String,
    status: PlanEntryStatus,
}

impl TaskPlan {
    pub(crate) fn new(task_id: TaskId) -> Self {
        Self { task_id, todo: Vec::new(), children: Vec::new() }
    }

    /// The whole plan, if the event changes it.
    pub(crate) fn event(&mut self, event: &Event) -> Option<SessionUpdate> {
        if event.task_id == self.task_id {
            let EventBody::TodoChanged(changed) = &event.body else { return None };
            self.todo.clone_from(&changed.items);
        } else {
            self.descendant(event)?;
        }
        let todo = self.todo.iter().map(|item| {
            let status = match item.status {
                TodoStatus::Pending => PlanEntryStatus::Pending,
                TodoStatus::InProgress => PlanEntryStatus::InProgress,
                TodoStatus::Done => PlanEntryStatus::Completed,
            };
            (cut(&escaped(&one_line(&item.text))), status)
        });
        let children = self.children.iter().map(|child| (child.text.clone(), child.status.clone()));
        let entry = |(text, status)| PlanEntry::new(text, PlanEntryPriority::Medium, status);
        Some(SessionUpdate::Plan(Plan::new(todo.chain(children).map(entry).collect())))
    }

    /// Whether an event of a descendant changes the plan: `None` if it does not.
    fn descendant(&mut self, event: &Event) -> Option<()> {
        if let EventBody::TaskCreated(created) = &event.body {
            let is_child = created.parent.as_ref() == Some(&self.task_id);
            if !is_child || self.children.len() >= CHILDREN_MAX {
                return None;
            }
            let text = cut(&escaped(&created.agent));
            let (task_id, status) = (event.task_id.clone(), PlanEntryStatus::Pending);
            self.children.push(Child { task_id, text, status });
        } else if let EventBody::MessageAppended(appended) = &event.body {
            let Message::User(message) = &*appended.message else { return None };
            let child = self.child(&event.task_id)?;
            if child.status != PlanEntryStatus::Pending || child.text.contains(": ") {
                return None;
            }
            let text = message.content.iter().find_map(|block| match block {
                InputBlock::Text(text) => Some(text.text.as_str()),
                InputBlock::Image(_) => None,
            })?;
            child.text = cut(&format!("{}: {}", child.text, escaped(&one_line(text))));
        } else if let EventBody::StatusChanged(change) = &event.body {
            let child = self.child(&event.task_id)?;
            let is_over = change.status.is_terminal();
            child.status =
                if is_over { PlanEntryStatus::Completed } else { PlanEntryStatus::InProgress };
            if is_over && change.status != TaskStatus::Completed {
                child.text = format!("{} ({})", child.text, change.status.as_str());
            }
        } else {
            return None;
        }
        Some(())
    }

    fn child(&mut self, task_id: &TaskId) -> Option<&mut Child> {
        self.children.iter_mut().find(|child| child.task_id == *task_id)
    }
}
