//! The local side: a journal with a task that a peer works on.

use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Duration;

use antiphon_conformance::reference::MemoryJournal;
use antiphon_core::port::{
    Append, Clock, Expected, Journal, JournalLog, Read, Runner, RunnerError, RunnerTask,
    SystemClock,
};
use antiphon_core::{
    Cancel, Event, EventBody, MessageAppended, ModelRef, Position, Relayed, Seq, SessionId,
    TaskCreated, TaskId, UserMessage,
};
use antiphon_remote::{Peers, RemoteRunner, RetryPolicy};
use antiphon_runtime::Models;
use antiphon_test_server::{ScriptedModels, TOKEN};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::peer_server::{ANSWERS, PeerServer};

/// Retries at once, and often.
pub(crate) const PERSISTENT: RetryPolicy = RetryPolicy {
    attempts_max: 2000,
    first_wait: Duration::from_millis(1),
    wait_max: Duration::from_millis(5),
};

/// The local side.
pub(crate) struct LocalSide {
    pub(crate) journal: Arc<MemoryJournal>,
    pub(crate) task_id: TaskId,
    pub(crate) cancel: CancellationToken,
    pub(crate) interrupt: CancellationToken,
    pub(crate) rest: CancellationToken,
}

pub(crate) fn said(text: &str) -> EventBody {
    MessageAppended::new(UserMessage::text(text, SystemClock.now())).into()
}

pub(crate) fn created() -> TaskCreated {
    TaskCreated {
        model: Some(ModelRef::parse("scripted/there").unwrap()),
        system_prompt: "Ours.".to_owned(),
        ..TaskCreated::new("tester", SessionId::parse("s").unwrap())
    }
}

impl LocalSide {
    pub(crate) async fn new(text: &str) -> Self {
        Self::with(created(), vec![said(text)]).await
    }

    pub(crate) async fn with(created: TaskCreated, said: Vec<EventBody>) -> Self {
        let local = Self {
            journal: Arc::new(MemoryJournal::new()),
            task_id: TaskId::parse("ours").unwrap(),
            cancel: CancellationToken::new(),
            interrupt: CancellationToken::new(),
            rest: CancellationToken::new(),
        };
        let events = [created.into()].into_iter().chain(said).collect();
        local.append("ours", Expected::NoTask, events).await;
        local
    }

    pub(crate) async fn append(&self, task: &str, expected: Expected, events: Vec<EventBody>) {
        let task_id = TaskId::parse(task).unwrap();
        let append = Append { task_id, expected, at: SystemClock.now(), events, key: None };
        self.journal.append(append).await.unwrap();
    }

    /// Appends an event to the local task.
    pub(crate) async fn say(&self, body: impl Into<EventBody>) {
        let body = body.into();
        loop {
            let at = Expected::At(Seq(self.events().await.len() as u64));
            let (task_id, at_time) = (self.task_id.clone(), SystemClock.now());
            let events = vec![body.clone()];
            let append = Append { task_id, expected: at, at: at_time, events, key: None };
            if self.journal.append(append).await.is_ok() {
                return;
            }
        }
    }

    pub(crate) fn run_on(&self, journal: Arc<dyn Journal>, config: Value) -> RunnerTask {
        let model = ModelRef::parse("scripted/there").unwrap();
        RunnerTask {
            task_id: self.task_id.clone(),
            config,
            journal,
            provider: ScriptedModels(ANSWERS).provider(&model, &[], None).unwrap(),
            cancel: Cancel::when(self.cancel.clone().cancelled_owned()),
            interrupt: Cancel::when(self.interrupt.clone().cancelled_owned()),
            shutdown: Cancel::when(self.rest.clone().cancelled_owned()),
            limits: antiphon_core::TaskLimits::default(),
            dispatches: antiphon_core::port::DispatchPermission::Allowed,
            updates: Box::new(antiphon_core::port::NoTaskUpdates),
            input: Arc::new(antiphon_core::port::UncheckedInput),
            display: Arc::new(antiphon_core::port::HiddenAnswer),
        }
    }

    /// Runs the local task at the peer with this address.
    pub(crate) async fn run(&self, url: &str) -> Result<(), RunnerError> {
        let run = self.run_on(Arc::clone(&self.journal) as _, json!({"peer": "there"}));
        runner(url, PERSISTENT).run(run).await
    }

    pub(crate) async fn events(&self) -> Vec<Event> {
        read(&*self.journal, &self.task_id).await
    }

    /// Waits until the local task has an event of this type.
    pub(crate) async fn until(&self, kind: &str) {
        while !self.events().await.iter().any(|event| event.body.event_type() == kind) {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }

    /// The remote events in the local journal, without the marks.
    pub(crate) async fn relayed(&self) -> Vec<EventBody> {
        let events = self.events().await.into_iter().map(|event| event.body);
        let work = events.skip_while(|body| {
            matches!(body, EventBody::TaskCreated(_) | EventBody::MessageAppended(_))
        });
        work.filter(|body| !matches!(body, EventBody::Relayed(_))).collect()
    }

    /// The marks, in order.
    pub(crate) async fn marks(&self) -> Vec<Relayed> {
        let events = self.events().await.into_iter();
        let marks = events.filter_map(|event| {
            let EventBody::Relayed(relayed) = event.body else { return None };
            Some(relayed)
        });
        marks.collect()
    }
}

/// The events of the remote task after its creation.
pub(crate) async fn worked(peer: &PeerServer) -> Vec<EventBody> {
    let events = peer.events().await.into_iter().map(|event| event.body);
    let work = events.skip_while(|body| {
        matches!(body, EventBody::TaskCreated(_) | EventBody::MessageAppended(_))
    });
    work.collect()
}

pub(crate) fn runner(url: &str, persistence: RetryPolicy) -> RemoteRunner {
    let mut peers = Peers::default();
    peers.add("there", url, &TOKEN.into()).unwrap();
    RemoteRunner::new(peers, persistence)
}

pub(crate) async fn read(journal: &dyn Journal, task_id: &TaskId) -> Vec<Event> {
    let (mut events, mut after) = (Vec::new(), Position(0));
    loop {
        let read = Read { task_id: Some(task_id.clone()), after, limit: NonZeroUsize::MAX };
        let page = journal.read(read).await.unwrap();
        if page.events.is_empty() {
            return events;
        }
        after = page.next;
        events.extend(page.events);
    }
}
