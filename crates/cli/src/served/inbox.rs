//! Inboxes, through the server or alone: what was put into one, and what came of a request. Either way
//! the words are the same.

use std::time::{Duration, Instant};

use antiphon_core::port::{Clock, SystemClock};
use antiphon_core::{
    AgentName, ErrorResponse, HandlingMode, InteractionContent, InteractionId, Salience, Sender,
    SourceName, TaskId,
};
use antiphon_project::AgentPresence;
use antiphon_runtime::{
    Arrival, Orchestrator, REQUEST_TIMEOUT_S_DEFAULT, Receipt, Rejection, Started, Wake,
};
use chrono::TimeDelta;
use reqwest::Method;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Door, Served, answer, json};
use crate::failure::Failure;

/// How long a server is asked to wait for an answer at a time.
const ANSWER_WAIT_S: u32 = 25;

/// How much longer than the agent has time for it an answer is waited for.
const GRACE: Duration = Duration::from_secs(2);

/// Something to be put into an inbox.
#[derive(Debug, Clone)]
pub(crate) struct Letter {
    pub(crate) arrival: Arrival,
    /// How long a request waits for its answer.
    pub(crate) timeout_s: Option<u32>,
}

/// What became of it.
#[derive(Debug)]
pub(crate) enum Told {
    /// It is in the inbox.
    Taken(Taken),
    /// It is not.
    Rejected(Rejected),
}

/// It is in the inbox.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Taken {
    pub(crate) receipt: Word,
    pub(crate) id: InteractionId,
    pub(crate) task_id: TaskId,
}

/// Since when.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Word {
    /// Since now.
    Accepted,
    /// It was there before.
    Deduplicated,
}

/// It is not in the inbox.
#[derive(Debug)]
pub(crate) struct Rejected {
    /// Why, in a word: `full`, `stopped`, …
    pub(crate) reason: String,
    pub(crate) failure: Failure,
}

impl Rejected {
    /// Whether the same may be accepted later.
    pub(crate) fn may_pass(&self) -> bool {
        ["full", "sender_full"].contains(&self.reason.as_str())
    }
}

impl From<Rejection> for Rejected {
    fn from(rejection: Rejection) -> Self {
        let told = serde_json::to_value(&rejection).unwrap_or_default();
        let reason = told["reason"].as_str().unwrap_or("rejected").to_owned();
        Self { reason, failure: rejection.into() }
    }
}

/// What came of a request.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Answer {
    /// How far it got: `completed`, `failed`, or not that far.
    pub(crate) state: String,
    #[serde(default)]
    pub(crate) result: Value,
}

impl Answer {
    fn is_final(&self) -> bool {
        ["completed", "failed"].contains(&self.state.as_str())
    }
}

#[derive(Serialize)]
struct LetterWire<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    from: Option<&'a SourceName>,
    content: &'a InteractionContent,
    mode: HandlingMode,
    #[serde(skip_serializing_if = "Option::is_none")]
    salience: Option<Salience>,
    wake: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    timeout_s: Option<u32>,
}

#[derive(Deserialize)]
struct StartedWire {
    task_id: TaskId,
    already: bool,
}

#[derive(Deserialize)]
struct StoppedWire {
    task_id: Option<TaskId>,
}

impl Served {
    async fn admit(&self, letter: &Letter) -> Result<Told, Failure> {
        let arrival = &letter.arrival;
        let from = match &arrival.from {
            Sender::External(source) => Some(source),
            Sender::User | Sender::Peer(_) => None,
        };
        let wire = LetterWire {
            from,
            content: &arrival.content,
            mode: arrival.mode,
            salience: arrival.render_metadata.map(|shown| shown.salience),
            wake: arrival.wake == Wake::Yes,
            timeout_s: letter.timeout_s,
        };
        let url = self.at(&["v1", "agents", arrival.to.as_str(), "inbox"])?;
        let mut request = json(self.request(Method::POST, url), &wire)?;
        if let Some(key) = &arrival.key {
            request = request.header("idempotency-key", key);
        }
        match self.ask(request).await? {
            Ok(response) => self.read(response).await.map(Told::Taken),
            Err(error) => self.rejected(error).map(Told::Rejected),
        }
    }

    /// A rejection has its reason with it; every other error is a failure.
    fn rejected(&self, error: ErrorResponse) -> Result<Rejected, Failure> {
        let reason = error.details.as_ref().and_then(|details| details.get("reason")).cloned();
        let failure = answer::failure(&self.place, error);
        match reason {
            Some(reason) => Ok(Rejected { reason, failure }),
            None => Err(failure),
        }
    }

    async fn start_agent(&self, name: &AgentName) -> Result<Started, Failure> {
        let url = self.at(&["v1", "agents", name.as_str(), "start"])?;
        let response = self.send(self.request(Method::POST, url)).await?;
        let StartedWire { task_id, already } = self.read(response).await?;
        Ok(Started { task_id, already })
    }

    async fn stop_agent(&self, name: &AgentName) -> Result<Option<TaskId>, Failure> {
        let url = self.at(&["v1", "agents", name.as_str(), "stop"])?;
        let response = self.send(self.request(Method::POST, url)).await?;
        let StoppedWire { task_id } = self.read(response).await?;
        Ok(task_id)
    }

    /// Live agents, and where they stand.
    pub(crate) async fn agent_presences(&self) -> Result<Vec<AgentPresence>, Failure> {
        let url = self.at(&["v1", "agents", "status"])?;
        let response = self.send(self.request(Method::GET, url)).await?;
        self.read(response).await
    }

    /// Waits for the answer to a request, a little longer than the agent has time for it. `None` when
    /// there is none by then.
    pub(crate) async fn answer(
        &self,
        id: InteractionId,
        timeout_s: Option<u32>,
    ) -> Result<Option<Answer>, Failure> {
        let timeout_s = timeout_s.unwrap_or(REQUEST_TIMEOUT_S_DEFAULT);
        let end = Instant::now() + Duration::from_secs(timeout_s.into()) + GRACE;
        loop {
            let left = end.saturating_duration_since(Instant::now()).as_secs();
            if left == 0 {
                return Ok(None);
            }
            let wait_s = u32::try_from(left).unwrap_or(ANSWER_WAIT_S).min(ANSWER_WAIT_S);
            let mut url = self.at(&["v1", "requests", &id.to_string()])?;
            url.query_pairs_mut().append_pair("wait_s", &wait_s.to_string());
            let response = self.send(self.request(Method::GET, url)).await?;
            let answer: Answer = self.read(response).await?;
            if answer.is_final() {
                return Ok(Some(answer));
            }
        }
    }
}

impl Door {
    /// Puts something into an inbox. When this says so, the journal has it.
    pub(crate) async fn admit(&self, letter: &Letter) -> Result<Told, Failure> {
        match self {
            Self::Alone(orchestrator) => alone(orchestrator, letter).await,
            Self::Served(served, _) => served.admit(letter).await,
        }
    }

    pub(crate) async fn start_agent(&self, name: &AgentName) -> Result<Started, Failure> {
        match self {
            Self::Alone(orchestrator) => Ok(orchestrator.start_agent(name).await?),
            Self::Served(served, _) => served.start_agent(name).await,
        }
    }

    pub(crate) async fn stop_agent(&self, name: &AgentName) -> Result<Option<TaskId>, Failure> {
        match self {
            Self::Alone(orchestrator) => Ok(orchestrator.stop_agent(name, None).await?),
            Self::Served(served, _) => served.stop_agent(name).await,
        }
    }
}

async fn alone(orchestrator: &Orchestrator, letter: &Letter) -> Result<Told, Failure> {
    let is_asked = matches!(letter.arrival.content, InteractionContent::Request { .. });
    let timeout_s = letter.timeout_s.unwrap_or(REQUEST_TIMEOUT_S_DEFAULT);
    let until = is_asked.then(|| SystemClock.now() + TimeDelta::seconds(timeout_s.into()));
    let receipt = orchestrator.admit(Arrival { until, ..letter.arrival.clone() }).await?;
    Ok(match receipt {
        Receipt::Accepted { id, task_id } => {
            Told::Taken(Taken { receipt: Word::Accepted, id, task_id })
        }
        Receipt::Deduplicated { id, task_id } => {
            Told::Taken(Taken { receipt: Word::Deduplicated, id, task_id })
        }
        Receipt::Rejected(rejection) => Told::Rejected(rejection.into()),
        Receipt::Filtered => return Err(Failure::usage("nobody waits for that word")),
    })
}
