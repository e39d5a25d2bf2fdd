//! What every request finds behind the door.

use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex};

use antiphon_core::port::{TaskQuery, TaskSelector};
use antiphon_core::{Position, TaskId, TaskSummary};
use antiphon_runtime::{OrchestratorError, ReplayError};
use antiphon_telemetry::{Telemetry, TraceParent};
use axum::http::{HeaderMap, HeaderName};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use crate::api_error::ApiError;
use crate::doors::ServerDeps;
use crate::guard::only;
use crate::hosts::Hosts;
use crate::house::ServerConfig;
use crate::keys::Keys;
use crate::webhooks::Webhooks;

/// Where in a trace of somebody else's a request belongs.
const TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");

/// What every request finds behind the door.
pub(crate) struct AppState {
    pub(crate) doors: ServerDeps,
    pub(crate) keys: Option<Keys>,
    pub(crate) telemetry: Option<Telemetry>,
    pub(crate) webhooks: Option<Webhooks>,
    pub(crate) hosts: Hosts,
    /// Held by whoever sets metrics and writes them down.
    pub(crate) scraping: Mutex<()>,
    /// Places for streams of events.
    pub(crate) streams: Arc<Semaphore>,
    /// Fires when the server ends.
    pub(crate) closing: CancellationToken,
}

impl AppState {
    pub(crate) fn new(house: ServerConfig, hosts: Hosts, closing: CancellationToken) -> Self {
        let ServerConfig { doors, keys, telemetry, webhooks } = house;
        Self {
            keys,
            telemetry,
            webhooks,
            scraping: Mutex::new(()),
            hosts,
            streams: Arc::new(Semaphore::new(doors.limits.streams_max)),
            closing,
            doors,
        }
    }

    /// Puts a task that was just accepted into the trace that its request belongs to. What is no
    /// `traceparent` is ignored, as its specification has it.
    pub(crate) fn trace(&self, headers: &HeaderMap, task_id: &TaskId) {
        let Some(telemetry) = &self.telemetry else { return };
        let parent = only(headers, &TRACEPARENT).and_then(|text| text.parse::<TraceParent>().ok());
        if let Some(parent) = parent.filter(|_| telemetry.exporter.is_some()) {
            telemetry.traces.set_parent(task_id, parent);
        }
    }

    /// Whether a task that was just accepted had been before `before`, which nobody asked where there
    /// is no key.
    pub(crate) async fn was_there(
        &self,
        task_id: &TaskId,
        before: Option<Position>,
    ) -> Result<bool, ApiError> {
        let Some(before) = before else { return Ok(false) };
        let mut events = self.doors.orchestrator.follow(Some(task_id.clone()), Position(0));
        let created = events.next().await.map_err(OrchestratorError::from)?;
        Ok(created.position <= before)
    }

    /// One task at a glance.
    pub(crate) async fn summary(&self, task_id: &TaskId) -> Result<TaskSummary, ApiError> {
        let query =
            TaskQuery { which: TaskSelector::One(task_id.clone()), limit: NonZeroUsize::MIN };
        let found = self.doors.orchestrator.tasks(query).await?.into_iter().next();
        let none = || ReplayError::NoTask { task_id: task_id.clone() };
        found.ok_or_else(|| OrchestratorError::from(none()).into())
    }
}
