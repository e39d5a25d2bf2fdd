//! The events of a task and of the approvals of its tree, from the orchestrator of this server or from the owner
//! of the journal.

use std::pin::Pin;

use antiphon_client::StreamItem;
use antiphon_core::port::JournalError;
use antiphon_core::{Approval, ApprovalId, Event, EventBody, Position, TaskId};
use antiphon_process::FollowedTask;
use antiphon_runtime::{ApprovalRequests, Follower, Orchestrator, OrchestratorError};
use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;

use crate::failure::Failure;

/// Something that happened.
#[derive(Debug)]
pub(crate) enum Change {
    /// An event of the task itself.
    Event(Box<Event>),
    /// The task or a descendant needs an approval. The same one may come twice.
    Asked(Box<Approval>),
    /// It was decided, here or elsewhere.
    Decided(ApprovalId),
}

/// The changes of a task.
pub(crate) enum Feed {
    Server(Box<ServerFeed>),
    Process { followed: Box<FollowedTask>, task_id: TaskId },
}

impl Feed {
    /// The changes of a task of this server. `follower` reads its events. `requests` began before the task.
    pub(crate) fn of_server(
        orchestrator: &Orchestrator,
        task_id: &TaskId,
        follower: Follower,
        requests: Option<ApprovalRequests>,
    ) -> Self {
        Self::Server(Box::new(ServerFeed {
            asking: asking(orchestrator, task_id, requests),
            orchestrator: orchestrator.clone(),
            task_id: task_id.clone(),
            reading: read_on(follower),
            deciding: None,
        }))
    }

    /// The next change. Cancel safe.
    pub(crate) async fn next(&mut self) -> Result<Change, Failure> {
        match self {
            Self::Server(feed) => feed.next().await,
            Self::Process { followed, task_id } => loop {
                let StreamItem::Event(event) = followed.next().await? else { continue };
                if let EventBody::ApprovalRequested(requested) = &event.body {
                    let approval = Approval::requested(event.task_id.clone(), requested, event.at);
                    return Ok(Change::Asked(Box::new(approval)));
                }
                if let EventBody::ApprovalDecided(decided) = &event.body {
                    return Ok(Change::Decided(decided.approval_id.clone()));
                }
                if event.task_id == *task_id {
                    return Ok(Change::Event(event));
                }
            },
        }
    }
}

type Reading = Pin<Box<dyn Future<Output = (Follower, Result<Event, JournalError>)> + Send>>;

/// The changes of a task of this server.
pub(crate) struct ServerFeed {
    orchestrator: Orchestrator,
    task_id: TaskId,
    reading: Reading,
    /// The next approval that the tree needs, and a position before it was decided.
    asking: BoxFuture<'static, Result<(Approval, Position), OrchestratorError>>,
    /// The approval that was reported, while it is not decided, and the events of its task.
    deciding: Option<(ApprovalId, Reading)>,
}

impl ServerFeed {
    async fn next(&mut self) -> Result<Change, Failure> {
        loop {
            tokio::select! {
                biased;
                (follower, event) = &mut self.reading => {
                    self.reading = read_on(follower);
                    let event = event.map_err(OrchestratorError::from)?;
                    return Ok(Change::Event(Box::new(event)));
                }
                asked = &mut self.asking => {
                    self.asking = std::future::pending().boxed();
                    let (approval, position) = asked?;
                    let task_id = Some(approval.task_id.clone());
                    let follower = self.orchestrator.follow(task_id, position);
                    self.deciding = Some((approval.approval_id.clone(), read_on(follower)));
                    return Ok(Change::Asked(Box::new(approval)));
                }
                (follower, event) = read(&mut self.deciding) => {
                    let event = event.map_err(OrchestratorError::from)?;
                    if let Some(decided) = self.decided(follower, &event) {
                        return Ok(Change::Decided(decided));
                    }
                }
            }
        }
    }

    /// The approval that was reported, if this event ends it.
    fn decided(&mut self, follower: Follower, event: &Event) -> Option<ApprovalId> {
        let (approval_id, _) = self.deciding.take()?;
        let is_over = if let EventBody::ApprovalDecided(decided) = &event.body {
            decided.approval_id == approval_id
        } else if let EventBody::StatusChanged(change) = &event.body {
            change.status.is_terminal()
        } else {
            false
        };
        if is_over {
            self.asking = asking(&self.orchestrator, &self.task_id, None);
            return Some(approval_id);
        }
        self.deciding = Some((approval_id, read_on(follower)));
        None
    }
}

fn asking(
    orchestrator: &Orchestrator,
    task_id: &TaskId,
    requests: Option<ApprovalRequests>,
) -> BoxFuture<'static, Result<(Approval, Position), OrchestratorError>> {
    let (orchestrator, task_id) = (orchestrator.clone(), task_id.clone());
    async move {
        // The decision comes behind the position where the wait for the request began.
        let head = orchestrator.head().await?;
        let approval = match requests {
            Some(requests) => orchestrator.new_approval_needed(&task_id, requests).await?,
            None => orchestrator.approval_needed(&task_id).await?,
        };
        Ok((approval, head))
    }
    .boxed()
}

fn read_on(mut follower: Follower) -> Reading {
    Box::pin(async move {
        let event = follower.next().await;
        (follower, event)
    })
}

async fn read(
    deciding: &mut Option<(ApprovalId, Reading)>,
) -> (Follower, Result<Event, JournalError>) {
    match deciding {
        Some((_, reading)) => reading.await,
        None => std::future::pending().await,
    }
}
