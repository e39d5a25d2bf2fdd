//! Tasks and agents as rows.

use antiphon_core::{AgentId, AgentStatus, RunsOn, Seq, TaskId, TaskSummary};
use rusqlite::Row;

use crate::row::column::{
    read_json_maybe, read_text, read_text_maybe, read_time, read_word, read_word_maybe,
};

/// Columns of `tasks`, in the order that [`read_task`] needs.
macro_rules! task_columns {
    () => {
        "id, task_id, agent, session, parent, root, model, status, waiting_for, title, preview, \
         seq, turns, calls, messages, created_s, created_ns, last_s, last_ns, ended, payer, wait, \
         imported, runner, peer, spent"
    };
}
pub(crate) use task_columns;

/// Number of these columns.
pub(crate) const TASK_COLUMNS: usize = 26;

/// Columns of `tasks`, in the order that [`read_agent`] needs.
macro_rules! agent_columns {
    () => {
        "agent_id, agent_state, agent_s, agent_ns, agent_messages"
    };
}
pub(crate) use agent_columns;

/// A task from [`task_columns`].
pub(crate) fn read_task(row: &Row<'_>) -> rusqlite::Result<TaskSummary> {
    let task_id: TaskId = read_text(row, 1)?;
    let last_event_at = read_time(row, 17)?;
    // No event follows the end of a task.
    let ended_at = row.get::<_, bool>(19)?.then_some(last_event_at);
    Ok(TaskSummary {
        agent: row.get(2)?,
        session_id: read_text(row, 3)?,
        parent: read_text_maybe(row, 4)?,
        root: read_text_maybe(row, 5)?.unwrap_or_else(|| task_id.clone()),
        payer: row.get(20)?,
        model: read_text_maybe(row, 6)?,
        runs_on: read_runs_on(row, 23)?,
        status: read_word(row, 7)?,
        waiting_for: read_word_maybe(row, 8)?,
        wait: read_json_maybe(row, 21)?,
        imported: read_json_maybe(row, 22)?,
        title: row.get(9)?,
        preview: row.get(10)?,
        seq: Seq(row.get(11)?),
        turns: row.get(12)?,
        calls: row.get(13)?,
        messages: row.get(14)?,
        spent: read_json_maybe(row, 25)?.unwrap_or_default(),
        created_at: read_time(row, 15)?,
        last_event_at,
        ended_at,
        task_id,
    })
}

/// Where a task runs, from two columns.
fn read_runs_on(row: &Row<'_>, start: usize) -> rusqlite::Result<RunsOn> {
    let Some(runner) = row.get(start)? else { return Ok(RunsOn::default()) };
    Ok(RunsOn { runner, peer: row.get(start + 1)? })
}

/// An agent from five columns.
pub(crate) fn read_agent(row: &Row<'_>, start: usize) -> rusqlite::Result<Option<AgentStatus>> {
    let Some(id) = read_word_maybe::<AgentId>(row, start)? else { return Ok(None) };
    Ok(Some(AgentStatus {
        id,
        state: read_word(row, start + 1)?,
        last_activity: read_time(row, start + 2)?,
        messages_processed: row.get(start + 4)?,
    }))
}
