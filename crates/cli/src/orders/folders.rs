//! Where requests are dropped.

use antiphon_file_drop::{Absent, Exposed, RequestFolder, Settings};

/// Where requests are dropped, below the project.
const DROP_FOLDERS: [(&str, Absent); 2] =
    [(".antiphon/requests", Absent::Make), (".ideai/requests", Absent::Wait)];

/// Where requests are dropped. A folder that others may look into is left alone: it may have come with
/// a clone, and requests in it are nobody's here.
pub(crate) fn drop_settings() -> Settings {
    let folder = |(path, absent): (&str, Absent)| RequestFolder {
        path: path.into(),
        absent,
        exposed: Exposed::Refuse,
    };
    Settings { folders: DROP_FOLDERS.map(folder).into(), ..Settings::default() }
}
