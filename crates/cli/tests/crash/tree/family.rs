//! Who is in the tree: everybody who was named, once, and nobody else.

use std::collections::BTreeMap;

use antiphon_core::{Dispatched, EventBody, TaskId, TaskStatus};

use super::{Task, Tree};

/// How a task may end, by what it was asked. One that may be missing is one whose parent was
/// canceled.
const FATES: [(&str, &[TaskStatus]); 33] = [
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
    /// Every child that was named is there once, below whoever named it, and there is nobody else.
    /// Everybody was asked what they should be, and ended as they may.
    pub(crate) fn check_family(&self) {
        let (top, named) = (self.top(), self.named_children());
        for (task_id, task) in &self.tasks {
            let parent = named.get(task_id).copied();
            assert_eq!(task.created.parent.as_ref(), parent, "{}", self.at(task));
            assert_eq!(task.created.root.as_ref(), parent.map(|_| top), "{}", self.at(task));
            let fate = FATES.iter().find(|(asked, _)| *asked == task.asked);
            assert!(
                fate.is_some_and(|(_, fate)| fate.contains(&task.status)),
                "{:?}: {}",
                task.content,
                self.at(task)
            );
        }
        for (child, parent) in &named {
            let there = self.tasks.contains_key(*child) || self.tasks[*parent].is_canceled();
            assert!(there, "{child} was named and is not there: {}", self.at(&self.tasks[*parent]));
        }
        for (asked, _) in FATES {
            let count = self.tasks.values().filter(|task| task.asked == asked).count();
            let expected = if asked.starts_with("A2.3.") { 0..=1 } else { 1..=1 };
            assert!(expected.contains(&count), "{asked} is there {count} times: {}", self.place);
        }
    }

    /// Everybody who got to the end delivered what they should.
    pub(crate) fn check_results(&self) {
        for task in self.tasks.values().filter(|task| task.status == TaskStatus::Completed) {
            let expected = match task.asked.as_str() {
                "go" => "That was all.".to_owned(),
                "A1" | "A2" | "A3" | "A4" | "A5" => "So it is.".to_owned(),
                leaf => format!("{leaf} is done."),
            };
            assert_eq!(task.content, expected, "{}", self.at(task));
        }
    }

    /// Who named whom. Nobody is named twice.
    fn named_children(&self) -> BTreeMap<&TaskId, &TaskId> {
        let mut named = BTreeMap::new();
        for (parent, task) in &self.tasks {
            for child in task.dispatches().flat_map(|dispatched| &dispatched.children) {
                let before = named.insert(child, parent);
                assert_eq!(before, None, "{child} was named twice: {}", self.at(task));
            }
        }
        named
    }

    /// The task at the top: the one that nobody dispatched.
    fn top(&self) -> &TaskId {
        let tops = self.tasks.iter().filter(|(_, task)| task.created.parent.is_none());
        let tops: Vec<&TaskId> = tops.map(|(task_id, _)| task_id).collect();
        let [top] = tops[..] else { panic!("not one top: {tops:?}: {}", self.place) };
        top
    }

    /// Who should have run elsewhere was sent there, and nobody else.
    pub(crate) fn check_housing(&self, is_elsewhere: impl Fn(&str) -> bool) {
        for task in self.tasks.values() {
            let runner = task.created.runner.as_ref().map(|runner| runner.kind.as_str());
            let expected = is_elsewhere(&task.created.agent).then_some("sandbox");
            assert_eq!(runner, expected, "{}", self.at(task));
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
