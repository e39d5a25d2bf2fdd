//! Dispatches agents: a call becomes child tasks, and their results become its result.
//!
//! | recorded             | before                                                                  |
//! |----------------------|-------------------------------------------------------------------------|
//! | `dispatched`         | any child exists; it has their ids, so that each is created once        |
//! | a child's creation   | the child runs                                                          |
//! | the result           | the model reads it, and the outcomes are dropped                        |
//!
//! After a crash in between, existing children are joined again and missing ones are created under
//! their recorded ids.

use std::collections::HashSet;
use std::fmt::Write as _;

use antiphon_core::{
    AgentState, ContextScope, Dispatched, HandedOver, HistoryRef, InvocationResult, Join,
    LeftOutTool, MessageAppended, RunnerConfig, TaskCreated, TaskId, ToolCallBlock, ToolCallId,
    ToolResult, ValidInvocation,
};

use crate::budget::tree_usage;
use crate::dispatch::call_agent;
use crate::dispatch::child_plan::{self, CallingTask, DispatchTerms};
use crate::dispatch::child_tools::LeftOut;
use crate::dispatch::children::PlannedChild;
use crate::dispatch::pending_call::{self, PendingCall, WaitGoal};
use crate::dispatch::refusal::DispatchRefusal;
use crate::dispatch::run_skill::RUN_SKILL;
use crate::orchestrator_error::OrchestratorError;
use crate::task::control::cancel;
use crate::task::limits::{self, LimitReached};
use crate::task::schedule::deadlines;
use crate::task::step::TaskRun;
use crate::task::step::flush::FlushOutcome;

impl TaskRun {
    /// Dispatches the targets of a call, or hands the task over to another agent.
    pub(crate) async fn dispatch(
        &mut self,
        call: &ToolCallBlock,
        only_call: OnlyCall,
    ) -> Result<FlushOutcome, OrchestratorError> {
        let invocation = match self.accept(call, only_call).await {
            Ok(accepted) => accepted,
            Err(refusal) => {
                self.add_result(call, refusal.result());
                return Ok(FlushOutcome::Written);
            }
        };
        let (invocation, planned) = invocation;
        let invocation = invocation.get();
        if invocation.context == ContextScope::Shared {
            for planned in planned {
                self.hand_over(call, planned);
            }
            return Ok(FlushOutcome::Written);
        }
        let ids = &self.services.deps.ids;
        let children: Vec<TaskId> = planned.iter().map(|_| TaskId::from(ids.next())).collect();
        let left_out = children.iter().zip(&planned).flat_map(|(child, planned)| {
            let recorded = |left: &LeftOut| left.of_task(child);
            planned.left_out.iter().map(recorded).collect::<Vec<_>>()
        });
        let left_out: Vec<LeftOutTool> = left_out.collect();
        let (join, ids) = (invocation.join, children.clone());
        self.wait_for_call(&PendingCall::Children {
            join,
            children: ids.clone(),
            left_out: left_out.clone(),
        });
        self.push(Dispatched {
            tool_call_id: call.id.clone(),
            context: invocation.context,
            join,
            children: ids,
            left_out,
        });
        let flushed = self.flush().await?;
        if flushed != FlushOutcome::Ended {
            self.create_children(children.into_iter().zip(planned.into_iter().map(Ok)).collect())
                .await?;
        }
        Ok(flushed)
    }

    /// Plans a call and checks that it is allowed.
    async fn accept(
        &self,
        call: &ToolCallBlock,
        only_call: OnlyCall,
    ) -> Result<(ValidInvocation, Vec<PlannedChild>), DispatchRefusal> {
        let (invocation, planned) = self.plan(call).await?;
        let request = invocation.get();
        if request.context == ContextScope::Shared {
            if only_call == OnlyCall::No {
                return Err(DispatchRefusal::NotAlone);
            }
            if self.state.created.resident {
                let reason = "you are a resident agent and cannot hand over: call the agent with \
                              another context";
                return Err(DispatchRefusal::Arguments { reason: reason.to_owned() });
            }
            let bounded = |target: &antiphon_core::Target| {
                target.timeout_s.is_some() || target.output_schema.is_some()
            };
            if request.targets.iter().any(bounded) {
                let reason = "the agent that takes over has your time and delivers your result: leave \
                              out `timeout_s` and `output_schema`";
                return Err(DispatchRefusal::Arguments { reason: reason.to_owned() });
            }
            for planned in &planned {
                self.check_same_runner(&planned.created)?;
            }
            if self.state.handovers >= limits::HANDOVERS_MAX {
                return Err(LimitReached::Handovers { max: limits::HANDOVERS_MAX }.into());
            }
        } else {
            let more = planned.len();
            child_plan::check_depth_and_fan_out(
                &self.state,
                &self.trees,
                self.running_children(),
                more,
            )?;
            tree_usage::reserve(&self.trees, u32::try_from(more).unwrap_or(u32::MAX))?;
        }
        Ok((invocation, planned))
    }

    pub(crate) async fn plan(
        &self,
        call: &ToolCallBlock,
    ) -> Result<(ValidInvocation, Vec<PlannedChild>), DispatchRefusal> {
        let no_arguments = || DispatchRefusal::Arguments {
            reason: "the arguments are not a JSON object".to_owned(),
        };
        let arguments = call.arguments.object().ok_or_else(no_arguments)?;
        let invocation = if call.name == RUN_SKILL {
            self.skill_invocation(call, arguments).await?
        } else {
            call_agent::read(arguments, self.services.deps.clock.now())?
        };
        let agents = self.deps.agents.clone();
        let none = || DispatchRefusal::MayNotCall {
            agent: "other agents".to_owned(),
            allowed: Vec::new(),
        };
        let agents = agents.ok_or_else(none)?;
        let caller = CallingTask {
            deps: &self.deps,
            time: &self.services.time,
            agents: &*agents,
            state: &self.state,
            history: HistoryRef { task_id: self.state.task_id.clone(), seq: self.state.seq },
            deadline: limits::deadline(&self.state),
        };
        let request = invocation.get();
        let terms = DispatchTerms {
            context: request.context,
            executor: &request.executor,
            tools: &request.tools,
        };
        let plan = |target: &antiphon_core::Target| {
            let (created, left_out) = caller.plan(target, terms)?;
            Ok(PlannedChild { created, message: target.message.clone(), left_out })
        };
        let planned =
            request.targets.iter().map(plan).collect::<Result<Vec<_>, DispatchRefusal>>()?;
        for planned in &planned {
            self.check_price(&planned.created)?;
        }
        Ok((invocation, planned))
    }

    /// Checks that the agent that takes over runs where the task runs.
    fn check_same_runner(&self, successor: &TaskCreated) -> Result<(), DispatchRefusal> {
        let kind = |runner: &Option<RunnerConfig>| {
            runner.as_ref().map_or("local", |runner| &runner.kind).to_owned()
        };
        let (wanted, here) = (kind(&successor.runner), kind(&self.state.created.runner));
        if wanted == here {
            return Ok(());
        }
        let agent = format!("`{}`", successor.agent);
        let reason = format!("it runs in {wanted}, but the task it takes over runs in {here}");
        Err(DispatchRefusal::NoExecutor { agent, reason })
    }

    /// With a cost limit, the price of every child's model must be known.
    fn check_price(&self, child: &TaskCreated) -> Result<(), LimitReached> {
        let budget = self.trees.iter().any(|tree| tree.limits.cost_nano_usd_max.is_some())
            || child.limits.cost_nano_usd_max.is_some();
        self.services.budget.check_price(child)?;
        let priced = |model| self.services.deps.prices.price(model).is_some();
        match child.model.as_ref().filter(|model| budget && !priced(model)) {
            Some(model) => Err(LimitReached::PriceUnknown { model: model.to_string() }),
            None => Ok(()),
        }
    }

    /// Number of children that have not ended.
    fn running_children(&self) -> usize {
        let mut children: HashSet<&TaskId> = self.state.detached.values().collect();
        for pending_call in self.state.pending_calls.values() {
            if let PendingCall::Children { children: more, .. } = pending_call {
                children.extend(more);
            }
        }
        let count = |outcomes: &pending_call::Outcomes| {
            children.iter().filter(|child| !outcomes.contains_key(**child)).count()
        };
        self.services.waiters.outcomes(&self.state.task_id, count)
    }

    /// Hands the task over to another agent.
    fn hand_over(&mut self, call: &ToolCallBlock, planned: PlannedChild) {
        let PlannedChild { created, message, left_out } = planned;
        let mut result = format!("handed over to {}", created.agent);
        for LeftOut { tool, reason } in left_out {
            // Writing to a String cannot fail.
            let _ = write!(result, "\nwithout `{tool}`: {reason}");
        }
        self.push(HandedOver {
            tool_call_id: call.id.clone(),
            agent: created.agent,
            model: created.model,
            fallbacks: created.fallbacks,
            system_prompt: created.system_prompt,
            tools: created.tools,
            agents: created.agents,
        });
        self.add_result(call, ToolResult::text(result));
        self.advance_to(AgentState::Idle);
        self.push(MessageAppended::new(message));
        self.replace_agent();
    }

    pub(crate) fn wait_for_call(&self, pending_call: &PendingCall) {
        let (waiters, waiter) = (&self.services.waiters, &self.state.task_id);
        waiters.register(waiter, pending_call.tasks(), pending_call.goal(), &self.trees);
        if let PendingCall::Children { join: Join::Detached, children, .. } = pending_call {
            waiters.register(waiter, children, WaitGoal::EACH, &self.trees);
        }
        if let Some(until) = pending_call.until() {
            deadlines::watch_task(&self.services, until, waiter.clone());
        }
    }

    /// Gives pending calls whose wait is over their results.
    pub(crate) async fn complete_calls(
        &mut self,
        calls: Vec<ToolCallId>,
    ) -> Result<(), OrchestratorError> {
        self.advance_to(AgentState::ToolCall);
        for call_id in calls {
            let Some(pending_call) = self.state.pending_calls.get(&call_id).cloned() else {
                continue;
            };
            let Some(call) = self.find_call(&call_id) else { continue };
            let result = match &pending_call {
                PendingCall::Children { join, children, left_out } => {
                    self.joined(*join, children, left_out).await?
                }
                PendingCall::Await { tasks, .. } => self.awaited(tasks).await?,
                PendingCall::Request { id, .. } => {
                    self.take_response(&call, *id);
                    continue;
                }
                PendingCall::External { .. } => continue,
            };
            self.add_result(&call, result);
        }
        if self.state.pending_calls.is_empty() {
            self.advance_to(AgentState::Idle);
        }
        Ok(())
    }

    async fn joined(
        &mut self,
        join: Join,
        children: &[TaskId],
        left_out: &[LeftOutTool],
    ) -> Result<ToolResult, OrchestratorError> {
        let waiter = &self.state.task_id;
        match join {
            // The call waits for the others no longer.
            Join::Any | Join::Quorum { .. } => {
                let late = |outcomes: &pending_call::Outcomes| -> Vec<TaskId> {
                    children.iter().filter(|c| !outcomes.contains_key(*c)).cloned().collect()
                };
                let late = self.services.waiters.outcomes(waiter, late);
                cancel::cancel_all(&self.services, late).await?;
            }
            Join::Single | Join::All | Join::Detached => {}
        }
        let delivered = |outcomes: &_| pending_call::join_result(join, children, outcomes);
        let result = self.services.waiters.outcomes(waiter, delivered);
        if join != Join::Detached {
            self.services.waiters.stop_waiting(waiter, children);
        }
        let text = crate::dispatch::supervisor_tools::result_text(&result, left_out);
        Ok(if pending_call::succeeded(join, &result) {
            ToolResult::text(text)
        } else {
            ToolResult::failed(text)
        })
    }

    /// A call of the last answer, by id.
    pub(crate) fn find_call(&self, call_id: &ToolCallId) -> Option<ToolCallBlock> {
        let (answer, _) = self.state.last_step()?;
        answer.tool_calls().find(|call| call.id == *call_id).cloned()
    }
}

/// Whether a call is the only one of its answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OnlyCall {
    Yes,
    No,
}

/// The results of single tasks in a result.
pub(crate) fn results(result: &InvocationResult) -> Vec<&antiphon_core::AgentResult> {
    match result {
        InvocationResult::Scalar { result } => vec![result],
        InvocationResult::Vector { results } => results.iter().collect(),
        InvocationResult::TaskIds { .. } => Vec::new(),
    }
}
