//! The port to the bus: live events to whoever watches, and work to whoever is free.
//!
//! Nothing here is the truth. A watcher that lost live events reads the journal; an item of
//! work is a hint that some task in the journal wants attention.
//!
//! | part | promise                                                                       |
//! |------|-------------------------------------------------------------------------------|
//! | live | every subscriber gets what is published after it subscribed, in order; one too slow is told how many it missed |
//! | work | an item is claimed by one worker at a time; one that is not finished within its lease is claimed again; an id that is waiting or claimed is not queued twice |

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
    /// Tells everybody who is subscribed to `topic`. Nobody being there is no error.
    async fn publish(&self, topic: &Topic, payload: Vec<u8>) -> Result<(), BusError>;

    /// Listens to `topic` from now on.
    async fn subscribe(&self, topic: &Topic) -> Result<Subscription, BusError>;

    /// Queues work. Says whether it was new.
    async fn enqueue(&self, queue: &Topic, item: WorkItem) -> Result<bool, BusError>;

    /// Takes the oldest waiting item, or waits for one. Cancel safe: a `claim` that was dropped
    /// has taken nothing.
    async fn claim(&self, queue: &Topic, lease: Duration) -> Result<Claim, BusError>;

    /// Ends a claim: the work is done and the item goes away. What is finished is lost to any
    /// further call.
    async fn finish(&self, claim: &Claim) -> Result<(), BusError>;

    /// Ends a claim: somebody else may have the item at once.
    async fn release(&self, claim: &Claim) -> Result<(), BusError>;

    /// Prolongs a claim by `lease` from now.
    async fn extend(&self, claim: &Claim, lease: Duration) -> Result<(), BusError>;
}

/// A name to publish under: words of letters, digits, `_` and `-`, joined by dots.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Topic(String);

/// The text is no topic.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{found}` is no topic: words of letters, digits, `_`, `-`, joined by dots")]
pub struct TopicError {
    /// The text.
    pub found: String,
}

impl Topic {
    /// Takes a text of at most [`TOPIC_BYTES_MAX`] bytes.
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

/// What reaches a subscriber.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Delivery {
    /// Something that was published.
    Payload(Vec<u8>),
    /// The subscriber was too slow and this many were dropped, here.
    Missed(u64),
}

/// A piece of work.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkItem {
    /// Its name; the same name is not queued twice at a time.
    pub id: String,
    /// What it is.
    pub payload: Vec<u8>,
}

/// A right to one piece of work for a while.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claim {
    /// Where it was queued.
    pub queue: Topic,
    /// The work.
    pub item: WorkItem,
    /// Grows with each claim of the item, also when it was finished and queued again in between.
    /// A store refuses writes under an older one.
    pub fence: u64,
}

/// Why the bus did not do as told.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BusError {
    /// The lease ran out; somebody else may have the item. Stop working on it.
    #[error("the claim on `{id}` is lost: its lease ran out")]
    ClaimLost {
        /// Which item.
        id: String,
    },
    /// Wait and try again.
    #[error("`{queue}` is full: it holds {limit} at most")]
    Full {
        /// Which queue.
        queue: Topic,
        /// Its limit.
        limit: usize,
    },
    /// Try later, or look at the configuration.
    #[error("the bus is not available: {reason}")]
    Unavailable {
        /// Why.
        reason: String,
    },
}
