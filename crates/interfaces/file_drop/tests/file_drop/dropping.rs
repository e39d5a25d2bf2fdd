//! Dropping a request and waiting for its response.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

use antiphon_file_drop::{DropError, drop_and_wait};
use serde_json::json;

use crate::world::{PATIENCE, World, names, read, stop, told};

#[tokio::test]
async fn a_request_is_dropped_and_its_response_comes_back() {
    let world = World::watched().await;
    let folder = world.requests();
    let response = drop_and_wait(&folder, "cli", stop("a").into(), PATIENCE).await.unwrap();
    let request = response.request.clone();
    let expected = json!({"request": request, "ok": true, "status": "stopped", "agent": "a"});
    assert_eq!(told(response), expected);
    let left = names(&folder.join("cli"));
    assert_eq!(left, [request.clone(), request.replace(".json", ".response.json")]);
}

#[tokio::test]
async fn many_can_drop_at_a_time_and_everybody_gets_their_own() {
    let world = World::watched().await;
    let ask = |nth: usize| {
        let request = stop(&format!("a{nth}")).into();
        drop_and_wait(world.requests(), "cli", request, PATIENCE)
    };
    let mut asked = tokio::task::JoinSet::new();
    for nth in 0..50 {
        let ask = ask(nth);
        asked.spawn(async move { (nth, ask.await.unwrap().agent) });
    }
    for (nth, agent) in asked.join_all().await {
        assert_eq!(agent, Some(format!("a{nth}")));
    }
}

#[tokio::test]
async fn a_bad_request_is_told_like_any_other() {
    let world = World::watched().await;
    let response = drop_and_wait(world.requests(), "cli", b"{}".into(), PATIENCE).await.unwrap();
    assert_eq!(response.error.unwrap().message, "unknown orchestrator action: ");
}

#[tokio::test]
async fn where_nobody_answers_the_request_stays_and_is_answered_later() {
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
async fn a_folder_in_which_nobody_would_answer_is_refused_at_once() {
    let world = World::new();
    fs::set_permissions(world.path(""), Permissions::from_mode(0o777)).unwrap();
    let refused = drop_and_wait(world.requests(), "boss", stop("a").into(), PATIENCE).await;
    let folder = world.requests().join("boss");
    let message = format!(
        "cannot drop a request into `{}`: others may write to it (mode 0777): `chmod go-w` it",
        folder.display()
    );
    assert_eq!(refused.unwrap_err().to_string(), message);
    let refused = drop_and_wait(world.requests(), "../boss", stop("a").into(), PATIENCE).await;
    let message = "`../boss` is no name for a requester: a name may hold letters, digits, spaces \
                   and `_ - .`, not '/'";
    assert_eq!(refused.unwrap_err().to_string(), message);
}
