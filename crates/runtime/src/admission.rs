//! Admission: what arrives for an agent is looked at once, written to its inbox, and only then
//! accepted.
//!
//! | answered       | when                                                                     |
//! |----------------|--------------------------------------------------------------------------|
//! | `accepted`     | the journal has it                                                       |
//! | `deduplicated` | the journal has had it: the same sender has used the same key before     |
//! | `filtered`     | it is word that something arrived, and stops here                        |
//! | `rejected`     | it is nowhere, and the reason says what to do                            |

use std::sync::Arc;

use antiphon_core::port::{Append, Expected, IdempotencyKey, JournalError};
use antiphon_core::{
    AgentDefinition, AgentName, Interaction, InteractionContent, InteractionId, MessageQueued,
    PeerInputClass, Sender, TaskId, classify,
};
use chrono::TimeDelta;

use crate::arrival::{Arrival, Receipt, Rejection, Wake, check, refused_at_door};
use crate::flight;
use crate::inner::Inner;
use crate::mailroom::{Full, Room};
use crate::orchestrator_error::OrchestratorError;
use crate::peers;
use crate::running;

/// What only the orchestrator says of something that arrives.
pub(crate) struct Origin {
    pub(crate) id: InteractionId,
    /// The task that waits for an answer.
    pub(crate) reply_to: Option<TaskId>,
    pub(crate) key: Option<IdempotencyKey>,
    pub(crate) starts: Starts,
    /// How often agents have written to each other, this time included.
    pub(crate) hops: u32,
}

/// Whether something may start the agent that it is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Starts {
    /// A person, or a door that a person opened.
    Yes,
    /// An agent.
    No,
}

impl Inner {
    /// Takes in what a door hands over.
    pub(crate) async fn admit(
        self: &Arc<Self>,
        arrival: Arrival,
        starts: Starts,
    ) -> Result<Receipt, OrchestratorError> {
        if let Some(why) = refused_at_door(&arrival) {
            return Ok(Receipt::Rejected(Rejection::Invalid { why }));
        }
        let key = key_of(&arrival);
        let id = match &key {
            Some(key) => flight::named_id(&key.0),
            None => InteractionId::from(self.world.ids.next()),
        };
        let origin = Origin { id, reply_to: None, key, starts, hops: 0 };
        self.admit_as(arrival, origin).await
    }

    /// The same, for whoever knows more about it.
    pub(crate) async fn admit_as(
        self: &Arc<Self>,
        arrival: Arrival,
        origin: Origin,
    ) -> Result<Receipt, OrchestratorError> {
        let (key, starts) = (origin.key.clone(), origin.starts);
        let (to, from) = (arrival.to.clone(), arrival.from.clone());
        let rejected = match self.look_at(arrival, origin) {
            Ok(Some(queued)) => match self.post(&to, queued, key.clone(), starts).await? {
                Ok(receipt) => return Ok(receipt),
                Err(rejection) => rejection,
            },
            Ok(None) => return Ok(Receipt::Filtered),
            Err(rejection) => rejection,
        };
        // What was accepted once is not rejected because there is no room now.
        if let Some(key) = &key
            && let Some(first) = self.world.journal.answered(key).await?
        {
            let id = flight::named_id(&key.0);
            return Ok(Receipt::Deduplicated { id, task_id: first.task_id });
        }
        tracing::debug!(agent.name = %to, sender = %from, %rejected, "rejected");
        Ok(Receipt::Rejected(rejected))
    }

    /// The one look: what it is, and whether it makes sense. `None` is what stops here.
    fn look_at(
        &self,
        arrival: Arrival,
        origin: Origin,
    ) -> Result<Option<MessageQueued>, Rejection> {
        let definition = self.defined(&arrival.to)?;
        check(&arrival.content, arrival.payload.as_ref(), &definition)?;
        let interaction = Interaction {
            id: origin.id,
            from: arrival.from,
            content: arrival.content,
            handling_mode: arrival.mode,
            render_metadata: arrival.render_metadata,
        };
        let candidate = classify(interaction, &definition.silent_intents);
        if candidate.class == PeerInputClass::Ack {
            return Ok(None);
        }
        let quiet = arrival.wake == Wake::No;
        let (reply_to, hops) = (origin.reply_to, origin.hops);
        let payload = arrival.payload;
        let queued =
            MessageQueued { quiet, reply_to, hops, payload, ..MessageQueued::of(candidate) };
        // Nobody waits for ever.
        let usual = TimeDelta::seconds(i64::from(peers::REQUEST_TIMEOUT_S_DEFAULT));
        let until = arrival.until.unwrap_or_else(|| self.world.clock.now() + usual);
        let until = Some(until).filter(|_| queued.expects_answer() || arrival.until.is_some());
        Ok(Some(MessageQueued { until, ..queued }))
    }

    /// Whether a request makes sense to the agent it is for.
    pub(crate) fn fits(
        &self,
        to: &AgentName,
        intent: &str,
        params: &serde_json::Value,
    ) -> Result<(), Rejection> {
        let (intent, params) = (intent.to_owned(), params.clone());
        let arrival = Arrival {
            content: InteractionContent::Request { intent, params },
            ..Arrival::message(to.clone(), Sender::User, "")
        };
        if let Some(why) = refused_at_door(&arrival) {
            return Err(Rejection::Invalid { why });
        }
        check(&arrival.content, None, &*self.defined(to)?)
    }

    pub(crate) fn defined(&self, name: &AgentName) -> Result<Arc<AgentDefinition>, Rejection> {
        let agents = self.world.agents.as_ref();
        let found = agents.and_then(|agents| agents.find(name.as_str()));
        found.ok_or_else(|| {
            let known = agents.map(|agents| agents.list()).unwrap_or_default();
            let known = known.iter().map(|agent| agent.name.to_string()).collect();
            Rejection::UnknownAgent { agent: name.to_string(), known }
        })
    }

    /// Writes it to the inbox of whoever is live under that name.
    async fn post(
        self: &Arc<Self>,
        to: &AgentName,
        queued: MessageQueued,
        key: Option<IdempotencyKey>,
        starts: Starts,
    ) -> Result<Result<Receipt, Rejection>, OrchestratorError> {
        loop {
            let task_id = match self.live(to, starts).await? {
                Ok(task_id) => task_id,
                Err(rejection) => return Ok(Err(rejection)),
            };
            let id = queued.id;
            match self.put(&task_id, queued.clone(), key.clone()).await? {
                Put::There { deduplicated: false, task_id } => {
                    return Ok(Ok(Receipt::Accepted { id, task_id }));
                }
                Put::There { deduplicated: true, task_id } => {
                    return Ok(Ok(Receipt::Deduplicated { id, task_id }));
                }
                Put::Full(full) => {
                    let agent = to.to_string();
                    return Ok(Err(match full {
                        Full::Inbox => Rejection::Full { agent },
                        Full::Sender => Rejection::SenderFull { agent, from: queued.from },
                    }));
                }
                // Somebody ended it just then, and may not have come to telling others.
                Put::Ended => {
                    let outcome = self.outcome(&self.summary(&task_id).await?).await?;
                    self.retire(&task_id, &outcome);
                }
            }
        }
    }

    /// Writes something to the inbox of a task, and has it looked at.
    pub(crate) async fn put(
        self: &Arc<Self>,
        task_id: &TaskId,
        mut queued: MessageQueued,
        key: Option<IdempotencyKey>,
    ) -> Result<Put, OrchestratorError> {
        if !self.mailroom.is_counted(task_id) {
            let state = self.load(task_id).await?;
            self.mailroom.count(task_id, &state.queue);
        }
        let mut counted = Vec::new();
        match self.mailroom.reserve(task_id, &queued) {
            Ok(Room::Made { replaces }) => {
                queued.replaces = replaces;
                counted.push(queued.id);
            }
            Ok(Room::Taken) => {}
            Err(full) => return Ok(Put::Full(full)),
        }
        let until =
            queued.until.filter(|_| queued.expects_answer()).map(|until| (until, queued.id));
        let append = Append {
            task_id: task_id.clone(),
            expected: Expected::Exists,
            at: self.world.clock.now(),
            events: vec![queued.into()],
            key,
        };
        // On a future of its own: whoever asked may stop waiting, and what is written is begun.
        let inner = Arc::clone(self);
        let task_id = task_id.clone();
        self.owned(async move {
            match inner.append(append).await {
                Ok(appended) => {
                    if appended.deduplicated {
                        inner.mailroom.release(&task_id, &counted);
                    }
                    running::start(&inner, &task_id);
                    if let Some((until, request)) = until {
                        inner.watch_answer(until, task_id, request);
                    }
                    let deduplicated = appended.deduplicated;
                    Ok(Put::There { deduplicated, task_id: appended.task_id })
                }
                Err(JournalError::Ended { .. }) => {
                    inner.mailroom.forget(&task_id);
                    Ok(Put::Ended)
                }
                Err(error) => {
                    inner.mailroom.release(&task_id, &counted);
                    Err(error.into())
                }
            }
        })
        .await
    }
}

/// What came of writing to an inbox.
pub(crate) enum Put {
    There { deduplicated: bool, task_id: TaskId },
    Full(Full),
    Ended,
}

/// What an arrival is remembered by, if its sender gave it a name.
pub(crate) fn key_of(arrival: &Arrival) -> Option<IdempotencyKey> {
    arrival.key.as_ref().map(|key| keyed(&arrival.to, &arrival.from, key))
}

/// A sender's own name for something is its own.
fn keyed(to: &AgentName, from: &Sender, key: &str) -> IdempotencyKey {
    IdempotencyKey(format!("inbox:{to}:{from}:{key}"))
}
