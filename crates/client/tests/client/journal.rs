//! The journal of a server reads like the journal itself.

use std::num::NonZeroUsize;

use antiphon_client::{ClientError, RetryPolicy, ServerJournal};
use antiphon_core::port::{
    Append, Expected, JournalError, JournalLog, Read, TaskFilter, TaskIndex, TaskQuery,
    TaskSelector,
};
use antiphon_core::{Position, SessionId, TaskId, TaskStatus};
use antiphon_test_server::TOKEN;

use crate::server::{PERSISTENT, Server, client};

fn limit(limit: usize) -> NonZeroUsize {
    NonZeroUsize::new(limit).unwrap()
}

#[tokio::test]
async fn events_are_read_page_by_page_like_from_the_journal_itself() {
    let server = Server::start().await;
    let (first, second) = (server.task("steps").await, server.task("hello").await);
    let remote = ServerJournal::new(server.client(), RetryPolicy::NEVER);
    for task_id in [None, Some(first), Some(second)] {
        for size in [1, 3, 1000] {
            let mut after = Position(0);
            loop {
                let read = Read { task_id: task_id.clone(), after, limit: limit(size) };
                let page = remote.read(read.clone()).await.unwrap();
                assert_eq!(page, server.journal.read(read).await.unwrap());
                if page.events.is_empty() {
                    break;
                }
                after = page.next;
            }
        }
    }
    let read = Read { task_id: None, after: Position(u64::MAX), limit: limit(1) };
    let head = remote.read(read.clone()).await.unwrap().head;
    assert_eq!(head, server.journal.read(read).await.unwrap().head);
    server.stop().await;
}

#[tokio::test]
async fn tasks_are_selected_like_from_the_journal_itself() {
    let server = Server::start().await;
    let mut ids = Vec::new();
    for text in ["hello", "ask", "steps", "hello"] {
        ids.push(server.task(text).await);
    }
    let remote = ServerJournal::new(server.client(), RetryPolicy::NEVER);
    let session = server.client().task(&ids[2]).await.unwrap().summary.session_id;
    let finished = TaskFilter { statuses: vec![TaskStatus::Completed], ..TaskFilter::default() };
    let before = TaskFilter {
        roots: true,
        without_records: true,
        before: Some(ids[3].clone()),
        agent: Some("default".to_owned()),
        ..TaskFilter::default()
    };
    for which in [
        TaskSelector::All,
        TaskSelector::Roots,
        TaskSelector::Unfinished,
        TaskSelector::One(ids[0].clone()),
        TaskSelector::One(TaskId::parse("none").unwrap()),
        TaskSelector::IdPrefix(ids[1].to_string()),
        TaskSelector::IdPrefix(ids[1].as_str()[..5].to_owned()),
        TaskSelector::IdPrefix("none".to_owned()),
        TaskSelector::Tree(ids[2].clone()),
        TaskSelector::Session(session),
        TaskSelector::Session(SessionId::parse("none").unwrap()),
        TaskSelector::Matching(finished),
        TaskSelector::Matching(before),
    ] {
        for most in [1, 2, 5000] {
            let query = TaskQuery { which: which.clone(), limit: limit(most) };
            let expected = server.journal.tasks(query.clone()).await.unwrap();
            assert_eq!(remote.tasks(query).await.unwrap(), expected, "{which:?}, {most}");
        }
    }
    assert_eq!(remote.last_error(), None);
    server.stop().await;
}

#[tokio::test]
async fn it_writes_nothing_and_keeps_the_reason_of_a_failed_read() {
    let server = Server::start().await;
    let remote = ServerJournal::new(server.client(), RetryPolicy::NEVER);
    let append = Append {
        task_id: TaskId::parse("one").unwrap(),
        expected: Expected::NoTask,
        at: chrono::DateTime::UNIX_EPOCH,
        events: Vec::new(),
        key: None,
    };
    let refused = remote.append(append).await.unwrap_err();
    assert!(matches!(refused, JournalError::Unavailable { .. }), "{refused:?}");
    let wrong = client(server.client().endpoint().clone(), &TOKEN.replace('0', "1"));
    let remote = ServerJournal::new(wrong, RetryPolicy::NEVER);
    let query = TaskQuery { which: TaskSelector::All, limit: limit(1) };
    let refused = remote.tasks(query).await.unwrap_err();
    assert!(matches!(refused, JournalError::Unavailable { .. }), "{refused:?}");
    assert_eq!(remote.last_error(), Some(ClientError::Unauthorized));
    server.stop().await;
}

#[tokio::test]
async fn a_reader_waits_for_a_server_that_is_started_again_and_not_for_one_that_never_answered() {
    let server = Server::start().await;
    server.task("hello").await;
    let expected = server.events(None).await;
    let remote = ServerJournal::new(server.client(), PERSISTENT);
    let stranger = ServerJournal::new(server.client(), PERSISTENT);
    let read = Read { task_id: None, after: Position(0), limit: limit(1000) };
    assert_eq!(remote.read(read.clone()).await.unwrap().events, expected);
    let (journal, address) = server.stop().await;
    stranger.read(read.clone()).await.unwrap_err();
    assert!(matches!(stranger.last_error(), Some(ClientError::NoConnection { .. })));
    let again = async {
        tokio::time::sleep(std::time::Duration::from_millis(200)).await;
        Server::restart(journal, address).await
    };
    let (page, server) = tokio::join!(remote.read(read), again);
    assert_eq!(page.unwrap().events, expected);
    server.stop().await;
}
