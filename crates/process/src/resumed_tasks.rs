//! Interrupted tasks that are resumed and waited for, whichever process owns the journal meanwhile. When the owner ends,
//! this process finds the next one, or is it.

use antiphon_core::port::TaskSelector;
use antiphon_core::{MessageQueued, TaskId, TaskStatus};
use antiphon_project::error::ProjectError;
use antiphon_project::saved_session;
use antiphon_project::task_lookup::find_task;
use antiphon_runtime::{Recovered, TaskState};

use crate::attached_task::{AttachedTask, ENDING_PAUSE};
use crate::connection::Connection;

/// Tasks that are resumed, and which process runs them.
pub enum ResumedTasks<'a> {
    /// The server that the user named.
    Server(Connection),
    /// The owner of the journal, which may be this process.
    Journal(Box<AttachedTask<'a>>),
}

/// How the wait for a task ended.
pub enum ResumedEnd {
    /// It has ended, or is suspended.
    AtRest(Box<TaskState>),
    /// It is a live agent, which never ends by itself, and its inbox holds nothing that starts a turn.
    Idle,
}

impl ResumedTasks<'_> {
    /// Where commands about the tasks go.
    pub fn connection(&self) -> &Connection {
        match self {
            Self::Server(connection) => connection,
            Self::Journal(attachment) => attachment.connection(),
        }
    }

    /// Resumes the task of this name, or every interrupted one.
    pub async fn resume(&self, task: Option<&str>) -> Result<Recovered, ProjectError> {
        let connection = self.connection();
        let Some(name) = task else { return connection.recover().await };
        let task = find_task(connection.reader(), name, TaskSelector::Unfinished).await?.task_id;
        connection.resume(&task).await?;
        Ok(Recovered { begun: vec![task], ..Recovered::default() })
    }

    /// Waits until a task has ended, is suspended or is idle.
    pub async fn wait(&mut self, task_id: &TaskId) -> Result<ResumedEnd, ProjectError> {
        match self.wait_for_rest(task_id).await {
            Ok(state) => Ok(ResumedEnd::AtRest(Box::new(state))),
            Err(ProjectError::Unavailable(_)) if is_idle(self.connection(), task_id).await? => {
                Ok(ResumedEnd::Idle)
            }
            Err(error) => Err(error),
        }
    }

    /// Saves the session of a task to the file that it came from. That of a task at another machine is not a file here.
    pub fn save(&self, state: &TaskState) -> Result<(), ProjectError> {
        if self.connection().is_on_this_machine() { saved_session::save(state) } else { Ok(()) }
    }

    async fn wait_for_rest(&mut self, task_id: &TaskId) -> Result<TaskState, ProjectError> {
        let attachment = match self {
            Self::Server(connection) => return connection.wait(task_id).await,
            Self::Journal(attachment) => attachment,
        };
        loop {
            let connection = attachment.connection().clone();
            let waited = tokio::select! {
                waited = connection.wait(task_id) => Some(waited),
                () = attachment.asked_to_leave() => None,
            };
            drop(connection);
            match waited {
                // A server wants the journal, and runs the tasks from then on.
                None => {
                    attachment.hand_over().await;
                    attachment.leave().await;
                    attachment.find_next_owner().await?;
                }
                // Its last calls may take minutes, and it answers meanwhile.
                Some(Err(ProjectError::OwnerEnds(_))) => {
                    if !attachment.find_next_owner().await? {
                        tokio::time::sleep(ENDING_PAUSE).await;
                        continue;
                    }
                }
                Some(Err(ProjectError::Unavailable(reason))) => {
                    if !attachment.find_next_owner().await? {
                        return Err(ProjectError::Unavailable(reason));
                    }
                }
                Some(waited) => return waited,
            }
            attachment.serve();
            attachment.report_owner_change();
            let connection = attachment.connection();
            let status = connection.reader().task_alone(task_id).await?.status;
            if matches!(status, TaskStatus::Pending | TaskStatus::Running) {
                connection.resume(task_id).await?;
            }
        }
    }
}

/// Whether a task is a live agent whose inbox holds nothing that starts a turn.
async fn is_idle(connection: &Connection, task_id: &TaskId) -> Result<bool, ProjectError> {
    let state = connection.reader().task_alone(task_id).await?;
    let idle = !state.status.is_terminal() && !state.queue.iter().any(MessageQueued::wakes);
    Ok(state.created.resident && idle)
}
