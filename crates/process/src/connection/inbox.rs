//! Inboxes and live agents, through this process or through the server that owns the journal. The answers
//! are the same.

use std::num::NonZeroU32;
use std::time::{Duration, Instant};

use antiphon_api::{
    AgentPresence, PresenceQuery, Receipt, RequestState, RequestStatus, SendInteraction,
};
use antiphon_client::ClientError;
use antiphon_core::port::{Clock, SystemClock};
use antiphon_core::{
    AgentName, InteractionContent, InteractionId, Provenance, RenderMetadata, Sender, TaskId, Wake,
};
use antiphon_project::{LIVE_MAX, sort_by_name};
use antiphon_runtime::{Arrival, Orchestrator, REQUEST_TIMEOUT_S_DEFAULT, Rejection, StartedAgent};
use chrono::TimeDelta;
use serde::Serialize;
use serde_json::Value;

use super::{Connection, ProjectServer};
use antiphon_project::error::ProjectError;

/// How long one request waits at the server for an answer, in seconds.
const ANSWER_WAIT_S: u32 = 25;

/// How much longer than the agent's time limit a command waits for an answer.
const ANSWER_GRACE: Duration = Duration::from_secs(2);

/// How long a server that is to answer may be away.
const SERVER_WAIT: Duration = Duration::from_secs(30);

/// Pause before a server that does not answer is asked again.
const SERVER_PAUSE: Duration = Duration::from_millis(100);

/// The reason of an invalid interaction, which names the field too.
const INVALID: &str = "invalid";

/// An interaction to send to an agent.
#[derive(Debug, Clone)]
pub struct OutgoingInteraction {
    /// What is sent, and to which agent.
    pub arrival: Arrival,
    /// Time the agent has to answer a request, in seconds.
    pub timeout_s: Option<u32>,
}

/// What became of it.
#[derive(Debug)]
pub enum SendOutcome {
    /// The inbox has it.
    Accepted(AcceptedInteraction),
    /// The inbox did not take it.
    Rejected(RejectedInteraction),
}

/// The receipt of an interaction that the inbox has.
#[derive(Debug, Clone, Serialize)]
pub struct AcceptedInteraction {
    /// Whether the inbox had it before.
    pub receipt: ReceiptKind,
    /// Names it in later requests.
    pub id: InteractionId,
    /// The agent's resident task, which reads it.
    pub task_id: TaskId,
}

/// Whether the inbox had it before.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ReceiptKind {
    /// It is new.
    Accepted,
    /// An interaction with the same key was accepted before.
    Deduplicated,
}

/// An interaction that the inbox did not accept.
#[derive(Debug)]
pub struct RejectedInteraction {
    /// Code of the reason: `full`, `stopped`, …
    pub reason: String,
    /// Why, for the user.
    pub error: ProjectError,
}

impl RejectedInteraction {
    /// Whether the same interaction may be accepted later.
    pub fn may_pass(&self) -> bool {
        ["full", "sender_full"].contains(&self.reason.as_str())
    }
}

impl From<Rejection> for RejectedInteraction {
    fn from(rejection: Rejection) -> Self {
        let json = serde_json::to_value(&rejection).unwrap_or_default();
        let reason = json["reason"].as_str().unwrap_or("rejected").to_owned();
        Self { reason, error: rejection.into() }
    }
}

/// The final answer to a request.
#[derive(Debug, Clone)]
pub struct RequestAnswer {
    /// `completed` or `failed`.
    pub state: RequestState,
    /// What the agent answered, or the reason of the failure.
    pub result: Value,
}

impl ProjectServer {
    async fn admit(&self, outgoing: &OutgoingInteraction) -> Result<SendOutcome, ProjectError> {
        let arrival = &outgoing.arrival;
        let from = match &arrival.from {
            Sender::External(source) => Some(source.clone()),
            Sender::User | Sender::Peer(_) => None,
        };
        let progress = arrival.render_metadata == Some(RenderMetadata::PROGRESS);
        let shown = arrival.render_metadata.filter(|_| !progress);
        let body = SendInteraction {
            from,
            content: Some(arrival.content.clone()),
            message: None,
            request: None,
            mode: arrival.mode,
            salience: shown.map(|metadata| metadata.salience),
            progress,
            // Progress never wakes.
            wake: (!progress).then_some(arrival.wake == Wake::Yes),
            timeout_s: outgoing.timeout_s.and_then(NonZeroU32::new),
        };
        let sent = self.client.send_interaction(&arrival.to, &body, arrival.key.as_deref()).await;
        match sent {
            Ok(Receipt::Accepted { id, task_id }) => {
                Ok(accepted(ReceiptKind::Accepted, id, task_id))
            }
            Ok(Receipt::Deduplicated { id, task_id }) => {
                Ok(accepted(ReceiptKind::Deduplicated, id, task_id))
            }
            Ok(Receipt::Filtered) => Err(filtered()),
            Err(error) => self.rejected(error).map(SendOutcome::Rejected),
        }
    }

    /// A rejection has its reason among its details; every other error is none.
    fn rejected(&self, error: ClientError) -> Result<RejectedInteraction, ProjectError> {
        let reason = match &error {
            ClientError::Refused { error, .. } => {
                // An invalid field has a reason too, and is no rejection.
                let details = error.details.as_ref();
                let reason = details.and_then(|details| details.get("reason"));
                let is_field = details.is_some_and(|details| details.contains_key("field"));
                reason.filter(|reason| !is_field || *reason == INVALID).cloned()
            }
            ClientError::NoConnection { .. }
            | ClientError::Unreachable { .. }
            | ClientError::Unauthorized
            | ClientError::Protocol { .. }
            | ClientError::StreamLost { .. } => None,
        };
        let error = self.project_error(error);
        match reason {
            Some(reason) => Ok(RejectedInteraction { reason, error }),
            None => Err(error),
        }
    }

    /// All live agents and their states, ordered by name.
    pub async fn agent_presences(&self) -> Result<Vec<AgentPresence>, ProjectError> {
        let (mut agents, mut before) = (Vec::new(), None);
        loop {
            let query = PresenceQuery { before, limit: Some(LIVE_MAX) };
            let page = self.answer(self.client.agent_presences(&query).await)?;
            before = page.last().map(|last| last.task_id.clone());
            // A page may be shorter than its limit: an agent may have ended meanwhile.
            if page.is_empty() {
                sort_by_name(&mut agents);
                return Ok(agents);
            }
            agents.extend(page);
        }
    }

    /// Waits for the answer to a request, a little longer than the agent's time limit. `None` when there is
    /// no answer by then. When the server ends, the next one at the same place is waited for.
    pub async fn request_answer(
        &self,
        id: InteractionId,
        timeout_s: Option<u32>,
    ) -> Result<Option<RequestAnswer>, ProjectError> {
        let timeout_s = timeout_s.unwrap_or(REQUEST_TIMEOUT_S_DEFAULT);
        let end = Instant::now() + Duration::from_secs(timeout_s.into()) + ANSWER_GRACE;
        loop {
            let left = end.saturating_duration_since(Instant::now()).as_secs();
            let wait_s = u32::try_from(left).unwrap_or(ANSWER_WAIT_S).min(ANSWER_WAIT_S);
            let Some(wait_s) = NonZeroU32::new(wait_s) else { return Ok(None) };
            let RequestStatus { state, result, .. } =
                match self.client.request_status(id, Some(wait_s)).await {
                    Ok(status) => status,
                    Err(error) if error.is_transient() => {
                        self.next_server(end, error).await?;
                        continue;
                    }
                    Err(error) => return Err(self.project_error(error)),
                };
            if state.is_final() {
                return Ok(Some(RequestAnswer { state, result: result.unwrap_or_default() }));
            }
        }
    }
}

impl ProjectServer {
    /// Waits until a server answers here again, after a request has failed with `error`.
    async fn next_server(&self, end: Instant, error: ClientError) -> Result<(), ProjectError> {
        let end = end.min(Instant::now() + SERVER_WAIT);
        loop {
            tokio::time::sleep(SERVER_PAUSE).await;
            if self.client.is_alive().await {
                return Ok(());
            }
            if Instant::now() >= end {
                return Err(self.project_error(error));
            }
        }
    }
}
/// The pause after the first rejection for lack of room. Each further pause is twice as long.
const PAUSE_MIN: Duration = Duration::from_millis(100);

/// The longest pause.
const PAUSE_MAX: Duration = Duration::from_secs(5);

/// How long an interaction is sent again while its inbox is full.
const FULL_PATIENCE: Duration = Duration::from_secs(120);

/// Where an interaction goes.
#[derive(Clone, Copy)]
pub enum InboxTarget<'a> {
    /// Into the journal of this project. No server reads it now.
    Local(&'a Orchestrator),
    /// To a server.
    Server(&'a ProjectServer),
}

impl InboxTarget<'_> {
    /// Sends an interaction. Once this returns an acceptance, the journal has it.
    pub async fn send(&self, outgoing: &OutgoingInteraction) -> Result<SendOutcome, ProjectError> {
        match self {
            Self::Local(orchestrator) => admit_local(orchestrator, outgoing).await,
            Self::Server(server) => server.admit(outgoing).await,
        }
    }

    /// Sends an interaction, again and again while its inbox is full, for two minutes at most. `waits` is called before
    /// the first pause.
    pub async fn send_when_room(
        &self,
        outgoing: &OutgoingInteraction,
        waits: impl FnOnce(),
    ) -> Result<SendOutcome, ProjectError> {
        let end = Instant::now() + FULL_PATIENCE;
        let (mut pause, mut waits) = (PAUSE_MIN, Some(waits));
        loop {
            match self.send(outgoing).await? {
                // Without a server no agent reads the inbox, so waiting would not make room.
                SendOutcome::Rejected(rejected)
                    if rejected.may_pass()
                        && matches!(self, Self::Server(_))
                        && Instant::now() + pause < end =>
                {
                    if let Some(waits) = waits.take() {
                        waits();
                    }
                    tokio::time::sleep(pause).await;
                    pause = (pause * 2).min(PAUSE_MAX);
                }
                outcome @ (SendOutcome::Accepted(_) | SendOutcome::Rejected(_)) => {
                    return Ok(outcome);
                }
            }
        }
    }
}

impl Connection {
    /// Where interactions go.
    pub fn inbox(&self) -> InboxTarget<'_> {
        match self {
            Self::Local(orchestrator) => InboxTarget::Local(orchestrator),
            Self::Server(server, _) => InboxTarget::Server(server),
        }
    }

    /// Starts the resident task of an agent, unless it runs.
    pub async fn start_agent(&self, name: &AgentName) -> Result<StartedAgent, ProjectError> {
        match self {
            Self::Local(orchestrator) => {
                Ok(orchestrator.start_agent(name, &Provenance::Owner).await?)
            }
            Self::Server(server, _) => {
                let started = server.answer(server.client.start_agent(name).await)?;
                Ok(StartedAgent { task_id: started.task_id, already: started.already })
            }
        }
    }

    /// Stops an agent. Returns its task, if it had one.
    pub async fn stop_agent(&self, name: &AgentName) -> Result<Option<TaskId>, ProjectError> {
        match self {
            Self::Local(orchestrator) => Ok(orchestrator.stop_agent(name, None).await?),
            Self::Server(server, _) => {
                Ok(server.answer(server.client.stop_agent(name).await)?.task_id)
            }
        }
    }
}

async fn admit_local(
    orchestrator: &Orchestrator,
    outgoing: &OutgoingInteraction,
) -> Result<SendOutcome, ProjectError> {
    let is_request = matches!(outgoing.arrival.content, InteractionContent::Request { .. });
    let timeout_s = outgoing.timeout_s.unwrap_or(REQUEST_TIMEOUT_S_DEFAULT);
    let until = is_request.then(|| SystemClock.now() + TimeDelta::seconds(timeout_s.into()));
    let receipt = orchestrator.admit(Arrival { until, ..outgoing.arrival.clone() }).await?;
    Ok(match receipt {
        antiphon_runtime::Receipt::Accepted { id, task_id } => {
            accepted(ReceiptKind::Accepted, id, task_id)
        }
        antiphon_runtime::Receipt::Deduplicated { id, task_id } => {
            accepted(ReceiptKind::Deduplicated, id, task_id)
        }
        antiphon_runtime::Receipt::Rejected(rejection) => SendOutcome::Rejected(rejection.into()),
        antiphon_runtime::Receipt::Filtered => return Err(filtered()),
    })
}

fn accepted(receipt: ReceiptKind, id: InteractionId, task_id: TaskId) -> SendOutcome {
    SendOutcome::Accepted(AcceptedInteraction { receipt, id, task_id })
}

fn filtered() -> ProjectError {
    ProjectError::InvalidInput(
        "an acknowledgment is not stored: send a message or a request".to_owned(),
    )
}
