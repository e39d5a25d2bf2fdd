//! What happens when the system sets limits: a full disk, a read-only folder, little
//! memory. Some need a process of their own, which is this very program.

use std::process::{Command, Output};

use serde_json::json;

use crate::read::huge_text;
use crate::world::{World, is_root};

/// Set for a process that was prepared: anywhere else the ignored tests below do nothing.
const PREPARED: &str = "ANTIPHON_TEST_PREPARED";

fn is_prepared() -> bool {
    std::env::var_os(PREPARED).is_some()
}

/// Runs one of the ignored tests below in a process that `script` has prepared: it ends with
/// `exec "$0" "$@"`.
fn in_child(test: &str, script: &str, temp: &std::path::Path) -> Output {
    let program = std::env::current_exe().unwrap();
    Command::new("sh")
        .args(["-c", script])
        .arg(program)
        .args(["--exact", test, "--ignored", "--nocapture"])
        .env("TMPDIR", temp)
        .env(PREPARED, "yes")
        .output()
        .unwrap()
}

#[track_caller]
fn passed(output: &Output) {
    let out = String::from_utf8_lossy(&output.stdout);
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && out.contains("1 passed"), "{out}\n{error}");
}

#[test]
fn a_file_over_the_limit_of_the_process_is_not_half_written() {
    let temp = tempfile::tempdir().unwrap();
    // Ignored, the signal for it becomes an error.
    let script = r#"trap "" XFSZ; ulimit -f 64; exec "$0" "$@""#;
    passed(&in_child("limits::child_without_room", script, temp.path()));
}

#[test]
#[ignore = "run by another test, with a limit on the size of files"]
fn child_without_room() {
    if is_prepared() {
        no_room(&World::new());
    }
}

fn no_room(world: &World) {
    let large = "x".repeat(1024 * 1024);
    world.read("a.txt").tool_output();
    for failed in [
        world.write("a.txt", &large).failed(),
        world.write("new.txt", &large).failed(),
        world.edit("a.txt", "alpha", &large).failed(),
    ] {
        assert!(failed.contains("there is no room for it on the disk"), "{failed}");
    }
    assert_eq!(world.bytes("a.txt"), b"alpha\nbeta\n");
    assert!(!world.path("new.txt").exists());
    world.edit("a.txt", "alpha", "small").tool_output();
    world.is_unharmed();
}

/// A disk of its own, in a namespace of its own: no rights are needed, but not every system has
/// that.
const SMALL_DISK: &str = r#"
    unshare --user --map-root-user --mount true 2>/dev/null || { echo skipped; exit 0; }
    exec unshare --user --map-root-user --mount sh -c '
        mount -t tmpfs -o size=512k none "$TMPDIR" 2>/dev/null || { echo skipped; exit 0; }
        exec "$0" "$@"' "$0" "$@"
"#;

fn on_small_disk(test: &str) {
    let temp = tempfile::tempdir().unwrap();
    let output = in_child(test, SMALL_DISK, temp.path());
    if output.stdout == b"skipped\n" {
        eprintln!("skipped: this system does not permit mounting a disk");
    } else {
        passed(&output);
    }
}

#[test]
fn a_full_disk_costs_nothing_that_was_there() {
    on_small_disk("limits::child_on_a_full_disk");
}

#[test]
#[ignore = "run by another test, on a small disk"]
fn child_on_a_full_disk() {
    if is_prepared() {
        no_room(&World::new());
    }
}

#[test]
fn a_disk_that_cannot_be_written_is_told() {
    on_small_disk("limits::child_on_a_read_only_disk");
}

#[test]
#[ignore = "run by another test, on a small disk"]
fn child_on_a_read_only_disk() {
    if !is_prepared() {
        return;
    }
    let world = World::new();
    let disk = std::env::var_os("TMPDIR").unwrap();
    let mount = |how: &str| {
        let mounted = Command::new("mount").args(["-o", how]).arg(&disk).status().unwrap();
        assert!(mounted.success());
    };
    world.read("a.txt").tool_output();
    mount("remount,bind,ro");
    let failed = [world.write("a.txt", "x").failed(), world.write("new/new", "x").failed()];
    mount("remount,bind,rw");
    for failed in failed {
        assert!(failed.contains("the system does not permit writing there"), "{failed}");
    }
    world.is_unharmed();
}

#[test]
fn a_read_only_folder_is_reported() {
    use std::os::unix::fs::PermissionsExt;
    if is_root() {
        eprintln!("skipped: root may write everywhere; see the read-only disk");
        return;
    }
    let world = World::new();
    world.put("sub/x", "x");
    let mode = |mode| {
        let mode = std::fs::Permissions::from_mode(mode);
        std::fs::set_permissions(world.path("sub"), mode).unwrap();
    };
    mode(0o555);
    let failed = [world.write("sub/new", "x").failed(), world.edit("sub/x", "x", "y").failed()];
    mode(0o000);
    let unread = world.read("sub/x").failed();
    mode(0o755);
    for failed in failed {
        assert!(failed.contains("the system does not permit writing there"), "{failed}");
    }
    assert!(unread.contains("the system does not permit this"), "{unread}");
}

#[test]
fn a_large_file_is_read_in_little_memory() {
    let temp = tempfile::tempdir().unwrap();
    // In KiB: room for the program and its threads, but not for the file.
    let script = r#"ulimit -v 250000; exec "$0" "$@""#;
    passed(&in_child("limits::child_with_little_memory", script, temp.path()));
}

#[test]
#[ignore = "run by another test, with little memory"]
fn child_with_little_memory() {
    if !is_prepared() {
        return;
    }
    let world = World::new();
    huge_text(&world, "huge.txt", 300 << 20);
    // Behind the last line break is one line of most of it.
    let arguments = json!({ "path": "huge.txt", "offset": 100_002 });
    let failed = world.call("read", &arguments).failed();
    assert!(failed.contains("has 100001 lines, there is nothing at offset 100002"), "{failed}");
}
