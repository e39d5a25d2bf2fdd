//! Each route of the client, against the real server.

use std::num::{NonZeroU32, NonZeroUsize};

use antiphon_api::{
    AgentChange, AllowSpending, ApprovalQuery, CreateAgent, CreateTask, DecideApproval, DiffQuery,
    InboxQuery, JournalEventQuery, PresenceQuery, SendMessage, SessionFile, SessionQuery,
    TaskQuery, UsageBy, UsageQuery,
};
use antiphon_client::{ClientError, DeltaPiece, Endpoint, LiveDelta, RetryPolicy, StreamItem};
use antiphon_core::{
    ApprovalStatus, Decision, HandlingMode, HealthState, Invocation, InvocationResult, Position,
    StreamEvent, TaskStatus, UserMessage, WaitingFor,
};
use antiphon_test_server::TOKEN;
use serde_json::{Value, json};

use crate::server::{Server, client};

#[tokio::test]
async fn a_task_is_created_once_under_its_key_and_read_with_its_result() {
    let server = Server::start().await;
    let client = server.client();
    let task = CreateTask::text("hello").unwrap();
    let created = client.create_task(&task, Some("k1")).await.unwrap();
    assert_eq!(client.create_task(&task, Some("k1")).await.unwrap(), created);
    let summary = client.wait_for_task(&created.task_id).await.unwrap();
    assert_eq!(summary.status, TaskStatus::Completed);
    let detail = client.task(&created.task_id).await.unwrap();
    assert_eq!((detail.result, detail.reason), (Some(json!("Done with hello")), None));
    assert_eq!(detail.summary, summary);
    let message = UserMessage::text("hi", summary.created_at);
    let second = client.create_task(&CreateTask::message(&message).unwrap(), None).await.unwrap();
    let wait_s = NonZeroU32::new(20).unwrap();
    assert!(client.task_rest(&second.task_id, wait_s).await.unwrap().rests);
    server.stop().await;
}

#[tokio::test]
async fn tasks_are_listed_page_by_page_and_as_a_tree() {
    let server = Server::start().await;
    let client = server.client();
    let (first, second) = (server.task("one").await, server.task("two").await);
    let query = TaskQuery { limit: NonZeroUsize::new(1), tops: true, ..TaskQuery::default() };
    let page = client.tasks(&query).await.unwrap();
    assert_eq!(
        (page.tasks[0].task_id.clone(), page.next_cursor.clone()),
        (second.clone(), Some(second))
    );
    let page = client.tasks(&TaskQuery { cursor: page.next_cursor, ..query }).await.unwrap();
    assert_eq!((page.tasks[0].task_id.clone(), page.next_cursor), (first.clone(), None));
    let unfinished = TaskQuery { unfinished: true, ..TaskQuery::default() };
    assert_eq!(client.tasks(&unfinished).await.unwrap().tasks, []);
    assert_eq!(client.task_tree(&first).await.unwrap().tasks, page.tasks);
    let diff = client.task_diff(&first, &DiffQuery { below: true }).await.unwrap();
    assert_eq!((diff.changes.len(), diff.truncated), (0, false));
    server.stop().await;
}

#[tokio::test]
async fn an_approval_is_listed_and_decided_and_its_task_goes_on() {
    let server = Server::start().await;
    let client = server.client();
    let task_id = server.task("ask").await;
    let pending = client.approvals(&ApprovalQuery::default()).await.unwrap().approvals;
    let [approval] = pending.as_slice() else { panic!("{pending:?}") };
    assert_eq!(approval.task_id, task_id);
    let allow = DecideApproval { decision: Decision::AllowOnce, comment: None, answer: None };
    let decided = client.decide_approval(&approval.approval_id, &allow).await.unwrap();
    assert_eq!(decided.status, ApprovalStatus::Allowed);
    assert_eq!(client.wait_for_task(&task_id).await.unwrap().status, TaskStatus::Completed);
    assert_eq!(client.approvals(&ApprovalQuery::default()).await.unwrap().approvals, []);
    assert_eq!(
        client
            .approvals(&ApprovalQuery { all: true, ..ApprovalQuery::default() })
            .await
            .unwrap()
            .approvals,
        [decided]
    );
    server.stop().await;
}

#[tokio::test]
async fn a_task_is_paused_sent_a_message_resumed_and_canceled() {
    let server = Server::start().await;
    let client = server.client();
    let task_id = server.task("ask").await;
    let paused = client.pause_task(&task_id).await.unwrap();
    assert_eq!(paused.waiting_for, Some(WaitingFor::Resume));
    let message = SendMessage::text("and more", HandlingMode::Queue).unwrap();
    let sent = client.send_message(&task_id, &message, Some("k")).await.unwrap();
    assert_eq!(client.send_message(&task_id, &message, Some("k")).await.unwrap(), sent);
    client.resume_task(&task_id).await.unwrap();
    let interrupted = client.interrupt_task(&task_id).await.unwrap();
    assert_eq!(interrupted.waiting_for, Some(WaitingFor::Resume));
    assert_eq!(client.cancel_task(&task_id).await.unwrap().status, TaskStatus::Canceled);
    server.stop().await;
}

#[tokio::test]
async fn sessions_are_listed_read_forked_and_imported() {
    let server = Server::start().await;
    let client = server.client();
    server.task("hello").await;
    let sessions = client.sessions(&SessionQuery::default()).await.unwrap().sessions;
    let [session] = sessions.as_slice() else { panic!("{sessions:?}") };
    let detail = client.session(&session.session_id).await.unwrap();
    assert_eq!((&detail.summary, detail.messages.len()), (session, 2));
    let fork = client.fork_session(&session.session_id, None).await.unwrap();
    assert_ne!(fork.session_id, session.session_id);
    let file = json!({
        "version": 1, "id": "imported", "messages": detail.messages,
        "created_at": session.created_at, "updated_at": session.updated_at,
    });
    let file = SessionFile(serde_json::value::to_raw_value(&file).unwrap());
    match client.import_session(&file, Some("k")).await {
        Ok(imported) => assert_eq!(imported.session_id.as_str(), "imported"),
        // The form of the file is the concern of its own crate.
        Err(ClientError::Refused { status: 400, .. }) => {}
        Err(other) => panic!("{other:?}"),
    }
    server.stop().await;
}

#[tokio::test]
async fn budget_usage_inboxes_agents_and_health_are_read() {
    let server = Server::start().await;
    let client = server.client();
    server.task("hello").await;
    assert_eq!(client.health().await.unwrap().status, HealthState::Healthy);
    let budget = client.budget().await.unwrap();
    assert_eq!((budget.keys.len(), budget.waiting.len()), (0, 0));
    let amount = AllowSpending { usd: 1.5, key_id: None, comment: None };
    let refused = client.allow_spending(&amount, None).await.unwrap_err();
    assert!(matches!(refused, ClientError::Refused { .. }), "there is no limit: {refused:?}");
    let by = UsageBy::ALL.map(UsageBy::as_str).join(",");
    let query = UsageQuery { by: Some(by), ..UsageQuery::default() };
    let usage = client.usage(&query).await.unwrap();
    assert_eq!((usage.rows.len(), usage.totals.calls), (1, 1));
    assert_eq!(usage.rows[0].agent.as_deref(), Some("default"));
    let inbox = client.inbox(&InboxQuery::default()).await.unwrap();
    assert_eq!((inbox.waiting, inbox.total), (Vec::new(), 0));
    assert_eq!(client.agents().await.unwrap().agents, []);
    assert_eq!(client.agent_presences(&PresenceQuery::default()).await.unwrap(), []);
    let unknown = antiphon_core::AgentName::parse("nobody").unwrap();
    for refused in [
        client.agent(&unknown).await.map(drop),
        client.start_agent(&unknown).await.map(drop),
        client.stop_agent(&unknown).await.map(drop),
    ] {
        assert!(matches!(refused, Err(ClientError::Refused { status: 404, .. })), "{refused:?}");
    }
    server.stop().await;
}

#[tokio::test]
async fn an_invocation_returns_the_results_of_its_targets_or_their_tasks() {
    let server = Server::start().await;
    let client = server.client();
    let invocation = |join: &str| {
        let target = json!({ "agent": { "type": "named", "agent_id": "a" }, "message": "hello" });
        let invocation = json!({ "targets": [target], "join": join });
        serde_json::from_value::<Invocation>(invocation).unwrap()
    };
    let wait_s = NonZeroU32::new(20);
    let joined = client.invoke(&invocation("all"), wait_s, Some("k")).await.unwrap();
    let InvocationResult::Vector { results } = &joined else { panic!("{joined:?}") };
    assert_eq!(results.len(), 1);
    assert_eq!(client.invoke(&invocation("all"), wait_s, Some("k")).await.unwrap(), joined);
    let detached = client.invoke(&invocation("detached"), None, None).await.unwrap();
    let InvocationResult::TaskIds { task_ids } = &detached else { panic!("{detached:?}") };
    client.wait_for_task(&task_ids[0]).await.unwrap();
    server.stop().await;
}

#[tokio::test]
async fn a_server_without_agent_files_refuses_to_define_change_and_delete_agents() {
    let server = Server::start().await;
    let client = server.client();
    let rest = serde_json::Map::new();
    let name = antiphon_core::AgentName::parse("tester").unwrap();
    let created = client.define_agent(&CreateAgent { name: name.to_string(), rest }, None).await;
    assert!(matches!(created, Err(ClientError::Refused { status: 403, .. })), "{created:?}");
    let changed = client.change_agent(&name, &AgentChange::default()).await;
    assert!(matches!(changed, Err(ClientError::Refused { status: 404, .. })), "{changed:?}");
    let deleted = client.delete_agent(&name).await;
    assert!(matches!(deleted, Err(ClientError::Refused { status: 404, .. })), "{deleted:?}");
    server.stop().await;
}

#[tokio::test]
async fn a_live_stream_has_the_events_of_the_journal_and_deltas_of_an_answer() {
    let server = Server::start().await;
    let client = server.client();
    let query = JournalEventQuery { after: Some(Position(0)), ..JournalEventQuery::default() };
    let mut stream = client.live_journal_events(query, RetryPolicy::NEVER);
    let watched = async {
        let (mut events, mut text) = (Vec::new(), String::new());
        loop {
            match stream.next().await.unwrap().unwrap() {
                StreamItem::Event(event) => {
                    let is_last = event.body.ends_task();
                    events.push(*event);
                    if is_last {
                        return (events, text);
                    }
                }
                StreamItem::Delta(LiveDelta {
                    piece: DeltaPiece::Answer(StreamEvent::TextDelta { delta }),
                    ..
                }) => {
                    text.push_str(&delta);
                }
                StreamItem::Delta(_) => {}
            }
        }
    };
    let ((events, text), _) = tokio::join!(watched, server.task("hello"));
    assert_eq!(events, server.events(None).await);
    // Deltas may be missed, but none is made up.
    assert!("Done with hello".ends_with(&text), "{text}");
    server.stop().await;
}

#[tokio::test]
async fn a_server_is_reached_over_its_socket() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("server.sock");
    let server = Server::with_socket(&path).await;
    let client = client(Endpoint::Socket(path), TOKEN);
    assert!(client.is_alive().await);
    let created = client.create_task(&CreateTask::text("hello").unwrap(), None).await.unwrap();
    let detail = {
        client.wait_for_task(&created.task_id).await.unwrap();
        client.task(&created.task_id).await.unwrap()
    };
    assert_eq!(detail.result, Some(Value::from("Done with hello")));
    server.stop().await;
}
