//! Live agents, on a clock that only moves when no agent works.

use std::sync::Arc;
use std::time::Duration;

use antiphon_core::port::{Clock, Journal};
use antiphon_core::{
    AgentDefinition, AgentName, Event, EventBody, HandlingMode, InputBlock, InteractionContent,
    InteractionId, Message, MessageQueued, ModelRef, Position, Replied, Sender, TaskId,
};
use antiphon_runtime::{
    Arrival, Orchestrator, OrchestratorError, OrchestratorSettings, Receipt, RuntimeDeps, TaskState,
};
use chrono::{DateTime, TimeDelta, Utc};
use serde_json::Value;

use crate::team::{Roster, Team, agent};
use crate::world;

/// The runtime's clock: paused, it advances when every task waits for it.
pub(crate) struct RuntimeClock(tokio::time::Instant);

impl RuntimeClock {
    pub(crate) fn start() -> Arc<dyn Clock> {
        Arc::new(Self(tokio::time::Instant::now()))
    }
}

impl Clock for RuntimeClock {
    fn now(&self) -> DateTime<Utc> {
        let passed = TimeDelta::from_std(self.0.elapsed()).expect("not that long");
        DateTime::UNIX_EPOCH + TimeDelta::days(20_000) + passed
    }
}

/// Agents that are always there, and who looks after them.
pub(crate) struct LiveAgents {
    pub(crate) team: Team,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) orchestrator: Orchestrator,
}

impl LiveAgents {
    /// Every agent may talk to every other, and answers from this script.
    pub(crate) fn of(names: &[&str], script: String) -> Self {
        let add = |roster: Roster, name: &&str| roster.with(clerk(name));
        Self::with(names.iter().fold(Roster::default(), add), script)
    }

    pub(crate) fn with(roster: Roster, script: String) -> Self {
        let team = Team::new(script, roster);
        let clock = RuntimeClock::start();
        let orchestrator = Orchestrator::new(world(&team, &clock, Arc::clone(&team.journal)));
        Self { team, clock, orchestrator }
    }

    /// The same agents on another journal.
    pub(crate) fn on(&self, journal: Arc<dyn Journal>) -> Orchestrator {
        Orchestrator::new(world(&self.team, &self.clock, journal))
    }

    /// The same journal, another process.
    pub(crate) async fn restart(&mut self) {
        self.orchestrator.shutdown(Duration::ZERO).await;
        self.orchestrator = self.on(Arc::clone(&self.team.journal));
        self.orchestrator.recover().await.expect("recovered");
    }

    pub(crate) async fn start(&self, agent: &str) -> TaskId {
        self.orchestrator
            .start_agent(&name(agent), &antiphon_core::Provenance::Owner)
            .await
            .expect("started")
            .task_id
    }

    /// Hands something over that is accepted.
    pub(crate) async fn admit(&self, arrival: Arrival) -> (InteractionId, TaskId) {
        accepted(self.orchestrator.admit(arrival).await.expect("a receipt"))
    }

    /// The task of an agent, once it does not run and nothing is left to do.
    pub(crate) async fn at_rest(&self, agent: &str) -> TaskState {
        at_rest(&self.orchestrator, agent).await
    }

    /// Waits for something to happen.
    pub(crate) async fn until(&self, happened: impl Fn(&Event) -> bool) -> Event {
        let mut follower = self.orchestrator.follow(None, Position(0));
        let day = Duration::from_secs(24 * 3600);
        loop {
            let next = tokio::time::timeout(day, follower.next()).await;
            let event = next.expect("it happens within a day").expect("an event");
            if happened(&event) {
                return event;
            }
        }
    }

    /// The answer to a request, when there is one.
    pub(crate) async fn reply(&self, request: InteractionId) -> Replied {
        self.until(|event| replies(&event.body) == Some(request)).await;
        let replied = self.orchestrator.reply(request).await.expect("a journal");
        replied.expect("an answer")
    }

    pub(crate) async fn events(&self) -> Vec<Event> {
        world::events(&*self.team.journal).await
    }

    /// What arrived in the inbox of a task, in order.
    pub(crate) async fn arrived(&self, task_id: &TaskId) -> Vec<MessageQueued> {
        let events = self.team.events(task_id).await;
        let queued = |body| {
            let EventBody::MessageQueued(queued) = body else { return None };
            Some(queued)
        };
        events.into_iter().filter_map(queued).collect()
    }
}

fn world(team: &Team, clock: &Arc<dyn Clock>, journal: Arc<dyn Journal>) -> RuntimeDeps {
    let settings = OrchestratorSettings {
        restart_after: Duration::from_millis(1),
        storage_wait_max: Some(Duration::ZERO),
        ..OrchestratorSettings::default()
    };
    RuntimeDeps { clock: Arc::clone(clock), journal, settings, ..team.world() }
}

/// The final answer that an event is.
pub(crate) fn replies(body: &EventBody) -> Option<InteractionId> {
    let EventBody::Replied(replied) = body else { return None };
    replied.status.is_final().then_some(replied.in_reply_to)
}

/// The task of an agent, once it does not run and nothing is left to do.
pub(crate) async fn at_rest(orchestrator: &Orchestrator, agent: &str) -> TaskState {
    let task = orchestrator.agent_task(&name(agent)).await.expect("a list");
    let task_id = task.expect("it was started").task_id;
    let day = Duration::from_secs(24 * 3600);
    let rests = tokio::time::timeout(day, orchestrator.wait(&task_id)).await;
    let rests = rests.expect("it comes to rest within a day");
    if matches!(rests, Err(OrchestratorError::NotRunning { .. })) {
        return orchestrator.task(&task_id).await.expect("a task");
    }
    rests.expect("it comes to rest")
}

/// An agent with a model of its own.
pub(crate) fn clerk(name: &str) -> AgentDefinition {
    let model = ModelRef::parse("scripted/test").expect("a model");
    AgentDefinition { model: Some(model), ..agent(name) }
}

pub(crate) fn name(text: &str) -> AgentName {
    AgentName::parse(text).expect("a name")
}

pub(crate) fn peer(text: &str) -> Sender {
    Sender::Peer(name(text))
}

pub(crate) fn message(to: &str, text: &str) -> Arrival {
    Arrival::message(name(to), Sender::User, text)
}

pub(crate) fn steering(to: &str, text: &str) -> Arrival {
    Arrival { mode: HandlingMode::Steer, ..message(to, text) }
}

pub(crate) fn request(to: &str, intent: &str, params: Value) -> Arrival {
    let content = InteractionContent::Request { intent: intent.to_owned(), params };
    Arrival { content, ..message(to, "") }
}

pub(crate) fn keyed(arrival: Arrival, key: &str) -> Arrival {
    Arrival { key: Some(key.to_owned()), ..arrival }
}

pub(crate) fn accepted(receipt: Receipt) -> (InteractionId, TaskId) {
    let accepted = match receipt {
        Receipt::Accepted { id, task_id } => Ok((id, task_id)),
        Receipt::Deduplicated { .. } | Receipt::Filtered | Receipt::Rejected(_) => Err(receipt),
    };
    accepted.expect("it is accepted")
}

/// What was said in a task, from before it on.
pub(crate) fn said(state: &TaskState) -> Vec<String> {
    let text = |content: &[InputBlock]| match content.first() {
        Some(InputBlock::Text(text)) => text.text.clone(),
        Some(InputBlock::Image(_)) | None => String::new(),
    };
    let line = |message: &Arc<Message>| match &**message {
        Message::User(user) => format!("user: {}", text(&user.content)),
        Message::Assistant(answer) => match answer.tool_calls().next() {
            Some(call) => format!("calls: {}", call.name),
            None => format!("model: {}", answer.text()),
        },
        Message::ToolResult(result) => format!("result: {}", text(&result.content)),
    };
    state.messages().iter().map(line).collect()
}
