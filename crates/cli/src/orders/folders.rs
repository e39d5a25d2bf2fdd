//! Where requests are dropped.

use antiphon_file_drop::{RequestFolder, Settings, WhenAbsent, WhenExposed};

/// Where requests are dropped, below the project.
const DROP_FOLDERS: [(&str, WhenAbsent); 2] =
    [(".antiphon/requests", WhenAbsent::Create), (".ideai/requests", WhenAbsent::Wait)];

/// Where requests are dropped. A folder that others may look into is left alone: it may have come with
/// a clone, and requests in it are nobody's here.
pub(crate) fn drop_settings() -> Settings {
    let folder = |(path, absent): (&str, WhenAbsent)| RequestFolder {
        path: path.into(),
        absent,
        exposed: WhenExposed::Refuse,
    };
    Settings { folders: DROP_FOLDERS.map(folder).into(), ..Settings::default() }
}
