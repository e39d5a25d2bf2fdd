//! What an installed binary has to do.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::world::{World, done};

/// Shows its version, finds nothing wrong, and works on a task that reads a file with a real tool.
pub(crate) fn works(world: &World, binary: &Path) {
    let version = done(world.command(binary).arg("--version"));
    assert_eq!(version, concat!("antiphon ", env!("CARGO_PKG_VERSION"), "\n"));
    let doctor = done(world.command(binary).arg("doctor"));
    assert!(doctor.contains("sandbox"), "{doctor}");
    assert!(!doctor.contains('✗'), "{doctor}");
    scripted_task(world.path("project").as_path(), world.command(binary));
}

/// A scripted task that reads a file of the project.
pub(crate) fn scripted_task(project: &Path, mut command: Command) {
    fs::write(project.join("notes.txt"), "two lanterns\n").unwrap();
    fs::write(
        project.join("script.toml"),
        r#"
name = "reader"
[[reply]]
when = { results_since_user = 0 }
step = [{ call = { name = "read", arguments = { path = "notes.txt" } } }]
[[reply]]
step = [{ text = "It says: {{last_result}}" }]
"#,
    )
    .unwrap();
    let arguments =
        ["run", "--model", "scripted/reader", "--script", "script.toml", "What is in it?"];
    let answer = done(command.args(arguments));
    assert!(answer.contains("two lanterns"), "{answer}");
}
