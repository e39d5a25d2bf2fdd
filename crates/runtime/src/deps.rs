//! The ports and settings the runtime is built from.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use antiphon_core::port::{
    Agents, BootTime, Clock, Gate, GateRequest, GateVerdict, IdSource, Journal, Rule, Runner,
};
use antiphon_core::{
    ModelRef, PriceTable, Provider, RawJson, RunnerConfig, TaskCreated, TaskId, TaskLimits,
    ToolExecutor,
};
use async_trait::async_trait;

use crate::budget::spend_limits::Budget;
use crate::orchestrator_error::OrchestratorError;
use crate::task::state::TaskState;

/// Configuration of an orchestrator. [`RuntimeDeps`] alone convert into one without spend limits.
pub struct RuntimeConfig {
    /// Ports and settings.
    pub deps: RuntimeDeps,
    /// Spend limits.
    pub budget: Budget,
}

impl From<RuntimeDeps> for RuntimeConfig {
    fn from(deps: RuntimeDeps) -> Self {
        Self { deps, budget: Budget::default() }
    }
}

/// The ports and settings the orchestrator works with.
#[derive(Clone)]
pub struct RuntimeDeps {
    /// Stores all events; the only durable state.
    pub journal: Arc<dyn Journal>,
    /// Finds the provider of a model.
    pub models: Arc<dyn Models>,
    /// The tools that agents can call.
    pub tools: Arc<dyn ToolExecutor>,
    /// Decides which calls are allowed, denied or need approval.
    pub gate: Arc<dyn Gate>,
    /// Agent definitions; when absent, no agent can call another.
    pub agents: Option<Arc<dyn Agents>>,
    /// Runners for tasks that run elsewhere; may be empty.
    pub runners: Vec<Arc<dyn Runner>>,
    /// Prices of the models, for cost limits and reports.
    pub prices: Arc<PriceTable>,
    /// Source of the current time.
    pub clock: Arc<dyn Clock>,
    /// Source of new ids.
    pub ids: Arc<dyn IdSource>,
    /// Policies and timeouts.
    pub settings: OrchestratorSettings,
}

impl RuntimeDeps {
    /// The runner of this kind.
    pub(crate) fn runner(&self, kind: &str) -> Option<&Arc<dyn Runner>> {
        self.runners.iter().find(|known| known.kind() == kind)
    }

    /// Whether the model of a task with this runner is called from here.
    pub(crate) fn uses_run_provider(&self, runner: Option<&RunnerConfig>) -> bool {
        let Some(config) = runner else { return true };
        self.runner(&config.kind).is_none_or(|known| known.uses_run_provider())
    }

    /// Whether a runner is an orchestrator of its own.
    pub(crate) fn is_orchestrated(&self, runner: Option<&RunnerConfig>) -> bool {
        let Some(config) = runner else { return false };
        self.runner(&config.kind).is_some_and(|known| known.is_orchestrator())
    }

    /// The moment to record with the creation of a task, if it has a time limit.
    pub(crate) fn boot_time(&self, limits: &TaskLimits) -> Option<BootTime> {
        limits.wall_clock_s_max.and_then(|_| self.clock.boot_time())
    }

    /// The provider of a task's model. The error text is meant for the user.
    pub(crate) fn provider_of(&self, task: &TaskCreated) -> Result<Arc<dyn Provider>, String> {
        let model = task.model.as_ref().ok_or_else(|| "no model is set".to_owned())?;
        self.models.provider(model, &task.fallbacks, task.route.as_ref())
    }

    /// Whether another process may bring the model of a task.
    pub(crate) fn model_may_come(&self, task: &TaskCreated) -> bool {
        let may_come = |model| self.models.may_come(model, &task.fallbacks);
        task.model.as_ref().is_some_and(may_come)
    }

    /// Checks that the model of a task can be called from here, if it is called from here and cannot come.
    pub(crate) fn check_model(&self, state: &TaskState) -> Result<(), OrchestratorError> {
        if !self.uses_run_provider(state.created.runner.as_ref())
            || self.model_may_come(&state.created)
        {
            return Ok(());
        }
        let task_id = || state.task_id.clone();
        let refuse = |reason| OrchestratorError::NoModel { task_id: task_id(), reason };
        self.provider_of(&state.created).map(drop).map_err(refuse)
    }
}

/// What a task works with, where that is not the orchestrator's own: it belongs to another process of the user.
#[derive(Clone)]
pub struct TaskEnvironment {
    /// Finds the provider of a model.
    pub models: Arc<dyn Models>,
    /// The tools that the task can call.
    pub tools: Arc<dyn ToolExecutor>,
    /// Decides which calls are allowed, denied or need approval.
    pub gate: Arc<dyn Gate>,
    /// Agent definitions; when absent, the task can call no other agent.
    pub agents: Option<Arc<dyn Agents>>,
    /// Runners for tasks that run elsewhere; may be empty.
    pub runners: Vec<Arc<dyn Runner>>,
    /// What happens to a call that needs approval.
    pub approvals: ApprovalPolicy,
}

/// Finds what a task works with.
pub trait TaskEnvironments: Send + Sync {
    /// The environment of a task; `None` is the orchestrator's own. The error text is meant for the user: the task
    /// cannot go on here.
    fn find(
        &self,
        task_id: &TaskId,
        task: &TaskCreated,
    ) -> Result<Option<Arc<TaskEnvironment>>, String>;

    /// All environments that tasks may have left processes in.
    fn all(&self) -> Vec<Arc<TaskEnvironment>>;
}

impl RuntimeDeps {
    /// The same with what a task works with.
    pub(crate) fn within(&self, environment: &TaskEnvironment) -> Self {
        let TaskEnvironment { models, tools, gate, agents, runners, approvals } =
            environment.clone();
        let settings = OrchestratorSettings { approvals, ..self.settings };
        Self { models, tools, gate, agents, runners, settings, ..self.clone() }
    }
}

/// Finds the provider of a model.
pub trait Models: Send + Sync {
    /// Returns the provider, or an error text for the user. `fallbacks` are called when the model does
    /// not answer; `route` is the task's own routing.
    fn provider(
        &self,
        model: &ModelRef,
        fallbacks: &[ModelRef],
        route: Option<&RawJson>,
    ) -> Result<Arc<dyn Provider>, String>;

    /// Whether another process of the user may bring a model that cannot be called from here: a task waits for it.
    /// Otherwise a task without its model stops.
    fn may_come(&self, _model: &ModelRef, _fallbacks: &[ModelRef]) -> bool {
        false
    }

    /// Model of agents that name none.
    fn default_model(&self) -> Option<ModelRef> {
        None
    }

    /// Context window of a model in tokens (request and answer together), if known.
    fn window_tokens(&self, model: &ModelRef) -> Option<u64>;

    /// States of the circuit breakers of the providers that were called, by name.
    fn breakers(&self) -> BTreeMap<String, BreakerState> {
        BTreeMap::new()
    }
}

/// What a provider's circuit breaker does with the next request; the worst last.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum BreakerState {
    /// Sends it.
    Closed,
    /// Sends one as a probe.
    HalfOpen,
    /// Fails it at once.
    Open,
}

/// Policies and timeouts of the orchestrator.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OrchestratorSettings {
    /// What happens to a call that needs approval.
    pub approvals: ApprovalPolicy,
    /// How often a task that stopped for a passing reason is restarted.
    pub restarts_max: u32,
    /// Pause before the first restart; it doubles with each further one.
    pub restart_after: Duration,
    /// A task without a heartbeat for this long is restarted. Must exceed the longest tool call.
    pub heartbeat_timeout: Duration,
    /// How long a task waits for a journal that cannot be written; without a limit when absent. After
    /// that it is restarted as after any other fault.
    pub storage_wait_max: Option<Duration>,
    /// How long a client may take to send the result of a call of its own tool.
    pub client_tool_timeout: Duration,
    /// Which orchestrator handles calls that dispatch agents.
    pub dispatch: Dispatch,
}

/// Which orchestrator handles calls that dispatch agents or manage dispatched tasks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dispatch {
    /// This one.
    Here,
    /// The one that started this one: a task with such calls is left to it.
    Parent,
}

impl Default for OrchestratorSettings {
    fn default() -> Self {
        Self {
            approvals: ApprovalPolicy::Wait { timeout: None },
            restarts_max: 5,
            restart_after: Duration::from_millis(100),
            // Longer than any tool may take.
            heartbeat_timeout: Duration::from_secs(15 * 60),
            storage_wait_max: None,
            client_tool_timeout: Duration::from_secs(5 * 60),
            dispatch: Dispatch::Here,
        }
    }
}

/// What happens to a call that needs approval.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ApprovalPolicy {
    /// Its task waits for the decision of a user.
    Wait {
        /// Time after which the call is denied; no limit when absent.
        timeout: Option<Duration>,
    },
    /// It is refused at once, and the model reads which rule would allow it.
    Refuse,
}

/// Allows every call. For tools that can do no harm.
#[derive(Debug, Clone, Copy, Default)]
pub struct OpenGate;

#[async_trait]
impl Gate for OpenGate {
    fn judge(&self, _: &GateRequest<'_>) -> GateVerdict {
        GateVerdict::Allow
    }

    async fn remember(&self, _: &Rule) -> Result<(), String> {
        Ok(())
    }
}
