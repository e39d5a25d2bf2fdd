//! The cost of one sync, and of one append to the journal.

use std::fs::File;
use std::io::Write;
use std::time::Instant;

use antiphon_bench::{Error, Times, heading};
use antiphon_core::port::{Append, Expected, JournalLog};
use antiphon_core::{
    HandlingMode, InteractionId, MessageQueued, SessionId, TaskCreated, TaskId, UserMessage,
};
use antiphon_sqlite::{SqliteJournal, SyncPolicy};
use chrono::Utc;
use tokio::runtime::Runtime;
use uuid::Uuid;

const TIMES: usize = 1000;

/// A page of the journal's file.
const PAGE_BYTES: usize = 4096;

pub(crate) fn compare(runtime: &Runtime) -> Result<(), Error> {
    heading(&format!("the disk, {TIMES} times one after the other; milliseconds"), "chat -- disk");
    println!("{:52}{:>10}{:>10}", "", "p50", "p99");
    let name = "a page is written behind a file, and synced";
    row(name, &synced()?);
    row("an append to the journal, durable", &runtime.block_on(appended())?);
    println!();
    Ok(())
}

fn row(name: &str, times: &Times) {
    println!("{name:52}{:>10.2}{:>10.2}", times.percentile_ms(50), times.percentile_ms(99));
}

fn synced() -> Result<Times, Error> {
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR"))?;
    let mut file = File::create(folder.path().join("file"))?;
    let mut times = Times::default();
    for _ in 0..TIMES {
        let began = Instant::now();
        file.write_all(&[7; PAGE_BYTES])?;
        file.sync_data()?;
        times.push(began.elapsed());
    }
    Ok(times)
}

async fn appended() -> Result<Times, Error> {
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR"))?;
    let journal = SqliteJournal::open(&folder.path().join("journal.db"), SyncPolicy::Full)?;
    let task_id = TaskId::from(Uuid::new_v4());
    let created = TaskCreated::new("a", SessionId::from(Uuid::new_v4()));
    let append = Append {
        task_id: task_id.clone(),
        expected: Expected::NoTask,
        at: Utc::now(),
        events: vec![created.into()],
        key: None,
    };
    journal.append(append).await?;
    let mut times = Times::default();
    for n in 0..TIMES {
        let message = UserMessage::text(format!("This is number {n}."), Utc::now());
        let queued = MessageQueued::of_user(InteractionId::new(), HandlingMode::Queue, message);
        let append = Append {
            task_id: task_id.clone(),
            expected: Expected::Exists,
            at: Utc::now(),
            events: vec![queued.into()],
            key: None,
        };
        let began = Instant::now();
        journal.append(append).await?;
        times.push(began.elapsed());
    }
    Ok(times)
}
