//! The index always equals the events: the journal is compared with one in memory, which folds
//! them in the simplest way.

#![expect(clippy::expect_used, reason = "a test fails by panicking")]

mod any_history;
mod glance;

use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::path::Path;

use antiphon_conformance::reference::MemoryJournal;
use antiphon_core::port::{
    Append, Expected, JournalError, JournalLog, TaskIndex, TaskQuery, TaskSelector,
};
use antiphon_core::{EventBody, Seq, StatusChanged, TaskId, TaskStatus};
use antiphon_sqlite::{SqliteJournal, SyncPolicy};
use futures_util::future::join_all;
use proptest::prelude::*;
use rusqlite::Connection;
use tempfile::TempDir;
use tokio::runtime::Builder;

use any_history::{Place, Step, any_history, append, task};
use glance::Glance;

/// A text that makes a transaction fail after most of it has been written.
pub(crate) const POISON: &str = "poison";

/// What a journal does once it has many tasks.
const INDEX: &str = "BEGIN IMMEDIATE;
    CREATE TEMP TABLE indexed AS SELECT coalesce(max(last_task), 0) AS until FROM sessions;
    INSERT INTO sessions (session_id, first_task, last_task, tasks)
        SELECT session, min(id), max(id), count(*) FROM tasks
        WHERE id > (SELECT until FROM indexed) GROUP BY session
        ON CONFLICT (session_id) DO UPDATE
        SET last_task = excluded.last_task, tasks = tasks + excluded.tasks;
    UPDATE tasks SET indexed = 1 WHERE id > (SELECT until FROM indexed);
    COMMIT";

/// Two journals that get the same appends.
struct Pair {
    folder: TempDir,
    /// `None` while it is closed.
    sqlite: Option<SqliteJournal>,
    memory: MemoryJournal,
}

impl Pair {
    fn new() -> Self {
        let folder = TempDir::new().expect("a folder");
        let sqlite = open(folder.path());
        let other = Connection::open(folder.path().join("journal.db")).expect("a database");
        let trap = format!(
            "CREATE TRIGGER trap AFTER INSERT ON events WHEN instr(NEW.data, '{POISON}')
             BEGIN SELECT RAISE(ABORT, 'the disk is on fire'); END"
        );
        other.execute_batch(&trap).expect("a trap");
        Self { folder, sqlite: Some(sqlite), memory: MemoryJournal::new() }
    }

    fn sqlite(&self) -> &SqliteJournal {
        self.sqlite.as_ref().expect("it is open")
    }

    async fn take(&mut self, step: Step) {
        match step {
            Step::Append { task: number, place, events } => {
                let expected = self.expected(&task(number), place).await;
                let append = append(number, expected, events);
                let expected = self.memory.append(append.clone()).await;
                assert_eq!(self.sqlite().append(append).await, expected);
            }
            Step::Together { tasks, poisoned } => self.append_together(tasks, poisoned).await,
            Step::Reopen => {
                self.sqlite = None;
                self.sqlite = Some(open(self.folder.path()));
            }
            Step::Index => {
                let file = self.folder.path().join("journal.db");
                let other = Connection::open(file).expect("a database");
                other.execute_batch(INDEX).expect("indexed tasks");
            }
        }
    }

    /// Concurrent appends, one of which may make others fail. Answered appends are stored,
    /// and nothing else.
    async fn append_together(&mut self, tasks: BTreeMap<u8, Vec<EventBody>>, poisoned: bool) {
        let mut appends = Vec::new();
        for (number, events) in tasks {
            appends.push(append(number, self.expected(&task(number), Place::Here).await, events));
        }
        if let (true, Some(last)) = (poisoned, appends.last_mut()) {
            last.events.insert(last.events.len().min(1), any_history::poison());
        }
        let answers = join_all(appends.iter().map(|it| self.sqlite().append(it.clone()))).await;
        let mut written: Vec<_> = Vec::new();
        for (append, answer) in appends.into_iter().zip(answers) {
            match answer {
                Ok(appended) => written.push((appended, append)),
                Err(JournalError::Unavailable { reason }) => {
                    assert!(poisoned && reason.contains("on fire"), "{reason}");
                }
                Err(refusal) => assert_eq!(self.memory.append(append).await, Err(refusal)),
            }
        }
        written.sort_by_key(|(appended, _)| appended.position);
        for (appended, append) in written {
            assert_eq!(self.memory.append(append).await, Ok(appended));
        }
    }

    async fn expected(&self, task_id: &TaskId, place: Place) -> Expected {
        let query =
            TaskQuery { which: TaskSelector::One(task_id.clone()), limit: NonZeroUsize::MIN };
        let found = self.memory.tasks(query).await.expect("a list");
        match (place, found.first()) {
            (Place::There, _) => Expected::Exists,
            (Place::Here | Place::Behind(_), None) => Expected::NoTask,
            (Place::Here, Some(task)) => Expected::At(task.seq),
            (Place::Behind(back), Some(task)) => {
                Expected::AtOrArrivals(Seq(task.seq.0.saturating_sub(back)))
            }
        }
    }

    /// The agent of a task and its model, from the file.
    async fn whose(&self, task_id: &TaskId) -> (String, Option<String>) {
        let query =
            TaskQuery { which: TaskSelector::One(task_id.clone()), limit: NonZeroUsize::MIN };
        let found = self.sqlite().tasks(query).await.expect("a list").pop().expect("the task");
        (found.agent, found.model.map(String::from))
    }

    async fn compare(&self) {
        let (found, expected) = (Glance::at(self.sqlite()).await, Glance::at(&self.memory).await);
        assert_eq!(found, expected);
    }
}

fn open(folder: &Path) -> SqliteJournal {
    SqliteJournal::open(&folder.join("journal.db"), SyncPolicy::Normal).expect("a journal")
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 32, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_is_kept_beside_the_events_is_what_they_say(history in any_history()) {
        let runtime = Builder::new_current_thread().enable_all().build().expect("a runtime");
        runtime.block_on(async {
            let mut pair = Pair::new();
            for step in history {
                let telling = !matches!(step, Step::Append { .. });
                pair.take(step).await;
                if telling {
                    pair.compare().await;
                }
            }
            pair.compare().await;
            pair.take(Step::Reopen).await;
            pair.compare().await;
        });
    }
}

/// The first append after a failure is the failed one, which is valid this time.
#[tokio::test]
async fn what_failed_can_be_told_again() {
    let mut pair = Pair::new();
    let created = any_history::created(0);
    pair.take(Step::Append { task: 1, place: Place::Here, events: vec![created.clone()] }).await;
    for _ in 0..2 {
        let bodies = vec![any_history::poison()];
        let bad =
            Append { events: bodies, ..append(1, Expected::At(Seq(1)), vec![created.clone()]) };
        let answer = pair.sqlite().append(bad).await;
        assert!(matches!(answer, Err(JournalError::Unavailable { .. })), "{answer:?}");
        pair.compare().await;
    }
    let moved = any_history::moved(1);
    pair.take(Step::Append { task: 1, place: Place::Here, events: vec![moved] }).await;
    pair.compare().await;
}

/// The row of a task is written once with its agent and its model, and again when they change.
#[tokio::test]
async fn a_task_that_was_handed_over_is_listed_under_its_new_agent_and_model() {
    let mut pair = Pair::new();
    let begun = vec![any_history::created(0), any_history::moved(1)];
    pair.take(Step::Append { task: 1, place: Place::Here, events: begun }).await;
    for (agent, model) in [("lawyer", Some("local/a/b")), ("clerk", None)] {
        let over = any_history::handed_over(agent, model);
        pair.take(Step::Append { task: 1, place: Place::Here, events: vec![over] }).await;
        for step in [None, Some(Step::Reopen)] {
            if let Some(step) = step {
                pair.take(step).await;
            }
            assert_eq!(pair.whose(&task(1)).await, (agent.to_owned(), model.map(str::to_owned)));
            pair.compare().await;
        }
    }
    let end = StatusChanged::new(TaskStatus::Completed).into();
    let last = vec![any_history::handed_over("judge", Some("local/a/b")), end];
    pair.take(Step::Append { task: 1, place: Place::Here, events: last }).await;
    assert_eq!(pair.whose(&task(1)).await, ("judge".to_owned(), Some("local/a/b".to_owned())));
    pair.compare().await;
}
