//! Folders are watched, through the public API.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs;
use std::path::Path;
use std::sync::mpsc::{Receiver, sync_channel};
use std::time::Duration;

use antiphon_folder_watch::{Change, FolderWatcher, Links};

const WAIT: Duration = Duration::from_secs(10);

fn watcher() -> (FolderWatcher, Receiver<Change>) {
    let (sender, changes) = sync_channel(1024);
    let watcher = FolderWatcher::new(move |change| {
        let _ = sender.try_send(change);
    });
    (watcher, changes)
}

fn wait_for(changes: &Receiver<Change>, path: &Path) {
    loop {
        if let Change::Written(paths) = changes.recv_timeout(WAIT).unwrap()
            && paths.iter().any(|changed| changed == path)
        {
            return;
        }
    }
}

#[test]
fn a_new_file_and_its_removal_are_reported() {
    let folder = tempfile::tempdir().unwrap();
    let (mut watcher, changes) = watcher();
    assert!(watcher.watch(folder.path(), Links::Follow));
    let file = folder.path().join("a.md");
    fs::write(&file, "text").unwrap();
    wait_for(&changes, &file);
    fs::remove_file(&file).unwrap();
    while changes.recv_timeout(WAIT).unwrap() != Change::Removed(vec![file.clone()]) {}
}

#[test]
fn a_folder_that_replaces_a_watched_one_is_watched_in_its_place() {
    let parent = tempfile::tempdir().unwrap();
    let folder = parent.path().join("agents");
    fs::create_dir(&folder).unwrap();
    let (mut watcher, changes) = watcher();
    assert!(watcher.watch(&folder, Links::Keep));
    fs::rename(&folder, parent.path().join("old")).unwrap();
    assert!(!watcher.watch(&folder, Links::Keep), "it does not exist");
    assert!(!watcher.is_watched(&folder));
    fs::create_dir(&folder).unwrap();
    assert!(watcher.watch(&folder, Links::Keep));
    let file = folder.join("a.md");
    fs::write(&file, "text").unwrap();
    wait_for(&changes, &file);
}

#[test]
fn a_disabled_watcher_watches_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let mut watcher = FolderWatcher::disabled();
    assert!(!watcher.watch(folder.path(), Links::Follow));
    assert!(!watcher.is_watched(folder.path()));
}
