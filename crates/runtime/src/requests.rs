//! Requests between agents: sent, answered, or not answered in time.
//!
//! | written                       | by          | before                                          |
//! |-------------------------------|-------------|-------------------------------------------------|
//! | `request_sent`                | who asks    | the request is in anybody's inbox               |
//! | `message_queued`, the request | who asks    | the one who is asked reads it                   |
//! | `replied`                     | who is asked| the answer is in anybody's inbox                |
//! | `message_queued`, the answer  | either      | the one who asked reads it                      |
//!
//! The last is written once for each request, whoever comes first: the answer, or the clock of the
//! one who asked. Killed in between, the one who asked looks for the answer where it was written, and
//! sends its request again, which is the same request.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use antiphon_core::port::{Append, Expected, IdempotencyKey, JournalError};
use antiphon_core::{
    AgentName, EventBody, HandlingMode, Interaction, InteractionContent, InteractionId,
    MessageAppended, MessageQueued, Replied, ResponseStatus, Sender, SilentIntents, TaskId,
    ToolResult, classify,
};
use serde_json::{Value, json};

use crate::admission::{Origin, Starts};
use crate::arrival::{Arrival, Receipt, Rejection, Wake};
use crate::flight;
use crate::inner::Inner;
use crate::lap::Work;
use crate::orchestrator_error::OrchestratorError;
use crate::owed::OutboundRequest;
use crate::roster;
use crate::running;
use crate::tools;

/// The requests of running tasks that this process has sent or looked after.
#[derive(Debug, Default)]
pub(crate) struct Outstanding(Mutex<HashMap<TaskId, HashSet<InteractionId>>>);

impl Outstanding {
    fn book(&self) -> MutexGuard<'_, HashMap<TaskId, HashSet<InteractionId>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Which of a task's requests nobody has looked after. Those that are no longer open are
    /// forgotten.
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
    /// Puts an answer into the inbox of whoever waits for it, once.
    pub(crate) async fn deliver(
        self: &Arc<Self>,
        by: &str,
        replied: &Replied,
    ) -> Result<(), OrchestratorError> {
        let Some(task_id) = replied.reply_to.clone() else { return Ok(()) };
        let word = if replied.status.is_final() { "final" } else { "accepted" };
        let key = format!("response:{}:{word}", replied.in_reply_to);
        let interaction = Interaction {
            id: flight::named_id(&key),
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
            expected: Expected::Exists,
            at: self.world.clock.now(),
            events: vec![queued.into()],
            key: Some(IdempotencyKey(key)),
        };
        match self.append(append).await {
            Ok(_) => running::start(self, &task_id),
            // It has gone. If it was an agent's, the next one in its place has asked.
            Err(JournalError::Ended { .. }) => {
                if let Some(heir) = self.heir(&task_id).await? {
                    let heard = Replied { reply_to: Some(heir), ..replied.clone() };
                    Box::pin(self.deliver(by, &heard)).await?;
                }
            }
            Err(JournalError::Stale { .. }) => {}
            Err(error) => {
                // It is written where it was given: whoever waits looks for it there.
                self.outstanding.forget(&task_id);
                running::start(self, &task_id);
                return Err(error.into());
            }
        }
        Ok(())
    }
}

impl Inner {
    /// Who stands in the place of an agent's task that has ended.
    async fn heir(&self, task_id: &TaskId) -> Result<Option<TaskId>, OrchestratorError> {
        let gone = self.summary(task_id).await?;
        let Ok(name) = AgentName::parse(&gone.agent) else { return Ok(None) };
        if !roster::is_resident(&gone) {
            return Ok(None);
        }
        let live = self.last_of(&name).await?.filter(|last| !last.status.is_terminal());
        Ok(live.map(|live| live.task_id))
    }

    /// Says that a task has not answered in time, also while it is in the middle of something.
    pub(crate) async fn answer_late(
        self: &Arc<Self>,
        task_id: &TaskId,
        request: InteractionId,
    ) -> Result<(), OrchestratorError> {
        // Most are answered in time, and then nobody has to look at the task.
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
                expected: Expected::AtOrArrivals(state.seq),
                at: now,
                events: answers.iter().cloned().map(EventBody::from).collect(),
                key: None,
            };
            match self.append(append).await {
                Ok(_) => {
                    for answer in &answers {
                        self.deliver(&state.created.agent, answer).await?;
                    }
                    running::start(self, task_id);
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
    /// Puts a request into the inbox of the peer that it is for, once.
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

    /// This agent, to others.
    pub(crate) fn sender(&self) -> Sender {
        Sender::agent(&self.state.created.agent)
    }

    /// Looks after requests that were sent before this process began.
    pub(crate) async fn rejoin_requests(&mut self) -> Result<(), OrchestratorError> {
        let unknown = self.inner.outstanding.unknown(&self.state.task_id, &self.state.requests);
        if unknown.is_empty() {
            return Ok(());
        }
        for id in unknown {
            let Some(sent) = self.state.requests.get(&id).cloned() else { continue };
            let answer = match self.inner.world.journal.reply(id).await? {
                // It may have been given to the one before this one.
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

    /// The answer to a request that nobody took.
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

    /// Takes it that requests are not answered any more. If one was, at the last moment, that counts.
    pub(crate) async fn time_out(
        &mut self,
        ids: Vec<InteractionId>,
    ) -> Result<(), OrchestratorError> {
        self.flush().await?;
        for id in ids {
            let Some(sent) = self.state.requests.get(&id).cloned() else { continue };
            let late = || self.no(id, "timed_out", "nobody answered in time");
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

    /// Says that requests were not answered in time.
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

    /// Writes an answer, if somebody waits for one. It is delivered once it is written.
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

    /// Delivers the answers among what was just written.
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
