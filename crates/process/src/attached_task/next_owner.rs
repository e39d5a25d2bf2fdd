//! The owner of the journal after the one that ended: another process, or this one.

use std::time::{Duration, Instant};

use antiphon_api::RunTarget;
use antiphon_core::TaskId;
use antiphon_project::error::ProjectError;

use super::{AttachedTask, OWNER_WAIT, OwnTask, TaskPlace};
use crate::connection::{Connection, Ownership};
use crate::owner::Owner;

/// Pause between two looks whether the owner is there, while nothing is asked of it.
const LOOK_PAUSE: Duration = Duration::from_millis(500);

/// Pause before a server elsewhere that does not answer is asked again.
const SERVER_PAUSE: Duration = Duration::from_millis(500);

/// Who runs the task from now on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NextOwner {
    /// One that goes on with the task; it may be this process, or the same one as before.
    Found,
    /// The owner ends, and still answers: its last calls run. It is to be asked again after a pause.
    Ending,
}

impl AttachedTask<'_> {
    /// Goes on with the task after its owner has ended, or the connection to it broke.
    pub async fn attach_again(&mut self, task_id: &TaskId) -> Result<NextOwner, ProjectError> {
        self.connect_again().await?;
        let target = RunTarget::Attach(task_id.clone());
        Ok(match self.start_at_owner(target, None).await? {
            None => NextOwner::Ending,
            Some(_) => NextOwner::Found,
        })
    }

    /// Returns when the owner of the journal, another process, has ended. Cancel safe.
    pub async fn owner_lost(&self) {
        let TaskPlace::Project(own) = &self.place else { return std::future::pending().await };
        loop {
            tokio::time::sleep(LOOK_PAUSE).await;
            if Ownership::owner_id(own.project).is_none() && self.has_lost_owner().await {
                return;
            }
        }
    }

    /// Whether another process owns the journal, or did, and does not answer any more.
    pub async fn has_lost_owner(&self) -> bool {
        match &self.connection {
            Connection::Server(server, _) => !server.client.is_alive().await,
            Connection::Local(_) => self.owner.is_none(),
        }
    }

    /// Goes on with the next owner, or as the next owner, when the owner does not answer any more. False when it
    /// answers, or when this process is the owner.
    pub async fn find_next_owner(&mut self) -> Result<bool, ProjectError> {
        let is_lost = self.has_lost_owner().await;
        if is_lost {
            self.connect_again().await?;
        }
        Ok(is_lost)
    }

    pub(super) async fn connect_again(&mut self) -> Result<(), ProjectError> {
        if self.owner.is_some() {
            return Ok(());
        }
        let own = match &mut self.place {
            TaskPlace::Project(own) => own,
            TaskPlace::NamedServer => return self.wait_for_server().await,
        };
        let (connection, owner) = connect(own).await?;
        (self.connection, self.owner) = (connection, owner);
        self.hold_client_lock();
        self.listen();
        // The other clients wait for it, and bring the environments of their tasks.
        self.serve();
        if let Some(owner) = &mut self.owner {
            owner.project.environments.take_over();
        }
        Ok(())
    }

    /// Waits until the server that the user named answers again.
    async fn wait_for_server(&self) -> Result<(), ProjectError> {
        let Connection::Server(server, _) = &self.connection else { return Ok(()) };
        let end = Instant::now() + OWNER_WAIT;
        while !server.client.is_alive().await {
            if Instant::now() >= end {
                return Err(ProjectError::Unavailable(format!(
                    "{} does not answer: start `antiphon serve` there. What it accepted is in its journal",
                    server.client.endpoint()
                )));
            }
            tokio::time::sleep(SERVER_PAUSE).await;
        }
        Ok(())
    }
}

/// Takes the journal, or connects to its owner.
pub(super) async fn connect(
    own: &mut OwnTask<'_>,
) -> Result<(Connection, Option<Owner>), ProjectError> {
    let OwnTask { project, environment, settings, role, interface } = own;
    if let Some(owner) = Ownership::stopped_owner(project) {
        environment.warnings.report(&format!(
            "process {owner} works on the tasks of this project, and it is stopped: waits for it; continue it with `fg` \
             in its terminal, or with `kill -CONT {owner}`"
        ));
    }
    match Ownership::find(project).await? {
        Ownership::Client(server) => Ok((Connection::of_owner(server, project)?, None)),
        Ownership::Owner(journal) => {
            let settings = match settings.take() {
                Some(settings) => settings,
                None => project.settings(environment)?,
            };
            let role = role.clone();
            let owner = Owner::open(project, environment, settings, journal, role, *interface)?;
            let connection = Connection::Local(owner.project.orchestrator.clone());
            Ok((connection, Some(owner)))
        }
    }
}
