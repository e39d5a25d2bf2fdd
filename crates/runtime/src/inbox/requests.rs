//! Requests between agents: sent and answered.
//!
//! | recorded                      | by            | before                                        |
//! |-------------------------------|---------------|-----------------------------------------------|
//! | `request_sent`                | the requester | the request is in the peer's inbox            |
//! | `message_queued`, the request | the requester | the peer reads it                             |
//! | `replied`                     | the peer      | the answer is in the requester's inbox        |
//! | `message_queued`, the answer  | either        | the requester reads it                        |
//!
//! The last is recorded once for each request: the answer or the requester's timeout, whichever is
//! first (`overdue_requests`). After a crash in between, the requester looks for the recorded answer and sends its request
//! again under the same id.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use antiphon_core::port::{Append, Expected, IdempotencyKey, JournalError};
use antiphon_core::{
    AgentName, EventBody, HandlingMode, Interaction, InteractionContent, InteractionId,
    MessageAppended, MessageQueued, Provenance, Replied, ResponseStatus, Sender, SilentIntents,
    TaskId, ToolResult, Wake, classify,
};
use serde_json::{Value, json};

use crate::inbox::admission;
use crate::inbox::admission::{Origin, StartPolicy};
use crate::inbox::arrival::{Arrival, Receipt, Rejection};
use crate::inbox::derived_id;
use crate::inbox::open_requests::OutboundRequest;
use crate::inbox::residents;
use crate::inbox::start_agent;
use crate::orchestrator_error::OrchestratorError;
use crate::services::Services;
use crate::task::schedule::deadlines;
use crate::task::schedule::supervise;
use crate::task::step::TaskRun;
use crate::task::step::tools;

/// Requests of running tasks that this process has sent or checked.
#[derive(Debug, Default)]
pub(crate) struct SentRequests(Mutex<HashMap<TaskId, HashSet<InteractionId>>>);

impl SentRequests {
    fn table(&self) -> MutexGuard<'_, HashMap<TaskId, HashSet<InteractionId>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The open requests of a task that this process has not handled. Drops those that are closed.
    fn unknown(
        &self,
        task_id: &TaskId,
        open: &BTreeMap<InteractionId, OutboundRequest>,
    ) -> Vec<InteractionId> {
        let mut table = self.table();
        if open.is_empty() {
            table.remove(task_id);
            return Vec::new();
        }
        let known = table.entry(task_id.clone()).or_default();
        known.retain(|id| open.contains_key(id));
        open.keys().filter(|id| !known.contains(id)).copied().collect()
    }

    fn add(&self, task_id: &TaskId, id: InteractionId) {
        self.table().entry(task_id.clone()).or_default().insert(id);
    }

    pub(crate) fn forget(&self, task_id: &TaskId) {
        self.table().remove(task_id);
    }
}

/// Queues a reply in the inbox of the task that waits for it, once.
pub(crate) async fn deliver_reply(
    services: &Arc<Services>,
    by: &str,
    replied: &Replied,
) -> Result<(), OrchestratorError> {
    let Some(task_id) = replied.reply_to.clone() else { return Ok(()) };
    let word = if replied.status.is_final() { "final" } else { "accepted" };
    let key = format!("response:{}:{word}", replied.in_reply_to);
    let interaction = Interaction {
        id: derived_id::of_name(&key),
        from: Sender::agent(by),
        content: InteractionContent::Response {
            in_reply_to: replied.in_reply_to,
            status: replied.status,
            result: replied.result.clone(),
        },
        handling_mode: HandlingMode::Steer,
        render_metadata: None,
    };
    let queued = MessageQueued::of(classify(interaction, &SilentIntents::default()))
        .from_provenance(Provenance::Agent(by.to_owned()));
    let append = Append {
        task_id: task_id.clone(),
        expected: Expected::Exists,
        at: services.deps.clock.now(),
        events: vec![queued.into()],
        key: Some(IdempotencyKey(key)),
    };
    let appended = services.append(append).await;
    if appended.is_ok() && replied.status.is_final() {
        services.request_waits.answered(&task_id, replied.in_reply_to);
    }
    match appended {
        Ok(_) => supervise::start(services, &task_id),
        // The task has ended. If it was a resident task, its successor has the request.
        Err(JournalError::Ended { .. }) => {
            if let Some(successor) = successor(services, &task_id).await? {
                let forwarded = Replied { reply_to: Some(successor), ..replied.clone() };
                Box::pin(deliver_reply(services, by, &forwarded)).await?;
            }
        }
        Err(JournalError::Stale { .. }) => {}
        Err(error) => {
            // The reply is recorded in the replying task: the requester looks for it there.
            services.sent_requests.forget(&task_id);
            supervise::start(services, &task_id);
            return Err(error.into());
        }
    }
    Ok(())
}

/// The current resident task of the agent whose task has ended.
async fn successor(
    services: &Services,
    task_id: &TaskId,
) -> Result<Option<TaskId>, OrchestratorError> {
    let gone = services.reader.summary(task_id).await?;
    let Ok(name) = AgentName::parse(&gone.agent) else { return Ok(None) };
    if !residents::is_resident(&gone) {
        return Ok(None);
    }
    let live = start_agent::newest_resident(services, &name)
        .await?
        .filter(|last| !last.status.is_terminal());
    Ok(live.map(|live| live.task_id))
}

/// Answers a request for an agent without tools of ours, such as a program in a terminal. Returns false when the
/// agent has no such open request. The same answer a second time changes nothing.
pub(crate) async fn answer_for_agent(
    services: &Arc<Services>,
    task_id: &TaskId,
    request: InteractionId,
    status: ResponseStatus,
    result: &Value,
) -> Result<bool, OrchestratorError> {
    loop {
        let state = services.reader.load_without_messages(task_id).await?;
        let open = Some(&state).filter(|state| !state.status.is_terminal());
        let Some(answer) = open.and_then(|it| it.answer(request, status, result.clone())) else {
            let given = services.deps.journal.reply(request).await?;
            return Ok(given.is_some_and(|it| it.status == status && it.result == *result));
        };
        let append = Append {
            task_id: task_id.clone(),
            expected: Expected::AtOrArrivals(state.seq),
            at: services.deps.clock.now(),
            events: vec![answer.clone().into()],
            key: None,
        };
        match services.append(append).await {
            Ok(_) => {
                deliver_reply(services, &state.created.agent, &answer).await?;
                supervise::start(services, task_id);
                return Ok(true);
            }
            // Another writer was first: look again.
            Err(JournalError::Stale { .. } | JournalError::Ended { .. }) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

impl TaskRun {
    /// Queues a request in the inbox of the peer, once.
    pub(crate) async fn queue_request(
        &self,
        id: InteractionId,
        sent: &OutboundRequest,
    ) -> Result<Result<(), Rejection>, OrchestratorError> {
        self.services.sent_requests.add(&self.state.task_id, id);
        deadlines::watch_task(&self.services, sent.until, self.state.task_id.clone());
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
            provenance: self.provenance(),
        };
        let origin = Origin {
            id,
            reply_to: Some(self.state.task_id.clone()),
            key: Some(IdempotencyKey(format!("request:{id}"))),
            starts: StartPolicy::OnlyStarted,
            hops: sent.hops.saturating_add(1),
        };
        Ok(match admission::admit_as(&self.services, arrival, origin).await? {
            Receipt::Accepted { .. } | Receipt::Deduplicated { .. } | Receipt::Filtered => Ok(()),
            Receipt::Rejected(rejection) => Err(rejection),
        })
    }

    /// What this agent sends came from an agent, whatever it says.
    pub(crate) fn provenance(&self) -> Provenance {
        Provenance::Agent(self.state.created.agent.clone())
    }

    /// This agent as a sender.
    pub(crate) fn sender(&self) -> Sender {
        Sender::agent(&self.state.created.agent)
    }

    /// Handles open requests that an earlier process sent.
    pub(crate) async fn rejoin_requests(&mut self) -> Result<(), OrchestratorError> {
        let unknown =
            self.services.sent_requests.unknown(&self.state.task_id, &self.state.outbound_requests);
        if unknown.is_empty() {
            return Ok(());
        }
        for id in unknown {
            let Some(sent) = self.state.outbound_requests.get(&id).cloned() else { continue };
            let answer = match self.services.deps.journal.reply(id).await? {
                // The answer may be addressed to the predecessor of this task.
                Some(replied) => {
                    Some(Replied { reply_to: Some(self.state.task_id.clone()), ..replied })
                }
                None => match self.queue_request(id, &sent).await? {
                    Ok(()) => None,
                    Err(rejection) => Some(self.rejection_reply(id, &rejection)),
                },
            };
            if let Some(answer) = answer {
                deliver_reply(&self.services, sent.to.as_str(), &answer).await?;
            }
        }
        self.read_arrivals().await
    }

    /// The reply to a request that the peer's inbox rejected.
    pub(crate) fn rejection_reply(&self, id: InteractionId, rejection: &Rejection) -> Replied {
        self.failed_reply(id, "rejected", &rejection.to_string())
    }

    /// A reply that says why there is none of the peer.
    pub(super) fn failed_reply(
        &self,
        in_reply_to: InteractionId,
        code: &str,
        error: &str,
    ) -> Replied {
        Replied {
            in_reply_to,
            to: self.sender(),
            reply_to: Some(self.state.task_id.clone()),
            status: ResponseStatus::Failed,
            result: json!({ "code": code, "error": error }),
        }
    }

    /// Answers the request that the turn was about.
    pub(crate) async fn answer_current_request(
        &mut self,
        word: Value,
    ) -> Result<(), OrchestratorError> {
        if let Some(subject) = self.state.current_request {
            self.reply(subject, ResponseStatus::Completed, word);
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
    pub(crate) async fn deliver_replies(
        &self,
        written: &[EventBody],
    ) -> Result<(), OrchestratorError> {
        for body in written {
            if let EventBody::Replied(replied) = body {
                deliver_reply(&self.services, &self.state.created.agent, replied).await?;
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
        let text = json!({ "request_id": request, "status": status, "result": result }).to_string();
        let result = match status {
            ResponseStatus::Completed | ResponseStatus::Accepted => ToolResult::text(text),
            ResponseStatus::Failed => ToolResult::failed(text),
        };
        let queued = Some(response.id);
        let message = tools::message(call, result, self.services.deps.clock.now());
        self.push(MessageAppended { queued, ..MessageAppended::new(message) });
    }
}
