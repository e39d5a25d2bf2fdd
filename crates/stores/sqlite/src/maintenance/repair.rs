//! Saves what can be read of a damaged journal into a new one, which takes its place. The damaged files
//! are kept beside it.
//!
//! A task keeps its events up to the first that cannot be read. When it had not ended by then, it ends
//! as failed: what it did after that is unknown, so it must not go on. The index is made anew from the
//! events. Positions are counted anew, so a client that follows events starts again.

use std::collections::{HashMap, HashSet};
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use antiphon_core::port::{Append, Expected};
use antiphon_core::{EventBody, Position, StatusChanged, TaskId, TaskStatus};
use chrono::{DateTime, Utc};
use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags, Transaction, TransactionBehavior};
use serde_json::json;

use crate::backup::rename::{exchange, rename_new};
use crate::backup::staging_folder::{StagingFolder, folder_of, sync_folder};
use crate::backup::{BackupError, LOGS, unwritable, with_suffix};
use crate::file::create::create;
use crate::file::owner::Owner;
use crate::index::tail::index_all;
use crate::journal::{SqliteJournal, connect, open_error};
use crate::maintenance::MaintenanceStep;
use crate::maintenance::compact::checkpoint;
use crate::row::column::read_text;
use crate::row::stored_event::{EVENT_COLUMNS, StoredEvent, event_columns};
use crate::writer::SerializedEvent;
use crate::writer::append_transaction::AppendTransaction;
use crate::writer::task_head_cache::TaskHeadCache;

/// Positions that one transaction copies.
const BATCH_POSITIONS: u64 = 1000;

/// What was saved of a damaged journal.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Repaired {
    /// Number of saved events.
    pub events: u64,
    /// Number of saved tasks.
    pub tasks: u64,
    /// Number of positions whose event could not be read, or belongs to a task that could not.
    pub events_lost: u64,
    /// Tasks that are not complete; those that had not ended are failed now.
    pub tasks_cut: Vec<TaskId>,
    /// Where the damaged file is.
    pub before: PathBuf,
}

impl SqliteJournal {
    /// Replaces the journal at `path` by a new one with everything that can be read of it. `now` is
    /// the time of the ends that are recorded and part of the damaged file's new name. Blocks.
    pub fn repair(
        path: &Path,
        now: DateTime<Utc>,
        step: &mut dyn FnMut(MaintenanceStep),
    ) -> Result<Repaired, BackupError> {
        let in_folder = |error: io::Error| unwritable(path, &error);
        fs::metadata(path).map_err(in_folder)?;
        let _owner = Owner::claim(path)?;
        let staging = StagingFolder::next_to(path).map_err(in_folder)?;
        let staged = staging.path().join("repaired.db");
        create(&staged)?;
        let mut repaired = salvage(path, &staged, now, step)
            .map_err(|error| BackupError::from(open_error(path, &error)))?;
        File::open(&staged).and_then(|file| file.sync_all()).map_err(in_folder)?;
        repaired.before = with_suffix(path, &format!(".damaged-{}", now.format("%Y%m%dT%H%M%SZ")));
        put_in_place(path, &staged, &repaired.before).map_err(in_folder)?;
        Ok(repaired)
    }
}

/// Exchanges the files in one step, where the file system can. The log belongs to the damaged file: it is
/// moved first, so that SQLite never reads it as one of the new file.
fn put_in_place(path: &Path, staged: &Path, before: &Path) -> io::Result<()> {
    for end in LOGS {
        match rename_new(&with_suffix(path, end), &with_suffix(before, end)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            Ok(()) | Err(_) => {}
        }
    }
    // SQLite makes it again.
    let _ = fs::remove_file(with_suffix(path, "-shm"));
    sync_folder(folder_of(path))?;
    if exchange(path, staged).is_ok() {
        rename_new(staged, before)?;
    } else {
        rename_new(path, before)?;
        rename_new(staged, path)?;
    }
    sync_folder(folder_of(path))
}

fn salvage(
    path: &Path,
    staged: &Path,
    now: DateTime<Utc>,
    step: &mut dyn FnMut(MaintenanceStep),
) -> rusqlite::Result<Repaired> {
    step(MaintenanceStep::begin("opening the damaged journal"));
    let damaged = connect(path, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
    // Without it SQLite reads nothing of a truncated file.
    damaged.set_db_config(DbConfig::SQLITE_DBCONFIG_WRITABLE_SCHEMA, true)?;
    // The damaged files stay as they are.
    damaged.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
    let mut target = connect(staged, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
    target.pragma_update(None, "foreign_keys", "OFF")?;
    let mut salvage = Salvage {
        damaged,
        cache: TaskHeadCache::default(),
        head: Position(0),
        begun: HashSet::new(),
        cut: HashSet::new(),
        positions: HashMap::new(),
        repaired: Repaired::default(),
    };
    salvage.copy_pruned(&mut target)?;
    salvage.copy_events(&mut target, step)?;
    salvage.end_cut_tasks(&mut target, now)?;
    salvage.copy_keys(&mut target)?;
    checkpoint(&target)?;
    target.close().map_err(|(_, error)| error)?;
    let Salvage { mut repaired, begun, cut, .. } = salvage;
    repaired.tasks = begun.len() as u64;
    repaired.tasks_cut = cut.into_iter().collect();
    repaired.tasks_cut.sort();
    Ok(repaired)
}

struct Salvage {
    damaged: Connection,
    cache: TaskHeadCache,
    head: Position,
    begun: HashSet<TaskId>,
    cut: HashSet<TaskId>,
    /// New positions of creations by old ones: keys point there.
    positions: HashMap<u64, u64>,
    repaired: Repaired,
}

impl Salvage {
    /// Pruned tasks, as far as they can be read. Their events left positions behind.
    fn copy_pruned(&mut self, target: &mut Connection) -> rusqlite::Result<()> {
        let transaction = target.transaction()?;
        let rows: Vec<(i64, String, String, i64, i64, u64)> = {
            let read = |statement: &str| -> rusqlite::Result<Vec<_>> {
                let mut pruned = self.damaged.prepare(statement)?;
                let rows = pruned.query_map((), |row| {
                    Ok((
                        row.get(0)?,
                        row.get(1)?,
                        row.get(2)?,
                        row.get(3)?,
                        row.get(4)?,
                        row.get(5)?,
                    ))
                })?;
                Ok(rows.map_while(Result::ok).collect())
            };
            read("SELECT id, task_id, status, ended_s, pruned_s, events FROM pruned")
                .unwrap_or_default()
        };
        for row in rows {
            self.head.0 += row.5;
            transaction
                .prepare_cached("INSERT OR IGNORE INTO pruned VALUES (?, ?, ?, ?, ?, ?)")?
                .execute(row)?;
        }
        transaction.commit()
    }

    fn copy_events(
        &mut self,
        target: &mut Connection,
        step: &mut dyn FnMut(MaintenanceStep),
    ) -> rusqlite::Result<()> {
        let last = self.last_position()?;
        let mut next = 1;
        while next <= last {
            let until = last.min(next + BATCH_POSITIONS - 1);
            let transaction = target.transaction_with_behavior(TransactionBehavior::Immediate)?;
            for position in next..=until {
                self.copy_event(&transaction, position)?;
            }
            transaction.commit()?;
            step(MaintenanceStep::at("saving events", until, last));
            next = until + 1;
        }
        Ok(())
    }

    /// The last position, by whatever can be read: the events, their index, or the lengths of tasks.
    fn last_position(&self) -> rusqlite::Result<u64> {
        let read = |statement: &str| self.damaged.query_row(statement, (), |row| row.get(0));
        let found = [
            read("SELECT coalesce(max(position), 0) FROM events"),
            read(
                "SELECT coalesce(max(position), 0) FROM events INDEXED BY events_by_task WHERE task > 0",
            ),
            read(
                "SELECT coalesce((SELECT sum(seq) FROM tasks), 0)
                     + coalesce((SELECT sum(events) FROM pruned), 0)",
            ),
        ];
        let highest = found.iter().filter_map(|found| found.as_ref().ok()).max().copied();
        let [first, ..] = found;
        highest.map_or(first, Ok)
    }

    /// Copies the event at a position, if there is one and it can be read.
    fn copy_event(&mut self, transaction: &Transaction<'_>, position: u64) -> rusqlite::Result<()> {
        let found = match read_event(&self.damaged, position) {
            Ok(Some(found)) => found,
            // Pruned, or skipped by a repair before.
            Ok(None) => return Ok(()),
            Err(task_id) => {
                self.repaired.events_lost += 1;
                self.cut.extend(task_id);
                return Ok(());
            }
        };
        let (task_id, stored) = found;
        let is_first = matches!(stored.body, EventBody::TaskCreated(_));
        let in_order = is_first != self.begun.contains(&task_id);
        if self.cut.contains(&task_id) || !in_order {
            self.repaired.events_lost += 1;
            self.cut.insert(task_id);
            return Ok(());
        }
        let at = stored.at;
        if !self.append(transaction, &task_id, stored.body, at)? {
            self.repaired.events_lost += 1;
            self.cut.insert(task_id);
            return Ok(());
        }
        self.positions.insert(position, self.head.0);
        self.begun.insert(task_id);
        Ok(())
    }

    /// Returns false when the journal refuses the event.
    fn append(
        &mut self,
        transaction: &Transaction<'_>,
        task_id: &TaskId,
        body: EventBody,
        at: DateTime<Utc>,
    ) -> rusqlite::Result<bool> {
        let is_first = matches!(body, EventBody::TaskCreated(_));
        let expected = if is_first { Expected::NoTask } else { Expected::Exists };
        let Ok(data) = serde_json::to_string(&body) else { return Ok(false) };
        let lines = [SerializedEvent { event_type: body.event_type(), data }];
        let append =
            Append { task_id: task_id.clone(), expected, at, events: vec![body], key: None };
        self.cache.make_room(1);
        let mut appends = AppendTransaction::open(transaction, &mut self.cache, self.head);
        let is_stored = appends.append(&append, &lines)?.is_ok();
        self.head = appends.head();
        self.repaired.events += u64::from(is_stored);
        Ok(is_stored)
    }

    /// Ends tasks that are not complete and had not ended.
    fn end_cut_tasks(
        &mut self,
        target: &mut Connection,
        now: DateTime<Utc>,
    ) -> rusqlite::Result<()> {
        let transaction = target.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let mut cut: Vec<TaskId> = self.cut.intersection(&self.begun).cloned().collect();
        cut.sort();
        for task_id in cut {
            let error = "events of this task were lost with a damaged journal: start a new task";
            let detail = Some(json!({ "code": "journal_damaged", "error": error }));
            let end = StatusChanged { detail, ..StatusChanged::new(TaskStatus::Failed) };
            // Refused when it has ended already.
            self.append(&transaction, &task_id, end.into(), now)?;
        }
        transaction.commit()
    }

    /// Idempotency keys of saved tasks, as far as they can be read. Then the tasks are indexed.
    fn copy_keys(&mut self, target: &mut Connection) -> rusqlite::Result<()> {
        let keys: Vec<(String, String, u64, u64)> = {
            let read = || -> rusqlite::Result<Vec<_>> {
                let mut keys = self.damaged.prepare(
                    "SELECT key, task_id, position, keys.seq FROM keys
                     JOIN tasks ON tasks.id = keys.task",
                )?;
                let rows = keys.query_map((), |row| {
                    Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?))
                })?;
                Ok(rows.map_while(Result::ok).collect())
            };
            read().unwrap_or_default()
        };
        let transaction = target.transaction_with_behavior(TransactionBehavior::Immediate)?;
        for (key, task_id, position, seq) in keys {
            let position = self.positions.get(&position).copied().unwrap_or(0);
            transaction
                .prepare_cached(
                    "INSERT OR IGNORE INTO keys (key, task, position, seq)
                     SELECT ?1, id, ?3, ?4 FROM tasks WHERE task_id = ?2",
                )?
                .execute((key, task_id, position, seq))?;
        }
        index_all(&transaction)?;
        transaction.commit()
    }
}

/// The event at a position. `Err` when it cannot be read, with its task where that can.
fn read_event(
    connection: &Connection,
    position: u64,
) -> Result<Option<(TaskId, StoredEvent)>, Option<TaskId>> {
    let read = || -> rusqlite::Result<_> {
        let mut event = connection.prepare_cached(concat!(
            "SELECT ",
            event_columns!("events"),
            ", task FROM events WHERE position = ?"
        ))?;
        let mut rows = event.query([position])?;
        let Some(row) = rows.next()? else { return Ok(None) };
        let stored = StoredEvent::read(row, 0, Position(position)).ok();
        Ok(Some((row.get::<_, i64>(EVENT_COLUMNS)?, stored)))
    };
    let Some((row, stored)) = read().map_err(|_| None)? else { return Ok(None) };
    let task_id = task_of(connection, row).ok_or(None)?;
    match stored {
        Some(stored) => Ok(Some((task_id, stored))),
        None => Err(Some(task_id)),
    }
}

/// The id of a task: from its row, or from the index of ids when the row cannot be read.
fn task_of(connection: &Connection, row: i64) -> Option<TaskId> {
    let from = |statement: &str| -> Option<TaskId> {
        let mut task = connection.prepare_cached(statement).ok()?;
        task.query_row([row], |row| read_text(row, 0)).ok()
    };
    from("SELECT task_id FROM tasks WHERE id = ?").or_else(|| {
        from("SELECT task_id FROM tasks INDEXED BY sqlite_autoindex_tasks_1 WHERE +id = ?")
    })
}
