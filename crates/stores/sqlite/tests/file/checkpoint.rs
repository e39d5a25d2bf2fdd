//! Checkpoints of tasks in the file.

use antiphon_core::port::{Checkpoint, Expected, JournalIndex, JournalLog};
use antiphon_core::{EventBody, Position, Seq, StatusChanged, TaskStatus};
use rusqlite::Connection;
use tempfile::TempDir;

use crate::world::{append, creation, open, task};

fn saved() -> Checkpoint {
    let data = r#"{"state":1}"#.to_owned();
    Checkpoint { task_id: task(1), seq: Seq(2), position: Position(2), data }
}

#[tokio::test]
async fn a_damaged_checkpoint_is_none() {
    let folder = TempDir::new().expect("a folder");
    let path = folder.path().join("journal.db");
    let journal = open(&path);
    journal.append(creation(1)).await.expect("an append");
    journal.save_checkpoint(saved()).await.expect("saved");
    assert_eq!(journal.checkpoint(&task(1)).await, Ok(Some(saved())));
    drop(journal);
    let journal = open(&path);
    assert_eq!(journal.checkpoint(&task(1)).await, Ok(Some(saved())), "it is in the file");
    drop(journal);
    let damage = r#"UPDATE checkpoints SET data = '{"state":2}'"#;
    Connection::open(&path).expect("a file").execute(damage, ()).expect("a change");
    let journal = open(&path);
    assert_eq!(journal.checkpoint(&task(1)).await, Ok(None));
}

#[tokio::test]
async fn the_checkpoint_of_an_ended_task_is_removed() {
    let folder = TempDir::new().expect("a folder");
    let path = folder.path().join("journal.db");
    let journal = open(&path);
    journal.append(creation(1)).await.expect("an append");
    journal.save_checkpoint(saved()).await.expect("saved");
    let end = EventBody::from(StatusChanged::new(TaskStatus::Completed));
    journal.append(append(1, Expected::At(Seq(2)), vec![end])).await.expect("an append");
    assert_eq!(journal.checkpoint(&task(1)).await, Ok(None));
    // One that comes late is not kept.
    journal.save_checkpoint(saved()).await.expect("answered");
    assert_eq!(journal.checkpoint(&task(1)).await, Ok(None));
}
