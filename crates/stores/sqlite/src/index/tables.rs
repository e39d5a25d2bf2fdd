//! The index tables. Every row is a fold over events, as `antiphon_core` defines it, written in the
//! transaction of the events.

use antiphon_core::{
    ApprovalDecided, ApprovalId, ApprovalStatus, EventBody, HistoryRef, InteractionId, Position,
    Replied, Seq, TaskId, TaskSummary,
};
use rusqlite::{OptionalExtension, Transaction, params};

use crate::index::history::HistoryColumns;
use crate::row::column::{json, word};
use crate::row::task_row::{TASK_COLUMNS, agent_columns, read_agent, read_task, task_columns};
use crate::writer::task_head_cache::CachedTask;

/// The columns of a task that most events change. A handover changes others.
macro_rules! update_task {
    ($more:literal) => {
        concat!(
            "UPDATE tasks SET status = ?2, waiting_for = ?3, title = ?4,
                 preview = coalesce(?5, preview), seq = ?6, turns = ?7, calls = ?8,
                 messages = ?9, last_s = ?10, last_ns = ?11, wait = ?12, spent = ?13,
                 agent_id = ?14, agent_state = ?15, agent_s = ?16, agent_ns = ?17,
                 agent_messages = ?18",
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

    /// A task of the file. Its `preview` is empty: nothing of it must be written.
    pub(crate) fn task(&self, task_id: &TaskId) -> rusqlite::Result<Option<CachedTask>> {
        let found = self
            .transaction
            .prepare_cached(concat!(
                "SELECT ",
                task_columns!(),
                ", ",
                agent_columns!(),
                " FROM tasks WHERE task_id = ?"
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
        let (row, task, agent) = (cached.row, &cached.summary, cached.agent.as_ref());
        let runs_on = Some(&task.runs_on).filter(|runs_on| !runs_on.is_local());
        let root = Some(task.root.as_str()).filter(|root| *root != task.task_id.as_str());
        self.transaction
            .prepare_cached(
                "INSERT INTO tasks (id, task_id, session, agent, parent, root, model, status,
                     waiting_for, title, preview, seq, turns, calls, messages, created_s,
                     created_ns, last_s, last_ns, ended, payer, random_part, wait, imported,
                     history, history_seq, history_messages, runner, peer, spent, agent_id,
                     agent_state, agent_s, agent_ns, agent_messages, indexed)
                 VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?,
                     ?, ?, ?, ?, ?, ?, ?, ?, ?, 0)",
            )?
            .execute(params![
                row,
                task.task_id.as_str(),
                task.session_id.as_str(),
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
                runs_on.map(|runs_on| &runs_on.runner),
                runs_on.and_then(|runs_on| runs_on.peer.as_ref()),
                spent(task)?,
                agent.map(|agent| agent.id.to_string()),
                agent.map(|agent| agent.state.as_str()),
                agent.map(|agent| agent.last_activity.timestamp()),
                agent.map(|agent| agent.last_activity.timestamp_subsec_nanos()),
                agent.map(|agent| agent.messages_processed),
            ])?;
        cached.summary.preview = None;
        Ok(())
    }

    /// Updates the row of a task.
    pub(crate) fn update(&self, cached: &mut CachedTask) -> rusqlite::Result<()> {
        let (task, agent) = (&cached.summary, cached.agent.as_ref());
        // Setting `ended` moves the row in an index: do it once.
        let update = if task.status.is_terminal() { END_TASK } else { UPDATE_TASK };
        self.transaction.prepare_cached(update)?.execute(params![
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
            spent(task)?,
            agent.map(|agent| agent.id.to_string()),
            agent.map(|agent| agent.state.as_str()),
            agent.map(|agent| agent.last_activity.timestamp()),
            agent.map(|agent| agent.last_activity.timestamp_subsec_nanos()),
            agent.map(|agent| agent.messages_processed),
        ])?;
        cached.summary.preview = None;
        Ok(())
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
            self.ask(cached, position, &requested.approval_id)?;
        } else if let EventBody::ApprovalDecided(decided) = body {
            self.decide(row, position, decided)?;
        } else if let EventBody::HandedOver(_) = body {
            self.hand_over(cached)?;
        } else if let EventBody::TaskRestored(_) = body {
            self.transaction
                .prepare_cached("UPDATE tasks SET runner = NULL, peer = NULL WHERE id = ?")?
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

    /// Removes the inbox of an ended task, and voids its approvals.
    pub(crate) fn end(&self, cached: &CachedTask) -> rusqlite::Result<()> {
        let more = [
            "DELETE FROM inbox WHERE task = ?",
            "UPDATE approvals SET status = 'void' WHERE task = ? AND status = 'pending'",
        ];
        let checkpoint = ["DELETE FROM checkpoints WHERE task = ?"];
        let checkpoint = checkpoint.into_iter().filter(|_| cached.related.checkpoint);
        for statement in checkpoint.chain(more.into_iter().filter(|_| cached.related.messages)) {
            self.transaction.prepare_cached(statement)?.execute([cached.row])?;
        }
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

    fn ask(
        &self,
        cached: &CachedTask,
        position: Position,
        id: &ApprovalId,
    ) -> rusqlite::Result<()> {
        self.transaction
            .prepare_cached(
                "INSERT INTO approvals (asked, approval_id, task, root, status)
                 VALUES (?, ?, ?, ?, 'pending') ON CONFLICT (approval_id) DO NOTHING",
            )?
            .execute((position.0, id.as_str(), cached.row, cached.summary.root.as_str()))?;
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

/// Tokens by model, as a column.
fn spent(task: &TaskSummary) -> rusqlite::Result<Option<String>> {
    Some(&task.spent).filter(|spent| !spent.is_empty()).map(json).transpose()
}
