//! What becomes of a server's list of tools.

use std::time::{Duration, Instant};

use antiphon_core::port::{CutOffCall, CutOffOutcome, ToolExecutor};
use antiphon_core::{Effect, RawJson, TaskId};
use antiphon_mcp::{Mcp, McpOptions, ServerState, TOOLS_MAX};
use serde_json::{Value, json};

use crate::world::{
    START, call, call_named, config, environment, hostile, names, prepared, ready, state, status,
    text, until, with,
};

#[tokio::test]
async fn only_what_the_user_lets_through_is_offered() {
    let server = with(
        hostile(&[]),
        json!({"allow": ["echo", "d*"], "deny": ["d?e*"], "read_only": ["deaf"]}),
    );
    let mcp = ready(server).await;
    assert_eq!(names(&mcp), ["mcp__s__deaf", "mcp__s__echo"]);
    // The server says that `echo` is read-only; the user says that `deaf` is.
    assert_eq!(mcp.effect("mcp__s__echo"), Some(Effect::SideEffect));
    assert_eq!(mcp.effect("mcp__s__deaf"), Some(Effect::ReadOnly));
    assert_eq!(mcp.effect("mcp__s__die"), None);
    assert!(call(&mcp, "die", json!({})).await.is_err());
    assert_eq!(status(&mcp, "s").tools, 2);
}

#[tokio::test]
async fn a_call_that_was_cut_off_runs_again_only_if_the_server_declares_that_harmless() {
    let task_id = TaskId::parse("task").unwrap();
    let arguments = RawJson::empty_object();
    let mcp = ready(hostile(&[])).await;
    let echo = mcp.start_note("mcp__s__echo", &arguments, &task_id).await;
    assert_eq!(mcp.start_note("mcp__s__raw", &arguments, &task_id).await, None);
    let unknown = CutOffOutcome::Unknown { known: String::new() };
    // What it declares by now does not count alone, and neither does what it declared before.
    for (tool, note, expected) in [
        ("mcp__s__echo", echo.clone(), CutOffOutcome::MayRun),
        ("mcp__s__echo", None, unknown.clone()),
        ("mcp__s__raw", echo.clone(), unknown.clone()),
        ("mcp__s__gone", echo, unknown),
    ] {
        let call = CutOffCall { task_id: task_id.clone(), call_uuid: uuid::Uuid::nil(), note };
        assert_eq!(mcp.inspect_cut_off(tool, &arguments, &call).await, expected, "{tool}");
    }
}

#[tokio::test]
async fn lies_about_schemas_cost_the_liar_and_names_stay_apart() {
    let mcp = ready(hostile(&["lying"])).await;
    let tools = mcp.tools();
    let find = |name: &str| tools.iter().find(|tool| tool.name == name);
    let permissive = json!({"type": "object", "properties": {}});
    for name in ["good", "nonsense", "remote", "large", "deep"] {
        let tool = find(&format!("mcp__s__{name}")).unwrap_or_else(|| panic!("{name}"));
        assert_eq!(tool.parameters.to::<Value>().unwrap(), permissive, "{name}");
        assert!(tool.description.starts_with("[from the MCP server `s`] Good."), "{tool:?}");
        assert!(!tool.description.contains(['\u{200b}', '\u{e0041}']), "{tool:?}");
    }
    for name in ["missing", "text", "array", "hidden"] {
        assert_eq!(find(&format!("mcp__s__{name}")), None, "{name}");
    }
    // No tool of a server can pass for one of ours.
    assert!(find("bash").is_none() && find("mcp__s__bash").is_some());
    // good nonsense remote large deep bash + `a b`, `a.b` and the long one under names of their own
    assert_eq!(tools.len(), 9, "{:?}", names(&mcp));
    for tool in &tools {
        let name = &tool.name;
        assert!(name.len() <= 64 && name.starts_with("mcp__s__"), "{name}");
    }
    assert_eq!(text(&mcp, "good", json!({})).await, "called good");
    let spaced = tools.iter().filter(|tool| tool.name.starts_with("mcp__s__a_b_"));
    let mut called = Vec::new();
    for tool in spaced {
        called
            .push(crate::world::only_text(&call_named(&mcp, &tool.name, json!({})).await.unwrap()));
    }
    called.sort();
    assert_eq!(called, ["called a b", "called a.b"]);
}

#[tokio::test]
async fn ten_thousand_tools_are_cut_to_what_can_be_used() {
    let mcp = ready(hostile(&["many_tools"])).await;
    assert_eq!(names(&mcp).len(), TOOLS_MAX);
    let last = with(hostile(&["many_tools"]), json!({"allow": ["tool_09999"]}));
    let mcp = ready(last).await;
    assert_eq!(names(&mcp), ["mcp__s__tool_09999"]);
}

#[tokio::test]
async fn a_list_that_goes_in_circles_ends() {
    let mcp = ready(hostile(&["circle"])).await;
    assert_eq!(names(&mcp), ["mcp__s__echo"]);
}

#[tokio::test]
async fn a_server_without_tools_is_ready_all_the_same() {
    let mcp = ready(hostile(&["no_tools"])).await;
    assert_eq!(names(&mcp), [""; 0]);
}

#[tokio::test]
async fn changed_tools_appear_and_are_checked_by_their_new_schema() {
    for modes in [&[][..], &["modern"]] {
        let mcp = ready(hostile(modes)).await;
        // The newer protocol notifies only subscribers.
        if !modes.is_empty() {
            let mut received = String::new();
            let start = Instant::now();
            while !received.contains("subscriptions/listen") && start.elapsed() < START {
                received = text(&mcp, "heard", json!({})).await;
            }
        }
        assert_eq!(text(&mcp, "change", json!({})).await, "changed");
        until("the new tool", || names(&mcp).contains(&"mcp__s__brand_new".to_owned())).await;
        assert!(!names(&mcp).contains(&"mcp__s__deaf".to_owned()));
        assert_eq!(text(&mcp, "brand_new", json!({})).await, "called brand_new");

        assert_eq!(text(&mcp, "change_schema", json!({})).await, "changed");
        let schema = |mcp: &Mcp| {
            let tool = mcp.tools().into_iter().find(|tool| tool.name == "mcp__s__echo").unwrap();
            tool.parameters.to::<Value>().unwrap()["properties"]["text"]["type"].clone()
        };
        until("the new schema", || schema(&mcp) == "number").await;
        assert!(call(&mcp, "echo", json!({"text": "words"})).await.is_err());
    }
}

#[tokio::test]
async fn slow_and_broken_servers_do_not_delay_others() {
    let mcp = prepared(json!({
        "good": hostile(&[]),
        "hangs": with(hostile(&["hang_start"]), json!({"start_timeout_s": 3})),
        "never-lists": with(hostile(&["hang_list"]), json!({"start_timeout_s": 3})),
        "dies": hostile(&["die_start"]),
        "missing": {"command": "/no/such/program"},
        "nowhere": {"url": "http://127.0.0.1:1/mcp"},
    }));
    let start = Instant::now();
    mcp.connect_all(Duration::from_millis(500)).await;
    assert!(start.elapsed() < Duration::from_secs(3));
    assert_eq!(state(&mcp, "hangs"), ServerState::Starting);
    until("the good one", || state(&mcp, "good") == ServerState::Ready).await;
    let result_text = call_named(&mcp, "mcp__good__echo", json!({"text": "hi"})).await.unwrap();
    assert_eq!(crate::world::only_text(&result_text), "hi");

    let failed = |name: &str| matches!(state(&mcp, name), ServerState::Failed { .. });
    until("all failures", || {
        ["hangs", "never-lists", "dies", "missing", "nowhere"].iter().all(|name| failed(name))
    })
    .await;
    let reason = |name: &str| status(&mcp, name).last_error.unwrap_or_default();
    assert!(reason("hangs").contains("within 3 s"), "{}", reason("hangs"));
    assert!(reason("never-lists").contains("within 3 s"));
    assert!(reason("dies").contains("the configuration is missing"), "{}", reason("dies"));
    assert!(reason("missing").contains("/no/such/program"), "{}", reason("missing"));
    assert!(reason("nowhere").contains("cannot be reached"), "{}", reason("nowhere"));
}

#[tokio::test]
async fn a_server_that_takes_only_initialize_is_started_again_for_it() {
    let mcp = ready(hostile(&["strict"])).await;
    assert_eq!(text(&mcp, "echo", json!({"text": "hi"})).await, "hi");
    assert_eq!(status(&mcp, "s").restarts, 0);
}

#[tokio::test]
async fn a_server_of_the_newer_protocol_is_understood() {
    let mcp = ready(hostile(&["modern"])).await;
    assert_eq!(text(&mcp, "echo", json!({"text": "hi"})).await, "hi");
    let received = text(&mcp, "heard", json!({})).await;
    assert!(
        received.contains("server/discover") && !received.contains("\"initialize\""),
        "{received}"
    );
}

#[tokio::test]
async fn a_known_list_is_there_at_once_and_its_server_starts_when_called() {
    let folder = tempfile::tempdir().unwrap();
    let open = |server: Value| {
        let options = McpOptions {
            environment: environment(),
            workspace: None,
            cache_file: Some(folder.path().join("mcp.json")),
            token_folder: None,
        };
        Mcp::new(config(json!({"s": server})), options)
    };
    let first = open(hostile(&[]));
    first.connect_all(START).await;
    let tools = first.tools();
    assert!(!tools.is_empty());
    first.shutdown(Duration::from_secs(3)).await;

    let second = open(hostile(&[]));
    second.connect_all(START).await;
    assert_eq!(second.tools(), tools);
    assert_eq!(state(&second, "s"), ServerState::Idle);
    assert!(call(&second, "echo", json!({})).await.is_err(), "checked before the server is there");
    assert_eq!(state(&second, "s"), ServerState::Idle);
    assert_eq!(text(&second, "echo", json!({"text": "hi"})).await, "hi");
    assert_eq!(state(&second, "s"), ServerState::Ready);

    // Another configuration: what is known is not of it.
    let third = open(hostile(&["many_tools"]));
    third.connect_all(START).await;
    assert_eq!((names(&third).len(), state(&third, "s")), (TOOLS_MAX, ServerState::Ready));
}

#[tokio::test]
async fn a_server_that_was_replaced_by_a_newer_one_is_understood() {
    let folder = tempfile::tempdir().unwrap();
    let open = || {
        let options = McpOptions {
            environment: environment(),
            workspace: None,
            cache_file: Some(folder.path().join("mcp.json")),
            token_folder: None,
        };
        let server = with(hostile(&[]), json!({"cwd": folder.path()}));
        Mcp::new(config(json!({"s": server})), options)
    };
    for modes in ["", "modern", "strict"] {
        std::fs::write(folder.path().join("modes"), modes).unwrap();
        let mcp = open();
        mcp.connect_all(START).await;
        assert_eq!(text(&mcp, "echo", json!({"text": "hi"})).await, "hi", "{modes}");
        mcp.shutdown(Duration::from_secs(3)).await;
    }
}
