//! The tables beside the events. They hold nothing that the events do not: every row is a fold
//! over them, as `antiphon_core` folds them, written in the same transaction.

use std::mem;

use antiphon_core::{
    AgentStatus, ApprovalDecided, ApprovalId, ApprovalStatus, EventBody, InteractionId, Position,
    Replied, Seq, SessionId, TaskId, Usage,
};
use rusqlite::{OptionalExtension, Transaction, params};

use crate::column::{read_usage, usage, word};
use crate::spending;
use crate::standing::TaskHeadCache;
use crate::task_row::{TASK_COLUMNS, read_agent, read_task, task_columns};

/// Where a task stands. What only a handover changes is not among it.
macro_rules! update_task {
    ($more:literal) => {
        concat!(
            "UPDATE tasks SET status = ?2, waiting_for = ?3, title = ?4,
                 preview = coalesce(?5, preview), seq = ?6, turns = ?7, calls = ?8,
                 messages = ?9, last_s = ?10, last_ns = ?11",
            $more,
            " WHERE id = ?1"
        )
    };
}

const UPDATE_TASK: &str = update_task!("");
const END_TASK: &str = update_task!(", ended = 1");

/// The seq of the last event of a task that is more than an arrival. Positions go up with seqs, and
/// the index of a task is walked back from its end.
pub(crate) const SETTLED: &str = "SELECT seq FROM events
    WHERE task = ? AND type <> 'message_queued' ORDER BY position DESC LIMIT 1";

/// One transaction on them.
#[derive(Debug)]
pub(crate) struct Tables<'a> {
    transaction: &'a Transaction<'a>,
}

impl<'a> Tables<'a> {
    pub(crate) fn new(transaction: &'a Transaction<'a>) -> Self {
        Self { transaction }
    }

    /// Where a task stands. Its `preview` and `spent` are empty: nothing of them has to be written.
    pub(crate) fn standing(&self, task_id: &TaskId) -> rusqlite::Result<Option<TaskHeadCache>> {
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
        Ok(Some(TaskHeadCache::of(row, summary, self.settled(row)?, agent)))
    }

    /// The last event of a task that is more than an arrival. There is one: its creation.
    fn settled(&self, row: i64) -> rusqlite::Result<Seq> {
        self.transaction
            .prepare_cached(SETTLED)?
            .query_row([row], |row| row.get(0).map(Seq))
            .optional()
            .map(Option::unwrap_or_default)
    }

    /// The number of the next task.
    pub(crate) fn next_row(&self) -> rusqlite::Result<i64> {
        self.transaction
            .prepare_cached("SELECT coalesce(max(id), 0) + 1 FROM tasks")?
            .query_row((), |row| row.get(0))
    }

    /// Adds a task.
    pub(crate) fn create(&self, standing: &mut TaskHeadCache) -> rusqlite::Result<()> {
        let (row, task) = (standing.row, &standing.summary);
        let session = self.add_to_session(&task.session_id, row)?;
        let root = Some(task.root.as_str()).filter(|root| *root != task.task_id.as_str());
        self.transaction
            .prepare_cached(
                "INSERT INTO tasks (id, task_id, session, agent, parent, root, model, status,
                     waiting_for, title, preview, seq, turns, calls, messages, created_s,
                     created_ns, last_s, last_ns, ended, payer)
                 VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
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
            ])?;
        standing.summary.preview = None;
        self.settle(standing)
    }

    /// The number of a session, of which that task is the newest. Not one statement that returns
    /// it: SQLite makes a table of its own for that.
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

    /// Writes where a task stands now.
    pub(crate) fn update(&self, standing: &mut TaskHeadCache) -> rusqlite::Result<()> {
        let task = &standing.summary;
        // Setting `ended` has a price, and it is set once.
        let update = if task.status.is_terminal() { END_TASK } else { UPDATE_TASK };
        self.transaction.prepare_cached(update)?.execute((
            standing.row,
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
        ))?;
        standing.summary.preview = None;
        self.settle(standing)
    }

    /// Writes what else follows from one event. The row of its task is there.
    pub(crate) fn note(
        &self,
        standing: &mut TaskHeadCache,
        position: Position,
        body: &EventBody,
    ) -> rusqlite::Result<()> {
        let row = standing.row;
        match body {
            EventBody::MessageQueued(queued) => {
                standing.beside.messages = true;
                if let Some(old) = queued.replaces {
                    self.take_from_queue(row, old)?;
                }
                self.queue(row, position, queued.id)
            }
            EventBody::Replied(replied) => {
                self.take_from_queue(row, replied.in_reply_to)?;
                self.reply(position, replied)
            }
            EventBody::MessageAppended(appended) => match appended.queued {
                Some(id) => self.take_from_queue(row, id),
                None => Ok(()),
            },
            EventBody::ApprovalRequested(asked) => {
                standing.beside.messages = true;
                self.ask(row, position, &asked.approval_id)
            }
            EventBody::ApprovalDecided(decided) => self.decide(row, position, decided),
            EventBody::HandedOver(_) => self.hand_over(standing),
            EventBody::StatusChanged(change) if change.status.is_terminal() => self.end(standing),
            EventBody::StatusChanged(_)
            | EventBody::TaskCreated(_)
            | EventBody::StateChanged(_)
            | EventBody::ToolRefused(_)
            | EventBody::ToolRequested(_)
            | EventBody::Dispatched(_)
            | EventBody::Awaited(_)
            | EventBody::RequestSent(_)
            | EventBody::Relayed(_)
            | EventBody::ToolStarted(_)
            | EventBody::UsageRecorded(_)
            | EventBody::BudgetRaised(_)
            | EventBody::OutputRejected(_)
            | EventBody::Compacted(_) => Ok(()),
        }
    }

    /// Writes whose task it is now, and who answers.
    fn hand_over(&self, standing: &TaskHeadCache) -> rusqlite::Result<()> {
        let task = &standing.summary;
        self.transaction
            .prepare_cached("UPDATE tasks SET agent = ?2, model = ?3 WHERE id = ?1")?
            .execute((standing.row, &task.agent, task.model.as_ref().map(ToString::to_string)))?;
        Ok(())
    }

    /// Nothing of a task waits any longer when it has ended. Its messages and approvals go together.
    pub(crate) fn end(&self, standing: &TaskHeadCache) -> rusqlite::Result<()> {
        let agent = ["DELETE FROM agents WHERE task = ?"];
        let more = [
            "DELETE FROM inbox WHERE task = ?",
            "UPDATE approvals SET status = 'void' WHERE task = ? AND status = 'pending'",
        ];
        let agent = agent.into_iter().filter(|_| standing.beside.agent);
        for statement in agent.chain(more.into_iter().filter(|_| standing.beside.messages)) {
            self.transaction.prepare_cached(statement)?.execute([standing.row])?;
        }
        Ok(())
    }

    /// Writes what a task spent, and where its agent is.
    fn settle(&self, standing: &mut TaskHeadCache) -> rusqlite::Result<()> {
        let spent = mem::take(&mut standing.summary.spent);
        let spends = !spent.is_empty();
        for (model, spent) in spent {
            let before = if standing.beside.usage {
                self.spent(standing.row, &model)?
            } else {
                Usage::default()
            };
            self.spend(standing.row, &model, before, spent)?;
        }
        standing.beside.usage |= spends;
        if !standing.spending.is_empty() {
            spending::add(self.transaction, &standing.spending.take())?;
        }
        if mem::take(&mut standing.agent_moved)
            && let Some(agent) = &standing.agent
        {
            self.move_agent(standing.row, agent)?;
            standing.beside.agent = true;
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
