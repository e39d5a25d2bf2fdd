//! The port to the bus: live events for watchers, and work items for workers.
//!
//! The bus is never the truth. A watcher that lost live events reads the journal; a work
//! item is a hint that a task in the journal needs attention.
//!
//! | part | guarantee                                                                     |
//! |------|-------------------------------------------------------------------------------|
//! | live | every subscriber gets what is published after it subscribed, in order; a slow subscriber gets the number of dropped events |
//! | work | one worker at a time holds an item; an item that is not finished within its lease can be claimed again; an id that is queued or claimed is not queued twice |

use std::fmt;
use std::pin::Pin;
use std::time::Duration;

use async_trait::async_trait;
use futures_core::Stream;

/// Longest topic, in bytes.
pub const TOPIC_BYTES_MAX: usize = 255;

/// What a subscriber gets.
pub type Subscription = Pin<Box<dyn Stream<Item = Delivery> + Send>>;

/// Carries live events and work.
#[async_trait]
pub trait Bus: Send + Sync {
    /// Publishes to every subscriber of `topic`. No subscriber is not an error.
    async fn publish(&self, topic: &Topic, payload: Vec<u8>) -> Result<(), BusError>;

    /// Subscribes to `topic` from now on.
    async fn subscribe(&self, topic: &Topic) -> Result<Subscription, BusError>;

    /// Queues a work item. Returns whether it was new.
    async fn enqueue(&self, queue: &Topic, item: WorkItem) -> Result<bool, BusError>;

    /// Claims the oldest queued item, or waits for one. Cancel safe: a dropped `claim`
    /// has claimed nothing.
    async fn claim(&self, queue: &Topic, lease: Duration) -> Result<Claim, BusError>;

    /// Ends a claim: the work is done and the item is removed. A finished claim is lost for any
    /// further call.
    async fn finish(&self, claim: &Claim) -> Result<(), BusError>;

    /// Ends a claim: another worker may claim the item at once.
    async fn release(&self, claim: &Claim) -> Result<(), BusError>;

    /// Extends a claim by `lease` from now.
    async fn extend(&self, claim: &Claim, lease: Duration) -> Result<(), BusError>;
}

/// A name to publish under: words of letters, digits, `_` and `-`, joined by dots.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Topic(String);

/// The text is not a topic.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{found}` is not a topic: use words of letters, digits, `_`, `-`, joined by dots")]
pub struct TopicError {
    /// The text that was found.
    pub found: String,
}

impl Topic {
    /// Checks a text of at most [`TOPIC_BYTES_MAX`] bytes.
    pub fn parse(text: &str) -> Result<Self, TopicError> {
        let is_word = |word: &str| {
            !word.is_empty()
                && word.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-')
        };
        if text.len() <= TOPIC_BYTES_MAX && text.split('.').all(is_word) {
            Ok(Self(text.to_owned()))
        } else {
            Err(TopicError { found: text.to_owned() })
        }
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Topic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// An item of a subscription.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Delivery {
    /// A published payload.
    Payload(Vec<u8>),
    /// The subscriber was too slow: this many payloads were dropped here.
    Missed(u64),
}

/// A work item.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkItem {
    /// Id of the item; the same id is not queued twice at a time.
    pub id: String,
    /// Content of the item.
    pub payload: Vec<u8>,
}

/// The right to one work item, for the time of its lease.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claim {
    /// Queue of the item.
    pub queue: Topic,
    /// The item.
    pub item: WorkItem,
    /// Increases with each claim of the item, also after it was finished and queued again.
    /// A store refuses writes with an older one.
    pub fence: u64,
}

/// Why the bus refused or failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BusError {
    /// The lease ran out; another worker may have the item. Stop working on it.
    #[error("the claim on `{id}` is lost: its lease ran out")]
    ClaimLost {
        /// Id of the item.
        id: String,
    },
    /// The queue is full: wait and try again.
    #[error("`{queue}` is full: it holds {limit} at most")]
    Full {
        /// Name of the queue.
        queue: Topic,
        /// Most items of the queue.
        limit: usize,
    },
    /// Try later, or check the configuration.
    #[error("the bus is not available: {reason}")]
    Unavailable {
        /// Cause, and what to do about it.
        reason: String,
    },
}
