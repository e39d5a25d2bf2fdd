//! What every request finds behind the door.

use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::sync::Arc;

use antiphon_core::port::{TaskQuery, Which};
use antiphon_core::{TaskId, TaskSummary};
use antiphon_runtime::ReplayError;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use crate::api_error::ApiError;
use crate::doors::Doors;
use crate::hosts::Hosts;

/// What every request finds behind the door.
pub(crate) struct Room {
    pub(crate) doors: Doors,
    pub(crate) hosts: Hosts,
    /// Places for streams of events.
    pub(crate) streams: Arc<Semaphore>,
    /// Fires when the server ends.
    pub(crate) closing: CancellationToken,
}

impl Room {
    pub(crate) fn new(doors: Doors, address: SocketAddr, closing: CancellationToken) -> Self {
        Self {
            hosts: Hosts::new(address, &doors.hosts),
            streams: Arc::new(Semaphore::new(doors.limits.streams_max)),
            closing,
            doors,
        }
    }

    /// One task at a glance.
    pub(crate) async fn summary(&self, task_id: &TaskId) -> Result<TaskSummary, ApiError> {
        let query = TaskQuery { which: Which::One(task_id.clone()), limit: NonZeroUsize::MIN };
        let found = self.doors.orchestrator.tasks(query).await?.into_iter().next();
        let none = || ReplayError::NoTask { task_id: task_id.clone() };
        found.ok_or_else(|| antiphon_runtime::OrchestratorError::from(none()).into())
    }
}
