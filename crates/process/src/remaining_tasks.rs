//! Tasks of other processes that go on here when the task of this process is done. They belong to processes that are
//! clients of this one, or that were killed.
//!
//! | another process is there that takes the journal | then this process                                           |
//! |--------------------------------------------------|-------------------------------------------------------------|
//! | yes                                              | frees the journal at the first moment at which no call runs |
//! | no                                               | stays until no task goes on without a person or a client    |
//! | it was, and ended without taking the journal     | takes the journal again, if a task can go on                |
//!
//! A process that leaves as a client looks too: so the last of all processes that end at once works on what is left.

use std::time::{Duration, Instant};

use antiphon_core::TaskId;
use antiphon_interface_transport::Interface;
use antiphon_project::environment::Environment;
use antiphon_project::project::{OwnerRole, Project};

use crate::connection::{ClientLock, ProjectServer, Reservation};
use crate::owner::Owner;
use antiphon_project::error::ProjectError;

/// Pause between two looks for other processes.
const PAUSE: Duration = Duration::from_millis(100);

/// The same while no task works, and one waits for its model.
const PAUSE_MAX: Duration = Duration::from_secs(2);

/// Pause between two looks for the next owner.
const OWNER_PAUSE: Duration = Duration::from_millis(10);

/// How long another process may take to become the next owner. One that is stopped does not.
const NEXT_OWNER_WAIT: Duration = Duration::from_secs(2);

/// What a process needs to own the journal once more.
pub(crate) struct NextOwnership {
    pub(crate) project: Project,
    pub(crate) environment: Environment,
    pub(crate) role: OwnerRole,
    pub(crate) interface: fn() -> Interface,
}

/// Tasks of other processes that go on here.
pub struct RemainingTasks {
    owner: Owner,
    again: NextOwnership,
    /// The own task that goes on without a terminal.
    detached: Option<TaskId>,
}

impl RemainingTasks {
    pub(crate) fn new(owner: Owner, again: NextOwnership, detached: Option<TaskId>) -> Self {
        Self { owner, again, detached }
    }

    /// What a front end says when the processes of all these tasks may have ended: no other one takes the journal.
    pub fn left_behind_text(&self) -> Option<String> {
        let are_left = self.detached.is_none() && !ClientLock::is_held(&self.again.project);
        are_left.then(|| {
            format!(
                "tasks of processes that have ended go on in the background: see `antiphon tasks list`, stop with `kill {}`",
                std::process::id()
            )
        })
    }

    /// Says it in the log, and works on them.
    pub async fn report_and_run(self) {
        if let Some(text) = self.left_behind_text() {
            tracing::warn!("{text}");
        }
        self.run().await;
    }

    /// Works on them until another process does, or until none goes on.
    pub async fn run(self) {
        let Self { mut owner, again, detached } = self;
        // It works with what this process gave to it.
        if let Some(task_id) = &detached {
            owner.rest(task_id).await;
        }
        loop {
            owner.until_others_go_on(&again.project).await;
            let is_server_next = owner.project.environments.leaving().is_cancelled();
            let is_removed = !again.project.has_journal();
            if !is_removed {
                owner.project.orchestrator.hand_over().await;
            }
            owner.shutdown().await;
            if is_server_next || is_removed {
                return;
            }
            match again.take_if_left().await {
                Ok(Some(next)) => owner = next,
                Ok(None) => return,
                Err(error) => {
                    tracing::warn!(%error, "tasks of other processes may wait for the next process");
                    return;
                }
            }
        }
    }
}

impl NextOwnership {
    /// Takes the journal if no process has it or takes it, and a task in it can go on.
    pub(crate) async fn take_if_left(&self) -> Result<Option<Owner>, ProjectError> {
        let end = Instant::now() + NEXT_OWNER_WAIT;
        while ClientLock::is_held(&self.project) && Instant::now() < end {
            if self.has_owner().await? {
                return Ok(None);
            }
            tokio::time::sleep(OWNER_PAUSE).await;
        }
        if Reservation::exists(&self.project) {
            return Ok(None);
        }
        let Some(journal) = self.project.try_journal()? else { return Ok(None) };
        let settings = self.project.settings(&self.environment)?;
        let (role, interface) = (self.role.clone(), self.interface);
        let opened =
            Owner::open(&self.project, &self.environment, settings, journal, role, interface);
        let mut owner = opened?;
        owner.serve(&self.project);
        owner.project.environments.take_over();
        if owner.project.has_tasks_left(None).await {
            return Ok(Some(owner));
        }
        owner.shutdown().await;
        Ok(None)
    }

    async fn has_owner(&self) -> Result<bool, ProjectError> {
        let server = ProjectServer::find(&self.project).await?;
        Ok(server.is_some())
    }
}

impl Owner {
    /// Returns when another process can go on with the tasks that are left, or when none is left. No task takes a step
    /// from then on.
    async fn until_others_go_on(&self, project: &Project) {
        let (orchestrator, leaving) =
            (&self.project.orchestrator, self.project.environments.leaving());
        let (mut pause, mut looks) = (PAUSE, 0);
        // A journal that was removed has no next owner.
        while !leaving.is_cancelled() && project.has_journal() {
            if ClientLock::is_held(project) {
                (pause, looks) = (PAUSE, 0);
                tokio::select! {
                    () = orchestrator.until_quiet() => return,
                    () = leaving.cancelled() => return,
                    () = tokio::time::sleep(PAUSE) => {}
                }
                if !orchestrator.goes_on_when_quiet() {
                    return;
                }
                continue;
            }
            looks = if self.project.has_tasks_left(None).await { 0 } else { looks + 1 };
            // A task gives up its slot a moment before the task that waits for it gets one.
            if looks > 1 {
                return;
            }
            let works =
                looks > 0 || orchestrator.is_working() || self.project.environments.is_recovering();
            pause = if works { PAUSE } else { PAUSE_MAX.min(pause * 2) };
            tokio::select! {
                () = leaving.cancelled() => return,
                () = tokio::time::sleep(pause) => {}
            }
        }
    }
}
