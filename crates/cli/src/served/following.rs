//! A task that a server is asked for, and its events as they come.
//!
//! A stream that breaks off is [`Lost`]: whoever knows the last event it has seen asks for what is
//! behind it, also from the next server, and gets nothing twice and nothing left out.

use std::num::NonZeroUsize;

use antiphon_core::{Event, ModelRef, Seq, TaskId};
use reqwest::header::AUTHORIZATION;
use reqwest::{Method, Response, StatusCode};
use serde::{Deserialize, Serialize};
use sse_core::{SseDecoder, SseEvent};

use super::{Served, json};
use crate::failure::Failure;

/// Largest event, in bytes. A server that sends a larger one is given up.
const EVENT_BYTES_MAX: NonZeroUsize = NonZeroUsize::new(32 * 1024 * 1024).unwrap();

/// The events of a task.
pub(crate) struct Events {
    response: Response,
    decoder: SseDecoder,
}

/// There is nothing more to hear from this server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Lost;

#[derive(Serialize)]
struct WantedWire<'a> {
    agent: &'a str,
    model: &'a ModelRef,
    message: &'a str,
}

#[derive(Deserialize)]
struct AcceptedWire {
    task_id: TaskId,
}

impl Served {
    /// Asks for a task. When this returns, the journal has it.
    pub(crate) async fn submit(
        &self,
        agent: &str,
        model: &ModelRef,
        message: &str,
    ) -> Result<TaskId, Failure> {
        let request = self.request(Method::POST, self.at(&["v1", "tasks"])?);
        let wanted = WantedWire { agent, model, message };
        let response = self.send(json(request, &wanted)?).await?;
        let accepted: AcceptedWire = self.read(response).await?;
        Ok(accepted.task_id)
    }

    /// The events of a task behind the one that was seen last.
    pub(crate) async fn events(&self, task_id: &TaskId, after: Seq) -> Result<Events, Lost> {
        let mut url = self.at(&["v1", "tasks", task_id.as_str(), "events"]).map_err(|_| Lost)?;
        url.query_pairs_mut().append_pair("after", &after.to_string());
        // No limit of time: it lasts as long as the task does.
        let request = self.client.get(url).header(AUTHORIZATION, self.token.clone());
        let response = request.send().await.map_err(|_| Lost)?;
        if response.status() != StatusCode::OK {
            return Err(Lost);
        }
        Ok(Events { response, decoder: SseDecoder::with_limit(EVENT_BYTES_MAX) })
    }
}

impl Events {
    /// What comes next. Cancel safe: what has not come is not taken.
    pub(crate) async fn next(&mut self) -> Result<Vec<Event>, Lost> {
        loop {
            let Ok(Some(mut chunk)) = self.response.chunk().await else { return Err(Lost) };
            let mut events = Vec::new();
            while let Some(said) = self.decoder.next(&mut chunk) {
                match said.map_err(|_| Lost)? {
                    SseEvent::Message(message) => {
                        events.push(serde_json::from_str(&message.data).map_err(|_| Lost)?);
                    }
                    SseEvent::Retry(_) => {}
                }
            }
            if !events.is_empty() {
                return Ok(events);
            }
        }
    }
}
