//! The events of every task of the tree, over HTTP, as they come.
//!
//! Each task has a stream of its own. When the server is gone, a stream waits for the next one and goes
//! on behind the last event it has seen. It ends behind the end of its task.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use antiphon_client::{ClientError, RetryPolicy};
use antiphon_core::{Event, Seq, TaskId};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;

use crate::connection::ProjectServer;

/// Events that wait to be told. Streams wait then, and the server with them.
const EVENTS_MAX: usize = 256;

/// Tasks that are followed; further ones are in the journal and in the summary all the same.
const STREAMS_MAX: usize = 64;

/// Between two tries: a task that was named may not be there yet.
const AGAIN: Duration = Duration::from_millis(50);

/// The streams, and who they come from.
pub(super) struct Streams {
    server: watch::Sender<Option<Arc<ProjectServer>>>,
    sender: mpsc::Sender<Event>,
    events: mpsc::Receiver<Event>,
    followed: HashSet<TaskId>,
    followers: JoinSet<()>,
}

impl Streams {
    pub(super) fn from(server: Arc<ProjectServer>) -> Self {
        let (sender, events) = mpsc::channel(EVENTS_MAX);
        Self {
            server: watch::Sender::new(Some(server)),
            sender,
            events,
            followed: HashSet::new(),
            followers: JoinSet::new(),
        }
    }

    /// Follows a task, once.
    pub(super) fn follow(&mut self, task_id: &TaskId) {
        if self.followed.len() >= STREAMS_MAX || !self.followed.insert(task_id.clone()) {
            return;
        }
        let (server, sender) = (self.server.subscribe(), self.sender.clone());
        self.followers.spawn(follow(task_id.clone(), server, sender));
    }

    /// What happens next. Cancel safe.
    pub(super) async fn next(&mut self) -> Event {
        match self.events.recv().await {
            Some(event) => event,
            // This end holds a sender: it never comes to that.
            None => std::future::pending().await,
        }
    }

    /// What has come already.
    pub(super) fn ready(&mut self) -> Option<Event> {
        self.events.try_recv().ok()
    }

    /// Nobody is there.
    pub(super) fn rest(&self) {
        self.server.send_replace(None);
    }

    /// Somebody is there again.
    pub(super) fn go_on(&self, server: Arc<ProjectServer>) {
        self.server.send_replace(Some(server));
    }
}

async fn follow(
    task_id: TaskId,
    mut server: watch::Receiver<Option<Arc<ProjectServer>>>,
    sender: mpsc::Sender<Event>,
) {
    let mut seen = Seq(0);
    loop {
        let Ok(there) = server.wait_for(Option::is_some).await.map(|there| there.clone()) else {
            return;
        };
        let Some(there) = there else { continue };
        match listen(&there, &task_id, &mut seen, &sender).await {
            Err(_) => tokio::time::sleep(AGAIN).await,
            Ok(()) => return,
        }
    }
}

/// Passes on what is behind the last event that was seen, until the task has ended.
async fn listen(
    server: &ProjectServer,
    task_id: &TaskId,
    seen: &mut Seq,
    sender: &mpsc::Sender<Event>,
) -> Result<(), ClientError> {
    // The next connection may be to the next server.
    let mut events = server.client.task_events(task_id.clone(), *seen, RetryPolicy::NEVER);
    while let Some(event) = events.next().await? {
        *seen = event.seq;
        if sender.send(event).await.is_err() {
            break;
        }
    }
    Ok(())
}
