//! A request that is to be executed or rejected.

use std::ffi::OsString;
use std::sync::Arc;

use antiphon_core::{Command, Order, Wait};

use crate::folder::file_state::FileState;
use crate::folder::name::RequestName;
use crate::folder::requester_folder::RequesterFolder;
use crate::response::{RequestRef, Response, ResponseError};

/// Identifies a file: index of its folder, requester and name.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct FileKey {
    pub(crate) root: usize,
    pub(crate) requester: Arc<str>,
    pub(crate) file: OsString,
}

/// A file, and what is to be done about it.
#[derive(Debug)]
pub(crate) struct PendingRequest {
    pub(crate) key: FileKey,
    pub(crate) folder: Arc<RequesterFolder>,
    pub(crate) name: RequestName,
    /// The state of the file when it was read.
    pub(crate) state: FileState,
    /// Memory that it uses.
    pub(crate) bytes: usize,
    pub(crate) id: Option<String>,
    pub(crate) digest: Option<String>,
    pub(crate) action: RequestAction,
}

/// What is to be done about a file.
#[derive(Debug)]
pub(crate) enum RequestAction {
    /// Execute the order and write the response.
    Execute {
        order: Order,
        /// Idempotency key of the order.
        key: String,
    },
    /// Write an error response and move the file to the rejected files.
    Reject(ResponseError),
    /// The error response exists: move the file to the name it states.
    MoveRejected { target: String, error: ResponseError },
    /// The file was renamed after it was answered: move its response, too.
    AdoptResponse { response: Box<Response>, old: String },
}

/// The result of handling a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// The response is written.
    Answered,
    /// The response is written and the file is rejected.
    SetAside,
    /// The file was deleted or replaced: no response is due.
    Withdrawn,
    /// Not possible now: a later start or a change of the file tries again.
    Postponed,
}

impl PendingRequest {
    /// Requests with the same key are executed one after the other, in order.
    pub(crate) fn queue_key(&self) -> Option<String> {
        let RequestAction::Execute { order, .. } = &self.action else { return None };
        match order {
            Order::Control(
                Command::SpawnAgent { name, .. }
                | Command::StopAgent { name }
                | Command::UpdateAgentContext { name, .. },
            ) => Some(format!("agent {name}")),
            Order::Send { to, .. } => Some(format!("agent {to}")),
            Order::Invoke { agent, .. } => agent.as_ref().map(|agent| format!("agent {agent}")),
            Order::Respond { request_id, .. } => Some(format!("request {request_id}")),
            Order::Cancel { task_id } => Some(format!("task {task_id}")),
        }
    }

    /// Whether it waits for the result of a task. Such a request does not block its queue:
    /// otherwise its agent could not be stopped.
    pub(crate) fn waits_for_result(&self) -> bool {
        matches!(
            &self.action,
            RequestAction::Execute { order: Order::Invoke { wait: Wait::ForResult, .. }, .. }
        )
    }

    /// The fields of its response that identify it.
    pub(crate) fn reference(&self) -> RequestRef {
        RequestRef {
            request: self.name.shown.clone(),
            id: self.id.clone(),
            digest: self.digest.clone(),
            file: self.digest.as_ref().map(|_| self.state.file_id.text()),
        }
    }
}
