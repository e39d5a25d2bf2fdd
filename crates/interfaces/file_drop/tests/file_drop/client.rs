//! The client: drops a request and waits for its response.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

use antiphon_file_drop::{DropError, drop_and_wait};
use serde_json::json;

use crate::world::{WAIT_MAX, World, comparable, names, read, stop};

#[tokio::test]
async fn a_request_is_dropped_and_its_response_comes_back() {
    let world = World::watched().await;
    let folder = world.requests();
    let response = drop_and_wait(&folder, "cli", stop("a").into(), WAIT_MAX).await.unwrap();
    let request = response.request.clone();
    let expected = json!({"request": request, "ok": true, "status": "stopped", "agent": "a"});
    assert_eq!(comparable(response), expected);
    let left = names(&folder.join("cli"));
    assert_eq!(left, [request.clone(), request.replace(".json", ".response.json")]);
}

#[tokio::test]
async fn concurrent_clients_each_get_their_own_response() {
    let world = World::watched().await;
    let ask = |nth: usize| {
        let request = stop(&format!("a{nth}")).into();
        drop_and_wait(world.requests(), "cli", request, WAIT_MAX)
    };
    let mut requested = tokio::task::JoinSet::new();
    for nth in 0..50 {
        let ask = ask(nth);
        requested.spawn(async move { (nth, ask.await.unwrap().agent) });
    }
    for (nth, agent) in requested.join_all().await {
        assert_eq!(agent, Some(format!("a{nth}")));
    }
}

#[tokio::test]
async fn an_invalid_request_gets_an_error_response() {
    let world = World::watched().await;
    let response = drop_and_wait(world.requests(), "cli", b"{}".into(), WAIT_MAX).await.unwrap();
    assert_eq!(response.error.unwrap().message, "unknown orchestrator action: ");
}

#[tokio::test]
async fn without_a_service_the_request_stays_and_is_answered_later() {
    let world = World::new();
    fs::remove_dir_all(world.project().join(".antiphon")).unwrap();
    let timeout = Duration::from_millis(50);
    let waited = drop_and_wait(world.requests(), "cli", stop("a").into(), timeout).await;
    let Err(DropError::Timeout { request, waited }) = waited else { panic!("{waited:?}") };
    assert_eq!(waited, timeout);
    assert_eq!(fs::read_to_string(&request).unwrap(), stop("a"));
    assert_eq!(fs::metadata(&request).unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(world.pass().await.answered, 1);
    let response = request.to_str().unwrap().replace(".json", ".response.json");
    assert!(read(response.as_ref()).unwrap().ok);
}

#[tokio::test]
async fn a_folder_that_no_service_would_use_is_refused_at_once() {
    let world = World::new();
    fs::set_permissions(world.path(""), Permissions::from_mode(0o777)).unwrap();
    let refused = drop_and_wait(world.requests(), "boss", stop("a").into(), WAIT_MAX).await;
    let folder = world.requests().join("boss");
    let message = format!(
        "cannot drop a request into `{}`: others may write to it (mode 0777): `chmod go-w` it",
        folder.display()
    );
    assert_eq!(refused.unwrap_err().to_string(), message);
    let refused = drop_and_wait(world.requests(), "../boss", stop("a").into(), WAIT_MAX).await;
    let message = "`../boss` is not a valid requester name: a name may hold letters, digits, spaces \
                   and `_ - .`, not '/'";
    assert_eq!(refused.unwrap_err().to_string(), message);
}
