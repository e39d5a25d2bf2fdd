//! Remote events are appended to the local task, in order.

use antiphon_core::port::ApprovalSelector;
use antiphon_core::{EventBody, StatusChanged, TaskStatus, WaitingFor};
use serde_json::json;

use crate::local::{LocalSide, worked};
use crate::peer_server::PeerServer;

fn last(events: &[EventBody]) -> &StatusChanged {
    let Some(EventBody::StatusChanged(change)) = events.last() else { panic!("{events:?}") };
    change
}

#[tokio::test]
async fn every_remote_event_is_appended_here_and_the_terminal_one_is_last() {
    let (peer, local) = (PeerServer::new().await, LocalSide::new("steps").await);
    local.run(&peer.url()).await.unwrap();
    let relayed = local.relayed().await;
    assert_eq!(relayed, worked(&peer).await);
    assert_eq!(last(&relayed).detail, Some(json!("Done with steps")));
    let marks = local.marks().await;
    assert!(marks.windows(2).all(|two| two[0].seq < two[1].seq), "{marks:?}");
    let task = peer.task().await;
    assert!(marks.iter().all(|mark| mark.task_id == task));
    assert_eq!(marks.last().unwrap().seq, peer.events().await.last().unwrap().seq);
    let events = local.events().await;
    assert!(matches!(events[events.len() - 2].body, EventBody::Relayed(_)));
    peer.end().await;
}

#[tokio::test]
async fn a_task_that_fails_there_fails_here_for_the_same_reason() {
    let (peer, local) = (PeerServer::new().await, LocalSide::new("fail").await);
    local.run(&peer.url()).await.unwrap();
    let relayed = local.relayed().await;
    assert_eq!(relayed, worked(&peer).await);
    assert_eq!(last(&relayed).status, TaskStatus::Failed);
    assert!(last(&relayed).detail.as_ref().unwrap().to_string().contains("not so"));
    peer.end().await;
}

#[tokio::test]
async fn an_approval_is_decided_at_the_peer_and_waited_for_here() {
    let (peer, local) = (PeerServer::new().await, LocalSide::new("act").await);
    let url = peer.url();
    let answering = async {
        local.until("status_changed").await;
        while !local.relayed().await.iter().any(is_input_required) {
            tokio::task::yield_now().await;
        }
        let requested = peer.orchestrator.approvals(ApprovalSelector::Pending).await.unwrap();
        let id = requested[0].approval_id.clone();
        let yes = antiphon_core::Decision::AllowTask;
        peer.orchestrator.decide(&id, yes, "a test", None).await.unwrap();
    };
    let (ran, ()) = tokio::join!(local.run(&url), answering);
    ran.unwrap();
    let relayed = local.relayed().await;
    let waiting = relayed.iter().find(|body| is_input_required(body)).unwrap();
    let EventBody::StatusChanged(waiting) = waiting else { panic!("{waiting:?}") };
    let task = peer.task().await;
    let place = json!({"peer": "there", "task_id": task, "waiting_for": WaitingFor::Approval});
    assert_eq!((&waiting.detail, waiting.waiting_for), (&Some(place), None));
    assert_eq!(last(&relayed).status, TaskStatus::Completed);
    let kinds: Vec<&str> = relayed.iter().map(EventBody::event_type).collect();
    assert!(!kinds.iter().any(|kind| kind.starts_with("approval")), "{kinds:?}");
    peer.end().await;
}

fn is_input_required(body: &EventBody) -> bool {
    matches!(body, EventBody::StatusChanged(change) if change.status == TaskStatus::InputRequired)
}
