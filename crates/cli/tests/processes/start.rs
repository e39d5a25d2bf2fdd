//! First starts at once.

use std::process::Stdio;

use crate::project::Project;

/// Processes that start at once.
const AT_ONCE: usize = 12;

#[test]
fn any_number_of_first_starts_at_once_succeed() {
    let project = Project::new();
    let started: Vec<_> = (0..AT_ONCE)
        .map(|number| {
            let mut command = project.command(&["run", &format!("hello {number}")]);
            command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
        })
        .collect();
    for child in started {
        let output = child.wait_with_output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{said}");
        assert!(!output.stdout.is_empty());
    }
    let tasks = project.tasks();
    assert_eq!(tasks.len(), AT_ONCE);
    assert!(tasks.iter().all(|task| task["status"] == "completed"), "{tasks:#?}");
}
