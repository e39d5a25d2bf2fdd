//! The trait that an adapter implements to run this suite.

use std::any::Any;
use std::sync::Arc;

use antiphon_core::port::{Cancel, Provider};
use antiphon_core::{MessageStream, Request};
use async_trait::async_trait;
use chrono::{DateTime, Utc};
use tokio::sync::watch;

use super::{Answer, Scenario};

/// A provider's protocol, from the side of its server.
#[async_trait]
pub trait Wire: Send + Sync {
    /// A provider whose first request is answered with the first scenario, its second with the
    /// second, and so on. A further request may be answered in any way.
    async fn play(&self, scenarios: &[Scenario]) -> Result<Stage, Unsupported>;

    /// Opens an answer of the provider. The default is right for every provider.
    fn open(
        &self,
        provider: &dyn Provider,
        request: Request,
        cancel: Cancel,
        at: DateTime<Utc>,
    ) -> Box<dyn Answer> {
        Box::new(MessageStream::open(provider, request, cancel, at))
    }
}

/// A provider and its server. Both live until the check is over.
pub struct Stage {
    pub(super) provider: Arc<dyn Provider>,
    pub(super) traffic: Option<watch::Receiver<Traffic>>,
    _behind: Option<Box<dyn Any + Send>>,
}

/// What the server sees of the provider.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Traffic {
    /// Number of requests so far.
    pub begun: usize,
    /// Number of requests that are still being answered.
    pub open: usize,
}

/// The wire cannot express a scenario.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unsupported {
    /// What the wire cannot express.
    pub reason: String,
}

impl Stage {
    /// A provider, without counters of its requests.
    pub fn new(provider: impl Provider + 'static) -> Self {
        Self { provider: Arc::new(provider), traffic: None, _behind: None }
    }

    /// Adds the server's counters of requests.
    pub fn watched(mut self, traffic: watch::Receiver<Traffic>) -> Self {
        self.traffic = Some(traffic);
        self
    }

    /// Keeps something alive, such as the tasks of a server.
    pub fn keeping(self, behind: impl Any + Send) -> Self {
        Self { _behind: Some(Box::new(behind)), ..self }
    }
}

impl Unsupported {
    /// Names what the wire cannot express.
    pub fn because(reason: impl Into<String>) -> Self {
        Self { reason: reason.into() }
    }
}
