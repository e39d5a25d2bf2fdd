//! Writes the events of a run to the journal, and reads what others wrote meanwhile.

use std::num::NonZeroUsize;

use antiphon_core::port::{Append, Expected, JournalError, Read};
use antiphon_core::{AgentState, Event, EventBody, Position, Seq};

use crate::orchestrator_error::OrchestratorError;
use crate::task::decide::is_answered;
use crate::task::state::checkpoint;
use crate::task::step::{TaskRun, UnsettledCall};

/// Result of a write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FlushOutcome {
    /// The events are written.
    Written,
    /// The events are written after events of others: decide again.
    Overtaken,
    /// The task has ended.
    Ended,
}

impl TaskRun {
    /// Writes all unwritten events, as soon as the journal takes them. Events of other writers come before them. Queued messages do not
    /// conflict with the task's writer, except at the task's end.
    pub(crate) async fn flush(&mut self) -> Result<FlushOutcome, OrchestratorError> {
        let mut flushed = FlushOutcome::Written;
        self.running.recorded().await;
        while !self.unwritten.is_empty() {
            if self.ending_from.is_some() {
                self.remember_cancel().await?;
            }
            let written = self.state.seq.0 - self.unwritten.len() as u64;
            let expected = match self.ending_from {
                Some(_) => Expected::At(Seq(written)),
                None => Expected::AtOrArrivals(Seq(written)),
            };
            let append = || Append {
                task_id: self.state.task_id.clone(),
                expected,
                at: self.services.deps.clock.now(),
                events: self.unwritten.clone(),
                key: None,
            };
            let heartbeat = || self.running.heartbeat();
            match self.services.append_when_possible(append, heartbeat).await {
                Ok(appended) => {
                    for tree in &self.trees {
                        tree.add(&self.unwritten);
                    }
                    let news = std::mem::take(&mut self.unwritten);
                    (self.ending_from, self.before_end) = (None, None);
                    if appended.seq > self.state.seq {
                        let before = Seq(appended.seq.0 - news.len() as u64);
                        self.apply_between(Seq(written), before, appended.position).await?;
                        flushed = FlushOutcome::Overtaken;
                    }
                    self.state.position = appended.position;
                    checkpoint::save_while_running(&self.services, &self.state, Seq(written));
                    self.deliver_replies(&news).await?;
                }
                Err(JournalError::Stale { .. } | JournalError::Ended { .. }) => {
                    flushed = FlushOutcome::Overtaken;
                    self.rebase().await?;
                }
                Err(error) => return Err(error.into()),
            }
        }
        // Every result is written, or dropped because the task has ended.
        for UnsettledCall { tool, call_uuid } in std::mem::take(&mut self.unsettled) {
            self.deps.tools.settled(&tool, &self.state.task_id, call_uuid).await;
        }
        Ok(if self.state.status.is_terminal() { FlushOutcome::Ended } else { flushed })
    }

    /// Tells tools about calls of the last answer whose results are recorded: the process that recorded
    /// them may have ended before it did.
    pub(crate) async fn settle_recorded(&self) {
        let Some((answer, since)) = self.state.last_step() else { return };
        for call in answer.tool_calls().filter(|call| is_answered(&call.id, since)) {
            let call_uuid = self.call_uuid(call);
            self.deps.tools.settled(&call.name, &self.state.task_id, call_uuid).await;
        }
    }

    /// Applies the events after `after` and up to `until`, which precede the events just written. Their
    /// relative order makes no difference.
    async fn apply_between(
        &mut self,
        after: Seq,
        until: Seq,
        end: Position,
    ) -> Result<(), OrchestratorError> {
        let mut behind = self.state.position;
        while behind < end {
            let read = Read {
                task_id: Some(self.state.task_id.clone()),
                after: behind,
                limit: NonZeroUsize::MAX,
            };
            let page = self.services.deps.journal.read(read).await?;
            if page.events.is_empty() {
                break;
            }
            behind = page.next;
            let arrived = |event: &&Event| event.seq > after && event.seq <= until;
            for event in page.events.iter().filter(arrived) {
                self.state.apply(&event.body);
            }
        }
        Ok(())
    }

    /// Writes what is unwritten, then reads the events since the last read.
    pub(crate) async fn read_arrivals(&mut self) -> Result<(), OrchestratorError> {
        self.flush().await?;
        if !self.services.reader.catch_up(&mut self.state).await? {
            self.rebase().await?;
        }
        Ok(())
    }

    /// Reloads the task and puts unwritten events after those of others. If others ended the task, the
    /// unwritten events are dropped. An own end is dropped and decided again.
    pub(crate) async fn rebase(&mut self) -> Result<(), OrchestratorError> {
        self.state = self.services.reader.load(&self.state.task_id).await?;
        let mut unwritten = std::mem::take(&mut self.unwritten);
        unwritten.truncate(self.ending_from.take().unwrap_or(unwritten.len()));
        if let (Some(before), Some(last)) = (self.before_end.take(), unwritten.last_mut()) {
            *last = before.into();
        }
        if self.state.status.is_terminal() {
            return Ok(());
        }
        let own = self.state.agent_id == Some(self.agent_id);
        self.agent_state = if own { self.state.agent_state } else { AgentState::Idle };
        for body in unwritten {
            if let EventBody::StateChanged(change) = &body {
                self.agent_state = change.to;
            }
            if let EventBody::Replied(replied) = &body
                && !self.state.has_open_request(replied.in_reply_to)
            {
                // Another writer has answered meanwhile, or the request is closed.
                continue;
            }
            let waits = self.state.waiting_for.is_some_and(|what| !what.continues_by_itself());
            // A pause of the user takes precedence.
            if !(waits && matches!(&body, EventBody::StatusChanged(_))) {
                self.push(body);
            }
        }
        Ok(())
    }
}
