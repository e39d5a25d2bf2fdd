//! The file drop of this program: folders of requests below the project's root.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use antiphon_core::port::OrderExecutor;
use antiphon_file_drop::{
    FileDropSettings, FolderTrust, RequestFolder, WhenAbsent, count_waiting, drop_and_wait, watch,
};
use antiphon_project::control_orders::REQUEST_FOLDERS;
use antiphon_project::request_drop::{DropResponse, RequestDrop};
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
    ) -> Result<DropResponse, String> {
        let response = drop_and_wait(folder, requester, request, timeout).await;
        let response = response.map_err(|error| error.to_string())?;
        Ok(DropResponse { ok: response.ok, json: json!(response) })
    }

    fn count_waiting(&self, folder: &Path, max: usize) -> usize {
        count_waiting(folder, max)
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
