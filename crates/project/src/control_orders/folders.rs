//! The folders that control requests are read from.

use antiphon_file_drop::{FolderTrust, RequestFolder, Settings, WhenAbsent};

use crate::trust::ProjectTrust;

/// Folders below the project's root, and what to do when one is missing.
pub(crate) const DROP_FOLDERS: [(&str, WhenAbsent); 2] =
    [(".antiphon/requests", WhenAbsent::Create), (".ideai/requests", WhenAbsent::Create)];

/// The folders of requests, below the project's root.
pub fn drop_folders() -> [&'static str; 2] {
    DROP_FOLDERS.map(|(path, _)| path)
}

/// Settings of the file drop. A folder that the user does not trust may have come with a clone: its requests
/// are refused.
pub fn drop_settings(trust: &ProjectTrust) -> Settings {
    let folder = |(path, absent): (&str, WhenAbsent)| RequestFolder { path: path.into(), absent };
    let (checker, recorder) = (trust.clone(), trust.clone());
    let trust = FolderTrust::new(
        move |folder| checker.is_trusted_folder(folder),
        move |path, folder| {
            if let Err(error) = recorder.trust_created(path, folder) {
                tracing::warn!(%error, "requests in the new folder are refused");
            }
        },
    );
    Settings { folders: DROP_FOLDERS.map(folder).into(), trust, ..Settings::default() }
}
