//! What the process that owns a project's journal knows, and the journal's file cannot hold: which tasks wait until
//! it can be written.

use std::collections::HashMap;
use std::num::NonZeroUsize;
use std::time::Duration;

use antiphon_api::{LISTED_MAX, TaskQuery};
use antiphon_core::{OutageWait, TaskId, TaskStatus, TaskSummary, WaitingFor};

use super::journal_owner::{self, is_stopped};
use super::ownership::stopped_owner;
use super::{ProjectAccess, ProjectServer};

/// How long the owner may take to answer a command. What it knows is left out after that: looking is always possible.
const ANSWER_WAIT: Duration = Duration::from_secs(1);

/// What to do about tasks that no process runs.
const IDLE: &str = "no process works on running tasks now: go on with one by `antiphon run --resume TASK`, with all by `antiphon serve`";

/// Tasks that are asked for, at most.
const LISTED: NonZeroUsize = NonZeroUsize::new(LISTED_MAX).unwrap();

impl ProjectAccess<'_> {
    /// The process that owns the journal, if there is one and it answers. One that is stopped does not.
    pub(crate) async fn owner(&self) -> Option<ProjectServer> {
        match self {
            Self::Folder { .. } if self.stopped_owner().is_some() => None,
            Self::Folder { project, .. } => {
                let found = tokio::time::timeout(ANSWER_WAIT, ProjectServer::find(project)).await;
                found.ok()?.ok()?
            }
            Self::Server { server, .. } => Some((*server).clone()),
        }
    }

    /// The process that owns the journal of this folder, if it is stopped.
    fn stopped_owner(&self) -> Option<u32> {
        let Self::Folder { project, .. } = self else { return None };
        journal_owner::owner_of(&project.journal_path()).filter(|owner| is_stopped(*owner))
    }

    /// A hint when one of these tasks should run, and no process runs the tasks of the project.
    pub(crate) fn idle_hint(&self, tasks: &[TaskSummary]) -> Option<String> {
        let Self::Folder { project, .. } = self else { return None };
        let runs =
            |task: &TaskSummary| matches!(task.status, TaskStatus::Pending | TaskStatus::Running);
        if !tasks.iter().any(runs) {
            return None;
        }
        if let Some(owner) = self.stopped_owner() {
            return Some(stopped_owner(owner));
        }
        let is_idle = !journal_owner::is_owned_by_another(&project.journal_path());
        is_idle.then(|| IDLE.to_owned())
    }

    /// Says of each of these tasks that waits for the journal why, and when it tries again.
    pub(crate) async fn mark_storage_waits(&self, tasks: &mut [TaskSummary]) {
        if tasks.iter().all(|task| task.status.is_terminal()) {
            return;
        }
        let asked = async {
            match self.owner().await {
                Some(owner) => owner.storage_waits().await,
                None => HashMap::new(),
            }
        };
        let asked = tokio::time::timeout(ANSWER_WAIT, asked).await;
        let mut waits = asked.unwrap_or_default();
        for task in tasks {
            if let Some(wait) = waits.remove(&task.task_id) {
                (task.waiting_for, task.wait) = (Some(WaitingFor::Storage), Some(wait));
            }
        }
    }
}

impl ProjectServer {
    /// Tasks that wait until the journal can be written. None when the server does not answer.
    pub(crate) async fn storage_waits(&self) -> HashMap<TaskId, OutageWait> {
        let query = TaskQuery { unfinished: true, limit: Some(LISTED), ..TaskQuery::default() };
        let asked = tokio::time::timeout(ANSWER_WAIT, self.client.tasks(&query)).await;
        let Ok(Ok(page)) = asked else { return HashMap::new() };
        let waits =
            page.tasks.into_iter().filter(|task| task.waiting_for == Some(WaitingFor::Storage));
        waits.filter_map(|task| Some((task.task_id, task.wait?))).collect()
    }
}
