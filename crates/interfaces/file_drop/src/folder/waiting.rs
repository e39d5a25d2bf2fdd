//! Counts requests without a response, for a user who decides about a folder.

use std::fs;
use std::path::Path;

use crate::folder::name::{RequestName, is_request};

/// Requests in `folder` that have no response, up to `max`.
pub fn count_waiting(folder: &Path, max: usize) -> usize {
    let entries = |folder: &Path| fs::read_dir(folder).into_iter().flatten().flatten();
    let is_folder = |path: &Path| fs::symlink_metadata(path).is_ok_and(|about| about.is_dir());
    let requesters = entries(folder).map(|entry| entry.path()).filter(|path| is_folder(path));
    let is_waiting = |requester: &Path, file: &std::ffi::OsStr| {
        is_request(file.as_encoded_bytes())
            && RequestName::of(file).is_some_and(|name| !requester.join(name.response()).exists())
    };
    let waiting = requesters.flat_map(|requester| {
        let count = entries(&requester)
            .filter(|entry| is_waiting(&requester, &entry.file_name()))
            .take(max);
        count.map(|_| ()).collect::<Vec<()>>()
    });
    waiting.take(max).count()
}
