//! Lists of tasks that match a filter, page by page, the newest first.
//!
//! Each list follows an index in the order of creation and reads only the rows it returns, except for the tail and
//! rows that the conditions on session, parent or records leave out, and of the tasks of one payer. A filter with several statuses
//! is one list per status, merged.

use antiphon_core::port::{JournalError, TaskFilter};
use antiphon_core::{ORDERS, TaskId, TaskStatus, TaskSummary};
use rusqlite::types::Value;
use rusqlite::{Connection, OptionalExtension, Row, params_from_iter};

use crate::index::tail::indexed_until;
use crate::reader::index_queries::{broken, select, task};
use crate::row::task_row::task_columns;

/// Tasks that match a filter.
pub(crate) fn matching_tasks(
    connection: &Connection,
    filter: &TaskFilter,
    limit: usize,
) -> Result<Vec<TaskSummary>, JournalError> {
    let before = match &filter.before {
        None => i64::MAX,
        Some(task_id) => match number(connection, task_id).map_err(|error| broken(&error))? {
            Some(row) => row,
            None => return Ok(Vec::new()),
        },
    };
    let mut found = Vec::new();
    for status in statuses(filter) {
        let mut listed = 0;
        for rows in [Rows::Tail, Rows::Indexed] {
            let listing = Listing::new(filter, status, rows, before, limit - listed);
            let Listing { statement, values } = listing;
            let more = select(connection, &statement, params_from_iter(values), task_with_row)?;
            listed += more.len();
            found.extend(more);
            if listed == limit {
                break;
            }
        }
    }
    found.sort_unstable_by_key(|(row, _)| std::cmp::Reverse(*row));
    found.truncate(limit);
    Ok(found.into_iter().map(|(_, task)| task).collect())
}

fn number(connection: &Connection, task_id: &TaskId) -> rusqlite::Result<Option<i64>> {
    connection
        .prepare_cached("SELECT id FROM tasks WHERE task_id = ?")?
        .query_row([task_id.as_str()], |row| row.get(0))
        .optional()
}

/// One list per status; one for all when there is no such condition.
fn statuses(filter: &TaskFilter) -> Vec<Option<TaskStatus>> {
    if filter.statuses.is_empty() {
        return vec![None];
    }
    let asked = TaskStatus::ALL.into_iter().filter(|status| filter.statuses.contains(status));
    asked.map(Some).collect()
}

fn task_with_row(row: &Row<'_>) -> Result<(i64, TaskSummary), JournalError> {
    Ok((row.get(0).map_err(|error| broken(&error))?, task(row)?))
}

/// Which rows a statement looks at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Rows {
    /// Each of the newest tasks.
    Tail,
    /// The others, with an index.
    Indexed,
}

/// A statement and its parameters.
struct Listing {
    statement: String,
    values: Vec<Value>,
}

impl Listing {
    fn new(
        filter: &TaskFilter,
        status: Option<TaskStatus>,
        rows: Rows,
        before: i64,
        limit: usize,
    ) -> Self {
        let (rows, index) = match rows {
            Rows::Tail => (concat!("id > ", indexed_until!()), "NOT INDEXED"),
            Rows::Indexed => ("indexed", index(filter, status)),
        };
        let mut conditions = vec!["id < ?".to_owned(), rows.to_owned()];
        let mut values = vec![Value::Integer(before)];
        let mut hold = |condition: &str, value: Option<Value>| {
            conditions.push(condition.to_owned());
            values.extend(value);
        };
        if let Some(session) = &filter.session {
            hold("session = ?", Some(Value::Text(session.to_string())));
        }
        if let Some(agent) = &filter.agent {
            hold("agent = ?", Some(Value::Text(agent.clone())));
        }
        if let Some(payer) = &filter.payer {
            hold("payer = ?", Some(Value::Text(payer.clone())));
        }
        if let Some(status) = status {
            hold(if status.is_terminal() { "ended" } else { "NOT ended" }, None);
            hold("status = ?", Some(Value::Text(status.as_str().to_owned())));
        }
        if filter.roots {
            hold("parent IS NULL", None);
        }
        if filter.without_records {
            let record = "NOT (agent = ? AND parent IS NULL AND model IS NULL AND turns = 0 \
                          AND status = 'completed')";
            hold(record, Some(Value::Text(ORDERS.to_owned())));
        }
        values.push(Value::Integer(i64::try_from(limit).unwrap_or(i64::MAX)));
        let statement = format!(
            "SELECT {} FROM tasks {index} WHERE {} ORDER BY id DESC LIMIT ?",
            task_columns!(),
            conditions.join(" AND "),
        );
        Self { statement, values }
    }
}

/// The index that leaves out most rows.
fn index(filter: &TaskFilter, status: Option<TaskStatus>) -> &'static str {
    match (&filter.session, &filter.agent, status.map(TaskStatus::is_terminal)) {
        (Some(_), _, _) => "INDEXED BY tasks_by_session",
        (None, _, None | Some(true)) if filter.payer.is_some() => "INDEXED BY tasks_by_payer",
        (None, Some(_), Some(true)) => "INDEXED BY tasks_by_agent_and_end",
        (None, Some(_), None) => "INDEXED BY tasks_by_agent",
        (None, None, Some(true)) => "INDEXED BY tasks_by_end",
        (None, _, Some(false)) => "INDEXED BY tasks_unfinished",
        (None, None, None) if filter.roots => "INDEXED BY tasks_tops",
        (None, None, None) => "",
    }
}

#[cfg(test)]
mod tests {
    use antiphon_core::SessionId;

    use super::*;
    use crate::file::schema::in_memory;

    /// With a million tasks, a list of ten reads ten rows.
    #[test]
    fn every_list_goes_along_an_index_in_its_order() {
        let connection = in_memory().unwrap();
        let statuses = [None].into_iter().chain(TaskStatus::ALL.map(Some));
        for (n, status) in (0..64).flat_map(|n| statuses.clone().map(move |status| (n, status))) {
            let filter = TaskFilter {
                agent: (n & 1 != 0).then(|| "lead".to_owned()),
                session: (n & 2 != 0).then(|| SessionId::parse("talk").unwrap()),
                roots: n & 4 != 0,
                without_records: n & 8 != 0,
                payer: (n & 32 != 0).then(|| "key".to_owned()),
                ..TaskFilter::default()
            };
            let rows = if n & 16 == 0 { Rows::Tail } else { Rows::Indexed };
            let Listing { statement, values } = Listing::new(&filter, status, rows, 7, 10);
            let mut explain =
                connection.prepare(&format!("EXPLAIN QUERY PLAN {statement}")).unwrap();
            let lines =
                explain.query_map(params_from_iter(values), |row| row.get::<_, String>(3)).unwrap();
            let plan: Vec<String> = lines.map(Result::unwrap).collect();
            let along_an_index =
                plan.iter().all(|line| line.starts_with("SEARCH") || line.contains("SUBQUERY"));
            assert!(along_an_index, "{statement}\n{plan:#?}");
        }
    }
}
