//! The seq of a task's last event that is not an arrival, after its journal is opened
//! again.

use antiphon_core::port::{Append, Expected, JournalError, JournalLog};
use antiphon_core::{
    EventBody, HandlingMode, InteractionId, MessageQueued, Seq, StatusChanged, TaskStatus,
    UserMessage,
};
use antiphon_sqlite::SqliteJournal;
use chrono::DateTime;
use tempfile::TempDir;
use uuid::Uuid;

use crate::world::{append, creation, note, open};

fn arrival(n: u128) -> EventBody {
    let message = UserMessage::text("hi", DateTime::UNIX_EPOCH);
    let id = InteractionId(Uuid::from_u128(n));
    MessageQueued::of_user(id, HandlingMode::Queue, message).into()
}

/// Seqs that a task accepts as expected. Nothing is written: every append is invalid otherwise,
/// and a journal checks that last.
async fn places(journal: &SqliteJournal, number: u64, up_to: u64) -> Vec<u64> {
    let mut places = Vec::new();
    for seq in 0..=up_to {
        let expected = Expected::AtOrArrivals(Seq(seq));
        let probe = Append { expected, ..creation(number) };
        let error = journal.append(probe).await.expect_err("it is created once");
        if let JournalError::Invalid { .. } = error {
            places.push(seq);
        } else {
            assert!(matches!(error, JournalError::Stale { .. }), "{error}");
        }
    }
    places
}

#[tokio::test]
async fn a_task_is_settled_where_it_was_when_its_journal_is_opened_again() {
    let folder = TempDir::new().expect("a folder");
    let path = folder.path().join("journal.db");
    let journal = open(&path);
    journal.append(creation(1)).await.expect("a task");
    // Events of another task are in between.
    journal.append(creation(2)).await.expect("another task");
    drop(journal);

    let steps: [(Vec<EventBody>, &[u64]); 6] = [
        (vec![arrival(1)], &[2, 3]),
        (vec![arrival(2), arrival(3)], &[2, 3, 4, 5]),
        (vec![note("a"), arrival(4)], &[6, 7]),
        (vec![arrival(5), note("b")], &[9]),
        (vec![arrival(6), StatusChanged::new(TaskStatus::Running).into(), arrival(7)], &[11, 12]),
        (vec![arrival(8)], &[11, 12, 13]),
    ];
    for (events, expected) in steps {
        let journal = open(&path);
        journal.append(append(1, Expected::Exists, events)).await.expect("more");
        journal.append(append(2, Expected::Exists, vec![note("c")])).await.expect("more");
        let before = places(&journal, 1, 20).await;
        drop(journal);
        let after = places(&open(&path), 1, 20).await;
        assert_eq!((before.as_slice(), after.as_slice()), (expected, expected));
    }
}
