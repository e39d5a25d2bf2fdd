//! The file that commands find the server by.

use std::time::Duration;

use antiphon_project::error::ProjectError;
use antiphon_project::server_files::{ServerAddress, ServerFiles};

use crate::terminal;

/// Pause between two attempts to write the file that commands find the server by.
const PUBLISH_PAUSE: Duration = Duration::from_secs(1);

/// Writes the file that commands find the server by until that succeeds, after it failed: the disk may be full. Does
/// not return.
pub(super) async fn publish_again(
    server_files: &ServerFiles,
    address: ServerAddress<'_>,
    mut failed: Option<ProjectError>,
) {
    if let Some(error) = &failed {
        terminal::note(&format!(
            "{error}: other commands find this server once it can be written\n"
        ));
    }
    while failed.is_some() {
        tokio::time::sleep(PUBLISH_PAUSE).await;
        failed = server_files.publish(address).err();
    }
    std::future::pending::<()>().await;
}
