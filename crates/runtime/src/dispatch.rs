//! Dispatching agents: a call becomes tasks, and what they deliver becomes its result.
//!
//! | written              | before                                                                  |
//! |----------------------|-------------------------------------------------------------------------|
//! | `dispatched`         | any child exists; it names them, so that each is created once           |
//! | a child's creation   | anybody works on it                                                     |
//! | the result           | the model reads it, and before nobody is waited for any more            |
//!
//! Killed in between, the children that are there are joined again and the others are created, under
//! the names they were given.

use std::collections::{HashMap, HashSet};
use std::num::NonZeroUsize;
use std::sync::Arc;

use antiphon_core::port::{Append, Expected, JournalError, TaskQuery, Which};
use antiphon_core::{
    AgentState, ContextScope, Dispatched, HandedOver, HistoryRef, InvocationResult, Join,
    MessageAppended, RunnerConfig, StatusChanged, TaskCreated, TaskId, TaskStatus, TaskSummary,
    ToolCallBlock, ToolCallId, ToolResult, UserMessage, ValidInvocation,
};
use futures_util::{StreamExt, stream};
use serde_json::json;

use crate::call_agent;
use crate::flight::{self, Flight, Wants};
use crate::inner::Prepared;
use crate::lap::{Flushed, Work};
use crate::limits::{self, LimitReached};
use crate::orchestrator::OrchestratorError;
use crate::plan::{self, Caller, Terms};
use crate::refusal::Refusal;
use crate::running;
use crate::state::TaskState;
use crate::tree::{self, Tree};

/// Children that are being created at a time.
const CREATED_AT_ONCE: usize = 1024;

/// Tasks of a tree that are looked at, at most.
const TREE_TASKS_MAX: NonZeroUsize = NonZeroUsize::new(1_000_000).unwrap();

/// A child that is to be created.
struct Planned {
    created: TaskCreated,
    message: UserMessage,
}

impl Work {
    /// Dispatches what a call asks for, or has another agent take over.
    pub(crate) async fn dispatch(
        &mut self,
        call: &ToolCallBlock,
        alone: Alone,
    ) -> Result<Flushed, OrchestratorError> {
        let invocation = match self.accept(call, alone) {
            Ok(accepted) => accepted,
            Err(refusal) => {
                self.result(call, refusal.result());
                return Ok(Flushed::Kept);
            }
        };
        let (invocation, planned) = invocation;
        let invocation = invocation.get();
        if invocation.context == ContextScope::Shared {
            for planned in planned {
                self.hand_over(call, planned);
            }
            return Ok(Flushed::Kept);
        }
        let ids = &self.inner.world.ids;
        let children: Vec<TaskId> = planned.iter().map(|_| TaskId::from(ids.next())).collect();
        let flight = Flight::Children { join: invocation.join, children: children.clone() };
        self.expect(&flight);
        self.push(Dispatched {
            tool_call_id: call.id.clone(),
            context: invocation.context,
            join: invocation.join,
            children: children.clone(),
        });
        let flushed = self.flush().await?;
        if flushed != Flushed::Over {
            self.raise(children.into_iter().zip(planned.into_iter().map(Ok)).collect()).await?;
        }
        Ok(flushed)
    }

    /// What a call asks for, if it may be had.
    fn accept(
        &self,
        call: &ToolCallBlock,
        alone: Alone,
    ) -> Result<(ValidInvocation, Vec<Planned>), Refusal> {
        let (invocation, planned) = self.plan(call)?;
        let asked = invocation.get();
        if asked.context == ContextScope::Shared {
            if alone == Alone::No {
                return Err(Refusal::NotAlone);
            }
            let bounded = |target: &antiphon_core::Target| {
                target.timeout_s.is_some() || target.output_schema.is_some()
            };
            if asked.targets.iter().any(bounded) {
                let reason = "whoever takes over has your time and delivers your result: leave \
                              out `timeout_s` and `output_schema`";
                return Err(Refusal::Arguments { reason: reason.to_owned() });
            }
            for planned in &planned {
                self.check_place(&planned.created)?;
            }
            if self.state.handovers >= limits::HANDOVERS_MAX {
                return Err(LimitReached::Handovers { max: limits::HANDOVERS_MAX }.into());
            }
        } else {
            let more = planned.len();
            plan::check_room(&self.state, &self.trees, self.at_work(), more)?;
            tree::reserve(&self.trees, u32::try_from(more).unwrap_or(u32::MAX))?;
        }
        Ok((invocation, planned))
    }

    fn plan(&self, call: &ToolCallBlock) -> Result<(ValidInvocation, Vec<Planned>), Refusal> {
        let no_arguments = || Refusal::Arguments { reason: "they are no JSON object".to_owned() };
        let arguments = call.arguments.object().ok_or_else(no_arguments)?;
        let invocation = call_agent::read(arguments, self.inner.world.clock.now())?;
        let agents = self.inner.world.agents.clone();
        let nobody = || Refusal::MayNotCall { agent: "anybody".to_owned(), allowed: Vec::new() };
        let agents = agents.ok_or_else(nobody)?;
        let caller = Caller {
            world: &self.inner.world,
            agents: &*agents,
            state: &self.state,
            history: HistoryRef { task_id: self.state.task_id.clone(), seq: self.state.seq },
            deadline: limits::deadline(&self.state),
        };
        let asked = invocation.get();
        let terms =
            Terms { context: asked.context, executor: &asked.executor, tools: &asked.tools };
        let plan = |target: &antiphon_core::Target| {
            let created = caller.plan(target, terms)?;
            Ok(Planned { created, message: target.message.clone() })
        };
        let planned = asked.targets.iter().map(plan).collect::<Result<Vec<_>, Refusal>>()?;
        for planned in &planned {
            self.check_price(&planned.created)?;
        }
        Ok((invocation, planned))
    }

    /// Whoever takes over works where the task is.
    fn check_place(&self, heir: &TaskCreated) -> Result<(), Refusal> {
        let kind = |runner: &Option<RunnerConfig>| {
            runner.as_ref().map_or("local", |runner| &runner.kind).to_owned()
        };
        let (wanted, here) = (kind(&heir.runner), kind(&self.state.created.runner));
        if wanted == here {
            return Ok(());
        }
        let agent = format!("`{}`", heir.agent);
        let reason = format!("it would run in {wanted}, and the task it takes over runs in {here}");
        Err(Refusal::NoExecutor { agent, reason })
    }

    /// Where there is a budget, everybody's price is known.
    fn check_price(&self, child: &TaskCreated) -> Result<(), LimitReached> {
        let budget = self.trees.iter().any(|tree| tree.limits.cost_nano_usd_max.is_some())
            || child.limits.cost_nano_usd_max.is_some();
        let priced = |model| self.inner.world.prices.price(model).is_some();
        match child.model.as_ref().filter(|model| budget && !priced(model)) {
            Some(model) => Err(LimitReached::PriceUnknown { model: model.to_string() }),
            None => Ok(()),
        }
    }

    /// Children that have not ended.
    fn at_work(&self) -> usize {
        let mut children: HashSet<&TaskId> = self.state.detached.values().collect();
        for flight in self.state.flights.values() {
            if let Flight::Children { children: more, .. } = flight {
                children.extend(more);
            }
        }
        let count = |outcomes: &flight::Outcomes| {
            children.iter().filter(|child| !outcomes.contains_key(**child)).count()
        };
        self.inner.kin.outcomes(&self.state.task_id, count)
    }

    /// Another agent takes over.
    fn hand_over(&mut self, call: &ToolCallBlock, planned: Planned) {
        let Planned { created, message } = planned;
        let to = created.agent.clone();
        self.push(HandedOver {
            tool_call_id: call.id.clone(),
            agent: created.agent,
            model: created.model,
            fallbacks: created.fallbacks,
            system_prompt: created.system_prompt,
            tools: created.tools,
            agents: created.agents,
        });
        self.result(call, ToolResult::text(format!("handed over to {to}")));
        self.walk_to(AgentState::Idle);
        self.push(MessageAppended::new(message));
        self.replace_agent();
    }

    /// Creates children under the names they were given, and begins to work on them. One that
    /// cannot be had any more is created all the same, and has failed.
    async fn raise(
        &mut self,
        children: Vec<(TaskId, Result<Planned, Refusal>)>,
    ) -> Result<(), OrchestratorError> {
        let seq = self.state.seq;
        let state = &self.state;
        let (inner, trees) = (&self.inner, &self.trees);
        let births = children.into_iter().map(|(task_id, planned)| async move {
            let planned = match planned {
                Ok(mut planned) => {
                    if let Some(history) = &mut planned.created.history {
                        history.seq = seq;
                    }
                    planned
                }
                Err(refusal) => return stillborn(inner, state, task_id, &refusal).await,
            };
            birth(inner, state, trees, task_id, planned).await
        });
        let mut births = std::pin::pin!(stream::iter(births).buffer_unordered(CREATED_AT_ONCE));
        while let Some(born) = births.next().await {
            born?;
        }
        Ok(())
    }

    pub(crate) fn expect(&self, flight: &Flight) {
        let (kin, who) = (&self.inner.kin, &self.state.task_id);
        kin.expect(who, flight.tasks(), flight.wants(), &self.trees);
        if let Flight::Children { join: Join::Detached, children } = flight {
            let each = Wants { ends: 1, completions: None };
            for child in children {
                kin.expect(who, std::slice::from_ref(child), each, &self.trees);
            }
        }
        if let Some(until) = flight.until() {
            self.inner.watch_task(until, who.clone());
        }
    }

    /// Takes up again what a task waits for, after whoever worked on it before.
    pub(crate) async fn rejoin(&mut self) -> Result<(), OrchestratorError> {
        let (flights, detached) = (self.state.flights.values(), self.state.detached.values());
        let mut awaited: Vec<TaskId> = flights.flat_map(Flight::tasks).cloned().collect();
        awaited.extend(detached.cloned());
        let me = self.state.task_id.clone();
        let unknown = self.inner.kin.unknown(&me, &awaited);
        for flight in self.state.flights.values() {
            if !unknown.is_empty() || flight.until().is_some() {
                self.expect(flight);
            }
        }
        if unknown.is_empty() {
            return Ok(());
        }
        let each = Wants { ends: 1, completions: None };
        for child in self.state.detached.values() {
            self.inner.kin.expect(&me, std::slice::from_ref(child), each, &self.trees);
        }
        let there = self.tree_tasks().await?;
        self.end_orphans(&there).await?;
        let mut missing = HashSet::new();
        for task in unknown {
            match there.get(&task) {
                Some(summary) => self.inner.rejoin(&me, summary).await?,
                None => {
                    missing.insert(task);
                }
            }
        }
        self.raise_missing(&missing).await
    }

    async fn tree_tasks(&self) -> Result<HashMap<TaskId, TaskSummary>, OrchestratorError> {
        let root = self.state.created.root.as_ref().unwrap_or(&self.state.task_id);
        let query = TaskQuery { which: Which::Tree(root.clone()), limit: TREE_TASKS_MAX };
        let tasks = self.inner.world.journal.tasks(query).await?;
        Ok(tasks.into_iter().map(|task| (task.task_id.clone(), task)).collect())
    }

    /// Ends what is left below tasks that have ended: whoever ended them was cut off before it got
    /// there.
    async fn end_orphans(
        &self,
        there: &HashMap<TaskId, TaskSummary>,
    ) -> Result<(), OrchestratorError> {
        let ended = |task: &TaskId| there.get(task).is_some_and(|task| task.status.is_terminal());
        let orphans = there
            .values()
            .filter(|task| !task.status.is_terminal() && task.parent.as_ref().is_some_and(ended));
        let orphans = orphans.map(|task| task.task_id.clone()).collect();
        self.inner.cancel_all(orphans).await
    }

    /// Creates the children that were named and never created.
    async fn raise_missing(&mut self, missing: &HashSet<TaskId>) -> Result<(), OrchestratorError> {
        if missing.is_empty() {
            return Ok(());
        }
        let mut lost = Vec::new();
        for (call_id, flight) in &self.state.flights {
            let Flight::Children { children, .. } = flight else { continue };
            let planned = match self.call_of(call_id).map(|call| self.plan(&call)) {
                Some(Ok((_, planned))) => planned.into_iter().map(Ok).collect(),
                Some(Err(refusal)) => children.iter().map(|_| Err(refusal.clone())).collect(),
                None => Vec::new(),
            };
            let named = children.iter().cloned().zip(planned);
            lost.extend(named.filter(|(child, _): &(TaskId, _)| missing.contains(child)));
        }
        self.raise(lost).await
    }

    /// Gives calls that waited for others their results.
    pub(crate) async fn settle(&mut self, calls: Vec<ToolCallId>) -> Result<(), OrchestratorError> {
        self.walk_to(AgentState::ToolCall);
        for call_id in calls {
            let Some(flight) = self.state.flights.get(&call_id).cloned() else { continue };
            let Some(call) = self.call_of(&call_id) else { continue };
            let result = match &flight {
                Flight::Children { join, children } => self.joined(*join, children).await?,
                Flight::Await { tasks, .. } => self.awaited(tasks).await?,
                Flight::External { .. } => continue,
            };
            self.result(&call, result);
        }
        if self.state.flights.is_empty() {
            self.walk_to(AgentState::Idle);
        }
        Ok(())
    }

    async fn joined(
        &mut self,
        join: Join,
        children: &[TaskId],
    ) -> Result<ToolResult, OrchestratorError> {
        let me = &self.state.task_id;
        match join {
            // Nobody waits for the others any more.
            Join::Any | Join::Quorum { .. } => {
                let late = |outcomes: &flight::Outcomes| -> Vec<TaskId> {
                    children.iter().filter(|c| !outcomes.contains_key(*c)).cloned().collect()
                };
                let late = self.inner.kin.outcomes(me, late);
                self.inner.cancel_all(late).await?;
            }
            Join::Single | Join::All | Join::Detached => {}
        }
        let delivered = |outcomes: &_| flight::delivered(join, children, outcomes);
        let result = self.inner.kin.outcomes(me, delivered);
        if join != Join::Detached {
            self.inner.kin.settle(me, children);
        }
        let told = crate::supervisor::told(&result);
        Ok(if flight::succeeded(join, &result) {
            ToolResult::text(told)
        } else {
            ToolResult::failed(told)
        })
    }

    /// A call of the last answer.
    pub(crate) fn call_of(&self, call_id: &ToolCallId) -> Option<ToolCallBlock> {
        let (answer, _) = self.state.last_lap()?;
        answer.tool_calls().find(|call| call.id == *call_id).cloned()
    }
}

/// Whether a call is the only one of its message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Alone {
    Yes,
    No,
}

/// Creates a child and begins to work on it.
async fn birth(
    inner: &Arc<crate::inner::Inner>,
    parent: &TaskState,
    trees: &[Arc<Tree>],
    task_id: TaskId,
    planned: Planned,
) -> Result<(), OrchestratorError> {
    let Planned { created, message } = planned;
    let at = inner.world.clock.now();
    let said = MessageAppended::new(message);
    let before = match &created.history {
        Some(_) => parent.conversation.clone(),
        None => crate::Conversation::default(),
    };
    let mut state = TaskState::created(task_id.clone(), created.clone(), at, before);
    let tree = inner.trees.share(Tree::sprout(task_id.clone(), &created));
    let trees = std::iter::once(tree).chain(trees.iter().cloned()).collect();
    state.apply(&said.clone().into());
    if !create(inner, &task_id, created, vec![said.into()]).await? {
        return Ok(());
    }
    inner.prepare(task_id.clone(), Prepared { state, trees });
    running::start(inner, &task_id);
    Ok(())
}

/// A child that can no longer be had.
async fn stillborn(
    inner: &Arc<crate::inner::Inner>,
    parent: &TaskState,
    task_id: TaskId,
    refusal: &Refusal,
) -> Result<(), OrchestratorError> {
    let session_id = antiphon_core::SessionId::from(inner.world.ids.next());
    let root = parent.created.root.clone().unwrap_or_else(|| parent.task_id.clone());
    let created = TaskCreated {
        parent: Some(parent.task_id.clone()),
        root: Some(root),
        depth: parent.created.depth + 1,
        ..TaskCreated::new(plan::AD_HOC, session_id)
    };
    let detail = json!({ "code": "refused", "error": refusal.to_string() });
    let failed = StatusChanged { detail: Some(detail), ..StatusChanged::new(TaskStatus::Failed) };
    create(inner, &task_id, created, vec![failed.into()]).await.map(drop)
}

/// Says whether it did: somebody may have created it before.
async fn create(
    inner: &Arc<crate::inner::Inner>,
    task_id: &TaskId,
    created: TaskCreated,
    behind: Vec<antiphon_core::EventBody>,
) -> Result<bool, OrchestratorError> {
    let append = Append {
        task_id: task_id.clone(),
        expected: Expected::NoTask,
        at: inner.world.clock.now(),
        events: std::iter::once(created.into()).chain(behind).collect(),
        key: None,
    };
    match inner.append(append).await {
        Ok(_) => Ok(true),
        Err(JournalError::Stale { .. } | JournalError::Ended { .. }) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// What a result says about each of its tasks.
pub(crate) fn results(result: &InvocationResult) -> Vec<&antiphon_core::AgentResult> {
    match result {
        InvocationResult::Scalar { result } => vec![result],
        InvocationResult::Vector { results } => results.iter().collect(),
        InvocationResult::TaskIds { .. } => Vec::new(),
    }
}
