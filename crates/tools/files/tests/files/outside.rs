//! Paths out of the roots, hidden paths, and folders of git with other names.

use std::fs;

use antiphon_file_tools::{Mode, OutsidePaths};

use crate::world::{Outcome, SECRET, World};

fn failed(outcome: Outcome, says: &str) {
    match outcome {
        Outcome::Failed(text) => assert!(text.contains(says), "{text}"),
        other @ (Outcome::Said(_) | Outcome::Invalid(_) | Outcome::Other(_)) => panic!("{other:?}"),
    }
}

fn said(outcome: Outcome) -> String {
    match outcome {
        Outcome::Said(text) => text,
        other @ (Outcome::Failed(_) | Outcome::Invalid(_) | Outcome::Other(_)) => {
            panic!("{other:?}")
        }
    }
}

fn asked_for(mode: Mode) -> World {
    World::with(mode, |config, base| {
        config.outside = OutsidePaths::AskedFor;
        config.hidden = vec![base.join("outside/keys"), base.join("project/.env.keys")];
    })
}

#[test]
fn a_path_that_a_person_allowed_is_opened() {
    let world = asked_for(Mode::Workspace);
    let secret = world.outside.join("secret.txt");
    assert!(said(world.read(secret.to_str().unwrap())).contains(SECRET));
    assert!(said(world.read("../outside/secret.txt")).contains(SECRET));
    said(world.write("../outside/folder/new/file", "made"));
    assert_eq!(fs::read_to_string(world.outside.join("folder/new/file")).unwrap(), "made");
    said(world.edit("../outside/secret.txt", SECRET, "changed"));
    assert_eq!(fs::read_to_string(&secret).unwrap(), "changed");
}

#[test]
fn a_link_leads_nowhere_that_no_person_was_asked_about() {
    let world = asked_for(Mode::Workspace);
    world.link("out", &world.outside);
    world.link("file", world.outside.join("secret.txt"));
    for path in ["out/secret.txt", "file", "./out/../file", "out/folder/../secret.txt"] {
        match world.read(path) {
            Outcome::Failed(_) => {}
            other @ (Outcome::Said(_) | Outcome::Invalid(_) | Outcome::Other(_)) => {
                panic!("{path} {other:?}")
            }
        }
    }
    failed(world.write("out/new", "x"), "outside of what may be written");
    failed(world.write("file", "x"), "outside of what may be written");
}

#[test]
fn in_read_only_mode_nothing_is_written_anywhere() {
    let world = asked_for(Mode::ReadOnly);
    assert!(said(world.read("../outside/secret.txt")).contains(SECRET));
    failed(world.write("../outside/new", "x"), "read-only");
}

#[test]
fn hidden_paths_are_refused_however_they_are_spelled() {
    let world = asked_for(Mode::Workspace);
    let keys = world.outside.join("keys");
    fs::create_dir(&keys).unwrap();
    fs::write(keys.join("id"), SECRET).unwrap();
    world.put(".env.keys", SECRET);
    world.link("way", ".env.keys");
    std::os::unix::fs::symlink(&keys, world.outside.join("link")).unwrap();
    let id = keys.join("id");
    for path in
        [id.to_str().unwrap(), "../outside/keys/id", "../outside/link/id", ".env.keys", "way"]
    {
        failed(world.read(path), "is hidden");
        failed(world.edit(path, SECRET, "x"), "is hidden");
    }
    failed(world.write("../outside/keys/new", "x"), "is hidden");
    assert_eq!(fs::read_to_string(id).unwrap(), SECRET);
    // A folder that is hidden and comes later.
    fs::remove_dir_all(&keys).unwrap();
    failed(world.write("../outside/keys/new", "x"), "is hidden");
}

#[test]
fn folders_of_git_are_left_alone_whatever_they_are_called() {
    let world = World::new();
    for folder in ["stores/bare", "stores/apart"] {
        for name in ["objects", "refs", "hooks"] {
            fs::create_dir_all(world.path(&format!("{folder}/{name}"))).unwrap();
        }
        world.put(&format!("{folder}/HEAD"), "ref: refs/heads/main");
        failed(world.write(&format!("{folder}/hooks/pre-commit"), "x"), "in the git repository");
        failed(world.write(&format!("{folder}/commondir"), "x"), "in the git repository");
    }
    said(world.write("stores/plain/hooks/pre-commit", "x"));
}
