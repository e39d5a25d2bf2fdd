//! The events of a task and its descendants as they come, with live deltas between them: from the orchestrator of
//! this process, or from the owner of the journal.

use antiphon_api::JournalEventQuery;
use antiphon_client::{
    Client, ClientError, DeltaNotice, DeltaPiece, LiveDelta, LiveStream, RetryPolicy, StreamItem,
};
use antiphon_core::{Event, Position, Seq, TaskId};
use antiphon_runtime::{
    AnswerDelta, Delta, DeltaEvent, DeltaWatcher, Follower, Orchestrator, SerializedDelta,
    ToolDelta, WatchedDelta,
};
use tokio::time::Instant;

use crate::attached_task::ENDING_PAUSE;

/// Events and deltas.
pub enum TaskStream {
    /// Of the orchestrator of this process.
    Local {
        /// Reads the events.
        follower: Box<Follower>,
        /// Receives the deltas.
        deltas: DeltaWatcher,
    },
    /// Of the owner of the journal.
    Remote(Box<LiveStream>),
    /// The owner ends, and still answers: at this time it is to be asked for the task again.
    Ending(Instant),
    /// Nothing: this process has no owner of the journal at the moment.
    Nothing,
}

/// What a stream delivers.
pub enum TaskStreamItem {
    /// An event of the journal.
    Event(Box<Event>),
    /// A part of an answer or of a tool's output. It is not stored.
    Delta(Delta),
    /// So many deltas were missed. The journal has the complete text.
    Missed(u64),
}

/// Why a stream has ended.
pub enum TaskStreamEnd {
    /// The owner of the journal has ended, or the connection to it broke.
    OwnerLost(ClientError),
    /// The journal of this process cannot be read.
    Unreadable(String),
}

impl TaskStream {
    /// Deltas of this process from now on. Events begin where [`Self::following`] says.
    pub fn local(orchestrator: &Orchestrator) -> Self {
        let deltas = orchestrator.deltas();
        let follower = Box::new(orchestrator.follow(None, Position(0)));
        Self::Local { follower, deltas }
    }

    /// The same, with the events of this process behind a position.
    pub fn following(self, orchestrator: &Orchestrator, after: Position) -> Self {
        match self {
            Self::Local { deltas, .. } => {
                Self::Local { follower: Box::new(orchestrator.follow(None, after)), deltas }
            }
            Self::Remote(_) | Self::Ending(_) | Self::Nothing => self,
        }
    }

    /// Events and deltas of a tree, or of all tasks, from the owner of the journal.
    pub fn remote(
        client: &Client,
        root: Option<&TaskId>,
        after: Position,
        retry: RetryPolicy,
    ) -> Self {
        let (root, after) = (root.cloned(), Some(after));
        let query = JournalEventQuery { root, after, deltas: true, ..JournalEventQuery::default() };
        Self::Remote(Box::new(client.live_journal_events(query, retry)))
    }

    /// Nothing, until an owner that ends is asked again.
    pub fn ending() -> Self {
        Self::Ending(Instant::now() + ENDING_PAUSE)
    }

    /// The next item. Deltas come before the event that completes their answer. Cancel safe. `seen` is the last
    /// event of the watched task that was shown.
    pub async fn next(&mut self, seen: Seq) -> Result<TaskStreamItem, TaskStreamEnd> {
        match self {
            Self::Local { follower, deltas } => tokio::select! {
                biased;
                delta = deltas.recv() => match delta {
                    Some(WatchedDelta::Delta(delta)) => {
                        Ok(TaskStreamItem::Delta(SerializedDelta::into_value(delta)))
                    }
                    Some(WatchedDelta::Missed(count)) => Ok(TaskStreamItem::Missed(count)),
                    None => {
                        Err(TaskStreamEnd::Unreadable("the orchestrator has ended".to_owned()))
                    }
                },
                event = follower.next() => match event {
                    Ok(event) => Ok(TaskStreamItem::Event(Box::new(event))),
                    Err(error) => Err(TaskStreamEnd::Unreadable(error.to_string())),
                },
            },
            Self::Nothing => std::future::pending().await,
            Self::Ending(again) => {
                tokio::time::sleep_until(*again).await;
                let reason = "the owner of the journal ends".to_owned();
                Err(TaskStreamEnd::OwnerLost(ClientError::StreamLost { reason }))
            }
            Self::Remote(stream) => loop {
                match stream.next().await {
                    Ok(Some(StreamItem::Event(event))) => return Ok(TaskStreamItem::Event(event)),
                    Ok(Some(StreamItem::Delta(delta))) => {
                        if let Some(item) = relayed(delta, seen) {
                            return Ok(item);
                        }
                    }
                    Ok(None) => {
                        let reason = "the stream of events has ended".to_owned();
                        return Err(TaskStreamEnd::OwnerLost(ClientError::StreamLost { reason }));
                    }
                    Err(error) => return Err(TaskStreamEnd::OwnerLost(error)),
                }
            },
        }
    }
}

/// A delta of the owner as one of this process.
fn relayed(delta: LiveDelta, seen: Seq) -> Option<TaskStreamItem> {
    let LiveDelta { task_id, text_at, piece } = delta;
    let event = match piece {
        DeltaPiece::Answer(event) => DeltaEvent::Answer(event),
        DeltaPiece::Other(DeltaNotice::DeltasMissed { count }) => {
            return Some(TaskStreamItem::Missed(count));
        }
        DeltaPiece::Other(DeltaNotice::ToolOutput { tool_call_id, delta }) => {
            DeltaEvent::Tool(ToolDelta::ToolOutput { tool_call_id, delta })
        }
        DeltaPiece::Other(DeltaNotice::AnswerSuperseded { code, error }) => {
            DeltaEvent::State(AnswerDelta::AnswerSuperseded { code, error })
        }
    };
    Some(TaskStreamItem::Delta(Delta::relayed(task_id?, seen, text_at, event)))
}
