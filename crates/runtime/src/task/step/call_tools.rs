//! Runs the tool calls of an answer: each passes the gate first. Neighboring read-only calls run in
//! parallel, and so do neighboring calls of tools that the agent's file names in `parallel_tools`; all others
//! run one after the other.

use std::sync::Arc;

use antiphon_core::port::{
    Agents, GateRequest, GateVerdict, Progress, START_NOTE_BYTES_MAX, ToolContext,
};
use antiphon_core::{
    AgentState, Decision, Effect, Offer, RawJson, StatusChanged, TaskAccess, TaskStatus, Tool,
    ToolArguments, ToolCallBlock, ToolRefused, ToolResult, ToolStarted, WaitingFor,
};
use futures_util::StreamExt;
use futures_util::stream;
use serde_json::Value;
use tokio::time::Instant;
use uuid::Uuid;

use crate::deps::{ApprovalPolicy, Dispatch};
use crate::dispatch::call_agent::{self, CALL_AGENT};
use crate::dispatch::dispatch_call::OnlyCall;
use crate::dispatch::run_skill::{self, RUN_SKILL};
use crate::dispatch::supervisor_tools;
use crate::inbox::{derived_id, peer_tools};
use crate::orchestrator_error::OrchestratorError;
use crate::task::decide::UnansweredCall;
use crate::task::step::TaskRun;
use crate::task::step::flush::FlushOutcome;
use crate::task::step::tools;
use crate::watch::delta::{Delta, DeltaEvent, ToolDelta};

/// Maximum number of calls of one answer that run at a time; further ones wait.
const CALLS_RUNNING_MAX: usize = 16;

/// Heartbeat interval of a task whose tools run.
const BEAT: std::time::Duration = std::time::Duration::from_secs(30);

/// Which calls of the same answer a call runs beside.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RunsBeside {
    /// No other: it changes something.
    None,
    /// Others that only read.
    Reading,
    /// Others of tools that the agent's file names: the user says that they are independent.
    Parallel,
}

/// The decision about a call.
pub(super) enum CallDecision {
    /// It runs.
    Run(ToolCallBlock),
    /// It does not run and gets this result.
    Answer(ToolCallBlock, ToolResult),
}

/// Result of a call that ended because a person interrupted the turn.
const INTERRUPTED: &str =
    "interrupted: a person stopped the turn. What the call did until then is not undone.";

impl TaskRun {
    /// Runs calls, or asks for approval of them.
    pub(crate) async fn call_tools(
        &mut self,
        pending: Vec<UnansweredCall>,
    ) -> Result<(), OrchestratorError> {
        // A task resumed in the middle of a step has a new agent, which is idle.
        self.advance_to(AgentState::ToolCall);
        if let ApprovalPolicy::Wait { timeout } = self.deps.settings.approvals
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
            let first = match self.decide_call(first).await {
                CallDecision::Run(call) => call,
                CallDecision::Answer(call, result) => {
                    self.add_result(&call, result);
                    continue;
                }
            };
            let beside = self.runs_beside(&first);
            let mut group = vec![first];
            if beside != RunsBeside::None {
                while let Some(next) =
                    waiting.next_if(|next| self.runs_beside(&next.call) == beside)
                {
                    match self.decide_call(next).await {
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
            if self.answers_itself(&call.name) {
                self.answer_call(call);
                continue;
            }
            let (ours, clients) = (self.orchestrates(&call.name), self.is_external(&call.name));
            if (ours || clients) && self.services.deps.settings.dispatch == Dispatch::Parent {
                continue;
            }
            if ours {
                if call.name == CALL_AGENT || call.name == RUN_SKILL {
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
            } else if clients && !self.state.access.is_permitted() {
                // Nothing is known about its effect.
                let reason = self.reads_only().to_owned();
                if let CallDecision::Answer(call, result) = self.refuse_call(pending.call, reason) {
                    self.add_result(&call, result);
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
        let may = self.deps.agents.is_some() && !self.state.created.agents.allows_none();
        let answers = self.state.created.resident && peer_tools::is_reply_tool(name);
        answers || may && (supervisor_tools::is_ours(name) || peer_tools::is_peer_tool(name))
    }

    /// The tools of the task: its own, its client's, those of the loop, and those to reach other agents, if there are any.
    /// The order is always the same, so that a provider can cache it. Tools that an earlier call made useful are behind
    /// these (`offered_last`).
    pub(crate) fn offered(&self) -> Vec<Arc<Tool>> {
        let created = &self.state.created;
        let mut tools = self.own_tools(|offer| match offer {
            Offer::Always => true,
            Offer::WhereAsked => self.can_ask(),
            Offer::Last | Offer::NotYet => false,
        });
        let clients = created.external_tools.iter();
        tools.extend(clients.filter(|tool| tools::may_use(created, &tool.name)).cloned());
        tools.extend(self.person_tools());
        if let Some(agents) = self.deps.agents.as_ref().filter(|_| !created.agents.allows_none()) {
            if self.may_run_skills() {
                tools.extend(run_skill::TOOL.clone());
            }
            let has_agents = !call_agent::callable(&**agents, &created.agents).is_empty();
            if has_agents || self.state.has_children || self.may_make_agents(&**agents) {
                tools.extend(self.services.call_agent_tools.tool(&**agents, &created.agents));
            }
            // Without an agent to call, those to manage tasks matter once an ad-hoc agent was called.
            if has_agents || self.state.has_children {
                tools.extend(supervisor_tools::TOOLS.iter().cloned());
            }
            if has_agents {
                tools.extend(peer_tools::PEER_TOOLS.iter().cloned());
            }
        }
        if created.resident {
            tools.extend(peer_tools::REPLY_TOOLS.iter().cloned());
        }
        tools
    }

    /// The tools that an earlier call of the task made useful.
    pub(crate) fn offered_last(&self) -> Vec<Arc<Tool>> {
        self.own_tools(|offer| match offer {
            Offer::Last => true,
            Offer::Always | Offer::WhereAsked | Offer::NotYet => false,
        })
    }

    fn own_tools(&self, which: impl Fn(Offer) -> bool) -> Vec<Arc<Tool>> {
        let tools = &*self.deps.tools;
        let mut own = tools::usable(&self.state.created, tools);
        own.retain(|tool| which(tools.offer(&tool.name, &self.state.task_id)));
        own
    }

    /// Whether the model is told of ad-hoc agents where the task can call no other: the definition of its agent or the
    /// user says so.
    fn may_make_agents(&self, agents: &dyn Agents) -> bool {
        let created = &self.state.created;
        let defined = || agents.find(&created.agent).is_some();
        created.agents.allows(None) && (agents.offers_ad_hoc() || defined())
    }

    /// Requests approval for every call that needs one, and asks the questions of the agent. Returns whether the task has to wait.
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
            let request = if self.answers_itself(&call.name) {
                self.question_of(call, timeout)
            } else if let GateVerdict::Ask { reason, rule } = self.verdict(call, arguments) {
                let (arguments, why) = (arguments.clone(), (reason, rule));
                Some(self.approval_request(call, arguments, why, timeout, None))
            } else {
                None
            };
            if let Some(request) = request {
                self.push(request);
                waits = true;
            }
        }
        if waits {
            self.wait_for(WaitingFor::Approval);
        }
        waits
    }

    /// Decides about a call: by the gate, or by the answer to its approval.
    async fn decide_call(&mut self, pending: UnansweredCall) -> CallDecision {
        let UnansweredCall { call, interrupted } = pending;
        let effect = self.effect_of(&call.name);
        if let Some(started) = interrupted {
            return self.decide_interrupted(call, started, effect).await;
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
            // What is denied by now does not run, although a person allowed it before.
            Some((decision, _)) if decision.allows() => match self.denial(&call) {
                Some(reason) => reason,
                None => return CallDecision::Run(call),
            },
            Some((decision, comment)) => denied(decision, comment.as_deref()),
            None => match self.verdict(&call, arguments) {
                GateVerdict::Allow => return CallDecision::Run(call),
                GateVerdict::Deny { reason } => reason,
                GateVerdict::Ask { reason, rule } if rule.0.is_empty() => {
                    format!("{reason} There is no user to ask, so it was not run.")
                }
                GateVerdict::Ask { reason, rule } => format!(
                    "{reason} There is no user to ask, so it was not run. The rule that would \
                     allow it: {rule}"
                ),
            },
        };
        self.refuse_call(call, refusal)
    }

    pub(super) fn refuse_call(&mut self, call: ToolCallBlock, reason: String) -> CallDecision {
        let result = ToolResult::failed(format!("not allowed: {reason}"));
        let (tool_call_id, tool_name) = (call.id.clone(), call.name.clone());
        self.push(ToolRefused { tool_call_id, tool_name, reason });
        CallDecision::Answer(call, result)
    }

    /// Why the gate denies a call, if it does.
    pub(super) fn denial(&self, call: &ToolCallBlock) -> Option<String> {
        match self.verdict(call, call.arguments.object()?) {
            GateVerdict::Deny { reason } => Some(reason),
            GateVerdict::Allow | GateVerdict::Ask { .. } => None,
        }
    }

    pub(super) fn unknown_tool(&self, call: ToolCallBlock) -> CallDecision {
        let mut known = self.offered();
        known.extend(self.offered_last());
        let result = tools::unknown(&known, &call.name);
        CallDecision::Answer(call, result)
    }

    pub(crate) fn verdict(&self, call: &ToolCallBlock, arguments: &RawJson) -> GateVerdict {
        // No approval for a tool that does not exist.
        if self.effect_of(&call.name).is_none() {
            return GateVerdict::Allow;
        }
        let granted = &self.state.granted;
        let request = GateRequest { tool: &call.name, arguments, granted };
        match self.state.access {
            TaskAccess::Permitted => self.deps.gate.judge(&request),
            TaskAccess::PlanFirst | TaskAccess::ReadOnly | TaskAccess::CompactOnly
                if self.effect(call) == Effect::ReadOnly =>
            {
                self.deps.gate.judge_reading(&request)
            }
            TaskAccess::PlanFirst | TaskAccess::ReadOnly | TaskAccess::CompactOnly => {
                GateVerdict::Deny { reason: self.reads_only().to_owned() }
            }
        }
    }

    /// Why a task that reads only may not make a call that may change something.
    fn reads_only(&self) -> &'static str {
        if self.plans() {
            "the plan of this task is not accepted yet, and until then it only reads: submit the plan first"
        } else {
            "this task only reads: the plan of the task that called it was not accepted yet"
        }
    }

    /// Runs calls in parallel. Returns whether to continue with the next ones.
    async fn run_group(&mut self, group: Vec<ToolCallBlock>) -> Result<bool, OrchestratorError> {
        let mut contexts = Vec::with_capacity(group.len());
        for call in &group {
            let note = self.start_note(call).await;
            contexts.push((call, note.clone()));
            let (tool_call_id, tool_name) = (call.id.clone(), call.name.clone());
            self.push(ToolStarted { tool_call_id, tool_name, effect: self.effect(call), note });
        }
        // `Moved` needs no new decision: the calls were decided and count as started. A pause takes
        // effect after them.
        if self.flush().await? == FlushOutcome::Ended {
            return Ok(false);
        }
        let executor = Arc::clone(&self.deps.tools);
        let run = |(call, note)| tools::run(&*executor, call, self.context(call, note));
        let runs: Vec<_> = contexts.into_iter().map(run).collect();
        let mut all = std::pin::pin!(stream::iter(runs).buffered(CALLS_RUNNING_MAX).collect());
        // Not at once: a beat that is due wakes the timer for each call.
        let mut alive = tokio::time::interval_at(Instant::now() + BEAT, BEAT);
        // Each tool has a time limit of its own; a quiet tool is not a fault.
        let results: Vec<_> = loop {
            tokio::select! {
                results = &mut all => break results,
                _ = alive.tick() => self.running.heartbeat(),
            }
        };
        let canceled = self.running.cancel.is_cancelled();
        let interrupted = self.running.interrupt.has_fired();
        let stopped = self.services.background.stop.is_cancelled();
        for (call, result) in group.iter().zip(results) {
            match result {
                Some(result) => self.add_result(call, result),
                None if canceled => self.add_result(call, ToolResult::failed("canceled")),
                // Interrupted by the shutdown: recovery decides about the call.
                None if stopped => {}
                None if interrupted => self.add_result(call, ToolResult::failed(INTERRUPTED)),
                None => self.add_result(call, ToolResult::failed("the task's time was over")),
            }
        }
        Ok(!canceled && !stopped && !interrupted)
    }

    /// What the tool wants recorded with the start of a call. A call without an effect runs again anyway.
    async fn start_note(&self, call: &ToolCallBlock) -> Option<Value> {
        let arguments = call.arguments.object()?;
        if self.effect(call) == Effect::ReadOnly {
            return None;
        }
        let (tools, task_id) = (&self.deps.tools, &self.state.task_id);
        let note = tools.start_note(&call.name, arguments, task_id).await?;
        let fits = note.to_string().len() <= START_NOTE_BYTES_MAX;
        fits.then_some(note)
    }

    /// The id of a call that no other call has, in any process. Some models use a call id again in a
    /// later answer.
    pub(crate) fn call_uuid(&self, call: &ToolCallBlock) -> Uuid {
        derived_id::of_call(&self.state.task_id, self.state.turns, call.id.as_str()).0
    }

    pub(crate) fn context(&self, call: &ToolCallBlock, note: Option<Value>) -> ToolContext {
        let (deltas, running) = (Arc::clone(&self.services.deltas), Arc::clone(&self.running));
        let (task_id, tool_call_id) = (self.state.task_id.clone(), call.id.clone());
        let (turn, after) = (self.state.turns, self.state.seq);
        ToolContext {
            task_id: task_id.clone(),
            tool_call_id: tool_call_id.clone(),
            agent: self.state.created.agent.clone(),
            call_uuid: self.call_uuid(call),
            note,
            cancel: self.tool_interruption(),
            granted: self.state.granted.clone(),
            progress: Progress::to(move |text| {
                running.heartbeat();
                let (tool_call_id, delta) = (tool_call_id.clone(), text.to_owned());
                let event = DeltaEvent::Tool(ToolDelta::ToolOutput { tool_call_id, delta });
                deltas.publish(Delta::new(task_id.clone(), turn, after, event));
            }),
        }
    }

    /// Which calls of the same answer a call runs beside.
    fn runs_beside(&self, call: &ToolCallBlock) -> RunsBeside {
        match self.effect(call) {
            Effect::ReadOnly => RunsBeside::Reading,
            Effect::Idempotent | Effect::SideEffect if self.is_parallel(&call.name) => {
                RunsBeside::Parallel
            }
            Effect::Idempotent | Effect::SideEffect => RunsBeside::None,
        }
    }

    /// Whether the agent's file says that calls of this tool run side by side.
    fn is_parallel(&self, tool: &str) -> bool {
        let has = |names: &[String]| names.iter().any(|name| name == tool);
        if self.state.handovers == 0 {
            return has(&self.state.created.parallel_tools);
        }
        // The task was created for another agent.
        let agents = self.deps.agents.as_ref();
        let definition = agents.and_then(|agents| agents.find(&self.state.created.agent));
        definition.is_some_and(|definition| has(&definition.parallel_tools))
    }

    /// An unknown tool has no effect.
    fn effect(&self, call: &ToolCallBlock) -> Effect {
        self.effect_of(&call.name).unwrap_or(Effect::ReadOnly)
    }

    /// The effect of a tool, if the task may use it.
    fn effect_of(&self, name: &str) -> Option<Effect> {
        let may = tools::may_use(&self.state.created, name);
        self.deps.tools.effect(name).filter(|_| may)
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
