//! Folders of control requests in a project, as the file drop reads and answers them. A front end brings the
//! implementation in its [`Environment`](crate::environment::Environment): this library knows no interface.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use antiphon_core::OrderResult;
use antiphon_core::port::OrderExecutor;
use async_trait::async_trait;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::error::ProjectError;
use crate::trust::ProjectTrust;

/// Reads, drops and counts requests in folders.
#[async_trait]
pub trait RequestDrop: Send + Sync {
    /// Has `orders` execute the requests in the folders of the project at `root` that the user trusts, and writes the
    /// responses, until `stop`. The error says why it ended before.
    async fn serve(
        &self,
        root: PathBuf,
        trust: ProjectTrust,
        orders: Arc<dyn OrderExecutor>,
        stop: CancellationToken,
    ) -> Result<(), String>;

    /// Drops a request into the folder of its requester, in `folder`, and waits for the response. It is
    /// [`ProjectError::Unavailable`] that there was none in time: the request stays and is answered when a server runs.
    async fn submit(
        &self,
        folder: PathBuf,
        requester: &str,
        request: Vec<u8>,
        timeout: Duration,
    ) -> Result<DropResponse, ProjectError>;

    /// Requests in `folder` that have no response, up to `max`.
    fn count_waiting(&self, folder: &Path, max: usize) -> usize;
}

/// The response to a dropped request.
#[derive(Debug, Clone, PartialEq)]
pub struct DropResponse {
    /// What the order did, or why it was not executed.
    pub outcome: Result<OrderResult, ProjectError>,
    /// The response file.
    pub json: Value,
}

/// Why a dropped request was not executed, by the code of its response.
pub fn refusal(code: &str, message: String) -> ProjectError {
    match code {
        "FORBIDDEN" | "UNAUTHORIZED" => ProjectError::Refused(message),
        "SERVICE_UNAVAILABLE" | "RATE_LIMIT_EXCEEDED" => ProjectError::Unavailable(message),
        "INTERNAL_ERROR" => ProjectError::Failed(message),
        _ if message.starts_with("unknown orchestrator action: ") => {
            ProjectError::InvalidInput(format!("{message}; the actions are in docs/file-drop.md"))
        }
        _ => ProjectError::InvalidInput(message),
    }
}

/// The file drop that a front end brings. The default has none: requests are not executed.
#[derive(Clone)]
pub struct ProvidedRequestDrop(Arc<dyn RequestDrop>);

impl ProvidedRequestDrop {
    /// Uses this implementation.
    pub fn new(request_drop: impl RequestDrop + 'static) -> Self {
        Self(Arc::new(request_drop))
    }

    /// The implementation.
    pub fn get(&self) -> &dyn RequestDrop {
        &*self.0
    }
}

impl Default for ProvidedRequestDrop {
    fn default() -> Self {
        Self::new(NoRequestDrop)
    }
}

impl fmt::Debug for ProvidedRequestDrop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ProvidedRequestDrop")
    }
}

/// A front end without the file drop.
struct NoRequestDrop;

const NONE: &str = "this program executes no request files";

#[async_trait]
impl RequestDrop for NoRequestDrop {
    async fn serve(
        &self,
        _: PathBuf,
        _: ProjectTrust,
        _: Arc<dyn OrderExecutor>,
        _: CancellationToken,
    ) -> Result<(), String> {
        Err(NONE.to_owned())
    }

    async fn submit(
        &self,
        _: PathBuf,
        _: &str,
        _: Vec<u8>,
        _: Duration,
    ) -> Result<DropResponse, ProjectError> {
        Err(ProjectError::Failed(NONE.to_owned()))
    }

    fn count_waiting(&self, _: &Path, _: usize) -> usize {
        0
    }
}
