//! The list of sessions: those with a task in the tail, counted there and in the table, and the others.

use antiphon_core::port::SessionQuery;
use antiphon_core::{ImportedTimes, SessionSummary, TaskId};
use rusqlite::{Connection, Row};

use crate::index::tail::indexed_until;
use crate::reader::index_queries::{ListResult, before, broken, limit, newest_first, select};
use crate::row::column::{read_json_maybe, read_text, read_time, read_word};

macro_rules! session_list {
    ($sessions:expr) => {
        concat!(
            "SELECT listed.session_id, first.title, listed.tasks, last.task_id, last.status,
                    first.created_s, first.created_ns, last.last_s, last.last_ns, first.imported,
                    last.imported
             FROM (",
            $sessions,
            ") AS listed CROSS JOIN tasks AS first ON first.id = listed.first_task
             CROSS JOIN tasks AS last ON last.id = listed.last_task
             ORDER BY listed.last_task DESC"
        )
    };
}

/// Sessions with a task in the tail, and the others.
pub(crate) const SESSIONS: [&str; 2] = [
    session_list!(concat!(
        "SELECT session AS session_id, coalesce(sessions.first_task, min(id)) AS first_task,
                max(id) AS last_task, count(*) + coalesce(sessions.tasks, 0) AS tasks
         FROM tasks LEFT JOIN sessions ON session_id = session
         WHERE id > ",
        indexed_until!(),
        " GROUP BY session HAVING max(id) < ",
        before!(),
        " ORDER BY max(id) DESC LIMIT ?1"
    )),
    session_list!(concat!(
        "SELECT * FROM sessions WHERE last_task < ",
        before!(),
        " AND session_id NOT IN (SELECT session FROM tasks WHERE id > ",
        indexed_until!(),
        ") ORDER BY last_task DESC LIMIT ?1"
    )),
];

pub(crate) fn sessions(
    connection: &mut Connection,
    query: &SessionQuery,
) -> ListResult<SessionSummary> {
    let moment = connection.transaction().map_err(|error| broken(&error))?;
    let before = query.before.as_ref().map(TaskId::as_str);
    newest_first(SESSIONS, limit(query.limit), |list, limit| {
        select(&moment, list, (limit, before), |row| session(row).map_err(|error| broken(&error)))
    })
}

fn session(row: &Row<'_>) -> rusqlite::Result<SessionSummary> {
    Ok(SessionSummary {
        session_id: read_text(row, 0)?,
        title: row.get(1)?,
        tasks: row.get(2)?,
        last_task: read_text(row, 3)?,
        status: read_word(row, 4)?,
        created_at: match read_json_maybe::<ImportedTimes>(row, 9)? {
            Some(imported) => imported.created_at,
            None => read_time(row, 5)?,
        },
        updated_at: match read_json_maybe::<ImportedTimes>(row, 10)? {
            Some(imported) => imported.updated_at,
            None => read_time(row, 7)?,
        },
    })
}
