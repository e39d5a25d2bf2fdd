//! The folders that control requests are read from.

use antiphon_file_drop::{RequestFolder, Settings, WhenAbsent, WhenExposed};

/// Folders below the project's root, and what to do when one is missing.
const DROP_FOLDERS: [(&str, WhenAbsent); 2] =
    [(".antiphon/requests", WhenAbsent::Create), (".ideai/requests", WhenAbsent::Wait)];

/// Settings of the file drop. A folder that other users can read is refused: it may have come with a clone,
/// so its requests are untrusted.
pub fn drop_settings() -> Settings {
    let folder = |(path, absent): (&str, WhenAbsent)| RequestFolder {
        path: path.into(),
        absent,
        exposed: WhenExposed::Refuse,
    };
    Settings { folders: DROP_FOLDERS.map(folder).into(), ..Settings::default() }
}
