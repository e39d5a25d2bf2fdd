//! A peer that is away: what it has to get is remembered, and nothing here waits for it.

use std::net::SocketAddr;
use std::num::{NonZeroU32, NonZeroUsize};
use std::sync::Arc;
use std::time::{Duration, Instant};

use antiphon_conformance::reference::MemoryJournal;
use antiphon_core::port::{Journal, TaskQuery, TaskSelector};
use antiphon_core::{
    EventBody, ORDERS, OutageWait, StatusChanged, TaskId, TaskLimits, TaskStatus, TaskSummary,
    WaitingFor,
};
use antiphon_remote::RetryPolicy;
use antiphon_runtime::{NewTask, Orchestrator};
use tokio::net::TcpListener;

use crate::local::{PERSISTENT, read, runner};
use crate::orchestrators::{PATIENCE, task, until};
use crate::peer_server::{PeerServer, orchestrator};
use crate::refuse::HASTY;

/// Longer than a cancellation here may take, and much shorter than a wait for the peer.
const AT_ONCE: Duration = Duration::from_secs(3);

/// Time in which a task that was not held would go on.
const MEANWHILE: Duration = Duration::from_millis(400);

pub(crate) fn local_at(journal: &Arc<MemoryJournal>, url: &str) -> Orchestrator {
    local_with(journal, url, PERSISTENT)
}

fn local_with(journal: &Arc<MemoryJournal>, url: &str, retry: RetryPolicy) -> Orchestrator {
    let loopback = Arc::new(runner(url, retry));
    orchestrator(Arc::clone(journal) as Arc<dyn Journal>, vec![loopback])
}

async fn orders(orchestrator: &Orchestrator) -> Vec<TaskSummary> {
    let query = TaskQuery { which: TaskSelector::All, limit: NonZeroUsize::MAX };
    let tasks = orchestrator.tasks(query).await.unwrap();
    tasks.into_iter().filter(|task| task.agent == ORDERS).collect()
}

/// Waits until the only order has ended, and returns its status.
async fn delivered(orchestrator: &Orchestrator) -> TaskStatus {
    loop {
        let found = orders(orchestrator).await;
        assert_eq!(found.len(), 1, "{found:?}");
        if found[0].status.is_terminal() {
            return found[0].status;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

async fn bodies(journal: &MemoryJournal, task_id: &TaskId) -> Vec<EventBody> {
    read(journal, task_id).await.into_iter().map(|event| event.body).collect()
}

fn canceled() -> EventBody {
    StatusChanged::new(TaskStatus::Canceled).into()
}

/// A task that hangs at the peer, which is stopped then.
async fn left_alone(text: &str) -> (Arc<MemoryJournal>, Orchestrator, TaskId, PeerServer, TaskId) {
    let peer = PeerServer::new().await;
    let journal = Arc::new(MemoryJournal::new());
    let local = local_at(&journal, &peer.url());
    let task_id = local.invoke(task(text)).await.unwrap().task_id;
    until(&local, &task_id, "tool_started").await;
    let remote = peer.task().await;
    (journal, local, task_id, peer, remote)
}

#[tokio::test]
async fn a_cancel_while_the_peer_is_down_is_delivered_before_the_task_does_anything_more() {
    let (_, local, task_id, peer, remote) = left_alone("hang").await;
    let (there, address) = peer.end().await;
    let before = bodies(&there, &remote).await;
    let began = Instant::now();
    local.cancel(&task_id).await.unwrap();
    assert!(began.elapsed() < AT_ONCE, "{:?}", began.elapsed());
    assert_eq!(local.task(&task_id).await.unwrap().status, TaskStatus::Canceled);
    let waiting = orders(&local).await;
    assert!(!waiting[0].status.is_terminal(), "{waiting:?}");
    let peer = PeerServer::again(Arc::clone(&there), address).await;
    assert_eq!(delivered(&local).await, TaskStatus::Completed);
    let expected: Vec<EventBody> = before.into_iter().chain([canceled()]).collect();
    assert_eq!(bodies(&there, &remote).await, expected);
    local.shutdown(PATIENCE).await;
    peer.end().await;
}

#[tokio::test]
async fn a_cancel_is_delivered_by_the_next_process_too() {
    let (journal, local, task_id, peer, remote) = left_alone("hang").await;
    let (there, address) = peer.end().await;
    let before = bodies(&there, &remote).await;
    local.cancel(&task_id).await.unwrap();
    local.shutdown(PATIENCE).await;
    // The peer is back first: its task waits for us.
    let peer = PeerServer::again(Arc::clone(&there), address).await;
    tokio::time::sleep(MEANWHILE).await;
    assert_eq!(bodies(&there, &remote).await, before);
    let local = local_at(&journal, &peer.url());
    local.recover().await.unwrap();
    assert_eq!(delivered(&local).await, TaskStatus::Completed);
    let expected: Vec<EventBody> = before.into_iter().chain([canceled()]).collect();
    assert_eq!(bodies(&there, &remote).await, expected);
    local.shutdown(PATIENCE).await;
    peer.end().await;
}

#[tokio::test]
async fn a_cancel_in_a_process_without_runners_is_recorded_and_delivered_later() {
    let (journal, local, task_id, peer, remote) = left_alone("hang").await;
    local.shutdown(PATIENCE).await;
    let deps = antiphon_test_server::runtime_deps(
        Arc::clone(&journal) as Arc<dyn Journal>,
        crate::peer_server::ANSWERS,
    );
    let recorder = Orchestrator::record_only(deps);
    recorder.cancel(&task_id).await.unwrap();
    assert_eq!(recorder.task(&task_id).await.unwrap().status, TaskStatus::Canceled);
    assert_eq!(peer.orchestrator.task(&remote).await.unwrap().status, TaskStatus::Running);
    let local = local_at(&journal, &peer.url());
    local.deliver_cancels();
    assert_eq!(delivered(&local).await, TaskStatus::Completed);
    assert_eq!(peer.orchestrator.task(&remote).await.unwrap().status, TaskStatus::Canceled);
    local.shutdown(PATIENCE).await;
    peer.end().await;
}

#[tokio::test]
async fn a_task_at_a_peer_that_is_back_waits_for_its_client_and_then_goes_on() {
    let (journal, local, task_id, peer, remote) = left_alone("hang").await;
    local.shutdown(PATIENCE).await;
    let (there, address) = peer.end().await;
    let before = bodies(&there, &remote).await;
    let peer = PeerServer::again(Arc::clone(&there), address).await;
    // A look at it by others changes nothing.
    let client = crate::peer_server::client(&peer.url());
    let mut events = client.task_events(remote.clone(), antiphon_core::Seq(0), PERSISTENT);
    events.next().await.unwrap();
    tokio::time::sleep(MEANWHILE).await;
    assert_eq!(bodies(&there, &remote).await, before);
    let local = local_at(&journal, &peer.url());
    local.recover().await.unwrap();
    while bodies(&there, &remote).await.len() == before.len() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    assert_eq!(orders(&local).await, []);
    local.cancel(&task_id).await.unwrap();
    assert_eq!(peer.orchestrator.task(&remote).await.unwrap().status, TaskStatus::Canceled);
    local.shutdown(PATIENCE).await;
    peer.end().await;
}

/// A server that accepts connections and never answers.
async fn silent() -> (TcpListener, String) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    (listener, url)
}

#[tokio::test]
async fn a_peer_that_does_not_answer_delays_neither_a_cancel_nor_a_time_limit() {
    let (_listener, url) = silent().await;
    let journal = Arc::new(MemoryJournal::new());
    let local = local_at(&journal, &url);
    let limits = TaskLimits { wall_clock_s_max: NonZeroU32::new(1), ..TaskLimits::default() };
    let began = Instant::now();
    let limited = NewTask { limits, ..task("hang") };
    let limited = local.invoke(limited).await.unwrap().task_id;
    let canceled = local.invoke(task("hang")).await.unwrap().task_id;
    local.cancel(&canceled).await.unwrap();
    assert!(began.elapsed() < AT_ONCE, "{:?}", began.elapsed());
    let state = local.wait(&limited).await.unwrap();
    assert_eq!(state.status, TaskStatus::Failed, "{state:?}");
    assert!(began.elapsed() < Duration::from_secs(1) + AT_ONCE, "{:?}", began.elapsed());
    assert_eq!(orders(&local).await.len(), 2, "both may have been created there");
    local.shutdown(PATIENCE).await;
}

#[tokio::test]
async fn a_task_whose_creation_got_no_answer_is_not_created_after_its_cancellation() {
    let (listener, url) = silent().await;
    let address = listener.local_addr().unwrap();
    let journal = Arc::new(MemoryJournal::new());
    let local = local_at(&journal, &url);
    let task_id = local.invoke(task("hang")).await.unwrap().task_id;
    let (lost, _) = listener.accept().await.unwrap();
    local.cancel(&task_id).await.unwrap();
    drop((lost, listener));
    let peer = PeerServer::again(Arc::new(MemoryJournal::new()), address).await;
    assert_eq!(delivered(&local).await, TaskStatus::Completed);
    // The creation arrives late.
    let client = crate::peer_server::client(&peer.url());
    let late = antiphon_api::CreateTask::text("hang").unwrap();
    let late = client.create_task(&late, Some(task_id.as_str())).await.unwrap().task_id;
    let remote = peer.orchestrator.task(&late).await.unwrap();
    assert_eq!((remote.status, remote.calls), (TaskStatus::Canceled, 0));
    local.shutdown(PATIENCE).await;
    peer.end().await;
}

/// An address where nothing listens.
async fn unused_address() -> SocketAddr {
    TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap()
}

/// The list's line of a task, once it fits.
async fn listed(local: &Orchestrator, fits: impl Fn(&TaskSummary) -> bool) -> TaskSummary {
    loop {
        let query = TaskQuery { which: TaskSelector::All, limit: NonZeroUsize::MAX };
        let tasks = local.tasks(query).await.unwrap();
        let task = tasks.into_iter().find(|task| task.agent == "tester").unwrap();
        assert!(!task.status.is_terminal(), "{task:?}");
        if fits(&task) {
            return task;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

fn attempts(task: &TaskSummary) -> u32 {
    let waits = task.waiting_for == Some(WaitingFor::Peer);
    task.wait.as_ref().filter(|_| waits).map_or(0, |wait| wait.attempt)
}

#[tokio::test]
async fn a_task_whose_peer_is_away_waits_says_why_and_goes_on_when_it_is_back() {
    let address = unused_address().await;
    let journal = Arc::new(MemoryJournal::new());
    let local = local_with(&journal, &format!("http://{address}"), HASTY);
    let task_id = local.invoke(task("hi")).await.unwrap().task_id;
    let waits = listed(&local, |task| attempts(task) == 2).await;
    assert_eq!(waits.status, TaskStatus::Running);
    let wait = waits.wait.unwrap();
    assert_eq!(wait.code, "peer_unavailable");
    assert!(wait.error.contains("the peer `there`"), "{wait:?}");
    let peer = PeerServer::again(Arc::new(MemoryJournal::new()), address).await;
    let state = local.wait(&task_id).await.unwrap();
    assert_eq!((state.status, state.detail), (TaskStatus::Completed, Some("Done with hi".into())));
    local.shutdown(PATIENCE).await;
    peer.end().await;
}

#[tokio::test]
async fn a_task_that_runs_at_a_peer_waits_while_it_is_away_also_across_a_restart_here() {
    let peer = PeerServer::new().await;
    let journal = Arc::new(MemoryJournal::new());
    let local = local_with(&journal, &peer.url(), HASTY);
    let task_id = local.invoke(task("hang")).await.unwrap().task_id;
    until(&local, &task_id, "tool_started").await;
    let (there, address) = peer.end().await;
    listed(&local, |task| attempts(task) == 1).await;
    local.shutdown(PATIENCE).await;
    let local = local_with(&journal, &format!("http://{address}"), HASTY);
    local.recover().await.unwrap();
    listed(&local, |task| attempts(task) > 1).await;
    let peer = PeerServer::again(there, address).await;
    // The remote task has nothing new to tell.
    let back = listed(&local, |task| task.waiting_for.is_none()).await;
    assert_eq!((back.status, back.wait), (TaskStatus::Running, None));
    local.cancel(&task_id).await.unwrap();
    let remote = peer.orchestrator.task(&peer.task().await).await.unwrap();
    assert_eq!(remote.status, TaskStatus::Canceled);
    local.shutdown(PATIENCE).await;
    peer.end().await;
}

#[tokio::test]
async fn a_person_ends_the_pause_of_a_wait_for_a_peer() {
    let address = unused_address().await;
    let journal = Arc::new(MemoryJournal::new());
    let local = local_with(&journal, &format!("http://{address}"), HASTY);
    let task_id = local.invoke(task("hi")).await.unwrap().task_id;
    let OutageWait { next_at, .. } = listed(&local, |task| attempts(task) == 3).await.wait.unwrap();
    let peer = PeerServer::again(Arc::new(MemoryJournal::new()), address).await;
    local.resume(&task_id).await.unwrap();
    let state = local.wait(&task_id).await.unwrap();
    assert_eq!(state.status, TaskStatus::Completed);
    let ended = read(&*journal, &task_id).await.pop().unwrap().at;
    assert!(ended < next_at, "{ended} is not before {next_at}");
    local.shutdown(PATIENCE).await;
    peer.end().await;
}

#[tokio::test]
async fn a_limit_and_a_cancel_end_the_wait_for_a_peer_at_once() {
    let journal = Arc::new(MemoryJournal::new());
    let url = format!("http://{}", unused_address().await);
    let local = local_with(&journal, &url, HASTY);
    let limits = TaskLimits { wall_clock_s_max: NonZeroU32::new(2), ..TaskLimits::default() };
    let canceled = local.invoke(task("hi")).await.unwrap().task_id;
    listed(&local, |task| attempts(task) > 0).await;
    let began = Instant::now();
    local.cancel(&canceled).await.unwrap();
    assert!(began.elapsed() < AT_ONCE, "{:?}", began.elapsed());
    let limited = local.invoke(NewTask { limits, ..task("hi") }).await.unwrap().task_id;
    let state = local.wait(&limited).await.unwrap();
    let detail = state.detail.unwrap();
    assert_eq!((state.status, &detail["code"]), (TaskStatus::Failed, &"limit_reached".into()));
    assert!(detail["error"].as_str().unwrap().contains("it waited for its peer"), "{detail}");
    local.shutdown(PATIENCE).await;
}

#[tokio::test]
async fn a_task_that_waits_on_its_peer_says_here_for_what() {
    let (_, local, task_id, peer, remote) = left_alone("hang").await;
    peer.orchestrator.pause(&remote).await.unwrap();
    let held = listed(&local, |task| task.waiting_for.is_some()).await;
    assert_eq!((held.status, held.wait), (TaskStatus::InputRequired, None));
    assert_eq!(held.waiting_for, Some(WaitingFor::Resume));
    peer.orchestrator.resume(&remote).await.unwrap();
    let back = listed(&local, |task| task.waiting_for.is_none()).await;
    assert_eq!(back.status, TaskStatus::Running);
    local.cancel(&task_id).await.unwrap();
    local.shutdown(PATIENCE).await;
    peer.end().await;
}
