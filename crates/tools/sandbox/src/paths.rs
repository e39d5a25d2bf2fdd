//! Paths that commands cannot change or see, and how they are found and recognized.

pub(crate) mod absent_paths;
pub(crate) mod folder_stamp;
pub(crate) mod followed_links;
pub(crate) mod listener;
pub(crate) mod nested;
pub(crate) mod pinned_folder;
pub(crate) mod protected_path;
pub(crate) mod real_paths;
pub(crate) mod secret_paths;
