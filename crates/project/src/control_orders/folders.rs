//! The folders that control requests are read from.

use antiphon_file_drop::{Absent, Exposed, RequestFolder, Settings};

/// Folders below the project's root, and what to do when one is missing.
const DROP_FOLDERS: [(&str, Absent); 2] =
    [(".antiphon/requests", Absent::Make), (".ideai/requests", Absent::Wait)];

/// Settings of the file drop. A folder that other users can read is refused: it may have come with a clone,
/// so its requests are untrusted.
pub fn drop_settings() -> Settings {
    let folder = |(path, absent): (&str, Absent)| RequestFolder {
        path: path.into(),
        absent,
        exposed: Exposed::Refuse,
    };
    Settings { folders: DROP_FOLDERS.map(folder).into(), ..Settings::default() }
}
