//! Starts: several at once, and what a start reads.

use std::process::{Command, Stdio};

use antiphon_model_server::ModelServer;

use crate::anthropic_wire;
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

/// Reading the certificates of the system takes longer than everything else before the first request.
#[tokio::test(flavor = "multi_thread")]
async fn a_model_that_is_reached_without_tls_needs_no_certificates() {
    let model = ModelServer::start(|_, _| anthropic_wire::text("Hello.")).await.unwrap();
    let project = Project::new();
    let nothing = project.path().join("nothing");
    let mut command = project.command(&["run", "--model", "anthropic/claude-sonnet-4-5", "hi"]);
    command.env("ANTHROPIC_API_KEY", "sk-ant-none").env("ANTHROPIC_BASE_URL", model.url());
    command.env("SSL_CERT_FILE", &nothing).env("SSL_CERT_DIR", &nothing);
    let output = tokio::task::spawn_blocking(move || command.output().unwrap()).await.unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    assert_eq!(model.served(), 1);
}

#[test]
fn first_commands_of_a_fresh_folder_do_not_collide() {
    for _ in 0..4 {
        let project = Project::new();
        let names = ["ada", "bob", "cyd", "dan"];
        let mut commands: Vec<_> =
            names.iter().map(|name| project.command(&["agents", "new", name])).collect();
        commands.push(project.command(&["run", "hello"]));
        commands.push(project.command(&["keys", "new", "--name", "one"]));
        commands.push(project.command(&["keys", "new", "--name", "two"]));
        let piped = |command: &mut Command| {
            command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
        };
        let running: Vec<_> = commands.iter_mut().map(piped).collect();
        for child in running {
            let output = child.wait_with_output().unwrap();
            assert!(output.status.success(), "{output:?}");
        }
    }
}
