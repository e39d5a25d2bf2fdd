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

use std::collections::HashSet;

use antiphon_core::{
    AgentState, ContextScope, Dispatched, HandedOver, HistoryRef, InvocationResult, Join,
    MessageAppended, RunnerConfig, TaskCreated, TaskId, ToolCallBlock, ToolCallId, ToolResult,
    ValidInvocation,
};

use crate::call_agent;
use crate::children::Planned;
use crate::flight::{self, PendingCall, Wants};
use crate::flush::Flushed;
use crate::lap::Work;
use crate::limits::{self, LimitReached};
use crate::orchestrator_error::OrchestratorError;
use crate::plan::{self, Caller, Terms};
use crate::refusal::Refusal;
use crate::tree;

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
        let flight = PendingCall::Children { join: invocation.join, children: children.clone() };
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
            if self.state.created.resident {
                let reason = "you are always there, and nobody can take over from you: call the \
                              agent with another context";
                return Err(Refusal::Arguments { reason: reason.to_owned() });
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
                self.check_position(&planned.created)?;
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

    pub(crate) fn plan(
        &self,
        call: &ToolCallBlock,
    ) -> Result<(ValidInvocation, Vec<Planned>), Refusal> {
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
    fn check_position(&self, heir: &TaskCreated) -> Result<(), Refusal> {
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
        self.inner.check_price(child)?;
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
            if let PendingCall::Children { children: more, .. } = flight {
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

    pub(crate) fn expect(&self, flight: &PendingCall) {
        let (kin, who) = (&self.inner.kin, &self.state.task_id);
        kin.expect(who, flight.tasks(), flight.wants(), &self.trees);
        if let PendingCall::Children { join: Join::Detached, children } = flight {
            kin.expect(who, children, Wants::EACH, &self.trees);
        }
        if let Some(until) = flight.until() {
            self.inner.watch_task(until, who.clone());
        }
    }

    /// Gives calls that waited for others their results.
    pub(crate) async fn settle(&mut self, calls: Vec<ToolCallId>) -> Result<(), OrchestratorError> {
        self.walk_to(AgentState::ToolCall);
        for call_id in calls {
            let Some(flight) = self.state.flights.get(&call_id).cloned() else { continue };
            let Some(call) = self.call_of(&call_id) else { continue };
            let result = match &flight {
                PendingCall::Children { join, children } => self.joined(*join, children).await?,
                PendingCall::Await { tasks, .. } => self.awaited(tasks).await?,
                PendingCall::Request { id, .. } => {
                    self.take_response(&call, *id);
                    continue;
                }
                PendingCall::External { .. } => continue,
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

/// What a result says about each of its tasks.
pub(crate) fn results(result: &InvocationResult) -> Vec<&antiphon_core::AgentResult> {
    match result {
        InvocationResult::Scalar { result } => vec![result],
        InvocationResult::Vector { results } => results.iter().collect(),
        InvocationResult::TaskIds { .. } => Vec::new(),
    }
}
