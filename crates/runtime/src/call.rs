//! Running what the model asked for: through the gate, then neighbors that change nothing side by
//! side, all others one after the other.

use std::sync::Arc;

use antiphon_core::port::{GateRequest, Progress, ToolContext, Verdict};
use antiphon_core::{
    AgentState, ApprovalId, ApprovalRequested, Decision, Effect, RawJson, StatusChanged,
    TaskStatus, Tool, ToolArguments, ToolCallBlock, ToolRefused, ToolResult, ToolStarted,
    WaitingFor,
};
use futures_util::StreamExt;
use futures_util::stream;

use crate::call_agent::{self, CALL_AGENT};
use crate::decide::Pending;
use crate::delta::{Delta, DeltaEvent, ToolDelta};
use crate::dispatch::Alone;
use crate::flush::Flushed;
use crate::lap::Work;
use crate::orchestrator_error::OrchestratorError;
use crate::peers;
use crate::supervisor;
use crate::tools;
use crate::world::{ApprovalPolicy, Dispatch};

/// Calls of one answer that run at a time; the next one waits.
const CALLS_RUNNING_MAX: usize = 16;

/// How often a task whose tools run gives a sign of life.
const BEAT: std::time::Duration = std::time::Duration::from_secs(30);

/// What the gate made of a call.
enum Judged {
    /// It may run.
    May(ToolCallBlock),
    /// It gets this result instead.
    Not(ToolCallBlock, ToolResult),
}

impl Work {
    /// Runs calls, or has somebody asked about them.
    pub(crate) async fn call(&mut self, pending: Vec<Pending>) -> Result<(), OrchestratorError> {
        // A task that is taken up again in the middle of a lap: its agent is a fresh one.
        self.walk_to(AgentState::ToolCall);
        if let ApprovalPolicy::Wait { patience } = self.inner.world.settings.asking
            && self.ask_about(&pending, patience)
        {
            return Ok(());
        }
        if self.state.status != TaskStatus::Running {
            self.push(StatusChanged::new(TaskStatus::Running));
        }
        let Some(pending) = self.send_out(pending).await? else { return Ok(()) };
        let mut waiting = pending.into_iter().peekable();
        while let Some(first) = waiting.next() {
            let first = match self.judge(first) {
                Judged::May(call) => call,
                Judged::Not(call, result) => {
                    self.result(&call, result);
                    continue;
                }
            };
            let mut group = vec![first];
            if self.effect(&group[0]) == Effect::ReadOnly {
                while let Some(next) =
                    waiting.next_if(|next| self.effect(&next.call) == Effect::ReadOnly)
                {
                    match self.judge(next) {
                        Judged::May(call) => group.push(call),
                        Judged::Not(call, result) => self.result(&call, result),
                    }
                }
            }
            if !self.run(group).await? {
                return Ok(());
            }
        }
        if self.state.flights.is_empty() {
            self.walk_to(AgentState::Idle);
        }
        Ok(())
    }

    /// Sends out what others do: agents that are called, clients that run tools of their own. The
    /// rest is left to be run here; `None` when the task is over.
    async fn send_out(
        &mut self,
        pending: Vec<Pending>,
    ) -> Result<Option<Vec<Pending>>, OrchestratorError> {
        let alone = if self.calls_of_answer() == 1 { Alone::Yes } else { Alone::No };
        let mut left = Vec::new();
        for pending in pending {
            let call = &pending.call;
            let (ours, clients) = (self.orchestrates(&call.name), self.is_external(&call.name));
            if (ours || clients) && self.inner.world.settings.dispatch == Dispatch::Above {
                continue;
            }
            if ours {
                if call.name == CALL_AGENT {
                    if self.dispatch(call, alone).await? == Flushed::Over {
                        return Ok(None);
                    }
                } else if peers::talks(&call.name) || peers::answers(&call.name) {
                    self.talk(call).await?;
                    if self.state.status.is_terminal() {
                        return Ok(None);
                    }
                } else {
                    self.look_after(call).await?;
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
        self.state.last_lap().map_or(0, |(answer, _)| answer.tool_calls().count())
    }

    /// Whether a call is for the orchestrator: of a task that may call others.
    pub(crate) fn orchestrates(&self, name: &str) -> bool {
        let may = self.inner.world.agents.is_some() && !self.state.created.agents.is_nobody();
        let answers = self.state.created.resident && peers::answers(name);
        answers || may && (supervisor::is_ours(name) || peers::talks(name))
    }

    /// What a task may use: its tools, its client's, and what it needs to call others.
    pub(crate) fn offered(&self) -> Vec<Tool> {
        let created = &self.state.created;
        let mut tools = tools::usable(created, &*self.inner.world.tools);
        let clients = created.external_tools.iter();
        tools.extend(clients.filter(|tool| tools::may_use(created, &tool.name)).cloned());
        if let Some(agents) =
            self.inner.world.agents.as_ref().filter(|_| !created.agents.is_nobody())
        {
            let mut callable: Vec<(String, String)> = agents
                .list()
                .iter()
                .filter(|agent| created.agents.allows(Some(agent.name.as_str())))
                .map(|agent| (agent.name.to_string(), agent.description.clone()))
                .collect();
            callable.sort();
            tools.extend(call_agent::tool(&callable, created.agents.allows(None)));
            tools.extend(supervisor::tools());
            tools.extend(peers::talking());
        }
        if created.resident {
            tools.extend(peers::answering());
        }
        tools
    }

    /// Asks about every call that somebody has to be asked about, and waits. Says whether it does.
    fn ask_about(&mut self, pending: &[Pending], patience: Option<std::time::Duration>) -> bool {
        let mut waits = false;
        for pending in pending {
            let call = &pending.call;
            let Some(arguments) = call.arguments.object() else { continue };
            let elsewhere = self.orchestrates(&call.name) || self.is_external(&call.name);
            let asked = pending.cut_off.is_some() || self.state.asked.contains_key(&call.id);
            if elsewhere || asked {
                continue;
            }
            let Verdict::Ask { reason, rule } = self.verdict(call, arguments) else { continue };
            let now = self.inner.world.clock.now();
            let until = |patience| now + chrono::TimeDelta::from_std(patience).unwrap_or_default();
            let request = ApprovalRequested {
                approval_id: ApprovalId::from(self.inner.world.ids.next()),
                tool_call_id: call.id.clone(),
                tool_name: call.name.clone(),
                arguments: arguments.clone(),
                reason,
                rule,
                expires_at: patience.map(until),
            };
            if let Some(at) = request.expires_at {
                self.inner.watch_deadline(at, request.approval_id.clone());
            }
            self.push(request);
            waits = true;
        }
        if waits {
            self.wait_for(WaitingFor::Approval);
        }
        waits
    }

    /// What the gate, or whoever was asked, says to a call.
    fn judge(&mut self, pending: Pending) -> Judged {
        let Pending { call, cut_off } = pending;
        // What is not known is never run, also if it becomes known a moment later: nobody judged it.
        let Some(effect) = self.effect_of(&call.name) else {
            let harmful = cut_off.is_some_and(|cut_off| !cut_off.may_run_again());
            let unknown = || tools::unknown(&self.offered(), &call.name);
            let result = if harmful { tools::outcome_unknown() } else { unknown() };
            return Judged::Not(call, result);
        };
        match cut_off.map(|cut_off| cut_off.may_run_again() && effect.may_run_again()) {
            Some(true) => return Judged::May(call),
            Some(false) => return Judged::Not(call, tools::outcome_unknown()),
            None => {}
        }
        let arguments = match &call.arguments {
            ToolArguments::Object(arguments) => arguments,
            ToolArguments::Malformed(_) => {
                let result = tools::malformed(&call);
                return Judged::Not(call, result);
            }
        };
        let answered = self.state.asked.get(&call.id).and_then(|question| question.answer.clone());
        let refusal = match answered {
            Some((decision, _)) if decision.allows() => return Judged::May(call),
            Some((decision, comment)) => denied(decision, comment.as_deref()),
            None => match self.verdict(&call, arguments) {
                Verdict::Allow => return Judged::May(call),
                Verdict::Deny { reason } => reason,
                Verdict::Ask { reason, rule } => format!(
                    "{reason} Nobody is there to be asked, so it was not run. The rule that would \
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
        Judged::Not(call, ToolResult::failed(format!("not allowed: {refusal}")))
    }

    fn verdict(&self, call: &ToolCallBlock, arguments: &RawJson) -> Verdict {
        // Nobody is asked about a tool that is not there.
        if self.effect_of(&call.name).is_none() {
            return Verdict::Allow;
        }
        let granted = &self.state.granted;
        self.inner.world.gate.judge(&GateRequest { tool: &call.name, arguments, granted })
    }

    /// Runs a group of calls at once. Says whether to go on.
    async fn run(&mut self, group: Vec<ToolCallBlock>) -> Result<bool, OrchestratorError> {
        for call in &group {
            let (tool_call_id, tool_name) = (call.id.clone(), call.name.clone());
            self.push(ToolStarted { tool_call_id, tool_name, effect: self.effect(call) });
        }
        // Moved is fine: what was decided about these calls still holds. A pause takes effect behind
        // them, for they count as started now.
        if self.flush().await? == Flushed::Over {
            return Ok(false);
        }
        let executor = Arc::clone(&self.inner.world.tools);
        let runs: Vec<_> =
            group.iter().map(|call| tools::run(&*executor, call, self.context(call))).collect();
        let mut all = std::pin::pin!(stream::iter(runs).buffered(CALLS_RUNNING_MAX).collect());
        let mut alive = tokio::time::interval(BEAT);
        // Each tool has a limit of its own; to be quiet is no fault.
        let results: Vec<_> = loop {
            tokio::select! {
                results = &mut all => break results,
                _ = alive.tick() => self.running.beat(),
            }
        };
        let canceled = self.running.cancel.is_cancelled();
        let stopped = self.inner.stop.is_cancelled();
        for (call, result) in group.iter().zip(results) {
            match result {
                Some(result) => self.result(call, result),
                None if canceled => self.result(call, ToolResult::failed("canceled")),
                // Cut off to come to rest: recovery decides what to make of it.
                None if stopped => {}
                None => self.result(call, ToolResult::failed("the task's time was over")),
            }
        }
        Ok(!canceled && !stopped)
    }

    fn context(&self, call: &ToolCallBlock) -> ToolContext {
        let (deltas, running) = (Arc::clone(&self.inner.deltas), Arc::clone(&self.running));
        let (task_id, tool_call_id) = (self.state.task_id.clone(), call.id.clone());
        let turn = self.state.turns;
        ToolContext {
            task_id: task_id.clone(),
            tool_call_id: tool_call_id.clone(),
            cancel: self.interruption(),
            progress: Progress::to(move |text| {
                running.beat();
                let (tool_call_id, delta) = (tool_call_id.clone(), text.to_owned());
                let event = DeltaEvent::Tool(ToolDelta::ToolOutput { tool_call_id, delta });
                deltas.show(Delta::new(task_id.clone(), turn, event));
            }),
        }
    }

    /// A tool nobody knows does nothing.
    fn effect(&self, call: &ToolCallBlock) -> Effect {
        self.effect_of(&call.name).unwrap_or(Effect::ReadOnly)
    }

    /// What a tool does to the world, if this task may use it.
    fn effect_of(&self, name: &str) -> Option<Effect> {
        let may = tools::may_use(&self.state.created, name);
        self.inner.world.tools.effect(name).filter(|_| may)
    }
}

fn denied(decision: Decision, comment: Option<&str>) -> String {
    let said = comment.map(|comment| format!(": {comment}")).unwrap_or_default();
    match decision {
        Decision::Expire => "nobody answered in time whether it may run.".to_owned(),
        Decision::Deny | Decision::AllowOnce | Decision::AllowTask | Decision::AllowAlways => {
            format!("somebody was asked and said no{said}")
        }
    }
}
