//! Appends per second, each acknowledged when it is durable: on SQLite with a sync to disk, on
//! SQLite without, in memory, and compared with the disk itself.

use std::fs::File;
use std::io::Write;
use std::sync::Arc;
use std::time::{Duration, Instant};

use antiphon_conformance::reference::MemoryJournal;
use antiphon_core::port::{Append, Expected, Journal};
use antiphon_core::{MessageAppended, SessionId, TaskCreated, TaskId, UserMessage};
use antiphon_sqlite::{SqliteJournal, SyncPolicy};
use chrono::DateTime;
use tokio::runtime::Builder;
use tokio::task::JoinSet;

const PERIOD: Duration = Duration::from_secs(2);

type Error = Box<dyn std::error::Error>;

fn main() -> Result<(), Error> {
    println!(
        "appends per second (one event of 200 bytes), by writers at a time; {PERIOD:?} each\n"
    );
    println!("{:24}{:>12}{:>12}{:>12}", "", "1", "100", "1,000");
    for (name, open) in JOURNALS {
        print!("{name:24}");
        for writers in [1, 100, 1000] {
            let folder = tempfile::tempdir()?;
            print!("{:>12}", rate(open(folder.path())?, writers)?);
        }
        println!();
    }
    println!("{:24}{:>12}", "baseline: write + fsync", syncs()?);
    Ok(())
}

type Open = fn(&std::path::Path) -> Result<Arc<dyn Journal>, Error>;

const JOURNALS: [(&str, Open); 3] = [
    ("SQLite, synced", |folder| {
        Ok(Arc::new(SqliteJournal::open(&folder.join("journal.db"), SyncPolicy::Full)?))
    }),
    ("SQLite, not synced", |folder| {
        Ok(Arc::new(SqliteJournal::open(&folder.join("journal.db"), SyncPolicy::Normal)?))
    }),
    ("in memory", |_| Ok(Arc::new(MemoryJournal::with_events_max(usize::MAX)))),
];

fn rate(journal: Arc<dyn Journal>, writers: u64) -> Result<u64, Error> {
    let runtime = Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    runtime.block_on(async {
        let mut tasks = JoinSet::new();
        let start = Instant::now();
        for number in 0..writers {
            let journal = Arc::clone(&journal);
            tasks.spawn(async move {
                let task_id = TaskId::parse(&format!("task-{number}")).ok()?;
                let mut last = journal.append(creation(task_id.clone())?).await.ok()?;
                let mut written = 0_u64;
                while start.elapsed() < PERIOD {
                    last = journal.append(note(task_id.clone(), last.seq)).await.ok()?;
                    written += 1;
                }
                Some(written)
            });
        }
        let mut written = 0;
        while let Some(count) = tasks.join_next().await {
            written += count?.ok_or("an append failed")?;
        }
        Ok(written / PERIOD.as_secs())
    })
}

fn creation(task_id: TaskId) -> Option<Append> {
    let session_id = SessionId::parse("bench").ok()?;
    let created = TaskCreated::new("bench", session_id);
    Some(Append {
        task_id,
        expected: Expected::NoTask,
        at: DateTime::UNIX_EPOCH,
        events: vec![created.into()],
        key: None,
    })
}

fn note(task_id: TaskId, seq: antiphon_core::Seq) -> Append {
    let message = UserMessage::text("x".repeat(100), DateTime::UNIX_EPOCH);
    Append {
        task_id,
        expected: Expected::At(seq),
        at: DateTime::UNIX_EPOCH,
        events: vec![MessageAppended::new(message).into()],
        key: None,
    }
}

/// Appends with a sync to a small file, per second.
fn syncs() -> Result<u64, Error> {
    let folder = tempfile::tempdir()?;
    let mut file = File::create(folder.path().join("file"))?;
    let (start, mut count) = (Instant::now(), 0);
    while start.elapsed() < PERIOD {
        file.write_all(&[b'x'; 200])?;
        file.sync_data()?;
        count += 1;
    }
    Ok(count / PERIOD.as_secs())
}
