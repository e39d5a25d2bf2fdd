//! Runs the tool calls of an answer: each passes the gate first. Neighboring read-only calls run in
//! parallel, all others one after the other.

use std::sync::Arc;

use antiphon_core::port::{GateRequest, Progress, ToolContext, Verdict};
use antiphon_core::{
    AgentState, ApprovalId, ApprovalRequested, Decision, Effect, RawJson, StatusChanged,
    TaskStatus, Tool, ToolArguments, ToolCallBlock, ToolRefused, ToolResult, ToolStarted,
    WaitingFor,
};
use futures_util::StreamExt;
use futures_util::stream;

use crate::deps::{ApprovalPolicy, Dispatch};
use crate::dispatch::call_agent::{self, CALL_AGENT};
use crate::dispatch::dispatch_call::OnlyCall;
use crate::dispatch::supervisor_tools;
use crate::inbox::peer_tools;
use crate::orchestrator_error::OrchestratorError;
use crate::task::decide::UnansweredCall;
use crate::task::schedule::deadlines;
use crate::task::step::TaskRun;
use crate::task::step::flush::FlushOutcome;
use crate::task::step::interrupted_call::{self, InterruptedCall};
use crate::task::step::tools;
use crate::watch::delta::{Delta, DeltaEvent, ToolDelta};

/// Maximum number of calls of one answer that run at a time; further ones wait.
const CALLS_RUNNING_MAX: usize = 16;

/// Heartbeat interval of a task whose tools run.
const BEAT: std::time::Duration = std::time::Duration::from_secs(30);

/// The decision about a call.
enum CallDecision {
    /// It runs.
    Run(ToolCallBlock),
    /// It does not run and gets this result.
    Answer(ToolCallBlock, ToolResult),
}

impl TaskRun {
    /// Runs calls, or asks for approval of them.
    pub(crate) async fn call_tools(
        &mut self,
        pending: Vec<UnansweredCall>,
    ) -> Result<(), OrchestratorError> {
        // A task resumed in the middle of a step has a new agent, which is idle.
        self.advance_to(AgentState::ToolCall);
        if let ApprovalPolicy::Wait { timeout } = self.services.deps.settings.approvals
            && self.request_approvals(&pending, timeout)
        {
            return Ok(());
        }
        if self.state.status != TaskStatus::Running {
            self.push(StatusChanged::new(TaskStatus::Running));
        }
        let Some(pending) = self.dispatch_calls(pending).await? else { return Ok(()) };
        let mut waiting = pending.into_iter().peekable();
        while let Some(first) = waiting.next() {
            let first = match self.decide_call(first) {
                CallDecision::Run(call) => call,
                CallDecision::Answer(call, result) => {
                    self.add_result(&call, result);
                    continue;
                }
            };
            let mut group = vec![first];
            if self.effect(&group[0]) == Effect::ReadOnly {
                while let Some(next) =
                    waiting.next_if(|next| self.effect(&next.call) == Effect::ReadOnly)
                {
                    match self.decide_call(next) {
                        CallDecision::Run(call) => group.push(call),
                        CallDecision::Answer(call, result) => self.add_result(&call, result),
                    }
                }
            }
            if !self.run_group(group).await? {
                return Ok(());
            }
        }
        if self.state.pending_calls.is_empty() {
            self.advance_to(AgentState::Idle);
        }
        Ok(())
    }

    /// Handles calls that are not run here: calls of agents and of a client's tools. Returns the calls
    /// to run here, or `None` when the task has ended.
    async fn dispatch_calls(
        &mut self,
        pending: Vec<UnansweredCall>,
    ) -> Result<Option<Vec<UnansweredCall>>, OrchestratorError> {
        let alone = if self.calls_of_answer() == 1 { OnlyCall::Yes } else { OnlyCall::No };
        let mut left = Vec::new();
        for pending in pending {
            let call = &pending.call;
            let (ours, clients) = (self.orchestrates(&call.name), self.is_external(&call.name));
            if (ours || clients) && self.services.deps.settings.dispatch == Dispatch::Parent {
                continue;
            }
            if ours {
                if call.name == CALL_AGENT {
                    if self.dispatch(call, alone).await? == FlushOutcome::Ended {
                        return Ok(None);
                    }
                } else if peer_tools::is_peer_tool(&call.name)
                    || peer_tools::is_reply_tool(&call.name)
                {
                    self.call_peer_tool(call).await?;
                    if self.state.status.is_terminal() {
                        return Ok(None);
                    }
                } else {
                    self.call_supervisor_tool(call).await?;
                }
            } else if clients {
                self.request_result(call);
            } else {
                left.push(pending);
            }
        }
        Ok(Some(left))
    }

    fn calls_of_answer(&self) -> usize {
        self.state.last_step().map_or(0, |(answer, _)| answer.tool_calls().count())
    }

    /// Whether the orchestrator itself answers calls of this tool.
    pub(crate) fn orchestrates(&self, name: &str) -> bool {
        let may = self.services.deps.agents.is_some() && !self.state.created.agents.allows_none();
        let answers = self.state.created.resident && peer_tools::is_reply_tool(name);
        answers || may && (supervisor_tools::is_ours(name) || peer_tools::is_peer_tool(name))
    }

    /// The tools of the task: its own, its client's, and those to reach other agents.
    pub(crate) fn offered(&self) -> Vec<Tool> {
        let created = &self.state.created;
        let mut tools = tools::usable(created, &*self.services.deps.tools);
        let clients = created.external_tools.iter();
        tools.extend(clients.filter(|tool| tools::may_use(created, &tool.name)).cloned());
        if let Some(agents) =
            self.services.deps.agents.as_ref().filter(|_| !created.agents.allows_none())
        {
            let mut callable: Vec<(String, String)> = agents
                .list()
                .iter()
                .filter(|agent| created.agents.allows(Some(agent.name.as_str())))
                .map(|agent| (agent.name.to_string(), agent.description.clone()))
                .collect();
            callable.sort();
            tools.extend(call_agent::tool(&callable, created.agents.allows(None)));
            tools.extend(supervisor_tools::tools());
            tools.extend(peer_tools::peer_tools());
        }
        if created.resident {
            tools.extend(peer_tools::reply_tools());
        }
        tools
    }

    /// Requests approval for every call that needs one. Returns whether the task has to wait.
    fn request_approvals(
        &mut self,
        pending: &[UnansweredCall],
        timeout: Option<std::time::Duration>,
    ) -> bool {
        let mut waits = false;
        for pending in pending {
            let call = &pending.call;
            let Some(arguments) = call.arguments.object() else { continue };
            let elsewhere = self.orchestrates(&call.name) || self.is_external(&call.name);
            let asked =
                pending.interrupted.is_some() || self.state.approvals.contains_key(&call.id);
            if elsewhere || asked {
                continue;
            }
            let Verdict::Ask { reason, rule } = self.verdict(call, arguments) else { continue };
            let now = self.services.deps.clock.now();
            let until = |timeout| now + chrono::TimeDelta::from_std(timeout).unwrap_or_default();
            let request = ApprovalRequested {
                approval_id: ApprovalId::from(self.services.deps.ids.next()),
                tool_call_id: call.id.clone(),
                tool_name: call.name.clone(),
                arguments: arguments.clone(),
                reason,
                rule,
                expires_at: timeout.map(until),
            };
            if let Some(at) = request.expires_at {
                deadlines::watch_approval(&self.services, at, request.approval_id.clone());
            }
            self.push(request);
            waits = true;
        }
        if waits {
            self.wait_for(WaitingFor::Approval);
        }
        waits
    }

    /// Decides about a call: by the gate, or by the answer to its approval.
    fn decide_call(&mut self, pending: UnansweredCall) -> CallDecision {
        let UnansweredCall { call, interrupted } = pending;
        let effect = self.effect_of(&call.name);
        if let Some(when_started) = interrupted {
            return match interrupted_call::decide(when_started, effect) {
                InterruptedCall::RunAgain => CallDecision::Run(call),
                InterruptedCall::OutcomeUnknown => {
                    CallDecision::Answer(call, tools::outcome_unknown())
                }
                InterruptedCall::UnknownTool => self.unknown_tool(call),
            };
        }
        // A call of an unknown tool never runs, even if the tool appears a moment later.
        if effect.is_none() {
            return self.unknown_tool(call);
        }
        let arguments = match &call.arguments {
            ToolArguments::Object(arguments) => arguments,
            ToolArguments::Malformed(_) => {
                let result = tools::malformed(&call);
                return CallDecision::Answer(call, result);
            }
        };
        let answered =
            self.state.approvals.get(&call.id).and_then(|question| question.answer.clone());
        let refusal = match answered {
            Some((decision, _)) if decision.allows() => return CallDecision::Run(call),
            Some((decision, comment)) => denied(decision, comment.as_deref()),
            None => match self.verdict(&call, arguments) {
                Verdict::Allow => return CallDecision::Run(call),
                Verdict::Deny { reason } => reason,
                Verdict::Ask { reason, rule } => format!(
                    "{reason} There is no user to ask, so it was not run. The rule that would \
                     allow it: {rule}"
                ),
            },
        };
        let refused = ToolRefused {
            tool_call_id: call.id.clone(),
            tool_name: call.name.clone(),
            reason: refusal.clone(),
        };
        self.push(refused);
        CallDecision::Answer(call, ToolResult::failed(format!("not allowed: {refusal}")))
    }

    fn unknown_tool(&self, call: ToolCallBlock) -> CallDecision {
        let result = tools::unknown(&self.offered(), &call.name);
        CallDecision::Answer(call, result)
    }

    fn verdict(&self, call: &ToolCallBlock, arguments: &RawJson) -> Verdict {
        // No approval for a tool that does not exist.
        if self.effect_of(&call.name).is_none() {
            return Verdict::Allow;
        }
        let granted = &self.state.granted;
        self.services.deps.gate.judge(&GateRequest { tool: &call.name, arguments, granted })
    }

    /// Runs calls in parallel. Returns whether to continue with the next ones.
    async fn run_group(&mut self, group: Vec<ToolCallBlock>) -> Result<bool, OrchestratorError> {
        for call in &group {
            let (tool_call_id, tool_name) = (call.id.clone(), call.name.clone());
            self.push(ToolStarted { tool_call_id, tool_name, effect: self.effect(call) });
        }
        // `Moved` needs no new decision: the calls were decided and count as started. A pause takes
        // effect after them.
        if self.flush().await? == FlushOutcome::Ended {
            return Ok(false);
        }
        let executor = Arc::clone(&self.services.deps.tools);
        let runs: Vec<_> =
            group.iter().map(|call| tools::run(&*executor, call, self.context(call))).collect();
        let mut all = std::pin::pin!(stream::iter(runs).buffered(CALLS_RUNNING_MAX).collect());
        let mut alive = tokio::time::interval(BEAT);
        // Each tool has a time limit of its own; a quiet tool is not a fault.
        let results: Vec<_> = loop {
            tokio::select! {
                results = &mut all => break results,
                _ = alive.tick() => self.running.heartbeat(),
            }
        };
        let canceled = self.running.cancel.is_cancelled();
        let stopped = self.services.background.stop.is_cancelled();
        for (call, result) in group.iter().zip(results) {
            match result {
                Some(result) => self.add_result(call, result),
                None if canceled => self.add_result(call, ToolResult::failed("canceled")),
                // Interrupted by the shutdown: recovery decides about the call.
                None if stopped => {}
                None => self.add_result(call, ToolResult::failed("the task's time was over")),
            }
        }
        Ok(!canceled && !stopped)
    }

    fn context(&self, call: &ToolCallBlock) -> ToolContext {
        let (deltas, running) = (Arc::clone(&self.services.deltas), Arc::clone(&self.running));
        let (task_id, tool_call_id) = (self.state.task_id.clone(), call.id.clone());
        let turn = self.state.turns;
        ToolContext {
            task_id: task_id.clone(),
            tool_call_id: tool_call_id.clone(),
            cancel: self.interruption(),
            granted: self.state.granted.clone(),
            progress: Progress::to(move |text| {
                running.heartbeat();
                let (tool_call_id, delta) = (tool_call_id.clone(), text.to_owned());
                let event = DeltaEvent::Tool(ToolDelta::ToolOutput { tool_call_id, delta });
                deltas.publish(Delta::new(task_id.clone(), turn, event));
            }),
        }
    }

    /// An unknown tool has no effect.
    fn effect(&self, call: &ToolCallBlock) -> Effect {
        self.effect_of(&call.name).unwrap_or(Effect::ReadOnly)
    }

    /// The effect of a tool, if the task may use it.
    fn effect_of(&self, name: &str) -> Option<Effect> {
        let may = tools::may_use(&self.state.created, name);
        self.services.deps.tools.effect(name).filter(|_| may)
    }
}

fn denied(decision: Decision, comment: Option<&str>) -> String {
    let said = comment.map(|comment| format!(": {comment}")).unwrap_or_default();
    match decision {
        Decision::Expire => "no user decided in time.".to_owned(),
        Decision::Deny | Decision::AllowOnce | Decision::AllowTask | Decision::AllowAlways => {
            format!("the user denied the call{said}")
        }
    }
}
