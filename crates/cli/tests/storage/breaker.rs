//! The metrics show the circuit breaker of each provider that was called.

use std::fs;
use std::io::Write;

use crate::project_folder::home;
use crate::server::{Server, commands, project, until};

#[test]
fn a_provider_that_cannot_be_reached_shows_as_an_open_breaker() {
    let folder = project(&commands(&["true"]));
    let config = home(folder.path()).join(".config/antiphon/config.toml");
    // Nothing listens there.
    let dead = "[providers.dead]\nkind = \"openai\"\nbase_url = \"http://127.0.0.1:9/v1\"\n\
                [providers.dead.limits]\nretries = 0\n";
    let mut file = fs::OpenOptions::new().append(true).open(config).unwrap();
    file.write_all(dead.as_bytes()).unwrap();
    let server = Server::start(folder.path(), &[]);
    let scrape = || server.ask("GET", "/metrics", "").body;
    let sample = "antiphon_circuit_breaker_state{provider=\"dead\"} ";
    assert!(!scrape().contains(sample), "a provider that was not called has no breaker");
    for _ in 0..6 {
        let body = r#"{"message":"go","model":"dead/model"}"#;
        assert_eq!(server.ask("POST", "/v1/tasks", body).status, 201);
    }
    until("the breaker is open", || scrape().contains(&format!("{sample}2")).then_some(()));
    // The answer says when to ask again: after the rest of the breaker, of 30 seconds at first.
    let body = r#"{"model":"dead/model","messages":[{"role":"user","content":"go"}]}"#;
    let refused = server.ask("POST", "/v1/chat/completions", body);
    assert_eq!(refused.status, 503, "{refused:?}");
    let after = refused.head.lines().find_map(|line| line.strip_prefix("retry-after: "));
    let after: u64 = after.unwrap().parse().unwrap();
    assert!((5..=30).contains(&after), "{refused:?}");
    assert_eq!(refused.json()["error"]["code"], "overloaded", "{refused:?}");
}

#[test]
fn metrics_keep_the_name_of_an_agent_over_a_restart() {
    let folder = project(&commands(&["touch begun; sleep 1", "true"]));
    let server = Server::start(folder.path(), &[]);
    let task = server.task();
    let begun = folder.path().join("begun");
    until("the command runs", || begun.exists().then_some(()));
    // A kill: the task is unfinished.
    drop(server);
    let server = Server::start(folder.path(), &[]);
    server.completed(&task);
    let ended = "antiphon_tasks_ended_total{agent=\"default\",status=\"completed\"}";
    until("the end is counted", || {
        let scrape = server.ask("GET", "/metrics", "").body;
        scrape.contains("antiphon_tasks_ended_total{").then_some(())
    });
    assert!((server.metric(ended) - 1.0).abs() < f64::EPSILON);
    let scrape = server.ask("GET", "/metrics", "").body;
    assert!(!scrape.contains("agent=\"\""), "{scrape}");
}
