//! What tools in a worker can reach.

use std::fs;
use std::net::TcpListener;

use antiphon_core::TaskStatus;
use serde_json::{Value, json};

use crate::bench::{Bench, calls, scripted};

/// What a tool says, and whether it failed.
async fn output(bench: &Bench, tool: &str, arguments: Value) -> (String, bool) {
    let bench = Bench { provider: scripted(&calls(tool, arguments)), ..bench.again() };
    let state = bench.whole().await;
    assert_eq!(state.status, TaskStatus::Completed);
    bench.results(&state.task_id).await.remove(0)
}

impl Bench {
    /// The same workspace and runner, another journal.
    fn again(&self) -> Self {
        Self {
            folder: tempfile::tempdir().unwrap(),
            root: self.root.clone(),
            token: self.token.clone(),
            journal: std::sync::Arc::default(),
            runner: std::sync::Arc::clone(&self.runner),
            provider: std::sync::Arc::clone(&self.provider),
            config: self.config.clone(),
        }
    }
}

#[tokio::test]
async fn tools_work_in_the_workspace_and_reach_nothing_else() {
    let outer = tempfile::tempdir_in(crate::bench::scratch()).unwrap();
    let secret = outer.path().canonicalize().unwrap().join("secret");
    fs::write(&secret, "the key").unwrap();
    let bench = Bench::with(scripted(&calls("look", json!({}))), |settings| {
        settings.policy.hidden.push(secret.clone());
    });
    let inside = bench.root.join("file");
    let written = output(&bench, "write", json!({ "on": inside })).await;
    assert!(!written.1, "{written:?}");
    assert_eq!(fs::read_to_string(&inside).unwrap(), "written");

    let read = output(&bench, "read", json!({ "on": secret })).await;
    assert!(!read.0.contains("the key"), "{read:?}");
    let outside = bench.outside("outside");
    let refused = output(&bench, "write", json!({ "on": outside })).await;
    assert!(refused.1 && !outside.exists(), "{refused:?}");
    let refused = output(&bench, "write", json!({ "on": bench.root.join(".git/config") })).await;
    assert!(refused.1, "{refused:?}");
}

#[tokio::test]
async fn there_is_no_network() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let bench = Bench::new(&calls("look", json!({})));
    let address = listener.local_addr().unwrap().to_string();
    let refused = output(&bench, "connect", json!({ "on": address })).await;
    assert!(refused.1, "{refused:?}");
}

#[tokio::test]
async fn nothing_but_what_is_named_is_in_the_environment() {
    let bench = Bench::with(scripted(&calls("look", json!({}))), |settings| {
        settings.environment.push(("NAMED".into(), "for tools".into()));
    });
    let (environment, _) = output(&bench, "environment", json!({})).await;
    assert!(environment.contains("for tools"), "{environment}");
    assert!(environment.contains("\\\"PATH"), "{environment}");
    for name in ["HOME", "CARGO", "NEXTEST", "USER"] {
        assert!(!environment.contains(&format!("\\\"{name}")), "{name}: {environment}");
    }
}

#[tokio::test]
async fn tools_see_no_process_outside_and_cannot_get_at_their_worker() {
    let bench = Bench::new(&calls("look", json!({})));
    let look = "cat /proc/1/environ /proc/$PPID/environ /proc/$PPID/fd/* 2>&1; kill -9 1; \
                ls /proc | grep -c '^[0-9]*$'";
    let (seen, _) = output(&bench, "command", json!({ "on": look })).await;
    assert!(!seen.contains("ANTIPHON_TASK_WORKER"), "{seen}");
    // The first one, the one that works, bash, ls and grep.
    assert!(seen.contains("5\\n"), "{seen}");
}

#[tokio::test]
async fn a_protected_place_that_is_replaced_gets_a_new_worker() {
    let bench = Bench::new(&calls("hang", json!({ "on": "x" })));
    fs::create_dir(bench.root.join(".git")).unwrap();
    let task_id = bench.accept().await;
    let replace = async {
        crate::bench::eventually("the tool runs", || !bench.lines("hangs").is_empty()).await;
        fs::rename(bench.root.join(".git"), bench.outside("moved")).unwrap();
        fs::create_dir(bench.root.join(".git")).unwrap();
    };
    let (ran, ()) = tokio::join!(bench.once(&task_id), replace);
    ran.unwrap();
    let results = bench.results(&task_id).await;
    assert!(results[0].0.contains("outcome unknown"), "{results:?}");
    bench.assert_clean();
}
