//! What the orchestrator is given to work with.

use std::sync::Arc;
use std::time::Duration;

use antiphon_core::port::{
    Agents, Clock, Gate, GateRequest, IdSource, Journal, Rule, Runner, Verdict,
};
use antiphon_core::{ModelRef, PriceTable, Provider, RawJson, ToolExecutor};
use async_trait::async_trait;

/// What the orchestrator is given to work with.
#[derive(Clone)]
pub struct RuntimeDeps {
    /// The truth.
    pub journal: Arc<dyn Journal>,
    /// Who answers.
    pub models: Arc<dyn Models>,
    /// What agents can do.
    pub tools: Arc<dyn ToolExecutor>,
    /// What of it they may.
    pub gate: Arc<dyn Gate>,
    /// Who there is to be called; nobody calls anybody when absent.
    pub agents: Option<Arc<dyn Agents>>,
    /// Who works on tasks elsewhere.
    pub runners: Vec<Arc<dyn Runner>>,
    /// What answers cost.
    pub prices: Arc<PriceTable>,
    /// The time.
    pub clock: Arc<dyn Clock>,
    /// Names for new things.
    pub ids: Arc<dyn IdSource>,
    /// How it goes about it.
    pub settings: Settings,
}

/// Finds who answers for a model.
pub trait Models: Send + Sync {
    /// The provider, or what to tell the person. `fallbacks` are asked when that one cannot
    /// answer; `route` is what the task says about how its model is reached.
    fn provider(
        &self,
        model: &ModelRef,
        fallbacks: &[ModelRef],
        route: Option<&RawJson>,
    ) -> Result<Arc<dyn Provider>, String>;

    /// Who answers where nobody is named.
    fn default_model(&self) -> Option<ModelRef> {
        None
    }

    /// How many tokens a request to it and its answer may have together, where that is known.
    fn window_tokens(&self, model: &ModelRef) -> Option<u64>;
}

/// How the orchestrator goes about its work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Settings {
    /// What becomes of a call that somebody has to be asked about.
    pub asking: ApprovalPolicy,
    /// How often a task that stopped for a reason that may pass is taken up again.
    pub restarts_max: u32,
    /// How long to wait before the first of these times; twice as long before each further one.
    pub restart_after: Duration,
    /// A task that gives no sign of life for so long is taken up again.
    pub silence_max: Duration,
    /// How long a client may take to say what came of a call of its tools.
    pub client_patience: Duration,
    /// Who answers calls that dispatch agents.
    pub dispatch: Dispatch,
}

/// Who answers calls that dispatch agents, or look after those that were.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dispatch {
    /// This orchestrator.
    Here,
    /// The one that this one works for: a task with such calls is left to it.
    Above,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            asking: ApprovalPolicy::Wait { patience: None },
            restarts_max: 5,
            restart_after: Duration::from_millis(100),
            // Longer than any tool may take.
            silence_max: Duration::from_secs(15 * 60),
            client_patience: Duration::from_secs(5 * 60),
            dispatch: Dispatch::Here,
        }
    }
}

/// What becomes of a call that somebody has to be asked about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ApprovalPolicy {
    /// Its task waits until somebody answers.
    Wait {
        /// After so long the answer is no.
        patience: Option<Duration>,
    },
    /// Nobody is there: it is refused, and the model is told which rule would allow it.
    Refuse,
}

/// Lets every call run. For tools that can do no harm.
#[derive(Debug, Clone, Copy, Default)]
pub struct OpenGate;

#[async_trait]
impl Gate for OpenGate {
    fn judge(&self, _: &GateRequest<'_>) -> Verdict {
        Verdict::Allow
    }

    async fn remember(&self, _: &Rule) -> Result<(), String> {
        Ok(())
    }
}
