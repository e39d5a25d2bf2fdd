//! The file drop of this program: folders of requests below the project's root.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use antiphon_core::OrderResult;
use antiphon_core::port::OrderExecutor;
pub(crate) use antiphon_file_drop::REQUEST_BYTES_MAX;
use antiphon_file_drop::{
    DropError, FileDropSettings, FolderTrust, RequestFolder, Response, WhenAbsent, count_waiting,
    drop_and_wait, watch,
};
use antiphon_project::control_orders::REQUEST_FOLDERS;
use antiphon_project::error::ProjectError;
use antiphon_project::request_drop::{DropResponse, RequestDrop, refusal};
use antiphon_project::trust::ProjectTrust;
use async_trait::async_trait;
use serde_json::json;
use tokio_util::sync::CancellationToken;

/// The file drop.
pub(crate) struct FileDrop;

#[async_trait]
impl RequestDrop for FileDrop {
    async fn serve(
        &self,
        root: PathBuf,
        trust: ProjectTrust,
        orders: Arc<dyn OrderExecutor>,
        stop: CancellationToken,
    ) -> Result<(), String> {
        watch(root, settings(&trust), orders, stop).await.map_err(|error| error.to_string())
    }

    async fn submit(
        &self,
        folder: PathBuf,
        requester: &str,
        request: Vec<u8>,
        timeout: Duration,
    ) -> Result<DropResponse, ProjectError> {
        let response = drop_and_wait(folder, requester, request, timeout).await;
        let response = response.map_err(|error| match error {
            DropError::Requester { .. } | DropError::Folder { .. } => {
                ProjectError::InvalidInput(error.to_string())
            }
            DropError::Timeout { .. } => ProjectError::Unavailable(error.to_string()),
        })?;
        let json = json!(response);
        Ok(DropResponse { outcome: outcome(response), json })
    }

    fn count_waiting(&self, folder: &Path, max: usize) -> usize {
        count_waiting(folder, max)
    }
}

/// What the order did, or why it was not executed.
fn outcome(response: Response) -> Result<OrderResult, ProjectError> {
    let Response { status, agent, task_id, interaction_id, result, error, .. } = response;
    match (error, status) {
        (Some(error), _) => Err(refusal(&error.code, error.message)),
        (None, Some(status)) => Ok(OrderResult { status, agent, task_id, interaction_id, result }),
        (None, None) => {
            let message = "the response says neither what was done nor why not";
            Err(ProjectError::Failed(message.to_owned()))
        }
    }
}

/// Settings of the file drop. A folder that the user does not trust may have come with a clone: its requests
/// are refused.
fn settings(trust: &ProjectTrust) -> FileDropSettings {
    let folder = |path: &str| RequestFolder { path: path.into(), absent: WhenAbsent::Create };
    let (checker, recorder) = (trust.clone(), trust.clone());
    let trust = FolderTrust::new(
        move |folder| checker.is_trusted_folder(folder),
        move |path, folder| {
            if let Err(error) = recorder.trust_created(path, folder) {
                tracing::warn!(%error, "requests in the new folder are refused");
            }
        },
    );
    FileDropSettings {
        folders: REQUEST_FOLDERS.map(folder).into(),
        trust,
        ..FileDropSettings::default()
    }
}
