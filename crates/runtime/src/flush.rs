//! Writing down what a task has done, and hearing what others wrote meanwhile.

use std::num::NonZeroUsize;

use antiphon_core::port::{Append, Expected, JournalError, Read};
use antiphon_core::{AgentState, Event, EventBody, Position, Seq, WaitingFor};

use crate::lap::Work;
use crate::orchestrator_error::OrchestratorError;

/// What became of what was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Flushed {
    /// It is written.
    Kept,
    /// It is written, and somebody else wrote before it: decide again.
    Moved,
    /// The task has ended.
    Over,
}

impl Work {
    /// Makes durable what is not. What others wrote meanwhile comes before it; what only arrived
    /// is in nobody's way, unless this is the end.
    pub(crate) async fn flush(&mut self) -> Result<Flushed, OrchestratorError> {
        let mut flushed = Flushed::Kept;
        while !self.unwritten.is_empty() {
            let written = self.state.seq.0 - self.unwritten.len() as u64;
            let expected = match self.ending_from {
                Some(_) => Expected::At(Seq(written)),
                None => Expected::AtOrArrivals(Seq(written)),
            };
            let append = Append {
                task_id: self.state.task_id.clone(),
                expected,
                at: self.inner.world.clock.now(),
                events: self.unwritten.clone(),
                key: None,
            };
            match self.inner.append(append).await {
                Ok(appended) => {
                    for tree in &self.trees {
                        tree.add(&self.unwritten);
                    }
                    let news = std::mem::take(&mut self.unwritten);
                    self.ending_from = None;
                    if appended.seq > self.state.seq {
                        let before = Seq(appended.seq.0 - news.len() as u64);
                        self.hear_between(Seq(written), before, appended.position).await?;
                        flushed = Flushed::Moved;
                    }
                    self.state.position = appended.position;
                    self.deliver_all(&news).await?;
                }
                Err(JournalError::Stale { .. } | JournalError::Ended { .. }) => {
                    flushed = Flushed::Moved;
                    self.catch_up().await?;
                }
                Err(error) => return Err(error.into()),
            }
        }
        Ok(if self.state.status.is_terminal() { Flushed::Over } else { flushed })
    }

    /// Adds what arrived behind `after` and up to `until`, which stands in front of what was just
    /// written. In which order they are added makes no difference.
    async fn hear_between(
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
            let page = self.inner.world.journal.read(read).await?;
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

    /// Adds what arrived since it last looked, when nothing of its own is unwritten.
    pub(crate) async fn hear_arrivals(&mut self) -> Result<(), OrchestratorError> {
        self.flush().await?;
        if !self.inner.bring_to_now(&mut self.state).await? {
            self.catch_up().await?;
        }
        Ok(())
    }

    /// Reads what others wrote, and puts what is not written yet behind it. If they ended the
    /// task, what is left unsaid stays so; an end of our own is thought over.
    pub(crate) async fn catch_up(&mut self) -> Result<(), OrchestratorError> {
        self.state = self.inner.load(&self.state.task_id).await?;
        let mut unwritten = std::mem::take(&mut self.unwritten);
        unwritten.truncate(self.ending_from.take().unwrap_or(unwritten.len()));
        if self.state.status.is_terminal() {
            return Ok(());
        }
        let own = self.state.agent_id == Some(self.agent_id);
        self.at = if own { self.state.agent_state } else { AgentState::Idle };
        for body in unwritten {
            if let EventBody::StateChanged(change) = &body {
                self.at = change.to;
            }
            if let EventBody::Replied(replied) = &body
                && !self.state.waits_for_answer(replied.in_reply_to)
            {
                // Somebody has answered meanwhile, or nobody waits any more.
                continue;
            }
            // What waits for the budget goes on by itself.
            let waits = self.state.waiting_for.is_some_and(|what| what != WaitingFor::Budget);
            // Whoever paused it meanwhile means it.
            if !(waits && matches!(&body, EventBody::StatusChanged(_))) {
                self.push(body);
            }
        }
        Ok(())
    }
}
