//! The descendants of the watched task, and the notes about each.
//!
//! Only descendants that have not ended are kept, so memory grows with running work and not with
//! finished work. Of more than [`LISTED_MAX`] running at once, the others are counted: they get one
//! note together when all of them have ended. An event of another tree gives no note.

mod descendant;

use std::collections::{HashMap, HashSet};

use antiphon_core::{
    AgentState, Dispatched, Event, EventBody, Join, StatusChanged, TaskCreated, TaskId, TaskStatus,
};

use crate::display::escaped;
use crate::note::{Note, Tone};
use crate::text;
use crate::tree::TaskTree;
use descendant::{Descendant, Reporting, name};

/// Descendants that get a note for every step, at once.
const LISTED_MAX: usize = 8;

/// Failures of counted descendants that get a note of their own.
const FAILURES_LISTED_MAX: usize = 10;

/// Names that are numbered when they occur again; later names are not.
const NAMES_MAX: usize = 1000;

/// The descendants of the watched task.
#[derive(Debug)]
pub struct Descendants {
    top: TaskId,
    running: HashMap<TaskId, Descendant>,
    /// How often each name occurred.
    names: HashMap<String, u32>,
    /// How many of the running descendants get a note for every step.
    listed: usize,
    counted: CountedTasks,
    awaited: AwaitedChildren,
}

/// Descendants without notes of their own.
#[derive(Debug, Default)]
struct CountedTasks {
    running: usize,
    completed: usize,
    failed: usize,
    canceled: usize,
}

/// The children the task at the top waits for.
#[derive(Debug, Default)]
struct AwaitedChildren {
    total: usize,
    running: HashSet<TaskId>,
}

impl Descendants {
    /// No descendants yet, of the task `top`.
    pub fn new(top: TaskId) -> Self {
        Self {
            top,
            running: HashMap::new(),
            names: HashMap::new(),
            listed: 0,
            counted: CountedTasks::default(),
            awaited: AwaitedChildren::default(),
        }
    }

    /// Adds the descendants that existed before watching began.
    pub fn add_existing(&mut self, tree: &TaskTree) {
        let below = tree.tasks().iter().skip(1);
        for task in below.filter(|task| !task.summary.status.is_terminal()) {
            let summary = &task.summary;
            self.add(&summary.task_id, &summary.agent, task.depth).began = true;
        }
    }

    /// Whether this is a descendant that has not ended.
    pub fn contains(&self, task_id: &TaskId) -> bool {
        self.running.contains_key(task_id)
    }

    /// The name of a descendant in notes; `None` when it has ended or is not a descendant.
    pub fn label(&self, task_id: &TaskId) -> Option<&str> {
        self.running.get(task_id).map(|task| task.label.as_str())
    }

    /// `3 of 5 agents done`, while the task at the top waits for them.
    pub fn waiting_text(&self) -> Option<String> {
        let AwaitedChildren { total, running } = &self.awaited;
        (!running.is_empty()).then(|| format!("{} of {total} agents done", total - running.len()))
    }

    /// Whether an event is of a descendant, or creates one.
    pub fn concerns(&self, event: &Event) -> bool {
        if let EventBody::TaskCreated(created) = &event.body {
            return self.depth_below(created.parent.as_ref()).is_some();
        }
        self.contains(&event.task_id)
    }

    /// Applies an event of the task at the top: it may begin or stop waiting for children.
    #[expect(
        clippy::wildcard_enum_match_arm,
        reason = "a new event changes only the readers that show it"
    )]
    pub fn apply_to_top(&mut self, body: &EventBody) {
        match body {
            EventBody::Dispatched(Dispatched { join, children, .. }) => match join {
                Join::Detached => {}
                Join::Single | Join::All | Join::Any | Join::Quorum { .. } => {
                    self.awaited.total += children.len();
                    self.awaited.running.extend(children.iter().cloned());
                }
            },
            EventBody::Awaited(awaited) => {
                let running = awaited.tasks.iter().filter(|task| self.contains(task));
                let running: Vec<TaskId> = running.cloned().collect();
                self.awaited.total += running.len();
                self.awaited.running.extend(running);
            }
            EventBody::StateChanged(change) => {
                let still_calls = |state: AgentState| state == AgentState::ToolCall;
                if !change.moves().all(|(_, to)| still_calls(to)) {
                    // It runs again, so it waits for no child.
                    self.awaited = AwaitedChildren::default();
                }
            }
            _ => {}
        }
    }

    /// Applies an event of a descendant. Returns the notes about it.
    pub fn apply(&mut self, event: &Event) -> Vec<Note> {
        if let EventBody::TaskCreated(created) = &event.body {
            return self.created(&event.task_id, created);
        }
        if let EventBody::StatusChanged(change) = &event.body
            && change.status.is_terminal()
        {
            return self.ended(&event.task_id, change);
        }
        let Some(task) = self.running.get_mut(&event.task_id) else { return Vec::new() };
        let note = task.apply(&event.body);
        note.filter(|_| task.reporting == Reporting::EachStep).into_iter().collect()
    }

    fn depth_below(&self, parent: Option<&TaskId>) -> Option<usize> {
        let parent = parent?;
        if *parent == self.top {
            return Some(1);
        }
        self.running.get(parent).map(|parent| parent.depth + 1)
    }

    fn created(&mut self, task_id: &TaskId, created: &TaskCreated) -> Vec<Note> {
        let Some(depth) = self.depth_below(created.parent.as_ref()) else { return Vec::new() };
        // Added by `add_existing` before its creation was read.
        if self.contains(task_id) {
            return Vec::new();
        }
        let first = self.counted.running == 0;
        let task = self.add(task_id, &created.agent, depth);
        task.runner = created.runner.as_ref().map(|runner| text::cut(&escaped(&runner.kind)));
        match task.reporting {
            Reporting::Counted if first => {
                vec![faint("[…] more agents begin: they are counted, not listed one by one")]
            }
            Reporting::Counted | Reporting::EachStep => Vec::new(),
        }
    }

    fn add(&mut self, task_id: &TaskId, agent: &str, depth: usize) -> &mut Descendant {
        let reporting = if self.listed < LISTED_MAX {
            self.listed += 1;
            Reporting::EachStep
        } else {
            self.counted.running += 1;
            Reporting::Counted
        };
        let label = self.new_label(agent);
        let task = Descendant::new(label, depth, reporting);
        self.running.entry(task_id.clone()).insert_entry(task).into_mut()
    }

    /// The name of an agent, numbered from its second occurrence on.
    fn new_label(&mut self, agent: &str) -> String {
        let name = name(agent);
        if self.names.len() >= NAMES_MAX && !self.names.contains_key(&name) {
            return name;
        }
        let times = self.names.entry(name.clone()).or_default();
        *times = times.saturating_add(1);
        if *times == 1 { name } else { format!("{name} {times}") }
    }

    fn ended(&mut self, task_id: &TaskId, change: &StatusChanged) -> Vec<Note> {
        self.awaited.running.remove(task_id);
        let Some(task) = self.running.remove(task_id) else { return Vec::new() };
        match task.reporting {
            Reporting::EachStep => {
                self.listed -= 1;
                vec![task.end(change)]
            }
            Reporting::Counted => self.counted.end(&task, change),
        }
    }
}

impl CountedTasks {
    fn end(&mut self, task: &Descendant, change: &StatusChanged) -> Vec<Note> {
        self.running = self.running.saturating_sub(1);
        let mut notes = Vec::new();
        match change.status {
            TaskStatus::Failed => {
                self.failed += 1;
                if self.failed <= FAILURES_LISTED_MAX {
                    notes.push(task.end(change));
                }
            }
            TaskStatus::Canceled => self.canceled += 1,
            TaskStatus::Completed
            | TaskStatus::Pending
            | TaskStatus::Running
            | TaskStatus::InputRequired => self.completed += 1,
        }
        if self.running == 0 {
            notes.push(faint(&std::mem::take(self).to_string()));
        }
        notes
    }
}

impl std::fmt::Display for CountedTasks {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let all = self.completed + self.failed + self.canceled;
        write!(f, "[…] {}: {} done", text::count(all as u64, "more agent"), self.completed)?;
        if self.failed > 0 {
            write!(f, ", {} failed", self.failed)?;
        }
        if self.canceled > 0 {
            write!(f, ", {} canceled", self.canceled)?;
        }
        Ok(())
    }
}

fn faint(text: &str) -> Note {
    Note { text: format!("  {text}"), tone: Tone::Faint }
}

#[cfg(test)]
mod tests;
