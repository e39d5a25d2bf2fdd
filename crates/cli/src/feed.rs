//! The events of a task and its descendants as they come, with live deltas between them: from the orchestrator of
//! this process, or from the owner of the journal.

use antiphon_api::JournalEventQuery;
use antiphon_client::{
    Client, ClientError, DeltaPiece, LiveDelta, LiveStream, RetryPolicy, StreamItem,
};
use antiphon_core::{Event, Position, Seq, StreamEvent, TaskId};
use antiphon_runtime::{
    AnswerDelta, Delta, DeltaEvent, DeltaWatcher, Follower, Orchestrator, SerializedDelta,
    ToolDelta, WatchedDelta,
};

/// Events and deltas.
pub(crate) enum Feed {
    Local {
        follower: Box<Follower>,
        deltas: DeltaWatcher,
    },
    Remote(Box<LiveStream>),
    /// Nothing: this process has no owner of the journal at the moment.
    Nothing,
}

/// What a feed delivers.
pub(crate) enum FeedItem {
    Event(Box<Event>),
    Delta(Delta),
    /// So many deltas were missed. The journal has the complete text.
    Missed(u64),
}

/// Why a feed has ended.
pub(crate) enum FeedEnd {
    /// The owner of the journal has ended, or the connection to it broke.
    OwnerLost(ClientError),
    /// The journal of this process cannot be read.
    Unreadable(String),
}

impl Feed {
    /// Deltas of this process from now on. Events begin where [`Self::following`] says.
    pub(crate) fn local(orchestrator: &Orchestrator) -> Self {
        let deltas = orchestrator.deltas();
        let follower = Box::new(orchestrator.follow(None, Position(0)));
        Self::Local { follower, deltas }
    }

    /// The same, with the events of this process behind a position.
    pub(crate) fn following(self, orchestrator: &Orchestrator, after: Position) -> Self {
        match self {
            Self::Local { deltas, .. } => {
                Self::Local { follower: Box::new(orchestrator.follow(None, after)), deltas }
            }
            Self::Remote(_) | Self::Nothing => self,
        }
    }

    /// Events and deltas of a tree from the owner of the journal.
    pub(crate) fn remote(
        client: &Client,
        root: &TaskId,
        after: Position,
        retry: RetryPolicy,
    ) -> Self {
        let (root, after) = (Some(root.clone()), Some(after));
        let query = JournalEventQuery { root, after, deltas: true, ..JournalEventQuery::default() };
        Self::Remote(Box::new(client.live_journal_events(query, retry)))
    }

    /// The next item. Deltas come before the event that completes their answer. Cancel safe. `seen` is the last
    /// event of the watched task that was shown.
    pub(crate) async fn next(&mut self, seen: Seq) -> Result<FeedItem, FeedEnd> {
        match self {
            Self::Local { follower, deltas } => tokio::select! {
                biased;
                delta = deltas.recv() => match delta {
                    Some(WatchedDelta::Delta(delta)) => {
                        Ok(FeedItem::Delta(SerializedDelta::into_value(delta)))
                    }
                    Some(WatchedDelta::Missed(count)) => Ok(FeedItem::Missed(count)),
                    None => {
                        Err(FeedEnd::Unreadable("the orchestrator has ended".to_owned()))
                    }
                },
                event = follower.next() => match event {
                    Ok(event) => Ok(FeedItem::Event(Box::new(event))),
                    Err(error) => Err(FeedEnd::Unreadable(error.to_string())),
                },
            },
            Self::Nothing => std::future::pending().await,
            Self::Remote(stream) => loop {
                match stream.next().await {
                    Ok(Some(StreamItem::Event(event))) => return Ok(FeedItem::Event(event)),
                    Ok(Some(StreamItem::Delta(delta))) => {
                        if let Some(item) = relayed(delta, seen) {
                            return Ok(item);
                        }
                    }
                    Ok(None) => {
                        let reason = "the stream of events has ended".to_owned();
                        return Err(FeedEnd::OwnerLost(ClientError::StreamLost { reason }));
                    }
                    Err(error) => return Err(FeedEnd::OwnerLost(error)),
                }
            },
        }
    }
}

/// A delta of the owner as one of this process.
fn relayed(delta: LiveDelta, seen: Seq) -> Option<FeedItem> {
    let LiveDelta { task_id, text_at, piece } = delta;
    let event = match piece {
        DeltaPiece::DeltasMissed { count } => return Some(FeedItem::Missed(count)),
        DeltaPiece::TextDelta { delta } => DeltaEvent::Answer(StreamEvent::TextDelta { delta }),
        DeltaPiece::ThinkingDelta { delta } => {
            DeltaEvent::Answer(StreamEvent::ThinkingDelta { delta })
        }
        DeltaPiece::ToolCallBegin { id, name } => {
            DeltaEvent::Answer(StreamEvent::ToolCallBegin { id, name })
        }
        DeltaPiece::ToolCallDelta { id, delta } => {
            DeltaEvent::Answer(StreamEvent::ToolCallDelta { id, delta })
        }
        DeltaPiece::ToolCallEnd { call } => {
            let call = serde_json::from_value(call).ok()?;
            DeltaEvent::Answer(StreamEvent::ToolCallEnd { call })
        }
        DeltaPiece::ToolOutput { tool_call_id, delta } => {
            DeltaEvent::Tool(ToolDelta::ToolOutput { tool_call_id, delta })
        }
        DeltaPiece::AnswerSuperseded { code, error } => {
            DeltaEvent::State(AnswerDelta::AnswerSuperseded { code, error })
        }
    };
    Some(FeedItem::Delta(Delta::relayed(task_id?, seen, text_at, event)))
}
