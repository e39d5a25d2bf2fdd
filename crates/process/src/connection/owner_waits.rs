//! Knowledge of the owner of a project's journal that the journal's file cannot hold: which tasks wait until
//! it can be written.

use std::collections::HashMap;
use std::num::NonZeroUsize;
use std::time::Duration;

use antiphon_api::{LISTED_MAX, TaskQuery};
use antiphon_core::{OutageWait, TaskId, TaskStatus, TaskSummary, WaitingFor};

use super::{ProjectAccess, ProjectServer, journal_owner};

/// How long the owner may take to answer a command. What it knows is left out after that: looking is always possible.
const ANSWER_WAIT: Duration = Duration::from_secs(1);

/// Tasks that are asked for, at most.
const LISTED: NonZeroUsize = NonZeroUsize::new(LISTED_MAX).unwrap();

impl ProjectAccess<'_> {
    /// The process that owns the journal, if there is one and it answers. One that is stopped does not.
    pub async fn owner(&self) -> Option<ProjectServer> {
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
    pub fn stopped_owner(&self) -> Option<u32> {
        let Self::Folder { project, .. } = self else { return None };
        let owner = journal_owner::owner_of(&project.journal_path());
        owner.filter(|owner| journal_owner::is_stopped(*owner))
    }

    /// Whether one of these tasks should run, and no process runs the tasks of the project.
    pub fn is_idle(&self, tasks: &[TaskSummary]) -> bool {
        let Self::Folder { project, .. } = self else { return false };
        let runs =
            |task: &TaskSummary| matches!(task.status, TaskStatus::Pending | TaskStatus::Running);
        tasks.iter().any(runs) && !journal_owner::is_owned_by_another(&project.journal_path())
    }

    /// Says of each of these tasks that waits for the journal why, and when it tries again.
    pub async fn mark_storage_waits(&self, tasks: &mut [TaskSummary]) {
        if tasks.iter().all(|task| task.status.is_terminal()) {
            return;
        }
        let asked = async {
            match self.owner().await {
                Some(owner) => owner.storage_waits().await,
                None => HashMap::new(),
            }
        };
        let mut waits = tokio::time::timeout(ANSWER_WAIT, asked).await.unwrap_or_default();
        for task in tasks {
            if let Some(wait) = waits.remove(&task.task_id) {
                (task.waiting_for, task.wait) = (Some(WaitingFor::Storage), Some(wait));
            }
        }
    }
}

impl ProjectServer {
    /// Tasks that wait until the journal can be written. None when the server does not answer.
    pub async fn storage_waits(&self) -> HashMap<TaskId, OutageWait> {
        let query = TaskQuery { unfinished: true, limit: Some(LISTED), ..TaskQuery::default() };
        let asked = tokio::time::timeout(ANSWER_WAIT, self.client.tasks(&query)).await;
        let Ok(Ok(page)) = asked else { return HashMap::new() };
        let waits =
            page.tasks.into_iter().filter(|task| task.waiting_for == Some(WaitingFor::Storage));
        waits.filter_map(|task| Some((task.task_id, task.wait?))).collect()
    }
}
