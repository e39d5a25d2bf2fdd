//! The tasks of the tree: each dispatched task once, and no other.

use std::collections::BTreeMap;

use antiphon_core::{Dispatched, EventBody, TaskId, TaskStatus};

use super::{Task, Tree};

/// The statuses a task may end with, by its prompt. A child of a canceled task may be missing.
const EXPECTED: [(&str, &[TaskStatus]); 33] = [
    ("go", &[TaskStatus::Completed]),
    ("A1", &[TaskStatus::Completed]),
    ("A1.1", &[TaskStatus::Completed]),
    ("A1.2", &[TaskStatus::Completed]),
    ("A1.3", &[TaskStatus::Failed]),
    ("A1.3.1", &[TaskStatus::Canceled]),
    ("A1.4", &[TaskStatus::Completed]),
    ("A1.5", &[TaskStatus::Completed]),
    ("A2", &[TaskStatus::Completed]),
    ("A2.1", &[TaskStatus::Failed, TaskStatus::Canceled]),
    ("A2.2", &[TaskStatus::Canceled]),
    ("A2.3", &[TaskStatus::Canceled]),
    ("A2.3.1", &[TaskStatus::Canceled]),
    ("A2.3.2", &[TaskStatus::Canceled]),
    ("A2.4", &[TaskStatus::Completed, TaskStatus::Canceled]),
    ("A2.5", &[TaskStatus::Completed, TaskStatus::Canceled]),
    ("A3", &[TaskStatus::Completed]),
    ("A3.1", &[TaskStatus::Completed, TaskStatus::Canceled]),
    ("A3.2", &[TaskStatus::Canceled]),
    ("A3.3", &[TaskStatus::Completed, TaskStatus::Canceled]),
    ("A3.4", &[TaskStatus::Failed, TaskStatus::Canceled]),
    ("A3.5", &[TaskStatus::Completed, TaskStatus::Canceled]),
    ("A4", &[TaskStatus::Completed]),
    ("A4.1", &[TaskStatus::Completed]),
    ("A4.2", &[TaskStatus::Completed]),
    ("A4.3", &[TaskStatus::Completed]),
    ("A5", &[TaskStatus::Completed]),
    ("A5.1", &[TaskStatus::Completed]),
    ("B1", &[TaskStatus::Completed]),
    ("B2", &[TaskStatus::Completed]),
    ("C1", &[TaskStatus::Completed]),
    ("D1", &[TaskStatus::Completed]),
    ("D2", &[TaskStatus::Completed]),
];

impl Tree {
    /// Every dispatched child exists once, below the task that dispatched it, and no other task exists.
    /// Every task has an expected prompt and status.
    pub(crate) fn check_members(&self) {
        let (top, children) = (self.top(), self.dispatched_children());
        for (task_id, task) in &self.tasks {
            let parent = children.get(task_id).copied();
            assert_eq!(task.created.parent.as_ref(), parent, "{}", self.describe(task));
            assert_eq!(task.created.root.as_ref(), parent.map(|_| top), "{}", self.describe(task));
            let expected = EXPECTED.iter().find(|(prompt, _)| *prompt == task.prompt);
            assert!(
                expected.is_some_and(|(_, statuses)| statuses.contains(&task.status)),
                "{:?}: {}",
                task.content,
                self.describe(task)
            );
        }
        for (child, parent) in &children {
            let exists = self.tasks.contains_key(*child) || self.tasks[*parent].is_canceled();
            assert!(
                exists,
                "{child} was dispatched and does not exist: {}",
                self.describe(&self.tasks[*parent])
            );
        }
        for (prompt, _) in EXPECTED {
            let count = self.tasks.values().filter(|task| task.prompt == prompt).count();
            let expected = if prompt.starts_with("A2.3.") { 0..=1 } else { 1..=1 };
            assert!(expected.contains(&count), "{prompt} exists {count} times: {}", self.context);
        }
    }

    /// Every completed task has the expected result.
    pub(crate) fn check_results(&self) {
        for task in self.tasks.values().filter(|task| task.status == TaskStatus::Completed) {
            let expected = match task.prompt.as_str() {
                "go" => "That was all.".to_owned(),
                "A1" | "A2" | "A3" | "A4" | "A5" => "So it is.".to_owned(),
                leaf => format!("{leaf} is done."),
            };
            assert_eq!(task.content, expected, "{}", self.describe(task));
        }
    }

    /// The parent of each child. Checks that no child was dispatched twice.
    fn dispatched_children(&self) -> BTreeMap<&TaskId, &TaskId> {
        let mut parents = BTreeMap::new();
        for (parent, task) in &self.tasks {
            for child in task.dispatches().flat_map(|dispatched| &dispatched.children) {
                let earlier = parents.insert(child, parent);
                assert_eq!(earlier, None, "{child} was dispatched twice: {}", self.describe(task));
            }
        }
        parents
    }

    /// The task at the top, which has no parent.
    fn top(&self) -> &TaskId {
        let tops = self.tasks.iter().filter(|(_, task)| task.created.parent.is_none());
        let tops: Vec<&TaskId> = tops.map(|(task_id, _)| task_id).collect();
        let [top] = tops[..] else { panic!("not one top: {tops:?}: {}", self.context) };
        top
    }

    /// The expected tasks ran in the sandbox, and no others.
    pub(crate) fn check_placement(&self, is_sandboxed: impl Fn(&str) -> bool) {
        for task in self.tasks.values() {
            let runner = task.created.runner.as_ref().map(|runner| runner.kind.as_str());
            let expected = is_sandboxed(&task.created.agent).then_some("sandbox");
            assert_eq!(runner, expected, "{}", self.describe(task));
        }
    }
}

impl Task {
    pub(super) fn dispatches(&self) -> impl Iterator<Item = &Dispatched> {
        self.bodies.iter().filter_map(|body| {
            if let EventBody::Dispatched(dispatched) = body { Some(dispatched) } else { None }
        })
    }
}
