//! One other orchestrator, and what can be asked of it.

use std::fmt;
use std::time::Duration;

use antiphon_core::{Seq, TaskId};
use reqwest::header::{ACCEPT, CONTENT_TYPE};
use reqwest::{Client, RequestBuilder, Response, StatusCode, Url};
use serde::Serialize;

use crate::answer::{Failure, body, lost, success};
use crate::events::Events;
use crate::orders::Order;
use crate::request::{Begun, TaskRequest};

/// How long a peer may take to answer: longer than it takes to give up itself.
const ANSWER_WAIT: Duration = Duration::from_secs(75);

/// One other orchestrator.
#[derive(Clone)]
pub(crate) struct Peer {
    pub(crate) name: String,
    url: Url,
    client: Client,
}

impl fmt::Debug for Peer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Peer({}, {})", self.name, self.url)
    }
}

impl Peer {
    pub(crate) fn new(name: String, url: Url, client: Client) -> Self {
        Self { name, url, client }
    }

    /// Begins a task under a key: however often it is asked, it is begun once.
    pub(crate) async fn begin(
        &self,
        key: &TaskId,
        task: &TaskRequest<'_>,
    ) -> Result<TaskId, Failure> {
        let request = self.post(&["v1", "tasks"]).header("idempotency-key", key.as_str());
        let response = match success(send(json(request, task)?).await?).await {
            // A task that is new cannot be in anybody's way.
            Err(Failure::Conflict(reason)) => Err(Failure::Refused(reason)),
            other => other,
        }?;
        let answer: Result<Begun, _> = serde_json::from_slice(&body(response).await?);
        let strange =
            |_| Failure::Refused("it answers in another language: is it Antiphon?".to_owned());
        Ok(answer.map_err(strange)?.task_id)
    }

    /// The events of a task behind `after`.
    pub(crate) async fn events(&self, task_id: &TaskId, after: Seq) -> Result<Events, Failure> {
        let mut url = self.at(&["v1", "tasks", task_id.as_str(), "events"]);
        url.query_pairs_mut().append_pair("after", &after.to_string());
        let request = self.client.get(url).header(ACCEPT, "text/event-stream");
        let response = success(send(request).await?).await?;
        if response.status() == StatusCode::NO_CONTENT {
            return Err(Failure::Refused(
                "the task has ended there, and here it has not".to_owned(),
            ));
        }
        Ok(Events::new(response))
    }

    /// Ends a task. One that has ended, has.
    pub(crate) async fn cancel(&self, task_id: &TaskId) -> Result<(), Failure> {
        settle(send(self.post(&["v1", "tasks", task_id.as_str(), "cancel"])).await?).await
    }

    /// Passes on what was said to our task.
    pub(crate) async fn order(&self, task_id: &TaskId, order: Order) -> Result<(), Failure> {
        let verb = match order {
            Order::Pause => "pause",
            Order::Resume => "resume",
        };
        settle(send(self.post(&["v1", "tasks", task_id.as_str(), verb])).await?).await
    }

    fn post(&self, path: &[&str]) -> RequestBuilder {
        self.client.post(self.at(path))
    }

    /// The address of something below the peer's own. What a name has in it stays within it.
    fn at(&self, path: &[&str]) -> Url {
        let mut url = self.url.clone();
        if let Ok(mut segments) = url.path_segments_mut() {
            segments.pop_if_empty().extend(path);
        }
        url
    }
}

/// An order that is carried out, or cannot be any more.
async fn settle(response: Response) -> Result<(), Failure> {
    match success(response).await {
        Ok(_) | Err(Failure::Conflict(_)) => Ok(()),
        Err(failure) => Err(failure),
    }
}

async fn send(request: RequestBuilder) -> Result<Response, Failure> {
    let slow = |_| Failure::Lost("it does not answer".to_owned());
    let sent = tokio::time::timeout(ANSWER_WAIT, request.send()).await.map_err(slow)?;
    sent.map_err(|error| lost(&error))
}

fn json(request: RequestBuilder, value: &impl Serialize) -> Result<RequestBuilder, Failure> {
    let body = serde_json::to_vec(value).map_err(|error| unsendable(&error))?;
    Ok(request.header(CONTENT_TYPE, "application/json").body(body))
}

fn unsendable(error: &serde_json::Error) -> Failure {
    Failure::Refused(format!("it cannot be sent: {error}"))
}
