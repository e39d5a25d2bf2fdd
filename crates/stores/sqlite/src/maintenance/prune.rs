//! Removes ended tasks with their events and sessions. A row in `pruned` stays of each: its id and its
//! idempotency keys are not given out again, and what it spent stays counted.
//!
//! Tasks that depend on each other are removed together or not at all: the tasks of one tree, of one
//! session, and those whose conversation another one continues. A group stays when one of its tasks
//! has not ended, and when it holds the newest event: positions never go back.

use std::collections::HashMap;
use std::path::Path;

use antiphon_core::{EventBody, Position, TaskId};
use chrono::{DateTime, Utc};
use rusqlite::{Connection, OptionalExtension, Transaction, TransactionBehavior};

use crate::journal::{OpenError, SqliteJournal, open_error};
use crate::maintenance::compact::{checkpoint, compact};
use crate::maintenance::{MaintenanceStep, OwnedFile, bytes_on_disk};
use crate::row::column::read_text;
use crate::row::stored_event::{StoredEvent, event_columns};

/// Most tasks that one transaction removes, unless a single group has more.
const BATCH_TASKS_MAX: usize = 500;

/// Which ended tasks are removed. A group of tasks must meet every condition that is set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PruneSelection {
    /// Those that ended before.
    pub ended_before: Option<DateTime<Utc>>,
    /// All but this many, the last ended ones. Dispatched tasks do not count.
    pub keep: Option<u64>,
}

/// Whether tasks are removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PruneMode {
    /// They are.
    Remove,
    /// Nothing is changed; the result says what would be removed.
    DryRun,
}

/// What was removed, or would be.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Pruned {
    /// Ids of the removed tasks, the oldest first.
    pub tasks: Vec<TaskId>,
    /// Number of removed events.
    pub events: u64,
    /// Number of removed sessions.
    pub sessions: u64,
    /// Number of ended tasks that stay although they meet the conditions: unfinished tasks need them,
    /// or they hold the newest event.
    pub needed: u64,
    /// Size before, in bytes, the log included.
    pub bytes_before: u64,
    /// Size after it.
    pub bytes_after: u64,
    /// Why the space could not be given back to the disk, if so. It is used for new events.
    pub not_compacted: Option<String>,
}

impl SqliteJournal {
    /// Removes ended tasks of the journal at `path` and gives their space back. `now` is recorded.
    /// Killed in between, each group of tasks is complete or gone. Blocks.
    pub fn prune(
        path: &Path,
        selection: PruneSelection,
        mode: PruneMode,
        now: DateTime<Utc>,
        step: &mut dyn FnMut(MaintenanceStep),
    ) -> Result<Pruned, OpenError> {
        let mut file = OwnedFile::open(path)?;
        let bytes_before = bytes_on_disk(path);
        let fault = |error: rusqlite::Error| open_error(path, &error);
        step(MaintenanceStep::begin("finding ended tasks"));
        let plan = Plan::of(&file.connection, selection).map_err(fault)?;
        let mut pruned = Pruned {
            tasks: plan.tasks().map(|task| task.task_id.clone()).collect(),
            events: plan.tasks().map(|task| task.events).sum(),
            sessions: plan.sessions,
            needed: plan.needed,
            bytes_before,
            bytes_after: bytes_before,
            not_compacted: None,
        };
        if mode == PruneMode::DryRun || pruned.tasks.is_empty() {
            return Ok(pruned);
        }
        let connection = &mut file.connection;
        // Rows of `keys` point at pruned tasks from now on.
        connection.pragma_update(None, "foreign_keys", "OFF").map_err(fault)?;
        plan.execute(connection, now, step).map_err(fault)?;
        if let Err(error) = compact(connection, step) {
            pruned.not_compacted = Some(error.to_string());
        }
        pruned.bytes_after = bytes_on_disk(path);
        Ok(pruned)
    }
}

/// An ended or unfinished task.
#[derive(Debug, Clone)]
struct Candidate {
    row: i64,
    task_id: TaskId,
    session: String,
    root: Option<String>,
    is_top: bool,
    status: String,
    ended: bool,
    last_s: i64,
    events: u64,
}

/// Groups of tasks to remove.
struct Plan {
    groups: Vec<Vec<Candidate>>,
    sessions: u64,
    needed: u64,
}

impl Plan {
    fn of(connection: &Connection, selection: PruneSelection) -> rusqlite::Result<Self> {
        let tasks = read_tasks(connection)?;
        let newest: Option<i64> = connection
            .query_row("SELECT task FROM events ORDER BY position DESC LIMIT 1", (), |row| {
                row.get(0)
            })
            .optional()?;
        let kept_from = selection.keep.map(|keep| kept_from(&tasks, keep));
        let meets = |task: &Candidate| {
            let is_old = selection.ended_before.is_none_or(|at| task.last_s < at.timestamp());
            let is_beyond = kept_from.is_none_or(|from| (task.last_s, task.row) < from);
            task.ended && is_old && is_beyond
        };
        let selects = selection.ended_before.is_some() || selection.keep.is_some();
        let (mut chosen, mut needed) = (Vec::new(), 0);
        for group in group(connection, tasks)? {
            let removable = |task: &Candidate| meets(task) && Some(task.row) != newest;
            if selects && group.iter().all(removable) {
                chosen.push(group);
            } else if selects {
                needed += group.iter().filter(|task| meets(task)).count() as u64;
            }
        }
        chosen.sort_by_key(|group| group.first().map(|task| task.row));
        let mut sessions: Vec<&str> =
            chosen.iter().flatten().map(|task| task.session.as_str()).collect();
        sessions.sort_unstable();
        sessions.dedup();
        let sessions = sessions.len() as u64;
        Ok(Self { groups: chosen, sessions, needed })
    }

    fn tasks(&self) -> impl Iterator<Item = &Candidate> {
        self.groups.iter().flatten()
    }

    fn execute(
        &self,
        connection: &mut Connection,
        now: DateTime<Utc>,
        step: &mut dyn FnMut(MaintenanceStep),
    ) -> rusqlite::Result<()> {
        let (total, mut done) = (self.tasks().count() as u64, 0);
        connection.execute_batch(
            "CREATE TEMP TABLE gone (id INTEGER PRIMARY KEY, session TEXT NOT NULL)",
        )?;
        let mut groups = self.groups.iter().peekable();
        while groups.peek().is_some() {
            step(MaintenanceStep::at("removing tasks", done, total));
            let transaction =
                connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
            let mut batch = 0;
            while let Some(group) =
                groups.next_if(|group| batch == 0 || batch + group.len() <= BATCH_TASKS_MAX)
            {
                for task in group {
                    mark(&transaction, task, now)?;
                }
                batch += group.len();
            }
            transaction.execute_batch(REMOVE)?;
            transaction.commit()?;
            done += batch as u64;
            // A long log would need as much space as what is removed.
            checkpoint(connection)?;
        }
        Ok(())
    }
}

/// Removes the tasks in `gone`. What they spent stays counted.
const REMOVE: &str = "
    DELETE FROM replies WHERE position IN
        (SELECT position FROM events WHERE task IN (SELECT id FROM gone));
    DELETE FROM approvals WHERE task IN (SELECT id FROM gone);
    DELETE FROM inbox WHERE task IN (SELECT id FROM gone);
    DELETE FROM checkpoints WHERE task IN (SELECT id FROM gone);
    DELETE FROM events WHERE task IN (SELECT id FROM gone);
    DELETE FROM tasks WHERE id IN (SELECT id FROM gone);
    DELETE FROM sessions WHERE session_id IN (SELECT session FROM gone);
    DELETE FROM gone;";

fn read_tasks(connection: &Connection) -> rusqlite::Result<Vec<Candidate>> {
    let mut tasks = connection.prepare(
        "SELECT id, task_id, session, root, parent IS NULL, status, ended, last_s, seq
         FROM tasks ORDER BY id",
    )?;
    let rows = tasks.query_map((), |row| {
        Ok(Candidate {
            row: row.get(0)?,
            task_id: read_text(row, 1)?,
            session: row.get(2)?,
            root: row.get(3)?,
            is_top: row.get(4)?,
            status: row.get(5)?,
            ended: row.get(6)?,
            last_s: row.get(7)?,
            events: row.get(8)?,
        })
    })?;
    rows.collect()
}

/// The end of the oldest of the `keep` last ended top tasks. Tasks before it are beyond the count.
fn kept_from(tasks: &[Candidate], keep: u64) -> (i64, i64) {
    let mut ends: Vec<(i64, i64)> = tasks
        .iter()
        .filter(|task| task.is_top && task.ended)
        .map(|task| (task.last_s, task.row))
        .collect();
    ends.sort_unstable_by(|one, other| other.cmp(one));
    let count = usize::try_from(keep).unwrap_or(usize::MAX);
    match count.checked_sub(1) {
        // With fewer tasks than that, all are kept.
        Some(last) => ends.get(last).copied().unwrap_or((i64::MIN, i64::MIN)),
        None => (i64::MAX, i64::MAX),
    }
}

/// Tasks that depend on each other, directly or not.
fn group(connection: &Connection, tasks: Vec<Candidate>) -> rusqlite::Result<Vec<Vec<Candidate>>> {
    let index: HashMap<TaskId, usize> =
        tasks.iter().enumerate().map(|(at, task)| (task.task_id.clone(), at)).collect();
    let mut sets = Sets((0..tasks.len()).collect());
    let mut of_session: HashMap<&str, usize> = HashMap::new();
    for (at, task) in tasks.iter().enumerate() {
        sets.join(at, *of_session.entry(&task.session).or_insert(at));
        let root = task.root.as_ref().and_then(|root| root.parse().ok());
        let history = history_of(connection, task.row)?;
        for other in root.into_iter().chain(history) {
            if let Some(other) = index.get(&other) {
                sets.join(at, *other);
            }
        }
    }
    let mut groups: HashMap<usize, Vec<Candidate>> = HashMap::new();
    for (at, task) in tasks.into_iter().enumerate() {
        groups.entry(sets.find(at)).or_default().push(task);
    }
    Ok(groups.into_values().collect())
}

/// The task whose conversation this one continues. A creation that cannot be read names none.
fn history_of(connection: &Connection, row: i64) -> rusqlite::Result<Option<TaskId>> {
    let mut first = connection.prepare_cached(concat!(
        "SELECT ",
        event_columns!("events"),
        " FROM events WHERE task = ? ORDER BY position LIMIT 1"
    ))?;
    let mut rows = first.query([row])?;
    let Some(row) = rows.next()? else { return Ok(None) };
    let created = StoredEvent::read(row, 0, Position(0)).ok().map(|stored| stored.body);
    let Some(EventBody::TaskCreated(created)) = created else { return Ok(None) };
    Ok(created.history.map(|history| history.task_id))
}

/// Disjoint sets of indexes: each points at another one of its set, or at itself.
struct Sets(Vec<usize>);

impl Sets {
    fn find(&mut self, mut at: usize) -> usize {
        while self.0[at] != at {
            self.0[at] = self.0[self.0[at]];
            at = self.0[at];
        }
        at
    }

    fn join(&mut self, one: usize, other: usize) {
        let (one, other) = (self.find(one), self.find(other));
        self.0[one.max(other)] = one.min(other);
    }
}

/// Adds a task to `gone`, and to the pruned ones.
fn mark(
    transaction: &Transaction<'_>,
    task: &Candidate,
    now: DateTime<Utc>,
) -> rusqlite::Result<()> {
    transaction
        .prepare_cached("INSERT INTO gone (id, session) VALUES (?, ?)")?
        .execute((task.row, &task.session))?;
    transaction
        .prepare_cached(
            "INSERT INTO pruned (id, task_id, status, ended_s, pruned_s, events)
             VALUES (?, ?, ?, ?, ?, ?)",
        )?
        .execute((
            task.row,
            task.task_id.as_str(),
            &task.status,
            task.last_s,
            now.timestamp(),
            task.events,
        ))?;
    Ok(())
}
