//! Requests between agents: sent, answered, or overdue.
//!
//! | recorded                      | by            | before                                        |
//! |-------------------------------|---------------|-----------------------------------------------|
//! | `request_sent`                | the requester | the request is in the peer's inbox            |
//! | `message_queued`, the request | the requester | the peer reads it                             |
//! | `replied`                     | the peer      | the answer is in the requester's inbox        |
//! | `message_queued`, the answer  | either        | the requester reads it                        |
//!
//! The last is recorded once for each request: the answer or the requester's timeout, whichever is
//! first. After a crash in between, the requester looks for the recorded answer and sends its request
//! again under the same id.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use antiphon_core::port::{Append, Expected, IdempotencyKey, JournalError};
use antiphon_core::{
    AgentName, EventBody, HandlingMode, Interaction, InteractionContent, InteractionId,
    MessageAppended, MessageQueued, Replied, ResponseStatus, Sender, SilentIntents, TaskId,
    ToolResult, classify,
};
use serde_json::{Value, json};

use crate::dispatch::pending_call;
use crate::inbox::admission::{Origin, Starts};
use crate::inbox::arrival::{Arrival, Receipt, Rejection, Wake};
use crate::inbox::open_requests::OutboundRequest;
use crate::inbox::residents;
use crate::orchestrator_error::OrchestratorError;
use crate::services::Inner;
use crate::task::run_slots;
use crate::task::step::Work;
use crate::task::tools;

/// Requests of running tasks that this process has sent or checked.
#[derive(Debug, Default)]
pub(crate) struct Outstanding(Mutex<HashMap<TaskId, HashSet<InteractionId>>>);

impl Outstanding {
    fn book(&self) -> MutexGuard<'_, HashMap<TaskId, HashSet<InteractionId>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The open requests of a task that this process has not handled. Drops those that are closed.
    fn unknown(
        &self,
        task_id: &TaskId,
        open: &BTreeMap<InteractionId, OutboundRequest>,
    ) -> Vec<InteractionId> {
        let mut book = self.book();
        if open.is_empty() {
            book.remove(task_id);
            return Vec::new();
        }
        let known = book.entry(task_id.clone()).or_default();
        known.retain(|id| open.contains_key(id));
        open.keys().filter(|id| !known.contains(id)).copied().collect()
    }

    fn add(&self, task_id: &TaskId, id: InteractionId) {
        self.book().entry(task_id.clone()).or_default().insert(id);
    }

    pub(crate) fn forget(&self, task_id: &TaskId) {
        self.book().remove(task_id);
    }
}

impl Inner {
    /// Queues a reply in the inbox of the task that waits for it, once.
    pub(crate) async fn deliver(
        self: &Arc<Self>,
        by: &str,
        replied: &Replied,
    ) -> Result<(), OrchestratorError> {
        let Some(task_id) = replied.reply_to.clone() else { return Ok(()) };
        let word = if replied.status.is_final() { "final" } else { "accepted" };
        let key = format!("response:{}:{word}", replied.in_reply_to);
        let interaction = Interaction {
            id: pending_call::named_id(&key),
            from: Sender::agent(by),
            content: InteractionContent::Response {
                in_reply_to: replied.in_reply_to,
                status: replied.status,
                result: replied.result.clone(),
            },
            handling_mode: HandlingMode::Steer,
            render_metadata: None,
        };
        let queued = MessageQueued::of(classify(interaction, &SilentIntents::default()));
        let append = Append {
            task_id: task_id.clone(),
            expected: Expected::There,
            at: self.world.clock.now(),
            events: vec![queued.into()],
            key: Some(IdempotencyKey(key)),
        };
        match self.append(append).await {
            Ok(_) => run_slots::start(self, &task_id),
            // The task has ended. If it was a resident task, its successor has the request.
            Err(JournalError::Ended { .. }) => {
                if let Some(heir) = self.heir(&task_id).await? {
                    let heard = Replied { reply_to: Some(heir), ..replied.clone() };
                    Box::pin(self.deliver(by, &heard)).await?;
                }
            }
            Err(JournalError::Stale { .. }) => {}
            Err(error) => {
                // The reply is recorded in the replying task: the requester looks for it there.
                self.outstanding.forget(&task_id);
                run_slots::start(self, &task_id);
                return Err(error.into());
            }
        }
        Ok(())
    }
}

impl Inner {
    /// The current resident task of the agent whose task has ended.
    async fn heir(&self, task_id: &TaskId) -> Result<Option<TaskId>, OrchestratorError> {
        let gone = self.summary(task_id).await?;
        let Ok(name) = AgentName::parse(&gone.agent) else { return Ok(None) };
        if !residents::is_resident(&gone) {
            return Ok(None);
        }
        let live = self.last_of(&name).await?.filter(|last| !last.status.is_terminal());
        Ok(live.map(|live| live.task_id))
    }

    /// Records replies to overdue requests, also while the task is in the middle of a step.
    pub(crate) async fn answer_late(
        self: &Arc<Self>,
        task_id: &TaskId,
        request: InteractionId,
    ) -> Result<(), OrchestratorError> {
        // Most requests are answered in time: then the task is not loaded.
        if self.world.journal.reply(request).await?.is_some() {
            return Ok(());
        }
        loop {
            let state = self.load(task_id).await?;
            let now = self.world.clock.now();
            let late = state.late_answers(now).into_iter();
            let answers: Vec<Replied> = late.filter_map(|id| state.too_late(id)).collect();
            if answers.is_empty() || state.status.is_terminal() {
                return Ok(());
            }
            let append = Append {
                task_id: task_id.clone(),
                expected: Expected::Behind(state.seq),
                at: now,
                events: answers.iter().cloned().map(EventBody::from).collect(),
                key: None,
            };
            match self.append(append).await {
                Ok(_) => {
                    for answer in &answers {
                        self.deliver(&state.created.agent, answer).await?;
                    }
                    run_slots::start(self, task_id);
                    return Ok(());
                }
                Err(JournalError::Stale { .. }) => {}
                Err(JournalError::Ended { .. }) => return Ok(()),
                Err(error) => return Err(error.into()),
            }
        }
    }
}

impl Work {
    /// Queues a request in the inbox of the peer, once.
    pub(crate) async fn post_request(
        &self,
        id: InteractionId,
        sent: &OutboundRequest,
    ) -> Result<Result<(), Rejection>, OrchestratorError> {
        self.inner.outstanding.add(&self.state.task_id, id);
        self.inner.watch_task(sent.until, self.state.task_id.clone());
        let (intent, params) = (sent.intent.clone(), sent.params.clone());
        let arrival = Arrival {
            to: sent.to.clone(),
            from: self.sender(),
            content: InteractionContent::Request { intent, params },
            mode: HandlingMode::Queue,
            render_metadata: None,
            wake: Wake::Yes,
            until: Some(sent.until),
            key: None,
            payload: None,
        };
        let origin = Origin {
            id,
            reply_to: Some(self.state.task_id.clone()),
            key: Some(IdempotencyKey(format!("request:{id}"))),
            starts: Starts::No,
            hops: sent.hops.saturating_add(1),
        };
        Ok(match self.inner.admit_as(arrival, origin).await? {
            Receipt::Accepted { .. } | Receipt::Deduplicated { .. } | Receipt::Filtered => Ok(()),
            Receipt::Rejected(rejection) => Err(rejection),
        })
    }

    /// This agent as a sender.
    pub(crate) fn sender(&self) -> Sender {
        Sender::agent(&self.state.created.agent)
    }

    /// Handles open requests that an earlier process sent.
    pub(crate) async fn rejoin_requests(&mut self) -> Result<(), OrchestratorError> {
        let unknown = self.inner.outstanding.unknown(&self.state.task_id, &self.state.requests);
        if unknown.is_empty() {
            return Ok(());
        }
        for id in unknown {
            let Some(sent) = self.state.requests.get(&id).cloned() else { continue };
            let answer = match self.inner.world.journal.reply(id).await? {
                // The answer may be addressed to the predecessor of this task.
                Some(replied) => {
                    Some(Replied { reply_to: Some(self.state.task_id.clone()), ..replied })
                }
                None => match self.post_request(id, &sent).await? {
                    Ok(()) => None,
                    Err(rejection) => Some(self.refusal(id, &rejection)),
                },
            };
            if let Some(answer) = answer {
                self.inner.deliver(sent.to.as_str(), &answer).await?;
            }
        }
        self.hear_arrivals().await
    }

    /// The reply to a request that the peer's inbox rejected.
    pub(crate) fn refusal(&self, id: InteractionId, rejection: &Rejection) -> Replied {
        self.no(id, "rejected", &rejection.to_string())
    }

    fn no(&self, in_reply_to: InteractionId, code: &str, error: &str) -> Replied {
        Replied {
            in_reply_to,
            to: self.sender(),
            reply_to: Some(self.state.task_id.clone()),
            status: ResponseStatus::Failed,
            result: json!({ "code": code, "error": error }),
        }
    }

    /// Closes requests that were not answered in time. An answer recorded at the last moment counts.
    pub(crate) async fn time_out(
        &mut self,
        ids: Vec<InteractionId>,
    ) -> Result<(), OrchestratorError> {
        self.flush().await?;
        for id in ids {
            let Some(sent) = self.state.requests.get(&id).cloned() else { continue };
            let late = || self.no(id, "timed_out", "no answer in time");
            let mut answer = self.inner.world.journal.reply(id).await?.unwrap_or_else(late);
            answer.reply_to = Some(self.state.task_id.clone());
            self.inner.deliver(sent.to.as_str(), &answer).await?;
        }
        self.hear_arrivals().await
    }

    /// Answers the request that the turn was about.
    pub(crate) async fn answer_owed(&mut self, word: Value) -> Result<(), OrchestratorError> {
        if let Some(subject) = self.state.subject {
            self.reply(subject, ResponseStatus::Completed, word);
        }
        self.flush().await.map(drop)
    }

    /// Answers overdue requests as failed.
    pub(crate) async fn expire(
        &mut self,
        ids: Vec<InteractionId>,
    ) -> Result<(), OrchestratorError> {
        for id in ids {
            if let Some(answer) = self.state.too_late(id) {
                self.push(answer);
            }
        }
        self.flush().await.map(drop)
    }

    /// Adds a reply to an open request. It is delivered once it is written.
    pub(crate) fn reply(
        &mut self,
        id: InteractionId,
        status: ResponseStatus,
        result: Value,
    ) -> bool {
        let Some(answer) = self.state.answer(id, status, result) else { return false };
        self.push(answer);
        true
    }

    /// Delivers the replies among the written events.
    pub(crate) async fn deliver_all(&self, written: &[EventBody]) -> Result<(), OrchestratorError> {
        for body in written {
            if let EventBody::Replied(replied) = body {
                self.inner.deliver(&self.state.created.agent, replied).await?;
            }
        }
        Ok(())
    }

    /// Gives a call that waited for a peer its result.
    pub(crate) fn take_response(
        &mut self,
        call: &antiphon_core::ToolCallBlock,
        request: InteractionId,
    ) {
        let Some(response) = self.state.response_to(request) else { return };
        let InteractionContent::Response { status, result, .. } = &response.content else { return };
        let told = json!({ "request_id": request, "status": status, "result": result }).to_string();
        let result = match status {
            ResponseStatus::Completed | ResponseStatus::Accepted => ToolResult::text(told),
            ResponseStatus::Failed => ToolResult::failed(told),
        };
        let queued = Some(response.id);
        let message = tools::message(call, result, self.inner.world.clock.now()).into();
        self.push(MessageAppended { message, queued });
    }
}
