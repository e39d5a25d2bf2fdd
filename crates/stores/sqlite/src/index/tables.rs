//! The index tables. Every row is a fold over events, as `antiphon_core` defines it, written in the
//! transaction of the events.

use std::mem;

use antiphon_core::{
    AgentStatus, ApprovalDecided, ApprovalId, ApprovalStatus, EventBody, HistoryRef, InteractionId,
    Position, Replied, Seq, SessionId, TaskId, Usage,
};
use rusqlite::{OptionalExtension, Transaction, params};

use crate::index::history::HistoryColumns;
use crate::index::spending;
use crate::row::column::{json, read_usage, usage, word};
use crate::row::task_row::{TASK_COLUMNS, read_agent, read_task, task_columns};
use crate::writer::task_head_cache::CachedTask;

/// The columns of a task that most events change. A handover changes others.
macro_rules! update_task {
    ($more:literal) => {
        concat!(
            "UPDATE tasks SET status = ?2, waiting_for = ?3, title = ?4,
                 preview = coalesce(?5, preview), seq = ?6, turns = ?7, calls = ?8,
                 messages = ?9, last_s = ?10, last_ns = ?11, wait = ?12",
            $more,
            " WHERE id = ?1"
        )
    };
}

const UPDATE_TASK: &str = update_task!("");
const END_TASK: &str = update_task!(", ended = 1");

/// Seq of the last event of a task that is not an arrival. Positions increase with seqs, so SQLite
/// walks the task's index from its end.
pub(crate) const SETTLED: &str = "SELECT seq FROM events
    WHERE task = ? AND type <> 'message_queued' ORDER BY position DESC LIMIT 1";

/// One transaction on the index tables.
#[derive(Debug)]
pub(crate) struct Tables<'a> {
    transaction: &'a Transaction<'a>,
}

impl<'a> Tables<'a> {
    pub(crate) fn new(transaction: &'a Transaction<'a>) -> Self {
        Self { transaction }
    }

    /// A task of the file. Its `preview` and `spent` are empty: nothing of them must be written.
    pub(crate) fn task(&self, task_id: &TaskId) -> rusqlite::Result<Option<CachedTask>> {
        let found = self
            .transaction
            .prepare_cached(concat!(
                "SELECT ",
                task_columns!(),
                ", agent_id, state, agents.last_s, agents.last_ns, messages_processed
                 FROM tasks CROSS JOIN sessions ON sessions.id = session
                 LEFT JOIN agents ON agents.task = tasks.id WHERE task_id = ?"
            ))?
            .query_row([task_id.as_str()], |row| {
                let mut summary = read_task(row)?;
                summary.preview = None;
                Ok((row.get(0)?, summary, read_agent(row, TASK_COLUMNS)?))
            })
            .optional()?;
        let Some((row, summary, agent)) = found else { return Ok(None) };
        Ok(Some(CachedTask::of(row, summary, self.settled(row)?, agent)))
    }

    /// Seq of the last event that is not an arrival. The creation always is one.
    fn settled(&self, row: i64) -> rusqlite::Result<Seq> {
        self.transaction
            .prepare_cached(SETTLED)?
            .query_row([row], |row| row.get(0).map(Seq))
            .optional()
            .map(Option::unwrap_or_default)
    }

    /// Row number of the next task: a new one, also when the last tasks were pruned.
    pub(crate) fn next_row(&self) -> rusqlite::Result<i64> {
        self.transaction
            .prepare_cached(
                "SELECT max((SELECT coalesce(max(id), 0) FROM tasks),
                            (SELECT coalesce(max(id), 0) FROM pruned)) + 1",
            )?
            .query_row((), |row| row.get(0))
    }

    /// Inserts a task that continues this conversation.
    pub(crate) fn create(
        &self,
        cached: &mut CachedTask,
        history: Option<&HistoryRef>,
    ) -> rusqlite::Result<()> {
        let history = HistoryColumns::of(self.transaction, history)?;
        let (row, task) = (cached.row, &cached.summary);
        let session = self.add_to_session(&task.session_id, row)?;
        let root = Some(task.root.as_str()).filter(|root| *root != task.task_id.as_str());
        self.transaction
            .prepare_cached(
                "INSERT INTO tasks (id, task_id, session, agent, parent, root, model, status,
                     waiting_for, title, preview, seq, turns, calls, messages, created_s,
                     created_ns, last_s, last_ns, ended, payer, random_part, wait, imported,
                     history, history_seq, history_messages)
                 VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?,
                     ?)",
            )?
            .execute(params![
                row,
                task.task_id.as_str(),
                session,
                task.agent,
                task.parent.as_ref().map(TaskId::as_str),
                root,
                task.model.as_ref().map(ToString::to_string),
                word(&task.status)?,
                task.waiting_for.map(|what| word(&what)).transpose()?,
                task.title,
                task.preview,
                task.seq.0,
                task.turns,
                task.calls,
                task.messages,
                task.created_at.timestamp(),
                task.created_at.timestamp_subsec_nanos(),
                task.last_event_at.timestamp(),
                task.last_event_at.timestamp_subsec_nanos(),
                task.status.is_terminal(),
                task.payer,
                task.task_id.random_part(),
                task.wait.as_ref().map(json).transpose()?,
                task.imported.as_ref().map(json).transpose()?,
                history.row,
                history.seq,
                history.messages,
            ])?;
        if !task.runs_on.is_local() {
            self.transaction
                .prepare_cached("INSERT OR REPLACE INTO runners VALUES (?, ?, ?)")?
                .execute((row, &task.runs_on.runner, &task.runs_on.peer))?;
        }
        cached.summary.preview = None;
        self.settle(cached)
    }

    /// Row number of a session, with this task as its newest. Two statements: with `RETURNING`
    /// SQLite would create a temporary table.
    fn add_to_session(&self, session_id: &SessionId, task: i64) -> rusqlite::Result<i64> {
        let known: Option<i64> = self
            .transaction
            .prepare_cached("SELECT id FROM sessions WHERE session_id = ?")?
            .query_row([session_id.as_str()], |row| row.get(0))
            .optional()?;
        let Some(session) = known else {
            return self
                .transaction
                .prepare_cached(
                    "INSERT INTO sessions (session_id, first_task, last_task, tasks)
                     VALUES (?1, ?2, ?2, 1)",
                )?
                .insert((session_id.as_str(), task));
        };
        self.transaction
            .prepare_cached("UPDATE sessions SET last_task = ?, tasks = tasks + 1 WHERE id = ?")?
            .execute((task, session))?;
        Ok(session)
    }

    /// Updates the row of a task.
    pub(crate) fn update(&self, cached: &mut CachedTask) -> rusqlite::Result<()> {
        let task = &cached.summary;
        // Setting `ended` moves the row in an index: do it once.
        let update = if task.status.is_terminal() { END_TASK } else { UPDATE_TASK };
        self.transaction.prepare_cached(update)?.execute((
            cached.row,
            word(&task.status)?,
            task.waiting_for.map(|what| word(&what)).transpose()?,
            &task.title,
            &task.preview,
            task.seq.0,
            task.turns,
            task.calls,
            task.messages,
            task.last_event_at.timestamp(),
            task.last_event_at.timestamp_subsec_nanos(),
            task.wait.as_ref().map(json).transpose()?,
        ))?;
        cached.summary.preview = None;
        self.settle(cached)
    }

    /// Applies one event to the other index tables. The row of its task exists.
    pub(crate) fn index(
        &self,
        cached: &mut CachedTask,
        position: Position,
        body: &EventBody,
    ) -> rusqlite::Result<()> {
        let row = cached.row;
        if let Some(id) = body.leaves_inbox() {
            self.take_from_queue(row, id)?;
        }
        if body.ends_task() {
            return self.end(cached);
        }
        if let EventBody::MessageQueued(queued) = body {
            cached.related.messages = true;
            self.queue(row, position, queued.id)?;
        } else if let EventBody::Replied(replied) = body {
            self.reply(position, replied)?;
        } else if let EventBody::ApprovalRequested(requested) = body {
            cached.related.messages = true;
            self.ask(row, position, &requested.approval_id)?;
        } else if let EventBody::ApprovalDecided(decided) = body {
            self.decide(row, position, decided)?;
        } else if let EventBody::HandedOver(_) = body {
            self.hand_over(cached)?;
        } else if let EventBody::TaskRestored(_) = body {
            self.transaction
                .prepare_cached("DELETE FROM runners WHERE task = ?")?
                .execute([cached.row])?;
        }
        Ok(())
    }

    /// Writes the new agent and model of a task.
    fn hand_over(&self, cached: &CachedTask) -> rusqlite::Result<()> {
        let task = &cached.summary;
        self.transaction
            .prepare_cached("UPDATE tasks SET agent = ?2, model = ?3 WHERE id = ?1")?
            .execute((cached.row, &task.agent, task.model.as_ref().map(ToString::to_string)))?;
        Ok(())
    }

    /// Removes the agent and the inbox of an ended task, and voids its approvals.
    pub(crate) fn end(&self, cached: &CachedTask) -> rusqlite::Result<()> {
        let agent = ["DELETE FROM agents WHERE task = ?"];
        let more = [
            "DELETE FROM inbox WHERE task = ?",
            "UPDATE approvals SET status = 'void' WHERE task = ? AND status = 'pending'",
        ];
        let checkpoint = ["DELETE FROM checkpoints WHERE task = ?"];
        let checkpoint = checkpoint.into_iter().filter(|_| cached.related.checkpoint);
        let agent = agent.into_iter().filter(|_| cached.related.agent).chain(checkpoint);
        for statement in agent.chain(more.into_iter().filter(|_| cached.related.messages)) {
            self.transaction.prepare_cached(statement)?.execute([cached.row])?;
        }
        Ok(())
    }

    /// Writes the spending and the agent state of a task.
    fn settle(&self, cached: &mut CachedTask) -> rusqlite::Result<()> {
        let spent = mem::take(&mut cached.summary.spent);
        let spends = !spent.is_empty();
        for (model, spent) in spent {
            let before = if cached.related.usage {
                self.spent(cached.row, &model)?
            } else {
                Usage::default()
            };
            self.spend(cached.row, &model, before, spent)?;
        }
        cached.related.usage |= spends;
        if !cached.spending.is_empty() {
            spending::add(self.transaction, &cached.spending.take())?;
        }
        if mem::take(&mut cached.agent_moved)
            && let Some(agent) = &cached.agent
        {
            self.move_agent(cached.row, agent)?;
            cached.related.agent = true;
        }
        Ok(())
    }

    fn spent(&self, row: i64, model: &str) -> rusqlite::Result<Usage> {
        let found = self
            .transaction
            .prepare_cached(
                "SELECT input_tokens, output_tokens, cache_read_tokens, cache_write_tokens
                 FROM usage WHERE task = ? AND model = ?",
            )?
            .query_row((row, model), |row| read_usage(row, 0))
            .optional()?;
        Ok(found.unwrap_or_default())
    }

    fn spend(&self, row: i64, model: &str, before: Usage, spent: Usage) -> rusqlite::Result<()> {
        let mut total = before;
        total += spent;
        let (input, output, read, written) = usage(&total);
        self.transaction
            .prepare_cached("INSERT OR REPLACE INTO usage VALUES (?, ?, ?, ?, ?, ?)")?
            .execute((row, model, input, output, read, written))?;
        Ok(())
    }

    fn move_agent(&self, row: i64, agent: &AgentStatus) -> rusqlite::Result<()> {
        self.transaction
            .prepare_cached("INSERT OR REPLACE INTO agents VALUES (?, ?, ?, ?, ?, ?)")?
            .execute((
                row,
                agent.id.to_string(),
                agent.state.as_str(),
                agent.last_activity.timestamp(),
                agent.last_activity.timestamp_subsec_nanos(),
                agent.messages_processed,
            ))?;
        Ok(())
    }

    fn queue(&self, row: i64, position: Position, id: InteractionId) -> rusqlite::Result<()> {
        self.transaction
            .prepare_cached(
                "INSERT INTO inbox (position, task, interaction_id) VALUES (?, ?, ?)
                 ON CONFLICT (task, interaction_id) DO NOTHING",
            )?
            .execute((position.0, row, id.to_string()))?;
        Ok(())
    }

    fn take_from_queue(&self, row: i64, id: InteractionId) -> rusqlite::Result<()> {
        self.transaction
            .prepare_cached("DELETE FROM inbox WHERE task = ? AND interaction_id = ?")?
            .execute((row, id.to_string()))?;
        Ok(())
    }

    /// The first final answer counts.
    fn reply(&self, position: Position, replied: &Replied) -> rusqlite::Result<()> {
        if replied.status.is_final() {
            self.transaction
                .prepare_cached(
                    "INSERT INTO replies (request, position) VALUES (?, ?)
                     ON CONFLICT (request) DO NOTHING",
                )?
                .execute((replied.in_reply_to.to_string(), position.0))?;
        }
        Ok(())
    }

    fn ask(&self, row: i64, position: Position, id: &ApprovalId) -> rusqlite::Result<()> {
        self.transaction
            .prepare_cached(
                "INSERT INTO approvals (asked, approval_id, task, status)
                 VALUES (?, ?, ?, 'pending') ON CONFLICT (approval_id) DO NOTHING",
            )?
            .execute((position.0, id.as_str(), row))?;
        Ok(())
    }

    fn decide(
        &self,
        row: i64,
        position: Position,
        decided: &ApprovalDecided,
    ) -> rusqlite::Result<()> {
        self.transaction
            .prepare_cached(
                "UPDATE approvals SET status = ?, decided = ?
                 WHERE approval_id = ? AND task = ? AND status = 'pending'",
            )?
            .execute((
                word(&ApprovalStatus::from(decided.decision))?,
                position.0,
                decided.approval_id.as_str(),
                row,
            ))?;
        Ok(())
    }
}
