//! Folders of requests, reached by descriptor: no symbolic link is followed, nothing outside is touched.

pub(crate) mod atomic;
pub(crate) mod file_state;
pub(crate) mod name;
pub(crate) mod rejected_folder;
pub(crate) mod request_root;
pub(crate) mod requester_folder;
pub(crate) mod waiting;
