//! Private files, through the public API.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::time::Duration;

use antiphon_private_file::{
    AccessError, Durability, LockError, create_folder, create_new_at, lock_within, open,
    open_lock_at, write_atomic,
};

fn mode(path: &Path) -> u32 {
    fs::symlink_metadata(path).unwrap().permissions().mode() & 0o7777
}

fn names(folder: &Path) -> Vec<String> {
    let names = fs::read_dir(folder).unwrap();
    names.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}

#[test]
fn an_atomic_write_replaces_the_file_keeps_it_private_and_leaves_no_other_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("token");
    for (text, durability) in [("first", Durability::Synced), ("second", Durability::Buffered)] {
        write_atomic(&path, text.as_bytes(), durability).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), text);
        assert_eq!(mode(&path), 0o600);
        assert_eq!(names(folder.path()), ["token"]);
    }
}

#[test]
fn an_atomic_write_replaces_a_symbolic_link_and_not_its_target() {
    let folder = tempfile::tempdir().unwrap();
    let (target, path) = (folder.path().join("target"), folder.path().join("link"));
    fs::write(&target, "untouched").unwrap();
    symlink(&target, &path).unwrap();
    write_atomic(&path, b"new", Durability::Synced).unwrap();
    assert_eq!(fs::read_to_string(&target).unwrap(), "untouched");
    assert!(fs::symlink_metadata(&path).unwrap().is_file());
}

#[test]
fn a_failed_write_leaves_the_old_content_and_no_other_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("taken");
    fs::create_dir_all(path.join("inner")).unwrap();
    assert!(write_atomic(&path, b"new", Durability::Synced).is_err());
    assert_eq!(names(folder.path()), ["taken"]);
}

#[test]
fn a_new_file_never_replaces_an_existing_name() {
    let folder = tempfile::tempdir().unwrap();
    let opened = File::open(folder.path()).unwrap();
    create_new_at(&opened, "request", b"text").unwrap();
    assert_eq!(mode(&folder.path().join("request")), 0o600);
    symlink("nowhere", folder.path().join("link")).unwrap();
    for name in ["request", "link"] {
        let error = create_new_at(&opened, name, b"other").unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::AlreadyExists, "{name}");
    }
    assert_eq!(fs::read_to_string(folder.path().join("request")).unwrap(), "text");
}

#[test]
fn a_folder_is_created_private_or_made_private_and_a_link_is_refused() {
    let parent = tempfile::tempdir().unwrap();
    let (new, open, link) =
        (parent.path().join("new"), parent.path().join("open"), parent.path().join("link"));
    fs::create_dir(&open).unwrap();
    fs::set_permissions(&open, fs::Permissions::from_mode(0o755)).unwrap();
    for folder in [&new, &new, &open] {
        create_folder(folder).unwrap();
        assert_eq!(mode(folder), 0o700);
    }
    symlink(&new, &link).unwrap();
    assert_eq!(create_folder(&link).unwrap_err().to_string(), "it is not a folder");
}

#[test]
fn only_a_private_regular_file_is_opened() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    write_atomic(&at("private"), b"text", Durability::Synced).unwrap();
    assert!(open(&at("private")).is_ok());

    fs::write(at("exposed"), "text").unwrap();
    fs::set_permissions(at("exposed"), fs::Permissions::from_mode(0o640)).unwrap();
    let error = open(&at("exposed")).unwrap_err();
    assert!(matches!(error, AccessError::Exposed { mode: 0o640, wanted: 0o600 }), "{error}");

    symlink(at("private"), at("link")).unwrap();
    assert!(matches!(open(&at("link")).unwrap_err(), AccessError::Link));
    assert!(matches!(open(folder.path()).unwrap_err(), AccessError::NotRegular));
    let absent = open(&at("absent")).unwrap_err();
    let is_absent = |error: &io::Error| error.kind() == io::ErrorKind::NotFound;
    assert!(matches!(absent, AccessError::Io(error) if is_absent(&error)));
}

#[test]
fn a_lock_has_one_holder_and_is_free_when_its_file_is_closed() {
    let folder = tempfile::tempdir().unwrap();
    let opened = File::open(folder.path()).unwrap();
    let (first, second) =
        (open_lock_at(&opened, "lock").unwrap(), open_lock_at(&opened, "lock").unwrap());
    assert_eq!(mode(&folder.path().join("lock")), 0o600);
    lock_within(&first, Duration::ZERO).unwrap();
    assert!(matches!(lock_within(&second, Duration::ZERO), Err(LockError::Busy)));
    drop(first);
    lock_within(&second, Duration::ZERO).unwrap();
}
