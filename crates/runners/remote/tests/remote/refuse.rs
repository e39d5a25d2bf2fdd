//! Peers that cannot or do not work on a task, and the reasons.

use std::time::Duration;

use antiphon_core::port::{Runner, RunnerError};
use antiphon_remote::{PeerError, Peers, RemoteRunner, RetryPolicy};
use antiphon_test_server::TOKEN;
use serde_json::{Value, json};

use crate::local::{LocalSide, PERSISTENT, runner};
use crate::peer_server::PeerServer;

pub(crate) const HASTY: RetryPolicy = RetryPolicy {
    attempts_max: 3,
    first_wait: Duration::from_millis(1),
    wait_max: Duration::from_millis(1),
};

fn peers(token: &str, url: &str) -> Peers {
    let mut peers = Peers::default();
    peers.add("there", url, &token.into()).unwrap();
    peers.add("other", url, &token.into()).unwrap();
    peers
}

async fn refused(loopback: &RemoteRunner, local: &LocalSide, config: Value) -> String {
    let run = local.run_on(local.journal.clone(), config);
    match loopback.run(run).await {
        Err(RunnerError::Refused { reason }) => reason,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_peer_that_does_not_accept_the_token_refuses() {
    let (peer, local) = (PeerServer::new().await, LocalSide::new("hi").await);
    let wrong = "x".repeat(32);
    let loopback = RemoteRunner::new(peers(&wrong, &peer.url()), PERSISTENT);
    let reason = refused(&loopback, &local, json!({"peer": "there"})).await;
    assert!(reason.contains("`there`") && reason.contains("token"), "{reason}");
    assert!(!reason.contains(&wrong), "{reason}");
    assert_eq!(local.events().await.len(), 2, "nothing is written");
    peer.end().await;
}

#[tokio::test]
async fn a_peer_that_is_not_configured_is_refused_and_the_known_ones_are_named() {
    let local = LocalSide::new("hi").await;
    let loopback = RemoteRunner::new(peers(TOKEN, "http://127.0.0.1:1"), PERSISTENT);
    let reason = refused(&loopback, &local, json!({"peer": "elsewhere"})).await;
    assert_eq!(reason, "there is no peer `elsewhere`, only other, there");
    assert_eq!(loopback.check(&json!({"peer": "elsewhere"})), Err(reason));
    assert_eq!(loopback.check(&json!({"peer": "there"})), Ok(()));
    // Neither an address nor a secret comes from a configuration.
    for config in [
        json!({}),
        json!("there"),
        json!({"peer": "there", "url": "http://evil.example"}),
        json!({"peer": "there", "token": "x"}),
        json!({"peer": "there", "model": "nonsense"}),
    ] {
        assert!(loopback.check(&config).is_err(), "{config}");
    }
    assert_eq!((loopback.kind(), loopback.is_orchestrator()), ("loopback", true));
}

#[test]
fn the_only_peer_needs_no_name_and_a_task_keeps_it() {
    let loopback = runner("http://127.0.0.1:1", PERSISTENT);
    assert_eq!(loopback.check(&json!({})), Ok(()));
    let kept = json!({"agent": "expert", "peer": "there"});
    assert_eq!(loopback.with_defaults(&json!({"agent": "expert"})), kept);
    assert_eq!(loopback.with_defaults(&json!({"peer": "there"})), json!({"peer": "there"}));
    let none = RemoteRunner::new(Peers::default(), PERSISTENT);
    assert_eq!(none.check(&json!({})), Err("there is no peer: none is configured".to_owned()));
    let several = RemoteRunner::new(peers(TOKEN, "http://127.0.0.1:1"), PERSISTENT);
    let reason = several.check(&json!({})).unwrap_err();
    assert_eq!(reason, "there are several peers, name one with `peer`: other, there");
}

#[tokio::test]
async fn a_peer_that_does_not_answer_is_unavailable_after_the_retries() {
    let local = LocalSide::new("hi").await;
    let (_, address) = PeerServer::new().await.end().await;
    let run = local.run_on(local.journal.clone(), json!({"peer": "there"}));
    let stopped = runner(&format!("http://{address}"), HASTY).run(run).await;
    let Err(RunnerError::Unavailable { reason }) = stopped else { panic!("{stopped:?}") };
    assert!(reason.contains("`there`") && reason.contains("refused"), "{reason}");
}

#[tokio::test]
async fn a_task_that_the_peer_lost_is_refused_and_not_created_again() {
    let (peer, local) = (PeerServer::new().await, LocalSide::new("act").await);
    let url = peer.url();
    tokio::select! {
        ran = local.run(&url) => panic!("it waits for an answer there: {ran:?}"),
        () = local.until("relayed") => {}
    }
    let (_, address) = peer.end().await;
    let journal = std::sync::Arc::new(antiphon_conformance::reference::MemoryJournal::new());
    let peer = PeerServer::again(journal, address).await;
    let loopback = runner(&peer.url(), PERSISTENT);
    let reason = refused(&loopback, &local, json!({"peer": "there"})).await;
    assert!(reason.contains("404"), "{reason}");
    peer.end().await;
}

#[tokio::test]
async fn the_reason_of_a_refusal_is_the_peers() {
    let peer = PeerServer::new().await;
    let schema = antiphon_core::RawJson::parse(r#"{"type":"nonsense"}"#).unwrap();
    let local_task =
        antiphon_core::TaskCreated { output_schema: Some(schema), ..crate::local::created() };
    let local = LocalSide::with(local_task, vec![crate::local::said("hi")]).await;
    let reason = refused(&runner(&peer.url(), PERSISTENT), &local, json!({"peer": "there"})).await;
    assert!(reason.contains("400") && reason.contains("schema"), "{reason}");
    let silent = LocalSide::with(crate::local::created(), Vec::new()).await;
    let reason = refused(&runner(&peer.url(), PERSISTENT), &silent, json!({"peer": "there"})).await;
    assert!(reason.contains("no question"), "{reason}");
    peer.end().await;
}

#[test]
fn a_token_is_sent_in_the_clear_to_this_machine_only() {
    let mut peers = Peers::default();
    for fine in [
        "http://127.0.0.1:7117",
        "http://[::1]:7117",
        "http://localhost:1",
        "https://team.example/antiphon/",
    ] {
        peers.add("fine", fine, &TOKEN.into()).unwrap();
    }
    let insecure = peers.add("team", "http://team.example", &TOKEN.into());
    assert_eq!(insecure, Err(PeerError::Insecure { name: "team".to_owned() }));
    for bad in ["nonsense", "ftp://team.example", "https://user:secret@team.example", "file:///etc"]
    {
        let refused = peers.add("bad", bad, &TOKEN.into()).unwrap_err();
        assert!(matches!(refused, PeerError::Url { .. }), "{refused}");
        assert!(!refused.to_string().contains("secret"), "{refused}");
    }
    let refused = peers.add("bad", "https://team.example", &"a\nb".into());
    assert_eq!(refused, Err(PeerError::Token { name: "bad".to_owned() }));
    assert_eq!(peers.names().collect::<Vec<_>>(), ["fine"]);
    assert!(!format!("{peers:?}").contains(TOKEN));
}
