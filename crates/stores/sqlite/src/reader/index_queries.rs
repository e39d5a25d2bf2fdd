//! The lists of the index: tasks, approvals, live agents, queued messages.
//!
//! Each list follows an index in its order and reads only the rows it returns, and those of the tail. `CROSS JOIN` keeps
//! SQLite from reordering the tables.

use std::num::NonZeroUsize;

use antiphon_core::port::{
    AgentQuery, ApprovalQuery, ApprovalSelector, JournalError, QueuedQuery, TaskQuery, TaskSelector,
};
use antiphon_core::{
    Approval, ApprovalId, EventBody, InteractionId, LiveAgent, Position, QueuedMessage, Replied,
    TaskId, TaskSummary,
};
use rusqlite::types::Value;
use rusqlite::{Connection, Params, Row};

use crate::fault::fault;
use crate::index::tail::indexed_until;
use crate::reader::task_filter::matching_tasks;
use crate::row::column::{read_text, read_word};
use crate::row::stored_event::{EVENT_COLUMNS, StoredEvent, event_columns};
use crate::row::task_row::{agent_columns, read_agent, read_task, task_columns};

/// Most rows in one list.
pub const LIST_ROWS_MAX: usize = 1_000_000;

pub(crate) type ListResult<T> = Result<Vec<T>, JournalError>;

macro_rules! task_list {
    ($which:expr) => {
        concat!(
            "SELECT ",
            task_columns!(),
            " FROM tasks WHERE ",
            $which,
            " ORDER BY id DESC LIMIT ?1"
        )
    };
}

/// Two lists, the newest tasks first: those of the tail, one by one, and the others with an index.
macro_rules! tail_and_indexed {
    ($which:literal) => {
        [
            task_list!(concat!("id > ", indexed_until!(), " AND ", $which)),
            task_list!(concat!($which, " AND indexed")),
        ]
    };
}

const ALL: &str = task_list!("true");
const ONE: &str = task_list!("task_id = ?2");
/// By its own index: there may be many tasks with a parent in between.
const ROOTS: [&str; 2] = tail_and_indexed!("parent IS NULL");
const UNFINISHED: [&str; 2] = tail_and_indexed!("NOT ended");
const IN_SESSION: [&str; 2] = tail_and_indexed!("session = ?2");
/// Many ids may start with the prefix: only their row numbers are sorted. The plus keeps SQLite from
/// scanning all tasks in order. The conditions on `random_part` are those of its index.
const WITH_PREFIX: &str = task_list!(concat!(
    "id IN (SELECT id FROM (
                SELECT id FROM tasks WHERE task_id >= ?2 AND task_id < ?3
                UNION SELECT id FROM tasks WHERE random_part >= ?2 AND random_part < ?3
                      AND random_part IS NOT NULL AND indexed
                UNION SELECT id FROM tasks WHERE random_part >= ?2 AND random_part < ?3
                      AND id > ",
    indexed_until!(),
    ") ORDER BY +id DESC LIMIT ?1)"
));
const TREE: &str = task_list!(concat!(
    "id IN (SELECT id FROM tasks WHERE root = ?2 AND indexed
            UNION ALL SELECT id FROM tasks WHERE root = ?2 AND id > ",
    indexed_until!(),
    " UNION ALL SELECT id FROM tasks WHERE task_id = ?2 AND root IS NULL)"
));

/// Tasks at one moment.
pub(crate) fn tasks(connection: &mut Connection, query: &TaskQuery) -> ListResult<TaskSummary> {
    let moment = connection.transaction().map_err(|error| broken(&error))?;
    let limit = limit(query.limit);
    let both = |lists: [&str; 2], of: Option<&str>| {
        newest_first(lists, limit, |list, limit| match of {
            None => select(&moment, list, [limit], task),
            Some(of) => select(&moment, list, (limit, of), task),
        })
    };
    match &query.which {
        TaskSelector::All => select(&moment, ALL, [limit], task),
        TaskSelector::Roots => both(ROOTS, None),
        TaskSelector::Unfinished => both(UNFINISHED, None),
        TaskSelector::Session(session_id) => both(IN_SESSION, Some(session_id.as_str())),
        TaskSelector::One(task_id) => select(&moment, ONE, (limit, task_id.as_str()), task),
        TaskSelector::IdPrefix(start) if start.is_empty() => select(&moment, ALL, [limit], task),
        TaskSelector::IdPrefix(start) => {
            select(&moment, WITH_PREFIX, (limit, start, after_prefix(start)), task)
        }
        TaskSelector::Tree(root) => select(&moment, TREE, (limit, root.as_str()), task),
        TaskSelector::Matching(filter) => matching_tasks(&moment, filter, limit),
    }
}

/// Reads the tail, and the indexed rows as far as there is room for more.
pub(crate) fn newest_first<T>(
    [tail, indexed]: [&str; 2],
    limit: usize,
    mut read: impl FnMut(&str, usize) -> ListResult<T>,
) -> ListResult<T> {
    let mut found = read(tail, limit)?;
    if found.len() < limit {
        found.extend(read(indexed, limit - found.len())?);
    }
    Ok(found)
}

/// The row number before which a page starts, from the id of a task.
macro_rules! before {
    () => {
        "CASE WHEN ?2 IS NULL THEN 9223372036854775807
              ELSE (SELECT id FROM tasks WHERE task_id = ?2) END"
    };
}
pub(crate) use before;

macro_rules! approval_list {
    ($which:literal) => {
        concat!(
            "SELECT task_id, approvals.status, decided, ",
            event_columns!("question"),
            ", ",
            event_columns!("answer"),
            " FROM approvals CROSS JOIN tasks ON tasks.id = approvals.task
             CROSS JOIN events AS question ON question.position = asked
             LEFT JOIN events AS answer ON answer.position = decided
             WHERE asked > CASE WHEN ?2 IS NULL THEN 0
                   ELSE (SELECT asked FROM approvals WHERE approval_id = ?2) END AND ",
            $which,
            " ORDER BY asked LIMIT ?1"
        )
    };
}

const APPROVALS: &str = approval_list!("true");
const PENDING: &str = approval_list!("approvals.status = 'pending'");
const ALL_OF: &str = approval_list!("tasks.payer = ?3");
const PENDING_OF: &str = approval_list!("approvals.status = 'pending' AND tasks.payer = ?3");
const PENDING_IN: &str = approval_list!("approvals.status = 'pending' AND approvals.root = ?3");
const ONE_APPROVAL: &str = approval_list!("approval_id = ?3");

pub(crate) fn approvals(connection: &Connection, query: &ApprovalQuery) -> ListResult<Approval> {
    let limit = limit(query.limit);
    let after = query.after.as_ref().map(ApprovalId::as_str);
    match &query.which {
        ApprovalSelector::All => select(connection, APPROVALS, (limit, after), approval),
        ApprovalSelector::Pending => select(connection, PENDING, (limit, after), approval),
        ApprovalSelector::AllOf(payer) => {
            select(connection, ALL_OF, (limit, after, payer), approval)
        }
        ApprovalSelector::PendingOf(payer) => {
            select(connection, PENDING_OF, (limit, after, payer), approval)
        }
        ApprovalSelector::PendingIn(root) => {
            select(connection, PENDING_IN, (limit, after, root.as_str()), approval)
        }
        ApprovalSelector::One(approval_id) => {
            select(connection, ONE_APPROVAL, (limit, after, approval_id.as_str()), approval)
        }
    }
}

macro_rules! agent_list {
    ($which:expr) => {
        concat!(
            "SELECT agent, task_id, ",
            agent_columns!(),
            " FROM tasks WHERE id < ",
            before!(),
            " AND NOT ended AND agent_id IS NOT NULL AND ",
            $which,
            " ORDER BY id DESC LIMIT ?1"
        )
    };
}

/// The unfinished tasks of the tail, and the others.
const AGENTS: [&str; 2] = [agent_list!(concat!("id > ", indexed_until!())), agent_list!("indexed")];

pub(crate) fn agents(connection: &mut Connection, query: &AgentQuery) -> ListResult<LiveAgent> {
    let moment = connection.transaction().map_err(|error| broken(&error))?;
    let before = query.before.as_ref().map(TaskId::as_str);
    let found = newest_first(AGENTS, limit(query.limit), |list, limit| {
        select(&moment, list, (limit, before), |row| {
            let agent = || Ok((row.get(0)?, read_text(row, 1)?, read_agent(row, 2)?));
            agent().map_err(|error| broken(&error))
        })
    })?;
    let live = |(agent, task_id, status): (_, _, Option<_>)| {
        Some(LiveAgent { agent, task_id, status: status? })
    };
    Ok(found.into_iter().filter_map(live).collect())
}

const QUEUED: &str = concat!(
    "SELECT task_id, ",
    event_columns!("events"),
    " FROM inbox CROSS JOIN events ON events.position = inbox.position
     CROSS JOIN tasks ON tasks.id = inbox.task
     WHERE inbox.position > ?2 ORDER BY inbox.position LIMIT ?1"
);

pub(crate) fn queued(connection: &Connection, query: &QueuedQuery) -> ListResult<QueuedMessage> {
    let after = i64::try_from(query.after.0).unwrap_or(i64::MAX);
    select(connection, QUEUED, (limit(query.limit), after), |row| {
        let task_id = read_text(row, 0).map_err(|error| broken(&error))?;
        let StoredEvent { position, at, body, .. } = StoredEvent::read(row, 1, Position(0))?;
        let EventBody::MessageQueued(queued) = body else {
            return Err(wrong_type(position, &body));
        };
        Ok(QueuedMessage { task_id, position, at, message: queued })
    })
}

const REPLY: &str = concat!(
    "SELECT ",
    event_columns!("events"),
    " FROM replies CROSS JOIN events ON events.position = replies.position WHERE request = ?"
);

pub(crate) fn reply(
    connection: &Connection,
    request: InteractionId,
) -> Result<Option<Replied>, JournalError> {
    let found = select(connection, REPLY, [request.to_string()], |row| {
        let StoredEvent { position, body, .. } = StoredEvent::read(row, 0, Position(0))?;
        let EventBody::Replied(replied) = body else {
            return Err(wrong_type(position, &body));
        };
        Ok(replied)
    })?;
    Ok(found.into_iter().next())
}

pub(crate) fn select<T>(
    connection: &Connection,
    statement: &str,
    params: impl Params,
    mut read: impl FnMut(&Row<'_>) -> Result<T, JournalError>,
) -> ListResult<T> {
    let mut statement = connection.prepare_cached(statement).map_err(|error| broken(&error))?;
    let mut rows = statement.query(params).map_err(|error| broken(&error))?;
    let mut found = Vec::new();
    while let Some(row) = rows.next().map_err(|error| broken(&error))? {
        found.push(read(row)?);
    }
    Ok(found)
}

pub(crate) fn task(row: &Row<'_>) -> Result<TaskSummary, JournalError> {
    read_task(row).map_err(|error| broken(&error))
}

fn approval(row: &Row<'_>) -> Result<Approval, JournalError> {
    let task_id: TaskId = read_text(row, 0).map_err(|error| broken(&error))?;
    let question = StoredEvent::read(row, 3, Position(0))?;
    let EventBody::ApprovalRequested(request) = &question.body else {
        return Err(wrong_type(question.position, &question.body));
    };
    let mut approval = Approval::requested(task_id, request, question.at);
    let decided: Option<u64> = row.get(2).map_err(|error| broken(&error))?;
    if let Some(position) = decided {
        let answer = StoredEvent::read(row, 3 + EVENT_COLUMNS, Position(position))?;
        let EventBody::ApprovalDecided(decided) = &answer.body else {
            return Err(wrong_type(answer.position, &answer.body));
        };
        approval.decide(decided, answer.at);
    }
    approval.status = read_word(row, 1).map_err(|error| broken(&error))?;
    Ok(approval)
}

/// The first text after every text with this prefix, in byte order. When there is none, a
/// blob, which sorts after every text.
fn after_prefix(start: &str) -> Value {
    let mut text = start.to_owned();
    while let Some(last) = text.pop() {
        if let Some(next) = (last..=char::MAX).nth(1) {
            text.push(next);
            return Value::Text(text);
        }
    }
    Value::Blob(Vec::new())
}

pub(crate) fn limit(most: NonZeroUsize) -> usize {
    most.get().min(LIST_ROWS_MAX)
}

pub(crate) fn broken(error: &rusqlite::Error) -> JournalError {
    fault(Position(0), error)
}

fn wrong_type(position: Position, body: &EventBody) -> JournalError {
    let reason = format!("unexpected event `{}`", body.event_type());
    JournalError::Corrupt { position, reason }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::file::schema::in_memory;
    use crate::index::tables::SETTLED;
    use crate::reader::session_list::SESSIONS;

    #[test]
    fn what_begins_with_a_text_is_before_what_is_behind_all_of_it() {
        assert_eq!(after_prefix("0197"), Value::Text("0198".to_owned()));
        assert_eq!(after_prefix("a\u{D7FF}"), Value::Text("a\u{E000}".to_owned()));
        assert_eq!(after_prefix("a\u{10FFFF}"), Value::Text("b".to_owned()));
        assert_eq!(after_prefix("\u{10FFFF}\u{10FFFF}"), Value::Blob(vec![]));
    }

    #[test]
    fn a_blob_is_behind_every_text() {
        let connection = in_memory().unwrap();
        let behind = "SELECT ?1 < ?2";
        let text = "\u{10FFFF}\u{10FFFF}a";
        let found: bool = connection
            .query_row(behind, (text, after_prefix("\u{10FFFF}")), |row| row.get(0))
            .unwrap();
        assert!(found);
    }

    /// With a million tasks, a list of ten reads ten rows.
    #[test]
    fn a_short_list_looks_at_few_rows() {
        let connection = in_memory().unwrap();
        let indexed = [ROOTS, UNFINISHED, IN_SESSION, AGENTS, SESSIONS].map(|[_, indexed]| indexed);
        let in_order = [&[ALL, ONE, QUEUED][..], &indexed].concat();
        for statement in in_order.iter().chain(&[
            APPROVALS,
            PENDING,
            ALL_OF,
            PENDING_OF,
            PENDING_IN,
            ONE_APPROVAL,
        ]) {
            let plan = plan(&connection, statement);
            assert!(!plan.contains("TEMP B-TREE"), "{statement}\n{plan}");
        }
        // The first loop returns rows, or a list of rows; the other loops look up by key.
        for statement in
            in_order.iter().chain(&[TREE, APPROVALS, PENDING, ALL_OF, PENDING_OF, PENDING_IN])
        {
            let plan = plan(&connection, statement);
            assert!(
                !plan.lines().skip(1).any(|line| line.starts_with("SCAN") && line != "SCAN listed"),
                "{statement}\n{plan}"
            );
        }
        for [tail, _] in [ROOTS, UNFINISHED, IN_SESSION, AGENTS, SESSIONS] {
            let plan = plan(&connection, tail);
            let of_tail = "SEARCH tasks USING INTEGER PRIMARY KEY (rowid>?";
            assert!(plan.contains(of_tail) && !plan.contains("SCAN tasks"), "{tail}\n{plan}");
        }
        let beginning = plan(&connection, WITH_PREFIX);
        assert!(beginning.contains("COVERING INDEX"), "{beginning}");
        assert!(beginning.contains("task_id>? AND task_id<?"), "{beginning}");
        assert!(beginning.contains("random_part>? AND random_part<?"), "{beginning}");
        assert!(!beginning.contains("SCAN tasks"), "{beginning}");
        for statement in [REPLY, SETTLED] {
            let plan = plan(&connection, statement);
            assert!(!plan.contains("TEMP B-TREE") && !plan.contains("SCAN"), "{plan}");
        }
        let pending = plan(&connection, PENDING_IN);
        assert!(pending.contains("approvals_pending_in (root=?"), "{pending}");
        let tree = plan(&connection, TREE);
        assert!(tree.contains("tasks_by_root") && !tree.contains("SCAN"), "{tree}");
    }

    fn plan(connection: &Connection, statement: &str) -> String {
        let mut explain = connection.prepare(&format!("EXPLAIN QUERY PLAN {statement}")).unwrap();
        let nothing = vec![rusqlite::types::Null; explain.parameter_count()];
        let nothing = rusqlite::params_from_iter(nothing);
        let lines = explain.query_map(nothing, |row| row.get::<_, String>(3)).unwrap();
        lines.map(Result::unwrap).collect::<Vec<_>>().join("\n")
    }
}
