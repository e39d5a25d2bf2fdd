//! The events of every task of the tree, from the server's HTTP API.
//!
//! Each task has a stream of its own. When the server is gone, a stream waits for the next one and
//! continues behind the last event it has seen. It ends behind the end of its task.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use antiphon_core::{Event, Seq, TaskId};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;

use crate::host::{ServerClient, StreamLost};

/// Events that wait to be shown. When there are more, the streams wait, and the server with them.
const EVENTS_MAX: usize = 256;

/// Tasks that are followed; the journal and the summary contain the others all the same.
const STREAMS_MAX: usize = 64;

/// Between two tries: a dispatched task may not be created yet.
const RETRY: Duration = Duration::from_millis(50);

/// The streams, and the server they come from.
pub(crate) struct EventStreams {
    client: watch::Sender<Option<Arc<dyn ServerClient>>>,
    sender: mpsc::Sender<Event>,
    events: mpsc::Receiver<Event>,
    followed: HashSet<TaskId>,
    followers: JoinSet<()>,
}

impl EventStreams {
    pub(crate) fn new(client: Arc<dyn ServerClient>) -> Self {
        let (sender, events) = mpsc::channel(EVENTS_MAX);
        Self {
            client: watch::Sender::new(Some(client)),
            sender,
            events,
            followed: HashSet::new(),
            followers: JoinSet::new(),
        }
    }

    /// Follows a task, once.
    pub(crate) fn follow(&mut self, task_id: &TaskId) {
        if self.followed.len() >= STREAMS_MAX || !self.followed.insert(task_id.clone()) {
            return;
        }
        let (client, sender) = (self.client.subscribe(), self.sender.clone());
        self.followers.spawn(follow(task_id.clone(), client, sender));
    }

    /// The next event of any task. Cancel safe.
    pub(crate) async fn next(&mut self) -> Event {
        match self.events.recv().await {
            Some(event) => event,
            // Unreachable: `self.sender` keeps the channel open.
            None => std::future::pending().await,
        }
    }

    /// An event that has arrived already.
    pub(crate) fn try_next(&mut self) -> Option<Event> {
        self.events.try_recv().ok()
    }

    /// Suspends the streams: the server is gone.
    pub(crate) fn suspend(&self) {
        self.client.send_replace(None);
    }

    /// Resumes the streams with the next server.
    pub(crate) fn resume(&self, client: Arc<dyn ServerClient>) {
        self.client.send_replace(Some(client));
    }
}

async fn follow(
    task_id: TaskId,
    mut client: watch::Receiver<Option<Arc<dyn ServerClient>>>,
    sender: mpsc::Sender<Event>,
) {
    let mut seen = Seq(0);
    loop {
        let Ok(current) = client.wait_for(Option::is_some).await.map(|current| current.clone())
        else {
            return;
        };
        let Some(current) = current else { continue };
        match forward(&*current, &task_id, &mut seen, &sender).await {
            Err(StreamLost) => tokio::time::sleep(RETRY).await,
            Ok(()) => return,
        }
    }
}

/// Forwards the events behind `seen` until the task has ended.
async fn forward(
    client: &dyn ServerClient,
    task_id: &TaskId,
    seen: &mut Seq,
    sender: &mpsc::Sender<Event>,
) -> Result<(), StreamLost> {
    let mut events = client.events(task_id, *seen).await?;
    loop {
        for event in events.next().await? {
            if event.seq <= *seen {
                continue;
            }
            *seen = event.seq;
            let ends = event.body.ends_task();
            if sender.send(event).await.is_err() || ends {
                return Ok(());
            }
        }
    }
}
