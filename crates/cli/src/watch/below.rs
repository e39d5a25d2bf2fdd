//! The tasks below the one that is watched: which they are, and what is told of each.
//!
//! Only those that have not ended are kept, so memory follows the work that goes on and not the
//! work that was done. When more than [`TOLD_MAX`] go on at once, the others are counted: they get
//! one line together when all of them have ended. An event of a task that is not below tells
//! nothing.

use std::collections::{HashMap, HashSet};

use antiphon_core::{
    AgentState, Dispatched, Event, EventBody, Join, StatusChanged, TaskCreated, TaskId, TaskStatus,
    visible,
};

use super::descendant::{Descendant, Telling, name};
use super::family::Family;
use super::note::{Note, Tone};
use crate::screen::cut;
use crate::terminal;

/// Tasks of which every step is told, at once.
const TOLD_MAX: usize = 8;

/// Failures that are told of those that are only counted.
const FAILURES_TOLD_MAX: usize = 10;

/// Names that are numbered when they come again; later ones are not.
const NAMES_MAX: usize = 1000;

/// The tasks below the one that is watched.
pub(crate) struct Below {
    top: TaskId,
    /// Those that have not ended.
    alive: HashMap<TaskId, Descendant>,
    /// How often each name was met.
    names: HashMap<String, u32>,
    /// Of those alive, so many are told step by step.
    told: usize,
    counted: Counted,
    waits: Waits,
}

/// Those that are not told one by one.
#[derive(Debug, Default)]
struct Counted {
    alive: usize,
    completed: usize,
    failed: usize,
    canceled: usize,
}

/// Whom the task at the top waits for.
#[derive(Debug, Default)]
struct Waits {
    all: usize,
    left: HashSet<TaskId>,
}

impl Below {
    pub(crate) fn new(top: TaskId) -> Self {
        Self {
            top,
            alive: HashMap::new(),
            names: HashMap::new(),
            told: 0,
            counted: Counted::default(),
            waits: Waits::default(),
        }
    }

    /// Its tasks that were there before.
    pub(crate) fn already(&mut self, family: &Family) {
        let below = family.members().iter().skip(1);
        for member in below.filter(|member| !member.summary.status.is_terminal()) {
            let task = &member.summary;
            self.meet(&task.task_id, &task.agent, member.depth).began = true;
        }
    }

    /// Whether this is a task below the one that is watched, and has not ended.
    pub(crate) fn contains(&self, task_id: &TaskId) -> bool {
        self.alive.contains_key(task_id)
    }

    /// What a task is called in notes, if it is one of these.
    pub(crate) fn label_of(&self, task_id: &TaskId) -> Option<&str> {
        self.alive.get(task_id).map(|task| task.label.as_str())
    }

    /// `3 of 5 agents done`, while the task at the top waits for them.
    pub(crate) fn waiting(&self) -> Option<String> {
        let Waits { all, left } = &self.waits;
        (!left.is_empty()).then(|| format!("{} of {all} agents done", all - left.len()))
    }

    /// Whether an event is one of these tasks', or makes one.
    pub(crate) fn concerns(&self, event: &Event) -> bool {
        if let EventBody::TaskCreated(created) = &event.body {
            return self.depth_below(created.parent.as_ref()).is_some();
        }
        self.contains(&event.task_id)
    }

    /// Something happened to the task at the top: whom does it wait for?
    pub(crate) fn top_did(&mut self, body: &EventBody) {
        if let EventBody::Dispatched(Dispatched { join, children, .. }) = body {
            if *join != Join::Detached {
                self.waits.all += children.len();
                self.waits.left.extend(children.iter().cloned());
            }
        } else if let EventBody::Awaited(awaited) = body {
            let alive = awaited.tasks.iter().filter(|task| self.alive.contains_key(*task));
            let alive: Vec<TaskId> = alive.cloned().collect();
            self.waits.all += alive.len();
            self.waits.left.extend(alive);
        } else if let EventBody::StateChanged(change) = body
            && change.to != AgentState::ToolCall
        {
            // It goes on: there is nobody left to wait for.
            self.waits = Waits::default();
        }
    }

    /// Something happened below: what is told of it.
    pub(crate) fn hear(&mut self, event: &Event) -> Vec<Note> {
        if let EventBody::TaskCreated(created) = &event.body {
            return self.created(&event.task_id, created);
        }
        if let EventBody::StatusChanged(change) = &event.body
            && change.status.is_terminal()
        {
            return self.ended(&event.task_id, change);
        }
        let Some(task) = self.alive.get_mut(&event.task_id) else { return Vec::new() };
        let note = task.did(&event.body);
        note.filter(|_| task.telling == Telling::StepByStep).into_iter().collect()
    }

    fn depth_below(&self, parent: Option<&TaskId>) -> Option<usize> {
        let parent = parent?;
        if *parent == self.top {
            return Some(1);
        }
        self.alive.get(parent).map(|parent| parent.depth + 1)
    }

    fn created(&mut self, task_id: &TaskId, created: &TaskCreated) -> Vec<Note> {
        let Some(depth) = self.depth_below(created.parent.as_ref()) else { return Vec::new() };
        // It was there before it was told of.
        if self.contains(task_id) {
            return Vec::new();
        }
        let first = self.counted.alive == 0;
        let task = self.meet(task_id, &created.agent, depth);
        task.runner = created.runner.as_ref().map(|runner| cut(&visible(&runner.kind)));
        match task.telling {
            Telling::Counted if first => {
                vec![faint("[…] more agents begin: they are counted, not told one by one")]
            }
            Telling::Counted | Telling::StepByStep => Vec::new(),
        }
    }

    fn meet(&mut self, task_id: &TaskId, agent: &str, depth: usize) -> &mut Descendant {
        let telling = if self.told < TOLD_MAX {
            self.told += 1;
            Telling::StepByStep
        } else {
            self.counted.alive += 1;
            Telling::Counted
        };
        let label = self.label(agent);
        let task = Descendant::new(label, depth, telling);
        self.alive.entry(task_id.clone()).insert_entry(task).into_mut()
    }

    /// Its agent's name, with a number when there is another of that name.
    fn label(&mut self, agent: &str) -> String {
        let name = name(agent);
        if self.names.len() >= NAMES_MAX && !self.names.contains_key(&name) {
            return name;
        }
        let times = self.names.entry(name.clone()).or_default();
        *times = times.saturating_add(1);
        if *times == 1 { name } else { format!("{name} {times}") }
    }

    fn ended(&mut self, task_id: &TaskId, change: &StatusChanged) -> Vec<Note> {
        self.waits.left.remove(task_id);
        let Some(task) = self.alive.remove(task_id) else { return Vec::new() };
        match task.telling {
            Telling::StepByStep => {
                self.told -= 1;
                vec![task.end(change)]
            }
            Telling::Counted => self.counted.end(&task, change),
        }
    }
}

impl Counted {
    fn end(&mut self, task: &Descendant, change: &StatusChanged) -> Vec<Note> {
        self.alive = self.alive.saturating_sub(1);
        let mut notes = Vec::new();
        match change.status {
            TaskStatus::Failed => {
                self.failed += 1;
                if self.failed <= FAILURES_TOLD_MAX {
                    notes.push(task.end(change));
                }
            }
            TaskStatus::Canceled => self.canceled += 1,
            TaskStatus::Completed
            | TaskStatus::Pending
            | TaskStatus::Running
            | TaskStatus::InputRequired => self.completed += 1,
        }
        if self.alive == 0 {
            notes.push(faint(&std::mem::take(self).to_string()));
        }
        notes
    }
}

impl std::fmt::Display for Counted {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let all = self.completed + self.failed + self.canceled;
        write!(f, "[…] {}: {} done", terminal::count(all as u64, "more agent"), self.completed)?;
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
