//! Tasks on a peer, as they are listed here.

use std::collections::HashMap;

use crate::{Relayed, RunsOn, TaskId, TaskSummary};

/// Tasks on a peer below one task, folded from the `relayed` events of that task.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PeerTasks {
    /// Id of the task on the peer.
    remote_task_id: Option<TaskId>,
    tasks: Vec<TaskSummary>,
    index: HashMap<TaskId, usize>,
}

impl PeerTasks {
    /// Applies the next `relayed` event of the task.
    pub fn apply(&mut self, relayed: &Relayed) {
        self.remote_task_id = Some(relayed.task_id.clone());
        for task in &relayed.tasks {
            match self.index.get(&task.task_id) {
                Some(place) => self.tasks[*place] = task.clone(),
                None => {
                    self.index.insert(task.task_id.clone(), self.tasks.len());
                    self.tasks.push(task.clone());
                }
            }
        }
    }

    /// The task with this id, as the peer last listed it.
    pub fn get(&self, task_id: &TaskId) -> Option<&TaskSummary> {
        self.index.get(task_id).map(|place| &self.tasks[*place])
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.tasks.is_empty()
    }

    /// The tasks as descendants of `task` here, a parent before its children.
    pub fn below(self, task: &TaskSummary) -> Vec<TaskSummary> {
        let Some(remote) = self.remote_task_id else { return Vec::new() };
        self.tasks.into_iter().map(|below| below.at_peer_of(task, &remote)).collect()
    }
}

impl TaskSummary {
    /// A task of the peer of `task`, as a descendant of it here. `remote` is the id of `task` there.
    #[must_use]
    pub fn at_peer_of(self, task: &TaskSummary, remote: &TaskId) -> TaskSummary {
        let parent = match self.parent {
            Some(parent) if parent != *remote => parent,
            Some(_) | None => task.task_id.clone(),
        };
        let own = self.runs_on;
        let names = [task.runs_on.peer.clone(), own.peer.clone()];
        let peer = names.into_iter().flatten().collect::<Vec<String>>().join("/");
        let runner = if own.is_local() { task.runs_on.runner.clone() } else { own.runner };
        TaskSummary {
            parent: Some(parent),
            root: task.root.clone(),
            runs_on: RunsOn { runner, peer: Some(peer) },
            ..self
        }
    }
}
