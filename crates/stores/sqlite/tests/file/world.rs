//! Tasks with notes in them.

use std::num::NonZeroUsize;
use std::path::Path;
use std::process::Command;

use antiphon_core::port::{Append, Appended, Expected, Journal, JournalError, JournalLog, Read};
use antiphon_core::{
    Event, EventBody, MessageAppended, Position, Seq, SessionId, TaskCreated, TaskId, UserMessage,
};
use antiphon_sqlite::{SqliteJournal, SyncPolicy};
use chrono::DateTime;

/// Tells a test that it runs in a child process, and in which folder.
pub(crate) const CHILD: &str = "ANTIPHON_TEST_CHILD";

pub(crate) fn open(path: &Path) -> SqliteJournal {
    SqliteJournal::open(path, SyncPolicy::Full).expect("a journal")
}

pub(crate) fn task(number: u64) -> TaskId {
    TaskId::parse(&format!("task-{number}")).expect("an id")
}

/// The creation of a task, with a first note in it.
pub(crate) fn creation(number: u64) -> Append {
    let created = TaskCreated::new("tester", SessionId::parse("session").expect("an id"));
    append(number, Expected::NoTask, vec![created.into(), note("the first")])
}

pub(crate) fn append(number: u64, expected: Expected, events: Vec<EventBody>) -> Append {
    Append { task_id: task(number), expected, at: DateTime::UNIX_EPOCH, events, key: None }
}

pub(crate) fn note(text: &str) -> EventBody {
    MessageAppended::new(UserMessage::text(text, DateTime::UNIX_EPOCH)).into()
}

pub(crate) async fn add(
    journal: &SqliteJournal,
    number: u64,
    at: Seq,
    text: &str,
) -> Result<Appended, JournalError> {
    journal.append(append(number, Expected::At(at), vec![note(text)])).await
}

/// Every event, after checking their order.
pub(crate) async fn all(journal: &dyn Journal) -> Vec<Event> {
    let mut events = Vec::new();
    let mut after = Position(0);
    loop {
        let read = Read { task_id: None, after, limit: NonZeroUsize::MAX };
        let page = journal.read(read).await.expect("a page");
        if page.events.is_empty() {
            break;
        }
        after = page.next;
        events.extend(page.events);
    }
    let positions: Vec<u64> = events.iter().map(|event| event.position.0).collect();
    assert_eq!(positions, (1..=events.len() as u64).collect::<Vec<_>>());
    events
}

/// The test with this name, in a process of its own.
pub(crate) fn child(test: &str, folder: &Path) -> Command {
    let mut command = Command::new(std::env::current_exe().expect("a path"));
    command.args(["--exact", test, "--nocapture"]).env(CHILD, folder);
    command
}
