//! The state that all handlers share.

use std::num::NonZeroUsize;
use std::sync::Arc;

use antiphon_core::port::{TaskQuery, TaskSelector};
use antiphon_core::{TaskId, TaskSummary};
use antiphon_keys::{KeyRing, WrongKeys};
use antiphon_runtime::{OrchestratorError, ReplayError};
use antiphon_telemetry::{Telemetry, TraceParent};
use axum::http::{HeaderMap, HeaderName};
use tokio_util::sync::CancellationToken;

use crate::access::api_keys::Keys;
use crate::access::exposure::ExposedAgents;
use crate::access::hosts::Hosts;
use crate::access::open_requests::OpenRequests;
use crate::access::route_access::RouteAccess;
use crate::access::shared_limit::SharedLimit;
use crate::api_error::ApiError;
use crate::request::headers::single_header;
use crate::server_config::ServerDeps;

const TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");

/// The state that all handlers share.
pub struct AppState {
    /// What handlers depend on.
    pub deps: ServerDeps,
    /// Counts requests, if configured.
    pub telemetry: Option<Telemetry>,
    /// Canceled when the server shuts down.
    pub closing: CancellationToken,
    pub(crate) keys: Option<Keys>,
    pub(crate) hosts: Hosts,
    pub(crate) access: RouteAccess,
    pub(crate) chat_agents: ExposedAgents,
    /// Open event streams.
    pub(crate) streams: SharedLimit,
    /// Bytes of bodies that are being received.
    pub(crate) body_bytes: SharedLimit,
    pub(crate) open_requests: OpenRequests,
    pub(crate) wrong_keys: WrongKeys,
}

impl AppState {
    /// The API keys of the server, for work that goes on after its request.
    pub fn key_ring(&self) -> Option<Arc<KeyRing>> {
        self.keys.as_ref().map(|keys| Arc::clone(&keys.ring))
    }

    /// Adds a new task to the trace that the request belongs to. An invalid `traceparent` is ignored, as its
    /// specification demands.
    pub fn trace(&self, headers: &HeaderMap, task_id: &TaskId) {
        let Some(telemetry) = &self.telemetry else { return };
        let parent = single_header(headers, &TRACEPARENT);
        let parent = parent.and_then(|text| text.parse::<TraceParent>().ok());
        if let Some(parent) = parent.filter(|_| telemetry.exporter.is_some()) {
            telemetry.traces.set_parent(task_id, parent);
        }
    }

    /// The summary of a task; 404 when there is no such task.
    pub async fn summary(&self, task_id: &TaskId) -> Result<TaskSummary, ApiError> {
        let query =
            TaskQuery { which: TaskSelector::One(task_id.clone()), limit: NonZeroUsize::MIN };
        let found = self.deps.orchestrator.tasks(query).await?.into_iter().next();
        let none = || ReplayError::NoTask { task_id: task_id.clone() };
        found.ok_or_else(|| OrchestratorError::from(none()).into())
    }
}
