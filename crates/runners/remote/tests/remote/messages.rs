//! Messages to a task on a peer cross over once, or are refused.

use std::sync::Arc;

use antiphon_conformance::reference::MemoryJournal;
use antiphon_core::port::{Clock, IdempotencyKey, SystemClock};
use antiphon_core::{
    EventBody, HandlingMode, Message, Provenance, Sender, TaskId, TaskStatus, UserMessage,
};
use antiphon_runtime::{Orchestrator, OrchestratorError, TaskMessage};

use crate::away::local_at;
use crate::local::read;
use crate::orchestrators::{PATIENCE, task, until};
use crate::peer_server::PeerServer;

fn message(text: &str, key: &str) -> TaskMessage {
    TaskMessage {
        message: UserMessage::text(text, SystemClock.now()),
        mode: HandlingMode::Steer,
        from: Sender::User,
        key: Some(IdempotencyKey(key.to_owned())),
        provenance: Provenance::Owner,
    }
}

/// How often the conversation of a task has this text of the user.
async fn said(orchestrator: &Orchestrator, task_id: &TaskId, text: &str) -> usize {
    let state = orchestrator.task(task_id).await.unwrap();
    let is_it = |message: &&Arc<Message>| match &***message {
        Message::User(user) => format!("{:?}", user.content).contains(text),
        Message::Assistant(_) | Message::ToolResult(_) => false,
    };
    state.messages().iter().filter(is_it).count()
}

#[tokio::test]
async fn a_message_crosses_over_once_and_is_read_there() {
    let peer = PeerServer::new().await;
    let journal = Arc::new(MemoryJournal::new());
    let local = local_at(&journal, &peer.url());
    let task_id = local.invoke(task("act")).await.unwrap().task_id;
    peer.until("approval_requested").await;
    let remote = peer.task().await;
    let first = local.send_message(&task_id, message("Be brief.", "k")).await.unwrap();
    let again = local.send_message(&task_id, message("Be brief.", "k")).await.unwrap();
    assert_eq!(first, again);
    let queue = peer.orchestrator.task(&remote).await.unwrap().queue;
    assert_eq!((queue.len(), queue[0].mode), (1, HandlingMode::Steer));
    assert_eq!(local.task(&task_id).await.unwrap().queue, [], "nothing waits here");
    let open = peer.orchestrator.approvals(antiphon_core::port::ApprovalSelector::Pending).await;
    let id = open.unwrap()[0].approval_id.clone();
    let yes = antiphon_core::Decision::AllowOnce;
    peer.orchestrator.decide(&id, yes, "a test", None).await.unwrap();
    let state = local.wait(&task_id).await.unwrap();
    assert_eq!(state.status, TaskStatus::Completed);
    assert_eq!(said(&local, &task_id, "Be brief.").await, 1);
    assert_eq!(said(&peer.orchestrator, &remote, "Be brief.").await, 1);
    // The same message after the end is still the same.
    assert_eq!(local.send_message(&task_id, message("Be brief.", "k")).await.unwrap(), first);
    let other = local.send_message(&task_id, message("More.", "other")).await;
    assert!(matches!(other, Err(OrchestratorError::Ended { .. })), "{other:?}");
    local.shutdown(PATIENCE).await;
    peer.end().await;
}

#[tokio::test]
async fn a_message_to_a_peer_that_is_down_is_refused_and_leaves_nothing_behind() {
    let peer = PeerServer::new().await;
    let journal = Arc::new(MemoryJournal::new());
    let local = local_at(&journal, &peer.url());
    let task_id = local.invoke(task("hang")).await.unwrap().task_id;
    until(&local, &task_id, "tool_started").await;
    let (there, address) = peer.end().await;
    let refused = local.send_message(&task_id, message("Be brief.", "k")).await.unwrap_err();
    let OrchestratorError::PeerUnavailable { peer: name, .. } = &refused else {
        panic!("{refused:?}")
    };
    assert_eq!(name, "there");
    let queued = |body: &EventBody| matches!(body, EventBody::MessageQueued(_));
    assert!(!read(&*journal, &task_id).await.iter().any(|event| queued(&event.body)));
    let peer = PeerServer::again(there, address).await;
    local.send_message(&task_id, message("Be brief.", "k")).await.unwrap();
    let queue = peer.orchestrator.task(&peer.task().await).await.unwrap().queue;
    assert_eq!(queue.len(), 1);
    local.cancel(&task_id).await.unwrap();
    local.shutdown(PATIENCE).await;
    peer.end().await;
}
