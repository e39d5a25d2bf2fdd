//! `write`.

use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt};

use serde_json::json;

use crate::world::{Outcome, World};

#[test]
fn a_new_file_is_made_with_the_folders_above_it() {
    let world = World::new();
    let tool_output = world.write("new/er/b.txt", "one\ntwo\n").tool_output();
    assert_eq!(tool_output, "Created `new/er/b.txt`: 8 bytes, 2 lines.\n");
    assert_eq!(world.bytes("new/er/b.txt"), b"one\ntwo\n");
    let umask = 0o777 & !world.mode_of("new");
    assert_eq!(world.mode_of("new/er/b.txt"), 0o644 & !umask);
    world.is_unharmed();
}

#[test]
fn a_file_that_was_read_is_replaced_and_what_changed_is_shown() {
    let world = World::new();
    world.read("a.txt").tool_output();
    assert_eq!(
        world.write("a.txt", "alpha\ngamma").tool_output(),
        "Overwrote `a.txt`: 11 bytes, 2 lines.\n@@ -1,2 +1,2 @@\n alpha\n-beta\n+gamma\n\
         \\ No newline at end of file\n"
    );
    // What a task wrote it has seen.
    assert!(matches!(world.write("a.txt", "again\n"), Outcome::Said(_)));
}

#[test]
fn only_the_lines_around_a_change_are_shown() {
    let world = World::new();
    let lines = |middle: &str| {
        let mut lines: Vec<String> = (1..=1_000).map(|i| format!("line {i}")).collect();
        lines[499] = middle.to_owned();
        lines.join("\n") + "\n"
    };
    world.put("long.txt", lines("old"));
    world.read("long.txt").tool_output();
    let tool_output = world.write("long.txt", &lines("new")).tool_output();
    let (_, diff) = tool_output.split_once('\n').unwrap();
    assert_eq!(
        diff,
        "@@ -497,7 +497,7 @@\n line 497\n line 498\n line 499\n-old\n+new\n line 501\n line 502\n \
         line 503\n"
    );
}

#[test]
fn a_long_diff_is_cut() {
    let world = World::new();
    world.put("long.txt", "old\n".repeat(5_000));
    world.read("long.txt").tool_output();
    let tool_output = world.write("long.txt", &"new\n".repeat(5_000)).tool_output();
    assert!(
        tool_output.len() < 16 * 1024
            && tool_output.ends_with("[the diff is cut here: more was changed]\n")
    );
    let tool_output = world.write("long.txt", &"newer\n".repeat(50_000)).tool_output();
    assert!(tool_output.ends_with("[the change is too large for a diff]\n"), "{tool_output}");
}

#[test]
fn a_file_changed_by_another_process_is_not_overwritten() {
    let world = World::new();
    world.read("a.txt").tool_output();
    // Of the same size, and perhaps within the same tick of the clock.
    world.put("a.txt", "ALPHA\nBETA\n");
    let failed = world.write("a.txt", "mine\n").failed();
    assert!(failed.contains("`a.txt` changed since you read it: read it again"), "{failed}");
    assert_eq!(world.bytes("a.txt"), b"ALPHA\nBETA\n");
    world.read("a.txt").tool_output();
    world.write("a.txt", "mine\n").tool_output();
}

#[test]
fn a_file_changed_back_counts_as_read() {
    let world = World::new();
    world.read("a.txt").tool_output();
    world.put("a.txt", "other\n");
    world.put("a.txt", "alpha\nbeta\n");
    world.write("a.txt", "mine\n").tool_output();
}

#[test]
fn what_another_task_read_does_not_count() {
    let world = World::new();
    world.call_as("other", "read", &json!({ "path": "a.txt" })).unwrap();
    assert!(world.write("a.txt", "x").failed().contains("this task has not read it"));
}

#[test]
fn a_task_that_is_released_has_seen_nothing() {
    use antiphon_core::ToolExecutor;
    let world = World::new();
    world.read("a.txt").tool_output();
    let task = antiphon_core::TaskId::parse("task").unwrap();
    world.block_on(world.toolbox.release(&task));
    world.block_on(world.toolbox.release(&task));
    assert!(world.write("a.txt", "x").failed().contains("this task has not read it"));
}

#[test]
fn a_file_read_in_part_is_told_by_its_identity() {
    let world = World::new();
    // Over the size up to which a file is gone through to its end.
    world.put("huge.txt", format!("{}\n", "x".repeat(1023)).repeat(66 * 1024));
    world.read("huge.txt").tool_output();
    fs::File::options()
        .append(true)
        .open(world.path("huge.txt"))
        .unwrap()
        .set_len(70 << 20)
        .unwrap();
    assert!(world.write("huge.txt", "x").failed().contains("changed since you read it"));
    world.read("huge.txt").tool_output();
    assert!(world.write("huge.txt", "x").tool_output().contains("too large for a diff"));
}

#[test]
fn permissions_and_owner_are_kept() {
    let world = World::new();
    world.put("run.sh", "#!/bin/sh\n");
    fs::set_permissions(world.path("run.sh"), Permissions::from_mode(0o4751)).unwrap();
    let before = fs::metadata(world.path("run.sh")).unwrap();
    world.read("run.sh").tool_output();
    world.write("run.sh", "#!/bin/sh\ntrue\n").tool_output();
    assert_eq!(world.mode_of("run.sh"), 0o4751);
    world.edit("run.sh", "true", "false").tool_output();
    assert_eq!(world.mode_of("run.sh"), 0o4751);
    let after = fs::metadata(world.path("run.sh")).unwrap();
    assert_eq!((after.uid(), after.gid()), (before.uid(), before.gid()));
}

#[test]
fn a_private_file_stays_private() {
    let world = World::new();
    world.put("key", "old");
    fs::set_permissions(world.path("key"), Permissions::from_mode(0o600)).unwrap();
    world.edit("key", "old", "new").tool_output();
    assert_eq!(world.mode_of("key"), 0o600);
}

#[test]
fn other_hard_links_keep_the_old_content() {
    let world = World::new();
    fs::hard_link(world.path("a.txt"), world.path("b.txt")).unwrap();
    world.read("a.txt").tool_output();
    assert!(world.write("a.txt", "x").tool_output().contains("other hard links"));
    assert_eq!(world.bytes("b.txt"), b"alpha\nbeta\n");
}
